//! What an instruction does in all lanes that run it.

use super::grid::Shared;
use super::warp::{Failed, Next, Row, Wait, Warp, each, failed};
use crate::code::{
    Atomic, Binary, Join, Kind, Mode, Op, Operand, Reg, Shuffle, Space, Ternary, Ty, Unary, Vote,
};
use crate::error::FaultKind;
use crate::memory::Bad;
use crate::numbers;

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
            Op::Select { ty, to, x, y, by } => {
                let mask = ty.mask();
                self.map(*to, [*x, *y, *by], active, |[x, y, by]| {
                    (if by & 1 == 1 { x } else { y }) & mask
                });
            }
            Op::Convert {
                to_ty,
                from,
                mode,
                to,
                x,
            } => self.map(*to, [*x], active, |[x]| {
                numbers::extended(*to_ty, numbers::convert(*to_ty, *from, *mode, x))
            }),
            Op::ConvertPair {
                to_ty,
                mode,
                to,
                high,
                low,
            } => self.map(*to, [*high, *low], active, |[high, low]| {
                numbers::convert_pair(*to_ty, *mode, high, low)
            }),
            Op::FieldInsert {
                ty,
                to,
                x,
                y,
                at,
                length,
            } => self.map(*to, [*x, *y, *at, *length], active, |[x, y, at, length]| {
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
                self.map(*to, [*x], active, |[x]| match from_generic {
                    true => x.wrapping_sub(base),
                    false => x.wrapping_add(base),
                });
            }
            Op::IsSpace { space, to, x } => {
                self.map(*to, [*x], active, |[x]| u64::from(space_of(x).0 == *space));
            }
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

    /// Computes a register in each lane, of what operands hold there.
    fn map<const N: usize>(
        &mut self,
        to: Reg,
        operands: [Operand; N],
        active: u32,
        f: impl Fn([u64; N]) -> u64,
    ) {
        for (k, &operand) in operands.iter().enumerate() {
            if !matches!(operand, Operand::Reg(_)) {
                self.spare[k] = self.row(operand);
            }
        }
        let frame = self.frames.last().expect("something runs");
        let rows: [&Row; N] = std::array::from_fn(|k| match operands[k] {
            Operand::Reg(reg) => &frame.registers[reg.0 as usize],
            _ => &self.spare[k],
        });
        let of = |lane: usize| f(std::array::from_fn(|k| rows[k][lane]));
        if active == u32::MAX {
            // The processor's own vectors do it.
            let made = std::array::from_fn(of);
            self.top().registers[to.0 as usize] = made;
            return;
        }
        let mut made = [0; 32];
        each(active).for_each(|lane| made[lane] = of(lane));
        self.put(to, active, &made);
    }

    /// Sets a register in the lanes that run.
    fn put(&mut self, to: Reg, active: u32, row: &Row) {
        let to = &mut self.top().registers[to.0 as usize];
        each(active).for_each(|lane| to[lane] = row[lane]);
    }

    /// The same number in each lane.
    fn all(&mut self, to: Reg, active: u32, value: u64) {
        self.put(to, active, &[value; 32]);
    }

    fn unary(&mut self, op: Unary, ty: Ty, mode: Mode, to: Reg, x: Operand, active: u32) {
        match op {
            Unary::Move => self.map(to, [x], active, |[x]| x & ty.mask()),
            _ => self.map(to, [x], active, |[x]| numbers::unary(op, ty, mode, x)),
        }
    }

    fn binary(
        &mut self,
        op: Binary,
        ty: Ty,
        mode: Mode,
        to: Reg,
        operands: [Operand; 2],
        active: u32,
    ) {
        let ty = match op {
            Binary::Add | Binary::Sub | Binary::Mul => ty.without_sign(),
            _ => ty,
        };
        // Most of what runs is decided here once for all lanes.
        macro_rules! decided {
            ($($op:ident $ty:path),*) => {
                match (op, ty) {
                    $((Binary::$op, $ty) if mode == Mode::PLAIN => self.map(to, operands, active, |[x, y]| {
                        numbers::binary(Binary::$op, $ty, Mode::PLAIN, x, y)
                    }),)*
                    _ => self.map(to, operands, active, |[x, y]| numbers::binary(op, ty, mode, x, y)),
                }
            };
        }
        decided!(
            Add Ty::U32, Add Ty::U64, Add Ty::F32, Add Ty::F64, Sub Ty::U32, Sub Ty::U64, Sub Ty::F32, Sub Ty::F64,
            Mul Ty::U32, Mul Ty::U64, Mul Ty::F32, Mul Ty::F64, MulWide Ty::U32, MulWide Ty::S32, And Ty::B32, And Ty::B64,
            Or Ty::B32, Or Ty::B64, Xor Ty::B32, ShiftLeft Ty::B32, ShiftLeft Ty::B64, ShiftRight Ty::U32,
            ShiftRight Ty::S32, ShiftRight Ty::U64, And Ty::PREDICATE, Or Ty::PREDICATE
        );
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
        macro_rules! decided {
            ($($op:ident $ty:path),*) => {
                match (op, ty) {
                    $((Ternary::$op, $ty) if mode == Mode::PLAIN => self.map(to, operands, active, |all| {
                        numbers::ternary(Ternary::$op, $ty, Mode::PLAIN, all)
                    }),)*
                    _ => self.map(to, operands, active, |all| numbers::ternary(op, ty, mode, all)),
                }
            };
        }
        decided!(MulAdd Ty::S32, MulAdd Ty::S64, MulWideAdd Ty::S32, MulWideAdd Ty::U32, Fused Ty::F32, Fused Ty::F64);
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
        let [x, y] = [*x, *y].map(|operand| self.row(operand));
        let by = joined.map(|(_, by, _)| self.row(by));
        for lane in each(active) {
            let (first, second) = numbers::compare_twice(*op, *ty, *flush, x[lane], y[lane]);
            let join = |found: bool| match (joined, &by) {
                (Some((join, _, negated)), Some(by)) => {
                    joined_by(*join, found, (by[lane] & 1 == 1) != *negated)
                }
                _ => found,
            };
            let (yes, no) = (join(first), join(second));
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
        let mut packed: Row = [0; 32];
        for (k, part) in parts.iter().enumerate() {
            for (all, part) in packed.iter_mut().zip(self.row(*part)) {
                *all |= (part & mask) << (k as u32 * width);
            }
        }
        self.put(to, active, &packed);
    }

    fn unpack(&mut self, bits: u32, to: &[Option<Reg>], x: Operand, active: u32) {
        let width = bits / to.len().max(1) as u32;
        let mask = u64::MAX >> (64 - width);
        let x = self.row(x);
        for (k, to) in to.iter().enumerate() {
            if let Some(to) = to {
                self.put(*to, active, &x.map(|x| x >> (k as u32 * width) & mask));
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

    /// Warp-level operations: the lanes in a lane's mask must all be here, and have the same mask. Of lanes with different
    /// masks some may continue while others wait.
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
            Op::ActiveLanes { to } => self.all(*to, active, u64::from(active)),
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
        let [all, by, clamp] = [x, by, clamp].map(|operand| self.row(operand));
        for lane in each(active) {
            let (by, clamp) = (by[lane], clamp[lane]);
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
        self.all(to, active, value);
    }

    fn matching(
        &mut self,
        all: bool,
        [to, same]: [Option<Reg>; 2],
        x: Operand,
        ty: Ty,
        active: u32,
    ) {
        let values = self.row(x).map(|x| x & ty.mask());
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
        let x = self.row(x);
        let values = each(active).map(|lane| x[lane] & ty.mask());
        let sum = values.reduce(|a, b| numbers::atomic(op, ty, a, b, 0).unwrap_or(a));
        let sum = sum.unwrap_or(0);
        self.all(to, active, sum);
    }
}

fn joined_by(join: Join, a: bool, b: bool) -> bool {
    match join {
        Join::And => a && b,
        Join::Or => a || b,
        Join::Xor => a != b,
    }
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
