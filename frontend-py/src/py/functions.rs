//! Functions that kernels call: their text, their names, and what their annotations say to callers.

use std::rc::Rc;

use aerogel_base::SourceFile;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::host::PyHost;
use crate::host::{
    Callable, ClassRef, FuncRef, FuncSource, Handle, Init, Known, Passing, ResultType, Signature,
};

/// The types that parameters are annotated with, by name.
type Types = Vec<(String, Known)>;

impl<'py> PyHost<'py> {
    /// A function or method of the user's without a decorator.
    pub(super) fn plain_function(
        &mut self,
        object: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Rc<FuncRef>>> {
        let (function, receiver) = match object.getattr_opt("__func__")? {
            Some(function) => (function, Some(self.known(&object.getattr("__self__")?)?)),
            None => (object.clone(), None),
        };
        let module = PyModule::import(self.python(), "aerogel._source")?;
        if !module.call_method1("is_users", (&function,))?.is_truthy()? {
            return Ok(None);
        }
        Ok(Some(Rc::new(FuncRef {
            function: self.handle(&function),
            receiver,
            name: function.getattr("__name__")?.extract()?,
        })))
    }

    /// The function that calling an object calls: that of a `functools.partial`, or its class's `__call__`.
    pub(super) fn called_by(&mut self, object: &Bound<'py, PyAny>) -> PyResult<Option<Callable>> {
        type Called<'py> = (
            Bound<'py, PyAny>,
            Vec<Bound<'py, PyAny>>,
            Bound<'py, PyDict>,
        );
        let found: Option<Called<'py>> = PyModule::import(self.python(), "aerogel._source")?
            .call_method1("called_by", (object,))?
            .extract()?;
        let Some((callee, positional, keywords)) = found else {
            return Ok(None);
        };
        let callee = self.known(&callee)?;
        let positional = positional
            .iter()
            .map(|value| self.known(value))
            .collect::<PyResult<_>>()?;
        let mut named = Vec::new();
        for (name, value) in &keywords {
            named.push((name.extract()?, self.known(&value)?));
        }
        Ok(Some(Callable {
            callee,
            positional,
            keywords: named,
        }))
    }

    /// A class of the user's, of which objects can be made.
    pub(super) fn class_of(
        &mut self,
        handle: Handle,
        class: &Bound<'py, PyAny>,
    ) -> PyResult<Option<ClassRef>> {
        type Named<'py> = Vec<(String, Bound<'py, PyAny>)>;
        type Fields<'py> = Vec<(String, bool, Bound<'py, PyAny>)>;
        type Parts<'py> = (
            String,
            Named<'py>,
            Named<'py>,
            Option<Bound<'py, PyAny>>,
            Fields<'py>,
        );
        let found: Option<Parts<'py>> = PyModule::import(self.python(), "aerogel._source")?
            .call_method1("class_parts", (class,))?
            .extract()?;
        let Some((name, methods, properties, init, fields)) = found else {
            return Ok(None);
        };
        let mut func = |name: String, function: &Bound<'py, PyAny>| {
            Rc::new(FuncRef {
                function: self.handle(function),
                receiver: None,
                name,
            })
        };
        let mut funcs = |named: Named<'py>| {
            let named = named.into_iter();
            named.map(|(name, f)| func(name, &f)).collect::<Vec<_>>()
        };
        let (methods, properties) = (funcs(methods), funcs(properties));
        let init = match init {
            Some(init) => Init::Function(func("__init__".to_owned(), &init)),
            None => Init::Fields(
                fields
                    .into_iter()
                    .map(|(name, has_default, value)| {
                        let default = has_default.then(|| self.known(&value)).transpose()?;
                        Ok((name, default))
                    })
                    .collect::<PyResult<_>>()?,
            ),
        };
        Ok(Some(ClassRef {
            handle,
            name,
            methods,
            properties,
            init,
        }))
    }

    /// A `ti.func` that takes a struct as its first argument.
    pub(crate) fn method(&mut self, name: &str, function: &Py<PyAny>) -> PyResult<Rc<FuncRef>> {
        let function = function.bind(self.python()).getattr("__aerogel_func__")?;
        Ok(Rc::new(FuncRef {
            function: self.handle(&function),
            receiver: None,
            name: name.to_owned(),
        }))
    }

    /// The text of a function and where its names live; `original` is the function under the decorator.
    pub(crate) fn func_source(&mut self, original: &Bound<'py, PyAny>) -> PyResult<FuncSource> {
        let scope = self.handle(original);
        if let Some(source) = self.sources.get(&scope.0) {
            return Ok(source.clone());
        }
        let info = PyModule::import(self.python(), "aerogel._source")?
            .call_method1("source_info", (original,))?;
        let (path, first_line, text): (String, u32, String) = info.extract()?;
        let code = original.getattr("__code__")?;
        let n_params: usize = code.getattr("co_argcount")?.extract()?;
        let names: Vec<String> = code
            .getattr("co_varnames")?
            .extract::<Vec<String>>()?
            .into_iter()
            .take(n_params)
            .collect();
        let mut defaults = Vec::new();
        if let Ok(values) = original.getattr("__defaults__")?.cast::<PyTuple>() {
            for (name, value) in names[n_params - values.len()..].iter().zip(values.iter()) {
                defaults.push((name.clone(), self.known(&value)?));
            }
        }
        let (templates, types) = self.annotations(original)?;
        let file = SourceFile {
            path,
            first_line,
            indent: 0,
            text,
        };
        let signature = match original.getattr_opt("__aerogel_real__")? {
            Some(_) => Some(Rc::new(self.signature(original)?)),
            None => None,
        };
        let source = FuncSource {
            scope,
            file,
            defaults,
            templates,
            types,
            signature,
        };
        self.sources.insert(scope.0, source.clone());
        Ok(source)
    }

    /// The parameters of a function that are templates, and those that have types; the `return` among them.
    fn annotations(&mut self, original: &Bound<'py, PyAny>) -> PyResult<(Vec<String>, Types)> {
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

    /// The signature of a real function, from its annotations.
    fn signature(&mut self, function: &Bound<'py, PyAny>) -> PyResult<Signature> {
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
