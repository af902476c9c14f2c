//! What the process was started with: the run folder (`NT_RUN`) and the path of this very library.
//!
//! Both are copied once into static memory, by our constructor or by the first dl call, whichever comes first. The
//! program may clear its environment afterwards; its children still get both (see [`crate::exec`]). No allocation.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::boot;

/// The longest path that is kept, its NUL included. Longer ones turn the hook off.
const LONGEST: usize = 4096;

/// A path in static memory, written once.
pub(crate) struct Kept {
    /// 0: none.
    len: AtomicUsize,
    bytes: UnsafeCell<[u8; LONGEST]>,
}

// SAFETY: `bytes` is written by the one thread that holds LEARNT in WRITING, before `len` is published.
unsafe impl Sync for Kept {}

impl Kept {
    const fn new() -> Self {
        Kept { len: AtomicUsize::new(0), bytes: UnsafeCell::new([0; LONGEST]) }
    }

    fn keep(&self, text: &[u8]) {
        if text.len() < LONGEST {
            // SAFETY: see Sync; the array is zero behind the text.
            unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), self.bytes.get().cast(), text.len()) };
            self.len.store(text.len(), Ordering::Release);
        }
    }

    /// Its bytes, empty where there is none.
    pub(crate) fn get(&self) -> &[u8] {
        let len = self.len.load(Ordering::Acquire);
        // SAFETY: `len` bytes were written before `len` was, and never change.
        unsafe { std::slice::from_raw_parts(self.bytes.get().cast(), len) }
    }
}

/// The value of `NT_RUN`.
pub(crate) static RUN: Kept = Kept::new();
/// The path by which ld.so knows this library.
pub(crate) static HOOK: Kept = Kept::new();

static LEARNT: AtomicUsize = AtomicUsize::new(UNKNOWN);
const UNKNOWN: usize = 0;
const WRITING: usize = 1;
const KNOWN: usize = 2;

unsafe extern "C" {
    static environ: *const *const c_char;
    static _DYNAMIC: boot::Dyn;
}

/// Whether there is a run folder. Without one the hook is a bystander that passes everything through.
pub(crate) fn wanted() -> bool {
    if LEARNT.load(Ordering::Acquire) != KNOWN {
        learn();
    }
    !RUN.get().is_empty()
}

/// Reads both values. Safe to call again and from several threads.
pub(crate) fn learn() {
    if LEARNT.compare_exchange(UNKNOWN, WRITING, Ordering::AcqRel, Ordering::Acquire).is_err() {
        while LEARNT.load(Ordering::Acquire) != KNOWN {
            std::hint::spin_loop();
        }
        return;
    }
    let dynamic = &raw const _DYNAMIC;
    if let Some(map) = boot::objects().find(|map| map.dynamic == dynamic) {
        // SAFETY: ld.so's names end in a NUL.
        HOOK.keep(unsafe { CStr::from_ptr(map.name) }.to_bytes());
    }
    // SAFETY: libc's list, ended by a null pointer; nobody changes it this early.
    let mut entry = unsafe { environ };
    // SAFETY: as above.
    while let Some(text) = unsafe { entry.as_ref() }.filter(|text| !text.is_null()) {
        // SAFETY: as above.
        if let Some(value) = unsafe { CStr::from_ptr(*text) }.to_bytes().strip_prefix(b"NT_RUN=") {
            RUN.keep(value);
            break;
        }
        entry = entry.wrapping_add(1);
    }
    LEARNT.store(KNOWN, Ordering::Release);
}
