#!/bin/sh
# Puts some public wheels with device code into .tools/wheels/, unpacked: what `bench/extract.sh` and `make wheels` read.
#
# 120 MB to fetch, from PyPI, pinned; not committed, and no test needs them. Done once.
#   torchvision    cubins raw, PTX zstd; a bundled nvJPEG whose cubins are compressed too
#   torchaudio     the smallest
#   xformers       PTX LZ4
#   bitsandbytes   seven libraries, CUDA 11.8 to 13.2, with relocatable code (`__nv_relfatbin`)
#   ctranslate2    34 modules of PTX, 540 kernels
#   jax            plugins for CUDA 12 and 13; nvJPEG: the newest PTX
set -eu
cd "$(dirname "$0")/.."
wheels="torchvision==0.29.2 torchaudio==2.11.1 xformers==0.0.35 bitsandbytes==0.50.2 \
    ctranslate2==4.8.5 jax-cuda12-plugin==0.10.2 jax-cuda13-plugin==0.10.2 nvidia-nvjpeg==13.3.2.43"
stamp=.tools/wheels.done
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wheels" ]; then exit 0; fi

python=${PYTHON:-python3}
rm -rf .tools/wheels
mkdir -p .tools/wheels
# shellcheck disable=SC2086 # a word each
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: -d .tools/wheels $wheels
for wheel in .tools/wheels/*.whl; do
    name=$(basename "$wheel")
    "$python" -m zipfile -e "$wheel" ".tools/wheels/${name%%-*}"
    rm "$wheel"
done
echo "$wheels" >"$stamp"
