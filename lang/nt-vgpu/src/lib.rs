//! The software GPU: runs PTX kernels on the CPU, exactly and readably.
//!
//! ```
//! use nt_vgpu::{Arena, Launch, Options, Program};
//! let text = ".version 8.5\n.target sm_90\n.address_size 64
//! .entry double(.param .u64 p) {
//!     .reg .b32 %r<3>; .reg .b64 %rd<4>;
//!     ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;
//!     ld.global.u32 %r2, [%rd3]; add.u32 %r2, %r2, %r2; st.global.u32 [%rd3], %r2; ret;
//! }";
//! let (module, mut found) = nt_ptx::parse(text);
//! let info = nt_ptx::resolve(&module, &mut found);
//! let program = Program::load(&module, &info).unwrap();
//!
//! let mut memory = Arena::new();
//! let numbers = memory.upload(&[3, 0, 0, 0, 4, 0, 0, 0]);
//! let launch = Launch { block: [2, 1, 1], params: &numbers.to_le_bytes(), ..Launch::default() };
//! let outcome = nt_vgpu::run(&program, "double", launch, &memory, Options::default()).unwrap();
//! assert_eq!(memory.download(numbers), [6, 0, 0, 0, 8, 0, 0, 0]);
//! assert_eq!(outcome.stats.bytes(nt_vgpu::Space::Global), 16);
//! ```
//!
//! A pure function of text, memory ([`Memory`], a trait) and seed. It does no I/O: what a kernel prints and what goes
//! wrong in it are handed back. It is no model of time. Its semantics are its own, taken from the PTX ISA and checked
//! against a GPU, so that it can judge what is woven into kernels; what it does not know is a located [`Fault`] where it
//! is executed, never a wrong answer.
//!
//! | file | what is there |
//! |---|---|
//! | `decode/` | text → [`Program`]: where variables lie, what operands mean |
//! | `exec/` | the instructions, a file a family, decoding and doing side by side |
//! | `machine.rs`, `warp.rs` | who runs when |
//! | `operation.rs` | what each instruction does, for whoever asks |
//! | `watch.rs` | who accesses what, for whoever asks |
//! | `round.rs` | floating point beyond what Rust has |

mod code;
mod decode;
mod exec;
mod fault;
mod launch;
mod machine;
mod memory;
mod operation;
mod program;
mod random;
mod round;
mod special;
mod stats;
mod types;
mod warp;
mod watch;

pub use decode::{Segment, Variable};
pub use fault::{AccessError, Fault, FaultKind};
pub use launch::{Failure, Grid, Launch, Options, Outcome, Unlaunchable, run};
pub use memory::{Arena, Memory, Refused};
pub use operation::{Barriers, Element, Family, Group, Mbarriers, Operation};
pub use program::{Kernel, KernelParam, Program};
pub use stats::{Count, Place, Space, Stats};
pub use watch::Accessed;
