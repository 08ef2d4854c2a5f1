//! Accesses of a program that was read which promise to be in bounds.
//!
//! ```text
//! for [(add(extent(b0:0), i32(-1)))] { b1[i0] = b0[add(i0, i32(1))] }
//! ```
//! Whether `i0 + 1` is an index of `b0` depends on sizes. With the sizes of a call it is an interval, `1..=n - 1`. If all such
//! intervals are in bounds, the program runs as it is; else as [`checked`] makes it, which looks at each index.

use aerogel_base::ScalarType;
use aerogel_base::hash::LookupMap;
use aerogel_ir::{BinaryOp, CompareOp, UnaryOp};
use indexmap::{IndexMap, IndexSet};

use super::eval::check_inputs;
use super::expr::{Expr, ExprDef, Exprs, Outside};
use super::extents::known_sizes;
use super::ids::{Buffer, Dim, Var};
use super::program::{For, Program, Stmt};
use super::rewrite::{exprs_of, rewrite, rewrite_fors, visit, visit_mut};
use super::site::{Place, SiteDef};

/// What a variable counts: from where, to where (exclusive), by what.
#[derive(Clone, Copy, Debug)]
struct Count {
    var: Var,
    lo: Expr,
    hi: Expr,
    step: i32,
}

/// The accesses of a statement at points.
#[derive(Clone, Debug)]
struct Points {
    domain: Vec<Dim>,
    /// The loops around it and in it.
    counts: Vec<Count>,
    /// The size of an axis, and an index along it.
    accesses: IndexSet<(Dim, Expr)>,
}

/// The accesses whose indices follow from sizes.
#[derive(Clone, Debug, Default)]
pub struct Promises {
    points: Vec<Points>,
}

impl Promises {
    /// The promises of a program, which checks the other accesses itself afterwards.
    pub(super) fn of(program: &mut Program) -> Self {
        let counters = counters(program);
        check(program, &|exprs, e| follows_sizes(exprs, &counters, e));
        let mut promises = Self::default();
        promises.block(program, &program.body, &mut Vec::new());
        promises
    }

    fn block(&mut self, program: &Program, body: &[Stmt], around: &mut Vec<Count>) {
        for stmt in body {
            match stmt {
                Stmt::For(all) => self.points(program, all, around),
                &Stmt::Loop {
                    var,
                    lo,
                    hi,
                    step,
                    ref body,
                } => {
                    around.push(Count { var, lo, hi, step });
                    self.block(program, body, around);
                    around.pop();
                }
                Stmt::If(_, then, otherwise) => {
                    self.block(program, then, around);
                    self.block(program, otherwise, around);
                }
                _ => {}
            }
        }
    }

    fn points(&mut self, program: &Program, all: &For, around: &[Count]) {
        let mut accesses = IndexSet::new();
        let mut promise = |buffer: Buffer, index: &[Expr], outside: Outside| {
            let shape = &program.buffers[buffer].shape;
            let open = index.iter().zip(shape).filter(|&(&e, &dim)| {
                outside == Outside::Never
                    && !is_proved(program, &program.exprs, &all.domain, dim, e)
            });
            accesses.extend(open.map(|(&e, &dim)| (dim, e)));
        };
        program.exprs.visit(exprs_of(&all.body), &mut |e| {
            if let ExprDef::Load {
                buffer,
                index,
                outside,
                ..
            } = &program.exprs[e]
            {
                promise(*buffer, index, *outside);
            }
        });
        let mut counts = around.to_vec();
        visit(&all.body, &mut |stmt| match *stmt {
            Stmt::Store(ref store) => promise(store.target, &store.index, store.outside),
            Stmt::Loop {
                var, lo, hi, step, ..
            } => counts.push(Count { var, lo, hi, step }),
            _ => {}
        });
        if !accesses.is_empty() {
            let domain = all.domain.clone();
            self.points.push(Points {
                domain,
                counts,
                accesses,
            });
        }
    }

    /// Whether no index is out of bounds if the inputs have these types and shapes.
    pub fn hold(&self, program: &Program, inputs: &[(ScalarType, &[usize])]) -> bool {
        if check_inputs(program, inputs).is_err() {
            // Nothing runs.
            return true;
        }
        let sizes = known_sizes(program, inputs);
        self.points
            .iter()
            .all(|points| points.hold(program, &sizes))
    }
}

impl Points {
    fn hold(&self, program: &Program, sizes: &[Option<i64>]) -> bool {
        let size = |dim: Dim| sizes[dim.as_u32() as usize].map(i128::from);
        if self.domain.iter().any(|&dim| size(dim) == Some(0)) {
            return true;
        }
        let mut ranges = Ranges {
            exprs: &program.exprs,
            size: &size,
            domain: &self.domain,
            vars: LookupMap::default(),
            done: LookupMap::default(),
        };
        // The bounds of an inner loop may be those of an outer one.
        for count in &self.counts {
            if let Some(range) = ranges.count(count) {
                ranges.vars.insert(count.var, range);
            }
        }
        self.accesses.iter().all(|&(dim, e)| {
            let inside = |(lo, hi): Range| Some(lo >= 0 && hi < size(dim)?);
            ranges.of(e).and_then(inside) == Some(true)
        })
    }
}

/// The least and the largest value.
type Range = (i128, i128);

/// The values of indices at all points.
struct Ranges<'p> {
    exprs: &'p Exprs,
    size: &'p dyn Fn(Dim) -> Option<i128>,
    domain: &'p [Dim],
    vars: LookupMap<Var, Range>,
    done: LookupMap<Expr, Option<Range>>,
}

impl Ranges<'_> {
    /// What a loop counts.
    fn count(&mut self, count: &Count) -> Option<Range> {
        let (lo, hi) = (self.narrow(count.lo)?, self.narrow(count.hi)?);
        Some(match count.step > 0 {
            true => (lo.0, lo.1.max(hi.1 - 1)),
            false => (lo.0.min(hi.0 + 1), lo.1),
        })
    }

    /// The values of an expression that is computed without wrapping around.
    fn narrow(&mut self, e: Expr) -> Option<Range> {
        let fits = |n: i128| i32::try_from(n).is_ok();
        self.of(e).filter(|&(lo, hi)| fits(lo) && fits(hi))
    }

    fn of(&mut self, e: Expr) -> Option<Range> {
        if let Some(&done) = self.done.get(&e) {
            return done;
        }
        let range = self.computed(e);
        self.done.insert(e, range);
        range
    }

    fn computed(&mut self, e: Expr) -> Option<Range> {
        if self.exprs.ty(e) != ScalarType::I32 {
            return None;
        }
        match self.exprs[e] {
            ExprDef::Const(n) => Some((n.as_i128(), n.as_i128())),
            ExprDef::Axis(k) => Some((0, (self.size)(self.domain[k as usize])? - 1)),
            ExprDef::Extent(dim) => (self.size)(dim).map(|n| (n, n)),
            ExprDef::Var(var, _) => self.vars.get(&var).copied(),
            ExprDef::Unary(UnaryOp::Neg, x) => self.of(x).map(|(lo, hi)| (-hi, -lo)),
            ExprDef::Binary(op, a, b) => self.binary(op, a, b),
            ExprDef::Select(cond, a, b) => match self.is_true(cond) {
                Some(true) => self.of(a),
                Some(false) => self.of(b),
                None => {
                    let (a, b) = (self.of(a)?, self.of(b)?);
                    Some((a.0.min(b.0), a.1.max(b.1)))
                }
            },
            _ => None,
        }
    }

    fn binary(&mut self, op: BinaryOp, a: Expr, b: Expr) -> Option<Range> {
        // Sums and products modulo 2^32 are the same if the result is small. Others need small operands.
        let (a, b) = match op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => (self.of(a)?, self.of(b)?),
            _ => (self.narrow(a)?, self.narrow(b)?),
        };
        let corners = |f: &dyn Fn(i128, i128) -> Option<i128>| {
            let all = [f(a.0, b.0)?, f(a.0, b.1)?, f(a.1, b.0)?, f(a.1, b.1)?];
            Some((*all.iter().min()?, *all.iter().max()?))
        };
        match op {
            BinaryOp::Add => corners(&i128::checked_add),
            BinaryOp::Sub => corners(&i128::checked_sub),
            BinaryOp::Mul => corners(&i128::checked_mul),
            BinaryOp::Min => Some((a.0.min(b.0), a.1.min(b.1))),
            BinaryOp::Max => Some((a.0.max(b.0), a.1.max(b.1))),
            BinaryOp::Div if b.0 > 0 => corners(&|x, y| Some(x / y)),
            BinaryOp::FloorDiv if b.0 > 0 => corners(&|x, y| Some(x.div_euclid(y))),
            BinaryOp::Rem | BinaryOp::Mod if a.0 >= 0 && b.0 > 0 => Some(match a.1 < b.0 {
                true => a,
                false => (0, a.1.min(b.1 - 1)),
            }),
            BinaryOp::Mod if b.0 > 0 => Some((0, b.1 - 1)),
            _ => None,
        }
    }

    /// Whether a condition has one value at all points.
    fn is_true(&mut self, cond: Expr) -> Option<bool> {
        let ExprDef::Compare(op, a, b) = self.exprs[cond] else {
            return None;
        };
        let (a, b) = (self.narrow(a)?, self.narrow(b)?);
        let (below, above) = (a.1 < b.0, a.0 >= b.1);
        match op {
            CompareOp::Lt => (below || above).then_some(below),
            CompareOp::Ge => (below || above).then_some(above),
            _ => None,
        }
    }
}

/// Whether an index is an axis of the same size, or a constant in bounds.
fn is_proved(program: &Program, exprs: &Exprs, domain: &[Dim], dim: Dim, e: Expr) -> bool {
    match exprs[e] {
        ExprDef::Axis(k) => domain[k as usize] == dim,
        ExprDef::Const(n) => program.surely_has(dim, n.as_i128()),
        _ => false,
    }
}

/// The variables that one loop counts, and nothing else sets.
fn counters(program: &Program) -> IndexSet<Var> {
    let mut sets: IndexMap<Var, (usize, bool)> = IndexMap::new();
    visit(&program.body, &mut |stmt| match stmt {
        Stmt::Set(var, _) => sets.entry(*var).or_default().0 += 1,
        Stmt::Loop { var, .. } => {
            let (n, counts) = sets.entry(*var).or_default();
            *n += 1;
            *counts = true;
        }
        _ => {}
    });
    let own = sets.into_iter().filter(|(_, set)| *set == (1, true));
    own.map(|(var, _)| var).collect()
}

/// Whether an index depends on nothing but sizes, axes and counters.
fn follows_sizes(exprs: &Exprs, counters: &IndexSet<Var>, e: Expr) -> bool {
    let mut follows = true;
    exprs.visit([e], &mut |x| match &exprs[x] {
        ExprDef::Load { .. } => follows = false,
        ExprDef::Var(var, _) => follows &= counters.contains(var),
        _ => {}
    });
    follows
}

/// The same program, which checks every index that is not proved to be in bounds.
pub fn checked(mut program: Program) -> Program {
    check(&mut program, &|_, _| false);
    program
}

/// Checks the accesses that promise to be in bounds, apart from those whose indices are all proved or believed. Those of the
/// host, which no promise covers, are checked too: passes move its loops to points.
fn check(program: &mut Program, is_believed: &dyn Fn(&Exprs, Expr) -> bool) {
    rewrite_fors(program, &mut |program, all, _| {
        let mut checks = Checks {
            domain: &all.domain,
            is_believed,
            done: LookupMap::default(),
        };
        visit_mut(&mut all.body, &mut |stmt| checks.stmt(program, stmt));
        true
    });
    let mut checks = Checks {
        domain: &[],
        is_believed: &|_, _| false,
        done: LookupMap::default(),
    };
    rewrite(program, &mut |program, mut stmt, out| {
        if !matches!(stmt, Stmt::For(_)) {
            checks.stmt(program, &mut stmt);
        }
        out.push(stmt);
        true
    });
}

/// What makes accesses checked.
struct Checks<'a> {
    domain: &'a [Dim],
    is_believed: &'a dyn Fn(&Exprs, Expr) -> bool,
    done: LookupMap<Expr, Expr>,
}

impl Checks<'_> {
    /// Checks the accesses that a statement names itself.
    fn stmt(&mut self, program: &mut Program, stmt: &mut Stmt) {
        let mut done = std::mem::take(&mut self.done);
        stmt.exprs_mut(&mut |e| {
            let mut exprs = std::mem::take(&mut program.exprs);
            *e = exprs.replace(*e, &mut done, &mut |exprs, def| {
                let &ExprDef::Load {
                    buffer,
                    ty,
                    ref index,
                    outside: Outside::Never,
                } = def
                else {
                    return None;
                };
                let outside = self.outside(program, exprs, (buffer, index), false)?;
                let index = index.clone();
                Some(exprs.add_as_is(ExprDef::Load {
                    buffer,
                    ty,
                    index,
                    outside,
                }))
            });
            program.exprs = exprs;
        });
        self.done = done;
        if let Stmt::Store(store) = stmt
            && store.outside == Outside::Never
        {
            let exprs = std::mem::take(&mut program.exprs);
            let checked = self.outside(program, &exprs, (store.target, &store.index), true);
            program.exprs = exprs;
            store.outside = checked.unwrap_or(Outside::Never);
        }
    }

    /// What an access checks, if it has to.
    fn outside(
        &self,
        program: &mut Program,
        exprs: &Exprs,
        (buffer, index): (Buffer, &[Expr]),
        is_store: bool,
    ) -> Option<Outside> {
        let mut all = index.iter().zip(&program.buffers[buffer].shape);
        let holds = all.all(|(&e, &dim)| {
            is_proved(program, exprs, self.domain, dim, e) || (self.is_believed)(exprs, e)
        });
        let site = SiteDef {
            buffer,
            is_store,
            from_end: Vec::new(),
            place: Place::NONE,
        };
        (!holds).then(|| Outside::Error(program.sites.push(site)))
    }
}
