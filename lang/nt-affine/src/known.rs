//! What is known of the bits of a number that is the same in all lanes.
//!
//! ```text
//! 32·w, w below 32     may 0x3e0   must 0      the low five bits are 0, those above bit 9 too
//! ```
//!
//! All operations are of 64 bits that wrap; [`Known::cut`] brings what came out back to a narrower type.

/// Bits that may be 1 and bits that are 1; a bit that may not be is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) may: u64,
    pub(crate) must: u64,
}

/// The low `bits` bits.
pub(crate) const fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

impl Known {
    pub(crate) const fn constant(value: u64) -> Known {
        Known { may: value, must: value }
    }

    /// Any number whose bits are among those of `may`.
    pub(crate) const fn among(may: u64) -> Known {
        Known { may, must: 0 }
    }

    pub(crate) fn as_constant(self) -> Option<u64> {
        (self.may == self.must).then_some(self.may)
    }

    /// One or the other.
    pub(crate) fn or_else(self, other: Known) -> Known {
        Known { may: self.may | other.may, must: self.must & other.must }
    }

    /// The low bits.
    pub(crate) fn cut(self, width: u32) -> Known {
        Known { may: self.may & mask(width), must: self.must & mask(width) }
    }

    /// Only how many low bits are 0, and whether the top one is, which a loop changes a few times at most.
    pub(crate) fn widened(self, width: u32) -> Known {
        let zeros = self.may.trailing_zeros();
        let top = !self.may & 1 << (width - 1);
        Known::among(mask(width) & !mask(zeros) & !top)
    }

    /// Without the top bit of `width`.
    pub(crate) fn without_sign(self, width: u32) -> Known {
        Known { may: self.may & mask(width - 1), must: self.must & mask(width - 1) }
    }

    /// Is the top bit of `width` 0?
    pub(crate) fn is_positive(self, width: u32) -> bool {
        self.may >> (width - 1) & 1 == 0
    }

    pub(crate) fn add(self, other: Known) -> Known {
        self.sum(other, false)
    }

    pub(crate) fn sub(self, other: Known) -> Known {
        self.sum(Known { may: !other.must, must: !other.may }, true)
    }

    /// A bit of a sum is known where those of both are and so is the carry into it: the carries of the largest and of
    /// the least sum agree.
    fn sum(self, other: Known, carry: bool) -> Known {
        let most = self.may.wrapping_add(other.may).wrapping_add(u64::from(carry));
        let least = self.must.wrapping_add(other.must).wrapping_add(u64::from(carry));
        let carries_of_most = most ^ self.may ^ other.may;
        let carries_of_least = least ^ self.must ^ other.must;
        let known =
            !(self.may ^ self.must) & !(other.may ^ other.must) & !(carries_of_most ^ carries_of_least);
        Known { may: most | !known, must: least & known }
    }

    pub(crate) fn mul(self, other: Known) -> Known {
        if let (Some(a), Some(b)) = (self.as_constant(), other.as_constant()) {
            return Known::constant(a.wrapping_mul(b));
        }
        let zeros = self.may.trailing_zeros() + other.may.trailing_zeros();
        let below = match self.may.checked_mul(other.may) {
            Some(most) => mask(64 - most.leading_zeros()),
            None => u64::MAX,
        };
        Known::among(below & !mask(zeros))
    }

    pub(crate) fn shl(self, by: u32) -> Known {
        Known { may: self.may.checked_shl(by).unwrap_or(0), must: self.must.checked_shl(by).unwrap_or(0) }
    }

    pub(crate) fn shr(self, by: u32) -> Known {
        Known { may: self.may.checked_shr(by).unwrap_or(0), must: self.must.checked_shr(by).unwrap_or(0) }
    }

    /// From `width` bits to 64, with copies of the top bit above it.
    pub(crate) fn sign_extend(self, width: u32) -> Known {
        let extend = |bits: u64| if bits >> (width - 1) & 1 == 1 { bits | !mask(width) } else { bits };
        Known { may: extend(self.may), must: extend(self.must) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that three bits may be: which numbers a pair of masks lets in.
    fn all() -> Vec<(Known, Vec<u64>)> {
        let mut all = Vec::new();
        for may in 0..8u64 {
            for must in (0..8).filter(|must| must & !may == 0) {
                all.push((
                    Known { may, must },
                    (0..8).filter(|n| n & !may == 0 && n & must == must).collect(),
                ));
            }
        }
        all
    }

    #[test]
    fn no_number_is_left_out() {
        type Both = (&'static str, fn(Known, Known) -> Known, fn(u64, u64) -> u64);
        let operations: [Both; 4] = [
            ("add", Known::add, u64::wrapping_add),
            ("sub", Known::sub, u64::wrapping_sub),
            ("mul", Known::mul, u64::wrapping_mul),
            ("or_else", Known::or_else, |a, _| a),
        ];
        for (name, of_bits, of_numbers) in operations {
            for (a, numbers) in all() {
                for (b, others) in all() {
                    let found = of_bits(a, b);
                    for &x in &numbers {
                        for &y in &others {
                            let n = of_numbers(x, y);
                            assert!(
                                n & !found.may == 0 && n & found.must == found.must,
                                "{name} {x} {y}: {found:?}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn sums_are_as_exact_as_can_be() {
        let aligned = Known::among(0x3e0);
        assert_eq!(aligned.add(Known::constant(31)), Known { may: 0x3ff, must: 31 });
        assert_eq!(Known::constant(5).sub(Known::constant(7)), Known::constant(u64::MAX - 1));
        assert_eq!(Known::among(0x7e0).mul(Known::among(0x7fff_ffff)).may.trailing_zeros(), 5);
        assert_eq!(Known::constant(0x80).sign_extend(8), Known::constant(0xffff_ffff_ffff_ff80));
        assert_eq!(Known::among(0x80).sign_extend(8), Known::among(0xffff_ffff_ffff_ff80));
        assert_eq!(Known::among(0x3f0).widened(32), Known::among(0x7fff_fff0));
    }
}
