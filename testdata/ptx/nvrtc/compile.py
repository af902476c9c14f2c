"""Compiles CUDA C++ to PTX through an NVRTC of any version; needs no GPU.

    python compile.py LIBRARY_FOLDER SOURCE OUTPUT OPTION…

LIBRARY_FOLDER holds `libnvrtc.so.*` of one version, and the library of builtins that it opens by name.
"""

import ctypes
import pathlib
import sys

# NVRTC has printf and size_t built in, and no standard headers.
HEADERS = {
    b"cstdint": b"typedef unsigned int uint32_t; typedef unsigned long long uint64_t;\n",
    b"cstdio": b"",
}


def compiled(folder, source, options):
    # The library looks for the other one by name alone; one that is loaded already is found.
    for path in sorted(folder.glob("libnvrtc-builtins.so.*")):
        if "alt" not in path.name:
            ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
    nvrtc = ctypes.CDLL(str(next(p for p in sorted(folder.glob("libnvrtc.so.*")) if "alt" not in p.name)))
    program = ctypes.c_void_p()
    strings = ctypes.c_char_p * len(HEADERS)
    nvrtc.nvrtcCreateProgram(
        ctypes.byref(program),
        source.read_bytes(),
        source.name.encode(),
        len(HEADERS),
        strings(*HEADERS.values()),
        strings(*HEADERS.keys()),
    )
    words = [option.encode() for option in options]
    failed = nvrtc.nvrtcCompileProgram(program, len(words), (ctypes.c_char_p * len(words))(*words))
    size = ctypes.c_size_t()
    if failed:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        sys.exit(log.value.decode())
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, ptx)
    # The size counts the NUL at the end.
    return ptx.value


def main():
    folder, source, output, *options = sys.argv[1:]
    pathlib.Path(output).write_bytes(compiled(pathlib.Path(folder), pathlib.Path(source), options))


if __name__ == "__main__":
    main()
