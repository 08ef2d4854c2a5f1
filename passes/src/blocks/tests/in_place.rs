//! Elements around a cell, read where they lie.

use crate::testing::check_sweep;

#[test]
fn in_place() {
    check_sweep!(&["look_around", "list_struct_for", "fold", "identities", "cse", "licm", "dce"], "
        tree0 { pointer i:2 j:2 { dense i:2 j:4 { place x: f32 } dense i:2 j:4 { place y: f32 } } }
        field @x: f32 = tree0 [S3]
        field @y: f32 = tree0 [S5]
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 1
            v2: i32 = const 4
            v3: i32 = const 8
            for v0, v2, v1, [] (v4: i32) {
                for v0, v3, v1, [] (v5: i32) {
                    v6: i32 = mul v4, v3
                    v7: i32 = add v6, v5
                    v8: f32 = cast v7
                    v9: ref<f32> = field_at @x, [v4, v5]
                    store v9, v8
                    yield []
                }
                yield []
            }
            parallel_cells tree0.S4 (v10: i32, v11: i32) {
                v12: i32 = add v10, v1
                v13: i32 = sub v11, v1
                v14: ref<f32> = field_at @x, [v12, v13]
                v15: f32 = load v14
                v16: ref<f32> = field_at @y, [v10, v11]
                store v16, v15
                yield []
            }
            yield []
        }", @"
            kernel @k() {
                v0: i32 = const 0
                v1: i32 = const 1
                v2: i32 = const 4
                v3: i32 = const 8
                for v0, v2, v1, [] (v4: i32) {
                    v5: i32 = mul v3, v4
                    for v0, v3, v1, [] (v6: i32) {
                        v7: i32 = add v6, v5
                        v8: f32 = cast v7
                        v9: ref<f32> = field_at @x, [v4, v6]
                        store v9, v8
                        yield []
                    }
                    yield []
                }
                v10: u1 = list_stale tree0.S1
                v11: i64 = const 0
                v12: i64 = const 1
                v13: i64 = select v10, v12, v11
                v54: i64 = list_len tree0.S1
                parallel [v11], [v54] around=elements (v55: i64) {
                    v56: cell<tree0.S1>, v57: i32, v58: i32 = list_entry tree0.S1, v55
                    v59: i32 = add v1, v57
                    v60: i32 = const 2
                    v61: u1 = lt v59, v60
                    v62: i32 = const -1
                    v63: i32 = add v58, v62
                    v64: u1 = ge v63, v0
                    v65: u1 = and v61, v64
                    v66: i32 = select v65, v59, v57
                    v67: i32 = select v65, v63, v58
                    v68: cell<tree0.S1> = find_cell tree0.S1, [v66, v67]
                    v69: cell<tree0.S1> = ambient tree0.S1
                    v70: cell<tree0.S1> = select v65, v68, v69
                    v71: container<tree0.S2> = child tree0.S2, v70
                    v72: i32 = const 3
                    v73: i64 = linearize tree0.S2, [v0, v72]
                    v74: cell<tree0.S2> = lookup tree0.S2, v71, v73
                    v75: ref<f32> = child tree0.S3, v74
                    prefetch v75
                    v76: i32 = select v61, v59, v57
                    v77: cell<tree0.S1> = find_cell tree0.S1, [v76, v58]
                    v78: cell<tree0.S1> = select v61, v77, v69
                    v79: container<tree0.S2> = child tree0.S2, v78
                    v80: i64 = linearize tree0.S2, [v0, v0]
                    v81: cell<tree0.S2> = lookup tree0.S2, v79, v80
                    v82: ref<f32> = child tree0.S3, v81
                    prefetch v82
                    v83: i32 = select v64, v63, v58
                    v84: cell<tree0.S1> = find_cell tree0.S1, [v57, v83]
                    v85: cell<tree0.S1> = select v64, v84, v69
                    v86: container<tree0.S2> = child tree0.S2, v85
                    v87: container<tree0.S2> = child tree0.S2, v56
                    v88: i32 = mul v57, v60
                    v89: i32 = mul v2, v58
                    v90: container<tree0.S4> = child tree0.S4, v56
                    v91: i32 = const -4
                    for v0, v60, v1, [] (v92: i32) {
                        v93: i32 = add v88, v92
                        v94: i32 = add v1, v92
                        v95: u1 = ge v94, v60
                        v96: i32 = sub v94, v60
                        v97: container<tree0.S2> = select v95, v79, v87
                        v98: i32 = select v95, v96, v94
                        v99: container<tree0.S2> = select v95, v71, v86
                        for v0, v2, v1, [] (v100: i32) {
                            v101: i32 = add v89, v100
                            v102: i64 = linearize tree0.S4, [v92, v100]
                            v103: cell<tree0.S4> = lookup tree0.S4, v90, v102
                            v104: i32 = add v62, v100
                            v105: u1 = lt v104, v0
                            v106: i32 = sub v104, v91
                            v107: i64 = linearize tree0.S2, [v98, v104]
                            v108: cell<tree0.S2> = lookup tree0.S2, v97, v107
                            v109: ref<f32> = child tree0.S3, v108
                            v110: f32 = load v109
                            v111: i64 = linearize tree0.S2, [v98, v106]
                            v112: cell<tree0.S2> = lookup tree0.S2, v99, v111
                            v113: ref<f32> = child tree0.S3, v112
                            v114: f32 = load v113
                            cell_at tree0.S4, [v93, v101], v103
                            v115: f32 = select v105, v114, v110
                            v116: ref<f32> = field_at @y, [v93, v101]
                            store v116, v115
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
