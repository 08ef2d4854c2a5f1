use crate::testing::{check_pass, check_passes};

#[test]
fn reading_finds_and_writing_obtains() {
    check_pass!("lower_access", "
        tree0 { pointer i:4 { bitmasked i:8 { place x: f32 } } }
        field @x: f32 = tree0 [S3]
        kernel @k() {
            task serial {
                yield []
            } {
                v0: i32 = const 9
                v1: ref<f32> = field_at @x, [v0]
                v2: f32 = load v1
                store v1, v2
                v3: f32 = load v1
                yield []
            }
            yield []
        }", @"
        kernel @k() {
            task serial {
                yield []
            } {
                v0: i32 = const 9
                v1: cell<tree0.S0> = root tree0
                v2: container<tree0.S1> = child tree0.S1, v1
                v3: i32 = const 3
                v4: i32 = shr v0, v3
                v5: i64 = linearize tree0.S1, [v4]
                v6: cell<tree0.S1> = find tree0.S1, v2, v5
                v7: container<tree0.S2> = child tree0.S2, v6
                v8: i32 = const 7
                v9: i32 = and v0, v8
                v10: i64 = linearize tree0.S2, [v9]
                v11: cell<tree0.S2> = lookup tree0.S2, v7, v10
                v12: ref<f32> = child tree0.S3, v11
                v13: f32 = load v12
                v14: cell<tree0.S0> = root tree0
                v15: container<tree0.S1> = child tree0.S1, v14
                v16: i32 = const 3
                v17: i32 = shr v0, v16
                v18: i64 = linearize tree0.S1, [v17]
                v19: cell<tree0.S1> = obtain tree0.S1, v15, v18
                v20: container<tree0.S2> = child tree0.S2, v19
                v21: i32 = const 7
                v22: i32 = and v0, v21
                v23: i64 = linearize tree0.S2, [v22]
                v24: cell<tree0.S2> = obtain tree0.S2, v20, v23
                v25: ref<f32> = child tree0.S3, v24
                store v25, v13
                v26: ref<f32> = child tree0.S3, v24
                v27: f32 = load v26
                yield []
            }
            yield []
        }
        ");
}

#[test]
fn outside_reads_zero_and_writing_fails() {
    check_pass!("lower_access", "
        tree0 { pointer i:4 j:4 { dense i:8 { place x: f32 } } }
        field @x: f32 = tree0 [S3] offset [-2, 0]
        kernel @k(v0: i32) {
            task serial {
                yield []
            } {
                v0: i32 = arg a0
                v1: i32 = const 3
                v2: ref<f32> = field_at @x, [v0, v1]
                v3: f32 = load v2
                v4: f32 = atomic_add v2, v3
                yield []
            }
            yield []
        }", @r#"
            kernel @k(v0: i32) {
                task serial {
                    yield []
                } {
                    v0: i32 = arg a0
                    v1: i32 = const 3
                    v2: i32 = const -2
                    v3: i32 = sub v0, v2
                    v4: i32 = const 0
                    v5: u1 = ge v3, v4
                    v6: i32 = const 32
                    v7: u1 = lt v3, v6
                    v8: u1 = and v5, v7
                    v9: i32 = const 0
                    v10: i32 = select v8, v3, v9
                    v11: cell<tree0.S0> = root tree0
                    v12: container<tree0.S1> = child tree0.S1, v11
                    v13: i32 = const 3
                    v14: i32 = shr v10, v13
                    v15: i64 = linearize tree0.S1, [v14, v1]
                    v16: cell<tree0.S1> = find tree0.S1, v12, v15
                    v17: container<tree0.S2> = child tree0.S2, v16
                    v18: i32 = const 7
                    v19: i32 = and v10, v18
                    v20: i64 = linearize tree0.S2, [v19]
                    v21: cell<tree0.S2> = lookup tree0.S2, v17, v20
                    v22: ref<f32> = child tree0.S3, v21
                    v23: f32 = load v22
                    v24: f32 = const 0.0
                    v25: f32 = select v8, v23, v24
                    v26: i32 = const 0
                    v27: u1 = ge v3, v26
                    v28: i32 = const 32
                    v29: u1 = lt v3, v28
                    v30: u1 = and v27, v29
                    v31: i32 = const -2
                    v32: i32 = add v3, v31
                    assert v30, bounds, "index ({}, {}) is out of bounds for field `x` with indices (-2 to 29, 0 to 3)", [v32, v1]
                    v33: cell<tree0.S0> = root tree0
                    v34: container<tree0.S1> = child tree0.S1, v33
                    v35: i32 = const 3
                    v36: i32 = shr v3, v35
                    v37: i64 = linearize tree0.S1, [v36, v1]
                    v38: cell<tree0.S1> = obtain tree0.S1, v34, v37
                    v39: container<tree0.S2> = child tree0.S2, v38
                    v40: i32 = const 7
                    v41: i32 = and v3, v40
                    v42: i64 = linearize tree0.S2, [v41]
                    v43: cell<tree0.S2> = lookup tree0.S2, v39, v42
                    v44: ref<f32> = child tree0.S3, v43
                    v45: f32 = atomic_add v44, v25
                    yield []
                }
                yield []
            }
            "#);
}

#[test]
fn neighbours_share_what_was_found() {
    check_passes!(&["lower_access", "cse", "dce"], "
        tree0 { pointer i:4 { dense i:8 { place x: f32, place y: f32 } } }
        field @x: f32 = tree0 [S3]
        field @y: f32 = tree0 [S4]
        field @z: vec<2, f32> = tree0 [S3, S4]
        kernel @k() -> f32 {
            task serial {
                yield []
            } {
                v0: i32 = const 9
                v1: ref<f32> = field_at @x, [v0]
                v2: ref<f32> = field_at @y, [v0]
                v3: f32 = load v1
                v4: f32 = load v2
                v5: f32 = add v3, v4
                return [v5]
            }
            yield []
        }", @"
        kernel @k() -> f32 {
            task serial {
                yield []
            } {
                v0: i32 = const 9
                v1: cell<tree0.S0> = root tree0
                v2: container<tree0.S1> = child tree0.S1, v1
                v3: i32 = const 3
                v4: i32 = shr v0, v3
                v5: i64 = linearize tree0.S1, [v4]
                v6: cell<tree0.S1> = find tree0.S1, v2, v5
                v7: container<tree0.S2> = child tree0.S2, v6
                v8: i32 = const 7
                v9: i32 = and v0, v8
                v10: i64 = linearize tree0.S2, [v9]
                v11: cell<tree0.S2> = lookup tree0.S2, v7, v10
                v12: ref<f32> = child tree0.S3, v11
                v13: f32 = load v12
                v14: ref<f32> = child tree0.S4, v11
                v15: f32 = load v14
                v16: f32 = add v13, v15
                return [v16]
            }
            yield []
        }
        ");
}

#[test]
fn what_was_found_is_forgotten_when_a_loop_may_activate() {
    check_pass!("lower_access", "
        tree0 { pointer i:4 { place x: i32 } }
        field @x: i32 = tree0 [S2]
        kernel @k() {
            task serial {
                yield []
            } {
                v0: i32 = const 0
                v1: i32 = const 4
                v2: i32 = const 1
                v3: ref<i32> = field_at @x, [v0]
                v4: i32 = load v3
                for v0, v1, v2, [] (v5: i32) {
                    v6: i32 = load v3
                    v7: i32 = add v6, v2
                    v8: ref<i32> = field_at @x, [v5]
                    store v8, v7
                    yield []
                }
                v9: i32 = load v3
                yield []
            }
            yield []
        }", @"
        kernel @k() {
            task serial {
                yield []
            } {
                v0: i32 = const 0
                v1: i32 = const 4
                v2: i32 = const 1
                v3: cell<tree0.S0> = root tree0
                v4: container<tree0.S1> = child tree0.S1, v3
                v5: i64 = linearize tree0.S1, [v0]
                v6: cell<tree0.S1> = find tree0.S1, v4, v5
                v7: ref<i32> = child tree0.S2, v6
                v8: i32 = load v7
                for v0, v1, v2, [] (v9: i32) {
                    v10: cell<tree0.S0> = root tree0
                    v11: container<tree0.S1> = child tree0.S1, v10
                    v12: i64 = linearize tree0.S1, [v0]
                    v13: cell<tree0.S1> = find tree0.S1, v11, v12
                    v14: ref<i32> = child tree0.S2, v13
                    v15: i32 = load v14
                    v16: i32 = add v15, v2
                    v17: cell<tree0.S0> = root tree0
                    v18: container<tree0.S1> = child tree0.S1, v17
                    v19: i64 = linearize tree0.S1, [v9]
                    v20: cell<tree0.S1> = obtain tree0.S1, v18, v19
                    v21: ref<i32> = child tree0.S2, v20
                    store v21, v16
                    yield []
                }
                v22: cell<tree0.S0> = root tree0
                v23: container<tree0.S1> = child tree0.S1, v22
                v24: i64 = linearize tree0.S1, [v0]
                v25: cell<tree0.S1> = find tree0.S1, v23, v24
                v26: ref<i32> = child tree0.S2, v25
                v27: i32 = load v26
                yield []
            }
            yield []
        }
        ");
}

#[test]
fn questions_and_lists() {
    check_pass!("lower_access", "
        tree0 { pointer i:4 { dense i:8 { dynamic j:100 chunk=8 { place x: i32 } } } }
        field @x: i32 = tree0 [S4]
        kernel @k() {
            task serial {
                yield []
            } {
                v0: i32 = const 9
                v1: i32 = const 1
                v2: u1 = is_active tree0.S1, [v1]
                v3: i32 = append tree0.S3, [v0]
                v4: ref<i32> = field_at @x, [v0, v3]
                store v4, v0
                v5: i32 = length tree0.S3, [v0]
                deactivate tree0.S3, [v0]
                activate tree0.S1, [v1]
                yield []
            }
            yield []
        }", @r#"
        kernel @k() {
            task serial {
                yield []
            } {
                v0: i32 = const 9
                v1: i32 = const 1
                v2: cell<tree0.S0> = root tree0
                v3: container<tree0.S1> = child tree0.S1, v2
                v4: i64 = linearize tree0.S1, [v1]
                v5: u1 = cell_is_active tree0.S1, v3, v4
                v6: cell<tree0.S0> = root tree0
                v7: container<tree0.S1> = child tree0.S1, v6
                v8: i32 = const 3
                v9: i32 = shr v0, v8
                v10: i64 = linearize tree0.S1, [v9]
                v11: cell<tree0.S1> = obtain tree0.S1, v7, v10
                v12: container<tree0.S2> = child tree0.S2, v11
                v13: i32 = const 7
                v14: i32 = and v0, v13
                v15: i64 = linearize tree0.S2, [v14]
                v16: cell<tree0.S2> = lookup tree0.S2, v12, v15
                v17: container<tree0.S3> = child tree0.S3, v16
                v18: i64 = extend tree0.S3, v17
                v19: i64 = const 0
                v20: u1 = ge v18, v19
                assert v20, bounds, "the dynamic node S3 of `x` is full: the list at ({}) has 100 elements already", [v0]
                v21: cell<tree0.S3> = find tree0.S3, v17, v18
                v22: i32 = cast v18
                v23: ref<i32> = child tree0.S4, v21
                store v23, v0
                v24: container<tree0.S3> = child tree0.S3, v16
                v25: i64 = container_length tree0.S3, v24
                v26: i32 = cast v25
                v27: container<tree0.S3> = child tree0.S3, v16
                release_all tree0.S3, v27
                v28: cell<tree0.S0> = root tree0
                v29: container<tree0.S1> = child tree0.S1, v28
                v30: i64 = linearize tree0.S1, [v1]
                v31: cell<tree0.S1> = obtain tree0.S1, v29, v30
                yield []
            }
            yield []
        }
        "#);
}

#[test]
fn a_masked_cell_gives_back_what_it_holds() {
    check_pass!("lower_access", "
        tree0 { bitmasked i:4 { pointer i:2 { place x: i32 } } }
        field @x: i32 = tree0 [S3]
        kernel @k() {
            task serial {
                yield []
            } {
                v0: i32 = const 3
                v1: ref<i32> = field_at @x, [v0]
                store v1, v0
                v2: i32 = const 1
                deactivate tree0.S1, [v2]
                yield []
            }
            yield []
        }", @"
        kernel @k() {
            task serial {
                yield []
            } {
                v0: i32 = const 3
                v1: cell<tree0.S0> = root tree0
                v2: container<tree0.S1> = child tree0.S1, v1
                v3: i32 = const 1
                v4: i32 = shr v0, v3
                v5: i64 = linearize tree0.S1, [v4]
                v6: cell<tree0.S1> = obtain tree0.S1, v2, v5
                v7: container<tree0.S2> = child tree0.S2, v6
                v8: i32 = const 1
                v9: i32 = and v0, v8
                v10: i64 = linearize tree0.S2, [v9]
                v11: cell<tree0.S2> = obtain tree0.S2, v7, v10
                v12: ref<i32> = child tree0.S3, v11
                store v12, v0
                v13: i32 = const 1
                v14: cell<tree0.S0> = root tree0
                v15: container<tree0.S1> = child tree0.S1, v14
                v16: i64 = linearize tree0.S1, [v13]
                v17: cell<tree0.S1> = lookup tree0.S1, v15, v16
                v18: container<tree0.S2> = child tree0.S2, v17
                v19: i64 = const 0
                v20: i64 = const 2
                v21: i64 = const 1
                for v19, v20, v21, [] (v22: i64) {
                    release tree0.S2, v18, v22
                    yield []
                }
                release tree0.S1, v15, v16
                yield []
            }
            yield []
        }
        ");
}

#[test]
fn only_the_component_that_is_written_becomes_active() {
    check_pass!("lower_access", "
        tree0 { hash i:40 { place x: i32 }, bitmasked i:40 { place y: i32 } }
        field @v: vec<2, i32> = tree0 [S2, S4]
        kernel @k(a0: i32) -> i32 {
            task serial {
                yield []
            } {
                v0: i32 = arg a0
                v1: ref<vec<2, i32>> = field_at @v, [v0]
                v2: i32 = const 1
                v3: i32 = and v0, v2
                v4: ref<i32> = elem_ref v1, [v3]
                v5: i32 = atomic_add v4, v0
                return [v5]
            }
            yield []
        }", @r#"
            kernel @k(a0: i32) -> i32 {
                task serial {
                    yield []
                } {
                    v0: i32 = arg a0
                    v1: i32 = const 1
                    v2: i32 = and v0, v1
                    v3: i32 = const 1
                    v4: u1 = eq v2, v3
                    v5: i32 = if v4 {
                        v6: i32 = const 0
                        v7: u1 = ge v0, v6
                        v8: i32 = const 40
                        v9: u1 = lt v0, v8
                        v10: u1 = and v7, v9
                        assert v10, bounds, "index ({}) is out of bounds for field `v` of shape (40)", [v0]
                        v11: cell<tree0.S0> = root tree0
                        v12: container<tree0.S3> = child tree0.S3, v11
                        v13: i64 = linearize tree0.S3, [v0]
                        v14: cell<tree0.S3> = obtain tree0.S3, v12, v13
                        v15: ref<i32> = child tree0.S4, v14
                        v16: i32 = atomic_add v15, v0
                        yield [v16]
                    } {
                        v17: i32 = const 0
                        v18: u1 = ge v0, v17
                        v19: i32 = const 40
                        v20: u1 = lt v0, v19
                        v21: u1 = and v18, v20
                        assert v21, bounds, "index ({}) is out of bounds for field `v` of shape (40)", [v0]
                        v22: cell<tree0.S0> = root tree0
                        v23: container<tree0.S1> = child tree0.S1, v22
                        v24: i64 = linearize tree0.S1, [v0]
                        v25: cell<tree0.S1> = obtain tree0.S1, v23, v24
                        v26: ref<i32> = child tree0.S2, v25
                        v27: i32 = atomic_add v26, v0
                        yield [v27]
                    }
                    return [v5]
                }
                yield []
            }
            "#);
}

#[test]
fn boxes_share_lookups() {
    check_passes!(&["lower_access", "fold", "identities", "cse", "dce"], "
        tree0 { pointer i:4 { dense i:8 { place x: f32 } } }
        field @x: f32 = tree0 [S3]
        func @f(v0: i32, v1: f32) -> f32 {
            v2: i32 = const 1
            v3: i32 = const 2
            v4: i32 = add v0, v2
            v5: i32 = add v0, v3
            v6: ref<f32> = field_at @x, [v0]
            v7: ref<f32> = field_at @x, [v4]
            v8: ref<f32> = field_at @x, [v5]
            v9: f32 = load v6
            v10: f32 = load v7
            v11: f32 = load v8
            v12: f32 = add v9, v10
            v13: f32 = add v12, v11
            store v6, v1
            store v7, v1
            store v8, v1
            yield [v13]
        }", @r#"
            func @f(v0: i32, v1: f32) -> f32 {
                v2: i32 = const 1
                v3: i32 = const 2
                v4: i32 = add v0, v2
                v5: i32 = add v0, v3
                v6: i32 = const 0
                v7: u1 = ge v0, v6
                v8: i32 = const 32
                v9: u1 = lt v0, v8
                v10: u1 = and v7, v9
                v11: i32 = select v10, v0, v6
                v12: cell<tree0.S0> = root tree0
                v13: container<tree0.S1> = child tree0.S1, v12
                v14: i32 = const 3
                v15: i32 = shr v11, v14
                v16: i64 = linearize tree0.S1, [v15]
                v17: cell<tree0.S1> = find tree0.S1, v13, v16
                v18: container<tree0.S2> = child tree0.S2, v17
                v19: i32 = const 7
                v20: i32 = and v11, v19
                v21: i64 = linearize tree0.S2, [v20]
                v22: cell<tree0.S2> = lookup tree0.S2, v18, v21
                v23: ref<f32> = child tree0.S3, v22
                v24: f32 = load v23
                v25: f32 = const 0.0
                v26: f32 = select v10, v24, v25
                v27: u1 = ge v4, v6
                v28: u1 = lt v4, v8
                v29: u1 = and v27, v28
                v30: i32 = select v29, v4, v6
                v31: i32 = and v0, v19
                v32: u1 = ge v31, v19
                v33: u1 = ge v5, v6
                v34: u1 = lt v5, v8
                v35: u1 = and v33, v34
                v36: i32 = select v35, v5, v6
                v37: i32 = shr v36, v14
                v38: i64 = linearize tree0.S1, [v37]
                v39: cell<tree0.S1> = find tree0.S1, v13, v38
                v40: cell<tree0.S1> = select v32, v39, v17
                v41: container<tree0.S2> = child tree0.S2, v40
                v42: i32 = and v19, v30
                v43: i64 = linearize tree0.S2, [v42]
                v44: cell<tree0.S2> = lookup tree0.S2, v41, v43
                v45: ref<f32> = child tree0.S3, v44
                v46: f32 = load v45
                v47: f32 = select v29, v46, v25
                v48: container<tree0.S2> = child tree0.S2, v39
                v49: i32 = and v19, v36
                v50: i64 = linearize tree0.S2, [v49]
                v51: cell<tree0.S2> = lookup tree0.S2, v48, v50
                v52: ref<f32> = child tree0.S3, v51
                v53: f32 = load v52
                v54: f32 = select v35, v53, v25
                v55: f32 = add v26, v47
                v56: f32 = add v55, v54
                assert v10, bounds, "index ({}) is out of bounds for field `x` of shape (32)", [v0]
                v57: i32 = shr v0, v14
                v58: i64 = linearize tree0.S1, [v57]
                v59: cell<tree0.S1> = obtain tree0.S1, v13, v58
                v60: container<tree0.S2> = child tree0.S2, v59
                v61: i64 = linearize tree0.S2, [v31]
                v62: cell<tree0.S2> = lookup tree0.S2, v60, v61
                v63: ref<f32> = child tree0.S3, v62
                store v63, v1
                assert v29, bounds, "index ({}) is out of bounds for field `x` of shape (32)", [v4]
                assert v35, bounds, "index ({}) is out of bounds for field `x` of shape (32)", [v5]
                v64: i32 = shr v5, v14
                v65: i64 = linearize tree0.S1, [v64]
                v66: cell<tree0.S1> = obtain tree0.S1, v13, v65
                v67: cell<tree0.S1> = select v32, v66, v59
                v68: container<tree0.S2> = child tree0.S2, v67
                v69: i32 = and v4, v19
                v70: i64 = linearize tree0.S2, [v69]
                v71: cell<tree0.S2> = lookup tree0.S2, v68, v70
                v72: ref<f32> = child tree0.S3, v71
                store v72, v1
                v73: container<tree0.S2> = child tree0.S2, v66
                v74: i32 = and v5, v19
                v75: i64 = linearize tree0.S2, [v74]
                v76: cell<tree0.S2> = lookup tree0.S2, v73, v75
                v77: ref<f32> = child tree0.S3, v76
                store v77, v1
                yield [v56]
            }
            "#);
}

/// A thread that appends makes the list longer before the new cell has memory, so the loop's own cell may
/// have none when it is written.
#[test]
fn a_loop_over_a_list_that_grows() {
    check_passes!(&["list_struct_for", "offload", "lower_access", "cse", "dce"], "
        tree0 { dense i:4 { dynamic j:8 chunk=8 { place x: i32 } } }
        field @x: i32 = tree0 [S3]
        kernel @k() {
            parallel_cells tree0.S2 (v0: i32, v1: i32) {
                v2: i32 = append tree0.S2, [v1]
                v3: ref<i32> = field_at @x, [v0, v1]
                store v3, v0
                yield []
            }
            yield []
        }", @r#"
            kernel @k() {
                task range {
                    v0: i64 = const 0
                    v1: i64 = const 4
                    yield [v0, v1]
                } {
                    each (v2: i64) {
                        v3: cell<tree0.S0> = root tree0
                        v4: i32 = cast v2
                        v5: container<tree0.S1> = child tree0.S1, v3
                        v6: i64 = linearize tree0.S1, [v4]
                        v7: cell<tree0.S1> = lookup tree0.S1, v5, v6
                        v8: container<tree0.S2> = child tree0.S2, v7
                        v9: i32 = const 0
                        v10: i64 = container_length tree0.S2, v8
                        v11: i32 = cast v10
                        v12: i32 = const 4096
                        v13: i32 = mul v9, v12
                        v14: i32 = add v12, v13
                        v15: i32 = min v11, v14
                        v16: i32 = const 1
                        for v13, v15, v16, [] (v17: i32) {
                            v18: i32 = const 4
                            v19: u1 = lt v17, v18
                            assert v19, bounds, "index ({}) is out of bounds for the dynamic node S2 of `x` of shape (4)", [v17]
                            v20: i64 = linearize tree0.S1, [v17]
                            v21: cell<tree0.S1> = lookup tree0.S1, v5, v20
                            v22: container<tree0.S2> = child tree0.S2, v21
                            v23: i64 = extend tree0.S2, v22
                            v24: i64 = const 0
                            v25: u1 = ge v23, v24
                            assert v25, bounds, "the dynamic node S2 of `x` is full: the list at ({}) has 8 elements already", [v17]
                            v26: i64 = linearize tree0.S2, [v17]
                            v27: cell<tree0.S2> = obtain tree0.S2, v8, v26
                            v28: ref<i32> = child tree0.S3, v27
                            store v28, v4
                            yield []
                        }
                        yield []
                    }
                    yield []
                }
                yield []
            }
            "#);
}

/// So do cells in a dense node below the list.
#[test]
fn a_loop_over_cells_in_a_list_that_grows() {
    check_passes!(&["list_struct_for", "offload", "lower_access", "cse", "dce"], "
        tree0 { dense i:4 { dynamic j:8 chunk=8 { dense k:2 { place x: i32 } } } }
        field @x: i32 = tree0 [S4]
        kernel @k() {
            parallel_cells tree0.S3 (v0: i32, v1: i32, v2: i32) {
                v3: i32 = append tree0.S2, [v1]
                v4: ref<i32> = field_at @x, [v0, v1, v2]
                store v4, v0
                yield []
            }
            yield []
        }", @r#"
            kernel @k() {
                task range {
                    v0: i64 = const 0
                    v1: i64 = const 4
                    yield [v0, v1]
                } {
                    each (v2: i64) {
                        v3: cell<tree0.S0> = root tree0
                        v4: i32 = cast v2
                        v5: container<tree0.S1> = child tree0.S1, v3
                        v6: i64 = linearize tree0.S1, [v4]
                        v7: cell<tree0.S1> = lookup tree0.S1, v5, v6
                        v8: container<tree0.S2> = child tree0.S2, v7
                        v9: i32 = const 0
                        v10: i64 = container_length tree0.S2, v8
                        v11: i32 = cast v10
                        v12: i32 = const 4096
                        v13: i32 = mul v9, v12
                        v14: i32 = add v12, v13
                        v15: i32 = min v11, v14
                        v16: i32 = const 1
                        for v13, v15, v16, [] (v17: i32) {
                            v18: i32 = const 2
                            for v9, v18, v16, [] (v19: i32) {
                                v20: i64 = linearize tree0.S3, [v19]
                                v21: i32 = const 4
                                v22: u1 = lt v17, v21
                                assert v22, bounds, "index ({}) is out of bounds for the dynamic node S2 of `x` of shape (4)", [v17]
                                v23: i64 = linearize tree0.S1, [v17]
                                v24: cell<tree0.S1> = lookup tree0.S1, v5, v23
                                v25: container<tree0.S2> = child tree0.S2, v24
                                v26: i64 = extend tree0.S2, v25
                                v27: i64 = const 0
                                v28: u1 = ge v26, v27
                                assert v28, bounds, "the dynamic node S2 of `x` is full: the list at ({}) has 8 elements already", [v17]
                                v29: i64 = linearize tree0.S2, [v17]
                                v30: cell<tree0.S2> = obtain tree0.S2, v8, v29
                                v31: container<tree0.S3> = child tree0.S3, v30
                                v32: cell<tree0.S3> = lookup tree0.S3, v31, v20
                                v33: ref<i32> = child tree0.S4, v32
                                store v33, v4
                                yield []
                            }
                            yield []
                        }
                        yield []
                    }
                    yield []
                }
                yield []
            }
            "#);
}
