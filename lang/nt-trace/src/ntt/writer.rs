//! The bytes of a trace file, frame by frame; whoever holds the file does the writing.
//!
//! The hook writes its traces itself, on `nt-wire` alone. This is for the parent's `run.ntt`, which tells what the
//! whole run covered, and for tests.
//!
//! ```
//! use nt_trace::ntt::FileWriter;
//! use nt_wire::frame::{End, Note, Start};
//!
//! let mut writer = FileWriter::new();
//! let mut file = writer.frame(&Start { protocol: nt_wire::PROTOCOL, ..Start::default() });
//! file.extend(writer.frame(&Note { text: "no driver call seen".to_owned() }));
//! file.extend(writer.frame(&End::default()));
//! assert_eq!(file.len() % 64, 0);
//! ```

use nt_wire::frame::{self, Body};

/// Numbers the frames of one file.
#[derive(Debug, Clone, Default)]
pub struct FileWriter {
    sequence: u64,
}

impl FileWriter {
    /// For an empty file.
    pub fn new() -> Self {
        Self::default()
    }

    fn next(&mut self) -> u64 {
        let sequence = self.sequence;
        self.sequence += 1;
        sequence
    }

    /// The next frame, to be written as a whole behind the last: first a `Start`, at the end an `End`.
    pub fn frame(&mut self, body: &impl Body) -> Vec<u8> {
        body.frame(self.next())
    }

    /// The next frame, with map data in it.
    pub fn data(&mut self, fixed: &frame::Data, data: &[u8]) -> Vec<u8> {
        let mut bytes = fixed.begin(self.next(), data);
        bytes.extend_from_slice(data);
        bytes.resize(bytes.len() + frame::padding(frame::Data::SIZE + data.len()), 0);
        bytes
    }
}
