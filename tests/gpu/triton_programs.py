"""Triton and torch.compile under probes, on a real GPU. Run by run.sh where TRITON is set; writes $OUT/triton_programs.md and .json.

The program (this file with `--program`) runs the four kernels of testdata/ptx/triton/kernels.py and a compiled MLP, forward
and backward. Its kernels reach the driver as cubins that keep their PTX. What is checked, each against something that is
not nt:
  results   every tensor with block_sched, gmem_bytes, dmat, lines.nt and a probe at each statement (every.nt) is the one without, by torch.equal; and the four kernels' are
            what PyTorch computes, within a tolerance
  coverage  every launch of a kernel that Triton compiled is probed and collected; of the others it is said why not
  lines     bytes of global memory by line of kernels.py (lines.nt) are what that line asks for: source lines are taken from the cubins
  records   block_sched has one record a warp; gmem_bytes' totals are what the four kernels ask for by their source, and so are
            the sizes of dmat's accesses, of which none is dropped
"""

import csv
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections import Counter

from common import OUT, finish, gpu, nt_run, run

# Sizes are multiples of the tiles, so that no lane is masked off.
N, ROWS, COLUMNS, SIDE, LENGTH, D = 1 << 20, 512, 4096, 512, 1024, 64
LAUNCHES = 3
# Blocks and warps of a launch.
SHAPES = {"vector_add": (N // 1024, 4), "softmax": (ROWS, 8), "matmul": (SIDE // 128 * (SIDE // 128), 8), "attention": (LENGTH // 64, 4)}
# What a launch asks of global memory, by the source. matmul's blocks read their rows of `a` and columns of `b`; attention's
# read all of `k` and `v`.
BYTES = {
    "vector_add": N * 3 * 4,
    "softmax": ROWS * COLUMNS * 2 * 4,
    "matmul": SIDE * SIDE * (SIDE // 128 * 2 + 1) * 2,
    "attention": (LENGTH // 64 * LENGTH * 2 + LENGTH * 2) * D * 2,
}


# The same by line of kernels.py, which is found by what stands in it.
LINES = {
    ("vector_add", "tl.store(out + i, tl.load(x + i, "): N * 3 * 4,
    ("softmax", "v = tl.load(x + row"): ROWS * COLUMNS * 4,
    ("softmax", "tl.store(out + row"): ROWS * COLUMNS * 4,
    ("matmul", "left = tl.load(pa"): SIDE * SIDE * (SIDE // 128) * 2,
    ("matmul", "right = tl.load(pb"): SIDE * SIDE * (SIDE // 128) * 2,
    ("matmul", "tl.store(c + m"): SIDE * SIDE * 2,
    ("attention", "query = tl.load(q + m"): LENGTH * D * 2,
    ("attention", "key = tl.load(k + "): LENGTH // 64 * LENGTH * D * 2,
    ("attention", "value = tl.load(v + "): LENGTH // 64 * LENGTH * D * 2,
    ("attention", "tl.store(out + m"): LENGTH * D * 2,
}


def program(file):
    """Runs everything once and writes what came out."""
    sys.path.insert(0, "testdata/ptx/triton")
    import kernels
    import torch

    random = torch.Generator(device="cuda").manual_seed(1)
    normal = lambda *shape, dtype=torch.float32: torch.randn(*shape, generator=random, device="cuda", dtype=dtype)
    half = torch.float16
    out = {}

    x, y, z = normal(N), normal(N), torch.empty(N, device="cuda")
    a, b = normal(SIDE, SIDE, dtype=half), normal(SIDE, SIDE, dtype=half)
    c = torch.empty(SIDE, SIDE, device="cuda", dtype=half)
    wide, soft = normal(ROWS, COLUMNS), torch.empty(ROWS, COLUMNS, device="cuda")
    q, k, v = (normal(LENGTH, D, dtype=half) for _ in range(3))
    o = torch.empty(LENGTH, D, device="cuda", dtype=half)
    for _ in range(LAUNCHES):
        kernels.vector_add[(N // 1024,)](x, y, z, N, BLOCK=1024, num_warps=4)
        kernels.softmax[(ROWS,)](wide, soft, COLUMNS, COLUMNS, BLOCK=4096, num_warps=8)
        kernels.matmul[(SIDE // 128, SIDE // 128)](
            a, b, c, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, BM=128, BN=128, BK=64, num_warps=8
        )
        kernels.attention[(LENGTH // 64,)](q, k, v, o, LENGTH, D**-0.5, BM=64, BN=64, D=D, num_warps=4)
    out |= {"vector_add": z, "softmax": soft, "matmul": c, "attention": o}
    expected = {
        "vector_add": x + y,
        "softmax": torch.softmax(wide, 1),
        "matmul": a @ b,
        "attention": torch.softmax(q.float() @ k.float().T * D**-0.5, 1) @ v.float(),
    }
    for name, value in expected.items():
        torch.testing.assert_close(out[name].float(), value.float(), rtol=2e-2, atol=2e-2, msg=lambda words: f"{name}: {words}")

    torch.manual_seed(2)
    mlp = torch.nn.Sequential(
        torch.nn.LayerNorm(256), torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 256), torch.nn.Softmax(1)
    ).cuda()
    compiled = torch.compile(mlp)
    for _ in range(LAUNCHES):
        mlp.zero_grad()
        given = normal(128, 256).requires_grad_()
        result = compiled(given)
        (result * normal(128, 256)).sum().backward()
    out |= {"mlp": result.detach(), "mlp gradient of the input": given.grad}
    out |= {f"mlp gradient of {name}": parameter.grad for name, parameter in mlp.named_parameters()}
    torch.cuda.synchronize()
    torch.save({name: tensor.cpu() for name, tensor in out.items()}, file)


def compiled_by_triton(kernel):
    """By its name: our four, and those of torch.compile."""
    return kernel in SHAPES or kernel.startswith("triton_")


def check_coverage(probe, trace, failures):
    """All of Triton's are probed; says so in a line, with what was not and why."""
    text = run("nt-map", "coverage", trace).stdout
    (OUT / f"triton.{probe}.coverage.tsv").write_text(text)
    total, seen, reasons = Counter(), {}, Counter()
    for row in csv.DictReader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE):
        kernel, reason = row["kernel"], row["reason"].strip("-")
        if kernel in ("(all)", "(note)"):
            continue
        counts = Counter({column: int(row[column]) for column in ("launches", "probed", "collected")})
        total += counts
        if compiled_by_triton(kernel):
            seen[kernel] = seen.get(kernel, Counter()) + counts
            if not counts["launches"] == counts["probed"] == counts["collected"]:
                failures.append(f"{probe}, {kernel}: {dict(counts)}: {reason}")
        elif counts["launches"] != counts["probed"]:
            reasons[reason] += counts["launches"] - counts["probed"]
            if not reason:
                failures.append(f"{probe}, {kernel}: not probed, and nothing says why")
    missing = [kernel for kernel in SHAPES if seen.get(kernel, {}).get("launches") != LAUNCHES]
    if missing or not any(kernel.startswith("triton_") for kernel in seen):
        failures.append(f"{probe}: not {LAUNCHES} launches of {missing}, or none of torch.compile: {sorted(seen)}")
    launched = sum(counts["launches"] for counts in seen.values())
    words = "; ".join(f"{count} not: {reason}" for reason, count in reasons.most_common())
    return (
        f"{probe}: {len(seen)} kernels of Triton's with {launched} launches; of all {total['launches']} launches "
        f"{total['probed']} probed, {total['collected']} collected; {words or 'none left'}."
    )


def check_events(trace, failures):
    """Accesses of each lane: their sizes come to what the source asks for, and all were stored. Says how many bytes an event took."""
    import numpy

    words = []
    for kernel, expected in BYTES.items():
        file = trace.with_suffix(f".{kernel}.npy")
        done = run("nt-map", "dump", "--lanes", "--format", "npy", "-k", f"={kernel}", "-o", file, trace)
        accesses = numpy.load(file)
        asked = int(accesses["bytes"].sum(dtype=numpy.uint64))
        if "had no room" in done.stderr or asked != LAUNCHES * expected:
            failures.append(f"dmat, {kernel}: {asked} bytes, {LAUNCHES * expected} by its source; {done.stderr.strip()}")
        words.append(f"{kernel} {len(accesses)} of {asked} bytes")
    (OUT / "triton.dmat.ls.tsv").write_text(run("nt-map", "ls", trace).stdout)
    return f"Accesses of lanes: {', '.join(words)}."


def check_lines(said, failures):
    """What nt-run printed of lines.nt: a row a line of kernels.py, `@bytes[softmax, /src/kernels.py:29]: 25165824`."""
    source = pathlib.Path("testdata/ptx/triton/kernels.py").read_text().splitlines()
    found = {}
    for kernel, file, line, count in re.findall(r"^@bytes\[(\w+), ([^\]]*):(\d+)\]: (\d+)$", said, flags=re.M):
        if file.endswith("kernels.py") and kernel in SHAPES:
            found[kernel, int(line)] = found.get((kernel, int(line)), 0) + int(count)
    expected = {}
    for (kernel, words), count in LINES.items():
        [line] = [number for number, text in enumerate(source, 1) if words in text]
        expected[kernel, line] = LAUNCHES * count
    for key in sorted(found.keys() | expected.keys()):
        if found.get(key) != expected.get(key):
            failures.append(f"lines, {key[0]} line {key[1]}: {found.get(key)} bytes, {expected.get(key)} by its source")
    return f"Bytes by line of kernels.py: {sum(found.get(key) == count for key, count in expected.items())} of {len(expected)} lines as by the source."


def main():
    import torch
    import triton

    work = pathlib.Path(tempfile.mkdtemp(prefix="nt-triton-"))
    # The run without probes compiles; the others load the same cubins.
    os.environ |= {
        "TRITON_CACHE_DIR": str(work / "triton"), "TORCHINDUCTOR_CACHE_DIR": str(work / "inductor"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1", "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    }
    words = [sys.executable, "tests/gpu/triton_programs.py", "--program"]
    machine, failures, lines = gpu(), [], []
    run(*words, work / "native.pt")
    # Twice without probes: what differs then is not the probe's doing.
    run(*words, work / "again.pt")
    native, again = torch.load(work / "native.pt"), torch.load(work / "again.pt")
    steady = [name for name in native if torch.equal(native[name], again[name])]
    failures += [f"{name}: differs between two runs without probes" for name in native if name not in steady]

    options = {"dmat": ["--pool", "4G"], "lines": ["--rows", "1000"]}
    for program in ("block_sched", "gmem_bytes", "dmat", "tests/gpu/every.nt", "tests/gpu/lines.nt"):
        probe = pathlib.Path(program).stem
        trace = work / f"{probe}.ntt"
        try:
            done = nt_run(program, trace, *words, work / f"{probe}.pt", options=options.get(probe, []))
        except SystemExit as error:
            failures.append(f"{probe}: {error}")
            continue
        (OUT / f"triton.{probe}.txt").write_text(done.stderr)
        found = torch.load(work / f"{probe}.pt")
        failures += [f"{probe}, {name}: differs with the probe" for name in steady if not torch.equal(native[name], found[name])]
        lines.append(f"{probe}: {sum(torch.equal(native[name], found[name]) for name in native)} of {len(native)} tensors equal.")
        lines.append(check_coverage(probe, trace, failures))
        if probe == "dmat":
            lines.append(check_events(trace, failures))
            continue
        if probe == "lines":
            lines.append(check_lines(done.stderr, failures))
            continue
        dump = subprocess.run(["nt-map", "dump", "--format", "csv", trace], capture_output=True, text=True)
        if dump.returncode:
            failures.append(f"{probe}: nt-map dump: exit {dump.returncode}: {dump.stderr[-300:]}")
            continue
        records, totals = Counter(), Counter()
        for row in csv.DictReader(io.StringIO(dump.stdout)):
            records[row["kernel"]] += 1
            if row["map"].startswith("@"):
                totals[row["kernel"]] += int(row["value"])
        if probe == "block_sched":
            for kernel, (blocks, warps) in SHAPES.items():
                if records[kernel] != LAUNCHES * blocks * warps:
                    failures.append(f"{kernel}: {records[kernel]} records, expected {LAUNCHES * blocks * warps}")
            lines.append(f"Records: {', '.join(f'{kernel} {records[kernel]}' for kernel in SHAPES)}: each warp of each launch.")
        elif probe == "every":
            failures += [f"every, {kernel}: no instruction counted" for kernel in SHAPES if not totals[kernel]]
            lines.append(f"Instructions of threads: {', '.join(f'{kernel} {totals[kernel]}' for kernel in SHAPES)}.")
        else:
            for kernel, expected in BYTES.items():
                if totals[kernel] != LAUNCHES * expected:
                    failures.append(f"{kernel}: {totals[kernel]} bytes, {LAUNCHES * expected} by its source")
            lines.append(f"Bytes: {', '.join(f'{kernel} {count}' for kernel, count in sorted(totals.items()))}.")

    head = f"GPU {machine['gpu']}, driver {machine['driver']}; PyTorch {torch.__version__}, Triton {triton.__version__}."
    finish("triton_programs", machine, [head, "", *lines], failures)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--program"]:
        program(sys.argv[2])
    else:
        main()
