//! The layout of a picture: where grid, axes, names and legend stand, and what is stated beside them.

use super::axis::{PageAxis, TimeAxis};
use super::choice::Choice;
use super::colours::{Rgb, STEPS, colour, step};
use super::gather::Seen;
use super::scene::{Anchor, Item, Run, Scene, Size};
use nt_wire::frame::Launch;

/// A picture that is known in all but its form.
pub(super) struct Picture<'p> {
    pub(super) choice: &'p Choice,
    pub(super) launch: &'p Launch,
    pub(super) seen: &'p Seen,
    pub(super) time: TimeAxis,
    pub(super) pages: PageAxis,
    /// Row by row, upwards.
    pub(super) cells: Vec<u64>,
}

/// The pages of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) first: u64,
    pub(super) last: u64,
    /// How many were touched.
    pub(super) pages: u64,
}

/// About so large is the grid.
const GRID: (u32, u32) = (1000, 600);
const LEFT: u32 = 250;
const TOP: u32 = 108;
const RIGHT: u32 = 150;
/// Pixels between two ranges.
const BETWEEN: u32 = 6;
/// A line of a range's name.
const NAME: u32 = 15;

/// Where a range stands.
#[derive(Debug, Clone, Copy)]
struct Place {
    top: u32,
    tall: u32,
    name: u32,
}

const INK: Rgb = [0x22, 0x22, 0x22];
const FAINT: Rgb = [0x66, 0x66, 0x66];
const PAPER: Rgb = [0xf6, 0xf6, 0xf4];
const ALARM: Rgb = [0xb2, 0x18, 0x2b];

impl Picture<'_> {
    /// The most accesses in a cell.
    pub(super) fn most(&self) -> u64 {
        self.cells.iter().copied().max().unwrap_or_default()
    }

    /// What a row is.
    pub(super) fn row(&self, row: usize) -> Option<Row> {
        let &(first, last) = self.pages.ends.get(row)?;
        let range =
            self.pages.ranges.iter().find(|range| (range.row..range.row + range.rows).contains(&row))?;
        let pages = (range.pages - (row - range.row) as u64 * self.pages.each).min(self.pages.each);
        Some(Row { first, last, pages })
    }

    /// Lines above the grid: what was launched, and what of it is drawn.
    pub(super) fn heading(&self) -> [String; 3] {
        let three = |[x, y, z]: [u32; 3]| match (y, z) {
            (1, 1) => format!("{x}"),
            (_, 1) => format!("{x}x{y}"),
            _ => format!("{x}x{y}x{z}"),
        };
        let Picture { choice, launch, seen, .. } = self;
        let launches = match seen.launches {
            more @ 2.. if choice.together => format!("{more} launches together, the first {}", launch.number),
            _ => format!("launch {}", launch.number),
        };
        let only =
            if choice.only.is_empty() { String::new() } else { format!(", {} only", choice.only.join(", ")) };
        [
            choice.names.demangled.clone(),
            format!(
                "{launches}, grid {}, block {}, sm_{}, process {}, map {}",
                three(launch.grid),
                three(launch.block),
                seen.arch,
                choice.process,
                choice.map
            ),
            format!(
                "{} accesses by lanes in {} events{only}; {} pages of {} in {} ranges",
                grouped(seen.accesses),
                grouped(seen.events),
                grouped(self.pages.pages),
                bytes(self.pages.page()),
                self.pages.ranges.len()
            ),
        ]
    }

    /// What the axis of time counts.
    pub(super) fn time_title(&self) -> &'static str {
        if self.seen.aligned {
            "cycles since the first warp of the same multiprocessor started"
        } else {
            "cycles since the warp's own start"
        }
    }

    /// What is wrong with the picture, if anything is.
    pub(super) fn alarm(&self) -> Option<String> {
        let Seen { dropped, wrapped, .. } = *self.seen;
        let lost =
            (dropped > 0).then(|| format!("{} events were dropped and are missing here", grouped(dropped)));
        let long = wrapped.then(|| "times may have wrapped, the launch was long".to_owned());
        let all: Vec<String> = lost.into_iter().chain(long).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// How the addresses are had, and what of that is taken for granted.
    pub(super) fn basis(&self) -> Vec<String> {
        let basis = &self.seen.basis;
        if basis.is_empty() {
            return Vec::new();
        }
        let how = format!("addresses of accesses: {}", basis.how(grouped));
        std::iter::once(how).chain(basis.granted(grouped)).collect()
    }

    /// What a cell is.
    pub(super) fn scale(&self) -> String {
        let pages = match self.pages.each {
            1 => "1 touched page".to_owned(),
            each => format!("up to {each} touched pages"),
        };
        let cycles = if self.time.width == 1 { "cycle" } else { "cycles" };
        format!("a row: {pages}; a column: {} {cycles}", grouped(self.time.width))
    }

    /// A range's address and size.
    pub(super) fn range_names(&self) -> Vec<[String; 2]> {
        let axis = &self.pages;
        let name = |range: &super::axis::Range| {
            let span = (range.last - range.first).saturating_add(1).saturating_mul(axis.page());
            let touched = if range.pages == 1 {
                "1 page".to_owned()
            } else {
                format!("{} pages", grouped(range.pages))
            };
            [format!("{:#x}", range.first << axis.bits), format!("{}, {touched}", bytes(span))]
        };
        axis.ranges.iter().map(name).collect()
    }

    /// Where each range stands: its upper edge and its height, and the foot of its name; ranges are at least as far from
    /// each other as their names are high. Behind the last, the height of all.
    fn places(&self, cell: u32) -> (Vec<Place>, u32) {
        let mut y = TOP;
        let mut places = Vec::new();
        // Upwards: the lowest range stands lowest.
        for range in self.pages.ranges.iter().rev() {
            let tall = range.rows as u32 * cell;
            let slot = tall.max(NAME);
            places.push(Place { top: y + (slot - tall) / 2, tall, name: y + slot });
            y += slot + BETWEEN;
        }
        places.reverse();
        (places, y.saturating_sub(BETWEEN).max(TOP + 1) - TOP)
    }

    /// The whole picture.
    pub(super) fn scene(&self) -> Scene {
        let (columns, rows) = (self.time.columns as u32, self.pages.rows as u32);
        let cell = ((GRID.0 / columns.max(1)).max(1), (GRID.1 / rows.max(1)).clamp(1, 40));
        let width = columns * cell.0;
        let (places, height) = self.places(cell.1);
        // The legend needs more than few rows do.
        let below = TOP + height.max(190);
        let basis = self.basis();
        let mut scene = Scene {
            width: LEFT + width.max(620) + RIGHT,
            height: below + 96 + basis.len() as u32 * 18,
            title: format!("Memory accesses of {} over time", self.choice.names.demangled),
            items: Vec::new(),
        };
        let mut put = |item: Item| scene.items.push(item);
        let [title, launch, what] = self.heading();
        put(text(
            20,
            34,
            fit(&title, LEFT + width.max(620) + RIGHT - 40, Size::Title),
            Size::Title,
            Anchor::Start,
            INK,
        ));
        put(text(20, 60, launch, Size::Normal, Anchor::Start, FAINT));
        put(text(20, 82, what, Size::Normal, Anchor::Start, FAINT));

        let mut runs = Vec::new();
        let most = self.most();
        let ranges = self.pages.ranges.iter().zip(places).zip(self.range_names());
        for ((range, Place { top, tall, name }), [address, size]) in ranges {
            put(Item::Rect { x: LEFT, y: top, width, height: tall, fill: PAPER });
            for (row, up) in (range.row..range.row + range.rows).zip(1..) {
                let cells = self.cells.chunks(self.time.columns).nth(row).unwrap_or_default();
                put_runs(&mut runs, cells, most, top + tall - up * cell.1);
            }
            put(Item::Line { from: (LEFT - 1, top), to: (LEFT - 1, top + tall - 1), stroke: FAINT });
            let x = LEFT - 12;
            if tall >= 2 * NAME {
                put(text(x, name - NAME, address, Size::Small, Anchor::End, INK));
                put(text(x, name - 2, size, Size::Small, Anchor::End, FAINT));
            } else {
                let size = size.split_once(',').map_or(size.as_str(), |(size, _)| size);
                put(text(x, name - 3, format!("{address}, {size}"), Size::Small, Anchor::End, INK));
            }
        }
        runs.sort_unstable();
        put(Item::Cells { x: LEFT, cell, runs });

        let foot = TOP + height + 4;
        put(Item::Line { from: (LEFT, foot), to: (LEFT + width - 1, foot), stroke: FAINT });
        for (tick, name) in ticks(&self.time) {
            let x =
                LEFT + ((tick - self.time.first) as f64 / self.time.width as f64 * f64::from(cell.0)) as u32;
            put(Item::Line { from: (x, foot), to: (x, foot + 6), stroke: FAINT });
            put(text(x, foot + 21, name, Size::Small, Anchor::Middle, INK));
        }
        put(text(
            LEFT + width / 2,
            foot + 44,
            self.time_title().to_owned(),
            Size::Normal,
            Anchor::Middle,
            INK,
        ));
        put(text(20, below + 84, self.scale(), Size::Small, Anchor::Start, FAINT));
        if let Some(alarm) = self.alarm() {
            let x = LEFT + width.max(620) + RIGHT - 20;
            put(text(x, below + 84, alarm, Size::Small, Anchor::End, ALARM));
        }
        for (line, y) in basis.into_iter().zip((below + 102..).step_by(18)) {
            put(text(20, y, line, Size::Small, Anchor::Start, FAINT));
        }
        legend(&mut put, LEFT + width + 28, TOP, most);
        scene
    }
}

/// The steps of colour beside the numbers that they stand for.
fn legend(put: &mut impl FnMut(Item), x: u32, y: u32, most: u64) {
    put(text(x, y + 10, "accesses".to_owned(), Size::Small, Anchor::Start, INK));
    put(text(x, y + 24, "in a cell,".to_owned(), Size::Small, Anchor::Start, INK));
    put(text(x, y + 38, "log scale".to_owned(), Size::Small, Anchor::Start, INK));
    let (y, each) = (y + 54, 4);
    for step in 0..STEPS {
        put(Item::Rect { x, y: y + (STEPS - 1 - step) * each, width: 16, height: each, fill: colour(step) });
    }
    let tall = STEPS * each;
    let mut mark = |count: u64, at: u32| {
        put(Item::Line { from: (x + 16, at), to: (x + 20, at), stroke: FAINT });
        put(text(x + 25, at + 4, grouped(count), Size::Small, Anchor::Start, INK));
    };
    mark(most.max(1), y);
    if most <= 1 {
        return;
    }
    mark(1, y + tall - 1);
    let mut power = 10;
    while power < most {
        let share = (power as f64).ln() / (most as f64).ln();
        let at = y + tall - 1 - (share * f64::from(tall - 1)) as u32;
        // Not upon the most.
        if at > y + 11 && at + 11 < y + tall {
            mark(power, at);
        }
        power = power.saturating_mul(10);
    }
}

/// The cells of a row as runs of one colour.
fn put_runs(runs: &mut Vec<Run>, cells: &[u64], most: u64, y: u32) {
    let mut open: Option<Run> = None;
    for (first, &count) in (0u32..).zip(cells) {
        let step = step(count, most);
        match (&mut open, step) {
            (Some(run), Some(step)) if run.step == step => run.cells += 1,
            (_, step) => {
                runs.extend(open.take());
                open = step.map(|step| Run { step, y, first, cells: 1 });
            }
        }
    }
    runs.extend(open);
}

/// Round numbers along the axis of time, a handful.
fn ticks(time: &TimeAxis) -> Vec<(u64, String)> {
    let length = time.width.saturating_mul(time.columns as u64);
    let step = step_of_ticks(length);
    let first = time.first.div_ceil(step).saturating_mul(step);
    let last = time.first.saturating_add(length);
    (0..=16u64)
        .map_while(|n| first.checked_add(n.checked_mul(step)?).filter(|&tick| tick <= last))
        .map(|tick| (tick, grouped(tick)))
        .collect()
}

/// 1, 2 or 5 times a power of ten, of which at most eight make up the length.
fn step_of_ticks(length: u64) -> u64 {
    let mut decade = 1u64;
    loop {
        let steps = [1, 2, 5].map(|factor| decade.saturating_mul(factor));
        if let Some(step) = steps.into_iter().find(|step| length / step <= 8) {
            return step;
        }
        decade = decade.saturating_mul(10);
    }
}

fn text(x: u32, y: u32, text: String, size: Size, anchor: Anchor, fill: Rgb) -> Item {
    Item::Text { x, y, text, size, anchor, fill }
}

/// A text that is no wider than so many pixels.
fn fit(text: &str, width: u32, size: Size) -> String {
    let room = (width / size.advance()) as usize;
    if text.chars().count() <= room {
        return text.to_owned();
    }
    text.chars().take(room.saturating_sub(3)).chain("...".chars()).collect()
}

/// Digits in threes.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// `4 KiB`, `2 MiB`, `1.5 MiB`.
pub(super) fn bytes(number: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let power = (number.max(1).ilog2() / 10) as usize;
    let unit = units.get(power).copied().unwrap_or("EiB");
    let value = number as f64 / f64::from(1u32 << 10).powi(power as i32);
    if value.fract() == 0.0 { format!("{value:.0} {unit}") } else { format!("{value:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1 000", "1 234 567"]);
        let sizes = [0, 1023, 4096, 3 << 19, u64::MAX].map(bytes);
        assert_eq!(sizes, ["0 B", "1023 B", "4 KiB", "1.5 MiB", "16 EiB"]);
    }

    #[test]
    fn ticks_are_round_and_few() {
        let check = |first, width, columns, expected: &[u64]| {
            let ticks = ticks(&TimeAxis { first, width, columns });
            assert_eq!(ticks.iter().map(|(tick, _)| *tick).collect::<Vec<_>>(), expected);
        };
        check(0, 1, 1, &[0, 1]);
        check(0, 1, 10, &[0, 2, 4, 6, 8, 10]);
        check(0, 30, 400, &[0, 2000, 4000, 6000, 8000, 10000, 12000]);
        check(95, 1, 10, &[96, 98, 100, 102, 104]);
        check(
            0,
            u64::MAX,
            400,
            &[0, 5_000_000_000_000_000_000, 10_000_000_000_000_000_000, 15_000_000_000_000_000_000],
        );
    }
}
