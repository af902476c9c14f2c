//! What asynchronous instructions give and take: results are read behind their wait, or not at all.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

mod common;

use common::{Ptxas, obeys, prepare, weave};

const HOPPER: &str = ".version 8.5\n.target sm_90a\n.address_size 64\n";
const BLACKWELL: &str = ".version 8.7\n.target sm_100a\n.address_size 64\n";

const MMA: &str = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16";
const COMMIT: &str = "wgmma.commit_group.sync.aligned;\n";
const WAIT: &str = "wgmma.wait_group.sync.aligned 0;\n";
const LOAD: &str = "tcgen05.ld.sync.aligned.32x32b.x2.b32";
const LOADED: &str = "tcgen05.wait::ld.sync.aligned;\n";

/// One matrix instruction behind its fence.
fn multiplied() -> String {
    format!("wgmma.fence.sync.aligned;\n{MMA} {{%f0, %f1, %f2, %f3}}, %rd1, %rd2, 0, 1, 1, 0, 0;\n")
}

/// A kernel with these instructions, woven, verified and assembled without a notice; or why not, and where that is seen.
fn woven(header: &str, body: &str, probe: &str) -> Result<String, String> {
    let ptx = format!(
        "{header}.entry k(.param .u64 p)\n{{\n.reg .pred %p<3>;\n.reg .b32 %r<9>;\n.reg .f32 %f<4>;\n.reg .b64 %rd<9>;\n\
         ld.param.u64 %rd1, [p];\nmov.u64 %rd2, %rd1;\nmov.u64 %rd3, %rd1;\nmov.u64 %rd4, %rd1;\nmov.u32 %r4, 0;\n\
         mov.f32 %f0, 0f00000000;\nmov.f32 %f1, %f0;\nmov.f32 %f2, %f0;\nmov.f32 %f3, %f0;\nmov.u32 %r5, %tid.x;\n\
         mov.u32 %r6, %r5;\nmov.u32 %r7, %r5;\nmov.u32 %r8, %r5;\nsetp.eq.u32 %p1, %r5, 3;\n\
         {body}st.global.f32 [%rd4], %f1;\nret;\n}}\n"
    );
    let woven = weave(&ptx, &prepare(&format!("program \"t\"\n{probe}")));
    if let Some((_, why)) = woven.refused.first() {
        let note = why.notes.first().map(|(text, at)| (text.as_str(), at.unwrap()));
        let (text, at) = note.unwrap_or((&why.label, why.span));
        return Err(format!("{}: {text}: {}", why.slug, at.of(&ptx)));
    }
    obeys(&ptx, &woven, "late.ptx");
    if let Some(ptxas) = Ptxas::find() {
        ptxas.assemble(&ptx).unwrap_or_else(|said| panic!("as it was: {said}"));
        let said = ptxas.assemble(&woven.text).unwrap_or_else(|said| panic!("{said}\n{}", woven.text));
        assert!(!said.contains("C75"), "{said}");
    }
    Ok(woven.text)
}

/// The instruction before each span that is behind one, and the registers of the program that are read there.
fn behind(text: &str) -> Vec<(String, Vec<String>)> {
    let mut spans = Vec::new();
    for (at, _) in text.match_indices(" after{*/") {
        let before = &text[..text[..at].rfind("/*nt:").unwrap()];
        let before = before.rsplit(['\n', '/']).find(|line| !line.trim().is_empty()).unwrap();
        let span = &text[at..at + text[at..].find("/*}nt:").unwrap()];
        let words = span.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '%' | '_'));
        let is_plain = |word: &&str| ["%f", "%r"].iter().any(|begin| word.starts_with(begin));
        let mut read: Vec<String> = words.filter(is_plain).map(str::to_owned).collect();
        read.dedup();
        spans.push((before.trim().to_owned(), read));
    }
    spans
}

fn reads(list: &[(&str, &str)]) -> Vec<(String, Vec<String>)> {
    list.iter().map(|(before, read)| ((*before).to_owned(), vec![(*read).to_owned()])).collect()
}

#[test]
fn results_are_read_behind_their_wait() {
    let probe = "table @n: sum u64 []\nprobe thread inst:mma:after, inst:load.tensor:after {\n  %0: bool uniform = has out\n  \
                 %1: u32 = bits out[1]\n  %2: u64 = cast %1\n  sum @n(%2) if %0\n}\n";
    // Of the first of two, the accumulator goes on.
    let two = format!(
        "{}{MMA} {{%f0, %f1, %f2, %f3}}, %rd1, %rd3, 1, 1, 1, 0, 0;\n{COMMIT}add.u32 %r5, %r5, 1;\n{WAIT}",
        multiplied()
    );
    let text = woven(HOPPER, &two, probe).unwrap();
    assert_eq!(behind(&text), reads(&[("wgmma.wait_group.sync.aligned 0;", "%f1")]));
    let loads = format!(
        "{{\n{LOAD} {{%r1, %r2}}, [%r4];\n}}\nadd.u32 %r4, %r4, 2;\n{LOAD} {{%r5, %r6}}, [%r4];\n{LOADED}\
         st.global.v4.u32 [%rd4+16], {{%r1, %r2, %r5, %r6}};\n"
    );
    let text = woven(BLACKWELL, &loads, probe).unwrap();
    // Both behind the one wait, in order.
    let spans = behind(&text);
    assert_eq!(spans[0], reads(&[("tcgen05.wait::ld.sync.aligned;", "%r2")])[0]);
    assert_eq!(spans[1].1, ["%r6"]);
    assert_eq!(spans.len(), 2);
}

/// A body that does not ask for them stays where it was.
#[test]
fn what_asks_for_no_result_waits_for_none() {
    let probe = "table @n: count u64 []\nprobe thread inst:load.tensor:after { count @n }\n";
    let load = format!("{LOAD} {{%r1, %r2}}, [%r4];\n{LOADED}st.global.u32 [%rd4+16], %r1;\n");
    let text = woven(BLACKWELL, &load, probe).unwrap();
    assert_eq!(behind(&text), [(format!("{LOAD} {{%r1, %r2}}, [%r4];"), Vec::new())]);
}

#[test]
fn results_that_no_wait_surely_follows_are_refused() {
    let probe = "table @n: sum u64 []\nprobe thread inst:mma:after, inst:load.tensor:after {\n  %0: u32 = bits out[1]\n  \
                 %1: u64 = cast %0\n  sum @n(%1)\n}\n";
    let check = |header: &str, body: &str, why: &str, at: &str| {
        assert_eq!(woven(header, body, probe), Err(format!("operand-absent: {why}: {at}")), "{body}");
    };
    let (one, elsewhere) = (multiplied(), "before the wait for `out` lanes may go elsewhere here");
    let overwritten = "before the wait for `out` it is overwritten here";
    let twice = format!("{one}{MMA} {{%f0, %f1, %f2, %f3}}, %rd1, %rd3, 1, 1, 1, 0, 0;\n{COMMIT}{WAIT}");
    check(HOPPER, &twice, overwritten, MMA);
    check(HOPPER, &format!("{one}{COMMIT}mov.f32 %f2, 0f3F800000;\n{WAIT}"), overwritten, "mov.f32");
    let comes_in = "before the wait for `out` other lanes may come in here";
    check(HOPPER, &format!("{one}{COMMIT}L: {WAIT}"), comes_in, "L:");
    check(HOPPER, &format!("{one}{COMMIT}@%p1 bra L;\n{WAIT}L:\n"), elsewhere, "bra");
    // A wait for older groups, one that may not happen, one for what no group holds, one for what was stored.
    check(HOPPER, &format!("{one}{COMMIT}wgmma.wait_group.sync.aligned 1;\n"), elsewhere, "ret");
    check(HOPPER, &format!("{one}{COMMIT}@%p1 {WAIT}"), elsewhere, "ret");
    check(HOPPER, &format!("{one}{WAIT}"), elsewhere, "ret");
    let load = format!("{LOAD} {{%r1, %r2}}, [%r4];\n");
    check(BLACKWELL, &format!("{load}tcgen05.wait::st.sync.aligned;\n"), elsewhere, "ret");
    let guard = "`out` is there only behind a wait, where its guard may be another";
    check(BLACKWELL, &format!("@%p1 {load}{LOADED}"), guard, LOAD);
    let scope = "at the wait for `out` its registers are out of scope";
    check(BLACKWELL, &format!("{{\n.reg .b32 %r<3>;\n{load}}}\n{LOADED}"), scope, LOAD);
}

/// Triton packs what it loads before the wait; a body that reads it there would read nothing.
#[test]
fn what_is_on_its_way_is_taken_by_no_body() {
    let probe = "table @n: sum u64 []\nprobe thread ptx:\"mov.b64\" {\n  %0: bool uniform = has in1\n  \
                 %1: u64 = cast in1[0]\n  sum @n(%1) if %0\n}\n";
    let pack = "mov.b64 %rd5, {%r1, %r2};\n";
    let of = |body: &str| {
        let text = woven(BLACKWELL, body, probe).unwrap();
        text.matches("/*nt:").count()
    };
    let load = format!("{LOAD} {{%r1, %r2}}, [%r4];\n");
    let none = of(&format!("{load}{pack}{LOADED}st.global.u64 [%rd4+16], %rd5;\n"));
    let one = of(&format!("{load}{LOADED}{pack}st.global.u64 [%rd4+16], %rd5;\n"));
    assert!(none < one, "{none}, {one}");
    // Another register, which is there.
    let other = of(&format!(
        "{load}mov.b64 %rd6, {{%r5, %r6}};\n{LOADED}{pack}st.global.v2.u64 [%rd4+16], {{%rd5, %rd6}};\n"
    ));
    assert!(one < other, "{one}, {other}");
}

/// Descriptors are read as any register; what a fence has given over to `wgmma` is not.
#[test]
fn descriptors_are_read_and_fragments_are_not() {
    let probe = "state a: u64 = 0\nstate b: u64 = 0\ntable @n: sum u64 []\nprobe thread inst:mma {\n  \
                 %0: bool uniform = has in1\n  %1: u64 = cast in1[0]\n  %2: u64 = cast in2[0]\n  state a = %1 if %0\n  \
                 state b = %2\n}\nprobe thread kernel:exit {\n  %0: u64 = state a\n  %1: u64 = state b\n  sum @n(%0)\n  \
                 sum @n(%1)\n}\n";
    let of = |body: &str| {
        let text = woven(HOPPER, body, probe).unwrap();
        let before = &text[..text.find(MMA).unwrap()];
        let span = &before[before.rfind("/*nt:").unwrap()..];
        ["%rd1", "%rd2", "%r5", "%r6"]
            .map(|name| span.contains(&format!("{name};")) || span.contains(&format!("{name},")))
    };
    assert_eq!(of(&format!("{}{COMMIT}{WAIT}", multiplied())), [true, true, false, false]);
    let fragments =
        multiplied().replace("%rd1, %rd2, 0, 1, 1, 0, 0;", "{%r5, %r6, %r7, %r8}, %rd2, 0, 1, 1, 0;");
    assert_eq!(of(&format!("{fragments}{COMMIT}{WAIT}")), [false, true, false, false]);
}
