//! Codes: what 16 bits of an event say, so that it need not be stored.
//!
//! ```text
//! code 2    dmat.save(…) at `ld.global.f32 %f1, [%rd4]`, told: site = 2
//!           addr: bits [4, 8, 16, 32, 64]      the lanes' addresses are 4 bytes apart
//!           bytes: known 4
//! ```
//!
//! A code is one save at one site in one form. Where the addresses of the lanes are proved to be a base and a stride for
//! each bit of the lane, only the base is stored; else the event itself is tested when it runs, and each outcome has a
//! code of its own.

use nt_affine::{Access, Linear, Proof};
use nt_ir::Prepared;
use nt_ir::launch::Conditions;
use nt_ir::layout;
use nt_ir::program::{self, MapId, Op, Probe, ValueId};

/// What a code means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// The site, as [`crate::Site::id`].
    pub site: u32,
    /// The fields that are the same in all its events, and their bits, extended by the sign of the type.
    pub told: Vec<(u32, u64)>,
    /// How each field with a value of each lane is had.
    pub lanes: Vec<(u32, Form)>,
    /// What is taken for granted where the lanes' values are proved.
    pub assumes: Assumed,
}

/// What a proof of addresses takes for granted and nobody checks, as [`Proof::Bits`] has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Assumed {
    /// Index arithmetic of 32 bits does not overflow within a warp.
    pub wraps: bool,
    /// Lanes that a branch parted meet again only where its ways join.
    pub joins: bool,
}

/// How the values of the lanes are had. The leader is the lowest lane of the event's mask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// Every lane has this value.
    Known(u64),
    /// base + Σ (bit i of the lane − bit i of the leader) · stride i.
    Bits([Linear; 5]),
    /// One slot, whose first word is a signed stride: base + (lane − leader) · stride.
    Stride,
    /// 4 bytes a lane of the mask: the signed distance from base, or of other fields the value.
    List32,
    /// 8 bytes a lane of the mask: the value.
    List64,
}

/// What an event stores of a field with a value of each lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stored {
    /// Nothing: it is known.
    Known(u64),
    /// Nothing but the base.
    Bits(Box<Proved>),
    /// Addresses: a stride where it is one, else a list; with `stride` unset the stride is not tried.
    Tested { stride: bool },
    /// How many bytes a copy moves, of which operands may say that they are fewer: nothing where all lanes move all, or all
    /// move none, and else the lanes' values, 4 bytes each.
    Whole { size: u32 },
    /// The lanes' values, 4 bytes each.
    Words,
    /// The lanes' values, 8 bytes each.
    Longs,
}

/// What is proved of the lanes' addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proved {
    strides: [Linear; 5],
    assumes: Assumed,
}

impl Stored {
    /// The slots that the values of 32 lanes take at most.
    pub(crate) fn most_slots(&self) -> u32 {
        match self {
            Stored::Known(_) | Stored::Bits(_) => 0,
            Stored::Words | Stored::Whole { .. } => 32 / 4,
            Stored::Tested { .. } | Stored::Longs => 32 / 2,
        }
    }

    /// The forms that it may come in, in the order of their codes.
    pub(crate) fn forms(&self) -> Vec<Form> {
        match self {
            Stored::Known(value) => vec![Form::Known(*value)],
            Stored::Bits(proved) => vec![Form::Bits(proved.strides.clone())],
            Stored::Tested { stride: true } => vec![Form::List64, Form::List32, Form::Stride],
            Stored::Tested { stride: false } => vec![Form::List64, Form::List32],
            Stored::Whole { size } => {
                vec![Form::List32, Form::Known(u64::from(*size)), Form::Known(0)]
            }
            Stored::Words => vec![Form::List32],
            Stored::Longs => vec![Form::List64],
        }
    }
}

/// Where a save stands.
pub(crate) struct Context<'a, 'b> {
    pub(crate) probe: &'a Prepared,
    pub(crate) body: &'a Probe,
    /// What is proved of the address of the instruction at the site.
    pub(crate) access: Option<&'a Access>,
    /// How many bytes the instruction moves at most, where operands tell it.
    pub(crate) whole: Option<u32>,
    /// What is relied on of launches grows by what the proofs rely on.
    pub(crate) assumes: &'b mut Conditions,
}

/// What an event stores of the fields with a value of each lane.
pub(crate) fn stored(
    context: Context<'_, '_>,
    map: MapId,
    values: &[(u32, ValueId)],
) -> Result<Vec<(u32, Stored)>, String> {
    let Context { probe, body, access, whole, assumes } = context;
    let declared = probe.program.maps.get(map.0 as usize).ok_or("its program has no such map")?;
    let base = declared.base_field();
    let mut all = Vec::new();
    for &(field, value) in values {
        let Some(ty) = declared.fields.get(field as usize).filter(|field| field.lanes).map(|f| f.ty) else {
            continue;
        };
        let is_base = base == Some(field);
        let stored = match (definition(body, value), access.map(|access| &access.proof)) {
            // The base is stored for the first addresses, known or not.
            (Some(Op::Const(bits)), _) => Stored::Known(*bits),
            (
                Some(Op::Operand(program::Operand::Addr)),
                Some(&Proof::Bits { ref strides, needs, wraps, joins }),
            ) if is_base => {
                *assumes = assumes.union(needs);
                let assumes = Assumed { wraps, joins };
                Stored::Bits(Box::new(Proved { strides: strides.clone(), assumes }))
            }
            (Some(Op::Operand(program::Operand::Addr)), Some(Proof::Indirect)) if is_base => {
                Stored::Tested { stride: false }
            }
            _ if is_base => Stored::Tested { stride: true },
            (Some(Op::Operand(program::Operand::Bytes)), _) if whole.is_some() => {
                Stored::Whole { size: whole.unwrap_or_default() }
            }
            _ if layout::size(ty) <= 4 => Stored::Words,
            _ => Stored::Longs,
        };
        all.push((field, stored));
    }
    Ok(all)
}

/// What defines a value.
fn definition(body: &Probe, value: ValueId) -> Option<&Op> {
    body.code.iter().find(|inst| inst.result == Some(value)).map(|inst| &inst.op)
}

/// The codes of a map, while they are numbered: sites as the plan counts them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Codes(Vec<Code>);

/// As many as 16 bits tell apart.
const MOST_CODES: usize = 1 << 16;

impl Codes {
    /// The first of the codes of an event, one for each combination of forms; the last field's changes fastest.
    pub(crate) fn add(
        &mut self,
        probe: &Prepared,
        map: MapId,
        body: &Probe,
        values: &[(u32, ValueId)],
        site: u32,
        lanes: &[(u32, Stored)],
    ) -> Result<u32, String> {
        let first = self.0.len() as u32;
        let declared = probe.program.maps.get(map.0 as usize).ok_or("its program has no such map")?;
        if !declared.has_lanes() {
            return Ok(first);
        }
        let told = declared.told.iter().map(|&told| {
            let value = values.iter().find(|(field, _)| *field == told).map(|&(_, value)| value);
            match value.and_then(|value| definition(body, value)) {
                Some(Op::Const(bits)) => Ok((told, *bits)),
                _ => Err(format!("a field of `{}` is not known at a site", declared.name)),
            }
        });
        let told: Vec<(u32, u64)> = told.collect::<Result<_, _>>()?;
        let mut combinations: Vec<Vec<(u32, Form)>> = vec![Vec::new()];
        for (field, stored) in lanes {
            let forms = stored.forms();
            let with = |done: &Vec<(u32, Form)>| {
                let done = done.clone();
                forms.iter().map(move |form| done.iter().cloned().chain([(*field, form.clone())]).collect())
            };
            combinations = combinations.iter().flat_map(with).collect();
        }
        let assumes = lanes.iter().find_map(|(_, stored)| match stored {
            Stored::Bits(proved) => Some(proved.assumes),
            _ => None,
        });
        let assumes = assumes.unwrap_or_default();
        self.0.extend(combinations.into_iter().map(|lanes| Code {
            site,
            told: told.clone(),
            lanes,
            assumes,
        }));
        if MOST_CODES < self.0.len() {
            return Err(format!("the events of `{}` have more than {MOST_CODES} codes", declared.name));
        }
        Ok(first)
    }

    /// The codes, with the sites as their spans are numbered.
    pub(crate) fn with_sites(self, numbers: &[(usize, u32)]) -> Vec<Code> {
        let number = |index: u32| {
            let at = numbers.binary_search_by_key(&(index as usize), |&(site, _)| site).ok()?;
            numbers.get(at).map(|&(_, number)| number)
        };
        let code = |code: Code| Code { site: number(code.site).unwrap_or(code.site), ..code };
        self.0.into_iter().map(code).collect()
    }
}
