#!/bin/sh
# Makes the fatbins of this folder: the same three images raw, LZ4, zstd and as groups.
#
# usage: testdata/fatbin/generate.sh     after `make deps`
#
# Images: PTX for sm_80, a cubin for sm_80, PTX for sm_90a, of tiny.cu. nvcc 13.0.88 makes them and packs all but
# tiny.group.fatbin, for which fatbinary 13.5.37 is fetched: the older one does not know -concat.
set -eu
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
PATH=$root/.tools/bin:$PATH

for mode in none speed size; do
    case $mode in none) name=raw ;; speed) name=lz4 ;; size) name=zstd ;; esac
    nvcc -fatbin -gencode arch=compute_80,code=[compute_80,sm_80] -gencode arch=compute_90a,code=compute_90a \
        -Xfatbin=--compress-mode=$mode -Xfatbin=-compress-all tiny.cu -o tiny.$name.fatbin
done

new=$root/.tools/nvcc-13.5
[ -d "$new" ] || "${PYTHON:-python3}" -m pip install --quiet --disable-pip-version-check --no-deps \
    --target "$new" nvidia-cuda-nvcc==13.5.37
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nvcc -ptx -arch=compute_80 tiny.cu -o "$work/80.ptx"
nvcc -ptx -arch=compute_90a tiny.cu -o "$work/90a.ptx"
nvcc -cubin -arch=sm_80 tiny.cu -o "$work/80.cubin"
fatbinary=$(find "$new" -name fatbinary -type f)
chmod +x "$fatbinary"
"$fatbinary" --create=tiny.group.fatbin -64 -concat -compress-all --ident=tiny.cu \
    --image3=kind=ptx,sm=80,file="$work/80.ptx" --image3=kind=elf,sm=80,file="$work/80.cubin" \
    --image3=kind=ptx,sm=90a,file="$work/90a.ptx"
