//! V2: where spans stand, and what the original says there.
//!
//! ```text
//! $L__BB0_2:   .pragma "nounroll";   mov.u32 %r1, %r2;   @%p1   bra $L__BB0_2;
//!           ✗                     ✓                    ✓      ✗               ✓
//! ```
//!
//! The places are those of the original's parse, which has never seen a span. Spans come in text order, so one walk
//! over the statements finds the place of each.

use crate::flow::opcode;
use crate::lex::trivia;
use crate::special::SPECIAL;
use nt_diag::Span;
use nt_ptx::syntax::{Function, ItemKind, Kind, Module, Statement};
use std::ops::Range;

/// Where a span stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Index of the function in [`Module::functions`].
    pub(crate) function: usize,
    /// Is everything before it in that function a declaration?
    pub(crate) is_entry: bool,
    /// The instruction that it belongs to, by its index in [`Module::statements`]: the one that follows, where lines of
    /// source and pragmas may stand between, but no labels; or the one before it.
    pub(crate) instruction: Option<u32>,
    /// Is that the one before it?
    pub(crate) is_after: bool,
    /// The register of that instruction's guard, and whether it is negated.
    pub(crate) guard: Option<(Span, bool)>,
    /// Is that instruction a branch, which all lanes come to, taken or not?
    pub(crate) is_branch: bool,
}

/// Pragmas that speak of a function or block, not of the next instruction (PTX ISA 9.0, 12.1 to 12.5), and marks of the
/// author, which speak of nothing.
const BLOCK_PRAGMAS: [&str; 4] = ["nounroll", "enable_smem_spilling", "frequency ", "nt.mark "];

/// Finds the places of spans, asked for in text order.
pub(crate) struct Places<'m, 's> {
    module: &'m Module<'s>,
    bodies: &'m Bodies,
    /// The function asked for last, and the first statement in it that is no leading declaration.
    leading: Option<(usize, usize)>,
    /// Blanks and comments are read up to here, from the statement before.
    read: u32,
}

/// Functions with bodies, by position, and their indices in [`Module::functions`].
pub(crate) type Bodies = Vec<(Span, usize)>;

/// Those of a module.
pub(crate) fn bodies(module: &Module<'_>) -> Bodies {
    let body = |(index, function): (usize, &Function)| Some((function.body.as_ref()?.span, index));
    let mut bodies: Bodies = module.functions.iter().enumerate().filter_map(body).collect();
    bodies.sort();
    bodies
}

impl<'m, 's> Places<'m, 's> {
    pub(crate) fn new(module: &'m Module<'s>, bodies: &'m Bodies) -> Self {
        Places { module, bodies, leading: None, read: 0 }
    }

    /// What stands at `at`, or why no span may: one that follows its instruction, or another.
    pub(crate) fn find(&mut self, at: u32, is_after: bool) -> Result<Place, &'static str> {
        let after = self.bodies.partition_point(|(body, _)| body.start < at);
        let inside =
            after.checked_sub(1).and_then(|last| self.bodies.get(last)).filter(|(body, _)| at < body.end);
        let Some(&(body, function)) = inside else { return Err("a span outside of all function bodies") };
        let all = self.module.functions.get(function).map_or(&[][..], |f| self.module.body(f));

        // The statement behind the span, and the end of what stands before it.
        let next = all.partition_point(|statement| statement.span.end <= at);
        let before = next.checked_sub(1).and_then(|last| all.get(last));
        let from = before.map_or(body.start + 1, |statement| statement.span.end);
        if all.get(next).is_some_and(|statement| statement.span.start < at) || at < from {
            return Err("a span within a statement of the original");
        }
        let from = from.max(self.read.min(at));
        let gap = Span::new(from, at);
        if trivia(self.module.at(gap)) as u32 != gap.len() {
            return Err("a span within a comment, or behind something that is no statement");
        }
        self.read = at;
        if is_after {
            return self.behind(function, next.checked_sub(1).and_then(|last| Some((last, all.get(last)?))));
        }

        let significant = |statement: &&Statement| !matches!(statement.kind, Kind::Loc);
        let before = all.get(..next).unwrap_or(&[]).iter().rev().take(NEAR).find(significant);
        let behind = all.get(next..).unwrap_or(&[]).iter().take(NEAR).find(significant);
        if let Some(before) = before {
            match before.kind {
                Kind::Unknown => return Err("a span behind a statement that cannot be read"),
                Kind::Directive if !self.is_plain_directive(before) => {
                    return Err("a span behind a directive that is not known");
                }
                Kind::Pragma(text) if !self.is_block_pragma(text) => {
                    return Err("a span between a pragma and the instruction that it speaks of");
                }
                // A mark may stand between the two.
                kind if (matches!(kind, Kind::Label(_)) || self.is_mark(kind))
                    && behind.is_some_and(|s| matches!(s.kind, Kind::Pragma(_))) =>
                {
                    return Err("a span between a label and its pragma");
                }
                _ => {}
            }
        }
        if behind.is_some_and(|s| matches!(s.kind, Kind::Table)) {
            return Err("a span between a label and its table");
        }
        let near = |list: &[Statement]| {
            list.iter().take(NEAR).all(|s| matches!(s.kind, Kind::Loc)) && list.len() > NEAR
        };
        if (before.is_none() && next > NEAR) || near(all.get(next..).unwrap_or(&[])) {
            return Err("a span among more lines of source than anybody reads");
        }

        let rest = (next..).zip(all.get(next..).unwrap_or(&[])).take(NEAR);
        let mut rest = rest.skip_while(|(_, s)| matches!(s.kind, Kind::Loc | Kind::Pragma(_)));
        let (instruction, guard, is_branch) = match rest.next().map(|(index, s)| (index, s.kind)) {
            Some((index, Kind::Instruction(instruction))) => {
                let opcode = opcode(self.module, &instruction);
                let is_branch = matches!(opcode.split('.').next(), Some("bra" | "brx"));
                let guard = instruction.guard.map(|guard| (guard.register, guard.negated));
                (Some(self.number(function, index)), guard, is_branch)
            }
            _ => (None, None, false),
        };
        let is_entry = next <= self.leading(function, all);
        Ok(Place { function, is_entry, instruction, is_after: false, guard, is_branch })
    }

    /// The place directly behind a statement of a function, which must be an instruction that goes on there.
    fn behind(&self, function: usize, statement: Option<(usize, &Statement)>) -> Result<Place, &'static str> {
        let Some((index, Kind::Instruction(instruction))) = statement.map(|(index, s)| (index, s.kind))
        else {
            return Err("a span after an instruction that does not stand directly behind one");
        };
        if matches!(
            opcode(self.module, &instruction).split('.').next(),
            Some("bra" | "brx" | "ret" | "exit" | "trap")
        ) {
            return Err("a span after an instruction that leaves");
        }
        Ok(Place {
            function,
            is_entry: false,
            instruction: Some(self.number(function, index)),
            is_after: true,
            guard: instruction.guard.map(|guard| (guard.register, guard.negated)),
            is_branch: false,
        })
    }

    /// The index in [`Module::statements`] of a statement of a function.
    fn number(&self, function: usize, index: usize) -> u32 {
        let body = self.module.functions.get(function).and_then(|function| function.body.as_ref());
        body.map_or(0, |body| body.statements.start) + index as u32
    }

    /// The first statement that is no leading declaration.
    fn leading(&mut self, function: usize, all: &[Statement]) -> usize {
        match self.leading {
            Some((of, first)) if of == function => first,
            _ => {
                let declares = |s: &Statement| {
                    matches!(s.kind, Kind::Declaration(_) | Kind::Loc | Kind::Pragma(_) | Kind::Directive)
                };
                let first = all.iter().position(|s| !declares(s)).unwrap_or(all.len());
                self.leading = Some((function, first));
                first
            }
        }
    }

    fn is_mark(&self, kind: Kind) -> bool {
        matches!(kind, Kind::Pragma(text) if self.module.at(text).trim_start_matches('"').starts_with("nt.mark "))
    }

    fn is_block_pragma(&self, text: Span) -> bool {
        let name = self.module.at(text).trim_matches('"');
        BLOCK_PRAGMAS.iter().any(|known| match known.strip_suffix(' ') {
            Some(word) => name.strip_prefix(word).is_some_and(|rest| rest.starts_with(' ')),
            None => name == *known,
        })
    }

    fn is_plain_directive(&self, statement: &Statement) -> bool {
        let text = self.module.at(statement.span);
        text.starts_with(".file") || text.starts_with(".section")
    }
}

/// Does a place stand between two items of the module, not in one and not in a comment?
pub(crate) fn is_between_items(module: &Module<'_>, at: u32) -> bool {
    let behind = module.items.partition_point(|item| item.span.end <= at);
    let from = behind.checked_sub(1).and_then(|last| module.items.get(last)).map_or(0, |item| item.span.end);
    let to = module.items.get(behind).map_or(module.text.len() as u32, |item| item.span.start);
    let whole = |from: u32, to: u32| trivia(module.at(Span::new(from, to))) as u32 == to.saturating_sub(from);
    from <= at && at <= to && whole(from, at) && whole(at, to)
}

/// How many `.loc` in a row are looked over; compilers write one or two.
const NEAR: usize = 64;

/// Does a `//` comment of the text hold a carriage return without its line feed? ptxas goes on with the comment there,
/// other readers end it, and neither is wrong; no span may stand in such a text.
pub(crate) fn has_split_comment(text: &str) -> bool {
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'\r', bytes).any(|at| {
        let line = &bytes[memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |end| end + 1)..at];
        bytes.get(at + 1) != Some(&b'\n') && memchr::memmem::find(line, b"//").is_some()
    })
}

/// Names of special registers to which a function gives another meaning, and where.
#[derive(Debug, Default)]
pub(crate) struct Shadows<'s> {
    /// The scope of the original, the name, and of `%clock<65>` its number.
    found: Vec<(Range<u32>, &'s str, bool)>,
    /// So many that each counts everywhere.
    many: bool,
}

impl<'s> Shadows<'s> {
    /// Looks through the declarations of a function, its parameters, and the module's variables.
    ///
    /// A declaration counts for all of its scope, also before it stands, and whatever it declares.
    pub(crate) fn find(module: &Module<'s>, function: &Function) -> Self {
        let mut shadows = Shadows::default();
        let everywhere = 0..u32::MAX;
        for item in &module.items {
            if let ItemKind::Variable { name, .. } = item.kind {
                shadows.names(module.at(name), &everywhere);
            }
        }
        for param in &function.params {
            shadows.names(module.at(param.name), &everywhere);
        }
        let all = module.body(function);
        // Each scope's end, by index of its `{`.
        let mut scopes: Vec<Range<u32>> = vec![everywhere];
        let mut ends = Vec::new();
        let mut open = Vec::new();
        for (index, statement) in all.iter().enumerate() {
            match statement.kind {
                Kind::Open => open.push(index),
                Kind::Close => {
                    if let Some(opened) = open.pop() {
                        ends.push((opened, statement.span.end));
                    }
                }
                _ => {}
            }
        }
        ends.sort_unstable();
        let mut ends = ends.into_iter().peekable();
        for (index, statement) in all.iter().enumerate() {
            match statement.kind {
                Kind::Open => {
                    let end = ends.next_if(|&(opened, _)| opened == index).map_or(u32::MAX, |(_, end)| end);
                    scopes.push(statement.span.start..end);
                }
                Kind::Close => {
                    scopes.pop();
                }
                Kind::Declaration(_) | Kind::Label(_) => {
                    if let Some(scope) = scopes.last().cloned() {
                        shadows.names(module.at(statement.span), &scope);
                    }
                }
                _ => {}
            }
        }
        shadows
    }

    /// Does `name` mean something else than the special register at `at`?
    pub(crate) fn hides(&self, name: &str, at: u32) -> bool {
        if self.many {
            return true;
        }
        let base = name.split('.').next().unwrap_or(name);
        self.found.iter().any(|(scope, declared, numbered)| {
            let same = *declared == base;
            let number = base
                .strip_prefix(declared)
                .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()));
            scope.start <= at && at < scope.end && (same || (*numbered && number))
        })
    }

    /// Adds the names in a declaration that begin as a special register does.
    fn names(&mut self, text: &'s str, scope: &Range<u32>) {
        for at in memchr::memchr_iter(b'%', text.as_bytes()) {
            let rest = text.get(at..).unwrap_or("");
            let end = rest.bytes().skip(1).position(|b| !b.is_ascii_alphanumeric() && b != b'_' && b != b'$');
            let name = rest.get(..end.map_or(rest.len(), |end| end + 1)).unwrap_or(rest);
            // `%clock<65>` declares `%clock64`; blanks may stand before the `<`.
            let numbered = rest.get(name.len()..).unwrap_or("").trim_start().starts_with('<');
            if SPECIAL.iter().any(|&(known, ..)| known == name || (numbered && known.starts_with(name))) {
                if self.found.len() == 64 {
                    self.many = true;
                    return;
                }
                self.found.push((scope.clone(), name, numbered));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = ".version 8.0\n.target sm_90\n";

    /// `^` marks the place in the text.
    fn check(body: &str, expected: Result<(bool, Option<&str>), &str>) {
        let marked = format!("{HEAD}.visible .entry k() {body}");
        let at = marked.find('^').expect("is marked") as u32;
        let text = marked.replace('^', "");
        let (module, found) = nt_ptx::parse(&text);
        assert!(!found.has_errors(), "{found:?}");
        let place = Places::new(&module, &bodies(&module)).find(at, false);
        let place = place.map(|p| (p.is_entry, p.guard.map(|(name, _)| module.at(name))));
        assert_eq!(place, expected, "{marked}");
    }

    #[test]
    fn places_of_spans() {
        let within = Err("a span within a statement of the original");
        let comment = Err("a span within a comment, or behind something that is no statement");
        check("{^ret;}", Ok((true, None)));
        check("{ .reg .b32 %r; ^ret;}", Ok((true, None)));
        check("{ ret;^}", Ok((false, None)));
        check("{ mov.u32 %r, 1; ^ // c\n @%p ret;}", Ok((false, Some("%p"))));
        check("{ mov.u32 %r, 1; // c^\n @%p ret;}", comment);
        check("{ mov.u32 %r, 1; /* ^ */ @%p ret;}", comment);
        check("{ mov.u32 %r, 1; // c\n^ @%p ret;}", Ok((false, Some("%p"))));
        check("{ @%p ^ret;}", within);
        check("{ @^%p ret;}", within);
        check("{ mov.u32 %r1, ^5;}", within);
        check("{ T: .branchtargets A, ^B; A: B: ret;}", within);
        check("{ T: ^.branchtargets A, B; A: B: ret;}", Err("a span between a label and its table"));
        check("{ L: ^.pragma \"nounroll\"; ret;}", Err("a span between a label and its pragma"));
        check("{ L: .loc 1 2 3\n ^.pragma \"nounroll\"; ret;}", Err("a span between a label and its pragma"));
        check("{ L: .pragma \"nounroll\"; ^ret;}", Ok((false, None)));
        check("{ L: .pragma \"nt.mark a\"; ^ret;}", Ok((false, None)));
        check(
            "{ L: .pragma \"nt.mark a\"; ^.pragma \"nounroll\"; ret;}",
            Err("a span between a label and its pragma"),
        );
        check("{ ^L: .pragma \"nounroll\"; ret;}", Ok((true, None)));
        check("{ .pragma \"frequency 5\"; ^ret;}", Ok((true, None)));
        check("{ ^.pragma \"used_bytes_mask 0xfff\"; @%p ld.global.b32 %r, [%d];}", Ok((true, Some("%p"))));
        let pragma = Err("a span between a pragma and the instruction that it speaks of");
        check("{ .pragma \"used_bytes_mask 0xfff\"; ^ ld.global.b32 %r, [%d];}", pragma);
        check("{ .pragma \"used_bytes_mask 0xfff\"; .loc 1 1 1\n ^ ld.global.b32 %r, [%d];}", pragma);
        check("{ call (%r), f, ^(%r);}", within);
    }

    #[test]
    fn places_behind_instructions() {
        let check = |body: &str, expected: Result<Option<&str>, &str>| {
            let marked = format!("{HEAD}.visible .entry k() {body}");
            let at = marked.find('^').expect("is marked") as u32;
            let text = marked.replace('^', "");
            let (module, found) = nt_ptx::parse(&text);
            assert!(!found.has_errors(), "{found:?}");
            let place = Places::new(&module, &bodies(&module)).find(at, true);
            assert_eq!(place.map(|p| p.guard.map(|(name, _)| module.at(name))), expected, "{marked}");
        };
        let behind = Err("a span after an instruction that does not stand directly behind one");
        let leaves = Err("a span after an instruction that leaves");
        check("{ @%p mov.u32 %r, 1; /* c */ ^ ret; }", Ok(Some("%p")));
        check("{ mov.u32 %r, 1;^ }", Ok(None));
        check("{ { mov.u32 %r, 1; } ^ ret; }", behind);
        check("{ .reg .b32 %r; ^ ret; }", behind);
        check("{^ ret; }", behind);
        check("{ mov.u32 %r, 1; L: ^ ret; }", behind);
        check("{ mov.u32 %r, 1; .loc 1 2 3\n ^ ret; }", behind);
        check("{ @%p ret; ^ ret; }", leaves);
        check("{ @%p bra L; ^ L: ret; }", leaves);
        check("{ trap; ^ ret; }", leaves);
        check("{ mov.u32 ^ %r, 1; ret; }", Err("a span within a statement of the original"));
    }

    #[test]
    fn outside_of_bodies() {
        let text = format!("{HEAD}.global .u32 g;\n.entry k() {{ ret; }} ");
        let (module, _) = nt_ptx::parse(&text);
        let outside = "a span outside of all function bodies";
        for at in [0, HEAD.len() + 1, text.len() - 1, text.len(), text.find('{').expect("has a body")] {
            assert_eq!(
                Places::new(&module, &bodies(&module))
                    .find(at as u32, false)
                    .map(|p| p.function)
                    .expect_err("is outside"),
                outside,
                "{at}"
            );
        }
    }

    #[test]
    fn carriage_returns_in_comments() {
        assert!(has_split_comment("ret; // a\rb\n"));
        assert!(!has_split_comment("ret; // a\r\nb\r c"));
        assert!(!has_split_comment("ret; // a\n ret;\rb"));
    }

    #[test]
    fn shadowed_special_registers() {
        let text = format!(
            "{HEAD}.entry k(.param .u32 %smid) {{ {{ mov.u32 %r, %tid.x; .reg .b32 %tid; }} .reg .b32 %clock<65>; ret; }}"
        );
        let (module, _) = nt_ptx::parse(&text);
        let shadows = Shadows::find(&module, &module.functions[0]);
        let at = |what: &str| text.find(what).expect("is there") as u32;
        assert!(shadows.hides("%tid.x", at("mov")), "a declaration counts for its whole scope");
        assert!(!shadows.hides("%tid.x", at("ret;")));
        assert!(shadows.hides("%clock64", at("mov")));
        assert!(
            shadows.hides("%clock", at("ret;")),
            "careful: `%clock<65>` does not declare `%clock` itself"
        );
        assert!(!shadows.hides("%clock_hi", at("ret;")));
        assert!(shadows.hides("%smid", at("ret;")));
        assert!(!shadows.hides("%nsmid", at("ret;")));
    }
}
