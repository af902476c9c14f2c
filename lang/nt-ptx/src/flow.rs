//! Control flow of a function: basic blocks and what may run after them.
//!
//! ```text
//! 0  mov.u32 %r1, 0;            block 0 → 1
//! 1  L: add.u32 %r1, %r1, 1;    block 1 → 1, 2 (backward: `@%p1 bra` to `L`)
//!    setp.lt.u32 %p1, %r1, 9;
//!    @%p1 bra L;
//! 2  trap;                      block 2 → nothing
//! 3  ret;                       block 3 → nothing, not reachable
//! ```
//!
//! Promise: an edge too many is possible, one too few is not. A guarded leaver (`@p ret`) may go on; a `brx.idx` goes
//! to all of its list, and to every label of the function if the list cannot be found; a call comes back unless its
//! target is declared `.noreturn`.
//!
//! Source: PTX ISA 9.0, section 9.7.12 (control flow instructions).

use crate::resolve::ModuleInfo;
use crate::syntax::{Function, Instruction, Kind, Module, Operand, OperandKind, Statement};
use crate::token::TokenKind;
use std::collections::BTreeMap;
use std::ops::Range;

/// The basic blocks of a function, in text order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flow {
    /// They cover all statements of the body. The first begins the function, and is there even for an empty body.
    pub blocks: Vec<Block>,
    /// Can control reach the closing brace?
    pub end_reachable: bool,
    /// Branches to a label at or before them: the branch's statement and the label's.
    pub backward: Vec<(u32, u32)>,
    /// Did the function have more than 2^24 edges, as no compiler writes? Then some are missing, and everything
    /// counts as reachable.
    pub is_cut: bool,
}

/// A `brx.idx` has an edge to each label of its list, so that edges can grow as the square of the text.
const MOST_EDGES: usize = 1 << 24;

/// Statements that run one after the other, but for guards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Indices into [`Module::statements`].
    pub statements: Range<u32>,
    /// Blocks that may run next, as indices into [`Flow::blocks`], rising.
    pub successors: Vec<u32>,
    /// May control run from its end into the closing brace?
    pub falls_off: bool,
    /// Can it be reached from the function's start?
    pub reachable: bool,
}

impl Flow {
    /// Can the statement run? What follows an unconditional `trap`, `exit`, `ret` or `bra` cannot, up to a label that
    /// something else branches to.
    pub fn is_reachable(&self, statement: u32) -> bool {
        self.block_of(statement).and_then(|index| self.blocks.get(index)).is_some_and(|block| block.reachable)
    }

    /// The block that a statement is in.
    pub fn block_of(&self, statement: u32) -> Option<usize> {
        let index = self.blocks.partition_point(|block| block.statements.end <= statement);
        let block = self.blocks.get(index)?;
        block.statements.contains(&statement).then_some(index)
    }
}

/// How a statement goes on.
enum Next {
    /// With the statement behind it.
    On,
    /// Nowhere.
    Leaves,
    /// At one of the labels, or behind it if it may.
    Branches { labels: Vec<u32>, goes_on: bool },
}

/// The control flow of one function; no blocks for a declaration.
pub fn flow(module: &Module<'_>, info: &ModuleInfo<'_>, function: usize) -> Flow {
    let Some(body) = module.functions.get(function).and_then(|function| function.body.as_ref()) else {
        return Flow::default();
    };
    let all = body.statements.clone();
    let statements = module.functions.get(function).map_or(&[][..], |function| module.body(function));
    let first = all.start;
    let mut walk = Walk { module, info, function, statements, first, lists: BTreeMap::new(), edges: 0 };

    // A block ends behind what does not just go on, and before a label that something goes to. Debug data names places by
    // labels too, where nothing comes in.
    let nexts: Vec<Next> = statements.iter().map(|statement| walk.next(statement)).collect();
    let is_cut = walk.edges > MOST_EDGES;
    let mut entered: Vec<bool> = vec![is_cut; statements.len()];
    for next in &nexts {
        let Next::Branches { labels, .. } = next else { continue };
        for label in labels {
            if let Some(entered) = entered.get_mut(label.saturating_sub(first) as usize) {
                *entered = true;
            }
        }
    }
    let mut ends: Vec<(u32, Next)> = Vec::new();
    // Is the block at hand nothing but labels so far? Another one begins no further block.
    let mut is_bare = false;
    for ((index, statement), next) in all.clone().zip(statements).zip(nexts) {
        is_bare &= !matches!(statement.kind, Kind::Instruction(_));
        match next {
            Next::On => {
                let behind = (index + 1).saturating_sub(first) as usize;
                if entered.get(behind) == Some(&true) && !is_bare {
                    ends.push((index + 1, Next::On));
                    is_bare = true;
                }
            }
            next => {
                ends.push((index + 1, next));
                is_bare = true;
            }
        }
    }
    if ends.last().is_none_or(|(end, _)| *end < all.end) {
        ends.push((all.end, Next::On));
    }

    let starts: Vec<u32> = std::iter::once(all.start).chain(ends.iter().map(|(end, _)| *end)).collect();
    let block_at = |statement: u32| {
        let index = starts.partition_point(|&start| start <= statement).saturating_sub(1);
        u32::try_from(index).unwrap_or(u32::MAX)
    };
    let count = ends.len();
    let mut flow = Flow { is_cut, ..Flow::default() };
    for (index, (end, next)) in ends.into_iter().enumerate() {
        let start = starts.get(index).copied().unwrap_or(end);
        let (mut successors, goes_on) = match next {
            Next::On => (Vec::new(), true),
            Next::Leaves => (Vec::new(), false),
            Next::Branches { labels, goes_on } => {
                let branch = end - 1;
                flow.backward
                    .extend(labels.iter().filter(|&&label| label <= branch).map(|&label| (branch, label)));
                (labels.into_iter().map(block_at).collect(), goes_on)
            }
        };
        let falls_off = goes_on && index + 1 == count;
        if goes_on && !falls_off {
            successors.push(block_at(end));
        }
        successors.sort_unstable();
        successors.dedup();
        flow.blocks.push(Block { statements: start..end, successors, falls_off, reachable: false });
    }
    flow.mark_reachable();
    flow
}

impl Flow {
    fn mark_reachable(&mut self) {
        if self.is_cut {
            self.blocks.iter_mut().for_each(|block| block.reachable = true);
        }
        let mut waiting = vec![0usize];
        while let Some(index) = waiting.pop() {
            let Some(block) = self.blocks.get_mut(index) else {
                continue;
            };
            if std::mem::replace(&mut block.reachable, true) {
                continue;
            }
            waiting.extend(block.successors.iter().map(|&next| next as usize));
        }
        self.end_reachable = self.blocks.iter().any(|block| block.reachable && block.falls_off);
    }
}

struct Walk<'a, 's> {
    module: &'a Module<'s>,
    info: &'a ModuleInfo<'s>,
    function: usize,
    statements: &'a [Statement],
    /// The index of the first of them in the module.
    first: u32,
    /// The labels of the lists met so far, by the statement of the list's label; of what is no list, all labels.
    lists: BTreeMap<u32, Vec<u32>>,
    edges: usize,
}

impl<'s> Walk<'_, 's> {
    fn next(&mut self, statement: &Statement) -> Next {
        let Kind::Instruction(instruction) = statement.kind else {
            return Next::On;
        };
        let guarded = instruction.guard.is_some();
        let leaves = match self.module.opcode(&instruction).base {
            "ret" | "exit" | "trap" => true,
            "call" => self.never_returns(&instruction),
            "bra" => {
                let labels = self.targets(statement, &self.module.operands(&instruction), false);
                return Next::Branches { labels, goes_on: guarded };
            }
            "brx" => {
                let labels = self.targets(statement, &self.module.operands(&instruction), true);
                return Next::Branches { labels, goes_on: guarded };
            }
            _ => false,
        };
        match (leaves, guarded) {
            (false, _) => Next::On,
            (true, false) => Next::Leaves,
            (true, true) => Next::Branches { labels: Vec::new(), goes_on: true },
        }
    }

    /// Is the target of a call declared `.noreturn`?
    fn never_returns(&self, instruction: &Instruction) -> bool {
        let operands = self.module.operands(instruction);
        let target = operands.iter().find(|operand| !matches!(operand.kind, OperandKind::List(_)));
        let Some(Operand { kind: OperandKind::Name(at), .. }) = target else {
            return false;
        };
        let name = self.module.at(*at);
        if self.info.declared_at(self.function, instruction.opcode.start, name).is_some() {
            return false;
        }
        let function = self.info.function(name).and_then(|index| self.module.functions.get(index));
        function
            .is_some_and(|f: &Function| f.directives.iter().any(|d| self.module.at(d.name) == ".noreturn"))
    }

    /// The labels that a branch goes to, as statements.
    fn targets(&mut self, statement: &Statement, operands: &[Operand], through_list: bool) -> Vec<u32> {
        let named = operands.last().and_then(|operand| match operand.kind {
            OperandKind::Name(at) => self.label(statement.span.start, self.module.at(at)),
            _ => None,
        });
        let labels = match named {
            Some(label) if !through_list => vec![label],
            // No statement has this number, so that it can stand for "some label".
            _ => {
                let key = named.unwrap_or(u32::MAX);
                if !self.lists.contains_key(&key) {
                    let list = self.list(key).unwrap_or_else(|| self.all_labels());
                    self.lists.insert(key, list);
                }
                let room = MOST_EDGES.saturating_sub(self.edges);
                self.lists.get(&key).map_or(&[][..], |list| list).iter().copied().take(room + 1).collect()
            }
        };
        self.edges += labels.len();
        labels
    }

    fn all_labels(&self) -> Vec<u32> {
        let indexed = (self.first..).zip(self.statements);
        indexed.filter(|(_, s)| matches!(s.kind, Kind::Label(_))).map(|(index, _)| index).collect()
    }

    /// The labels of the `.branchtargets` behind a label.
    fn list(&self, label: u32) -> Option<Vec<u32>> {
        let index = label.checked_sub(self.first)? as usize;
        let table =
            self.statements.get(index + 1).filter(|statement| matches!(statement.kind, Kind::Table))?;
        let names = self.module.code(table.span).filter(|(kind, _)| *kind == TokenKind::Name);
        let labels = names.map(|(_, at)| self.label(table.span.start, self.module.at(at)));
        labels.collect()
    }

    fn label(&self, offset: u32, name: &str) -> Option<u32> {
        self.info.label_at(self.function, offset, name)
    }
}

#[cfg(test)]
mod tests {
    use crate::{flow, parse, resolve};

    /// Draws the flow of the first function: `block → successors`, `$` for the closing brace, `!` for what cannot
    /// run, blocks by their first statement's text; then the backward branches.
    fn check(body: &str, expected: &[&str], end_reachable: bool, backward: usize) {
        let text = format!(
            ".version 8.5 .target sm_90 .entry k {{ {body} }} .func nr() .noreturn {{ trap; exit; }} .func f() {{ ret; }}"
        );
        let (module, mut found) = parse(&text);
        let info = resolve(&module, &mut found);
        assert!(!found.has_errors(), "{body}: {found:?}");
        let flow = flow(&module, &info, 0);
        let first = module.functions[0].body.as_ref().unwrap().statements.start;
        let drawn: Vec<String> = flow
            .blocks
            .iter()
            .map(|block| {
                let mut line = String::new();
                if !block.reachable {
                    line.push('!');
                }
                for at in block.statements.clone() {
                    line.push_str(module.at(module.statements[(at) as usize].span));
                    line.push(' ');
                }
                line.push('→');
                for next in &block.successors {
                    line.push_str(&format!(" {next}"));
                }
                if block.falls_off {
                    line.push_str(" $");
                }
                line
            })
            .collect();
        assert_eq!(drawn, expected);
        assert_eq!(flow.end_reachable, end_reachable, "{body}");
        assert_eq!(info.functions[0].end_reachable, end_reachable, "{body}: short answer");
        assert_eq!(flow.backward.len(), backward);
        assert_eq!(flow.block_of(first), (!flow.blocks[0].statements.is_empty()).then_some(0));
    }

    #[test]
    fn blocks_end_where_control_turns() {
        check("", &["→ $"], true, 0);
        check("ret;", &["ret; →"], false, 0);
        check("@%p ret;", &["@%p ret; → $"], true, 0);
        check("trap; add a,b,c; exit;", &["trap; →", "!add a,b,c; exit; →"], false, 0);
        check("@p trap; ret;", &["@p trap; → 1", "ret; →"], false, 0);
        check("L: @p bra L; ret;", &["L: @p bra L; → 0 1", "ret; →"], false, 1);
        check("bra.uni L; L: ret.uni;", &["bra.uni L; → 1", "L: ret.uni; →"], false, 0);
        check("bra L; exit; L:", &["bra L; → 2", "!exit; →", "L: → $"], true, 0);
        check("exit; L:", &["exit; →", "!L: → $"], false, 0);
        // Nothing comes in at a label that nothing goes to.
        check("add a,b,c; L: ret;", &["add a,b,c; L: ret; →"], false, 0);
        check(
            "add a,b,c; A: B: @p bra B; @p bra C; T: C: ret;",
            &["add a,b,c; A: → 1", "B: @p bra B; → 1 2", "@p bra C; → 3", "T: C: ret; →"],
            false,
            1,
        );
        check("call nr; ret;", &["call nr; →", "!ret; →"], false, 0);
        check("@p call nr;", &["@p call nr; → $"], true, 0);
        check("call f;", &["call f; → $"], true, 0);
    }

    #[test]
    fn tables_name_their_targets() {
        check(
            "T: .branchtargets A, B; brx.idx %r1, T; C: exit; A: B: ret;",
            &["T: .branchtargets A, B; brx.idx %r1, T; → 2", "!C: exit; →", "A: B: ret; →"],
            false,
            0,
        );
        // `A` names no list.
        check("A: brx.idx %r1, A; B: exit;", &["A: brx.idx %r1, A; → 0 1", "B: exit; →"], false, 1);
    }

    #[test]
    fn labels_are_those_of_the_scope() {
        check(
            "{ L: @p bra L; } { L: @p bra L; } L: ret;",
            &["{ → 1", "L: @p bra L; → 1 2", "} { L: @p bra L; → 2 3", "} L: ret; →"],
            false,
            2,
        );
    }
}
