//! A value of the lanes of a warp: the same number in all of them, plus a stride for each bit of the lane's number.
//!
//! ```text
//! %tid.x        32·w         + 1 2 4 8 16
//! %tid.x·4      128·w        + 4 8 16 32 64
//! %tid.x & 7    0            + 1 2 4 0 0
//! ```
//!
//! Of the number that all share only some bits are known ([`Known`]), or what of parameters it is. Values are of 1, 8,
//! 16, 32 or 64 bits, which the operations are told; sums and products wrap there, as the machine's do, so that they are
//! exact. What is not (extending, shifting right, comparing) asks for the carries: [`Form::is_carry_free`].

use crate::known::{Known, mask};
use crate::linear::Linear;

/// *uniform + Σ bit i of the lane · stride i*.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Form {
    /// The bits of what all lanes share.
    pub(crate) known: Known,
    /// What it is of the parameters, if that is all it is.
    pub(crate) linear: Option<Linear>,
    pub(crate) strides: [Linear; 5],
}

/// What is left of a value where lanes have nothing in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Varying {
    /// Does it come from memory?
    pub(crate) indirect: bool,
}

impl Form {
    pub(crate) fn uniform(known: Known) -> Form {
        Form { known, linear: None, strides: Default::default() }
    }

    pub(crate) fn constant(value: u64) -> Form {
        let linear = Some(Linear::from(value.cast_signed()));
        Form { known: Known::constant(value), linear, strides: Default::default() }
    }

    /// `known + lane`
    pub(crate) fn lane(known: Known) -> Form {
        Form { known, linear: None, strides: std::array::from_fn(|bit| Linear::from(1 << bit)) }
    }

    pub(crate) fn is_uniform(&self) -> bool {
        self.strides.iter().all(Linear::is_zero)
    }

    pub(crate) fn as_constant(&self) -> Option<u64> {
        self.known.as_constant().filter(|_| self.is_uniform())
    }

    /// The strides, if no parameter is in them.
    pub(crate) fn numbers(&self) -> Option<[i64; 5]> {
        let mut numbers = [0; 5];
        for (number, stride) in numbers.iter_mut().zip(&self.strides) {
            *number = stride.as_constant()?;
        }
        Some(numbers)
    }

    pub(crate) fn cut(&self, width: u32) -> Form {
        Form {
            known: self.known.cut(width),
            linear: self.linear.as_ref().map(|linear| linear.cut(width)),
            strides: std::array::from_fn(|bit| self.strides[bit].cut(width)),
        }
    }

    pub(crate) fn add(&self, other: &Form, width: u32) -> Form {
        let both = self.linear.as_ref().zip(other.linear.as_ref());
        Form {
            known: self.known.add(other.known),
            linear: both.map(|(a, b)| a.add(b)),
            strides: std::array::from_fn(|bit| self.strides[bit].add(&other.strides[bit])),
        }
        .cut(width)
    }

    pub(crate) fn sub(&self, other: &Form, width: u32) -> Form {
        let both = self.linear.as_ref().zip(other.linear.as_ref());
        Form {
            known: self.known.sub(other.known),
            linear: both.map(|(a, b)| a.plus(b, -1)),
            strides: std::array::from_fn(|bit| self.strides[bit].plus(&other.strides[bit], -1)),
        }
        .cut(width)
    }

    /// A product, where one of the factors is the same in all lanes and what the strides become is linear.
    pub(crate) fn mul(&self, other: &Form, width: u32) -> Option<Form> {
        let (varying, uniform) = if other.is_uniform() { (self, other) } else { (other, self) };
        if !uniform.is_uniform() {
            return None;
        }
        let scale = |linear: &Linear| match (linear.as_constant(), &uniform.linear) {
            (Some(0), _) => Some(Linear::default()),
            (Some(number), Some(factor)) => Some(factor.times(number)),
            (None, Some(factor)) => Some(linear.times(factor.as_constant()?)),
            (_, None) => None,
        };
        let mut strides: [Linear; 5] = Default::default();
        for (stride, old) in strides.iter_mut().zip(&varying.strides) {
            *stride = scale(old)?;
        }
        let linear = varying.linear.as_ref().and_then(scale);
        Some(Form { known: varying.known.mul(uniform.known), linear, strides }.cut(width))
    }

    pub(crate) fn shl(&self, by: u32, width: u32) -> Form {
        if by >= width {
            return Form::constant(0);
        }
        // Below 64 bits.
        let factor = (1u64 << by).cast_signed();
        Form {
            known: self.known.shl(by),
            linear: self.linear.as_ref().map(|linear| linear.times(factor)),
            strides: std::array::from_fn(|bit| self.strides[bit].times(factor)),
        }
        .cut(width)
    }

    /// Does no carry and no borrow of the strides go into bit `at`, whatever the lane?
    pub(crate) fn is_carry_free(&self, at: u32) -> bool {
        let Some(numbers) = self.numbers() else {
            return false;
        };
        let most: u128 = numbers.iter().filter(|n| **n > 0).map(|n| u128::from(n.unsigned_abs())).sum();
        let least: u128 = numbers.iter().filter(|n| **n < 0).map(|n| u128::from(n.unsigned_abs())).sum();
        let low = mask(at);
        u128::from(self.known.may & low) + most <= u128::from(low)
            && u128::from(self.known.must & low) >= least
    }

    /// Is it not negative in any lane, if sums do not wrap?
    pub(crate) fn is_positive(&self, width: u32) -> bool {
        let grows = self.numbers().is_some_and(|numbers| numbers.iter().all(|&stride| stride >= 0));
        grows && self.known.is_positive(width)
    }

    /// The least bit that no carry goes into, at most `width`.
    pub(crate) fn carries_below(&self, width: u32) -> Option<u32> {
        (0..=width).find(|&at| self.is_carry_free(at))
    }

    /// From `from` bits to 64. Where carries could go over the top, only if `trusting` that they do not.
    pub(crate) fn extend(&self, from: u32, signed: bool, trusting: bool) -> Option<Form> {
        if from >= 64 {
            return Some(self.clone());
        }
        let known = if signed { self.known.sign_extend(from) } else { self.known };
        let is_exact = self.is_uniform() || self.is_carry_free(from - u32::from(signed));
        if !is_exact {
            let span =
                self.numbers().map(|numbers| numbers.iter().map(|n| u128::from(n.unsigned_abs())).sum());
            // No 32 lanes so far apart stay within 32 bits.
            let fits = span.is_none_or(|span: u128| span < 1 << 31);
            if !trusting || from != 32 || !fits {
                return None;
            }
        }
        // A parameter alone is extended as it is; of sums and products of some only trust knows.
        let linear = match &self.linear {
            Some(linear) if linear.terms.is_empty() => {
                known.as_constant().map(|n| Linear::from(n.cast_signed()))
            }
            Some(linear) => {
                let is_plain = linear.constant == 0 && matches!(linear.terms[..], [term] if term.factor == 1);
                ((is_plain || trusting) && from == 32).then(|| linear.with_sign(signed))
            }
            None => None,
        };
        Some(Form { known, linear, strides: std::array::from_fn(|bit| self.strides[bit].with_sign(signed)) })
    }

    /// One of the two, the same one in all lanes.
    pub(crate) fn or_else(&self, other: &Form) -> Option<Form> {
        if self.strides != other.strides {
            return None;
        }
        let linear = self.linear.clone().filter(|_| self.linear == other.linear);
        Some(Form { known: self.known.or_else(other.known), linear, strides: self.strides.clone() })
    }
}
