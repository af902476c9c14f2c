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
