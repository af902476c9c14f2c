//! One page that needs nothing else: the grid as data, and a script that draws it, zooms, and tells the cell under the
//! pointer (`page.html`).

use super::colours::{STEPS, colour, css};
use super::picture::{Picture, bytes};
use super::svg::escape;
use nt_diag::json_escape;
use std::fmt::Write;

/// The page, with two places to be filled.
const PAGE: &str = include_str!("page.html");

/// The whole file.
pub(super) fn page(picture: &Picture<'_>) -> String {
    // In a script `</` would end it.
    let data = data(picture).replace('<', "\\u003c");
    let title = escape(&format!("Memory accesses of {}", picture.choice.names.demangled));
    PAGE.replacen("{TITLE}", &title, 1).replacen("{DATA}", &data, 1)
}

/// The grid and all that is said of it, as JSON. Addresses are texts: they may have more than 53 bits.
fn data(picture: &Picture<'_>) -> String {
    let (time, axis) = (&picture.time, &picture.pages);
    let list = |texts: &[String]| texts.iter().map(|text| json_escape(text)).collect::<Vec<_>>().join(",");
    let colours: Vec<String> = (0..STEPS).map(|step| css(colour(step))).collect();
    let mut out = String::from("{");
    let mut put = |what: std::fmt::Arguments<'_>| {
        let _ = out.write_fmt(what);
    };
    put(format_args!("\"heading\":[{}],", list(&picture.heading())));
    put(format_args!("\"scale\":{},", json_escape(&picture.scale())));
    put(format_args!("\"basis\":[{}],", list(&picture.basis())));
    put(format_args!("\"timeTitle\":{},", json_escape(picture.time_title())));
    put(format_args!("\"alarm\":{},", json_escape(&picture.alarm().unwrap_or_default())));
    put(format_args!("\"colours\":[{}],", list(&colours)));
    put(format_args!(
        "\"time\":{{\"first\":{},\"width\":{},\"columns\":{}}},",
        time.first, time.width, time.columns
    ));
    put(format_args!("\"page\":{},", json_escape(&bytes(axis.page()))));
    put(format_args!("\"most\":{},\"ranges\":[", picture.most()));
    for (i, (range, [address, size])) in axis.ranges.iter().zip(picture.range_names()).enumerate() {
        let comma = if i == 0 { "" } else { "," };
        put(format_args!(
            "{comma}{{\"row\":{},\"rows\":{},\"address\":\"{address}\",\"size\":\"{size}\"}}",
            range.row, range.rows
        ));
    }
    put(format_args!("],\"rows\":["));
    for row in 0..axis.rows {
        let Some(about) = picture.row(row) else { continue };
        let comma = if row == 0 { "" } else { "," };
        let end = (about.last << axis.bits).saturating_add(axis.page());
        put(format_args!("{comma}[\"{:#x}\",\"{end:#x}\",{}]", about.first << axis.bits, about.pages));
    }
    // A row is pairs of how many columns to go on and a count.
    put(format_args!("],\"cells\":["));
    for (row, cells) in picture.cells.chunks(time.columns).enumerate() {
        put(format_args!("{}[", if row == 0 { "" } else { "," }));
        let mut last = 0;
        for (column, count) in cells.iter().enumerate().filter(|(_, count)| **count > 0) {
            let comma = if last == 0 { "" } else { "," };
            put(format_args!("{comma}{},{count}", column + 1 - last));
            last = column + 1;
        }
        put(format_args!("]"));
    }
    put(format_args!("]}}"));
    out
}
