//! V10: where in a function the results of asynchronous instructions may still be on their way.
//!
//! ```text
//! wgmma.fence.sync.aligned;            from here on registers are the matrix instructions' own
//! wgmma.mma_async… {%f1, …}, …;        %f1 is on its way, and not even promised
//! wgmma.commit_group.sync.aligned;     promised
//! wgmma.wait_group.sync.aligned 1;     still: only the older groups are over
//! wgmma.wait_group.sync.aligned 0;     there
//! tcgen05.ld… {%r1}, [%r2];            on its way until `tcgen05.wait::ld`
//! ```
//!
//! One walk along every way through the function, which asks of each place what may be on its way there: a wait counts
//! where every way leads over it. Not which registers, only which kind of instruction: a program that reads the one
//! result while another is on its way makes ptxas wait for both. A wait, commit or branch under a guard may not happen;
//! a branch to an unknown place may lead to every label.

use crate::hash::Table;
use nt_ptx::TokenKind;
use nt_ptx::syntax::{Instruction, Kind, Module, Statement};
use std::borrow::Cow;

/// What is on its way, of which kinds.
pub(crate) type Flight = u8;

/// Matrix instructions behind which no `commit_group` came yet.
const LOOSE: Flight = 1;
/// Groups of them.
const GROUPED: Flight = 2;
/// Loads of tensor memory.
const LOADED: Flight = 4;

/// The name of an opcode without what may stand between its words: `wgmma .mma_async` is one too.
pub(crate) fn opcode<'m>(module: &Module<'m>, instruction: &Instruction) -> Cow<'m, str> {
    let text = module.at(instruction.opcode);
    if text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b':' | b'_')) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(module.code(instruction.opcode).map(|(_, at)| module.at(at)).collect())
}

/// What the result of an asynchronous instruction waits for, if it is one (PTX ISA 9.0, 9.7.15.5 and 9.7.16.8).
pub(crate) fn asynchronous(opcode: &str) -> Option<Flight> {
    let is =
        |name: &str| opcode.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    match () {
        () if is("wgmma.mma_async") => Some(LOOSE | GROUPED),
        () if is("tcgen05.ld") => Some(LOADED),
        () => None,
    }
}

/// What a wait waits for all of, which it is told where it stands.
pub(crate) fn waited_for(opcode: &str) -> Flight {
    let is =
        |name: &str| opcode.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    match () {
        () if is("wgmma.wait_group") => LOOSE | GROUPED,
        () if is("tcgen05.wait::ld") => LOADED,
        () => 0,
    }
}

/// What may be on its way before and behind each statement of a function.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    before: Vec<Flight>,
    behind: Vec<Flight>,
}

impl Flights {
    /// What may be on its way where that statement of the function begins.
    pub(crate) fn before(&self, statement: usize) -> Flight {
        self.before.get(statement).copied().unwrap_or(Flight::MAX)
    }

    /// The same where it is done.
    pub(crate) fn behind(&self, statement: usize) -> Flight {
        self.behind.get(statement).copied().unwrap_or(Flight::MAX)
    }

    /// Follows every way through a function.
    pub(crate) fn find(module: &Module<'_>, statements: &[Statement]) -> Flights {
        // A stretch begins at the function's start and at every label. What comes in there only grows, by one of three
        // bits at a time, so each stretch is walked four times at most.
        let mut starts = vec![0];
        let mut labels: Table<&str, Vec<usize>> = Table::default();
        let mut listed: Vec<&str> = Vec::new();
        for (index, statement) in statements.iter().enumerate() {
            match statement.kind {
                Kind::Label(name) => {
                    labels.entry(module.at(name)).or_default().push(starts.len());
                    starts.push(index);
                }
                Kind::Table => {
                    let names = module.code(statement.span).filter(|(kind, _)| *kind == TokenKind::Name);
                    listed.extend(names.map(|(_, at)| module.at(at)));
                }
                _ => {}
            }
        }
        let mut walk = Walk {
            module,
            statements,
            comes: vec![0; starts.len()],
            waiting: (0..starts.len()).rev().collect(),
            starts,
            labels,
            listed,
            brought: [0; 2],
            flights: Flights { before: vec![0; statements.len()], behind: vec![0; statements.len()] },
        };
        while let Some(stretch) = walk.waiting.pop() {
            walk.stretch(stretch);
        }
        walk.flights
    }
}

struct Walk<'w, 's> {
    module: &'w Module<'s>,
    statements: &'w [Statement],
    /// Where each stretch begins.
    starts: Vec<usize>,
    /// What comes in there.
    comes: Vec<Flight>,
    /// The stretches that are to be walked.
    waiting: Vec<usize>,
    /// The stretches by label; a name may be declared in several scopes.
    labels: Table<&'s str, Vec<usize>>,
    /// What tables of branch targets name.
    listed: Vec<&'s str>,
    /// What was brought to all labels of tables, and to all labels.
    brought: [Flight; 2],
    flights: Flights,
}

impl Walk<'_, '_> {
    fn stretch(&mut self, stretch: usize) {
        let Some((&from, &comes)) = self.starts.get(stretch).zip(self.comes.get(stretch)) else { return };
        let to = self.starts.get(stretch + 1).copied().unwrap_or(self.statements.len());
        let (module, all) = (self.module, self.statements);
        let mut now = comes;
        for index in from..to {
            let Some(statement) = all.get(index) else { return };
            set(&mut self.flights.before, index, now);
            if let Kind::Instruction(instruction) = statement.kind {
                let opcode = opcode(module, &instruction);
                now = behind(module, &instruction, &opcode, now);
                set(&mut self.flights.behind, index, now);
                let leaves = match opcode.split('.').next().unwrap_or("") {
                    "bra" => {
                        let label = module.at(instruction.operands).trim();
                        match self.labels.get(label).cloned() {
                            Some(targets) => targets.into_iter().for_each(|to| self.arrive(to, now)),
                            None => self.everywhere(now),
                        }
                        true
                    }
                    "brx" => {
                        self.listed(now);
                        true
                    }
                    "ret" | "exit" => true,
                    _ => false,
                };
                if leaves && instruction.guard.is_none() {
                    // What stands behind it here is never reached from here.
                    return;
                }
            } else {
                set(&mut self.flights.behind, index, now);
            }
        }
        self.arrive(stretch + 1, now);
    }

    /// More may be on its way where a stretch begins.
    fn arrive(&mut self, stretch: usize, more: Flight) {
        if let Some(comes) = self.comes.get_mut(stretch)
            && *comes | more != *comes
        {
            *comes |= more;
            self.waiting.push(stretch);
        }
    }

    /// At every label that a table names, or, without any, at all of them.
    fn listed(&mut self, more: Flight) {
        if self.listed.is_empty() {
            return self.everywhere(more);
        }
        let [brought, _] = &mut self.brought;
        if *brought | more == *brought {
            return;
        }
        *brought |= more;
        for target in 0..self.listed.len() {
            let stretches = self.listed.get(target).and_then(|name| self.labels.get(name)).cloned();
            stretches.into_iter().flatten().for_each(|to| self.arrive(to, more));
        }
    }

    fn everywhere(&mut self, more: Flight) {
        let [_, brought] = &mut self.brought;
        if *brought | more == *brought {
            return;
        }
        *brought |= more;
        (0..self.starts.len()).for_each(|to| self.arrive(to, more));
    }
}

fn set(list: &mut [Flight], index: usize, flight: Flight) {
    if let Some(slot) = list.get_mut(index) {
        *slot |= flight;
    }
}

/// What is on its way behind an instruction, of what was before.
fn behind(module: &Module<'_>, instruction: &Instruction, opcode: &str, now: Flight) -> Flight {
    match asynchronous(opcode) {
        // What it begins is loose, or a load.
        Some(LOADED) => return now | LOADED,
        Some(_) => return now | LOOSE,
        None => {}
    }
    let is =
        |name: &str| opcode.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    let done = match () {
        () if is("wgmma.fence") => return now | LOOSE,
        () if is("wgmma.commit_group") && now & LOOSE != 0 => now & !LOOSE | GROUPED,
        () if is("wgmma.wait_group") && module.at(instruction.operands).trim() == "0" => now & !GROUPED,
        () if is("tcgen05.wait::ld") => now & !LOADED,
        () => return now,
    };
    if instruction.guard.is_some() { now | done } else { done }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What may be on its way before each `st`, as letters: loose, grouped, a load.
    fn check(body: &str, expected: &[&str]) {
        let text = format!(".version 8.7\n.target sm_100a\n.entry k() {{ {body} }}");
        let (module, found) = nt_ptx::parse(&text);
        assert!(!found.has_errors(), "{found:?}");
        let all = module.body(&module.functions[0]);
        let flights = Flights::find(&module, all);
        let letters = |flight: Flight| {
            let letter = |(bit, letter): (Flight, char)| (flight & bit != 0).then_some(letter);
            [(LOOSE, 'm'), (GROUPED, 'g'), (LOADED, 'l')].into_iter().filter_map(letter).collect::<String>()
        };
        let stores = all.iter().enumerate().filter(|(_, s)| module.at(s.span).starts_with("st"));
        let told: Vec<String> = stores.map(|(index, _)| letters(flights.before(index))).collect();
        assert_eq!(told, expected, "{body}");
    }

    const MMA: &str =
        "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r3, %r7}, %rd1, %rd1, 1, 1, 1, 0, 0;";

    #[test]
    fn a_group_is_over_when_all_are() {
        check(
            &format!(
                "st; {MMA} st; wgmma.commit_group.sync.aligned; st; wgmma.wait_group.sync.aligned 1; st; \
                 wgmma.wait_group.sync.aligned 0; st; {MMA} wgmma .wait_group /* all? */ .sync.aligned 0; st;"
            ),
            &["", "m", "g", "g", "", "m"],
        );
        check(
            "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%r2]; st; tcgen05.wait::st.sync.aligned; st; tcgen05.wait::ld.sync.aligned; st;",
            &["l", "l", ""],
        );
    }

    #[test]
    fn a_wait_counts_where_every_way_leads_over_it() {
        let begun = format!("{MMA} wgmma.commit_group.sync.aligned;");
        let wait = "wgmma.wait_group.sync.aligned 0;";
        check(&format!("{begun} @%p {wait} st;"), &["g"]);
        check(&format!("{begun} @%p bra L; {wait} st; L: st;"), &["", "g"]);
        check(&format!("{begun} bra M; L: {wait} st; ret; M: st; bra L;"), &["", "g"]);
        check(&format!("L: st; {begun} @%p bra L; {wait} st;"), &["g", ""]);
        check(&format!("{begun} @%p ret; {wait} st; ret; st;"), &["", ""]);
        check(
            &format!("{begun} T: .branchtargets A, B; brx.idx %r1, T; C: st; A: {wait} st; ret; B: st;"),
            &["", "", "g"],
        );
        check(&format!("{begun} bra %r1; A: st;"), &["g"]);
        // One label name in two scopes.
        check(&format!("{{ L: st; }} {{ {begun} @%p bra L; ret; L: st; }}"), &["g", "g"]);
    }
}
