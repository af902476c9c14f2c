//! Speed of weaving real PTX: `cargo bench -p nt-weave`. Bytes are those of the input.
//!
//! The input is nvcc's output for the eleven bench kernels, repeated under different names to some 16 MB, the size of
//! a large framework's module: 4,800 kernels, 9,600 sites.

#![allow(clippy::unwrap_used, reason = "what is missing ends the run")]

use divan::Bencher;
use divan::counter::BytesCount;
use nt_ir::Prepared;

fn main() {
    divan::main();
}

/// The bench kernels again and again, every name with the number of its copy.
fn large(size: usize) -> String {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/ptx/nvcc/kernels.sm_90.ptx");
    let text = std::fs::read_to_string(file).unwrap();
    let (module, _) = nt_ptx::parse(&text);
    let names: Vec<&str> = module.kernels().map(|kernel| module.at(kernel.name)).collect();
    let (header, kernels) = text.split_once(".address_size 64\n").unwrap();
    let mut out = format!("{header}.address_size 64\n");
    for copy in 0.. {
        if size <= out.len() {
            break;
        }
        out.push_str(
            &names
                .iter()
                .fold(kernels.to_owned(), |text, name| text.replace(name, &format!("{name}{copy}_"))),
        );
    }
    out
}

fn block_sched() -> Prepared {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/probes/block_sched.ir");
    let (program, _) = nt_ir::text::parse(&std::fs::read_to_string(file).unwrap());
    nt_ir::prepare(program.unwrap(), nt_ir::Options::default()).unwrap()
}

#[divan::bench(sample_count = 10)]
fn weave(bencher: Bencher<'_, '_>) {
    let (text, probe) = (large(16 << 20), block_sched());
    let (module, mut found) = nt_ptx::parse(&text);
    let info = nt_ptx::resolve(&module, &mut found);
    let all: Vec<usize> = (0..module.functions.len()).collect();
    bencher
        .counter(BytesCount::of_str(&text))
        .bench(|| nt_weave::weave(&module, &info, &probe, &all).text.len());
}

#[divan::bench(sample_count = 10)]
fn prune(bencher: Bencher<'_, '_>) {
    let text = large(16 << 20);
    let (module, mut found) = nt_ptx::parse(&text);
    let info = nt_ptx::resolve(&module, &mut found);
    bencher.counter(BytesCount::of_str(&text)).bench(|| nt_weave::prune(&module, &info, 0).len());
}

/// All that nt-inject does with a text, but for reading and writing files.
#[divan::bench(sample_count = 3)]
fn inject(bencher: Bencher<'_, '_>) {
    let (text, probe) = (large(16 << 20), block_sched());
    bencher.counter(BytesCount::of_str(&text)).bench(|| {
        let (module, mut found) = nt_ptx::parse(&text);
        let info = nt_ptx::resolve(&module, &mut found);
        let all: Vec<usize> = (0..module.functions.len()).collect();
        let woven = nt_weave::weave(&module, &info, &probe, &all);
        assert!(nt_verify::check(&text, &woven.text).is_accepted());
        woven.text.len()
    });
}
