//! Information that differentiation needs: where derivatives are stored, and where they stop.

use aerogel_ir::{Arg, Derivative, FieldId, NodeRef, Op, ParamData, ParamType, Value};

use crate::host::{FieldRef, Known};
use crate::lower::calls::Args;
use crate::lower::{Lower, Res, Val};

impl Lower<'_, '_> {
    /// Brings the field of a field's derivatives into the module, if there is one.
    pub(super) fn link_derivative(&mut self, field: &FieldRef, id: FieldId) -> Res<()> {
        let Some(derived) = self.config.derivative.filter(|_| field.elem.is_float()) else {
            return Ok(());
        };
        for &kind in derived.steps() {
            let found = self.host.derivative(field, kind);
            if let Some(other) = self.hosted(found)? {
                let other = self.field(&other)?;
                *self.module.env.fields[id].derivative_mut(kind) = Some(other);
            }
        }
        Ok(())
    }

    /// Brings the fields with derivatives into the module that become zero when a cell of a node becomes inactive.
    pub(super) fn note_emptied(&mut self, node: NodeRef) -> Res<()> {
        let derived = self.config.derivative;
        let Some(&kind) = derived.and_then(|derived| derived.steps().first()) else {
            return Ok(());
        };
        let key = self.naming.trees[node.tree.as_u32() as usize];
        let found = self.host.differentiable_below(key, node.node, kind);
        for field in self.hosted(found)? {
            self.field(&field)?;
        }
        Ok(())
    }

    /// Makes parameters for the derivatives of arrays, behind all others.
    pub(super) fn append_derivatives(&mut self) {
        let Some(derived) = self.config.derivative else {
            return;
        };
        for array in std::mem::take(&mut self.differentiated) {
            let mut all = vec![array];
            for &kind in derived.steps() {
                for k in 0..all.len() {
                    all.push(self.append_derivative(all[k], kind));
                }
            }
        }
    }

    fn append_derivative(&mut self, array: Arg, kind: Derivative) -> Arg {
        let of = &self.state.func.params[array.as_u32() as usize];
        let ParamType::Array { elem, ndim, .. } = of.ty else {
            unreachable!("an array is an array")
        };
        let name = format!("{}_{}", of.name, kind.name());
        let arg = Arg::from_u32(self.state.func.params.len() as u32);
        self.state.func.params.push(ParamData {
            name,
            ty: ParamType::Array {
                elem,
                ndim,
                read_only: false,
            },
            of: Some((kind, array)),
        });
        arg
    }

    /// What a storage holds; a constant to derivatives, if they stop at its field.
    pub(crate) fn load_place(&mut self, place: Value) -> Value {
        let value = self.builder().load(place);
        if self.stopped.is_empty() || !self.is_stopped(place) {
            return value;
        }
        self.stop_gradient(value)
    }

    fn is_stopped(&self, place: Value) -> bool {
        match self.state.func.def_op(place) {
            Some(Op::FieldAt { field, .. }) => self.stopped.contains(field),
            Some(&Op::ElemRef { base, .. } | &Op::MemberRef { base, .. }) => self.is_stopped(base),
            _ => false,
        }
    }

    /// The value, as a constant to derivatives.
    fn stop_gradient(&mut self, x: Value) -> Value {
        let ty = self.ty(x);
        match ty.elem() {
            Some(elem) if elem.is_float() && self.config.derivative.is_some() => {
                self.value(Op::StopGradient { x }, ty)
            }
            _ => x,
        }
    }

    /// `ti.stop_grad(x)`: of a field, whatever is read from it later in the kernel; of a value, the value itself.
    pub(crate) fn stop_grad(&mut self, args: &Args) -> Res<Val> {
        let val = self.arg("stop_grad", args, 0, "x")?.clone();
        match &val {
            Val::Known(Known::Field(field)) => {
                if self.config.derivative.is_some() {
                    let id = self.field(field)?;
                    self.stopped.push(id);
                }
                Ok(val)
            }
            Val::Known(Known::StructField(fields)) => {
                if self.config.derivative.is_some() {
                    for field in fields.leaves() {
                        let id = self.field(&field)?;
                        self.stopped.push(id);
                    }
                }
                Ok(val)
            }
            Val::Known(_) => Ok(val),
            Val::Struct(ty, members) => {
                let mut stopped = Vec::new();
                for member in members.iter() {
                    let member = Args::positional(vec![member.clone()]);
                    stopped.push(self.stop_grad(&member)?);
                }
                Ok(Val::Struct(ty.clone(), stopped.into()))
            }
            _ if self.config.derivative.is_some() => {
                let value = self.load(&val)?;
                Ok(Val::Value(self.stop_gradient(value)))
            }
            _ => Ok(val),
        }
    }
}
