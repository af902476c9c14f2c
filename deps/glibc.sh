#!/bin/sh
# Fails where a file asks for a symbol of a glibc newer than VERSION.
#
# usage: deps/glibc.sh VERSION FILE…
set -eu
version=$1
shift
for file in "$@"; do
    newest=$(objdump -T "$file" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -uV | tail -n 1)
    if [ "$(printf '%s\n' "$version" "$newest" | sort -V | tail -n 1)" != "$version" ]; then
        echo "$file asks for glibc $newest; $version was promised" >&2
        exit 1
    fi
done
