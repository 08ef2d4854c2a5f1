//! An early `continue` becomes a branch around what follows.
//!
//! ```text
//! if c { continue [v0] } { yield [] }          v2 = if c { yield [v0] } {
//! v1 = ..                               ==>        v1 = ..
//! yield [v1]                                       yield [v1]
//!                                              }
//!                                              yield [v2]
//! ```
//! The statements after it are then in one region with the end of the iteration, where other passes look for them.

use aerogel_base::entity::SecondaryMap;
use aerogel_ir::{Function, Op, Region, Type, Value};

/// Does so with each `if` at the outermost scope of a loop's body; what is inside of them stays.
pub(super) fn run(func: &mut Function, body: Region) -> bool {
    let end = func.terminator(body);
    let Op::Yield { values } = &func[end] else {
        return false;
    };
    let types: Vec<Type> = values.iter().map(|&v| func.ty(v)).collect();
    let mut changed = false;
    let mut region = body;
    while let Some(rest) = nest(func, region, &types) {
        changed = true;
        region = rest;
    }
    changed
}

/// Moves what follows the first `continue` of a region into the other side of its branch; gives that side.
fn nest(func: &mut Function, region: Region, types: &[Type]) -> Option<Region> {
    let leaves =
        |func: &Function, side: Region| matches!(func[func.terminator(side)], Op::Continue { .. });
    let insts = func.regions[region].insts.iter();
    let (at, sides) = insts.enumerate().find_map(|(at, &inst)| match func[inst] {
        Op::If {
            then, otherwise, ..
        } => match (leaves(func, then), leaves(func, otherwise)) {
            (true, false) => Some((at, [then, otherwise])),
            (false, true) => Some((at, [otherwise, then])),
            _ => None,
        },
        _ => None,
    })?;
    let [early, late] = sides;
    let inst = func.regions[region].insts[at];
    let yielded = func.yielded(late)?.to_vec();
    let rest = func.regions[region].insts.split_off(at + 1);
    // What the branch yields is there by itself.
    let mut by: SecondaryMap<Value, Option<Value>> = SecondaryMap::new();
    for (&result, value) in func.insts[inst].results.iter().zip(yielded) {
        by[result] = Some(value);
    }
    func.regions[late].insts.pop();
    func.regions[late].insts.extend(rest);
    rename(func, late, &by);
    let end = func.terminator(early);
    if let Op::Continue { values } = &mut func.insts[end].op {
        let values = std::mem::take(values);
        func.insts[end].op = Op::Yield { values };
    }
    func.insts[inst].results.clear();
    let values = types.iter().map(|&ty| func.add_result(inst, ty)).collect();
    let span = func.insts[inst].span;
    let end = func.new_inst(Op::Yield { values }, &[], span);
    func.regions[region].insts.push(end);
    Some(late)
}

fn rename(func: &mut Function, region: Region, by: &SecondaryMap<Value, Option<Value>>) {
    for inst in func.regions[region].insts.clone() {
        func.insts[inst].op.map_operands(|v| by[v].unwrap_or(v));
        for owned in func.owned(inst) {
            rename(func, owned, by);
        }
    }
}
