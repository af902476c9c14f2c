//! NVIDIA's own tools as makers and judges: nvcc and fatbinary make containers, cuobjdump says what is in them.
//!
//! Where the tools are missing (`make deps` brings them) each test says that it is skipped.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test stops at the first thing that is wrong")]

use nt_object::{Kind, LIMIT};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A tool of `make deps`, else of PATH.
fn tool(name: &str) -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/bin").join(name);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(own).chain(std::env::split_paths(&path).map(|folder| folder.join(name)));
    all.into_iter().find(|file| file.is_file())
}

/// The tools, or none with a word of it.
fn tools<const N: usize>(names: [&str; N]) -> Option<[PathBuf; N]> {
    let found: Vec<PathBuf> = names.iter().filter_map(|name| tool(name)).collect();
    let found = found.try_into().ok();
    if found.is_none() {
        eprintln!("skipped: one of {} is missing; `make deps` brings it", names.join(", "));
    }
    found
}

/// Runs a tool in `folder`; the words are separated by spaces.
#[track_caller]
fn run(tool: &Path, folder: &Path, words: &str) -> String {
    let output = Command::new(tool).args(words.split_whitespace()).current_dir(folder).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{} {words}\n{text}{}",
        tool.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

const SOURCE: &str = "
__device__ int counter;
__device__ __noinline__ int helper(int x) { return x * counter; }
__global__ void first(int *p, int n) { if (threadIdx.x < n) p[threadIdx.x] = helper(n); }
template <typename T> __global__ void second(T *p) { *p += 1; }
template __global__ void second<float>(float *);
template __global__ void second<double>(double *);
";
const TARGETS: &str = "-gencode arch=compute_80,code=[sm_80,compute_80] -gencode arch=compute_90a,code=[sm_90a,compute_90a] \
                       -gencode arch=compute_100f,code=[sm_100f,compute_100f]";

/// The images that cuobjdump takes out of `file`: PTX without the NULs at its end, and cubins.
fn judged(cuobjdump: &Path, file: &Path) -> (BTreeSet<Vec<u8>>, BTreeSet<Vec<u8>>) {
    let folder = tempfile::tempdir().unwrap();
    for what in ["-xptx", "-xelf"] {
        // It fails on a file that has none.
        let _ =
            Command::new(cuobjdump).args(["-all", what, "all"]).arg(file).current_dir(folder.path()).output();
    }
    let (mut ptx, mut elf) = (BTreeSet::new(), BTreeSet::new());
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let path = file.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        if path.extension().is_some_and(|ending| ending == "ptx") {
            bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
            ptx.insert(bytes);
        } else {
            elf.insert(bytes);
        }
    }
    (ptx, elf)
}

fn ours(bytes: &[u8]) -> (BTreeSet<Vec<u8>>, BTreeSet<Vec<u8>>) {
    let container = nt_object::open(bytes).unwrap();
    assert_eq!(container.faults, []);
    let (mut ptx, mut elf) = (BTreeSet::new(), BTreeSet::new());
    // cuobjdump does not look into cubins for the PTX that they were made of.
    for entry in container.entries.iter().filter(|entry| entry.cubin.is_none()) {
        let payload = entry.payload(LIMIT).unwrap();
        let contents = entry.contents(&payload).unwrap();
        assert_eq!(entry.disagreement(contents), None, "entry {}", entry.index);
        let images = if entry.kind == Kind::Ptx { &mut ptx } else { &mut elf };
        images.insert(contents.to_vec());
    }
    (ptx, elf)
}

#[test]
fn every_compression_gives_what_cuobjdump_gives() {
    let Some([nvcc, fatbinary, cuobjdump]) = tools(["nvcc", "fatbinary", "cuobjdump"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.cu"), SOURCE).unwrap();
    // nvcc is slow: its images are taken out once, and packed anew in every way.
    run(&nvcc, folder.path(), &format!("-fatbin {TARGETS} k.cu -o k.fatbin"));
    let packed = std::fs::read(folder.path().join("k.fatbin")).unwrap();
    let expected = ours(&packed);
    assert_eq!((expected.0.len(), expected.1.len()), (3, 3));
    assert!(
        expected == judged(&cuobjdump, &folder.path().join("k.fatbin")),
        "cuobjdump takes out other images"
    );
    let mut images = String::new();
    for entry in &nt_object::open(&packed).unwrap().entries {
        let payload = entry.payload(LIMIT).unwrap();
        let name = format!("image.{}", entry.index);
        std::fs::write(folder.path().join(&name), entry.contents(&payload).unwrap()).unwrap();
        let arch = entry.arch.unwrap().to_string();
        images += &format!(" --image3=kind={},sm={},file={name}", entry.kind, &arch["sm_".len()..]);
    }
    for mode in ["none", "speed", "default", "size", "balance"] {
        for all in ["", "-compress-all"] {
            let file = folder.path().join(format!("{mode}{all}.fatbin"));
            run(
                &fatbinary,
                folder.path(),
                &format!("--create={mode}{all}.fatbin -64 --compress-mode={mode} {all}{images}"),
            );
            let found = ours(&std::fs::read(&file).unwrap());
            assert!(found == judged(&cuobjdump, &file), "{mode} {all}: cuobjdump takes out other images");
            assert_eq!(found.1, expected.1, "{mode} {all}");
            // fatbinary puts newlines in front, each time.
            let texts = |set: &BTreeSet<Vec<u8>>| -> BTreeSet<Vec<u8>> {
                set.iter().map(|text| text.trim_ascii_start().to_vec()).collect()
            };
            assert_eq!(texts(&found.0), texts(&expected.0), "{mode} {all}");
        }
    }
}

#[test]
fn object_files_archives_and_stripped_libraries() {
    let Some([nvcc, cuobjdump]) = tools(["nvcc", "cuobjdump"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.cu"), SOURCE).unwrap();
    run(&nvcc, folder.path(), &format!("-c {TARGETS} -Xcompiler=-fPIC k.cu -o k.o"));
    run(&nvcc, folder.path(), &format!("-rdc=true -lineinfo -c {TARGETS} -Xcompiler=-fPIC k.cu -o rdc.o"));
    run(&nvcc, folder.path(), &format!("-lib {TARGETS} k.o rdc.o -o k.a"));
    let library = "-shared -nostdlib -Wl,--unresolved-symbols=ignore-all k.o -o k.so";
    run(Path::new("/usr/bin/gcc"), folder.path(), library);

    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    let judged = |name: &str| judged(&cuobjdump, &folder.path().join(name));
    for name in ["k.o", "rdc.o", "k.a", "k.so"] {
        let found = ours(&read(name));
        assert!(found.0.len() >= 3 && found.1.len() >= 3, "{name}");
        assert!(found == judged(name), "{name}: cuobjdump takes out other images");
    }
    let sections = |bytes: &[u8]| -> BTreeSet<String> {
        let container = nt_object::open(bytes).unwrap();
        container.entries.iter().filter_map(|entry| entry.section.as_deref().map(str::to_owned)).collect()
    };
    assert_eq!(sections(&read("k.so")), BTreeSet::from([".nv_fatbin".to_owned()]));
    assert_eq!(sections(&read("rdc.o")), BTreeSet::from(["__nv_relfatbin".to_owned()]));
    let members = ["k.o:.nv_fatbin", "rdc.o:__nv_relfatbin"].map(str::to_owned);
    assert_eq!(sections(&read("k.a")), BTreeSet::from(members));

    // Without section headers, and with damaged ones, the segments are searched.
    let whole = ours(&read("k.so"));
    let mut stripped = read("k.so");
    stripped[0x28..0x30].fill(0); // e_shoff
    stripped[0x3c..0x40].fill(0); // e_shnum, e_shstrndx
    assert!(ours(&stripped) == whole);
    let mut damaged = read("k.so");
    damaged[0x28..0x30].fill(0xff);
    let container = nt_object::open(&damaged).unwrap();
    assert_eq!((container.entries.len(), container.faults.len()), (6, 1));
    assert_eq!(container.faults[0].field, "section headers");
}

#[test]
fn kernels_of_cubins_are_the_entries_that_cuobjdump_names() {
    let Some([nvcc, cuobjdump]) = tools(["nvcc", "cuobjdump"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.cu"), SOURCE).unwrap();
    for (arch, options) in
        [("sm_80", ""), ("sm_90a", "-rdc=true -lineinfo"), ("sm_100f", "-G"), ("sm_120", "")]
    {
        run(&nvcc, folder.path(), &format!("-cubin -arch={arch} {options} k.cu -o k.cubin"));
        // `FUNC          GLOBAL  DEFAULT    ENTRY                                _Z5firstPii`
        let symbols = run(&cuobjdump, folder.path(), "-symbols k.cubin");
        let words = |line: &'_ str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let named =
            symbols.lines().map(words).filter(|words| words.get(3).is_some_and(|word| word == "ENTRY"));
        let named: BTreeSet<String> = named.filter_map(|mut words| words.pop()).collect();
        assert_eq!(named.len(), 3, "{symbols}");
        let bytes = std::fs::read(folder.path().join("k.cubin")).unwrap();
        let cubin = nt_object::cubin::read(&bytes, 0).unwrap();
        let kernels: BTreeSet<String> = cubin.kernels.iter().cloned().collect();
        assert_eq!(kernels, named, "{arch}");
        assert_eq!((cubin.arch.to_string().as_str(), cubin.suffix_known), (arch, true));
        assert_eq!(cubin.len, bytes.len() as u64);
        assert_eq!(cubin.debug_ptx.len(), usize::from(!options.is_empty()), "{arch}");
    }
}

/// The texts themselves are the judge: cuobjdump writes all of them into one file name, the one over the other.
#[test]
fn a_hundred_and_twenty_ptx_of_one_architecture() {
    let Some([fatbinary]) = tools(["fatbinary"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(fatbinary);
    command.args(["--create=x.fatbin", "-64", "--ident=same.cu"]).current_dir(folder.path());
    let text = |i: u32| {
        format!(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k{i}() {{ ret; }}\n")
    };
    for i in 0..120 {
        std::fs::write(folder.path().join(format!("{i}.ptx")), text(i)).unwrap();
        command.arg(format!("--image3=kind=ptx,sm=80,file={i}.ptx"));
    }
    assert!(command.output().unwrap().status.success());
    let bytes = std::fs::read(folder.path().join("x.fatbin")).unwrap();
    let container = nt_object::open(&bytes).unwrap();
    assert_eq!((container.entries.len(), container.faults.len()), (120, 0));
    let mut found = BTreeSet::new();
    for entry in &container.entries {
        assert_eq!(entry.source, Some("same.cu"));
        let payload = entry.payload(LIMIT).unwrap();
        let contents = entry.contents(&payload).unwrap();
        assert_eq!(entry.kernels(contents).unwrap().len(), 1);
        // fatbinary puts newlines in front.
        found.insert(String::from_utf8(contents.to_vec()).unwrap().trim_start().to_owned());
    }
    assert_eq!(found, (0..120).map(text).collect());
}

/// A mix of kinds: a raw cubin does not end the walk before the compressed PTX behind it.
#[test]
fn compression_is_decided_by_entry() {
    let Some([nvcc, fatbinary]) = tools(["nvcc", "fatbinary"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.cu"), SOURCE).unwrap();
    run(&nvcc, folder.path(), "-cubin -arch=sm_80 k.cu -o k.cubin");
    run(&nvcc, folder.path(), "-ptx -arch=compute_80 k.cu -o k.ptx");
    let images = "--image3=kind=elf,sm=80,file=k.cubin --image3=kind=ptx,sm=80,file=k.ptx";
    run(&fatbinary, folder.path(), &format!("--create=x.fatbin -64 {images}"));
    let bytes = std::fs::read(folder.path().join("x.fatbin")).unwrap();
    let container = nt_object::open(&bytes).unwrap();
    let told: Vec<String> =
        container.entries.iter().map(|e| format!("{} {}", e.kind, e.compression)).collect();
    assert_eq!(told, ["elf raw", "ptx zstd"]);
}

/// Without PTX of its own a fatbin has that of its cubins, if these stand there raw, as they do by default.
#[test]
fn ptx_of_cubins_in_fatbins() {
    let Some([nvcc]) = tools(["nvcc"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.cu"), SOURCE).unwrap();
    let images = |options: &str| -> Vec<u8> {
        run(&nvcc, folder.path(), &format!("-fatbin -lineinfo {options} k.cu -o k.fatbin"));
        std::fs::read(folder.path().join("k.fatbin")).unwrap()
    };
    let only = images("-gencode arch=compute_80,code=sm_90 -fmad=false -maxrregcount=40");
    let container = nt_object::open(&only).unwrap();
    let told: Vec<String> = container
        .entries
        .iter()
        .map(|e| format!("{} {} {}", e.kind, e.arch.unwrap(), e.section.as_deref().unwrap_or("-")))
        .collect();
    assert_eq!(told, ["elf sm_90 -", "ptx sm_80 .nv_debug_ptx_txt"]);
    assert_eq!(container.entries[1].options.as_deref(), Some("-maxrregcount 40 -fmad false"));
    let best = |device| nt_object::best_ptx(&container.entries, device).map(|best| best.entry.index);
    assert_eq!(best(90).unwrap(), 2);
    // No driver runs the cubin there, though sm_80's PTX would do.
    assert!(best(80).is_err() && best(100).is_err());

    // With PTX of the same architecture this one is taken: it has its source lines.
    let both = images("-gencode arch=compute_90,code=[sm_90,compute_90]");
    let container = nt_object::open(&both).unwrap();
    assert_eq!(container.entries.iter().filter(|entry| entry.kind == Kind::Ptx).count(), 2);
    let best = nt_object::best_ptx(&container.entries, 90).unwrap();
    assert_eq!(best.entry.cubin, None);
    assert!(best.entry.text(LIMIT).unwrap().contains(".loc"));

    let packed = images("-gencode arch=compute_80,code=sm_90 -Xfatbin=-compress-all");
    assert_eq!(nt_object::open(&packed).unwrap().entries.len(), 1);
}
