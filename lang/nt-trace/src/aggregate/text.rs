//! The text of aggregations: rows as bpftrace has them, spreads as a table a kernel.

use super::{Aggregates, Part, Shape, Spread, Sums};
use crate::ntm::{KeyKind, Unit};
use crate::ntt::Value;
use std::fmt::Write;

/// How kernels and functions, whose names in a trace are mangled, are to be called.
type Rename<'n> = &'n dyn Fn(&str) -> String;

impl Aggregates {
    /// The text, of each table the largest `most` rows at most. `rename` says how a kernel or function is to be called.
    ///
    /// It ends in a line feed, unless it is empty.
    pub fn text(&self, most: usize, rename: &dyn Fn(&str) -> String) -> String {
        let mut out = String::new();
        for (shape, sums) in &self.tables {
            if !out.is_empty() {
                out.push('\n');
            }
            if shape.unit == Unit::Sm {
                rows(&mut out, shape, sums, most, rename);
            } else {
                spreads(&mut out, shape, sums, most, rename);
            }
            if sums.dropped > 0 {
                let plural = if sums.dropped == 1 { "" } else { "s" };
                let _ = writeln!(out, "dropped: {} {}{plural}", sums.dropped, noun(shape.unit));
            }
        }
        out
    }
}

/// Appends the rows of a table. Writing to a String cannot fail, here and below.
fn rows(out: &mut String, shape: &Shape, sums: &Sums, most: usize, rename: Rename<'_>) {
    let name = &shape.name;
    if sums.rows.is_empty() {
        let _ = writeln!(out, "@{name}: no site");
        return;
    }
    if shape.keys.is_empty() {
        let _ = writeln!(out, "@{name}: {}", sums.total());
        return;
    }
    let (shown, left) = largest(sums.rows.iter().map(|(parts, &value)| (value, parts)), most);
    if let Some(left) = left {
        let _ = writeln!(out, "@{name}: {left}");
    }
    for (value, parts) in shown {
        let parts: Vec<String> = parts
            .iter()
            .zip(&shape.keys)
            .map(|(part, key)| match part {
                Part::Number(number) => number.to_string(),
                Part::Text(text) => show(&key.name, text, rename),
            })
            .collect();
        let _ = writeln!(out, "@{name}[{}]: {value}", parts.join(", "));
    }
}

/// Appends the spread of a table over units, a line a kernel (and what else the site tells).
fn spreads(out: &mut String, shape: &Shape, sums: &Sums, most: usize, rename: Rename<'_>) {
    let keys: Vec<&str> = shape.keys.iter().map(|key| key.name.as_str()).collect();
    let launches = if sums.launches == 1 { "launch" } else { "launches" };
    let _ = writeln!(
        out,
        "@{}[{}]: {} in {} {launches}",
        shape.name,
        keys.join(", "),
        sums.total(),
        sums.launches
    );
    let (shown, left) = largest(sums.spreads.iter().map(|(of, spread)| (spread.total, (of, spread))), most);
    if let Some(left) = left {
        let _ = writeln!(out, "  {left}");
    }
    if shown.is_empty() {
        return;
    }
    let sites = || shape.keys.iter().filter(|key| key.kind == KeyKind::Site).map(|key| key.name.as_str());
    let least = format!("a {}: least", shape.unit.word());
    let mut heads: Vec<String> = sites().map(str::to_owned).collect();
    heads.push("kernel".to_owned());
    let texts = heads.len();
    heads.extend(["launches", "total", "a launch", &least, "median", "most"].map(str::to_owned));
    let mut table = vec![heads];
    for (total, ((cell, kernel), spread)) in shown {
        let mut line: Vec<String> = sites().zip(cell).map(|(key, text)| show(key, text, rename)).collect();
        line.push(show("kernel", kernel, rename));
        line.extend([
            spread.launches.len().to_string(),
            total.to_string(),
            halves(spread.twice_the_median()),
        ]);
        line.extend(of_units(spread));
        table.push(line);
    }
    align(out, &table, texts);
}

/// Least, median and most.
fn of_units(spread: &Spread) -> [String; 3] {
    let nothing = || "-".to_owned();
    let (least, most) = spread.units.ends().map_or_else(
        || (nothing(), nothing()),
        |(least, most): (Value, Value)| (least.to_string(), most.to_string()),
    );
    [least, spread.units.median().map_or_else(nothing, |median| format!("{median:.0}")), most]
}

/// The largest `most` of those that are not 0, the largest last, those of one value as they came; and a word on what
/// was left out.
fn largest<R>(rows: impl Iterator<Item = (i128, R)>, most: usize) -> (Vec<(i128, R)>, Option<String>) {
    let (mut rows, zeros): (Vec<_>, Vec<_>) = rows.partition(|&(value, _)| value != 0);
    rows.sort_by_key(|&(value, _)| value);
    let hidden = rows.len().saturating_sub(most);
    let sum: i128 = rows.drain(..hidden).map(|(value, _)| value).sum();
    let plural = |n: usize| if n == 1 { "row" } else { "rows" };
    let mut left = Vec::new();
    if hidden > 0 {
        left.push(format!("{hidden} smaller {}, together {sum}", plural(hidden)));
    }
    if !zeros.is_empty() {
        left.push(format!("{} {} of 0", zeros.len(), plural(zeros.len())));
    }
    (rows, (!left.is_empty()).then(|| left.join("; ")))
}

/// A key's text on one line.
fn show(key: &str, text: &str, rename: Rename<'_>) -> String {
    let text = if matches!(key, "kernel" | "func") { rename(text) } else { text.to_owned() };
    if !text.contains(char::is_control) {
        return text;
    }
    let mut shown = String::new();
    for c in text.chars() {
        if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

/// Half of a whole number.
fn halves(twice: i128) -> String {
    let sign = if twice < 0 { "-" } else { "" };
    let half = if twice % 2 == 0 { "" } else { ".5" };
    format!("{sign}{}{half}", twice.unsigned_abs() / 2)
}

fn noun(unit: Unit) -> &'static str {
    match unit {
        Unit::Sm => "SM",
        Unit::Thread | Unit::Warp | Unit::Block => unit.word(),
    }
}

/// Appends lines with their columns aligned: the first `texts` to the left, the others to the right.
fn align(out: &mut String, lines: &[Vec<String>], texts: usize) {
    let columns = lines.first().map_or(0, Vec::len);
    let width = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
    for line in lines {
        let mut text = String::new();
        for (column, (cell, &width)) in line.iter().zip(&widths).enumerate() {
            let _ = if column < texts {
                write!(text, "  {cell:<width$}")
            } else {
                write!(text, "  {cell:>width$}")
            };
        }
        let _ = writeln!(out, "{}", text.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_exact() {
        let check = |twice: i128, expected: &str| assert_eq!(halves(twice), expected);
        check(0, "0");
        check(1, "0.5");
        check(-1, "-0.5");
        check(-6, "-3");
        check(-7, "-3.5");
        check((1 << 70) + 1, "590295810358705651712.5");
    }

    #[test]
    fn the_largest_are_last_and_nothing_is_left_out_in_silence() {
        let rows = || [(5, "a"), (9, "b"), (9, "c"), (-3, "n"), (0, "z")].into_iter();
        let check = |most: usize, expected: &[(i128, &str)], left: &str| {
            assert_eq!(largest(rows(), most), (expected.to_vec(), Some(left.to_owned())), "{most}");
        };
        check(4, &[(-3, "n"), (5, "a"), (9, "b"), (9, "c")], "1 row of 0");
        check(2, &[(9, "b"), (9, "c")], "2 smaller rows, together 2; 1 row of 0");
        check(0, &[], "4 smaller rows, together 20; 1 row of 0");
        assert_eq!(largest([(1, "a")].into_iter(), 40), (vec![(1, "a")], None));
    }
}
