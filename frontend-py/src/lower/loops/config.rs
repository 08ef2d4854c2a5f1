//! `ti.loop_config`: how the next loop shall run.

use aerogel_base::ErrorKind;
use aerogel_ir::FastMath;

use crate::fold;
use crate::host::Known;
use crate::lower::calls::Args;
use crate::lower::values::Val;
use crate::lower::{Lower, Res};

/// Threads that a block has at most.
const MOST_THREADS: i128 = 1024;

impl Lower<'_, '_> {
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
                    self.state.loop_attrs.serial = self.hosted(truth)?;
                }
                ("parallelize" | "block_dim", Known::None) => {}
                ("parallelize", Known::Int(n @ 0..)) => {
                    self.state.loop_attrs.max_threads = u32::try_from(n).ok().filter(|&n| n > 0);
                }
                // For GPUs: how the threads of a processor share a loop follows from its cost.
                ("block_dim", Known::Int(n @ 1..=MOST_THREADS)) if n & (n - 1) == 0 => {
                    self.state.loop_attrs.block = u32::try_from(n).ok();
                }
                ("fast_math", known) => {
                    let level = match &known {
                        Known::Bool(true) => Some(FastMath::Accumulations),
                        Known::Bool(false) => Some(FastMath::Off),
                        Known::Str(word) if &**word == "full" => Some(FastMath::Full),
                        _ => None,
                    };
                    let Some(level) = level else {
                        let message =
                            "`fast_math` of `ti.loop_config` is `True`, `False` or \"full\"";
                        return self.fail(ErrorKind::Type, "E0222", message);
                    };
                    self.state.loop_attrs.fast_math = Some(level);
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
                ("block_dim_adaptive" | "bit_vectorize", _) => {}
                _ => {
                    let message = format!("`ti.loop_config` does not have `{name}`");
                    return self.fail(ErrorKind::Type, "E0222", message);
                }
            }
        }
        Ok(Val::none())
    }
}
