//! Elements around a cell, read from a copy of its block.

use crate::testing::check_sweep;

#[test]
fn a_line_of_three() {
    check_sweep!(&["look_around", "list_struct_for", "fold", "identities", "cse", "licm", "dce"], "
        tree0 { pointer i:4 { dense i:8 { place x: f32, place y: f32 } } }
        field @x: f32 = tree0 [S3]
        field @y: f32 = tree0 [S4]
        kernel @k() {
            v0: f32 = const 2.0
            v1: i32 = const 1
            v2: i32 = const 8
            v3: ref<f32> = field_at @x, [v2]
            store v3, v0
            v4: i32 = const 31
            v5: ref<f32> = field_at @x, [v4]
            store v5, v0
            parallel_cells tree0.S2 (v6: i32) {
                v7: i32 = sub v6, v1
                v8: i32 = add v6, v1
                v9: ref<f32> = field_at @x, [v6]
                v10: ref<f32> = field_at @x, [v7]
                v11: ref<f32> = field_at @x, [v8]
                v12: f32 = load v9
                v13: f32 = load v10
                v14: f32 = load v11
                v15: f32 = add v12, v13
                v16: f32 = sub v15, v14
                v17: ref<f32> = field_at @y, [v6]
                store v17, v16
                yield []
            }
            yield []
        }", @"
            kernel @k() {
                v0: f32 = const 2.0
                v1: i32 = const 1
                v2: i32 = const 8
                v3: ref<f32> = field_at @x, [v2]
                store v3, v0
                v4: i32 = const 31
                v5: ref<f32> = field_at @x, [v4]
                store v5, v0
                v6: u1 = list_stale tree0.S1
                v7: i64 = const 0
                v8: i64 = const 1
                v9: i64 = select v6, v8, v7
                v48: i64 = list_len tree0.S1
                parallel [v7], [v48] around=elements (v49: i64) {
                    v50: cell<tree0.S1>, v51: i32 = list_entry tree0.S1, v49
                    v52: ref<vec<10, f32>> = local
                    v53: i32 = add v1, v51
                    v54: i32 = const 4
                    v55: u1 = lt v53, v54
                    v56: i32 = select v55, v53, v51
                    v57: cell<tree0.S1> = find_cell tree0.S1, [v56]
                    v58: cell<tree0.S1> = ambient tree0.S1
                    v59: cell<tree0.S1> = select v55, v57, v58
                    v60: container<tree0.S2> = child tree0.S2, v59
                    v61: i32 = const 0
                    v62: i32 = const 9
                    for v61, v1, v1, [] (v63: i32) {
                        v64: i32 = add v63, v62
                        v65: ref<f32> = elem_ref v52, [v64]
                        v66: i64 = linearize tree0.S2, [v63]
                        v67: cell<tree0.S2> = lookup tree0.S2, v60, v66
                        v68: ref<f32> = child tree0.S3, v67
                        v69: f32 = load v68
                        store v65, v69
                        yield []
                    }
                    v70: i32 = const -1
                    v71: i32 = add v51, v70
                    v72: u1 = ge v71, v61
                    v73: i32 = select v72, v71, v51
                    v74: cell<tree0.S1> = find_cell tree0.S1, [v73]
                    v75: cell<tree0.S1> = select v72, v74, v58
                    v76: container<tree0.S2> = child tree0.S2, v75
                    v77: i32 = const 7
                    v78: i32 = const -7
                    for v77, v2, v1, [] (v79: i32) {
                        v80: i32 = add v79, v78
                        v81: ref<f32> = elem_ref v52, [v80]
                        v82: i64 = linearize tree0.S2, [v79]
                        v83: cell<tree0.S2> = lookup tree0.S2, v76, v82
                        v84: ref<f32> = child tree0.S3, v83
                        v85: f32 = load v84
                        store v81, v85
                        yield []
                    }
                    v86: container<tree0.S2> = child tree0.S2, v50
                    for v61, v2, v1, [] (v87: i32) {
                        v88: i32 = add v1, v87
                        v89: ref<f32> = elem_ref v52, [v88]
                        v90: i64 = linearize tree0.S2, [v87]
                        v91: cell<tree0.S2> = lookup tree0.S2, v86, v90
                        v92: ref<f32> = child tree0.S3, v91
                        v93: f32 = load v92
                        store v89, v93
                        yield []
                    }
                    v94: i32 = mul v2, v51
                    v95: i32 = const 2
                    for v61, v2, v1, [] (v96: i32) {
                        v97: i32 = add v94, v96
                        v98: i64 = linearize tree0.S2, [v96]
                        v99: cell<tree0.S2> = lookup tree0.S2, v86, v98
                        v100: i32 = add v1, v96
                        v101: ref<f32> = elem_ref v52, [v100]
                        v102: ref<f32> = elem_ref v52, [v96]
                        v103: i32 = add v96, v95
                        v104: ref<f32> = elem_ref v52, [v103]
                        cell_at tree0.S2, [v97], v99
                        v105: f32 = load v101
                        v106: f32 = load v102
                        v107: f32 = load v104
                        v108: f32 = add v105, v106
                        v109: f32 = sub v108, v107
                        v110: ref<f32> = field_at @y, [v97]
                        store v110, v109
                        yield []
                    }
                    yield []
                }
                yield []
            }
            ");
}

#[test]
fn what_is_written_is_not_gathered() {
    check_sweep!(&["look_around", "list_struct_for", "dce"], "
        tree0 { pointer i:4 { dense i:8 { place x: f32 } } }
        field @x: f32 = tree0 [S3]
        kernel @k() {
            v1: i32 = const 1
            parallel_cells tree0.S2 serial (v6: i32) {
                v7: i32 = sub v6, v1
                v8: i32 = add v6, v1
                v9: ref<f32> = field_at @x, [v6]
                v10: ref<f32> = field_at @x, [v7]
                v11: ref<f32> = field_at @x, [v8]
                v12: f32 = load v9
                v13: f32 = load v10
                v14: f32 = load v11
                v15: f32 = add v12, v13
                v16: f32 = sub v15, v14
                store v9, v16
                yield []
            }
            yield []
        }", @"
            kernel @k() {
                v0: i32 = const 1
                v1: u1 = list_stale tree0.S1
                v2: i64 = const 0
                v3: i64 = const 1
                v4: i64 = select v1, v3, v2
                v5: i64 = const 1
                v26: i64 = const 1
                v27: i64 = mul v4, v26
                v54: i64 = const 0
                v55: i64 = list_len tree0.S1
                parallel [v54], [v55] serial (v56: i64) {
                    v57: cell<tree0.S1>, v58: i32 = list_entry tree0.S1, v56
                    v59: i32 = const 8
                    v60: i32 = mul v58, v59
                    v61: container<tree0.S2> = child tree0.S2, v57
                    v62: i32 = const 0
                    v63: i32 = const 8
                    v64: i32 = const 1
                    for v62, v63, v64, [] (v65: i32) {
                        v66: i32 = add v60, v65
                        v67: i64 = linearize tree0.S2, [v65]
                        v68: cell<tree0.S2> = lookup tree0.S2, v61, v67
                        cell_at tree0.S2, [v66], v68
                        v69: i32 = sub v66, v0
                        v70: i32 = add v66, v0
                        v71: ref<f32> = field_at @x, [v66]
                        v72: ref<f32> = field_at @x, [v69]
                        v73: ref<f32> = field_at @x, [v70]
                        v74: f32 = load v71
                        v75: f32 = load v72
                        v76: f32 = load v73
                        v77: f32 = add v74, v75
                        v78: f32 = sub v77, v76
                        store v71, v78
                        yield []
                    }
                    yield []
                }
                yield []
            }
            ");
}
