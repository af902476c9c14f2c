//! Host memory that the driver gives out, and copies that find out by address what is where: here all is one memory.

use crate::call::{INVALID_VALUE, calls, put};
use crate::context::need_current;
use crate::stream::{self, Forbidden};
use crate::{Code, Opaque, memory};
use std::ffi::{c_uchar, c_uint, c_void};

fn allocate(out: *mut *mut c_void, bytes: usize) -> Result<(), Code> {
    need_current()?;
    stream::forbid_under_capture(Forbidden::Strict)?;
    put(out, memory::allocate(bytes)? as *mut c_void)
}

calls! {
    fn cuMemHostAlloc(out: *mut *mut c_void, bytes: usize, _flags: c_uint) { allocate(out, bytes) }
    fn cuMemAllocHost_v2(out: *mut *mut c_void, bytes: usize) { allocate(out, bytes) }
    fn cuMemFreeHost(address: *mut c_void) {
        if address.is_null() {
            return Err(INVALID_VALUE);
        }
        stream::drain_context(need_current()?);
        memory::release(address as u64)
    }

    // Either side may be memory that the driver never heard of.
    fn cuMemcpy(to: u64, from: u64, bytes: usize) { memory::at_once(|| memory::copy(to, from, bytes)) }
    fn cuMemcpyAsync(to: u64, from: u64, bytes: usize, on: Opaque) {
        memory::queue(on, move || memory::copy(to, from, bytes))
    }
    fn cuMemsetD8Async(to: u64, value: c_uchar, count: usize, on: Opaque) {
        memory::check(to, count)?;
        // SAFETY: checked just now.
        memory::queue(on, move || unsafe { std::ptr::write_bytes(to as *mut u8, value, count) })
    }
}
