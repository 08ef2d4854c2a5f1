//! Expressions.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{Arg, BinaryOp, CompareOp, Op, Type, UnaryOp, Value};

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
    ScalarType::BF16,
];

/// The elements of larger tensors are not written one by one.
const MOST_WRITTEN: u32 = 8;

/// Another type of the same width.
fn bits(ty: ScalarType) -> ScalarType {
    let same = |other: &&ScalarType| {
        other.is_int() && **other != ty && other.bits() == ty.bits() && **other != ScalarType::U1
    };
    let all = [
        ScalarType::I8,
        ScalarType::U8,
        ScalarType::I16,
        ScalarType::U16,
        ScalarType::I32,
        ScalarType::U32,
        ScalarType::I64,
        ScalarType::U64,
    ];
    *all.iter().find(same).expect("integers of every width")
}

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
        let a = if ty.n_elems() > MOST_WRITTEN {
            let all = self.scalar(elem, 2);
            self.b.splat(all, ty)
        } else {
            let elems = (0..ty.n_elems()).map(|_| self.scalar(elem, 1)).collect();
            self.b.value(Op::TensorMake { elems }, ty)
        };
        let value = self.scalar(elem, 1);
        match self.rng.below(4) {
            0 => a,
            1 => {
                let index = self.tensor_index(ty);
                let set = Op::TensorSet {
                    tensor: a,
                    index,
                    value,
                };
                self.b.value(set, ty)
            }
            2 => {
                let b = self.b.splat(value, ty);
                self.b.binary(BinaryOp::Mul, a, b)
            }
            _ => {
                self.pool.push(a);
                let made = self.elementwise(ty, 1);
                self.pool.pop();
                made
            }
        }
    }

    /// An index of some element of a tensor.
    pub(super) fn tensor_index(&mut self, ty: Type) -> Vec<Value> {
        let extents = ty.shape().into_iter();
        extents.map(|n| self.index(0, n as i32, 1)).collect()
    }

    /// A number, or a tensor of them.
    fn numbers(&mut self, ty: Type, depth: u32) -> Value {
        let elem = ty.elem().expect("numbers have a type");
        match ty.is_tensor() {
            true => self.of_type(ty),
            false => self.scalar(elem, depth),
        }
    }

    /// What some row of the table makes of the elements of numbers or tensors.
    pub(super) fn elementwise(&mut self, ty: Type, depth: u32) -> Value {
        let rows: Vec<&str> = Op::ROWS
            .iter()
            // Only what is differentiated has those, and no pass but that takes them away.
            .filter(|row| row.is_elementwise && row.name != "StopGradient")
            .map(|row| row.name)
            .collect();
        let row = self.rng.pick(&rows);
        self.of_row(row, ty, depth)
    }

    fn of_row(&mut self, row: &str, ty: Type, depth: u32) -> Value {
        let elem = ty.elem().expect("numbers have a type");
        match row {
            "Unary" => {
                let all = UnaryOp::ALL.iter().copied();
                let ops: Vec<UnaryOp> = all.filter(|op| op.takes(elem) && op.is_exact()).collect();
                let op = self.rng.pick(&ops);
                let x = self.numbers(ty, depth);
                self.b.unary(op, x)
            }
            "Binary" => {
                let all = BinaryOp::ALL.iter().copied();
                let ops: Vec<BinaryOp> = all
                    .filter(|op| op.takes(elem) && op.is_exact(elem))
                    .collect();
                let op = self.rng.pick(&ops);
                let (lhs, rhs) = (self.numbers(ty, depth), self.numbers(ty, depth));
                self.b.binary(op, lhs, rhs)
            }
            "Compare" => {
                let truth = self.comparison(ty, depth);
                self.b.cast(truth, ty)
            }
            "Select" => {
                let cond = match self.rng.one_in(2) {
                    true => self.condition(),
                    false => self.comparison(ty, depth),
                };
                let (on_true, on_false) = (self.numbers(ty, depth), self.numbers(ty, depth));
                self.b.select(cond, on_true, on_false)
            }
            "Fma" | "MulAdd" => {
                let of = match elem.is_float() {
                    true => ty,
                    false => ty.with_elem(ScalarType::F32),
                };
                let [a, b, c] = [(); 3].map(|()| self.numbers(of, depth));
                let op = match row {
                    "Fma" => Op::Fma { a, b, c },
                    _ => Op::MulAdd { a, b, c },
                };
                let sum = self.b.value(op, of);
                self.b.cast(sum, ty)
            }
            "Cast" => {
                let from = self.rng.pick(SCALARS);
                let x = self.numbers(ty.with_elem(from), depth);
                self.b.cast(x, ty)
            }
            "Bitcast" => {
                // There and back: which bits a NaN has is open.
                let bits = bits(elem);
                let x = self.numbers(ty, depth);
                let x = self.b.value(Op::Bitcast { x }, ty.with_elem(bits));
                self.b.value(Op::Bitcast { x }, ty)
            }
            other => unreachable!("it is not said how to draw `{other}`"),
        }
    }

    /// The truth of a comparison for each element of tensors of a shape.
    fn comparison(&mut self, shape: Type, depth: u32) -> Value {
        let ty = shape.with_elem(self.rng.pick(SCALARS));
        let (lhs, rhs) = (self.numbers(ty, depth), self.numbers(ty, depth));
        let op = self.rng.pick(CompareOp::ALL);
        self.b.compare(op, lhs, rhs)
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
            0..=3 => self.of_row("Binary", ty.into(), depth - 1),
            9 => self.read(ty),
            _ => self.elementwise(ty.into(), depth - 1),
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
        if ty == ScalarType::I32 && !self.readable.is_empty() && self.rng.one_in(8) {
            let (array, axis) = (Arg::from_u32(2), self.rng.below(2) as u32);
            return self.b.value(Op::ArrayShape { array, axis }, Type::I32);
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
