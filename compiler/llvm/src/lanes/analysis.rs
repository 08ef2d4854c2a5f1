//! Which instructions can be computed in lanes.

use aerogel_ir::{BinaryOp, Function, Inst, Op, walk};

use super::saves::{self, Alike};

/// Whether an instruction, with all inside it, can be computed in lanes, and its vectors are worth
/// it: divisions of integers by what is not constant are made one by one. It may save what `alike` is for.
pub(crate) fn can(func: &Function, inst: Inst, alike: Option<&Alike>) -> bool {
    let here = |inst: Inst| match alike {
        Some(alike) if saves::can(func, inst, alike) => true,
        Some(_) if saves::falls(func, inst) => {
            numbers(func, inst) && saves::touches_safely(func, inst)
        }
        _ => can_alone(func, inst) && saves::touches_safely(func, inst),
    };
    let mut can = here(inst);
    for region in func.owned(inst) {
        walk(func, region, &mut |_, inst| can &= here(inst));
    }
    can
}

fn numbers(func: &Function, inst: Inst) -> bool {
    let mut results = func.insts[inst].results.iter();
    results.all(|&v| func.ty(v).scalar().is_some_and(|ty| !ty.is_half()))
}

pub(super) fn can_alone(func: &Function, inst: Inst) -> bool {
    numbers(func, inst)
        && match &func[inst] {
            Op::Const { .. }
            | Op::Undef {}
            | Op::Unary { .. }
            | Op::Compare { .. }
            | Op::Select { .. }
            | Op::Fma { .. }
            | Op::MulAdd { .. }
            | Op::Cast { .. }
            | Op::Bitcast { .. }
            | Op::Random {}
            | Op::If { .. }
            | Op::Yield { .. }
            | Op::Break { .. }
            | Op::Continue { .. } => true,
            &Op::Binary { op, lhs, rhs } => {
                use BinaryOp::*;
                let divides = matches!(op, Div | Rem | FloorDiv | Mod);
                func.elem(lhs).is_float() || op != Pow && (!divides || func.as_const(rhs).is_some())
            }
            // A lane that has left would continue to draw random numbers there.
            &Op::While { cond, .. } => {
                let mut draws = false;
                walk(func, cond, &mut |func, inst| {
                    draws |= matches!(func[inst], Op::Random {});
                });
                !draws
            }
            &Op::For { step, .. } => func.as_const(step).is_some_and(|step| step.is_one()),
            // What is the same in all lanes comes from outside, and what touches memory or the
            // outside world is done one after the other.
            Op::Arg { .. }
            | Op::ArrayShape { .. }
            | Op::TensorMake { .. }
            | Op::TensorGet { .. }
            | Op::TensorSet { .. }
            | Op::MatMul { .. }
            | Op::StructMake { .. }
            | Op::StructGet { .. }
            | Op::StructSet { .. }
            | Op::Local {}
            | Op::Shared {}
            | Op::Threads { .. }
            | Op::ElemRef { .. }
            | Op::MemberRef { .. }
            | Op::FieldAt { .. }
            | Op::ArrayAt { .. }
            | Op::TempAt { .. }
            | Op::PlaceAt { .. }
            | Op::Load { .. }
            | Op::Prefetch { .. }
            | Op::AwaitTurn {}
            | Op::Store { .. }
            | Op::Atomic { .. }
            | Op::AtomicAdds { .. }
            | Op::Cas { .. }
            | Op::Update { .. }
            | Op::Return { .. }
            | Op::Parallel { .. }
            | Op::ParallelCells { .. }
            | Op::Task { .. }
            | Op::Each { .. }
            | Op::Cell(_)
            | Op::Node(_)
            | Op::Buffer {}
            | Op::Reserve { .. }
            | Op::RoomAt { .. }
            | Op::TileProduct { .. }
            | Op::StopGradient { .. }
            | Op::RandomState { .. }
            | Op::Grow { .. }
            | Op::Clear { .. }
            | Op::Print { .. }
            | Op::Warn { .. }
            | Op::Note { .. }
            | Op::Assert { .. }
            | Op::Call { .. } => false,
        }
}
