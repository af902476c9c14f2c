//! PTX out of cubins: what ptxas keeps of a text with `-lineinfo` or `-g` is restored, parses, and assembles to the same
//! machine code as the text itself.
//!
//! The judge is ptxas, which makes both cubins. Where it is missing (`make deps` brings it) that test says that it is
//! skipped; the committed cubins of `testdata/cubin/`, whose origin its script states, are read all the same.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test stops at the first thing that is wrong")]

use nt_object::{Kind, LIMIT};
use object::{Object, ObjectSection, ObjectSymbol};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

/// ptxas of `make deps`, else of PATH.
fn ptxas() -> Option<PathBuf> {
    let own = testdata().join("../.tools/bin/ptxas");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(own).chain(std::env::split_paths(&path).map(|folder| folder.join("ptxas")));
    let found = all.into_iter().find(|file| file.is_file());
    if found.is_none() {
        eprintln!("skipped: ptxas is missing; `make deps` brings it");
    }
    found
}

fn assemble(ptxas: &Path, options: &[&str], text: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.ptx"), text).unwrap();
    let mut command = Command::new(ptxas);
    command.args(options).args(["x.ptx", "-o", "x.cubin"]).current_dir(folder.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{options:?}: {}", String::from_utf8_lossy(&output.stderr));
    std::fs::read(folder.path().join("x.cubin")).unwrap()
}

/// The machine code of each kernel and function, and how many registers it takes.
fn code(cubin: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let file = object::File::parse(cubin).unwrap();
    let mut code = BTreeMap::new();
    for section in file.sections() {
        let (name, data) = (section.name().unwrap(), section.data().unwrap());
        if name.starts_with(".text.") {
            code.insert(name.to_owned(), data.to_vec());
        }
        if name == ".nv.info" {
            // Attribute 0x2f: a symbol's number and its registers.
            for record in data.chunks(12).filter(|record| record[..4] == [4, 0x2f, 8, 0]) {
                let symbol = u32::from_le_bytes(record[4..8].try_into().unwrap()) as usize;
                let symbol = file.symbol_by_index(object::SymbolIndex(symbol)).unwrap();
                code.insert(format!("registers of {}", symbol.name().unwrap()), record[8..].to_vec());
            }
        }
    }
    code
}

/// The texts in a cubin.
fn texts(cubin: &[u8]) -> Vec<String> {
    let container = nt_object::open(cubin).unwrap();
    assert_eq!(container.faults, []);
    let ptx = container.entries.iter().filter(|entry| entry.kind == Kind::Ptx);
    ptx.map(|entry| entry.text(LIMIT).unwrap()).collect()
}

fn check_roundtrip(name: &str, options: &[&str]) {
    let Some(ptxas) = ptxas() else { return };
    let original = std::fs::read_to_string(testdata().join("ptx").join(name)).unwrap();
    let target = nt_object::ptx::head(original.as_bytes()).target.unwrap().to_string();
    let plain: Vec<&str> = ["-arch", &target].into_iter().chain(options.iter().copied()).collect();
    let lineinfo: Vec<&str> = plain.iter().copied().chain(["-lineinfo"]).collect();
    let cubin = assemble(&ptxas, &lineinfo, &original);
    let texts = texts(&cubin);
    assert_eq!(texts.len(), 1, "{name}");
    let text = &texts[0];
    let (_, found) = nt_ptx::parse(text);
    assert!(!found.has_errors(), "{name}: {found:?}");
    // Code stands on the line where it stood.
    let line_of = |text: &str| text.lines().position(|line| line.contains(".entry"));
    assert_eq!(line_of(text), line_of(&original), "{name}");
    let (expected, found) = (code(&cubin), code(&assemble(&ptxas, &plain, text)));
    assert!(expected.keys().any(|key| key.starts_with("registers")));
    for (key, expected) in &expected {
        assert!(found.get(key) == Some(expected), "{name}: {key}");
    }
}

/// Tensor cores of sm_100a are not among them: of such a text ptxas itself makes now this code, now that.
#[test]
fn restored_text_gives_the_same_machine_code() {
    for name in [
        "triton/softmax.sm_80.ptx",
        "triton/matmul.sm_90a.ptx",
        "triton/softmax.sm_100a.ptx",
        "nvcc/kernels.sm_80.ptx",
        "nvcc/kernels.lineinfo.sm_90.ptx",
        "clang/kernels.debug.sm_100a.ptx",
        "numba/block_sums.sm_90.ptx",
    ] {
        check_roundtrip(name, &[]);
    }
    check_roundtrip("nvcc/features.rdc.sm_90.ptx", &["-c"]);
}

/// `-G` asks for code that is not optimised, so the restored text's is another; but it is code.
#[test]
fn a_text_for_debugging_assembles_too() {
    let Some(ptxas) = ptxas() else { return };
    let original = std::fs::read_to_string(testdata().join("ptx/nvcc/kernels.debug.sm_90.ptx")).unwrap();
    assert!(original.contains(".target sm_90, debug"));
    let texts = texts(&assemble(&ptxas, &["-arch", "sm_90", "-g"], &original));
    assert_eq!(texts.len(), 1);
    assert!(!nt_ptx::parse(&texts[0]).1.has_errors());
    assert!(!assemble(&ptxas, &["-arch", "sm_90"], &texts[0]).is_empty());
}

fn cubin(name: &str) -> Vec<u8> {
    std::fs::read(testdata().join("cubin").join(name)).unwrap()
}

/// A cubin as an entry, then its PTX.
fn check_cubin(name: &str, target: &str, kernels: &[&[&str]]) {
    let bytes = cubin(name);
    for container in [nt_object::open(&bytes).unwrap(), nt_object::search(&bytes)] {
        assert_eq!((container.faults.len(), container.containers), (0, 1), "{name}");
        assert_eq!(container.entries.len(), 1 + kernels.len(), "{name}");
        assert_eq!(container.entries[0].kind, Kind::Elf);
        for ((index, entry), kernels) in (2..).zip(&container.entries[1..]).zip(kernels) {
            assert_eq!((entry.index, entry.container, entry.kind), (index, 1, Kind::Ptx), "{name}");
            assert_eq!(entry.arch.unwrap().to_string(), target);
            assert_eq!(entry.cubin.unwrap().to_string(), target);
            assert!(entry.section.as_deref().unwrap().starts_with(".nv_debug_ptx_txt"), "{name}");
            let text = entry.text(LIMIT).unwrap();
            assert_eq!(entry.kernels(text.as_bytes()).unwrap(), *kernels);
            assert_eq!(entry.disagreement(text.as_bytes()), None);
            assert!(!nt_ptx::parse(&text).1.has_errors(), "{name}");
            assert!(!text.contains(".section") && !text.contains('\0'), "{name}");
            let payload = entry.payload(LIMIT).unwrap();
            assert_eq!(entry.contents(&payload).unwrap(), text.as_bytes(), "{name}");
        }
    }
}

#[test]
fn cubins_of_compilers() {
    check_cubin("vector_add.sm_80.cubin", "sm_80", &[&["vector_add"]]);
    check_cubin("vector_add.sm_90a.cubin", "sm_90a", &[&["vector_add"]]);
    check_cubin("vector_add.sm_100a.cubin", "sm_100a", &[&["vector_add"]]);
    check_cubin("matmul.sm_90a.cubin", "sm_90a", &[&["matmul"]]);
    check_cubin("linked.sm_90.cubin", "sm_90", &[&["_Z5firstPi"], &["_Z6secondPi"]]);
    assert!(texts(&cubin("matmul.sm_90a.cubin"))[0].contains("wgmma.mma_async"));
}

/// File and line of each line of a text that holds an instruction or a declaration of a body.
fn sources(text: &str) -> BTreeMap<usize, Option<(String, u32)>> {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let files: BTreeMap<String, String> = text
        .lines()
        .filter(|line| words(line).first().is_some_and(|word| word == ".file"))
        .map(|line| (words(line)[1].clone(), line.split('"').nth(1).unwrap().to_owned()))
        .collect();
    let (mut now, mut sources) = (None, BTreeMap::new());
    for (number, line) in text.lines().enumerate() {
        let words = words(line);
        match words.first().map(String::as_str) {
            Some(".loc") => now = Some((files[&words[1]].clone(), words[2].parse().unwrap())),
            // One function's lines are not the next one's.
            Some(_) if line.contains(".entry") || line.contains(".func") => now = None,
            Some(word) if line.trim_end().ends_with(';') && !word.starts_with("//") => {
                sources.insert(number, now.clone());
            }
            _ => {}
        }
    }
    sources
}

/// The share of lines that come back, of those that had one; none that comes back is another. Line 0 is none.
fn share_of_lines_put_back(ptxas: &Path, name: &str) -> f64 {
    let original = std::fs::read_to_string(testdata().join("ptx").join(name)).unwrap();
    let target = nt_object::ptx::head(original.as_bytes()).target.unwrap().to_string();
    let texts = texts(&assemble(ptxas, &["-arch", &target, "-lineinfo"], &original));
    assert_eq!(texts.len(), 1, "{name}");
    let (expected, found) = (sources(&original), sources(&texts[0]));
    let (mut had, mut back) = (0, 0);
    for (line, source) in found {
        let known = |source: Option<(String, u32)>| source.filter(|(_, line)| *line > 0);
        let Some(original) = expected.get(&line).cloned().and_then(known) else { continue };
        had += 1;
        if let Some(source) = known(source) {
            assert_eq!(source, original, "{name}, line {}", line + 1);
            back += 1;
        }
    }
    assert!(had > 20, "{name}: {had}");
    f64::from(back) / f64::from(had)
}

/// The judge is the text that ptxas was given, which has its lines.
#[test]
fn source_lines_come_back() {
    let Some(ptxas) = ptxas() else { return };
    let mut told = String::new();
    for (name, least) in [
        ("triton/vector_add.sm_90a.ptx", 0.9),
        ("triton/softmax.sm_80.ptx", 0.9),
        ("triton/matmul.sm_90a.ptx", 0.9),
        ("triton/matmul.sm_100a.ptx", 0.7),
        ("triton/attention.sm_90a.ptx", 0.85),
        ("triton/attention.sm_120a.ptx", 0.9),
        ("triton-3.9/attention.sm_80.ptx", 0.85),
        ("nvcc/kernels.lineinfo.sm_90.ptx", 0.85),
        ("nvrtc/kernels.11_8.lineinfo.sm_80.ptx", 0.85),
        ("clang/kernels.debug.sm_100a.ptx", 0.75),
    ] {
        let share = share_of_lines_put_back(&ptxas, name);
        told += &format!("{name}: {:.1} %\n", share * 100.0);
        assert!(share > least, "{told}");
    }
    eprint!("{told}");
}

/// What Triton compiled stands in kernels.py; `folder` is the one that generate.sh works in.
#[test]
fn lines_of_triton_are_those_of_python() {
    let python = std::fs::read_to_string(testdata().join("ptx/triton/kernels.py")).unwrap();
    let check = |name: &str, instruction: &str, expected: &str| {
        let text = &texts(&cubin(name))[0];
        let mut found = 0;
        for (number, source) in sources(text) {
            if text.lines().nth(number).unwrap().contains(instruction) {
                let (file, line) = source.unwrap();
                assert_eq!(file, "/tmp/nt-corpora/kernels.py");
                // Of some code ptxas keeps no row, of every second wgmma for example.
                if line == 0 {
                    continue;
                }
                let line = python.lines().nth(line as usize - 1).unwrap();
                assert!(line.contains(expected), "{name}: {instruction}: {line}");
                found += 1;
            }
        }
        assert!(found > 0, "{name}: no {instruction}");
    };
    for name in ["vector_add.sm_80.cubin", "vector_add.sm_90a.cubin", "vector_add.sm_100a.cubin"] {
        check(name, "ld.global", "tl.load");
        check(name, "st.global", "tl.store");
        check(name, "%ctaid.x", "tl.program_id");
    }
    check("matmul.sm_90a.cubin", "wgmma.mma_async", "tl.dot");
    check("matmul.sm_90a.cubin", "cp.async.cg", "tl.load");
    check("matmul.sm_90a.cubin", "st.global", "tl.store");
}

/// Each text of a linked cubin has lines of its own file.
#[test]
fn lines_of_linked_texts() {
    for (text, (file, line)) in texts(&cubin("linked.sm_90.cubin"))
        .iter()
        .zip([("/tmp/nt-corpora/first.cu", 2), ("/tmp/nt-corpora/second.cu", 2)])
    {
        let sources = sources(text);
        assert!(sources.values().any(|source| *source == Some((file.to_owned(), line))), "{sources:?}");
        assert!(sources.values().flatten().all(|(found, _)| found == file), "{sources:?}");
    }
}

/// The texts are of Triton's own ptxas, which is another than ours: assembled again, the same text comes out.
#[test]
fn texts_of_committed_cubins_assemble() {
    let Some(ptxas) = ptxas() else { return };
    for (name, target) in [("vector_add.sm_100a.cubin", "sm_100a"), ("matmul.sm_90a.cubin", "sm_90a")] {
        let bytes = cubin(name);
        let text = &texts(&bytes)[0];
        let again = assemble(&ptxas, &["-arch", target, "-lineinfo"], text);
        // Nothing is lost a second time, but for source lines: those of code that the other ptxas leaves out.
        let without_lines = |text: &str| {
            let kept = text.lines().filter(|line| !line.starts_with(".file "));
            kept.map(|line| if line.starts_with(".loc ") { "" } else { line }).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(without_lines(&texts(&again)[0]), without_lines(text), "{name}");
    }
}

#[test]
fn the_devices_that_run_the_cubin_may_have_its_ptx() {
    let check = |name: &str, device: u32, expected: Result<&str, &str>| {
        let bytes = cubin(name);
        let container = nt_object::open(&bytes).unwrap();
        let best = nt_object::best_ptx(&container.entries, device);
        let told = best.as_ref().map(|best| best.reason.clone()).map_err(ToString::to_string);
        assert_eq!(told.as_deref().map_err(String::as_str), expected, "{name} on {device}");
    };
    check("vector_add.sm_90a.cubin", 90, Ok("sm_90a stands in the cubin that sm_90 runs"));
    check("vector_add.sm_90a.cubin", 100, Err("no PTX for sm_100; cubin for sm_90a present"));
    check("vector_add.sm_80.cubin", 80, Ok("sm_80 stands in the cubin that sm_80 runs"));
    check("vector_add.sm_80.cubin", 86, Ok("sm_80 stands in the cubin that sm_86 runs"));
    // Its PTX would do, but no driver runs the cubin there.
    check("vector_add.sm_80.cubin", 90, Err("no PTX for sm_90; cubin for sm_80 present"));
}

/// Two cubins in one file of other things: each has its container, and its PTX is of the same.
#[test]
fn cubins_inside_of_other_files() {
    let bytes = [b"rubbish!", &cubin("linked.sm_90.cubin")[..], &[0xff; 8], &cubin("vector_add.sm_80.cubin")]
        .concat();
    let container = nt_object::search(&bytes);
    let told: Vec<String> = container
        .entries
        .iter()
        .map(|entry| {
            // A linked text's section has a number behind.
            let section = entry.section.as_deref().unwrap().trim_end_matches(|c: char| c.is_ascii_digit());
            format!("{} {} {} {section}", entry.index, entry.container, entry.kind)
        })
        .collect();
    assert_eq!(
        told,
        [
            "1 1 elf embedded",
            "2 1 ptx embedded:.nv_debug_ptx_txt.",
            "3 1 ptx embedded:.nv_debug_ptx_txt.",
            "4 2 elf embedded",
            "5 2 ptx embedded:.nv_debug_ptx_txt",
        ]
    );
    assert!(container.entries.iter().all(|entry| entry.kind == Kind::Elf || entry.text(LIMIT).is_ok()));
}

#[test]
fn limits_and_damage_are_told() {
    let bytes = cubin("vector_add.sm_80.cubin");
    let container = nt_object::open(&bytes).unwrap();
    let entry = &container.entries[1];
    let error = entry.payload(100).unwrap_err();
    let size = entry.stored_size();
    assert_eq!(error.fault, nt_object::Fault::Limit { needed: size, limit: 100 });
    let at = usize::try_from(entry.at()).unwrap();
    let damaged = |offset: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[at + offset] = value;
        let container = nt_object::open(&bytes).unwrap();
        container.entries[1].text(LIMIT).unwrap_err().to_string()
    };
    let here = format!("PTX text at {at:#x}: ");
    assert_eq!(damaged(0, b'x'), format!("{here}the section holds no PTX"));
    assert_eq!(damaged(100, 0xff), format!("{here}byte 100 is not UTF-8"));
}
