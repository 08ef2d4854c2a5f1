//! Values that memory still holds at the end of the kernel.
//!
//! ```text
//! v3 = div v1, v2                             v3 = load c[i]              ; not from v1, which is overwritten
//! store c[i], v3                    ==>       d2 = - d3 * v3 / v2
//! ```
//! The backward pass computes a value from what the kernel read, or reads it where the kernel has stored it, if nothing
//! overwrites that. The latter is tried where the former needs memory as it was when the kernel began: `c[i] = c[i] / m`
//! has a gradient by its result.

use aerogel_ir::analysis::access::is_quantised;
use aerogel_ir::{Inst, Op, Region, Value, walk};

use super::demand::Cx;
use super::hits::{Access, Hits, Races, hits_among_turns, hits_in_loops};
use super::reverse::Reverse;
use super::rules::is_scalar_op;
use super::storage::{Memory, StillStored, element_of};

/// The values that are stored, and the places of those that nothing overwrites; `writes` are all writes of shared memory.
pub(super) fn find(cx: &Cx<'_>, stores: &[Access], writes: &[Access]) -> StillStored {
    let mut found = StillStored::new();
    // The elements that called functions write are not known.
    if calls(cx) {
        return found;
    }
    for store in stores {
        let Op::Store { place, value } = cx.func[store.inst] else {
            continue;
        };
        let &(region, _) = store.path.last().expect("it stands in a region");
        if is_computed(cx, value, region) && names_it(cx, place, value, region) {
            let holds = |w: &&Access| w.shares_memory(store);
            let mut hits = writes
                .iter()
                .filter(holds)
                .map(|w| match w.inst == store.inst {
                    true => hits_among_turns(cx, store, w),
                    false => Some(hits_in_loops(cx, store, w)),
                });
            if hits.all(|hit| hit.is_none_or(is_harmless)) {
                found[value] = Some(place);
            }
        }
    }
    found
}

fn is_harmless(hit: Hits) -> bool {
    !hit.after && hit.races == Races::No
}

fn calls(cx: &Cx<'_>) -> bool {
    let mut any = false;
    walk(cx.func, cx.func.body, &mut |func, inst| {
        any |= matches!(func[inst], Op::Call { .. });
    });
    any
}

/// Whether a value is computed or read in a region, so that the store runs whenever it is computed.
fn is_computed(cx: &Cx<'_>, value: Value, region: Region) -> bool {
    let func = cx.func;
    let Some(inst) = func.def(value) else {
        return false;
    };
    cx.nesting.region_of(value) == region
        && match &func[inst] {
            Op::Load { .. } => true,
            op => is_scalar_op(func, op, &func.insts[inst].results),
        }
}

/// Whether a place is an element of a field or array that stores what it is given, and its indices are known where the
/// value is computed.
fn names_it(cx: &Cx<'_>, place: Value, value: Value, region: Region) -> bool {
    let func = cx.func;
    let shared = matches!(cx.memory(place), Memory::Field(..) | Memory::Array(..));
    let Some((whole, mut named_by)) = element_of(func, place) else {
        return false;
    };
    if let Some(op) = func.def_op(whole) {
        op.operands(|v| named_by.push(v));
    }
    let insts = &func.regions[region].insts;
    let at = |inst: Option<Inst>| insts.iter().position(|&other| Some(other) == inst);
    let defined = at(func.def(value));
    let is_known = |&v: &Value| cx.nesting.region_of(v) != region || at(func.def(v)) < defined;
    shared && !is_quantised(func, cx.env, place) && named_by.iter().all(is_known)
}

impl Reverse<'_, '_> {
    /// Reads a value where the kernel has stored it.
    pub(super) fn read_back(&mut self, value: Value, place: Value) {
        let place = self.place_again(place);
        self.now[value] = Some(self.b.load(place));
    }

    fn place_again(&mut self, place: Value) -> Value {
        let func = self.cx.func;
        let op = match func.def_op(place).expect("an element is no parameter") {
            Op::ElemRef { base, index } => Op::ElemRef {
                base: self.place_again(*base),
                index: index.iter().map(|&v| self.now(v)).collect(),
            },
            op => {
                let mut op = op.clone();
                op.map_operands(|v| self.now(v));
                op
            }
        };
        self.b.value(op, func.ty(place))
    }
}
