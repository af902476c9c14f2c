//! What `last_waits` should show: of each warp as many waits as it came to barriers, the newest of which are there.

use crate::counted::{By, Cells, Instruction, within};
use crate::judge::Case;
use crate::slots;

/// How many waits of a warp that stays together are kept.
const KEPT: usize = 16;

/// Does it wait for other warps? `bar.sync`, `bar.red`, `barrier.cluster.wait`, not `bar.warp.sync` and `bar.arrive`.
fn is_wait(instruction: &Instruction) -> bool {
    let mut words = instruction.opcode.split('.');
    let is_barrier = matches!(words.next(), Some("bar" | "barrier"));
    let words: Vec<&str> = words.collect();
    is_barrier && !words.contains(&"warp") && ["sync", "red", "wait"].iter().any(|word| words.contains(word))
}

pub(crate) fn last_waits(case: &Case<'_>) -> Result<(), String> {
    let mut found = Cells::new();
    let warps = case.job.threads().div_ceil(32);
    let is_woven = case.probed.kernel(&case.job.kernel).is_some_and(|kernel| !kernel.maps.is_empty());
    let units = match is_woven {
        true => slots::read(case.probed, &case.job.kernel, case.ran, "waits")?,
        // It has no barriers.
        false => Vec::new(),
    };
    for (warp, unit) in (0u64..).zip(&units) {
        let taken = unit.taken.ok_or_else(|| format!("warp {warp} did not leave"))?;
        let (own, others) = unit.places.split_at(KEPT);
        for (what, places, taken) in [("lane 0", own, taken), ("others", others, unit.by_others)] {
            let stored = places.iter().flatten().count();
            if stored != places.len().min(taken as usize) {
                return Err(format!("warp {warp}, {what}: {stored} records of {taken}"));
            }
        }
        // The oldest of those that there are is the next to go.
        let oldest = (taken as usize).checked_sub(KEPT).map_or(0, |_| taken as usize % KEPT);
        let in_order = (0..own.len()).filter_map(|n| own.get((oldest + n) % KEPT)?.as_deref());
        let mut before = 0;
        for record in in_order {
            let [arrived, wait, _] = record else { return Err(format!("warp {warp}: {record:?}")) };
            if *arrived < before {
                return Err(format!(
                    "warp {warp} arrived at {arrived} and left a barrier at {before} before"
                ));
            }
            before = arrived + wait;
        }
        *found.entry((warp / warps, Vec::new())).or_default() += u64::from(taken) + u64::from(unit.by_others);
    }
    found.retain(|_, taken| *taken != 0);
    let cells = |amount: &dyn Fn((u64, u64)) -> u64| {
        case.counted.cells(By::Block, &|_| Vec::new(), &|one, count| match is_wait(one) {
            true => amount(one.passes(count)),
            false => 0,
        })
    };
    // Lanes that have parted come to a barrier in groups, of which there may be others with a probe than without.
    let whole = |(groups, lanes): (u64, u64)| case.is_plain && lanes == 32 * groups;
    let (least, most) = (
        cells(&|(_, lanes)| lanes.div_ceil(32)),
        cells(&|passes| if whole(passes) { passes.0 } else { passes.1 }),
    );
    if !case.counted.has_blocks() {
        return Ok(());
    }
    within("`waits`", &least, &found, &most)
}
