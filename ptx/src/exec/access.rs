//! Loads, stores and atomic operations.

use super::grid::Shared;
use super::lanes::space_of;
use super::warp::{Failed, Warp, each};
use crate::code::{Address, Op, Space};
use crate::error::FaultKind;
use crate::memory::{Bad, Visit, aligned};
use crate::numbers;

/// A sector of memory, in bytes, and how many banks shared memory has.
const SECTOR: u64 = 32;
const BANKS: u64 = 32;

impl Warp<'_> {
    pub(super) fn access(&mut self, own: &mut Shared, op: &Op, active: u32) -> Result<(), Failed> {
        if self.grid.options.counts {
            self.count(own, op, active);
        }
        for lane in each(active) {
            let done = match op {
                Op::Load {
                    space,
                    ordered,
                    constant,
                    ty,
                    to,
                    at,
                } => {
                    let bytes = ty.bytes();
                    let (space, first) = self.place(*space, *at, lane);
                    aligned(first, bytes * to.len() as u64).and_then(|()| {
                        for (k, to) in to.iter().enumerate() {
                            let at = first + k as u64 * bytes;
                            let Some(to) = to else {
                                self.expect_memory(space, at, bytes)?;
                                continue;
                            };
                            let (value, missing) = match space {
                                Space::Local => self.local[lane].read(at, bytes)?,
                                _ => {
                                    let how = (*ordered, *constant);
                                    (self.load(own, space, at, bytes, lane, how)?, 0)
                                }
                            };
                            self.set(*to, lane, numbers::extended(*ty, value));
                            if missing != 0 {
                                self.set_undefined(*to, lane, numbers::extended(*ty, missing));
                            }
                        }
                        Ok(())
                    })
                }
                Op::Store {
                    space,
                    ordered,
                    ty,
                    at,
                    values,
                } => {
                    let bytes = ty.bytes();
                    let (space, first) = self.place(*space, *at, lane);
                    aligned(first, bytes * values.len() as u64).and_then(|()| {
                        for (k, value) in values.iter().enumerate() {
                            let undefined = self.undefined(*value, lane);
                            let value = self.value(*value, lane) & ty.mask();
                            let at = first + k as u64 * bytes;
                            self.store(own, space, (at, bytes), value, lane, *ordered)?;
                            if undefined != 0 && space == Space::Local {
                                self.local[lane].unwrite(at, bytes, undefined);
                            }
                        }
                        Ok(())
                    })
                }
                op => self.atomic(own, op, lane),
            };
            done.map_err(|bad| (bad, Some(lane as u32)))?;
        }
        Ok(())
    }

    /// What is moved and not looked at only has to be somewhere.
    fn expect_memory(&mut self, space: Space, at: u64, bytes: u64) -> Result<(), Bad> {
        match space {
            Space::Param | Space::Shared | Space::Local => Ok(()),
            _ => self.grid.memory.expect(&mut self.last, at, bytes),
        }
    }

    /// The space of an address of a lane, and where it is there.
    pub(super) fn place(&self, space: Space, at: Address, lane: usize) -> (Space, u64) {
        let address = self.value(at.base, lane).wrapping_add_signed(at.offset);
        match space {
            Space::Generic => space_of(address),
            space => (space, address),
        }
    }

    fn load(
        &mut self,
        own: &mut Shared,
        space: Space,
        at: u64,
        bytes: u64,
        lane: usize,
        (ordered, constant): (bool, bool),
    ) -> Result<u64, Bad> {
        let visit = Visit {
            constant,
            ..self.visit(own, lane, ordered)
        };
        match space {
            Space::Param => {
                let range = self.param_range(at, bytes, lane)?;
                let mut value = [0; 8];
                value[..bytes as usize].copy_from_slice(&self.top().params[range]);
                Ok(u64::from_le_bytes(value))
            }
            Space::Shared => own.memory.load(at, bytes, "shared", Some(visit)),
            _ => self
                .grid
                .memory
                .thread_load(&mut self.last, at, bytes, visit),
        }
    }

    fn store(
        &mut self,
        own: &mut Shared,
        space: Space,
        (at, bytes): (u64, u64),
        value: u64,
        lane: usize,
        ordered: bool,
    ) -> Result<(), Bad> {
        let visit = self.visit(own, lane, ordered);
        match space {
            Space::Param => {
                let range = self.param_range(at, bytes, lane)?;
                let value = &value.to_le_bytes()[..bytes as usize];
                self.top().params[range].copy_from_slice(value);
                Ok(())
            }
            Space::Shared => own.memory.store(at, bytes, value, "shared", Some(visit)),
            Space::Local => self.local[lane].store(at, bytes, value, "local", None),
            _ => {
                let memory = self.grid.memory;
                memory.thread_store(&mut self.last, (at, bytes), value, visit)
            }
        }
    }

    fn param_range(
        &mut self,
        at: u64,
        bytes: u64,
        lane: usize,
    ) -> Result<std::ops::Range<usize>, Bad> {
        let all = self.top().func.param_bytes;
        match at.checked_add(bytes).filter(|&end| end <= all) {
            Some(end) => {
                let first = lane as u64 * all;
                Ok((first + at) as usize..(first + end) as usize)
            }
            None => Err(Bad::new(
                FaultKind::OutOfBounds,
                format!("{bytes} bytes at {at:#x} of parameters, which have {all}"),
            )),
        }
    }

    fn atomic(&mut self, own: &mut Shared, op: &Op, lane: usize) -> Result<(), Bad> {
        let Op::Atomic {
            space,
            op,
            ty,
            to,
            at,
            x,
            y,
        } = op
        else {
            unreachable!("the caller did the others")
        };
        let bytes = ty.bytes();
        let (space, at) = self.place(*space, *at, lane);
        if space == Space::Local {
            let message = "an atomic operation on thread-local memory, which GPUs do not support";
            return Err(Bad::new(FaultKind::Atomic, message));
        }
        let x = self.value(*x, lane) & ty.mask();
        let y = y.map_or(0, |y| self.value(y, lane) & ty.mask());
        let change = |old: u64| numbers::atomic(*op, *ty, old, x, y);
        let visit = self.visit(own, lane, true);
        let old = match space {
            Space::Shared => {
                let (memory, visit) = (&mut own.memory, Some(visit));
                let old = memory.load(at, bytes, "shared", visit)?;
                if let Some(new) = change(old) {
                    memory.store(at, bytes, new, "shared", visit)?;
                }
                old
            }
            _ => {
                let memory = self.grid.memory;
                memory.thread_update(&mut self.last, (at, bytes), visit, change)?
            }
        };
        if let Some(to) = to {
            self.set(*to, lane, old);
        }
        Ok(())
    }

    /// Counts what an access moves.
    fn count(&mut self, own: &mut Shared, op: &Op, active: u32) {
        let (space, at, bytes, writes) = match op {
            Op::Load {
                space, ty, to, at, ..
            } => (*space, *at, ty.bytes() * to.len() as u64, false),
            Op::Store {
                space,
                ty,
                at,
                values,
                ..
            } => (*space, *at, ty.bytes() * values.len() as u64, true),
            Op::Atomic { space, ty, at, .. } => (*space, *at, ty.bytes(), true),
            _ => return,
        };
        if matches!(space, Space::Param | Space::Local) {
            return;
        }
        let places = each(active).map(|lane| self.place(space, at, lane));
        let (mut sectors, mut words) = (Vec::new(), Vec::new());
        for (space, at) in places {
            match space {
                Space::Shared => words.push(at / 4),
                Space::Local => {}
                _ => {
                    own.counts.read += bytes * u64::from(!writes);
                    own.counts.written += bytes * u64::from(writes);
                    own.counts.atomics += u64::from(matches!(op, Op::Atomic { .. }));
                    sectors.extend([at / SECTOR, (at + bytes - 1) / SECTOR]);
                }
            }
        }
        for all in [&mut sectors, &mut words] {
            all.sort_unstable();
            all.dedup();
        }
        own.counts.sectors += sectors.len() as u64;
        let mut banks = [0_u64; BANKS as usize];
        words
            .iter()
            .for_each(|word| banks[(word % BANKS) as usize] += 1);
        let most = banks.iter().copied().max().unwrap_or(0);
        own.counts.conflicts += most.saturating_sub(1);
    }
}
