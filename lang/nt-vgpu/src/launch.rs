//! Launches: what a kernel is started with, and its blocks, one cluster at a time.
//!
//! A front spreads [`Grid::run_cluster`] over threads; [`run`] does all of them in order. Blocks of a cluster run
//! together, since they read each other's shared memory; a cooperative launch is one cluster to the scheduler.

use crate::fault::Fault;
use crate::machine::Machine;
use crate::memory::Memory;
use crate::program::{Kernel, Program};
use crate::stats::Stats;
use crate::watch::Accessed;
use std::fmt;

/// Threads of a block.
const MOST_THREADS: u64 = 1024;
/// Bytes of shared memory that a block can have: those of `sm_90`.
const MOST_SHARED: u64 = 227 * 1024;
/// Blocks of a cluster, non-portable sizes included.
const MOST_BLOCKS_OF_CLUSTER: u64 = 16;
/// Blocks of a cooperative launch that an SM can hold.
const MOST_TOGETHER: u64 = 32;

/// What a kernel is launched with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch<'a> {
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Blocks of a cluster in x, y and z; `None` for what the kernel requires, else one block.
    pub cluster: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// The parameters, laid out as [`Kernel::params`] says.
    pub params: &'a [u8],
    /// Where [`Program::globals`] were put.
    pub globals: u64,
    /// Where [`Program::constants`] were put.
    pub constants: u64,
    /// May all blocks wait for each other?
    pub cooperative: bool,
}

impl Default for Launch<'_> {
    fn default() -> Self {
        Launch {
            grid: [1; 3],
            block: [1; 3],
            cluster: None,
            shared: 0,
            params: &[],
            globals: 0,
            constants: 0,
            cooperative: false,
        }
    }
}

/// How the device behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Shuffles the schedule, keeps groups of lanes apart and joins them late, and fills shared memory with garbage.
    /// `None` for the plain order.
    pub seed: Option<u64>,
    /// Instructions that the warps of a cluster may execute before the launch is given up.
    pub max_steps: u64,
    /// Multiprocessors: `%nsmid`, and what `%smid` is taken modulo.
    pub sms: u32,
}

impl Default for Options {
    fn default() -> Self {
        Options { seed: None, max_steps: 1 << 32, sms: 4 }
    }
}

/// Why a launch was not even started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unlaunchable(pub String);

impl fmt::Display for Unlaunchable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unlaunchable {}

/// Why a launch did not run to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Its shape does not fit the kernel or the device.
    Unlaunchable(Unlaunchable),
    /// Something went wrong on the way.
    Fault(Box<Fault>),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Unlaunchable(why) => why.fmt(f),
            Failure::Fault(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for Failure {}

/// What a launch, or a cluster of it, left beside memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What was done.
    pub stats: Stats,
    /// What `vprintf` would have printed.
    pub printed: Vec<u8>,
}

/// A launch that fits its kernel, ready to run.
#[derive(Debug)]
pub struct Grid<'a> {
    pub(crate) program: &'a Program,
    pub(crate) kernel: &'a Kernel,
    pub(crate) launch: Launch<'a>,
    pub(crate) options: Options,
    pub(crate) cluster: [u32; 3],
}

impl<'a> Grid<'a> {
    /// Checks a launch against its kernel.
    ///
    /// # Errors
    /// If there is no such kernel, or its launch could not be made on a device either.
    pub fn new(
        program: &'a Program,
        kernel: &str,
        launch: Launch<'a>,
        options: Options,
    ) -> Result<Self, Unlaunchable> {
        let refuse = |why: String| Err(Unlaunchable(why));
        let Some(kernel) = program.kernel(kernel) else {
            return refuse(format!("no kernel `{kernel}`"));
        };
        let name = &kernel.name;
        let cluster = launch.cluster.or(kernel.required_cluster).unwrap_or([1; 3]);
        let threads = volume(launch.block);
        if volume(launch.grid) == 0 || volume(cluster) == 0 || options.sms == 0 {
            return refuse(format!("`{name}`: a grid, a cluster or a device of nothing"));
        }
        if threads == 0 || threads > kernel.most_threads.map_or(MOST_THREADS, u64::from).min(MOST_THREADS) {
            return refuse(format!("`{name}`: blocks of {threads} threads"));
        }
        if let Some(required) = kernel.required_block
            && required != launch.block
        {
            return refuse(format!(
                "`{name}`: blocks of {:?}, the kernel requires {required:?}",
                launch.block
            ));
        }
        if kernel.required_cluster.is_some_and(|required| required != cluster) {
            return refuse(format!("`{name}`: clusters of {cluster:?}, which the kernel does not allow"));
        }
        if launch.grid.iter().zip(cluster).any(|(blocks, of)| blocks % of != 0)
            || volume(cluster) > MOST_BLOCKS_OF_CLUSTER
        {
            return refuse(format!("`{name}`: clusters of {cluster:?} in a grid of {:?}", launch.grid));
        }
        if kernel.shared_bytes(launch.shared) > MOST_SHARED {
            return refuse(format!(
                "`{name}`: {} bytes of shared memory",
                kernel.shared_bytes(launch.shared)
            ));
        }
        if launch.params.len() < kernel.param_bytes as usize {
            let given = launch.params.len();
            return refuse(format!("`{name}`: {given} bytes of parameters, needs {}", kernel.param_bytes));
        }
        if launch.cooperative && volume(launch.grid) > MOST_TOGETHER * u64::from(options.sms) {
            return refuse(format!("`{name}`: too many blocks for a cooperative launch"));
        }
        Ok(Grid { program, kernel, launch, options, cluster })
    }

    /// How many clusters there are; without clusters, how many blocks.
    pub fn clusters(&self) -> u64 {
        if self.launch.cooperative { 1 } else { volume(self.launch.grid) / volume(self.cluster) }
    }

    /// The SM that a cluster runs on. Clusters of one SM run one after the other, so that their clocks tell it.
    pub fn sm(&self, cluster: u64) -> u32 {
        // A remainder of a u32.
        (cluster % u64::from(self.options.sms)) as u32
    }

    /// Runs one cluster, from 0 to [`Grid::clusters`], adding to `outcome`. `clock` is the SM's, before and after.
    ///
    /// # Errors
    /// What ended it early; memory is then as the cluster left it.
    pub fn run_cluster(
        &self,
        cluster: u64,
        clock: &mut u64,
        memory: &dyn Memory,
        outcome: &mut Outcome,
    ) -> Result<(), Box<Fault>> {
        Machine::new(self, cluster, *clock, memory, outcome, None).run(clock)
    }

    /// Runs one cluster as [`Grid::run_cluster`] does, and tells `watch` of every access to memory before it is
    /// performed. Of accesses of barriers in shared memory nothing is told.
    ///
    /// # Errors
    /// What ended it early; memory is then as the cluster left it.
    pub fn run_cluster_watched(
        &self,
        cluster: u64,
        clock: &mut u64,
        memory: &dyn Memory,
        outcome: &mut Outcome,
        watch: &mut dyn FnMut(&Accessed<'_>),
    ) -> Result<(), Box<Fault>> {
        Machine::new(self, cluster, *clock, memory, outcome, Some(watch)).run(clock)
    }

    /// An empty outcome with room for all counts.
    pub fn outcome(&self) -> Outcome {
        Outcome { stats: Stats::new(self.program.code.len()), printed: Vec::new() }
    }
}

/// Runs a whole launch, cluster after cluster.
///
/// # Errors
/// If the launch does not fit, or at the first fault.
pub fn run(
    program: &Program,
    kernel: &str,
    launch: Launch<'_>,
    memory: &dyn Memory,
    options: Options,
) -> Result<Outcome, Failure> {
    let grid = Grid::new(program, kernel, launch, options).map_err(Failure::Unlaunchable)?;
    let mut outcome = grid.outcome();
    let mut clocks = vec![0; grid.options.sms as usize];
    for cluster in 0..grid.clusters() {
        // `sm` is below `sms`.
        let clock = &mut clocks[grid.sm(cluster) as usize];
        grid.run_cluster(cluster, clock, memory, &mut outcome).map_err(Failure::Fault)?;
    }
    Ok(outcome)
}

pub(crate) fn volume(of: [u32; 3]) -> u64 {
    of.iter().map(|&n| u64::from(n)).fold(1, u64::saturating_mul)
}
