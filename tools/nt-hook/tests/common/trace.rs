//! What stands in a trace file.

use std::path::Path;

use nt_wire::Reader;
use nt_wire::frame::{Body, Count, Data, End, Head, Kernel, Kind, Launch, Note, Start};

#[derive(Default, Debug)]
pub struct Trace {
    pub start: Option<Start>,
    pub kernels: Vec<Kernel>,
    pub launches: Vec<Launch>,
    pub data: Vec<(Data, Vec<u8>)>,
    pub counts: Vec<Count>,
    pub notes: Vec<String>,
    pub end: Option<End>,
}

impl Trace {
    /// Reads a file whose every frame must be whole.
    pub fn read(path: &Path) -> Trace {
        let bytes = std::fs::read(path).unwrap();
        let (mut trace, mut at, mut sequence) = (Trace::default(), 0, 0);
        while at < bytes.len() {
            let head = Head::decode(&bytes[at..]).unwrap_or_else(|_| panic!("a damaged frame at {at}"));
            assert_eq!(head.sequence, sequence, "a gap before {at}");
            let body = &bytes[at + Head::SIZE..][..head.len as usize];
            assert_eq!(crc32c::crc32c(body), head.body_crc, "a damaged body at {at}");
            assert!(trace.end.is_none(), "a frame behind the end");
            let mut r = Reader::new(body);
            match head.kind {
                Kind::Start => {
                    assert_eq!(at, 0);
                    trace.start = Some(Start::decode(&mut r).unwrap());
                }
                Kind::Kernel => trace.kernels.push(Kernel::decode(&mut r).unwrap()),
                Kind::Launch => trace.launches.push(Launch::decode(&mut r).unwrap()),
                Kind::Data => {
                    let (fixed, data) = Data::decode(body).unwrap();
                    let known = trace.launches.iter().any(|launch| launch.number == fixed.launch);
                    assert!(known || fixed.launch == Data::PERSISTENT);
                    trace.data.push((fixed, data.to_vec()));
                }
                Kind::Count => trace.counts.push(Count::decode(&mut r).unwrap()),
                Kind::Note => trace.notes.push(Note::decode(&mut r).unwrap().text),
                Kind::End => trace.end = Some(End::decode(&mut r).unwrap()),
                Kind::Unknown(kind) => panic!("kind {kind}"),
            }
            at += head.stride() as usize;
            sequence += 1;
        }
        assert_eq!(at, bytes.len());
        trace
    }

    /// A kernel's launches, how many of them probed, how many collected.
    pub fn count(&self, kernel: &str) -> (u64, u64, u64) {
        let counts = self.counts.iter().filter(|count| count.kernel == kernel);
        counts.fold((0, 0, 0), |(l, p, c), count| (l + count.launches, p + count.probed, c + count.collected))
    }

    /// Why a kernel's launches were not all probed.
    pub fn reason(&self, kernel: &str) -> String {
        let counts = self.counts.iter().filter(|count| count.kernel == kernel);
        counts.map(|count| count.reason.as_str()).collect::<Vec<_>>().join("|")
    }
}
