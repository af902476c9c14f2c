//! Texts that mean harm: whatever comes in, an answer comes out, soon, and it is never yes by accident.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first thing that is wrong")]

use nt_verify::{check, check_pruned};
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// The woven texts of `good/`, and what they were woven from.
fn accepted() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/good");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path| {
        let woven = std::fs::read_to_string(path).unwrap();
        (take_away(&woven), woven)
    };
    paths.into_iter().map(read).collect()
}

fn take_away(woven: &str) -> String {
    let (mut out, mut rest) = (String::new(), woven);
    while let Some((before, mark)) = rest.split_once("/*nt:") {
        out.push_str(before);
        let (name, inner) = mark.split_once("{*/").unwrap();
        let (name, hex) = name.split_once(' ').unwrap_or((name, ""));
        let hex = if name == "edit" { hex } else { "" };
        (0..hex.len())
            .step_by(2)
            .for_each(|i| out.push(u8::from_str_radix(&hex[i..i + 2], 16).unwrap() as char));
        rest = inner.split_once(&format!("/*}}nt:{name}*/")).unwrap().1;
    }
    out + rest
}

/// A small kernel with this span before its `ret`, and the kernel.
fn with_span(span: &str) -> (String, String) {
    let head = ".version 8.0\n.target sm_90\n.entry k(.param .u64 p";
    let edit = "/*nt:edit {*/, .param .align 8 .b8 nt_ctx[8] /*nt:ctx prefix=nt_ zero@0:8*//*}nt:edit*/";
    let body = ") { .reg .pred %p1; ";
    (format!("{head}{body}ret; }}\n"), format!("{head}{edit}{body}/*nt:0{{*/{span}/*}}nt:0*/ret; }}\n"))
}

/// The answer, which must not take long: ten seconds for what takes two.
fn answer(original: &str, woven: &str) -> bool {
    let begun = worked();
    let accepted = check(original, woven).is_accepted();
    let taken = worked().saturating_sub(begun);
    assert!(taken < Duration::from_secs(10), "{taken:?} for {} bytes", woven.len());
    accepted
}

/// How long this thread has worked, so that a machine with other things to do does not count; where Linux does not
/// tell, how long it is.
fn worked() -> Duration {
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|text| text.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| BEGUN.elapsed(), Duration::from_nanos)
}

#[test]
fn line_ends_of_every_kind() {
    for (original, woven) in accepted() {
        let crlf = |text: &str| text.replace('\n', "\r\n");
        // The replaced bytes of an edit hold no line end here, so they stay what they are.
        assert!(answer(&crlf(&original), &crlf(&woven)));
        // A lone carriage return ends no comment for ptxas, and is not whitespace that inserted text may hold.
        let cr = |text: &str| text.replace('\n', "\r");
        assert!(!answer(&cr(&original), &cr(&woven)));
    }
}

#[test]
fn a_module_of_one_line() {
    for (_, woven) in accepted() {
        // `*//*` ends one comment and begins another; all of the line comments have a blank behind the slashes.
        let code = |line: &str| line.split("// ").next().unwrap().to_owned();
        let woven: Vec<String> = woven.lines().filter(|line| *line != "//").map(code).collect();
        let woven = woven.join(" ");
        assert!(!woven.contains("// ") && !woven.contains('\n'));
        assert!(answer(&take_away(&woven), &woven));
    }
}

#[test]
fn comments_and_strings_that_hold_marks() {
    let (original, woven) = with_span("{ }");
    assert!(answer(&original, &woven));
    for (old, new) in [
        // A mark that the original holds, in a comment, in a string.
        ("ret; }", "ret; } /*nt:7{*//*}nt:7*/"),
        ("ret; }", "ret; } // /*}nt:0*/"),
        (".entry", ".file 1 \"/*nt:0{*/\"\n.entry"),
        // What looks like the end of a comment that is none, or opens one over the span.
        (".reg .pred %p1; ", ".reg .pred %p1; /* "),
        (".reg .pred %p1; ", ".reg .pred %p1; // "),
        (".reg .pred %p1; ", ".pragma \""),
    ] {
        assert!(!answer(&original.replacen(old, new, 1), &woven.replacen(old, new, 1)), "{new}");
    }
    for span in [
        "{ } /*",
        "{ } //",
        "*/ { }",
        "{ /*nt:1{*/ }",
        "{ \"/*}nt:0*/\" }",
        "{ // /*}nt:0*/\n }",
        "{ /* } */",
        "/**/{ /**/",
        "{ } /*/",
    ] {
        let (original, woven) = with_span(span);
        assert!(!answer(&original, &woven), "{span}");
    }
    // Comments between tokens are fine where they close.
    let (original, woven) = with_span("/**/{/* } */}// {\n");
    assert!(answer(&original, &woven));
}

#[test]
fn much_of_everything() {
    let many = 20_000;
    // Spans in one gap, in one comment's shadow, empty and not.
    let (original, _) = with_span("");
    let body = original.find("ret;").unwrap();
    let context = original.find(") {").unwrap();
    let edit = "/*nt:edit {*/, .param .align 8 .b8 nt_ctx[8] /*nt:ctx prefix=nt_ zero@0:8*//*}nt:edit*/";
    let spans: String = (0..many).map(|n| format!("/*nt:{n}{{*/{{ }}/*}}nt:{n}*/")).collect();
    assert!(answer(
        &original,
        &[&original[..context], edit, &original[context..body], &spans, &original[body..]].concat()
    ));

    let span = |text: String| {
        let (original, woven) = with_span(&text);
        answer(&original, &woven)
    };
    assert!(!span("{".repeat(many)));
    assert!(!span("}".repeat(many)));
    assert!(!span("{ } ".repeat(many)), "more statements than any probe has");
    assert!(!span(format!("{{ mov.u32 {}; }}", "{".repeat(many))));
    assert!(!span(format!("{{ .reg .b32 {}%nt_a; }}", "%nt_a, ".repeat(many))));
    assert!(!span(format!("{{ .reg .b32 %nt_a<{}>; }}", "9".repeat(many))));
    assert!(!span(format!("{{ add.u32 {}; }}", "%nt_a, ".repeat(many))));
    assert!(!span(format!("{{ mov{} %nt_a, 1; }}", ".u32".repeat(many))));
    assert!(!span(format!("{{ {} }}", "/*".repeat(many))));
    // As many registers, labels and branches as are allowed at all.
    let (mut text, mut last) =
        ("{ .reg .pred %nt_p; setp.eq.u32 %nt_p, 1, 1; .reg .b64 %nt_a<500>; ".to_owned(), String::new());
    for n in 0..500 {
        text.push_str(&format!("mov.u64 %nt_a{n}, {n}; "));
    }
    for n in 0..1500 {
        text.push_str(&format!("@%nt_p bra $nt_L{n}; "));
        last.push_str(&format!("$nt_L{n}: "));
    }
    assert!(span(format!("{text}{last}}}")));
    // Facts that pile up.
    let mut text = "{ .reg .pred %nt_p, %nt_q; setp.eq.u32 %nt_p, 1, 1; mov.pred %nt_q, %nt_p; ".to_owned();
    for _ in 0..1900 {
        text.push_str("setp.eq.and.u32 %nt_p, 1, 1, %nt_q; and.pred %nt_q, %nt_p, %nt_q; ");
    }
    assert!(span(text + "}"));
}

#[test]
fn much_of_what_the_program_has() {
    // A long instruction, and many spans before it that read of it, or try to.
    let many = 20_000;
    let (head, tail) = (".version 8.0\n.target sm_90\n.entry k(.param .u64 p", ") { .reg .b32 %r<40000>; ");
    let edit = "/*nt:edit {*/, .param .align 8 .b8 nt_ctx[8] /*nt:ctx prefix=nt_ zero@0:8*//*}nt:edit*/";
    let sources: Vec<String> = (1..many).map(|n| format!("%r{n}")).collect();
    let site = format!("frob %r0, {{{}}}; ret; }}\n", sources.join(", "));
    for (read, expected) in [("%r1234", true), ("%r0", false), ("%r39999", false)] {
        let spans: String = (0..many)
            .map(|n| format!("/*nt:{n}{{*/{{ .reg .b32 %nt_a; mov.b32 %nt_a, {read}; }}/*}}nt:{n}*/"))
            .collect();
        let (original, woven) = ([head, tail, &site].concat(), [head, edit, tail, &spans, &site].concat());
        assert_eq!(answer(&original, &woven), expected, "{read}");
    }
    // Many definitions of many names in many scopes.
    let scopes: String = (0..many).map(|n| format!("{{ .reg .b32 %r; @%p mov.b32 %r, {n}; ")).collect();
    let closes = "}".repeat(many);
    let span = "/*nt:0{*/{ .reg .b32 %nt_a; mov.b32 %nt_a, %r; }/*}nt:0*/";
    let text = |edit, span| {
        format!("{head}{edit}{tail} .reg .pred %p; {scopes}{span} mov.b32 %r0, %r; {closes} ret; }}")
    };
    answer(&text("", ""), &text(edit, span));
}

#[test]
fn much_of_pins() {
    let many = 4000;
    let pins: String = (0..many).map(|n| format!(" pin.g{n}={n}")).collect();
    let variables: String = (0..many).map(|n| format!(".global .u32 g{n};\n")).collect();
    let text = |is_woven: bool| {
        let mark = |hex: String, new: String| {
            if is_woven { format!("/*nt:edit {hex}{{*/{new}/*}}nt:edit*/") } else { String::new() }
        };
        let hex = |text: &str| text.bytes().map(|b| format!("{b:02x}")).collect::<String>();
        let mut out = format!(".version 8.0\n.target sm_90\n{variables}");
        out += &mark(String::new(), format!(".const .align 8 .b64 nt_pin[{many}];"));
        out += ".entry k(.param .u64 p";
        let context = format!(", .param .align 8 .b8 nt_ctx[8] /*nt:ctx prefix=nt_ zero@0:8{pins}*/");
        out += &mark(String::new(), context);
        out += ") { .reg .b32 %r; ";
        for n in 0..many {
            let load = format!("{{ ld.const.b64 %nt_g{n}, [nt_pin+{}]; }}", 8 * n);
            if is_woven {
                out += &format!("/*nt:{n}{{*/.reg .b64 %nt_g{n}; {load}/*}}nt:{n}*/");
            }
            let symbol = format!("g{n}");
            let operand = if is_woven { mark(hex(&symbol), format!("%nt_g{n}")) } else { symbol };
            out += &format!("ld.global.u32 %r, [{operand}];\n");
        }
        out + "ret; }"
    };
    let (original, woven) = (text(false), text(true));
    assert!(answer(&original, &woven));
    assert!(!answer(&original, &woven.replacen(&format!("[nt_pin+{}]", 8 * 1234), "[nt_pin]", 1)));
    // As many claims as kernels, each of all of them.
    let kernel = |n: usize| {
        let edit = format!(
            "/*nt:edit {{*/(.param .align 8 .b8 nt_ctx[8] /*nt:ctx prefix=nt_ zero@0:8{pins}*/)/*}}nt:edit*/"
        );
        (format!("\n.entry k{n} {{ ret; }}"), format!("\n.entry k{n}{edit} {{ ret; }}"))
    };
    let (mut original, mut woven) = (original, woven);
    for n in 0..100 {
        let (old, new) = kernel(n);
        original += &old;
        woven += &new;
    }
    assert!(answer(&original, &woven));
}

#[test]
fn much_of_clones() {
    let many = 3000;
    let claim = "/*nt:ctx prefix=nt_ zero@0:8*/";
    let context = |claim: &str| format!(".param .align 8 .b8 nt_ctx[8] {claim}");
    let hex = |text: &str| text.bytes().map(|b| format!("{b:02x}")).collect::<String>();
    let (mut original, mut woven) =
        (".version 8.0\n.target sm_90\n".to_owned(), ".version 8.0\n.target sm_90\n".to_owned());
    let mut calls = (String::new(), String::new());
    for n in 0..many {
        let function = format!(".func f{n} {{ ret; }}\n");
        let name = hex(&format!("f{n}"));
        let edits = format!(
            "/*nt:edit {name}{{*/f{n}__nt__k/*}}nt:edit*//*nt:edit {{*/({})/*}}nt:edit*/",
            context(claim)
        );
        original += &function;
        woven += &function;
        woven += &format!("/*nt:clone f{n} k{{*/.func {edits} {{ ret; }}/*}}nt:clone*/");
        calls.0 += &format!("call f{n}; ");
        calls.1 += &format!(
            "/*nt:{n}{{*/.param .align 8 .b8 nt_arg{n}[8]; {{ .reg .b64 %nt_a; ld.param.u64 %nt_a, [nt_ctx]; \
             st.param.b64 [nt_arg{n}], %nt_a; }}/*}}nt:{n}*/call /*nt:edit {name}{{*/f{n}__nt__k/*}}nt:edit*//*nt:edit {{*/, \
             (nt_arg{n})/*}}nt:edit*/; "
        );
    }
    original += &format!(".entry k() {{ {}ret; }}\n", calls.0);
    woven += &format!(".entry k(/*nt:edit {{*/{}/*}}nt:edit*/) {{ {}ret; }}\n", context(claim), calls.1);
    assert!(answer(&original, &woven));
    assert!(!answer(&original, &woven.replacen("f77__nt", "f78__nt", 1)));
    // One function, as often as there are clones of it.
    let clones: String = (0..many).map(|_| "/*nt:clone f1 k{*/.func f1 { ret; }/*}nt:clone*/").collect();
    assert!(!answer(&original, &format!("{woven}{clones}")));
    // One clone with all of the text's marks in it, never closed.
    assert!(!answer(&original, &format!("/*nt:clone f1 k{{*/{woven}")));
}

/// Any change to any text: no panic, and the same answer twice.
#[test]
fn random_changes_get_an_answer() {
    const WORDS: [&str; 28] = [
        "/*nt:clone step calls{*/",
        "/*}nt:clone*/",
        "/*nt:7 after{*/",
        ".param .align 8 .b8 nt_arg[8];",
        "{",
        "}",
        "/*nt:1{*/",
        "/*}nt:1*/",
        "/*nt:edit {*/",
        "/*}nt:edit*/",
        "/*",
        "*/",
        "//",
        "\n",
        "\r",
        ";",
        ":",
        "@%p1",
        ".reg",
        "%nt_a",
        "$nt_L1",
        "[nt_ctx+8]",
        "st.global.u64",
        "bra",
        "99999999999999999999",
        "\"",
        "\u{e9}",
        "/*nt:ctx prefix=nt_ ",
    ];
    // A linear congruential generator (Knuth's MMIX), so that each run tries the same.
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below.max(1)
    };
    let texts = accepted();
    for round in 0..2000 {
        let (original, woven) = &texts[round % texts.len()];
        let mut changed = woven.clone();
        for _ in 0..=random(3) {
            let mut cut = [random(changed.len() + 1), random(changed.len() + 1)];
            cut.iter_mut().for_each(|at| {
                while !changed.is_char_boundary(*at) {
                    *at -= 1;
                }
            });
            cut.sort_unstable();
            let short = cut[0]..cut[1].min(cut[0] + random(40));
            let short = if changed.is_char_boundary(short.end) { short } else { cut[0]..cut[0] };
            match random(3) {
                0 => changed.replace_range(short, ""),
                1 => changed.insert_str(cut[0], WORDS[random(WORDS.len())]),
                _ => {
                    let copy = changed[short].to_owned();
                    changed.insert_str(cut[1], &copy);
                }
            }
        }
        let report = check(original, &changed);
        assert_eq!(report, check(original, &changed));
        for violation in report.violations() {
            assert!(violation.span.end as usize <= changed.len().max(original.len()));
        }
        let _ = check(&changed, woven);
        let _ = check_pruned(&changed, original);
        let _ = check_pruned(original, &changed);
    }
}
