//! Tables: where the sums and counts of a program go.
//!
//! ```text
//! table @bytes: sum u64 [op, block]      cells: the opcodes of the kernel's sites × the blocks of the launch
//! ```
//!
//! Language reference, Maps.

use crate::program::{Builtin, Type, Unit};
use crate::site::SiteKey;
use nt_diag::Span;

/// An aggregation: cells of 64 bits, one for each combination of its keys, that devices add to and readers show.
///
/// A key is told by the site, by the launch or by the machine, never by a computed value: a site's cell is at a place
/// known when the kernel is woven, plus the stride of at most one key that is told when it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its name in the program, without the `@`; empty for `@` alone.
    pub name: String,
    /// What is done to a cell.
    pub func: Func,
    /// The type of a cell: `U64` or `S64`, and `U64` of a count.
    pub ty: Type,
    /// In the order of the program; at most one of them is not a [`Key::Site`].
    pub keys: Vec<Key>,
    /// Where it was first named.
    pub span: Span,
}

/// What an aggregation does to a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Func {
    /// `count()`: adds 1.
    Count,
    /// `sum(e)`: adds e.
    Sum,
    /// How many lanes of a warp have left, by which a `warp` probe at `kernel:exit` knows the last. A pass adds such a
    /// table; no program has one.
    Gone,
}

/// What tells the cells of a table apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// What the site is called: the cell is known when the kernel is woven.
    Site(SiteKey),
    /// The unit of the launch that the lane belongs to: as many cells as the launch has of them.
    Unit(Unit),
    /// A number below a bound that the machine has; [`Builtin::Cu`] alone for now.
    Bounded(Builtin),
}
