//! The probe language and the table of opcodes speak of the same classes, in the same words.
//!
//! Neither crate may know the other, so they are compared here: a class, qualifier or operand that only one of them has
//! would compile and then match nothing, or never be found by name.

use nt_probe::classes;
use nt_ptx::opcode;

#[test]
fn classes_are_the_same() {
    assert_eq!(classes::CLASSES.len(), opcode::CLASSES.len());
    for (language, table) in classes::CLASSES.iter().zip(opcode::CLASSES) {
        assert_eq!((language.name, language.about), (table.name, table.about));
        assert_eq!(language.qualifiers, table.qualifiers, "{}", language.name);
        assert_eq!(language.operands, table.operands, "{}", language.name);
    }
}

#[test]
fn groups_are_the_same() {
    assert_eq!(classes::GROUPS.len(), opcode::GROUPS.len());
    for (language, table) in classes::GROUPS.iter().zip(opcode::GROUPS) {
        assert_eq!((language.name, language.about), (table.name, table.about));
        let names: Vec<&str> = table.classes.iter().map(|class| class.name()).collect();
        assert_eq!(language.classes, names);
    }
}

#[test]
fn sorts_of_qualifiers_are_the_same() {
    assert_eq!(classes::SPACES, opcode::SPACES);
    assert_eq!(classes::WIDTHS, opcode::WIDTHS);
    assert_eq!(classes::VECTORS, opcode::VECTORS);
    assert_eq!(classes::TYPES, opcode::TYPES);
}

/// What `has(x)` may ask is what a class may offer, and the other way round; `in` stands for the five of them.
#[test]
fn operands_are_those_of_has() {
    use nt_ir::program::Part;
    let mut offered: Vec<&str> = opcode::CLASSES.iter().flat_map(|class| class.operands).copied().collect();
    offered.push("pred");
    offered.sort_unstable();
    offered.dedup();
    let mut asked: Vec<&str> =
        Part::ALL.iter().map(|part| if matches!(part, Part::In(_)) { "in" } else { part.word() }).collect();
    asked.sort_unstable();
    asked.dedup();
    assert_eq!(offered, asked);
}
