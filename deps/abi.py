#!/usr/bin/env python3
"""The driver's interface as its headers have it, for the functions that the hook hooks or calls: tools/nt-hook/abi.tsv.

usage: deps/abi.py FOLDER... > tools/nt-hook/abi.tsv        (`make abi` fetches the folders and calls it)

cudaTypedefs.h has a type for each version of each function, cuda.h the rest. A function's versions, sorted, are exported
as `name`, `name_v2`, `name_v3` and so on; those for per-thread default streams have the suffix of their type, and
follow the newest version that is not younger. Arguments are told by what a call passes: `p` a pointer or handle, `i` 4
bytes, `l` 8 bytes, `s` a struct. Headers that contradict each other in that stop this script.
"""
import hashlib
import pathlib
import re
import sys

HOOK = pathlib.Path(__file__).resolve().parent.parent / "tools/nt-hook/src"
SOURCES = ["table.rs", "driver.rs"]
FIXED = {"int": "i", "__int32": "i", "__int64": "l", "unsigned": "i", "char": "i", "float": "i", "long long": "l", "size_t": "l", "uint32_t": "i", "uint64_t": "l"}


def text_of(path):
    text = re.sub(r"/\*.*?\*/", " ", path.read_text(errors="replace"), flags=re.S)
    return re.sub(r"//[^\n]*", " ", text).replace("\\\n", " ")


def kinds_of_types(text):
    """Names of types, and what passing one takes."""
    kinds = {}
    for name in re.findall(r"typedef\s+enum\s+\w+\s*\{[^}]*\}\s*(\w+)\s*;", text):
        kinds[name] = "i"
    for name in re.findall(r"typedef\s+[\w\s]*\(\s*CUDA_CB\s*\*\s*(\w+)\s*\)", text):
        kinds[name] = "p"
    known = len(kinds)
    for old, star, new in re.findall(r"typedef\s+([\w\s]+?)\s*(\*?)\s*(\w+)\s*;", text):
        # The first of two is the one without conditions for other platforms.
        kinds.setdefault(new, "p" if star else (old.replace("struct ", "").replace("unsigned ", "").strip() or "int"))
    assert known, "no types"
    return kinds


def kind(argument, kinds):
    argument = re.sub(r"\bconst\b|\bstruct\b|\benum\b", " ", argument)
    if "*" in argument or "[" in argument:
        return "p"
    words = argument.split()
    signs = [word for word in words if word in ("unsigned", "signed")]
    words = [word for word in words if word not in signs]
    # The last word is the argument's name, unless it is all there is; `unsigned n` is an int.
    name = " ".join(words[:-1]) or ("int" if signs else words[0])
    for _ in range(9):
        if name in FIXED:
            return FIXED[name]
        if name in ("p", "i", "l"):
            return name
        name = kinds.get(name, "")
    return "s"


def shown(argument):
    """The type without the argument's name."""
    argument = " ".join(argument.split())
    match = re.fullmatch(r"(.*[\s*])(\w+)(\[\d*\])?", argument)
    return (match[1].strip() + ("*" if match[3] else "")) if match else argument


def arguments_of(text):
    return [] if text.strip() in ("", "void") else text.split(",")


def read(folder):
    """(name, version, suffix) to arguments, and the symbol that cuda.h gives each name."""
    found, macros, hashes = {}, {}, []
    paths = [next(pathlib.Path(folder).rglob(name)) for name in ("cuda.h", "cudaTypedefs.h")]
    header, typedefs = map(text_of, paths)
    kinds = kinds_of_types(header) | {"CUdeviceptr": "l", "CUdeviceptr_v2": "l", "CUdeviceptr_v1": "i"}
    typed = r"typedef\s+CUresult\s+\(CUDAAPI\s+\*PFN_(cu\w+?)_v(\d+)(_pt[sd][sz])?\)\(([^;]*)\)\s*;"
    for name, version, suffix, arguments in re.findall(typed, typedefs):
        found[name, int(version), suffix] = [(kind(a, kinds), shown(a)) for a in arguments_of(arguments)]
    bases = {name for name, _, _ in found}
    for name, arguments in re.findall(r"^\s*CUresult\s+CUDAAPI\s+(cu\w+)\(([^;{]*)\)\s*;", header, flags=re.M):
        if re.sub(r"(_v\d+)?(_pt[sd][sz])?$", "", name) not in bases:
            found[name, 0, ""] = [(kind(a, kinds), shown(a)) for a in arguments_of(arguments)]
    for name, symbol in re.findall(r"#\s*define\s+(cu\w+)\s+(?:__CUDA_API_PT[SD][SZ]\()?(cu\w+?)\)?\s*$", header, flags=re.M):
        macros.setdefault(name, symbol)
    hashes = [hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in paths]
    return found, macros, hashes


def symbols(versions):
    """(version, suffix) of one function to the exported symbol's ending."""
    plain = sorted(version for version, suffix in versions if not suffix)
    endings = {}
    for version, suffix in versions:
        number = len([v for v in plain if v <= version])
        endings[version, suffix] = ("" if number < 2 else f"_v{number}") + suffix
    return endings


def main(folders):
    sources = "\n".join((HOOK / name).read_text() for name in SOURCES)
    wanted = {re.sub(r"(_v\d+)?(_pt[sd][sz])?$", "", name) for name in re.findall(r"\bcu[A-Z]\w+", sources)}
    merged, where, macros = {}, {}, {}
    print("# The CUDA driver's functions that the hook hooks or calls, in all their versions. Made by deps/abi.py; not to be edited.")
    for folder in folders:
        release = pathlib.Path(folder).name.removeprefix("cuda-")
        found, macros_here, hashes = read(folder)
        print(f"# {release}: cuda.h {hashes[0]}, cudaTypedefs.h {hashes[1]} (SHA-256, the first 64 bits)")
        macros |= macros_here
        for key, arguments in found.items():
            before = merged.setdefault(key, arguments)
            if [k for k, _ in before] != [k for k, _ in arguments]:
                raise SystemExit(f"abi: {key} has other arguments in {release}")
            where.setdefault(key, []).append(release)
    rows = []
    for base in sorted({name for name, _, _ in merged} & wanted):
        versions = [(version, suffix) for name, version, suffix in merged if name == base]
        endings = symbols(versions)
        # What a program calls that asks for nothing special: one of them, not always the newest.
        if base in macros and macros[base] not in [base + ending for ending in endings.values()]:
            raise SystemExit(f"abi: cuda.h has {macros[base]} for {base}, which is none of its versions")
        for version, suffix in versions:
            arguments = merged[base, version, suffix]
            since = f"{version // 1000}.{version % 1000 // 10}" if version else "-"
            kinds = "".join(k for k, _ in arguments) or "-"
            types = ", ".join(t for _, t in arguments) or "-"
            rows.append((base + endings[version, suffix], since, " ".join(where[base, version, suffix]), kinds, types))
    print("symbol\tsince\theaders\tkinds\targuments")
    for row in sorted(rows):
        print("\t".join(row))
    missing = wanted - {name for name, _, _ in merged}
    if missing:
        print("abi: in no header:", " ".join(sorted(missing)), file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
