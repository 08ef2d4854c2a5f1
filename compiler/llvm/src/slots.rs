//! The slots of a kernel's arguments.

use aerogel_ir::{Arg, Env, Function, ParamType};

/// The first slot of an argument of a kernel.
pub(crate) fn first_slot(env: &Env, kernel: &Function, arg: Arg) -> usize {
    let before = &kernel.params[..arg.as_u32() as usize];
    before
        .iter()
        .map(|param| match param.ty {
            ParamType::Value(ty) => env.scalars(ty).len(),
            ParamType::Array { ndim, .. } => 1 + ndim as usize,
        })
        .sum()
}
