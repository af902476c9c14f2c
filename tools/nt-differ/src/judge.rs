//! What each shipped probe should show, from what the software GPU counted while the original ran.
//!
//! ```text
//! gmem_bytes   @sync[block]   = bytes of global memory that instructions accessed, copies left out
//! hot_lines    @issued[line]  = groups of lanes that executed an instruction of the line
//! ```

use crate::counted::{By, Cells, Counted, Instruction, within};
use crate::device::{Job, Ran, Text};
use crate::events::Access;
use crate::probed::Probed;
use crate::{records, traced, waits};
use nt_ir::launch::Conditions;
use nt_vgpu::{Count, Space};

/// A probed run beside the counts of the original's.
#[derive(Debug, Clone, Copy)]
pub struct Case<'r> {
    /// The text of the original.
    pub text: &'r Text<'r>,
    /// What was launched.
    pub job: &'r Job,
    /// What the original did.
    pub counted: &'r Counted<'r>,
    /// The accesses that it made.
    pub accesses: &'r [Access],
    /// What the weaver might rely on of the launch.
    pub assume: Conditions,
    /// Multiprocessors of the device.
    pub sms: u32,
    /// The text with the probe.
    pub probed: &'r Probed,
    /// What it left.
    pub ran: &'r Ran,
    /// Was the schedule the plain one? A seeded one parts lanes at branches, also at those of probes, so that what
    /// groups do is not the same with and without a probe; what lanes do is.
    pub is_plain: bool,
}

/// The shipped probes that are judged.
pub const JUDGED: [&str; 7] =
    ["block_sched", "dmat", "gmem_bytes", "hot_lines", "last_waits", "program_progress", "tensorop_count"];

/// Holds what a shipped probe recorded against what was counted; `None` for a probe that nobody wrote this for.
pub fn judge(probe: &str, case: &Case<'_>) -> Option<Result<(), String>> {
    Some(match probe {
        "block_sched" => block_sched(case),
        "dmat" => traced::dmat(case),
        "gmem_bytes" => gmem_bytes(case),
        "hot_lines" => hot_lines(case),
        "last_waits" => waits::last_waits(case),
        "program_progress" => traced::program_progress(case),
        "tensorop_count" => tensorop_count(case),
        _ => return None,
    })
}

/// A record a warp, with the SM that ran it; what ran on an SM before ended before.
fn block_sched(case: &Case<'_>) -> Result<(), String> {
    let records = records::map(case.probed, case.job, case.ran, "block_sched")?;
    // Of each SM, the last end of the blocks before, and that of the block at hand.
    let mut ends: Vec<(u64, u64)> = Vec::new();
    let mut last_block = None;
    for (warp, record) in (0u64..).zip(&records.all) {
        let Some([start, elapsed, cu]) = record.as_deref() else {
            return Err(format!("warp {warp} has no record, but {record:?}"));
        };
        let block = warp / records.of_a_block;
        if *elapsed == 0 {
            return Err(format!("warp {warp} took no time"));
        }
        let Some(sm) = case.counted.sm(block) else { continue };
        if *cu != u64::from(sm) {
            return Err(format!("warp {warp} says SM {cu}, it ran on {sm}"));
        }
        ends.resize(ends.len().max(sm as usize + 1), (0, 0));
        // Resized so that it is there.
        let (before, now) = &mut ends[sm as usize];
        if last_block != Some(block) {
            *before = *now;
            last_block = Some(block);
        }
        if start < before {
            return Err(format!(
                "warp {warp} started at {start}, before its SM's last block ended at {before}"
            ));
        }
        *now = (*now).max(start + elapsed);
    }
    Ok(())
}

/// `cp.async`, `cp.async.bulk`, not `cp.async.commit_group`, which accesses nothing.
fn is_copy(instruction: &Instruction) -> bool {
    instruction.opcode.starts_with("cp.")
}

fn gmem_bytes(case: &Case<'_>) -> Result<(), String> {
    let bytes = |copies: bool| {
        let amount = move |instruction: &Instruction, count: &Count| match is_copy(instruction) == copies {
            true => count.bytes[Space::Global as usize],
            false => 0,
        };
        case.counted.cells(By::Block, &|_| Vec::new(), &amount)
    };
    for (name, copies) in [("sync", false), ("copied", true)] {
        let found = records::table(case.probed, case.job, case.ran, name)?;
        case.counted.expect(&format!("`@{name}`"), By::Block, bytes(copies), found)?;
    }
    let announces = |instruction: &Instruction| instruction.opcode.contains("expect_tx");
    if !case.counted.instructions.iter().any(announces) {
        let found = records::table(case.probed, case.job, case.ran, "announced")?;
        case.counted.expect("`@announced`", By::Block, Default::default(), found)?;
    }
    Ok(())
}

fn hot_lines(case: &Case<'_>) -> Result<(), String> {
    let cells = |amount: &dyn Fn((u64, u64)) -> u64| {
        let passes = |one: &Instruction, count: &Count| amount(one.passes(count));
        case.counted.cells(By::Sm, &|one| vec![one.line.clone()], &passes)
    };
    let found = records::table(case.probed, case.job, case.ran, "issued")?;
    if !case.is_plain {
        let (least, most) = (cells(&|(_, lanes)| lanes.div_ceil(32)), cells(&|(_, lanes)| lanes));
        return within("`@issued`", &least, &found, &most);
    }
    case.counted.expect("`@issued`", By::Sm, cells(&|(groups, _)| groups), found)
}

/// `m16n8k16` of an opcode of the matrix units: its multiply-adds. `None` of any other.
fn multiply_adds(opcode: &str) -> Option<u64> {
    if !["mma.", "wmma.mma.", "wgmma.mma_async."].iter().any(|words| opcode.starts_with(words)) {
        return None;
    }
    let shape = opcode
        .split('.')
        .skip(1)
        .find_map(|step| step.strip_prefix('m').filter(|rest| rest.contains('n')))?;
    let (m, rest) = shape.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some(m.parse::<u64>().ok()? * n.parse::<u64>().ok()? * k.parse::<u64>().ok()?)
}

/// Every warp has a record; what those of a block say adds up to what the block issued. All lanes of a warp take part.
fn tensorop_count(case: &Case<'_>) -> Result<(), String> {
    let records = records::map(case.probed, case.job, case.ran, "tensor")?;
    let mut found = [Cells::new(), Cells::new()];
    for (warp, record) in (0u64..).zip(&records.all) {
        let Some([ops, macs]) = record.as_deref() else {
            return Err(format!("warp {warp} has no record, but {record:?}"));
        };
        for (cells, &amount) in found.iter_mut().zip([ops, macs]).filter(|(_, amount)| **amount != 0) {
            *cells.entry((warp / records.of_a_block, Vec::new())).or_default() += amount;
        }
    }
    let [ops, macs] = found;
    let counted = |each: &dyn Fn(u64) -> u64| {
        case.counted.cells(By::Block, &|_| Vec::new(), &|instruction, count| {
            multiply_adds(&instruction.opcode).map_or(0, |macs| count.lanes / 32 * each(macs))
        })
    };
    case.counted.expect("`ops`", By::Block, counted(&|_| 1), ops)?;
    case.counted.expect("`macs`", By::Block, counted(&|macs| macs), macs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_matrix_instructions() {
        assert_eq!(multiply_adds("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"), Some(2048));
        assert_eq!(multiply_adds("mad.lo.s32"), None);
        assert_eq!(multiply_adds("wmma.load.a.sync.aligned.row.m16n16k16.f16"), None);
        assert_eq!(multiply_adds("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32"), Some(4096));
    }
}
