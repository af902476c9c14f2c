//! The lines of a stream's events.
//!
//! A field with a value a lane is one column all the same. Where no `--lanes` asks for a line a lane, it shows what all
//! lanes have, the leader's value and what is added a lane, or all values in the order of the lanes:
//!
//! ```text
//! 4     0x7f0000001000+4     0x7f0000001000,0x7f0000002040,0x7f0000000000
//! ```

use super::lines::{Field, Lines, Template};
use crate::cli::Format;
use crate::text::put_text;
use nt_trace::ntt::{KnownKernel, Piece, Reader, StreamEvent, Value};

/// What lines say of a kernel's sites, ready to be copied.
pub(super) struct Sites(Vec<[Vec<u8>; 2]>);

impl Sites {
    /// Of all sites of the kernel.
    pub(super) fn of(kernel: &KnownKernel, format: Format) -> Sites {
        let sites = kernel.probed().map_or(&[][..], |kernel| &kernel.sites);
        let text = |text: &str| {
            let mut out = Vec::new();
            put_text(&mut out, format, if text.is_empty() { "-" } else { text });
            out
        };
        Sites(sites.iter().map(|site| [text(&site.opcode), text(&crate::names::place(site))]).collect())
    }

    fn get(&self, site: Option<usize>) -> Option<&[Vec<u8>; 2]> {
        self.0.get(site?)
    }
}

/// The values of one column in the lanes of an event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spread<'r> {
    pub(super) reader: &'r Reader,
    pub(super) column: usize,
    pub(super) mask: u32,
    pub(super) bits: &'r [u64; 32],
}

/// Appends the lines of a piece.
pub(super) fn put(lines: &Lines, reader: &Reader, piece: &Piece<'_>, lanes: bool, out: &mut Vec<u8>) {
    // A column each; those that have one value for all lanes leave theirs alone.
    let mut spread: Vec<[u64; 32]> = vec![[0; 32]; lines.own()];
    let of_lanes: Vec<usize> = (0..lines.own()).filter(|&column| reader.is_of_lanes(column)).collect();
    let (mut template, mut known) = (Template::default(), Known::default());
    // A chunk's events have one warp.
    let (mut head, mut warp) = (Vec::new(), None);
    for event in reader.events(piece) {
        if warp != Some(event.warp()) {
            warp = Some(event.warp());
            head.clear();
            lines.put_head(&mut head, event.warp());
        }
        let by_lane = lanes && event.mask() != 0;
        for &column in &of_lanes {
            if let Some(bits) = spread.get_mut(column)
                && (by_lane || event.line(column).is_none())
            {
                event.put_lanes(column, bits);
            }
        }
        if by_lane {
            put_lanes(lines, reader, &event, &spread, &head, &mut template, out);
            continue;
        }
        let own = |column: usize| own(reader, &event, &spread, column);
        if let Some(code) = event.code() {
            out.extend_from_slice(&head);
            let template = known.of(lines, &event, code, &spread, reader);
            lines.put_filled(out, template, |hole| match hole.checked_sub(1) {
                None => Some(Field::Number(event.sequence())),
                Some(column) => own(column),
            });
        } else {
            lines.put_event(out, &head, |column| common(lines, &event, lanes, column), own);
        }
    }
}

/// What lines of one code and mask have in common, made once: all but the head, which event it is, and the columns that the
/// code does not tell. Where two codes come to one place, the latter has it.
#[derive(Default)]
struct Known(Vec<Option<(usize, u32, Template)>>);

impl Known {
    /// So many places. A probe has a code or a few for each site of a kernel.
    const PLACES: usize = 128;

    /// The holes are 0 for the number of the event, and one more than a column's for that.
    fn of(
        &mut self,
        lines: &Lines,
        event: &StreamEvent<'_, '_>,
        code: usize,
        spread: &[[u64; 32]],
        reader: &Reader,
    ) -> &Template {
        let at = code % Self::PLACES;
        if self.0.len() <= at {
            self.0.resize_with(at + 1, || None);
        }
        // It is that long now.
        let place = &mut self.0[at];
        if place.as_ref().is_none_or(|&(of, mask, _)| (of, mask) != (code, event.mask())) {
            let mut template = place.take().map(|(.., template)| template).unwrap_or_default();
            let common = |column: usize| match column {
                1 => Some(Field::Hole(0)),
                column => common(lines, event, false, column),
            };
            let own = |column: usize| match event.is_told(column) {
                true => own(reader, event, spread, column),
                false => Some(Field::Hole(column + 1)),
            };
            lines.put_template(&mut template, &[], common, own);
            *place = Some((code, event.mask(), template));
        }
        // It was made if it was not there.
        &place.get_or_insert_with(Default::default).2
    }
}

/// The columns that streams have.
fn common<'l>(
    lines: &'l Lines,
    event: &StreamEvent<'_, '_>,
    lanes: bool,
    column: usize,
) -> Option<Field<'l>> {
    match (column, lanes) {
        (0, _) => Some(Field::Number(event.lane().into())),
        (1, false) | (2, true) => Some(Field::Number(event.sequence())),
        (2, false) => (event.mask() != 0).then_some(Field::Hex(event.mask().into())),
        // No thread stands for all that came here.
        (1, true) => None,
        (n, _) => lines.sites().get(event.site())?.get(n - 3).map(|text| Field::Raw(text)),
    }
}

/// A column of the map.
fn own<'r>(
    reader: &'r Reader,
    event: &StreamEvent<'_, '_>,
    spread: &'r [[u64; 32]],
    column: usize,
) -> Option<Field<'r>> {
    if let Some(value) = event.value(column) {
        return Some(Field::Value(value));
    }
    match event.line(column) {
        Some((first, step)) => {
            let first = reader.typed(column, first);
            let alone = event.mask() & event.mask().wrapping_sub(1) == 0;
            Some(if step == 0 || alone { Field::Value(first) } else { Field::Line(first, step) })
        }
        None => {
            let bits = spread.get(column)?;
            Some(Field::Spread(Spread { reader, column, mask: event.mask(), bits }))
        }
    }
}

/// A line for each lane: all but lane, thread and the values that differ is made once.
fn put_lanes(
    lines: &Lines,
    reader: &Reader,
    event: &StreamEvent<'_, '_>,
    spread: &[[u64; 32]],
    head: &[u8],
    template: &mut Template,
    out: &mut Vec<u8>,
) {
    // The holes: lane, thread, and from the third on columns.
    const HOLES: usize = 2;
    let site = lines.sites().get(event.site());
    let common = |column: usize| match column {
        0 | 1 => Some(Field::Hole(column)),
        2 => Some(Field::Number(event.sequence())),
        n => site.and_then(|site| site.get(n - 3)).map(|text| Field::Raw(text)),
    };
    let own = |column: usize| match event.value(column) {
        Some(value) => Some(Field::Value(value)),
        None => match (Spread { reader, column, mask: event.mask(), bits: spread.get(column)? }).told() {
            Told::One(value) => Some(Field::Value(value)),
            Told::Line(..) | Told::List => Some(Field::Hole(HOLES + column)),
        },
    };
    lines.put_template(template, head, common, own);
    let first = lines.thread(event.warp(), 0);
    for lane in event.lanes() {
        lines.put_filled(out, template, |hole| match hole {
            0 => Some(Field::Number(lane.into())),
            1 => Some(Field::Number(first.wrapping_add(lane.into()))),
            hole => {
                let column = hole - HOLES;
                let bits = spread.get(column)?.get(lane as usize)?;
                Some(Field::Value(reader.typed(column, *bits)))
            }
        });
    }
}

/// How the values of lanes are told in one column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Told {
    /// All have this one.
    One(Value),
    /// The leader's, and what is added from a lane to the next; of integers and addresses.
    Line(Value, i64),
    /// No shorter way than all of them.
    List,
}

impl Spread<'_> {
    /// The values, ascending by lane.
    pub(super) fn values(&self) -> impl Iterator<Item = Value> + '_ {
        let lanes = (0..32usize).filter(|lane| self.mask >> lane & 1 == 1);
        lanes.map(|lane| self.reader.typed(self.column, self.bits[lane]))
    }

    /// The shortest way to tell them: the same for the same values, however the device has stored them.
    pub(super) fn told(&self) -> Told {
        let leader = self.mask.trailing_zeros() as usize % 32;
        let rest = self.mask & self.mask.wrapping_sub(1);
        let first = self.bits[leader];
        let value = self.reader.typed(self.column, first);
        let others = || (leader + 1..32).filter(|lane| rest >> lane & 1 == 1);
        if others().all(|lane| self.bits[lane] == first) {
            return Told::One(value);
        }
        let next = rest.trailing_zeros() as usize % 32;
        let (rise, run) = (self.bits[next].wrapping_sub(first) as i64, next as i64 - leader as i64);
        if run <= 0 || rise % run != 0 || value.to_integer().is_none() {
            return Told::List;
        }
        let step = rise / run;
        let on_line = |lane: usize| {
            self.bits[lane] == first.wrapping_add((lane as i64 - leader as i64).wrapping_mul(step) as u64)
        };
        if others().all(on_line) { Told::Line(value, step) } else { Told::List }
    }
}
