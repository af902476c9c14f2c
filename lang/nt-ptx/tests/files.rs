//! Every file of `tests/accepted`, `tests/noted` and `tests/refused`, and all PTX of the repository's testdata.
//!
//! * `accepted`: constructs that break naive readers. ptxas takes them, which a test here asks it; the reader finds
//!   nothing to say, and the counts of their second line, made by hand, are those of what it read.
//! * `noted`: passes through, with a note on each line that says `// note: TEXT`.
//! * `refused`: ptxas refuses them; each line that says `// error: TEXT` has that error, and no other line has one.

#![allow(clippy::panic, reason = "a missing file ends the run")]

mod assembler;

use nt_diag::{Found, Severity, Source};
use nt_ptx::syntax::{Kind, Module};
use nt_ptx::{ModuleInfo, parse, resolve, spell};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files of a folder under `tests`, in order of their names.
fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut files: Vec<PathBuf> = walkdir::WalkDir::new(&folder)
        .into_iter()
        .map(|entry| entry.expect("a readable folder").into_path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "ptx"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} has no PTX", folder.display());
    files
}

fn all<'s>(text: &'s str) -> (Module<'s>, ModuleInfo<'s>, Found) {
    let (module, mut found) = parse(text);
    let info = resolve(&module, &mut found);
    (module, info, found)
}

/// `kernels: 1  instructions: 4  labels: 2`, counted.
fn counts(module: &Module<'_>) -> String {
    let count = |test: fn(&Kind) -> bool| module.statements.iter().filter(|s| test(&s.kind)).count();
    format!(
        "kernels: {}  instructions: {}  labels: {}",
        module.kernels().count(),
        count(|kind| matches!(kind, Kind::Instruction(_))),
        count(|kind| matches!(kind, Kind::Label(_))),
    )
}

#[test]
fn accepted_files_are_read() {
    for path in files("accepted") {
        let text = read(&path);
        let expected =
            text.lines().find_map(|line| line.strip_prefix("// kernels:")).expect("a line of counts");
        // The same in another system's line ends.
        for text in [text.clone(), text.replace('\n', "\r\n"), text.replace('\n', "\r")] {
            // A line comment of the last form would end at the wrong place; such files have block comments only.
            if text.contains("//") && !text.contains('\n') {
                continue;
            }
            let (module, _, found) = all(&text);
            assert!(found.is_empty(), "{}: {found:?}", path.display());
            assert_eq!(counts(&module), format!("kernels:{expected}"), "{}", path.display());
            assert_eq!(spell(&module), text, "{}", path.display());
        }
    }
}

/// Findings as `line severity text`; what a file expects has a part of the text only.
fn check_marks(path: &Path, severity: Severity) {
    let text = read(path);
    let (module, _, found) = all(&text);
    assert_eq!(spell(&module), text, "{}", path.display());
    let mark = format!("// {}: ", severity.word());
    let mut expected: Vec<(u32, &str)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        expected.extend(line.split(&mark).skip(1).map(|part| (number, part.trim_end_matches("// ").trim())));
    }
    let source = Source::new("", &text);
    for diagnostic in found.sorted() {
        let line = source.position(diagnostic.span.start).line;
        let what = (line, &diagnostic.message);
        assert_eq!(diagnostic.severity, severity, "{}: {what:?}", path.display());
        let at = expected.iter().position(|(at, part)| *at == line && diagnostic.message.contains(part));
        let at = at.unwrap_or_else(|| panic!("{}: not expected: {what:?}", path.display()));
        expected.remove(at);
    }
    assert!(expected.is_empty(), "{}: not found: {expected:?}", path.display());
}

#[test]
fn faults_are_told_where_they_are() {
    for path in files("refused") {
        check_marks(&path, Severity::Error);
    }
}

#[test]
fn what_is_not_known_passes_with_a_note() {
    for path in files("noted") {
        check_marks(&path, Severity::Note);
    }
}

#[test]
fn compilers_output_is_read() {
    for path in files("../../../testdata/ptx") {
        let text = read(&path);
        let (module, info, found) = all(&text);
        assert!(found.is_empty(), "{}: {found:?}", path.display());
        assert_eq!(spell(&module), text, "{}", path.display());
        assert_eq!(info.functions.len(), module.functions.len());
        // Counted without the reader: compilers begin a line with each.
        let lines = |word: &str| text.lines().filter(|line| line.trim_start().starts_with(word)).count();
        let entries = text.lines().filter(|line| line.contains(".entry ")).count();
        assert_eq!(module.functions.iter().filter(|f| f.is_entry).count(), entries, "{}", path.display());
        let locs = module.statements.iter().filter(|s| matches!(s.kind, Kind::Loc)).count();
        assert_eq!(locs, lines(".loc\t"), "{}", path.display());
    }
}

#[test]
fn what_editors_leave_behind_is_located() {
    let check = |text: &str, line: u32, column: u32, part: &str| {
        let (_, found) = parse(text);
        let first = found.sorted().into_iter().next().unwrap_or_else(|| panic!("nothing found in {text:?}"));
        let at = Source::new("", text).position(first.span.start);
        assert_eq!((at.line, at.column), (line, column), "{text:?}");
        assert!(first.message.contains(part) && first.severity == Severity::Error, "{first:?}");
    };
    check("\u{feff}.version 8.5\n.target sm_90\n", 1, 1, "byte order mark");
    check(".version 8.5\n.target sm_90\n.entry k() { ret; }\n\0", 4, 1, "the byte 0x00");
    check(".version 8.5\r\n.target sm_90\r\n.entry k() { ret;\u{b} }\r\n", 3, 18, "the byte 0x0b");
    check("", 1, 1, "no PTX");
    check("\u{7f}ELF\u{2}\u{1}\n\n", 1, 1, "no PTX");
}

/// ptxas, if it is to be had, and its version.
fn ptxas() -> Option<(String, (u32, u32))> {
    let out = Command::new("ptxas").arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let number = text.split("release ").nth(1)?.split(',').next()?;
    let (major, minor) = number.split_once('.')?;
    Some((number.to_owned(), (major.parse().ok()?, minor.parse().ok()?)))
}

fn assembles(path: &Path, arch: &str) -> bool {
    let out = tempfile::NamedTempFile::new().expect("a temporary file");
    let mut command = Command::new("ptxas");
    command.arg(format!("-arch={arch}")).arg(path).arg("-o").arg(out.path());
    command.output().expect("ptxas was there a moment ago").status.success()
}

#[test]
fn ptxas_agrees() {
    let Some((version, pair)) = ptxas() else {
        println!("skipped: no ptxas on PATH");
        return;
    };
    let known = u16::try_from(pair.0).ok().zip(u16::try_from(pair.1).ok());
    let newest = known.and_then(|(major, minor)| nt_ptx::version::of_release(major, minor));
    let mut skipped = 0;
    for path in files("accepted") {
        let text = read(&path);
        let since = text.lines().find_map(|line| line.strip_prefix("// since ptxas "));
        let since = since.and_then(|since| since.split_once('.')).map(|(a, b)| (a.parse(), b.parse()));
        if let Some((Ok(major), Ok(minor))) = since
            && pair < (major, minor)
        {
            skipped += 1;
            continue;
        }
        let (module, _) = parse(&text);
        if newest.is_some_and(|newest| module.version.is_some_and(|own| own.pair() > newest)) {
            skipped += 1;
            continue;
        }
        assert!(assembles(&path, module.arch().expect("a target")), "{}", path.display());
    }
    for path in files("refused").into_iter().chain(files("noted")) {
        assert!(!assembles(&path, "sm_90a"), "{}", path.display());
    }
    println!("ptxas {version}; {skipped} accepted by later ones only");
}

/// Comments between statements and opcodes written anew change nothing: the assembler makes the same of it, or refuses it
/// in the same words. Small files of each compiler here, all files and four assemblers in `make judges`.
#[test]
fn ptxas_sees_no_edit_that_changes_nothing() {
    let Ok(ptxas) = assembler::Ptxas::new("ptxas".into()) else {
        println!("skipped: no ptxas on PATH");
        return;
    };
    let (mut taken, mut all) = (0, 0);
    for path in files("../../../testdata/ptx") {
        let text = read(&path);
        if text.len() > 20_000 {
            continue;
        }
        let (module, _) = parse(&text);
        let answer = ptxas.compare(&module, &assembler::edited_without_change(&module));
        let answer = answer.expect("ptxas was there a moment ago");
        assert!(answer.is_same, "{}: {}", path.display(), answer.printed);
        taken += u32::from(answer.is_accepted);
        all += 1;
    }
    assert!(taken >= 10, "{taken} of {all}");
    println!("ptxas {}: {taken} of {all} files taken", ptxas.version);
}

/// Targets and the version that brought them are those of the manual; ptxas, which is the judge, takes a target from
/// that version on and not from the one before.
#[test]
fn ptxas_agrees_on_targets() {
    use nt_ptx::version::{Arch, of_release};
    let Some((version, pair)) = ptxas() else {
        println!("skipped: no ptxas on PATH");
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let takes = |version: (u16, u16), arch: &str| {
        let path = folder.path().join("k.ptx");
        let text = format!(".version {}.{}\n.target {arch}\n.entry k() {{ ret; }}\n", version.0, version.1);
        fs::write(&path, text).expect("a writable folder");
        assembles(&path, arch)
    };
    // ptxas 13.0 takes sm_88 from 7.3, 13.5 from 9.0 as the manual says.
    let later = if pair < (13, 5) { "sm_88" } else { "" };
    let mut tried = 0;
    for arch in [
        "sm_80", "sm_86", "sm_88", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_100f", "sm_103", "sm_107",
        "sm_107a", "sm_107f", "sm_110", "sm_120", "sm_121f",
    ] {
        let least = Arch::parse(arch).and_then(Arch::least_version).expect("a known target");
        let known = u16::try_from(pair.0).ok().zip(u16::try_from(pair.1).ok());
        // An older ptxas knows fewer targets.
        if arch == later || known.and_then(|(a, b)| of_release(a, b)).is_some_and(|most| most < least) {
            continue;
        }
        let before = if least.1 == 0 { (least.0 - 1, 8) } else { (least.0, least.1 - 1) };
        assert!(takes(least, arch), "{arch} in {least:?}");
        assert!(!takes(before, arch), "{arch} in {before:?}");
        tried += 1;
    }
    println!("ptxas {version}; {tried} targets");
}
