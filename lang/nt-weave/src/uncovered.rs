//! Finds the calls of a kernel whose callees cannot be probed: through pointers, and of functions that are not in the module.
//!
//! ```text
//! call (r), %rd3, (a), proto;      through a pointer: to f or g if the text tells, who knows otherwise
//! call.uni (r), vprintf, (a, b);   the driver brings it along
//! call.uni f, ();                  .extern .func f: linked later
//! ```
//!
//! What is in there stays as it is, so that the counts of a probe that could have sites there are lower bounds. That is said,
//! with the place of the call. A function that is called both ways is probed where it is called by its name.

use crate::callees::{Calls, callee};
use crate::choose::{self, Names};
use crate::sites::Places;
use nt_diag::{Diagnostic, Span};
use nt_ptx::syntax::{Kind, Module};
use nt_ptx::{ModuleInfo, pointers};
use std::collections::{BTreeMap, BTreeSet};

/// Calls of a kernel, or of what it reaches by direct calls, into what is not probed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uncovered {
    /// The kernel.
    pub kernel: String,
    /// The function that holds the first of them, or the kernel.
    pub function: String,
    /// Where they go.
    pub callee: Callee,
    /// How many there are in the text.
    pub calls: u32,
    /// The first of them.
    pub span: Span,
    /// Its line and column, from 1.
    pub position: (u32, u32),
}

/// What is called and not probed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Callee {
    /// Whatever a pointer leads to: one of these, or anything if there are none.
    Pointer(BTreeSet<String>),
    /// A function that another module defines.
    Elsewhere(String),
    /// A function that the driver brings along.
    Driver(String),
}

impl Uncovered {
    /// Must counts that say nothing of it be taken for lower bounds? The driver's functions are no part of the program.
    pub fn is_of_program(&self) -> bool {
        !matches!(self.callee, Callee::Driver(_))
    }

    /// What is called: "calls through a pointer, to `f` or `g`".
    pub fn what(&self) -> String {
        let what = match &self.callee {
            Callee::Pointer(targets) if targets.is_empty() => "calls through a pointer".to_owned(),
            Callee::Pointer(targets) => {
                let names: Vec<String> = targets.iter().map(|name| format!("`{name}`")).collect();
                format!("calls through a pointer, to {}", names.join(" or "))
            }
            Callee::Elsewhere(name) => format!("calls `{name}`, which is not in this module"),
            Callee::Driver(name) => format!("calls `{name}`, which the driver brings along"),
        };
        match self.calls {
            1 => what,
            more => format!("{what} ({more} times in the text)"),
        }
    }

    /// The same for whoever reads what the probe counts.
    pub fn to_diagnostic(&self) -> Diagnostic {
        let (kernel, function) = (&self.kernel, &self.function);
        let message = format!("kernel `{kernel}` is not covered wholly: `{function}` {}", self.what());
        let label = "what is called here is not probed";
        match self.is_of_program() {
            true => Diagnostic::warning("not-covered", self.span, message)
                .label(label)
                .note("what the probe counts is a lower bound"),
            false => Diagnostic::remark("not-covered", self.span, message).label(label),
        }
    }
}

/// The functions that every driver brings along (CUDA C++ programming guide: printf, malloc, assert, launches from the
/// device). None of them ends the lane.
pub(crate) fn is_of_the_driver(name: &str) -> bool {
    matches!(name, "vprintf" | "malloc" | "free" | "__assertfail")
        || name.starts_with("cuda")
        || name.starts_with("cnp")
}

/// The calls of a kernel that go where no probe is, each callee once, in text order.
pub(crate) fn find(
    module: &Module<'_>,
    info: &ModuleInfo<'_>,
    names: &Names<'_>,
    calls: &Calls,
    kernel: usize,
    places: &mut Places<'_>,
) -> Vec<Uncovered> {
    let mut found: BTreeMap<Callee, Uncovered> = BTreeMap::new();
    let kernel_name = choose::name(module, kernel);
    for function in std::iter::once(kernel).chain(calls.callees(kernel)) {
        let mut add = |callee: Callee, statement: u32| {
            let span = module.statements.get(statement as usize).map_or(Span::at(0), |one| one.span);
            let first = || Uncovered {
                kernel: kernel_name.clone(),
                function: choose::name(module, function),
                callee: callee.clone(),
                calls: 0,
                span,
                position: (0, 0),
            };
            found.entry(callee.clone()).or_insert_with(first).calls += 1;
        };
        for call in pointers(module, info, function).calls {
            let targets = call.targets.unwrap_or_default();
            add(Callee::Pointer(targets.into_iter().map(str::to_owned).collect()), call.statement);
        }
        for (statement, name) in undefined(module, info, names, function) {
            match name {
                // Nothing comes after it: the launch has failed.
                "__assertfail" => {}
                name if is_of_the_driver(name) => add(Callee::Driver(name.to_owned()), statement),
                name => add(Callee::Elsewhere(name.to_owned()), statement),
            }
        }
    }
    let mut found: Vec<Uncovered> = found.into_values().collect();
    found.sort_by_key(|one| one.span.start);
    found.iter_mut().for_each(|one| one.position = places.position(one.span.start));
    found
}

/// Is there a body for what is called by this name?
pub(crate) fn is_defined(module: &Module<'_>, names: &Names<'_>, name: &str) -> bool {
    let has_body = |name: &str| {
        names.all(name).iter().any(|&f| module.functions.get(f).is_some_and(|f| f.body.is_some()))
    };
    has_body(name) || names.target(name).is_some_and(has_body)
}

/// The direct calls of a function for which the module has no body.
fn undefined<'s>(
    module: &Module<'s>,
    info: &ModuleInfo<'s>,
    names: &Names<'_>,
    function: usize,
) -> Vec<(u32, &'s str)> {
    let known = info.functions.get(function).map_or(&[][..], |known| &known.calls);
    let missing: Vec<&str> = known.iter().copied().filter(|name| !is_defined(module, names, name)).collect();
    let Some(declared) = module.functions.get(function).filter(|_| !missing.is_empty()) else {
        return Vec::new();
    };
    let start = declared.body.as_ref().map_or(0, |body| body.statements.start);
    let call = |(number, statement): (u32, &nt_ptx::syntax::Statement)| {
        let Kind::Instruction(instruction) = statement.kind else { return None };
        let name = callee(module, &instruction).filter(|name| missing.contains(name))?;
        Some((number, name))
    };
    (start..).zip(module.body(declared)).filter_map(call).collect()
}
