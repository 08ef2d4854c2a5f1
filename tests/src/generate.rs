//! Random kernels that verify, terminate, and have one right outcome.
//!
//! In a parallel loop an iteration reads fields that the loop does not write, writes its own
//! element, and changes other elements by integer atomics only, whose order does not matter.

use std::sync::Arc;

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{
    Arg, AtomicOp, BinaryOp, Builder, CompareOp, FieldData, FieldId, Function, LoopAttrs, Module,
    Op, ParamData, ParamType, Region, TreeId, Type, UnaryOp, Value, eval,
};
use aerogel_snode::parse_nodes;

/// Layouts that a module may use; each has places for an `i32`, an `f32`, and the three
/// components of an `i64` vector, over 12 cells along one axis.
const LAYOUTS: &[&str] = &[
    "dense i:12 { place a: i32, place b: f32, place c: i64, place d: i64, place e: i64 }",
    "dense i:12 { place a: i32 } dense i:12 { place b: f32 } dense i:12 { place c: i64, place d: i64, place e: i64 }",
    "dense i:3 { dense i:4 { place a: i32, place b: f32 } dense i:4 { place c: i64, place d: i64, place e: i64 } }",
    "dense i:2 { dense i:6 { place a: i32 } dense i:3 { dense i:2 { place b: f32, place c: i64, place d: i64, place e: i64 } } }",
];
const N_CELLS: i32 = 12;

/// A random module with one kernel, the same for the same seed.
pub fn module(seed: u64) -> Module {
    let mut module = Module::default();
    let mut rng = Rng(seed);
    let tree = parse_nodes(LAYOUTS[rng.below(LAYOUTS.len())]).expect("the layouts are valid");
    let places: Vec<_> = tree.places().collect();
    let field = |name: &str, elem: Type, range: std::ops::Range<usize>| FieldData {
        name: name.to_owned(),
        elem,
        tree: TreeId::from_u32(0),
        places: places[range].iter().map(|p| p.0).collect(),
        offset: if seed.is_multiple_of(3) {
            vec![-2]
        } else {
            Vec::new()
        },
    };
    let fields = [
        field("ints", Type::I32, 0..1),
        field("floats", Type::F32, 1..2),
        field("vectors", Type::Vec(3, ScalarType::I64), 2..5),
    ];
    for f in fields {
        module.env.fields.push(f);
    }
    module.env.trees.push(Arc::new(tree));
    let mut func = Function::new("generated", true);
    func.params = vec![
        ParamData {
            name: "n".into(),
            ty: ParamType::Value(Type::I32),
        },
        ParamData {
            name: "s".into(),
            ty: ParamType::Value(Type::F32),
        },
        ParamData {
            name: "a".into(),
            ty: ParamType::Array {
                elem: Type::I32,
                ndim: 2,
                read_only: false,
            },
        },
    ];
    func.results = vec![Type::I32, Type::F32];
    let body = func.body;
    let lo = if seed.is_multiple_of(3) { -2 } else { 0 };
    let mut g = Generator {
        b: Builder::new(&mut func, body),
        rng,
        pool: Vec::new(),
        locals: Vec::new(),
        lo,
        readable: Vec::new(),
        own: None,
        shared: None,
        budget: 60,
        loops: 0,
    };
    g.kernel();
    module.funcs.push(func);
    module
}

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        let (state, bits) = eval::random_step(self.0);
        self.0 = state;
        (bits % n as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

const SCALARS: &[ScalarType] = &[
    ScalarType::I32,
    ScalarType::F32,
    ScalarType::I32,
    ScalarType::F32,
    ScalarType::U8,
    ScalarType::I64,
    ScalarType::F64,
    ScalarType::U32,
    ScalarType::I16,
    ScalarType::U64,
    ScalarType::F16,
];

struct Generator<'a> {
    b: Builder<'a>,
    rng: Rng,
    /// Values in scope.
    pool: Vec<Value>,
    /// Locals of the same thread in scope.
    locals: Vec<Value>,
    /// The fields' first index.
    lo: i32,
    /// Fields that may be read here.
    readable: Vec<FieldId>,
    /// The field of which this iteration owns one element, and the element's index.
    own: Option<(FieldId, Value)>,
    /// The field that is only changed by atomics, and a local of the kernel's.
    shared: Option<(FieldId, Option<Value>)>,
    budget: i32,
    loops: u32,
}

impl Generator<'_> {
    fn kernel(&mut self) {
        let n = self.b.value(
            Op::Arg {
                arg: Arg::from_u32(0),
            },
            Type::I32,
        );
        let s = self.b.value(
            Op::Arg {
                arg: Arg::from_u32(1),
            },
            Type::F32,
        );
        self.pool.extend([n, s]);
        let mut outer = Vec::new();
        for ty in [Type::I32, Type::F32] {
            let local = self.b.local(ty);
            self.locals.push(local);
            outer.push(local);
        }
        let all: Vec<FieldId> = (0..3).map(FieldId::from_u32).collect();
        for _ in 0..1 + self.rng.below(3) {
            self.readable.clone_from(&all);
            self.budget = 12;
            self.statements(3);
            self.parallel(outer[0]);
        }
        self.readable = all;
        self.budget = 10;
        self.statements(2);
        let values = outer.iter().map(|&l| self.b.load(l)).collect();
        self.b.effect(Op::Return { values });
    }

    fn parallel(&mut self, counter: Value) {
        let own = FieldId::from_u32(self.rng.below(3) as u32);
        let atomic = FieldId::from_u32(if own.as_u32() == 0 { 2 } else { 0 });
        let region;
        let saved = self.pool.len();
        let locals = std::mem::take(&mut self.locals);
        if self.rng.one_in(2) {
            region = self.b.func.new_region(&[Type::I32]);
            self.b.effect(Op::ParallelCells {
                field: own,
                attrs: LoopAttrs {
                    serial: self.rng.one_in(4),
                    ..LoopAttrs::default()
                },
                body: region,
            });
        } else {
            let lo = self.b.i32(self.lo + self.rng.below(3) as i32);
            let hi = self.b.i32(self.lo + N_CELLS - self.rng.below(3) as i32);
            region = self.b.func.new_region(&[Type::I32]);
            self.b.effect(Op::Parallel {
                lo: vec![lo],
                hi: vec![hi],
                attrs: LoopAttrs::default(),
                body: region,
            });
        }
        let index = self.b.func.regions[region].params[0];
        self.readable = (0..3)
            .map(FieldId::from_u32)
            .filter(|&f| f != own && f != atomic)
            .collect();
        self.own = Some((own, index));
        self.shared = Some((atomic, Some(counter)));
        self.budget = 40;
        let outer = std::mem::replace(&mut self.b.region, region);
        self.pool.push(index);
        self.statements(8);
        self.end();
        self.b.region = outer;
        (self.own, self.shared) = (None, None);
        self.pool.truncate(saved);
        self.locals = locals;
    }

    fn end(&mut self) {
        self.b.yields(Vec::new());
    }

    fn statements(&mut self, n: usize) {
        for _ in 0..1 + self.rng.below(n) {
            self.statement();
        }
    }

    fn statement(&mut self) {
        self.budget -= 1;
        match self.rng.below(if self.budget > 0 { 12 } else { 5 }) {
            0..=2 => {
                let v = self.any();
                self.pool.push(v);
            }
            3 => self.assign(),
            4 => self.memory(),
            5 => {
                let ty = self.rng.pick(SCALARS);
                let value = self.scalar(ty, 2);
                let local = self.b.local(ty.into());
                self.b.store(local, value);
                self.locals.push(local);
            }
            6 | 7 => self.branch(),
            8 => self.for_loop(),
            9 => self.while_loop(),
            10 => self.tensor_local(),
            _ => self.memory(),
        }
    }

    fn any(&mut self) -> Value {
        let ty = self.rng.pick(SCALARS);
        self.scalar(ty, 3)
    }

    fn assign(&mut self) {
        if self.locals.is_empty() {
            return;
        }
        let local = self.rng.pick(&self.locals.clone());
        let ty = self
            .b
            .func
            .ty(local)
            .pointee()
            .and_then(Type::scalar)
            .expect("locals are scalars");
        let value = self.scalar(ty, 3);
        if self.rng.one_in(3) && ty.is_int() {
            let op = self.rng.pick(&[
                AtomicOp::Add,
                AtomicOp::Sub,
                AtomicOp::Mul,
                AtomicOp::Min,
                AtomicOp::Xor,
                AtomicOp::Exchange,
            ]);
            let old = self.b.value(
                Op::Atomic {
                    op,
                    place: local,
                    value,
                },
                ty.into(),
            );
            self.pool.push(old);
        } else {
            self.b.store(local, value);
        }
    }

    /// An index of a field, inside its extent.
    fn index(&mut self) -> Value {
        let raw = self.scalar(ScalarType::I32, 1);
        let n = self.b.i32(N_CELLS);
        let lo = self.b.i32(self.lo);
        let inside = self.b.binary(BinaryOp::Mod, raw, n);
        self.b.binary(BinaryOp::Add, inside, lo)
    }

    fn place(&mut self, field: FieldId, index: Value) -> Value {
        let elem = [Type::I32, Type::F32, Type::Vec(3, ScalarType::I64)][field.as_u32() as usize];
        self.b.value(
            Op::FieldAt {
                field,
                indices: vec![index],
            },
            elem.to_ref().expect("a value"),
        )
    }

    fn memory(&mut self) {
        match (self.own, self.shared) {
            (Some((field, index)), _) if self.rng.one_in(2) => {
                let place = self.place(field, index);
                let ty = self.b.func.ty(place).pointee().expect("a storage");
                let value = self.of_type(ty);
                if self.rng.one_in(2) {
                    self.b.value(
                        Op::Atomic {
                            op: AtomicOp::Add,
                            place,
                            value,
                        },
                        ty,
                    );
                } else {
                    self.b.store(place, value);
                }
            }
            (_, Some((_, Some(counter)))) if self.rng.one_in(2) => {
                let value = self.scalar(ScalarType::I32, 2);
                self.b.value(
                    Op::Atomic {
                        op: AtomicOp::Add,
                        place: counter,
                        value,
                    },
                    Type::I32,
                );
            }
            (_, Some((field, _))) => {
                let index = self.index();
                let place = self.place(field, index);
                let ty = self.b.func.ty(place).pointee().expect("a storage");
                let value = self.of_type(ty);
                self.b.value(
                    Op::Atomic {
                        op: AtomicOp::Xor,
                        place,
                        value,
                    },
                    ty,
                );
            }
            _ => {
                let field = FieldId::from_u32(self.rng.below(3) as u32);
                let index = self.index();
                let place = self.place(field, index);
                let ty = self.b.func.ty(place).pointee().expect("a storage");
                let value = self.of_type(ty);
                self.b.store(place, value);
            }
        }
    }

    fn of_type(&mut self, ty: Type) -> Value {
        let elem = ty.elem().expect("numbers");
        if !ty.is_tensor() {
            return self.scalar(elem, 3);
        }
        let elems = (0..ty.n_elems()).map(|_| self.scalar(elem, 2)).collect();
        let a = self.b.value(Op::TensorMake { elems }, ty);
        let b = self.scalar(elem, 1);
        let b = self.b.splat(b, ty);
        self.b.binary(BinaryOp::Mul, a, b)
    }

    fn scoped(&mut self, region: Region, fill: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.b.region, region);
        let (pool, locals) = (self.pool.len(), self.locals.len());
        fill(self);
        self.pool.truncate(pool);
        self.locals.truncate(locals);
        self.b.region = outer;
    }

    fn branch(&mut self) {
        let cond = self.condition();
        let then = self.b.func.new_region(&[]);
        let otherwise = self.b.func.new_region(&[]);
        let leaves = self.loops > 0 && self.rng.one_in(4);
        self.scoped(then, |g| {
            g.statements(3);
            if !leaves {
                g.end();
            } else if g.rng.one_in(2) {
                g.b.effect(Op::Break { values: Vec::new() });
            } else {
                g.b.effect(Op::Continue { values: Vec::new() });
            }
        });
        self.scoped(otherwise, |g| {
            if g.rng.one_in(2) {
                g.statements(2);
            }
            g.end();
        });
        self.b.effect(Op::If {
            cond,
            then,
            otherwise,
        });
    }

    fn for_loop(&mut self) {
        let (lo, hi, step) = self
            .rng
            .pick(&[(0, 3, 1), (5, -1, -2), (2, 2, 1), (-1, 4, 3)]);
        let (lo, hi, step) = (self.b.i32(lo), self.b.i32(hi), self.b.i32(step));
        let body = self.b.func.new_region(&[Type::I32]);
        self.loops += 1;
        self.scoped(body, |g| {
            let counter = g.b.func.regions[body].params[0];
            g.pool.push(counter);
            g.statements(4);
            g.end();
        });
        self.loops -= 1;
        self.b.effect(Op::For {
            lo,
            hi,
            step,
            init: Vec::new(),
            body,
        });
    }

    /// Counts a fresh local down, so that it ends.
    fn while_loop(&mut self) {
        let count = self.b.local(Type::I32);
        let start = self.b.i32(self.rng.below(5) as i32);
        self.b.store(count, start);
        let cond = self.b.func.new_region(&[]);
        let body = self.b.func.new_region(&[]);
        self.scoped(cond, |g| {
            let now = g.b.load(count);
            let zero = g.b.i32(0);
            let more = g.b.compare(CompareOp::Gt, now, zero);
            g.b.yields(vec![more]);
        });
        self.loops += 1;
        self.scoped(body, |g| {
            let now = g.b.load(count);
            let one = g.b.i32(1);
            let next = g.b.binary(BinaryOp::Sub, now, one);
            g.b.store(count, next);
            g.statements(3);
            g.end();
        });
        self.loops -= 1;
        self.b.effect(Op::While {
            init: Vec::new(),
            cond,
            body,
        });
    }

    /// A local vector that is indexed by something unknown.
    fn tensor_local(&mut self) {
        let ty = Type::Vec(3, ScalarType::I32);
        let local = self.b.local(ty);
        let value = self.of_type(ty);
        self.b.store(local, value);
        let raw = self.scalar(ScalarType::I32, 1);
        let three = self.b.i32(3);
        let index = self.b.binary(BinaryOp::Mod, raw, three);
        let elem = self.b.value(
            Op::ElemRef {
                base: local,
                index: vec![index],
            },
            Type::RefScalar(ScalarType::I32),
        );
        let new = self.scalar(ScalarType::I32, 1);
        self.b.store(elem, new);
        let all = self.b.load(local);
        let one = self.b.value(
            Op::TensorGet {
                tensor: all,
                index: vec![index],
            },
            Type::I32,
        );
        self.pool.push(one);
    }

    fn condition(&mut self) -> Value {
        let ty = self.rng.pick(SCALARS);
        let (lhs, rhs) = (self.scalar(ty, 2), self.scalar(ty, 1));
        let op = self.rng.pick(CompareOp::ALL);
        self.b.compare(op, lhs, rhs)
    }

    fn scalar(&mut self, ty: ScalarType, depth: u32) -> Value {
        if depth == 0 || self.rng.one_in(4) {
            return self.leaf(ty);
        }
        match self.rng.below(10) {
            0..=4 => {
                let ops: &[BinaryOp] = if ty.is_float() {
                    &[
                        BinaryOp::Add,
                        BinaryOp::Sub,
                        BinaryOp::Mul,
                        BinaryOp::Div,
                        BinaryOp::Min,
                        BinaryOp::Max,
                    ]
                } else {
                    use BinaryOp::*;
                    &[
                        Add, Sub, Mul, FloorDiv, Mod, Div, Rem, Min, Max, And, Or, Xor, Shl, Shr,
                        UShr, Pow,
                    ]
                };
                let op = self.rng.pick(ops);
                let (lhs, rhs) = (self.scalar(ty, depth - 1), self.scalar(ty, depth - 1));
                self.b.binary(op, lhs, rhs)
            }
            5 => {
                let ops: &[UnaryOp] = if ty.is_float() {
                    &[
                        UnaryOp::Neg,
                        UnaryOp::Abs,
                        UnaryOp::Floor,
                        UnaryOp::Ceil,
                        UnaryOp::Sqrt,
                        UnaryOp::Round,
                        UnaryOp::Trunc,
                        UnaryOp::Sign,
                    ]
                } else {
                    &[
                        UnaryOp::Neg,
                        UnaryOp::Abs,
                        UnaryOp::Not,
                        UnaryOp::Popcnt,
                        UnaryOp::Clz,
                        UnaryOp::Sign,
                    ]
                };
                let op = self.rng.pick(ops);
                let x = self.scalar(ty, depth - 1);
                self.b.unary(op, x)
            }
            6 => {
                let cond = self.condition();
                let (on_true, on_false) = (self.scalar(ty, depth - 1), self.scalar(ty, depth - 1));
                self.b.value(
                    Op::Select {
                        cond,
                        on_true,
                        on_false,
                    },
                    ty.into(),
                )
            }
            7 | 8 => {
                let from = self.rng.pick(SCALARS);
                let x = self.scalar(from, depth - 1);
                self.b.cast(x, ty.into())
            }
            _ => self.read(ty),
        }
    }

    fn read(&mut self, ty: ScalarType) -> Value {
        if self.readable.is_empty() {
            return self.leaf(ty);
        }
        let field = self.rng.pick(&self.readable.clone());
        let index = {
            let raw = self.leaf(ScalarType::I32);
            let n = self.b.i32(N_CELLS);
            let lo = self.b.i32(self.lo);
            let inside = self.b.binary(BinaryOp::Mod, raw, n);
            self.b.binary(BinaryOp::Add, inside, lo)
        };
        let place = self.place(field, index);
        let value = self.b.load(place);
        let one = if self.b.func.ty(value).is_tensor() {
            let k = self.b.i32(self.rng.below(3) as i32);
            self.b.value(
                Op::TensorGet {
                    tensor: value,
                    index: vec![k],
                },
                Type::I64,
            )
        } else {
            value
        };
        self.b.cast(one, ty.into())
    }

    fn leaf(&mut self, ty: ScalarType) -> Value {
        let same: Vec<Value> = self
            .pool
            .iter()
            .copied()
            .filter(|&v| self.b.func.ty(v) == Type::Scalar(ty))
            .collect();
        if !same.is_empty() && !self.rng.one_in(4) {
            return self.rng.pick(&same);
        }
        let locals: Vec<Value> = self
            .locals
            .iter()
            .copied()
            .filter(|&l| self.b.func.ty(l) == Type::RefScalar(ty))
            .collect();
        if !locals.is_empty() && self.rng.one_in(2) {
            let local = self.rng.pick(&locals);
            return self.b.load(local);
        }
        let small = self.rng.below(12) as i128 - 4;
        let value = if ty.is_float() {
            Scalar::float(
                ty,
                self.rng.pick(&[small as f64, small as f64 * 0.3, 1e6, 0.5]),
            )
        } else {
            let edge = if ty.is_signed() {
                1i128 << (ty.bits() - 1)
            } else {
                -1
            };
            Scalar::int(ty, self.rng.pick(&[small, small, small, edge, 7]))
        };
        self.b.constant(value)
    }
}
