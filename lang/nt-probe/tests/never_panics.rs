//! No text makes the front end panic, overflow the stack or run without bound; what compiles is accepted by the IR's
//! verifier, survives its passes, and is read back from its text.

#![allow(clippy::panic, reason = "a test may stop at the first thing that is wrong")]

use nt_probe::{SHIPPED, compile, tokens, tree};
use proptest::prelude::*;
use std::time::{Duration, Instant};

fn holds(text: &str) {
    let (program, found) = compile(text, "t");
    assert_eq!(program.is_none(), found.has_errors());
    for diagnostic in found.iter() {
        assert!(diagnostic.span.end as usize <= text.len(), "{diagnostic:?}");
        assert!(!diagnostic.message.is_empty());
    }
    tokens(text);
    tree(text);
    let Some(program) = program else { return };
    let broken = nt_ir::check(&program);
    assert!(broken.is_empty(), "{broken:?}");
    let printed = nt_ir::text::print_with_spans(&program);
    assert_eq!(nt_ir::text::parse(&printed).0.as_ref(), Some(&program));
    for wide in [false, true] {
        if let Err(broken) = nt_ir::prepare(program.clone(), nt_ir::Options { wide }) {
            panic!("{broken:?}\n{printed}");
        }
    }
}

/// Pieces of programs, which in any order come near to programs.
const PIECES: &[&str] = &[
    "state ",
    "map ",
    "const ",
    "warp ",
    "thread ",
    "kernel:entry ",
    "kernel:exit ",
    "kernel:\"a*\":exit ",
    "{ ",
    "} ",
    "( ",
    ") ",
    "; ",
    ", ",
    ": ",
    "= ",
    "+= ",
    "++ ",
    "/ ",
    "* ",
    "- ",
    "~",
    "!",
    "< ",
    "== ",
    "&& ",
    "? ",
    "<< ",
    ">> ",
    "as ",
    "as bits ",
    "u64 ",
    "u8 ",
    "s32 ",
    "bool ",
    "ptr ",
    "clock() ",
    "lane ",
    "cu ",
    "tid.x ",
    "thread ",
    "a ",
    "b ",
    "m ",
    "m.save(",
    "0 ",
    "1 ",
    "7 ",
    "0xffffffffffffffff ",
    "if ",
    "else ",
    "let a = ",
    "a = ",
    "min(",
    "select(",
    "array<warp> { a: u64 } ",
    "array<thread> { a: u64, b: u8 } ",
    "stream<warp> { a: u32, b: lanes<ptr> } ",
    "array<warp>[4] wrap { a: u64 } ",
    "config { stream = 1MiB; } ",
    "bb:loop ",
    "/sample(3)/ ",
    "sample(4) ",
    "// x\n",
    "/* ",
    "\"",
    "@x ",
    "[",
    "]",
    "true ",
    "inst:load ",
    "e: ",
    "§",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(text in any::<String>()) {
        holds(&text);
    }

    #[test]
    fn pieces_in_any_order(pieces in prop::collection::vec(0..PIECES.len(), 0..60)) {
        holds(&pieces.into_iter().map(|at| PIECES[at]).collect::<String>());
    }

    #[test]
    fn shipped_programs_with_pieces_changed(
        probe in 0..SHIPPED.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..8usize, 0..PIECES.len()), 1..4),
    ) {
        let mut text = SHIPPED[probe].text.to_owned();
        for (at, cut, piece) in changes {
            let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            let from = at.index(starts.len());
            let to = (from + cut).min(starts.len() - 1);
            text.replace_range(starts[from]..starts[to], PIECES[piece]);
        }
        holds(&text);
    }

    /// Expressions that are right in shape: most of them compile, so that the passes see them.
    #[test]
    fn expressions(text in expression(), unit in prop::sample::select(vec!["thread", "warp"])) {
        holds(&format!(
            "state s: u64; state n: u32; map m: array<{unit}> {{ x: u64, y: u32 }}
             {unit} kernel:entry {{ s = clock(); n = 3; }}
             {unit} kernel:exit {{
               let v = {text};
               if v as u32 & 1 == 0 {{ n += v as u32; }} else {{ v = s; }}
               m.save(v, (clock() - s) as u32 + n);
             }}"
        ));
    }
}

/// An expression of type u64, uniform.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "clock()",
        "s",
        "block",
        "(n as u64)",
        "(cu as u64)",
        "7",
        "0",
        "0xffffffffffffffff",
        "4096",
        "1",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(5, 40, 3, |inner| {
        let two = (
            inner.clone(),
            prop::sample::select(vec!["+", "-", "*", "&", "|", "^", "<<", ">>"]),
            inner.clone(),
        );
        let three = (
            inner.clone(),
            prop::sample::select(vec!["<", "==", ">="]),
            inner.clone(),
            inner.clone(),
            inner.clone(),
        );
        prop_oneof![
            two.prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            three.prop_map(|(a, op, b, c, d)| format!("({a} {op} {b} ? {c} : {d})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("min({a}, {b})")),
            (inner.clone(), prop::sample::select(vec!["/", "%"]), 0..20u32)
                .prop_map(|(a, op, k)| format!("({a} {op} {})", 1_u64 << k)),
            inner.clone().prop_map(|a| format!("~{a}")),
            inner.clone().prop_map(|a| format!("(({a}) as u32 as u64)")),
            inner.prop_map(|a| format!("(({a}) as s8 as s64 as u64)")),
        ]
    })
}

/// Texts that nest, chain or repeat a hundred thousand times end soon, with an error or without.
#[test]
fn a_hundred_thousand_of_anything() {
    const N: usize = 100_000;
    // What only repeats is linear or it is not; a tenth shows that as well.
    const FLAT: usize = N / 10;
    let body = |text: &str| format!("kernel:entry {{ let a = {text}; }}");
    let texts = [
        body(&"(".repeat(N)),
        body(&format!("{}1{}", "(".repeat(N), ")".repeat(N))),
        body(&format!("{}1", "-".repeat(N))),
        body(&format!("{}1", "- ".repeat(N))),
        body(&format!("{}true", "!".repeat(N))),
        body(&format!("1{}", " + 1".repeat(N))),
        body(&format!("1{}", " as u32".repeat(N))),
        body(&format!("tid{}", ".x".repeat(N))),
        body(&format!("a{}", "[0]".repeat(N))),
        body(&format!("{}1", "true ? 1 : ".repeat(N))),
        body(&format!("{}1{}", "true ? ".repeat(N), " : 1".repeat(N))),
        body(&format!("{}1{}", "min(1, ".repeat(N), ")".repeat(N))),
        body(&format!("{}1{}", "(1 + ".repeat(N), ") * 2".repeat(N))),
        format!("kernel:entry {{ {} }}", "if true { ".repeat(N)),
        format!("kernel:entry {{ {} }}", "if true { } else ".repeat(N)),
        format!("kernel:entry {{ if true {{ }} {} }}", "else if true { }".repeat(N)),
        format!("kernel:entry {{ {} }}", "let x = 1; ".repeat(FLAT)),
        format!("kernel:entry {{ {} }}", "x y; ".repeat(FLAT)),
        format!("kernel:entry {{ {} }}", "@x = count(); ".repeat(FLAT)),
        "{".repeat(FLAT),
        "}".repeat(FLAT),
        ";".repeat(FLAT),
        "\"".repeat(FLAT),
        "/*".repeat(FLAT),
        "§".repeat(FLAT),
        "12ab ".repeat(FLAT),
        format!("kernel:entry{} {{ }}", ", kernel:entry".repeat(FLAT)),
        format!("kernel{} {{ }}", ":entry".repeat(FLAT)),
        format!("inst:load{} {{ }}", ".global".repeat(FLAT)),
        format!("map m: array<warp> {{ {} }}", "x: u64, ".repeat(FLAT)),
        "state s; ".repeat(FLAT),
        (0..FLAT).map(|i| format!("const c{i} = c{}; ", i + 1)).collect(),
        (0..1000).map(|i| format!("const c{i} = c{}; ", i + 1)).collect::<String>() + "const c1000 = 1;",
        (0..60).map(|i| format!("state s{i}; kernel:entry {{ s{i} = s{}; }} ", i + 1)).collect::<String>()
            + "state s60; kernel:entry { s60 = lane; }",
    ];
    for text in texts {
        let started = Instant::now();
        compile(&text, "t");
        let head: String = text.chars().take(50).collect();
        assert!(started.elapsed() < Duration::from_secs(10), "{head}… took {:?}", started.elapsed());
    }
}

/// Nesting is an error at the place where it becomes too much, not only somewhere.
#[test]
fn too_deep_has_a_place() {
    let (_, found) = compile(&format!("kernel:entry {{ let a = {}1; }}", "-".repeat(1000)), "t");
    let first = found.iter().next().unwrap();
    assert_eq!((first.slug, found.len()), ("too-deep", 1));
    assert!((24..300).contains(&first.span.start), "{first:?}");
}

/// The longest body that is allowed goes through all passes.
#[test]
fn a_long_body_is_prepared() {
    let save = "m.save(clock() - s, lane);\n".repeat(700);
    holds(&format!(
        "state s: u64; map m: array<thread> {{ a: u64, b: u32 }} kernel:entry {{ s = clock(); }} kernel:exit {{ {save} }}"
    ));
}
