//! V4 to V9, V11 and V12: walks through one span and knows, at each statement, what was assigned and what holds.
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

use crate::claim::{Claim, FieldKind, Shape as MapShape};
use crate::opcode::{Act, Comparison, Form, Slot, forms, is_sync, special};
use crate::span::{Instruction, Kind, MOST_REGISTERS, Number, Operand, Shape, Statement};
use crate::value::{Content, Fact, Facts, Known, Linear, Predicate, Unknown};
use crate::{Report, Rule};
use nt_diag::Span;
use std::collections::{BTreeMap, HashMap};

/// What a span may rely on where it stands.
pub(crate) struct Site<'a> {
    /// What the kernel's context holds.
    pub(crate) claim: &'a Claim,
    /// Does the span stand behind the leading declarations, before everything else?
    pub(crate) is_entry: bool,
    /// The register of the guard of the instruction that follows, and whether it is negated.
    pub(crate) guard: Option<(&'a str, bool)>,
    /// Does the kernel give this special register's name another meaning here?
    pub(crate) shadows: &'a dyn Fn(&str) -> bool,
    /// May there be `.sync` operations under V8?
    pub(crate) sync: bool,
}

/// The state registers of a kernel by name, and their bits.
pub(crate) type State<'w> = BTreeMap<&'w str, u32>;

/// Checks the statements of one span; the state that it declares is added to `state`.
pub(crate) fn judge<'w>(
    statements: &[Statement<'w>],
    end: Span,
    site: &Site<'_>,
    state: &mut State<'w>,
    report: &mut Report,
) {
    let mut judge = Judge {
        site,
        report,
        context: format!("{}ctx", site.claim.prefix),
        registers: Vec::new(),
        visible: HashMap::new(),
        labels: HashMap::new(),
        scopes: Vec::new(),
        now: Some(Here { contents: Vec::new(), facts: Facts::default() }),
        coming: HashMap::new(),
        unknowns: 0,
        // Fact 0 is the guard of the site.
        facts: 1,
        stretch: 0,
    };
    for (&name, &bits) in state.iter() {
        let content = Content::Assigned(judge.fresh(bits));
        judge.register(name, Register { bits, is_state: true }, content);
    }
    judge.find_labels(statements);
    let mut scope = 0;
    let mut declared_state = Vec::new();
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
                let is_state = judge.scopes.is_empty();
                if is_state && !site.is_entry {
                    judge.add(
                        Rule::V12,
                        statement.span,
                        "state is declared in the span at the kernel's entry only",
                    );
                }
                for declared in names {
                    // `%nt_r<4>` declares names that the text does not hold: they are found by their number.
                    if declared.count.is_some() && is_state {
                        judge.add(Rule::V12, declared.span, "state is declared one name at a time");
                        continue;
                    }
                    let new = judge.declare(declared.name, declared.count, *bits, is_state, declared.span);
                    if let Some(register) = new.filter(|_| is_state) {
                        declared_state.push((declared.name, *bits, register, declared.span));
                    }
                }
            }
            Kind::Label(name) => judge.arrive(name),
            Kind::Instruction(instruction) => judge.instruction(index, statement.span, instruction),
        }
    }
    for (name, bits, register, span) in declared_state {
        let assigned = judge.now.as_ref().and_then(|here| here.contents.get(register));
        if !matches!(assigned, Some(Content::Assigned(_))) {
            judge.add(
                Rule::V12,
                span,
                format!("state `{name}` is not assigned on every path of the span at entry"),
            );
        }
        state.insert(name, bits);
    }
    if judge.now.is_none() {
        judge.add(Rule::V5, end, "the end of the span is never reached");
    }
}

/// A register of the span, or state.
#[derive(Debug, Clone, Copy)]
struct Register {
    bits: u32,
    is_state: bool,
}

/// An open `{`.
struct Scope<'w> {
    number: u32,
    names: Vec<&'w str>,
}

/// What is known at a place.
#[derive(Debug, Clone)]
struct Here {
    /// By index of [`Judge::registers`]; registers declared since are not assigned.
    contents: Vec<Content>,
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
    site: &'a Site<'a>,
    report: &'a mut Report,
    /// The name of the context parameter.
    context: String,
    registers: Vec<Register>,
    visible: HashMap<&'w str, Visible>,
    /// Where each label stands: index of its statement and number of its scope.
    labels: HashMap<&'w str, (usize, u32)>,
    scopes: Vec<Scope<'w>>,
    /// `None` where nothing reaches.
    now: Option<Here>,
    /// What comes in at labels ahead.
    coming: HashMap<&'w str, Here>,
    unknowns: u32,
    facts: u32,
    /// Counts labels and branches passed.
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

    // Names.

    /// Does `name` begin with the prefix, behind an optional `%` or `$`?
    fn is_ours(&self, name: &str) -> bool {
        let bare = name.strip_prefix(['%', '$']).unwrap_or(name);
        bare.len() > self.site.claim.prefix.len() && bare.starts_with(&self.site.claim.prefix)
    }

    fn find_labels(&mut self, statements: &[Statement<'w>]) {
        let (mut scope, mut open) = (0, Vec::new());
        for (index, statement) in statements.iter().enumerate() {
            match &statement.kind {
                Kind::Open => {
                    scope += 1;
                    open.push(scope);
                }
                Kind::Close => {
                    open.pop();
                }
                Kind::Label(name) => {
                    if !self.is_ours(name) {
                        self.foreign(name, statement.span);
                    }
                    let place = (index, open.last().copied().unwrap_or(0));
                    if self.labels.insert(name, place).is_some() {
                        self.add(Rule::V4, statement.span, format!("label `{name}` twice in one span"));
                    }
                }
                Kind::Declaration { .. } | Kind::Instruction(_) => {}
            }
        }
    }

    fn foreign(&mut self, name: &str, span: Span) {
        let prefix = &self.site.claim.prefix;
        let message = format!("`{name}` does not begin with the prefix `{prefix}` of the claim");
        self.add(Rule::V4, span, message);
    }

    fn register(&mut self, name: &'w str, register: Register, content: Content) -> usize {
        let index = self.registers.len();
        self.registers.push(register);
        self.visible.insert(name, Visible { register: index, count: None });
        if let Some(here) = &mut self.now {
            here.contents.resize(index, Content::Unassigned);
            here.contents.push(content);
        }
        index
    }

    /// Declares one register, or `count` of them; gives the first one's index.
    fn declare(
        &mut self,
        name: &'w str,
        count: Option<u32>,
        bits: u32,
        is_state: bool,
        span: Span,
    ) -> Option<usize> {
        // Told, and then taken as declared, so that one fault is told once.
        if name == self.context {
            self.add(Rule::V4, span, format!("`{name}` is the context and cannot be a register too"));
        } else if !self.is_ours(name) {
            self.foreign(name, span);
        }
        // `%nt_r<4>` and `%nt_r2` are one name twice, in either order.
        let numbered = |other: &&str| {
            let digits = other.strip_prefix(name);
            count.is_some() && digits.is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
        };
        let clash = self.find(name).is_some()
            || self.visible.contains_key(name)
            || self.labels.contains_key(name)
            || self.visible.keys().chain(self.labels.keys()).any(|other| numbered(other));
        if clash {
            self.add(Rule::V4, span, format!("`{name}` is declared already where this declaration stands"));
            return None;
        }
        let more = count.unwrap_or(1) as usize;
        if self.registers.len() + more > MOST_REGISTERS {
            self.add(Rule::V3, span, format!("a span with more than {MOST_REGISTERS} registers and states"));
            return None;
        }
        let first = self.registers.len();
        for _ in 0..more {
            self.register(name, Register { bits, is_state }, Content::Unassigned);
        }
        self.visible.insert(name, Visible { register: first, count });
        if let Some(scope) = self.scopes.last_mut() {
            scope.names.push(name);
        }
        Some(first)
    }

    /// The register that a name means.
    fn find(&self, name: &str) -> Option<usize> {
        if let Some(&Visible { register, count }) = self.visible.get(name) {
            return count.is_none().then_some(register);
        }
        // `%nt_r12` of `%nt_r<16>`: every split into a name and a number is tried, the digits being few.
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count().min(4);
        (1..=digits).find_map(|digits| {
            let (base, number) = name.split_at_checked(name.len() - digits)?;
            let &Visible { register, count } = self.visible.get(base)?;
            let canonical = number == "0" || !number.starts_with('0');
            let number: u32 = number.parse().ok().filter(|_| canonical)?;
            (number < count?).then_some(register + number as usize)
        })
    }

    // Values.

    fn unknown(&mut self) -> Linear {
        self.unknowns += 1;
        Linear::unknown(Unknown::Some(self.unknowns))
    }

    /// A value of that many bits that nothing is known of.
    fn fresh(&mut self, bits: u32) -> Known {
        match bits {
            1 => Known::Predicate(self.predicate(&Facts::default(), &Facts::default())),
            32 => Known::Half(self.unknown()),
            64 => Known::Word(self.unknown()),
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
            Known::Lanes { .. } | Known::Predicate(_) | Known::Nothing => self.unknown(),
        }
    }

    // Control.

    /// A label: whoever branched to it comes in here.
    fn arrive(&mut self, name: &'w str) {
        self.stretch += 1;
        if let Some(other) = self.coming.remove(name) {
            self.now = Some(match self.now.take() {
                Some(here) => self.join(here, other),
                None => other,
            });
        }
    }

    /// What is known where two ways meet.
    fn join(&mut self, one: Here, other: Here) -> Here {
        let facts = one.facts.or(&other.facts);
        let mut others = other.contents.into_iter();
        let mut contents = Vec::with_capacity(one.contents.len());
        for (index, content) in one.contents.into_iter().enumerate() {
            let other = others.next().unwrap_or(Content::Unassigned);
            contents.push(match (content, other) {
                (a, b) if a == b => a,
                (Content::Assigned(_), Content::Assigned(_)) => {
                    // Both ways assigned it, something else each.
                    let bits = self.registers.get(index).map_or(0, |register| register.bits);
                    Content::Assigned(self.fresh(bits))
                }
                _ => Content::Unassigned,
            });
        }
        Here { contents, facts }
    }

    fn branch(&mut self, index: usize, operand: &Operand<'w>, during: &During) {
        self.stretch += 1;
        let Shape::Name(label) = operand.shape else { return };
        match self.labels.get(label) {
            None => {
                let message = format!("`{label}` is no label of this span");
                return self.add(Rule::V5, operand.span, message);
            }
            Some(&(place, _)) if place <= index => {
                return self.add(Rule::V5, operand.span, format!("a branch back to `{label}`"));
            }
            Some(&(_, scope)) if !self.scopes.iter().any(|open| open.number == scope) => {
                return self.add(
                    Rule::V5,
                    operand.span,
                    format!("`{label}` stands in braces that do not hold this branch"),
                );
            }
            Some(_) => {}
        }
        let Some(here) = self.now.take() else { return };
        let taken = Here { contents: here.contents.clone(), facts: during.facts.clone() };
        let taken = match self.coming.remove(label) {
            Some(other) => self.join(other, taken),
            None => taken,
        };
        self.coming.insert(label, taken);
        // Behind an unconditional branch nothing goes on; a guard that is known to hold makes it one.
        self.now = match &during.guard {
            Some(guard) => Some(Here { facts: here.facts.and(&guard.if_false), contents: here.contents }),
            None => None,
        };
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
        let mut forms = forms(opcode, self.site.sync).peekable();
        if forms.peek().is_none() {
            let (rule, what) = match is_sync(opcode) {
                true => (Rule::V8, "waits for other lanes"),
                false => (Rule::V6, "is not on the list of what may be inserted"),
            };
            self.add(rule, instruction.opcode_span, format!("`{opcode}` {what}"));
            return self.forgive(instruction);
        }
        let Some(form) = forms.find(|form| fits(form, &instruction.operands)) else {
            self.add(Rule::V6, span, format!("`{opcode}` may not be inserted with these operands"));
            return self.forgive(instruction);
        };

        let Some(values) = self.sources(&form, instruction, &during) else {
            return self.forgive(instruction);
        };
        let result = match form.act {
            Act::Branch => {
                if let Some(target) = instruction.operands.first() {
                    self.branch(index, target, &during);
                }
                return;
            }
            Act::Store => return self.store(&form, instruction, &during),
            _ => self.result(&form, instruction, &values, &during),
        };
        self.destinations(&form, instruction, result, &during);
    }

    /// After a refused instruction: what it would have written counts as assigned, so that one fault is told once.
    fn forgive(&mut self, instruction: &Instruction<'w>) {
        let first = instruction.operands.first().map(|operand| &operand.shape);
        if let Some(Shape::Name(name)) = first
            && let Some(register) = self.find(name)
            && let Some(&Register { bits, .. }) = self.registers.get(register)
        {
            let content = Content::Assigned(self.fresh(bits));
            if let Some(slot) = self.now.as_mut().and_then(|here| here.contents.get_mut(register)) {
                *slot = content;
            }
        }
    }

    /// V9 for every operand that is read. `None` if one may not be.
    fn sources(&mut self, form: &Form, instruction: &Instruction<'w>, during: &During) -> Option<Vec<Known>> {
        let mut values = Vec::new();
        let mut sound = true;
        for (slot, operand) in form.slots.iter().zip(&instruction.operands) {
            let value = match slot {
                Slot::From(width) => self.value(operand, form.bits(*width), during),
                Slot::FromPredicate => self.value(operand, 1, during),
                Slot::FromBoth(width) => self.all(operand, form.bits(*width), during),
                Slot::Stored => self.all(operand, form.last, during),
                Slot::Context => self.context(operand, form.last),
                Slot::Mask => self.mask(operand, during),
                Slot::Global | Slot::Target | Slot::To(_) | Slot::ToPredicates | Slot::ToBoth(_) => continue,
            };
            match value {
                Some(value) => values.push(value),
                None => sound = false,
            }
        }
        sound.then_some(values)
    }

    /// The value of a register or number of that many bits.
    fn value(&mut self, operand: &Operand<'w>, bits: u32, during: &During) -> Option<Known> {
        match &operand.shape {
            Shape::Name(name) => self.read(name, bits, operand.span, during),
            Shape::Not(name) => match self.read(name, bits, operand.span, during)? {
                Known::Predicate(predicate) => Some(Known::Predicate(predicate.not())),
                _ => None,
            },
            Shape::Number(number) => {
                let value = constant(*number, bits);
                if value.is_none() {
                    self.add(Rule::V9, operand.span, format!("this number does not fit in {bits} bits"));
                }
                Some(match (bits, value?) {
                    (64, value) => Known::Word(Linear::constant(value)),
                    (32, value) => Known::Half(Linear::constant(value)),
                    _ => self.fresh(bits),
                })
            }
            _ => None,
        }
    }

    /// Each part of a vector, or the one operand; what they hold is not followed.
    fn all(&mut self, operand: &Operand<'w>, bits: u32, during: &During) -> Option<Known> {
        let parts = match &operand.shape {
            Shape::Vector(parts) => parts.as_slice(),
            _ => std::slice::from_ref(operand),
        };
        let mut sound = true;
        for part in parts {
            sound &= self.value(part, bits, during).is_some();
        }
        sound.then_some(Known::Nothing)
    }

    /// V9 for a name.
    fn read(&mut self, name: &str, bits: u32, span: Span, during: &During) -> Option<Known> {
        if let Some(register) = self.find(name) {
            let declared = self.registers.get(register).map_or(0, |register| register.bits);
            if !has_room(declared, bits) {
                self.add(Rule::V9, span, format!("`{name}` has {declared} bits where {bits} are read"));
                return None;
            }
            let content = self.now.as_ref().and_then(|here| here.contents.get(register));
            return match content {
                Some(Content::Assigned(known)) => Some(known.clone()),
                Some(Content::Where(fact, known)) if during.facts.holds(fact) => Some(known.clone()),
                Some(Content::Where(..)) => {
                    let message = format!("`{name}` is assigned under a guard only, and read outside of it");
                    self.add(Rule::V9, span, message);
                    None
                }
                Some(Content::Unassigned) | None => {
                    self.add(Rule::V9, span, format!("`{name}` is not assigned on every path to here"));
                    None
                }
            };
        }
        if let Some(width) = special(name) {
            if (self.site.shadows)(name) {
                self.add(Rule::V9, span, format!("the kernel declares a `{name}` of its own here"));
                return None;
            }
            if width != bits {
                self.add(Rule::V9, span, format!("`{name}` has {width} bits where {bits} are read"));
                return None;
            }
            return Some(self.fresh(bits));
        }
        if bits == 1 && self.site.guard.is_some_and(|(guard, _)| guard == name) {
            return Some(Known::Predicate(Predicate::new(0, &Facts::default(), &Facts::default())));
        }
        let message =
            format!("`{name}` is no register of this span, state, the site's guard or a special register");
        self.add(Rule::V9, span, message);
        None
    }

    /// V9 for `[nt_ctx+8]`.
    fn context(&mut self, operand: &Operand<'w>, bits: u32) -> Option<Known> {
        let Shape::Address { base, offset } = operand.shape else { return None };
        if base != self.context {
            self.add(Rule::V9, operand.span, format!("`{base}` is not the context `{}`", self.context));
            return None;
        }
        let width = bits / 8;
        let field = u32::try_from(offset).ok().and_then(|offset| self.site.claim.field_at(offset, width));
        let Some(field) = field else {
            let message = format!(
                "bytes {offset} to {} of the context are not in one field of the claim",
                offset + i64::from(width)
            );
            self.add(Rule::V9, operand.span, message);
            return None;
        };
        if offset % i64::from(width) != 0 {
            self.add(Rule::V9, operand.span, format!("offset {offset} is not aligned to {width} bytes"));
            return None;
        }
        let at_start = offset == i64::from(field.offset);
        Some(match (field.kind, bits) {
            (FieldKind::Base(map), 64) => Known::Word(Linear::unknown(Unknown::Base(map))),
            (FieldKind::Cap(map), 64) => Known::Word(Linear::unknown(Unknown::Cap(map))),
            (FieldKind::Cap(map), 32) if at_start => Known::Half(Linear::unknown(Unknown::LowCap(map))),
            _ => self.fresh(bits),
        })
    }

    /// V8: the membermask is what `activemask` gave, in this stretch and under this guard.
    fn mask(&mut self, operand: &Operand<'w>, during: &During) -> Option<Known> {
        let guard = during.guard.as_ref().map(Predicate::own);
        let known = match &operand.shape {
            Shape::Name(name) => self.read(name, 32, operand.span, during)?,
            _ => Known::Nothing,
        };
        if known == (Known::Lanes { stretch: self.stretch, guard }) {
            return Some(known);
        }
        let message = "the membermask is not what `activemask` gave here, under the same guard";
        self.add(Rule::V8, operand.span, message);
        None
    }

    /// What the instruction gives.
    fn result(
        &mut self,
        form: &Form,
        instruction: &Instruction<'w>,
        values: &[Known],
        during: &During,
    ) -> Known {
        let lines: Vec<Linear> = match form.act {
            Act::Other | Act::CompareOther | Act::And | Act::Or | Act::Not | Act::ActiveMask => Vec::new(),
            _ => values.iter().map(|value| self.linear(value)).collect(),
        };
        let product = |a: &Linear, b: &Linear| match (a.as_constant(), b.as_constant()) {
            (Some(factor), _) => Linear::constant(0).plus(b, factor),
            (_, Some(factor)) => Linear::constant(0).plus(a, factor),
            (None, None) => None,
        };
        let word = match (form.act, lines.as_slice()) {
            (Act::Add, [a, b]) => a.plus(b, 1),
            (Act::Subtract, [a, b]) => a.plus(b, u64::MAX),
            (Act::Multiply | Act::MultiplyWide, [a, b]) => product(a, b),
            (Act::MultiplyAdd | Act::MultiplyAddWide, [a, b, c]) => {
                let product = product(a, b).unwrap_or_else(|| self.unknown());
                product.plus(c, 1)
            }
            (Act::ShiftLeft, [a, b]) => match b.as_constant() {
                Some(bits) if bits < 64 => Linear::constant(0).plus(a, 1 << bits),
                _ => None,
            },
            (Act::ZeroExtend, [a]) => Some(a.clone()),
            _ => None,
        };
        if let Some(word) = word {
            return Known::Word(word);
        }
        match (form.act, values) {
            (Act::Copy | Act::LoadContext, [Known::Lanes { .. }]) => self.fresh(32),
            (Act::Copy | Act::LoadContext, [known]) => known.clone(),
            (Act::ActiveMask, _) => {
                Known::Lanes { stretch: self.stretch, guard: during.guard.as_ref().map(Predicate::own) }
            }
            (Act::Not, [Known::Predicate(a)]) => Known::Predicate(a.not()),
            (Act::And, [Known::Predicate(a), Known::Predicate(b)]) => {
                Known::Predicate(self.predicate(&a.if_true.and(&b.if_true), &a.if_false.or(&b.if_false)))
            }
            (Act::Or, [Known::Predicate(a), Known::Predicate(b)]) => {
                Known::Predicate(self.predicate(&a.if_true.or(&b.if_true), &a.if_false.and(&b.if_false)))
            }
            (Act::Compare(comparison), _) => {
                let (if_true, if_false) = match lines.as_slice() {
                    [a, b, ..] => compared(comparison, a, b),
                    _ => (Facts::default(), Facts::default()),
                };
                self.joined(instruction.opcode, if_true, if_false, values.get(2))
            }
            (Act::CompareOther, _) => {
                self.joined(instruction.opcode, Facts::default(), Facts::default(), values.get(2))
            }
            _ => {
                let bits = match form.slots.first() {
                    Some(Slot::To(width)) => form.bits(*width),
                    Some(Slot::ToPredicates) => 1,
                    _ => 0,
                };
                self.fresh(bits)
            }
        }
    }

    /// A comparison, joined by `.and` or `.or` to a third operand if there is one.
    fn joined(&mut self, opcode: &str, if_true: Facts, if_false: Facts, third: Option<&Known>) -> Known {
        let word = |wanted| opcode.split('.').any(|word| word == wanted);
        let (if_true, if_false) = match third {
            Some(Known::Predicate(c)) if word("and") => (if_true.and(&c.if_true), if_false.or(&c.if_false)),
            Some(Known::Predicate(c)) if word("or") => (if_true.or(&c.if_true), if_false.and(&c.if_false)),
            Some(_) => (Facts::default(), Facts::default()),
            None => (if_true, if_false),
        };
        Known::Predicate(self.predicate(&if_true, &if_false))
    }

    /// V7, and V12 for state: writes the destinations.
    fn destinations(&mut self, form: &Form, instruction: &Instruction<'w>, result: Known, during: &During) {
        for (slot, operand) in form.slots.iter().zip(&instruction.operands) {
            match (slot, &operand.shape) {
                (Slot::To(width), _) => self.write(operand, form.bits(*width), result.clone(), during),
                (Slot::ToPredicates, Shape::Pair(first, second)) => {
                    self.write(first, 1, result.clone(), during);
                    let complement = self.fresh(1);
                    self.write(second, 1, complement, during);
                }
                (Slot::ToPredicates, _) => self.write(operand, 1, result.clone(), during),
                (Slot::ToBoth(width), Shape::Vector(parts)) => {
                    for part in parts {
                        let bits = form.bits(*width);
                        let part_of = self.fresh(bits);
                        self.write(part, bits, part_of, during);
                    }
                }
                _ => {}
            }
        }
    }

    fn write(&mut self, operand: &Operand<'w>, bits: u32, known: Known, during: &During) {
        let name = match &operand.shape {
            Shape::Name(name) => *name,
            Shape::Sink => return,
            _ => return self.add(Rule::V7, operand.span, "this is nothing that a span may write"),
        };
        let Some(index) = self.find(name) else {
            return self.add(
                Rule::V7,
                operand.span,
                format!("`{name}` is neither declared in this span nor state"),
            );
        };
        let Some(&register) = self.registers.get(index) else { return };
        if !has_room(register.bits, bits) {
            let message = format!("`{name}` has {} bits where {bits} are written", register.bits);
            return self.add(Rule::V7, operand.span, message);
        }
        if register.is_state {
            self.effect(operand.span, during);
        }
        let old = self.now.as_ref().and_then(|here| here.contents.get(index)).cloned();
        let content = match (&during.guard, old) {
            (None, _) => Content::Assigned(known),
            // Assigned before, or in the other arm: assigned, with one value or the other.
            (Some(_), Some(Content::Assigned(_))) => Content::Assigned(self.fresh(register.bits)),
            (Some(guard), Some(Content::Where(fact, _))) if fact == guard.not().own() => {
                Content::Assigned(self.fresh(register.bits))
            }
            (Some(guard), _) => Content::Where(guard.own(), known),
        };
        if let Some(here) = &mut self.now {
            here.contents.resize(self.registers.len(), Content::Unassigned);
            if let Some(slot) = here.contents.get_mut(index) {
                *slot = content;
            }
        }
    }

    /// V12: an effect happens only when the instruction at the site does.
    fn effect(&mut self, span: Span, during: &During) {
        if let Some((guard, negated)) = self.site.guard
            && !self.site.is_entry
            && !during.facts.holds(&Fact::Held(0, !negated))
        {
            let not = if negated { "!" } else { "" };
            self.add(
                Rule::V12,
                span,
                format!("this effect does not stand under the guard `@{not}{guard}` of its site"),
            );
        }
    }

    /// V11: the address is that of a record below the capacity.
    fn store(&mut self, form: &Form, instruction: &Instruction<'w>, during: &During) {
        let Some(Operand { span, shape: Shape::Address { base, offset } }) = instruction.operands.first()
        else {
            return;
        };
        let span = *span;
        self.effect(span, during);
        if self.find(base).is_none() {
            return self.add(Rule::V11, span, format!("`{base}` is no address that this span computed"));
        }
        let Some(Known::Word(address)) = self.read(base, 64, span, during) else { return };
        let Some(address) = address.plus(&Linear::constant(*offset as u64), 1) else { return };
        let Some(map) = address.base() else {
            return self.add(Rule::V11, span, format!("`{base}` is not computed from the base of one map"));
        };
        let bytes = u64::from(form.last / 8 * form.lanes);
        let mut bounded = false;
        for fact in during.facts.iter() {
            if let Fact::Below(index, of) = fact
                && *of == map
            {
                bounded = true;
                if self.within(&address, map, index, bytes) {
                    return;
                }
            }
        }
        let name = self.site.claim.maps.get(map as usize).map_or("", |map| map.name.as_str());
        let message = if bounded {
            format!(
                "`{base}` is not the base of `{name}` plus its shape times the index that was compared, or {bytes} bytes \
                 there are not aligned within a record"
            )
        } else {
            format!("no index is known to be below the capacity of `{name}` here")
        };
        self.add(Rule::V11, span, message);
    }

    /// Do `bytes` bytes at `address` lie within record `index` of a map, aligned?
    fn within(&self, address: &Linear, map: u32, index: &Linear, bytes: u64) -> bool {
        let Some(shape) = self.site.claim.maps.get(map as usize).map(|map| &map.shape) else { return false };
        // Where in the record: what is left of the address without base and index, if that is a constant.
        let place = |stride: u32, caps: u32| {
            address
                .plus(&Linear::unknown(Unknown::Base(map)), u64::MAX)?
                .plus(index, u64::from(stride).wrapping_neg())?
                .plus(&Linear::unknown(Unknown::Cap(map)), u64::from(caps).wrapping_neg())?
                .as_constant()
        };
        match shape {
            MapShape::Packed { stride } => place(*stride, 0).is_some_and(|at| {
                let stride = u64::from(*stride);
                at < stride
                    && bytes <= stride - at
                    && at.is_multiple_of(bytes)
                    && stride.is_multiple_of(bytes)
            }),
            MapShape::Columns(columns) => columns.iter().any(|column| {
                place(column.width, column.offset) == Some(0) && bytes == u64::from(column.width)
            }),
        }
    }
}

/// What follows from a comparison of two values being true, and from its being false.
fn compared(comparison: Comparison, a: &Linear, b: &Linear) -> (Facts, Facts) {
    let below = |small: &Linear, large: &Linear| match large.as_unknown() {
        Some(Unknown::Cap(map) | Unknown::LowCap(map)) => Facts::of(vec![Fact::Below(small.clone(), map)]),
        _ => Facts::default(),
    };
    match comparison {
        Comparison::Less => (below(a, b), Facts::default()),
        Comparison::LessEqual => (Facts::default(), below(b, a)),
        Comparison::Greater => (below(b, a), Facts::default()),
        Comparison::GreaterEqual => (Facts::default(), below(a, b)),
    }
}

/// May a register of `declared` bits stand where an instruction of `wanted` bits has one? Exactly as wide, but for 8
/// bits, for which there is no register: `ld`, `st` and `cvt` take wider ones there.
fn has_room(declared: u32, wanted: u32) -> bool {
    declared == wanted || (wanted == 8 && matches!(declared, 16 | 32))
}

/// A number as that many bits, if it fits.
fn constant(number: Number, bits: u32) -> Option<u64> {
    match number {
        Number::Single(single) if bits == 32 => Some(u64::from(single)),
        Number::Double(double) if bits == 64 => Some(double),
        Number::Single(_) | Number::Double(_) => None,
        Number::Integer(value) => {
            let fits = -(1_i128 << (bits - 1)) <= value && value < 1 << bits;
            let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
            // Two's complement, cut to the width that it fits in.
            fits.then_some(value as u64 & mask)
        }
    }
}

/// Have the operands the shapes of the form's slots?
fn fits(form: &Form, operands: &[Operand<'_>]) -> bool {
    let scalar = |operand: &Operand<'_>| matches!(operand.shape, Shape::Name(_) | Shape::Number(_));
    let written = |operand: &Operand<'_>| matches!(operand.shape, Shape::Name(_) | Shape::Sink);
    form.slots.len() == operands.len()
        && form.slots.iter().zip(operands).all(|(slot, operand)| match (slot, &operand.shape) {
            (Slot::To(_) | Slot::Target, Shape::Name(_)) => true,
            (Slot::ToPredicates, Shape::Name(_)) => true,
            (Slot::ToPredicates, Shape::Pair(first, second)) => written(first) && written(second),
            (Slot::ToBoth(_), Shape::Vector(parts)) => {
                parts.len() == 2 && parts.iter().all(|part| matches!(part.shape, Shape::Name(_)))
            }
            (Slot::From(_), _) => scalar(operand),
            (Slot::FromPredicate, Shape::Name(_) | Shape::Not(_)) => true,
            (Slot::FromBoth(_), Shape::Vector(parts)) => parts.len() == 2 && parts.iter().all(scalar),
            (Slot::Stored, Shape::Vector(parts)) => {
                form.lanes > 1 && parts.len() == form.lanes as usize && parts.iter().all(scalar)
            }
            (Slot::Stored, _) => form.lanes == 1 && scalar(operand),
            (Slot::Context | Slot::Global, Shape::Address { .. }) => true,
            (Slot::Mask, _) => scalar(operand),
            _ => false,
        })
}
