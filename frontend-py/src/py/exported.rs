//! Kernels as C code: `Kernel.export_c`.

use aerogel_compiler::Arch;
use aerogel_compiler::export::{ExportError, Exported, Parameter, Request, export};
use aerogel_ir::{Module, ParamType};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::kernel::NativeKernel;
use super::prepare::Instance;
use super::signature::ValueSpec;
use super::{error, program};

/// The header, the function, the library and the LLVM IR.
pub(crate) type Files<'py> = (String, String, Bound<'py, PyBytes>, String);

/// The files of an export, for Python.
pub(crate) fn files(py: Python<'_>, exported: Exported) -> Files<'_> {
    let library = PyBytes::new(py, &exported.library);
    (exported.header, exported.driver, library, exported.llvm)
}

/// Refuses other devices than the processor.
pub(crate) fn expect_cpu(py: Python<'_>, what: &str) -> PyResult<()> {
    if matches!(program::settings_or_begin(py)?.arch, Arch::Cpu) {
        return Ok(());
    }
    let what = format!("{what} is exported for processors: call ti.init(arch=ti.cpu) before");
    Err(error::runtime(py, what))
}

impl NativeKernel {
    /// The files of an instance; `identify` makes identifiers of C of names.
    pub(super) fn exported<'py>(
        &self,
        py: Python<'py>,
        instance: &Instance,
        name: &str,
        identify: &Bound<'py, PyAny>,
    ) -> PyResult<Files<'py>> {
        let kernel = &self.signature.name;
        let refused = |why: &str| {
            PyTypeError::new_err(format!("kernel `{kernel}` cannot be exported: {why}"))
        };
        let module = instance.source();
        if let Some(why) = memory_from_outside(module, instance) {
            return Err(refused(&why));
        }
        let identify = |name: String| identify.call1((name,))?.extract::<String>();
        let params = &module.kernel().expect("it is a kernel's").params;
        let parameters = params.iter().map(|param| {
            let own = identify(param.name.clone())?;
            let n_axes = match param.ty {
                ParamType::Array { ndim, .. } => ndim,
                ParamType::Value(_) => 0,
            };
            let sizes = (0..n_axes).map(|k| identify(format!("{own}_size{k}")));
            let sizes = sizes.collect::<PyResult<_>>()?;
            Ok(Parameter { name: own, sizes })
        });
        let parameters = parameters.collect::<PyResult<Vec<_>>>()?;
        let mut outputs = Vec::new();
        for (k, spec) in self.signature.results.iter().flatten().enumerate() {
            let name = match self.signature.many {
                true => format!("out_{k}"),
                false => "out".to_owned(),
            };
            leaves(spec, name, &mut outputs);
        }
        let outputs = outputs.into_iter().map(identify).collect::<PyResult<_>>()?;
        let request = Request {
            name,
            parameters,
            outputs,
        };
        let compiler = instance.compiler();
        let made = py.detach(|| export(module, compiler, &request));
        let exported = made.map_err(|e| match e {
            ExportError::Refused(why) => refused(&why),
            ExportError::Compile(e) => error::not_compiled(py, kernel, e),
        })?;
        Ok(files(py, exported))
    }
}

/// Why a C program cannot call an instance with its arguments alone, and the remedy.
fn memory_from_outside(module: &Module, instance: &Instance) -> Option<String> {
    if instance.derivative.is_some() {
        let what = "the instance that was compiled last is a gradient; pass arguments, as in `export_c(folder, x)`";
        return Some(what.to_owned());
    }
    if let Some(field) = module.env.fields.values().next() {
        let name = &field.name;
        return Some(format!(
            "it uses the field `{name}`: pass a `ti.types.ndarray()` instead"
        ));
    }
    if !instance.trees.is_empty() {
        return Some("it uses an SNode: pass a `ti.types.ndarray()` instead".to_owned());
    }
    if !instance.captured.is_empty() {
        let what = "it uses an array that is no argument: pass it as a `ti.types.ndarray()`";
        return Some(what.to_owned());
    }
    None
}

/// The names of the values by which a result is returned.
fn leaves(spec: &ValueSpec, name: String, out: &mut Vec<String>) {
    match spec {
        ValueSpec::Tensor(_) => out.push(name),
        ValueSpec::Struct(spec) => {
            for (member, ty) in &spec.members {
                leaves(ty, format!("{name}_{member}"), out);
            }
        }
    }
}
