//! What calls take and give: `.param` declarations in bodies.
//!
//! ```text
//! .param .b32 retval0;                        4 bytes, aligned to 4
//! .param .align 16 .b8 param0[24];            24 bytes, aligned to 16
//! ```
//!
//! PTX ISA 9.0, 5.1.6.3 (device function parameters).

use super::function::type_size;
use crate::constant::constant;
use crate::syntax::{Kind, Module, Param, Statement};
use crate::token::TokenKind;
use nt_diag::Span;

impl Module<'_> {
    /// The parameter that a statement declares, if it is one `.param` and declares one; its span ends before the `;`.
    pub fn param(&self, statement: &Statement) -> Option<Param> {
        let Kind::Declaration(space) = statement.kind else { return None };
        if self.at(space) != ".param" {
            return None;
        }
        let all: Vec<(TokenKind, Span)> = self.code(Span::new(space.end, statement.span.end)).collect();
        let number = |at: Span| constant(self.at(at)).and_then(|number| u32::try_from(number).ok());
        let (align, rest) = match all.as_slice() {
            [(TokenKind::Dotted, word), (TokenKind::Number, align), rest @ ..]
                if self.at(*word) == ".align" =>
            {
                (number(*align).filter(|align| align.is_power_of_two())?, rest)
            }
            rest => (1, rest),
        };
        let [(TokenKind::Dotted, ty), (TokenKind::Name, name), rest @ ..] = rest else { return None };
        let size = type_size(self.at(*ty))?;
        let (elements, end) = match rest {
            [(TokenKind::Semicolon, _)] => (1, name.end),
            [
                (TokenKind::OpenBracket, _),
                (TokenKind::Number, bound),
                (TokenKind::CloseBracket, close),
                (TokenKind::Semicolon, _),
            ] => (number(*bound)?, close.end),
            _ => return None,
        };
        Some(Param {
            span: Span::new(space.start, end),
            name: *name,
            align: align.max(size),
            size: size.checked_mul(elements)?,
            offset: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn parameters_of_calls() {
        let check = |text: &str, expected: Option<(&str, &str, u32, u32)>| {
            let text = format!(".version 8.5 .target sm_90 .address_size 64 .func f() {{ {text} ret; }}");
            let (module, _) = crate::parse(&text);
            let read = module.param(&module.statements[0]);
            let read =
                read.map(|param| (module.at(param.span), module.at(param.name), param.size, param.align));
            assert_eq!(read, expected, "{text}");
        };
        check(".param .b32 retval0;", Some((".param .b32 retval0", "retval0", 4, 4)));
        check(
            ".param .align 16 .b8 /* c */ p[0x18] ;",
            Some((".param .align 16 .b8 /* c */ p[0x18]", "p", 24, 16)),
        );
        check(".param .b64 a, b;", None);
        check(".param .v2 .b64 a;", None);
        check(".reg .b64 %a;", None);
        check("bar.sync 0;", None);
    }
}
