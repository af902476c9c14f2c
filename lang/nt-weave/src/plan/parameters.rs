//! What a kernel's head and names must be like for a context to be added: a list that can be read to its end, room for one
//! parameter more, no special register's name given to something else.

use super::Needs;
use crate::Refused;
use crate::emit::SPECIAL_REGISTERS;
use nt_diag::{Diagnostic, Span};
use nt_ptx::TokenKind;
use nt_ptx::syntax::{Function, ItemKind, Kind, Module, Version};
use nt_ptx::version::{LARGE_PARAMETERS, parameter_limit};

/// Is the last parameter known? Behind one that could not be read the context would not be last.
pub(super) fn check_list(module: &Module<'_>, entry: &Function) -> Result<(), Refused> {
    let Some(list) = entry.list else { return Ok(()) };
    let from = entry.params.last().map_or(list.start + 1, |last| last.span.end);
    let rest = Span::new(from, list.end.saturating_sub(1));
    let Some((_, at)) = module.code(rest).next() else { return Ok(()) };
    let name = module.at(entry.name);
    let what = format!("the parameters of kernel `{name}` cannot be read to their end");
    Err(Box::new(Diagnostic::error("parameter-list", at, what).label("no parameter begins here")))
}

/// Is there room for the context behind the kernel's parameters?
pub(super) fn check_parameters(
    module: &Module<'_>,
    entry: &Function,
    context: u32,
    needs: &mut Needs,
) -> Result<(), Refused> {
    let taken = entry.params.iter().map(|param| param.offset.saturating_add(param.size)).max().unwrap_or(0);
    let total = taken.checked_next_multiple_of(8).and_then(|at| at.checked_add(context)).unwrap_or(u32::MAX);
    let version = module.version.map_or((0, 0), Version::pair);
    if total <= parameter_limit(version) {
        return Ok(());
    }
    let raised = LARGE_PARAMETERS;
    if total <= parameter_limit(raised) {
        needs.at_least(raised, format!("{total} bytes of parameters with the context"));
        return Ok(());
    }
    let limit = parameter_limit(version.max(raised));
    let name = module.at(entry.name);
    Err(Box::new(
        Diagnostic::error(
            "no-room-for-context",
            entry.name,
            format!("kernel `{name}` has no room for one parameter more"),
        )
        .label(format!(
            "{taken} bytes of parameters and {context} of context make {total}, the limit is {limit}"
        )),
    ))
}

/// A program may give something the name of a special register, most likely a register in an inner scope; a probe
/// there would read that instead. Nobody does so on purpose: a kernel that sees such a name anywhere is refused.
pub(super) fn check_shadows(module: &Module<'_>, entry: &Function) -> Result<(), Refused> {
    let declarations = module.body(entry).iter().filter(|s| matches!(s.kind, Kind::Declaration(_)));
    let inside = declarations.map(|declaration| declaration.span).flat_map(|span| {
        let maybe = SPECIAL_REGISTERS.iter().any(|name| module.at(span).contains(name));
        let names = maybe.then(|| module.code(span).filter(|(kind, _)| *kind == TokenKind::Name));
        names.into_iter().flatten().map(|(_, at)| at)
    });
    let variables = module.items.iter().filter_map(|item| match item.kind {
        ItemKind::Variable { name, .. } => Some(name),
        _ => None,
    });
    let mut names = inside.chain(entry.params.iter().map(|param| param.name)).chain(variables);
    let Some(at) = names.find(|&at| SPECIAL_REGISTERS.contains(&module.at(at))) else { return Ok(()) };
    let name = module.at(at);
    Err(Box::new(
        Diagnostic::error(
            "special-register-shadowed",
            at,
            format!("`{name}` is a name of the module's own here"),
        )
        .label("the kernel cannot be probed: inserted code would read it instead of the special register"),
    ))
}

/// `.reqntid 256, 1, 1` fixes the block's size; dimensions that are not given are 1.
pub(super) fn required_block(module: &Module<'_>, entry: &Function) -> Option<[u32; 3]> {
    let directive = entry.directives.iter().find(|d| module.at(d.name) == ".reqntid")?;
    let mut block = [1; 3];
    let mut axes = block.iter_mut();
    for number in module.at(directive.arguments).split(',') {
        *axes.next()? = number.trim().parse().ok().filter(|n| (1..=1024).contains(n))?;
    }
    Some(block)
}
