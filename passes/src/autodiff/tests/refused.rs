//! What is refused, and what the user or a tape must know.

use aerogel_ir::{Arg, Derivative, parse_module};

use super::{HEAD, derivative, whole};
use crate::Options;
use crate::autodiff::{Moment, differentiate};

#[test]
fn what_has_no_gradient() {
    let refused = |body: &str| derivative(Derivative::Grad, body);
    ::insta::assert_snapshot!(refused(
        "v1: ref<f64> = field_at @x, [v0]
        v2: f64 = load v1
        v3: f64 = sin v2
        v4: i32 = const 1
        v5: i32 = add v0, v4
        v6: ref<f64> = field_at @x, [v5]
        store v6, v3"
    ), @"E0605: other iterations of the same parallel loop write the value that is read here: their order is not known, so there is no gradient");
    // In a branch it may be that no two iterations meet.
    ::insta::assert_snapshot!(refused(
        "v1: ref<f64> = field_at @x, [v0]
        v2: f64 = load v1
        v3: f64 = sin v2
        v4: i32 = const 1
        v5: i32 = add v0, v4
        v6: ref<f64> = field_at @x, [v5]
        v7: u1 = lt v0, v4
        if v7 {
            store v6, v3
            yield []
        } {
            yield []
        }"
    ), @"E0603: the gradient needs the value that is read here, and the kernel overwrites it");
    ::insta::assert_snapshot!(refused(
        "v1: ref<f64> = field_at @x, [v0]
        v2: f64 = load v1
        v3: u64 = bitcast v2
        v4: f64 = bitcast v3
        v6: ref<f64> = field_at @y, [v0]
        store v6, v4"
    ), @"E0601: the bits of a float that has a derivative are converted back to a float, and the derivative of that is not known");
    ::insta::assert_snapshot!(refused(
        "v1: ref<f64> = field_at @x, [v0]
        v2: f64 = load v1
        v3: f64 = random
        v4: f64 = mul v2, v3
        v6: ref<f64> = field_at @y, [v0]
        store v6, v4"
    ), @"
        kernel @k_grad() {
            v0: i32 = const 0
            v1: i32 = const 8
            parallel [v0], [v1] (v2: i32) {
                v3: u64 = random_state 1, []
                v4: u64 = const 11400714819323198485
                v5: u64 = add v3, v4
                v6: u64 = const 30
                v7: u64 = ushr v5, v6
                v8: u64 = xor v5, v7
                v9: u64 = const 13787848793156543929
                v10: u64 = mul v8, v9
                v11: u64 = const 27
                v12: u64 = ushr v10, v11
                v13: u64 = xor v10, v12
                v14: u64 = const 10723151780598845931
                v15: u64 = mul v13, v14
                v16: u64 = const 31
                v17: u64 = ushr v15, v16
                v18: u64 = xor v15, v17
                v19: u64 = const 11
                v20: u64 = ushr v18, v19
                v21: f64 = cast v20
                v22: f64 = const 1.1102230246251565e-16
                v23: f64 = mul v21, v22
                v24: f64 = const 0.0
                v25: ref<f64> = field_at @gy, [v2]
                v26: f64 = load v25
                store v25, v24
                v27: f64 = mul v23, v26
                v28: ref<f64> = field_at @gx, [v2]
                v29: f64 = atomic_add v28, v27
                yield []
            }
            return []
        }
    ");
    ::insta::assert_snapshot!(refused(
        "v1: ref<f64> = field_at @x, [v0]
        v2: f64 = load v1
        v3: ref<f64> = field_at @y, [vlo]
        v4: f64 = atomic_exchange v3, v2"
    ), @"E0601: `atomic_exchange` of a shared number has no gradient");
    ::insta::assert_snapshot!(refused(
        "v1: ref<f64> = field_at @x, [v0]
        v2: f64 = load v1
        v3: ref<f64> = field_at @y, [vlo]
        v4: f64 = atomic_add v3, v2
        v5: f64 = atomic_add v1, v4"
    ), @"E0601: the old value of an atomic operation has no derivative");
}

#[test]
fn what_iterations_race_for_has_no_gradient() {
    ::insta::assert_snapshot!(whole(
        Derivative::Grad,
        "v0: i32 = const 0
        v1: i32 = const 8
        v2: ref<f64> = local
        parallel [v0], [v1] (v3: i32) {
            v4: ref<f64> = field_at @x, [v3]
            v5: f64 = load v4
            v6: f64 = load v2
            v7: f64 = mul v6, v5
            store v2, v7
            yield []
        }
        v8: f64 = load v2
        v9: ref<f64> = field_at @y, [v0]
        store v9, v8
        return []"
    ), @"E0601: all iterations of a parallel loop write this variable, and the last one is not known: it has no gradient");
}

#[test]
fn what_ends_in_memory_without_gradients() {
    let text = format!(
        "{HEAD} kernel @k() {{
        v0: i32 = const 0
        v1: ref<f64> = field_at @x, [v0]
        v2: f64 = load v1
        v3: ref<f64> = field_at @t, []
        store v3, v2
        v4: f64 = load v3
        v6: ref<f64> = field_at @y, [v0]
        store v6, v4
        return []
    }}"
    );
    let module = parse_module(&text).unwrap_or_else(|e| panic!("{e}"));
    let done = differentiate(module, Derivative::Grad, Options::default());
    let ends = done.unwrap_or_else(|e| panic!("{e:?}")).ends;
    assert_eq!(ends.map(|ends| ends.code), Some("E0604"));
}

#[test]
fn what_is_read_at_the_start() {
    let text = format!(
        "{HEAD} kernel @k() {{
        v1: i32 = const 0
        v2: i32 = const 8
        parallel [v1], [v2] (v0: i32) {{
            v3: ref<f64> = field_at @x, [v0]
            v4: f64 = load v3
            v5: f64 = sin v4
            store v3, v5
            yield []
        }}
        return []
    }}"
    );
    let module = parse_module(&text).unwrap_or_else(|e| panic!("{e}"));
    let done = differentiate(module, Derivative::Grad, Options::default());
    let done = done.unwrap_or_else(|e| panic!("{e:?}"));
    assert!(done.of_start.is_some());
    assert!(done.needed.iter().all(|n| n.at == Moment::Start));
}

/// Iterations that read `z[a + 1, i + 1]` and write `z[b, i]`: only a launch knows whether they meet.
#[test]
fn what_arguments_tell_apart() {
    let text = |b: &str| {
        format!(
            "tree0 {{ dense i:4 j:8 {{ place z: f64, place gz: f64 }} }}
            field @z: f64 = tree0 [S2] grad @gz
            field @gz: f64 = tree0 [S3]
            kernel @k(a: i32, b: i32) {{
                v1: i32 = const 0
                v2: i32 = const 7
                v3: i32 = const 1
                va: i32 = arg a0
                vb: i32 = {b}
                vc: i32 = add va, v3
                parallel [v1], [v2] (v0: i32) {{
                    v4: i32 = add v0, v3
                    v5: ref<f64> = field_at @z, [vc, v4]
                    v6: f64 = load v5
                    v7: f64 = sin v6
                    v8: ref<f64> = field_at @z, [vb, v0]
                    store v8, v7
                    yield []
                }}
                return []
            }}"
        )
    };
    let differentiated = |b: &str| {
        let module = parse_module(&text(b)).unwrap_or_else(|e| panic!("{e}"));
        differentiate(module, Derivative::Grad, Options::default())
    };
    let done = differentiated("arg a1").unwrap_or_else(|e| panic!("{e:?}"));
    let told: Vec<_> = done.told_apart.iter().map(|it| it.indices).collect();
    assert_eq!(told, [[(Arg::from_u32(0), 1), (Arg::from_u32(1), 0)]]);
    assert!(done.of_start.is_none());
    // Steps that are known to differ ask for nothing, and what is no argument is known to nobody.
    let done = differentiated("add va, v2").unwrap_or_else(|e| panic!("{e:?}"));
    assert!(done.told_apart.is_empty() && done.of_start.is_none());
    assert!(differentiated("mul va, v2").is_err());
}

/// Only what products and extrema add up to is read: sums into an element that was read do not ask for it.
#[test]
fn sums_into_what_was_read_ask_for_its_start() {
    let text = format!(
        "{HEAD} kernel @k() {{
        v1: i32 = const 0
        v2: i32 = const 8
        parallel [v1], [v2] (v0: i32) {{
            v3: ref<f64> = field_at @x, [v0]
            v4: f64 = load v3
            v5: f64 = sin v4
            v6: ref<f64> = field_at @y, [v0]
            v7: f64 = atomic_sub v6, v5
            v8: f64 = load v6
            v9: f64 = atomic_add v3, v8
            yield []
        }}
        return []
    }}"
    );
    let module = parse_module(&text).unwrap_or_else(|e| panic!("{e}"));
    let done = differentiate(module, Derivative::Grad, Options::default());
    let done = done.unwrap_or_else(|e| panic!("{e:?}"));
    assert_eq!(done.needed.len(), 1);
    assert_eq!(done.needed[0].at, Moment::Start);
}
