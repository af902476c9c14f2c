//! One instruction being decoded: its modifiers, used up one by one, and its operands.
//!
//! A modifier that nobody asked for makes the instruction one that is not executed: `add.f32` with a word that the
//! interpreter has never heard of must not be computed as if it were not there.

use super::layout::{Layout, Where};
use crate::code::{Address, Dst, Op, Src, frame};
use crate::round::{BF16, F16, narrow};
use crate::special::Special;
use crate::types::{Type, mask};
use nt_diag::Span;
use nt_ptx::syntax::{Instruction, Module, Operand, OperandKind};

/// Why an instruction is not executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Missing(pub(crate) String);

/// What decoding gives.
pub(crate) type Decoded<T> = Result<T, Missing>;

pub(crate) fn missing<T>(what: impl Into<String>) -> Decoded<T> {
    Err(Missing(what.into()))
}

/// An instruction on its way from text to [`Op`].
pub(crate) struct Line<'a, 's> {
    pub(crate) module: &'s Module<'s>,
    pub(crate) layout: &'a mut Layout<'s>,
    /// Index of its function in the module.
    pub(crate) function: usize,
    /// Where the statement begins: what names mean depends on it.
    pub(crate) at: u32,
    pub(crate) base: &'s str,
    words: Vec<&'s str>,
    /// The types that were used up, in their order.
    pub(crate) types: Vec<Type>,
    pub(crate) operands: Vec<Operand>,
}

impl<'a, 's> Line<'a, 's> {
    pub(crate) fn new(
        layout: &'a mut Layout<'s>,
        function: usize,
        at: u32,
        instruction: &Instruction,
    ) -> Self {
        let module = layout.module;
        let opcode = module.opcode(instruction);
        let words = opcode.parts().collect();
        Line {
            module,
            layout,
            function,
            at,
            base: opcode.base,
            words,
            types: Vec::new(),
            operands: module.operands(instruction),
        }
    }

    // ---- modifiers ----

    /// Uses up a modifier, if it is there.
    pub(crate) fn flag(&mut self, word: &str) -> bool {
        let found = self.words.iter().position(|w| *w == word);
        found.map(|at| self.words.remove(at)).is_some()
    }

    /// Uses up the first modifier that the table has.
    pub(crate) fn one_of<T: Copy>(&mut self, table: &[(&str, T)]) -> Option<T> {
        let (at, value) = self
            .words
            .iter()
            .enumerate()
            .find_map(|(at, word)| Some((at, table.iter().find(|(name, _)| name == word)?.1)))?;
        self.words.remove(at);
        Some(value)
    }

    /// Uses up the first type.
    pub(crate) fn ty(&mut self) -> Decoded<Type> {
        match self.optional_ty() {
            Some(ty) => Ok(ty),
            None => missing(format!("`{}` without a type that it knows", self.base)),
        }
    }

    /// The first type, which stays.
    pub(crate) fn first_ty(&self) -> Option<Type> {
        self.words.iter().find_map(|word| Type::named(word))
    }

    pub(crate) fn optional_ty(&mut self) -> Option<Type> {
        let (at, ty) = self.words.iter().enumerate().find_map(|(at, word)| Some((at, Type::named(word)?)))?;
        self.words.remove(at);
        self.types.push(ty);
        Some(ty)
    }

    /// Uses up modifiers that say nothing about the result; of those that end in `::`, all that begin so.
    pub(crate) fn ignore(&mut self, hints: &[&str]) {
        self.words.retain(|word| {
            !hints.iter().any(|hint| word == hint || (hint.ends_with("::") && word.starts_with(hint)))
        });
    }

    /// The modifiers left.
    pub(crate) fn rest(&self) -> &[&'s str] {
        &self.words
    }

    /// All modifiers must have been used up, and the operands must be so many.
    pub(crate) fn end(&self, operands: usize) -> Decoded<()> {
        if let Some(word) = self.words.first() {
            return missing(format!("`{}` with `{word}`", self.base));
        }
        if self.operands.len() != operands {
            return missing(format!("`{}` with {} operands", self.base, self.operands.len()));
        }
        Ok(())
    }

    // ---- operands ----

    pub(crate) fn text(&self, span: Span) -> &'s str {
        self.module.at(span)
    }

    pub(crate) fn operand(&self, index: usize) -> Decoded<Operand> {
        match self.operands.get(index) {
            Some(operand) => Ok(operand.clone()),
            None => missing(format!("`{}` without an operand {index}", self.base)),
        }
    }

    fn strange<T>(&self, operand: &Operand) -> Decoded<T> {
        missing(format!("the operand `{}`", self.text(operand.span)))
    }

    /// The register that an operand writes.
    pub(crate) fn dst(&mut self, index: usize) -> Decoded<Dst> {
        let operand = self.operand(index)?;
        self.dst_of(&operand)
    }

    pub(crate) fn dst_of(&mut self, operand: &Operand) -> Decoded<Dst> {
        match operand.kind {
            OperandKind::Sink => Ok(Dst { slot: frame::SINK, mask: u64::MAX }),
            OperandKind::Name(name) => match self.layout.register(self.function, self.at, self.text(name)) {
                Some((slot, ty)) => Ok(Dst { slot, mask: mask(ty.bits()) }),
                None => self.strange(operand),
            },
            _ => self.strange(operand),
        }
    }

    /// `d|p`, where `p` or both may be left out.
    pub(crate) fn pair(&mut self, index: usize) -> Decoded<(Dst, Option<Dst>)> {
        match self.operand(index)?.kind {
            OperandKind::Pair(d, p) => Ok((self.dst_of(&d)?, Some(self.dst_of(&p)?))),
            _ => Ok((self.dst(index)?, None)),
        }
    }

    /// `{a, b}`, or one register.
    pub(crate) fn dsts(&mut self, index: usize) -> Decoded<Box<[Dst]>> {
        match self.operand(index)?.kind {
            OperandKind::Vector(all) => all.iter().map(|operand| self.dst_of(operand)).collect(),
            _ => Ok(Box::new([self.dst(index)?])),
        }
    }

    /// The value of an operand that is read as `ty`.
    pub(crate) fn src(&mut self, index: usize, ty: Type) -> Decoded<Src> {
        let operand = self.operand(index)?;
        self.src_of(&operand, ty)
    }

    /// `{a, b}`, or one value.
    pub(crate) fn srcs(&mut self, index: usize, ty: Type) -> Decoded<Box<[Src]>> {
        match self.operand(index)?.kind {
            OperandKind::Vector(all) => all.iter().map(|operand| self.src_of(operand, ty)).collect(),
            _ => Ok(Box::new([self.src(index, ty)?])),
        }
    }

    pub(crate) fn src_of(&mut self, operand: &Operand, ty: Type) -> Decoded<Src> {
        let text = self.text(operand.span);
        match operand.kind {
            OperandKind::Name(name) => self.named(operand, self.text(name), ty),
            OperandKind::Number(_) => Ok(Src::Immediate(immediate(text, ty)?)),
            OperandKind::Offset(name) => {
                let name = self.text(name);
                // `sym+4`, or the old form `sym[4]`.
                let rest = text.get(name.len()..).unwrap_or("").trim();
                let offset = rest.strip_prefix('[').and_then(|r| r.strip_suffix(']')).unwrap_or(rest);
                let Some(offset) = nt_ptx::constant(offset) else {
                    return self.strange(operand);
                };
                match self.layout.symbol(self.function, self.at, name).map(Where::address) {
                    Some(Ok(base)) => Ok(add(base, offset)),
                    Some(Err(why)) => Err(why),
                    None => self.strange(operand),
                }
            }
            OperandKind::Other => match nt_ptx::constant(text) {
                Some(value) => Ok(Src::Immediate(value.cast_unsigned() & mask(ty.bits()))),
                None => self.strange(operand),
            },
            _ => self.strange(operand),
        }
    }

    fn named(&mut self, operand: &Operand, name: &'s str, ty: Type) -> Decoded<Src> {
        let negated = self.text(operand.span).starts_with('!');
        if let Some((slot, own)) = self.layout.register(self.function, self.at, name) {
            return match (negated, own) {
                (false, _) => Ok(Src::Slot(slot)),
                (true, Type::Predicate) => Ok(Src::Not(slot)),
                (true, _) => self.strange(operand),
            };
        }
        if negated {
            return self.strange(operand);
        }
        if let Some(symbol) = self.layout.symbol(self.function, self.at, name) {
            return symbol.address();
        }
        if let Some(special) = Special::named(name) {
            return Ok(Src::Special(special));
        }
        match nt_ptx::constant(name) {
            Some(value) => Ok(Src::Immediate(value.cast_unsigned() & mask(ty.bits()))),
            None => self.strange(operand),
        }
    }

    /// `[%rd1+4]`, `[sym]`, `[16]`. What the base names, if it names no register, comes with it.
    pub(crate) fn address(&mut self, index: usize) -> Decoded<(Address, Option<Where>)> {
        let operand = self.operand(index)?;
        let (base, displacement) = match (self.module.address(&operand), &operand.kind) {
            (Some(address), _) => (address.base, address.displacement),
            // `ld.const.b32 %r, c[2]`
            (None, OperandKind::Offset(name)) => {
                let text = self.text(operand.span);
                let index = text.get(name.len() as usize..).unwrap_or("").trim();
                let offset =
                    index.strip_prefix('[').and_then(|i| i.strip_suffix(']')).and_then(nt_ptx::constant);
                match offset {
                    Some(offset) => (Some(*name), offset),
                    None => return self.strange(&operand),
                }
            }
            _ => return self.strange(&operand),
        };
        let Some(base) = base else {
            let address = Address { base: Src::Immediate(0), displacement, is_narrow: false };
            return Ok((address, None));
        };
        let name = self.text(base);
        if let Some((slot, ty)) = self.layout.register(self.function, self.at, name) {
            return Ok((Address { base: Src::Slot(slot), displacement, is_narrow: ty.bits() == 32 }, None));
        }
        match self.layout.symbol(self.function, self.at, name) {
            Some(symbol) => {
                Ok((Address { base: symbol.address()?, displacement, is_narrow: false }, Some(symbol)))
            }
            None => self.strange(&operand),
        }
    }

    /// The label that an operand names, as a statement.
    pub(crate) fn label(&self, operand: &Operand) -> Decoded<u32> {
        let OperandKind::Name(name) = operand.kind else {
            return self.strange(operand);
        };
        match self.layout.info.label_at(self.function, self.at, self.text(name)) {
            Some(statement) => Ok(statement),
            None => self.strange(operand),
        }
    }

    // ---- whole instructions ----

    /// `op d, a`, the operand read as `ty`.
    pub(crate) fn one(&mut self, ty: Type, f: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Decoded<Op> {
        self.end(2)?;
        Ok(Op::One(Box::new(f), self.dst(0)?, self.src(1, ty)?))
    }

    /// `op d, a, b`
    pub(crate) fn two(
        &mut self,
        ty: Type,
        f: impl Fn(u64, u64) -> u64 + Send + Sync + 'static,
    ) -> Decoded<Op> {
        self.end(3)?;
        Ok(Op::Two(Box::new(f), self.dst(0)?, [self.src(1, ty)?, self.src(2, ty)?]))
    }

    /// `op d, a, b, c`
    pub(crate) fn three(
        &mut self,
        types: [Type; 3],
        f: impl Fn(u64, u64, u64) -> u64 + Send + Sync + 'static,
    ) -> Decoded<Op> {
        self.end(4)?;
        let [a, b, c] = types;
        Ok(Op::Three(Box::new(f), self.dst(0)?, [self.src(1, a)?, self.src(2, b)?, self.src(3, c)?]))
    }
}

fn add(base: Src, offset: i64) -> Src {
    match base {
        Src::Immediate(value) => Src::Immediate(value.wrapping_add_signed(offset)),
        Src::Global(value) => Src::Global(value.wrapping_add_signed(offset)),
        Src::Dynamic(value) => Src::Dynamic(value.wrapping_add_signed(offset)),
        Src::Frame(value) => Src::Frame(value.wrapping_add(offset as u32)),
        other => other,
    }
}

/// A decimal or other integer literal, as far as a size is one.
pub(crate) fn number(text: &str) -> Option<u64> {
    nt_ptx::constant(text).and_then(|n| u64::try_from(n).ok())
}

/// The bits of a literal that is read as `ty`: `-4`, `0xFFU`, `0f3F800000`, `0d3FF0000000000000`, `1.5`.
pub(crate) fn immediate(text: &str, ty: Type) -> Decoded<u64> {
    if let Some(bits) = text.strip_prefix("0f").or_else(|| text.strip_prefix("0F"))
        && let (8, Ok(bits)) = (bits.len(), u32::from_str_radix(bits, 16))
    {
        return match ty {
            Type::Float(64) => Ok(f64::from(f32::from_bits(bits)).to_bits()),
            Type::Float(16) | Type::Bfloat => float(f64::from(f32::from_bits(bits)), ty, text),
            _ => Ok(u64::from(bits)),
        };
    }
    if let Some(bits) = text.strip_prefix("0d").or_else(|| text.strip_prefix("0D"))
        && let (16, Ok(bits)) = (bits.len(), u64::from_str_radix(bits, 16))
    {
        return if ty.is_integer() { Ok(bits) } else { float(f64::from_bits(bits), ty, text) };
    }
    match (ty, nt_ptx::constant(text)) {
        // A predicate is true if the number is not 0.
        (Type::Predicate, Some(value)) => Ok(u64::from(value != 0)),
        (Type::Float(_) | Type::Bfloat, Some(_)) | (_, None) => match text.parse::<f64>() {
            Ok(value) if text.contains(['.', 'e', 'E']) => float(value, ty, text),
            _ => missing(format!("the number `{text}`")),
        },
        (_, Some(value)) => Ok(value.cast_unsigned() & mask(ty.bits())),
    }
}

fn float(value: f64, ty: Type, text: &str) -> Decoded<u64> {
    match ty {
        Type::Float(64) | Type::Bits(64) => Ok(value.to_bits()),
        Type::Float(32) | Type::Bits(32) => Ok(u64::from((value as f32).to_bits())),
        Type::Float(16) => Ok(narrow(value, F16)),
        Type::Bfloat => Ok(narrow(value, BF16)),
        _ => missing(format!("the number `{text}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals() {
        let f32_ = Type::Float(32);
        assert_eq!(immediate("0f3F800000", f32_), Ok(0x3f80_0000));
        assert_eq!(immediate("0f3F800000", Type::Float(64)), Ok(1f64.to_bits()));
        assert_eq!(immediate("0d3FF0000000000000", f32_), Ok(0x3f80_0000));
        assert_eq!(immediate("-1.5", f32_), Ok(u64::from((-1.5f32).to_bits())));
        assert_eq!(immediate("-1", Type::Signed(16)), Ok(0xffff));
        assert_eq!(immediate("0xFFFFFFFF", Type::Bits(32)), Ok(0xffff_ffff));
        assert_eq!(immediate("0f7F800000", Type::Bits(32)), Ok(0x7f80_0000));
        assert_eq!(immediate("2", Type::Predicate), Ok(1));
        assert!(immediate("x", f32_).is_err());
        assert!(immediate("1", f32_).is_err());
    }
}
