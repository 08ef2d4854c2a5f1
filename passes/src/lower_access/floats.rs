//! Quantised floating-point numbers: with an exponent of their own, or one that they share.
//!
//! An `f32` is taken apart by its bits. What is a contiguous piece of them, exponent and the upper part of
//! the fraction, is moved as one: rounding may carry from one into the other.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{BinaryOp, Builder, CompareOp, UnaryOp, Value};
use aerogel_snode::quant::{NAN, mask};
use aerogel_snode::{NodeId, QuantType};

use super::bits::{Bits, bitcast, cast, compare, constant, down, put, with};

use ScalarType::{F32, U32};

impl Bits<'_> {
    pub(super) fn decoded_shared(&self, b: &mut Builder<'_>, word: Value, place: NodeId) -> Value {
        let (node, quant) = (&self.tree[place], self.quant_of(place));
        let digits = quant.digits();
        let field = down(b, word, node.exponent_shift);
        let field = with(b, BinaryOp::And, field, mask(quant.exponent_bits()));
        let field = cast(b, field, U32);
        let raw = down(b, word, node.shift);
        let raw = cast(b, raw, U32);
        let number = with(b, BinaryOp::And, raw, mask(digits));
        // It has few bits, so that it is exact.
        let number = cast(b, number, F32);
        let unit = b.constant(Scalar::f32(2.0_f32.powi(1 - digits as i32)));
        let number = b.binary(BinaryOp::Mul, number, unit);
        let exponent = with(b, BinaryOp::Add, field, quant.exponent_offset().into());
        let power = with(b, BinaryOp::Shl, exponent, 23);
        let power = bitcast(b, power, F32);
        let number = b.binary(BinaryOp::Mul, number, power);
        let number = if quant.signed {
            let sign = with(b, BinaryOp::UShr, raw, digits.into());
            let sign = with(b, BinaryOp::And, sign, 1);
            let negative = compare(b, CompareOp::Ne, sign, 0);
            let opposite = b.unary(UnaryOp::Neg, number);
            b.select(negative, opposite, number)
        } else {
            number
        };
        let none = compare(b, CompareOp::Eq, field, 0);
        let zero = b.constant(Scalar::f32(0.0));
        b.select(none, zero, number)
    }

    /// A word with one of the components changed that share an exponent: the others are fitted to the
    /// greatest of all.
    pub(super) fn encoded_shared(
        &self,
        b: &mut Builder<'_>,
        word: Value,
        group: &[NodeId],
        value: Value,
    ) -> Value {
        const FRACTION: u64 = 23;
        let quant = self.quant();
        let offset = u64::from(quant.exponent_offset());
        let greatest = (offset + mask(quant.exponent_bits())).min(254);
        let mut numbers = Vec::new();
        for &place in group {
            let number = if place == self.place {
                value
            } else {
                self.decoded_shared(b, word, place)
            };
            let bits = bits_of(b, number);
            let magnitude = with(b, BinaryOp::And, bits, 0x7fff_ffff);
            let magnitude = with(b, BinaryOp::Min, magnitude, 0x7f7f_ffff);
            let own = with(b, BinaryOp::UShr, magnitude, FRACTION);
            numbers.push((place, bits, magnitude, own));
        }
        let exponents = numbers.iter().map(|n| n.3);
        let exponent = exponents.reduce(|x, y| b.binary(BinaryOp::Max, x, y));
        let exponent = with(b, BinaryOp::Min, exponent.expect("a group"), greatest);
        let none = compare(b, CompareOp::Le, exponent, offset);
        let zero = constant(b, U32, 0);
        let field = with(b, BinaryOp::Sub, exponent, offset);
        let field = b.select(none, zero, field);

        let wide = b.func.elem(word);
        let field = cast(b, field, wide);
        let at = u64::from(self.tree[self.place].exponent_shift);
        let mut word = put(b, word, at, mask(quant.exponent_bits()), field);
        for (place, bits, magnitude, own) in numbers {
            let quant = self.quant_of(place);
            let digits = quant.digits();
            // The fraction with its leading one; none of what is smaller than any normal number.
            let fraction = with(b, BinaryOp::And, magnitude, mask(FRACTION as u32));
            let fraction = with(b, BinaryOp::Or, fraction, 1 << FRACTION);
            let tiny = compare(b, CompareOp::Eq, own, 0);
            let fraction = b.select(tiny, zero, fraction);
            let distance = b.binary(BinaryOp::Sub, exponent, own);
            let dropped = with(b, BinaryOp::Add, distance, FRACTION + 1 - u64::from(digits));
            let dropped = with(b, BinaryOp::Min, dropped, 31);
            let before = with(b, BinaryOp::Sub, dropped, 1);
            let one = constant(b, U32, 1);
            let half = b.binary(BinaryOp::Shl, one, before);
            let sum = b.binary(BinaryOp::Add, fraction, half);
            let number = b.binary(BinaryOp::UShr, sum, dropped);
            let number = with(b, BinaryOp::Min, number, mask(digits));
            let too_large = b.compare(CompareOp::Gt, own, exponent);
            let top = constant(b, U32, mask(digits));
            let number = b.select(too_large, top, number);
            let mut number = b.select(none, zero, number);
            if quant.signed {
                let sign = with(b, BinaryOp::UShr, bits, 31);
                let sign = with(b, BinaryOp::Shl, sign, digits.into());
                let negative = b.binary(BinaryOp::Or, number, sign);
                let is_zero = compare(b, CompareOp::Eq, number, 0);
                number = b.select(is_zero, zero, negative);
            }
            let number = cast(b, number, wide);
            let at = u64::from(self.tree[place].shift);
            word = put(b, word, at, mask(quant.bits), number);
        }
        word
    }
}

/// The bits of an `f32`; one and the same for all that are no numbers.
fn bits_of(b: &mut Builder<'_>, x: Value) -> Value {
    let is_number = b.compare(CompareOp::Eq, x, x);
    let bits = bitcast(b, x, U32);
    let nan = constant(b, U32, NAN.into());
    b.select(is_number, bits, nan)
}

pub(super) fn decode_float(b: &mut Builder<'_>, quant: QuantType, raw: Value) -> Value {
    let (digits, exponent) = (quant.digits(), quant.exponent_bits());
    let raw = cast(b, raw, U32);
    let number = with(b, BinaryOp::And, raw, mask(exponent + digits));
    let magnitude = with(b, BinaryOp::Shl, number, u64::from(23 - digits));
    let offset = u64::from(quant.exponent_offset()) << 23;
    let mut bits = with(b, BinaryOp::Add, magnitude, offset);
    if quant.signed {
        let sign = with(b, BinaryOp::UShr, raw, u64::from(exponent + digits));
        let sign = with(b, BinaryOp::Shl, sign, 31);
        bits = b.binary(BinaryOp::Or, bits, sign);
    }
    let none = compare(b, CompareOp::Lt, number, 1 << digits);
    let zero = constant(b, U32, 0);
    let bits = b.select(none, zero, bits);
    bitcast(b, bits, F32)
}

pub(super) fn encode_float(b: &mut Builder<'_>, quant: QuantType, value: Value) -> Value {
    let (digits, exponent) = (quant.digits(), quant.exponent_bits());
    let bits = bits_of(b, value);
    let magnitude = with(b, BinaryOp::And, bits, 0x7fff_ffff);
    let dropped = 23 - digits;
    let mut rounded = with(b, BinaryOp::Add, magnitude, (1 << dropped) >> 1);
    if exponent == 8 {
        // No number stays none.
        let none = compare(b, CompareOp::Ge, magnitude, 0x7f80_0000);
        rounded = b.select(none, magnitude, rounded);
    }
    let kept = with(b, BinaryOp::UShr, rounded, dropped.into());
    let offset = u64::from(quant.exponent_offset()) << digits;
    let small = compare(b, CompareOp::Lt, kept, offset + (1 << digits));
    let number = with(b, BinaryOp::Sub, kept, offset);
    let mut number = with(b, BinaryOp::Min, number, mask(exponent + digits));
    if quant.signed {
        let sign = with(b, BinaryOp::UShr, bits, 31);
        let sign = with(b, BinaryOp::Shl, sign, u64::from(exponent + digits));
        number = b.binary(BinaryOp::Or, number, sign);
    }
    let zero = constant(b, U32, 0);
    b.select(small, zero, number)
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    #[test]
    fn a_shared_exponent_changes_the_others() {
        check_pass!("lower_access", "
            tree0 { bit_struct bits=32 { place x: qu4^5/f32, place y: qu4^5/f32 shared } }
            field @x: f32 = tree0 [S2]
            func @f(v0: f32) {
                v1: ref<f32> = field_at @x, []
                store v1, v0
                yield []
            }", @"
            func @f(v0: f32) {
                v1: cell<tree0.S0> = root tree0
                v2: ref<u32> = child tree0.S1, v1
                v3: u32 = update v2 (v4: u32) {
                    v5: u1 = eq v0, v0
                    v6: u32 = bitcast v0
                    v7: u32 = const 2143289344
                    v8: u32 = select v5, v6, v7
                    v9: u32 = const 2147483647
                    v10: u32 = and v8, v9
                    v11: u32 = const 2139095039
                    v12: u32 = min v10, v11
                    v13: u32 = const 23
                    v14: u32 = ushr v12, v13
                    v15: u32 = const 31
                    v16: u32 = and v4, v15
                    v17: u32 = const 9
                    v18: u32 = ushr v4, v17
                    v19: u32 = const 15
                    v20: u32 = and v18, v19
                    v21: f32 = cast v20
                    v22: f32 = const 0.125
                    v23: f32 = mul v21, v22
                    v24: u32 = const 112
                    v25: u32 = add v16, v24
                    v26: u32 = const 23
                    v27: u32 = shl v25, v26
                    v28: f32 = bitcast v27
                    v29: f32 = mul v23, v28
                    v30: u32 = const 0
                    v31: u1 = eq v16, v30
                    v32: f32 = const 0.0
                    v33: f32 = select v31, v32, v29
                    v34: u1 = eq v33, v33
                    v35: u32 = bitcast v33
                    v36: u32 = const 2143289344
                    v37: u32 = select v34, v35, v36
                    v38: u32 = const 2147483647
                    v39: u32 = and v37, v38
                    v40: u32 = const 2139095039
                    v41: u32 = min v39, v40
                    v42: u32 = const 23
                    v43: u32 = ushr v41, v42
                    v44: u32 = max v14, v43
                    v45: u32 = const 143
                    v46: u32 = min v44, v45
                    v47: u32 = const 112
                    v48: u1 = le v46, v47
                    v49: u32 = const 0
                    v50: u32 = const 112
                    v51: u32 = sub v46, v50
                    v52: u32 = select v48, v49, v51
                    v53: u32 = const 4294967264
                    v54: u32 = and v4, v53
                    v55: u32 = or v54, v52
                    v56: u32 = const 8388607
                    v57: u32 = and v12, v56
                    v58: u32 = const 8388608
                    v59: u32 = or v57, v58
                    v60: u32 = const 0
                    v61: u1 = eq v14, v60
                    v62: u32 = select v61, v49, v59
                    v63: u32 = sub v46, v14
                    v64: u32 = const 20
                    v65: u32 = add v63, v64
                    v66: u32 = const 31
                    v67: u32 = min v65, v66
                    v68: u32 = const 1
                    v69: u32 = sub v67, v68
                    v70: u32 = const 1
                    v71: u32 = shl v70, v69
                    v72: u32 = add v62, v71
                    v73: u32 = ushr v72, v67
                    v74: u32 = const 15
                    v75: u32 = min v73, v74
                    v76: u1 = gt v14, v46
                    v77: u32 = const 15
                    v78: u32 = select v76, v77, v75
                    v79: u32 = select v48, v49, v78
                    v80: u32 = const 4294966815
                    v81: u32 = and v55, v80
                    v82: u32 = const 5
                    v83: u32 = shl v79, v82
                    v84: u32 = or v81, v83
                    v85: u32 = const 8388607
                    v86: u32 = and v41, v85
                    v87: u32 = const 8388608
                    v88: u32 = or v86, v87
                    v89: u32 = const 0
                    v90: u1 = eq v43, v89
                    v91: u32 = select v90, v49, v88
                    v92: u32 = sub v46, v43
                    v93: u32 = const 20
                    v94: u32 = add v92, v93
                    v95: u32 = const 31
                    v96: u32 = min v94, v95
                    v97: u32 = const 1
                    v98: u32 = sub v96, v97
                    v99: u32 = const 1
                    v100: u32 = shl v99, v98
                    v101: u32 = add v91, v100
                    v102: u32 = ushr v101, v96
                    v103: u32 = const 15
                    v104: u32 = min v102, v103
                    v105: u1 = gt v43, v46
                    v106: u32 = const 15
                    v107: u32 = select v105, v106, v104
                    v108: u32 = select v48, v49, v107
                    v109: u32 = const 4294959615
                    v110: u32 = and v84, v109
                    v111: u32 = const 9
                    v112: u32 = shl v108, v111
                    v113: u32 = or v110, v112
                    yield [v113]
                }
                yield []
            }
            ");
    }
}
