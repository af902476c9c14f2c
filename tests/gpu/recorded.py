"""The memory trace against kernels that write down their own addresses. memory_trace.py runs it under nt-run.

    nt-run -p dmat -o T.ntt -- python3 tests/gpu/recorded.py KERNELS.ptx WORK SHRINK KERNEL …

Builds a recording version of bench/kernels.cu (`source` below: every pointer of it becomes one that notes each access before it
is made), runs each KERNEL of KERNELS.ptx once, on which the probes are, and then its recording version on the same buffers, and
writes what that noted to WORK/KERNEL.npy: rows of (address, thread, bytes, store) in no order.
"""

import ctypes
import pathlib
import re
import sys

import numpy

from common import SOFTWARE, nvcc
from pairs import U64, VP, allocate, call, device, jobs

ROW = numpy.dtype([("address", "<u8"), ("thread", "<u4"), ("bytes", "<u2"), ("store", "<u2")])

RECORDER = r"""
struct Row { unsigned long long address; unsigned thread; unsigned short bytes, store; };
__device__ Row *nt_rows;
__device__ unsigned long long nt_count, nt_room;

__device__ void note(const void *place, unsigned bytes, unsigned store) {
    unsigned long long block = blockIdx.x + gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
    unsigned in_block = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    unsigned thread = block * (blockDim.x * blockDim.y * blockDim.z) + in_block;
    unsigned long long row = atomicAdd(&nt_count, 1ull);
    if (row < nt_room) nt_rows[row] = {(unsigned long long)place, thread, (unsigned short)bytes, (unsigned short)store};
}

template <class T> struct Bare { typedef T type; };
template <class T> struct Bare<const T> { typedef T type; };

template <class T> struct Recorded;
// One element: reading it notes a load, assigning a store; its address is taken for atomics alone.
template <class T> struct Place {
    T *place;
    __device__ operator typename Bare<T>::type() const { note(place, sizeof(T), 0); return *place; }
    __device__ void operator=(const T &value) { note(place, sizeof(T), 1); *place = value; }
    __device__ Recorded<T> operator&() const { return {place}; }
};
// A pointer to global memory: as large as one, so that the kernels take the same arguments.
template <class T> struct Recorded {
    T *start;
    __device__ Place<T> operator[](long long i) const { return {start + i}; }
    __device__ Recorded operator+(size_t i) const { return {start + i}; }
};
template <class T, class V> __device__ void atomicAdd(Recorded<T> place, V value) {
    note(place.start, sizeof(T), 2);
    atomicAdd(place.start, (T)value);
}
"""


def source():
    """bench/kernels.cu, recording. All its pointers are to global memory: shared memory it declares as arrays."""
    text = pathlib.Path("bench/kernels.cu").read_text()
    head, kernels = text.split("#include <cstdint>\n")
    # The compiler loads the end of a row once, since nothing in the loop can change it. A recording load is one a round.
    once = "i < ptr[row + 1]"
    assert kernels.count(once) == 1
    kernels = kernels.replace(once, "i < end").replace("    for (int i = ptr[row] + lane;", "    int end = ptr[row + 1];\n    for (int i = ptr[row] + lane;")
    kernels = re.sub(r"\b(const )?(float|int|uint32_t|uint4) \*(\w+)", lambda m: f"Recorded<{m[1] or ''}{m[2]}> {m[3]}", kernels)
    kernels = re.sub(r"(__global__ void \w+)\(", r"\1_recorded(", kernels)
    return head + "#include <cstdint>\n" + RECORDER + kernels


def load(path):
    module = VP()
    call("cuModuleLoadData", ctypes.byref(module), pathlib.Path(path).read_bytes() + b"\0")
    return module


def launch(module, name, grid, block, arguments):
    function = VP()
    call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
    pointers = (VP * len(arguments))(*[ctypes.cast(ctypes.pointer(a), VP) for a in arguments])
    call("cuLaunchKernel", function, grid[0], grid[1], 1, block[0], block[1], 1, 0, None, pointers, None)
    call("cuCtxSynchronize")


def main():
    ptx, work, shrink, names = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    sms = device()
    (work / "recorded.cu").write_text(source())
    # The software GPU runs PTX alone.
    form = ["-ptx", "-arch=sm_90"] if SOFTWARE else ["-cubin", "-arch=native"]
    if not nvcc(work / "recorded.cu", work / "recorder", *form):
        sys.exit("there is no nvcc on PATH")
    chosen = [job for job in jobs(sms, shrink) if job[0] in names]
    module = load(ptx)
    for name, grid, block, arguments in chosen:
        launch(module, name, grid, block, arguments)

    recorder = load(work / "recorder")
    symbols = {}
    for symbol in ("nt_rows", "nt_count", "nt_room"):
        symbols[symbol] = U64()
        call("cuModuleGetGlobal_v2", ctypes.byref(symbols[symbol]), None, recorder, symbol.encode())
    room = 1 << 24 if SOFTWARE else 1 << 26
    buffer = allocate(room * ROW.itemsize)
    word = lambda symbol, value: call("cuMemcpyHtoD_v2", symbols[symbol], ctypes.byref(U64(value)), ctypes.c_size_t(8))
    word("nt_rows", buffer.value)
    word("nt_room", room)
    for name, grid, block, arguments in chosen:
        word("nt_count", 0)
        launch(recorder, f"{name}_recorded", grid, block, arguments)
        count = U64()
        call("cuMemcpyDtoH_v2", ctypes.byref(count), symbols["nt_count"], ctypes.c_size_t(8))
        if count.value > room:
            sys.exit(f"{name} makes {count.value} accesses, there is room for {room}")
        rows = numpy.zeros(count.value, ROW)
        call("cuMemcpyDtoH_v2", rows.ctypes.data_as(VP), buffer, ctypes.c_size_t(rows.nbytes))
        numpy.save(work / f"{name}.npy", rows)


if __name__ == "__main__":
    main()
