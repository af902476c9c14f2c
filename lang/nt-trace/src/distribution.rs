//! The spread of values: count, least, median, mean and most, in one walk and bounded memory.
//!
//! ```
//! use nt_trace::{Distribution, ntt::Value};
//!
//! let mut cycles = Distribution::default();
//! [31, 40, 33].into_iter().for_each(|n| cycles.add(Value::Unsigned(n)));
//! assert_eq!((cycles.median(), cycles.ends()), (Some(33.0), Some((Value::Unsigned(31), Value::Unsigned(40)))));
//! ```
//!
//! The median is exact as long as there are at most 4096 different values. Beyond, values are counted in bins that are
//! 1/256 of a value wide: still exact for integers below 512, and within 0.4 % for others. All else is exact, as far as
//! a double is for floats. In which order values come changes nothing (but the last digits of a sum of floats).

use crate::ntt::Value;
use std::collections::BTreeMap;

/// What is known of the values so far.
#[derive(Debug, Clone, Default)]
pub struct Distribution {
    /// Values, NaN apart.
    pub count: u64,
    /// NaNs.
    pub nans: u64,
    ends: Option<(Value, Value)>,
    /// The sum of integers.
    sum: i128,
    /// The sum of floats.
    float_sum: f64,
    /// How many values there are of each, by a number that rises with the value.
    bins: BTreeMap<u64, u64>,
    /// Were there so many that they were rounded?
    rounded: bool,
}

/// Bits of a double that rounding leaves out: 8 of its 52 digits stay.
const DROPPED: u32 = 44;

/// As many different values are told apart.
const DISTINCT: usize = 4096;

impl Distribution {
    /// Takes a value.
    pub fn add(&mut self, value: Value) {
        let number = value.to_f64();
        if number.is_nan() {
            self.nans += 1;
            return;
        }
        self.count += 1;
        match value {
            Value::Unsigned(value) | Value::Address(value) => self.sum += i128::from(value),
            Value::Signed(value) => self.sum += i128::from(value),
            Value::Bool(value) => self.sum += i128::from(value),
            Value::Single(_) | Value::Double(_) => self.float_sum += number,
        }
        self.widen((value, value));
        self.count_in(number, 1);
    }

    /// Takes all values that another took.
    pub fn merge(&mut self, other: &Distribution) {
        self.count += other.count;
        self.nans += other.nans;
        self.sum += other.sum;
        self.float_sum += other.float_sum;
        if let Some(ends) = other.ends {
            self.widen(ends);
        }
        if other.rounded {
            self.round();
        }
        for (&bin, &count) in &other.bins {
            self.count_in(number(bin), count);
        }
    }

    fn widen(&mut self, (a, b): (Value, Value)) {
        let (least, most) = self.ends.get_or_insert((a, b));
        if less(a, *least) {
            *least = a;
        }
        if less(*most, b) {
            *most = b;
        }
    }

    fn count_in(&mut self, number: f64, count: u64) {
        let number = if self.rounded { rounded(number) } else { number };
        *self.bins.entry(bin(number)).or_default() += count;
        if !self.rounded && self.bins.len() > DISTINCT {
            self.round();
        }
    }

    fn round(&mut self) {
        self.rounded = true;
        for (bin, count) in std::mem::take(&mut self.bins) {
            *self.bins.entry(self::bin(rounded(number(bin)))).or_default() += count;
        }
    }

    /// Least and most; `None` without a value.
    pub fn ends(&self) -> Option<(Value, Value)> {
        self.ends
    }

    /// The mean; `None` without a value.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| (self.sum as f64 + self.float_sum) / self.count as f64)
    }

    /// The lower of the two in the middle; `None` without a value.
    pub fn median(&self) -> Option<f64> {
        let (least, most) = self.ends?;
        let mut before = 0;
        let middle = self.count.div_ceil(2);
        let (&bin, _) = self.bins.iter().find(|&(_, &count)| {
            before += count;
            before >= middle
        })?;
        Some(number(bin).clamp(least.to_f64(), most.to_f64()))
    }
}

/// Compares values of one type exactly, integers beyond 2⁵³ too.
fn less(a: Value, b: Value) -> bool {
    match (a, b) {
        (Value::Unsigned(a), Value::Unsigned(b)) | (Value::Address(a), Value::Address(b)) => a < b,
        (Value::Signed(a), Value::Signed(b)) => a < b,
        (a, b) => a.to_f64() < b.to_f64(),
    }
}

/// The bits of a double, such that their order is that of numbers.
fn bin(number: f64) -> u64 {
    let bits = number.to_bits();
    if number.is_sign_negative() { !bits } else { bits | 1 << 63 }
}

/// Back from [`bin`].
fn number(bin: u64) -> f64 {
    f64::from_bits(if bin >> 63 == 1 { bin & !(1 << 63) } else { !bin })
}

/// Towards zero, to 1/256.
fn rounded(number: f64) -> f64 {
    f64::from_bits(number.to_bits() >> DROPPED << DROPPED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: impl IntoIterator<Item = Value>, median: f64, mean: f64) {
        let mut column = Distribution::default();
        values.into_iter().for_each(|value| column.add(value));
        assert_eq!((column.median(), column.mean()), (Some(median), Some(mean)));
    }

    #[test]
    fn small_integers_are_exact() {
        check((0..=500).map(Value::Unsigned), 250.0, 250.0);
        check((-511..=1).map(Value::Signed), -255.0, -255.0);
        check([Value::Signed(-7), Value::Signed(3)], -7.0, -2.0);
        check([Value::Bool(true), Value::Bool(true), Value::Bool(false)], 1.0, 2.0 / 3.0);
    }

    #[test]
    fn few_different_ones_are_exact() {
        check([10_001, 10_003, 10_003, 1_000_003, 10_002].map(Value::Unsigned), 10_003.0, 208_002.4);
        check([-0.3, 1e-9, 0.1].map(Value::Double), 1e-9, (1e-9 - 0.3 + 0.1) / 3.0);
    }

    #[test]
    fn parts_add_up_in_any_order() {
        // 5000 different values, so that the whole is rounded and the parts are not.
        let values: Vec<Value> = (0..5000).map(|n| Value::Signed(n * 7919 % 5000 - 2500)).collect();
        let of = |values: &[Value]| {
            let mut of = Distribution::default();
            values.iter().for_each(|&value| of.add(value));
            of
        };
        let whole = format!("{:?}", of(&values));
        let (a, b) = values.split_at(2000);
        for (mut first, second) in
            [(of(a), of(b)), (of(b), of(a)), (of(&values), of(&[])), (of(&[]), of(&values))]
        {
            first.merge(&second);
            assert_eq!(format!("{first:?}"), whole);
        }
    }

    #[test]
    fn large_ones_are_near() {
        let mut column = Distribution::default();
        (0..=2_000_000).step_by(2).for_each(|n| column.add(Value::Unsigned(n)));
        let median = column.median().unwrap();
        assert!((996_000.0..=1_000_000.0).contains(&median), "{median}");
        check([Value::Unsigned(u64::MAX)], u64::MAX as f64, u64::MAX as f64);
    }

    #[test]
    fn ends_are_exact_beyond_doubles() {
        let mut column = Distribution::default();
        let large = 1 << 60;
        [large + 1, large + 3, large + 2].into_iter().for_each(|n| column.add(Value::Unsigned(n)));
        assert_eq!(column.ends(), Some((Value::Unsigned(large + 1), Value::Unsigned(large + 3))));
    }

    #[test]
    fn floats() {
        check([1.5, -0.25, 8.0].map(Value::Double), 1.5, 9.25 / 3.0);
        let mut column = Distribution::default();
        column.add(Value::Single(f32::NAN));
        assert_eq!((column.count, column.nans, column.median(), column.mean()), (0, 1, None, None));
        check([f64::INFINITY].map(Value::Double), f64::INFINITY, f64::INFINITY);
    }
}
