//! Storages of aggregates: what stands for their elements and members.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{BinaryOp, Builder, Function, Op, Type, Value};

use super::Scalarize;

impl Scalarize<'_> {
    /// The storages of an aggregate storage's scalars.
    pub(super) fn places(&mut self, b: &mut Builder<'_>, place: Value) -> Vec<Value> {
        if let Some(parts) = &self.parts[place]
            && parts.as_slice() != [place]
        {
            return parts.clone();
        }
        let Some(ty) = b.func.ty(place).pointee().filter(|t| t.is_tensor()) else {
            return vec![place];
        };
        let elem = Type::Scalar(ty.elem().expect("a tensor has elements"))
            .to_ref()
            .expect("a scalar has a storage");
        (0..ty.n_elems())
            .map(|k| {
                let index = self.index_of(b, ty, k);
                b.value(Op::ElemRef { base: place, index }, elem)
            })
            .collect()
    }

    /// Constant indices of the `k`-th element.
    pub(super) fn index_of(&mut self, b: &mut Builder<'_>, ty: Type, k: u32) -> Vec<Value> {
        let index = if let Type::Mat(_, m, _) = ty {
            vec![k / m, k % m]
        } else {
            vec![k]
        };
        index
            .into_iter()
            .map(|i| b.constant(Scalar::i32(i as i32)))
            .collect()
    }

    /// The number of the element that constant indices name; none if they are no constants or lie
    /// outside (the frontend refuses those).
    pub(super) fn linear(&self, func: &Function, ty: Type, index: &[Value]) -> Option<usize> {
        let mut linear = 0;
        for (&i, extent) in index.iter().zip(ty.shape()) {
            let i = u32::try_from(func.as_const(self.one(i))?.as_i128())
                .ok()
                .filter(|&i| i < extent)?;
            linear = linear * extent + i;
        }
        Some(linear as usize)
    }

    /// A tensor value written to memory, for an index that is no constant.
    pub(super) fn spill(&mut self, b: &mut Builder<'_>, tensor: Value) -> Value {
        let ty = b.func.ty(tensor);
        let place = b.value(Op::Local {}, ty.to_ref().expect("a tensor has a storage"));
        let places = self.places(b, place);
        for (place, value) in places.into_iter().zip(self.of(tensor)) {
            b.effect(Op::Store { place, value });
        }
        place
    }

    /// The members of a struct before `member`, counted in scalars, and the member's own.
    pub(super) fn member_range(&self, ty: Type, member: u32) -> std::ops::Range<usize> {
        let Type::Struct(id) = ty else {
            unreachable!("{ty} is a struct")
        };
        let sizes: Vec<usize> = self
            .env
            .members(id)
            .iter()
            .map(|m| self.scalars(m.1).len())
            .collect();
        let start: usize = sizes[..member as usize].iter().sum();
        start..start + sizes[member as usize]
    }

    pub(super) fn load_parts(&mut self, b: &mut Builder<'_>, place: Value) -> Vec<Value> {
        let places = self.places(b, place);
        places
            .into_iter()
            .map(|place| {
                let ty = b.func.ty(place).pointee().expect("a storage");
                b.value(Op::Load { place }, ty)
            })
            .collect()
    }

    pub(super) fn elem_ref(
        &mut self,
        b: &mut Builder<'_>,
        base: Value,
        index: &[Value],
        tensor: Type,
    ) -> Value {
        let ty = Type::Scalar(tensor.elem().expect("a tensor has elements"))
            .to_ref()
            .expect("a scalar has a storage");
        let index = index.iter().map(|&i| self.one(i)).collect();
        b.value(Op::ElemRef { base, index }, ty)
    }

    /// The storage among `parts` that indices name.
    pub(super) fn select_place(
        &mut self,
        b: &mut Builder<'_>,
        parts: &[Value],
        index: &[Value],
        tensor: Type,
    ) -> Value {
        let mut linear = self.one(index[0]);
        if let [_, column] = *index {
            // Indices need not be of one type.
            let [row, column] = [linear, self.one(column)].map(|x| match b.func.ty(x) {
                Type::I64 => x,
                _ => b.value(Op::Cast { x }, Type::I64),
            });
            let m = i128::from(tensor.shape()[1]);
            let rhs = b.constant(Scalar::int(ScalarType::I64, m));
            let product = Op::Binary {
                op: BinaryOp::Mul,
                lhs: row,
                rhs,
            };
            let sum = Op::Binary {
                op: BinaryOp::Add,
                lhs: b.value(product, Type::I64),
                rhs: column,
            };
            linear = b.value(sum, Type::I64);
        }
        let mut place = parts[0];
        for (k, &part) in parts.iter().enumerate().skip(1) {
            let rhs = b.constant(Scalar::int(b.func.elem(linear), k as i128));
            let cond = b.value(
                Op::Compare {
                    op: aerogel_ir::CompareOp::Eq,
                    lhs: linear,
                    rhs,
                },
                Type::Scalar(ScalarType::U1),
            );
            let ty = b.func.ty(part);
            place = b.value(
                Op::Select {
                    cond,
                    on_true: part,
                    on_false: place,
                },
                ty,
            );
        }
        place
    }

    pub(super) fn scalar_locals(&mut self, b: &mut Builder<'_>, ty: Type) -> Vec<Value> {
        self.scalars(ty)
            .into_iter()
            .map(|t| b.value(Op::Local {}, t.to_ref().expect("a scalar has a storage")))
            .collect()
    }

    pub(super) fn struct_places(
        &mut self,
        b: &mut Builder<'_>,
        id: aerogel_ir::StructId,
        dynamic: bool,
    ) -> Vec<Value> {
        let members: Vec<Type> = self.env.members(id).iter().map(|m| m.1).collect();
        let mut places = Vec::new();
        for ty in members {
            match ty {
                Type::Struct(inner) => places.extend(self.struct_places(b, inner, dynamic)),
                Type::Vec(..) | Type::Mat(..) if dynamic => {
                    let place = b.value(Op::Local {}, ty.to_ref().expect("a tensor has a storage"));
                    places.extend(self.places(b, place));
                }
                _ => places.extend(self.scalar_locals(b, ty)),
            }
        }
        places
    }
}
