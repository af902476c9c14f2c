//! The lines of one data frame, in any of the three forms.
//!
//! What all of them begin and end with is made once; between stand the unit, its block and warp, and the columns.

use super::columns::{Columns, FIXED, LAST, own_columns};
use super::events::{Sites, Spread, Told};
use crate::catalogue::Store;
use crate::cli::Format;
use crate::names::Names;
use crate::text::{put_hex, put_number, put_text, put_value};
use crate::walk::Origin;
use nt_trace::ntm::Unit;
use nt_trace::ntt::{Cursor, Value};
use std::sync::Arc;

/// One column of a line.
#[derive(Debug, Clone, Copy)]
pub(super) enum Field<'f> {
    /// Of a record or a cell.
    Value(Value),
    /// Values of lanes.
    Spread(Spread<'f>),
    /// The same, known to be the lowest lane's and so much more from lane to lane.
    Line(Value, i64),
    /// A key that the site tells.
    Text(&'f str),
    /// A text as it is to stand there.
    Raw(&'f [u8]),
    /// A number.
    Number(u64),
    /// A mask.
    Hex(u64),
    /// A place that is left free, by its number, to be filled for each line of a [`Template`].
    Hole(usize),
}

/// A line with places left free: what many lines have in common is made once.
#[derive(Debug, Default)]
pub(super) struct Template {
    line: Vec<u8>,
    /// Where each hole is, and its number.
    holes: Vec<(usize, usize)>,
}

/// The names of a header's columns.
pub(super) fn header(out: &mut Vec<u8>, format: Format, columns: &Columns) {
    for name in FIXED.into_iter().chain(columns.between()) {
        out.extend_from_slice(name.as_bytes());
        out.push(separator(format));
    }
    for name in &columns.own {
        put_text(out, format, &columns.shown(name));
        out.push(separator(format));
    }
    out.extend_from_slice(LAST.as_bytes());
    end_line(out, format);
}

fn separator(format: Format) -> u8 {
    if format == Format::Csv { b',' } else { b'\t' }
}

/// RFC 4180 ends lines with both.
fn end_line(out: &mut Vec<u8>, format: Format) {
    out.extend_from_slice(if format == Format::Csv { b"\r\n" } else { b"\n" });
}

/// The lines of one data frame; all that they have in common is made once.
pub(super) struct Lines {
    format: Format,
    unit: Unit,
    threads: u64,
    warps: u64,
    before: Vec<u8>,
    after: Vec<u8>,
    /// The columns of streams and of arrays with a capacity: in JSON their keys, with comma, quotes and colon.
    between: Vec<String>,
    /// Which of them is the first of arrays.
    first_of_saves: usize,
    /// For each further column of the output, which of the frame's it is.
    places: Vec<Option<usize>>,
    /// For each column of the frame, its key in JSON, with quotes and colon.
    keys: Vec<String>,
    sites: Arc<Sites>,
}

impl Lines {
    /// For a data frame of `store`, which is the origin's.
    pub(super) fn new(
        format: Format,
        columns: &Columns,
        store: Store<'_>,
        origin: &Origin<'_>,
        names: &Names,
        sites: Arc<Sites>,
    ) -> Lines {
        let launch = origin.launch.as_ref();
        let (number, name) = (launch.map(|launch| launch.number.to_string()), store.name());
        let fixed =
            [Some(origin.source.process.as_str()), number.as_deref(), Some(&names.mangled), Some(&name)];
        let (mut before, mut after) = (Vec::new(), Vec::new());
        if format == Format::Json {
            before.push(b'{');
            for (key, value) in FIXED.into_iter().zip(fixed) {
                let Some(value) = value else { continue };
                before.extend_from_slice(format!("\"{key}\":").as_bytes());
                if key == "launch" {
                    before.extend_from_slice(value.as_bytes());
                } else {
                    put_text(&mut before, format, value);
                }
                before.push(b',');
            }
            before.extend_from_slice(b"\"unit\":");
            after.extend_from_slice(b"},\"demangled\":");
            put_text(&mut after, format, &names.demangled);
            after.push(b'}');
        } else {
            for value in fixed {
                match value {
                    Some(value) => put_text(&mut before, format, value),
                    None => put_nothing(&mut before, format),
                }
                before.push(separator(format));
            }
            after.push(separator(format));
            put_text(&mut after, format, &names.demangled);
        }
        end_line(&mut after, format);
        let block = launch.map_or([1; 3], |launch| launch.block);
        let threads = block.iter().fold(1, |n: u64, &d| n.saturating_mul(u64::from(d))).max(1);
        let own = own_columns(store);
        let key = |(i, name): (usize, &String)| {
            format!("{}{}:", if i == 0 { "" } else { "," }, nt_diag::json_escape(name))
        };
        Lines {
            format,
            unit: store.unit(),
            threads,
            warps: threads.div_ceil(32),
            before,
            after,
            between: columns.between().map(|name| format!(",\"{name}\":")).collect(),
            first_of_saves: columns.first_of_saves(),
            places: columns.own.iter().map(|name| own.iter().position(|column| column == name)).collect(),
            keys: own.iter().enumerate().map(key).collect(),
            sites,
        }
    }

    /// How many columns the data frame has.
    pub(super) fn own(&self) -> usize {
        self.keys.len()
    }

    /// What lines call a cursor of an array with a capacity: in JSON both are texts.
    pub(super) fn cursor(&self, cursor: Cursor) -> &'static [u8] {
        match (cursor, self.format) {
            (Cursor::Own, Format::Json) => b"\"0\"",
            (Cursor::Own, Format::Tsv | Format::Csv) => b"0",
            (Cursor::Other, Format::Json) => b"\"other\"",
            (Cursor::Other, Format::Tsv | Format::Csv) => b"other",
        }
    }

    /// What lines say of the kernel's sites.
    pub(super) fn sites(&self) -> &Sites {
        &self.sites
    }

    /// The number of a lane of a warp among the threads of the launch.
    pub(super) fn thread(&self, warp: u64, lane: u32) -> u64 {
        let (block, warp) = (warp / self.warps, warp % self.warps);
        block.wrapping_mul(self.threads).wrapping_add(warp * 32 + u64::from(lane))
    }

    /// Appends the line of one unit, whose column `n` is `field(n)`.
    pub(super) fn put<'f>(&self, out: &mut Vec<u8>, unit: u64, field: impl Fn(usize) -> Option<Field<'f>>) {
        self.put_head(out, unit);
        self.put_rest(out, &mut Vec::new(), |_| None, field);
    }

    /// The same of a save of an array with a capacity.
    pub(super) fn put_save<'f>(
        &self,
        out: &mut Vec<u8>,
        head: &[u8],
        cursor: Option<&'f [u8]>,
        sequence: Option<u64>,
        field: impl Fn(usize) -> Option<Field<'f>>,
    ) {
        let between = |column: usize| match column.checked_sub(self.first_of_saves)? {
            0 => cursor.map(Field::Raw),
            _ => sequence.map(Field::Number),
        };
        self.put_event(out, head, between, field);
    }

    /// The same, with the columns that streams have. `head` is what [`Self::put_head`] makes of the unit.
    pub(super) fn put_event<'f>(
        &self,
        out: &mut Vec<u8>,
        head: &[u8],
        event: impl Fn(usize) -> Option<Field<'f>>,
        field: impl Fn(usize) -> Option<Field<'f>>,
    ) {
        out.extend_from_slice(head);
        self.put_rest(out, &mut Vec::new(), event, field);
    }

    /// The beginning of the lines of a unit.
    pub(super) fn put_head(&self, out: &mut Vec<u8>, unit: u64) {
        let (block, warp) = self.place(unit);
        out.extend_from_slice(&self.before);
        put_number(out, unit);
        if self.format == Format::Json {
            for (key, number) in [(&b",\"block\":"[..], block), (b",\"warp\":", warp)] {
                if let Some(number) = number {
                    out.extend_from_slice(key);
                    put_number(out, number);
                }
            }
        } else {
            for number in [block, warp] {
                out.push(separator(self.format));
                match number {
                    Some(number) => put_number(out, number),
                    None => put_nothing(out, self.format),
                }
            }
        }
    }

    /// Makes a template of it, in place of what is there.
    pub(super) fn put_template<'f>(
        &self,
        template: &mut Template,
        head: &[u8],
        event: impl Fn(usize) -> Option<Field<'f>>,
        field: impl Fn(usize) -> Option<Field<'f>>,
    ) {
        template.line.clear();
        template.holes.clear();
        template.line.extend_from_slice(head);
        self.put_rest(&mut template.line, &mut template.holes, event, field);
    }

    /// Appends a line of a template, whose hole `n` is `field(n)`.
    pub(super) fn put_filled<'f>(
        &self,
        out: &mut Vec<u8>,
        template: &Template,
        field: impl Fn(usize) -> Option<Field<'f>>,
    ) {
        let mut from = 0;
        for &(at, hole) in &template.holes {
            out.extend_from_slice(template.line.get(from..at).unwrap_or_default());
            self.put_field(out, &mut Vec::new(), field(hole));
            from = at;
        }
        out.extend_from_slice(template.line.get(from..).unwrap_or_default());
    }

    /// All behind the head.
    fn put_rest<'f>(
        &self,
        out: &mut Vec<u8>,
        holes: &mut Vec<(usize, usize)>,
        event: impl Fn(usize) -> Option<Field<'f>>,
        field: impl Fn(usize) -> Option<Field<'f>>,
    ) {
        if self.format == Format::Json {
            for (n, key) in self.between.iter().enumerate() {
                if let Some(field) = event(n) {
                    out.extend_from_slice(key.as_bytes());
                    self.put_field(out, holes, Some(field));
                }
            }
            out.extend_from_slice(b",\"record\":{");
            for (n, key) in self.keys.iter().enumerate() {
                out.extend_from_slice(key.as_bytes());
                self.put_field(out, holes, field(n));
            }
        } else {
            for n in 0..self.between.len() {
                out.push(separator(self.format));
                self.put_field(out, holes, event(n));
            }
            for place in &self.places {
                out.push(separator(self.format));
                self.put_field(out, holes, place.and_then(&field));
            }
        }
        out.extend_from_slice(&self.after);
    }

    fn put_field(&self, out: &mut Vec<u8>, holes: &mut Vec<(usize, usize)>, field: Option<Field<'_>>) {
        match field {
            Some(Field::Hole(number)) => holes.push((out.len(), number)),
            Some(Field::Value(value)) => put_value(out, self.format, value),
            Some(Field::Spread(spread)) => self.put_spread(out, spread),
            Some(Field::Line(first, step)) => self.put_line(out, first, step),
            Some(Field::Text(text)) => put_text(out, self.format, text),
            Some(Field::Raw(text)) => out.extend_from_slice(text),
            Some(Field::Number(number)) => put_number(out, number),
            Some(Field::Hex(number)) => put_hex(out, self.format, number),
            None if self.format == Format::Json => out.extend_from_slice(b"null"),
            None => put_nothing(out, self.format),
        }
    }

    /// `4`, `0x7f00+4`, `1,5,2`; in JSON `4`, `{"first":…,"step":4}`, `[1,5,2]`.
    fn put_spread(&self, out: &mut Vec<u8>, spread: Spread<'_>) {
        match spread.told() {
            Told::One(value) => put_value(out, self.format, value),
            Told::Line(first, step) => self.put_line(out, first, step),
            Told::List => {
                // Commas separate fields in CSV.
                let (open, close) = match self.format {
                    Format::Json => (&b"["[..], &b"]"[..]),
                    Format::Csv => (&b"\""[..], &b"\""[..]),
                    Format::Tsv => (&b""[..], &b""[..]),
                };
                out.extend_from_slice(open);
                for (i, value) in spread.values().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    put_value(out, self.format, value);
                }
                out.extend_from_slice(close);
            }
        }
    }

    fn put_line(&self, out: &mut Vec<u8>, first: Value, step: i64) {
        let json = self.format == Format::Json;
        if json {
            out.extend_from_slice(b"{\"first\":");
        }
        put_value(out, self.format, first);
        out.extend_from_slice(if json {
            b",\"step\":"
        } else if step < 0 {
            b""
        } else {
            b"+"
        });
        put_value(out, self.format, Value::Signed(step));
        if json {
            out.push(b'}');
        }
    }

    /// The block of a unit, and the warp in it, as far as it has them.
    fn place(&self, unit: u64) -> (Option<u64>, Option<u64>) {
        match self.unit {
            Unit::Thread => (Some(unit / self.threads), Some(unit % self.threads / 32)),
            Unit::Warp => (Some(unit / self.warps), Some(unit % self.warps)),
            Unit::Block => (Some(unit), None),
            Unit::Sm => (None, None),
        }
    }
}

fn put_nothing(out: &mut Vec<u8>, format: Format) {
    if format == Format::Tsv {
        out.push(b'-');
    }
}
