//! Run-time tests whether the indices of an access are in bounds, where that is not proved.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::analysis::Interval;
use aerogel_ir::{AssertKind, BinaryOp, Builder, CompareOp, Function, Op, Type, Value};

use super::{Cells, Target};
use crate::bounds_check::valid_indices;

/// For each index whether it is inside; none if that is certain.
pub(super) struct Inside(Vec<Option<Value>>);

impl Inside {
    pub(super) fn all(&self, cursor: &mut Builder<'_>) -> Option<Value> {
        let conditions = self.0.iter().copied().flatten();
        conditions.reduce(|lhs, rhs| and(cursor, lhs, rhs))
    }

    /// The indices, with 0 for those outside.
    pub(super) fn clamp(&self, cursor: &mut Builder<'_>, indices: &[Value]) -> Vec<Value> {
        let pairs = indices.iter().zip(&self.0);
        pairs
            .map(|(&index, &inside)| or_zero(cursor, inside, index))
            .collect()
    }
}

impl Cells {
    /// Whether each index is inside the tree, where levels deeper than `from` rely on it; none if that
    /// is certain. Only what no level above divides can lead outside.
    pub(super) fn are_inside(
        &self,
        cursor: &mut Builder<'_>,
        target: &Target<'_>,
        from: usize,
    ) -> Inside {
        let mut axes = vec![None; target.indices.len()];
        let levels = &target.path.levels;
        let unchecked = levels[from + 1..].iter().flat_map(|l| &l.axes);
        for axis in unchecked.filter(|a| !a.wraps) {
            let index = target.indices[axis.index];
            let extent = i128::from(axis.divisor * axis.extent);
            let Interval { lo, hi } = self.range(cursor.func, index);
            let elem = cursor.func.elem(index);
            let mut bounds = Vec::new();
            if lo < 0 {
                bounds.push((CompareOp::Ge, 0));
            }
            if hi >= extent {
                bounds.push((CompareOp::Lt, extent));
            }
            let mut all = None;
            for (op, bound) in bounds {
                let rhs = cursor.constant(Scalar::int(elem, bound));
                let lhs = index;
                let ok = cursor.value(Op::Compare { op, lhs, rhs }, Type::BOOL);
                all = Some(all.map_or(ok, |all| and(cursor, all, ok)));
            }
            axes[axis.index] = all;
        }
        Inside(axes)
    }

    /// Between which numbers an index lies.
    fn range(&self, func: &Function, index: Value) -> Interval {
        let all = Interval::of_type(match func.elem(index).bits() {
            32 => ScalarType::I32,
            _ => ScalarType::I64,
        });
        if let Some(bound) = self.below[index] {
            return Interval {
                lo: 0,
                hi: bound - 1,
            };
        }
        let (base, constant) = match func.def_op(index) {
            Some(Op::Const { value }) => return Interval::point(value.as_i128()),
            Some(&Op::Binary { op, lhs, rhs }) => {
                let constant = |v: Value| func.as_const(v).map(Scalar::as_i128);
                match (op, constant(lhs), constant(rhs)) {
                    (BinaryOp::Add, Some(c), None) => (rhs, c),
                    (BinaryOp::Add, None, Some(c)) => (lhs, c),
                    (BinaryOp::Sub, None, Some(c)) => (lhs, -c),
                    _ => return all,
                }
            }
            _ => return all,
        };
        let constant = Interval::point(constant);
        let sum = Interval::binary(BinaryOp::Add, &self.range(func, base), &constant);
        // A sum that may wrap can be anything.
        sum.filter(|sum| sum.is_within(&all)).unwrap_or(all)
    }
}

pub(super) fn and(cursor: &mut Builder<'_>, lhs: Value, rhs: Value) -> Value {
    let op = BinaryOp::And;
    cursor.value(Op::Binary { op, lhs, rhs }, Type::BOOL)
}

/// The accessed object's name for messages, and its first indices; 0 if none are given.
pub(super) type Named<'a> = (&'a str, &'a [i32]);

/// Asserts that indices, which are the layout's, lie in a field; the message has the user's.
pub(super) fn assert_inside(
    cursor: &mut Builder<'_>,
    target: &Target<'_>,
    cond: Value,
    (what, offset): Named<'_>,
) {
    let node = target.path.levels.last().expect("a path has levels").node;
    let offset = |k: usize| i64::from(offset.get(k).copied().unwrap_or(0));
    let extents = target.tree.shape(node).into_iter().enumerate();
    let axes: Vec<_> = extents
        .map(|(k, extent)| Ok((offset(k), offset(k) + extent as i64)))
        .collect();
    let mut args = target.indices.clone();
    for (k, index) in args.iter_mut().enumerate().filter(|&(k, _)| offset(k) != 0) {
        let ty = cursor.func.elem(*index);
        let rhs = cursor.constant(Scalar::int(ty, offset(k).into()));
        let (op, lhs) = (BinaryOp::Add, *index);
        *index = cursor.value(Op::Binary { op, lhs, rhs }, Type::Scalar(ty));
    }
    let holes = vec!["{}"; args.len()].join(", ");
    let assert = Op::Assert {
        cond,
        kind: AssertKind::Bounds,
        template: format!(
            "index ({holes}) is out of bounds for {what} {}",
            valid_indices(&axes)
        ),
        args,
    };
    cursor.inst(assert, &[]);
}

/// `value`, or zero where the indices were outside.
pub(in crate::lower_access) fn or_zero(
    cursor: &mut Builder<'_>,
    inside: Option<Value>,
    value: Value,
) -> Value {
    let Some(cond) = inside else { return value };
    let ty = cursor.func.ty(value);
    let on_false = cursor.constant(Scalar::zero(cursor.func.elem(value)));
    let op = Op::Select {
        cond,
        on_true: value,
        on_false,
    };
    cursor.value(op, ty)
}
