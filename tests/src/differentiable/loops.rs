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

    /// A loop of arithmetic alone, whose number of turns differs from iteration to iteration, so that many of them may run it at
    /// once.
    pub(super) fn march(&mut self) {
        if self.in_loop > 2 {
            return self.compute();
        }
        let most = self.index(5);
        let [number, turns] = ["f64", "i32"].map(|ty| self.def(&format!("ref<{ty}>"), "local"));
        let first = self.bounded();
        self.line(&format!("store {number}, {first}"));
        self.line("while [] {");
        let n = self.def("i32", &format!("load {turns}"));
        let goes_on = self.def("u1", &format!("lt {n}, {most}"));
        self.line(&format!("yield [{goes_on}]"));
        self.line("} {");
        self.in_loop += 1;
        self.scoped(|w| {
            let v = w.def("f64", &format!("load {number}"));
            let at = w.def("i32", &format!("load {turns}"));
            w.floats.push(v);
            w.ints.push(at.clone());
            let one = w.def("i32", "const 1");
            let next = w.def("i32", &format!("add {at}, {one}"));
            w.line(&format!("store {turns}, {next}"));
            for _ in 0..1 + w.rng.below(4) {
                w.arithmetic();
            }
            if w.rng.one_in(3) {
                let (cond, exit) = (w.condition(), *w.rng.pick(&["break", "continue"]));
                w.line(&format!("if {cond} {{ {exit} [] }} {{ yield [] }}"));
            }
            let v = w.bounded();
            w.line(&format!("store {number}, {v}"));
            w.line("yield []");
        });
        self.in_loop -= 1;
        self.line("}");
        let result = self.def("f64", &format!("load {number}"));
        self.floats.push(result);
    }

    fn arithmetic(&mut self) {
        match self.rng.below(6) {
            0 => self.march(),
            1 => self.choose(),
            _ => self.compute(),
        }
    }
}
