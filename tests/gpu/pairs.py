"""Kernel time, woven over original, nothing else in the way: no hook, no collector, no host time.

    python3 tests/gpu/pairs.py ORIGINAL.ptx WOVEN.ptx MANIFEST.ntm [REPEATS]

Both texts go through the same ptxas. Original and woven kernel are launched in turn, on the harness's sizes (uninitialised
but equal inputs where the work does not depend on them, made ones where it does), each behind a write over twice the L2, so
that caches are cold and the launch is queued before the GPU is free: the events see the kernel alone. Medians of the ratio
pair by pair. The original against itself is measured too: that is the noise.
"""

import ctypes
import json
import random
import statistics
import subprocess
import sys
import tempfile

cuda = ctypes.CDLL("libcuda.so.1")
U64, VP = ctypes.c_uint64, ctypes.c_void_p


def call(name, *args):
    code = getattr(cuda, name)(*args)
    if code:
        sys.exit(f"{name}: error {code}")


def allocate(size, data=None):
    pointer = U64()
    call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
    call("cuMemsetD8_v2", pointer, ctypes.c_ubyte(0), ctypes.c_size_t(size))
    if data is not None:
        call("cuMemcpyHtoD_v2", pointer, data, ctypes.c_size_t(len(data)))
    return pointer


def load(ptx):
    with tempfile.NamedTemporaryFile(suffix=".cubin") as cubin:
        subprocess.run(["ptxas", "-arch=sm_90", ptx, "-o", cubin.name], check=True)
        image = open(cubin.name, "rb").read()
    module = VP()
    call("cuModuleLoadData", ctypes.byref(module), image)
    return module


def jobs(sms):
    """(name, grid, block, arguments) as bench/harness.cpp has them at full size."""
    n, m, rows, cols, length, queries, quads = 1 << 24, 2048, 1 << 17, 4096, 2048, 16384, 1 << 21
    rng = random.Random(1)
    counts = [rng.randrange(96) for _ in range(rows)]
    starts = [0]
    for count in counts:
        starts.append(starts[-1] + count)
    index = [rng.randrange(rows) for _ in range(starts[-1])]
    ints = lambda values: (ctypes.c_int32 * len(values))(*values)
    a, b, c, z = (allocate(4 * n) for _ in range(4))
    img, y, bins, total = allocate(4 * m * m), allocate(4 * rows), allocate(1024), allocate(4)
    u = allocate(4 * n, bytes(bytearray(random.Random(2).randbytes(4 * n))))
    ptr = allocate(4 * (rows + 1), bytes(ints(starts)))
    idx = allocate(4 * len(index), bytes(ints(index)))
    val = allocate(4 * len(index))
    q, i32 = U64(quads), ctypes.c_int32
    tiles = m // 32
    return [
        ("fill_blocks", (quads // 128, 1), (128, 1), [z, q]),
        ("fill_persistent", (sms * 4, 1), (512, 1), [z, q]),
        ("vector_add", (n // 256, 1), (256, 1), [a, b, c, i32(n)]),
        ("reduce_sum", (sms * 8, 1), (256, 1), [a, total, i32(n)]),
        ("transpose", (tiles, tiles), (32, 8), [a, c, i32(m)]),
        ("matmul_tiled", (tiles, tiles), (32, 32), [a, b, c, i32(m)]),
        ("softmax_rows", (n // cols, 1), (256, 1), [a, c, i32(cols)]),
        ("attention_online", (queries // 128, 1), (128, 1), [a, b, U64(a.value + n), c, i32(length)]),
        ("mandelbrot", (m // 16, m // 16), (16, 16), [img, i32(m), i32(m), i32(1000)]),
        ("histogram", (sms * 8, 1), (256, 1), [u, bins, i32(n)]),
        ("spmv_csr", (rows * 32 // 256, 1), (256, 1), [ptr, idx, val, b, y, i32(rows)]),
    ]


def context_block(kernel, grid, block):
    """The block that the hook would fill, with maps of this launch's size."""
    words = [0] * (kernel["context"]["size"] // 8)
    threads, blocks = block[0] * block[1], grid[0] * grid[1]
    shapes = [(m["unit"], m["stride"]) for m in kernel["maps"] + kernel.get("tables", [])]
    bases = []
    for unit, stride in shapes:
        units = {"thread": blocks * threads, "warp": blocks * -(-threads // 32), "block": blocks, "sm": 1024}[unit]
        units = -(-units // 16) * 16
        bases.append((allocate(units * stride).value, units))
    for slot in kernel["context"]["slots"]:
        fill = slot["fill"]
        if fill in ("base", "capacity"):
            words[slot["offset"] // 8] = bases[slot["map"]][fill == "capacity"]
    return (U64 * len(words))(*words)


def main():
    original, woven, manifest = sys.argv[1:4]
    repeats = int(sys.argv[4]) if len(sys.argv) > 4 else 60
    call("cuInit", 0)
    device, context, sms = ctypes.c_int(), VP(), ctypes.c_int()
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    call("cuDeviceGetAttribute", ctypes.byref(sms), 16, device)
    modules = [load(original), load(woven)]
    kernels = {kernel["name"]: kernel for kernel in json.load(open(manifest))["kernels"]}
    flush = allocate(128 << 20)
    events = [VP(), VP()]
    for event in events:
        call("cuEventCreate", ctypes.byref(event), 0)

    def time(function, grid, block, args):
        pointers = (VP * len(args))(*[ctypes.cast(ctypes.pointer(arg), VP) for arg in args])
        call("cuMemsetD8Async", flush, ctypes.c_ubyte(1), ctypes.c_size_t(128 << 20), None)
        call("cuEventRecord", events[0], None)
        call("cuLaunchKernel", function, grid[0], grid[1], 1, block[0], block[1], 1, 0, None, pointers, None)
        call("cuEventRecord", events[1], None)
        call("cuEventSynchronize", events[1])
        ms = ctypes.c_float()
        call("cuEventElapsedTime", ctypes.byref(ms), events[0], events[1])
        return ms.value * 1000

    product, count = 1.0, 0
    print("kernel\toriginal_us\twoven_us\tratio\tnoise")
    for name, grid, block, args in jobs(sms.value):
        if name not in kernels:
            continue
        functions = []
        for module in modules:
            function = VP()
            call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
            functions.append(function)
        more = args + [context_block(kernels[name], grid, block)]
        one, two, again = [], [], []
        for _ in range(repeats + 5):
            one.append(time(functions[0], grid, block, args))
            two.append(time(functions[1], grid, block, more))
            again.append(time(functions[0], grid, block, args))
        one, two, again = one[5:], two[5:], again[5:]
        # Against the mean of the originals before and behind it.
        ratio = statistics.median(2 * w / (a + b) for a, w, b in zip(one, two, again))
        noise = statistics.median(b / a for a, b in zip(one, again))
        product, count = product * ratio, count + 1
        print(f"{name}\t{statistics.median(one):.2f}\t{statistics.median(two):.2f}\t{ratio:.3f}\t{noise:.3f}", flush=True)
    print(f"geometric mean\t\t\t{product ** (1 / max(count, 1)):.3f}")


if __name__ == "__main__":
    main()
