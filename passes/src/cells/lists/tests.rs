use crate::testing::check_pass;

#[test]
fn cells_of_hash_nodes() {
    check_pass!("list_struct_for", "
        tree0 { hash i:65536 j:131072 { place x: i32 } }
        field @x: i32 = tree0 [S2]
        kernel @k() {
            v0: i32 = const 65535
            v1: ref<i32> = field_at @x, [v0, v0]
            store v1, v0
            parallel_cells tree0.S1 (v2: i32, v3: i32) {
                v4: ref<i32> = field_at @x, [v2, v3]
                store v4, v3
                yield []
            }
            yield []
        }", @"
            kernel @k() {
                v0: i32 = const 65535
                v1: ref<i32> = field_at @x, [v0, v0]
                store v1, v0
                v2: u1 = list_stale tree0.S1
                v3: i64 = const 0
                v4: i64 = const 1
                v5: i64 = select v2, v4, v3
                v6: i64 = const 256
                parallel [v3, v3], [v5, v6] aside (v7: i64, v8: i64) {
                    v9: i64 = const 256
                    v10: i64 = mul v7, v9
                    v11: i64 = add v10, v8
                    v12: cell<tree0.S0> = root tree0
                    v13: container<tree0.S1> = child tree0.S1, v12
                    v14: i64 = const 0
                    v15: i64 = next_active tree0.S1, v13, v14
                    v16: i64 = active_end tree0.S1, v13
                    v17: i64 = sub v16, v15
                    v18: i64 = const 255
                    v19: i64 = add v17, v18
                    v20: i64 = const 256
                    v21: i64 = div v19, v20
                    v22: i64 = mul v8, v21
                    v23: i64 = add v15, v22
                    v24: i64 = add v23, v21
                    v25: i64 = min v24, v16
                    v26: i64 = const 0
                    v27: i64 = const 1
                    v28: i64 = next_active tree0.S1, v13, v23
                    v29: i64, v30: i64 = while [v28, v26] (v31: i64, v32: i64) {
                        v33: u1 = lt v31, v25
                        yield [v33]
                    } (v34: i64, v35: i64) {
                        v36: i64 = add v35, v27
                        v37: i64 = const 1
                        v38: i64 = add v34, v37
                        v39: i64 = next_active tree0.S1, v13, v38
                        yield [v39, v36]
                    }
                    list_count tree0.S1, v11, v30
                    yield []
                }
                v40: i64 = const 256
                v41: i64 = mul v5, v40
                if v2 {
                    list_scan tree0.S1, v41
                    yield []
                } {
                    yield []
                }
                parallel [v3, v3], [v5, v6] aside (v42: i64, v43: i64) {
                    v44: i64 = const 256
                    v45: i64 = mul v42, v44
                    v46: i64 = add v45, v43
                    v47: cell<tree0.S0> = root tree0
                    v48: container<tree0.S1> = child tree0.S1, v47
                    v49: i64 = const 0
                    v50: i64 = next_active tree0.S1, v48, v49
                    v51: i64 = active_end tree0.S1, v48
                    v52: i64 = sub v51, v50
                    v53: i64 = const 255
                    v54: i64 = add v52, v53
                    v55: i64 = const 256
                    v56: i64 = div v54, v55
                    v57: i64 = mul v43, v56
                    v58: i64 = add v50, v57
                    v59: i64 = add v58, v56
                    v60: i64 = min v59, v51
                    v61: i64 = const 1
                    v62: i64 = list_offset tree0.S1, v46
                    v63: i64 = add v46, v61
                    v64: i64 = list_offset tree0.S1, v63
                    v65: u1 = lt v62, v64
                    if v65 {
                        v66: i64 = next_active tree0.S1, v48, v58
                        v67: i64, v68: i64 = while [v66, v62] (v69: i64, v70: i64) {
                            v71: u1 = lt v69, v60
                            yield [v71]
                        } (v72: i64, v73: i64) {
                            v74: cell<tree0.S1> = find tree0.S1, v48, v72
                            v75: i64 = const 17
                            v76: i64 = shr v72, v75
                            v77: i32 = cast v76
                            v78: i64 = const 131071
                            v79: i64 = and v72, v78
                            v80: i32 = cast v79
                            list_put tree0.S1, v73, v74, [v77, v80]
                            v81: i64 = add v73, v61
                            v82: i64 = const 1
                            v83: i64 = add v72, v82
                            v84: i64 = next_active tree0.S1, v48, v83
                            yield [v84, v81]
                        }
                        yield []
                    } {
                        yield []
                    }
                    yield []
                }
                v85: i64 = const 0
                v86: i64 = list_len tree0.S1
                parallel [v85], [v86] (v87: i64) {
                    v88: cell<tree0.S1>, v89: i32, v90: i32 = list_entry tree0.S1, v87
                    cell_at tree0.S1, [v89, v90], v88
                    v91: ref<i32> = field_at @x, [v89, v90]
                    store v91, v90
                    yield []
                }
                yield []
            }
            ");
}

/// More cells than 32 bits number.
#[test]
fn large_containers() {
    check_pass!("list_struct_for", "
        tree0 { pointer i:2 { dense i:65536 j:65536 { place x: u8 } } }
        field @x: u8 = tree0 [S3]
        kernel @k() {
            parallel_cells tree0.S2 (v0: i32, v1: i32) {
                v2: ref<u8> = field_at @x, [v0, v1]
                v3: u8 = const 1
                store v2, v3
                yield []
            }
            yield []
        }", @"
            kernel @k() {
                v0: u1 = list_stale tree0.S1
                v1: i64 = const 0
                v2: i64 = const 1
                v3: i64 = select v0, v2, v1
                v4: i64 = const 1
                parallel [v1, v1], [v3, v4] aside (v5: i64, v6: i64) {
                    v7: i64 = const 1
                    v8: i64 = mul v5, v7
                    v9: i64 = add v8, v6
                    v10: cell<tree0.S0> = root tree0
                    v11: container<tree0.S1> = child tree0.S1, v10
                    v12: i64 = const 1024
                    v13: i64 = const 2
                    v14: i64 = mul v6, v12
                    v15: i64 = add v14, v12
                    v16: i64 = min v15, v13
                    v17: i64 = const 0
                    v18: i64 = const 1
                    v19: i64 = for v14, v16, v18, [v17] (v20: i64, v21: i64) {
                        v22: u1 = cell_is_active tree0.S1, v11, v20
                        v23: i64 = cast v22
                        v24: i64 = add v21, v23
                        yield [v24]
                    }
                    list_count tree0.S1, v9, v19
                    yield []
                }
                v25: i64 = const 1
                v26: i64 = mul v3, v25
                if v0 {
                    list_scan tree0.S1, v26
                    yield []
                } {
                    yield []
                }
                parallel [v1, v1], [v3, v4] aside (v27: i64, v28: i64) {
                    v29: i64 = const 1
                    v30: i64 = mul v27, v29
                    v31: i64 = add v30, v28
                    v32: cell<tree0.S0> = root tree0
                    v33: container<tree0.S1> = child tree0.S1, v32
                    v34: i64 = const 1024
                    v35: i64 = const 2
                    v36: i64 = mul v28, v34
                    v37: i64 = add v36, v34
                    v38: i64 = min v37, v35
                    v39: i64 = const 1
                    v40: i64 = list_offset tree0.S1, v31
                    v41: i64 = add v31, v39
                    v42: i64 = list_offset tree0.S1, v41
                    v43: u1 = lt v40, v42
                    if v43 {
                        v44: i64 = const 1
                        v45: i64 = for v36, v38, v44, [v40] (v46: i64, v47: i64) {
                            v48: u1 = cell_is_active tree0.S1, v33, v46
                            v49: i64 = if v48 {
                                v50: cell<tree0.S1> = find tree0.S1, v33, v46
                                v51: i32 = cast v46
                                list_put tree0.S1, v47, v50, [v51]
                                v52: i64 = add v47, v39
                                yield [v52]
                            } {
                                yield [v47]
                            }
                            yield [v49]
                        }
                        yield []
                    } {
                        yield []
                    }
                    yield []
                }
                v53: i64 = const 0
                v54: i64 = list_len tree0.S1
                v55: i64 = const 4294967296
                parallel [v53, v53], [v54, v55] (v56: i64, v57: i64) {
                    v58: cell<tree0.S1>, v59: i32 = list_entry tree0.S1, v56
                    v60: i32 = const 65536
                    v61: i32 = mul v59, v60
                    v62: container<tree0.S2> = child tree0.S2, v58
                    v63: cell<tree0.S2> = lookup tree0.S2, v62, v57
                    v64: i64 = const 16
                    v65: i64 = shr v57, v64
                    v66: i32 = cast v65
                    v67: i32 = add v61, v66
                    v68: i64 = const 65535
                    v69: i64 = and v57, v68
                    v70: i32 = cast v69
                    cell_at tree0.S2, [v67, v70], v63
                    v71: ref<u8> = field_at @x, [v67, v70]
                    v72: u8 = const 1
                    store v71, v72
                    yield []
                }
                yield []
            }
            ");
}
