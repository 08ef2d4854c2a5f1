//! Large tasks of a kernel are compiled apart, and are one kernel all the same.

use std::fmt::Write;
use std::sync::{Arc, Mutex};

use aerogel_ir::parse_module;
use aerogel_llvm::{Jit, OptLevel, Texts, compile, target};
use aerogel_runtime::cpu::{CpuDevice, Pool};
use aerogel_runtime::{Args, Device, KernelFailure, Launch};

/// A kernel whose tasks each add up `n_terms` numbers of their own, print the sum, and check
/// that it is not the argument.
fn kernel(n_tasks: i32, n_terms: i32) -> String {
    let mut tasks = String::new();
    for task in 0..n_tasks {
        let mut terms = format!("s0: i32 = const {task}\n");
        for k in 0..n_terms {
            let next = k + 1;
            writeln!(
                terms,
                "c{k}: i32 = const {k}  s{next}: i32 = add s{k}, c{k}"
            )
            .unwrap();
        }
        write!(
            tasks,
            "task serial {{ yield [] }} {{
                {terms}
                t: i32 = call @twice, [s{n_terms}]
                print \"task {task}: {{}}\\n\", [t]
                n: i32 = arg a0
                other: u1 = ne n, s{n_terms}
                assert other, assertion, \"task {task} fails\", []
                yield []
            }}
            "
        )
        .unwrap();
    }
    format!(
        "func @twice(x: i32) -> i32 {{ y: i32 = add x, x  return [y] }}
        kernel @k(n: i32) {{ {tasks} yield [] }}"
    )
}

#[test]
fn tasks_run_in_order_with_messages_of_their_own() {
    let module = parse_module(&kernel(3, 200)).unwrap_or_else(|e| panic!("{e}"));
    let compiled = compile(&module, &target::host(), OptLevel(3), Texts::Code);
    assert_eq!(compiled.code.objects.len(), 3);
    let device = CpuDevice::new(Arc::new(Pool::new(1)), Box::new(Jit));
    let loaded = device.load(&compiled.code).unwrap();
    let run = |n: u64| {
        let printed = Mutex::new(String::new());
        let mut args = Args::new();
        args.scalar(n);
        let outcome = loaded.launch(Launch {
            args: &args,
            roots: &[],
            results: &mut [],
            sink: &printed,
            seed: 0,
            most_reserved: u64::MAX,
            trace: None,
            later: None,
        });
        (outcome, printed.into_inner().unwrap())
    };
    let all = "task 0: 39800\ntask 1: 39802\ntask 2: 39804\n";
    assert_eq!(run(0), (Ok(()), all.to_owned()));
    let (outcome, printed) = run(19_901);
    let Err(KernelFailure::Check { site, .. }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(loaded.sites()[site].render(&[]), "task 1 fails");
    assert_eq!(printed, &all[..28]);
}

#[test]
fn small_tasks_stay_together_and_code_is_always_the_same() {
    let objects = |n_terms| {
        let module = parse_module(&kernel(4, n_terms)).unwrap_or_else(|e| panic!("{e}"));
        let compile = || {
            compile(&module, &target::host(), OptLevel(2), Texts::Nothing)
                .code
                .objects
        };
        let first = compile();
        assert_eq!(first, compile());
        first.len()
    };
    assert_eq!(objects(5), 1);
    assert_eq!(objects(200), 4);
}
