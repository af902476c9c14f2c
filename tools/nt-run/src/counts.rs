//! How often which kernel was launched, probed and collected: the count frames of the traces that hooks wrote.
//!
//! A trace may be larger than memory, so only the heads of its frames are walked, and bodies are read where they count.
//! A trace whose process was killed has no count frames: of it, the launches that were collected are known. One that is
//! damaged counts up to there; `nt-map` reads on behind the damage.

use nt_wire::Reader;
use nt_wire::frame::{Body, Count, End, Head, Kernel, Kind, Launch, Note};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What became of a kernel's launches, over all processes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Launches {
    /// Seen.
    pub(crate) launches: u64,
    /// Of these, probed.
    pub(crate) probed: u64,
    /// Of these, collected.
    pub(crate) collected: u64,
    /// Why launches were not probed or not collected, with how many it may concern.
    pub(crate) reasons: BTreeMap<String, u64>,
}

/// What the traces of a run folder count.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    /// By mangled name; the empty name is that of kernels whose handle was never seen given out.
    pub(crate) kernels: BTreeMap<String, Launches>,
    /// Words of the hooks that belong to no kernel, each once.
    pub(crate) notes: Vec<String>,
    /// The names of the traces that are there, in order.
    pub(crate) traces: Vec<String>,
    /// The names of those that do not end as they should.
    pub(crate) cut: Vec<String>,
    /// Bytes of all of them.
    pub(crate) bytes: u64,
}

/// A body of more than this is not read. The longest are those of kernels, which hold a manifest.
const LONGEST: u64 = 64 << 20;

impl Counts {
    /// Reads the traces of `folder`, in the order of their names.
    pub(crate) fn read(folder: &Path) -> std::io::Result<Counts> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.ends_with(".ntt") && name != super::coverage::FILE {
                names.push(name);
            }
        }
        names.sort();
        let mut counts = Counts::default();
        for name in names {
            let whole = File::open(folder.join(&name)).is_ok_and(|file| counts.add(&file));
            if !whole {
                counts.cut.push(name.clone());
            }
            counts.traces.push(name);
        }
        Ok(counts)
    }

    /// Adds one trace. True if it ends as it should.
    fn add(&mut self, file: &File) -> bool {
        let length = file.metadata().map_or(0, |data| data.len());
        self.bytes += length;
        let mut names = BTreeMap::new();
        let mut collected: BTreeMap<u32, u64> = BTreeMap::new();
        let (mut at, mut counted) = (0, false);
        let whole = loop {
            let mut head = [0; Head::SIZE];
            if at >= length || file.read_exact_at(&mut head, at).is_err() {
                break false;
            }
            let Ok(head) = Head::decode(&head) else { break false };
            let sound = match head.kind {
                Kind::Kernel => body::<Kernel>(file, at, head).map(|kernel| {
                    names.insert(kernel.id, kernel.name);
                }),
                Kind::Launch => body::<Launch>(file, at, head).map(|launch| {
                    *collected.entry(launch.kernel).or_default() += 1;
                }),
                Kind::Count => body::<Count>(file, at, head).map(|count| {
                    counted = true;
                    self.count(count);
                }),
                Kind::Note => body::<Note>(file, at, head).map(|note| {
                    if !self.notes.contains(&note.text) {
                        self.notes.push(note.text);
                    }
                }),
                Kind::End => break body::<End>(file, at, head).is_some(),
                _ => Some(()),
            };
            match at.checked_add(head.stride()) {
                Some(next) if sound.is_some() => at = next,
                _ => break false,
            }
        };
        if !counted {
            for (id, launches) in collected {
                let kernel = names.get(&id).cloned().unwrap_or_default();
                self.count(Count {
                    kernel,
                    launches,
                    probed: launches,
                    collected: launches,
                    reason: String::new(),
                });
            }
        }
        whole
    }

    fn count(&mut self, count: Count) {
        let kernel = self.kernels.entry(count.kernel).or_default();
        kernel.launches += count.launches;
        kernel.probed += count.probed;
        kernel.collected += count.collected;
        if !count.reason.is_empty() {
            let lost = count.launches.saturating_sub(count.probed.min(count.collected));
            *kernel.reasons.entry(count.reason).or_default() += lost;
        }
    }
}

/// The body behind the head at `at`, if it is whole.
fn body<B: Body>(file: &File, at: u64, head: Head) -> Option<B> {
    if head.len > LONGEST {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(head.len).ok()?];
    file.read_exact_at(&mut bytes, at + Head::SIZE as u64).ok()?;
    if nt_wire::frame::checksum(&bytes) != head.body_crc {
        return None;
    }
    B::decode(&mut Reader::new(&bytes)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nt_trace::ntt::FileWriter;
    use nt_wire::frame::{Data, Start};

    fn count(kernel: &str, numbers: [u64; 3], reason: &str) -> Count {
        let [launches, probed, collected] = numbers;
        Count { kernel: kernel.to_owned(), launches, probed, collected, reason: reason.to_owned() }
    }

    #[test]
    fn a_killed_process_counts_what_was_collected() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = FileWriter::new();
        let mut bytes = writer.frame(&Start::default());
        bytes.extend(writer.frame(&Kernel { id: 3, name: "gemm".to_owned(), ..Kernel::default() }));
        for number in 0..7 {
            bytes.extend(writer.frame(&Launch { number, kernel: 3, ..Launch::default() }));
        }
        std::fs::write(folder.path().join("1.1.ntt"), bytes).unwrap();
        let counts = Counts::read(folder.path()).unwrap();
        assert_eq!(counts.kernels["gemm"].collected, 7);
        assert_eq!(counts.cut, ["1.1.ntt"]);
    }

    fn trace(counts: &[Count]) -> Vec<u8> {
        let mut writer = FileWriter::new();
        let mut bytes = writer.frame(&Start::default());
        let data = [7; 1000];
        bytes.extend(writer.data(&Data { bytes: 1000, ..Data::default() }, &data));
        for count in counts {
            bytes.extend(writer.frame(count));
        }
        bytes.extend(writer.frame(&Note { text: "odd".to_owned() }));
        bytes.extend(writer.frame(&End::default()));
        bytes
    }

    #[test]
    fn processes_add_up() {
        let folder = tempfile::tempdir().unwrap();
        let whole = trace(&[count("gemm", [10, 8, 7], "no memory for records"), count("k", [1, 1, 1], "")]);
        std::fs::write(folder.path().join("1.1.ntt"), &whole).unwrap();
        std::fs::write(folder.path().join("2.1.ntt"), trace(&[count("gemm", [5, 0, 0], "no PTX")])).unwrap();
        std::fs::write(folder.path().join("run.ntt"), "ours").unwrap();
        std::fs::write(folder.path().join("log"), "").unwrap();
        let counts = Counts::read(folder.path()).unwrap();
        let gemm = &counts.kernels["gemm"];
        assert_eq!((gemm.launches, gemm.probed, gemm.collected), (15, 8, 7));
        assert_eq!(
            gemm.reasons,
            BTreeMap::from([("no PTX".to_owned(), 5), ("no memory for records".to_owned(), 3)])
        );
        assert_eq!((counts.traces.len(), counts.cut.len()), (2, 0));
        assert_eq!(counts.notes, ["odd"]);

        // Cut anywhere, it counts up to there and is named.
        for len in 0..whole.len() {
            std::fs::write(folder.path().join("1.1.ntt"), &whole[..len]).unwrap();
            let counts = Counts::read(folder.path()).unwrap();
            assert!([5, 15].contains(&counts.kernels["gemm"].launches));
            if len < whole.len() - 64 {
                assert_eq!(counts.cut, ["1.1.ntt"], "cut at {len} of {}", whole.len());
            }
        }
    }
}
