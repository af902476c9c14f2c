#!/bin/sh
# nt-extract against NVIDIA's cuobjdump: the same images by hash, and how long each takes to list them.
#
# usage: bench/extract.sh [FILE...]
#
# Without FILE: all libraries of deps/wheels.sh that hold device code. Images are compared as sets of SHA-256 sums;
# NULs at the end of cuobjdump's PTX do not count. Times are the best of five, in ms, files in the page cache:
# `nt-extract -l`, which also decompresses everything and names all kernels, against `cuobjdump -all -lelf` and
# `-lptx` together, which do neither. Ends with 1 if any set differs.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
PATH=$root/.tools/bin:$PATH
extract=${NT_EXTRACT:-$root/target/release/nt-extract}
[ -x "$extract" ] || cargo build --release --quiet -p nt-extract
command -v cuobjdump >/dev/null || { echo "extract.sh: no cuobjdump; run \`make deps\`" >&2; exit 2; }
if [ $# -eq 0 ]; then
    deps/wheels.sh
    # shellcheck disable=SC2046 # names without spaces
    set -- $(find .tools/wheels -name '*.so*' -type f | LC_ALL=C sort)
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The best time of five runs of "$@", in ms.
best() {
    least=
    for _ in 1 2 3 4 5; do
        start=$(date +%s%N)
        "$@" >/dev/null 2>&1 || true
        took=$(($(date +%s%N) - start))
        if [ -z "$least" ] || [ "$took" -lt "$least" ]; then least=$took; fi
    done
    awk "BEGIN { printf \"%.1f\", $least / 1e6 }"
}
list_both() { cuobjdump -all -lelf "$1"; cuobjdump -all -lptx "$1"; }
# SHA-256 sums of all files of folder $1 that end in $2, without NULs at their ends if that is ptx.
sums() {
    find "$1" -name "*.$2" -type f | while read -r file; do
        if [ "$2" = ptx ]; then tr -d '\000' <"$file" | sha256sum; else sha256sum <"$file"; fi
    done | LC_ALL=C sort
}

different=0
printf 'file\tMB\tPTX\tELF\tsame PTX\tsame ELF\tnt-extract -l\tcuobjdump -lelf -lptx\n'
for file in "$@"; do
    file=$(realpath "$file")
    "$extract" -q -l "$file" >"$work/list" 2>/dev/null || continue
    rm -rf "$work/ours" "$work/theirs"
    mkdir -p "$work/ours" "$work/theirs"
    "$extract" -q --ptx --elf "$file" -o "$work/ours" || true
    judged=yes
    (cd "$work/theirs" && cuobjdump -all -lelf "$file") >/dev/null 2>&1 || judged=no
    (cd "$work/theirs" && { cuobjdump -all -xptx all "$file"; cuobjdump -all -xelf all "$file"; }) >/dev/null 2>&1 || true
    for kind in ptx cubin; do
        sums "$work/ours" $kind >"$work/ours.$kind"
        sums "$work/theirs" $kind | sort -u >"$work/theirs.$kind"
    done
    # cuobjdump may write one image under two names, or two images of one name over each other: sets are compared.
    same_ptx=yes; same_elf=yes
    sort -u "$work/ours.ptx" | cmp -s - "$work/theirs.ptx" || same_ptx=NO
    sort -u "$work/ours.cubin" | cmp -s - "$work/theirs.cubin" || same_elf=NO
    # 13.5 refuses whole files for one cubin of an architecture that it no longer knows.
    if [ $judged = no ]; then same_ptx="cuobjdump fails"; same_elf="cuobjdump fails"
    elif [ $same_ptx$same_elf != yesyes ]; then different=1; fi
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$(basename "$file")" \
        "$(awk "BEGIN { printf \"%.1f\", $(stat -c %s "$file") / 1e6 }")" \
        "$(wc -l <"$work/ours.ptx")" "$(wc -l <"$work/ours.cubin")" "$same_ptx" "$same_elf" \
        "$(best "$extract" -l "$file")" "$(best list_both "$file")"
done
exit $different
