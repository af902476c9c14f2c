#!/bin/sh
# Puts the pinned external tools into .tools/ of this tree, and wrappers for them into .tools/bin/.
#
# usage: deps/install.sh [requirements.txt]
#
# A venv first; where Python lacks the module for that (Debian without python3-venv), `pip --target`; where there is
# no pip either, the exact command that would help is printed. Never sudo, nothing outside of the tree.
# Done once for each list: a stamp holds the list's checksum.
set -eu
cd "$(dirname "$0")/.."
list=${1:-deps/requirements.txt}
stamp=.tools/$(basename "$list").done
sum=$(cksum <"$list")
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$sum" ]; then exit 0; fi

python=${PYTHON:-python3}
if ! command -v "$python" >/dev/null; then
    echo "deps: python3 is missing. On Debian or Ubuntu: apt-get install python3 python3-venv" >&2
    exit 1
fi
mkdir -p .tools
echo "deps: installing $list into .tools/ (pinned; some 0.4 GB)"
if [ -x .tools/venv/bin/pip ] || { "$python" -m venv .tools/venv >/dev/null 2>&1 && [ -x .tools/venv/bin/pip ]; }; then
    .tools/venv/bin/pip install --quiet --disable-pip-version-check -r "$list"
    site=$(.tools/venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
elif rm -rf .tools/venv && "$python" -m pip --version >/dev/null 2>&1; then
    "$python" -m pip install --quiet --disable-pip-version-check --target .tools/site --upgrade -r "$list"
    site=$PWD/.tools/site
else
    echo "deps: Python has neither venv nor pip. On Debian or Ubuntu: apt-get install python3-venv" >&2
    exit 1
fi

# nvcc finds its parts beside itself, so it is called by its own path and not through a link.
mkdir -p .tools/bin
for tool in nvcc ptxas fatbinary nvlink cuobjdump nvdisasm; do
    found=$(find "$site/nvidia" -path "*/bin/$tool" -type f | head -n 1)
    [ -n "$found" ] || continue
    chmod +x "$found" "$(dirname "$found")"/* 2>/dev/null || true
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$found" >".tools/bin/$tool"
    chmod +x ".tools/bin/$tool"
done
echo "$sum" >"$stamp"
