//! Programs as text, which parses to the same program.

use std::fmt::{self, Write};

use indexmap::{IndexMap, IndexSet};

use super::expr::{Expr, ExprDef, Outside, deep};
use super::ids::{Buffer, Dim};
use super::library::Call;
use super::program::{DimDef, Program, Role, Stmt, Store};
use super::slice::targets;

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text_in_regions(&|_| None))
    }
}

impl Program {
    /// The text, where comments say which region statements are in: that of the first buffer that they store to.
    pub fn text_in_regions(&self, region: &dyn Fn(Buffer) -> Option<String>) -> String {
        let mut printer = Printer {
            program: self,
            out: String::new(),
            named: IndexMap::new(),
            of_extents: IndexMap::new(),
            shared: shared_in_extents(self),
            n_names: 0,
            indent: 0,
            region,
            last_region: None,
        };
        printer.program();
        printer.out
    }

    /// A size as text that is the same in each program: inputs by number, and each shared subexpression once.
    pub fn dim_key(&self, dim: Dim) -> String {
        let program = self;
        let mut named: IndexMap<Expr, usize> = IndexMap::new();
        let of_dim = |dim: Dim, named: &IndexMap<Expr, usize>| match program.dim_def(dim) {
            DimDef::Const(n) => n.to_string(),
            DimDef::Input(buffer, axis) => {
                let number = program.inputs().position(|b| b == *buffer);
                format!("input {number:?}, axis {axis}")
            }
            DimDef::Value(e) => format!("%{}", named[e]),
            DimDef::Number(e) => format!("number %{}", named[e]),
        };
        let mut out = String::new();
        for e in in_extents(program, [dim], |_| false) {
            let text = match &program.exprs[e] {
                ExprDef::Extent(dim) => of_dim(*dim, &named),
                // Operands are before it.
                def => {
                    let def = def.map_operands(|x| Expr::from_u32(named[&x] as u32));
                    format!("{def:?}")
                }
            };
            let _ = writeln!(out, "{text}");
            let number = named.len();
            named.insert(e, number);
        }
        out + &of_dim(dim, &named)
    }
}

fn names(buffers: &[Buffer]) -> String {
    let names = buffers.iter().map(Buffer::to_string);
    names.collect::<Vec<_>>().join(", ")
}

/// The expression that computes a size, if `e` is a size.
fn inside_extent(program: &Program, e: Expr) -> Option<Expr> {
    match program.exprs[e] {
        ExprDef::Extent(dim) => program.dim_def(dim).expr(),
        _ => None,
    }
}

/// The expressions that compute sizes, operands first, down to known values.
fn in_extents(
    program: &Program,
    dims: impl IntoIterator<Item = Dim>,
    is_known: impl Fn(Expr) -> bool,
) -> IndexSet<Expr> {
    let mut found = IndexSet::new();
    let roots = dims.into_iter().filter_map(|d| program.dim_def(d).expr());
    let mut stack: Vec<_> = roots.map(|e| (e, false)).collect();
    let mut seen = IndexSet::new();
    while let Some((e, ready)) = stack.pop() {
        if ready {
            found.insert(e);
        } else if !is_known(e) && seen.insert(e) {
            stack.push((e, true));
            program.exprs[e].operands(|x| stack.push((x, false)));
            stack.extend(inside_extent(program, e).map(|x| (x, false)));
        }
    }
    found
}

/// Subexpressions that sizes use more than once: written out each time, the text could grow exponentially.
fn shared_in_extents(program: &Program) -> IndexSet<Expr> {
    let all = (0..program.dims.len() as u32).map(Dim::from_u32);
    let mut uses: IndexMap<Expr, usize> = IndexMap::new();
    let found = in_extents(program, all.clone(), |_| false);
    // Where each size itself is used.
    for e in all.filter_map(|d| program.dim_def(d).expr()) {
        *uses.entry(e).or_default() += 1;
    }
    for &e in &found {
        program.exprs[e].operands(|x| *uses.entry(x).or_default() += 1);
        if let Some(x) = inside_extent(program, e) {
            *uses.entry(x).or_default() += 1;
        }
    }
    let often = found.into_iter().filter(|e| {
        let mut is_leaf = inside_extent(program, *e).is_none();
        program.exprs[*e].operands(|_| is_leaf = false);
        !is_leaf && uses.get(e).is_some_and(|&n| n > 1)
    });
    often.collect()
}

struct Printer<'p> {
    program: &'p Program,
    out: String,
    /// Subexpressions that the current statement uses several times, by name.
    named: IndexMap<Expr, usize>,
    /// The same for sizes, from the first use to the end.
    of_extents: IndexMap<Expr, usize>,
    /// The subexpressions of sizes that get a name.
    shared: IndexSet<Expr>,
    n_names: usize,
    indent: usize,
    region: &'p dyn Fn(Buffer) -> Option<String>,
    last_region: Option<String>,
}

impl Printer<'_> {
    fn program(&mut self) {
        for (var, ty) in self.program.vars.iter() {
            self.line(&format!("var {var}: {ty}"));
        }
        for (id, tree) in self.program.trees.iter() {
            self.line(&format!("{id} {{ {tree} }}"));
        }
        for (id, region) in self.program.regions.iter() {
            let arrays = region.writes.iter();
            let arrays = arrays.map(|&w| if w { "out" } else { "in" });
            let arrays = arrays.collect::<Vec<_>>().join(", ");
            let trees = region.trees.iter().map(|tree| format!(" {tree}"));
            let trees = trees.collect::<String>();
            self.line(&format!("region {id} {:?} ({arrays}){trees}", region.name));
        }
        for (buffer, def) in self.program.buffers.iter() {
            let role = match def.role {
                Role::Input(_) => "in",
                Role::Temporary | Role::Scratch(..) => "tmp",
                Role::Field(..) => "field",
            };
            let place = self.program.place(buffer);
            let place = place.map_or_else(String::new, |(tree, node)| format!(" = {tree}.{node}"));
            self.name_extents(def.shape.iter().copied());
            let shape = def.shape.iter().enumerate().map(|(axis, &dim)| {
                let own = *self.program.dim_def(dim) == DimDef::Input(buffer, axis as u32);
                if own { "?".to_owned() } else { self.dim(dim) }
            });
            let shape = shape.collect::<Vec<_>>().join(", ");
            let line = format!("{role} {buffer} {:?}: {}[{shape}]{place}", def.name, def.ty);
            self.line(&line);
        }
        for (site, def) in self.program.sites.iter() {
            let access = if def.is_store { "store" } else { "load" };
            let axes = def.from_end.iter().map(u32::to_string);
            let from_end = match &axes.collect::<Vec<_>>()[..] {
                [] => String::new(),
                axes => format!(" from_end({})", axes.join(", ")),
            };
            self.line(&format!("site {site} = {access} {}{from_end}", def.buffer));
        }
        for agreement in &self.program.agreements {
            self.name_extents([agreement.left, agreement.right]);
            let [left, right] = [agreement.left, agreement.right].map(|d| self.dim(d));
            self.line(&format!("agree {left} = {right} {:?}", agreement.message));
        }
        self.block(&self.program.body);
        for &result in &self.program.results {
            self.line(&format!("result {result}"));
        }
    }

    fn line(&mut self, text: &str) {
        let indent = 2 * self.indent;
        let _ = writeln!(self.out, "{:indent$}{text}", "");
    }

    fn nested(&mut self, head: &str, body: &[Stmt]) {
        self.line(&format!("{head} {{"));
        self.indent += 1;
        self.block(body);
        self.indent -= 1;
    }

    fn block(&mut self, body: &[Stmt]) {
        for stmt in body {
            self.name_region(stmt);
            self.stmt(stmt);
        }
    }

    /// Says in which region a statement is, if it is in another than the one before.
    fn name_region(&mut self, stmt: &Stmt) {
        let mut target = None;
        targets(stmt, &mut |b| target = target.or(Some(b)));
        let Some(target) = target.filter(|_| !matches!(stmt, Stmt::Store(_))) else {
            return;
        };
        let region = (self.region)(target);
        if region != self.last_region {
            self.line(&format!(
                "; {}",
                region.as_deref().unwrap_or("outside of regions")
            ));
            self.last_region = region;
        }
    }

    /// Names the subexpressions that sizes share.
    fn name_extents(&mut self, dims: impl IntoIterator<Item = Dim>) {
        if self.shared.is_empty() {
            return;
        }
        let known = &self.of_extents;
        for e in in_extents(self.program, dims, |e| known.contains_key(&e)) {
            if self.shared.contains(&e) {
                let name = self.name(e);
                self.of_extents.insert(e, name);
            }
        }
    }

    /// Writes a line that gives an expression a name.
    fn name(&mut self, e: Expr) -> usize {
        let text = self.def(e);
        let name = self.n_names;
        self.line(&format!("%{name} = {text}"));
        self.n_names += 1;
        name
    }

    /// Names what a statement uses several times.
    fn name_shared(&mut self, stmt: &Stmt) {
        self.named.clear();
        let mut roots = Vec::new();
        stmt.exprs(|e| roots.push(e));
        let mut dims = match stmt {
            Stmt::For(all) => all.domain.clone(),
            _ => Vec::new(),
        };
        self.program.exprs.visit(roots.iter().copied(), &mut |e| {
            if let ExprDef::Extent(dim) = self.program.exprs[e] {
                dims.push(dim);
            }
        });
        self.name_extents(dims);
        let mut uses: IndexMap<Expr, usize> = IndexMap::new();
        for &root in &roots {
            *uses.entry(root).or_default() += 1;
        }
        let mut order = Vec::new();
        let exprs = &self.program.exprs;
        exprs.visit(roots, &mut |e| {
            order.push(e);
            exprs[e].operands(|x| *uses.entry(x).or_default() += 1);
        });
        for e in order {
            let mut is_leaf = true;
            exprs[e].operands(|_| is_leaf = false);
            if uses[&e] > 1 && !is_leaf && !self.of_extents.contains_key(&e) {
                let name = self.name(e);
                self.named.insert(e, name);
            }
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        self.name_shared(stmt);
        match stmt {
            Stmt::For(all) => {
                let domain = all.domain.iter().map(|&d| self.dim(d));
                let domain = domain.collect::<Vec<_>>().join(", ");
                let head = match all.cells {
                    None => format!("for [{domain}]"),
                    Some(field) => format!("for cells {field} [{domain}]"),
                };
                self.nested(&head, &all.body);
                self.line("}");
            }
            Stmt::Store(store) => {
                let text = self.store(store);
                self.line(&text);
            }
            Stmt::Set(var, e) => {
                let text = format!("{var} = {}", self.expr(*e));
                self.line(&text);
            }
            Stmt::Loop {
                var,
                lo,
                hi,
                step,
                body,
            } => {
                let [lo, hi] = [self.expr(*lo), self.expr(*hi)];
                self.nested(&format!("loop {var} in {lo}, {hi}, {step}"), body);
                self.line("}");
            }
            Stmt::If(cond, then, otherwise) => {
                let cond = self.expr(*cond);
                self.nested(&format!("if {cond}"), then);
                if !otherwise.is_empty() {
                    self.nested("} else", otherwise);
                }
                self.line("}");
            }
            Stmt::Break => self.line("break"),
            Stmt::Continue => self.line("continue"),
            Stmt::Call(call) => {
                let text = self.call(call);
                self.line(&text);
            }
            Stmt::Run(run) => {
                let [results, arrays] = [&run.results, &run.arrays].map(|b| names(b));
                self.line(&format!("run {}({results}) = ({arrays})", run.region));
            }
            Stmt::Clear(buffer) => self.line(&format!("clear {buffer}")),
        }
    }

    fn store(&self, store: &Store) -> String {
        let place = self.element(store.target, &store.index, store.outside);
        let accum = store.accum.map_or(String::new(), |a| format!(" {a}"));
        let init = if store.init { " init" } else { "" };
        format!("{place}{accum}{init} = {}", self.expr(store.value))
    }

    fn call(&self, call: &Call) -> String {
        let name = call.library.name();
        format!(
            "call {name}({}) = ({})",
            names(&call.outputs),
            names(&call.inputs)
        )
    }

    fn dim(&self, dim: Dim) -> String {
        match self.program.dim_def(dim) {
            DimDef::Const(n) => n.to_string(),
            DimDef::Input(buffer, axis) => format!("{buffer}:{axis}"),
            DimDef::Value(e) => format!("({})", self.expr(*e)),
            DimDef::Number(e) => format!("number ({})", self.expr(*e)),
        }
    }

    fn element(&self, buffer: Buffer, index: &[Expr], outside: Outside) -> String {
        let index = index.iter().map(|&e| self.expr(e)).collect::<Vec<_>>();
        let outside = match outside {
            Outside::Never => String::new(),
            Outside::Clamp => " clamp".to_owned(),
            Outside::Wrap => " wrap".to_owned(),
            Outside::Zero => " zero".to_owned(),
            Outside::Error(site) => format!(" error {site}"),
        };
        format!("{buffer}[{}]{outside}", index.join(", "))
    }

    fn expr(&self, e: Expr) -> String {
        match self.named.get(&e).or(self.of_extents.get(&e)) {
            Some(name) => format!("%{name}"),
            None => deep(|| self.def(e)),
        }
    }

    fn def(&self, e: Expr) -> String {
        let list = |all: &[Expr]| {
            let all = all.iter().map(|&x| self.expr(x));
            all.collect::<Vec<_>>().join(", ")
        };
        match &self.program.exprs[e] {
            ExprDef::Const(value) => format!("{}({value})", value.ty()),
            ExprDef::Axis(k) => format!("i{k}"),
            ExprDef::Var(var, _) => var.to_string(),
            ExprDef::Extent(dim) => format!("extent({})", self.dim(*dim)),
            ExprDef::Load {
                buffer,
                index,
                outside,
                ..
            } => self.element(*buffer, index, *outside),
            ExprDef::Unary(op, x) => format!("{op}({})", list(&[*x])),
            ExprDef::Binary(op, a, b) => format!("{op}({})", list(&[*a, *b])),
            ExprDef::Compare(op, a, b) => format!("{op}({})", list(&[*a, *b])),
            ExprDef::Select(c, a, b) => format!("select({})", list(&[*c, *a, *b])),
            ExprDef::Cast(x, ty) => format!("cast.{ty}({})", list(&[*x])),
            ExprDef::Bitcast(x, ty) => format!("bitcast.{ty}({})", list(&[*x])),
        }
    }
}
