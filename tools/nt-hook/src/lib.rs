//! `libnt_hook.so`, which `nt-run` puts first into `LD_PRELOAD` of the programs it starts.
//!
//! It stands between a program and the CUDA driver: it sees modules loaded and kernels launched, asks the parent
//! (`nt-run`, over the socket of the run folder) for a woven twin of each selected kernel, launches twins in the
//! originals' place, and writes what the probes saved to a trace file of its own.
//!
//! ```text
//! boot, enter       into the program: dlsym, dlvsym, dlopen          table     which names, whose addresses
//! exec              into its children                                handles   CUfunction -> kernel
//! image, load       modules: what is in them, whose are the kernels  parent    the talk with nt-run
//! calls             the launching calls                              launch    what becomes of a selected kernel's
//! prepare, home     its first launch, and where
//! twin              what runs in its place
//! tie, symbols      what a twin shares with its original             claim     for which stream
//! arguments         what it is launched with
//! layout            where that lies
//! ring, pool, stage memory for what probes save                      collect   the thread that fetches it,
//!                                                                    batch     some launches at a time
//! behind, harvest   tables, which are fetched in the end             resident  grids that must fit as a whole
//! record, trace     the file                                         exit      the ways out
//! ```
//!
//! Promises, in the order of their weight: a failure of ours leaves the program as it would be without us (the
//! original kernel runs, the driver's own codes come back); nothing is printed, no signal handler is installed, the
//! program is never ended; in the program's streams stand its own launches, an event after each probed one that has
//! something to fetch, and copies of constants before those that have copies of them.
#![allow(unsafe_code, reason = "the hook speaks C with the program above and the driver below")]
#![cfg_attr(test, allow(dead_code, reason = "unit tests export nothing, so what only C calls has no caller"))]

#[cfg(test)]
mod abi;
mod arguments;
mod batch;
mod behind;
mod boot;
mod calls;
mod claim;
mod collect;
mod context;
mod driver;
mod enter;
mod env;
mod exec;
mod exit;
mod graph;
mod handles;
mod harvest;
mod home;
mod image;
mod jit;
mod kernel;
mod launch;
mod layout;
mod load;
mod notes;
mod parent;
mod pool;
mod prepare;
mod process;
mod quiet;
mod record;
mod resident;
mod ring;
mod stage;
mod symbols;
mod table;
mod tally;
mod tie;
mod time;
mod trace;
mod twin;

/// A pointer that we hand on and never follow: a driver handle, a symbol.
type Opaque = *mut std::ffi::c_void;

/// What driver calls return; 0 is success.
type Code = std::ffi::c_int;
