//! What the grammar builds: shapes and places, nothing resolved.
//!
//! Every node has the span of its text. How deep expressions nest is bounded before the parser sees them
//! (`nesting.rs`), so walking a tree by recursion, and dropping it, is safe.

use crate::token::Word;
use nt_diag::Span;

/// `config`, `state`, a map, a probe…
#[derive(Debug)]
pub(crate) enum Item<'s> {
    Config { settings: Vec<(Word<'s>, Expr<'s>)>, span: Span },
    Include { path: Word<'s>, span: Span },
    Const(Binding<'s>),
    Arg(Binding<'s>),
    State(Binding<'s>),
    Records(Records<'s>),
    Table(Table<'s>),
    Probe(Probe<'s>),
}

/// `name: type = value`, of which type and value may be missing.
#[derive(Debug)]
pub(crate) struct Binding<'s> {
    pub(crate) name: Word<'s>,
    pub(crate) ty: Option<Word<'s>>,
    pub(crate) value: Option<Expr<'s>>,
    pub(crate) span: Span,
}

/// `map NAME: kind<unit>[capacity] policy { fields }`
#[derive(Debug)]
pub(crate) struct Records<'s> {
    pub(crate) name: Word<'s>,
    pub(crate) kind: Word<'s>,
    pub(crate) unit: Unit<'s>,
    pub(crate) capacity: Option<Expr<'s>>,
    pub(crate) policy: Option<Word<'s>>,
    pub(crate) fields: Vec<Field<'s>>,
    pub(crate) span: Span,
}

/// A field of a record; `of` is the `T` of `lanes<T>`.
#[derive(Debug)]
pub(crate) struct Field<'s> {
    pub(crate) name: Word<'s>,
    pub(crate) ty: Word<'s>,
    pub(crate) of: Option<Word<'s>>,
}

/// `map @name: kind[capacity];`
#[derive(Debug)]
pub(crate) struct Table<'s> {
    pub(crate) name: Word<'s>,
    pub(crate) kind: Word<'s>,
    pub(crate) capacity: Expr<'s>,
    pub(crate) span: Span,
}

/// `thread`, `warp`, `block`, and where it was said.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unit<'s> {
    pub(crate) unit: nt_ir::program::Unit,
    pub(crate) word: Word<'s>,
}

/// `[unit] points [/predicate/] { body }`
#[derive(Debug)]
pub(crate) struct Probe<'s> {
    pub(crate) unit: Option<Unit<'s>>,
    pub(crate) points: Vec<Point<'s>>,
    pub(crate) predicate: Option<Expr<'s>>,
    pub(crate) body: Vec<Stmt<'s>>,
    /// Unit and points, which is what messages point at.
    pub(crate) span: Span,
}

/// `provider:part:part`
#[derive(Debug)]
pub(crate) struct Point<'s> {
    pub(crate) provider: Word<'s>,
    pub(crate) parts: Vec<Part<'s>>,
    pub(crate) span: Span,
}

/// What stands between two colons of a tracepoint.
#[derive(Debug)]
pub(crate) enum Part<'s> {
    /// `load|store.global`: alternatives, joined by dots.
    Path(Vec<Vec<Atom<'s>>>),
    /// `120-140`
    Lines(Word<'s>, Option<Word<'s>>),
    /// `$1`
    Param(Word<'s>),
}

/// One alternative of a [`Part::Path`].
#[derive(Debug, Clone, Copy)]
pub(crate) enum Atom<'s> {
    /// A word, which is exact.
    Word(Word<'s>),
    /// A string, which is a glob; as written, with its quotes.
    Glob(Word<'s>),
    /// `*`
    Any(Span),
}

#[derive(Debug)]
pub(crate) enum Stmt<'s> {
    /// `let name: type = value`
    Let(Binding<'s>),
    /// `name = value`, `name += value`
    Assign { name: Word<'s>, op: Option<BinaryOp>, value: Expr<'s>, span: Span },
    /// `name++`
    Increment { name: Word<'s>, span: Span },
    /// `map.field = value`
    Slot { map: Word<'s>, field: Word<'s>, value: Expr<'s>, span: Span },
    /// `map.save(values)`
    Method { map: Word<'s>, method: Word<'s>, arguments: Vec<Argument<'s>>, span: Span },
    /// `@map[keys] = function(arguments)`
    Aggregate {
        map: Word<'s>,
        keys: Vec<Expr<'s>>,
        function: Word<'s>,
        arguments: Vec<Argument<'s>>,
        span: Span,
    },
    /// `if c { … } else { … }`
    If { condition: Expr<'s>, then: Vec<Stmt<'s>>, otherwise: Vec<Stmt<'s>>, span: Span },
    /// `asm (operands) { target """…""" }`
    Asm { operands: Vec<Operand<'s>>, templates: Vec<Template<'s>>, span: Span },
    /// What could not be parsed, which has been told.
    Bad(Span),
}

/// An operand of `asm`.
#[derive(Debug)]
pub(crate) struct Operand<'s> {
    pub(crate) direction: Word<'s>,
    pub(crate) name: Word<'s>,
    /// Its type, and where its register should be (`scalar`).
    pub(crate) ty: Option<(Word<'s>, Option<Word<'s>>)>,
    pub(crate) value: Option<Expr<'s>>,
}

/// The text of an `asm` for one target.
#[derive(Debug)]
pub(crate) struct Template<'s> {
    pub(crate) target: Word<'s>,
    pub(crate) version: Option<Word<'s>>,
    pub(crate) text: Word<'s>,
}

/// `value` or `name = value`
#[derive(Debug)]
pub(crate) struct Argument<'s> {
    pub(crate) name: Option<Word<'s>>,
    pub(crate) value: Expr<'s>,
}

#[derive(Debug)]
pub(crate) struct Expr<'s> {
    pub(crate) kind: ExprKind<'s>,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum ExprKind<'s> {
    Int(Word<'s>),
    Float(Word<'s>),
    Str(Word<'s>),
    Bool(bool),
    Param(Word<'s>),
    Name(Word<'s>),
    Call(Word<'s>, Vec<Argument<'s>>),
    Field(Box<Expr<'s>>, Word<'s>),
    Index(Box<Expr<'s>>, Box<Expr<'s>>),
    Unary(UnaryOp, Box<Expr<'s>>),
    Binary(BinaryOp, Box<Expr<'s>>, Box<Expr<'s>>),
    /// `e as T`
    Cast(Box<Expr<'s>>, Word<'s>),
    /// `e as bits T`
    Bits(Box<Expr<'s>>, Word<'s>),
    /// `c ? a : b`
    Select(Box<Expr<'s>>, Box<Expr<'s>>, Box<Expr<'s>>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnaryOp {
    Neg,
    Not,
    Complement,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BinaryOp {
    LogicOr,
    LogicAnd,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Or,
    Xor,
    And,
    Shl,
    Shr,
    Add,
    Sub,
    Mul,
    Div,
    Rem,
}

impl UnaryOp {
    /// As it is written.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            UnaryOp::Neg => "-",
            UnaryOp::Not => "!",
            UnaryOp::Complement => "~",
        }
    }
}

impl BinaryOp {
    /// As it is written.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            BinaryOp::LogicOr => "||",
            BinaryOp::LogicAnd => "&&",
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => ">=",
            BinaryOp::Or => "|",
            BinaryOp::Xor => "^",
            BinaryOp::And => "&",
            BinaryOp::Shl => "<<",
            BinaryOp::Shr => ">>",
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Rem => "%",
        }
    }
}

// Builders, which keep the grammar's actions to one line.

/// The span from byte `start` to byte `end`, as LALRPOP's `@L` and `@R` give them.
pub(crate) fn span(start: usize, end: usize) -> Span {
    Span::from(start..end)
}

impl<'s> Expr<'s> {
    pub(crate) fn new(kind: ExprKind<'s>, span: Span) -> Self {
        Expr { kind, span }
    }

    /// A token that is an expression by itself.
    pub(crate) fn word(kind: fn(Word<'s>) -> ExprKind<'s>, word: Word<'s>) -> Self {
        Expr { kind: kind(word), span: word.span }
    }

    pub(crate) fn binary(a: Self, op: BinaryOp, b: Self) -> Self {
        let span = a.span.to(b.span);
        Expr { kind: ExprKind::Binary(op, Box::new(a), Box::new(b)), span }
    }

    pub(crate) fn unary(start: usize, op: UnaryOp, a: Self) -> Self {
        let span = span(start, start).to(a.span);
        Expr { kind: ExprKind::Unary(op, Box::new(a)), span }
    }

    pub(crate) fn select(condition: Self, a: Self, b: Self) -> Self {
        let span = condition.span.to(b.span);
        Expr { kind: ExprKind::Select(Box::new(condition), Box::new(a), Box::new(b)), span }
    }

    pub(crate) fn cast(a: Self, bits: bool, ty: Word<'s>) -> Self {
        let span = a.span.to(ty.span);
        let a = Box::new(a);
        Expr { kind: if bits { ExprKind::Bits(a, ty) } else { ExprKind::Cast(a, ty) }, span }
    }

    pub(crate) fn field(a: Self, name: Word<'s>) -> Self {
        let span = a.span.to(name.span);
        Expr { kind: ExprKind::Field(Box::new(a), name), span }
    }

    pub(crate) fn index(a: Self, index: Self, end: usize) -> Self {
        let span = a.span.to(span(end, end));
        Expr { kind: ExprKind::Index(Box::new(a), Box::new(index)), span }
    }

    pub(crate) fn call(function: Word<'s>, arguments: Vec<Argument<'s>>, end: usize) -> Self {
        let span = function.span.to(span(end, end));
        Expr { kind: ExprKind::Call(function, arguments), span }
    }

    /// `( e )`: the same expression, but messages show its parentheses.
    pub(crate) fn parenthesized(self, span: Span) -> Self {
        Expr { kind: self.kind, span }
    }
}

impl<'s> Binding<'s> {
    pub(crate) fn new(name: Word<'s>, ty: Option<Word<'s>>, value: Option<Expr<'s>>, span: Span) -> Self {
        Binding { name, ty, value, span }
    }
}

impl Stmt<'_> {
    pub(crate) fn span(&self) -> Span {
        match self {
            Stmt::Let(binding) => binding.span,
            Stmt::Assign { span, .. }
            | Stmt::Increment { span, .. }
            | Stmt::Slot { span, .. }
            | Stmt::Method { span, .. }
            | Stmt::Aggregate { span, .. }
            | Stmt::If { span, .. }
            | Stmt::Asm { span, .. }
            | Stmt::Bad(span) => *span,
        }
    }
}
