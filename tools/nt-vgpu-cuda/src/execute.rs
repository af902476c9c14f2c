//! Kernels being executed: a launch, when its turn in its stream comes.
//!
//! Blocks are spread over threads by multiprocessor: those of one run in order, so that `%clock` and `%smid` tell a
//! story, and several multiprocessors run side by side if the kernel cannot tell (`order.rs`). What comes out is the
//! same in every run. What goes wrong is said once, with kernel, line of the PTX, block and thread, and the context is
//! lost, as with the real driver.

use crate::call::INVALID_VALUE;
use crate::program::{Loaded, Places};
use crate::settings::Settings;
use crate::view::View;
use crate::{Code, health, log, say};
use nt_vgpu::{AccessError, Fault, FaultKind, Grid, Launch, Options, Stats};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// How a kernel is launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) cluster: Option<[u32; 3]>,
    pub(crate) shared: u32,
    pub(crate) cooperative: bool,
}

/// A launch that waits in its stream.
pub(crate) struct Execution {
    loaded: Arc<Loaded>,
    places: Arc<Places>,
    kernel: String,
    shape: Shape,
    params: Vec<u8>,
    context: usize,
    settings: &'static Settings,
}

/// What the parts of a launch made together.
#[derive(Default)]
struct Total {
    stats: Stats,
    /// By cluster.
    printed: Vec<(u64, Vec<u8>)>,
    /// Of the first cluster that has one.
    fault: Option<(u64, Box<Fault>)>,
}

impl Execution {
    /// A launch of a kernel with its parameters, each at its offset.
    pub(crate) fn new(
        loaded: Arc<Loaded>,
        kernel: &str,
        shape: Shape,
        params: Vec<u8>,
        context: usize,
        settings: &'static Settings,
    ) -> Result<Execution, Code> {
        let places = loaded.places(context)?;
        let execution =
            Execution { loaded, places, kernel: kernel.to_owned(), shape, params, context, settings };
        execution.grid().map_err(|why| {
            say::once(&format!("a launch was refused: {why}"));
            INVALID_VALUE
        })?;
        Ok(execution)
    }

    fn grid(&self) -> Result<Grid<'_>, nt_vgpu::Unlaunchable> {
        let Shape { grid, block, cluster, shared, cooperative } = self.shape;
        let (globals, constants) = (self.places.globals, self.places.constants);
        let launch =
            Launch { grid, block, cluster, shared, params: &self.params, globals, constants, cooperative };
        let Settings { seed, sms, steps, .. } = *self.settings;
        Grid::new(self.loaded.program(), &self.kernel, launch, Options { seed, max_steps: steps, sms })
    }

    /// Runs it, unless its context is lost.
    pub(crate) fn run(&self) {
        if health::check(self.context).is_err() {
            return;
        }
        let started = Instant::now();
        let done = catch_unwind(AssertUnwindSafe(|| self.spread()));
        let Ok(result) = done else {
            // The panic's own message is on stderr by now.
            say::once(&format!("kernel `{}`: a fault of the software GPU itself", self.kernel));
            return health::fail(self.context, health::LAUNCH_FAILED);
        };
        let mut printed = result.printed;
        printed.sort_by_key(|(cluster, _)| *cluster);
        print(&printed.into_iter().flat_map(|(_, text)| text).collect::<Vec<_>>());
        log::line(|| {
            let (steps, lanes) = (result.stats.steps, result.stats.lanes());
            let ms = started.elapsed().as_secs_f64() * 1e3;
            let global = result.stats.bytes(nt_vgpu::Space::Global);
            let pid = std::process::id();
            format!("ran {pid} {} steps={steps} lanes={lanes} global={global} ms={ms:.1}", self.kernel)
        });
        if let Some((_, fault)) = result.fault {
            let of = if self.params_are_woven() { " (lines of the text with the probe in it)" } else { "" };
            say::once(&format!("{fault}{of}"));
            health::fail(self.context, code(&fault.kind));
        }
    }

    /// Whether a probe was woven into the kernel.
    fn params_are_woven(&self) -> bool {
        let kernel = self.loaded.program().kernel(&self.kernel);
        kernel.and_then(|kernel| kernel.params.last()).is_some_and(|last| last.name.ends_with("ctx"))
    }

    /// Runs all clusters, on as many threads as are allowed.
    fn spread(&self) -> Total {
        let view = View::of_device();
        let Ok(grid) = self.grid() else { return Total::default() };
        let sms = u64::from(self.settings.sms).min(grid.clusters());
        let together = Mutex::new(Total::default());
        let (next, stop) = (AtomicU32::new(0), AtomicU64::new(u64::MAX));
        let side_by_side = self.loaded.is_unordered(&self.kernel) && !self.shape.cooperative;
        let threads = if side_by_side { self.settings.threads.min(sms as usize) } else { 1 };
        if threads <= 1 {
            let mut clocks = vec![0; self.settings.sms as usize];
            let all = (0..grid.clusters()).collect::<Vec<_>>();
            part(&grid, all.into_iter(), &mut clocks, &view, &stop, &together);
        } else {
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    let (grid, view, together, next, stop) = (&grid, view.clone(), &together, &next, &stop);
                    scope.spawn(move || {
                        loop {
                            let sm = u64::from(next.fetch_add(1, Ordering::Relaxed));
                            if sm >= sms {
                                break;
                            }
                            let step = self.settings.sms as usize;
                            let mut clocks = vec![0; step];
                            part(
                                grid,
                                (sm..grid.clusters()).step_by(step),
                                &mut clocks,
                                &view,
                                stop,
                                together,
                            );
                        }
                    });
                }
            });
        }
        together.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Runs some clusters, in order, up to one that goes wrong.
fn part(
    grid: &Grid<'_>,
    clusters: impl Iterator<Item = u64>,
    clocks: &mut [u64],
    view: &View,
    stop: &AtomicU64,
    together: &Mutex<Total>,
) {
    let mut outcome = grid.outcome();
    let mut result = Total::default();
    for cluster in clusters {
        // Those before the first that goes wrong run, so that it is the same one each time.
        if cluster > stop.load(Ordering::Relaxed) {
            break;
        }
        let Some(clock) = clocks.get_mut(grid.sm(cluster) as usize) else { break };
        let done = grid.run_cluster(cluster, clock, view, &mut outcome);
        if !outcome.printed.is_empty() {
            result.printed.push((cluster, std::mem::take(&mut outcome.printed)));
        }
        if let Err(fault) = done {
            stop.fetch_min(cluster, Ordering::Relaxed);
            result.fault = Some((cluster, fault));
            break;
        }
    }
    let mut together = crate::call::lock(together);
    together.stats.add(&outcome.stats);
    together.printed.append(&mut result.printed);
    if result.fault.as_ref().is_some_and(|new| together.fault.as_ref().is_none_or(|old| new.0 < old.0)) {
        together.fault = result.fault;
    }
}

/// What the driver answers from now on.
fn code(kind: &FaultKind) -> Code {
    match kind {
        FaultKind::Access { reason: AccessError::Misaligned, .. } => health::MISALIGNED_ADDRESS,
        FaultKind::Access { .. } => health::ILLEGAL_ADDRESS,
        FaultKind::NotExecuted(_) | FaultKind::Undefined(_) => health::ILLEGAL_INSTRUCTION,
        FaultKind::Deadlock(_) | FaultKind::Steps(_) => health::LAUNCH_TIMEOUT,
        FaultKind::Trap | FaultKind::Stack => health::LAUNCH_FAILED,
    }
}

/// Hands what a kernel printed to the C library's stdout, where it keeps its place among what the program prints.
fn print(text: &[u8]) {
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
    }
    if !text.is_empty() {
        // SAFETY: the C library's own stream, and as many bytes as there are.
        unsafe { libc::fwrite(text.as_ptr().cast(), 1, text.len(), stdout) };
    }
}
