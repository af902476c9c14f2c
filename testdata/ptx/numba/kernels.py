"""Compiles three Python kernels through Numba and writes their PTX into the folder that is named; needs no GPU.

    python kernels.py FOLDER
"""

import math
import pathlib
import sys

import _numba_cuda_redirector  # noqa: F401  what its .pth file does where it is installed as usual
from numba import cuda, float32, types


def axpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] += a * x[i]


def block_sums(values, out):
    partial = cuda.shared.array(128, float32)
    i = cuda.threadIdx.x
    partial[i] = values[cuda.grid(1)] if cuda.grid(1) < values.size else 0
    cuda.syncthreads()
    step = 64
    while step > 0:
        if i < step:
            partial[i] += partial[i + step]
        cuda.syncthreads()
        step //= 2
    if i == 0:
        cuda.atomic.add(out, 0, partial[0])


def waves(out, frequency):
    row, column = cuda.grid(2)
    if row < out.shape[0] and column < out.shape[1]:
        out[row, column] = math.sin(frequency * row) * math.exp(-column) // 1.0


KERNELS = [
    (axpy, (float32, float32[::1], float32[:])),
    (block_sums, (float32[::1], float32[::1])),
    (waves, (types.float64[:, ::1], types.float64)),
]


def main():
    folder = pathlib.Path(sys.argv[1])
    for (kernel, signature), arch in zip(KERNELS, [(8, 0), (9, 0), (12, 0)]):
        ptx, _ = cuda.compile_ptx(kernel, types.void(*signature), cc=arch)
        name = f"{kernel.__name__}.sm_{arch[0]}{arch[1]}.ptx"
        (folder / name).write_text(ptx.rstrip("\0"))
        print(name, len(ptx), file=sys.stderr)


if __name__ == "__main__":
    main()
