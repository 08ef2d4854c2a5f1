//! Kernels that would run for ever end when they are asked to. The request is the process's, so
//! these tests are a program of their own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use aerogel_ir::parse_module;
use aerogel_llvm::{Jit, OptLevel, Texts, compile, target};
use aerogel_runtime::cpu::{CpuDevice, Pool};
use aerogel_runtime::{Args, Device, KernelFailure, Launch, interrupt};

fn ends(body: &str) {
    let module = parse_module(&format!("kernel @k() {{ {body} yield [] }}")).unwrap();
    let compiled = compile(&module, &target::host(), OptLevel(3), Texts::Nothing);
    let device = CpuDevice::new(Arc::new(Pool::new(2)), Box::new(Jit));
    let kernel = device.load(&compiled.code).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let outcome = kernel.launch(Launch {
                args: &Args::new(),
                roots: &[],
                results: &mut [],
                sink: &Mutex::new(String::new()),
                seed: 0,
                most_reserved: u64::MAX,
                trace: None,
                later: None,
            });
            done.store(true, Ordering::SeqCst);
            assert_eq!(outcome, Err(KernelFailure::Interrupted));
        });
        // A request before the launch has begun is none, so it is repeated.
        while !done.load(Ordering::SeqCst) {
            interrupt::stop();
            std::thread::yield_now();
        }
    });
}

#[test]
fn endless_loops() {
    let endless = "while [] { t: u1 = const 1  yield [t] } { yield [] }";
    ends(&format!(
        "task serial {{ yield [] }} {{ {endless} yield [] }}"
    ));
    ends(&format!(
        "task range {{ lo: i32 = const 0  hi: i32 = const 1000  yield [lo, hi] }} {{
            each (i: i32) {{ {endless} yield [] }}
            yield []
        }}"
    ));
    ends(
        "task serial { yield [] } {
            lo: i64 = const 0  hi: i64 = const 1000000000000  one: i64 = const 1
            t: ref<i64> = local
            for lo, hi, one, [] (i: i64) {
                for lo, hi, one, [] (j: i64) {
                    v: i64 = load t
                    w: i64 = xor v, j
                    x: i64 = mul w, hi
                    store t, x
                    stop: u1 = eq j, i
                    if stop { break [] } { yield [] }
                    yield []
                }
                yield []
            }
            v: i64 = load t
            print \"{}\", [v]
            yield []
        }",
    );
}
