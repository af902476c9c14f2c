//! `-l`: the tracepoints of the chosen kernels, as `nt_engine::tracepoints` lists them.

use nt_engine::tracepoints::{HEAD, rows};
use nt_ptx::ModuleInfo;
use nt_ptx::syntax::Module;

pub(crate) fn run(module: &Module<'_>, info: &ModuleInfo<'_>, kernels: &[usize]) -> String {
    HEAD.to_owned() + &rows(module, info, kernels)
}
