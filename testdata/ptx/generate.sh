#!/bin/sh
# Makes the PTX of this folder anew from our own sources, through every compiler of deps/corpora.txt and rustc.
#
# usage: make corpora
#
# A folder a compiler; README.md of testdata says which is which. The results are committed, so tests need none of them.
# Sources are compiled in a folder of one fixed name, since debug data holds it; no path of this machine is left in the
# results, which the end of this script checks.
set -eu
cd "$(dirname "$0")/../.."
top=$PWD
tools=$top/.tools
python=$tools/venv/bin/python
[ -x "$python" ] || python=${PYTHON:-python3}
out=$top/testdata/ptx
work=/tmp/nt-corpora
rm -rf "$work"
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT
cp bench/kernels.cu testdata/cu/*.cu "$work"
cp testdata/ptx/clang/kernels.cu "$work/clang.cu"
cp testdata/ptx/rustc/kernels.rs testdata/ptx/zig/kernels.zig testdata/ptx/iree/kernels.mlir "$work"
for compiler in triton numba warp; do
    mkdir "$work/$compiler"
    cp "testdata/ptx/$compiler/kernels.py" "$work/$compiler"
done
cd "$work"

# Where compiler and headers stand on the machine that ran this is nobody's business.
keep() { # FILE FOLDER
    sed -i -E 's|(\.file[[:space:]]+[0-9]+ ")[^"]*/|\1|' "$1"
    mkdir -p "$out/$2"
    mv "$1" "$out/$2/$(basename "$1")"
}

# NVIDIA's compiler: the newest whose PTX our GPU's driver takes, and the newest.
nvcc=$tools/bin/nvcc
with_nvcc() { # FOLDER SOURCE NAME OPTIONS…
    folder=$1 source=$2 name=$3
    shift 3
    "$nvcc" -ptx -std=c++17 "$@" "$source" -o "$name"
    keep "$name" "$folder"
}
for arch in 80 90 100; do
    for source in kernels features; do
        with_nvcc nvcc $source.cu $source.sm_$arch.ptx -O3 -arch=compute_$arch
    done
done
with_nvcc nvcc kernels.cu kernels.lineinfo.sm_90.ptx -O3 -lineinfo -arch=compute_90
with_nvcc nvcc kernels.cu kernels.debug.sm_90.ptx -G -O0 -arch=compute_90
with_nvcc nvcc features.cu features.debug.sm_90.ptx -G -O0 -arch=compute_90
with_nvcc nvcc features.cu features.rdc.sm_90.ptx -O3 -rdc=true -arch=compute_90
nvcc=$(find "$tools/nvcc-13.5" -name nvcc -type f)
with_nvcc nvcc-13.5 kernels.cu kernels.sm_120.ptx -O3 -arch=compute_120
with_nvcc nvcc-13.5 features.cu features.rdc_lineinfo.sm_103a.ptx -O3 -rdc=true -lineinfo -arch=compute_103a
with_nvcc nvcc-13.5 features.cu features.debug.sm_100f.ptx -G -O0 -arch=compute_100f
# -Xcicc: without optimisation and without debug data.
with_nvcc nvcc-13.5 features.cu features.O0.sm_75.ptx -Xcicc -O0 -arch=compute_75

# Its compiler at run time, which PyPI has of old versions too.
with_nvrtc() { # VERSION SOURCE NAME OPTIONS…
    library=$(dirname "$(find "$tools/nvrtc-$1" -name 'libnvrtc.so.*' | head -n 1)") source=$2 name=$3
    shift 3
    "$python" "$out/nvrtc/compile.py" "$library" "$source" "$name" -std=c++17 "$@"
    keep "$name" nvrtc
}
with_nvrtc 11.8 features.cu features.11_8.sm_52.ptx -arch=compute_52
with_nvrtc 11.8 kernels.cu kernels.11_8.lineinfo.sm_80.ptx -arch=compute_80 -lineinfo
with_nvrtc 11.8 features.cu features.11_8.debug.sm_90.ptx -arch=compute_90 -G
with_nvrtc 12.4 features.cu features.12_4.rdc.sm_70.ptx -arch=compute_70 -rdc=true
with_nvrtc 12.4 kernels.cu kernels.12_4.sm_90.ptx -arch=compute_90
with_nvrtc 12.9 features.cu features.12_9.debug.sm_90a.ptx -arch=compute_90a -G
with_nvrtc 12.9 features.cu features.12_9.sm_103.ptx -arch=compute_103
with_nvrtc 13.5 features.cu features.13_5.lineinfo.sm_121.ptx -arch=compute_121 -lineinfo

# clang, which Zig's wheel holds. It has to be told a PTX version.
zig=$(find "$tools/zig" -name zig -type f)
with_clang() { # NAME ARCH PTX OPTIONS…
    name=$1 arch=$2 version=$3
    shift 3
    "$zig" clang -x cuda -std=c++20 --cuda-gpu-arch="$arch" --cuda-feature="+ptx$version" --cuda-device-only \
        -nocudainc -nocudalib -S "$@" clang.cu -o "$name"
    keep "$name" clang
}
with_clang kernels.sm_80.ptx sm_80 70 -O2
with_clang kernels.O0.sm_90.ptx sm_90 83 -O0
with_clang kernels.debug.sm_100a.ptx sm_100a 88 -O1 -g
"$zig" build-obj -target nvptx64-cuda-none -mcpu=sm_80 -fno-emit-bin -femit-asm=kernels.sm_80.ptx kernels.zig \
    --global-cache-dir "$work/zig" --cache-dir "$work/zig"
keep kernels.sm_80.ptx zig
RUSTC_BOOTSTRAP=1 rustc --target nvptx64-nvidia-cuda -C target-cpu=sm_80 -O --emit asm kernels.rs -o kernels.sm_80.ptx
keep kernels.sm_80.ptx rustc

for version in 3.6 3.9; do
    folder=triton-$version
    [ $version = 3.6 ] && folder=triton
    mkdir -p made "$out/$folder"
    # 3.9 warns unless it is told to fuse multiplications and additions, which it would do anyway.
    PYTHONPATH=$tools/triton-$version TRITON_CACHE_DIR=$work/cache-$version TRITON_DEFAULT_FP_FUSION=1 \
        "$python" triton/kernels.py made
    for file in made/*.ptx; do keep "$file" $folder; done
done
LD_LIBRARY_PATH=$tools/numba/nvidia/cu13/lib CUDA_HOME=$tools/numba/nvidia/cu13 PYTHONPATH=$tools/numba \
    "$python" numba/kernels.py made
for file in made/*.ptx; do keep "$file" numba; done
PYTHONPATH=$tools/warp "$python" warp/kernels.py made >/dev/null
for file in made/*.ptx; do keep "$file" warp; done
PYTHONPATH=$tools/iree "$tools/iree/bin/iree-compile" --iree-hal-target-backends=cuda --iree-cuda-target=sm_80 \
    --iree-hal-dump-executable-binaries-to=made kernels.mlir -o module.vmfb
mv made/*.ptx kernels.sm_80.ptx
keep kernels.sm_80.ptx iree

# Paths stand in debug data as bytes, one or many a line.
"$python" - "$out" "$top" "$HOME" <<'END'
import pathlib, re, sys
out, *homes = sys.argv[1:]
for path in sorted(pathlib.Path(out).rglob("*.ptx")):
    text = path.read_text()
    code = re.sub(r"//.*", "", text)
    lists = re.findall(r"\.b8 ([0-9, ]+)", code)
    data = bytes(int(byte) & 255 for byte in ",".join(lists).replace(" ", "").split(",") if byte)
    for home in homes:
        if home + "/" in text or home.encode() + b"/" in data:
            sys.exit(f"{path} holds {home}")
END
