//! Rounding: one function for every format of floating point and every mode, and the steps before it.
//!
//! A value is sign, mantissa and exponent, exact or with a mark that something smaller than its last bit is gone.
//! Sums, products, quotients and roots in the directed modes are first computed in f64 *rounded to odd*: the last bit
//! is set if anything was lost. An f64 has more than twice the bits of an f32 and two more, so a second rounding from
//! there is the right one in each mode (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
//!
//! Source: IEEE 754-2019, section 4.3; PTX ISA 9.0, section 9.7.3 (modifiers of rounding).

/// A binary format: bits of the mantissa as stored, bits of the exponent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Format {
    mantissa: u32,
    exponent: u32,
}

pub(crate) const F16: Format = Format { mantissa: 10, exponent: 5 };
pub(crate) const BF16: Format = Format { mantissa: 7, exponent: 8 };
/// As 19 bits; the instruction keeps them in the upper bits of an f32.
pub(crate) const TF32: Format = Format { mantissa: 10, exponent: 8 };
pub(crate) const F32: Format = Format { mantissa: 23, exponent: 8 };
pub(crate) const F64: Format = Format { mantissa: 52, exponent: 11 };

/// `.rn`, `.rz`, `.rm`, `.rp`, `.rna`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    Nearest,
    Zero,
    Minus,
    Plus,
    /// To nearest, ties away from zero.
    NearestAway,
}

/// A number taken apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Parts {
    Nan,
    Infinity {
        negative: bool,
    },
    Zero {
        negative: bool,
    },
    /// mantissa · 2^exponent, the mantissa not 0; `lost`: the true magnitude is larger by less than one unit of it.
    Finite {
        negative: bool,
        mantissa: u64,
        exponent: i32,
        lost: bool,
    },
}

impl Format {
    fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    fn sign(self) -> u64 {
        1 << (self.mantissa + self.exponent)
    }

    fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.mantissa
    }

    /// All bits but the sign, as PTX has it for every format but f64 (section 9.7.3).
    fn nan(self) -> u64 {
        if self == F64 { 0x7ff8_0000_0000_0000 } else { self.sign() - 1 }
    }

    /// Takes apart the bits of a number.
    pub(crate) fn parts(self, bits: u64) -> Parts {
        let negative = bits & self.sign() != 0;
        let fraction = bits & ((1 << self.mantissa) - 1);
        let exponent = (bits & self.infinity()) >> self.mantissa;
        // At most 11 bits.
        let exponent = exponent as i32;
        if exponent == (1 << self.exponent) - 1 {
            return if fraction == 0 { Parts::Infinity { negative } } else { Parts::Nan };
        }
        let lowest = 1 - self.bias() - self.mantissa as i32;
        let (mantissa, exponent) = match exponent {
            0 => (fraction, lowest),
            _ => (fraction | 1 << self.mantissa, lowest + exponent - 1),
        };
        match mantissa {
            0 => Parts::Zero { negative },
            _ => Parts::Finite { negative, mantissa, exponent, lost: false },
        }
    }

    /// Puts a number together, rounded.
    pub(crate) fn round(self, parts: Parts, mode: Rounding) -> u64 {
        let sign = |negative: bool| if negative { self.sign() } else { 0 };
        let (negative, mantissa, exponent, lost) = match parts {
            Parts::Nan => return self.nan(),
            Parts::Infinity { negative } => return sign(negative) | self.infinity(),
            Parts::Zero { negative } => return sign(negative),
            Parts::Finite { negative, mantissa, exponent, lost } => (negative, mantissa, exponent, lost),
        };
        // The leading bit goes to bit 63; the number is then 1.xxx · 2^top.
        let shift = mantissa.leading_zeros();
        let mantissa = mantissa << shift;
        let top = exponent - shift as i32 + 63;
        // Below the least normal exponent, bits of the mantissa are given up one by one.
        let missing = (1 - self.bias() - top).max(0);
        let dropped = 63 - self.mantissa as i32 + missing;
        let (kept, rest, half) = match u32::try_from(dropped) {
            Ok(dropped @ 0..64) => {
                let rest = mantissa & !(u64::MAX << dropped);
                (mantissa >> dropped, rest, 1u64 << dropped >> 1)
            }
            Ok(64) => (0, mantissa, 1 << 63),
            // Less than half of the least number there is.
            _ => (0, 1, u64::MAX),
        };
        let exact = rest == 0 && !lost;
        let up = match mode {
            Rounding::Nearest => rest > half || (rest == half && (lost || kept & 1 == 1)),
            Rounding::NearestAway => rest >= half && half != 0,
            Rounding::Zero => false,
            Rounding::Minus => negative && !exact,
            Rounding::Plus => !negative && !exact,
        };
        let kept = kept + u64::from(up);
        // A carry out of the mantissa goes into the exponent, where it belongs.
        let bits = match missing {
            0 => ((i64::from(top) + i64::from(self.bias()) - 1).cast_unsigned() << self.mantissa)
                .wrapping_add(kept),
            _ => kept,
        };
        let too_large = top > self.bias() || bits >= self.infinity();
        let away = match mode {
            Rounding::Nearest | Rounding::NearestAway => true,
            Rounding::Zero => false,
            Rounding::Minus => negative,
            Rounding::Plus => !negative,
        };
        let magnitude = match (too_large, away) {
            (false, _) => bits,
            (true, true) => self.infinity(),
            (true, false) => self.infinity() - 1,
        };
        sign(negative) | magnitude
    }
}

/// The number as the mode rounds it to an integer, and whether that is negative; `None` for what is no finite number.
/// Magnitudes above 2^64 come out as `u128::MAX`.
pub(crate) fn to_integer(parts: Parts, mode: Rounding) -> Option<(bool, u128)> {
    let (negative, mantissa, exponent) = match parts {
        Parts::Nan | Parts::Infinity { .. } => return None,
        Parts::Zero { negative } => return Some((negative, 0)),
        Parts::Finite { negative, mantissa, exponent, .. } => (negative, u128::from(mantissa), exponent),
    };
    if exponent >= 0 {
        let shifted = if exponent <= 63 { mantissa << exponent } else { u128::MAX };
        return Some((negative, shifted));
    }
    let dropped = exponent.unsigned_abs().min(127);
    let (kept, rest) = (mantissa >> dropped, mantissa & ((1 << dropped) - 1));
    let half = 1u128 << (dropped - 1);
    let up = match mode {
        Rounding::Nearest => rest > half || (rest == half && kept & 1 == 1),
        Rounding::NearestAway => rest >= half,
        Rounding::Zero => false,
        Rounding::Minus => negative && rest != 0,
        Rounding::Plus => !negative && rest != 0,
    };
    Some((negative, kept + u128::from(up)))
}

/// `value` with its last bit set if the true value is off by `error`: rounded to odd.
fn odd(value: f64, error: f64) -> f64 {
    if error == 0.0 || !value.is_finite() || error.is_nan() {
        return value;
    }
    // Toward zero first, if the true magnitude is the smaller one.
    let bits = value.to_bits() - u64::from(error.is_sign_negative() != value.is_sign_negative());
    f64::from_bits(bits | 1)
}

/// a + b, rounded to odd. A sum that cancels exactly has the sign that the mode gives it.
pub(crate) fn sum_to_odd(a: f64, b: f64, mode: Rounding) -> f64 {
    let sum = a + b;
    if sum == 0.0 {
        let differ = a.is_sign_negative() != b.is_sign_negative();
        return if differ && mode == Rounding::Minus { -0.0 } else { sum };
    }
    // Knuth's two-sum: the error of a rounded sum is itself a number.
    let c = sum - a;
    odd(sum, (a - (sum - c)) + (b - c))
}

/// a / b, rounded to odd. Both come from an f32 or something smaller, so that the remainder is exact.
pub(crate) fn quotient_to_odd(a: f64, b: f64) -> f64 {
    let quotient = a / b;
    if quotient == 0.0 || !quotient.is_finite() {
        return quotient;
    }
    let remainder = f64::mul_add(-quotient, b, a);
    odd(quotient, if b < 0.0 { -remainder } else { remainder })
}

/// The square root, rounded to odd.
pub(crate) fn root_to_odd(a: f64) -> f64 {
    let root = a.sqrt();
    if root == 0.0 || !root.is_finite() {
        return root;
    }
    odd(root, f64::mul_add(-root, root, a))
}

/// The f64 as an f32 in some mode.
pub(crate) fn to_f32(value: f64, mode: Rounding) -> f32 {
    if mode == Rounding::Nearest && !value.is_nan() {
        return value as f32;
    }
    f32::from_bits(F32.round(F64.parts(value.to_bits()), mode) as u32)
}

/// An f16 or bf16 as the f64 that it is.
pub(crate) fn widen(bits: u64, format: Format) -> f64 {
    f64::from_bits(F64.round(format.parts(bits), Rounding::Nearest))
}

/// The f64 in a narrow format, to nearest; for numbers that were rounded to odd, if at all.
pub(crate) fn narrow(value: f64, format: Format) -> u64 {
    format.round(F64.parts(value.to_bits()), Rounding::Nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_agrees_with_the_processor() {
        let values = [
            0.1,
            1.0,
            1.0 / 3.0,
            65504.0,
            65520.0,
            1e-40,
            1.1e-45,
            7e-46,
            7.1e-46,
            3.4028235e38,
            3.40282357e38,
            1e300,
            -2.5,
            16777217.0,
            5e-324,
        ];
        for value in values {
            assert_eq!(
                F32.round(F64.parts(f64::to_bits(value)), Rounding::Nearest),
                u64::from((value as f32).to_bits()),
                "{value}"
            );
            assert_eq!(F64.round(F64.parts(value.to_bits()), Rounding::Zero), value.to_bits());
        }
    }

    #[test]
    fn directed_modes_bracket() {
        let third = 1.0f64 / 3.0;
        let at = |mode| f32::from_bits(F32.round(F64.parts(third.to_bits()), mode) as u32);
        assert!(f64::from(at(Rounding::Minus)) < third && third < f64::from(at(Rounding::Plus)));
        assert_eq!(at(Rounding::Minus), at(Rounding::Zero));
        assert_eq!(at(Rounding::Plus).to_bits(), at(Rounding::Zero).to_bits() + 1);
        let huge = F64.parts(1e300f64.to_bits());
        assert_eq!(F32.round(huge, Rounding::Zero), u64::from(f32::MAX.to_bits()));
        assert_eq!(F32.round(huge, Rounding::Plus), u64::from(f32::INFINITY.to_bits()));
    }

    // Values of IEEE half precision: 65504 is the largest, 2^-24 the least.
    #[test]
    fn halves() {
        let half = |v: f64| narrow(v, F16);
        assert_eq!(half(1.0), 0x3c00);
        assert_eq!(half(65504.0), 0x7bff);
        assert_eq!(half(65519.9), 0x7bff);
        assert_eq!(half(65520.0), 0x7c00);
        assert_eq!(half(2f64.powi(-24)), 1);
        assert_eq!(half(2f64.powi(-25)), 0);
        assert_eq!(half(1.5 * 2f64.powi(-25)), 1);
        assert_eq!(half(-0.0), 0x8000);
        assert_eq!(half(f64::NAN), 0x7fff);
        assert_eq!(widen(0x3555, F16), 0.333_251_953_125);
        assert_eq!(narrow(1.0 + 2f64.powi(-8), BF16), 0x3f80, "a tie goes to even");
    }

    #[test]
    fn integers() {
        let to = |v: f64, mode| to_integer(F64.parts(v.to_bits()), mode);
        assert_eq!(to(2.5, Rounding::Nearest), Some((false, 2)));
        assert_eq!(to(3.5, Rounding::Nearest), Some((false, 4)));
        assert_eq!(to(-0.1, Rounding::Minus), Some((true, 1)));
        assert_eq!(to(-0.1, Rounding::Plus), Some((true, 0)));
        assert_eq!(to(1e19, Rounding::Zero), Some((false, 10_000_000_000_000_000_000)));
        assert_eq!(to(5e-324, Rounding::Plus), Some((false, 1)));
        assert_eq!(to(f64::INFINITY, Rounding::Zero), None);
    }

    #[test]
    fn rounding_to_odd_keeps_what_a_second_rounding_needs() {
        // 1 + 2^-24 + 2^-60 is above the tie of an f32; the f64 alone would land on the tie.
        let sum = sum_to_odd(1.0 + 2f64.powi(-24), 2f64.powi(-60), Rounding::Nearest);
        assert_eq!(to_f32(sum, Rounding::Nearest), 1.0 + f32::EPSILON);
        assert!(sum_to_odd(1.0, -1.0, Rounding::Minus).is_sign_negative());
        assert!(sum_to_odd(1.0, -1.0, Rounding::Plus).is_sign_positive());
        assert_eq!(to_f32(quotient_to_odd(1.0, 3.0), Rounding::Plus).to_bits(), 0x3eaa_aaab);
        assert_eq!(to_f32(quotient_to_odd(1.0, 3.0), Rounding::Minus).to_bits(), 0x3eaa_aaaa);
        assert_eq!(to_f32(root_to_odd(2.0), Rounding::Plus).to_bits(), 0x3fb5_04f4);
        assert_eq!(to_f32(root_to_odd(2.0), Rounding::Minus).to_bits(), 0x3fb5_04f3);
    }
}
