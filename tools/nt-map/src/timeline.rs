//! `nt-map timeline`: what ran when, in the JSON of Chrome's trace events, which Perfetto reads.
//!
//! ```text
//! fill launch 3    SM 0         [--- block 0 ---][------ block 132 ------]
//!                  SM 0, 2      [------ block 1 ------]
//! loops launch 4   warp 0       · ·  ·  ·           a mark an event of a stream
//! ```
//!
//! A launch is a process of the timeline. Blocks come from maps of warps' lifetimes (`start`, `elapsed`, `cu`): a track an SM,
//! and further ones where it held several at once. Events of streams are marks, a track a warp, at their column `at`.
//!
//! Times are µs since the first launch call of the trace, on the host's clock; within a launch, cycles at the highest SM
//! clock (at 1 GHz where that is not known). Clocks of SMs do not agree on zero, so each begins with its own first start,
//! and a warp with its own.

use crate::catalogue::{Chosen, Store};
use crate::cli::{Format, Timeline};
use crate::input::Source;
use crate::names::{Names, place};
use crate::report::Lifetimes;
use crate::tell::Tell;
use crate::text::{put, put_value};
use crate::walk::{Found, Origin, walk};
use anyhow::Context;
use nt_cli::Outcome;
use nt_diag::json_escape;
use nt_trace::ntt::{Piece, Reader, Records};
use nt_wire::frame::Launch;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

/// Writes the timeline.
pub(crate) fn run(
    opts: &Timeline,
    sources: &[Source],
    chosen: &Chosen,
    tell: &mut Tell,
) -> anyhow::Result<Outcome> {
    let mut out = opts.output.stream()?;
    let mut writer = Writer { out: &mut out, line: Vec::new(), left: opts.limit, over: 0, any: false };
    let mut tracks = Tracks::default();
    let written = writer.begin().and_then(|()| {
        walk(sources, chosen, 1 << 16, tell, |origin, found| match found {
            Found::Records(records) => {
                let columns = match origin.store() {
                    Some(Store::Map(map)) => Lifetimes::of(map),
                    Some(Store::Table(_)) | None => None,
                };
                let (Some(columns), Some(launch)) = (columns, &origin.launch) else { return Ok(()) };
                let here = tracks.launch(origin, launch, &mut writer)?;
                blocks(&records, columns, launch, here, &mut tracks, &mut writer)
            }
            Found::Piece(reader, piece) => {
                let Some(launch) = &origin.launch else { return Ok(()) };
                let here = tracks.launch(origin, launch, &mut writer)?;
                events(origin, &reader, &piece, here, &mut tracks, &mut writer)
            }
            Found::Saves(_) | Found::Cells(..) | Found::Dropped(_) => Ok(()),
        })
    });
    written.and_then(|()| writer.end()).context("failed to write the timeline")?;
    if writer.over > 0 {
        let over = writer.over;
        tell.say(format_args!("{over} blocks and events are left out: `--limit` says how many may be there"));
    }
    if !writer.any {
        tell.nothing(format_args!("nothing in what is chosen has a time"));
        return Ok(match tell.outcome() {
            Outcome::Done => Outcome::Nothing,
            partial => partial,
        });
    }
    Ok(tell.outcome())
}

/// Writes one object a line.
struct Writer<'w> {
    out: &'w mut dyn Write,
    line: Vec<u8>,
    /// Blocks and events that may still come.
    left: u64,
    /// Those that were left out.
    over: u64,
    any: bool,
}

impl Writer<'_> {
    fn begin(&mut self) -> std::io::Result<()> {
        self.out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")
    }

    /// Is there room for one more?
    fn takes(&mut self) -> bool {
        if self.left == 0 {
            self.over += 1;
            return false;
        }
        self.left -= 1;
        true
    }

    fn object(&mut self, what: std::fmt::Arguments<'_>) -> std::io::Result<()> {
        self.line.clear();
        self.line.extend_from_slice(if self.any { b",\n" } else { b"\n" });
        put(&mut self.line, what);
        self.any = true;
        self.out.write_all(&self.line)
    }

    fn end(&mut self) -> std::io::Result<()> {
        self.out.write_all(b"\n]}\n")?;
        self.out.flush()
    }
}

/// A launch in the timeline.
#[derive(Debug, Clone, Copy)]
struct Here {
    /// Its number among the processes of the timeline.
    pid: u64,
    /// When it was called, µs.
    at: f64,
    /// µs a cycle.
    cycle: f64,
}

/// What has a name already.
#[derive(Default)]
struct Tracks {
    /// CLOCK_MONOTONIC of the first launch call of each boot; launches of other machines begin at 0 as well.
    zero: BTreeMap<String, u64>,
    launches: BTreeMap<(String, u64), u64>,
    named: BTreeSet<(u64, u64)>,
}

impl Tracks {
    fn launch(
        &mut self,
        origin: &Origin<'_>,
        launch: &Launch,
        writer: &mut Writer<'_>,
    ) -> std::io::Result<Here> {
        let boot = origin.source.start.as_ref().map_or(String::new(), |start| start.boot.clone());
        let zero = *self.zero.entry(boot).or_insert(launch.launched_ns);
        let khz = if launch.clock_khz == 0 { 1_000_000 } else { launch.clock_khz };
        let key = (origin.source.process.clone(), launch.number);
        let next = self.launches.len() as u64 + 1;
        let pid = *self.launches.entry(key).or_insert(next);
        let here =
            Here { pid, at: (launch.launched_ns as f64 - zero as f64) / 1e3, cycle: 1e3 / f64::from(khz) };
        if pid == next {
            let name = Names::of(&origin.kernel.name).demangled;
            let name =
                json_escape(&format!("{name} launch {} process {}", launch.number, origin.source.process));
            writer.object(format_args!(
                "{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{pid},\"args\":{{\"name\":{name}}}}}"
            ))?;
        }
        Ok(here)
    }

    /// Names a track, once.
    fn track(
        &mut self,
        here: Here,
        track: u64,
        writer: &mut Writer<'_>,
        name: std::fmt::Arguments<'_>,
    ) -> std::io::Result<()> {
        let pid = here.pid;
        if !self.named.insert((pid, track)) {
            return Ok(());
        }
        writer.object(format_args!(
            "{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{pid},\"tid\":{track},\"args\":{{\"name\":\"{name}\"}}}}"
        ))?;
        writer.object(format_args!(
            "{{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":{pid},\"tid\":{track},\"args\":{{\"sort_index\":{track}}}}}"
        ))
    }
}

/// Blocks of one launch on the tracks of their SMs.
fn blocks(
    records: &Records<'_>,
    columns: Lifetimes,
    launch: &Launch,
    here: Here,
    tracks: &mut Tracks,
    writer: &mut Writer<'_>,
) -> std::io::Result<()> {
    let threads: u64 = launch.block.iter().map(|&d| u64::from(d)).product();
    let warps = threads.div_ceil(32).max(1);
    // By SM and block: the first start and the last end of its warps.
    let mut lives: BTreeMap<(u64, u64), (u64, u64)> = BTreeMap::new();
    for row in records.rows() {
        let value = |column: usize| row.unsigned(column);
        let (Some(start), Some(elapsed), Some(cu)) =
            (value(columns.start), value(columns.elapsed), value(columns.cu))
        else {
            continue;
        };
        let end = start.saturating_add(elapsed);
        let life = lives.entry((cu, row.unit() / warps)).or_insert((start, end));
        *life = (life.0.min(start), life.1.max(end));
    }
    let mut of_sm: BTreeMap<u64, Vec<(u64, u64, u64)>> = BTreeMap::new();
    for ((cu, block), (start, end)) in lives {
        of_sm.entry(cu).or_default().push((start, end, block));
    }
    for (cu, mut blocks) in of_sm {
        blocks.sort_unstable();
        let zero = blocks.first().map_or(0, |&(start, ..)| start);
        // Each block takes the first track on which no block runs any more.
        let mut free: Vec<u64> = Vec::new();
        for (start, end, block) in blocks {
            let slot = match free.iter().position(|&free| free <= start) {
                Some(slot) => slot,
                None => {
                    free.push(0);
                    free.len() - 1
                }
            };
            if let Some(free) = free.get_mut(slot) {
                *free = end.max(start + 1);
            }
            if !writer.takes() {
                continue;
            }
            // An SM holds 32 blocks at most.
            let track = cu * 64 + slot as u64;
            match slot {
                0 => tracks.track(here, track, writer, format_args!("SM {cu}"))?,
                slot => tracks.track(here, track, writer, format_args!("SM {cu}, {}", slot + 1))?,
            }
            writer.object(format_args!(
                "{{\"ph\":\"X\",\"name\":\"block {block}\",\"pid\":{},\"tid\":{track},\"ts\":{:.4},\"dur\":{:.4},\"args\":{{\"start\":{start},\"cycles\":{}}}}}",
                here.pid,
                here.at + (start - zero) as f64 * here.cycle,
                (end - start) as f64 * here.cycle,
                end - start
            ))?;
        }
    }
    Ok(())
}

/// Events of one piece on the tracks of their warps.
fn events(
    origin: &Origin<'_>,
    reader: &Reader,
    piece: &Piece<'_>,
    here: Here,
    tracks: &mut Tracks,
    writer: &mut Writer<'_>,
) -> std::io::Result<()> {
    let Some(Store::Map(map)) = origin.store() else { return Ok(()) };
    let Some(at) = map.columns.iter().position(|column| column.name == "at") else { return Ok(()) };
    let sites = origin.kernel.probed().map_or(&[][..], |kernel| &kernel.sites);
    let mut args = Vec::new();
    for event in reader.events(piece) {
        let Some(cycles) = event.value(at).and_then(nt_trace::ntt::Value::to_integer) else { continue };
        if !writer.takes() {
            continue;
        }
        // Warps come behind all tracks of SMs; readers of this form take numbers of 32 bits.
        let (warp, track) = (event.warp(), (1 << 20) + event.warp());
        tracks.track(here, track, writer, format_args!("warp {warp}"))?;
        let site = event.site().and_then(|site| sites.get(site));
        let name = match site {
            Some(site) if site.opcode.is_empty() => json_escape(&format!("{} {}", map.name, place(site))),
            Some(site) => json_escape(&format!("{} {}", site.opcode, place(site))),
            None => json_escape(&map.name),
        };
        args.clear();
        put(&mut args, format_args!("\"lane\":{},\"event\":{}", event.lane(), event.sequence()));
        for (index, column) in map.columns.iter().enumerate() {
            if let Some(value) = event.value(index) {
                put(&mut args, format_args!(",{}:", json_escape(&column.name)));
                put_value(&mut args, Format::Json, value);
            }
        }
        writer.object(format_args!(
            "{{\"ph\":\"i\",\"s\":\"t\",\"name\":{name},\"pid\":{},\"tid\":{track},\"ts\":{:.4},\"args\":{{{}}}}}",
            here.pid,
            here.at + cycles as f64 * here.cycle,
            String::from_utf8_lossy(&args)
        ))?;
    }
    Ok(())
}
