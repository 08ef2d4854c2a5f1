//! Accumulators in memory: locals of a task that its iterations load, make a step from, and store.

use aerogel_base::entity::SecondaryMap;
use aerogel_ir::{BinaryOp, Function, Inst, Op, Region, Value, walk};

use super::{GuardedSteps, Kind, Step, Steps, is_nan, remove, terms};

/// A step of an accumulator in memory.
#[derive(Clone)]
struct CellStep {
    place: Value,
    kind: Kind,
    /// The load, the arithmetic and the store.
    insts: [Inst; 3],
    step: Step,
}

impl GuardedSteps {
    /// Finds the accumulators in memory: locals from outside of the loop that only steps of one kind touch.
    pub(super) fn find_cells(&mut self, func: &Function, body: Region) {
        self.cells.clear();
        let mut touched: SecondaryMap<Value, u32> = SecondaryMap::new();
        let mut made: SecondaryMap<Value, bool> = SecondaryMap::new();
        let mut places = Vec::new();
        walk(func, body, &mut |func, inst| {
            func[inst].operands(|v| touched[v] += 1);
            for &result in &func.insts[inst].results {
                made[result] = true;
            }
            if let Op::Store { place, .. } = func[inst]
                && matches!(func.def_op(place), Some(Op::Local {}))
            {
                places.push(place);
            }
        });
        if places.is_empty() {
            return;
        }
        let mut steps: SecondaryMap<Value, Vec<CellStep>> = SecondaryMap::new();
        self.cell_steps_in(func, body, &mut steps);
        for place in places {
            let [first, rest @ ..] = &steps[place][..] else {
                continue;
            };
            let only_steps = touched[place] as usize == 2 * (rest.len() + 1);
            let same = rest.iter().all(|other| other.kind == first.kind);
            if only_steps && same && !made[place] {
                let may_be_nan = !begins_as_number(func, place, rest.len() + 1);
                self.cells[place] = Some(Kind {
                    may_be_nan,
                    ..first.kind
                });
            }
        }
    }

    fn cell_steps_in(
        &self,
        func: &Function,
        region: Region,
        steps: &mut SecondaryMap<Value, Vec<CellStep>>,
    ) {
        for step in self.cell_steps(func, region) {
            steps[step.place].push(step);
        }
        for &inst in &func.regions[region].insts {
            for owned in func.owned(inst) {
                self.cell_steps_in(func, owned, steps);
            }
        }
    }

    /// The steps of places in memory that stand in a region: a load, arithmetic and a store, one behind the other.
    fn cell_steps(&self, func: &Function, region: Region) -> Vec<CellStep> {
        let windows = func.regions[region].insts.windows(3);
        let steps = windows.filter_map(|insts| {
            let (Op::Load { place }, Op::Binary { op, lhs, rhs }, Op::Store { place: to, value }) =
                (&func[insts[0]], &func[insts[1]], &func[insts[2]])
            else {
                return None;
            };
            let old = func.insts[insts[0]].results[0];
            let new = func.insts[insts[1]].results[0];
            let alone = [old, new].iter().all(|&v| self.uses[v] == 1);
            let is_step = place == to && new == *value && alone && lhs != rhs;
            let term = match (*lhs == old, *rhs == old) {
                (true, _) => *rhs,
                (_, true) if *op != BinaryOp::Sub => *lhs,
                _ => return None,
            };
            let kind = Kind::of(func, *op, new, *lhs != old)?;
            let step = Step {
                inst: insts[1],
                term,
                negated: *op == BinaryOp::Sub,
            };
            is_step.then_some(CellStep {
                place: *place,
                kind,
                insts: [insts[0], insts[1], insts[2]],
                step,
            })
        });
        steps.collect()
    }

    /// Takes the steps of accumulators in memory out of a branch.
    pub(super) fn memory(
        &mut self,
        func: &mut Function,
        branch: Inst,
        sides: [Region; 2],
        region: Region,
        out: &mut Vec<Inst>,
    ) {
        let mut found: Vec<(Value, Steps)> = Vec::new();
        let mut gone = Vec::new();
        for (k, side) in sides.into_iter().enumerate() {
            for cell in self.cell_steps(func, side) {
                let Some(kind) = self.cells[cell.place] else {
                    continue;
                };
                gone.extend(cell.insts);
                let at = found.iter().position(|(place, _)| *place == cell.place);
                let at = at.unwrap_or_else(|| {
                    let sides = [Vec::new(), Vec::new()];
                    found.push((cell.place, Steps { kind, sides }));
                    found.len() - 1
                });
                found[at].1.sides[k].push(cell.step);
            }
        }
        for side in sides {
            remove(func, side, |inst| gone.contains(&inst));
        }
        let span = func.insts[branch].span;
        for (place, steps) in found {
            for term in terms(func, branch, sides, &steps) {
                let load = func.new_inst(Op::Load { place }, &[func.ty(term)], span);
                out.push(load);
                let old = func.insts[load].results[0];
                self.uses[old] = 1;
                let value = self.append(func, steps.kind.step(old, term), branch, region, out);
                out.push(func.new_inst(Op::Store { place, value }, &[], span));
            }
            self.changed = true;
        }
    }
}

/// Whether all that is stored to a place is a number that is constant, but for so many steps.
fn begins_as_number(func: &Function, place: Value, n_steps: usize) -> bool {
    let (mut n_numbers, mut n_others) = (0, 0);
    walk(func, func.body, &mut |func, inst| {
        if let Op::Store { place: to, value } = func[inst]
            && to == place
        {
            match func.as_const(value) {
                Some(c) if !is_nan(c) => n_numbers += 1,
                _ => n_others += 1,
            }
        }
    });
    n_numbers > 0 && n_others == n_steps
}
