//! Rows of constant length: all of them are walked, in vectors that leave nothing over where they can.

use crate::{Kernel, f32_at};

/// A kernel that adds to each element of a field 100 for each step along the first axis and 1 for each along the last,
/// counted from `from`.
fn add_indices(extents: &[i64], from: i64) -> Kernel {
    let axes = &["i", "j"][..extents.len()];
    let each = |text: &dyn Fn(&str, i64) -> String, between: &str| {
        let all = axes.iter().zip(extents).map(|(axis, &n)| text(axis, n));
        all.collect::<Vec<_>>().join(between)
    };
    Kernel::new(&format!(
        "fast_math
        tree0 {{ dense {declared} {{ place x: f32 }} }}
        kernel @k() {{
            task range {{ {bounds}  yield [{ends}] }} {{
                from: i32 = const {from}
                hundred: f32 = const 100.0
                each ({params}) {{
                    {places}
                    r: cell<tree0.S0> = root tree0
                    cs: container<tree0.S1> = child tree0.S1, r
                    l: i64 = linearize tree0.S1, [{indices}]
                    c: cell<tree0.S1> = lookup tree0.S1, cs, l
                    p: ref<f32> = child tree0.S2, c
                    v: f32 = load p
                    n: f32 = cast at_{last}
                    s: f32 = add v, n
                    m: f32 = cast at_i
                    h: f32 = mul m, hundred
                    t: f32 = add s, h
                    store p, t
                    yield []
                }}
                yield []
            }}
            yield []
        }}",
        declared = each(&|axis, n| format!("{axis}:{n}"), ", "),
        bounds = each(
            &|axis, n| {
                let to = from + n;
                format!("lo_{axis}: i32 = const {from}  hi_{axis}: i32 = const {to}")
            },
            "  "
        ),
        ends = each(&|axis, _| format!("lo_{axis}, hi_{axis}"), ", "),
        params = each(&|axis, _| format!("{axis}: i32"), ", "),
        places = each(
            &|axis, _| format!("at_{axis}: i32 = sub {axis}, from"),
            "  "
        ),
        indices = each(&|axis, _| format!("at_{axis}"), ", "),
        last = axes[axes.len() - 1],
    ))
}

#[test]
fn every_element_is_reached_once() {
    let short = (1..=35).map(|n| (vec![n], 0));
    let rows = (1..=35).map(|n| (vec![3, n], -5));
    // These are divided among threads.
    let long = [
        vec![50_000],
        vec![49_152],
        vec![2, 30_064],
        vec![1000, 48],
        vec![48, 1000],
    ];
    for (extents, from) in short.chain(rows).chain(long.map(|extents| (extents, 0))) {
        let k = add_indices(&extents, from);
        for _ in 0..3 {
            k.call(&[]);
        }
        let row = extents[extents.len() - 1] as usize;
        for i in 0..extents.iter().product::<i64>() as usize {
            let (first, last) = match extents.len() {
                1 => (i, i),
                _ => (i / row, i % row),
            };
            let expected = 3.0 * (100 * first + last) as f32;
            assert_eq!(
                f32_at(k.roots[0].bytes(), i),
                expected,
                "{i} of {extents:?} from {from}"
            );
        }
    }
}

#[test]
fn whole_vectors_leave_nothing_over() {
    let has_scalars = |extents: &[i64]| {
        let k = add_indices(extents, 0);
        assert!(k.llvm_ir().contains("x float>"), "{}", k.llvm_ir());
        k.llvm_ir().contains("load float")
    };
    assert!(!has_scalars(&[64]));
    assert!(!has_scalars(&[4096]));
    assert!(!has_scalars(&[100, 64]));
    assert!(has_scalars(&[61]));
    assert!(has_scalars(&[64, 61]));
}
