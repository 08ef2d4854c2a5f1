//! Blocks of other trees, read and written along.

use crate::testing::{after, check_sweep};

#[test]
fn another_tree_is_written() {
    check_sweep!(&["look_around", "list_struct_for", "fold", "identities", "cse", "dce"], "
        tree0 { pointer i:4 { dense i:4 { place x: i32 } } }
        tree1 { pointer i:4 { dense i:4 { place y: i32, place z: i32 } } }
        field @x: i32 = tree0 [S3]
        field @y: i32 = tree1 [S3]
        field @z: i32 = tree1 [S4]
        kernel @k() {
            v0: i32 = const 1
            v1: i32 = const 9
            v2: ref<i32> = field_at @x, [v0]
            store v2, v1
            v3: ref<i32> = field_at @x, [v1]
            store v3, v0
            v4: ref<i32> = field_at @y, [v1]
            store v4, v0
            parallel_cells tree0.S2 (v5: i32) {
                v6: ref<i32> = field_at @x, [v5]
                v7: i32 = load v6
                v8: u1 = ne v7, v1
                if v8 {
                    v9: ref<i32> = field_at @z, [v5]
                    store v9, v5
                    yield []
                } {
                    yield []
                }
                yield []
            }
            yield []
        }", @"
            kernel @k() {
                v0: i32 = const 1
                v1: i32 = const 9
                v2: ref<i32> = field_at @x, [v0]
                store v2, v1
                v3: ref<i32> = field_at @x, [v1]
                store v3, v0
                v4: ref<i32> = field_at @y, [v1]
                store v4, v0
                v5: u1 = list_stale tree0.S1
                v6: i64 = const 0
                v7: i64 = const 1
                v8: i64 = select v5, v7, v6
                v47: i64 = list_len tree0.S1
                parallel [v6], [v47] writes_around (v48: i64) {
                    v49: cell<tree0.S1>, v50: i32 = list_entry tree0.S1, v48
                    v51: u1 = is_active tree1.S1, [v50]
                    if v51 {
                        v52: cell<tree1.S1> = find_cell tree1.S1, [v50]
                        v53: container<tree1.S2> = child tree1.S2, v52
                        v54: i32 = const 4
                        v55: i32 = mul v50, v54
                        v56: container<tree0.S2> = child tree0.S2, v49
                        v57: i32 = const 0
                        for v57, v54, v0, [] (v58: i32) {
                            v59: i32 = add v55, v58
                            v60: i64 = linearize tree0.S2, [v58]
                            v61: cell<tree0.S2> = lookup tree0.S2, v56, v60
                            cell_at tree0.S2, [v59], v61
                            v62: cell<tree1.S2> = lookup tree1.S2, v53, v60
                            cell_at tree1.S2, [v59], v62
                            v63: ref<i32> = field_at @x, [v59]
                            v64: i32 = load v63
                            v65: u1 = ne v64, v1
                            if v65 {
                                v66: ref<i32> = field_at @z, [v59]
                                store v66, v59
                                yield []
                            } {
                                yield []
                            }
                            yield []
                        }
                        yield []
                    } {
                        v67: i32 = const 4
                        v68: i32 = mul v50, v67
                        v69: container<tree0.S2> = child tree0.S2, v49
                        v70: i32 = const 0
                        for v70, v67, v0, [] (v71: i32) {
                            v72: i32 = add v68, v71
                            v73: i64 = linearize tree0.S2, [v71]
                            v74: cell<tree0.S2> = lookup tree0.S2, v69, v73
                            cell_at tree0.S2, [v72], v74
                            v75: ref<i32> = field_at @x, [v72]
                            v76: i32 = load v75
                            v77: u1 = ne v76, v1
                            if v77 {
                                v78: ref<i32> = field_at @z, [v72]
                                store v78, v72
                                yield []
                            } {
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
            ");
}

#[test]
fn another_tree_is_read() {
    check_sweep!(&["look_around", "list_struct_for", "fold", "identities", "cse", "dce"], "
        tree0 { pointer i:4 { dense i:4 { place x: i32 } } }
        tree1 { pointer i:4 { dense i:4 { place y: i32, place z: i32 } } }
        field @x: i32 = tree0 [S3]
        field @y: i32 = tree1 [S3]
        kernel @k() {
            v0: i32 = const 1
            v1: i32 = const 9
            v2: ref<i32> = field_at @x, [v0]
            store v2, v1
            v3: ref<i32> = field_at @x, [v1]
            store v3, v0
            v4: ref<i32> = field_at @y, [v1]
            store v4, v0
            parallel_cells tree0.S2 (v5: i32) {
                v6: ref<i32> = field_at @y, [v5]
                v7: i32 = load v6
                v8: ref<i32> = field_at @x, [v5]
                store v8, v7
                yield []
            }
            yield []
        }", @"
            kernel @k() {
                v0: i32 = const 1
                v1: i32 = const 9
                v2: ref<i32> = field_at @x, [v0]
                store v2, v1
                v3: ref<i32> = field_at @x, [v1]
                store v3, v0
                v4: ref<i32> = field_at @y, [v1]
                store v4, v0
                v5: u1 = list_stale tree0.S1
                v6: i64 = const 0
                v7: i64 = const 1
                v8: i64 = select v5, v7, v6
                v47: i64 = list_len tree0.S1
                parallel [v6], [v47] around=elements (v48: i64) {
                    v49: cell<tree0.S1>, v50: i32 = list_entry tree0.S1, v48
                    v51: cell<tree1.S1> = find_cell tree1.S1, [v50]
                    v52: container<tree1.S2> = child tree1.S2, v51
                    v53: i32 = const 4
                    v54: i32 = mul v50, v53
                    v55: container<tree0.S2> = child tree0.S2, v49
                    v56: i32 = const 0
                    for v56, v53, v0, [] (v57: i32) {
                        v58: i32 = add v54, v57
                        v59: i64 = linearize tree0.S2, [v57]
                        v60: cell<tree0.S2> = lookup tree0.S2, v55, v59
                        v61: cell<tree1.S2> = lookup tree1.S2, v52, v59
                        v62: ref<i32> = child tree1.S3, v61
                        cell_at tree0.S2, [v58], v60
                        v63: i32 = load v62
                        v64: ref<i32> = field_at @x, [v58]
                        store v64, v63
                        yield []
                    }
                    yield []
                }
                yield []
            }
            ");
}

#[test]
fn deactivated_while_written() {
    let text = "
        tree0 { pointer i:4 { dense i:4 { place x: i32 } } }
        tree1 { pointer i:4 { dense i:4 { place y: i32 } } }
        field @y: i32 = tree1 [S3]
        kernel @k() {
            parallel_cells tree0.S2 (v0: i32) {
                deactivate tree1.S1, [v0]
                v1: ref<i32> = field_at @y, [v0]
                store v1, v0
                yield []
            }
            yield []
        }";
    let after = after(
        &["look_around", "list_struct_for"],
        text,
        aerogel_ir::FastMath::Off,
    );
    assert!(!after.contains("find_cell"), "{after}");
}
