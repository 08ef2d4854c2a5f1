//! Kernels that write `a[i, j]` for each row and column: how they are compiled and run.

use std::sync::{Arc, Mutex};

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{Stage, parse_module, verify};
use aerogel_llvm::{Compiled, Jit, OptLevel, Texts, compile, target};
use aerogel_runtime::cpu::{CpuDevice, Pool};
use aerogel_runtime::{Args, Buffer, Device, Launch};

/// Bounds that are those of the array.
pub(crate) const OF_THE_ARRAY: &str = "n: i32 = array_shape a0, 0  m: i32 = array_shape a0, 1";

/// The code of `a[i, j] = r` for `i` below `n` and `j` below `m`, which `bounds` defines. `body` defines `r` from `i`, `j`, what
/// `before` defines, the array `b` and a third parameter of this type.
pub(crate) fn code(third: &str, bounds: &str, before: &str, body: &str, level: u8) -> Compiled {
    let text = format!(
        "arrays_apart
        kernel @k(a: array<i32, 2>, b: array<i32, 2>, c: {third}) {{
            task range {{
                z: i32 = const 0
                {bounds}
                yield [z, n, z, m]
            }} {{
                zero: i32 = const 0
                one: i32 = const 1
                two: i32 = const 2
                {before}
                each (i: i32, j: i32) {{
                    {body}
                    p: ref<i32> = array_at a0, [i, j]
                    store p, r
                    yield []
                }}
                yield []
            }}
            yield []
        }}"
    );
    let module = parse_module(&text).unwrap_or_else(|e| panic!("{e:?}"));
    let kernel = module.kernel().unwrap();
    verify(kernel, &module.env, Stage::Lowered).unwrap_or_else(|e| panic!("{e}"));
    compile(&module, &target::host(), OptLevel(level), Texts::Code)
}

/// What stands in `b`, row by row.
pub(crate) fn element(k: usize) -> i32 {
    (k * 37 % 101) as i32
}

/// The third argument.
#[allow(dead_code, reason = "each test has one of them")]
pub(crate) enum Third<'a> {
    Array(&'a Buffer, usize),
    Number(i32),
}

/// What the code writes to `a`.
pub(crate) fn run(compiled: &Compiled, [n, m]: [usize; 2], third: Third<'_>) -> Vec<i32> {
    let device = CpuDevice::new(Arc::new(Pool::new(2)), Box::new(Jit));
    let loaded = device.load(&compiled.code).unwrap();
    let [a, b] = [n * m, n * m].map(|n| Buffer::zeroed(n * 4).unwrap());
    for k in 0..n * m {
        let value = Scalar::int(ScalarType::I32, i128::from(element(k)));
        b.write_scalar(k * 4, value).unwrap();
    }
    let mut args = Args::new();
    args.array(&a, &[n, m], 4).unwrap();
    args.array(&b, &[n, m], 4).unwrap();
    match third {
        Third::Array(c, len) => args.array(c, &[len], 4).unwrap(),
        Third::Number(c) => args.scalar(u64::from(c as u32)),
    }
    let launch = Launch {
        args: &args,
        roots: &[],
        results: &mut [],
        sink: &Mutex::new(String::new()),
        seed: 3,
        most_reserved: u64::MAX,
        trace: None,
        later: None,
    };
    loaded.launch(launch).unwrap();
    numbers(&a, n * m)
}

/// The first numbers of an array.
pub(crate) fn numbers(of: &Buffer, n: usize) -> Vec<i32> {
    let read = |k: usize| of.read_scalar(ScalarType::I32, k * 4).unwrap().as_i128();
    (0..n).map(|k| read(k) as i32).collect()
}
