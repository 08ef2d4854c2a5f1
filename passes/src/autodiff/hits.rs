//! Whether a write may hit what a read reads: before it, after it, or in an unknown order.

use aerogel_ir::analysis::access::Class;
use aerogel_ir::analysis::affine::{counted_from_narrow, differ};
use aerogel_ir::analysis::trips;
use aerogel_ir::{AtomicOp, Inst, Op, Region, Value};

use super::calls::Touch;
use super::demand::Cx;
use super::storage::indices;

/// An access to a place, and what is around it.
pub(super) struct Access {
    pub(super) inst: Inst,
    /// None for what is not named element by element.
    pub(super) place: Option<Value>,
    pub(super) classes: Vec<Class>,
    /// The regions around it with the instructions in them that lead to it, outermost first.
    pub(super) path: Vec<(Region, Inst)>,
}

/// Whether a write may hit what a read reads, before and after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hits {
    pub(super) before: bool,
    pub(super) after: bool,
    pub(super) races: Races,
}

/// Whether iterations of a parallel loop meet at an element, where which comes first is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Races {
    No,
    /// If they name the same element by something else than their counters.
    Perhaps,
    Yes,
}

const NEVER: Hits = Hits {
    before: false,
    after: false,
    races: Races::No,
};
const ANY_TIME: Hits = Hits {
    before: true,
    after: true,
    races: Races::No,
};

impl Access {
    pub(super) fn touch(&self, cx: &Cx<'_>) -> Touch {
        Touch {
            classes: self.classes.clone(),
            span: cx.func.insts[self.inst].span,
        }
    }

    pub(super) fn shares_memory(&self, other: &Self) -> bool {
        self.classes.iter().any(|c| other.classes.contains(c))
    }
}

pub(super) fn hits_of(cx: &Cx<'_>, read: &Access, write: &Access) -> Hits {
    if read.inst == write.inst {
        // An extremum reads what all of them leave.
        return NEVER;
    }
    hits_in_loops(cx, read, write)
}

pub(super) fn hits_in_loops(cx: &Cx<'_>, read: &Access, write: &Access) -> Hits {
    let is_extremum = matches!(
        cx.func[read.inst],
        Op::Atomic {
            op: AtomicOp::Min | AtomicOp::Max,
            ..
        }
    );
    hits_among_turns(cx, read, write).unwrap_or_else(|| order(cx, read, write, is_extremum))
}

/// The same, as far as the loops around both tell: none if it only depends on which of both comes first in a turn.
pub(super) fn hits_among_turns(cx: &Cx<'_>, read: &Access, write: &Access) -> Option<Hits> {
    let func = cx.func;
    let (r, w) = (read.place?, write.place?);
    let pairs: Vec<_> = indices(func, r)
        .iter()
        .zip(indices(func, w))
        .map(|(&r, &w)| (counted_from_narrow(func, r), counted_from_narrow(func, w)))
        .collect();
    let first_common = &read.path[0].1;
    let same_statement = *first_common == write.path[0].1;
    let varies = |base: Value| {
        same_statement
            && cx
                .nesting
                .between(cx.nesting.region_of(base), func.body)
                .contains(first_common)
    };
    let mut axes = indices(func, r).iter().zip(indices(func, w));
    if axes.any(|(&r, &w)| differ(func, r, w, |v| !varies(v))) {
        return Some(NEVER);
    }
    // Loops around both, from the outermost: which turns hit the same element?
    let common = read
        .path
        .iter()
        .zip(&write.path)
        .take_while(|(x, y)| x == y);
    for ((_, inst), _) in common {
        let op = &func[*inst];
        // A loop that runs once has no other turn.
        if trips::length(func, op).is_some_and(|turns| turns <= 1) {
            continue;
        }
        let counters: &[Value] = match op {
            Op::For { body, .. } => &func.regions[*body].params[..1],
            Op::Parallel { body, .. } | Op::ParallelCells { body, .. } => {
                &func.regions[*body].params
            }
            Op::While { .. } => return Some(ANY_TIME),
            _ => continue,
        };
        for &counter in counters {
            let apart = pairs
                .iter()
                .find(|((r, _), (w, _))| *r == counter && *w == counter)
                .map(|((_, a), (_, b))| a - b);
            match (apart, op) {
                (Some(0), _) => {}
                (Some(apart), Op::For { step, .. }) => {
                    let Some(step) = func.as_const(*step).map(|c| c.as_i128()) else {
                        return Some(ANY_TIME);
                    };
                    // Read at `t + a`, written at `t' + b`: by the turn that is so much further on.
                    let later = (apart > 0) == (step > 0);
                    return Some(Hits {
                        before: !later,
                        after: later,
                        races: Races::No,
                    });
                }
                (_, Op::For { .. }) => return Some(ANY_TIME),
                _ => {
                    let varying = |(base, _): &(Value, i64)| varies(*base) && *base != counter;
                    let by_itself = pairs.iter().any(|(r, w)| r == w && varying(r));
                    return Some(Hits {
                        races: if by_itself {
                            Races::Perhaps
                        } else {
                            Races::Yes
                        },
                        ..ANY_TIME
                    });
                }
            }
        }
    }
    None
}

/// Which of two accesses comes first in one turn of all loops around both.
pub(super) fn order(cx: &Cx<'_>, read: &Access, write: &Access, is_extremum: bool) -> Hits {
    let mut pairs = read.path.iter().zip(&write.path);
    let Some(((region, r), (other, w))) = pairs.find(|(x, y)| x != y) else {
        return ANY_TIME;
    };
    if region != other {
        // The two branches of an `if`.
        return NEVER;
    }
    let insts = &cx.func.regions[*region].insts;
    let at = |inst: &Inst| insts.iter().position(|i| i == inst);
    let after = at(w) > at(r);
    Hits {
        before: !after && !is_extremum,
        after,
        races: Races::No,
    }
}
