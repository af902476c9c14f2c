//! What a kernel needs beside its own text, and whether a twin in a module of its own may have it.
//!
//! ```text
//! .global .u32 count;             of a twin's own it would be another one: refused by name
//! .const .f32 lut[256];           likewise: the host fills the original's
//! .extern .func f;                defined by another module, to which no twin is linked
//! .extern .func vprintf;          the driver's own
//! .shared .f32 tile[1024];        exists once a block, in whichever module the kernel is
//! ```

use crate::prepare::Refusal;
use nt_ptx::ModuleInfo;
use nt_ptx::syntax::Module;

/// Functions that the driver links to any module.
const OF_THE_DRIVER: [&str; 4] = ["vprintf", "malloc", "free", "__assertfail"];

/// Refuses the function (an index into [`Module::functions`]) that reaches what a twin cannot share or have.
pub(crate) fn may_be_twin(
    module: &Module<'_>,
    info: &ModuleInfo<'_>,
    function: usize,
) -> Result<(), Refusal> {
    let reach = info.reach(&[function]);
    let variables = reach.variables.iter().filter_map(|&index| info.variables.get(index as usize));
    for variable in variables {
        if !matches!(variable.space, ".shared" | ".param" | ".local") {
            return Err(Refusal::input(format!(
                "it uses the module's {} variable `{}`, of which a probed kernel would have a copy of its own",
                variable.space, variable.name
            )));
        }
    }
    let functions = || reach.functions.iter().filter_map(|&index| module.functions.get(index as usize));
    let defined = |name: &str| functions().any(|f| f.body.is_some() && module.at(f.name) == name);
    for function in functions().filter(|function| function.body.is_none()) {
        let name = module.at(function.name);
        if defined(name) || OF_THE_DRIVER.contains(&name) {
            continue;
        }
        return Err(Refusal::input(if name.starts_with("cuda") {
            format!("it launches kernels itself, or waits for such (it calls `{name}`)")
        } else {
            format!("it calls `{name}`, which is in another module that it is linked to")
        }));
    }
    Ok(())
}
