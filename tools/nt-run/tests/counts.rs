//! Probes that count, end to end on the software GPU: programs give the results that they give without probes, and the
//! counts are those that follow from their source.

#![allow(clippy::unwrap_used, reason = "a test stops at the first thing that is wrong")]

mod common;

use common::{Done, Place, compiled, done, testdata, traces};
use nt_trace::ntt::{Event, Row, Trace};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const SMS: u64 = 4;
/// Sides of the problems are divided by 2⁴.
const SHRINK: u32 = 4;
/// Each kernel once, without warming up.
const RUN: [&str; 7] = ["./harness", "kernels.ptx", "1", "all", "4", "--warmup", "0"];

fn harness() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    // The other tests that build it may run at the same time.
    BUILT.get_or_init(|| compiled("g++", "../../bench/harness.cpp", "harness-vgpu", &["-std=c++17"]))
}

fn scene(ptx: &str) -> Place {
    let place = Place::with_driver();
    std::os::unix::fs::symlink(harness(), place.path("harness")).unwrap();
    std::os::unix::fs::symlink(testdata(ptx), place.path("kernels.ptx")).unwrap();
    place
}

fn on_the_gpu(command: &mut Command) -> Done {
    done(command.env("NT_VGPU", "1").env("NT_VGPU_SMS", SMS.to_string()).output().unwrap())
}

/// The harness's rows without times: kernel, checksums, and whether results are close to the CPU's.
fn results(stdout: &str) -> Vec<(String, String)> {
    let columns = stdout.lines().skip(1).map(|line| line.split('\t').collect::<Vec<_>>());
    columns.map(|c| (c[0].to_owned(), c[3..].join(" "))).collect()
}

/// Runs the harness without probes and with them; what both print must be the same, and every launch is probed.
fn probed(ptx: &str, probe: [&str; 2]) -> Done {
    let place = scene(ptx);
    let mut plain = Command::new("./harness");
    plain.current_dir(place.path(".")).env("LD_LIBRARY_PATH", place.path("lib")).args(&RUN[1..]);
    let plain = on_the_gpu(&mut plain);
    assert_eq!(plain.code, 0, "{}", plain.stderr);
    let probed = on_the_gpu(place.driver_run(probe).args(RUN));
    assert_eq!(probed.code, 0, "{}", probed.stderr);
    assert!(
        probed.stderr.starts_with("nt-run: 11 of 11 launches probed, 11 collected\n"),
        "{}",
        probed.stderr
    );
    let (before, after) = (results(&plain.stdout), results(&probed.stdout));
    assert_eq!(before.len(), 11);
    assert_eq!(before, after, "{ptx} with {probe:?}");
    probed
}

/// Bytes that each kernel asks of global memory, by `bench/kernels.cu` and the launches of `bench/harness.cpp`: every
/// access of every thread counts.
fn bytes_by_source() -> BTreeMap<String, u64> {
    let (n, m, rows) = (1u64 << (24 - 2 * SHRINK), 2048u64 >> SHRINK, 1u64 << (17 - 2 * SHRINK));
    let (length, queries, quads) = (2048u64 >> SHRINK, 16384u64 >> SHRINK, 1u64 << (21 - 2 * SHRINK));
    // The elements of the sparse matrix follow from the harness's generator, which made three numbers for each of n.
    let mut state = 12345u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state
    };
    (0..3 * n).for_each(|_| _ = next());
    let elements: u64 = (0..rows)
        .map(|_| {
            let count = next() % 96;
            (0..count).for_each(|_| _ = next());
            u64::from(count)
        })
        .sum();
    let kernels = [
        ("fill_blocks", quads * 16),
        ("fill_persistent", quads * 16),
        ("vector_add", n * 3 * 4),
        // Each element once, then an atomic addition a block, of which there are 8 an SM.
        ("reduce_sum", n * 4 + SMS * 8 * 4),
        ("transpose", m * m * 2 * 4),
        // Of m / 32 pairs of tiles a thread fetches one element of both, and it stores one.
        ("matmul_tiled", m * m * (m / 32 * 2 + 1) * 4),
        ("softmax_rows", n * 4 * 4),
        // A query and a result of 32 floats a thread; all keys and values a block of 128 queries.
        ("attention_online", queries * 2 * 32 * 4 + queries / 128 * length * 2 * 32 * 4),
        ("mandelbrot", m * m * 4),
        ("histogram", n * 4 + SMS * 8 * 256 * 4),
        // All lanes of a row load its two ends; then value, column and the vector's element of each; a store a row.
        ("spmv_csr", rows * (32 * 2 + 1) * 4 + elements * 3 * 4),
    ];
    kernels.into_iter().map(|(kernel, bytes)| (kernel.to_owned(), bytes)).collect()
}

/// The totals by kernel of an aggregation by block.
fn totals(summary: &str, table: &str) -> BTreeMap<String, u64> {
    let head = format!("@{table}[block]: ");
    let rows = summary.lines().skip_while(|line| !line.starts_with(&head)).skip(2);
    rows.take_while(|line| line.starts_with("  "))
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            (words[0].to_owned(), words[2].parse().unwrap())
        })
        .collect()
}

fn check_bytes(ptx: &str) {
    let done = probed(ptx, ["-p", "gmem_bytes"]);
    assert_eq!(totals(&done.stderr, "sync"), bytes_by_source(), "{ptx}: {}", done.stderr);
}

#[test]
fn bytes_of_global_memory_are_those_of_the_source() {
    check_bytes("nvcc/kernels.sm_90.ptx");
}

/// Other targets unroll and vectorise otherwise, and ask for the same.
#[test]
fn bytes_do_not_depend_on_the_target() {
    check_bytes("nvcc/kernels.sm_80.ptx");
}

/// Cells that every multiprocessor has of its own outlive launches, and are fetched when the process ends.
#[test]
fn sums_without_a_key_of_the_launch_add_up_too() {
    let done =
        probed("nvcc/kernels.sm_90.ptx", ["-e", "inst:access.global { @bytes[kernel] = sum(bytes); }"]);
    let rows = done.stderr.lines().filter_map(|line| line.strip_prefix("@bytes[")?.split_once("]: "));
    let found: BTreeMap<String, u64> =
        rows.map(|(kernel, bytes)| (kernel.to_owned(), bytes.parse().unwrap())).collect();
    assert_eq!(found, bytes_by_source(), "{}", done.stderr);
}

/// `tests/programs/slices.ptx`: warp w of each of 3 blocks of 2 warps issues 6 (w + 1) instructions, twice.
#[test]
fn matrix_instructions_are_those_of_the_loops() {
    let place = Place::with_driver();
    let program = compiled("cc", "tests/programs/images.c", "images-vgpu", &["-std=gnu11"]);
    std::os::unix::fs::symlink(program, place.path("images")).unwrap();
    let ptx = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/slices.ptx");
    let mut command = place.driver_run(["-p", "tensorop_count"]);
    let done = on_the_gpu(command.args(["./images", "dlsym-data"]).arg(ptx).args(["slices", "2"]));
    assert_eq!((done.code, done.stdout.as_str()), (0, "ok\n"), "{}", done.stderr);
    let mut found = Vec::new();
    for trace in traces(&place) {
        for event in Trace::new(&trace) {
            let Event::Batch(batch) = event else { continue };
            let records = batch.records().unwrap();
            let columns = |row: Row<'_, '_>| [0, 1].map(|column| row.unsigned(column).unwrap());
            found.extend(records.rows().map(|row| (batch.launch.number, row.unit(), columns(row))));
        }
    }
    let warps = (0..2).flat_map(|launch| (0..6).map(move |warp| (launch, warp)));
    let expected: Vec<_> = warps
        .map(|(launch, warp)| {
            let ops = 6 * (warp % 2 + 1);
            (launch, warp, [ops, ops * 2048])
        })
        .collect();
    assert_eq!(found, expected);
}
