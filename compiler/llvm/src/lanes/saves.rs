//! Values that loops in lanes save for each of their iterations.
//!
//! ```text
//! w, n = while [v, 0] (w, k) { .. } (w, k) {
//!     next = add k, 1
//!     room, granted = reserve buffer, next
//!     store room_at(room, k), w
//!     yield [.., next]
//! }
//! ```
//! A buffer has space for all lanes, `[iteration][lane]`. The lanes of a loop begin it together, so the number of
//! iterations so far is the same in all active lanes, and their saved values are contiguous. The backward pass is a loop
//! down to 0: it begins with the lane of most iterations, and the others join later. If few iterations are known in
//! advance, the lanes save in a local of the same layout.

use aerogel_base::entity::SecondaryMap;
use aerogel_ir::{BinaryOp, Function, Inst, Op, Region, Type, Value, walk};

/// Values that are uniform over the active lanes.
#[derive(Default)]
pub(crate) struct Alike {
    values: SecondaryMap<Value, bool>,
    counts: SecondaryMap<Inst, Vec<Count>>,
}

/// A value that loops carry, the same in all lanes that are still there.
#[derive(Clone)]
pub(crate) struct Count {
    /// It as the parameter of the loop's regions.
    pub(super) params: Vec<Value>,
    /// Its initial value.
    pub(super) first: Value,
    /// The increment of each iteration.
    pub(super) step: i64,
}

impl Alike {
    /// The uniform values of some loops.
    pub(crate) fn of(func: &Function, loops: &[Inst]) -> Self {
        let mut alike = Self::default();
        for &inst in loops {
            alike.look_at(func, inst);
            for region in func.owned(inst) {
                walk(func, region, &mut |func, inst| alike.look_at(func, inst));
            }
        }
        alike
    }

    /// Whether a value is the same in all lanes that are there.
    pub(super) fn has(&self, func: &Function, value: Value) -> bool {
        self.values[value] || func.as_const(value).is_some()
    }

    /// Whether an instruction is done once for all lanes.
    pub(super) fn once(&self, func: &Function, inst: Inst) -> bool {
        match func[inst] {
            Op::Binary { .. } | Op::Cast { .. } => self.values[func.insts[inst].results[0]],
            Op::Buffer {} => true,
            _ => false,
        }
    }

    /// The uniform counters of a loop.
    pub(super) fn counts(&self, inst: Inst) -> &[Count] {
        &self.counts[inst]
    }

    fn look_at(&mut self, func: &Function, inst: Inst) {
        let is_int = |v: Value| func.ty(v).scalar().is_some_and(|ty| ty.is_int());
        match &func[inst] {
            &Op::Binary {
                op: BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul,
                lhs,
                rhs,
            } => {
                let result = func.insts[inst].results[0];
                self.values[result] = is_int(result) && self.has(func, lhs) && self.has(func, rhs);
            }
            &Op::Cast { x, .. } => {
                let result = func.insts[inst].results[0];
                self.values[result] = is_int(x) && is_int(result) && self.has(func, x);
            }
            Op::While { init, cond, body } => {
                let of =
                    |k: usize| vec![func.regions[*cond].params[k], func.regions[*body].params[k]];
                self.carried(func, inst, init, *body, 0, &of);
            }
            Op::For {
                lo,
                step,
                init,
                body,
                ..
            } => {
                let params = &func.regions[*body].params;
                if falls(func, inst) {
                    self.values[params[0]] = true;
                } else if func.as_const(*step).is_some_and(|step| step.is_one()) {
                    if self.has(func, *lo) {
                        self.count(inst, vec![params[0]], *lo, 1);
                    }
                    self.carried(func, inst, init, *body, 1, &|k| vec![params[k + 1]]);
                }
            }
            _ => {}
        }
    }

    /// Finds a loop-carried value that each iteration adds a constant to.
    fn carried(
        &mut self,
        func: &Function,
        inst: Inst,
        init: &[Value],
        body: Region,
        before: usize,
        params_of: &dyn Fn(usize) -> Vec<Value>,
    ) {
        let (Some(yielded), false) = (func.yielded(body), goes_on_early(func, body)) else {
            return;
        };
        for (k, &first) in init.iter().enumerate() {
            let param = func.regions[body].params[k + before];
            let step = match func.def_op(yielded[k]) {
                Some(&Op::Binary {
                    op: BinaryOp::Add,
                    lhs,
                    rhs,
                }) if lhs == param || rhs == param => {
                    func.as_const(if lhs == param { rhs } else { lhs })
                }
                _ => None,
            };
            let step = step.filter(|_| func.ty(param) == Type::I64 && self.has(func, first));
            if let Some(step) = step.and_then(|step| i64::try_from(step.as_i128()).ok()) {
                self.count(inst, params_of(k), first, step);
            }
        }
    }

    fn count(&mut self, inst: Inst, params: Vec<Value>, first: Value, step: i64) {
        for &param in &params {
            self.values[param] = true;
        }
        self.counts[inst].push(Count {
            params,
            first,
            step,
        });
    }
}

/// Whether a loop counts down by one to what is the same in all lanes, and no lane leaves it before.
pub(super) fn falls(func: &Function, inst: Inst) -> bool {
    let Op::For { hi, step, body, .. } = func[inst] else {
        return false;
    };
    let mut leaves = false;
    walk(func, body, &mut |func, inst| {
        leaves |= matches!(func[inst], Op::Break { .. } | Op::Continue { .. });
    });
    let by_one = func.as_const(step).is_some_and(|step| step.as_i128() == -1);
    by_one && !leaves && func.as_const(hi).is_some() && func.elem(hi).is_signed()
}

fn goes_on_early(func: &Function, body: Region) -> bool {
    let mut found = false;
    walk(func, body, &mut |func, inst| {
        found |= matches!(func[inst], Op::Continue { .. });
    });
    found
}

/// Whether an instruction on a buffer can be done for all lanes at once.
pub(super) fn can(func: &Function, inst: Inst, alike: &Alike) -> bool {
    match func[inst] {
        Op::Buffer {} => true,
        Op::Reserve { count, .. } => func.ty(count) == Type::I64,
        Op::RoomAt { room, index } => {
            let is_half = matches!(func.ty(room), Type::Room(ty) if ty.is_half());
            reserved(func, room).is_some() && alike.has(func, index) && !is_half
        }
        Op::Local {} => is_row(func.ty(func.insts[inst].results[0])),
        Op::ElemRef { base, ref index } => {
            is_in_frame(func, base) && index.iter().all(|&index| alike.has(func, index))
        }
        Op::Load { place } | Op::Store { place, .. } => is_room(func, place),
        Op::Assert { .. } => is_of_room(func, inst),
        _ => false,
    }
}

/// More numbers in a local would be too many, times the lanes, for the stack.
const MOST_IN_FRAME: u32 = 64;

/// Whether a type is that of a local of some numbers in a row.
fn is_row(ty: Type) -> bool {
    matches!(ty.pointee(), Some(Type::Vec(n, elem)) if n <= MOST_IN_FRAME && !elem.is_half())
}

/// How many bytes a local takes for one lane.
pub(super) fn bytes(func: &Function, local: Inst) -> u32 {
    let ty = func.ty(func.insts[local].results[0]).pointee();
    let elem = ty.and_then(Type::elem).map_or(0, |elem| elem.bytes());
    ty.map_or(0, Type::n_elems).saturating_mul(elem)
}

/// Whether storage is a local in which turns can save: a buffer of known size.
fn is_in_frame(func: &Function, base: Value) -> bool {
    matches!(func.def_op(base), Some(Op::Local {})) && is_row(func.ty(base))
}

/// The locals in which instructions, or what is inside them, save.
pub(super) fn in_frame(func: &Function, insts: impl Iterator<Item = Inst>) -> Vec<Inst> {
    let mut found = Vec::new();
    for inst in insts {
        for region in func.owned(inst) {
            walk(func, region, &mut |func, inst| {
                if let Op::ElemRef { base, .. } = func[inst]
                    && let Some(local) = func.def(base)
                    && !found.contains(&local)
                {
                    found.push(local);
                }
            });
        }
    }
    found
}

/// Whether a place is one of those in which turns save.
fn is_room(func: &Function, place: Value) -> bool {
    match func.def_op(place) {
        Some(Op::RoomAt { .. }) => true,
        Some(&Op::ElemRef { base, .. }) => is_in_frame(func, base),
        _ => false,
    }
}

/// Whether an instruction, or one inside it, makes room in a buffer or names a place in it.
pub(super) fn has_rooms(func: &Function, inst: Inst) -> bool {
    is_inside(func, inst, |op| {
        matches!(op, Op::Reserve { .. } | Op::RoomAt { .. })
    })
}

/// Whether some instruction inside another, or that itself, is of a kind.
pub(super) fn is_inside(func: &Function, inst: Inst, is: impl Fn(&Op) -> bool) -> bool {
    let mut found = is(&func[inst]);
    for region in func.owned(inst) {
        walk(func, region, &mut |func, inst| found |= is(&func[inst]));
    }
    found
}

/// Whether an instruction says that there was memory for a room.
pub(super) fn is_of_room(func: &Function, inst: Inst) -> bool {
    let Op::Assert { cond, ref args, .. } = func[inst] else {
        return false;
    };
    reserved(func, cond).is_some_and(|count| args.iter().all(|&arg| arg == count))
}

/// For how much there is room, of a result of the instruction that makes it.
pub(super) fn reserved(func: &Function, result: Value) -> Option<Value> {
    match func.def_op(result) {
        Some(&Op::Reserve { count, .. }) => Some(count),
        _ => None,
    }
}

/// Whether a loop touches rooms only where a lane is there: in its body, outside of branches.
pub(super) fn touches_safely(func: &Function, inst: Inst) -> bool {
    match func[inst] {
        Op::While { cond, body, .. } => !touches(func, cond) && !touches_in_branches(func, body),
        Op::For { body, .. } => !touches_in_branches(func, body),
        _ => true,
    }
}

/// Whether a region touches rooms, outside of the loops inside it.
pub(super) fn touches(func: &Function, region: Region) -> bool {
    let touches = |&inst: &Inst| match func[inst] {
        Op::Load { place } | Op::Store { place, .. } => is_room(func, place),
        _ => false,
    };
    func.regions[region].insts.iter().any(touches) || touches_in_branches(func, region)
}

fn touches_in_branches(func: &Function, region: Region) -> bool {
    let mut insts = func.regions[region].insts.iter();
    insts.any(|&inst| match func[inst] {
        Op::If {
            then, otherwise, ..
        } => touches(func, then) || touches(func, otherwise),
        _ => false,
    })
}
