"""Programs of the CUDA runtime, and probes that count, on a real GPU. Run by run.sh; writes $OUT/real_programs.md and .json.

What is checked, each against something that is not nt:
  programs  runtime_program.cu computes each part on the host too; its output with block_sched and with gmem_bytes is the one
            without, and every kernel but those that cannot be probed is (the summary names these with their reasons)
  bytes     gmem_bytes' totals of the eleven kernels are those that their source asks for, worked out below, and those of
            Nsight Compute where it is there and counts bytes alike
  macs      tensorop_count's records of wmma.cu are those of its loops
  results   outputs of the eleven kernels with gmem_bytes are the ones without, bit for bit
What is measured: gmem_bytes' costs on the eleven kernels, as block_sched.py measures that probe's.
"""

import csv
import io
import pathlib
import re
import shutil
import subprocess
import tempfile
from collections import Counter

from common import COST_HEAD, KERNELS, OUT, PTX, REPEATS, ROUNDS, check_results, cost_columns, costs, dump, finish, gpu, harness, means_line, nt_run, nvcc, rows, run

# Kernels of runtime_program.cu that run as they are, and a word of the reason.
UNPROBED = {"twice()": "managed", "dispatch(unsigned int*, int)": "function"}
# Of wmma.cu.
BLOCKS, WARPS, STEPS, MACS = 33, 5, 6, {"tiles": 16 * 16 * 16, "slices": 16 * 8 * 16}


def numbers_of_spmv(rows_of_matrix, before):
    """How many elements the harness's sparse matrix has: its generator, run on without making `before` numbers first."""
    def jump(state, steps):
        a, c, power_a, power_c = 1, 0, 1664525, 1013904223
        while steps:
            if steps & 1:
                a, c = a * power_a & M32, (c * power_a + power_c) & M32
            power_a, power_c = power_a * power_a & M32, (power_c * power_a + power_c) & M32
            steps >>= 1
        return (state * a + c) & M32

    M32 = (1 << 32) - 1
    state, elements = jump(12345, before), 0
    steps = [jump(0, n) for n in range(97)], [jump(1, n) - jump(0, n) & M32 for n in range(97)]
    for _ in range(rows_of_matrix):
        state = (state * 1664525 + 1013904223) & M32
        count = state % 96
        elements += count
        state = (state * steps[1][count] + steps[0][count]) & M32
    return elements


def global_bytes(sms, shrink=0):
    """Bytes that each kernel of bench/kernels.cu asks of global memory in one launch of bench/harness.cpp.

    By the source: every access of every thread counts with its size, whether or not caches or coalescing spare the memory
    any of it.
    """
    n, m, rows_of_matrix = 1 << (24 - 2 * shrink), 2048 >> shrink, 1 << (17 - 2 * shrink)
    length, queries, quads = 2048 >> shrink, 16384 >> shrink, 1 << (21 - 2 * shrink)
    elements = numbers_of_spmv(rows_of_matrix, 3 * n)
    return {
        # One uint4 each.
        "fill_blocks": quads * 16,
        "fill_persistent": quads * 16,
        # Two loads and a store.
        "vector_add": n * 3 * 4,
        # Each element once; then one atomic addition a block, of 8 blocks an SM.
        "reduce_sum": n * 4 + sms * 8 * 4,
        # In and out.
        "transpose": m * m * 2 * 4,
        # A thread an element: of each of m / 32 pairs of tiles it fetches one element of both, and it stores one.
        "matmul_tiled": m * m * (m // 32 * 2 + 1) * 4,
        # Three passes that load, the last of which stores.
        "softmax_rows": n * 4 * 4,
        # 32 floats of the query and of the result a thread; all keys and values once a block of 128 queries.
        "attention_online": queries * 2 * 32 * 4 + queries // 128 * length * 2 * 32 * 4,
        # A store a pixel.
        "mandelbrot": m * m * 4,
        # Each element once; then an atomic addition for each of 256 bins a block, of 8 blocks an SM.
        "histogram": n * 4 + sms * 8 * 256 * 4,
        # All 32 lanes of a row load its two ends; then value, column and the vector's element of each; a store a row.
        "spmv_csr": rows_of_matrix * (32 * 2 + 1) * 4 + elements * 3 * 4,
    }


def coverage(summary):
    """Of the table at the end of a run: launches, probed, collected and the words behind, by kernel."""
    row = re.compile(r"^  (.+?)  +(\d+)  +(\d+)  +(\d+)  +(?:\d+ -> \d+)? *(.*)$")
    # Aggregations have tables of their own, behind a blank line.
    found = (row.match(line) for line in summary.split("\n\n")[0].splitlines())
    return {m[1]: (*map(int, m.group(2, 3, 4)), m[5]) for m in found if m}


def check_programs(work, failures):
    """runtime_program.cu without probes and with them: the same words, and all that can be probed is."""
    built = nvcc("tests/gpu/runtime_program.cu", work / "runtime_program", "-gencode", "arch=compute_90,code=[sm_90,compute_90]")
    if not built:
        failures.append("there is no nvcc on PATH: programs of the runtime were not run")
        return []
    native, lines = run(built), []
    for probe in ("block_sched", "gmem_bytes"):
        done = nt_run(probe, work / f"runtime.{probe}.ntt", built)
        (OUT / f"runtime_program.{probe}.txt").write_text(done.stderr)
        if done.stdout != native.stdout:
            failures.append(f"runtime_program with {probe}: its output differs:\n{native.stdout}\n{done.stdout}")
        table = coverage(done.stderr)
        for kernel, (launches, probed, collected, words) in table.items():
            if kernel in UNPROBED:
                if probed or UNPROBED[kernel] not in words:
                    failures.append(f"runtime_program with {probe}, {kernel}: {probed} launches probed, reason `{words}`")
            elif "0 sites" in words:
                # Nothing in it that the probe is about.
                if probed or (probe, kernel) != ("gmem_bytes", "hello(int)"):
                    failures.append(f"runtime_program with {probe}, {kernel}: {words}")
            # Launches into a graph run as they are.
            elif not probed or probed != collected or (probed != launches and "captur" not in words):
                failures.append(f"runtime_program with {probe}, {kernel}: {launches} launches, {probed} probed, {collected} collected: {words}")
        if len(table) != 13:
            failures.append(f"runtime_program with {probe}: {len(table)} kernels in the summary, not 13: {sorted(table)}")
        seen = Counter()
        for launches, probed, *_ in table.values():
            seen += Counter(launches=launches, probed=probed)
        lines.append(f"runtime_program with {probe}: {len(native.stdout.splitlines())} lines equal, {seen['probed']} of {seen['launches']} launches probed.")
    return lines


def check_bytes(trace, expected, failures):
    """gmem_bytes' totals of one launch a kernel."""
    totals = Counter()
    for row in dump(trace):
        if row["map"].startswith("@"):
            totals[row["kernel"]] += int(row["value"])
    for kernel in KERNELS:
        if totals[kernel] != expected[kernel]:
            failures.append(f"gmem_bytes, {kernel}: {totals[kernel]} bytes, {expected[kernel]} by its source")
    return totals


def ncu_bytes(built):
    """What Nsight Compute counts, by kernel: requested bytes are the sectors' number times the mean of bytes in one."""
    ncu = shutil.which("ncu")
    if not ncu:
        return None, "there is no ncu on PATH"
    pairs = [
        (f"smsp__sass_average_data_bytes_per_sector_mem_global_op_{op}.ratio", f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum")
        for op in ("ld", "st")
    ]
    metrics = ",".join(name for pair in pairs for name in pair)
    words = [ncu, "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base", "--metrics", metrics]
    words += [built, PTX, 1, "all", 0, "--warmup", 0, "--first-mib"]
    try:
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=240)
    except subprocess.TimeoutExpired:
        return None, "ncu took longer than 240 s"
    (OUT / "ncu.txt").write_text(done.stdout + done.stderr)
    if done.returncode:
        return None, f"ncu: exit {done.returncode}: {(done.stdout + done.stderr).strip().splitlines()[-1:]}"
    text = "\n".join(line for line in done.stdout.splitlines() if line.startswith('"'))
    counted = {}
    for row in csv.DictReader(io.StringIO(text)):
        kernel = row.get("Kernel Name", "").split("(")[0]
        if kernel not in KERNELS:
            continue
        number = lambda name: float((row.get(name) or "0").replace(",", "") or 0)
        counted[kernel] = round(sum(number(mean) * number(sectors) for mean, sectors in pairs))
    return counted, "" if counted else "ncu gave no rows"


def check_macs(work, failures):
    """tensorop_count's records of known loops."""
    built = nvcc("tests/gpu/wmma.cu", work / "wmma", "-gencode", "arch=compute_90,code=[sm_90,compute_90]")
    if not built:
        return ["There is no nvcc on PATH: wmma.cu was not run."]
    trace = work / "wmma.ntt"
    native, done = run(built), nt_run("tensorop_count", trace, built)
    (OUT / "wmma.txt").write_text(done.stderr)
    if done.stdout != native.stdout:
        failures.append(f"wmma with tensorop_count: its output differs:\n{native.stdout}\n{done.stdout}")
    got = {(r["kernel"], int(r["block"]), int(r["warp"])): (int(r["ops"]), int(r["macs"])) for r in dump(trace)}
    expected = {
        (kernel, block, warp): ((warp + 1) * STEPS, (warp + 1) * STEPS * macs)
        for kernel, macs in MACS.items() for block in range(BLOCKS) for warp in range(WARPS)
    }
    wrong = [key for key in expected if got.get(key) != expected[key]] + [key for key in got if key not in expected]
    if wrong:
        failures.append(f"tensorop_count: {len(wrong)} warps differ, first {wrong[0]}: {got.get(wrong[0])}, expected {expected.get(wrong[0])}")
    ops = {kernel: sum(count for (name, *_), (count, _) in got.items() if name == kernel) for kernel in MACS}
    return [f"tensorop_count: {len(got)} warps, matrix instructions {ops}, each warp's as its loop has it." if not wrong else "tensorop_count: see failures."]


def main():
    work = pathlib.Path(tempfile.mkdtemp(prefix="nt-real-"))
    built, machine, failures = harness(work), gpu(), []
    lines = [f"GPU {machine['gpu']}, driver {machine['driver']}.", ""]
    lines += check_programs(work, failures)
    lines += check_macs(work, failures)

    trace = work / "once.ntt"
    equal = check_results(work, "gmem_bytes", built, trace, machine["gpu"], failures)
    expected = global_bytes(machine["sms"])
    totals = check_bytes(trace, expected, failures)
    counted, why_not = ncu_bytes(built)
    kernels, means = costs(work, "gmem_bytes", built)
    for kernel, entry in kernels.items():
        entry |= {"equal": equal[kernel], "bytes": totals[kernel], "expected": expected[kernel], "ncu": (counted or {}).get(kernel)}

    head = ["kernel", "outputs", "bytes asked of global memory", "by source", "ncu, loads and stores", *COST_HEAD]
    body = (
        [k, "equal" if e["equal"] else "any order", e["bytes"], e["expected"], e["ncu"] or "-", *cost_columns(e)]
        for k, e in ((kernel, kernels[kernel]) for kernel in KERNELS)
    )
    lines += ["", f"gmem_bytes; {ROUNDS} rounds in turn, {REPEATS} launches a kernel and round after 3, medians.", "", *rows(head, body), "", means_line(means)]
    lines += [f"Nsight Compute did not count: {why_not}."] if why_not else []
    finish("real_programs", machine | means | {"kernels": kernels}, lines, failures)


if __name__ == "__main__":
    main()
