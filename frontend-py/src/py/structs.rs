//! Structs, their types, and fields of them.

use std::rc::Rc;

use pyo3::prelude::*;

use super::host::PyHost;
use crate::host::*;

impl<'py> PyHost<'py> {
    /// A struct type with its members and methods; `parts` is what it says of itself.
    pub(super) fn struct_type(
        &mut self,
        object: &Bound<'py, PyAny>,
        parts: &Bound<'py, PyAny>,
    ) -> PyResult<Rc<StructType>> {
        type Named<'py> = Vec<(String, Bound<'py, PyAny>)>;
        let (name, types, functions): (String, Named<'py>, Named<'py>) = parts.extract()?;
        let mut members = Vec::new();
        for (name, ty) in types {
            let ty = Some(self.known(&ty)?);
            members.push(StructMember { name, ty });
        }
        let mut methods = Vec::new();
        for (name, function) in functions {
            methods.push(self.method(&name, function.as_unbound())?);
        }
        let handle = Some(self.handle(object));
        Ok(Rc::new(StructType {
            handle,
            class: None,
            name,
            members,
            methods,
            properties: Vec::new(),
        }))
    }

    /// The type that a struct or field of structs says it has, or one made of names; and the members.
    fn struct_members(
        &mut self,
        parts: &Bound<'py, PyAny>,
    ) -> PyResult<(Rc<StructType>, Vec<Known>)> {
        let (ty, members): (Bound<'py, PyAny>, Vec<(String, Bound<'py, PyAny>)>) =
            parts.extract()?;
        let ty = if ty.is_none() {
            let names = members.iter().map(|(name, _)| name.as_str());
            Rc::new(StructType::untyped(names))
        } else {
            let parts = ty.getattr("_aerogel_struct_type")?;
            self.struct_type(&ty, &parts)?
        };
        let members: PyResult<Vec<Known>> =
            members.iter().map(|(_, value)| self.known(value)).collect();
        Ok((ty, members?))
    }

    /// A struct in Python scope, whose members are known.
    pub(super) fn struct_value(
        &mut self,
        object: &Bound<'py, PyAny>,
        parts: &Bound<'py, PyAny>,
    ) -> PyResult<Known> {
        let (ty, members) = self.struct_members(parts)?;
        let handle = self.handle(object);
        Ok(Known::Struct(Rc::new(StructConst {
            handle,
            ty,
            members,
        })))
    }

    /// A field of structs.
    pub(super) fn struct_field(
        &mut self,
        object: &Bound<'py, PyAny>,
        parts: &Bound<'py, PyAny>,
    ) -> PyResult<Known> {
        let (ty, members) = self.struct_members(parts)?;
        Ok(Known::StructField(Rc::new(StructFieldRef {
            handle: self.handle(object),
            name: object.getattr("_name")?.extract()?,
            ty,
            members,
        })))
    }
}
