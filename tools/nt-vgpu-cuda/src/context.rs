//! Devices and contexts: one device, an "sm_90" with 132 multiprocessors; a second one if the plan has it.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::sync::{Arc, Mutex};

use crate::call::{
    INVALID_CONTEXT, INVALID_DEVICE, INVALID_VALUE, Objects, bring_up, calls, forget_after_fork, lock, put,
    shut_down,
};
use crate::plan::plan;
use crate::settings::{clock_khz, multiprocessors};
use crate::{Opaque, health, module, stream};

/// A context.
pub(crate) struct Context {
    device: c_int,
}

static CONTEXTS: Objects<Context> = Objects::new();
/// Each device's primary context's handle and how often it is retained.
static PRIMARY: Mutex<[(usize, u32); 2]> = Mutex::new([(0, 0); 2]);

thread_local! {
    /// The thread's stack of contexts, the current one last.
    static STACK: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// The current context's handle, 0 for none.
pub(crate) fn current() -> usize {
    STACK.with_borrow(|stack| stack.last().copied().unwrap_or(0))
}

/// The current context, which most calls need.
pub(crate) fn need_current() -> Result<usize, crate::Code> {
    match current() {
        0 => Err(INVALID_CONTEXT),
        handle => {
            CONTEXTS.get(handle as Opaque).map_err(|_| INVALID_CONTEXT)?;
            health::check(handle)?;
            Ok(handle)
        }
    }
}

unsafe extern "C" {
    fn pthread_atfork(
        before: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> c_int;
}

fn set_current(context: Opaque) {
    STACK.with_borrow_mut(|stack| {
        stack.pop();
        if !context.is_null() {
            stack.push(context as usize);
        }
    });
}

fn devices() -> c_int {
    if plan().second.is_some() { 2 } else { 1 }
}

fn check_device(device: c_int) -> Result<(), crate::Code> {
    if (0..devices()).contains(&device) { Ok(()) } else { Err(INVALID_DEVICE) }
}

fn new_context(device: c_int) -> Opaque {
    CONTEXTS.add(Arc::new(Context { device }))
}

/// A device's primary context, which it has checked.
fn primary(all: &mut [(usize, u32); 2], device: c_int) -> &mut (usize, u32) {
    let [first, second] = all;
    if device == 0 { first } else { second }
}

fn end(context: Opaque) -> Result<(), crate::Code> {
    stream::drain_context(context as usize);
    module::end_context(context as usize);
    health::forget(context as usize);
    CONTEXTS.remove(context).map(|_| ()).map_err(|_| INVALID_CONTEXT)
}

fn reset_primary(device: c_int) {
    let mut all = lock(&PRIMARY);
    let primary = primary(&mut all, device);
    if primary.0 != 0 {
        let _ = end(primary.0 as Opaque);
        *primary = (0, primary.1);
    }
}

fn attribute(number: c_int, device: c_int) -> Option<c_int> {
    let arch = plan().second.filter(|_| device == 1).unwrap_or(90);
    Some(match number {
        1..=3 => 1024,   // threads a block; block x, y
        4 => 64,         // block z
        5 => c_int::MAX, // grid x
        6 | 7 => 65_535, // grid y, z
        8 => 49_152,     // shared memory a block
        10 => 32,        // lanes a warp
        13 => c_int::try_from(clock_khz()).unwrap_or(c_int::MAX),
        16 => c_int::try_from(multiprocessors()).unwrap_or(c_int::MAX),
        36 => 2_619_000, // memory clock, kHz
        39 => 2048,      // threads a multiprocessor
        75 => arch / 10, // compute capability
        76 => arch % 10,
        81 => 233_472,          // shared memory a multiprocessor
        97 => 232_448,          // shared memory a block, opted in
        41 | 92 | 93 | 95 => 1, // unified addressing, stream memory operations (64 bits wide), cooperative launch
        _ => return None,
    })
}

calls! {
    early cuInit fn cuInit(flags: c_uint) {
        // The real one looks itself up, and must find itself (case R05).
        const SELF_TEST: c_uint = 0x4e54;
        if flags == SELF_TEST {
            return Err(INVALID_VALUE);
        }
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        // SAFETY: valid names.
        let found = unsafe {
            let driver = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
            if driver.is_null() { std::ptr::null_mut() } else { libc::dlsym(driver, c"cuInit".as_ptr()) }
        };
        if !found.is_null() && found != cuInit as *const () as Opaque {
            crate::log::line(|| format!("hooked-itself {}", std::process::id()));
            return Err(crate::call::NOT_INITIALIZED);
        }
        static ONCE: std::sync::Once = std::sync::Once::new();
        // SAFETY: this library stays loaded once it is initialised.
        ONCE.call_once(|| unsafe {
            libc::atexit(shut_down);
            pthread_atfork(None, None, Some(forget_after_fork));
        });
        bring_up();
        Ok(())
    }

    early version fn cuDriverGetVersion(version: *mut c_int) { put(version, 13_000) }

    fn cuDeviceGetCount(count: *mut c_int) { put(count, devices()) }
    fn cuDeviceGet(device: *mut c_int, ordinal: c_int) {
        check_device(ordinal)?;
        put(device, ordinal)
    }
    fn cuDeviceGetName(name: *mut c_char, len: c_int, device: c_int) {
        check_device(device)?;
        let text = c"nt software GPU".to_bytes_with_nul();
        if name.is_null() || len <= 0 {
            return Err(INVALID_VALUE);
        }
        let count = text.len().min(len as usize);
        // SAFETY: `len` bytes are the caller's.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), name.cast(), count);
            *name.add(count - 1) = 0;
        }
        Ok(())
    }
    fn cuDeviceGetAttribute(value: *mut c_int, number: c_int, device: c_int) {
        check_device(device)?;
        put(value, attribute(number, device).ok_or(INVALID_VALUE)?)
    }
    fn cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int) {
        check_device(device)?;
        put(bytes, crate::memory::TOTAL)
    }

    fn cuDevicePrimaryCtxRetain(out: *mut Opaque, device: c_int) {
        check_device(device)?;
        let mut all = lock(&PRIMARY);
        let primary = primary(&mut all, device);
        if primary.0 == 0 {
            primary.0 = new_context(device) as usize;
        }
        primary.1 += 1;
        put(out, primary.0 as Opaque)
    }
    fn cuDevicePrimaryCtxRelease_v2(device: c_int) {
        check_device(device)?;
        let last = {
            let mut all = lock(&PRIMARY);
            let primary = primary(&mut all, device);
            primary.1 = primary.1.checked_sub(1).ok_or(INVALID_CONTEXT)?;
            primary.1 == 0
        };
        if last {
            reset_primary(device);
        }
        Ok(())
    }
    fn cuDevicePrimaryCtxReset_v2(device: c_int) {
        check_device(device)?;
        reset_primary(device);
        Ok(())
    }
    fn cuDevicePrimaryCtxGetState(device: c_int, flags: *mut c_uint, active: *mut c_int) {
        check_device(device)?;
        put(flags, 0)?;
        put(active, c_int::from(primary(&mut lock(&PRIMARY), device).0 != 0))
    }

    fn cuCtxCreate_v2(out: *mut Opaque, _flags: c_uint, device: c_int) {
        check_device(device)?;
        let context = new_context(device);
        STACK.with_borrow_mut(|stack| stack.push(context as usize));
        put(out, context)
    }
    fn cuCtxDestroy_v2(context: Opaque) {
        end(context)?;
        STACK.with_borrow_mut(|stack| stack.retain(|&other| other != context as usize));
        Ok(())
    }
    fn cuCtxGetCurrent(out: *mut Opaque) { put(out, current() as Opaque) }
    fn cuCtxSetCurrent(context: Opaque) {
        if !context.is_null() {
            CONTEXTS.get(context).map_err(|_| INVALID_CONTEXT)?;
        }
        set_current(context);
        Ok(())
    }
    fn cuCtxPushCurrent_v2(context: Opaque) {
        CONTEXTS.get(context).map_err(|_| INVALID_CONTEXT)?;
        STACK.with_borrow_mut(|stack| stack.push(context as usize));
        Ok(())
    }
    fn cuCtxPopCurrent_v2(out: *mut Opaque) {
        let popped = STACK.with_borrow_mut(Vec::pop).ok_or(INVALID_CONTEXT)?;
        if out.is_null() { Ok(()) } else { put(out, popped as Opaque) }
    }
    fn cuCtxGetDevice(device: *mut c_int) {
        let context = need_current()?;
        put(device, CONTEXTS.get(context as Opaque)?.device)
    }
    fn cuCtxSynchronize() {
        let context = need_current()?;
        stream::forbid_under_capture(stream::Forbidden::Always)?;
        stream::drain_context(context);
        health::check(context)
    }

    early name fn cuGetErrorName(code: c_int, out: *mut *const c_char) {
        put(out, error_name(code).as_ptr())
    }
    early text fn cuGetErrorString(code: c_int, out: *mut *const c_char) {
        put(out, error_name(code).as_ptr())
    }
}

fn error_name(code: c_int) -> &'static CStr {
    match code {
        0 => c"CUDA_SUCCESS",
        1 => c"CUDA_ERROR_INVALID_VALUE",
        2 => c"CUDA_ERROR_OUT_OF_MEMORY",
        3 => c"CUDA_ERROR_NOT_INITIALIZED",
        4 => c"CUDA_ERROR_DEINITIALIZED",
        100 => c"CUDA_ERROR_NO_DEVICE",
        101 => c"CUDA_ERROR_INVALID_DEVICE",
        200 => c"CUDA_ERROR_INVALID_IMAGE",
        201 => c"CUDA_ERROR_INVALID_CONTEXT",
        209 => c"CUDA_ERROR_NO_BINARY_FOR_GPU",
        218 => c"CUDA_ERROR_INVALID_PTX",
        400 => c"CUDA_ERROR_INVALID_HANDLE",
        500 => c"CUDA_ERROR_NOT_FOUND",
        600 => c"CUDA_ERROR_NOT_READY",
        700 => c"CUDA_ERROR_ILLEGAL_ADDRESS",
        701 => c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
        702 => c"CUDA_ERROR_LAUNCH_TIMEOUT",
        715 => c"CUDA_ERROR_ILLEGAL_INSTRUCTION",
        716 => c"CUDA_ERROR_MISALIGNED_ADDRESS",
        719 => c"CUDA_ERROR_LAUNCH_FAILED",
        801 => c"CUDA_ERROR_NOT_SUPPORTED",
        900 => c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
        901 => c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
        _ => c"CUDA_ERROR_UNKNOWN",
    }
}
