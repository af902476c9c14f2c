//! Bytes that come from files and other processes: containers of device code, messages, frames of a trace.

use nt_object::Container;
use nt_wire::{Reader, frame, message};

/// How many bytes one image may become.
const LIMIT: usize = 1 << 20;

/// The readers of containers: no image becomes larger than the limit, and every fault has a place in the file.
pub fn object(bytes: &[u8]) {
    drain(&nt_object::search(bytes), bytes.len());
    if let Ok(container) = nt_object::open(bytes) {
        drain(&container, bytes.len());
    }
    nt_object::ptx::kernels(bytes);
    nt_object::ptx::head(bytes);
}

/// Does to a container all that a tool does.
fn drain(container: &Container<'_>, length: usize) {
    for entry in &container.entries {
        let Ok(payload) = entry.payload(LIMIT) else { continue };
        assert!(payload.len() <= LIMIT || payload.len() <= length, "the limit holds");
        if let Ok(contents) = entry.contents(&payload) {
            let _ = entry.disagreement(contents);
            let _ = entry.kernels(contents);
        }
    }
    let _ = nt_object::best_ptx(&container.entries, 90);
    for fault in &container.faults {
        assert!(fault.at <= length as u64 + 8, "{fault} lies in a file of {length}");
    }
}

/// The decoders of messages and of trace frames.
pub fn wire(bytes: &[u8]) {
    fn as_message<B: message::Body>(bytes: &[u8]) {
        let _ = B::decode(&mut Reader::new(bytes));
    }
    fn as_frame<B: frame::Body>(bytes: &[u8]) {
        let _ = B::decode(&mut Reader::new(bytes));
    }
    as_message::<message::Hello>(bytes);
    as_message::<message::Settings>(bytes);
    as_message::<message::Image>(bytes);
    as_message::<message::Kernels>(bytes);
    as_message::<message::Need>(bytes);
    as_message::<message::Twin>(bytes);
    as_message::<message::Refused>(bytes);
    as_message::<message::Bye>(bytes);
    as_frame::<frame::Start>(bytes);
    as_frame::<frame::Kernel>(bytes);
    as_frame::<frame::Launch>(bytes);
    as_frame::<frame::Count>(bytes);
    as_frame::<frame::Note>(bytes);
    as_frame::<frame::End>(bytes);
    let _ = frame::Data::decode(bytes);
    let _ = frame::Head::decode(bytes);
    if let Some(head) = bytes.first_chunk() {
        let _ = message::Head::decode(head);
    }
}
