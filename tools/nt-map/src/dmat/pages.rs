//! A set of pages, in bits: half a thousand pages side by side are one entry, since kernels walk over arrays.

use std::collections::HashMap;

/// Pages that were touched.
#[derive(Debug, Clone, Default)]
pub(super) struct Pages {
    /// How far an address is shifted for the number of its page.
    pub(super) bits: u32,
    /// By number of page / 512. Looked up and sorted, never walked over in the map's own order.
    regions: HashMap<u64, [u64; 8]>,
    /// The page that came last: most accesses fall into the one of the access before.
    last: Option<u64>,
    /// Were there more than [`MOST`] regions?
    pub(super) overflow: bool,
}

/// 2²¹ regions are 4 TiB of pages of 4 KiB, or as many single pages far from each other; some 150 MB.
const MOST: usize = 1 << 21;

impl Pages {
    /// An empty set of pages of 2 to the power of `bits` bytes.
    pub(super) fn new(bits: u32) -> Pages {
        Pages { bits, ..Pages::default() }
    }

    /// Takes a page by its number.
    pub(super) fn insert(&mut self, page: u64) {
        if self.last == Some(page) {
            return;
        }
        self.last = Some(page);
        if self.regions.len() >= MOST && !self.regions.contains_key(&(page / 512)) {
            self.overflow = true;
            return;
        }
        let words = self.regions.entry(page / 512).or_default();
        if let Some(word) = words.get_mut((page % 512 / 64) as usize) {
            *word |= 1 << (page % 64);
        }
    }

    /// Takes all that another set has.
    pub(super) fn union(&mut self, other: Pages) {
        self.overflow |= other.overflow;
        let mut regions: Vec<(u64, [u64; 8])> = other.regions.into_iter().collect();
        regions.sort_unstable();
        for (region, theirs) in regions {
            let ours = self.regions.entry(region).or_default();
            ours.iter_mut().zip(theirs).for_each(|(ours, theirs)| *ours |= theirs);
        }
        self.overflow |= self.regions.len() > MOST;
    }

    /// The regions in order.
    pub(super) fn sorted(&self) -> Vec<(u64, [u64; 8])> {
        let mut regions: Vec<(u64, [u64; 8])> =
            self.regions.iter().map(|(&region, &words)| (region, words)).collect();
        regions.sort_unstable();
        regions
    }
}
