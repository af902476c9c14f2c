//! `nt-map dmat`: the densified memory access timeline, which pages a kernel touches when.
//!
//! ```text
//! 0x7f20008000  ▒▒░ ▒▒░ ▒▒░ ▒▒░      a row: pages that were touched, ranges apart from each other
//! 0x7f20000000  ░░░░░░░░░░░░░░░░     a column: so many cycles
//!               0        10000       colour: accesses in the cell, by all lanes, on a log scale
//! ```
//!
//! The trace is walked twice: which pages and times there are, then how many accesses fall in each cell. A cell is a
//! count, so that the picture is the same whatever the order of events. Lanes that took no part have no access.

mod axis;
mod choice;
mod colours;
mod gather;
mod html;
mod pages;
mod picture;
mod png;
mod scene;
mod svg;
mod tsv;

use crate::catalogue::{Catalogue, Chosen};
use crate::cli::{Dmat, DmatForm};
use crate::input::Source;
use crate::tell::Tell;
use axis::{PageAxis, TimeAxis};
use choice::Choice;
use nt_cli::Outcome;
use picture::Picture;

/// Draws what is chosen.
pub(crate) fn run(
    opts: &Dmat,
    sources: &[Source],
    catalogue: &Catalogue,
    chosen: &Chosen,
    tell: &mut Tell,
) -> anyhow::Result<Outcome> {
    let form = opts.form()?;
    if form == DmatForm::Png {
        opts.output.refuse_terminal("a PNG")?;
    }
    let choice = match Choice::of(opts, catalogue, sources, chosen)? {
        Ok(choice) => choice,
        Err(why) => {
            tell.nothing(format_args!("{why}"));
            return Ok(Outcome::Nothing);
        }
    };
    let starts = gather::starts(&choice, sources, chosen);
    let seen = gather::look(&choice, &starts, opts.page.0, sources, chosen, tell)?;
    let Some(launch) = seen.launch.clone() else {
        tell.nothing(format_args!("no access in what is chosen"));
        return Ok(match tell.outcome() {
            Outcome::Done => Outcome::Nothing,
            partial => partial,
        });
    };
    if let Some(more @ 1..) = seen.launches.checked_sub(1)
        && opts.select.launch.is_none()
    {
        tell.say(format_args!(
            "launch {} is drawn, the first of {}: `--launch` chooses another, or several together",
            launch.number,
            more + 1
        ));
    }
    let (columns, rows) = opts.bins.unwrap_or(form.bins()).0;
    let time = TimeAxis::new(seen.times, columns);
    let pages = PageAxis::new(&seen.pages, rows);
    let cells = gather::count(&choice, &starts, &time, &pages, launch.number, sources, chosen);
    let picture = Picture { choice: &choice, launch: &launch, seen: &seen, time, pages, cells };
    let bytes = match form {
        DmatForm::Svg => svg::draw(&picture.scene()).into_bytes(),
        DmatForm::Png => png::draw(&picture.scene())?,
        DmatForm::Html => html::page(&picture).into_bytes(),
        DmatForm::Tsv => tsv::lines(&picture),
    };
    opts.output.write(&bytes)?;
    // A picture says it itself.
    if form == DmatForm::Tsv {
        for granted in seen.basis.granted(|count| count.to_string()) {
            tell.say(format_args!("{granted}"));
        }
    }
    if let Some(alarm) = picture.alarm() {
        tell.say(format_args!("{alarm}"));
    }
    Ok(tell.outcome())
}
