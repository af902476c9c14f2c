//! Parameters and limits of kernels, with ptxas as the judge: whatever list of parameters a kernel has, however many
//! registers it may take, what is woven is taken without a new word, within the same bounds.
//!
//! Needs `ptxas` (and, for budgets by `setmaxnreg`, `nvdisasm`) on PATH, and says so where there is none.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may stop at the first thing that is wrong, and say what"
)]

use nt_engine::assemble::{Arch, Assembler, SOURCE, Usage, Verbose, read};
use nt_ir::Prepared;
use std::fmt::Write as _;
use std::process::Command;

/// Probes that take few registers, many, and memory of their own.
const PROBES: [&str; 3] = ["block_sched", "dmat", "hot_lines"];

fn assembler() -> Option<Assembler> {
    let found = Assembler::find(None).unwrap();
    if found.is_none() {
        eprintln!("no ptxas: skipped");
    }
    found
}

fn probe(name: &str) -> Prepared {
    let source = nt_probe::shipped(name).unwrap();
    let (program, _) = nt_probe::compile(source, name);
    nt_ir::prepare(program.unwrap(), nt_ir::Options::default()).unwrap()
}

/// The text with a probe in all its kernels, which the verifier accepts.
fn woven(ptx: &str, probe: &Prepared) -> nt_weave::Woven {
    let (module, mut found) = nt_ptx::parse(ptx);
    let info = nt_ptx::resolve(&module, &mut found);
    assert!(!found.has_errors(), "{found:?}");
    let all: Vec<usize> = (0..module.functions.len()).collect();
    let woven = nt_weave::weave(&module, &info, probe, &all);
    let report = nt_verify::check(ptx, &woven.text);
    assert!(report.is_accepted(), "{:?}\n{}", report.violations(), woven.text);
    woven
}

/// A kernel whose loads are all under way at once, so that it wants a register for each.
fn busy(head: &str, loads: u32) -> String {
    let mut text = String::from(head);
    let _ =
        write!(text, "\n{{\n\t.reg .b32 %r<{}>;\n\t.reg .f32 %f<{}>;\n\t.reg .b64 %rd<4>;\n", 4, loads + 2);
    text.push_str("\tld.param.u64 %rd1, [p];\n\tmov.u32 %r1, %tid.x;\n\tmad.wide.u32 %rd2, %r1, 4, %rd1;\n");
    for load in 0..loads {
        let _ = writeln!(text, "\tld.volatile.global.f32 %f{}, [%rd2+{}];", load + 1, load * 4096);
    }
    // What comes behind a barrier waits for it, and all of them with it.
    text.push_str("\tbar.sync 0;\n\tld.volatile.global.f32 %f0, [%rd2];\n");
    for load in 0..loads {
        let _ = writeln!(text, "\tfma.rn.f32 %f0, %f{0}, %f{0}, %f0;", load + 1);
    }
    text.push_str("\tst.global.f32 [%rd2], %f0;\n\tret;\n}\n");
    text
}

fn module(version: &str, target: &str, kernels: &str) -> String {
    format!(".version {version}\n.target {target}\n.address_size 64\n{kernels}")
}

fn said(assembler: &Assembler, ptx: &str, arch: &str) -> Verbose {
    let out = assembler.run(ptx, Arch::parse(arch).unwrap()).unwrap_or_else(|why| panic!("{why}\n{ptx}"));
    read(&out.output, SOURCE)
}

/// Weaves every probe into a text; what ptxas says of the one kernel before and after, with nothing new beside it.
fn both(ptx: &str, arch: &str, check: impl Fn(&str, Usage, Usage)) {
    let Some(assembler) = assembler() else { return };
    let before = said(&assembler, ptx, arch);
    for name in PROBES {
        let woven = woven(ptx, &probe(name));
        assert_eq!(woven.refused, [], "{name}");
        let after = said(&assembler, &woven.text, arch);
        let words = |all: &Verbose| all.remarks.iter().map(|remark| remark.text.clone()).collect::<Vec<_>>();
        assert_eq!(words(&after), words(&before), "{name}");
        for (kernel, is) in &after.kernels {
            check(name, before.kernels[kernel], *is);
        }
    }
}

/// Lists of parameters, and none, in every way that they are written.
#[test]
fn lists_of_parameters() {
    let body = "{ .reg .b32 %r<2>; .reg .b64 %rd<2>; mov.u32 %r1, %tid.x; mov.u64 %rd1, 4096; cvta.to.global.u64 %rd1, %rd1; st.global.u32 [%rd1], %r1; ret; }";
    for list in [
        "",
        "()",
        "( )",
        "(\n)",
        "(.param .u64 p)",
        "(.param .u64 p, .param .u32 n, .param .f32 x)",
        "(\n\t.param .u64 p,\n\t.param .u8 n\n)",
        "(.param .align 16 .b8 s[48], .param .align 1 .b8 t[3])",
        "(.param .align 128 .b8 map[128])",
        "(.param .b8 s[7])",
        "(.param .u64 .ptr .global .align 16 p)",
    ] {
        both(&module("8.3", "sm_90", &format!(".visible .entry k{list}\n{body}\n")), "sm_90", |_, _, _| ());
    }
}

/// 4,352 bytes without the newer version, 32,764 with it, the context included; and not one byte more.
#[test]
fn room_for_parameters() {
    let Some(assembler) = assembler() else { return };
    let kernel = |bytes: u32| format!(".visible .entry k(.param .align 8 .b8 a[{bytes}]) {{ ret; }}\n");
    let probe = probe("block_sched");
    // The context of block_sched has 24 bytes.
    for (bytes, raised) in [(4328, None), (4336, Some((8, 1))), (32736, Some((8, 1)))] {
        let ptx = module("8.0", "sm_90", &kernel(bytes));
        let woven = woven(&ptx, &probe);
        assert_eq!(woven.kernels[0].context_size, 24);
        assert_eq!(woven.raised.map(|raised| raised.to), raised, "{bytes}");
        said(&assembler, &woven.text, "sm_90");
        // The limit is ptxas's, not ours.
        let over = module("8.0", "sm_90", &kernel(4360));
        assert!(assembler.run(&over, Arch::plain(90)).is_err());
    }
    let woven = woven(&module("8.1", "sm_90", &kernel(32744)), &probe);
    assert_eq!(woven.refused[0].1.slug, "no-room-for-context");
}

/// What a kernel says of its launches and registers holds with a probe in it too; where that is not enough, ptxas spills.
#[test]
fn bounds_of_registers() {
    for (bounds, most) in [
        (".maxntid 1024, 1, 1", 64),
        (".maxntid 256 .minnctapersm 4", 64),
        (".reqntid 128, 2 .minnctapersm 2", 128),
        (".maxnreg 32", 32),
        (".maxntid 128 .maxnreg 40", 40),
        (".reqntid 1024 .reqnctapercluster 2 .explicitcluster", 64),
        (".maxntid 512 .maxclusterrank 4", 128),
        ("", 255),
    ] {
        let head = format!(".visible .entry k(.param .u64 p) {bounds}");
        both(&module("8.3", "sm_90", &busy(&head, most - 14)), "sm_90", |name, before, after| {
            let at = format!("{name}, {bounds}");
            // Near its limit, and not beyond it.
            assert!((most - 14..=most).contains(&before.registers.unwrap()), "{at}: {before:?}");
            assert!(after.registers.unwrap() <= most, "{at}: {after:?}");
        });
    }
}

/// A producer that has given most of its registers away, and a consumer that has taken them.
fn specialised(budget: u32, loads: u32) -> String {
    let mut text = String::from(
        ".visible .entry k(.param .u64 p) .reqntid 384 .minnctapersm 1\n{\n\t.reg .pred %p<4>;\n\t.reg .b32 %r<128>;\n\
         \t.reg .f32 %f<128>;\n\t.reg .b64 %rd<8>;\n\tld.param.u64 %rd1, [p];\n\tmov.u32 %r1, %tid.x;\n\
         \tsetp.lt.u32 %p1, %r1, 128;\n\tmad.wide.u32 %rd3, %r1, 4, %rd1;\n\t@%p1 bra $L_producer;\n\
         \tsetmaxnreg.inc.sync.aligned.u32 232;\n",
    );
    for load in 1..100 {
        let _ = writeln!(text, "\tld.global.f32 %f{load}, [%rd3+{}];", load * 512);
    }
    text.push_str("\tbar.sync 1, 256;\n\tmov.f32 %f0, 0f00000000;\n");
    for load in 1..100 {
        let _ = writeln!(text, "\tfma.rn.f32 %f0, %f{load}, %f{load}, %f0;");
    }
    let _ = writeln!(text, "\tst.global.f32 [%rd3], %f0;\n\tbra $L_done;\n$L_producer:");
    let _ = writeln!(text, "\tsetmaxnreg.dec.sync.aligned.u32 {budget};");
    for load in 1..=loads {
        let _ = writeln!(text, "\tld.volatile.global.u32 %r{}, [%rd3+{}];", load + 9, load * 256);
    }
    text.push_str("\tmov.u32 %r2, 0;\n");
    for load in 1..=loads {
        let _ = writeln!(text, "\txor.b32 %r2, %r2, %r{};", load + 9);
    }
    text.push_str("\tst.global.u32 [%rd3+65536], %r2;\n$L_done:\n\tret;\n}\n");
    module("8.3", "sm_90a", &text)
}

/// The registers that machine code behind the last `setmaxnreg.dec` names, and how many it left.
fn behind_the_budget(cubin: &[u8]) -> Option<(u32, u32)> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("k.cubin");
    std::fs::write(&file, cubin).unwrap();
    let out = Command::new("nvdisasm").arg("-c").arg(&file).output().ok()?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let (_, behind) = text.rsplit_once("USETMAXREG.DEALLOC")?;
    let budget = behind.split("0x").nth(1)?.split(|c: char| !c.is_ascii_hexdigit()).next()?;
    let numbers = behind.split(|c: char| !c.is_ascii_alphanumeric()).filter_map(|word| {
        let number = word.strip_prefix('R')?;
        number.parse::<u32>().ok()
    });
    Some((numbers.max()? + 1, u32::from_str_radix(budget, 16).ok()?))
}

/// ptxas keeps each part of a kernel within what `setmaxnreg` leaves it, with a probe in it too: what does not fit is spilled.
#[test]
fn budgets_by_setmaxnreg() {
    let Some(assembler) = assembler() else { return };
    for loads in [4, 17] {
        let ptx = specialised(24, loads);
        let before = said(&assembler, &ptx, "sm_90a");
        assert_eq!(before.remarks, [], "`setmaxnreg` counts");
        for name in PROBES {
            let woven = woven(&ptx, &probe(name));
            assert_eq!(woven.refused, [], "{name}");
            let out = assembler.run(&woven.text, Arch::parse("sm_90a").unwrap()).unwrap();
            let after = read(&out.output, SOURCE);
            // Not C7508, which says that it is ignored.
            assert_eq!(after.remarks, [], "{name}");
            assert_eq!(after.kernels["k"].registers, before.kernels["k"].registers, "{name}");
            match behind_the_budget(&out.cubin) {
                Some((used, budget)) => {
                    assert_eq!(budget, 24);
                    assert!(used <= budget, "{name}: {used} registers where {budget} are left");
                }
                None => eprintln!("no nvdisasm: budgets are not looked at"),
            }
        }
    }
}
