//! Functions that call themselves.

use aerogel_ir::Derivative;

use super::{HEAD, printed};

/// The derivatives of a kernel that calls `f`, and of what it calls.
fn derivatives(kind: Derivative, function: &str) -> String {
    derivatives_behind(kind, "", function)
}

/// The same with something before the call.
fn derivatives_behind(kind: Derivative, before: &str, function: &str) -> String {
    let text = format!(
        "{HEAD} kernel @k() {{
            v0: i32 = const 3
            v1: i32 = const 4000000
            v2: ref<f64> = field_at @x, [v0]
            v3: f64 = load v2
            {before}
            v4: f64 = call @f, [v1, v3, v0]
            v5: ref<f64> = field_at @y, [v0]
            store v5, v4
            return []
        }}
        {function}"
    );
    let is_shown =
        |name: &str| name.contains('_') && (kind == Derivative::Grad || !name.ends_with("_rerun"));
    printed(kind.into(), &text, &is_shown)
}

/// A function that takes how much of the stack is left, and checks that it has enough.
fn function(body: &str) -> String {
    format!(
        "func @f(v0: i32, v1: f64, v2: i32) -> f64 {{
            v3: i32 = const 500
            v4: i32 = sub v0, v3
            v5: i32 = const 0
            v6: u1 = ge v4, v5
            assert v6, recursion, \"too deep\", []
            v7: i32 = const 1
            v8: i32 = sub v2, v7
            v9: u1 = gt v2, v5
            {body}
        }}"
    )
}

fn power() -> String {
    function(
        "v10: f64 = if v9 {
            v11: f64 = call @f, [v4, v1, v8]
            v12: f64 = mul v11, v1
            yield [v12]
        } {
            yield [v1]
        }
        yield [v10]",
    )
}

#[test]
fn in_reverse() {
    insta::assert_snapshot!(derivatives(Derivative::Grad, &power()), @r#"
        kernel @k_grad() {
            v0: i32 = const 3
            v1: i32 = const 4000000
            v2: ref<f64> = field_at @x, [v0]
            v3: f64 = load v2
            v4: f64 = const 0.0
            v5: ref<f64> = field_at @gy, [v0]
            v6: f64 = load v5
            store v5, v4
            v7: f64 = call @fn2, [v1, v3, v0, v6]
            v8: ref<f64> = field_at @gx, [v0]
            v9: f64 = atomic_add v8, v7
            return []
        }
        func @f_grad(v0: i32, v1: f64, v2: i32, v3: f64) -> f64 {
            v4: f64 = const 0.0
            v5: i32 = const 624
            v6: i32 = sub v0, v5
            v7: i32 = const 0
            v8: u1 = ge v6, v7
            assert v8, recursion, "too deep", []
            v9: i32 = const 1
            v10: i32 = sub v2, v9
            v11: u1 = gt v2, v7
            v12: f64 = if v11 {
                v13: f64 = call @fn3, [v6, v1, v10]
                v14: f64 = mul v3, v13
                v15: f64 = add v14, v4
                v16: f64 = mul v1, v3
                v17: f64 = call @fn2, [v6, v1, v10, v16]
                v18: f64 = add v15, v17
                yield [v18]
            } {
                v19: f64 = add v3, v4
                yield [v19]
            }
            yield [v12]
        }
        func @f_rerun(v0: i32, v1: f64, v2: i32) -> f64 {
            v3: i32 = const 464
            v4: i32 = sub v0, v3
            v5: i32 = const 0
            v6: u1 = ge v4, v5
            assert v6, recursion, "too deep", []
            v7: i32 = const 1
            v8: i32 = sub v2, v7
            v9: u1 = gt v2, v5
            v10: f64 = if v9 {
                v11: f64 = call @fn3, [v4, v1, v8]
                v12: f64 = mul v1, v11
                yield [v12]
            } {
                yield [v1]
            }
            yield [v10]
        }
    "#);
}

#[test]
fn with_tangents() {
    insta::assert_snapshot!(derivatives(Derivative::Dual, &power()), @r#"
        kernel @k_dual() {
            v0: i32 = const 3
            v1: i32 = const 4000000
            v2: ref<f64> = field_at @x, [v0]
            v3: f64 = load v2
            v4: ref<f64> = field_at @gx, [v0]
            v5: f64 = load v4
            v6: f64, v7: f64 = call @fn2, [v1, v3, v0, v5]
            v8: ref<f64> = field_at @y, [v0]
            store v8, v6
            v9: ref<f64> = field_at @gy, [v0]
            store v9, v7
            return []
        }
        func @f_dual(v0: i32, v1: f64, v2: i32, v3: f64) -> f64, f64 {
            v4: i32 = const 560
            v5: i32 = sub v0, v4
            v6: i32 = const 0
            v7: u1 = ge v5, v6
            assert v7, recursion, "too deep", []
            v8: i32 = const 1
            v9: i32 = sub v2, v8
            v10: u1 = gt v2, v6
            v11: f64, v12: f64 = if v10 {
                v13: f64, v14: f64 = call @fn2, [v5, v1, v9, v3]
                v15: f64 = mul v1, v13
                v16: f64 = mul v3, v13
                v17: f64 = mul v1, v14
                v18: f64 = add v16, v17
                yield [v15, v18]
            } {
                yield [v1, v3]
            }
            yield [v11, v12]
        }
    "#);
}

#[test]
fn what_it_writes_is_not_written_again() {
    let text = function(
        "if v9 {
            v11: ref<f64> = field_at @y, [v8]
            v12: f64 = mul v1, v1
            store v11, v12
            v13: f64 = call @f, [v4, v12, v8]
            yield []
        } {
            yield []
        }
        yield [v1]",
    );
    insta::assert_snapshot!(derivatives(Derivative::Grad, &text), @r#"
        kernel @k_grad() {
            v0: i32 = const 3
            v1: i32 = const 4000000
            v2: ref<f64> = field_at @x, [v0]
            v3: f64 = load v2
            v4: f64 = const 0.0
            v5: ref<f64> = field_at @gy, [v0]
            v6: f64 = load v5
            store v5, v4
            v7: f64 = call @fn2, [v1, v3, v0, v6]
            v8: ref<f64> = field_at @gx, [v0]
            v9: f64 = atomic_add v8, v7
            return []
        }
        func @f_grad(v0: i32, v1: f64, v2: i32, v3: f64) -> f64 {
            v4: f64 = const 0.0
            v5: i32 = const 736
            v6: i32 = sub v0, v5
            v7: i32 = const 0
            v8: u1 = ge v6, v7
            assert v8, recursion, "too deep", []
            v9: i32 = const 1
            v10: i32 = sub v2, v9
            v11: u1 = gt v2, v7
            v12: f64 = add v3, v4
            v13: f64 = if v11 {
                v14: f64 = mul v1, v1
                v15: f64 = call @fn2, [v6, v14, v10, v4]
                v16: ref<f64> = field_at @gy, [v10]
                v17: f64 = load v16
                store v16, v4
                v18: f64 = add v15, v17
                v19: f64 = mul v1, v18
                v20: f64 = add v12, v19
                v21: f64 = add v19, v20
                yield [v21]
            } {
                yield [v12]
            }
            yield [v13]
        }
        func @f_rerun(v0: i32, v1: f64, v2: i32) -> f64 {
            v3: i32 = const 368
            v4: i32 = sub v0, v3
            v5: i32 = const 0
            v6: u1 = ge v4, v5
            assert v6, recursion, "too deep", []
            yield [v1]
        }
    "#);
}

#[test]
fn what_it_reads_nobody_overwrites() {
    let text = function(
        "v10: ref<f64> = field_at @y, [v2]
        v11: f64 = load v10
        v12: f64 = mul v11, v1
        store v10, v12
        v13: f64 = call @f, [v4, v12, v8]
        yield [v13]",
    );
    insta::assert_snapshot!(derivatives(Derivative::Grad, &text), @"E0603: the gradient needs the value that is read here, and the kernel overwrites it");
}

#[test]
fn random_numbers_in_it() {
    let text = function(
        "v10: f64 = random
        v11: f64 = mul v10, v1
        v12: f64 = call @f, [v4, v11, v8]
        yield [v12]",
    );
    insta::assert_snapshot!(derivatives(Derivative::Grad, &text), @"E0601: `random` in a function that calls itself has no gradient");
}

#[test]
fn what_the_kernel_reads_it_does_not_overwrite() {
    let text = function(
        "v10: ref<f64> = field_at @h, []
        store v10, v1
        v13: f64 = call @f, [v4, v1, v8]
        yield [v13]",
    );
    let before = "
        v20: ref<f64> = field_at @h, []
        v21: f64 = load v20
        v22: f64 = mul v21, v3
        v23: ref<f64> = field_at @y, [v0]
        v24: f64 = atomic_add v23, v22";
    insta::assert_snapshot!(derivatives_behind(Derivative::Grad, before, &text), @"E0603: the gradient needs the value that is read here, and the kernel overwrites it");
}

#[test]
fn what_it_appends_is_lost() {
    let text = function(
        "v10: ref<i32> = field_at @n, []
        v11: i32 = const 1
        v12: i32 = atomic_add v10, v11
        v13: f64 = cast v12
        v14: f64 = mul v13, v1
        v15: f64 = call @f, [v4, v14, v8]
        yield [v15]",
    );
    insta::assert_snapshot!(derivatives(Derivative::Grad, &text), @"E0602: the gradient needs the old value of an atomic operation, which it cannot compute again");
}

#[test]
fn constants_in_it() {
    let text = function(
        "v10: f64 = stop_gradient v1
        v11: f64 = call @f, [v4, v10, v8]
        v12: f64 = mul v11, v1
        yield [v12]",
    );
    insta::assert_snapshot!(derivatives(Derivative::Grad, &text), @r#"
        kernel @k_grad() {
            v0: i32 = const 3
            v1: i32 = const 4000000
            v2: ref<f64> = field_at @x, [v0]
            v3: f64 = load v2
            v4: f64 = const 0.0
            v5: ref<f64> = field_at @gy, [v0]
            v6: f64 = load v5
            store v5, v4
            v7: f64 = call @fn2, [v1, v3, v0, v6]
            v8: ref<f64> = field_at @gx, [v0]
            v9: f64 = atomic_add v8, v7
            return []
        }
        func @f_grad(v0: i32, v1: f64, v2: i32, v3: f64) -> f64 {
            v4: i32 = const 448
            v5: i32 = sub v0, v4
            v6: i32 = const 0
            v7: u1 = ge v5, v6
            assert v7, recursion, "too deep", []
            v8: i32 = const 1
            v9: i32 = sub v2, v8
            v10: f64 = call @fn3, [v5, v1, v9]
            v11: f64 = mul v3, v10
            yield [v11]
        }
        func @f_rerun(v0: i32, v1: f64, v2: i32) -> f64 {
            v3: i32 = const 432
            v4: i32 = sub v0, v3
            v5: i32 = const 0
            v6: u1 = ge v4, v5
            assert v6, recursion, "too deep", []
            v7: i32 = const 1
            v8: i32 = sub v2, v7
            v9: f64 = call @fn3, [v4, v1, v8]
            v10: f64 = mul v1, v9
            yield [v10]
        }
    "#);
}
