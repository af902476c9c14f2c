//! What is known of a site when a probe is closed over it.

use crate::glob::glob_matches;
use crate::program::{Op, Operand, Part, SiteKey, SiteValue, Type};

/// What is known of one site.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts<'f> {
    /// The kernel that is woven.
    pub kernel: &'f str,
    /// The function that the site stands in.
    pub func: &'f str,
    /// The file of its line; the assembly's own where the compiler left no lines.
    pub file: &'f str,
    /// Its line.
    pub line: u32,
    /// Its number among the sites of the kernel, as the manifest lists them.
    pub site: u32,
    /// The opcode with its modifiers. A kernel's entry and exit have none.
    pub op: Option<&'f str>,
    /// The class: `load`.
    pub class: Option<&'f str>,
    /// The state space as the body sees it: `global` of a generic access too, where the body runs only if it goes there.
    pub space: Option<&'f str>,
    /// Bits an element.
    pub width: Option<u32>,
    /// Elements of a vector.
    pub elems: Option<u32>,
    /// Multiply-adds of the warp's share.
    pub macs: Option<u32>,
    /// How much is moved.
    pub bytes: Fact<u32>,
    /// The guard, for the lanes that run the body: known to hold but for [`Reach`](crate::program::Placement::Reach).
    pub pred: Fact<bool>,
    /// Does the instruction have an address that `addr` can give?
    pub addr: bool,
    /// The name of the mark, where a mark is the site.
    pub mark: Option<&'f str>,
    /// The function that a direct call goes to.
    pub callee: Option<&'f str>,
    /// What the instruction gives, where that can be read behind it.
    pub out: Option<Elements>,
    /// What it takes: `in1` first. Nothing where it has the operand and that cannot be read as values.
    pub inputs: &'f [Option<Elements>],
    /// What a store overwrites.
    pub old: Option<Elements>,
    /// What else `has(x)` finds, of the operands that have no field here. Not what cannot be read from where the body stands:
    /// `out` before the instruction, `old` behind it.
    pub others: &'f [Part],
}

/// Something that a site may have, and that may be known of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fact<T> {
    /// The site does not have it.
    #[default]
    Absent,
    /// The same each time it runs.
    Known(T),
    /// Told when it runs, and of each lane apart.
    Dynamic,
}

/// The values of an operand: one, or those of a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elements {
    /// The type of each. What PTX calls `.bN` is unsigned.
    pub ty: SiteType,
    /// How many there are.
    pub count: u8,
}

/// A type that only instructions have, or one of the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SiteType {
    /// A type of the language.
    Is(Type),
    /// IEEE binary16.
    F16,
    /// The upper half of a binary32.
    Bf16,
}

impl SiteType {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            SiteType::Is(ty) => ty.word(),
            SiteType::F16 => "f16",
            SiteType::Bf16 => "bf16",
        }
    }

    /// The type in which its bits are read.
    pub(super) fn held_in(self) -> Type {
        match self {
            SiteType::Is(ty) => ty,
            SiteType::F16 | SiteType::Bf16 => Type::U16,
        }
    }
}

impl Facts<'_> {
    /// Does the site have this operand?
    pub fn has(&self, part: Part) -> bool {
        match part {
            Part::Addr => self.addr,
            Part::Bytes => self.bytes != Fact::Absent,
            Part::Width => self.width.is_some(),
            Part::Elems => self.elems.is_some(),
            Part::Space => self.space.is_some(),
            Part::Macs => self.macs.is_some(),
            Part::Pred => self.pred != Fact::Absent,
            Part::Callee => self.callee.is_some() || self.others.contains(&part),
            Part::Out => self.out.is_some() || self.others.contains(&part),
            Part::Old => self.old.is_some() || self.others.contains(&part),
            // What is no register and no number is an operand of the instruction, but has no value.
            Part::In(number) => {
                let place = usize::from(number).checked_sub(1);
                place.is_some_and(|place| self.inputs.get(place).is_some_and(Option::is_some))
                    || self.others.contains(&part)
            }
            Part::Saddr | Part::Taken | Part::Done => self.others.contains(&part),
        }
    }

    /// What the site is called by `key`; `None` where it has no such name.
    pub fn name(&self, key: SiteKey) -> Option<String> {
        match key {
            SiteKey::Site => Some(self.site.to_string()),
            SiteKey::Line => Some(format!("{}:{}", self.file, self.line)),
            SiteKey::Op => self.op.map(str::to_owned),
            SiteKey::Class => self.class.map(str::to_owned),
            SiteKey::Space => self.space.map(str::to_owned),
            SiteKey::Func => Some(self.func.to_owned()),
            SiteKey::Kernel => Some(self.kernel.to_owned()),
            SiteKey::File => Some(self.file.to_owned()),
            SiteKey::Mark => self.mark.map(str::to_owned),
            SiteKey::Callee => self.callee.map(str::to_owned),
        }
    }

    /// The elements of an operand whose type is the instruction's.
    pub(super) fn elements(&self, operand: Operand) -> Option<Elements> {
        match operand {
            Operand::Out(_) => self.out,
            Operand::In(number, _) => {
                let index = usize::from(number).checked_sub(1)?;
                self.inputs.get(index).copied().flatten()
            }
            Operand::Old(_) => self.old,
            _ => None,
        }
    }

    /// The type of such an operand; `None` where the instruction has no such element.
    pub(super) fn site_type(&self, operand: Operand) -> Option<SiteType> {
        let elements = self.elements(operand)?;
        let (Operand::Out(index) | Operand::In(_, index) | Operand::Old(index)) = operand else {
            return None;
        };
        (index < elements.count).then_some(elements.ty)
    }

    fn matches(&self, what: SiteKey, glob: &str) -> Option<bool> {
        self.name(what).map(|name| glob_matches(glob, &name))
    }

    fn value(&self, value: SiteValue) -> Option<u32> {
        match value {
            SiteValue::Width => self.width,
            SiteValue::Elems => self.elems,
            SiteValue::Macs => self.macs,
            SiteValue::Line => Some(self.line),
            SiteValue::Site => Some(self.site),
        }
    }

    /// The constant that `op` is at this site.
    pub(super) fn constant(&self, op: &Op) -> Option<u64> {
        match op {
            Op::Site(value) => self.value(*value).map(u64::from),
            Op::Has(part) => Some(u64::from(self.has(*part))),
            Op::Match { what, glob } => self.matches(*what, glob).map(u64::from),
            Op::Operand(Operand::Bytes) => match self.bytes {
                Fact::Known(bytes) => Some(bytes.into()),
                Fact::Absent | Fact::Dynamic => None,
            },
            Op::Operand(Operand::Pred) => match self.pred {
                Fact::Known(holds) => Some(holds.into()),
                Fact::Absent | Fact::Dynamic => None,
            },
            _ => None,
        }
    }
}
