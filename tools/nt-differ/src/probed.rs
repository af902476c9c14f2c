//! A text with a probe in it: compiled, woven, held against the original by the verifier, decoded.

use crate::device::{self, Text};
use nt_ir::Prepared;
use nt_ir::launch::Conditions;
use nt_ir::program::UnitRoom;
use nt_vgpu::Program;
use nt_weave::{Woven, WovenKernel};
use nt_wire::message::Unit;

/// A probe program, ready to be woven.
///
/// # Errors
/// What is wrong with it.
pub fn compile(source: &str, name: &str) -> Result<Prepared, String> {
    let (program, found) = nt_probe::compile(source, name);
    let program = program.ok_or_else(|| {
        let all: Vec<String> =
            found.sorted().iter().map(|one| format!("{}: {}", one.slug, one.message)).collect();
        all.join("; ")
    })?;
    nt_ir::prepare(program, nt_ir::Options::default()).map_err(|broken| format!("{broken:?}"))
}

/// A module with a probe in it.
#[derive(Debug)]
pub struct Probed {
    /// The probe.
    pub probe: Prepared,
    /// What the weaver made.
    pub woven: Woven,
    /// Its code.
    pub program: Program,
    /// How much room its streams get.
    pub room: Room,
}

/// Whose records or cells a map or table has, and how many.
#[derive(Debug, Clone, Copy)]
pub struct Units {
    /// Whose.
    pub unit: Unit,
    /// Bytes of a record, of a unit's cells, or of a stream's slot.
    pub stride: u32,
    /// Of a stream, the slots of a chunk.
    pub chunk: Option<u32>,
    /// Of an array with a capacity, the records of a unit.
    pub room: Option<UnitRoom>,
}

/// How many chunks a stream gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// So many more than there are units.
    More(u64),
    /// One for each so many units, so that others have none.
    Fewer(u64),
}

impl Room {
    /// The chunks of a launch of so many units.
    pub fn chunks(self, units: u64) -> u64 {
        match self {
            Room::More(more) => units + more,
            Room::Fewer(by) => units / by.max(1),
        }
    }
}

impl Probed {
    /// Weaves a probe into all kernels of a text, for launches of which `assume` holds, and has it checked.
    ///
    /// # Errors
    /// The verifier refuses it, or it cannot be read.
    pub fn weave(text: &Text<'_>, probe: &Prepared, assume: Conditions) -> Result<Probed, String> {
        let chosen: Vec<usize> = (0..text.module.functions.len()).collect();
        let options = nt_weave::Options { assume, ..nt_weave::Options::default() };
        let woven = nt_weave::weave_with(&text.module, &text.info, probe, &chosen, options);
        let report = nt_verify::check(text.text, &woven.text);
        if let Some(first) = report.violations().first() {
            let at = first.span.start as usize;
            let near = woven.text.get(at.saturating_sub(100)..(at + 100).min(woven.text.len())).unwrap_or("");
            return Err(format!(
                "the verifier refuses what was woven: {:?}: {}: {near}",
                first.rule, first.message
            ));
        }
        let program = Text::load(&woven.text).map_err(|why| format!("what was woven: {why}"))?.program;
        Ok(Probed { probe: probe.clone(), woven, program, room: Room::More(1 << 10) })
    }

    /// What was woven into a kernel, if anything was.
    pub fn kernel(&self, name: &str) -> Option<&WovenKernel> {
        self.woven.kernels.iter().find(|kernel| kernel.name == name)
    }

    /// The units of a kernel's maps and then of its tables.
    pub fn units(&self, kernel: &WovenKernel) -> Vec<Units> {
        let maps = kernel.maps.iter().map(|map| Units {
            unit: device::unit(map.unit),
            stride: map.stream.as_ref().map_or(map.layout.stride, |_| nt_ir::layout::SLOT),
            chunk: map.stream.as_ref().map(|stream| stream.chunk),
            room: self.probe.program.maps.get(map.map).and_then(nt_ir::program::Map::room),
        });
        let tables = kernel.tables.iter().map(|table| Units {
            unit: table.unit.map_or(Unit::Sm, device::unit),
            stride: table.stride(),
            chunk: None,
            room: None,
        });
        maps.chain(tables).collect()
    }

    /// May lanes part at what it has in the middle of kernels?
    pub fn parts_lanes(&self) -> bool {
        self.has_streams() || self.probe.program.maps.iter().any(|map| map.room().is_some())
    }

    /// Does it save to streams?
    pub fn has_streams(&self) -> bool {
        self.probe.layouts.iter().any(|layout| layout.stream.is_some())
    }
}
