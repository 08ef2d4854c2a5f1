//! Accesses to quantised components: a part of a word is taken out, or put in.
//!
//! ```text
//! v2 = load v1    ; qi5, 5 bits of a word     ==>     v3: u32 = load word
//!                                                     v2 = (i32(v3 >> 5) << 27) >> 27
//! store v1, v4                                ==>     update word, (old) { (old & ~0x3e0) | (v4 & 0x1f) << 5 }
//! ```
//! Where no other thread touches the word, the update is a load and a store. `QuantType` says in Rust
//! what the instructions do.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{AtomicOp, BinaryOp, Builder, CompareOp, Op, Type, UnaryOp, Value};
use aerogel_snode::quant::mask;
use aerogel_snode::{Form, NodeId, NodeKind, QuantType, Tree};

use super::floats::{decode_float, encode_float};

use ScalarType::{I32, I64, U32, U64};

/// A quantised component of an element.
pub(super) struct Bits<'a> {
    pub(super) tree: &'a Tree,
    pub(super) place: NodeId,
    /// The storage of the word.
    pub(super) word: Value,
    /// Where the component's bits begin, besides the place's shift: that of a `quant_array`'s element,
    /// as `i64`.
    pub(super) element_shift: Option<Value>,
    /// Whether no other thread touches the word.
    pub(super) alone: bool,
}

pub(super) fn constant(b: &mut Builder<'_>, ty: ScalarType, value: u64) -> Value {
    b.constant(Scalar::int(ty, value.into()))
}

pub(super) fn with(b: &mut Builder<'_>, op: BinaryOp, lhs: Value, rhs: u64) -> Value {
    let ty = b.func.elem(lhs);
    let rhs = constant(b, ty, rhs);
    b.binary(op, lhs, rhs)
}

pub(super) fn compare(b: &mut Builder<'_>, op: CompareOp, lhs: Value, rhs: u64) -> Value {
    let ty = b.func.elem(lhs);
    let rhs = constant(b, ty, rhs);
    b.compare(op, lhs, rhs)
}

pub(super) fn bitcast(b: &mut Builder<'_>, x: Value, ty: ScalarType) -> Value {
    b.value(Op::Bitcast { x }, ty.into())
}

pub(super) fn cast(b: &mut Builder<'_>, x: Value, ty: ScalarType) -> Value {
    b.cast(x, ty.into())
}

fn signed(wide: ScalarType) -> ScalarType {
    if wide == U64 { I64 } else { I32 }
}

impl Bits<'_> {
    pub(super) fn quant_of(&self, place: NodeId) -> QuantType {
        let NodeKind::Bits(quant) = self.tree[place].kind else {
            unreachable!("a word holds quantised components")
        };
        quant
    }

    pub(super) fn quant(&self) -> QuantType {
        self.quant_of(self.place)
    }

    /// The type in which the word is taken apart.
    fn wide(&self, b: &Builder<'_>) -> ScalarType {
        match b.func.ty(self.word).pointee().and_then(Type::elem) {
            Some(U64) => U64,
            _ => U32,
        }
    }

    /// Reads the component.
    pub(super) fn load(&self, b: &mut Builder<'_>) -> Value {
        let wide = self.wide(b);
        let word = b.load(self.word);
        let word = cast(b, word, wide);
        self.decoded(b, word)
    }

    /// Writes the component.
    pub(super) fn store(&self, b: &mut Builder<'_>, value: Value) {
        self.change(b, &mut |bits, b, word| bits.encoded(b, word, value));
    }

    /// Changes the component in one step; the result is what it was.
    pub(super) fn atomic(&self, b: &mut Builder<'_>, op: AtomicOp, value: Value) -> Value {
        let wide = self.wide(b);
        let word = self.change(b, &mut |bits, b, word| {
            let new = match op.binary() {
                None => value,
                Some(op) => {
                    let old = bits.decoded(b, word);
                    b.binary(op, old, value)
                }
            };
            bits.encoded(b, word, new)
        });
        let word = cast(b, word, wide);
        self.decoded(b, word)
    }

    /// Writes the component if it is `expected`; the result is what it was.
    pub(super) fn cas(&self, b: &mut Builder<'_>, expected: Value, value: Value) -> Value {
        let wide = self.wide(b);
        let word = self.change(b, &mut |bits, b, word| {
            let old = bits.decoded(b, word);
            // Floats are compared by their bits, as those in memory are.
            let [was, wanted] = [old, expected].map(|x| match b.func.elem(x) {
                ScalarType::F32 => bitcast(b, x, U32),
                ScalarType::F64 => bitcast(b, x, U64),
                _ => x,
            });
            let same = b.compare(CompareOp::Eq, was, wanted);
            let new = bits.encoded(b, word, value);
            b.select(same, new, word)
        });
        let word = cast(b, word, wide);
        self.decoded(b, word)
    }

    /// Makes a new word of the old one; `make` takes and gives the wide type. The result is the old
    /// word.
    fn change(
        &self,
        b: &mut Builder<'_>,
        make: &mut dyn FnMut(&Self, &mut Builder<'_>, Value) -> Value,
    ) -> Value {
        let wide = self.wide(b);
        let ty = b.func.ty(self.word).pointee().expect("a storage");
        let mut new = |b: &mut Builder<'_>, old: Value| {
            let word = cast(b, old, wide);
            let word = make(self, b, word);
            b.cast(word, ty)
        };
        if self.alone {
            let old = b.load(self.word);
            let new = new(b, old);
            b.store(self.word, new);
            return old;
        }
        let body = b.func.new_region(&[ty]);
        let old = b.func.regions[body].params[0];
        let outer = std::mem::replace(&mut b.region, body);
        let value = new(b, old);
        b.yields(vec![value]);
        b.region = outer;
        let place = self.word;
        b.value(Op::Update { place, body }, ty)
    }

    /// The component in a word.
    fn decoded(&self, b: &mut Builder<'_>, word: Value) -> Value {
        if self.tree.exponent_group(self.place).is_empty() {
            let raw = self.shifted_down(b, word);
            return decode(b, self.quant(), raw);
        }
        self.decoded_shared(b, word, self.place)
    }

    /// A word with the component changed.
    fn encoded(&self, b: &mut Builder<'_>, word: Value, value: Value) -> Value {
        let group = self.tree.exponent_group(self.place);
        if !group.is_empty() {
            return self.encoded_shared(b, word, &group, value);
        }
        let quant = self.quant();
        let wide = b.func.elem(word);
        let bits = encode(b, quant, value);
        let bits = cast(b, bits, wide);
        let hole = mask(quant.width());
        let place_shift = u64::from(self.tree[self.place].shift);
        let Some(element) = self.element_shift else {
            return put(b, word, place_shift, hole, bits);
        };
        let by = cast(b, element, wide);
        let hole = constant(b, wide, hole);
        let hole = b.binary(BinaryOp::Shl, hole, by);
        let others = b.unary(UnaryOp::Not, hole);
        let kept = b.binary(BinaryOp::And, word, others);
        let bits = b.binary(BinaryOp::Shl, bits, by);
        b.binary(BinaryOp::Or, kept, bits)
    }

    fn shifted_down(&self, b: &mut Builder<'_>, word: Value) -> Value {
        let wide = b.func.elem(word);
        match self.element_shift {
            Some(element) => {
                let by = cast(b, element, wide);
                b.binary(BinaryOp::UShr, word, by)
            }
            None => down(b, word, self.tree[self.place].shift),
        }
    }
}

/// Logical shift to the right by a constant.
pub(super) fn down(b: &mut Builder<'_>, word: Value, by: u32) -> Value {
    match by {
        0 => word,
        _ => with(b, BinaryOp::UShr, word, by.into()),
    }
}

/// A word with some bits replaced; `bits` are no more than `hole` has.
pub(super) fn put(b: &mut Builder<'_>, word: Value, shift: u64, hole: u64, bits: Value) -> Value {
    let kept = with(b, BinaryOp::And, word, !(hole << shift));
    let bits = match shift {
        0 => bits,
        _ => with(b, BinaryOp::Shl, bits, shift),
    };
    b.binary(BinaryOp::Or, kept, bits)
}

/// The number that the low bits of `raw` stand for, as `QuantType::decode` has it.
fn decode(b: &mut Builder<'_>, quant: QuantType, raw: Value) -> Value {
    if let Form::Float { .. } = quant.form {
        return decode_float(b, quant, raw);
    }
    let wide = b.func.elem(raw);
    let rest = u64::from(wide.bits() - quant.bits);
    let integer = if quant.signed {
        let raw = cast(b, raw, signed(wide));
        if rest == 0 {
            raw
        } else {
            let up = with(b, BinaryOp::Shl, raw, rest);
            with(b, BinaryOp::Shr, up, rest)
        }
    } else if rest == 0 {
        raw
    } else {
        with(b, BinaryOp::And, raw, mask(quant.bits))
    };
    let number = cast(b, integer, quant.compute);
    match quant.form {
        Form::Fixed { .. } => {
            let scale = b.constant(quant.scale());
            b.binary(BinaryOp::Mul, number, scale)
        }
        _ => number,
    }
}

/// The bits for a number, without any above them, as `QuantType::encode` has it.
fn encode(b: &mut Builder<'_>, quant: QuantType, value: Value) -> Value {
    let wide = if quant.width() > 32 { U64 } else { U32 };
    let whole = match quant.form {
        Form::Float { .. } => return encode_float(b, quant, value),
        Form::Int => value,
        Form::Fixed { .. } => {
            let compute = quant.compute;
            let scale = b.constant(quant.inverse_scale());
            let scaled = b.binary(BinaryOp::Mul, value, scale);
            let [zero, up, below] = [0.0, 0.5, -0.5].map(|x| b.constant(Scalar::float(compute, x)));
            let negative = b.compare(CompareOp::Lt, scaled, zero);
            let half = b.select(negative, below, up);
            let prepared = b.binary(BinaryOp::Add, scaled, half);
            cast(b, prepared, if quant.signed { I32 } else { I64 })
        }
    };
    let bits = cast(b, whole, wide);
    if quant.bits == wide.bits() {
        return bits;
    }
    with(b, BinaryOp::And, bits, mask(quant.bits))
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    #[test]
    fn integers_beside_each_other() {
        check_pass!("lower_access", "
            tree0 { dense i:8 { bit_struct bits=16 { place x: qu3/i32, place y: qi5/i32 } } }
            field @x: i32 = tree0 [S3]
            field @y: i32 = tree0 [S4]
            func @f(v0: i32) {
                v1: ref<i32> = field_at @x, [v0]
                v2: ref<i32> = field_at @y, [v0]
                v3: i32 = load v1
                store v2, v3
                yield []
            }", @"
            func @f(v0: i32) {
                v1: cell<tree0.S0> = root tree0
                v2: container<tree0.S1> = child tree0.S1, v1
                v3: i64 = linearize tree0.S1, [v0]
                v4: cell<tree0.S1> = lookup tree0.S1, v2, v3
                v5: ref<u16> = child tree0.S2, v4
                v6: u16 = load v5
                v7: u32 = cast v6
                v8: u32 = const 7
                v9: u32 = and v7, v8
                v10: i32 = cast v9
                v11: ref<u16> = child tree0.S2, v4
                v12: u16 = update v11 (v13: u16) {
                    v14: u32 = cast v13
                    v15: u32 = cast v10
                    v16: u32 = const 31
                    v17: u32 = and v15, v16
                    v18: u32 = const 4294967047
                    v19: u32 = and v14, v18
                    v20: u32 = const 3
                    v21: u32 = shl v17, v20
                    v22: u32 = or v19, v21
                    v23: u16 = cast v22
                    yield [v23]
                }
                yield []
            }
            ");
    }

    #[test]
    fn own_words_need_no_step() {
        check_pass!("lower_access", "
            tree0 { dense i:2 { quant_array i:8 bits=32 { place x: qi4*0.25/f32 } } }
            field @x: f32 = tree0 [S3]
            kernel @k() {
                task range own_words {
                    v0: i64 = const 0
                    v1: i64 = const 16
                    yield [v0, v1]
                } {
                    each (v2: i64) {
                        v3: ref<f32> = field_at @x, [v2]
                        v4: f32 = const 1.5
                        v5: f32 = atomic_add v3, v4
                        yield []
                    }
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                task range own_words {
                    v0: i64 = const 0
                    v1: i64 = const 16
                    yield [v0, v1]
                } {
                    each (v2: i64) {
                        v3: f32 = const 1.5
                        v4: cell<tree0.S0> = root tree0
                        v5: container<tree0.S1> = child tree0.S1, v4
                        v6: i64 = const 3
                        v7: i64 = shr v2, v6
                        v8: i64 = linearize tree0.S1, [v7]
                        v9: cell<tree0.S1> = lookup tree0.S1, v5, v8
                        v10: ref<u32> = child tree0.S2, v9
                        v11: i64 = const 7
                        v12: i64 = and v2, v11
                        v13: i64 = linearize tree0.S2, [v12]
                        v14: i64 = const 4
                        v15: i64 = mul v13, v14
                        v16: u32 = load v10
                        v17: u32 = cast v15
                        v18: u32 = ushr v16, v17
                        v19: i32 = cast v18
                        v20: i32 = const 28
                        v21: i32 = shl v19, v20
                        v22: i32 = const 28
                        v23: i32 = shr v21, v22
                        v24: f32 = cast v23
                        v25: f32 = const 0.25
                        v26: f32 = mul v24, v25
                        v27: f32 = add v26, v3
                        v28: f32 = const 4.0
                        v29: f32 = mul v27, v28
                        v30: f32 = const 0.0
                        v31: f32 = const 0.5
                        v32: f32 = const -0.5
                        v33: u1 = lt v29, v30
                        v34: f32 = select v33, v32, v31
                        v35: f32 = add v29, v34
                        v36: i32 = cast v35
                        v37: u32 = cast v36
                        v38: u32 = const 15
                        v39: u32 = and v37, v38
                        v40: u32 = cast v15
                        v41: u32 = const 15
                        v42: u32 = shl v41, v40
                        v43: u32 = not v42
                        v44: u32 = and v16, v43
                        v45: u32 = shl v39, v40
                        v46: u32 = or v44, v45
                        store v10, v46
                        v47: u32 = cast v15
                        v48: u32 = ushr v16, v47
                        v49: i32 = cast v48
                        v50: i32 = const 28
                        v51: i32 = shl v49, v50
                        v52: i32 = const 28
                        v53: i32 = shr v51, v52
                        v54: f32 = cast v53
                        v55: f32 = const 0.25
                        v56: f32 = mul v54, v55
                        yield []
                    }
                    yield []
                }
                yield []
            }
            ");
    }

    #[test]
    fn a_component_that_is_not_known() {
        check_pass!("lower_access", "
            tree0 { dense i:4 { bit_struct bits=8 { place x: qu3^2/f32 }, bit_struct bits=8 { place y: qu3^2/f32 } } }
            field @v: vec<2, f32> = tree0 [S3, S5]
            func @f(v0: i32, v1: i32) {
                v2: ref<vec<2, f32>> = field_at @v, [v0]
                v3: ref<f32> = elem_ref v2, [v1]
                v4: f32 = const 1.5
                store v3, v4
                yield []
            }", @"
            func @f(v0: i32, v1: i32) {
                v2: f32 = const 1.5
                v3: cell<tree0.S0> = root tree0
                v4: container<tree0.S1> = child tree0.S1, v3
                v5: i64 = linearize tree0.S1, [v0]
                v6: cell<tree0.S1> = lookup tree0.S1, v4, v5
                v7: ref<u8> = child tree0.S2, v6
                v8: ref<u8> = child tree0.S4, v6
                v9: i32 = const 1
                v10: u1 = eq v1, v9
                if v10 {
                    v11: u8 = update v8 (v12: u8) {
                        v13: u32 = cast v12
                        v14: u1 = eq v2, v2
                        v15: u32 = bitcast v2
                        v16: u32 = const 2143289344
                        v17: u32 = select v14, v15, v16
                        v18: u32 = const 2147483647
                        v19: u32 = and v17, v18
                        v20: u32 = const 524288
                        v21: u32 = add v19, v20
                        v22: u32 = const 20
                        v23: u32 = ushr v21, v22
                        v24: u32 = const 1016
                        v25: u1 = lt v23, v24
                        v26: u32 = const 1008
                        v27: u32 = sub v23, v26
                        v28: u32 = const 31
                        v29: u32 = min v27, v28
                        v30: u32 = const 0
                        v31: u32 = select v25, v30, v29
                        v32: u32 = const 4294967264
                        v33: u32 = and v13, v32
                        v34: u32 = or v33, v31
                        v35: u8 = cast v34
                        yield [v35]
                    }
                    yield []
                } {
                    v36: u8 = update v7 (v37: u8) {
                        v38: u32 = cast v37
                        v39: u1 = eq v2, v2
                        v40: u32 = bitcast v2
                        v41: u32 = const 2143289344
                        v42: u32 = select v39, v40, v41
                        v43: u32 = const 2147483647
                        v44: u32 = and v42, v43
                        v45: u32 = const 524288
                        v46: u32 = add v44, v45
                        v47: u32 = const 20
                        v48: u32 = ushr v46, v47
                        v49: u32 = const 1016
                        v50: u1 = lt v48, v49
                        v51: u32 = const 1008
                        v52: u32 = sub v48, v51
                        v53: u32 = const 31
                        v54: u32 = min v52, v53
                        v55: u32 = const 0
                        v56: u32 = select v50, v55, v54
                        v57: u32 = const 4294967264
                        v58: u32 = and v38, v57
                        v59: u32 = or v58, v56
                        v60: u8 = cast v59
                        yield [v60]
                    }
                    yield []
                }
                yield []
            }
            ");
    }
}
