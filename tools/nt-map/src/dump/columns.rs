//! Which columns lines have.
//!
//! ```text
//! all       process launch kernel map unit block warp
//! streams   lane event mask op where          with --lanes: lane thread event op where
//! arrays    cursor seq                        of several records a unit
//! then      those of the maps and tables, and `demangled`
//! ```
//!
//! `lane` is the lane that stored the event, the lowest that took part, or with `--lanes` the one that the line is of;
//! `event` counts the events that it (or the one that stored) has stored before. `op` and `where` are the site's. `cursor`
//! is `0` for what a warp's lane 0 saved and `other` for its other lanes, nothing for a thread; `seq` counts the saves of that
//! cursor from 0, of which the first may not be there any more.

use crate::catalogue::Store;
use nt_trace::ntm::KeyKind;

/// Columns before those of the maps.
pub(super) const FIXED: [&str; 7] = ["process", "launch", "kernel", "map", "unit", "block", "warp"];

/// The last column.
pub(super) const LAST: &str = "demangled";

/// What streams have more.
const EVENTS: [&str; 5] = ["lane", "event", "mask", "op", "where"];

/// The same with a line a lane.
const LANES: [&str; 5] = ["lane", "thread", "event", "op", "where"];

/// What arrays with a capacity have more.
const SAVES: [&str; 2] = ["cursor", "seq"];

/// The columns of the output.
pub(super) struct Columns {
    /// Those of streams, if any is shown.
    events: &'static [&'static str],
    /// Those of arrays with a capacity, likewise.
    saves: &'static [&'static str],
    /// Those of all maps and tables, each once, in the order they first come in.
    pub(super) own: Vec<String>,
    /// A line a lane?
    pub(super) lanes: bool,
}

impl Columns {
    /// For all that is shown.
    pub(super) fn of<'s>(stores: impl Iterator<Item = Store<'s>>, lanes: bool) -> Columns {
        let mut own: Vec<String> = Vec::new();
        let (mut events, mut saves): (&[&str], &[&str]) = (&[], &[]);
        for store in stores {
            if let Store::Map(map) = store {
                if map.stream.is_some() {
                    events = if lanes { &LANES } else { &EVENTS };
                }
                if map.slots.is_some() {
                    saves = &SAVES;
                }
            }
            for name in own_columns(store) {
                if !own.contains(&name) {
                    own.push(name);
                }
            }
        }
        Columns { events, saves, own, lanes }
    }

    /// The columns between the fixed ones and those of the maps: of streams, then of arrays with a capacity.
    pub(super) fn between(&self) -> impl Iterator<Item = &'static str> {
        self.events.iter().chain(self.saves).copied()
    }

    /// Which of [`Self::between`] is the first of arrays with a capacity.
    pub(super) fn first_of_saves(&self) -> usize {
        self.events.len()
    }

    /// What a header calls a column of a map, which may have one called as ours.
    pub(super) fn shown(&self, name: &str) -> String {
        let taken = FIXED.contains(&name) || self.between().any(|between| between == name) || name == LAST;
        if taken { format!("record.{name}") } else { name.to_owned() }
    }
}

/// The columns of one map or table.
pub(super) fn own_columns(store: Store<'_>) -> Vec<String> {
    match store {
        Store::Map(map) => map.columns.iter().map(|column| column.name.clone()).collect(),
        Store::Table(table) => {
            // A launch tells its device; where none is named, the device is a column.
            let device = table.persistent.then(|| "device".to_owned());
            let keys = table.keys.iter().filter(|key| key.kind == KeyKind::Site).map(|key| key.name.clone());
            device.into_iter().chain(keys).chain(["value".to_owned()]).collect()
        }
    }
}
