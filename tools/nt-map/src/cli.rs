//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use nt_cli::choose::Choice;
use nt_cli::{Common, Output};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

/// Decodes the traces that nt-run leaves
///
/// A trace is a run folder or one of the .ntt files in it; processes are told apart by their pids. Damaged and cut
/// files are read as far as they are sound, and what is missing is named.
#[derive(Debug, Parser)]
#[command(name = "nt-map", version, after_help = AFTER)]
pub(crate) struct Opts {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Options of all programs.
    #[command(flatten)]
    pub(crate) common: Common,
}

const AFTER: &str = "\
Examples:
  nt-map ls                              what is in trace.ntt/
  nt-map dump | sort -k8n | head         the warps that started first, on each SM's own clock
  nt-map dump -k fill --format json | jq .record.elapsed
  nt-map report -k 'fill_(blocks|persistent)'
  nt-map timeline -o x.json              blocks on SMs, events of warps: open in ui.perfetto.dev
  nt-map dmat -k gemm -o gemm.html       pages over time, of a trace by nt-run -p dmat

Exit status:
  0 done    1 not a trace    2 usage, or a file failed    4 nothing selected    5 a file is damaged or cut";

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List processes, kernels, maps, aggregations and launches
    Ls(Ls),
    /// Print the records and the cells of aggregations, a line each
    Dump(Dump),
    /// Draw which pages a kernel touches when, of a trace of accesses (nt-run -p dmat)
    Dmat(Dmat),
    /// Write blocks and events as a timeline for Perfetto or chrome://tracing
    Timeline(Timeline),
    /// Say what was recorded: scheduling of blocks, the spread of each column, aggregations
    Report(Report),
    /// Say what was probed, what was not, and why
    Coverage(Coverage),
}

/// `ls`
#[derive(Debug, Args)]
pub(crate) struct Ls {
    /// Which records.
    #[command(flatten)]
    pub(crate) select: Select,
    /// A line a launch instead of a line a kernel and map
    #[arg(long)]
    pub(crate) launches: bool,
    /// A file, or `-`
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: Output,
}

/// `dump`
#[derive(Debug, Args)]
pub(crate) struct Dump {
    /// Which records.
    #[command(flatten)]
    pub(crate) select: Select,
    /// What a line looks like
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub(crate) format: DumpFormat,
    /// A line a lane of an event, with its thread, instead of a line an event
    #[arg(long)]
    pub(crate) lanes: bool,
    /// A file, or `-`
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: Output,
}

/// `dmat`
#[derive(Debug, Args)]
pub(crate) struct Dmat {
    /// Which records.
    #[command(flatten)]
    pub(crate) select: Select,
    /// Bytes a page: a power of two
    #[arg(long, value_name = "SIZE", default_value = "4KiB")]
    pub(crate) page: Page,
    /// At most so many columns of time and rows of pages [default: 400x200, of html 1000x400]
    #[arg(long, value_name = "WxH")]
    pub(crate) bins: Option<Bins>,
    /// Only accesses of these classes: `load`, `store`, `atomic`; by commas, or repeated
    #[arg(long, value_name = "CLASS", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// The column that has the time
    #[arg(long, value_name = "COLUMN", default_value = "at")]
    pub(crate) time: String,
    /// What to write; told by the ending of FILE if it is not given
    #[arg(long, value_enum, value_name = "FORM")]
    pub(crate) format: Option<DmatForm>,
    /// A file (.svg, .png, .html, .tsv), or `-`
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: Output,
}

/// `timeline`
#[derive(Debug, Args)]
pub(crate) struct Timeline {
    /// Which records.
    #[command(flatten)]
    pub(crate) select: Select,
    /// At most so many blocks and events, the first of the trace; what is left out is counted
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub(crate) limit: u64,
    /// A file (.json), or `-`
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: Output,
}

/// `report`
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Which records.
    #[command(flatten)]
    pub(crate) select: Select,
    /// As many rows of each aggregation and of a stream's sites, the largest; what is left out is counted
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub(crate) rows: usize,
    /// A file, or `-`
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: Output,
}

/// `coverage`
#[derive(Debug, Args)]
pub(crate) struct Coverage {
    /// Run folders, or trace files (.ntt)
    #[arg(value_name = "TRACE", default_value = "trace.ntt")]
    pub(crate) traces: Vec<PathBuf>,
    /// A file, or `-`
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: Output,
}

/// Which records.
#[derive(Debug, Args)]
pub(crate) struct Select {
    /// Run folders, or trace files (.ntt)
    #[arg(value_name = "TRACE", default_value = "trace.ntt")]
    pub(crate) traces: Vec<PathBuf>,
    /// Only kernels with a match in their mangled or demangled name; `=NAME` is exact; may be repeated
    #[arg(short, long = "kernel", value_name = "REGEX|=NAME")]
    pub(crate) kernels: Vec<Choice>,
    /// Only launches of these numbers, ends included: `7`, `3..5`, `3..`
    #[arg(long, value_name = "N..M")]
    pub(crate) launch: Option<Launches>,
    /// Only maps and aggregations of this name; may be repeated
    #[arg(long = "map", value_name = "NAME")]
    pub(crate) maps: Vec<String>,
    /// Only processes of this pid; may be repeated
    #[arg(long = "process", value_name = "PID")]
    pub(crate) processes: Vec<u32>,
}

/// `--format`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum DumpFormat {
    /// Tabs between columns, `-` where there is no value; for sort and awk.
    #[default]
    Tsv,
    /// RFC 4180, nothing where there is no value.
    Csv,
    /// An object a line.
    Json,
    /// A structured array for NumPy (`numpy.load`), of one map or stream.
    Npy,
}

impl DumpFormat {
    /// The form of lines; `None` if there are none.
    pub(crate) fn text(self) -> Option<Format> {
        match self {
            DumpFormat::Tsv => Some(Format::Tsv),
            DumpFormat::Csv => Some(Format::Csv),
            DumpFormat::Json => Some(Format::Json),
            DumpFormat::Npy => None,
        }
    }
}

/// What a line looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Tabs between columns, `-` where there is no value.
    Tsv,
    /// RFC 4180, nothing where there is no value.
    Csv,
    /// An object a line.
    Json,
}

/// `dmat --format`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DmatForm {
    /// A drawing.
    Svg,
    /// A picture.
    Png,
    /// A page to zoom in and to point at cells, which needs no other file.
    Html,
    /// A line a cell, for awk.
    Tsv,
}

impl DmatForm {
    /// Columns and rows where none are asked for.
    pub(crate) fn bins(self) -> Bins {
        Bins(if self == DmatForm::Html { (1000, 400) } else { (400, 200) })
    }
}

impl Dmat {
    /// What to write.
    ///
    /// # Errors
    /// Neither an option nor the file's name tells.
    pub(crate) fn form(&self) -> anyhow::Result<DmatForm> {
        if let Some(form) = self.format {
            return Ok(form);
        }
        let Output::Path(path) = &self.output else { return Ok(DmatForm::Tsv) };
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        DmatForm::from_str(ending, true).map_err(|_| {
            anyhow::anyhow!("{} does not end in .svg, .png, .html or .tsv: say `--format`", path.display())
        })
    }
}

/// `--bins`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bins(pub(crate) (usize, usize));

impl FromStr for Bins {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse::<usize>().ok().filter(|n| (1..=4096).contains(n));
        let both = word.split_once('x').and_then(|(columns, rows)| Some((number(columns)?, number(rows)?)));
        both.map(Bins).ok_or_else(|| "it is columns x rows, of 1 to 4096 each: `400x200`".to_owned())
    }
}

/// `--page`, as a power of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Page(pub(crate) u32);

impl FromStr for Page {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let digits = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
        let (number, unit) = word.split_at(digits);
        let unit = match unit {
            "" | "B" => Some(1u64),
            "K" | "k" | "KiB" => Some(1 << 10),
            "M" | "MiB" => Some(1 << 20),
            "G" | "GiB" => Some(1 << 30),
            _ => None,
        };
        let bytes = number.parse::<u64>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
        match bytes {
            Some(bytes) if bytes.is_power_of_two() && (32..=1 << 40).contains(&bytes) => {
                Ok(Page(bytes.ilog2()))
            }
            _ => Err("it is a power of two from 32 bytes on: `4KiB`, `64K`, `2MiB`".to_owned()),
        }
    }
}

/// `--launch`: both ends are included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Launches(pub(crate) RangeInclusive<u64>);

impl FromStr for Launches {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse().map_err(|_| format!("`{text}` is no launch's number"));
        let (first, last) = match word.split_once("..") {
            None => (number(word)?, number(word)?),
            Some((first, last)) => {
                let first = if first.is_empty() { 0 } else { number(first)? };
                // `3..=5` is what a Rust programmer types for the same.
                let last = last.strip_prefix('=').unwrap_or(last);
                (first, if last.is_empty() { u64::MAX } else { number(last)? })
            }
        };
        if first > last {
            return Err(format!("{first} is behind {last}"));
        }
        Ok(Launches(first..=last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definitions_agree_with_each_other() {
        Opts::command().debug_assert();
    }

    #[test]
    fn sizes_of_pages_and_grids() {
        let page = |word: &str| word.parse::<Page>().ok().map(|page| page.0);
        assert_eq!(["4KiB", "64K", "2MiB", "4096", "32B", "1G"].map(page), [12, 16, 21, 12, 5, 30].map(Some));
        assert_eq!(["", "3K", "0", "16", "4KB", "99999999999999999999"].map(page), [None; 6]);
        let bins = |word: &str| word.parse::<Bins>().ok().map(|bins| bins.0);
        assert_eq!([bins("400x200"), bins("1x1")], [Some((400, 200)), Some((1, 1))]);
        assert_eq!(["400", "0x5", "5x", "9999x1", "-1x1"].map(bins), [None; 5]);
    }

    #[test]
    fn ranges_of_launches_include_both_ends() {
        let check = |word: &str, expected: Option<(u64, u64)>| {
            let range = word.parse::<Launches>().ok().map(|Launches(range)| range.into_inner());
            assert_eq!(range, expected, "{word}");
        };
        check("7", Some((7, 7)));
        check("3..5", Some((3, 5)));
        check("3..=5", Some((3, 5)));
        check("3..", Some((3, u64::MAX)));
        check("..5", Some((0, 5)));
        check("5..3", None);
        check("-1", None);
        check("", None);
        check("99999999999999999999", None);
    }
}
