//! From an instruction to its [`Facts`]: the row of the table, and what modifiers and operands add to it.
//!
//! ```text
//! cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 4096, [%r2];
//! the row `cp.async.bulk`; two spaces, so the first is the destination's; 4,096 bytes; completes at the mbarrier
//! ```

use super::class::Class;
use super::facts::{Bytes, Completion, Facts, Needs, Places, Space, Targets, Trait};
use super::row::{Also, Out, Role, Row, Size};
use super::table;
use super::types::{Type, TypeKind};
use super::words::Words;
use crate::constant::constant;
use crate::syntax::{Instruction, Module, Operand, OperandKind};

const LANES: u32 = 32;

impl Module<'_> {
    /// What is known of an instruction; `None` if there is no such instruction in the table, or too little of it
    /// to tell which.
    pub fn facts(&self, instruction: &Instruction) -> Option<Facts> {
        let words = Words::of(self.opcode(instruction))?;
        let operands = Operands { module: self, instruction };
        let count = operands.count();
        let row = table::find(&words, count)?;
        Some(describe(row, &words, &operands, count))
    }
}

/// Of an opcode that the table lacks, what it lacks: its first word, or all of it if only its modifiers are strange.
pub(crate) fn unknown_part<'s>(module: &Module<'s>, instruction: &Instruction) -> Option<&'s str> {
    let opcode = module.opcode(instruction);
    // Forms that differ in the number of operands have a row for any number beside them.
    if Words::of(opcode).and_then(|words| table::find(&words, 0)).is_some() {
        return None;
    }
    Some(if table::is_known(opcode.base) { module.at(instruction.opcode) } else { opcode.base })
}

/// The operands of an instruction, read no further than asked for.
struct Operands<'a, 's> {
    module: &'a Module<'s>,
    instruction: &'a Instruction,
}

impl Operands<'_, '_> {
    fn all(&self) -> Vec<Operand> {
        self.module.operands(self.instruction)
    }

    fn count(&self) -> usize {
        let text = self.module.at(self.instruction.operands);
        if text.is_empty() {
            return 0;
        }
        // Counting commas is enough, and four times as fast, unless a comment may hold some.
        if text.contains('/') {
            return self.all().len();
        }
        let mut depth = 0u32;
        let mut commas = 0;
        for byte in text.bytes() {
            match byte {
                b'{' | b'[' | b'(' => depth += 1,
                b'}' | b']' | b')' => depth = depth.saturating_sub(1),
                b',' if depth == 0 => commas += 1,
                _ => (),
            }
        }
        commas + 1
    }

    /// The value of an operand that is a constant.
    fn constant(&self, place: usize) -> Option<u32> {
        let operands = self.all();
        let operand = operands.get(place)?;
        match operand.kind {
            OperandKind::Number(at) => u32::try_from(constant(self.module.at(at))?).ok(),
            _ => None,
        }
    }
}

fn describe(row: &'static Row, words: &Words<'_>, operands: &Operands<'_, '_>, count: usize) -> Facts {
    let guarded = operands.instruction.guard.is_some();
    let mut facts = Facts {
        class: row.class,
        name: row.name,
        section: row.section,
        needs: needs(row, words),
        ty: words.last_type(),
        out_ty: None,
        width: 0,
        elems: 0,
        space: row.space,
        other_space: row.other_space,
        bytes: Bytes::None,
        address: None,
        shared_address: None,
        mbarrier: None,
        data: Places::NONE,
        writes: Places::NONE,
        reads: Places::NONE,
        completes: row.completes,
        awaits: row.awaits,
        macs: None,
        falls_through: guarded || !row.leaves,
        traits: row.traits,
    };
    if row.space.is_none() && row.roles.iter().any(|role| role.is_memory()) {
        spaces(&mut facts, row, words);
    }
    match row.class {
        Class::Call => call(&mut facts, operands),
        _ => places(&mut facts, row, count),
    }
    size(&mut facts, row, words);
    // Both copies of cp.async's kind and bulk ones have their size in an operand.
    for (place, role) in row.roles.iter().enumerate().take(count) {
        let Ok(at) = u8::try_from(place) else { break };
        match role {
            Role::Bytes => facts.bytes = operands.constant(place).map_or(Bytes::Operand(at), Bytes::Known),
            Role::CopySize => {
                let policies = usize::from(words.has("L2::cache_hint"));
                let source = (count - policies.min(count) > place + 1).then_some(at + 1);
                facts.bytes = Bytes::CopySize { size: operands.constant(place), operand: at, source };
            }
            _ => (),
        }
    }
    if words.has("bulk_group") {
        facts.completes = Completion::BulkGroup;
    } else if words.has("mbarrier::complete_tx::bytes") {
        facts.completes = Completion::Mbarrier;
    }
    facts.out_ty = out_type(row, words);
    branch(&mut facts, words, guarded);
    facts
}

impl Role {
    /// Does the operand say where in memory something is, in a space that the opcode names?
    fn is_memory(self) -> bool {
        matches!(self, Role::Address | Role::Dst | Role::Src | Role::Tensor)
    }
}

/// The space of a word.
fn space(word: &str) -> Option<Space> {
    Some(match word {
        "global" => Space::Global,
        "shared" | "shared::cta" => Space::Shared,
        "shared::cluster" => Space::Cluster,
        "local" => Space::Local,
        "const" => Space::Const,
        "param" | "param::entry" | "param::func" => Space::Param,
        _ => return None,
    })
}

/// The spaces that the text names: of a copy the destination's first, else one or none.
fn spaces(facts: &mut Facts, row: &Row, words: &Words<'_>) {
    let mut named = words.iter().filter_map(space);
    facts.space = Some(named.next().unwrap_or(Space::Generic));
    let is_copy = row.roles.iter().any(|role| matches!(role, Role::Dst | Role::Src));
    if is_copy {
        facts.other_space = Some(named.next().unwrap_or(Space::Generic));
    }
}

/// What each operand is for.
fn places(facts: &mut Facts, row: &Row, count: usize) {
    let is_shared = |space: Option<Space>| matches!(space, Some(Space::Shared | Space::Cluster));
    for place in 0..count {
        let role = row.roles.get(place).copied().unwrap_or(Role::In);
        let at = u8::try_from(place).ok();
        match role {
            Role::Out | Role::OutIn => facts.writes = facts.writes.with(place),
            Role::Data | Role::Tensor => facts.data = facts.data.with(place),
            Role::Mbarrier => facts.mbarrier = at,
            Role::Dst if is_shared(facts.space) => facts.shared_address = at,
            Role::Src if is_shared(facts.other_space) => facts.shared_address = at,
            Role::Address | Role::Dst | Role::Src => facts.address = at,
            Role::In | Role::Bytes | Role::CopySize | Role::Label => (),
        }
        if !matches!(role, Role::Out | Role::Label) {
            facts.reads = facts.reads.with(place);
        }
    }
}

/// `call (out), f, (in, in), prototype;`: all but the function may be missing.
fn call(facts: &mut Facts, operands: &Operands<'_, '_>) {
    let mut is_function_seen = false;
    for (place, operand) in operands.all().iter().enumerate() {
        match operand.kind {
            OperandKind::List(_) if !is_function_seen => facts.writes = facts.writes.with(place),
            OperandKind::List(_) => facts.reads = facts.reads.with(place),
            // A register, if the call is indirect. What follows it by name is a prototype or a list of targets.
            _ if !is_function_seen => {
                is_function_seen = true;
                facts.reads = facts.reads.with(place);
            }
            _ => (),
        }
    }
}

/// Width, elements, bytes and multiply-adds.
fn size(facts: &mut Facts, row: &Row, words: &Words<'_>) {
    let first = words.types().next();
    let vector = words.vector();
    let mut elements = |ty: Option<Type>| {
        if let Some(ty) = ty {
            facts.width = ty.bits / ty.parts;
            facts.elems = vector * ty.parts;
        }
    };
    match row.size {
        Size::None => (),
        Size::Typed => elements(facts.ty),
        Size::First => elements(first),
        Size::Memory => {
            elements(facts.ty);
            facts.bytes = facts.ty.map_or(Bytes::None, |ty| Bytes::Known(vector * ty.bits / 8));
        }
        Size::Matrix => {
            let Some([rows, columns, _]) = words.shape() else { return };
            facts.width = if words.has("b16") { 16 } else { 8 };
            whole(facts, rows.saturating_mul(columns).saturating_mul(words.number("x").unwrap_or(1)) / LANES);
        }
        Size::Fragment => {
            let (Some([m, n, k]), Some(ty)) = (words.shape(), facts.ty) else { return };
            let (rows, columns) = match words.iter().find(|word| matches!(*word, "a" | "b" | "c" | "d")) {
                Some("a") => (m, k),
                Some("b") => (k, n),
                _ => (m, n),
            };
            facts.width = ty.bits;
            whole(facts, rows.saturating_mul(columns) / LANES);
        }
        Size::TensorMemory => {
            // A warp reads 32 words of 32 bits for each register of a lane, whatever the shape.
            let halves = if words.has("16x32bx2") { 2 } else { 1 };
            let Some([rows, bits]) = words.tensor_shape() else { return };
            facts.width = 32;
            let words_of_a_lane = rows.saturating_mul(bits).saturating_mul(halves) / (32 * LANES);
            whole(facts, words_of_a_lane.saturating_mul(words.number("x").unwrap_or(1)));
        }
        Size::TensorCopy => {
            let Some([rows, bits]) = words.tensor_shape() else { return };
            facts.bytes = Bytes::Known(rows.saturating_mul(bits) / 8);
        }
        Size::Shape | Size::WarpgroupShape => multiply(facts, row, words),
    }
}

/// So many elements of the width that is set.
fn whole(facts: &mut Facts, elems: u32) {
    facts.elems = elems;
    facts.bytes = Bytes::Known(elems.saturating_mul(facts.width) / 8);
}

/// Multiply-adds, and the type of the factors: the second that the opcode names, or `.f16`, which `wmma.mma` leaves
/// out.
fn multiply(facts: &mut Facts, row: &Row, words: &Words<'_>) {
    let mut types = words.types();
    let factor = if words.types().count() < 3 { Type::named("f16") } else { types.nth(1) };
    facts.ty = factor;
    let Some([m, n, k]) = words.shape() else { return };
    let all = m.saturating_mul(n).saturating_mul(k);
    // `mma.m8n8k4` with halves is four products, one for every eight lanes (section 9.7.14.5.1).
    let is_fourfold =
        words.base() == "mma" && (m, n, k) == (8, 8, 4) && factor.is_some_and(|ty| ty.kind == TypeKind::Half);
    facts.macs = Some(match row.size {
        Size::WarpgroupShape => all / 4,
        _ if is_fourfold => all.saturating_mul(4),
        _ => all,
    });
}

fn out_type(row: &Row, words: &Words<'_>) -> Option<Type> {
    match row.out {
        Out::None => None,
        Out::First => words.types().next(),
        Out::Is(name) => Type::named(name),
        Out::MaybeWide if words.has("wide") => match words.last_type()?.name {
            "u16" => Type::named("u32"),
            "s16" => Type::named("s32"),
            "u32" => Type::named("u64"),
            "s32" => Type::named("s64"),
            _ => None,
        },
        Out::Last | Out::MaybeWide => words.last_type(),
    }
}

/// A branch that lanes may take apart from each other is a split.
fn branch(facts: &mut Facts, words: &Words<'_>, guarded: bool) {
    if !matches!(facts.class, Class::Branch | Class::Call | Class::Exit) {
        return;
    }
    let is_uniform = words.has("uni");
    if is_uniform {
        facts.traits = facts.traits.with(Trait::Uniform);
    }
    if facts.class == Class::Branch {
        if guarded {
            facts.traits = facts.traits.with(Trait::Conditional);
        }
        // Through a table each lane may go its own way, guard or not.
        if !is_uniform && (guarded || words.base() == "brx") {
            facts.class = Class::Split;
        }
    }
}

/// What the row and all of its modifiers need.
fn needs(row: &Row, words: &Words<'_>) -> Needs {
    let holds = |also: &&Also| also.words.split('.').skip(1).all(|word| words.has(word));
    let mut needs = row.needs;
    for also in row.also.iter().copied().flatten().filter(holds) {
        needs.version = needs.version.max(also.needs.version);
        needs.target = match (needs.target, also.needs.target) {
            (Targets::From(a), Targets::From(b)) => Targets::From(a.max(b)),
            (listed @ Targets::Listed(_), Targets::From(_)) | (_, listed @ Targets::Listed(_)) => listed,
        };
    }
    needs
}
