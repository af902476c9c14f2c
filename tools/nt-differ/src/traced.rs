//! What probes that save to streams should show: `dmat` every access to global memory, `program_progress` rounds of loops.
//!
//! ```text
//! seen       warp 3 at `ld.global.f32 %f1, [%rd4]`: lanes 0..15 at 0x1000, 0x1004 …
//! dmat       warp 3, site 2, mask 0xffff: 0x1000, 0x1004 …       and so for every access, no more and no less
//! ```

use crate::events::{self, Event, Events};
use crate::judge::Case;
use nt_affine::Proof;
use nt_diag::Source;
use nt_ptx::syntax::Kind;
use nt_vgpu::Space;
use std::collections::{BTreeMap, BTreeSet};

/// Below this an address of the software GPU is one of global memory; windows of other spaces lie above.
const WINDOWS: u64 = 1 << 47;

/// A lane at a site, and where it accesses memory.
type Touch = (u64, usize, u32, u64);

/// The sites of a kind as statements of the text, by index among all sites.
fn statements(
    case: &Case<'_>,
    is_meant: impl Fn(nt_weave::Kind) -> bool,
) -> Result<Vec<Option<u32>>, String> {
    let kernel = case.probed.kernel(&case.job.kernel).ok_or("no such kernel")?;
    let source = Source::new("", case.text.text);
    let mut at: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for (number, statement) in (0..).zip(&case.text.module.statements) {
        if matches!(statement.kind, Kind::Instruction(_)) {
            let position = source.position(statement.span.start);
            at.insert((position.line, position.column), number);
        }
    }
    Ok(kernel
        .sites
        .iter()
        .map(|site| at.get(&(site.line, site.column)).copied().filter(|_| is_meant(site.kind)))
        .collect())
}

/// Every access to global memory has an event, and every event an access.
pub(crate) fn dmat(case: &Case<'_>) -> Result<(), String> {
    let events = events::read(case.probed, case.job, case.ran, "dmat", case.sms)?;
    let statements = statements(case, |kind| matches!(kind, nt_weave::Kind::Instruction(_)))?;
    let sites: BTreeMap<u32, usize> =
        (0..).zip(&statements).filter_map(|(site, statement)| Some(((*statement)?, site))).collect();
    nothing_is_left_out(case, &sites)?;

    let mut expected: Vec<Touch> = Vec::new();
    let mut groups: Vec<(u64, usize, u32)> = Vec::new();
    for access in case.accesses {
        let Some(&site) = sites.get(&access.statement) else { continue };
        let is_there = |lane: &u32| {
            access.lanes >> lane & 1 == 1
                && access.addresses.get(*lane as usize).is_some_and(|&at| at < WINDOWS)
        };
        let lanes: Vec<u32> = (0..32).filter(is_there).collect();
        let touch = |&lane: &u32| (access.warp, site, lane, access.addresses[lane as usize]);
        expected.extend(lanes.iter().map(touch));
        if !lanes.is_empty() {
            groups.push((access.warp, site, lanes.iter().fold(0, |mask, lane| mask | 1 << lane)));
        }
    }
    let trusted = trusted(case, &statements);
    let mut found: Vec<Touch> = Vec::new();
    for event in &events.stored {
        let [_, Some(site), None, None] = event.values[..] else {
            return Err(format!("an event with other columns: {event:?}"));
        };
        if site != event.site as i128 {
            return Err(format!("site {site} is told as {}", event.site));
        }
        let Some([_, _, Some(addresses), Some(_)]) = event.lanes.first_chunk::<4>() else {
            return Err(format!("an event without lanes: {event:?}"));
        };
        let lanes = (0..32).filter(|lane| event.mask >> lane & 1 == 1);
        found.extend(lanes.map(|lane| (event.warp, event.site, lane, addresses[lane as usize])));
    }
    // Where groups meet by chance, a proof that relies on where they meet does not hold.
    let is_trusted = |touch: &&mut Touch| !trusted.contains(&touch.1);
    expected.iter_mut().filter(is_trusted).for_each(|touch| touch.3 = 0);
    found.iter_mut().filter(is_trusted).for_each(|touch| touch.3 = 0);
    agree(&events, &mut expected, &mut found)?;
    times(&events)?;
    if case.is_plain {
        in_groups(&events, groups)?;
    }
    let dropped: u64 = events.dropped.iter().sum();
    if dropped == 0 { bytes(case, &events, &sites) } else { Ok(()) }
}

/// Every instruction that accessed global memory is a site.
fn nothing_is_left_out(case: &Case<'_>, sites: &BTreeMap<u32, usize>) -> Result<(), String> {
    let places = case.text.program.places();
    for part in case.counted.parts() {
        for (place, count) in places.iter().zip(&part.stats.counts) {
            let is_accessed = count.bytes[Space::Global as usize] != 0;
            if is_accessed && !sites.contains_key(&place.statement) && !place.opcode.contains(".tensor") {
                return Err(format!("`{}` in line {} is no site", place.opcode, place.line));
            }
        }
    }
    Ok(())
}

/// The sites whose addresses are recorded exactly whatever lanes meet.
fn trusted(case: &Case<'_>, statements: &[Option<u32>]) -> BTreeSet<usize> {
    let functions = 0..case.text.module.functions.len();
    let proofs = functions
        .flat_map(|index| nt_affine::addresses(&case.text.module, &case.text.info, index, case.assume));
    let relying: BTreeSet<u32> = proofs
        .filter(|access| matches!(access.proof, Proof::Bits { joins: true, .. }))
        .map(|access| access.statement)
        .collect();
    let relies = |statement: u32| relying.contains(&statement);
    let sites = statements.iter().enumerate();
    sites
        .filter(|(_, statement)| case.is_plain || statement.is_some_and(|statement| !relies(statement)))
        .map(|(site, _)| site)
        .collect()
}

/// Nothing was recorded that did not happen; nothing is missing where nothing was dropped.
fn agree(events: &Events, expected: &mut [Touch], found: &mut [Touch]) -> Result<(), String> {
    expected.sort_unstable();
    found.sort_unstable();
    let is_whole = |warp: u64| events.dropped.get(warp as usize) == Some(&0);
    let mut expected = expected.iter().peekable();
    for touch in &*found {
        loop {
            match expected.peek() {
                Some(next) if *next == touch => {
                    expected.next();
                    break;
                }
                Some(next) if *next < touch && !is_whole(next.0) => {
                    expected.next();
                }
                Some(next) if *next < touch => return Err(format!("not recorded: {}", said(next))),
                _ => return Err(format!("recorded, and did not happen: {}", said(touch))),
            }
        }
    }
    match expected.find(|touch| is_whole(touch.0)) {
        Some(missing) => Err(format!("not recorded: {}", said(missing))),
        None => Ok(()),
    }
}

fn said((warp, site, lane, address): &Touch) -> String {
    format!("warp {warp}, site {site}, lane {lane} at {address:#x}")
}

/// Events of a warp are as many as its groups, those without room among them, and each mask is one of a group.
fn in_groups(events: &Events, mut groups: Vec<(u64, usize, u32)>) -> Result<(), String> {
    let mut of_warp: BTreeMap<u64, i64> = BTreeMap::new();
    for (warp, ..) in &groups {
        *of_warp.entry(*warp).or_default() += 1;
    }
    for (warp, dropped) in (0..).zip(&events.dropped) {
        *of_warp.entry(warp).or_default() -= *dropped as i64;
    }
    groups.sort_unstable();
    for event in &events.stored {
        *of_warp.entry(event.warp).or_default() -= 1;
        if groups.binary_search(&(event.warp, event.site, event.mask)).is_err() {
            return Err(format!(
                "an event of warp {} at site {} has the lanes {:#x}, which were not there together",
                event.warp, event.site, event.mask
            ));
        }
    }
    match of_warp.iter().find(|(_, left)| **left != 0) {
        Some((warp, left)) => Err(format!("warp {warp}: {left} groups are neither recorded nor dropped")),
        None => Ok(()),
    }
}

/// Time does not go back in what a lane has saved.
fn times(events: &Events) -> Result<(), String> {
    let mut last: BTreeMap<(u64, u32), (u64, i128)> = BTreeMap::new();
    let mut stored: Vec<&Event> = events.stored.iter().collect();
    stored.sort_by_key(|event| (event.warp, event.lane, event.sequence));
    for event in stored {
        let at = event.values.first().copied().flatten().ok_or("an event without a time")?;
        let before = last.insert((event.warp, event.lane), (event.sequence, at));
        let is_next = before.map_or(event.sequence == 0, |(number, _)| number + 1 == event.sequence);
        if !is_next || before.is_some_and(|(_, before)| at < before) {
            return Err(format!("{event:?} follows {before:?}"));
        }
    }
    Ok(())
}

/// The bytes of all lanes add up to what was accessed.
fn bytes(case: &Case<'_>, events: &Events, sites: &BTreeMap<u32, usize>) -> Result<(), String> {
    let mut found: BTreeMap<usize, u64> = BTreeMap::new();
    for event in &events.stored {
        let Some(Some(bytes)) = event.lanes.get(3) else { continue };
        let lanes = (0..32).filter(|lane| event.mask >> lane & 1 == 1).map(|lane| bytes[lane]);
        *found.entry(event.site).or_default() += lanes.sum::<u64>();
    }
    let places = case.text.program.places();
    for (index, place) in places.iter().enumerate() {
        let Some(site) = sites.get(&place.statement) else { continue };
        let count = |part: &crate::device::Part| {
            part.stats.counts.get(index).map_or(0, |count| count.bytes[Space::Global as usize])
        };
        let counted: u64 = case.counted.parts().iter().map(count).sum();
        let found = found.get(site).copied().unwrap_or(0);
        if counted != found {
            return Err(format!("site {site}, `{}`: {found} bytes, counted were {counted}", place.opcode));
        }
    }
    Ok(())
}

/// Of the rounds that `program_progress` counts in each lane, it saves one in so many.
const EVERY: u64 = 16;

/// A lane that goes round so many times saves so many events; the first may come early, since warps do not begin alike.
pub(crate) fn program_progress(case: &Case<'_>) -> Result<(), String> {
    let events = events::read(case.probed, case.job, case.ran, "progress", case.sms)?;
    times(&events)?;
    let heads = statements(case, |kind| matches!(kind, nt_weave::Kind::Block { .. }))?;
    let warps = case.job.threads().div_ceil(32);
    let mut found: BTreeMap<u64, u64> = BTreeMap::new();
    for event in &events.stored {
        if heads.get(event.site).copied().flatten().is_none() {
            return Err(format!("an event where no loop begins: {event:?}"));
        }
        *found.entry(event.warp / warps).or_default() += 1;
    }
    if !case.counted.has_blocks() {
        return Ok(());
    }
    for (warp, dropped) in (0..).zip(&events.dropped) {
        *found.entry(warp / warps).or_default() += dropped;
    }
    for (block, part) in (0u64..).zip(case.counted.parts()) {
        let of_head = |head: u32| {
            let index = case.text.program.instruction(head)?;
            part.stats.counts.get(index).map(|count| (count.groups_there, count.lanes_there))
        };
        let counts: Vec<(u64, u64)> = heads.iter().flatten().filter_map(|&head| of_head(head)).collect();
        let groups: u64 = counts.iter().map(|(groups, _)| groups).sum();
        let lanes: u64 = counts.iter().map(|(_, lanes)| lanes).sum();
        let found = found.get(&block).copied().unwrap_or(0);
        // Lanes that part save events of their own.
        let most = lanes / EVERY + case.job.threads();
        // Where all lanes of the one warp go round together, its counter is known.
        let together = warps == 1 && lanes == groups * case.job.threads();
        let exactly = (block + groups) / EVERY - block / EVERY;
        if found > most || (together && case.is_plain && found != exactly) {
            return Err(format!(
                "block {block} saved {found} events in {groups} rounds of groups, {lanes} of lanes"
            ));
        }
    }
    Ok(())
}
