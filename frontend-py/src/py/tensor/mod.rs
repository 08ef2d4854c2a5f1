//! Tensors for `aerogel.tensor`: recording of operations, and evaluation when values are needed.

mod arguments;
mod backends;
mod blas;
mod compiled;
mod dropped;
mod ended;
mod exported;
mod gradients;
mod kernels;
mod keys;
mod mapped;
mod measured;
mod native;
mod notation;
mod operations;
mod places;
mod program_view;
mod raised;
mod recorded;
mod trace;
mod tuned;
mod values;
pub(crate) mod written;

pub(crate) use backends::{
    add_backend, add_blas, add_interpreter, backend_of_tensor, call_library, choose_backend,
    set_default_backend, storage_of_tensor, tensor_of_storage, tensor_on_backend,
};
pub(crate) use compiled::NativeProgram;
pub(crate) use gradients::{
    are_gradients_off, depends_beyond, detached_tensor, end_leaves, end_variables, has_history,
    has_history_in, leaf_gradients, leaves_in_use, n_tidied, roots_behind, set_gradients_off,
    tensor_gradients, tensor_made_of, tidy_tensors, variable_of_tensor,
};
pub(crate) use mapped::{one_of_tensor, vmap_tensors};
pub(crate) use native::{
    NativeDim, NativeTensor, NativeTrace, forget_shared, native_of, set_tensor_class, settings_for,
};
pub(crate) use values::{NativeMemory, realise_tensors, tensor_counts};
