//! The laws of the reader over its test files, texts made from pieces of PTX, and mutants of real PTX.

mod laws;

use proptest::prelude::*;
use std::path::Path;
use std::sync::LazyLock;

/// Pieces of which texts are made: what opens and closes things, what begins items, what no text may hold.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ";",
    ":",
    ",",
    "@",
    "!",
    "|",
    "+",
    "-",
    "<",
    ">",
    "=",
    "/*",
    "*/",
    "//",
    "\"",
    "#",
    "\n",
    "\r\n",
    " ",
    ".version 8.5",
    ".target sm_90",
    ".entry k",
    ".func f",
    ".visible",
    ".extern",
    ".global .u32 g",
    ".reg .b32 %r<9>",
    ".param .b64 p",
    ".loc 1 2 3",
    ".file 1",
    ".section .debug_x {",
    ".pragma \"x\";",
    ".alias a, b;",
    ".branchtargets A, B;",
    ".callprototype _ ();",
    ".frob",
    "mov.u32 %r1, %tid.x;",
    "@!%p1 bra L;",
    "L:",
    "ret;",
    "call f, (a);",
    "brx.idx %r1, T;",
    "ld.global.v2.u32 {%r1,_}, [%rd1+-8];",
    "%",
    "$",
    "0x",
    "1.5e",
    "é",
    "\u{feff}",
    "\0",
    "\u{c}",
    "\\",
    "nt_",
    ".",
    "::",
    "exit;",
    "trap;",
    "%r1|%p1",
    "_",
];

/// The texts of all PTX files of this crate and of testdata.
fn corpus() -> &'static [String] {
    static CORPUS: LazyLock<Vec<String>> = LazyLock::new(read_corpus);
    &CORPUS
}

fn read_corpus() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = ["tests", "../../testdata/ptx"]
        .iter()
        .flat_map(|folder| walkdir::WalkDir::new(root.join(folder)))
        .map(|entry| entry.expect("a readable folder").into_path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "ptx"))
        .collect();
    files.sort();
    files.iter().map(|path| std::fs::read_to_string(path).expect("UTF-8")).collect()
}

#[test]
fn laws_hold_for_all_files() {
    for text in corpus() {
        laws::all(text);
    }
}

/// The nearest character boundary at or before `at`.
fn floor(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn laws_hold_for_any_text(text in "\\PC{0,40}|[ -~\n]{0,80}") {
        laws::all(&text);
    }

    #[test]
    fn laws_hold_for_pieces(pieces in prop::collection::vec(0..PIECES.len(), 0..40)) {
        let text: Vec<&str> = pieces.iter().map(|&piece| PIECES[piece]).collect();
        laws::all(&text.join(" "));
        laws::all(&text.concat());
        laws::all(&format!(".version 8.5\n.target sm_90\n.entry k() {{ {} }}", text.join("\n")));
    }

    #[test]
    fn laws_hold_for_mutants(file in any::<prop::sample::Index>(), cuts in prop::collection::vec((any::<prop::sample::Index>(), 0..40usize, 0..PIECES.len()), 1..4)) {
        let corpus = corpus();
        let mut text = corpus[file.index(corpus.len())].clone();
        text.truncate(floor(&text, 6_000));
        for (at, length, piece) in cuts {
            let start = floor(&text, at.index(text.len() + 1));
            let end = floor(&text, start + length);
            text.replace_range(start..end, PIECES[piece]);
        }
        laws::all(&text);
    }
}

#[test]
fn no_text_takes_more_than_its_length() {
    // Each of these made some reader quadratic, or its stack overflow. 200 kB in a blink is linear enough.
    let head = ".version 8.5\n.target sm_90\n.entry k() {";
    for piece in [
        "{",
        "L:",
        "@",
        "{ L: bra L; }",
        "(",
        "[",
        "\"",
        "/*",
        "brx.idx %r, L;",
        ".reg .b32 a;",
        "call f;",
        ";",
        "é",
        "{{ ret;",
        "bra X;",
        ".frob;",
        "frob a;",
        "frob%d x;",
    ] {
        let text = format!("{head}{}", piece.repeat(200_000 / piece.len()));
        laws::reading_loses_nothing(&text);
        laws::memory_is_bounded(&text);
        laws::later_stages_take_anything(&text);
    }
    let text = format!("{head} mov.b32 {}", "{".repeat(100_000));
    laws::all(&text);
    let (mut labels, mut jumps) = (String::from("T: .branchtargets L"), String::from(";"));
    for at in 0..500 {
        labels.push_str(&format!(", L{at}"));
        jumps.push_str(&format!("brx.idx %r1, T; L{at}: "));
    }
    laws::later_stages_take_anything(&format!("{head}{labels}{jumps} L: ret; }}"));
}
