//! The first launch of a selected kernel: its twin is asked for, loaded, and made like the original.
//!
//! The launching thread waits for the parent, up to a minute; others that launch selected kernels for the first time
//! wait behind it. Whatever goes wrong gives the kernel a reason and leaves it as it is, for good.

use std::ffi::{CString, c_int};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use nt_wire::message::{self, Fill, Need};

use crate::driver::Driver;
use crate::kernel::{self, Code, HandleKind, Kernel, State, Twin};
use crate::parent::Answer;
use crate::pool::{self, Context, MAPS};
use crate::process::{Process, lock};
use crate::quiet::{guard, planned_panic};
use crate::{Opaque, launch, notes};

static PREPARING: Mutex<()> = Mutex::new(());

/// The twin of a selected kernel; `None` if it has fallen.
#[cold]
pub(crate) fn prepare(
    kernel: &'static Kernel,
    handle: Opaque,
    kind: HandleKind,
    context: &Context,
    driver: &Driver,
    process: &Process,
) -> Option<&'static Twin> {
    let twin = guard(|| {
        let _preparing = lock(&PREPARING);
        if kernel.state() != State::Selected {
            return kernel.twin();
        }
        planned_panic("prepare");
        let twin = ask(kernel, context, process)
            .and_then(|(twin, image)| load(kernel, twin, image, context, driver))
            .and_then(|twin| {
                compare_params(&twin, handle, kind, driver)?;
                copy_attributes(&twin, handle, kind, context, driver)?;
                Ok(twin)
            });
        match twin {
            Ok(twin) => Some(kernel.rise(twin)),
            Err(reason) => {
                kernel.fall(reason);
                None
            }
        }
    });
    twin.flatten()
}

fn ask(kernel: &Kernel, context: &Context, process: &Process) -> Result<(message::Twin, Vec<u8>), String> {
    let need = Need { image: kernel.image, arch: context.device.arch, kernel: kernel.name.to_owned() };
    let mut parent = lock(&process.parent);
    let answer = parent.as_mut().ok_or("nt-run is gone")?.need(&need);
    match answer {
        Ok(Answer::Twin(twin, image)) => Ok((twin, image)),
        Ok(Answer::Refused(reason)) => Err(reason),
        Err(error) => {
            *parent = None;
            notes::say(format!("the talk with nt-run broke off: {error}"));
            Err(error.to_string())
        }
    }
}

/// Checks a layout against what the launch path can hold, so that it need not, and loads the module.
fn load(
    kernel: &Kernel,
    twin: message::Twin,
    image: Vec<u8>,
    context: &Context,
    driver: &Driver,
) -> Result<Twin, String> {
    let size = twin.context as usize;
    let fits = |slot: &message::Slot| {
        let map = match slot.fill {
            Fill::Base(map) | Fill::Capacity(map) => map as usize,
            Fill::Zero | Fill::Launch => 0,
        };
        slot.offset.is_multiple_of(8)
            && slot.offset as usize + 8 <= size
            && (map == 0 || map < twin.maps.len())
    };
    if twin.params.len() > launch::PARAMS
        || twin.maps.len() > MAPS
        || size > launch::CONTEXT
        || !size.is_multiple_of(8)
        || !twin.slots.iter().all(fits)
        || (twin.maps.is_empty()
            && twin.slots.iter().any(|slot| matches!(slot.fill, Fill::Base(_) | Fill::Capacity(_))))
    {
        return Err("its layout is larger than the hook can hold".into());
    }
    let code = match load_library(kernel, &image, driver)? {
        Some(function) => Code::Library(function),
        None => {
            let function = load_module(kernel, &image, context, driver)?;
            let loaded: Box<[(AtomicUsize, AtomicUsize); 16]> = Box::default();
            loaded[0].1.store(function as usize, Ordering::Relaxed);
            loaded[0].0.store(context.handle as usize, Ordering::Release);
            Code::Modules { image, loaded }
        }
    };
    Ok(Twin {
        arch: context.device.arch,
        params: twin.params,
        slots: twin.slots,
        maps: twin.maps,
        manifest: twin.manifest,
        code,
    })
}

fn c_name(kernel: &Kernel) -> Result<CString, String> {
    CString::new(kernel.name).map_err(|_| "its name holds a NUL".into())
}

/// A kernel of a library, good in every context; `None` where there are no libraries (before driver 12.0).
fn load_library(kernel: &Kernel, image: &[u8], driver: &Driver) -> Result<Option<Opaque>, String> {
    const NOT_SUPPORTED: crate::Code = 801;
    let (Some(load), Some(get)) = (driver.library_load_data, driver.library_get_kernel) else {
        return Ok(None);
    };
    let (mut library, mut function) = (std::ptr::null_mut(), std::ptr::null_mut());
    let (none, name) = (std::ptr::null(), c_name(kernel)?);
    // SAFETY: a whole module, with a NUL behind it; each call writes one handle.
    unsafe {
        match load(&raw mut library, image.as_ptr().cast(), none, none, 0, none, none, 0) {
            NOT_SUPPORTED => return Ok(None),
            code => refuse(code)?,
        }
        refuse(get(&raw mut function, library, name.as_ptr()))?;
    }
    Ok(Some(function))
}

fn load_module(kernel: &Kernel, image: &[u8], context: &Context, driver: &Driver) -> Result<Opaque, String> {
    let name = c_name(kernel)?;
    let _current = pool::Current::new(driver, context.handle).ok_or("its context cannot be made current")?;
    let (mut module, mut function) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: as in `load_library`.
    unsafe {
        refuse((driver.cuModuleLoadData)(&raw mut module, image.as_ptr().cast()))?;
        refuse((driver.cuModuleGetFunction)(&raw mut function, module, name.as_ptr()))?;
    }
    Ok(function)
}

fn refuse(code: crate::Code) -> Result<(), String> {
    if code == 0 { Ok(()) } else { Err(format!("the driver refused its twin: {}", kernel::code_text(code))) }
}

impl Twin {
    /// What is launched in a context.
    pub(crate) fn function(
        &self,
        kernel: &'static Kernel,
        context: &Context,
        driver: &Driver,
    ) -> Option<Opaque> {
        let Code::Modules { image, loaded } = &self.code else {
            let Code::Library(function) = self.code else { return None };
            return Some(function);
        };
        let wanted = context.handle as usize;
        let find = || loaded.iter().find(|(context, _)| context.load(Ordering::Acquire) == wanted);
        if let Some((_, function)) = find() {
            return Some(function.load(Ordering::Relaxed) as Opaque);
        }
        // The first launch in a further context.
        guard(|| {
            let _preparing = lock(&PREPARING);
            if let Some((_, function)) = find() {
                return Some(function.load(Ordering::Relaxed) as Opaque);
            }
            let (at, function) = loaded.iter().find(|(context, _)| context.load(Ordering::Acquire) == 0)?;
            let new = load_module(kernel, image, context, driver).map_err(notes::say).ok()?;
            function.store(new as usize, Ordering::Relaxed);
            at.store(wanted, Ordering::Release);
            Some(new)
        })
        .flatten()
    }
}

/// The layout that the parent has read from the PTX against what the driver says of the original (12.4 and later).
fn compare_params(twin: &Twin, handle: Opaque, kind: HandleKind, driver: &Driver) -> Result<(), String> {
    let Some(info) = driver.func_get_param_info.filter(|_| kind == HandleKind::Function) else {
        return Ok(());
    };
    let ask = |index| {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: writes two sizes; an index too large gives an error.
        (unsafe { info(handle, index, &raw mut offset, &raw mut size) } == 0).then_some((offset, size))
    };
    for (index, param) in twin.params.iter().enumerate() {
        if ask(index).is_some_and(|found| found != (param.offset as usize, param.size as usize)) {
            return Err(format!("its parameter {index} is not where its PTX says"));
        }
    }
    if ask(twin.params.len()).is_some() {
        return Err("it has more parameters than its PTX says".into());
    }
    Ok(())
}

/// CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, the one that a launch depends on.
const SHARED: c_int = 8;

/// Every function attribute that can be set: shared memory, carve-out, non-portable clusters, cluster shape and policy.
const SETTABLE: [c_int; 7] = [SHARED, 9, 14, 11, 12, 13, 15];

fn copy_attributes(
    twin: &Twin,
    handle: Opaque,
    kind: HandleKind,
    context: &Context,
    driver: &Driver,
) -> Result<(), String> {
    let _current = pool::Current::new(driver, context.handle);
    for attribute in SETTABLE {
        let Some(wanted) = get_attribute(driver, handle, kind, attribute, context) else { continue };
        let (twin_handle, twin_kind) = match &twin.code {
            Code::Library(kernel) => (*kernel, HandleKind::Kernel),
            Code::Modules { loaded, .. } => {
                (loaded[0].1.load(Ordering::Relaxed) as Opaque, HandleKind::Function)
            }
        };
        if get_attribute(driver, twin_handle, twin_kind, attribute, context) == Some(wanted) {
            continue;
        }
        if !set_attribute(driver, twin, attribute, wanted) && attribute == SHARED {
            return Err(format!("its twin cannot have {wanted} bytes of dynamic shared memory"));
        }
    }
    Ok(())
}

fn get_attribute(
    driver: &Driver,
    handle: Opaque,
    kind: HandleKind,
    attribute: c_int,
    context: &Context,
) -> Option<c_int> {
    let mut value = 0;
    // SAFETY: each writes one int.
    let code = unsafe {
        match kind {
            HandleKind::Function => (driver.cuFuncGetAttribute)(&raw mut value, attribute, handle),
            HandleKind::Kernel => {
                driver.kernel_get_attribute?(&raw mut value, attribute, handle, context.device.ordinal)
            }
        }
    };
    (code == 0).then_some(value)
}

/// Sets a function attribute of a twin, on the current context's device; whether the driver took it.
pub(crate) fn set_attribute(driver: &Driver, twin: &Twin, attribute: c_int, value: c_int) -> bool {
    match &twin.code {
        Code::Library(kernel) => {
            let mut device = 0;
            // SAFETY: writes one int; then passes plain values.
            unsafe {
                (driver.cuCtxGetDevice)(&raw mut device) == 0
                    && driver
                        .kernel_set_attribute
                        .is_some_and(|set| set(attribute, value, *kernel, device) == 0)
            }
        }
        Code::Modules { loaded, .. } => {
            let live = loaded.iter().filter(|(context, _)| context.load(Ordering::Acquire) != 0);
            let mut functions = live.map(|(_, function)| function.load(Ordering::Relaxed));
            // SAFETY: functions that were loaded and are never unloaded.
            functions.all(|function| unsafe {
                (driver.cuFuncSetAttribute)(function as Opaque, attribute, value) == 0
            })
        }
    }
}
