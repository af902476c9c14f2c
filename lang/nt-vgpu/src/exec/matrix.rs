//! Matrices spread over a warp: `ldmatrix`, `stmatrix`, `mma.sync`.
//!
//! Where an element lies follows from one rule. A register holds `per` elements next to each other in k; the four lanes
//! of a row follow each other; registers go on by blocks of 8 rows first, then by blocks of `4·per` in k.
//!
//! Products are exact and summed in f64 in order of k; the sum, with the accumulator, is rounded once. A tensor core
//! adds in an order and with a precision that the manual leaves open, so results may differ in the last place.
//!
//! Source: PTX ISA 9.0, section 9.7.14 (`mma.sync`, `ldmatrix`, `stmatrix`), figures of fragments.

use crate::code::{Address, Dst, Op, Src};
use crate::decode::{Decoded, Line, missing};
use crate::exec::float::double;
use crate::exec::spaces::{AddressSpace, SPACES, decode_address};
use crate::fault::Stop;
use crate::machine::Machine;
use crate::round::{BF16, F16, narrow, widen};
use crate::stats::lanes;
use crate::types::{Type, mask, signed};
use crate::warp::{Row, Warp};

/// `ldmatrix`, `stmatrix`: 8×8 matrices of 16 bits, a row of which is 16 bytes that one lane points to.
#[derive(Debug)]
pub(crate) struct Fragments {
    transposed: bool,
    pub(crate) space: AddressSpace,
    pub(crate) address: Address,
    registers: Registers,
}

#[derive(Debug)]
enum Registers {
    Load(Box<[Dst]>),
    Store(Box<[Src]>),
}

/// All lanes must take part.
fn whole(active: u32) -> Result<(), Stop> {
    match active {
        u32::MAX => Ok(()),
        _ => Err(Stop::undefined(
            (!active).trailing_zeros(),
            "a matrix operation without all lanes of its warp",
        )),
    }
}

pub(crate) fn decode_fragments(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let is_load = line.base == "ldmatrix";
    if !line.flag(".sync") || !line.flag(".aligned") || !line.flag(".m8n8") {
        return missing(format!("this form of `{}`", line.base));
    }
    let Some(count) = line.one_of(&[(".x1", 1), (".x2", 2), (".x4", 4)]) else {
        return missing(format!("`{}` without a count", line.base));
    };
    let transposed = line.flag(".trans");
    let space = line.one_of(SPACES);
    let ty = line.ty()?;
    line.end(2)?;
    let (registers, length, address) = if is_load {
        let dsts = line.dsts(0)?;
        let length = dsts.len();
        (Registers::Load(dsts), length, 1)
    } else {
        let sources = line.srcs(1, Type::Bits(32))?;
        let length = sources.len();
        (Registers::Store(sources), length, 0)
    };
    if ty.bits() != 16 || length != count {
        return missing(format!("`{}` of {count} into {length} registers", line.base));
    }
    let (space, address) = decode_address(line, address, space)?;
    Ok(Op::Fragments(Box::new(Fragments { transposed, space, address, registers })))
}

impl Fragments {
    /// How many registers a lane brings or gets.
    pub(crate) fn registers(&self) -> u32 {
        match &self.registers {
            Registers::Load(dsts) => dsts.len() as u32,
            Registers::Store(sources) => sources.len() as u32,
        }
    }

    pub(crate) fn is_load(&self) -> bool {
        matches!(self.registers, Registers::Load(_))
    }

    pub(crate) fn run(&self, machine: &mut Machine<'_>, warp: &mut Warp, active: u32) -> Result<(), Stop> {
        whole(active)?;
        let addresses = machine.addresses(warp, self.address);
        for matrix in 0..self.registers() as usize {
            // The rows of matrix 1 come from lanes 8 to 15, and so on.
            let rows = matrix * 8..matrix * 8 + 8;
            let mut elements = [[0u16; 8]; 8];
            match &self.registers {
                Registers::Load(dsts) => {
                    for (row, lane) in elements.iter_mut().zip(rows) {
                        let mut bytes = [0; 16];
                        machine.read(warp, lane, self.space, addresses[lane], &mut bytes)?;
                        for (element, pair) in row.iter_mut().zip(bytes.chunks_exact(2)) {
                            *element = u16::from_le_bytes([pair[0], pair[1]]);
                        }
                    }
                    for lane in 0..32 {
                        let [low, high] =
                            self.pair(lane).map(|(row, column)| u64::from(elements[row][column]));
                        warp.set(lane, dsts[matrix], high << 16 | low);
                    }
                }
                Registers::Store(sources) => {
                    let values = warp.row(machine, sources[matrix]);
                    for (lane, value) in values.iter().enumerate() {
                        let [low, high] = self.pair(lane);
                        elements[low.0][low.1] = *value as u16;
                        elements[high.0][high.1] = (value >> 16) as u16;
                    }
                    for (row, lane) in elements.iter().zip(rows) {
                        let bytes: Vec<u8> = row.iter().flat_map(|element| element.to_le_bytes()).collect();
                        machine.write(warp, lane, self.space, addresses[lane], &bytes)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Row and column of a lane's two elements.
    fn pair(&self, lane: usize) -> [(usize, usize); 2] {
        [0, 1].map(|i| {
            let at = (lane / 4, lane % 4 * 2 + i);
            if self.transposed { (at.1, at.0) } else { at }
        })
    }
}

/// `mma.sync`: D = A·B + C.
#[derive(Debug)]
pub(crate) struct Mma {
    m: usize,
    n: usize,
    k: usize,
    a_ty: Type,
    b_ty: Type,
    d_ty: Type,
    c_ty: Type,
    saturates: bool,
    d: Box<[Dst]>,
    a: Box<[Src]>,
    b: Box<[Src]>,
    c: Box<[Src]>,
}

pub(crate) fn decode(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let shapes = [
        (".m8n8k4", (8, 8, 4)),
        (".m8n8k16", (8, 8, 16)),
        (".m16n8k4", (16, 8, 4)),
        (".m16n8k8", (16, 8, 8)),
        (".m16n8k16", (16, 8, 16)),
        (".m16n8k32", (16, 8, 32)),
    ];
    let shape = line.one_of(&shapes);
    let fits = line.flag(".sync") & line.flag(".aligned") & line.flag(".row") & line.flag(".col");
    let saturates = line.flag(".satfinite");
    let (Some((m, n, k)), true) = (shape, fits) else {
        return missing("this form of `mma`");
    };
    let (d_ty, a_ty, b_ty, c_ty) = (line.ty()?, line.ty()?, line.ty()?, line.ty()?);
    line.end(4)?;
    let integer = matches!(a_ty, Type::Signed(8) | Type::Unsigned(8))
        && matches!(b_ty, Type::Signed(8) | Type::Unsigned(8));
    let known = match (a_ty, k) {
        (Type::Float(16), 8 | 16) => {
            a_ty == b_ty && [d_ty, c_ty].iter().all(|ty| matches!(ty, Type::Float(16 | 32))) && m == 16
        }
        (Type::Bfloat, 8 | 16) | (Type::Tfloat, 4 | 8) => {
            a_ty == b_ty && [d_ty, c_ty] == [Type::Float(32); 2] && m == 16
        }
        (Type::Float(64), 4) => a_ty == b_ty && [d_ty, c_ty] == [Type::Float(64); 2] && m == 8,
        (_, 16 | 32) => integer && [d_ty, c_ty] == [Type::Signed(32); 2] && (m, k) != (8, 32),
        _ => false,
    };
    if !known || saturates && !integer {
        return missing(format!("`mma` of {a_ty:?} and {b_ty:?} in this shape"));
    }
    let word = if a_ty.bits() == 64 { Type::Bits(64) } else { Type::Bits(32) };
    let (d, a, b, c) = (line.dsts(0)?, line.srcs(1, word)?, line.srcs(2, word)?, line.srcs(3, word)?);
    // Registers of 32 bits, or of one f64.
    let registers =
        |elements: usize, ty: Type| (elements / 32 * ty.bits() as usize).div_ceil(word.bits() as usize);
    let counts =
        [registers(m * n, d_ty), registers(m * k, a_ty), registers(k * n, b_ty), registers(m * n, c_ty)];
    if counts != [d.len(), a.len(), b.len(), c.len()] {
        return missing("`mma` with other registers than its shape has");
    }
    Ok(Op::Mma(Box::new(Mma { m, n, k, a_ty, b_ty, d_ty, c_ty, saturates, d, a, b, c })))
}

/// An element of a matrix as a number, its bits being the lowest of `bits`.
fn element(bits: u64, ty: Type) -> f64 {
    match ty {
        Type::Float(16) => widen(bits & 0xffff, F16),
        Type::Bfloat => widen(bits & 0xffff, BF16),
        // The lower 13 bits of an f32 are not looked at.
        Type::Tfloat => f64::from(f32::from_bits(bits as u32 & !0x1fff)),
        Type::Float(32) => f64::from(f32::from_bits(bits as u32)),
        Type::Float(_) => f64::from_bits(bits),
        Type::Signed(n) => signed(bits, n) as f64,
        _ => (bits & mask(ty.bits())) as f64,
    }
}

impl Mma {
    pub(crate) fn run(&self, machine: &mut Machine<'_>, warp: &mut Warp, active: u32) -> Result<(), Stop> {
        whole(active)?;
        let rows =
            |sources: &[Src]| -> Vec<Row> { sources.iter().map(|src| warp.row(machine, *src)).collect() };
        let (a, b, c) = (rows(&self.a), rows(&self.b), rows(&self.c));
        // Row-major m×k and k×n; at most 16×32.
        let (mut left, mut right) = ([0.0; 512], [0.0; 512]);
        let blocks = self.m / 8;
        spread(&a, self.a_ty, blocks, |row, k, value| left[row * self.k + k] = value);
        spread(&b, self.b_ty, 1, |column, k, value| right[column * self.k + k] = value);
        // Accumulators: two elements next to each other a lane, a block of 8 rows after the other.
        for lane in lanes(active) {
            let mut bits = [0; 4];
            for (i, bits) in bits.iter_mut().enumerate().take(blocks * 2) {
                let (row, column) = (lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2);
                let per = register_share(self.c_ty);
                let start = c[i / per][lane] >> (i % per * self.c_ty.bits() as usize);
                let products = (0..self.k).map(|k| left[row * self.k + k] * right[column * self.k + k]);
                *bits = self.finish(start, products);
            }
            let per = register_share(self.d_ty);
            for (dst, bits) in self.d.iter().zip(bits.chunks(per)) {
                let shift = self.d_ty.bits();
                let value =
                    bits.iter().rev().fold(0, |all: u64, part| all.checked_shl(shift).unwrap_or(0) | part);
                warp.set(lane, *dst, value);
            }
        }
        debug_assert!(self.n == 8);
        Ok(())
    }

    fn finish(&self, start: u64, products: impl Iterator<Item = f64>) -> u64 {
        match self.d_ty {
            Type::Float(64) => {
                double(products.fold(f64::from_bits(start), |sum, product| sum + product), [start])
            }
            Type::Float(bits) => {
                let sum = products.sum::<f64>() + element(start, self.c_ty);
                match bits {
                    16 => narrow(sum, F16),
                    _ if sum.is_nan() => u64::from(crate::exec::float::NAN),
                    _ => u64::from((sum as f32).to_bits()),
                }
            }
            _ => {
                // Products of bytes are exact in f64, and so is the sum of 32 of them.
                let sum = products.sum::<f64>() as i64 + signed(start, 32);
                let sum =
                    if self.saturates { sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) } else { sum };
                sum.cast_unsigned() & mask(32)
            }
        }
    }
}

/// Elements of an accumulator's register.
fn register_share(ty: Type) -> usize {
    if ty.bits() == 16 { 2 } else { 1 }
}

/// Takes a fragment apart: calls `put` with the row (of B: the column), k and value of every element.
fn spread(registers: &[Row], ty: Type, blocks: usize, mut put: impl FnMut(usize, usize, f64)) {
    let per = 32usize.div_ceil(ty.bits() as usize);
    for (register, row) in registers.iter().enumerate() {
        for (lane, value) in row.iter().enumerate() {
            for i in 0..per {
                let at = lane / 4 + register % blocks * 8;
                let k = lane % 4 * per + i + register / blocks * 4 * per;
                put(at, k, element(value >> (i * ty.bits() as usize).min(63), ty));
            }
        }
    }
}
