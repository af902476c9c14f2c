#!/bin/sh
# `make gpu`: known answers and costs on a machine with an NVIDIA GPU.
#
# usage: [TRITON=1] tests/gpu/run.sh [PREFIX]
#
# PREFIX holds bin/ and lib/nt/ of an installed nt (default: target/release). Results go to $OUT (default target/gpu/).
# Needs g++ and python3; ptxas and nvcc are taken from PATH. With TRITON set, kernels of Triton and torch.compile run too, which
# takes minutes and needs PyTorch.
set -eu
cd "$(dirname "$0")/../.."
prefix=${1:-target/release}
[ -d "$prefix/bin" ] && bin=$prefix/bin || bin=$prefix
OUT=${OUT:-target/gpu}
mkdir -p "$OUT"
export OUT
PATH=$(cd "$bin" && pwd):$PATH
export PATH
# Both are run whatever the first finds.
failed=0
python3 tests/gpu/block_sched.py || failed=1
python3 tests/gpu/real_programs.py || failed=1
python3 tests/gpu/memory_trace.py || failed=1
[ -z "${TRITON:-}" ] || python3 tests/gpu/triton_programs.py || failed=1
exit $failed
