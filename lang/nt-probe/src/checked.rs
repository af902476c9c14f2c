//! A program whose names, types and units hold: what the checker makes of the tree, and all that lowering sees.
//!
//! Every expression has one type, literals included; conversions that the language makes silently stand written out.

use nt_diag::Span;
use nt_ir::program::{BinaryOp, Builtin, CompareOp, Map, State, StateId, Tracepoint, Type, UnaryOp, Unit};

#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) states: Vec<State>,
    pub(crate) maps: Vec<Map>,
    pub(crate) probes: Vec<Probe>,
}

#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) unit: Unit,
    pub(crate) points: Vec<Tracepoint>,
    pub(crate) predicate: Option<Expr>,
    pub(crate) body: Vec<Stmt>,
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
    /// Its value, if it is a constant.
    pub(crate) fn constant(&self) -> Option<u64> {
        match self.kind {
            Kind::Const(bits) => Some(bits),
            _ => None,
        }
    }
}
