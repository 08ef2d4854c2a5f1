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
use aerogel_snode::quant::{NAN, mask};
use aerogel_snode::{Form, NodeId, NodeKind, QuantType, Tree};

use ScalarType::{F32, I32, I64, U32, U64};

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

fn constant(b: &mut Builder<'_>, ty: ScalarType, value: u64) -> Value {
    b.constant(Scalar::int(ty, value.into()))
}

fn with(b: &mut Builder<'_>, op: BinaryOp, lhs: Value, rhs: u64) -> Value {
    let ty = b.func.elem(lhs);
    let rhs = constant(b, ty, rhs);
    b.binary(op, lhs, rhs)
}

fn select(b: &mut Builder<'_>, cond: Value, on_true: Value, on_false: Value) -> Value {
    let ty = b.func.ty(on_true);
    let op = Op::Select {
        cond,
        on_true,
        on_false,
    };
    b.value(op, ty)
}

fn compare(b: &mut Builder<'_>, op: CompareOp, lhs: Value, rhs: u64) -> Value {
    let ty = b.func.elem(lhs);
    let rhs = constant(b, ty, rhs);
    b.compare(op, lhs, rhs)
}

fn bitcast(b: &mut Builder<'_>, x: Value, ty: ScalarType) -> Value {
    b.value(Op::Bitcast { x }, ty.into())
}

fn cast(b: &mut Builder<'_>, x: Value, ty: ScalarType) -> Value {
    b.cast(x, ty.into())
}

fn signed(wide: ScalarType) -> ScalarType {
    if wide == U64 { I64 } else { I32 }
}

impl Bits<'_> {
    fn quant_of(&self, place: NodeId) -> QuantType {
        let NodeKind::Bits(quant) = self.tree[place].kind else {
            unreachable!("a word holds quantised components")
        };
        quant
    }

    fn quant(&self) -> QuantType {
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
            select(b, same, new, word)
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

    fn decoded_shared(&self, b: &mut Builder<'_>, word: Value, place: NodeId) -> Value {
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
            select(b, negative, opposite, number)
        } else {
            number
        };
        let none = compare(b, CompareOp::Eq, field, 0);
        let zero = b.constant(Scalar::f32(0.0));
        select(b, none, zero, number)
    }

    /// A word with one of the components changed that share an exponent: the others are fitted to the
    /// greatest of all.
    fn encoded_shared(
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
        let field = select(b, none, zero, field);

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
            let fraction = select(b, tiny, zero, fraction);
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
            let number = select(b, too_large, top, number);
            let mut number = select(b, none, zero, number);
            if quant.signed {
                let sign = with(b, BinaryOp::UShr, bits, 31);
                let sign = with(b, BinaryOp::Shl, sign, digits.into());
                let negative = b.binary(BinaryOp::Or, number, sign);
                let is_zero = compare(b, CompareOp::Eq, number, 0);
                number = select(b, is_zero, zero, negative);
            }
            let number = cast(b, number, wide);
            let at = u64::from(self.tree[place].shift);
            word = put(b, word, at, mask(quant.bits), number);
        }
        word
    }
}

/// Logical shift to the right by a constant.
fn down(b: &mut Builder<'_>, word: Value, by: u32) -> Value {
    match by {
        0 => word,
        _ => with(b, BinaryOp::UShr, word, by.into()),
    }
}

/// A word with some bits replaced; `bits` are no more than `hole` has.
fn put(b: &mut Builder<'_>, word: Value, shift: u64, hole: u64, bits: Value) -> Value {
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
            let half = select(b, negative, below, up);
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

/// The bits of an `f32`; one and the same for all that are no numbers.
fn bits_of(b: &mut Builder<'_>, x: Value) -> Value {
    let is_number = b.compare(CompareOp::Eq, x, x);
    let bits = bitcast(b, x, U32);
    let nan = constant(b, U32, NAN.into());
    select(b, is_number, bits, nan)
}

fn decode_float(b: &mut Builder<'_>, quant: QuantType, raw: Value) -> Value {
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
    let bits = select(b, none, zero, bits);
    bitcast(b, bits, F32)
}

fn encode_float(b: &mut Builder<'_>, quant: QuantType, value: Value) -> Value {
    let (digits, exponent) = (quant.digits(), quant.exponent_bits());
    let bits = bits_of(b, value);
    let magnitude = with(b, BinaryOp::And, bits, 0x7fff_ffff);
    let dropped = 23 - digits;
    let mut rounded = with(b, BinaryOp::Add, magnitude, (1 << dropped) >> 1);
    if exponent == 8 {
        // No number stays none.
        let none = compare(b, CompareOp::Ge, magnitude, 0x7f80_0000);
        rounded = select(b, none, magnitude, rounded);
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
    select(b, small, zero, number)
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
