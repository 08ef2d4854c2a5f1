//! How long the functions of a module are that can be inlined.

use aerogel_base::entity::{PrimaryMap, SecondaryMap};
use aerogel_ir::analysis::Calls;
use aerogel_ir::{FuncId, Function, Op, walk};

/// Longer functions are called. The length is counted with the functions that are inlined into them.
pub(crate) const MAX_INSTS: usize = 200;

/// How long functions are that can be inlined, with the bodies of those that are inlined into them.
///
/// Inlining leaves lengths as they are, so that they are found once for all functions of a module.
#[derive(Default)]
pub struct Lengths(SecondaryMap<FuncId, Option<usize>>);

impl Lengths {
    /// Those of a module's functions.
    pub fn new(funcs: &PrimaryMap<FuncId, Function>) -> Self {
        let calls = Calls::of(funcs);
        Self(calls.lengths(MAX_INSTS, |id| {
            let func = &funcs[id];
            let mut plain = !func.is_kernel
                && !func.regions[func.body].insts.is_empty()
                && func.yielded(func.body).is_some()
                && !calls.is_recursive(id);
            let mut length = 0;
            walk(func, func.body, &mut |func, inst| {
                plain &= !matches!(func[inst], Op::Return { .. });
                length += 1;
            });
            plain.then_some(length)
        }))
    }

    /// That of a function; nothing if it must stay one.
    pub(crate) fn of(&self, id: FuncId) -> Option<usize> {
        self.0[id]
    }
}
