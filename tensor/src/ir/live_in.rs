//! The buffers of which statements read, or leave, elements that they have not stored.
//!
//! ```text
//! for [n] { b[i0] = a[i0] }
//! loop i in 0..n { for [n] { c[i0] = b[i0] }  for [n] { d[i0] add= c[i0] } }          a and d
//! ```

use indexmap::IndexSet;

use super::ids::Buffer;
use super::library::Library;
use super::program::{Program, Stmt};
use super::touched::{Touched, is_whole};

/// The buffers that are live on entry, in the order of their first use. `is_made` says of which buffers every `for` that stores to
/// them stores all elements, though its stores do not show it.
pub(crate) fn live_in(
    program: &Program,
    body: &[Stmt],
    is_made: &dyn Fn(Buffer) -> bool,
) -> IndexSet<Buffer> {
    let mut walk = Walk {
        program,
        is_made,
        live: IndexSet::new(),
        made: IndexSet::new(),
    };
    walk.block(body);
    walk.live
}

/// The buffers of which a program may read, leave or return elements that it has not stored.
pub(crate) fn undefined(program: &Program) -> IndexSet<Buffer> {
    let mut walk = Walk {
        program,
        is_made: &|_| false,
        live: IndexSet::new(),
        made: IndexSet::new(),
    };
    walk.block(&program.body);
    walk.find(&program.results.iter().copied().collect());
    walk.live
}

/// Whether a statement stores all elements of a buffer, and reads none before.
pub(crate) fn makes(
    program: &Program,
    stmt: &Stmt,
    buffer: Buffer,
    is_made: &dyn Fn(Buffer) -> bool,
) -> bool {
    match stmt {
        Stmt::For(all) => {
            is_made(buffer)
                || all.body.iter().any(|stmt| match stmt {
                    Stmt::Store(store) if store.target == buffer => {
                        store.init || (store.accum.is_none() && is_whole(program, all, store))
                    }
                    _ => false,
                })
        }
        Stmt::Call(call) => call.outputs.contains(&buffer) && call.library != Library::MatMulRows,
        Stmt::Run(run) => run.results.contains(&buffer),
        _ => false,
    }
}

struct Walk<'p> {
    program: &'p Program,
    is_made: &'p dyn Fn(Buffer) -> bool,
    live: IndexSet<Buffer>,
    made: IndexSet<Buffer>,
}

impl Walk<'_> {
    fn block(&mut self, body: &[Stmt]) {
        for stmt in body {
            match stmt {
                Stmt::If(_, then, otherwise) => {
                    self.find(&Touched::of_itself(self.program, stmt).reads);
                    let before = self.made.clone();
                    self.block(then);
                    let made = std::mem::replace(&mut self.made, before);
                    self.block(otherwise);
                    self.made.retain(|b| made.contains(b));
                }
                Stmt::Loop { body, .. } => {
                    self.find(&Touched::of_itself(self.program, stmt).reads);
                    let before = self.made.clone();
                    self.block(body);
                    // It may have no iterations.
                    self.made = before;
                }
                _ => self.stmt(stmt),
            }
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let touched = Touched::by(self.program, std::slice::from_ref(stmt));
        self.find(&touched.reads);
        for &buffer in &touched.writes {
            if !makes(self.program, stmt, buffer, self.is_made) {
                self.find(&IndexSet::from([buffer]));
            }
            self.made.insert(buffer);
        }
    }

    fn find(&mut self, read: &IndexSet<Buffer>) {
        let made = &self.made;
        self.live.extend(read.iter().filter(|b| !made.contains(*b)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, expected: &[&str]) {
        let text = format!(
            r#"
            in b0 "a": f32[4]
            in b1 "c": u1[]
            tmp b2 "x": f32[4]
            tmp b3 "y": f32[4]
            var x0: i32
            {body}
            result b3"#
        );
        let program = crate::ir::parse(&text).unwrap_or_else(|e| panic!("{e}"));
        let live = live_in(&program, &program.body, &|_| false);
        let live: Vec<&str> = live.iter().map(|&b| &*program.buffers[b].name).collect();
        assert_eq!(live, expected, "{body}");
    }

    #[test]
    fn what_is_stored_whole_is_not_live() {
        check(
            "for [4] { b2[i0] = b0[i0] }
            for [4] { b3[i0] add = b2[i0] }",
            &["a", "y"],
        );
        check(
            "for [4] { b2[i0] add init = b0[i0] }
            for [2] { b3[i0] = b2[i0] }",
            &["a", "y"],
        );
    }

    #[test]
    fn results_that_may_not_be_stored_are_undefined() {
        let undefined_in = |body: &str| {
            let text =
                format!("in b0 \"c\": u1[]\ntmp b1 \"x\": f32[4]\nif b0[] {{ {body} }}\nresult b1");
            let program = crate::ir::parse(&text).unwrap_or_else(|e| panic!("{e}"));
            undefined(&program).contains(&Buffer::from_u32(1))
        };
        let store = "for [4] { b1[i0] = f32(1) }";
        assert!(undefined_in(store));
        assert!(!undefined_in(&format!("{store} }} else {{ {store}")));
    }

    #[test]
    fn branches_and_loops_may_not_run() {
        check(
            "if b1[] {
                for [4] { b2[i0] = b0[i0] }
            }
            for [4] { b3[i0] = b2[i0] }",
            &["c", "a", "x"],
        );
        check(
            "loop x0 in i32(0), i32(3), 1 {
                for [4] { b2[i0] = b0[i0] }
                for [4] { b3[i0] = b2[i0] }
            }
            for [4] { b3[i0] = b2[i0] }",
            &["a", "x"],
        );
    }
}
