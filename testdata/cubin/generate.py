"""Compiles kernels of kernels.py, which stands beside this file then, into cubins; needs no GPU."""

import pathlib
import sys

import kernels
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

# A tile of matmul that is small and still one of wgmma's.
SMALL = dict(BM=64, BN=32, BK=32)
WANTED = [("vector_add", 80, {}), ("vector_add", 90, {}), ("vector_add", 100, {}), ("matmul", 90, SMALL)]


def main():
    folder = pathlib.Path(sys.argv[1])
    for name, arch, tile in WANTED:
        kernel, signature, constants, _ = next(k for k in kernels.KERNELS if k[0].fn.__name__ == name)
        types = signature | {constant: "constexpr" for constant in constants}
        attrs = {(i,): [["tt.divisibility", 16]] for i, t in enumerate(signature.values()) if t != kernels.F}
        source = ASTSource(kernel, types, constexprs=constants | tile, attrs=attrs)
        compiled = triton.compile(source, target=GPUTarget("cuda", arch, 32), options={"num_warps": 4})
        target = compiled.asm["ptx"].split(".target ")[1].split()[0]
        file = folder / f"{name}.{target}.cubin"
        file.write_bytes(compiled.asm["cubin"])
        print(file.name, file.stat().st_size, file=sys.stderr)


if __name__ == "__main__":
    main()
