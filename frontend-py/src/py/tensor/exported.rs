//! Programs as C code.

use aerogel_tensor::export::{ExportError, Input, Request, export};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::compiled::NativeProgram;
use super::native::NativeTensor;
use super::places;
use super::values::{not_compiled, settings_now};
use crate::py::error;
use crate::py::exported::{Files, expect_cpu, files};

/// The name of an input, its shape, and its values if it is a constant.
pub(super) type Shaped<'py> = (String, Vec<usize>, Option<Bound<'py, NativeTensor>>);

impl NativeProgram {
    pub(super) fn exported<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        inputs: Vec<Shaped<'py>>,
        outputs: Vec<String>,
    ) -> PyResult<Files<'py>> {
        expect_cpu(py, "a program")?;
        let mut given = Vec::new();
        for (name, shape, value) in inputs {
            let data = value.map(|value| bytes(py, &value)).transpose()?;
            given.push(Input { name, shape, data });
        }
        // The plan that calls with these shapes run, so that the library computes the same.
        let program = &self.traced.program;
        let types = program.inputs().map(|b| program.buffers[b].ty);
        let shapes: Vec<_> = types
            .zip(given.iter().map(|input| &input.shape[..]))
            .collect();
        let plan = self.plan_of_shapes(py, &shapes)?;
        let made = settings_now(py, |settings| {
            let request = Request {
                name,
                inputs: given,
                outputs,
                line: &|site| {
                    let site = &self.traced.program.sites[site];
                    places::named(py, self.traced.lines.of_site(site)?)
                },
                fast_math: settings.fast_math,
            };
            export(plan.program(), settings.compiler, &request).map_err(|e| self.refused(py, &e))
        });
        Ok(files(py, made?))
    }
}

/// The bytes of a tensor's values.
fn bytes(py: Python<'_>, tensor: &Bound<'_, NativeTensor>) -> PyResult<Vec<u8>> {
    let operand = tensor.get().operand(py)?;
    let mut bytes = vec![0; operand.shape.iter().product::<usize>() * operand.ty.bytes() as usize];
    operand.buffer.read(0, &mut bytes).map_err(error::memory)?;
    Ok(bytes)
}

impl NativeProgram {
    fn refused(&self, py: Python<'_>, e: &ExportError) -> PyErr {
        match e {
            ExportError::Refused(buffer, why) => {
                let mut text = why.clone();
                let known = buffer.filter(|b| self.traced.program.buffers.get(*b).is_some());
                if let Some(place) = known.and_then(|b| self.traced.lines.of_buffer(b)) {
                    places::show(py, &mut text, place);
                }
                PyTypeError::new_err(text)
            }
            ExportError::Failure(e) => self.traced.ended(py, &e.clone().into()),
            ExportError::Compile(e) => not_compiled(py, e),
        }
    }
}
