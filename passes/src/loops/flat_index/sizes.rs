//! The same for sizes that only a launch knows: arguments, shapes of arrays, and products of them.
//!
//! ```text
//! parallel [0], [v1] (t) { i = t // n  j = t % n  body }
//!     ==>    v2 = v1 // n
//!            parallel [0, 0], [v2, n] (i, j) { body }
//!            parallel [v2 * n], [v1] (t) { i = t // n  j = t % n  body }
//! ```
//! The last loop is for an end that is no multiple of the size, as where the product of two sizes does not fit its type. It
//! is for all iterations where the size is no positive number, or rows would be short. Mostly it has none. `t // (k * n)` becomes
//! `i // k`, if the product fits.

use aerogel_base::entity::SecondaryMap;
use aerogel_ir::analysis::access::defined_in;
use aerogel_ir::{
    BinaryOp, Builder, CompareOp, Function, Inst, Op, Region, Rewrite, Type, Value, copy_region,
    replace_value, rewrite, walk,
};

use super::{MOST_AXES, Part, SHORTEST};

/// A body of more instructions is not written twice.
const LONGEST: usize = 400;
/// Sizes are products of no more factors.
const DEEPEST: u32 = 4;

/// Takes apart the last axis of a loop; whether it can be.
pub(super) fn split(func: &mut Function, inst: Inst) -> bool {
    let Op::Parallel {
        mut lo,
        mut hi,
        attrs,
        body,
    } = func[inst].clone()
    else {
        return false;
    };
    // The rest of all rows runs after the rows, which is another order if there are axes before.
    let keeps_order = lo.len() == 1 || !attrs.serial;
    if lo.len() >= MOST_AXES || !keeps_order || !may_be_copied(func, body) {
        return false;
    }
    // Along the last axis; of others, quotients and remainders are the same for a whole row.
    let axes = func.regions[body].params.clone();
    let k = axes.len() - 1;
    let begins = func.as_const(lo[k]).is_some_and(|lo| lo.is_zero());
    if !begins || func.ty(axes[k]) != Type::I32 {
        return false;
    }
    let Some(size) = divisor(func, body, axes[k]) else {
        return false;
    };
    let rest = copy_region(func, body);
    let products = products(func, body, axes[k], size);
    let ends = Ends::write(func, inst, size, &products, hi[k]);

    let mut lo_of_rest = lo.clone();
    lo_of_rest[k] = ends.rest;
    let copy = Op::Parallel {
        lo: lo_of_rest,
        hi: hi.clone(),
        attrs,
        body: rest,
    };
    let copy = func.new_inst(copy, &[], func.insts[inst].span);
    let insts = &mut func.regions[func.body].insts;
    let at = insts.iter().position(|&i| i == inst);
    insts.insert(at.expect("the loop is in the body") + 1, copy);

    hi[k] = ends.rows;
    lo.insert(k + 1, lo[k]);
    hi.insert(k + 1, ends.columns);
    let [row, column] = [(); 2].map(|()| func.add_param(body, Type::I32));
    let mut params = axes.clone();
    params.splice(k..=k, [row, column]);
    func.set_params(body, params);
    func.insts[inst].op = Op::Parallel {
        lo,
        hi,
        attrs,
        body,
    };
    // The counter itself, where it is used otherwise.
    let mut b = Builder::new(func, body);
    let start = b.binary(BinaryOp::Mul, row, ends.columns);
    let whole = b.binary(BinaryOp::Add, start, column);
    func.regions[body].insts.rotate_right(2);
    replace_value(func, body, axes[k], whole);
    apart(func, whole, size, &products, [row, column]);
    true
}

/// Whether a body may stand in two loops: it is short, and draws no random numbers, which depend on the loop.
fn may_be_copied(func: &Function, body: Region) -> bool {
    let (mut n, mut draws) = (0, false);
    walk(func, body, &mut |func, inst| {
        n += 1;
        draws |= matches!(
            func[inst],
            Op::Random {} | Op::RandomState { .. } | Op::Call { .. }
        );
    });
    n <= LONGEST && !draws
}

/// The size by which an axis is taken apart.
fn divisor(func: &Function, body: Region, axis: Value) -> Option<Value> {
    let mut inside = SecondaryMap::new();
    defined_in(func, body, &mut inside);
    let (mut quotients, mut remainders) = (Vec::new(), Vec::new());
    walk(func, body, &mut |func, inst| {
        if let Some((x, part, by)) = part_of(func, inst)
            && x == axis
            && func.as_const(by).is_none()
            && is_of_launch(func, by, &inside, DEEPEST)
        {
            match part {
                Part::Quotient => quotients.push(by),
                Part::Remainder => remainders.push(by),
            }
        }
    });
    let mut both = remainders.into_iter();
    both.find(|&by| {
        quotients
            .iter()
            .any(|&other| is_same(func, by, other, DEEPEST))
    })
}

fn part_of(func: &Function, inst: Inst) -> Option<(Value, Part, Value)> {
    let Op::Binary { op, lhs, rhs } = func[inst] else {
        return None;
    };
    let part = match op {
        BinaryOp::FloorDiv | BinaryOp::Div => Part::Quotient,
        BinaryOp::Mod | BinaryOp::Rem => Part::Remainder,
        _ => return None,
    };
    (func.ty(lhs) == Type::I32).then_some((lhs, part, rhs))
}

/// Whether a value is known before a loop inside of which some are defined.
fn is_of_launch(
    func: &Function,
    value: Value,
    inside: &SecondaryMap<Value, bool>,
    depth: u32,
) -> bool {
    let known = |v: Value| is_of_launch(func, v, inside, depth - 1);
    !inside[value]
        || match func.def_op(value) {
            Some(Op::Const { .. } | Op::Arg { .. } | Op::ArrayShape { .. }) => true,
            Some(&Op::Binary {
                op: BinaryOp::Mul,
                lhs,
                rhs,
            }) => depth > 0 && known(lhs) && known(rhs),
            _ => false,
        }
}

/// Whether two sizes are equal.
fn is_same(func: &Function, a: Value, b: Value, depth: u32) -> bool {
    let same = |a: Value, b: Value| is_same(func, a, b, depth - 1);
    a == b
        || match (func.def_op(a), func.def_op(b)) {
            (
                Some(op @ (Op::Const { .. } | Op::Arg { .. } | Op::ArrayShape { .. })),
                Some(other),
            ) => op == other,
            (Some(_), Some(_)) => match (factors(func, a), factors(func, b)) {
                (Some([a, b]), Some([c, d])) if depth > 0 => {
                    same(a, c) && same(b, d) || same(a, d) && same(b, c)
                }
                _ => false,
            },
            _ => false,
        }
}

fn factors(func: &Function, value: Value) -> Option<[Value; 2]> {
    match func.def_op(value) {
        Some(&Op::Binary {
            op: BinaryOp::Mul,
            lhs,
            rhs,
        }) => Some([lhs, rhs]),
        _ => None,
    }
}

/// The ends of the loops.
struct Ends {
    rows: Value,
    columns: Value,
    /// Where the loop over the rest begins.
    rest: Value,
}

impl Ends {
    /// Computes them before a loop up to `end`.
    fn write(
        func: &mut Function,
        at: Inst,
        size: Value,
        products: &[(Value, Value)],
        end: Value,
    ) -> Self {
        let before = func.new_region(&[]);
        let mut b = Builder::new(func, before);
        b.span = b.func.insts[at].span;
        let size = copy(&mut b, size);
        let [zero, one, shortest] = [0, 1, SHORTEST as i32].map(|n| b.i32(n));
        let is_long = b.compare(CompareOp::Ge, size, shortest);
        let columns = b.select(is_long, size, one);
        let is_split = products.iter().fold(is_long, |all, &(product, factor)| {
            let [product, factor] = [product, factor].map(|value| copy(&mut b, value));
            let quotient = b.binary(BinaryOp::FloorDiv, product, columns);
            let fits = b.compare(CompareOp::Eq, quotient, factor);
            let is_positive = b.compare(CompareOp::Gt, factor, zero);
            let fits = b.binary(BinaryOp::And, fits, is_positive);
            b.binary(BinaryOp::And, all, fits)
        });
        let some = b.binary(BinaryOp::Max, end, zero);
        let rows = b.binary(BinaryOp::FloorDiv, some, columns);
        let rows = b.select(is_split, rows, zero);
        let rest = b.binary(BinaryOp::Mul, rows, columns);
        let new = std::mem::take(&mut func.regions[before].insts);
        let insts = &mut func.regions[func.body].insts;
        let place = insts.iter().position(|&i| i == at);
        let place = place.expect("the loop is in the body");
        insts.splice(place..place, new);
        Self {
            rows,
            columns,
            rest,
        }
    }
}

/// A size once more, outside of the loop in which it may be computed.
fn copy(b: &mut Builder<'_>, size: Value) -> Value {
    match b.func.def_op(size).cloned() {
        Some(op @ (Op::Const { .. } | Op::Arg { .. } | Op::ArrayShape { .. })) => {
            let ty = b.func.ty(size);
            b.value(op, ty)
        }
        Some(Op::Binary {
            op: BinaryOp::Mul,
            lhs,
            rhs,
        }) => {
            let [lhs, rhs] = [lhs, rhs].map(|factor| copy(b, factor));
            b.binary(BinaryOp::Mul, lhs, rhs)
        }
        _ => size,
    }
}

/// Puts the axes in the place of quotients and remainders of the counter.
fn apart(
    func: &mut Function,
    whole: Value,
    size: Value,
    products: &[(Value, Value)],
    [row, column]: [Value; 2],
) {
    rewrite(func, |b, inst| {
        let Some((_, part, by)) = part_of(b.func, inst).filter(|&(x, ..)| x == whole) else {
            return Rewrite::Keep;
        };
        let is_by = |of: Value| is_same(b.func, by, of, DEEPEST);
        let product = products.iter().find(|&&(product, _)| is_by(product));
        let value = match (part, product) {
            (Part::Quotient, _) if is_by(size) => row,
            (Part::Remainder, _) if is_by(size) => column,
            (Part::Quotient, Some(_)) => {
                let factor = other_factor(b.func, by, size).expect("equal products");
                b.binary(BinaryOp::FloorDiv, row, factor)
            }
            _ => return Rewrite::Keep,
        };
        Rewrite::Replace(vec![value])
    });
}

/// The products of the size and another number by which a counter is divided, with that number.
fn products(func: &Function, body: Region, axis: Value, size: Value) -> Vec<(Value, Value)> {
    let mut inside = SecondaryMap::new();
    defined_in(func, body, &mut inside);
    let mut products: Vec<(Value, Value)> = Vec::new();
    walk(func, body, &mut |func, inst| {
        if let Some((x, Part::Quotient, by)) = part_of(func, inst)
            && x == axis
            && is_of_launch(func, by, &inside, DEEPEST)
            && let Some(factor) = other_factor(func, by, size)
            && !products
                .iter()
                .any(|&(known, _)| is_same(func, known, by, DEEPEST))
        {
            products.push((by, factor));
        }
    });
    products
}

/// What a product multiplies a size by.
fn other_factor(func: &Function, product: Value, size: Value) -> Option<Value> {
    let [a, b] = factors(func, product)?;
    let is_size = |v: Value| is_same(func, v, size, DEEPEST);
    match (is_size(a), is_size(b)) {
        (_, true) => Some(a),
        (true, _) => Some(b),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
