//! A program whose names, types and units hold: what the checker makes of the tree, and all that lowering sees.
//!
//! Every expression has one type, literals included; conversions that the language makes silently stand written out.

use nt_diag::Span;
use nt_ir::program::{
    BinaryOp, Builtin, CompareOp, Config, Map, Operand, Part, SiteKey, SiteValue, State, StateId, Table,
    TableId, Tracepoint, Type, UnaryOp, Unit,
};

#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) states: Vec<State>,
    pub(crate) maps: Vec<Map>,
    pub(crate) tables: Vec<Table>,
    pub(crate) probes: Vec<Probe>,
    pub(crate) config: Config,
}

#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) unit: Unit,
    pub(crate) points: Vec<Tracepoint>,
    pub(crate) predicate: Option<Expr>,
    pub(crate) sample: Option<Sample>,
    pub(crate) body: Vec<Stmt>,
    pub(crate) span: Span,
}

/// `sample(N)`: the probe runs every Nth time that its predicate holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// At least 2.
    pub(crate) every: u32,
    /// What it is counted in.
    pub(crate) state: StateId,
    pub(crate) span: Span,
}

/// A `let` of a probe, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LetId(pub(crate) usize);

#[derive(Debug)]
pub(crate) enum Stmt {
    /// `let x = value`, `x = value`
    Let {
        id: LetId,
        value: Expr,
        span: Span,
    },
    /// `state = value`
    Write {
        state: StateId,
        value: Expr,
        span: Span,
    },
    /// A value for each field, ascending.
    Save {
        map: u32,
        values: Vec<Expr>,
        span: Span,
    },
    /// `@table = count()`, `@table = sum(value)`
    Aggregate {
        table: TableId,
        value: Option<Expr>,
        span: Span,
    },
    If {
        condition: Expr,
        then: Vec<Stmt>,
        otherwise: Vec<Stmt>,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct Expr {
    pub(crate) kind: Kind,
    pub(crate) ty: Type,
    /// Does it differ between the lanes of a warp?
    pub(crate) varying: bool,
    pub(crate) span: Span,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// In the canonical form of the type.
    Const(u64),
    Builtin(Builtin),
    /// Known when a kernel is woven.
    Site(SiteValue),
    Operand(Operand),
    /// Of an operand whose type is the instruction's.
    CastOperand(Operand),
    BitsOperand(Operand),
    CompareOperands(CompareOp, Operand, Operand),
    /// A clock that is read once the value is there.
    ClockAfter(Builtin, Box<Expr>),
    ClockAfterOperand(Builtin, Operand),
    /// Known when a kernel is woven.
    Has(Part),
    /// Known when a kernel is woven.
    Match(SiteKey, String),
    State(StateId),
    Let(LetId),
    Unary(UnaryOp, Box<Expr>),
    /// Operands of the result's type; of a shift, the amount is a `u32`.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// Operands of one integer type.
    Compare(CompareOp, Box<Expr>, Box<Expr>),
    Cast(Box<Expr>),
    Bits(Box<Expr>),
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
}

impl Expr {
    /// Is it known when a kernel is woven: made of literals and what is known of sites?
    pub(crate) fn is_static(&self) -> bool {
        match &self.kind {
            Kind::Const(_) | Kind::Site(_) | Kind::Has(_) | Kind::Match(..) => true,
            Kind::Builtin(_)
            | Kind::Operand(_)
            | Kind::CastOperand(_)
            | Kind::BitsOperand(_)
            | Kind::CompareOperands(..)
            | Kind::ClockAfter(..)
            | Kind::ClockAfterOperand(..)
            | Kind::State(_)
            | Kind::Let(_) => false,
            _ => self.operands().into_iter().all(Expr::is_static),
        }
    }

    /// Does it ask what is known of sites?
    pub(crate) fn asks_of_site(&self) -> bool {
        match &self.kind {
            Kind::Site(_) | Kind::Has(_) | Kind::Match(..) => true,
            _ => self.operands().into_iter().any(Expr::asks_of_site),
        }
    }

    /// What it is made of.
    pub(crate) fn operands(&self) -> Vec<&Expr> {
        match &self.kind {
            Kind::Const(_)
            | Kind::Builtin(_)
            | Kind::Site(_)
            | Kind::Operand(_)
            | Kind::CastOperand(_)
            | Kind::BitsOperand(_)
            | Kind::CompareOperands(..)
            | Kind::ClockAfterOperand(..)
            | Kind::Has(_)
            | Kind::Match(..)
            | Kind::State(_)
            | Kind::Let(_) => Vec::new(),
            Kind::Unary(_, a) | Kind::Cast(a) | Kind::Bits(a) | Kind::ClockAfter(_, a) => vec![a],
            Kind::Binary(_, a, b) | Kind::Compare(_, a, b) => vec![a, b],
            Kind::Select(c, a, b) => vec![c, a, b],
        }
    }

    /// Its value, if it is a constant.
    pub(crate) fn constant(&self) -> Option<u64> {
        match self.kind {
            Kind::Const(bits) => Some(bits),
            _ => None,
        }
    }
}
