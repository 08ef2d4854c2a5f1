//! Structs fall apart in the frontend.

use _native::host::{Known, TensorShape};
use _native::map_host::MapHost;
use aerogel_base::ScalarType::{F32, I32};

use crate::lower_with;

/// `P` with the members `pos` and `mass`, `Q` with a `P` and `n`, and the field `f` of `P`.
fn host() -> MapHost {
    let mut host = MapHost::new();
    let vec2 = Known::TensorType {
        shape: TensorShape::Vector(2),
        elem: F32,
    };
    host.tensor_field(
        "pos",
        TensorShape::Vector(2),
        "dense i:16 { place a: f32 place b: f32 }",
    );
    host.layout("dense i:16 { place mass: f32 }");
    host.func("def grow(self, by):\n    self.mass += by\n    return self.mass");
    let p = host.struct_type(
        "P",
        &[("pos", vec2), ("mass", Known::DType(F32))],
        &["grow"],
    );
    host.struct_type("Q", &[("p", p.clone()), ("n", Known::DType(I32))], &[]);
    host.struct_field("f", &p);
    host
}

fn lower(text: &str) -> String {
    lower_with(host(), text, &[], None)
}

#[test]
fn elements_and_variables() {
    insta::assert_snapshot!(
        lower(
            "
    def k():
        for i in f:
            p = f[i]
            p.mass = 3
            f[i].mass += p.mass
            f[i] = P(mass=2)
"
        ),
        @"
            kernel @k() {
                parallel_cells tree0.S1 (v0: i32) {
                    v1: ref<vec<2, f32>> = field_at @pos, [v0]
                    v2: ref<f32> = field_at @mass, [v0]
                    v3: vec<2, f32> = load v1
                    v4: f32 = load v2
                    v5: ref<vec<2, f32>> = local
                    store v5, v3
                    v6: ref<f32> = local
                    store v6, v4
                    v7: f32 = const 3.0
                    store v6, v7
                    v8: ref<f32> = field_at @mass, [v0]
                    v9: f32 = load v6
                    v10: f32 = atomic_add v8, v9
                    v11: f32 = const 0.0
                    v12: vec<2, f32> = tensor [v11, v11]
                    v13: f32 = const 2.0
                    v14: ref<vec<2, f32>> = field_at @pos, [v0]
                    v15: ref<f32> = field_at @mass, [v0]
                    store v14, v12
                    store v15, v13
                    yield []
                }
                return []
            }
            "
    );
}

#[test]
fn methods_change_their_struct() {
    insta::assert_snapshot!(
        lower(
            "
    def k():
        q = Q(P(1, 2), 3)
        q.p.grow(4)
        f[0].grow(q.n)
"
        ),
        @"
        kernel @k() {
            v0: f32 = const 1.0
            v1: vec<2, f32> = tensor [v0, v0]
            v2: f32 = const 2.0
            v3: i32 = const 3
            v4: ref<vec<2, f32>> = local
            store v4, v1
            v5: ref<f32> = local
            store v5, v2
            v6: ref<i32> = local
            store v6, v3
            v7: i32 = const 4
            v8: ref<i32> = local
            store v8, v7
            v9: f32 = load v5
            v10: i32 = load v8
            v11: f32 = cast v10
            v12: f32 = add v9, v11
            store v5, v12
            v13: f32 = load v5
            v14: i32 = const 0
            v15: i32 = load v6
            v16: ref<i32> = local
            store v16, v15
            v17: ref<f32> = field_at @mass, [v14]
            v18: i32 = load v16
            v19: f32 = cast v18
            v20: f32 = atomic_add v17, v19
            v21: ref<f32> = field_at @mass, [v14]
            v22: f32 = load v21
            return []
        }
        "
    );
}

#[test]
fn a_choice_of_structs() {
    insta::assert_snapshot!(
        lower(
            "
    def k():
        a = P(1, 2)
        b = a if a.mass > 1 else f[0]
        print(b)
"
        ),
        @r#"
        kernel @k() {
            v0: f32 = const 1.0
            v1: vec<2, f32> = tensor [v0, v0]
            v2: f32 = const 2.0
            v3: ref<vec<2, f32>> = local
            store v3, v1
            v4: ref<f32> = local
            store v4, v2
            v5: f32 = load v4
            v6: f32 = const 1.0
            v7: u1 = gt v5, v6
            v8: vec<2, f32>, v9: f32 = if v7 {
                v10: vec<2, f32> = load v3
                v11: f32 = load v4
                yield [v10, v11]
            } {
                v12: i32 = const 0
                v13: ref<vec<2, f32>> = field_at @pos, [v12]
                v14: ref<f32> = field_at @mass, [v12]
                v15: vec<2, f32> = load v13
                v16: f32 = load v14
                yield [v15, v16]
            }
            v17: ref<vec<2, f32>> = local
            store v17, v8
            v18: ref<f32> = local
            store v18, v9
            v19: vec<2, f32> = load v17
            v20: i32 = const 0
            v21: f32 = tensor_get v19, [v20]
            v22: i32 = const 1
            v23: f32 = tensor_get v19, [v22]
            v24: f32 = load v18
            print "{{'pos': [{}, {}], 'mass': {}}}\n", [v21, v23, v24]
            return []
        }
        "#
    );
}

#[test]
fn mistakes() {
    insta::assert_snapshot!(
        lower(
            "
    def k():
        a = P(1, 2, 3)
        b = P(weight=1)
        c = P(1, 2)
        c.weight = 1
        c = 3
        c = Q(c, 1)
        d = c + c
        c.mass = ti.Vector([1, 2, 3])
        e = P(ti.Vector([1, 2, 3]), 1)
        f[0].colour = 1
        f[0, 1].mass = 1
        f[0] += c
        g = P(1, pos=2)
        h = Q(Q(), 1)
        f = c
        ti.Struct(1, 2)
        return c
"
        ),
        @"
        AerogelTypeError[E0222]: the struct `P` has 2 members, but 3 values are given
          --> test.py:2:9
          |
        2 |     a = P(1, 2, 3)
          |         ^^^^^^^^^^

        AerogelTypeError[E0222]: the struct `P` has no member `weight`
          --> test.py:3:9
          |
        3 |     b = P(weight=1)
          |         ^^^^^^^^^^^

        AerogelCompilationError[E0302]: the struct `P` has no member `weight`
          --> test.py:5:5
          |
        5 |     c.weight = 1
          |     ^^^^^^^^
           = note: its members are `pos`, `mass`

        AerogelTypeError[E0203]: the struct `P` is needed here, not an int
          --> test.py:6:9
          |
        6 |     c = 3
          |         ^

        AerogelTypeError[E0203]: cannot use the struct `Q` as the struct `P`: the members differ
          --> test.py:7:9
          |
        7 |     c = Q(c, 1)
          |         ^^^^^^^

        AerogelTypeError[E0201]: a number, vector or matrix is needed here, not the struct `P`
          --> test.py:8:9
          |
        8 |     d = c + c
          |         ^^^^^

        AerogelTypeError[E0203]: cannot use `vec<3, i32>` as `f32`: the shapes differ
          --> test.py:9:14
          |
        9 |     c.mass = ti.Vector([1, 2, 3])
          |              ^^^^^^^^^^^^^^^^^^^^ this is `vec<3, i32>`

        AerogelTypeError[E0203]: cannot use `vec<3, i32>` as `vec<2, f32>`: the shapes differ
          --> test.py:10:9
           |
        10 |     e = P(ti.Vector([1, 2, 3]), 1)
           |         ^^^^^^^^^^^^^^^^^^^^^^^^^^

        AerogelCompilationError[E0302]: the struct `P` has no member `colour`
          --> test.py:11:5
           |
        11 |     f[0].colour = 1
           |     ^^^^^^^^^^^
           = note: its members are `pos`, `mass`

        AerogelIndexError[E0401]: the field `f` has 1 axis, but 2 indices are given
          --> test.py:12:5
           |
        12 |     f[0, 1].mass = 1
           |     ^^^^^^^

        AerogelSyntaxError[E0215]: the struct `P` cannot be changed by `+=`
          --> test.py:13:5
           |
        13 |     f[0] += c
           |     ^^^^

        AerogelTypeError[E0222]: the member `pos` is given twice
          --> test.py:14:9
           |
        14 |     g = P(1, pos=2)
           |         ^^^^^^^^^^^

        AerogelTypeError[E0203]: cannot use the struct `Q` as the struct `P`: the members differ
          --> test.py:15:9
           |
        15 |     h = Q(Q(), 1)
           |         ^^^^^^^^^

        AerogelTypeError[E0222]: `ti.Struct` takes its members by name
          --> test.py:17:5
           |
        17 |     ti.Struct(1, 2)
           |     ^^^^^^^^^^^^^^^
           = note: write `ti.Struct(pos=p, mass=1.0)`

        AerogelSyntaxError[E0117]: the kernel returns a value but its result has no type
          --> test.py:18:5
           |
        18 |     return c
           |     ^^^^^^^^
           = note: annotate it: `def kernel(...) -> ti.f32:`
        "
    );
}

#[test]
fn dictionaries() {
    insta::assert_snapshot!(
        lower(
            "
    def k():
        for i in f:
            named = {'mass': f[i].mass, 'pos': f[i].pos}
            numbered = {k: k * named.mass for k in ti.static(range(2))}
            f[i].mass = named['mass'] + numbered[1]
            if 'mass' in named and 7 not in numbered:
                f[i].pos = named.pos
"
        ),
        @"
            AerogelSyntaxError[E0103]: `in` needs operands that are known while compiling
              --> test.py:6:12
              |
            6 |         if 'mass' in named and 7 not in numbered:
              |            ^^^^^^^^^^^^^^^
            "
    );
    insta::assert_snapshot!(
        lower(
            "
    def k():
        table = {1: 2.0, 'a': 3.0}
        print(table[2])
"
        ),
        @"
            AerogelTypeError[E0120]: there is no Python here for a comparison
              --> test.py:2:13
              |
            2 |     table = {1: 2.0, 'a': 3.0}
              |             ^^^^^^^^^^^^^^^^^^
            "
    );
}
