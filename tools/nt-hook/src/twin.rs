//! Twins of a kernel: what is launched in its place.
//!
//! What a twin relies on of a launch makes it cheaper: one row of blocks, of threads, rows of whole warps. So a kernel
//! may have several, and a launch gets the one that was made for what holds of it. That is one look into a table, by
//! the launch's own conditions; where the table has nothing yet, the parent is asked ([`crate::prepare`]). An answer
//! that relies on no more than one that is there already is that one. Devices of several architectures in one process
//! have a table each, found by the first look but for those that came later.
//!
//! ```text
//! holds   0  1  2  3  4  5  6  7
//! twin    a  .  .  b  .  .  .  b      a relies on nothing, b on one row of blocks and one of threads
//! ```

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, Ordering};

use nt_wire::frame;
use nt_wire::message::{Constant, FLAT_BLOCK, FLAT_GRID, MapShape, Param, Pin, Slot, WHOLE_ROWS};

use crate::Opaque;
use crate::home::Homes;
use crate::kernel::Kernel;
use crate::resident::Known;
use crate::trace::Trace;

/// A woven kernel.
pub(crate) struct Twin {
    /// Its number in the trace.
    pub(crate) id: u32,
    /// Compute capability, 90 for 9.0.
    pub(crate) arch: u32,
    /// What must hold of a launch.
    pub(crate) assumes: u8,
    /// The original's parameters.
    pub(crate) params: Vec<Param>,
    /// Bytes of their values, if the trace wants them; else 0.
    pub(crate) wanted_params: usize,
    /// What stands in its context block.
    pub(crate) slots: Vec<Slot>,
    /// What a launch's segment holds, and what its tables do.
    pub(crate) maps: Vec<MapShape>,
    /// What it shares with the original.
    pub(crate) pins: Vec<Pin>,
    /// What it has copies of.
    pub(crate) constants: Vec<Constant>,
    /// For the trace.
    pub(crate) manifest: Vec<u8>,
    /// How it is loaded.
    pub(crate) code: Code,
    /// Where it is.
    pub(crate) homes: Homes,
    /// How many blocks of it fit a multiprocessor.
    pub(crate) resident: Known,
    /// Whether the trace has its frame.
    pub(crate) written: AtomicBool,
}

/// How a twin is loaded.
pub(crate) enum Code {
    /// As a CUkernel, good in every context (driver 12.0 and later).
    Shared(Opaque),
    /// For each home anew, from this image with its NUL: it is tied to another's variables, or there are no libraries.
    Image(Vec<u8>),
}

impl Twin {
    /// A number that no other twin has.
    pub(crate) fn next_id() -> u32 {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether it reaches variables of its original's module.
    #[inline]
    pub(crate) fn is_tied(&self) -> bool {
        !self.pins.is_empty() || !self.constants.is_empty()
    }

    /// Whether its launches have something to save for themselves, or at least a frame to be told by.
    #[inline]
    pub(crate) fn has_segment(&self) -> bool {
        self.maps.is_empty() || self.maps.iter().any(|map| !map.persistent)
    }

    /// Writes its frame, once.
    pub(crate) fn announce(&self, kernel: &Kernel, trace: &mut Trace) -> std::io::Result<()> {
        if !self.written.load(Ordering::Relaxed) {
            trace.frame(&frame::Kernel {
                id: self.id,
                arch: self.arch,
                name: kernel.name.to_owned(),
                manifest: self.manifest.clone(),
            })?;
            self.written.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

// SAFETY: the driver's handles may be used from every thread.
unsafe impl Send for Twin {}
// SAFETY: as above; the rest is plain data and atomics.
unsafe impl Sync for Twin {}

/// How many sets of conditions there are.
const SETS: usize = (FLAT_GRID | FLAT_BLOCK | WHOLE_ROWS) as usize + 1;

/// How many architectures one process may have twins for.
const ARCHS: usize = 4;

/// The twins of a kernel. They are never freed.
pub(crate) struct Twins {
    /// By architecture, in the order in which their devices came.
    of: [OfArch; ARCHS],
}

/// Those for devices of one compute capability.
struct OfArch {
    /// 90 for 9.0; 0 if it is none's yet.
    arch: AtomicU32,
    /// By what holds of a launch.
    of: [AtomicPtr<Twin>; SETS],
    /// For which of these there is none to be had, a bit each.
    refused: AtomicU8,
}

impl Twins {
    /// None.
    pub(crate) const fn new() -> Twins {
        Twins { of: [const { OfArch::new() }; ARCHS] }
    }

    #[inline]
    fn for_arch(&self, arch: u32) -> Option<&OfArch> {
        self.of.iter().find(|one| one.arch.load(Ordering::Acquire) == arch)
    }

    /// That architecture's place, which is given to it if it has none; `None` if all are others'.
    fn claim(&self, arch: u32) -> Option<&OfArch> {
        let takes = |one: &&OfArch| {
            let claimed = one.arch.compare_exchange(0, arch, Ordering::AcqRel, Ordering::Acquire);
            claimed.is_ok() || claimed == Err(arch)
        };
        self.of.iter().find(takes)
    }

    /// The one for launches of which `holds` holds.
    #[inline]
    pub(crate) fn of(&self, arch: u32, holds: u8) -> Option<&'static Twin> {
        self.for_arch(arch)?.of(holds)
    }

    /// From now on such launches run that one; false if there is no room for one architecture more.
    pub(crate) fn put(&self, holds: u8, twin: &'static Twin) -> bool {
        let place = self.claim(twin.arch).and_then(|one| one.of.get(holds as usize % SETS));
        if let Some(place) = place {
            place.store(std::ptr::from_ref(twin).cast_mut(), Ordering::Release);
        }
        place.is_some()
    }

    /// Each of them, once.
    pub(crate) fn each(&self) -> impl Iterator<Item = &'static Twin> {
        self.of.iter().flat_map(OfArch::each)
    }

    /// One that can run where `holds` holds, though it may rely on less than others could.
    pub(crate) fn any_for(&self, arch: u32, holds: u8) -> Option<&'static Twin> {
        let twins = self.for_arch(arch)?.each();
        twins.filter(|twin| twin.assumes & !holds == 0).max_by_key(|twin| twin.assumes.count_ones())
    }

    /// There is none for such launches.
    pub(crate) fn refuse(&self, arch: u32, holds: u8) {
        if let Some(one) = self.claim(arch) {
            one.refused.fetch_or(1 << (holds as usize % SETS), Ordering::AcqRel);
        }
    }

    /// There is none for any launch on such a device.
    pub(crate) fn refuse_all(&self, arch: u32) {
        if let Some(one) = self.claim(arch) {
            one.refused.store(u8::MAX, Ordering::Release);
        }
    }

    /// Whether that is known, of such launches or of all.
    pub(crate) fn is_refused(&self, arch: u32, holds: u8) -> Option<Refused> {
        match self.for_arch(arch)?.refused.load(Ordering::Acquire) {
            u8::MAX => Some(Refused::Architecture),
            refused if refused & 1 << (holds as usize % SETS) != 0 => Some(Refused::Shape),
            _ => None,
        }
    }
}

/// For what there is no twin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// Launches of some shape.
    Shape,
    /// All on devices of this architecture.
    Architecture,
}

impl OfArch {
    const fn new() -> OfArch {
        OfArch {
            arch: AtomicU32::new(0),
            of: [const { AtomicPtr::new(std::ptr::null_mut()) }; SETS],
            refused: AtomicU8::new(0),
        }
    }

    #[inline]
    fn of(&self, holds: u8) -> Option<&'static Twin> {
        // SAFETY: null, or from `put`, of a twin that lives for ever.
        unsafe { self.of[holds as usize % SETS].load(Ordering::Acquire).as_ref() }
    }

    fn each(&self) -> impl Iterator<Item = &'static Twin> {
        let place = |holds: usize| self.of(holds as u8);
        (0..SETS).filter_map(move |holds| {
            let twin = place(holds)?;
            let before = (0..holds).filter_map(place).any(|other| std::ptr::eq(other, twin));
            (!before).then_some(twin)
        })
    }
}

#[cfg(test)]
impl Twin {
    /// Of nothing, for tests.
    pub(crate) fn empty() -> Twin {
        Twin {
            id: 0,
            arch: 90,
            assumes: 0,
            params: Vec::new(),
            wanted_params: 0,
            slots: Vec::new(),
            maps: Vec::new(),
            pins: Vec::new(),
            constants: Vec::new(),
            manifest: Vec::new(),
            code: Code::Image(Vec::new()),
            homes: Homes::new(),
            resident: Known::new(),
            written: AtomicBool::new(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn twin(arch: u32, assumes: u8) -> &'static Twin {
        Box::leak(Box::new(Twin { arch, assumes, ..Twin::empty() }))
    }

    #[test]
    fn each_architecture_has_its_own() {
        let twins = Twins::new();
        let (first, second) = (twin(90, 0), twin(80, 0));
        assert!(twins.put(3, first) && twins.put(3, second));
        let same = |found: Option<&'static Twin>, twin| found.is_some_and(|found| std::ptr::eq(found, twin));
        assert!(same(twins.of(90, 3), first) && same(twins.of(80, 3), second));
        assert!(twins.of(80, 2).is_none() && twins.of(100, 3).is_none());
        assert!(same(twins.any_for(80, 7), second) && twins.any_for(100, 7).is_none());
        assert_eq!(twins.each().count(), 2);
        twins.refuse(90, 1);
        twins.refuse_all(75);
        let refused = [(90, 1), (90, 2), (80, 1), (75, 1), (100, 1)];
        assert_eq!(
            refused.map(|(arch, holds)| twins.is_refused(arch, holds)),
            [Some(Refused::Shape), None, None, Some(Refused::Architecture), None]
        );
        // Four have room.
        assert!(twins.put(0, twin(100, 0)) && !twins.put(0, twin(120, 0)));
    }
}
