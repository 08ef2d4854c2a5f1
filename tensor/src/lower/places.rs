//! The storage of elements: indices, brought in bounds as their loads and stores state (clamped, wrapped, ...).

use aerogel_base::{AssertKind, ScalarType};
use aerogel_ir::{Arg, BinaryOp, Builder, CompareOp, FieldId, Op, Type, Value};

use super::{Lower, Parameter};
use crate::ir::{Buffer, Dim, DimDef, Expr, ExprDef, Outside};

impl Lower<'_, '_> {
    /// An element's storage, at indices in bounds, and whether it is accessed at all.
    pub(super) fn place(
        &mut self,
        buffer: Buffer,
        index: &[Expr],
        outside: Outside,
    ) -> (Op, Option<Value>) {
        let (mut indices, inside) = self.indices(buffer, index, outside);
        if let Some(number) = self.names.fields.get_index_of(&buffer) {
            let field = FieldId::from_u32(number as u32);
            return (Op::FieldAt { field, indices }, inside);
        }
        if indices.is_empty() {
            indices.push(self.b.i32(0));
        }
        let array = self.array(buffer);
        (Op::ArrayAt { array, indices }, inside)
    }

    fn array(&self, buffer: Buffer) -> Arg {
        let number = self.names.buffers.get_index_of(&buffer);
        Arg::from_u32(number.expect("it is named") as u32)
    }

    /// The size of a buffer along an axis.
    fn extent_of(&mut self, buffer: Buffer, axis: usize) -> Value {
        let dim = self.program.buffers[buffer].shape[axis];
        let is_named = self.scalars.contains_key(&Parameter::Extent(dim));
        if is_named || self.program.const_dim(dim).is_some() {
            return self.extent(dim);
        }
        let array = self.array(buffer);
        let axis = axis as u32;
        self.b.value(Op::ArrayShape { array, axis }, Type::I32)
    }

    fn indices(
        &mut self,
        buffer: Buffer,
        index: &[Expr],
        outside: Outside,
    ) -> (Vec<Value>, Option<Value>) {
        let mut inside: Option<Value> = None;
        let mut indices = Vec::new();
        for (axis, &e) in index.iter().enumerate() {
            let i = self.expr(e);
            if outside == Outside::Never || self.is_inside(buffer, axis, e) {
                indices.push(i);
                continue;
            }
            let extent = self.extent_of(buffer, axis);
            let (zero, one) = (self.b.i32(0), self.b.i32(1));
            let last = self.b.binary(BinaryOp::Sub, extent, one);
            let clamped = |b: &mut Builder<'_>| {
                let low = b.binary(BinaryOp::Min, i, last);
                b.binary(BinaryOp::Max, low, zero)
            };
            let index = match outside {
                Outside::Never => i,
                Outside::Clamp | Outside::Wrap => {
                    let dim = self.program.buffers[buffer].shape[axis];
                    if !self.program.surely_has(dim, 0) {
                        // Of nothing, no element is nearest.
                        let some = self.b.compare(CompareOp::Gt, extent, zero);
                        inside = Some(self.both(inside, some));
                    }
                    match outside {
                        Outside::Clamp => clamped(&mut self.b),
                        _ => match self.turned(e, dim) {
                            Some(turned) => turned,
                            None => self.b.binary(BinaryOp::Mod, i, extent),
                        },
                    }
                }
                Outside::Zero | Outside::Error(_) => {
                    let low = self.b.compare(CompareOp::Ge, i, zero);
                    let high = self.b.compare(CompareOp::Lt, i, extent);
                    let both = self.b.binary(BinaryOp::And, low, high);
                    if let Outside::Error(site) = outside {
                        let site = self.sites.insert_full(site).0;
                        let [site, axis] = [site, axis].map(|n| self.b.i32(n as i32));
                        self.b.effect(Op::Assert {
                            cond: both,
                            kind: AssertKind::TensorBounds,
                            template: "access {}: axis {}, index {}, size {}".to_owned(),
                            args: vec![site, axis, i, extent],
                        });
                        i
                    } else {
                        inside = Some(self.both(inside, both));
                        clamped(&mut self.b)
                    }
                }
            };
            indices.push(index);
        }
        (indices, inside)
    }

    fn both(&mut self, before: Option<Value>, cond: Value) -> Value {
        match before {
            Some(before) => self.b.binary(BinaryOp::And, before, cond),
            None => cond,
        }
    }

    /// An index of an axis, shifted and wrapped at an equal size, without a division at each point.
    pub(super) fn turned(&mut self, moved: Expr, dim: Dim) -> Option<Value> {
        let exprs = &self.program.exprs;
        let ExprDef::Binary(BinaryOp::Add, at, by) = exprs[moved] else {
            return None;
        };
        let is_own = matches!(exprs[at], ExprDef::Axis(k) if self.domain[k as usize] == dim);
        let is_same_everywhere = match exprs[by] {
            ExprDef::Const(_) => true,
            ExprDef::Var(var, _) => !self.vars.contains_key(&var),
            _ => false,
        };
        if !is_own || !is_same_everywhere {
            return None;
        }
        let constant = match exprs[by] {
            ExprDef::Const(by) => i32::try_from(by.as_i128()).ok(),
            _ => None,
        };
        let [at, by] = [at, by].map(|e| self.expr(e));
        let extent = self.extent(dim);
        // The inside of a row lies behind a number that is known to be small, or before one that is known to be near the end.
        let (turns, before, around) = match constant.and_then(i32::checked_neg) {
            Some(back @ 1..) => {
                let back = self.b.i32(back);
                let back = self.b.binary(BinaryOp::Mod, back, extent);
                let rest = self.b.binary(BinaryOp::Sub, extent, back);
                let before = self.b.binary(BinaryOp::Add, at, rest);
                (back, before, self.b.binary(BinaryOp::Sub, at, back))
            }
            _ => {
                let by = self.b.binary(BinaryOp::Mod, by, extent);
                let rest = self.b.binary(BinaryOp::Sub, extent, by);
                let before = self.b.binary(BinaryOp::Add, at, by);
                (rest, before, self.b.binary(BinaryOp::Sub, at, rest))
            }
        };
        let is_before = self.b.compare(CompareOp::Lt, at, turns);
        Some(self.b.select(is_before, before, around))
    }

    /// The size that an expression stands for.
    pub(super) fn dim_of(&self, e: Expr) -> Option<Dim> {
        match self.program.exprs[e] {
            ExprDef::Extent(dim) => Some(dim),
            ExprDef::Const(n) if n.ty() == ScalarType::I32 => {
                let n = u64::try_from(n.as_i128()).ok()?;
                let at = self.program.dims.get_index_of(&DimDef::Const(n))?;
                Some(Dim::from_u32(at as u32))
            }
            _ => None,
        }
    }

    /// Whether an index is an axis of the domain as long as the buffer's, or a constant inside it.
    pub(super) fn is_inside(&self, buffer: Buffer, axis: usize, e: Expr) -> bool {
        let dim = self.program.buffers[buffer].shape[axis];
        match &self.program.exprs[e] {
            ExprDef::Axis(k) => self.domain[*k as usize] == dim,
            ExprDef::Const(value) => self.program.surely_has(dim, value.as_i128()),
            _ => false,
        }
    }
}
