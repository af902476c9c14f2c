//! Memory: allocations are host memory, and a device address is a host address.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::ffi::{c_uchar, c_uint, c_void};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::call::{INVALID_VALUE, OUT_OF_MEMORY, calls, lock, put};
use crate::context::need_current;
use crate::plan::plan;
use crate::queue::Op;
use crate::settings::settings;
use crate::stream::{self, Forbidden};
use crate::{Code, Opaque, health};

/// As much as the device has.
pub(crate) const TOTAL: usize = 8 << 30;
const ALIGN: usize = 512;
/// Left free behind each allocation, so that a kernel that runs past its end is seen.
const GUARD: usize = 256;

/// Allocations by address.
static DEVICE: Mutex<BTreeMap<u64, usize>> = Mutex::new(BTreeMap::new());
/// Host memory that was registered, by address.
static HOST: Mutex<BTreeMap<u64, usize>> = Mutex::new(BTreeMap::new());

/// Whether a range lies in one allocation or one piece of registered memory.
pub(crate) fn holds(address: u64, len: usize) -> bool {
    let inside = |map: &Mutex<BTreeMap<u64, usize>>| {
        let map = lock(map);
        let below = map.range(..=address).next_back();
        below.is_some_and(|(&start, &size)| {
            address - start <= size as u64 && len as u64 <= size as u64 - (address - start)
        })
    };
    inside(&DEVICE) || inside(&HOST)
}

/// All memory that a kernel may access.
pub(crate) fn ranges() -> Vec<std::ops::Range<u64>> {
    let of = |map: &Mutex<BTreeMap<u64, usize>>| -> Vec<_> {
        lock(map).iter().map(|(&start, &size)| start..start + size as u64).collect()
    };
    [of(&DEVICE), of(&HOST)].concat()
}

/// A new allocation, zeroed, as one is that a fresh process gets.
pub(crate) fn allocate(bytes: usize) -> Result<u64, Code> {
    let layout = Layout::from_size_align(bytes.saturating_add(GUARD), ALIGN).map_err(|_| INVALID_VALUE)?;
    if bytes == 0 {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the size is not zero.
    let memory = unsafe { alloc_zeroed(layout) };
    if memory.is_null() {
        return Err(OUT_OF_MEMORY);
    }
    lock(&DEVICE).insert(memory as u64, bytes);
    Ok(memory as u64)
}

/// Ends an allocation.
pub(crate) fn release(address: u64) -> Result<(), Code> {
    let bytes = lock(&DEVICE).remove(&address).ok_or(INVALID_VALUE)?;
    let layout = Layout::from_size_align(bytes.saturating_add(GUARD), ALIGN).map_err(|_| INVALID_VALUE)?;
    // SAFETY: from `allocate`, with this layout.
    unsafe { dealloc(address as *mut u8, layout) };
    Ok(())
}

/// What an allocation holds.
pub(crate) fn bytes(address: u64, len: usize) -> Vec<u8> {
    if !holds(address, len) {
        return Vec::new();
    }
    // SAFETY: inside an allocation, as was just seen.
    unsafe { std::slice::from_raw_parts(address as *const u8, len) }.to_vec()
}

/// Whether a call may touch a range.
pub(crate) fn check(address: u64, len: usize) -> Result<(), Code> {
    if len == 0 || holds(address, len) { Ok(()) } else { Err(INVALID_VALUE) }
}

/// Copies, if only the program is right about what is where.
pub(crate) fn copy(to: u64, from: u64, len: usize) {
    // SAFETY: the device side was checked, the host side is the program's word.
    unsafe { std::ptr::copy(from as *const u8, to as *mut u8, len) };
}

fn fill(to: u64, value: u32, count: usize) {
    // SAFETY: checked against the allocations; device addresses are aligned to what is filled.
    unsafe { std::slice::from_raw_parts_mut(to as *mut u32, count) }.fill(value);
}

/// A copy or fill that is ordered with the null stream and returns when it is done.
pub(crate) fn at_once(effect: impl FnOnce()) -> Result<(), Code> {
    stream::forbid_under_capture(Forbidden::Strict)?;
    let context = need_current()?;
    stream::drain_blocking(context);
    health::check(context)?;
    effect();
    Ok(())
}

/// A copy or fill in a stream.
pub(crate) fn queue(on: Opaque, effect: impl FnOnce() + Send + 'static) -> Result<(), Code> {
    stream::push(on, Op::Run(Duration::ZERO, Box::new(effect)))
}

calls! {
    fn cuMemAlloc_v2(out: *mut u64, bytes: usize) {
        need_current()?;
        stream::forbid_under_capture(Forbidden::Strict)?;
        if bytes == 0 {
            return Err(INVALID_VALUE);
        }
        let used: usize = lock(&DEVICE).values().sum();
        if bytes > TOTAL - used || plan().no_memory.is_some_and(|most| bytes as u64 > most) {
            return Err(OUT_OF_MEMORY);
        }
        let memory = allocate(bytes)?;
        // What was there before is still there, as on a device.
        fill(memory, 0xdead_beef, bytes / 4);
        put(out, memory)
    }
    fn cuMemFree_v2(address: u64) {
        stream::forbid_under_capture(Forbidden::Strict)?;
        if address == 0 {
            return Ok(());
        }
        stream::drain_context(need_current()?);
        release(address)
    }
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        need_current()?;
        let used: usize = lock(&DEVICE).values().sum();
        put(free, TOTAL - used)?;
        put(total, TOTAL)
    }

    fn cuMemHostRegister_v2(memory: *mut c_void, bytes: usize, _flags: c_uint) {
        need_current()?;
        stream::forbid_under_capture(Forbidden::Strict)?;
        if memory.is_null() || bytes == 0 {
            return Err(INVALID_VALUE);
        }
        if let Some(code) = plan().register {
            return Err(code);
        }
        lock(&HOST).insert(memory as u64, bytes);
        Ok(())
    }
    fn cuMemHostUnregister(memory: *mut c_void) {
        if settings().is_some() {
            // A kernel may be reading it.
            stream::drain_context(need_current()?);
        }
        lock(&HOST).remove(&(memory as u64)).map(|_| ()).ok_or(INVALID_VALUE)
    }
    fn cuMemHostGetDevicePointer_v2(out: *mut u64, memory: *mut c_void, flags: c_uint) {
        if flags != 0 || !holds(memory as u64, 1) {
            return Err(INVALID_VALUE);
        }
        put(out, memory as u64)
    }

    fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, bytes: usize) {
        check(to, bytes)?;
        at_once(|| copy(to, from as u64, bytes))
    }
    fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, bytes: usize) {
        check(from, bytes)?;
        at_once(|| copy(to as u64, from, bytes))
    }
    fn cuMemcpyDtoD_v2(to: u64, from: u64, bytes: usize) {
        check(to, bytes)?;
        check(from, bytes)?;
        at_once(|| copy(to, from, bytes))
    }
    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, on: Opaque) {
        check(to, bytes)?;
        check(from, bytes)?;
        if plan().slow_copy {
            let between = Arc::new(Mutex::new(Vec::new()));
            let read = Arc::clone(&between);
            queue(on, move || *lock(&read) = self::bytes(from, bytes))?;
            let write = move || copy(to, lock(&between).as_ptr() as u64, bytes);
            return stream::push(on, Op::Run(Duration::from_millis(1), Box::new(write)));
        }
        queue(on, move || copy(to, from, bytes))
    }
    fn cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, bytes: usize, on: Opaque) {
        check(to, bytes)?;
        let from = from as u64;
        queue(on, move || copy(to, from, bytes))
    }
    fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, bytes: usize, on: Opaque) {
        if let Some(code) = plan().copy {
            return Err(code);
        }
        check(from, bytes)?;
        let to = to as u64;
        queue(on, move || copy(to, from, bytes))
    }
    fn cuMemsetD8_v2(to: u64, value: c_uchar, count: usize) {
        check(to, count)?;
        // SAFETY: checked just now.
        at_once(|| unsafe { std::ptr::write_bytes(to as *mut u8, value, count) })
    }
    fn cuMemsetD32_v2(to: u64, value: c_uint, count: usize) {
        check(to, count * 4)?;
        at_once(|| fill(to, value, count))
    }
    fn cuMemsetD32Async(to: u64, value: c_uint, count: usize, on: Opaque) {
        check(to, count * 4)?;
        queue(on, move || fill(to, value, count))
    }
}
