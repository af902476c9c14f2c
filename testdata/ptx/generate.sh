#!/bin/sh
# Makes the PTX of this folder anew from our own sources (`make corpora`): bench/kernels.cu and testdata/cu/ through
# nvcc, testdata/ptx/triton/kernels.py through Triton. The results are committed, so tests need neither.
#
# Sources are compiled in a folder of one fixed name, since debug data holds it.
set -eu
cd "$(dirname "$0")/../.."
top=$PWD
nvcc=$top/.tools/bin/nvcc
out=$top/testdata/ptx/nvcc
work=/tmp/nt-corpora
rm -rf "$work"
mkdir -p "$work" "$out"
trap 'rm -rf "$work"' EXIT
cp bench/kernels.cu testdata/cu/*.cu "$work"
cd "$work"

compile() { # SOURCE NAME OPTIONS…
    source=$1 name=$2
    shift 2
    "$nvcc" -ptx -std=c++17 "$@" "$source" -o "$name"
    # Where compiler and headers stand on the machine that ran this is nobody's business.
    sed -i -E 's|(\.file[[:space:]]+[0-9]+ ")[^"]*/|\1|' "$name"
    mv "$name" "$out/$name"
}
for arch in 80 90 100; do
    for source in kernels features; do
        compile $source.cu $source.sm_$arch.ptx -O3 -arch=compute_$arch
    done
done
compile kernels.cu kernels.lineinfo.sm_90.ptx -O3 -lineinfo -arch=compute_90
compile kernels.cu kernels.debug.sm_90.ptx -G -O0 -arch=compute_90
compile features.cu features.debug.sm_90.ptx -G -O0 -arch=compute_90
compile features.cu features.rdc.sm_90.ptx -O3 -rdc=true -arch=compute_90

TRITON_CACHE_DIR=$work/triton "$top/.tools/venv/bin/python" "$top/testdata/ptx/triton/kernels.py"
