#!/bin/sh
# Fails where a file asks for a symbol of a glibc newer than VERSION.
#
# usage: deps/glibc.sh VERSION FILE…
set -eu
version=$1
shift
for file in "$@"; do
    # Not in the pipe, which would hide that there is no objdump, or nothing in the file for it to read.
    symbols=$(objdump -T "$file")
    newest=$(printf '%s\n' "$symbols" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -uV | tail -n 1)
    if [ -z "$newest" ]; then
        echo "$file asks for no symbol of glibc: is it linked against another library?" >&2
        exit 1
    fi
    if [ "$(printf '%s\n' "$version" "$newest" | sort -V | tail -n 1)" != "$version" ]; then
        echo "$file asks for glibc $newest; $version was promised" >&2
        exit 1
    fi
done
