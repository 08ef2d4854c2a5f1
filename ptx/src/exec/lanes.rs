//! What an instruction does in all lanes that run it.

use super::block::Shared;
use super::warp::{Next, Wait, Warp, each};
use crate::code::{
    Atomic, Binary, Compare, Join, Kind, Mode, Op, Operand, Reg, Shuffle, Space, Ternary, Ty,
    Unary, Vote,
};
use crate::error::FaultKind;
use crate::memory::Bad;
use crate::numbers;

/// What went wrong, and in which lane if that is known.
pub(super) type Failed = (Bad, Option<u32>);

/// Where the addresses of shared and local memory begin among generic ones.
pub(super) const SHARED: u64 = 0x0100_0000_0000_0000;
pub(super) const LOCAL: u64 = 0x0200_0000_0000_0000;

impl Warp<'_> {
    /// Runs an instruction in the lanes of `active`; `lanes` are all of the group.
    pub(super) fn step(
        &mut self,
        own: &mut Shared,
        op: &Op,
        active: u32,
        lanes: u32,
    ) -> Result<Next, Failed> {
        match op {
            Op::Unary {
                op,
                ty,
                mode,
                to,
                x,
            } => self.unary(*op, *ty, *mode, *to, *x, active),
            Op::Binary {
                op,
                ty,
                mode,
                to,
                x,
                y,
            } => self.binary(*op, *ty, *mode, *to, [*x, *y], active),
            Op::Ternary {
                op,
                ty,
                mode,
                to,
                x,
                y,
                z,
            } => self.ternary(*op, *ty, *mode, *to, [*x, *y, *z], active),
            Op::Compare { .. } => self.compare(op, active),
            Op::Select { ty, to, x, y, by } => self.each(*to, active, |warp, lane| {
                let first = warp.value(*by, lane) & 1 == 1;
                warp.value(if first { *x } else { *y }, lane) & ty.mask()
            }),
            Op::Convert {
                to_ty,
                from,
                mode,
                to,
                x,
            } => self.each(*to, active, |warp, lane| {
                let value = numbers::convert(*to_ty, *from, *mode, warp.value(*x, lane));
                numbers::extended(*to_ty, value)
            }),
            Op::ConvertPair {
                to_ty,
                mode,
                to,
                high,
                low,
            } => self.each(*to, active, |warp, lane| {
                let [high, low] = [high, low].map(|v| warp.value(*v, lane));
                numbers::convert_pair(*to_ty, *mode, high, low)
            }),
            Op::FieldInsert {
                ty,
                to,
                x,
                y,
                at,
                length,
            } => self.each(*to, active, |warp, lane| {
                let [x, y, at, length] = [x, y, at, length].map(|v| warp.value(*v, lane));
                numbers::insert(*ty, x, y, at, length)
            }),
            Op::Pack { bits, to, parts } => self.pack(*bits, *to, parts, active),
            Op::Unpack { bits, to, x } => self.unpack(*bits, to, *x, active),
            Op::Load { .. } | Op::Store { .. } | Op::Atomic { .. } => {
                self.access(own, op, active)?;
            }
            Op::Generic {
                space,
                from_generic,
                to,
                x,
            } => {
                let base = base_of(*space);
                self.each(*to, active, |warp, lane| {
                    let x = warp.value(*x, lane);
                    match from_generic {
                        true => x.wrapping_sub(base),
                        false => x.wrapping_add(base),
                    }
                });
            }
            Op::IsSpace { space, to, x } => self.each(*to, active, |warp, lane| {
                u64::from(space_of(warp.value(*x, lane)).0 == *space)
            }),
            Op::Branch { to } => return Ok(Next::Branch(active, *to)),
            Op::BranchTo { index, table } => return self.branch_to(*index, table, active, lanes),
            Op::Call {
                func,
                results,
                args,
            } => {
                if active != lanes {
                    // Those that do not call wait for the others.
                    return Err(failed(
                        FaultKind::Lanes,
                        "a call under a predicate is not known",
                    ));
                }
                return Ok(Next::Call(*func, args.clone(), results.clone()));
            }
            Op::Print {
                format,
                args,
                result,
            } => self.print(own, *format, *args, *result, active)?,
            Op::Return if self.frames.len() == 1 => return Ok(Next::Exit(active)),
            Op::Return => {
                self.give_back(active);
                return Ok(Next::Return(active));
            }
            Op::Exit => return Ok(Next::Exit(active)),
            Op::Trap => return Err(failed(FaultKind::Trap, "the kernel gives up: `trap`")),
            Op::Barrier { number, threads } => {
                let wait = self.barrier(*number, *threads, active);
                return self.waits(wait, active, lanes);
            }
            Op::BarrierReduce {
                number,
                op,
                to,
                x,
                not,
            } => {
                let mut wait = self.barrier(*number, None, active);
                if let Wait::Barrier { vote, .. } = &mut wait {
                    *vote = Some((*op, *to, self.said(*x, *not)));
                }
                return self.waits(wait, active, lanes);
            }
            Op::Nothing | Op::Fence => {}
            _ => return self.together(op, active),
        }
        Ok(Next::On)
    }

    fn waits(&self, wait: Wait, active: u32, lanes: u32) -> Result<Next, Failed> {
        match active == lanes {
            true => Ok(Next::Wait(wait)),
            false => Err(failed(
                FaultKind::Barrier,
                "a barrier under a predicate is not known",
            )),
        }
    }

    fn barrier(&mut self, number: Operand, threads: Option<Operand>, active: u32) -> Wait {
        let lane = active.trailing_zeros() as usize;
        Wait::Barrier {
            number: self.value(number, lane) as u32,
            threads: threads.map(|n| self.value(n, lane) as u32),
            vote: None,
        }
    }

    /// Computes a register in each lane.
    fn each(&mut self, to: Reg, active: u32, f: impl Fn(&Self, usize) -> u64) {
        for lane in each(active) {
            let value = f(self, lane);
            self.set(to, lane, value);
        }
    }

    fn unary(&mut self, op: Unary, ty: Ty, mode: Mode, to: Reg, x: Operand, active: u32) {
        self.each(to, active, |warp, lane| {
            numbers::unary(op, ty, mode, warp.value(x, lane))
        });
    }

    fn binary(
        &mut self,
        op: Binary,
        ty: Ty,
        mode: Mode,
        to: Reg,
        [x, y]: [Operand; 2],
        active: u32,
    ) {
        let is_plain = !ty.is_float() && !mode.saturate;
        let mask = ty.mask();
        // What addresses are made of is most of what runs.
        match op {
            Binary::Add if is_plain => self.each(to, active, |warp, lane| {
                warp.value(x, lane).wrapping_add(warp.value(y, lane)) & mask
            }),
            Binary::Mul if is_plain => self.each(to, active, |warp, lane| {
                warp.value(x, lane).wrapping_mul(warp.value(y, lane)) & mask
            }),
            _ => self.each(to, active, |warp, lane| {
                numbers::binary(op, ty, mode, warp.value(x, lane), warp.value(y, lane))
            }),
        }
    }

    fn ternary(
        &mut self,
        op: Ternary,
        ty: Ty,
        mode: Mode,
        to: Reg,
        operands: [Operand; 3],
        active: u32,
    ) {
        self.each(to, active, |warp, lane| {
            numbers::ternary(op, ty, mode, operands.map(|v| warp.value(v, lane)))
        });
    }

    fn compare(&mut self, op: &Op, active: u32) {
        let Op::Compare {
            op,
            ty,
            flush,
            to,
            not,
            x,
            y,
            joined,
            as_number,
        } = op
        else {
            unreachable!("the caller looked")
        };
        for lane in each(active) {
            let [a, b] = [x, y].map(|v| self.value(*v, lane));
            let found = comparison(*op, *ty, *flush, a, b);
            let join = |found: bool| match joined {
                None => found,
                Some((join, by, negated)) => {
                    let by = (self.value(*by, lane) & 1 == 1) != *negated;
                    joined_by(*join, found, by)
                }
            };
            let (yes, no) = (join(found), join(!found));
            let value = match as_number {
                Some(ty) if ty.kind == Kind::Float => u64::from(yes) * u64::from(1_f32.to_bits()),
                Some(ty) => u64::from(yes).wrapping_neg() & ty.mask(),
                None => u64::from(yes),
            };
            self.set(*to, lane, value);
            if let Some(not) = not {
                self.set(*not, lane, u64::from(no));
            }
        }
    }

    fn pack(&mut self, bits: u32, to: Reg, parts: &[Operand], active: u32) {
        let width = bits / parts.len().max(1) as u32;
        let mask = u64::MAX >> (64 - width);
        self.each(to, active, |warp, lane| {
            let all = parts.iter().enumerate();
            all.fold(0, |value, (k, part)| {
                value | (warp.value(*part, lane) & mask) << (k as u32 * width)
            })
        });
    }

    fn unpack(&mut self, bits: u32, to: &[Option<Reg>], x: Operand, active: u32) {
        let width = bits / to.len().max(1) as u32;
        let mask = u64::MAX >> (64 - width);
        for lane in each(active) {
            let value = self.value(x, lane);
            for (k, to) in to.iter().enumerate() {
                if let Some(to) = to {
                    self.set(*to, lane, value >> (k as u32 * width) & mask);
                }
            }
        }
    }

    fn branch_to(
        &self,
        index: Operand,
        table: &[usize],
        active: u32,
        lanes: u32,
    ) -> Result<Next, Failed> {
        if active != lanes {
            return Err(failed(
                FaultKind::Lanes,
                "a table of branches under a predicate is not known",
            ));
        }
        let mut ways: Vec<(u32, usize)> = Vec::new();
        for lane in each(active) {
            let at = self.value(index, lane) as usize;
            let Some(&to) = table.get(at) else {
                let message = format!("entry {at} of a table of {}", table.len());
                return Err((Bad::new(FaultKind::OutOfBounds, message), Some(lane as u32)));
            };
            match ways.iter_mut().find(|(_, other)| *other == to) {
                Some((lanes, _)) => *lanes |= 1 << lane,
                None => ways.push((1 << lane, to)),
            }
        }
        Ok(Next::Branches(ways))
    }

    /// What lanes do together: those that a lane names must all be here, and name the same. Of lanes that name others some
    /// may go on while some wait.
    fn together(&mut self, op: &Op, active: u32) -> Result<Next, Failed> {
        let (Op::WarpBarrier { lanes: named }
        | Op::Shuffle { lanes: named, .. }
        | Op::Vote { lanes: named, .. }
        | Op::Match { lanes: named, .. }
        | Op::Reduce { lanes: named, .. }) = op
        else {
            self.do_together(op, active);
            return Ok(Next::On);
        };
        let (mut left, mut stay) = (active, 0);
        while left != 0 {
            let first = left.trailing_zeros();
            let mask = self.value(*named, first as usize) as u32;
            let alike = each(left).filter(|&lane| self.value(*named, lane) as u32 == mask);
            let alike = alike.fold(0_u32, |lanes, lane| lanes | 1 << lane);
            left &= !alike;
            let absent = mask & !alike;
            let wrong = if absent & !self.alive() != 0 {
                "lanes are to take part that have ended"
            } else if alike & !mask != 0 {
                "a lane is to take part that does not name itself"
            } else {
                match absent {
                    0 => self.do_together(op, alike),
                    _ => stay |= alike,
                }
                continue;
            };
            return Err((Bad::new(FaultKind::Lanes, wrong), Some(first)));
        }
        Ok(match stay {
            0 => Next::On,
            _ if stay == active => Next::Wait(Wait::Lanes),
            _ => Next::Stay(stay),
        })
    }

    fn do_together(&mut self, op: &Op, active: u32) {
        match op {
            Op::WarpBarrier { .. } => self.phase += 1,
            Op::ActiveLanes { to } => self.each(*to, active, |_, _| u64::from(active)),
            Op::Shuffle {
                op,
                to,
                found,
                x,
                by,
                clamp,
                ..
            } => self.shuffle(*op, [Some(*to), *found], [*x, *by, *clamp], active),
            Op::Vote { op, to, x, not, .. } => self.vote(*op, *to, *x, *not, active),
            Op::Match {
                all,
                to,
                same,
                x,
                ty,
                ..
            } => self.matching(*all, [Some(*to), *same], *x, *ty, active),
            Op::Reduce { op, ty, to, x, .. } => self.reduce(*op, *ty, *to, *x, active),
            op => unreachable!("{op:?} is done by the caller"),
        }
    }

    fn shuffle(
        &mut self,
        op: Shuffle,
        [to, found]: [Option<Reg>; 2],
        [x, by, clamp]: [Operand; 3],
        active: u32,
    ) {
        let all: Vec<u64> = (0..32).map(|lane| self.value(x, lane)).collect();
        for lane in each(active) {
            let (by, clamp) = (self.value(by, lane), self.value(clamp, lane));
            let (by, end, mask) = (by & 31, clamp & 31, clamp >> 8 & 31);
            let here = lane as u64;
            let most = here & mask | end & !mask & 31;
            let (from, is_there) = match op {
                Shuffle::Up => (here.wrapping_sub(by), here >= by + most),
                Shuffle::Down => (here + by, here + by <= most),
                Shuffle::Butterfly => (here ^ by, here ^ by <= most),
                Shuffle::Index => {
                    let from = here & mask | by & !mask & 31;
                    (from, from <= most)
                }
            };
            let from = if is_there { from as usize } else { lane };
            if let Some(to) = to {
                self.set(to, lane, all[from] & 0xffff_ffff);
            }
            if let Some(found) = found {
                self.set(found, lane, u64::from(is_there));
            }
        }
    }

    fn vote(&mut self, op: Vote, to: Reg, x: Operand, not: bool, active: u32) {
        let said = self.said(x, not) & active;
        let value = match op {
            Vote::All => u64::from(said == active),
            Vote::Any => u64::from(said != 0),
            Vote::Uniform => u64::from(said == 0 || said == active),
            Vote::Ballot => u64::from(said),
        };
        self.each(to, active, |_, _| value);
    }

    fn matching(
        &mut self,
        all: bool,
        [to, same]: [Option<Reg>; 2],
        x: Operand,
        ty: Ty,
        active: u32,
    ) {
        let values: Vec<u64> = (0..32)
            .map(|lane| self.value(x, lane) & ty.mask())
            .collect();
        for lane in each(active) {
            let like = each(active).filter(|&other| values[other] == values[lane]);
            let like = like.fold(0_u32, |lanes, other| lanes | 1 << other);
            let (mask, is_same) = match all {
                true if like == active => (active, true),
                true => (0, false),
                false => (like, true),
            };
            if let Some(to) = to {
                self.set(to, lane, u64::from(mask));
            }
            if let Some(same) = same {
                self.set(same, lane, u64::from(is_same));
            }
        }
    }

    fn reduce(&mut self, op: Atomic, ty: Ty, to: Reg, x: Operand, active: u32) {
        let values = each(active).map(|lane| self.value(x, lane) & ty.mask());
        let sum = values.reduce(|a, b| numbers::atomic(op, ty, a, b, 0).unwrap_or(a));
        let sum = sum.unwrap_or(0);
        self.each(to, active, |_, _| sum);
    }
}

fn comparison(op: Compare, ty: Ty, flush: bool, a: u64, b: u64) -> bool {
    numbers::compare(op, ty, flush, a, b)
}

fn joined_by(join: Join, a: bool, b: bool) -> bool {
    match join {
        Join::And => a && b,
        Join::Or => a || b,
        Join::Xor => a != b,
    }
}

pub(super) fn failed(kind: FaultKind, message: &str) -> Failed {
    (Bad::new(kind, message), None)
}

fn base_of(space: Space) -> u64 {
    match space {
        Space::Shared => SHARED,
        Space::Local => LOCAL,
        _ => 0,
    }
}

/// The space of a generic address, and where it is there.
pub(super) fn space_of(address: u64) -> (Space, u64) {
    match address {
        LOCAL.. => (Space::Local, address - LOCAL),
        SHARED.. => (Space::Shared, address - SHARED),
        _ => (Space::Global, address),
    }
}
