//! Where copies of segments go on the host, and how the host sees that they are there.
//!
//! A stage is memory of our own, registered with the driver, so it can be read after the driver is gone. Its first word
//! is written by the device, in stream order, behind copy and clear: looking at it is no driver call. Where the device
//! cannot write one, an event stands for it.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::batch::Fetched;
use crate::driver::{Driver, NOT_READY};
use crate::pool::Pool;
use crate::{Code, Opaque};

/// A call of the driver that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Its name.
    pub(crate) call: &'static str,
    /// What it returned.
    pub(crate) code: Code,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.call, crate::kernel::code_text(self.code))
    }
}

/// Names the call that a code is of.
pub(crate) fn check(call: &'static str, code: Code) -> Result<(), Failure> {
    if code == 0 { Ok(()) } else { Err(Failure { call, code }) }
}

/// A part of the pool, and where in the stage it goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    /// Bytes from the pool's start.
    pub(crate) offset: u64,
    /// Bytes from the stage's.
    pub(crate) at: usize,
    /// A multiple of four.
    pub(crate) len: usize,
}

/// Host memory that copies go to, with the word that says that they are there.
pub(crate) struct Stage {
    /// [`Stage::PAGE`] bytes, of which the first eight are the word, then `len` bytes.
    memory: *mut c_void,
    len: usize,
    /// The word's device address.
    word: u64,
    /// What it said last, or will say next.
    value: u64,
    /// Stands for the word where the device cannot write one.
    event: Option<Opaque>,
}

impl Stage {
    const PAGE: usize = 4096;

    /// For `len` bytes of segments.
    pub(crate) fn new(driver: &Driver, len: usize) -> Result<Stage, Failure> {
        const DEVICE_MAP: u32 = 2;
        const DISABLE_TIMING: u32 = 2;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // Shared, so that a fork leaves these pages where the device knows them to be.
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: new memory.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), Self::PAGE + len, protection, flags, -1, 0) };
        if memory == libc::MAP_FAILED {
            return Err(Failure { call: "mmap", code: 2 });
        }
        let mut stage = Stage { memory, len, word: 0, value: 0, event: None };
        // SAFETY: memory that was just made, and an address to write.
        unsafe {
            libc::madvise(memory, Self::PAGE + len, libc::MADV_DONTFORK);
            check("cuMemHostRegister", (driver.cuMemHostRegister_v2)(memory, Self::PAGE + len, DEVICE_MAP))?;
            let code = (driver.cuMemHostGetDevicePointer_v2)(&raw mut stage.word, memory, 0);
            check("cuMemHostGetDevicePointer", code)?;
        }
        if driver.write_value.or(driver.write_value_first).is_none() {
            stage.event = Some(new_event(driver, DISABLE_TIMING)?);
        }
        Ok(stage)
    }

    /// How many bytes of segments it holds.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Lets our stream wait until these launches are over.
    pub(crate) fn wait_for<'f>(
        &self,
        driver: &Driver,
        pool: &Pool,
        launches: impl Iterator<Item = &'f Fetched> + Clone,
    ) -> Result<(), Failure> {
        let mut later = launches.clone();
        for fetched in launches {
            later.next();
            // A later launch that stands behind this one in the same stream waits for it already.
            let order = fetched.launched.order;
            if later.clone().any(|later| later.launched.order == order) {
                continue;
            }
            if let Some(slot) = pool.slots.get(fetched.slot) {
                // SAFETY: our stream, and our event, recorded by the launching thread.
                check("cuStreamWaitEvent", unsafe {
                    (driver.cuStreamWaitEvent)(pool.stream, slot.event, 0)
                })?;
            }
        }
        Ok(())
    }

    /// Copies parts of the pool and clears them, in our stream; returns what the word will say.
    pub(crate) fn take(&mut self, driver: &Driver, pool: &Pool, ranges: &[Range]) -> Result<u64, Failure> {
        // Those that lie side by side, as segments do but for the ring's end, leave in one copy.
        let mut runs: Vec<Range> = Vec::new();
        for &range in ranges {
            match runs.last_mut() {
                Some(run) if run.offset + run.len as u64 == range.offset && run.at + run.len == range.at => {
                    run.len += range.len;
                }
                _ => runs.push(range),
            }
        }
        for run in &runs {
            self.copy(driver, run.at, pool.base + run.offset, run.len, pool.stream)?;
        }
        for run in &runs {
            // SAFETY: a part of the pool; all are multiples of four bytes.
            let code =
                unsafe { (driver.cuMemsetD32Async)(pool.base + run.offset, 0, run.len / 4, pool.stream) };
            check("cuMemsetD32Async", code)?;
        }
        self.signal(driver, pool.stream)
    }

    /// What the word says when all that was asked for so far is there.
    pub(crate) fn value(&self) -> u64 {
        self.value
    }

    /// Copies `len` bytes of device memory of ours to `at`.
    pub(crate) fn copy(
        &mut self,
        driver: &Driver,
        at: usize,
        from: u64,
        len: usize,
        stream: Opaque,
    ) -> Result<(), Failure> {
        if at.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(Failure { call: "a copy beyond its stage", code: 1 });
        }
        let to = self.memory.wrapping_byte_add(Self::PAGE + at);
        // SAFETY: the caller's device memory, to a part of the stage that holds as many bytes.
        check("cuMemcpyDtoHAsync", unsafe { (driver.cuMemcpyDtoHAsync_v2)(to, from, len, stream) })
    }

    /// Lets the device say when all that was asked of a stream of ours is done; returns what the word will be.
    pub(crate) fn signal(&mut self, driver: &Driver, stream: Opaque) -> Result<u64, Failure> {
        self.value += 1;
        if let (None, Some(write)) = (self.event, driver.write_value.or(driver.write_value_first)) {
            // SAFETY: the word's own address.
            let code = unsafe { write(stream, self.word, self.value, 0) };
            if code == 0 {
                return Ok(self.value);
            }
            // A device without 64-bit stream memory operations says so here.
            self.event = Some(new_event(driver, 2)?);
        }
        if let Some(event) = self.event {
            // SAFETY: our own event and stream.
            check("cuEventRecord", unsafe { (driver.cuEventRecord)(event, stream) })?;
        }
        Ok(self.value)
    }

    /// Whether the copies up to that value are there. What they hold may be read afterwards.
    pub(crate) fn done(&self, driver: &Driver, value: u64) -> Result<bool, Failure> {
        if let Some(event) = self.event {
            // SAFETY: our own event.
            return match unsafe { (driver.cuEventQuery)(event) } {
                0 => Ok(true),
                NOT_READY => Ok(false),
                code => Err(Failure { call: "cuEventQuery", code }),
            };
        }
        // SAFETY: the first eight bytes, aligned, which only the device writes.
        let word = unsafe { &*self.memory.cast::<AtomicU64>() };
        Ok(word.load(Ordering::Acquire) == value)
    }

    /// `len` bytes that a copy has brought.
    pub(crate) fn bytes(&self, at: usize, len: usize) -> &[u8] {
        if at.checked_add(len).is_none_or(|end| end > self.len) {
            return &[];
        }
        // SAFETY: they lie inside, and nothing writes them until the next `fetch`, which borrows mutably.
        unsafe { std::slice::from_raw_parts(self.memory.cast::<u8>().wrapping_add(Self::PAGE + at), len) }
    }

    /// Gives everything back.
    pub(crate) fn release(self, driver: &Driver) {
        // SAFETY: no copy is under way, and nobody has a slice.
        unsafe {
            (driver.cuMemHostUnregister)(self.memory);
            libc::munmap(self.memory, Self::PAGE + self.len);
            if let Some(event) = self.event {
                (driver.cuEventDestroy_v2)(event);
            }
        }
    }
}

fn new_event(driver: &Driver, flags: u32) -> Result<Opaque, Failure> {
    let mut event = std::ptr::null_mut();
    // SAFETY: writes one handle.
    check("cuEventCreate", unsafe { (driver.cuEventCreate)(&raw mut event, flags) })?;
    Ok(event)
}
