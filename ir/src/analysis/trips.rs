//! Iteration counts of loops.

use crate::{Function, Op, Region, Value};

/// How often a `for` runs at most, if its bounds are constants.
pub fn length(func: &Function, op: &Op) -> Option<u64> {
    let Op::For { lo, hi, step, .. } = op else {
        return None;
    };
    let number = |v: Value| func.as_const(v).map(|c| c.as_i128());
    let (lo, hi, step) = (number(*lo)?, number(*hi)?, number(*step)?);
    let distance = if step < 0 { lo - hi } else { hi - lo };
    let size = u64::try_from(step.abs()).ok().filter(|&size| size > 0)?;
    Some(u64::try_from(distance).unwrap_or(0).div_ceil(size))
}

/// How many iterations the loops in a region run together at most; none if that is not known.
pub fn iterations_within(func: &Function, region: Region) -> Option<u64> {
    let mut sum: u64 = 0;
    for &inst in &func.regions[region].insts {
        let op = &func[inst];
        let n = match op {
            Op::While { .. } | Op::Call { .. } => return None,
            Op::For { body, .. } => {
                let inner = iterations_within(func, *body)?;
                length(func, op)?.saturating_mul(inner.max(1))
            }
            Op::If {
                then, otherwise, ..
            } => iterations_within(func, *then)?.max(iterations_within(func, *otherwise)?),
            _ => 0,
        };
        sum = sum.saturating_add(n);
    }
    Some(sum)
}
