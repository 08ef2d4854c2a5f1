//! Windows and scenes: pictures drawn by Vulkan, on the screen or off it.
//!
//! A window takes a list of things to draw (`frame`), panels of widgets (`widgets`), and shows both: in a window of the
//! desktop (`screen`, `present`), or only in a picture that can be read back (`picture`). It knows nothing of fields or of the
//! names that programs use: the Python package puts those on it.

mod frame;
mod gpu;
mod keys;
mod packed;
mod picture;
mod pipelines;
mod plots;
mod present;
mod room;
mod screen;
mod widgets;
mod window;
mod x11;

use pyo3::prelude::*;

/// `aerogel_viz._viz`.
#[pymodule]
fn _viz(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("MAX_LIGHTS", frame::MAX_LIGHTS)?;
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<window::Window>()?;
    module.add_function(wrap_pyfunction!(window::adapter, module)?)?;
    module.add_function(wrap_pyfunction!(window::most_pixels, module)?)?;
    Ok(())
}
