//! Reverse mode through loops: from the last iteration to the first.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{BinaryOp, CompareOp, Inst, Op, Region, Type, UnaryOp, Value};

use super::reverse::Reverse;

impl Reverse<'_, '_> {
    /// The locals in which the adjoints of carried values go round, and the adjoints of what a turn yields.
    fn carried(&mut self, results: &[Value], params: &[Value]) -> Vec<Option<Value>> {
        let mut carried = Vec::new();
        for (&result, &param) in results.iter().zip(params) {
            let active = self.cx.activity.is_active(param) || self.cx.activity.is_active(result);
            carried.push(active.then(|| {
                let ty = self.cx.func.ty(param);
                let place = self.b.local(ty);
                if let Some(d) = self.adjoint(result) {
                    self.b.store(place, d);
                }
                place
            }));
        }
        carried
    }

    /// One turn backwards; the values that it starts with are at hand.
    fn turn(&mut self, body: Region, params: &[Value], carried: &[Option<Value>]) {
        let yielded = self.cx.func.yielded(body).unwrap_or_default().to_vec();
        let mut given = Vec::new();
        for (&value, place) in yielded.iter().zip(carried) {
            if let Some(place) = place {
                given.push((value, self.b.load(*place)));
            }
        }
        self.reversed(body, &given);
        for (&param, place) in params.iter().zip(carried) {
            if let Some(place) = *place {
                let d = self.adjoint(param);
                let ty = self.cx.func.ty(param);
                let d = d.unwrap_or_else(|| self.zero(ty));
                self.b.store(place, d);
            }
        }
    }

    pub(super) fn counted(&mut self, inst: Inst) {
        let Op::For {
            lo,
            hi,
            step,
            init,
            body,
        } = self.cx.func[inst].clone()
        else {
            unreachable!("the caller looked")
        };
        let params = self.cx.func.regions[body].params.clone();
        let results = self.cx.func.insts[inst].results.clone();
        let carried = self.carried(&results, &params[1..]);
        self.restore(inst);
        let saved = self.saved.remove(&inst).unwrap_or_default();
        let turns = match saved.turns {
            Some(turns) => turns,
            None => self.turns(lo, hi, step),
        };
        let [first, by] = [lo, step].map(|v| {
            let v = self.now(v);
            self.b.cast(v, Type::I64)
        });
        let counter_ty = self.cx.func.ty(params[0]);
        self.backwards_through(turns, |pass, k| {
            let distance = pass.b.binary(BinaryOp::Mul, k, by);
            let at = pass.b.binary(BinaryOp::Add, first, distance);
            pass.now[params[0]] = Some(pass.b.cast(at, counter_ty));
            pass.undo_turn(inst, &saved, k);
            pass.take_saved(&saved, k);
            pass.turn(body, &params[1..], &carried);
        });
        self.finish(&init, &carried);
    }

    pub(super) fn repeated(&mut self, inst: Inst) {
        let Op::While { init, body, .. } = self.cx.func[inst].clone() else {
            unreachable!("the caller looked")
        };
        let params = self.cx.func.regions[body].params.clone();
        let results = self.cx.func.insts[inst].results.clone();
        let carried = self.carried(&results, &params);
        self.restore(inst);
        let saved = self
            .saved
            .remove(&inst)
            .expect("the rerun counted the turns");
        let turns = saved.turns.expect("the rerun counted the turns");
        self.backwards_through(turns, |pass, k| {
            pass.undo_turn(inst, &saved, k);
            pass.take_saved(&saved, k);
            pass.turn(body, &params, &carried);
        });
        self.finish(&init, &carried);
    }

    /// What was carried into the first turn has what the last one backwards left.
    fn finish(&mut self, init: &[Value], carried: &[Option<Value>]) {
        for (&value, place) in init.iter().zip(carried) {
            if let Some(place) = *place {
                let d = self.b.load(place);
                self.contribute(value, d);
            }
        }
    }

    /// A loop from the last turn to the first.
    fn backwards_through(&mut self, turns: Value, write: impl FnOnce(&mut Self, Value)) {
        let minus_one = self.b.constant(Scalar::int(ScalarType::I64, -1));
        let last = self.b.binary(BinaryOp::Add, turns, minus_one);
        let body = self.inside(&[Type::I64], |pass, params| write(pass, params[0]));
        self.b.effect(Op::For {
            lo: last,
            hi: minus_one,
            step: minus_one,
            init: Vec::new(),
            body,
        });
    }

    /// How many turns a counted loop has.
    pub(super) fn turns(&mut self, lo: Value, hi: Value, step: Value) -> Value {
        let constant = self.cx.func.as_const(step).map(|c| c.as_i128());
        let [lo, hi, step] = [lo, hi, step].map(|v| {
            let v = self.now(v);
            self.b.cast(v, Type::I64)
        });
        let b = &mut self.b;
        let zero = b.constant(Scalar::zero(ScalarType::I64));
        let one = b.constant(Scalar::int(ScalarType::I64, 1));
        if constant == Some(1) {
            let distance = b.binary(BinaryOp::Sub, hi, lo);
            return b.binary(BinaryOp::Max, distance, zero);
        }
        let upwards = b.compare(CompareOp::Gt, step, zero);
        let (up, down) = (
            b.binary(BinaryOp::Sub, hi, lo),
            b.binary(BinaryOp::Sub, lo, hi),
        );
        let distance = b.select(upwards, up, down);
        let distance = b.binary(BinaryOp::Max, distance, zero);
        let size = b.unary(UnaryOp::Abs, step);
        let less = b.binary(BinaryOp::Sub, size, one);
        let sum = b.binary(BinaryOp::Add, distance, less);
        b.binary(BinaryOp::Div, sum, size)
    }
}
