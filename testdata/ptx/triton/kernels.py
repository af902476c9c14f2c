"""Compiles four Triton kernels for four architectures and writes their PTX into a folder; needs no GPU.

    make corpora        or        python kernels.py FOLDER

What Triton's driver would pass of the arguments (divisibility by 16) is passed here too: it changes the code.
"""

import pathlib
import re
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


@triton.jit
def softmax(x, out, row_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    v = tl.load(x + row * row_stride + j, mask=j < columns, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * row_stride + j, e / tl.sum(e, 0), mask=j < columns)


@triton.jit
def matmul(a, b, c, M, N, K, sam, sbk, scm, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    pa = a + m[:, None] * sam + k[None, :]
    pb = b + k[:, None] * sbk + n[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        left = tl.load(pa, mask=k[None, :] < K - k0, other=0.0)
        right = tl.load(pb, mask=k[:, None] < K - k0, other=0.0)
        acc = tl.dot(left, right, acc)
        pa += BK
        pb += BK * sbk
    tl.store(c + m[:, None] * scm + n[None, :], acc.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def attention(q, k, v, out, length, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.arange(0, BN)
    d = tl.arange(0, D)
    query = tl.load(q + m[:, None] * D + d[None, :])
    top = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, length, BN):
        key = tl.load(k + (start + n)[None, :] * D + d[:, None])
        s = tl.dot(query, key) * scale
        higher = tl.maximum(top, tl.max(s, 1))
        p = tl.exp(s - higher[:, None])
        fade = tl.exp(top - higher)
        total = total * fade + tl.sum(p, 1)
        value = tl.load(v + (start + n)[:, None] * D + d[None, :])
        acc = tl.dot(p.to(tl.float16), value, acc * fade[:, None])
        top = higher
    tl.store(out + m[:, None] * D + d[None, :], (acc / total[:, None]).to(tl.float16))


P16, P32, I, F = "*fp16", "*fp32", "i32", "fp32"
KERNELS = [
    (vector_add, dict(x=P32, y=P32, out=P32, n=I), dict(BLOCK=1024), 4),
    (softmax, dict(x=P32, out=P32, row_stride=I, columns=I), dict(BLOCK=4096), 8),
    (matmul, dict(a=P16, b=P16, c=P16, M=I, N=I, K=I, sam=I, sbk=I, scm=I), dict(BM=128, BN=128, BK=64), 8),
    (attention, dict(q=P16, k=P16, v=P16, out=P16, length=I, scale=F), dict(BM=64, BN=64, D=64), 4),
]


def main():
    folder = pathlib.Path(sys.argv[1])
    for arch in (80, 90, 100, 120):
        for kernel, signature, constants, warps in KERNELS:
            types = signature | {name: "constexpr" for name in constants}
            # Pointers and sizes are multiples of 16, as they are in practice.
            attrs = {(i,): [["tt.divisibility", 16]] for i, t in enumerate(signature.values()) if t != F}
            source = ASTSource(kernel, types, constexprs=constants, attrs=attrs)
            compiled = triton.compile(source, target=GPUTarget("cuda", arch, 32), options={"num_warps": warps})
            ptx = compiled.asm["ptx"]
            target = re.search(r"\.target (\w+)", ptx).group(1)
            name = f"{kernel.fn.__name__}.{target}.ptx"
            (folder / name).write_text(ptx)
            print(name, len(ptx), file=sys.stderr)


if __name__ == "__main__":
    main()
