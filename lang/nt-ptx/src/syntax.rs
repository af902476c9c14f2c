//! What the reader makes of PTX text: shapes and byte spans, nothing resolved, nothing copied.
//!
//! The reader knows shapes, not instructions: `ld.global.v2.u32` is one dotted name, and which names exist is data
//! for later stages. Every node keeps spans into [`Module::text`], so that rewriting is a list of insertions and
//! declared replacements ([`crate::Edits`]) and everything else stays byte for byte.
//!
//! Flat on purpose: all statements of all bodies stand in one vector in text order, scopes are [`Kind::Open`] and
//! [`Kind::Close`], and operands are read on demand ([`Module::operands`]), since most statements are never looked at.
//!
//! Source: PTX ISA 9.0, chapters 4 (syntax), 5 (state spaces), 11 (directives).

use nt_diag::Span;
use std::ops::Range;

/// One PTX text and its shape.
#[derive(Debug, Clone)]
pub struct Module<'s> {
    /// The whole text.
    pub text: &'s str,
    /// `.version M.N`.
    pub version: Option<Version>,
    /// `.target a, b`.
    pub target: Option<Target>,
    /// `.address_size N`, the number.
    pub address_size: Option<u32>,
    /// Everything at module level, in text order.
    pub items: Vec<Item>,
    /// Entries and functions, declarations included, in text order; [`ItemKind::Function`] points here.
    pub functions: Vec<Function>,
    /// The statements of all bodies, in text order; [`Body::statements`] are ranges of it.
    pub statements: Vec<Statement>,
}

/// `.version 8.7`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// The part before the point.
    pub major: u16,
    /// The part after it: PTX counts 7.8, 8.0, 8.1, so it is no decimal fraction.
    pub minor: u16,
    /// The two numbers and the point.
    pub number: Span,
}

impl Version {
    /// Comparable: `(8, 7)`.
    pub fn pair(self) -> (u16, u16) {
        (self.major, self.minor)
    }
}

/// `.target sm_90a, debug`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Every word of the list; the first is the architecture.
    pub words: Vec<Span>,
    /// The whole directive.
    pub span: Span,
}

/// One thing at module level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// All of it, from its first token to its `;`, `}` or last token.
    pub span: Span,
    /// What it is.
    pub kind: ItemKind,
}

/// The kinds of [`Item`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemKind {
    /// `.version`, `.target`, `.address_size`.
    Header,
    /// `.entry` or `.func`: index into [`Module::functions`].
    Function(u32),
    /// `.global`, `.const`, `.shared`, `.texref`, … with what precedes it (`.visible`, `.extern`, `.weak`, `.common`,
    /// `.attribute`) and its initialiser. The declared name is the span.
    Variable {
        /// Its name.
        name: Span,
        /// `.global`, `.const`, `.shared`, `.param`, `.texref`, `.samplerref`, `.surfref`, `.tex`.
        space: Span,
    },
    /// `.alias a, b;`
    Alias,
    /// `.file`
    File,
    /// `.section NAME { … }`: debug data, copied and never read as code.
    Section,
    /// `.pragma "…";`
    Pragma,
    /// A `.loc` at module level.
    Other,
    /// What could not be read: passes through, a note says so.
    Unknown,
}

/// `.entry` or `.func`, with or without a body.
#[derive(Debug, Clone)]
pub struct Function {
    /// All of it, linkage included.
    pub span: Span,
    /// `.entry`? Else `.func`.
    pub is_entry: bool,
    /// The name.
    pub name: Span,
    /// `.visible`, `.extern`, `.weak`, as written, if any; from the first word to the last.
    pub linkage: Option<Span>,
    /// The list of a `.func`'s return parameters, parentheses included.
    pub returns: Option<Span>,
    /// The return parameters, in order; there is one at most (PTX ISA 9.0, 10.1).
    pub results: Vec<Param>,
    /// The parameter list, parentheses included. `None` for `.entry k {` without one.
    pub list: Option<Span>,
    /// The parameters, in order.
    pub params: Vec<Param>,
    /// The performance directives between list and body (`.maxntid 128, 1, 1`), each with its arguments.
    pub directives: Vec<Directive>,
    /// `None` for a declaration that ends in `;`.
    pub body: Option<Body>,
}

/// One `.param` of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Param {
    /// From `.param` (or `.reg`) to the end of its name or array bounds.
    pub span: Span,
    /// The name.
    pub name: Span,
    /// Alignment in bytes: the type's own size, or more as `.align` says before the name (not the `.ptr … .align` of
    /// the pointee).
    pub align: u32,
    /// Size in bytes; 0 for an array without a bound.
    pub size: u32,
    /// Where it begins in parameter space, in bytes: packed in order, each aligned.
    pub offset: u32,
}

/// A directive of a function: `.reqntid 256, 1, 1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Directive {
    /// Its name with the dot.
    pub name: Span,
    /// What follows, to the next directive, `{` or `;`, trimmed.
    pub arguments: Span,
}

/// The braces of a function and what stands between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// Both braces and all between.
    pub span: Span,
    /// Its statements, as a range of [`Module::statements`].
    pub statements: Range<u32>,
}

/// One statement of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement {
    /// From its first token (the guard's `@`, if it has one) to its `;`, `:`, brace or last token.
    pub span: Span,
    /// What it is.
    pub kind: Kind,
}

/// The kinds of [`Statement`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `@!%p ld.global.u32 %r1, [%rd1+4];`
    Instruction(Instruction),
    /// `$L__BB0_2:`; the name without the colon. A list or prototype that the label names is a statement of its own.
    Label(Span),
    /// `{` of an inner scope.
    Open,
    /// `}` of an inner scope.
    Close,
    /// `.reg .b32 %r<9>;`, `.shared …;`, `.local`, `.param`, `.const`, `.global` inside a body; the space's word.
    Declaration(Span),
    /// `.loc 1 12 0` with whatever follows it on the directive.
    Loc,
    /// `.pragma "nounroll";`; the (first) string with its quotes.
    Pragma(Span),
    /// `.branchtargets …;`, `.calltargets …;`, `.callprototype …;`: belongs to the label before it.
    Table,
    /// Another directive (`.file`, `.section … { }` inside a body, an unknown one).
    Directive,
    /// What could not be read, to the next `;`.
    Unknown,
}

/// The parts of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// `@%p` or `@!%p`.
    pub guard: Option<Guard>,
    /// The dotted name: `ld.global.u32`.
    pub opcode: Span,
    /// From the first operand's first byte to the last one's last; empty if there are none.
    pub operands: Span,
}

/// The predicate before an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard {
    /// `@!`?
    pub negated: bool,
    /// The register's name.
    pub register: Span,
    /// From `@` to the name's end.
    pub span: Span,
}

/// One operand of an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operand {
    /// All of it.
    pub span: Span,
    /// Its shape.
    pub kind: OperandKind,
}

/// The shapes of [`Operand`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperandKind {
    /// A register, symbol, label or special register (`%tid.x` with its dots). Of a negated one (`!%p`) the span is
    /// the name's, and the operand's has the `!`.
    Name(Span),
    /// A number as written: `-4`, `0x1F`, `0f3F800000`; [`crate::constant()`] reads integers.
    Number(Span),
    /// `sym+4`, `sym-4`, and the old address form `sym[2]`: the symbol.
    Offset(Span),
    /// `[%rd1+4]`, `[sym]`, `[%rd1, {%r1, %r2}]`: the base's name if the first part begins with one.
    Address {
        /// Register or symbol of the first part.
        base: Option<Span>,
        /// The displacement with its sign, as written: `+4`, `+-8`, `+ 4*2`; of an immediate address all of it.
        /// [`Module::address`] reads it.
        offset: Option<Span>,
    },
    /// `{a, b, c, d}`
    Vector(Vec<Operand>),
    /// `p|q`: two destinations.
    Pair(Box<Operand>, Box<Operand>),
    /// `(a, b)` of a call.
    List(Vec<Operand>),
    /// `_`
    Sink,
    /// Anything else; passes through.
    Other,
}

impl<'s> Module<'s> {
    /// The text of a span of this module.
    pub fn at(&self, span: Span) -> &'s str {
        self.text.get(span.range()).unwrap_or("")
    }

    /// The architecture of `.target`, such as `sm_90a`.
    pub fn arch(&self) -> Option<&'s str> {
        let first = self.target.as_ref()?.words.first()?;
        Some(self.at(*first))
    }

    /// Entries that have a body, in text order: the kernels.
    pub fn kernels(&self) -> impl Iterator<Item = &Function> {
        self.functions.iter().filter(|f| f.is_entry && f.body.is_some())
    }

    /// The statements of a function; none for a declaration.
    pub fn body(&self, function: &Function) -> &[Statement] {
        match &function.body {
            Some(body) => &self.statements[body.statements.start as usize..body.statements.end as usize],
            None => &[],
        }
    }
}
