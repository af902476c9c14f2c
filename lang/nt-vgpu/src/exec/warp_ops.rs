//! What lanes of a warp do together: shuffles, votes, matches, reductions, elections, warp barriers.
//!
//! Each has a membermask. A lane waits until all lanes of its mask that have not ended are at an instruction with the
//! same qualifiers and mask, wherever that stands; then all get their results. Lanes that stand there together anyway,
//! as nearly always, do not wait. A lane that is not in its own mask is a fault.
//!
//! A shuffle from a lane that is not there gives 0; the manual leaves it open.
//!
//! Source: PTX ISA 9.0, section 9.7.9.6 (`shfl.sync`), 9.7.13 (`vote.sync`, `match.sync`, `activemask`, `redux.sync`,
//! `elect.sync`, `bar.warp.sync`).

use crate::code::{Dst, Op, Src};
use crate::decode::{Decoded, Line, missing};
use crate::exec::atomic::extreme_f32;
use crate::fault::Stop;
use crate::machine::{Machine, Next};
use crate::operation::{Barriers, Family, Group};
use crate::stats::lanes;
use crate::types::{Type, mask, signed};
use crate::warp::{Row, Wait, Warp};

/// What is done together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Together {
    Shuffle(Shuffle),
    Vote(Vote),
    MatchAny(u32),
    MatchAll(u32),
    Reduce(Reduction, Type),
    /// min or max of f32: which, of magnitudes, NaN wins.
    ReduceFloat {
        is_max: bool,
        magnitudes: bool,
        nan_wins: bool,
    },
    Elect,
    Barrier,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shuffle {
    Up,
    Down,
    Butterfly,
    Index,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Vote {
    All,
    Any,
    Uniform,
    Ballot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reduction {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
}

impl Together {
    /// Lanes meet at instructions that are alike in this.
    fn kind(self) -> u32 {
        match self {
            Together::Shuffle(mode) => mode as u32,
            Together::Vote(mode) => 8 + mode as u32,
            Together::MatchAny(bits) => 256 + bits,
            Together::MatchAll(bits) => 512 + bits,
            Together::Reduce(op, ty) => 1024 + op as u32 * 2 + u32::from(ty.is_signed()),
            Together::ReduceFloat { is_max, magnitudes, nan_wins } => {
                2048 + u32::from(is_max) + 2 * u32::from(magnitudes) + 4 * u32::from(nan_wins)
            }
            Together::Elect => 16,
            Together::Barrier => 17,
        }
    }
}

/// An operation with a membermask.
#[derive(Debug)]
pub(crate) struct Exchange {
    what: Together,
    dst: Option<Dst>,
    /// The second result, a predicate.
    p: Option<Dst>,
    sources: [Src; 3],
    members: Src,
}

pub(crate) fn decode_active_mask(line: &mut Line<'_, '_>) -> Decoded<Op> {
    line.ty()?;
    line.end(1)?;
    Ok(Op::ActiveMask(line.dst(0)?))
}

/// `bar.warp.sync`
pub(crate) fn decode_barrier(line: &mut Line<'_, '_>) -> Decoded<Op> {
    line.flag(".sync");
    line.end(1)?;
    let members = line.src(0, Type::Bits(32))?;
    let exchange =
        Exchange { what: Together::Barrier, dst: None, p: None, sources: [Src::Immediate(0); 3], members };
    Ok(Op::Exchange(Box::new(exchange)))
}

pub(crate) fn decode(line: &mut Line<'_, '_>) -> Decoded<Op> {
    if !line.flag(".sync") {
        return missing(format!("`{}` without `.sync`", line.base));
    }
    let none = Src::Immediate(0);
    let word = Type::Bits(32);
    let (what, sources, members) = match line.base {
        "shfl" => {
            let modes = [
                (".up", Shuffle::Up),
                (".down", Shuffle::Down),
                (".bfly", Shuffle::Butterfly),
                (".idx", Shuffle::Index),
            ];
            let mode = line.one_of(&modes);
            let (Some(mode), Type::Bits(32)) = (mode, line.ty()?) else {
                return missing("this form of `shfl`");
            };
            line.end(5)?;
            let sources = [line.src(1, word)?, line.src(2, word)?, line.src(3, word)?];
            (Together::Shuffle(mode), sources, line.src(4, word)?)
        }
        "vote" => {
            let modes = [
                (".all", Vote::All),
                (".any", Vote::Any),
                (".uni", Vote::Uniform),
                (".ballot", Vote::Ballot),
            ];
            let mode = line.one_of(&modes);
            line.ty()?;
            line.end(3)?;
            let Some(mode) = mode else {
                return missing("this form of `vote`");
            };
            (Together::Vote(mode), [line.src(1, Type::Predicate)?, none, none], line.src(2, word)?)
        }
        "match" => {
            let is_any = line.one_of(&[(".any", true), (".all", false)]);
            let ty = line.ty()?;
            line.end(3)?;
            let what = match is_any {
                Some(true) => Together::MatchAny(ty.bits()),
                Some(false) => Together::MatchAll(ty.bits()),
                None => return missing("this form of `match`"),
            };
            (what, [line.src(1, ty)?, none, none], line.src(2, word)?)
        }
        "redux" => {
            let what = reduction(line)?;
            line.end(3)?;
            (what, [line.src(1, word)?, none, none], line.src(2, word)?)
        }
        _ => {
            line.end(2)?;
            (Together::Elect, [none; 3], line.src(1, word)?)
        }
    };
    let (dst, p) = line.pair(0)?;
    Ok(Op::Exchange(Box::new(Exchange { what, dst: Some(dst), p, sources, members })))
}

fn reduction(line: &mut Line<'_, '_>) -> Decoded<Together> {
    let reductions = [
        (".add", Reduction::Add),
        (".min", Reduction::Min),
        (".max", Reduction::Max),
        (".and", Reduction::And),
        (".or", Reduction::Or),
        (".xor", Reduction::Xor),
    ];
    let reduction = line.one_of(&reductions);
    let (magnitudes, nan_wins) = (line.flag(".abs"), line.flag(".NaN"));
    match (reduction, line.ty()?) {
        (Some(op @ (Reduction::Min | Reduction::Max)), Type::Float(32)) => {
            Ok(Together::ReduceFloat { is_max: op == Reduction::Max, magnitudes, nan_wins })
        }
        (Some(op @ (Reduction::And | Reduction::Or | Reduction::Xor)), ty @ Type::Bits(32)) => {
            Ok(Together::Reduce(op, ty))
        }
        (
            Some(op @ (Reduction::Add | Reduction::Min | Reduction::Max)),
            ty @ (Type::Signed(32) | Type::Unsigned(32)),
        ) => Ok(Together::Reduce(op, ty)),
        _ => missing("this form of `redux`"),
    }
}

impl Exchange {
    pub(crate) fn family(&self) -> Family {
        match self.what {
            Together::Shuffle(_) => Family::Shuffle,
            Together::Barrier => Family::Barrier(Barriers { of: Group::Warp, waits: true }),
            _ => Family::Vote,
        }
    }

    pub(crate) fn run(&self, machine: &mut Machine<'_>, warp: &mut Warp, active: u32) -> Result<Next, Stop> {
        let members = warp.row(machine, self.members);
        let first = members[active.trailing_zeros() as usize] as u32;
        for lane in lanes(active) {
            if members[lane] >> lane & 1 == 0 {
                let what = format!("membermask {:#010x} without the lane itself", members[lane]);
                return Err(Stop::undefined(lane as u32, what));
            }
        }
        let [a, b, c] = self.sources.map(|src| warp.row(machine, src));
        // The common case: all that are asked for stand here.
        if first & warp.live & !active == 0 && lanes(active).all(|lane| members[lane] as u32 == first) {
            let brought = std::array::from_fn(|lane| [a[lane], b[lane], c[lane]]);
            let (results, predicates) = together(self.what, active, first, &brought);
            for lane in lanes(active) {
                if let Some(dst) = self.dst {
                    warp.set(lane, dst, results[lane]);
                }
                if let Some(p) = self.p {
                    warp.set(lane, p, predicates[lane]);
                }
            }
            return Ok(Next::On);
        }
        let pc = warp.group.pc;
        // Those whose guard fails go on; the others stand here until they are met.
        warp.settle(pc + 1);
        warp.release();
        for lane in lanes(active) {
            warp.pc[lane] = pc;
            warp.brought[lane] = [a[lane], b[lane], c[lane]];
            warp.block(lane, Wait::Lanes { mask: members[lane] as u32, kind: self.what.kind() });
        }
        machine.meet(warp);
        Ok(Next::Choose { backward: false })
    }
}

impl Machine<'_> {
    /// Lets the lanes go on that have met all of their mask.
    pub(crate) fn meet(&mut self, warp: &mut Warp) {
        let program = self.program;
        let mut left = warp.live & !warp.ready;
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            let wait = warp.wait[lane];
            let Wait::Lanes { mask: members, .. } = wait else {
                left &= !(1 << lane);
                continue;
            };
            let here =
                lanes(left).filter(|&other| warp.wait[other] == wait).fold(0, |all, other| all | 1 << other);
            left &= !here;
            if members & warp.live & !here != 0 {
                continue;
            }
            let what = match &program.code[warp.pc[lane] as usize].op {
                Op::Exchange(exchange) => exchange.what,
                // A lane waits for others at an exchange only.
                _ => continue,
            };
            let (results, predicates) = together(what, here, members, &warp.brought);
            for lane in lanes(here) {
                if let Op::Exchange(exchange) = &program.code[warp.pc[lane] as usize].op {
                    if let Some(dst) = exchange.dst {
                        warp.set_in_frame(lane, dst, results[lane]);
                    }
                    if let Some(p) = exchange.p {
                        warp.set_in_frame(lane, p, predicates[lane]);
                    }
                }
                warp.pc[lane] += 1;
                warp.wake(lane);
            }
        }
    }
}

/// The results of lanes that are `here` for the lanes of `members`: a value and a predicate each.
fn together(what: Together, here: u32, members: u32, brought: &[[u64; 3]; 32]) -> (Row, Row) {
    let same = |value: u64, predicate: u64| ([value; 32], [predicate; 32]);
    let first = brought[here.trailing_zeros() as usize & 31][0];
    match what {
        Together::Shuffle(mode) => {
            let (mut values, mut inside) = ([0; 32], [0; 32]);
            for lane in lanes(here) {
                let (source, is_inside) =
                    shuffle_source(mode, lane as u64, brought[lane][1], brought[lane][2]);
                let is_here = here >> source & 1 == 1;
                values[lane] = if is_here { brought[source][0] } else { 0 };
                inside[lane] = u64::from(is_inside);
            }
            (values, inside)
        }
        Together::Vote(vote) => {
            let ballot = lanes(here).fold(0u32, |all, lane| all | ((brought[lane][0] & 1) as u32) << lane);
            let value = match vote {
                Vote::All => u64::from(ballot == here),
                Vote::Any => u64::from(ballot != 0),
                Vote::Uniform => u64::from(ballot == here || ballot == 0),
                Vote::Ballot => u64::from(ballot),
            };
            same(value, 0)
        }
        Together::MatchAny(bits) => {
            let key = |lane: usize| brought[lane][0] & mask(bits);
            let row = std::array::from_fn(|lane| {
                u64::from(
                    lanes(here)
                        .filter(|&other| key(other) == key(lane))
                        .fold(0u32, |all, other| all | 1 << other),
                )
            });
            (row, [0; 32])
        }
        Together::MatchAll(bits) => {
            let all = lanes(here).all(|lane| (brought[lane][0] ^ first) & mask(bits) == 0);
            if all { same(u64::from(here), 1) } else { same(0, 0) }
        }
        Together::Reduce(op, ty) => {
            let value = lanes(here).skip(1).fold(first, |all, lane| {
                let next = brought[lane][0];
                let less = if ty.is_signed() { signed(next, 32) < signed(all, 32) } else { next < all };
                match op {
                    Reduction::Add => all.wrapping_add(next) & mask(32),
                    Reduction::And => all & next,
                    Reduction::Or => all | next,
                    Reduction::Xor => all ^ next,
                    Reduction::Min => {
                        if less {
                            next
                        } else {
                            all
                        }
                    }
                    Reduction::Max => {
                        if less {
                            all
                        } else {
                            next
                        }
                    }
                }
            });
            same(value, 0)
        }
        Together::ReduceFloat { is_max, magnitudes, nan_wins } => {
            let value = |lane: usize| brought[lane][0] & if magnitudes { mask(31) } else { mask(32) };
            let all = lanes(here).map(value).reduce(|a, b| extreme_f32(a, b, is_max, nan_wins));
            // One value alone has not been through the choice that makes its NaN canonical.
            same(all.map_or(0, |value| extreme_f32(value, value, is_max, nan_wins)), 0)
        }
        // The manual asks for the same lane each time; this is the lowest.
        Together::Elect => {
            let leader = members.trailing_zeros() & 31;
            ([u64::from(leader); 32], std::array::from_fn(|lane| u64::from(lane as u32 == leader)))
        }
        Together::Barrier => same(0, 0),
    }
}

/// The manual's pseudo-code: where a lane reads from, and whether that is inside of its segment.
fn shuffle_source(mode: Shuffle, lane: u64, b: u64, c: u64) -> (usize, bool) {
    let (b, clamp, segment) = (b & 31, c & 31, c >> 8 & 31);
    let most = lane & segment | clamp & !segment & 31;
    let least = lane & segment;
    let source = match mode {
        Shuffle::Up => lane.wrapping_sub(b),
        Shuffle::Down => lane + b,
        Shuffle::Butterfly => lane ^ b,
        Shuffle::Index => least | b & !segment & 31,
    };
    let inside = match mode {
        Shuffle::Up => source.cast_signed() >= most.cast_signed(),
        _ => source <= most,
    };
    (if inside { source as usize } else { lane as usize }, inside)
}
