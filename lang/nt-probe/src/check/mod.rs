//! Tree to checked program: names, types, units, tracepoints, maps, each in a file of its own.
//!
//! Items may stand in any order, so declarations are collected first. What is known of a state (its type, which its first
//! assignment gives, and whether lanes differ in it) depends on the bodies, which depend on it: bodies are checked until
//! these facts no longer change, and the last run's diagnostics count.
//!
//! An expression that is wrong has no value ([`Value::Bad`]) and causes no further errors.

mod aggregates;
mod config;
mod constants;
mod conversions;
mod exprs;
mod instructions;
mod maps;
pub(crate) mod names;
mod operands;
mod operators;
mod places;
mod points;
mod sample;
mod saves;
mod sites;
mod stmts;
mod survey;
mod types;
mod units;

use crate::ast::{Binding, Item};
use crate::checked;
use crate::token::Word;
use nt_diag::{Diagnostic, Found, Span};
use nt_ir::program::{Operand, SiteKey, State, StateId, Table, Tracepoint, Type, Unit};
use std::collections::{BTreeMap, BTreeSet};

/// The states a program may have: each is a register of every thread, of which there are at most 255.
const STATES: usize = 64;

/// A name that an item declares.
#[derive(Debug, Clone, Copy)]
enum Global {
    Const(usize),
    Arg,
    State(StateId),
    Map(usize),
}

/// What an expression came to.
#[derive(Debug, Clone)]
enum Value {
    /// An integer that has no type yet: it takes the other operand's.
    Literal(Literal),
    /// `c ? 1 : 2`, which has no type either.
    Choice(Box<Choice>),
    Typed(checked::Expr),
    /// What a site is called: a text, which is compared or a key.
    Text(SiteKey, Span),
    /// An operand whose type is the instruction's: it is cast, or compared with another, before it is a value.
    Open(Operand, Span),
    /// A string, without quotes and escapes.
    Glob(String, Span),
    /// Wrong, which has been told.
    Bad,
}

/// An integer without a type.
#[derive(Debug, Clone, Copy)]
struct Literal {
    value: i128,
    /// Did a `~` have a part in it? Then it stands for bits, and fits an unsigned type though it is negative.
    complement: bool,
    span: Span,
}

/// A choice between two integers without a type, or of choices between them.
#[derive(Debug, Clone)]
struct Choice {
    condition: checked::Expr,
    a: Value,
    b: Value,
    span: Span,
}

/// What the bodies tell of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Facts {
    ty: Option<Type>,
    varying: bool,
}

/// A `let` in sight.
#[derive(Debug, Clone, Copy)]
struct Local<'s> {
    name: Word<'s>,
    /// `None` if its value was wrong.
    ty: Option<Type>,
    varying: bool,
}

/// What is known while one probe is checked.
struct Scope<'s> {
    unit: Unit,
    /// Where it runs; none while constants are folded.
    points: Vec<Tracepoint>,
    /// Is what is checked now a condition that a predicate joins with `&&`? Taken by each expression from the one around it.
    conjunct: bool,
    /// The `sample(N)` of the predicate, and its place.
    sample: Option<(u32, Span)>,
    /// How many conditions on the site stand around: what they decide may ask for what some sites lack.
    undecided: usize,
    /// The probe's lets, by `LetId`.
    lets: Vec<Local<'s>>,
    /// Those in sight.
    visible: Vec<(&'s str, checked::LetId)>,
}

impl Scope<'_> {
    fn new(unit: Unit, points: Vec<Tracepoint>) -> Self {
        Scope {
            unit,
            points,
            conjunct: false,
            sample: None,
            undecided: 0,
            lets: Vec::new(),
            visible: Vec::new(),
        }
    }
}

struct Checker<'c, 's> {
    text: &'s str,
    items: &'c [Item<'s>],
    globals: BTreeMap<&'s str, (Global, Span)>,
    consts: constants::Constants<'c, 's>,
    state_items: Vec<&'c Binding<'s>>,
    facts: Vec<Facts>,
    maps: Vec<maps::Declared<'s>>,
    /// As the probes checked so far use them.
    tables: Vec<Table>,
    scope: Scope<'s>,
    /// Constructs refused by name so far, each told once.
    missing: BTreeSet<&'static str>,
    found: Found,
}

/// Checks a parsed program. The result is whole exactly if no error was found.
pub(crate) fn check<'s>(text: &'s str, items: &[Item<'s>], found: &mut Found) -> checked::Program {
    let mut checker = Checker {
        text,
        items,
        globals: BTreeMap::new(),
        consts: constants::Constants::default(),
        state_items: Vec::new(),
        facts: Vec::new(),
        maps: Vec::new(),
        tables: Vec::new(),
        scope: Scope::new(Unit::Thread, Vec::new()),
        missing: BTreeSet::new(),
        found: Found::new(),
    };
    checker.declare();
    checker.fold_constants();
    let config = checker.configure();
    checker.declare_maps();
    checker.declare_states();
    let mut probes = checker.probes();
    checker.scope = Scope::new(Unit::Thread, Vec::new());
    let mut states = checker.states();
    checker.hidden_states(&mut states, &mut probes);
    let maps = checker.maps.iter().map(maps::Declared::lower).collect();
    found.extend(checker.found);
    checked::Program { states, maps, tables: checker.tables, probes, config }
}

impl<'s> Checker<'_, 's> {
    /// Enters the names of all items, which share one namespace with lets and given names.
    fn declare(&mut self) {
        for item in self.items {
            match item {
                Item::Include { span, .. } => self.not_yet(*span, "`include` items"),
                Item::Table(table) => self.not_yet(table.span, "capacities of aggregations (`map @x: …`)"),
                Item::Const(binding) => {
                    let index = self.consts.add(binding);
                    self.enter(binding.name, Global::Const(index));
                }
                Item::Arg(binding) => {
                    self.enter(binding.name, Global::Arg);
                    self.not_yet(binding.span, exprs::ARGUMENTS);
                }
                Item::State(binding) => {
                    let id = StateId(self.state_items.len() as u32);
                    if self.state_items.len() == STATES {
                        let message = format!("a program has at most {STATES} states");
                        let diagnostic = Diagnostic::error("budget", binding.span, message)
                            .note("each is a register of every thread, for as long as the kernel runs");
                        self.found.push(diagnostic);
                    }
                    if self.state_items.len() < STATES {
                        self.state_items.push(binding);
                        self.enter(binding.name, Global::State(id));
                    }
                }
                Item::Records(records) => {
                    self.enter(records.name, Global::Map(self.maps.len()));
                    self.maps.push(maps::Declared::new(records));
                }
                Item::Config { .. } | Item::Probe(_) => {}
            }
        }
    }

    fn enter(&mut self, name: Word<'s>, global: Global) {
        if let Some(given) = names::find(name.text) {
            self.given_twice(name, given);
        } else if let Some((_, first)) = self.globals.get(name.text) {
            let diagnostic = duplicate(name, *first);
            self.found.push(diagnostic);
        } else {
            self.globals.insert(name.text, (global, name.span));
        }
    }

    fn given_twice(&mut self, name: Word<'s>, given: &names::Given) {
        let message = format!("`{}` is given by the language already: {}", name.text, given.about);
        let diagnostic = Diagnostic::error("duplicate-name", name.span, message)
            .note("nothing may be shadowed, so that a name means one thing everywhere");
        self.found.push(diagnostic);
    }

    /// A construct of the language that is not compiled yet; each is told once.
    fn not_yet(&mut self, span: Span, what: &'static str) {
        if self.missing.insert(what) {
            self.found.push(Diagnostic::error("not-yet", span, format!("{what}{NOT_YET}")));
        }
    }

    /// The type that `word` names, if it may stand in an item or cast.
    fn type_named(&mut self, word: Word<'_>) -> Option<Type> {
        match Type::from_word(word.text) {
            Some(Type::F32 | Type::F64) => {
                self.not_yet(word.span, exprs::FLOATS);
                None
            }
            Some(ty) => Some(ty),
            None if matches!(word.text, "f16" | "bf16") => {
                self.not_yet(word.span, exprs::FLOATS);
                None
            }
            None if word.text == "str" => {
                self.not_yet(word.span, exprs::STRINGS);
                None
            }
            None => {
                let diagnostic =
                    Diagnostic::error("unknown-name", word.span, format!("unknown type `{}`", word.text))
                        .suggest(word.text, Type::ALL.iter().map(|ty| ty.word()))
                        .note("types are u8 u16 u32 u64, s8 s16 s32 s64, f32 f64, bool and ptr");
                self.found.push(diagnostic);
                None
            }
        }
    }

    fn declare_states(&mut self) {
        for binding in self.state_items.clone() {
            let ty = binding.ty.and_then(|word| self.type_named(word));
            // A type that is unknown has been told: any will do to go on.
            let ty = if binding.ty.is_some() { ty.or(Some(Type::U64)) } else { None };
            self.facts.push(Facts { ty, varying: false });
        }
    }

    /// Checks all probes until the facts about states settle.
    fn probes(&mut self) -> Vec<checked::Probe> {
        let (found, missing) = (self.found.clone(), self.missing.clone());
        loop {
            let before = self.facts.clone();
            let items = self.items;
            let mut probes = Vec::new();
            for item in items {
                if let Item::Probe(probe) = item {
                    probes.extend(self.probe(probe));
                }
            }
            if self.facts == before {
                let untyped = self.facts.iter().any(|facts| facts.ty.is_none());
                if !untyped {
                    return probes;
                }
                // Never assigned, or only from each other: what a literal is, alone.
                for facts in &mut self.facts {
                    facts.ty = facts.ty.or(Some(Type::U64));
                }
            }
            // Each round adds a fact to one of at most STATES states, so the rounds end.
            self.found = found.clone();
            self.missing = missing.clone();
            self.tables.clear();
        }
    }

    /// The states with their types and initial values.
    fn states(&mut self) -> Vec<State> {
        let mut states = Vec::new();
        for (index, binding) in self.state_items.clone().into_iter().enumerate() {
            let ty = self.facts.get(index).and_then(|facts| facts.ty).unwrap_or(Type::U64);
            let init = match &binding.value {
                Some(value) => self.constant_of(value, ty).unwrap_or(0),
                None => 0,
            };
            states.push(State { name: binding.name.text.to_owned(), ty, init, span: binding.span });
        }
        states
    }
}

/// The end of the message of a construct that is not compiled yet.
pub(crate) const NOT_YET: &str = " are not compiled yet";

/// `name` is declared a second time.
fn duplicate(name: Word<'_>, first: Span) -> Diagnostic {
    Diagnostic::error("duplicate-name", name.span, format!("`{}` is declared already", name.text))
        .note_at(first, "declared here")
        .note("nothing may be shadowed, so that a name means one thing everywhere")
}
