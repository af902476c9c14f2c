//! Which names of the driver are ours, and where the driver's own functions are.
//!
//! The first copy of the driver that a name is looked up in is the one that is hooked; a pointer from a second copy is
//! handed out as it is, and counted. `cuGetProcAddress` needs no table of versions and flags: whatever it answers equals
//! the address of one exported symbol (seen for every answer of three drivers), so the pointer itself says which
//! variant the program got.

use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use crate::boot::{self, RTLD_NEXT};
use crate::{Code, Opaque, behind, calls, context, exit, graph, load, notes, symbols};

/// A name of ours.
struct Hook {
    name: &'static CStr,
    ours: *const (),
    real: AtomicPtr<std::ffi::c_void>,
}

// SAFETY: two constants and an atomic.
unsafe impl Sync for Hook {}

macro_rules! hooks {
    ($($module:ident::$name:ident),* $(,)?) => {
        /// The names, as indices.
        #[allow(non_camel_case_types, reason = "the driver's own names")]
        #[derive(Clone, Copy, PartialEq, Eq)]
        #[repr(usize)]
        pub(crate) enum Name { $($name),* }

        const COUNT: usize = [$(stringify!($name)),*].len();
        static NAMES: [&CStr; COUNT] = [$(
            match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            }
        ),*];
        static HOOKS: [Hook; COUNT] = [$(Hook {
            name: NAMES[Name::$name as usize],
            ours: $module::$name as *const (),
            real: AtomicPtr::new(std::ptr::null_mut()),
        }),*];

        /// What each passes.
        #[cfg(test)]
        pub(crate) fn signatures() -> Vec<(&'static str, String)> {
            vec![$((stringify!($name), $module::$name::letters())),*]
        }
    };
}

// Sorted, so that a reader finds them; a test looks.
hooks! {
    context::cuCtxDestroy,
    context::cuCtxDestroy_v2,
    context::cuDevicePrimaryCtxRelease,
    context::cuDevicePrimaryCtxRelease_v2,
    context::cuDevicePrimaryCtxReset,
    context::cuDevicePrimaryCtxReset_v2,
    load::cuFuncSetAttribute,
    load::cuGetProcAddress,
    load::cuGetProcAddress_v2,
    graph::cuGraphAddKernelNode,
    graph::cuGraphAddKernelNode_v2,
    graph::cuGraphAddNode,
    graph::cuGraphAddNode_v2,
    graph::cuGraphAddNode_v3,
    calls::cuGraphLaunch,
    calls::cuGraphLaunch_ptsz,
    exit::cuInit,
    load::cuKernelGetFunction,
    load::cuKernelSetAttribute,
    calls::cuLaunch,
    calls::cuLaunchCooperativeKernel,
    calls::cuLaunchCooperativeKernelMultiDevice,
    calls::cuLaunchCooperativeKernel_ptsz,
    calls::cuLaunchGrid,
    calls::cuLaunchGridAsync,
    calls::cuLaunchKernel,
    calls::cuLaunchKernelEx,
    calls::cuLaunchKernelEx_ptsz,
    calls::cuLaunchKernel_ptsz,
    symbols::cuLibraryGetGlobal,
    load::cuLibraryGetKernel,
    load::cuLibraryGetModule,
    load::cuLibraryLoadData,
    load::cuLibraryLoadFromFile,
    load::cuLibraryUnload,
    load::cuModuleGetFunction,
    symbols::cuModuleGetGlobal,
    symbols::cuModuleGetGlobal_v2,
    load::cuModuleLoad,
    load::cuModuleLoadData,
    load::cuModuleLoadDataEx,
    load::cuModuleLoadFatBinary,
    load::cuModuleUnload,
    behind::cuStreamDestroy,
    behind::cuStreamDestroy_v2,
}

/// First byte of the driver in memory, and the one behind its last.
static DRIVER_BEGIN: AtomicUsize = AtomicUsize::new(0);
static DRIVER_END: AtomicUsize = AtomicUsize::new(0);
/// Whether every name was bound, which pointers from `cuGetProcAddress` are compared with.
static ALL_BOUND: AtomicBool = AtomicBool::new(false);

/// Where names are looked for: by [`spread`], then onwards; [`NONE`] ends a search.
static PLACES: [u8; 128] = {
    let mut places = [NONE; 128];
    let mut index = 0;
    while index < HOOKS.len() {
        let mut place = spread(NAMES[index].to_bytes());
        while places[place] != NONE {
            place = (place + 1) % places.len();
        }
        places[place] = index as u8;
        index += 1;
    }
    places
};
const NONE: u8 = u8::MAX;

/// A place from the length and two letters, which set the driver's names well apart.
const fn spread(name: &[u8]) -> usize {
    let len = name.len();
    if len < 3 {
        return 0;
    }
    (len * 5 + name[len / 2] as usize * 3 + name[len - 2] as usize) % 128
}

/// The index of a name of ours.
pub(crate) fn find(name: &CStr) -> Option<usize> {
    let name = name.to_bytes();
    let mut place = spread(name);
    loop {
        let index = PLACES[place % PLACES.len()];
        if index == NONE {
            return None;
        }
        if NAMES[index as usize % NAMES.len()].to_bytes() == name {
            return Some(index as usize);
        }
        place += 1;
    }
}

/// Our function under that name.
pub(crate) fn ours(index: usize) -> Opaque {
    HOOKS.get(index).map_or(std::ptr::null_mut(), |hook| hook.ours.cast_mut().cast())
}

/// Whether an address lies in the driver's own code.
pub(crate) fn in_driver(address: usize) -> bool {
    (DRIVER_BEGIN.load(Ordering::Relaxed)..DRIVER_END.load(Ordering::Relaxed)).contains(&address)
}

/// Remembers `found` as the driver's function of that name and returns what the program should get.
pub(crate) fn bind(index: usize, found: Opaque) -> Opaque {
    let Some(hook) = HOOKS.get(index) else { return found };
    // Two drivers, and the name was asked of the second first: the first is the one whose range is known.
    let other = DRIVER_BEGIN.load(Ordering::Acquire) != 0 && !in_driver(found as usize);
    let known = if other {
        hook.real.load(Ordering::Acquire)
    } else {
        match hook.real.compare_exchange(std::ptr::null_mut(), found, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                if DRIVER_BEGIN.load(Ordering::Acquire) == 0 {
                    find_range(found as usize);
                }
                found
            }
            Err(known) => known,
        }
    };
    if known == found {
        ours(index)
    } else {
        notes::OTHER_COPY.count();
        found
    }
}

/// The driver's function under a name: what was bound, or, for a program that links the driver and so calls our export
/// without a look-up, what stands behind us in the search order or in a driver that is loaded.
#[inline]
pub(crate) fn real(name: Name) -> *const () {
    // An enum's value is an index of the list it was made from.
    let real = HOOKS[name as usize].real.load(Ordering::Acquire);
    if real.is_null() { resolve(name as usize) } else { real.cast_const().cast() }
}

/// The same, if it is known already.
#[inline(always)]
pub(crate) fn bound(name: Name) -> Option<*const ()> {
    let real = HOOKS[name as usize].real.load(Ordering::Acquire);
    (!real.is_null()).then_some(real.cast_const().cast())
}

#[cold]
fn resolve(index: usize) -> *const () {
    let Some(hook) = HOOKS.get(index) else { return no_driver as *const () };
    let mut found = boot::dlsym(RTLD_NEXT, hook.name);
    if found.is_null() {
        let driver = boot::dlopen_loaded(c"libcuda.so.1");
        if !driver.is_null() {
            found = boot::dlsym(driver, hook.name);
        }
    }
    if found.is_null() {
        return no_driver as *const ();
    }
    bind(index, found);
    found.cast_const().cast()
}

/// A weak reference that our export has filled, in a program without a driver: CUDA_ERROR_NO_DEVICE.
extern "C" fn no_driver() -> Code {
    100
}

/// Puts our function in the place of the driver's, where `cuGetProcAddress` has answered with one that we hook.
pub(crate) fn swap(name: &CStr, answer: &mut Opaque) {
    if answer.is_null() {
        return;
    }
    if !ALL_BOUND.load(Ordering::Acquire) {
        if DRIVER_BEGIN.load(Ordering::Acquire) == 0 {
            find_range(*answer as usize);
        }
        if let Some(driver) = driver_handle() {
            for (index, hook) in HOOKS.iter().enumerate() {
                let found = boot::dlsym(driver, hook.name);
                if !found.is_null() {
                    bind(index, found);
                }
            }
        }
        ALL_BOUND.store(true, Ordering::Release);
    }
    if let Some(hook) = HOOKS.iter().find(|hook| hook.real.load(Ordering::Relaxed) == *answer) {
        *answer = hook.ours.cast_mut().cast();
    } else if find(name).is_some() && !HOOKS.iter().any(|hook| hook.ours.cast_mut().cast() == *answer) {
        notes::NEW_VARIANT.count();
    }
}

/// A handle of the driver for `dlsym`.
pub(crate) fn driver_handle() -> Option<Opaque> {
    let begin = DRIVER_BEGIN.load(Ordering::Acquire);
    let mut name = [0; 4096];
    if begin == 0 || !walk(begin, |info| copy(info.dlpi_name, &mut name)) {
        return None;
    }
    let name = CStr::from_bytes_until_nul(&name).ok().filter(|name| !name.is_empty())?;
    let handle = boot::dlopen_loaded(name);
    (!handle.is_null()).then_some(handle)
}

fn copy(name: *const std::ffi::c_char, to: &mut [u8; 4096]) {
    if !name.is_null() {
        // SAFETY: ld.so's names end in a NUL.
        let name = unsafe { CStr::from_ptr(name) }.to_bytes();
        let len = name.len().min(to.len() - 1);
        to[..len].copy_from_slice(&name[..len]);
    }
}

fn find_range(address: usize) {
    walk(address, |info| {
        if let Some((begin, end)) = range(info) {
            DRIVER_END.store(end, Ordering::Release);
            DRIVER_BEGIN.store(begin, Ordering::Release);
        }
    });
}

/// Addresses that an object's loaded segments span.
fn range(info: &libc::dl_phdr_info) -> Option<(usize, usize)> {
    // SAFETY: ld.so's own array.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let loaded = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let at = |header: &libc::Elf64_Phdr| info.dlpi_addr as usize + header.p_vaddr as usize;
    let begin = loaded.clone().map(at).min()?;
    let end = loaded.map(|header| at(header) + header.p_memsz as usize).max()?;
    Some((begin, end))
}

/// Calls `each` with the object that holds an address; false if none does.
fn walk<F: FnMut(&libc::dl_phdr_info)>(address: usize, mut each: F) -> bool {
    struct Walk<'w>(usize, &'w mut dyn FnMut(&libc::dl_phdr_info));
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, walk: Opaque) -> c_int {
        // SAFETY: ld.so's object, and the `Walk` below.
        let (info, walk) = unsafe { (&*info, &mut *walk.cast::<Walk<'_>>()) };
        match range(info) {
            Some((begin, end)) if (begin..end).contains(&walk.0) => {
                (walk.1)(info);
                1
            }
            _ => 0,
        }
    }
    let mut walk = Walk(address, &mut each);
    // SAFETY: `visit` gets back the pointer that it expects, during this call only.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut walk).cast()) == 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted() {
        assert!(HOOKS.is_sorted_by(|a, b| a.name < b.name));
    }

    #[test]
    fn every_name_is_found() {
        for (index, hook) in HOOKS.iter().enumerate() {
            assert_eq!(find(hook.name), Some(index));
        }
        assert_eq!(find(c"cuMemAlloc_v2"), None);
        assert_eq!(find(c"cu"), None);
    }
}
