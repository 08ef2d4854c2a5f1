use crate::testing::check_pass;

#[test]
fn sum() {
    check_pass!("thread_local", "
        kernel @k() {
            task range {
                v0: i32 = const 0
                v1: i32 = const 10
                yield [v0, v1]
            } {
                v2: ref<i32> = temp_at 0
                each (v3: i32) {
                    v4: i32 = atomic_add v2, v3
                    yield []
                }
                yield []
            }
            yield []
        }", @"
        kernel @k() {
            task range {
                v0: i32 = const 0
                v1: i32 = const 10
                yield [v0, v1]
            } {
                v2: ref<i32> = temp_at 0
                v3: ref<i32> = local
                v4: i32 = const 0
                store v3, v4
                each (v5: i32) {
                    v6: i32 = load v3
                    v7: i32 = add v6, v5
                    store v3, v7
                    yield []
                }
                v8: i32 = load v3
                v9: ref<i32> = temp_at 0
                v10: i32 = atomic_add v9, v8
                yield []
            }
            yield []
        }
        ");
}

#[test]
fn used_old_values_stay_atomic() {
    check_pass!("thread_local", "
        tree0 { place n: i32, dense i:16 { place x: i32 } }
        field @n: i32 = tree0 [S1]
        field @x: i32 = tree0 [S3]
        kernel @k() {
            task range {
                v0: i32 = const 0
                v1: i32 = const 10
                yield [v0, v1]
            } {
                v2: ref<i32> = field_at @n, []
                v5: i32 = const 1
                each (v3: i32) {
                    v4: i32 = atomic_add v2, v5
                    v6: ref<i32> = field_at @x, [v4]
                    store v6, v5
                    yield []
                }
                yield []
            }
            yield []
        }", @"
        kernel @k() {
            task range {
                v0: i32 = const 0
                v1: i32 = const 10
                yield [v0, v1]
            } {
                v2: ref<i32> = field_at @n, []
                v3: i32 = const 1
                each (v4: i32) {
                    v5: i32 = atomic_add v2, v3
                    v6: ref<i32> = field_at @x, [v5]
                    store v6, v3
                    yield []
                }
                yield []
            }
            yield []
        }
        ");
}

#[test]
fn a_target_that_may_not_be_there_is_changed_only_if_the_loop_did() {
    check_pass!("thread_local", "
        tree0 { dense i:4 { place x: i32 } }
        field @x: i32 = tree0 [S2]
        kernel @k(n: i32) {
            task range {
                v0: i32 = const 0
                v1: i32 = const 10
                yield [v0, v1]
            } {
                v2: i32 = arg a0
                v3: i32 = const 4
                v4: u1 = lt v2, v3
                v5: ref<i32> = field_at @x, [v2]
                each (v6: i32) {
                    if v4 {
                        v7: i32 = atomic_add v5, v6
                        yield []
                    } {
                        yield []
                    }
                    yield []
                }
                yield []
            }
            yield []
        }", @"
        kernel @k(n: i32) {
            task range {
                v0: i32 = const 0
                v1: i32 = const 10
                yield [v0, v1]
            } {
                v2: i32 = arg a0
                v3: i32 = const 4
                v4: u1 = lt v2, v3
                v5: ref<i32> = field_at @x, [v2]
                v6: ref<i32> = local
                v7: i32 = const 0
                store v6, v7
                each (v8: i32) {
                    if v4 {
                        v9: i32 = load v6
                        v10: i32 = add v9, v8
                        store v6, v10
                        yield []
                    } {
                        yield []
                    }
                    yield []
                }
                v11: i32 = load v6
                v12: i32 = const 0
                v13: u1 = ne v11, v12
                if v13 {
                    v14: ref<i32> = field_at @x, [v2]
                    v15: i32 = atomic_add v14, v11
                    yield []
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
fn one_unknown_component_stays_atomic() {
    check_pass!("thread_local", "
        tree0 { place x: i32, place y: i32 }
        field @v: vec<2, i32> = tree0 [S1, S2]
        kernel @k(n: i32) {
            task range {
                v0: i32 = const 0
                v1: i32 = const 10
                yield [v0, v1]
            } {
                v2: i32 = arg a0
                v3: ref<vec<2, i32>> = field_at @v, []
                v4: ref<i32> = elem_ref v3, [v2]
                each (v6: i32) {
                    v7: i32 = atomic_add v4, v6
                    yield []
                }
                yield []
            }
            yield []
        }", @"
        kernel @k(n: i32) {
            task range {
                v0: i32 = const 0
                v1: i32 = const 10
                yield [v0, v1]
            } {
                v2: i32 = arg a0
                v3: ref<vec<2, i32>> = field_at @v, []
                v4: ref<i32> = elem_ref v3, [v2]
                each (v5: i32) {
                    v6: i32 = atomic_add v4, v5
                    yield []
                }
                yield []
            }
            yield []
        }
        ");
}

#[test]
fn a_call_may_touch_the_target() {
    check_pass!("thread_local", "
        tree0 { place x: i32 }
        field @x: i32 = tree0 [S1]
        kernel @k() {
            task range {
                v0: i32 = const 0
                v1: i32 = const 10
                yield [v0, v1]
            } {
                v2: ref<i32> = field_at @x, []
                each (v3: i32) {
                    v4: i32 = atomic_add v2, v3
                    call @halve, []
                    yield []
                }
                yield []
            }
            yield []
        }
        func @halve() {
            v0: ref<i32> = field_at @x, []
            v1: i32 = load v0
            v2: i32 = const 2
            v3: i32 = div v1, v2
            store v0, v3
            yield []
        }", @"
        kernel @k() {
            task range {
                v0: i32 = const 0
                v1: i32 = const 10
                yield [v0, v1]
            } {
                v2: ref<i32> = field_at @x, []
                each (v3: i32) {
                    v4: i32 = atomic_add v2, v3
                    call @halve, []
                    yield []
                }
                yield []
            }
            yield []
        }
        ");
}

#[test]
fn minima_of_nothing_keep_nan() {
    check_pass!("thread_local", "
        kernel @k() {
            task range {
                v0: i32 = const 0
                v1: i32 = const 10
                yield [v0, v1]
            } {
                v2: ref<f32> = temp_at 0
                each (v3: i32) {
                    v4: f32 = cast v3
                    v5: f32 = atomic_min v2, v4
                    yield []
                }
                yield []
            }
            yield []
        }", @"
        kernel @k() {
            task range {
                v0: i32 = const 0
                v1: i32 = const 10
                yield [v0, v1]
            } {
                v2: ref<f32> = temp_at 0
                v3: ref<f32> = local
                v4: f32 = const inf
                store v3, v4
                each (v5: i32) {
                    v6: f32 = cast v5
                    v7: f32 = load v3
                    v8: f32 = min v7, v6
                    store v3, v8
                    yield []
                }
                v9: f32 = load v3
                v10: u32 = bitcast v9
                v11: u32 = const 2139095040
                v12: u1 = ne v10, v11
                if v12 {
                    v13: ref<f32> = temp_at 0
                    v14: f32 = atomic_min v13, v9
                    yield []
                } {
                    yield []
                }
                yield []
            }
            yield []
        }
        ");
}
