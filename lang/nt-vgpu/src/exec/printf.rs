//! What `printf` in a kernel prints, as the C library would have it.
//!
//! `vprintf` gets the addresses of a format and of its values, packed in order and each aligned to its own size.
//!
//! Source: CUDA C++ Programming Guide, "Formatted Output"; ISO C, section 7.23.6.1.

use crate::exec::spaces::{AddressSpace, number, refused};
use crate::fault::{FaultKind, Stop};
use crate::machine::Machine;
use crate::warp::Warp;

/// The longest format or string that is read.
const LONGEST: usize = 4096;
/// The widest field, the most digits.
const WIDEST: usize = 512;

/// `%-08.3lf`
#[derive(Debug, Clone, Default, PartialEq)]
struct Conversion {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zeros: bool,
    width: usize,
    precision: Option<usize>,
    /// Is the value 64 bits wide?
    is_long: bool,
    /// How many of its low bits count.
    bits: u32,
    letter: char,
}

/// Prints for a lane; gives how many values the format asked for.
pub(crate) fn print(
    machine: &mut Machine<'_>,
    warp: &Warp,
    lane: usize,
    format: u64,
    values: u64,
) -> Result<u32, Stop> {
    let mut reader = Values { machine, warp, lane, next: values, count: 0 };
    let format = reader.string(format)?;
    let mut text = Vec::new();
    let mut rest = format.as_slice();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            text.push(byte);
            continue;
        }
        let (conversion, after) = reader.conversion(rest)?;
        rest = after;
        match conversion.letter {
            '%' => text.push(b'%'),
            's' => {
                let at = reader.value(8)?;
                let mut string = reader.string(at)?;
                string.truncate(conversion.precision.unwrap_or(LONGEST));
                pad(&mut text, &conversion, "", &string, false);
            }
            'c' => {
                let value = reader.value(4)? as u8;
                pad(&mut text, &conversion, "", &[value], false);
            }
            'd' | 'i' | 'u' | 'x' | 'X' | 'o' => {
                let value = reader.value(if conversion.is_long { 8 } else { 4 })?;
                integer(&mut text, &conversion, value);
            }
            'p' => {
                let value = reader.value(8)?;
                pad(&mut text, &conversion, "", format!("{value:#x}").as_bytes(), false);
            }
            'f' | 'F' | 'e' | 'E' | 'g' | 'G' => {
                let value = f64::from_bits(reader.value(8)?);
                float(&mut text, &conversion, value);
            }
            other => {
                let kind = FaultKind::NotExecuted(format!("`%{other}` in a printf format"));
                return Err(Stop { kind, lane: lane as u32 });
            }
        }
    }
    let count = reader.count;
    machine.outcome.printed.extend(text);
    Ok(count)
}

struct Values<'m, 'a> {
    machine: &'m Machine<'a>,
    warp: &'m Warp,
    lane: usize,
    next: u64,
    count: u32,
}

impl Values<'_, '_> {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Stop> {
        match self.machine.peek(self.warp, self.lane, AddressSpace::Generic, address, into) {
            Ok(_) => Ok(()),
            Err(error) => Err(refused(self.lane, address, into.len(), error)),
        }
    }

    /// The next value, of 4 or 8 bytes.
    fn value(&mut self, size: u64) -> Result<u64, Stop> {
        let at = self.next.wrapping_add(size - 1) & !(size - 1);
        self.next = at.wrapping_add(size);
        self.count += 1;
        let mut bytes = [0; 8];
        let bytes = &mut bytes[..size as usize];
        self.read(at, bytes)?;
        Ok(number(bytes))
    }

    fn string(&self, address: u64) -> Result<Vec<u8>, Stop> {
        let mut all = Vec::new();
        let mut byte = [0];
        for at in 0..LONGEST as u64 {
            self.read(address.wrapping_add(at), &mut byte)?;
            if byte == [0] {
                break;
            }
            all.push(byte[0]);
        }
        Ok(all)
    }

    /// Reads what stands behind a `%`; gives what stands behind that.
    fn conversion<'f>(&mut self, format: &'f [u8]) -> Result<(Conversion, &'f [u8]), Stop> {
        let mut c = Conversion { bits: 32, letter: '?', ..Conversion::default() };
        let mut rest = format;
        let mut after_point = false;
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            match byte {
                b'-' => c.left = true,
                b'+' => c.plus = true,
                b' ' => c.space = true,
                b'#' => c.alternate = true,
                b'0' if c.width == 0 && !after_point => c.zeros = true,
                b'0'..=b'9' => {
                    let digit = usize::from(byte - b'0');
                    let add = |to: usize| (to * 10 + digit).min(WIDEST);
                    match after_point {
                        true => c.precision = Some(add(c.precision.unwrap_or(0))),
                        false => c.width = add(c.width),
                    }
                }
                b'.' => {
                    after_point = true;
                    c.precision = Some(0);
                }
                b'*' => {
                    let value = (self.value(4)? as i32).unsigned_abs() as usize;
                    match after_point {
                        true => c.precision = Some(value.min(WIDEST)),
                        false => c.width = value.min(WIDEST),
                    }
                }
                b'l' | b'z' | b'j' | b't' => (c.is_long, c.bits) = (true, 64),
                b'h' => c.bits /= 2,
                letter => {
                    c.letter = char::from(letter);
                    break;
                }
            }
        }
        Ok((c, rest))
    }
}

fn integer(text: &mut Vec<u8>, c: &Conversion, value: u64) {
    let value = value & crate::types::mask(c.bits);
    let (sign, digits) = match c.letter {
        'd' | 'i' => {
            let value = crate::types::signed(value, c.bits);
            (sign(c, value < 0), value.unsigned_abs().to_string())
        }
        'x' => (if c.alternate && value != 0 { "0x" } else { "" }, format!("{value:x}")),
        'X' => (if c.alternate && value != 0 { "0X" } else { "" }, format!("{value:X}")),
        'o' => (if c.alternate { "0" } else { "" }, format!("{value:o}")),
        _ => ("", value.to_string()),
    };
    let least = c.precision.unwrap_or(1);
    let digits = if value == 0 && least == 0 { String::new() } else { format!("{digits:0>least$}") };
    pad(text, c, sign, digits.as_bytes(), c.zeros && c.precision.is_none());
}

fn sign(c: &Conversion, negative: bool) -> &'static str {
    match (negative, c.plus, c.space) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    }
}

fn float(text: &mut Vec<u8>, c: &Conversion, value: f64) {
    let magnitude = value.abs();
    let digits = c.precision.unwrap_or(6);
    let mut body = if value.is_nan() {
        "nan".to_owned()
    } else if value.is_infinite() {
        "inf".to_owned()
    } else {
        match c.letter.to_ascii_lowercase() {
            'f' => format!("{magnitude:.digits$}"),
            'e' => exponential(magnitude, digits),
            _ => general(magnitude, digits.max(1), c.alternate),
        }
    };
    if c.letter.is_ascii_uppercase() {
        body = body.to_ascii_uppercase();
    }
    let negative = value.is_sign_negative() && !value.is_nan();
    pad(text, c, sign(c, negative), body.as_bytes(), c.zeros && value.is_finite());
}

/// `1.500000e+01`
fn exponential(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{mantissa}e{sign}{exponent:0>2}")
}

/// `%g`: the shorter of both, without zeros at the end.
fn general(value: f64, digits: usize, keeps_zeros: bool) -> String {
    let exponential = exponential(value, digits - 1);
    let exponent: i64 = exponential.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    let trim = |text: &str| {
        if keeps_zeros || !text.contains('.') {
            return text.to_owned();
        }
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    let digits = digits as i64;
    if exponent < -4 || exponent >= digits {
        let (mantissa, exponent) = exponential.split_once('e').unwrap_or((&exponential, "+00"));
        return format!("{}e{exponent}", trim(mantissa));
    }
    let places = (digits - 1 - exponent) as usize;
    trim(&format!("{value:.places$}"))
}

fn pad(text: &mut Vec<u8>, c: &Conversion, sign: &str, body: &[u8], zeros: bool) {
    let missing = c.width.saturating_sub(sign.len() + body.len());
    let fill = |text: &mut Vec<u8>, byte: u8| text.extend(std::iter::repeat_n(byte, missing));
    if !c.left && !zeros {
        fill(text, b' ');
    }
    text.extend(sign.as_bytes());
    if !c.left && zeros {
        fill(text, b'0');
    }
    text.extend(body);
    if c.left {
        fill(text, b' ');
    }
}
