//! Reads of divergent loops, in lanes.
//!
//! Where iterations leave a loop at different times, or take different sides of a branch, each lane reads at an address of its own.
//! What is the same in all active lanes (the counter of a loop that they began together, and what is computed from it) is computed
//! and read once:
//!
//! ```text
//! for 0, 12, 1 (k) { v1 = load balls[k] .. }         one read, and a vector with it in all lanes
//! v2 = load balls[v3]                                a read for each lane, at `v3` of the lane
//! ```
//! An inactive lane reads the address that offset 0 gives. If no lane is active, the read goes to a zero in the stack frame.

use aerogel_base::ScalarType;
use aerogel_base::entity::SecondaryMap;
use aerogel_ir::analysis::trips;
use aerogel_ir::{Effect, Env, Function, Inst, NodeOp, Op, Region, Type, Value, walk};
use aerogel_snode::NodeKind;

use super::strides::{Strides, leaves as leaves_iteration, weight};
use super::{analysis, saves};

/// Whether a loop, or a branch with loops inside, can be computed in lanes with all that it reads.
pub(super) fn can(func: &Function, env: &Env, inst: Inst) -> bool {
    let here = |inst: Inst| match func[inst] {
        Op::Load { place } => {
            let ty = func.insts[inst].results[0];
            let is_number = func
                .ty(ty)
                .scalar()
                .is_some_and(|ty| !ty.is_half() && ty != ScalarType::U1);
            is_number && is_place(func, env, place)
        }
        _ if is_address(&func[inst]) => true,
        _ => analysis::can_alone(func, inst) && saves::touches_safely(func, inst),
    };
    let mut can = here(inst);
    for region in func.owned(inst) {
        walk(func, region, &mut |_, inst| can &= here(inst));
    }
    can
}

/// Whether an instruction only computes where something is.
pub(super) fn is_address(op: &Op) -> bool {
    use NodeOp::{Child, Linearize, Lookup, Root};
    matches!(
        op,
        Op::Node(Root { .. } | Child { .. } | Linearize { .. } | Lookup { .. })
            | Op::ArrayAt { .. }
            | Op::ElemRef { .. }
    )
}

/// Whether a place lies in a dense field or an array.
fn is_place(func: &Function, env: &Env, place: Value) -> bool {
    match func.def_op(place) {
        Some(Op::Node(NodeOp::Root { .. }) | Op::ArrayAt { .. }) => true,
        Some(&Op::Node(NodeOp::Child { cell, .. })) => is_place(func, env, cell),
        Some(&Op::Node(NodeOp::Lookup {
            node,
            container,
            index,
        })) => {
            env.trees[node.tree][node.node].kind == NodeKind::Dense
                && matches!(func.def_op(index), Some(Op::Node(NodeOp::Linearize { .. })))
                && is_place(func, env, container)
        }
        Some(Op::ElemRef { base, index }) => {
            let is_known = index.iter().all(|&i| func.as_const(i).is_some());
            is_known && index.len() == 1 && is_place(func, env, *base)
        }
        _ => false,
    }
}

/// The numbers that a value is computed from: itself, or the coordinates if it is an address.
pub(super) fn numbers(func: &Function, value: Value, found: &mut Vec<Value>) {
    match func.def_op(value) {
        Some(op) if is_address(op) => op.operands(|v| numbers(func, v, found)),
        _ => found.push(value),
    }
}

/// A side of a branch with more instructions is jumped over where no lane takes it.
const LONG: usize = 16;

/// Whether a side of a branch is worth a jump over it, and nothing in it leaves the iteration.
pub(super) fn is_long(func: &Function, region: Region) -> bool {
    let (mut n_insts, mut leaves) = (0, false);
    for &inst in &func.regions[region].insts {
        leaves |= leaves_iteration(func, inst);
        for owned in func.owned(inst) {
            walk(func, owned, &mut |_, _| n_insts += 1);
        }
        n_insts += 1;
    }
    n_insts > LONG && !leaves
}

/// The cost of a read for each lane: an instruction to get its address, the read, and one to insert it into the vector.
const OF_A_LANE: f32 = 3.0;
/// The cost of a branch that may go either way, in instructions: it is often mispredicted.
const OF_A_GUESS: f32 = 20.0;
/// The iterations of a loop, if their number is not known.
const TURNS: f32 = 8.0;
/// Lanes wait for the one with the most iterations.
const WAITING: f32 = 1.5;
/// The lanes of a vector, at least. LLVM uses as many for the iterations of a straight loop over consecutive elements.
const LANES: f32 = 8.0;

/// Whether lanes are faster than one iteration after the other.
pub(super) fn pays(func: &Function, env: &Env, inst: Inst, counter: Value, body: Region) -> bool {
    let mut cost = Cost {
        func,
        env,
        varies: varying(func, counter, body),
        in_lanes: 0.0,
        alone: 0.0,
    };
    cost.inst(inst, 1.0);
    cost.in_lanes * WAITING < cost.alone
}

/// The values that vary between iterations.
fn varying(func: &Function, counter: Value, body: Region) -> SecondaryMap<Value, bool> {
    let mut varies = SecondaryMap::new();
    varies[counter] = true;
    vary(func, body, &mut varies);
    varies
}

fn vary(func: &Function, region: Region, varies: &mut SecondaryMap<Value, bool>) {
    for &inst in &func.regions[region].insts {
        if let Op::For { lo, body, .. } = func[inst] {
            let params = &func.regions[body].params;
            varies[params[0]] = varies[lo];
            params[1..].iter().for_each(|&param| varies[param] = true);
        } else {
            for owned in func.owned(inst) {
                let params = &func.regions[owned].params;
                params.iter().for_each(|&param| varies[param] = true);
            }
        }
        for owned in func.owned(inst) {
            vary(func, owned, varies);
        }
        let mut any = !func.owned(inst).is_empty();
        func[inst].operands(|v| any |= varies[v]);
        for &result in &func.insts[inst].results {
            varies[result] = any;
        }
    }
}

struct Cost<'a> {
    func: &'a Function,
    env: &'a Env,
    varies: SecondaryMap<Value, bool>,
    in_lanes: f32,
    alone: f32,
}

impl Cost<'_> {
    fn inst(&mut self, inst: Inst, times: f32) {
        let func = self.func;
        match func[inst] {
            Op::For { body, .. } => {
                let turns = trips::length(func, &func[inst]).map_or(TURNS, |n| n as f32);
                self.looped(body, times * turns.min(256.0));
            }
            Op::While { cond, body, .. } => {
                self.region(cond, times * TURNS);
                self.looped(body, times * TURNS);
            }
            Op::If {
                cond,
                then,
                otherwise,
            } => {
                // Where both sides are short, both are computed in any case.
                let is_long = |side: Region| func.regions[side].insts.len() > 4;
                if self.varies[cond] && (is_long(then) || is_long(otherwise)) {
                    self.alone += OF_A_GUESS * times;
                }
                // Lanes compute both sides.
                let before = self.alone;
                self.region(then, times);
                self.region(otherwise, times);
                self.alone = before + (self.alone - before) / 2.0;
            }
            Op::Load { place } => {
                self.alone += times;
                let lanes = if self.varies[place] {
                    OF_A_LANE
                } else {
                    2.0 / LANES
                };
                self.in_lanes += lanes * times;
            }
            ref op if is_address(op) || op.effect() != Effect::Pure => {}
            Op::Const { .. } => {}
            _ => {
                let weight = weight(func, inst) as f32;
                self.alone += weight * times;
                self.in_lanes += weight * times / LANES;
            }
        }
    }

    fn region(&mut self, region: Region, times: f32) {
        for &inst in &self.func.regions[region].insts {
            self.inst(inst, times);
        }
    }

    fn looped(&mut self, body: Region, times: f32) {
        let before = self.alone;
        self.region(body, times);
        if self.is_row(body) {
            self.alone = before + (self.alone - before) / LANES;
        }
    }

    /// Whether the iterations of a loop are straight code that reads consecutive elements, or the same one.
    fn is_row(&self, body: Region) -> bool {
        let func = self.func;
        let Some(&counter) = func.regions[body].params.first() else {
            return false;
        };
        let mut strides = Strides::new(func, self.env, body, counter);
        let mut insts = func.regions[body].insts.iter();
        insts.all(|&inst| match func[inst] {
            Op::Load { place } => {
                let ty = func.ty(place).pointee().and_then(Type::scalar);
                let in_a_row = ty.map(|ty| i64::from(ty.bytes()));
                let stride = strides.of(place);
                stride == Some(0) || stride.is_some() && stride == in_a_row
            }
            _ => func.owned(inst).is_empty(),
        })
    }
}
