//! Special registers.
//!
//! Clocks count executed instructions of the SM (a block's warps take turns on it), `%smid` is the block's number
//! modulo the SMs, `%warpid` the warp's number in its block.
//!
//! Source: PTX ISA 9.0, chapter 10.

use crate::code::Src;
use crate::machine::Machine;
use crate::stats::first_lanes;
use crate::warp::{Row, Warp};

/// A special register; the number is x, y or z.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    Laneid,
    Warpid,
    Nwarpid,
    Smid,
    Nsmid,
    Gridid,
    Lanemask(Lanemask),
    Clock,
    ClockHigh,
    Clock64,
    Globaltimer,
    GlobaltimerLow,
    GlobaltimerHigh,
    DynamicSharedSize,
    TotalSharedSize,
    Clusterid(u8),
    Nclusterid(u8),
    ClusterCtaid(u8),
    ClusterNctaid(u8),
    ClusterCtarank,
    ClusterNctarank,
    IsExplicitCluster,
    Zero,
}

/// Which lanes, seen from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lanemask {
    Equal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl Special {
    /// The register of that name, fields included.
    pub(crate) fn named(name: &str) -> Option<Special> {
        let (stem, axis) = match name.split_once('.') {
            Some((stem, "x")) => (stem, Some(0)),
            Some((stem, "y")) => (stem, Some(1)),
            Some((stem, "z")) => (stem, Some(2)),
            Some(_) => return None,
            None => (name, None),
        };
        let of_axis = |make: fn(u8) -> Special| axis.map(make);
        let plain = |special| axis.is_none().then_some(special);
        match stem {
            "%tid" => of_axis(Special::Tid),
            "%ntid" => of_axis(Special::Ntid),
            "%ctaid" => of_axis(Special::Ctaid),
            "%nctaid" => of_axis(Special::Nctaid),
            "%clusterid" => of_axis(Special::Clusterid),
            "%nclusterid" => of_axis(Special::Nclusterid),
            "%cluster_ctaid" => of_axis(Special::ClusterCtaid),
            "%cluster_nctaid" => of_axis(Special::ClusterNctaid),
            "%cluster_ctarank" => plain(Special::ClusterCtarank),
            "%cluster_nctarank" => plain(Special::ClusterNctarank),
            "%is_explicit_cluster" => plain(Special::IsExplicitCluster),
            "%laneid" => plain(Special::Laneid),
            "%warpid" => plain(Special::Warpid),
            "%nwarpid" => plain(Special::Nwarpid),
            "%smid" => plain(Special::Smid),
            "%nsmid" => plain(Special::Nsmid),
            "%gridid" => plain(Special::Gridid),
            "%lanemask_eq" => plain(Special::Lanemask(Lanemask::Equal)),
            "%lanemask_lt" => plain(Special::Lanemask(Lanemask::Less)),
            "%lanemask_le" => plain(Special::Lanemask(Lanemask::LessEqual)),
            "%lanemask_gt" => plain(Special::Lanemask(Lanemask::Greater)),
            "%lanemask_ge" => plain(Special::Lanemask(Lanemask::GreaterEqual)),
            "%clock" => plain(Special::Clock),
            "%clock_hi" => plain(Special::ClockHigh),
            "%clock64" => plain(Special::Clock64),
            "%globaltimer" => plain(Special::Globaltimer),
            "%globaltimer_lo" => plain(Special::GlobaltimerLow),
            "%globaltimer_hi" => plain(Special::GlobaltimerHigh),
            "%dynamic_smem_size" => plain(Special::DynamicSharedSize),
            "%total_smem_size" | "%aggr_smem_size" => plain(Special::TotalSharedSize),
            "%current_graph_exec" => plain(Special::Zero),
            _ => None,
        }
    }

    /// Its value in every lane of a warp.
    pub(crate) fn row(self, machine: &Machine<'_>, warp: &Warp) -> Row {
        // A warp's block is one of the machine's.
        let block = &machine.blocks[warp.block];
        let launch = &machine.launch;
        let at = |of: [u32; 3], axis: u8| u64::from(of.get(usize::from(axis)).copied().unwrap_or(0));
        let value = match self {
            Special::Tid(axis) => {
                return std::array::from_fn(|lane| at(machine.thread(warp.index * 32 + lane as u32), axis));
            }
            Special::Laneid => return std::array::from_fn(|lane| lane as u64),
            Special::Lanemask(which) => {
                return std::array::from_fn(|lane| {
                    let (below, own) = (first_lanes(lane as u32), 1 << lane);
                    u64::from(match which {
                        Lanemask::Equal => own,
                        Lanemask::Less => below,
                        Lanemask::LessEqual => below | own,
                        Lanemask::Greater => !(below | own),
                        Lanemask::GreaterEqual => !below,
                    })
                });
            }
            Special::Ntid(axis) => at(launch.block, axis),
            Special::Ctaid(axis) => at(block.index, axis),
            Special::Nctaid(axis) => at(launch.grid, axis),
            Special::Warpid => u64::from(warp.index),
            Special::Nwarpid => u64::from(machine.threads().div_ceil(32)),
            Special::Smid => u64::from(block.sm),
            Special::Nsmid => u64::from(machine.options.sms),
            Special::Gridid => 1,
            Special::Clock | Special::GlobaltimerLow => machine.clock & 0xffff_ffff,
            Special::ClockHigh | Special::GlobaltimerHigh => machine.clock >> 32,
            Special::Clock64 | Special::Globaltimer => machine.clock,
            Special::DynamicSharedSize => u64::from(launch.shared),
            Special::TotalSharedSize => block.shared.len() as u64,
            Special::Clusterid(axis) => at(block.index, axis) / at(machine.cluster, axis).max(1),
            Special::Nclusterid(axis) => at(launch.grid, axis) / at(machine.cluster, axis).max(1),
            Special::ClusterCtaid(axis) => at(block.index, axis) % at(machine.cluster, axis).max(1),
            Special::ClusterNctaid(axis) => at(machine.cluster, axis),
            Special::ClusterCtarank => u64::from(block.rank),
            Special::ClusterNctarank => machine.cluster.iter().map(|&n| u64::from(n)).product(),
            Special::IsExplicitCluster => u64::from(machine.cluster != [1; 3]),
            Special::Zero => 0,
        };
        [value; 32]
    }
}

impl Warp {
    /// The values of an operand in all lanes of the group that runs.
    pub(crate) fn row(&self, machine: &Machine<'_>, src: Src) -> Row {
        match src {
            Src::Slot(slot) => *self.slot(slot),
            Src::Not(slot) => self.slot(slot).map(|value| value ^ 1),
            Src::Immediate(value) => [value; 32],
            Src::Special(special) => special.row(machine, self),
            Src::Frame(offset) => self.local.map(|frame| u64::from(frame + offset)),
            Src::Global(offset) => [machine.launch.globals.wrapping_add(offset); 32],
            Src::Dynamic(offset) => [u64::from(machine.dynamic).wrapping_add(offset); 32],
        }
    }
}
