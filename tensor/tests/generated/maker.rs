//! Programs that are made up.

use aerogel_base::{Scalar, ScalarType, Span};
use aerogel_ir::{BinaryOp, CompareOp, UnaryOp, eval};
use aerogel_tensor::{Accum, Buffer, Dim, DimDef, Expr, For, Outside, Program, Stmt, Store};

pub(crate) struct Maker {
    pub(crate) state: u64,
    pub(crate) program: Program,
    /// What can be loaded.
    pub(crate) readable: Vec<Buffer>,
    /// What is changed more than once.
    pub(crate) memory: Vec<Buffer>,
    pub(crate) dims: Vec<Dim>,
}

/// So many values are added up in parts.
const LONG: u64 = 5000;

const TYPES: [ScalarType; 5] = [
    ScalarType::I32,
    ScalarType::F64,
    ScalarType::I64,
    ScalarType::U8,
    ScalarType::U1,
];

impl Maker {
    pub(crate) fn number(&mut self, n: usize) -> usize {
        let (next, bits) = eval::random_step(self.state);
        self.state = next;
        (bits >> 8) as usize % n.max(1)
    }

    pub(crate) fn chance(&mut self, one_in: usize) -> bool {
        self.number(one_in) == 0
    }

    pub(crate) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.number(all.len())]
    }

    fn dim(&mut self) -> Dim {
        let dims = self.dims.clone();
        self.one_of(&dims)
    }

    fn outside(&mut self) -> Outside {
        self.one_of(&[Outside::Clamp, Outside::Wrap, Outside::Zero])
    }

    /// An index for an axis of a buffer, in a domain.
    fn index(&mut self, domain: &[Dim], dim: Dim, depth: usize) -> (Expr, bool) {
        let same: Vec<u32> = (0..domain.len() as u32)
            .filter(|&k| domain[k as usize] == dim)
            .collect();
        if !same.is_empty() && !self.chance(3) {
            let k = self.one_of(&same);
            return (self.program.exprs.axis(k), true);
        }
        let i = match self.number(4) {
            0 if depth > 0 => self.value(domain, ScalarType::I32, depth - 1),
            1 | 2 if !domain.is_empty() => {
                let k = self.number(domain.len()) as u32;
                let axis = self.program.exprs.axis(k);
                let by = self.number(5) as i32 - 2;
                let by = self.program.exprs.i32(by);
                let op = self.one_of(&[BinaryOp::Add, BinaryOp::Mul, BinaryOp::Sub]);
                self.program.exprs.binary(op, axis, by)
            }
            _ => {
                let at = self.number(6) as i32 - 1;
                self.program.exprs.i32(at)
            }
        };
        (i, false)
    }

    fn element(&mut self, domain: &[Dim], buffer: Buffer, depth: usize) -> (Vec<Expr>, Outside) {
        let shape = self.program.buffers[buffer].shape.clone();
        let all: Vec<(Expr, bool)> = shape
            .iter()
            .map(|&d| self.index(domain, d, depth))
            .collect();
        let outside = match all.iter().all(|(_, inside)| *inside) {
            true => Outside::Never,
            false => self.outside(),
        };
        (all.into_iter().map(|(e, _)| e).collect(), outside)
    }

    /// A value over a domain.
    pub(crate) fn value(&mut self, domain: &[Dim], ty: ScalarType, depth: usize) -> Expr {
        use BinaryOp::{Add, Max, Min, Mul, Rem, Sub};
        let readable = self.readable.clone();
        let choice = self.number(8);
        if depth == 0 || choice < 2 {
            if !readable.is_empty() && !self.chance(3) {
                let buffer = self.one_of(&readable);
                let (index, outside) = self.element(domain, buffer, depth.saturating_sub(1));
                let loaded = self.program.load(buffer, index, outside);
                return self.program.exprs.cast(loaded, ty);
            }
            if !domain.is_empty() && self.chance(2) {
                let k = self.number(domain.len()) as u32;
                let axis = self.program.exprs.axis(k);
                return self.program.exprs.cast(axis, ty);
            }
            let n = self.number(9) as i128 - if ty.is_int() && !ty.is_signed() { 0 } else { 4 };
            let constant = match ty.is_float() {
                true => Scalar::float(ty, n as f64),
                false => Scalar::int(ty, n),
            };
            return self.program.exprs.constant(constant);
        }
        match choice {
            2 => {
                let compared = self.one_of(&[ScalarType::I32, ScalarType::F64]);
                let [a, b] = [0, 1].map(|_| self.value(domain, compared, depth - 1));
                let op = self.one_of(CompareOp::ALL);
                let cond = self.program.exprs.compare(op, a, b);
                let [a, b] = [0, 1].map(|_| self.value(domain, ty, depth - 1));
                self.program.exprs.select(cond, a, b)
            }
            3 => {
                let from = self.one_of(&TYPES);
                let x = self.value(domain, from, depth - 1);
                let x = self.small(x);
                self.program.exprs.cast(x, ty)
            }
            4 if ty != ScalarType::U1 => {
                let x = self.value(domain, ty, depth - 1);
                let op = self.one_of(&[UnaryOp::Neg, UnaryOp::Abs]);
                self.program.exprs.unary(op, x)
            }
            _ => {
                let [a, b] = [0, 1].map(|_| self.value(domain, ty, depth - 1));
                let op = match ty {
                    ScalarType::U1 => self.one_of(&[BinaryOp::And, BinaryOp::Or, BinaryOp::Xor]),
                    _ => self.one_of(&[Add, Sub, Mul, Min, Max, Rem]),
                };
                let value = self.program.exprs.binary(op, a, b);
                if op == Mul { self.small(value) } else { value }
            }
        }
    }

    /// Keeps numbers small, and floats whole.
    pub(crate) fn small(&mut self, x: Expr) -> Expr {
        let ty = self.program.exprs.ty(x);
        let bound = match ty {
            ScalarType::U1 => return x,
            _ if ty.is_float() => Scalar::float(ty, 1009.0),
            _ => Scalar::int(ty, 101),
        };
        let bound = self.program.exprs.constant(bound);
        self.program.exprs.binary(BinaryOp::Rem, x, bound)
    }

    fn domain(&mut self) -> Vec<Dim> {
        let n = self.number(4);
        let mut domain: Vec<Dim> = (0..n).map(|_| self.dim()).collect();
        // One long axis is enough for an interpreter.
        if let Some(&long) = domain
            .iter()
            .find(|&&d| self.program.const_dim(d) == Some(LONG))
        {
            let few = self.program.size(2);
            domain = if self.chance(2) {
                vec![few, long]
            } else {
                vec![long]
            };
        }
        domain
    }

    pub(crate) fn accum(&mut self, ty: ScalarType) -> Accum {
        use Accum::{Add, And, Max, Min, Or, Xor};
        match ty {
            ScalarType::U1 => self.one_of(&[And, Or]),
            ScalarType::F64 => self.one_of(&[Add, Min, Max]),
            _ => self.one_of(&[Add, Min, Max, Xor, And, Or]),
        }
    }

    fn assign(&mut self, at_host: &mut Vec<Stmt>) {
        let domain = self.domain();
        let ty = self.one_of(&TYPES);
        let depth = 1 + self.number(3);
        let value = self.value(&domain, ty, depth);
        let value = self.small(value);
        let before = self.program.body.len();
        match self.number(4) {
            0 | 1 => {
                let t = self.program.map(&domain, value, Span::NONE);
                self.readable.push(t);
                // As derivatives contain the value of their function.
                if self.chance(3) {
                    let other = self.value(&domain, ty, 1);
                    let again = self.one_of(&[[value, other], [other, value]]);
                    let cond = self.value(&domain, ScalarType::U1, 1);
                    let again = self.program.exprs.select(cond, again[0], again[1]);
                    let t = self.program.map(&domain, again, Span::NONE);
                    self.readable.push(t);
                }
            }
            2 => {
                let n_kept = self.number(domain.len() + 1);
                let accum = self.accum(ty);
                let t = self
                    .program
                    .reduce(&domain, n_kept, accum, value, Span::NONE);
                self.readable.push(t);
            }
            _ if self.chance(2) => self.scatter(&domain, ty, value),
            _ => self.update(),
        }
        at_host.extend(self.program.body.drain(before..));
    }

    /// Changes all elements of what is there already.
    fn update(&mut self) {
        let inputs: Vec<Buffer> = self.program.inputs().collect();
        let memory: Vec<Buffer> = inputs.into_iter().chain(self.memory.clone()).collect();
        let target = self.one_of(&memory);
        let (ty, domain) = (
            self.program.buffers[target].ty,
            self.program.buffers[target].shape.clone(),
        );
        let readable = self.readable.clone();
        // Other points' elements may be new or old.
        self.readable.retain(|&b| b != target);
        let value = self.value(&domain, ty, 2);
        self.readable = readable;
        let index = self.program.axes(domain.len());
        let old = self.program.load(target, index.clone(), Outside::Never);
        let value = if self.chance(2) && ty != ScalarType::U1 {
            self.program.exprs.binary(BinaryOp::Add, value, old)
        } else {
            value
        };
        let value = self.small(value);
        let store = Store {
            target,
            index,
            value,
            accum: None,
            init: false,
            outside: Outside::Never,
        };
        self.program.assign(&domain, store, Span::NONE);
    }

    fn scatter(&mut self, domain: &[Dim], ty: ScalarType, value: Expr) {
        let old: Vec<Buffer> = self
            .memory
            .iter()
            .copied()
            .filter(|&b| self.program.buffers[b].ty == ty)
            .collect();
        let (target, init) = if old.is_empty() || self.chance(2) {
            let mut shape = self.domain();
            shape.truncate(2);
            (self.program.temporary(ty, &shape), true)
        } else {
            (self.one_of(&old), self.chance(3))
        };
        // A scatter reads nothing that it writes.
        let readable = self.readable.clone();
        self.readable.retain(|&b| b != target);
        let value = if readable.contains(&target) {
            self.value(domain, ty, 1)
        } else {
            value
        };
        let value = self.small(value);
        let (index, outside) = self.element(domain, target, 1);
        // Atomic truth values are not for all targets; they are by way of loops only.
        let accum = self.accum(ty);
        self.readable = readable;
        if ty == ScalarType::U1 || ty == ScalarType::U8 {
            return;
        }
        let store = Store {
            target,
            index,
            value,
            accum: Some(accum),
            init,
            outside,
        };
        self.program.assign(domain, store, Span::NONE);
        if init && !self.readable.contains(&target) {
            self.readable.push(target);
            self.memory.push(target);
        }
    }

    /// Any of all, each once.
    fn shuffled<T: Copy>(&mut self, all: &[T]) -> Vec<T> {
        let mut left = all.to_vec();
        let mut out = Vec::new();
        while !left.is_empty() {
            let at = self.number(left.len());
            out.push(left.remove(at));
        }
        out
    }

    /// A sum of products of two factors, with any axes in any order, and mostly what is made of its elements.
    fn product(&mut self, at_host: &mut Vec<Stmt>) {
        let ty = self.one_of(&[ScalarType::F64, ScalarType::F64, ScalarType::I32]);
        let mut dims = self.dims.clone();
        dims.retain(|&d| self.program.const_dim(d) != Some(LONG));
        let counts = [self.number(2), 1 + self.number(2), 1, 1 + self.number(2)];
        let n: usize = counts.iter().sum();
        let domain: Vec<Dim> = (0..n).map(|_| self.one_of(&dims)).collect();
        let all = self.shuffled(&(0..n as u32).collect::<Vec<_>>());
        let (batch, rest) = all.split_at(counts[0]);
        let (rows, rest) = rest.split_at(counts[1]);
        let (columns, inner) = rest.split_at(counts[2]);
        let before = self.program.body.len();
        let factors = [rows, columns].map(|own| {
            let axes = self.shuffled(&[batch, own, inner].concat());
            let shape: Vec<Dim> = axes.iter().map(|&k| domain[k as usize]).collect();
            let value = self.value(&shape, ty, 1);
            let value = self.small(value);
            let made = self.program.map(&shape, value, Span::NONE);
            let index = axes.iter().map(|&k| self.program.exprs.axis(k)).collect();
            self.program.load(made, index, Outside::Never)
        });
        let [left, right] = self.shuffled(&factors)[..] else {
            unreachable!("two factors");
        };
        let value = self.program.exprs.binary(BinaryOp::Mul, left, right);
        let kept = self.shuffled(&[batch, rows, columns].concat());
        let shape: Vec<Dim> = kept.iter().map(|&k| domain[k as usize]).collect();
        let target = self.program.temporary(ty, &shape);
        let index = kept.iter().map(|&k| self.program.exprs.axis(k)).collect();
        let store = Store {
            target,
            index,
            value,
            accum: Some(Accum::Add),
            init: true,
            outside: Outside::Never,
        };
        self.program.assign(&domain, store, Span::NONE);
        if self.chance(3) {
            self.update();
        }
        let order = self.shuffled(&(0..shape.len() as u32).collect::<Vec<_>>());
        let mut turned = vec![shape[0]; shape.len()];
        for (axis, &dim) in order.iter().zip(&shape) {
            turned[*axis as usize] = dim;
        }
        let index = order.iter().map(|&k| self.program.exprs.axis(k)).collect();
        let sum = self.program.load(target, index, Outside::Never);
        let other = self.value(&turned, ty, 1);
        let value = self.program.exprs.binary(BinaryOp::Add, sum, other);
        let value = self.small(value);
        let made = self.program.map(&turned, value, Span::NONE);
        self.readable.push(made);
        if self.chance(4) {
            self.program.results.push(target);
        }
        at_host.extend(self.program.body.drain(before..));
    }

    /// The host goes round over one domain, at whose points sums are kept.
    fn turns(&mut self, at_host: &mut Vec<Stmt>) {
        let domain = self.domain();
        let ty = self.one_of(&[ScalarType::I32, ScalarType::F64]);
        let before = self.program.body.len();
        let mut sums = Vec::new();
        for _ in 0..2 {
            let first = self.value(&domain, ty, 1);
            let first = self.small(first);
            // Equal statements would be one value.
            let target = self.program.map(&domain, first, Span::NONE);
            sums.push(target);
        }
        at_host.extend(self.program.body.drain(before..));
        let var = self.program.var(ScalarType::I32);
        let count = self.program.get(var);
        let mut body = Vec::new();
        for _ in 0..1 + self.number(3) {
            let target = self.one_of(&sums);
            let index = self.program.axes(domain.len());
            let source = self.one_of(&sums);
            let old = match source != target && !domain.is_empty() && self.chance(3) {
                // What a neighbour has: no turn of a point's own.
                true => {
                    let one = self.program.exprs.i32(1);
                    let mut at = index.clone();
                    at[0] = self.program.exprs.binary(BinaryOp::Add, at[0], one);
                    self.program.load(source, at, Outside::Wrap)
                }
                false => self.program.load(source, index.clone(), Outside::Never),
            };
            let mut value = self.value(&domain, ty, 2);
            if self.chance(2) {
                value = self.program.exprs.cast(count, ty);
            }
            let value = self.program.exprs.binary(BinaryOp::Add, value, old);
            let value = self.small(value);
            let store = Store {
                target,
                index,
                value,
                accum: None,
                init: false,
                outside: Outside::Never,
            };
            self.program.assign(&domain, store, Span::NONE);
            body.extend(self.program.body.drain(before..));
            if self.chance(3) {
                let limit = self.program.exprs.i32(2);
                let far = self.program.exprs.compare(CompareOp::Ge, count, limit);
                let leave = self.chance(2);
                body.push(Stmt::If(
                    far,
                    vec![if leave { Stmt::Break } else { Stmt::Continue }],
                    vec![],
                ));
            }
        }
        let (lo, hi) = (self.program.exprs.i32(0), self.number(5) as i32);
        let hi = self.program.exprs.i32(hi);
        at_host.push(Stmt::Loop {
            var,
            lo,
            hi,
            step: 1,
            body,
        });
        self.readable.extend(sums);
    }

    /// What is made of memory before it changes, and read afterwards.
    fn stale(&mut self, at_host: &mut Vec<Stmt>) {
        let inputs: Vec<Buffer> = self.program.inputs().collect();
        let source = self.one_of(&inputs);
        let (ty, shape) = (
            self.program.buffers[source].ty,
            self.program.buffers[source].shape.clone(),
        );
        let before = self.program.body.len();
        let index = self.program.axes(shape.len());
        let old = self.program.load(source, index.clone(), Outside::Never);
        let made = self.program.map(&shape, old, Span::NONE);
        let one = self.program.exprs.constant(Scalar::one(ty));
        let new = self.program.exprs.binary(BinaryOp::Add, old, one);
        let value = self.small(new);
        let store = Store {
            target: source,
            index: index.clone(),
            value,
            accum: None,
            init: false,
            outside: Outside::Never,
        };
        self.program.assign(&shape, store, Span::NONE);
        let read = self.program.load(made, index, Outside::Never);
        let twice = self.program.exprs.binary(BinaryOp::Add, read, one);
        let value = self.small(twice);
        let result = self.program.map(&shape, value, Span::NONE);
        self.program.results.push(result);
        self.readable.push(result);
        at_host.extend(self.program.body.drain(before..));
    }

    /// A `for` with loops, branches and variables at each point.
    fn points(&mut self, at_host: &mut Vec<Stmt>) {
        let domain = self.domain();
        let ty = self.one_of(&[ScalarType::I32, ScalarType::F64]);
        let target = self.program.temporary(ty, &domain);
        let [sum, count] = [ty, ScalarType::I32].map(|ty| self.program.var(ty));
        let first = self.value(&domain, ty, 1);
        let (lo, hi) = (
            self.program.exprs.i32(0),
            self.value(&domain, ScalarType::I32, 1),
        );
        let nine = self.program.exprs.i32(9);
        let hi = self.program.exprs.binary(BinaryOp::Min, hi, nine);
        let [old, k] = [sum, count].map(|v| self.program.get(v));
        let term = self.value(&domain, ty, 2);
        let term = self.small(term);
        let new = self.program.exprs.binary(BinaryOp::Add, old, term);
        let k_as = self.program.exprs.cast(k, ty);
        let new = self.program.exprs.binary(BinaryOp::Sub, new, k_as);
        let (limit, two) = (self.value(&domain, ty, 1), self.program.exprs.i32(2));
        let far = self.program.exprs.compare(CompareOp::Gt, new, limit);
        let odd = self.program.exprs.binary(BinaryOp::Rem, k, two);
        let zero = self.program.exprs.i32(0);
        let is_odd = self.program.exprs.compare(CompareOp::Ne, odd, zero);
        let leave = self.one_of(&[true, false]);
        let body = vec![
            Stmt::If(is_odd, vec![Stmt::Continue], vec![]),
            Stmt::Set(sum, new),
            Stmt::If(
                far,
                vec![if leave { Stmt::Break } else { Stmt::Continue }],
                vec![],
            ),
        ];
        let axes = self.program.axes(domain.len());
        let span = Span::NONE;
        at_host.push(Stmt::For(For {
            domain,
            cells: None,
            body: vec![
                Stmt::Set(sum, first),
                Stmt::Loop {
                    var: count,
                    lo,
                    hi,
                    step: 1,
                    body,
                },
                Stmt::Store(Store {
                    target,
                    index: axes,
                    value: old,
                    accum: None,
                    init: false,
                    outside: Outside::Never,
                }),
            ],
            span,
        }));
        self.readable.push(target);
    }
}

/// The program of a number.
pub(crate) fn program(seed: u64) -> Program {
    let mut maker = Maker {
        state: seed,
        program: Program::default(),
        readable: Vec::new(),
        memory: Vec::new(),
        dims: Vec::new(),
    };
    let p = &mut maker.program;
    let a = p.input("a", ScalarType::I32, &[None, None]);
    let b = p.input("b", ScalarType::F64, &[None, Some(3)]);
    let c = p.input("c", ScalarType::U8, &[Some(5)]);
    let dims = [
        p.buffers[a].shape[0],
        p.buffers[a].shape[1],
        p.buffers[b].shape[0],
    ];
    maker.dims.extend(dims);
    maker.dims.extend([3, 5, 2].map(|n| maker.program.size(n)));
    if maker.chance(4) {
        // Enough for a sum in parts.
        let long = maker.program.size(LONG);
        maker.dims.push(long);
    }
    maker.readable.extend([a, b, c]);
    let half = maker.program.extent(dims[0]);
    let two = maker.program.exprs.i32(2);
    let half = maker.program.exprs.binary(BinaryOp::FloorDiv, half, two);
    let half = maker.program.dim(DimDef::Value(half));
    maker.dims.push(half);
    let mut body = Vec::new();
    for _ in 0..3 + maker.number(8) {
        match maker.number(5) {
            0 => maker.points(&mut body),
            2 if maker.chance(2) => maker.turns(&mut body),
            3 if maker.chance(4) => maker.product(&mut body),
            4 if maker.chance(4) => maker.stale(&mut body),
            1 if maker.chance(2) => {
                // The host goes round.
                let var = maker.program.var(ScalarType::I32);
                let mut inside = Vec::new();
                let before = maker.readable.len();
                maker.assign(&mut inside);
                maker.assign(&mut inside);
                maker.readable.truncate(before);
                maker.memory.retain(|b| maker.readable.contains(b));
                let [lo, hi] = [0, 2].map(|n| maker.program.exprs.i32(n));
                body.push(Stmt::Loop {
                    var,
                    lo,
                    hi,
                    step: 1,
                    body: inside,
                });
            }
            _ if maker.chance(4) => maker.placed(&mut body),
            _ if maker.chance(4) => maker.one_hot(&mut body),
            _ => maker.assign(&mut body),
        }
    }
    maker.program.body = body;
    for &buffer in maker.readable.iter().skip(3).rev().step_by(2).take(4) {
        maker.program.results.push(buffer);
    }
    maker.program
}
