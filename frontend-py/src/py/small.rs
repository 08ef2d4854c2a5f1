//! Limits of what is computed while compiling: integers, lists and texts that would not fit into memory are refused.

use aerogel_base::ErrorKind;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyInt, PyList, PyString, PyTuple};

use super::host::PyHost;
use crate::ast::BinaryOp;
use crate::fold;
use crate::host::{HostError, HostResult, Known};

/// Bits of an integer that is computed while compiling.
const MAX_BITS: u64 = 1 << 16;

/// A number as a count of bits: none if it is negative.
fn counted(n: i128) -> u64 {
    u64::try_from(n.max(0)).unwrap_or(u64::MAX)
}

/// How large a value is.
enum Size {
    /// The bits of an integer, and its value.
    Bits(u64, i128),
    /// Of a string or sequence.
    Len(usize),
    Other,
}

impl PyHost<'_> {
    /// Checks that the result of an operation on integers, lists or strings is not huge.
    pub(super) fn expect_small(
        &mut self,
        op: BinaryOp,
        lhs: &Known,
        rhs: &Known,
    ) -> HostResult<()> {
        let [a, b] = [lhs, rhs].map(|operand| self.size(operand));
        let (bits, len) = match (op, a, b) {
            (BinaryOp::Pow, Size::Bits(a, _), Size::Bits(_, b)) if a > 1 => {
                (a.saturating_mul(counted(b)), 0)
            }
            (BinaryOp::Shl, Size::Bits(a, _), Size::Bits(_, b)) => {
                (a.saturating_add(counted(b)), 0)
            }
            (BinaryOp::Mul, Size::Bits(a, _), Size::Bits(b, _)) => (a.saturating_add(b), 0),
            (BinaryOp::Mul, Size::Len(len), Size::Bits(_, n))
            | (BinaryOp::Mul, Size::Bits(_, n), Size::Len(len)) => (
                0,
                len.saturating_mul(usize::try_from(n.max(0)).unwrap_or(usize::MAX)),
            ),
            (BinaryOp::Add, Size::Len(a), Size::Len(b)) => (0, a + b),
            _ => return Ok(()),
        };
        if bits > MAX_BITS {
            let message = format!(
                "an integer computed while compiling has at most {MAX_BITS} bits, the result of `{}` has more",
                op.symbol()
            );
            return Err(HostError::new(ErrorKind::Compilation, message));
        }
        fold::expect_short(len)
    }

    /// The size of an operand, which bounds the size of an operation's result.
    fn size(&mut self, known: &Known) -> Size {
        let object = match known {
            Known::Int(value) => {
                let bits = u128::BITS - value.unsigned_abs().leading_zeros();
                return Size::Bits(u64::from(bits), *value);
            }
            Known::Str(text) => return Size::Len(text.len()),
            Known::Object(handle) => self.object(*handle),
            known => {
                return known
                    .items()
                    .map_or(Size::Other, |items| Size::Len(items.len()));
            }
        };
        if object.is_instance_of::<PyInt>() {
            let bits = object.call_method0("bit_length");
            let bits = bits.and_then(|bits| bits.extract()).unwrap_or(u64::MAX);
            // What has more bits than a number here is as good as without end.
            let value = object.extract().unwrap_or(i128::MAX);
            return Size::Bits(bits, value);
        }
        let is_text = object.is_instance_of::<PyString>()
            || object.is_instance_of::<PyBytes>()
            || object.is_instance_of::<PyByteArray>()
            || object.is_instance_of::<PyTuple>()
            || object.is_instance_of::<PyList>();
        match object.len() {
            Ok(len) if is_text => Size::Len(len),
            _ => Size::Other,
        }
    }
}
