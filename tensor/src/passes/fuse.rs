//! Several `for` over the same space become one.
//!
//! A statement joins the latest `for` over its domain, if nothing between them, and no other point of that one, has to
//! come before it: all that one of both stores and the other touches is touched at the same indices, which no two points
//! share.
//!
//! Loops over the active cells of the same field are fused, if no cell is activated between them.
//!
//! It runs twice: on sums, so that they share their loops, and on what `reductions` made of them.

use aerogel_ir::TreeId;
use aerogel_snode::NodeId;
use indexmap::{IndexMap, IndexSet};

use super::Options;
use super::reductions::sums;
use crate::ir::{
    Buffer, Dim, Expr, ExprDef, For, Outside, Program, Stmt, Touched, rewrite_blocks, visit,
};

/// A kernel takes no more arrays than this: each takes a register for its address.
const MAX_BUFFERS: usize = 24;
/// Over more points than this, a launch costs little beside the work: 2 to 5 us beside 16 us for a sum of two arrays.
const MANY: u64 = 1 << 15;

/// Fuses sums over the same axes of the same domain.
pub(super) fn run_on_sums(program: &mut Program, options: Options) -> bool {
    rewrite_blocks(program, &mut |program, body| {
        block(program, body, true, options)
    })
}

/// Fuses all that have one domain.
pub(super) fn run_on_points(program: &mut Program, options: Options) -> bool {
    rewrite_blocks(program, &mut |program, body| {
        block(program, body, false, options)
    })
}

/// When buffers and variables were touched last.
#[derive(Default)]
struct Last {
    read: IndexMap<u64, usize>,
    written: IndexMap<u64, usize>,
}

/// Buffers, variables, and which cells of sparse nodes are active, in one numbering.
fn keys(touched: &Touched) -> [Vec<u64>; 2] {
    let buffer = |b: &Buffer| u64::from(b.as_u32()) * 3;
    let reads = touched.reads.iter().map(buffer);
    let writes = touched.writes.iter().map(buffer);
    let var = |v: &crate::ir::Var| u64::from(v.as_u32()) * 3 + 1;
    let node = |(tree, node): &(TreeId, NodeId)| {
        let number = u64::from(tree.as_u32()) << 32 | u64::from(node.as_u32());
        number * 3 + 2
    };
    let outside = touched.outside.then_some(u64::MAX);
    let gets = touched.gets.iter().map(var);
    let sets = touched.sets.iter().map(var);
    [
        reads
            .chain(gets)
            .chain(touched.walks.iter().map(node))
            .collect(),
        writes
            .chain(sets)
            .chain(touched.activates.iter().map(node))
            .chain(outside)
            .collect(),
    ]
}

/// The domain of a `for`: its shape, and the cells, if not all points.
type Space = (Vec<Dim>, Option<(TreeId, NodeId)>);

fn space(program: &Program, all: &For) -> Space {
    let cells = all.cells.and_then(|field| program.holder(field));
    (all.domain.clone(), cells)
}

impl Last {
    /// The last statement that has to come before one that touches these; none if any may.
    fn before(&self, [reads, writes]: &[Vec<u64>; 2]) -> Option<usize> {
        let written = reads
            .iter()
            .chain(writes)
            .filter_map(|k| self.written.get(k));
        let read = writes.iter().filter_map(|k| self.read.get(k));
        written.chain(read).copied().max()
    }

    fn touch(&mut self, [reads, writes]: &[Vec<u64>; 2], at: usize) {
        for (all, map) in [(reads, &mut self.read), (writes, &mut self.written)] {
            for &key in all {
                let last = map.entry(key).or_insert(at);
                *last = at.max(*last);
            }
        }
    }
}

/// Whether statements may `break` or `continue` the enclosing loop, so that nothing may move before them.
fn leaves(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| match stmt {
        Stmt::Break | Stmt::Continue => true,
        Stmt::If(_, then, otherwise) => leaves(then) || leaves(otherwise),
        _ => false,
    })
}

fn block(program: &Program, body: &mut Vec<Stmt>, on_sums: bool, options: Options) -> bool {
    let most = options.caps.fused_statements as usize;
    let n = body.len();
    let mut last = Last::default();
    let mut latest: IndexMap<Space, usize> = IndexMap::new();
    for stmt in std::mem::take(body) {
        let touched = keys(&Touched::by(program, std::slice::from_ref(&stmt)));
        if leaves(std::slice::from_ref(&stmt)) {
            // Nothing crosses it.
            latest.clear();
        }
        let Stmt::For(all) = stmt else {
            last.touch(&touched, body.len());
            body.push(stmt);
            continue;
        };
        let space = space(program, &all);
        let joined = latest.get(&space).copied().filter(|&at| {
            let Stmt::For(group) = &body[at] else {
                return false;
            };
            let before = last.before(&touched);
            let conflicts = before == Some(at);
            before.is_none_or(|b| b <= at)
                && group.body.len() + all.body.len() <= most
                && joins(program, group, &all, conflicts, on_sums)
        });
        let at = joined.unwrap_or(body.len());
        last.touch(&touched, at);
        match joined.and_then(|at| body.get_mut(at)) {
            Some(Stmt::For(group)) => group.body.extend(all.body),
            _ => {
                latest.insert(space, at);
                body.push(Stmt::For(all));
            }
        }
    }
    body.len() < n
}

fn joins(program: &Program, group: &For, all: &For, conflicts: bool, on_sums: bool) -> bool {
    if on_sums && (conflicts || sums(program, all).is_none()) {
        return false;
    }
    let [a, b] = [group, all].map(|f| Touched::at_points(program, f));
    let buffers: IndexSet<Buffer> = [&a.reads, &a.writes, &b.reads, &b.writes]
        .into_iter()
        .flatten()
        .copied()
        .collect();
    if buffers.len() > MAX_BUFFERS
        || a.sets
            .iter()
            .any(|v| b.sets.contains(v) || b.gets.contains(v))
    {
        return false;
    }
    if on_sums {
        let kept = |f: &For| sums(program, f).map(|s| s.kept);
        let both = [kept(group), kept(all)];
        return !conflicts && both[0].is_some() && both[0] == both[1];
    }
    if !a.shares(&b) && !gains(program, group, all) {
        return false;
    }
    let shared = a
        .writes
        .iter()
        .filter(|b_| b.reads.contains(*b_) || b.writes.contains(*b_));
    let shared: Vec<Buffer> = shared
        .chain(b.writes.iter().filter(|w| a.reads.contains(*w)))
        .copied()
        .collect();
    shared.into_iter().all(|buffer| {
        let mut places = IndexSet::new();
        let mut plain = true;
        for body in [&group.body, &all.body] {
            touches(program, body, buffer, &mut places, &mut plain);
        }
        plain
            && places.len() == 1
            && places
                .iter()
                .all(|index| is_own(program, index, &all.domain))
    })
}

/// Whether statements that share no buffer are better off in one `for`: it saves a launch. Over many points that is little, and
/// what moves to an earlier place lies in memory for longer. Loops compete for registers.
fn gains(program: &Program, group: &For, all: &For) -> bool {
    let points = program.size_of_all(all.domain.iter().copied());
    points.is_none_or(|n| n.about <= MANY) && !(has_loop(&group.body) && has_loop(&all.body))
}

fn has_loop(body: &[Stmt]) -> bool {
    let mut found = false;
    visit(body, &mut |stmt| {
        found |= matches!(stmt, Stmt::Loop { .. });
    });
    found
}

/// Collects the indices at which statements touch a buffer; not `plain` if some may be changed by what is outside.
pub(super) fn touches(
    program: &Program,
    body: &[Stmt],
    buffer: Buffer,
    places: &mut IndexSet<Vec<Expr>>,
    plain: &mut bool,
) {
    visit(body, &mut |stmt| {
        if let Stmt::Store(store) = stmt
            && store.target == buffer
        {
            *plain &= store.outside == Outside::Never;
            places.insert(store.index.clone());
        }
        program.exprs.visit(stmt.roots(), &mut |e| {
            if let ExprDef::Load {
                buffer: read,
                index,
                outside,
                ..
            } = &program.exprs[e]
                && *read == buffer
            {
                *plain &= *outside == Outside::Never;
                places.insert(index.clone());
            }
        });
    });
}

/// Whether each point has indices of its own: all axes are among them.
pub(super) fn is_own(program: &Program, index: &[Expr], domain: &[Dim]) -> bool {
    let axes: IndexSet<u32> = index
        .iter()
        .filter_map(|&e| match program.exprs[e] {
            ExprDef::Axis(k) => Some(k),
            _ => None,
        })
        .collect();
    axes.len() == domain.len()
}
