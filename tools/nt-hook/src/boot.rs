//! Finding the real `dlsym` when ours is the one that everybody calls.
//!
//! No dl call can be made before its address is known, so the first step is by hand: ld.so publishes the list of loaded
//! objects in `_r_debug`; libc is among them, and its GNU hash table leads to `dlsym` (its default version). That
//! function is then asked once, with RTLD_NEXT, for what stands *after us* under each of the three names, so that other
//! people's hooks behind us stay in the chain. (Asking `dlvsym` for a version would skip them: they are unversioned.)
//!
//! Runs at the first dl call of the process, which may come before any constructor: no allocation, no lock, no
//! thread-local storage here. Repeating it is harmless, so threads may race.
//!
//! ELF: <https://refspecs.linuxfoundation.org/elf/gabi4+/ch5.dynamic.html>; the hash table is GNU's, as `readelf -d` shows.

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Opaque;

/// The handle that means "what comes after the caller's own object".
pub(crate) const RTLD_NEXT: Opaque = -1isize as Opaque;

/// Addresses of the next `dlsym`, `dlvsym` and `dlopen`; 0 before [`boot`].
pub(crate) static NEXT_DLSYM: AtomicUsize = AtomicUsize::new(0);
pub(crate) static NEXT_DLVSYM: AtomicUsize = AtomicUsize::new(0);
pub(crate) static NEXT_DLOPEN: AtomicUsize = AtomicUsize::new(0);

type Dlsym = unsafe extern "C" fn(Opaque, *const c_char) -> Opaque;
type Dlvsym = unsafe extern "C" fn(Opaque, *const c_char, *const c_char) -> Opaque;
type Dlopen = unsafe extern "C" fn(*const c_char, c_int) -> Opaque;

#[repr(C)]
struct RDebug {
    version: c_int,
    map: *const LinkMap,
}

/// An object that ld.so has loaded.
#[repr(C)]
pub(crate) struct LinkMap {
    /// Added to every address in its tables.
    addr: usize,
    /// The path it was opened by; empty for the program itself.
    pub(crate) name: *const c_char,
    /// Its dynamic section.
    pub(crate) dynamic: *const Dyn,
    next: *const LinkMap,
}

/// An entry of a dynamic section.
#[repr(C)]
pub(crate) struct Dyn {
    tag: i64,
    value: usize,
}

#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: usize,
    size: usize,
}

unsafe extern "C" {
    static _r_debug: RDebug;
}

/// The loaded objects, in ld.so's order. One that is loaded while we walk may be missed.
pub(crate) fn objects() -> impl Iterator<Item = &'static LinkMap> {
    // SAFETY: ld.so keeps the list whole at every moment and never frees an entry of an object that stays loaded;
    // libc and we ourselves, which is what callers look for, do.
    let mut at = unsafe { _r_debug.map.as_ref() };
    std::iter::from_fn(move || {
        let map = at?;
        // SAFETY: as above.
        at = unsafe { map.next.as_ref() };
        Some(map)
    })
}

/// Fills the three addresses. Where no libc is found (which no dynamic program has been seen to lack) they lead to a
/// function that answers NULL.
pub(crate) extern "C" fn boot() {
    let libc = objects().filter_map(|map| {
        let name = file_name(map.name);
        if name.starts_with(b"libc.so.6") || name.starts_with(b"libdl.so.2") {
            symbol(map, b"dlsym")
        } else {
            None
        }
    });
    let Some(dlsym) = libc.last() else {
        for slot in [&NEXT_DLVSYM, &NEXT_DLOPEN, &NEXT_DLSYM] {
            slot.store(nothing as *const () as usize, Ordering::Release);
        }
        return;
    };
    // SAFETY: it is libc's own `dlsym`.
    let dlsym: Dlsym = unsafe { std::mem::transmute(dlsym) };
    for (slot, name) in [(&NEXT_DLVSYM, c"dlvsym"), (&NEXT_DLOPEN, c"dlopen"), (&NEXT_DLSYM, c"dlsym")] {
        // SAFETY: a valid name; RTLD_NEXT is relative to the caller, which is this library.
        let next = unsafe { dlsym(RTLD_NEXT, name.as_ptr()) };
        let next = if next.is_null() { nothing as *const () as usize } else { next as usize };
        slot.store(next, Ordering::Release);
    }
}

extern "C" fn nothing() -> Opaque {
    std::ptr::null_mut()
}

/// The next `dlsym`, with us as its caller.
pub(crate) fn dlsym(handle: Opaque, name: &CStr) -> Opaque {
    // SAFETY: `ready` gives the address of a `dlsym`, and the name ends in a NUL.
    unsafe { std::mem::transmute::<usize, Dlsym>(ready(&NEXT_DLSYM))(handle, name.as_ptr()) }
}

/// The next `dlvsym`, with us as its caller.
pub(crate) fn dlvsym(handle: Opaque, name: &CStr, version: *const c_char) -> Opaque {
    // SAFETY: as above; the version is the program's own argument.
    unsafe { std::mem::transmute::<usize, Dlvsym>(ready(&NEXT_DLVSYM))(handle, name.as_ptr(), version) }
}

/// The next `dlopen`, for an object that is loaded already: no path of the caller matters.
pub(crate) fn dlopen_loaded(name: &CStr) -> Opaque {
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
    // SAFETY: as above.
    unsafe { std::mem::transmute::<usize, Dlopen>(ready(&NEXT_DLOPEN))(name.as_ptr(), flags) }
}

fn ready(slot: &AtomicUsize) -> usize {
    if slot.load(Ordering::Acquire) == 0 {
        boot();
    }
    slot.load(Ordering::Acquire)
}

/// What follows the last slash.
pub(crate) fn file_name(path: *const c_char) -> &'static [u8] {
    if path.is_null() {
        return b"";
    }
    // SAFETY: ld.so's names and `dlopen`'s arguments end in a NUL; callers use the slice before they return.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    let start = path.iter().rposition(|&c| c == b'/').map_or(0, |slash| slash + 1);
    path.get(start..).unwrap_or_default()
}

/// The address of a symbol of a loaded object: its default version, or else whatever version there is.
fn symbol(map: &LinkMap, want: &[u8]) -> Option<usize> {
    const STRTAB: i64 = 5;
    const SYMTAB: i64 = 6;
    const GNU_HASH: i64 = 0x6fff_fef5;
    const VERSYM: i64 = 0x6fff_fff0;
    const HIDDEN: u16 = 0x8000;

    let (mut symbols, mut strings, mut hash, mut versions) = (0, 0, 0, 0);
    let mut at = map.dynamic;
    // SAFETY: a dynamic section ends with a zero tag.
    while let Some(entry) = unsafe { at.as_ref() }.filter(|entry| entry.tag != 0) {
        match entry.tag {
            STRTAB => strings = entry.value,
            SYMTAB => symbols = entry.value,
            GNU_HASH => hash = entry.value,
            VERSYM => versions = entry.value,
            _ => {}
        }
        at = at.wrapping_add(1);
    }
    if symbols == 0 || strings == 0 || hash == 0 {
        return None;
    }
    // ld.so relocates these in place on most machines; where it does not they are still offsets.
    let absolute = |value: usize| if value < map.addr { value + map.addr } else { value };
    let symbols = absolute(symbols) as *const Symbol;
    let strings = absolute(strings) as *const u8;
    let versions = if versions == 0 { std::ptr::null() } else { absolute(versions) as *const u16 };
    let hash = absolute(hash) as *const u32;

    // The table: bucket count, first hashed symbol, bloom words (of 64 bits), a shift; bloom; buckets; chains.
    // SAFETY: the tables of an object that ld.so has accepted and itself reads in this way; chains end with a set low
    // bit, names with a NUL.
    unsafe {
        let (buckets, first, bloom) = (*hash as usize, *hash.add(1), *hash.add(2) as usize);
        let bucket = hash.add(4 + bloom * 2);
        let chain = bucket.add(buckets);
        let hashed = want.iter().fold(5381u32, |h, &c| h.wrapping_mul(33).wrapping_add(u32::from(c)));
        let mut index = *bucket.add(hashed as usize % buckets.max(1));
        if index == 0 {
            return None;
        }
        let mut other_version = None;
        loop {
            let link = *chain.add((index - first) as usize);
            let symbol = &*symbols.add(index as usize);
            if link | 1 == hashed | 1 && symbol.section != 0 {
                let name = CStr::from_ptr(strings.add(symbol.name as usize).cast());
                if name.to_bytes() == want {
                    let address = map.addr + symbol.value;
                    if versions.is_null() || *versions.add(index as usize) & HIDDEN == 0 {
                        return Some(address);
                    }
                    other_version = Some(address);
                }
            }
            if link & 1 == 1 {
                return other_version;
            }
            index += 1;
        }
    }
}
