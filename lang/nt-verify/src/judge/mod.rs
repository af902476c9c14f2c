//! V4 to V12: walks through one span and knows, at each statement, what was assigned and what holds.
//!
//! ```text
//! {                                            knows of a span before `@%p1 ret;`
//!   @!%p1 bra $nt_L;                           behind it: %p1
//!   setp.ge.u64 %nt_q, %nt_i, %nt_cap;
//!   @%nt_q bra $nt_L;                          behind it: %p1, %nt_i < cap(heat)
//!   mad.lo.u64 %nt_a, %nt_i, 16, %nt_base;     %nt_a = base(heat) + 16·%nt_i
//!   st.global.u64 [%nt_a+8], %nt_end;          8 + 8 bytes fit in the 16 of a record: proved
//! $nt_L: }                                     from here on: what holds on both ways
//! ```
//!
//! Branches go forward only, so one pass in text order sees every way before the place where it comes in; what is
//! known there is what is known on all of them. What cannot be proved is a violation.

mod control;
mod give;
mod memory;
mod names;
mod number;
mod outer;
mod read;
mod result;
mod write;

use crate::claim::Claim;
use crate::hash::Table;
use crate::opcode::{Act, Form, Level, Slot, forms, is_sync};
use crate::pin::Pins;
use crate::program::{Refused, Source, Store};
use crate::span::{Instruction, Kind, Operand, Shape, Statement};
use crate::value::{Content, Facts, Known, Linear, Predicate};
use crate::{Report, Rule};
pub(crate) use give::{Argument, Gave, Given, Took};
use nt_diag::Span;
use number::About;
use outer::When;
pub(crate) use outer::{Carried, Outer, Saved};
use std::collections::BTreeMap;
use std::rc::Rc;

/// What a span may rely on where it stands.
pub(crate) struct Site<'a, 'w> {
    /// What the kernel's context holds.
    pub(crate) claim: &'a Claim,
    /// Does the span stand behind the leading declarations, before everything else?
    pub(crate) is_entry: bool,
    /// The register of the guard of the instruction that it belongs to, and whether it is negated.
    pub(crate) guard: Option<(&'a str, bool)>,
    /// Does that register still hold what the instruction found in it?
    pub(crate) keeps_guard: bool,
    /// Does the span follow its instruction?
    pub(crate) is_after: bool,
    /// Do other spans follow the instruction of this one, for which it may hold something ready?
    pub(crate) has_after: bool,
    /// What spans before the instruction hold ready for this one, which follows it.
    pub(crate) saved: &'a [Saved<'w>],
    /// Is the span for all lanes that get there, whatever the guard: before a branch, or where it says so?
    pub(crate) for_all: bool,
    /// Does the function return behind the span?
    pub(crate) is_return: bool,
    /// Does the span follow a call?
    pub(crate) is_call: bool,
    /// Does the kernel give this special register's name another meaning here?
    pub(crate) shadows: &'a dyn Fn(&str) -> bool,
    /// What is a name of the program, which the instruction behind the span may read?
    pub(crate) program: &'a dyn Fn(&str) -> Result<Source, Refused>,
    /// Is that the store that the span stands before?
    pub(crate) overwrites: &'a dyn Fn(&Store<'_>) -> bool,
    /// The pins of the module.
    pub(crate) pins: &'a Pins<'a>,
    /// `.version` of the woven text, and the number of the first `sm_` of its `.target`.
    pub(crate) level: Level,
}

/// The state registers of a kernel by name, and their bits.
pub(crate) type State<'w> = BTreeMap<&'w str, u32>;

/// Checks the statements of one span; the state that it declares is added to `state`. Gives what it declares for the
/// instruction behind it.
pub(crate) fn judge<'w>(
    statements: &[Statement<'w>],
    end: Span,
    site: &Site<'_, 'w>,
    state: &mut State<'w>,
    report: &mut Report,
) -> Outer<'w> {
    let mut judge = Judge {
        site,
        report,
        context: format!("{}ctx", site.claim.prefix),
        registers: Vec::new(),
        visible: Table::default(),
        labels: Table::default(),
        scopes: Vec::new(),
        now: Some(Here { contents: Rc::default(), facts: Facts::default() }),
        coming: Table::default(),
        program: Table::default(),
        unknowns: Vec::new(),
        // Fact 0 is the guard of the site.
        facts: 1,
        words: Table::default(),
        arguments: Vec::new(),
        gave: Vec::new(),
        took: Vec::new(),
        stretch: 0,
    };
    for (&name, &bits) in state.iter() {
        let content = Content::Assigned(judge.fresh(bits));
        judge.register(name, Register { bits, state: Some(name) }, content);
    }
    for saved in site.saved {
        let content = judge.restored(saved.when, saved.bits);
        judge.register(saved.name, Register { bits: saved.bits, state: None }, content);
    }
    judge.find_labels(statements);
    let mut scope = 0;
    let mut outer = Vec::new();
    for (index, statement) in statements.iter().enumerate() {
        match &statement.kind {
            Kind::Open => {
                scope += 1;
                judge.scopes.push(Scope { number: scope, names: Vec::new() });
            }
            Kind::Close => {
                for name in judge.scopes.pop().map(|scope| scope.names).unwrap_or_default() {
                    judge.visible.remove(name);
                }
            }
            Kind::Declaration { bits, names } => {
                let is_outer = judge.scopes.is_empty();
                let for_pin = !site.pins.is_empty() && *bits == 64;
                if is_outer && !site.is_entry && (site.is_after || !(for_pin || site.has_after)) {
                    let message = "state is declared in the span at the kernel's entry only";
                    judge.add(Rule::V12, statement.span, message);
                }
                for declared in names {
                    // `%nt_r<4>` declares names that the text does not hold: they are found by their number.
                    if declared.count.is_some() && is_outer {
                        judge.add(Rule::V12, declared.span, "state is declared one name at a time");
                        continue;
                    }
                    let is_state = is_outer && site.is_entry;
                    let new = judge.declare(declared.name, declared.count, *bits, is_state, declared.span);
                    if let Some(register) = new.filter(|_| is_outer) {
                        outer.push((declared.name, *bits, register, declared.span));
                    }
                }
            }
            Kind::Argument { name, bytes } => judge.declare_argument(name, *bytes, statement.span),
            Kind::Label(name) => judge.arrive(name),
            Kind::Instruction(instruction) => judge.instruction(index, statement.span, instruction),
        }
    }
    let mut carried = Vec::new();
    for (name, bits, register, span) in outer {
        let assigned = judge.now.as_ref().and_then(|here| here.contents.get(register)).cloned();
        let assigned = assigned.as_ref();
        let pin = match assigned {
            Some(Content::Assigned(Known::Word(word))) => word.pin(),
            Some(Content::Assigned(_)) => None,
            _ => {
                if site.is_entry {
                    let message =
                        format!("state `{name}` is not assigned on every path of the span at entry");
                    judge.add(Rule::V12, span, message);
                }
                None
            }
        };
        if site.is_entry {
            state.insert(name, bits);
        }
        let saved = Saved { name, bits, when: assigned.map_or(When::Never, |content| judge.when(content)) };
        carried.push(Carried { name, span, pin, saved });
    }
    if judge.now.is_none() {
        judge.add(Rule::V5, end, "the end of the span is never reached");
    }
    let gave = judge.all_given_back();
    Outer { registers: carried, arguments: judge.arguments, gave, took: judge.took }
}

/// A register of the span, or state.
#[derive(Debug, Clone, Copy)]
struct Register<'w> {
    bits: u32,
    /// Of state, its name.
    state: Option<&'w str>,
}

/// An open `{`.
struct Scope<'w> {
    number: u32,
    names: Vec<&'w str>,
}

/// What is known at a place.
#[derive(Debug, Clone)]
struct Here {
    /// By index of [`Judge::registers`]; registers declared since are not assigned. Shared until one way writes.
    contents: Rc<Vec<Content>>,
    facts: Facts,
}

/// A name that a declaration made visible.
#[derive(Debug, Clone, Copy)]
struct Visible {
    /// The first of [`Visible::count`] registers.
    register: usize,
    /// `None` for a plain name.
    count: Option<u32>,
}

struct Judge<'a, 'w> {
    site: &'a Site<'a, 'w>,
    report: &'a mut Report,
    /// The name of the context parameter.
    context: String,
    registers: Vec<Register<'w>>,
    visible: Table<&'w str, Visible>,
    /// Where each label stands: index of its statement and number of its scope.
    labels: Table<&'w str, (usize, u32)>,
    scopes: Vec<Scope<'w>>,
    /// `None` where nothing reaches.
    now: Option<Here>,
    /// What comes in at labels ahead.
    coming: Table<&'w str, Here>,
    /// What was read of the program, which no span writes: the same value each time.
    program: Table<(&'w str, u32), Known>,
    /// What is known of each unknown, by its number.
    unknowns: Vec<About>,
    facts: u32,
    /// The words of the context that mean nothing to addresses, as far as they were read: the same value each time.
    words: Table<(u32, u32), Known>,
    /// What the span declares for a call, gives back to the caller, and takes of the call before it.
    arguments: Vec<Argument<'w>>,
    gave: Vec<Gave<'w>>,
    took: Vec<Took<'w>>,
    /// Counts what may part the lanes: labels and branches. Of an effect under a guard ptxas makes a branch too, but brings
    /// the lanes together behind it (BSSY, BSYNC), and the operation waits for those of its mask (WARPSYNC): read in
    /// what it makes of `@%p atom …; shfl.sync …`.
    stretch: u32,
}

/// What holds while an instruction is executed, its guard included.
struct During {
    facts: Facts,
    /// The guard, unless it is known to hold anyway.
    guard: Option<Predicate>,
}

impl<'w> Judge<'_, 'w> {
    fn add(&mut self, rule: Rule, span: Span, message: impl Into<String>) {
        self.report.add(rule, span, message);
    }

    // Values.

    /// A value of that many bits that nothing is known of.
    fn fresh(&mut self, bits: u32) -> Known {
        match bits {
            1 => Known::Predicate(self.predicate(&Facts::default(), &Facts::default())),
            32 => Known::Half(self.unknown(u64::from(u32::MAX))),
            64 => Known::Word(self.unknown(u64::MAX)),
            _ => Known::Nothing,
        }
    }

    fn predicate(&mut self, if_true: &Facts, if_false: &Facts) -> Predicate {
        self.facts += 1;
        Predicate::new(self.facts, if_true, if_false)
    }

    /// The 64 bits of a value, or its 32 with zeros above.
    fn linear(&mut self, known: &Known) -> Linear {
        match known {
            Known::Word(linear) | Known::Half(linear) => linear.clone(),
            Known::Lanes { .. } => self.unknown(u64::from(u32::MAX)),
            Known::Predicate(_) | Known::Nothing => self.unknown(u64::MAX),
        }
    }

    // Instructions.

    fn instruction(&mut self, index: usize, span: Span, instruction: &Instruction<'w>) {
        let Some(here) = &self.now else {
            return self.add(Rule::V5, span, "nothing reaches this instruction");
        };
        let mut during = During { facts: here.facts.clone(), guard: None };
        if let Some(guard) = instruction.guard {
            let Some(Known::Predicate(predicate)) = self.read(guard.name, 1, guard.span, &during) else {
                return self.forgive(instruction);
            };
            let predicate = if guard.negated { predicate.not() } else { predicate };
            if !during.facts.holds(&predicate.own()) {
                during.facts = during.facts.and(&predicate.if_true);
                during.guard = Some(predicate);
            }
        }

        let opcode = instruction.opcode;
        let forms = forms(opcode);
        if forms.is_empty() {
            let (rule, what) = match is_sync(opcode) {
                true => (Rule::V8, "waits for other lanes"),
                false => (Rule::V6, "is not on the list of what may be inserted"),
            };
            self.add(rule, instruction.opcode_span, format!("`{opcode}` {what}"));
            return self.forgive(instruction);
        }
        let Some(form) = forms.iter().find(|form| fits(form, &instruction.operands)) else {
            self.add(Rule::V6, span, format!("`{opcode}` may not be inserted with these operands"));
            return self.forgive(instruction);
        };
        let (version, arch) = self.site.level;
        if let Some(((major, minor), least)) = form.needs
            && (version < (major, minor) || arch < least)
        {
            let rule = if is_sync(opcode) { Rule::V8 } else { Rule::V6 };
            let message = format!("`{opcode}` needs PTX {major}.{minor} and sm_{least}");
            self.add(rule, instruction.opcode_span, message);
        }

        if form.act == Act::Load && self.take(form, instruction, &during) {
            return;
        }
        let values = self.sources(form, instruction, &during);
        match (form.act, values) {
            (Act::Branch, _) => {
                if let Some(target) = instruction.operands.first() {
                    self.branch(index, target, &during);
                }
            }
            (Act::Store | Act::Reduce, _) => self.effect_on_memory(form, instruction, None, &during),
            (Act::Give, values) => self.give(form, instruction, values.as_deref(), &during),
            (Act::Old, _) => {
                self.old(form, instruction, &during);
                self.destinations(form, instruction, &Known::Nothing, &during);
            }
            (Act::Claim, Some(values)) => {
                let amount = values.first().map(|value| self.linear(value));
                self.effect_on_memory(form, instruction, amount, &during);
                let before = self.fresh(form.last);
                self.destinations(form, instruction, &before, &during);
            }
            (act, Some(values)) => {
                if act == Act::Copy {
                    self.take_over(instruction, &values, &during);
                }
                let result = self.result(form, instruction, &values, &during);
                self.destinations(form, instruction, &result, &during);
            }
            (_, None) => self.forgive(instruction),
        }
    }

    /// Says what is in a register from here on.
    fn put(&mut self, register: usize, content: Content) {
        if let Some(here) = &mut self.now {
            let contents = Rc::make_mut(&mut here.contents);
            // Where another way came in alone, registers that this one declared since are missing.
            contents.resize(self.registers.len(), Content::Unassigned);
            if let Some(slot) = contents.get_mut(register) {
                *slot = content;
            }
        }
    }

    /// After a refused instruction: what it would have written counts as assigned, so that one fault is told once.
    fn forgive(&mut self, instruction: &Instruction<'w>) {
        let first = instruction.operands.first().map(|operand| &operand.shape);
        if let Some(Shape::Name(name)) = first
            && let Some(register) = self.find(name)
            && let Some(&Register { bits, .. }) = self.registers.get(register)
        {
            let content = Content::Assigned(self.fresh(bits));
            self.put(register, content);
        }
    }
}

/// Have the operands the shapes of the form's slots?
fn fits(form: &Form, operands: &[Operand<'_>]) -> bool {
    let scalar = |operand: &Operand<'_>| matches!(operand.shape, Shape::Name(_) | Shape::Number(_));
    let written = |operand: &Operand<'_>| matches!(operand.shape, Shape::Name(_) | Shape::Sink);
    form.slots.len() == operands.len()
        && form.slots.iter().zip(operands).all(|(slot, operand)| match (slot, &operand.shape) {
            (Slot::To(_) | Slot::ToPredicates | Slot::Target | Slot::FromPredicate, Shape::Name(_))
            | (Slot::FromPredicate, Shape::Not(_))
            | (
                Slot::Context | Slot::Pin | Slot::Global | Slot::Argument | Slot::Overwritten,
                Shape::Address { .. },
            ) => true,
            (Slot::Loaded, Shape::Vector(parts)) => {
                form.lanes > 1 && parts.len() == form.lanes as usize && parts.iter().all(written)
            }
            (Slot::Loaded, Shape::Name(_)) => form.lanes == 1,
            (Slot::ToPredicates, Shape::Pair(first, second)) => written(first) && written(second),
            (Slot::ToBoth(_), Shape::Vector(parts)) => {
                parts.len() == 2 && parts.iter().all(|part| matches!(part.shape, Shape::Name(_)))
            }
            (Slot::From(_) | Slot::Mask, _) => scalar(operand),
            (Slot::FromBoth(_), Shape::Vector(parts)) => parts.len() == 2 && parts.iter().all(scalar),
            (Slot::Stored, Shape::Vector(parts)) => {
                form.lanes > 1 && parts.len() == form.lanes as usize && parts.iter().all(scalar)
            }
            (Slot::Stored, _) => form.lanes == 1 && scalar(operand),
            _ => false,
        })
}

#[cfg(test)]
mod tests;
