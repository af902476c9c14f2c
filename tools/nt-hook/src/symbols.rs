//! Which variables a program may write behind our back: those whose address it has asked for.
//!
//! No kernel can write constants, and the host needs an address for it, which two functions of the driver give. So a
//! constant that was never asked for holds what its module was loaded with, and a twin's copy of it is good for ever. One
//! that was asked for once may be written at any time after that.
//!
//! A module whose loading was not seen may be one that belongs to a library that was: an address out of such a one lets
//! all constants count as asked for, as does a driver's function that passes us.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::load::{self, hook};
use crate::process::lock;
use crate::quiet::guard;
use crate::{Opaque, notes};

/// The variables of a module, as far as somebody has asked, and whether that was the program.
#[derive(Default)]
pub(crate) struct Symbols(Mutex<BTreeMap<String, &'static AtomicBool>>);

/// Any variable may have been written.
static ALL: AtomicBool = AtomicBool::new(false);
/// Of a variable about which nothing is known.
static ALWAYS: AtomicBool = AtomicBool::new(true);

impl Symbols {
    /// Becomes true when the program asks for the variable's address, before it gets that.
    fn flag(&self, name: &str) -> &'static AtomicBool {
        let mut known = lock(&self.0);
        match known.get(name) {
            Some(flag) => flag,
            None => {
                let flag = &*Box::leak(Box::new(AtomicBool::new(false)));
                known.insert(name.to_owned(), flag);
                flag
            }
        }
    }
}

/// The flag of a variable of a module or library.
pub(crate) fn flag(of: usize, name: &str) -> &'static AtomicBool {
    load::symbols(of as Opaque).map_or(&ALWAYS, |symbols| symbols.flag(name))
}

/// Whether the variable of that flag may have been written since its module was loaded.
#[inline]
pub(crate) fn may_be_written(flag: &AtomicBool) -> bool {
    flag.load(Ordering::Acquire) || ALL.load(Ordering::Acquire) || notes::unseen_calls()
}

/// The program got an address.
fn ask(out: *mut c_void, of: Opaque, name: *const c_char) {
    if out.is_null() || name.is_null() {
        return;
    }
    let told = guard(|| {
        // SAFETY: the driver has read it.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        let symbols = load::symbols(of)?;
        symbols.flag(&name).store(true, Ordering::Release);
        Some(())
    });
    if told.flatten().is_none() {
        ALL.store(true, Ordering::Release);
    }
}

hook!(cuLibraryGetGlobal(out: *mut c_void, bytes: *mut usize, library: Opaque, name: *const c_char)
    then ask(out, library, name));
hook!(cuModuleGetGlobal(out: *mut c_void, bytes: *mut u32, module: Opaque, name: *const c_char)
    then ask(out, module, name));
hook!(cuModuleGetGlobal_v2(out: *mut c_void, bytes: *mut usize, module: Opaque, name: *const c_char)
    then ask(out, module, name));
