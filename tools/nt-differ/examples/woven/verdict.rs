//! One woven text beside what it was woven from, as an assembler saw both; and rows that add such verdicts up.

use nt_engine::assemble::{Remark, SOURCE, Usage, Verbose, read};
use std::collections::BTreeSet;
use std::fmt;
use std::io::Write as _;

/// What an assembler said of a text.
#[derive(Debug)]
pub(crate) struct Answer {
    said: Verbose,
    /// Bytes that its kernels and functions store and load because they have too few registers, and those that functions
    /// save for their callers.
    spilled: u64,
}

impl Answer {
    pub(crate) fn of(output: &str) -> Answer {
        let fields = output.lines().filter(|line| line.starts_with(' ')).flat_map(|line| line.split(','));
        let bytes = fields.filter_map(|field| {
            let (number, words) = field.trim().split_once(' ')?;
            words.contains("spill").then(|| number.parse::<u64>().ok())?
        });
        Answer { spilled: bytes.sum(), said: read(output, SOURCE) }
    }
}

/// What an assembler made of a module with a probe in it.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// Why it has nothing to say: the text was refused.
    pub(crate) fault: Option<String>,
    /// Kernels that cannot have this probe, with the reason.
    pub(crate) refused: Vec<(String, &'static str)>,
    /// Notices and warnings that the original did not have.
    pub(crate) news: Vec<String>,
    pub(crate) kernels: Vec<(String, Usage, Usage)>,
    pub(crate) spilled: [u64; 2],
}

/// A remark without what changes with every word that is put in.
fn kind(remark: &Remark) -> String {
    match &remark.code {
        Some(code) => code.clone(),
        None => remark.text.chars().filter(|c| !c.is_ascii_digit()).collect(),
    }
}

/// Bytes that a kernel stores and loads because it has too few registers.
fn spilled(usage: &Usage) -> u32 {
    usage.spill_stores.unwrap_or(0) + usage.spill_loads.unwrap_or(0)
}

impl Verdict {
    pub(crate) fn of(before: &Answer, after: &Answer, woven: &[&str]) -> Verdict {
        let spilled = [before.spilled, after.spilled];
        let (before, after) = (&before.said, &after.said);
        let mut left: Vec<String> = before.remarks.iter().map(kind).collect();
        let mut news = Vec::new();
        for remark in &after.remarks {
            match left.iter().position(|known| *known == kind(remark)) {
                Some(known) => {
                    left.swap_remove(known);
                }
                None => {
                    let code = remark.code.as_deref().unwrap_or("warning");
                    news.push(format!("{code}: {}", remark.text));
                }
            }
        }
        let both = |name: &&str| {
            let (before, after) = (before.kernels.get(*name)?, after.kernels.get(*name)?);
            Some(((*name).to_owned(), *before, *after))
        };
        Verdict { news, spilled, kernels: woven.iter().filter_map(both).collect(), ..Verdict::default() }
    }

    /// Says what is worth a line: faults, news, and kernels that spill more.
    pub(crate) fn tell(&self, at: &str) {
        let mut lines: Vec<String> = self.fault.iter().map(|why| format!("{at}: refused: {why}")).collect();
        lines.extend(self.news.iter().map(|news| format!("{at}: new: {news}")));
        for (kernel, before, after) in &self.kernels {
            if spilled(before) < spilled(after) {
                let bytes = |usage: &Usage| {
                    let of = |bytes: Option<u32>| bytes.unwrap_or(0);
                    let registers = usage.registers.unwrap_or(0);
                    format!("{registers} registers, {} + {}", of(usage.spill_stores), of(usage.spill_loads))
                };
                let (before, after) = (bytes(before), bytes(after));
                lines.push(format!("{at}: `{kernel}` spills: {before} bytes became {after}"));
            }
        }
        let [before, after] = self.spilled;
        if before < after {
            lines.push(format!("{at}: {before} bytes of spills became {after}, with those of functions"));
        }
        for line in lines {
            // A reader that has seen enough may leave.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }
}

/// Verdicts on one probe by one assembler.
#[derive(Debug, Default)]
pub(crate) struct Row {
    modules: usize,
    kernels: usize,
    refused: usize,
    slugs: BTreeSet<&'static str>,
    faults: usize,
    news: usize,
    registers: i64,
    most: i64,
    spilling: [usize; 2],
    bytes: [u64; 2],
}

impl Row {
    pub(crate) const HEAD: &str = "| ptxas | probe | modules | kernels | registers, mean and most | kernels that spill | \
         bytes spilled, functions' too | new notices | kernels refused |\n|---|---|---|---|---|---|---|---|---|";

    /// Has no assembler anything to say against it?
    pub(crate) fn is_good(&self) -> bool {
        self.faults + self.news == 0
    }
}

impl<'v> FromIterator<&'v Verdict> for Row {
    fn from_iter<I: IntoIterator<Item = &'v Verdict>>(verdicts: I) -> Row {
        let mut row = Row { most: i64::MIN, ..Row::default() };
        for verdict in verdicts {
            row.faults += usize::from(verdict.fault.is_some());
            row.news += verdict.news.len();
            row.refused += verdict.refused.len();
            row.slugs.extend(verdict.refused.iter().map(|(_, slug)| *slug));
            row.modules += usize::from(!verdict.kernels.is_empty());
            for (bytes, spilled) in row.bytes.iter_mut().zip(verdict.spilled) {
                *bytes += spilled;
            }
            for (_, before, after) in &verdict.kernels {
                let registers = |usage: &Usage| i64::from(usage.registers.unwrap_or(0));
                let more = registers(after) - registers(before);
                row.kernels += 1;
                row.registers += more;
                row.most = row.most.max(more);
                for (spilling, usage) in row.spilling.iter_mut().zip([before, after]) {
                    *spilling += usize::from(spilled(usage) != 0);
                }
            }
        }
        row
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { modules, kernels, refused, faults, news, .. } = self;
        let mean = self.registers as f64 / (*kernels).max(1) as f64;
        let most = if *kernels == 0 { 0 } else { self.most };
        let [spilled, spills] = self.spilling;
        let [before, after] = self.bytes;
        let slugs: Vec<&str> = self.slugs.iter().copied().collect();
        let why = if slugs.is_empty() { String::new() } else { format!(": {}", slugs.join(", ")) };
        let faults = if *faults == 0 { String::new() } else { format!(", {faults} texts refused") };
        write!(
            f,
            "| {modules} | {kernels} | {mean:+.2}, {most:+} | {spilled} → {spills} | {before} → {after} | \
             {news}{faults} | {refused}{why} |"
        )
    }
}
