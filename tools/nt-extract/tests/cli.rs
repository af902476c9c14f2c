//! The program as people call it: what it prints, what it writes, how it ends.
//!
//! Expected values come from `testdata/fatbin/generate.sh`, which states what the fatbins are made of, and from the
//! texts that the tests pack themselves.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first thing that is wrong")]

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fatbin").join(name)
}

struct Ended {
    code: i32,
    out: Vec<u8>,
    words: String,
}

/// Runs the program in a folder that holds the committed fatbins.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["raw", "lz4", "zstd", "group"] {
            std::fs::copy(data(&format!("tiny.{name}.fatbin")), folder.path().join(name)).unwrap();
        }
        Place { folder }
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.folder.path().join(name), bytes).unwrap();
    }

    fn get(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let files = std::fs::read_dir(self.folder.path().join(folder)).unwrap();
        let names: BTreeSet<String> =
            files.map(|f| f.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.into_iter().collect()
    }

    /// Words are separated by spaces.
    fn run(&self, words: &str) -> Ended {
        self.run_with(words, b"")
    }

    fn run_with(&self, words: &str, input: &[u8]) -> Ended {
        let mut child = Command::new(env!("CARGO_BIN_EXE_nt-extract"))
            .args(words.split_whitespace())
            .current_dir(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // Nobody reads it where no FILE is `-`.
        let _ = stdin.write_all(input);
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        Ended {
            code: output.status.code().unwrap(),
            out: output.stdout,
            words: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs, and compares exit code, stdout and stderr.
    #[track_caller]
    fn check(&self, words: &str, code: i32, out: &str, said: &str) {
        let ended = self.run(words);
        let found = (ended.code, String::from_utf8_lossy(&ended.out).into_owned(), ended.words);
        assert_eq!(found, (code, out.to_owned(), said.to_owned()), "nt-extract {words}");
    }
}

const HEADER: &str = "file\tindex\tkind\tarch\tptx\tbytes\tcompression\tsection\tkernels\n";

#[test]
fn a_listing_is_a_table() {
    let place = Place::new();
    let ended = place.run("-l raw zstd");
    let text = String::from_utf8(ended.out).unwrap();
    assert_eq!((ended.code, ended.words.as_str()), (0, ""));
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(text.lines().next().unwrap().to_owned() + "\n", HEADER);
    assert_eq!(rows.len(), 7);
    assert!(rows.iter().all(|row| row.len() == 9), "{text}");
    let column = |n: usize| -> Vec<&str> { rows.iter().skip(1).map(|row| row[n]).collect() };
    assert_eq!(column(0), ["raw", "raw", "raw", "zstd", "zstd", "zstd"]);
    assert_eq!(column(1), ["1", "2", "3", "1", "2", "3"]);
    assert_eq!(column(6), ["raw", "raw", "raw", "zstd", "zstd", "zstd"]);
    let images: BTreeSet<(&str, &str, &str)> =
        rows.iter().skip(1).map(|row| (row[2], row[3], row[4])).collect();
    assert_eq!(
        images,
        BTreeSet::from([("ptx", "sm_80", "9.0"), ("elf", "sm_80", "-"), ("ptx", "sm_90a", "9.0")])
    );
    assert!(column(8).iter().all(|names| ["tiny,_Z6tinierv", "_Z6tinierv,tiny"].contains(names)), "{text}");
    // Bytes are those of the files that are written.
    place.run("raw -o all");
    let mut sizes: Vec<String> =
        place.names("all").iter().map(|n| place.get(&format!("all/{n}")).len().to_string()).collect();
    let mut listed: Vec<String> = column(5).iter().take(3).map(|&size| size.to_owned()).collect();
    sizes.sort();
    listed.sort();
    assert_eq!(sizes, listed);
}

#[test]
fn all_forms_give_the_same_files() {
    let place = Place::new();
    let contents = |name: &str| -> BTreeSet<Vec<u8>> {
        let ended = place.run(&format!("{name} -o from-{name}"));
        assert_eq!((ended.code, ended.words.as_str()), (0, ""));
        let names = place.names(&format!("from-{name}"));
        assert_eq!(names.len(), 3);
        names.iter().map(|file| place.get(&format!("from-{name}/{file}"))).collect()
    };
    let raw = contents("raw");
    assert!(raw.iter().any(|bytes| bytes.starts_with(b"\x7fELF")));
    assert!(
        raw.iter().filter(|bytes| !bytes.starts_with(b"\x7fELF")).all(|text| !text.contains(&0)),
        "a NUL in PTX"
    );
    assert_eq!(raw, contents("lz4"));
    assert_eq!(raw, contents("zstd"));
    assert_eq!(raw, contents("group"));
}

#[test]
fn one_image_goes_to_a_pipe() {
    let place = Place::new();
    place.check(
        "--ptx raw",
        1,
        "",
        "nt-extract: 2 images are chosen, and standard output takes one: choose with `--ptx`, `--elf`, `--arch`, \
         `--device`, `-k` or `-i`, or give a folder with `-o DIR`; `-l` lists them\n",
    );
    let by_arch = place.run("--ptx --arch sm_90a raw");
    assert_eq!((by_arch.code, by_arch.words.as_str()), (0, ""));
    assert!(String::from_utf8(by_arch.out.clone()).unwrap().contains("\n.target sm_90a"));
    assert_eq!(place.run("--ptx --arch 90a -o - zstd").out, by_arch.out);
    let from_stdin = place.run_with("--ptx --arch 90a -", &place.get("group"));
    assert_eq!(from_stdin.out, by_arch.out);

    let elf = place.run("--elf raw");
    assert_eq!((elf.code, elf.words.as_str()), (0, ""));
    assert!(elf.out.starts_with(b"\x7fELF"));
    // A cubin by itself gives itself, PTX by itself loses its NULs.
    place.put("x.cubin", &elf.out);
    assert_eq!(place.run("x.cubin").out, elf.out);
    place.put("x.ptx", b".version 8.0\n.target sm_80\n\0\0");
    place.check("x.ptx", 0, ".version 8.0\n.target sm_80\n", "");
}

#[test]
fn a_device_gets_its_best_ptx_and_the_reason() {
    let place = Place::new();
    let check = |device: &str, target: &str, reason: &str| {
        let ended = place.run(&format!("--device {device} zstd"));
        assert_eq!(ended.code, 0, "{}", ended.words);
        assert!(ended.words.contains(reason), "{}", ended.words);
        let text = String::from_utf8(ended.out).unwrap();
        assert!(text.contains(&format!("\n.target {target}\n")), "{text}");
    };
    check("8.6", "sm_80", "sm_80 is the newest of sm_80, sm_90a that sm_86 runs\n");
    check("9.0", "sm_90a", "sm_90a is made for exactly this device\n");
    check("sm_100", "sm_80", "sm_90a is not forward compatible\n");
    place.check(
        "--device 7.5 zstd",
        4,
        "",
        "nt-extract: zstd: no PTX for sm_75; PTX for sm_80, sm_90a, cubin for sm_80 present\n",
    );
    assert_eq!(place.run("--device 7.5 --elf zstd").code, 2);
    assert_eq!(place.run("--device x zstd").code, 2);
}

#[test]
fn where_nothing_is_that_is_said() {
    let place = Place::new();
    let elf = place.run("--elf raw").out;
    place.put("x.cubin", &elf);
    let none = "nt-extract: x.cubin: no PTX; cubin for sm_80 present; a cubin compiled with -lineinfo holds its PTX\n";
    place.check("--ptx x.cubin", 4, "", none);
    place.check("-l --ptx x.cubin", 4, HEADER, none);
    place.check(
        "--arch 75 raw",
        4,
        "",
        "nt-extract: raw: nothing chosen of 3 images, which are for sm_80, sm_90a\n",
    );
    place.check("-k =tinny raw", 4, "", "nt-extract: raw: no kernel matched; the nearest: tiny\n");
    let shell = place.run("-l /bin/sh");
    assert_eq!(shell.code, 4);
    assert_eq!(
        shell.words,
        "nt-extract: /bin/sh: no device code; PTX kept as a string is found with `--scan`\n"
    );
    place.put("notes", b"hello");
    place.check("notes", 1, "", "nt-extract: notes: no container of device code, and no PTX\n");
    place.put("empty", b"");
    place.check("-l empty", 1, HEADER, "nt-extract: empty: an empty file\n");
    assert_eq!(place.run("-l nowhere").code, 2);
    assert_eq!(place.run("-l nowhere raw").code, 2, "the others are listed, and the failure shows");
    assert_eq!(place.run("").code, 2);
}

#[test]
fn kernels_choose() {
    let place = Place::new();
    let ended = place.run("-l -k tinier raw");
    let text = String::from_utf8(ended.out).unwrap();
    assert!(text.lines().skip(1).all(|line| line.ends_with("\t_Z6tinierv")), "{text}");
    assert_eq!(ended.words.matches("matched _Z6tinierv\n").count(), 3, "{}", ended.words);
    // By the name that a programmer writes, which is no part of the symbol.
    assert_eq!(place.run("-k =tinier() --ptx --arch 80 raw").code, 0);
}

#[test]
fn what_is_damaged_is_named_and_the_rest_written() {
    let place = Place::new();
    let whole = place.get("raw");
    place.put("cut", &whole[..whole.len() - 8]);
    let ended = place.run("cut -o out");
    assert_eq!(ended.code, 5);
    assert!(ended.words.starts_with("nt-extract: cut: payload size at 0x"), "{}", ended.words);
    assert_eq!(place.names("out").len(), 2);
    place.put("hardly", &whole[..20]);
    assert_eq!(place.run("hardly -o out").code, 1);

    // A stream that is damaged inside takes its image alone with it.
    let mut bytes = place.get("zstd");
    bytes[0x60..0x68].fill(0);
    place.put("stream", &bytes);
    let ended = place.run("-l stream");
    assert_eq!((ended.code, String::from_utf8(ended.out).unwrap().lines().count()), (5, 4));
    assert!(
        ended.words.starts_with("nt-extract: stream: entry 1: payload at 0x60: zstd stream is damaged"),
        "{}",
        ended.words
    );
    assert_eq!(place.run("stream -o stream.out").code, 5);
    assert_eq!(place.names("stream.out").len(), 2);

    // Text after a NUL would be lost to a driver: it is not written short.
    place.put("nul.ptx", b".version 8.0\n.target sm_80\n\0\0junk");
    place.check(
        "nul.ptx",
        1,
        "",
        "nt-extract: nul.ptx: entry 1: PTX text at 0x0: interior NUL at byte 27, and the text goes on after it\n",
    );
}

#[test]
fn a_limit_is_kept() {
    let place = Place::new();
    let ended = place.run("-l --limit 100 zstd");
    assert_eq!(ended.code, 5);
    assert!(ended.words.contains("bytes, over the limit of 100\n"), "{}", ended.words);
}

/// As many images as a real program has, all of one architecture: none overwrites another.
#[test]
fn a_hundred_and_twenty_images_get_a_file_each() {
    let place = Place::new();
    let mut bytes = Vec::new();
    for _ in 0..40 {
        bytes.extend(place.get("raw"));
    }
    place.put("many.so", &bytes);
    assert_eq!(place.run("many.so -o out").code, 0);
    let names = place.names("out");
    assert_eq!(names.len(), 120);
    assert!(
        names.iter().any(|name| name == "many.so.001.sm_80.ptx" || name == "many.so.001.sm_80.cubin"),
        "{names:?}"
    );
    // The same again is the same.
    place.run("many.so -o again");
    assert_eq!(place.names("again"), names);
    // Two inputs of one name do not share files.
    std::fs::create_dir(place.folder.path().join("sub")).unwrap();
    place.put("sub/many.so", &bytes);
    place.run("many.so sub/many.so -o both");
    assert_eq!(place.names("both").len(), 240);
}

#[test]
fn strings_are_found_when_asked_for() {
    let place = Place::new();
    let mut program = std::fs::read("/bin/true").unwrap();
    let ptx = b".version 7.5\n.target sm_80\n.address_size 64\n.visible .entry hidden() { ret; }\n";
    // `.rodata` is not touched: behind the sections is as good a place for the search.
    program.extend(b"\0\0\0.version\0");
    program.extend(ptx);
    program.extend(b"\0more");
    place.put("program", &program);
    assert_eq!(place.run("program").code, 4);
    let ended = place.run("--scan program");
    assert_eq!((ended.code, ended.words.as_str()), (0, ""));
    assert_eq!(ended.out, ptx);
    let listed = String::from_utf8(place.run("--scan -l program").out).unwrap();
    assert!(
        listed.ends_with(&format!("\tptx\tsm_80\t7.5\t{}\traw\tstring\thidden\n", ptx.len())),
        "{listed}"
    );
    // What fatbins hold is not found twice.
    assert_eq!(place.run("--scan -l raw").out, place.run("-l raw").out);
}

#[test]
fn a_reader_that_leaves_is_no_fault() {
    let place = Place::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_nt-extract"))
        .args(["-l", "raw"])
        .current_dir(place.folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

/// A Triton cubin: itself, and the PTX that it was made of.
#[test]
fn a_cubin_gives_its_ptx() {
    let place = Place::new();
    for name in ["matmul.sm_90a.cubin", "linked.sm_90.cubin"] {
        std::fs::copy(data("../cubin").join(name), place.folder.path().join(name)).unwrap();
    }
    let listed = place.run("-l matmul.sm_90a.cubin");
    let text = String::from_utf8(listed.out).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split('\t').collect()).collect();
    assert_eq!((listed.code, listed.words.as_str(), rows.len()), (0, "", 2), "{text}");
    let row = &rows[1];
    assert_eq!(row[1..5], ["2", "ptx", "sm_90a", "8.7"]);
    assert_eq!(row[6..], ["debug", ".nv_debug_ptx_txt", "matmul"]);

    let written = place.run("--ptx matmul.sm_90a.cubin");
    let ptx = String::from_utf8(written.out).unwrap();
    assert_eq!((written.code, written.words.as_str(), ptx.len().to_string().as_str()), (0, "", row[5]));
    assert!(ptx.contains("\n.target sm_90a\n") && ptx.contains("wgmma.mma_async") && !ptx.contains('\0'));

    // Which of a linked cubin's texts has the kernel.
    let chosen = place.run("--ptx -k second linked.sm_90.cubin");
    assert!(
        String::from_utf8(chosen.out).unwrap().contains(".visible .entry _Z6secondPi("),
        "{}",
        chosen.words
    );
    let device = place.run("--device 9.0 matmul.sm_90a.cubin");
    assert_eq!(device.out, ptx.as_bytes());
    place.check(
        "--device 10.0 matmul.sm_90a.cubin",
        4,
        "",
        "nt-extract: matmul.sm_90a.cubin: no PTX for sm_100; cubin for sm_90a present\n",
    );
}
