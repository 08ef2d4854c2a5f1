//! Loops over the elements of a `quant_array` go over its words, and loops that share no words with
//! themselves are marked.
//!
//! ```text
//! parallel_cells Q (i) { body }       ; 8 elements of dense P in a word
//!     ==>   parallel_cells P own_words (p) {
//!               v0 = find_cell P, [p]
//!               for k in 0..8 { i = p * 8 + k  cell_at Q, [i], v0  body }
//!           }
//! ```
//! Several components lie in a word, so that a change of one is a change of the word, in one step if
//! threads share it. They do not if every iteration changes words of its own only: those of the cell
//! that it visits.

use aerogel_base::hash::LookupMap;
use aerogel_ir::analysis::access::calls;
use aerogel_ir::analysis::affine::counted_from_narrow;
use aerogel_ir::{
    Builder, CellOp, FieldId, Function, Inst, NodeRef, Op, Region, Type, Value, replace_values,
    walk,
};
use aerogel_snode::NodeKind;

use crate::PassCx;
use crate::cells::list_struct_for::{leave_if, stop_flag};
use crate::cells::nest::{at_end, scaled_sum};

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let fields = cx.env.fields.keys();
    if !fields.into_iter().any(|f| cx.env.quant(f).is_some()) {
        return false;
    }
    let mut changed = false;
    let body = func.body;
    for inst in std::mem::take(&mut func.regions[body].insts) {
        changed |= mark(func, cx, inst);
        match func[inst] {
            Op::ParallelCells { node, .. } if in_word(cx, node) => {
                nest(func, cx, inst);
                changed = true;
            }
            _ => func.regions[body].insts.push(inst),
        }
    }
    changed
}

fn in_word(cx: &PassCx<'_>, node: NodeRef) -> bool {
    cx.env.trees[node.tree][node.node].kind.word().is_some()
}

/// Marks a parallel loop all of whose iterations change words of their own.
fn mark(func: &mut Function, cx: &PassCx<'_>, inst: Inst) -> bool {
    let (body, over) = match func[inst] {
        Op::Parallel { body, .. } => (body, None),
        Op::ParallelCells { body, node, .. } => (body, Some(node)),
        _ => return false,
    };
    if calls(func, body) || !changes_own_words(func, cx, body, over) {
        return false;
    }
    if let Op::Parallel { attrs, .. } | Op::ParallelCells { attrs, .. } = &mut func.insts[inst].op {
        attrs.own_words = true;
    }
    true
}

/// Whether a loop changes words, and each iteration only its own.
fn changes_own_words(
    func: &Function,
    cx: &PassCx<'_>,
    body: Region,
    over: Option<NodeRef>,
) -> bool {
    let counters = &func.regions[body].params;
    // How the elements of each word are named that are changed.
    let mut named: LookupMap<NodeRef, (Vec<Value>, &[i32])> = LookupMap::default();
    let mut own = true;
    walk(func, body, &mut |func, inst| {
        let (Op::Store { place, .. } | Op::Atomic { place, .. } | Op::Cas { place, .. }) =
            func[inst]
        else {
            return;
        };
        let Some((field, indices)) = field_at(func, place) else {
            return;
        };
        if cx.env.quant(field).is_none() {
            return;
        }
        let data = &cx.env.fields[field];
        let bare: Vec<Value> = indices
            .iter()
            .map(|&i| counted_from_narrow(func, i).0)
            .collect();
        for &place in &data.places {
            let tree = &cx.env.trees[data.tree];
            let word = NodeRef {
                tree: data.tree,
                node: tree[place].parent.expect("bits lie in a word"),
            };
            own &= match tree[word.node].kind {
                NodeKind::QuantArray(_) => {
                    let axes = indices.iter().zip(counters).enumerate();
                    let exact = |(k, (&index, &counter)): (usize, (&Value, &Value))| {
                        let offset = data.offset.get(k).copied().unwrap_or(0);
                        counted_from_narrow(func, index) == (counter, offset.into())
                    };
                    over.is_some_and(|over| holds_words_of(cx, over, word))
                        && indices.len() == counters.len()
                        && axes.into_iter().all(exact)
                }
                _ => counters.iter().all(|c| bare.contains(c)),
            };
            // With the constants that were added, and from where the field counts.
            let naming = (indices.clone(), &data.offset[..]);
            own &= named.get(&word).is_none_or(|other| *other == naming);
            named.insert(word, naming);
        }
    });
    own && !named.is_empty()
}

/// Whether the indices of each word's elements of `over` are those of whole words of `word`.
fn holds_words_of(cx: &PassCx<'_>, over: NodeRef, word: NodeRef) -> bool {
    let data = |node: NodeRef| &cx.env.trees[node.tree][node.node];
    let extent = |axis: u8| {
        let own = data(over).axes.iter().find(|a| a.axis == axis);
        own.map_or(1, |a| a.extent)
    };
    let mut axes = data(word).axes.iter();
    in_word(cx, over) && axes.all(|a| extent(a.axis).is_multiple_of(a.extent))
}

fn field_at(func: &Function, place: Value) -> Option<(FieldId, &Vec<Value>)> {
    match func.def_op(place)? {
        Op::FieldAt { field, indices } => Some((*field, indices)),
        Op::ElemRef { base, .. } => field_at(func, *base),
        _ => None,
    }
}

/// Turns a loop over the elements of words into one over the words.
fn nest(func: &mut Function, cx: &PassCx<'_>, inst: Inst) {
    let Op::ParallelCells { node, attrs, body } = func[inst] else {
        unreachable!("the caller looked")
    };
    let (top, span) = (func.body, func.insts[inst].span);
    let stop = attrs.serial.then(|| stop_flag(func, body, span)).flatten();
    let params = std::mem::take(&mut func.regions[body].params);
    let tree = &cx.env.trees[node.tree];
    let holder = NodeRef {
        tree: node.tree,
        node: tree[node.node].parent.expect("a word has a parent"),
    };
    let path = tree.path(node.node);
    let axes = &path.levels.last().expect("the word's own level").axes;
    let outer_axes = tree.shape_axes(holder.node);
    let all_axes = tree.shape_axes(node.node);

    let mut b = at_end(func, top, span);
    let types = vec![Type::I32; outer_axes.len()];
    let over = b.region(&types, |b, outer| {
        let find = CellOp::FindCell {
            node: holder,
            indices: outer.to_vec(),
        };
        let cell = b.value(find, Type::Cell(holder.tree, holder.node));
        let begins: Vec<Option<Value>> = all_axes
            .iter()
            .map(|&(axis, extent)| {
                let k = outer_axes.iter().position(|a| a.0 == axis)?;
                Some(scaled_sum(b, None, outer[k], extent / outer_axes[k].1))
            })
            .collect();
        let mut write = |b: &mut Builder<'_>, counters: &[Value]| {
            if let Some(stop) = stop {
                leave_if(b, stop);
            }
            let mut indices = begins.clone();
            for (axis, &counter) in axes.iter().zip(counters) {
                let sum = indices[axis.index];
                indices[axis.index] = Some(scaled_sum(b, sum, counter, axis.divisor));
            }
            let at = indices.iter().map(|i| i.expect("every axis is divided"));
            let at: Vec<Value> = at.collect();
            let pairs: Vec<_> = params.iter().copied().zip(at.iter().copied()).collect();
            b.effect(CellOp::CellAt {
                node,
                indices: at,
                cell,
            });
            replace_values(b.func, body, &pairs);
            let mut insts = std::mem::take(&mut b.func.regions[body].insts);
            b.func.regions[b.region].insts.append(&mut insts);
        };
        let extents: Vec<u64> = axes.iter().map(|a| a.extent).collect();
        loops(b, &extents, &mut Vec::new(), &mut write);
    });
    b.effect(Op::ParallelCells {
        node: holder,
        attrs,
        body: over,
    });
}

type Write<'w> = dyn FnMut(&mut Builder<'_>, &[Value]) + 'w;

fn loops(b: &mut Builder<'_>, extents: &[u64], counters: &mut Vec<Value>, write: &mut Write<'_>) {
    let Some((&extent, inner)) = extents.split_first() else {
        return write(b, counters);
    };
    let (lo, hi, step) = (b.i32(0), b.i32(extent as i32), b.i32(1));
    let body = b.region(&[Type::I32], |b, counter| {
        counters.push(counter[0]);
        loops(b, inner, counters, write);
        counters.pop();
    });
    b.effect(Op::For {
        lo,
        hi,
        step,
        init: Vec::new(),
        body,
    });
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    #[test]
    fn elements_of_words() {
        check_pass!("own_words", "
            tree0 { dense i:2 { quant_array i:8 j:2 bits=64 { place x: qi4/i32 } } }
            field @x: i32 = tree0 [S3]
            kernel @k() {
                parallel_cells tree0.S2 (v0: i32, v1: i32) {
                    v2: ref<i32> = field_at @x, [v0, v1]
                    store v2, v1
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                parallel_cells tree0.S1 own_words (v0: i32) {
                    v1: cell<tree0.S1> = find_cell tree0.S1, [v0]
                    v2: i32 = const 8
                    v3: i32 = mul v0, v2
                    v4: i32 = const 0
                    v5: i32 = const 8
                    v6: i32 = const 1
                    for v4, v5, v6, [] (v7: i32) {
                        v8: i32 = const 0
                        v9: i32 = const 2
                        v10: i32 = const 1
                        for v8, v9, v10, [] (v11: i32) {
                            v12: i32 = add v3, v7
                            cell_at tree0.S2, [v12, v11], v1
                            v13: ref<i32> = field_at @x, [v12, v11]
                            store v13, v11
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

    #[test]
    fn words_of_another_field() {
        check_pass!("own_words", "
            tree0 { dense i:2 { quant_array i:8 bits=64 { place x: qi4/i32 } } quant_array i:16 bits=32 { place y: qi2/i32 } dense i:8 { quant_array i:2 bits=8 { place z: qi2/i32 } } }
            field @x: i32 = tree0 [S3] offset [1]
            field @y: i32 = tree0 [S5]
            field @z: i32 = tree0 [S8]
            kernel @k() {
                v0: i32 = const 1
                parallel_cells tree0.S2 (v1: i32) {
                    v2: ref<i32> = field_at @z, [v1]
                    store v2, v1
                    yield []
                }
                parallel_cells tree0.S2 (v3: i32) {
                    v4: ref<i32> = field_at @y, [v3]
                    store v4, v3
                    yield []
                }
                parallel_cells tree0.S2 (v5: i32) {
                    v6: i32 = add v5, v0
                    v7: ref<i32> = field_at @x, [v6]
                    store v7, v5
                    yield []
                }
                parallel_cells tree0.S2 (v8: i32) {
                    v9: ref<i32> = field_at @x, [v8]
                    store v9, v8
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                v0: i32 = const 1
                parallel_cells tree0.S1 own_words (v1: i32) {
                    v2: cell<tree0.S1> = find_cell tree0.S1, [v1]
                    v3: i32 = const 8
                    v4: i32 = mul v1, v3
                    v5: i32 = const 0
                    v6: i32 = const 8
                    v7: i32 = const 1
                    for v5, v6, v7, [] (v8: i32) {
                        v9: i32 = add v4, v8
                        cell_at tree0.S2, [v9], v2
                        v10: ref<i32> = field_at @z, [v9]
                        store v10, v9
                        yield []
                    }
                    yield []
                }
                parallel_cells tree0.S1 (v11: i32) {
                    v12: cell<tree0.S1> = find_cell tree0.S1, [v11]
                    v13: i32 = const 8
                    v14: i32 = mul v11, v13
                    v15: i32 = const 0
                    v16: i32 = const 8
                    v17: i32 = const 1
                    for v15, v16, v17, [] (v18: i32) {
                        v19: i32 = add v14, v18
                        cell_at tree0.S2, [v19], v12
                        v20: ref<i32> = field_at @y, [v19]
                        store v20, v19
                        yield []
                    }
                    yield []
                }
                parallel_cells tree0.S1 own_words (v21: i32) {
                    v22: cell<tree0.S1> = find_cell tree0.S1, [v21]
                    v23: i32 = const 8
                    v24: i32 = mul v21, v23
                    v25: i32 = const 0
                    v26: i32 = const 8
                    v27: i32 = const 1
                    for v25, v26, v27, [] (v28: i32) {
                        v29: i32 = add v24, v28
                        cell_at tree0.S2, [v29], v22
                        v30: i32 = add v29, v0
                        v31: ref<i32> = field_at @x, [v30]
                        store v31, v29
                        yield []
                    }
                    yield []
                }
                parallel_cells tree0.S1 (v32: i32) {
                    v33: cell<tree0.S1> = find_cell tree0.S1, [v32]
                    v34: i32 = const 8
                    v35: i32 = mul v32, v34
                    v36: i32 = const 0
                    v37: i32 = const 8
                    v38: i32 = const 1
                    for v36, v37, v38, [] (v39: i32) {
                        v40: i32 = add v35, v39
                        cell_at tree0.S2, [v40], v33
                        v41: ref<i32> = field_at @x, [v40]
                        store v41, v40
                        yield []
                    }
                    yield []
                }
                yield []
            }
            ");
    }

    #[test]
    fn neighbours_in_a_word() {
        check_pass!("own_words", "
            tree0 { dense i:8 { bit_struct bits=32 { place x: qi4/i32, place y: qi4/i32 } } }
            field @x: i32 = tree0 [S3]
            field @y: i32 = tree0 [S4] offset [1]
            kernel @k() {
                v0: i32 = const 0
                v1: i32 = const 7
                v2: i32 = const 1
                parallel [v0], [v1] (v3: i32) {
                    v4: ref<i32> = field_at @x, [v3]
                    v5: i32 = add v3, v2
                    v6: ref<i32> = field_at @y, [v5]
                    v7: i32 = load v6
                    store v4, v7
                    yield []
                }
                parallel [v0], [v1] (v8: i32) {
                    v9: ref<i32> = field_at @x, [v8]
                    v10: ref<i32> = field_at @y, [v8]
                    store v9, v8
                    store v10, v8
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                v0: i32 = const 0
                v1: i32 = const 7
                v2: i32 = const 1
                parallel [v0], [v1] own_words (v3: i32) {
                    v4: ref<i32> = field_at @x, [v3]
                    v5: i32 = add v3, v2
                    v6: ref<i32> = field_at @y, [v5]
                    v7: i32 = load v6
                    store v4, v7
                    yield []
                }
                parallel [v0], [v1] (v8: i32) {
                    v9: ref<i32> = field_at @x, [v8]
                    v10: ref<i32> = field_at @y, [v8]
                    store v9, v8
                    store v10, v8
                    yield []
                }
                yield []
            }
            ");
    }
}
