//! Kernels of one process as text.

use std::sync::Arc;

use aerogel_ir::{Stage, parse_module, print_function, verify};

use super::{Exchange, SplitAxis, SplitError, SplitGrid, split};
use crate::Options;

/// Three processes share 12 cells along the first axis, of which this one has the last four; the second axis of six cells is not
/// divided. Memory has `width` cells of neighbours, and the first axis is periodic.
fn text(width: i64, is_trusted: bool, body: &str) -> String {
    let second = SplitAxis {
        size: 6,
        lo: 0,
        hi: 6,
        width: 0,
        is_periodic: false,
    };
    let first = SplitAxis {
        size: 12,
        lo: 8,
        hi: 12,
        width,
        is_periodic: true,
    };
    let grid = SplitGrid {
        axes: vec![first, second],
        is_trusted,
        is_sparse: false,
    };
    let (cells, offset) = (4 + 2 * width, 8 - width);
    let text = format!(
        "tree0 {{ dense i:{cells} j:6 {{ place f: f32, place g: f32 }} }}
        tree1 {{ place total: f32 place p0: f32 place p1: f32 dense i:12 {{ place h: f32 }} }}
        field @f: f32 = tree0 [S2] offset [{offset}, 0]
        field @g: f32 = tree0 [S3] offset [{offset}, 0]
        field @total: f32 = tree1 [S1]
        field @pair: vec<2, f32> = tree1 [S2, S3]
        field @h: f32 = tree1 [S5]
        kernel @k(n: i32) {{ {body} }}"
    );
    let module = parse_module(&text).unwrap_or_else(|e| panic!("{e}"));
    match split(
        module,
        &[Some(Arc::new(grid)), None],
        Options::default(),
        false,
    ) {
        Ok(done) => {
            let env = &done.module.env;
            let func = done.module.kernel().unwrap();
            verify(func, env, Stage::Structured).unwrap_or_else(|e| panic!("{e:?}"));
            let exchanges = done.exchanges.iter().map(|e| described(env, e));
            let exchanges: Vec<String> = exchanges.collect();
            format!("{}\n{}", print_function(func, env), exchanges.join("\n"))
        }
        Err(SplitError::Mistake(mistake)) => mistake.message,
        Err(SplitError::Broken(broken)) => panic!("{broken}"),
    }
}

fn described(env: &aerogel_ir::Env, exchange: &Exchange) -> String {
    let name = |field| env.fields[field].name.as_str();
    let reads = exchange.reads.iter();
    let reads: Vec<String> = reads.map(|(f, w)| format!("{} {w:?}", name(*f))).collect();
    let adds = exchange.adds.iter();
    let adds: Vec<String> = adds.map(|(f, w)| format!("{} {w:?}", name(*f))).collect();
    let writes: Vec<&str> = exchange.writes.iter().map(|&f| name(f)).collect();
    let sums = exchange.sums.iter();
    let sums: Vec<String> = sums
        .map(|sum| format!("{} {:?} {}", name(sum.target), sum.component, sum.op.name()))
        .collect();
    let adds = match adds.is_empty() {
        true => String::new(),
        false => format!("; adds to {}", adds.join(", ")),
    };
    format!(
        "reads {}{adds}; writes {}; sums {}",
        reads.join(", "),
        writes.join(", "),
        sums.join(", ")
    )
}

#[test]
fn neighbours_of_a_periodic_axis() {
    insta::assert_snapshot!(text(1, false, "
        parallel_cells tree0.S1 (v0: i32, v1: i32) {
            v2: i32 = const 7
            v3: i32 = add v0, v2
            v4: i32 = const 1
            v5: i32 = add v3, v4
            v6: i32 = const 12
            v7: i32 = mod v5, v6
            v8: ref<f32> = field_at @f, [v7, v1]
            v9: f32 = load v8
            v10: i32 = const 11
            v11: i32 = add v3, v10
            v12: i32 = mod v11, v6
            v13: ref<f32> = field_at @f, [v12, v1]
            v14: f32 = load v13
            v15: f32 = add v9, v14
            v16: ref<f32> = field_at @g, [v3, v1]
            store v16, v15
            yield []
        }
        yield []"), @"
    kernel @k(n: i32) {
        v0: i32 = const -7
        v1: i32 = const 0
        v2: i32 = const 5
        v3: i32 = const 6
        v4: i32 = const 1
        parallel [v4, v1], [v2, v3] exchange=0 (v5: i32, v6: i32) {
            v7: i32 = const 7
            v8: i32 = add v5, v7
            v9: i32 = const 1
            v10: i32 = add v8, v9
            v11: i32 = const 12
            v12: i32 = mod v10, v11
            v13: ref<f32> = field_at @f, [v10, v6]
            v14: f32 = load v13
            v15: i32 = const 11
            v16: i32 = add v8, v15
            v17: i32 = mod v16, v11
            v18: i32 = const 12
            v19: i32 = sub v16, v18
            v20: ref<f32> = field_at @f, [v19, v6]
            v21: f32 = load v20
            v22: f32 = add v14, v21
            v23: ref<f32> = field_at @g, [v8, v6]
            store v23, v22
            yield []
        }
        yield []
    }

    reads f [[1, 1], [0, 0]]; writes g; sums
    ");
}

#[test]
fn bounds_of_a_launch() {
    insta::assert_snapshot!(text(2, false, "
        n: i32 = arg a0
        lo: i32 = const 1
        hi: i32 = const 6
        two: i32 = const 2
        parallel [lo, lo], [n, hi] (v0: i32, v1: i32) {
            v2: i32 = sub v0, two
            zero: i32 = const 0
            v3: i32 = max v2, zero
            v4: ref<f32> = field_at @f, [v3, v1]
            v5: f32 = load v4
            v6: ref<f32> = field_at @f, [v0, v1]
            store v6, v5
            yield []
        }
        yield []"), @"
    kernel @k(n: i32) {
        v0: i32 = arg a0
        v1: i32 = const 1
        v2: i32 = const 6
        v3: i32 = const 2
        v4: i32 = const 8
        parallel [v4, v1], [v0, v2] exchange=0 (v5: i32, v6: i32) {
            v7: i32 = sub v5, v3
            v8: i32 = const 0
            v9: i32 = max v7, v8
            v10: ref<f32> = field_at @f, [v9, v6]
            v11: f32 = load v10
            v12: ref<f32> = field_at @f, [v5, v6]
            store v12, v11
            yield []
        }
        yield []
    }

    reads f [[2, 0], [0, 0]]; writes f; sums
    ");
}

#[test]
fn sums_of_fields_and_variables() {
    insta::assert_snapshot!(text(1, false, "
        v0: ref<f32> = local
        parallel_cells tree0.S1 (v1: i32, v2: i32) {
            v3: i32 = const 7
            v4: i32 = add v1, v3
            v5: ref<f32> = field_at @f, [v4, v2]
            v6: f32 = load v5
            v7: f32 = atomic_sub v0, v6
            v8: ref<f32> = field_at @total, []
            v9: f32 = atomic_max v8, v6
            k: i32 = const 1
            place: ref<vec<2, f32>> = field_at @pair, []
            second: ref<f32> = elem_ref place, [k]
            again: f32 = atomic_min second, v6
            yield []
        }
        v10: f32 = load v0
        v11: ref<f32> = field_at @total, []
        store v11, v10
        yield []"), @"
    kernel @k(n: i32) {
        v0: ref<f32> = field_at @sum0, []
        v1: f32 = const 0.0
        store v0, v1
        v2: i32 = const -7
        v3: i32 = const 0
        v4: i32 = const 5
        v5: i32 = const 6
        v6: i32 = const 1
        parallel [v6, v3], [v4, v5] exchange=0 (v7: i32, v8: i32) {
            v9: i32 = const 7
            v10: i32 = add v9, v7
            v11: ref<f32> = field_at @f, [v10, v8]
            v12: f32 = load v11
            v13: f32 = atomic_sub v0, v12
            v14: ref<f32> = field_at @total, []
            v15: f32 = atomic_max v14, v12
            v16: i32 = const 1
            v17: ref<vec<2, f32>> = field_at @pair, []
            v18: ref<f32> = elem_ref v17, [v16]
            v19: f32 = atomic_min v18, v12
            yield []
        }
        v20: f32 = load v0
        v21: ref<f32> = field_at @total, []
        store v21, v20
        yield []
    }

    reads ; writes ; sums total None atomic_max, pair Some(1) atomic_min, sum0 None atomic_add
    ");
}

#[test]
fn what_processes_would_have_to_know() {
    // Writes `f[i, j]`, after something else.
    let loop_of = |before: &str, index: &str| {
        let body = format!(
            "n: i32 = arg a0 lo: i32 = const 0 hi: i32 = const 12 six: i32 = const 6 one: i32 = const 1
            parallel [lo, lo], [hi, six] (v0: i32, v1: i32) {{
                up: i32 = add v0, one
                unknown: i32 = add v0, n
                swapped: i32 = add v1, lo
                twelve: i32 = const 11
                other: i32 = mod up, twelve
                {before}
                w: ref<f32> = field_at @f, [{index}, v1]
                x: f32 = const 1.0
                store w, x
                yield []
            }}
            yield []"
        );
        text(1, false, &body)
    };
    let read = |index: &str| {
        let before = format!(
            "r: ref<f32> = field_at @g, [{index}, v1] y: f32 = load r w2: ref<f32> = field_at @g, [v0, v1] store w2, y"
        );
        loop_of(&before, "v0")
    };
    let all = [
        loop_of("", "unknown"),
        read("unknown"),
        read("swapped"),
        read("other"),
        loop_of(
            "u: ref<f32> = field_at @g, [up, v1] z: f32 = const 2.0 store u, z",
            "v0",
        ),
        loop_of(
            "u: ref<f32> = field_at @h, [v0] z: f32 = const 2.0 store u, z",
            "v0",
        ),
        loop_of(
            "u: ref<f32> = field_at @h, [v0] z: f32 = random w2: f32 = atomic_add u, z",
            "v0",
        ),
        loop_of(
            "u: ref<f32> = field_at @h, [v0] z: f32 = load u w2: f32 = atomic_add u, z",
            "v0",
        ),
        loop_of(
            "up2: i32 = add up, one u: ref<f32> = field_at @g, [up2, v1] z: f32 = load u w2: ref<f32> = field_at @g, [v0, v1] store w2, z",
            "v0",
        ),
        text(
            1,
            false,
            "v0: i32 = const 5 v1: ref<f32> = field_at @f, [v0, v0] v2: f32 = load v1 v3: ref<f32> = field_at @total, [] store v3, v2 yield []",
        ),
    ];
    insta::assert_snapshot!(all.join("\n"), @"
    the index of a store along axis 0 of a split grid is not a counter of the parallel loop plus a constant
    how far this index of `g` along axis 0 lies from the loop's own cell is not known
    how far this index of `g` along axis 0 lies from the loop's own cell is not known
    how far this index of `g` along axis 0 lies from the loop's own cell is not known
    a loop stores to cells at several distances along axis 0 of a split grid
    a loop over split fields writes to a field that is not split: each process would have its own part of it
    a loop over split fields draws random numbers, which each process would repeat
    a sum over all processes is read in the loop that makes it
    `g` is read 2 cells away along axis 0 of its grid, whose halo is 1 wide
    an element of a split field is accessed outside of a parallel loop: one process has it
    ");
}

#[test]
fn trusted_indices_need_the_whole_halo() {
    insta::assert_snapshot!(text(2, true, "
        n: i32 = arg a0
        parallel_cells tree0.S1 (v0: i32, v1: i32) {
            six: i32 = const 6
            v2: i32 = add v0, six
            v3: i32 = add v2, n
            v4: ref<f32> = field_at @f, [v3, v1]
            v5: f32 = load v4
            v6: ref<f32> = field_at @g, [v2, v1]
            store v6, v5
            yield []
        }
        yield []"), @"
    kernel @k(n: i32) {
        v0: i32 = arg a0
        v1: i32 = const -6
        v2: i32 = const 0
        v3: i32 = const 6
        v4: i32 = const 6
        v5: i32 = const 2
        parallel [v5, v2], [v3, v4] exchange=0 (v6: i32, v7: i32) {
            v8: i32 = const 6
            v9: i32 = add v6, v8
            v10: i32 = add v0, v9
            v11: ref<f32> = field_at @f, [v10, v7]
            v12: f32 = load v11
            v13: ref<f32> = field_at @g, [v9, v7]
            store v13, v12
            yield []
        }
        yield []
    }

    reads f [[2, 2], [0, 0]]; writes g; sums
    ");
}

/// The exchange of a loop over cells whose cell is `v3, v1`, or the mistake.
fn exchange_of(width: i64, body: &str) -> String {
    let first = 8 - width;
    let body = format!(
        "parallel_cells tree0.S1 (v0: i32, v1: i32) {{
            first: i32 = const {first}
            v3: i32 = add v0, first
            one: i32 = const 1
            two: i32 = const 2
            twelve: i32 = const 12
            up: i32 = add v3, one
            wrapped: i32 = mod up, twelve
            down: i32 = sub v3, one
            down2: i32 = sub v3, two
            own: ref<f32> = field_at @g, [v3, v1]
            x: f32 = load own
            {body}
            yield []
        }}
        yield []"
    );
    let all = text(width, false, &body);
    all.lines().last().unwrap_or_default().to_owned()
}

#[test]
fn additions_to_neighbours() {
    let both = "a: ref<f32> = field_at @f, [wrapped, v1] o: f32 = atomic_add a, x
        b: ref<f32> = field_at @f, [down, v1] p: f32 = atomic_add b, x";
    let one = "a: ref<f32> = field_at @f, [down, v1] o: f32 = atomic_add a, x";
    let far = "b: ref<f32> = field_at @f, [down2, v1] p: f32 = atomic_add b, x";
    let read = "c: ref<f32> = field_at @f, [up, v1] y: f32 = load c store own, y";
    let used = "b: ref<f32> = field_at @f, [down2, v1] p: f32 = atomic_add b, x store own, p";
    let found = [
        exchange_of(1, both),
        exchange_of(1, one),
        exchange_of(1, far),
        exchange_of(2, &format!("{one} {far}")),
        exchange_of(1, &format!("{both} {read}")),
        exchange_of(1, used),
    ];
    insta::assert_snapshot!(found.join("\n"), @"
    reads ; adds to f [[1, 1], [0, 0]]; writes f; sums 
    reads ; adds to f [[1, 0], [0, 0]]; writes f; sums 
    `f` is added to 2 cells away along axis 0 of its grid, whose halo is 1 wide
    reads ; adds to f [[2, 0], [0, 0]]; writes f; sums 
    a loop adds to neighbours' cells of `f`, and reads neighbours' cells of it
    a loop stores to cells at several distances along axis 0 of a split grid
    ");
}

/// A loop over particles, of which this process has the last four of twelve, and cells of a grid, of which it has those from 3.
fn with_particles(is_trusted: bool, body: &str) -> String {
    let rooms = SplitAxis {
        size: 12,
        lo: 8,
        hi: 12,
        width: 0,
        is_periodic: false,
    };
    let cells = SplitAxis {
        size: 6,
        lo: 3,
        hi: 6,
        width: 2,
        is_periodic: false,
    };
    let grid = |axis, is_trusted| {
        let axes = vec![axis];
        Some(Arc::new(SplitGrid {
            axes,
            is_trusted,
            is_sparse: false,
        }))
    };
    let text = format!(
        "tree0 {{ dense i:4 {{ place x: f32, place v: f32 }} }}
        tree1 {{ dense i:5 {{ place m: f32 }} }}
        field @x: f32 = tree0 [S2] offset [8]
        field @v: f32 = tree0 [S3] offset [8]
        field @m: f32 = tree1 [S2] offset [1]
        kernel @k() {{
            parallel_cells tree0.S1 (v0: i32) {{
                v1: i32 = const 8
                v2: i32 = add v0, v1
                v3: ref<f32> = field_at @x, [v2]
                v4: f32 = load v3
                v5: i32 = cast v4
                v6: ref<f32> = field_at @v, [v2]
                v7: ref<f32> = field_at @m, [v5]
                {body}
                yield []
            }}
            yield []
        }}"
    );
    let module = parse_module(&text).unwrap_or_else(|e| panic!("{e}"));
    let grids = [grid(rooms, false), grid(cells, is_trusted)];
    match split(module, &grids, Options::default(), false) {
        Ok(done) => {
            let env = &done.module.env;
            let exchanges: Vec<_> = done.exchanges.iter().map(|e| described(env, e)).collect();
            exchanges.join("\n")
        }
        Err(SplitError::Mistake(mistake)) => mistake.message,
        Err(SplitError::Broken(broken)) => panic!("{broken}"),
    }
}

#[test]
fn cells_around_particles() {
    let reads = "v8: f32 = load v7
                 store v6, v8";
    let adds = "v8: f32 = atomic_add v7, v4";
    let found = [
        with_particles(true, reads),
        with_particles(true, adds),
        with_particles(true, "store v7, v4"),
        with_particles(false, reads),
    ];
    insta::assert_snapshot!(found.join("\n"), @"
    reads m [[2, 2]]; writes v; sums 
    reads ; adds to m [[2, 2]]; writes m; sums 
    a loop accesses split fields of two grids
    a loop accesses split fields of two grids
    ");
}
