//! Made-up kernels that have gradients: loops with carried state and exits, branches, local arrays, gathers, scatters,
//! reductions, over all layouts. They are written as text.

mod loops;

use std::fmt::Write;

/// Random numbers.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        let (next, bits) = aerogel_ir::eval::random_step(self.0);
        self.0 = next;
        ((bits >> 20) % n as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// How many elements the fields have.
const N: usize = 6;

/// Layouts of the places x, y, z, k below one tree, with p and s beside them.
const LAYOUTS: &[&str] = &[
    "dense i:6 { place x: f64, place y: f64, place z: f64, place k: i32 } place s: f64, place p: f64",
    "dense i:6 { place x: f64 } dense i:6 { place y: f64 } dense i:6 { place z: f64, place k: i32 } place s: f64, place p: f64",
    "dense i:2 { dense i:3 { place x: f64, place y: f64 } dense i:3 { place z: f64, place k: i32 } } place s: f64, place p: f64",
    "pointer i:2 { dense i:3 { place x: f64, place y: f64, place z: f64, place k: i32 } } place s: f64, place p: f64",
    "bitmasked i:6 { place x: f64, place y: f64, place z: f64, place k: i32 } place s: f64, place p: f64",
    "dense i:2 { bitmasked i:3 { place x: f64, place y: f64, place z: f64, place k: i32 } } place s: f64, place p: f64",
];

/// What gives the same in any order.
const SUMS: &[&str] = &["add", "add", "sub"];

struct Writer {
    rng: Rng,
    text: String,
    next: usize,
    /// Names of floats and of integers, those of inner scopes last.
    floats: Vec<String>,
    ints: Vec<String>,
    /// Local numbers and arrays of four.
    scalars: Vec<String>,
    arrays: Vec<String>,
    /// The counter of the parallel loop.
    counter: Option<String>,
    /// The fields that may be read, and those that may be written.
    read: Vec<&'static str>,
    written: Vec<&'static str>,
    /// How each written field is written in this loop: by its own element only, or by sums.
    own: &'static str,
    meets: Meets,
    /// How iterations change elements that they share: by what gives the same in any order.
    shared: &'static [&'static str],
    /// Whether a loop is around that may be left, and how deep loops are.
    in_loop: usize,
    budget: usize,
    /// Whether the parallel loop leaves out the first and the last element.
    has_rim: bool,
}

/// Which elements an iteration may touch.
#[derive(Clone, Copy, PartialEq)]
enum Meets {
    /// It reads some fields and writes another.
    Apart,
    /// It reads and writes its own elements of the written fields, and reads any of others.
    Own,
    /// It is alone, and may do anything.
    Alone,
}

/// A module whose kernel has a gradient, always the same for the same seed.
///
/// # Panics
/// If the text is not IR, which would be a bug here.
pub fn generate(seed: u64) -> aerogel_ir::Module {
    let text = text(seed);
    aerogel_ir::parse_module(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Its text.
pub fn text(seed: u64) -> String {
    let mut w = Writer {
        rng: Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 77),
        text: String::new(),
        next: 0,
        floats: Vec::new(),
        ints: Vec::new(),
        scalars: Vec::new(),
        arrays: Vec::new(),
        counter: None,
        read: Vec::new(),
        written: Vec::new(),
        own: "y",
        meets: Meets::Apart,
        shared: SUMS,
        in_loop: 0,
        budget: 0,
        has_rim: false,
    };
    w.head();
    w.kernel();
    w.text
}

impl Writer {
    fn head(&mut self) {
        let layout = *self.rng.pick(LAYOUTS);
        let nodes = aerogel_snode::parse_nodes(layout).expect("the layouts are valid");
        for (tree, prefix) in [(0, ""), (1, "g")] {
            let _ = writeln!(self.text, "tree{tree} {{ {layout} }}");
            let _ = prefix;
        }
        for (tree, prefix) in [(0, ""), (1, "g")] {
            for name in ["x", "y", "z", "k", "s", "p"] {
                let mut all = nodes.nodes();
                let place = all.find(|n| n.1.name == name).expect("a place").0;
                let ty = if name == "k" { "i32" } else { "f64" };
                let _ = write!(
                    self.text,
                    "field @{prefix}{name}: {ty} = tree{tree} [{place}]"
                );
                if tree == 0 && name != "k" {
                    let _ = write!(self.text, " grad @g{name} dual @g{name}");
                }
                self.text.push('\n');
            }
        }
    }

    fn name(&mut self) -> String {
        self.next += 1;
        format!("v{}", self.next)
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn def(&mut self, ty: &str, op: &str) -> String {
        let name = self.name();
        self.line(&format!("{name}: {ty} = {op}"));
        name
    }

    fn float(&mut self) -> String {
        match self.floats.is_empty() {
            true => {
                let value = (self.rng.below(19) as f64 - 9.0) / 7.0 + 0.01;
                self.def("f64", &format!("const {value:?}"))
            }
            false => {
                // New ones more often.
                let n = self.floats.len();
                let at = n - 1 - self.rng.below(n).min(self.rng.below(n));
                self.floats[at].clone()
            }
        }
    }

    fn int(&mut self) -> String {
        if self.ints.is_empty() || self.rng.one_in(4) {
            let value = self.rng.below(5);
            return self.def("i32", &format!("const {value}"));
        }
        let n = self.ints.len();
        self.ints[self.rng.below(n)].clone()
    }

    /// An integer below `n`, of whatever is at hand.
    fn index(&mut self, n: usize) -> String {
        let (a, b) = (self.int(), self.int());
        let sum = self.def("i32", &format!("add {a}, {b}"));
        let n = self.def("i32", &format!("const {n}"));
        self.def("i32", &format!("mod {sum}, {n}"))
    }

    fn kernel(&mut self) {
        self.line("kernel @k() {");
        self.in_kernel();
        self.line("return []");
        self.line("}");
    }

    fn in_kernel(&mut self) {
        let p = self.def("ref<f64>", "field_at @p, []");
        let p = self.def("f64", &format!("load {p}"));
        self.floats.push(p);
        if self.rng.one_in(2) {
            for _ in 0..1 + self.rng.below(3) {
                self.phase();
            }
            return;
        }
        // From x to y, and then from x and y to z.
        self.read = vec!["x"];
        let total = self.rng.one_in(2).then(|| self.def("ref<f64>", "local"));
        self.over("y", total.as_deref());
        if let Some(total) = total {
            let sum = self.def("f64", &format!("load {total}"));
            let bounded = self.def("f64", &format!("atan {sum}"));
            self.floats.push(bounded);
        }
        if self.rng.one_in(3) {
            self.budget = 4;
            self.statements();
        }
        if self.rng.one_in(2) {
            self.read.push("y");
            self.over("z", None);
        }
    }

    /// A parallel loop that writes a field.
    fn over(&mut self, field: &'static str, total: Option<&str>) {
        // What all iterations share they may not write.
        self.scalars.clear();
        self.arrays.clear();
        let floats = self.floats.len();
        self.has_rim = self.rng.one_in(2);
        let rim = usize::from(self.has_rim);
        let lo = self.def("i32", &format!("const {rim}"));
        let hi = self.def("i32", &format!("const {}", N - rim));
        let i = self.name();
        self.line(&format!("parallel [{lo}], [{hi}] ({i}: i32) {{"));
        self.ints.push(i.clone());
        self.counter = Some(i);
        self.written = vec![field];
        self.own = if self.rng.one_in(2) { field } else { "" };
        let shared: [&'static [&'static str]; 6] = [SUMS, SUMS, SUMS, &["mul"], &["min"], &["max"]];
        self.shared = *self.rng.pick::<&'static [&'static str]>(&shared);
        self.budget = 6 + self.rng.below(14);
        if self.has_rim {
            self.stencil();
        }
        self.statements();
        // Something is always left behind.
        self.write();
        if let Some(total) = total {
            let v = self.bounded();
            self.def("f64", &format!("atomic_add {total}, {v}"));
        }
        self.line("yield []");
        self.line("}");
        self.counter = None;
        self.ints.clear();
        self.floats.truncate(floats);
        self.scalars.clear();
        self.arrays.clear();
    }

    /// A loop that overwrites what it or another one reads.
    fn phase(&mut self) {
        match self.rng.below(3) {
            0 => {
                let fields = ["x", "y", "z"];
                let at = self.rng.below(3);
                self.read = vec![fields[(at + 1) % 3], fields[(at + 2) % 3]];
                self.over(fields[at], None);
            }
            1 => {
                self.read = vec!["x", "y", "z"];
                self.meets = Meets::Own;
                self.over_own();
                self.meets = Meets::Apart;
            }
            _ => {
                self.read = vec!["x", "y", "z"];
                self.meets = Meets::Alone;
                self.steps();
                self.meets = Meets::Apart;
            }
        }
    }

    /// A parallel loop whose iterations change elements of their own.
    fn over_own(&mut self) {
        let [lo, hi] = [0, N].map(|v| self.def("i32", &format!("const {v}")));
        let i = self.name();
        self.line(&format!("parallel [{lo}], [{hi}] ({i}: i32) {{"));
        self.scoped(|w| {
            w.ints.push(i.clone());
            w.counter = Some(i);
            w.written = vec!["x", "y"];
            w.budget = 6 + w.rng.below(14);
            w.write();
            w.gather();
            w.statements();
            w.write();
            w.counter = None;
        });
        self.line("yield []");
        self.line("}");
    }

    /// A loop in order over steps, perhaps inside a parallel one of one turn.
    fn steps(&mut self) {
        let is_inside = self.rng.one_in(3);
        if is_inside {
            let [lo, hi] = [0, 1].map(|v| self.def("i32", &format!("const {v}")));
            let name = self.name();
            self.line(&format!("parallel [{lo}], [{hi}] ({name}: i32) {{"));
        }
        let n = 1 + self.rng.below(4);
        let [lo, hi, step] = [0, n, 1].map(|v| self.def("i32", &format!("const {v}")));
        let i = self.name();
        self.line(&format!("for {lo}, {hi}, {step}, [] ({i}: i32) {{"));
        self.in_loop += 1;
        self.scoped(|w| {
            w.ints.push(i);
            w.written = vec!["x", "y", "z"];
            w.budget = 6 + w.rng.below(10);
            w.gather();
            w.write();
            w.statements();
            w.write();
            w.line("yield []");
        });
        self.in_loop -= 1;
        self.line("}");
        if is_inside {
            self.line("yield []");
            self.line("}");
        }
    }

    /// A number between -1 and 1.
    fn bounded(&mut self) -> String {
        let v = self.float();
        self.def("f64", &format!("sin {v}"))
    }

    fn scoped(&mut self, write: impl FnOnce(&mut Self)) {
        let lens = [
            self.floats.len(),
            self.ints.len(),
            self.scalars.len(),
            self.arrays.len(),
        ];
        write(self);
        self.floats.truncate(lens[0]);
        self.ints.truncate(lens[1]);
        self.scalars.truncate(lens[2]);
        self.arrays.truncate(lens[3]);
    }

    fn statements(&mut self) {
        let n = 1 + self.rng.below(6);
        for _ in 0..n {
            if self.budget == 0 {
                return;
            }
            self.budget -= 1;
            self.statement();
        }
    }

    fn statement(&mut self) {
        match self.rng.below(18) {
            0..=3 => self.compute(),
            4 if self.rng.one_in(2) => self.stencil(),
            4 => self.gather(),
            5 => {
                let place = self.def("ref<f64>", "local");
                let v = self.bounded();
                self.line(&format!("store {place}, {v}"));
                self.scalars.push(place);
            }
            6 | 7 => self.change_local(),
            8 => {
                let array = self.def("ref<vec<4, f64>>", "local");
                self.arrays.push(array);
            }
            9 | 10 => self.change_array(),
            11 | 12 => self.branch(),
            13 => self.counted(),
            14 if self.rng.one_in(2) => self.march(),
            14 => self.repeated(),
            15 => self.write(),
            16 => {
                let v = self.def("f64", "random");
                self.floats.push(v);
            }
            _ => self.choose(),
        }
    }

    fn gather(&mut self) {
        let field = *self.rng.pick(&self.read.clone());
        let is_own = self.meets == Meets::Own && self.written.contains(&field);
        let at = match self.counter.clone().filter(|_| is_own) {
            Some(i) => i,
            None => self.index(N),
        };
        let place = self.def("ref<f64>", &format!("field_at @{field}, [{at}]"));
        let v = self.def("f64", &format!("load {place}"));
        self.floats.push(v);
        if self.rng.one_in(2) {
            let place = self.def("ref<i32>", &format!("field_at @k, [{at}]"));
            let k = self.def("i32", &format!("load {place}"));
            let k = self.def("i32", &format!("mul {k}, {k}"));
            let five = self.def("i32", "const 5");
            let k = self.def("i32", &format!("mod {k}, {five}"));
            self.ints.push(k);
        }
    }

    /// Neighbours at constant distances, where the loop leaves room for them.
    fn stencil(&mut self) {
        let is_apart = self.has_rim && self.meets == Meets::Apart;
        let Some(i) = self.counter.clone().filter(|_| is_apart) else {
            return self.gather();
        };
        let field = *self.rng.pick(&self.read.clone());
        for _ in 0..2 {
            let by = *self.rng.pick(&["-1", "0", "1"]);
            let by = self.def("i32", &format!("const {by}"));
            let at = self.def("i32", &format!("add {i}, {by}"));
            let place = self.def("ref<f64>", &format!("field_at @{field}, [{at}]"));
            let v = self.def("f64", &format!("load {place}"));
            self.floats.push(v);
        }
    }

    fn compute(&mut self) {
        let (a, b) = (self.bounded(), self.float());
        let r = match self.rng.below(22) {
            0 => self.def("f64", &format!("add {a}, {b}")),
            1 => self.def("f64", &format!("sub {b}, {a}")),
            2 | 3 => {
                let b = self.bounded();
                self.def("f64", &format!("mul {a}, {b}"))
            }
            4 => {
                let square = self.def("f64", &format!("mul {a}, {a}"));
                let one = self.def("f64", "const 1.0");
                let sum = self.def("f64", &format!("add {square}, {one}"));
                self.def("f64", &format!("div {b}, {sum}"))
            }
            5 => {
                let b = self.bounded();
                self.def("f64", &format!("fma {a}, {b}, {a}"))
            }
            6 => {
                let op = *self.rng.pick(&["exp", "exp2", "tan", "sinh", "cosh"]);
                self.def("f64", &format!("{op} {a}"))
            }
            7 => {
                let half = self.def("f64", "const 0.5");
                let a = self.def("f64", &format!("mul {a}, {half}"));
                let op = *self.rng.pick(&["asin", "acos"]);
                self.def("f64", &format!("{op} {a}"))
            }
            8 => {
                let op = *self.rng.pick(&["tanh", "atan", "neg", "cos"]);
                self.def("f64", &format!("{op} {b}"))
            }
            9..=11 => {
                let two = self.def("f64", "const 2.5");
                let sum = self.def("f64", &format!("add {a}, {two}"));
                let op = *self.rng.pick(&["sqrt", "rsqrt", "log", "log2"]);
                self.def("f64", &format!("{op} {sum}"))
            }
            12 => {
                let two = self.def("f64", "const 1.5");
                let sum = self.def("f64", &format!("add {a}, {two}"));
                let b = self.bounded();
                self.def("f64", &format!("pow {sum}, {b}"))
            }
            13 => {
                let two = self.def("f64", "const 1.5");
                let sum = self.def("f64", &format!("add {a}, {two}"));
                self.def("f64", &format!("atan2 {b}, {sum}"))
            }
            14 | 15 => {
                let op = *self.rng.pick(&["max", "min"]);
                self.def("f64", &format!("{op} {a}, {b}"))
            }
            16 => self.def("f64", &format!("abs {b}")),
            17 => {
                let three = self.def("f64", "const 3.0");
                let op = *self.rng.pick(&["mod", "rem"]);
                self.def("f64", &format!("{op} {b}, {three}"))
            }
            18 => {
                let k = self.int();
                let k = self.def("f64", &format!("cast {k}"));
                self.def("f64", &format!("mul {a}, {k}"))
            }
            19 => self.def("f64", &format!("trunc {b}")),
            20 => {
                let a = self.def("f32", &format!("cast {a}"));
                let zero = self.def("f32", "const 0.0");
                let a = self.def("f32", &format!("mul {a}, {zero}"));
                let a = self.def("f64", &format!("cast {a}"));
                self.def("f64", &format!("add {a}, {b}"))
            }
            _ => self.def("f64", &format!("floor {b}")),
        };
        self.floats.push(r);
    }

    fn change_local(&mut self) {
        let Some(place) = self.scalars.last().cloned() else {
            return self.compute();
        };
        let old = self.def("f64", &format!("load {place}"));
        self.floats.push(old.clone());
        let v = self.bounded();
        let op = *self.rng.pick(&["add", "mul", "sub"]);
        let new = self.def("f64", &format!("{op} {old}, {v}"));
        let new = self.def("f64", &format!("atan {new}"));
        match self.rng.below(4) {
            0 => {
                let op = *self.rng.pick(&["atomic_add", "atomic_sub", "atomic_mul"]);
                self.def("f64", &format!("{op} {place}, {v}"));
            }
            1 => self.line(&format!("store {place}, {v}")),
            _ => self.line(&format!("store {place}, {new}")),
        }
    }

    fn change_array(&mut self) {
        let Some(array) = self.arrays.last().cloned() else {
            return self.compute();
        };
        let at = self.index(4);
        let place = self.def("ref<f64>", &format!("elem_ref {array}, [{at}]"));
        let old = self.def("f64", &format!("load {place}"));
        self.floats.push(old.clone());
        let v = self.bounded();
        match self.rng.below(3) {
            0 => {
                self.def("f64", &format!("atomic_add {place}, {v}"));
            }
            _ => {
                let op = *self.rng.pick(&["add", "mul"]);
                let new = self.def("f64", &format!("{op} {old}, {v}"));
                let new = self.def("f64", &format!("sin {new}"));
                self.line(&format!("store {place}, {new}"));
            }
        }
    }

    fn condition(&mut self) -> String {
        let (a, b) = (self.int(), self.int());
        let op = *self.rng.pick(&["lt", "eq", "ge"]);
        self.def("u1", &format!("{op} {a}, {b}"))
    }

    fn choose(&mut self) {
        let cond = self.condition();
        let (a, b) = (self.float(), self.bounded());
        let v = self.def("f64", &format!("select {cond}, {a}, {b}"));
        self.floats.push(v);
    }

    fn branch(&mut self) {
        let cond = self.condition();
        if self.rng.one_in(3) {
            // As a value.
            let name = self.name();
            self.line(&format!("{name}: f64 = if {cond} {{"));
            for branch in 0..2 {
                self.scoped(|w| {
                    w.compute();
                    let v = w.bounded();
                    w.line(&format!("yield [{v}]"));
                });
                self.line(if branch == 0 { "} {" } else { "}" });
            }
            self.floats.push(name);
            return;
        }
        self.line(&format!("if {cond} {{"));
        for branch in 0..2 {
            self.scoped(|w| {
                w.statements();
                if w.in_loop > 0 && w.rng.one_in(3) {
                    let exit = *w.rng.pick(&["break", "continue"]);
                    w.line(&format!("{exit} []"));
                } else {
                    w.line("yield []");
                }
            });
            self.line(if branch == 0 { "} {" } else { "}" });
        }
    }

    /// Any change of an element that no other iteration touches.
    fn change(&mut self) {
        let field = *self.rng.pick(&self.written.clone());
        let at = match self.counter.clone() {
            Some(i) => i,
            None => self.index(N),
        };
        if self.meets == Meets::Alone && self.rng.one_in(5) {
            let place = self.def("ref<i32>", &format!("field_at @k, [{at}]"));
            let k = self.def("i32", &format!("load {place}"));
            let by = self.int();
            let k = self.def("i32", &format!("add {k}, {by}"));
            self.line(&format!("store {place}, {k}"));
        }
        let place = self.def("ref<f64>", &format!("field_at @{field}, [{at}]"));
        let v = self.bounded();
        match self.rng.below(8) {
            0..=2 => self.line(&format!("store {place}, {v}")),
            3 => {
                let old = self.def("f64", &format!("load {place}"));
                let product = self.def("f64", &format!("mul {old}, {v}"));
                let new = self.def("f64", &format!("cos {product}"));
                self.line(&format!("store {place}, {new}"));
            }
            _ => {
                let op = *self
                    .rng
                    .pick(&["add", "sub", "mul", "min", "max", "exchange"]);
                let old = self.def("f64", &format!("atomic_{op} {place}, {v}"));
                if self.rng.one_in(3) {
                    self.floats.push(old);
                }
            }
        }
    }

    fn write(&mut self) {
        if self.meets != Meets::Apart {
            return self.change();
        }
        let Some(i) = self.counter.clone() else {
            return self.compute();
        };
        let v = self.bounded();
        let field = self.written[0];
        let is_own = self.own == field;
        match self.rng.below(5) {
            0 => {
                let s = self.def("ref<f64>", "field_at @s, []");
                let op = *self.rng.pick(&["atomic_add", "atomic_sub"]);
                self.def("f64", &format!("{op} {s}, {v}"));
            }
            1 | 2 if is_own => {
                let place = self.def("ref<f64>", &format!("field_at @{field}, [{i}]"));
                self.line(&format!("store {place}, {v}"));
            }
            _ => {
                let at = if is_own { i } else { self.index(N) };
                let place = self.def("ref<f64>", &format!("field_at @{field}, [{at}]"));
                let op = *self.rng.pick(if is_own { SUMS } else { self.shared });
                self.def("f64", &format!("atomic_{op} {place}, {v}"));
            }
        }
    }
}
