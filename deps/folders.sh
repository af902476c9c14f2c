#!/bin/sh
# Puts each set of pinned packages of a list into a folder of its own under .tools/, for versions that exclude each other.
#
# usage: deps/folders.sh LIST
#
# LIST has a line a folder, `NAME PACKAGE==VERSION…`; packages come from PyPI without what they depend on. Done once for
# each line: a stamp in the folder holds it.
set -eu
cd "$(dirname "$0")/.."
python=.tools/venv/bin/python
[ -x "$python" ] || python=${PYTHON:-python3}
grep -v '^#' "$1" | while read -r folder packages; do
    [ -n "$folder" ] || continue
    at=.tools/$folder
    if [ -f "$at/.done" ] && [ "$(cat "$at/.done")" = "$packages" ]; then continue; fi
    echo "deps: $packages into $at"
    rm -rf "$at"
    # shellcheck disable=SC2086 # a word each
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$at" $packages
    # Wheels do not say which of their files are programs.
    find "$at" -path '*/bin/*' -type f -exec chmod +x {} +
    echo "$packages" >"$at/.done"
done
