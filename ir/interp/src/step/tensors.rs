//! The elements of tensors and the members of structs.

use aerogel_base::Scalar;
use aerogel_ir::{BinaryOp, Op, Type, Value, eval};

use super::Machine;
use crate::value::Val;

impl Machine<'_> {
    /// Applies an instruction to each element of its operands; a scalar is the same for all.
    pub(super) fn elementwise(&self, op: &Op, ty: Type) -> Val {
        let to = ty.elem().expect("a result with elements");
        let mut operands = Vec::new();
        op.operands(|v| operands.push(self.val(v).scalars()));
        let n = operands.iter().map(Vec::len).max().unwrap_or(0);
        let results = (0..n).map(|k| {
            let each = operands.iter().map(|all| all[k.min(all.len() - 1)]);
            let each: Vec<Scalar> = each.collect();
            eval::pure(op, &each, to).expect("an elementwise instruction")
        });
        Val::Scalars(results.collect())
    }

    /// The number of a tensor's element; none outside.
    pub(super) fn element(&self, tensor: Type, index: &[Value]) -> Option<usize> {
        let mut linear = 0;
        for (i, extent) in self.ints(index).into_iter().zip(tensor.shape()) {
            let i = u32::try_from(i).ok().filter(|&i| i < extent)?;
            linear = linear * extent as usize + i as usize;
        }
        Some(linear)
    }

    pub(super) fn member(&self, ty: Type, member: u32) -> std::ops::Range<usize> {
        let Type::Struct(id) = ty else {
            unreachable!("the verifier checked that this is a struct")
        };
        let sizes: Vec<usize> = self
            .module
            .env
            .members(id)
            .iter()
            .map(|m| self.scalars_of(m.1).len())
            .collect();
        let start: usize = sizes[..member as usize].iter().sum();
        start..start + sizes[member as usize]
    }

    pub(super) fn matmul(&self, lhs: Value, rhs: Value) -> Val {
        let func = self.func();
        let Type::Mat(n, m, elem) = func.ty(lhs) else {
            unreachable!("the left operand is a matrix")
        };
        let k = if let Type::Mat(_, k, _) = func.ty(rhs) {
            k
        } else {
            1
        };
        let (a, b) = (self.val(lhs).scalars(), self.val(rhs).scalars());
        let mut out = Vec::new();
        for row in 0..n {
            for column in 0..k {
                let products = (0..m).map(|i| {
                    eval::binary(
                        BinaryOp::Mul,
                        a[(row * m + i) as usize],
                        b[(i * k + column) as usize],
                    )
                });
                out.push(
                    products
                        .reduce(|x, y| eval::binary(BinaryOp::Add, x, y))
                        .unwrap_or(Scalar::zero(elem)),
                );
            }
        }
        Val::Scalars(out)
    }
}
