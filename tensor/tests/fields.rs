//! Made-up programs over fields of sparse trees: what they mean, what they mean after each pass, and what their kernels do
//! is the same, and so are the cells that are active afterwards.
//!
//! `AEROGEL_N_PROGRAMS` says how many, `AEROGEL_FIRST_SEED` which come first. Numbers are whole and small, so that the order of
//! sums does not show.

#[path = "support/each.rs"]
mod each;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use aerogel_base::{Scalar, ScalarType, Span};
use aerogel_compiler::{Compiler, Config};
use aerogel_ir::{BinaryOp, CompareOp, TreeId, UnaryOp, eval};
use aerogel_runtime::TreeMemory;
use aerogel_snode::{NodeKind, parse_nodes};
use aerogel_tensor::interp::run_over;
use aerogel_tensor::ir::Array;
use aerogel_tensor::passes::Options;
use aerogel_tensor::{
    Accum, Buffer, Codes, Dim, Expr, Fields, For, Given, Operand, Outside, Plan, Program,
    RegionDef, Role, Run, RunError, Runner, Settings, Stmt, Store, parse, verify,
};
use each::Follower;

/// Layouts with fields in the same cells, and elsewhere.
const TREES: &[&str] = &[
    "bitmasked i:8 j:6 { place x: i32, place y: f64 }",
    "pointer i:4 j:3 { dense i:2 j:2 { place x: i32, place y: f64, place z: i32 } }",
    "pointer i:4 j:3 { bitmasked i:2 j:2 { place x: i32 } dense i:2 j:2 { place y: i32 } }",
    "hash i:4 j:3 { pointer i:2 { dense j:2 { place x: f64, place y: i32 } } }",
    "dense i:8 j:6 { place x: i32, place y: f64 }",
    "dense i:2 { pointer i:4 { dynamic j:6 chunk=4 { place x: i32, place y: i32 } } }",
    "dynamic i:24 chunk=4 { place x: i32, place y: f64 }",
    "pointer i:4 { dense i:2 j:6 { bit_struct bits=32 { place x: qi12/i32, place y: qi16*0.5/f32 } place z: i32 } }",
    "pointer k:2 { pointer i:2 { bitmasked j:5 k:2 { place x: i32, place y: i32 } } }",
];

struct Maker {
    state: u64,
    program: Program,
    /// Fields of which two lie in the same cells.
    fields: Vec<Buffer>,
    /// Arrays over the fields' space, or with one number.
    arrays: Vec<Buffer>,
    /// What has been made at the cells of a field, which are as they were then.
    made: Vec<(Buffer, Buffer)>,
    domain: Vec<Dim>,
    body: Vec<Stmt>,
}

fn store(target: Buffer, index: Vec<Expr>, value: Expr, outside: Outside) -> Store {
    Store {
        target,
        index,
        value,
        accum: None,
        init: false,
        outside,
    }
}

impl Maker {
    fn number(&mut self, n: usize) -> usize {
        let (next, bits) = eval::random_step(self.state);
        self.state = next;
        (bits >> 8) as usize % n.max(1)
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.number(one_in) == 0
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.number(all.len())]
    }

    fn field(&mut self) -> Buffer {
        let fields = self.fields.clone();
        self.one_of(&fields)
    }

    fn axes(&mut self) -> Vec<Expr> {
        self.program.axes(self.domain.len())
    }

    /// An element near the point.
    fn near(&mut self, buffer: Buffer) -> Expr {
        let mut index = self.program.axes(self.program.buffers[buffer].shape.len());
        let mut outside = Outside::Never;
        if !self.chance(3) && !index.is_empty() {
            let k = self.number(index.len());
            let by = self.number(5) as i32 - 2;
            let by = self.program.exprs.i32(by);
            index[k] = self.program.exprs.binary(BinaryOp::Add, index[k], by);
            outside = self.one_of(&[Outside::Clamp, Outside::Wrap, Outside::Zero]);
        }
        self.program.load(buffer, index, outside)
    }

    /// A small number, at the cells of a field if one is given.
    fn value(&mut self, cells: Option<Buffer>, ty: ScalarType, depth: usize) -> Expr {
        let e = match self.number(6) {
            0 | 1 if depth > 0 => {
                let [a, b] = [0, 1].map(|_| self.value(cells, ty, depth - 1));
                let op = self.one_of(&[BinaryOp::Add, BinaryOp::Sub, BinaryOp::Max, BinaryOp::Mul]);
                self.program.exprs.binary(op, a, b)
            }
            2 if depth > 0 => {
                let [a, b, c, d] = [0, 1, 2, 3].map(|_| self.value(cells, ty, depth - 1));
                let cond = self.program.exprs.compare(CompareOp::Lt, a, b);
                self.program.exprs.select(cond, c, d)
            }
            3 => {
                let field = self.field();
                self.near(field)
            }
            4 => {
                let arrays = self.arrays.clone();
                let array = self.one_of(&arrays);
                self.near(array)
            }
            _ => {
                let here = self.made.iter().filter(|(_, at)| Some(*at) == cells);
                let here: Vec<Buffer> = here.map(|(b, _)| *b).collect();
                if here.is_empty() {
                    let k = self.number(self.domain.len()) as u32;
                    self.program.exprs.axis(k)
                } else {
                    let made = self.one_of(&here);
                    let index = self.axes();
                    self.program.load(made, index, Outside::Never)
                }
            }
        };
        let e = self.program.exprs.cast(e, ty);
        let most = self.program.exprs.constant(match ty.is_float() {
            true => Scalar::float(ty, 11.0),
            false => Scalar::int(ty, 11),
        });
        self.program.exprs.binary(BinaryOp::Rem, e, most)
    }

    fn all(&mut self, cells: Option<Buffer>, body: Vec<Stmt>) {
        self.body.push(Stmt::For(For {
            domain: self.domain.clone(),
            cells,
            body,
            span: Span::NONE,
        }));
    }

    /// A value at the cells of a field.
    fn at_cells(&mut self) {
        let cells = self.field();
        let ty = self.one_of(&[ScalarType::I32, ScalarType::F64]);
        let value = self.value(Some(cells), ty, 2);
        let target = self.program.temporary(ty, &self.domain.clone());
        let index = self.axes();
        self.all(
            Some(cells),
            vec![Stmt::Store(store(
                target,
                index.clone(),
                value,
                Outside::Never,
            ))],
        );
        self.made.push((target, cells));
        if self.chance(4) {
            let value = self.value(Some(cells), ty, 1);
            let mut more = store(target, index, value, Outside::Never);
            more.accum = Some(Accum::Max);
            self.all(Some(cells), vec![Stmt::Store(more)]);
        }
    }

    /// What is zero at all points but the cells of a field.
    fn dense(&mut self, cells: Buffer, value: Expr) -> Buffer {
        let ty = self.program.exprs.ty(value);
        let target = self.program.temporary(ty, &self.domain.clone());
        let index = self.axes();
        let zero = self.program.exprs.constant(Scalar::zero(ty));
        let first = store(target, index.clone(), zero, Outside::Never);
        self.all(None, vec![Stmt::Store(first)]);
        let second = Stmt::Store(store(target, index, value, Outside::Never));
        let second = match self.chance(2) {
            true => second,
            false => {
                let [a, b] = [0, 1].map(|_| self.value(Some(cells), ScalarType::I32, 1));
                let some = self.program.exprs.compare(CompareOp::Lt, a, b);
                Stmt::If(some, vec![second], Vec::new())
            }
        };
        self.all(Some(cells), vec![second]);
        target
    }

    /// A value at all points, of which those at the cells of a field are known, and others are zero.
    fn scattered(&mut self) {
        let Some(&(made, cells)) = self.made.last() else {
            return self.everywhere();
        };
        let index = self.axes();
        let value = self.program.load(made, index, Outside::Never);
        let target = self.dense(cells, value);
        self.arrays.push(target);
    }

    fn everywhere(&mut self) {
        let ty = self.one_of(&[ScalarType::I32, ScalarType::F64]);
        let value = self.value(None, ty, 2);
        let domain = self.domain.clone();
        let target = self.program.map(&domain, value, Span::NONE);
        self.body.append(&mut self.program.body);
        self.arrays.push(target);
    }

    /// Stores to the cells themselves.
    fn in_place(&mut self) {
        let cells = self.field();
        let same: Vec<Buffer> = self
            .fields
            .iter()
            .copied()
            .filter(|&f| self.program.holder(f) == self.program.holder(cells))
            .collect();
        let target = self.one_of(&same);
        let ty = self.program.buffers[target].ty;
        // What a point reads of the target, its neighbours do not change.
        let value = self.value(Some(cells), ty, 1);
        let before = self.program.temporary(ty, &self.domain.clone());
        let index = self.axes();
        let first = store(before, index.clone(), value, Outside::Never);
        self.all(Some(cells), vec![Stmt::Store(first)]);
        let value = self.program.load(before, index.clone(), Outside::Never);
        let mut second = store(target, index, value, Outside::Never);
        if self.chance(3) {
            second.accum = Some(Accum::Max);
        }
        self.all(Some(cells), vec![Stmt::Store(second)]);
    }

    /// Stores that make cells active.
    fn activate(&mut self) {
        let target = self.field();
        let ty = self.program.buffers[target].ty;
        let value = self.value(None, ty, 1);
        let domain = self.domain.clone();
        let before = self.program.map(&domain, value, Span::NONE);
        self.body.append(&mut self.program.body);
        let mut index = self.axes();
        let by = self.number(3) as i32 - 1;
        let by = self.program.exprs.i32(by);
        let point = index.clone();
        let k = self.number(index.len());
        index[k] = self.program.exprs.binary(BinaryOp::Add, index[k], by);
        // Some points store nothing.
        let cells = self.chance(2).then(|| self.field());
        let [a, b] = [0, 1].map(|_| self.value(cells, ScalarType::I32, 1));
        let cond = self.program.exprs.compare(CompareOp::Lt, a, b);
        let where_ = match cells {
            Some(cells) => self.dense(cells, cond),
            None => self.program.map(&domain, cond, Span::NONE),
        };
        self.body.append(&mut self.program.body);
        let cond = self.program.load(where_, point.clone(), Outside::Never);
        if cells.is_none() {
            let nowhere = self.program.exprs.i32(-1);
            index[k] = self.program.exprs.select(cond, index[k], nowhere);
        }
        let value = self.program.load(before, point, Outside::Never);
        let mut change = store(target, index, value, Outside::Zero);
        if self.chance(3) && !self.is_quantised(target) {
            change.accum = Some(Accum::Add);
        }
        let change = Stmt::Store(change);
        let elsewhere = self.program.exprs.unary(UnaryOp::Not, cond);
        let change = match cells {
            Some(_) if self.chance(3) => Stmt::If(elsewhere, vec![change], Vec::new()),
            Some(_) => Stmt::If(cond, vec![change], Vec::new()),
            None => change,
        };
        self.all(None, vec![change]);
        self.made.clear();
    }

    fn is_quantised(&self, field: Buffer) -> bool {
        match self.program.buffers[field].role {
            Role::Field(tree, place) => {
                matches!(self.program.trees[tree][place].kind, NodeKind::Bits(_))
            }
            _ => false,
        }
    }

    /// A kernel of the user's, with memory of its own and an array that it reads.
    fn run(&mut self) {
        let ty = ScalarType::I32;
        let value = self.value(None, ty, 1);
        let domain = self.domain.clone();
        let memory = self.program.map(&domain, value, Span::NONE);
        self.body.append(&mut self.program.body);
        let reads = self.arrays[0];
        let returned = self.program.temporary(ty, &[]);
        let fields = self.chance(2);
        let region = self.program.regions.push(RegionDef {
            name: "mixed".to_owned(),
            writes: vec![true, false],
            trees: if fields {
                vec![TreeId::from_u32(0)]
            } else {
                Vec::new()
            },
            runner: Some(Arc::new(Mixed)),
        });
        self.body.push(Stmt::Run(Run {
            region,
            arrays: vec![memory, reads],
            results: vec![returned],
            span: Span::NONE,
        }));
        if fields {
            self.made.clear();
        }
        self.arrays.extend([memory, returned]);
    }

    /// A sum over cells.
    fn reduce(&mut self) {
        let cells = self.field();
        let ty = self.one_of(&[ScalarType::I32, ScalarType::F64]);
        // A count says which cells there are, whatever they hold.
        let value = match self.chance(2) {
            true => self.program.exprs.constant(Scalar::one(ty)),
            false => self.value(Some(cells), ty, 1),
        };
        let n_kept = self.number(2);
        let shape = self.domain[..n_kept].to_vec();
        let target = self.program.temporary(ty, &shape);
        let index = self.program.axes(n_kept);
        let mut sum = store(target, index, value, Outside::Never);
        sum.accum = Some(self.one_of(&[Accum::Add, Accum::Min, Accum::Max]));
        sum.init = true;
        self.all(Some(cells), vec![Stmt::Store(sum)]);
        if n_kept == 0 {
            self.arrays.push(target);
        } else {
            self.program.results.push(target);
        }
    }

    fn statement(&mut self, depth: usize) {
        match self.number(10) {
            8 => self.run(),
            0 | 1 => self.at_cells(),
            2 => self.scattered(),
            3 => self.everywhere(),
            4 => self.in_place(),
            5 => self.activate(),
            6 | 7 => self.reduce(),
            _ if depth > 0 => {
                let (arrays, outer) = (self.arrays.len(), std::mem::take(&mut self.body));
                self.made.clear();
                for _ in 0..3 {
                    self.statement(depth - 1);
                }
                self.made.clear();
                self.arrays.truncate(arrays);
                let body = std::mem::replace(&mut self.body, outer);
                let var = self.program.var(ScalarType::I32);
                let [lo, hi] = [0, 2].map(|n| self.program.exprs.i32(n));
                self.body.push(Stmt::Loop {
                    var,
                    lo,
                    hi,
                    step: 1,
                    body,
                });
            }
            _ => self.at_cells(),
        }
    }
}

/// What stands for a kernel: the numbers of one array, each with one of the other's, and their sum.
struct Mixed;

impl Runner for Mixed {
    fn run(&self, arrays: Vec<Operand>) -> Result<(Vec<Operand>, Vec<Scalar>), RunError> {
        let [a, b] = [0, 1].map(|k| arrays[k].to_array().unwrap().data);
        let mut sum = 0;
        for (k, (x, y)) in a.iter().zip(b.iter().rev()).enumerate() {
            let new = (x.as_i128() * 3 + y.as_i128()) as i32 % 13;
            sum += new;
            arrays[0].buffer.write_scalar(k * 4, Scalar::i32(new))?;
        }
        Ok((arrays, vec![Scalar::i32(sum % 100)]))
    }
}

fn program(seed: u64) -> Program {
    let mut maker = Maker {
        state: seed,
        program: Program::default(),
        fields: Vec::new(),
        arrays: Vec::new(),
        made: Vec::new(),
        domain: Vec::new(),
        body: Vec::new(),
    };
    let text = TREES[seed as usize % TREES.len()];
    let tree = Arc::new(parse_nodes(text).unwrap());
    let places: Vec<_> = tree.places().map(|(place, _)| place).collect();
    let bits = tree
        .nodes()
        .filter(|(_, n)| matches!(n.kind, NodeKind::Bits(_)));
    let mut places: Vec<_> = places.into_iter().chain(bits.map(|(id, _)| id)).collect();
    places.sort_unstable();
    places.dedup();
    let tree = maker.program.tree(tree);
    for place in places {
        let name = maker.program.trees[tree][place].name.clone();
        let field = maker.program.field(&name, tree, place);
        maker.fields.push(field);
    }
    maker.domain = maker.program.buffers[maker.fields[0]].shape.clone();
    let extents: Vec<Option<u64>> = maker
        .domain
        .iter()
        .map(|&d| maker.program.const_dim(d))
        .collect();
    let a = maker.program.input("a", ScalarType::I32, &extents);
    maker.arrays.push(a);
    for _ in 0..3 + maker.number(8) {
        maker.statement(1);
    }
    // What nobody asks for may lie in trees.
    for &array in &maker.arrays.clone()[1..] {
        if maker.chance(2) {
            maker.program.results.push(array);
        }
    }
    maker.program.body = maker.body;
    maker.program
}

/// What a program begins with: its input, and its fields in memory and for the interpreter.
struct Begin {
    input: Array,
    fields: Fields,
    memory: Arc<TreeMemory>,
}

fn points(shape: &[usize]) -> Vec<Vec<i32>> {
    let mut all = vec![Vec::new()];
    for &n in shape {
        let longer = |p: &Vec<i32>| -> Vec<Vec<i32>> {
            (0..n as i32).map(|i| [&p[..], &[i]].concat()).collect()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

fn wide(point: &[i32]) -> Vec<i64> {
    point.iter().map(|&i| i64::from(i)).collect()
}

fn begin(program: &Program, seed: u64) -> Begin {
    let mut state = seed ^ 0x5eed;
    let mut number = |n: u64| {
        let (next, bits) = eval::random_step(state);
        state = next;
        (bits >> 20) % n
    };
    let tree = program.trees[TreeId::from_u32(0)].clone();
    let memory = Arc::new(TreeMemory::new(tree, 0).unwrap());
    let mut fields = Fields::of(program);
    let all: Vec<Buffer> = program.fields().collect();
    let one_in = 2 + number(6);
    for &field in &all {
        let Role::Field(_, place) = program.buffers[field].role else {
            unreachable!()
        };
        let ty = program.buffers[field].ty;
        let shape = fields.array(field).shape.clone();
        for (k, point) in points(&shape).into_iter().enumerate() {
            if number(one_in) == 0 {
                let n = number(9) as i64;
                let value = match ty.is_float() {
                    true => Scalar::float(ty, n as f64),
                    false => Scalar::int(ty, n.into()),
                };
                memory.write_component(place, &wide(&point), value).unwrap();
                fields.activate(program, field, &point);
                fields.array(field).data[k] = value;
            }
        }
    }
    let shape = fields.array(all[0]).shape.clone();
    let data = 0..shape.iter().product();
    let input = Array {
        ty: ScalarType::I32,
        data: data.map(|_| Scalar::i32(number(19) as i32)).collect(),
        shape,
    };
    Begin {
        input,
        fields,
        memory,
    }
}

/// What a program gives, and what it leaves: arrays, fields, and which of their cells are active.
fn meaning(program: &Program, seed: u64) -> (Vec<Array>, Fields) {
    let Begin {
        input, mut fields, ..
    } = begin(program, seed);
    let mut inputs = [input];
    let mut results = run_over(program, &mut inputs, &mut fields).unwrap();
    results.extend(inputs);
    (results, fields)
}

/// Checks a program: the passes that changed it.
fn check(seed: u64, compiler: &Compiler) -> Vec<&'static str> {
    let program = program(seed);
    let text = program.to_string();
    verify(&program).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
    let again = parse(&text).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
    assert_eq!(again.to_string(), text, "seed {seed}");
    let mut again = again;
    again.regions = program.regions.clone();
    let expected = meaning(&program, seed);
    assert_eq!(
        meaning(&again, seed),
        expected,
        "seed {seed}, read again\n{text}"
    );
    let options = Options {
        most_dense: (seed % 2) << 20,
        ..Options::default()
    };
    let mut follower = Follower {
        label: format!("seed {seed}"),
        meaning: &|program: &Program| meaning(program, seed),
        expected: &expected,
        changed: Vec::new(),
    };
    if seed.is_multiple_of(4) {
        follower.run_each(&program, options);
    }
    let mut passed = program.clone();
    follower.run(&mut passed, options);
    let changed = follower.changed;
    let settings = Settings {
        compiler,
        fast_math: aerogel_ir::FastMath::Off,
        options,
        codes: &Codes::default(),
        most_kept: u64::MAX,
        stamp: seed,
        backend: 0,
        gemm: None,
        profiler: None,
    };
    let all: Vec<Buffer> = program.fields().collect();
    let plan =
        Plan::new(program.clone(), settings).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
    let Begin { input, memory, .. } = begin(&program, seed);
    let operands = [Operand::of(&input).unwrap()];
    let found = plan
        .run_with(
            operands.to_vec(),
            Given {
                trees: std::slice::from_ref(&memory),
                ..Given::default()
            },
        )
        .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
    let found = found.iter().chain(&operands);
    let found: Vec<Array> = found.map(|o| o.to_array().unwrap()).collect();
    let (arrays, mut fields) = expected;
    for (k, (found, expected)) in found.iter().zip(&arrays).enumerate() {
        assert_eq!(
            found, expected,
            "seed {seed}, compiled, array {k}\n{text}\n{passed}"
        );
    }
    for field in all {
        let Role::Field(_, place) = program.buffers[field].role else {
            unreachable!()
        };
        let array = fields.array(field).clone();
        for (k, point) in points(&array.shape).into_iter().enumerate() {
            let found = memory.read_component(place, &wide(&point)).unwrap();
            let is_active = fields.is_active(&program, field, &point);
            let expected = is_active.then_some(array.data[k]);
            assert_eq!(
                found, expected,
                "seed {seed}, compiled, {field} at {point:?}\n{text}\n{passed}"
            );
        }
    }
    changed
}

#[test]
fn all_say_the_same() {
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    let n: u64 = number("AEROGEL_N_PROGRAMS").unwrap_or(500);
    let first: u64 = number("AEROGEL_FIRST_SEED").unwrap_or(0);
    let next = AtomicU64::new(first);
    let changing = Mutex::new(BTreeSet::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let compiler = Compiler::new(Config {
                    max_threads: Some(2),
                    opt_level: 1,
                    ..Config::default()
                });
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + n {
                        return;
                    }
                    let changed = check(seed, &compiler);
                    changing.lock().unwrap().extend(changed);
                }
            });
        }
    });
    if n >= 500 && first == 0 {
        let changing = changing.into_inner().unwrap();
        assert!(
            ["zeros", "scratch"]
                .iter()
                .all(|name| changing.contains(name))
        );
    }
}
