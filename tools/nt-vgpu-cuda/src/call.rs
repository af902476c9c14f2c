//! How a driver call is declared, and the state that all calls look at first.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Code;

/// CUDA_ERROR_INVALID_VALUE
pub(crate) const INVALID_VALUE: Code = 1;
/// CUDA_ERROR_OUT_OF_MEMORY
pub(crate) const OUT_OF_MEMORY: Code = 2;
/// CUDA_ERROR_NOT_INITIALIZED
pub(crate) const NOT_INITIALIZED: Code = 3;
/// CUDA_ERROR_DEINITIALIZED
pub(crate) const DEINITIALIZED: Code = 4;
/// CUDA_ERROR_INVALID_DEVICE
pub(crate) const INVALID_DEVICE: Code = 101;
/// CUDA_ERROR_INVALID_IMAGE
pub(crate) const INVALID_IMAGE: Code = 200;
/// CUDA_ERROR_INVALID_CONTEXT
pub(crate) const INVALID_CONTEXT: Code = 201;
/// CUDA_ERROR_INVALID_HANDLE
pub(crate) const INVALID_HANDLE: Code = 400;
/// CUDA_ERROR_NOT_FOUND
pub(crate) const NOT_FOUND: Code = 500;
/// CUDA_ERROR_NOT_READY
pub(crate) const NOT_READY: Code = 600;
/// CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
pub(crate) const OUT_OF_RESOURCES: Code = 701;
/// CUDA_ERROR_NOT_SUPPORTED
pub(crate) const NOT_SUPPORTED: Code = 801;
/// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
pub(crate) const CAPTURE_UNSUPPORTED: Code = 900;
/// CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
pub(crate) const CAPTURE_INVALIDATED: Code = 901;

/// CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
pub(crate) const CAPTURE_IMPLICIT: Code = 906;

/// What a call's body returns.
pub(crate) type Answer = Result<(), Code>;

static STATE: AtomicU8 = AtomicU8::new(ASLEEP);
const ASLEEP: u8 = 0;
const UP: u8 = 1;
const DOWN: u8 = 2;

/// `cuInit` was called.
pub(crate) fn bring_up() {
    let _ = STATE.compare_exchange(ASLEEP, UP, Ordering::AcqRel, Ordering::Relaxed);
}

/// The exit handler: from now on every call answers [`DEINITIALIZED`].
pub(crate) extern "C" fn shut_down() {
    STATE.store(DOWN, Ordering::Release);
}

/// A child of `fork` has none of the driver's threads, and is told so.
pub(crate) extern "C" fn forget_after_fork() {
    STATE.store(ASLEEP, Ordering::Release);
}

/// Whether calls may be made.
pub(crate) fn check_up() -> Answer {
    match STATE.load(Ordering::Acquire) {
        UP => Ok(()),
        DOWN => Err(DEINITIALIZED),
        _ => Err(NOT_INITIALIZED),
    }
}

/// Declares driver calls: exported C functions that answer with the code of their body, after [`check_up`] unless they
/// are marked `early`.
macro_rules! calls {
    ($($(#[$attribute:meta])* $(early $early:ident)? fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $(
            $(#[$attribute])*
            #[unsafe(no_mangle)]
            extern "C" fn $name($($arg: $ty),*) -> $crate::Code {
                $crate::log::call(stringify!($name));
                let body = || -> $crate::call::Answer {
                    calls!(@check $($early)?);
                    $body
                };
                body().err().unwrap_or(0)
            }
        )*
        /// Every call of this file, by name.
        pub(crate) static CALLS: &[$crate::lookup::Call] =
            &[$($crate::lookup::Call { name: stringify!($name), address: $name as *const () }),*];
    };
    (@check) => { $crate::call::check_up()? };
    (@check $early:ident) => {};
}
pub(crate) use calls;

/// Writes an output of a call; a null pointer is an invalid value.
pub(crate) fn put<T>(out: *mut T, value: T) -> Answer {
    if out.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the caller's own variable, of the type that the call documents.
    unsafe { out.write_unaligned(value) };
    Ok(())
}

/// Locks; nothing here panics while it holds one.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Objects by handle. A handle is the object's address, so that, as with the real driver, it is given anew after a while.
pub(crate) struct Objects<T>(Mutex<BTreeMap<usize, Arc<T>>>);

impl<T> Objects<T> {
    /// None.
    pub(crate) const fn new() -> Self {
        Objects(Mutex::new(BTreeMap::new()))
    }

    /// Adds one and returns its handle.
    pub(crate) fn add(&self, object: Arc<T>) -> crate::Opaque {
        let handle = Arc::as_ptr(&object) as usize;
        lock(&self.0).insert(handle, object);
        handle as crate::Opaque
    }

    /// The object of a handle.
    pub(crate) fn get(&self, handle: crate::Opaque) -> Result<Arc<T>, Code> {
        lock(&self.0).get(&(handle as usize)).cloned().ok_or(INVALID_HANDLE)
    }

    /// Takes it out.
    pub(crate) fn remove(&self, handle: crate::Opaque) -> Result<Arc<T>, Code> {
        lock(&self.0).remove(&(handle as usize)).ok_or(INVALID_HANDLE)
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        lock(&self.0).values().cloned().collect()
    }
}
