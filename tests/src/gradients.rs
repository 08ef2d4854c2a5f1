//! Gradients against finite differences: a kernel whose fields lie in the first tree, their adjoints in the second, which
//! has the same shape.

use aerogel_base::{Scalar, ScalarType};
use aerogel_compiler::{Arch, Compiler, Config, Differentiated, Moment};
use aerogel_ir::analysis::access::{Class, classes};
use aerogel_ir::{Derivative, Module};
use aerogel_snode::NodeId;

use crate::run::{Inputs, Outcome};

/// How two gradients differ.
pub struct Difference {
    /// The number of the element.
    pub element: usize,
    /// What the backward pass says.
    pub reverse: f64,
    /// What differences say.
    pub difference: f64,
}

/// Compares the gradients of a module's kernel with differences and with forward mode, interpreted and compiled.
///
/// # Panics
/// If they are not equal.
pub fn check(text: &str) {
    let module = aerogel_ir::parse_module(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    for (arch, threads) in [(Arch::Interp, 1), (Arch::Cpu, 1), (Arch::Cpu, 4)] {
        let config = Config {
            arch,
            max_threads: Some(threads),
            ..Config::default()
        };
        let pair = Pair::new(&module, &config, true).unwrap_or_else(|e| panic!("{e}"));
        for seed in 0..3 {
            let differences = pair.compare(seed, 1e-7);
            let modes = pair.compare_modes(seed, 1e-11);
            for outcome in [differences, modes] {
                let Err(d) = outcome else { continue };
                panic!(
                    "{arch:?}, element {}: {} is not {}\n{}",
                    d.element,
                    d.reverse,
                    d.difference,
                    pair.text()
                );
            }
        }
    }
}

/// The weights of a loss that is a sum of what the kernel leaves in memory.
fn weight(k: usize) -> f64 {
    // Any numbers that do not cancel.
    ((k * 37 + 11) % 17) as f64 / 8.0 - 0.9
}

fn fill(inputs: &Inputs, tree: usize, values: &[f64]) {
    fill_places(inputs, tree, values, &|_| true);
}

/// Fills some places of a tree, with those of the values that are theirs.
fn fill_places(inputs: &Inputs, tree: usize, values: &[f64], wanted: &dyn Fn(NodeId) -> bool) {
    let mut at = 0;
    let mut next = |place, ty: ScalarType| {
        at += 1;
        wanted(place).then(|| match ty.is_float() {
            true => Scalar::float(ty, values[at - 1]),
            false => Scalar::int(ty, values[at - 1] as i128),
        })
    };
    inputs.trees[tree]
        .write_elements(&mut next)
        .expect("memory");
}

/// The places of the first tree that a gradient must find as they were when the kernel began.
fn early_places(done: &Differentiated) -> Vec<NodeId> {
    let early = done.needed.iter().filter(|n| n.at == Moment::Start);
    let classes = early.flat_map(|n| classes(&done.primal, &done.module.env, n.place));
    let places = classes.map(|class| match class {
        Class::Place(place) => place.node,
        class => panic!("{class:?} is no place of a tree"),
    });
    places.collect()
}

fn contents(inputs: &Inputs, tree: usize) -> Vec<(f64, bool)> {
    let all = inputs.trees[tree].snapshot().expect("inside");
    all.into_iter()
        .map(|v| match v {
            Some(v) if v.ty().is_float() => (v.as_f64(), true),
            Some(v) => (v.as_i128() as f64, false),
            None => (0.0, false),
        })
        .collect()
}

/// What the first tree is filled with, and which of it are floats.
fn numbers(inputs: &Inputs) -> (Vec<f64>, Vec<bool>) {
    let start = contents(inputs, 0);
    // Numbers of a size at which differences are exact enough.
    let number = |(k, &(v, is_float)): (usize, &(f64, bool))| match is_float {
        true => 0.3137 + 0.1 * v + 0.0873 * (k as f64 * 0.618_034).fract(),
        false => v,
    };
    let values = start.iter().enumerate().map(number).collect();
    (
        values,
        start.iter().map(|(_, is_float)| *is_float).collect(),
    )
}

/// A kernel with its gradient, compiled by one target.
pub struct Pair {
    module: Module,
    gradient: Module,
    /// The places that the gradient must find as they were when the kernel began.
    early: Vec<NodeId>,
    tangents: Module,
    primal: aerogel_compiler::CompiledKernel,
    reverse: aerogel_compiler::CompiledKernel,
    forward: aerogel_compiler::CompiledKernel,
}

impl Pair {
    /// Differentiates and compiles a module, for forward mode too if that is asked for.
    ///
    /// # Errors
    /// What the user would be told if it has no gradient.
    ///
    /// # Panics
    /// On a bug of the compiler.
    pub fn new(module: &Module, config: &Config, forward: bool) -> Result<Self, String> {
        let compiler = Compiler::new(config.clone());
        let derivative = |kind| {
            let done = compiler.differentiate(module.clone(), kind);
            done.unwrap_or_else(|e| panic!("{e}"))
                .map_err(|mistake| mistake.message)
        };
        let differentiated = derivative(Derivative::Grad)?;
        let early = early_places(&differentiated);
        let gradient = differentiated.module;
        let tangents = match forward {
            true => derivative(Derivative::Dual)?.module,
            false => module.clone(),
        };
        let compile = |module: &Module| {
            compiler.compile(module.clone()).unwrap_or_else(|e| {
                panic!("{e}\n{}", aerogel_ir::print_module(module));
            })
        };
        Ok(Self {
            primal: compile(module),
            reverse: compile(&gradient),
            forward: compile(&tangents),
            module: module.clone(),
            gradient,
            early,
            tangents,
        })
    }

    /// The IR of the backward pass.
    pub fn text(&self) -> String {
        aerogel_ir::print_module(&self.gradient)
    }

    /// What a tape does before the backward pass.
    fn put_back(&self, inputs: &Inputs, values: &[f64]) {
        fill_places(inputs, 0, values, &|place| self.early.contains(&place));
    }

    /// The loss of what the kernel makes of these numbers, and the memory afterwards.
    fn loss(&self, inputs: &Inputs, values: &[f64]) -> f64 {
        fill(inputs, 0, values);
        let outcome: Outcome =
            inputs.launch_by(&self.module, 1, |launch| self.primal.launch(launch));
        assert!(outcome.results.is_some(), "the kernel fails");
        let after = contents(inputs, 0);
        after
            .iter()
            .enumerate()
            .filter(|(_, (_, is_float))| *is_float)
            .map(|(k, (v, _))| weight(k) * v)
            .sum()
    }

    /// Compares the gradient at numbers made from `seed` with central differences.
    ///
    /// # Panics
    /// If the backward pass fails, or changes the kernel's own fields.
    pub fn compare(&self, seed: u64, tolerance: f64) -> Result<(), Difference> {
        let inputs = Inputs::filled(&self.module, seed);
        let (values, floats) = numbers(&inputs);
        self.loss(&inputs, &values);
        self.put_back(&inputs, &values);
        let before = contents(&inputs, 0);
        let weights: Vec<f64> = (0..values.len()).map(weight).collect();
        fill(&inputs, 1, &weights);
        let outcome = inputs.launch_by(&self.gradient, 1, |launch| self.reverse.launch(launch));
        assert!(
            outcome.results.is_some(),
            "the backward pass fails:\n{}",
            self.text()
        );
        assert_eq!(
            before,
            contents(&inputs, 0),
            "the fields changed:\n{}",
            self.text()
        );
        let gradient = contents(&inputs, 1);
        for element in 0..values.len() {
            if !floats[element] {
                continue;
            }
            let reverse = gradient[element].0;
            let mut difference = 0.0;
            // Closer, should there be a kink between.
            let agrees = [1e-5, 2e-7].into_iter().any(|step| {
                difference = self.difference(&inputs, &values, element, step);
                let scale = 1.0 + reverse.abs().max(difference.abs());
                (reverse - difference).abs() <= tolerance * scale
            });
            if !agrees {
                return Err(Difference {
                    element,
                    reverse,
                    difference,
                });
            }
        }
        Ok(())
    }

    /// Compares reverse with forward mode: the loss changes along a direction as both say.
    ///
    /// # Panics
    /// If a pass fails.
    pub fn compare_modes(&self, seed: u64, tolerance: f64) -> Result<(), Difference> {
        let inputs = Inputs::filled(&self.module, seed);
        let (values, floats) = numbers(&inputs);
        let weights: Vec<f64> = (0..values.len()).map(weight).collect();
        let direction: Vec<f64> = (0..values.len()).map(|k| weight(k + 5)).collect();
        fill(&inputs, 0, &values);
        fill(&inputs, 1, &direction);
        let outcome = inputs.launch_by(&self.tangents, 1, |launch| self.forward.launch(launch));
        assert!(outcome.results.is_some(), "the kernel fails");
        let tangents = contents(&inputs, 1);
        self.put_back(&inputs, &values);
        fill(&inputs, 1, &weights);
        let outcome = inputs.launch_by(&self.gradient, 1, |launch| self.reverse.launch(launch));
        assert!(outcome.results.is_some(), "the backward pass fails");
        let gradient = contents(&inputs, 1);
        let product = |x: &dyn Fn(usize) -> f64, y: &[f64]| -> f64 {
            let all = (0..values.len()).filter(|&k| floats[k]);
            all.map(|k| x(k) * y[k]).sum()
        };
        let difference = product(&|k| tangents[k].0, &weights);
        let reverse = product(&|k| gradient[k].0, &direction);
        let scale = 1.0 + reverse.abs().max(difference.abs());
        match (reverse - difference).abs() <= tolerance * scale {
            true => Ok(()),
            false => Err(Difference {
                element: usize::MAX,
                reverse,
                difference,
            }),
        }
    }

    fn difference(&self, inputs: &Inputs, values: &[f64], element: usize, step: f64) -> f64 {
        let at = |by: f64| {
            let mut values = values.to_vec();
            values[element] += by;
            self.loss(inputs, &values)
        };
        // The error of this form is of the fourth order.
        (8.0 * (at(step) - at(-step)) - (at(2.0 * step) - at(-2.0 * step))) / (12.0 * step)
    }
}
