//! Indices that are computed from floats are clamped to fields, arrays and tensors: a NaN or a large number converted
//! to an integer could address any memory.
//!
//! ```text
//! v1: i32 = cast v0            v1: i32 = cast v0
//! v2 = field_at @x, [v1]  ==>  v2: u32 = cast v1
//!                              v3: u32 = min v2, 7
//!                              v4: i32 = cast v3
//!                              v5 = field_at @x, [v4]
//! ```
//! One unsigned minimum for an axis: what is below zero is beyond all indices then, and becomes the last one. Indices that
//! ranges prove to be inside, and those that no float has part in, stay as they are; accesses below sparse nodes look by
//! themselves whether there is a cell. In an array without elements an index becomes 0, where its memory begins. In debug
//! mode all indices are checked.

mod of_floats;

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::analysis::Ranges;
use aerogel_ir::{BinaryOp, Builder, Function, Op, Rewrite, Type, Value, rewrite};

use crate::PassCx;
pub(crate) use of_floats::Exchanged;
use of_floats::OfFloats;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    if cx.options.debug {
        return false;
    }
    let made = OfFloats::of(func, cx.funcs, cx.exchanged);
    if !made.any() {
        return false;
    }
    let known = Known {
        ranges: Ranges::within(func, func.body),
        made: &made,
    };
    rewrite(func, |cursor, inst| {
        let mut op = cursor.func[inst].clone();
        let clamp_known = |cursor: &mut Builder<'_>, index: &mut Value, lo: i128, extent: u64| {
            let inside = (lo, lo + i128::from(extent) - 1);
            if made.contains(*index) && !known.is_inside(cursor.func, *index, inside) {
                *index = clamped(cursor, *index, lo, Extent::Known(extent));
            }
        };
        match &mut op {
            Op::FieldAt { field, indices } if !cx.env.is_sparse(*field) => {
                let offset = &cx.env.fields[*field].offset;
                let shape = cx.env.shape(*field).into_iter().enumerate();
                for ((k, extent), index) in shape.zip(indices) {
                    let lo = i128::from(offset.get(k).copied().unwrap_or(0));
                    clamp_known(cursor, index, lo, extent);
                }
            }
            Op::ElemRef { base, index } => {
                let tensor = cursor.func.ty(*base).pointee().expect("a storage");
                for (extent, index) in tensor.shape().into_iter().zip(index) {
                    clamp_known(cursor, index, 0, extent.into());
                }
            }
            Op::ArrayAt { array, indices } => {
                for (axis, index) in (0..).zip(indices.iter_mut()) {
                    if made.contains(*index) {
                        let array = *array;
                        let extent = cursor.value(Op::ArrayShape { array, axis }, Type::I32);
                        *index = clamped(cursor, *index, 0, Extent::Of(extent));
                    }
                }
            }
            _ => return Rewrite::Keep,
        }
        cursor.func.insts[inst].op = op;
        Rewrite::Keep
    })
}

enum Extent {
    Known(u64),
    /// An `i32` that is known at run time.
    Of(Value),
}

/// An index of the range that starts at `lo` and has the axis's size.
fn clamped(cursor: &mut Builder<'_>, index: Value, lo: i128, extent: Extent) -> Value {
    let elem = cursor.func.elem(index);
    let is_small = match extent {
        Extent::Known(extent) => extent <= 1 << 31,
        Extent::Of(_) => true,
    };
    let (signed, unsigned) = match elem {
        ScalarType::I32 | ScalarType::U32 if is_small => (ScalarType::I32, ScalarType::U32),
        _ => (ScalarType::I64, ScalarType::U64),
    };
    let constant = |cursor: &mut Builder<'_>, value| cursor.constant(Scalar::int(unsigned, value));
    let mut from_zero = cursor.cast(index, unsigned.into());
    if lo != 0 {
        let lo = constant(cursor, lo);
        from_zero = cursor.binary(BinaryOp::Sub, from_zero, lo);
    }
    let last = match extent {
        Extent::Known(extent) => constant(cursor, i128::from(extent) - 1),
        Extent::Of(extent) => {
            let [one, zero] = [1, 0].map(|n| cursor.constant(Scalar::i32(n)));
            let last = cursor.binary(BinaryOp::Sub, extent, one);
            let last = cursor.binary(BinaryOp::Max, last, zero);
            cursor.cast(last, unsigned.into())
        }
    };
    let inside = cursor.binary(BinaryOp::Min, from_zero, last);
    let mut index = cursor.cast(inside, signed.into());
    if lo != 0 {
        let lo = cursor.constant(Scalar::int(signed, lo));
        index = cursor.binary(BinaryOp::Add, index, lo);
    }
    index
}

/// What is known about integers.
struct Known<'a> {
    ranges: Ranges,
    made: &'a OfFloats,
}

impl Known<'_> {
    fn is_inside(&self, func: &Function, index: Value, (lo, hi): (i128, i128)) -> bool {
        self.most(func, index).is_some_and(|x| x <= hi)
            && self.least(func, index).is_some_and(|x| x >= lo)
    }

    /// What an integer is at most. Here a minimum is enough, and the user's own clamp is one.
    fn most(&self, func: &Function, value: Value) -> Option<i128> {
        let of = |v| self.most(func, v);
        match *func.def_op(value).unwrap_or(&Op::Undef {}) {
            Op::Binary {
                op: BinaryOp::Min,
                lhs,
                rhs,
            } => match (of(lhs), of(rhs)) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
            Op::Binary {
                op: BinaryOp::Max,
                lhs,
                rhs,
            } => Some(of(lhs)?.max(of(rhs)?)),
            Op::Select {
                on_true, on_false, ..
            } => Some(of(on_true)?.max(of(on_false)?)),
            _ => match self.made.bounds(value) {
                Some((_, hi)) => of(hi).map(|hi| hi - 1),
                None => self.ranges.of(func, value).map(|range| range.hi),
            },
        }
    }

    /// What an integer is at least.
    fn least(&self, func: &Function, value: Value) -> Option<i128> {
        let of = |v| self.least(func, v);
        match *func.def_op(value).unwrap_or(&Op::Undef {}) {
            Op::Binary {
                op: BinaryOp::Max,
                lhs,
                rhs,
            } => match (of(lhs), of(rhs)) {
                (Some(a), Some(b)) => Some(a.max(b)),
                (a, b) => a.or(b),
            },
            Op::Binary {
                op: BinaryOp::Min,
                lhs,
                rhs,
            } => Some(of(lhs)?.min(of(rhs)?)),
            Op::Select {
                on_true, on_false, ..
            } => Some(of(on_true)?.min(of(on_false)?)),
            _ => match self.made.bounds(value) {
                Some((lo, _)) => of(lo),
                None => self.ranges.of(func, value).map(|range| range.lo),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    #[test]
    fn only_what_is_made_of_floats() {
        check_pass!("clamp_indices", "
            tree0 { dense i:8 { place x: f32 } }
            field @x: f32 = tree0 [S2] offset [-2]
            func @f(v0: f32, v1: i32) {
                v2: i32 = cast v0
                v3: i32 = const 1
                v4: i32 = add v2, v3
                v5: ref<f32> = field_at @x, [v1]
                v6: ref<f32> = field_at @x, [v4]
                v7: f32 = load v5
                store v6, v7
                yield []
            }", @r#"
            func @f(v0: f32, v1: i32) {
                v2: i32 = cast v0
                v3: i32 = const 1
                v4: i32 = add v2, v3
                v5: ref<f32> = field_at @x, [v1]
                v6: u32 = cast v4
                v7: u32 = const 4294967294
                v8: u32 = sub v6, v7
                v9: u32 = const 7
                v10: u32 = min v8, v9
                v11: i32 = cast v10
                v12: i32 = const -2
                v13: i32 = add v11, v12
                v14: ref<f32> = field_at @x, [v13]
                v15: f32 = load v5
                store v14, v15
                yield []
            }
            "#);
    }

    #[test]
    fn what_ranges_prove_to_be_inside_stays() {
        check_pass!("clamp_indices", "
            tree0 { dense i:8 { place x: f32 } }
            field @x: f32 = tree0 [S2]
            func @f(v0: f32) {
                v1: i32 = cast v0
                v2: i32 = const 7
                v3: i32 = const 0
                v4: i32 = min v1, v2
                v5: i32 = max v4, v3
                v6: ref<f32> = field_at @x, [v5]
                v7: i32 = and v1, v2
                v8: ref<f32> = field_at @x, [v7]
                v9: f32 = load v8
                store v6, v9
                yield []
            }", @r#"
            func @f(v0: f32) {
                v1: i32 = cast v0
                v2: i32 = const 7
                v3: i32 = const 0
                v4: i32 = min v1, v2
                v5: i32 = max v4, v3
                v6: ref<f32> = field_at @x, [v5]
                v7: i32 = and v1, v2
                v8: ref<f32> = field_at @x, [v7]
                v9: f32 = load v8
                store v6, v9
                yield []
            }
            "#);
    }

    #[test]
    fn what_loops_carry() {
        check_pass!("clamp_indices", "
            tree0 { dense i:8 { place x: f32 } }
            field @x: f32 = tree0 [S2]
            func @f(v0: f32) {
                v1: i32 = cast v0
                v2: i32 = const 0
                v3: i32 = const 3
                v4: i32 = const 1
                v5: i32 = for v2, v3, v4, [v2] (v6: i32, v7: i32) {
                    v8: ref<f32> = field_at @x, [v7]
                    store v8, v0
                    v9: i32 = add v7, v1
                    yield [v9]
                }
                yield []
            }", @r#"
            func @f(v0: f32) {
                v1: i32 = cast v0
                v2: i32 = const 0
                v3: i32 = const 3
                v4: i32 = const 1
                v5: i32 = for v2, v3, v4, [v2] (v6: i32, v7: i32) {
                    v8: u32 = cast v7
                    v9: u32 = const 7
                    v10: u32 = min v8, v9
                    v11: i32 = cast v10
                    v12: ref<f32> = field_at @x, [v11]
                    store v12, v0
                    v13: i32 = add v7, v1
                    yield [v13]
                }
                yield []
            }
            "#);
    }

    #[test]
    fn counters_between_what_floats_give() {
        check_pass!("clamp_indices", "
            tree0 { dense i:8 { place x: f32 } }
            field @x: f32 = tree0 [S2]
            func @f(v0: f32) {
                v1: i32 = cast v0
                v2: i32 = const 3
                v3: i32 = const 1
                v4: i32 = const 0
                v5: i32 = const 8
                v6: i32 = add v1, v2
                for v1, v6, v3, [] (v7: i32) {
                    v8: ref<f32> = field_at @x, [v7]
                    store v8, v0
                    yield []
                }
                v9: i32 = max v1, v4
                v10: i32 = min v6, v5
                for v9, v10, v3, [] (v11: i32) {
                    v12: ref<f32> = field_at @x, [v11]
                    store v12, v0
                    yield []
                }
                yield []
            }", @"
            func @f(v0: f32) {
                v1: i32 = cast v0
                v2: i32 = const 3
                v3: i32 = const 1
                v4: i32 = const 0
                v5: i32 = const 8
                v6: i32 = add v1, v2
                for v1, v6, v3, [] (v7: i32) {
                    v8: u32 = cast v7
                    v9: u32 = const 7
                    v10: u32 = min v8, v9
                    v11: i32 = cast v10
                    v12: ref<f32> = field_at @x, [v11]
                    store v12, v0
                    yield []
                }
                v13: i32 = max v1, v4
                v14: i32 = min v6, v5
                for v13, v14, v3, [] (v15: i32) {
                    v16: ref<f32> = field_at @x, [v15]
                    store v16, v0
                    yield []
                }
                yield []
            }
            ");
    }

    #[test]
    fn tasks_between_what_floats_give() {
        check_pass!("clamp_indices", "
            tree0 { dense i:8 { place x: f32 } }
            field @x: f32 = tree0 [S2]
            kernel @k(p: f32) {
                task serial {
                    yield []
                } {
                    v0: f32 = arg a0
                    v1: i32 = cast v0
                    v10: i32 = const 3
                    v11: i32 = and v1, v10
                    v2: ref<i32> = temp_at 0
                    store v2, v11
                    yield []
                }
                task range {
                    v3: ref<i32> = temp_at 0
                    v4: i32 = load v3
                    v5: i32 = const 3
                    v6: i32 = add v4, v5
                    yield [v4, v6]
                } {
                    each (v7: i32) {
                        v8: f32 = const 1.0
                        v9: ref<f32> = field_at @x, [v7]
                        store v9, v8
                        yield []
                    }
                    yield []
                }
                yield []
            }", @"
            kernel @k(p: f32) {
                task serial {
                    yield []
                } {
                    v0: f32 = arg a0
                    v1: i32 = cast v0
                    v2: i32 = const 3
                    v3: i32 = and v1, v2
                    v4: ref<i32> = temp_at 0
                    store v4, v3
                    yield []
                }
                task range {
                    v5: ref<i32> = temp_at 0
                    v6: i32 = load v5
                    v7: i32 = const 3
                    v8: i32 = add v6, v7
                    yield [v6, v8]
                } {
                    each (v9: i32) {
                        v10: f32 = const 1.0
                        v11: u32 = cast v9
                        v12: u32 = const 7
                        v13: u32 = min v11, v12
                        v14: i32 = cast v13
                        v15: ref<f32> = field_at @x, [v14]
                        store v15, v10
                        yield []
                    }
                    yield []
                }
                yield []
            }
            ");
    }

    #[test]
    fn what_leaves_and_goes_on() {
        check_pass!("clamp_indices", "
            tree0 { dense i:8 { place x: f32 } }
            field @x: f32 = tree0 [S2]
            func @f(v0: f32, v1: i32) {
                v2: i32 = cast v0
                v3: i32 = const 1
                v4: i32 = const 3
                v5: i32, v6: i32 = while [v3, v3] (v7: i32, v8: i32) {
                    v9: u1 = lt v8, v4
                    yield [v9]
                } (v10: i32, v11: i32) {
                    v12: ref<f32> = field_at @x, [v10]
                    store v12, v0
                    v13: i32 = add v11, v3
                    v14: u1 = eq v11, v1
                    if v14 {
                        continue [v2, v13]
                    } {
                        yield []
                    }
                    yield [v10, v13]
                }
                v15: ref<f32> = field_at @x, [v5]
                store v15, v0
                v16: ref<f32> = field_at @x, [v6]
                store v16, v0
                yield []
            }", @"
            func @f(v0: f32, v1: i32) {
                v2: i32 = cast v0
                v3: i32 = const 1
                v4: i32 = const 3
                v5: i32, v6: i32 = while [v3, v3] (v7: i32, v8: i32) {
                    v9: u1 = lt v8, v4
                    yield [v9]
                } (v10: i32, v11: i32) {
                    v12: u32 = cast v10
                    v13: u32 = const 7
                    v14: u32 = min v12, v13
                    v15: i32 = cast v14
                    v16: ref<f32> = field_at @x, [v15]
                    store v16, v0
                    v17: i32 = add v11, v3
                    v18: u1 = eq v11, v1
                    if v18 {
                        continue [v2, v17]
                    } {
                        yield []
                    }
                    yield [v10, v17]
                }
                v19: u32 = cast v5
                v20: u32 = const 7
                v21: u32 = min v19, v20
                v22: i32 = cast v21
                v23: ref<f32> = field_at @x, [v22]
                store v23, v0
                v24: ref<f32> = field_at @x, [v6]
                store v24, v0
                yield []
            }
            ");
    }

    #[test]
    fn elements_of_tensors() {
        check_pass!("clamp_indices", "
            func @f(v0: f32, v1: i32) -> i32 {
                v2: i32 = cast v0
                v3: ref<vec<3, i32>> = local
                v4: ref<i32> = elem_ref v3, [v2]
                store v4, v1
                v7: i32 = const 0
                v5: ref<i32> = elem_ref v3, [v7]
                v6: i32 = load v5
                yield [v6]
            }", @"
            func @f(v0: f32, v1: i32) -> i32 {
                v2: i32 = cast v0
                v3: ref<vec<3, i32>> = local
                v4: u32 = cast v2
                v5: u32 = const 2
                v6: u32 = min v4, v5
                v7: i32 = cast v6
                v8: ref<i32> = elem_ref v3, [v7]
                store v8, v1
                v9: i32 = const 0
                v10: ref<i32> = elem_ref v3, [v9]
                v11: i32 = load v10
                yield [v11]
            }
            ");
    }

    #[test]
    fn parameters_and_results_of_functions() {
        check_pass!("clamp_indices", "
            tree0 { dense i:8 { place x: f32 } }
            field @x: f32 = tree0 [S2]
            func @f(v0: i32, v1: i32) {
                v2: f32 = const 1.0
                v3: ref<f32> = field_at @x, [v0]
                store v3, v2
                v4: ref<f32> = field_at @x, [v1]
                store v4, v2
                v5: i32 = call @round, [v2]
                v6: ref<f32> = field_at @x, [v5]
                store v6, v2
                yield []
            }
            func @g(v0: i32, v1: i32) {
                call @f, [v0, v1]
                yield []
            }
            func @h(v0: f32) {
                v1: i32 = cast v0
                v2: i32 = const 1
                call @g, [v2, v1]
                yield []
            }
            func @round(v0: f32) -> i32 {
                v1: i32 = cast v0
                yield [v1]
            }", @"
            func @f(v0: i32, v1: i32) {
                v2: f32 = const 1.0
                v3: ref<f32> = field_at @x, [v0]
                store v3, v2
                v4: u32 = cast v1
                v5: u32 = const 7
                v6: u32 = min v4, v5
                v7: i32 = cast v6
                v8: ref<f32> = field_at @x, [v7]
                store v8, v2
                v9: i32 = call @round, [v2]
                v10: u32 = cast v9
                v11: u32 = const 7
                v12: u32 = min v10, v11
                v13: i32 = cast v12
                v14: ref<f32> = field_at @x, [v13]
                store v14, v2
                yield []
            }
            ");
    }

    #[test]
    fn arrays_without_elements() {
        check_pass!("clamp_indices", "
            kernel @k(a: array<f32, 1>, p: f32) {
                task serial {
                    yield []
                } {
                    v0: f32 = arg a1
                    v1: i32 = cast v0
                    v4: i32 = const 3
                    v5: i32 = and v1, v4
                    v2: ref<f32> = array_at a0, [v5]
                    v3: f32 = load v2
                    store v2, v3
                    yield []
                }
                yield []
            }", @"
        kernel @k(a: array<f32, 1>, p: f32) {
            task serial {
                yield []
            } {
                v0: f32 = arg a1
                v1: i32 = cast v0
                v2: i32 = const 3
                v3: i32 = and v1, v2
                v4: i32 = array_shape a0, 0
                v5: u32 = cast v3
                v6: i32 = const 1
                v7: i32 = const 0
                v8: i32 = sub v4, v6
                v9: i32 = max v8, v7
                v10: u32 = cast v9
                v11: u32 = min v5, v10
                v12: i32 = cast v11
                v13: ref<f32> = array_at a0, [v12]
                v14: f32 = load v13
                store v13, v14
                yield []
            }
            yield []
        }
        ");
    }
}
