//! Copies of what a nest of loops computes, where another nest takes its place.

use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::LookupMap;
use aerogel_ir::{Builder, Inst, Type, Value};

/// Copies of what a nest computes.
#[derive(Clone)]
pub(super) struct Copies<'a> {
    inside: &'a SecondaryMap<Value, bool>,
    pub(super) made: LookupMap<Value, Value>,
}

impl<'a> Copies<'a> {
    pub(super) fn new(inside: &'a SecondaryMap<Value, bool>) -> Self {
        Self {
            inside,
            made: LookupMap::default(),
        }
    }

    /// A copy of a value, with what it is made of; itself if it is made outside of the nest.
    pub(super) fn value(&mut self, b: &mut Builder<'_>, value: Value) -> Value {
        if let Some(&made) = self.made.get(&value) {
            return made;
        }
        if !self.inside[value] {
            return value;
        }
        let inst = b.func.def(value).expect("counters are there");
        self.inst(b, inst);
        self.copy_of(value)
    }

    fn copy_of(&self, value: Value) -> Value {
        *self.made.get(&value).expect("it was copied")
    }

    /// A copy of an instruction.
    pub(super) fn inst(&mut self, b: &mut Builder<'_>, inst: Inst) {
        let data = b.func.insts[inst].clone();
        let mut op = data.op;
        let mut operands = Vec::new();
        op.operands(|v| operands.push(v));
        for v in operands {
            let copy = self.value(b, v);
            self.made.insert(v, copy);
        }
        op.map_operands(|v| self.copy_of(v));
        let types: Vec<Type> = data.results.iter().map(|&r| b.func.ty(r)).collect();
        let outer = std::mem::replace(&mut b.span, data.span);
        let copy = b.inst(op, &types);
        b.span = outer;
        for (&old, &new) in data.results.iter().zip(&b.func.insts[copy].results) {
            self.made.insert(old, new);
        }
    }
}
