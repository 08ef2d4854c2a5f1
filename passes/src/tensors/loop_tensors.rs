//! Large tensors stay in memory, and element-wise operations on them become loops.
//!
//! ```text
//! v2: vec<100, f32> = mul v0, v1     ==>     v3 = local
//!                                            for i { store (elem_ref v3, [i]), mul v0[i], v1[i] }
//! ```
//! Small ones fall apart into scalars (`scalarize`), which suits registers; a product of two matrices of 32 x 32 would
//! be 65000 instructions. Every large value has a storage of its own, written where it is made. What is not known here
//! takes the value as a whole, and falls apart.

use std::ops::Range;

use aerogel_base::entity::SecondaryMap;
use aerogel_ir::{BinaryOp, Builder, Function, Inst, Op, Region, Type, Value};

use crate::PassCx;

/// Tensors with more elements are large.
const MAX_ELEMS: u32 = 64;

pub(crate) fn run(func: &mut Function, _: &PassCx<'_>) -> bool {
    if !func.values.values().any(|v| is_large(v.ty)) {
        return false;
    }
    let mut pass = LoopTensors {
        storage: SecondaryMap::new(),
    };
    let body = func.body;
    pass.region(&mut Builder::new(func, body), body);
    true
}

fn is_large(ty: Type) -> bool {
    ty.is_tensor() && ty.n_elems() > MAX_ELEMS
}

struct LoopTensors {
    /// Where the elements of a large value are.
    storage: SecondaryMap<Value, Option<Value>>,
}

impl LoopTensors {
    fn region(&mut self, b: &mut Builder<'_>, region: Region) {
        let insts = std::mem::take(&mut b.func.regions[region].insts);
        b.within(region, |b| {
            for param in b.func.regions[region].params.clone() {
                self.keep(b, param);
            }
            for inst in insts {
                b.span = b.func.insts[inst].span;
                self.inst(b, inst);
            }
        });
    }

    fn inst(&mut self, b: &mut Builder<'_>, inst: Inst) {
        let op = b.func[inst].clone();
        let result = b.func.insts[inst].results.first().copied();
        let large = result.filter(|&r| is_large(b.func.ty(r)));
        match (op, large) {
            (op, Some(result)) if op.is_elementwise() => self.elementwise(b, &op, result),
            (Op::TensorMake { elems }, Some(result)) => self.make(b, &elems, result),
            (Op::TensorGet { tensor, index }, _) if is_large(b.func.ty(tensor)) => {
                let base = self.place_of(b, tensor);
                let place = self.elem_ref(b, base, index);
                b.func.insts[inst].op = Op::Load { place };
                b.append(inst);
            }
            (
                Op::TensorSet {
                    tensor,
                    index,
                    value,
                },
                Some(result),
            ) => {
                let (from, to) = (self.place_of(b, tensor), self.new_storage(b, result));
                self.copy(b, from, to);
                let place = self.elem_ref(b, to, index);
                b.effect(Op::Store { place, value });
            }
            (Op::MatMul { lhs, rhs }, _)
                if large.is_some() || is_large(b.func.ty(lhs)) || is_large(b.func.ty(rhs)) =>
            {
                let result = result.expect("a product is a value");
                let place = self.matmul(b, lhs, rhs, result);
                if large.is_none() {
                    self.storage[result] = None;
                    b.func.insts[inst].op = Op::Load { place };
                    b.append(inst);
                }
            }
            (Op::Load { place }, Some(result)) => {
                let to = self.new_storage(b, result);
                self.copy(b, place, to);
            }
            (Op::Store { place, value }, _) if is_large(b.func.ty(value)) => {
                let from = self.place_of(b, value);
                self.copy(b, from, place);
            }
            (mut op, _) => {
                op.map_operands(|v| self.whole(b, v));
                b.func.insts[inst].op = op;
                for owned in b.func.owned(inst) {
                    self.region(b, owned);
                }
                b.append(inst);
                for result in b.func.insts[inst].results.clone() {
                    self.keep(b, result);
                }
            }
        }
    }

    /// Storage for a large value that is about to be made.
    fn new_storage(&mut self, b: &mut Builder<'_>, value: Value) -> Value {
        let place = b.local(b.func.ty(value));
        self.storage[value] = Some(place);
        place
    }

    /// Puts a large value that was made as a whole into storage.
    fn keep(&mut self, b: &mut Builder<'_>, value: Value) {
        if is_large(b.func.ty(value)) {
            let place = self.new_storage(b, value);
            b.effect(Op::Store { place, value });
        }
    }

    /// A large value as a whole, for what takes nothing else.
    fn whole(&mut self, b: &mut Builder<'_>, value: Value) -> Value {
        match self.storage[value] {
            Some(place) => {
                let ty = b.func.ty(value);
                b.value(Op::Load { place }, ty)
            }
            None => value,
        }
    }

    /// Storage with the elements of a tensor, large or small.
    fn place_of(&mut self, b: &mut Builder<'_>, value: Value) -> Value {
        self.storage[value].unwrap_or_else(|| {
            let place = b.local(b.func.ty(value));
            b.effect(Op::Store { place, value });
            place
        })
    }

    fn elem_ref(&mut self, b: &mut Builder<'_>, base: Value, index: Vec<Value>) -> Value {
        let elem = b.func.ty(base).pointee().and_then(Type::elem);
        let ty = Type::RefScalar(elem.expect("a tensor's storage"));
        b.value(Op::ElemRef { base, index }, ty)
    }

    fn load_element(&mut self, b: &mut Builder<'_>, base: Value, index: &[Value]) -> Value {
        let place = self.elem_ref(b, base, index.to_vec());
        let ty = b.func.ty(place).pointee().expect("a storage");
        b.value(Op::Load { place }, ty)
    }

    fn store_element(&mut self, b: &mut Builder<'_>, base: Value, index: &[Value], value: Value) {
        let place = self.elem_ref(b, base, index.to_vec());
        b.effect(Op::Store { place, value });
    }

    /// Emits `body` for each index of a shape, the last axis innermost.
    fn loops(
        &mut self,
        b: &mut Builder<'_>,
        extents: &[u32],
        each: &mut dyn FnMut(&mut Self, &mut Builder<'_>, &[Value]),
    ) {
        let ranges: Vec<Range<u32>> = extents.iter().map(|&n| 0..n).collect();
        self.nest(b, &ranges, &mut Vec::new(), each);
    }

    fn nest(
        &mut self,
        b: &mut Builder<'_>,
        ranges: &[Range<u32>],
        index: &mut Vec<Value>,
        each: &mut dyn FnMut(&mut Self, &mut Builder<'_>, &[Value]),
    ) {
        let Some((range, rest)) = ranges.split_first() else {
            return each(self, b, index);
        };
        let [lo, hi] = [range.start, range.end].map(|n| b.i32(n as i32));
        b.for_(lo, hi, |b, counter| {
            index.push(counter);
            self.nest(b, rest, index, each);
            index.pop();
        });
    }

    fn elementwise(&mut self, b: &mut Builder<'_>, op: &Op, result: Value) {
        let ty = b.func.ty(result);
        let elem = Type::Scalar(ty.elem().expect("a tensor has elements"));
        let to = self.new_storage(b, result);
        self.loops(b, &ty.shape(), &mut |pass, b, index| {
            let mut op = op.clone();
            op.map_operands(|v| match b.func.ty(v).is_tensor() {
                true => {
                    let from = pass.place_of(b, v);
                    pass.load_element(b, from, index)
                }
                false => v,
            });
            let value = b.value(op, elem);
            pass.store_element(b, to, index, value);
        });
    }

    fn make(&mut self, b: &mut Builder<'_>, elems: &[Value], result: Value) {
        let shape = b.func.ty(result).shape();
        let to = self.new_storage(b, result);
        if elems.iter().all(|&e| e == elems[0]) {
            return self.loops(b, &shape, &mut |pass, b, index| {
                pass.store_element(b, to, index, elems[0]);
            });
        }
        for (k, &value) in elems.iter().enumerate() {
            let index = self.constant_index(b, &shape, k as u32);
            self.store_element(b, to, &index, value);
        }
    }

    fn constant_index(&mut self, b: &mut Builder<'_>, shape: &[u32], k: u32) -> Vec<Value> {
        let index = match *shape {
            [_, m] => vec![k / m, k % m],
            _ => vec![k],
        };
        index.into_iter().map(|i| b.i32(i as i32)).collect()
    }

    /// Copies all elements. The components of a field lie where its layout says, so they are named one by one.
    fn copy(&mut self, b: &mut Builder<'_>, from: Value, to: Value) {
        let ty = b.func.ty(from).pointee().expect("a storage");
        let shape = ty.shape();
        let in_field = [from, to]
            .iter()
            .any(|&place| matches!(b.func.def_op(place), Some(Op::FieldAt { .. })));
        if !in_field {
            return self.loops(b, &shape, &mut |pass, b, index| {
                let value = pass.load_element(b, from, index);
                pass.store_element(b, to, index, value);
            });
        }
        for k in 0..ty.n_elems() {
            let index = self.constant_index(b, &shape, k);
            let value = self.load_element(b, from, &index);
            self.store_element(b, to, &index, value);
        }
    }

    /// The storage of a product.
    fn matmul(&mut self, b: &mut Builder<'_>, lhs: Value, rhs: Value, result: Value) -> Value {
        let ty = b.func.ty(result);
        let elem = Type::Scalar(ty.elem().expect("a product has elements"));
        let inner = b.func.ty(lhs).shape()[1];
        let (left, right) = (self.place_of(b, lhs), self.place_of(b, rhs));
        let to = self.new_storage(b, result);
        self.loops(b, &ty.shape(), &mut |pass, b, index| {
            let sum = b.local(elem);
            let product = |pass: &mut Self, b: &mut Builder<'_>, at: Value| {
                let lhs = pass.load_element(b, left, &[index[0], at]);
                let column: Vec<Value> = [at].iter().chain(&index[1..]).copied().collect();
                let rhs = pass.load_element(b, right, &column);
                let op = BinaryOp::Mul;
                b.value(Op::Binary { op, lhs, rhs }, elem)
            };
            let first = b.i32(0);
            let value = product(pass, b, first);
            b.effect(Op::Store { place: sum, value });
            pass.nest(
                b,
                std::slice::from_ref(&(1..inner)),
                &mut Vec::new(),
                &mut |pass, b, at| {
                    let rhs = product(pass, b, at[0]);
                    let lhs = b.value(Op::Load { place: sum }, elem);
                    let op = BinaryOp::Add;
                    let value = b.value(Op::Binary { op, lhs, rhs }, elem);
                    b.effect(Op::Store { place: sum, value });
                },
            );
            let value = b.value(Op::Load { place: sum }, elem);
            pass.store_element(b, to, index, value);
        });
        to
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    #[test]
    fn elements_in_a_loop() {
        check_pass!("loop_tensors", "
            func @f(v0: i32) -> i32 {
                v1: ref<vec<100, i32>> = local
                v2: vec<100, i32> = load v1
                v3: vec<100, i32> = neg v2
                store v1, v3
                v4: i32 = tensor_get v3, [v0]
                yield [v4]
            }", @"
            func @f(v0: i32) -> i32 {
                v1: ref<vec<100, i32>> = local
                v2: ref<vec<100, i32>> = local
                v3: i32 = const 0
                v4: i32 = const 100
                v5: i32 = const 1
                for v3, v4, v5, [] (v6: i32) {
                    v7: ref<i32> = elem_ref v1, [v6]
                    v8: i32 = load v7
                    v9: ref<i32> = elem_ref v2, [v6]
                    store v9, v8
                    yield []
                }
                v10: ref<vec<100, i32>> = local
                v11: i32 = const 0
                v12: i32 = const 100
                v13: i32 = const 1
                for v11, v12, v13, [] (v14: i32) {
                    v15: ref<i32> = elem_ref v2, [v14]
                    v16: i32 = load v15
                    v17: i32 = neg v16
                    v18: ref<i32> = elem_ref v10, [v14]
                    store v18, v17
                    yield []
                }
                v19: i32 = const 0
                v20: i32 = const 100
                v21: i32 = const 1
                for v19, v20, v21, [] (v22: i32) {
                    v23: ref<i32> = elem_ref v10, [v22]
                    v24: i32 = load v23
                    v25: ref<i32> = elem_ref v1, [v22]
                    store v25, v24
                    yield []
                }
                v26: ref<i32> = elem_ref v10, [v0]
                v27: i32 = load v26
                yield [v27]
            }
            ");
    }

    #[test]
    fn products() {
        check_pass!("loop_tensors", "
            func @f(v0: f32) -> f32 {
                v1: ref<mat<2, 40, f32>> = local
                v2: ref<vec<40, f32>> = local
                v3: mat<2, 40, f32> = load v1
                v4: vec<40, f32> = load v2
                v5: vec<2, f32> = matmul v3, v4
                v6: i32 = const 1
                v7: f32 = tensor_get v5, [v6]
                yield [v7]
            }", @"
            func @f(v0: f32) -> f32 {
                v1: ref<mat<2, 40, f32>> = local
                v2: ref<vec<40, f32>> = local
                v3: ref<mat<2, 40, f32>> = local
                v4: i32 = const 0
                v5: i32 = const 2
                v6: i32 = const 1
                for v4, v5, v6, [] (v7: i32) {
                    v8: i32 = const 0
                    v9: i32 = const 40
                    v10: i32 = const 1
                    for v8, v9, v10, [] (v11: i32) {
                        v12: ref<f32> = elem_ref v1, [v7, v11]
                        v13: f32 = load v12
                        v14: ref<f32> = elem_ref v3, [v7, v11]
                        store v14, v13
                        yield []
                    }
                    yield []
                }
                v15: vec<40, f32> = load v2
                v16: ref<vec<40, f32>> = local
                store v16, v15
                v17: ref<vec<2, f32>> = local
                v18: i32 = const 0
                v19: i32 = const 2
                v20: i32 = const 1
                for v18, v19, v20, [] (v21: i32) {
                    v22: ref<f32> = local
                    v23: i32 = const 0
                    v24: ref<f32> = elem_ref v3, [v21, v23]
                    v25: f32 = load v24
                    v26: ref<f32> = elem_ref v16, [v23]
                    v27: f32 = load v26
                    v28: f32 = mul v25, v27
                    store v22, v28
                    v29: i32 = const 1
                    v30: i32 = const 40
                    v31: i32 = const 1
                    for v29, v30, v31, [] (v32: i32) {
                        v33: ref<f32> = elem_ref v3, [v21, v32]
                        v34: f32 = load v33
                        v35: ref<f32> = elem_ref v16, [v32]
                        v36: f32 = load v35
                        v37: f32 = mul v34, v36
                        v38: f32 = load v22
                        v39: f32 = add v38, v37
                        store v22, v39
                        yield []
                    }
                    v40: f32 = load v22
                    v41: ref<f32> = elem_ref v17, [v21]
                    store v41, v40
                    yield []
                }
                v42: vec<2, f32> = load v17
                v43: i32 = const 1
                v44: f32 = tensor_get v42, [v43]
                yield [v44]
            }
            ");
    }

    #[test]
    fn what_passes_through_branches_is_whole() {
        check_pass!("loop_tensors", "
            func @f(v0: u1, v1: i32) -> i32 {
                v2: ref<vec<65, i32>> = local
                v3: vec<65, i32> = load v2
                v4: vec<65, i32> = if v0 {
                    v5: vec<65, i32> = neg v3
                    yield [v5]
                } {
                    yield [v3]
                }
                v6: i32 = tensor_get v4, [v1]
                yield [v6]
            }", @"
            func @f(v0: u1, v1: i32) -> i32 {
                v2: ref<vec<65, i32>> = local
                v3: ref<vec<65, i32>> = local
                v4: i32 = const 0
                v5: i32 = const 65
                v6: i32 = const 1
                for v4, v5, v6, [] (v7: i32) {
                    v8: ref<i32> = elem_ref v2, [v7]
                    v9: i32 = load v8
                    v10: ref<i32> = elem_ref v3, [v7]
                    store v10, v9
                    yield []
                }
                v11: vec<65, i32> = if v0 {
                    v12: ref<vec<65, i32>> = local
                    v13: i32 = const 0
                    v14: i32 = const 65
                    v15: i32 = const 1
                    for v13, v14, v15, [] (v16: i32) {
                        v17: ref<i32> = elem_ref v3, [v16]
                        v18: i32 = load v17
                        v19: i32 = neg v18
                        v20: ref<i32> = elem_ref v12, [v16]
                        store v20, v19
                        yield []
                    }
                    v21: vec<65, i32> = load v12
                    yield [v21]
                } {
                    v22: vec<65, i32> = load v3
                    yield [v22]
                }
                v23: ref<vec<65, i32>> = local
                store v23, v11
                v24: ref<i32> = elem_ref v23, [v1]
                v25: i32 = load v24
                yield [v25]
            }
            ");
    }
}
