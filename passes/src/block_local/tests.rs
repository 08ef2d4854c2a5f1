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

#[test]
fn in_place() {
    check_passes!(&["list_struct_for", "fold", "identities", "cse", "licm", "dce"], "
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
                parallel [v11, v11], [v13, v12] aside (v14: i64, v15: i64) {
                    v16: i64 = add v14, v15
                    v17: cell<tree0.S0> = root tree0
                    v18: container<tree0.S1> = child tree0.S1, v17
                    v19: i64 = const 1024
                    v20: i64 = const 4
                    v21: i64 = mul v15, v19
                    v22: i64 = add v19, v21
                    v23: i64 = min v20, v22
                    v24: i64 = for v21, v23, v12, [v11] (v25: i64, v26: i64) {
                        v27: u1 = cell_is_active tree0.S1, v18, v25
                        v28: i64 = cast v27
                        v29: i64 = add v26, v28
                        yield [v29]
                    }
                    list_count tree0.S1, v16, v24
                    yield []
                }
                if v10 {
                    list_scan tree0.S1, v13
                    yield []
                } {
                    yield []
                }
                parallel [v11, v11], [v13, v12] aside (v30: i64, v31: i64) {
                    v32: i64 = add v30, v31
                    v33: cell<tree0.S0> = root tree0
                    v34: container<tree0.S1> = child tree0.S1, v33
                    v35: i64 = const 1024
                    v36: i64 = const 4
                    v37: i64 = mul v31, v35
                    v38: i64 = add v35, v37
                    v39: i64 = min v36, v38
                    v40: i64 = list_offset tree0.S1, v32
                    v41: i64 = add v12, v32
                    v42: i64 = list_offset tree0.S1, v41
                    v43: u1 = lt v40, v42
                    if v43 {
                        v44: i64 = for v37, v39, v12, [v40] (v45: i64, v46: i64) {
                            v47: u1 = cell_is_active tree0.S1, v34, v45
                            v48: i64 = if v47 {
                                v49: cell<tree0.S1> = find tree0.S1, v34, v45
                                v50: i32 = cast v45
                                v51: i32 = shr v50, v1
                                v52: i32 = and v1, v50
                                list_put tree0.S1, v46, v49, [v51, v52]
                                v53: i64 = add v12, v46
                                yield [v53]
                            } {
                                yield [v46]
                            }
                            yield [v48]
                        }
                        yield []
                    } {
                        yield []
                    }
                    yield []
                }
                v54: i64 = list_len tree0.S1
                parallel [v11], [v54] (v55: i64) {
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

#[test]
fn another_tree_is_written() {
    check_passes!(&["list_struct_for", "fold", "identities", "cse", "dce"], "
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
                parallel [v6, v6], [v8, v7] aside (v9: i64, v10: i64) {
                    v11: i64 = add v9, v10
                    v12: cell<tree0.S0> = root tree0
                    v13: container<tree0.S1> = child tree0.S1, v12
                    v14: i64 = const 1024
                    v15: i64 = const 4
                    v16: i64 = mul v10, v14
                    v17: i64 = add v14, v16
                    v18: i64 = min v15, v17
                    v19: i64 = for v16, v18, v7, [v6] (v20: i64, v21: i64) {
                        v22: u1 = cell_is_active tree0.S1, v13, v20
                        v23: i64 = cast v22
                        v24: i64 = add v21, v23
                        yield [v24]
                    }
                    list_count tree0.S1, v11, v19
                    yield []
                }
                if v5 {
                    list_scan tree0.S1, v8
                    yield []
                } {
                    yield []
                }
                parallel [v6, v6], [v8, v7] aside (v25: i64, v26: i64) {
                    v27: i64 = add v25, v26
                    v28: cell<tree0.S0> = root tree0
                    v29: container<tree0.S1> = child tree0.S1, v28
                    v30: i64 = const 1024
                    v31: i64 = const 4
                    v32: i64 = mul v26, v30
                    v33: i64 = add v30, v32
                    v34: i64 = min v31, v33
                    v35: i64 = list_offset tree0.S1, v27
                    v36: i64 = add v7, v27
                    v37: i64 = list_offset tree0.S1, v36
                    v38: u1 = lt v35, v37
                    if v38 {
                        v39: i64 = for v32, v34, v7, [v35] (v40: i64, v41: i64) {
                            v42: u1 = cell_is_active tree0.S1, v29, v40
                            v43: i64 = if v42 {
                                v44: cell<tree0.S1> = find tree0.S1, v29, v40
                                v45: i32 = cast v40
                                list_put tree0.S1, v41, v44, [v45]
                                v46: i64 = add v7, v41
                                yield [v46]
                            } {
                                yield [v41]
                            }
                            yield [v43]
                        }
                        yield []
                    } {
                        yield []
                    }
                    yield []
                }
                v47: i64 = list_len tree0.S1
                parallel [v6], [v47] (v48: i64) {
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
    check_passes!(&["list_struct_for", "fold", "identities", "cse", "dce"], "
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
                parallel [v6, v6], [v8, v7] aside (v9: i64, v10: i64) {
                    v11: i64 = add v9, v10
                    v12: cell<tree0.S0> = root tree0
                    v13: container<tree0.S1> = child tree0.S1, v12
                    v14: i64 = const 1024
                    v15: i64 = const 4
                    v16: i64 = mul v10, v14
                    v17: i64 = add v14, v16
                    v18: i64 = min v15, v17
                    v19: i64 = for v16, v18, v7, [v6] (v20: i64, v21: i64) {
                        v22: u1 = cell_is_active tree0.S1, v13, v20
                        v23: i64 = cast v22
                        v24: i64 = add v21, v23
                        yield [v24]
                    }
                    list_count tree0.S1, v11, v19
                    yield []
                }
                if v5 {
                    list_scan tree0.S1, v8
                    yield []
                } {
                    yield []
                }
                parallel [v6, v6], [v8, v7] aside (v25: i64, v26: i64) {
                    v27: i64 = add v25, v26
                    v28: cell<tree0.S0> = root tree0
                    v29: container<tree0.S1> = child tree0.S1, v28
                    v30: i64 = const 1024
                    v31: i64 = const 4
                    v32: i64 = mul v26, v30
                    v33: i64 = add v30, v32
                    v34: i64 = min v31, v33
                    v35: i64 = list_offset tree0.S1, v27
                    v36: i64 = add v7, v27
                    v37: i64 = list_offset tree0.S1, v36
                    v38: u1 = lt v35, v37
                    if v38 {
                        v39: i64 = for v32, v34, v7, [v35] (v40: i64, v41: i64) {
                            v42: u1 = cell_is_active tree0.S1, v29, v40
                            v43: i64 = if v42 {
                                v44: cell<tree0.S1> = find tree0.S1, v29, v40
                                v45: i32 = cast v40
                                list_put tree0.S1, v41, v44, [v45]
                                v46: i64 = add v7, v41
                                yield [v46]
                            } {
                                yield [v41]
                            }
                            yield [v43]
                        }
                        yield []
                    } {
                        yield []
                    }
                    yield []
                }
                v47: i64 = list_len tree0.S1
                parallel [v6], [v47] (v48: i64) {
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
    let after = crate::testing::after(&["list_struct_for"], text, false);
    assert!(!after.contains("find_cell"), "{after}");
}
