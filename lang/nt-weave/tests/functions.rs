//! Functions that kernels call: which are probed and how, which calls are not covered, and what is refused.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

mod common;

use common::{Ptxas, obeys, prepare, refusals, weave};

const HEADER: &str = ".version 8.5\n.target sm_90\n.address_size 64\n";
const REGISTERS: &str =
    ".reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<4>; mov.u64 %rd1, 0; mov.u32 %r1, 0;";

/// A program that counts at a tracepoint.
fn counting(unit: &str, point: &str) -> String {
    format!("program \"t\"\ntable @n: count u64 [site, op, space]\nprobe {unit} {point} {{ count @n }}\n")
}

/// The woven text obeys the rules, and assembles where the original does.
fn is_sound(ptx: &str, woven: &nt_weave::Woven) {
    obeys(ptx, woven, "t.ptx");
    if let Some(ptxas) = Ptxas::find()
        && ptxas.assemble(ptx).is_ok()
    {
        ptxas.assemble(&woven.text).unwrap_or_else(|said| panic!("{said}\n{}", woven.text));
    }
}

fn refused(text: &str, point: &str, slug: &str, label: &str) {
    let ptx = format!("{HEADER}{text}");
    let woven = weave(&ptx, &prepare(&counting("thread", point)));
    let (_, why) = woven.refused.first().unwrap_or_else(|| panic!("{point} is woven into {text}"));
    assert_eq!((why.slug, why.label.as_str()), (slug, label), "{text}");
    assert_eq!(woven.text, ptx);
}

/// Kernels, and the functions that their calls reach, by the names of clones.
#[test]
fn each_kernel_has_clones_of_its_own() {
    let text = "
.func odd(.param .b32 a);
.func even(.param .b32 a) { .reg .b32 %r<2>; ld.param.b32 %r1, [a]; { .param .b32 x; st.param.b32 [x], %r1; call odd, (x); } ret; }
.entry one() { { .param .b32 x; call even, (x); } ret; }
.entry two() { .reg .b64 %d<3>; mov.u64 %d1, even; ld.global.u32 %d2, [%d1]; { .param .b32 x; call odd, (x); } ret; }
.entry three() { { .param .b32 x; call even, (x); } ret; }
.func odd(.param .b32 a)
{
	.reg .b64 %d<3>;
	mov.u64 %d1, 0;
	ld.global.u64 %d2, [%d1];
	{ .param .b32 x; call even, (x); }
	ret;
}
";
    let ptx = format!("{HEADER}{text}");
    let (module, mut found) = nt_ptx::parse(&ptx);
    let info = nt_ptx::resolve(&module, &mut found);
    let index =
        |name: &str| module.functions.iter().position(|f| f.is_entry && module.at(f.name) == name).unwrap();
    let probe = prepare(&counting("thread", "inst:load.global"));
    let woven = nt_weave::weave(&module, &info, &probe, &[index("one"), index("two")]);
    assert_eq!(refusals(&ptx, &woven), "");
    is_sound(&ptx, &woven);
    let sites: Vec<(&str, usize)> = woven.kernels.iter().map(|k| (k.name.as_str(), k.sites.len())).collect();
    assert_eq!(sites, [("one", 1), ("two", 2)]);
    for clone in ["odd__nt__one", "even__nt__one", "odd__nt__two", "even__nt__two"] {
        assert!(woven.text.contains(clone), "{clone} in {}", woven.text);
    }
    // A kernel that is not chosen calls what it called, and pointers lead where they led.
    assert!(woven.text.contains(text.lines().find(|line| line.contains("entry three")).unwrap()));
    assert!(!woven.text.contains("__three") && woven.text.contains("mov.u64 %d1, even;"));
}

#[test]
fn functions_that_cannot_be_cloned() {
    let kernel = ".entry k() { call f, (); ret; }\n";
    for space in [".global", ".shared", ".const"] {
        let text = format!(
            ".func f() {{ {space} .b32 own; {REGISTERS} ld.global.u32 %r1, [%rd1]; ret; }}\n{kernel}"
        );
        let label = "`f` has a variable of its own that outlives it, and a clone would have another";
        refused(&text, "inst:load", "static-in-function", label);
    }
    let text = ".func f(.param .b32 a, .param .align 8 .b8 rest[]) { .reg .b32 %r; ld.global.u32 %r, [0]; ret; }\n\
                .entry k() { { .param .b32 x; .param .align 8 .b8 y[16]; call f, (x, y); } ret; }\n";
    let label = "`f` takes as much as its caller gives, behind which nothing can be passed";
    refused(text, "inst:load.global", "unsized-parameter", label);
    let text = ".func f() { .reg .b32 %r; ld.global.u32 %r, [0]; ret; }\n.func g();\n.alias g, f;\n.entry k() { call g, (); ret; }\n";
    refused(text, "inst:load", "call-by-alias", "`f` is probed, and called by an alias here");
    let taken = format!(
        ".func f__nt__k() {{ ret; }}\n.func f() {{ {REGISTERS} ld.global.u32 %r1, [%rd1]; ret; }}\n{kernel}"
    );
    let label = "its clone would be called `f__nt__k`, as something of the module is";
    refused(&taken, "inst:load", "name-taken", label);
}

/// The names and sites of what is woven of each function, which assembles for sm_80 and sm_90a.
#[track_caller]
fn woven(text: &str, point: &str, sites: usize) -> String {
    let mut last = String::new();
    for arch in ["sm_80", "sm_90a"] {
        let ptx = format!("{}{text}", HEADER.replace("sm_90", arch));
        let woven = weave(&ptx, &prepare(&counting("thread", point)));
        assert_eq!(refusals(&ptx, &woven), "", "{text}");
        assert_eq!(woven.kernels.iter().map(|kernel| kernel.sites.len()).sum::<usize>(), sites, "{text}");
        obeys(&ptx, &woven, "t.ptx");
        if let Some(ptxas) = Ptxas::find() {
            ptxas.assemble(&ptx).unwrap_or_else(|said| panic!("as it was: {said}\n{ptx}"));
            ptxas.assemble(&woven.text).unwrap_or_else(|said| panic!("{said}\n{}", woven.text));
        }
        last = woven.text;
    }
    last
}

#[test]
fn functions_of_every_form() {
    let load = ".reg .b32 %r<3>; .reg .b64 %d<2>; mov.u64 %d1, 0; ld.global.u32 %r1, [%d1];";
    let kernel = |call: &str| {
        format!(
            ".visible .entry k(.param .u64 p) {{ .reg .b32 %r<3>; mov.u32 %r1, %tid.x; {{ {call} }} ret; }}\n"
        )
    };
    let one = kernel(".param .b32 x; st.param.b32 [x], %r1; call f, (x);");
    // Linkage: what is weak must not be so as a clone, and what is seen from outside need not.
    for linkage in [".weak", ".visible", ""] {
        let text =
            woven(&format!("{linkage} .func f(.param .b32 a) {{ {load} ret; }}\n{one}"), "inst:load", 1);
        assert!(text.contains(&format!("{linkage} .func f(.param .b32 a)")), "{text}");
        assert_eq!(text.matches(".weak").count(), usize::from(linkage == ".weak"));
    }
    // Who does not come back; the directive stands behind the list.
    let text = woven(&format!(".func f(.param .b32 a) .noreturn {{ {load} exit; }}\n{one}"), "inst:load", 1);
    assert_eq!(text.matches(".noreturn").count(), 2);
    // Declared twice before it is there.
    let declared = ".func f(.param .b32 a);\n";
    let text = format!("{declared}{declared}{one}.func f(.param .b32 a) {{ {load} ret; }}\n");
    assert_eq!(woven(&text, "inst:load", 1).matches("f__nt__k").count(), 4);
    // Parameters in registers.
    let text =
        ".func (.reg .b32 r) f(.reg .b32 a) { .reg .b64 %d; mov.u64 %d, 0; ld.global.u32 r, [%d]; ret; }\n";
    woven(&format!("{text}{}", kernel("call (%r2), f, (%r1);")), "inst:load", 1);
    // Without lists, with empty ones.
    for (list, call) in [("", "call f;"), ("()", "call f, ();"), ("()", "call f;")] {
        woven(&format!(".func f{list} {{ {load} ret; }}\n{}", kernel(call)), "inst:load", 1);
    }
    // Arrays, and more parameters than registers.
    let list: Vec<String> = (0..60).map(|n| format!(".param .align 16 .b8 a{n}[{}]", n + 1)).collect();
    let given: Vec<String> = (0..60).map(|n| format!(".param .align 16 .b8 x{n}[{}];", n + 1)).collect();
    let names: Vec<String> = (0..60).map(|n| format!("x{n}")).collect();
    let call = format!("{} st.param.b8 [x59+59], %r1; call f, ({});", given.join(" "), names.join(", "));
    woven(&format!(".func f({}) {{ {load} ret; }}\n{}", list.join(", "), kernel(&call)), "inst:load", 1);
    let list = ".param .align 8 .b8 a[40000]";
    let call = ".param .align 8 .b8 x[40000]; call f, (x);";
    woven(&format!(".func f({list}) {{ {load} ret; }}\n{}", kernel(call)), "inst:load", 1);
}

/// Of which there are none, nothing is missed.
#[test]
fn functions_without_sites_stay() {
    let callee = ".func f() { .reg .b32 %r; .reg .b64 %d; mov.u64 %d, 0; ld.global.u32 %r, [%d]; ret; }\n";
    let ptx = format!("{HEADER}{callee}.entry k() {{ call f, (); ret; }}\n");
    let woven = weave(&ptx, &prepare(&counting("thread", "inst:load")));
    assert_eq!(refusals(&ptx, &woven), "");
    is_sound(&ptx, &woven);
    assert!(woven.text.contains("/*nt:clone f k{*/") && woven.text.contains("call /*nt:edit 66{*/f__nt__k/"));
    let woven = weave(&ptx, &prepare(&counting("thread", "inst:store")));
    assert_eq!((woven.refused.len(), woven.kernels.len(), woven.uncovered.len()), (0, 0, 0));
}

/// What is said of calls into what is not probed, and how many kernels are woven; none is refused.
#[track_caller]
fn uncovered(text: &str, probe: &str, kernels: usize, expected: &[&str]) {
    let ptx = format!("{HEADER}{text}");
    let woven = weave(&ptx, &prepare(probe));
    assert_eq!(refusals(&ptx, &woven), "", "{text}");
    let line = |at: nt_diag::Span| nt_diag::Source::new("", &ptx).position(at.start).line;
    let told = |one: &nt_weave::Uncovered| format!("{}: `{}` {}", line(one.span), one.function, one.what());
    let all: Vec<String> = woven.uncovered.iter().map(told).collect();
    assert_eq!(all, expected, "{text}");
    assert_eq!(woven.kernels.len(), kernels, "{text}");
    for kernel in &woven.kernels {
        assert_eq!(kernel.uncovered, woven.uncovered);
    }
    is_sound(&ptx, &woven);
}

const CALLEES: &str = ".extern .func linked();
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.func leaf() { .reg .b32 %r; .reg .b64 %d; mov.u64 %d, 0; ld.global.u32 %r, [%d]; ret; }
.func leaves() { .reg .b32 %r; .reg .b64 %d; mov.u64 %d, 0; ld.global.u32 %r, [%d]; exit; }
.func through(.param .b64 f) { .reg .b64 %d; ld.param.u64 %d, [f]; P: .callprototype _(); call %d, (), P; ret; }
";

/// The kernel's body begins on line 10.
fn kernel(body: &str) -> String {
    format!("{CALLEES}.entry k(.param .u64 p) {{ {REGISTERS}\n{body}\nret; }}\n")
}

const THROUGH: &str = "P: .callprototype _(); call %rd2, (), P;";

#[test]
fn calls_of_what_is_not_probed_are_told() {
    let load = counting("thread", "inst:load.global");
    let direct = "ld.global.u32 %r1, [%rd1]; call leaf, ();";
    uncovered(&kernel(direct), &load, 1, &[]);
    // Of its own, and of what it calls; twice what is called twice; what cannot be told may be anything.
    let body = format!("{direct}\ncall linked, (); call linked, (); ld.param.u64 %rd2, [p];\n{THROUGH}");
    let linked = "`k` calls `linked`, which is not in this module (2 times in the text)";
    uncovered(&kernel(&body), &load, 1, &[&format!("11: {linked}"), "12: `k` calls through a pointer"]);
    let body = "ld.global.u32 %r1, [%rd1]; { .param .b64 x; call through, (x); }";
    uncovered(&kernel(body), &load, 1, &["8: `through` calls through a pointer"]);
    // Where the text tells where a pointer leads, it is said; the call by name is probed.
    let body = format!("{direct} mov.u64 %rd2, leaf;\n{THROUGH}");
    uncovered(&kernel(&body), &load, 1, &["11: `k` calls through a pointer, to `leaf`"]);
    let listed = format!("{direct} ld.param.u64 %rd2, [p];\nT: .calltargets leaf, leaves; call %rd2, (), T;");
    uncovered(&kernel(&listed), &load, 1, &["11: `k` calls through a pointer, to `leaf` or `leaves`"]);
    let body =
        format!("{direct} {{ .param .b32 y; .param .b64 x; .param .b64 z; call (y), vprintf, (x, z); }}");
    uncovered(&kernel(&body), &load, 1, &["10: `k` calls `vprintf`, which the driver brings along"]);
    // Nor is it passed over where no site is in sight.
    let linked = "10: `k` calls `linked`, which is not in this module";
    uncovered(&kernel("call linked, ();"), &load, 0, &[linked]);
    // Who asks for nothing that could be there is told nothing.
    let entry = "program \"t\"\ntable @n: count u64 []\nprobe thread kernel:entry { count @n }\n";
    uncovered(&kernel("call linked, ();"), entry, 1, &[]);
}

#[test]
fn lanes_leave_in_sight() {
    // Pointers lead to functions as they were: these may be left by `ret` alone.
    let exit = "program \"t\"\ntable @n: count u64 []\nprobe thread kernel:exit { count @n }\n";
    let known = format!("mov.u64 %rd2, leaf; call leaves, ();\n{THROUGH}");
    uncovered(&kernel(&known), exit, 1, &[]);
    let told = |body: &str, slug: &str, label: &str| {
        let ptx = format!("{HEADER}{}", kernel(body));
        let woven = weave(&ptx, &prepare(exit));
        let (_, why) = woven.refused.first().unwrap_or_else(|| panic!("{body} is woven"));
        assert_eq!((why.slug, why.label.as_str()), (slug, label));
        assert_eq!(woven.text, ptx);
    };
    let leaves = "a pointer may lead to `leaves`, which holds `exit`";
    told(&format!("mov.u64 %rd2, leaves; {THROUGH}"), "indirect-call", leaves);
    told("ld.param.u64 %rd2, [p]; T: .calltargets leaf, leaves; call %rd2, (), T;", "indirect-call", leaves);
    let listed = "ld.param.u64 %rd2, [p]; T: .calltargets leaf; call %rd2, (), T;";
    uncovered(&kernel(listed), exit, 1, &[]);
    told(&format!("ld.param.u64 %rd2, [p]; {THROUGH}"), "indirect-call", "`k` calls through a pointer");
    told("{ .param .b64 x; call through, (x); }", "indirect-call", "`through` calls through a pointer");
    told("call linked, ();", "unknown-callee", "it reaches `linked`, which is not in this module");
}
