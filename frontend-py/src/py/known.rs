//! Classification of Python objects for the frontend.

use std::rc::Rc;

use aerogel_base::ScalarType;
use aerogel_ir::Derivative;
use aerogel_snode::NodeId;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyModule, PyString, PyTuple, PyType};

use super::error;
use super::field::NativeField;
use super::host::{PyHost, mark};
use super::mesh;
use super::snode::NativeSNode;
use super::traced::Expr;
use crate::host::*;

/// How deep lists are nested at most.
const MAX_NESTING: usize = 32;
/// How many items there are in nested lists at most.
const MAX_SEEN: usize = 1 << 20;

impl<'py> PyHost<'py> {
    /// The frontend's view of an object.
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
        if let Ok(expr) = object.cast::<Expr>() {
            return self.traced(expr.get());
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

    /// The fields with derivatives of a kind that have a component below a node.
    pub(super) fn fields_below(
        &mut self,
        tree: TreeKey,
        node: NodeId,
        kind: Derivative,
    ) -> PyResult<Vec<Rc<FieldRef>>> {
        let gradients = self.py.import("aerogel.ad._gradients")?;
        let mut found = Vec::new();
        for object in gradients
            .call_method1("fields_with_gradients", (kind.name(),))?
            .try_iter()?
        {
            let object = object?;
            let placement = object.cast::<NativeField>()?.get().placement(self.py)?;
            if placement.store.key != tree.0 {
                continue;
            }
            let below = placement.store.tree.subtree(node);
            if placement.places.iter().any(|place| below.contains(place))
                && let Known::Field(field) = self.known(&object)?
            {
                found.push(field);
            }
        }
        Ok(found)
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
}
