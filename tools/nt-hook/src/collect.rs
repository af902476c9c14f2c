//! The thread that fetches what probes have saved and writes it to the trace.
//!
//! One a process, started with the first pool or table. For each context it works in batches, in the order of the
//! launches:
//!
//! ```text
//! our stream:  wait for the events | copy the segments to the stage | clear them | write the stage's word
//! host:        see the word -> frames into the trace -> the segments are free again
//! ```
//!
//! A batch is closed at 16 launches or 1 ms after its first, whichever comes first: one launch at a time would make this
//! thread and the launching one fight over the driver's lock (11 µs a launch instead of 4), and a program that goes idle
//! must not leave its last launches behind. Two batches are under way at a time. Streams take more steps
//! ([`crate::batch`]); tables come in the end ([`crate::harvest`]).
//!
//! A launch wakes nobody as long as launches come: that would cost it more than all else that we do. The thread looks
//! every millisecond by itself, and sleeps for good when there was nothing for a while.
//!
//! All calls of this thread are made in relaxed capture mode, so that no capture of the program's breaks.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::time::Duration;

use crate::batch::{self, Batch};
use crate::context::{self, Context};
use crate::driver::{self, Driver, NOT_READY, Relaxed};
use crate::harvest::Harvest;
use crate::pool::{FREE, Launched, Pool};
use crate::process::Process;
use crate::quiet::{SignalsBlocked, planned_panic};
use crate::stage::{Failure, Stage, check};
use crate::time::{self, now_ns};
use crate::{home, kernel, notes, process};

/// Launches that close a batch.
const BATCH: usize = 16;
/// The most that one takes along.
const MOST: usize = 64;
/// How old the first launch of a batch may grow.
const AGE_NS: u64 = 1_000_000;
/// A stage's first size in bytes.
const STAGE: usize = 8 << 20;
/// Between two looks at a word, at first.
const POLL_NS: u64 = 40_000;
/// The longest between two looks at anything while launches come.
const SLOW_POLL_NS: u64 = 1_000_000;
/// A batch that is filling is looked at so often.
const FILLING_NS: u64 = 250_000;
/// After so long with nothing to do, the next launch has to wake us.
const SHALLOW_NS: u64 = 200_000_000;
/// After so long without a word, the driver is asked whether the stream still lives.
const DOUBT_NS: u64 = 100_000_000;

/// How the thread sleeps: not at all, until it looks again by itself, or until it is woken.
static SLEEPING: AtomicU32 = AtomicU32::new(AWAKE);
const AWAKE: u32 = 0;
const SHALLOW: u32 = 1;
const DEEP: u32 = 2;
static RUNNING: AtomicBool = AtomicBool::new(false);
/// CLOCK_MONOTONIC at which the last batch may come in; 0 while there is no end in sight.
static END_NS: AtomicU64 = AtomicU64::new(0);
/// Steps of batches so far.
static PROGRESS: AtomicU64 = AtomicU64::new(0);

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

/// Wakes it: there is something to do now.
pub(crate) fn nudge() {
    // Between what the caller has just published and the question whether anybody looks.
    fence(Ordering::SeqCst);
    if SLEEPING.load(Ordering::Relaxed) != AWAKE && SLEEPING.swap(AWAKE, Ordering::Relaxed) != AWAKE {
        time::wake(&SLEEPING);
    }
}

/// Wakes it if it does not look by itself. A load, most of the time.
#[inline]
pub(crate) fn nudge_if_deep() {
    fence(Ordering::SeqCst);
    if SLEEPING.load(Ordering::Relaxed) == DEEP {
        nudge();
    }
}

/// Lets it fetch what is under way and end, until `end_ns` at the latest or, as long as something comes in, until
/// nothing has for as long as that; returns when it has, or a little later.
pub(crate) fn finish(end_ns: u64) {
    const GRACE_NS: u64 = 200_000_000;
    END_NS.store(end_ns, Ordering::Release);
    while running() && now_ns() < END_NS.load(Ordering::Acquire) + GRACE_NS {
        nudge();
        time::sleep(Duration::from_micros(100));
    }
}

/// Something has come in: who waits for the end may wait anew.
fn progress(process: &Process) {
    PROGRESS.fetch_add(1, Ordering::Release);
    if END_NS.load(Ordering::Relaxed) != 0 {
        let end_ns = now_ns() + u64::from(process.settings.exit_ms) * 1_000_000;
        END_NS.fetch_max(end_ns, Ordering::AcqRel);
    }
}

/// Changes whenever something has come in.
pub(crate) fn came_in() -> u64 {
    PROGRESS.load(Ordering::Acquire)
}

/// When to look again, in nanoseconds from now.
type Next = u64;
/// Something was done: there may be more.
const NOW: Next = 0;
/// Nothing is out.
const IDLE: Next = u64::MAX;

fn run(process: &'static Process) {
    let Some(driver) = driver::get() else { return };
    let _relaxed = Relaxed::new(driver);
    let mut works: Vec<Work> = Vec::new();
    let mut busy_ns = now_ns();
    loop {
        planned_panic("collect");
        for context in context::contexts() {
            if context.is_used() && !works.iter().any(|work| std::ptr::eq(work.context, context)) {
                works.push(Work::new(context));
            }
        }
        let end_ns = END_NS.load(Ordering::Acquire);
        let mut next = IDLE;
        works.retain_mut(|work| {
            let step = work.step(driver, process, end_ns != 0);
            next = next.min(step.unwrap_or(IDLE));
            step.is_some()
        });
        let now = now_ns();
        if end_ns != 0 && (next == IDLE || now >= end_ns) {
            return;
        }
        match next {
            NOW => busy_ns = now,
            IDLE if now.saturating_sub(busy_ns) < SHALLOW_NS => sleep(SHALLOW, SLOW_POLL_NS, &works),
            IDLE => sleep(DEEP, 100_000_000, &works),
            next => {
                busy_ns = now;
                sleep(SHALLOW, next, &works);
            }
        }
    }
}

fn sleep(how: u32, for_ns: u64, works: &[Work]) {
    if END_NS.load(Ordering::Relaxed) != 0 {
        time::sleep(Duration::from_nanos(for_ns.min(POLL_NS)));
        return;
    }
    SLEEPING.store(how, Ordering::Relaxed);
    // Between the word that we sleep and a last look: see `nudge`.
    fence(Ordering::SeqCst);
    let out =
        || works.iter().filter_map(|work| work.context.made_pool()).any(|pool| pool.ring.out().count != 0);
    if how == SHALLOW || !(out() || home::any_retiring()) {
        time::wait(&SLEEPING, how, Duration::from_nanos(for_ns));
    }
    SLEEPING.store(AWAKE, Ordering::Relaxed);
}

/// The collector's side of a context.
struct Work {
    context: &'static Context,
    stages: [Option<Stage>; 2],
    /// Oldest first, each with the stage that it uses.
    under_way: VecDeque<(usize, Batch)>,
    /// Tables that are being fetched, and since when.
    harvest: Option<(Harvest, u64)>,
}

impl Work {
    fn new(context: &'static Context) -> Self {
        Work { context, stages: [None, None], under_way: VecDeque::new(), harvest: None }
    }

    /// Does what can be done without waiting. `None`: its context is at its end.
    fn step(&mut self, driver: &Driver, process: &Process, ending: bool) -> Option<Next> {
        let context = self.context;
        if context.retired.load(Ordering::Acquire) {
            // Nobody waits any longer; its handles may be gone.
            return None;
        }
        let retiring = context.is_retiring();
        // Of a broken pool, nothing that is out will come in.
        let pool = context.made_pool().filter(|pool| !pool.broken.load(Ordering::Acquire));
        let mut next = pool.map_or(IDLE, |pool| {
            self.work(driver, pool, process, ending || retiring).unwrap_or_else(|failure| {
                pool.broken.store(true, Ordering::Release);
                let (call, code) = (failure.call, kernel::code_text(failure.code));
                notes::say(format!(
                    "{call} failed ({code}): further launches in that context were not probed"
                ));
                IDLE
            })
        });
        next = next.min(self.harvest(driver, process, (ending || retiring) && next == IDLE));
        if !retiring || next != IDLE {
            return Some(next);
        }
        match context.made_pool() {
            Some(pool) if pool.broken.load(Ordering::Acquire) => {}
            Some(pool) if !pool.ring.close() => return Some(POLL_NS),
            _ => self.release(driver),
        }
        context.retired.store(true, Ordering::Release);
        None
    }

    fn release(&mut self, driver: &Driver) {
        if self.current(driver).is_ok() {
            for stage in self.stages.iter_mut().filter_map(Option::take) {
                stage.release(driver);
            }
            self.context.release(driver);
        }
    }

    /// Fetches the tables of what is at its end, or of everything.
    fn harvest(&mut self, driver: &Driver, process: &Process, everything: bool) -> Next {
        if self.harvest.is_none() && (everything || home::any_retiring()) {
            let mut homes = home::keeping(self.context);
            homes.retain(|home| (everything && home.tables.bytes != 0) || home.is_retiring());
            if !homes.is_empty() {
                self.harvest = Some((Harvest::new(homes), now_ns()));
            }
        }
        if self.harvest.is_none() {
            return IDLE;
        }
        let current = self.current(driver);
        let Some((harvest, since_ns)) = &mut self.harvest else { return IDLE };
        let patience = (now_ns().saturating_sub(*since_ns) / 4).clamp(POLL_NS, SLOW_POLL_NS);
        match current.and_then(|()| harvest.step(self.context, driver, process)) {
            Ok(false) => return patience,
            Ok(true) => self.harvest = None,
            Err(failure) => {
                if let Some((harvest, _)) = self.harvest.take() {
                    harvest.give_up(&failure);
                }
            }
        }
        NOW
    }

    fn current(&self, driver: &Driver) -> Result<(), Failure> {
        // SAFETY: a context that lives: whoever destroys it waits for us first.
        check("cuCtxSetCurrent", unsafe { (driver.cuCtxSetCurrent)(self.context.handle) })
    }

    fn work(
        &mut self,
        driver: &Driver,
        pool: &Pool,
        process: &Process,
        hurry: bool,
    ) -> Result<Next, Failure> {
        if pool.ring.out().count == 0 {
            return Ok(IDLE);
        }
        self.current(driver)?;
        Ok(self.complete(driver, pool, process)?.min(self.begin(driver, pool, hurry)?))
    }

    /// Writes out the batches that have come in.
    fn complete(&mut self, driver: &Driver, pool: &Pool, process: &Process) -> Result<Next, Failure> {
        let mut next = IDLE;
        while let Some((index, batch)) = self.under_way.front_mut() {
            let Some(stage) = self.stages.get_mut(*index).and_then(Option::as_mut) else { break };
            if !stage.done(driver, batch.word)? {
                let age = now_ns().saturating_sub(batch.begun_ns);
                if age < DOUBT_NS {
                    return Ok(next.min((age / 4).clamp(POLL_NS, SLOW_POLL_NS)));
                }
                // SAFETY: our own stream.
                match unsafe { (driver.cuStreamQuery)(pool.stream) } {
                    0 | NOT_READY => return Ok(next.min(SLOW_POLL_NS)),
                    code => return Err(Failure { call: "cuStreamQuery", code }),
                }
            }
            if batch.step(stage, pool, driver, process)? {
                self.under_way.pop_front();
            }
            progress(process);
            next = NOW;
        }
        Ok(next)
    }

    /// Closes a batch, if there is one to close, and makes its calls.
    fn begin(&mut self, driver: &Driver, pool: &Pool, hurry: bool) -> Result<Next, Failure> {
        let fetching: usize = self.under_way.iter().map(|(_, batch)| batch.out()).sum();
        let out = pool.ring.out();
        if out.count <= fetching {
            // What is under way says when to look again.
            return Ok(IDLE);
        }
        let free =
            (0..self.stages.len()).find(|&index| !self.under_way.iter().any(|(used, _)| *used == index));
        let Some(index) = free else { return Ok(IDLE) };

        let ready = (fetching..out.count.min(fetching + MOST)).map(|i| (out.oldest + i) % pool.slots.len());
        let ready = ready.map_while(|index| {
            let slot = pool.slots.get(index)?;
            let state = slot.state.load(Ordering::Acquire);
            if state == FREE { None } else { Some((index, state, slot.launched()?)) }
        });
        let ready: Vec<(usize, u32, Launched)> = ready.collect();
        let Some((_, _, first)) = ready.first() else { return Ok(POLL_NS) };
        let age = now_ns().saturating_sub(first.frame.launched_ns);
        let crowded = out.bytes > pool.ring.bytes() / 2 || out.count > pool.slots.len() / 2;
        if ready.len() < BATCH && age < AGE_NS && !hurry && !crowded {
            return Ok((AGE_NS - age).clamp(POLL_NS, FILLING_NS));
        }

        // As many as the stage holds; a first one that is too large for it gets a larger stage.
        let most = self.stages.get(index).and_then(Option::as_ref).map_or(STAGE, Stage::len);
        let (launches, len) = batch::choose(ready, pool, most);
        let stage = match self.stages.get_mut(index) {
            Some(Some(stage)) if stage.len() >= len => stage,
            Some(slot) => {
                if let Some(small) = slot.take() {
                    small.release(driver);
                }
                slot.insert(Stage::new(driver, len.max(STAGE))?)
            }
            None => return Ok(POLL_NS),
        };
        self.under_way.push_back((index, Batch::begin(launches, stage, pool, driver)?));
        Ok(NOW)
    }
}
