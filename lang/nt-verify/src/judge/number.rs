//! What is known of numbers: the bits that may be set in them, when they are 0, and of sums, whether they wrap.
//!
//! ```text
//! and.b32  %nt_w, %nt_rank, 3;       w ≤ 3
//! shl.b32  %nt_w, %nt_w, 2;          w ≤ 12: nothing is shifted out, so w is 4·(rank & 3)
//! popc.b32 %nt_r, %nt_l;             0 where %nt_l is
//! add.u32  %nt_e, %nt_pos, 2;        may wrap: an unknown of its own, the low half of pos + 2
//! ```

use super::Judge;
use crate::value::{Fact, Facts, Linear, Unknown};

/// What is known of an [`Unknown::Some`].
#[derive(Debug, Clone, Copy)]
pub(super) struct About {
    /// The bits that may be set.
    bits: u64,
    /// It is 0 wherever the unknown of that number is.
    zero_with: Option<u32>,
    /// It is the low half of that unknown, which has 32 bits, plus that.
    sum: Option<(u32, u32)>,
}

/// The most that is added to a slot's number: see `claim.rs` on the capacity of streams.
const NEAR: u64 = 0xffff;

impl Judge<'_, '_> {
    /// A new unknown, of these bits.
    pub(super) fn unknown(&mut self, bits: u64) -> Linear {
        self.about(About { bits, zero_with: None, sum: None })
    }

    fn about(&mut self, about: About) -> Linear {
        let number = self.unknowns.len() as u32;
        self.unknowns.push(about);
        Linear::unknown(Unknown::Some(number))
    }

    /// What is known of an unknown of some number.
    fn known(&self, number: u32) -> Option<&About> {
        self.unknowns.get(number as usize)
    }

    /// A value of these bits that is 0 where `source` is, if that is an unknown.
    pub(super) fn derived(&mut self, bits: u64, source: &Linear) -> Linear {
        self.about(About { bits, zero_with: source.as_some(), sum: None })
    }

    /// A sum of 32 bits, which is the sum itself where it cannot wrap.
    pub(super) fn narrow(&mut self, sum: Option<Linear>) -> Linear {
        let half = u64::from(u32::MAX);
        if let Some(sum) = &sum
            && self.most(sum).is_some_and(|most| most <= half)
        {
            return sum.clone();
        }
        let near = sum.and_then(|sum| {
            let term = sum.only(|_| true).as_some()?;
            let more = u32::try_from(sum.rest()).ok().filter(|&more| u64::from(more) <= NEAR)?;
            self.known(term).filter(|about| about.bits <= half).map(|_| (term, more))
        });
        self.about(About { bits: half, zero_with: None, sum: near })
    }

    /// The bits that may be set in a value.
    pub(super) fn bits(&self, linear: &Linear) -> u64 {
        match (linear.as_constant(), linear.as_some()) {
            (Some(constant), _) => constant,
            (_, Some(number)) => self.known(number).map_or(u64::MAX, |about| about.bits),
            // All up to the highest one of the most that it can be.
            _ => self
                .most(linear)
                .map_or(u64::MAX, |most| u64::MAX.checked_shr(most.leading_zeros()).unwrap_or(0)),
        }
    }

    /// The most that a value can be; `None` where the sum may wrap.
    pub(super) fn most(&self, linear: &Linear) -> Option<u64> {
        linear.terms().iter().try_fold(linear.rest(), |most, &(unknown, factor)| {
            let bits = match unknown {
                Unknown::Some(number) => self.known(number)?.bits,
                Unknown::Low(_) => u64::from(u32::MAX),
                Unknown::Base(_) | Unknown::Room(_) | Unknown::Pin(_) => u64::MAX,
            };
            most.checked_add(bits.checked_mul(factor)?)
        })
    }

    /// Is a value a multiple of `bytes`, a power of two, whatever its unknowns are?
    pub(super) fn is_aligned(&self, linear: &Linear, bytes: u64) -> bool {
        let aligned = |&(unknown, factor): &(Unknown, u64)| match unknown {
            Unknown::Some(number) => {
                let bits = self.known(number).map_or(u64::MAX, |about| about.bits);
                // Of no bits it is 0.
                let lowest = bits & bits.wrapping_neg();
                factor.wrapping_mul(lowest).is_multiple_of(bytes)
            }
            _ => factor.is_multiple_of(bytes),
        };
        linear.rest().is_multiple_of(bytes) && linear.terms().iter().all(aligned)
    }

    /// The value without those unknowns that are 0 where these facts hold.
    pub(super) fn without_zeros(&self, linear: &Linear, facts: &Facts) -> Option<Linear> {
        let rest = Linear::constant(linear.rest());
        linear.only(|unknown| !self.is_zero(unknown, facts)).plus(&rest, 1)
    }

    fn is_zero(&self, unknown: Unknown, facts: &Facts) -> bool {
        let Unknown::Some(mut number) = unknown else { return false };
        // Each is derived from an older one, so this ends.
        loop {
            if facts.holds(&Fact::Zero(number)) {
                return true;
            }
            match self.known(number).and_then(|about| about.zero_with) {
                Some(older) if older < number => number = older,
                _ => return false,
            }
        }
    }

    /// Of the low half of `first + more`: `first` and `more`.
    pub(super) fn sum(&self, linear: &Linear) -> Option<(Linear, u64)> {
        let (first, more) = self.known(linear.as_some()?)?.sum?;
        Some((Linear::unknown(Unknown::Some(first)), u64::from(more)))
    }
}
