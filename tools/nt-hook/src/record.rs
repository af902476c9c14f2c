//! The frames of what probes have saved: of a launch, and of the tables of a home.

use std::io;

use nt_wire::frame;

use crate::arguments::lay_out;
use crate::home::Home;
use crate::pool::Launched;
use crate::trace::Trace;

/// A launch and its maps; `bytes` gives the part of its segment at an offset.
pub(crate) fn launch<'s>(
    trace: &mut Trace,
    launched: &Launched,
    complete_ns: u64,
    bytes: impl Fn(usize, usize) -> &'s [u8],
) -> io::Result<()> {
    launched.twin.announce(launched.kernel, trace)?;
    trace.frame(&frame::Launch { complete_ns, ..launched.frame.clone() })?;
    let frame::Launch { grid, block, sms, .. } = launched.frame;
    // As it was laid out for the launch.
    let (parts, _) = lay_out(launched.twin, false, grid, block, sms).unwrap_or_default();
    let maps = launched.twin.maps.iter().zip(&parts).enumerate();
    for (map, (_, part)) in maps.filter(|(_, (map, _))| !map.persistent) {
        let fixed = frame::Data {
            launch: launched.frame.number,
            map: map as u32,
            kernel: launched.twin.id,
            units: part.units,
            capacity: part.capacity,
            bytes: part.bytes,
            context: launched.frame.context,
            device: launched.frame.device,
        };
        trace.data(fixed, bytes(part.offset as usize, part.bytes as usize))?;
    }
    Ok(())
}

/// The tables of a home; `bytes` gives the part of their buffer at an offset.
pub(crate) fn tables<'s>(
    trace: &mut Trace,
    home: &Home,
    bytes: impl Fn(usize, usize) -> &'s [u8],
) -> io::Result<()> {
    home.twin.announce(home.kernel, trace)?;
    let maps = home.twin.maps.iter().zip(&home.tables.parts).enumerate();
    for (map, (_, part)) in maps.filter(|(_, (map, _))| map.persistent) {
        let fixed = frame::Data {
            launch: frame::Data::PERSISTENT,
            map: map as u32,
            kernel: home.twin.id,
            units: part.units,
            capacity: part.capacity,
            bytes: part.bytes,
            context: home.context.handle as u64,
            device: home.context.device.ordinal.cast_unsigned(),
        };
        trace.data(fixed, bytes(part.offset as usize, part.bytes as usize))?;
    }
    Ok(())
}
