//! Functions that are not inlined, because they are recursive or call a recursive one: their accesses and their
//! derivatives.
//!
//! ```text
//! func @f(room: i32, x: f64) -> f64            func @f_grad(room: i32, x: f64, d: f64) -> f64     ; the adjoint of x
//!     v1 = sin x                       ==>         v1 = sin x
//!     v2 = call @f, [left, v1]                     v2 = call @f_rerun, [left, v1]
//!     v3 = mul v1, v2                              ...
//! ```
//! `f_rerun` computes what `f` returns and writes nothing, since all of it is written already. So nothing of a call is
//! saved: each level of a recursion runs what is below it once more, and memory stays that of the stack. What such a
//! function reads nobody may overwrite in the same kernel.

use aerogel_base::{Scalar, Span};
use aerogel_ir::analysis::access::{Change, Class, below, change, classes, touched};
use aerogel_ir::analysis::cost::frame_bytes;
use aerogel_ir::{
    AssertKind, BinaryOp, Builder, Derivative, Env, FuncId, Function, Inst, Module, Op, walk,
};

use super::asked::OfCalled;
use super::needs::{Of, Overwritten, Untracked};
use super::storage::{Memory, memory_of};

/// The functions that a kernel calls, and those that they call.
#[derive(Default)]
pub(super) struct Calls {
    all: Vec<Callee>,
    /// What they read of fields and arrays.
    reads: Vec<Touch>,
    /// What they write.
    writes: Vec<Touch>,
    /// The cells whose activity they query or change.
    pub(super) asks: OfCalled,
    /// Where derivatives end in them.
    ends: Ends,
    /// Through which fields they end there.
    pub(super) untracked: Untracked,
    /// Whether one of them reads memory that has derivatives.
    pub(super) reads_active: bool,
    /// Whether one of them writes such memory.
    pub(super) writes_active: bool,
}

/// A function with its derivative.
#[derive(Clone, Copy)]
pub(super) struct Callee {
    pub(super) primal: FuncId,
    /// Adjoints of its floats from those of what it returns, or with tangents.
    pub(super) derivative: FuncId,
    /// In reverse mode: what it returns, without what it writes.
    pub(super) rerun: FuncId,
}

/// Accesses at which derivatives end, since the memory has none.
#[derive(Default)]
pub(super) struct Ends {
    /// What something with a derivative depends on.
    pub(super) read: Vec<Touch>,
    /// What depends on something with a derivative.
    pub(super) written: Vec<Touch>,
}

/// An access to memory that outlives the launch.
pub(super) struct Touch {
    pub(super) classes: Vec<Class>,
    pub(super) span: Span,
}

impl Calls {
    /// Those of a module's kernel; their derivatives are empty functions still.
    pub(super) fn declare(module: &mut Module, kernel: FuncId, kind: Derivative) -> Self {
        let mut calls = Self::default();
        for primal in reached(module, kernel) {
            calls.note(module, primal, kind);
            let name = &module.funcs[primal].name;
            let [derivative, rerun] = [kind.name(), "rerun"].map(|what| format!("{name}_{what}"));
            let derivative = module.funcs.push(Function::new(derivative, false));
            let rerun = match kind {
                Derivative::Grad => module.funcs.push(Function::new(rerun, false)),
                Derivative::Dual => derivative,
            };
            calls.all.push(Callee {
                primal,
                derivative,
                rerun,
            });
        }
        calls
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Callee> + '_ {
        self.all.iter().copied()
    }

    /// What belongs to a function that is called.
    pub(super) fn of(&self, func: FuncId) -> Callee {
        let mut all = self.iter();
        all.find(|callee| callee.primal == func)
            .expect("all functions that are called were noted")
    }

    fn note(&mut self, module: &Module, id: FuncId, kind: Derivative) {
        let (func, env) = (&module.funcs[id], &module.env);
        self.asks.note(func, env);
        walk(func, func.body, &mut |func, inst| {
            let span = func.insts[inst].span;
            let is_write = !matches!(func[inst], Op::Load { .. });
            for &place in touched(&func[inst]) {
                let memory = memory_of(func, env, kind, place);
                if !matches!(memory, Memory::Field(..) | Memory::Array(..)) {
                    continue;
                }
                let elem = func.ty(place).pointee().and_then(|ty| ty.elem());
                let active = elem.is_some_and(|e| e.is_float()) && memory.has_derivatives();
                let classes = classes(func, env, place);
                match is_write {
                    true => {
                        self.writes.push(Touch { classes, span });
                        self.writes_active |= active;
                    }
                    false => {
                        self.reads.push(Touch { classes, span });
                        self.reads_active |= active;
                    }
                }
            }
            if let Change::Below(node) = change(&func[inst]) {
                let classes = below(env, node).collect();
                self.writes.push(Touch { classes, span });
            }
        });
    }

    /// Notes where derivatives end in one of them.
    pub(super) fn add_ends(&mut self, ends: Ends, untracked: Untracked) {
        self.ends.read.extend(ends.read);
        self.ends.written.extend(ends.written);
        self.untracked.add(untracked);
    }

    /// Something that they read and that is written, by them or by the kernel that calls them when it has called one, or that
    /// the kernel needs and they write.
    pub(super) fn overwritten(&self, needed: &[Touch], later: &[Touch]) -> Option<Overwritten> {
        met(&self.reads, &self.writes)
            .or_else(|| met(&self.reads, later))
            .or_else(|| met(needed, &self.writes))
    }

    /// Whether they read memory of some classes.
    pub(super) fn read(&self, classes: &[Class]) -> bool {
        let mut read = self.reads.iter().flat_map(|touch| &touch.classes);
        read.any(|class| classes.contains(class))
    }

    /// Where a derivative goes through memory that has none, from or to one of them.
    pub(super) fn leak(&self, of_kernel: &Ends) -> Option<Overwritten> {
        met(&self.ends.read, &self.ends.written)
            .or_else(|| met(&self.ends.read, &of_kernel.written))
            .or_else(|| met(&of_kernel.read, &self.ends.written))
    }
}

/// The first read of memory that is written as well.
fn met(reads: &[Touch], writes: &[Touch]) -> Option<Overwritten> {
    reads.iter().find_map(|read| {
        let hits = |write: &&Touch| write.classes.iter().any(|c| read.classes.contains(c));
        let write = writes.iter().find(hits)?;
        Some(Overwritten {
            read: read.span,
            written: write.span,
            of: Of::Values,
        })
    })
}

/// The functions that a function calls, and those that they call.
fn reached(module: &Module, from: FuncId) -> Vec<FuncId> {
    let (mut seen, mut open) = (Vec::new(), vec![from]);
    while let Some(id) = open.pop() {
        let func = &module.funcs[id];
        walk(func, func.body, &mut |func, inst| {
            if let Op::Call { func: callee, .. } = func[inst]
                && !seen.contains(&callee)
            {
                seen.push(callee);
                open.push(callee);
            }
        });
    }
    seen
}

/// Writes how much of the stack a call of a derivative takes where the function it was made of says how much that took.
pub(super) fn limit(func: &mut Function, env: &Env) {
    let bytes = frame_bytes(func, env);
    let body = func.body;
    let insts = func.regions[body].insts.clone();
    let room = func.regions[body].params.first().copied();
    // What is left of the stack is what the check against recursion without end looks at.
    let checked = insts.iter().find_map(|&inst| match func[inst] {
        Op::Assert {
            cond,
            kind: AssertKind::Recursion,
            ..
        } => match func.def_op(cond) {
            Some(&Op::Compare { lhs, .. }) => Some(lhs),
            _ => None,
        },
        _ => None,
    });
    let is_left = |inst: &Inst| {
        let results = &func.insts[*inst].results;
        let takes =
            matches!(func[*inst], Op::Binary { op: BinaryOp::Sub, lhs, .. } if Some(lhs) == room);
        takes && results.first().copied() == checked
    };
    let Some(at) = insts.iter().position(is_left) else {
        return;
    };
    func.regions[body].insts.truncate(at);
    let frame = Builder::new(func, body).constant(Scalar::i32(bytes));
    if let Op::Binary { rhs, .. } = &mut func.insts[insts[at]].op {
        *rhs = frame;
    }
    func.regions[body].insts.extend(&insts[at..]);
}

/// A function in the place of one that nobody calls any more.
pub(super) fn empty(name: &str) -> Function {
    let mut func = Function::new(name, false);
    let body = func.body;
    Builder::new(&mut func, body).yields(Vec::new());
    func
}
