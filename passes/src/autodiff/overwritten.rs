//! Whether memory still has the values that a gradient reads.
//!
//! The backward pass reads fields and arrays again, when the kernel is over. An element that the kernel writes after it
//! has read it holds something else then. Where nothing is written *before* it is read, memory as it was when the kernel
//! began will do: a tape puts that back. Where both happens, the backward pass begins with that memory too, and writes it
//! again as the kernel did: it is *replayed* (`undo.rs`). Only what iterations race for has no gradient.

use aerogel_base::{Diagnostic, Span};
use aerogel_ir::analysis::access::{Change, Class, below, change, classes, is_quantised, touched};
use aerogel_ir::analysis::affine::counted_from_narrow;
use aerogel_ir::analysis::boxes::Storage;
use aerogel_ir::{AtomicOp, Inst, Op, Region, Value, walk};

use super::activity::behind;
use super::asked::Asked;
use super::asks;
use super::calls::{Ends, Touch};
use super::demand::{Cx, Demand};
use super::hits::{Access, Races, hits_in_loops, hits_of, order};
use super::needs::{Lost, Moment, Needed, Of, Overwritten, ToldApart, Untracked, Why};
use super::still_stored;
use super::storage::{Memory, StillStored, element_of, indices};

/// What the backward pass reads of fields and arrays.
#[derive(Default)]
pub(super) struct Reads {
    pub(super) needed: Vec<Needed>,
    /// The first that needs memory as it was when the kernel began.
    pub(super) of_start: Option<Overwritten>,
    /// The first that nothing can bring back.
    pub(super) lost: Option<Lost>,
    /// What must be replayed, and is not yet.
    pub(super) replays: Vec<Class>,
    /// What can be replayed only if one iteration comes after the other.
    pub(super) in_order: Option<Overwritten>,
    /// The arguments that must be disjoint in a launch.
    pub(super) told_apart: Vec<ToldApart>,
    /// The activity queries.
    pub(super) asked: Vec<Asked>,
    /// Through which fields derivatives end between kernels.
    pub(super) untracked: Untracked,
    /// The square roots whose kinks are counted.
    pub(super) kinks: Vec<Span>,
    /// What to say of the first value whose derivative ends in memory that has none.
    pub(super) ends: Option<Box<Diagnostic>>,
}

pub(super) fn untracked(cx: &Cx<'_>) -> Untracked {
    let storage = |place: Value| match is_untracked(cx, place) {
        true => cx.memory(place).storage(),
        false => None,
    };
    let mut all = Untracked::default();
    let mut loaded: Vec<Storage> = Vec::new();
    let mut stored: Vec<(Storage, Value)> = Vec::new();
    walk(cx.func, cx.func.body, &mut |func, inst| match func[inst] {
        Op::Load { place } => {
            let value = func.insts[inst].results[0];
            let wanted = storage(place).filter(|_| cx.activity.is_useful(value));
            all.read.extend(wanted);
            loaded.extend(storage(place).filter(|from| !loaded.contains(from)));
        }
        Op::Store { place, value } | Op::Atomic { place, value, .. } => {
            let given = storage(place).filter(|_| cx.activity.is_varied(value));
            all.written.extend(given);
            stored.extend(storage(place).map(|to| (to, value)));
        }
        _ => {}
    });
    for from in loaded.into_iter().filter(|_| !stored.is_empty()) {
        let behind = behind(cx.func, cx.env, cx.kind, cx.calls, from);
        let to = stored.iter().filter(|(_, value)| behind[*value]);
        all.passed.extend(to.map(|&(to, _)| [from, to]));
    }
    all
}

/// The reads that something with a derivative depends on, of memory that has none.
fn ended_reads(cx: &Cx<'_>) -> Vec<Access> {
    accesses(cx, &|inst| match cx.func[inst] {
        Op::Load { place } => {
            let value = cx.func.insts[inst].results[0];
            is_untracked(cx, place) && cx.activity.is_useful(value)
        }
        _ => false,
    })
}

/// The writes of what has a derivative to memory that has none.
fn ended_writes(cx: &Cx<'_>) -> Vec<Access> {
    accesses(cx, &|inst| match cx.func[inst] {
        Op::Store { place, value } | Op::Atomic { place, value, .. } => {
            is_untracked(cx, place) && cx.activity.is_varied(value)
        }
        _ => false,
    })
}

fn is_untracked(cx: &Cx<'_>, place: Value) -> bool {
    let elem = cx.func.ty(place).pointee().and_then(|ty| ty.elem());
    let memory = cx.memory(place);
    elem.is_some_and(|e| e.is_float())
        && matches!(memory, Memory::Field(_, None) | Memory::Array(_, None))
}

/// The same reads and writes of a function that is called.
pub(super) fn ends(cx: &Cx<'_>) -> Ends {
    let touches = |all: Vec<Access>| all.iter().map(|access| access.touch(cx)).collect();
    Ends {
        read: touches(ended_reads(cx)),
        written: touches(ended_writes(cx)),
    }
}

/// Where a value that has a derivative goes through memory that has none.
pub(super) fn leak(cx: &Cx<'_>) -> Option<Overwritten> {
    let (read, written) = (ended_reads(cx), ended_writes(cx));
    for r in &read {
        let mut by = written.iter().filter(|w| w.shares_memory(r));
        if let Some(w) = by.find(|w| hits_of(cx, r, w).before) {
            return Some(Overwritten {
                read: cx.func.insts[r.inst].span,
                written: cx.func.insts[w.inst].span,
                of: Of::Values,
            });
        }
    }
    cx.calls.leak(&ends(cx))
}

pub(super) fn reads(cx: &Cx<'_>, demand: &Demand) -> Reads {
    let shared = |place: Value| matches!(cx.memory(place), Memory::Field(..) | Memory::Array(..));
    let read = accesses(cx, &|inst| match cx.func[inst] {
        Op::Load { place } => {
            let value = cx.func.insts[inst].results[0];
            shared(place) && demand.value(value).any() && cx.still_stored[value].is_none()
        }
        // Which number won is seen of what is there when all are through.
        Op::Atomic {
            op: AtomicOp::Min | AtomicOp::Max,
            place,
            ..
        } => shared(place) && (demand.works(inst) || demand.executed(inst).any()),
        // The other factors are seen one after the other.
        Op::Atomic {
            op: AtomicOp::Mul,
            place,
            ..
        } => shared(place) && cx.has_adjoint(place),
        Op::Atomic { place, .. } => shared(place) && demand.executed(inst).any(),
        _ => false,
    });
    let written = writes(cx);
    let mut reads = Reads::default();
    // What may have been written before it is read, and so is not there when the kernel begins.
    let mut is_made = Vec::new();
    // The classes that are needed as they were then, and why.
    let mut starts = Vec::new();
    for r in &read {
        let found = overwriting(cx, r, &written, &mut reads.told_apart);
        let overwritten = found.by.map(|w| Overwritten {
            read: cx.func.insts[r.inst].span,
            written: cx.func.insts[w].span,
            of: Of::Values,
        });
        let alone = one_by_one(cx, r.inst);
        let overwritten = overwritten.or(alone);
        let place = r.place.expect("what is read is an element");
        let replayed = cx.replays(place);
        let is_early = found.after || replayed || alone.is_some();
        let at = if is_early { Moment::Start } else { Moment::End };
        reads.needed.push(Needed { place, at });
        match found.races {
            Races::Yes => reads.lost = reads.lost.or(Lost::of(overwritten, Why::Order)),
            Races::Perhaps if replayed => reads.in_order = reads.in_order.or(overwritten),
            _ => {}
        }
        // Atomic ones need what all of them leave.
        let is_atomic = matches!(cx.func[r.inst], Op::Atomic { .. });
        if is_atomic && replayed {
            reads.in_order = reads.in_order.or(overwritten);
        }
        is_made.push(!replayed && (found.before || is_atomic));
        if is_early {
            reads.of_start = reads.of_start.or(overwritten);
            starts.push((classes(cx.func, cx.env, place), overwritten));
        }
    }
    reads.settle(cx, &is_made, &starts);
    for value in cx.func.values.keys().filter(|&v| demand.value(v).any()) {
        let at = Moment::End;
        let read_back = cx.still_stored[value].map(|place| Needed { place, at });
        reads.needed.extend(read_back);
    }
    let touches = |all: &[Access]| {
        all.iter()
            .map(|access| access.touch(cx))
            .collect::<Vec<_>>()
    };
    let calls = accesses(cx, &|inst| matches!(cx.func[inst], Op::Call { .. }));
    let (late, early): (Vec<_>, Vec<_>) = written.iter().partition(|w| comes_after(cx, &calls, w));
    let late: Vec<Touch> = late.iter().map(|w| w.touch(cx)).collect();
    let by_calls = cx.calls.overwritten(&touches(&read), &late);
    // They find memory as the kernel leaves it.
    let at_start = starts.iter().find(|(classes, _)| {
        let is_made = early
            .iter()
            .any(|w| w.classes.iter().any(|c| classes.contains(c)));
        is_made && cx.calls.read(classes)
    });
    let by_calls = by_calls.or(at_start.and_then(|(_, by)| *by));
    reads.lost = reads.lost.or(Lost::of(by_calls, Why::Called));
    reads.in_order = reads.in_order.or(meeting(cx, demand, &written));
    let asks = asks::find(cx, demand);
    reads.lost = reads.lost.or(asks.lost);
    reads.of_start = reads.of_start.or(asks.of_start);
    reads.asked = asks.all;
    reads
}

/// All that writes fields and arrays.
fn writes(cx: &Cx<'_>) -> Vec<Access> {
    let shared = |place: Value| matches!(cx.memory(place), Memory::Field(..) | Memory::Array(..));
    accesses(cx, &|inst| match change(&cx.func[inst]) {
        Change::Nothing | Change::Anything => false,
        Change::Storages(places) => places.iter().any(|&place| shared(place)),
        Change::Below(_) => true,
    })
}

/// The values that fields and arrays still hold when the kernel is over.
pub(super) fn still_stored(cx: &Cx<'_>) -> StillStored {
    let stores = accesses(cx, &|inst| matches!(cx.func[inst], Op::Store { .. }));
    still_stored::find(cx, &stores, &writes(cx))
}

/// Whether a write may come after a call.
fn comes_after(cx: &Cx<'_>, calls: &[Access], w: &Access) -> bool {
    calls.iter().any(|call| {
        let in_common = call.path.iter().zip(&w.path).take_while(|(c, w)| c == w);
        let mut around = in_common.map(|((_, inst), _)| &cx.func[*inst]);
        // Another turn, or another iteration, may have called before.
        around.any(|op| !matches!(op, Op::If { .. })) || order(cx, call, w, false).after
    })
}

/// A product that iterations make together, or an extremum at elements that they name: what each of them changes is seen
/// only if they are gone through one by one.
fn one_by_one(cx: &Cx<'_>, inst: Inst) -> Option<Overwritten> {
    let is_seen = match cx.func[inst] {
        Op::Atomic {
            op: AtomicOp::Mul, ..
        } => false,
        Op::Atomic {
            op: AtomicOp::Min | AtomicOp::Max,
            place,
            ..
        } => {
            let around = cx.nesting.around(cx.func, inst);
            around.is_some_and(|(region, _)| cx.is_won(region, place))
        }
        _ => true,
    };
    let span = cx.func.insts[inst].span;
    (!is_seen).then_some(Overwritten {
        read: span,
        written: span,
        of: Of::Values,
    })
}

/// What overwrites something that is read.
struct Overwriting {
    before: bool,
    after: bool,
    races: Races,
    by: Option<Inst>,
}

fn overwriting(
    cx: &Cx<'_>,
    r: &Access,
    written: &[Access],
    told_apart: &mut Vec<ToldApart>,
) -> Overwriting {
    let is_atomic = matches!(cx.func[r.inst], Op::Atomic { .. });
    let mut found = Overwriting {
        before: false,
        after: false,
        races: Races::No,
        by: None,
    };
    for w in written.iter().filter(|w| w.shares_memory(r)) {
        let hit = hits_of(cx, r, w);
        if hit.races == Races::Yes
            && let Some(apart) = by_arguments(cx, r, w)
        {
            told_apart.push(apart);
            continue;
        }
        found.before |= hit.before;
        found.after |= hit.after;
        // Atomic changes may come in any order.
        let both_atomic = is_atomic && matches!(cx.func[w.inst], Op::Atomic { .. });
        let races = match hit.races {
            Races::Yes if both_atomic => Races::Perhaps,
            races => races,
        };
        if races == Races::Yes && found.races != Races::Yes || hit.after && found.by.is_none() {
            found.by = Some(w.inst);
        }
        if found.races == Races::No || races == Races::Yes {
            found.races = races;
        }
    }
    found
}

/// What tells two accesses apart whose indices along some axis are arguments of the kernel, if those differ.
fn by_arguments(cx: &Cx<'_>, r: &Access, w: &Access) -> Option<ToldApart> {
    let func = cx.func;
    let of_argument = |index: Value| {
        let (base, by) = counted_from_narrow(func, index);
        match func.def_op(base) {
            Some(&Op::Arg { arg }) => Some((arg, by)),
            _ => None,
        }
    };
    let axes = indices(func, r.place?).iter().zip(indices(func, w.place?));
    let mut pairs = axes.filter_map(|(&r, &w)| Some([of_argument(r)?, of_argument(w)?]));
    let indices = pairs.find(|[(read, _), (written, _)]| read != written)?;
    let span = |access: &Access| func.insts[access.inst].span;
    Some(ToldApart {
        indices,
        what: Overwritten {
            read: span(r),
            written: span(w),
            of: Of::Values,
        },
    })
}

/// Writes of a parallel loop that its backward pass makes again and undoes, while another iteration may do the same.
fn meeting(cx: &Cx<'_>, demand: &Demand, written: &[Access]) -> Option<Overwritten> {
    for w in written.iter().filter(|w| demand.executed(w.inst).reversed) {
        let region = w.path.last().expect("it stands in a region").0;
        if cx.nesting.parallel(region) == 0 {
            continue;
        }
        let mut others = written
            .iter()
            .filter(|other| other.path[0] == w.path[0] && other.shares_memory(w));
        let met = others.find(|other| hits_in_loops(cx, w, other).races != Races::No);
        if let Some(other) = met {
            return Some(Overwritten {
                read: cx.func.insts[w.inst].span,
                written: cx.func.insts[other.inst].span,
                of: Of::Values,
            });
        }
    }
    None
}

impl Reads {
    /// Memory can be as it was at one moment only: what is read at the start of a class makes all of it be read then. What
    /// the kernel makes itself is not there yet, so the kernel's writes of it are replayed.
    fn settle(
        &mut self,
        cx: &Cx<'_>,
        is_made: &[bool],
        starts: &[(Vec<Class>, Option<Overwritten>)],
    ) {
        for (needed, &is_made) in self.needed.iter_mut().zip(is_made) {
            let own = classes(cx.func, cx.env, needed.place);
            let mut by = starts
                .iter()
                .filter(|(of, _)| of.iter().any(|class| own.contains(class)));
            if let Some((_, overwritten)) = by.next() {
                needed.at = Moment::Start;
                if is_made && can_replay(cx, needed.place) {
                    self.replays.extend(own);
                } else if is_made {
                    self.lost = self.lost.or(Lost::of(*overwritten, Why::Undone));
                }
            }
        }
    }
}

/// Whether all that writes the memory of a place can be done again and undone.
pub(super) fn can_replay(cx: &Cx<'_>, place: Value) -> bool {
    let own = classes(cx.func, cx.env, place);
    let mut names = Vec::new();
    let mut can = true;
    walk(
        cx.func,
        cx.func.body,
        &mut |func, inst| match change(&func[inst]) {
            Change::Nothing => {}
            // What functions write nobody reads.
            Change::Anything => can &= matches!(func[inst], Op::Call { .. }),
            Change::Below(node) => can &= !below(cx.env, node).any(|class| own.contains(&class)),
            Change::Storages(places) => {
                for &place in places {
                    let is_own = classes(func, cx.env, place).iter().any(|c| own.contains(c));
                    if is_own {
                        let is_plain = matches!(func[inst], Op::Store { .. } | Op::Atomic { .. });
                        can &= is_plain && !is_quantised(func, cx.env, place);
                        can &= element_of(func, place).is_some();
                        names.push(cx.memory(place));
                    }
                }
            }
        },
    );
    // Under two names an element's writes would not be undone in order.
    can && names.windows(2).all(|pair| pair[0] == pair[1])
}

/// The accesses that are queried, in order.
fn accesses(cx: &Cx<'_>, wanted: &dyn Fn(Inst) -> bool) -> Vec<Access> {
    let mut found = Vec::new();
    within(cx, cx.func.body, wanted, &mut Vec::new(), &mut found);
    found
}

fn within(
    cx: &Cx<'_>,
    region: Region,
    wanted: &dyn Fn(Inst) -> bool,
    path: &mut Vec<(Region, Inst)>,
    found: &mut Vec<Access>,
) {
    for &inst in &cx.func.regions[region].insts {
        path.push((region, inst));
        if wanted(inst) {
            let (place, classes) = match (touched(&cx.func[inst]), change(&cx.func[inst])) {
                (&[place, ..], _) => (Some(place), classes(cx.func, cx.env, place)),
                (_, Change::Below(node)) => (None, below(cx.env, node).collect()),
                _ => (None, Vec::new()),
            };
            found.push(Access {
                inst,
                place,
                classes,
                path: path.clone(),
            });
        }
        for owned in cx.func.owned(inst) {
            within(cx, owned, wanted, path, found);
        }
        path.pop();
    }
}
