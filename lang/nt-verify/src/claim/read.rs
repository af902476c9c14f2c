//! Reads a claim, field by field, and holds its parts together.
//!
//! ```text
//! base.heat@8:8    the word `base` of map `heat`, 8 bytes from byte 8 on
//! ```
//!
//! Fields stand in any order, so what a map is shows only when all of them are there: one with `units` and `counts` has
//! several records a unit, one with `units`, `cursor` and `drops` is a stream, whose `cap` has 4 bytes.

use super::{Claim, Column, Field, FieldKind, Map, OPEN, Pin, SLOT, Shape, THREAD_COUNT, WARP_COUNT};
use nt_diag::Span;
use std::collections::HashSet;

/// Why a claim is no claim: where in the woven text, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClaimError {
    /// The guilty field.
    pub(crate) span: Span,
    /// What is wrong with it.
    pub(crate) message: String,
}

/// The most maps and the most columns of one map: far beyond any probe, so that no claim costs much to check.
pub(super) const MOST: usize = 256;
/// All of the constant bank: 65,536 bytes of 8 each (PTX ISA, 5.1.3).
const MOST_PINS: usize = 8192;

/// A word of the block that speaks of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Base,
    Cap,
    Units,
    Cursor,
    Drops,
    Counts,
}

/// What a map is, by which words it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    /// A record a unit, or a table.
    Plain,
    /// Several a unit.
    Counted,
    Stream,
}

impl Sort {
    fn word(self) -> &'static str {
        match self {
            Sort::Plain => "map",
            Sort::Counted => "map with counts",
            Sort::Stream => "stream",
        }
    }
}

impl Word {
    const ALL: [(&'static str, Word); 6] = [
        ("base", Word::Base),
        ("cap", Word::Cap),
        ("units", Word::Units),
        ("cursor", Word::Cursor),
        ("drops", Word::Drops),
        ("counts", Word::Counts),
    ];

    /// How many bytes it has.
    fn size(self, of: Sort) -> u32 {
        match self {
            Word::Cap if of == Sort::Stream => 4,
            Word::Units => 4,
            Word::Base | Word::Cap | Word::Cursor | Word::Drops | Word::Counts => 8,
        }
    }

    /// Has a map of that sort it?
    fn is_of(self, sort: Sort) -> bool {
        match self {
            Word::Base | Word::Cap => true,
            Word::Units => sort != Sort::Plain,
            Word::Cursor | Word::Drops => sort == Sort::Stream,
            Word::Counts => sort == Sort::Counted,
        }
    }

    fn kind(self, map: u32) -> FieldKind {
        match self {
            Word::Base => FieldKind::Base(map),
            Word::Cap => FieldKind::Cap(map),
            Word::Units => FieldKind::Units(map),
            Word::Cursor => FieldKind::Cursor(map),
            Word::Drops => FieldKind::Drops(map),
            Word::Counts => FieldKind::Counts(map),
        }
    }
}

/// A map while its fields come in, in any order.
#[derive(Default)]
struct Parts<'c> {
    name: &'c str,
    /// Offset and size of each of [`Word::ALL`].
    words: [Option<(u32, u32)>; 6],
    shape: Option<Shape>,
}

/// What was read so far.
#[derive(Default)]
struct Reader<'c> {
    parts: Vec<Parts<'c>>,
    singles: Vec<Field>,
    pins: Vec<Pin>,
    states: Vec<String>,
    pinned: HashSet<&'c str>,
    numbers: HashSet<u32>,
}

impl Claim {
    /// Reads a claim from a whole comment, `/*nt:ctx …*/`, which begins at `at` in the woven text.
    pub(crate) fn parse(comment: &str, at: u32) -> Result<Claim, ClaimError> {
        let whole = Span::new(at, at + comment.len() as u32);
        let Some(inner) = comment.strip_prefix(OPEN).and_then(|rest| rest.strip_suffix("*/")) else {
            let message = "the claim is not of the form `/*nt:ctx …*/`".into();
            return Err(ClaimError { span: whole, message });
        };
        let (mut prefix, mut reader) = (None, Reader::default());
        let mut offset = at + OPEN.len() as u32;
        for word in inner.split(' ') {
            let span = Span::new(offset, offset + word.len() as u32);
            offset += word.len() as u32 + 1;
            let read = match (&prefix, word.split_once('=')) {
                (None, _) => match word.strip_prefix("prefix=").filter(|prefix| is_prefix(prefix)) {
                    Some(found) => {
                        prefix = Some(found);
                        Ok(())
                    }
                    None => Err(format!("expected `prefix=nt_` or `prefix=nt1_` and so on, found `{word}`")),
                },
                (Some(_), Some((name, value))) => reader.equation(word, name, value),
                (Some(_), None) => reader.place(word),
            };
            read.map_err(|message| ClaimError { span, message })?;
        }
        reader
            .assemble(prefix.unwrap_or_default().to_owned())
            .map_err(|message| ClaimError { span: whole, message })
    }
}

impl<'c> Reader<'c> {
    /// `stride.heat=16`, `columns.heat=8,4`, `pin.lut=0`
    fn equation(&mut self, word: &str, name: &'c str, value: &str) -> Result<(), String> {
        let shape = match name.split_once('.') {
            Some(("pin", symbol)) => {
                let pin = pin(symbol, value)?;
                if !(self.pinned.insert(symbol) && self.numbers.insert(pin.index)) {
                    return Err(format!("`{name}` or its number is claimed twice"));
                }
                if self.pins.len() == MOST_PINS {
                    return Err(format!("more than {MOST_PINS} pins"));
                }
                self.pins.push(pin);
                return Ok(());
            }
            Some(("stride", _)) => stride(value),
            Some(("columns", map)) if map.starts_with('@') => {
                return Err(format!("table `{map}` has a stride, not columns"));
            }
            Some(("columns", _)) => columns(value),
            _ => return Err(format!("`{word}` is no field of a claim")),
        };
        let shape = shape.ok_or_else(|| format!("`{value}` is no shape of a map"))?;
        let map = name.split_once('.').map_or("", |(_, map)| map);
        if let Shape::Packed { stride } = shape
            && map.starts_with('@')
            && stride % 8 != 0
        {
            return Err(format!("the stride of table `{map}` is not of whole cells of 8 bytes"));
        }
        match self.part(map)?.shape.replace(shape) {
            None => Ok(()),
            Some(_) => Err(format!("map `{map}` has two shapes")),
        }
    }

    /// `zero@0:8`, `base.heat@8:8`
    fn place(&mut self, text: &'c str) -> Result<(), String> {
        let no_field = || format!("`{text}` is no field of a claim");
        let (name, offset, size) = place(text).ok_or_else(no_field)?;
        let aligned = match offset % size {
            0 => Ok(()),
            _ => Err(format!("`{name}` is not aligned to its {size} bytes")),
        };
        let kind = match name.split_once('.') {
            None if name == "zero" => FieldKind::Zero,
            None if name == "launch" => FieldKind::Launch,
            Some(("state" | "pos", _)) => {
                let state = carried(name).filter(|_| self.states.len() < MOST);
                let state = state.ok_or_else(|| format!("`{name}` is no state and no position"))?;
                let index = self.states.len() as u32;
                if self.states.contains(&state) {
                    return Err(format!("`{name}` is claimed twice"));
                }
                if name.starts_with("pos") && size != 4 {
                    return Err(format!("`{name}` has 4 bytes, not {size}"));
                }
                self.states.push(state);
                self.singles.push(Field { kind: FieldKind::State(index), offset, size });
                return aligned;
            }
            Some((word, map)) => {
                let known = Word::ALL.iter().position(|(known, _)| *known == word).ok_or_else(no_field)?;
                let slot = self.part(map)?.words.get_mut(known).ok_or_else(no_field)?;
                return match slot.replace((offset, size)) {
                    None => aligned,
                    Some(_) => Err(format!("`{name}` is claimed twice")),
                };
            }
            None => return Err(no_field()),
        };
        if size != 8 && kind != FieldKind::Launch {
            return Err(format!("`{name}` cannot have {size} bytes"));
        }
        if self.singles.iter().any(|field| field.kind == kind) {
            return Err(format!("`{name}` is claimed twice"));
        }
        self.singles.push(Field { kind, offset, size });
        aligned
    }

    /// The parts of the map of that name, made if it is new.
    fn part(&mut self, name: &'c str) -> Result<&mut Parts<'c>, String> {
        if !is_map(name) {
            return Err(format!("`{name}` is no name of a map"));
        }
        let index = match self.parts.iter().position(|part| part.name == name) {
            Some(index) => index,
            None => {
                self.parts.push(Parts { name, ..Parts::default() });
                self.parts.len() - 1
            }
        };
        let part = self.parts.get_mut(index).filter(|_| index < MOST);
        part.ok_or_else(|| format!("more than {MOST} maps"))
    }

    /// Puts the parts together, which is when it shows whether each map is whole and no two fields overlap.
    fn assemble(mut self, prefix: String) -> Result<Claim, String> {
        self.parts.sort_by_key(|part| (part.words[0], part.name));
        let mut fields = self.singles;
        let mut maps = Vec::new();
        for (index, part) in (0..).zip(self.parts) {
            maps.push(part.map(index, &mut fields)?);
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
        self.pins.sort_unstable();
        let (pins, states) = (self.pins, self.states);
        Ok(Claim { prefix, fields, maps, pins, states, size: end.next_multiple_of(8) })
    }
}

impl Parts<'_> {
    /// The map, whose fields are added to `fields`.
    fn map(self, index: u32, fields: &mut Vec<Field>) -> Result<Map, String> {
        let name = self.name;
        let [_, _, units, cursor, drops, counts] = self.words.map(|word| word.is_some());
        let sort = match (cursor || drops, counts, units) {
            (false, true, _) => Sort::Counted,
            (false, false, false) => Sort::Plain,
            _ => Sort::Stream,
        };
        for ((text, word), place) in Word::ALL.into_iter().zip(self.words) {
            let Some((offset, size)) = place.filter(|_| word.is_of(sort)) else {
                let what = if matches!(word, Word::Base | Word::Cap) { Sort::Plain } else { sort };
                match (word.is_of(sort), place) {
                    (true, _) => return Err(format!("{} `{name}` has no `{text}`", what.word())),
                    (false, Some(_)) => return Err(format!("{} `{name}` has `{text}`", sort.word())),
                    (false, None) => continue,
                }
            };
            let wanted = word.size(sort);
            if size != wanted {
                return Err(format!("`{text}.{name}` has {wanted} bytes, not {size}"));
            }
            fields.push(Field { kind: word.kind(index), offset, size });
        }
        let is_table = name.starts_with('@');
        if sort == Sort::Counted && is_table {
            return Err(format!("table `{name}` has `counts`"));
        }
        let shape = match self.shape {
            None => return Err(format!("map `{name}` has no `stride` and no `columns`")),
            Some(Shape::Packed { stride: SLOT }) if sort == Sort::Stream && !is_table => Shape::Slots,
            Some(_) if sort == Sort::Stream => {
                return Err(format!("`{name}` is a stream, but has no stride of {SLOT}"));
            }
            Some(shape) => shape,
        };
        let of_unit = match &shape {
            Shape::Packed { .. } => WARP_COUNT,
            Shape::Columns(_) | Shape::Slots => THREAD_COUNT,
        };
        Ok(Map { name: name.to_owned(), shape, counts: (sort == Sort::Counted).then_some(of_unit) })
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

/// What a register of the caller is called behind `%` and the prefix: `s_n` of `state.n`, `c_ev` of `pos.ev`.
pub(super) fn carried(word: &str) -> Option<String> {
    let (kind, name) = word.split_once('.')?;
    let letter = match kind {
        "state" => 's',
        "pos" => 'c',
        _ => return None,
    };
    (is_map(name) && !name.starts_with('@')).then(|| format!("{letter}_{name}"))
}

/// `name@offset:size`
pub(super) fn place(word: &str) -> Option<(&str, u32, u32)> {
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

/// A name of a map, or of a table.
fn is_map(name: &str) -> bool {
    let (is_table, bare) = match name.strip_prefix('@') {
        Some(bare) => (true, bare),
        None => (false, name),
    };
    let mut bytes = bare.bytes();
    let begins = match bytes.next() {
        Some(b) => b.is_ascii_alphabetic() || b == b'_',
        None => is_table,
    };
    begins && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
