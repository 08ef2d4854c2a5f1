//! The `_native` module: everything that touches the Python runtime.

mod activity;
mod argument;
mod array_argument;
mod array_derivatives;
mod buffer;
mod element;
mod error;
mod exchange;
mod exported;
mod field;
mod foreign;
mod functions;
mod graph;
mod gui;
mod host;
mod inspection;
mod instances;
mod kernel;
mod known;
mod later;
mod linalg;
mod lists;
mod mesh;
mod ndarray;
mod operator;
mod placement;
mod prepare;
mod prepared;
mod profile;
mod program;
mod recorder;
mod recording;
mod regions;
mod returned;
mod saved;
mod shared_memory;
mod signals;
mod signature;
mod small;
mod snapshot;
mod snode;
mod split;
mod split_cells;
mod split_grid;
mod steps;
mod structs;
mod summary;
mod tensor;
mod texture_argument;
mod traced;
mod tracer;
mod tracing;
mod undo;
mod views;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

#[pyfunction]
fn reset(py: Python<'_>) -> PyResult<()> {
    let settled = later::settle(py);
    program::end();
    snode::destroy_all();
    snapshot::drop_spares();
    tensor::forget_shared();
    profile::clear_profile();
    profile::clear_profile_steps();
    settled
}

/// Waits for launches, and for what Ctrl-C left behind in the compiler, without which the process must not end.
#[pyfunction]
fn finish(py: Python<'_>) -> PyResult<()> {
    py.detach(aerogel_compiler::finish);
    // Python shows what is raised here, and ends as if nothing had been.
    later::settle(py).inspect_err(|_| aerogel_runtime::status::fail())
}

#[pyfunction]
fn live_bytes() -> usize {
    aerogel_runtime::buffer::live_bytes()
}

#[pyfunction]
fn fail_allocation(k: usize) {
    aerogel_runtime::buffer::fail_allocation(k);
}

#[pyfunction]
fn encode_png<'py>(py: Python<'py>, rows: &Bound<'_, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let encoded = gui::encode_png(&foreign::on_host(rows)?)?;
    Ok(PyBytes::new(py, &encoded))
}

#[pyfunction]
fn read_png<'py>(py: Python<'py>, path: &str) -> PyResult<(u32, u32, u32, Bound<'py, PyBytes>)> {
    let (width, height, channels, data) = gui::read_png(path)?;
    Ok((width, height, channels, PyBytes::new(py, &data)))
}

#[pyfunction]
fn lzw<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let coded = py.detach(|| aerogel_draw::lzw(data));
    Ok(PyBytes::new(
        py,
        &coded.map_err(pyo3::exceptions::PyValueError::new_err)?,
    ))
}

/// The native half of Aerogel's Python package.
#[pymodule(gil_used = false)]
fn _native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("version", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<field::NativeField>()?;
    m.add_class::<snode::NativeSNode>()?;
    m.add_class::<snode::NativeTree>()?;
    m.add_class::<split::PlaceMemory>()?;
    m.add_function(wrap_pyfunction!(split::place_memory, m)?)?;
    m.add_function(wrap_pyfunction!(split_cells::split_cells, m)?)?;
    m.add_class::<ndarray::NativeNdarray>()?;
    m.add_class::<tensor::NativeTensor>()?;
    m.add_class::<tensor::NativeTrace>()?;
    m.add_class::<tensor::NativeDim>()?;
    m.add_class::<tensor::NativeProgram>()?;
    m.add_class::<tensor::NativeMemory>()?;
    m.add_function(wrap_pyfunction!(tensor::realise_tensors, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::add_backend, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::add_blas, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::add_interpreter, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::backend_of_tensor, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::call_library, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::choose_backend, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::set_default_backend, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::storage_of_tensor, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::tensor_of_storage, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::tensor_on_backend, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::set_tensor_class, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::tensor_counts, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::one_of_tensor, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::vmap_tensors, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::variable_of_tensor, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::end_variables, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::are_gradients_off, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::detached_tensor, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::has_history, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::set_gradients_off, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::tensor_gradients, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::depends_beyond, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::end_leaves, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::tensor_made_of, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::roots_behind, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::leaf_gradients, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::leaves_in_use, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::n_tidied, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::tidy_tensors, m)?)?;
    m.add_class::<kernel::NativeKernel>()?;
    m.add_class::<recording::NativeRecording>()?;
    m.add_class::<activity::NativeAsked>()?;
    m.add_class::<activity::NativePast>()?;
    m.add_class::<steps::NativeSteps>()?;
    m.add_class::<snapshot::NativeWhole>()?;
    m.add_class::<undo::NativeUndo>()?;
    m.add_function(wrap_pyfunction!(snapshot::drop_spares, m)?)?;
    m.add_function(wrap_pyfunction!(steps::keep, m)?)?;
    m.add_function(wrap_pyfunction!(steps::keep_cells, m)?)?;
    m.add_function(wrap_pyfunction!(steps::fields_in_cells, m)?)?;
    m.add_class::<graph::NativeGraph>()?;
    m.add_class::<snapshot::NativeSnapshot>()?;
    m.add_class::<saved::NativeSaved>()?;
    m.add_class::<snapshot::NativePresent>()?;
    m.add_class::<gui::Canvas>()?;
    m.add_class::<linalg::NativeSparseMatrix>()?;
    m.add_class::<linalg::NativeSparseSolver>()?;
    m.add_function(wrap_pyfunction!(program::init, m)?)?;
    m.add_function(wrap_pyfunction!(reset, m)?)?;
    m.add_function(wrap_pyfunction!(later::sync, m)?)?;
    m.add_function(wrap_pyfunction!(foreign::foreign_array, m)?)?;
    m.add_function(wrap_pyfunction!(foreign::copy_array, m)?)?;
    m.add_function(wrap_pyfunction!(foreign::is_torch_tensor, m)?)?;
    m.add_function(wrap_pyfunction!(program::check_initialized, m)?)?;
    m.add_function(wrap_pyfunction!(field::check_quant, m)?)?;
    m.add_function(wrap_pyfunction!(program::set_pending, m)?)?;
    m.add_function(wrap_pyfunction!(program::set_materialize, m)?)?;
    m.add_function(wrap_pyfunction!(snode::deactivate_all_snodes, m)?)?;
    m.add_function(wrap_pyfunction!(snode::clear_derivatives, m)?)?;
    m.add_class::<traced::Expr>()?;
    m.add_function(wrap_pyfunction!(traced::traced_call, m)?)?;
    m.add_class::<element::NativeElement>()?;
    m.add_function(wrap_pyfunction!(element::set_element_classes, m)?)?;
    m.add_function(wrap_pyfunction!(buffer::components_to_fill, m)?)?;
    m.add_function(wrap_pyfunction!(regions::enter_region, m)?)?;
    m.add_function(wrap_pyfunction!(regions::leave_region, m)?)?;
    m.add_function(wrap_pyfunction!(regions::return_to_region, m)?)?;
    m.add_function(wrap_pyfunction!(regions::current_region, m)?)?;
    m.add_function(wrap_pyfunction!(profile::profile, m)?)?;
    m.add_function(wrap_pyfunction!(profile::profile_events, m)?)?;
    m.add_function(wrap_pyfunction!(profile::profile_steps, m)?)?;
    m.add_function(wrap_pyfunction!(profile::clear_profile, m)?)?;
    m.add_function(wrap_pyfunction!(profile::clear_profile_steps, m)?)?;
    m.add_function(wrap_pyfunction!(program::machine, m)?)?;
    m.add_function(wrap_pyfunction!(program::next_seed, m)?)?;
    m.add_function(wrap_pyfunction!(program::random_state, m)?)?;
    m.add_function(wrap_pyfunction!(program::set_random_state, m)?)?;
    m.add_function(wrap_pyfunction!(program::open_cuda, m)?)?;
    m.add_function(wrap_pyfunction!(recorder::set_recorder, m)?)?;
    m.add_function(wrap_pyfunction!(recorder::recorder, m)?)?;
    m.add_function(wrap_pyfunction!(recorder::before_write_of_all, m)?)?;
    m.add_function(wrap_pyfunction!(live_bytes, m)?)?;
    m.add_function(wrap_pyfunction!(fail_allocation, m)?)?;
    m.add_function(wrap_pyfunction!(encode_png, m)?)?;
    m.add_function(wrap_pyfunction!(read_png, m)?)?;
    m.add_function(wrap_pyfunction!(lzw, m)?)?;
    m.add_function(wrap_pyfunction!(finish, m)?)?;
    let at_exit = m.py().import("atexit")?;
    at_exit.call_method1("register", (m.getattr("finish")?,))?;
    Ok(())
}
