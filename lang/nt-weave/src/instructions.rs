//! Which instructions a probe means: `inst:load.global`, `ptx:"ld.global.nc*"`.
//!
//! ```text
//! inst:access.global     ld.global.f32 %f1, [%rd1];     is one
//!                        ld.shared.f32 %f1, [%rd1];     is none
//!                        ld.f32 %f1, [%rd1+4];          is one where `isspacep.global` holds of the address
//! ```
//!
//! A space is meant, not spelled: where the text does not say where an address leads, the body asks when it runs. A
//! symbol tells by its declaration. What no way leads to, as behind an unconditional `trap`, is no site.
//!
//! Language reference, Tracepoints; what is known of opcodes is `nt_ptx::opcode`'s.

use crate::Refused;
use crate::sites::{Found, Guard, Kind, Match, Point};
use nt_diag::{Diagnostic, Span};
use nt_ir::glob_matches;
use nt_ir::program::{Placement, Tracepoint};
use nt_ptx::opcode::{Bytes, Facts, Space};
use nt_ptx::syntax::{Function, Instruction, Kind as StatementKind, Module, Operand, OperandKind, Statement};
use nt_ptx::{Flow, ModuleInfo, flow};
use std::cell::OnceCell;

/// What one tracepoint of a probe asks for, of those that stand before an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted<'p> {
    /// `ret` and `exit`: a lane leaves.
    Exit,
    /// Every instruction.
    Any,
    /// What a tracepoint of instructions says.
    Point(&'p Tracepoint),
}

/// Where an instruction's address comes from, and its size, as far as operands tell them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Access {
    /// The address that `addr` gives.
    pub(crate) address: Option<Address>,
    /// How many bytes, where the opcode does not say.
    pub(crate) size: Option<Size>,
}

/// `[%rd1+16]`, `[table+4]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// The register or variable.
    pub(crate) base: String,
    /// Bits of the register; `None` of a variable.
    pub(crate) bits: Option<u32>,
    /// Is the variable one of the module, and not of a function?
    pub(crate) is_of_module: bool,
    /// What is added to it.
    pub(crate) displacement: i64,
    /// What it is an address in.
    pub(crate) space: Space,
}

/// A size that operands tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Size {
    /// As they stand in the text.
    Known(u32),
    /// What this register holds, 32 bits.
    Register(String),
    /// So many, but none where this predicate says to ignore the source.
    Unless { predicate: String, negated: bool, size: u32 },
}

/// Looks at the instructions of one function.
pub(crate) struct Matcher<'a, 's> {
    module: &'a Module<'s>,
    info: &'a ModuleInfo<'s>,
    function: usize,
    points: &'a [Point<'a>],
    flow: OnceCell<Flow>,
}

impl<'a, 's> Matcher<'a, 's> {
    pub(crate) fn new(
        module: &'a Module<'s>,
        info: &'a ModuleInfo<'s>,
        function: usize,
        points: &'a [Point<'a>],
    ) -> Self {
        Matcher { module, info, function, points, flow: OnceCell::new() }
    }

    /// The site at an instruction, if a probe runs there. Its place in the source is for the caller to fill in.
    pub(crate) fn at(
        &self,
        number: u32,
        statement: &Statement,
        instruction: &Instruction,
    ) -> Result<Option<Found>, Refused> {
        let is_exit = matches!(self.module.opcode(instruction).base, "ret" | "exit");
        let facts = OnceCell::new();
        let mut probes = Vec::new();
        for point in self.points {
            for &wanted in &point.wanted {
                let selected = match wanted {
                    Wanted::Exit if is_exit => Some((Placement::Before, Vec::new())),
                    Wanted::Exit => None,
                    wanted => self.selects(wanted, number, instruction, &facts)?,
                };
                if let Some((placement, within)) = selected {
                    let of_instruction = wanted != Wanted::Exit;
                    let reach = placement == Placement::Reach && instruction.guard.is_some();
                    probes.push(Match { probe: point.probe, of_instruction, reach, within });
                    // As the first of its tracepoints says, and once.
                    break;
                }
            }
        }
        if probes.iter().any(|one| one.of_instruction) && !self.is_reachable(number) {
            probes.retain(|one| !one.of_instruction);
        }
        let Some(first) = probes.first() else { return Ok(None) };
        let reach = first.reach;
        if probes.iter().any(|one| one.reach != reach) {
            let what = "some probes run here for all lanes, others under its guard, which is not woven yet";
            return Err(self.refusal("not-yet", instruction.opcode, what));
        }
        let facts = match probes.iter().any(|one| one.of_instruction) {
            true => *facts.get_or_init(|| self.module.facts(instruction)),
            false => None,
        };
        let (offset, next) = place(self.module, number).unwrap_or((statement.span.start, number));
        let leaves = probes.iter().any(|one| !one.of_instruction);
        Ok(Some(Found {
            kind: if leaves { Kind::Exit } else { Kind::Instruction(facts.map(|facts| facts.class)) },
            offset,
            next,
            statement: Some(number),
            guard: instruction.guard.map(|guard| Guard {
                register: self.module.at(guard.register).to_owned(),
                negated: guard.negated,
            }),
            access: facts.map_or_else(Access::default, |facts| self.access(statement, instruction, &facts)),
            facts,
            reach,
            probes,
            position: (0, 0),
            source: None,
        }))
    }

    /// The first instruction of the function that a probe of instructions means, which can be reached.
    pub(crate) fn first(&self) -> Result<Option<Span>, Refused> {
        let Some(function) = self.entry() else { return Ok(None) };
        let start = function.body.as_ref().map_or(0, |body| body.statements.start);
        for (number, statement) in (start..).zip(self.module.body(function)) {
            let StatementKind::Instruction(instruction) = statement.kind else { continue };
            let facts = OnceCell::new();
            let wanted = self.points.iter().flat_map(|point| &point.wanted);
            for &wanted in wanted.filter(|&&wanted| wanted != Wanted::Exit) {
                if self.selects(wanted, number, &instruction, &facts)?.is_some() && self.is_reachable(number)
                {
                    return Ok(Some(statement.span));
                }
            }
        }
        Ok(None)
    }

    fn entry(&self) -> Option<&'a Function> {
        self.module.functions.get(self.function)
    }

    fn flow(&self) -> &Flow {
        self.flow.get_or_init(|| flow(self.module, self.info, self.function))
    }

    fn is_reachable(&self, number: u32) -> bool {
        self.flow().is_cut || self.flow().is_reachable(number)
    }

    /// Does a tracepoint mean this instruction? If so, where the body stands, and in which spaces its address must be
    /// found when it runs.
    fn selects(
        &self,
        wanted: Wanted<'_>,
        number: u32,
        instruction: &Instruction,
        facts: &OnceCell<Option<Facts>>,
    ) -> Result<Option<(Placement, Vec<Space>)>, Refused> {
        let (placement, within) = match wanted {
            Wanted::Any => return Ok(Some((Placement::Before, Vec::new()))),
            Wanted::Point(Tracepoint::Ptx { glob, placement }) => {
                if !glob_matches(glob, self.module.at(instruction.opcode)) {
                    return Ok(None);
                }
                (*placement, Vec::new())
            }
            Wanted::Point(Tracepoint::Inst { classes, spaces, quals, placement }) => {
                let facts = facts.get_or_init(|| self.module.facts(instruction));
                let Some(facts) = facts else {
                    // No table knows it: it is none of these, but it is an instruction.
                    let is_any = classes.iter().any(|class| class == "*");
                    let is_meant = is_any && spaces.is_empty() && quals.is_empty();
                    return Ok(is_meant.then(|| (*placement, Vec::new())));
                };
                let holds = |word: &String| {
                    if word == "backward" {
                        return self.flow().backward.iter().any(|&(branch, _)| branch == number);
                    }
                    facts.qualifies(word) == Some(true)
                };
                if !classes.iter().any(|class| facts.class.is(class))
                    || !quals.iter().all(|list| list.iter().any(holds))
                {
                    return Ok(None);
                }
                match self.spaces(spaces, instruction, facts)? {
                    Some(within) => (*placement, within),
                    None => return Ok(None),
                }
            }
            Wanted::Exit | Wanted::Point(_) => return Ok(None),
        };
        // Before a branch the verifier lets effects stand for all lanes, which come to it whichever way they go.
        let is_branch = matches!(self.module.opcode(instruction).base, "bra" | "brx");
        if placement == Placement::Reach && instruction.guard.is_some() && !is_branch {
            let what = "a probe at `reach`, and this instruction has a guard, which is not woven yet";
            return Err(self.refusal("not-yet", instruction.opcode, what));
        }
        Ok(Some((placement, within)))
    }

    /// Does the instruction touch one of these spaces? Of an address whose space the text does not say, those that the
    /// body must ask for.
    fn spaces(
        &self,
        spaces: &[String],
        instruction: &Instruction,
        facts: &Facts,
    ) -> Result<Option<Vec<Space>>, Refused> {
        if spaces.is_empty() || spaces.iter().any(|word| facts.qualifies(word) == Some(true)) {
            return Ok(Some(Vec::new()));
        }
        if facts.space != Some(Space::Generic) {
            return Ok(None);
        }
        // All of them that an address may lead to without the text saying so.
        let asked = |space: &Space| spaces.iter().any(|word| word == space.name());
        let within: Vec<Space> = [Space::Global, Space::Shared, Space::Local, Space::Const]
            .into_iter()
            .filter(|space| asked(space))
            .collect();
        let untold = [Space::Param, Space::Cluster].into_iter().find(asked);
        match self.declared(instruction, facts) {
            Some(space) => Ok(asked(&space).then(Vec::new)),
            None => match untold {
                Some(space) => {
                    let what = format!(
                        "whether this address leads to `{}` is asked when it runs, which is not woven yet",
                        space.name()
                    );
                    Err(self.refusal("not-yet", instruction.opcode, what))
                }
                None if within.is_empty() => Ok(None),
                None if self.address(instruction.opcode.start, instruction, facts).is_none() => {
                    let what = "where this address leads cannot be asked: it is no register and displacement";
                    Err(self.refusal("unclear-address", instruction.opcode, what))
                }
                None => Ok(Some(within)),
            },
        }
    }

    /// The space of the variable that an address names.
    fn declared(&self, instruction: &Instruction, facts: &Facts) -> Option<Space> {
        let base = self.module.address(&self.operand(instruction, facts.address?)?)?.base?;
        match self.variable(instruction.opcode.start, self.module.at(base))? {
            ".global" => Some(Space::Global),
            ".shared" => Some(Space::Shared),
            ".local" => Some(Space::Local),
            ".const" => Some(Space::Const),
            ".param" => Some(Space::Param),
            _ => None,
        }
    }

    /// The space of a variable; `None` for a register and for what is not declared.
    fn variable(&self, at: u32, name: &str) -> Option<&'s str> {
        match self.info.declared_at(self.function, at, name).map(|declared| declared.space) {
            Some(".reg") => None,
            Some(space) => Some(space),
            None => {
                let index = self.info.variable(name)?;
                self.info.variables.get(index).map(|variable| variable.space)
            }
        }
    }

    fn operand(&self, instruction: &Instruction, place: u8) -> Option<Operand> {
        self.module.operands(instruction).into_iter().nth(usize::from(place))
    }

    fn access(&self, statement: &Statement, instruction: &Instruction, facts: &Facts) -> Access {
        Access {
            address: self.address(statement.span.start, instruction, facts),
            size: self.size(statement.span.start, instruction, facts),
        }
    }

    /// The address that a body may have: not of parameters, which have no address that all targets tell.
    fn address(&self, at: u32, instruction: &Instruction, facts: &Facts) -> Option<Address> {
        let operand = self.operand(instruction, facts.address?)?;
        let address = self.module.address(&operand)?;
        let base = self.module.at(address.base?);
        let is_copy = facts.other_space.is_some();
        let space = match facts.space? {
            // The other side of a copy from or to the global side.
            Space::Shared | Space::Cluster if is_copy => facts.other_space?,
            space => space,
        };
        if matches!(space, Space::Param | Space::Tensor) {
            return None;
        }
        let bits = match self.info.register_at(self.function, at, base) {
            Some(register) if register.lanes == 1 => match register.ty {
                ".b64" | ".u64" | ".s64" => Some(64),
                ".b32" | ".u32" | ".s32" if space != Space::Generic && space != Space::Global => Some(32),
                _ => return None,
            },
            Some(_) => return None,
            None => {
                self.variable(at, base).filter(|space| matches!(*space, ".global" | ".shared" | ".const"))?;
                None
            }
        };
        let is_of_module = bits.is_none() && self.info.declared_at(self.function, at, base).is_none();
        let (base, displacement) = (base.to_owned(), address.displacement);
        Some(Address { base, bits, is_of_module, displacement, space })
    }

    fn size(&self, at: u32, instruction: &Instruction, facts: &Facts) -> Option<Size> {
        let register = |operand: &Operand, wanted: &[&str]| match operand.kind {
            OperandKind::Name(name) => {
                let name = self.module.at(name);
                let register = self.info.register_at(self.function, at, name)?;
                (register.lanes == 1 && wanted.contains(&register.ty)).then(|| name.to_owned())
            }
            _ => None,
        };
        const WORDS: &[&str] = &[".b32", ".u32", ".s32"];
        match facts.bytes {
            Bytes::None | Bytes::Known(_) => None,
            Bytes::Operand(place) => register(&self.operand(instruction, place)?, WORDS).map(Size::Register),
            Bytes::CopySize { size, source: None, .. } => size.map(Size::Known),
            Bytes::CopySize { size, source: Some(place), .. } => {
                let operand = self.operand(instruction, place)?;
                if let OperandKind::Number(number) = operand.kind {
                    let read = nt_ptx::constant(self.module.at(number))?;
                    return u32::try_from(read).ok().map(Size::Known);
                }
                if let Some(predicate) = register(&operand, &[".pred"]) {
                    let negated = self.module.at(operand.span).starts_with('!');
                    return Some(Size::Unless { predicate, negated, size: size? });
                }
                register(&operand, WORDS).map(Size::Register)
            }
        }
    }

    fn refusal(&self, slug: &'static str, at: Span, what: impl Into<String>) -> Refused {
        let name = self.entry().map_or("", |entry| self.module.at(entry.name));
        Box::new(Diagnostic::error(slug, at, format!("kernel `{name}` cannot be probed")).label(what))
    }
}

/// Before the guard of an instruction, and before the pragmas that speak of it: the byte, and the statement there.
pub(crate) fn place(module: &Module<'_>, number: u32) -> Option<(u32, u32)> {
    let at = module.statements.get(number as usize)?.span.start;
    let mut place = (at, number);
    let before = module.statements.get(..number as usize)?;
    for (number, before) in (0..number).rev().zip(before.iter().rev()) {
        match before.kind {
            StatementKind::Loc => {}
            StatementKind::Pragma(text) if crate::choose::is_of_next(module.at(text)) => {
                place = (before.span.start, number);
            }
            _ => break,
        }
    }
    Some(place)
}

/// How many bytes a lane moves, where the text says it.
pub(crate) fn known_bytes(facts: &Facts, access: &Access) -> Option<u32> {
    let bytes = match (facts.bytes, &access.size) {
        (Bytes::Known(bytes), _) => bytes,
        (_, Some(Size::Known(bytes))) => *bytes,
        _ => return None,
    };
    facts.offers("bytes").then_some(bytes)
}
