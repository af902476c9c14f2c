//! The cells that are not empty, a line each: for sort, awk and other plots.
//!
//! ```text
//! cycle_from cycle_to  address_from   address_to     pages accesses
//! 0          128       0x7f2000000000 0x7f2000001000 1     4096
//! ```
//!
//! Both ends `_to` are the first that is not in the cell. `pages` are those of the row that were touched at all.

use super::picture::Picture;
use crate::cli::Format;
use crate::text::{put_hex, put_number};

/// All lines, rows ascending, columns within them.
pub(super) fn lines(picture: &Picture<'_>) -> Vec<u8> {
    let mut out = b"cycle_from\tcycle_to\taddress_from\taddress_to\tpages\taccesses\n".to_vec();
    let (time, axis) = (&picture.time, &picture.pages);
    for (row, cells) in picture.cells.chunks(time.columns).enumerate() {
        let Some(about) = picture.row(row) else { continue };
        for (column, &count) in cells.iter().enumerate().filter(|(_, count)| **count > 0) {
            let from = time.first.saturating_add(column as u64 * time.width);
            put_number(&mut out, from);
            out.push(b'\t');
            put_number(&mut out, from.saturating_add(time.width));
            out.push(b'\t');
            put_hex(&mut out, Format::Tsv, about.first << axis.bits);
            out.push(b'\t');
            put_hex(&mut out, Format::Tsv, (about.last << axis.bits).saturating_add(axis.page()));
            for number in [about.pages, count] {
                out.push(b'\t');
                put_number(&mut out, number);
            }
            out.push(b'\n');
        }
    }
    out
}
