//! The first launch of a selected kernel: its twin is asked for, loaded, and made like the original.
//!
//! The launching thread waits for the parent, up to a minute; others that launch selected kernels for the first time
//! wait behind it. Whatever goes wrong gives the kernel a reason and leaves it as it is, for good. The first launch in
//! each further context (and, for a twin that is tied to a module's variables, of each further module) makes the twin
//! at home there; the first of each further kind of shape asks for a twin of its own.

use std::ffi::{CString, c_int, c_uint};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use nt_wire::message::{self, Fill, Need, Unit};

use crate::context::{self, Context, Current};
use crate::driver::{Driver, Relaxed};
use crate::home::{self, Entered, Home, Homes};
use crate::kernel::{self, HandleKind, Kernel, Skip, State};
use crate::load::Owner;
use crate::parent::Answer;
use crate::pool::{MAPS, VALUES};
use crate::process::{self, Process, lock};
use crate::quiet::{guard, planned_panic};
use crate::resident::Known;
use crate::twin::{Code, Refused, Twin};
use crate::{Opaque, arguments, jit, notes};

static PREPARING: Mutex<()> = Mutex::new(());

/// The twin of a selected kernel for launches of which `holds` holds; `Err(None)` if it has fallen.
#[cold]
pub(crate) fn prepare(
    kernel: &'static Kernel,
    holds: u8,
    context: &Context,
    driver: &Driver,
    process: &Process,
) -> Result<&'static Twin, Option<Skip>> {
    let arch = context.device.arch;
    if let Some(refused) = kernel.twins.is_refused(arch, holds) {
        return Err(Some(skip(refused)));
    }
    let twin = guard(|| {
        let _preparing = lock(&PREPARING);
        if kernel.state() == State::Fallen {
            return Err(None);
        }
        if let Some(twin) = kernel.twins.of(arch, holds) {
            return Ok(twin);
        }
        if let Some(refused) = kernel.twins.is_refused(arch, holds) {
            return Err(Some(skip(refused)));
        }
        planned_panic("prepare");
        let twin = ask(kernel, holds, context, process)
            .and_then(|(twin, image)| accept(kernel, holds, twin, image, context, driver));
        match twin {
            Ok(twin) if kernel.rise(holds, twin) => Ok(twin),
            Ok(_) => Err(Some(Skip::Architecture)),
            // Others run on such devices already: what can run here as well does.
            Err(_) if kernel.twins.each().any(|twin| twin.arch == arch) => {
                match kernel.twins.any_for(arch, holds) {
                    Some(twin) => {
                        kernel.rise(holds, twin);
                        Ok(twin)
                    }
                    None => {
                        kernel.twins.refuse(arch, holds);
                        Err(Some(Skip::Shape))
                    }
                }
            }
            // Where there are devices of another architecture, it may have a twin there.
            Err(reason) if context::has_several_architectures(driver) => {
                kernel.fall_on(arch, &reason);
                Err(Some(Skip::Architecture))
            }
            Err(reason) => {
                kernel.fall(reason);
                Err(None)
            }
        }
    });
    twin.unwrap_or(Err(None))
}

fn skip(refused: Refused) -> Skip {
    match refused {
        Refused::Shape => Skip::Shape,
        Refused::Architecture => Skip::Architecture,
    }
}

/// Makes a twin at home, for launches of `handle` in a stream of a context; entered. `Err(None)`: the kernel has fallen.
#[cold]
pub(crate) fn settle(
    (kernel, twin): (&'static Kernel, &'static Twin),
    (handle, kind): (Opaque, HandleKind),
    (context, stream): (&'static Context, Opaque),
    owner: Option<Owner>,
    driver: &Driver,
    process: &'static Process,
) -> Result<Entered, Option<Skip>> {
    let home = guard(|| {
        let _preparing = lock(&PREPARING);
        if !twin.constants.is_empty() {
            let _relaxed = Relaxed::new(driver);
            twin.homes.reuse(context, owner, stream, driver);
        }
        if let Some(entered) = twin.homes.enter(context, owner, stream) {
            return Ok(entered);
        }
        if !twin.homes.room(context, owner) {
            return Err(Some(Skip::Homes));
        }
        if kernel.state() == State::Fallen {
            return Err(None);
        }
        if !process::active() || context.is_retiring() {
            return Err(Some(Skip::Passive));
        }
        let made = if twin.is_tied() && owner.is_none() {
            Err("the module of its handle is not known".to_owned())
        } else {
            home::make(kernel, twin, context, owner, driver, process)
        };
        let fitted = made.and_then(|home| {
            compare_params(twin, handle, kind, driver)?;
            copy_attributes(home, handle, kind, driver)?;
            Ok(home)
        });
        match fitted {
            Ok(home) => {
                home::open(home)?;
                twin.homes.enter(context, owner, stream).ok_or(Some(Skip::Passive))
            }
            Err(reason) => {
                kernel.fall(reason);
                Err(None)
            }
        }
    });
    home.unwrap_or(Err(None))
}

fn ask(
    kernel: &Kernel,
    holds: u8,
    context: &Context,
    process: &Process,
) -> Result<(message::Twin, Vec<u8>), String> {
    let (image, arch) = (kernel.image, context.device.arch);
    let need = Need { image, arch, kernel: kernel.name.to_owned(), holds };
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

/// Checks a layout against what the launch path can hold, so that it need not, and loads what is good everywhere. A twin
/// that is there already is not loaded again.
fn accept(
    kernel: &Kernel,
    holds: u8,
    twin: message::Twin,
    image: Vec<u8>,
    context: &Context,
    driver: &Driver,
) -> Result<&'static Twin, String> {
    if twin.assumes & !holds != 0 {
        return Err("its twin relies on what does not hold of the launch".into());
    }
    let arch = context.device.arch;
    let known = kernel
        .twins
        .each()
        .find(|known| known.arch == arch && known.assumes == twin.assumes && known.manifest == twin.manifest);
    if let Some(known) = known {
        return Ok(known);
    }
    let size = twin.context as usize;
    let fits = |slot: &message::Slot| {
        let map = match slot.fill {
            Fill::Base(map) | Fill::Capacity(map) => map,
            Fill::Cursor(map) | Fill::Drops(map) | Fill::Units(map) | Fill::Counts(map) => {
                let has = |map: &message::MapShape| match slot.fill {
                    Fill::Units(_) => map.stream.is_some() || map.slots.is_some(),
                    Fill::Counts(_) => map.slots.is_some(),
                    _ => map.stream.is_some(),
                };
                if !twin.maps.get(map as usize).is_some_and(has) {
                    return false;
                }
                map
            }
            Fill::Zero | Fill::Launch => 0,
        };
        let map = map as usize;
        slot.offset.is_multiple_of(slot.size)
            && slot.offset as usize + slot.size as usize <= size
            && (map == 0 || map < twin.maps.len())
    };
    if twin.params.len() > arguments::PARAMS
        || twin.maps.len() > MAPS
        || size > arguments::CONTEXT
        || !size.is_multiple_of(8)
        || !twin.slots.iter().all(fits)
        || (twin.maps.is_empty()
            && twin.slots.iter().any(|slot| matches!(slot.fill, Fill::Base(_) | Fill::Capacity(_))))
    {
        return Err("its layout is larger than the hook can hold".into());
    }
    if twin.maps.iter().any(|map| map.persistent && map.stream.is_some()) {
        return Err("it has a stream that outlives launches".into());
    }
    if twin.maps.iter().any(|map| map.slots.is_some() && (map.persistent || map.stream.is_some())) {
        return Err("it has a capacity where no records are".into());
    }
    let ends = twin.params.iter().map(|param| param.offset as usize + param.size as usize);
    let wanted_params = if twin.wants_params { ends.max().unwrap_or(0) } else { 0 };
    if wanted_params > VALUES {
        return Err("its parameters are larger than the hook can hold".into());
    }
    if twin.maps.iter().any(|map| map.persistent && map.unit != Unit::Sm) {
        return Err("its tables are of units that differ from launch to launch".into());
    }
    let mut twin = Twin {
        id: Twin::next_id(),
        arch,
        assumes: twin.assumes,
        params: twin.params,
        wanted_params,
        slots: twin.slots,
        maps: twin.maps,
        pins: twin.pins,
        constants: twin.constants,
        manifest: twin.manifest,
        code: Code::Image(Vec::new()),
        homes: Homes::new(),
        resident: Known::new(),
        written: AtomicBool::new(false),
    };
    let shared = if twin.is_tied() { None } else { load_library(kernel, &image, driver)? };
    twin.code = match shared {
        Some(shared) => Code::Shared(shared.function),
        None => Code::Image(image),
    };
    Ok(Box::leak(Box::new(twin)))
}

/// What is launched, in one home.
#[derive(Clone, Copy)]
pub(crate) struct Loaded {
    /// A CUfunction or a CUkernel.
    pub(crate) function: Opaque,
    kind: HandleKind,
    /// What it was loaded in, if for this home alone.
    pub(crate) owner: Option<Owner>,
}

impl Loaded {
    /// Gives it back to the driver. Its context is current.
    pub(crate) fn unload(&self, driver: &Driver) {
        // SAFETY: loaded for one home, which has ended.
        unsafe {
            match self.owner {
                Some(Owner::Module(module)) => _ = (driver.cuModuleUnload)(module as Opaque),
                Some(Owner::Library(library)) => {
                    if let Some(unload) = driver.library_unload {
                        unload(library as Opaque);
                    }
                }
                None => {}
            }
        }
    }
}

/// Loads a twin for a home in the current context.
pub(crate) fn load(kernel: &Kernel, twin: &Twin, driver: &Driver) -> Result<Loaded, String> {
    match &twin.code {
        Code::Shared(function) => Ok(Loaded { function: *function, kind: HandleKind::Kernel, owner: None }),
        Code::Image(image) => match load_library(kernel, image, driver)? {
            Some(loaded) => Ok(loaded),
            None => load_module(kernel, image, driver),
        },
    }
}

fn c_name(kernel: &Kernel) -> Result<CString, String> {
    CString::new(kernel.name).map_err(|_| "its name holds a NUL".into())
}

/// A library with the kernel, good in every context; `None` where there are no libraries (before driver 12.0).
fn load_library(kernel: &Kernel, image: &[u8], driver: &Driver) -> Result<Option<Loaded>, String> {
    const NOT_SUPPORTED: crate::Code = 801;
    let (Some(load), Some(get)) = (driver.library_load_data, driver.library_get_kernel) else {
        return Ok(None);
    };
    let (mut library, mut function) = (std::ptr::null_mut(), std::ptr::null_mut());
    let (none, name) = (std::ptr::null(), c_name(kernel)?);
    // As the original's were, for the driver to assemble a twin that is PTX; machine code has been made with them.
    let (jit, values): (Vec<c_int>, Vec<usize>) = jit::of_image(kernel.image).into_iter().unzip();
    let (n, jit, values) = (jit.len() as c_uint, jit.as_ptr().cast(), values.as_ptr().cast());
    // SAFETY: a whole module, with a NUL behind it, and as many options as values; each call writes one handle.
    unsafe {
        match load(&raw mut library, image.as_ptr().cast(), jit, values, n, none, none, 0) {
            NOT_SUPPORTED => return Ok(None),
            code => refuse(code)?,
        }
        refuse(get(&raw mut function, library, name.as_ptr()))?;
    }
    let owner = Some(Owner::Library(library as usize));
    Ok(Some(Loaded { function, kind: HandleKind::Kernel, owner }))
}

/// A module of the current context.
fn load_module(kernel: &Kernel, image: &[u8], driver: &Driver) -> Result<Loaded, String> {
    let name = c_name(kernel)?;
    let (mut module, mut function) = (std::ptr::null_mut(), std::ptr::null_mut());
    let (jit, values): (Vec<c_int>, Vec<usize>) = jit::of_image(kernel.image).into_iter().unzip();
    let (n, jit, values) = (jit.len() as c_uint, jit.as_ptr().cast(), values.as_ptr().cast());
    // SAFETY: as in `load_library`.
    unsafe {
        refuse((driver.cuModuleLoadDataEx)(&raw mut module, image.as_ptr().cast(), n, jit, values))?;
        refuse((driver.cuModuleGetFunction)(&raw mut function, module, name.as_ptr()))?;
    }
    let owner = Some(Owner::Module(module as usize));
    Ok(Loaded { function, kind: HandleKind::Function, owner })
}

fn refuse(code: crate::Code) -> Result<(), String> {
    if code == 0 { Ok(()) } else { Err(format!("the driver refused its twin: {}", kernel::code_text(code))) }
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

fn copy_attributes(home: &Home, handle: Opaque, kind: HandleKind, driver: &Driver) -> Result<(), String> {
    let (context, twin) = (home.context, home.loaded);
    let _current = Current::new(driver, context.handle);
    for attribute in SETTABLE {
        let Some(wanted) = get_attribute(driver, handle, kind, attribute, context) else { continue };
        if get_attribute(driver, twin.function, twin.kind, attribute, context) == Some(wanted) {
            continue;
        }
        if !set(driver, twin, attribute, wanted) && attribute == SHARED {
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

/// Sets a function attribute of a twin, wherever it is, on the current context's device.
pub(crate) fn set_attribute(driver: &Driver, twin: &Twin, attribute: c_int, value: c_int) {
    for home in twin.homes.each() {
        set(driver, home.loaded, attribute, value);
    }
}

/// Whether the driver took it.
fn set(driver: &Driver, twin: Loaded, attribute: c_int, value: c_int) -> bool {
    let mut device = 0;
    // SAFETY: writes one int; then passes plain values.
    unsafe {
        match twin.kind {
            HandleKind::Function => (driver.cuFuncSetAttribute)(twin.function, attribute, value) == 0,
            HandleKind::Kernel => {
                (driver.cuCtxGetDevice)(&raw mut device) == 0
                    && driver
                        .kernel_set_attribute
                        .is_some_and(|set| set(attribute, value, twin.function, device) == 0)
            }
        }
    }
}
