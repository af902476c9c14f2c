//! Which columns lines have.
//!
//! ```text
//! all       process launch kernel map unit block warp
//! streams   lane event mask op where          with --lanes: lane thread event op where
//! then      those of the maps and tables, and `demangled`
//! ```
//!
//! `lane` is the lane that stored the event, the lowest that took part, or with `--lanes` the one that the line is of;
//! `event` counts the events that it (or the one that stored) has stored before. `op` and `where` are the site's.

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

/// The columns of the output.
pub(super) struct Columns {
    /// Those of streams, if any is shown.
    pub(super) events: &'static [&'static str],
    /// Those of all maps and tables, each once, in the order they first come in.
    pub(super) own: Vec<String>,
    /// A line a lane?
    pub(super) lanes: bool,
}

impl Columns {
    /// For all that is shown.
    pub(super) fn of<'s>(stores: impl Iterator<Item = Store<'s>>, lanes: bool) -> Columns {
        let (mut own, mut events): (Vec<String>, &[&str]) = (Vec::new(), &[]);
        for store in stores {
            if let Store::Map(map) = store
                && map.stream.is_some()
            {
                events = if lanes { &LANES } else { &EVENTS };
            }
            for name in own_columns(store) {
                if !own.contains(&name) {
                    own.push(name);
                }
            }
        }
        Columns { events, own, lanes }
    }

    /// What a header calls a column of a map, which may have one called as ours.
    pub(super) fn shown(&self, name: &str) -> String {
        let taken = FIXED.contains(&name) || self.events.contains(&name) || name == LAST;
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
