//! The two axes: cycles in columns of one width, and pages in rows, those that were touched alone.
//!
//! ```text
//! touched pages  1 2 3 4 5          9000 9001      9003
//! ranges         [ 1 .. 5 ]         [ 9000  ..  9003 ]       apart where 256 KiB or more were not touched
//! rows of 2      12 34 5            9000 9001, 9003
//! ```

use super::pages::Pages;
use std::collections::HashMap;

/// Columns of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeAxis {
    /// Where the first column begins.
    pub(super) first: u64,
    /// Cycles a column.
    pub(super) width: u64,
    /// How many.
    pub(super) columns: usize,
}

impl TimeAxis {
    /// For times from the first to the last, both included, in at most so many columns.
    pub(super) fn new((first, last): (u64, u64), columns: usize) -> TimeAxis {
        // Times since a start begin at 0, whenever the first access came.
        let first = if first <= last / 2 { 0 } else { first };
        let columns = columns.max(1) as u64;
        let length = (last - first).saturating_add(1);
        let width = length.div_ceil(columns);
        TimeAxis { first, width, columns: usize::try_from(length.div_ceil(width)).unwrap_or(1).max(1) }
    }

    /// The column of a time, which is none outside.
    pub(super) fn column(&self, time: u64) -> Option<usize> {
        let column = usize::try_from(time.checked_sub(self.first)? / self.width).ok()?;
        (column < self.columns).then_some(column)
    }
}

/// Rows of pages, ascending.
#[derive(Debug, Clone)]
pub(super) struct PageAxis {
    /// How far an address is shifted for the number of its page.
    pub(super) bits: u32,
    /// Pages that were touched.
    pub(super) pages: u64,
    /// At most so many touched pages a row.
    pub(super) each: u64,
    /// Ranges of pages, ascending.
    pub(super) ranges: Vec<Range>,
    /// Rows of all ranges.
    pub(super) rows: usize,
    /// For each region of 512 pages: its pages, and how many come before it.
    regions: HashMap<u64, ([u64; 8], u64)>,
    /// First and last page of each row.
    pub(super) ends: Vec<(u64, u64)>,
}

/// Touched pages without a large gap between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    /// The first page.
    pub(super) first: u64,
    /// The last.
    pub(super) last: u64,
    /// How many are touched.
    pub(super) pages: u64,
    /// Touched pages in the ranges before.
    pub(super) before: u64,
    /// The first row.
    pub(super) row: usize,
    /// How many rows.
    pub(super) rows: usize,
}

/// Ranges are at least this far from each other. Small arrays lie closer than the 2 MiB that a driver takes from a device
/// at once; one that is walked over leaves no such gap.
const GAP: u64 = 256 << 10;

/// More ranges than this have no room for their names: then only the widest gaps count.
const RANGES: usize = 24;

impl PageAxis {
    /// For these pages, in about so many rows.
    pub(super) fn new(pages: &Pages, rows: usize) -> PageAxis {
        let sorted = pages.sorted();
        let all = || {
            sorted.iter().flat_map(|&(region, words)| {
                (0..512u64).filter(move |&n| bit(&words, n)).map(move |n| region * 512 + n)
            })
        };
        let mut ranges = cut(all(), (GAP >> pages.bits).max(2));
        let total = all().count() as u64;
        // The fewest pages a row with which all ranges find room; one row a range is always taken.
        let rows_of = |each: u64| ranges.iter().map(|range| range.pages.div_ceil(each)).sum::<u64>();
        let rows = (rows as u64).max(ranges.len() as u64);
        let mut each = total.div_ceil(rows.max(1)).max(1);
        while rows_of(each) > rows {
            each += each.div_ceil(64);
        }
        let (mut row, mut before) = (0, 0);
        for range in &mut ranges {
            (range.row, range.before) = (row, before);
            range.rows = range.pages.div_ceil(each) as usize;
            row += range.rows;
            before += range.pages;
        }
        let mut ends = vec![(u64::MAX, 0); row];
        let (mut seen, mut regions) = (0, HashMap::new());
        for &(region, words) in &sorted {
            regions.insert(region, (words, seen));
            seen += words.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        }
        let mut axis =
            PageAxis { bits: pages.bits, pages: total, each, ranges, rows: row, regions, ends: Vec::new() };
        for page in all() {
            if let Some(end) = axis.row(page).and_then(|row| ends.get_mut(row)) {
                *end = (end.0.min(page), end.1.max(page));
            }
        }
        axis.ends = ends;
        axis
    }

    /// The row of a page; none of one that was not touched.
    pub(super) fn row(&self, page: u64) -> Option<usize> {
        let (words, before) = self.regions.get(&(page / 512))?;
        let n = page % 512;
        if !bit(words, n) {
            return None;
        }
        let whole =
            words.iter().take((n / 64) as usize).map(|word| u64::from(word.count_ones())).sum::<u64>();
        let word = words.get((n / 64) as usize)? & ((1 << (n % 64)) - 1);
        let ordinal = before + whole + u64::from(word.count_ones());
        let range = self.ranges.partition_point(|range| range.before <= ordinal).checked_sub(1)?;
        let range = self.ranges.get(range)?;
        Some(range.row + ((ordinal - range.before) / self.each) as usize)
    }

    /// Bytes a page.
    pub(super) fn page(&self) -> u64 {
        1 << self.bits
    }
}

fn bit(words: &[u64; 8], n: u64) -> bool {
    words.get((n / 64) as usize).is_some_and(|word| word >> (n % 64) & 1 == 1)
}

/// Cuts ascending pages where at least `gap` pages between two are not touched, at most at the widest places.
fn cut(pages: impl Iterator<Item = u64>, gap: u64) -> Vec<Range> {
    let mut ranges: Vec<Range> = Vec::new();
    for page in pages {
        match ranges.last_mut() {
            Some(range) if page - range.last < gap => {
                range.last = page;
                range.pages += 1;
            }
            _ => ranges.push(Range { first: page, last: page, pages: 1, before: 0, row: 0, rows: 0 }),
        }
    }
    if ranges.len() <= RANGES {
        return ranges;
    }
    let between = |pair: &[Range]| match pair {
        [a, b] => b.first - a.last,
        _ => 0,
    };
    let mut gaps: Vec<u64> = ranges.windows(2).map(between).collect();
    gaps.sort_unstable_by_key(|&gap| std::cmp::Reverse(gap));
    // Gaps as wide as the first that is left out are left out too, so that which ones count does not hang on order.
    let widest = gaps.get(RANGES - 1).copied().unwrap_or(u64::MAX);
    let mut joined: Vec<Range> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.first - last.last <= widest => {
                last.last = range.last;
                last.pages += range.pages;
            }
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_cover_all_times_and_none_is_empty_of_width() {
        let check = |times, columns, expected: (u64, u64, usize)| {
            let axis = TimeAxis::new(times, columns);
            assert_eq!((axis.first, axis.width, axis.columns), expected, "{times:?} in {columns}");
            assert_eq!(axis.column(times.1), Some(axis.columns - 1));
            assert!(axis.column(times.0).is_some());
        };
        check((0, 0), 400, (0, 1, 1));
        check((7, 7), 400, (7, 1, 1));
        check((3, 99), 400, (0, 1, 100));
        check((3, 399), 400, (0, 1, 400));
        check((3, 400), 400, (0, 2, 201));
        check((90, 100), 5, (90, 3, 4));
        check((0, u64::MAX), 2, (0, 1 << 63, 2));
        check((0, 9), 0, (0, 10, 1));
    }

    /// Ranges as first, last, pages, rows.
    fn check(addresses: &[u64], rows: usize, expected: &[(u64, u64, u64, usize)]) -> PageAxis {
        let mut pages = Pages::new(12);
        addresses.iter().rev().for_each(|&address| pages.insert(address >> 12));
        let axis = PageAxis::new(&pages, rows);
        let ranges: Vec<_> = axis.ranges.iter().map(|r| (r.first, r.last, r.pages, r.rows)).collect();
        assert_eq!(ranges, expected);
        assert_eq!(axis.rows, expected.iter().map(|range| range.3).sum::<usize>());
        axis
    }

    #[test]
    fn pages_that_are_far_apart_are_other_ranges() {
        let axis =
            check(&[0x1000, 0x1fff, 0x2000, 0x4000_0000], 100, &[(1, 2, 2, 2), (0x40000, 0x40000, 1, 1)]);
        assert_eq!([1, 2, 0x40000, 3].map(|page| axis.row(page)), [Some(0), Some(1), Some(2), None]);
        assert_eq!(axis.ends, [(1, 1), (2, 2), (0x40000, 0x40000)]);
        // 64 pages are 256 KiB.
        check(&[0, 63 << 12], 9, &[(0, 63, 2, 2)]);
        check(&[0, 64 << 12], 9, &[(0, 0, 1, 1), (64, 64, 1, 1)]);
        check(&[], 9, &[]);
        check(&[u64::MAX], 1, &[(u64::MAX >> 12, u64::MAX >> 12, 1, 1)]);
    }

    #[test]
    fn a_row_holds_more_pages_where_there_are_many() {
        let all: Vec<u64> = (0..1000).map(|page| page << 12).collect();
        let axis = check(&all, 100, &[(0, 999, 1000, 100)]);
        assert_eq!((axis.each, axis.ends[0], axis.ends[99]), (10, (0, 9), (990, 999)));
        // A range has a row of its own however small it is.
        let far: Vec<u64> = all.iter().copied().chain([1 << 40, 1 << 41]).collect();
        let axis = check(&far, 2, &[(0, 999, 1000, 1), (1 << 28, 1 << 28, 1, 1), (1 << 29, 1 << 29, 1, 1)]);
        assert_eq!(axis.row(999), Some(0));
    }

    #[test]
    fn the_widest_gaps_count_where_there_are_many() {
        // 40 pages 4 MiB apart, and two groups of them 1 GiB apart.
        let all: Vec<u64> = (0..40).map(|n| (n << 22) + if n < 20 { 0 } else { 1 << 30 }).collect();
        let axis = check(
            &all,
            100,
            &[(0, 19 << 10, 20, 20), ((20 << 10) + (1 << 18), (39 << 10) + (1 << 18), 20, 20)],
        );
        assert_eq!(axis.pages, 40);
    }
}
