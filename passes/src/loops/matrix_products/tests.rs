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
        v19: i32 = const 256
        v20: i32 = div v13, v19
        v21: i32 = rem v13, v19
        v22: i32 = const 0
        v23: i32 = const 1
        v24: u1 = gt v21, v22
        v25: i32 = select v24, v23, v22
        v26: i32 = add v20, v25
        v27: i32 = const 96
        v28: i32 = const 12
        v29: i32 = const 1
        v30: i32 = const 1
        v31: i32 = max v26, v29
        v32: i32 = min v31, v30
        v33: i32 = mul v29, v32
        v34: i32 = min v33, v30
        v35: i32 = div v9, v27
        v36: i32 = rem v9, v27
        v37: i32 = const 0
        v38: i32 = const 1
        v39: u1 = gt v36, v37
        v40: i32 = select v39, v38, v37
        v41: i32 = add v35, v40
        v42: i32 = div v30, v34
        v43: i32 = rem v30, v34
        v44: i32 = const 0
        v45: i32 = const 1
        v46: u1 = gt v43, v44
        v47: i32 = select v46, v45, v44
        v48: i32 = add v42, v47
        v49: i32 = div v41, v48
        v50: i32 = rem v41, v48
        v51: i32 = const 0
        v52: i32 = const 1
        v53: u1 = gt v50, v51
        v54: i32 = select v53, v52, v51
        v55: i32 = add v49, v54
        v56: i32 = mul v55, v48
        v57: i32 = max v56, v29
        v58: i32 = div v9, v57
        v59: i32 = rem v9, v57
        v60: i32 = const 0
        v61: i32 = const 1
        v62: u1 = gt v59, v60
        v63: i32 = select v62, v61, v60
        v64: i32 = add v58, v63
        v65: i32 = div v64, v28
        v66: i32 = rem v64, v28
        v67: i32 = const 0
        v68: i32 = const 1
        v69: u1 = gt v66, v67
        v70: i32 = select v69, v68, v67
        v71: i32 = add v65, v70
        v72: i32 = max v71, v29
        v73: i32 = mul v72, v28
        v74: i32 = div v9, v73
        v75: i32 = rem v9, v73
        v76: i32 = const 0
        v77: i32 = const 1
        v78: u1 = gt v75, v76
        v79: i32 = select v78, v77, v76
        v80: i32 = add v74, v79
        parallel [v18, v18], [v80, v26] (v81: i32, v82: i32) {
            v83: i32 = const 256
            v84: i32 = mul v81, v73
            v85: i32 = sub v9, v84
            v86: i32 = min v85, v73
            v87: i32 = mul v82, v83
            v88: i32 = sub v13, v87
            v89: i32 = min v88, v83
            v90: buffer<f32> = buffer
            v91: i32 = const 117760
            v92: room<f32>, v93: u1 = reserve v90, v91
            if v93 {
                v94: i32 = const 0
                v95: i32 = const 256
                v96: i32 = const 0
                v97: i32 = const 1
                for v96, v86, v97, [] (v98: i32) {
                    v99: i32 = add v84, v98
                    v100: i32 = const 1
                    for v96, v89, v100, [] (v101: i32) {
                        v102: i32 = add v87, v101
                        v103: ref<f32> = field_at @c, [v99, v102]
                        v104: f32 = load v103
                        v105: i32 = const 91648
                        v106: i32 = const 272
                        v107: i32 = mul v98, v106
                        v108: i32 = add v105, v107
                        v109: i32 = add v108, v101
                        v110: ref<f32> = room_at v92, v109
                        store v110, v104
                        yield []
                    }
                    yield []
                }
                v111: i32 = div v17, v95
                v112: i32 = rem v17, v95
                v113: i32 = const 0
                v114: i32 = const 1
                v115: u1 = gt v112, v113
                v116: i32 = select v115, v114, v113
                v117: i32 = add v111, v116
                v118: i32 = const 1
                for v94, v117, v118, [] (v119: i32) {
                    v120: i32 = mul v119, v95
                    v121: i32 = sub v17, v120
                    v122: i32 = min v121, v95
                    v123: i32 = const 0
                    v124: i32 = const 1
                    for v123, v86, v124, [] (v125: i32) {
                        v126: i32 = const 1
                        for v123, v122, v126, [] (v127: i32) {
                            v128: i32 = add v84, v125
                            v129: i32 = add v120, v127
                            v130: ref<f32> = field_at @a, [v128, v129]
                            v131: f32 = load v130
                            v132: i32 = const 272
                            v133: i32 = mul v125, v132
                            v134: i32 = add v133, v127
                            v135: ref<f32> = room_at v92, v134
                            store v135, v131
                            yield []
                        }
                        yield []
                    }
                    v136: i32 = const 0
                    v137: i32 = const 32
                    v138: i32 = div v89, v137
                    v139: i32 = rem v89, v137
                    v140: i32 = const 1
                    for v136, v122, v140, [] (v141: i32) {
                        v142: i32 = const 1
                        for v136, v138, v142, [] (v143: i32) {
                            v144: i32 = const 1
                            for v136, v137, v144, [] (v145: i32) {
                                v146: i32 = const 32
                                v147: i32 = mul v143, v146
                                v148: i32 = add v147, v145
                                v149: i32 = add v87, v148
                                v150: i32 = add v120, v141
                                v151: ref<f32> = field_at @b, [v150, v149]
                                v152: f32 = load v151
                                v153: i32 = const 26112
                                v154: i32 = const 8192
                                v155: i32 = mul v143, v154
                                v156: i32 = add v153, v155
                                v157: i32 = const 32
                                v158: i32 = mul v141, v157
                                v159: i32 = add v156, v158
                                v160: i32 = add v159, v145
                                v161: ref<f32> = room_at v92, v160
                                store v161, v152
                                yield []
                            }
                            yield []
                        }
                        v162: i32 = const 1
                        for v136, v139, v162, [] (v163: i32) {
                            v164: i32 = const 32
                            v165: i32 = mul v138, v164
                            v166: i32 = add v165, v163
                            v167: i32 = add v87, v166
                            v168: i32 = add v120, v141
                            v169: ref<f32> = field_at @b, [v168, v167]
                            v170: f32 = load v169
                            v171: i32 = const 26112
                            v172: i32 = const 8192
                            v173: i32 = mul v138, v172
                            v174: i32 = add v171, v173
                            v175: i32 = const 32
                            v176: i32 = mul v141, v175
                            v177: i32 = add v174, v176
                            v178: i32 = add v177, v163
                            v179: ref<f32> = room_at v92, v178
                            store v179, v170
                            yield []
                        }
                        yield []
                    }
                    v180: i32 = const 0
                    v181: i32 = const 32
                    v182: i32 = const 12
                    v183: i32 = div v89, v181
                    v184: i32 = rem v89, v181
                    v185: i32 = const 0
                    v186: i32 = const 1
                    v187: u1 = gt v184, v185
                    v188: i32 = select v187, v186, v185
                    v189: i32 = add v183, v188
                    v190: i32 = div v86, v182
                    v191: i32 = rem v86, v182
                    v192: i32 = const 0
                    v193: i32 = const 1
                    v194: u1 = gt v191, v192
                    v195: i32 = select v194, v193, v192
                    v196: i32 = add v190, v195
                    v197: i32 = const 1
                    for v180, v189, v197, [] (v198: i32) {
                        v199: i32 = const 1
                        for v180, v196, v199, [] (v200: i32) {
                            v201: i32 = const 3264
                            v202: i32 = mul v200, v201
                            v203: i32 = const 26112
                            v204: i32 = const 8192
                            v205: i32 = mul v198, v204
                            v206: i32 = add v203, v205
                            v207: i32 = const 91648
                            v208: i32 = const 3264
                            v209: i32 = mul v200, v208
                            v210: i32 = add v207, v209
                            v211: i32 = const 32
                            v212: i32 = mul v198, v211
                            v213: i32 = add v210, v212
                            tile_product v92, [v202, v206, v213], v122, 12, 32, 272, 272, false
                            yield []
                        }
                        yield []
                    }
                    yield []
                }
                v214: i32 = const 0
                v215: i32 = const 1
                for v214, v86, v215, [] (v216: i32) {
                    v217: i32 = add v84, v216
                    v218: i32 = const 1
                    for v214, v89, v218, [] (v219: i32) {
                        v220: i32 = add v87, v219
                        v221: i32 = const 91648
                        v222: i32 = const 272
                        v223: i32 = mul v216, v222
                        v224: i32 = add v221, v223
                        v225: i32 = add v224, v219
                        v226: ref<f32> = room_at v92, v225
                        v227: f32 = load v226
                        v228: ref<f32> = field_at @c, [v217, v220]
                        store v228, v227
                        yield []
                    }
                    yield []
                }
                yield []
            } {
                v229: i32 = const 0
                v230: i32 = const 1
                for v229, v86, v230, [] (v231: i32) {
                    v232: i32 = add v84, v231
                    v233: i32 = const 1
                    for v229, v89, v233, [] (v234: i32) {
                        v235: i32 = add v87, v234
                        v236: ref<f32> = field_at @c, [v232, v235]
                        v237: f32 = load v236
                        v238: i32 = const 1
                        v239: f32 = for v0, v4, v238, [v237] (v240: i32, v241: f32) {
                            v242: ref<f32> = field_at @a, [v232, v240]
                            v243: f32 = load v242
                            v244: ref<f32> = field_at @b, [v240, v235]
                            v245: f32 = load v244
                            v246: f32 = mul v243, v245
                            v247: f32 = add v246, v241
                            yield [v247]
                        }
                        store v236, v239
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
        v19: i32 = const 256
        v20: i32 = div v13, v19
        v21: i32 = rem v13, v19
        v22: i32 = const 0
        v23: i32 = const 1
        v24: u1 = gt v21, v22
        v25: i32 = select v24, v23, v22
        v26: i32 = add v20, v25
        v27: i32 = const 96
        v28: i32 = const 12
        v29: i32 = const 1
        v30: i32 = const 1
        v31: i32 = max v26, v29
        v32: i32 = min v31, v30
        v33: i32 = mul v29, v32
        v34: i32 = min v33, v30
        v35: i32 = div v9, v27
        v36: i32 = rem v9, v27
        v37: i32 = const 0
        v38: i32 = const 1
        v39: u1 = gt v36, v37
        v40: i32 = select v39, v38, v37
        v41: i32 = add v35, v40
        v42: i32 = div v30, v34
        v43: i32 = rem v30, v34
        v44: i32 = const 0
        v45: i32 = const 1
        v46: u1 = gt v43, v44
        v47: i32 = select v46, v45, v44
        v48: i32 = add v42, v47
        v49: i32 = div v41, v48
        v50: i32 = rem v41, v48
        v51: i32 = const 0
        v52: i32 = const 1
        v53: u1 = gt v50, v51
        v54: i32 = select v53, v52, v51
        v55: i32 = add v49, v54
        v56: i32 = mul v55, v48
        v57: i32 = max v56, v29
        v58: i32 = div v9, v57
        v59: i32 = rem v9, v57
        v60: i32 = const 0
        v61: i32 = const 1
        v62: u1 = gt v59, v60
        v63: i32 = select v62, v61, v60
        v64: i32 = add v58, v63
        v65: i32 = div v64, v28
        v66: i32 = rem v64, v28
        v67: i32 = const 0
        v68: i32 = const 1
        v69: u1 = gt v66, v67
        v70: i32 = select v69, v68, v67
        v71: i32 = add v65, v70
        v72: i32 = max v71, v29
        v73: i32 = mul v72, v28
        v74: i32 = div v9, v73
        v75: i32 = rem v9, v73
        v76: i32 = const 0
        v77: i32 = const 1
        v78: u1 = gt v75, v76
        v79: i32 = select v78, v77, v76
        v80: i32 = add v74, v79
        parallel [v18, v18], [v80, v26] (v81: i32, v82: i32) {
            v83: i32 = const 256
            v84: i32 = mul v81, v73
            v85: i32 = sub v9, v84
            v86: i32 = min v85, v73
            v87: i32 = mul v82, v83
            v88: i32 = sub v13, v87
            v89: i32 = min v88, v83
            v90: buffer<f32> = buffer
            v91: i32 = const 117760
            v92: room<f32>, v93: u1 = reserve v90, v91
            if v93 {
                v94: i32 = const 0
                v95: i32 = const 256
                v96: i32 = const 0
                v97: i32 = const 1
                for v96, v86, v97, [] (v98: i32) {
                    v99: i32 = add v84, v98
                    v100: i32 = const 1
                    for v96, v89, v100, [] (v101: i32) {
                        v102: i32 = add v87, v101
                        v103: f32 = const 0.0
                        v104: i32 = const 91648
                        v105: i32 = const 272
                        v106: i32 = mul v98, v105
                        v107: i32 = add v104, v106
                        v108: i32 = add v107, v101
                        v109: ref<f32> = room_at v92, v108
                        store v109, v103
                        yield []
                    }
                    yield []
                }
                v110: i32 = div v17, v95
                v111: i32 = rem v17, v95
                v112: i32 = const 0
                v113: i32 = const 1
                v114: u1 = gt v111, v112
                v115: i32 = select v114, v113, v112
                v116: i32 = add v110, v115
                v117: i32 = const 1
                for v94, v116, v117, [] (v118: i32) {
                    v119: i32 = mul v118, v95
                    v120: i32 = sub v17, v119
                    v121: i32 = min v120, v95
                    v122: i32 = const 0
                    v123: i32 = const 1
                    for v122, v86, v123, [] (v124: i32) {
                        v125: i32 = const 1
                        for v122, v121, v125, [] (v126: i32) {
                            v127: i32 = add v84, v124
                            v128: i32 = add v119, v126
                            v129: ref<f32> = field_at @a, [v127, v128]
                            v130: f32 = load v129
                            v131: i32 = const 272
                            v132: i32 = mul v124, v131
                            v133: i32 = add v132, v126
                            v134: ref<f32> = room_at v92, v133
                            store v134, v130
                            yield []
                        }
                        yield []
                    }
                    v135: i32 = const 0
                    v136: i32 = const 32
                    v137: i32 = div v89, v136
                    v138: i32 = rem v89, v136
                    v139: i32 = const 1
                    for v135, v121, v139, [] (v140: i32) {
                        v141: i32 = const 1
                        for v135, v137, v141, [] (v142: i32) {
                            v143: i32 = const 1
                            for v135, v136, v143, [] (v144: i32) {
                                v145: i32 = const 32
                                v146: i32 = mul v142, v145
                                v147: i32 = add v146, v144
                                v148: i32 = add v87, v147
                                v149: i32 = add v119, v140
                                v150: ref<f32> = field_at @b, [v149, v148]
                                v151: f32 = load v150
                                v152: i32 = const 26112
                                v153: i32 = const 8192
                                v154: i32 = mul v142, v153
                                v155: i32 = add v152, v154
                                v156: i32 = const 32
                                v157: i32 = mul v140, v156
                                v158: i32 = add v155, v157
                                v159: i32 = add v158, v144
                                v160: ref<f32> = room_at v92, v159
                                store v160, v151
                                yield []
                            }
                            yield []
                        }
                        v161: i32 = const 1
                        for v135, v138, v161, [] (v162: i32) {
                            v163: i32 = const 32
                            v164: i32 = mul v137, v163
                            v165: i32 = add v164, v162
                            v166: i32 = add v87, v165
                            v167: i32 = add v119, v140
                            v168: ref<f32> = field_at @b, [v167, v166]
                            v169: f32 = load v168
                            v170: i32 = const 26112
                            v171: i32 = const 8192
                            v172: i32 = mul v137, v171
                            v173: i32 = add v170, v172
                            v174: i32 = const 32
                            v175: i32 = mul v140, v174
                            v176: i32 = add v173, v175
                            v177: i32 = add v176, v162
                            v178: ref<f32> = room_at v92, v177
                            store v178, v169
                            yield []
                        }
                        yield []
                    }
                    v179: i32 = const 0
                    v180: i32 = const 32
                    v181: i32 = const 12
                    v182: i32 = div v89, v180
                    v183: i32 = rem v89, v180
                    v184: i32 = const 0
                    v185: i32 = const 1
                    v186: u1 = gt v183, v184
                    v187: i32 = select v186, v185, v184
                    v188: i32 = add v182, v187
                    v189: i32 = div v86, v181
                    v190: i32 = rem v86, v181
                    v191: i32 = const 0
                    v192: i32 = const 1
                    v193: u1 = gt v190, v191
                    v194: i32 = select v193, v192, v191
                    v195: i32 = add v189, v194
                    v196: i32 = const 1
                    for v179, v188, v196, [] (v197: i32) {
                        v198: i32 = const 1
                        for v179, v195, v198, [] (v199: i32) {
                            v200: i32 = const 3264
                            v201: i32 = mul v199, v200
                            v202: i32 = const 26112
                            v203: i32 = const 8192
                            v204: i32 = mul v197, v203
                            v205: i32 = add v202, v204
                            v206: i32 = const 91648
                            v207: i32 = const 3264
                            v208: i32 = mul v199, v207
                            v209: i32 = add v206, v208
                            v210: i32 = const 32
                            v211: i32 = mul v197, v210
                            v212: i32 = add v209, v211
                            tile_product v92, [v201, v205, v212], v121, 12, 32, 272, 272, true
                            yield []
                        }
                        yield []
                    }
                    yield []
                }
                v213: i32 = const 0
                v214: i32 = const 1
                for v213, v86, v214, [] (v215: i32) {
                    v216: i32 = add v84, v215
                    v217: i32 = const 1
                    for v213, v89, v217, [] (v218: i32) {
                        v219: i32 = add v87, v218
                        v220: i32 = const 91648
                        v221: i32 = const 272
                        v222: i32 = mul v215, v221
                        v223: i32 = add v220, v222
                        v224: i32 = add v223, v218
                        v225: ref<f32> = room_at v92, v224
                        v226: f32 = load v225
                        v227: ref<f32> = field_at @c, [v216, v219]
                        store v227, v226
                        yield []
                    }
                    yield []
                }
                yield []
            } {
                v228: i32 = const 0
                v229: i32 = const 1
                for v228, v86, v229, [] (v230: i32) {
                    v231: i32 = add v84, v230
                    v232: i32 = const 1
                    for v228, v89, v232, [] (v233: i32) {
                        v234: i32 = add v87, v233
                        v235: f32 = const 0.0
                        v236: i32 = const 1
                        v237: f32 = for v0, v4, v236, [v235] (v238: i32, v239: f32) {
                            v240: ref<f32> = field_at @a, [v231, v238]
                            v241: f32 = load v240
                            v242: ref<f32> = field_at @b, [v238, v234]
                            v243: f32 = load v242
                            v244: f32 = mul v241, v243
                            v245: f32 = add v244, v239
                            yield [v245]
                        }
                        v246: ref<f32> = field_at @c, [v231, v234]
                        store v246, v237
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
