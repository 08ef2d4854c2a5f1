//! Mistakes in kernels, as they are told.

use std::rc::Rc;

use _native::host::{FuncRef, Handle, Known};

use crate::{lower, lower_with};

#[test]
fn all_errors_are_reported_together() {
    insta::assert_snapshot!(
        lower(
            "
    def k():
        a = undefined + 1
        b = a * 2
        x[0] = 1
        for i in range(4):
            break
            c = v[i] + ti.Vector([1, 2, 3])
        print(c)
"
        ),
        @"
        AerogelNameError[E0301]: name `undefined` is not defined
          --> test.py:2:9
          |
        2 |     a = undefined + 1
          |         ^^^^^^^^^

        AerogelIndexError[E0401]: the field `x` has 2 axes, but 1 index is given
          --> test.py:4:5
          |
        4 |     x[0] = 1
          |     ^^^^
           = note: all indices stand in one bracket: `x[i, j]`

        AerogelSyntaxError[E0111]: `break` cannot leave a parallel loop
          --> test.py:6:9
          |
        6 |         break
          |         ^^^^^
           = note: write `ti.loop_config(serialize=True)` before the loop to run it in order

        AerogelTypeError[E0205]: cannot apply `+` to `vec<2, f32>` and `vec<3, i32>`: the shapes differ
          --> test.py:7:13
          |
        7 |         c = v[i] + ti.Vector([1, 2, 3])
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^

        AerogelNameError[E0301]: name `c` is not defined
          --> test.py:8:11
          |
        8 |     print(c)
          |           ^
           = note: `c` exists only in the block that first assigns it: assign it before the `if` or loop
        "
    );
}

#[test]
fn assignment_errors() {
    insta::assert_snapshot!(
        lower(
            "
    def k():
        for i in range(4):
            i += 1
            if x[i, 0]:
                pass
        s = 0
        for s in range(3):
            pass
        for i, j in ti.ndrange(2, 2, 2):
            pass
        lambda: 1
        with x:
            pass
        y[0, 0] = ti.sin(n[None])
        z = 1.5 & 2
        q = n[None] & 1.5
"
        ),
        @r#"
        AerogelSyntaxError[E0106]: the loop index `i` cannot be assigned to
          --> test.py:3:9
          |
        3 |         i += 1
          |         ^^^^^^
           = note: copy it into a variable first

        AerogelTypeError[E0208]: a condition must be an integer or a boolean, not `f32`
          --> test.py:4:12
          |
        4 |         if x[i, 0]:
          |            ^^^^^^^
           = note: compare it: `x != 0`

        AerogelSyntaxError[E0122]: the loop index `s` hides a variable of this name
          --> test.py:7:9
          |
        7 |     for s in range(3):
          |         ^
           = note: rename it

        AerogelSyntaxError[E0213]: 3 values cannot be unpacked into 2 names
          --> test.py:9:9
          |
        9 |     for i, j in ti.ndrange(2, 2, 2):
          |         ^^^^

        AerogelSyntaxError[E0102]: unsupported node "Lambda"
          --> test.py:11:5
           |
        11 |     lambda: 1
           |     ^^^^^^^^^
           = note: kernels understand a part of Python; compute this outside and pass it in

        AerogelSyntaxError[E0102]: unsupported node "With"
          --> test.py:12:5
           |
        12 |     with x:
           |     ^^^^^^^
           = note: kernels understand a part of Python; compute this outside and pass it in

        AerogelTypeError[E0206]: `sin` needs a float, not `i32`
          --> test.py:14:15
           |
        14 |     y[0, 0] = ti.sin(n[None])
           |               ^^^^^^^^^^^^^^^
           = note: convert it: `ti.cast(x, ti.f32)` or `ti.cast(x, ti.i32)`

        AerogelTypeError[E0120]: unsupported operand types for &: a float and an int
          --> test.py:15:9
           |
        15 |     z = 1.5 & 2
           |         ^^^^^^^

        AerogelTypeError[E0206]: `&` needs integers, not `i32` and `f32`
          --> test.py:16:9
           |
        16 |     q = n[None] & 1.5
           |         ^^^^^^^^^^^^^
        "#
    );
}

#[test]
fn fields_beyond_i32() {
    let mut host = crate::host();
    host.layout("dense i:3000000000 { place far: u8 }");
    insta::assert_snapshot!(
        crate::lower_with(
            host,
            "
            def k():
                for i in far:
                    far[i] = 1
            ",
            &[],
            None
        ),
        @"
        AerogelTypeError[E0229]: the indices of `far` do not fit an `i32`
          --> test.py:2:14
          |
        2 |     for i in far:
          |              ^^^
           = note: loop over `ti.ndrange` with bounds of type `ti.i64`
        "
    );
}

#[test]
fn what_does_not_fit_is_shown() {
    insta::assert_snapshot!(
        lower(
            "
    def k():
        r = v[0]
        x[0, 0] += 2.0 * r
        x[0, 0] *= r
        x[0, 0] = r
        r = ti.Vector([1, 2, 3])
        r -= ti.Vector([1, 2, 3])
        x += 1
        n += 1
"
        ),
        @"
        AerogelTypeError[E0203]: cannot add `vec<2, f32>` to `f32`
          --> test.py:3:16
          |
        3 |     x[0, 0] += 2.0 * r
          |                ^^^^^^^ this is `vec<2, f32>`

        AerogelTypeError[E0203]: cannot apply `*=` to `f32` and `vec<2, f32>`: the shapes differ
          --> test.py:4:16
          |
        4 |     x[0, 0] *= r
          |                ^ this is `vec<2, f32>`

        AerogelTypeError[E0203]: cannot use `vec<2, f32>` as `f32`: the shapes differ
          --> test.py:5:15
          |
        5 |     x[0, 0] = r
          |               ^ this is `vec<2, f32>`

        AerogelTypeError[E0203]: cannot use `vec<3, i32>` as `vec<2, f32>`: the shapes differ
          --> test.py:6:9
          |
        6 |     r = ti.Vector([1, 2, 3])
          |         ^^^^^^^^^^^^^^^^^^^^ this is `vec<3, i32>`

        AerogelTypeError[E0203]: cannot subtract `vec<3, i32>` from `vec<2, f32>`
          --> test.py:7:10
          |
        7 |     r -= ti.Vector([1, 2, 3])
          |          ^^^^^^^^^^^^^^^^^^^^ this is `vec<3, i32>`

        AerogelSyntaxError[E0215]: the field `x` cannot be changed by `+=`
          --> test.py:8:5
          |
        8 |     x += 1
          |     ^
           = note: index it: `x[i]`

        AerogelSyntaxError[E0215]: the field `n` cannot be changed by `+=`
          --> test.py:9:5
          |
        9 |     n += 1
          |     ^
           = note: index it: `n[None]`
        "
    );
}

#[test]
fn a_bug_of_ours_is_told_with_its_place_and_the_kernel() {
    let mut host = crate::host();
    // The host has no such function, and panics.
    host.set(
        "broken",
        Known::Func(Rc::new(FuncRef {
            function: Handle(1 << 20),
            receiver: None,
            name: "broken".into(),
        })),
    );
    let text = "
        def k():
            a = 1
            b = broken(a)
        ";
    let told = lower_with(host, text, &[], None);
    let (first, rest) = told.split_once('\n').expect("several lines");
    let start = "AerogelRuntimeError[E0120]: a bug in the compiler, not in your program: index out of bounds";
    assert!(
        first.starts_with(start) && first.contains("map_host.rs"),
        "{first}"
    );
    insta::assert_snapshot!(rest, @"
      --> test.py:3:9
      |
    3 |     b = broken(a)
      |         ^^^^^^^^^
       = note: so far the kernel is
    kernel @k() {
        v0: i32 = const 1
        v1: ref<i32> = local
        store v1, v0
    }
    ");
}

#[test]
fn a_kernel_that_is_async() {
    insta::assert_snapshot!(lower("
        async def k():
            a = 1
        "), @"
    AerogelSyntaxError[E0102]: kernels and functions that they call cannot be `async`
      --> test.py:1:11
      |
    1 | async def k():
      |           ^
       = note: write `def` without `async`
    ");
}
