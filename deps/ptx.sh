#!/bin/sh
# All PTX that the libraries of deps/wheels.sh hold, by nt-extract into .tools/wheels-ptx/. Done once for the wheels' list.
set -eu
cd "$(dirname "$0")/.."
deps/wheels.sh
out=.tools/wheels-ptx
if [ -f $out.done ] && cmp -s .tools/wheels.done $out.done; then exit 0; fi
rm -rf $out
find .tools/wheels -name '*.so*' -type f | LC_ALL=C sort | while read -r library; do
    name=$(echo "${library#.tools/wheels/}" | tr / .)
    # 4: it holds none.
    target/release/nt-extract -q --ptx -o "$out/$name" "$library" 2>/dev/null || [ $? = 4 ]
done
cp .tools/wheels.done $out.done
