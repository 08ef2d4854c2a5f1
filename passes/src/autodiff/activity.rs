//! Which values have derivatives that are needed: those that depend on something differentiable and that something
//! differentiable depends on.

use aerogel_base::entity::SecondaryMap;
use aerogel_ir::analysis::boxes::Storage;
use aerogel_ir::{Derivative, Env, Function, Inst, Op, Region, Value, walk};

use super::calls::Calls;
use super::rules::{Partial, is_float, is_scalar_op, partial};
use super::storage::{Memory, memory_of};

/// What is known of each value and local.
pub(crate) struct Activity<'a> {
    kind: Derivative,
    source: Source,
    ends: bool,
    calls: &'a Calls,
    varied: SecondaryMap<Value, bool>,
    useful: SecondaryMap<Value, bool>,
    changed: bool,
}

/// The values whose dependence is queried.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// All that has derivatives.
    Derivatives,
    /// What a field or an array holds.
    Storage(Storage),
}

/// The values that depend on what a field or an array holds, whether or not it has derivatives.
pub(super) fn behind(
    func: &Function,
    env: &Env,
    kind: Derivative,
    calls: &Calls,
    storage: Storage,
) -> SecondaryMap<Value, bool> {
    let mut all = Activity {
        kind,
        source: Source::Storage(storage),
        ends: false,
        calls,
        varied: SecondaryMap::new(),
        useful: SecondaryMap::new(),
        changed: true,
    };
    while std::mem::take(&mut all.changed) {
        all.forwards(func, env, func.body);
    }
    all.varied
}

impl<'a> Activity<'a> {
    /// Arguments and results of a kernel count if `ends` says so, those of a function that is called and memory always.
    pub(crate) fn new(
        func: &Function,
        env: &Env,
        kind: Derivative,
        ends: bool,
        calls: &'a Calls,
    ) -> Self {
        let mut all = Self {
            kind,
            source: Source::Derivatives,
            ends,
            calls,
            varied: SecondaryMap::new(),
            useful: SecondaryMap::new(),
            changed: true,
        };
        if !func.is_kernel {
            for &param in &func.regions[func.body].params {
                all.vary(func, param, true);
            }
            for &value in func.yielded(func.body).unwrap_or_default() {
                all.use_(value, true);
            }
        }
        while std::mem::take(&mut all.changed) {
            all.forwards(func, env, func.body);
        }
        all.changed = true;
        while std::mem::take(&mut all.changed) {
            walk(func, func.body, &mut |func, inst| {
                all.backwards(func, env, inst);
            });
        }
        all
    }

    /// Whether the value, or what the local holds, has a derivative that matters.
    pub(crate) fn is_active(&self, value: Value) -> bool {
        self.varied[value] && self.useful[value]
    }

    /// Whether the value depends on something that has a derivative.
    pub(crate) fn is_varied(&self, value: Value) -> bool {
        self.varied[value]
    }

    /// Whether something that has a derivative depends on the value.
    pub(crate) fn is_useful(&self, value: Value) -> bool {
        self.useful[value]
    }

    fn vary(&mut self, func: &Function, value: Value, varied: bool) {
        if varied && is_float(func, value) && !self.varied[value] {
            self.varied[value] = true;
            self.changed = true;
        }
    }

    fn vary_local(&mut self, local: Value) {
        if !self.varied[local] {
            self.varied[local] = true;
            self.changed = true;
        }
    }

    fn forwards(&mut self, func: &Function, env: &Env, region: Region) {
        for &inst in &func.regions[region].insts {
            let results = &func.insts[inst].results;
            match &func[inst] {
                Op::Arg { .. } => {
                    for &result in results {
                        self.vary(func, result, self.ends);
                    }
                }
                Op::Load { place } => {
                    let varied = match memory_of(func, env, self.kind, *place) {
                        Memory::Local(local) | Memory::Buffer(local) => self.varied[local],
                        memory => match self.source {
                            Source::Derivatives => memory.has_derivatives(),
                            Source::Storage(storage) => memory.storage() == Some(storage),
                        },
                    };
                    self.vary(func, results[0], varied);
                }
                Op::Store { place, value } | Op::Atomic { place, value, .. } => {
                    if let Memory::Local(local) | Memory::Buffer(local) =
                        memory_of(func, env, self.kind, *place)
                        && self.varied[*value]
                    {
                        self.vary_local(local);
                    }
                }
                Op::If {
                    then, otherwise, ..
                } => {
                    for branch in [*then, *otherwise] {
                        self.forwards(func, env, branch);
                        self.pass(func, func.yielded(branch).unwrap_or_default(), results);
                    }
                }
                Op::For { init, body, .. } => {
                    let params = &func.regions[*body].params[1..];
                    self.pass(func, init, params);
                    self.forwards(func, env, *body);
                    self.pass(func, func.yielded(*body).unwrap_or_default(), params);
                    self.pass(func, params, results);
                }
                Op::While { init, cond, body } => {
                    let params = &func.regions[*body].params;
                    self.pass(func, init, params);
                    self.pass(func, init, &func.regions[*cond].params);
                    self.forwards(func, env, *cond);
                    self.forwards(func, env, *body);
                    self.pass(func, func.yielded(*body).unwrap_or_default(), params);
                    self.pass(func, params, &func.regions[*cond].params);
                    self.pass(func, params, results);
                }
                Op::Parallel { body, .. } | Op::ParallelCells { body, .. } => {
                    self.forwards(func, env, *body);
                }
                Op::Call { args, .. } => {
                    let reads = self.source == Source::Derivatives && self.calls.reads_active;
                    let varied = reads || args.iter().any(|&v| self.varied[v]);
                    for &result in results {
                        self.vary(func, result, varied);
                    }
                }
                op if is_scalar_op(func, op, results) => {
                    let mut operands = Vec::new();
                    op.operands(|v| operands.push(v));
                    let varied = operands
                        .iter()
                        .enumerate()
                        .any(|(k, &v)| self.varied[v] && partial(func, op, k) != Partial::Zero);
                    self.vary(func, results[0], varied);
                }
                _ => {}
            }
        }
    }

    fn pass(&mut self, func: &Function, from: &[Value], to: &[Value]) {
        for (&from, &to) in from.iter().zip(to) {
            self.vary(func, to, self.varied[from]);
        }
    }

    fn use_(&mut self, value: Value, useful: bool) {
        if useful && !self.useful[value] {
            self.useful[value] = true;
            self.changed = true;
        }
    }

    fn backwards(&mut self, func: &Function, env: &Env, inst: Inst) {
        let results = &func.insts[inst].results;
        match &func[inst] {
            Op::Return { values } => {
                for &value in values {
                    self.use_(value, self.ends);
                }
            }
            Op::Load { place } => {
                if let Memory::Local(local) | Memory::Buffer(local) =
                    memory_of(func, env, self.kind, *place)
                {
                    self.use_(local, self.useful[results[0]]);
                }
            }
            Op::Store { place, value } | Op::Atomic { place, value, .. } => {
                let useful = match memory_of(func, env, self.kind, *place) {
                    Memory::Local(local) | Memory::Buffer(local) => self.useful[local],
                    memory => memory.has_derivatives(),
                };
                self.use_(*value, useful);
            }
            Op::If {
                then, otherwise, ..
            } => {
                for branch in [*then, *otherwise] {
                    self.ask(results, func.yielded(branch).unwrap_or_default());
                }
            }
            Op::For { init, body, .. } => {
                let params = &func.regions[*body].params[1..];
                self.ask(results, params);
                let yielded = func.yielded(*body).unwrap_or_default();
                self.ask(params, yielded);
                self.ask(params, init);
            }
            Op::While { init, body, .. } => {
                let params = &func.regions[*body].params;
                self.ask(results, params);
                let yielded = func.yielded(*body).unwrap_or_default();
                self.ask(params, yielded);
                self.ask(params, init);
            }
            Op::Call { args, .. } => {
                let useful = self.calls.writes_active || results.iter().any(|&r| self.useful[r]);
                for &v in args {
                    self.use_(v, useful);
                }
            }
            op if is_scalar_op(func, op, results) && self.useful[results[0]] => {
                let mut operands = Vec::new();
                op.operands(|v| operands.push(v));
                for (k, &v) in operands.iter().enumerate() {
                    self.use_(v, partial(func, op, k) != Partial::Zero);
                }
            }
            _ => {}
        }
    }

    fn ask(&mut self, of: &[Value], from: &[Value]) {
        for (&of, &from) in of.iter().zip(from) {
            self.use_(from, self.useful[of]);
        }
    }
}
