//! The spread of a column over all records: count, least, median, mean and most, in one walk and bounded memory.
//!
//! For the median values are counted in bins that are 1/256 of a value wide: exact for integers below 512, and within
//! 0.4 % beyond. All else is exact, as far as a double is for floats.

use nt_trace::ntt::Value;
use std::collections::BTreeMap;

/// What is known of a column so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Column {
    /// Values, NaN apart.
    pub(crate) count: u64,
    /// NaNs.
    pub(crate) nans: u64,
    ends: Option<(Value, Value)>,
    /// The sum of integers.
    sum: i128,
    /// The sum of floats.
    float_sum: f64,
    bins: BTreeMap<u32, u64>,
}

/// Bits of a double that a bin leaves out: 8 of its 52 digits stay.
const DROPPED: u32 = 44;

impl Column {
    /// Takes a value.
    pub(crate) fn add(&mut self, value: Value) {
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
        let (least, most) = self.ends.get_or_insert((value, value));
        if less(value, *least) {
            *least = value;
        }
        if less(*most, value) {
            *most = value;
        }
        *self.bins.entry(bin(number)).or_default() += 1;
    }

    /// Least and most; `None` without a value.
    pub(crate) fn ends(&self) -> Option<(Value, Value)> {
        self.ends
    }

    /// The mean; `None` without a value.
    pub(crate) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| (self.sum as f64 + self.float_sum) / self.count as f64)
    }

    /// The lower of the two in the middle, to 1/256; `None` without a value.
    pub(crate) fn median(&self) -> Option<f64> {
        let (least, most) = self.ends?;
        let mut before = 0;
        let middle = self.count.div_ceil(2);
        let (&bin, _) = self.bins.iter().find(|&(_, &count)| {
            before += count;
            before >= middle
        })?;
        Some(floor(bin).clamp(least.to_f64(), most.to_f64()))
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

/// The upper bits of a double, such that the order of bins is that of numbers.
fn bin(number: f64) -> u32 {
    let bits = number.to_bits();
    let ordered = if number.is_sign_negative() { !bits } else { bits | 1 << 63 };
    (ordered >> DROPPED) as u32
}

/// The number of a bin that is nearest to zero.
fn floor(bin: u32) -> f64 {
    let ordered = u64::from(bin) << DROPPED;
    let bits = if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered };
    f64::from_bits(bits >> DROPPED << DROPPED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: impl IntoIterator<Item = Value>, median: f64, mean: f64) {
        let mut column = Column::default();
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
    fn large_ones_are_near() {
        let mut column = Column::default();
        (0..=2_000_000).step_by(2).for_each(|n| column.add(Value::Unsigned(n)));
        let median = column.median().unwrap();
        assert!((996_000.0..=1_000_000.0).contains(&median), "{median}");
        check([Value::Unsigned(u64::MAX)], u64::MAX as f64, u64::MAX as f64);
    }

    #[test]
    fn ends_are_exact_beyond_doubles() {
        let mut column = Column::default();
        let large = 1 << 60;
        [large + 1, large + 3, large + 2].into_iter().for_each(|n| column.add(Value::Unsigned(n)));
        assert_eq!(column.ends(), Some((Value::Unsigned(large + 1), Value::Unsigned(large + 3))));
    }

    #[test]
    fn floats() {
        check([1.5, -0.25, 8.0].map(Value::Double), 1.5, 9.25 / 3.0);
        let mut column = Column::default();
        column.add(Value::Single(f32::NAN));
        assert_eq!((column.count, column.nans, column.median(), column.mean()), (0, 1, None, None));
        check([f64::INFINITY].map(Value::Double), f64::INFINITY, f64::INFINITY);
    }
}
