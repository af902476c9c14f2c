//! Events of every form: records of several slots, values of lanes of every width beside addresses, some lanes left out,
//! in streams with and without room. What each lane has stored is told by the lane itself and by the software GPU.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

use nt_differ::device::{self, Job, Text};
use nt_differ::events::{self, Access};
use nt_differ::probed::{self, Probed, Room};
use nt_differ::random::Random;
use nt_differ::sidecar::Sidecar;
use nt_ir::launch::Conditions;
use nt_vgpu::Options;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Odd lanes alone, every kind of field; and a record of two slots wherever something is loaded.
const PROGRAM: &str = "
map lists: stream<warp> {
    at: u64, lane: lanes<u32>, addr: lanes<ptr>, again: lanes<ptr>, third: lanes<bool>, bytes: lanes<u8>
}
map records: stream<warp> { here: u64, wid: u32, mask: u64, small: u16 }
warp inst:access.global /lane & 1 == 1/ {
    lists.save(clock(), lane, addr, addr, lane & 3 == 3, bytes as u8);
}
warp inst:load.global { records.save(warp, wid, active(), 7); }
";

fn read(file: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/ptx").join(file))
        .unwrap()
}

/// What was seen at odd lanes, by warp and statement order unknown: each lane with its address.
type Touch = (u64, u32, u64);

fn lists(ran: &device::Ran, job: &Job, probed: &Probed, accesses: &[Access], plain: bool, is_whole: bool) {
    let events = events::read(probed, job, ran, "lists", 3).unwrap();
    let mut found: BTreeMap<Touch, u64> = BTreeMap::new();
    for event in &events.stored {
        assert_eq!(event.mask & 0x5555_5555, 0, "an even lane: {event:?}");
        let [_, lane, addr, again, third, bytes] = event.lanes.first_chunk::<6>().unwrap();
        let (lane, addr, again) = (lane.unwrap(), addr.unwrap(), again.unwrap());
        let (third, bytes) = (third.unwrap(), bytes.unwrap());
        for number in (0..32usize).filter(|number| event.mask >> number & 1 == 1) {
            assert_eq!(lane[number], number as u64, "{event:?}");
            assert_eq!(third[number], u64::from(number & 3 == 3), "{event:?}");
            // Where groups meet by chance, a proof that relies on where they meet does not hold.
            assert!(!plain || addr[number] == again[number], "{event:?}");
            assert!([1, 2, 4, 8, 16].contains(&bytes[number]), "{event:?}");
            *found.entry((event.warp, number as u32, again[number])).or_default() += 1;
        }
    }
    let mut seen: BTreeMap<Touch, u64> = BTreeMap::new();
    for access in accesses {
        for lane in (1..32u32).step_by(2).filter(|lane| access.lanes >> lane & 1 == 1) {
            let at = access.addresses[lane as usize];
            // Places in other spaces lie below, the windows of these above.
            if (1 << 32..1 << 47).contains(&at) {
                *seen.entry((access.warp, lane, at)).or_default() += 1;
            }
        }
    }
    let dropped: BTreeSet<u64> =
        (0..).zip(&events.dropped).filter(|(_, n)| **n != 0).map(|(w, _)| w).collect();
    assert!(!is_whole || dropped.is_empty(), "dropped though there is room");
    for (touch, count) in &found {
        assert!(
            seen.get(touch) >= Some(count),
            "{touch:x?} was stored {count} times, seen {:?}",
            seen.get(touch)
        );
    }
    for (touch, count) in seen.iter().filter(|(touch, _)| !dropped.contains(&touch.0)) {
        assert_eq!(found.get(touch), Some(count), "{touch:x?}");
    }
}

fn records(
    ran: &device::Ran,
    job: &Job,
    probed: &Probed,
    loads: &BTreeSet<u32>,
    accesses: &[Access],
    plain: bool,
) {
    let number = probed.kernel(&job.kernel).unwrap().maps.iter().position(|map| map.name == "records");
    // A kernel may load nothing.
    if number.is_none() {
        return;
    }
    let events = events::read(probed, job, ran, "records", 3);
    let events = match events {
        // Without a column of that name it is not known where an event was saved.
        Err(why) => {
            assert_eq!(why, "an event of no site");
            return;
        }
        Ok(events) => events,
    };
    let warps = job.threads().div_ceil(32);
    let mut of_warp: BTreeMap<u64, u64> = (0..).zip(events.dropped.iter().copied()).collect();
    for event in &events.stored {
        let [Some(here), Some(wid), Some(mask), Some(7)] = event.values[..] else { panic!("{event:?}") };
        assert_eq!((here, wid), (i128::from(event.warp), i128::from(event.warp % warps)));
        assert_eq!((mask as u64).trailing_zeros(), event.lane, "the lowest lane stores: {event:?}");
        *of_warp.entry(event.warp).or_default() += 1;
    }
    if plain {
        let mut seen: BTreeMap<u64, u64> = BTreeMap::new();
        for access in accesses.iter().filter(|access| loads.contains(&access.statement) && access.lanes != 0)
        {
            *seen.entry(access.warp).or_default() += 1;
        }
        of_warp.retain(|_, count| *count != 0);
        assert_eq!(of_warp, seen);
    }
}

fn differ(name: &str, sidecar: &str) {
    let (ptx, sidecar) = (read(name), Sidecar::parse(&read(sidecar)).unwrap());
    let text = Text::load(&ptx).unwrap();
    let probe = probed::compile(PROGRAM, "lists").unwrap();
    let is_load = |opcode: &str| opcode.starts_with("ld.global") || opcode.starts_with("ldu.global");
    let loads: BTreeSet<u32> = text
        .program
        .places()
        .iter()
        .filter(|place| is_load(&place.opcode))
        .map(|place| place.statement)
        .collect();
    let mut runs = 0;
    for assume in [Conditions::NONE, Conditions::ALL] {
        let mut probed = Probed::weave(&text, &probe, assume).unwrap();
        for kernel in text.program.kernels() {
            let Some(Some(known)) = sidecar.find(&kernel.name) else { continue };
            let woven =
                probed.kernel(&kernel.name).is_some_and(|k| k.maps.iter().any(|map| map.name == "lists"));
            if !woven {
                continue;
            }
            for (number, shape) in known.launches.iter().enumerate().take(4) {
                let relied = probed.kernel(&kernel.name).unwrap().assumes;
                if !relied.is_subset_of(Conditions::of(shape.grid, shape.block)) {
                    continue;
                }
                let job = Job::new(&kernel.name, &sidecar, known, *shape, &mut Random::new(number as u64));
                for seed in [None, Some(5)] {
                    let options = Options { seed, sms: 3, max_steps: 1 << 26 };
                    let mut accesses = Vec::new();
                    let mut watch = |_: &[u8], seen: &nt_vgpu::Accessed<'_>| {
                        accesses.extend(Access::of(&text, &job, seen));
                    };
                    let plain = device::run_watched(&text.program, &job, &options, None, &mut watch).unwrap();
                    for room in [Room::More(1 << 12), Room::More(3), Room::Fewer(2)] {
                        probed.room = room;
                        let ran = device::run(&probed.program, &job, &options, Some(&probed)).unwrap();
                        if device::same(&plain, &ran).is_err() && seed.is_some() {
                            // The schedule matters to the kernel.
                            continue;
                        }
                        device::same(&plain, &ran).unwrap();
                        lists(&ran, &job, &probed, &accesses, seed.is_none(), room == Room::More(1 << 12));
                        records(&ran, &job, &probed, &loads, &accesses, seed.is_none());
                        runs += 1;
                    }
                }
            }
        }
    }
    assert!(20 < runs, "{runs} runs");
}

#[test]
fn benchmarks() {
    differ("nvcc/kernels.sm_90.ptx", "nvcc/kernels.launches");
}

#[test]
fn features() {
    differ("nvcc/features.sm_80.ptx", "nvcc/features.launches");
}
