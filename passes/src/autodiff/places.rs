//! Reverse mode in memory: what reads, stores and atomic changes of a place do to its adjoint.

use aerogel_base::Scalar;
use aerogel_ir::{AtomicOp, BinaryOp, CellOp, FieldId, Inst, Op, Type, UnaryOp, Value};

use super::activity::Memory;
use super::reverse::Reverse;

impl Reverse<'_, '_> {
    /// The place of the adjoints of a place.
    fn adjoint_place(&mut self, place: Value) -> Value {
        let func = self.cx.func;
        let ty = func.ty(place);
        match func.def_op(place).cloned() {
            Some(Op::Local {}) => {
                self.beside[place].expect("active locals have adjoints beside them")
            }
            Some(Op::ElemRef { base, index }) => {
                let base = self.adjoint_place(base);
                let index = index.iter().map(|&v| self.now(v)).collect();
                self.b.value(Op::ElemRef { base, index }, ty)
            }
            Some(Op::FieldAt { field, indices }) => {
                let field = self.cx.env.fields[field].grad.expect("the caller asked");
                let indices = indices.iter().map(|&v| self.now(v)).collect();
                self.b.value(Op::FieldAt { field, indices }, ty)
            }
            Some(Op::ArrayAt { indices, .. }) => {
                let Memory::Array(_, Some(array)) = self.cx.memory(place) else {
                    unreachable!("the caller asked")
                };
                let indices = indices.iter().map(|&v| self.now(v)).collect();
                self.b.value(Op::ArrayAt { array, indices }, ty)
            }
            op => unreachable!("{op:?} has no adjoints"),
        }
    }

    /// What was read has an adjoint.
    pub(super) fn read(&mut self, inst: Inst, place: Value, d: Value) {
        if matches!(self.cx.memory(place), Memory::Local(_)) {
            return self.add_to_adjoint(place, d);
        }
        match &self.fetching {
            Some(wanted) => {
                let mut wanted = wanted.iter();
                if let Some(&(_, sum)) = wanted.find(|(load, _)| *load == inst) {
                    let so_far = self.b.load(sum);
                    let sum_now = self.b.binary(BinaryOp::Add, so_far, d);
                    self.b.store(sum, sum_now);
                }
            }
            None if self.gathered.iter().any(|group| group.holds(inst)) => {}
            None => self.add_to_adjoint(place, d),
        }
    }

    /// Adds to the adjoint of what a place holds.
    fn add_to_adjoint(&mut self, place: Value, d: Value) {
        match self.cx.memory(place) {
            Memory::Local(local) => {
                let home = self.cx.nesting.parallel(self.cx.nesting.region_of(local));
                if self.fetching.is_none() || home == self.parallel {
                    let at = self.adjoint_place(place);
                    self.add_to_local(at, d, home);
                }
            }
            memory => self.where_active(place, memory, |pass| {
                let at = pass.adjoint_place(place);
                pass.atomic_add(at, d);
            }),
        }
    }

    /// Does something with the adjoints of a place where there are any: going backwards makes no cell active.
    fn where_active(&mut self, place: Value, memory: Memory, write: impl FnOnce(&mut Self)) {
        let Memory::Field(_, Some(field)) = memory else {
            return write(self);
        };
        let Some((node, indices)) = self.sparse_cell(place, field) else {
            return write(self);
        };
        let indices = indices.into_iter().map(|v| self.now(v)).collect::<Vec<_>>();
        let (_, offset) = self.cx.env.cells_of(field);
        let mut shifted = Vec::new();
        for (k, &index) in indices.iter().enumerate() {
            let by = offset.get(k).copied().unwrap_or(0);
            shifted.push(if by == 0 {
                index
            } else {
                let ty = self.b.func.elem(index);
                let by = self.b.constant(Scalar::int(ty, i128::from(by)));
                self.b.binary(BinaryOp::Sub, index, by)
            });
        }
        let op = Op::Cell(CellOp::IsActive {
            node,
            indices: shifted,
        });
        let cond = self.b.value(op, Type::BOOL);
        let then = self.inside(&[], |pass, _| write(pass));
        let otherwise = self.b.region(&[], |_, _| ());
        self.b.effect(Op::If {
            cond,
            then,
            otherwise,
        });
    }

    /// The cell that must be active for a field of adjoints to have an element; none where all are.
    fn sparse_cell(
        &self,
        place: Value,
        field: FieldId,
    ) -> Option<(aerogel_ir::NodeRef, Vec<Value>)> {
        let data = &self.cx.env.fields[field];
        if !self.cx.env.trees[data.tree].is_below_sparse(data.places[0]) {
            return None;
        }
        let mut at = place;
        loop {
            match self.cx.func.def_op(at)? {
                Op::ElemRef { base, .. } | Op::MemberRef { base, .. } => at = *base,
                Op::FieldAt { indices, .. } => {
                    return Some((self.cx.env.cells_of(field).0, indices.clone()));
                }
                _ => return None,
            }
        }
    }

    /// A store: the adjoint of what is stored is that of the place, and what was there before no longer matters.
    pub(super) fn overwritten(&mut self, place: Value, value: Value) {
        let memory = self.cx.memory(place);
        let ty = self.cx.func.ty(value);
        let active = self.cx.activity.is_active(value);
        let taken = active.then(|| self.b.local(ty));
        self.where_active(place, memory, |pass| {
            let at = pass.adjoint_place(place);
            if let Some(taken) = taken {
                let d = pass.b.load(at);
                pass.b.store(taken, d);
            }
            if pass.fetching.is_none() || matches!(memory, Memory::Local(_)) {
                let zero = pass.zero(ty);
                pass.b.store(at, zero);
            }
        });
        if let Some(taken) = taken {
            let d = self.b.load(taken);
            self.contribute(value, d);
        }
    }

    /// An atomic change of a place.
    pub(super) fn changed(&mut self, inst: Inst, op: AtomicOp, place: Value, value: Value) {
        let memory = self.cx.memory(place);
        let ty = self.cx.func.ty(value);
        let taken = self.b.local(ty);
        match op {
            AtomicOp::Add | AtomicOp::Sub => {
                self.where_active(place, memory, |pass| {
                    let at = pass.adjoint_place(place);
                    let d = pass.b.load(at);
                    pass.b.store(taken, d);
                });
                let d = self.b.load(taken);
                let d = match op {
                    AtomicOp::Sub => self.b.unary(UnaryOp::Neg, d),
                    _ => d,
                };
                self.contribute(value, d);
            }
            AtomicOp::Min | AtomicOp::Max => {
                // Who has what is there at the end was the winner, and takes the adjoint: what was there before
                // has it otherwise.
                let (mine, there) = (self.now(value), self.now(place));
                let there = self.b.load(there);
                let won = self.has_won(inst, mine, there);
                let then = self.inside(&[], |pass, _| {
                    pass.where_active(place, memory, |pass| {
                        let at = pass.adjoint_place(place);
                        let zero = pass.zero(ty);
                        let op = Op::Atomic {
                            op: AtomicOp::Exchange,
                            place: at,
                            value: zero,
                        };
                        let d = pass.b.value(op, ty);
                        pass.b.store(taken, d);
                    });
                });
                let otherwise = self.b.region(&[], |_, _| ());
                self.b.effect(Op::If {
                    cond: won,
                    then,
                    otherwise,
                });
                let d = self.b.load(taken);
                self.contribute(value, d);
            }
            AtomicOp::Mul | AtomicOp::And | AtomicOp::Or | AtomicOp::Xor | AtomicOp::Exchange => {
                let message = format!("`{}` of a shared number has no gradient", op.name());
                self.fail(inst, "E0601", message, "write to an element of its own in each iteration, or give the kernel's gradient by hand: `ti.ad.grad_for`");
            }
        }
    }
}
