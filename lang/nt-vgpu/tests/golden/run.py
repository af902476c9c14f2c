"""Runs the kernels that the golden test wrote on a GPU, and writes their results beside them. Needs the driver alone.

    NT_VGPU_EMIT=DIR cargo test -p nt-vgpu golden
    python3 run.py DIR
"""

import ctypes
import pathlib
import sys


def check(code, what):
    if code:
        sys.exit(f"{what}: error {code}")


def main():
    folder = pathlib.Path(sys.argv[1])
    cuda = ctypes.CDLL("libcuda.so.1")
    check(cuda.cuInit(0), "cuInit")
    context = ctypes.c_void_p()
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "cuDevicePrimaryCtxRetain")
    check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    inputs = (folder / "inputs.bin").read_bytes()
    results = bytearray()
    log = ctypes.create_string_buffer(1 << 16)
    offset = 0
    for line in (folder / "index.txt").read_text().splitlines():
        case, count = line.split()
        count = int(count)
        text = (folder / f"{case}.ptx").read_bytes() + b"\0"
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        # 5 and 6 are CU_JIT_ERROR_LOG_BUFFER and its size.
        options = (ctypes.c_int * 2)(5, 6)
        values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), len(log))
        code = cuda.cuModuleLoadDataEx(ctypes.byref(module), text, 2, options, values)
        if code:
            print(f"{case}: error {code}: {log.value.decode(errors='replace').strip()}")
            results += bytes(8 * count)
            offset += 24 * count
            continue
        check(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"k"), "cuModuleGetFunction")
        source, target = ctypes.c_uint64(), ctypes.c_uint64()
        check(cuda.cuMemAlloc_v2(ctypes.byref(source), ctypes.c_size_t(24 * count)), "cuMemAlloc")
        check(cuda.cuMemAlloc_v2(ctypes.byref(target), ctypes.c_size_t(8 * count)), "cuMemAlloc")
        given = inputs[offset : offset + 24 * count]
        check(cuda.cuMemcpyHtoD_v2(source, given, ctypes.c_size_t(len(given))), "cuMemcpyHtoD")
        params = (ctypes.c_void_p * 2)(ctypes.addressof(source), ctypes.addressof(target))
        check(cuda.cuLaunchKernel(function, count // 32, 1, 1, 32, 1, 1, 0, None, params, None), "cuLaunchKernel")
        check(cuda.cuCtxSynchronize(), case)
        out = ctypes.create_string_buffer(8 * count)
        check(cuda.cuMemcpyDtoH_v2(out, target, ctypes.c_size_t(8 * count)), "cuMemcpyDtoH")
        results += out.raw
        offset += 24 * count
        cuda.cuMemFree_v2(source)
        cuda.cuMemFree_v2(target)
        cuda.cuModuleUnload(module)
    (folder / "results.bin").write_bytes(results)
    print(f"{len(results) // 8} results")


if __name__ == "__main__":
    main()
