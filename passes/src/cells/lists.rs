//! Tasks that make the lists of active cells of pointer and hash nodes.
//!
//! ```text
//! v0 = list_stale S1
//! parallel over parts { count active cells  list_count }      ; of no iterations if it is up to date
//! if v0 { list_scan S1 }
//! parallel over parts { list_put for each active cell }
//! ```
//! A part is some cells of one container. The list of a node is made from that above it, so the entries are
//! in the order of the layout.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{
    BinaryOp, Builder, CompareOp, LoopAttrs, NodeOp, NodeRef, Op, TreeId, Type, Value,
};
use aerogel_snode::{NodeId, NodeKind, Tree};

use crate::PassCx;
use crate::cells::nest::{self, Nest, Spot, Walk};

/// Brings the lists of the nodes from the root down to `driver` up to date. If there is an exchange between processes around the
/// loop over them, it may change which cells are active: the lists are made after it has begun.
pub(crate) fn lists(
    b: &mut Builder<'_>,
    cx: &PassCx<'_>,
    (id, tree): (TreeId, &Tree),
    driver: NodeId,
    exchange: Option<u32>,
) {
    let mut parent = Tree::ROOT;
    for node in tree.chain(driver) {
        if tree[node].kind.has_list() {
            list(b, cx, (NodeRef { tree: id, node }, parent), exchange);
            parent = node;
        }
    }
}

/// Writes the tasks that make the list of a node, given that of the one above.
fn list(
    b: &mut Builder<'_>,
    cx: &PassCx<'_>,
    (node, parent): (NodeRef, NodeId),
    exchange: Option<u32>,
) {
    let tree = &cx.env.trees[node.tree];
    let above = NodeRef {
        tree: node.tree,
        node: parent,
    };
    // The walk ends at the node's containers: its own slots are counted in parts.
    let holder = NodeRef {
        tree: node.tree,
        node: tree[node.node].parent.expect("the root has no list"),
    };
    let nest = Nest::new(cx, holder, parent, Walk::All);
    let size = cx.options.thresholds.list_part;
    let n_parts = tree.list_parts(node.node, size);

    let stale = match exchange {
        None => b.value(NodeOp::ListStale { node }, Type::BOOL),
        Some(_) => b.constant(Scalar::bool(true)),
    };
    let zero = i64_of(b, 0);
    let n_above = if parent == Tree::ROOT {
        i64_of(b, 1)
    } else {
        b.value(NodeOp::ListLen { node: above }, Type::I64)
    };
    let n_above = b.value(
        Op::Select {
            cond: stale,
            on_true: n_above,
            on_false: zero,
        },
        Type::I64,
    );
    // Every loop of the nest is an axis: parts are numbered row by row.
    let mut extents: Vec<u64> = nest.loops.iter().map(|&l| nest.extent(l)).collect();
    extents.push(n_parts);
    let mut hi = vec![n_above];
    hi.extend(extents.iter().map(|&e| i64_of(b, e)));
    let lo = vec![zero; hi.len()];
    let types = vec![Type::I64; hi.len()];

    let task = |b: &mut Builder<'_>, fill: bool| {
        let over = b.region(&types, |b, axes| {
            let mut part = axes[0];
            for (&axis, &extent) in axes[1..].iter().zip(&extents) {
                let extent = i64_of(b, extent);
                let scaled = b.binary(BinaryOp::Mul, part, extent);
                part = b.binary(BinaryOp::Add, scaled, axis);
            }
            let (&segment, walked) = axes.split_last().expect("parts are an axis");
            let walked = if parent == Tree::ROOT {
                &walked[1..]
            } else {
                walked
            };
            let (cell, origin, given) = enter(b, tree, above, walked, &nest);
            let origin = begin(b, tree, parent, holder.node, &origin);
            let mut written = false;
            nest.write(b, cell, origin, &given, &mut |b, spot| {
                let Spot::Cell(cell, index) = spot else {
                    return;
                };
                written = true;
                let part = Part::new(b, tree, node, cell, (segment, size, n_parts), part);
                if fill {
                    part.fill(b, tree, holder.node, index);
                } else {
                    part.count(b);
                }
            });
            assert!(written, "the nest reaches the containers");
        });
        b.effect(Op::Parallel {
            lo: lo.clone(),
            hi: hi.clone(),
            attrs: LoopAttrs {
                aside: true,
                exchange,
                ..LoopAttrs::default()
            },
            body: over,
        });
    };
    task(b, false);
    let n_all = extents.iter().fold(n_above, |n, &extent| {
        let extent = i64_of(b, extent);
        b.binary(BinaryOp::Mul, n, extent)
    });
    let scan = b.region(&[], |b, _| {
        b.effect(NodeOp::ListScan {
            node,
            n_parts: n_all,
        });
    });
    let otherwise = b.region(&[], |_, _| {});
    b.effect(Op::If {
        cond: stale,
        then: scan,
        otherwise,
    });
    task(b, true);
}

/// The driving cell of a task's iteration, its indices, and the counters of the outer loops of a nest
/// that are left.
pub(crate) fn enter(
    b: &mut Builder<'_>,
    tree: &Tree,
    driver: NodeRef,
    axes: &[Value],
    nest: &Nest<'_>,
) -> (Value, Vec<Value>, Vec<Value>) {
    let (cell, origin, rest) = if driver.node == Tree::ROOT {
        let op = NodeOp::Root { tree: driver.tree };
        let cell = b.value(op, Type::Cell(driver.tree, Tree::ROOT));
        (cell, Vec::new(), axes)
    } else {
        let (&at, rest) = axes.split_first().expect("the list is an axis");
        let mut types = vec![Type::Cell(driver.tree, driver.node)];
        types.resize(1 + tree.shape(driver.node).len(), Type::I32);
        let entry = b.inst(NodeOp::ListEntry { node: driver, at }, &types);
        let results = b.func.insts[entry].results.clone();
        (results[0], results[1..].to_vec(), rest)
    };
    let loops = rest.iter().zip(&nest.loops);
    let given = loops.map(|(&v, &l)| b.cast(v, nest.counter(l))).collect();
    (cell, origin, given)
}

/// Where a cell of `driver` at `indices` begins along the axes of `node`, which are the same,
/// divided further, and more.
pub(crate) fn begin(
    b: &mut Builder<'_>,
    tree: &Tree,
    driver: NodeId,
    node: NodeId,
    indices: &[Value],
) -> Vec<Option<Value>> {
    let coarse = tree.shape_axes(driver);
    tree.shape_axes(node)
        .iter()
        .map(|&(axis, extent)| {
            let k = coarse.iter().position(|a| a.0 == axis)?;
            Some(nest::scaled_sum(b, None, indices[k], extent / coarse[k].1))
        })
        .collect()
}

/// The cells of a container that one part of a list is about.
struct Part {
    node: NodeRef,
    kind: NodeKind,
    container: Value,
    first: Value,
    end: Value,
    /// Its number in the list.
    number: Value,
}

impl Part {
    /// Part `segment` of `n_parts` of the container in `cell`; of a pointer node `size` cells.
    fn new(
        b: &mut Builder<'_>,
        tree: &Tree,
        node: NodeRef,
        cell: Value,
        (segment, size, n_parts): (Value, u64, u64),
        number: Value,
    ) -> Self {
        let op = NodeOp::Child { node, cell };
        let container = b.value(op, Type::Container(node.tree, node.node));
        let data = &tree[node.node];
        let (begin, size, behind) = if data.kind == NodeKind::Hash {
            // Parts of what is active: cells next to each other may be all there is in a large space.
            let index = i64_of(b, 0);
            let op = NodeOp::NextActive {
                node,
                container,
                index,
            };
            let begin = b.value(op, Type::I64);
            let behind = b.value(NodeOp::ActiveEnd { node, container }, Type::I64);
            let span = b.binary(BinaryOp::Sub, behind, begin);
            let rounded = i64_of(b, n_parts - 1);
            let rounded = b.binary(BinaryOp::Add, span, rounded);
            let n_parts = i64_of(b, n_parts);
            (
                Some(begin),
                b.binary(BinaryOp::Div, rounded, n_parts),
                behind,
            )
        } else {
            (None, i64_of(b, size), i64_of(b, data.n_cells))
        };
        let mut first = b.binary(BinaryOp::Mul, segment, size);
        if let Some(begin) = begin {
            first = b.binary(BinaryOp::Add, begin, first);
        }
        let end = b.binary(BinaryOp::Add, first, size);
        let end = b.binary(BinaryOp::Min, end, behind);
        Self {
            node,
            kind: data.kind,
            container,
            first,
            end,
            number,
        }
    }

    /// Writes a loop over the active cells; `body` gets the number of each and what the loop carries.
    fn each_active(
        &self,
        b: &mut Builder<'_>,
        init: Value,
        body: &mut dyn FnMut(&mut Builder<'_>, Value, Value) -> Value,
    ) -> Value {
        if self.kind == NodeKind::Hash {
            let range = (self.first, self.end);
            return nest::active_between(b, self.node, self.container, range, init, body);
        }
        let step = i64_of(b, 1);
        let body = b.region(&[Type::I64, Type::I64], |b, params| {
            let cond = self.is_active(b, params[0]);
            let then = b.region(&[], |b, _| {
                let next = body(b, params[0], params[1]);
                b.yields(vec![next]);
            });
            let otherwise = b.region(&[], |b, _| b.yields(vec![params[1]]));
            let next = Op::If {
                cond,
                then,
                otherwise,
            };
            let next = b.value(next, Type::I64);
            b.yields(vec![next]);
        });
        let looped = Op::For {
            lo: self.first,
            hi: self.end,
            step,
            init: vec![init],
            body,
        };
        b.value(looped, Type::I64)
    }

    fn is_active(&self, b: &mut Builder<'_>, index: Value) -> Value {
        let op = NodeOp::CellIsActive {
            node: self.node,
            container: self.container,
            index,
        };
        b.value(op, Type::BOOL)
    }

    /// Counts the active ones.
    fn count(&self, b: &mut Builder<'_>) {
        let zero = i64_of(b, 0);
        let one = i64_of(b, 1);
        let count = if self.kind == NodeKind::Hash {
            self.each_active(b, zero, &mut |b, _, count| {
                b.binary(BinaryOp::Add, count, one)
            })
        } else {
            // Without branches it counts several cells at once.
            let body = b.region(&[Type::I64, Type::I64], |b, params| {
                let active = self.is_active(b, params[0]);
                let active = b.cast(active, Type::I64);
                let count = b.binary(BinaryOp::Add, params[1], active);
                b.yields(vec![count]);
            });
            let looped = Op::For {
                lo: self.first,
                hi: self.end,
                step: one,
                init: vec![zero],
                body,
            };
            b.value(looped, Type::I64)
        };
        let (node, part) = (self.node, self.number);
        b.effect(NodeOp::ListCount { node, part, count });
    }

    /// Writes an entry for each active one.
    fn fill(&self, b: &mut Builder<'_>, tree: &Tree, holder: NodeId, index: &[Value]) {
        let node = self.node;
        let one = i64_of(b, 1);
        let first = NodeOp::ListOffset {
            node,
            part: self.number,
        };
        let first = b.value(first, Type::I64);
        let part = b.binary(BinaryOp::Add, self.number, one);
        let end = b.value(NodeOp::ListOffset { node, part }, Type::I64);
        let cond = b.compare(CompareOp::Lt, first, end);
        let then = b.region(&[], |b, _| {
            self.each_active(b, first, &mut |b, number, at| {
                self.put(b, tree, holder, index, number, at);
                b.binary(BinaryOp::Add, at, one)
            });
        });
        let otherwise = b.region(&[], |_, _| {});
        b.effect(Op::If {
            cond,
            then,
            otherwise,
        });
    }

    fn put(
        &self,
        b: &mut Builder<'_>,
        tree: &Tree,
        holder: NodeId,
        index: &[Value],
        number: Value,
        at: Value,
    ) {
        let node = self.node;
        let find = NodeOp::Find {
            node,
            container: self.container,
            index: number,
        };
        let cell = b.value(find, Type::Cell(node.tree, node.node));
        let number = b.cast(number, nest::number_type(tree[node.node].n_cells));
        let above = begin(b, tree, holder, node.node, index);
        let levels = tree.path(node.node).levels;
        let own = levels.last().expect("a path ends in its node");
        let indices = nest::add_number(b, own, number, above);
        let indices = indices
            .into_iter()
            .map(|i| i.expect("every axis is divided"));
        let indices = indices.collect();
        b.effect(NodeOp::ListPut {
            node,
            at,
            cell,
            indices,
        });
    }
}

fn i64_of(b: &mut Builder<'_>, value: u64) -> Value {
    b.constant(Scalar::int(ScalarType::I64, i128::from(value)))
}

#[cfg(test)]
mod tests;
