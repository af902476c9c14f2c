#!/bin/sh
# `make demo`: the main job, start to end, with its result. Every command is shown before it runs.
#
# With an NVIDIA GPU: eleven kernels run with block_sched in them, and its report. Without one: the woven kernel, what
# it costs by the vendor's assembler, and the layout of its map.
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

if command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q GPU && command -v g++ >/dev/null; then
    g++ -O2 -std=c++17 -o "$work/harness" bench/harness.cpp -ldl
    printf '\n%s\n' "# The harness runs eleven kernels through the driver API and checks their results; unprobed first."
    show "$work/harness" $ptx 20
    show nt-run -p block_sched -o "$work/trace.ntt" -- "$work/harness" $ptx 20
    show nt-map report "$work/trace.ntt"
else
    printf '\n%s\n' '# No NVIDIA GPU here, so the demonstration ends with what a GPU would be given.'
    printf '\n%s\n' '$ nt-inject -p block_sched -k =vector_add --manifest vector_add.ntm kernels.ptx   # the kernel, woven'
    nt-inject -p block_sched -k =vector_add --manifest "$work/vector_add.ntm" $ptx >"$work/vector_add.ptx"
    sed -n '/entry vector_add/,/^}/p' "$work/vector_add.ptx"
    printf '\n%s\n' '# What it costs, kernel by kernel, by the assembler (registers: original -> woven).'
    show nt-inject -p block_sched -o "$work/kernels.ptx" --manifest "$work/kernels.ntm" $ptx
    python3 - "$work/kernels.ntm" <<'PY'
import json, sys
manifest = json.load(open(sys.argv[1]))
for kernel in manifest["kernels"]:
    before, after = kernel.get("before") or {}, kernel.get("after") or {}
    print(f'{kernel["name"]:<18} {before.get("registers", "?")} -> {after.get("registers", "?")} registers')
layout = manifest["kernels"][0]["maps"][0]
print(f'\n# The map {layout["name"]}: a record a {layout["unit"]}, {layout["stride"]} bytes')
for field in layout["fields"]:
    print(f'  {field["name"]:<8} {field["type"]:<4} at byte {field["offset"]}')
PY
fi
printf '\n%s\n' "# What was made lies in $work/."
