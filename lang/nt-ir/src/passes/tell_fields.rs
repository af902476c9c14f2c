//! Finds the fields of events that need not be stored, since the code of an event tells them.
//!
//! ```text
//! map m: stream<warp> { line: u32, addr: lanes<ptr> }        { line: u32 told, addr: lanes<ptr> }
//! %0: u32 uniform = site line                           ->
//! save m(line = %0, addr = %1)
//! ```
//!
//! A field is told where every save of it, of which there is one, is of what is known when a kernel is woven. Only events
//! with `lanes<T>` fields have a code.

use crate::known::known_when_woven;
use crate::program::{MapId, Op, Program};

pub(super) fn run(program: &mut Program) {
    for index in 0..program.maps.len() {
        let map = &program.maps[index];
        let told = if map.has_lanes() { told(program, MapId(index as u32)) } else { Vec::new() };
        program.maps[index].told = told;
    }
}

fn told(program: &Program, map: MapId) -> Vec<u32> {
    let fields = &program.maps[map.0 as usize].fields;
    let mut told: Vec<bool> = fields.iter().map(|field| !field.lanes).collect();
    let mut is_saved = false;
    for probe in &program.probes {
        let known = known_when_woven(probe);
        for inst in &probe.code {
            let Op::Save { map: saved, values } = &inst.op else { continue };
            if *saved != map {
                continue;
            }
            is_saved = true;
            for (told, (_, value)) in told.iter_mut().zip(values) {
                *told &= known[value.0 as usize];
            }
        }
    }
    (0..).zip(told).filter(|(_, told)| *told && is_saved).map(|(field, _)| field).collect()
}
