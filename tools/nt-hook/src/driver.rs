//! The driver's functions that the hook calls for itself.
//!
//! Looked up once by symbol, in the driver whose functions the program got, with the real `dlsym`: these calls do not
//! pass our own hooks. Plain variants throughout, with an explicit stream handle; functions whose arguments have changed
//! between versions are not among them; a test holds their types to the headers' (`abi.tsv`). One that is missing and
//! needed switches probing off, by name.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use crate::{Code, Opaque, boot, notes, table};

/// CU_STREAM_LEGACY: what a null stream means to plain functions.
pub(crate) const LEGACY: usize = 1;
/// CU_STREAM_PER_THREAD: what it means to the `_ptsz` ones.
pub(crate) const PER_THREAD: usize = 2;

/// CUDA_ERROR_NOT_READY.
pub(crate) const NOT_READY: Code = 600;

macro_rules! functions {
    (needed { $($need:ident($($needs:ty),*);)* } optional { $($field:ident: $symbol:ident($($wants:ty),*);)* }) => {
        /// See the module. Fields are named as the driver's functions.
        #[allow(non_snake_case, reason = "the driver's own names")]
        pub(crate) struct Driver {
            $(pub(crate) $need: unsafe extern "C" fn($($needs),*) -> Code,)*
            $(pub(crate) $field: Option<unsafe extern "C" fn($($wants),*) -> Code>,)*
        }

        /// What each passes.
        #[cfg(test)]
        pub(crate) fn signatures() -> Vec<(&'static str, String)> {
            use crate::abi::letters;
            vec![
                $((stringify!($need), letters!($($needs),*)),)*
                $((stringify!($symbol), letters!($($wants),*)),)*
            ]
        }

        impl Driver {
            fn find(handle: Opaque) -> Result<Driver, &'static str> {
                let look = |name: &'static str| -> Opaque {
                    CStr::from_bytes_with_nul(name.as_bytes())
                        .map_or(std::ptr::null_mut(), |name| boot::dlsym(handle, name))
                };
                Ok(Driver {
                    $($need: {
                        let found = look(concat!(stringify!($need), "\0"));
                        if found.is_null() {
                            return Err(stringify!($need));
                        }
                        // SAFETY: the driver's function of that name has this type (cuda.h, 11.8 to 13.0).
                        unsafe { std::mem::transmute::<Opaque, unsafe extern "C" fn($($needs),*) -> Code>(found) }
                    },)*
                    $($field: {
                        let found = look(concat!(stringify!($symbol), "\0"));
                        // SAFETY: as above; a null pointer is `None`.
                        unsafe { std::mem::transmute::<Opaque, Option<unsafe extern "C" fn($($wants),*) -> Code>>(found) }
                    },)*
                })
            }
        }
    };
}

functions! {
    needed {
        cuCtxGetCurrent(*mut Opaque);
        cuCtxGetDevice(*mut c_int);
        cuCtxPopCurrent_v2(*mut Opaque);
        cuCtxPushCurrent_v2(Opaque);
        cuCtxSetCurrent(Opaque);
        cuDeviceGetAttribute(*mut c_int, c_int, c_int);
        cuDeviceGetCount(*mut c_int);
        cuEventCreate(*mut Opaque, c_uint);
        cuEventDestroy_v2(Opaque);
        cuEventQuery(Opaque);
        cuEventRecord(Opaque, Opaque);
        cuFuncGetAttribute(*mut c_int, c_int, Opaque);
        cuFuncSetAttribute(Opaque, c_int, c_int);
        cuMemAlloc_v2(*mut u64, usize);
        cuMemFree_v2(u64);
        cuMemGetInfo_v2(*mut usize, *mut usize);
        cuMemHostGetDevicePointer_v2(*mut u64, *mut c_void, c_uint);
        cuMemHostRegister_v2(*mut c_void, usize, c_uint);
        cuMemHostUnregister(*mut c_void);
        cuMemcpyDtoDAsync_v2(u64, u64, usize, Opaque);
        cuMemcpyDtoHAsync_v2(*mut c_void, u64, usize, Opaque);
        cuMemcpyHtoDAsync_v2(u64, *const c_void, usize, Opaque);
        cuMemsetD32Async(u64, c_uint, usize, Opaque);
        cuModuleGetFunction(*mut Opaque, Opaque, *const c_char);
        cuModuleGetGlobal_v2(*mut u64, *mut usize, Opaque, *const c_char);
        cuModuleLoadDataEx(*mut Opaque, *const c_void, c_uint, *const c_void, *const c_void);
        cuModuleUnload(Opaque);
        cuStreamCreate(*mut Opaque, c_uint);
        cuStreamDestroy_v2(Opaque);
        cuStreamGetCtx(Opaque, *mut Opaque);
        cuStreamIsCapturing(Opaque, *mut c_int);
        cuStreamQuery(Opaque);
        cuStreamSynchronize(Opaque);
        cuStreamWaitEvent(Opaque, Opaque, c_uint);
        cuThreadExchangeStreamCaptureMode(*mut c_int);
    }
    optional {
        write_value: cuStreamWriteValue64_v2(Opaque, u64, u64, c_uint);
        write_value_first: cuStreamWriteValue64(Opaque, u64, u64, c_uint);
        library_load_data: cuLibraryLoadData(*mut Opaque, *const c_void, *const c_void, *const c_void, c_uint, *const c_void, *const c_void, c_uint);
        library_get_kernel: cuLibraryGetKernel(*mut Opaque, Opaque, *const c_char);
        library_get_global: cuLibraryGetGlobal(*mut u64, *mut usize, Opaque, *const c_char);
        library_unload: cuLibraryUnload(Opaque);
        kernel_get_attribute: cuKernelGetAttribute(*mut c_int, c_int, Opaque, c_int);
        kernel_set_attribute: cuKernelSetAttribute(c_int, c_int, Opaque, c_int);
        func_get_param_info: cuFuncGetParamInfo(Opaque, usize, *mut usize, *mut usize);
        func_get_name: cuFuncGetName(*mut *const c_char, Opaque);
        func_get_module: cuFuncGetModule(*mut Opaque, Opaque);
        active_blocks: cuOccupancyMaxActiveBlocksPerMultiprocessor(*mut c_int, Opaque, c_int, usize);
    }
}

/// The functions, once a driver is bound.
pub(crate) fn get() -> Option<&'static Driver> {
    static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
    let found = DRIVER.get_or_init(|| {
        let handle = table::driver_handle()?;
        Driver::find(handle)
            .map_err(|name| notes::say(format!("the driver lacks {name}: nothing was probed")))
            .ok()
    });
    found.as_ref()
}

/// While it lives, calls of this thread do not break a stream capture that goes on elsewhere: allocations, event
/// queries and stream synchronisation in the default mode do, whichever thread makes them.
pub(crate) struct Relaxed<'d> {
    driver: &'d Driver,
    before: c_int,
}

impl<'d> Relaxed<'d> {
    /// Exchanges the mode.
    pub(crate) fn new(driver: &'d Driver) -> Self {
        const RELAXED: c_int = 2;
        let mut before = RELAXED;
        // SAFETY: exchanges one int, of this thread.
        unsafe { (driver.cuThreadExchangeStreamCaptureMode)(&raw mut before) };
        Relaxed { driver, before }
    }
}

impl Drop for Relaxed<'_> {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { (self.driver.cuThreadExchangeStreamCaptureMode)(&raw mut self.before) };
    }
}

/// An attribute of a device; 0 if the driver does not tell.
pub(crate) fn device_attribute(driver: &Driver, attribute: c_int, device: c_int) -> u32 {
    let mut value = 0;
    // SAFETY: writes one int.
    unsafe { (driver.cuDeviceGetAttribute)(&raw mut value, attribute, device) };
    u32::try_from(value).unwrap_or(0)
}
