//! Temporaries at the active cells of sparse fields lie in trees with the same cells.
//!
//! ```text
//! tmp b3 "t": f32[2048, 2048]                         tmp b3 "t": f32[2048, 2048] = tree1.S3
//! for [2048, 2048] { b3[i0, i1] = f32(0) }            clear b3
//! for cells b0 [2048, 2048] { b3[i0, i1] = a }        for cells b0 [2048, 2048] { b3[i0, i1] = a }
//! ```
//! As an array, a temporary takes memory for its whole shape. The pass handles temporaries that only kernels access, that
//! are stored at the points' own indices, at the active cells of one sparse node; they may also become zero everywhere,
//! which deactivates all cells.
//!
//! A `for` whose statements run only where such a mask is true runs over the mask's cells. If a loop activates other cells
//! of the field, temporaries that each iteration recomputes begin without the cells of the iteration before.

use std::sync::Arc;

use aerogel_base::Scalar;
use aerogel_ir::{BinaryOp, TreeId};
use aerogel_snode::{BuildError, NodeId, NodeKind, Tree, TreeBuilder};
use indexmap::{IndexMap, IndexSet};

use super::Options;
use super::inline::count_stores;
use crate::ir::{
    Buffer, BufferDef, Expr, ExprDef, For, Outside, Program, Role, Stmt, Touched, is_at_own_place,
    is_whole, visit, visit_host,
};

/// How a buffer is touched.
#[derive(Default)]
struct Uses {
    /// The node at whose cells it is stored.
    cells: Option<(TreeId, NodeId)>,
    /// How many statements store to it.
    n_stores: u32,
    /// Whether it has to be an array.
    is_array: bool,
}

type Found = IndexMap<Buffer, Uses>;

/// Moves temporaries that as arrays take more than `options.most_dense` bytes into trees.
pub(super) fn run(program: &mut Program, options: Options) -> bool {
    let mut found = Found::new();
    visit_host(&program.body, &mut |stmt| look(program, stmt, &mut found));
    found.retain(|buffer, uses| {
        let def = &program.buffers[*buffer];
        let own = def.role == Role::Temporary && !program.results.contains(buffer);
        own && !uses.is_array && dense_bytes(program, def) > options.most_dense
    });
    found.retain(|&buffer, uses| {
        let def = &program.buffers[buffer];
        let made = uses
            .cells
            .map(|(tree, node)| like(&program.trees[tree], node, def));
        let Some(Ok((tree, place))) = made else {
            return false;
        };
        let smaller = tree.root_size() < dense_bytes(program, def);
        if smaller {
            let tree = program.tree(Arc::new(tree));
            program.buffers[buffer].role = Role::Scratch(tree, place);
        }
        smaller
    });
    if !found.is_empty() {
        let body = std::mem::take(&mut program.body);
        program.body = cleared(program, body, &found, &IndexSet::new());
    }
    !found.is_empty()
}

/// The bytes of a buffer as an array.
fn dense_bytes(program: &Program, def: &BufferDef) -> u64 {
    let extents = def.shape.iter().filter_map(|&d| program.const_dim(d));
    extents.fold(u64::from(def.ty.bytes()), u64::saturating_mul)
}

fn look(program: &Program, stmt: &Stmt, found: &mut Found) {
    match stmt {
        Stmt::For(all) => stores(program, all, found),
        // Libraries, kernels of the user's and the host read arrays.
        other => {
            let touched = Touched::of_itself(program, other);
            for buffer in touched.reads.into_iter().chain(touched.writes) {
                found.entry(buffer).or_default().is_array = true;
            }
        }
    }
}

fn stores(program: &Program, all: &For, found: &mut Found) {
    let zeroed = zeroed(program, all);
    visit(&all.body, &mut |stmt| {
        if let Stmt::Store(store) = stmt {
            let own = is_at_own_place(program, all, store) && store.outside == Outside::Never;
            let field = all.cells.filter(|_| own);
            let field = field.filter(|&f| !program.sparse_nodes(f).is_empty());
            let uses = found.entry(store.target).or_default();
            uses.n_stores += 1;
            if !zeroed.contains(&store.target) {
                let cells = field.and_then(|f| program.holder(f));
                uses.is_array |= cells.is_none() || uses.cells.is_some_and(|c| Some(c) != cells);
                uses.cells = cells;
            }
        }
    });
}

/// Buffers that a `for` fills with zeros, and does not access otherwise.
fn zeroed(program: &Program, all: &For) -> Vec<Buffer> {
    let reads = Touched::at_points(program, all).reads;
    let mut stores = IndexMap::new();
    count_stores(&all.body, &mut stores);
    let zero = |stmt: &Stmt| match stmt {
        Stmt::Store(store) => {
            let value = program.exprs.as_const(store.value);
            let is_zero = value.is_some_and(|v| v == Scalar::zero(v.ty()));
            let alone = stores[&store.target] == 1 && !reads.contains(&store.target);
            let whole = is_whole(program, all, store) && store.accum.is_none();
            (whole && alone && is_zero).then_some(store.target)
        }
        _ => None,
    };
    all.body.iter().filter_map(zero).collect()
}

/// A tree with the cells of a node of another one, and a place for a buffer in each.
fn like(tree: &Tree, node: NodeId, def: &BufferDef) -> Result<(Tree, NodeId), BuildError> {
    let (mut builder, mut at) = (TreeBuilder::default(), Tree::ROOT);
    for node in tree.chain(node).into_iter().skip(1) {
        let kind = match tree[node].kind {
            // Elements of a word are numbers of their own here.
            NodeKind::QuantArray(_) => NodeKind::Dense,
            kind => kind,
        };
        let axes: Vec<(u8, u32)> = tree[node].axes.iter().map(|a| (a.axis, a.extent)).collect();
        at = builder.node(at, kind, &axes)?;
    }
    let place = builder.place(at, def.ty, &def.name)?;
    Ok((builder.finish()?, place))
}

/// Sparse nodes of which cells become active in the loops around.
type Moving = IndexSet<(TreeId, NodeId)>;

/// Statements with temporaries in trees.
fn cleared(program: &Program, body: Vec<Stmt>, found: &Found, moving: &Moving) -> Vec<Stmt> {
    let mut out = Vec::new();
    for mut stmt in body {
        match &mut stmt {
            Stmt::For(all) => {
                let mut zero = zeroed(program, all);
                zero.retain(|b| found.contains_key(b));
                all.body
                    .retain(|s| !matches!(s, Stmt::Store(s) if zero.contains(&s.target)));
                let anew = found.keys().copied();
                zero.extend(
                    anew.filter(|b| found[b].n_stores == 1 && is_anew(program, all, *b, moving)),
                );
                out.extend(zero.into_iter().map(Stmt::Clear));
                if all.body.is_empty() {
                    continue;
                }
                let mut masks = found.keys();
                if all.cells.is_none() {
                    all.cells = masks.find(|b| is_mask(program, all, **b)).copied();
                }
            }
            other => {
                let mut moving = moving.clone();
                if let Stmt::Loop { body, .. } = other {
                    moving.extend(Touched::by(program, body).activates);
                }
                for inside in other.blocks_mut() {
                    *inside = cleared(program, std::mem::take(inside), found, &moving);
                }
            }
        }
        out.push(stmt);
    }
    out
}

/// Whether a `for` recomputes a buffer in each iteration of loops, at cells that may differ between iterations.
fn is_anew(program: &Program, all: &For, buffer: Buffer, moving: &Moving) -> bool {
    let cells = all.cells.map(|field| program.sparse_nodes(field));
    let moves = cells.is_some_and(|nodes| nodes.iter().any(|node| moving.contains(node)));
    let plain = |s: &Stmt| matches!(s, Stmt::Store(s) if s.target == buffer && s.accum.is_none());
    let reads = || Touched::at_points(program, all).reads;
    moves && all.body.iter().any(plain) && !reads().contains(&buffer)
}

/// Whether a `for` does nothing where a buffer is zero.
fn is_mask(program: &Program, all: &For, buffer: Buffer) -> bool {
    let def = &program.buffers[buffer];
    let idle = |stmt: &Stmt| match stmt {
        Stmt::If(cond, _, otherwise) => otherwise.is_empty() && is_false(program, *cond, buffer),
        _ => false,
    };
    let writes = || Touched::at_points(program, all).writes;
    def.shape == all.domain && all.body.iter().all(idle) && !writes().contains(&buffer)
}

/// Whether a condition is false where a buffer is zero at the point.
fn is_false(program: &Program, cond: Expr, buffer: Buffer) -> bool {
    let exprs = &program.exprs;
    let is_no = |e: Expr| exprs.as_const(e).is_some_and(|v| !v.as_bool());
    match &exprs[cond] {
        ExprDef::Load {
            buffer: read,
            index,
            ..
        } => {
            let mut axes = index.iter().enumerate();
            *read == buffer && axes.all(|(k, &e)| exprs[e] == ExprDef::Axis(k as u32))
        }
        ExprDef::Select(c, _, no) => is_no(*no) && is_false(program, *c, buffer),
        ExprDef::Binary(BinaryOp::And, a, b) => {
            [*a, *b].iter().any(|&e| is_false(program, e, buffer))
        }
        _ => false,
    }
}
