//! Where a body is cut so that its loops run in lanes.

use aerogel_base::ScalarType;
use aerogel_base::entity::SecondaryMap;
use aerogel_ir::{Effect, Env, Function, Inst, Op, Region, Value, walk};

use super::analysis;
use super::strides::{Search, Shared, Strides};

/// How a body is cut.
pub(crate) struct Plan {
    /// The places of the loops among the body's instructions.
    pub(super) loops: Vec<usize>,
    /// What is made in one piece and used in another: the piece it is made in, and the value.
    /// Pieces are counted from 0; those with an odd number are the loops.
    pub(super) crossing: Vec<(usize, Value)>,
    /// What iterations share, if they run through loops together.
    pub(super) shared: Option<Shared>,
    /// How many vectors wide a batch is, of the width that the machine has.
    pub(super) n_vectors: u32,
}

/// How to cut the body of an `each`, if it pays.
pub(crate) fn plan(func: &Function, env: &Env, body: Region) -> Option<Plan> {
    let insts = &func.regions[body].insts;
    let (_, rest) = insts.split_last()?;
    let mut own: SecondaryMap<Value, bool> = SecondaryMap::new();
    walk(func, body, &mut |func, inst| {
        if matches!(func[inst], Op::Local {}) {
            own[func.insts[inst].results[0]] = true;
        }
    });
    let n_reading = rest
        .iter()
        .take_while(|&&inst| only_reads(func, inst, &own, false));
    let n_reading = n_reading.count();
    let counter = *func.regions[body].params.last()?;
    let mut search = Search::new(Strides::new(func, env, body, counter));
    let mut together = Vec::new();
    let loops: Vec<usize> = (0..n_reading)
        .filter(|&at| {
            let inst = insts[at];
            if search.pays(inst, env.fast_math) && search.admit_loop(inst) {
                together.push(inst);
                return true;
            }
            diverges(func, inst) && analysis::can(func, inst)
        })
        .collect();
    if loops.is_empty() {
        return None;
    }
    let n_vectors = together.iter().map(|&inst| n_vectors(func, inst)).max();
    let shared = n_vectors.map(|_| {
        for &inst in rest {
            if func[inst].effect() == Effect::Pure {
                search.admit(inst);
            }
        }
        search.done()
    });
    let mut made: SecondaryMap<Value, Option<usize>> = SecondaryMap::new();
    let mut crosses: SecondaryMap<Value, bool> = SecondaryMap::new();
    let mut crossing = Vec::new();
    for (at, &inst) in insts.iter().enumerate() {
        let piece = piece_of(&loops, at);
        let mut uses = |func: &Function, inst: Inst| {
            func[inst].operands(|v| {
                if let Some(from) = made[v]
                    && from != piece
                    && !crosses[v]
                {
                    crosses[v] = true;
                    crossing.push((from, v));
                }
            });
        };
        uses(func, inst);
        for region in func.owned(inst) {
            walk(func, region, &mut uses);
        }
        // What stands in the entry block is there for all, and what is shared is made in each piece.
        let everywhere = matches!(
            func[inst],
            Op::Const { .. } | Op::Arg { .. } | Op::ArrayShape { .. }
        ) || shared.as_ref().is_some_and(|shared| shared.once[inst]);
        if !everywhere {
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
    (!crossing.iter().any(|&(_, v)| own_storage(v))).then_some(Plan {
        loops,
        crossing,
        shared,
        n_vectors: n_vectors.unwrap_or(1),
    })
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
        // What a task gathers in a local is no iteration's own: the next one goes on with it.
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
fn local(func: &Function, place: Value) -> Option<Value> {
    match func.def_op(place)? {
        Op::Local {} => Some(place),
        &Op::ElemRef { base, .. } | &Op::MemberRef { base, .. } => local(func, base),
        _ => None,
    }
}

/// Whether a loop may run another number of turns in each iteration, or has such a loop inside.
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
