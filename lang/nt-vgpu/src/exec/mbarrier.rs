//! mbarriers: 8 bytes of shared memory that count pending arrivals, expected arrivals, bytes still to come, and phases.
//!
//! A `try_wait` suspends the lane until the phase is over, and then gives true.
//!
//! Source: PTX ISA 9.0, section 9.7.13.15 (`mbarrier`).

use crate::code::{Address, Dst, Op, Src};
use crate::decode::{Decoded, Line, missing};
use crate::exec::spaces::{AddressSpace, HINTS, SPACES, decode_address, number};
use crate::fault::Stop;
use crate::machine::{Machine, Next};
use crate::operation::{Family, Mbarriers};
use crate::stats::lanes;
use crate::types::{Type, mask, signed};
use crate::warp::{Wait, Warp};

impl Machine<'_> {
    /// Is the phase of an mbarrier with that parity over?
    pub(crate) fn phase_is_over(&self, block: u32, offset: u32, parity: bool) -> bool {
        self.state(block as usize, offset as usize).phase != parity
    }

    fn state(&self, block: usize, offset: usize) -> State {
        State::of(self.blocks[block].shared.get(offset..offset + 8).map_or(0, number))
    }

    fn set_state(&mut self, block: usize, offset: usize, state: State) {
        if let Some(bytes) = self.blocks[block].shared.get_mut(offset..offset + 8) {
            bytes.copy_from_slice(&state.bits().to_le_bytes());
        }
    }

    /// Bytes have come that an mbarrier waits for.
    pub(crate) fn complete_bytes(&mut self, block: usize, offset: usize, bytes: u32) {
        let mut state = self.state(block, offset);
        state.bytes -= i64::from(bytes);
        state.settle();
        self.set_state(block, offset, state);
    }
}

/// An mbarrier taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    pending: u64,
    expected: u64,
    bytes: i64,
    phase: bool,
}

/// Bits of the counts.
const COUNT: u32 = 20;
/// Bits of the bytes still to come, which may be below 0 for a while.
const BYTES: u32 = 23;

impl State {
    fn of(bits: u64) -> State {
        State {
            pending: bits & mask(COUNT),
            expected: bits >> COUNT & mask(COUNT),
            bytes: signed(bits >> (2 * COUNT), BYTES),
            phase: bits >> 63 == 1,
        }
    }

    fn bits(self) -> u64 {
        self.pending & mask(COUNT)
            | (self.expected & mask(COUNT)) << COUNT
            | (self.bytes.cast_unsigned() & mask(BYTES)) << (2 * COUNT)
            | u64::from(self.phase) << 63
    }

    /// Begins the next phase if nothing is missing from this one.
    fn settle(&mut self) {
        if self.pending == 0 && self.bytes == 0 {
            self.phase = !self.phase;
            self.pending = self.expected;
        }
    }
}

/// `mbarrier`
#[derive(Debug)]
pub(crate) struct Mbarrier {
    what: Action,
    pub(crate) space: AddressSpace,
    address: Address,
    dst: Option<Dst>,
    operand: Src,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Init,
    Invalidate,
    Arrive {
        drop: bool,
    },
    /// Also arrives once.
    ArriveExpect {
        drop: bool,
    },
    Expect,
    Complete,
    Wait {
        suspends: bool,
        by_parity: bool,
    },
}

pub(crate) fn decode(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let actions = [
        (".init", Action::Init),
        (".inval", Action::Invalidate),
        (".arrive", Action::Arrive { drop: false }),
        (".arrive_drop", Action::Arrive { drop: true }),
        (".expect_tx", Action::Expect),
        (".complete_tx", Action::Complete),
        (".test_wait", Action::Wait { suspends: false, by_parity: false }),
        (".try_wait", Action::Wait { suspends: true, by_parity: false }),
    ];
    let Some(action) = line.one_of(&actions) else {
        if line.flag(".pending_count") {
            line.ty()?;
            return line.one(Type::Bits(64), |state| State::of(state).pending);
        }
        return missing("this form of `mbarrier`");
    };
    let action = match action {
        Action::Arrive { drop } if line.flag(".expect_tx") => Action::ArriveExpect { drop },
        Action::Wait { suspends, .. } if line.flag(".parity") => Action::Wait { suspends, by_parity: true },
        action => action,
    };
    let space = line.one_of(SPACES).or(Some(AddressSpace::Generic));
    line.ignore(HINTS);
    line.ty()?;
    let operands = line.operands.len();
    line.end(operands)?;
    let has_dst = matches!(action, Action::Wait { .. } | Action::Arrive { .. } | Action::ArriveExpect { .. });
    let first = usize::from(has_dst);
    let (space, address) = decode_address(line, first, space)?;
    let dst = if has_dst { Some(line.dst(0)?) } else { None };
    let ty = match action {
        Action::Wait { by_parity: false, .. } => Type::Bits(64),
        _ => Type::Unsigned(32),
    };
    let operand = match (action, operands - first) {
        (Action::Invalidate, 1) => Src::Immediate(0),
        (Action::Arrive { .. }, 1) => Src::Immediate(1),
        (Action::Invalidate, _) => return missing("this form of `mbarrier.inval`"),
        // The third of a wait says how long to suspend at most.
        (Action::Wait { .. }, 3) | (_, 2) => line.src(first + 1, ty)?,
        _ => return missing(format!("`mbarrier` with {operands} operands")),
    };
    Ok(Op::Mbarrier(Box::new(Mbarrier { what: action, space, address, dst, operand })))
}

/// `cp.async.mbarrier.arrive`: arrives when the copies before it are done, that is now. Without `.noinc` one more
/// arrival is waited for first, so that nothing changes.
pub(crate) fn decode_copies_done(line: &mut Line<'_, '_>) -> Decoded<Op> {
    line.flag(".arrive");
    let counts = line.flag(".noinc");
    let space = line.one_of(SPACES);
    line.ty()?;
    line.end(1)?;
    let (space, address) = decode_address(line, 0, space)?;
    if !counts {
        return Ok(Op::Nothing);
    }
    let what = Action::Arrive { drop: false };
    Ok(Op::Mbarrier(Box::new(Mbarrier { what, space, address, dst: None, operand: Src::Immediate(1) })))
}

impl Mbarrier {
    pub(crate) fn family(&self) -> Family {
        let of = |init, expect, arrive| Family::Mbarrier(Mbarriers { init, expect, arrive });
        match self.what {
            Action::Init => of(true, false, false),
            Action::Invalidate | Action::Complete => of(false, false, false),
            Action::Arrive { .. } => of(false, false, true),
            Action::ArriveExpect { .. } => of(false, true, true),
            Action::Expect => of(false, true, false),
            Action::Wait { .. } => Family::Wait,
        }
    }

    pub(crate) fn run(&self, machine: &mut Machine<'_>, warp: &mut Warp, active: u32) -> Result<Next, Stop> {
        let addresses = machine.addresses(warp, self.address);
        let operands = warp.row(machine, self.operand);
        let pc = warp.group.pc;
        let mut waiting = 0;
        for lane in lanes(active) {
            let (block, offset) = machine.shared_word(warp, lane, self.space, addresses[lane])?;
            let (mut state, operand) = (machine.state(block, offset), operands[lane]);
            let before = state;
            match self.what {
                Action::Init if operand == 0 || operand > mask(COUNT) => {
                    return Err(Stop::undefined(lane as u32, format!("an mbarrier for {operand} arrivals")));
                }
                Action::Init => state = State { pending: operand, expected: operand, bytes: 0, phase: false },
                Action::Invalidate => state = State::of(0),
                Action::Arrive { drop } => arrive(&mut state, operand, drop, lane)?,
                Action::ArriveExpect { drop } => {
                    state.bytes += i64::from(operand as u32);
                    arrive(&mut state, 1, drop, lane)?;
                }
                Action::Expect => state.bytes += i64::from(operand as u32),
                Action::Complete => {
                    state.bytes -= i64::from(operand as u32);
                    state.settle();
                }
                Action::Wait { suspends, by_parity } => {
                    let parity = if by_parity { operand & 1 == 1 } else { State::of(operand).phase };
                    let is_over = state.phase != parity;
                    if let Some(done) = self.dst {
                        warp.set(lane, done, u64::from(is_over));
                        if suspends && !is_over {
                            let wait =
                                Wait::Mbarrier { block: block as u32, offset: offset as u32, parity, done };
                            warp.block(lane, wait);
                            waiting |= 1u32 << lane;
                        }
                    }
                    continue;
                }
            }
            machine.set_state(block, offset, state);
            if let Some(dst) = self.dst {
                warp.set(lane, dst, before.bits());
            }
        }
        if waiting == 0 {
            return Ok(Next::On);
        }
        warp.settle(pc + 1);
        warp.release();
        Ok(Next::Choose { backward: false })
    }
}

fn arrive(state: &mut State, count: u64, drop: bool, lane: usize) -> Result<(), Stop> {
    if count == 0 || count > state.pending {
        let what = format!("{count} arrivals at an mbarrier that waits for {}", state.pending);
        return Err(Stop::undefined(lane as u32, what));
    }
    state.pending -= count;
    if drop {
        state.expected = state.expected.saturating_sub(count);
    }
    state.settle();
    Ok(())
}
