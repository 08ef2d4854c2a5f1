//! Indices that are made of floats stay inside fields and arrays: the integer of a NaN, or of a number that is too large,
//! would lead anywhere in memory.
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
//! themselves whether there is a cell. In debug mode all indices are checked.

use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::LookupSet;
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::analysis::Ranges;
use aerogel_ir::{
    BinaryOp, Builder, Effect, Function, Inst, Op, Region, Rewrite, Type, Value, rewrite, walk,
};

use crate::PassCx;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    if cx.options.debug {
        return false;
    }
    let made = OfFloats::of(func);
    if !made.any {
        return false;
    }
    let ranges = Ranges::within(func, func.body);
    rewrite(func, |cursor, inst| {
        let mut op = cursor.func[inst].clone();
        match &mut op {
            Op::FieldAt { field, indices } if !cx.env.is_sparse(*field) => {
                let offset = &cx.env.fields[*field].offset;
                for (k, extent) in cx.env.shape(*field).into_iter().enumerate() {
                    let lo = i128::from(offset.get(k).copied().unwrap_or(0));
                    let inside = (lo, lo + i128::from(extent) - 1);
                    let index = &mut indices[k];
                    if made.of_floats[*index] && !is_inside(cursor.func, &ranges, *index, inside) {
                        *index = clamped(cursor, *index, lo, Extent::Known(extent));
                    }
                }
            }
            Op::ArrayAt { array, indices } => {
                for (axis, index) in (0..).zip(indices.iter_mut()) {
                    if made.of_floats[*index] {
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

/// An index from `lo` up to an extent further.
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
            let extent = cursor.cast(extent, unsigned.into());
            let one = constant(cursor, 1);
            cursor.binary(BinaryOp::Sub, extent, one)
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

fn is_inside(func: &Function, ranges: &Ranges, index: Value, (lo, hi): (i128, i128)) -> bool {
    most(func, ranges, index).is_some_and(|x| x <= hi)
        && least(func, ranges, index).is_some_and(|x| x >= lo)
}

/// What an integer is at most. Here a minimum is enough, and the user's own clamp is one.
fn most(func: &Function, ranges: &Ranges, value: Value) -> Option<i128> {
    let of = |v| most(func, ranges, v);
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
        _ => ranges.of(func, value).map(|(_, hi)| hi),
    }
}

/// What an integer is at least.
fn least(func: &Function, ranges: &Ranges, value: Value) -> Option<i128> {
    let of = |v| least(func, ranges, v);
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
        _ => ranges.of(func, value).map(|(lo, _)| lo),
    }
}

/// Which integers floats have part in.
struct OfFloats {
    of_floats: SecondaryMap<Value, bool>,
    /// Temporaries between tasks that hold some.
    temps: LookupSet<u32>,
    any: bool,
    changed: bool,
}

impl OfFloats {
    fn of(func: &Function) -> Self {
        let mut this = Self {
            of_floats: SecondaryMap::new(),
            temps: LookupSet::default(),
            any: false,
            changed: true,
        };
        let mut casts = false;
        walk(func, func.body, &mut |func, inst| {
            casts |= matches!(func[inst], Op::Cast { x } if is_float(func, x));
        });
        // What loops carry is seen where they yield it, and used before.
        while casts && std::mem::take(&mut this.changed) {
            this.region(func, func.body, None, None);
        }
        this
    }

    /// A region of `owner`, inside the loop `around`.
    fn region(
        &mut self,
        func: &Function,
        region: Region,
        owner: Option<Inst>,
        around: Option<Inst>,
    ) {
        for &inst in &func.regions[region].insts {
            let op = &func[inst];
            let around = match op {
                Op::For { .. } | Op::While { .. } => Some(inst),
                _ => around,
            };
            match op {
                Op::For { init, .. } | Op::While { init, .. } => self.carry(func, Some(inst), init),
                Op::Yield { values } => self.carry(func, owner, values),
                Op::Break { values } | Op::Continue { values } => self.carry(func, around, values),
                &Op::Store { place, value } if self.of_floats[value] => self.store(func, place),
                &Op::Load { place } if self.of_floats[root(func, place)] => {
                    self.results(func, inst)
                }
                Op::Cast { x } if is_float(func, *x) => self.results(func, inst),
                Op::TempAt { offset } if self.temps.contains(offset) => {
                    self.mark(func.insts[inst].results[0]);
                }
                op if op.effect() == Effect::Pure => {
                    let mut found = false;
                    op.operands(|v| found |= self.of_floats[v]);
                    if found {
                        self.results(func, inst);
                    }
                }
                _ => {}
            }
            for owned in func.owned(inst) {
                self.region(func, owned, Some(inst), around);
            }
        }
    }

    /// Storage that is the function's own holds one now.
    fn store(&mut self, func: &Function, place: Value) {
        let place = root(func, place);
        match func.def_op(place) {
            Some(Op::Local {}) => self.mark(place),
            Some(Op::TempAt { offset }) => {
                self.changed |= self.temps.insert(*offset);
            }
            _ => {}
        }
    }

    /// What an instruction with regions is given by them, one after the other.
    fn carry(&mut self, func: &Function, owner: Option<Inst>, values: &[Value]) {
        let Some(owner) = owner else { return };
        for (k, &value) in values.iter().enumerate() {
            if !self.of_floats[value] {
                continue;
            }
            if let Some(&result) = func.insts[owner].results.get(k) {
                self.mark_integer(func, result);
            }
            match func[owner] {
                Op::For { body, .. } => {
                    self.mark_integer(func, func.regions[body].params[k + 1]);
                }
                Op::While { cond, body, .. } => {
                    for region in [cond, body] {
                        if let Some(&param) = func.regions[region].params.get(k) {
                            self.mark_integer(func, param);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn results(&mut self, func: &Function, inst: Inst) {
        for &result in &func.insts[inst].results {
            self.mark_integer(func, result);
        }
    }

    fn mark_integer(&mut self, func: &Function, value: Value) {
        let elem = func.ty(value).elem();
        if elem.is_some_and(|elem| elem.is_int() && elem != ScalarType::U1) {
            self.mark(value);
        }
    }

    fn mark(&mut self, value: Value) {
        self.changed |= !self.of_floats[value];
        self.any = true;
        self.of_floats[value] = true;
    }
}

fn is_float(func: &Function, value: Value) -> bool {
    func.ty(value).elem().is_some_and(ScalarType::is_float)
}

/// The storage that a place is part of, if that is a local or a temporary; else the place.
fn root(func: &Function, place: Value) -> Value {
    match func.def_op(place) {
        Some(&Op::ElemRef { base, .. } | &Op::MemberRef { base, .. }) => root(func, base),
        _ => place,
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
}
