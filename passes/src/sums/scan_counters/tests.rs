use crate::testing::check_pass;

#[test]
fn offsets() {
    check_pass!("scan_counters", "
        tree0 { place n: i32, dense i:16 { place x: i32, place y: i32 } }
        field @n: i32 = tree0 [S1]
        field @x: i32 = tree0 [S3]
        field @y: i32 = tree0 [S4]
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 16
            parallel [v0], [v1] (v2: i32) {
                v3: ref<i32> = field_at @x, [v2]
                v4: i32 = load v3
                v5: ref<i32> = field_at @n, []
                v6: i32 = atomic_add v5, v4
                v7: ref<i32> = field_at @y, [v2]
                store v7, v6
                yield []
            }
            return []
        }", @"
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 16
            v2: i64 = cast v0
            v3: i64 = const 1
            v4: i64 = cast v0
            v5: i64 = cast v1
            v6: i64 = sub v5, v4
            v7: i64 = const 256
            v8: i64 = const 1024
            v9: i64 = mul v6, v3
            v10: i64 = floordiv v9, v7
            v11: i64 = min v10, v8
            v12: i64 = floordiv v11, v3
            v13: i64 = max v12, v3
            v14: i64 = sub v13, v3
            v15: i64 = add v6, v14
            v16: i64 = floordiv v15, v13
            v17: i32 = cast v16
            v18: i32 = const 0
            parallel [v18], [v17] (v19: i32) {
                v20: i64 = cast v19
                v21: i64 = mul v20, v13
                v22: i64 = sub v6, v21
                v23: i64 = min v13, v22
                v24: i64 = add v2, v21
                v25: i64 = add v24, v23
                v26: i32 = cast v24
                v27: i32 = cast v25
                v28: i32 = const 0
                v29: i32 = const 0
                v30: i32 = const 1
                v31: i32 = for v26, v27, v30, [v28] (v32: i32, v33: i32) {
                    v34: ref<i32> = field_at @x, [v32]
                    v35: i32 = load v34
                    v36: ref<i32> = field_at @n, []
                    v37: i32 = add v33, v35
                    v38: ref<i32> = field_at @y, [v32]
                    yield [v37]
                }
                v39: ref<i32> = field_at @n, []
                v40: i32 = atomic_add v39, v31
                v41: i32 = const 1
                v42: i32 = for v26, v27, v41, [v40] (v43: i32, v44: i32) {
                    v45: ref<i32> = field_at @x, [v43]
                    v46: i32 = load v45
                    v47: ref<i32> = field_at @n, []
                    v48: i32 = add v44, v46
                    v49: ref<i32> = field_at @y, [v43]
                    store v49, v44
                    yield [v48]
                }
                yield []
            }
            return []
        }
        ");
}

#[test]
fn a_list_of_those_that_match() {
    check_pass!("scan_counters", "
        tree0 { dense i:4 { place n: i32 }, dense i:16 { place x: i32, place y: i32 } }
        field @n: i32 = tree0 [S2]
        field @x: i32 = tree0 [S4]
        field @y: i32 = tree0 [S5]
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 16
            v8: i32 = const 1
            parallel [v0, v0], [v8, v1] (v9: i32, v2: i32) {
                v3: ref<i32> = field_at @x, [v2]
                v4: i32 = load v3
                v10: u1 = gt v4, v0
                if v10 {
                    v5: ref<i32> = field_at @n, [v8]
                    v6: i32 = atomic_add v5, v8
                    v7: ref<i32> = field_at @y, [v6]
                    store v7, v2
                    yield []
                } {
                    v11: ref<i32> = field_at @n, [v0]
                    v12: i32 = atomic_sub v11, v8
                    v13: ref<i32> = field_at @y, [v12]
                    store v13, v2
                    yield []
                }
                yield []
            }
            return []
        }", @"
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 16
            v2: i32 = const 1
            v3: i64 = cast v0
            v4: i64 = const 1
            v5: i64 = cast v0
            v6: i64 = cast v2
            v7: i64 = sub v6, v5
            v8: i64 = cast v0
            v9: i64 = cast v1
            v10: i64 = sub v9, v8
            v11: i64 = max v10, v4
            v12: i64 = mul v4, v11
            v13: i64 = const 256
            v14: i64 = const 1024
            v15: i64 = mul v7, v12
            v16: i64 = floordiv v15, v13
            v17: i64 = min v16, v14
            v18: i64 = floordiv v17, v12
            v19: i64 = max v18, v4
            v20: i64 = sub v19, v4
            v21: i64 = add v7, v20
            v22: i64 = floordiv v21, v19
            v23: i32 = cast v22
            v24: i32 = const 0
            parallel [v24], [v23] (v25: i32) {
                v26: i64 = cast v25
                v27: i64 = mul v26, v19
                v28: i64 = sub v7, v27
                v29: i64 = min v19, v28
                v30: i64 = add v3, v27
                v31: i64 = add v30, v29
                v32: i32 = cast v30
                v33: i32 = cast v31
                v34: i32 = const 0
                v35: i32 = const 0
                v36: i32 = const 0
                v37: i32 = const 0
                v38: i32 = const 1
                v39: i32, v40: i32 = for v32, v33, v38, [v34, v36] (v41: i32, v42: i32, v43: i32) {
                    v44: i32 = const 1
                    v45: i32, v46: i32 = for v0, v1, v44, [v42, v43] (v47: i32, v48: i32, v49: i32) {
                        v50: ref<i32> = field_at @x, [v47]
                        v51: i32 = load v50
                        v52: u1 = gt v51, v0
                        v53: i32, v54: i32 = if v52 {
                            v55: ref<i32> = field_at @n, [v2]
                            v56: i32 = add v48, v2
                            v57: ref<i32> = field_at @y, [v48]
                            yield [v56, v49]
                        } {
                            v58: ref<i32> = field_at @n, [v0]
                            v59: i32 = sub v49, v2
                            v60: ref<i32> = field_at @y, [v49]
                            yield [v48, v59]
                        }
                        yield [v53, v54]
                    }
                    yield [v45, v46]
                }
                v61: i32 = const 1
                v62: ref<i32> = field_at @n, [v61]
                v63: i32 = atomic_add v62, v39
                v64: i32 = const 0
                v65: ref<i32> = field_at @n, [v64]
                v66: i32 = atomic_add v65, v40
                v67: i32 = const 1
                v68: i32, v69: i32 = for v32, v33, v67, [v63, v66] (v70: i32, v71: i32, v72: i32) {
                    v73: i32 = const 1
                    v74: i32, v75: i32 = for v0, v1, v73, [v71, v72] (v76: i32, v77: i32, v78: i32) {
                        v79: ref<i32> = field_at @x, [v76]
                        v80: i32 = load v79
                        v81: u1 = gt v80, v0
                        v82: i32, v83: i32 = if v81 {
                            v84: ref<i32> = field_at @n, [v2]
                            v85: i32 = add v77, v2
                            v86: ref<i32> = field_at @y, [v77]
                            store v86, v76
                            yield [v85, v78]
                        } {
                            v87: ref<i32> = field_at @n, [v0]
                            v88: i32 = sub v78, v2
                            v89: ref<i32> = field_at @y, [v78]
                            store v89, v76
                            yield [v77, v88]
                        }
                        yield [v82, v83]
                    }
                    yield [v74, v75]
                }
                yield []
            }
            return []
        }
        ");
}

#[test]
fn what_depends_on_what_the_loop_writes_stays() {
    check_pass!("scan_counters", "
        tree0 { place n: i32, place m: i32, dense i:16 { place x: i32, place y: i32 } }
        field @n: i32 = tree0 [S1]
        field @m: i32 = tree0 [S2]
        field @x: i32 = tree0 [S4]
        field @y: i32 = tree0 [S5]
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 16
            v8: i32 = const 1
            parallel [v0], [v1] (v2: i32) {
                v3: ref<i32> = field_at @x, [v2]
                v4: i32 = load v3
                v5: ref<i32> = field_at @n, []
                v6: i32 = atomic_add v5, v4
                store v3, v6
                v7: ref<i32> = field_at @m, []
                v9: i32 = load v7
                v10: i32 = atomic_add v7, v8
                v11: ref<i32> = field_at @y, [v10]
                store v11, v9
                yield []
            }
            return []
        }", @"
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 16
            v2: i32 = const 1
            parallel [v0], [v1] (v3: i32) {
                v4: ref<i32> = field_at @x, [v3]
                v5: i32 = load v4
                v6: ref<i32> = field_at @n, []
                v7: i32 = atomic_add v6, v5
                store v4, v7
                v8: ref<i32> = field_at @m, []
                v9: i32 = load v8
                v10: i32 = atomic_add v8, v2
                v11: ref<i32> = field_at @y, [v10]
                store v11, v9
                yield []
            }
            return []
        }
        ");
}

#[test]
fn a_counter_of_the_kernel_that_iterations_may_skip() {
    check_pass!("scan_counters", "
        tree0 { dense i:16 { place x: i32, place y: i32 } }
        field @x: i32 = tree0 [S2]
        field @y: i32 = tree0 [S3]
        kernel @k(n: array<i32, 1>) -> i32 {
            v0: i32 = const 0
            v1: i32 = const 16
            v8: i32 = const 1
            v9: ref<i32> = local
            parallel [v0], [v1] (v2: i32) {
                v3: ref<i32> = field_at @x, [v2]
                v4: i32 = load v3
                v10: u1 = le v4, v0
                if v10 {
                    continue []
                } {
                    yield []
                }
                v6: i32 = atomic_add v9, v4
                v12: ref<i32> = array_at a0, [v0]
                v13: i32 = atomic_add v12, v8
                v7: ref<i32> = field_at @y, [v13]
                store v7, v6
                yield []
            }
            v11: i32 = load v9
            return [v11]
        }", @"
        kernel @k(n: array<i32, 1>) -> i32 {
            v0: i32 = const 0
            v1: i32 = const 16
            v2: i32 = const 1
            v3: ref<i32> = local
            v4: i64 = cast v0
            v5: i64 = const 1
            v6: i64 = cast v0
            v7: i64 = cast v1
            v8: i64 = sub v7, v6
            v9: i64 = const 256
            v10: i64 = const 1024
            v11: i64 = mul v8, v5
            v12: i64 = floordiv v11, v9
            v13: i64 = min v12, v10
            v14: i64 = floordiv v13, v5
            v15: i64 = max v14, v5
            v16: i64 = sub v15, v5
            v17: i64 = add v8, v16
            v18: i64 = floordiv v17, v15
            v19: i32 = cast v18
            v20: i32 = const 0
            parallel [v20], [v19] (v21: i32) {
                v22: i64 = cast v21
                v23: i64 = mul v22, v15
                v24: i64 = sub v8, v23
                v25: i64 = min v15, v24
                v26: i64 = add v4, v23
                v27: i64 = add v26, v25
                v28: i32 = cast v26
                v29: i32 = cast v27
                v30: i32 = const 0
                v31: i32 = const 0
                v32: i32 = const 0
                v33: i32 = const 0
                v34: i32 = const 0
                v35: i32 = const 1
                v36: i32, v37: i32, v38: i32 = for v28, v29, v35, [v30, v32, v34] (v39: i32, v40: i32, v41: i32, v42: i32) {
                    v43: ref<i32> = field_at @x, [v39]
                    v44: i32 = load v43
                    v45: u1 = le v44, v0
                    if v45 {
                        continue [v40, v41, v42]
                    } {
                        yield []
                    }
                    v46: i32 = add v40, v44
                    v47: ref<i32> = array_at a0, [v0]
                    v48: i32 = add v41, v2
                    v49: i32 = const 1
                    v50: ref<i32> = field_at @y, [v41]
                    yield [v46, v48, v49]
                }
                v51: i32 = atomic_add v3, v36
                v52: i32 = const 0
                v53: u1 = ne v38, v52
                v54: i32 = if v53 {
                    v55: i32 = const 0
                    v56: ref<i32> = array_at a0, [v55]
                    v57: i32 = atomic_add v56, v37
                    yield [v57]
                } {
                    yield [v37]
                }
                v58: i32 = const 1
                v59: i32, v60: i32 = for v28, v29, v58, [v51, v54] (v61: i32, v62: i32, v63: i32) {
                    v64: ref<i32> = field_at @x, [v61]
                    v65: i32 = load v64
                    v66: u1 = le v65, v0
                    if v66 {
                        continue [v62, v63]
                    } {
                        yield []
                    }
                    v67: i32 = add v62, v65
                    v68: ref<i32> = array_at a0, [v0]
                    v69: i32 = add v63, v2
                    v70: ref<i32> = field_at @y, [v63]
                    store v70, v62
                    yield [v67, v69]
                }
                yield []
            }
            v71: i32 = load v3
            return [v71]
        }
        ");
}
