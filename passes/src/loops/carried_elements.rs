//! An element that each iteration of a loop reads and writes becomes a variable that the loop carries.
//!
//! ```text
//! for 0, n, 1, [] (v1: i32) {               v5 = load (field_at @b, [v0])
//!     v2 = load (field_at @b, [v0])         v6 = for 0, n, 1, [v5] (v1: i32, v2: f32) {
//!     v3 = add v2, v4               ==>         v3 = add v2, v4
//!     store (field_at @b, [v0]), v3             yield [v3]
//!     yield []                              }
//! }                                         store (field_at @b, [v0]), v6
//! ```
//! This is scalar replacement (Callahan, Carr and Kennedy, Improving Register Allocation for Subscripted Variables, PLDI 1990).
//! The sum then waits for no memory, and what makes vectors of variables that accumulate does so here, too. The element is
//! written after the loop only where the program would have written it: in each iteration, or before the loop. A store before
//! the loop that nothing else needs goes. Where the loop may not run at all, the element is accessed only if it does.

use aerogel_base::entity::SecondaryMap;
use aerogel_ir::analysis::access::{
    Change, Class, below, change, classes, defined_in, has_classes, is_quantised, touched,
};
use aerogel_ir::analysis::trips;
use aerogel_ir::{Builder, Function, Inst, Op, Region, Type, Value, replace_value, walk};

use super::elements;
use crate::PassCx;
use crate::simplify::promote_locals;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let body = func.body;
    let changed = carry(func, cx, body);
    if changed {
        promote_locals::run(func, cx);
    }
    changed
}

/// Carries elements through the loops of a region, those of inner loops first.
fn carry(func: &mut Function, cx: &PassCx<'_>, region: Region) -> bool {
    let mut changed = false;
    for inst in std::mem::take(&mut func.regions[region].insts) {
        for owned in func.owned(inst) {
            changed |= carry(func, cx, owned);
        }
        let before = &func.regions[region].insts;
        let elements = elements(func, cx, inst, before);
        changed |= !elements.is_empty();
        let hidden: Vec<Inst> = elements.iter().filter_map(|e| e.hidden).collect();
        func.regions[region].insts.retain(|i| !hidden.contains(i));
        let mut b = Builder::new(func, region);
        b.span = b.func.insts[inst].span;
        let elements: Vec<_> = elements
            .into_iter()
            .map(|element| element.begin(&mut b, inst))
            .collect();
        b.append(inst);
        for element in elements {
            element.end(&mut b);
        }
    }
    changed
}

/// An element that a loop reads and writes.
struct Element {
    place: Value,
    /// Whether the loop certainly runs, or the element is written before it in any case.
    runs: bool,
    /// A store before the loop whose value only the loop reads.
    hidden: Option<Inst>,
}

/// An element that lives in a local while a loop runs.
struct Carried {
    place: Value,
    local: Value,
    /// Whether the loop runs, if that is not certain.
    cond: Option<Value>,
}

impl Element {
    /// Gives the loop a local instead of the element.
    fn begin(self, b: &mut Builder<'_>, looped: Inst) -> Carried {
        let Op::For { body, .. } = b.func[looped] else {
            unreachable!("elements are those of loops")
        };
        let ty = b.func.ty(self.place).pointee().expect("a storage");
        let cond = (!self.runs).then(|| elements::runs(b, looped));
        let local = b.local(ty);
        let stored = self.hidden.map(|inst| match b.func[inst] {
            Op::Store { value, .. } => value,
            ref op => unreachable!("{op:?} stores nothing"),
        });
        let value = match (cond, stored) {
            (Some(cond), _) => elements::read_if(b, cond, ty, |b| b.load(self.place)),
            (None, Some(stored)) => stored,
            (None, None) => b.load(self.place),
        };
        b.store(local, value);
        replace_value(b.func, body, self.place, local);
        Carried {
            place: self.place,
            local,
            cond,
        }
    }
}

impl Carried {
    /// Writes what the loop has left in the local.
    fn end(self, b: &mut Builder<'_>) {
        let write = |b: &mut Builder<'_>| {
            let value = b.load(self.local);
            b.store(self.place, value);
        };
        match self.cond {
            None => write(b),
            Some(cond) => {
                b.if_(cond, &[], write, |_| ());
            }
        }
    }
}

/// What a loop does to a class of memory.
struct Accesses {
    class: Class,
    /// The one place of the class that the loop loads and stores; none if it does anything else.
    place: Option<Value>,
    is_read: bool,
    is_written: bool,
}

/// The elements that a loop may carry. `before` stands before it in its region.
fn elements(func: &Function, cx: &PassCx<'_>, inst: Inst, before: &[Inst]) -> Vec<Element> {
    let Op::For { step, body, .. } = func[inst] else {
        return Vec::new();
    };
    if func.as_const(step).is_none_or(|step| step.is_zero()) {
        return Vec::new();
    }
    let Some(found) = accesses(func, cx, body) else {
        return Vec::new();
    };
    let always = written_always(func, body);
    let found = found.into_iter().filter(|a| a.is_read && a.is_written);
    let element = |accesses: Accesses| {
        let place = accesses.place?;
        let is_dense = match accesses.class {
            Class::Place(p) => !cx.env.trees[p.tree].is_below_sparse(p.node),
            Class::Array(_) | Class::Arrays => true,
            _ => false,
        };
        let is_store =
            |&inst: &Inst| matches!(func[inst], Op::Store { place: other, .. } if other == place);
        let store = before.iter().rposition(is_store);
        let is_before = store.is_some();
        let hidden = store.filter(|&at| {
            let mut between = before[at + 1..].iter();
            between.all(|&inst| !may_see(func, cx, inst, accesses.class))
        });
        let is_number = matches!(func.ty(place), Type::RefScalar(_));
        let may = is_dense && is_number && !is_quantised(func, cx.env, place);
        let length = trips::length(func, &func[inst]);
        (may && (is_before || always.contains(&place))).then_some(Element {
            place,
            runs: is_before || length.is_some_and(|n| n > 0),
            hidden: hidden.map(|at| before[at]),
        })
    };
    found.filter_map(element).collect()
}

/// What a loop's body does to each class of memory but locals; nothing if that is not known, or it may leave more than the loop.
fn accesses(func: &Function, cx: &PassCx<'_>, body: Region) -> Option<Vec<Accesses>> {
    let mut inside = SecondaryMap::new();
    defined_in(func, body, &mut inside);
    let mut all: Vec<Accesses> = Vec::new();
    let mut is_known = true;
    walk(func, body, &mut |func, inst| {
        let op = &func[inst];
        let mut note = |class: Class, place: Option<Value>| {
            let known = all.iter().position(|a| a.class == class);
            let k = known.unwrap_or_else(|| {
                all.push(Accesses {
                    class,
                    place,
                    is_read: false,
                    is_written: false,
                });
                all.len() - 1
            });
            let found = &mut all[k];
            found.place = found.place.filter(|&known| Some(known) == place);
            found.is_read |= matches!(op, Op::Load { .. });
            found.is_written |= matches!(op, Op::Store { .. });
        };
        match change(op) {
            Change::Anything => is_known = false,
            Change::Below(node) => below(cx.env, node).for_each(|class| note(class, None)),
            _ => {}
        }
        // Where an assertion fails, memory is as it is then.
        is_known &= !matches!(
            op,
            Op::Return { .. } | Op::Threads { .. } | Op::Assert { .. }
        );
        let is_plain = matches!(op, Op::Load { .. } | Op::Store { .. });
        for &place in touched(op) {
            is_known &= has_classes(func, place);
            if !is_known {
                return;
            }
            let classes = classes(func, cx.env, place);
            let is_one = classes.len() == 1 && is_plain && !inside[place];
            for class in classes {
                note(class, is_one.then_some(place));
            }
        }
    });
    is_known.then_some(all)
}

/// Whether an instruction may read memory of a class, or keep what follows from running.
fn may_see(func: &Function, cx: &PassCx<'_>, inst: Inst, class: Class) -> bool {
    let op = &func[inst];
    let of_class =
        |&place: &Value| !has_classes(func, place) || classes(func, cx.env, place).contains(&class);
    !func.owned(inst).is_empty()
        || op.may_exit()
        || matches!(change(op), Change::Anything)
        || matches!(op, Op::Threads { .. })
        || touched(op).iter().any(of_class)
}

/// The places that each iteration of a body writes.
fn written_always(func: &Function, body: Region) -> Vec<Value> {
    let mut written = Vec::new();
    for &inst in &func.regions[body].insts {
        let mut may_exit = func[inst].may_exit();
        for owned in func.owned(inst) {
            walk(func, owned, &mut |func, inst| {
                may_exit |= func[inst].may_exit()
            });
        }
        if may_exit {
            break;
        }
        if let Op::Store { place, .. } = func[inst] {
            written.push(place);
        }
    }
    written
}

#[cfg(test)]
mod tests;
