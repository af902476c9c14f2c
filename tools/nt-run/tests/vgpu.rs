//! End to end on the software GPU: nt-run as it is installed, the hook, and kernels that really run, unprobed and
//! probed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first thing that is wrong")]

mod common;

use common::{Done, PROBE, Place, compiled, done, library, testdata};
use nt_trace::ntt::{Event, Streams, Trace};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

/// The kernels of `bench/kernels.cu`.
const KERNELS: usize = 11;
/// How much smaller the problems are: sides of 1/16.
const SHRINK: &str = "4";

/// `bench/harness.cpp`, compiled once.
fn harness() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| compiled("g++", "../../bench/harness.cpp", "harness-installed", &["-std=c++17"]))
}

/// A place with the programs as `make install` puts them.
fn installed() -> Place {
    let place = Place::new();
    for folder in ["bin", "lib/nt/vgpu"] {
        std::fs::create_dir_all(place.path(folder)).unwrap();
    }
    let program = env!("CARGO_BIN_EXE_nt-run");
    if std::fs::hard_link(program, place.path("bin/nt-run")).is_err() {
        std::fs::copy(program, place.path("bin/nt-run")).unwrap();
    }
    let link = |from: &Path, to: &str| std::os::unix::fs::symlink(from, place.path(to)).unwrap();
    link(&library("libnt_hook.so"), "lib/nt/libnt_hook.so");
    link(&library("libnt_vgpu_cuda.so"), "lib/nt/vgpu/libcuda.so.1");
    link(harness(), "harness");
    place
}

/// The command, in the place, above the software GPU of the place.
fn run(place: &Place, options: &[&str], words: &[&str]) -> Done {
    run_with(place, PROBE, options, words)
}

fn run_with(place: &Place, probe: &str, options: &[&str], words: &[&str]) -> Done {
    let mut command = Command::new(place.path("bin/nt-run"));
    command
        .current_dir(place.path("."))
        .env_remove("LD_LIBRARY_PATH")
        .env("NT_VGPU_LOG", place.path("driver.log"))
        .args(["-p", probe, "--cache", "none"])
        .args(options)
        .arg("--")
        .args(words);
    done(command.output().unwrap())
}

/// The harness's words, results going to a folder.
fn harness_words<'w>(text: &'w str, folder: &'w str) -> [&'w str; 9] {
    ["./harness", text, "1", "all", SHRINK, "--warmup", "0", "--dump", folder]
}

fn kernels(text: &str) -> String {
    testdata(text).to_str().unwrap().to_owned()
}

/// The harness without nt-run, above the software GPU.
fn unprobed(place: &Place, words: &[&str]) -> Done {
    let mut command = Command::new(place.path(words[0]));
    command.current_dir(place.path(".")).args(&words[1..]);
    command.env("LD_LIBRARY_PATH", place.path("lib/nt/vgpu")).env("NT_VGPU", "1");
    command.env("NT_VGPU_LOG", place.path("plain.log"));
    done(command.output().unwrap())
}

/// Bytes of global memory that kernels accessed in an unprobed run, as the software GPU itself counted them.
fn accessed(place: &Place) -> BTreeMap<String, u64> {
    let log = std::fs::read_to_string(place.path("plain.log")).unwrap();
    let mut all = BTreeMap::new();
    for line in log.lines().filter(|line| line.starts_with("ran ")) {
        let words: Vec<&str> = line.split(' ').collect();
        let bytes = words.iter().find_map(|word| word.strip_prefix("global=")).unwrap();
        *all.entry(words[2].to_owned()).or_default() += bytes.parse::<u64>().unwrap();
    }
    all
}

/// Totals by kernel in the summary of a run with `gmem_bytes`, of kernels whose names are C's.
fn totals(summary: &str) -> BTreeMap<String, u64> {
    let rows = summary.lines().skip_while(|line| !line.starts_with("@sync[block]: ")).skip(2);
    let rows = rows.take_while(|line| line.starts_with("  ")).filter(|line| !line.contains('('));
    let words = rows.map(|line| line.split_whitespace().collect::<Vec<_>>());
    words.map(|words| (words[0].to_owned(), words[2].parse().unwrap())).collect()
}

/// What kernels wrote, by file.
fn results(place: &Place, folder: &str) -> BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(place.path(folder)).unwrap().map(|entry| entry.unwrap());
    let all: BTreeMap<_, _> = files
        .map(|file| (file.file_name().into_string().unwrap(), std::fs::read(file.path()).unwrap()))
        .collect();
    assert_eq!(all.len(), KERNELS);
    all
}

/// Checksums of an H200 for the kernels that have one bit pattern alone (`bench/checksums.tsv`); some have it only where
/// the compiler fused multiplications and additions, as it does unless it is told not to optimize.
fn checksums(fused: bool) -> BTreeMap<String, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/checksums.tsv");
    let text = std::fs::read_to_string(path).unwrap();
    let rows =
        text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect::<Vec<_>>());
    let column = 1 + SHRINK.parse::<usize>().unwrap();
    let exact = rows
        .filter(|row| row.last().is_some_and(|exact| *exact == "yes" || fused && exact.starts_with("yes")));
    exact.map(|row| (row[0].to_owned(), row[column].to_owned())).collect()
}

/// The harness's rows are right: checksums where there are some, else close to what a CPU computes.
fn assert_right(stdout: &str, fused: bool) {
    let exact = checksums(fused);
    assert_eq!(exact.len(), if fused { 8 } else { 5 });
    let rows: Vec<Vec<&str>> = stdout.lines().skip(1).map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.len(), KERNELS, "{stdout}");
    for row in rows {
        match exact.get(row[0]) {
            Some(checksum) => assert_eq!(row[3], checksum, "{}", row[0]),
            None => assert_ne!(row[5], "bad", "{}", row[0]),
        }
    }
}

/// The trace of the one process of a run.
fn trace(place: &Place) -> Vec<u8> {
    let folder = std::fs::read_dir(place.path("trace.ntt")).unwrap().map(|entry| entry.unwrap().path());
    let traces: Vec<PathBuf> = folder
        .filter(|path| path.extension().is_some_and(|e| e == "ntt") && !path.ends_with("run.ntt"))
        .collect();
    assert_eq!(traces.len(), 1);
    std::fs::read(&traces[0]).unwrap()
}

/// What the streams of a kernel hold.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Events {
    stored: u64,
    dropped: u64,
    /// Of all lanes of the stored ones.
    bytes: u64,
    parts: u64,
}

/// What a run with `dmat` has saved, by kernel.
fn events(place: &Place) -> BTreeMap<String, Events> {
    let bytes = trace(place);
    let (mut found, mut ended, mut streams) = (BTreeMap::<String, Events>::new(), false, Streams::default());
    for event in Trace::new(&bytes) {
        match event {
            Event::Stream(batch) => {
                let map = batch.map().unwrap();
                let column = map.columns.iter().position(|column| column.name == "bytes").unwrap();
                let mut part = streams.open(&batch).unwrap();
                let of_kernel = found.entry(batch.kernel.name.clone()).or_default();
                of_kernel.parts += 1;
                of_kernel.dropped += part.dropped().map(|(_, events)| u64::from(events)).sum::<u64>();
                let reader = Arc::clone(&part.reader);
                for piece in part.pieces(1 << 20) {
                    for event in reader.events(&piece) {
                        let mut bytes = [0; 32];
                        assert!(event.put_lanes(column, &mut bytes) && event.site().is_some());
                        of_kernel.stored += 1;
                        of_kernel.bytes += event.lanes().map(|lane| bytes[lane as usize]).sum::<u64>();
                    }
                }
            }
            Event::End(_) => ended = true,
            Event::Trouble(trouble) => panic!("{trouble:?}"),
            _ => {}
        }
    }
    assert!(ended);
    found
}

/// The trace of the one process of a run, whole: for each kernel the warps that its launch had, and the records found,
/// each of another warp.
fn records(place: &Place) -> BTreeMap<String, (u64, u64)> {
    let bytes = trace(place);
    let (mut found, mut ended) = (BTreeMap::new(), false);
    for event in Trace::new(&bytes) {
        match event {
            Event::Batch(batch) => {
                let volume = |of: [u32; 3]| of.iter().map(|&n| u64::from(n)).product::<u64>();
                let launch = &batch.launch;
                let warps = volume(launch.grid) * volume(launch.block).div_ceil(32);
                let records = batch.records().unwrap();
                let units: BTreeSet<u64> = records.rows().map(|row| row.unit()).collect();
                assert!(units.iter().all(|&unit| unit < warps));
                assert_eq!(units.len(), records.rows().count());
                found.insert(batch.kernel.name.clone(), (warps, units.len() as u64));
            }
            Event::End(_) => ended = true,
            Event::Trouble(trouble) => panic!("{trouble:?}"),
            _ => {}
        }
    }
    assert!(ended);
    found
}

#[test]
fn probed_kernels_compute_the_same_and_every_warp_is_seen_once() {
    for text in ["nvcc/kernels.sm_90.ptx", "nvcc/kernels.debug.sm_90.ptx", "nvcc/kernels.sm_80.ptx"] {
        let (place, ptx) = (installed(), kernels(text));
        for folder in ["plain", "probed"] {
            std::fs::create_dir(place.path(folder)).unwrap();
        }
        let plain = unprobed(&place, &harness_words(&ptx, "plain"));
        assert_eq!(plain.code, 0, "{text}: {}", plain.stderr);
        let fused = !text.contains("debug");
        assert_right(&plain.stdout, fused);

        let probed = run(&place, &["--vgpu"], &harness_words(&ptx, "probed"));
        assert_eq!(probed.code, 0, "{text}: {}", probed.stderr);
        let headline = format!("nt-run: {KERNELS} of {KERNELS} launches probed, {KERNELS} collected\n");
        assert!(probed.stderr.starts_with(&headline), "{text}: {}", probed.stderr);
        assert_right(&probed.stdout, fused);
        assert_eq!(results(&place, "plain"), results(&place, "probed"), "{text}");

        let records = records(&place);
        assert_eq!(records.len(), KERNELS);
        for (kernel, (warps, found)) in records {
            assert!(warps > 0 && found == warps, "{text}: {kernel}: {found} of {warps} warps");
        }
    }
}

/// The lanes' bytes of all events are the bytes that the software GPU itself counted; where a stream is too small for all,
/// what is missing was counted as dropped.
#[test]
fn every_access_is_in_the_stream_or_was_counted() {
    for text in ["nvcc/kernels.sm_90.ptx", "nvcc/kernels.sm_80.ptx"] {
        let (place, ptx) = (installed(), kernels(text));
        for folder in ["plain", "whole", "small", "tiny"] {
            std::fs::create_dir(place.path(folder)).unwrap();
        }
        let plain = unprobed(&place, &harness_words(&ptx, "plain"));
        assert_eq!(plain.code, 0, "{text}: {}", plain.stderr);
        let accessed = accessed(&place);

        let run = |folder: &str, options: &[&str]| {
            let done = run_with(&place, "dmat", options, &harness_words(&ptx, folder));
            assert_eq!(done.code, 0, "{text}: {}", done.stderr);
            let headline = format!("nt-run: {KERNELS} of {KERNELS} launches probed, {KERNELS} collected\n");
            assert!(done.stderr.starts_with(&headline), "{text}: {}", done.stderr);
            assert_right(&done.stdout, true);
            assert_eq!(results(&place, "plain"), results(&place, folder), "{text}: {folder}");
            events(&place)
        };
        let whole = run("whole", &["--vgpu"]);
        assert_eq!(whole.len(), KERNELS);
        for (kernel, events) in &whole {
            let counted = Events { bytes: accessed[kernel], dropped: 0, ..*events };
            assert_eq!(*events, counted, "{text}: {kernel}");
        }
        // The first chunks of all warps and no more; of half a MiB, not even those of some kernels.
        for options in [&["--vgpu", "--stream", "32K"][..], &["--vgpu", "--pool", "1M"]] {
            let folder = if options.contains(&"32K") { "small" } else { "tiny" };
            let cut = run(folder, options);
            for (kernel, events) in &cut {
                assert_eq!(events.stored + events.dropped, whole[kernel].stored, "{text}: {kernel}");
            }
            assert!(cut.values().any(|events| events.dropped > 0), "{cut:?}");
        }
    }
}

#[test]
fn whatever_the_schedule() {
    let (place, ptx) = (installed(), kernels("nvcc/kernels.sm_90.ptx"));
    let mut before: Option<BTreeMap<String, Vec<u8>>> = None;
    for seed in ["--vgpu", "--vgpu=seed=1", "--vgpu=seed=77"] {
        std::fs::create_dir(place.path(seed)).unwrap();
        let done = run(&place, &[seed], &harness_words(&ptx, seed));
        assert_eq!(done.code, 0, "{seed}: {}", done.stderr);
        assert_right(&done.stdout, true);
        assert!(records(&place).values().all(|(warps, found)| warps == found), "{seed}");
        let mut now = results(&place, seed);
        // Its blocks and warps add floats as they come.
        now.remove("reduce_sum.bin").unwrap();
        assert!(before.is_none_or(|before| before == now), "{seed}");
        before = Some(now);
    }
}

/// Kernels of every shape that nvcc makes, some of which cannot be probed: what they print and compute is the same.
#[test]
fn whatever_is_probed_prints_and_computes_the_same() {
    let program = compiled("cc", "tests/programs/features.c", "features-vgpu", &["-std=gnu11"]);
    for text in ["features.sm_90", "features.debug.sm_90", "features.rdc.sm_90"] {
        let (place, ptx) = (installed(), kernels(&format!("nvcc/{text}.ptx")));
        std::os::unix::fs::symlink(&program, place.path("features")).unwrap();
        let words = ["./features", &ptx];
        let plain = unprobed(&place, &words);
        assert_eq!(plain.code, 0, "{text}: {}", plain.stderr);
        // Each round begins at 41; what kernels print is at its place among what the program prints.
        let counted = "x = -7, counter = 41\nx = -7, counter = 42\nx = -7, counter = 43\ncounter: 2c\n";
        assert_eq!(plain.stdout.matches(counted).count(), 2, "{text}: {}", plain.stdout);
        assert!(plain.stdout.ends_with("clustered: 0 1 0 1 0 1\n"), "{text}: {}", plain.stdout);
        for probe in ["block_sched", "gmem_bytes", "hot_lines"] {
            for seed in ["--vgpu", "--vgpu=seed=5"] {
                let probed = run_with(&place, probe, &[seed], &words);
                let what = format!("{text} {probe} {seed}");
                assert_eq!(probed.code, 0, "{what}: {}", probed.stderr);
                assert_eq!(probed.stdout, plain.stdout, "{what}: {}", probed.stderr);
                assert!(!probed.stderr.contains("nothing was probed"), "{what}: {}", probed.stderr);
                let (counted, totals) = (accessed(&place), totals(&probed.stderr));
                assert!(probe != "gmem_bytes" || totals.len() >= 4, "{what}: {totals:?}");
                for (kernel, bytes) in totals {
                    assert_eq!(bytes, counted[&kernel], "{what}: {kernel}");
                }
            }
        }
    }
}

#[test]
fn a_kernel_that_goes_wrong_is_told_of_and_the_status_is_the_commands() {
    let place = installed();
    // In vector_add, which is the one that does this, every second float is taken, so that half of the blocks are past
    // the end: of 65,536 floats in blocks of 256 those from block 128 on.
    let text = std::fs::read_to_string(kernels("nvcc/kernels.sm_90.ptx")).unwrap();
    let (right, wrong) = ("mul.wide.s32 \t%rd5, %r1, 4;", "mul.wide.s32 \t%rd5, %r1, 8;");
    assert!(text.contains(right));
    place.write("wrong.ptx", &text.replace(right, wrong));
    let done = run(&place, &["--vgpu"], &["./harness", "wrong.ptx", "1", "vector_add", SHRINK]);
    assert_eq!(done.code, 1, "{}", done.stderr);
    let said =
        done.stderr.lines().find(|line| line.starts_with("nt-vgpu: kernel `vector_add`, line ")).unwrap();
    assert!(
        said.contains("`ld.global.f32`: block (128,0,0), thread (0,0,0): no memory at global address 0x"),
        "{said}"
    );
    assert!(done.stderr.contains("cuEventSynchronize: error 700\n"), "{}", done.stderr);
    assert!(done.stderr.contains("\nnt-run: 1 of 1 launches probed, "), "{}", done.stderr);
}

#[test]
fn what_cannot_be_is_refused() {
    let place = installed();
    let done = run(&place, &["--vgpu=slow"], &["true"]);
    assert_eq!(done.code, 125);
    assert!(done.stderr.contains("`slow` is not `seed=` and a number"), "{}", done.stderr);
    std::fs::remove_file(place.path("lib/nt/vgpu/libcuda.so.1")).unwrap();
    let done = run(&place, &["--vgpu"], &["true"]);
    assert_eq!(done.code, 125);
    assert!(done.stderr.contains("the software GPU is neither "), "{}", done.stderr);
}
