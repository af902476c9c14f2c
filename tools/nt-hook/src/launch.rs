//! Launches: the path that every kernel takes.
//!
//! An unselected kernel costs a table look-up and a counter ([`crate::calls`]). A selected one, once it is ready:
//!
//! 1. Is its stream being captured? Then it goes through: it runs when the graph does.
//! 2. A segment of the context's pool is taken, large enough for what this grid may save.
//! 3. Constants that the program may have written are copied to the twin's, in its stream.
//! 4. The twin is launched with the program's own arguments and one more, the context block, by value.
//! 5. An event is recorded behind it, and the slot handed to the collector.
//!
//! A kernel that only counts in tables has no segment, no slot and no event: beside the launch, one question to the
//! driver. Nothing here allocates, takes a lock across a driver call or can panic: indices come from lists that were
//! measured when the kernel was prepared. Whatever fails, the original runs, and its code is what the program gets.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nt_wire::{frame, message};

use crate::arguments::{CONTEXT, PARAMS, fill_block, fill_params, keep_values};
use crate::behind::{self, context_of};
use crate::driver::{self, Driver};
use crate::home::owner_of;
use crate::kernel::{self, HandleKind, Kernel, Skip, State};
use crate::layout::{self, Part};
use crate::load;
use crate::pool::{LAUNCHED, Launched, MAPS, Order, Pool, RETURNED, Slot};
use crate::prepare::{prepare, settle};
use crate::process::{self, Process};
use crate::ring::{Refusal, Segment};
use crate::tally::thread_pointer;
use crate::tie::{self, Copy};
use crate::time::{Deadline, now_ns};
use crate::{Code, Opaque, collect, notes, time};

/// Probed launches so far: the number of the next.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Of a launch, what the three launching calls have in common.
pub(crate) struct Shape {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub(crate) shared: u32,
    /// As the program passed it.
    pub(crate) stream: Opaque,
    /// What a null stream means to this call.
    pub(crate) null_stream: usize,
}

/// Function, parameters, extra: the real call with all else as the program wants it.
pub(crate) type Call<'c> = &'c dyn Fn(Opaque, *mut Opaque, *mut Opaque) -> Code;

/// Counts a launch, if that is all that there is to do with it: most often it is.
#[inline(always)]
pub(crate) fn is_just_counted(function: Opaque) -> bool {
    kernel::unselected_at_once(function).is_some_and(|kernel| kernel.launches.count_by_owner())
}

/// Any other launch: counts it, and launches the twin of a kernel that is to be probed.
pub(crate) fn launch(
    function: Opaque,
    params: *mut Opaque,
    extra: *mut Opaque,
    shape: &Shape,
    call: Call<'_>,
) -> Code {
    let known = kernel::of(function)
        .or_else(|| process::get().map(|_| (load::resolve(function), HandleKind::Function)));
    let Some((kernel, kind)) = known else { return call(function, params, extra) };
    kernel.launches.count();
    if kernel.unselected() {
        return call(function, params, extra);
    }
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
    let context = context_of(driver, stream).ok_or(Skip::NoPool)?;
    let holds = message::holds(shape.grid, shape.block);
    let twin = match kernel.twins.of(context.device.arch, holds) {
        Some(twin) => twin,
        None => prepare(kernel, holds, context, driver, process)?,
    };
    let owner = owner_of(twin, function, kind);
    let entered = match twin.homes.enter(context, owner, stream) {
        Some(entered) => entered,
        None => settle((kernel, twin), (function, kind), (context, stream), owner, driver, process)?,
    };
    let home = entered.home;
    let functions = (home.loaded.function, function);
    let Shape { grid, block, shared, .. } = *shape;
    if twin.resident.stays_resident(driver, functions, grid, block, shared, context.device.sms) == Some(false)
    {
        return Err(Some(Skip::Resident));
    }
    let mut array = [const { MaybeUninit::<Opaque>::uninit() }; PARAMS + 1];
    fill_params(twin, params, extra, &mut array).ok_or(Skip::Arguments)?;

    let mut parts = [Part::default(); MAPS];
    let segment = if twin.has_segment() {
        let pool = context.pool(driver, process).ok_or(Skip::NoPool)?;
        let laid_out = layout::of_launch(twin, grid, block, context.device.sms, pool.ring.most());
        let laid_out = laid_out.ok_or(Skip::TooLarge)?;
        parts = laid_out.parts;
        Some((pool, take(pool, laid_out.bytes, process)?))
    } else {
        None
    };
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut words = [0u64; CONTEXT / 8];
    let base = segment.map_or(0, |(pool, segment)| pool.base + segment.offset);
    fill_block(twin, (&parts, base), (&home.tables.parts, home.tables.base), number, &mut words);
    if let Some(last) = array.get_mut(twin.params.len()) {
        last.write(words.as_mut_ptr().cast());
    }
    let mut taken = None;
    if let Some((pool, segment)) = segment {
        let slot = &pool.slots[segment.slot % pool.slots.len()];
        if twin.wanted_params != 0 {
            keep_values(twin, &array, pool.values_to_keep(segment.slot, twin.wanted_params));
        }
        slot.note(Launched {
            kernel,
            twin,
            home: (home.tables.bytes != 0).then_some(home),
            frame: frame::Launch {
                number,
                kernel: twin.id,
                device: context.device.ordinal.cast_unsigned(),
                grid,
                block,
                shared,
                sms: context.device.sms,
                stream: shape.stream as u64,
                context: context.handle as u64,
                launched_ns: now_ns(),
                complete_ns: 0,
                clock_khz: context.device.clock_khz,
                params: Vec::new(),
            },
            segment,
            order: order(stream),
        });
        taken = Some(Taken { pool, slot, crowded: segment.crowded });
    }
    let behind = context.made_behind().filter(|_| home.outlives_launches());
    let noted = behind.is_none_or(|behind| behind.note(context, stream));

    let mut code = 0;
    if entered.copies {
        code = tie::copy(home.copies.iter().copied().filter(Copy::is_needed), stream, driver);
    }
    if code == 0 {
        code = call(functions.0, array.as_mut_ptr().cast(), std::ptr::null_mut());
    }
    if code != 0 {
        if let Some(Taken { slot, .. }) = taken {
            slot.state.store(RETURNED, Ordering::Release);
            collect::nudge_if_deep();
        }
        drop(entered);
        let original = call(function, params, extra);
        if original == 0 {
            // The twin is at fault: it needs what the original does not.
            quietly_fall(kernel, code);
        }
        return Ok(original);
    }
    kernel.probed.fetch_add(1, Ordering::Relaxed);
    if let Some(behind) = behind {
        home.launches.fetch_add(1, Ordering::Relaxed);
        if !noted && behind.stand(driver, stream).is_err() {
            quietly_say("the end of launches in a thread's default stream is not known");
        }
    }
    if let Some(taken) = taken {
        taken.hand_over(driver, stream);
    }
    Ok(0)
}

/// A slot, and what else is known when it was taken.
struct Taken<'p> {
    pool: &'p Pool,
    slot: &'p Slot,
    crowded: bool,
}

impl Taken<'_> {
    /// To the collector, behind a launch.
    fn hand_over(self, driver: &Driver, stream: Opaque) {
        // SAFETY: our event; a stream that has just taken a launch.
        if unsafe { (driver.cuEventRecord)(self.slot.event, stream) } == 0 {
            self.slot.state.store(LAUNCHED, Ordering::Release);
        } else {
            // When it ends cannot be known, so its segment is lost.
            self.pool.broken.store(true, Ordering::Release);
        }
        if self.crowded {
            collect::nudge();
        } else {
            collect::nudge_if_deep();
        }
    }
}

#[cold]
fn quietly_say(text: &str) {
    crate::quiet::guard(|| notes::say(text.into()));
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
        epoch: behind::DESTROYED.load(Ordering::Acquire),
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
