//! Kernels over sparse trees, as text.

use std::sync::Arc;

use aerogel_ir::{Stage, parse_module, print_function, verify};

use crate::Options;
use crate::split::{SplitAxis, SplitError, SplitGrid, split};

/// Three processes share 12 x 6 blocks of 8 x 8 cells along the first axis. This one has the blocks 4 to 7, and one of each neighbour.
fn text(body: &str) -> String {
    let axis = |size, lo, hi, width| SplitAxis {
        size,
        lo,
        hi,
        width,
        is_periodic: true,
    };
    let grid = SplitGrid {
        axes: vec![axis(12, 4, 8, 1), axis(6, 0, 6, 0)],
        is_trusted: true,
        is_sparse: true,
    };
    let text = format!(
        "tree0 {{ pointer i:12 j:6 {{ bitmasked i:8 j:8 {{ place f: f32, place g: f32 }} }} }}
        field @f: f32 = tree0 [S3]
        field @g: f32 = tree0 [S4]
        kernel @k(n: i32) {{ {body} }}"
    );
    let module = parse_module(&text).unwrap_or_else(|e| panic!("{e}"));
    match split(module, &[Some(Arc::new(grid))], Options::default(), false) {
        Ok(done) => {
            let env = &done.module.env;
            let func = done.module.kernel().unwrap();
            verify(func, env, Stage::Structured).unwrap_or_else(|e| panic!("{e:?}"));
            let exchanges = done.exchanges.iter().map(|exchange| {
                let reads = exchange.reads.iter().chain(&exchange.adds);
                let reads = reads.map(|(f, w)| format!("{} {w:?}", env.fields[*f].name));
                let tree = exchange.trees[0];
                format!(
                    "exchanges [{}]; reads cells: {}; changes cells: {}",
                    reads.collect::<Vec<_>>().join(", "),
                    tree.reads,
                    tree.changes
                )
            });
            let exchanges: Vec<String> = exchanges.collect();
            format!("{}\n{}", print_function(func, env), exchanges.join("\n"))
        }
        Err(SplitError::Mistake(mistake)) => mistake.message,
        Err(SplitError::Broken(broken)) => panic!("{broken}"),
    }
}

#[test]
fn own_active_cells() {
    insta::assert_snapshot!(text("
        parallel_cells tree0.S2 (v0: i32, v1: i32) {
            v2: i32 = const 1
            v3: i32 = add v0, v2
            v4: i32 = const 96
            v5: i32 = mod v3, v4
            v6: ref<f32> = field_at @f, [v5, v1]
            v7: f32 = load v6
            v8: ref<f32> = field_at @g, [v0, v1]
            store v8, v7
            yield []
        }
        yield []"), @"
    kernel @k(n: i32) {
        parallel_cells tree0.S2 exchange=0 (v0: i32, v1: i32) {
            v2: i32 = const 32
            v3: u1 = ge v0, v2
            v4: i32 = const 64
            v5: u1 = lt v0, v4
            v6: u1 = and v3, v5
            if v6 {
                v7: i32 = const 1
                v8: i32 = add v0, v7
                v9: i32 = const 96
                v10: i32 = mod v8, v9
                v11: ref<f32> = field_at @f, [v10, v1]
                v12: f32 = load v11
                v13: ref<f32> = field_at @g, [v0, v1]
                store v13, v12
                yield []
            } {
                yield []
            }
            yield []
        }
        yield []
    }

    exchanges [f [[0, 1], [0, 0]]]; reads cells: true; changes cells: false
    ");
}

#[test]
fn cells_that_become_active() {
    let adds = |by: &str, other: &str| {
        text(&format!(
            "parallel_cells tree0.S2 (v0: i32, v1: i32) {{
                v2: i32 = const {by}
                v3: i32 = add v0, v2
                v4: ref<f32> = field_at @f, [v3, v1]
                v5: f32 = const 1.0
                v6: f32 = atomic_add v4, v5
                v7: i32 = const {other}
                v8: i32 = add v0, v7
                v9: ref<f32> = field_at @f, [v8, v1]
                v10: f32 = atomic_add v9, v5
                yield []
            }}
            yield []"
        ))
    };
    let end = "exchanges [f [[8, 8], [0, 0]]]; reads cells: true; changes cells: true";
    assert!(adds("-8", "8").ends_with(end));
    insta::assert_snapshot!(adds("-8", "9"), @"`f` is added to 9 cells away along axis 0 of its grid, whose halo is 8 wide");
    // The process that has the cell runs the iteration.
    let end = "exchanges []; reads cells: true; changes cells: true";
    assert!(adds("8", "8").ends_with(end));
    insta::assert_snapshot!(adds("9", "9"), @"a loop over active cells stores to cells 9 away along axis 0, and the halo is 8 wide");
}

#[test]
fn blocks_of_cells() {
    let of_blocks = text(
        "
        parallel_cells tree0.S1 (v0: i32, v1: i32) {
            v2: i32 = const 8
            v3: i32 = mul v0, v2
            v4: i32 = mul v1, v2
            v5: ref<f32> = field_at @f, [v3, v4]
            v6: f32 = load v5
            v7: f32 = const 0.0
            v8: u1 = lt v6, v7
            if v8 {
                deactivate tree0.S1, [v0, v1]
                yield []
            } {
                yield []
            }
            yield []
        }
        yield []",
    );
    assert!(
        of_blocks.contains("v2: i32 = const 4\n        v3: u1 = ge v0, v2"),
        "{of_blocks}"
    );
    assert!(of_blocks.ends_with("exchanges []; reads cells: false; changes cells: true"));
    let of_elements = |by: &str| {
        text(&format!(
            "parallel_cells tree0.S2 (v0: i32, v1: i32) {{
                v2: i32 = const {by}
                v3: i32 = add v0, v2
                v4: i32 = const 8
                v5: i32 = floordiv v3, v4
                v6: i32 = floordiv v1, v4
                v7: u1 = is_active tree0.S1, [v5, v6]
                v8: ref<f32> = field_at @g, [v0, v1]
                v9: f32 = cast v7
                store v8, v9
                yield []
            }}
            yield []"
        ))
    };
    assert!(of_elements("0").ends_with("exchanges []; reads cells: false; changes cells: false"));
    assert!(of_elements("8").ends_with("exchanges []; reads cells: true; changes cells: false"));
    insta::assert_snapshot!(of_elements("9"), @"a node is read 2 cells away along axis 0 of its grid, whose halo is 1 wide");
}

#[test]
fn indices_of_unknown_cells() {
    let of = |indices: &str| {
        text(&format!(
            "parallel_cells tree0.S2 (v0: i32, v1: i32) {{
                n: i32 = arg a0
                v2: i32 = add v0, n
                v3: i32 = const 8
                v4: i32 = mul v0, v3
                {indices}
                yield []
            }}
            yield []"
        ))
    };
    let read = "v5: ref<f32> = field_at @f, [v2, v1]
                v6: f32 = load v5
                v7: ref<f32> = field_at @g, [v0, v1]
                store v7, v6";
    insta::assert_snapshot!(of(read), @"how far this index of `f` along axis 0 lies from the loop's own cell is not known");
    let message = of("deactivate tree0.S1, [v4, v1]");
    assert!(
        message.starts_with("which cells this index of a node along axis 0 lies in is not known")
    );
    let swapped = "v5: f32 = const 1.0
                v6: ref<f32> = field_at @f, [v1, v0]
                store v6, v5";
    insta::assert_snapshot!(of(swapped), @"the index along axis 0 of a store is not the counter of that axis plus a number");
}
