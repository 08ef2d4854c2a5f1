//! Vectorising statements over a batch: one more axis in the domain of each statement, and in the indices of each buffer
//! that varies over the batch.
//!
//! ```text
//! for [m] { t[i0] = mul(one[i0], w[i0]) }        for [n, m] { t[i0, i1] = mul(all[i0, i1], w[i1]) }
//! ```
//! Branches and loops of the host whose conditions vary over the batch become conditions at points: a branch is a mask, a
//! loop ends when no batch element is left in it.

mod kernels;
mod loops;

use aerogel_base::ScalarType;
use aerogel_base::entity::PrimaryMap;
use aerogel_base::hash::LookupMap;
use aerogel_ir::{BinaryOp, CompareOp, UnaryOp};
use indexmap::{IndexMap, IndexSet};

use crate::ir::{
    Accum, Buffer, Call, Dim, Expr, ExprDef, For, Library, Outside, Program, Role, Site, SiteDef,
    Stmt, Store, Touched, exprs_of, targets, visit_host,
};

use super::varying::{Varying, loads, only_stored};
use super::{RecordError, Recorded, Recording};

/// A symbolic tensor, and the batched tensor that it stands for.
#[derive(Clone, Copy, Debug)]
pub struct Mapped {
    /// The symbolic tensor, which the statements read.
    pub one: Buffer,
    /// The batched tensor.
    pub all: Buffer,
    /// The axis along which they lie.
    pub axis: usize,
}

/// A loop that batch elements leave at different times: which are still in it, and which are in this iteration.
#[derive(Clone, Copy)]
struct InLoop {
    alive: Buffer,
    going: Buffer,
}

/// Where statements stand.
#[derive(Clone, Copy, Default)]
struct At {
    /// For whom they are done, if not for all: of the first axis.
    mask: Option<Expr>,
    in_loop: Option<InLoop>,
}

struct Mapping<'r> {
    r: &'r mut Recording,
    n: Dim,
    /// Where those of all lie, and along which axis.
    places: IndexMap<Buffer, (Buffer, usize)>,
    /// Memory from outside, to which all store.
    shared: IndexSet<Buffer>,
    free: IndexSet<Buffer>,
    done: LookupMap<Expr, Expr>,
}

impl Recording {
    /// A tensor that stands for one of those that lie along an axis of `x`: nothing makes it.
    ///
    /// # Errors
    /// If there is no such axis.
    pub fn one_of(&mut self, x: Buffer, axis: i64) -> Recorded<(Buffer, usize)> {
        self.expect_everywhere(&[x])?;
        let mut shape = self.shape(x);
        let axis = self.axis_of("vmap", axis, shape.len())?;
        shape.remove(axis);
        let one = self.program.temporary(self.ty(x), &shape);
        Ok((one, axis))
    }

    /// What has been made since there were so many buffers is gone.
    pub fn drop_since(&mut self, n_before: usize) {
        for k in n_before..self.program.buffers.len() {
            let buffer = Buffer::from_u32(k as u32);
            self.gone[buffer] = self.program.buffers[buffer].role == Role::Temporary;
        }
    }

    /// Whether no statement computes a tensor any more: it belonged to a `vmap` that has been vectorised.
    pub fn is_gone(&self, x: Buffer) -> bool {
        self.gone[x]
    }

    /// How many there are along the axes of what is mapped; `names` says what each is called.
    ///
    /// # Errors
    /// If they are known to differ.
    pub fn how_many(&mut self, mapped: &[Mapped], names: &[String]) -> Recorded<Dim> {
        let extent = |r: &Self, m: &Mapped| r.program.buffers[m.all].shape[m.axis];
        let first = mapped
            .first()
            .ok_or_else(|| RecordError::Value("`vmap`: no argument has a batch axis".to_owned()))?;
        let n = extent(self, first);
        let text = |m: &Mapped, name: &str, n: &str| {
            format!("{name} has {n} elements along axis {}", m.axis)
        };
        for (other, name) in mapped.iter().zip(names).skip(1) {
            let own = extent(self, other);
            let says = |a: &str, b: &str| {
                let (first, other) = (text(first, &names[0], a), text(other, name, b));
                format!("`vmap`: {first}, {other}")
            };
            if !self.agree(n, own, &says("{}", "{}")) {
                let [a, b] = [n, own].map(|d| self.dim_text(d));
                return Err(RecordError::Value(says(&a, &b)));
            }
        }
        Ok(n)
    }

    /// Appends statements that were recorded of `one` for `all`. The `results`: each where those of all lie and along which
    /// axis, or nothing if it is the same for all. Of the buffers that are not theirs, by `is_own`, statements may store to
    /// elements of those that they do not read: all store there.
    ///
    /// # Errors
    /// If they read buffers that they change and that are not theirs, or a loop with a step begins with another number for
    /// each.
    pub fn vmap(
        &mut self,
        body: &[Stmt],
        mapped: &[Mapped],
        n: Dim,
        results: &[Buffer],
        is_own: &dyn Fn(Buffer) -> bool,
    ) -> Recorded<Vec<Option<(Buffer, usize)>>> {
        let ones: Vec<Buffer> = mapped.iter().map(|m| m.one).collect();
        let written = Touched::by(&self.program, body).writes;
        let mut shared = only_stored(&self.program, body);
        shared.retain(|b| !is_own(*b) && !ones.contains(b));
        let seen: Vec<Buffer> = results.iter().chain(&shared).copied().collect();
        let varying = Varying::of(&self.program, body, &ones, &seen);
        let mut histories = IndexSet::new();
        visit_host(body, &mut |stmt| {
            if let Stmt::Call(call) = stmt {
                histories.extend(call.kept().map(|[_, history]| history));
            }
        });
        let mut places: IndexMap<Buffer, (Buffer, usize)> = IndexMap::new();
        for &one in varying.buffers.difference(&shared) {
            let given = mapped.iter().find(|m| m.one == one);
            let is_written = written.contains(&one);
            if is_written && (given.is_some() || !is_own(one)) {
                let reads = loads(&self.program, &exprs_of(body)).contains(&one);
                let text = match reads {
                    true => {
                        "`vmap`: the function reads memory from outside to which it also stores, and other elements of the batch may have stored there before: read a copy that was made before"
                    }
                    false => {
                        "`vmap`: all stores to memory that was made outside of the function must use the same accumulation, or \
                         none"
                    }
                };
                return Err(RecordError::Value(text.to_owned()));
            }
            let place = match given {
                Some(m) => (m.all, m.axis),
                None => {
                    let shape = match histories.contains(&one) {
                        true => Vec::new(),
                        false => [&[n][..], &self.shape(one)].concat(),
                    };
                    let all = self.program.temporary(self.ty(one), &shape);
                    self.lines.follow(all, one);
                    (all, 0)
                }
            };
            places.insert(one, place);
        }
        let mut mapping = Mapping {
            r: self,
            n,
            places,
            shared,
            free: varying.free,
            done: LookupMap::default(),
        };
        let body = mapping.block(body, At::default())?;
        let places = mapping.places;
        for &one in places.keys().filter(|&&one| is_own(one)) {
            self.gone[one] = true;
        }
        self.program.body.extend(body);
        Ok(results.iter().map(|b| places.get(b).copied()).collect())
    }
}

/// The meaning of an out-of-bounds index in the batched access: a checked one has its own site, with one more axis.
fn outside_of_all(
    sites: &mut PrimaryMap<Site, SiteDef>,
    outside: Outside,
    buffer: Buffer,
    axis: usize,
) -> Outside {
    let Outside::Error(one) = outside else {
        return outside;
    };
    let axis = axis as u32;
    let from_end = sites[one].from_end.iter();
    let from_end = from_end.map(|&own| own + u32::from(own >= axis)).collect();
    Outside::Error(sites.push(SiteDef {
        buffer,
        from_end,
        ..sites[one].clone()
    }))
}

/// The one buffer that a statement stores to.
fn only_target(all: &For) -> Option<Buffer> {
    let mut found = IndexSet::new();
    targets(&Stmt::For(all.clone()), &mut |b| {
        found.insert(b);
    });
    found.iter().copied().next().filter(|_| found.len() == 1)
}

impl Mapping<'_> {
    fn program(&mut self) -> &mut Program {
        &mut self.r.program
    }

    fn varies(&self, e: Expr) -> bool {
        let all = loads(&self.r.program, &[e]);
        all.iter().any(|b| self.places.contains_key(b))
    }

    /// An expression at a point with one axis more.
    fn expr(&mut self, e: Expr) -> Expr {
        let places = &self.places;
        let Program { exprs, sites, .. } = &mut self.r.program;
        exprs.replace(e, &mut self.done, &mut |exprs, def| match def {
            ExprDef::Axis(k) => Some(exprs.axis(k + 1)),
            ExprDef::Load {
                buffer,
                ty,
                index,
                outside,
            } => {
                let &(buffer, axis) = places.get(buffer)?;
                let mut index = index.clone();
                index.insert(axis, exprs.axis(0));
                Some(exprs.add(ExprDef::Load {
                    buffer,
                    ty: *ty,
                    index,
                    outside: outside_of_all(sites, *outside, buffer, axis),
                }))
            }
            _ => None,
        })
    }

    fn both(&mut self, a: Option<Expr>, b: Expr) -> Expr {
        match a {
            Some(a) => self.program().exprs.binary(BinaryOp::And, a, b),
            None => b,
        }
    }

    /// The element of each.
    fn each(&mut self, buffer: Buffer) -> Expr {
        let index = self.program().axes(1);
        self.program().load(buffer, index, Outside::Never)
    }

    fn over(&self, domain: Vec<Dim>, body: Vec<Stmt>) -> Stmt {
        let span = self.r.span;
        Stmt::For(For {
            domain,
            cells: None,
            body,
            span,
        })
    }

    /// `target[i0, ..] = value`, of the whole target.
    fn fill(&mut self, target: Buffer, value: Expr) -> Stmt {
        let domain = self.r.shape(target);
        let store = self.whole(target, value);
        self.over(domain, vec![Stmt::Store(store)])
    }

    fn whole(&mut self, target: Buffer, value: Expr) -> Store {
        let rank = self.r.rank(target);
        Store {
            target,
            index: self.program().axes(rank),
            value,
            accum: None,
            init: false,
            outside: Outside::Never,
        }
    }

    /// A value for each as it is now.
    fn snapshot(&mut self, e: Expr, out: &mut Vec<Stmt>) -> Buffer {
        let value = self.expr(e);
        let ty = self.program().exprs.ty(value);
        let n = self.n;
        let target = self.program().temporary(ty, &[n]);
        out.push(self.fill(target, value));
        target
    }

    /// What `accum` makes of a value of each, as a number of the host's.
    fn number(&mut self, value: Expr, accum: Accum, out: &mut Vec<Stmt>) -> Expr {
        let ty = self.program().exprs.ty(value);
        let target = self.program().temporary(ty, &[]);
        let mut store = self.whole(target, value);
        (store.accum, store.init) = (Some(accum), true);
        out.push(self.over(vec![self.n], vec![Stmt::Store(store)]));
        self.program().load(target, Vec::new(), Outside::Never)
    }

    fn block(&mut self, body: &[Stmt], at: At) -> Recorded<Vec<Stmt>> {
        let mut out = Vec::new();
        for stmt in body {
            self.stmt(stmt, at, &mut out)?;
        }
        Ok(out)
    }

    fn stmt(&mut self, stmt: &Stmt, at: At, out: &mut Vec<Stmt>) -> Recorded<()> {
        match stmt {
            Stmt::For(all) => self.all(all, at, out)?,
            Stmt::Call(call) => self.call(call, at, out),
            Stmt::If(cond, then, otherwise) if self.varies(*cond) => {
                let cond = self.snapshot(*cond, out);
                let holds = self.each(cond);
                let fails = self.program().exprs.unary(UnaryOp::Not, holds);
                for (mask, body) in [(holds, then), (fails, otherwise)] {
                    let mask = Some(self.both(at.mask, mask));
                    out.extend(self.block(body, At { mask, ..at })?);
                }
            }
            Stmt::If(cond, then, otherwise) => {
                let (then, otherwise) = (self.block(then, at)?, self.block(otherwise, at)?);
                out.push(Stmt::If(*cond, then, otherwise));
            }
            Stmt::Loop { .. } => self.turns(stmt, at, out)?,
            Stmt::Break | Stmt::Continue => match at.in_loop {
                Some(inside) => self.leave(inside, matches!(stmt, Stmt::Break), at, out),
                None => out.push(stmt.clone()),
            },
            Stmt::Set(_, e) => {
                debug_assert!(!self.varies(*e), "only points set variables");
                out.push(stmt.clone());
            }
            Stmt::Store(_) => unreachable!("a store is inside a `for`"),
            Stmt::Clear(_) => unreachable!("passes make it"),
            Stmt::Run(run) => self.run(run, at, out)?,
        }
        Ok(())
    }

    fn all(&mut self, all: &For, at: At, out: &mut Vec<Stmt>) -> Recorded<()> {
        let touched = Touched::at_points(&self.r.program, all);
        let is_of_each = |b: &Buffer| self.places.contains_key(b) || self.shared.contains(b);
        if !touched.writes.iter().any(is_of_each) {
            out.push(Stmt::For(all.clone()));
            return Ok(());
        }
        if let Some(field) = all.cells {
            return Err(RecordError::Value(format!(
                "`vmap`: a value on the cells of `{}` varies over the batch: take `dense` of what is read from it",
                self.r.program.buffers[field].name
            )));
        }
        let mut body = self.noted_points(all, out);
        if let Some(mask) = at.mask.filter(|_| !touched.writes.is_subset(&self.free)) {
            for stmt in &mut body {
                if let Stmt::Store(store) = stmt
                    && std::mem::take(&mut store.init)
                {
                    let accum = store.accum.expect("only with `init`");
                    let ty = self.r.ty(store.target);
                    let neutral = self.program().exprs.constant(accum.neutral(ty));
                    out.push(self.fill(store.target, neutral));
                }
            }
            body = vec![Stmt::If(mask, body, Vec::new())];
        }
        out.push(Stmt::For(For {
            domain: [&[self.n][..], &all.domain].concat(),
            cells: None,
            body,
            span: all.span,
        }));
        Ok(())
    }

    /// The statements at the points of all. If they are a running operation, what makes the buffer of all is noted to be one;
    /// its operands have one axis more, too, and are what the statements read.
    fn noted_points(&mut self, all: &For, out: &mut Vec<Stmt>) -> Vec<Stmt> {
        let target = only_target(all);
        let running = target.and_then(|one| self.r.running(one));
        let (Some(one), Some(running)) = (target, running) else {
            return self.points(&all.body);
        };
        let around = self.places.clone();
        let of_all = running.moved(|operand| {
            let of_all = self.operand(operand, None, out);
            self.places.insert(operand, (of_all, 0));
            Some(of_all)
        });
        if let (Some(of_all), &(target, 0)) = (of_all, &self.places[&one]) {
            self.r.note_running(target, of_all.of_all());
        }
        self.done = LookupMap::default();
        let body = self.points(&all.body);
        self.done = LookupMap::default();
        self.places = around;
        body
    }

    fn points(&mut self, body: &[Stmt]) -> Vec<Stmt> {
        let inside = body.iter().map(|stmt| match stmt {
            Stmt::Store(store) => {
                let mut index: Vec<Expr> = store.index.iter().map(|&e| self.expr(e)).collect();
                let (mut target, mut outside) = (store.target, store.outside);
                if let Some(&(of_all, axis)) = self.places.get(&target) {
                    index.insert(axis, self.program().exprs.axis(0));
                    outside = outside_of_all(&mut self.program().sites, outside, of_all, axis);
                    target = of_all;
                }
                Stmt::Store(Store {
                    target,
                    index,
                    value: self.expr(store.value),
                    outside,
                    ..*store
                })
            }
            Stmt::Set(var, e) => Stmt::Set(*var, self.expr(*e)),
            Stmt::Loop {
                var,
                lo,
                hi,
                step,
                body,
            } => Stmt::Loop {
                var: *var,
                lo: self.expr(*lo),
                hi: self.expr(*hi),
                step: *step,
                body: self.points(body),
            },
            Stmt::If(cond, then, otherwise) => {
                let cond = self.expr(*cond);
                Stmt::If(cond, self.points(then), self.points(otherwise))
            }
            Stmt::Break | Stmt::Continue => stmt.clone(),
            Stmt::For(_) | Stmt::Call(_) | Stmt::Run(_) | Stmt::Clear(_) => {
                unreachable!("a `for` is not inside a `for`")
            }
        });
        inside.collect()
    }

    /// Libraries work on the last axes of all that they are given.
    fn call(&mut self, call: &Call, at: At, out: &mut Vec<Stmt>) {
        if !call.outputs.iter().any(|b| self.places.contains_key(b)) {
            out.push(Stmt::Call(call.clone()));
            return;
        }
        if let Some(kept) = call.kept() {
            return self.kept(call, kept, at, out);
        }
        // For whom it is not done, it is done with what no library refuses, and nobody sees it.
        let apart = at
            .mask
            .filter(|_| matches!(call.library, Library::Algebra(_)));
        let mut inputs = Vec::new();
        for &one in &call.inputs {
            inputs.push(self.operand(one, apart, out));
        }
        let wanted: Vec<Buffer> = call.outputs.iter().map(|b| self.places[b].0).collect();
        let mut outputs = wanted.clone();
        if at.mask.is_some() {
            for output in &mut outputs {
                let (ty, shape) = (self.r.ty(*output), self.r.shape(*output));
                let made = self.program().temporary(ty, &shape);
                self.r.lines.follow(made, *output);
                *output = made;
            }
        }
        out.push(Stmt::Call(Call {
            library: call.library,
            inputs,
            outputs: outputs.clone(),
            span: call.span,
        }));
        for (target, made) in wanted.into_iter().zip(outputs) {
            let Some(mask) = at.mask else { break };
            self.store_at(mask, target, made, out);
        }
    }

    /// `target[i0, ..] = made[i0, ..]` for whom a mask says so.
    fn store_at(&mut self, mask: Expr, target: Buffer, made: Buffer, out: &mut Vec<Stmt>) {
        let domain = self.r.shape(target);
        let index = self.program().axes(domain.len());
        let value = self.program().load(made, index, Outside::Never);
        let store = Stmt::Store(self.whole(target, value));
        out.push(self.over(domain, vec![Stmt::If(mask, vec![store], Vec::new())]));
    }

    /// What a library reads of all, along the first axis; where it is not done (`apart`), what no library refuses.
    fn operand(&mut self, one: Buffer, apart: Option<Expr>, out: &mut Vec<Stmt>) -> Buffer {
        if let (Some(&(all, 0)), None) = (self.places.get(&one), apart) {
            return all;
        }
        let shape = [&[self.n][..], &self.r.shape(one)].concat();
        let target = self.r.program.temporary(self.r.ty(one), &shape);
        let element = self.r.at_point(one, shape.len() - 1);
        let mut value = self.expr(element);
        if let Some(mask) = apart {
            let harmless = self.unit(shape.len(), self.r.ty(one));
            value = self.program().exprs.select(mask, value, harmless);
        }
        out.push(self.fill(target, value));
        target
    }

    /// Each has a history of its own.
    fn kept(&mut self, call: &Call, kept: [Buffer; 2], at: At, out: &mut Vec<Stmt>) {
        let [value, history] = kept;
        let history = self.places[&history].0;
        let mask = self.mask(call.mask(), at.mask, out);
        if call.library == Library::Push {
            let value = self.operand(value, None, out);
            let push = Call::push(value, mask, history, call.span);
            return out.push(Stmt::Call(push));
        }
        let target = self.places[&value].0;
        let Some(mask_of_all) = at.mask else {
            let pop = Call::pop(history, mask, target, call.span);
            return out.push(Stmt::Call(pop));
        };
        let (ty, shape) = (self.r.ty(target), self.r.shape(target));
        let made = self.program().temporary(ty, &shape);
        out.push(Stmt::Call(Call::pop(history, mask, made, call.span)));
        self.store_at(mask_of_all, target, made, out);
    }

    /// The mask of each, and of all, as it is now.
    fn mask(
        &mut self,
        of_each: Option<Buffer>,
        of_all: Option<Expr>,
        out: &mut Vec<Stmt>,
    ) -> Option<Buffer> {
        let (shape, mut value) = match of_each {
            None => (Vec::new(), None),
            Some(each) => {
                let shape = self.r.shape(each);
                let element = self.r.at_point(each, shape.len());
                (shape, Some(self.expr(element)))
            }
        };
        if let Some(of_all) = of_all {
            value = Some(self.both(value, of_all));
        }
        let value = value?;
        let shape = [&[self.n][..], &shape].concat();
        let target = self.program().temporary(ScalarType::U1, &shape);
        out.push(self.fill(target, value));
        Some(target)
    }

    /// An element of the unit matrix along the last two of so many axes.
    fn unit(&mut self, rank: usize, ty: ScalarType) -> Expr {
        let [row, column] = [rank - 2, rank - 1].map(|k| self.program().exprs.axis(k as u32));
        let on_diagonal = self.program().exprs.compare(CompareOp::Eq, row, column);
        self.program().exprs.cast(on_diagonal, ty)
    }
}
