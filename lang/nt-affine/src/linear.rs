//! Numbers that a launch tells: a constant, or a sum of scalar kernel parameters times constants.
//!
//! ```text
//! mul.lo.s32 %r3, %r_lane, %r_pitch; mul.wide.s32 %rd1, %r3, 4     strides 4·pitch, 8·pitch, 16·pitch, 32·pitch, 64·pitch
//! ```

/// `constant + Σ factor · parameter`, in 64 bits that wrap.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Linear {
    /// What is known without a launch.
    pub constant: i64,
    /// The parameters, by offset, each with a factor that is not 0.
    pub terms: Vec<Term>,
}

/// `factor · parameter`
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term {
    /// Where the parameter begins in the kernel's parameter space, in bytes.
    pub param_offset: u32,
    /// Its size in bytes: 4 or 8.
    pub size: u32,
    /// Is it extended to 64 bits by its sign? Else by zeros. Of one of 8 bytes, `false`.
    pub signed: bool,
    /// What it is multiplied by.
    pub factor: i64,
}

impl From<i64> for Linear {
    fn from(constant: i64) -> Self {
        Linear { constant, terms: Vec::new() }
    }
}

impl Linear {
    /// The number, if no parameter is part of it.
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The number in a launch with these parameters; `None` if they have too few bytes.
    pub fn evaluate(&self, params: &[u8]) -> Option<i64> {
        self.terms.iter().try_fold(self.constant, |sum, term| {
            let bytes = params.get(term.param_offset as usize..)?;
            let value = match term.size {
                4 => {
                    let word = *bytes.first_chunk::<4>()?;
                    if term.signed {
                        i64::from(i32::from_le_bytes(word))
                    } else {
                        i64::from(u32::from_le_bytes(word))
                    }
                }
                _ => i64::from_le_bytes(*bytes.first_chunk::<8>()?),
            };
            Some(sum.wrapping_add(value.wrapping_mul(term.factor)))
        })
    }
}

impl Linear {
    pub(crate) fn is_zero(&self) -> bool {
        self.constant == 0 && self.terms.is_empty()
    }

    /// The parameter's bytes at an offset.
    pub(crate) fn parameter(param_offset: u32, size: u32) -> Linear {
        Linear { constant: 0, terms: vec![Term { param_offset, size, signed: false, factor: 1 }] }
    }

    pub(crate) fn add(&self, other: &Linear) -> Linear {
        self.plus(other, 1)
    }

    /// `self + other · by`
    pub(crate) fn plus(&self, other: &Linear, by: i64) -> Linear {
        let constant = self.constant.wrapping_add(other.constant.wrapping_mul(by));
        if other.terms.is_empty() {
            return Linear { constant, terms: self.terms.clone() };
        }
        let mut terms = self.terms.clone();
        for term in &other.terms {
            let factor = term.factor.wrapping_mul(by);
            let key = |term: &Term| (term.param_offset, term.size, term.signed);
            match terms.binary_search_by_key(&key(term), key) {
                // The index is where the search found it.
                Ok(at) => terms[at].factor = terms[at].factor.wrapping_add(factor),
                Err(at) => terms.insert(at, Term { factor, ..*term }),
            }
        }
        terms.retain(|term| term.factor != 0);
        Linear { constant, terms }
    }

    pub(crate) fn times(&self, by: i64) -> Linear {
        Linear::default().plus(self, by)
    }

    /// In a type of `width` bits: numbers that differ by a multiple of its size are one.
    pub(crate) fn cut(&self, width: u32) -> Linear {
        if width >= 64 {
            return self.clone();
        }
        let number = |value: i64| value << (64 - width) >> (64 - width);
        let mut cut = Linear::from(number(self.constant));
        for term in &self.terms {
            // The low bytes of a little-endian number stand first.
            let narrow = Term { size: term.size.min(4), signed: false, factor: number(term.factor), ..*term };
            let one = Linear { constant: 0, terms: vec![narrow] };
            cut = cut.plus(&one, 1);
        }
        for term in &mut cut.terms {
            term.factor = number(term.factor);
        }
        cut.terms.retain(|term| term.factor != 0);
        cut
    }

    /// Read as extended by the sign of parameters of 4 bytes.
    pub(crate) fn with_sign(&self, signed: bool) -> Linear {
        let mut changed = self.clone();
        for term in &mut changed.terms {
            term.signed = signed && term.size == 4;
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_as_told() {
        let mut params = [0u8; 16];
        params[4..8].copy_from_slice(&(-3i32).to_le_bytes());
        params[8..].copy_from_slice(&10u64.to_le_bytes());
        let term = |param_offset, size, signed, factor| Term { param_offset, size, signed, factor };
        let check = |terms: Vec<Term>, expected| {
            assert_eq!(Linear { constant: 1, terms }.evaluate(&params), expected);
        };
        check(vec![], Some(1));
        check(vec![term(4, 4, true, 4)], Some(-11));
        check(vec![term(4, 4, false, 1)], Some(1 + 0xffff_fffd));
        check(vec![term(4, 4, true, 4), term(8, 8, false, -2)], Some(-31));
        check(vec![term(12, 8, false, 1)], None);
    }

    #[test]
    fn sums_and_multiples() {
        let pitch = Linear::parameter(8, 4);
        let four = pitch.times(4).plus(&Linear::from(3), 2);
        assert_eq!((four.constant, four.terms[0].factor), (6, 4));
        assert_eq!(four.plus(&pitch, -4), Linear::from(6));
        assert_eq!(Linear::from(0xffff_ffff).cut(32), Linear::from(-1));
        assert_eq!(Linear::parameter(8, 8).times(1 << 32).cut(32), Linear::from(0));
        assert_eq!(Linear::parameter(8, 8).cut(32), Linear::parameter(8, 4));
    }
}
