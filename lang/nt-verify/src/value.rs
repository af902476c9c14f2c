//! What is known of a value: the domain of the abstract interpretation.
//!
//! ```text
//! ld.param.u64  %nt_b, [nt_ctx+8];          b = base(heat)
//! mad.wide.u32  %nt_a, %nt_i, 16, %nt_b;    a = base(heat) + 16·x7, where x7 is %nt_i with zeros above
//! setp.lt.u32   %nt_p, %nt_i, %nt_c;        p is fact 3; where it holds, x7 < cap(heat)
//! ```
//!
//! A stream's slots are told by 32-bit numbers, and one comparison may speak for several of them:
//!
//! ```text
//! add.u32       %nt_e, %nt_pos, 2;          e = the low half of pos + 2
//! setp.lt.u32   %nt_p, %nt_pos, %nt_c;      where it holds, pos < cap(ev), which is below 2^32 - 2^16, so that e = pos + 2
//! ```
//!
//! Addresses are linear in unknowns, exactly as the machine computes them: modulo 2^64. Predicates carry the facts that
//! follow from their being true and from their being false. Everything else is an unknown of its own. To forget is
//! always sound here: a fact or a form that is dropped can only make a text refused.

use std::rc::Rc;

/// Memory that the context points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Area {
    /// The records, cells or slots of a map, by its index in the claim.
    Records(u32),
    /// The cursor of a stream.
    Cursor(u32),
    /// The drops of a stream.
    Drops(u32),
    /// The counts of a map.
    Counts(u32),
}

/// A number of the context that says how many of something there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Room {
    /// The capacity of a map.
    Cap(u32),
    /// How many units the launch has, of a stream or a map with counts.
    Units(u32),
}

/// A 64-bit value that nothing more is known of, the same number for the same value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unknown {
    /// Where an area begins.
    Base(Area),
    /// How much room there is.
    Room(Room),
    /// The low half of it, with zeros above: never more than it.
    Low(Room),
    /// The address of a pinned variable, by its index in `nt_pin`.
    Pin(u32),
    /// Anything else.
    Some(u32),
}

/// A sum of unknowns, each times a constant, and a constant; modulo 2^64.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Linear {
    terms: Terms,
    constant: u64,
}

/// Unknowns, rising, and their factors, none of them 0. Most values are one unknown or none, and cost no allocation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Terms {
    None,
    One((Unknown, u64)),
    /// Two or more.
    Many(Rc<[(Unknown, u64)]>),
}

impl Terms {
    fn of(terms: &[(Unknown, u64)]) -> Self {
        match terms {
            [] => Terms::None,
            [term] => Terms::One(*term),
            _ => Terms::Many(Rc::from(terms)),
        }
    }

    fn as_slice(&self) -> &[(Unknown, u64)] {
        match self {
            Terms::None => &[],
            Terms::One(term) => std::slice::from_ref(term),
            Terms::Many(terms) => terms,
        }
    }
}

impl Linear {
    /// The most terms of a sum; longer ones are forgotten.
    const MOST: usize = 8;

    pub(crate) fn constant(constant: u64) -> Self {
        Linear { terms: Terms::None, constant }
    }

    pub(crate) fn unknown(unknown: Unknown) -> Self {
        Linear { terms: Terms::One((unknown, 1)), constant: 0 }
    }

    /// The value, if it is one constant.
    pub(crate) fn as_constant(&self) -> Option<u64> {
        (self.terms == Terms::None).then_some(self.constant)
    }

    /// The unknown, if it is one and nothing else.
    pub(crate) fn as_unknown(&self) -> Option<Unknown> {
        match self.terms.as_slice() {
            [(unknown, 1)] if self.constant == 0 => Some(*unknown),
            _ => None,
        }
    }

    /// The number of [`Unknown::Some`], if it is one and nothing else.
    pub(crate) fn as_some(&self) -> Option<u32> {
        match self.as_unknown() {
            Some(Unknown::Some(number)) => Some(number),
            _ => None,
        }
    }

    /// Each unknown, and its factor.
    pub(crate) fn terms(&self) -> &[(Unknown, u64)] {
        self.terms.as_slice()
    }

    /// The constant beside the unknowns.
    pub(crate) fn rest(&self) -> u64 {
        self.constant
    }

    /// The same unknowns, or those of them that are wanted, without the constant.
    pub(crate) fn only(&self, wanted: impl Fn(Unknown) -> bool) -> Linear {
        let all = self.terms.as_slice();
        if all.iter().all(|&(unknown, _)| wanted(unknown)) {
            return Linear { terms: self.terms.clone(), constant: 0 };
        }
        let terms: Vec<_> = all.iter().copied().filter(|&(unknown, _)| wanted(unknown)).collect();
        Linear { terms: Terms::of(&terms), constant: 0 }
    }

    /// The pin that it holds once, and the constant beside it, if it holds nothing else.
    pub(crate) fn pin(&self) -> Option<(u32, u64)> {
        match self.terms.as_slice() {
            [(Unknown::Pin(pin), 1)] => Some((*pin, self.constant)),
            _ => None,
        }
    }

    /// The area whose base it holds once, if it holds exactly one base.
    pub(crate) fn base(&self) -> Option<Area> {
        let mut bases = self.terms.as_slice().iter().filter_map(|&(unknown, factor)| match unknown {
            Unknown::Base(area) => Some((area, factor)),
            _ => None,
        });
        match (bases.next(), bases.next()) {
            (Some((area, 1)), None) => Some(area),
            _ => None,
        }
    }

    /// `self + factor · other`, or `None` if that has too many terms.
    pub(crate) fn plus(&self, other: &Linear, factor: u64) -> Option<Linear> {
        let constant = self.constant.wrapping_add(other.constant.wrapping_mul(factor));
        if other.terms == Terms::None {
            return Some(Linear { terms: self.terms.clone(), constant });
        }
        let mut terms = [(Unknown::Some(0), 0); Self::MOST];
        let mut free = terms.iter_mut();
        let (mut left, mut right) =
            (self.terms.as_slice().iter().peekable(), other.terms.as_slice().iter().peekable());
        loop {
            let term = match (left.peek().copied(), right.peek().copied()) {
                (Some(&(a, n)), Some(&(b, m))) if a == b => {
                    left.next();
                    right.next();
                    (a, n.wrapping_add(m.wrapping_mul(factor)))
                }
                (Some(&(a, n)), other) if other.is_none_or(|&(b, _)| a < b) => {
                    left.next();
                    (a, n)
                }
                (_, Some(&(b, m))) => {
                    right.next();
                    (b, m.wrapping_mul(factor))
                }
                _ => break,
            };
            if term.1 != 0 {
                *free.next()? = term;
            }
        }
        let used = Self::MOST - free.len();
        terms.get(..used).map(|terms| Linear { terms: Terms::of(terms), constant })
    }
}

/// Something that is true at a place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fact {
    /// The comparison of that number came out so.
    Held(u32, bool),
    /// That value is below that number.
    Below(Linear, Room),
    /// [`Unknown::Some`] of that number is 0.
    Zero(u32),
}

/// A set of facts; at most [`Facts::MOST`], more are forgotten.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Facts(Option<Rc<[Fact]>>);

impl Facts {
    /// Far beyond what a probe needs; it bounds what a hostile text can make the checks cost.
    const MOST: usize = 32;

    pub(crate) fn of(mut facts: Vec<Fact>) -> Self {
        facts.sort();
        facts.dedup();
        facts.truncate(Self::MOST);
        Facts::sorted(facts)
    }

    fn sorted(facts: Vec<Fact>) -> Self {
        Facts((!facts.is_empty()).then(|| Rc::from(facts)))
    }

    fn as_slice(&self) -> &[Fact] {
        self.0.as_deref().unwrap_or(&[])
    }

    pub(crate) fn holds(&self, fact: &Fact) -> bool {
        self.as_slice().binary_search(fact).is_ok()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Fact> {
        self.as_slice().iter()
    }

    /// What is true where both are.
    pub(crate) fn and(&self, other: &Facts) -> Facts {
        if other.0.is_none() {
            self.clone()
        } else if self.0.is_none() {
            other.clone()
        } else {
            Facts::of(self.iter().chain(other.iter()).cloned().collect())
        }
    }

    /// What is true where one of them is, nobody knows which.
    pub(crate) fn or(&self, other: &Facts) -> Facts {
        match (&self.0, &other.0) {
            (Some(one), Some(two)) if Rc::ptr_eq(one, two) => self.clone(),
            _ => Facts::sorted(self.iter().filter(|fact| other.holds(fact)).cloned().collect()),
        }
    }
}

/// A predicate, and what follows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Predicate {
    /// The fact that it is: definitions under a guard are remembered by it.
    pub(crate) number: u32,
    /// Does it say that the fact did not hold?
    pub(crate) negated: bool,
    /// What is true where it is true, its own fact included.
    pub(crate) if_true: Facts,
    /// What is true where it is false.
    pub(crate) if_false: Facts,
}

impl Predicate {
    /// A new one, from which follows what the arguments say.
    pub(crate) fn new(number: u32, if_true: &Facts, if_false: &Facts) -> Self {
        let own = |value| Facts::of(vec![Fact::Held(number, value)]);
        Predicate {
            number,
            negated: false,
            if_true: own(true).and(if_true),
            if_false: own(false).and(if_false),
        }
    }

    #[must_use]
    pub(crate) fn not(&self) -> Self {
        Predicate {
            number: self.number,
            negated: !self.negated,
            if_true: self.if_false.clone(),
            if_false: self.if_true.clone(),
        }
    }

    /// Its own fact where it is true.
    pub(crate) fn own(&self) -> Fact {
        Fact::Held(self.number, !self.negated)
    }
}

/// What is known of the content of a register that was assigned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Known {
    /// 64 bits.
    Word(Linear),
    /// 32 bits, as they are with zeros above.
    Half(Linear),
    /// The lanes that were here when `activemask` was executed: at which stretch without labels and branches, and
    /// under which guard.
    Lanes {
        stretch: u32,
        guard: Option<Fact>,
    },
    Predicate(Predicate),
    /// Nothing, or fewer bits.
    Nothing,
}

/// The content of a register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// Nothing assigned it on some path.
    Unassigned,
    /// It was assigned where that fact holds.
    Where(Fact, Known),
    /// It was assigned on every path.
    Assigned(Known),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_wrap_and_cancel() {
        let records = Area::Records(0);
        let (base, x) = (Linear::unknown(Unknown::Base(records)), Linear::unknown(Unknown::Some(7)));
        let address = base.plus(&x, 16).and_then(|sum| sum.plus(&Linear::constant(8), 1)).expect("is short");
        assert_eq!(address.base(), Some(records));
        let rest = address
            .plus(&base, u64::MAX)
            .and_then(|sum| sum.plus(&x, 16_u64.wrapping_neg()))
            .expect("is short");
        assert_eq!(rest.as_constant(), Some(8));
        assert_eq!(x.plus(&x, u64::MAX).and_then(|zero| zero.as_constant()), Some(0));
        assert_eq!(x.plus(&Linear::constant(1), 1).and_then(|sum| sum.as_unknown()), None);
        assert_eq!(base.plus(&base, 1).and_then(|twice| twice.base()), None, "twice a base is no base");
        let other = Linear::unknown(Unknown::Base(Area::Cursor(0)));
        assert_eq!(base.plus(&other, 1).and_then(|two| two.base()), None);
    }

    #[test]
    fn a_sum_of_many_terms_is_forgotten() {
        let sum =
            (0..8).try_fold(Linear::constant(0), |sum, n| sum.plus(&Linear::unknown(Unknown::Some(n)), 1));
        assert!(sum.as_ref().is_some_and(|sum| sum.plus(&Linear::unknown(Unknown::Some(8)), 1).is_none()));
    }

    #[test]
    fn facts_meet_and_join() {
        let (p, q) = (Fact::Held(1, true), Fact::Held(2, false));
        let both = Facts::of(vec![p.clone()]).and(&Facts::of(vec![q.clone()]));
        assert!(both.holds(&p) && both.holds(&q));
        let one = both.or(&Facts::of(vec![q.clone()]));
        assert!(!one.holds(&p) && one.holds(&q));
        let predicate = Predicate::new(3, &both, &Facts::default());
        assert!(predicate.not().if_false.holds(&p) && !predicate.not().if_true.holds(&p));
        assert_eq!(predicate.not().own(), Fact::Held(3, false));
    }
}
