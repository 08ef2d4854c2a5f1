//! Operations on known values: numbers and sequences here, everything else by the host.
//!
//! `1 / n_grid` with `n_grid = 128` is the Python float `0.0078125` before any instruction exists.

use crate::ast::{BinaryOp, CompareOp, UnaryOp};
use crate::host::*;
use aerogel_base::ErrorKind;

pub(crate) fn unary(host: &mut dyn Host, op: UnaryOp, operand: &Known) -> HostResult<Known> {
    Ok(match (op, operand) {
        (UnaryOp::Not, _) => Known::Bool(!truth(host, operand)?),
        (UnaryOp::Minus, Known::Float(x)) => Known::Float(-x),
        (UnaryOp::Plus, Known::Float(x)) => Known::Float(*x),
        (_, Known::Int(_) | Known::Bool(_)) => {
            let x = operand.as_int().unwrap_or_default();
            Known::Int(match op {
                UnaryOp::Minus if x == i128::MIN => return host.unary(op, operand),
                UnaryOp::Minus => -x,
                UnaryOp::Invert => !x,
                UnaryOp::Plus | UnaryOp::Not => x,
            })
        }
        _ => return host.unary(op, operand),
    })
}

pub(crate) fn binary(
    host: &mut dyn Host,
    op: BinaryOp,
    lhs: &Known,
    rhs: &Known,
) -> HostResult<Known> {
    if let (Some(a), Some(b)) = (lhs.as_int(), rhs.as_int()) {
        if let Some(result) = int_binary(op, a, b)? {
            // Python keeps `True & False` a bool; every other operation on bools gives an int.
            let logical = matches!(op, BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor);
            return Ok(match (lhs, rhs, &result) {
                (Known::Bool(_), Known::Bool(_), Known::Int(value)) if logical => {
                    Known::Bool(*value != 0)
                }
                _ => result,
            });
        }
    } else if let (Some(a), Some(b)) = (lhs.as_float(), rhs.as_float())
        && let Some(result) = float_binary(op, a, b)?
    {
        return Ok(Known::Float(result));
    }
    match (op, lhs, rhs) {
        (BinaryOp::Add, Known::Tuple(a), Known::Tuple(b)) => Ok(Known::Tuple(joined(a, b)?)),
        (BinaryOp::Add, Known::List(a), Known::List(b)) => Ok(Known::List(joined(a, b)?)),
        (BinaryOp::Mul, Known::Tuple(items), Known::Int(n))
        | (BinaryOp::Mul, Known::Int(n), Known::Tuple(items)) => {
            Ok(Known::tuple(repeat(items, *n)?))
        }
        (BinaryOp::Mul, Known::List(items), Known::Int(n))
        | (BinaryOp::Mul, Known::Int(n), Known::List(items)) => {
            Ok(Known::List(repeat(items, *n)?.into()))
        }
        (BinaryOp::Add, Known::Str(a), Known::Str(b)) => {
            expect_short(a.len() + b.len())?;
            Ok(Known::str(&format!("{a}{b}")))
        }
        _ => host.binary(op, lhs, rhs),
    }
}

/// Numbers in a list or characters in a string that a kernel makes while it is compiled.
const MAX_LEN: usize = 1 << 20;

/// Checks that a value made while compiling has no more than the maximum number of items.
pub(crate) fn expect_short(len: usize) -> HostResult<()> {
    if len <= MAX_LEN {
        return Ok(());
    }
    Err(HostError::new(
        ErrorKind::Compilation,
        format!(
            "a list or string made in a kernel has at most {MAX_LEN} items, and this one is too long"
        ),
    ))
}

/// How many numbers there are in nested lists; those beyond the limit are not counted.
fn n_leaves(items: &[Known]) -> usize {
    let mut n = 0;
    for item in items {
        n += item.items().map_or(1, |inner| n_leaves(inner).max(1));
        if n > MAX_LEN {
            break;
        }
    }
    n
}

fn joined(a: &[Known], b: &[Known]) -> HostResult<std::rc::Rc<[Known]>> {
    expect_short(n_leaves(a) + n_leaves(b))?;
    Ok(a.iter().chain(b).cloned().collect())
}

fn repeat(items: &[Known], n: i128) -> HostResult<Vec<Known>> {
    if items.is_empty() {
        return Ok(Vec::new());
    }
    let n = usize::try_from(n.max(0)).unwrap_or(usize::MAX);
    expect_short(n_leaves(items).saturating_mul(n))?;
    Ok((0..n).flat_map(|_| items.iter().cloned()).collect())
}

fn zero_division() -> HostError {
    HostError::new(ErrorKind::Compilation, "division of a constant by zero")
}

/// Whether an integer is itself as a float.
fn is_exact(value: i128) -> bool {
    value.unsigned_abs() <= 1 << 53
}

/// Python's integer arithmetic; `None` where the result needs more than 127 bits or is not ours to compute.
fn int_binary(op: BinaryOp, a: i128, b: i128) -> HostResult<Option<Known>> {
    let int = |value: Option<i128>| value.map(Known::Int);
    let shift = |b: i128| u32::try_from(b).ok().filter(|&b| b < 64);
    Ok(match op {
        BinaryOp::Add => int(a.checked_add(b)),
        BinaryOp::Sub => int(a.checked_sub(b)),
        BinaryOp::Mul => int(a.checked_mul(b)),
        BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::Mod if b == 0 => return Err(zero_division()),
        BinaryOp::Div if !is_exact(a) || !is_exact(b) => None,
        BinaryOp::Div => Some(Known::Float(a as f64 / b as f64)),
        BinaryOp::FloorDiv | BinaryOp::Mod if a == i128::MIN => None,
        BinaryOp::FloorDiv => int(Some(
            a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0),
        )),
        BinaryOp::Mod => int(Some(
            a.rem_euclid(b) + if b < 0 && a.rem_euclid(b) != 0 { b } else { 0 },
        )),
        BinaryOp::Pow if b < 0 && a == 0 => return Err(zero_division()),
        BinaryOp::Pow if b < 0 && !is_exact(a) => None,
        BinaryOp::Pow if b < 0 => Some(Known::Float((a as f64).powf(b as f64))),
        BinaryOp::Pow => int(u32::try_from(b).ok().and_then(|b| a.checked_pow(b))),
        BinaryOp::Shl => int(shift(b).and_then(|b| a.checked_mul(1 << b))),
        BinaryOp::Shr => int(shift(b).map(|b| a >> b)),
        BinaryOp::BitAnd => int(Some(a & b)),
        BinaryOp::BitOr => int(Some(a | b)),
        BinaryOp::BitXor => int(Some(a ^ b)),
        BinaryOp::MatMul => None,
    })
}

/// Python's float arithmetic; `None` where Python would not give a float.
fn float_binary(op: BinaryOp, a: f64, b: f64) -> HostResult<Option<f64>> {
    Ok(match op {
        BinaryOp::Add => Some(a + b),
        BinaryOp::Sub => Some(a - b),
        BinaryOp::Mul => Some(a * b),
        BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::Mod if b == 0.0 => {
            return Err(zero_division());
        }
        BinaryOp::Div => Some(a / b),
        BinaryOp::FloorDiv => Some(floor_div(a, b)),
        BinaryOp::Mod => {
            let rest = a % b;
            Some(if rest != 0.0 && (rest < 0.0) != (b < 0.0) {
                rest + b
            } else {
                rest
            })
        }
        // Where the result is none of the real numbers, Python has an exception or a complex number.
        BinaryOp::Pow => Some(a.powf(b)).filter(|x| x.is_finite()),
        BinaryOp::MatMul
        | BinaryOp::Shl
        | BinaryOp::Shr
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor => None,
    })
}

/// The quotient that goes with Python's remainder: `1.0 // 0.1` is 9, for `0.1` is more than a tenth.
fn floor_div(a: f64, b: f64) -> f64 {
    let rest = a % b;
    let mut quotient = (a - rest) / b;
    if rest != 0.0 && (rest < 0.0) != (b < 0.0) {
        quotient -= 1.0;
    }
    if quotient == 0.0 {
        return 0.0_f64.copysign(a / b);
    }
    let floor = quotient.floor();
    if quotient - floor > 0.5 {
        floor + 1.0
    } else {
        floor
    }
}

pub(crate) fn compare(
    host: &mut dyn Host,
    op: CompareOp,
    lhs: &Known,
    rhs: &Known,
) -> HostResult<bool> {
    use std::cmp::Ordering;
    let ordering = match (lhs, rhs) {
        (Known::Str(a), Known::Str(b)) => Some(a.cmp(b)),
        _ => match (lhs.as_int(), rhs.as_int()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => match (lhs.as_float(), rhs.as_float()) {
                (Some(a), Some(b))
                    if [lhs, rhs].iter().all(|x| x.as_int().is_none_or(is_exact)) =>
                {
                    return Ok(match op {
                        CompareOp::Eq | CompareOp::Is => a == b,
                        CompareOp::Ne | CompareOp::IsNot => a != b,
                        CompareOp::Lt => a < b,
                        CompareOp::Le => a <= b,
                        CompareOp::Gt => a > b,
                        CompareOp::Ge => a >= b,
                        CompareOp::In | CompareOp::NotIn => {
                            return truth_of_host(host, op, lhs, rhs);
                        }
                    });
                }
                _ => None,
            },
        },
    };
    Ok(match (op, ordering) {
        (CompareOp::Eq, Some(o)) => o == Ordering::Equal,
        (CompareOp::Ne, Some(o)) => o != Ordering::Equal,
        (CompareOp::Lt, Some(o)) => o == Ordering::Less,
        (CompareOp::Le, Some(o)) => o != Ordering::Greater,
        (CompareOp::Gt, Some(o)) => o == Ordering::Greater,
        (CompareOp::Ge, Some(o)) => o != Ordering::Less,
        (CompareOp::Is | CompareOp::Eq, None)
            if matches!((lhs, rhs), (Known::None, _) | (_, Known::None)) =>
        {
            matches!((lhs, rhs), (Known::None, Known::None))
        }
        (CompareOp::IsNot | CompareOp::Ne, None)
            if matches!((lhs, rhs), (Known::None, _) | (_, Known::None)) =>
        {
            !matches!((lhs, rhs), (Known::None, Known::None))
        }
        (CompareOp::In | CompareOp::NotIn, _) if rhs.items().is_some() => {
            let mut found = false;
            for item in rhs.items().unwrap_or_default() {
                found = found || compare(host, CompareOp::Eq, lhs, item)?;
            }
            found == (op == CompareOp::In)
        }
        _ => match same_type(lhs, rhs) {
            Some(same) if matches!(op, CompareOp::Eq | CompareOp::Is) => same,
            Some(same) if matches!(op, CompareOp::Ne | CompareOp::IsNot) => !same,
            _ => return truth_of_host(host, op, lhs, rhs),
        },
    })
}

/// Types and fields are equal when they are the same.
fn same_type(lhs: &Known, rhs: &Known) -> Option<bool> {
    match (lhs, rhs) {
        (Known::DType(a), Known::DType(b)) => Some(a == b),
        (Known::Field(a), Known::Field(b)) => Some(a == b),
        (Known::Builtin(a), Known::Builtin(b)) => Some(a == b),
        _ => None,
    }
}

fn truth_of_host(host: &mut dyn Host, op: CompareOp, lhs: &Known, rhs: &Known) -> HostResult<bool> {
    let result = host.compare(op, lhs, rhs)?;
    truth(host, &result)
}

pub(crate) fn truth(host: &mut dyn Host, value: &Known) -> HostResult<bool> {
    Ok(match value {
        Known::None => false,
        Known::Bool(value) => *value,
        Known::Int(value) => *value != 0,
        Known::Float(value) => *value != 0.0,
        Known::Str(text) => !text.is_empty(),
        Known::Tuple(items) | Known::List(items) => !items.is_empty(),
        Known::Object(_) | Known::Slice(_) | Known::Traced(_) => return host.truth(value),
        Known::DType(_)
        | Known::TensorType { .. }
        | Known::Tensor(_)
        | Known::StructType(_)
        | Known::Struct(_)
        | Known::StructField(_)
        | Known::Field(_)
        | Known::SNode(_)
        | Known::Elements(_)
        | Known::Relation(_)
        | Known::Func(_)
        | Known::Kernel(_)
        | Known::Builtin(_) => true,
    })
}

pub(crate) fn index(host: &mut dyn Host, value: &Known, index: &Known) -> HostResult<Known> {
    let (Some(items), Some(at)) = (value.items(), index.as_int()) else {
        return host.index(value, index);
    };
    let n = items.len() as i128;
    let wrapped = if at < 0 { at + n } else { at };
    items
        .get(usize::try_from(wrapped).unwrap_or(usize::MAX))
        .cloned()
        .ok_or_else(|| {
            HostError::new(
                ErrorKind::Index,
                format!("index {at} is out of range for {} of {n}", value.describe()),
            )
        })
}

pub(crate) fn iterate(host: &mut dyn Host, value: &Known, most: usize) -> HostResult<Vec<Known>> {
    match value.items() {
        Some(items) => Ok(items.to_vec()),
        None => host.iterate(value, most),
    }
}

/// Checks that a format specification has a sensible width and precision.
pub(crate) fn expect_width(spec: &str) -> HostResult<()> {
    let numbers = spec.split(|c: char| !c.is_ascii_digit());
    if numbers.into_iter().all(|digits| digits.len() <= 4) {
        return Ok(());
    }
    let message = format!("the format `{spec}` has a width or precision of more than 9999");
    Err(HostError::new(ErrorKind::Type, message))
}

pub(crate) fn format(host: &mut dyn Host, value: &Known, spec: &str) -> HostResult<String> {
    Ok(match (value, spec) {
        (Known::Str(text), "") => text.to_string(),
        (Known::Int(value), "") => value.to_string(),
        (Known::Bool(true), "") => "True".into(),
        (Known::Bool(false), "") => "False".into(),
        (Known::None, "") => "None".into(),
        _ => {
            expect_width(spec)?;
            return host.format(value, spec);
        }
    })
}
