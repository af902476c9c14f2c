//! Streams, events, capture, and the word that a stream can write.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::call::{
    CAPTURE_IMPLICIT, CAPTURE_INVALIDATED, CAPTURE_UNSUPPORTED, INVALID_VALUE, NOT_READY, NOT_SUPPORTED,
    Objects, calls, lock, put,
};
use crate::context::{current, need_current};
use crate::plan::plan;
use crate::queue::{Event, Line, Op};
use crate::{Code, Opaque, health, log, memory};

/// A stream.
pub(crate) struct Stream {
    /// Whose it is.
    pub(crate) context: usize,
    non_blocking: bool,
    line: Arc<Line>,
    /// 0 none, 1 active, 2 invalidated.
    capture: AtomicI32,
}

/// A graph: nothing of it is kept.
struct Graph {
    _place: u8,
}

static STREAMS: Objects<Stream> = Objects::new();
static EVENTS: Objects<Event> = Objects::new();
static GRAPHS: Objects<Graph> = Objects::new();
/// The null stream of each context.
static NULL_STREAMS: Mutex<BTreeMap<usize, Arc<Stream>>> = Mutex::new(BTreeMap::new());
/// Whether any stream is captured: the question that most calls ask.
static CAPTURING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// CUstreamCaptureMode: 0 global, 1 thread-local, 2 relaxed.
    static MODE: Cell<c_int> = const { Cell::new(0) };
}

/// CU_STREAM_PER_THREAD and CU_STREAM_LEGACY are numbers in the place of handles.
const SPECIAL: usize = 2;

/// The stream of a handle. The null stream, under each of its three names, is one of the current context.
pub(crate) fn get(handle: Opaque) -> Result<Arc<Stream>, Code> {
    if handle as usize > SPECIAL {
        return STREAMS.get(handle);
    }
    let context = need_current()?;
    let mut all = lock(&NULL_STREAMS);
    let stream = all.entry(context).or_insert_with(|| Arc::new(Stream::new(context, false)));
    Ok(Arc::clone(stream))
}

impl Stream {
    fn new(context: usize, non_blocking: bool) -> Stream {
        Stream { context, non_blocking, line: Line::new(), capture: AtomicI32::new(0) }
    }

    /// Whether what is asked of it becomes part of a graph.
    pub(crate) fn captured(&self) -> bool {
        self.capture.load(Ordering::Acquire) == 1
    }

    /// Adds an operation, unless it becomes part of a graph, which is never run.
    pub(crate) fn push(&self, op: Op) {
        if !self.captured() {
            self.line.push(op);
        }
    }
}

/// Adds an operation to the stream of a handle.
pub(crate) fn push(handle: Opaque, op: Op) -> Result<(), Code> {
    get(handle)?.push(op);
    Ok(())
}

fn of_context(context: usize) -> Vec<Arc<Stream>> {
    let mut all = STREAMS.all();
    all.extend(lock(&NULL_STREAMS).get(&context).cloned());
    all.retain(|stream| stream.context == context);
    all
}

/// Waits for all streams of a context.
pub(crate) fn drain_context(context: usize) {
    for stream in of_context(context) {
        stream.line.drain();
    }
}

/// Waits for the streams that the null stream is ordered with.
pub(crate) fn drain_blocking(context: usize) {
    for stream in of_context(context).iter().filter(|stream| !stream.non_blocking) {
        stream.line.drain();
    }
}

/// How a call gets on with a capture that is going on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forbidden {
    /// Breaks it unless the thread is in relaxed mode.
    Strict,
    /// Breaks it in every mode.
    Always,
}

/// For calls that may not be made while a stream is captured: they fail, and the capture is lost.
pub(crate) fn forbid_under_capture(forbidden: Forbidden) -> Result<(), Code> {
    if !CAPTURING.load(Ordering::Acquire) || (forbidden == Forbidden::Strict && MODE.get() == 2) {
        return Ok(());
    }
    let mut broken = false;
    for stream in STREAMS.all() {
        broken |= stream.capture.compare_exchange(1, 2, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    }
    if broken {
        log::line(|| format!("broken-capture {}", std::process::id()));
        return Err(CAPTURE_UNSUPPORTED);
    }
    Ok(())
}

/// Handles that mean the stream that all blocking ones are ordered with.
fn is_legacy(stream: Opaque) -> bool {
    stream as usize <= 1
}

/// The streams under capture that the current context's legacy stream is ordered with.
fn captured_with_legacy() -> Result<Vec<Arc<Stream>>, Code> {
    if !CAPTURING.load(Ordering::Acquire) {
        return Ok(Vec::new());
    }
    let mut streams = of_context(need_current()?);
    streams.retain(|stream| !stream.non_blocking && stream.captured());
    Ok(streams)
}

/// Whatever is asked of the legacy stream while one that it is ordered with is captured fails and breaks the capture,
/// in every mode.
pub(crate) fn forbid_implicit(stream: Opaque) -> Result<(), Code> {
    if !is_legacy(stream) {
        return Ok(());
    }
    let captured = captured_with_legacy()?;
    for stream in &captured {
        stream.capture.store(2, Ordering::Release);
        log::line(|| format!("broken-capture {}", std::process::id()));
    }
    if captured.is_empty() { Ok(()) } else { Err(CAPTURE_IMPLICIT) }
}

fn write_value(on: Opaque, address: u64, value: u64) -> Result<(), Code> {
    if plan().no_write_value {
        return Err(NOT_SUPPORTED);
    }
    if !address.is_multiple_of(8) || !memory::holds(address, 8) {
        return Err(INVALID_VALUE);
    }
    let write = move || {
        // SAFETY: aligned, and inside an allocation, as was just seen.
        unsafe { &*(address as *const AtomicU64) }.store(value, Ordering::Release);
    };
    push(on, Op::Run(Duration::ZERO, Box::new(write)))
}

calls! {
    fn cuStreamCreate(out: *mut Opaque, flags: c_uint) {
        let context = need_current()?;
        put(out, STREAMS.add(Arc::new(Stream::new(context, flags & 1 != 0))))
    }
    fn cuStreamCreateWithPriority(out: *mut Opaque, flags: c_uint, _priority: c_int) {
        let context = need_current()?;
        put(out, STREAMS.add(Arc::new(Stream::new(context, flags & 1 != 0))))
    }
    fn cuStreamDestroy_v2(stream: Opaque) {
        // It does not wait for what the stream still has to do.
        STREAMS.remove(stream)?.line.close();
        Ok(())
    }
    fn cuStreamSynchronize(stream: Opaque) {
        let stream = get(stream)?;
        forbid_under_capture(Forbidden::Strict)?;
        if stream.non_blocking { stream.line.drain() } else { drain_blocking(stream.context) }
        health::check(stream.context)
    }
    fn cuStreamQuery(stream: Opaque) {
        forbid_implicit(stream)?;
        let stream = get(stream)?;
        forbid_under_capture(if stream.captured() { Forbidden::Always } else { Forbidden::Strict })?;
        if stream.line.idle() { health::check(stream.context) } else { Err(NOT_READY) }
    }
    fn cuStreamGetCtx(stream: Opaque, out: *mut Opaque) {
        let context = if stream as usize > SPECIAL { get(stream)?.context } else { current() };
        put(out, context as Opaque)
    }
    fn cuStreamWaitEvent(stream: Opaque, event: Opaque, _flags: c_uint) {
        let event = EVENTS.get(event)?;
        let record = event.recorded.load(Ordering::Acquire);
        push(stream, Op::Wait(event, record))
    }
    fn cuStreamWriteValue64_v2(stream: Opaque, address: u64, value: u64, _flags: c_uint) {
        write_value(stream, address, value)
    }
    fn cuStreamWriteValue64(stream: Opaque, address: u64, value: u64, _flags: c_uint) {
        write_value(stream, address, value)
    }

    fn cuStreamBeginCapture_v2(stream: Opaque, _mode: c_int) {
        if stream as usize <= SPECIAL {
            return Err(CAPTURE_UNSUPPORTED);
        }
        get(stream)?.capture.store(1, Ordering::Release);
        CAPTURING.store(true, Ordering::Release);
        Ok(())
    }
    fn cuStreamEndCapture(stream: Opaque, out: *mut Opaque) {
        let captured = get(stream)?.capture.swap(0, Ordering::AcqRel);
        CAPTURING.store(STREAMS.all().iter().any(|stream| stream.captured()), Ordering::Release);
        match captured {
            1 => put(out, GRAPHS.add(Arc::new(Graph { _place: 0 }))),
            2 => Err(CAPTURE_INVALIDATED),
            _ => Err(INVALID_VALUE),
        }
    }
    fn cuStreamIsCapturing(stream: Opaque, status: *mut c_int) {
        if is_legacy(stream) && !captured_with_legacy()?.is_empty() {
            return Err(CAPTURE_IMPLICIT);
        }
        put(status, get(stream)?.capture.load(Ordering::Acquire))
    }
    fn cuThreadExchangeStreamCaptureMode(mode: *mut c_int) {
        // SAFETY: the caller's own variable.
        let new = *unsafe { mode.as_ref() }.ok_or(INVALID_VALUE)?;
        put(mode, MODE.replace(new))
    }
    fn cuGraphCreate(out: *mut Opaque, _flags: c_uint) { put(out, GRAPHS.add(Arc::new(Graph { _place: 0 }))) }
    // Taken, and then forgotten: what cannot be instantiated is never run.
    fn cuGraphAddKernelNode(out: *mut Opaque, graph: Opaque, _after: *const Opaque, _n: usize, _params: Opaque) {
        GRAPHS.get(graph)?;
        put(out, graph)
    }
    fn cuGraphAddKernelNode_v2(out: *mut Opaque, graph: Opaque, _after: *const Opaque, _n: usize, _params: Opaque) {
        GRAPHS.get(graph)?;
        put(out, graph)
    }
    fn cuGraphAddNode_v2(out: *mut Opaque, graph: Opaque, _after: *const Opaque, _edges: Opaque, _n: usize, _params: Opaque) {
        GRAPHS.get(graph)?;
        put(out, graph)
    }
    fn cuGraphDestroy(graph: Opaque) { GRAPHS.remove(graph).map(|_| ()) }
    fn cuGraphLaunch(_graph: Opaque, _stream: Opaque) { Err(NOT_SUPPORTED) }

    fn cuEventCreate(out: *mut Opaque, _flags: c_uint) {
        need_current()?;
        put(out, EVENTS.add(Arc::default()))
    }
    fn cuEventDestroy_v2(event: Opaque) { EVENTS.remove(event).map(|_| ()) }
    fn cuEventRecord(event: Opaque, stream: Opaque) {
        forbid_implicit(stream)?;
        let (event, stream) = (EVENTS.get(event)?, get(stream)?);
        if stream.captured() {
            return Ok(());
        }
        let record = event.recorded.fetch_add(1, Ordering::AcqRel) + 1;
        stream.push(Op::Record(event, record));
        Ok(())
    }
    fn cuEventQuery(event: Opaque) {
        forbid_under_capture(Forbidden::Strict)?;
        if EVENTS.get(event)?.done() { health::check(current()) } else { Err(NOT_READY) }
    }
    fn cuEventSynchronize(event: Opaque) {
        forbid_under_capture(Forbidden::Strict)?;
        let event = EVENTS.get(event)?;
        while !event.done() {
            std::thread::sleep(Duration::from_micros(20));
        }
        health::check(current())
    }
    fn cuEventElapsedTime(out: *mut f32, from: Opaque, to: Opaque) {
        let (from, to) = (EVENTS.get(from)?, EVENTS.get(to)?);
        let time = |event: &Event| -> Result<Instant, Code> { event.time().filter(|_| event.done()).ok_or(NOT_READY) };
        put(out, time(&to)?.saturating_duration_since(time(&from)?).as_secs_f32() * 1000.0)
    }
    fn cuEventElapsedTime_v2(out: *mut f32, from: Opaque, to: Opaque) {
        cuEventElapsedTime(out, from, to);
        Ok(())
    }
}
