//! What is read as a span, and what is refused.

use super::*;

fn refused(text: &str, message: &str) {
    assert_eq!(read(text, 3).expect_err("must be refused").1, message, "{text}");
}

#[test]
fn statements_of_a_span() {
    let read = read("{ .reg .b64 %nt_a<2>; $nt_L: @!%p st.global.v2.b32 [%nt_a1+-4], {%nt_x, 017}; }", 0)
        .expect("is read");
    let Kind::Declaration { bits: 64, names } = &read[1].kind else { panic!("{read:?}") };
    assert_eq!((names[0].name, names[0].count), ("%nt_a", Some(2)));
    assert_eq!(read[2].kind, Kind::Label("$nt_L"));
    let Kind::Instruction(st) = &read[3].kind else { panic!("{read:?}") };
    assert!(st.guard.is_some_and(|g| g.negated && g.name == "%p"));
    assert_eq!(st.operands[0].shape, Shape::Address { base: "%nt_a1", offset: -4 });
    let Shape::Vector(parts) = &st.operands[1].shape else { panic!("{st:?}") };
    assert_eq!(parts[1].shape, Shape::Number(Number::Integer(15)), "octal, as in C");
}

#[test]
fn numbers() {
    for (text, value) in
        [("0", 0), ("0x1fU", 31), ("0b101", 5), ("017", 15), ("18446744073709551615", u64::MAX)]
    {
        assert_eq!(integer(text), Some(value), "{text}");
    }
    for text in ["08", "0xFFu", "0x", "0b2", "1.5", "1_0", "", "18446744073709551616", "12a", "0x+1", "00b1"]
    {
        assert_eq!(integer(text), None, "{text}");
    }
}

#[test]
fn what_is_no_whole_statement() {
    refused("}", "a `}` without its `{` in this span");
    refused("{", "a `{` of this span is never closed");
    refused("} {", "a `}` without its `{` in this span");
    refused("mov.u32 %a, 1;", "a statement outside of the braces of its span");
    refused("{ mov.u32 %a, 1 }", "expected `;`, found `}`");
    refused("{ mov.u32 %a, 1; @%p }", "expected an opcode behind the guard, found `}`");
    refused("{ .shared .b32 %nt_x; }", "directive `.shared` in a span");
    refused("{ .pragma \"nounroll\"; }", "a string");
    refused("{ .reg .v4 .b32 %nt_x; }", "expected a scalar type of registers, found `.v4`");
    refused("{ .reg .b32 %nt_x<99999>; }", "expected a number of registers, found `99999`");
    refused("{ mov.b32 %a, {{%b}, %c}; }", "expected an operand, found `{`");
    refused("{ call f, (%a); }", "expected an operand, found `(`");
    refused("{ } .reg .b32 %nt_x;", "state declared behind the first `{` of its span");
    refused("{ mov.u32 %a, 1+2; }", "expected `;`, found `+`");
    refused("{ ;", "expected a statement, found `;`");
    refused("{ mov.u32 %a,", "expected an operand, found the span's end");
    refused("{ st.global.u32 [12], 1; }", "expected the base of an address, found `12`");
    refused("{ mov.u32 %a, 0x; }", "expected a number, found `0x`");
    refused(
        "{ mov.u64 %a, -9223372036854775809; }",
        "expected a number of at most 64 bits, found `9223372036854775809`",
    );
}
