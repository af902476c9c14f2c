//! Places spans and edits: brackets them, numbers them, and puts each at its byte.
//!
//! ```text
//!     /*nt:0{*/.reg .b32 %nt_s_start;
//!     {
//!     mov.u32 %nt_s_start, %clock;
//!     }
//!     /*}nt:0*/ld.param.u64     %rd1, [k_param_0];
//! ```
//!
//! A span behind an instruction says so, and what it needs of what that overwrites is saved by a span before it:
//!
//! ```text
//!     /*nt:8{*/.reg .b64 %nt_v7_0; { mov.b64 %nt_v7_0, %rd1; } /*}nt:8*/ld.global.u64 %rd1, [%rd1];/*nt:7 after{*/{ … } /*}nt:7*/
//! ```
//!
//! One for all lanes that get to an instruction with a guard says that: `/*nt:9 reach{*/`. Before a branch it need not.
//!
//! Numbers count through the module. The registers of states live at function level, in the first span of the kernel;
//! where the program has states but nothing to do at the entry, that span has a number but is no site.

use crate::Refused;
use crate::bodies::Site;
use crate::emit;
use crate::instructions;
use crate::plan::{Keep, Plan};
use crate::sites::{Kind, entry};
use crate::streams::Turn;
use nt_diag::Diagnostic;
use nt_ir::Prepared;
use nt_ptx::syntax::Module;
use nt_ptx::{Edits, ModuleInfo};
use std::fmt::Write;

/// The spans of a kernel.
pub(crate) struct Spans {
    pub(crate) edits: Edits,
    /// The sites that got a span, as indices, and its number. A probe that has no effect in a kernel leaves none.
    pub(crate) numbers: Vec<(usize, u32)>,
    /// The number for the next kernel's first span.
    pub(crate) next: u32,
}

/// Emits and places the spans of all sites of a kernel.
pub(crate) fn run(
    module: &Module<'_>,
    info: &ModuleInfo<'_>,
    probe: &Prepared,
    plan: &Plan<'_>,
    function: usize,
    first: u32,
) -> Result<Spans, Refused> {
    let sites = &plan.sites;
    let mut spans = Spans { edits: Edits::new(), numbers: Vec::with_capacity(sites.len()), next: first };
    let has_states =
        plan.states.contains(&Keep::Register) || !plan.streams.list.is_empty() || !plan.slots.list.is_empty();
    if has_states
        && sites.first().is_none_or(|site| site.found.kind != Kind::Entry)
        && let Some(found) = entry(module, info, function)
    {
        // States must be set before anything runs, though no probe does.
        spans.place(module, probe, plan, function, &Site { found, bodies: Vec::new(), turn: Turn::Alone })?;
    }
    for (index, site) in sites.iter().enumerate() {
        let number = spans.place(module, probe, plan, function, site)?;
        spans.numbers.extend(number.map(|number| (index, number)));
    }
    // Behind all else at these places.
    for site in &plan.slots.ends {
        spans.place(module, probe, plan, function, site)?;
    }
    Ok(spans)
}

impl Spans {
    /// Emits a span and puts it at its site; its number, unless there is nothing to do.
    fn place(
        &mut self,
        module: &Module<'_>,
        probe: &Prepared,
        plan: &Plan<'_>,
        function: usize,
        site: &Site<'_>,
    ) -> Result<Option<u32>, Refused> {
        let number = self.next;
        let emit::Emitted { text, saves } = emit::run(probe, plan, site, number).map_err(|why| {
            let name = module.functions.get(function).map_or(nt_diag::Span::at(0), |f| f.name);
            let kernel = module.at(name);
            Box::new(Diagnostic::error(
                "cannot-weave",
                name,
                format!("kernel `{kernel}` cannot be probed: {why}"),
            ))
        })?;
        if text.is_empty() {
            return Ok(None);
        }
        self.next += 1;
        if !saves.is_empty()
            && let Some((at, _)) = site.found.statement.and_then(|at| instructions::place(module, at))
        {
            let number = self.next;
            self.next += 1;
            self.edits.insert(at, format!("/*nt:{number}{{*/{saves}\n\t/*}}nt:{number}*/"));
        }
        let stands = match site.found.kind {
            Kind::After(_) => " after",
            _ if site.found.reach && instructions::is_guarded(module, site.found.next) => " reach",
            _ => "",
        };
        let span = format!("/*nt:{number}{stands}{{*/{text}\n\t/*}}nt:{number}*/");
        self.edits.insert(site.found.offset, span);
        Ok(Some(number))
    }
}

/// A declared edit: `text` in the place of `old`, whose bytes stand in hex before it, since they may hold `*/`.
pub(crate) fn replacement(old: &str, text: &str) -> String {
    let mut hex = String::with_capacity(2 * old.len());
    for byte in old.bytes() {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    format!("/*nt:edit {hex}{{*/{text}/*}}nt:edit*/")
}
