//! Declarations of variables: how large, how aligned, and what they hold at first.
//!
//! ```text
//! .visible .global .align 8 .u64 operations[2] = {twice, square};
//! .extern .shared .align 16 .b8 dynamic[];
//! .func (.param .b32 result) f(.param .align 8 .b8 block[24])
//! ```
//!
//! Source: PTX ISA 9.0, section 5.4 (variables).

use super::line::{Missing, missing, number};
use crate::types::{Type, mask};
use nt_diag::Span;
use nt_ptx::TokenKind;
use nt_ptx::syntax::Module;

/// The most that one variable may take.
const MOST_BYTES: u64 = 1 << 32;

/// One declared name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Declaration<'s> {
    pub(crate) name: &'s str,
    pub(crate) at: Span,
    /// `.global`, `.shared`, …
    pub(crate) space: &'s str,
    pub(crate) ty: Option<Type>,
    /// Elements of a vector.
    pub(crate) lanes: u64,
    pub(crate) align: u64,
    /// Array bounds, outermost first; 0 where there is none.
    pub(crate) bounds: Vec<u64>,
    /// `%r<9>`
    pub(crate) range: Option<u64>,
    pub(crate) is_extern: bool,
    /// What stands behind `=`.
    pub(crate) initialiser: Option<Span>,
}

impl Declaration<'_> {
    /// Bytes of an element, vectors being one.
    pub(crate) fn element(&self) -> u64 {
        // Handles of textures and the like have 8 bytes.
        self.ty.map_or(8, |ty| ty.bytes() as u64) * self.lanes
    }

    /// Bytes of the variable; `None` if it cannot be.
    pub(crate) fn bytes(&self) -> Option<u64> {
        let count = self.bounds.iter().try_fold(1u64, |all, &bound| all.checked_mul(bound))?;
        count.checked_mul(self.element()).filter(|&bytes| bytes <= MOST_BYTES)
    }

    /// Where it goes if `end` is where the last one ended.
    pub(crate) fn place(&self, end: u64) -> u64 {
        end.next_multiple_of(self.align.max(self.element().next_power_of_two()).clamp(1, 1 << 20))
    }
}

/// The names that a span declares: a declaration of module or body, or a list of parameters, where each has its own
/// space and type.
pub(crate) fn declarations<'s>(module: &Module<'s>, span: Span, is_list: bool) -> Vec<Declaration<'s>> {
    let mut all: Vec<Declaration<'s>> = Vec::new();
    let start = Declaration {
        name: "",
        at: span,
        space: "",
        ty: None,
        lanes: 1,
        align: 1,
        bounds: Vec::new(),
        range: None,
        is_extern: false,
        initialiser: None,
    };
    let mut next = start.clone();
    // Behind `.align`, behind `.ptr`, behind the name, inside of brackets, behind `=`.
    let (mut aligns, mut points, mut named) = (false, false, false);
    let mut open: Option<u32> = None;
    let mut initialiser: Option<u32> = None;
    let mut depth = 0u32;
    for (kind, at) in module.code(span) {
        let text = module.at(at);
        if let Some(from) = initialiser {
            match kind {
                TokenKind::OpenBrace | TokenKind::OpenParen => depth += 1,
                TokenKind::CloseBrace | TokenKind::CloseParen => depth = depth.saturating_sub(1),
                TokenKind::Comma | TokenKind::Semicolon if depth == 0 => {
                    if let Some(last) = all.last_mut() {
                        last.initialiser = Some(Span::new(from, at.start));
                    }
                    (initialiser, named) = (None, false);
                }
                _ => (),
            }
            continue;
        }
        match kind {
            TokenKind::Dotted if !named => match text {
                ".extern" => next.is_extern = true,
                ".visible" | ".weak" | ".common" | ".attribute" => (),
                ".align" => aligns = true,
                ".ptr" => points = true,
                ".v2" => next.lanes = 2,
                ".v4" => next.lanes = 4,
                _ if next.space.is_empty() => next.space = text,
                // Behind `.ptr` stand the space and alignment of what is pointed to.
                _ if points => (),
                _ => next.ty = Type::named(text).or(next.ty),
            },
            TokenKind::Number if aligns => {
                aligns = false;
                if !points {
                    next.align = number(text).unwrap_or(1).max(1);
                }
            }
            TokenKind::Name if !named && depth == 0 => {
                named = true;
                let (name, bounds) = (text, Vec::new());
                all.push(Declaration { name, at, bounds, range: None, initialiser: None, ..next.clone() });
            }
            TokenKind::OpenParen => depth += 1,
            TokenKind::CloseParen => depth = depth.saturating_sub(1),
            TokenKind::OpenBracket | TokenKind::Less => open = Some(at.end),
            TokenKind::CloseBracket | TokenKind::Greater => {
                if let (Some(from), Some(last)) = (open.take(), all.last_mut()) {
                    let bound = nt_ptx::constant(module.at(Span::new(from, at.start)));
                    let bound = bound.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
                    match kind {
                        TokenKind::CloseBracket => last.bounds.push(bound),
                        _ => last.range = Some(bound),
                    }
                }
            }
            TokenKind::Equal => initialiser = Some(at.end),
            TokenKind::Comma if depth == 0 => {
                named = false;
                if is_list {
                    (next, points) = (start.clone(), false);
                }
            }
            _ => (),
        }
    }
    all
}

/// A number that the loader must add an address to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference<'s> {
    /// Where in the variable.
    pub(crate) offset: u64,
    pub(crate) bytes: usize,
    pub(crate) name: &'s str,
    pub(crate) addend: i64,
    /// `generic(name)`
    pub(crate) is_generic: bool,
}

/// The first bytes of a variable as its initialiser has them, the rest being zero, and the addresses among them.
pub(crate) fn initial<'s>(
    module: &Module<'s>,
    declaration: &Declaration<'s>,
) -> Result<(Vec<u8>, Vec<Reference<'s>>), Missing> {
    let Some(bytes) = declaration.bytes() else {
        return missing(format!("the variable `{}` is too large", declaration.name));
    };
    // Grows as values come: most of a large variable is zero, and is not stored.
    let mut content = Vec::new();
    let mut references = Vec::new();
    let (Some(span), Some(ty)) = (declaration.initialiser, declaration.ty) else {
        return Ok((content, references));
    };
    // Bytes of one step in each bound, and how deep the braces are.
    let mut steps = vec![ty.bytes() as u64];
    for &bound in declaration.bounds.iter().rev().chain([&declaration.lanes]).take(declaration.bounds.len()) {
        let last = steps.last().copied().unwrap_or(1);
        steps.push(last.saturating_mul(bound.max(1)));
    }
    let mut at = 0u64;
    let mut starts: Vec<u64> = Vec::new();
    let mut item: Option<Span> = None;
    for (kind, token) in
        module.code(Span::new(span.start, span.end)).chain([(TokenKind::Comma, Span::at(span.end))])
    {
        match kind {
            TokenKind::OpenBrace => starts.push(at),
            TokenKind::CloseBrace | TokenKind::Comma => {
                if let Some(item) = item.take() {
                    if at.saturating_add(ty.bytes() as u64) > bytes {
                        return missing(format!(
                            "more initial values than `{}` has elements",
                            declaration.name
                        ));
                    }
                    value(module, ty, item, at, &mut content, &mut references)?;
                    at = at.saturating_add(ty.bytes() as u64);
                }
                if kind == TokenKind::CloseBrace {
                    // What an inner list leaves out is zero.
                    let depth = starts.len();
                    let start = starts.pop().unwrap_or(0);
                    let step =
                        steps.len().checked_sub(depth).and_then(|i| steps.get(i)).copied().unwrap_or(1);
                    if depth > 1 {
                        at = start.saturating_add(step);
                    }
                }
            }
            _ => item = Some(item.map_or(token, |item| item.to(token))),
        }
    }
    Ok((content, references))
}

/// Writes one value of an initialiser.
fn value<'s>(
    module: &Module<'s>,
    ty: Type,
    item: Span,
    at: u64,
    content: &mut Vec<u8>,
    references: &mut Vec<Reference<'s>>,
) -> Result<(), Missing> {
    let text = module.at(item);
    let bits = match super::line::immediate(text, ty) {
        Ok(bits) => bits & mask(ty.bits()),
        Err(why) => {
            let mut words = module.code(item).peekable();
            let is_generic = words.next_if(|(_, word)| module.at(*word) == "generic").is_some();
            let mut words = words.filter(|(kind, _)| {
                !is_generic || !matches!(kind, TokenKind::OpenParen | TokenKind::CloseParen)
            });
            let Some((TokenKind::Name, name)) = words.next() else {
                return Err(why);
            };
            let name = module.at(name);
            let addend = match words.next() {
                None => 0,
                Some((_, sign)) => match nt_ptx::constant(
                    &module.text[sign.start as usize..item.end as usize].replace(')', ""),
                ) {
                    Some(addend) => addend,
                    None => return missing(format!("the initial value `{text}`")),
                },
            };
            references.push(Reference { offset: at, bytes: ty.bytes(), name, addend, is_generic });
            0
        }
    };
    content.resize(at as usize, 0);
    content.extend_from_slice(&bits.to_le_bytes()[..ty.bytes()]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first<'s>(text: &'s str) -> (Module<'s>, Vec<Declaration<'s>>) {
        let (module, found) = nt_ptx::parse(text);
        assert!(!found.has_errors(), "{found:?}");
        let all = declarations(&module, module.items.last().unwrap().span, false);
        (module, all)
    }

    #[test]
    fn sizes_and_places() {
        let (_, all) = first(".version 8.5 .target sm_90 .shared .align 4 .b8 a[32][33], b;");
        assert_eq!((all[0].bytes(), all[1].bytes()), (Some(1056), Some(1)));
        assert_eq!(all[0].place(5), 8);
        let (_, all) = first(".version 8.5 .target sm_90 .extern .shared .align 16 .v4 .f32 a[];");
        assert_eq!((all[0].bytes(), all[0].element(), all[0].place(17)), (Some(0), 16, 32));
        assert!(all[0].is_extern);
        let (_, all) = first(".version 8.5 .target sm_90 .global .b64 a[4294967295][4294967295];");
        assert_eq!(all[0].bytes(), None);
    }

    #[test]
    fn initial_values() {
        let (module, all) = first(
            ".version 8.5 .target sm_90 .global .align 8 .u64 t[4] = {f, generic(g)+8, 0x102, -1}, x = 3;",
        );
        let (bytes, references) = initial(&module, &all[0]).unwrap();
        assert_eq!(&bytes[16..], [2, 1, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
        let drawn: Vec<_> = references.iter().map(|r| (r.offset, r.name, r.addend, r.is_generic)).collect();
        assert_eq!(drawn, [(0, "f", 0, false), (8, "g", 8, true)]);
        assert_eq!(initial(&module, &all[1]).unwrap().0, [3, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(all[1].bytes(), Some(8));

        let (module, all) = first(".version 8.5 .target sm_90 .const .u8 t[2][3] = {{1}, {2, 3}};");
        assert_eq!(initial(&module, &all[0]).unwrap().0, [1, 0, 0, 2, 3]);
        let (module, all) =
            first(".version 8.5 .target sm_90 .const .f32 t[3] = {1.0, 0f40000000, 0d4008000000000000};");
        let floats: Vec<u8> = [1f32, 2.0, 3.0].iter().flat_map(|f| f.to_le_bytes()).collect();
        assert_eq!(initial(&module, &all[0]).unwrap().0, floats);
        let (module, all) = first(".version 8.5 .target sm_90 .global .u8 t[1] = {1, 2};");
        assert!(initial(&module, &all[0]).is_err());
    }
}
