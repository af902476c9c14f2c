"""block_sched on a real GPU: results, records, times, costs. Run by run.sh; writes $OUT/block_sched.md and .json.

What is checked, each against something that is not nt:
  results   every kernel's output file with probes is the one without, bit for bit (reduce_sum adds floats in any order and
            is checked by the harness's tolerance), and the checksums are those of bench/checksums.tsv
  records   every warp of a launch has one record: the harness's grids say how many
  times     the cycles from the first start to the last end on an SM, in µs, against the event time of such a launch
What is measured: kernel time probed over native as the program sees it (medians, interleaved rounds; the program's events
include our event, and the collector's copies run beside), the kernel alone (pairs.py), registers, host µs a launch.
"""

import csv
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

OUT = pathlib.Path(os.environ["OUT"])
PTX = "testdata/ptx/nvcc/kernels.sm_90.ptx"
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


def run(*words, **options):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: exit {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done


def table(text):
    return {row["kernel"]: row for row in csv.DictReader(text.splitlines(), delimiter="\t")}


def main():
    work = pathlib.Path(tempfile.mkdtemp(prefix="nt-gpu-"))
    harness = work / "harness"
    run("g++", "-O2", "-std=c++17", "-o", harness, "bench/harness.cpp", "-ldl")
    info = run("nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm", "--format=csv,noheader,nounits").stdout.strip()
    name, driver, clock = [word.strip() for word in info.splitlines()[0].split(",")]
    mhz = float(clock)
    failures, result = [], {"gpu": name, "driver": driver, "max_sm_mhz": mhz, "kernels": {}}

    # Results: bit for bit, and against the committed checksums.
    for folder in ("native", "probed"):
        (work / folder).mkdir()
    native = table(run(harness, PTX, 1, "all", 0, "--warmup", 0, "--dump", work / "native").stdout)
    trace = work / "once.ntt"
    done = run("nt-run", "-p", "block_sched", "-o", trace, "--", harness, PTX, 1, "all", 0, "--warmup", 0, "--dump", work / "probed")
    (OUT / "once.summary.txt").write_text(done.stderr)
    probed = table(done.stdout)
    sums = {r["kernel"]: r for r in csv.DictReader((l for l in open("bench/checksums.tsv") if not l.startswith("#")), delimiter="\t")}
    for kernel in KERNELS:
        same = (work / "native" / f"{kernel}.bin").read_bytes() == (work / "probed" / f"{kernel}.bin").read_bytes()
        if not same and kernel != "reduce_sum":
            failures.append(f"{kernel}: output differs with the probe")
        if probed[kernel]["close"] == "bad":
            failures.append(f"{kernel}: outside the harness's tolerance")
        if kernel in sums and "H200" in name and probed[kernel]["checksum"] != sums[kernel]["shrink 0"]:
            failures.append(f"{kernel}: checksum {probed[kernel]['checksum']}, expected {sums[kernel]['shrink 0']}")
        result["kernels"][kernel] = {"equal": same}

    # Records: each warp once; and how long the SMs were busy, against the event time.
    seen, spans, sms = {}, {}, 0
    dump = subprocess.Popen(["nt-map", "dump", "--format", "csv", str(trace)], stdout=subprocess.PIPE, text=True)
    for row in csv.DictReader(dump.stdout):
        kernel, cu = row["kernel"], int(row["cu"])
        warp = (int(row["block"]), int(row["warp"]))
        seen.setdefault(kernel, []).append(warp)
        start, elapsed = int(row["start"]), int(row["elapsed"])
        low, high = spans.setdefault(kernel, {}).get(cu, (start, start + elapsed))
        spans[kernel][cu] = (min(low, start), max(high, start + elapsed))
        sms = max(sms, cu + 1)
    if dump.wait():
        failures.append(f"nt-map dump: exit {dump.returncode}")
    for kernel, (blocks, threads) in grids(sms).items():
        warps = blocks * -(-threads // 32)
        got = seen.get(kernel, [])
        if len(got) != warps or set(got) != {(b, w) for b in range(blocks) for w in range(-(-threads // 32))}:
            failures.append(f"{kernel}: {len(got)} records of {len(set(got))} warps, expected {warps}")
        busy = statistics.median(high - low for low, high in spans[kernel].values()) / mhz
        result["kernels"][kernel] |= {"warps": warps, "busy_us": busy}

    # Costs: rounds in turn, so that a drift of the machine meets both.
    columns = {"native": [], "probed": []}
    for _ in range(ROUNDS):
        columns["native"].append(table(run(harness, PTX, REPEATS, "all", 0, "--first-mib").stdout))
        done = run("nt-run", "-p", "block_sched", "-o", work / "many.ntt", "--", harness, PTX, REPEATS, "all", 0, "--first-mib")
        columns["probed"].append(table(done.stdout))
    (OUT / "many.summary.txt").write_text(done.stderr)
    (OUT / "report.txt").write_text(run("nt-map", "report", work / "many.ntt").stdout)
    (OUT / "ls.txt").write_text(run("nt-map", "ls", work / "many.ntt").stdout)
    product = 1.0
    for kernel in KERNELS:
        entry = result["kernels"][kernel]
        for way, rounds in columns.items():
            for column in ("device_us", "host_us"):
                entry[f"{way}_{column}"] = statistics.median(float(r[kernel][column]) for r in rounds)
        ratios = [float(p[kernel]["device_us"]) / float(n[kernel]["device_us"]) for n, p in zip(columns["native"], columns["probed"])]
        entry["slowdown"] = statistics.median(ratios)
        entry["slowdown_range"] = [min(ratios), max(ratios)]
        product *= entry["slowdown"]
        # Events stand outside of the kernel: launch latency adds a few µs, and the clock may be below its maximum.
        event, busy = entry["probed_device_us"], entry["busy_us"]
        if not 0.4 * event - 5 < busy < 1.3 * event + 5:
            failures.append(f"{kernel}: SMs busy {busy:.1f} µs by the records, {event:.1f} µs by events")
    result["geomean"] = product ** (1 / len(KERNELS))
    result["added_host_us"] = statistics.mean(e["probed_host_us"] - e["native_host_us"] for e in result["kernels"].values())

    # Registers, by the assembler here.
    manifest = work / "k.ntm"
    run("nt-inject", "-p", "block_sched", "-o", work / "k.ptx", "--manifest", manifest, PTX)
    pairs = run(sys.executable, "tests/gpu/pairs.py", PTX, work / "k.ptx", manifest).stdout
    (OUT / "pairs.tsv").write_text(pairs)
    alone = {row.split("\t")[0]: row.split("\t") for row in pairs.splitlines()[1:]}
    for kernel in json.loads(manifest.read_text())["kernels"]:
        before, after = kernel.get("before"), kernel.get("after")
        if before and after:
            result["kernels"][kernel["name"]]["registers"] = [before["registers"], after["registers"]]

    result["failures"] = failures
    (OUT / "block_sched.json").write_text(json.dumps(result, indent=1))
    lines = [
        f"GPU {name}, driver {driver}; {ROUNDS} rounds in turn, {REPEATS} launches a kernel and round after 3, medians.",
        "",
        "| kernel | outputs | warps, each once | busy µs by records | native µs | probed µs | ratio (range) | kernel alone (noise) | registers | host µs a launch |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for kernel in KERNELS:
        e = result["kernels"][kernel]
        low, high = e["slowdown_range"]
        registers = " → ".join(map(str, e.get("registers", ["?"])))
        lines.append(
            f"| {kernel} | {'equal' if e['equal'] else 'any order'} | {e['warps']} | {e['busy_us']:.1f} | "
            f"{e['native_device_us']:.1f} | {e['probed_device_us']:.1f} | {e['slowdown']:.3f} ({low:.3f}–{high:.3f}) | {alone[kernel][3]} ({alone[kernel][4]}) | {registers} | "
            f"{e['native_host_us']:.1f} → {e['probed_host_us']:.1f} |"
        )
    lines += ["", f"Geometric means: as the program sees it {result['geomean']:.3f}, the kernel alone {alone['geometric mean'][3]}; host time added a launch {result['added_host_us']:.2f} µs (mean)."]
    lines += ["", "Failures:" if failures else "No failures."] + [f"- {f}" for f in failures]
    (OUT / "block_sched.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
