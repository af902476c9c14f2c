//! What the aggregations of a run came to, for the end of its summary, as bpftrace has it.
//!
//! ```text
//! @bytes[st.global.f32]: 1024
//! @bytes[ld.global.f32]: 4096
//! ```
//!
//! The traces are read again for this, and only if the probe has aggregations. They are read and not mapped: a process
//! that outlives the command may still cut its trace, and a fault in a mapping would cost the command's exit status.

use nt_cli::choose::demangle;
use nt_trace::Aggregates;
use nt_trace::ntt::{Event, Trace};
use std::path::Path;

/// Larger traces are left to `nt-map report`.
const LARGEST: u64 = 1 << 30;

/// The text of all aggregations in the traces of `folder`, of each the largest `rows` rows; and what is not in it.
pub(crate) fn text(folder: &Path, names: &[String], rows: usize) -> (String, Vec<String>) {
    let mut aggregates = Aggregates::default();
    let mut notes = Vec::new();
    for name in names {
        let path = folder.join(name);
        if std::fs::metadata(&path).is_ok_and(|data| data.len() > LARGEST) {
            notes
                .push(format!("the aggregations of {name} are not in here: it is too large (nt-map report)"));
            continue;
        }
        match std::fs::read(&path) {
            Ok(bytes) => {
                let unfit = add(&mut aggregates, &bytes);
                if unfit > 0 {
                    notes.push(format!("{unfit} frames of {name} hold cells that do not fit their tables"));
                }
            }
            Err(error) => notes.push(format!("the aggregations of {name} are not in here: {error}")),
        }
    }
    (aggregates.text(rows, &|name| demangle(name).into_owned()), notes)
}

/// Adds what a trace holds; gives how many frames did not fit.
fn add(aggregates: &mut Aggregates, bytes: &[u8]) -> u64 {
    let mut unfit = 0;
    for event in Trace::new(bytes) {
        // A trace that is damaged or cut is told of elsewhere.
        if let Event::Cells(batch) = event
            && aggregates.add(&batch).is_err()
        {
            unfit += 1;
        }
    }
    unfit
}

#[cfg(test)]
mod tests {
    use super::text;
    use nt_trace::ntm::{Func, Kernel, Key, KeyKind, Manifest, Probe, SCHEMA, Table, Type, Unit};
    use nt_trace::ntt::FileWriter;
    use nt_wire::frame::{self, Data, End, Start};

    /// A trace of one kernel with a table of two cells, of which two multiprocessors have copies.
    fn trace(copies: &[[u64; 2]]) -> Vec<u8> {
        let key = Key { kind: KeyKind::Site, name: "op".to_owned() };
        let table = Table {
            name: "bytes".to_owned(),
            func: Func::Sum,
            ty: Type::U64,
            unit: Unit::Sm,
            persistent: true,
            stride: 16,
            keys: vec![key],
            cells: ["ld.global.f32", "st.global.f32"].map(|op| vec![op.to_owned()]).to_vec(),
        };
        let manifest = Manifest {
            schema: SCHEMA,
            tool: "0".to_owned(),
            probe: Probe { name: "p".to_owned(), hash: "9f".to_owned() },
            original: "51".to_owned(),
            target: "sm_90".to_owned(),
            woven_bytes: 1,
            kernels: vec![Kernel { name: "k".to_owned(), tables: vec![table], ..Kernel::default() }],
            refused: Vec::new(),
        };
        let kernel =
            frame::Kernel { id: 1, arch: 90, name: "k".to_owned(), manifest: manifest.entry("k").unwrap() };
        let cells: Vec<u8> = copies.as_flattened().iter().flat_map(|cell| cell.to_le_bytes()).collect();
        let data = Data {
            launch: Data::PERSISTENT,
            kernel: 1,
            units: copies.len() as u64,
            capacity: copies.len() as u64,
            bytes: cells.len() as u64,
            ..Data::default()
        };
        let mut writer = FileWriter::new();
        let mut bytes = writer.frame(&Start { protocol: nt_wire::PROTOCOL, ..Start::default() });
        bytes.extend(writer.frame(&kernel));
        bytes.extend(writer.data(&data, &cells));
        bytes.extend(writer.frame(&End::default()));
        bytes
    }

    #[test]
    fn copies_and_processes_add_up() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["1.1.ntt", "2.1.ntt"].map(str::to_owned);
        std::fs::write(folder.path().join(&names[0]), trace(&[[100, 1], [20, 2]])).unwrap();
        std::fs::write(folder.path().join(&names[1]), trace(&[[3, 1000]])).unwrap();
        let (all, notes) = text(folder.path(), &names, 40);
        assert_eq!(all, "@bytes[ld.global.f32]: 123\n@bytes[st.global.f32]: 1003\n");
        assert!(notes.is_empty(), "{notes:?}");
        let (most, _) = text(folder.path(), &names, 1);
        assert!(most.ends_with("@bytes[st.global.f32]: 1003\n") && !most.contains("ld.global"), "{most}");
    }

    #[test]
    fn what_is_missing_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["1.1.ntt", "gone.ntt"].map(str::to_owned);
        let whole = trace(&[[7, 8]]);
        for len in 0..whole.len() {
            std::fs::write(folder.path().join(&names[0]), &whole[..len]).unwrap();
            let (all, notes) = text(folder.path(), &names, 40);
            assert!(all.is_empty() || all.contains(": 7\n"), "cut at {len}: {all}");
            assert!(notes.iter().any(|note| note.contains("gone.ntt")));
        }
    }
}
