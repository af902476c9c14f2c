//! What the streams of a probed run hold, read as a reader of traces reads them, beside the accesses that the software
//! GPU saw the original make.
//!
//! ```text
//! warp 3, cursor of lane 0, event 5: site 2, lanes 0xffff, addr[lane] …, bytes[lane] 4
//! ```

use crate::device::{Job, Ran, Text};
use crate::probed::Probed;
use nt_trace::ntm::Kernel;
use nt_trace::ntt::{Cursors, Reader, StreamEvent, Value};
use nt_wire::frame::{self, ALIGN};
use nt_wire::stream::Head;

/// An event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The warp, counted over the launch.
    pub warp: u64,
    /// The lane that stored it.
    pub lane: u32,
    /// How many that lane had stored before.
    pub sequence: u64,
    /// The lanes that took part; 0 in a stream without values of each lane.
    pub mask: u32,
    /// Where it was saved: an index into the kernel's sites.
    pub site: usize,
    /// By column, the value for all lanes.
    pub values: Vec<Option<i128>>,
    /// By column, the values of the lanes.
    pub lanes: Vec<Option<[u64; 32]>>,
}

/// What a stream holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Events {
    /// In the order of the chunks.
    pub stored: Vec<Event>,
    /// By warp, how many had no room.
    pub dropped: Vec<u64>,
}

/// The manifest's entry of a woven kernel, as a reader gets it: written and read back, which holds it to what readers rely on.
///
/// # Errors
/// It does not hold.
pub fn manifest(probed: &Probed, kernel: &str) -> Result<Kernel, String> {
    let woven = probed.kernel(kernel).ok_or("no such kernel")?;
    let manifest = nt_trace::Manifest {
        schema: nt_trace::ntm::SCHEMA,
        tool: String::new(),
        probe: nt_trace::ntm::Probe { name: String::new(), hash: String::new() },
        original: String::new(),
        target: String::new(),
        woven_bytes: 0,
        kernels: vec![nt_engine::manifest::kernel(woven, &probed.probe)],
        refused: Vec::new(),
    };
    let json = manifest.to_json();
    let read = nt_trace::Manifest::parse(json.as_bytes()).map_err(|why| why.to_string())?;
    read.kernels.into_iter().next().ok_or_else(|| "a manifest without its kernel".to_owned())
}

/// Reads a stream.
///
/// # Errors
/// There is none of this name, or something in it cannot be.
pub fn read(probed: &Probed, job: &Job, ran: &Ran, name: &str, sms: u32) -> Result<Events, String> {
    let kernel = manifest(probed, &job.kernel)?;
    let number = kernel.maps.iter().position(|map| map.name == name).ok_or("no such map")?;
    let (map, segment) = kernel.maps.get(number).zip(ran.segments.get(number)).ok_or("no segment")?;
    let stream = map.stream.as_ref().ok_or("no stream")?;
    let launch = frame::Launch {
        number: 0,
        kernel: 0,
        device: 0,
        grid: job.shape.grid,
        block: job.shape.block,
        shared: job.shape.shared,
        sms,
        stream: 0,
        context: 0,
        launched_ns: 0,
        complete_ns: 0,
        clock_khz: 0,
        params: ran.params.clone(),
    };
    // As the hook cuts it: what was given out, and the drops if there may be any.
    let (units, claims, chunk, cap) = (segment.units, segment.claims, stream.chunk, segment.capacity);
    let slots = Head::used(units, claims, chunk, cap);
    let may_have_dropped = Head::may_have_dropped(units, claims, chunk, cap);
    let drops: &[u8] = if may_have_dropped { &segment.drops } else { &[] };
    if !may_have_dropped && segment.drops.iter().any(|&byte| byte != 0) {
        return Err(format!("`{name}` counts events without room, where there was room"));
    }
    let head = Head {
        claims,
        units,
        cap,
        first_slot: 0,
        slots,
        drops_bytes: drops.len() as u64,
        chunk,
        part: 0,
        parts: 1,
    };
    let mut data = head.encode().to_vec();
    data.extend(drops);
    data.resize(data.len().next_multiple_of(ALIGN), 0);
    let bytes = (slots * nt_wire::stream::SLOT) as usize;
    let (used, unused) = segment.bytes.split_at_checked(bytes).ok_or("fewer slots than were given out")?;
    if unused.iter().any(|&byte| byte != 0) {
        return Err(format!("`{name}`: something stands in slots that were not given out"));
    }
    data.extend(used);

    let reader = Reader::new(&kernel, map, &launch).map_err(|why| why.to_string())?;
    let part = reader.part(&data).map_err(|why| why.to_string())?;
    let mut cursors = Cursors::default();
    let columns = map.columns.len();
    let mut events = Events::default();
    for piece in reader.pieces(&part, &mut cursors, usize::MAX) {
        if piece.torn != 0 {
            return Err(format!("`{name}`: {} chunks hold something that cannot be", piece.torn));
        }
        for event in reader.events(&piece) {
            events.stored.push(one(&event, columns)?);
        }
    }
    events.dropped = (0..units as usize)
        .map(|warp| drops.get(4 * warp..).and_then(|drops| drops.first_chunk()))
        .map(|bytes| bytes.map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes))))
        .collect();
    Ok(events)
}

fn one(event: &StreamEvent<'_, '_>, columns: usize) -> Result<Event, String> {
    let lanes = |column| {
        let mut bits = [0; 32];
        event.put_lanes(column, &mut bits).then_some(bits)
    };
    Ok(Event {
        warp: event.warp(),
        lane: event.lane(),
        sequence: event.sequence(),
        mask: event.mask(),
        site: event.site().ok_or("an event of no site")?,
        values: (0..columns).map(|column| event.value(column).and_then(Value::to_integer)).collect(),
        lanes: (0..columns).map(lanes).collect(),
    })
}

/// Lanes that accessed memory together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The statement.
    pub statement: u32,
    /// The warp, counted over the launch.
    pub warp: u64,
    /// Which lanes.
    pub lanes: u32,
    /// Where each of them did.
    pub addresses: [u64; 32],
}

impl Access {
    /// What the software GPU tells of a job.
    pub fn of(text: &Text<'_>, job: &Job, seen: &nt_vgpu::Accessed<'_>) -> Option<Access> {
        let [x, y, z] = seen.block.map(u64::from);
        let [nx, ny, _] = job.shape.grid.map(u64::from);
        let warps = job.threads().div_ceil(32);
        Some(Access {
            statement: text.program.places().get(seen.instruction)?.statement,
            warp: (x + nx * (y + ny * z)) * warps + u64::from(seen.warp),
            lanes: seen.lanes,
            addresses: *seen.addresses,
        })
    }
}
