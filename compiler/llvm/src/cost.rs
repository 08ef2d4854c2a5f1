//! A guess of how long an iteration takes, for the launcher's first division of the work.

use aerogel_ir::{Function, NodeOp, Op, Region};

/// How often a loop of unknown length is taken to run.
const UNKNOWN_LENGTH: f32 = 16.0;

/// Nanoseconds that a region takes, roughly.
pub(crate) fn region(func: &Function, region: Region) -> f32 {
    func.regions[region]
        .insts
        .iter()
        .map(|&inst| op(func, &func[inst]))
        .sum()
}

fn op(func: &Function, op: &Op) -> f32 {
    match op {
        Op::Each { body } => region(func, *body),
        Op::If {
            then, otherwise, ..
        } => 0.3 + region(func, *then).max(region(func, *otherwise)),
        Op::For {
            lo, hi, step, body, ..
        } => {
            let number = |v| func.as_const(v).map(|c| c.as_i128() as f32);
            let length = match (number(*lo), number(*hi), number(*step)) {
                (Some(lo), Some(hi), Some(step)) if step != 0.0 => ((hi - lo) / step).max(0.0),
                _ => UNKNOWN_LENGTH,
            };
            0.5 + length * region(func, *body)
        }
        Op::While { cond, body, .. } => {
            UNKNOWN_LENGTH * (region(func, *cond) + region(func, *body))
        }
        Op::Atomic { .. } | Op::Cas { .. } | Op::Update { .. } => 5.0,
        Op::Load { .. } | Op::Store { .. } => 0.3,
        Op::Call { .. } | Op::Random {} => 3.0,
        Op::Node(
            NodeOp::Find { .. }
            | NodeOp::CellIsActive { .. }
            | NodeOp::MaskWord { .. }
            | NodeOp::ListEntry { .. },
        ) => 0.5,
        Op::Node(NodeOp::Obtain { .. } | NodeOp::Extend { .. } | NodeOp::ListPut { .. }) => 2.0,
        Op::Node(NodeOp::Release { .. } | NodeOp::ReleaseAll { .. }) => 10.0,
        Op::Node(NodeOp::Wipe { .. }) => 50.0,
        Op::Print { .. } => 1000.0,
        Op::Unary { .. } => 0.5,
        Op::Binary { .. } | Op::Compare { .. } | Op::Select { .. } | Op::Cast { .. } => 0.15,
        _ => 0.0,
    }
}
