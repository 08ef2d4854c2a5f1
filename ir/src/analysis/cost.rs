//! A guess of how long instructions take.

use super::trips;
use crate::{BinaryOp, Env, Function, NodeOp, Op, Region, UnaryOp};

/// How often a loop of unknown length is taken to run.
const UNKNOWN_LENGTH: f32 = 16.0;

/// Nanoseconds that a region takes, roughly: for the launcher's first division of the work.
pub fn region(func: &Function, region: Region) -> f32 {
    expected(func, region, &one)
}

/// The total weight of the instructions of a region, each times its estimated number of executions.
pub fn expected(func: &Function, region: Region, weight: &dyn Fn(&Op) -> f32) -> f32 {
    func.regions[region]
        .insts
        .iter()
        .map(|&inst| with_owned(func, &func[inst], weight))
        .sum()
}

fn with_owned(func: &Function, op: &Op, weight: &dyn Fn(&Op) -> f32) -> f32 {
    let inside = |region: Region| expected(func, region, weight);
    let owned = match op {
        Op::Each { body } | Op::Update { body, .. } => inside(*body),
        Op::If {
            then, otherwise, ..
        } => inside(*then).max(inside(*otherwise)),
        Op::For { body, .. } => {
            let length = trips::length(func, op).map_or(UNKNOWN_LENGTH, |n| n as f32);
            length * inside(*body)
        }
        Op::While { cond, body, .. } => UNKNOWN_LENGTH * (inside(*cond) + inside(*body)),
        _ => 0.0,
    };
    weight(op) + owned
}

/// More bytes than a call of a function takes of the stack, whatever the optimiser made of it.
pub fn frame_bytes(func: &Function, env: &Env) -> i32 {
    let values = func.values.values();
    let scalars = values.map(|value| env.scalars(value.ty.pointee().unwrap_or(value.ty)).len());
    i32::try_from(256 + 16 * scalars.sum::<usize>()).unwrap_or(i32::MAX)
}

/// Nanoseconds of an instruction without the regions it owns.
pub fn one(op: &Op) -> f32 {
    match op {
        Op::Binary { .. } | Op::Compare { .. } | Op::Select { .. } => 0.15,
        Op::Fma { .. } | Op::MulAdd { .. } | Op::Cast { .. } => 0.15,
        Op::Unary { .. } => 0.5,
        Op::Load { .. } | Op::Store { .. } => 0.3,
        Op::Atomic { .. } | Op::AtomicAdds { .. } | Op::Cas { .. } | Op::Update { .. } => 5.0,
        Op::If { .. } => 0.3,
        Op::For { .. } => 0.5,
        Op::Threads { .. } => 10.0,
        Op::Call { .. } | Op::Random {} | Op::RandomState { .. } | Op::Reserve { .. } => 3.0,
        // So many products are usual.
        Op::TileProduct { rows, columns, .. } => 256.0 * (rows * columns) as f32 / 50.0,
        Op::Print { .. } | Op::Warn { .. } => 1000.0,
        Op::Note { .. } => 50.0,
        Op::Node(op) => node(op),
        // Names and addresses, which the code around them swallows.
        Op::Const { .. }
        | Op::Undef {}
        | Op::Arg { .. }
        | Op::ArrayShape { .. }
        | Op::Bitcast { .. }
        | Op::TensorMake { .. }
        | Op::TensorGet { .. }
        | Op::TensorSet { .. }
        | Op::StructMake { .. }
        | Op::StructGet { .. }
        | Op::StructSet { .. }
        | Op::Local {}
        | Op::Shared {}
        | Op::Buffer {}
        | Op::RoomAt { .. }
        | Op::StopGradient { .. }
        | Op::ElemRef { .. }
        | Op::MemberRef { .. }
        | Op::FieldAt { .. }
        | Op::ArrayAt { .. }
        | Op::TempAt { .. }
        | Op::PlaceAt { .. }
        | Op::Prefetch { .. }
        | Op::AwaitTurn {}
        | Op::Assert { .. }
        | Op::Each { .. }
        | Op::While { .. }
        | Op::Yield { .. }
        | Op::Break { .. }
        | Op::Continue { .. }
        | Op::Return { .. } => 0.0,
        // These are gone when costs are computed, or contain the instructions that are counted.
        Op::MatMul { .. }
        | Op::Cell(_)
        | Op::Parallel { .. }
        | Op::ParallelCells { .. }
        | Op::Task { .. } => 0.0,
        // They stand on paths that are seldom taken.
        Op::Grow { .. } | Op::Clear { .. } => 0.0,
    }
}

fn node(op: &NodeOp) -> f32 {
    match op {
        NodeOp::Find { .. }
        | NodeOp::CellIsActive { .. }
        | NodeOp::MaskWord { .. }
        | NodeOp::ListEntry { .. } => 0.5,
        NodeOp::Obtain { .. } | NodeOp::Extend { .. } | NodeOp::ListPut { .. } => 2.0,
        NodeOp::Release { .. } | NodeOp::ReleaseAll { .. } => 10.0,
        NodeOp::Wipe { .. } => 50.0,
        NodeOp::Ambient { .. }
        | NodeOp::Root { .. }
        | NodeOp::Linearize { .. }
        | NodeOp::Lookup { .. }
        | NodeOp::Child { .. }
        | NodeOp::NextActive { .. }
        | NodeOp::ActiveEnd { .. }
        | NodeOp::ContainerLength { .. }
        | NodeOp::ListStale { .. }
        | NodeOp::ListCount { .. }
        | NodeOp::ListScan { .. }
        | NodeOp::ListOffset { .. }
        | NodeOp::ListLen { .. }
        | NodeOp::NRecycled { .. }
        | NodeOp::Recycled { .. }
        | NodeOp::Collect { .. } => 0.0,
    }
}

/// Whether an instruction may run speculatively, and costs no more than a mispredicted
/// branch.
pub fn is_cheap(op: &Op) -> bool {
    match op {
        Op::Unary { op, .. } => matches!(op, UnaryOp::Neg | UnaryOp::Not | UnaryOp::Abs),
        Op::Binary { op, .. } => match op {
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::UShr => true,
            BinaryOp::Div
            | BinaryOp::Rem
            | BinaryOp::FloorDiv
            | BinaryOp::Mod
            | BinaryOp::Pow
            | BinaryOp::Atan2 => false,
        },
        Op::Compare { .. }
        | Op::Select { .. }
        | Op::Fma { .. }
        | Op::MulAdd { .. }
        | Op::Cast { .. }
        | Op::Bitcast { .. }
        | Op::Const { .. }
        | Op::Undef {}
        | Op::Arg { .. }
        | Op::ArrayShape { .. }
        | Op::TensorMake { .. }
        | Op::TensorGet { .. }
        | Op::TensorSet { .. }
        | Op::StructMake { .. }
        | Op::StructGet { .. }
        | Op::StructSet { .. }
        | Op::StopGradient { .. }
        | Op::RoomAt { .. }
        | Op::ElemRef { .. }
        | Op::MemberRef { .. }
        | Op::FieldAt { .. }
        | Op::ArrayAt { .. }
        | Op::TempAt { .. }
        | Op::PlaceAt { .. } => true,
        Op::Node(op) => matches!(
            op,
            NodeOp::Ambient { .. }
                | NodeOp::Root { .. }
                | NodeOp::Linearize { .. }
                | NodeOp::Lookup { .. }
                | NodeOp::Child { .. }
        ),
        // A product has as many multiplications as its sizes imply; other instructions access memory or more.
        Op::MatMul { .. }
        | Op::Local {}
        | Op::Shared {}
        | Op::Buffer {}
        | Op::Reserve { .. }
        | Op::TileProduct { .. }
        | Op::Load { .. }
        | Op::Prefetch { .. }
        | Op::AwaitTurn {}
        | Op::Store { .. }
        | Op::Atomic { .. }
        | Op::AtomicAdds { .. }
        | Op::Cas { .. }
        | Op::Update { .. }
        | Op::If { .. }
        | Op::For { .. }
        | Op::While { .. }
        | Op::Yield { .. }
        | Op::Break { .. }
        | Op::Continue { .. }
        | Op::Return { .. }
        | Op::Parallel { .. }
        | Op::ParallelCells { .. }
        | Op::Task { .. }
        | Op::Each { .. }
        | Op::Cell(_)
        | Op::Grow { .. }
        | Op::Clear { .. }
        | Op::Print { .. }
        | Op::Warn { .. }
        | Op::Note { .. }
        | Op::Assert { .. }
        | Op::Random {}
        | Op::RandomState { .. }
        | Op::Threads { .. }
        | Op::Call { .. } => false,
    }
}
