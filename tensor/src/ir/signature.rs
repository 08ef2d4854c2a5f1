//! The signature of statements: numbers that are the same for the same statements, whatever ids their buffers, variables and
//! expressions have. Making one takes a small part of the time that copying the statements to a program of their own takes.
//!
//! Ids become numbers in the order of their first use, which is that of `slice`: the inputs of a signature are those of the
//! program.

use std::hash::{Hash, Hasher};

use aerogel_base::Scalar;
use aerogel_base::entity::PrimaryMap;
use aerogel_base::hash::LookupMap;

use super::expr::{Expr, ExprDef, Outside};
use super::ids::{Buffer, Dim, Site, Var};
use super::program::{DimDef, Program, Stmt};
use super::site::SiteDef;

/// Statements by what they do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signature {
    /// Equal numbers mean equal statements.
    pub(crate) words: Vec<u64>,
    /// The buffers, in the order of their ids in a program of these statements.
    pub(crate) buffers: Vec<Buffer>,
    /// Those of them that have values already.
    pub(crate) inputs: Vec<Buffer>,
    /// Those that they make.
    pub(crate) made: Vec<Buffer>,
    /// The checked accesses. They do not affect the words; they have the ids of the sliced program.
    pub(crate) sites: PrimaryMap<Site, SiteDef>,
}

/// The signature of some statements and of the results that are wanted of them.
pub(crate) fn signature(
    program: &Program,
    statements: &[u32],
    is_there: impl Fn(Buffer) -> bool,
    roots: &[Buffer],
) -> Signature {
    let mut signer = Signer {
        program,
        is_there,
        out: Signature::default(),
        // About as many as there are after element-wise operations.
        buffers: LookupMap::with_capacity(2 * statements.len()),
        exprs: LookupMap::with_capacity(6 * statements.len()),
        vars: LookupMap::default(),
        sites: LookupMap::default(),
    };
    signer.out.words.reserve(32 * statements.len());
    for &at in statements {
        signer.stmt(&program.body[at as usize]);
    }
    for &root in roots {
        let root = signer.buffer(root);
        signer.word(root);
    }
    signer.out
}

/// The upper half of a word says what the lower half is. Words below 2^32 are plain numbers.
#[derive(Clone, Copy)]
enum Tag {
    Buffer = 1,
    For,
    Store,
    Set,
    Loop,
    If,
    Break,
    Continue,
    Call,
    End,
    Const,
    Axis,
    Var,
    Extent,
    Load,
    Unary,
    Binary,
    Compare,
    Select,
    Cast,
    Bitcast,
}

struct Signer<'p, F> {
    program: &'p Program,
    is_there: F,
    out: Signature,
    buffers: LookupMap<Buffer, u32>,
    exprs: LookupMap<Expr, u32>,
    vars: LookupMap<Var, u32>,
    sites: LookupMap<Site, u32>,
}

impl<F: Fn(Buffer) -> bool> Signer<'_, F> {
    fn word(&mut self, n: u32) {
        self.out.words.push(n.into());
    }

    fn tag(&mut self, tag: Tag, detail: u32) {
        self.out
            .words
            .push(((tag as u64) << 32) | u64::from(detail));
    }

    fn plain(&mut self, what: &impl Hash) {
        what.hash(&mut Words(&mut self.out.words));
    }

    fn buffer(&mut self, buffer: Buffer) -> u32 {
        if let Some(&known) = self.buffers.get(&buffer) {
            return known;
        }
        let def = &self.program.buffers[buffer];
        let is_input = (self.is_there)(buffer);
        self.tag(Tag::Buffer, def.ty as u32);
        self.word(u32::from(is_input));
        self.word(def.shape.len() as u32);
        def.shape.iter().for_each(|&dim| self.dim(dim));
        let new = self.out.buffers.len() as u32;
        self.out.buffers.push(buffer);
        match is_input {
            true => self.out.inputs.push(buffer),
            false => self.out.made.push(buffer),
        }
        self.buffers.insert(buffer, new);
        new
    }

    fn dim(&mut self, dim: Dim) {
        match *self.program.dim_def(dim) {
            DimDef::Const(n) => self.out.words.push(n),
            DimDef::Input(..) | DimDef::Value(_) | DimDef::Number(_) => {
                unreachable!("sizes outside of programs are numbers")
            }
        }
    }

    fn var(&mut self, var: Var) -> u32 {
        let next = self.vars.len() as u32;
        match self.vars.get(&var) {
            Some(&known) => known,
            None => {
                self.vars.insert(var, next);
                next
            }
        }
    }

    fn outside(&mut self, outside: Outside, buffer: u32) {
        let number = match outside {
            Outside::Never => 0,
            Outside::Clamp => 1,
            Outside::Wrap => 2,
            Outside::Zero => 3,
            Outside::Error(site) => 4 + self.site(site, buffer),
        };
        self.word(number);
    }

    fn site(&mut self, site: Site, buffer: u32) -> u32 {
        if let Some(&known) = self.sites.get(&site) {
            return known;
        }
        let new = self.out.sites.push(SiteDef {
            buffer: Buffer::from_u32(buffer),
            ..self.program.sites[site].clone()
        });
        self.sites.insert(site, new.as_u32());
        new.as_u32()
    }

    fn scalar(&mut self, value: Scalar) {
        self.tag(Tag::Const, value.ty() as u32);
        self.out.words.push(value.slot());
    }

    /// The number of an expression, whose definition is written where it occurs first.
    fn expr(&mut self, e: Expr) -> u32 {
        if let Some(&known) = self.exprs.get(&e) {
            return known;
        }
        let def = &self.program.exprs[e];
        let mut operands = [0; 3];
        if !matches!(def, ExprDef::Load { .. }) {
            let mut n = 0;
            def.operands(|x| {
                operands[n] = self.expr(x);
                n += 1;
            });
        }
        match *def {
            ExprDef::Const(value) => self.scalar(value),
            ExprDef::Axis(axis) => self.tag(Tag::Axis, axis),
            ExprDef::Var(var, ty) => {
                let var = self.var(var);
                self.tag(Tag::Var, var);
                self.word(ty as u32);
            }
            ExprDef::Extent(dim) => {
                self.tag(Tag::Extent, 0);
                self.dim(dim);
            }
            ExprDef::Load {
                buffer,
                ref index,
                outside,
                ..
            } => {
                let index: Vec<u32> = index.iter().map(|&x| self.expr(x)).collect();
                let buffer = self.buffer(buffer);
                self.tag(Tag::Load, buffer);
                index.into_iter().for_each(|x| self.word(x));
                self.outside(outside, buffer);
            }
            ExprDef::Unary(op, _) => self.operation(Tag::Unary, op as u32, &operands[..1]),
            ExprDef::Binary(op, ..) => self.operation(Tag::Binary, op as u32, &operands[..2]),
            ExprDef::Compare(op, ..) => self.operation(Tag::Compare, op as u32, &operands[..2]),
            ExprDef::Select(..) => self.operation(Tag::Select, 0, &operands),
            ExprDef::Cast(_, ty) => self.operation(Tag::Cast, ty as u32, &operands[..1]),
            ExprDef::Bitcast(_, ty) => self.operation(Tag::Bitcast, ty as u32, &operands[..1]),
        }
        let new = self.exprs.len() as u32;
        self.exprs.insert(e, new);
        new
    }

    fn operation(&mut self, tag: Tag, op: u32, operands: &[u32]) {
        self.tag(tag, op);
        operands.iter().for_each(|&x| self.word(x));
    }

    fn body(&mut self, body: &[Stmt]) {
        body.iter().for_each(|stmt| self.stmt(stmt));
        self.tag(Tag::End, 0);
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::For(all) => {
                self.tag(Tag::For, all.domain.len() as u32);
                all.domain.iter().for_each(|&dim| self.dim(dim));
                let cells = all.cells.map_or(0, |b| 1 + self.buffer(b));
                self.word(cells);
                self.plain(&all.span);
                self.body(&all.body);
            }
            Stmt::Store(store) => {
                let index: Vec<u32> = store.index.iter().map(|&e| self.expr(e)).collect();
                let value = self.expr(store.value);
                let target = self.buffer(store.target);
                self.tag(Tag::Store, target);
                index.into_iter().for_each(|e| self.word(e));
                self.word(value);
                let accum = store.accum.map_or(0, |accum| 1 + accum as u32);
                self.word(2 * accum + u32::from(store.init));
                self.outside(store.outside, target);
            }
            Stmt::Set(var, e) => {
                let e = self.expr(*e);
                let var = self.var(*var);
                self.tag(Tag::Set, var);
                self.word(e);
            }
            Stmt::Loop {
                var,
                lo,
                hi,
                step,
                body,
            } => {
                let [lo, hi] = [*lo, *hi].map(|e| self.expr(e));
                let var = self.var(*var);
                self.operation(Tag::Loop, var, &[lo, hi, *step as u32]);
                self.body(body);
            }
            Stmt::If(cond, then, otherwise) => {
                let cond = self.expr(*cond);
                self.tag(Tag::If, cond);
                self.body(then);
                self.body(otherwise);
            }
            Stmt::Break => self.tag(Tag::Break, 0),
            Stmt::Continue => self.tag(Tag::Continue, 0),
            Stmt::Call(call) => {
                let inputs: Vec<u32> = call.inputs.iter().map(|&b| self.buffer(b)).collect();
                let outputs: Vec<u32> = call.outputs.iter().map(|&b| self.buffer(b)).collect();
                self.tag(Tag::Call, inputs.len() as u32);
                self.plain(&call.library);
                self.plain(&call.span);
                inputs.into_iter().for_each(|b| self.word(b));
                self.word(outputs.len() as u32);
                outputs.into_iter().for_each(|b| self.word(b));
            }
            Stmt::Run(_) => unreachable!("kernels of the user's are statements of programs"),
            Stmt::Clear(_) => unreachable!("passes make it"),
        }
    }
}

/// Takes what has no ids by the numbers that a hash is made of, which tell unequal values of one type apart.
struct Words<'w>(&'w mut Vec<u64>);

impl Hasher for Words<'_> {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend(bytes.iter().map(|&byte| u64::from(byte)));
    }

    fn finish(&self) -> u64 {
        unreachable!("the hash is not used")
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Makers, Role, parse, slice};
    use super::*;

    const SUMS: &str = r#"
        in b0 "x": f32[4, 8]
        in b1 "y": f32[8]
        tmp b2 "z": f32[4, 8]
        tmp b3 "s": f32[4]
        site s0 = load b1
        for [4, 8] { b2[i0, i1] = add(mul(b0[i0, i1], f32(3.0)), b1[i1] error s0) }
        for [4] { b3[i0] add init = b2[i0, i32(2)] }
        result b3
    "#;

    fn of(text: &str) -> Signature {
        let program = parse(text).unwrap();
        let is_input = |b: Buffer| matches!(program.buffers[b].role, Role::Input(_));
        let all: Vec<u32> = (0..program.body.len() as u32).collect();
        let signature = signature(&program, &all, is_input, &program.results);
        let mut makers = Makers::default();
        makers.update(&program);
        let sliced = slice(&program, &makers, is_input, &program.results, false);
        assert_eq!(sliced.inputs, signature.inputs, "{text}");
        let sites = sliced.program.sites.values();
        assert!(sites.eq(signature.sites.values()), "{text}");
        signature
    }

    #[test]
    fn ids_do_not_matter() {
        let renumbered = r#"
            tmp b0 "s": f32[4]
            in b1 "unused": f64[3]
            tmp b2 "z": f32[4, 8]
            in b3 "x": f32[4, 8]
            in b4 "y": f32[8]
            site s0 = load b1
            site s1 = load b4
            for [4, 8] { b2[i0, i1] = add(mul(b3[i0, i1], f32(3.0)), b4[i1] error s1) }
            for [4] { b0[i0] add init = b2[i0, i32(2)] }
            result b0
        "#;
        let [a, b] = [SUMS, renumbered].map(of);
        assert_eq!(a.words, b.words);
        assert_eq!([a.inputs.len(), a.made.len(), a.sites.len()], [2, 2, 1]);
    }

    #[test]
    fn everything_else_does() {
        let words = of(SUMS).words;
        let changes = [
            ("f32(3.0)", "f32(3.5)"),
            ("f32(3.0)", "f32(-3.0)"),
            ("add(mul", "sub(mul"),
            ("i32(2)", "i32(3)"),
            ("add init", "max init"),
            ("b1[i1] error s0", "b1[i1]"),
            ("b1[i1] error s0", "b1[i1] clamp"),
            ("b1[i1] error s0", "b1[i0] error s0"),
            ("mul(b0[i0, i1], f32(3.0))", "mul(b0[i0, i1], b0[i0, i1])"),
            ("result b3", "result b3\n        result b2"),
            ("result b3", "result b2"),
            (
                "b3[i0] add init = b2[i0, i32(2)]",
                "b3[i0] = b2[i0, i32(2)]",
            ),
            ("in b1 \"y\": f32[8]", "in b1 \"y\": f32[9]"),
            ("for [4] {", "for [3] {"),
        ];
        for (from, to) in changes {
            let changed = SUMS.replace(from, to);
            assert_ne!(changed, SUMS);
            assert_ne!(of(&changed).words, words, "{from} -> {to}");
        }
        let wider = SUMS.replace("f32", "f64");
        assert_ne!(of(&wider).words, words);
    }
}
