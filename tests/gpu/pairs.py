"""Kernel time, woven over original, nothing else in the way: no hook, no collector, no host time.

    python3 tests/gpu/pairs.py ORIGINAL.ptx WOVEN.ptx MANIFEST.ntm [WOVEN.ptx MANIFEST.ntm …] [REPEATS]

Of several woven texts each has the kernels that its manifest names: what a weaver may assume differs from launch to launch.
All texts go through the same ptxas. Original and woven kernel are launched in turn, on the harness's sizes (uninitialised
but equal inputs where the work does not depend on them, made ones where it does), each behind a write over twice the L2, so
that caches are cold and the launch is queued before the GPU is free: the events see the kernel alone. Medians of the ratio
pair by pair. The original against itself is measured too: that is the noise.
"""

import ctypes
import functools
import json
import random
import statistics
import subprocess
import sys
import tempfile

# Bytes of a stream's slots: more than any of the kernels fills.
STREAM = 1 << 30
U64, VP = ctypes.c_uint64, ctypes.c_void_p


@functools.cache
def driver():
    return ctypes.CDLL("libcuda.so.1")


def call(name, *args):
    code = getattr(driver(), name)(*args)
    if code:
        sys.exit(f"{name}: error {code}")


def device():
    """Makes the first device's primary context current, and says how many multiprocessors there are."""
    first, context, sms = ctypes.c_int(), VP(), ctypes.c_int()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(first), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), first)
    call("cuCtxSetCurrent", context)
    call("cuDeviceGetAttribute", ctypes.byref(sms), 16, first)
    return sms.value


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


def shapes(sms, shrink=0):
    """Grid and block of each kernel's launch, as bench/harness.cpp has them."""
    n, m, rows, cols = 1 << (24 - 2 * shrink), 2048 >> shrink, 1 << (17 - 2 * shrink), 4096 >> shrink
    queries, quads, tiles = 16384 >> shrink, 1 << (21 - 2 * shrink), m // 32
    return {
        "fill_blocks": ((quads // 128, 1), (128, 1)), "fill_persistent": ((sms * 4, 1), (512, 1)),
        "vector_add": ((n // 256, 1), (256, 1)), "reduce_sum": ((sms * 8, 1), (256, 1)),
        "transpose": ((tiles, tiles), (32, 8)), "matmul_tiled": ((tiles, tiles), (32, 32)),
        "softmax_rows": ((n // cols, 1), (256, 1)), "attention_online": ((queries // 128, 1), (128, 1)),
        "mandelbrot": ((m // 16, m // 16), (16, 16)), "histogram": ((sms * 8, 1), (256, 1)),
        "spmv_csr": ((rows * 32 // 256, 1), (256, 1)),
    }


def conditions(grid, block):
    """What holds of a launch, in the words of nt-inject's --assume."""
    held = {"flat_grid": grid[1] == 1, "flat_block": block[1] == 1, "whole_rows": block[0] % 32 == 0}
    return ",".join(name for name, holds in held.items() if holds)


def jobs(sms, shrink=0):
    """(name, grid, block, arguments), with the harness's sizes."""
    n, m, rows, cols = 1 << (24 - 2 * shrink), 2048 >> shrink, 1 << (17 - 2 * shrink), 4096 >> shrink
    length, quads = 2048 >> shrink, 1 << (21 - 2 * shrink)
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
    arguments = {
        "fill_blocks": [z, q], "fill_persistent": [z, q], "vector_add": [a, b, c, i32(n)], "reduce_sum": [a, total, i32(n)],
        "transpose": [a, c, i32(m)], "matmul_tiled": [a, b, c, i32(m)], "softmax_rows": [a, c, i32(cols)],
        "attention_online": [a, b, U64(a.value + n), c, i32(length)], "mandelbrot": [img, i32(m), i32(m), i32(1000)],
        "histogram": [u, bins, i32(n)], "spmv_csr": [ptr, idx, val, b, y, i32(rows)],
    }
    return [(name, *shape, arguments[name]) for name, shape in shapes(sms, shrink).items()]


def context_block(kernel, grid, block):
    """The block that the hook would fill, with maps of this launch's size; and what is to be cleared before each launch."""
    threads, blocks = block[0] * block[1], grid[0] * grid[1]
    warps = blocks * -(-threads // 32)
    parts, clear = [], []
    for shape in kernel["maps"] + kernel.get("tables", []):
        units = {"thread": blocks * threads, "warp": warps, "block": blocks, "sm": 1024}[shape["unit"]]
        units = -(-units // 16) * 16
        part = {"units": warps}
        if shape.get("stream"):
            part |= {"base": allocate(STREAM).value, "capacity": STREAM // 16, "cursor": allocate(64).value, "drops": allocate(4 * warps).value}
            clear += [(part["base"], STREAM), (part["cursor"], 64)]
        else:
            part |= {"base": allocate(units * shape["stride"]).value, "capacity": units}
        parts.append(part)
    words = bytearray(kernel["context"]["size"])
    for slot in kernel["context"]["slots"]:
        value = parts[slot["map"]][slot["fill"]] if "map" in slot else 0
        size = slot.get("size", 8)
        words[slot["offset"] : slot["offset"] + size] = value.to_bytes(size, "little")
    dropped = [(part["drops"], warps) for part in parts if "drops" in part]
    return (ctypes.c_ubyte * len(words)).from_buffer(words), clear, dropped


def main():
    original, *pairs = sys.argv[1:]
    repeats = int(pairs.pop()) if len(pairs) % 2 else 60
    sms = device()
    before, kernels = load(original), {}
    for woven, manifest in zip(pairs[::2], pairs[1::2]):
        module = load(woven)
        kernels |= {kernel["name"]: (kernel, module) for kernel in json.load(open(manifest))["kernels"]}
    flush = allocate(128 << 20)
    events = [VP(), VP()]
    for event in events:
        call("cuEventCreate", ctypes.byref(event), 0)

    def time(function, grid, block, args, clear=()):
        pointers = (VP * len(args))(*[ctypes.cast(ctypes.pointer(arg), VP) for arg in args])
        for start, size in clear:
            call("cuMemsetD8Async", U64(start), ctypes.c_ubyte(0), ctypes.c_size_t(size), None)
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
    for name, grid, block, args in jobs(sms):
        if name not in kernels:
            continue
        kernel, module = kernels[name]
        functions = []
        for loaded in (before, module):
            function = VP()
            call("cuModuleGetFunction", ctypes.byref(function), loaded, name.encode())
            functions.append(function)
        context, clear, dropped = context_block(kernel, grid, block)
        one, two, again = [], [], []
        for _ in range(repeats + 5):
            one.append(time(functions[0], grid, block, args))
            two.append(time(functions[1], grid, block, args + [context], clear))
            again.append(time(functions[0], grid, block, args))
        one, two, again = one[5:], two[5:], again[5:]
        for start, warps in dropped:
            counts = (ctypes.c_uint32 * warps)()
            call("cuMemcpyDtoH_v2", counts, U64(start), ctypes.c_size_t(4 * warps))
            if any(counts):
                sys.exit(f"{name}: its stream was full")
        for start, _ in clear + dropped:
            call("cuMemFree_v2", U64(start))
        # Against the mean of the originals before and behind it.
        ratio = statistics.median(2 * w / (a + b) for a, w, b in zip(one, two, again))
        noise = statistics.median(b / a for a, b in zip(one, again))
        product, count = product * ratio, count + 1
        print(f"{name}\t{statistics.median(one):.2f}\t{statistics.median(two):.2f}\t{ratio:.3f}\t{noise:.3f}", flush=True)
    print(f"geometric mean\t\t\t{product ** (1 / max(count, 1)):.3f}")


if __name__ == "__main__":
    main()
