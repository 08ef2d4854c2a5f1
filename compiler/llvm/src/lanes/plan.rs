//! Where a body is cut so that its loops run in lanes.

use aerogel_base::ScalarType;
use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::LookupMap;
use aerogel_ir::{Effect, Env, Function, Inst, Op, Region, Value, walk};

use super::saves::{self, Alike};
use super::strides::{Search, Shared, Strides, is_written_out};
use super::{adds, analysis, reads};
use crate::interior::Outcome;

/// How a body is cut.
pub(crate) struct Plan {
    /// The pieces, in order.
    pub(super) pieces: Vec<Piece>,
    /// Values that are computed in one piece and used in another: the number of the defining piece, and the value.
    pub(super) crossing: Vec<(usize, Value)>,
    /// Whether batches are always full, and what is left of a row runs one by one.
    pub(super) is_whole: bool,
    /// Whether both sides of branches are computed, but in the last piece.
    pub(super) is_flat: bool,
    /// Computations that iterations share, if they run through loops together.
    pub(super) shared: Option<Shared>,
    /// The uniform counters of lanes, if loops save values for their iterations.
    pub(super) alike: Option<Alike>,
    /// Whether loops that lanes leave by themselves read memory.
    pub(super) reads: bool,
    /// How many iterations make a batch.
    pub(super) width: Width,
}

impl Plan {
    /// How many iterations make a batch on a machine whose vectors have so many lanes.
    pub(crate) fn lanes(&self, of_vector: u32) -> u32 {
        match self.width {
            Width::Vectors(n) => of_vector * n,
            Width::Iterations(n) => n,
        }
    }

    /// Whether a row may run by another plan where more of its indices are known: lanes of this one only read, or wait for
    /// the one with the most iterations.
    pub(crate) fn may_be_inside(&self) -> bool {
        self.shared.is_none() && self.alike.is_none() && !self.is_flat
    }

    /// Of how many iterations a part of a row should be a multiple, so that none is left over that adds its numbers
    /// in another order than a lane would. A power of two.
    pub(crate) fn batch(&self, of_vector: u32) -> i64 {
        match self.is_whole {
            true => i64::from(self.lanes(of_vector).next_power_of_two()),
            false => 1,
        }
    }
}

/// How many iterations make a batch.
pub(super) enum Width {
    /// As many as a number of the machine's vectors has lanes.
    Vectors(u32),
    /// A fixed number on each machine.
    Iterations(u32),
}

/// A piece of a body.
pub(super) enum Piece {
    /// Instructions that run for one iteration after the other.
    OneByOne(Vec<Inst>),
    /// A loop that runs for all iterations of a batch at once.
    AtOnce(Inst),
}

/// The pieces of a body that is cut at some of its instructions: those with an odd number are the loops.
fn pieces(insts: &[Inst], loops: &[usize]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut begin = 0;
    for &at in loops {
        pieces.push(Piece::OneByOne(insts[begin..at].to_vec()));
        pieces.push(Piece::AtOnce(insts[at]));
        begin = at + 1;
    }
    pieces.push(Piece::OneByOne(insts[begin..].to_vec()));
    pieces
}

/// No vector has more lanes.
const MOST_LANES: u32 = 16;
/// Bytes of the frame that locals may take for all lanes.
const MOST_IN_FRAME: u32 = 256 << 10;

/// How to cut the body of an `each`, if it pays; `reassociates` says whether its accumulations may be regrouped.
pub(crate) fn plan(func: &Function, env: &Env, body: Region, reassociates: bool) -> Option<Plan> {
    plan_with_saves(func, body)
        .or_else(|| plan_without(func, env, body, reassociates, None))
        .or_else(|| adds::plan(func, env, body))
}

/// How to cut the body of an `each` in the inside of a row, if iterations run through its loops together there.
pub(crate) fn plan_inside(
    func: &Function,
    env: &Env,
    body: Region,
    reassociates: bool,
    outcomes: &LookupMap<Value, Outcome>,
) -> Option<Plan> {
    plan_without(func, env, body, reassociates, Some(outcomes)).filter(|plan| plan.shared.is_some())
}

/// How to split a body with loops that save values and loops of the backward pass that read them.
fn plan_with_saves(func: &Function, body: Region) -> Option<Plan> {
    let insts = &func.regions[body].insts;
    let own = own_locals(func, body);
    let all: Vec<Inst> = insts
        .iter()
        .copied()
        .filter(|&i| is_loop(func, i))
        .collect();
    let alike = Alike::of(func, &all);
    let used = used(func, body);
    let begins = insts
        .iter()
        .take_while(|&&inst| may_come_before(func, inst, &own, &used));
    let mut loops: Vec<usize> = (0..begins.count())
        .filter(|&at| {
            let inst = insts[at];
            let pays = is_loop(func, inst) && (diverges(func, inst) || saves_much(func, inst));
            pays && analysis::can(func, inst, Some(&alike))
                || matches!(func[inst], Op::Reserve { .. })
                || saves::is_of_room(func, inst)
        })
        .collect();
    // Where turns save lies otherwise than for one iteration alone.
    let in_frame = saves::in_frame(func, loops.iter().map(|&at| insts[at]));
    loops.extend((0..insts.len()).filter(|&at| in_frame.contains(&insts[at])));
    loops.sort_unstable();
    if in_frame.is_empty() && !loops.iter().any(|&at| saves::has_rooms(func, insts[at])) {
        return None;
    }
    let one_by_one = (0..insts.len()).filter(|at| !loops.contains(at));
    let left = one_by_one.map(|at| insts[at]).any(|inst| {
        let touches = |op: &Op| {
            let mut touches = false;
            op.operands(|v| touches |= func.def(v).is_some_and(|of| in_frame.contains(&of)));
            touches
        };
        saves::has_rooms(func, inst) || saves::is_inside(func, inst, touches)
    });
    if left || !sums_stay_together(func, insts, &loops, &own) {
        return None;
    }
    // Lanes that wait for the longest would be more.
    let in_lanes = loops.iter().map(|&at| insts[at]);
    let of_loops = in_lanes
        .filter(|&i| is_loop(func, i))
        .map(|i| match diverges(func, i) {
            true => 1,
            false => n_vectors(func, i),
        });
    let n_vectors = of_loops.min().unwrap_or(1);
    let frame: u32 = in_frame
        .iter()
        .map(|&local| saves::bytes(func, local))
        .sum();
    if frame.saturating_mul(MOST_LANES * n_vectors) > MOST_IN_FRAME {
        return None;
    }
    let everywhere = |inst: Inst| {
        matches!(func[inst], Op::Buffer {} | Op::Reserve { .. }) || in_frame.contains(&inst)
    };
    Some(Plan {
        crossing: crossing(func, body, &loops, everywhere)?,
        pieces: pieces(insts, &loops),
        is_whole: false,
        is_flat: false,
        shared: None,
        alike: Some(alike),
        reads: false,
        width: Width::Vectors(n_vectors),
    })
}

pub(super) fn is_loop(func: &Function, inst: Inst) -> bool {
    matches!(func[inst], Op::For { .. } | Op::While { .. })
}

/// Whether a loop has turns that save, too many for LLVM to write them out.
fn saves_much(func: &Function, inst: Inst) -> bool {
    let saves = |op: &Op| matches!(op, Op::RoomAt { .. } | Op::ElemRef { .. });
    let Op::For { body, .. } = func[inst] else {
        return true;
    };
    saves::is_inside(func, inst, saves) && !is_written_out(func, inst, body)
}

/// Whether a local that a task accumulates in is read and written in one piece of the body, which continues the
/// accumulation of the iteration before.
fn sums_stay_together(
    func: &Function,
    insts: &[Inst],
    loops: &[usize],
    own: &SecondaryMap<Value, bool>,
) -> bool {
    let mut pieces: SecondaryMap<Value, Option<usize>> = SecondaryMap::new();
    let mut together = true;
    for (at, &inst) in insts.iter().enumerate() {
        let piece = piece_of(loops, at);
        let mut look = |func: &Function, inst: Inst| {
            let (Op::Load { place } | Op::Store { place, .. } | Op::Atomic { place, .. }) =
                func[inst]
            else {
                return;
            };
            if let Some(local) = local(func, place).filter(|&local| !own[local]) {
                together &= *pieces[local].get_or_insert(piece) == piece;
            }
        };
        look(func, inst);
        for region in func.owned(inst) {
            walk(func, region, &mut look);
        }
    }
    together
}

/// Whether an instruction may run for all iterations before what stands behind it in the first: these know nothing of each
/// other, but what is seen from outside stays in order.
fn may_come_before(
    func: &Function,
    inst: Inst,
    own: &SecondaryMap<Value, bool>,
    used: &SecondaryMap<Value, bool>,
) -> bool {
    let alone = |inst: Inst| match func[inst] {
        Op::Reserve { .. } | Op::Load { .. } | Op::Store { .. } | Op::AtomicAdds { .. } => true,
        Op::If { .. } | Op::For { .. } | Op::While { .. } => true,
        Op::Assert { .. } => saves::is_of_room(func, inst),
        Op::Atomic { .. } => !used[func.insts[inst].results[0]],
        _ => func.owned(inst).is_empty() && only_reads(func, inst, own, true),
    };
    let ends = matches!(func[inst], Op::Yield { .. });
    let mut may = alone(inst) && !ends && !leaves(func, inst, false);
    for region in func.owned(inst) {
        walk(func, region, &mut |_, inst| may &= alone(inst));
    }
    may
}

/// Whether an instruction, or something inside it, leaves the iteration that it stands in.
fn leaves(func: &Function, inst: Inst, in_loop: bool) -> bool {
    match func[inst] {
        Op::Break { .. } | Op::Continue { .. } => !in_loop,
        Op::Return { .. } => true,
        _ => {
            let in_loop = in_loop || is_loop(func, inst);
            let mut inside = func.owned(inst).into_iter();
            inside.any(|region| {
                let mut insts = func.regions[region].insts.iter();
                insts.any(|&inst| leaves(func, inst, in_loop))
            })
        }
    }
}

/// The values that something in a region uses.
fn used(func: &Function, body: Region) -> SecondaryMap<Value, bool> {
    let mut used = SecondaryMap::new();
    walk(func, body, &mut |func, inst| {
        func[inst].operands(|v| used[v] = true);
    });
    used
}

fn own_locals(func: &Function, body: Region) -> SecondaryMap<Value, bool> {
    let mut own: SecondaryMap<Value, bool> = SecondaryMap::new();
    walk(func, body, &mut |func, inst| {
        if matches!(func[inst], Op::Local {}) {
            own[func.insts[inst].results[0]] = true;
        }
    });
    own
}

fn plan_without(
    func: &Function,
    env: &Env,
    body: Region,
    reassociates: bool,
    outcomes: Option<&LookupMap<Value, Outcome>>,
) -> Option<Plan> {
    let insts = &func.regions[body].insts;
    let (_, rest) = insts.split_last()?;
    let own = own_locals(func, body);
    let n_reading = rest
        .iter()
        .take_while(|&&inst| only_reads(func, inst, &own, false));
    let n_reading = n_reading.count();
    let counter = *func.regions[body].params.last()?;
    let mut search = Search::new(Strides::new(func, env, body, counter).inside(outcomes));
    let mut together = Vec::new();
    let mut reads = false;
    let loops: Vec<usize> = (0..n_reading)
        .filter(|&at| {
            let inst = insts[at];
            if search.pays(inst, reassociates) && search.admit_loop(inst) {
                together.push(inst);
                return true;
            }
            if diverges(func, inst) && analysis::can(func, inst, None) {
                return true;
            }
            let is_slow = |search: &mut Search<'_>| {
                is_long_loop(func, inst) && search.strides.reads_afar(inst)
            };
            let reads_in_lanes = (diverges_inside(func, inst) || is_slow(&mut search))
                && reads::can(func, env, inst)
                && reads::pays(func, env, inst, counter, body);
            reads |= reads_in_lanes;
            reads_in_lanes
        })
        .collect();
    if loops.is_empty() || reads && !together.is_empty() {
        return None;
    }
    let n_vectors = together.iter().map(|&inst| n_vectors(func, inst)).max();
    let shared = n_vectors.map(|_| {
        for &inst in rest {
            if func[inst].effect() == Effect::Pure || matches!(func[inst], Op::If { .. }) {
                search.admit(inst);
            }
        }
        search.done()
    });
    let everywhere = |inst: Inst| shared.as_ref().is_some_and(|shared| shared.once[inst]);
    Some(Plan {
        crossing: crossing(func, body, &loops, everywhere)?,
        pieces: pieces(insts, &loops),
        is_whole: shared.is_some(),
        is_flat: false,
        shared,
        alike: None,
        reads,
        width: Width::Vectors(n_vectors.unwrap_or(1)),
    })
}

/// What is made in one piece and used in another, with the piece it is made in; nothing if that cannot wait in memory.
/// What some instructions make is there for all pieces.
fn crossing(
    func: &Function,
    body: Region,
    loops: &[usize],
    everywhere: impl Fn(Inst) -> bool,
) -> Option<Vec<(usize, Value)>> {
    let insts = &func.regions[body].insts;
    let mut made: SecondaryMap<Value, Option<usize>> = SecondaryMap::new();
    let mut crosses: SecondaryMap<Value, bool> = SecondaryMap::new();
    let mut crossing = Vec::new();
    for (at, &inst) in insts.iter().enumerate() {
        let piece = piece_of(loops, at);
        let mut uses = |func: &Function, inst: Inst| {
            // Where something is, lanes compute again from the numbers that say so.
            let in_lanes = loops.contains(&at);
            let mut used = Vec::new();
            func[inst].operands(|v| match in_lanes {
                true => reads::numbers(func, v, &mut used),
                false => used.push(v),
            });
            for v in used {
                if let Some(from) = made[v]
                    && from != piece
                    && !crosses[v]
                {
                    crosses[v] = true;
                    crossing.push((from, v));
                }
            }
        };
        uses(func, inst);
        for region in func.owned(inst) {
            walk(func, region, &mut uses);
        }
        // What stands in the entry block is there for all.
        let is_constant = matches!(
            func[inst],
            Op::Const { .. } | Op::Arg { .. } | Op::ArrayShape { .. }
        );
        if !is_constant && !everywhere(inst) {
            for &result in &func.insts[inst].results {
                made[result] = Some(piece);
            }
        }
    }
    let own_storage = |v: Value| {
        matches!(
            func.def_op(v),
            Some(Op::Local {} | Op::ElemRef { .. } | Op::MemberRef { .. })
        )
    };
    (!crossing.iter().any(|&(_, v)| own_storage(v))).then_some(crossing)
}

/// Of how many vectors the lanes of a loop shall be, so that what a turn waits for in one is
/// computed in others.
fn n_vectors(func: &Function, inst: Inst) -> u32 {
    let mut n_floats = 0;
    for region in func.owned(inst) {
        walk(func, region, &mut |func, inst| {
            let result = func.insts[inst].results.first();
            let is_float = result
                .and_then(|&v| func.ty(v).scalar())
                .is_some_and(ScalarType::is_float);
            n_floats += u32::from(is_float && func[inst].effect() == Effect::Pure);
        });
    }
    match n_floats {
        0..=4 => 4,
        5..=12 => 2,
        _ => 1,
    }
}

fn piece_of(loops: &[usize], at: usize) -> usize {
    let before = loops.iter().filter(|&&l| l < at).count();
    2 * before + usize::from(loops.contains(&at))
}

/// Whether an instruction leaves memory, and the iteration, as they are; but for storage that is
/// the iteration's own.
fn only_reads(func: &Function, inst: Inst, own: &SecondaryMap<Value, bool>, in_loop: bool) -> bool {
    let op = &func[inst];
    let alone = match op.effect() {
        Effect::Pure | Effect::Allocates => true,
        // Of the operations with regions only this one writes by itself.
        Effect::Control => !matches!(op, Op::Update { .. }),
        // A local that a task accumulates in is shared by iterations: the next one continues with it.
        Effect::Reads => match op {
            &Op::Load { place } => local(func, place).is_none_or(|local| own[local]),
            _ => false,
        },
        Effect::Writes => match op {
            Op::Random {} => true,
            &Op::Store { place, .. } => local(func, place).is_some_and(|local| own[local]),
            _ => false,
        },
        Effect::Terminator => match op {
            Op::Yield { .. } => true,
            Op::Break { .. } | Op::Continue { .. } => in_loop,
            _ => false,
        },
    };
    let in_loop = in_loop || matches!(op, Op::For { .. } | Op::While { .. });
    let all_read = |region: &Region| {
        let insts = &func.regions[*region].insts;
        insts
            .iter()
            .all(|&inst| only_reads(func, inst, own, in_loop))
    };
    alone && func.owned(inst).iter().all(all_read)
}

/// The local that a place is in.
pub(super) fn local(func: &Function, place: Value) -> Option<Value> {
    match func.def_op(place)? {
        Op::Local {} => Some(place),
        &Op::ElemRef { base, .. } | &Op::MemberRef { base, .. } => local(func, base),
        _ => None,
    }
}

/// Whether an instruction is a loop that diverges, or a branch with one inside.
fn diverges_inside(func: &Function, inst: Inst) -> bool {
    match func[inst] {
        Op::If {
            then, otherwise, ..
        } => [then, otherwise].iter().any(|&side| {
            let mut insts = func.regions[side].insts.iter();
            insts.any(|&inst| diverges_inside(func, inst))
        }),
        _ => diverges(func, inst),
    }
}

/// Whether an instruction is a loop that LLVM does not unroll.
fn is_long_loop(func: &Function, inst: Inst) -> bool {
    matches!(func[inst], Op::For { body, .. } if !is_written_out(func, inst, body))
}

/// Whether the number of iterations of a loop may differ between lanes, or it contains such a loop.
fn diverges(func: &Function, inst: Inst) -> bool {
    let body = match func[inst] {
        Op::While { .. } => return true,
        Op::For { lo, hi, body, .. } => {
            if func.as_const(lo).is_none() || func.as_const(hi).is_none() {
                return true;
            }
            body
        }
        _ => return false,
    };
    let mut found = false;
    walk(func, body, &mut |func, inst| {
        found |= matches!(func[inst], Op::Break { .. }) || diverges(func, inst);
    });
    found
}
