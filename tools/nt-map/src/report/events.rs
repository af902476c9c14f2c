//! What the events of streams say, whatever they hold: how many there are, how many were lost, and where they come from.

use crate::basis::Basis;
use nt_trace::ntt::{OpenPart, Piece, Reader};
use std::collections::BTreeMap;

/// The streams of one map in the launches of a group.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// Events that were stored.
    pub(super) stored: u64,
    /// Events that found no room.
    pub(super) dropped: u64,
    /// Launches that have lost events: their numbers, how many, and the warps that have lost most.
    pub(super) losses: Vec<Loss>,
    /// By site, an index into the kernel's; last those that are of none that is known.
    pub(super) sites: BTreeMap<Option<usize>, Site>,
}

/// A launch that has lost events or saves.
#[derive(Debug)]
pub(super) struct Loss {
    /// Its number.
    pub(super) launch: u64,
    /// Events.
    pub(super) dropped: u64,
    /// Units that have lost some.
    pub(super) units: u64,
    /// Those that have lost most, with how many.
    pub(super) most: Vec<(u64, u64)>,
}

/// What came from one site.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Site {
    /// Events.
    pub(super) events: u64,
    /// Lanes that took part in them; 0 where a stream has no fields a lane.
    pub(super) lanes: u64,
    /// How their addresses are had, if they have any.
    pub(super) basis: Basis,
}

/// So many units are named of a launch.
pub(super) const NAMED: usize = 5;

impl Events {
    /// Adds a part of the stream of this launch; says how many chunks hold what no event is.
    pub(super) fn add(&mut self, launch: u64, open: &mut OpenPart<'_, '_>) -> u64 {
        let mut most: Vec<(u64, u64)> =
            open.dropped().map(|(warp, count)| (warp, u64::from(count))).collect();
        if !most.is_empty() {
            let (units, dropped) = (most.len() as u64, most.iter().map(|&(_, count)| count).sum());
            most.sort_by_key(|&(warp, count)| (std::cmp::Reverse(count), warp));
            most.truncate(NAMED);
            self.dropped += dropped;
            self.losses.push(Loss { launch, dropped, units, most });
        }
        let reader = std::sync::Arc::clone(&open.reader);
        let mut torn = 0;
        for piece in open.pieces(1 << 16) {
            self.stored += piece.stored;
            torn += piece.torn;
            self.count(&reader, &piece);
        }
        torn
    }

    fn count(&mut self, reader: &Reader, piece: &Piece<'_>) {
        // Events of one site come in rows more often than not.
        let (mut at, mut run) = (None, Site::default());
        for event in reader.events(piece) {
            let site = event.site();
            if site != at {
                self.close(at, run);
                (at, run) = (site, Site::default());
            }
            run.events += 1;
            run.lanes += u64::from(event.mask().count_ones());
            if let Some(addresses) = event.addresses() {
                run.basis.add(addresses, 1);
            }
        }
        self.close(at, run);
    }

    fn close(&mut self, site: Option<usize>, run: Site) {
        if run.events > 0 {
            let sum = self.sites.entry(site).or_default();
            sum.events += run.events;
            sum.lanes += run.lanes;
            sum.basis.merge(&run.basis);
        }
    }
}
