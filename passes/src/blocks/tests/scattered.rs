//! Elements around a cell that are added to.

use crate::testing::{after, check_sweep};

const PASSES: &[&str] = &[
    "look_around",
    "list_struct_for",
    "fold",
    "identities",
    "cse",
    "dce",
];

#[test]
fn a_row() {
    check_sweep!(PASSES, "
        tree0 { pointer i:4 { dense i:8 { place x: i32 }, dense i:8 { place y: i32 } } }
        field @x: i32 = tree0 [S3]
        field @y: i32 = tree0 [S5]
        kernel @k() {
            v0: i32 = const 1
            v1: i32 = const 0
            parallel_cells tree0.S2 (v2: i32) {
                v3: ref<i32> = field_at @x, [v2]
                v4: i32 = load v3
                v5: u1 = ne v4, v1
                if v5 {
                    v6: i32 = sub v2, v0
                    v7: ref<i32> = field_at @y, [v6]
                    v8: i32 = atomic_add v7, v4
                    v9: i32 = add v2, v0
                    v10: ref<i32> = field_at @y, [v9]
                    v11: i32 = atomic_sub v10, v4
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
                v1: i32 = const 0
                v2: u1 = list_stale tree0.S1
                v3: i64 = const 0
                v4: i64 = const 1
                v5: i64 = select v2, v4, v3
                v44: i64 = list_len tree0.S1
                parallel [v3], [v44] writes_around (v45: i64) {
                    v46: cell<tree0.S1>, v47: i32 = list_entry tree0.S1, v45
                    v48: i32 = const -1
                    v49: i32 = add v47, v48
                    v50: u1 = is_active tree0.S1, [v49]
                    v51: i32 = add v0, v47
                    v52: u1 = is_active tree0.S1, [v51]
                    v53: u1 = and v50, v52
                    if v53 {
                        v54: cell<tree0.S1> = find_cell tree0.S1, [v49]
                        v55: cell<tree0.S1> = find_cell tree0.S1, [v51]
                        v56: ref<vec<20, i32>> = local
                        v57: i32 = const 8
                        v58: i32 = mul v47, v57
                        v59: container<tree0.S2> = child tree0.S2, v46
                        for v1, v57, v0, [] (v60: i32) {
                            v61: i32 = add v58, v60
                            v62: i64 = linearize tree0.S2, [v60]
                            v63: cell<tree0.S2> = lookup tree0.S2, v59, v62
                            cell_at tree0.S2, [v61], v63
                            v64: ref<i32> = elem_ref v56, [v60]
                            v65: i32 = const 12
                            v66: i32 = add v60, v65
                            v67: ref<i32> = elem_ref v56, [v66]
                            v68: ref<i32> = field_at @x, [v61]
                            v69: i32 = load v68
                            v70: u1 = ne v69, v1
                            v71: i32 = select v70, v69, v1
                            v72: i32 = load v64
                            v73: i32 = add v71, v72
                            store v64, v73
                            v74: i32 = load v67
                            v75: i32 = sub v74, v71
                            store v67, v75
                            yield []
                        }
                        v76: container<tree0.S4> = child tree0.S4, v46
                        v77: container<tree0.S4> = child tree0.S4, v54
                        v78: container<tree0.S4> = child tree0.S4, v55
                        for v1, v0, v0, [] (v79: i32) {
                            v80: i64 = linearize tree0.S4, [v79]
                            v81: cell<tree0.S4> = lookup tree0.S4, v76, v80
                            v82: ref<i32> = child tree0.S5, v81
                            v83: i32 = add v0, v79
                            v84: ref<i32> = elem_ref v56, [v83]
                            v85: i32 = load v84
                            v86: i32 = const 11
                            v87: i32 = add v79, v86
                            v88: ref<i32> = elem_ref v56, [v87]
                            v89: i32 = load v88
                            v90: i32 = add v85, v89
                            v91: u1 = ne v90, v1
                            if v91 {
                                v92: i32 = atomic_add v82, v90
                                yield []
                            } {
                                yield []
                            }
                            yield []
                        }
                        v93: i32 = const 7
                        for v0, v93, v0, [] (v94: i32) {
                            v95: i64 = linearize tree0.S4, [v94]
                            v96: cell<tree0.S4> = lookup tree0.S4, v76, v95
                            v97: ref<i32> = child tree0.S5, v96
                            v98: i32 = add v0, v94
                            v99: ref<i32> = elem_ref v56, [v98]
                            v100: i32 = load v99
                            v101: i32 = const 11
                            v102: i32 = add v94, v101
                            v103: ref<i32> = elem_ref v56, [v102]
                            v104: i32 = load v103
                            v105: i32 = add v100, v104
                            v106: i32 = load v97
                            v107: i32 = add v105, v106
                            store v97, v107
                            yield []
                        }
                        for v93, v57, v0, [] (v108: i32) {
                            v109: i64 = linearize tree0.S4, [v108]
                            v110: cell<tree0.S4> = lookup tree0.S4, v76, v109
                            v111: ref<i32> = child tree0.S5, v110
                            v112: i32 = add v0, v108
                            v113: ref<i32> = elem_ref v56, [v112]
                            v114: i32 = load v113
                            v115: i32 = const 11
                            v116: i32 = add v108, v115
                            v117: ref<i32> = elem_ref v56, [v116]
                            v118: i32 = load v117
                            v119: i32 = add v114, v118
                            v120: u1 = ne v119, v1
                            if v120 {
                                v121: i32 = atomic_add v111, v119
                                yield []
                            } {
                                yield []
                            }
                            yield []
                        }
                        for v93, v57, v0, [] (v122: i32) {
                            v123: i64 = linearize tree0.S4, [v122]
                            v124: cell<tree0.S4> = lookup tree0.S4, v77, v123
                            v125: ref<i32> = child tree0.S5, v124
                            v126: i32 = const -7
                            v127: i32 = add v122, v126
                            v128: ref<i32> = elem_ref v56, [v127]
                            v129: i32 = load v128
                            v130: i32 = const 3
                            v131: i32 = add v122, v130
                            v132: ref<i32> = elem_ref v56, [v131]
                            v133: i32 = load v132
                            v134: i32 = add v129, v133
                            v135: u1 = ne v134, v1
                            if v135 {
                                v136: i32 = atomic_add v125, v134
                                yield []
                            } {
                                yield []
                            }
                            yield []
                        }
                        for v1, v0, v0, [] (v137: i32) {
                            v138: i64 = linearize tree0.S4, [v137]
                            v139: cell<tree0.S4> = lookup tree0.S4, v78, v138
                            v140: ref<i32> = child tree0.S5, v139
                            v141: i32 = const 9
                            v142: i32 = add v137, v141
                            v143: ref<i32> = elem_ref v56, [v142]
                            v144: i32 = load v143
                            v145: i32 = const 19
                            v146: i32 = add v137, v145
                            v147: ref<i32> = elem_ref v56, [v146]
                            v148: i32 = load v147
                            v149: i32 = add v144, v148
                            v150: u1 = ne v149, v1
                            if v150 {
                                v151: i32 = atomic_add v140, v149
                                yield []
                            } {
                                yield []
                            }
                            yield []
                        }
                        yield []
                    } {
                        v152: i32 = const 8
                        v153: i32 = mul v47, v152
                        v154: container<tree0.S2> = child tree0.S2, v46
                        for v1, v152, v0, [] (v155: i32) {
                            v156: i32 = add v153, v155
                            v157: i64 = linearize tree0.S2, [v155]
                            v158: cell<tree0.S2> = lookup tree0.S2, v154, v157
                            cell_at tree0.S2, [v156], v158
                            v159: ref<i32> = field_at @x, [v156]
                            v160: i32 = load v159
                            v161: u1 = ne v160, v1
                            if v161 {
                                v162: i32 = sub v156, v0
                                v163: ref<i32> = field_at @y, [v162]
                                v164: i32 = atomic_add v163, v160
                                v165: i32 = add v0, v156
                                v166: ref<i32> = field_at @y, [v165]
                                v167: i32 = atomic_sub v166, v160
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

/// A loop over the cells of `layout`, in trees with blocks that are not there, which adds to those at
/// `distances`: the number of the distance, where the loop's own element is below a bound.
fn adding(layout: [&str; 2], shape: &[i64], distances: &[Vec<i64>], bound: i64) -> String {
    let mut lines = Vec::new();
    let mut next = 0;
    let mut value = |lines: &mut Vec<String>, ty: &str, op: String| {
        lines.push(format!("v{next}: {ty} = {op}"));
        next += 1;
        format!("v{}", next - 1)
    };
    let constants: Vec<Vec<String>> = distances
        .iter()
        .map(|off| {
            let each = off.iter();
            each.map(|d| value(&mut lines, "i32", format!("const {d}")))
                .collect()
        })
        .collect();
    let zero = value(&mut lines, "i32", "const 0".to_owned());
    let bound = value(&mut lines, "i32", format!("const {bound}"));
    let ends: Vec<String> = shape
        .iter()
        .map(|n| value(&mut lines, "i32", format!("const {n}")))
        .collect();
    let at = lines.len();
    let params: Vec<String> = shape
        .iter()
        .map(|_| value(&mut lines, "i32", String::new()))
        .collect();
    lines.truncate(at);
    let typed: Vec<String> = params.iter().map(|p| format!("{p}: i32")).collect();
    lines.push(format!("parallel_cells tree0.S2 ({}) {{", typed.join(", ")));
    let own = value(
        &mut lines,
        "ref<i32>",
        format!("field_at @x, [{}]", params.join(", ")),
    );
    let own = value(&mut lines, "i32", format!("load {own}"));
    let mut cond = value(&mut lines, "u1", format!("lt {own}, {bound}"));
    // What would be outside is left out.
    let all: Vec<(&String, &String, &String)> = constants
        .iter()
        .flat_map(|off| {
            (0..shape.len())
                .map(|k| (&params[k], &off[k], &ends[k]))
                .collect::<Vec<_>>()
        })
        .collect();
    for (param, off, end) in all {
        let index = value(&mut lines, "i32", format!("add {param}, {off}"));
        for (op, bound) in [("ge", &zero), ("lt", end)] {
            let inside = value(&mut lines, "u1", format!("{op} {index}, {bound}"));
            cond = value(&mut lines, "u1", format!("and {cond}, {inside}"));
        }
    }
    lines.push(format!("if {cond} {{"));
    for (k, off) in constants.iter().enumerate() {
        let index: Vec<String> = params
            .iter()
            .zip(off)
            .map(|(p, d)| value(&mut lines, "i32", format!("add {p}, {d}")))
            .collect();
        let place = format!("field_at @y, [{}]", index.join(", "));
        let place = value(&mut lines, "ref<i64>", place);
        let number = value(&mut lines, "i64", format!("cast {own}"));
        let op = ["atomic_add", "atomic_sub"][k % 2];
        value(&mut lines, "i64", format!("{op} {place}, {number}"));
    }
    lines.push("yield []\n}\n{ yield [] }\nyield []\n}\nyield []".to_owned());
    let [x, y] = layout;
    let trees = match y {
        "" => format!("tree0 {{ {x} }} field @x: i32 = tree0 [S3] field @y: i64 = tree0 [S5]"),
        _ => format!(
            "tree0 {{ {x} }} tree1 {{ {y} }}
            field @x: i32 = tree0 [S3] field @y: i64 = tree1 [S3]"
        ),
    };
    format!("{trees} kernel @k() {{ {} }}", lines.join("\n"))
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
        (
            [
                "pointer i:4 { dense i:4 { place x: i32 }, dense i:4 { place y: i64 } }",
                "",
            ],
            &[4][..],
        ),
        (
            [
                "hash i:4 { dense i:5 { place x: i32 } }",
                "pointer i:4 { dense i:5 { place y: i64 } }",
            ],
            &[5],
        ),
        (
            [
                "pointer i:3 j:3 { dense i:3 j:4 { place x: i32 }, dense i:3 j:4 { place y: i64 } }",
                "",
            ],
            &[3, 4],
        ),
        (
            [
                "pointer i:3 j:3 { dense i:2 j:4 { place x: i32 } }",
                "hash i:3 j:3 { dense i:2 j:4 { place y: i64 } }",
            ],
            &[2, 4],
        ),
        (
            [
                "hash i:3 j:3 k:3 { dense i:2 j:1 k:3 { place x: i32 }, dense i:2 j:1 k:3 { place y: i64 } }",
                "",
            ],
            &[2, 1, 3],
        ),
    ] {
        let blocks = if extents.len() == 1 { 4 } else { 3 };
        let shape: Vec<i64> = extents.iter().map(|e| blocks * e).collect();
        for n in 2..6 {
            let distances: Vec<Vec<i64>> = (0..n)
                .map(|_| extents.iter().map(|&e| below(2 * e + 1) - e).collect())
                .collect();
            let text = adding(layout, &shape, &distances, below(6) - 2);
            let made = after(PASSES, &text, aerogel_ir::FastMath::Off);
            assert!(made.contains("local"), "{made}");
        }
    }
}

#[test]
fn what_is_touched_otherwise_stays() {
    for (what, distance) in [
        ("v9: i32 = load v5", 1),
        ("store v5, v0", 1),
        ("v9: i32 = atomic_max v5, v0", 1),
        ("v9: i32 = atomic_cas v5, v0, v1", 1),
        (
            "v9: i32 = atomic_add v5, v0 v10: i32 = atomic_add v6, v9",
            1,
        ),
        (
            "v9: ref<i32> = field_at @y, [v0] v10: i32 = atomic_add v9, v0",
            1,
        ),
        ("deactivate tree0.S1, [v0]", 1),
        ("assert v11, assertion, \"small\", []", 1),
        ("", 9),
        ("", 0),
    ] {
        let text = format!(
            "
            tree0 {{ pointer i:2 {{ dense i:8 {{ place x: i32 }}, dense i:8 {{ place y: i32 }} }} }}
            field @x: i32 = tree0 [S3]
            field @y: i32 = tree0 [S5]
            kernel @k() {{
                v0: i32 = const 0
                v1: i32 = const {distance}
                parallel_cells tree0.S2 (v2: i32) {{
                    v3: i32 = sub v2, v1
                    v4: i32 = add v2, v1
                    v5: ref<i32> = field_at @y, [v2]
                    v6: ref<i32> = field_at @x, [v2]
                    v11: u1 = ge v2, v1
                    if v11 {{
                        v7: ref<i32> = field_at @y, [v3]
                        v8: i32 = atomic_add v7, v2
                        v12: i32 = atomic_add v5, v2
                        yield []
                    }} {{
                        yield []
                    }}
                    {what}
                    yield []
                }}
                yield []
            }}"
        );
        let made = after(PASSES, &text, aerogel_ir::FastMath::Off);
        assert!(!made.contains("local"), "{what} {distance}: {made}");
    }
}
