//! The claim: what a woven kernel says about the context block that it is launched with.
//!
//! It stands, as one comment, in every parameter edit, beside the parameter that it speaks of:
//!
//! ```text
//! k(
//!     .param .u64 k_param_0/*nt:edit {*/,
//!     .param .align 8 .b8 nt_ctx[32] /*nt:ctx prefix=nt_ zero@0:8 base.heat@8:8 cap.heat@16:8 stride.heat=16*//*}nt:edit*/
//! )
//! ```
//!
//! # Grammar
//!
//! ```text
//! claim  = "/*nt:ctx prefix=" PREFIX { " " field } "*/"       one space before each field, one line
//! PREFIX = "nt_" | "nt" NUMBER "_"                            nt_, nt1_, nt2_, …
//! field  = "zero@" OFFSET ":8"                                a word that the host sets to 0
//!        | "launch@" OFFSET ":" ("4" | "8")                   the launch's number
//!        | "base." MAP "@" OFFSET ":8"                        the address of the map's segment
//!        | "cap."  MAP "@" OFFSET ":8"                        how many units it has room for, a u64
//!        | "stride." MAP "=" SIZE                             packed: bytes of one record
//!        | "columns." MAP "=" WIDTH { "," WIDTH }             columnar: bytes of one element of each column, in order
//!        | "pin." SYMBOL "=" NUMBER                           which word of `nt_pin` holds the address of that variable
//! MAP    = NAME                                               a map, whose records are stored
//!        | "@" [ NAME ]                                       a table, whose cells of 8 bytes are added to
//! NAME   = a letter or `_`, then letters, digits and `_`
//! SYMBOL = an identifier of PTX
//! OFFSET, SIZE, NUMBER = decimal, no sign, no leading zero    WIDTH = "1" | "2" | "4" | "8"
//! ```
//!
//! Fields may stand in any order. Each map has exactly one `base`, one `cap` and one of `stride` and `columns`
//! (a presence byte, where the layout has one, is a column like the others); a table has a `stride`, a multiple of 8:
//! `base.@sync@24:8 cap.@sync@32:8 stride.@sync=24` is a table `sync` of three cells a unit. No two fields overlap,
//! each is aligned to its size, and the parameter is as large as the end of the last field, rounded up to 8:
//! `nt_ctx[N]` with that N.
//!
//! # Pins
//!
//! A copy of a kernel must use the variables of its original, not copies of them. `pin.lut=0` says that word 0 of the
//! module's `nt_pin` holds the address of `.global` variable `lut`. All kernels of a module speak of one `nt_pin`: the
//! same symbol has the same number in each, every number from 0 on has a symbol, and `nt_pin` has as many words.
//!
//! ```text
//! /*nt:edit {*/.const .align 8 .b64 nt_pin[2];/*}nt:edit*/            once, at module level, before what uses it
//! …
//! /*nt:7{*/.reg .b64 %nt_g7;                                          outside of the braces: for the next instruction
//! { ld.const.b64 %nt_g7, [nt_pin+0]; }/*}nt:7*/
//! ld.global.f32 %f1, [/*nt:edit 6c7574{*/%nt_g7/*}nt:edit*/+16];      the symbol's name alone is replaced, …
//! ld.global.f32 %f2, /*nt:edit 5b6c75742d345d{*/[%nt_g8+-4]/*}nt:edit*/;     … or the operand, here `[lut-4]`
//! ```
//!
//! # What it is worth
//!
//! The verifier believes it about memory, and nothing else: record `i` of a packed map is the `stride` bytes at
//! `base + i·stride`, element `i` of column `c` is the `w(c)` bytes at `base + (w(0) + … + w(c-1))·cap + i·w(c)`, for
//! every `i` below `cap`; `base` is 16-byte aligned and `cap` a multiple of 16. Whoever launches the kernel compares
//! the claim with the context that it fills, before it loads the module.

use nt_diag::Span;
use std::collections::HashSet;

/// What opens a claim.
pub(crate) const OPEN: &str = "/*nt:ctx ";

/// A claim that holds together: fields aligned and apart, every map with a base, a capacity and a shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// With which every name of the spans begins, behind an optional `%` or `$`.
    pub prefix: String,
    /// The fields of the block, by offset.
    pub fields: Vec<Field>,
    /// The maps and tables, by the order of their bases in the block.
    pub maps: Vec<Map>,
    /// The pins, by index.
    pub pins: Vec<Pin>,
    /// How large the block is: the end of the last field, rounded up to 8.
    pub size: u32,
}

/// One field of the context block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// What it holds.
    pub kind: FieldKind,
    /// Where it begins in the block.
    pub offset: u32,
    /// How many bytes it takes.
    pub size: u32,
}

/// What a field of the context block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldKind {
    /// A word that is always 0.
    Zero,
    /// The number of the launch.
    Launch,
    /// The address of a map, by its index in [`Claim::maps`].
    Base(u32),
    /// The capacity of a map, by its index in [`Claim::maps`].
    Cap(u32),
}

/// One map or table that the block points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map {
    /// Its name, a table's with the `@`.
    pub name: String,
    /// How its records lie in memory.
    pub shape: Shape,
}

impl Map {
    /// Is it a table, whose cells are added to? Else the records are stored.
    pub fn is_table(&self) -> bool {
        self.name.starts_with('@')
    }
}

/// A variable of the module, and the word of `nt_pin` that holds its address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pin {
    /// Which word.
    pub index: u32,
    /// The variable's name.
    pub symbol: String,
}

/// How the records of a map lie in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// Records of that many bytes, one behind the other.
    Packed {
        /// Bytes of one record.
        stride: u32,
    },
    /// A structure of arrays, each of `cap` elements.
    Columns(Vec<Column>),
}

/// One array of a columnar map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// It begins at the base plus this many times the capacity.
    pub offset: u32,
    /// Bytes of one element.
    pub width: u32,
}

/// Why a claim is no claim: where in the woven text, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClaimError {
    /// The guilty field.
    pub(crate) span: Span,
    /// What is wrong with it.
    pub(crate) message: String,
}

/// A map while its fields come in, in any order.
#[derive(Default)]
struct Parts<'c> {
    name: &'c str,
    base: Option<u32>,
    cap: Option<u32>,
    shape: Option<Shape>,
}

/// The most maps and the most columns of one map: far beyond any probe, so that no claim costs much to check.
const MOST: usize = 256;
/// All of the constant bank: 65,536 bytes of 8 each (PTX ISA, 5.1.3).
const MOST_PINS: usize = 8192;

impl Claim {
    /// Reads a claim from a whole comment, `/*nt:ctx …*/`, which begins at `at` in the woven text.
    pub(crate) fn parse(comment: &str, at: u32) -> Result<Claim, ClaimError> {
        let fail = |span: Span, message: String| Err(ClaimError { span, message });
        let whole = Span::new(at, at + comment.len() as u32);
        let Some(inner) = comment.strip_prefix(OPEN).and_then(|rest| rest.strip_suffix("*/")) else {
            return fail(whole, "the claim is not of the form `/*nt:ctx …*/`".into());
        };

        let mut words = Vec::new();
        let mut offset = at + OPEN.len() as u32;
        for word in inner.split(' ') {
            words.push((word, Span::new(offset, offset + word.len() as u32)));
            offset += word.len() as u32 + 1;
        }

        let mut words = words.into_iter();
        let (first, first_span) = words.next().unwrap_or(("", whole));
        let prefix = match first.strip_prefix("prefix=") {
            Some(prefix) if is_prefix(prefix) => prefix.to_owned(),
            _ => {
                return fail(
                    first_span,
                    format!("expected `prefix=nt_` or `prefix=nt1_` and so on, found `{first}`"),
                );
            }
        };

        let mut parts: Vec<Parts<'_>> = Vec::new();
        let mut singles: Vec<Field> = Vec::new();
        let mut pins: Vec<Pin> = Vec::new();
        let (mut pinned, mut numbers) = (HashSet::new(), HashSet::new());
        for (word, span) in words {
            if let Some((name, value)) = word.split_once('=') {
                if let Some(("pin", symbol)) = name.split_once('.') {
                    let pin = pin(symbol, value).map_err(|message| ClaimError { span, message })?;
                    if !(pinned.insert(symbol) && numbers.insert(pin.index)) {
                        return fail(span, format!("`{name}` or its number is claimed twice"));
                    }
                    if pins.len() == MOST_PINS {
                        return fail(span, format!("more than {MOST_PINS} pins"));
                    }
                    pins.push(pin);
                    continue;
                }
                let shape = match name.split_once('.') {
                    Some(("stride", _)) => stride(value),
                    Some(("columns", map)) if map.starts_with('@') => {
                        return fail(span, format!("table `{map}` has a stride, not columns"));
                    }
                    Some(("columns", _)) => columns(value),
                    _ => return fail(span, format!("`{word}` is no field of a claim")),
                };
                let Some(shape) = shape else { return fail(span, format!("`{value}` is no shape of a map")) };
                let map = name.split_once('.').map_or("", |(_, map)| map);
                if let Shape::Packed { stride } = shape
                    && map.starts_with('@')
                    && stride % 8 != 0
                {
                    return fail(
                        span,
                        format!("the stride of table `{map}` is not of whole cells of 8 bytes"),
                    );
                }
                let Some(part) = part(&mut parts, map) else {
                    return fail(span, format!("`{map}` is no name of a map"));
                };
                if part.shape.replace(shape).is_some() {
                    return fail(span, format!("map `{map}` has two shapes"));
                }
                continue;
            }
            let Some((name, offset, size)) = place(word) else {
                return fail(span, format!("`{word}` is no field of a claim"));
            };
            let kind = match name.split_once('.') {
                None if name == "zero" => FieldKind::Zero,
                None if name == "launch" => FieldKind::Launch,
                Some((half @ ("base" | "cap"), map)) => {
                    let Some(part) = part(&mut parts, map) else {
                        return fail(span, format!("`{map}` is no name of a map"));
                    };
                    let slot = if half == "base" { &mut part.base } else { &mut part.cap };
                    if slot.replace(offset).is_some() {
                        return fail(span, format!("`{name}` is claimed twice"));
                    }
                    if size != 8 {
                        return fail(span, format!("`{name}` has 8 bytes, not {size}"));
                    }
                    if offset % 8 != 0 {
                        return fail(span, format!("`{name}` is not aligned to its 8 bytes"));
                    }
                    continue;
                }
                _ => return fail(span, format!("`{word}` is no field of a claim")),
            };
            if size != 8 && !(kind == FieldKind::Launch && size == 4) {
                return fail(span, format!("`{name}` cannot have {size} bytes"));
            }
            if offset % size != 0 {
                return fail(span, format!("`{name}` is not aligned to its {size} bytes"));
            }
            if singles.iter().any(|field| field.kind == kind) {
                return fail(span, format!("`{name}` is claimed twice"));
            }
            singles.push(Field { kind, offset, size });
        }

        pins.sort_unstable();
        let claim = Claim::assemble(prefix, parts, singles, pins);
        claim.map_err(|message| ClaimError { span: whole, message })
    }

    /// Puts the parts together, which is when it shows whether each map is whole and no two fields overlap.
    fn assemble(
        prefix: String,
        mut parts: Vec<Parts<'_>>,
        singles: Vec<Field>,
        pins: Vec<Pin>,
    ) -> Result<Claim, String> {
        parts.sort_by_key(|part| (part.base, part.name));
        let mut fields = singles;
        let mut maps = Vec::new();
        for (index, part) in (0..).zip(parts) {
            let name = part.name;
            let base = part.base.ok_or_else(|| format!("map `{name}` has no `base`"))?;
            let cap = part.cap.ok_or_else(|| format!("map `{name}` has no `cap`"))?;
            let shape = part.shape.ok_or_else(|| format!("map `{name}` has no `stride` and no `columns`"))?;
            fields.push(Field { kind: FieldKind::Base(index), offset: base, size: 8 });
            fields.push(Field { kind: FieldKind::Cap(index), offset: cap, size: 8 });
            maps.push(Map { name: name.to_owned(), shape });
        }
        fields.sort_by_key(|field| (field.offset, field.kind));
        let mut end = 0;
        for field in &fields {
            if field.offset < end {
                return Err(format!("two fields overlap at offset {}", field.offset));
            }
            end = field.offset + field.size;
        }
        if end == 0 {
            return Err("the claim has no field".into());
        }
        Ok(Claim { prefix, fields, maps, pins, size: end.next_multiple_of(8) })
    }

    /// The field that begins there, if one does.
    pub(crate) fn field_at(&self, offset: u32) -> Option<Field> {
        let place = self.fields.binary_search_by_key(&offset, |field| field.offset).ok()?;
        self.fields.get(place).copied()
    }
}

/// `nt_`, or `nt`, a number without leading zeros, `_`.
fn is_prefix(text: &str) -> bool {
    match text.strip_prefix("nt").and_then(|rest| rest.strip_suffix('_')) {
        Some("") => true,
        Some(digits) => number(digits).is_some_and(|n| n > 0),
        None => false,
    }
}

/// `name@offset:size`
fn place(word: &str) -> Option<(&str, u32, u32)> {
    // The last one: a table's name begins with another.
    let (name, rest) = word.rsplit_once('@')?;
    let (offset, size) = rest.split_once(':')?;
    let (offset, size) = (number(offset)?, number(size)?);
    // Parameter space ends at 32,764 bytes (PTX ISA, `.param`), so sums of the two cannot overflow.
    (offset <= 0x7ffc && matches!(size, 4 | 8)).then_some((name, offset, size))
}

fn stride(value: &str) -> Option<Shape> {
    let stride = number(value)?;
    (stride > 0).then_some(Shape::Packed { stride })
}

fn columns(value: &str) -> Option<Shape> {
    let mut columns = Vec::new();
    let mut offset = 0;
    for width in value.split(',') {
        let width = number(width).filter(|w| matches!(w, 1 | 2 | 4 | 8))?;
        columns.push(Column { offset, width });
        offset += width;
    }
    (columns.len() <= MOST).then_some(Shape::Columns(columns))
}

/// A decimal number below 2^24 without sign or leading zero.
fn number(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if !plain || text.len() > 8 { None } else { text.parse().ok().filter(|&n| n < 1 << 24) }
}

fn pin(symbol: &str, value: &str) -> Result<Pin, String> {
    // PTX ISA 9.0, 4.4: `[a-zA-Z]` and more letters, or one of `_$%` and at least one more.
    let mut bytes = symbol.bytes();
    let begins = bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || (matches!(b, b'_' | b'$' | b'%') && symbol.len() > 1));
    if !begins || !bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$')) {
        return Err(format!("`{symbol}` is no name of a variable"));
    }
    match number(value).filter(|&index| (index as usize) < MOST_PINS) {
        Some(index) => Ok(Pin { index, symbol: symbol.to_owned() }),
        None => Err(format!("`{value}` is no number of a pin")),
    }
}

/// The parts of the map of that name, made if it is new; `None` for what is no name.
fn part<'c, 'p>(parts: &'p mut Vec<Parts<'c>>, name: &'c str) -> Option<&'p mut Parts<'c>> {
    let (is_table, bare) = match name.strip_prefix('@') {
        Some(bare) => (true, bare),
        None => (false, name),
    };
    let mut bytes = bare.bytes();
    let begins = match bytes.next() {
        Some(b) => b.is_ascii_alphabetic() || b == b'_',
        None => is_table,
    };
    if !begins || !bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return None;
    }
    let index = match parts.iter().position(|part| part.name == name) {
        Some(index) => index,
        None if parts.len() < MOST => {
            parts.push(Parts { name, ..Parts::default() });
            parts.len() - 1
        }
        None => return None,
    };
    parts.get_mut(index)
}

#[cfg(test)]
mod tests;
