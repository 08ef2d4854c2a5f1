//! Reads of memory in lanes (`reads.rs`).

use aerogel_base::ScalarType;
use aerogel_ir::{Inst, NodeOp, Op, ParamType, Type, Value};

use super::emit::{Lanes, Mask};
use super::reads::is_address;
use crate::builder::{Opcode, Val};
use crate::types::stored;

/// Where something is: at a distance from `base` that is the same in all lanes, and one of each lane's own.
struct Spot<'ctx> {
    base: Val<'ctx>,
    distance: Val<'ctx>,
    own: Option<Val<'ctx>>,
}

impl<'ctx> Lanes<'_, '_, '_, 'ctx> {
    /// Whether a number is the same in all active lanes, and known as one scalar.
    pub(super) fn is_same(&self, value: Value) -> bool {
        self.reads && !self.has(value)
    }

    /// Computes an instruction of the same numbers once; whether it is one.
    pub(super) fn once(&mut self, inst: Inst) -> bool {
        let op = &self.func[inst];
        if !self.reads || !op.is_elementwise() && !matches!(op, Op::Const { .. }) {
            return false;
        }
        let mut same = true;
        op.operands(|v| same &= self.is_same(v));
        if same {
            self.f.inst(inst);
        }
        same
    }

    /// Whether an instruction is part of an address, which is computed where it is used.
    pub(super) fn is_address(&self, inst: Inst) -> bool {
        self.reads && is_address(&self.func[inst])
    }

    /// The numbers at a place, in the lanes of `mask`.
    pub(super) fn read(&mut self, inst: Inst, place: Value, mask: Mask<'ctx>) {
        let result = self.func.insts[inst].results[0];
        let ty = self.func.elem(result);
        let spot = self.spot(place);
        let mut base = self.b().offset(spot.base, spot.distance);
        if let Some(mask) = mask.filter(|&mask| self.present != Some(mask)) {
            let any = self.any(mask);
            let anything = self.f.zero_word();
            base = self.b().select(any, base, anything);
        }
        let number = stored(self.b().ctx, ty);
        let Some(own) = spot.own else {
            let (value, _) = self.b().load(number, base);
            let value = self.b().of_stored(ty, value);
            self.f.values[result] = Some(value);
            return;
        };
        let own = match mask {
            Some(_) => self.merge(mask, own, own.get_type().const_zero()),
            None => own,
        };
        let all = self.b().vector_type(number, self.width);
        let mut made = crate::builder::undef(all);
        for lane in 0..self.width {
            let at = self.b().extract(own, lane);
            let at = self.b().extend(ScalarType::I32, at, 64);
            let place = self.b().offset(base, at);
            let (value, _) = self.b().load(number, place);
            made = self.b().insert(made, value, lane);
        }
        let made = self.b().of_stored(ty, made);
        self.define(result, made);
    }

    fn spot(&mut self, place: Value) -> Spot<'ctx> {
        let func = self.func;
        let (op, zero) = (func.def_op(place), self.b().i64(0));
        match op.expect("`can` was checked") {
            Op::Node(NodeOp::Root { tree }) => Spot {
                base: self.f.root(*tree),
                distance: zero,
                own: None,
            },
            &Op::Node(NodeOp::Child { node, cell }) => {
                let spot = self.spot(cell);
                let at = self.f.module.env.trees[node.tree][node.node].offset_in_cell;
                self.moved(spot, at as i64)
            }
            &Op::Node(NodeOp::Lookup {
                node,
                container,
                index,
            }) => {
                let mut spot = self.spot(container);
                let Some(Op::Node(NodeOp::Linearize { coords, .. })) = func.def_op(index) else {
                    unreachable!("`can` was checked")
                };
                let tree = &self.f.module.env.trees[node.tree];
                let is_small = tree.byte_size() < 1 << 31;
                let mut strides = vec![tree[node.node].cell_size as i64];
                for axis in tree[node.node].axes.iter().skip(1).rev() {
                    strides.push(strides[strides.len() - 1] * i64::from(axis.extent));
                }
                for (&coord, stride) in coords.iter().zip(strides.into_iter().rev()) {
                    let stride = self.b().i64(stride);
                    self.step(&mut spot, coord, stride, is_small);
                }
                spot
            }
            Op::ArrayAt { array, indices } => {
                let ParamType::Array { elem, .. } = func.params[array.as_u32() as usize].ty else {
                    unreachable!("{array} is an array")
                };
                let bytes = elem.n_elems() * elem.elem().expect("arrays hold numbers").bytes();
                let mut spot = Spot {
                    base: self.f.array_address(*array),
                    distance: zero,
                    own: None,
                };
                let mut stride = self.b().i64(i64::from(bytes));
                for (axis, &index) in indices.iter().enumerate().rev() {
                    self.step(&mut spot, index, stride, false);
                    if axis > 0 {
                        let size = self.f.array_extent(*array, axis as u32);
                        stride = self.b().nsw(Opcode::Mul, stride, size);
                    }
                }
                spot
            }
            Op::ElemRef { base, index } => {
                let spot = self.spot(*base);
                let number = func
                    .as_const(index[0])
                    .expect("`can` was checked")
                    .as_i128();
                let ty = func.ty(place).pointee().and_then(Type::scalar);
                let bytes = i64::from(ty.expect("an element is a number").bytes());
                self.moved(spot, number as i64 * bytes)
            }
            _ => unreachable!("`can` was checked"),
        }
    }

    fn moved(&self, spot: Spot<'ctx>, by: i64) -> Spot<'ctx> {
        let by = self.b().i64(by);
        let distance = self.b().nsw(Opcode::Add, spot.distance, by);
        Spot { distance, ..spot }
    }

    /// Advances by `index` times `stride` bytes. If all distances fit 32 bits, lanes compute with these.
    fn step(&mut self, spot: &mut Spot<'ctx>, index: Value, stride: Val<'ctx>, is_small: bool) {
        let elem = self.func.elem(index);
        if self.is_same(index) {
            let index = self.f.index(index);
            let by = self.b().nsw(Opcode::Mul, index, stride);
            spot.distance = self.b().nsw(Opcode::Add, spot.distance, by);
            return;
        }
        let bits = if is_small { 32 } else { 64 };
        let index = self.value(index);
        let index = self.b().extend(elem, index, bits);
        let stride = self.b().extend(ScalarType::I64, stride, bits);
        let stride = self.b().splat(stride, self.width);
        let by = self.b().op(Opcode::Mul, index, stride);
        spot.own = Some(match spot.own {
            Some(own) => self.b().op(Opcode::Add, own, by),
            None => by,
        });
    }
}
