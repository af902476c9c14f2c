//! Holds woven PTX against its original, knowing neither the weaver nor the probe.
//!
//! Two texts come in, and nothing else is trusted. Comments in the woven text bracket what was inserted; they only say
//! where to look. Every rule is a whitelist, because most of what could go wrong assembles without a word: what is not
//! known to be harmless is a [`Violation`], which names its rule, its place and the reason.
//!
//! # What a woven text looks like
//!
//! ```text
//! /*nt:edit 2e76657273696f6e20372e30{*/.version 8.0/*}nt:edit*/     raised, never lowered; the old bytes in hex
//! .visible .entry k(.param .u64 p/*nt:edit {*/,
//!   .param .align 8 .b8 nt_ctx[32] /*nt:ctx …*//*}nt:edit*/)       the context, last; see `claim.rs` for the claim
//! {                                                                (a forward declaration gets the same edit)
//!   .reg .b32 %r<9>;
//!   /*nt:0{*/.reg .b32 %nt_start;                                  state: at function level, in the entry span alone
//!   { mov.u32 %nt_start, %clock; }/*}nt:0*/
//!   …
//!   /*nt:1{*/{ .reg .pred %nt_p; …                                 all else in the braces of the span
//!     @!%p1 bra $nt_L1; … $nt_L1: }/*}nt:1*/
//!   @%p1 ret;
//!   /*nt:2{*/{ .reg .b64 %nt_a; add.u64 %nt_a, %rd4, 16; … }/*}nt:2*/        what the next instruction reads, it may read
//!   ld.global.f32 %f1, [%rd4+16];
//! }
//! ```
//!
//! A span is, at its own top level, `{ … }` groups and, in the entry span, declarations of state before them. (Before
//! an instruction that names a pinned variable stands a span that declares a register for it: `claim.rs`.) Inside
//! stand `.reg` declarations of scalar types (`%nt_a, %nt_b` or `%nt_r<4>`, each name once in the span), labels,
//! inner groups and instructions of the list in `opcode.rs`; a span reads the context by
//! `ld.param.u64 %nt_b, [nt_ctx+8];` inside one claimed field. Effects (stores, writes of state) before a guarded
//! instruction stand under that guard: behind `@!%p1 bra $nt_L;`, or predicated with it. Before a branch they need not.
//!
//! # Spans after an instruction
//!
//! ```text
//! /*nt:7{*/.reg .b64 %nt_v7; .reg .pred %nt_g7; { mov.b64 %nt_v7, %rd4; mov.pred %nt_g7, %p1; }/*}nt:7*/
//! @%p1 ld.global.u64 %rd4, [%rd4+8];
//! /*nt:8 after{*/{ … @!%p1 bra $nt_L8; … sub.u64 %nt_d, %rd4, %nt_v7; … $nt_L8: }/*}nt:8*/
//! ```
//!
//! A span whose mark says `after` belongs to the instruction directly before it: nothing stands between but blanks,
//! comments and other spans after it, also no `.loc`; spans before the next instruction come last. It reads what the
//! instruction wrote, and what it read and did not write; its effects stand under that instruction's guard. What the
//! instruction overwrites, a span before it saves in registers of any type, declared outside of its braces, which the
//! spans after that same instruction may read; so also the guard, if the instruction writes that (`%nt_g7` is then the
//! guard). Names of such registers occur once in a function.
//!
//! # Spans for all lanes that get to an instruction
//!
//! ```text
//! /*nt:9 reach{*/{ … selp.u32 %nt_r, 1, 0, %p1; add.u32 %nt_n, %nt_n, %nt_r; … }/*}nt:9*/
//! @%p1 ld.global.u32 %r1, [%rd4+8];
//! ```
//!
//! A span whose mark says `reach` stands before an instruction with a guard, and its effects need not stand under that
//! guard: the kernel reads nothing of them. What it reads of the program is as before any instruction: what that reads,
//! where the kernel assigns it under guards alone and what a store overwrites under its guard.

mod back;
mod call;
mod claim;
mod clone;
mod flow;
mod hash;
mod head;
mod judge;
mod lex;
mod names;
mod opcode;
mod pin;
mod place;
mod program;
mod prune;
mod rule;
mod span;
mod special;
mod undo;
mod value;
mod violation;

pub use claim::{Claim, Column, Field, FieldKind, Map, Pin, SLOT, Shape};
pub use rule::{Rule, explain};
pub use violation::{Report, Violation};

use nt_diag::{Severity, Span};
use pin::Pins;
use place::{Places, Shadows};
use program::{Program, Writes};
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashSet};
use undo::Stands;

/// Holds `woven` against `original`: every violation of V1 to V16 that is found.
///
/// Where the texts differ in more than spans and edits (V1), or the original cannot be read, nothing else can be said
/// and nothing else is.
pub fn check(original: &str, woven: &str) -> Report {
    let mut report = Report::default();
    verify(original, woven, &mut report);
    report.sorted()
}

/// Holds `pruned` against the module that it was cut out of (V17): nothing but whole functions and variables is gone,
/// and nothing that is left names what is gone.
pub fn check_pruned(original: &str, pruned: &str) -> Report {
    let mut report = Report::default();
    prune::check(original, pruned, &mut report);
    report.sorted()
}

/// [`check_pruned`] of an original that [`nt_ptx::parse`] has read without errors: of a module of many kernels, each is
/// pruned and held against it without reading it again.
pub fn check_pruned_module(original: &nt_ptx::syntax::Module<'_>, pruned: &str) -> Report {
    let mut report = Report::default();
    prune::check_module(original, pruned, &mut report);
    report.sorted()
}

fn verify(original: &str, woven: &str, report: &mut Report) {
    // V1: there is nothing but spans and edits.
    let Some((undone, clones)) = undo::undo(original, woven, report) else { return };
    if undone.inserted.is_empty() && clones.is_empty() {
        return;
    }

    // The places that exist are those of the original, which has to be readable for that.
    let (module, found) = nt_ptx::parse(original);
    if let Some(error) = found.iter().find(|diagnostic| diagnostic.severity == Severity::Error) {
        let message =
            format!("the original cannot be read here, so that no place in it is known: {}", error.message);
        return report.add(Rule::V2, undone.woven(error.span), message);
    }
    if place::has_split_comment(original) {
        let message = "the original has a `//` comment with a carriage return in it: readers of PTX disagree on its end";
        return report.add(Rule::V2, Span::at(0), message);
    }

    // V13, V14, and V4 for what the original names.
    let head::Edits { kernels, version, others } = head::edits(&module, woven, &undone, report);
    for (&index, context) in &kernels {
        if let Some(kernel) = module.functions.get(index).filter(|function| function.body.is_some()) {
            report.add_claim(module.at(kernel.name), &context.claim);
        }
    }

    let program = Program::new(&module);
    let pins = Pins::of(&program, &kernels, report);
    let functions = if pins.is_empty() { None } else { Pins::claim_of_functions(&kernels) };
    let number = |arch: &str| arch.strip_prefix("sm_")?.trim_end_matches(char::is_alphabetic).parse().ok();
    let level = (version, module.arch().and_then(number).unwrap_or(0));

    // V15 for the texts of clones.
    let mut numbers = HashSet::new();
    undo::unique(woven, &undone.inserted, &mut numbers, report);
    let cloned = clone::clones(&module, woven, &clones, &kernels, &mut numbers, report);

    let called = cloned.iter().filter_map(|clone| {
        let function = module.functions.get(clone.function)?;
        Some(((clone.kernel.as_str(), module.at(function.name)), clone))
    });
    let called: call::Called<'_> = called.collect();

    let bodies = place::bodies(&module);
    let spans = Spans { program: &program, bodies: &bodies, woven, pins: &pins, level };
    let context = |function| kernels.get(&function).map(|context| &context.claim).or(functions.as_ref());
    let held = spans.judge(&undone.inserted, &context, report);
    // V15 for calls of clones; V16, and V1 for edits that are nothing.
    let hands = (held.arguments, held.taken);
    let others = call::edits(&program, woven, &others, (&called, None), hands, report);
    for (function, given) in held.given {
        back::gives(&module, function, None, given, Span::at(0), report);
    }
    pins.edits(&program, woven, &undone, &others, &held.ready, report);
    for clone in &cloned {
        let context = |function| (function == clone.function).then_some(&clone.claim);
        let held = spans.judge(&clone.inserted, &context, report);
        let called = (&called, Some(clone.kernel.as_str()));
        let hands = (held.arguments, held.taken);
        let others = call::edits(&program, woven, &clone.others, called, hands, report);
        let mut given = held.given;
        let own = given.remove(&clone.function).unwrap_or_default();
        back::gives(&module, clone.function, clone.out.as_ref(), own, clone.whole, report);
        pins.edits_of_clone(&program, woven, (clone, &others), &held.ready, report);
    }
}

/// What the spans of a text, or of a clone in it, have in common.
struct Spans<'a, 's, 'w> {
    program: &'a Program<'a, 's>,
    bodies: &'a place::Bodies,
    woven: &'w str,
    pins: &'a Pins<'a>,
    level: opcode::Level,
}

/// What spans hold ready for the instructions behind them.
#[derive(Default)]
struct Held<'w> {
    ready: pin::Ready<'w>,
    arguments: call::Arguments<'w>,
    taken: call::Taken<'w>,
    /// By function.
    given: BTreeMap<usize, back::Given<'w>>,
}

impl<'w> Spans<'_, '_, 'w> {
    /// V2 for each span; V3 for its text; then all that its statements may and may not do.
    fn judge<'c>(
        &self,
        inserted: &[undo::Inserted],
        context: &dyn Fn(usize) -> Option<&'c Claim>,
        report: &mut Report,
    ) -> Held<'w> {
        let Spans { program, bodies, woven, pins, level } = *self;
        let module = program.module;
        let mut places = Places::new(module, bodies);
        let followed = self.followed(inserted);
        let mut current: Option<Current<'_, '_>> = None;
        let mut held = Held::default();
        for span in inserted.iter().filter(|inserted| !inserted.is_edit) {
            let is_reach = span.stands == Stands::Reach;
            let place = match places.find(span.old.start, span.stands == Stands::After) {
                Ok(place) => place,
                Err(message) => {
                    report.add(Rule::V2, span.whole, message);
                    continue;
                }
            };
            if is_reach && place.guard.is_none() {
                let message = "a span for all lanes, where no instruction with a guard follows";
                report.add(Rule::V12, span.whole, message);
            }
            let Some(claim) = context(place.function) else {
                report.add(Rule::V2, span.whole, "a span in a function that was not given the context");
                continue;
            };
            let statements = match span::read(span.inner.of(woven), span.inner.start) {
                Ok(statements) => statements,
                Err((at, message)) => {
                    report.add(Rule::V3, at, message);
                    continue;
                }
            };
            // Spans come in text order, so each function has its turn once.
            if current.as_ref().is_none_or(|current| current.function != place.function) {
                let Some(function) = module.functions.get(place.function) else { continue };
                current = Some(Current {
                    function: place.function,
                    shadows: Shadows::find(module, function),
                    state: judge::State::new(),
                    writes: OnceCell::new(),
                    carried: HashSet::new(),
                    saved: (None, Vec::new()),
                });
            }
            let Some(Current { shadows, state, writes, carried, saved, .. }) = &mut current else { continue };
            if saved.0 != place.instruction {
                *saved = (place.instruction, Vec::new());
            }
            let at = span.old.start;
            let site = judge::Site {
                claim,
                is_entry: place.is_entry,
                guard: place.guard.map(|(register, negated)| (module.at(register), negated)),
                keeps_guard: program.keeps_guard(&place),
                is_after: place.is_after,
                has_after: !place.is_after
                    && place.instruction.is_some_and(|index| followed.contains(&index)),
                saved: if place.is_after { &saved.1 } else { &[] },
                for_all: place.is_branch || is_reach,
                is_return: self.returns(&place, span.old.start),
                is_call: place.is_after && self.base_of(place.instruction) == "call",
                shadows: &|name| shadows.hides(name, at),
                program: &|name| program.source(&place, writes, name),
                overwrites: &|store| program.store(&place).as_ref() == Some(store),
                pins,
                level,
            };
            let has_after = site.has_after;
            let (is_return, is_call) = (site.is_return, site.is_call);
            let outer = judge::judge(&statements, Span::at(span.inner.end), &site, state, report);
            if has_after {
                saved.1.extend(outer.registers.iter().map(|register| register.saved));
                saved.1.truncate(span::MOST_REGISTERS);
            }
            pin::carry(&outer.registers, place.instruction, carried, &mut held.ready, report);
            if is_return {
                // What another span gives behind this one is all that comes back.
                let of = held.given.entry(place.function).or_default();
                of.insert(place.instruction.unwrap_or(back::AT_END), outer.gave);
            }
            if let (true, Some(call)) = (is_call, place.instruction) {
                match held.taken.contains_key(&call) {
                    false => _ = held.taken.insert(call, outer.took),
                    true => outer.took.iter().for_each(|took| {
                        report.add(
                            Rule::V15,
                            took.span,
                            "the first span behind a call takes what comes back",
                        );
                    }),
                }
            }
            for argument in outer.arguments {
                if !carried.insert(argument.name) {
                    let message = format!("`{}` is declared already in this function", argument.name);
                    report.add(Rule::V4, argument.span, message);
                }
                let call = place.instruction.unwrap_or(u32::MAX);
                held.arguments.entry(call).or_default().push(argument);
            }
        }
        held
    }

    /// Does the function return behind a span that stands there?
    fn returns(&self, place: &place::Place, at: u32) -> bool {
        let module = self.program.module;
        match place.instruction {
            Some(_) => !place.is_after && self.base_of(place.instruction) == "ret",
            None => module.functions.get(place.function).is_some_and(|function| {
                !function.is_entry && module.body(function).last().is_none_or(|last| last.span.end <= at)
            }),
        }
    }

    /// `call` of `call.uni`
    fn base_of(&self, instruction: Option<u32>) -> &str {
        let module = self.program.module;
        let statement = instruction.and_then(|index| module.statements.get(index as usize));
        match statement.map(|statement| statement.kind) {
            Some(nt_ptx::syntax::Kind::Instruction(instruction)) => module.opcode(&instruction).base,
            _ => "",
        }
    }

    /// The instructions that spans follow.
    fn followed(&self, inserted: &[undo::Inserted]) -> HashSet<u32> {
        let mut places = Places::new(self.program.module, self.bodies);
        let after = inserted.iter().filter(|inserted| inserted.stands == Stands::After);
        after.filter_map(|span| places.find(span.old.start, true).ok()?.instruction).collect()
    }
}

/// The function whose spans are looked at.
struct Current<'s, 'w> {
    function: usize,
    shadows: Shadows<'s>,
    state: judge::State<'w>,
    /// What its registers are written by, if that was asked for.
    writes: OnceCell<Writes<'s>>,
    /// The registers that its spans declare outside of their braces.
    carried: HashSet<&'w str>,
    /// Those that the spans before an instruction hold ready for spans after it.
    saved: (Option<u32>, Vec<judge::Saved<'w>>),
}
