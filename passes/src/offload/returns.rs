//! A `return` of a kernel leaves more than its task: the tasks behind it ask a temporary whether it happened.

use aerogel_base::{Scalar, Span};
use aerogel_ir::{Function, Inst, Op, Type, Value, walk};

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
            Op::NRecycled { .. } | Op::Collect { .. } | Op::Wipe { .. }
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
            let mut insts = Vec::new();
            for inst in std::mem::take(&mut func.regions[region].insts) {
                if let Op::Return { .. } = func[inst] {
                    let mut scope = Scope::new(0);
                    self.set_returned(func, &mut scope, true);
                    insts.append(&mut scope.insts);
                }
                insts.push(inst);
                self.note_returns(func, inst);
            }
            func.regions[region].insts = insts;
        }
    }

    pub(super) fn set_returned(&self, func: &mut Function, scope: &mut Scope, value: bool) {
        let place = self.returned_at(func, scope);
        let value = Op::Const {
            value: Scalar::bool(value),
        };
        let value = scope.value(func, value, Type::BOOL);
        scope.push(func, Op::Store { place, value }, &[], Span::NONE);
    }

    pub(super) fn has_returned(&self, func: &mut Function, scope: &mut Scope) -> Value {
        let place = self.returned_at(func, scope);
        scope.value(func, Op::Load { place }, Type::BOOL)
    }

    fn returned_at(&self, func: &mut Function, scope: &mut Scope) -> Value {
        let offset = self.returned.expect("a task may leave the kernel");
        let ty = Type::BOOL.to_ref().expect("a scalar has a storage");
        scope.value(func, Op::TempAt { offset }, ty)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    #[test]
    fn tasks_behind_a_return_ask_whether_it_happened() {
        check_pass!("offload", "
            tree0 { dense i:4 { place x: i32 } }
            field @x: i32 = tree0 [S2]
            kernel @k(n: i32) -> i32 {
                v0: i32 = const 0
                v1: i32 = const 4
                v2: i32 = arg a0
                v3: u1 = lt v2, v0
                if v3 {
                    return [v2]
                } {
                    yield []
                }
                parallel [v0], [v1] (v4: i32) {
                    v5: ref<i32> = field_at @x, [v4]
                    store v5, v2
                    yield []
                }
                return [v0]
            }", @"
            kernel @k(n: i32) -> i32 {
                task serial {
                    yield []
                } {
                    v0: ref<u1> = temp_at 0
                    v1: u1 = const 0
                    store v0, v1
                    v2: i32 = arg a0
                    v3: i32 = const 0
                    v4: u1 = lt v2, v3
                    if v4 {
                        v5: ref<u1> = temp_at 0
                        v6: u1 = const 1
                        store v5, v6
                        return [v2]
                    } {
                        yield []
                    }
                    yield []
                }
                task range {
                    v7: i32 = const 0
                    v8: i32 = const 4
                    v9: ref<u1> = temp_at 0
                    v10: u1 = load v9
                    v11: i32 = select v10, v7, v8
                    yield [v7, v11]
                } {
                    v12: i32 = arg a0
                    each (v13: i32) {
                        v14: ref<i32> = field_at @x, [v13]
                        store v14, v12
                        yield []
                    }
                    yield []
                }
                task serial {
                    yield []
                } {
                    v15: ref<u1> = temp_at 0
                    v16: u1 = load v15
                    if v16 {
                        yield []
                    } {
                        v17: i32 = const 0
                        return [v17]
                    }
                    yield []
                }
                yield []
            }
            ");
    }
}
