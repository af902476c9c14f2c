//! What may hold of a launch's shape, and makes addresses and lanes cheaper where it does.
//!
//! ```text
//! Conditions::of([64, 1, 1], [256, 1, 1])  ->  flat_grid, flat_block, whole_rows
//! Conditions::of([64, 2, 1], [16, 16, 1])  ->  none
//! ```
//!
//! A kernel woven under conditions runs only where they hold: whoever launches it compares ([`Conditions::is_subset_of`])
//! what was relied on with what the launch has, and takes another twin, or the original, where that is less.
//! `docs/injection.md` tells what each is good for.

use std::fmt;

/// A set of conditions; as bits, what messages between hook and parent carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Conditions(u8);

impl Conditions {
    /// Nothing is known.
    pub const NONE: Conditions = Conditions(0);
    /// `nctaid.y` and `nctaid.z` are 1.
    pub const FLAT_GRID: Conditions = Conditions(1);
    /// `ntid.y` and `ntid.z` are 1. The lane is then `tid.x & 31`.
    pub const FLAT_BLOCK: Conditions = Conditions(2);
    /// `ntid.x` is a multiple of 32. The lane is then `tid.x & 31`, and `tid.y` and `tid.z` are the same in all lanes of a
    /// warp.
    pub const WHOLE_ROWS: Conditions = Conditions(4);
    /// All of them.
    pub const ALL: Conditions = Conditions(7);

    /// Each with its name, in the order of the bits.
    const NAMES: [(Conditions, &'static str); 3] = [
        (Conditions::FLAT_GRID, "flat_grid"),
        (Conditions::FLAT_BLOCK, "flat_block"),
        (Conditions::WHOLE_ROWS, "whole_rows"),
    ];

    /// What holds of a launch of `grid` blocks of `block` threads.
    pub fn of(grid: [u32; 3], block: [u32; 3]) -> Conditions {
        let flat = |[_, y, z]: [u32; 3]| y == 1 && z == 1;
        let [x, _, _] = block;
        Conditions::NONE
            .with(Conditions::FLAT_GRID, flat(grid))
            .with(Conditions::FLAT_BLOCK, flat(block))
            .with(Conditions::WHOLE_ROWS, x != 0 && x.is_multiple_of(32))
    }

    fn with(self, other: Conditions, holds: bool) -> Conditions {
        if holds { self.union(other) } else { self }
    }

    /// As bits.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// From bits; `None` where one of them has no meaning.
    pub fn from_bits(bits: u8) -> Option<Conditions> {
        (bits & !Conditions::ALL.0 == 0).then_some(Conditions(bits))
    }

    /// Those that one of the two has.
    pub fn union(self, other: Conditions) -> Conditions {
        Conditions(self.0 | other.0)
    }

    /// Those that both have.
    pub fn intersection(self, other: Conditions) -> Conditions {
        Conditions(self.0 & other.0)
    }

    /// Does `other` have all of these?
    pub fn is_subset_of(self, other: Conditions) -> bool {
        self.0 & !other.0 == 0
    }

    /// Has it all of `other`?
    pub fn contains(self, other: Conditions) -> bool {
        other.is_subset_of(self)
    }

    /// Are there none?
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Their names, in the order of the bits.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Conditions::NAMES.into_iter().filter(move |(one, _)| self.contains(*one)).map(|(_, name)| name)
    }

    /// The one that `name` names.
    pub fn from_name(name: &str) -> Option<Conditions> {
        Conditions::NAMES.into_iter().find(|(_, known)| *known == name).map(|(one, _)| one)
    }

    /// The names there are, for messages.
    pub fn all_names() -> impl Iterator<Item = &'static str> {
        Conditions::ALL.names()
    }
}

/// The names with commas between, as a user writes them: `flat_grid,flat_block`; nothing for none.
impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, name) in self.names().enumerate() {
            write!(f, "{}{name}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_launches() {
        let check = |grid, block, expected: &str| {
            assert_eq!(Conditions::of(grid, block).to_string(), expected, "{grid:?} {block:?}");
        };
        check([64, 1, 1], [256, 1, 1], "flat_grid,flat_block,whole_rows");
        check([64, 1, 1], [100, 1, 1], "flat_grid,flat_block");
        check([64, 2, 1], [32, 8, 1], "whole_rows");
        check([1, 1, 2], [16, 16, 1], "");
        check([1, 1, 1], [64, 1, 4], "flat_grid,whole_rows");
    }

    #[test]
    fn sets() {
        let flat = Conditions::FLAT_GRID.union(Conditions::FLAT_BLOCK);
        assert!(Conditions::FLAT_GRID.is_subset_of(flat) && !flat.is_subset_of(Conditions::FLAT_GRID));
        assert!(Conditions::NONE.is_subset_of(Conditions::NONE) && flat.contains(Conditions::NONE));
        assert_eq!(flat.intersection(Conditions::FLAT_BLOCK), Conditions::FLAT_BLOCK);
        assert_eq!((flat.bits(), Conditions::from_bits(3), Conditions::from_bits(8)), (3, Some(flat), None));
        for name in Conditions::all_names() {
            assert_eq!(Conditions::from_name(name).map(|one| one.to_string()).as_deref(), Some(name));
        }
        assert_eq!(Conditions::from_name("round"), None);
    }
}
