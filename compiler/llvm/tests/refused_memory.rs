//! A kernel for which there is no memory, in a process of its own: what it takes others cannot have.

use std::sync::{Arc, Mutex};

use aerogel_ir::parse_module;
use aerogel_llvm::{Jit, OptLevel, Texts, compile, target};
use aerogel_runtime::cpu::{CpuDevice, Pool};
use aerogel_runtime::{Args, Device, KernelFailure, Launch, SiteKind, TreeMemory};

/// Each of 64 Ki cells is 1 GiB large; no byte of it is touched.
const KERNEL: &str = "
    tree0 { pointer i:65536 { dense i:16384 j:16384 { place x: i32 }, place y: f32 } }
    kernel @k(n: i32) {
        task range { lo: i32 = const 0  hi: i32 = arg a0  yield [lo, hi] } {
            each (i: i32) {
                root: cell<tree0.S0> = root tree0
                c: container<tree0.S1> = child tree0.S1, root
                cell: cell<tree0.S1> = obtain tree0.S1, c, i
                yield []
            }
            yield []
        }
        yield []
    }";

#[test]
fn memory_is_refused() {
    let module = parse_module(KERNEL).unwrap_or_else(|e| panic!("{e}"));
    let tree = module.env.trees.values().next().unwrap().clone();
    let memory = TreeMemory::new(tree, 0).unwrap();
    let device = CpuDevice::new(Arc::new(Pool::new(2)), Box::new(Jit));
    for level in [0, 3] {
        let code = compile(&module, &target::host(), OptLevel(level), Texts::Nothing).code;
        let kernel = device.load(&code).unwrap();
        let launch = |n: u64| {
            let mut args = Args::new();
            args.scalar(n);
            kernel.launch(Launch {
                args: &args,
                roots: &[&memory],
                results: &mut [],
                sink: &Mutex::new(String::new()),
                seed: 0,
                most_reserved: u64::MAX,
                trace: None,
                later: None,
            })
        };
        let Err(KernelFailure::Check { site, args }) = launch(65536) else {
            panic!("64 TiB are more than there is")
        };
        let site = &kernel.sites()[site];
        assert!(matches!(site.kind, SiteKind::NoCell { tree: 0, .. }));
        assert_eq!(
            site.render(&args),
            "out of memory for the pointer node S1 of `x`, `y`"
        );
        // The tree is in order: a kernel that makes nothing more runs.
        launch(0).unwrap();
        assert!(memory.stats()[0].cells < 65536);
    }
}
