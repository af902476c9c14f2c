//! The thread that fetches what probes have saved and writes it to the trace.
//!
//! One a process, started with the first pool. For each context it works in batches, in the order of the launches:
//!
//! ```text
//! our stream:  wait for the events | copy the segments to the stage | clear them | write the stage's word
//! host:        see the word -> frames into the trace -> the segments are free again
//! ```
//!
//! A batch is closed at 16 launches or 1 ms after its first, whichever comes first: one launch at a time would make this
//! thread and the launching one fight over the driver's lock (11 µs a launch instead of 4), and a program that goes idle
//! must not leave its last launches behind. Two batches are under way at a time.
//!
//! All calls of this thread are made in relaxed capture mode, so that no capture of the program's breaks.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::time::Duration;

use nt_wire::frame;

use crate::driver::{self, Driver, NOT_READY, Relaxed};
use crate::pool::{self, Context, FREE, LAUNCHED, Launched, Pool};
use crate::process::{Process, lock};
use crate::quiet::{SignalsBlocked, planned_panic};
use crate::stage::{Failure, Stage, check};
use crate::time::{self, now_ns};
use crate::{kernel, notes, process};

/// Launches that close a batch.
const BATCH: usize = 16;
/// The most that one takes along.
const MOST: usize = 64;
/// How old the first launch of a batch may grow.
const AGE_NS: u64 = 1_000_000;
/// A stage's first size in bytes.
const STAGE: usize = 8 << 20;
/// Between two looks at a word.
const POLL: Duration = Duration::from_micros(40);
/// Between two looks at a word that has let us wait for long.
const SLOW_POLL: Duration = Duration::from_millis(1);
/// After so long without a word, the driver is asked whether the stream still lives.
const DOUBT_NS: u64 = 100_000_000;

/// 1 while the thread sleeps for want of work.
static SLEEPING: AtomicU32 = AtomicU32::new(0);
static RUNNING: AtomicBool = AtomicBool::new(false);
/// CLOCK_MONOTONIC at which the last batch may come in; 0 while there is no end in sight.
static END_NS: AtomicU64 = AtomicU64::new(0);

/// Starts the thread, once.
pub(crate) fn start(process: &'static Process) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        RUNNING.store(true, Ordering::Release);
        // The new thread inherits the mask: no signal of the program's is ever handled on it.
        let _blocked = SignalsBlocked::new();
        let thread = std::thread::Builder::new().name("nt-collect".into()).stack_size(256 << 10);
        let started = thread.spawn(move || {
            if catch_unwind(AssertUnwindSafe(|| run(process))).is_err() {
                process::give_up();
            }
            RUNNING.store(false, Ordering::Release);
        });
        if let Err(error) = started {
            notes::say(format!("the collector could not be started: {error}"));
            process::give_up();
            RUNNING.store(false, Ordering::Release);
        }
    });
}

/// Whether it is there to be waited for.
pub(crate) fn running() -> bool {
    RUNNING.load(Ordering::Acquire)
}

/// Tells it that there is something to do. A load, unless it sleeps.
pub(crate) fn nudge() {
    // Between what the caller has just published and the question whether anybody looks.
    fence(Ordering::SeqCst);
    if SLEEPING.load(Ordering::Relaxed) == 1 && SLEEPING.swap(0, Ordering::Relaxed) == 1 {
        time::wake(&SLEEPING);
    }
}

/// Lets it fetch what is under way and end, until `end_ns` at the latest; returns when it has, or a little later.
pub(crate) fn finish(end_ns: u64) {
    const GRACE_NS: u64 = 200_000_000;
    END_NS.store(end_ns, Ordering::Release);
    while running() && now_ns() < end_ns + GRACE_NS {
        nudge();
        time::sleep(Duration::from_micros(100));
    }
}

/// What a pool's work is waiting for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    /// Something was done: look again.
    Now,
    /// A batch is on its way, or filling up.
    Soon,
    /// The same, and it has been for long.
    Later,
    /// Nothing is out.
    Idle,
}

fn run(process: &'static Process) {
    let Some(driver) = driver::get() else { return };
    let _relaxed = Relaxed::new(driver);
    let mut works: Vec<Work> = Vec::new();
    loop {
        planned_panic("collect");
        for context in pool::contexts() {
            if context.made_pool().is_some() && !works.iter().any(|work| std::ptr::eq(work.context, context))
            {
                works.push(Work { context, stages: [None, None], under_way: VecDeque::new() });
            }
        }
        let end_ns = END_NS.load(Ordering::Acquire);
        let mut next = Next::Idle;
        works.retain_mut(|work| {
            let step = work.step(driver, process, end_ns != 0);
            next = next.min(step.unwrap_or(Next::Idle));
            step.is_some()
        });
        if end_ns != 0 && (next == Next::Idle || now_ns() >= end_ns) {
            return;
        }
        match next {
            Next::Now => {}
            Next::Soon => time::sleep(POLL),
            Next::Later => time::sleep(SLOW_POLL),
            Next::Idle => sleep_until_nudged(&works),
        }
    }
}

fn sleep_until_nudged(works: &[Work]) {
    SLEEPING.store(1, Ordering::Relaxed);
    // Between the word that we sleep and a last look: see `nudge`.
    fence(Ordering::SeqCst);
    let out = works.iter().filter_map(|work| work.context.made_pool()).any(|pool| pool.ring.out().count != 0);
    if !out && END_NS.load(Ordering::Relaxed) == 0 {
        time::wait(&SLEEPING, 1, Duration::from_millis(100));
    }
    SLEEPING.store(0, Ordering::Relaxed);
}

/// The collector's side of a context.
struct Work {
    context: &'static Context,
    stages: [Option<Stage>; 2],
    /// Oldest first.
    under_way: VecDeque<Batch>,
}

/// Launches that are fetched together.
struct Batch {
    /// Oldest first.
    launches: Vec<Fetched>,
    /// Which stage, and what its word says when all is there; `None` if nothing is to be fetched.
    stage: Option<(usize, u64)>,
    /// When its calls were made.
    begun_ns: u64,
}

/// A launch in a batch.
pub(crate) struct Fetched {
    /// Its slot in the pool.
    pub(crate) slot: usize,
    /// What it is.
    pub(crate) launched: Launched,
    /// Where its segment lies in the stage; `None` if the twin did not run.
    pub(crate) at: Option<usize>,
}

impl Work {
    /// Does what can be done without waiting. `None`: its context is at its end.
    fn step(&mut self, driver: &Driver, process: &Process, ending: bool) -> Option<Next> {
        let context = self.context;
        let pool = context.made_pool()?;
        if context.retired.load(Ordering::Acquire) {
            // Nobody waits any longer; its handles may be gone.
            return None;
        }
        let retiring = context.retiring.load(Ordering::Acquire);
        if pool.broken.load(Ordering::Acquire) {
            // Nothing that is out will come in.
            context.retired.store(retiring, Ordering::Release);
            return Some(Next::Idle);
        }
        let next = self.work(driver, pool, process, ending || retiring).unwrap_or_else(|failure| {
            pool.broken.store(true, Ordering::Release);
            let (call, code) = (failure.call, kernel::code_text(failure.code));
            notes::say(format!("{call} failed ({code}): further launches in that context were not probed"));
            Next::Idle
        });
        if retiring && self.under_way.is_empty() && pool.ring.close() {
            for stage in self.stages.iter_mut().filter_map(Option::take) {
                stage.release(driver);
            }
            pool.release(driver);
            context.retired.store(true, Ordering::Release);
            return None;
        }
        Some(next)
    }

    fn work(
        &mut self,
        driver: &Driver,
        pool: &Pool,
        process: &Process,
        hurry: bool,
    ) -> Result<Next, Failure> {
        // SAFETY: a context that lives: whoever destroys it waits for us first.
        check("cuCtxSetCurrent", unsafe { (driver.cuCtxSetCurrent)(self.context.handle) })?;
        Ok(self.complete(driver, pool, process)?.min(self.begin(driver, pool, hurry)?))
    }

    /// Writes out the batches that have come in.
    fn complete(&mut self, driver: &Driver, pool: &Pool, process: &Process) -> Result<Next, Failure> {
        let mut next = Next::Idle;
        while let Some(batch) = self.under_way.front() {
            let stage = batch.stage.and_then(|(index, word)| Some((self.stages.get(index)?.as_ref()?, word)));
            if let Some((stage, word)) = stage
                && !stage.done(driver, word)?
            {
                if now_ns().saturating_sub(batch.begun_ns) < DOUBT_NS {
                    return Ok(next.min(Next::Soon));
                }
                // SAFETY: our own stream.
                match unsafe { (driver.cuStreamQuery)(pool.stream) } {
                    0 | NOT_READY => return Ok(next.min(Next::Later)),
                    code => return Err(Failure { call: "cuStreamQuery", code }),
                }
            }
            write(batch, stage.map(|(stage, _)| stage), process);
            for fetched in &batch.launches {
                if let Some(slot) = pool.slots.get(fetched.slot) {
                    slot.state.store(FREE, Ordering::Release);
                }
                pool.ring.give_back(fetched.launched.segment);
            }
            self.under_way.pop_front();
            next = Next::Now;
        }
        Ok(next)
    }

    /// Closes a batch, if there is one to close, and makes its calls.
    fn begin(&mut self, driver: &Driver, pool: &Pool, hurry: bool) -> Result<Next, Failure> {
        let fetching: usize = self.under_way.iter().map(|batch| batch.launches.len()).sum();
        let out = pool.ring.out();
        if out.count <= fetching {
            return Ok(if fetching == 0 { Next::Idle } else { Next::Soon });
        }
        let free = (0..self.stages.len()).find(|&index| {
            !self.under_way.iter().any(|batch| batch.stage.is_some_and(|(used, _)| used == index))
        });
        let Some(index) = free else { return Ok(Next::Soon) };

        let ready = (fetching..out.count.min(fetching + MOST)).map(|i| (out.oldest + i) % pool.slots.len());
        let ready = ready.map_while(|index| {
            let slot = pool.slots.get(index)?;
            let state = slot.state.load(Ordering::Acquire);
            if state == FREE { None } else { Some((index, state == LAUNCHED, slot.launched()?)) }
        });
        let ready: Vec<(usize, bool, Launched)> = ready.collect();
        let Some((_, _, first)) = ready.first() else { return Ok(Next::Soon) };
        let old = now_ns().saturating_sub(first.frame.launched_ns) >= AGE_NS;
        let crowded = out.bytes > pool.ring.bytes() / 2 || out.count > pool.slots.len() / 2;
        if ready.len() < BATCH && !old && !hurry && !crowded {
            return Ok(Next::Soon);
        }

        // As many as the stage holds; a first one that is too large for it gets a larger stage.
        let largest =
            ready.iter().find(|(_, used, _)| *used).map_or(0, |(_, _, first)| first.segment.len as usize);
        let stage = match self.stages.get_mut(index) {
            Some(Some(stage)) if stage.len() >= largest => stage,
            Some(slot) => {
                if let Some(small) = slot.take() {
                    small.release(driver);
                }
                slot.insert(Stage::new(driver, largest.max(STAGE))?)
            }
            None => return Ok(Next::Soon),
        };
        let (mut launches, mut end) = (Vec::new(), 0);
        for (slot, used, launched) in ready {
            let len = if used { launched.segment.len as usize } else { 0 };
            if end + len > stage.len() {
                break;
            }
            launches.push(Fetched { slot, launched, at: used.then_some(end) });
            end += len;
        }
        let word = if end == 0 { None } else { Some(stage.fetch(driver, pool, &launches)?) };
        let stage = word.map(|word| (index, word));
        self.under_way.push_back(Batch { launches, stage, begun_ns: now_ns() });
        Ok(Next::Now)
    }
}

/// Writes the frames of a batch.
fn write(batch: &Batch, stage: Option<&Stage>, process: &Process) {
    let Some(stage) = stage else { return };
    let complete_ns = now_ns();
    let mut trace = lock(&process.trace);
    let Some(trace) = trace.as_mut() else { return };
    for fetched in &batch.launches {
        let Some(at) = fetched.at else { continue };
        let launched = &fetched.launched;
        let written = write_launch(trace, launched, complete_ns, |offset, len| stage.bytes(at + offset, len));
        match written {
            Ok(()) => _ = launched.kernel.collected.fetch_add(1, Ordering::Relaxed),
            Err(error) => notes::say(format!("data was lost, the trace could not be written: {error}")),
        }
    }
}

fn write_launch<'s>(
    trace: &mut crate::trace::Trace,
    launched: &Launched,
    complete_ns: u64,
    bytes: impl Fn(usize, usize) -> &'s [u8],
) -> std::io::Result<()> {
    let kernel = launched.kernel;
    if !kernel.written.load(Ordering::Relaxed) {
        trace.frame(&frame::Kernel {
            id: kernel.id,
            arch: launched.twin.arch,
            name: kernel.name.to_owned(),
            manifest: launched.twin.manifest.clone(),
        })?;
        kernel.written.store(true, Ordering::Relaxed);
    }
    trace.frame(&frame::Launch { complete_ns, ..launched.frame })?;
    for (map, part) in launched.parts.iter().enumerate().take(launched.twin.maps.len()) {
        let data = bytes(part.offset as usize, part.bytes as usize);
        trace.data(
            frame::Data {
                launch: launched.frame.number,
                map: map as u32,
                kernel: kernel.id,
                units: part.units,
                capacity: part.capacity,
                bytes: part.bytes,
                context: launched.frame.context,
                device: launched.frame.device,
            },
            data,
        )?;
    }
    Ok(())
}
