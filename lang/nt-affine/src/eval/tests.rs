//! Every operation against what a machine computes, lane by lane, of forms and numbers by chance.

use super::*;

/// Numbers by chance (SplitMix64).
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }

    /// A form of `width` bits, and a number that its uniform part may be.
    fn form(&mut self, width: u32) -> (Form, u64) {
        let may = match self.below(6) {
            0 => 0,
            1 => 0x3e0,
            2 => self.bits() & mask(width) & !31,
            3 => self.bits() & self.bits() & 0xff,
            4 => mask(width),
            _ => self.bits() & mask(width),
        };
        let must = may & [0, u64::MAX, self.bits(), 31][self.below(4) as usize];
        let u = must | self.bits() & may;
        let mut form = Form::uniform(Known { may, must });
        let kind = self.below(5);
        for (bit, stride) in form.strides.iter_mut().enumerate() {
            let number = match kind {
                0 => 0,
                1 => 1 << bit,
                2 => (self.below(9).cast_signed() - 4) << bit,
                3 => 1i64 << self.below(u64::from(width)),
                _ => [0, 1 << bit, -(1 << bit)][self.below(3) as usize],
            };
            *stride = Linear::from(number).cut(width);
        }
        (form.cut(width), u & mask(width))
    }
}

/// A form's value in a lane, its uniform part being `u`.
fn at(form: &Form, u: u64, lane: u32, width: u32) -> u64 {
    let strides = form.numbers().unwrap().into_iter().enumerate();
    let sum =
        strides.filter(|(bit, _)| lane >> bit & 1 == 1).fold(u, |sum, (_, s)| sum.wrapping_add_signed(s));
    sum & mask(width)
}

fn signed(value: u64, width: u32) -> i64 {
    (value << (64 - width)).cast_signed() >> (64 - width)
}

/// Tries an operation, and counts how often it had an answer that differs between lanes.
fn check(operation: Operation, widths: &[u32], width: u32, machine: impl Fn(&[u64]) -> u64) -> u32 {
    let mut random = Random(u64::from(width) << 8 | widths.len() as u64);
    let trust = Trust { conditions: Conditions::NONE, block: None, wraps: false, joins: false };
    let node =
        Node { operation, inputs: Vec::new(), width, block: 0, is_synchronised: false, is_after_call: false };
    let mut answers = 0;
    for _ in 0..1500 {
        let inputs: Vec<(Form, u64)> = widths
            .iter()
            .enumerate()
            .map(|(place, &width)| {
                // Numbers of bits are mostly known, as are divisors.
                let counts =
                    matches!(operation, Operation::Shl | Operation::Shr { .. } | Operation::Extract { .. });
                let divides = matches!(operation, Operation::Div { .. } | Operation::Rem { .. });
                let selects = operation == Operation::Insert && place > 1
                    || operation == Operation::Permute && place == 2;
                let constant = match place {
                    1.. if counts => random.below(34),
                    1 if divides => 1 << random.below(8),
                    2.. if selects && operation == Operation::Insert => random.below(34),
                    2 if selects => random.bits() & 0x7777,
                    1 if random.below(3) == 0 => random.below(64),
                    _ => return random.form(width),
                };
                (Form::constant(constant), constant)
            })
            .collect();
        let forms: Vec<Form> = inputs.iter().map(|(form, _)| form.clone()).collect();
        let Some(found) = compute(&node, &forms, &trust).map(|form| form.cut(width)) else { continue };
        answers += u32::from(!found.is_uniform());
        let value = |lane: u32| {
            let operands: Vec<u64> =
                inputs.iter().zip(widths).map(|((form, u), &width)| at(form, *u, lane, width)).collect();
            machine(&operands) & mask(width)
        };
        let u = value(0);
        let context = || format!("{operation:?} of {inputs:?} is {found:?}");
        assert!(u & !found.known.may == 0 && found.known.must & !u == 0, "{u:#x}: {}", context());
        for lane in 1..32 {
            assert_eq!(at(&found, u, lane, width), value(lane), "lane {lane}: {}", context());
        }
        if let Some(linear) = found.linear.as_ref().and_then(Linear::as_constant) {
            assert_eq!(linear.cast_unsigned() & mask(width), u, "{}", context());
        }
    }
    answers
}

#[test]
fn operations_are_exact_in_every_lane() {
    let two = [32, 32];
    let differ = |answers: u32| assert!(answers > 15, "only {answers} answers that differ between lanes");
    differ(check(Operation::Add, &two, 32, |v| v[0].wrapping_add(v[1])));
    differ(check(Operation::Sub, &two, 32, |v| v[0].wrapping_sub(v[1])));
    differ(check(Operation::Neg, &[32], 32, |v| v[0].wrapping_neg()));
    differ(check(Operation::Mul, &two, 32, |v| v[0].wrapping_mul(v[1])));
    differ(check(Operation::Mul, &[16, 16], 16, |v| v[0].wrapping_mul(v[1])));
    differ(check(Operation::Mad, &[32, 32, 32], 32, |v| v[0].wrapping_mul(v[1]).wrapping_add(v[2])));
    differ(check(Operation::Wide { from: 32, signed: false }, &two, 64, |v| v[0].wrapping_mul(v[1])));
    differ(check(Operation::Wide { from: 32, signed: true }, &[32, 32, 64], 64, |v| {
        signed(v[0], 32).wrapping_mul(signed(v[1], 32)).cast_unsigned().wrapping_add(v[2])
    }));
    differ(check(Operation::Shl, &two, 32, |v| if v[1] < 32 { v[0] << v[1] } else { 0 }));
    differ(check(Operation::Shr { signed: false }, &two, 32, |v| if v[1] < 32 { v[0] >> v[1] } else { 0 }));
    differ(check(Operation::Shr { signed: true }, &two, 32, |v| {
        (signed(v[0], 32) >> v[1].min(31)).cast_unsigned()
    }));
    differ(check(Operation::Shr { signed: false }, &[64, 32], 64, |v| {
        v[0].checked_shr(v[1] as u32).unwrap_or(0)
    }));
    differ(check(Operation::Logic(0xc0), &two, 32, |v| v[0] & v[1]));
    differ(check(Operation::Logic(0xfc), &two, 32, |v| v[0] | v[1]));
    differ(check(Operation::Logic(0x3c), &two, 32, |v| v[0] ^ v[1]));
    differ(check(Operation::Logic(0x0f), &[32], 32, |v| !v[0]));
    differ(check(Operation::Logic(0xea), &[32, 32, 32], 32, |v| v[0] & v[1] | v[2]));
    differ(check(Operation::Logic(0x96), &[32, 32, 32], 32, |v| v[0] ^ v[1] ^ v[2]));
    differ(check(Operation::Convert { from: 32, signed: false }, &[32], 64, |v| v[0]));
    differ(check(Operation::Convert { from: 32, signed: true }, &[32], 64, |v| {
        signed(v[0], 32).cast_unsigned()
    }));
    differ(check(Operation::Convert { from: 16, signed: true }, &[16], 32, |v| {
        signed(v[0], 16).cast_unsigned()
    }));
    differ(check(Operation::Convert { from: 64, signed: true }, &[64], 32, |v| v[0]));
    differ(check(Operation::Div { signed: false }, &two, 32, |v| v[0] / v[1]));
    differ(check(Operation::Rem { signed: false }, &two, 32, |v| v[0] % v[1]));
    differ(check(Operation::Div { signed: true }, &two, 32, |v| {
        signed(v[0], 32).wrapping_div(signed(v[1], 32)).cast_unsigned()
    }));
    differ(check(Operation::Rem { signed: true }, &two, 32, |v| {
        signed(v[0], 32).wrapping_rem(signed(v[1], 32)).cast_unsigned()
    }));
    differ(check(Operation::Pack { part: 32 }, &two, 64, |v| v[0] | v[1] << 32));
    differ(check(Operation::Unpack { part: 32, index: 1 }, &[64], 32, |v| v[0] >> 32));
    differ(check(Operation::Unpack { part: 32, index: 0 }, &[64], 32, |v| v[0]));
}

/// PTX ISA, 9.7.1.19, 9.7.1.20 and 9.7.9.7.
#[test]
fn fields_and_bytes_are_those_of_the_manual() {
    let extract = |v: &[u64], is_signed: bool| {
        let (from, count) = (v[1] & 255, v[2] & 255);
        let top = if !is_signed || count == 0 { 0 } else { v[0] >> (from + count - 1).min(31) & 1 };
        (0..32).fold(0, |field, at| {
            let bit = if at < count && from + at < 32 { v[0] >> (from + at) & 1 } else { top };
            field | bit << at
        })
    };
    let three = [32, 32, 32];
    assert!(check(Operation::Extract { signed: false }, &three, 32, |v| extract(v, false)) > 15);
    assert!(check(Operation::Extract { signed: true }, &three, 32, |v| extract(v, true)) > 15);
    let insert = |v: &[u64]| {
        let (from, count) = (v[2] & 255, v[3] & 255);
        (0..count)
            .filter(|at| from + at < 32)
            .fold(v[1], |into, at| into & !(1 << (from + at)) | (v[0] >> at & 1) << (from + at))
    };
    assert!(check(Operation::Insert, &[32, 32, 32, 32], 32, insert) > 15);
    let permute = |v: &[u64]| {
        let bytes = v[0] | v[1] << 32;
        (0..4).fold(0, |word, at| word | (bytes >> (8 * (v[2] >> (4 * at) & 7)) & 255) << (8 * at))
    };
    assert!(check(Operation::Permute, &three, 32, permute) > 15);
}

#[test]
fn comparisons_say_what_lanes_find() {
    for how in [
        Compare::Equal,
        Compare::NotEqual,
        Compare::Less,
        Compare::LessOrEqual,
        Compare::Greater,
        Compare::GreaterOrEqual,
    ] {
        for is_signed in [false, true] {
            let machine = |v: &[u64]| {
                let order = match is_signed {
                    true => signed(v[0], 32).cmp(&signed(v[1], 32)),
                    false => v[0].cmp(&v[1]),
                };
                u64::from(match how {
                    Compare::Equal => order.is_eq(),
                    Compare::NotEqual => order.is_ne(),
                    Compare::Less => order.is_lt(),
                    Compare::LessOrEqual => order.is_le(),
                    Compare::Greater => order.is_gt(),
                    Compare::GreaterOrEqual => order.is_ge(),
                })
            };
            check(Operation::Compare { how, from: 32, signed: is_signed }, &[32, 32], 1, machine);
        }
    }
}
