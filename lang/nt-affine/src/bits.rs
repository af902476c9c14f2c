//! Values bit by bit, for what cuts lanes into fields: logic, shifts to the right, fields, permutations.
//!
//! ```text
//! %tid.x              u u u u u 4 3 2 1 0       u the same in all lanes, 4 bit 4 of the lane
//! %tid.x << 4 & 496   0 4 3 2 1 0 0 0 0 0
//! ```
//!
//! A [`Form`] has a bit view where no stride's carry reaches another bit, and every bit view is a form. So these
//! operations are exact, or not done at all.

use crate::form::Form;
use crate::known::Known;
use crate::linear::Linear;

/// What a bit is in the lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bit {
    Zero,
    One,
    /// The same in all lanes.
    Uniform,
    /// A bit of the lane's number.
    Lane(u8),
    /// Its opposite.
    NotLane(u8),
}

/// The bits of a value, the lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bits(pub(crate) [Bit; 64]);

impl Bits {
    pub(crate) const ZERO: Bits = Bits([Bit::Zero; 64]);

    /// Of a value of `width` bits.
    pub(crate) fn of(form: &Form, width: u32) -> Option<Bits> {
        let mut bits = Bits::ZERO;
        let places = bits.0.iter_mut().take(width as usize).enumerate();
        for (at, bit) in places {
            *bit = match (form.known.may >> at & 1, form.known.must >> at & 1) {
                (0, _) => Bit::Zero,
                (_, 0) => Bit::Uniform,
                _ => Bit::One,
            };
        }
        for (lane, stride) in (0u8..).zip(form.numbers()?) {
            let places = stride.unsigned_abs();
            for at in (0..64).filter(|at| places >> at & 1 == 1) {
                // At the top, to add and to subtract is the same.
                let is_top = at + 1 == width as usize;
                bits.0[at] = match bits.0[at] {
                    Bit::Zero if stride > 0 || is_top => Bit::Lane(lane),
                    Bit::One if stride < 0 || is_top => Bit::NotLane(lane),
                    _ => return None,
                };
            }
        }
        Some(bits)
    }

    pub(crate) fn form(&self) -> Form {
        let mut known = Known::constant(0);
        let mut strides = [0i64; 5];
        for (at, bit) in self.0.iter().enumerate() {
            let place = 1u64 << at;
            match bit {
                Bit::Zero => (),
                Bit::One => known = Known { may: known.may | place, must: known.must | place },
                Bit::Uniform => known.may |= place,
                // Lanes have five bits.
                Bit::Lane(lane) => {
                    let stride = &mut strides[usize::from(*lane)];
                    *stride = stride.wrapping_add(place.cast_signed());
                }
                Bit::NotLane(lane) => {
                    known = Known { may: known.may | place, must: known.must | place };
                    let stride = &mut strides[usize::from(*lane)];
                    *stride = stride.wrapping_sub(place.cast_signed());
                }
            }
        }
        let linear = known.as_constant().map(|value| Linear::from(value.cast_signed()));
        Form { known, linear, strides: strides.map(Linear::from) }
    }

    /// Logic of three values, as `lop3` has it: bit `4·a + 2·b + c` of the table is the result.
    pub(crate) fn logic(a: &Bits, b: &Bits, c: &Bits, table: u8) -> Option<Bits> {
        let mut result = Bits::ZERO;
        for (at, bit) in result.0.iter_mut().enumerate() {
            *bit = logic([a.0[at], b.0[at], c.0[at]], table)?;
        }
        Some(result)
    }

    /// To the right in a value of `width` bits; from above come copies of the top bit if it is `signed`.
    pub(crate) fn shr(&self, by: u32, width: u32, signed: bool) -> Bits {
        let top = if signed { self.0[(width - 1) as usize] } else { Bit::Zero };
        let mut result = Bits::ZERO;
        for at in 0..width {
            let from = at.saturating_add(by);
            result.0[at as usize] = if from < width { self.0[from as usize] } else { top };
        }
        result
    }

    /// The low bits.
    pub(crate) fn low(&self, count: u32) -> Bits {
        let mut result = *self;
        result.0.iter_mut().skip(count as usize).for_each(|bit| *bit = Bit::Zero);
        result
    }
}

/// A bit of logic; `None` if it is none that lanes can have here.
fn logic(inputs: [Bit; 3], table: u8) -> Option<Bit> {
    // One unknown at most: a bit of the lane, or a uniform one, which may be several that have nothing to do with each
    // other.
    let mut lane = None;
    let mut uniform = None;
    for (at, bit) in inputs.into_iter().enumerate() {
        match bit {
            Bit::Zero | Bit::One => (),
            Bit::Uniform => uniform = Some(at),
            Bit::Lane(number) | Bit::NotLane(number) => {
                if lane.is_some_and(|other| other != number) {
                    return by_table(inputs, table);
                }
                lane = Some(number);
            }
        }
    }
    if uniform.is_some() || lane.is_none() {
        return by_table(inputs, table);
    }
    let with = |value: bool| {
        let index = inputs.iter().fold(0, |index, bit| {
            let one = match bit {
                Bit::Zero | Bit::Uniform => false,
                Bit::One => true,
                Bit::Lane(_) => value,
                Bit::NotLane(_) => !value,
            };
            index << 1 | u8::from(one)
        });
        table >> index & 1 == 1
    };
    let lane = lane?;
    Some(match (with(false), with(true)) {
        (false, false) => Bit::Zero,
        (true, true) => Bit::One,
        (false, true) => Bit::Lane(lane),
        (true, false) => Bit::NotLane(lane),
    })
}

/// By trying all that the inputs may be, as if they had nothing to do with each other.
fn by_table(inputs: [Bit; 3], table: u8) -> Option<Bit> {
    let is_possible = |index: u8, at: usize, bit: Bit| match bit {
        Bit::Zero => index >> (2 - at) & 1 == 0,
        Bit::One => index >> (2 - at) & 1 == 1,
        _ => true,
    };
    let possible = (0u8..8).filter(|&index| (0..).zip(inputs).all(|(at, bit)| is_possible(index, at, bit)));
    let (mut zero, mut one) = (false, false);
    for index in possible.clone() {
        if table >> index & 1 == 1 { one = true } else { zero = true }
    }
    match (zero, one) {
        (true, false) => return Some(Bit::Zero),
        (false, true) => return Some(Bit::One),
        _ => (),
    }
    // Does only one input decide? Then the result is that, or its opposite.
    for (at, &bit) in inputs.iter().enumerate() {
        let place = 4 >> at;
        let agrees = |same: bool| {
            possible.clone().all(|index| ((table >> index & 1 == 1) == (index & place != 0)) == same)
        };
        if agrees(true) {
            return Some(bit);
        }
        if agrees(false) {
            return Some(match bit {
                Bit::Lane(lane) => Bit::NotLane(lane),
                Bit::NotLane(lane) => Bit::Lane(lane),
                other => other,
            });
        }
    }
    let is_of_lanes = inputs.iter().any(|bit| matches!(bit, Bit::Lane(_) | Bit::NotLane(_)));
    (!is_of_lanes).then_some(Bit::Uniform)
}
