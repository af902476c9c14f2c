//! The program as a user meets it: what goes to stdout, what to stderr, and how it ends.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may stop at the first thing that is wrong, and say what"
)]

use std::io::Write;
use std::process::{Command, Output, Stdio};

const MODULE: &str = "\
.version 8.5
.target sm_90
.address_size 64

.visible .entry _Z4gemmPfi(.param .u64 p, .param .u32 n)
{
	.reg .pred %p1;
	setp.eq.u32 %p1, 1, 1;
	@%p1 ret;
	ret;
}
.visible .entry tail() { ret; }
";

/// Runs nt-inject over a text on stdin.
fn inject(arguments: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_nt-inject"))
        .args(arguments)
        .env_remove("NO_COLOR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that refuses its command line reads nothing.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    child.wait_with_output().unwrap()
}

fn check(arguments: &[&str], stdin: &str, code: i32, said: &[&str]) -> String {
    let out = inject(arguments, stdin);
    let (text, words) = (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap());
    assert_eq!(out.status.code(), Some(code), "{arguments:?}\n{words}");
    for part in said {
        assert!(words.contains(part), "{arguments:?}: `{part}` is not said:\n{words}");
    }
    text
}

#[test]
fn woven_and_checked() {
    let woven = check(
        &["-p", "block_sched"],
        MODULE,
        0,
        &["_Z4gemmPfi: 3 sites", "tail: 2 sites", "block_sched is in 2 kernels, at 5 sites"],
    );
    let folder = tempfile::tempdir().unwrap();
    let (original, probed) = (folder.path().join("o.ptx"), folder.path().join("w.ptx"));
    std::fs::write(&original, MODULE).unwrap();
    std::fs::write(&probed, &woven).unwrap();
    let paths = [original.to_str().unwrap(), probed.to_str().unwrap()];
    check(&["--check", paths[0], paths[1]], "", 0, &["harmless insertions"]);
    // A store that went elsewhere, and text of the kernel that changed.
    std::fs::write(&probed, woven.replace("+8], {", "+24], {")).unwrap();
    check(&["--check", paths[0], paths[1]], "", 1, &["(V11)"]);
    std::fs::write(&probed, woven.replace("@%p1 ret", "@!%p1 ret")).unwrap();
    check(&["--check", paths[0], paths[1]], "", 1, &["(V1)"]);
    // Woven again it is refused.
    check(&["-p", "block_sched"], &woven, 1, &["has been woven already"]);
}

#[test]
fn nothing_to_do_gives_the_input_back() {
    assert_eq!(
        check(&["-p", "block_sched", "-k", "=gem"], MODULE, 4, &["no kernel matched", "`_Z4gemmPfi`"]),
        MODULE
    );
    let text = "map m: array<warp> { t: u64 } warp kernel:\"other*\":exit { m.save(clock()); }";
    assert_eq!(check(&["-e", text], MODULE, 4, &["0 sites"]), MODULE);
    check(&["-p", "block_sched"], "", 1, &[".version"]);
}

#[test]
fn kernels_are_chosen_by_either_name() {
    let woven =
        check(&["-p", "block_sched", "-k", "=gemm(float*, int)"], MODULE, 0, &["_Z4gemmPfi: 3 sites"]);
    assert!(woven.contains("tail() { ret; }"), "{woven}");
    let list = check(&["-l"], MODULE, 0, &[]);
    assert_eq!(
        list,
        "kernel\ttracepoint\tsites\tplaces\tname\n\
         _Z4gemmPfi\tkernel:entry\t1\t8:2\tgemm(float*, int)\n\
         _Z4gemmPfi\tkernel:exit\t2\t9:2,10:2\tgemm(float*, int)\n\
         _Z4gemmPfi\tinst:exit\t2\t9:2,10:2\tgemm(float*, int)\n\
         _Z4gemmPfi\tinst:compare\t1\t8:2\tgemm(float*, int)\n\
         tail\tkernel:entry\t1\t12:26\ttail\n\
         tail\tkernel:exit\t1\t12:26\ttail\n\
         tail\tinst:exit\t1\t12:26\ttail\n"
    );
}

#[test]
fn what_is_refused() {
    check(&[], MODULE, 2, &["no probe given"]);
    check(&["-p", "block_shed"], MODULE, 4, &["did you mean `block_sched`"]);
    check(&["-e", "warp kernel:exit { x = 1; }"], MODULE, 1, &["<-e>:1:", "error"]);
    check(&["-p", "block_sched"], ".version 8.5\n.target sm_90\n.entry k( {\n", 1, &["<stdin>:3:"]);
    // A kernel of two cannot be probed: the other is woven.
    let callee = ".extern .func leave();\n.entry bad() { call leave, (); ret; }\n";
    let some = format!("{MODULE}{callee}");
    let woven = check(&["-p", "block_sched"], &some, 5, &["which is not in this module", "is in 2 kernels"]);
    assert!(woven.contains("bad() { call"), "{woven}");
    check(&["-p", "block_sched", "-k", "=bad"], &some, 1, &["which is not in this module"]);
    let json = inject(&["-p", "block_sched", "-k", "=bad", "--diagnostics=json"], &some);
    let line = String::from_utf8(json.stderr).unwrap();
    assert!(line.starts_with('{') && line.contains("\"unknown-callee\""), "{line}");
}

#[test]
fn what_matches_nothing_says_what_is_there() {
    let same =
        check(&["-e", "ptx:\"stp.eq.*\" { @ = count(); }"], MODULE, 4, &["nearest opcode is `setp.eq.u32`"]);
    assert_eq!(same, MODULE);
    let told = [
        "<-e>:1:1: warning: `inst:mma` matches nothing",
        "help: there are inst:exit (3), inst:compare (1)",
        "0 sites: no tracepoint of `probe` is in what was chosen",
    ];
    check(&["-e", "inst:mma { @ = count(); }"], MODULE, 4, &told);
}

#[test]
fn sums_are_in_the_manifest() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("w.ntm");
    let probe = "inst:compare|exit { @[op, block] = count(); }";
    let arguments = ["-e", probe, "-k", "gemm", "--manifest", file.to_str().unwrap()];
    check(&arguments, MODULE, 0, &["1 kernel, at 3 sites"]);
    let manifest = nt_trace::Manifest::parse(&std::fs::read(&file).unwrap()).unwrap();
    let kernel = &manifest.kernels[0];
    assert_eq!(kernel.tables[0].cells, [["setp.eq.u32"], ["ret"]]);
    // Cells of blocks begin in sectors of their own.
    assert_eq!(kernel.tables[0].stride, 32);
    let kinds: Vec<&str> = kernel.sites.iter().map(|site| site.kind.as_str()).collect();
    assert_eq!(kinds, ["inst:compare", "inst:exit", "inst:exit"]);
    let plan = check(&["-e", probe, "--emit=plan", "-k", "gemm"], MODULE, 0, &[]);
    assert!(plan.contains("table @: count [op, block], 2 cells a block"), "{plan}");
}

#[test]
fn unknown_instructions_pass_through_unless_strict() {
    let text = MODULE.replace("setp.eq.u32 %p1, 1, 1;", "frobnicate.sync.x7.b32 %p1, [4];");
    let woven = check(&["-p", "block_sched"], &text, 0, &[]);
    assert!(woven.contains("frobnicate.sync.x7.b32 %p1, [4];"));
    check(&["-p", "block_sched", "-v"], &text, 0, &["unknown instruction `frobnicate`"]);
    check(
        &["-p", "block_sched", "--strict"],
        &text,
        1,
        &["<stdin>:8:2: error: unknown instruction `frobnicate`"],
    );
}

#[test]
fn stages_are_printed() {
    let plan = check(&["-p", "block_sched", "--emit=plan", "-k", "gemm"], MODULE, 0, &[]);
    assert!(plan.contains("site 1: kernel:exit at 9:2, before `@%p1 ret`"), "{plan}");
    let spans = check(&["-p", "block_sched", "--emit=spans", "-k", "tail"], MODULE, 0, &[]);
    assert!(spans.starts_with("// span 0 in tail: kernel:entry at 12:26\n.reg .b32 %nt_s_start;"), "{spans}");
    let ir = check(&["-p", "block_sched", "--emit=ir"], MODULE, 0, &[]);
    assert!(ir.starts_with("program \"block_sched\"\n"), "{ir}");
    assert!(check(&["--explain", "V6"], "", 0, &[]).starts_with("V6: "));
    check(&["--explain", "V99"], "", 4, &["no rule is called"]);
}

#[test]
fn a_manifest_is_one_that_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("w.ntm");
    let named = ["-p", "block_sched", "--manifest", file.to_str().unwrap()];
    let woven = check(&named, MODULE, 0, &[]);
    let manifest = nt_trace::Manifest::parse(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(manifest.woven_bytes, woven.len() as u64);
    assert_eq!(manifest.target, "sm_90");
    let kernel = &manifest.kernels[0];
    assert_eq!((kernel.name.as_str(), kernel.context.size), ("_Z4gemmPfi", 24));
    assert_eq!(
        kernel.sites.iter().map(|s| (s.line, s.column)).collect::<Vec<_>>(),
        [(8, 2), (9, 2), (10, 2)]
    );
    // With an assembler registers are known on both sides, without one on neither.
    assert_eq!(kernel.before.is_some(), kernel.after.is_some());
    let both = check(&["-p", "block_sched", "--manifest", "-"], MODULE, 2, &["standard output"]);
    assert_eq!(both, "");
}

/// A load whose lanes are 4 bytes apart wherever blocks are one row of threads.
const LOADS: &str = "\
.version 8.5
.target sm_90
.address_size 64

.visible .entry loads(.param .u64 p)
{
	.reg .b32 %r<3>;
	.reg .b64 %rd<3>;
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x;
	mad.wide.u32 %rd2, %r1, 4, %rd1;
	ld.global.u32 %r2, [%rd2];
	ret;
}
";

#[test]
fn events_are_told_by_what_launches_are_assumed_to_be() {
    use nt_trace::ntm::{Form, Linear};
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("w.ntm");
    let manifest = |assume: &[&str]| {
        let arguments = [&["-p", "dmat", "--manifest", file.to_str().unwrap()], assume].concat();
        check(&arguments, LOADS, 0, &["1 kernel, at 2 sites"]);
        nt_trace::Manifest::parse(&std::fs::read(&file).unwrap()).unwrap().kernels.remove(0)
    };
    let known = manifest(&["--assume", "flat_block,flat_grid"]);
    assert_eq!(known.assumes, ["flat_grid", "flat_block"]);
    let stream = known.maps[0].stream.as_ref().unwrap();
    let strides = [4, 8, 16, 32, 64].map(|constant| Linear { constant, ..Linear::default() });
    let forms: Vec<&Form> = stream.codes.iter().map(|code| &code.lanes[0].form).collect();
    assert_eq!((stream.chunk, forms), (4, vec![&Form::Bits(strides)]));

    let unknown = manifest(&[]);
    assert_eq!(unknown.assumes, [""; 0]);
    let stream = unknown.maps[0].stream.as_ref().unwrap();
    let forms: Vec<&Form> = stream.codes.iter().map(|code| &code.lanes[0].form).collect();
    // No way back: one event of 17 slots at most, behind the chunk's first.
    assert_eq!((stream.chunk, forms), (32, vec![&Form::List64, &Form::List32, &Form::Stride]));

    let plan = check(&["-p", "dmat", "--assume", "flat_block", "--emit=plan"], LOADS, 0, &[]);
    assert!(plan.contains("code 0: site 1: addr bits 4 8 16 32 64, bytes known 4"), "{plan}");
    assert!(stream.codes.iter().all(|code| code.assumes.is_empty()));

    // With a number added that nobody knows, the sum of 32 bits may overflow between two lanes: the proof takes for granted
    // that it does not, and says so.
    let added = LOADS
        .replace("u64 p)", "u64 p, .param .u32 n)")
        .replace("tid.x;", "tid.x;\n\tld.param.u32 %r2, [n];\n\tadd.u32 %r1, %r1, %r2;");
    let plan = check(&["-p", "dmat", "--assume", "flat_block", "--emit=plan"], &added, 0, &[]);
    assert!(plan.contains("addr bits 4 8 16 32 64, bytes known 4, if 32 bits do not overflow"), "{plan}");
    let arguments = ["-p", "dmat", "--assume", "flat_block", "--manifest", file.to_str().unwrap()];
    check(&arguments, &added, 0, &["1 kernel, at 2 sites"]);
    let kernel = nt_trace::Manifest::parse(&std::fs::read(&file).unwrap()).unwrap().kernels.remove(0);
    let assumes: Vec<_> = kernel.maps[0].stream.iter().flat_map(|s| &s.codes).map(|c| &c.assumes).collect();
    assert_eq!(assumes, [&[nt_trace::ntm::Assumption::Wraps]]);

    check(&["-p", "dmat", "--assume", "round"], LOADS, 2, &["there is flat_grid, flat_block, whole_rows"]);
}

/// A kernel that may have no more registers than it uses: it is woven, and what that takes is told, with a way out.
#[test]
fn a_kernel_at_its_limit_of_registers_is_told() {
    if Command::new("ptxas").arg("--version").output().is_err() {
        eprintln!("no ptxas: skipped");
        return;
    }
    let loads: String =
        (0..20).map(|n| format!("\tld.volatile.global.f32 %f{}, [%rd2+{}];\n", n + 1, n * 4096)).collect();
    let sums: String = (1..=20).map(|n| format!("\tfma.rn.f32 %f0, %f{n}, %f{n}, %f0;\n")).collect();
    let module = format!(
        ".version 8.3\n.target sm_90\n.address_size 64\n.visible .entry full(.param .u64 p) .maxnreg 24\n{{\n\
         \t.reg .b32 %r<2>;\n\t.reg .f32 %f<21>;\n\t.reg .b64 %rd<3>;\n\tld.param.u64 %rd1, [p];\n\
         \tmov.u32 %r1, %tid.x;\n\tmad.wide.u32 %rd2, %r1, 4, %rd1;\n{loads}\tbar.sync 0;\n\
         \tld.volatile.global.f32 %f0, [%rd2];\n{sums}\tst.global.f32 [%rd2], %f0;\n\tret;\n}}\n"
    );
    let folder = tempfile::tempdir().unwrap();
    let manifest = folder.path().join("m.ntm");
    check(
        &["-p", "dmat", "--manifest", manifest.to_str().unwrap()],
        &module,
        0,
        &["full: ", "bytes more spilled with the probe, at 24 registers", "kept in a `state`", "`.maxnreg`"],
    );
}
