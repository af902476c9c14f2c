//! Modules, libraries, and the functions and variables in them.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex};

use crate::call::{
    INVALID_HANDLE, INVALID_IMAGE, INVALID_VALUE, NOT_FOUND, NOT_SUPPORTED, Objects, calls, lock, put,
};
use crate::context::need_current;
use crate::image::{self, Entry, Image};
use crate::plan::plan;
use crate::program::Loaded;
use crate::settings::settings;
use crate::{Code, Opaque, log, memory, program};

/// CUDA_ERROR_INVALID_PTX
pub(crate) const INVALID_PTX: Code = 218;
/// CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
const SHARED: c_int = 8;
/// What it is until it is raised.
const SHARED_AT_FIRST: c_int = 49_152;

/// What a load made, module or library.
pub(crate) struct Module {
    /// 0 for a library, which is good in every context.
    context: usize,
    image: Image,
    /// A library's module has its library's.
    variables: Arc<Variables>,
    /// Handles given out, by name: the same name gives the same handle.
    given: Mutex<BTreeMap<String, usize>>,
    /// A library's module.
    inner: Mutex<usize>,
}

/// A function or kernel.
pub(crate) struct Function {
    /// Of the image.
    pub(crate) entry: Entry,
    /// What a launch executes, if kernels are executed.
    pub(crate) loaded: Option<Arc<Loaded>>,
    name: CString,
    module: usize,
    context: usize,
    /// A library's kernel, which `cuFunc…` does not take.
    kernel: bool,
    attributes: Mutex<BTreeMap<c_int, c_int>>,
    /// A kernel's function.
    inner: Mutex<usize>,
}

/// Where a module's variables are: a library's are elsewhere in every context.
#[derive(Default)]
pub(crate) struct Variables(Mutex<BTreeMap<(usize, String), u64>>);

impl Drop for Variables {
    fn drop(&mut self) {
        for &address in lock(&self.0).values() {
            let _ = memory::release(address);
        }
    }
}

impl Module {
    fn new(context: usize, image: Image, variables: Arc<Variables>) -> Module {
        Module { context, image, variables, given: Mutex::default(), inner: Mutex::default() }
    }

    /// A variable's address in a context, and its size.
    fn variable(&self, name: &str, context: usize) -> Result<(u64, usize), Code> {
        if let Some(loaded) = &self.image.loaded {
            return loaded.variable(name, context);
        }
        let variable = self.image.variables.iter().find(|variable| variable.name == name).ok_or(NOT_FOUND)?;
        let mut placed = lock(&self.variables.0);
        let address = match placed.get(&(context, name.to_owned())) {
            Some(&address) => address,
            None => {
                let address = memory::allocate(variable.size)?;
                placed.insert((context, name.to_owned()), address);
                address
            }
        };
        Ok((address, variable.size))
    }
}

static MODULES: Objects<Module> = Objects::new();
static LIBRARIES: Objects<Module> = Objects::new();
static FUNCTIONS: Objects<Function> = Objects::new();

/// What a launch in a context names: a function of that context, or a kernel.
pub(crate) fn function(handle: Opaque, context: usize) -> Result<Arc<Function>, Code> {
    let function = FUNCTIONS.get(handle)?;
    if function.kernel || function.context == context { Ok(function) } else { Err(INVALID_HANDLE) }
}

impl Function {
    /// What the constants of its module hold in a context, in the order of the text.
    pub(crate) fn constants(&self, context: usize) -> Vec<(String, Vec<u8>)> {
        let module = if self.kernel {
            LIBRARIES.get(self.module as Opaque)
        } else {
            MODULES.get(self.module as Opaque)
        };
        let Ok(module) = module else { return Vec::new() };
        let constants = module.image.variables.iter().filter(|variable| variable.constant);
        constants
            .filter_map(|constant| {
                let (address, size) = module.variable(&constant.name, context).ok()?;
                Some((constant.name.clone(), memory::bytes(address, size)))
            })
            .collect()
    }

    /// The most dynamic shared memory that a launch may ask for.
    pub(crate) fn most_shared(&self) -> c_int {
        lock(&self.attributes).get(&SHARED).copied().unwrap_or(SHARED_AT_FIRST)
    }
}

/// A context has ended, and its modules with it.
pub(crate) fn end_context(context: usize) {
    for library in LIBRARIES.all() {
        if let Some(loaded) = &library.image.loaded {
            loaded.forget(context);
        }
    }
    for module in MODULES.all().iter().filter(|module| module.context == context) {
        unload(module);
        let _ = MODULES.remove(Arc::as_ptr(module).cast_mut().cast());
    }
}

fn load(objects: &Objects<Module>, out: *mut Opaque, image: *const c_void) -> Result<(), Code> {
    if plan().fails_load() {
        return Err(INVALID_PTX);
    }
    let image = match settings() {
        // SAFETY: the program's word that it is an image.
        Some(_) => unsafe { program::read(image) }?,
        // SAFETY: likewise.
        None => unsafe { image::read(image) }.ok_or(INVALID_IMAGE)?,
    };
    log::line(|| format!("load {} {} kernels", std::process::id(), image.entries.len()));
    let context = if std::ptr::eq(objects, &raw const MODULES) { need_current()? } else { 0 };
    put(out, objects.add(Arc::new(Module::new(context, image, Arc::default()))))
}

fn load_file(objects: &Objects<Module>, out: *mut Opaque, path: *const c_char) -> Result<(), Code> {
    if path.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the program's own text.
    let path = unsafe { CStr::from_ptr(path) };
    let mut image = std::fs::read(std::ffi::OsStr::from_bytes(path.to_bytes())).map_err(|_| 301)?;
    image.push(0);
    load(objects, out, image.as_ptr().cast())
}

fn find(
    module: &Module,
    handle: Opaque,
    out: *mut Opaque,
    name: *const c_char,
    kernel: bool,
) -> Result<(), Code> {
    if name.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the program's own text.
    let name = unsafe { CStr::from_ptr(name) };
    let text = name.to_string_lossy();
    let entry = match module.image.entries.iter().find(|entry| entry.name == text) {
        Some(entry) => entry.clone(),
        None if module.image.unread => Entry { name: text.clone().into_owned(), params: Vec::new() },
        None => return Err(NOT_FOUND),
    };
    let mut given = lock(&module.given);
    let function = given.entry(text.into_owned()).or_insert_with(|| {
        FUNCTIONS.add(Arc::new(Function {
            entry,
            loaded: module.image.loaded.clone(),
            name: name.to_owned(),
            module: handle as usize,
            context: module.context,
            kernel,
            attributes: Mutex::default(),
            inner: Mutex::default(),
        })) as usize
    });
    put(out, *function as Opaque)
}

fn get_global(
    module: &Module,
    context: usize,
    address: *mut u64,
    bytes: *mut usize,
    name: *const c_char,
) -> Result<(), Code> {
    if name.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the program's own text.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    let (found, size) = module.variable(&name, context)?;
    log::line(|| format!("global {} {name} {found:#x}", std::process::id()));
    if !address.is_null() {
        put(address, found)?;
    }
    if bytes.is_null() { Ok(()) } else { put(bytes, size) }
}

fn unload(module: &Module) {
    for &function in lock(&module.given).values() {
        if let Ok(function) = FUNCTIONS.remove(function as Opaque) {
            let _ = FUNCTIONS.remove(*lock(&function.inner) as Opaque);
        }
    }
}

fn libraries() -> Result<(), Code> {
    if plan().no_libraries { Err(NOT_SUPPORTED) } else { Ok(()) }
}

fn of_kind(handle: Opaque, kernel: bool) -> Result<Arc<Function>, Code> {
    let function = FUNCTIONS.get(handle)?;
    if function.kernel == kernel { Ok(function) } else { Err(INVALID_HANDLE) }
}

fn get_attribute(function: &Function, attribute: c_int) -> c_int {
    let set = lock(&function.attributes).get(&attribute).copied();
    let own = || function.loaded.as_ref()?.attribute(&function.entry.name, attribute);
    set.or_else(own).unwrap_or(match attribute {
        0 => 1024, // threads a block
        4 => 32,   // registers
        SHARED => SHARED_AT_FIRST,
        9 => -1, // carve-out: the driver's choice
        _ => 0,
    })
}

fn set_attribute(function: &Function, attribute: c_int, value: c_int) -> Result<(), Code> {
    if attribute < SHARED || (attribute == SHARED && value > 232_448) {
        return Err(INVALID_VALUE);
    }
    lock(&function.attributes).insert(attribute, value);
    Ok(())
}

type Options = *mut c_void;

/// Logs what a load tells the assembler, which there is none of here.
fn log_options(options: Options, values: Options, n: c_uint) {
    if n == 0 || options.is_null() || values.is_null() {
        return;
    }
    log::line(|| {
        let one = |i: usize| {
            // SAFETY: the caller's arrays have `n` elements, as cuda.h asks.
            let (option, value) =
                unsafe { (*options.cast::<c_int>().add(i), *values.cast::<usize>().add(i)) };
            format!(" {option}={value}")
        };
        format!("jit {}{}", std::process::id(), (0..n as usize).map(one).collect::<String>())
    });
}

calls! {
    fn cuModuleLoad(out: *mut Opaque, path: *const c_char) {
        need_current()?;
        load_file(&MODULES, out, path)
    }
    fn cuModuleLoadData(out: *mut Opaque, image: *const c_void) {
        need_current()?;
        load(&MODULES, out, image)
    }
    fn cuModuleLoadDataEx(out: *mut Opaque, image: *const c_void, n: c_uint, options: Options, values: Options) {
        need_current()?;
        log_options(options, values, n);
        load(&MODULES, out, image)
    }
    fn cuModuleLoadFatBinary(out: *mut Opaque, image: *const c_void) {
        need_current()?;
        load(&MODULES, out, image)
    }
    fn cuModuleUnload(module: Opaque) {
        need_current()?;
        unload(&*MODULES.remove(module)?);
        Ok(())
    }
    fn cuModuleGetFunction(out: *mut Opaque, module: Opaque, name: *const c_char) {
        find(&*MODULES.get(module)?, module, out, name, false)
    }
    fn cuModuleGetGlobal_v2(address: *mut u64, bytes: *mut usize, module: Opaque, name: *const c_char) {
        let module = MODULES.get(module)?;
        get_global(&module, module.context, address, bytes, name)
    }
    fn cuModuleGetFunctionCount(count: *mut c_uint, module: Opaque) {
        put(count, MODULES.get(module)?.image.entries.len() as c_uint)
    }
    fn cuModuleEnumerateFunctions(out: *mut Opaque, most: c_uint, module: Opaque) {
        let object = MODULES.get(module)?;
        for (i, entry) in object.image.entries.iter().take(most as usize).enumerate() {
            let name = CString::new(entry.name.as_str()).map_err(|_| INVALID_VALUE)?;
            find(&object, module, out.wrapping_add(i), name.as_ptr(), false)?;
        }
        Ok(())
    }

    fn cuLibraryLoadData(out: *mut Opaque, image: *const c_void, jit: Options, jit_values: Options, jit_n: c_uint,
        _options: Options, _values: Options, _n: c_uint) {
        libraries()?;
        log_options(jit, jit_values, jit_n);
        load(&LIBRARIES, out, image)
    }
    fn cuLibraryLoadFromFile(out: *mut Opaque, path: *const c_char, jit: Options, jit_values: Options,
        jit_n: c_uint, _options: Options, _values: Options, _n: c_uint) {
        libraries()?;
        log_options(jit, jit_values, jit_n);
        load_file(&LIBRARIES, out, path)
    }
    fn cuLibraryUnload(library: Opaque) {
        libraries()?;
        let library = LIBRARIES.remove(library)?;
        unload(&library);
        if let Ok(module) = MODULES.remove(*lock(&library.inner) as Opaque) {
            unload(&module);
        }
        Ok(())
    }
    fn cuLibraryGetKernel(out: *mut Opaque, library: Opaque, name: *const c_char) {
        libraries()?;
        find(&*LIBRARIES.get(library)?, library, out, name, true)
    }
    fn cuLibraryGetModule(out: *mut Opaque, library: Opaque) {
        libraries()?;
        need_current()?;
        let library = LIBRARIES.get(library)?;
        let mut inner = lock(&library.inner);
        if *inner == 0 {
            let module = Module::new(need_current()?, library.image.clone(), Arc::clone(&library.variables));
            *inner = MODULES.add(Arc::new(module)) as usize;
        }
        put(out, *inner as Opaque)
    }
    fn cuLibraryGetGlobal(address: *mut u64, bytes: *mut usize, library: Opaque, name: *const c_char) {
        libraries()?;
        get_global(&*LIBRARIES.get(library)?, need_current()?, address, bytes, name)
    }
    fn cuKernelGetFunction(out: *mut Opaque, kernel: Opaque) {
        libraries()?;
        need_current()?;
        let kernel = of_kind(kernel, true)?;
        let mut inner = lock(&kernel.inner);
        if *inner == 0 {
            *inner = FUNCTIONS.add(Arc::new(Function {
                entry: kernel.entry.clone(),
                loaded: kernel.loaded.clone(),
                name: kernel.name.clone(),
                module: kernel.module,
                context: need_current()?,
                kernel: false,
                attributes: Mutex::new(lock(&kernel.attributes).clone()),
                inner: Mutex::default(),
            })) as usize;
        }
        put(out, *inner as Opaque)
    }
    fn cuKernelGetAttribute(out: *mut c_int, attribute: c_int, kernel: Opaque, _device: c_int) {
        libraries()?;
        put(out, get_attribute(&*of_kind(kernel, true)?, attribute))
    }
    fn cuKernelSetAttribute(attribute: c_int, value: c_int, kernel: Opaque, _device: c_int) {
        libraries()?;
        set_attribute(&*of_kind(kernel, true)?, attribute, value)
    }

    fn cuFuncGetAttribute(out: *mut c_int, attribute: c_int, function: Opaque) {
        put(out, get_attribute(&*of_kind(function, false)?, attribute))
    }
    fn cuFuncSetAttribute(function: Opaque, attribute: c_int, value: c_int) {
        set_attribute(&*of_kind(function, false)?, attribute, value)
    }
    fn cuFuncSetCacheConfig(function: Opaque, _config: c_int) { of_kind(function, false).map(|_| ()) }
    fn cuFuncGetName(out: *mut *const c_char, function: Opaque) {
        put(out, of_kind(function, false)?.name.as_ptr())
    }
    fn cuFuncGetModule(out: *mut Opaque, function: Opaque) {
        put(out, of_kind(function, false)?.module as Opaque)
    }
    fn cuFuncGetParamInfo(function: Opaque, index: usize, offset: *mut usize, size: *mut usize) {
        let function = of_kind(function, false)?;
        let param = function.entry.params.get(index).ok_or(INVALID_VALUE)?;
        put(offset, param.offset)?;
        if size.is_null() { Ok(()) } else { put(size, param.size) }
    }
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(out: *mut c_int, function: Opaque, threads: c_int, _shared: usize) {
        let woven = FUNCTIONS.get(function)?.entry.is_woven();
        let fitting = if threads <= 0 { 0 } else { (2048 / threads).min(32) };
        put(out, plan().twin_blocks.filter(|_| woven).unwrap_or(fitting))
    }
}
