//! Loops whose iterations a plan can run again, from states that it has saved, when the backward pass reaches them.
//!
//! ```text
//! loop i in 0..n { push(h, s); s = f(s) }
//! ...
//! loop k in n-1, .., 0 { s' = pop(h); adjoint of f at s' }
//! ```
//! An iteration needs what it reads before it writes it, which is its state, and what the loop only reads. So it can run
//! again if nothing changes the latter before the second loop is over. Nothing else is known of either loop, so the passes
//! need not know of segments, and the compiled kernels of the first loop run again: with the same results to the bit.

use indexmap::{IndexMap, IndexSet};

use crate::ir::{Buffer, Library, Program, Role, Stmt, Touched, Var, live_in, visit_host};

/// A loop that saves states, and may save few of them.
pub(super) struct Saving {
    /// The values that it saves, and the history of each.
    pub(super) pushed: Vec<[Buffer; 2]>,
    /// What an iteration reads as the one before has left it, the pushed values first.
    pub(super) state: Vec<Buffer>,
    /// Everything that it writes but for histories.
    pub(super) written: IndexSet<Buffer>,
    /// The variables that it sets.
    pub(super) sets: IndexSet<Var>,
    /// Whether its counter alone ends it.
    pub(super) is_counted: bool,
    /// Whether loops that save states run between the iterations of the backward pass.
    pub(super) is_around: bool,
    /// What it reads and does not write.
    reads: IndexSet<Buffer>,
    /// The index of the outermost statement that contains the backward loop.
    back: usize,
}

impl Saving {
    /// The names of the values that it saves.
    pub(super) fn names(&self, program: &Program) -> String {
        let names = self
            .pushed
            .iter()
            .map(|own| &program.buffers[own[0]].name[..]);
        names.collect::<Vec<_>>().join(", ")
    }

    /// Which of the values that it saves has a history.
    pub(super) fn number_of(&self, history: Buffer) -> Option<usize> {
        self.pushed.iter().position(|own| own[1] == history)
    }
}

/// The loops of a program that save states which can be computed again, by their counters.
pub(super) fn of(program: &Program) -> IndexMap<Var, Saving> {
    let mut calls = Calls::default();
    visit_host(&program.body, &mut |stmt| calls.add(stmt));
    let mut out = IndexMap::new();
    if !calls.kept.is_empty() {
        in_block(program, &calls, &program.body, None, &mut out);
    }
    out
}

/// Lets buffers live until the loop that goes back is over.
pub(super) fn extend(last: &mut [Vec<Buffer>], savings: &IndexMap<Var, Saving>) {
    for saving in savings.values() {
        let needed = |b: &Buffer| saving.reads.contains(b);
        let mut late = Vec::new();
        for ended in &mut last[..saving.back] {
            late.extend(ended.extract_if(.., |b| needed(b)));
        }
        last[saving.back].extend(late);
    }
}

/// How often histories are pushed to and popped from, and counters are counted.
#[derive(Default)]
struct Calls {
    kept: IndexMap<Buffer, [usize; 2]>,
    counters: IndexMap<Var, usize>,
}

impl Calls {
    fn add(&mut self, stmt: &Stmt) {
        if let Stmt::Loop { var, .. } = stmt {
            *self.counters.entry(*var).or_insert(0) += 1;
        }
        if let Some((library, _, history)) = kept(stmt) {
            let which = usize::from(library == Library::Pop);
            self.kept.entry(history).or_insert([0, 0])[which] += 1;
        }
    }
}

/// A loop in a block, perhaps in its branches.
struct Found<'s> {
    var: Var,
    body: &'s [Stmt],
    /// Which statement of the block it is, or is in.
    at: usize,
    /// What runs after it in branches.
    rest: Vec<&'s [Stmt]>,
}

fn loops<'s>(body: &'s [Stmt], outer: Option<(usize, &[&'s [Stmt]])>, out: &mut Vec<Found<'s>>) {
    for (k, stmt) in body.iter().enumerate() {
        let (at, rest) = match outer {
            Some((at, rest)) => (at, [rest, &[&body[k + 1..]]].concat()),
            None => (k, Vec::new()),
        };
        match stmt {
            Stmt::Loop { var, body, .. } => out.push(Found {
                var: *var,
                body,
                at,
                rest,
            }),
            Stmt::If(_, then, otherwise) => {
                loops(then, Some((at, &rest)), out);
                loops(otherwise, Some((at, &rest)), out);
            }
            _ => {}
        }
    }
}

fn in_block(
    program: &Program,
    calls: &Calls,
    block: &[Stmt],
    outermost: Option<usize>,
    out: &mut IndexMap<Var, Saving>,
) {
    for (at, stmt) in block.iter().enumerate() {
        for inside in stmt
            .inside()
            .into_iter()
            .filter(|_| !matches!(stmt, Stmt::For(_)))
        {
            in_block(program, calls, inside, outermost.or(Some(at)), out);
        }
    }
    let mut all = Vec::new();
    loops(block, None, &mut all);
    for forward in &all {
        let is_one = calls.counters[&forward.var] == 1;
        let pushed = pushes(program, forward.body).filter(|p| is_one && !p.is_empty());
        let Some(pushed) = pushed else {
            continue;
        };
        let is_back = |f: &&Found<'_>| pops(f.body, &pushed, calls) && f.at > forward.at;
        let Some(back) = all.iter().find(is_back) else {
            continue;
        };
        let mut after = forward.rest.clone();
        after.push(&block[forward.at + 1..=back.at]);
        if let Some(mut saving) = saving(program, forward, pushed, &after) {
            visit_host(back.body, &mut |stmt| {
                saving.is_around |= matches!(kept(stmt), Some((Library::Push, ..)));
            });
            saving.back = outermost.unwrap_or(back.at);
            out.insert(forward.var, saving);
        }
    }
}

/// What an iteration saves of the values that it begins with, if it saves nothing else.
fn pushes(program: &Program, body: &[Stmt]) -> Option<Vec<[Buffer; 2]>> {
    let (mut all, mut n) = (Vec::new(), 0);
    visit_host(body, &mut |stmt| n += usize::from(kept(stmt).is_some()));
    for (at, stmt) in body.iter().enumerate() {
        let Stmt::Call(call) = stmt else { continue };
        let (Library::Push, None, Some(own)) = (call.library, call.mask(), call.kept()) else {
            continue;
        };
        let before = Touched::by(program, &body[..at]);
        if !before.writes.contains(&own[0]) {
            all.push(own);
        }
    }
    (n == all.len()).then_some(all)
}

/// Whether this loop, and nothing else, pops each of these histories.
fn pops(body: &[Stmt], pushed: &[[Buffer; 2]], calls: &Calls) -> bool {
    pushed.iter().all(|&[_, history]| {
        let is_pop = |stmt: &Stmt| match kept(stmt) {
            Some((Library::Pop, mask, own)) => own == history && mask.is_none(),
            _ => false,
        };
        calls.kept[&history] == [1, 1] && body.iter().any(is_pop)
    })
}

fn saving(
    program: &Program,
    forward: &Found<'_>,
    pushed: Vec<[Buffer; 2]>,
    after: &[&[Stmt]],
) -> Option<Saving> {
    let touched = Touched::by(program, forward.body);
    let histories: IndexSet<Buffer> = pushed.iter().map(|own| own[1]).collect();
    let written: IndexSet<Buffer> = touched.writes.difference(&histories).copied().collect();
    let is_array =
        |&b: &Buffer| matches!(program.buffers[b].role, Role::Temporary | Role::Input(_));
    if !written.iter().all(is_array) || !is_repeatable(program, forward.body) {
        return None;
    }
    let mut of_sizes = Touched::default();
    let sizes = program.dims.iter().filter_map(|def| def.expr());
    of_sizes.exprs(&program.exprs, sizes);
    let read: Vec<Buffer> = touched.reads.iter().copied().collect();
    let reads: IndexSet<Buffer> = read
        .into_iter()
        .filter(|b| !touched.writes.contains(b))
        .collect();
    for stmts in after {
        let later = Touched::by(program, stmts);
        let changes = later.writes.iter().any(|b| reads.contains(b));
        let gets = touched.gets.difference(&touched.sets);
        if changes || gets.into_iter().any(|var| later.sets.contains(var)) {
            return None;
        }
    }
    if of_sizes.reads.iter().any(|b| touched.writes.contains(b)) {
        return None;
    }
    let live = live_in(program, forward.body, &|_| false);
    let mut state: IndexSet<Buffer> = pushed.iter().map(|own| own[0]).collect();
    let is_input = |b: &&Buffer| matches!(program.buffers[**b].role, Role::Input(_));
    state.extend(live.intersection(&written));
    state.extend(written.iter().filter(is_input));
    let mut sets = touched.sets;
    sets.swap_remove(&forward.var);
    Some(Saving {
        pushed,
        state: state.into_iter().collect(),
        written,
        sets,
        is_counted: !is_left(forward.body),
        is_around: false,
        reads,
        back: 0,
    })
}

/// Whether statements do the same if they run again.
fn is_repeatable(program: &Program, body: &[Stmt]) -> bool {
    let mut is_repeatable = true;
    visit_host(body, &mut |stmt| match stmt {
        Stmt::Run(run) => {
            let region = &program.regions[run.region];
            let looks = run.results.is_empty() && !region.writes.contains(&true);
            let runner = region.runner.as_ref();
            let repeats = runner.is_some_and(|runner| runner.is_repeatable());
            is_repeatable &= region.trees.is_empty() && (looks || repeats);
        }
        Stmt::Clear(_) => is_repeatable = false,
        _ => {}
    });
    is_repeatable
}

/// Whether a `break` leaves the loop around.
fn is_left(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| match stmt {
        Stmt::Break => true,
        Stmt::If(_, then, otherwise) => is_left(then) || is_left(otherwise),
        _ => false,
    })
}

fn kept(stmt: &Stmt) -> Option<(Library, Option<Buffer>, Buffer)> {
    let Stmt::Call(call) = stmt else { return None };
    call.kept()
        .map(|[_, history]| (call.library, call.mask(), history))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The states of the loops that may run again, in a program with `inside` in its loop and `after` behind it.
    fn states(inside: &str, after: &str) -> Vec<String> {
        let text = format!(
            r#"
            in b0 "x": f32[4]
            in b1 "n": i32[]
            tmp b2 "w": f32[4]
            tmp b3 "y": f32[4]
            tmp b4 "z": f32[4]
            tmp b5 "v": f32[4]
            tmp b6 "h": f32[4]
            tmp b7 "back": f32[4]
            var x0: i32
            var x1: i32
            for [4] {{ b2[i0] = b0[i0] }}
            for [4] {{ b3[i0] = b0[i0] }}
            for [4] {{ b5[i0] = b0[i0] }}
            loop x0 in i32(0), b1[], 1 {{
                call push(b6) = (b3, b6)
                for [4] {{ b4[i0] = mul(b3[i0], b2[i0]) }}
                for [4] {{ b3[i0] = add(b4[i0], b5[i0]) }}
                {inside}
            }}
            {after}
            loop x1 in i32(0), b1[], 1 {{
                call pop(b7, b6) = (b6)
            }}
            for [4] {{ b2[i0] = b0[i0] }}
            result b7"#
        );
        let program = crate::ir::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let name = |&b: &Buffer| &program.buffers[b].name[..];
        let all = of(&program);
        let text = |own: &Saving| own.state.iter().map(name).collect::<Vec<_>>().join(" ");
        all.values().map(text).collect()
    }

    #[test]
    fn a_state_is_what_an_iteration_reads_before_it_stores_it() {
        assert_eq!(states("", ""), ["y"]);
        let accumulates = "for [4] { b5[i0] add = b4[i0] }";
        assert_eq!(states(accumulates, ""), ["y v"]);
        assert_eq!(states("for [2] { b4[i0] = b0[i0] }", ""), ["y"]);
        // An argument keeps what it has been given.
        assert_eq!(states("for [4] { b0[i0] = b4[i0] }", ""), ["y x"]);
    }

    #[test]
    fn what_an_iteration_reads_may_not_change() {
        assert!(states("", "for [4] { b2[i0] = b0[i0] }").is_empty());
        assert!(states("", "for [1] { b2[i0] = b0[i0] }").is_empty());
        // It is part of the state.
        assert_eq!(states("", "for [4] { b3[i0] = b0[i0] }"), ["y"]);
        assert!(states("call push(b6) = (b3, b6)", "").is_empty());
        assert!(states("", "call pop(b7, b6) = (b6)").is_empty());
    }
}
