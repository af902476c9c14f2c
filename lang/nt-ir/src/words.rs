//! The words that the text form uses for types, units, operations and builtins: one table each, read both ways.
//!
//! `Type::U32.word()` is `"u32"` and `Type::from_word("u32")` is `Some(Type::U32)`; the probe language and the files
//! use the same words, so nothing else spells them.

use crate::program::{
    BinaryOp, Builtin, CompareOp, Func, Operand, Part, Placement, Policy, SiteKey, SiteValue, Type, UnaryOp,
    Unit,
};
use std::fmt;

/// Gives an enum `word`, `from_word` and the list of all its members from one table.
macro_rules! words {
    ($type:ident { $($member:pat => $value:expr, $word:literal;)* }) => {
        impl $type {
            /// Every one of them, in the order of the table.
            pub const ALL: &'static [$type] = &[$($value),*];

            /// Its word in the text form.
            pub fn word(self) -> &'static str {
                match self {
                    $($member => $word,)*
                }
            }

            /// The one that `word` names.
            pub fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some($value),)*
                    _ => None,
                }
            }
        }
    };
}

words! { Type {
    Type::U8 => Type::U8, "u8";
    Type::U16 => Type::U16, "u16";
    Type::U32 => Type::U32, "u32";
    Type::U64 => Type::U64, "u64";
    Type::S8 => Type::S8, "s8";
    Type::S16 => Type::S16, "s16";
    Type::S32 => Type::S32, "s32";
    Type::S64 => Type::S64, "s64";
    Type::F32 => Type::F32, "f32";
    Type::F64 => Type::F64, "f64";
    Type::Bool => Type::Bool, "bool";
    Type::Ptr => Type::Ptr, "ptr";
}}

words! { Unit {
    Unit::Thread => Unit::Thread, "thread";
    Unit::Warp => Unit::Warp, "warp";
    Unit::Block => Unit::Block, "block";
}}

words! { UnaryOp {
    UnaryOp::Neg => UnaryOp::Neg, "neg";
    UnaryOp::Not => UnaryOp::Not, "not";
}}

words! { BinaryOp {
    BinaryOp::Add => BinaryOp::Add, "add";
    BinaryOp::Sub => BinaryOp::Sub, "sub";
    BinaryOp::Mul => BinaryOp::Mul, "mul";
    BinaryOp::Div => BinaryOp::Div, "div";
    BinaryOp::Rem => BinaryOp::Rem, "rem";
    BinaryOp::And => BinaryOp::And, "and";
    BinaryOp::Or => BinaryOp::Or, "or";
    BinaryOp::Xor => BinaryOp::Xor, "xor";
    BinaryOp::Shl => BinaryOp::Shl, "shl";
    BinaryOp::Shr => BinaryOp::Shr, "shr";
    BinaryOp::Min => BinaryOp::Min, "min";
    BinaryOp::Max => BinaryOp::Max, "max";
}}

words! { CompareOp {
    CompareOp::Eq => CompareOp::Eq, "eq";
    CompareOp::Ne => CompareOp::Ne, "ne";
    CompareOp::Lt => CompareOp::Lt, "lt";
    CompareOp::Le => CompareOp::Le, "le";
    CompareOp::Gt => CompareOp::Gt, "gt";
    CompareOp::Ge => CompareOp::Ge, "ge";
}}

words! { Builtin {
    Builtin::Clock => Builtin::Clock, "clock";
    Builtin::ClockLow => Builtin::ClockLow, "clock32";
    Builtin::Time => Builtin::Time, "time";
    Builtin::Cu => Builtin::Cu, "cu";
    Builtin::Lane => Builtin::Lane, "lane";
    Builtin::WarpSize => Builtin::WarpSize, "warpsize";
    Builtin::Active => Builtin::Active, "active";
    Builtin::Thread => Builtin::Thread, "thread";
    Builtin::Block => Builtin::Block, "block";
    Builtin::Warp => Builtin::Warp, "warp";
    Builtin::WarpInBlock => Builtin::WarpInBlock, "wid";
    Builtin::Tid(0) => Builtin::Tid(0), "tid.x";
    Builtin::Tid(1) => Builtin::Tid(1), "tid.y";
    Builtin::Tid(_) => Builtin::Tid(2), "tid.z";
    Builtin::Ntid(0) => Builtin::Ntid(0), "ntid.x";
    Builtin::Ntid(1) => Builtin::Ntid(1), "ntid.y";
    Builtin::Ntid(_) => Builtin::Ntid(2), "ntid.z";
    Builtin::Ctaid(0) => Builtin::Ctaid(0), "ctaid.x";
    Builtin::Ctaid(1) => Builtin::Ctaid(1), "ctaid.y";
    Builtin::Ctaid(_) => Builtin::Ctaid(2), "ctaid.z";
    Builtin::Nctaid(0) => Builtin::Nctaid(0), "nctaid.x";
    Builtin::Nctaid(1) => Builtin::Nctaid(1), "nctaid.y";
    Builtin::Nctaid(_) => Builtin::Nctaid(2), "nctaid.z";
    Builtin::ClusterId => Builtin::ClusterId, "cluster.id";
    Builtin::ClusterRank => Builtin::ClusterRank, "cluster.rank";
    Builtin::Launch => Builtin::Launch, "launch";
}}

words! { Func {
    Func::Count => Func::Count, "count";
    Func::Sum => Func::Sum, "sum";
    Func::Gone => Func::Gone, "gone";
}}

words! { Policy {
    Policy::Drop => Policy::Drop, "drop";
    Policy::Wrap => Policy::Wrap, "wrap";
}}

words! { Placement {
    Placement::Before => Placement::Before, "before";
    Placement::After => Placement::After, "after";
    Placement::Reach => Placement::Reach, "reach";
}}

words! { SiteKey {
    SiteKey::Site => SiteKey::Site, "site";
    SiteKey::Line => SiteKey::Line, "line";
    SiteKey::Op => SiteKey::Op, "op";
    SiteKey::Class => SiteKey::Class, "class";
    SiteKey::Space => SiteKey::Space, "space";
    SiteKey::Func => SiteKey::Func, "func";
    SiteKey::Kernel => SiteKey::Kernel, "kernel";
    SiteKey::File => SiteKey::File, "file";
    SiteKey::Mark => SiteKey::Mark, "mark";
    SiteKey::Callee => SiteKey::Callee, "callee";
}}

words! { SiteValue {
    SiteValue::Width => SiteValue::Width, "width";
    SiteValue::Elems => SiteValue::Elems, "elems";
    SiteValue::Macs => SiteValue::Macs, "macs";
    SiteValue::Line => SiteValue::Line, "line";
    SiteValue::Site => SiteValue::Site, "site";
}}

words! { Part {
    Part::Addr => Part::Addr, "addr";
    Part::Saddr => Part::Saddr, "saddr";
    Part::Bytes => Part::Bytes, "bytes";
    Part::Width => Part::Width, "width";
    Part::Elems => Part::Elems, "elems";
    Part::Space => Part::Space, "space";
    Part::Out => Part::Out, "out";
    Part::In(1) => Part::In(1), "in1";
    Part::In(2) => Part::In(2), "in2";
    Part::In(3) => Part::In(3), "in3";
    Part::In(4) => Part::In(4), "in4";
    Part::In(_) => Part::In(5), "in5";
    Part::Old => Part::Old, "old";
    Part::Macs => Part::Macs, "macs";
    Part::Taken => Part::Taken, "taken";
    Part::Pred => Part::Pred, "pred";
    Part::Done => Part::Done, "done";
    Part::Callee => Part::Callee, "callee";
}}

impl SiteValue {
    /// The operand that a site must have to tell it; `None` for what every site has.
    pub fn part(self) -> Option<Part> {
        match self {
            SiteValue::Width => Some(Part::Width),
            SiteValue::Elems => Some(Part::Elems),
            SiteValue::Macs => Some(Part::Macs),
            SiteValue::Line | SiteValue::Site => None,
        }
    }
}

impl Operand {
    /// Its type; `None` where it is the instruction's.
    pub fn ty(self) -> Option<Type> {
        match self {
            Operand::Addr => Some(Type::Ptr),
            Operand::Bytes | Operand::Saddr => Some(Type::U32),
            Operand::Pred | Operand::Taken | Operand::Done => Some(Type::Bool),
            Operand::Out(_) | Operand::In(..) | Operand::Old(_) => None,
        }
    }

    /// It, among all operands.
    pub fn part(self) -> Part {
        match self {
            Operand::Addr => Part::Addr,
            Operand::Bytes => Part::Bytes,
            Operand::Pred => Part::Pred,
            Operand::Saddr => Part::Saddr,
            Operand::Taken => Part::Taken,
            Operand::Done => Part::Done,
            Operand::Out(_) => Part::Out,
            Operand::In(number, _) => Part::In(number),
            Operand::Old(_) => Part::Old,
        }
    }

    /// Its word in the language, without an index.
    pub fn word(self) -> &'static str {
        self.part().word()
    }

    /// The operand of a part; element `index` of one that has elements. `None` for parts that are known when a kernel is
    /// woven, and for an index of a part without elements that is not 0.
    pub fn of(part: Part, index: u8) -> Option<Operand> {
        let operand = match part {
            Part::Out => return Some(Operand::Out(index)),
            Part::In(number) => return Some(Operand::In(number, index)),
            Part::Old => return Some(Operand::Old(index)),
            Part::Addr => Operand::Addr,
            Part::Bytes => Operand::Bytes,
            Part::Pred => Operand::Pred,
            Part::Saddr => Operand::Saddr,
            Part::Taken => Operand::Taken,
            Part::Done => Operand::Done,
            Part::Width | Part::Elems | Part::Space | Part::Macs | Part::Callee => return None,
        };
        (index == 0).then_some(operand)
    }
}

/// As the text form has it: `addr`, `out[0]`.
impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Operand::Out(index) | Operand::In(_, index) | Operand::Old(index) => {
                write!(f, "{}[{index}]", self.word())
            }
            _ => f.write_str(self.word()),
        }
    }
}

impl Type {
    /// Its width in bits; a `bool` counts as 1.
    pub fn bits(self) -> u32 {
        match self {
            Type::Bool => 1,
            Type::U8 | Type::S8 => 8,
            Type::U16 | Type::S16 => 16,
            Type::U32 | Type::S32 | Type::F32 => 32,
            Type::U64 | Type::S64 | Type::F64 | Type::Ptr => 64,
        }
    }

    /// Is it an integer with a sign?
    pub fn is_signed(self) -> bool {
        matches!(self, Type::S8 | Type::S16 | Type::S32 | Type::S64)
    }

    /// Is it an integer without a sign, an address among them?
    pub fn is_unsigned(self) -> bool {
        matches!(self, Type::U8 | Type::U16 | Type::U32 | Type::U64 | Type::Ptr)
    }

    /// Is it an integer, an address among them?
    pub fn is_integer(self) -> bool {
        self.is_signed() || self.is_unsigned()
    }

    /// `value` as [`Op::Const`](crate::program::Op::Const) holds a constant of this type: cut to the width, then
    /// extended to 64 bits by the type's sign.
    pub fn canonical(self, value: u64) -> u64 {
        let spare = 64 - self.bits();
        if self.is_signed() { ((value << spare) as i64 >> spare) as u64 } else { value << spare >> spare }
    }
}

impl Builtin {
    /// Its type.
    pub fn ty(self) -> Type {
        match self {
            Builtin::Clock
            | Builtin::Time
            | Builtin::Active
            | Builtin::Thread
            | Builtin::Block
            | Builtin::Warp
            | Builtin::Launch => Type::U64,
            Builtin::ClockLow
            | Builtin::Cu
            | Builtin::Lane
            | Builtin::WarpSize
            | Builtin::WarpInBlock
            | Builtin::Tid(_)
            | Builtin::Ntid(_)
            | Builtin::Ctaid(_)
            | Builtin::Nctaid(_)
            | Builtin::ClusterId
            | Builtin::ClusterRank => Type::U32,
        }
    }

    /// Is it the same in every lane of a group?
    pub fn is_uniform(self) -> bool {
        !matches!(self, Builtin::Lane | Builtin::Thread | Builtin::Tid(_))
    }

    /// Does a second reading at the same site give the same value? Clocks go on, and the machine may run a part of the
    /// group's lanes at a time.
    pub fn is_stable(self) -> bool {
        !matches!(self, Builtin::Clock | Builtin::ClockLow | Builtin::Time | Builtin::Active)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_back() {
        for &ty in Type::ALL {
            assert_eq!(Type::from_word(ty.word()), Some(ty));
        }
        for &builtin in Builtin::ALL {
            assert_eq!(Builtin::from_word(builtin.word()), Some(builtin));
        }
        for &op in BinaryOp::ALL {
            assert_eq!(BinaryOp::from_word(op.word()), Some(op));
        }
        for &op in CompareOp::ALL {
            assert_eq!(CompareOp::from_word(op.word()), Some(op));
        }
        for &part in Part::ALL {
            assert_eq!(Part::from_word(part.word()), Some(part));
        }
        for &key in SiteKey::ALL {
            assert_eq!(SiteKey::from_word(key.word()), Some(key));
        }
    }

    #[test]
    fn constants_are_cut_and_extended() {
        assert_eq!(Type::U8.canonical(0x1ff), 0xff);
        assert_eq!(Type::S8.canonical(0x1ff), u64::MAX);
        assert_eq!(Type::S8.canonical(0x7f), 0x7f);
        assert_eq!(Type::U64.canonical(u64::MAX), u64::MAX);
        assert_eq!(Type::Bool.canonical(3), 1);
    }
}
