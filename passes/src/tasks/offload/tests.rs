use crate::testing::check_pass;

#[test]
fn a_sum_printed_afterwards() {
    check_pass!("offload", "
        kernel @bar(n: i32) {
            v0: i32 = const 0
            v1: ref<i32> = local
            store v1, v0
            v2: i32 = arg a0
            parallel [v0], [v2] (v3: i32) {
                v4: i32 = atomic_add v1, v3
                yield []
            }
            v5: i32 = load v1
            print \"{}\\n\", [v5]
            yield []
        }", @r#"
        kernel @bar(n: i32) {
            task serial {
                yield []
            } {
                v0: ref<i32> = temp_at 0
                v1: i32 = const 0
                store v0, v1
                v2: i32 = const 0
                store v0, v2
                yield []
            }
            task range {
                v3: i32 = const 0
                v4: i32 = arg a0
                yield [v3, v4]
            } {
                v5: ref<i32> = temp_at 0
                each (v6: i32) {
                    v7: i32 = atomic_add v5, v6
                    yield []
                }
                yield []
            }
            task serial {
                yield []
            } {
                v8: ref<i32> = temp_at 0
                v9: i32 = load v8
                print "{}\n", [v9]
                yield []
            }
            yield []
        }
        "#);
}

#[test]
fn values_that_cross() {
    check_pass!("offload", "
        tree0 { place n: i32, dense i:8 { place x: i32 } }
        field @n: i32 = tree0 [S1]
        field @x: i32 = tree0 [S3]
        kernel @k() -> i32 {
            v0: i32 = const 0
            v1: ref<i32> = field_at @n, []
            v2: i32 = load v1
            v3: i32 = add v2, v2
            parallel [v0], [v3] (v4: i32) {
                v5: ref<i32> = field_at @x, [v4]
                store v5, v3
                yield []
            }
            return [v2]
        }", @"
        kernel @k() -> i32 {
            task serial {
                yield []
            } {
                v0: ref<i32> = field_at @n, []
                v1: i32 = load v0
                v2: ref<i32> = temp_at 4
                store v2, v1
                v3: i32 = add v1, v1
                v4: ref<i32> = temp_at 0
                store v4, v3
                yield []
            }
            task range {
                v5: i32 = const 0
                v6: ref<i32> = temp_at 0
                v7: i32 = load v6
                yield [v5, v7]
            } {
                v8: ref<i32> = temp_at 0
                v9: i32 = load v8
                each (v10: i32) {
                    v11: ref<i32> = field_at @x, [v10]
                    store v11, v9
                    yield []
                }
                yield []
            }
            task serial {
                yield []
            } {
                v12: ref<i32> = temp_at 4
                v13: i32 = load v12
                return [v13]
            }
            yield []
        }
        ");
}

#[test]
fn what_follows_a_return_does_nothing() {
    check_pass!("offload", "
        tree0 { dense i:8 { place x: i32 } }
        field @x: i32 = tree0 [S2]
        kernel @k(n: i32) -> i32 {
            v0: i32 = arg a0
            v1: i32 = const 0
            v2: u1 = lt v0, v1
            if v2 {
                return [v1]
            } {
                yield []
            }
            v3: i32 = const 8
            parallel [v1], [v3] (v4: i32) {
                v5: ref<i32> = field_at @x, [v4]
                store v5, v0
                yield []
            }
            v6: ref<i32> = field_at @x, [v1]
            v7: i32 = load v6
            return [v7]
        }", @"
        kernel @k(n: i32) -> i32 {
            task serial {
                yield []
            } {
                v0: ref<u1> = temp_at 0
                v1: u1 = const 0
                store v0, v1
                v2: i32 = arg a0
                v3: i32 = const 0
                v4: u1 = lt v2, v3
                if v4 {
                    v5: ref<u1> = temp_at 0
                    v6: u1 = const 1
                    store v5, v6
                    return [v3]
                } {
                    yield []
                }
                yield []
            }
            task range {
                v7: i32 = const 0
                v8: i32 = const 8
                v9: ref<u1> = temp_at 0
                v10: u1 = load v9
                v11: i32 = select v10, v7, v8
                yield [v7, v11]
            } {
                v12: i32 = arg a0
                each (v13: i32) {
                    v14: ref<i32> = field_at @x, [v13]
                    store v14, v12
                    yield []
                }
                yield []
            }
            task serial {
                yield []
            } {
                v15: ref<u1> = temp_at 0
                v16: u1 = load v15
                if v16 {
                    yield []
                } {
                    v17: i32 = const 0
                    v18: ref<i32> = field_at @x, [v17]
                    v19: i32 = load v18
                    return [v19]
                }
                yield []
            }
            yield []
        }
        ");
}

#[test]
fn long_chains_are_walked_once() {
    let squares: String = (1..64)
        .map(|k| format!("v{k}: i32 = mul v{}, v{}\n", k - 1, k - 1))
        .collect();
    crate::testing::after(
        &["offload"],
        &format!(
            "kernel @k(n: i32, a: array<i32, 1>) {{
                v0: i32 = arg a0
                {squares}
                vz: i32 = const 0
                vn: i32 = const 4
                parallel [vz], [vn] (vi: i32) {{
                    vp: ref<i32> = array_at a1, [vi]
                    store vp, v63
                    yield []
                }}
                yield []
            }}"
        ),
        aerogel_ir::FastMath::Off,
    );
}
