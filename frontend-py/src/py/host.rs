//! Python as the frontend's host: objects recognised and turned into known values, and the operations on them.
//!
//! What each kind of object is recognised by is the table in `known`.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use aerogel_base::hash::LookupMap;
use aerogel_base::{ErrorKind, ScalarType};
use aerogel_snode::Tree;
use pyo3::exceptions::{
    PyAssertionError, PyAttributeError, PyException, PyIndexError, PyNameError, PyRuntimeError,
    PySyntaxError, PyTypeError,
};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyModule, PySlice, PyString,
    PyTuple, PyType,
};

use super::buffer::NativeNdarray;
use super::error;
use super::field::NativeField;
use super::lists::Lists;
use super::mesh;
use super::operator::{binary_name, unary_name};
use super::snode::{NativeSNode, tree_definition};
use crate::ast::{BinaryOp, CompareOp, UnaryOp};
use crate::fold;
use crate::host::*;

/// How deep lists are nested at most.
const MAX_NESTING: usize = 32;
/// How many items there are in nested lists at most.
const MAX_SEEN: usize = 1 << 20;
/// Bits of an integer that is computed while compiling.
const MAX_BITS: u64 = 1 << 16;

/// The running interpreter, with the objects that a lowering has met.
pub(crate) struct PyHost<'py> {
    py: Python<'py>,
    objects: Vec<Bound<'py, PyAny>>,
    /// The same object has the same handle.
    handles: BTreeMap<usize, Handle>,
    /// The objects behind builtin names.
    builtins: BTreeMap<String, Bound<'py, PyAny>>,
    pub(super) sources: BTreeMap<u32, FuncSource>,
    /// The fields met so far, by their objects, which `objects` keeps.
    fields: LookupMap<usize, Known>,
    lists: Lists<'py>,
    /// How often Python was asked for something that may run code of the user's.
    asked: u64,
    /// What ends everything: Ctrl-C, or `sys.exit()` in a function of the user's.
    raised: OnceCell<PyErr>,
    /// How deep in lists, tuples and objects what is being looked at lies, and how much has been seen of it.
    nesting: usize,
    seen: usize,
    watched: Vec<Watched>,
}

/// A global name that stood for a function, where that can be defined anew: it is in no file.
pub(crate) struct Watched {
    globals: Py<PyDict>,
    name: Py<PyString>,
    function: Py<PyAny>,
}

impl Watched {
    /// Whether the name still stands for that function.
    pub(crate) fn is_same(&self, py: Python<'_>) -> bool {
        let found = self.globals.bind(py).get_item(self.name.bind(py));
        matches!(found, Ok(Some(found)) if found.is(&self.function))
    }
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

/// A number as a count of bits: none if it is negative.
fn counted(n: i128) -> u64 {
    u64::try_from(n.max(0)).unwrap_or(u64::MAX)
}

/// How large a value is.
enum Size {
    /// The bits of an integer, and its value.
    Bits(u64, i128),
    /// Of a string or sequence.
    Len(usize),
    Other,
}

impl<'py> PyHost<'py> {
    pub(crate) fn new(py: Python<'py>) -> PyResult<Self> {
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

    fn object(&self, handle: Handle) -> Bound<'py, PyAny> {
        self.objects[handle.0 as usize].clone()
    }

    /// What an object is to the frontend.
    pub(crate) fn known(&mut self, object: &Bound<'py, PyAny>) -> PyResult<Known> {
        if self.nesting == 0 {
            self.seen = 0;
        }
        self.seen += 1;
        let wrong = if self.nesting >= MAX_NESTING {
            format!("is nested more than {MAX_NESTING} deep, or contains itself")
        } else if self.seen > MAX_SEEN {
            format!("has more than {MAX_SEEN} items: keep them in a field")
        } else {
            self.nesting += 1;
            let known = self.known_here(object);
            self.nesting -= 1;
            return known;
        };
        let message = format!("a list, tuple or struct that the kernel uses {wrong}");
        Err(error::exception(self.py, "AerogelTypeError", message))
    }

    /// The exception that ends everything, if there was one.
    pub(crate) fn take_raised(&mut self) -> Option<PyErr> {
        self.raised.take()
    }

    fn known_here(&mut self, object: &Bound<'py, PyAny>) -> PyResult<Known> {
        if object.is_none() {
            return Ok(Known::None);
        }
        if let Ok(value) = object.cast_exact::<PyBool>() {
            return Ok(Known::Bool(value.is_true()));
        }
        if object.cast_exact::<PyInt>().is_ok() {
            return Ok(match object.extract::<i64>() {
                Ok(value) => Known::Int(i128::from(value)),
                Err(_) => match object.extract::<u64>() {
                    Ok(value) => Known::Int(i128::from(value)),
                    Err(_) => Known::Object(self.handle(object)),
                },
            });
        }
        if let Ok(value) = object.cast_exact::<PyFloat>() {
            return Ok(Known::Float(value.value()));
        }
        if let Ok(text) = object.cast_exact::<PyString>() {
            return Ok(Known::Str(text.to_str()?.into()));
        }
        if let Ok(items) = object.cast_exact::<PyTuple>() {
            let items: PyResult<Vec<Known>> = items.iter().map(|item| self.known(&item)).collect();
            return Ok(Known::Tuple(items?.into()));
        }
        if let Ok(list) = object.cast_exact::<PyList>() {
            if let Some(known) = self.lists.find(list, self.asked) {
                return Ok(known);
            }
            let items: PyResult<Vec<Known>> = list.iter().map(|item| self.known(&item)).collect();
            let items: Rc<[Known]> = items?.into();
            self.lists.keep(list, &items, self.asked);
            return Ok(Known::List(items));
        }
        let address = object.as_ptr() as usize;
        if let Some(field) = self.fields.get(&address) {
            return Ok(field.clone());
        }
        let known = self.known_object(object)?;
        if let Known::Field(field) = &known
            && self.object(field.handle).is(object)
        {
            self.fields.insert(address, known.clone());
        }
        Ok(known)
    }

    fn known_object(&mut self, object: &Bound<'py, PyAny>) -> PyResult<Known> {
        let is_class = object.is_instance_of::<PyType>();
        let is_module = object.is_instance_of::<PyModule>();
        if let Some((name, _)) = self.builtins.iter().find(|(_, builtin)| builtin.is(object)) {
            return Ok(Known::Builtin(name.as_str().into()));
        }
        // A class or function carries the mark itself; an instance would inherit it from its class.
        if !is_module && let Some(dict) = mark(object, "__dict__")? {
            let mark = if is_class || dict.is_instance_of::<PyDict>() {
                dict.call_method1("get", ("__aerogel_builtin__",))?
            } else {
                dict
            };
            if let Ok(name) = mark.extract::<String>() {
                self.builtins
                    .entry(name.clone())
                    .or_insert_with(|| object.clone());
                return Ok(Known::Builtin(name.into()));
            }
        }
        if is_class || is_module {
            return Ok(Known::Object(self.handle(object)));
        }
        if let Some(parts) = mark(object, "_aerogel_struct_type")? {
            return Ok(Known::StructType(self.struct_type(object, &parts)?));
        }
        if let Some(parts) = mark(object, "_aerogel_struct")? {
            return self.struct_value(object, &parts);
        }
        if let Some(parts) = mark(object, "_aerogel_struct_field")? {
            return self.struct_field(object, &parts);
        }
        // A quantised type is one of storage: no value has it.
        if mark(object, "_aerogel_quant")?.is_some() {
            return Ok(Known::Object(self.handle(object)));
        }
        if let Some(name) = mark(object, "_aerogel_dtype")?
            && let Some(ty) = name
                .extract::<String>()
                .ok()
                .and_then(|name| ScalarType::from_name(&name))
        {
            return Ok(Known::DType(ty));
        }
        if let Some(ty) = mark(object, "_aerogel_tensor_type")? {
            let (n, m, elem): (u32, Option<u32>, String) = ty.extract()?;
            let elem = ScalarType::from_name(&elem)
                .ok_or_else(|| PyTypeError::new_err(format!("`{elem}` is not a scalar type")))?;
            let shape = m.map_or(TensorShape::Vector(n), |m| TensorShape::Matrix(n, m));
            return Ok(Known::TensorType { shape, elem });
        }
        if mark(object, "_aerogel_matrix")?.is_some() {
            return self.matrix(object);
        }
        if let Some(native) = mark(object, "_aerogel_field")? {
            return self.field(object, &native);
        }
        if let Some(native) = mark(object, "_aerogel_snode")?
            && let Ok(native) = native.cast::<NativeSNode>()
        {
            let (tree, node) = native.get().placed(self.py)?;
            let ndim = native.get().ndim();
            let handle = self.handle(object);
            return Ok(Known::SNode(Rc::new(SNodeRef {
                handle,
                tree: TreeKey(tree),
                node: node.as_u32(),
                ndim,
            })));
        }
        if let Some(known) = mesh::known(self, object)? {
            return Ok(known);
        }
        if let Some(function) = mark(object, "__aerogel_func__")? {
            let receiver = match object.getattr_opt("__self__")? {
                Some(receiver) => Some(self.known(&receiver)?),
                None => None,
            };
            let name = function.getattr("__name__")?.extract()?;
            return Ok(Known::Func(Rc::new(FuncRef {
                function: self.handle(&function),
                receiver,
                name,
            })));
        }
        let ty = object.get_type().name()?.to_string();
        if ty == "Kernel" || mark(object, "__aerogel_kernel__")?.is_some() {
            let name: String = object.getattr("__name__")?.extract()?;
            return Ok(Known::Kernel(name.into()));
        }
        // NumPy's scalars are plain numbers.
        if mark(object, "dtype")?.is_some()
            && mark(object, "item")?.is_some()
            && object
                .getattr("ndim")?
                .extract::<usize>()
                .is_ok_and(|n| n == 0)
        {
            let item = object.call_method0("item")?;
            if item.is_instance_of::<PyInt>() || item.is_instance_of::<PyFloat>() {
                return self.known(&item);
            }
        }
        Ok(Known::Object(self.handle(object)))
    }

    fn matrix(&mut self, object: &Bound<'py, PyAny>) -> PyResult<Known> {
        let (n, m, ndim): (u32, u32, u32) = (
            object.getattr("n")?.extract()?,
            object.getattr("m")?.extract()?,
            object.getattr("ndim")?.extract()?,
        );
        let shape = TensorShape::from_axes(n, m, ndim);
        let mut elements = Vec::new();
        for item in object.call_method0("to_list")?.try_iter()? {
            match self.known(&item?)? {
                Known::List(row) | Known::Tuple(row) => elements.extend(row.iter().cloned()),
                one => elements.push(one),
            }
        }
        let elem = match object.getattr_opt("_aerogel_matrix_dtype")? {
            Some(name) => name
                .extract::<Option<String>>()?
                .and_then(|name| ScalarType::from_name(&name)),
            None => None,
        };
        let handle = Some(self.handle(object));
        Ok(Known::Tensor(Rc::new(TensorConst {
            shape,
            elements,
            elem,
            handle,
        })))
    }

    fn field(&mut self, object: &Bound<'py, PyAny>, native: &Bound<'py, PyAny>) -> PyResult<Known> {
        let native = native.cast::<NativeField>()?.get();
        let place = native.placed(self.py)?;
        Ok(Known::Field(Rc::new(FieldRef {
            handle: self.handle(object),
            name: native.name().to_string(),
            tree: TreeKey(place.tree),
            places: place.places,
            elem: native.elem(),
            shape: native.tensor_shape(),
            ndim: place.ndim,
            offset: place.offset,
        })))
    }

    pub(crate) fn python(&self) -> Python<'py> {
        self.py
    }

    /// The Python object of a known value, with which something is about to be done.
    fn object_of(&mut self, known: &Known) -> PyResult<Bound<'py, PyAny>> {
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
        })
    }

    fn known_result(&mut self, result: PyResult<Bound<'py, PyAny>>) -> HostResult<Known> {
        result
            .and_then(|object| self.known(&object))
            .map_err(|error| self.error(&error))
    }

    /// A Python exception as the frontend reports it.
    fn error(&self, error: &PyErr) -> HostError {
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
                self.watch(&globals, name, &value)?;
            }
            return Ok(Some(known));
        }
        match PyModule::import(self.py, "builtins")?.getattr_opt(name)? {
            Some(value) => self.known(&value).map(Some),
            None => Ok(None),
        }
    }

    /// Notes that a name stands for a function, if that is in no file.
    fn watch(
        &mut self,
        globals: &Bound<'py, PyDict>,
        name: &str,
        function: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let module = PyModule::import(self.py, "aerogel._source")?;
        let is_in_file = module.call_method1("is_in_file", (function,))?;
        if !is_in_file.is_truthy()? {
            self.watched.push(Watched {
                globals: globals.clone().unbind(),
                name: PyString::new(self.py, name).unbind(),
                function: function.clone().unbind(),
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

    /// That an operation on integers, lists or strings makes nothing that takes minutes or all memory.
    fn expect_small(&mut self, op: BinaryOp, lhs: &Known, rhs: &Known) -> HostResult<()> {
        let [a, b] = [lhs, rhs].map(|operand| self.size(operand));
        let (bits, len) = match (op, a, b) {
            (BinaryOp::Pow, Size::Bits(a, _), Size::Bits(_, b)) if a > 1 => {
                (a.saturating_mul(counted(b)), 0)
            }
            (BinaryOp::Shl, Size::Bits(a, _), Size::Bits(_, b)) => {
                (a.saturating_add(counted(b)), 0)
            }
            (BinaryOp::Mul, Size::Bits(a, _), Size::Bits(b, _)) => (a.saturating_add(b), 0),
            (BinaryOp::Mul, Size::Len(len), Size::Bits(_, n))
            | (BinaryOp::Mul, Size::Bits(_, n), Size::Len(len)) => (
                0,
                len.saturating_mul(usize::try_from(n.max(0)).unwrap_or(usize::MAX)),
            ),
            (BinaryOp::Add, Size::Len(a), Size::Len(b)) => (0, a + b),
            _ => return Ok(()),
        };
        if bits > MAX_BITS {
            let message = format!(
                "an integer computed while compiling has at most {MAX_BITS} bits, the result of `{}` has more",
                op.symbol()
            );
            return Err(HostError::new(ErrorKind::Compilation, message));
        }
        fold::expect_short(len)
    }

    /// What decides how large the result of an operation is.
    fn size(&mut self, known: &Known) -> Size {
        let object = match known {
            Known::Int(value) => {
                let bits = u128::BITS - value.unsigned_abs().leading_zeros();
                return Size::Bits(u64::from(bits), *value);
            }
            Known::Str(text) => return Size::Len(text.len()),
            Known::Object(handle) => self.object(*handle),
            known => {
                return known
                    .items()
                    .map_or(Size::Other, |items| Size::Len(items.len()));
            }
        };
        if object.is_instance_of::<PyInt>() {
            let bits = object.call_method0("bit_length");
            let bits = bits.and_then(|bits| bits.extract()).unwrap_or(u64::MAX);
            // What has more bits than a number here is as good as without end.
            let value = object.extract().unwrap_or(i128::MAX);
            return Size::Bits(bits, value);
        }
        let is_text = object.is_instance_of::<PyString>()
            || object.is_instance_of::<PyBytes>()
            || object.is_instance_of::<PyByteArray>()
            || object.is_instance_of::<PyTuple>()
            || object.is_instance_of::<PyList>();
        match object.len() {
            Ok(len) if is_text => Size::Len(len),
            _ => Size::Other,
        }
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
        // What cannot be asked is not worth a warning.
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
        })
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

    fn tree(&mut self, key: TreeKey) -> HostResult<Arc<Tree>> {
        tree_definition(key.0).ok_or_else(|| {
            HostError::new(
                ErrorKind::Runtime,
                "the field's layout is gone: it was destroyed, or the program reset",
            )
        })
    }
}
