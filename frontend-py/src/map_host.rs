//! A host without Python: names from a map, `ti.` as the builtins, fields declared by layout text.

use std::rc::Rc;
use std::sync::Arc;

use aerogel_base::{ErrorKind, ScalarType, SourceFile};
use aerogel_snode::{NodeId, Tree, parse_nodes};
use indexmap::IndexMap;

use crate::ast::{BinaryOp, CompareOp, UnaryOp};
use crate::host::*;
use crate::intrinsics;

/// The object that `ti` stands for.
const TI: Handle = Handle(0);
/// Where the names of kernels and functions are looked up.
const FIRST_FUNC: u32 = 1000;

/// Globals, functions and fields, all given as text.
#[derive(Default)]
pub struct MapHost {
    globals: IndexMap<String, Known>,
    funcs: Vec<(FuncSource, String)>,
    objects: Vec<IndexMap<String, Known>>,
    trees: Vec<Arc<Tree>>,
}

impl MapHost {
    pub fn new() -> Self {
        let mut host = Self::default();
        host.set("ti", Known::Object(TI));
        for name in crate::intrinsics::PYTHON {
            host.set(name, Known::Builtin((*name).into()));
        }
        host
    }

    pub fn set(&mut self, name: &str, value: Known) {
        self.globals.insert(name.to_string(), value);
    }

    /// An object with attributes.
    pub fn object(&mut self, attributes: &[(&str, Known)]) -> Known {
        self.objects.push(
            attributes
                .iter()
                .map(|(name, value)| (name.to_string(), value.clone()))
                .collect(),
        );
        Known::Object(Handle(self.objects.len() as u32))
    }

    /// Declares the fields that a layout places, as in `dense i:4 { place x: f32 }`.
    pub fn layout(&mut self, text: &str) {
        let tree = Arc::new(parse_nodes(text).expect("a valid layout"));
        let key = TreeKey(self.trees.len() as u64);
        for (place, elem) in tree.places() {
            let name = tree[place].name.clone();
            let field = self.field(&name, key, vec![place], elem, TensorShape::Scalar, &tree);
            self.set(&name, field);
        }
        self.trees.push(tree);
    }

    /// Declares one tensor field over all the places of a layout, and each component by its place's
    /// name.
    pub fn tensor_field(&mut self, name: &str, shape: TensorShape, text: &str) {
        let tree = Arc::new(parse_nodes(text).expect("a valid layout"));
        let key = TreeKey(self.trees.len() as u64);
        let places: Vec<(NodeId, ScalarType)> = tree.places().collect();
        let field = self.field(
            name,
            key,
            places.iter().map(|p| p.0).collect(),
            places[0].1,
            shape,
            &tree,
        );
        self.set(name, field);
        for (place, elem) in places {
            let component = tree[place].name.clone();
            let scalar = TensorShape::Scalar;
            let field = self.field(&component, key, vec![place], elem, scalar, &tree);
            self.set(&component, field);
        }
        self.trees.push(tree);
    }

    fn field(
        &mut self,
        name: &str,
        tree: TreeKey,
        places: Vec<NodeId>,
        elem: ScalarType,
        shape: TensorShape,
        layout: &Tree,
    ) -> Known {
        let extents = layout.shape(places[0]);
        let attributes = Known::tuple(extents.iter().map(|&n| Known::Int(i128::from(n))));
        let Known::Object(handle) = self.object(&[("shape", attributes)]) else {
            unreachable!("it is an object")
        };
        let ndim = extents.len() as u32;
        Known::Field(Rc::new(FieldRef {
            handle,
            name: name.to_string(),
            tree,
            places,
            elem,
            shape,
            ndim,
            offset: Vec::new(),
        }))
    }

    /// Declares a struct type; methods are functions that have been declared.
    pub fn struct_type(
        &mut self,
        name: &str,
        members: &[(&str, Known)],
        methods: &[&str],
    ) -> Known {
        let methods = methods.iter().map(|method| match &self.globals[*method] {
            Known::Func(func) => func.clone(),
            other => panic!("{} is no function", other.describe()),
        });
        let ty = Known::StructType(Rc::new(StructType {
            handle: None,
            class: None,
            name: name.to_string(),
            methods: methods.collect(),
            properties: Vec::new(),
            members: members
                .iter()
                .map(|(name, ty)| StructMember {
                    name: name.to_string(),
                    ty: Some(ty.clone()),
                })
                .collect(),
        }));
        self.set(name, ty.clone());
        ty
    }

    /// Declares a field of structs whose members are fields that have been declared under the members' names, or
    /// fields of structs.
    pub fn struct_field(&mut self, name: &str, ty: &Known) -> Known {
        let Known::StructType(ty) = ty else {
            panic!("{} is no struct type", ty.describe())
        };
        let members = ty.members.iter().map(|m| self.globals[&m.name].clone());
        let members = members.collect();
        let Known::Object(handle) = self.object(&[]) else {
            unreachable!("it is an object")
        };
        let field = Known::StructField(Rc::new(StructFieldRef {
            handle,
            name: name.to_string(),
            ty: ty.clone(),
            members,
        }));
        self.set(name, field.clone());
        field
    }

    /// Declares a `ti.func` by its source.
    pub fn func(&mut self, text: &str) {
        self.declare(text, None);
    }

    /// Declares a `ti.real_func` by its source; its annotations are given apart.
    pub fn real_func(&mut self, text: &str, signature: Signature) {
        self.declare(text, Some(Rc::new(signature)));
    }

    fn declare(&mut self, text: &str, signature: Option<Rc<Signature>>) {
        let name = text.split(['(', ' ']).nth(1).expect("a def").to_string();
        let mut source = self.source_of(text);
        source.signature = signature;
        let (last, _) = self.funcs.last_mut().expect("just declared");
        *last = source.clone();
        let func = Known::Func(Rc::new(FuncRef {
            function: source.scope,
            receiver: None,
            name: name.clone(),
        }));
        self.set(&name, func);
    }

    /// The source of a kernel or function; `name: template` marks a template parameter.
    pub fn source_of(&mut self, text: &str) -> FuncSource {
        let scope = Handle(FIRST_FUNC + self.funcs.len() as u32);
        let head = text.split(':').next().unwrap_or_default();
        let templates = text
            .split(['(', ',', ')'])
            .filter_map(|part| Some(part.split_once(": ti.template")?.0.trim().to_string()))
            .collect();
        let source = FuncSource {
            scope,
            file: SourceFile {
                path: "test.py".into(),
                first_line: 1,
                indent: 0,
                text: text.to_string(),
            },
            defaults: Vec::new(),
            templates,
            types: Vec::new(),
            signature: None,
        };
        self.funcs.push((source.clone(), head.to_string()));
        source
    }

    fn no<T>(&self, what: &str) -> HostResult<T> {
        Err(HostError::new(
            ErrorKind::Type,
            format!("there is no Python here for {what}"),
        ))
    }
}

impl Host for MapHost {
    fn lookup(&mut self, _: Handle, name: &str) -> HostResult<Option<Known>> {
        Ok(self.globals.get(name).cloned())
    }

    fn attr(&mut self, value: &Known, name: &str) -> HostResult<Option<Known>> {
        let handle = match value {
            Known::Object(TI) => {
                let found = intrinsics::names()
                    .find(|row| *row == name)
                    .map(|row| Known::Builtin(row.into()));
                return Ok(found.or_else(|| ScalarType::from_name(name).map(Known::DType)));
            }
            Known::Object(handle) => *handle,
            Known::Field(field) => field.handle,
            _ => return Ok(None),
        };
        Ok(self
            .objects
            .get(handle.0 as usize - 1)
            .and_then(|object| object.get(name))
            .cloned())
    }

    fn names(&mut self, value: &Known) -> Vec<String> {
        match value {
            Known::Object(TI) => intrinsics::names().map(str::to_owned).collect(),
            _ => Vec::new(),
        }
    }

    fn call(&mut self, _: &Known, _: &[Known], _: &[(String, Known)]) -> HostResult<Known> {
        self.no("a call")
    }

    fn unary(&mut self, _: UnaryOp, _: &Known) -> HostResult<Known> {
        self.no("an operator")
    }

    fn binary(&mut self, op: BinaryOp, lhs: &Known, rhs: &Known) -> HostResult<Known> {
        let message = format!(
            "unsupported operand types for {}: {} and {}",
            op.symbol(),
            lhs.describe(),
            rhs.describe()
        );
        Err(HostError::new(ErrorKind::Type, message))
    }

    fn compare(&mut self, _: CompareOp, _: &Known, _: &Known) -> HostResult<Known> {
        self.no("a comparison")
    }

    fn index(&mut self, _: &Known, _: &Known) -> HostResult<Known> {
        self.no("an index")
    }

    fn iterate(&mut self, _: &Known, _: usize) -> HostResult<Vec<Known>> {
        self.no("an iteration")
    }

    fn truth(&mut self, _: &Known) -> HostResult<bool> {
        Ok(true)
    }

    fn format(&mut self, value: &Known, _: &str) -> HostResult<String> {
        Ok(match value {
            Known::Float(value) => format!("{value:?}"),
            other => other.describe(),
        })
    }

    fn function(&mut self, _: &Known) -> Option<Rc<FuncRef>> {
        None
    }

    fn source(&mut self, func: &FuncRef) -> HostResult<FuncSource> {
        Ok(self.funcs[(func.function.0 - FIRST_FUNC) as usize]
            .0
            .clone())
    }

    fn tree(&mut self, key: TreeKey) -> HostResult<Arc<Tree>> {
        Ok(self.trees[key.0 as usize].clone())
    }
}
