//! A `return` of a kernel leaves more than its task: later tasks test a temporary that records it.

use aerogel_base::Scalar;
use aerogel_ir::{Function, Inst, NodeOp, Op, Type, Value, walk};

use super::{Offload, Scope, Segment};

impl Segment {
    /// Whether it may leave the kernel before its end.
    pub(super) fn may_return(&self, func: &Function) -> bool {
        let insts = match self {
            Segment::Serial(list) => &list[..],
            Segment::Parallel(inst) => std::slice::from_ref(inst),
        };
        let mut found = false;
        for &inst in insts {
            let mut note = |func: &Function, inst: Inst| {
                found |= matches!(func[inst], Op::Return { .. });
            };
            func[inst].regions(|r| walk(func, r, &mut note));
        }
        found
    }
}

/// Whether an instruction collects what was deactivated, also by a kernel that has returned.
pub(super) fn collects(func: &Function, inst: Inst) -> bool {
    let mut found = false;
    let mut note = |func: &Function, inst: Inst| {
        found |= matches!(
            func[inst],
            Op::Node(NodeOp::NRecycled { .. })
                | Op::Node(NodeOp::Collect { .. })
                | Op::Node(NodeOp::Wipe { .. })
        );
    };
    note(func, inst);
    func[inst].regions(|r| walk(func, r, &mut note));
    found
}

impl Offload<'_> {
    /// Where a `return` leaves more than its task, it says so.
    pub(super) fn note_returns(&mut self, func: &mut Function, inst: Inst) {
        for region in func.owned(inst) {
            for inst in std::mem::take(&mut func.regions[region].insts) {
                if let Op::Return { .. } = func[inst] {
                    self.set_returned(func, &mut Scope::new(region, 0), true);
                }
                func.regions[region].insts.push(inst);
                self.note_returns(func, inst);
            }
        }
    }

    pub(super) fn set_returned(&self, func: &mut Function, scope: &mut Scope, value: bool) {
        let place = self.returned_at(func, scope);
        let mut b = scope.end(func);
        let value = b.constant(Scalar::bool(value));
        b.store(place, value);
    }

    pub(super) fn has_returned(&self, func: &mut Function, scope: &mut Scope) -> Value {
        let place = self.returned_at(func, scope);
        scope.end(func).load(place)
    }

    fn returned_at(&self, func: &mut Function, scope: &mut Scope) -> Value {
        let offset = self.returned.expect("a task may leave the kernel");
        let ty = Type::BOOL.to_ref().expect("a scalar has a storage");
        scope.end(func).value(Op::TempAt { offset }, ty)
    }
}
