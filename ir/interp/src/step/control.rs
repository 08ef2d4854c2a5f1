//! Loops and tasks.

use std::convert::Infallible;

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{Inst, LoopAttrs, NodeRef, Region, TaskKind, Value, eval};

use super::{Flow, Machine};
use crate::value::Val;

impl Machine<'_> {
    pub(super) fn for_loop(
        &mut self,
        lo: Value,
        hi: Value,
        step: Value,
        init: &[Value],
        body: Region,
    ) -> Result<Vec<Val>, Flow> {
        let ty = self.func().elem(lo);
        let (mut at, hi) = (
            self.val(lo).scalar().as_i128(),
            self.val(hi).scalar().as_i128(),
        );
        let step = self.val(step).scalar().as_i128();
        let mut carried = self.vals(init);
        while if step > 0 {
            at < hi
        } else {
            step < 0 && at > hi
        } {
            let mut args = vec![Val::from(Scalar::int(ty, at))];
            args.append(&mut carried);
            self.bind(body, args);
            match self.region(body) {
                Flow::Yield(next) | Flow::Continue(next) => carried = next,
                Flow::Break(last) => return Ok(last),
                flow => return Err(flow),
            }
            at += step;
        }
        Ok(carried)
    }

    pub(super) fn while_loop(
        &mut self,
        init: &[Value],
        cond: Region,
        body: Region,
    ) -> Result<Vec<Val>, Flow> {
        let mut carried = self.vals(init);
        loop {
            self.bind(cond, carried.clone());
            match self.region(cond) {
                Flow::Yield(values) if values[0].scalar().as_bool() => {}
                Flow::Yield(_) => return Ok(carried),
                flow => return Err(flow),
            }
            self.bind(body, carried);
            match self.region(body) {
                Flow::Yield(next) | Flow::Continue(next) => carried = next,
                Flow::Break(last) => return Ok(last),
                flow => return Err(flow),
            }
        }
    }

    /// Makes a new value of what a storage holds; the result is the old one.
    pub(super) fn update(&mut self, inst: Inst, place: Value, body: Region) -> Result<Val, Flow> {
        let old = self.memory.read(self.val(place).place()[0]);
        self.bind(body, vec![Val::from(old)]);
        match self.region(body) {
            Flow::Yield(new) => self.write(inst, place, vec![new[0].scalar()])?,
            flow => return Err(flow),
        }
        Ok(Val::from(old))
    }

    /// Runs `body` for every index of a space, the last axis fastest.
    pub(super) fn range_task(
        &mut self,
        space: &[(i64, i64)],
        body: Region,
        args: &dyn Fn(&[i64]) -> Vec<Val>,
    ) -> Result<Vec<Val>, Flow> {
        let task = 2 * self.n_ranges + 1;
        let mut index: Vec<i64> = space.iter().map(|s| s.0).collect();
        let mut linear = 0;
        if space.iter().any(|&(lo, hi)| lo >= hi) {
            self.next_task();
            return Ok(Vec::new());
        }
        loop {
            if !self.aside {
                self.random = eval::random_state(self.seed, task, linear);
                self.linear = linear;
            }
            self.bind(body, args(&index));
            match self.region(body) {
                Flow::Yield(_) | Flow::Continue(_) => {}
                Flow::Break(_) => break,
                flow => return Err(flow),
            }
            linear += 1;
            // The odometer: the last axis first, with a carry.
            let mut axis = space.len();
            loop {
                if axis == 0 {
                    self.next_task();
                    return Ok(Vec::new());
                }
                axis -= 1;
                index[axis] += 1;
                if index[axis] < space[axis].1 {
                    break;
                }
                index[axis] = space[axis].0;
            }
        }
        self.next_task();
        Ok(Vec::new())
    }

    /// After a range task comes a serial one.
    fn next_task(&mut self) {
        self.collect();
        if !self.aside {
            self.n_ranges += 1;
            self.random = eval::random_state(self.seed, 2 * self.n_ranges, 0);
            self.linear = 0;
        }
    }

    pub(super) fn cells(
        &mut self,
        node: NodeRef,
        attrs: LoopAttrs,
        body: Region,
    ) -> Result<Vec<Val>, Flow> {
        let tree = &self.module.env.trees[node.tree];
        if tree.is_below_sparse(node.node) {
            let mut cells: Vec<Vec<Val>> = Vec::new();
            let mut visit = |_, indices: &[i64]| -> Result<(), Infallible> {
                cells.push(indices.iter().map(|&i| int(ScalarType::I32, i)).collect());
                Ok(())
            };
            // Cells that become active in the loop are not visited, so the list is made beforehand.
            let Ok(()) = self
                .memory
                .tree(node.tree)
                .visit_active(node.node, &mut visit);
            let space = [(0, cells.len() as i64)];
            return self.range_task(&space, body, &|at| cells[at[0] as usize].clone());
        }
        let axes: Vec<(usize, i64, i64)> = tree
            .loop_axes(node.node, attrs.serial)
            .iter()
            .map(|a| (a.index, a.divisor as i64, a.extent as i64))
            .collect();
        let mut space: Vec<(i64, i64)> = axes.iter().map(|&(_, _, extent)| (0, extent)).collect();
        if space.is_empty() {
            space.push((0, 1));
        }
        let n = self.func().regions[body].params.len();
        self.range_task(&space, body, &|index| {
            let mut whole = vec![0; n];
            for (&(axis, divisor, _), &i) in axes.iter().zip(index) {
                whole[axis] += i * divisor;
            }
            whole.into_iter().map(|i| int(ScalarType::I32, i)).collect()
        })
    }

    pub(super) fn task(
        &mut self,
        kind: TaskKind,
        bounds: Region,
        body: Region,
    ) -> Result<Vec<Val>, Flow> {
        match self.region(bounds) {
            Flow::Yield(values) => {
                let ends: Vec<i64> = values.iter().map(|v| v.scalar().as_i128() as i64).collect();
                self.space = ends.chunks(2).map(|c| (c[0], c[1])).collect();
            }
            flow => return Err(flow),
        }
        let empty = self.space.iter().any(|&(lo, hi)| lo >= hi);
        if kind == TaskKind::Range && empty {
            self.next_task();
            return Ok(Vec::new());
        }
        match self.region(body) {
            Flow::Yield(_) | Flow::Break(_) | Flow::Continue(_) => Ok(Vec::new()),
            // The tasks behind it know that it has returned, and do only what there is to do then.
            Flow::Return(values) => {
                self.returned = Some(values);
                Ok(Vec::new())
            }
            flow => Err(flow),
        }
    }
}

pub(super) fn int(ty: ScalarType, value: i64) -> Val {
    Val::from(Scalar::int(ty, i128::from(value)))
}
