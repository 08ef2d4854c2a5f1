use aerogel_ir::FastMath;

use crate::testing::after;

/// What the pass makes of a kernel over matrices of 12 x 240, 240 x 40 and 12 x 40 numbers.
fn made(body: &str, level: FastMath) -> String {
    let text = format!(
        "
        tree0 {{ dense i:12 j:240 {{ place a: f32 }} }}
        tree1 {{ dense i:240 j:40 {{ place b: f32 }} }}
        tree2 {{ dense i:12 j:40 {{ place c: f32 }} }}
        field @a: f32 = tree0 [S2]
        field @b: f32 = tree1 [S2]
        field @c: f32 = tree2 [S2]
        kernel @k() {{
            v0: i32 = const 0
            v1: i32 = const 1
            v2: i32 = const 12
            v3: i32 = const 40
            v4: i32 = const 240
            v5: f32 = const 0.0
            {body}
            return []
        }}"
    );
    after(&["matrix_products"], &text, level)
}

const ADDED: &str = "
    parallel [v0], [v2] (v6: i32) {
        for v0, v4, v1, [] (v7: i32) {
            v8: ref<f32> = field_at @a, [v6, v7]
            v9: f32 = load v8
            for v0, v3, v1, [] (v10: i32) {
                v11: ref<f32> = field_at @b, [v7, v10]
                v12: f32 = load v11
                v13: f32 = mul v9, v12
                v14: ref<f32> = field_at @c, [v6, v10]
                v15: f32 = load v14
                v16: f32 = add v13, v15
                store v14, v16
                yield []
            }
            yield []
        }
        yield []
    }";

const CLEARED: &str = "
    parallel_cells tree2.S1 (v30: i32, v31: i32) {
        v32: ref<f32> = field_at @c, [v30, v31]
        store v32, v5
        yield []
    }";

#[test]
fn sums_in_memory() {
    insta::assert_snapshot!(made(ADDED, FastMath::Accumulations), @"
    kernel @k() {
        v0: i32 = const 0
        v1: i32 = const 1
        v2: i32 = const 12
        v3: i32 = const 40
        v4: i32 = const 240
        v5: f32 = const 0.0
        v6: u1 = lt v0, v2
        v7: i32 = sub v2, v0
        v8: i32 = const 0
        v9: i32 = select v6, v7, v8
        v10: u1 = lt v0, v3
        v11: i32 = sub v3, v0
        v12: i32 = const 0
        v13: i32 = select v10, v11, v12
        v14: u1 = lt v0, v4
        v15: i32 = sub v4, v0
        v16: i32 = const 0
        v17: i32 = select v14, v15, v16
        v18: i32 = const 0
        v19: i32 = const 1048576
        v20: i64 = const 1
        v21: i32 = min v9, v19
        v22: i64 = cast v21
        v23: i64 = mul v20, v22
        v24: i32 = min v13, v19
        v25: i64 = cast v24
        v26: i64 = mul v23, v25
        v27: i32 = const 24
        v28: i64 = const 90000
        v29: i32 = const 48
        v30: u1 = ge v26, v28
        v31: i32 = select v30, v29, v27
        v32: i64 = const 1440000
        v33: i32 = const 96
        v34: u1 = ge v26, v32
        v35: i32 = select v34, v33, v31
        v36: i32 = div v9, v35
        v37: i32 = rem v9, v35
        v38: i32 = const 0
        v39: i32 = const 1
        v40: u1 = gt v37, v38
        v41: i32 = select v40, v39, v38
        v42: i32 = add v36, v41
        v43: i32 = const 256
        v44: i32 = div v13, v43
        v45: i32 = rem v13, v43
        v46: i32 = const 0
        v47: i32 = const 1
        v48: u1 = gt v45, v46
        v49: i32 = select v48, v47, v46
        v50: i32 = add v44, v49
        parallel [v18, v18], [v42, v50] (v51: i32, v52: i32) {
            v53: i32 = const 256
            v54: i32 = mul v51, v35
            v55: i32 = sub v9, v54
            v56: i32 = min v55, v35
            v57: i32 = mul v52, v53
            v58: i32 = sub v13, v57
            v59: i32 = min v58, v53
            v60: buffer<f32> = buffer
            v61: i32 = const 117760
            v62: room<f32>, v63: u1 = reserve v60, v61
            if v63 {
                v64: i32 = const 0
                v65: i32 = const 256
                v66: i32 = const 0
                v67: i32 = const 1
                for v66, v56, v67, [] (v68: i32) {
                    v69: i32 = add v54, v68
                    v70: i32 = const 1
                    for v66, v59, v70, [] (v71: i32) {
                        v72: i32 = add v57, v71
                        v73: ref<f32> = field_at @c, [v69, v72]
                        v74: f32 = load v73
                        v75: i32 = const 91648
                        v76: i32 = const 272
                        v77: i32 = mul v68, v76
                        v78: i32 = add v75, v77
                        v79: i32 = add v78, v71
                        v80: ref<f32> = room_at v62, v79
                        store v80, v74
                        yield []
                    }
                    yield []
                }
                v81: i32 = div v17, v65
                v82: i32 = rem v17, v65
                v83: i32 = const 0
                v84: i32 = const 1
                v85: u1 = gt v82, v83
                v86: i32 = select v85, v84, v83
                v87: i32 = add v81, v86
                v88: i32 = const 1
                for v64, v87, v88, [] (v89: i32) {
                    v90: i32 = mul v89, v65
                    v91: i32 = sub v17, v90
                    v92: i32 = min v91, v65
                    v93: i32 = const 0
                    v94: i32 = const 1
                    for v93, v56, v94, [] (v95: i32) {
                        v96: i32 = const 1
                        for v93, v92, v96, [] (v97: i32) {
                            v98: i32 = add v54, v95
                            v99: i32 = add v90, v97
                            v100: ref<f32> = field_at @a, [v98, v99]
                            v101: f32 = load v100
                            v102: i32 = const 272
                            v103: i32 = mul v95, v102
                            v104: i32 = add v103, v97
                            v105: ref<f32> = room_at v62, v104
                            store v105, v101
                            yield []
                        }
                        yield []
                    }
                    v106: i32 = const 0
                    v107: i32 = const 32
                    v108: i32 = div v59, v107
                    v109: i32 = rem v59, v107
                    v110: i32 = const 1
                    for v106, v92, v110, [] (v111: i32) {
                        v112: i32 = const 1
                        for v106, v108, v112, [] (v113: i32) {
                            v114: i32 = const 1
                            for v106, v107, v114, [] (v115: i32) {
                                v116: i32 = const 32
                                v117: i32 = mul v113, v116
                                v118: i32 = add v117, v115
                                v119: i32 = add v57, v118
                                v120: i32 = add v90, v111
                                v121: ref<f32> = field_at @b, [v120, v119]
                                v122: f32 = load v121
                                v123: i32 = const 26112
                                v124: i32 = const 8192
                                v125: i32 = mul v113, v124
                                v126: i32 = add v123, v125
                                v127: i32 = const 32
                                v128: i32 = mul v111, v127
                                v129: i32 = add v126, v128
                                v130: i32 = add v129, v115
                                v131: ref<f32> = room_at v62, v130
                                store v131, v122
                                yield []
                            }
                            yield []
                        }
                        v132: i32 = const 1
                        for v106, v109, v132, [] (v133: i32) {
                            v134: i32 = const 32
                            v135: i32 = mul v108, v134
                            v136: i32 = add v135, v133
                            v137: i32 = add v57, v136
                            v138: i32 = add v90, v111
                            v139: ref<f32> = field_at @b, [v138, v137]
                            v140: f32 = load v139
                            v141: i32 = const 26112
                            v142: i32 = const 8192
                            v143: i32 = mul v108, v142
                            v144: i32 = add v141, v143
                            v145: i32 = const 32
                            v146: i32 = mul v111, v145
                            v147: i32 = add v144, v146
                            v148: i32 = add v147, v133
                            v149: ref<f32> = room_at v62, v148
                            store v149, v140
                            yield []
                        }
                        yield []
                    }
                    v150: i32 = const 0
                    v151: i32 = const 32
                    v152: i32 = const 12
                    v153: i32 = div v59, v151
                    v154: i32 = rem v59, v151
                    v155: i32 = const 0
                    v156: i32 = const 1
                    v157: u1 = gt v154, v155
                    v158: i32 = select v157, v156, v155
                    v159: i32 = add v153, v158
                    v160: i32 = div v56, v152
                    v161: i32 = rem v56, v152
                    v162: i32 = const 0
                    v163: i32 = const 1
                    v164: u1 = gt v161, v162
                    v165: i32 = select v164, v163, v162
                    v166: i32 = add v160, v165
                    v167: i32 = const 1
                    for v150, v159, v167, [] (v168: i32) {
                        v169: i32 = const 1
                        for v150, v166, v169, [] (v170: i32) {
                            v171: i32 = const 3264
                            v172: i32 = mul v170, v171
                            v173: i32 = const 26112
                            v174: i32 = const 8192
                            v175: i32 = mul v168, v174
                            v176: i32 = add v173, v175
                            v177: i32 = const 91648
                            v178: i32 = const 3264
                            v179: i32 = mul v170, v178
                            v180: i32 = add v177, v179
                            v181: i32 = const 32
                            v182: i32 = mul v168, v181
                            v183: i32 = add v180, v182
                            tile_product v62, [v172, v176, v183], v92, 12, 32, 272, 272, false
                            yield []
                        }
                        yield []
                    }
                    yield []
                }
                v184: i32 = const 0
                v185: i32 = const 1
                for v184, v56, v185, [] (v186: i32) {
                    v187: i32 = add v54, v186
                    v188: i32 = const 1
                    for v184, v59, v188, [] (v189: i32) {
                        v190: i32 = add v57, v189
                        v191: i32 = const 91648
                        v192: i32 = const 272
                        v193: i32 = mul v186, v192
                        v194: i32 = add v191, v193
                        v195: i32 = add v194, v189
                        v196: ref<f32> = room_at v62, v195
                        v197: f32 = load v196
                        v198: ref<f32> = field_at @c, [v187, v190]
                        store v198, v197
                        yield []
                    }
                    yield []
                }
                yield []
            } {
                v199: i32 = const 0
                v200: i32 = const 1
                for v199, v56, v200, [] (v201: i32) {
                    v202: i32 = add v54, v201
                    v203: i32 = const 1
                    for v199, v59, v203, [] (v204: i32) {
                        v205: i32 = add v57, v204
                        v206: ref<f32> = field_at @c, [v202, v205]
                        v207: f32 = load v206
                        v208: i32 = const 1
                        v209: f32 = for v0, v4, v208, [v207] (v210: i32, v211: f32) {
                            v212: ref<f32> = field_at @a, [v202, v210]
                            v213: f32 = load v212
                            v214: ref<f32> = field_at @b, [v210, v205]
                            v215: f32 = load v214
                            v216: f32 = mul v213, v215
                            v217: f32 = add v216, v211
                            yield [v217]
                        }
                        store v206, v209
                        yield []
                    }
                    yield []
                }
                yield []
            }
            yield []
        }
        return []
    }
    ");
}

#[test]
fn cleared_by_the_loop_before() {
    let body = format!("{CLEARED}{ADDED}");
    insta::assert_snapshot!(made(&body, FastMath::Accumulations), @"
    kernel @k() {
        v0: i32 = const 0
        v1: i32 = const 1
        v2: i32 = const 12
        v3: i32 = const 40
        v4: i32 = const 240
        v5: f32 = const 0.0
        v6: u1 = lt v0, v2
        v7: i32 = sub v2, v0
        v8: i32 = const 0
        v9: i32 = select v6, v7, v8
        v10: u1 = lt v0, v3
        v11: i32 = sub v3, v0
        v12: i32 = const 0
        v13: i32 = select v10, v11, v12
        v14: u1 = lt v0, v4
        v15: i32 = sub v4, v0
        v16: i32 = const 0
        v17: i32 = select v14, v15, v16
        v18: i32 = const 0
        v19: i32 = const 1048576
        v20: i64 = const 1
        v21: i32 = min v9, v19
        v22: i64 = cast v21
        v23: i64 = mul v20, v22
        v24: i32 = min v13, v19
        v25: i64 = cast v24
        v26: i64 = mul v23, v25
        v27: i32 = const 24
        v28: i64 = const 90000
        v29: i32 = const 48
        v30: u1 = ge v26, v28
        v31: i32 = select v30, v29, v27
        v32: i64 = const 1440000
        v33: i32 = const 96
        v34: u1 = ge v26, v32
        v35: i32 = select v34, v33, v31
        v36: i32 = div v9, v35
        v37: i32 = rem v9, v35
        v38: i32 = const 0
        v39: i32 = const 1
        v40: u1 = gt v37, v38
        v41: i32 = select v40, v39, v38
        v42: i32 = add v36, v41
        v43: i32 = const 256
        v44: i32 = div v13, v43
        v45: i32 = rem v13, v43
        v46: i32 = const 0
        v47: i32 = const 1
        v48: u1 = gt v45, v46
        v49: i32 = select v48, v47, v46
        v50: i32 = add v44, v49
        parallel [v18, v18], [v42, v50] (v51: i32, v52: i32) {
            v53: i32 = const 256
            v54: i32 = mul v51, v35
            v55: i32 = sub v9, v54
            v56: i32 = min v55, v35
            v57: i32 = mul v52, v53
            v58: i32 = sub v13, v57
            v59: i32 = min v58, v53
            v60: buffer<f32> = buffer
            v61: i32 = const 117760
            v62: room<f32>, v63: u1 = reserve v60, v61
            if v63 {
                v64: i32 = const 0
                v65: i32 = const 256
                v66: i32 = const 0
                v67: i32 = const 1
                for v66, v56, v67, [] (v68: i32) {
                    v69: i32 = add v54, v68
                    v70: i32 = const 1
                    for v66, v59, v70, [] (v71: i32) {
                        v72: i32 = add v57, v71
                        v73: f32 = const 0.0
                        v74: i32 = const 91648
                        v75: i32 = const 272
                        v76: i32 = mul v68, v75
                        v77: i32 = add v74, v76
                        v78: i32 = add v77, v71
                        v79: ref<f32> = room_at v62, v78
                        store v79, v73
                        yield []
                    }
                    yield []
                }
                v80: i32 = div v17, v65
                v81: i32 = rem v17, v65
                v82: i32 = const 0
                v83: i32 = const 1
                v84: u1 = gt v81, v82
                v85: i32 = select v84, v83, v82
                v86: i32 = add v80, v85
                v87: i32 = const 1
                for v64, v86, v87, [] (v88: i32) {
                    v89: i32 = mul v88, v65
                    v90: i32 = sub v17, v89
                    v91: i32 = min v90, v65
                    v92: i32 = const 0
                    v93: i32 = const 1
                    for v92, v56, v93, [] (v94: i32) {
                        v95: i32 = const 1
                        for v92, v91, v95, [] (v96: i32) {
                            v97: i32 = add v54, v94
                            v98: i32 = add v89, v96
                            v99: ref<f32> = field_at @a, [v97, v98]
                            v100: f32 = load v99
                            v101: i32 = const 272
                            v102: i32 = mul v94, v101
                            v103: i32 = add v102, v96
                            v104: ref<f32> = room_at v62, v103
                            store v104, v100
                            yield []
                        }
                        yield []
                    }
                    v105: i32 = const 0
                    v106: i32 = const 32
                    v107: i32 = div v59, v106
                    v108: i32 = rem v59, v106
                    v109: i32 = const 1
                    for v105, v91, v109, [] (v110: i32) {
                        v111: i32 = const 1
                        for v105, v107, v111, [] (v112: i32) {
                            v113: i32 = const 1
                            for v105, v106, v113, [] (v114: i32) {
                                v115: i32 = const 32
                                v116: i32 = mul v112, v115
                                v117: i32 = add v116, v114
                                v118: i32 = add v57, v117
                                v119: i32 = add v89, v110
                                v120: ref<f32> = field_at @b, [v119, v118]
                                v121: f32 = load v120
                                v122: i32 = const 26112
                                v123: i32 = const 8192
                                v124: i32 = mul v112, v123
                                v125: i32 = add v122, v124
                                v126: i32 = const 32
                                v127: i32 = mul v110, v126
                                v128: i32 = add v125, v127
                                v129: i32 = add v128, v114
                                v130: ref<f32> = room_at v62, v129
                                store v130, v121
                                yield []
                            }
                            yield []
                        }
                        v131: i32 = const 1
                        for v105, v108, v131, [] (v132: i32) {
                            v133: i32 = const 32
                            v134: i32 = mul v107, v133
                            v135: i32 = add v134, v132
                            v136: i32 = add v57, v135
                            v137: i32 = add v89, v110
                            v138: ref<f32> = field_at @b, [v137, v136]
                            v139: f32 = load v138
                            v140: i32 = const 26112
                            v141: i32 = const 8192
                            v142: i32 = mul v107, v141
                            v143: i32 = add v140, v142
                            v144: i32 = const 32
                            v145: i32 = mul v110, v144
                            v146: i32 = add v143, v145
                            v147: i32 = add v146, v132
                            v148: ref<f32> = room_at v62, v147
                            store v148, v139
                            yield []
                        }
                        yield []
                    }
                    v149: i32 = const 0
                    v150: i32 = const 32
                    v151: i32 = const 12
                    v152: i32 = div v59, v150
                    v153: i32 = rem v59, v150
                    v154: i32 = const 0
                    v155: i32 = const 1
                    v156: u1 = gt v153, v154
                    v157: i32 = select v156, v155, v154
                    v158: i32 = add v152, v157
                    v159: i32 = div v56, v151
                    v160: i32 = rem v56, v151
                    v161: i32 = const 0
                    v162: i32 = const 1
                    v163: u1 = gt v160, v161
                    v164: i32 = select v163, v162, v161
                    v165: i32 = add v159, v164
                    v166: i32 = const 1
                    for v149, v158, v166, [] (v167: i32) {
                        v168: i32 = const 1
                        for v149, v165, v168, [] (v169: i32) {
                            v170: i32 = const 3264
                            v171: i32 = mul v169, v170
                            v172: i32 = const 26112
                            v173: i32 = const 8192
                            v174: i32 = mul v167, v173
                            v175: i32 = add v172, v174
                            v176: i32 = const 91648
                            v177: i32 = const 3264
                            v178: i32 = mul v169, v177
                            v179: i32 = add v176, v178
                            v180: i32 = const 32
                            v181: i32 = mul v167, v180
                            v182: i32 = add v179, v181
                            tile_product v62, [v171, v175, v182], v91, 12, 32, 272, 272, true
                            yield []
                        }
                        yield []
                    }
                    yield []
                }
                v183: i32 = const 0
                v184: i32 = const 1
                for v183, v56, v184, [] (v185: i32) {
                    v186: i32 = add v54, v185
                    v187: i32 = const 1
                    for v183, v59, v187, [] (v188: i32) {
                        v189: i32 = add v57, v188
                        v190: i32 = const 91648
                        v191: i32 = const 272
                        v192: i32 = mul v185, v191
                        v193: i32 = add v190, v192
                        v194: i32 = add v193, v188
                        v195: ref<f32> = room_at v62, v194
                        v196: f32 = load v195
                        v197: ref<f32> = field_at @c, [v186, v189]
                        store v197, v196
                        yield []
                    }
                    yield []
                }
                yield []
            } {
                v198: i32 = const 0
                v199: i32 = const 1
                for v198, v56, v199, [] (v200: i32) {
                    v201: i32 = add v54, v200
                    v202: i32 = const 1
                    for v198, v59, v202, [] (v203: i32) {
                        v204: i32 = add v57, v203
                        v205: f32 = const 0.0
                        v206: i32 = const 1
                        v207: f32 = for v0, v4, v206, [v205] (v208: i32, v209: f32) {
                            v210: ref<f32> = field_at @a, [v201, v208]
                            v211: f32 = load v210
                            v212: ref<f32> = field_at @b, [v208, v204]
                            v213: f32 = load v212
                            v214: f32 = mul v211, v213
                            v215: f32 = add v214, v209
                            yield [v215]
                        }
                        v216: ref<f32> = field_at @c, [v201, v204]
                        store v216, v207
                        yield []
                    }
                    yield []
                }
                yield []
            }
            yield []
        }
        return []
    }
    ");
    // Without fast maths only the products are rounded by themselves.
    let fused = made(&body, FastMath::Accumulations);
    let apart = made(&body, FastMath::Off);
    let different: Vec<_> = fused
        .lines()
        .zip(apart.lines())
        .filter(|(a, b)| a != b)
        .collect();
    let [(fused, apart)] = different[..] else {
        panic!("{different:?}");
    };
    assert_eq!(fused.replace("true", "false"), apart);
}

#[test]
fn any_order() {
    let body = "
        parallel [v0, v0, v0], [v4, v3, v2] (v6: i32, v7: i32, v8: i32) {
            v9: ref<f32> = field_at @c, [v8, v7]
            v10: ref<f32> = field_at @a, [v8, v6]
            v11: f32 = load v10
            v12: ref<f32> = field_at @b, [v6, v7]
            v13: f32 = load v12
            v14: f32 = mul v11, v13
            v15: f32 = atomic_add v9, v14
            yield []
        }";
    let [made, in_memory] = [body, ADDED].map(|body| made(body, FastMath::Accumulations));
    assert_eq!(made, in_memory);
}

#[test]
fn results_that_are_factors_stay() {
    let body = ADDED.replace("@a, [v6, v7]", "@c, [v6, v7]");
    insta::assert_snapshot!(made(&body, FastMath::Accumulations), @"
    kernel @k() {
        v0: i32 = const 0
        v1: i32 = const 1
        v2: i32 = const 12
        v3: i32 = const 40
        v4: i32 = const 240
        v5: f32 = const 0.0
        parallel [v0], [v2] (v6: i32) {
            for v0, v4, v1, [] (v7: i32) {
                v8: ref<f32> = field_at @c, [v6, v7]
                v9: f32 = load v8
                for v0, v3, v1, [] (v10: i32) {
                    v11: ref<f32> = field_at @b, [v7, v10]
                    v12: f32 = load v11
                    v13: f32 = mul v9, v12
                    v14: ref<f32> = field_at @c, [v6, v10]
                    v15: f32 = load v14
                    v16: f32 = add v13, v15
                    store v14, v16
                    yield []
                }
                yield []
            }
            yield []
        }
        return []
    }
    ");
}

#[test]
fn sums_that_share_elements_stay() {
    let body = ADDED.replace("field_at @c, [v6, v10]", "field_at @c, [v0, v10]");
    insta::assert_snapshot!(made(&body, FastMath::Accumulations), @"
    kernel @k() {
        v0: i32 = const 0
        v1: i32 = const 1
        v2: i32 = const 12
        v3: i32 = const 40
        v4: i32 = const 240
        v5: f32 = const 0.0
        parallel [v0], [v2] (v6: i32) {
            for v0, v4, v1, [] (v7: i32) {
                v8: ref<f32> = field_at @a, [v6, v7]
                v9: f32 = load v8
                for v0, v3, v1, [] (v10: i32) {
                    v11: ref<f32> = field_at @b, [v7, v10]
                    v12: f32 = load v11
                    v13: f32 = mul v9, v12
                    v14: ref<f32> = field_at @c, [v0, v10]
                    v15: f32 = load v14
                    v16: f32 = add v13, v15
                    store v14, v16
                    yield []
                }
                yield []
            }
            yield []
        }
        return []
    }
    ");
}
