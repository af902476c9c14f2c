//! All rows, and the way from an opcode to its row.

use super::row::Row;
use super::words::Words;
use super::{control, copies, data_movement, float, integer, logic, matrix, recent, sync, tensor, texture};
use std::sync::LazyLock;

/// A row and the words of its name.
struct Entry {
    base: &'static str,
    modifiers: Vec<&'static str>,
    row: &'static Row,
}

/// Rows by their first word, and of one word those with the most modifiers first, since the first that fits counts:
/// `cp.async.bulk.wait_group` is no `cp.async.wait_group`, though it has all its words.
static TABLE: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let files = [
        integer::ROWS,
        float::ROWS,
        logic::ROWS,
        data_movement::ROWS,
        copies::ROWS,
        matrix::ROWS,
        tensor::ROWS,
        sync::ROWS,
        control::ROWS,
        texture::ROWS,
        recent::ROWS,
    ];
    let mut entries: Vec<Entry> = files
        .into_iter()
        .flatten()
        .map(|row| {
            let mut words = row.name.split('.');
            Entry { base: words.next().unwrap_or(""), modifiers: words.collect(), row }
        })
        .collect();
    entries.sort_by_key(|entry| (entry.base, std::cmp::Reverse(entry.modifiers.len())));
    entries
});

/// The rows of one instruction, in order.
fn rows(base: &str) -> &'static [Entry] {
    let table: &'static [Entry] = &TABLE;
    let start = table.partition_point(|entry| entry.base < base);
    let rest = table.get(start..).unwrap_or(&[]);
    let len = rest.iter().take_while(|entry| entry.base == base).count();
    rest.get(..len).unwrap_or(&[])
}

/// All rows, for tests of the data.
#[cfg(test)]
pub(super) fn rows_of_all() -> impl Iterator<Item = &'static Row> {
    TABLE.iter().map(|entry| entry.row)
}

/// Is there an instruction whose opcode begins with this word?
pub(super) fn is_known(base: &str) -> bool {
    !rows(base).is_empty()
}

/// The row of an opcode with so many operands.
pub(super) fn find(words: &Words<'_>, count: usize) -> Option<&'static Row> {
    let kind = words.last_type().map_or(0, |ty| ty.kind as u8);
    let fits = |entry: &&Entry| {
        (entry.row.types == 0 || entry.row.types & kind != 0)
            && (entry.row.count == 0 || entry.row.count == count)
            && entry.modifiers.iter().all(|word| words.has(word))
    };
    rows(words.base()).iter().find(fits).map(|entry| entry.row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_known_or_not() {
        assert!(is_known("xor") && is_known("abs") && is_known("wgmma"));
        assert!(!is_known("bogus") && !is_known("") && !is_known("zzz"));
    }

    /// [`find`] may be asked without operands.
    #[test]
    fn rows_of_a_count_have_one_of_any() {
        for entry in TABLE.iter().filter(|entry| entry.row.count != 0) {
            let any = rows(entry.base).iter().any(|other| {
                other.row.count == 0
                    && (other.row.types == 0 || other.row.types & entry.row.types == entry.row.types)
                    && other.modifiers.iter().all(|word| entry.modifiers.contains(word))
            });
            assert!(any, "{}", entry.row.name);
        }
    }

    /// A row whose words are all in an earlier row of the same types could never be found.
    #[test]
    fn no_row_hides_another() {
        for entry in TABLE.iter() {
            let rows = rows(entry.base);
            let own = rows.iter().position(|other| std::ptr::eq(other.row, entry.row)).unwrap();
            for earlier in &rows[..own] {
                let hides = (earlier.row.types == 0 || earlier.row.types == entry.row.types)
                    && (earlier.row.count == 0 || earlier.row.count == entry.row.count)
                    && earlier.modifiers.iter().all(|word| entry.modifiers.contains(word));
                assert!(!hides, "{} hides {}", earlier.row.name, entry.row.name);
            }
        }
    }
}
