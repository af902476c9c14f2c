//! The values that an instruction gives and takes, what it overwrites, and what a store overwrites.
//!
//! ```text
//! ld.global.v2.f32 {%f1, %f2}, [%rd1+16];     out: %f1, %f2, of type f32
//! mad.wide.u32 %rd1, %r1, 4, %rd1;            in1, in2: u32; in3, what is added: u64, as the result
//! ```

use super::types::{bits_of, number_of, own_type, site_type};
use super::{Element, Old, Reader, Source, Written};
use nt_ir::close::SiteType;
use nt_ir::program::Type;
use nt_ptx::opcode::{self, Class, Completion, Facts, Space};
use nt_ptx::syntax::{Operand, OperandKind};

impl Reader<'_, '_> {
    /// What the instruction gives: the elements of a vector, or of `p|q` both, if they are alike.
    pub(super) fn out(&self, facts: &Facts) -> Option<Vec<Element>> {
        facts.offers("out").then(|| self.given(facts)).flatten()
    }

    /// The same, now or later.
    pub(super) fn given(&self, facts: &Facts) -> Option<Vec<Element>> {
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

    pub(super) fn inputs(&self, facts: &Facts) -> Vec<Option<Vec<Element>>> {
        if !facts.offers("in") {
            return Vec::new();
        }
        // Registers that a fence has given over to `wgmma` are touched by nobody else: PTX ISA 9.0, 9.7.15.7.1.
        let are_given_over = facts.class == Class::Mma && facts.completes == Completion::MatrixGroup;
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
                let operand = self.operand(place)?;
                let is_given_over = are_given_over && matches!(operand.kind, OperandKind::Vector(_));
                if is_given_over { None } else { self.elements(operand, ty, facts) }
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

    /// What a plain store overwrites: one that orders nothing.
    pub(super) fn old(&self, facts: &Facts) -> Option<Old> {
        let is_plain = |word: &str| {
            let is_known = ["global", "shared", "shared::cta", "v2", "v4", "weak", "wb", "cg", "cs", "wt"];
            is_known.contains(&word) || opcode::Type::named(word).is_some()
        };
        let mut words = self.opcode.split('.');
        if !facts.offers("old") || words.next() != Some("st") || !words.all(is_plain) {
            return None;
        }
        let space = match facts.space? {
            Space::Global => ".global",
            Space::Shared => ".shared",
            Space::Generic => "",
            _ => return None,
        };
        let address = self.address(facts)?;
        let ty = site_type(facts.ty?)?;
        let count = u8::try_from(facts.elems).ok().filter(|count| matches!(count, 1 | 2 | 4))?;
        Some(Old { space, address, ty, count })
    }

    /// Is the wait over? Those that may come back early say so by a predicate.
    pub(super) fn done(&self, facts: &Facts) -> Option<String> {
        facts.offers("done").then_some(())?;
        self.register(self.operand(facts.writes.first()?)?, &[".pred"])
    }

    /// The registers that are overwritten, each once.
    pub(super) fn written(&self, facts: &Facts) -> Vec<Written> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
