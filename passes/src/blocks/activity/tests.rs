use crate::testing::after;

const PASSES: &[&str] = &[
    "look_around",
    "list_struct_for",
    "fold",
    "identities",
    "cse",
    "licm",
    "dce",
];

/// The pass's result for the loop over the list of blocks.
fn sweep(text: &str) -> String {
    let text = after(PASSES, text, aerogel_ir::FastMath::Off);
    let at = text.rfind("    parallel [").expect("a task");
    text[at..].to_owned()
}

#[test]
fn a_row_of_words() {
    insta::assert_snapshot!(sweep("
        tree0 { pointer i:2 { bitmasked i:64 { place x: u1 } } }
        field @x: u1 = tree0 [S3]
        kernel @k() {
            v0: i32 = const 3
            v1: i32 = const 1
            parallel_cells tree0.S2 (v2: i32) {
                v3: i32 = add v2, v0
                v4: u1 = is_active tree0.S2, [v3]
                v5: ref<u1> = field_at @x, [v2]
                store v5, v4
                yield []
            }
            yield []
        }"), @"
                parallel [v2], [v43] around=activity (v44: i64) {
                    v45: cell<tree0.S1>, v46: i32 = list_entry tree0.S1, v44
                    v47: container<tree0.S2> = child tree0.S2, v45
                    v48: i32 = add v0, v46
                    v49: i32 = const 2
                    v50: u1 = lt v48, v49
                    v51: i32 = select v50, v48, v46
                    v52: cell<tree0.S1> = find_cell tree0.S1, [v51]
                    v53: cell<tree0.S1> = ambient tree0.S1
                    v54: cell<tree0.S1> = select v50, v52, v53
                    v55: container<tree0.S2> = child tree0.S2, v54
                    v56: i32 = const 64
                    v57: i32 = mul v46, v56
                    v58: i32 = const 0
                    v59: u32 = const 0
                    v60: i32 = const 31
                    v61: i32 = const 32
                    v62: u32 = const 31
                    v63: u32 = const 1
                    for v58, v49, v0, [] (v64: i32) {
                        v65: u32 = mask_word tree0.S2, v47, v64
                        v66: u1 = ne v65, v59
                        v67: u32 = if v66 {
                            v68: i32 = const 32
                            v69: i32 = mul v64, v68
                            v70: i64 = linearize tree0.S2, [v69]
                            v71: i64 = const 5
                            v72: i64 = shr v70, v71
                            v73: u32 = mask_word tree0.S2, v47, v72
                            v74: i32 = add v68, v69
                            v75: u1 = ge v74, v56
                            v76: i32 = sub v74, v56
                            v77: container<tree0.S2> = select v75, v55, v47
                            v78: i32 = select v75, v76, v74
                            v79: i64 = linearize tree0.S2, [v78]
                            v80: i64 = shr v79, v71
                            v81: u32 = mask_word tree0.S2, v77, v80
                            v82: u32 = const 3
                            v83: u32 = shr v73, v82
                            v84: u32 = const 29
                            v85: u32 = shl v81, v84
                            v86: u32 = or v83, v85
                            yield [v86]
                        } {
                            yield [v59]
                        }
                        v87: i32 = mul v64, v61
                        v88: u32 = while [v65] (v89: u32) {
                            v90: u1 = ne v89, v59
                            yield [v90]
                        } (v91: u32) {
                            v92: u32 = neg v91
                            v93: u32 = and v91, v92
                            v94: u32 = xor v91, v93
                            v95: u32 = clz v93
                            v96: i32 = cast v95
                            v97: i32 = sub v60, v96
                            v98: i32 = add v97, v87
                            v99: cell<tree0.S2> = lookup tree0.S2, v47, v98
                            v100: i32 = add v57, v98
                            v101: u32 = cast v98
                            v102: u32 = and v101, v62
                            v103: u32 = shr v67, v102
                            v104: u32 = and v63, v103
                            cell_at tree0.S2, [v100], v99
                            v105: u1 = ne v104, v59
                            v106: ref<u1> = field_at @x, [v100]
                            store v106, v105
                            yield [v94]
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
fn rows_above_and_beside() {
    insta::assert_snapshot!(sweep("
        tree0 { pointer i:2 j:2 { bitmasked i:4 j:32 { place x: u1 } } }
        tree1 { dense i:8 j:64 { place y: u1 } }
        field @y: u1 = tree1 [S2]
        kernel @k() {
            v0: i32 = const 1
            parallel_cells tree0.S2 (v1: i32, v2: i32) {
                v3: i32 = sub v1, v0
                v4: i32 = sub v2, v0
                v5: u1 = is_active tree0.S2, [v3, v2]
                v6: u1 = is_active tree0.S2, [v3, v4]
                v7: u1 = and v5, v6
                v8: ref<u1> = field_at @y, [v1, v2]
                store v8, v7
                yield []
            }
            yield []
        }"), @"
                parallel [v2], [v45] around=activity (v46: i64) {
                    v47: cell<tree0.S1>, v48: i32, v49: i32 = list_entry tree0.S1, v46
                    v50: container<tree0.S2> = child tree0.S2, v47
                    v51: i32 = const -1
                    v52: i32 = add v49, v51
                    v53: i32 = const 0
                    v54: u1 = ge v52, v53
                    v55: i32 = select v54, v52, v49
                    v56: cell<tree0.S1> = find_cell tree0.S1, [v48, v55]
                    v57: cell<tree0.S1> = ambient tree0.S1
                    v58: cell<tree0.S1> = select v54, v56, v57
                    v59: container<tree0.S2> = child tree0.S2, v58
                    v60: i32 = add v48, v51
                    v61: u1 = ge v60, v53
                    v62: i32 = select v61, v60, v48
                    v63: cell<tree0.S1> = find_cell tree0.S1, [v62, v49]
                    v64: cell<tree0.S1> = select v61, v63, v57
                    v65: container<tree0.S2> = child tree0.S2, v64
                    v66: u1 = and v54, v61
                    v67: i32 = select v66, v60, v48
                    v68: i32 = select v66, v52, v49
                    v69: cell<tree0.S1> = find_cell tree0.S1, [v67, v68]
                    v70: cell<tree0.S1> = select v66, v69, v57
                    v71: container<tree0.S2> = child tree0.S2, v70
                    v72: i32 = const 4
                    v73: i32 = mul v48, v72
                    v74: i32 = const 32
                    v75: i32 = mul v49, v74
                    v76: u32 = const 0
                    v77: i32 = const 31
                    v78: i32 = const 5
                    v79: u32 = const 31
                    v80: u32 = const 1
                    for v53, v72, v0, [] (v81: i32) {
                        v82: u32 = mask_word tree0.S2, v50, v81
                        v83: u1 = ne v82, v76
                        v84: u32, v85: u32 = if v83 {
                            v86: i32 = mul v74, v81
                            v87: i32 = const 5
                            v88: i32 = shr v86, v87
                            v89: i32 = const 31
                            v90: i32 = and v86, v89
                            v91: i32 = add v51, v88
                            v92: u1 = lt v91, v53
                            v93: i32 = const -4
                            v94: i32 = sub v91, v93
                            v95: i32 = const -32
                            v96: i32 = add v90, v95
                            v97: u1 = lt v96, v53
                            v98: i32 = sub v96, v95
                            v99: container<tree0.S2> = select v97, v59, v50
                            v100: container<tree0.S2> = select v97, v71, v65
                            v101: container<tree0.S2> = select v92, v100, v99
                            v102: i32 = select v92, v94, v91
                            v103: i32 = select v97, v98, v96
                            v104: i64 = linearize tree0.S2, [v102, v103]
                            v105: i64 = const 5
                            v106: i64 = shr v104, v105
                            v107: u32 = mask_word tree0.S2, v101, v106
                            v108: container<tree0.S2> = select v92, v65, v50
                            v109: i64 = linearize tree0.S2, [v102, v90]
                            v110: i64 = shr v109, v105
                            v111: u32 = mask_word tree0.S2, v108, v110
                            v112: u32 = const 31
                            v113: u32 = shr v107, v112
                            v114: u32 = const 1
                            v115: u32 = shl v111, v114
                            v116: u32 = or v113, v115
                            v117: u32 = mask_word tree0.S2, v108, v110
                            yield [v116, v117]
                        } {
                            yield [v76, v76]
                        }
                        v118: i32 = mul v74, v81
                        v119: u32 = while [v82] (v120: u32) {
                            v121: u1 = ne v120, v76
                            yield [v121]
                        } (v122: u32) {
                            v123: u32 = neg v122
                            v124: u32 = and v122, v123
                            v125: u32 = xor v122, v124
                            v126: u32 = clz v124
                            v127: i32 = cast v126
                            v128: i32 = sub v77, v127
                            v129: i32 = add v128, v118
                            v130: cell<tree0.S2> = lookup tree0.S2, v50, v129
                            v131: i32 = shr v129, v78
                            v132: i32 = add v73, v131
                            v133: i32 = and v77, v129
                            v134: i32 = add v75, v133
                            v135: u32 = cast v129
                            v136: u32 = and v135, v79
                            v137: u32 = shr v85, v136
                            v138: u32 = and v80, v137
                            v139: u32 = shr v84, v136
                            v140: u32 = and v80, v139
                            cell_at tree0.S2, [v132, v134], v130
                            v141: u1 = ne v138, v76
                            v142: u1 = ne v140, v76
                            v143: u1 = and v141, v142
                            v144: ref<u1> = field_at @y, [v132, v134]
                            store v144, v143
                            yield [v125]
                        }
                        yield []
                    }
                    yield []
                }
                yield []
            }
            ");
}

/// A loop over `layout`'s bitmasked cells, in a tree with a block that is not there, which notes whether the
/// cells at `distances` are active.
fn asking(layout: &str, shape: &[i64], gone: &[i64], distances: &[Vec<i64>]) -> String {
    let axes = ["i", "j", "k"];
    let dims: Vec<String> = shape
        .iter()
        .zip(axes)
        .map(|(n, a)| format!("{a}:{n}"))
        .collect();
    let (mut lines, mut next) = (Vec::new(), 0);
    let mut value = |lines: &mut Vec<String>, ty: &str, op: String| {
        lines.push(format!("v{next}: {ty} = {op}"));
        next += 1;
        format!("v{}", next - 1)
    };
    let gone: Vec<String> = gone
        .iter()
        .map(|at| value(&mut lines, "i32", format!("const {at}")))
        .collect();
    lines.push(format!("deactivate tree0.S1, [{}]", gone.join(", ")));
    let constants: Vec<Vec<String>> = distances
        .iter()
        .map(|off| {
            let each = off.iter();
            each.map(|d| value(&mut lines, "i32", format!("const {d}")))
                .collect()
        })
        .collect();
    let mut answer = value(&mut lines, "i64", "const 0".to_owned());
    let two = value(&mut lines, "i64", "const 2".to_owned());
    let mut params = Vec::new();
    let at = lines.len();
    for _ in shape {
        params.push(value(&mut lines, "i32", String::new()));
    }
    lines.truncate(at);
    let typed: Vec<String> = params.iter().map(|p| format!("{p}: i32")).collect();
    lines.push(format!("parallel_cells tree0.S2 ({}) {{", typed.join(", ")));
    for off in &constants {
        let index: Vec<String> = params
            .iter()
            .zip(off)
            .map(|(p, d)| value(&mut lines, "i32", format!("add {p}, {d}")))
            .collect();
        let asked = format!("is_active tree0.S2, [{}]", index.join(", "));
        let active = value(&mut lines, "u1", asked);
        let active = value(&mut lines, "i64", format!("cast {active}"));
        let before = value(&mut lines, "i64", format!("mul {answer}, {two}"));
        answer = value(&mut lines, "i64", format!("add {before}, {active}"));
    }
    let place = format!("field_at @y, [{}]", params.join(", "));
    let place = value(&mut lines, "ref<i64>", place);
    lines.push(format!("store {place}, {answer}\nyield []\n}}\nyield []"));
    format!(
        "tree0 {{ {layout} }}
        tree1 {{ dense {} {{ place y: i64 }} }}
        field @y: i64 = tree1 [S2]
        kernel @k() {{ {} }}",
        dims.join(" "),
        lines.join("\n")
    )
}

#[test]
fn every_distance() {
    let mut random = 1;
    let mut below = |n: i64| {
        let (next, bits) = aerogel_ir::eval::random_step(random);
        random = next;
        (bits % n as u64) as i64
    };
    for (layout, extents) in [
        ("pointer i:3 { bitmasked i:32 { place x: i32 } }", &[32][..]),
        ("hash i:3 { bitmasked i:96 { place x: i32 } }", &[96]),
        (
            "pointer i:3 j:3 { bitmasked i:3 j:64 { place x: i32 } }",
            &[3, 64],
        ),
        (
            "pointer i:3 j:3 { bitmasked i:1 j:32 { place x: i32 } }",
            &[1, 32],
        ),
        (
            "hash i:3 j:3 k:3 { bitmasked i:2 j:1 k:32 { place x: i32 } }",
            &[2, 1, 32],
        ),
    ] {
        let shape: Vec<i64> = extents.iter().map(|e| 3 * e).collect();
        for _ in 0..2 {
            let distances: Vec<Vec<i64>> = (0..6)
                .map(|_| extents.iter().map(|&e| below(2 * e + 1) - e).collect())
                .collect();
            let gone: Vec<i64> = extents.iter().map(|_| below(3)).collect();
            let text = asking(layout, &shape, &gone, &distances);
            let made = after(PASSES, &text, aerogel_ir::FastMath::Off);
            assert!(made.contains("ambient"), "{made}");
        }
    }
}

#[test]
fn what_changes_stays() {
    for change in [
        "store v5, v1",
        "activate tree0.S2, [v3]",
        "deactivate tree0.S2, [v2]",
        "deactivate tree0.S1, [v0]",
    ] {
        let text = format!(
            "
            tree0 {{ pointer i:2 {{ bitmasked i:32 {{ place x: i32 }} }} }}
            field @x: i32 = tree0 [S3]
            kernel @k() {{
                v0: i32 = const 1
                v1: i32 = const 2
                parallel_cells tree0.S2 serial (v2: i32) {{
                    v3: i32 = add v2, v0
                    v4: u1 = is_active tree0.S2, [v3]
                    v5: ref<i32> = field_at @x, [v3]
                    v6: ref<i32> = field_at @x, [v2]
                    v7: i32 = cast v4
                    store v6, v7
                    v8: u1 = lt v2, v0
                    v9: u1 = gt v2, v0
                    v10: u1 = and v8, v9
                    if v10 {{
                        {change}
                        yield []
                    }} {{
                        yield []
                    }}
                    yield []
                }}
                yield []
            }}"
        );
        let made = sweep(&text);
        assert!(made.contains("is_active"), "{made}");
    }
}

#[test]
fn what_is_far_or_divided_otherwise_stays() {
    for (nodes, distance) in [
        ("pointer i:2 { bitmasked i:64 { place x: u1 } }", 65),
        ("pointer i:4 { bitmasked i:16 { place x: u1 } }", 1),
        ("bitmasked i:2 { bitmasked i:32 { place x: u1 } }", 1),
    ] {
        let text = format!(
            "
            tree0 {{ {nodes} }}
            field @x: u1 = tree0 [S3]
            kernel @k() {{
                v0: i32 = const {distance}
                parallel_cells tree0.S2 (v1: i32) {{
                    v2: i32 = sub v1, v0
                    v3: u1 = is_active tree0.S2, [v2]
                    v4: ref<u1> = field_at @x, [v1]
                    store v4, v3
                    yield []
                }}
                yield []
            }}"
        );
        let made = sweep(&text);
        assert!(made.contains("is_active"), "{made}");
    }
}
