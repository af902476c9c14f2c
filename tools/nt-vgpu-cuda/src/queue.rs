//! Streams as queues: a worker thread takes the first operation of each stream that is ready to run.
//!
//! Operations of one stream run in order; between streams only events order anything. That is as much freedom as a GPU
//! has, and what shows whether a program, or the hook, has ordered what it relies on.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, Once};
use std::time::{Duration, Instant};

use crate::call::lock;

/// Something that a stream does.
pub(crate) enum Op {
    /// Takes some time, then has an effect.
    Run(Duration, Box<dyn FnOnce() + Send>),
    /// Completes a record of an event.
    Record(Arc<Event>, u64),
    /// Waits for a record of an event.
    Wait(Arc<Event>, u64),
}

/// An event: how often it was recorded, and which record has completed.
#[derive(Default)]
pub(crate) struct Event {
    /// Records asked for.
    pub(crate) recorded: AtomicU64,
    completed: AtomicU64,
    /// When the last one completed.
    time: Mutex<Option<Instant>>,
}

impl Event {
    /// Whether its last record has completed.
    pub(crate) fn done(&self) -> bool {
        self.reached(self.recorded.load(Ordering::Acquire))
    }

    fn reached(&self, record: u64) -> bool {
        record <= self.completed.load(Ordering::Acquire)
    }

    /// When it did.
    pub(crate) fn time(&self) -> Option<Instant> {
        *lock(&self.time)
    }
}

/// A queue, and since when its first operation has been running.
#[derive(Default)]
struct Queue {
    ops: VecDeque<Op>,
    running_since: Option<Instant>,
    /// Nothing more comes; the worker drops it once it is empty.
    closed: bool,
}

/// A stream's place among the queues.
pub(crate) struct Line(Mutex<Queue>);

static LINES: Mutex<Vec<Arc<Line>>> = Mutex::new(Vec::new());
static WORK: Condvar = Condvar::new();
static ENDED: Condvar = Condvar::new();

impl Line {
    /// A new one, which the worker knows.
    pub(crate) fn new() -> Arc<Line> {
        let line = Arc::new(Line(Mutex::default()));
        lock(&LINES).push(Arc::clone(&line));
        line
    }

    /// Adds an operation.
    pub(crate) fn push(&self, op: Op) {
        static WORKER: Once = Once::new();
        WORKER.call_once(|| _ = std::thread::Builder::new().name("vgpu".into()).spawn(work));
        lock(&self.0).ops.push_back(op);
        let _lines = lock(&LINES);
        WORK.notify_one();
    }

    /// Its stream is destroyed: what is in it still runs.
    pub(crate) fn close(&self) {
        lock(&self.0).closed = true;
    }

    fn over(&self) -> bool {
        let queue = lock(&self.0);
        queue.closed && queue.ops.is_empty()
    }

    /// Whether nothing is left to do.
    pub(crate) fn idle(&self) -> bool {
        lock(&self.0).ops.is_empty()
    }

    /// Waits until nothing is left to do.
    pub(crate) fn drain(&self) {
        let mut lines = lock(&LINES);
        while !self.idle() {
            let wait = ENDED.wait_timeout(lines, Duration::from_millis(10));
            lines = wait.map_or_else(|poisoned| poisoned.into_inner().0, |(lines, _)| lines);
        }
    }

    /// Runs what is ready; whether anything was, and whether something only needs time.
    fn step(&self) -> (bool, bool) {
        let mut moved = false;
        let mut queue = lock(&self.0);
        while let Some(op) = queue.ops.front() {
            match op {
                Op::Wait(event, record) if !event.reached(*record) => return (moved, false),
                Op::Run(time, _) if !time.is_zero() => {
                    let time = *time;
                    if queue.running_since.get_or_insert_with(Instant::now).elapsed() < time {
                        return (moved, true);
                    }
                }
                _ => {}
            }
            queue.running_since = None;
            // It stays in the queue while it runs, so that nobody takes the stream for idle. Others may add to the queue
            // meanwhile; nobody else takes from it.
            let op = std::mem::replace(&mut queue.ops[0], Op::Run(Duration::ZERO, Box::new(|| ())));
            drop(queue);
            match op {
                Op::Run(_, effect) => effect(),
                Op::Record(event, record) => {
                    event.completed.fetch_max(record, Ordering::AcqRel);
                    *lock(&event.time) = Some(Instant::now());
                }
                Op::Wait(..) => {}
            }
            queue = lock(&self.0);
            queue.ops.pop_front();
            moved = true;
        }
        (moved, false)
    }
}

fn work() {
    loop {
        let lines: Vec<Arc<Line>> = lock(&LINES).clone();
        let (mut moved, mut timed) = (false, false);
        for line in &lines {
            let step = line.step();
            moved |= step.0;
            timed |= step.1;
        }
        let mut lines = lock(&LINES);
        lines.retain(|line| !line.over());
        if moved {
            ENDED.notify_all();
            continue;
        }
        // A push that came after our look has notified nobody, hence the short limit.
        let limit = Duration::from_micros(if timed { 100 } else { 1000 });
        drop(WORK.wait_timeout(lines, limit));
    }
}
