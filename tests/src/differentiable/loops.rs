//! Loops of made-up kernels.

use super::Writer;

impl Writer {
    pub(super) fn counted(&mut self) {
        if self.in_loop > 2 {
            return self.compute();
        }
        let (lo, step) = match self.rng.below(4) {
            0 => (self.def("i32", "const 4"), self.def("i32", "const -1")),
            1 => (self.def("i32", "const 0"), self.def("i32", "const 2")),
            _ => (self.def("i32", "const 0"), self.def("i32", "const 1")),
        };
        let hi = self.index(5);
        let i = self.name();
        self.line(&format!("for {lo}, {hi}, {step}, [] ({i}: i32) {{"));
        self.in_loop += 1;
        self.scoped(|w| {
            w.ints.push(i);
            w.statements();
            w.line("yield []");
        });
        self.in_loop -= 1;
        self.line("}");
    }

    pub(super) fn repeated(&mut self) {
        if self.in_loop > 2 {
            return self.compute();
        }
        let counter = self.def("ref<i32>", "local");
        let most = self.index(5);
        self.line("while [] {");
        let at = self.def("i32", &format!("load {counter}"));
        let goes_on = self.def("u1", &format!("lt {at}, {most}"));
        self.line(&format!("yield [{goes_on}]"));
        self.line("} {");
        self.in_loop += 1;
        self.scoped(|w| {
            let at = w.def("i32", &format!("load {counter}"));
            let one = w.def("i32", "const 1");
            let next = w.def("i32", &format!("add {at}, {one}"));
            w.line(&format!("store {counter}, {next}"));
            w.ints.push(at);
            w.statements();
            w.line("yield []");
        });
        self.in_loop -= 1;
        self.line("}");
    }

    /// A loop of arithmetic alone, as many iterations may run it at once: of a number of turns that differs between them, or
    /// that is known.
    pub(super) fn march(&mut self) {
        if self.in_loop > 2 {
            return self.compute();
        }
        let number = self.def("ref<f64>", "local");
        let first = self.bounded();
        self.line(&format!("store {number}, {first}"));
        if self.in_loop == 0 && self.rng.one_in(2) {
            self.march_for(&number);
        } else {
            self.march_while(&number);
        }
        let result = self.def("f64", &format!("load {number}"));
        self.floats.push(result);
    }

    fn march_for(&mut self, number: &str) {
        let [zero, one] = [0, 1].map(|n| self.def("i32", &format!("const {n}")));
        let turns = *self.rng.pick(&[4, 20, 70]);
        let turns = self.def("i32", &format!("const {turns}"));
        let at = self.name();
        self.line(&format!("for {zero}, {turns}, {one}, [] ({at}: i32) {{"));
        self.in_loop += 1;
        self.scoped(|w| {
            w.ints.push(at);
            w.turn(number);
        });
        self.in_loop -= 1;
        self.line("}");
    }

    fn march_while(&mut self, number: &str) {
        let most = self.index(5);
        let turns = self.def("ref<i32>", "local");
        self.line("while [] {");
        let n = self.def("i32", &format!("load {turns}"));
        let goes_on = self.def("u1", &format!("lt {n}, {most}"));
        self.line(&format!("yield [{goes_on}]"));
        self.line("} {");
        self.in_loop += 1;
        self.scoped(|w| {
            let at = w.def("i32", &format!("load {turns}"));
            let one = w.def("i32", "const 1");
            let next = w.def("i32", &format!("add {at}, {one}"));
            w.line(&format!("store {turns}, {next}"));
            w.ints.push(at);
            w.turn(number);
        });
        self.in_loop -= 1;
        self.line("}");
    }

    /// What a turn of such a loop makes of its number.
    fn turn(&mut self, number: &str) {
        let v = self.def("f64", &format!("load {number}"));
        self.floats.push(v);
        for _ in 0..1 + self.rng.below(4) {
            self.arithmetic();
        }
        if self.rng.one_in(3) {
            let (cond, exit) = (self.condition(), *self.rng.pick(&["break", "continue"]));
            self.line(&format!("if {cond} {{ {exit} [] }} {{ yield [] }}"));
        }
        let v = self.bounded();
        self.line(&format!("store {number}, {v}"));
        self.line("yield []");
    }

    fn arithmetic(&mut self) {
        match self.rng.below(6) {
            0 => self.march(),
            1 => self.choose(),
            _ => self.compute(),
        }
    }
}
