//! What is said at the end, on stderr: first whether it worked and, if not, why; then a table.
//!
//! ```text
//! nt-run: 46 of 69 launches probed, 46 collected
//!   kernel       launches  probed  collected  registers  first launch
//!   gemm               23      23         23   32 -> 38  2.4 ms, ptxas 31.0 ms
//!   saxpy              23      23         23   12 -> 16  1.2 ms, ptxas from the cache
//!   histogram          23       0          0             it uses the module's .global variable `bins`, …
//!   trace.ntt holds the traces of 1 process (12 KiB); next: nt-map report trace.ntt
//! ```

use crate::counts::{Counts, Launches};
use crate::ledger::{Entries, Outcome};
use nt_cli::choose::demangle;
use nt_engine::Cost;
use nt_trace::ntm::Resources;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// All that a summary is made of.
#[derive(Debug)]
pub(crate) struct Facts<'f> {
    /// The command's first word.
    pub(crate) command: &'f str,
    /// The run folder, as the user gave it.
    pub(crate) folder: &'f str,
    /// What stands in the hook's way in the command itself.
    pub(crate) obstacle: Option<&'f str>,
    /// The words of `-k`.
    pub(crate) choices: &'f [String],
    /// Names nearest to those that were not found.
    pub(crate) nearest: &'f [String],
    /// Processes that go on after the command has ended.
    pub(crate) alive: usize,
    /// What was learned by talking.
    pub(crate) entries: &'f Entries,
    /// What the traces count.
    pub(crate) counts: &'f Counts,
    /// What the aggregations came to; empty if the probe has none.
    pub(crate) aggregations: &'f str,
}

/// More kernels than this are a matter for `nt-map coverage`.
const ROWS: usize = 30;

/// The first line: what the user must know before anything else.
pub(crate) fn headline(facts: &Facts<'_>) -> String {
    let sum = |field: fn(&Launches) -> u64| facts.counts.kernels.values().map(field).sum::<u64>();
    let (launches, probed, collected) = (sum(|k| k.launches), sum(|k| k.probed), sum(|k| k.collected));
    if probed > 0 {
        return format!("{probed} of {launches} launches probed, {collected} collected");
    }
    format!("nothing was probed: {}", nothing(facts, launches))
}

/// Why nothing was probed.
fn nothing(facts: &Facts<'_>, launches: u64) -> String {
    let Entries { processes, kernels, images, seen, selected, closed, .. } = facts.entries;
    if processes.is_empty() {
        // Without a word from a hook there is nothing to count either.
        return match facts.obstacle {
            Some(obstacle) => format!("{} {obstacle}", facts.command),
            None => format!("no call of the CUDA driver was seen in {} or its children", facts.command),
        };
    }
    if *seen == 0 {
        return "the CUDA driver was used, but no module was loaded".to_owned();
    }
    if selected.is_empty() && !closed.is_empty() {
        let reasons: Vec<&str> = images.keys().map(String::as_str).collect();
        return format!("no chosen kernel can be: {}", list(&reasons, 3));
    }
    if selected.is_empty() {
        let unreadable: u64 = images.values().sum();
        if unreadable == *seen {
            let reasons: Vec<&str> = images.keys().map(String::as_str).collect();
            return format!("none of the {seen} modules can be: {}", list(&reasons, 3));
        }
        let words: Vec<&str> = facts.choices.iter().map(String::as_str).collect();
        let near: Vec<&str> = facts.nearest.iter().map(String::as_str).collect();
        return match near.as_slice() {
            [] => format!("no kernel matches `{}`", words.join("`, `")),
            near => format!("no kernel matches `{}`; the nearest: {}", words.join("`, `"), list(near, 3)),
        };
    }
    if launches == 0 {
        return "no kernel was launched".to_owned();
    }
    let mut reasons: Vec<&str> = kernels
        .values()
        .filter_map(|outcome| match outcome {
            Outcome::Refused(refusal) => Some(refusal.reason.as_str()),
            Outcome::Probed { .. } => None,
        })
        .collect();
    if reasons.is_empty() {
        // Of kernels that nobody asked us for, what the hooks say.
        let chosen = facts.counts.kernels.iter().filter(|(name, _)| is_chosen(facts, name));
        reasons.extend(chosen.flat_map(|(_, launches)| launches.reasons.keys().map(String::as_str)));
    }
    reasons.sort_unstable();
    reasons.dedup();
    match reasons.as_slice() {
        [] => "no selected kernel was launched in a way that can be".to_owned(),
        [one] => (*one).to_owned(),
        [first, _] => format!("{first} (and another reason)"),
        [first, rest @ ..] => format!("{first} (and {} other reasons)", rest.len()),
    }
}

/// `a, b and 3 more`
fn list(words: &[&str], most: usize) -> String {
    let shown = &words[..words.len().min(most)];
    match words.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Lines that belong to no kernel.
pub(crate) fn notes(facts: &Facts<'_>) -> Vec<String> {
    let mut notes = facts.entries.notes.clone();
    notes.extend(facts.counts.notes.iter().filter(|note| !facts.entries.notes.contains(note)).cloned());
    if let (Some(obstacle), false) = (facts.obstacle, facts.entries.processes.is_empty()) {
        notes.push(format!("{} {obstacle}; what it started was covered", facts.command));
    }
    if facts.alive > 0 {
        notes.push(format!(
            "{} outlive the command: what they launch from now on is not probed",
            processes(facts.alive)
        ));
    }
    let silent = facts.entries.processes.iter().filter(|process| process.bye.is_none()).count();
    if silent > facts.alive {
        notes.push(format!(
            "{} ended without a word (killed?): what was not collected by then is lost",
            processes(silent - facts.alive)
        ));
    }
    if facts.entries.bugs > 0 {
        notes.push(format!(
            "{} of nt's own were met: please report them with the bug-* folders in {}",
            if facts.entries.bugs == 1 {
                "a fault".to_owned()
            } else {
                format!("{} faults", facts.entries.bugs)
            },
            facts.folder
        ));
    }
    notes
}

fn processes(number: usize) -> String {
    if number == 1 { "1 process".to_owned() } else { format!("{number} processes") }
}

/// What is said below the first line.
pub(crate) fn body(facts: &Facts<'_>) -> String {
    let mut text = table(facts);
    for note in notes(facts) {
        let _ = writeln!(text, "  note: {note}");
    }
    if !facts.counts.traces.is_empty() {
        let _ = writeln!(
            text,
            "  {} holds the {} of {} ({}); next: nt-map report {}",
            facts.folder,
            if facts.counts.traces.len() == 1 { "trace" } else { "traces" },
            processes(facts.counts.traces.len()),
            bytes(facts.counts.bytes),
            facts.folder
        );
    }
    if !facts.aggregations.is_empty() {
        text.push('\n');
        text.push_str(facts.aggregations);
    }
    text
}

/// A row a kernel that was selected, the probed ones first, of these most launches first; the others are counted.
fn table(facts: &Facts<'_>) -> String {
    let nobody = Launches::default();
    let mut by_name: BTreeMap<&str, Vec<&Outcome>> = BTreeMap::new();
    for ((name, ..), outcome) in &facts.entries.kernels {
        by_name.entry(name).or_default().push(outcome);
    }
    let (mut rows, mut others, mut other_launches) = (Vec::new(), 0, 0);
    for (name, launches) in &facts.counts.kernels {
        if is_chosen(facts, name) {
            rows.push((name.as_str(), launches));
        } else {
            others += 1;
            other_launches += launches.launches;
        }
    }
    // Asked for, though no trace tells of it: its process was killed.
    for name in by_name.keys() {
        if !facts.counts.kernels.contains_key(*name) {
            rows.push((name, &nobody));
        }
    }
    // What was probed is what the user has come for; a framework's own kernels would fill the table.
    rows.sort_by(|(a, x), (b, y)| (y.probed > 0, y.launches).cmp(&(x.probed > 0, x.launches)).then(a.cmp(b)));
    let mut lines = Vec::new();
    for (name, launches) in rows.iter().take(ROWS) {
        let outcomes = by_name.get(name).map_or(&[][..], Vec::as_slice);
        let (registers, words) = outcome(outcomes, launches);
        let count = |n: u64| n.to_string();
        let shown = shorten(&demangle(name), 48);
        lines.push([
            shown,
            count(launches.launches),
            count(launches.probed),
            count(launches.collected),
            registers,
            words,
        ]);
    }
    let mut text = String::new();
    if !lines.is_empty() {
        let head =
            ["kernel", "launches", "probed", "collected", "registers", "first launch"].map(str::to_owned);
        lines.insert(0, head);
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..6).map(width).collect();
        for line in &lines {
            let [kernel, launches, probed, collected, registers, words] = line;
            let row = format!(
                "  {kernel:<0$}  {launches:>1$}  {probed:>2$}  {collected:>3$}  {registers:>4$}  {words}",
                widths[0], widths[1], widths[2], widths[3], widths[4]
            );
            text += row.trim_end();
            text.push('\n');
        }
    }
    if rows.len() > ROWS {
        let _ = writeln!(text, "  and {} kernels more: nt-map coverage {}", rows.len() - ROWS, facts.folder);
    }
    if others > 0 {
        let what = if others == 1 {
            "1 other kernel was".to_owned()
        } else {
            format!("{others} other kernels were")
        };
        let _ = writeln!(text, "  {what} launched unprobed, {other_launches} times{}", why_others(facts));
    }
    text
}

/// Is it one that should be probed, whether or not it can be?
fn is_chosen(facts: &Facts<'_>, kernel: &str) -> bool {
    facts.entries.selected.contains(kernel) || facts.entries.closed.contains(kernel)
}

/// Why kernels that are not in the table were not selected.
fn why_others(facts: &Facts<'_>) -> String {
    let others = facts.counts.kernels.iter().filter(|(name, _)| !is_chosen(facts, name));
    let mut reasons: Vec<&str> = others.flat_map(|(_, l)| l.reasons.keys().map(String::as_str)).collect();
    reasons.sort_unstable();
    reasons.dedup();
    if reasons.is_empty() { String::new() } else { format!(": {}", list(&reasons, 3)) }
}

/// The last two columns: registers before and after, then what the first launches cost or why there were none.
fn outcome(outcomes: &[&Outcome], launches: &Launches) -> (String, String) {
    let mut words = Vec::new();
    let mut spilled: Option<u32> = None;
    let (mut before, mut after) = (BTreeSet::new(), BTreeSet::new());
    let (mut twins, mut total, mut known) = (BTreeSet::new(), Cost::default(), false);
    for outcome in outcomes {
        match outcome {
            Outcome::Probed { resources, cost, assumes } => {
                if let [Some(was), Some(is)] = resources {
                    before.insert(was.registers);
                    after.insert(is.registers);
                    let more = |r: &Resources| r.spill_stores + r.spill_loads;
                    spilled = spilled.max(more(is).checked_sub(more(was)).filter(|&bytes| bytes > 0));
                }
                twins.insert(*assumes);
                known |= resources[1].is_some();
                total.ours += cost.ours;
                total.assembler += cost.assembler;
                total.assembled += cost.assembled;
            }
            Outcome::Refused(_) => {}
        }
    }
    if !twins.is_empty() {
        words.extend(spilled.map(|bytes| format!("{bytes} bytes more spilled")));
        let ms = |time: std::time::Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
        let mut cost = match (total.assembled, known) {
            (0, false) => format!("{}, then the driver's assembler", ms(total.ours)),
            (0, true) => format!("{}, ptxas from the cache", ms(total.ours)),
            _ => format!("{}, ptxas {}", ms(total.ours), ms(total.assembler)),
        };
        if twins.len() > 1 {
            cost += &format!(", for {} shapes of launches", twins.len());
        }
        words.push(cost);
    }
    for outcome in outcomes {
        if let Outcome::Refused(refusal) = outcome
            && !words.contains(&refusal.reason)
        {
            words.push(refusal.reason.clone());
        }
    }
    // What the hook has to say; the refusals it got from us are said already.
    for reason in launches.reasons.keys() {
        if !words.iter().any(|said| reason.contains(said.as_str())) {
            words.push(reason.clone());
        }
    }
    let registers =
        if after.is_empty() { String::new() } else { format!("{} -> {}", range(&before), range(&after)) };
    (registers, words.join("; "))
}

/// `32`, or `32-38` of several.
fn range(numbers: &BTreeSet<u32>) -> String {
    match (numbers.first(), numbers.last()) {
        (Some(least), Some(most)) if least != most => format!("{least}-{most}"),
        (Some(one), _) => one.to_string(),
        _ => String::new(),
    }
}

/// A name that fits, with its middle left out.
fn shorten(name: &str, most: usize) -> String {
    let length = name.chars().count();
    if length <= most {
        return name.to_owned();
    }
    let half = (most - 1) / 2;
    let first: String = name.chars().take(half).collect();
    let last: String = name.chars().skip(length - (most - 1 - half)).collect();
    format!("{first}…{last}")
}

fn bytes(number: u64) -> String {
    let mut value = number as f64;
    for unit in ["bytes", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            return if unit == "bytes" { format!("{number} bytes") } else { format!("{value:.1} {unit}") };
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}

#[cfg(test)]
mod tests;
