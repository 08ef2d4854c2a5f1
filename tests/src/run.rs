//! Running a module on made-up inputs, by any target, and comparing all that can be seen.

use std::sync::Mutex;

use aerogel_base::{Scalar, ScalarType};
use aerogel_interp::InterpKernel;
use aerogel_ir::{Env, Function, Module, Op, ParamType, eval, print_function};
use aerogel_passes::{Observer, PassRecord};
use aerogel_runtime::TreeMemory;
use aerogel_runtime::buffer::Buffer;
use aerogel_runtime::device::LoadedKernel;
use aerogel_runtime::launch::{Args, KernelFailure, Launch};

/// The inputs of a kernel: filled trees, arrays and argument slots.
pub struct Inputs {
    /// The memory of each tree of the module.
    pub trees: Vec<TreeMemory>,
    /// One buffer for each array parameter.
    pub arrays: Vec<Buffer>,
    slots: Vec<u64>,
}

/// Extent of every axis of an array argument.
pub const ARRAY_EXTENT: usize = 7;

/// What a launch left behind.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// `None` if a check failed.
    pub results: Option<Vec<u64>>,
    /// What was printed.
    pub printed: String,
    /// The scalars of all trees and arrays; nothing where an element is inactive.
    pub memory: Vec<Option<Scalar>>,
}

impl Outcome {
    /// The same, with one NaN for all: a NaN has many bit patterns, and arithmetic may give any of them.
    #[must_use]
    pub fn canonical(mut self) -> Self {
        for s in self.memory.iter_mut().flatten() {
            if s.ty().is_float() && s.as_f64().is_nan() {
                *s = Scalar::float(s.ty(), f64::NAN);
            }
        }
        if let Some(results) = &mut self.results {
            let float = Scalar::from_slot(ScalarType::F32, results[1]);
            if float.as_f64().is_nan() {
                results[1] = 0x7fc0_0000;
            }
        }
        self
    }
}

/// Numbers that come and go with `state`: small ones mostly, so that indices hit.
pub fn number(ty: ScalarType, state: &mut u64) -> Scalar {
    let (next, bits) = eval::random_step(*state);
    *state = next;
    match ty {
        ScalarType::U1 => Scalar::bool(bits & 1 == 1),
        _ if ty.is_float() => Scalar::float(ty, (bits % 64) as f64 / 4.0 - 6.0),
        _ => Scalar::int(ty, i128::from(bits % 9) - 2 * i128::from(ty.is_signed())),
    }
}

fn array_scalars(env: &Env, ty: ParamType) -> Option<(Vec<ScalarType>, usize)> {
    let ParamType::Array { elem, ndim, .. } = ty else {
        return None;
    };
    let cell = env.scalars(elem);
    let n = ARRAY_EXTENT.pow(ndim);
    Some((
        cell.repeat(n),
        n * cell.iter().map(|t| t.bytes() as usize).sum::<usize>(),
    ))
}

impl Inputs {
    /// Inputs for the kernel of `module`, the same for the same seed.
    ///
    /// # Panics
    /// If there is no kernel, or no memory.
    pub fn new(module: &Module, seed: u64) -> Self {
        Self::with_gaps(module, seed, 3)
    }

    /// As `new`, but with all cells of sparse nodes active.
    ///
    /// # Panics
    /// As `new`.
    pub fn filled(module: &Module, seed: u64) -> Self {
        Self::with_gaps(module, seed, u64::MAX)
    }

    /// Inputs with every `gap`-th cell of sparse nodes inactive.
    fn with_gaps(module: &Module, seed: u64, gap: u64) -> Self {
        let mut state = seed;
        let mut trees = Vec::new();
        for tree in module.env.trees.values() {
            let memory = TreeMemory::new(tree.clone(), 0).expect("memory");
            let mut n = 0_u64;
            let mut value = |place, ty| {
                n += 1;
                let value = number(ty, &mut state);
                (!tree.is_below_sparse(place) || !n.is_multiple_of(gap)).then_some(value)
            };
            memory.write_elements(&mut value).expect("memory");
            trees.push(memory);
        }
        let (mut arrays, mut slots) = (Vec::new(), Vec::new());
        for param in &module.kernel().expect("a kernel").params {
            match param.ty {
                ParamType::Value(ty) => slots.extend(
                    module
                        .env
                        .scalars(ty)
                        .into_iter()
                        .map(|t| number(t, &mut state).slot()),
                ),
                ty @ ParamType::Array { .. } => {
                    let (scalars, bytes) = array_scalars(&module.env, ty).expect("an array");
                    let buffer = Buffer::zeroed(bytes).expect("memory");
                    let mut at = 0;
                    for ty in scalars {
                        buffer
                            .write_scalar(at, number(ty, &mut state))
                            .expect("inside");
                        at += ty.bytes() as usize;
                    }
                    arrays.push(buffer);
                }
            }
        }
        Self {
            trees,
            arrays,
            slots,
        }
    }

    /// Launches a kernel made from `module` on these inputs, which it changes.
    ///
    /// # Panics
    /// If the kernel does not take them.
    pub fn launch_by(
        &self,
        module: &Module,
        seed: u64,
        run: impl FnOnce(Launch<'_>) -> Result<(), KernelFailure>,
    ) -> Outcome {
        let func = module.kernel().expect("a kernel");
        let mut args = Args::new();
        let (mut slots, mut arrays) = (self.slots.iter(), self.arrays.iter());
        for param in &func.params {
            match param.ty {
                ParamType::Value(ty) => module
                    .env
                    .scalars(ty)
                    .iter()
                    .for_each(|_| args.scalar(*slots.next().expect("a slot"))),
                ParamType::Array { elem, ndim, .. } => {
                    let cell = module
                        .env
                        .scalars(elem)
                        .iter()
                        .map(|t| t.bytes() as usize)
                        .sum();
                    args.array(
                        arrays.next().expect("an array"),
                        &vec![ARRAY_EXTENT; ndim as usize],
                        cell,
                    )
                    .expect("it fits");
                }
            }
        }
        let n_results = func
            .results
            .iter()
            .map(|&t| module.env.scalars(t).len())
            .sum();
        let mut results = vec![0; n_results];
        let printed = Mutex::new(String::new());
        let roots: Vec<&TreeMemory> = self.trees.iter().collect();
        let done = run(Launch {
            args: &args,
            roots: &roots,
            results: &mut results,
            sink: &printed,
            seed,
            most_reserved: u64::MAX,
            trace: None,
            later: None,
        });
        let mut memory = Vec::new();
        for tree in &self.trees {
            memory.extend(tree.snapshot().expect("inside"));
        }
        let array_types = func
            .params
            .iter()
            .filter_map(|p| array_scalars(&module.env, p.ty));
        for ((scalars, _), buffer) in array_types.zip(&self.arrays) {
            let mut at = 0;
            for ty in scalars {
                memory.push(Some(buffer.read_scalar(ty, at).expect("inside")));
                at += ty.bytes() as usize;
            }
        }
        let printed = printed.into_inner().expect("no thread panicked");
        Outcome {
            results: done.is_ok().then_some(results),
            printed,
            memory,
        }
    }
}

/// Launches a loaded kernel, such as the interpreter's.
pub fn launch(inputs: &Inputs, module: &Module, kernel: &dyn LoadedKernel, seed: u64) -> Outcome {
    inputs.launch_by(module, seed, |launch| kernel.launch(launch))
}

/// Runs the interpreter after every pass: the first pass after which the kernel does something
/// else, with the IR before and after it. Nothing if it calls functions, which pass through the
/// pipeline at another time.
pub fn first_wrong_pass(
    module: &Module,
    seed: u64,
    options: aerogel_passes::Options,
    same: impl Fn(&Outcome, &Outcome) -> bool,
) -> Option<(&'static str, String, String)> {
    let calls = |func: &Function| {
        let ops = func.insts.values();
        ops.into_iter().any(|i| matches!(i.op, Op::Call { .. }))
    };
    if module.kernel().is_some_and(calls) {
        return None;
    }
    struct Oracle<'a, F> {
        module: &'a Module,
        seed: u64,
        same: F,
        expected: Outcome,
        before: String,
        found: Option<(&'static str, String, String)>,
    }
    impl<F: Fn(&Outcome, &Outcome) -> bool> Observer for Oracle<'_, F> {
        fn after(&mut self, record: PassRecord, func: &Function, env: &Env) -> bool {
            let text = print_function(func, env);
            if record.changed {
                let mut now = Module {
                    env: env.clone(),
                    ..Module::default()
                };
                now.funcs.push(func.clone());
                let kernel = InterpKernel::new(now).expect("a kernel");
                // Results of the kernel's own types, whatever became of them.
                let outcome = launch(
                    &Inputs::new(self.module, self.seed),
                    self.module,
                    &kernel,
                    self.seed,
                );
                if !(self.same)(&self.expected, &outcome) {
                    self.found = Some((record.name, std::mem::take(&mut self.before), text));
                    return false;
                }
            }
            self.before = text;
            true
        }
    }
    let kernel = InterpKernel::new(module.clone()).expect("a kernel");
    let expected = launch(&Inputs::new(module, seed), module, &kernel, seed);
    let mut oracle = Oracle {
        module,
        seed,
        same,
        expected,
        before: String::new(),
        found: None,
    };
    aerogel_passes::run(&mut module.clone(), options, &mut oracle)
        .unwrap_or_else(|e| panic!("{e}"));
    oracle.found
}
