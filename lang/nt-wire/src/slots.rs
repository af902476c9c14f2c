//! What a [data frame](crate::frame::Data) of an array with a capacity holds: counts, then records.
//!
//! Each unit of a launch has room for several records, and a count of how many it has saved:
//!
//! ```text
//! [counts: 4 or 8 bytes a unit, padded to 64] [records: the frame's `capacity`, of the map's stride]
//! warp    record s of warp w is number w·per_unit + s      count  u32 saved by lane 0, and one; u32 by other lanes
//! thread  record s of thread t is number s·units + t       count  u32 saved, and one
//! ```
//!
//! A count is 0, or its low half is, where the unit has left its kernel by none of the probed exits: it saved what it
//! saved, and did not come to say how much. The same bytes in the same order are what a launch's segment has.

use crate::codec::Malformed;
use crate::frame::ALIGN;
use crate::message::SlotsShape;

/// Bytes from the counts to the records; `None` beyond 64 bits.
pub fn before_records(units: u64, shape: SlotsShape) -> Option<u64> {
    units.checked_mul(u64::from(shape.count_bytes))?.checked_next_multiple_of(ALIGN as u64)
}

/// How many records there are; `None` beyond 64 bits.
pub fn records(units: u64, shape: SlotsShape) -> Option<u64> {
    units.checked_mul(u64::from(shape.per_unit))
}

/// Counts and records of a frame's data, `data` being what follows the fixed part.
///
/// # Errors
/// It is too short for the counts of so many units.
pub fn split(data: &[u8], units: u64, shape: SlotsShape) -> Result<(&[u8], &[u8]), Malformed> {
    let before =
        before_records(units, shape).and_then(|bytes| usize::try_from(bytes).ok()).ok_or(Malformed)?;
    let (counts, records) = data.split_at_checked(before).ok_or(Malformed)?;
    // Not more than what was just rounded up.
    let counts = counts.get(..units as usize * usize::from(shape.count_bytes)).ok_or(Malformed)?;
    Ok((counts, records))
}

/// How many saves of these units are not there any more, or never were: those beyond their room.
pub fn beyond(counts: &[u8], shape: SlotsShape) -> u64 {
    let room = shape.per_unit.saturating_sub(shape.others);
    let own = |word: u32| u64::from(word.saturating_sub(1).saturating_sub(room));
    if shape.count_bytes == 4 {
        return counts.as_chunks::<4>().0.iter().map(|word| own(u32::from_le_bytes(*word))).sum();
    }
    let words = counts.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    words.map(|word| own(word as u32) + (word >> 32).saturating_sub(u64::from(shape.others))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_come_before_records() {
        let warps = SlotsShape { per_unit: 6, others: 2, count_bytes: 8 };
        assert_eq!((before_records(8, warps), records(8, warps)), (Some(64), Some(48)));
        assert_eq!((before_records(9, warps), records(9, warps)), (Some(128), Some(54)));
        assert_eq!(before_records(0, warps), Some(0));
        assert_eq!(before_records(u64::MAX, warps), None);
        let data: Vec<u8> = (0..200).collect();
        assert_eq!(split(&data, 9, warps), Ok((&data[..72], &data[128..])));
        assert_eq!(split(&data[..127], 9, warps), Err(Malformed));
        assert_eq!(split(&data, u64::MAX / 8 - 8, warps), Err(Malformed));
        let threads = SlotsShape { per_unit: 4, others: 0, count_bytes: 4 };
        assert_eq!(split(&data, 32, threads), Ok((&data[..128], &data[128..])));
    }

    #[test]
    fn what_is_beyond_the_room() {
        let warps = SlotsShape { per_unit: 6, others: 2, count_bytes: 8 };
        // Room for four and two: never left, none, four, nine of lane 0; two and seven of others.
        let counts = [(0u32, 0u32), (1, 2), (5, 0), (10, 7), (0, 3)];
        let counts: Vec<u8> = counts
            .iter()
            .flat_map(|&(own, other)| [own.to_le_bytes(), other.to_le_bytes()].concat())
            .collect();
        assert_eq!(beyond(&counts, warps), 5 + 5 + 1);
        let threads = SlotsShape { per_unit: 4, others: 0, count_bytes: 4 };
        let counts = [0u32, 1, 5, 6, u32::MAX].map(u32::to_le_bytes).concat();
        assert_eq!(beyond(&counts, threads), 1 + (u64::from(u32::MAX) - 5));
    }
}
