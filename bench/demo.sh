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
harness=$work/harness

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
# A program of the driver API with its kernels linked in, as nvcc packs them: machine code and compressed PTX.
nvcc -fatbin -O3 -std=c++17 -gencode 'arch=compute_90,code=[sm_90,compute_90]' -o "$work/kernels.fatbin" bench/kernels.cu
cat >"$work/fatbin.S" <<ASM
.section .nv_fatbin, "a"
.globl nt_fatbin
.balign 8
nt_fatbin: .incbin "$work/kernels.fatbin"
.section .note.GNU-stack, "", @progbits
ASM
g++ -O2 -std=c++17 -o "$harness" bench/harness.cpp "$work/fatbin.S" -ldl
printf '\n%s\n' '# A program whose kernels were linked in; what is in it, and what a kernel looks like with the probe.'
show nt-extract -l "$harness"
printf '\n$ nt-extract --ptx -o - %s | nt-inject -p block_sched -k =vector_add - | sed -n "/entry vector_add/,/^}/p"\n' "$harness"
nt-extract --ptx -o - "$harness" | nt-inject -p block_sched -k =vector_add - | sed -n '/entry vector_add/,/^}/p'

if command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q GPU; then
    printf '\n%s\n' "# The harness runs eleven kernels through the driver API and checks their results; unprobed first."
    show "$harness" embedded 20
    show nt-run -p block_sched -o "$work/trace.ntt" -- "$harness" embedded 20
    show nt-map report "$work/trace.ntt"
    printf '\n%s\n' '# Another probe, the same program: the bytes that each kernel asks of global memory.'
    show nt-run -p gmem_bytes -o "$work/bytes.ntt" -- "$harness" embedded 1 all --warmup 0
else
    printf '\n%s\n%s\n' '# No NVIDIA GPU here: the software GPU, on problems of 1/64 of their size. The harness runs eleven kernels through' \
        '# the driver API and checks their results. Cycles are executed instructions; times are no measure of a card.'
    show nt-run --vgpu -p block_sched -o "$work/trace.ntt" -- "$harness" embedded 1 all 3 --warmup 0 | tee "$work/rows.tsv"
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
    printf '\n%s\n' '# Another probe, the same program: the bytes that each kernel asks of global memory.'
    show nt-run --vgpu -p gmem_bytes -o "$work/bytes.ntt" -- "$harness" embedded 1 all 4 --warmup 0
fi
printf '\n%s\n' "# What was made lies in $work/."
