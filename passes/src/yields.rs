//! Analyses and changes of the values that regions yield.

use aerogel_base::Scalar;
use aerogel_ir::{Builder, Function, Inst, Op, Region, Value};

/// The result of an `if` that a number of its branch `from[0]` is; the other branch, `from[1]`, yields zero.
pub(crate) fn result_of_branch(
    func: &mut Function,
    branch: Inst,
    from: [Region; 2],
    value: Value,
) -> Value {
    let yielded = func.yielded(from[0]).expect("the branch yields");
    if let Some(at) = yielded.iter().position(|&v| v == value) {
        return func.insts[branch].results[at];
    }
    let ty = func.ty(value);
    yield_also(func, from[0], |_| value);
    // Nobody looks at it there.
    if func.yielded(from[1]).is_some() {
        let zero = Scalar::zero(ty.scalar().expect("a scalar"));
        yield_also(func, from[1], |b| b.constant(zero));
    }
    func.add_result(branch, ty)
}

/// Lets a region yield one more value.
pub(crate) fn yield_also(
    func: &mut Function,
    region: Region,
    value: impl FnOnce(&mut Builder<'_>) -> Value,
) {
    let end = func.regions[region]
        .insts
        .pop()
        .expect("a region ends in a terminator");
    let value = value(&mut Builder::new(func, region));
    func.regions[region].insts.push(end);
    if let Op::Yield { values } = &mut func.insts[end].op {
        values.push(value);
    }
}
