//! Tensors and structs are split into scalars.
//!
//! ```text
//! v1: vec<2, f32> = load v0              v1: ref<f32> = elem_ref v0, [0]
//! v2: vec<2, f32> = mul v1, v1    ==>    v2: f32 = load v1       (and so on for element 1)
//! store v0, v2                           v5: f32 = mul v2, v2 ...
//! ```
//! A local tensor becomes one local for each element, unless it is indexed by something that is no
//! constant: then it stays memory. So does a tensor value that is indexed so.

mod storage;

use aerogel_base::entity::SecondaryMap;
use aerogel_ir::{BinaryOp, Builder, Env, Function, Inst, Op, Region, Type, Value, walk};

use crate::PassCx;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let mut has_aggregates = false;
    for v in func.values.values() {
        has_aggregates |= v.ty.is_tensor()
            || matches!(
                v.ty,
                Type::Struct(_) | Type::RefVec(..) | Type::RefMat(..) | Type::RefStruct(_)
            );
    }
    if !has_aggregates {
        return false;
    }
    let mut pass = Scalarize {
        env: cx.env,
        parts: SecondaryMap::new(),
        dynamic: dynamic_locals(func),
    };
    let body = func.body;
    pass.region(&mut Builder::new(func, body), body);
    func.results = func.results.iter().flat_map(|&t| pass.scalars(t)).collect();
    true
}

/// Local tensors whose elements are named by something that is no constant.
fn dynamic_locals(func: &Function) -> SecondaryMap<Value, bool> {
    let mut dynamic = SecondaryMap::new();
    walk(func, func.body, &mut |func, inst| {
        if let Op::ElemRef { base, index } = &func[inst]
            && index.iter().any(|&i| func.as_const(i).is_none())
        {
            let mut place = *base;
            dynamic[place] = true;
            while let Some(&Op::MemberRef { base, .. }) = func.def_op(place) {
                dynamic[base] = true;
                place = base;
            }
        }
    });
    dynamic
}

struct Scalarize<'a> {
    env: &'a Env,
    /// The scalars that an aggregate value, or the storages that an aggregate's storage, became.
    parts: SecondaryMap<Value, Option<Vec<Value>>>,
    dynamic: SecondaryMap<Value, bool>,
}

impl Scalarize<'_> {
    fn scalars(&self, ty: Type) -> Vec<Type> {
        match ty {
            Type::Vec(..) | Type::Mat(..) | Type::Struct(_) => {
                self.env.scalars(ty).into_iter().map(Type::Scalar).collect()
            }
            other => vec![other],
        }
    }

    fn region(&mut self, b: &mut Builder<'_>, region: Region) {
        let params = std::mem::take(&mut b.func.regions[region].params);
        for p in params {
            let parts: Vec<Value> = self
                .scalars(b.func.ty(p))
                .into_iter()
                .map(|t| b.func.add_param(region, t))
                .collect();
            self.parts[p] = Some(parts);
        }
        let insts = std::mem::take(&mut b.func.regions[region].insts);
        b.within(region, |b| {
            for inst in insts {
                b.span = b.func.insts[inst].span;
                self.inst(b, inst);
            }
        });
    }

    /// The scalars of a value; the value itself if it is a scalar.
    fn of(&self, v: Value) -> Vec<Value> {
        self.parts[v].clone().unwrap_or_else(|| vec![v])
    }

    /// The only scalar of a value.
    fn one(&self, v: Value) -> Value {
        match self.parts[v].as_deref() {
            None => v,
            Some(&[part]) => part,
            Some(parts) => unreachable!("{v} has {} parts where one scalar is taken", parts.len()),
        }
    }

    fn inst(&mut self, b: &mut Builder<'_>, inst: Inst) {
        let results = b.func.insts[inst].results.clone();
        let result = results.first().copied();
        let ty = result.map(|r| b.func.ty(r));
        match b.func[inst].clone() {
            Op::TensorMake { elems } => {
                let parts = elems.iter().map(|&e| self.one(e)).collect();
                self.parts[result.expect("one result")] = Some(parts);
            }
            Op::StructMake { members } => {
                let parts = members.iter().flat_map(|&m| self.of(m)).collect();
                self.parts[result.expect("one result")] = Some(parts);
            }
            Op::StructGet { value, member } => {
                let range = self.member_range(b.func.ty(value), member);
                self.parts[result.expect("one result")] = Some(self.of(value)[range].to_vec());
            }
            Op::StructSet {
                base,
                member,
                value,
            } => {
                let range = self.member_range(b.func.ty(base), member);
                let mut parts = self.of(base);
                parts.splice(range, self.of(value));
                self.parts[result.expect("one result")] = Some(parts);
            }
            Op::TensorGet { tensor, index } => {
                let tensor_ty = b.func.ty(tensor);
                let part = match self.linear(b.func, tensor_ty, &index) {
                    Some(k) => self.of(tensor)[k],
                    None => {
                        let base = self.spill(b, tensor);
                        let place = self.elem_ref(b, base, &index, tensor_ty);
                        b.value(Op::Load { place }, ty.expect("one result"))
                    }
                };
                self.parts[result.expect("one result")] = Some(vec![part]);
            }
            Op::TensorSet {
                tensor,
                index,
                value,
            } => {
                let tensor_ty = b.func.ty(tensor);
                let parts = match self.linear(b.func, tensor_ty, &index) {
                    Some(k) => {
                        let mut parts = self.of(tensor);
                        parts[k] = self.one(value);
                        parts
                    }
                    None => {
                        let base = self.spill(b, tensor);
                        let place = self.elem_ref(b, base, &index, tensor_ty);
                        let value = self.one(value);
                        b.effect(Op::Store { place, value });
                        self.load_parts(b, base)
                    }
                };
                self.parts[result.expect("one result")] = Some(parts);
            }
            Op::MatMul { lhs, rhs } => {
                let parts = self.matmul(b, lhs, rhs);
                self.parts[result.expect("one result")] = Some(parts);
            }
            Op::Undef {} | Op::Arg { .. } if ty.is_some_and(|t| self.scalars(t) != [t]) => {
                self.aggregate_leaf(b, inst, result.expect("one result"));
            }
            Op::Local {}
                if ty
                    .and_then(Type::pointee)
                    .is_some_and(|t| self.scalars(t) != [t]) =>
            {
                let place = result.expect("one result");
                let pointee = b.func.ty(place).pointee().expect("a storage");
                if self.dynamic[place] && pointee.is_tensor() {
                    b.append(inst);
                    return;
                }
                let parts = if let Type::Struct(id) = pointee {
                    self.struct_places(b, id, self.dynamic[place])
                } else {
                    self.scalar_locals(b, pointee)
                };
                self.parts[place] = Some(parts);
            }
            Op::MemberRef { base, member } => {
                let struct_ty = b.func.ty(base).pointee().expect("a storage");
                let range = self.member_range(struct_ty, member);
                let parts = self.of(base)[range].to_vec();
                self.parts[result.expect("one result")] = Some(parts);
            }
            Op::ElemRef { base, index } => {
                let tensor = b.func.ty(base).pointee().expect("a storage");
                let split = self.parts[base].as_ref().filter(|p| p.as_slice() != [base]);
                let place = match (split.cloned(), self.linear(b.func, tensor, &index)) {
                    (Some(parts), Some(k)) => parts[k],
                    (Some(parts), None) => self.select_place(b, &parts, &index, tensor),
                    (None, _) => {
                        let base = self.one(base);
                        self.elem_ref(b, base, &index, tensor)
                    }
                };
                self.parts[result.expect("one result")] = Some(vec![place]);
            }
            Op::Load { place } if ty.is_some_and(|t| self.scalars(t) != [t]) => {
                let parts = self.load_parts(b, place);
                self.parts[result.expect("one result")] = Some(parts);
            }
            Op::Store { place, value } if self.scalars(b.func.ty(value)) != [b.func.ty(value)] => {
                let places = self.places(b, place);
                for (place, value) in places.into_iter().zip(self.of(value)) {
                    b.effect(Op::Store { place, value });
                }
            }
            Op::Atomic { op, place, value } if b.func.ty(value).is_tensor() => {
                let elem = Type::Scalar(b.func.elem(value));
                let places = self.places(b, place);
                let values = self.of(value);
                let old = places
                    .into_iter()
                    .zip(values)
                    .map(|(place, value)| b.value(Op::Atomic { op, place, value }, elem))
                    .collect();
                self.parts[result.expect("one result")] = Some(old);
            }
            op if op.is_elementwise() && ty.is_some_and(Type::is_tensor) => {
                let ty = ty.expect("one result");
                let elem = Type::Scalar(ty.elem().expect("a tensor has elements"));
                let parts = (0..ty.n_elems() as usize)
                    .map(|k| {
                        let mut op = op.clone();
                        // A scalar operand (the condition of a select) is the same for every element.
                        op.map_operands(|v| {
                            self.parts[v]
                                .as_ref()
                                .map_or(v, |p| p[if p.len() == 1 { 0 } else { k }])
                        });
                        b.value(op, elem)
                    })
                    .collect();
                self.parts[result.expect("one result")] = Some(parts);
            }
            Op::Select {
                cond,
                on_true,
                on_false,
            } if matches!(ty, Some(Type::Struct(_))) => {
                let cond = self.one(cond);
                let pairs: Vec<_> = self
                    .of(on_true)
                    .into_iter()
                    .zip(self.of(on_false))
                    .collect();
                let parts = pairs
                    .into_iter()
                    .map(|(on_true, on_false)| {
                        let ty = b.func.ty(on_true);
                        b.value(
                            Op::Select {
                                cond,
                                on_true,
                                on_false,
                            },
                            ty,
                        )
                    })
                    .collect();
                self.parts[result.expect("one result")] = Some(parts);
            }
            // What takes and makes lists of values takes and makes longer ones.
            mut op => {
                flatten_lists(&mut op, &self.parts);
                op.map_operands(|v| self.one(v));
                b.func.insts[inst].op = op;
                let types: Vec<Type> = results.iter().map(|&r| b.func.ty(r)).collect();
                if types.iter().any(|&t| self.scalars(t) != [t]) {
                    b.func.insts[inst].results.clear();
                    for (&r, &t) in results.iter().zip(&types) {
                        let parts = self
                            .scalars(t)
                            .into_iter()
                            .map(|t| b.func.add_result(inst, t))
                            .collect();
                        self.parts[r] = Some(parts);
                    }
                }
                b.append(inst);
                for region in b.func.owned(inst) {
                    self.region(b, region);
                }
            }
        }
    }

    fn aggregate_leaf(&mut self, b: &mut Builder<'_>, inst: Inst, result: Value) {
        let types = self.scalars(b.func.ty(result));
        let parts = match b.func[inst].clone() {
            Op::Undef {} => types
                .into_iter()
                .map(|t| b.value(Op::Undef {}, t))
                .collect(),
            _ => {
                // An argument is read as a whole and taken apart where it is used: here, into reads
                // of its components' slots.
                b.func.insts[inst].results.clear();
                let parts = types
                    .into_iter()
                    .map(|t| b.func.add_result(inst, t))
                    .collect();
                b.append(inst);
                parts
            }
        };
        self.parts[result] = Some(parts);
    }

    fn matmul(&mut self, b: &mut Builder<'_>, lhs: Value, rhs: Value) -> Vec<Value> {
        let Type::Mat(n, m, _) = b.func.ty(lhs) else {
            unreachable!("the left operand is a matrix")
        };
        let k = if let Type::Mat(_, k, _) = b.func.ty(rhs) {
            k
        } else {
            1
        };
        let elem = Type::Scalar(b.func.elem(lhs));
        let is_float = b.func.elem(lhs).is_float();
        let (left, right) = (self.of(lhs), self.of(rhs));
        let mut parts = Vec::new();
        for row in 0..n {
            for column in 0..k {
                let mut sum = None;
                for inner in 0..m {
                    let x = left[(row * m + inner) as usize];
                    let y = right[(inner * k + column) as usize];
                    sum = Some(match sum {
                        None => b.binary(BinaryOp::Mul, x, y),
                        Some(sum) if is_float => {
                            let op = Op::MulAdd { a: x, b: y, c: sum };
                            b.value(op, elem)
                        }
                        Some(sum) => {
                            let product = b.binary(BinaryOp::Mul, x, y);
                            b.binary(BinaryOp::Add, sum, product)
                        }
                    });
                }
                parts.push(sum.expect("a matrix has a column"));
            }
        }
        parts
    }
}

/// Replaces aggregates in lists of operands by their parts.
fn flatten_lists(op: &mut Op, parts: &SecondaryMap<Value, Option<Vec<Value>>>) {
    let list = match op {
        Op::Yield { values }
        | Op::Break { values }
        | Op::Continue { values }
        | Op::Return { values } => values,
        Op::For { init, .. } | Op::While { init, .. } => init,
        Op::Call { args, .. } => args,
        _ => return,
    };
    *list = list
        .iter()
        .flat_map(|&v| parts[v].clone().unwrap_or_else(|| vec![v]))
        .collect();
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    #[test]
    fn elementwise() {
        check_pass!("scalarize", "
            func @f(v0: vec<2, f32>, v1: f32) -> vec<2, f32> {
                v2: vec<2, f32> = tensor [v1, v1]
                v3: vec<2, f32> = mul v0, v2
                yield [v3]
            }", @"
            func @f(v0: f32, v1: f32, v2: f32) -> f32, f32 {
                v3: f32 = mul v0, v2
                v4: f32 = mul v1, v2
                yield [v3, v4]
            }
            ");
    }

    #[test]
    fn locals_and_dynamic_indices() {
        check_pass!("scalarize", "
            func @f(v0: vec<2, i32>, v1: i32) -> i32 {
                v2: ref<vec<2, i32>> = local
                store v2, v0
                v3: i32 = const 1
                v4: ref<i32> = elem_ref v2, [v3]
                v5: i32 = load v4
                v6: i32 = tensor_get v0, [v1]
                v7: i32 = add v5, v6
                yield [v7]
            }", @"
            func @f(v0: i32, v1: i32, v2: i32) -> i32 {
                v3: ref<i32> = local
                v4: ref<i32> = local
                store v3, v0
                store v4, v1
                v5: i32 = const 1
                v6: i32 = load v4
                v7: ref<vec<2, i32>> = local
                v8: i32 = const 0
                v9: ref<i32> = elem_ref v7, [v8]
                v10: i32 = const 1
                v11: ref<i32> = elem_ref v7, [v10]
                store v9, v0
                store v11, v1
                v12: ref<i32> = elem_ref v7, [v2]
                v13: i32 = load v12
                v14: i32 = add v6, v13
                yield [v14]
            }
            ");
    }

    #[test]
    fn control_flow_carries_parts() {
        check_pass!("scalarize", "
            func @f(v0: vec<2, i32>, c: u1) -> i32 {
                v1: vec<2, i32> = if c {
                    yield [v0]
                } {
                    v2: vec<2, i32> = neg v0
                    yield [v2]
                }
                v3: i32 = const 1
                v4: i32 = tensor_get v1, [v3]
                yield [v4]
            }", @"
            func @f(v0: i32, v1: i32, v2: u1) -> i32 {
                v3: i32, v4: i32 = if v2 {
                    yield [v0, v1]
                } {
                    v5: i32 = neg v0
                    v6: i32 = neg v1
                    yield [v5, v6]
                }
                v7: i32 = const 1
                yield [v4]
            }
            ");
    }

    #[test]
    fn unknown_elements_of_members() {
        check_pass!("scalarize", "
            struct0 { a: mat<2, 2, i32>, b: i32 }
            func @f(v0: i32, v1: i64) -> i32 {
                v2: ref<struct0> = local
                v3: ref<mat<2, 2, i32>> = member_ref v2, 0
                v4: i32 = const 1
                v5: i32 = and v0, v4
                v6: i64 = const 1
                v7: i64 = and v1, v6
                v8: ref<i32> = elem_ref v3, [v5, v7]
                store v8, v0
                v9: ref<i32> = elem_ref v3, [v4, v6]
                v10: i32 = load v9
                yield [v10]
            }", @"
            func @f(v0: i32, v1: i64) -> i32 {
                v2: ref<mat<2, 2, i32>> = local
                v3: i32 = const 0
                v4: i32 = const 0
                v5: ref<i32> = elem_ref v2, [v3, v4]
                v6: i32 = const 0
                v7: i32 = const 1
                v8: ref<i32> = elem_ref v2, [v6, v7]
                v9: i32 = const 1
                v10: i32 = const 0
                v11: ref<i32> = elem_ref v2, [v9, v10]
                v12: i32 = const 1
                v13: i32 = const 1
                v14: ref<i32> = elem_ref v2, [v12, v13]
                v15: ref<i32> = local
                v16: i32 = const 1
                v17: i32 = and v0, v16
                v18: i64 = const 1
                v19: i64 = and v1, v18
                v20: i64 = cast v17
                v21: i64 = const 2
                v22: i64 = mul v20, v21
                v23: i64 = add v22, v19
                v24: i64 = const 1
                v25: u1 = eq v23, v24
                v26: ref<i32> = select v25, v8, v5
                v27: i64 = const 2
                v28: u1 = eq v23, v27
                v29: ref<i32> = select v28, v11, v26
                v30: i64 = const 3
                v31: u1 = eq v23, v30
                v32: ref<i32> = select v31, v14, v29
                store v32, v0
                v33: i32 = load v14
                yield [v33]
            }
            ");
    }
}
