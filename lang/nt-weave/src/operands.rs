//! Reads the operands of the instruction at a site, so far as a body may have them: its address, its size, its values.
//!
//! ```text
//! @%p1 ld.global.v2.f32 {%f1, %f2}, [%rd1+16];     addr: %rd1 + 16     out: %f1, %f2, of type f32
//! st.shared.u8 [%r4], %rs1;                        in1: %rs1, of type u8: the register is wider
//! add.s32 %r1, %r1, 4;                             in1: %r1, which is overwritten; in2: 4
//! ```
//!
//! The type of a value is the instruction's where the register is as wide, or an access of memory that may be narrower;
//! else the register's own. What PTX calls `.bN` is unsigned. What is no register and no number has no value here.
//!
//! Language reference, Operands; PTX ISA 9.0, 9.4.1 (operand size exceeding instruction-type size).

use nt_ir::close::SiteType;
use nt_ir::program::Type;
use nt_ptx::ModuleInfo;
use nt_ptx::opcode::{self, Bytes, Class, Completion, Facts, Space, TypeKind};
use nt_ptx::syntax::{Instruction, Module, Operand, OperandKind};

/// Where an instruction's address comes from, its size and its values, as far as operands tell them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Access {
    /// The address that `addr` gives.
    pub(crate) address: Option<Address>,
    /// The address that `saddr` gives.
    pub(crate) shared: Option<Address>,
    /// How many bytes, where the opcode does not say.
    pub(crate) size: Option<Size>,
    /// What it gives; `None` where that cannot be read from where the body stands.
    pub(crate) out: Option<Vec<Element>>,
    /// What it takes, in the order of the language.
    pub(crate) inputs: Vec<Option<Vec<Element>>>,
    /// What a store overwrites.
    pub(crate) old: Option<Old>,
    /// Of a wait, the predicate that says whether it is over.
    pub(crate) done: Option<String>,
    /// The registers that it overwrites, if the body stands behind it.
    pub(crate) written: Vec<Written>,
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

/// The load of what a store overwrites, which is the store's own access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Old {
    /// `global`, `shared`
    pub(crate) space: &'static str,
    pub(crate) address: Address,
    pub(crate) ty: SiteType,
    /// How many values.
    pub(crate) count: u8,
}

/// A value that the instruction gives or takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) ty: SiteType,
    pub(crate) source: Source,
}

/// Where a value is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// In a register of the program: its name, its bits, and whether it is declared as no more than these.
    Register { name: String, bits: u32, is_plain: bool },
    /// In the text, as the bits of the type.
    Number(u64),
}

/// A register of the program that the instruction overwrites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) name: String,
    pub(crate) bits: u32,
}

/// The operands of one instruction.
pub(crate) struct Reader<'a, 's> {
    module: &'a Module<'s>,
    info: &'a ModuleInfo<'s>,
    function: usize,
    /// Where the instruction stands, which decides what its names mean.
    at: u32,
    opcode: &'s str,
    operands: Vec<Operand>,
}

impl<'a, 's> Reader<'a, 's> {
    pub(crate) fn new(
        module: &'a Module<'s>,
        info: &'a ModuleInfo<'s>,
        function: usize,
        instruction: &Instruction,
    ) -> Self {
        let operands = module.operands(instruction);
        let opcode = module.at(instruction.opcode);
        Reader { module, info, function, at: instruction.opcode.start, opcode, operands }
    }

    /// What a body before the instruction, or behind it, may have; values only if some are asked for.
    pub(crate) fn access(&self, facts: &Facts, is_after: bool, values: bool) -> Access {
        let mut access = Access { address: self.address(facts), size: self.size(facts), ..Access::default() };
        if is_after {
            access.written = self.written(facts);
        }
        if values {
            access.shared = self.shared(facts);
            access.inputs = self.inputs(facts);
            if is_after {
                access.out = self.out(facts);
                access.done = self.done(facts);
            } else {
                access.old = self.old(facts);
            }
        }
        access
    }

    fn operand(&self, place: impl Into<usize>) -> Option<&Operand> {
        self.operands.get(place.into())
    }

    /// The space of the variable that an address names.
    pub(crate) fn declared(&self, facts: &Facts) -> Option<Space> {
        let base = self.module.address(self.operand(facts.address?)?)?.base?;
        match self.variable(self.module.at(base))? {
            ".global" => Some(Space::Global),
            ".shared" => Some(Space::Shared),
            ".local" => Some(Space::Local),
            ".const" => Some(Space::Const),
            ".param" => Some(Space::Param),
            _ => None,
        }
    }

    /// The space of a variable; `None` for a register and for what is not declared.
    fn variable(&self, name: &str) -> Option<&'s str> {
        match self.info.declared_at(self.function, self.at, name).map(|declared| declared.space) {
            Some(".reg") => None,
            Some(space) => Some(space),
            None => {
                let index = self.info.variable(name)?;
                self.info.variables.get(index).map(|variable| variable.space)
            }
        }
    }

    /// The address that a body may have: not of parameters, which have no address that all targets tell.
    pub(crate) fn address(&self, facts: &Facts) -> Option<Address> {
        let is_copy = facts.other_space.is_some();
        let space = match facts.space? {
            // The other side of a copy from or to the global side.
            Space::Shared | Space::Cluster if is_copy => facts.other_space?,
            space => space,
        };
        if matches!(space, Space::Param | Space::Tensor) {
            return None;
        }
        self.address_in(self.operand(facts.address?)?, space)
    }

    /// The side of a copy that is in shared memory.
    fn shared(&self, facts: &Facts) -> Option<Address> {
        facts.offers("saddr").then_some(())?;
        self.address_in(self.operand(facts.shared_address?)?, Space::Shared)
    }

    fn address_in(&self, operand: &Operand, space: Space) -> Option<Address> {
        let address = self.module.address(operand)?;
        let base = self.module.at(address.base?);
        let bits = match self.info.register_at(self.function, self.at, base) {
            Some(register) if register.lanes == 1 => match register.ty {
                ".b64" | ".u64" | ".s64" => Some(64),
                ".b32" | ".u32" | ".s32" if space != Space::Generic && space != Space::Global => Some(32),
                _ => return None,
            },
            Some(_) => return None,
            None => {
                self.variable(base).filter(|space| matches!(*space, ".global" | ".shared" | ".const"))?;
                None
            }
        };
        let is_of_module = bits.is_none() && self.info.declared_at(self.function, self.at, base).is_none();
        let (base, displacement) = (base.to_owned(), address.displacement);
        Some(Address { base, bits, is_of_module, displacement, space })
    }

    /// The register at a place, if it is of one of these types.
    fn register(&self, operand: &Operand, wanted: &[&str]) -> Option<String> {
        let OperandKind::Name(name) = operand.kind else { return None };
        let name = self.module.at(name);
        let register = self.info.register_at(self.function, self.at, name)?;
        (register.lanes == 1 && wanted.contains(&register.ty)).then(|| name.to_owned())
    }

    fn size(&self, facts: &Facts) -> Option<Size> {
        const WORDS: &[&str] = &[".b32", ".u32", ".s32"];
        match facts.bytes {
            Bytes::None | Bytes::Known(_) => None,
            Bytes::Operand(place) => self.register(self.operand(place)?, WORDS).map(Size::Register),
            Bytes::CopySize { size, source: None, .. } => size.map(Size::Known),
            Bytes::CopySize { size, source: Some(place), .. } => {
                let operand = self.operand(place)?;
                if let OperandKind::Number(number) = operand.kind {
                    let read = nt_ptx::constant(self.module.at(number))?;
                    return u32::try_from(read).ok().map(Size::Known);
                }
                if let Some(predicate) = self.register(operand, &[".pred"]) {
                    let negated = self.is_negated(operand);
                    return Some(Size::Unless { predicate, negated, size: size? });
                }
                self.register(operand, WORDS).map(Size::Register)
            }
        }
    }

    fn is_negated(&self, operand: &Operand) -> bool {
        self.module.at(operand.span).starts_with('!')
    }

    /// What the instruction gives: the elements of a vector, or of `p|q` both, if they are alike.
    fn out(&self, facts: &Facts) -> Option<Vec<Element>> {
        facts.offers("out").then_some(())?;
        let operand = self.operand(facts.writes.first()?)?;
        let ty = facts.out_ty.or(facts.ty);
        match &operand.kind {
            OperandKind::Pair(one, other) => {
                let one = self.element(one, ty, facts)?;
                let other = self.element(other, ty, facts).filter(|other| other.ty == one.ty);
                Some(std::iter::once(one).chain(other).collect())
            }
            _ => self.elements(operand, ty, facts),
        }
    }

    fn inputs(&self, facts: &Facts) -> Vec<Option<Vec<Element>>> {
        // The accumulators of an asynchronous operation may still be on their way.
        let is_late = facts.class == Class::Mma && facts.completes != Completion::Here;
        if !facts.offers("in") || is_late {
            return Vec::new();
        }
        let places = facts.inputs();
        (1..)
            .zip(places.iter())
            .map(|(number, place)| {
                let is_amount = number == 2 && matches!(facts.name, "shl" | "shr");
                let is_sum = number == 3 && matches!(facts.class, Class::Int) && facts.out_ty.is_some();
                let ty = match (is_amount, is_sum) {
                    (true, _) => opcode::Type::named("u32"),
                    // `mad.wide.u32 d, a, b, c`: what is added is as wide as the result.
                    (_, true) => facts.out_ty,
                    _ => facts.ty,
                };
                self.elements(self.operand(place)?, ty, facts)
            })
            .collect()
    }

    fn elements(&self, operand: &Operand, ty: Option<opcode::Type>, facts: &Facts) -> Option<Vec<Element>> {
        match &operand.kind {
            OperandKind::Vector(list) => {
                let elements: Option<Vec<Element>> =
                    list.iter().map(|one| self.element(one, ty, facts)).collect();
                // All are told by one type, and none of 256 has an instruction.
                let elements = elements?;
                let first = elements.first()?.ty;
                (elements.len() < 256 && elements.iter().all(|one| one.ty == first)).then_some(elements)
            }
            _ => Some(vec![self.element(operand, ty, facts)?]),
        }
    }

    fn element(&self, operand: &Operand, ty: Option<opcode::Type>, facts: &Facts) -> Option<Element> {
        match operand.kind {
            OperandKind::Name(name) => {
                if self.is_negated(operand) {
                    return None;
                }
                let name = self.module.at(name);
                let register = self.info.register_at(self.function, self.at, name)?;
                let bits = bits_of(register.ty).filter(|_| register.lanes == 1)?;
                let is_memory = facts.space.is_some();
                let wanted = ty.and_then(|ty| Some((ty.bits, site_type(ty)?)));
                let ty = match wanted {
                    Some((wide, ty)) if wide == bits || (is_memory && wide < bits) => ty,
                    _ => own_type(register.ty)?,
                };
                let is_plain = matches!(register.ty, ".b16" | ".b32" | ".b64" | ".pred");
                let name = name.to_owned();
                Some(Element { ty, source: Source::Register { name, bits, is_plain } })
            }
            OperandKind::Number(number) => {
                let ty = ty.and_then(site_type).unwrap_or(SiteType::Is(Type::U32));
                let SiteType::Is(known) = ty else { return None };
                let bits = number_of(known, self.module.at(number))?;
                Some(Element { ty, source: Source::Number(bits) })
            }
            _ => None,
        }
    }

    /// What a plain store overwrites: one that orders nothing, and whose text says where it goes.
    fn old(&self, facts: &Facts) -> Option<Old> {
        let is_plain = |word: &str| {
            let is_known = ["global", "shared", "shared::cta", "v2", "v4", "weak", "wb", "cg", "cs", "wt"];
            is_known.contains(&word) || opcode::Type::named(word).is_some()
        };
        let mut words = self.opcode.split('.');
        if !facts.offers("old") || words.next() != Some("st") || !words.all(is_plain) {
            return None;
        }
        let space = match facts.space? {
            Space::Global => "global",
            Space::Shared => "shared",
            _ => return None,
        };
        // A variable of the module may be pinned, and is then not named here.
        let address = self.address(facts).filter(|address| !address.is_of_module)?;
        let ty = site_type(facts.ty?)?;
        let count = u8::try_from(facts.elems).ok().filter(|count| matches!(count, 1 | 2 | 4))?;
        Some(Old { space, address, ty, count })
    }

    /// Is the wait over? Those that may come back early say so by a predicate.
    fn done(&self, facts: &Facts) -> Option<String> {
        facts.offers("done").then_some(())?;
        self.register(self.operand(facts.writes.first()?)?, &[".pred"])
    }

    /// The registers that are overwritten, each once.
    fn written(&self, facts: &Facts) -> Vec<Written> {
        let mut written: Vec<Written> = Vec::new();
        let mut waiting: Vec<&Operand> =
            facts.writes.iter().filter_map(|place| self.operand(place)).collect();
        waiting.reverse();
        while let Some(operand) = waiting.pop() {
            match &operand.kind {
                OperandKind::Name(name) => {
                    let name = self.module.at(*name);
                    let register = self.info.register_at(self.function, self.at, name);
                    let bits = register.filter(|one| one.lanes == 1).and_then(|one| bits_of(one.ty));
                    if let Some(bits) = bits.filter(|_| written.iter().all(|one| one.name != name)) {
                        written.push(Written { name: name.to_owned(), bits });
                    }
                }
                OperandKind::Vector(list) | OperandKind::List(list) => waiting.extend(list.iter().rev()),
                OperandKind::Pair(one, other) => waiting.extend([&**other, &**one]),
                _ => {}
            }
        }
        written
    }
}

/// The bits of a register that a span may read; 1 of a predicate.
fn bits_of(ty: &str) -> Option<u32> {
    match ty {
        ".pred" => Some(1),
        ".b16" | ".u16" | ".s16" | ".f16" => Some(16),
        ".b32" | ".u32" | ".s32" | ".f32" | ".f16x2" => Some(32),
        ".b64" | ".u64" | ".s64" | ".f64" => Some(64),
        _ => None,
    }
}

/// The type that a register is declared with.
fn own_type(ty: &str) -> Option<SiteType> {
    Some(SiteType::Is(match ty {
        ".pred" => Type::Bool,
        ".b16" | ".u16" => Type::U16,
        ".s16" => Type::S16,
        ".f16" => return Some(SiteType::F16),
        ".b32" | ".u32" | ".f16x2" => Type::U32,
        ".s32" => Type::S32,
        ".f32" => Type::F32,
        ".b64" | ".u64" => Type::U64,
        ".s64" => Type::S64,
        ".f64" => Type::F64,
        _ => return None,
    }))
}

/// The type of an instruction as the language has it; packed ones are words of bits.
fn site_type(ty: opcode::Type) -> Option<SiteType> {
    let unsigned = match ty.bits {
        8 => Type::U8,
        16 => Type::U16,
        32 => Type::U32,
        64 => Type::U64,
        _ => return (ty.kind == TypeKind::Predicate).then_some(SiteType::Is(Type::Bool)),
    };
    Some(match (ty.kind, ty.name) {
        _ if ty.parts != 1 => SiteType::Is(unsigned),
        (_, "f16") => SiteType::F16,
        (_, "bf16") => SiteType::Bf16,
        (TypeKind::Float, "f32") => SiteType::Is(Type::F32),
        (TypeKind::Float, "f64") => SiteType::Is(Type::F64),
        (TypeKind::Signed, _) => SiteType::Is(match unsigned {
            Type::U8 => Type::S8,
            Type::U16 => Type::S16,
            Type::U32 => Type::S32,
            _ => Type::S64,
        }),
        _ => SiteType::Is(unsigned),
    })
}

/// A number of the text as the bits of a type: `4`, `-1`, `0f3F800000`, `0.5`.
fn number_of(ty: Type, text: &str) -> Option<u64> {
    let (sign, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let float = |hex: &str, wide: bool| match wide {
        true => u64::from_str_radix(hex, 16).ok().map(f64::from_bits),
        false => u32::from_str_radix(hex, 16).ok().map(|bits| f64::from(f32::from_bits(bits))),
    };
    let value = match digits.get(..2) {
        Some("0f" | "0F") => float(digits.get(2..)?, false),
        Some("0d" | "0D") => float(digits.get(2..)?, true),
        _ if digits.contains('.') => digits.parse().ok(),
        _ => None,
    };
    match (ty, value) {
        (Type::F32, Some(value)) => {
            let value = if sign { -value } else { value };
            Some(u64::from((value as f32).to_bits()))
        }
        (Type::F64, Some(value)) => Some(if sign { -value } else { value }.to_bits()),
        (Type::F32 | Type::F64 | Type::Bool, _) | (_, Some(_)) => None,
        (ty, None) => nt_ptx::constant(text).map(|value| ty.canonical(value as u64)),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_their_type() {
        assert_eq!(number_of(Type::F32, "0f3F800000"), Some(0x3f80_0000));
        assert_eq!(number_of(Type::F64, "0d3FF0000000000000"), Some(0x3ff0_0000_0000_0000));
        assert_eq!(number_of(Type::F32, "-0.5"), Some(0xbf00_0000));
        assert_eq!(number_of(Type::S32, "-1"), Some(u64::MAX));
        assert_eq!(number_of(Type::U8, "-1"), Some(0xff));
        assert_eq!(number_of(Type::U32, "0f3F800000"), None);
        assert_eq!(number_of(Type::U32, "%r1"), None);
    }

    /// The values of the one instruction of a kernel, as `type source` of each element.
    fn values(text: &str) -> (Vec<String>, Vec<String>, Vec<String>) {
        let text = format!(
            ".version 8.5 .target sm_90 .address_size 64 .entry k() {{ .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; \
             .reg .b64 %d<9>; .reg .pred %p<9>; {text} }}"
        );
        let (module, mut found) = nt_ptx::parse(&text);
        let info = nt_ptx::resolve(&module, &mut found);
        assert!(!found.has_errors(), "{found:?}");
        let instruction = module.statements.iter().find_map(|statement| match statement.kind {
            nt_ptx::syntax::Kind::Instruction(instruction) => Some(instruction),
            _ => None,
        });
        let (instruction, reader) = match instruction {
            Some(instruction) => (instruction, Reader::new(&module, &info, 0, &instruction)),
            None => return Default::default(),
        };
        let Some(facts) = module.facts(&instruction) else { return Default::default() };
        let access = reader.access(&facts, true, true);
        let shown = |elements: &Option<Vec<Element>>| match elements {
            None => "none".to_owned(),
            Some(elements) => elements
                .iter()
                .map(|one| match &one.source {
                    Source::Register { name, .. } => format!("{} {name}", one.ty.word()),
                    Source::Number(bits) => format!("{} {bits:#x}", one.ty.word()),
                })
                .collect::<Vec<_>>()
                .join(", "),
        };
        let out = if access.out.is_some() { vec![shown(&access.out)] } else { Vec::new() };
        let written = access.written.iter().map(|one| one.name.clone()).collect();
        (out, access.inputs.iter().map(shown).collect(), written)
    }

    #[test]
    fn values_have_the_type_of_the_instruction() {
        let check = |text: &str, out: &[&str], inputs: &[&str], written: &[&str]| {
            let (o, i, w) = values(text);
            assert_eq!(
                (o, i, w),
                (
                    out.iter().map(|s| (*s).to_owned()).collect(),
                    inputs.iter().map(|s| (*s).to_owned()).collect(),
                    written.iter().map(|s| (*s).to_owned()).collect(),
                ),
                "{text}"
            );
        };
        check("ld.global.v2.f32 {%f1, %f2}, [%d1];", &["f32 %f1, f32 %f2"], &[], &["%f1", "%f2"]);
        check("ld.global.s8 %r1, [%d1];", &["s8 %r1"], &[], &["%r1"]);
        check("ld.global.b16 %h1, [%d1];", &["u16 %h1"], &[], &["%h1"]);
        check("st.global.u8 [%d1], %h1;", &[], &["u8 %h1"], &[]);
        check("st.global.v2.b32 [%d1], {%r1, 7};", &[], &["u32 %r1, u32 0x7"], &[]);
        check("add.s32 %r1, %r1, -4;", &["s32 %r1"], &["s32 %r1", "s32 0xfffffffffffffffc"], &["%r1"]);
        check("mad.wide.u32 %d1, %r1, 4, %d1;", &["u64 %d1"], &["u32 %r1", "u32 0x4", "u64 %d1"], &["%d1"]);
        check("shl.b64 %d1, %d2, 3;", &["u64 %d1"], &["u64 %d2", "u32 0x3"], &["%d1"]);
        check(
            "setp.lt.s32 %p1|%p2, %r1, %r2;",
            &["bool %p1, bool %p2"],
            &["s32 %r1", "s32 %r2"],
            &["%p1", "%p2"],
        );
        check("selp.b32 %r1, 1, 0, %p1;", &["u32 %r1"], &["u32 0x1", "u32 0x0", "bool %p1"], &["%r1"]);
        check("cvt.rn.f32.s32 %f1, %r1;", &["f32 %f1"], &["s32 %r1"], &["%f1"]);
        check("fma.rn.f16 %h1, %h2, %h3, %h4;", &["f16 %h1"], &["f16 %h2", "f16 %h3", "f16 %h4"], &["%h1"]);
        check("add.f16x2 %r1, %r2, %r3;", &["u32 %r1"], &["u32 %r2", "u32 %r3"], &["%r1"]);
        check("mov.u32 %r1, %tid.x;", &["u32 %r1"], &["none"], &["%r1"]);
        check("atom.global.cas.b32 %r1, [%d1], %r2, 5;", &["u32 %r1"], &["u32 %r2", "u32 0x5"], &["%r1"]);
        check(
            "shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, -1;",
            &["u32 %r1"],
            &["u32 %r2", "u32 0x1", "u32 0x1f", "u32 0xffffffff"],
            &["%r1", "%p1"],
        );
        check("bar.sync 0;", &[], &["u32 0x0"], &[]);
    }
}
