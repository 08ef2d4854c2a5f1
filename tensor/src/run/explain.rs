//! Explanation of a compiled program: which statements share a kernel, which temporaries are materialised, and why.

use std::fmt::Write;

use aerogel_base::ScalarType;
use aerogel_ir::BinaryOp;
use indexmap::{IndexMap, IndexSet};

use super::plan::Plan;
use super::segments;
use crate::ir::{Buffer, Dim, DimDef, Expr, ExprDef, Kept, Library, Program, Role, Stmt, Touched};
use crate::passes::{self, Options};

/// The result of the passes on a program, as text.
///
/// ```text
/// 5 statements became 2 kernels; 1 of 4 temporaries is materialised
/// kernel 0 over [1000]: t3, t5
///   t3: f32[1000], materialised: it is a result
/// computed where they are read: t1, t2
/// ```
pub fn explain(before: &Program, options: Options) -> String {
    let mut after = before.clone();
    passes::run(&mut after, options, &mut |_, _, _| {});
    explained(before, &after)
}

/// The same of a program whose plan is made.
pub fn of_plan(before: &Program, plan: &Plan) -> String {
    explained(before, plan.program())
}

fn explained(before: &Program, after: &Program) -> String {
    let written = |p: &Program| -> IndexSet<Buffer> {
        let touched = Touched::by(p, &p.body);
        let writes = touched.writes.into_iter();
        writes.filter(|&b| p.is_made_here(b)).collect()
    };
    let (made, kept) = (written(before), written(after));
    let mut steps = Steps::default();
    steps.block(after, &after.body, 0);
    let statements = count(&before.body);
    let n_kept = kept.iter().filter(|b| made.contains(*b)).count();
    let mut out = format!(
        "{statements} {} became {} {}{}; {n_kept} of {} temporaries {} materialised\n",
        plural(statements, "statement"),
        steps.n_kernels,
        plural(steps.n_kernels, "kernel"),
        match steps.n_calls {
            0 => String::new(),
            n => format!(" and {n} {}", plural(n, "library call")),
        },
        made.len(),
        if n_kept == 1 { "is" } else { "are" },
    );
    for (line, targets) in &steps.lines {
        let _ = writeln!(out, "{line}");
        for &target in targets {
            let _ = writeln!(out, "    {}", temporary(after, target));
        }
    }
    let gone: Vec<String> = made
        .iter()
        .filter(|b| !kept.contains(*b))
        .map(|&b| before.buffers[b].name.clone())
        .collect();
    if !gone.is_empty() {
        let _ = writeln!(out, "computed where they are read: {}", gone.join(", "));
    }
    for (&buffer, how) in &after.products {
        let _ = writeln!(out, "{}: {how}", name(after, buffer));
    }
    for saving in segments::of(after).values() {
        let names = saving.names(after);
        let _ = writeln!(
            out,
            "in segments if its states exceed ti.init(ad_memory=...): the loop that saves {names}"
        );
    }
    let own: Vec<String> = kept
        .iter()
        .filter(|b| !made.contains(*b))
        .map(|&b| after.buffers[b].name.clone())
        .collect();
    if !own.is_empty() {
        let _ = writeln!(out, "added by passes: {}", own.join(", "));
    }
    out
}

fn plural(n: usize, what: &str) -> String {
    format!("{what}{}", if n == 1 { "" } else { "s" })
}

fn count(body: &[Stmt]) -> usize {
    let inside = |s: &Stmt| s.inside().iter().map(|b| count(b)).sum::<usize>();
    let own = |s: &Stmt| match s {
        Stmt::For(_) | Stmt::Call(_) => 1,
        other => inside(other),
    };
    body.iter().map(own).sum()
}

/// The steps of the host, a line for each, and the temporaries that each computes.
#[derive(Default)]
struct Steps {
    lines: Vec<(String, Vec<Buffer>)>,
    n_kernels: usize,
    n_calls: usize,
    seen: IndexMap<Buffer, ()>,
}

impl Steps {
    fn new_targets(&mut self, program: &Program, stmt: &Stmt) -> Vec<Buffer> {
        let touched = Touched::by(program, std::slice::from_ref(stmt));
        let temporary = |b: &Buffer| program.is_made_here(*b);
        let new = touched.writes.into_iter().filter(temporary);
        new.filter(|&b| self.seen.insert(b, ()).is_none()).collect()
    }

    fn block(&mut self, program: &Program, body: &[Stmt], depth: usize) {
        let indent = "  ".repeat(depth);
        for stmt in body {
            match stmt {
                Stmt::For(all) => {
                    let domain: Vec<String> =
                        all.domain.iter().map(|&d| program.dim_text(d)).collect();
                    let stores = Touched::by(program, &all.body).writes;
                    let names: Vec<&str> = stores.iter().map(|&b| name(program, b)).collect();
                    let cells = all
                        .cells
                        .map(|b| format!("the cells of {}, ", name(program, b)));
                    let line = format!(
                        "{indent}kernel {} over {}[{}]: {}",
                        self.n_kernels,
                        cells.unwrap_or_default(),
                        domain.join(", "),
                        names.join(", ")
                    );
                    self.n_kernels += 1;
                    let targets = self.new_targets(program, stmt);
                    self.lines.push((line, targets));
                }
                Stmt::Call(call) => {
                    let what = match call.library {
                        Library::MatMul => "matrix product".to_owned(),
                        Library::MatMulRows => "a block of rows of a matrix product".to_owned(),
                        Library::Sort { .. } => "sort".to_owned(),
                        Library::Push => "save for the backward pass".to_owned(),
                        Library::Pop => "restore for the backward pass".to_owned(),
                        Library::Algebra(op) => op.to_string(),
                        Library::Transform(op) => op.to_string(),
                    };
                    self.n_calls += 1;
                    let targets = self.new_targets(program, stmt);
                    self.lines
                        .push((format!("{indent}library: {what}"), targets));
                }
                Stmt::Run(run) => {
                    let line = format!("{indent}kernel `{}`", program.regions[run.region].name);
                    let targets = self.new_targets(program, stmt);
                    self.lines.push((line, targets));
                }
                Stmt::Loop { body, .. } => {
                    self.lines
                        .push((format!("{indent}loop of the host:"), Vec::new()));
                    self.block(program, body, depth + 1);
                }
                Stmt::If(_, then, otherwise) => {
                    self.lines
                        .push((format!("{indent}branch of the host:"), Vec::new()));
                    self.block(program, then, depth + 1);
                    self.block(program, otherwise, depth + 1);
                }
                Stmt::Set(..) | Stmt::Store(_) | Stmt::Break | Stmt::Continue | Stmt::Clear(_) => {}
            }
        }
    }
}

fn name(program: &Program, buffer: Buffer) -> &str {
    &program.buffers[buffer].name
}

impl Program {
    /// A size for messages.
    pub fn dim_text(&self, dim: Dim) -> String {
        match *self.dim_def(dim) {
            DimDef::Const(n) => n.to_string(),
            DimDef::Input(buffer, axis) => format!("{}.shape[{axis}]", name(self, buffer)),
            DimDef::Value(e) | DimDef::Number(e) => number(self, e, DEEPEST),
        }
    }
}

fn temporary(program: &Program, buffer: Buffer) -> String {
    let def = &program.buffers[buffer];
    let shape: Vec<String> = def.shape.iter().map(|&d| program.dim_text(d)).collect();
    let ty: ScalarType = def.ty;
    let why = match program.kept.get(&buffer) {
        Some(why) => why.to_string(),
        None if program.results.contains(&buffer) => Kept::Result.to_string(),
        None => "a kernel writes it, and another one reads it".to_owned(),
    };
    let cells = match def.role {
        Role::Scratch(..) => " at active cells",
        _ => "",
    };
    format!(
        "{}: {ty}[{}]{cells}, materialised: {why}",
        def.name,
        shape.join(", ")
    )
}

/// So deep a number is written out: one that each is made of twice doubles with each of them.
const DEEPEST: u32 = 6;

/// An expression of sizes, in Python's syntax.
fn number(program: &Program, e: Expr, depth: u32) -> String {
    let text = |e: Expr| number(program, e, depth - 1);
    match program.exprs[e] {
        ExprDef::Const(value) => value.to_string(),
        ExprDef::Extent(d) => match *program.dim_def(d) {
            DimDef::Value(e) | DimDef::Number(e) => number(program, e, depth),
            _ => program.dim_text(d),
        },
        _ if depth == 0 => "..".to_owned(),
        ExprDef::Cast(x, ty) if program.exprs.ty(x).is_float() || ty.is_float() => {
            format!("{ty}({})", text(x))
        }
        ExprDef::Cast(x, _) | ExprDef::Bitcast(x, _) => text(x),
        ExprDef::Unary(op, x) => format!("{op}({})", text(x)),
        ExprDef::Binary(op, a, b) => {
            let sign = match op {
                BinaryOp::Add => "+",
                BinaryOp::Sub => "-",
                BinaryOp::Mul => "*",
                BinaryOp::FloorDiv => "//",
                BinaryOp::Div => "/",
                BinaryOp::Mod | BinaryOp::Rem => "%",
                _ => return format!("{op}({}, {})", text(a), text(b)),
            };
            match program.exprs.as_const(b) {
                Some(c) if op == BinaryOp::Add && c.ty().is_int() && c.as_i128() < 0 => {
                    format!("({} - {})", text(a), -c.as_i128())
                }
                _ => format!("({} {sign} {})", text(a), text(b)),
            }
        }
        ExprDef::Compare(op, a, b) => format!("{op}({}, {})", text(a), text(b)),
        ExprDef::Select(c, a, b) => format!("select({}, {}, {})", text(c), text(a), text(b)),
        ExprDef::Axis(_) | ExprDef::Var(..) | ExprDef::Load { .. } => "?".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_chain_is_one_kernel() {
        let text = "
            in b0 \"x\": f32[?]
            tmp b1 \"t1\": f32[b0:0]
            tmp b2 \"t2\": f32[b0:0]
            tmp b3 \"t3\": f32[]
            for [b0:0] { b1[i0] = mul(b0[i0], b0[i0]) }
            for [b0:0] { b2[i0] = add(b1[i0], b0[i0]) }
            for [b0:0] { b3[] add init = b2[i0] }
            result b2
            result b3";
        let program = crate::ir::parse(text).unwrap_or_else(|e| panic!("{e}"));
        insta::assert_snapshot!(super::explain(&program, super::Options::default()), @r"
        3 statements became 3 kernels; 2 of 3 temporaries are materialised
        kernel 0 over [x.shape[0]]: t2
            t2: f32[x.shape[0]], materialised: it is a result
        kernel 1 over [64]: t4
            t4: f32[64], materialised: a kernel writes it, and another one reads it
        kernel 2 over []: t3
            t3: f32[], materialised: it is a result
        computed where they are read: t1
        added by passes: t4
        ");
    }
}
