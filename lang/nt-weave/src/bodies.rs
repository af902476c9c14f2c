//! Closes probes over the sites of a kernel: what is known there becomes constants, and what does nothing there is gone.
//!
//! ```text
//! probe thread inst:access.global {        at `ld.global.v4.f32`          at `ld.f32`
//!   %1: u32 uniform = operand bytes        %1: u64 uniform = const 16     %1: u64 uniform = const 4
//!   …                                      …                              …
//!   state sync = %3                        state sync = %3                state sync = %3 if %4
//! }                                                                       %4: does the address lead to global memory?
//! ```
//!
//! A state that nothing in the kernel assigns is its initial value, and a sum of 0 adds nothing: where a kernel has no
//! copies, `sum(copied)` at its exit vanishes. Sites that have no body left are none. After this pass nothing asks for
//! a site any more but for operands that differ from lane to lane.

use crate::Refused;
use crate::operands::{Element, Size, known_bytes};
use crate::sites::{ASSEMBLY, Found, Kind, Match};
use crate::streams::{Event, Turn};
use nt_diag::Diagnostic;
use nt_ir::close::{CloseErrorKind, Elements, Fact, Facts};
use nt_ir::program::{
    BinaryOp, Inst, Op, Part, Probe, Program, StateId, TableId, Type, Unit, Value, ValueId,
};
use nt_ptx::opcode::Space;
use nt_ptx::syntax::Module;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A site, and what runs there.
#[derive(Debug, Clone)]
pub(crate) struct Site<'p> {
    pub(crate) found: Found,
    /// In program order.
    pub(crate) bodies: Vec<Body<'p>>,
    /// How it elects the lane that saves events.
    pub(crate) turn: Turn,
}

/// A probe, closed over a site.
#[derive(Debug, Clone)]
pub(crate) struct Body<'p> {
    /// What runs. Its unit, its predicate and its code are the program's, so far as the site does not decide them.
    pub(crate) code: Cow<'p, Probe>,
    /// The value that says whether the instruction is one that the probe means, in this lane. Nothing in the code defines
    /// it.
    pub(crate) asked: Option<(ValueId, Asked)>,
    /// The cell of each table that it adds to.
    pub(crate) cells: Vec<(TableId, u32)>,
    /// What it saves to streams.
    pub(crate) events: Vec<Event>,
    /// Does it run because a lane leaves the kernel?
    pub(crate) leaves: bool,
    /// Which of the site's matches it is of.
    of: usize,
}

/// What is asked of an instruction when it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Does its guard hold?
    pub(crate) guard: bool,
    /// The spaces of which its address must lead into one; none if that is no question.
    pub(crate) within: Vec<Space>,
}

impl Body<'_> {
    /// Does it add up when a warp leaves, which only the last lanes to leave do?
    pub(crate) fn is_of_last(&self) -> bool {
        self.leaves
            && self.code.unit == Unit::Warp
            && self.code.code.iter().any(|inst| matches!(inst.op, Op::Aggregate { .. }))
    }

    /// Does it save to a map or add to a table?
    pub(crate) fn stores(&self) -> bool {
        self.code.code.iter().any(|inst| matches!(inst.op, Op::Aggregate { .. } | Op::Save { .. }))
    }
}

/// What closing needs to know of the kernel.
pub(crate) struct Closer<'a> {
    module: &'a Module<'a>,
    pub(crate) program: &'a Program,
    /// The kernel's name.
    pub(crate) kernel: &'a str,
    /// Where it stands, for messages.
    pub(crate) at: nt_diag::Span,
}

impl<'a> Closer<'a> {
    pub(crate) fn new(
        module: &'a Module<'a>,
        program: &'a Program,
        function: usize,
        kernel: &'a str,
    ) -> Self {
        let at = module.functions.get(function).map_or(nt_diag::Span::at(0), |function| function.name);
        Closer { module, program, kernel, at }
    }

    /// Closes the probes over all sites.
    pub(crate) fn run(&self, found: Vec<Found>) -> Result<Vec<Site<'a>>, Refused> {
        let mut sites = Vec::with_capacity(found.len());
        for (number, found) in (0..).zip(found) {
            let mut site = Site { found, bodies: Vec::new(), turn: Turn::Alone };
            for (of, one) in site.found.probes.iter().enumerate() {
                let Some(probe) = self.program.probes.get(one.probe) else { continue };
                let code = match asks(probe) {
                    true => self.close(&site.found, one, number, probe)?.map(Cow::Owned),
                    false => Some(Cow::Borrowed(probe)),
                };
                let Some(code) = code else { continue };
                let leaves = one.leaves;
                site.bodies.push(Body {
                    code,
                    asked: None,
                    cells: Vec::new(),
                    events: Vec::new(),
                    leaves,
                    of,
                });
            }
            sites.push(site);
        }
        self.settle(&mut sites)?;
        for site in &mut sites {
            for body in &mut site.bodies {
                let Some(one) = site.found.probes.get(body.of) else { continue };
                if one.under_guard || !one.within.is_empty() {
                    let asked = Asked { guard: one.under_guard, within: one.within.clone() };
                    body.asked = Some((restrict(body.code.to_mut()), asked));
                }
            }
        }
        sites.retain(|site| !site.bodies.is_empty());
        Ok(sites)
    }

    /// Puts initial values in the place of states that nothing assigns, and closes once more what that touches, until
    /// nothing changes.
    fn settle(&self, sites: &mut [Site<'a>]) -> Result<(), Refused> {
        // Each round takes at least one more state for granted.
        for _ in 0..=self.program.states.len() {
            let mut assigned = vec![false; self.program.states.len()];
            let code = sites.iter().flat_map(|site| &site.bodies).flat_map(|body| &body.code.code);
            for inst in code {
                if let Op::WriteState(state, _) = inst.op
                    && let Some(slot) = assigned.get_mut(state.0 as usize)
                {
                    *slot = true;
                }
            }
            let is_fixed = |state: StateId| assigned.get(state.0 as usize) == Some(&false);
            let mut changed = false;
            for (number, site) in (0..).zip(&mut *sites) {
                let found = &site.found;
                for body in &mut site.bodies {
                    let reads = |inst: &Inst| matches!(inst.op, Op::ReadState(state) if is_fixed(state));
                    if !body.code.code.iter().any(reads) {
                        continue;
                    }
                    changed = true;
                    let code = body.code.to_mut();
                    for inst in &mut code.code {
                        if let Op::ReadState(state) = inst.op
                            && is_fixed(state)
                        {
                            let init =
                                self.program.states.get(state.0 as usize).map_or(0, |state| state.init);
                            inst.op = Op::Const(init);
                        }
                    }
                    let Some(one) = found.probes.get(body.of) else { continue };
                    *code = self.close(found, one, number, code)?.unwrap_or_else(|| nothing(code));
                    drop_sums_of_nothing(code);
                    *code = self.close(found, one, number, code)?.unwrap_or_else(|| nothing(code));
                }
                site.bodies.retain(|body| !body.code.code.is_empty());
            }
            if !changed {
                break;
            }
        }
        Ok(())
    }

    fn close(
        &self,
        found: &Found,
        one: &Match,
        number: u32,
        probe: &Probe,
    ) -> Result<Option<Probe>, Refused> {
        self.with_facts(found, one, number, |facts| {
            nt_ir::close(self.program, probe, facts).map_err(|error| {
                let what = match error.kind {
                    CloseErrorKind::Absent => format!(
                        "the probe asks for `{0}`, which there is none of here; `if has({0})` would leave it out",
                        error.name
                    ),
                    CloseErrorKind::Type(found) => {
                        format!("`{}` is of type {} here", error.name, found.word())
                    }
                    CloseErrorKind::Varying => {
                        format!("`{}` differs from lane to lane here, and the probe runs per warp", error.name)
                    }
                };
                let statement = found.statement.and_then(|at| self.module.statements.get(at as usize));
                let at = statement.map_or(self.at, |statement| statement.span);
                let kernel = self.kernel;
                let message = format!("kernel `{kernel}` cannot be probed");
                let why = Diagnostic::error("operand-absent", at, message).label(what);
                Box::new(match found.access.late {
                    Some((at, late)) if error.name == "out" => {
                        why.note_at(at, late).help("probe the wait instead: `inst:wait:after`")
                    }
                    _ => why,
                })
            })
        })
    }

    /// What the keys of a table are called at a site, for those that sites tell.
    pub(crate) fn names(&self, site: &Site<'_>, body: &Body<'_>, number: u32, table: TableId) -> Vec<String> {
        let keys = self.program.tables.get(table.0 as usize).map_or(&[][..], |table| &table.keys);
        let Some(one) = site.found.probes.get(body.of) else { return Vec::new() };
        self.with_facts(&site.found, one, number, |facts| {
            let name = |key: &nt_ir::program::Key| match key {
                nt_ir::program::Key::Site(key) => facts.name(*key),
                _ => None,
            };
            keys.iter().filter_map(name).collect()
        })
    }

    /// What is known of a site, as a probe sees it.
    fn with_facts<R>(&self, found: &Found, one: &Match, number: u32, run: impl FnOnce(&Facts<'_>) -> R) -> R {
        let (file, line) = match &found.source {
            Some((file, line)) => (file.as_str(), *line),
            // Without lines of source, those of the assembly.
            None => (ASSEMBLY, found.position.0),
        };
        let func = self.module.functions.get(found.function).map_or(self.kernel, |f| self.module.at(f.name));
        let mut facts = Facts { kernel: self.kernel, func, file, line, site: number, ..Facts::default() };
        facts.mark = found.mark.as_deref();
        if !one.of_instruction {
            return run(&facts);
        }
        let statement = found.statement.and_then(|at| self.module.statements.get(at as usize));
        facts.op = statement.and_then(|statement| match statement.kind {
            nt_ptx::syntax::Kind::Instruction(instruction) => Some(self.module.at(instruction.opcode)),
            _ => None,
        });
        // Else the body runs for the lanes whose guard holds.
        facts.pred = if one.reach { Fact::Dynamic } else { Fact::Known(true) };
        let Some(known) = &found.facts else {
            facts.class = Some(nt_ptx::opcode::Class::Other.name());
            return run(&facts);
        };
        let is_after = matches!(found.kind, Kind::After(_));
        let has = |part: Part| match part {
            Part::Saddr => found.access.shared.is_some(),
            Part::Taken => known.offers("taken") && !is_after,
            Part::Done => known.offers("done") && is_after,
            _ => false,
        };
        let others: Vec<Part> = Part::ALL.iter().copied().filter(|&part| has(part)).collect();
        facts.others = &others;
        let elements = |list: &Vec<Element>| {
            let ty = list.first()?.ty;
            u8::try_from(list.len()).ok().map(|count| Elements { ty, count })
        };
        let inputs: Vec<Option<Elements>> =
            found.access.inputs.iter().map(|list| list.as_ref().and_then(elements)).collect();
        facts.inputs = &inputs;
        facts.out = found.access.out.as_ref().and_then(elements);
        facts.old = found.access.old.as_ref().map(|old| Elements { ty: old.ty, count: old.count });
        facts.callee = found.callee.as_deref();
        facts.class = Some(known.class.name());
        facts.space = one.space.or(known.space).filter(|_| known.offers("space")).map(Space::name);
        if known.offers("width") {
            facts.width = Some(known.width);
        }
        if known.offers("elems") {
            facts.elems = Some(known.elems);
        }
        facts.macs = known.macs.filter(|_| known.offers("macs"));
        facts.bytes = match known_bytes(known, &found.access) {
            Some(bytes) => Fact::Known(bytes),
            None if !known.offers("bytes") => Fact::Absent,
            None => match found.access.size {
                Some(Size::Register(_) | Size::Unless { .. }) => Fact::Dynamic,
                Some(Size::Known(_)) | None => Fact::Absent,
            },
        };
        facts.addr = known.offers("addr") && found.access.address.is_some();
        run(&facts)
    }
}

/// Does the code ask for what a site decides?
fn asks(probe: &Probe) -> bool {
    probe.code.iter().any(|inst| {
        matches!(
            inst.op,
            Op::Site(_)
                | Op::Operand(_)
                | Op::CastOperand(_)
                | Op::BitsOperand(_)
                | Op::CompareOperands(..)
                | Op::ClockAfterOperand(..)
                | Op::Has(_)
                | Op::Match { .. }
                | Op::Aggregate { .. }
        )
    })
}

/// The probe without any code.
fn nothing(probe: &Probe) -> Probe {
    Probe { code: Vec::new(), values: Vec::new(), predicate: None, ..probe.clone() }
}

fn drop_sums_of_nothing(probe: &mut Probe) {
    let zeros: Vec<ValueId> =
        probe.code.iter().filter(|inst| inst.op == Op::Const(0)).filter_map(|inst| inst.result).collect();
    probe.code.retain(|inst| match inst.op {
        Op::Aggregate { value: Some(value), .. } => !zeros.contains(&value),
        _ => true,
    });
}

/// Has all effects happen only where a new value is true too; gives that value, which nothing defines.
fn restrict(probe: &mut Probe) -> ValueId {
    let value = |probe: &mut Probe| {
        let id = ValueId(probe.values.len() as u32);
        probe.values.push(Value { ty: Type::Bool, uniform: false });
        id
    };
    let test = value(probe);
    let mut both: BTreeMap<ValueId, ValueId> = BTreeMap::new();
    let code = std::mem::take(&mut probe.code);
    let mut out: Vec<Inst> = Vec::with_capacity(code.len());
    let mut join = |probe: &mut Probe, out: &mut Vec<Inst>, guard: ValueId| {
        *both.entry(guard).or_insert_with(|| {
            let result = value(probe);
            let op = Op::Binary(BinaryOp::And, guard, test);
            out.push(Inst { result: Some(result), op, guard: None, span: probe.span });
            result
        })
    };
    for mut inst in code {
        if inst.op.is_effect() {
            inst.guard = Some(match inst.guard {
                None => test,
                Some(guard) => join(probe, &mut out, guard),
            });
        }
        out.push(inst);
    }
    probe.predicate = Some(match probe.predicate {
        None => test,
        Some(predicate) => join(probe, &mut out, predicate),
    });
    probe.code = out;
    test
}
