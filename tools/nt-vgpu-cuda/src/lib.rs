//! A `libcuda.so.1` that needs no GPU.
//!
//! It speaks the CUDA driver API as far as driver-API programs, the hook and their tests make use of it, keeps "device"
//! memory on the host, and runs streams as real queues, so that what is not ordered is not ordered here either.
//!
//! With `NT_VGPU=1` it is the software GPU: kernels are executed, from their PTX, by `nt-vgpu` ([`execute`]). Without, it
//! is the tests' stub driver, in which kernels do nothing: what would a program see, and which launches with which
//! parameters would the device?
//!
//! As the real one does, it looks itself up with `dlsym` in `cuInit`, registers an exit handler there after which every
//! call answers 4, refuses calls that would break a stream capture (900), and knows only the kernels that an image
//! holds. Calls that it does not know answer 801 and are named on stderr ([`missing`]); of what nobody has called yet it
//! has no symbol, and `cuGetProcAddress` answers 500.
//!
//! | variable | meaning |
//! |---|---|
//! | `NT_VGPU` | `1`: kernels are executed; `nt-run --vgpu` sets it |
//! | `NT_VGPU_SEED` | a number that shuffles the schedule; without one it is the plain one |
//! | `NT_VGPU_THREADS` | threads that blocks are spread over (default: as many as there are processors) |
//! | `NT_VGPU_SMS` | multiprocessors of the device (8) |
//! | `NT_VGPU_STEPS` | instructions of a cluster after which its kernel is given up (2^34) |
//! | `NT_VGPU_LOG` | a file; a line is appended for each launch and for whatever else tests may want to see ([`log`]) |
//! | `NT_VGPU_FAULT` | things that go wrong, separated by commas ([`plan`]) |
#![allow(unsafe_code, reason = "the driver's interface is C")]
// The driver's names, and the driver's long argument lists.
#![allow(non_snake_case, clippy::too_many_arguments)]

mod call;
mod context;
mod effect;
mod execute;
mod health;
mod host;
mod image;
mod launch;
mod log;
mod lookup;
mod memory;
mod missing;
mod module;
mod order;
mod plan;
mod program;
mod queue;
mod say;
mod settings;
mod stream;
mod view;

use std::ffi::{c_int, c_void};

/// A handle or an address that is handed on.
type Opaque = *mut c_void;

/// What every call returns; 0 is success.
type Code = c_int;
