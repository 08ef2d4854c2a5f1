//! What the annotations of functions say to their callers.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::host::PyHost;
use crate::host::{Known, Passing, ResultType, Signature};

/// The types that parameters are annotated with, by name.
type Types = Vec<(String, Known)>;

impl<'py> PyHost<'py> {
    /// The parameters of a function that are templates, and those that have types; the `return` among them.
    pub(super) fn annotations(
        &mut self,
        original: &Bound<'py, PyAny>,
    ) -> PyResult<(Vec<String>, Types)> {
        let (mut templates, mut types) = (Vec::new(), Vec::new());
        let found = original.getattr("__annotations__")?;
        for (name, annotation) in found.cast::<PyDict>().into_iter().flatten() {
            let kind = annotation
                .getattr_opt("_aerogel_annotation")?
                .and_then(|kind| kind.extract::<String>().ok());
            let by_text = annotation
                .extract::<String>()
                .is_ok_and(|text| text.contains("template"));
            if kind.as_deref() == Some("template") || by_text {
                templates.push(name.extract()?);
            }
            let known = self.known(&annotation)?;
            if matches!(
                known,
                Known::DType(_)
                    | Known::TensorType { .. }
                    | Known::StructType(_)
                    | Known::Builtin(_)
            ) {
                types.push((name.extract()?, known));
            }
        }
        Ok((templates, types))
    }

    /// What the annotations of a real function say.
    pub(super) fn signature(&mut self, function: &Bound<'py, PyAny>) -> PyResult<Signature> {
        type Parameters<'py> = Vec<(String, Bound<'py, PyAny>)>;
        let read = PyModule::import(self.python(), "aerogel.kernel")?.getattr("_real_signature")?;
        let (read, results, many): (Parameters<'py>, Option<Vec<Bound<'py, PyAny>>>, bool) =
            read.call1((function,))?.extract()?;
        let mut params = Vec::new();
        for (kind, ty) in read {
            params.push(match (kind.as_str(), self.known(&ty)?) {
                ("value", ty) => Passing::Value(ty),
                ("reference", Known::DType(ty)) => Passing::Reference(ty),
                _ => Passing::Template,
            });
        }
        let mut types = Vec::new();
        for ty in results.iter().flatten() {
            types.push(ResultType::One(self.known(ty)?));
        }
        let result = match results {
            Some(_) if many => Some(ResultType::Tuple(types)),
            _ => types.pop(),
        };
        Ok(Signature { params, result })
    }
}
