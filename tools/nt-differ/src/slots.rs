//! What arrays with a capacity hold after a probed run: of each unit what it took, and what there still is of it.

use crate::device::Ran;
use crate::probed::Probed;
use crate::records::{self, Record};

/// The records of one unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// How many the thread, or lane 0 of the warp, took; `None` if it left by no probed exit.
    pub taken: Option<u32>,
    /// How many the other lanes of the warp took.
    pub by_others: u32,
    /// Its places: those of the thread or of lane 0, then those of the other lanes, by the map's columns.
    pub places: Vec<Option<Record>>,
}

/// Reads an array with a capacity, unit by unit.
///
/// # Errors
/// There is no such array, or something stands behind the launch's units.
pub fn read(probed: &Probed, kernel: &str, ran: &Ran, name: &str) -> Result<Vec<Unit>, String> {
    let woven = probed.kernel(kernel).ok_or("no such kernel")?;
    let number = woven.maps.iter().position(|map| map.name == name).ok_or("no such map")?;
    let segment = ran.segments.get(number).ok_or("a map without a segment")?;
    // `position` found it.
    let map = &woven.maps[number];
    let declared = probed.probe.program.maps.get(map.map).ok_or("a map of no program")?;
    let room = declared.room().ok_or_else(|| format!("`{name}` has no capacity"))?;
    let (units, records) = (segment.units, u64::from(room.records()));
    let at = |index: u64| records::at(segment, &map.layout, &declared.columns, index);
    for index in units * records..segment.capacity {
        if at(index)?.is_some() {
            return Err(format!("`{name}`: record {index} is there, behind those of {units} units"));
        }
    }
    let half = |unit: u64, half: u64| -> u32 {
        let from = (unit * u64::from(room.count_bytes()) + half) as usize;
        let bytes = segment.counts.get(from..from + 4).and_then(<[u8]>::first_chunk);
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    };
    let unit = |unit: u64| {
        let place = |place: u64| match map.layout.columnar {
            true => at(place * units + unit),
            false => at(unit * records + place),
        };
        Ok(Unit {
            taken: half(unit, 0).checked_sub(1),
            by_others: if room.others == 0 { 0 } else { half(unit, 4) },
            places: (0..records).map(place).collect::<Result<_, String>>()?,
        })
    };
    (0..units).map(unit).collect()
}
