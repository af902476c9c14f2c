//! What the tests of the weaver share: weaving from texts, taking spans away, and the assembler's verdict.
#![allow(dead_code, reason = "each test takes what it needs")]

use nt_diag::{Found, Paint, Source, render};
use nt_ir::launch::Conditions;
use nt_weave::Woven;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of this crate.
pub(crate) fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder of shared test data.
pub(crate) fn testdata() -> PathBuf {
    here().join("../../testdata")
}

/// A program of `tests/probes`, prepared.
pub(crate) fn probe(name: &str) -> nt_ir::Prepared {
    let text = std::fs::read_to_string(here().join("tests/probes").join(name).with_extension("ir")).unwrap();
    prepare(&text)
}

/// IR text, prepared.
pub(crate) fn prepare(text: &str) -> nt_ir::Prepared {
    let (program, found) = nt_ir::text::parse(text);
    let Some(program) = program else {
        panic!("{}", render(&Source::new("probe.ir", text), found, &Paint::PLAIN));
    };
    nt_ir::prepare(program, nt_ir::Options::default()).unwrap_or_else(|broken| panic!("{broken:?}"))
}

/// Weaves a program into all kernels of a text that parses.
pub(crate) fn weave(ptx: &str, probe: &nt_ir::Prepared) -> Woven {
    weave_for(ptx, probe, Conditions::NONE)
}

/// [`weave`], for launches of which `assume` holds.
pub(crate) fn weave_for(ptx: &str, probe: &nt_ir::Prepared, assume: Conditions) -> Woven {
    let (module, mut found) = nt_ptx::parse(ptx);
    let info = nt_ptx::resolve(&module, &mut found);
    assert!(!found.has_errors(), "{}", render(&Source::new("in.ptx", ptx), found, &Paint::PLAIN));
    let all: Vec<usize> = (0..module.functions.len()).collect();
    let options = nt_weave::Options { assume, ..nt_weave::Options::default() };
    nt_weave::weave_with(&module, &info, probe, &all, options)
}

/// The refusals of a weaving, drawn.
pub(crate) fn refusals(ptx: &str, woven: &Woven) -> String {
    let mut found = Found::new();
    woven.refused.iter().for_each(|(_, why)| found.push(why.clone()));
    render(&Source::new("in.ptx", ptx), found, &Paint::PLAIN)
}

/// Undoes a weaving by its marks alone: cuts spans out and puts back what edits replaced. Knows nothing else of PTX.
pub(crate) fn take_away(woven: &str) -> String {
    let mut out = String::new();
    let mut rest = woven;
    while let Some(at) = rest.find("/*nt:") {
        out.push_str(&rest[..at]);
        let mark = &rest[at + "/*nt:".len()..];
        let (name, inside) = mark.split_once("{*/").expect("an opening mark");
        let (word, rest_of_name) = name.split_once(' ').unwrap_or((name, ""));
        let hex = if word == "edit" { rest_of_name } else { "" };
        let bytes = (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap());
        out.push_str(&String::from_utf8(bytes.collect()).unwrap());
        (_, rest) = inside.split_once(&format!("/*}}nt:{word}*/")).expect("a closing mark");
    }
    out + rest
}

/// What must hold of every weaving, whatever was woven: it can be undone, and it keeps the verifier's rules.
pub(crate) fn obeys(ptx: &str, woven: &Woven, name: &str) {
    assert_eq!(take_away(&woven.text), ptx, "{name}: the spans taken away, the input is not back");
    let report = nt_verify::check(ptx, &woven.text);
    let text = render(&Source::new(name, &woven.text), report.to_found(), &Paint::PLAIN);
    assert!(report.is_accepted(), "{text}");
}

/// The assembler, if it is on PATH. Says that it is skipped otherwise.
pub(crate) struct Ptxas;

impl Ptxas {
    #[allow(clippy::print_stderr, reason = "what is skipped is said")]
    pub(crate) fn find() -> Option<Ptxas> {
        let found = Command::new("ptxas").arg("--version").output().is_ok_and(|out| out.status.success());
        if !found {
            eprintln!("skipped: no ptxas on PATH, nothing was assembled");
        }
        found.then_some(Ptxas)
    }

    /// Assembles a text for its own target; what was said if it is refused.
    pub(crate) fn assemble(&self, text: &str) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("in.ptx");
        std::fs::write(&file, text).unwrap();
        // For its own target, or the oldest that ptxas 13 still knows.
        let (module, _) = nt_ptx::parse(text);
        let arch = match module.arch().unwrap() {
            "sm_50" | "sm_60" | "sm_70" => "sm_75",
            arch => arch,
        };
        let debug = module
            .target
            .as_ref()
            .is_some_and(|target| target.words.iter().any(|&w| module.at(w) == "debug"));
        let out = Command::new("ptxas")
            .args(["-v", &format!("-arch={arch}")])
            .args(debug.then_some("-g"))
            .arg(&file)
            .arg("-o")
            .arg(folder.path().join("out.cubin"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned() + &String::from_utf8_lossy(&out.stdout);
        if out.status.success() { Ok(said) } else { Err(said) }
    }
}
