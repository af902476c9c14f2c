//! What an operation makes of forms.

use crate::bits::{Bit, Bits};
use crate::code::{Code, Node, Value};
use crate::form::{Form, Varying};
use crate::known::{Known, mask};
use crate::linear::Linear;
use crate::operation::{Compare, Leaf, Operation};
use nt_ir::launch::Conditions;

/// What may be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trust {
    /// Of the launch.
    pub(crate) conditions: Conditions,
    /// Threads of a block by axis, where the kernel requires them.
    pub(crate) block: Option<[u32; 3]>,
    /// Index arithmetic of 32 bits does not wrap: sums of what is not negative, and the numbers of threads in a row of
    /// the grid, stay below 2^31, and no carry goes over the top inside a warp.
    pub(crate) wraps: bool,
    /// Groups meet only where ways join.
    pub(crate) joins: bool,
}

type Input<'f> = (Value, Result<&'f Form, Varying>);
type Output = Result<Form, Varying>;

const ANYTHING: Varying = Varying { indirect: false };

/// The value of a node that is no phi. `is_apart` if groups may execute it one after the other.
pub(crate) fn evaluate(
    code: &Code,
    node: &Node,
    inputs: &[Input<'_>],
    is_apart: bool,
    trust: &Trust,
) -> Output {
    let width = node.width;
    let unknown = || Ok(Form::uniform(Known::among(mask(width))));
    let indirect = inputs.iter().any(|(_, state)| state.is_err_and(|varying| varying.indirect));
    let varying = Varying { indirect };
    match node.operation {
        Operation::Leaf(leaf) => return leaf_value(leaf, trust),
        Operation::Varying { indirect } => return Err(Varying { indirect }),
        Operation::Common => return if is_apart { Err(ANYTHING) } else { unknown() },
        Operation::Load { fixed, bits } => {
            return match inputs {
                [(_, Ok(address))] if address.is_uniform() && (fixed || !is_apart) => {
                    Ok(Form::uniform(Known::among(mask(bits.min(width)))))
                }
                _ => Err(Varying { indirect: true }),
            };
        }
        Operation::Shuffle { by_index } => {
            let is_uniform =
                |input: Option<&Input<'_>>| matches!(input, Some((_, Ok(form))) if form.is_uniform());
            let is_common = by_index && !is_apart && is_uniform(inputs.get(1));
            return if is_uniform(inputs.first()) || is_common { unknown() } else { Err(varying) };
        }
        Operation::Guarded => return guarded(inputs, width),
        Operation::Choose => return choose(inputs, width).ok_or(varying),
        _ => (),
    }
    // All others are functions of forms.
    let forms: Option<Vec<Form>> = (0..)
        .zip(inputs)
        .map(|(place, (value, state))| {
            let from = code.nodes[*value as usize].width;
            state.ok().map(|form| fit(form, from, width_of_input(node, place)))
        })
        .collect();
    let Some(forms) = forms else { return Err(varying) };
    if let (Operation::Mul | Operation::Mad, true) = (node.operation, trust.wraps)
        && let Some(index) = block_start(code, node, &forms)
    {
        return Ok(index);
    }
    let exact = compute(node, &forms, trust).map(|form| form.cut(width));
    match exact {
        Some(form) => Ok(form),
        None if forms.iter().all(Form::is_uniform) => unknown(),
        None => Err(varying),
    }
}

/// Of how many bits an input is read.
fn width_of_input(node: &Node, place: usize) -> u32 {
    match node.operation {
        Operation::Wide { from, .. } if place < 2 => from,
        Operation::Convert { from, .. } | Operation::Compare { from, .. } => from,
        Operation::Pack { part } => part,
        // Of what is wider than the result.
        Operation::Unpack { .. } | Operation::Pure => 64,
        // Numbers of bits are 32 bits, whatever is shifted.
        Operation::Shl | Operation::Shr { .. } if place == 1 => 32,
        Operation::Extract { .. } | Operation::Permute if place > 0 => 32,
        Operation::Insert if place > 1 => 32,
        _ => node.width,
    }
}

/// A value in an operation of another width.
fn fit(form: &Form, from: u32, to: u32) -> Form {
    if to < from { form.cut(to) } else { form.clone() }
}

fn leaf_value(leaf: Leaf, trust: &Trust) -> Output {
    let required = |axis: u8| trust.block.and_then(|block| block.get(usize::from(axis)).copied());
    let flat = trust.conditions.contains(Conditions::FLAT_BLOCK);
    let rows = trust.conditions.contains(Conditions::WHOLE_ROWS);
    let among = |may: u64| Ok(Form::uniform(Known::among(may)));
    match leaf {
        Leaf::Constant(value) => Ok(Form::constant(value)),
        Leaf::Uniform => among(u64::MAX),
        Leaf::Parameter { offset, bits } => {
            let linear = matches!(bits, 32 | 64).then(|| Linear::parameter(offset, bits / 8));
            Ok(Form { linear, ..Form::uniform(Known::among(mask(bits))) })
        }
        Leaf::Lane => Ok(Form::lane(Known::constant(0))),
        // Warps are cut from rows of 32 threads and more, or from the one row that there is.
        Leaf::Thread(0) if flat || rows => Ok(Form::lane(Known::among(0x3e0))),
        Leaf::Thread(1 | 2) if flat => Ok(Form::constant(0)),
        Leaf::Thread(axis @ (1 | 2)) if rows => among(if axis == 1 { 0x3ff } else { 0x3f }),
        Leaf::Thread(_) => Err(ANYTHING),
        Leaf::Threads(axis) => match (required(axis), axis) {
            (Some(threads), _) => Ok(Form::constant(u64::from(threads))),
            (None, 0) if rows => among(0x7e0),
            (None, 1 | 2) if flat => Ok(Form::constant(1)),
            _ => among(0x7ff),
        },
        Leaf::Block(0) | Leaf::Blocks(0) => among(0x7fff_ffff),
        Leaf::Block(_) | Leaf::Blocks(_) => among(0xffff),
    }
}

/// `ctaid · ntid`, and `+ tid`: that there are fewer than 2^31 threads in a row of the grid is part of what is trusted.
fn block_start(code: &Code, node: &Node, forms: &[Form]) -> Option<Form> {
    let leaf = |at: usize| match code.nodes[*node.inputs.get(at)? as usize].operation {
        Operation::Leaf(leaf) => Some(leaf),
        _ => None,
    };
    let is_start = matches!(
        (leaf(0)?, leaf(1)?),
        (Leaf::Block(a), Leaf::Threads(b)) | (Leaf::Threads(a), Leaf::Block(b)) if a == b
    );
    let below = |form: Form| Form { known: form.known.without_sign(32), ..form };
    let start = below(forms.first()?.mul(forms.get(1)?, 64)?);
    match forms.get(2) {
        _ if !is_start || node.width != 32 => None,
        None => Some(start),
        Some(thread) if thread.is_positive(32) => Some(below(start.add(thread, 32))),
        Some(thread) => Some(start.add(thread, 32)),
    }
}

fn guarded(inputs: &[Input<'_>], width: u32) -> Output {
    let [guard, new, old] = inputs else { return Err(ANYTHING) };
    if new.0 == old.0 {
        return new.1.cloned();
    }
    let is_uniform = guard.1.is_ok_and(Form::is_uniform);
    match (new.1, old.1) {
        (Ok(new), Ok(old)) if is_uniform => new.or_else(old).map(|form| form.cut(width)).ok_or(ANYTHING),
        (Ok(new), Ok(old)) if new == old && new.known.as_constant().is_some() => Ok(new.clone()),
        (Err(a), Err(b)) => Err(Varying { indirect: a.indirect || b.indirect }),
        (Err(a), _) | (_, Err(a)) => Err(a),
        _ => Err(ANYTHING),
    }
}

/// `selp`: one of two for all lanes, or by a bit of the lane one of two numbers.
fn choose(inputs: &[Input<'_>], width: u32) -> Option<Form> {
    let [(a, Ok(first)), (b, Ok(second)), (_, predicate)] = inputs else { return None };
    if a == b {
        return Some((*first).clone());
    }
    let predicate = (*predicate).ok()?;
    let (first, second) = (first.cut(width), second.cut(width));
    if predicate.is_uniform() {
        return first.or_else(&second);
    }
    if first == second && first.known.as_constant().is_some() {
        return Some(first);
    }
    let (yes, no) = (first.as_constant()?, second.as_constant()?);
    let (lane, yes, no) = match Bits::of(predicate, 1)?.0[0] {
        Bit::Lane(lane) => (lane, yes, no),
        Bit::NotLane(lane) => (lane, no, yes),
        _ => return None,
    };
    let mut form = Form::constant(no);
    // Lanes have five bits.
    form.strides[usize::from(lane)] = Linear::from(yes.wrapping_sub(no).cast_signed());
    Some(form.cut(width))
}

fn compute(node: &Node, forms: &[Form], trust: &Trust) -> Option<Form> {
    let width = node.width;
    let at = |place: usize| forms.get(place);
    let number = |place: usize| u32::try_from(at(place)?.as_constant()?).ok();
    let bits = |place: usize, width: u32| Bits::of(at(place)?, width);
    match node.operation {
        Operation::Convert { from, signed } if width > from => at(0)?.extend(from, signed, trust.wraps),
        Operation::Copy | Operation::Convert { .. } => at(0).cloned(),
        Operation::Add => {
            let (a, b) = (at(0)?, at(1)?);
            let sum = a.add(b, width);
            // Of indices that are not negative no sum is.
            let is_index = trust.wraps && width == 32 && [a, b].iter().all(|index| index.is_positive(width));
            Some(if is_index { Form { known: sum.known.without_sign(width), ..sum } } else { sum })
        }
        Operation::Sub => Some(at(0)?.sub(at(1)?, width)),
        Operation::Neg => Some(Form::constant(0).sub(at(0)?, width)),
        Operation::Mul => at(0)?.mul(at(1)?, width),
        Operation::Mad => Some(at(0)?.mul(at(1)?, width)?.add(at(2)?, width)),
        Operation::Wide { from, signed } => {
            let extend = |form: &Form| form.extend(from, signed, trust.wraps);
            let product = extend(at(0)?)?.mul(&extend(at(1)?)?, width)?;
            Some(at(2).map_or_else(|| product.clone(), |sum| product.add(sum, width)))
        }
        Operation::Shl => {
            let by = number(1)?;
            Some(at(0)?.shl(by, width))
        }
        Operation::Shr { signed } => shift_right(at(0)?, number(1)?, width, signed),
        Operation::Logic(table) => {
            let zero = Form::constant(0);
            let view = |place: usize| Bits::of(at(place).filter(|_| place < 3).unwrap_or(&zero), width);
            // Two inputs stand for the first two of three, one for the first.
            Some(Bits::logic(&view(0)?, &view(1)?, &view(2)?, table)?.form())
        }
        Operation::Extract { signed } => {
            let (from, count) = (number(1)? & 0xff, number(2)? & 0xff);
            if from >= width || count == 0 || from + count > width {
                return None;
            }
            let field = shift_right(at(0)?, from, width, false)?;
            let field = Bits::of(&field, width)?.low(count);
            // A field with a sign has copies of it above.
            let is_positive = field.0[(count - 1) as usize] == Bit::Zero;
            (is_positive || !signed || count == width).then(|| field.form())
        }
        Operation::Insert => {
            let (from, count) = (number(2)? & 0xff, number(3)? & 0xff);
            let (field, into) = (bits(0, width)?, bits(1, width)?);
            let mut result = into;
            for place in 0..count.min(width) {
                let to = from + place;
                if to < width {
                    result.0[to as usize] = field.0[place as usize];
                }
            }
            Some(result.form())
        }
        Operation::Permute => {
            let selector = number(2)?;
            let (low, high) = (bits(0, 32)?, bits(1, 32)?);
            let mut result = Bits::ZERO;
            for byte in 0..4usize {
                let select = selector >> (4 * byte) & 15;
                let source = if select & 4 == 0 { &low } else { &high };
                for bit in 0..8usize {
                    // Bit 3 of a selector spreads the sign of the byte.
                    let from = (select & 3) as usize * 8 + if select & 8 == 0 { bit } else { 7 };
                    result.0[byte * 8 + bit] = source.0[from];
                }
            }
            Some(result.form())
        }
        Operation::Div { signed: false } | Operation::Rem { signed: false }
            if divides_rows(at(0)?, at(1)?, width) =>
        {
            // What lanes differ by is below what the divisor counts.
            let (form, low) = (at(0)?, at(1)?.known.may.trailing_zeros());
            let kept = mask(low) & form.known.may;
            let known = Known { may: mask(width) & !mask(low) | kept, must: mask(low) & form.known.must };
            match node.operation {
                Operation::Div { .. } => Some(Form::uniform(Known::among(mask(width)))),
                _ => Some(Form { known, linear: None, strides: form.strides.clone() }),
            }
        }
        Operation::Div { signed } | Operation::Rem { signed } => {
            let by = at(1)?.as_constant().filter(|by| by.is_power_of_two())?.trailing_zeros();
            let form = at(0)?;
            // Rounding is toward zero, which of what is not negative is down.
            let is_positive = form.is_carry_free(width - 1) && form.known.is_positive(width);
            if signed && (!is_positive || by + 1 >= width) {
                return None;
            }
            match node.operation {
                Operation::Div { .. } => shift_right(form, by, width, false),
                _ => Some(Bits::of(form, width)?.low(by).form()),
            }
        }
        Operation::Compare { how, from, signed } => compare(at(0)?, at(1)?, how, from, signed),
        Operation::Pack { part } => {
            let mut sum = Form::constant(0);
            for (place, form) in (0u32..).zip(forms) {
                // The highest part may wrap, as all of it does.
                let is_highest = (place + 1) * part == width;
                let wide = if is_highest { form.clone() } else { form.extend(part, false, false)? };
                sum = sum.add(&wide.shl(place * part, width), width);
            }
            Some(sum)
        }
        Operation::Unpack { part, index } => shift_right(at(0)?, part * index, 64, false),
        _ => None,
    }
}

/// Is a divisor a multiple of 2^n, where no lane's part of the dividend reaches bit n?
fn divides_rows(form: &Form, by: &Form, width: u32) -> bool {
    let low = by.known.may.trailing_zeros();
    by.is_uniform() && by.as_constant().is_none() && low < width && form.is_carry_free(low)
}

/// To the right by a number of bits: the carries out of what falls away must be known.
fn shift_right(form: &Form, by: u32, width: u32, signed: bool) -> Option<Form> {
    if by == 0 {
        return Some(form.clone());
    }
    // All that differs between lanes falls away.
    if form.is_uniform() || (by < width && form.is_carry_free(by)) {
        let known = if signed { form.known.sign_extend(width) } else { form.known };
        let by = by.min(63);
        let shifted = match signed {
            true => Known { may: arithmetic(known.may, by), must: arithmetic(known.must, by) },
            false if by >= width => Known::constant(0),
            false => known.shr(by),
        };
        let constant = shifted.cut(width).as_constant().map(|value| Linear::from(value.cast_signed()));
        return Some(Form { linear: constant, ..Form::uniform(shifted.cut(width)) });
    }
    Some(Bits::of(form, width)?.shr(by, width, signed).form())
}

fn arithmetic(bits: u64, by: u32) -> u64 {
    (bits.cast_signed() >> by).cast_unsigned()
}

/// `setp` of integers.
fn compare(a: &Form, b: &Form, how: Compare, width: u32, signed: bool) -> Option<Form> {
    let unknown = Some(Form::uniform(Known::among(1)));
    if a.is_uniform() && b.is_uniform() {
        return unknown;
    }
    if matches!(how, Compare::Equal | Compare::NotEqual) {
        let differ = Bits::logic(&Bits::of(a, width)?, &Bits::of(b, width)?, &Bits::ZERO, 0x3c)?;
        let mut one = Bit::Zero;
        for bit in differ.0 {
            match (bit, one) {
                (Bit::One, _) => one = Bit::One,
                (Bit::Zero, _) | (_, Bit::One) => (),
                (bit, Bit::Zero) => one = bit,
                (bit, before) if bit == before && bit != Bit::Uniform => (),
                _ => return None,
            }
        }
        let mut result = Bits::ZERO;
        result.0[0] = one;
        let result = match how {
            Compare::Equal => Bits::logic(&result, &Bits::ZERO, &Bits::ZERO, 0x0f)?.low(1),
            _ => result,
        };
        return Some(result.form());
    }
    // All lanes are on one side of a number that no lane's bits reach.
    let (varying, limit, how) = if b.is_uniform() { (a, b, how) } else { (b, a, how.flipped()) };
    if !limit.is_uniform() {
        return None;
    }
    let reach = varying.carries_below(width - u32::from(signed))?;
    let low = mask(reach);
    let is_at_step = match how {
        Compare::Less | Compare::GreaterOrEqual => limit.known.may & low == 0,
        Compare::LessOrEqual | Compare::Greater => limit.known.must & low == low,
        _ => false,
    };
    if is_at_step { unknown } else { None }
}

#[cfg(test)]
mod tests;
