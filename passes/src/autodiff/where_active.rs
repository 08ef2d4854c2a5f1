//! The backward pass activates no cells: adjoints are read and written only in active cells (`there.rs`).

use aerogel_base::Scalar;
use aerogel_ir::analysis::access::constant_element;
use aerogel_ir::{BinaryOp, CompareOp, FieldId, Op, Type, Value};

use super::reverse::Reverse;
use super::storage::{Memory, indices};
use super::there::{Group, groups, is_there};

impl Reverse<'_, '_> {
    /// Does something with the adjoints of a place where there are any.
    pub(super) fn where_active(
        &mut self,
        place: Value,
        memory: Memory,
        write: impl FnOnce(&mut Self),
    ) {
        let Memory::Field(_, Some(field)) = memory else {
            return write(self);
        };
        let groups = groups(self.cx.env, field);
        if groups.iter().all(|(node, _)| node.is_none()) {
            return write(self);
        }
        let func = self.cx.func;
        let named = indices(func, place).iter().map(|&v| self.now(v));
        let named: Vec<Value> = named.collect();
        let (base, component) = match func.def_op(place) {
            Some(Op::ElemRef { base, index }) => (*base, &index[..]),
            _ => (place, &[][..]),
        };
        let known = match component {
            [] => None,
            index => constant_element(func, base, index),
        };
        let cond = match (&groups[..], known) {
            (&[(node, _)], _) => {
                node.map(|node| is_there(&mut self.b, self.cx.env, field, node, &named))
            }
            (all, Some(k)) => {
                let own = all.iter().find(|(_, components)| components.contains(&k));
                let node = own.and_then(|(node, _)| *node);
                node.map(|node| is_there(&mut self.b, self.cx.env, field, node, &named))
            }
            (all, None) => {
                let shape = func.ty(base).pointee().map_or_else(Vec::new, Type::shape);
                let number = self.number(component, &shape);
                Some(self.is_any_there(field, all, number, &named))
            }
        };
        self.if_there(cond, write);
    }

    fn if_there(&mut self, cond: Option<Value>, write: impl FnOnce(&mut Self)) {
        let Some(cond) = cond else {
            return write(self);
        };
        let then = self.inside(&[], |pass, _| write(pass));
        let otherwise = self.b.region(&[], |_, _| ());
        self.b.effect(Op::If {
            cond,
            then,
            otherwise,
        });
    }

    /// The number of a component that indices name; none if they name all.
    fn number(&mut self, index: &[Value], shape: &[u32]) -> Option<Value> {
        let mut number = None;
        for (&v, &extent) in index.iter().zip(shape) {
            let v = self.now(v);
            let v = self.b.cast(v, Type::I32);
            number = Some(match number {
                None => v,
                Some(so_far) => {
                    let extent = self.b.constant(Scalar::i32(extent as i32));
                    let rows = self.b.binary(BinaryOp::Mul, so_far, extent);
                    self.b.binary(BinaryOp::Add, rows, v)
                }
            });
        }
        number
    }

    /// Whether the component with a number is there; of a whole element, whether all are.
    fn is_any_there(
        &mut self,
        field: FieldId,
        groups: &[Group],
        number: Option<Value>,
        named: &[Value],
    ) -> Value {
        let mut all = self.b.constant(Scalar::bool(number.is_none()));
        for (node, components) in groups {
            let there = match *node {
                Some(node) => is_there(&mut self.b, self.cx.env, field, node, named),
                None => self.b.constant(Scalar::bool(true)),
            };
            let Some(number) = number else {
                all = self.b.binary(BinaryOp::And, all, there);
                continue;
            };
            for &k in components {
                let k = self.b.constant(Scalar::i32(k as i32));
                let is_it = self.b.compare(CompareOp::Eq, number, k);
                let here = self.b.binary(BinaryOp::And, is_it, there);
                all = self.b.binary(BinaryOp::Or, all, here);
            }
        }
        all
    }
}
