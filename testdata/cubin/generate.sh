#!/bin/sh
# Makes the cubins of this folder, which keep the PTX that they were made of: Triton's, and a linked one of nvcc's.
#
# usage: testdata/cubin/generate.sh     after `make deps` and `deps/folders.sh deps/corpora.txt`
#
# Triton 3.6.0 (with its own ptxas 12.8 and, for sm_100a, 12.9) compiles kernels of testdata/ptx/triton/kernels.py: one
# that each GPU has, one with wgmma. nvcc 13.0.88 compiles two files of relocatable code, and nvlink links them into one
# cubin, which has a text of each.
set -eu
cd "$(dirname "$0")"
out=$PWD
tools=$(cd ../.. && pwd)/.tools
python=$tools/venv/bin/python
[ -x "$python" ] || python=${PYTHON:-python3}
# A folder of one fixed name and files of one fixed date, since debug data holds them.
work=/tmp/nt-corpora
rm -rf "$work"
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT
cp ../ptx/triton/kernels.py generate.py "$work"
cd "$work"
touch -d 2026-01-01T00:00:00Z kernels.py
PYTHONPATH=$tools/triton-3.6 TRITON_CACHE_DIR=$work/cache "$python" generate.py "$out"

PATH=$tools/bin:$PATH
cat >first.cu <<'CU'
extern __device__ int seven(int);
__global__ void first(int *p) { *p += seven(1); }
CU
cat >second.cu <<'CU'
__device__ int seven(int x) { return x + 7; }
__global__ void second(int *p) { *p += 3; }
CU
touch -d 2026-01-01T00:00:00Z first.cu second.cu
for name in first second; do
    nvcc -cubin -arch=sm_90 -rdc=true -lineinfo $name.cu -o $name.cubin
done
nvlink -arch=sm_90 first.cubin second.cubin -o "$out/linked.sm_90.cubin"
