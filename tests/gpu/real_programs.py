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

from common import COST_HEAD, KERNELS, OUT, PTX, REPEATS, ROUNDS, check_results, cost_columns, costs, finish, gpu, harness, means_line, nt_run, nvcc, rows, run

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
