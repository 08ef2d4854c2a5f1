//! The types that each instruction takes and makes.

use aerogel_base::{NoteKind, ScalarType};

use crate::func::{Function, ParamType};
use crate::module::Env;
use crate::op::Op;
use crate::op_kinds::{NodeRef, ThreadOp};
use crate::stage::Stage;
use crate::types::{Arg, Inst, Region, Type, Value};

/// Checks one instruction whose operands are known to be in scope.
pub(crate) fn check(func: &Function, env: &Env, stage: Stage, inst: Inst) -> Result<(), String> {
    let c = Check {
        func,
        env,
        results: func.insts[inst]
            .results
            .iter()
            .map(|&v| func.ty(v))
            .collect(),
    };
    if stage == Stage::Lowered && c.results.iter().any(|t| t.is_tensor()) {
        return Err("tensors are gone at stage Lowered".into());
    }
    c.op(&func[inst])
}

pub(crate) struct Check<'a> {
    pub(crate) func: &'a Function,
    pub(crate) env: &'a Env,
    pub(crate) results: Vec<Type>,
}

pub(crate) fn ensure(ok: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if ok { Ok(()) } else { Err(message()) }
}

impl Check<'_> {
    pub(crate) fn ty(&self, v: Value) -> Type {
        self.func.ty(v)
    }

    pub(crate) fn result(&self, wanted: Type) -> Result<(), String> {
        match self.results[..] {
            [found] if found == wanted => Ok(()),
            [found] => Err(format!("the result has type {found}, not {wanted}")),
            _ => Err(format!("there is one result, not {}", self.results.len())),
        }
    }

    pub(crate) fn no_result(&self) -> Result<(), String> {
        ensure(self.results.is_empty(), || "there is no result".into())
    }

    pub(crate) fn same(&self, a: Value, b: Value) -> Result<Type, String> {
        let (a, b) = (self.ty(a), self.ty(b));
        if a == b {
            Ok(a)
        } else {
            Err(format!("operands have types {a} and {b}"))
        }
    }

    pub(crate) fn numeric(&self, v: Value) -> Result<(Type, ScalarType), String> {
        let ty = self.ty(v);
        ty.elem()
            .map(|e| (ty, e))
            .ok_or_else(|| format!("{ty} is not a number or a tensor"))
    }

    pub(crate) fn integer(&self, v: Value) -> Result<ScalarType, String> {
        let ty = self.ty(v);
        ty.scalar()
            .filter(|s| s.is_int())
            .ok_or_else(|| format!("{ty} is not an integer"))
    }

    fn integers(&self, values: &[Value]) -> Result<(), String> {
        values.iter().try_for_each(|&v| self.integer(v).map(|_| ()))
    }

    /// Indices: narrower ones would wrap where addresses are computed of them.
    pub(crate) fn indices(&self, values: &[Value]) -> Result<(), String> {
        values.iter().try_for_each(|&v| {
            let ty = self.integer(v)?;
            ensure(ty.bits() >= 32, || {
                format!("an index has 32 or 64 bits, not type {ty}")
            })
        })
    }

    /// Only values pass through control flow: storages stay in the scope that defines them.
    pub(crate) fn values(&self, types: &[Type]) -> Result<(), String> {
        types.iter().try_for_each(|ty| {
            let is_value = ty.is_numeric() || matches!(ty, Type::Struct(_));
            ensure(is_value, || {
                format!("a {ty} is passed on, which is no value")
            })
        })
    }

    /// Collective operations of threads: the types of operands and result.
    fn threads(&self, op: ThreadOp, args: &[Value]) -> Result<(), String> {
        use ThreadOp::*;
        let mask = Type::Scalar(ScalarType::U32);
        let number = args.get(1).map_or(Type::I32, |&v| self.ty(v));
        let (wanted, result) = match op {
            BlockSync | BlockFence | GridFence => (vec![], None),
            BlockAll | BlockAny => (vec![Type::BOOL], Some(Type::BOOL)),
            BlockCount => (vec![Type::BOOL], Some(Type::I32)),
            ThreadInBlock | ThreadInGrid | BlockSize => (vec![], Some(Type::I32)),
            WarpSync => (vec![mask], None),
            ActiveMask => (vec![], Some(mask)),
            Ballot => (vec![mask, Type::BOOL], Some(mask)),
            VoteAll | VoteAny | VoteUniform => (vec![mask, Type::BOOL], Some(Type::BOOL)),
            MatchAny | MatchAll => (vec![mask, number], Some(mask)),
            Shuffle | ShuffleUp | ShuffleDown | ShuffleXor => {
                (vec![mask, number, Type::I32], Some(number))
            }
        };
        let types: Vec<Type> = args.iter().map(|&v| self.ty(v)).collect();
        ensure(types == wanted && number.scalar().is_some(), || {
            format!("the operands of `{op}` are {wanted:?}")
        })?;
        match result {
            Some(ty) => self.result(ty),
            None => ensure(self.results.is_empty(), || "it has no result".into()),
        }
    }

    pub(crate) fn written(&self, place: Value) -> Result<(), String> {
        match self.func.def_op(place) {
            Some(Op::ArrayAt { array, .. }) => {
                let param = &self.func.params[array.as_u32() as usize];
                let read_only = matches!(
                    param.ty,
                    ParamType::Array {
                        read_only: true,
                        ..
                    }
                );
                ensure(!read_only, || format!("{array} is only read"))
            }
            Some(&Op::ElemRef { base, .. } | &Op::MemberRef { base, .. }) => self.written(base),
            _ => Ok(()),
        }
    }

    pub(crate) fn bool(&self, v: Value) -> Result<(), String> {
        let ty = self.ty(v);
        ensure(ty == Type::BOOL, || {
            format!("the condition has type {ty}, not u1")
        })
    }

    pub(crate) fn place(&self, v: Value) -> Result<Type, String> {
        let ty = self.ty(v);
        ty.pointee().ok_or_else(|| format!("{ty} is not a storage"))
    }

    pub(crate) fn array(&self, arg: Arg) -> Result<(Type, u32), String> {
        match self.func.params.get(arg.as_u32() as usize).map(|p| p.ty) {
            Some(ParamType::Array { elem, ndim, .. }) => Ok((elem, ndim)),
            _ => Err(format!("{arg} is not an array argument")),
        }
    }

    pub(crate) fn element(&self, whole: Type, index: &[Value]) -> Result<Type, String> {
        self.indices(index)?;
        let rank = whole.shape().len();
        ensure(whole.is_tensor() && rank == index.len(), || {
            format!("{whole} does not take {} indices", index.len())
        })?;
        Ok(Type::Scalar(whole.elem().expect("a tensor has elements")))
    }

    fn member(&self, ty: Type, member: u32) -> Result<Type, String> {
        let Type::Struct(id) = ty else {
            return Err(format!("{ty} is not a struct"));
        };
        self.env
            .members(id)
            .get(member as usize)
            .map(|m| m.1)
            .ok_or_else(|| format!("{ty} has no member {member}"))
    }

    fn region_params(&self, region: crate::types::Region, wanted: &[Type]) -> Result<(), String> {
        let found: Vec<Type> = self.func.regions[region]
            .params
            .iter()
            .map(|&v| self.ty(v))
            .collect();
        ensure(found == wanted, || {
            format!("a region has parameters {found:?}, not {wanted:?}")
        })
    }

    fn template(&self, template: &str, args: &[Value]) -> Result<(), String> {
        for &a in args {
            let ty = self.ty(a);
            ensure(ty.scalar().is_some(), || {
                format!("{ty} cannot be printed; only scalars are")
            })?;
        }
        let holes = template
            .replace("{{", "")
            .replace("}}", "")
            .matches('{')
            .count();
        ensure(holes == args.len(), || {
            format!(
                "the template has {holes} holes for {} arguments",
                args.len()
            )
        })
    }

    fn note(&self, kind: NoteKind, template: &str, args: &[Value]) -> Result<(), String> {
        let (fixed, of_message) = args
            .split_at_checked(kind.n_fixed())
            .ok_or_else(|| format!("a note of a {kind} has more arguments"))?;
        // What is written is of any type.
        for &arg in fixed.iter().take(3) {
            self.is_i64(arg)?;
        }
        self.template(template, of_message)
    }

    fn arg(&self, arg: Arg) -> Result<(), String> {
        match self.func.params.get(arg.as_u32() as usize).map(|p| p.ty) {
            // A tensor argument that was taken apart is read as its scalars.
            Some(ParamType::Value(ty)) if self.results.len() != 1 || ty.n_elems() == 1 => {
                let scalars: Vec<Type> =
                    self.env.scalars(ty).into_iter().map(Type::Scalar).collect();
                ensure(self.results == scalars || self.results == [ty], || {
                    format!("{arg} has type {ty}")
                })
            }
            Some(ParamType::Value(ty)) => self.result(ty),
            _ => Err(format!("{arg} is not a value argument")),
        }
    }

    fn select(&self, cond: Value, on_true: Value, on_false: Value) -> Result<(), String> {
        let ty = self.same(on_true, on_false)?;
        let cond = self.ty(cond);
        ensure(
            cond == Type::BOOL || cond == ty.with_elem(ScalarType::U1),
            || format!("the condition has type {cond}"),
        )?;
        self.result(ty)
    }

    fn cast(&self, x: Value) -> Result<(), String> {
        let (ty, _) = self.numeric(x)?;
        let to = self
            .results
            .first()
            .and_then(|r| r.elem())
            .ok_or("the result is a number or a tensor")?;
        self.result(ty.with_elem(to))
    }

    fn bitcast(&self, x: Value) -> Result<(), String> {
        let (ty, from) = self.numeric(x)?;
        let to = self
            .results
            .first()
            .and_then(|r| r.elem())
            .ok_or("the result is a number or a tensor")?;
        ensure(from.bits() == to.bits(), || {
            format!("{from} and {to} have different widths")
        })?;
        self.result(ty.with_elem(to))
    }

    fn tensor_make(&self, elems: &[Value]) -> Result<(), String> {
        let ty = *self
            .results
            .first()
            .filter(|t| t.is_tensor())
            .ok_or("the result is a tensor")?;
        ensure(elems.len() == ty.n_elems() as usize, || {
            format!("{ty} has {} elements", ty.n_elems())
        })?;
        for &e in elems {
            let found = self.ty(e);
            ensure(Some(found) == ty.elem().map(Type::Scalar), || {
                format!("an element of {ty} has type {found}")
            })?;
        }
        self.result(ty)
    }

    fn tensor_set(&self, tensor: Value, index: &[Value], value: Value) -> Result<(), String> {
        let elem = self.element(self.ty(tensor), index)?;
        ensure(self.ty(value) == elem, || {
            format!("the new element has type {}", self.ty(value))
        })?;
        self.result(self.ty(tensor))
    }

    fn mat_mul(&self, lhs: Value, rhs: Value) -> Result<(), String> {
        match (self.ty(lhs), self.ty(rhs)) {
            (Type::Mat(n, m, e), Type::Mat(m2, k, e2)) if m == m2 && e == e2 => {
                self.result(Type::Mat(n, k, e))
            }
            (Type::Mat(n, m, e), Type::Vec(m2, e2)) if m == m2 && e == e2 => {
                self.result(Type::Vec(n, e))
            }
            (l, r) => Err(format!("{l} and {r} cannot be multiplied")),
        }
    }

    fn struct_make(&self, members: &[Value]) -> Result<(), String> {
        let Some(&Type::Struct(id)) = self.results.first() else {
            return Err("the result is a struct".into());
        };
        let wanted: Vec<Type> = self.env.members(id).iter().map(|m| m.1).collect();
        let found: Vec<Type> = members.iter().map(|&m| self.ty(m)).collect();
        ensure(wanted == found, || {
            format!("members have types {found:?}, not {wanted:?}")
        })
    }

    fn struct_set(&self, base: Value, member: u32, value: Value) -> Result<(), String> {
        let wanted = self.member(self.ty(base), member)?;
        ensure(self.ty(value) == wanted, || {
            format!("the member has type {wanted}")
        })?;
        self.result(self.ty(base))
    }

    fn counted_loop(
        &self,
        lo: Value,
        hi: Value,
        step: Value,
        init: &[Value],
        body: Region,
    ) -> Result<(), String> {
        self.integer(lo)?;
        let counter = self.same(lo, hi)?;
        self.same(hi, step)?;
        let carried: Vec<Type> = init.iter().map(|&v| self.ty(v)).collect();
        self.values(&carried)?;
        let mut params = vec![counter];
        params.extend(&carried);
        self.region_params(body, &params)?;
        ensure(self.results == carried, || {
            "the results have the carried values' types".into()
        })
    }

    fn repeated_loop(&self, init: &[Value], cond: Region, body: Region) -> Result<(), String> {
        let carried: Vec<Type> = init.iter().map(|&v| self.ty(v)).collect();
        self.values(&carried)?;
        self.region_params(cond, &carried)?;
        self.region_params(body, &carried)?;
        ensure(self.results == carried, || {
            "the results have the carried values' types".into()
        })
    }

    fn parallel(&self, lo: &[Value], hi: &[Value], body: Region) -> Result<(), String> {
        self.integers(lo)?;
        ensure(lo.len() == hi.len() && !lo.is_empty(), || {
            "one lower and one upper bound for each axis".into()
        })?;
        let mut params = Vec::new();
        for (&lo, &hi) in lo.iter().zip(hi) {
            params.push(self.same(lo, hi)?);
        }
        self.region_params(body, &params)?;
        self.no_result()
    }

    fn parallel_cells(&self, node: NodeRef, body: Region) -> Result<(), String> {
        let tree = &self.env.trees[node.tree];
        ensure(!tree[node.node].children.is_empty(), || {
            format!("{node} is a place, which has no cells")
        })?;
        let shape = tree.shape(node.node);
        let fits = shape.iter().all(|&n| n <= i32::MAX as u64);
        ensure(fits, || format!("the indices of {node} do not fit an i32"))?;
        self.region_params(body, &vec![Type::I32; shape.len()])?;
        self.no_result()
    }

    fn assert(&self, cond: Value, template: &str, args: &[Value]) -> Result<(), String> {
        self.bool(cond)?;
        self.template(template, args)
    }

    fn random_state(&self, iteration: &[Value]) -> Result<(), String> {
        ensure(iteration.len() <= 1, || {
            "an iteration has one number".into()
        })?;
        self.indices(iteration)?;
        self.result(Type::Scalar(ScalarType::U64))
    }

    fn op(&self, op: &Op) -> Result<(), String> {
        match op {
            Op::Const { value } => self.result(value.ty().into()),
            Op::Undef {} => {
                ensure(self.results.len() == 1, || "there is one result".into())?;
                self.values(&self.results)
            }
            Op::Arg { arg } => self.arg(*arg),
            Op::ArrayShape { array, axis } => {
                let (_, ndim) = self.array(*array)?;
                ensure(*axis < ndim, || format!("{array} has {ndim} axes"))?;
                self.result(Type::I32)
            }
            Op::StopGradient { x } => self.result(self.numeric(*x)?.0),
            Op::Buffer {} => match self.results[..] {
                [Type::Buffer(_)] => Ok(()),
                _ => Err("the result is a buffer".into()),
            },
            Op::Reserve { buffer, count } => self.reserve(*buffer, *count),
            Op::RoomAt { room, index } => self.room_at(*room, *index),
            Op::TileProduct {
                room, at, count, ..
            } => self.tile_product(*room, at, *count),
            Op::Unary { op, x } => {
                let (ty, elem) = self.numeric(*x)?;
                ensure(op.takes(elem), || format!("`{op}` does not take {elem}"))?;
                self.result(ty)
            }
            Op::Binary { op, lhs, rhs } => {
                let ty = self.same(*lhs, *rhs)?;
                let (_, elem) = self.numeric(*lhs)?;
                ensure(op.takes(elem), || format!("`{op}` does not take {elem}"))?;
                self.result(ty)
            }
            Op::Compare { lhs, rhs, .. } => {
                let ty = self.same(*lhs, *rhs)?;
                self.numeric(*lhs)?;
                self.result(ty.with_elem(ScalarType::U1))
            }
            Op::Select {
                cond,
                on_true,
                on_false,
            } => self.select(*cond, *on_true, *on_false),
            Op::Fma { a, b, c } | Op::MulAdd { a, b, c } => {
                self.same(*a, *b)?;
                let ty = self.same(*b, *c)?;
                ensure(ty.elem().is_some_and(ScalarType::is_float), || {
                    format!("a fused sum does not take {ty}")
                })?;
                self.result(ty)
            }
            Op::Cast { x } => self.cast(*x),
            Op::Bitcast { x } => self.bitcast(*x),
            Op::TensorMake { elems } => self.tensor_make(elems),
            Op::TensorGet { tensor, index } => self.result(self.element(self.ty(*tensor), index)?),
            Op::TensorSet {
                tensor,
                index,
                value,
            } => self.tensor_set(*tensor, index, *value),
            Op::MatMul { lhs, rhs } => self.mat_mul(*lhs, *rhs),
            Op::StructMake { members } => self.struct_make(members),
            Op::StructGet { value, member } => self.result(self.member(self.ty(*value), *member)?),
            Op::StructSet {
                base,
                member,
                value,
            } => self.struct_set(*base, *member, *value),
            Op::Threads { op, args } => self.threads(*op, args),
            Op::Local {} | Op::Shared {} | Op::TempAt { .. } => ensure(
                self.results.len() == 1 && self.results[0].pointee().is_some(),
                || "the result is a storage".into(),
            ),
            Op::ElemRef { base, index } => {
                let elem = self.element(self.place(*base)?, index)?;
                self.result(elem.to_ref().expect("a scalar has a storage"))
            }
            Op::MemberRef { base, member } => {
                let ty = self.member(self.place(*base)?, *member)?;
                self.result(ty.to_ref().expect("a member has a storage"))
            }
            Op::FieldAt { field, indices } => self.field_at(*field, indices),
            Op::ArrayAt { array, indices } => self.array_at(*array, indices),
            Op::Load { place } => self.result(self.place(*place)?),
            Op::AwaitTurn {} => self.no_result(),
            Op::Prefetch { place } => {
                self.place(*place)?;
                self.no_result()
            }
            Op::Store { place, value } => self.store(*place, *value),
            Op::Atomic { op, place, value } => self.atomic(*op, *place, *value),
            Op::AtomicAdds { places, values } => self.atomic_adds(places, values),
            Op::Cas {
                place,
                expected,
                value,
            } => self.cas(*place, *expected, *value),
            Op::Update { place, body } => self.update(*place, *body),
            Op::If { cond, .. } => {
                self.values(&self.results)?;
                self.bool(*cond)
            }
            Op::For {
                lo,
                hi,
                step,
                init,
                body,
            } => self.counted_loop(*lo, *hi, *step, init, *body),
            Op::While { init, cond, body } => self.repeated_loop(init, *cond, *body),
            Op::Yield { .. } | Op::Break { .. } | Op::Continue { .. } | Op::Return { .. } => {
                self.no_result()
            }
            Op::Parallel { lo, hi, body, .. } => self.parallel(lo, hi, *body),
            Op::ParallelCells { node, body, .. } => self.parallel_cells(*node, *body),
            Op::Task { .. } | Op::Each { .. } => self.no_result(),
            Op::Cell(op) => self.cell_op(op),
            Op::Node(op) => self.node_op(op),
            Op::PlaceAt { address } => {
                self.is_i64(*address)?;
                ensure(matches!(self.results[..], [Type::RefScalar(_)]), || {
                    "the result is the storage of a scalar".into()
                })
            }
            Op::Grow {
                tree,
                control,
                element,
            } => self.grow(*tree, *control, *element),
            Op::Clear {
                tree,
                address,
                bytes,
            } => self.clear(*tree, *address, *bytes),
            Op::Print { template, args } | Op::Warn { template, args } => {
                self.template(template, args)
            }
            Op::Note {
                kind,
                template,
                args,
            } => self.note(*kind, template, args),
            Op::Assert {
                cond,
                template,
                args,
                ..
            } => self.assert(*cond, template, args),
            Op::RandomState { iteration, .. } => self.random_state(iteration),
            Op::Random {} => ensure(
                self.results.len() == 1 && self.results[0].scalar().is_some(),
                || "the result is a scalar".into(),
            ),
            Op::Call { args, .. } => {
                let types: Vec<Type> = args.iter().map(|&v| self.ty(v)).collect();
                self.values(&types)
            }
        }
    }
}
