//! An element at an index that a loop chooses is carried along with the index.
//!
//! ```text
//! v0 = for 1, n, 1, [v9] (v1: i32, v2: i32) {       v8 = load (field_at @a, [v9])
//!     v3 = load (field_at @a, [v1])                 v0, v7 = for 1, n, 1, [v9, v8] (v1: i32, v2: i32, v4: f32) {
//!     v4 = load (field_at @a, [v2])                     v3 = load (field_at @a, [v1])
//!     v5 = gt v3, v4                        ==>         v5 = gt v3, v4
//!     v6 = select v5, v1, v2                            v6 = select v5, v1, v2
//!     yield [v6]                                        v7 = select v5, v3, v4
//! }                                                     yield [v6, v7]
//!                                                   }
//! ```
//! A maximum that keeps its index only waits in each iteration for a load whose address depends on the iteration before. What
//! is loaded there next has mostly been loaded already, to be compared. Nothing in the loop may write what it loads.

use aerogel_base::Span;
use aerogel_base::entity::SecondaryMap;
use aerogel_ir::analysis::access::{Writes, classes, defined_in, writes};
use aerogel_ir::analysis::{Ranges, trips};
use aerogel_ir::{Builder, Function, Inst, Op, Region, Type, Value, replace_value, walk};

use super::elements::{self, indices_of};
use crate::PassCx;
use crate::simplify::existing::is_inside;
use crate::yields::yield_also;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let mut pass = Chosen {
        cx,
        ranges: Ranges::within(func, func.body),
        left: Vec::new(),
    };
    let body = func.body;
    pass.region(func, body)
}

struct Chosen<'a> {
    cx: &'a PassCx<'a>,
    ranges: Ranges,
    /// What loops leave: the loop, the element, its value.
    left: Vec<(Inst, Op, Value)>,
}

/// A load that a loop may carry.
struct Found {
    /// What names the element.
    element: Op,
    place: Value,
    value: Value,
}

/// What the carried value becomes in an iteration.
struct Next<'a> {
    found: &'a Found,
    body: Region,
    /// The value that the loop carries.
    carried: Value,
    /// Whether the instructions for it are written, or only looked for.
    writes: bool,
}

impl Chosen<'_> {
    /// Looks at the loops of a region, at inner loops first.
    fn region(&mut self, func: &mut Function, region: Region) -> bool {
        let mut changed = false;
        for inst in std::mem::take(&mut func.regions[region].insts) {
            for owned in func.owned(inst) {
                changed |= self.region(func, owned);
            }
            if let Op::For { body, .. } = func[inst] {
                while let Some(found) = self.find(func, inst, body) {
                    self.carry(func, region, inst, &found);
                    changed = true;
                }
            }
            func.regions[region].insts.push(inst);
        }
        changed
    }

    /// A load that a loop can carry.
    fn find(&self, func: &mut Function, looped: Inst, body: Region) -> Option<Found> {
        let Op::For { step, .. } = func[looped] else {
            return None;
        };
        func.as_const(step).filter(|step| !step.is_zero())?;
        if func.regions[body].params.len() == 1 || may_exit(func, body) {
            return None;
        }
        let mut inside = SecondaryMap::new();
        defined_in(func, body, &mut inside);
        let written = writes(func, self.cx.env, body);
        let mut used: SecondaryMap<Value, bool> = SecondaryMap::new();
        walk(func, body, &mut |func, inst| {
            func[inst].operands(|v| used[v] = true);
        });
        let insts = func.regions[body].insts.clone();
        insts.into_iter().find_map(|inst| {
            let Op::Load { place } = func[inst] else {
                return None;
            };
            let value = func.insts[inst].results[0];
            let element = func.def_op(place)?.clone();
            let carried = &func.regions[body].params[1..];
            let indices = indices_of(&element)?;
            let mut chosen = indices.iter().filter(|&&index| inside[index]).peekable();
            let may = matches!(func.ty(place), Type::RefScalar(_))
                && used[value]
                && chosen.peek().is_some()
                && chosen.all(|index| carried.contains(index))
                && is_unwritten(func, self.cx, place, &written);
            let found = Found {
                element,
                place,
                value,
            };
            let next = Next {
                found: &found,
                body,
                carried: value,
                writes: false,
            };
            (may && self.next(func, &next).is_some()).then_some(found)
        })
    }

    /// Lets a loop, which comes next in a region, carry what it loads.
    fn carry(&mut self, func: &mut Function, region: Region, looped: Inst, found: &Found) {
        let Op::For { ref init, body, .. } = func[looped] else {
            unreachable!("elements are chosen by loops")
        };
        let first = element_at(func, found, body, init);
        let [place_ty, ty] = [found.place, found.value].map(|v| func.ty(v));
        let runs = trips::length(func, &func[looped]).is_some_and(|n| n > 0);
        let mut b = Builder::new(func, region);
        b.span = b.func.insts[looped].span;
        let load = |b: &mut Builder<'_>| {
            let place = b.value(first, place_ty);
            b.load(place)
        };
        let begin = match runs {
            true => load(&mut b),
            false => {
                let cond = elements::runs(&mut b, looped);
                elements::read_if(&mut b, cond, ty, load)
            }
        };
        let next = Next {
            found,
            body,
            carried: func.add_param(body, ty),
            writes: true,
        };
        let value = self.next(func, &next).expect("it was found before");
        yield_also(func, body, |_| value);
        if let Op::For { init, .. } = &mut func.insts[looped].op {
            init.push(begin);
        }
        let results = func.insts[looped].results.clone();
        let last = element_at(func, found, body, &results);
        let result = func.add_result(looped, ty);
        replace_value(func, body, found.value, next.carried);
        // A loop that does not run leaves no element.
        if runs {
            self.left.push((looped, last, result));
        }
    }

    /// The value that a loop carries on, if there is one.
    fn next(&self, func: &mut Function, next: &Next<'_>) -> Option<Value> {
        let ends = func.yielded(next.body)?.to_vec();
        let element = element_at(func, next.found, next.body, &ends);
        // An index that is not chosen is a counter or computed: its load is contiguous, or has to wait in any case.
        let is_chosen = |&index: &Value| {
            let op = func.def_op(index);
            matches!(op, Some(Op::If { .. } | Op::Select { .. } | Op::For { .. }))
        };
        indices_of(&element)?
            .iter()
            .find(|index| is_chosen(index))?;
        let before = func.regions[next.body].insts.len();
        self.element(func, next, &element, next.body, before)
    }

    /// What an element holds, as a value at the end of a region: the loop's body, or a branch inside of the `before`th
    /// instruction of the body.
    fn element(
        &self,
        func: &mut Function,
        next: &Next<'_>,
        element: &Op,
        region: Region,
        before: usize,
    ) -> Option<Value> {
        if is_same(func, element, &next.found.element) {
            return Some(next.carried);
        }
        if let Some(value) = self.loaded(func, next, element, region, before) {
            return Some(value);
        }
        let chosen = indices_of(element)?.iter().find_map(|&index| {
            let inst = func.def(index)?;
            match func[inst] {
                Op::If { .. } | Op::Select { .. } => Some(inst),
                _ => None,
            }
        });
        match chosen {
            Some(inst) if matches!(func[inst], Op::If { .. }) => {
                self.of_branches(func, next, element, region, before, inst)
            }
            Some(inst) => self.of_select(func, next, element, region, before, inst),
            None => None,
        }
        .or_else(|| self.loads(func, next, element, region))
    }

    /// An element that a branch chooses.
    fn of_branches(
        &self,
        func: &mut Function,
        next: &Next<'_>,
        element: &Op,
        region: Region,
        before: usize,
        inst: Inst,
    ) -> Option<Value> {
        let Op::If {
            then, otherwise, ..
        } = func[inst]
        else {
            return None;
        };
        let at = func.regions[region].insts.iter().position(|&i| i == inst)?;
        let before = match region == next.body {
            true => at,
            false => before,
        };
        let results = func.insts[inst].results.clone();
        let sides = [then, otherwise].map(|side| {
            let yielded = func.yielded(side)?.to_vec();
            let of_side = with_indices(element, |index| {
                let k = results.iter().position(|&result| result == index);
                k.map_or(index, |k| yielded[k])
            });
            // Another index may be computed only after the branch.
            let others = indices_of(element)?.iter().filter(|i| !results.contains(i));
            let are_there = others.copied().all(|index| {
                let is_param = func.regions[next.body].params.contains(&index);
                is_param || !is_inside_of(func, next.body, index)
            });
            let value = self.element(func, next, &of_side, side, before);
            value.filter(|_| are_there)
        });
        let [Some(x), Some(y)] = sides else {
            return None;
        };
        if !next.writes {
            return Some(next.carried);
        }
        yield_also(func, then, |_| x);
        yield_also(func, otherwise, |_| y);
        Some(func.add_result(inst, func.ty(next.carried)))
    }

    /// An element that is chosen by values of one condition.
    fn of_select(
        &self,
        func: &mut Function,
        next: &Next<'_>,
        element: &Op,
        region: Region,
        before: usize,
        inst: Inst,
    ) -> Option<Value> {
        let Op::Select { cond, .. } = func[inst] else {
            return None;
        };
        let side = |func: &Function, of_true: bool| {
            with_indices(element, |index| match func.def_op(index) {
                Some(&Op::Select {
                    cond: other,
                    on_true,
                    on_false,
                }) if other == cond => match of_true {
                    true => on_true,
                    false => on_false,
                },
                _ => index,
            })
        };
        let on_true = side(func, true);
        let on_true = self.element(func, next, &on_true, region, before)?;
        let on_false = side(func, false);
        let on_false = self.element(func, next, &on_false, region, before)?;
        if !next.writes {
            return Some(next.carried);
        }
        Some(at_end(func, region, |b| b.select(cond, on_true, on_false)))
    }

    /// What has been loaded from an element before the end of a region, or is left of it by a loop.
    fn loaded(
        &self,
        func: &Function,
        next: &Next<'_>,
        element: &Op,
        region: Region,
        before: usize,
    ) -> Option<Value> {
        let in_body = func.regions[next.body].insts.iter().take(before);
        let in_region = func.regions[region].insts.iter();
        in_body.chain(in_region).find_map(|&inst| match func[inst] {
            Op::Load { place } => {
                let is_it = is_same(func, element, func.def_op(place)?);
                is_it.then(|| func.insts[inst].results[0])
            }
            Op::For { .. } => {
                let mut left = self.left.iter().filter(|(looped, ..)| *looped == inst);
                let (.., value) = left.find(|(_, left, _)| is_same(func, element, left))?;
                Some(*value)
            }
            _ => None,
        })
    }

    /// Loads an element at the end of a region, if it exists.
    fn loads(
        &self,
        func: &mut Function,
        next: &Next<'_>,
        element: &Op,
        region: Region,
    ) -> Option<Value> {
        let ty = func.ty(next.found.place);
        let place = func.new_inst(element.clone(), &[ty], Span::default());
        let exists = is_inside(func, self.cx, &self.ranges, func.insts[place].results[0]);
        if !exists || !next.writes {
            return exists.then_some(next.carried);
        }
        Some(at_end(func, region, |b| {
            b.append(place);
            let place = b.func.insts[place].results[0];
            b.load(place)
        }))
    }
}

/// Writes instructions before the end of a region.
fn at_end(
    func: &mut Function,
    region: Region,
    write: impl FnOnce(&mut Builder<'_>) -> Value,
) -> Value {
    let end = func.regions[region].insts.pop();
    let end = end.expect("a region ends in a terminator");
    let value = write(&mut Builder::new(func, region));
    func.regions[region].insts.push(end);
    value
}

fn with_indices(element: &Op, mut by: impl FnMut(Value) -> Value) -> Op {
    let mut element = element.clone();
    element.map_operands(&mut by);
    element
}

/// The element of a loop for other values of what the loop carries.
fn element_at(func: &Function, found: &Found, body: Region, values: &[Value]) -> Op {
    let carried = &func.regions[body].params[1..];
    with_indices(&found.element, |index| {
        let k = carried.iter().position(|&param| param == index);
        k.map_or(index, |k| values[k])
    })
}

/// Whether two elements are one.
fn is_same(func: &Function, a: &Op, b: &Op) -> bool {
    let same = |(&a, &b): (&Value, &Value)| {
        a == b || func.as_const(a).is_some() && func.as_const(a) == func.as_const(b)
    };
    let [Some(x), Some(y)] = [a, b].map(indices_of) else {
        return false;
    };
    let is_one = match (a, b) {
        (Op::FieldAt { field: a, .. }, Op::FieldAt { field: b, .. }) => a == b,
        (Op::ArrayAt { array: a, .. }, Op::ArrayAt { array: b, .. }) => a == b,
        _ => false,
    };
    is_one && x.iter().zip(y).all(same)
}

fn is_inside_of(func: &Function, region: Region, value: Value) -> bool {
    let mut inside = SecondaryMap::new();
    defined_in(func, region, &mut inside);
    inside[value]
}

/// Whether something in a region may leave it before its end.
fn may_exit(func: &Function, region: Region) -> bool {
    let mut exits = false;
    walk(func, region, &mut |func, inst| {
        exits |= func[inst].may_exit()
    });
    exits
}

fn is_unwritten(func: &Function, cx: &PassCx<'_>, place: Value, written: &Writes) -> bool {
    let of_place = classes(func, cx.env, place);
    !written.anything && !of_place.iter().any(|class| written.classes.contains(class))
}

#[cfg(test)]
mod tests;
