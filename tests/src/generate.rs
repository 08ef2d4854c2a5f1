//! Random kernels that verify, terminate, and have one right outcome.
//!
//! In a parallel loop an iteration reads fields that the loop does not write, writes its own
//! element, and changes other elements by integer atomics only, whose order does not matter.

mod statements;
mod values;

use std::sync::Arc;

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{
    Arg, AtomicOp, BinaryOp, Builder, CellOp, CompareOp, Env, FieldData, FieldId, FuncId, Function,
    LoopAttrs, Module, Op, ParamData, ParamType, TreeId, Type, Value, eval,
};
use aerogel_snode::{NodeKind, parse_nodes};

/// Layouts that a module may use, with their extents; each has places for an `i32`, an `f32`, and
/// the three components of an `i64` vector.
const LAYOUTS: &[(&str, &[i32])] = &[
    (
        "dense i:12 { place a: i32, place b: f32, place c: i64, place d: i64, place e: i64 }",
        &[12],
    ),
    (
        "dense i:12 { place a: i32 } dense i:12 { place b: f32 } dense i:12 { place c: i64 } dense i:12 { place d: i64, place e: i64 }",
        &[12],
    ),
    (
        "dense i:3 { dense i:4 { place a: i32, place b: f32 } dense i:4 { place c: i64, place d: i64, place e: i64 } }",
        &[12],
    ),
    (
        "dense i:2 { dense i:6 { place a: i32 } dense i:3 { dense i:2 { place b: f32, place c: i64, place d: i64, place e: i64 } } }",
        &[12],
    ),
    (
        "dense i:3 merged { dense i:2 merged { dense i:2 { place a: i32, place b: f32 } dense i:2 { place c: i64, place d: i64, place e: i64 } } }",
        &[12],
    ),
    (
        "dense i:2 j:3 merged { dense i:3 j:2 { place a: i32, place b: f32 } } dense j:2 merged { dense i:2 j:3 merged { dense i:3 { place c: i64 } dense i:3 { place d: i64, place e: i64 } } }",
        &[6, 6],
    ),
    (
        "dense i:3 j:5 { place a: i32, place b: f32 } dense j:5 { dense i:3 { place c: i64, place d: i64, place e: i64 } }",
        &[3, 5],
    ),
    (
        "dense i:2 j:3 { dense i:3 j:2 { place a: i32, place b: f32 } dense i:3 j:2 { place c: i64 } dense i:3 j:2 { place d: i64, place e: i64 } }",
        &[6, 6],
    ),
    (
        "dense j:2 { dense i:4 { dense j:3 { place a: i32 } dense j:3 { place b: f32, place c: i64, place d: i64, place e: i64 } } }",
        &[4, 6],
    ),
    (
        "place a: i32, place b: f32, place c: i64, place d: i64, place e: i64",
        &[],
    ),
    (
        "pointer i:3 { dense i:4 { place a: i32, place b: f32, place c: i64, place d: i64, place e: i64 } }",
        &[12],
    ),
    (
        "pointer i:2 { pointer i:3 { dense i:2 { place a: i32 }, bitmasked i:2 { place b: f32, place c: i64, place d: i64, place e: i64 } } }",
        &[12],
    ),
    (
        "bitmasked i:12 { place a: i32 } pointer i:12 { place b: f32 } dense i:3 { pointer i:4 { place c: i64, place d: i64, place e: i64 } }",
        &[12],
    ),
    (
        "pointer i:3 j:5 { place a: i32, place b: f32 } dense j:5 { bitmasked i:3 { place c: i64, place d: i64, place e: i64 } }",
        &[3, 5],
    ),
    (
        "dense i:2 { pointer j:2 { dense i:3 j:3 { place a: i32, place b: f32 } } } bitmasked i:3 j:3 { pointer i:2 j:2 { place c: i64, place d: i64, place e: i64 } }",
        &[6, 6],
    ),
    (
        "bitmasked j:3 { dense i:2 { pointer i:2 j:2 { place a: i32 } pointer j:2 { bitmasked i:2 { place b: f32, place c: i64, place d: i64, place e: i64 } } } }",
        &[4, 6],
    ),
    (
        "dense i:12 { bit_struct bits=32 { place a: qi7/i32, place b: qi12^6/f32 }, bit_struct bits=64 { place c: qi20/i64, place d: qi20/i64, place e: qi20/i64 } }",
        &[12],
    ),
    (
        "dense i:3 { quant_array i:4 bits=32 { place a: qu8/i32 } quant_array i:4 bits=64 { place b: qi16*0.125/f32 } } dense i:2 { dense i:3 { quant_array i:2 bits=32 { place c: qi9/i64 } quant_array i:2 bits=64 { place d: qi9/i64 } quant_array i:2 bits=32 { place e: qi9/i64 } bit_struct bits=16 { place g: qu3/i32 } } }",
        &[12],
    ),
    (
        "pointer i:3 { dense i:2 j:3 { bit_struct bits=64 { place a: qi11/i32, place b: qi10^5/f32, place f: qi9^5/f32 shared, place g: qu7/i32 } } } pointer j:3 { bitmasked i:6 { bit_struct bits=64 { place c: qi13/i64, place d: qi13/i64, place e: qi13/i64 } } }",
        &[6, 3],
    ),
    (
        "pointer i:2 { quant_array i:3 j:2 bits=64 { place a: qi9/i32 } } bitmasked i:3 { quant_array i:2 j:2 bits=32 { place b: qu8*0.5/f32 } } dense j:2 { pointer i:2 { quant_array i:3 bits=16 { place c: qi5/i64 } quant_array i:3 bits=16 { place d: qi5/i64 } quant_array i:3 bits=16 { place e: qi5/i64 } } }",
        &[6, 2],
    ),
    (
        "dense i:3 { dynamic j:5 chunk=2 { bit_struct bits=16 { place a: qu9/i32 } bit_struct bits=8 { place b: qu4^3/f32 } } } dense i:3 { dense j:5 { bit_struct bits=64 { place c: qi21/i64, place d: qi21/i64, place e: qi21/i64 } } }",
        &[3, 5],
    ),
    (
        "bit_struct bits=32 { place a: qi5/i32, place b: qi15^8/f32 } bit_struct bits=64 { place c: qi21/i64, place d: qi21/i64, place e: qi21/i64 }",
        &[],
    ),
    (
        "hash i:12 { place a: i32 } pointer i:3 { hash i:4 { place b: f32, place c: i64, place d: i64, place e: i64 } }",
        &[12],
    ),
    (
        "hash i:12 { place a: i32 } pointer i:12 { place b: f32 } pointer i:3 { bitmasked i:4 { place c: i64 } } bitmasked i:12 { place d: i64 } hash i:12 { place e: i64 }",
        &[12],
    ),
    (
        "hash i:3 { bitmasked i:4 { place a: i32 }, pointer i:4 { place b: f32 } } hash i:6 { dense i:2 { place c: i64, place d: i64, place e: i64 } }",
        &[12],
    ),
    (
        "hash i:6 j:6 { place a: i32 } dense i:2 { hash i:3 j:6 { place b: f32 } } hash j:2 { hash i:6 j:3 { place c: i64, place d: i64, place e: i64 } }",
        &[6, 6],
    ),
    (
        "hash i:3 { dynamic j:5 chunk=2 { place a: i32, place b: f32 } } bitmasked i:3 { hash j:5 { place c: i64, place d: i64, place e: i64 } }",
        &[3, 5],
    ),
    // Blocks alike in different nodes.
    (
        "pointer i:3 { dense i:4 { place a: i32 } } hash i:3 { dense i:4 { place b: f32 } } pointer i:3 { dense i:4 { place c: i64, place d: i64, place e: i64 } }",
        &[12],
    ),
    (
        "pointer i:2 j:2 { dense i:3 j:3 { place a: i32 } } pointer i:2 j:2 { dense i:3 j:3 { place b: f32, place c: i64, place d: i64, place e: i64 } }",
        &[6, 6],
    ),
    (
        "dense i:3 { dynamic j:5 chunk=2 { place a: i32, place b: f32 } } pointer i:3 { dynamic j:5 chunk=1 { place c: i64, place d: i64, place e: i64 } }",
        &[3, 5],
    ),
];

/// The fields' element types, in order.
const ELEMS: [Type; 3] = [Type::I32, Type::F32, VECTOR];
const VECTOR: Type = Type::Vec(3, ScalarType::I64);

/// What the function that kernels call takes and gives.
const TAKEN: [Type; 3] = [Type::I32, VECTOR, Type::F32];
const GIVEN: [Type; 2] = [Type::I32, VECTOR];

/// What the kernel returns.
const RETURNED: [Type; 3] = [Type::I32, Type::F32, VECTOR];

/// A random module with one kernel, the same for the same seed.
pub fn module(seed: u64) -> Module {
    let mut module = Module::default();
    let mut rng = Rng(seed);
    let (layout, shape) = rng.pick(LAYOUTS);
    let tree = parse_nodes(layout).expect("the layouts are valid");
    let lo = if rng.one_in(3) { -2 } else { 0 };
    let place = |name: &str| {
        let mut nodes = tree.nodes();
        nodes.find(|n| n.1.name == name).expect("a place").0
    };
    let field = |name: &str, elem: Type, places: &[&str]| FieldData {
        name: name.to_owned(),
        elem,
        tree: TreeId::from_u32(0),
        places: places.iter().map(|name| place(name)).collect(),
        offset: if lo == 0 {
            Vec::new()
        } else {
            vec![lo; shape.len()]
        },
        grad: None,
        dual: None,
    };
    let fields = [
        field("ints", ELEMS[0], &["a"]),
        field("floats", ELEMS[1], &["b"]),
        field("vectors", ELEMS[2], &["c", "d", "e"]),
    ];
    for f in fields {
        module.env.fields.push(f);
    }
    module.env.trees.push(Arc::new(tree));
    let members = vec![
        ("m".to_owned(), Type::Mat(2, 2, ScalarType::I32)),
        ("s".to_owned(), Type::Scalar(ScalarType::I16)),
    ];
    let record = Type::Struct(module.env.intern_struct(members));

    let mut kernel = Function::new("generated", true);
    kernel.params = vec![
        param("n", ParamType::Value(Type::I32)),
        param("s", ParamType::Value(Type::F32)),
        param("a", array(Type::I32)),
        param("v", array(VECTOR)),
        param("w", ParamType::Value(VECTOR)),
    ];
    kernel.results = RETURNED.to_vec();
    let mut called = Function::new("called", false);
    called.results = GIVEN.to_vec();
    for ty in TAKEN {
        called.add_param(called.body, ty);
    }
    // The kernel may come before or after what it calls.
    let first = rng.one_in(2);
    let callee = FuncId::from_u32(u32::from(!first));

    let mut make = |func: &mut Function| {
        let body = func.body;
        let mut g = Generator {
            env: &module.env,
            b: Builder::new(func, body),
            rng: Rng(rng.below(usize::MAX) as u64),
            pool: Vec::new(),
            locals: Vec::new(),
            lo,
            shape,
            record,
            callee: None,
            this: None,
            readable: Vec::new(),
            over_sparse: false,
            writes_arrays: false,
            own: None,
            shared: None,
            budget: 60,
            loops: Vec::new(),
        };
        if g.b.func.is_kernel {
            g.callee = Some(callee);
            g.kernel();
        } else {
            g.this = Some(callee);
            g.function();
        }
    };
    make(&mut kernel);
    make(&mut called);
    let funcs = if first {
        [called, kernel]
    } else {
        [kernel, called]
    };
    for func in funcs {
        module.funcs.push(func);
    }
    module
}

/// The module on a layout of dense nodes only; none if it is on one already, or asks or changes what
/// is active.
pub fn on_dense(module: &Module) -> Option<Module> {
    let [tree] = module.env.trees.values().collect::<Vec<_>>()[..] else {
        return None;
    };
    let of_nodes = |op: &Op| {
        matches!(
            op,
            Op::Cell(CellOp::Activate { .. })
                | Op::Cell(CellOp::Deactivate { .. })
                | Op::Cell(CellOp::IsActive { .. })
        )
    };
    let mut funcs = module.funcs.values();
    if !tree.is_sparse() || funcs.any(|f| f.insts.values().any(|i| of_nodes(&i.op))) {
        return None;
    }
    let mut text = tree.to_string();
    for kind in ["pointer", "hash", "bitmasked", "dynamic"] {
        text = text.replace(kind, "dense");
    }
    for chunk in ["chunk=1 ", "chunk=2 "] {
        text = text.replace(chunk, "");
    }
    let mut dense = module.clone();
    let tree = parse_nodes(&text).expect("a layout of dense nodes");
    dense.env.trees[TreeId::from_u32(0)] = Arc::new(tree);
    Some(dense)
}

fn param(name: &str, ty: ParamType) -> ParamData {
    let name = name.to_owned();
    ParamData { name, ty, of: None }
}

fn array(elem: Type) -> ParamType {
    ParamType::Array {
        elem,
        ndim: 2,
        read_only: false,
    }
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

struct Generator<'a> {
    env: &'a Env,
    b: Builder<'a>,
    rng: Rng,
    /// Values in scope.
    pool: Vec<Value>,
    /// Locals of the same thread in scope.
    locals: Vec<Value>,
    /// The fields' first index along every axis, and their extents.
    lo: i32,
    shape: &'static [i32],
    /// A struct type.
    record: Type,
    /// The function that may be called.
    callee: Option<FuncId>,
    /// The function itself.
    this: Option<FuncId>,
    /// Fields that may be read here; if none may, nor may arrays.
    readable: Vec<FieldId>,
    /// Whether the loop around goes over sparse cells, or over the elements of words.
    over_sparse: bool,
    /// Whether arrays are written here by plain stores.
    writes_arrays: bool,
    /// The field of which this iteration owns one element, and the element's indices.
    own: Option<(FieldId, Vec<Value>)>,
    /// The field that is only changed by atomics, and a local of the kernel's.
    shared: Option<(FieldId, Value)>,
    budget: i32,
    /// What the loops around carry, and whether they may be left by `break`.
    loops: Vec<(Vec<Type>, bool)>,
}

impl Generator<'_> {
    fn kernel(&mut self) {
        for (k, ty) in [(0, Type::I32), (1, Type::F32), (4, VECTOR)] {
            let arg = Arg::from_u32(k);
            let value = self.b.value(Op::Arg { arg }, ty);
            self.pool.push(value);
        }
        let mut outer = Vec::new();
        for ty in RETURNED {
            let local = self.b.local(ty);
            self.locals.push(local);
            outer.push(local);
        }
        let all: Vec<FieldId> = (0..3).map(FieldId::from_u32).collect();
        for _ in 0..1 + self.rng.below(3) {
            self.readable.clone_from(&all);
            self.writes_arrays = true;
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

    /// Calls the function that is being made, from itself, at most three deep.
    fn recursion(&mut self) {
        let func = self.this.expect("functions know themselves");
        let (three, one, zero) = (self.b.i32(3), self.b.i32(1), self.b.i32(0));
        let n = self.b.binary(BinaryOp::And, self.pool[0], three);
        let cond = self.b.compare(CompareOp::Gt, n, zero);
        let [then, otherwise] = [(); 2].map(|()| self.b.func.new_region(&[]));
        self.scoped(then, |g| {
            let mut args = vec![g.b.binary(BinaryOp::Sub, n, one)];
            args.extend(TAKEN[1..].iter().map(|&ty| g.of_type(ty)));
            let inst = g.b.inst(Op::Call { func, args }, &GIVEN);
            let results = g.b.func.insts[inst].results.clone();
            g.b.yields(results);
        });
        self.scoped(otherwise, |g| {
            let values = GIVEN.iter().map(|&ty| g.of_type(ty)).collect();
            g.b.yields(values);
        });
        let op = Op::If {
            cond,
            then,
            otherwise,
        };
        let inst = self.b.inst(op, &GIVEN);
        self.pool.extend(&self.b.func.insts[inst].results);
    }

    /// A function without access to memory.
    fn function(&mut self) {
        let body = self.b.func.body;
        self.pool.clone_from(&self.b.func.regions[body].params);
        if self.rng.one_in(3) {
            self.recursion();
        }
        self.budget = self.rng.pick(&[4, 12, 40]);
        self.statements(8);
        let values = GIVEN.iter().map(|&ty| self.of_type(ty)).collect();
        self.b.yields(values);
    }

    fn parallel(&mut self, counter: Value) {
        let own = FieldId::from_u32(self.rng.below(3) as u32);
        let atomic = FieldId::from_u32(if own.as_u32() == 0 { 2 } else { 0 });
        let region;
        self.over_sparse = false;
        let mut offset = None;
        let saved = self.pool.len();
        let locals = std::mem::take(&mut self.locals);
        let attrs = LoopAttrs {
            serial: self.rng.one_in(5),
            ..LoopAttrs::default()
        };
        if self.shape.is_empty() || self.rng.one_in(2) {
            region = self.b.func.new_region(&vec![Type::I32; self.shape.len()]);
            let (node, first) = self.env.cells_of(own);
            let tree = &self.env.trees[node.tree];
            let in_word = tree[node.node].kind.word().is_some();
            self.over_sparse = tree.is_below_sparse(node.node) || in_word;
            offset = Some(first);
            self.b.effect(Op::ParallelCells {
                node,
                attrs,
                body: region,
            });
        } else {
            let elem = self.rng.pick(&[ScalarType::I32, ScalarType::I64]);
            let (mut lo, mut hi) = (Vec::new(), Vec::new());
            for &extent in self.shape {
                let ends = [
                    self.lo + self.rng.below(3) as i32,
                    self.lo + extent - self.rng.below(4) as i32,
                ];
                let [first, end] = ends.map(|end| {
                    let end = self.b.i32(end);
                    self.b.cast(end, elem.into())
                });
                lo.push(first);
                hi.push(end);
            }
            region = self.b.func.new_region(&vec![elem.into(); lo.len()]);
            self.b.effect(Op::Parallel {
                lo,
                hi,
                attrs,
                body: region,
            });
        }
        let outer = std::mem::replace(&mut self.b.region, region);
        let mut indices = self.b.func.regions[region].params.clone();
        if let Some(offset) = offset {
            for (index, first) in indices.iter_mut().zip(offset) {
                let first = self.b.i32(first);
                *index = self.b.binary(BinaryOp::Add, *index, first);
            }
        }
        self.readable = (0..3)
            .map(FieldId::from_u32)
            .filter(|&f| f != own && f != atomic)
            .collect();
        self.pool.extend(&indices);
        self.own = Some((own, indices));
        // The length of a list is read while the loop runs, which must not make it longer.
        let grows = self.over_sparse && self.in_one_list(own, atomic);
        self.shared = (!grows).then_some((atomic, counter));
        self.writes_arrays = false;
        self.budget = 40;
        self.loops.push((Vec::new(), attrs.serial));
        match self.rng.below(6) {
            0 | 1 => self.reduce(),
            2 => self.scatter(),
            _ => {}
        }
        self.statements(8);
        self.b.yields(Vec::new());
        self.loops.pop();
        self.b.region = outer;
        (self.own, self.shared) = (None, None);
        self.pool.truncate(saved);
        self.locals = locals;
    }

    /// Whether elements of both fields lie in the cells of one dynamic node.
    fn in_one_list(&self, a: FieldId, b: FieldId) -> bool {
        let list = |field: FieldId| {
            let data = &self.env.fields[field];
            let tree = &self.env.trees[data.tree];
            let chain = tree.sparse_chain(data.places[0]).into_iter();
            let mut lists = chain.filter(|&n| matches!(tree[n].kind, NodeKind::Dynamic { .. }));
            lists.next()
        };
        list(a).is_some() && list(a) == list(b)
    }

    /// Gathers numbers in one element of the field of atomics, perhaps only in some iterations.
    /// The field sees no other atomics then.
    fn reduce(&mut self) {
        let Some((field, counter)) = self.shared.take() else {
            return;
        };
        let of_bits = [
            AtomicOp::Add,
            AtomicOp::Sub,
            AtomicOp::Mul,
            AtomicOp::And,
            AtomicOp::Or,
            AtomicOp::Xor,
        ];
        let op = if self.env.quant(field).is_none() && self.rng.one_in(4) {
            // Of numbers that are cut off, the least depends on the order.
            self.rng.pick(&[AtomicOp::Min, AtomicOp::Max])
        } else {
            self.rng.pick(&of_bits)
        };
        let indices = self
            .shape
            .iter()
            .map(|&n| {
                let at = self.lo + self.rng.below(n as usize) as i32;
                self.b.i32(at)
            })
            .collect();
        let place = self.place(field, indices);
        self.maybe(|g| {
            let ty = g.b.func.ty(place).pointee().expect("a storage");
            let value = g.of_type(ty);
            g.b.value(Op::Atomic { op, place, value }, ty);
        });
        self.maybe(|g| {
            let value = g.scalar(ScalarType::I32, 2);
            let place = counter;
            g.b.value(Op::Atomic { op, place, value }, Type::I32);
        });
    }

    /// Adds numbers to elements of the field of atomics around the own one, where there are any. The field sees
    /// no other atomics then.
    fn scatter(&mut self) {
        let Some((_, own)) = self.own.clone() else {
            return;
        };
        let Some((field, _)) = self.shared.take() else {
            return;
        };
        for _ in 0..2 + self.rng.below(4) {
            let mut inside = self.b.constant(Scalar::bool(true));
            let mut indices = Vec::new();
            for (&index, &n) in own.iter().zip(self.shape) {
                let ty = self.b.func.ty(index);
                let distance = self.rng.below(5) as i32 - 2;
                let [distance, lo, hi] = [distance, self.lo, self.lo + n].map(|v| {
                    let v = self.b.i32(v);
                    self.b.cast(v, ty)
                });
                let index = self.b.binary(BinaryOp::Add, index, distance);
                for (op, end) in [(CompareOp::Ge, lo), (CompareOp::Lt, hi)] {
                    let ok = self.b.compare(op, index, end);
                    inside = self.b.binary(BinaryOp::And, inside, ok);
                }
                indices.push(index);
            }
            let op = self.rng.pick(&[AtomicOp::Add, AtomicOp::Sub]);
            let [then, otherwise] = [(); 2].map(|()| self.b.func.new_region(&[]));
            self.scoped(then, |g| {
                let place = g.place(field, indices);
                let ty = g.b.func.ty(place).pointee().expect("a storage");
                let value = g.of_type(ty);
                g.b.value(Op::Atomic { op, place, value }, ty);
                g.b.yields(Vec::new());
            });
            self.scoped(otherwise, |g| g.b.yields(Vec::new()));
            self.b.effect(Op::If {
                cond: inside,
                then,
                otherwise,
            });
        }
    }
}
