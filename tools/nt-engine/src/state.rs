//! What a kernel needs beside its own text, and whether a twin in a module of its own may have it.
//!
//! ```text
//! .global .u32 count;             shared: the twin has the original's address for it (`nt_weave`, pins)
//! .const .f32 lut[256];           copied from the original's before each launch
//! .global .u64 ops[] = {add};     functions of the original module, which a twin must not call
//! .texref t;                      bound by the host, in the original module alone
//! .extern .func f;                defined by another module, to which no twin is linked
//! .extern .func vprintf;          the driver's own
//! .shared .f32 tile[1024];        exists once a block, in whichever module the kernel is
//! ```
//!
//! A function that is called through a pointer was compiled for the module that the pointer comes from: a kernel that calls
//! through one is refused, unless the pointer is an address of its own text that never was in memory. Nor may the twin give
//! addresses away: others would call its functions.

use crate::prepare::Refusal;
use nt_ptx::syntax::Module;
use nt_ptx::{ModuleInfo, Variable};

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
        if let Some(reason) = unshared(module, info, variable) {
            return Err(Refusal::input(reason));
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
    let reached = reach.functions.iter().map(|&index| nt_ptx::pointers(module, info, index as usize));
    for pointers in reached {
        if pointers.calls.iter().any(|call| !call.is_of_text) {
            return Err(Refusal::input(
                "it calls functions through pointers, which may be those of the original module",
            ));
        }
        if let Some((function, _)) = pointers.escapes.first() {
            return Err(Refusal::input(format!(
                "it gives away the address of `{function}`, which others would then call in the twin's module"
            )));
        }
    }
    Ok(())
}

/// Why a variable that a kernel reaches keeps it from having a twin.
fn unshared(module: &Module<'_>, info: &ModuleInfo<'_>, variable: &Variable<'_>) -> Option<String> {
    let Variable { name, space, .. } = variable;
    if let ".shared" | ".param" | ".local" = *space {
        return None;
    }
    let declaration = module.items.get(variable.item as usize).map_or("", |item| module.at(item.span));
    // Up to the initialiser, which may be long. `.global .texref t;` is the usual way to write `.texref t;`.
    let head = declaration.split('=').next().unwrap_or(declaration);
    let words = || head.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ','));
    if let Some(sort) = words().find(|word| matches!(*word, ".texref" | ".surfref" | ".samplerref" | ".tex"))
    {
        return Some(format!(
            "it uses the {sort} variable `{name}`, which is bound in the original module alone: texture and surface \
             objects, which are arguments, can be probed"
        ));
    }
    let is_function = |name: &&str| info.functions.iter().any(|function| function.name == *name);
    if let Some(function) = variable.names.iter().copied().find(is_function) {
        return Some(format!("`{name}`, which it uses, holds the address of the function `{function}`"));
    }
    if words().any(|word| word == ".managed") {
        return Some(format!(
            "it uses the managed variable `{name}`: memory of `cudaMallocManaged` can be probed"
        ));
    }
    None
}
