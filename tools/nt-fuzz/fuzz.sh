#!/bin/sh
# Runs libFuzzer on one law for some seconds, from the kept inputs and the tests' files on.
#
# usage: tools/nt-fuzz/fuzz.sh TARGET [SECONDS]      or        make fuzz TARGET=ptx TIME=600
#
# Wants a nightly compiler and cargo-fuzz, which it installs into .tools/cargo. What the fuzzer finds worth keeping goes
# to .tools/fuzz/TARGET; an input that breaks the law to .tools/fuzz/artifacts/TARGET, and its path is printed. With
# KEEP=1 the smallest inputs that reach something new are put into testdata/fuzz/TARGET.
set -eu
cd "$(dirname "$0")/../.."
target=$1 seconds=${2:-60} version=0.13.2
[ -x .tools/cargo/bin/cargo-fuzz ] || cargo install --quiet --locked --root .tools/cargo cargo-fuzz@$version
export PATH="$PWD/.tools/cargo/bin:$PATH" CARGO_TARGET_DIR="$PWD/target/fuzz"

own=.tools/fuzz/$target kept=testdata/fuzz/$target artifacts=.tools/fuzz/artifacts/$target
mkdir -p "$own" "$kept" "$artifacts"
# What the readers' own tests hold is a start.
seeds=.tools/fuzz/seeds/$target
rm -rf "$seeds"
mkdir -p "$seeds"
case $target in
ptx | weave) cp lang/nt-ptx/tests/*/*.ptx "$seeds" ;;
probe) cp lang/nt-probe/probes/*.nt "$seeds" ;;
ir) cp lang/nt-weave/tests/probes/*.ir "$seeds" ;;
object) cp testdata/fatbin/*.fatbin "$seeds" ;;
verify)
    for file in lang/nt-weave/tests/golden/*.ptx; do
        { cat "$file" && printf '\0' && cat "${file%.ptx}.woven"; } >"$seeds/$(basename "$file")"
    done
    ;;
wire)
    for file in testdata/wire/*.hex; do
        python3 -c 'import re, sys
sys.stdout.buffer.write(bytes.fromhex(re.sub("#.*", "", sys.stdin.read())))' <"$file" >"$seeds/$(basename "$file")"
    done
    ;;
esac
dictionary=
case $target in ptx | weave | verify) dictionary=-dict=testdata/fuzz/ptx.dict ;; esac

fuzz() { # MODE FOLDERS… -- OPTIONS…
    cargo +nightly fuzz run --fuzz-dir tools/nt-fuzz --features libfuzzer "fuzz_$target" "$@"
}
fuzz "$own" "$kept" "$seeds" -- -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=4096 \
    -artifact_prefix="$artifacts/" -print_final_stats=1 $dictionary
if [ "${KEEP:-}" = 1 ]; then
    # Of what reaches something new, 60 small ones of all sizes; those with names of their own stay.
    fuzz "$kept" "$own" -- -merge=1 -max_len=600
    find "$kept" -type f -regextype egrep -regex '.*/[0-9a-f]{40}' -printf '%s %p\n' | sort -n | cut -d' ' -f2- >"$own.all"
    awk -v all="$(wc -l <"$own.all")" 'int((NR - 1) * 60 / all) == int(NR * 60 / all)' "$own.all" | xargs -r rm
    rm "$own.all"
fi
