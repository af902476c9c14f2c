//! The report's text. Every number is stated with its unit and what it is a number of.

use super::blocks::{Measures, Slots, Spread};
use super::events::{Events, Loss};
use super::saves::Taken;
use super::{Group, Kind, OneLaunch};
use crate::basis::Basis;
use crate::names::{Names, place};
use nt_trace::Distribution;
use nt_trace::ntm::{Kernel, Map, Policy, Resources, Type};
use nt_wire::frame::Launch;
use std::fmt::Write;

/// The whole report; of sites, as many rows a group.
pub(crate) fn report(groups: &[Group], rows: usize) -> String {
    let mut out = String::new();
    for group in groups {
        if !out.is_empty() {
            out.push('\n');
        }
        one(&mut out, group, rows);
    }
    compare(&mut out, groups);
    out
}

/// Appends a line `  name  text`. Writing to a String cannot fail.
fn item(out: &mut String, name: &str, text: std::fmt::Arguments<'_>) {
    let _ = writeln!(out, "  {name:<12}{text}");
}

fn one(out: &mut String, group: &Group, rows: usize) {
    let names = Names::of(&group.kernel.name);
    let _ = writeln!(out, "kernel {}", names.mangled);
    if names.demangled != names.mangled {
        item(out, "", format_args!("{}", names.demangled));
    }
    let Some(map) = group.kernel.maps().get(group.index) else { return };
    let probe = group.kernel.manifest.as_ref().ok().and_then(Option::as_ref).map_or("", |m| &m.probe.name);
    let threads = threads(&group.launch);
    item(
        out,
        "of",
        format_args!(
            "process {}, sm_{}, grid {}, block {} ({threads} threads, {} warps), map {} of probe {probe}",
            group.processes.join(" "),
            group.kernel.arch,
            dimensions(group.launch.grid),
            dimensions(group.launch.block),
            threads.div_ceil(32),
            map.name,
        ),
    );
    if let Some(kernel) = group.kernel.probed() {
        cost(out, kernel);
    }
    match &group.kind {
        Kind::Blocks(_, launches) => blocks(out, group, launches),
        Kind::Events(all) => events(out, group, all, rows),
        Kind::Saves(taken, columns) => saves(out, group, map, taken, columns),
        Kind::Columns(columns) => spread(out, group, map, columns),
    }
}

/// What the probe took, where an assembler said so.
fn cost(out: &mut String, kernel: &Kernel) {
    let (Some(before), Some(after)) = (kernel.before, kernel.after) else { return };
    let spills = |r: Resources| r.spill_stores + r.spill_loads;
    let spilled = match (spills(before), spills(after)) {
        (0, 0) => "no spills".to_owned(),
        (before, after) => format!("{before} bytes of spills without the probe, {after} with it"),
    };
    item(
        out,
        "registers",
        format_args!("{} without the probe, {} with it; {spilled}", before.registers, after.registers),
    );
}

fn blocks(out: &mut String, group: &Group, launches: &[Measures]) {
    let grid: u64 = group.launch.grid.iter().map(|&d| u64::from(d)).product();
    let warps = group.units.checked_div(grid).unwrap_or_default();
    item(out, "launches", format_args!("{}; numbers are medians over them", launches.len()));
    item(
        out,
        "recorded",
        format_args!(
            "{} of {grid} blocks a launch, {} of {} warps",
            count(median(launches, |m| m.blocks as f64)),
            count(median(launches, |m| m.warps as f64)),
            grid.saturating_mul(warps),
        ),
    );
    missing(out, group, launches);
    let torn: u64 = launches.iter().map(|m| m.torn).sum();
    if torn > 0 {
        item(out, "", format_args!("{torn} blocks whose warps name two SMs are left out"));
    }
    let longest = median(launches, |m| m.span.max as f64);
    item(out, "time", format_args!("{}", time(group, longest)));
    wrapped(out, group);
    item(
        out,
        "SMs",
        format_args!(
            "{} of {} ran blocks; {} blocks an SM; at most {} at once on one",
            count(median(launches, |m| m.sms as f64)),
            group.launch.sms,
            range(launches, |m| m.blocks_of_sm),
            count(median(launches, |m| m.resident as f64)),
        ),
    );
    item(
        out,
        "span",
        format_args!(
            "{} cycles an SM, from its first start to its last end, on its own clock",
            range(launches, |m| m.span)
        ),
    );
    item(
        out,
        "running",
        format_args!("{} cycles an SM, in which at least one block ran", range(launches, |m| m.running)),
    );
    item(
        out,
        "block",
        format_args!(
            "{} cycles, the median block; {} the least, {} at 95 %, {} the most",
            count(median(launches, |m| m.block.median as f64)),
            count(median(launches, |m| m.block.min as f64)),
            count(median(launches, |m| m.block.p95 as f64)),
            count(median(launches, |m| m.block.max as f64)),
        ),
    );
    let share = |what: fn(&Slots) -> u128| median(launches, |m| m.slots.percent(what(&m.slots)));
    item(
        out,
        "slots",
        format_args!("of slots x cycles over all SMs (an SM's most blocks at once x its span):"),
    );
    for (name, share, what) in [
        ("occupied", share(|s| s.occupied), "a block ran"),
        ("fill", share(|s| s.fill), "empty until the SM first held its most"),
        ("turnover", share(|s| s.turnover), "empty, one block left and the next had not started"),
        ("tail", share(|s| s.tail), "empty after the SM's last start"),
    ] {
        item(out, "", format_args!("{name:<9} {share:6.2} %  {what}"));
    }
    for (name, share, what) in [
        ("scheduling", idle(launches), "of SM time no block ran, though one was still to start"),
        (
            "",
            waiting(launches),
            "of slots x cycles a slot was empty, though a block was still to start (fill + turnover)",
        ),
        ("", gaps(launches), "of gaps and blocks are gaps between the blocks of a slot"),
    ] {
        item(out, name, format_args!("{share:6.2} %  {what}"));
    }
}

/// The warps without a record, of the first launches that have some.
fn missing(out: &mut String, group: &Group, launches: &[Measures]) {
    let with: Vec<(&OneLaunch, &Measures)> = group
        .launches
        .iter()
        .zip(launches)
        .filter(|(launch, _)| launch.absent + launch.dropped > 0)
        .collect();
    for (launch, measures) in with.iter().take(3) {
        let named: Vec<String> = measures.missing.iter().map(u64::to_string).collect();
        let all = launch.absent + launch.dropped;
        let more = if all > named.len() as u64 { ", …" } else { "" };
        let room =
            if launch.dropped > 0 { format!(" ({} had no room)", launch.dropped) } else { String::new() };
        item(
            out,
            "",
            format_args!(
                "launch {}: {all} warps without a record{room}: {}{more}",
                launch.number,
                named.join(", ")
            ),
        );
    }
    if with.len() > 3 {
        item(out, "", format_args!("and {} launches more", with.len() - 3));
    }
}

/// How long a launch takes: from the SMs' clocks at least, by the host at most.
fn time(group: &Group, cycles: f64) -> String {
    let at_most = middle(group.launches.iter().map(|launch| launch.at_most_ns as f64 / 1e3));
    let clock = clock_khz(group);
    let at_least = match micros(cycles, clock) {
        Some(time) => format!(
            "at least {time:.2} µs ({} cycles, the longest span of an SM, at {:.0} MHz, the highest SM clock)",
            count(cycles),
            f64::from(clock) / 1e3
        ),
        None => format!("{} cycles, the longest span of an SM; the clock is unknown", count(cycles)),
    };
    format!("{at_least}; at most {at_most:.1} µs, as the host saw it")
}

/// Launches that may have been longer than the cycles up to which the records are exact.
fn wrapped(out: &mut String, group: &Group) {
    let Some(limit) = group.kernel.probed().and_then(|kernel| kernel.limits.launch_cycles) else { return };
    // ns × kHz is 10⁻⁶ cycles.
    let too_long = |launch: &&OneLaunch| {
        u128::from(launch.at_most_ns) * u128::from(launch.clock_khz) >= u128::from(limit) * 1_000_000
    };
    let list: Vec<&OneLaunch> = group.launches.iter().filter(too_long).collect();
    if !list.is_empty() {
        let named: Vec<String> = list.iter().take(8).map(|launch| launch.number.to_string()).collect();
        let more = if named.len() < list.len() { ", …" } else { "" };
        item(
            out,
            "",
            format_args!(
                "{} launches may have wrapped: they may have taken {limit} cycles or more: {}{more}",
                list.len(),
                named.join(", ")
            ),
        );
    }
    let unknown = group.launches.iter().filter(|launch| launch.clock_khz == 0).count();
    if unknown > 0 {
        item(out, "", format_args!("{unknown} launches may have wrapped: their clock is unknown"));
    }
}

fn spread(out: &mut String, group: &Group, map: &Map, columns: &[Distribution]) {
    let absent: u64 = group.launches.iter().map(|launch| launch.absent).sum();
    let dropped: u64 = group.launches.iter().map(|launch| launch.dropped).sum();
    let units = group.units.saturating_mul(group.launches.len() as u64);
    let room = if dropped > 0 { format!("; {dropped} had no room") } else { String::new() };
    item(out, "launches", format_args!("{}", group.launches.len()));
    item(out, "recorded", format_args!("{} of {units} {}s{room}", units - absent - dropped, map.unit.word()));
    distributions(out, map, columns);
}

/// A line a column.
fn distributions(out: &mut String, map: &Map, columns: &[Distribution]) {
    let mut rows = vec![["column", "type", "min", "median", "mean", "max"].map(str::to_owned)];
    for (column, about) in columns.iter().zip(&map.columns) {
        let number = |number: Option<f64>| number.map_or_else(|| "-".to_owned(), short);
        let (least, most) = match column.ends() {
            Some((least, most)) => (least.to_string(), most.to_string()),
            None => ("-".to_owned(), "-".to_owned()),
        };
        let address = about.ty == Type::Ptr;
        rows.push([
            about.name.clone(),
            about.ty.word().to_owned(),
            least,
            if address { "-".to_owned() } else { number(column.median()) },
            if address { "-".to_owned() } else { number(column.mean()) },
            most,
        ]);
    }
    table(out, &rows, "  ", 2);
    for (column, about) in columns.iter().zip(&map.columns).filter(|(column, _)| column.nans > 0) {
        item(out, "", format_args!("{} of {} are NaN and left out", column.nans, about.name));
    }
}

/// Arrays with a capacity: how many saves, how many of them are there, and what they hold.
fn saves(out: &mut String, group: &Group, map: &Map, all: &Taken, columns: &[Distribution]) {
    let lost = match map.slots.map(|slots| slots.policy) {
        Some(Policy::Wrap) => "overwritten",
        Some(Policy::Drop) | None => "dropped",
    };
    let (unit, Taken { taken, stored, .. }) = (map.unit.word(), all);
    item(out, "launches", format_args!("{}", group.launches.len()));
    item(
        out,
        "saves",
        format_args!("{taken} taken: {stored} stored, {} {lost}", taken.saturating_sub(*stored)),
    );
    losses(out, &all.losses, lost, unit);
    for (launch, units, first) in all.uncounted.iter().take(3) {
        let named: Vec<String> = first.iter().map(u64::to_string).collect();
        let more = if *units > named.len() as u64 { ", …" } else { "" };
        item(
            out,
            "",
            format_args!(
                "launch {launch}: {units} {unit}s did not leave by a probed exit, and may have saved more: {}{more}",
                named.join(", ")
            ),
        );
    }
    if let Some(more @ 1..) = all.uncounted.len().checked_sub(3) {
        item(out, "", format_args!("and {more} launches more with such {unit}s"));
    }
    if let (Some((least, most)), Some(median)) = (all.by_unit.ends(), all.by_unit.median()) {
        let room = map.slots.map_or(0, |slots| slots.capacity);
        item(
            out,
            &format!("a {unit}"),
            format_args!(
                "{} saves, the median; {least} the least, {most} the most; room for {room}",
                short(median)
            ),
        );
    }
    distributions(out, map, columns);
}

/// Launches that have lost events or saves, and which units have lost most.
fn losses(out: &mut String, losses: &[Loss], lost: &str, unit: &str) {
    for loss in losses.iter().take(3) {
        let named: Vec<String> = loss.most.iter().map(|(unit, count)| format!("{unit} ({count})")).collect();
        let more = if loss.units > named.len() as u64 { ", …" } else { "" };
        item(
            out,
            "",
            format_args!(
                "launch {}: {} {lost}, by {} {unit}s: {}{more}",
                loss.launch,
                loss.dropped,
                loss.units,
                named.join(", ")
            ),
        );
    }
    if let Some(more @ 1..) = losses.len().checked_sub(3) {
        item(out, "", format_args!("and {more} launches more that have {lost} some"));
    }
}

/// Streams: how many events, how many were lost, and which sites they come from, those with most first.
fn events(out: &mut String, group: &Group, events: &Events, most: usize) {
    let Events { stored, dropped, .. } = *events;
    item(out, "launches", format_args!("{}", group.launches.len()));
    item(out, "events", format_args!("{} taken: {stored} stored, {dropped} dropped", stored + dropped));
    losses(out, &events.losses, "dropped", "warp");
    let mut basis = Basis::default();
    events.sites.values().for_each(|site| basis.merge(&site.basis));
    if !basis.is_empty() {
        item(out, "addresses", format_args!("of events: {}", basis.how(|count| count.to_string())));
        for granted in basis.granted(|count| count.to_string()) {
            item(out, "", format_args!("{granted}"));
        }
    }
    let known = group.kernel.probed().map_or(&[][..], |kernel| &kernel.sites);
    let mut sites: Vec<_> = events.sites.iter().collect();
    sites.sort_by_key(|&(&site, sum)| (std::cmp::Reverse(sum.events), site));
    if sites.iter().all(|(site, _)| site.is_none()) {
        return;
    }
    let mut rows = vec![["where", "op", "events", "lanes", "lanes an event", "addresses"].map(str::to_owned)];
    for (site, sum) in sites.iter().take(most) {
        let site = site.and_then(|site| known.get(site));
        let lanes = |text: String| if sum.lanes > 0 { text } else { "-".to_owned() };
        rows.push([
            site.map_or_else(|| "(unknown)".to_owned(), place),
            site.map_or_else(|| "-".to_owned(), |site| site.opcode.clone()),
            sum.events.to_string(),
            lanes(sum.lanes.to_string()),
            lanes(short(sum.lanes as f64 / sum.events as f64)),
            had(&sum.basis),
        ]);
    }
    table(out, &rows, "  ", 2);
    if let Some(more @ 1..) = sites.len().checked_sub(most) {
        item(out, "", format_args!("and {more} sites more"));
    }
}

/// How the addresses of a site's events are had, in a few words.
fn had(basis: &Basis) -> String {
    let Basis { proved, tested, listed, wraps, joins } = *basis;
    match (proved, tested, listed) {
        (0, 0, 0) => "-".to_owned(),
        (_, 0, 0) if wraps + joins > 0 => "by proof, assuming".to_owned(),
        (_, 0, 0) => "by proof".to_owned(),
        (0, _, 0) => "by stride".to_owned(),
        (0, 0, _) => "one by one".to_owned(),
        _ => {
            let share = listed as f64 * 100.0 / (proved + tested + listed) as f64;
            format!("{} % one by one", short(share))
        }
    }
}

/// All kernels with lifetimes beside each other.
fn compare(out: &mut String, groups: &[Group]) {
    let of_blocks = groups.iter().filter_map(|group| match &group.kind {
        Kind::Blocks(_, launches) => Some((group, launches.as_slice())),
        Kind::Events(_) | Kind::Saves(..) | Kind::Columns(_) => None,
    });
    let lines: Vec<(&Group, &[Measures])> = of_blocks.collect();
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\ncomparison: medians a launch; time from the longest span of an SM at the highest SM clock"
    );
    let heads = [
        "kernel", "grid", "launches", "blocks", "time µs", "idle %", "idle µs", "slots %", "gaps %", "tail %",
    ];
    let mut rows = vec![heads.map(str::to_owned)];
    for &(group, launches) in &lines {
        let cycles = median(launches, |m| m.span.max as f64);
        let idle = idle(launches);
        let micros = |cycles: f64| {
            micros(cycles, clock_khz(group)).map_or_else(|| "-".to_owned(), |time| format!("{time:.2}"))
        };
        rows.push([
            Names::of(&group.kernel.name).mangled,
            dimensions(group.launch.grid),
            launches.len().to_string(),
            count(median(launches, |m| m.blocks as f64)),
            micros(cycles),
            format!("{idle:.2}"),
            micros(cycles * idle / 100.0),
            format!("{:.2}", waiting(launches)),
            format!("{:.2}", gaps(launches)),
            format!("{:.2}", median(launches, |m| m.slots.percent(m.slots.tail))),
        ]);
    }
    table(out, &rows, "  ", 1);
    if let [(a, of_a), (b, of_b)] = lines.as_slice() {
        let cycles = |launches: &[Measures]| median(launches, |m| m.span.max as f64);
        let times = (micros(cycles(of_a), clock_khz(a)), micros(cycles(of_b), clock_khz(b)));
        if let (Some(of_a), Some(of_b)) = times {
            let ((slow, of_slow), (fast, of_fast)) =
                if of_a < of_b { ((b, of_b), (a, of_a)) } else { ((a, of_a), (b, of_b)) };
            let share = if of_slow > 0.0 { (of_slow - of_fast) * 100.0 / of_slow } else { 0.0 };
            let _ = writeln!(
                out,
                "{} takes {:.2} µs ({share:.1} %) less a launch than {}",
                Names::of(&fast.kernel.name).mangled,
                of_slow - of_fast,
                Names::of(&slow.kernel.name).mangled,
            );
        }
    }
}

fn idle(launches: &[Measures]) -> f64 {
    median(launches, Measures::idle)
}

fn waiting(launches: &[Measures]) -> f64 {
    median(launches, |m| m.slots.waiting())
}

fn gaps(launches: &[Measures]) -> f64 {
    median(launches, |m| m.slots.gap_share())
}

/// Appends rows with their columns aligned: the first `left` to the left, the others to the right.
fn table<const N: usize>(out: &mut String, rows: &[[String; N]], indent: &str, left: usize) {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..N).map(width).collect();
    for row in rows {
        let mut line = String::from(indent);
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            let gap = if column == 0 { "" } else { "  " };
            let _ = if column < left {
                write!(line, "{gap}{cell:<width$}")
            } else {
                write!(line, "{gap}{cell:>width$}")
            };
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// The median over launches.
fn median(launches: &[Measures], of: impl Fn(&Measures) -> f64) -> f64 {
    middle(launches.iter().map(of))
}

/// The value in the middle, or the mean of the two there; 0 of none.
fn middle(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or_default();
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => at(n / 2),
        n => f64::midpoint(at(n / 2 - 1), at(n / 2)),
    }
}

/// The clock of the first launch: one device's launches have one.
fn clock_khz(group: &Group) -> u32 {
    group.launch.clock_khz
}

/// `None` if the clock is unknown.
fn micros(cycles: f64, clock_khz: u32) -> Option<f64> {
    (clock_khz > 0).then(|| cycles * 1e3 / f64::from(clock_khz))
}

/// `12.5 (12 to 13)`: the mean over SMs, the least and the most, each the median over launches.
fn range(launches: &[Measures], of: fn(&Measures) -> Spread) -> String {
    let mean = median(launches, |m| of(m).mean);
    let (min, max) = (median(launches, |m| of(m).min as f64), median(launches, |m| of(m).max as f64));
    format!("{} ({} to {})", short(mean), count(min), count(max))
}

/// A number of things: whole, unless it is the middle of two.
fn count(number: f64) -> String {
    if number.fract() == 0.0 { format!("{number:.0}") } else { format!("{number:.1}") }
}

/// Whole numbers as such, others with two digits, small ones with four that count.
fn short(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        format!("{number:.0}")
    } else if (0.1..1e15).contains(&number.abs()) {
        format!("{number:.2}")
    } else {
        format!("{number:.3e}")
    }
}

fn threads(launch: &Launch) -> u64 {
    launch.block.iter().map(|&d| u64::from(d)).product()
}

/// `64x8`: trailing ones are left out.
fn dimensions([x, y, z]: [u32; 3]) -> String {
    match (y, z) {
        (1, 1) => format!("{x}"),
        (_, 1) => format!("{x}x{y}"),
        _ => format!("{x}x{y}x{z}"),
    }
}
