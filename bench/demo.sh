#!/bin/sh
# `make demo`: the main job, start to end, with its result. Every command is shown before it runs.
#
# Eleven kernels run with block_sched in them, and its report: on an NVIDIA GPU where there is one, else on the
# software GPU.
set -eu
cd "$(dirname "$0")/.."
PATH=$PWD/target/release:$PATH
work=target/demo
rm -rf "$work"
mkdir -p "$work"
ptx=testdata/ptx/nvcc/kernels.sm_90.ptx

show() {
    printf '\n$ %s\n' "$*"
    "$@"
}

printf '%s\n' '# A probe: eight lines, one source for every compiler that emits PTX.'
show nt-probec --show block_sched

if ! command -v g++ >/dev/null; then
    printf '%s\n' 'The demonstration needs g++ to build bench/harness.cpp: apt-get install g++' >&2
    exit 1
fi
g++ -O2 -std=c++17 -o "$work/harness" bench/harness.cpp -ldl

if command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q GPU; then
    printf '\n%s\n' "# The harness runs eleven kernels through the driver API and checks their results; unprobed first."
    show "$work/harness" $ptx 20
    show nt-run -p block_sched -o "$work/trace.ntt" -- "$work/harness" $ptx 20
    show nt-map report "$work/trace.ntt"
else
    printf '\n%s\n%s\n' '# No NVIDIA GPU here: the software GPU, on problems of 1/64 of their size. The harness runs eleven kernels through' \
        '# the driver API and checks their results. Cycles are executed instructions; times are no measure of a card.'
    show nt-run --vgpu -p block_sched -o "$work/trace.ntt" -- "$work/harness" $ptx 1 all 3 --warmup 0 | tee "$work/rows.tsv"
    awk -F'\t' 'NR == FNR { if ($7 ~ /^yes/) want[$1] = $5; next }
        $1 in want { all++; same += $4 == want[$1]; next }
        $6 == "ok" { close_by++ }
        END {
            printf "\n# %d of %d results are those of an H200, bit for bit; %d more are close to sums in double.\n", same, all, close_by
            exit !(all == 8 && same == all && close_by == 3)
        }' \
        bench/checksums.tsv "$work/rows.tsv"
    printf '\n%s\n' '# Every warp of every kernel left a record: here what those of mandelbrot say of its blocks.'
    show nt-map report -k =mandelbrot "$work/trace.ntt"
fi
printf '\n%s\n' "# What was made lies in $work/."
