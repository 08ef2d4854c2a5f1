use crate::testing::check_passes;

#[test]
fn a_line_of_three() {
    check_passes!(&["list_struct_for", "fold", "identities", "cse", "licm", "dce"], "
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
                parallel [v7, v7], [v9, v8] aside (v10: i64, v11: i64) {
                    v12: i64 = add v10, v11
                    v13: cell<tree0.S0> = root tree0
                    v14: container<tree0.S1> = child tree0.S1, v13
                    v15: i64 = const 1024
                    v16: i64 = const 4
                    v17: i64 = mul v11, v15
                    v18: i64 = add v15, v17
                    v19: i64 = min v16, v18
                    v20: i64 = for v17, v19, v8, [v7] (v21: i64, v22: i64) {
                        v23: u1 = cell_is_active tree0.S1, v14, v21
                        v24: i64 = cast v23
                        v25: i64 = add v22, v24
                        yield [v25]
                    }
                    list_count tree0.S1, v12, v20
                    yield []
                }
                if v6 {
                    list_scan tree0.S1, v9
                    yield []
                } {
                    yield []
                }
                parallel [v7, v7], [v9, v8] aside (v26: i64, v27: i64) {
                    v28: i64 = add v26, v27
                    v29: cell<tree0.S0> = root tree0
                    v30: container<tree0.S1> = child tree0.S1, v29
                    v31: i64 = const 1024
                    v32: i64 = const 4
                    v33: i64 = mul v27, v31
                    v34: i64 = add v31, v33
                    v35: i64 = min v32, v34
                    v36: i64 = list_offset tree0.S1, v28
                    v37: i64 = add v8, v28
                    v38: i64 = list_offset tree0.S1, v37
                    v39: u1 = lt v36, v38
                    if v39 {
                        v40: i64 = for v33, v35, v8, [v36] (v41: i64, v42: i64) {
                            v43: u1 = cell_is_active tree0.S1, v30, v41
                            v44: i64 = if v43 {
                                v45: cell<tree0.S1> = find tree0.S1, v30, v41
                                v46: i32 = cast v41
                                list_put tree0.S1, v42, v45, [v46]
                                v47: i64 = add v8, v42
                                yield [v47]
                            } {
                                yield [v42]
                            }
                            yield [v44]
                        }
                        yield []
                    } {
                        yield []
                    }
                    yield []
                }
                v48: i64 = list_len tree0.S1
                parallel [v7], [v48] (v49: i64) {
                    v50: cell<tree0.S1>, v51: i32 = list_entry tree0.S1, v49
                    v52: ref<vec<10, f32>> = local
                    v53: i32 = add v1, v51
                    v54: i32 = const 4
                    v55: u1 = lt v53, v54
                    if v55 {
                        v56: cell<tree0.S1> = find_cell tree0.S1, [v53]
                        v57: container<tree0.S2> = child tree0.S2, v56
                        v58: i32 = const 0
                        v59: i32 = const 9
                        for v58, v1, v1, [] (v60: i32) {
                            v61: i32 = add v60, v59
                            v62: ref<f32> = elem_ref v52, [v61]
                            v63: i64 = linearize tree0.S2, [v60]
                            v64: cell<tree0.S2> = lookup tree0.S2, v57, v63
                            v65: ref<f32> = child tree0.S3, v64
                            v66: f32 = load v65
                            store v62, v66
                            yield []
                        }
                        yield []
                    } {
                        yield []
                    }
                    v67: i32 = const -1
                    v68: i32 = add v51, v67
                    v69: i32 = const 0
                    v70: u1 = ge v68, v69
                    if v70 {
                        v71: cell<tree0.S1> = find_cell tree0.S1, [v68]
                        v72: container<tree0.S2> = child tree0.S2, v71
                        v73: i32 = const 7
                        v74: i32 = const -7
                        for v73, v2, v1, [] (v75: i32) {
                            v76: i32 = add v75, v74
                            v77: ref<f32> = elem_ref v52, [v76]
                            v78: i64 = linearize tree0.S2, [v75]
                            v79: cell<tree0.S2> = lookup tree0.S2, v72, v78
                            v80: ref<f32> = child tree0.S3, v79
                            v81: f32 = load v80
                            store v77, v81
                            yield []
                        }
                        yield []
                    } {
                        yield []
                    }
                    v82: container<tree0.S2> = child tree0.S2, v50
                    for v69, v2, v1, [] (v83: i32) {
                        v84: i32 = add v1, v83
                        v85: ref<f32> = elem_ref v52, [v84]
                        v86: i64 = linearize tree0.S2, [v83]
                        v87: cell<tree0.S2> = lookup tree0.S2, v82, v86
                        v88: ref<f32> = child tree0.S3, v87
                        v89: f32 = load v88
                        store v85, v89
                        yield []
                    }
                    v90: i32 = mul v2, v51
                    v91: i32 = const 2
                    for v69, v2, v1, [] (v92: i32) {
                        v93: i32 = add v90, v92
                        v94: i64 = linearize tree0.S2, [v92]
                        v95: cell<tree0.S2> = lookup tree0.S2, v82, v94
                        v96: i32 = add v1, v92
                        v97: ref<f32> = elem_ref v52, [v96]
                        v98: ref<f32> = elem_ref v52, [v92]
                        v99: i32 = add v92, v91
                        v100: ref<f32> = elem_ref v52, [v99]
                        cell_at tree0.S2, [v93], v95
                        v101: f32 = load v97
                        v102: f32 = load v98
                        v103: f32 = load v100
                        v104: f32 = add v101, v102
                        v105: f32 = sub v104, v103
                        v106: ref<f32> = field_at @y, [v93]
                        store v106, v105
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
    check_passes!(&["list_struct_for", "dce"], "
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
            parallel [v2, v2], [v4, v5] aside (v6: i64, v7: i64) {
                v8: i64 = const 1
                v9: i64 = mul v6, v8
                v10: i64 = add v9, v7
                v11: cell<tree0.S0> = root tree0
                v12: container<tree0.S1> = child tree0.S1, v11
                v13: i64 = const 1024
                v14: i64 = const 4
                v15: i64 = mul v7, v13
                v16: i64 = add v15, v13
                v17: i64 = min v16, v14
                v18: i64 = const 0
                v19: i64 = const 1
                v20: i64 = for v15, v17, v19, [v18] (v21: i64, v22: i64) {
                    v23: u1 = cell_is_active tree0.S1, v12, v21
                    v24: i64 = cast v23
                    v25: i64 = add v22, v24
                    yield [v25]
                }
                list_count tree0.S1, v10, v20
                yield []
            }
            v26: i64 = const 1
            v27: i64 = mul v4, v26
            if v1 {
                list_scan tree0.S1, v27
                yield []
            } {
                yield []
            }
            parallel [v2, v2], [v4, v5] aside (v28: i64, v29: i64) {
                v30: i64 = const 1
                v31: i64 = mul v28, v30
                v32: i64 = add v31, v29
                v33: cell<tree0.S0> = root tree0
                v34: container<tree0.S1> = child tree0.S1, v33
                v35: i64 = const 1024
                v36: i64 = const 4
                v37: i64 = mul v29, v35
                v38: i64 = add v37, v35
                v39: i64 = min v38, v36
                v40: i64 = const 1
                v41: i64 = list_offset tree0.S1, v32
                v42: i64 = add v32, v40
                v43: i64 = list_offset tree0.S1, v42
                v44: u1 = lt v41, v43
                if v44 {
                    v45: i64 = const 1
                    v46: i64 = for v37, v39, v45, [v41] (v47: i64, v48: i64) {
                        v49: u1 = cell_is_active tree0.S1, v34, v47
                        v50: i64 = if v49 {
                            v51: cell<tree0.S1> = find tree0.S1, v34, v47
                            v52: i32 = cast v47
                            list_put tree0.S1, v48, v51, [v52]
                            v53: i64 = add v48, v40
                            yield [v53]
                        } {
                            yield [v48]
                        }
                        yield [v50]
                    }
                    yield []
                } {
                    yield []
                }
                yield []
            }
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
