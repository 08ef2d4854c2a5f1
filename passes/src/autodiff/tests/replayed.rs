//! Memory that the kernel overwrites and the backward pass needs.

use aerogel_ir::Derivative;

use super::{derivative, whole};

#[test]
fn a_chain_in_an_iteration() {
    ::insta::assert_snapshot!(derivative(
        Derivative::Grad,
        "v1: ref<f64> = field_at @x, [v0]
        v2: f64 = load v1
        v3: f64 = sin v2
        store v1, v3
        v4: f64 = load v1
        v5: f64 = mul v4, v4
        store v1, v5"
    ), @"
        kernel @k_grad() {
            v0: i32 = const 0
            v1: i32 = const 8
            parallel [v0], [v1] (v2: i32) {
                v3: ref<f64> = field_at @x, [v2]
                v4: f64 = load v3
                v5: f64 = sin v4
                v6: f64 = const 0.0
                v7: ref<f64> = field_at @gx, [v2]
                v8: f64 = load v7
                store v7, v6
                v9: f64 = mul v5, v8
                v10: f64 = add v9, v9
                v11: f64 = atomic_add v7, v10
                store v3, v4
                v12: f64 = load v7
                store v7, v6
                v13: f64 = cos v4
                v14: f64 = mul v12, v13
                v15: f64 = atomic_add v7, v14
                yield []
            }
            return []
        }
    ");
}

#[test]
fn steps_in_order() {
    ::insta::assert_snapshot!(whole(
        Derivative::Grad,
        "v0: i32 = const 0
        v1: i32 = const 100
        v2: i32 = const 1
        v3: i32 = const 7
        for v0, v1, v2, [] (v4: i32) {
            v5: i32 = and v4, v3
            v6: ref<f64> = field_at @x, [v5]
            v7: f64 = load v6
            v8: f64 = sin v7
            store v6, v8
            yield []
        }
        return []"
    ), @r#"
        kernel @k_grad() {
            v0: i32 = const 0
            v1: i32 = const 100
            v2: i32 = const 1
            v3: i32 = const 7
            v4: i64 = const 0
            v5: buffer<i32> = buffer
            v6: buffer<f64> = buffer
            v7: i64 = const 100
            v8: i64 = const 1
            v9: buffer<i64> = buffer
            v10: room<i64>, v11: u1 = reserve v9, v7
            assert v11, memory, "no memory for what the gradient saves of a loop: {} numbers in one thread (ti.init(ad_memory=...) says how much there may be)", [v7]
            v12: i64, v13: i64 = for v0, v1, v2, [v4, v4] (v14: i32, v15: i64, v16: i64) {
                v17: ref<i64> = room_at v10, v15
                store v17, v16
                v18: i32 = and v3, v14
                v19: ref<f64> = field_at @x, [v18]
                v20: f64 = load v19
                v21: f64 = sin v20
                v22: i64 = add v16, v8
                v23: room<i32>, v24: u1 = reserve v5, v22
                assert v24, memory, "no memory for what the gradient saves of a loop: {} numbers in one thread (ti.init(ad_memory=...) says how much there may be)", [v22]
                v25: ref<i32> = room_at v23, v16
                store v25, v18
                v26: room<f64>, v27: u1 = reserve v6, v22
                assert v27, memory, "no memory for what the gradient saves of a loop: {} numbers in one thread (ti.init(ad_memory=...) says how much there may be)", [v22]
                v28: ref<f64> = room_at v26, v16
                store v28, v20
                store v19, v21
                v29: i64 = add v15, v8
                yield [v29, v22]
            }
            v30: i64 = const -1
            v31: i64 = const 99
            v32: i64 = for v31, v30, v30, [v13] (v33: i64, v34: i64) {
                v35: i32 = cast v33
                v36: ref<i64> = room_at v10, v33
                v37: i64 = load v36
                v38: i64 = add v30, v34
                v39: i64 = add v30, v37
                v40: room<i32>, v41: u1 = reserve v5, v34
                assert v41, memory, "no memory for what the gradient saves of a loop: {} numbers in one thread (ti.init(ad_memory=...) says how much there may be)", [v34]
                v42: room<f64>, v43: u1 = reserve v6, v34
                assert v43, memory, "no memory for what the gradient saves of a loop: {} numbers in one thread (ti.init(ad_memory=...) says how much there may be)", [v34]
                for v38, v39, v30, [] (v44: i64) {
                    v45: ref<i32> = room_at v40, v44
                    v46: i32 = load v45
                    v47: ref<f64> = room_at v42, v44
                    v48: f64 = load v47
                    v49: ref<f64> = field_at @x, [v46]
                    store v49, v48
                    yield []
                }
                v50: i32 = and v3, v35
                v51: ref<f64> = field_at @x, [v50]
                v52: f64 = load v51
                v53: f64 = const 0.0
                v54: ref<f64> = field_at @gx, [v50]
                v55: f64 = load v54
                store v54, v53
                v56: f64 = cos v52
                v57: f64 = mul v55, v56
                v58: f64 = atomic_add v54, v57
                yield [v37]
            }
            return []
        }
    "#);
}

#[test]
fn loops_of_which_one_overwrites_what_another_reads() {
    ::insta::assert_snapshot!(whole(
        Derivative::Grad,
        "v0: i32 = const 0
        v1: i32 = const 8
        parallel [v0], [v1] (v2: i32) {
            v3: ref<f64> = field_at @x, [v2]
            v4: f64 = load v3
            v5: f64 = sin v4
            store v3, v5
            yield []
        }
        parallel [v0], [v1] (v2: i32) {
            v3: ref<f64> = field_at @x, [v2]
            v4: f64 = load v3
            v5: f64 = sin v4
            store v3, v5
            yield []
        }
        return []"
    ), @"
        kernel @k_grad() {
            v0: i32 = const 0
            v1: i32 = const 8
            v2: i32 = const 1
            v3: i64 = const 0
            v4: ref<vec<8, i32>> = local
            v5: ref<vec<8, f64>> = local
            v6: i64 = const 1
            v7: ref<vec<8, i64>> = local
            v8: i64, v9: i64 = for v0, v1, v2, [v3, v3] (v10: i32, v11: i64, v12: i64) {
                v13: ref<i64> = elem_ref v7, [v11]
                store v13, v12
                v14: ref<f64> = field_at @x, [v10]
                v15: f64 = load v14
                v16: f64 = sin v15
                v17: ref<i32> = elem_ref v4, [v12]
                store v17, v10
                v18: ref<f64> = elem_ref v5, [v12]
                store v18, v15
                v19: i64 = add v12, v6
                store v14, v16
                v20: i64 = add v11, v6
                yield [v20, v19]
            }
            v21: ref<vec<8, i32>> = local
            v22: ref<vec<8, f64>> = local
            v23: ref<vec<8, i64>> = local
            v24: i64, v25: i64 = for v0, v1, v2, [v3, v3] (v26: i32, v27: i64, v28: i64) {
                v29: ref<i64> = elem_ref v23, [v27]
                store v29, v28
                v30: ref<f64> = field_at @x, [v26]
                v31: f64 = load v30
                v32: f64 = sin v31
                v33: ref<i32> = elem_ref v21, [v28]
                store v33, v26
                v34: ref<f64> = elem_ref v22, [v28]
                store v34, v31
                v35: i64 = add v28, v6
                store v30, v32
                v36: i64 = add v27, v6
                yield [v36, v35]
            }
            v37: i64 = const -1
            v38: i64 = const 7
            v39: i64 = for v38, v37, v37, [v25] (v40: i64, v41: i64) {
                v42: i32 = cast v40
                v43: ref<i64> = elem_ref v23, [v40]
                v44: i64 = load v43
                v45: i64 = add v37, v41
                v46: i64 = add v37, v44
                for v45, v46, v37, [] (v47: i64) {
                    v48: ref<i32> = elem_ref v21, [v47]
                    v49: i32 = load v48
                    v50: ref<f64> = elem_ref v22, [v47]
                    v51: f64 = load v50
                    v52: ref<f64> = field_at @x, [v49]
                    store v52, v51
                    yield []
                }
                v53: ref<f64> = field_at @x, [v42]
                v54: f64 = load v53
                v55: f64 = const 0.0
                v56: ref<f64> = field_at @gx, [v42]
                v57: f64 = load v56
                store v56, v55
                v58: f64 = cos v54
                v59: f64 = mul v57, v58
                v60: f64 = atomic_add v56, v59
                yield [v44]
            }
            v61: i64 = for v38, v37, v37, [v9] (v62: i64, v63: i64) {
                v64: i32 = cast v62
                v65: ref<i64> = elem_ref v7, [v62]
                v66: i64 = load v65
                v67: i64 = add v37, v63
                v68: i64 = add v37, v66
                for v67, v68, v37, [] (v69: i64) {
                    v70: ref<i32> = elem_ref v4, [v69]
                    v71: i32 = load v70
                    v72: ref<f64> = elem_ref v5, [v69]
                    v73: f64 = load v72
                    v74: ref<f64> = field_at @x, [v71]
                    store v74, v73
                    yield []
                }
                v75: ref<f64> = field_at @x, [v64]
                v76: f64 = load v75
                v77: f64 = const 0.0
                v78: ref<f64> = field_at @gx, [v64]
                v79: f64 = load v78
                store v78, v77
                v80: f64 = cos v76
                v81: f64 = mul v79, v80
                v82: f64 = atomic_add v78, v81
                yield [v66]
            }
            return []
        }
    ");
}

#[test]
fn what_iterations_race_for() {
    ::insta::assert_snapshot!(derivative(
        Derivative::Grad,
        "v3: i32 = const 7
        v4: i32 = and v0, v3
        v5: i32 = const 1
        v6: i32 = add v4, v5
        v1: ref<f64> = field_at @x, [v0]
        v7: ref<f64> = field_at @x, [v6]
        v2: f64 = load v7
        v8: f64 = mul v2, v2
        store v1, v8"
    ), @"E0603: the gradient needs the value that is read here, and the kernel overwrites it");
}

#[test]
fn an_extremum_that_iterations_share() {
    ::insta::assert_snapshot!(derivative(
        Derivative::Grad,
        "v1: ref<f64> = field_at @x, [v0]
        v2: f64 = load v1
        v3: ref<f64> = field_at @t, []
        v4: ref<f64> = field_at @y, [vlo]
        v5: f64 = atomic_max v4, v2"
    ), @"
        kernel @k_grad() {
            v0: i32 = const 0
            v1: i32 = const 8
            v2: i64 = const -9223372036854775808
            v3: ref<i64> = local
            store v3, v2
            parallel [v0], [v1] (v4: i32) {
                v5: i64 = cast v4
                v6: ref<f64> = field_at @x, [v4]
                v7: f64 = load v6
                v8: ref<f64> = field_at @y, [v0]
                v9: f64 = load v8
                v10: u1 = eq v7, v9
                v11: f64 = sub v7, v9
                v12: f64 = abs v11
                v13: f64 = abs v9
                v14: f64 = const 1.4210854715202004e-14
                v15: f64 = mul v13, v14
                v16: u1 = le v12, v15
                v17: u1 = or v10, v16
                v18: i64 = const 4611686018427387904
                v19: i64 = add v5, v18
                v20: i64 = select v10, v19, v5
                if v17 {
                    v21: i64 = atomic_max v3, v20
                    yield []
                } {
                    yield []
                }
                yield []
            }
            parallel [v0], [v1] (v22: i32) {
                v23: i64 = cast v22
                v24: ref<f64> = field_at @x, [v22]
                v25: f64 = load v24
                v26: ref<f64> = field_at @y, [v0]
                v27: f64 = const 0.0
                v28: f64 = load v26
                v29: u1 = eq v25, v28
                v30: f64 = sub v25, v28
                v31: f64 = abs v30
                v32: f64 = abs v28
                v33: f64 = const 1.4210854715202004e-14
                v34: f64 = mul v32, v33
                v35: u1 = le v31, v34
                v36: u1 = or v29, v35
                v37: i64 = const 4611686018427387904
                v38: i64 = add v23, v37
                v39: i64 = select v29, v38, v23
                v40: i64 = load v3
                v41: u1 = eq v40, v39
                v42: u1 = and v36, v41
                v43: f64 = if v42 {
                    v44: ref<f64> = field_at @gy, [v0]
                    v45: f64 = atomic_exchange v44, v27
                    yield [v45]
                } {
                    yield [v27]
                }
                v46: ref<f64> = field_at @gx, [v22]
                v47: f64 = atomic_add v46, v43
                yield []
            }
            return []
        }
    ");
}

#[test]
fn a_quotient_is_read_where_it_is_stored() {
    ::insta::assert_snapshot!(derivative(
        Derivative::Grad,
        "v1: ref<f64> = field_at @x, [v0]
        v2: f64 = load v1
        v3: ref<f64> = field_at @y, [v0]
        v4: f64 = load v3
        v5: f64 = div v2, v4
        store v1, v5"
    ), @"
        kernel @k_grad() {
            v0: i32 = const 0
            v1: i32 = const 8
            parallel [v0], [v1] (v2: i32) {
                v3: ref<f64> = field_at @y, [v2]
                v4: f64 = load v3
                v5: ref<f64> = field_at @x, [v2]
                v6: f64 = load v5
                v7: f64 = const 0.0
                v8: ref<f64> = field_at @gx, [v2]
                v9: f64 = load v8
                store v8, v7
                v10: f64 = div v9, v4
                v11: u1 = eq v9, v7
                v12: u1 = ne v10, v10
                v13: u1 = and v11, v12
                v14: f64 = select v13, v7, v10
                v15: f64 = div v6, v4
                v16: f64 = mul v9, v15
                v17: f64 = neg v16
                v18: u1 = ne v17, v17
                v19: u1 = and v11, v18
                v20: f64 = select v19, v7, v17
                v21: ref<f64> = field_at @gy, [v2]
                v22: f64 = atomic_add v21, v20
                v23: f64 = atomic_add v8, v14
                yield []
            }
            return []
        }
    ");
}
