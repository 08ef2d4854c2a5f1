//! Code that is compiled without optimisation first, and optimised once it has run for some milliseconds.
//!
//! It is done for kernels whose numbers do not depend on the effort: floats are rounded as written, other than in sums, of which
//! LLVM makes sums of vectors.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use aerogel_ir::{AtomicOp, BinaryOp, FastMath, Function, Inst, Module, Op, walk};
use aerogel_runtime::device::LoadedKernel;
use aerogel_runtime::launch::{KernelFailure, Launch};

use crate::config::Arch;
use crate::driver::{CompileError, CompiledKernel, Compiler};

/// Nanoseconds after which code is made well, which takes a few times as long.
const LONG: u64 = 5_000_000;

/// Code that is made well later.
pub(crate) struct Better {
    compiler: Compiler,
    kernel: OnceLock<Box<dyn LoadedKernel>>,
    /// How long kernels have run until then, in nanoseconds.
    spent: AtomicU64,
}

impl Compiler {
    /// The same as `compile`, sooner, if the same numbers come of code that is made with little effort. Once that has run for
    /// some milliseconds, it is made well.
    ///
    /// # Errors
    /// As `compile`.
    pub fn compile_quickly(&self, module: Module) -> Result<CompiledKernel, CompileError> {
        let config = self.config();
        let is_less = config.opt_level > 1 && config.arch == Arch::Cpu && !config.print_ir;
        if !is_less || !is_exact(&module) {
            return self.compile(module);
        }
        let mut kernel = self.at_level(0).compile(module)?;
        kernel.better = Some(Better {
            compiler: self.clone(),
            kernel: OnceLock::new(),
            spent: AtomicU64::new(0),
        });
        Ok(kernel)
    }
}

impl Better {
    /// Runs the kernel by the best code that there is.
    pub(crate) fn launch(
        &self,
        quick: &dyn LoadedKernel,
        source: &Module,
        launch: Launch<'_>,
    ) -> Result<(), KernelFailure> {
        if self.kernel.get().is_none() && self.spent.load(Ordering::Relaxed) > LONG {
            match self.compiler.loaded(source.clone()) {
                // Another thread may have been faster.
                Ok(kernel) => drop(self.kernel.set(kernel)),
                Err(CompileError::Interrupted) => return Err(KernelFailure::Interrupted),
                // What is there does, and it is tried again as much later.
                Err(_) => self.spent.store(0, Ordering::Relaxed),
            }
        }
        if let Some(kernel) = self.kernel.get() {
            return kernel.launch(launch);
        }
        let begin = Instant::now();
        let outcome = quick.launch(launch);
        let spent = begin.elapsed().as_nanos() as u64;
        self.spent.fetch_add(spent, Ordering::Relaxed);
        outcome
    }
}

/// Whether a kernel's numbers are the same however code is made of it: nothing adds floats up.
fn is_exact(module: &Module) -> bool {
    module.env.fast_math != FastMath::Full && module.funcs.values().all(adds_no_floats)
}

fn adds_no_floats(func: &Function) -> bool {
    let mut exact = true;
    let of_floats = |inst: Inst| {
        let value = func.insts[inst].results.first();
        let ty = value.and_then(|&value| func.ty(value).elem());
        ty.is_some_and(|ty| ty.is_float())
    };
    walk(func, func.body, &mut |_, inst| match func[inst] {
        Op::For { body, .. } | Op::While { body, .. } => {
            walk(func, body, &mut |_, inst| {
                exact &= match func[inst] {
                    Op::Binary { op, .. } => {
                        !matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul)
                            || !of_floats(inst)
                    }
                    Op::MulAdd { .. } | Op::Call { .. } => false,
                    _ => true,
                };
            });
        }
        Op::Atomic { op, .. } => {
            exact &= matches!(op, AtomicOp::Min | AtomicOp::Max) || !of_floats(inst);
        }
        Op::AtomicAdds { .. } | Op::MulAdd { .. } => exact = false,
        _ => {}
    });
    exact
}

#[cfg(test)]
mod tests {
    use aerogel_ir::parse_module;

    use super::*;

    fn exact(body: &str) -> bool {
        let text = format!(
            "kernel @k(a: array<f32, 1>, n: i32) {{
                v0: i32 = const 0
                v1: i32 = arg a1
                v2: i32 = const 1
                {body}
                return []
            }}"
        );
        is_exact(&parse_module(&text).unwrap_or_else(|e| panic!("{e:?}")))
    }

    #[test]
    fn sums_of_floats_are_not_exact() {
        let sum = |op: &str| {
            exact(&format!(
                "parallel [v0], [v1] (v3: i32) {{
                    v4: ref<f32> = array_at a0, [v3]
                    for v0, v1, v2, [] (v5: i32) {{
                        v6: f32 = load v4
                        v7: f32 = {op} v6, v6
                        store v4, v7
                        yield []
                    }}
                    yield []
                }}"
            ))
        };
        assert!(!sum("add") && !sum("mul") && sum("max"));
        assert!(exact(
            "parallel [v0], [v1] (v3: i32) {
                v4: ref<f32> = array_at a0, [v3]
                v6: f32 = load v4
                v7: f32 = add v6, v6
                store v4, v7
                yield []
            }"
        ));
    }
}
