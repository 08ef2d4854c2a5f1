//! What can be computed in lanes.

use aerogel_base::ScalarType;
use aerogel_ir::{BinaryOp, Function, Inst, Op, walk};

/// Whether an instruction, with all inside it, can be computed in lanes, and its vectors are worth
/// it: divisions of integers by what is not constant are made one by one.
pub(crate) fn can(func: &Function, inst: Inst) -> bool {
    let mut can = can_alone(func, inst);
    for region in func.owned(inst) {
        walk(func, region, &mut |func, inst| can &= can_alone(func, inst));
    }
    can
}

fn can_alone(func: &Function, inst: Inst) -> bool {
    let numbers = func.insts[inst]
        .results
        .iter()
        .all(|&v| func.ty(v).scalar().is_some_and(|ty| ty != ScalarType::F16));
    numbers
        && match &func[inst] {
            Op::Const { .. }
            | Op::Undef {}
            | Op::Unary { .. }
            | Op::Compare { .. }
            | Op::Select { .. }
            | Op::Fma { .. }
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
            // A lane that has left would go on drawing there.
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
            | Op::ElemRef { .. }
            | Op::MemberRef { .. }
            | Op::FieldAt { .. }
            | Op::ArrayAt { .. }
            | Op::TempAt { .. }
            | Op::PlaceAt { .. }
            | Op::Load { .. }
            | Op::Prefetch { .. }
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
            | Op::StopGradient { .. }
            | Op::RandomState { .. }
            | Op::Grow { .. }
            | Op::Clear { .. }
            | Op::Print { .. }
            | Op::Warn { .. }
            | Op::Assert { .. }
            | Op::Call { .. } => false,
        }
}
