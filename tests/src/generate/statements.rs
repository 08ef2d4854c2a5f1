//! Statements: memory, branches, loops.

use aerogel_base::ScalarType;
use aerogel_ir::{
    Arg, AtomicOp, BinaryOp, CellOp, CompareOp, FieldId, NodeRef, Op, Region, Type, Value,
};
use aerogel_snode::{NodeId, NodeKind};

use super::{ELEMS, GIVEN, Generator, RETURNED, TAKEN, VECTOR};
use crate::generate::values::SCALARS;
use crate::run::ARRAY_EXTENT;

impl Generator<'_> {
    pub(super) fn statements(&mut self, n: usize) {
        for _ in 0..1 + self.rng.below(n) {
            self.statement();
        }
    }

    fn statement(&mut self) {
        self.budget -= 1;
        match self.rng.below(if self.budget > 0 { 20 } else { 6 }) {
            0..=2 => {
                let ty = self.rng.pick(SCALARS);
                let value = self.scalar(ty, 3);
                self.pool.push(value);
            }
            3 => self.assign(),
            4 => self.memory(),
            5 => {
                let ty = self.rng.pick(SCALARS);
                let value = self.scalar(ty, 2);
                let local = self.b.local(ty.into());
                self.b.store(local, value);
                self.locals.push(local);
            }
            6 | 7 => self.branch(),
            8 => self.for_loop(),
            9 => self.while_loop(),
            10 => self.tensor_local(),
            11 => {
                let value = self.of_type(VECTOR);
                let local = self.b.local(VECTOR);
                self.b.store(local, value);
                self.locals.push(local);
                self.pool.push(value);
            }
            12 => self.struct_local(),
            13 => self.call(),
            14 => self.array(),
            15 => self.draw(),
            16 => self.cells(),
            17 => self.tensor_value(),
            _ => self.memory(),
        }
    }

    fn assign(&mut self) {
        if self.locals.is_empty() {
            return;
        }
        let local = self.rng.pick(&self.locals.clone());
        let ty = self.b.func.ty(local).pointee().expect("a storage");
        let value = self.of_type(ty);
        if self.rng.one_in(6) && ty.scalar().is_some_and(ScalarType::is_int) {
            self.swap(local, ty);
        } else if self.rng.one_in(3) && ty.elem().is_some_and(ScalarType::is_int) {
            let op = self.rng.pick(&[
                AtomicOp::Add,
                AtomicOp::Sub,
                AtomicOp::Mul,
                AtomicOp::Min,
                AtomicOp::Xor,
                AtomicOp::Exchange,
            ]);
            let place = local;
            let old = self.b.value(Op::Atomic { op, place, value }, ty);
            self.pool.push(old);
        } else {
            self.b.store(local, value);
        }
    }

    /// Perhaps another value for a storage, which depends on what it holds.
    fn swap(&mut self, place: Value, ty: Type) {
        let value = self.of_type(ty);
        let expected = if self.rng.one_in(2) {
            self.b.load(place)
        } else {
            self.of_type(ty)
        };
        let op = Op::Cas {
            place,
            expected,
            value,
        };
        let old = self.b.value(op, ty);
        self.pool.push(old);
    }

    /// An index in `[lo, lo + n)`.
    pub(super) fn index(&mut self, lo: i32, n: i32, depth: u32) -> Value {
        let ty = self
            .rng
            .pick(&[ScalarType::I32, ScalarType::I32, ScalarType::I64]);
        let raw = self.scalar(ty, depth);
        let [n, lo] = [n, lo].map(|v| {
            let v = self.b.i32(v);
            self.b.cast(v, ty.into())
        });
        let inside = self.b.binary(BinaryOp::Mod, raw, n);
        self.b.binary(BinaryOp::Add, inside, lo)
    }

    /// Indices of any element of the fields.
    pub(super) fn indices(&mut self, depth: u32) -> Vec<Value> {
        let (lo, shape) = (self.lo, self.shape);
        shape.iter().map(|&n| self.index(lo, n, depth)).collect()
    }

    pub(super) fn place(&mut self, field: FieldId, indices: Vec<Value>) -> Value {
        let elem = ELEMS[field.as_u32() as usize];
        self.b.value(
            Op::FieldAt { field, indices },
            elem.to_ref().expect("a value"),
        )
    }

    pub(super) fn array_place(&mut self) -> Value {
        let (arg, elem) = self.rng.pick(&[(2, Type::I32), (3, VECTOR)]);
        let n = ARRAY_EXTENT as i32;
        let indices = vec![self.index(0, n, 1), self.index(0, n, 1)];
        let array = Arg::from_u32(arg);
        self.b.value(
            Op::ArrayAt { array, indices },
            elem.to_ref().expect("a value"),
        )
    }

    /// Perhaps one unknown element of a tensor's storage instead of all of it.
    fn part(&mut self, place: Value) -> Value {
        let ty = self.b.func.ty(place).pointee().expect("a storage");
        if !ty.is_tensor() || self.rng.one_in(2) {
            return place;
        }
        let index = self.tensor_index(ty);
        let elem = ty.elem().expect("a tensor has elements");
        self.b
            .value(Op::ElemRef { base: place, index }, Type::RefScalar(elem))
    }

    fn write(&mut self, place: Value, op: Option<AtomicOp>) {
        let place = self.part(place);
        let ty = self.b.func.ty(place).pointee().expect("a storage");
        let value = self.of_type(ty);
        match op {
            Some(op) => {
                self.b.value(Op::Atomic { op, place, value }, ty);
            }
            None => self.b.store(place, value),
        }
    }

    fn memory(&mut self) {
        if let Some((field, indices)) = self.own.clone()
            && self.rng.one_in(2)
        {
            let place = self.place(field, indices);
            // Sums of floats may be taken in any order, even those of one iteration.
            let exact = field.as_u32() != 1;
            if field.as_u32() == 0 && self.rng.one_in(4) {
                return self.swap(place, Type::I32);
            }
            let op = (exact && self.rng.one_in(2)).then_some(AtomicOp::Add);
            self.write(place, op);
        } else if let Some((field, counter)) = self.shared {
            if self.rng.one_in(2) {
                self.write(counter, Some(AtomicOp::Add));
            } else {
                let indices = self.indices(1);
                let place = self.place(field, indices);
                self.write(place, Some(AtomicOp::Xor));
            }
        } else if self.own.is_none() && !self.readable.is_empty() {
            let field = FieldId::from_u32(self.rng.below(3) as u32);
            let indices = self.indices(1);
            let place = self.place(field, indices);
            self.write(place, None);
        }
    }

    /// Asks or changes whether a cell is active: in a parallel loop, one that no other iteration
    /// touches.
    fn cells(&mut self) {
        let (field, indices, alone) = match self.own.clone() {
            Some((field, indices)) => (field, indices, true),
            None if self.readable.is_empty() => return,
            None => {
                let field = FieldId::from_u32(self.rng.below(3) as u32);
                (field, self.indices(1), false)
            }
        };
        let data = &self.env.fields[field];
        let tree = &self.env.trees[data.tree];
        let (leaf, offset) = self.env.cells_of(field);
        let candidates: Vec<NodeId> = tree
            .sparse_chain(leaf.node)
            .into_iter()
            .filter(|&node| {
                let places = |n: &NodeId| tree[*n].kind.scalar().is_some();
                let mut below = tree.subtree(node).into_iter().filter(places);
                !matches!(tree[node].kind, NodeKind::Dynamic { .. })
                    && (!alone || node == leaf.node && below.all(|p| data.places.contains(&p)))
            })
            .collect();
        if candidates.is_empty() {
            return;
        }
        let node = self.rng.pick(&candidates);
        let fine = tree.shape_axes(leaf.node);
        let mut coarse = Vec::new();
        for (axis, extent) in tree.shape_axes(node) {
            let k = fine.iter().position(|a| a.0 == axis);
            let k = k.expect("a node has the axes of those above");
            let mut index = self.b.cast(indices[k], Type::I32);
            if let Some(&first) = offset.get(k) {
                let first = self.b.i32(first);
                index = self.b.binary(BinaryOp::Sub, index, first);
            }
            let ratio = self.b.i32((fine[k].1 / extent) as i32);
            coarse.push(self.b.binary(BinaryOp::Div, index, ratio));
        }
        let node = NodeRef {
            tree: data.tree,
            node,
        };
        let indices = coarse;
        match self.rng.below(4) {
            0 => {
                self.b.effect(CellOp::Activate { node, indices });
            }
            1 => {
                self.b.effect(CellOp::Deactivate { node, indices });
            }
            _ => {
                let active = self.b.value(CellOp::IsActive { node, indices }, Type::BOOL);
                let active = self.b.cast(active, Type::I32);
                self.pool.push(active);
            }
        }
    }

    fn array(&mut self) {
        if !self.writes_arrays {
            return;
        }
        let place = self.array_place();
        let op = self.rng.one_in(3).then_some(AtomicOp::Sub);
        self.write(place, op);
    }

    /// An integer that does not depend on how the kernel is divided into tasks.
    fn draw(&mut self) {
        // Which numbers a cell of a sparse node gets depends on how the loop is divided.
        if self.readable.is_empty() || self.over_sparse {
            return;
        }
        let ty = self
            .rng
            .pick(&[ScalarType::I32, ScalarType::U8, ScalarType::F32]);
        let drawn = self.b.value(Op::Random {}, ty.into());
        self.pool.push(drawn);
    }

    fn call(&mut self) {
        let Some(func) = self.callee else { return };
        let args = TAKEN.iter().map(|&ty| self.of_type(ty)).collect();
        let inst = self.b.inst(Op::Call { func, args }, &GIVEN);
        self.pool.extend(&self.b.func.insts[inst].results);
    }

    pub(super) fn scoped(&mut self, region: Region, fill: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.b.region, region);
        let (pool, locals) = (self.pool.len(), self.locals.len());
        fill(self);
        self.pool.truncate(pool);
        self.locals.truncate(locals);
        self.b.region = outer;
    }

    /// Always, or under a condition.
    pub(super) fn maybe(&mut self, fill: impl FnOnce(&mut Self)) {
        if self.rng.one_in(3) {
            return fill(self);
        }
        let cond = self.condition();
        let [then, otherwise] = [(); 2].map(|()| self.b.func.new_region(&[]));
        self.scoped(then, |g| {
            fill(g);
            g.b.yields(Vec::new());
        });
        self.scoped(otherwise, |g| g.b.yields(Vec::new()));
        self.b.effect(Op::If {
            cond,
            then,
            otherwise,
        });
    }

    fn yields(&mut self, types: &[Type]) {
        let values = types.iter().map(|&ty| self.of_type(ty)).collect();
        self.b.yields(values);
    }

    /// Ends the region by leaving the loop or the function, if there is one to leave.
    fn leave(&mut self) -> bool {
        let returned: Option<&[Type]> = match self.b.func.is_kernel {
            true => self.own.is_none().then_some(&RETURNED),
            false => Some(&GIVEN),
        };
        let around = self.loops.last().cloned();
        if let Some(types) = returned
            && (around.is_none() || self.rng.one_in(3))
        {
            let values = types.iter().map(|&ty| self.of_type(ty)).collect();
            self.b.effect(Op::Return { values });
            return true;
        }
        match around {
            Some((carried, breaks)) => {
                let values = carried.iter().map(|&ty| self.of_type(ty)).collect();
                if breaks && self.rng.one_in(2) {
                    self.b.effect(Op::Break { values });
                } else {
                    self.b.effect(Op::Continue { values });
                }
                true
            }
            None => false,
        }
    }

    /// Types of a few values that pass through control flow.
    fn few(&mut self) -> Vec<Type> {
        let choice: &[&[Type]] = &[
            &[],
            &[],
            &[Type::I32],
            &[VECTOR],
            &[VECTOR, Type::F32],
            &[self.record],
        ];
        self.rng.pick(choice).to_vec()
    }

    fn branch(&mut self) {
        let cond = self.condition();
        let [then, otherwise] = [(); 2].map(|()| self.b.func.new_region(&[]));
        let types = self.few();
        for (region, one_in) in [(then, 4), (otherwise, 8)] {
            let leaves = self.rng.one_in(one_in);
            self.scoped(region, |g| {
                if region == then || g.rng.one_in(2) {
                    g.statements(3);
                }
                if !(leaves && g.leave()) {
                    g.yields(&types);
                }
            });
        }
        let branch = Op::If {
            cond,
            then,
            otherwise,
        };
        let inst = self.b.inst(branch, &types);
        self.pool.extend(&self.b.func.insts[inst].results);
    }

    fn looped(&mut self, body: Region, carried: &[Type], n: usize, head: impl FnOnce(&mut Self)) {
        self.loops.push((carried.to_vec(), true));
        self.scoped(body, |g| {
            g.pool.extend(&g.b.func.regions[body].params);
            head(g);
            g.statements(n);
            g.yields(carried);
        });
        self.loops.pop();
    }

    fn for_loop(&mut self) {
        let elem = self
            .rng
            .pick(&[ScalarType::I32, ScalarType::I64, ScalarType::I16]);
        let (lo, hi, step) = self
            .rng
            .pick(&[(0, 3, 1), (5, -1, -2), (2, 2, 1), (-1, 4, 3)]);
        let [lo, hi, step] = [lo, hi, step].map(|v| {
            let v = self.b.i32(v);
            self.b.cast(v, elem.into())
        });
        let carried = self.few();
        let init: Vec<Value> = carried.iter().map(|&ty| self.of_type(ty)).collect();
        let mut params = vec![Type::Scalar(elem)];
        params.extend(&carried);
        let body = self.b.func.new_region(&params);
        self.looped(body, &carried, 4, |_| ());
        let counted = Op::For {
            lo,
            hi,
            step,
            init,
            body,
        };
        let inst = self.b.inst(counted, &carried);
        self.pool.extend(&self.b.func.insts[inst].results);
    }

    /// Counts a fresh local down, so that it ends.
    fn while_loop(&mut self) {
        let count = self.b.local(Type::I32);
        let start = self.b.i32(self.rng.below(5) as i32);
        self.b.store(count, start);
        let carried = self.few();
        let init = carried.iter().map(|&ty| self.of_type(ty)).collect();
        let cond = self.b.func.new_region(&carried);
        let body = self.b.func.new_region(&carried);
        self.scoped(cond, |g| {
            let now = g.b.load(count);
            let zero = g.b.i32(0);
            let more = g.b.compare(CompareOp::Gt, now, zero);
            g.b.yields(vec![more]);
        });
        self.looped(body, &carried, 3, |g| {
            let now = g.b.load(count);
            let one = g.b.i32(1);
            let next = g.b.binary(BinaryOp::Sub, now, one);
            g.b.store(count, next);
        });
        let inst = self.b.inst(Op::While { init, cond, body }, &carried);
        self.pool.extend(&self.b.func.insts[inst].results);
    }

    /// A local vector that is indexed by something unknown.
    fn tensor_local(&mut self) {
        // The last one is too large to be taken apart.
        let n = self.rng.pick(&[3, 3, 70]);
        let ty = Type::Vec(n, ScalarType::I32);
        let local = self.b.local(ty);
        let scalar = self.scalar(ScalarType::I32, 2);
        let mut value = self.b.splat(scalar, ty);
        if n == 3 {
            value = self.of_type(ty);
        } else if self.rng.one_in(2) {
            let other = self.b.load(local);
            let op = self
                .rng
                .pick(&[BinaryOp::Sub, BinaryOp::Xor, BinaryOp::FloorDiv]);
            value = self.b.binary(op, other, value);
        }
        self.b.store(local, value);
        let index = vec![self.index(0, n as i32, 1)];
        let elem = self.b.value(
            Op::ElemRef {
                base: local,
                index: index.clone(),
            },
            Type::RefScalar(ScalarType::I32),
        );
        let new = self.scalar(ScalarType::I32, 1);
        self.b.store(elem, new);
        let tensor = self.b.load(local);
        let one = self.b.value(Op::TensorGet { tensor, index }, Type::I32);
        self.pool.push(one);
    }

    /// Arithmetic on a tensor of any type, one element of which is kept beside it.
    fn tensor_value(&mut self) {
        let elem = self.rng.pick(SCALARS);
        let ty = self.rng.pick(&[
            Type::Vec(1, elem),
            Type::Vec(2, elem),
            Type::Vec(4, elem),
            Type::Mat(2, 3, elem),
            // Too large to be taken apart.
            Type::Vec(66, elem),
        ]);
        let mut tensor = self.elementwise(ty, 1);
        if let Type::Mat(n, m, _) = ty {
            let rhs = self.of_type(Type::Vec(m, elem));
            let lhs = tensor;
            tensor = self.b.value(Op::MatMul { lhs, rhs }, Type::Vec(n, elem));
        }
        let index = self.tensor_index(self.b.func.ty(tensor));
        let one = self.b.value(Op::TensorGet { tensor, index }, elem.into());
        // Nobody sees what an undefined value is.
        let undefined = self.b.value(Op::Undef {}, elem.into());
        let always = self.b.i32(0);
        let always = self.b.compare(CompareOp::Eq, always, always);
        let one = self.b.select(always, one, undefined);
        self.pool.extend([tensor, one]);
    }

    /// A local struct with a matrix that is indexed by something unknown.
    fn struct_local(&mut self) {
        let ty = self.record;
        let local = self.b.local(ty);
        let value = self.of_type(ty);
        self.b.store(local, value);
        let base = self.b.value(
            Op::MemberRef {
                base: local,
                member: 0,
            },
            Type::RefMat(2, 2, ScalarType::I32),
        );
        let index = vec![self.index(0, 2, 1), self.index(0, 2, 1)];
        let elem = self.b.value(
            Op::ElemRef { base, index },
            Type::RefScalar(ScalarType::I32),
        );
        self.write(elem, None);
        let value = self.b.load(local);
        let matrix = Type::Mat(2, 2, ScalarType::I32);
        let lhs = self.b.value(Op::StructGet { value, member: 0 }, matrix);
        let product = self.b.value(Op::MatMul { lhs, rhs: lhs }, matrix);
        let short = self.scalar(ScalarType::I16, 1);
        let changed = Op::StructSet {
            base: value,
            member: 1,
            value: short,
        };
        let changed = self.b.value(changed, ty);
        self.pool.extend([changed, lhs, product]);
    }
}
