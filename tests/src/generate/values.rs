//! Expressions.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{BinaryOp, CompareOp, Op, Type, UnaryOp, Value};

use super::Generator;

pub(super) const SCALARS: &[ScalarType] = &[
    ScalarType::I32,
    ScalarType::F32,
    ScalarType::I32,
    ScalarType::F32,
    ScalarType::U8,
    ScalarType::I64,
    ScalarType::F64,
    ScalarType::U32,
    ScalarType::I16,
    ScalarType::U64,
    ScalarType::F16,
];

impl Generator<'_> {
    /// A value of any type.
    pub(super) fn of_type(&mut self, ty: Type) -> Value {
        let same: Vec<Value> = self
            .pool
            .iter()
            .copied()
            .filter(|&v| self.b.func.ty(v) == ty)
            .collect();
        match ty.elem() {
            Some(elem) if !ty.is_tensor() => self.scalar(elem, 3),
            _ if !same.is_empty() && self.rng.one_in(2) => self.rng.pick(&same),
            Some(elem) => self.tensor(ty, elem),
            None => {
                let members = vec![
                    self.of_type(Type::Mat(2, 2, ScalarType::I32)),
                    self.scalar(ScalarType::I16, 1),
                ];
                self.b.value(Op::StructMake { members }, ty)
            }
        }
    }

    fn tensor(&mut self, ty: Type, elem: ScalarType) -> Value {
        let elems = (0..ty.n_elems()).map(|_| self.scalar(elem, 2)).collect();
        let a = self.b.value(Op::TensorMake { elems }, ty);
        let b = self.scalar(elem, 1);
        if self.rng.one_in(3) {
            let index = ty
                .shape()
                .into_iter()
                .map(|n| self.index(0, n as i32, 1))
                .collect();
            let set = Op::TensorSet {
                tensor: a,
                index,
                value: b,
            };
            return self.b.value(set, ty);
        }
        let b = self.b.splat(b, ty);
        self.b.binary(BinaryOp::Mul, a, b)
    }

    pub(super) fn condition(&mut self) -> Value {
        let ty = self.rng.pick(SCALARS);
        let (lhs, rhs) = (self.scalar(ty, 2), self.scalar(ty, 1));
        let op = self.rng.pick(CompareOp::ALL);
        self.b.compare(op, lhs, rhs)
    }

    pub(super) fn scalar(&mut self, ty: ScalarType, depth: u32) -> Value {
        if depth == 0 || self.rng.one_in(4) {
            return self.leaf(ty);
        }
        match self.rng.below(10) {
            0..=4 => {
                let ops: &[BinaryOp] = if ty.is_float() {
                    &[
                        BinaryOp::Add,
                        BinaryOp::Sub,
                        BinaryOp::Mul,
                        BinaryOp::Div,
                        BinaryOp::Min,
                        BinaryOp::Max,
                    ]
                } else {
                    use BinaryOp::*;
                    &[
                        Add, Sub, Mul, FloorDiv, Mod, Div, Rem, Min, Max, And, Or, Xor, Shl, Shr,
                        UShr, Pow,
                    ]
                };
                let op = self.rng.pick(ops);
                let (lhs, rhs) = (self.scalar(ty, depth - 1), self.scalar(ty, depth - 1));
                self.b.binary(op, lhs, rhs)
            }
            5 => {
                let ops: &[UnaryOp] = if ty.is_float() {
                    &[
                        UnaryOp::Neg,
                        UnaryOp::Abs,
                        UnaryOp::Floor,
                        UnaryOp::Ceil,
                        UnaryOp::Sqrt,
                        UnaryOp::Round,
                        UnaryOp::Trunc,
                        UnaryOp::Sign,
                    ]
                } else {
                    &[
                        UnaryOp::Neg,
                        UnaryOp::Abs,
                        UnaryOp::Not,
                        UnaryOp::Popcnt,
                        UnaryOp::Clz,
                        UnaryOp::Sign,
                    ]
                };
                let op = self.rng.pick(ops);
                let x = self.scalar(ty, depth - 1);
                self.b.unary(op, x)
            }
            6 => {
                let cond = self.condition();
                let (on_true, on_false) = (self.scalar(ty, depth - 1), self.scalar(ty, depth - 1));
                self.b.value(
                    Op::Select {
                        cond,
                        on_true,
                        on_false,
                    },
                    ty.into(),
                )
            }
            7 | 8 => {
                let from = self.rng.pick(SCALARS);
                let x = self.scalar(from, depth - 1);
                self.b.cast(x, ty.into())
            }
            _ => self.read(ty),
        }
    }

    /// A number from a field or an array.
    fn read(&mut self, ty: ScalarType) -> Value {
        if self.readable.is_empty() {
            return self.leaf(ty);
        }
        let place = if self.rng.one_in(4) {
            self.array_place()
        } else {
            let field = self.rng.pick(&self.readable.clone());
            let indices = self.indices(0);
            self.place(field, indices)
        };
        let tensor = self.b.load(place);
        let found = self.b.func.ty(tensor);
        let one = if found.is_tensor() {
            let index = vec![self.b.i32(self.rng.below(3) as i32)];
            let elem = found.elem().expect("a tensor has elements");
            self.b.value(Op::TensorGet { tensor, index }, elem.into())
        } else {
            tensor
        };
        self.b.cast(one, ty.into())
    }

    fn leaf(&mut self, ty: ScalarType) -> Value {
        let same: Vec<Value> = self
            .pool
            .iter()
            .copied()
            .filter(|&v| self.b.func.ty(v) == Type::Scalar(ty))
            .collect();
        if !same.is_empty() && !self.rng.one_in(4) {
            return self.rng.pick(&same);
        }
        let locals: Vec<Value> = self
            .locals
            .iter()
            .copied()
            .filter(|&l| self.b.func.ty(l) == Type::RefScalar(ty))
            .collect();
        if !locals.is_empty() && self.rng.one_in(2) {
            let local = self.rng.pick(&locals);
            return self.b.load(local);
        }
        let small = self.rng.below(12) as i128 - 4;
        let value = if ty.is_float() {
            Scalar::float(
                ty,
                self.rng.pick(&[small as f64, small as f64 * 0.3, 1e6, 0.5]),
            )
        } else {
            let edge = if ty.is_signed() {
                1i128 << (ty.bits() - 1)
            } else {
                -1
            };
            Scalar::int(ty, self.rng.pick(&[small, small, small, edge, 7]))
        };
        self.b.constant(value)
    }
}
