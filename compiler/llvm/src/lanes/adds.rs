//! Bodies that do much arithmetic and then add the results to elements that other iterations add to as well.
//!
//! Particles that give their momentum to the nodes around them, adjoints of what was gathered there: LLVM makes no vectors of
//! such a body, since two iterations may add to one number. So it is cut in two: what computes knows nothing of other
//! iterations and becomes vector code, with both sides of each branch computed; what adds is done one iteration after the other,
//! in the order in which it would have been.

use aerogel_base::ScalarType;
use aerogel_base::entity::SecondaryMap;
use aerogel_ir::analysis::access::{self, Class};
use aerogel_ir::{BinaryOp, Effect, Env, Function, Inst, Op, Region, UnaryOp, Value, walk};

use super::plan::{Piece, Plan, Width, local};
use super::strides::weight;

/// The number of computing instructions that pays for each value that is stored for a deferred sum.
const PAYS: u64 = 4;

/// Iterations of a batch. Parts of tasks with constant bounds are multiples of as many, so that none are left over.
const BATCH: u32 = 16;

/// How many numbers may wait for what adds: of all iterations of a batch they take the frame, and should stay in the nearest cache.
const MOST_WAITING: usize = 128;

/// How to cut a body into what computes and what adds, if it pays.
pub(super) fn plan(func: &Function, env: &Env, body: Region) -> Option<Plan> {
    let insts = &func.regions[body].insts;
    let (&end, rest) = insts.split_last()?;
    if !matches!(func[end], Op::Yield { .. }) {
        return None;
    }
    let late = late(func, rest)?;
    let (adds, computes): (Vec<Inst>, Vec<Inst>) = rest.iter().partition(|&&inst| late[inst]);
    if !is_vectorisable(func, &computes) || !are_apart(func, env, &computes, &adds) {
        return None;
    }
    let again = computed_again(func, &computes, &adds);
    let crossing = crossing(func, &computes, &adds, &again)?;
    if crossing.len() > MOST_WAITING {
        return None;
    }
    let [in_branches, outside] = costs(func, &computes);
    // Vectors gain more than twice, so that little is lost where no iteration takes the branch.
    if in_branches > outside || in_branches + outside < PAYS * crossing.len() as u64 {
        return None;
    }
    let again = computes.iter().copied().filter(|&inst| again[inst]);
    let last = again.chain(adds).chain([end]).collect();
    Some(Plan {
        pieces: vec![Piece::OneByOne(computes), Piece::OneByOne(last)],
        crossing: crossing.into_iter().map(|value| (0, value)).collect(),
        is_whole: true,
        is_flat: true,
        shared: None,
        alike: None,
        reads: false,
        width: Width::Iterations(BATCH),
    })
}

/// What adds to memory that iterations share, and what needs its results; nothing if there is no such thing but sums that LLVM
/// knows how to make of vectors.
fn late(func: &Function, insts: &[Inst]) -> Option<SecondaryMap<Inst, bool>> {
    let uses = func.use_counts();
    let is_add = |inst: Inst| match func[inst] {
        Op::AtomicAdds { .. } => true,
        Op::Atomic { .. } => uses[func.insts[inst].results[0]] == 0,
        _ => false,
    };
    let of_task = |inst: Inst| match func[inst] {
        Op::Load { place } | Op::Store { place, .. } => local(func, place).is_some(),
        _ => false,
    };
    let mut late = SecondaryMap::new();
    let mut depends: SecondaryMap<Value, bool> = SecondaryMap::new();
    let mut any = false;
    for &inst in insts {
        let mut is_late = is_add(inst) || of_task(inst);
        any |= is_add(inst);
        if matches!(func[inst], Op::If { .. }) && func.insts[inst].results.is_empty() {
            for region in func.owned(inst) {
                walk(func, region, &mut |_, inst| {
                    is_late |= is_add(inst) || of_task(inst);
                });
            }
            any |= is_late;
        }
        let mut look = |func: &Function, inst: Inst| {
            func[inst].operands(|v| is_late |= depends[v]);
        };
        look(func, inst);
        for region in func.owned(inst) {
            walk(func, region, &mut look);
        }
        late[inst] = is_late;
        for &result in &func.insts[inst].results {
            depends[result] = is_late;
        }
    }
    any.then_some(late)
}

/// Whether LLVM may make vectors of some instructions: straight code, and branches that only read, which draw no numbers, report
/// nothing and keep to what lies in fields and arrays.
fn is_vectorisable(func: &Function, insts: &[Inst]) -> bool {
    let may = |inst: Inst, in_branch: bool| match func[inst] {
        Op::Load { place } => local(func, place).is_none(),
        Op::Store { place, .. } => !in_branch && local(func, place).is_none(),
        Op::If { .. } | Op::Yield { .. } => true,
        Op::Call { .. } => false,
        ref op => op.effect() == Effect::Pure,
    };
    insts.iter().all(|&inst| {
        let mut all = may(inst, false);
        for region in func.owned(inst) {
            walk(func, region, &mut |_, inst| all &= may(inst, true));
        }
        all
    })
}

/// Whether a sum may be deferred: it touches no memory that the rest reads or writes, and control continues to the end
/// of the iteration.
fn are_apart(func: &Function, env: &Env, computes: &[Inst], adds: &[Inst]) -> bool {
    let Some(added) = touched(func, env, adds) else {
        return false;
    };
    let Some(others) = touched(func, env, computes) else {
        return false;
    };
    let is_array = |class: &Class| matches!(class, Class::Array(_) | Class::Arrays);
    let meet = |x: &Class, y: &Class| {
        let any_array = matches!(x, Class::Arrays) || matches!(y, Class::Arrays);
        x == y || any_array && is_array(x) && is_array(y)
    };
    !others.iter().any(|x| added.iter().any(|y| meet(x, y)))
}

/// The reads and writes of some instructions; nothing if they are unknown, or one may end the iteration.
fn touched(func: &Function, env: &Env, insts: &[Inst]) -> Option<Vec<Class>> {
    let mut touched = Vec::new();
    let mut known = true;
    let mut look = |func: &Function, inst: Inst| {
        let op = &func[inst];
        for &place in access::touched(op) {
            known &= access::has_classes(func, place);
            if known {
                touched.extend(access::classes(func, env, place));
            }
        }
        known &= match op {
            Op::Load { .. } | Op::Store { .. } | Op::Atomic { .. } | Op::AtomicAdds { .. } => true,
            Op::If { .. } | Op::Yield { .. } => true,
            Op::Call { .. } => false,
            op => op.effect() == Effect::Pure,
        };
    };
    for &inst in insts {
        look(func, inst);
        for region in func.owned(inst) {
            walk(func, region, &mut look);
        }
    }
    known.then_some(touched)
}

/// What the adding part needs and computes once more, since that is cheaper than to keep it: indices, addresses, negations.
fn computed_again(func: &Function, computes: &[Inst], adds: &[Inst]) -> SecondaryMap<Inst, bool> {
    let is_cheap = |inst: Inst| match &func[inst] {
        Op::Const { .. } | Op::Arg { .. } | Op::ArrayShape { .. } | Op::ArrayAt { .. } => true,
        Op::Node(op) => op.effect() == Effect::Pure,
        Op::Unary { op, .. } => *op == UnaryOp::Neg,
        op @ (Op::Binary { .. } | Op::Cast { .. }) => {
            let mut ints = true;
            op.operands(|v| ints &= func.ty(v).scalar().is_some_and(ScalarType::is_int));
            ints
        }
        _ => false,
    };
    let mut wanted = operands(func, adds.iter().copied());
    let mut again = SecondaryMap::new();
    for &inst in computes.iter().rev() {
        let results = &func.insts[inst].results;
        if results.iter().any(|&v| wanted[v]) && is_cheap(inst) {
            again[inst] = true;
            func[inst].operands(|v| wanted[v] = true);
        }
    }
    again
}

/// The numbers that are computed and wait for what adds; nothing if one of them is no number.
fn crossing(
    func: &Function,
    computes: &[Inst],
    adds: &[Inst],
    again: &SecondaryMap<Inst, bool>,
) -> Option<Vec<Value>> {
    let last = computes.iter().filter(|&&inst| again[inst]).chain(adds);
    let wanted = operands(func, last.copied());
    let made = computes.iter().filter(|&&inst| !again[inst]);
    let results = made.flat_map(|&inst| func.insts[inst].results.iter().copied());
    let crossing: Vec<Value> = results.filter(|&v| wanted[v]).collect();
    let are_numbers = crossing.iter().all(|&v| func.ty(v).scalar().is_some());
    are_numbers.then_some(crossing)
}

/// The operands of some instructions and of nested ones.
fn operands(func: &Function, insts: impl Iterator<Item = Inst>) -> SecondaryMap<Value, bool> {
    let mut used = SecondaryMap::new();
    let mut look = |func: &Function, inst: Inst| func[inst].operands(|v| used[v] = true);
    for inst in insts {
        look(func, inst);
        for region in func.owned(inst) {
            walk(func, region, &mut look);
        }
    }
    used
}

/// What lanes pay that do not take a branch, and what vectors gain outside of branches: instructions on floats, where long ones
/// count as what they become.
fn costs(func: &Function, insts: &[Inst]) -> [u64; 2] {
    let [mut in_branches, mut outside] = [0; 2];
    for &inst in insts {
        if is_float(func, inst) {
            outside += weight(func, inst);
        }
        for region in func.owned(inst) {
            walk(func, region, &mut |func, inst| {
                in_branches += price(func, inst)
            });
        }
    }
    [in_branches, outside]
}

/// Whether an instruction makes a float of numbers.
fn is_float(func: &Function, inst: Inst) -> bool {
    let result = func.insts[inst].results.first();
    let ty = result.and_then(|&v| func.ty(v).scalar());
    ty.is_some_and(ScalarType::is_float) && func[inst].effect() == Effect::Pure
}

/// What an instruction costs a lane that does not need it: reads are made one by one, and so are divisions of integers.
fn price(func: &Function, inst: Inst) -> u64 {
    match func[inst] {
        Op::Load { .. } => 4,
        Op::Binary { op, lhs, rhs } if func.elem(lhs).is_int() => match op {
            BinaryOp::Div | BinaryOp::Rem | BinaryOp::FloorDiv | BinaryOp::Mod
                if func.as_const(rhs).is_none() =>
            {
                24
            }
            BinaryOp::Pow => 24,
            _ => 1,
        },
        Op::Const { .. } | Op::Yield { .. } | Op::Node(_) => 0,
        ref op if op.effect() == Effect::Pure => weight(func, inst),
        _ => 0,
    }
}
