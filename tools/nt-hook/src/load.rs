//! Modules and libraries: whose kernels are these, and which of them are selected?
//!
//! A load runs in the driver first, as asked. If it succeeded the image's bytes go to the parent before the call
//! returns, since the program may free them then. Functions get their kernels when they are asked for by name. An unload
//! takes its handles out of the tables *before* the real call, because another thread may be given the same addresses
//! the moment that returns; if it fails they go back in.
//!
//! The driver does nothing here that the program did not ask for.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::Mutex;

use crate::handles::Table;
use crate::kernel::{self, HandleKind, Kernel};
use crate::process::lock;
use crate::quiet::{guard, planned_panic};
use crate::symbols::Symbols;
use crate::{Code, Opaque, driver, home, image, jit, notes, process, table};

/// A module or library that is loaded.
struct Module {
    /// The parent's number of its image; [`UNSEEN`] where the parent was not asked.
    image: u32,
    selected: Vec<String>,
    /// Why nothing in it can be selected.
    reason: String,
    /// Function handles given out, and modules of this library.
    handles: Mutex<Handles>,
    symbols: Symbols,
}

#[derive(Default)]
struct Handles {
    functions: BTreeSet<usize>,
    modules: BTreeSet<usize>,
}

const UNSEEN: u32 = u32::MAX;

/// Room for 12,288 modules at a time.
static MODULES: Table<16_384> = Table::new();

fn module(handle: Opaque) -> Option<&'static Module> {
    // SAFETY: 0, or from `keep`, which leaks; `unload` never frees.
    unsafe { (MODULES.get(handle as usize) as *const Module).as_ref() }
}

/// The variables of a module or library whose loading was seen.
pub(crate) fn symbols(of: Opaque) -> Option<&'static Symbols> {
    module(of).map(|module| &module.symbols)
}

/// After a good load: shows the image to the parent and remembers the module.
fn keep(out: *mut Opaque, bytes: impl FnOnce() -> Option<Vec<u8>>) {
    keep_with(out, bytes, jit::Options::default);
}

/// [`keep`] of a load with options.
fn keep_with(
    out: *mut Opaque,
    bytes: impl FnOnce() -> Option<Vec<u8>>,
    options: impl FnOnce() -> jit::Options,
) {
    guard(|| {
        planned_panic("load");
        // SAFETY: the driver has just written it.
        let Some(&handle) = (unsafe { out.as_ref() }) else { return };
        let Some(process) = process::start() else { return };
        let module = match bytes() {
            None => {
                notes::ODD_IMAGE.count();
                unseen("its module is in a form that is not known".into())
            }
            Some(_) if !process::active() => unseen("the hook is passive".into()),
            Some(bytes) => {
                let options = options();
                let mut parent = lock(&process.parent);
                match parent.as_mut().map(|parent| parent.show(&bytes, &options.words)) {
                    Some(Ok(kernels)) => {
                        jit::remember(kernels.image, options.list);
                        let is_fine = kernels.reason.is_empty();
                        Module {
                            image: kernels.image,
                            selected: kernels.selected,
                            reason: if is_fine { "not selected".into() } else { kernels.reason },
                            handles: Mutex::default(),
                            symbols: Symbols::default(),
                        }
                    }
                    Some(Err(error)) => {
                        // Answers can no longer be told from each other, or none will come.
                        *parent = None;
                        notes::say(format!("the talk with nt-run broke off: {error}"));
                        unseen("nt-run is gone".into())
                    }
                    None => unseen("nt-run is gone".into()),
                }
            }
        };
        let module = Box::leak(Box::new(module));
        if !MODULES.put(handle as usize, std::ptr::from_ref(module) as usize) {
            notes::TABLE_FULL.count();
        }
    });
}

fn unseen(reason: String) -> Module {
    Module {
        image: UNSEEN,
        selected: Vec::new(),
        reason,
        handles: Mutex::default(),
        symbols: Symbols::default(),
    }
}

/// An image in memory, as the program passed it.
fn in_memory(image: *const c_void) -> impl FnOnce() -> Option<Vec<u8>> {
    // SAFETY: the driver has accepted it in the call that we are in.
    move || unsafe { image::copy(image) }
}

/// An image in a file.
fn in_file(path: *const c_char) -> impl FnOnce() -> Option<Vec<u8>> {
    move || {
        if path.is_null() {
            return None;
        }
        // SAFETY: the driver has opened it in the call that we are in.
        let path = unsafe { CStr::from_ptr(path) };
        std::fs::read(std::ffi::OsStr::from_bytes(path.to_bytes())).ok()
    }
}

/// The module or library that a function's variables are in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    /// A CUmodule.
    Module(usize),
    /// A CUlibrary.
    Library(usize),
}

/// Function handles and their owners, [`LIBRARY`] set in a library's.
static OWNERS: Table<65_536> = Table::new();
const LIBRARY: usize = 1;

impl Owner {
    fn of(from: Opaque, kind: HandleKind) -> Owner {
        match kind {
            HandleKind::Function => Owner::Module(from as usize),
            HandleKind::Kernel => Owner::Library(from as usize),
        }
    }

    fn put(self, function: Opaque) {
        OWNERS.put(
            function as usize,
            match self {
                Owner::Module(module) => module,
                Owner::Library(library) => library | LIBRARY,
            },
        );
    }
}

/// Whose variables a function uses; `None` if nobody tells.
pub(crate) fn owner(function: Opaque, kind: HandleKind) -> Option<Owner> {
    match OWNERS.get(function as usize) {
        0 => {}
        value if value & LIBRARY == 0 => return Some(Owner::Module(value)),
        value => return Some(Owner::Library(value & !LIBRARY)),
    }
    let get = driver::get()?.func_get_module.filter(|_| kind == HandleKind::Function)?;
    let mut module = std::ptr::null_mut();
    // SAFETY: writes one handle.
    let found = unsafe { get(&raw mut module, function) } == 0 && !module.is_null();
    found.then(|| {
        let owner = Owner::of(module, kind);
        owner.put(function);
        owner
    })
}

/// After a good look-up: ties the handle to its kernel.
fn give_out(out: *mut Opaque, from: Opaque, name: *const c_char, kind: HandleKind) {
    guard(|| {
        planned_panic("function");
        // SAFETY: the driver has just written it.
        let Some(&handle) = (unsafe { out.as_ref() }) else { return };
        if name.is_null() || process::get().is_none() {
            return;
        }
        Owner::of(from, kind).put(handle);
        // SAFETY: the driver has accepted it.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        match module(from) {
            Some(module) => module.tie(handle, &name, kind),
            None => kernel::tie(
                handle,
                kind,
                kernel::kernel(UNSEEN, &name, false, "its module was not seen loaded"),
            ),
        }
    });
}

impl Module {
    fn tie(&self, handle: Opaque, name: &str, kind: HandleKind) {
        let selected = self.selected.iter().any(|chosen| chosen == name);
        kernel::tie(handle, kind, kernel::kernel(self.image, name, selected, &self.reason));
        lock(&self.handles).functions.insert(handle as usize);
    }
}

/// Runs a real unload between taking the module's handles out and, if it fails, putting them back.
fn unload(handle: Opaque, call: impl FnOnce() -> Code) -> Code {
    let mut taken: Vec<(usize, usize, usize)> = Vec::new();
    let mut modules = Vec::new();
    guard(|| {
        if let Some(module) = module(handle) {
            let handles = lock(&module.handles);
            let take = |&function: &usize| (function, kernel::untie(function), OWNERS.take(function));
            taken = handles.functions.iter().map(take).collect();
            modules =
                handles.modules.iter().chain([&(handle as usize)]).map(|&m| (m, MODULES.take(m))).collect();
            drop(handles);
            let owners = modules.iter().flat_map(|&(m, _)| [Owner::Module(m), Owner::Library(m)]);
            let kernels = taken.iter().filter_map(|&(_, kernel, _)| kernel::of_value(kernel));
            home::retire_owners(&owners.collect::<Vec<_>>(), &kernels.collect::<Vec<_>>());
        }
    });
    let code = call();
    if code != 0 {
        guard(|| {
            for &(module, value) in modules.iter().filter(|(_, value)| *value != 0) {
                MODULES.put(module, value);
            }
            for &(function, value, owner) in &taken {
                kernel::tie_again(function, value);
                if owner != 0 {
                    OWNERS.put(function, owner);
                }
            }
        });
    }
    code
}

/// A handle that nobody was seen to give out: asks the driver whose it is, and remembers the answer.
#[cold]
pub(crate) fn resolve(handle: Opaque) -> &'static Kernel {
    let found = guard(|| {
        process::get()?;
        let driver = driver::get()?;
        let (mut from, mut name) = (std::ptr::null_mut(), std::ptr::null());
        // SAFETY: each writes one pointer; a handle that is none gives an error.
        unsafe {
            if driver.func_get_module?(&raw mut from, handle) != 0
                || driver.func_get_name?(&raw mut name, handle) != 0
            {
                return None;
            }
        }
        // SAFETY: the driver's own text, which lives as long as the function.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        module(from)?.tie(handle, &name, HandleKind::Function);
        kernel::of(handle).map(|(kernel, _)| kernel)
    });
    found.flatten().unwrap_or_else(|| {
        // So that the next launch of it costs no question.
        kernel::tie(handle, HandleKind::Function, &kernel::UNKNOWN);
        &kernel::UNKNOWN
    })
}

/// Declares a hook: the real function's type, then what follows a call of it.
macro_rules! hook {
    ($name:ident($($arg:ident: $ty:ty),*), $real:ident => $body:expr) => {
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[allow(non_snake_case, reason = "the driver's own name")]
        pub(crate) extern "C" fn $name($($arg: $ty),*) -> $crate::Code {
            let $real = || {
                // SAFETY: the driver's function of that name has this type (cuda.h, 11.8 to 13.0); the arguments are
                // the program's own.
                unsafe {
                    let real: unsafe extern "C" fn($($ty),*) -> $crate::Code = std::mem::transmute($crate::table::real($crate::table::Name::$name));
                    real($($arg),*)
                }
            };
            $body
        }

        /// What it passes, for a test.
        #[cfg(test)]
        #[allow(non_snake_case, reason = "the driver's own name")]
        pub(crate) mod $name {
            #[allow(clippy::wildcard_imports, reason = "the types of the arguments")]
            use super::*;
            pub(crate) fn letters() -> String {
                $crate::abi::letters!($($ty),*)
            }
        }
    };
    ($name:ident($($arg:ident: $ty:ty),*) then $after:expr) => {
        hook!($name($($arg: $ty),*), real => {
            let code = real();
            if code == 0 {
                $after;
            }
            code
        });
    };
}
pub(crate) use hook;

type Options = *mut c_void;

/// The options of a load, as the program passed them.
fn jit(options: Options, values: Options, n: c_uint) -> impl FnOnce() -> jit::Options {
    // SAFETY: the driver has read as many in the call that we are in.
    move || unsafe { jit::read(options, values, n) }
}

hook!(cuModuleLoad(out: *mut Opaque, path: *const c_char) then keep(out, in_file(path)));
hook!(cuModuleLoadData(out: *mut Opaque, image: *const c_void) then keep(out, in_memory(image)));
hook!(cuModuleLoadDataEx(out: *mut Opaque, image: *const c_void, n: c_uint, options: Options, values: Options)
    then keep_with(out, in_memory(image), jit(options, values, n)));
hook!(cuModuleLoadFatBinary(out: *mut Opaque, image: *const c_void) then keep(out, in_memory(image)));
hook!(cuModuleGetFunction(out: *mut Opaque, module: Opaque, name: *const c_char)
    then give_out(out, module, name, HandleKind::Function));
hook!(cuModuleUnload(module: Opaque), real => unload(module, real));

hook!(cuLibraryLoadData(out: *mut Opaque, image: *const c_void, jit: Options, jit_values: Options, jit_n: c_uint,
    options: Options, values: Options, n: c_uint)
    then keep_with(out, in_memory(image), self::jit(jit, jit_values, jit_n)));
hook!(cuLibraryLoadFromFile(out: *mut Opaque, path: *const c_char, jit: Options, jit_values: Options, jit_n: c_uint,
    options: Options, values: Options, n: c_uint)
    then keep_with(out, in_file(path), self::jit(jit, jit_values, jit_n)));
hook!(cuLibraryGetKernel(out: *mut Opaque, library: Opaque, name: *const c_char)
    then give_out(out, library, name, HandleKind::Kernel));
hook!(cuLibraryUnload(library: Opaque), real => unload(library, real));

// A library's module in the current context: its functions are the library's kernels.
hook!(cuLibraryGetModule(out: *mut Opaque, library: Opaque) then guard(|| {
    // SAFETY: the driver has just written it.
    let Some(&inner) = (unsafe { out.as_ref() }) else { return };
    if let Some(outer) = module(library) {
        MODULES.put(inner as usize, std::ptr::from_ref(outer) as usize);
        lock(&outer.handles).modules.insert(inner as usize);
    }
}));

// A kernel's function in the current context.
hook!(cuKernelGetFunction(out: *mut Opaque, of: Opaque) then guard(|| {
    // SAFETY: the driver has just written it.
    let Some(&function) = (unsafe { out.as_ref() }) else { return };
    let Some((kernel, kind)) = kernel::of(of) else { return };
    kernel::tie(function, HandleKind::Function, kernel);
    // It goes when its library does.
    if let Some(Owner::Library(library)) = owner(of, kind) {
        Owner::Library(library).put(function);
        if let Some(library) = module(library as Opaque) {
            lock(&library.handles).functions.insert(function as usize);
        }
    }
}));

// What the program sets on the original holds for its twin.
hook!(cuFuncSetAttribute(function: Opaque, attribute: c_int, value: c_int)
    then guard(|| repeat(function, attribute, value)));
hook!(cuKernelSetAttribute(attribute: c_int, value: c_int, kernel: Opaque, device: c_int)
    then guard(|| repeat(kernel, attribute, value)));

fn repeat(handle: Opaque, attribute: c_int, value: c_int) {
    let Some(((kernel, _), driver)) = kernel::of(handle).zip(driver::get()) else { return };
    for twin in kernel.twins.each() {
        crate::prepare::set_attribute(driver, twin, attribute, value);
        twin.resident.forget();
    }
}

hook!(cuGetProcAddress(name: *const c_char, out: *mut Opaque, version: c_int, flags: u64) then swap(name, out));
hook!(cuGetProcAddress_v2(name: *const c_char, out: *mut Opaque, version: c_int, flags: u64, status: *mut c_int)
    then swap(name, out));

fn swap(name: *const c_char, out: *mut Opaque) {
    // SAFETY: the driver has just written it, where it is not null.
    let Some(answer) = (unsafe { out.as_mut() }) else { return };
    if crate::env::wanted() && !name.is_null() {
        // SAFETY: the driver has read it.
        table::swap(unsafe { CStr::from_ptr(name) }, answer);
    }
}
