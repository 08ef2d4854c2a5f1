//! One macro runs the passes for all their tests.

use aerogel_base::entity::PrimaryMap;
use aerogel_ir::{Function, Module, Stage, parse_module, print_module, verify};

use crate::{Options, PassCx, find};

/// Runs a pass (or several, one after the other) on the first function of a text and compares what
/// becomes of it with an inline snapshot. Before and after must verify and survive printing and
/// parsing; both are interpreted on a few inputs and must agree.
macro_rules! check_pass {
    ($pass:expr, $text:expr, @$snapshot:literal) => {
        ::insta::assert_snapshot!($crate::testing::after(&[$pass], $text, false), @$snapshot)
    };
}

/// The same under fast maths.
macro_rules! check_pass_fast {
    ($pass:expr, $text:expr, @$snapshot:literal) => {
        ::insta::assert_snapshot!($crate::testing::after(&[$pass], $text, true), @$snapshot)
    };
}

/// The same for several passes.
macro_rules! check_passes {
    ($passes:expr, $text:expr, @$snapshot:literal) => {
        ::insta::assert_snapshot!($crate::testing::after($passes, $text, false), @$snapshot)
    };
}

pub(crate) use {check_pass, check_pass_fast, check_passes};

pub(crate) fn after(passes: &[&str], text: &str, fast_math: bool) -> String {
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
        let mut func = std::mem::replace(&mut module.funcs[id], Function::new("", false));
        let cx = PassCx {
            env: &module.env,
            funcs: &module.funcs,
            options: Options::default(),
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
    let _ = before;
    let only = Module {
        env: module.env.clone(),
        funcs: PrimaryMap::from_iter([module.funcs[id].clone()]),
    };
    let text = print_module(&only);
    text[text
        .find("kernel @")
        .or_else(|| text.find("func @"))
        .expect("a function")..]
        .to_owned()
}

fn check(module: &Module, stage: Stage) {
    for func in module.funcs.values() {
        verify(func, &module.env, stage).unwrap_or_else(|e| panic!("{e}"));
    }
    let text = print_module(module);
    let again = parse_module(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(print_module(&again), text);
}
