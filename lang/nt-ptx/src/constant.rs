//! Constant expressions of PTX: `16`, `0x10U`, `017`, `0b101`, `(1<<3)|2`, `-4`, `WARP_SZ`.
//!
//! They stand in array bounds, displacements and immediates. Arithmetic is in 64 bits and wraps, as section 4.5.4 of
//! the PTX ISA has it; signedness, which matters to `/`, `%`, `>>` and comparisons alone, is taken as signed unless a
//! literal has a `U` or does not fit (section 4.5.5).

use crate::token::{TokenKind, Tokens};
use nt_diag::Span;

/// How deep parentheses and operators may nest.
const DEPTH: u32 = 64;

/// The value of an integer constant expression, as the 64 bits that PTX computes with; `None` for anything else,
/// division by zero and hex floats included.
///
/// ```
/// assert_eq!(nt_ptx::constant("+-8"), Some(-8));
/// assert_eq!(nt_ptx::constant("4*2 + (1<<3)"), Some(16));
/// assert_eq!(nt_ptx::constant("0xFFu"), None); // ptxas takes an upper-case U alone
/// assert_eq!(nt_ptx::constant("%r1"), None);
/// ```
pub fn constant(text: &str) -> Option<i64> {
    let mut tokens = Tokens::new(text, Span::from(0..text.len()));
    let next = tokens.next();
    let mut reader = Expression { text, tokens, next, depth: 0 };
    let value = reader.ternary()?;
    reader.next.is_none().then_some(value.bits)
}

/// 64 bits and how to read them.
#[derive(Clone, Copy)]
struct Value {
    bits: i64,
    unsigned: bool,
}

struct Expression<'s> {
    text: &'s str,
    tokens: Tokens<'s>,
    next: Option<(TokenKind, Span)>,
    depth: u32,
}

impl<'s> Expression<'s> {
    fn word(&self) -> &'s str {
        self.next.map_or("", |(_, span)| span.of(self.text))
    }

    fn take(&mut self) -> &'s str {
        let word = self.word();
        self.next = self.tokens.find(|(kind, _)| !kind.is_comment());
        word
    }

    fn ternary(&mut self) -> Option<Value> {
        self.depth += 1;
        if self.depth > DEPTH {
            return None;
        }
        let condition = self.binary(0)?;
        let value = if self.word() == "?" {
            self.take();
            let then = self.ternary()?;
            if self.take() != ":" {
                return None;
            }
            let other = self.ternary()?;
            if condition.bits != 0 { then } else { other }
        } else {
            condition
        };
        self.depth -= 1;
        Some(value)
    }

    /// Operators that bind at least as tightly as `floor`.
    fn binary(&mut self, floor: u32) -> Option<Value> {
        let mut left = self.unary()?;
        while let Some(strength) = strength(self.word()).filter(|&s| s >= floor) {
            let operator = self.take();
            let right = self.binary(strength + 1)?;
            left = apply(operator, left, right)?;
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<Value> {
        let mut signs = Vec::new();
        while let "-" | "+" | "!" | "~" = self.word() {
            signs.push(self.take());
        }
        let mut value = self.primary()?;
        for sign in signs.into_iter().rev() {
            value.bits = match sign {
                "-" => value.bits.wrapping_neg(),
                "!" => i64::from(value.bits == 0),
                "~" => !value.bits,
                _ => value.bits,
            };
        }
        Some(value)
    }

    fn primary(&mut self) -> Option<Value> {
        match self.next?.0 {
            TokenKind::Number => literal(self.take()),
            TokenKind::Name if self.word() == "WARP_SZ" => {
                self.take();
                Some(Value { bits: 32, unsigned: false })
            }
            TokenKind::OpenParen => {
                self.take();
                let value = self.ternary()?;
                (self.take() == ")").then_some(value)
            }
            _ => None,
        }
    }
}

/// How tightly a binary operator binds, as in C.
fn strength(operator: &str) -> Option<u32> {
    Some(match operator {
        "||" => 0,
        "&&" => 1,
        "|" => 2,
        "^" => 3,
        "&" => 4,
        "==" | "!=" => 5,
        "<" | ">" | "<=" | ">=" => 6,
        "<<" | ">>" => 7,
        "+" | "-" => 8,
        "*" | "/" | "%" => 9,
        _ => return None,
    })
}

fn apply(operator: &str, left: Value, right: Value) -> Option<Value> {
    let (a, b) = (left.bits, right.bits);
    let unsigned = left.unsigned || right.unsigned;
    // The same bits, read as PTX reads them.
    let (ua, ub) = (a.cast_unsigned(), b.cast_unsigned());
    let shift = u32::try_from(b).ok().filter(|&n| n < 64);
    let less = if unsigned { ua < ub } else { a < b };
    let bits = match operator {
        "||" => i64::from(a != 0 || b != 0),
        "&&" => i64::from(a != 0 && b != 0),
        "|" => a | b,
        "^" => a ^ b,
        "&" => a & b,
        "==" => i64::from(a == b),
        "!=" => i64::from(a != b),
        "<" => i64::from(less),
        ">" => i64::from(!less && a != b),
        "<=" => i64::from(less || a == b),
        ">=" => i64::from(!less),
        "<<" => a << shift?,
        ">>" if left.unsigned => (ua >> shift?).cast_signed(),
        ">>" => a >> shift?,
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        "/" if unsigned => ua.checked_div(ub)?.cast_signed(),
        "/" => a.checked_div(b)?,
        "%" if unsigned => ua.checked_rem(ub)?.cast_signed(),
        "%" => a.checked_rem(b)?,
        _ => return None,
    };
    Some(Value { bits, unsigned })
}

/// A decimal, hexadecimal, octal or binary literal.
fn literal(text: &str) -> Option<Value> {
    let (digits, suffixed) = match text.strip_suffix('U') {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
        [b'0', b'b' | b'B', ..] => (&digits[2..], 2),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    // `from_str_radix` takes a sign, PTX does not.
    if !digits.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    let value = u64::from_str_radix(digits, radix).ok()?;
    Some(Value { bits: value.cast_signed(), unsigned: suffixed || value > i64::MAX.cast_unsigned() })
}

#[cfg(test)]
mod tests {
    use super::constant;

    #[test]
    fn literals() {
        assert_eq!(constant("0"), Some(0));
        assert_eq!(constant("017"), Some(15));
        assert_eq!(constant("0b101"), Some(5));
        assert_eq!(constant("0xFFU"), Some(255));
        assert_eq!(constant("08"), None);
        assert_eq!(constant("0f3F800000"), None);
        assert_eq!(constant("18446744073709551615"), Some(-1));
        assert_eq!(constant("18446744073709551616"), None);
        assert_eq!(constant("1.5"), None);
        assert_eq!(constant(""), None);
    }

    #[test]
    fn operators_bind_as_in_c() {
        assert_eq!(constant("(1<<3)|2"), Some(10));
        assert_eq!(constant("2+3*4"), Some(14));
        assert_eq!(constant("10-4-3"), Some(3));
        assert_eq!(constant("1|2^3&4"), Some(3));
        assert_eq!(constant("-7/2"), Some(-3));
        assert_eq!(constant("7 % 0"), None);
        assert_eq!(constant("1<<64"), None);
        assert_eq!(constant("0xFFFFFFFFFFFFFFFF >> 60"), Some(15));
        assert_eq!(constant("-1 < 1U"), Some(0), "unsigned, since one side is");
        assert_eq!(constant("1 ? 2 : 0 ? 3 : 4"), Some(2));
        assert_eq!(constant("~0 == -1"), Some(1));
        assert_eq!(constant("WARP_SZ*4"), Some(128));
        assert_eq!(constant("1 2"), None);
    }

    #[test]
    fn deep_nesting_is_refused_not_followed() {
        assert_eq!(constant(&"(".repeat(100_000)), None);
        assert_eq!(constant(&"-".repeat(100_000)), None);
    }
}
