"""What the scripts for a real GPU share: programs run and checked, the benchmark's sizes, costs of a probe.

Each script checks against something that is not nt, collects what is wrong in a list, and writes $OUT/NAME.md and .json.
"""

import csv
import ctypes
import glob
import io
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

import pairs

OUT = pathlib.Path(os.environ.get("OUT", "target/gpu"))
PTX = "testdata/ptx/nvcc/kernels.sm_90.ptx"
# Programs run above the software GPU.
SOFTWARE = bool(os.environ.get("SOFTWARE"))
ROUNDS = int(os.environ.get("ROUNDS", "7"))
REPEATS = 20
KERNELS = [
    "fill_blocks", "fill_persistent", "vector_add", "reduce_sum", "transpose", "matmul_tiled",
    "softmax_rows", "attention_online", "mandelbrot", "histogram", "spmv_csr",
]


def grids(sms):
    """(blocks, threads a block) of the harness's launches at full size (bench/harness.cpp, table `jobs`)."""
    return {
        "fill_blocks": ((1 << 21) // 128, 128), "fill_persistent": (sms * 4, 512), "vector_add": ((1 << 24) // 256, 256),
        "reduce_sum": (sms * 8, 256), "transpose": (64 * 64, 256), "matmul_tiled": (64 * 64, 1024),
        "softmax_rows": ((1 << 24) // 4096, 256), "attention_online": (16384 // 128, 128),
        "mandelbrot": (128 * 128, 256), "histogram": (sms * 8, 256), "spmv_csr": ((1 << 17) * 32 // 256, 256),
    }


def run(*words, code=0, **options):
    """Runs a program, which has to end with `code`."""
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, **options)
    if done.returncode != code:
        sys.exit(f"{' '.join(map(str, words))}: exit {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done


def table(text):
    """A harness's rows by kernel."""
    return {row["kernel"]: row for row in csv.DictReader(text.splitlines(), delimiter="\t")}


def gpu():
    """Name, driver and highest clock in MHz of the first GPU, and how many multiprocessors it has."""
    info = run("nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm", "--format=csv,noheader,nounits").stdout.strip()
    name, driver, clock = [word.strip() for word in info.splitlines()[0].split(",")]
    cuda, sms = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    for code in (cuda.cuInit(0), cuda.cuDeviceGetAttribute(ctypes.byref(sms), 16, 0)):
        if code:
            sys.exit(f"the driver answers {code}")
    return {"gpu": name, "driver": driver, "max_sm_mhz": float(clock), "sms": sms.value}


def harness(work):
    """bench/harness.cpp, built."""
    built = work / "harness"
    run("g++", "-O2", "-std=c++17", "-o", built, "bench/harness.cpp", "-ldl")
    return built


def nvcc(source, built, *options):
    """Builds a program of the CUDA runtime, which is linked into it. Wheels keep the library where nvcc does not look."""
    found = shutil.which("nvcc")
    if not found:
        return None
    root = pathlib.Path(os.path.realpath(found)).parent.parent
    places = [*root.glob("lib*"), *root.glob("targets/*/lib"), *map(pathlib.Path, glob.glob(".tools/venv/lib/python*/site-packages/nvidia/cu*/lib"))]
    libraries = [f"-L{place}" for place in places if (place / "libcudart_static.a").exists()]
    run(found, "-O2", "-std=c++17", *libraries, *options, "-o", built, source)
    return built


def nt_run(probe, trace, *command, options=()):
    """The command under nt-run."""
    return run("nt-run", *(["--vgpu"] if SOFTWARE else []), "-p", probe, "-o", trace, *options, "--", *command)


def dump(trace, *options):
    """All records and cells of a trace, as dictionaries."""
    done = run("nt-map", "dump", "--format", "csv", *options, trace)
    return csv.DictReader(io.StringIO(done.stdout))


def check_results(work, probe, built, trace, name, failures, options=()):
    """Each kernel's output file with probes and without; and checksums against those of bench/checksums.tsv."""
    for folder in ("native", probe):
        (work / folder).mkdir(exist_ok=True)
    if not any((work / "native").iterdir()):
        run(built, PTX, 1, "all", 0, "--warmup", 0, "--dump", work / "native")
    done = nt_run(probe, trace, built, PTX, 1, "all", 0, "--warmup", 0, "--dump", work / probe, options=options)
    (OUT / f"{probe}.once.txt").write_text(done.stderr)
    probed = table(done.stdout)
    lines = (line for line in open("bench/checksums.tsv") if not line.startswith("#"))
    sums = {row["kernel"]: row for row in csv.DictReader(lines, delimiter="\t")}
    equal = {}
    for kernel in KERNELS:
        equal[kernel] = (work / "native" / f"{kernel}.bin").read_bytes() == (work / probe / f"{kernel}.bin").read_bytes()
        # reduce_sum adds floats in any order; the harness's tolerance checks it.
        if not equal[kernel] and kernel != "reduce_sum":
            failures.append(f"{probe}, {kernel}: output differs with the probe")
        if probed[kernel]["close"] == "bad":
            failures.append(f"{probe}, {kernel}: outside the harness's tolerance")
        if kernel in sums and "H200" in name and probed[kernel]["checksum"] != sums[kernel]["shrink 0"]:
            failures.append(f"{probe}, {kernel}: checksum {probed[kernel]['checksum']}, expected {sums[kernel]['shrink 0']}")
    return equal


def woven(work, probe):
    """Texts and manifests of the kernels with a probe in them, as nt-run weaves them: each for what holds of its launch.

    And the registers of each kernel, before and after.
    """
    groups, texts, registers = {}, [], {}
    for kernel, shape in pairs.shapes(gpu()["sms"]).items():
        groups.setdefault(pairs.conditions(*shape), []).append(kernel)
    for number, (holds, kernels) in enumerate(groups.items()):
        text, manifest = work / f"{probe}.{number}.ptx", work / f"{probe}.{number}.ntm"
        assume = ["--assume", holds] if holds else []
        run("nt-inject", "-p", probe, "-k", f"^({'|'.join(kernels)})$", *assume, "-o", text, "--manifest", manifest, PTX)
        texts += [text, manifest]
        for kernel in json.loads(manifest.read_text())["kernels"]:
            if kernel.get("before") and kernel.get("after"):
                registers[kernel["name"]] = [kernel["before"]["registers"], kernel["after"]["registers"]]
    return texts, registers


def costs(work, probe, built, options=(), repeats=REPEATS):
    """What a probe costs, a kernel; and the means over all of them.

    Rounds in turn, so that a drift of the machine meets both. The program's events include ours, and the collector's copies
    run beside; the kernel alone is measured by pairs.py. Registers are the assembler's here.
    """
    columns = {"native": [], "probed": []}
    for _ in range(ROUNDS):
        columns["native"].append(table(run(built, PTX, repeats, "all", 0, "--first-mib").stdout))
        done = nt_run(probe, work / f"{probe}.many.ntt", built, PTX, repeats, "all", 0, "--first-mib", options=options)
        columns["probed"].append(table(done.stdout))
    (OUT / f"{probe}.many.txt").write_text(done.stderr)
    kernels, product = {kernel: {} for kernel in KERNELS}, 1.0
    for kernel, entry in kernels.items():
        for way, rounds in columns.items():
            for column in ("device_us", "host_us"):
                entry[f"{way}_{column}"] = statistics.median(float(row[kernel][column]) for row in rounds)
        rounds = zip(columns["native"], columns["probed"])
        ratios = [float(p[kernel]["device_us"]) / float(n[kernel]["device_us"]) for n, p in rounds]
        entry["slowdown"], entry["slowdown_range"] = statistics.median(ratios), [min(ratios), max(ratios)]
        product *= entry["slowdown"]
    texts, registers = woven(work, probe)
    measured = run(sys.executable, "tests/gpu/pairs.py", PTX, *texts).stdout
    (OUT / f"{probe}.pairs.tsv").write_text(measured)
    alone = {row.split("\t")[0]: row.split("\t") for row in measured.splitlines()[1:]}
    for kernel, entry in kernels.items():
        if kernel in alone:
            entry["alone"], entry["noise"] = alone[kernel][3:5]
        if kernel in registers:
            entry["registers"] = registers[kernel]
    added = statistics.mean(entry["probed_host_us"] - entry["native_host_us"] for entry in kernels.values())
    return kernels, {"geomean": product ** (1 / len(KERNELS)), "alone": alone["geometric mean"][3], "added_host_us": added}


def cost_columns(entry):
    """The cells of a row: native, probed, ratio, alone, registers, host."""
    low, high = entry["slowdown_range"]
    return [
        f"{entry['native_device_us']:.1f}", f"{entry['probed_device_us']:.1f}", f"{entry['slowdown']:.3f} ({low:.3f}–{high:.3f})",
        f"{entry.get('alone', '?')} ({entry.get('noise', '?')})", " → ".join(map(str, entry.get("registers", ["?"]))),
        f"{entry['native_host_us']:.1f} → {entry['probed_host_us']:.1f}",
    ]


COST_HEAD = ["native µs", "probed µs", "ratio (range)", "kernel alone (noise)", "registers", "host µs a launch"]


def means_line(means):
    """What the rows come to."""
    return (
        f"Geometric means: as the program sees it {means['geomean']:.3f}, the kernel alone {means['alone']}; "
        f"host time added a launch {means['added_host_us']:.2f} µs (mean)."
    )


def rows(head, body):
    """A table in Markdown."""
    line = lambda cells: f"| {' | '.join(map(str, cells))} |"
    return [line(head), "|" + "---|" * len(head), *map(line, body)]


def finish(name, result, lines, failures):
    """Writes and prints the report, and ends with 1 if anything is wrong."""
    result["failures"] = failures
    (OUT / f"{name}.json").write_text(json.dumps(result, indent=1))
    lines = [*lines, "", "Failures:" if failures else "No failures.", *(f"- {failure}" for failure in failures)]
    (OUT / f"{name}.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines), flush=True)
    sys.exit(1 if failures else 0)
