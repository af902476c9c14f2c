//! Launches: the path that every kernel takes.
//!
//! An unselected kernel costs a table look-up and a counter. A selected one, once it is ready:
//!
//! 1. Is its stream being captured? Then it goes through: it runs when the graph does.
//! 2. A segment of the context's pool is taken, large enough for what this grid may save.
//! 3. The twin is launched with the program's own arguments and one more, the context block, by value.
//! 4. An event is recorded behind it, and the slot handed to the collector.
//!
//! In the program's stream stand the twin and the event, nothing else. Nothing here allocates, takes a lock across a
//! driver call or can panic: indices come from lists that were measured when the kernel was prepared.
//! Whatever fails, the original runs, and its code is what the program gets.

use std::ffi::{c_int, c_uint, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nt_wire::frame;
use nt_wire::message::Fill;

use crate::driver::{self, Driver, LEGACY, PER_THREAD};
use crate::kernel::{self, HandleKind, Kernel, Skip, State, Twin};
use crate::load::{self, hook};
use crate::pool::{self, LAUNCHED, Launched, MAPS, Order, Part, Pool, RETURNED};
use crate::prepare::prepare;
use crate::process::{self, Process};
use crate::ring::{Refusal, Segment};
use crate::table::{Name, real};
use crate::tally::thread_pointer;
use crate::time::{Deadline, now_ns};
use crate::{Code, Opaque, collect, notes, time};

/// The most parameters that an original may have.
pub(crate) const PARAMS: usize = 512;
/// The largest context block, in bytes.
pub(crate) const CONTEXT: usize = 512;

/// Probed launches so far: the number of the next.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Of a launch, what the three launching calls have in common.
struct Shape {
    grid: [u32; 3],
    block: [u32; 3],
    /// Bytes of dynamic shared memory.
    shared: u32,
    /// As the program passed it.
    stream: Opaque,
    /// What a null stream means to this call.
    null_stream: usize,
}

/// Function, parameters, extra: the real call with all else as the program wants it.
type Call<'c> = &'c dyn Fn(Opaque, *mut Opaque, *mut Opaque) -> Code;

/// Counts a launch; the kernel, if it is one that may be probed. All others go straight to the driver.
#[inline(always)]
fn selected_kernel(function: Opaque) -> Option<(&'static Kernel, HandleKind)> {
    let (kernel, kind) = match kernel::of(function) {
        Some(found) => found,
        None => (process::get().map(|_| load::resolve(function))?, HandleKind::Function),
    };
    kernel.launches.count();
    (!kernel.unselected()).then_some((kernel, kind))
}

/// A launch of a selected kernel.
#[inline(never)]
fn selected(
    (kernel, kind): (&'static Kernel, HandleKind),
    function: Opaque,
    params: *mut Opaque,
    extra: *mut Opaque,
    shape: &Shape,
    call: Call<'_>,
) -> Code {
    match probe(kernel, kind, function, params, extra, shape, call) {
        Ok(code) => code,
        Err(why) => {
            if let Some(why) = why {
                kernel.skip(why);
            }
            call(function, params, extra)
        }
    }
}

/// Launches the twin; `Err`: nothing has happened, and the original is to run. `None` for a kernel that has fallen, which
/// has its reason.
fn probe(
    kernel: &'static Kernel,
    kind: HandleKind,
    function: Opaque,
    params: *mut Opaque,
    extra: *mut Opaque,
    shape: &Shape,
    call: Call<'_>,
) -> Result<Code, Option<Skip>> {
    if kernel.state() == State::Fallen {
        return Err(None);
    }
    if !process::active() {
        return Err(Some(Skip::Passive));
    }
    let process = process::get().ok_or(Skip::Passive)?;
    let driver = driver::get().ok_or(Skip::NoPool)?;
    let stream = if shape.stream.is_null() { shape.null_stream as Opaque } else { shape.stream };
    let mut capturing = 0;
    // SAFETY: writes one int. An error means that a capture elsewhere forbids the question, and so a probe.
    if unsafe { (driver.cuStreamIsCapturing)(stream, &raw mut capturing) } != 0 || capturing != 0 {
        return Err(Some(Skip::Captured));
    }
    let context = pool::of_stream(driver, stream).ok_or(Skip::NoPool)?;
    let twin = match kernel.twin() {
        Some(twin) => twin,
        None => prepare(kernel, function, kind, context, driver, process).ok_or(None)?,
    };
    if twin.arch != context.device.arch {
        return Err(Some(Skip::Architecture));
    }
    let twin_function = twin.function(kernel, context, driver).ok_or(Skip::NoPool)?;
    if stays_resident(driver, twin_function, function, shape, context.device.sms) == Some(false) {
        return Err(Some(Skip::Resident));
    }
    let (parts, bytes) = lay_out(twin, shape, context.device.sms).ok_or(Skip::TooLarge)?;
    let mut array = [const { MaybeUninit::<Opaque>::uninit() }; PARAMS + 1];
    fill_params(twin, params, extra, &mut array).ok_or(Skip::Arguments)?;

    let pool = context.pool(driver, process).ok_or(Skip::NoPool)?;
    let segment = take(pool, bytes, process)?;
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut block = [0u64; CONTEXT / 8];
    fill_block(twin, &parts, pool.base + segment.offset, number, &mut block);
    if let Some(last) = array.get_mut(twin.params.len()) {
        last.write(block.as_mut_ptr().cast());
    }
    let launched = Launched {
        kernel,
        twin,
        frame: frame::Launch {
            number,
            kernel: kernel.id,
            device: context.device.ordinal.cast_unsigned(),
            grid: shape.grid,
            block: shape.block,
            shared: shape.shared,
            sms: context.device.sms,
            stream: shape.stream as u64,
            context: context.handle as u64,
            launched_ns: now_ns(),
            complete_ns: 0,
            clock_khz: context.device.clock_khz,
        },
        parts,
        segment,
        order: order(stream),
    };
    let slot = &pool.slots[segment.slot % pool.slots.len()];
    slot.note(launched);

    let code = call(twin_function, array.as_mut_ptr().cast(), std::ptr::null_mut());
    if code != 0 {
        slot.state.store(RETURNED, Ordering::Release);
        collect::nudge();
        let original = call(function, params, extra);
        if original == 0 {
            // The twin is at fault: it needs what the original does not.
            quietly_fall(kernel, code);
        }
        return Ok(original);
    }
    // SAFETY: our event; a stream that has just taken a launch.
    if unsafe { (driver.cuEventRecord)(slot.event, stream) } == 0 {
        kernel.probed.fetch_add(1, Ordering::Relaxed);
        slot.state.store(LAUNCHED, Ordering::Release);
    } else {
        // When it ends cannot be known, so its segment is lost.
        pool.broken.store(true, Ordering::Release);
    }
    collect::nudge();
    Ok(0)
}

#[cold]
fn quietly_fall(kernel: &Kernel, code: Code) {
    crate::quiet::guard(|| {
        kernel.fall(format!("its twin could not be launched: {}", kernel::code_text(code)));
    });
}

/// Which launches this one is known to stand behind.
fn order(stream: Opaque) -> Order {
    Order {
        stream: stream as usize,
        thread: thread_pointer(),
        epoch: pool::STREAMS_DESTROYED.load(Ordering::Acquire),
    }
}

/// Where each map's part lies in the launch's segment, and its size. `None` beyond all bounds.
fn lay_out(twin: &Twin, shape: &Shape, sms: u32) -> Option<([Part; MAPS], u64)> {
    /// Parts begin at multiples of this: a cache line's worth and more.
    const PART: u64 = 256;
    /// Capacities are rounded up to it, as the layout of columns wants.
    const STEP: u64 = 16;
    let mut parts = [Part::default(); MAPS];
    let mut end = 0u64;
    for (part, map) in parts.iter_mut().zip(&twin.maps) {
        let units = map.unit.count(shape.grid, shape.block, sms)?;
        let capacity = units.checked_next_multiple_of(STEP)?;
        let bytes = capacity.checked_mul(u64::from(map.stride))?;
        *part = Part { offset: end, bytes, units, capacity };
        end = end.checked_add(bytes)?.checked_next_multiple_of(PART)?;
    }
    Some((parts, end))
}

/// Points at the program's arguments, wherever they are. `None` if they are not as the kernel's parameters ask.
fn fill_params(
    twin: &Twin,
    params: *mut Opaque,
    extra: *mut Opaque,
    array: &mut [MaybeUninit<Opaque>; PARAMS + 1],
) -> Option<()> {
    if twin.params.is_empty() || !params.is_null() {
        for (i, to) in array.iter_mut().enumerate().take(twin.params.len()) {
            // SAFETY: the driver reads as many pointers from it.
            to.write(unsafe { *params.add(i) });
        }
        return Some(());
    }
    let (buffer, size) = packed(extra)?;
    for (param, to) in twin.params.iter().zip(array) {
        if param.offset as usize + param.size as usize > size {
            return None;
        }
        to.write(buffer.wrapping_byte_add(param.offset as usize));
    }
    Some(())
}

/// The buffer of packed parameters in an `extra` list, and its size.
fn packed(extra: *mut Opaque) -> Option<(Opaque, usize)> {
    const END: usize = 0;
    const BUFFER: usize = 1;
    const SIZE: usize = 2;
    let (mut buffer, mut size) = (None, None);
    if extra.is_null() {
        return None;
    }
    for pair in 0..8 {
        // SAFETY: pairs of a name and a value, ended by END.
        let name = unsafe { *extra.add(2 * pair) } as usize;
        if name == END {
            break;
        }
        // SAFETY: as above.
        let value = unsafe { *extra.add(2 * pair + 1) };
        match name {
            BUFFER => buffer = Some(value),
            // SAFETY: the address of the size.
            SIZE => size = unsafe { value.cast::<usize>().as_ref() }.copied(),
            _ => return None,
        }
    }
    Some((buffer.filter(|buffer| !buffer.is_null())?, size?))
}

fn fill_block(twin: &Twin, parts: &[Part; MAPS], base: u64, number: u64, block: &mut [u64; CONTEXT / 8]) {
    for slot in &twin.slots {
        let part = |map: u32| parts.get(map as usize).copied().unwrap_or_default();
        let value = match slot.fill {
            Fill::Zero => 0,
            Fill::Base(map) => base + part(map).offset,
            Fill::Capacity(map) => part(map).capacity,
            Fill::Launch => number,
        };
        if let Some(word) = block.get_mut(slot.offset as usize / 8) {
            *word = value;
        }
    }
}

/// A clean segment; waits for one, if that may help.
fn take(pool: &Pool, bytes: u64, process: &Process) -> Result<Segment, Skip> {
    if pool.broken.load(Ordering::Acquire) {
        return Err(Skip::NoPool);
    }
    match pool.ring.take(bytes) {
        Ok(segment) => Ok(segment),
        Err(Refusal::TooLarge) => Err(Skip::TooLarge),
        Err(Refusal::Closed) => Err(Skip::NoPool),
        Err(Refusal::Full) => wait_for_segment(pool, bytes, process),
    }
}

#[cold]
fn wait_for_segment(pool: &Pool, bytes: u64, process: &Process) -> Result<Segment, Skip> {
    let deadline = Deadline::after_ms(process.settings.wait_ms);
    loop {
        collect::nudge();
        // What holds the pool may be waiting for something that this very thread does next; it is then waited for once.
        let progress = pool.ring.progress();
        if deadline.passed() || pool.stuck.load(Ordering::Relaxed) == progress {
            pool.stuck.store(progress, Ordering::Relaxed);
            return Err(Skip::Full);
        }
        time::sleep(Duration::from_micros(50));
        match pool.ring.take(bytes) {
            Err(Refusal::Full) if !pool.broken.load(Ordering::Acquire) => {}
            taken => return taken.map_err(|_| Skip::NoPool),
        }
    }
}

/// A grid that fits the device all at once may be one whose blocks wait for each other. `Some(false)`: with the probe's
/// registers it would no longer fit, and might wait for ever.
fn stays_resident(driver: &Driver, twin: Opaque, original: Opaque, shape: &Shape, sms: u32) -> Option<bool> {
    /// No multiprocessor holds more blocks.
    const MOST: u64 = 32;
    let blocks = shape.grid.iter().try_fold(1u64, |n, &d| n.checked_mul(u64::from(d)))?;
    let threads = shape.block.iter().try_fold(1u32, |n, &d| n.checked_mul(d))?;
    if blocks <= u64::from(sms) || blocks > MOST * u64::from(sms) {
        // A block a multiprocessor fits, if the twin can be launched at all.
        return None;
    }
    let ask = driver.active_blocks?;
    let fits = |function| {
        let (mut active, threads) = (0, c_int::try_from(threads).ok()?);
        // SAFETY: writes one int.
        let code = unsafe { ask(&raw mut active, function, threads, shape.shared as usize) };
        (code == 0).then(|| blocks <= u64::from(active.cast_unsigned()) * u64::from(sms))
    };
    if fits(twin)? { Some(true) } else { Some(!fits(original)?) }
}

macro_rules! plain_launch {
    ($name:ident, $null:expr) => {
        hook!($name(function: Opaque, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
            shared: c_uint, stream: Opaque, params: *mut Opaque, extra: *mut Opaque), _unused => {
            type Real = unsafe extern "C" fn(Opaque, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Opaque,
                *mut Opaque, *mut Opaque) -> Code;
            // SAFETY: the driver's function of that name has this type.
            let real: Real = unsafe { std::mem::transmute(real(Name::$name)) };
            // SAFETY: the program's own arguments, or a twin's function with its parameters.
            let call = move |function, params, extra| unsafe {
                real(function, gx, gy, gz, bx, by, bz, shared, stream, params, extra)
            };
            let Some(kernel) = selected_kernel(function) else { return call(function, params, extra) };
            let shape = Shape { grid: [gx, gy, gz], block: [bx, by, bz], shared, stream, null_stream: $null };
            selected(kernel, function, params, extra, &shape, &call)
        });
    };
}

plain_launch!(cuLaunchKernel, LEGACY);
plain_launch!(cuLaunchKernel_ptsz, PER_THREAD);

/// CUlaunchConfig.
#[repr(C)]
struct Config {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    stream: Opaque,
    attributes: *mut c_void,
    count: c_uint,
}

macro_rules! extended_launch {
    ($name:ident, $null:expr) => {
        hook!($name(config: *const c_void, function: Opaque, params: *mut Opaque, extra: *mut Opaque), pass => {
            type Real = unsafe extern "C" fn(*const c_void, Opaque, *mut Opaque, *mut Opaque) -> Code;
            // SAFETY: null, or the program's own struct.
            let Some(known) = (unsafe { config.cast::<Config>().as_ref() }) else { return pass() };
            // SAFETY: the driver's function of that name has this type.
            let real: Real = unsafe { std::mem::transmute(real(Name::$name)) };
            // SAFETY: the program's own arguments, or a twin's function with its parameters. The config goes on
            // untouched: clusters, dependent launches and whatever is added to it one day.
            let call = move |function, params, extra| unsafe { real(config, function, params, extra) };
            let Some(kernel) = selected_kernel(function) else { return call(function, params, extra) };
            let &Config { grid, block, shared, stream, .. } = known;
            selected(kernel, function, params, extra, &Shape { grid, block, shared, stream, null_stream: $null }, &call)
        });
    };
}

extended_launch!(cuLaunchKernelEx, LEGACY);
extended_launch!(cuLaunchKernelEx_ptsz, PER_THREAD);

macro_rules! cooperative_launch {
    ($name:ident, $null:expr) => {
        hook!($name(function: Opaque, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
            shared: c_uint, stream: Opaque, params: *mut Opaque), _unused => {
            type Real = unsafe extern "C" fn(Opaque, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Opaque,
                *mut Opaque) -> Code;
            // SAFETY: the driver's function of that name has this type.
            let real: Real = unsafe { std::mem::transmute(real(Name::$name)) };
            // SAFETY: the program's own arguments, or a twin's function with its parameters.
            let call = move |function, params, _: *mut Opaque| unsafe {
                real(function, gx, gy, gz, bx, by, bz, shared, stream, params)
            };
            let none = std::ptr::null_mut();
            let Some(kernel) = selected_kernel(function) else { return call(function, params, none) };
            let shape = Shape { grid: [gx, gy, gz], block: [bx, by, bz], shared, stream, null_stream: $null };
            selected(kernel, function, params, none, &shape, &call)
        });
    };
}

cooperative_launch!(cuLaunchCooperativeKernel, LEGACY);
cooperative_launch!(cuLaunchCooperativeKernel_ptsz, PER_THREAD);

// Counted, so that nothing is missing in silence.
hook!(cuGraphLaunch(graph: Opaque, stream: Opaque), real => { notes::GRAPHS.count(); real() });
hook!(cuGraphLaunch_ptsz(graph: Opaque, stream: Opaque), real => { notes::GRAPHS.count(); real() });
hook!(cuLaunch(function: Opaque), real => { notes::OTHER_LAUNCHES.count(); real() });
hook!(cuLaunchGrid(function: Opaque, w: c_int, h: c_int), real => { notes::OTHER_LAUNCHES.count(); real() });
hook!(cuLaunchGridAsync(function: Opaque, w: c_int, h: c_int, stream: Opaque), real => {
    notes::OTHER_LAUNCHES.count();
    real()
});
hook!(cuLaunchCooperativeKernelMultiDevice(list: *mut c_void, n: c_uint, flags: c_uint), real => {
    notes::OTHER_LAUNCHES.count();
    real()
});
