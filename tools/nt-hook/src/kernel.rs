//! A kernel: one name in one image, its counts, and its twins once there are some.
//!
//! Kernels are never freed, so that a launch may hold on to one without counting references. Modules that are loaded
//! again (the parent gives the same image the same number) find their kernels again, so their number is bounded by what
//! the program has, not by what it does. What the launch path reads is one word, [`Kernel::state`].

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use nt_wire::frame::Count;

use crate::process::{lock, lock_until};
use crate::tally::Tally;
use crate::time::Deadline;
use crate::twin::{Twin, Twins};
use crate::{Opaque, notes};

/// Where a kernel stands on the way to being probed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum State {
    /// All that a launch does is count.
    Unselected = 0,
    /// The next launch asks for the twin.
    Selected = 1,
    /// There is a twin, at least for some launches.
    Ready = 2,
    /// There is a reason.
    Fallen = 3,
}

/// Why a launch of a selected kernel was not probed, other than that the kernel has fallen.
#[derive(Clone, Copy)]
#[repr(usize)]
pub(crate) enum Skip {
    /// A stream capture was going on.
    Captured = 0,
    /// No segment came free in time.
    Full,
    /// What its probes may save does not fit into the pool.
    TooLarge,
    /// No context could be found or no pool made for it.
    NoPool,
    /// There are twins, or may be, but none for devices like this one.
    Architecture,
    /// The hook was passive or at its end.
    Passive,
    /// Its arguments do not fit the kernel's parameters; the driver will say so.
    Arguments,
    /// The grid is resident at once as it is, and would not be with the probe in: its blocks might wait on each other.
    Resident,
    /// Its twin has no place for one context, module or stream more.
    Homes,
    /// There are twins, but none for grids and blocks like these.
    Shape,
    /// It is no launch, but a node that the program put into a graph.
    Node,
}

const SKIPS: [&str; 11] = [
    "captured into a graph",
    "without a free segment in time",
    "whose maps take more than half of the pool; --pool makes it larger",
    "without a pool",
    "on an architecture that it has no twin for",
    "while the hook was passive",
    "with unusual arguments",
    "whose grid would no longer be resident at once",
    "in one context, module or stream more than there is room for",
    "of a shape that none of its twins is for",
    "put into a graph as a node",
];

/// See the module. What a launch touches stands first, in one cache line.
#[repr(C, align(64))]
pub(crate) struct Kernel {
    state: AtomicU32,
    /// Launches seen.
    pub(crate) launches: Tally,
    /// Launched as a twin.
    pub(crate) probed: AtomicU64,
    /// Of these, all that they have saved is in the trace: their segments, and the tables that they counted in.
    pub(crate) collected: AtomicU64,
    /// What runs in its place.
    pub(crate) twins: Twins,
    skipped: [AtomicU64; SKIPS.len()],
    /// Mangled; empty for the one that stands for all unknown handles.
    pub(crate) name: &'static str,
    /// The parent's number of its image.
    pub(crate) image: u32,
    /// Why it is unselected or has fallen.
    reason: Mutex<String>,
}

impl Kernel {
    const fn with_name(name: &'static str, image: u32, state: State, reason: String) -> Self {
        Kernel {
            state: AtomicU32::new(state as u32),
            launches: Tally::new(),
            probed: AtomicU64::new(0),
            collected: AtomicU64::new(0),
            twins: Twins::new(),
            skipped: [const { AtomicU64::new(0) }; SKIPS.len()],
            name,
            image,
            reason: Mutex::new(reason),
        }
    }

    /// Whether launches do no more than count.
    #[inline(always)]
    pub(crate) fn unselected(&self) -> bool {
        self.state.load(Ordering::Relaxed) == State::Unselected as u32
    }

    /// Where it stands; what that implies can be read afterwards.
    pub(crate) fn state(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            0 => State::Unselected,
            1 => State::Selected,
            2 => State::Ready,
            _ => State::Fallen,
        }
    }

    /// From now on launches of which `holds` holds run the twin, where it is at home; false if there is no room for one
    /// architecture more.
    pub(crate) fn rise(&self, holds: u8, twin: &'static Twin) -> bool {
        let has_room = self.twins.put(holds, twin);
        if has_room {
            self.state.store(State::Ready as u32, Ordering::Release);
        }
        has_room
    }

    /// From now on launches on devices of this architecture run the original, for this reason; others may have twins.
    pub(crate) fn fall_on(&self, arch: u32, reason: &str) {
        self.twins.refuse_all(arch);
        let mut all = lock(&self.reason);
        if !all.is_empty() {
            all.push_str("; ");
        }
        all.push_str(&format!("on sm_{arch}: {reason}"));
    }

    /// From now on launches run the original, for this reason.
    pub(crate) fn fall(&self, reason: String) {
        *lock(&self.reason) = reason;
        self.state.store(State::Fallen as u32, Ordering::Release);
    }

    /// Counts a launch that is not probed.
    pub(crate) fn skip(&self, why: Skip) {
        self.skipped[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Its line of the coverage table.
    pub(crate) fn count(&self, deadline: Deadline) -> Count {
        let mut reasons: Vec<String> = Vec::new();
        for (count, text) in self.skipped.iter().zip(SKIPS) {
            match count.load(Ordering::Relaxed) {
                0 => {}
                n => reasons.push(format!("{n} {text}")),
            }
        }
        if let Some(reason) = lock_until(&self.reason, deadline).filter(|reason| !reason.is_empty()) {
            reasons.push(reason.clone());
        }
        Count {
            kernel: self.name.to_string(),
            launches: self.launches.get(),
            probed: self.probed.load(Ordering::Relaxed),
            collected: self.collected.load(Ordering::Relaxed),
            reason: reasons.join("; "),
        }
    }
}

/// Stands for every handle that we never saw given out.
pub(crate) static UNKNOWN: Kernel = Kernel::with_name("", u32::MAX, State::Unselected, String::new());

static KERNELS: Mutex<BTreeMap<(u32, &'static str), &'static Kernel>> = Mutex::new(BTreeMap::new());

/// The kernel of that name in that image; made at the first call, with what the parent says about it.
pub(crate) fn kernel(image: u32, name: &str, selected: bool, reason: &str) -> &'static Kernel {
    let mut kernels = lock(&KERNELS);
    if let Some(kernel) = kernels.get(&(image, name)) {
        return kernel;
    }
    let state = if selected { State::Selected } else { State::Unselected };
    let reason = if selected { "" } else { reason };
    let name = &*String::leak(name.to_owned());
    let kernel = Box::leak(Box::new(Kernel::with_name(name, image, state, reason.to_owned())));
    kernels.insert((image, name), kernel);
    kernel
}

/// Every kernel that was launched, in the order of image and name, the unknown ones last.
pub(crate) fn launched(deadline: Deadline) -> Vec<&'static Kernel> {
    let kernels = lock_until(&KERNELS, deadline);
    let all = kernels.iter().flat_map(|kernels| kernels.values().copied()).chain(std::iter::once(&UNKNOWN));
    all.filter(|kernel| kernel.launches.get() != 0).collect()
}

/// All twins.
pub(crate) fn twins() -> Vec<&'static Twin> {
    lock(&KERNELS).values().flat_map(|kernel| kernel.twins.each()).collect()
}

/// What a function's handle is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandleKind {
    /// Of a module, in one context.
    Function,
    /// Of a library, in all contexts.
    Kernel,
}

/// Room for 49,152 functions at a time.
static FUNCTIONS: crate::handles::Table<65_536> = crate::handles::Table::new();
/// Set in a table's value for a CUkernel; kernels are aligned to 64.
const KERNEL_BIT: usize = 1;

/// Ties a handle to its kernel.
pub(crate) fn tie(handle: Opaque, kind: HandleKind, kernel: &'static Kernel) {
    let bit = if kind == HandleKind::Kernel { KERNEL_BIT } else { 0 };
    if !FUNCTIONS.put(handle as usize, std::ptr::from_ref(kernel) as usize | bit) {
        notes::TABLE_FULL.count();
    }
}

/// The kernel in what [`untie`] took.
pub(crate) fn of_value(value: usize) -> Option<&'static Kernel> {
    // SAFETY: as in `of`.
    unsafe { ((value & !KERNEL_BIT) as *const Kernel).as_ref() }
}

/// Takes handles out, before the driver may give them away anew; to be put back if it does not.
pub(crate) fn untie(handle: usize) -> usize {
    FUNCTIONS.take(handle)
}

/// Puts back what [`untie`] took.
pub(crate) fn tie_again(handle: usize, value: usize) {
    if value != 0 {
        FUNCTIONS.put(handle, value);
    }
}

/// The kernel behind a handle, and what kind of handle it is.
#[inline(always)]
pub(crate) fn of(handle: Opaque) -> Option<(&'static Kernel, HandleKind)> {
    of_entry(FUNCTIONS.get(handle as usize))
}

/// The kernel behind a handle, if one look finds it and all that its launches do is count.
#[inline(always)]
pub(crate) fn unselected_at_once(handle: Opaque) -> Option<&'static Kernel> {
    let (kernel, _) = of_entry(FUNCTIONS.get_at_once(handle as usize))?;
    kernel.unselected().then_some(kernel)
}

#[inline(always)]
fn of_entry(value: usize) -> Option<(&'static Kernel, HandleKind)> {
    let kind = if value & KERNEL_BIT == 0 { HandleKind::Function } else { HandleKind::Kernel };
    // SAFETY: 0, or a kernel's address from `tie`; kernels are never freed.
    unsafe { ((value & !KERNEL_BIT) as *const Kernel).as_ref() }.map(|kernel| (kernel, kind))
}

/// A driver's code in words of the summary.
pub(crate) fn code_text(code: c_int) -> String {
    let name = match code {
        1 => " (invalid value)",
        2 => " (out of memory)",
        200 => " (invalid image)",
        209 => " (no binary for this GPU)",
        218 => " (invalid PTX)",
        222 => " (unsupported PTX version)",
        400 => " (invalid handle)",
        500 => " (not found)",
        700 => " (illegal address)",
        701 => " (out of resources)",
        720 => " (cooperative launch too large)",
        _ => "",
    };
    format!("error {code}{name}")
}
