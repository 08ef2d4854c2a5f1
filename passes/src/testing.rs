//! One macro runs the passes for all their tests.

use std::sync::Mutex;

use aerogel_base::{Scalar, ScalarType};
use aerogel_interp::{InterpKernel, Val};
use aerogel_ir::{
    FastMath, Function, Module, ParamType, Stage, eval, parse_module, print_module, verify,
};
use aerogel_runtime::buffer::Buffer;
use aerogel_runtime::device::LoadedKernel;
use aerogel_runtime::launch::{Args, Launch};
use aerogel_runtime::tree::TreeMemory;
use aerogel_snode::Tree;

use crate::lengths::Lengths;
use crate::{Options, PassCx, Thresholds, find};

/// Runs a pass (or several, one after the other) on the first function of a text and compares what
/// becomes of it with an inline snapshot. Before and after must verify and survive printing and
/// parsing; both are interpreted on a few inputs and must agree.
macro_rules! check_pass {
    ($pass:expr, $text:expr, @$snapshot:literal) => {
        ::insta::assert_snapshot!($crate::testing::after(&[$pass], $text, ::aerogel_ir::FastMath::Off), @$snapshot)
    };
}

/// The same under full fast maths.
macro_rules! check_pass_fast {
    ($pass:expr, $text:expr, @$snapshot:literal) => {
        ::insta::assert_snapshot!($crate::testing::after(&[$pass], $text, ::aerogel_ir::FastMath::Full), @$snapshot)
    };
}

/// The same in debug mode, in which the text has its checks already.
macro_rules! check_pass_in_debug {
    ($pass:expr, $text:expr, @$snapshot:literal) => {
        ::insta::assert_snapshot!($crate::testing::after_in_debug(&[$pass], $text), @$snapshot)
    };
}

/// The same for several passes.
macro_rules! check_passes {
    ($passes:expr, $text:expr, @$snapshot:literal) => {
        ::insta::assert_snapshot!($crate::testing::after($passes, $text, ::aerogel_ir::FastMath::Off), @$snapshot)
    };
}

/// The same, leaving out of the snapshot what makes the lists of active cells: what is swept over
/// them is to be seen.
macro_rules! check_sweep {
    ($passes:expr, $text:expr, @$snapshot:literal) => {
        ::insta::assert_snapshot!(
            $crate::testing::without_lists(&$crate::testing::after($passes, $text, ::aerogel_ir::FastMath::Off)),
            @$snapshot
        )
    };
}

pub(crate) use {check_pass, check_pass_fast, check_pass_in_debug, check_passes, check_sweep};

/// The text of a kernel without the loops and branches of its body that make lists.
pub(crate) fn without_lists(text: &str) -> String {
    let makes_lists = |statement: &str| {
        let ops = ["list_count", "list_scan", "list_put"];
        ops.iter().any(|op| statement.contains(op))
    };
    let mut kept = String::new();
    let mut statement = String::new();
    for line in text.split_inclusive('\n') {
        statement.push_str(line);
        // A statement of the body begins with four spaces, and ends where its last region does.
        let inside = line.starts_with("     ");
        let opens = line.starts_with("    ") && line.ends_with("{\n");
        if !inside && !opens {
            if !makes_lists(&statement) {
                kept.push_str(&statement);
            }
            statement.clear();
        }
    }
    kept
}

pub(crate) fn after(passes: &[&str], text: &str, fast_math: FastMath) -> String {
    after_with(passes, text, fast_math, Options::default())
}

pub(crate) fn after_in_debug(passes: &[&str], text: &str) -> String {
    let options = Options {
        debug: true,
        ..Options::default()
    };
    after_with(passes, text, FastMath::Off, options)
}

fn after_with(passes: &[&str], text: &str, fast_math: FastMath, options: Options) -> String {
    let (before, module) = transformed(passes, text, fast_math, options);
    for seed in 0..8 {
        let (before, after) = (behaviour(&before, seed), behaviour(&module, seed));
        // Who inserts checks may refuse what went unnoticed.
        let checks = passes
            .iter()
            .any(|p| ["bounds_check", "lower_access", "note_accesses"].contains(p));
        if let (Some(before), Some(after)) = (&before, &after)
            && !(checks && after.failed)
            && let Some(difference) = before.difference(after, fast_math)
        {
            panic!("seed {seed}: {difference}");
        }
    }
    text_of(&module)
}

/// The same for a GPU, whose threads share what the interpreter has not: what comes of it is not run here.
pub(crate) fn after_on_gpu(passes: &[&str], text: &str) -> String {
    let options = Options {
        private_cells: false,
        shared_memory: true,
        thresholds: Thresholds::of_threads(),
        ..Options::default()
    };
    text_of(&transformed(passes, text, FastMath::Off, options).1)
}

/// A module, and what passes make of it.
fn transformed(
    passes: &[&str],
    text: &str,
    fast_math: FastMath,
    options: Options,
) -> (Module, Module) {
    let mut module = parse_module(text).unwrap_or_else(|e| panic!("{e}"));
    module.env.fast_math = fast_math;
    let id = module.funcs.keys().next().expect("a function");
    let mut stage = find(passes[0]).expect("a pass of the pipeline").from;
    if stage == Stage::Lowered || text.contains("task ") {
        stage = if text.contains("root tree") {
            Stage::Lowered
        } else if text.contains("task ") {
            Stage::Offloaded
        } else {
            Stage::Structured
        };
    }
    check(&module, stage);
    let before = module.clone();
    for name in passes {
        let pass = find(name).expect("a pass of the pipeline");
        let lengths = Lengths::new(&module.funcs);
        let mut func = std::mem::replace(&mut module.funcs[id], Function::new("", false));
        let cx = PassCx {
            env: &module.env,
            funcs: &module.funcs,
            lengths: &lengths,
            exchanged: &Default::default(),
            options,
        };
        (pass.run)(&mut func, &cx);
        module.funcs[id] = func;
        stage = stage.max(if module.funcs[id].is_kernel || pass.to == Stage::Lowered {
            pass.to
        } else {
            Stage::Structured
        });
    }
    check(&module, stage);
    (before, module)
}

/// The text of the first function.
fn text_of(module: &Module) -> String {
    let text = print_module(module);
    let start = text
        .find("kernel @")
        .or_else(|| text.find("func @"))
        .expect("a function");
    // Functions are set apart by empty lines.
    let first = text[start..].split("\n\n").next();
    format!("{}\n", first.expect("a function").trim_end())
}

fn check(module: &Module, stage: Stage) {
    for func in module.funcs.values() {
        verify(func, &module.env, stage).unwrap_or_else(|e| panic!("{e}"));
    }
    let text = print_module(module);
    let again = parse_module(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(print_module(&again), text);
}

/// Numbers that come and go with `state`: small ones mostly, so that indices hit.
fn number(ty: ScalarType, state: &mut u64) -> Scalar {
    let (next, bits) = eval::random_step(*state);
    *state = next;
    match ty {
        ScalarType::U1 => Scalar::bool(bits & 1 == 1),
        _ if ty.is_float() => Scalar::float(ty, (bits % 64) as f64 / 4.0 - 6.0),
        _ => Scalar::int(ty, i128::from(bits % 9) - 2 * i128::from(ty.is_signed())),
    }
}

/// All that can be seen of running a function.
struct Behaviour {
    /// Whether a check failed.
    failed: bool,
    /// What it returned, and what is in memory afterwards; nothing for an inactive element.
    values: Vec<Option<Scalar>>,
    printed: String,
}

impl Behaviour {
    /// How another one differs from it; under fast maths floats may be rounded otherwise.
    fn difference(&self, other: &Self, fast_math: FastMath) -> Option<String> {
        let close = |a: Scalar, b: Scalar| {
            let (a, b) = (a.as_f64(), b.as_f64());
            a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-5 * a.abs().max(b.abs())
        };
        let same = |a: Option<Scalar>, b: Option<Scalar>| match (a, b) {
            (Some(a), Some(b))
                if fast_math != FastMath::Off && a.ty().is_float() && a.ty() == b.ty() =>
            {
                close(a, b)
            }
            _ => a.map(|a| (a.ty(), a.slot())) == b.map(|b| (b.ty(), b.slot())),
        };
        if (self.failed, &self.printed) != (other.failed, &other.printed) {
            return Some(format!(
                "failed: {}, printed {:?} became failed: {}, printed {:?}",
                self.failed, self.printed, other.failed, other.printed
            ));
        }
        if self.values.len() != other.values.len() {
            return Some("other values are returned".to_owned());
        }
        let mut pairs = self.values.iter().zip(&other.values).enumerate();
        pairs
            .find(|&(_, (&a, &b))| !same(a, b))
            .map(|(at, (a, b))| format!("value {at}: {a:?} became {b:?}"))
    }
}

/// What the first function does on inputs made from `seed`; nothing if that cannot be seen.
fn behaviour(module: &Module, seed: u64) -> Option<Behaviour> {
    let mut trees = module.env.trees.values();
    let elements = |tree: &Tree| {
        tree.places()
            .map(|p| tree.shape(p.0).iter().product::<u64>())
            .max()
    };
    if trees.any(|tree| elements(tree) > Some(1 << 20)) {
        // There are too many to look at all of them.
        return None;
    }
    let id = module.funcs.keys().next().expect("a function");
    let func = &module.funcs[id];
    let mut state = seed;
    if !func.is_kernel {
        if !module.env.trees.is_empty() {
            return None;
        }
        let params = &func.regions[func.body].params;
        let args = params
            .iter()
            .flat_map(|&p| module.env.scalars(func.ty(p)))
            .map(|t| number(t, &mut state));
        let scalars: Vec<Scalar> = args.collect();
        // A tensor parameter that fell apart takes its scalars one by one.
        let mut rest = scalars.into_iter();
        let args = params
            .iter()
            .map(|&p| {
                Val::Scalars(
                    rest.by_ref()
                        .take(module.env.scalars(func.ty(p)).len())
                        .collect(),
                )
            })
            .collect();
        let results = aerogel_interp::call(module, id, args);
        return Some(Behaviour {
            failed: results.is_err(),
            values: results
                .iter()
                .flatten()
                .flat_map(Val::scalars)
                .map(Some)
                .collect(),
            printed: String::new(),
        });
    }
    let trees: Vec<TreeMemory> = module
        .env
        .trees
        .values()
        .map(|tree| {
            let memory = TreeMemory::new(tree.clone(), 0).expect("memory");
            // Some cells of sparse nodes stay inactive.
            let mut n = 0;
            let mut value = |place, ty| {
                n += 1;
                let value = number(ty, &mut state);
                (!tree.is_below_sparse(place) || n % 3 > 0).then_some(value)
            };
            memory.write_elements(&mut value).expect("memory");
            memory
        })
        .collect();
    let array = Buffer::zeroed(512).expect("memory");
    let mut args = Args::new();
    for param in &func.params {
        match param.ty {
            ParamType::Value(ty) => module
                .env
                .scalars(ty)
                .into_iter()
                .for_each(|t| args.scalar(number(t, &mut state).slot())),
            ParamType::Array { elem, ndim, .. } => {
                let cell = module
                    .env
                    .scalars(elem)
                    .iter()
                    .map(|t| t.bytes() as usize)
                    .sum();
                args.array(&array, &vec![5; ndim as usize], cell)
                    .expect("it fits");
            }
        }
    }
    let mut results = [0; 32];
    let printed = Mutex::new(String::new());
    let roots: Vec<&TreeMemory> = trees.iter().collect();
    let kernel = InterpKernel::new(module.clone()).expect("a kernel");
    let outcome = kernel.launch(Launch {
        args: &args,
        roots: &roots,
        results: &mut results,
        sink: &printed,
        seed,
        most_reserved: u64::MAX,
        trace: None,
        later: None,
    });
    let types = func.results.iter().flat_map(|&ty| module.env.scalars(ty));
    let returned = types
        .zip(results)
        .map(|(ty, slot)| Scalar::from_slot(ty, slot));
    let mut values: Vec<Option<Scalar>> = returned.map(Some).collect();
    for tree in &trees {
        values.extend(tree.snapshot().expect("inside"));
    }
    // All arrays are one, of elements of the first one's type.
    let elems = func.params.iter().filter_map(|param| match param.ty {
        ParamType::Array { elem, .. } => elem.elem(),
        ParamType::Value(_) => None,
    });
    if let Some(elem) = elems.into_iter().next() {
        let starts = (0..array.len()).step_by(elem.bytes() as usize);
        values.extend(starts.map(|at| array.read_scalar(elem, at).ok()));
    }
    Some(Behaviour {
        failed: outcome.is_err(),
        values,
        printed: printed.into_inner().expect("no thread panicked"),
    })
}
