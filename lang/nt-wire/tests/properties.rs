//! Laws: what was encoded decodes to itself, and no bytes make a decoder panic, hang or allocate beyond its input.
#![allow(clippy::unwrap_used, reason = "tests stop at the first thing that is wrong")]

use nt_wire::frame::{self, Body as _};
use nt_wire::message::{
    self, Body as _, Constant, Fill, MapShape, Param, Pin, Slot, SlotsShape, StreamShape, Unit,
};
use nt_wire::{Malformed, Reader, slots, stream};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// Decodes as every kind of body there is.
fn decode_all(bytes: &[u8]) {
    fn message<B: message::Body>(bytes: &[u8]) {
        let _ = B::decode(&mut Reader::new(bytes));
    }
    fn frame<B: frame::Body>(bytes: &[u8]) {
        let _ = B::decode(&mut Reader::new(bytes));
    }
    message::<message::Hello>(bytes);
    message::<message::Settings>(bytes);
    message::<message::Image>(bytes);
    message::<message::Kernels>(bytes);
    message::<message::Need>(bytes);
    message::<message::Twin>(bytes);
    message::<message::Refused>(bytes);
    message::<message::Bye>(bytes);
    frame::<frame::Start>(bytes);
    frame::<frame::Kernel>(bytes);
    frame::<frame::Launch>(bytes);
    frame::<frame::Count>(bytes);
    frame::<frame::Note>(bytes);
    frame::<frame::End>(bytes);
    let _ = frame::Data::decode(bytes);
    let _ = stream::Head::decode(bytes);
    let _ = slots::split(bytes, 9, SlotsShape { per_unit: 3, others: 1, count_bytes: 8 });
    let _ = frame::Head::decode(bytes);
    if let Some(head) = bytes.first_chunk() {
        let _ = message::Head::decode(head);
    }
}

fn text() -> impl Strategy<Value = String> {
    any::<String>()
}

fn twin() -> impl Strategy<Value = message::Twin> {
    let param = (any::<u32>(), any::<u32>()).prop_map(|(offset, size)| Param { offset, size });
    let fill = prop_oneof![
        Just(Fill::Zero),
        any::<u32>().prop_map(Fill::Base),
        any::<u32>().prop_map(Fill::Capacity),
        Just(Fill::Launch),
        any::<u32>().prop_map(Fill::Cursor),
        any::<u32>().prop_map(Fill::Drops),
        any::<u32>().prop_map(Fill::Units),
        any::<u32>().prop_map(Fill::Counts),
    ];
    let size = prop_oneof![Just(4), Just(8)];
    let slot = (any::<u32>(), size, fill).prop_map(|(offset, size, fill)| Slot { offset, size, fill });
    let unit = prop_oneof![Just(Unit::Thread), Just(Unit::Warp), Just(Unit::Block), Just(Unit::Sm)];
    let stream = (0u32..32, any::<u64>()).prop_map(|(log, bytes)| StreamShape { chunk: 1 << log, bytes });
    let slots = (1u32.., any::<u32>(), prop_oneof![Just(4), Just(8)])
        .prop_map(|(per_unit, others, count_bytes)| SlotsShape { per_unit, others, count_bytes });
    let map = (unit, any::<u32>(), any::<bool>(), option::of(stream), option::of(slots));
    let map = map.prop_map(|(unit, stride, persistent, stream, slots)| MapShape {
        unit,
        stride,
        persistent,
        stream,
        slots,
    });
    let pin = (text(), any::<u32>()).prop_map(|(symbol, index)| Pin { symbol, index });
    let constant = (text(), any::<u64>()).prop_map(|(symbol, size)| Constant { symbol, size });
    let lists = (vec(param, 0..20), vec(slot, 0..20), vec(map, 0..9), vec(pin, 0..4), vec(constant, 0..4));
    let numbers = (any::<u64>(), any::<u32>(), any::<u8>(), any::<bool>());
    (numbers, lists, vec(any::<u8>(), 0..200)).prop_map(
        |((size, context, assumes, wants_params), (params, slots, maps, pins, constants), manifest)| {
            message::Twin {
                size,
                params,
                context,
                slots,
                maps,
                pins,
                constants,
                assumes,
                wants_params,
                manifest,
            }
        },
    )
}

fn launch() -> impl Strategy<Value = frame::Launch> {
    let shape = (any::<[u32; 3]>(), any::<[u32; 3]>());
    (any::<[u64; 5]>(), any::<[u32; 5]>(), shape, vec(any::<u8>(), 0..50)).prop_map(
        |(a, b, (grid, block), params)| frame::Launch {
            number: a[0],
            kernel: b[0],
            device: b[1],
            grid,
            block,
            shared: b[2],
            sms: b[3],
            stream: a[1],
            context: a[2],
            launched_ns: a[3],
            complete_ns: a[4],
            clock_khz: b[4],
            params,
        },
    )
}

fn message_again<B: message::Body + PartialEq + std::fmt::Debug>(body: &B) {
    let bytes = body.message(9);
    let mut reader = Reader::new(&bytes[message::Head::SIZE..]);
    assert_eq!(B::decode(&mut reader).as_ref(), Ok(body));
    assert!(reader.rest().is_empty());
    // Every cut is noticed.
    for end in message::Head::SIZE..bytes.len() {
        assert_eq!(B::decode(&mut Reader::new(&bytes[message::Head::SIZE..end])), Err(Malformed));
    }
}

fn frame_again<B: frame::Body + PartialEq + std::fmt::Debug>(body: &B) {
    let bytes = body.frame(9);
    assert_eq!(bytes.len() % frame::ALIGN, 0);
    let head = frame::Head::decode(&bytes).unwrap();
    assert_eq!((head.kind, head.stride() as usize), (B::KIND, bytes.len()));
    let body_bytes = &bytes[frame::Head::SIZE..][..head.len as usize];
    assert_eq!(crc32c::crc32c(body_bytes), head.body_crc);
    assert_eq!(B::decode(&mut Reader::new(body_bytes)).as_ref(), Ok(body));
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in vec(any::<u8>(), 0..300)) {
        decode_all(&bytes);
    }

    /// Small numbers in the places of counts get further than random ones.
    #[test]
    fn bytes_that_look_like_counts(words in vec(0u32..9, 0..80)) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        decode_all(&bytes);
    }

    #[test]
    fn twins_come_back(twin in twin()) {
        message_again(&twin);
    }

    #[test]
    fn texts_come_back(reason in text(), selected in vec(text(), 0..5), image: u32, exe in vec(any::<u8>(), 0..50)) {
        message_again(&message::Kernels { image, reason: reason.clone(), selected: selected.clone() });
        message_again(&message::Hello { protocol: image, pid: 1, start: 2, exe });
        message_again(&message::Bye { launches: 3, probed: 2, collected: 1, notes: selected.clone() });
        message_again(&message::Refused { reason: reason.clone() });
        frame_again(&frame::Note { text: reason.clone() });
        frame_again(&frame::Start { host: reason, command: selected, ..frame::Start::default() });
    }

    /// A part says how long it is: no other length is taken.
    #[test]
    fn parts_of_streams_come_back(units in 0u64..20, chunk_log in 0u32..4, chunks in 0u64..5, drops: bool, cut in 0usize..300) {
        let chunk = 1 << chunk_log;
        let (slots, first_slot) = (chunks * u64::from(chunk), 3 * u64::from(chunk));
        let drops_bytes = if drops { units * 4 } else { 0 };
        let cap = first_slot + slots;
        let head = stream::Head { claims: 9, units, cap, first_slot, slots, drops_bytes, chunk, part: 1, parts: 2 };
        let mut bytes = head.encode().to_vec();
        bytes.resize(64 + (drops_bytes as usize).next_multiple_of(64), 0);
        bytes.resize(bytes.len() + slots as usize * 16, 7);
        let part = stream::Head::decode(&bytes).unwrap();
        prop_assert_eq!((part.head, part.drops.len() as u64, part.slots.len() as u64), (head, drops_bytes, slots * 16));
        prop_assert!(part.slots.iter().all(|&byte| byte == 7));
        let cut = cut % bytes.len();
        prop_assert_eq!(stream::Head::decode(&bytes[..cut]), Err(Malformed));
        bytes.push(0);
        prop_assert_eq!(stream::Head::decode(&bytes), Err(Malformed));
    }

    #[test]
    fn launches_come_back(launch in launch()) {
        frame_again(&launch);
    }

    /// A head with any one bit changed is no head.
    #[test]
    fn damaged_heads_are_refused(launch in launch(), bit in 0usize..512) {
        let mut bytes = launch.frame(1);
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert_eq!(frame::Head::decode(&bytes), Err(Malformed));
    }
}

/// A false count of four thousand million items ends where the bytes do.
#[test]
fn false_counts_allocate_nothing() {
    let mut bytes = vec![0; 16];
    bytes.extend_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(message::Twin::decode(&mut Reader::new(&bytes)), Err(Malformed));
}

#[test]
fn units_are_counted_as_on_the_device() {
    let check = |unit: Unit, grid, block, expected| assert_eq!(unit.count(grid, block, 132), expected);
    check(Unit::Thread, [2, 3, 4], [33, 1, 1], Some(24 * 33));
    // Warps are rounded up a block: 33 threads are two.
    check(Unit::Warp, [2, 3, 4], [33, 1, 1], Some(48));
    check(Unit::Warp, [1, 1, 1], [8, 8, 1], Some(2));
    check(Unit::Block, [2, 3, 4], [33, 1, 1], Some(24));
    check(Unit::Thread, [u32::MAX; 3], [1024, 1, 1], None);
    // As many as the device has, even if the launch has fewer blocks or more than there are numbers.
    check(Unit::Sm, [1, 1, 1], [32, 1, 1], Some(132));
    check(Unit::Sm, [u32::MAX; 3], [1024, 1, 1], Some(132));
}
