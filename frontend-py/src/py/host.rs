//! Python as the frontend's host: objects recognised and turned into known values, and the operations on them.
//!
//! How each kind of object is recognised is in `known.rs`.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use aerogel_base::hash::LookupMap;
use aerogel_base::{Diagnostic, ErrorKind, ScalarType};
use aerogel_ir::Derivative;
use aerogel_snode::{NodeId, Tree};
use pyo3::exceptions::{
    PyAssertionError, PyAttributeError, PyException, PyIndexError, PyNameError, PyRuntimeError,
    PySyntaxError, PyTypeError,
};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyDict, PyFloat, PyInt, PyList, PyModule, PySlice, PyString, PyTuple, PyType,
};
use pyo3::{PyTraverseError, PyVisit};

use super::error;
use super::field::NativeField;
use super::lists::Lists;
use super::ndarray::NativeNdarray;
use super::operator::{binary_name, unary_name};
use super::snode::{find, tree_definition};
use super::traced::{self, Exchange};
use crate::ast::{BinaryOp, CompareOp, UnaryOp};
use crate::derived::Derived;
use crate::host::*;
use crate::traced::{Call, Outcome, Request};

/// The running interpreter, with the objects that a lowering has met.
pub(crate) struct PyHost<'py> {
    pub(super) py: Python<'py>,
    pub(super) objects: Vec<Bound<'py, PyAny>>,
    /// The same object has the same handle.
    handles: BTreeMap<usize, Handle>,
    /// The objects behind builtin names.
    pub(super) builtins: BTreeMap<String, Bound<'py, PyAny>>,
    pub(super) sources: BTreeMap<u32, FuncSource>,
    /// The fields met so far, by their objects, which `objects` keeps.
    pub(super) fields: LookupMap<usize, Known>,
    pub(super) lists: Lists<'py>,
    /// How often Python was called in a way that may run user code.
    pub(super) asked: u64,
    /// What ends everything: Ctrl-C, or `sys.exit()` in a function of the user's.
    raised: OnceCell<PyErr>,
    /// How deep in lists, tuples and objects what is being looked at lies, and how much has been seen of it.
    pub(super) nesting: usize,
    pub(super) seen: usize,
    watched: Vec<Watched>,
    /// The derivative that will be made of the module, if any.
    derivative: Option<Derived>,
    /// Which lowering this is for, and the calls of Python code that run, each made by the one before.
    pub(super) lowering: u64,
    pub(super) calls: Vec<Rc<Exchange>>,
}

/// A global name whose value can be replaced: a function that is in no file, or a number that a cell of a notebook uses.
pub(crate) struct Watched {
    globals: Py<PyDict>,
    name: Py<PyString>,
    value: Py<PyAny>,
}

impl Watched {
    /// Reports owned references to Python's garbage collector.
    pub(crate) fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.globals)?;
        visit.call(&self.name)?;
        visit.call(&self.value)
    }

    /// Whether the name still stands for that function, or for an equal number.
    pub(crate) fn is_same(&self, py: Python<'_>) -> bool {
        let Ok(Some(found)) = self.globals.bind(py).get_item(self.name.bind(py)) else {
            return false;
        };
        let value = self.value.bind(py);
        // Numbers are written as text where 0.0 and -0.0 differ.
        found.is(value)
            || is_plain(value)
                && found.get_type().is(value.get_type())
                && matches!((found.repr(), value.repr()), (Ok(a), Ok(b)) if a.as_any().eq(&b).unwrap_or(false))
    }
}

/// Whether this is a number or a string.
fn is_plain(value: &Bound<'_, PyAny>) -> bool {
    let of = [
        value.is_exact_instance_of::<PyInt>(),
        value.is_exact_instance_of::<PyFloat>(),
        value.is_exact_instance_of::<PyBool>(),
        value.is_exact_instance_of::<PyString>(),
    ];
    of.contains(&true)
}

/// What an object says of itself. What a `__getattr__` of the user's raises says that it is none of ours.
pub(super) fn mark<'py>(
    object: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    match object.getattr_opt(name) {
        Err(error)
            if error.is_instance_of::<PyException>(object.py())
                && !object.get_type().hasattr(name)? =>
        {
            Ok(None)
        }
        found => found,
    }
}

impl<'py> PyHost<'py> {
    pub(crate) fn new(py: Python<'py>, derivative: Option<Derived>) -> PyResult<Self> {
        let module = PyModule::import(py, "builtins")?;
        let mut builtins = BTreeMap::new();
        for &name in crate::intrinsics::PYTHON {
            builtins.insert(name.to_string(), module.getattr(name)?);
        }
        // Of a constant it is not what `ti.round` is.
        if let Some(round) = builtins.remove("round") {
            builtins.insert("builtins.round".into(), round);
        }
        Ok(Self {
            py,
            objects: Vec::new(),
            handles: BTreeMap::new(),
            builtins,
            sources: BTreeMap::new(),
            fields: LookupMap::default(),
            lists: Lists::default(),
            asked: 0,
            raised: OnceCell::new(),
            nesting: 0,
            seen: 0,
            watched: Vec::new(),
            derivative,
            lowering: traced::next_lowering(),
            calls: Vec::new(),
        })
    }

    pub(super) fn handle(&mut self, object: &Bound<'py, PyAny>) -> Handle {
        let key = object.as_ptr() as usize;
        if let Some(&handle) = self.handles.get(&key) {
            return handle;
        }
        let handle = Handle(self.objects.len() as u32);
        // The table keeps the object, so its address stays its own.
        self.objects.push(object.clone());
        self.handles.insert(key, handle);
        handle
    }

    pub(super) fn object(&self, handle: Handle) -> Bound<'py, PyAny> {
        self.objects[handle.0 as usize].clone()
    }

    /// The exception that ends everything, if there was one.
    pub(crate) fn take_raised(&mut self) -> Option<PyErr> {
        self.raised.take()
    }

    /// The field of a field's derivatives, if it has one that is placed.
    fn derivative_field(
        &mut self,
        field: &FieldRef,
        kind: Derivative,
    ) -> PyResult<Option<Rc<FieldRef>>> {
        let object = self.object(field.handle);
        let Some(other) = object.getattr_opt(kind.name())?.filter(|o| !o.is_none()) else {
            return Ok(None);
        };
        let is_placed = |native: &Bound<'_, NativeField>| native.get().is_placed();
        if !other.cast::<NativeField>().is_ok_and(is_placed) {
            return Ok(None);
        }
        let found = match self.known(&other)? {
            Known::Field(found) if found.elem == field.elem && found.shape == field.shape => found,
            _ => return Ok(None),
        };
        if self.derivative == Some(Derived::GradDual) && kind == Derivative::Grad {
            let has_tangent = |object: &Bound<'py, PyAny>| -> PyResult<bool> {
                let tangent = object.getattr_opt(Derivative::Dual.name())?;
                Ok(tangent.is_some_and(|t| t.cast::<NativeField>().is_ok_and(is_placed)))
            };
            if !has_tangent(&object)? || !has_tangent(&other)? {
                let name = object.cast::<NativeField>()?.get().name().to_owned();
                let what = format!(
                    "`{name}` has a gradient and no tangents: second derivatives need a field with needs_grad=True and \
                     needs_dual=True"
                );
                return Err(error::runtime(self.py, what));
            }
        }
        Ok(Some(found))
    }

    /// Whether an array has another for its derivatives.
    fn has_derivative(&self, array: &Bound<'py, PyAny>, ty: ScalarType) -> bool {
        let Some(derived) = self.derivative.filter(|_| ty.is_float()) else {
            return false;
        };
        let found = array.getattr_opt(derived.steps()[0].name());
        matches!(found, Ok(Some(other)) if !other.is_none())
    }

    pub(crate) fn python(&self) -> Python<'py> {
        self.py
    }

    /// The Python object of a known value, with which something is about to be done.
    pub(super) fn object_of(&mut self, known: &Known) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        self.asked += 1;
        Ok(match known {
            Known::None => py.None().into_bound(py),
            Known::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
            Known::Int(value) => match i64::try_from(*value) {
                Ok(value) => value.into_pyobject(py)?.into_any(),
                Err(_) => py.get_type::<PyInt>().call1((value.to_string(),))?,
            },
            Known::Float(value) => PyFloat::new(py, *value).into_any(),
            Known::Str(text) => PyString::new(py, text).into_any(),
            Known::Tuple(items) => {
                let items: PyResult<Vec<_>> =
                    items.iter().map(|item| self.object_of(item)).collect();
                PyTuple::new(py, items?)?.into_any()
            }
            Known::List(items) => {
                let items: PyResult<Vec<_>> =
                    items.iter().map(|item| self.object_of(item)).collect();
                PyList::new(py, items?)?.into_any()
            }
            Known::Slice(parts) => {
                let parts: PyResult<Vec<_>> =
                    parts.iter().map(|part| self.object_of(part)).collect();
                py.get_type::<PySlice>().call1(PyTuple::new(py, parts?)?)?
            }
            Known::DType(ty) => PyModule::import(py, "aerogel")?.getattr(ty.name())?,
            Known::TensorType { shape, elem } => {
                let types = PyModule::import(py, "aerogel")?.getattr("types")?;
                let elem = self.object_of(&Known::DType(*elem))?;
                match *shape {
                    TensorShape::Matrix(n, m) => types.call_method1("matrix", (n, m, elem))?,
                    TensorShape::Vector(_) | TensorShape::Scalar => {
                        types.call_method1("vector", (shape.len(), elem))?
                    }
                }
            }
            Known::Tensor(tensor) => match tensor.handle {
                Some(handle) => self.object(handle),
                None => {
                    let elements = self.object_of(&Known::List(tensor.elements.clone().into()))?;
                    PyModule::import(py, "aerogel")?.call_method1("Vector", (elements,))?
                }
            },
            Known::StructType(ty) => match ty.handle {
                Some(handle) => self.object(handle),
                None => return Err(PyTypeError::new_err("the struct has no type in Python")),
            },
            Known::Struct(value) => self.object(value.handle),
            Known::StructField(field) => self.object(field.handle),
            Known::Field(field) => self.object(field.handle),
            Known::SNode(node) => self.object(node.handle),
            Known::Elements(elements) => self.object(elements.handle),
            Known::Relation(relation) => self.object(relation.handle),
            Known::Func(func) => self.object(func.function),
            Known::Kernel(name) => PyString::new(py, name).into_any(),
            Known::Builtin(name) => match self.builtins.get(&**name) {
                Some(object) => object.clone(),
                None => {
                    return Err(PyNameError::new_err(format!(
                        "`{name}` cannot be called with these arguments"
                    )));
                }
            },
            Known::Object(handle) => self.object(*handle),
            Known::Traced(at) => self.expr(*at)?,
        })
    }

    fn known_result(&mut self, result: PyResult<Bound<'py, PyAny>>) -> HostResult<Known> {
        result
            .and_then(|object| self.known(&object))
            .map_err(|error| self.error(&error))
    }

    /// A Python exception as the frontend reports it.
    pub(super) fn error(&self, error: &PyErr) -> HostError {
        let py = self.py;
        if !error.is_instance_of::<PyException>(py) {
            let _ = self.raised.set(error.clone_ref(py));
        }
        let kind = match () {
            // The package says itself what cannot be done in the present state.
            () if error.is_instance_of::<PyRuntimeError>(py) => ErrorKind::Runtime,
            () if error.is_instance_of::<PySyntaxError>(py) => ErrorKind::Syntax,
            () if error.is_instance_of::<PyNameError>(py) => ErrorKind::Name,
            () if error.is_instance_of::<PyTypeError>(py) => ErrorKind::Type,
            () if error.is_instance_of::<PyIndexError>(py) => ErrorKind::Index,
            () if error.is_instance_of::<PyAssertionError>(py) => ErrorKind::Assertion,
            () => ErrorKind::Compilation,
        };
        let name = error
            .get_type(py)
            .name()
            .map_or_else(|_| "error".into(), |name| name.to_string());
        let text = error.value(py).to_string();
        // The package's own errors say by their kind what they are.
        let is_ours = name.starts_with("Aerogel");
        HostError::new(
            kind,
            if is_ours {
                text
            } else {
                format!("{name}: {text}")
            },
        )
    }

    fn find_name(&mut self, scope: Handle, name: &str) -> PyResult<Option<Known>> {
        let function = self.object(scope);
        let names: Vec<String> = function
            .getattr("__code__")?
            .getattr("co_freevars")?
            .extract()?;
        if let Some(at) = names.iter().position(|free| free == name) {
            let cell = function.getattr("__closure__")?.get_item(at)?;
            return match cell.getattr_opt("cell_contents") {
                Ok(Some(value)) => self.known(&value).map(Some),
                _ => Ok(None),
            };
        }
        let globals = function.getattr("__globals__")?.cast_into::<PyDict>()?;
        if let Some(value) = globals.get_item(name)? {
            let known = self.known(&value)?;
            if matches!(known, Known::Func(_)) {
                self.watch(&globals, name, &value, ("_source", "is_in_file", &value))?;
            } else if is_plain(&value) {
                self.watch(
                    &globals,
                    name,
                    &value,
                    ("_notebook", "is_in_file", &function),
                )?;
            }
            return Ok(Some(known));
        }
        match PyModule::import(self.py, "builtins")?.getattr_opt(name)? {
            Some(value) => self.known(&value).map(Some),
            None => Ok(None),
        }
    }

    /// Notes what a name stands for, if a function of Python's says that another function is in no file.
    fn watch(
        &mut self,
        globals: &Bound<'py, PyDict>,
        name: &str,
        value: &Bound<'py, PyAny>,
        (module, test, function): (&str, &str, &Bound<'py, PyAny>),
    ) -> PyResult<()> {
        let module = PyModule::import(self.py, format!("aerogel.{module}"))?;
        let is_in_file = module.call_method1(test, (function,))?;
        if !is_in_file.is_truthy()? {
            self.watched.push(Watched {
                globals: globals.clone().unbind(),
                name: PyString::new(self.py, name).unbind(),
                value: value.clone().unbind(),
            });
        }
        Ok(())
    }

    /// The object behind a handle.
    pub(crate) fn held(&self, handle: Handle) -> Py<PyAny> {
        self.objects[handle.0 as usize].clone().unbind()
    }

    /// The names that may come to stand for other functions.
    pub(crate) fn watched(&mut self) -> impl Iterator<Item = Watched> {
        std::mem::take(&mut self.watched).into_iter()
    }

    fn operator(&mut self, name: &str, operands: &[&Known]) -> HostResult<Known> {
        let result = operands
            .iter()
            .map(|operand| self.object_of(operand))
            .collect::<PyResult<Vec<_>>>()
            .and_then(|operands| {
                let operands = PyTuple::new(self.py, operands)?;
                PyModule::import(self.py, "operator")?
                    .getattr(name)?
                    .call1(operands)
            });
        self.known_result(result)
    }
}

impl Host for PyHost<'_> {
    fn lookup(&mut self, scope: Handle, name: &str) -> HostResult<Option<Known>> {
        self.find_name(scope, name)
            .map_err(|error| self.error(&error))
    }

    fn attr(&mut self, value: &Known, name: &str) -> HostResult<Option<Known>> {
        let found = self
            .object_of(value)
            .and_then(|object| match object.getattr(name) {
                Ok(value) => self.known(&value).map(Some),
                // What is Taichi's and not there says itself what there is instead.
                Err(error)
                    if error.is_instance_of::<PyAttributeError>(self.py)
                        && !error.is_instance_of::<PyRuntimeError>(self.py) =>
                {
                    Ok(None)
                }
                Err(error) => Err(error),
            });
        found.map_err(|error| self.error(&error))
    }

    fn names(&mut self, value: &Known) -> Vec<String> {
        let names = self
            .object_of(value)
            .and_then(|object| object.dir()?.extract::<Vec<String>>());
        let mut names = names.unwrap_or_default();
        names.retain(|name| !name.starts_with('_'));
        names
    }

    fn call(
        &mut self,
        callee: &Known,
        args: &[Known],
        keywords: &[(String, Known)],
    ) -> HostResult<Known> {
        let result = self.object_of(callee).and_then(|callee| {
            let args: PyResult<Vec<_>> = args.iter().map(|arg| self.object_of(arg)).collect();
            let named = PyDict::new(self.py);
            for (name, value) in keywords {
                named.set_item(name, self.object_of(value)?)?;
            }
            callee.call(PyTuple::new(self.py, args?)?, Some(&named))
        });
        self.known_result(result)
    }

    fn begin(
        &mut self,
        callee: &Known,
        args: &[Known],
        keywords: &[(String, Known)],
        guarded: bool,
    ) -> HostResult<Option<Box<dyn Call>>> {
        let call = self.begin_call(callee, args, keywords, guarded);
        call.map(Some).map_err(|error| self.error(&error))
    }

    fn request(&mut self) -> HostResult<Request> {
        self.requested()
    }

    fn answer(&mut self, answer: Result<Known, Diagnostic>) {
        self.answered(answer);
    }

    fn outcome(&mut self) -> Outcome {
        self.ended()
    }

    fn unary(&mut self, op: UnaryOp, operand: &Known) -> HostResult<Known> {
        self.operator(unary_name(op), &[operand])
    }

    fn binary(&mut self, op: BinaryOp, lhs: &Known, rhs: &Known) -> HostResult<Known> {
        self.expect_small(op, lhs, rhs)?;
        self.operator(binary_name(op), &[lhs, rhs])
    }

    fn interrupted(&mut self) -> bool {
        if let Err(error) = self.py.check_signals() {
            let _ = self.raised.set(error);
        }
        self.raised.get().is_some()
    }

    fn compare(&mut self, op: CompareOp, lhs: &Known, rhs: &Known) -> HostResult<Known> {
        match op {
            CompareOp::Eq => self.operator("eq", &[lhs, rhs]),
            CompareOp::Ne => self.operator("ne", &[lhs, rhs]),
            CompareOp::Lt => self.operator("lt", &[lhs, rhs]),
            CompareOp::Le => self.operator("le", &[lhs, rhs]),
            CompareOp::Gt => self.operator("gt", &[lhs, rhs]),
            CompareOp::Ge => self.operator("ge", &[lhs, rhs]),
            CompareOp::Is => self.operator("is_", &[lhs, rhs]),
            CompareOp::IsNot => self.operator("is_not", &[lhs, rhs]),
            CompareOp::In => self.operator("contains", &[rhs, lhs]),
            CompareOp::NotIn => {
                let contains = self.operator("contains", &[rhs, lhs])?;
                Ok(Known::Bool(!matches!(contains, Known::Bool(true))))
            }
        }
    }

    fn index(&mut self, value: &Known, index: &Known) -> HostResult<Known> {
        self.operator("getitem", &[value, index])
    }

    fn iterate(&mut self, value: &Known, most: usize) -> HostResult<Vec<Known>> {
        let items = self.object_of(value).and_then(|object| {
            let mut items = Vec::new();
            for item in object.try_iter()? {
                if items.len() == most {
                    let message =
                        format!("what is iterated over while compiling has more than {most} items");
                    return Err(error::exception(
                        self.py,
                        "AerogelCompilationError",
                        message,
                    ));
                }
                items.push(self.known(&item?)?);
            }
            Ok(items)
        });
        items.map_err(|error| self.error(&error))
    }

    fn unsteady(&mut self, callee: &Known) -> Option<String> {
        let ask = |object: Bound<'_, PyAny>| {
            let module = PyModule::import(object.py(), "aerogel._source")?;
            module.call_method1("unsteady", (object,))?.extract()
        };
        // An attribute that cannot be read is not worth a warning.
        self.object_of(callee).and_then(ask).ok().flatten()
    }

    fn number(&self, value: &Known) -> Option<Known> {
        let Known::Object(handle) = value else {
            return None;
        };
        let object = self.object(*handle);
        if object.is_instance_of::<PyInt>() {
            object.extract().ok().map(Known::Int)
        } else if object.is_instance_of::<PyFloat>() {
            object.extract().ok().map(Known::Float)
        } else {
            None
        }
    }

    fn truth(&mut self, value: &Known) -> HostResult<bool> {
        let truth = self.object_of(value).and_then(|object| object.is_truthy());
        truth.map_err(|error| self.error(&error))
    }

    fn format(&mut self, value: &Known, spec: &str) -> HostResult<String> {
        let text = self.object_of(value).and_then(|object| {
            PyModule::import(self.py, "builtins")?
                .call_method1("format", (object, spec))?
                .extract::<String>()
        });
        text.map_err(|error| self.error(&error))
    }

    fn function(&mut self, value: &Known) -> Option<Rc<FuncRef>> {
        let Known::Object(handle) = value else {
            return None;
        };
        let object = self.object(*handle);
        self.plain_function(&object).ok().flatten()
    }

    fn callable(&mut self, value: &Known) -> HostResult<Option<Callable>> {
        let Known::Object(handle) = value else {
            return Ok(None);
        };
        let object = self.object(*handle);
        self.called_by(&object).map_err(|error| self.error(&error))
    }

    fn array(&mut self, value: &Known) -> Option<ArrayRef> {
        let Known::Object(handle) = value else {
            return None;
        };
        let object = self.object(*handle);
        let array = object.cast::<NativeNdarray>().ok()?.get();
        Some(ArrayRef {
            handle: *handle,
            elem: array.ty,
            shape: array.element,
            ndim: array.shape.len() as u32,
            derivative: self.has_derivative(&object, array.ty),
        })
    }

    fn derivative(
        &mut self,
        field: &FieldRef,
        kind: Derivative,
    ) -> HostResult<Option<Rc<FieldRef>>> {
        let found = self.derivative_field(field, kind);
        found.map_err(|error| self.error(&error))
    }

    fn differentiable_below(
        &mut self,
        tree: TreeKey,
        node: NodeId,
        kind: Derivative,
    ) -> HostResult<Vec<Rc<FieldRef>>> {
        let found = self.fields_below(tree, node, kind);
        found.map_err(|error| self.error(&error))
    }

    fn class(&mut self, value: &Known) -> HostResult<Option<ClassRef>> {
        let Known::Object(handle) = value else {
            return Ok(None);
        };
        let object = self.object(*handle);
        if !object.is_instance_of::<PyType>() {
            return Ok(None);
        }
        self.asked += 1;
        self.class_of(*handle, &object)
            .map_err(|error| self.error(&error))
    }

    fn source(&mut self, func: &FuncRef) -> HostResult<FuncSource> {
        let original = self.object(func.function);
        self.func_source(&original)
            .map_err(|error| self.error(&error))
    }

    fn is_split(&self, key: TreeKey) -> bool {
        find(key.0).is_some_and(|store| store.grid.get().is_some())
    }

    fn tree(&mut self, key: TreeKey) -> HostResult<Arc<Tree>> {
        tree_definition(key.0).ok_or_else(|| {
            HostError::new(
                ErrorKind::Runtime,
                "the field's layout no longer exists: it was destroyed, or ti.init() or ti.reset() was called",
            )
        })
    }
}
