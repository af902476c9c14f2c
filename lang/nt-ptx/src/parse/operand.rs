//! Opcodes and operands of an instruction, read on demand.
//!
//! ```text
//! cp.async.bulk.tensor.2d.shared::cluster.global [%r2], [%rd1, {%r4,%r5}], [%r1];
//! base `cp`, modifiers `.async` `.bulk` …; three addresses, of which the second has coordinates
//! ```
//!
//! Shapes only: which operands are written, and what may stand where, is data for later stages. A shape that is none
//! of ours is [`OperandKind::Other`] and passes through.
//!
//! Source: PTX ISA 9.0, sections 6.2 to 6.4 (operands, addresses, arrays, vectors).

use super::function::type_size;
use crate::constant::constant;
use crate::syntax::{Instruction, Module, Operand, OperandKind};
use crate::token::{TokenKind, Tokens};
use nt_diag::Span;

/// How deep braces and parentheses of operands may nest; `[%rd1, {%r1, %r2}]` needs two.
const DEPTH: u32 = 8;

type Token = (TokenKind, Span);

/// An opcode's parts: `ld` and `.global.v2.u32`.
///
/// Modifiers are an open list in any order: `cvt.f32.f64.rn` is an old spelling that ptxas still takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opcode<'s> {
    /// The first word: `ld`.
    pub base: &'s str,
    /// The rest, as written: `.global.v2.u32`. Blanks and comments may stand between the parts.
    pub modifiers: &'s str,
}

impl<'s> Opcode<'s> {
    /// The modifiers one by one, each with its dot: `.global`, `.L2::128B`, `.u32`.
    pub fn parts(self) -> impl Iterator<Item = &'s str> {
        let text = self.modifiers;
        let tokens = Tokens::new(text, Span::from(0..text.len()));
        tokens.filter(|(kind, _)| *kind == TokenKind::Dotted).map(move |(_, span)| span.of(text))
    }

    /// Is `modifier` (with its dot) among them?
    pub fn has(self, modifier: &str) -> bool {
        self.parts().any(|part| part == modifier)
    }

    /// The last type among them: `.u32` of `ld.global.v2.u32`.
    pub fn ty(self) -> Option<&'s str> {
        self.parts().filter(|part| type_size(part).is_some()).last()
    }

    /// Elements of a vector access: N of `.vN`, else 1.
    pub fn lanes(self) -> u32 {
        self.parts().find_map(|part| part.strip_prefix(".v")?.parse().ok()).unwrap_or(1)
    }
}

/// Where an [`OperandKind::Address`] points, as far as its first part says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// The register or symbol; `None` for an immediate address.
    pub base: Option<Span>,
    /// What is added to it, in bytes.
    pub displacement: i64,
}

impl<'s> Module<'s> {
    /// The parts of an instruction's opcode.
    pub fn opcode(&self, instruction: &Instruction) -> Opcode<'s> {
        let text = self.at(instruction.opcode);
        let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !"_$%".contains(c)).unwrap_or(text.len());
        let (base, modifiers) = text.split_at(end);
        Opcode { base, modifiers: modifiers.trim_start() }
    }

    /// The operands of an instruction, in order.
    pub fn operands(&self, instruction: &Instruction) -> Vec<Operand> {
        if instruction.operands.is_empty() {
            return Vec::new();
        }
        let tokens: Vec<Token> = self.code(instruction.operands).collect();
        let is_call = self.at(instruction.opcode).starts_with("call");
        Reader { text: self.text, is_call }.list(&tokens, instruction.operands.start, 0)
    }

    /// Base and displacement of an address; `None` for another operand and for a displacement that is no constant.
    pub fn address(&self, operand: &Operand) -> Option<Address> {
        let OperandKind::Address { base, offset } = operand.kind else {
            return None;
        };
        let displacement = match offset {
            Some(offset) => constant(self.at(offset))?,
            None if base.is_none() => return None,
            None => 0,
        };
        Some(Address { base, displacement })
    }
}

struct Reader<'s> {
    text: &'s str,
    is_call: bool,
}

impl Reader<'_> {
    /// Operands between commas; `at` is where an empty first one would stand.
    fn list(&self, tokens: &[Token], at: u32, depth: u32) -> Vec<Operand> {
        if tokens.is_empty() {
            return Vec::new();
        }
        let mut at = at;
        let mut operands = Vec::new();
        for part in split(tokens, TokenKind::Comma) {
            operands.push(self.operand(part, at, depth));
            at = part.last().map_or(at, |(_, span)| span.end);
        }
        operands
    }

    fn operand(&self, tokens: &[Token], at: u32, depth: u32) -> Operand {
        let span = extent(tokens).unwrap_or(Span::at(at));
        let kind = if depth < DEPTH { self.kind(tokens, span, depth) } else { OperandKind::Other };
        Operand { span, kind }
    }

    fn kind(&self, tokens: &[Token], span: Span, depth: u32) -> OperandKind {
        use TokenKind as T;
        match tokens {
            [(T::Name, name)] if name.of(self.text) == "_" => OperandKind::Sink,
            [(T::Name, _)] => OperandKind::Name(span),
            [(T::Number, _)] | [(T::Minus | T::Plus, _), (T::Number, _)] => OperandKind::Number(span),
            [(T::Dotted, _)] | [(T::Minus | T::Plus, _), (T::Dotted, _)] if self.is_fraction(tokens) => {
                OperandKind::Number(span)
            }
            [(T::Not, _), rest @ ..] => match name(rest) {
                Some((name, [])) => OperandKind::Name(name),
                _ => OperandKind::Other,
            },
            [(T::OpenBracket, _), inner @ .., (T::CloseBracket, _)] if encloses(tokens) => address(inner),
            [(T::OpenBrace, open), inner @ .., (T::CloseBrace, _)] if encloses(tokens) => {
                OperandKind::Vector(self.list(inner, open.end, depth + 1))
            }
            [(T::OpenParen, open), inner @ .., (T::CloseParen, _)] if self.is_call && encloses(tokens) => {
                OperandKind::List(self.list(inner, open.end, depth + 1))
            }
            _ => self.compound(tokens, depth),
        }
    }

    /// `%tid.x`, `sym+4`, `c[2]`, `p|q`.
    fn compound(&self, tokens: &[Token], depth: u32) -> OperandKind {
        use TokenKind as T;
        match name(tokens) {
            Some((name, [])) => return OperandKind::Name(name),
            Some((name, [(T::Plus | T::Minus, _), _, ..])) => return OperandKind::Offset(name),
            Some((name, rest @ [(T::OpenBracket, _), _, .., (T::CloseBracket, _)])) if encloses(rest) => {
                return OperandKind::Offset(name);
            }
            _ => (),
        }
        let mut halves = split(tokens, T::Bar);
        if let (Some(left), Some(right), None) = (halves.next(), halves.next(), halves.next()) {
            let at = extent(left).map_or(0, |span| span.end);
            let pair = [self.operand(left, at, depth + 1), self.operand(right, at, depth + 1)];
            let written = |operand: &Operand| {
                matches!(operand.kind, OperandKind::Name(_) | OperandKind::Sink | OperandKind::Vector(_))
            };
            if pair.iter().all(written) {
                let [left, right] = pair;
                return OperandKind::Pair(Box::new(left), Box::new(right));
            }
        }
        OperandKind::Other
    }

    /// `.5`, which lexes as a dotted word.
    fn is_fraction(&self, tokens: &[Token]) -> bool {
        let digit = |(_, span): &Token| span.of(self.text).as_bytes().get(1).is_some_and(u8::is_ascii_digit);
        tokens.last().is_some_and(digit)
    }
}

/// What stands between brackets.
fn address(inner: &[Token]) -> OperandKind {
    use TokenKind as T;
    let first = split(inner, T::Comma).next().unwrap_or(&[]);
    let (base, offset) = match name(first) {
        Some((base, [])) => (Some(base), None),
        Some((base, rest @ [(T::Plus | T::Minus, _), _, ..])) => (Some(base), extent(rest)),
        Some(_) => return OperandKind::Other,
        // An immediate address, or `{…}` and its kin, which have neither.
        None => {
            (None, extent(first).filter(|_| matches!(first, [(T::Number | T::Minus | T::OpenParen, _), ..])))
        }
    };
    OperandKind::Address { base, offset }
}

/// A name with its fields (`%tid.x`) at the start of `tokens`, and what follows it.
fn name(tokens: &[Token]) -> Option<(Span, &[Token])> {
    let [(TokenKind::Name, name), rest @ ..] = tokens else {
        return None;
    };
    let fields = rest.iter().take_while(|(kind, _)| *kind == TokenKind::Dotted).count();
    let (fields, rest) = rest.split_at(fields);
    Some((extent(fields).map_or(*name, |fields| name.to(fields)), rest))
}

/// From the first token to the last.
fn extent(tokens: &[Token]) -> Option<Span> {
    Some(tokens.first()?.1.to(tokens.last()?.1))
}

/// The parts between the tokens of kind `at` that stand outside of all brackets. The last part ends at the end.
fn split(tokens: &[Token], at: TokenKind) -> impl Iterator<Item = &[Token]> {
    let mut depth = 0u32;
    tokens.split(move |(kind, _)| {
        match kind {
            TokenKind::OpenBrace | TokenKind::OpenBracket | TokenKind::OpenParen => depth += 1,
            TokenKind::CloseBrace | TokenKind::CloseBracket | TokenKind::CloseParen => {
                depth = depth.saturating_sub(1);
            }
            _ => (),
        }
        depth == 0 && *kind == at
    })
}

/// Is the bracket that opens `tokens` closed by the last of them?
fn encloses(tokens: &[Token]) -> bool {
    let mut depth = 0u32;
    for (at, (kind, _)) in tokens.iter().enumerate() {
        match kind {
            TokenKind::OpenBrace | TokenKind::OpenBracket | TokenKind::OpenParen => depth += 1,
            TokenKind::CloseBrace | TokenKind::CloseBracket | TokenKind::CloseParen => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1 == tokens.len();
                }
            }
            _ => (),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_statements;
    use crate::syntax::Kind;

    /// Draws the operands of the first instruction of `text`: `n:` name, `#:` number, `o:` offset, `[base offset]`,
    /// `{…}`, `<a|b>`, `(…)`, `_`, `?:` other.
    fn shapes(text: &str) -> String {
        let (module, found) = parse_statements(text);
        assert!(!found.has_errors(), "{text}: {found:?}");
        let instruction = module.statements.iter().find_map(|s| match s.kind {
            Kind::Instruction(instruction) => Some(instruction),
            _ => None,
        });
        let operands = module.operands(&instruction.expect("an instruction"));
        operands.iter().map(|operand| draw(&module, operand)).collect::<Vec<_>>().join(" ")
    }

    fn draw(module: &Module<'_>, operand: &Operand) -> String {
        let all = |list: &[Operand]| list.iter().map(|o| draw(module, o)).collect::<Vec<_>>().join(" ");
        match &operand.kind {
            OperandKind::Name(name) => format!("n:{}", module.at(*name)),
            OperandKind::Number(number) => format!("#:{}", module.at(*number)),
            OperandKind::Offset(name) => format!("o:{}", module.at(*name)),
            OperandKind::Address { base, offset } => {
                let part = |span: &Option<Span>| span.map_or("-", |span| module.at(span));
                format!("[{} {}]", part(base), part(offset))
            }
            OperandKind::Vector(list) => format!("{{{}}}", all(list)),
            OperandKind::Pair(left, right) => format!("<{}|{}>", draw(module, left), draw(module, right)),
            OperandKind::List(list) => format!("({})", all(list)),
            OperandKind::Sink => "_".to_owned(),
            OperandKind::Other => format!("?:{}", module.at(operand.span)),
        }
    }

    // The texts are those of the list of constructs, which ptxas takes; the shapes follow from the PTX ISA.
    #[test]
    fn shapes_of_operands() {
        assert_eq!(shapes("mov.u32 %r1, %tid.x;"), "n:%r1 n:%tid.x");
        assert_eq!(shapes("add.s32 %r2,%r1,/**/-1;"), "n:%r2 n:%r1 #:-1");
        assert_eq!(shapes("setp.lt.s32 %p1|%p2,%r1,%r2;"), "<n:%p1|n:%p2> n:%r1 n:%r2");
        assert_eq!(shapes("elect.sync _|%p1, 0xffffffff;"), "<_|n:%p1> #:0xffffffff");
        assert_eq!(shapes("ld.global.v2.u32 {%r1,_},[%rd1];"), "{n:%r1 _} [%rd1 -]");
        assert_eq!(shapes("vote.sync.any.pred %p2, !%p1, -1;"), "n:%p2 n:%p1 #:-1");
        assert_eq!(shapes("call (z), %rd2, (q0,q1), P0;"), "(n:z) n:%rd2 (n:q0 n:q1) n:P0");
        assert_eq!(shapes("call.uni (r0),\nf,\n( a0 ) ;"), "(n:r0) n:f (n:a0)");
        assert_eq!(shapes("call f;"), "n:f");
        assert_eq!(shapes("st.global.b32 [ %rd1 + 0 ], { %r1 };"), "[%rd1 + 0] {n:%r1}");
        assert_eq!(shapes("ld.b32 %r1, [g+4*2];"), "n:%r1 [g +4*2]");
        assert_eq!(shapes("ld.b32 %r1, [%rd1+-8];"), "n:%r1 [%rd1 +-8]");
        assert_eq!(shapes("ld.local.b32 %r1, [16];"), "n:%r1 [- 16]");
        assert_eq!(shapes("ld.const.b32 %r2, c[2];"), "n:%r2 o:c");
        assert_eq!(shapes("mov.u64 %rd1, g+8;"), "n:%rd1 o:g");
        assert_eq!(shapes("mov.u32 %r1, (1<<3)|2;"), "n:%r1 ?:(1<<3)|2");
        assert_eq!(shapes("mov.f32 %f1, -.5;"), "n:%f1 #:-.5");
        assert_eq!(
            shapes("tex.2d.v4.f32.s32 {%f1,%f2,%f3,%f4},[tx,{%r1,%r2}];"),
            "{n:%f1 n:%f2 n:%f3 n:%f4} [tx -]"
        );
        assert_eq!(shapes("cp.async.bulk [%r2], [%rd1, {%r4,%r5}], [%r1];"), "[%r2 -] [%rd1 -] [%r1 -]");
        assert_eq!(shapes("mov.u32 add, ret;"), "n:add n:ret");
        assert_eq!(shapes("ret;"), "");
        assert_eq!(shapes("bogus {{{{{{{{{{x}}}}}}}}}}, ,;"), "{{{{{{{{?:{{x}}}}}}}}}} ?: ?:");
    }

    #[test]
    fn addresses_are_computed() {
        let address = |text: &str| {
            let text = format!("ld.u32 %r1, {text};");
            let (module, _) = parse_statements(&text);
            let Some(Kind::Instruction(instruction)) = module.statements.first().map(|s| s.kind) else {
                panic!("no instruction in {text}");
            };
            let operands = module.operands(&instruction);
            module
                .address(&operands[1])
                .map(|a| (a.base.map_or("", |b| b.of(&text)).to_owned(), a.displacement))
        };
        assert_eq!(address("[%rd1+-8]"), Some(("%rd1".to_owned(), -8)));
        assert_eq!(address("[ sm + 0x10 ]"), Some(("sm".to_owned(), 16)));
        assert_eq!(address("[%rd1+(4*2)]"), Some(("%rd1".to_owned(), 8)));
        assert_eq!(address("[16]"), Some((String::new(), 16)));
        assert_eq!(address("[%rd1+%r2]"), None);
        assert_eq!(address("%r1"), None);
    }

    #[test]
    fn opcodes_come_apart() {
        let opcode = |text: &str| {
            let (module, _) = parse_statements(text);
            let Some(Kind::Instruction(instruction)) = module.statements.first().map(|s| s.kind) else {
                panic!("no instruction in {text}");
            };
            let opcode = module.opcode(&instruction);
            let parts: Vec<String> = opcode.parts().map(str::to_owned).collect();
            (opcode.base.to_owned(), parts.concat(), opcode.ty().map(str::to_owned), opcode.lanes())
        };
        let all = |base: &str, parts: &str, ty: Option<&str>, lanes| {
            (base.to_owned(), parts.to_owned(), ty.map(str::to_owned), lanes)
        };
        assert_eq!(opcode("ld.global.v2.u32 {a,b},[c];"), all("ld", ".global.v2.u32", Some(".u32"), 2));
        assert_eq!(
            opcode("ld /* . */ .global .L2::128B.b32 a,[c];"),
            all("ld", ".global.L2::128B.b32", Some(".b32"), 1)
        );
        assert_eq!(opcode("cvt.f32.f64.rn a, b;"), all("cvt", ".f32.f64.rn", Some(".f64"), 1));
        assert_eq!(opcode("ret;"), all("ret", "", None, 1));
    }
}
