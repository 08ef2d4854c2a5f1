//! The activity queries of the backward pass of a kernel, and the moment whose activity each needs.

use aerogel_base::Span;
use aerogel_ir::{CellOp, Env, Inst, NodeRef, Op};

use super::asked::{Access, Asked, Changes, OfCalled, accesses, changes};
use super::demand::{Cx, Demand};
use super::needs::{Lost, Moment, Of, Overwritten, Why};

/// The activity queries of a kernel, and its changes of activity.
#[derive(Default)]
pub(super) struct Asks {
    pub(super) all: Vec<Asked>,
    /// The first query that needs the activity of when the kernel began.
    pub(super) of_start: Option<Overwritten>,
    /// The first that nothing can answer.
    pub(super) lost: Option<Lost>,
}

/// The activity queries of the backward pass of a kernel.
pub(super) fn find(cx: &Cx<'_>, demand: &Demand) -> Asks {
    let is_needed = |inst: Inst| match &cx.func[inst] {
        Op::ParallelCells { .. } => demand.works(inst) || demand.rerun(inst).any(),
        _ => demand.value(cx.func.insts[inst].results[0]).any(),
    };
    let (asked, changed) = accesses(cx.func, cx.env);
    let mut asks = Asks::default();
    for ask in asked.iter().filter(|ask| is_needed(ask.inst)) {
        asks.add(cx, ask, &changed);
    }
    let span = |inst: Inst| cx.func.insts[inst].span;
    let of_kernel = OfCalled {
        asked: asked.iter().map(|a| (a.nodes[0], span(a.inst))).collect(),
        changed: changed
            .iter()
            .map(|c| (c.nodes.clone(), span(c.inst)))
            .collect(),
    };
    asks.add_called(cx.env, &cx.calls.asks, &of_kernel);
    asks
}

impl Asks {
    fn add(&mut self, cx: &Cx<'_>, ask: &Access, changed: &[Access]) {
        let node = ask.nodes[0];
        let mut all = Changes::default();
        let mut by = None;
        for change in changed.iter().filter(|change| change.nodes.contains(&node)) {
            let found = changes(cx.func, ask, change);
            let is_gone = matches!(cx.func[change.inst], Op::Cell(CellOp::Deactivate { .. }));
            let what = Overwritten {
                read: cx.func.insts[ask.inst].span,
                written: cx.func.insts[change.inst].span,
                of: Of::Cells,
            };
            if found.after && (by.is_none() || is_gone) {
                by = Some(what);
            }
            let why = match found.races {
                true => Some(Why::Order),
                false => (found.after && is_gone).then_some(Why::Undone),
            };
            self.lost = self.lost.or(why.map(|why| Lost { what, why }));
            all.before |= found.before;
            all.after |= found.after;
        }
        let at = if all.before {
            Moment::End
        } else {
            Moment::Start
        };
        if all.before && all.after {
            let lost = by.map(|what| Lost {
                what,
                why: Why::Both,
            });
            self.lost = self.lost.or(lost);
        }
        self.of_start = self.of_start.or(by);
        self.push(cx.env, Asked { node, at }, all.before || all.after, by);
    }

    /// Adds a query. A node and one below it count as one: cells of the one are active where those of the other
    /// are.
    fn push(&mut self, env: &Env, new: Asked, is_changed: bool, by: Option<Overwritten>) {
        let is_beside = |a: NodeRef, b: NodeRef| {
            a.tree == b.tree && env.trees[a.tree].chain(a.node).contains(&b.node)
        };
        let mut others = self.all.iter();
        let other = others.find(|o| is_beside(o.node, new.node) || is_beside(new.node, o.node));
        let is_other = other.is_some_and(|other| other.at != new.at);
        if is_other && is_changed {
            let what = by.or(self.of_start);
            let lost = what.map(|what| Lost {
                what,
                why: Why::Both,
            });
            self.lost = self.lost.or(lost);
        }
        if !self.all.contains(&new) {
            self.all.push(new);
        }
    }

    /// The queries of functions that stay functions must find the activity that the kernel leaves.
    fn add_called(&mut self, env: &Env, called: &OfCalled, kernel: &OfCalled) {
        let lost = met(&called.asked, &called.changed)
            .or_else(|| met(&called.asked, &kernel.changed))
            .or_else(|| met(&kernel.asked, &called.changed));
        let why = Why::Called;
        self.lost = self.lost.or(lost.map(|what| Lost { what, why }));
        for &(node, _) in &called.asked {
            let at = Moment::Start;
            self.push(env, Asked { node, at }, false, None);
        }
    }
}

fn met(asked: &[(NodeRef, Span)], changed: &[(Vec<NodeRef>, Span)]) -> Option<Overwritten> {
    asked.iter().find_map(|&(node, read)| {
        let (_, written) = changed.iter().find(|(nodes, _)| nodes.contains(&node))?;
        Some(Overwritten {
            read,
            written: *written,
            of: Of::Cells,
        })
    })
}
