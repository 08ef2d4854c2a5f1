//! What sums in memory are cleared to, in the nest that adds to them or by the loop before.

use aerogel_base::Scalar;
use aerogel_ir::analysis::access::{classes, defined_in};
use aerogel_ir::analysis::affine::counted_from;
use aerogel_ir::{Function, Inst, Op, Value};

use super::{Axis, End, Search, Sums, indices, is_plain};

impl Search<'_> {
    /// The sums with what they are cleared to; nothing if the nest writes anything else.
    pub(super) fn cleared(&self, sums: Sums, kept: u32) -> Option<Sums> {
        let Sums::Memory { place, .. } = sums else {
            return Some(sums);
        };
        let (func, env) = (self.func, self.cx.env);
        let cleared = match self.writes[..] {
            [] => None,
            [(inst, depth)] => {
                let mut around = (1_u32 << depth) - 1;
                let mut store = inst;
                let mut counter = None;
                if let Op::For {
                    lo,
                    hi,
                    step,
                    ref init,
                    body,
                } = func[inst]
                {
                    let (_, insts) = func.regions[body].insts.split_last()?;
                    let (&last, before) = insts.split_last()?;
                    let is_plain = before.iter().all(|&inst| is_plain(&func[inst]));
                    let yields = func.yielded(body).is_some_and(<[Value]>::is_empty);
                    if !init.is_empty() || !func.as_const(step)?.is_one() || !is_plain || !yields {
                        return None;
                    }
                    let own = func.regions[body].params[0];
                    let ends = [lo, hi].map(End::Value);
                    let same = |k: &usize| {
                        let mut both = self.axes[*k].ends.into_iter().zip(ends);
                        kept & 1 << k != 0 && both.all(|(a, b)| a.is(func, b))
                    };
                    let axis = (depth..self.axes.len()).find(same)?;
                    around |= 1 << axis;
                    counter = Some((own, self.axes[axis].counter));
                    store = last;
                }
                let Op::Store { place: to, value } = func[store] else {
                    return None;
                };
                let same = |(&a, &b): (&Value, &Value)| {
                    a == b || counter.is_some_and(|(own, axis)| a == own && b == axis)
                };
                let [there, here] = [to, place].map(|p| indices(func, p));
                let (there, here) = (there?, here?);
                let is_same = around == kept
                    && there.len() == here.len()
                    && there.iter().zip(here).all(same)
                    && classes(func, env, to) == classes(func, env, place)
                    && is_same_storage(func, to, place);
                Some(func.as_const(value).filter(|_| is_same)?)
            }
            _ => return None,
        };
        Some(Sums::Memory { place, cleared })
    }

    /// The sums with what the loop before this one clears all of them to, and that loop.
    pub(super) fn cleared_before(&self, sums: Sums) -> (Sums, Option<Inst>) {
        let Sums::Memory {
            place,
            cleared: None,
        } = sums
        else {
            return (sums, None);
        };
        let func = self.func;
        let insts = &func.regions[func.body].insts;
        let before = insts.iter().take_while(|&&inst| inst != self.inst);
        let last = before
            .copied()
            .filter(|&inst| !is_plain(&func[inst]))
            .last();
        let clearing = last.and_then(|inst| Some((inst, Search::new(func, self.cx, inst)?)));
        match clearing {
            Some((inst, loops)) => match loops.clears_all(self, place) {
                Some(value) => {
                    let cleared = Some(value);
                    (Sums::Memory { place, cleared }, Some(inst))
                }
                None => (sums, None),
            },
            None => (sums, None),
        }
    }

    /// What a nest stores in all elements that another nest adds to, if it does nothing else.
    fn clears_all(mut self, of: &Search<'_>, place: Value) -> Option<Scalar> {
        let func = self.func;
        defined_in(func, self.body, &mut self.inside);
        let mut region = self.body;
        loop {
            let (&end, insts) = func.regions[region].insts.split_last()?;
            let (&last, before) = insts.split_last()?;
            let yields = matches!(&func[end], Op::Yield { values } if values.is_empty());
            if !yields || !before.iter().all(|&inst| is_plain(&func[inst])) {
                return None;
            }
            match func[last] {
                Op::For {
                    lo,
                    hi,
                    step,
                    ref init,
                    body,
                } if init.is_empty() && func.as_const(step)?.is_one() => {
                    self.axes.push(Axis {
                        counter: func.regions[body].params[0],
                        ends: [lo, hi].map(End::Value),
                    });
                    region = body;
                }
                Op::Store { place: to, value } => {
                    let all = (1_u32 << self.axes.len()) - 1;
                    let is_same = is_same_storage(func, to, place) && self.own(to)? == all;
                    let [there, here] = [to, place].map(|p| indices(func, p));
                    let mut both = there?.iter().zip(here?);
                    let covers = both.all(|(&a, &b)| self.covers(a, of, b));
                    return func.as_const(value).filter(|_| is_same && covers);
                }
                _ => return None,
            }
        }
    }

    /// Whether an index takes the same numbers as one of another nest.
    fn covers(&self, index: Value, of: &Search<'_>, other: Value) -> bool {
        let func = self.func;
        let ((a, x), (b, y)) = (counted_from(func, index), counted_from(func, other));
        let axis = |search: &Search<'_>, counter: Value| {
            let mut axes = search.axes.iter();
            axes.find(|axis| axis.counter == counter)
                .map(|axis| axis.ends)
        };
        match (axis(self, a), axis(of, b)) {
            (Some(here), Some(there)) => {
                let mut ends = here.into_iter().zip(there);
                x == y && ends.all(|(p, q)| p.is(func, q))
            }
            (None, None) => End::Value(index).is(func, End::Value(other)),
            _ => false,
        }
    }
}

fn is_same_storage(func: &Function, a: Value, b: Value) -> bool {
    match (func.def_op(a), func.def_op(b)) {
        (Some(Op::FieldAt { field: x, .. }), Some(Op::FieldAt { field: y, .. })) => x == y,
        (Some(Op::ArrayAt { array: x, .. }), Some(Op::ArrayAt { array: y, .. })) => x == y,
        _ => false,
    }
}
