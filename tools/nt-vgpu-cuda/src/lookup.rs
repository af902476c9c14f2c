//! `cuGetProcAddress`: a base name, a version and a flag give one exported symbol.
//!
//! The rule, which predicts the answers of three real drivers: the versions of a name are sorted, the n-th is `name`,
//! `name_v2`, …; with the flag for per-thread streams it is the symbol with `_ptsz` where there is one. A version
//! newer than any real one finds `cuLaunchKernel_v9`, so that tests meet a variant that nobody knows.

use std::ffi::{CStr, c_char, c_int};

use crate::call::{INVALID_VALUE, NOT_FOUND, calls, put};
use crate::{Code, Opaque, context, host, launch, memory, missing, module, stream};

/// An exported function.
pub(crate) struct Call {
    /// As `dlsym` knows it.
    pub(crate) name: &'static str,
    /// Where it is.
    pub(crate) address: *const (),
}

// SAFETY: a constant.
unsafe impl Sync for Call {}

/// CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
const PER_THREAD: u64 = 2;

/// Names with several versions, and from which on each holds.
const VERSIONS: &[(&str, &[(c_int, &str)])] = &[
    ("cuCtxDestroy", &[(4000, "cuCtxDestroy_v2")]),
    ("cuCtxPopCurrent", &[(4000, "cuCtxPopCurrent_v2")]),
    ("cuCtxPushCurrent", &[(4000, "cuCtxPushCurrent_v2")]),
    ("cuDevicePrimaryCtxRelease", &[(11000, "cuDevicePrimaryCtxRelease_v2")]),
    ("cuDevicePrimaryCtxReset", &[(11000, "cuDevicePrimaryCtxReset_v2")]),
    ("cuEventDestroy", &[(4000, "cuEventDestroy_v2")]),
    ("cuGetProcAddress", &[(11030, "cuGetProcAddress"), (12000, "cuGetProcAddress_v2")]),
    ("cuKernelGetFunction", &[(12000, "cuKernelGetFunction")]),
    ("cuLaunchKernel", &[(4000, "cuLaunchKernel"), (14000, "cuLaunchKernel_v9")]),
    ("cuLaunchKernelEx", &[(11060, "cuLaunchKernelEx")]),
    ("cuLibraryGetKernel", &[(12000, "cuLibraryGetKernel")]),
    ("cuLibraryLoadData", &[(12000, "cuLibraryLoadData")]),
    ("cuMemAlloc", &[(3020, "cuMemAlloc_v2")]),
    ("cuMemFree", &[(3020, "cuMemFree_v2")]),
    ("cuMemcpyDtoH", &[(3020, "cuMemcpyDtoH_v2")]),
    ("cuMemcpyHtoD", &[(3020, "cuMemcpyHtoD_v2")]),
    ("cuStreamBeginCapture", &[(10010, "cuStreamBeginCapture_v2")]),
    ("cuStreamDestroy", &[(4000, "cuStreamDestroy_v2")]),
    ("cuStreamWriteValue64", &[(9000, "cuStreamWriteValue64"), (11070, "cuStreamWriteValue64_v2")]),
];

fn exported(name: &str) -> Option<*const ()> {
    let known =
        [context::CALLS, memory::CALLS, host::CALLS, stream::CALLS, module::CALLS, launch::CALLS, CALLS];
    let files = known.into_iter().chain([missing::CALLS]);
    files.flat_map(|calls| calls.iter()).find(|call| call.name == name).map(|call| call.address)
}

fn find(name: *const c_char, version: c_int, flags: u64) -> Result<Opaque, Code> {
    if name.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the program's own text.
    let name = unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| INVALID_VALUE)?;
    let symbol = match VERSIONS.iter().find(|(base, _)| *base == name) {
        Some((_, versions)) => {
            let fitting = versions.iter().rfind(|(since, _)| *since <= version);
            fitting.map(|(_, symbol)| *symbol).ok_or(NOT_FOUND)?
        }
        None if exported(name).is_none() => &format!("{name}_v2"),
        None => name,
    };
    let per_thread = (flags & PER_THREAD != 0).then(|| exported(&format!("{symbol}_ptsz"))).flatten();
    let address = per_thread.or_else(|| exported(symbol)).ok_or(NOT_FOUND)?;
    Ok(address.cast_mut().cast())
}

calls! {
    early find fn cuGetProcAddress(name: *const c_char, out: *mut Opaque, version: c_int, flags: u64) {
        match find(name, version, flags) {
            Ok(address) => put(out, address),
            Err(code) => {
                put(out, std::ptr::null_mut())?;
                Err(code)
            }
        }
    }
    early find fn cuGetProcAddress_v2(name: *const c_char, out: *mut Opaque, version: c_int, flags: u64,
        status: *mut c_int) {
        const FOUND: c_int = 0;
        const MISSING: c_int = 1;
        let found = find(name, version, flags);
        if !status.is_null() {
            put(status, if found.is_ok() { FOUND } else { MISSING })?;
        }
        // As the real one: a name that is not there is null and no error.
        put(out, found.unwrap_or(std::ptr::null_mut()))
    }
}
