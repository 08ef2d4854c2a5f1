//! `ti.loop_config`: how the next loop shall run.
//!
//! The settings wait for the next loop, as in Taichi. `fast_math`, which changes results, is for a parallel loop that
//! follows at once; anything else is an error.

use aerogel_base::{Diagnostic, ErrorKind};
use aerogel_ir::FastMath;

use crate::fold;
use crate::host::Known;
use crate::lower::calls::Args;
use crate::lower::values::Val;
use crate::lower::{Control, Lower, NextLoop, Res};

/// Threads that a block has at most.
const MOST_THREADS: i128 = 1024;

impl NextLoop {
    pub(crate) fn forget_level(&mut self) {
        (self.attrs.fast_math, self.level_at) = (None, None);
    }
}

impl Lower<'_, '_> {
    /// Refuses `fast_math` that waits for a loop, since what follows is none.
    pub(crate) fn refuse_waiting_level(&mut self, why: &str) {
        let next = self.state.next_loop;
        self.state.next_loop.forget_level();
        self.expect_no_level(next, why);
    }

    /// Refuses `fast_math` of what is not a parallel loop.
    pub(crate) fn expect_no_level(&mut self, next: NextLoop, why: &str) {
        let Some(at) = next.level_at else {
            return;
        };
        let message = format!("`fast_math` of `ti.loop_config` is for parallel loops; {why}");
        let note = "write it directly before a loop at the outermost scope of the kernel";
        let mistake = Diagnostic::new(ErrorKind::Type, "E0222", at, message).note(note);
        self.report(mistake);
    }

    /// Why a loop at this place is not parallel.
    pub(crate) fn why_serial(&self) -> &'static str {
        let around = self.state.control.iter();
        match around.rev().find(|control| **control != Control::Static) {
            Some(Control::Parallel { .. } | Control::Loop) => {
                "the loop that follows runs inside another"
            }
            Some(_) => "the loop that follows is inside a branch",
            None => "the loop that follows runs in order",
        }
    }

    /// `ti.loop_config(...)`, for the next loop.
    pub(crate) fn loop_config(&mut self, args: &Args) -> Res<Val> {
        if !args.positional.is_empty() {
            let message = "`ti.loop_config` takes its settings by name";
            let note = "write `ti.loop_config(block_dim=64)`";
            return self.fail_noted(ErrorKind::Type, "E0222", message, note);
        }
        for (name, val) in &args.keywords {
            let Some(known) = val.known().cloned() else {
                let message = format!("`{name}` of `ti.loop_config` must be known while compiling");
                return self.fail(ErrorKind::Type, "E0210", message);
            };
            match (name.as_str(), known) {
                ("serialize", known) => {
                    let truth = fold::truth(self.host, &known);
                    self.state.next_loop.attrs.serial = self.hosted(truth)?;
                }
                ("parallelize" | "block_dim" | "fast_math", Known::None) => {}
                ("parallelize", Known::Int(n @ 0..)) => {
                    self.state.next_loop.attrs.max_threads =
                        u32::try_from(n).ok().filter(|&n| n > 0);
                }
                // For GPUs: how the threads of a processor share a loop follows from its cost.
                ("block_dim", Known::Int(n @ 1..=MOST_THREADS)) if n & (n - 1) == 0 => {
                    self.state.next_loop.attrs.block = u32::try_from(n).ok();
                }
                ("fast_math", known) => {
                    let level = match &known {
                        Known::Bool(true) | Known::Int(1) => Some(FastMath::Accumulations),
                        Known::Bool(false) | Known::Int(0) => Some(FastMath::Off),
                        Known::Str(word) if &**word == "full" => Some(FastMath::Full),
                        _ => None,
                    };
                    let Some(level) = level else {
                        let given = match &known {
                            Known::Str(word) => format!("\"{word}\""),
                            Known::Int(n) => format!("`{n}`"),
                            Known::Float(x) => format!("`{x:?}`"),
                            known => known.describe(),
                        };
                        let message = format!(
                            "`fast_math` of `ti.loop_config` is `True`, `False` or \"full\", not {given}"
                        );
                        return self.fail(ErrorKind::Type, "E0222", message);
                    };
                    self.state.next_loop.attrs.fast_math = Some(level);
                    self.state.next_loop.level_at = Some(self.span());
                }
                ("parallelize", _) => {
                    let message = "`parallelize` of `ti.loop_config` is a number of threads";
                    return self.fail(ErrorKind::Type, "E0222", message);
                }
                ("block_dim", _) => {
                    let message = format!(
                        "`block_dim` of `ti.loop_config` is a power of two up to {MOST_THREADS}"
                    );
                    return self.fail(ErrorKind::Type, "E0222", message);
                }
                // `name` is what Quadrants' profiler calls the loop.
                ("block_dim_adaptive" | "bit_vectorize" | "name", _) => {}
                _ => {
                    let message = format!("`ti.loop_config` does not have `{name}`");
                    return self.fail(ErrorKind::Type, "E0222", message);
                }
            }
        }
        Ok(Val::none())
    }
}
