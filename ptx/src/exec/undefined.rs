//! Tracking of undefined bits, which come from uninitialised local memory.
//!
//! LLVM loads what it need not: a variable that a loop sets before it reads it may be loaded before the loop. Nothing is
//! wrong with that until such bits decide something: where a branch goes, what an address is, or what is stored where
//! others can see it. So they are followed from register to register, bit by bit, as far as instructions let one say; a
//! warp that has none pays nothing. Through parameters of calls they are not followed.

use super::warp::{Failed, Warp, each, failed};
use crate::code::{Binary, Kind, Op, Operand, Reg, Space, Unary};
use crate::error::FaultKind;
use crate::numbers;

/// The bits of each register that are undefined, lane by lane.
#[derive(Clone, Default)]
pub(super) struct Undefined {
    bits: Vec<[u64; 32]>,
    /// How many registers have some.
    some: usize,
}

impl Undefined {
    fn set(&mut self, reg: Reg, lane: usize, bits: u64) {
        let at = reg.0 as usize;
        if self.bits.len() <= at {
            if bits == 0 {
                return;
            }
            self.bits.resize(at + 1, [0; 32]);
        }
        let lanes = &mut self.bits[at];
        let had = lanes.iter().any(|&b| b != 0);
        lanes[lane] = bits;
        let has = lanes.iter().any(|&b| b != 0);
        self.some = self.some + usize::from(has) - usize::from(had);
    }

    fn of(&self, operand: Operand, lane: usize) -> u64 {
        match operand {
            Operand::Reg(reg) => self.bits.get(reg.0 as usize).map_or(0, |lanes| lanes[lane]),
            _ => 0,
        }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.some == 0
    }
}

impl Warp<'_> {
    pub(super) fn undefined(&self, operand: Operand, lane: usize) -> u64 {
        let frame = self.frames.last().expect("something runs");
        frame.undefined.of(operand, lane)
    }

    /// Says which bits of a register are undefined in a lane.
    pub(super) fn set_undefined(&mut self, reg: Reg, lane: usize, bits: u64) {
        self.top().undefined.set(reg, lane, bits);
    }

    /// Checks that a predicate is defined in all lanes that use it.
    pub(super) fn expect_known(&self, reg: Reg, lanes: u32) -> Result<(), Failed> {
        match each(lanes).find(|&lane| self.undefined(Operand::Reg(reg), lane) & 1 != 0) {
            None => Ok(()),
            Some(lane) => Err(self.depends("which way to go", lane)),
        }
    }

    fn depends(&self, what: &str, lane: usize) -> Failed {
        let (bad, _) = failed(
            FaultKind::NeverWritten,
            &format!("{what} depends on uninitialised local memory"),
        );
        (bad, Some(lane as u32))
    }

    /// Which bits of an instruction's results are undefined: for each register, lane by lane. It is called before the
    /// instruction runs.
    pub(super) fn follow(&self, op: &Op, active: u32) -> Result<Vec<(Reg, [u64; 32])>, Failed> {
        let (reads, writes) = op.operands();
        let mut found: Vec<(Reg, [u64; 32])> = writes.iter().map(|&reg| (reg, [0; 32])).collect();
        // What lanes do together is undefined in all of them.
        let together = matches!(
            op,
            Op::Shuffle { .. } | Op::Vote { .. } | Op::Match { .. } | Op::Reduce { .. }
        );
        let any = |lane: usize| reads.iter().any(|&v| self.undefined(v, lane) != 0);
        if together && each(active).any(any) {
            for (_, lanes) in &mut found {
                *lanes = [u64::MAX; 32];
            }
            return Ok(found);
        }
        for lane in each(active).filter(|&lane| any(lane)) {
            self.expect_harmless(op, lane)?;
            for (k, (_, lanes)) in found.iter_mut().enumerate() {
                lanes[lane] = self.bits_of(op, k, lane);
            }
        }
        Ok(found)
    }

    /// That undefined bits decide nothing.
    fn expect_harmless(&self, op: &Op, lane: usize) -> Result<(), Failed> {
        let is_undefined = |v: Operand| self.undefined(v, lane) != 0;
        match op {
            Op::Load { at, .. } | Op::Store { at, .. } | Op::Atomic { at, .. }
                if is_undefined(at.base) =>
            {
                Err(self.depends("an address", lane))
            }
            Op::Store { space, at, .. } => {
                let (space, _) = self.place(*space, *at, lane);
                match space {
                    Space::Local | Space::Param => Ok(()),
                    _ => Err(self.depends("what is stored", lane)),
                }
            }
            Op::Atomic { .. } => Err(self.depends("what an atomic operation does", lane)),
            Op::BranchTo { .. } => Err(self.depends("which way to go", lane)),
            Op::Barrier { .. } | Op::BarrierReduce { .. } | Op::WarpBarrier { .. } => {
                Err(self.depends("what threads do together", lane))
            }
            _ => Ok(()),
        }
    }

    /// The undefined bits of the `k`-th register that an instruction writes, where some of what it reads are.
    fn bits_of(&self, op: &Op, k: usize, lane: usize) -> u64 {
        let bits = |v: Operand| self.undefined(v, lane);
        let value = |v: Operand| self.value(v, lane);
        match op {
            // What is loaded says so itself.
            Op::Load { .. } => 0,
            Op::Unary {
                op: Unary::Move | Unary::Not,
                x,
                ..
            } => bits(*x),
            Op::Binary { op, ty, x, y, .. } => match op {
                // A zero decides what the others are, or a one.
                Binary::And => {
                    (bits(*x) | bits(*y)) & (bits(*x) | value(*x)) & (bits(*y) | value(*y))
                }
                Binary::Or => {
                    (bits(*x) | bits(*y)) & (bits(*x) | !value(*x)) & (bits(*y) | !value(*y))
                }
                Binary::Xor => bits(*x) | bits(*y),
                Binary::ShiftLeft if bits(*y) == 0 => {
                    bits(*x).checked_shl(value(*y) as u32).unwrap_or(0) & ty.mask()
                }
                Binary::ShiftRight if bits(*y) == 0 && ty.kind != Kind::Signed => (bits(*x)
                    & ty.mask())
                .checked_shr(value(*y) as u32)
                .unwrap_or(0),
                _ => u64::MAX,
            },
            Op::Select { x, y, by, .. } => match bits(*by) & 1 {
                0 if value(*by) & 1 == 1 => bits(*x),
                0 => bits(*y),
                _ => u64::MAX,
            },
            Op::Convert { to_ty, from, x, .. } if !to_ty.is_float() && !from.is_float() => {
                // A sign that is undefined goes to all bits before it.
                numbers::extended(*from, bits(*x) & from.mask()) & to_ty.mask()
            }
            Op::Pack {
                bits: all, parts, ..
            } => {
                let width = all / parts.len().max(1) as u32;
                let mask = u64::MAX >> (64 - width);
                let parts = parts.iter().enumerate();
                parts.fold(0, |sum, (k, part)| {
                    sum | (bits(*part) & mask) << (k as u32 * width)
                })
            }
            Op::Unpack { bits: all, to, x } => {
                let width = all / to.len().max(1) as u32;
                let mask = u64::MAX >> (64 - width);
                let there = to.iter().enumerate().filter(|(_, to)| to.is_some());
                let at = there.map(|(at, _)| at).nth(k).unwrap_or(0);
                bits(*x) >> (at as u32 * width) & mask
            }
            _ => u64::MAX,
        }
    }
}
