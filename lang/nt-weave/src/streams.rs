//! Plans the streams of a kernel: what each event stores, the codes that say so, runs of events that share an election
//! and make room at once, and how many slots a chunk has.
//!
//! ```text
//! ld.global.f32 %f1, [%rd4];      a run of two in one basic block: the first elects a lane and sees to it that its
//! ld.global.f32 %f2, [%rd5];      chunk has two slots left; both store, and nothing is asked in between
//! ```
//!
//! Lanes that come to a basic block together execute all of its unguarded instructions, so the leader and the mask of
//! its first event are those of the others. To claim a chunk is 30 instructions and to ask whether that must be is five,
//! so a run asks once: it is, as to room, one event of as many slots (docs/injection.md, Streams).

use crate::Refused;
use crate::bodies::{Body, Closer, Site};
use crate::callees::Calls;
use crate::chunks;
use crate::codes::{self, Codes, Stored};
use crate::operands::Size;
use crate::sites::{Found, Kind as SiteKind};
use nt_affine::Access;
use nt_ir::Prepared;
use nt_ir::launch::Conditions;
use nt_ir::layout::Layout;
use nt_ir::program::{MapId, Op, Unit};
use nt_ptx::opcode::Bytes;
use nt_ptx::syntax::{Kind, Module};
use nt_ptx::{Flow, ModuleInfo, flow};
use std::collections::BTreeMap;

/// A stream of a kernel.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    pub(crate) map: MapId,
    /// Slots a chunk, a power of two.
    pub(crate) chunk: u32,
    pub(crate) codes: Codes,
}

/// A save to a stream, at a site.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    /// The instruction of the body.
    pub(crate) inst: usize,
    pub(crate) map: MapId,
    /// The first of its codes.
    pub(crate) code: u32,
    /// What is stored of each field with a value of each lane, by field.
    pub(crate) lanes: Vec<(u32, Stored)>,
    /// The room that is to be made before it; `None` where an event before it has done so.
    pub(crate) room: Option<Room>,
}

impl Event {
    /// Are there values of lanes to be stored?
    pub(crate) fn is_long(&self) -> bool {
        self.lanes.iter().any(|(_, stored)| 0 < stored.most_slots())
    }
}

/// What a chunk is to have room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Room {
    pub(crate) slots: u32,
    /// How many events that are, which are lost together if there is no chunk any more.
    pub(crate) events: u32,
}

impl Room {
    fn add(&mut self, probe: &Prepared, event: &Event) {
        self.slots += most_slots(probe, event);
        self.events += 1;
    }
}

/// How a site comes to know the lanes that are there and the one that leads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Turn {
    /// It asks, for itself.
    #[default]
    Alone,
    /// It asks, also for those behind it.
    First,
    /// One before it has asked.
    Next,
}

/// The streams of a kernel, and what was relied on to tell what their events store.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// By map, rising.
    pub(crate) list: Vec<Stream>,
    pub(crate) assumes: Conditions,
    /// Do any sites share an election?
    pub(crate) shares: bool,
}

impl Streams {
    pub(crate) fn of(&self, map: MapId) -> Option<&Stream> {
        self.list.iter().find(|stream| stream.map == map)
    }

    /// Those that a clone uses, whose sites these are.
    pub(crate) fn of_clone(&self, uses: impl Fn(MapId) -> bool, sites: &[Site<'_>]) -> Streams {
        // What codes there are is the kernel's to say.
        let without_codes = |stream: &Stream| Stream { codes: Codes::default(), ..*stream };
        let list = self.list.iter().filter(|stream| uses(stream.map)).map(without_codes).collect();
        Streams { list, assumes: self.assumes, shares: shares(sites.iter()) }
    }
}

/// Do any of these sites share an election?
fn shares<'s, 'p: 's>(mut sites: impl Iterator<Item = &'s Site<'p>>) -> bool {
    sites.any(|site| site.turn == Turn::First)
}

/// What is known of the kernel.
#[derive(Clone, Copy)]
pub(crate) struct Kernel<'a, 's> {
    pub(crate) module: &'a Module<'s>,
    pub(crate) info: &'a ModuleInfo<'s>,
    pub(crate) probe: &'a Prepared,
    pub(crate) function: usize,
    pub(crate) assume: Conditions,
}

/// Plans the events of all bodies, those in functions that the kernel calls among them.
pub(crate) fn plan(
    kernel: Kernel<'_, '_>,
    closer: &Closer<'_>,
    calls: &Calls,
    sites: &mut [Site<'_>],
) -> Result<Streams, Refused> {
    let Kernel { module, info, probe, function, assume } = kernel;
    let is_event = |body: &Body<'_>| body.code.code.iter().any(|inst| to_stream(probe, &inst.op).is_some());
    if !sites.iter().flat_map(|site| &site.bodies).any(is_event) {
        return Ok(Streams::default());
    }
    let mut streams = Streams::default();
    let mut codes: BTreeMap<MapId, Codes> = BTreeMap::new();
    let mut addresses: BTreeMap<usize, Vec<Access>> = BTreeMap::new();
    for (index, site) in (0..).zip(&mut *sites) {
        if !site.bodies.iter().any(is_event) {
            continue;
        }
        let of = site.found.function;
        let addresses = addresses.entry(of).or_insert_with(|| nt_affine::addresses(module, info, of, assume));
        // Where the guard does not hold the values are 0, of which nothing is proved.
        let is_proved = site.found.guard.is_none() || !site.found.reach;
        let access = site.found.statement.filter(|_| is_proved).and_then(|at| access(addresses, at));
        let whole = whole(&site.found);
        for body in &mut site.bodies {
            for (inst, one) in body.code.code.iter().enumerate() {
                let Some((map, values)) = to_stream(probe, &one.op) else { continue };
                let context =
                    codes::Context { probe, body: &body.code, access, whole, assumes: &mut streams.assumes };
                let refusal = |why: String| {
                    let message = format!("kernel `{}` cannot be probed: {why}", closer.kernel);
                    Box::new(nt_diag::Diagnostic::error("cannot-weave", closer.at, message))
                };
                if body.code.unit != Unit::Warp {
                    return Err(refusal("a stream takes what `warp` probes save".into()));
                }
                let lanes = codes::stored(context, map, values).map_err(refusal)?;
                let of_map = codes.entry(map).or_default();
                let code = of_map.add(probe, map, &body.code, values, index, &lanes).map_err(refusal)?;
                body.events.push(Event { inst, map, code, lanes, room: None });
            }
        }
    }
    let flows: BTreeMap<usize, Flow> = calls
        .callees(function)
        .into_iter()
        .chain([function])
        .map(|function| (function, flow(module, info, function)))
        .collect();
    for (map, codes) in codes {
        let chunk = chunks::slots(probe, map, function, calls, &flows, sites);
        streams.list.push(Stream { map, chunk, codes });
    }
    // The sites of a function stand together.
    for sites in sites.chunk_by_mut(|one, other| one.found.function == other.found.function) {
        let of = sites.first().and_then(|site| flows.get(&site.found.function));
        if let Some(flow) = of {
            share(probe, &streams.list, flow, module, sites);
        }
    }
    streams.shares = shares(sites.iter().filter(|site| site.found.function == function));
    Ok(streams)
}

/// How many bytes the copy at a site moves at most, where an operand says that it may be fewer.
fn whole(found: &Found) -> Option<u32> {
    match (&found.access.size, found.facts.map(|facts| facts.bytes)) {
        (Some(Size::Register(_)), Some(Bytes::CopySize { size, source: Some(_), .. })) => size,
        (Some(Size::Unless { size, .. }), _) => Some(*size),
        _ => None,
    }
}

/// The map and values of a save to a stream.
pub(crate) fn to_stream<'o>(
    probe: &Prepared,
    op: &'o Op,
) -> Option<(MapId, &'o [(u32, nt_ir::program::ValueId)])> {
    let Op::Save { map, values } = op else { return None };
    layout(probe, *map)?.stream?;
    Some((*map, values))
}

fn layout(probe: &Prepared, map: MapId) -> Option<&Layout> {
    probe.layouts.get(map.0 as usize)
}

fn access(addresses: &[Access], statement: u32) -> Option<&Access> {
    let at = addresses.partition_point(|access| access.statement < statement);
    addresses.get(at).filter(|access| access.statement == statement)
}

/// The slots that an event takes at most.
pub(crate) fn most_slots(probe: &Prepared, event: &Event) -> u32 {
    let header = layout(probe, event.map).and_then(|layout| layout.stream).map_or(1, |l| l.header_slots);
    event.lanes.iter().fold(header, |sum, (_, stored)| sum + stored.most_slots())
}

/// A run of events asks for room at its first; it is at most as long as a chunk holds.
fn share(probe: &Prepared, streams: &[Stream], flow: &Flow, module: &Module<'_>, sites: &mut [Site<'_>]) {
    let room = |map: MapId| streams.iter().find(|one| one.map == map).map_or(1, |stream| stream.chunk - 1);
    for run in runs(probe, flow, module, sites, room) {
        let many = 1 < run.len();
        let mut room: BTreeMap<MapId, Room> = BTreeMap::new();
        for site in sites.get(run.clone()).into_iter().flatten() {
            for event in site.bodies.iter().flat_map(|body| &body.events) {
                room.entry(event.map).or_default().add(probe, event);
            }
        }
        for (at, site) in run.clone().zip(sites.get_mut(run.clone()).into_iter().flatten()) {
            let has_events = site.bodies.iter().any(|body| !body.events.is_empty());
            if many && has_events {
                site.turn = if at == run.start { Turn::First } else { Turn::Next };
            }
            let is_simple = is_simple(site);
            for event in site.bodies.iter_mut().flat_map(|body| &mut body.events) {
                let mut own = Room::default();
                own.add(probe, event);
                // The first of each map asks for all, if it is sure to be there when the others are.
                event.room = if is_simple { room.remove(&event.map) } else { Some(own) };
            }
        }
    }
}

/// Ranges of sites whose events run together: a site that does not fit is a range of its own.
fn runs(
    probe: &Prepared,
    flow: &Flow,
    module: &Module<'_>,
    sites: &[Site<'_>],
    room: impl Fn(MapId) -> u32,
) -> Vec<std::ops::Range<usize>> {
    let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
    let mut used: BTreeMap<MapId, u32> = BTreeMap::new();
    let mut open = false;
    for (at, site) in sites.iter().enumerate() {
        let events = || site.bodies.iter().flat_map(|body| &body.events);
        if events().next().is_none() {
            continue;
        }
        let mut here: BTreeMap<MapId, u32> = BTreeMap::new();
        for event in events() {
            *here.entry(event.map).or_default() += most_slots(probe, event);
        }
        let simple = is_simple(site);
        let last = runs.last_mut().filter(|_| open && simple);
        let goes_on = last.filter(|run| {
            let before = sites.get(run.end.saturating_sub(1)).and_then(|site| site.found.statement);
            let fits = here.iter().all(|(map, slots)| used.get(map).unwrap_or(&0) + slots <= room(*map));
            fits && before.zip(site.found.statement).is_some_and(|(a, b)| is_straight(flow, module, a, b))
        });
        match goes_on {
            Some(run) => run.end = at + 1,
            None => {
                runs.push(at..at + 1);
                used.clear();
                open = simple;
            }
        }
        for (map, slots) in here {
            *used.entry(map).or_default() += slots;
        }
    }
    runs
}

/// Do all lanes that come here have the site's events, each in a number of slots that is known?
fn is_simple(site: &Site<'_>) -> bool {
    let all = |body: &Body<'_>| {
        body.asked.is_none()
            && body.code.predicate.is_none()
            && body.events.iter().all(|event| {
                let guard = body.code.code.get(event.inst).and_then(|inst| inst.guard);
                guard.is_none() && !event.is_long()
            })
    };
    matches!(site.found.kind, SiteKind::Instruction(_) | SiteKind::Block { .. })
        && (site.found.guard.is_none() || site.found.reach)
        && site.bodies.iter().filter(|body| !body.events.is_empty()).all(all)
}

/// Do all lanes that execute statement `a` execute `b` next, with no call between?
fn is_straight(flow: &Flow, module: &Module<'_>, a: u32, b: u32) -> bool {
    let block = flow.block_of(a);
    let between = module.statements.get(a as usize..b as usize).unwrap_or_default();
    let is_call = |kind: &Kind| match kind {
        Kind::Instruction(instruction) => {
            matches!(module.opcode(instruction).base, "call" | "ret" | "exit" | "trap" | "bra" | "brx")
        }
        _ => false,
    };
    a <= b && block.is_some() && block == flow.block_of(b) && !between.iter().any(|one| is_call(&one.kind))
}
