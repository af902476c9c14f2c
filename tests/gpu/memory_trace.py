"""The memory trace on a real GPU. Run by run.sh; writes $OUT/memory_trace.md and .json.

What is checked, each against something that is not nt:
  addresses  dmat's events of the eleven kernels are those of a recording version of each (recorded.py): the same addresses, sizes
             and kinds by the same threads, as often, none missing and none too many
  capacity   arrays with a capacity (capacity.nt) hold the first four and the newest four accesses of each thread as the recording
             version noted them, and how many there were; of kernels whose warps stay whole, as many a warp
  results    outputs of the eleven kernels with dmat are the ones without, bit for bit, at full size
  drops      nothing found no room where there is room; where a stream is made too small, what is stored and what is counted as
             dropped come to as many as without a limit
With SOFTWARE set (`make recorded`) the software GPU takes the place of the card: addresses and capacity alone, at 1/256 of the size.
What is measured: dmat's cost on the eleven kernels, as block_sched.py measures that probe's; bytes an access.
"""

import csv
import math
import pathlib
import re
import sys
import tempfile

import numpy

from common import COST_HEAD, KERNELS, OUT, PTX, ROUNDS, SOFTWARE, check_results, cost_columns, costs, dump, finish, gpu, harness, means_line, nt_run, rows, run

# Whose addresses come out of memory: lanes that no proof ties.
INDIRECT = ["spmv_csr"]
# And those whose lanes are tested when they run: blocks of mandelbrot are 16 threads wide.
TESTED = ["mandelbrot", *INDIRECT]
# Threads' arrays of this probe keep so many saves each.
CAPACITY, CAPACITY_EACH = "tests/gpu/capacity.nt", 4
# Every access of these is made by whole warps.
WHOLE = ["fill_blocks", "fill_persistent", "vector_add", "transpose", "matmul_tiled"]
# How small the problems are whose addresses are compared. spmv_csr with probes takes more registers: at a size at which all of
# its blocks are resident without probes and not with them, nt-run leaves it alone.
SHRINKS = {4: KERNELS} if SOFTWARE else {2: [kernel for kernel in KERNELS if kernel not in INDIRECT], 1: INDIRECT}
# A launch of matmul_tiled leaves some 350 MB.
REPEATS = 4
ROOM = ["--stream", "1G", "--pool", "6G"]


def kind(opcode):
    """As recorded.py counts: 0 a load, 1 a store, 2 an atomic operation."""
    return {"ld": 0, "st": 1, "atom": 2, "red": 2}[opcode.split(".")[0]]


def check_addresses(work, failures):
    """Events against notes, a kernel: how many accesses there are."""
    counts = {}
    for shrink, kernels in SHRINKS.items():
        trace = work / f"recorded.{shrink}.ntt"
        chosen = ["-k", f"^({'|'.join(kernels)})$", *ROOM]
        done = nt_run("dmat", trace, sys.executable, "tests/gpu/recorded.py", PTX, work, shrink, *kernels, options=chosen)
        (OUT / f"recorded.{shrink}.txt").write_text(done.stderr)
        counts |= {name: check_kernel(work, trace, name, failures) for name in kernels}
    return counts


def check_kernel(work, trace, name, failures):
    """The same of one kernel: how many accesses there are."""
    one = work / "lanes.npy"
    run("nt-map", "dump", "--lanes", "--format", "npy", "-k", f"={name}", "-o", one, trace)
    events, noted = numpy.load(one), numpy.load(work / f"{name}.npy")
    kinds = numpy.full(1 << 16, 9)
    for row in dump(trace, "-k", f"={name}"):
        kinds[int(row["site"])] = kind(row["op"])
    got = numpy.zeros(len(events), noted.dtype)
    got["address"], got["thread"], got["bytes"], got["store"] = events["addr"], events["thread"], events["bytes"], kinds[events["site"]]
    if not numpy.array_equal(numpy.sort(got), numpy.sort(noted)):
        failures.append(f"dmat, {name}: {len(got)} accesses, {len(noted)} by its recording version, {difference(got, noted)}")
    return len(noted)


def check_capacity(work, failures):
    """Arrays with a capacity against notes: how many accesses the kernels make."""
    work, total = work / "capacity", 0
    work.mkdir()
    for shrink, kernels in SHRINKS.items():
        trace = work / f"{shrink}.ntt"
        chosen = ["-k", f"^({'|'.join(kernels)})$"]
        done = nt_run(CAPACITY, trace, sys.executable, "tests/gpu/recorded.py", PTX, work, shrink, *kernels, options=chosen)
        (OUT / f"capacity.{shrink}.txt").write_text(done.stderr)
        saves = {(row["kernel"], row["map"]): row for row in csv.DictReader(run("nt-map", "ls", trace).stdout.splitlines(), delimiter="\t")}
        for name in kernels:
            noted = numpy.load(work / f"{name}.npy")
            total += len(noted)
            why = wrong_of_threads(work, trace, name, noted)
            if why:
                failures.append(f"capacity, {name}: {why}")
            warps = saves[name, "warps"]
            if name in WHOLE and (int(warps["stored"]) + int(warps["dropped"])) * 32 != len(noted):
                failures.append(f"capacity, {name}: {warps['stored']} saves of warps stored, {warps['dropped']} dropped, {len(noted)} accesses")
    return total


def wrong_of_threads(work, trace, name, noted):
    """What is wrong with the saves of a kernel's threads, or None."""
    taken = numpy.bincount(noted["thread"])
    kept, saves = numpy.minimum(taken, CAPACITY_EACH), {}
    for map_name, from_seq in (("oldest", 0 * taken), ("newest", taken - kept)):
        one = work / f"{map_name}.npy"
        run("nt-map", "dump", "--format", "npy", "--map", map_name, "-k", f"={name}", "-o", one, trace)
        rows = numpy.sort(numpy.load(one), order=["unit", "seq"])
        there = numpy.bincount(rows["unit"].astype(int), minlength=len(taken))
        if len(there) != len(taken) or (there != kept).any():
            return f"{map_name} holds {len(rows)} saves, {kept.sum()} by the notes"
        within = numpy.arange(len(rows)) - numpy.repeat(numpy.cumsum(kept) - kept, kept)
        if (rows["seq"] != numpy.repeat(from_seq, kept) + within).any():
            return f"saves in {map_name} are not the ones that should be kept"
        saves[map_name] = rows
    # Every access by its thread and address; those of threads that make no more than both arrays hold, each as often as noted.
    key = lambda unit, address: unit.astype(numpy.uint64) << numpy.uint64(44) ^ address.astype(numpy.uint64)
    all_noted = key(noted["thread"], noted["address"])
    for map_name, rows in saves.items():
        if not numpy.isin(key(rows["unit"], rows["addr"]), all_noted).all():
            return f"{map_name} has an access that its thread did not make"
    later = saves["newest"][saves["newest"]["seq"] >= CAPACITY_EACH]
    both = numpy.concatenate([saves["oldest"], later])
    whole = taken <= 2 * CAPACITY_EACH
    got = key(both["unit"], both["addr"])[whole[both["unit"].astype(int)]]
    if (numpy.sort(got) != numpy.sort(all_noted[whole[noted["thread"]]])).any():
        return "threads that made no more accesses than are kept have others"
    return None


def difference(got, noted):
    """The first rows that one has and the other lacks."""
    only = [numpy.setdiff1d(x, y)[:2].tolist() for x, y in ((got, noted), (noted, got))]
    return f"only in the trace {only[0]}, only noted {only[1]}"


def stored_and_dropped(trace, kernel):
    """Events of a kernel, stored and dropped."""
    one = trace.with_suffix(".npy")
    done = run("nt-map", "dump", "--format", "npy", "-k", f"={kernel}", "-o", one, trace)
    stored, lost = len(numpy.load(one, mmap_mode="r")), re.search(r"(\d+) events had no room", done.stderr)
    one.unlink()
    return stored, int(lost[1]) if lost else 0


def check_drops(work, built, failures):
    """A stream of 4 MiB and one that holds everything, at a small size: as many events either way."""
    counts = {}
    for name, options in (("whole", ROOM), ("cut", ["--stream", "4M"])):
        trace = work / f"{name}.ntt"
        nt_run("dmat", trace, built, PTX, 1, "all", 1, "--warmup", 0, "--first-mib", options=options)
        counts[name] = {kernel: stored_and_dropped(trace, kernel) for kernel in KERNELS}
    cut = 0
    for kernel in KERNELS:
        (all_stored, lost), (stored, dropped) = counts["whole"][kernel], counts["cut"][kernel]
        cut += dropped
        if lost:
            failures.append(f"dmat, {kernel}: {lost} events dropped though there was room")
        if stored + dropped != all_stored:
            failures.append(f"dmat, {kernel}: {stored} stored and {dropped} dropped of {all_stored}")
    return f"With streams of 4 MiB {cut} events find no room, and are counted: stored and dropped come to the events of the whole trace in each kernel."


def compare(work, lines, failures):
    """Addresses and capacity; how many accesses each kernel makes."""
    counts = check_addresses(work, failures)
    lines += [f"Addresses: {sum(counts.values())} accesses of {len(counts)} kernels against their recording versions.", ""]
    lines += [f"Arrays with a capacity: {check_capacity(work, failures)} accesses, of each thread the first four and the newest four.", ""]
    return counts


def main():
    work = pathlib.Path(tempfile.mkdtemp(prefix="nt-memory-"))
    if SOFTWARE:
        lines, failures = ["The software GPU.", ""], []
        return finish("recorded", {"accesses": compare(work, lines, failures)}, lines, failures)
    built, machine, failures = harness(work), gpu(), []
    lines = [f"GPU {machine['gpu']}, driver {machine['driver']}.", ""]
    counts = compare(work, lines, failures)
    lines += [check_drops(work, built, failures), ""]

    trace = work / "once.ntt"
    equal = check_results(work, "dmat", built, trace, machine["gpu"], failures, options=ROOM)
    full = {kernel: stored_and_dropped(trace, kernel) for kernel in KERNELS}
    for kernel, (_, dropped) in full.items():
        if dropped:
            failures.append(f"dmat, {kernel}: {dropped} events dropped at full size")
    kernels, means = costs(work, "dmat", built, options=ROOM, repeats=REPEATS)
    for kernel, entry in kernels.items():
        entry |= {"equal": equal[kernel], "events": full[kernel][0], "accesses": counts[kernel]}
    proved = [float(entry["alone"]) for kernel, entry in kernels.items() if kernel not in TESTED]
    means["alone_proved"] = math.exp(sum(map(math.log, proved)) / len(proved))

    head = ["kernel", "outputs", "events a launch", *COST_HEAD]
    body = (
        [k, "equal" if e["equal"] else "any order", e["events"], *cost_columns(e)] for k, e in ((kernel, kernels[kernel]) for kernel in KERNELS)
    )
    lines += [f"dmat; {ROUNDS} rounds in turn, {REPEATS} launches a kernel and round after 3, medians.", "", *rows(head, body), "", means_line(means)]
    lines += [f"The kernel alone, without {', '.join(TESTED)}: {means['alone_proved']:.3f}."]
    finish("memory_trace", machine | means | {"kernels": kernels}, lines, failures)


if __name__ == "__main__":
    main()
