//! What the table says of instructions, against the manual's own examples and arithmetic.
//!
//! Each case is a statement of PTX ISA 9.0, in the section named, and what follows from that section, worked out by
//! hand: class, space (`to <- from` for a copy), width and elements, bytes, then places of operands: `[address]`,
//! `s[shared side]`, `m[mbarrier]`, `d` data, `w` written, `r` read.

#![allow(clippy::panic, reason = "a missing file ends the run")]

mod compute;
mod memory;

use nt_ptx::opcode::{Bytes, CLASSES, Facts, Places, SPACES, Space};
use nt_ptx::syntax::Kind;

fn facts(text: &str) -> Option<Facts> {
    let (module, found) = nt_ptx::parse_statements(text);
    assert!(!found.has_errors(), "{text}: {found:?}");
    let instruction = module.statements.iter().find_map(|s| match s.kind {
        Kind::Instruction(instruction) => Some(instruction),
        _ => None,
    });
    module.facts(&instruction.expect("an instruction"))
}

fn known(text: &str) -> Facts {
    facts(text).unwrap_or_else(|| panic!("unknown: {text}"))
}

fn draw(facts: &Facts) -> String {
    let mut parts = vec![facts.class.name().to_owned()];
    match (facts.space, facts.other_space) {
        (Some(to), Some(from)) => parts.push(format!("{} <- {}", to.name(), from.name())),
        (Some(space), None) => parts.push(space.name().to_owned()),
        _ => (),
    }
    if facts.width != 0 {
        parts.push(format!("{}x{}", facts.width, facts.elems));
    }
    match facts.bytes {
        Bytes::None => (),
        Bytes::Known(bytes) => parts.push(format!("{bytes}B")),
        Bytes::Operand(place) => parts.push(format!("B={place}")),
        Bytes::CopySize { size, operand, source } => {
            let size = size.map_or("?".to_owned(), |size| size.to_string());
            let source = source.map_or(String::new(), |place| format!(" of {place}"));
            parts.push(format!("{size}B={operand}{source}"));
        }
    }
    for (sign, place) in [("", facts.address), ("s", facts.shared_address), ("m", facts.mbarrier)] {
        parts.extend(place.map(|place| format!("{sign}[{place}]")));
    }
    for (sign, places) in [("d", facts.data), ("w", facts.writes), ("r", facts.reads)] {
        let list: Vec<String> = places.iter().map(|place| place.to_string()).collect();
        parts.extend((!list.is_empty()).then(|| format!("{sign}{}", list.join(","))));
    }
    parts.join(" ")
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(draw(&known(text)), expected, "{text}");
}

#[test]
fn what_is_no_instruction_is_not_known() {
    for text in
        ["bogus.u32 a, b;", "add a, b, c;", "add.e4m3 a, b, c;", "cp.bogus [a], [b];", "bar 0;", "tcgen05;"]
    {
        assert_eq!(facts(text), None, "{text}");
    }
    let long = format!("ld{};", ".x".repeat(100));
    assert_eq!(facts(&long), None);
    // Blanks and comments between an opcode's parts are legal.
    check("ld /* here */ .global\n.f32 d, [a /* , */];", "load global 32x1 4B [1] w0 r1");
}

#[test]
fn words_of_probes_hold() {
    let holds = |text: &str, word: &str| known(text).qualifies(word);
    let load = "ld.global.v4.f32 {a,b,c,d}, [p];";
    for (word, expected) in
        [("global", true), ("shared", false), ("b32", true), ("b64", false), ("v4", true), ("v2", false)]
    {
        assert_eq!(holds(load, word), Some(expected), "{word}");
    }
    assert_eq!(
        (holds(load, "f32"), holds(load, "u32"), holds(load, "matrix")),
        (Some(true), Some(false), Some(false))
    );
    // Either side of a copy; not what the text does not say.
    let copy = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [a], [b], c, [m];";
    assert_eq!(
        (holds(copy, "shared"), holds(copy, "cluster"), holds(copy, "global")),
        (Some(true), Some(true), Some(false))
    );
    assert_eq!(holds("ld.f32 d, [p];", "generic"), Some(true));
    assert_eq!(holds("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 d,a,b,c;", "bf16"), Some(true));
    assert_eq!(holds("add.f16x2 d,a,b;", "f16"), Some(true));
    assert_eq!(holds("barrier.cluster.arrive;", "cluster"), Some(true));
    assert_eq!(holds("@p bra L;", "conditional"), Some(true));
    assert_eq!(
        (holds("bra L;", "backward"), holds("bra L;", "scalar"), holds("bra L;", "v3")),
        (None, None, None)
    );

    // Every word of a class's list but `backward` can be asked about.
    for info in CLASSES {
        for word in info.qualifiers.iter().copied().flatten().filter(|word| **word != "backward") {
            assert!(holds(load, word).is_some(), "{} {word}", info.name);
        }
    }
    assert_eq!(Space::ALL.len(), SPACES.len());
    assert_eq!(Places::NONE.with(3).with(1).iter().collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn compilers_output_is_known() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/ptx");
    let mut count = 0;
    for entry in walkdir::WalkDir::new(folder) {
        let path = entry.expect("a readable folder").into_path();
        if path.extension().is_none_or(|ending| ending != "ptx") {
            continue;
        }
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let (module, _) = nt_ptx::parse(&text);
        let version = module.version.expect("a version").pair();
        let arch = module.arch().and_then(nt_ptx::version::Arch::parse).expect("a target");
        for statement in &module.statements {
            let Kind::Instruction(instruction) = statement.kind else { continue };
            let opcode = module.at(instruction.opcode);
            let Some(facts) = module.facts(&instruction) else { panic!("{}: {opcode}", path.display()) };
            // What a compiler wrote for this version and target needs no more than these.
            assert!(facts.needs.allows(version, arch), "{}: {opcode} needs {}", path.display(), facts.needs);
            // Places are places of operands, and each operand is written, read or a label's.
            let operands = module.operands(&instruction).len();
            let all = facts.writes.iter().chain(facts.reads.iter()).chain(facts.data.iter());
            assert!(all.max().is_none_or(|place| place < operands), "{}: {opcode}", path.display());
            count += 1;
        }
    }
    assert!(count > 10_000, "{count}");
}

#[test]
fn operands_of_probes_are_there_or_not() {
    let offers = |text: &str| {
        let facts = known(text);
        let all = [
            "addr", "saddr", "bytes", "width", "space", "out", "in", "old", "macs", "taken", "done", "callee",
        ];
        all.into_iter().filter(|operand| facts.offers(operand)).collect::<Vec<_>>().join(" ")
    };
    // The language reference, section Operands.
    assert_eq!(offers("ld.global.f32 d, [a];"), "addr bytes width space out");
    assert_eq!(offers("st.global.f32 [a], d;"), "addr bytes width space in old");
    assert_eq!(offers("st.local.f32 [a], d;"), "addr bytes width space in");
    assert_eq!(offers("atom.global.add.u32 d, [a], b;"), "addr bytes width space out in");
    assert_eq!(offers("cp.async.cg.shared.global [a], [b], 16;"), "addr saddr bytes space");
    let tensor =
        "cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [s], [t, {x}], [m];";
    assert_eq!(offers(tensor), "saddr space in");
    assert_eq!(offers("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 d,a,b,c;"), "out in macs");
    let wgmma = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {a,b,c,d}, x, y, p, 1, 1, 0, 0;";
    assert_eq!(offers(wgmma), "in macs");
    assert_eq!(offers("tcgen05.mma.cta_group::1.kind::f16 [d], a, b, i, p;"), "in");
    assert_eq!(offers("tcgen05.ld.sync.aligned.32x32b.x1.b32 {r}, [t];"), "addr bytes width space");
    assert_eq!(offers("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], n;"), "addr bytes space");
    assert_eq!(offers("mbarrier.init.shared.b64 [bar], 1;"), "addr space");
    assert_eq!(offers("mbarrier.try_wait.shared.b64 p, [bar], s;"), "done");
    assert_eq!(offers("bar.sync 0;"), "in");
    assert_eq!(offers("@p bra L;"), "taken");
    assert_eq!(offers("call f, (a);"), "callee");
    assert_eq!(offers("fma.rn.f32 d,a,b,c;"), "width out in");
    assert_eq!(offers("trap;"), "");
}

/// What a weaver asks about by name is what the table says.
#[test]
fn needs_stand_once() {
    use nt_ptx::opcode::{Needs, Targets};
    for need in nt_ptx::version::needs().iter().filter(|need| !need.name.starts_with('%')) {
        let facts = known(&format!("{} a, b, c;", need.name));
        let same = Needs { version: need.version, target: Targets::From(need.target) };
        assert_eq!(facts.needs, same, "{}", need.name);
    }
}
