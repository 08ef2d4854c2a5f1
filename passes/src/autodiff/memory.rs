//! Reverse mode in memory: how reads, stores and atomic operations change the adjoint of an element.

use aerogel_ir::{AtomicOp, BinaryOp, FieldId, Inst, Op, UnaryOp, Value};

use super::reverse::Reverse;
use super::storage::Memory;

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
                let field = self.cx.env.fields[field]
                    .grad
                    .expect("only active fields have gradients");
                let indices = indices.iter().map(|&v| self.now(v)).collect();
                self.b.value(Op::FieldAt { field, indices }, ty)
            }
            Some(Op::ArrayAt { indices, .. }) => {
                let Memory::Array(_, Some(array)) = self.cx.memory(place) else {
                    unreachable!("only fields and arrays have gradients")
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
            memory if self.is_apart(memory) => {
                let at = self.adjoint_place(place);
                self.atomic_add(at, d);
            }
            memory => self.where_active(place, memory, |pass| {
                let at = pass.adjoint_place(place);
                pass.atomic_add(at, d);
            }),
        }
    }

    /// Whether adjoints lie in cells of their own, which become active as others do.
    fn is_apart(&self, memory: Memory) -> bool {
        let Memory::Field(field, Some(adjoints)) = memory else {
            return false;
        };
        let env = self.cx.env;
        let lowest = |field: FieldId| {
            let (node, _) = env.cells_of(field);
            let chain = env.trees[node.tree].sparse_chain(node.node);
            (node.tree, chain.last().copied())
        };
        lowest(field) != lowest(adjoints)
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
                // The iteration whose value is the result was the winner, and takes the adjoint: what was there before
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
                self.fail(inst, "E0601", message, "write to an element of its own in each iteration, or write the kernel's gradient yourself: `ti.ad.grad_for`");
            }
        }
    }
}
