use crate::testing::check_pass;

#[test]
fn pointer_over_dense() {
    check_pass!("list_struct_for", "
        tree0 { pointer i:4 { dense i:8 { place x: f32 } } }
        field @x: f32 = tree0 [S3]
        kernel @k() {
            v0: f32 = const 2.0
            v1: i32 = const 9
            v2: ref<f32> = field_at @x, [v1]
            store v2, v0
            parallel_cells tree0.S2 (v3: i32) {
                v4: ref<f32> = field_at @x, [v3]
                v5: f32 = cast v3
                store v4, v5
                yield []
            }
            yield []
        }", @"
            kernel @k() {
                v0: f32 = const 2.0
                v1: i32 = const 9
                v2: ref<f32> = field_at @x, [v1]
                store v2, v0
                v3: u1 = list_stale tree0.S1
                v4: i64 = const 0
                v5: i64 = const 1
                v6: i64 = select v3, v5, v4
                v7: i64 = const 1
                parallel [v4, v4], [v6, v7] aside (v8: i64, v9: i64) {
                    v10: i64 = const 1
                    v11: i64 = mul v8, v10
                    v12: i64 = add v11, v9
                    v13: cell<tree0.S0> = root tree0
                    v14: container<tree0.S1> = child tree0.S1, v13
                    v15: i64 = const 1024
                    v16: i64 = const 4
                    v17: i64 = mul v9, v15
                    v18: i64 = add v17, v15
                    v19: i64 = min v18, v16
                    v20: i64 = const 0
                    v21: i64 = const 1
                    v22: i64 = for v17, v19, v21, [v20] (v23: i64, v24: i64) {
                        v25: u1 = cell_is_active tree0.S1, v14, v23
                        v26: i64 = cast v25
                        v27: i64 = add v24, v26
                        yield [v27]
                    }
                    list_count tree0.S1, v12, v22
                    yield []
                }
                v28: i64 = const 1
                v29: i64 = mul v6, v28
                if v3 {
                    list_scan tree0.S1, v29
                    yield []
                } {
                    yield []
                }
                parallel [v4, v4], [v6, v7] aside (v30: i64, v31: i64) {
                    v32: i64 = const 1
                    v33: i64 = mul v30, v32
                    v34: i64 = add v33, v31
                    v35: cell<tree0.S0> = root tree0
                    v36: container<tree0.S1> = child tree0.S1, v35
                    v37: i64 = const 1024
                    v38: i64 = const 4
                    v39: i64 = mul v31, v37
                    v40: i64 = add v39, v37
                    v41: i64 = min v40, v38
                    v42: i64 = const 1
                    v43: i64 = list_offset tree0.S1, v34
                    v44: i64 = add v34, v42
                    v45: i64 = list_offset tree0.S1, v44
                    v46: u1 = lt v43, v45
                    if v46 {
                        v47: i64 = const 1
                        v48: i64 = for v39, v41, v47, [v43] (v49: i64, v50: i64) {
                            v51: u1 = cell_is_active tree0.S1, v36, v49
                            v52: i64 = if v51 {
                                v53: cell<tree0.S1> = find tree0.S1, v36, v49
                                v54: i32 = cast v49
                                list_put tree0.S1, v50, v53, [v54]
                                v55: i64 = add v50, v42
                                yield [v55]
                            } {
                                yield [v50]
                            }
                            yield [v52]
                        }
                        yield []
                    } {
                        yield []
                    }
                    yield []
                }
                v56: i64 = const 0
                v57: i64 = list_len tree0.S1
                parallel [v56], [v57] (v58: i64) {
                    v59: cell<tree0.S1>, v60: i32 = list_entry tree0.S1, v58
                    v61: i32 = const 8
                    v62: i32 = mul v60, v61
                    v63: container<tree0.S2> = child tree0.S2, v59
                    v64: i32 = const 0
                    v65: i32 = const 8
                    v66: i32 = const 1
                    for v64, v65, v66, [] (v67: i32) {
                        v68: i32 = add v62, v67
                        v69: i64 = linearize tree0.S2, [v67]
                        v70: cell<tree0.S2> = lookup tree0.S2, v63, v69
                        cell_at tree0.S2, [v68], v70
                        v71: ref<f32> = field_at @x, [v68]
                        v72: f32 = cast v68
                        store v71, v72
                        yield []
                    }
                    yield []
                }
                yield []
            }
            ");
}

#[test]
fn masks_are_walked_bit_by_bit() {
    check_pass!("list_struct_for", "
        tree0 { bitmasked i:8 j:10 { place x: i32 } }
        field @x: i32 = tree0 [S2]
        kernel @k() {
            v0: i32 = const 3
            v1: ref<i32> = field_at @x, [v0, v0]
            store v1, v0
            parallel_cells tree0.S1 (v2: i32, v3: i32) {
                v4: ref<i32> = field_at @x, [v2, v3]
                v5: u1 = eq v2, v3
                if v5 {
                    continue []
                } {
                    yield []
                }
                store v4, v2
                yield []
            }
            yield []
        }", @"
        kernel @k() {
            v0: i32 = const 3
            v1: ref<i32> = field_at @x, [v0, v0]
            store v1, v0
            v2: i64 = const 0
            v3: i64 = const 3
            parallel [v2], [v3] (v4: i64) {
                v5: cell<tree0.S0> = root tree0
                v6: i32 = cast v4
                v7: container<tree0.S1> = child tree0.S1, v5
                v8: u32 = mask_word tree0.S1, v7, v6
                v9: u32 = while [v8] (v10: u32) {
                    v11: u32 = const 0
                    v12: u1 = ne v10, v11
                    yield [v12]
                } (v13: u32) {
                    v14: u32 = neg v13
                    v15: u32 = and v13, v14
                    v16: u32 = xor v13, v15
                    v17: u32 = clz v15
                    v18: i32 = cast v17
                    v19: i32 = const 31
                    v20: i32 = sub v19, v18
                    v21: i32 = const 32
                    v22: i32 = mul v6, v21
                    v23: i32 = add v22, v20
                    v24: cell<tree0.S1> = lookup tree0.S1, v7, v23
                    v25: i32 = const 10
                    v26: i32 = div v23, v25
                    v27: i32 = const 10
                    v28: i32 = rem v23, v27
                    cell_at tree0.S1, [v26, v28], v24
                    v29: ref<i32> = field_at @x, [v26, v28]
                    v30: u1 = eq v26, v28
                    if v30 {
                        continue [v16]
                    } {
                        yield []
                    }
                    store v29, v26
                    yield [v16]
                }
                yield []
            }
            yield []
        }
        ");
}

#[test]
fn lists_of_dynamic_nodes() {
    check_pass!("list_struct_for", "
        tree0 { dense i:4 { dynamic j:5000 chunk=16 { place x: i32 } } }
        field @x: i32 = tree0 [S3]
        kernel @k() {
            v0: i32 = const 3
            v1: i32 = append tree0.S2, [v0]
            parallel_cells tree0.S2 (v2: i32, v3: i32) {
                v4: ref<i32> = field_at @x, [v2, v3]
                store v4, v2
                yield []
            }
            yield []
        }", @"
        kernel @k() {
            v0: i32 = const 3
            v1: i32 = append tree0.S2, [v0]
            v2: i64 = const 0
            v3: i64 = const 4
            v4: i64 = const 2
            parallel [v2, v2], [v3, v4] (v5: i64, v6: i64) {
                v7: cell<tree0.S0> = root tree0
                v8: i32 = cast v5
                v9: i32 = cast v6
                v10: container<tree0.S1> = child tree0.S1, v7
                v11: i64 = linearize tree0.S1, [v8]
                v12: cell<tree0.S1> = lookup tree0.S1, v10, v11
                v13: container<tree0.S2> = child tree0.S2, v12
                v14: i64 = container_length tree0.S2, v13
                v15: i32 = cast v14
                v16: i32 = const 4096
                v17: i32 = mul v9, v16
                v18: i32 = add v17, v16
                v19: i32 = min v18, v15
                v20: i32 = const 1
                for v17, v19, v20, [] (v21: i32) {
                    v22: cell<tree0.S2> = find tree0.S2, v13, v21
                    cell_at tree0.S2, [v8, v21], v22
                    v23: ref<i32> = field_at @x, [v8, v21]
                    store v23, v8
                    yield []
                }
                yield []
            }
            yield []
        }
        ");
}

#[test]
fn a_serial_loop_that_is_left() {
    check_pass!("list_struct_for", "
        tree0 { pointer i:8 { place x: i32 }, place n: i32 }
        field @x: i32 = tree0 [S2]
        field @n: i32 = tree0 [S3]
        kernel @k() {
            v0: i32 = const 3
            v1: ref<i32> = field_at @x, [v0]
            store v1, v0
            v2: i32 = const 5
            v3: ref<i32> = field_at @x, [v2]
            store v3, v2
            parallel_cells tree0.S1 serial (v4: i32) {
                v5: ref<i32> = field_at @n, []
                v6: i32 = atomic_add v5, v4
                v7: u1 = eq v4, v0
                if v7 {
                    break []
                } {
                    yield []
                }
                yield []
            }
            yield []
        }", @"
            kernel @k() {
                v0: i32 = const 3
                v1: ref<i32> = field_at @x, [v0]
                store v1, v0
                v2: i32 = const 5
                v3: ref<i32> = field_at @x, [v2]
                store v3, v2
                v4: ref<u1> = local
                v5: u1 = const 0
                store v4, v5
                v6: u1 = list_stale tree0.S1
                v7: i64 = const 0
                v8: i64 = const 1
                v9: i64 = select v6, v8, v7
                v10: i64 = const 1
                parallel [v7, v7], [v9, v10] aside (v11: i64, v12: i64) {
                    v13: i64 = const 1
                    v14: i64 = mul v11, v13
                    v15: i64 = add v14, v12
                    v16: cell<tree0.S0> = root tree0
                    v17: container<tree0.S1> = child tree0.S1, v16
                    v18: i64 = const 1024
                    v19: i64 = const 8
                    v20: i64 = mul v12, v18
                    v21: i64 = add v20, v18
                    v22: i64 = min v21, v19
                    v23: i64 = const 0
                    v24: i64 = const 1
                    v25: i64 = for v20, v22, v24, [v23] (v26: i64, v27: i64) {
                        v28: u1 = cell_is_active tree0.S1, v17, v26
                        v29: i64 = cast v28
                        v30: i64 = add v27, v29
                        yield [v30]
                    }
                    list_count tree0.S1, v15, v25
                    yield []
                }
                v31: i64 = const 1
                v32: i64 = mul v9, v31
                if v6 {
                    list_scan tree0.S1, v32
                    yield []
                } {
                    yield []
                }
                parallel [v7, v7], [v9, v10] aside (v33: i64, v34: i64) {
                    v35: i64 = const 1
                    v36: i64 = mul v33, v35
                    v37: i64 = add v36, v34
                    v38: cell<tree0.S0> = root tree0
                    v39: container<tree0.S1> = child tree0.S1, v38
                    v40: i64 = const 1024
                    v41: i64 = const 8
                    v42: i64 = mul v34, v40
                    v43: i64 = add v42, v40
                    v44: i64 = min v43, v41
                    v45: i64 = const 1
                    v46: i64 = list_offset tree0.S1, v37
                    v47: i64 = add v37, v45
                    v48: i64 = list_offset tree0.S1, v47
                    v49: u1 = lt v46, v48
                    if v49 {
                        v50: i64 = const 1
                        v51: i64 = for v42, v44, v50, [v46] (v52: i64, v53: i64) {
                            v54: u1 = cell_is_active tree0.S1, v39, v52
                            v55: i64 = if v54 {
                                v56: cell<tree0.S1> = find tree0.S1, v39, v52
                                v57: i32 = cast v52
                                list_put tree0.S1, v53, v56, [v57]
                                v58: i64 = add v53, v45
                                yield [v58]
                            } {
                                yield [v53]
                            }
                            yield [v55]
                        }
                        yield []
                    } {
                        yield []
                    }
                    yield []
                }
                v59: i64 = const 0
                v60: i64 = list_len tree0.S1
                parallel [v59], [v60] serial (v61: i64) {
                    v62: cell<tree0.S1>, v63: i32 = list_entry tree0.S1, v61
                    v64: u1 = load v4
                    if v64 {
                        continue []
                    } {
                        yield []
                    }
                    cell_at tree0.S1, [v63], v62
                    v65: ref<i32> = field_at @n, []
                    v66: i32 = atomic_add v65, v63
                    v67: u1 = eq v63, v0
                    if v67 {
                        v68: u1 = const 1
                        store v4, v68
                        continue []
                    } {
                        yield []
                    }
                    yield []
                }
                yield []
            }
            ");
}

#[test]
fn nested_pointers_begin_where_their_cells_do() {
    check_pass!("list_struct_for", "
        tree0 { pointer i:2 j:2 { dense j:2 { pointer i:4 { dense i:2 { place x: i32 } } } } }
        field @x: i32 = tree0 [S5]
        kernel @k() {
            v0: i32 = const 11
            v1: i32 = const 3
            v2: ref<i32> = field_at @x, [v0, v1]
            store v2, v0
            parallel_cells tree0.S4 (v3: i32, v4: i32) {
                v5: ref<i32> = field_at @x, [v3, v4]
                v6: i32 = add v3, v4
                store v5, v6
                yield []
            }
            yield []
        }", @"
            kernel @k() {
                v0: i32 = const 11
                v1: i32 = const 3
                v2: ref<i32> = field_at @x, [v0, v1]
                store v2, v0
                v3: u1 = list_stale tree0.S1
                v4: i64 = const 0
                v5: i64 = const 1
                v6: i64 = select v3, v5, v4
                v7: i64 = const 1
                parallel [v4, v4], [v6, v7] aside (v8: i64, v9: i64) {
                    v10: i64 = const 1
                    v11: i64 = mul v8, v10
                    v12: i64 = add v11, v9
                    v13: cell<tree0.S0> = root tree0
                    v14: container<tree0.S1> = child tree0.S1, v13
                    v15: i64 = const 1024
                    v16: i64 = const 4
                    v17: i64 = mul v9, v15
                    v18: i64 = add v17, v15
                    v19: i64 = min v18, v16
                    v20: i64 = const 0
                    v21: i64 = const 1
                    v22: i64 = for v17, v19, v21, [v20] (v23: i64, v24: i64) {
                        v25: u1 = cell_is_active tree0.S1, v14, v23
                        v26: i64 = cast v25
                        v27: i64 = add v24, v26
                        yield [v27]
                    }
                    list_count tree0.S1, v12, v22
                    yield []
                }
                v28: i64 = const 1
                v29: i64 = mul v6, v28
                if v3 {
                    list_scan tree0.S1, v29
                    yield []
                } {
                    yield []
                }
                parallel [v4, v4], [v6, v7] aside (v30: i64, v31: i64) {
                    v32: i64 = const 1
                    v33: i64 = mul v30, v32
                    v34: i64 = add v33, v31
                    v35: cell<tree0.S0> = root tree0
                    v36: container<tree0.S1> = child tree0.S1, v35
                    v37: i64 = const 1024
                    v38: i64 = const 4
                    v39: i64 = mul v31, v37
                    v40: i64 = add v39, v37
                    v41: i64 = min v40, v38
                    v42: i64 = const 1
                    v43: i64 = list_offset tree0.S1, v34
                    v44: i64 = add v34, v42
                    v45: i64 = list_offset tree0.S1, v44
                    v46: u1 = lt v43, v45
                    if v46 {
                        v47: i64 = const 1
                        v48: i64 = for v39, v41, v47, [v43] (v49: i64, v50: i64) {
                            v51: u1 = cell_is_active tree0.S1, v36, v49
                            v52: i64 = if v51 {
                                v53: cell<tree0.S1> = find tree0.S1, v36, v49
                                v54: i32 = cast v49
                                v55: i32 = const 1
                                v56: i32 = shr v54, v55
                                v57: i32 = const 1
                                v58: i32 = and v54, v57
                                list_put tree0.S1, v50, v53, [v56, v58]
                                v59: i64 = add v50, v42
                                yield [v59]
                            } {
                                yield [v50]
                            }
                            yield [v52]
                        }
                        yield []
                    } {
                        yield []
                    }
                    yield []
                }
                v60: u1 = list_stale tree0.S3
                v61: i64 = const 0
                v62: i64 = list_len tree0.S1
                v63: i64 = select v60, v62, v61
                v64: i64 = const 2
                v65: i64 = const 1
                parallel [v61, v61, v61], [v63, v64, v65] aside (v66: i64, v67: i64, v68: i64) {
                    v69: i64 = const 2
                    v70: i64 = mul v66, v69
                    v71: i64 = add v70, v67
                    v72: i64 = const 1
                    v73: i64 = mul v71, v72
                    v74: i64 = add v73, v68
                    v75: cell<tree0.S1>, v76: i32, v77: i32 = list_entry tree0.S1, v66
                    v78: i32 = cast v67
                    v79: i32 = const 2
                    v80: i32 = mul v77, v79
                    v81: container<tree0.S2> = child tree0.S2, v75
                    v82: cell<tree0.S2> = lookup tree0.S2, v81, v78
                    v83: i32 = add v80, v78
                    v84: container<tree0.S3> = child tree0.S3, v82
                    v85: i64 = const 1024
                    v86: i64 = const 4
                    v87: i64 = mul v68, v85
                    v88: i64 = add v87, v85
                    v89: i64 = min v88, v86
                    v90: i64 = const 0
                    v91: i64 = const 1
                    v92: i64 = for v87, v89, v91, [v90] (v93: i64, v94: i64) {
                        v95: u1 = cell_is_active tree0.S3, v84, v93
                        v96: i64 = cast v95
                        v97: i64 = add v94, v96
                        yield [v97]
                    }
                    list_count tree0.S3, v74, v92
                    yield []
                }
                v98: i64 = const 2
                v99: i64 = mul v63, v98
                v100: i64 = const 1
                v101: i64 = mul v99, v100
                if v60 {
                    list_scan tree0.S3, v101
                    yield []
                } {
                    yield []
                }
                parallel [v61, v61, v61], [v63, v64, v65] aside (v102: i64, v103: i64, v104: i64) {
                    v105: i64 = const 2
                    v106: i64 = mul v102, v105
                    v107: i64 = add v106, v103
                    v108: i64 = const 1
                    v109: i64 = mul v107, v108
                    v110: i64 = add v109, v104
                    v111: cell<tree0.S1>, v112: i32, v113: i32 = list_entry tree0.S1, v102
                    v114: i32 = cast v103
                    v115: i32 = const 2
                    v116: i32 = mul v113, v115
                    v117: container<tree0.S2> = child tree0.S2, v111
                    v118: cell<tree0.S2> = lookup tree0.S2, v117, v114
                    v119: i32 = add v116, v114
                    v120: container<tree0.S3> = child tree0.S3, v118
                    v121: i64 = const 1024
                    v122: i64 = const 4
                    v123: i64 = mul v104, v121
                    v124: i64 = add v123, v121
                    v125: i64 = min v124, v122
                    v126: i64 = const 1
                    v127: i64 = list_offset tree0.S3, v110
                    v128: i64 = add v110, v126
                    v129: i64 = list_offset tree0.S3, v128
                    v130: u1 = lt v127, v129
                    if v130 {
                        v131: i64 = const 1
                        v132: i64 = for v123, v125, v131, [v127] (v133: i64, v134: i64) {
                            v135: u1 = cell_is_active tree0.S3, v120, v133
                            v136: i64 = if v135 {
                                v137: cell<tree0.S3> = find tree0.S3, v120, v133
                                v138: i32 = cast v133
                                v139: i32 = const 4
                                v140: i32 = mul v112, v139
                                v141: i32 = add v140, v138
                                list_put tree0.S3, v134, v137, [v141, v119]
                                v142: i64 = add v134, v126
                                yield [v142]
                            } {
                                yield [v134]
                            }
                            yield [v136]
                        }
                        yield []
                    } {
                        yield []
                    }
                    yield []
                }
                v143: i64 = const 0
                v144: i64 = list_len tree0.S3
                parallel [v143], [v144] (v145: i64) {
                    v146: cell<tree0.S3>, v147: i32, v148: i32 = list_entry tree0.S3, v145
                    v149: i32 = const 2
                    v150: i32 = mul v147, v149
                    v151: container<tree0.S4> = child tree0.S4, v146
                    v152: i32 = const 0
                    v153: i32 = const 2
                    v154: i32 = const 1
                    for v152, v153, v154, [] (v155: i32) {
                        v156: i32 = add v150, v155
                        v157: i64 = linearize tree0.S4, [v155]
                        v158: cell<tree0.S4> = lookup tree0.S4, v151, v157
                        cell_at tree0.S4, [v156, v148], v158
                        v159: ref<i32> = field_at @x, [v156, v148]
                        v160: i32 = add v156, v148
                        store v159, v160
                        yield []
                    }
                    yield []
                }
                yield []
            }
            ");
}
