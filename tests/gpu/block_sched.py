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
import pathlib
import statistics
import subprocess
import tempfile

from common import COST_HEAD, KERNELS, OUT, REPEATS, ROUNDS, check_results, cost_columns, costs, finish, gpu, grids, harness, means_line, rows, run


def main():
    work = pathlib.Path(tempfile.mkdtemp(prefix="nt-gpu-"))
    built, machine, failures = harness(work), gpu(), []
    trace = work / "once.ntt"
    equal = check_results(work, "block_sched", built, trace, machine["gpu"], failures)

    # Records: each warp once; and how long the SMs were busy, against the event time.
    seen, spans = {}, {}
    dump = subprocess.Popen(["nt-map", "dump", "--format", "csv", str(trace)], stdout=subprocess.PIPE, text=True)
    for row in csv.DictReader(dump.stdout):
        kernel, cu = row["kernel"], int(row["cu"])
        warp = (int(row["block"]), int(row["warp"]))
        seen.setdefault(kernel, []).append(warp)
        start, elapsed = int(row["start"]), int(row["elapsed"])
        low, high = spans.setdefault(kernel, {}).get(cu, (start, start + elapsed))
        spans[kernel][cu] = (min(low, start), max(high, start + elapsed))
    if dump.wait():
        failures.append(f"nt-map dump: exit {dump.returncode}")

    kernels, means = costs(work, "block_sched", built)
    many = work / "block_sched.many.ntt"
    (OUT / "report.txt").write_text(run("nt-map", "report", many).stdout)
    (OUT / "ls.txt").write_text(run("nt-map", "ls", many).stdout)
    for kernel, (blocks, threads) in grids(machine["sms"]).items():
        warps = blocks * -(-threads // 32)
        got = seen.get(kernel, [])
        if len(got) != warps or set(got) != {(b, w) for b in range(blocks) for w in range(-(-threads // 32))}:
            failures.append(f"{kernel}: {len(got)} records of {len(set(got))} warps, expected {warps}")
        busy = statistics.median([high - low for low, high in spans.get(kernel, {}).values()] or [0]) / machine["max_sm_mhz"]
        entry = kernels[kernel]
        entry |= {"equal": equal[kernel], "warps": warps, "busy_us": busy}
        # Events stand outside of the kernel: launch latency adds a few µs, and the clock may be below its maximum.
        event = entry["probed_device_us"]
        if not 0.4 * event - 5 < busy < 1.3 * event + 5:
            failures.append(f"{kernel}: SMs busy {busy:.1f} µs by the records, {event:.1f} µs by events")

    head = ["kernel", "outputs", "warps, each once", "busy µs by records", *COST_HEAD]
    body = (
        [k, "equal" if e["equal"] else "any order", e["warps"], f"{e['busy_us']:.1f}", *cost_columns(e)]
        for k, e in ((kernel, kernels[kernel]) for kernel in KERNELS)
    )
    lines = [
        f"GPU {machine['gpu']}, driver {machine['driver']}; {ROUNDS} rounds in turn, {REPEATS} launches a kernel and round after 3, medians.",
        "",
        *rows(head, body),
        "",
        means_line(means),
    ]
    finish("block_sched", machine | means | {"kernels": kernels}, lines, failures)


if __name__ == "__main__":
    main()
