//! Loops whose lanes leave at different iterations: each lane keeps its values until all have left.

use aerogel_base::ScalarType;
use aerogel_ir::analysis::trips;
use aerogel_ir::{Inst, Op, Region, Value, walk};
use inkwell::values::PhiValue;

use super::emit::{Lanes, Leaving, Mask};
use super::saves::touches;
use crate::builder::{Opcode, Val, incoming};

impl<'ctx> Lanes<'_, '_, '_, 'ctx> {
    /// A loop that all lanes run through together.
    pub(super) fn shared_loop(
        &mut self,
        inst: Inst,
        [lo, hi]: [Value; 2],
        init: &[Value],
        body: Region,
    ) {
        let func = self.func;
        let (first, end) = (self.f.value(lo), self.f.value(hi));
        let init = self.all(init);
        let before = self.b().current();
        let [head, inside, exit] =
            ["lanes", "body", "done"].map(|name| self.b().block(self.f.llvm, name));
        self.b().br(head);
        self.b().at(head);
        let counter = self.b().phi(first.get_type());
        incoming(counter, first, before);
        let phis: Vec<PhiValue<'ctx>> = init
            .iter()
            .map(|&value| {
                let phi = self.b().phi(value.get_type());
                incoming(phi, value, before);
                phi
            })
            .collect();
        let carried: Vec<Val<'ctx>> = phis.iter().map(|phi| phi.as_basic_value()).collect();
        let index = counter.as_basic_value();
        let signed = func.elem(lo).is_signed();
        let more = self.b().less(signed, index, end);
        self.b().cond_br(more, inside, exit);
        self.b().at(inside);
        if trips::iterations_within(func, body) != Some(0) {
            self.f.poll();
        }
        let (&counter_param, params) = func.regions[body]
            .params
            .split_first()
            .expect("a loop counts");
        self.f.values[counter_param] = Some(index);
        self.define_all(params, &carried);
        let (values, _) = self.region(body, None).expect("all lanes continue");
        let counted = self.b().count_on(signed, index);
        let last = self.b().current();
        incoming(counter, counted, last);
        for (&phi, &value) in phis.iter().zip(&values) {
            incoming(phi, value, last);
        }
        self.b().br(head);
        self.b().at(exit);
        self.define_all(&func.insts[inst].results, &carried);
    }

    pub(super) fn counted_loop(
        &mut self,
        inst: Inst,
        [lo, hi]: [Value; 2],
        init: &[Value],
        body: Region,
        mask: Mask<'ctx>,
    ) {
        let func = self.func;
        let signed = func.elem(lo).is_signed();
        if self.is_same(lo) {
            let first = self.f.value(lo);
            let (&counter, params) = func.regions[body]
                .params
                .split_first()
                .expect("a loop counts");
            let init = self.all(init);
            let results = self.looped(
                inst,
                &init,
                body,
                mask,
                Some((counter, first)),
                |lanes, carried, _| {
                    lanes.define_all(params, carried);
                    // What no lane counts is one number for all that are there.
                    let at = lanes.f.value(counter);
                    let more = match lanes.is_same(hi) {
                        true => {
                            let end = lanes.f.value(hi);
                            let more = lanes.b().less(signed, at, end);
                            lanes.b().splat(more, lanes.width)
                        }
                        false => {
                            let at = lanes.b().splat(at, lanes.width);
                            lanes.b().less(signed, at, lanes.value(hi))
                        }
                    };
                    (more, None)
                },
            );
            self.define_all(&func.insts[inst].results, &results);
            return;
        }
        let end = self.value(hi);
        // The counter is carried like other values, so that it stays where a lane has left.
        let init: Vec<Val<'ctx>> = std::iter::once(&lo)
            .chain(init)
            .map(|&v| self.value(v))
            .collect();
        let results = self.looped(inst, &init, body, mask, None, |lanes, carried, _| {
            lanes.define_all(&func.regions[body].params, carried);
            let one = lanes.b().int(end.get_type(), 1);
            let counted = lanes.b().op(Opcode::Add, carried[0], one);
            (lanes.b().less(signed, carried[0], end), Some(counted))
        });
        self.define_all(&func.insts[inst].results, &results[1..]);
    }

    pub(super) fn while_loop(
        &mut self,
        inst: Inst,
        init: &[Value],
        cond: Region,
        body: Region,
        mask: Mask<'ctx>,
    ) {
        let func = self.func;
        let init = self.all(init);
        let results = self.looped(inst, &init, body, mask, None, |lanes, carried, there| {
            lanes.define_all(&func.regions[cond].params, carried);
            lanes.define_all(&func.regions[body].params, carried);
            let yielded = lanes.region(cond, there);
            (yielded.expect("a condition yields").0[0], None)
        });
        self.define_all(&func.insts[inst].results, &results);
    }

    /// A loop over the lanes of `mask`. `more` defines the parameters, and returns which lanes continue,
    /// and the counter's next value. If all lanes count alike, `counter` is the counter and its start.
    fn looped(
        &mut self,
        inst: Inst,
        init: &[Val<'ctx>],
        body: Region,
        mask: Mask<'ctx>,
        counter: Option<(Value, Val<'ctx>)>,
        more: impl FnOnce(&mut Self, &[Val<'ctx>], Mask<'ctx>) -> (Val<'ctx>, Option<Val<'ctx>>),
    ) -> Vec<Val<'ctx>> {
        let func = self.func;
        let before = self.b().current();
        let [head, exit] = ["lanes", "done"].map(|name| self.b().block(self.f.llvm, name));
        self.b().br(head);
        self.b().at(head);
        let phis: Vec<PhiValue<'ctx>> = init
            .iter()
            .map(|&value| {
                let phi = self.b().phi(value.get_type());
                incoming(phi, value, before);
                phi
            })
            .collect();
        let carried: Vec<Val<'ctx>> = phis.iter().map(|phi| phi.as_basic_value()).collect();
        let counter = counter.map(|(counter, first)| {
            let phi = self.b().phi(first.get_type());
            incoming(phi, first, before);
            self.f.values[counter] = Some(phi.as_basic_value());
            (func.elem(counter).is_signed(), phi)
        });
        let counts = self.begin_counts(inst, before);
        let (mut breaks, mut loops) = (false, touches(func, body));
        walk(func, body, &mut |func, inst| {
            breaks |= matches!(func[inst], Op::Break { .. });
            loops |= matches!(
                func[inst],
                Op::For { .. } | Op::While { .. } | Op::Load { .. }
            );
        });
        // Where lanes leave only because there is no more, there is none for them afterwards.
        let active = (mask.is_some() || breaks).then(|| {
            let phi = self.b().phi(self.scalar(ScalarType::I32));
            let first = mask.unwrap_or_else(|| self.all_lanes());
            incoming(phi, first, before);
            phi
        });
        let active_here = active.map(|phi| phi.as_basic_value());
        // What a lane reads that has left may be anywhere.
        let there = if self.reads { active_here } else { mask };
        let (more, counted) = more(self, &carried, there);
        let run = self.narrow(active_here, more);
        // A body without loops that saves nothing is computed once too often, so that the loop is one block.
        let any = self.any(run);
        if loops {
            let inside = self.b().block(self.f.llvm, "body");
            self.b().cond_br(any, inside, exit);
            self.b().at(inside);
            self.f.poll();
        }
        let present = self.present.replace(run);
        self.loops.push(Leaving {
            counted,
            carried: carried.clone(),
            again: self.no_lane(),
        });
        if let Some((values, mask)) = self.region(body, Some(run)) {
            self.leave(&values, mask, true);
        }
        self.present = present;
        let left = self.loops.pop().expect("pushed above");
        if let Some((signed, phi)) = counter {
            let counted = self.b().count_on(signed, phi.as_basic_value());
            incoming(phi, counted, self.b().current());
        }
        let last = self.b().current();
        for (&phi, &value) in phis.iter().zip(&left.carried) {
            incoming(phi, value, last);
        }
        if let Some(active) = active {
            incoming(active, left.again, last);
        }
        self.count_on(inst, &counts, last);
        if loops {
            self.b().br(head);
            self.b().at(exit);
            return carried;
        }
        let goes_on = self.f.goes_on();
        self.b().cond_br(self.b().and(any, goes_on), head, exit);
        self.b().at(exit);
        self.f.leave_unless(goes_on);
        left.carried
    }
}
