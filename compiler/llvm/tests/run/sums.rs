//! Sums that threads gather in memory of their own.

use aerogel_base::{Scalar, ScalarType};
use aerogel_runtime::{Args, Buffer};

use crate::{Kernel, buffer_of, f32_at};

/// A kernel that adds to cells of 5000 as its array says: `adds` change the storages `p2`, `p3`, `p4` and `p5`.
fn scatter(adds: &str) -> String {
    format!(
        "tree0 {{
            place before: f64
            dense i:5000 {{ place a: i32, place b: f32, place c: f32, place d: i64 }}
        }}
        kernel @k(keys: array<i32, 1, read>) {{
            task range {{ lo: i32 = const 0  hi: i32 = array_shape a0, 0  yield [lo, hi] }} {{
                each (i: i32) {{
                    key: ref<i32> = array_at a0, [i]
                    at: i32 = load key
                    wide: i64 = cast at
                    x: f32 = cast at
                    two: f32 = const 2.0
                    y: f32 = mul x, two
                    r: cell<tree0.S0> = root tree0
                    all: container<tree0.S2> = child tree0.S2, r
                    cell: cell<tree0.S2> = lookup tree0.S2, all, wide
                    p2: ref<i32> = child tree0.S3, cell
                    p3: ref<f32> = child tree0.S4, cell
                    p4: ref<f32> = child tree0.S5, cell
                    p5: ref<i64> = child tree0.S6, cell
                    {adds}
                    yield []
                }}
                yield []
            }}
            yield []
        }}"
    )
}

const CELLS: usize = 5000;

/// How often each cell is met.
fn launch(k: &Kernel, n: usize) -> Vec<usize> {
    let (keys, mut times) = (Buffer::zeroed(4 * n).unwrap(), vec![0; CELLS]);
    let mut state = 1_usize;
    for i in 0..n {
        state = state.wrapping_mul(6_364_136_223_846_793_005) ^ (state >> 29);
        let cell = (state >> 33) % (CELLS - 1);
        times[cell] += 1;
        let key = Scalar::i32(cell as i32);
        keys.write_scalar(4 * i, key).unwrap();
    }
    let mut args = Args::new();
    args.array(&keys, &[n], 4).unwrap();
    k.launch(&args).unwrap();
    times
}

fn number(k: &Kernel, cell: usize, ty: ScalarType, at: usize) -> f64 {
    let tree = k.roots[0].tree();
    let (dense, _) = tree.nodes().nth(2).unwrap();
    let offset = tree[dense].offset_in_cell as usize + cell * tree[dense].cell_size as usize;
    let value = k.roots[0].bytes().read_scalar(ty, offset + at).unwrap();
    if ty.is_float() {
        value.as_f64()
    } else {
        value.as_i128() as f64
    }
}

#[test]
fn threads_add_to_copies() {
    let adds = "
        one: i32 = const 1
        o: i32 = atomic_add p2, one
        atomic_adds [p3, p4], [x, y]
        d: i64 = atomic_sub p5, wide";
    for level in [0, 3] {
        let k = Kernel::at(&scatter(adds), level);
        // One thread; two with copies, as often as it takes that the second comes in time; and one thread again.
        let sizes = [100, 300_000, 300_000, 300_000, 100];
        let mut times = vec![0; CELLS];
        for n in sizes {
            for (all, more) in times.iter_mut().zip(launch(&k, n)) {
                *all += more;
            }
        }
        for (cell, &times) in times.iter().enumerate() {
            let sum = (times * cell) as f64;
            assert_eq!(number(&k, cell, ScalarType::I32, 0), times as f64);
            assert_eq!(number(&k, cell, ScalarType::F32, 4), sum);
            assert_eq!(number(&k, cell, ScalarType::F32, 8), 2.0 * sum);
            assert_eq!(number(&k, cell, ScalarType::I64, 16), -sum);
        }
    }
    let k = Kernel::new(&scatter(adds));
    let own = k.llvm_ir().split("define").find(|f| f.contains("_own("));
    let own = own.expect("the task has a second function");
    assert!(
        !own.contains("atomicrmw") && !own.contains("cmpxchg"),
        "{own}"
    );
    let code = k.compiled.code.tasks[0].sums.as_ref().unwrap();
    let runs: Vec<u64> = code.images[0].runs.iter().map(|run| run.numbers).collect();
    assert_eq!((code.images.len(), runs), (1, vec![1, 2, 1]));
}

#[test]
fn the_least_and_the_greatest() {
    let least = "
        five: i32 = const 5
        left: i32 = rem i, five
        minus: i32 = neg left
        o: i32 = atomic_min p2, minus
        f: f32 = cast minus
        m: f32 = atomic_min p3, f
        z: f32 = cast i
        g: f32 = atomic_max p4, z";
    let k = Kernel::new(&scatter(least));
    for _ in 0..3 {
        let times = launch(&k, 300_000);
        for (cell, &times) in times.iter().enumerate() {
            let (least, greatest) = (number(&k, cell, ScalarType::I32, 0), times as f64);
            assert_eq!(least, number(&k, cell, ScalarType::F32, 4));
            assert!((-4.0..=0.0).contains(&least) && (times < 20 || least == -4.0));
            assert!(number(&k, cell, ScalarType::F32, 8) >= greatest - 1.0);
        }
        assert_eq!(number(&k, CELLS - 1, ScalarType::F32, 4), 0.0);
    }
}

#[test]
fn one_function_is_enough_where_copies_always_pay() {
    let adds = "one: i32 = const 1  o: i32 = atomic_add p2, one";
    let text = scatter(adds).replace("hi: i32 = array_shape a0, 0", "hi: i32 = const 9000000");
    let k = Kernel::new(&text);
    let task = &k.compiled.code.tasks[0];
    assert!(
        task.sums
            .as_ref()
            .is_some_and(|sums| sums.always && sums.symbol == task.symbol)
    );
    assert!(!k.llvm_ir().contains("atomicrmw"));
    let times = launch(&k, 9_000_000);
    for (cell, &times) in times.iter().enumerate() {
        assert_eq!(number(&k, cell, ScalarType::I32, 0), times as f64);
    }
}

#[test]
fn arrays_have_copies_too() {
    let k = Kernel::new(
        "arrays_apart
        kernel @k(n: i64, h: array<vec<2, f32>, 2>, keys: array<i32, 1, read>) {
            task range { lo: i32 = const 0  hi: i32 = array_shape a2, 0  yield [lo, hi] } {
                each (i: i32) {
                    key: ref<i32> = array_at a2, [i]
                    at: i32 = load key
                    width: i32 = array_shape a1, 1
                    row: i32 = floordiv at, width
                    column: i32 = mod at, width
                    whole: ref<vec<2, f32>> = array_at a1, [row, column]
                    zero: i32 = const 0
                    one: i32 = const 1
                    x: ref<f32> = elem_ref whole, [zero]
                    y: ref<f32> = elem_ref whole, [one]
                    half: f32 = const 0.5
                    o: f32 = atomic_add x, half
                    p: f32 = atomic_sub y, half
                    yield []
                }
                yield []
            }
            yield []
        }",
    );
    let (cells, n) = (60 * 50, 200_000);
    let (sums, keys) = (
        buffer_of(&vec![1.0; 2 * cells]),
        Buffer::zeroed(4 * n).unwrap(),
    );
    let mut times = vec![0; cells];
    for i in 0..n {
        let cell = i * i % 7919 % cells;
        times[cell] += 1;
        keys.write_scalar(4 * i, Scalar::i32(cell as i32)).unwrap();
    }
    let mut args = Args::new();
    args.scalar(0);
    args.array(&sums, &[60, 50], 8).unwrap();
    args.array(&keys, &[n], 4).unwrap();
    for launch in 1..4 {
        k.launch(&args).unwrap();
        for (cell, &times) in times.iter().enumerate() {
            let sum = 0.5 * (launch * times) as f32;
            assert_eq!(f32_at(&sums, 2 * cell), 1.0 + sum);
            assert_eq!(f32_at(&sums, 2 * cell + 1), 1.0 - sum);
        }
    }
    assert!(k.compiled.code.tasks[0].sums.is_some());
}
