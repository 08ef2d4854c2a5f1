//! Values known while compiling, and the trait through which Python provides them and computes with them.
//!
//! The frontend never touches Python: whatever a kernel takes from around it arrives here as a `Known`. What needs
//! Python to be understood (a module, a dict, an object) stays an opaque `Handle` that only the host can open.

use std::rc::Rc;
use std::sync::Arc;

use aerogel_base::{Diagnostic, ErrorKind, ScalarType, SourceFile};
use aerogel_ir::Derivative;
use aerogel_snode::{NodeId, Tree};

use crate::ast::{BinaryOp, CompareOp, UnaryOp};
use crate::traced::{Call, Outcome, Request};

/// A Python object held by the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle(pub u32);

/// An SNode tree of the running process; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TreeKey(pub u64);

/// The shape of a value that a cell, a constant or a type holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TensorShape {
    Scalar,
    Vector(u32),
    Matrix(u32, u32),
}

impl TensorShape {
    /// The shape with so many rows, columns and axes, as Python's objects say it.
    pub fn from_axes(n: u32, m: u32, n_axes: u32) -> Self {
        match n_axes {
            0 => TensorShape::Scalar,
            1 => TensorShape::Vector(n),
            _ => TensorShape::Matrix(n, m),
        }
    }

    /// The shape with these sizes, if there are at most two.
    pub fn from_extents(extents: &[usize]) -> Option<Self> {
        match *extents {
            [] => Some(TensorShape::Scalar),
            [n] => Some(TensorShape::Vector(n as u32)),
            [n, m] => Some(TensorShape::Matrix(n as u32, m as u32)),
            _ => None,
        }
    }

    /// The size of each axis.
    pub fn extents(self) -> Vec<usize> {
        match self {
            TensorShape::Scalar => Vec::new(),
            TensorShape::Vector(n) => vec![n as usize],
            TensorShape::Matrix(n, m) => vec![n as usize, m as usize],
        }
    }

    /// How many rows and columns: one column for a vector.
    pub fn rows_and_columns(self) -> (u32, u32) {
        match self {
            TensorShape::Scalar => (1, 1),
            TensorShape::Vector(n) => (n, 1),
            TensorShape::Matrix(n, m) => (n, m),
        }
    }

    /// How many axes.
    pub fn n_axes(self) -> u32 {
        match self {
            TensorShape::Scalar => 0,
            TensorShape::Vector(_) => 1,
            TensorShape::Matrix(..) => 2,
        }
    }

    /// How many scalars.
    pub fn len(self) -> u32 {
        match self {
            TensorShape::Scalar => 1,
            TensorShape::Vector(n) => n,
            TensorShape::Matrix(n, m) => n * m,
        }
    }

    /// Whether there are no scalars at all.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// A Python value known while the kernel is compiled.
#[derive(Clone, Debug)]
pub enum Known {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(Rc<str>),
    Tuple(Rc<[Known]>),
    List(Rc<[Known]>),
    /// The operand of `x[a:b:c]`.
    Slice(Rc<[Known; 3]>),
    DType(ScalarType),
    TensorType {
        shape: TensorShape,
        elem: ScalarType,
    },
    Tensor(Rc<TensorConst>),
    StructType(Rc<StructType>),
    /// A struct made in Python scope.
    Struct(Rc<StructConst>),
    Field(Rc<FieldRef>),
    StructField(Rc<StructFieldRef>),
    SNode(Rc<SNodeRef>),
    /// The vertices, edges, faces or cells of a mesh.
    Elements(Rc<ElementsRef>),
    /// Which elements of a mesh lie at those of another kind.
    Relation(Rc<RelationRef>),
    /// A `ti.func`.
    Func(Rc<FuncRef>),
    /// A `ti.kernel`, which a kernel cannot call.
    Kernel(Rc<str>),
    /// A function or class of the language, by its name in the table of `intrinsics`.
    Builtin(Rc<str>),
    Object(Handle),
    /// A value of the kernel in the hands of Python code, by its number in the table of `lower/calls/python.rs`.
    Traced(u32),
}

/// A matrix made in Python scope.
#[derive(Clone, Debug)]
pub struct TensorConst {
    pub shape: TensorShape,
    /// Row by row.
    pub elements: Vec<Known>,
    pub elem: Option<ScalarType>,
    pub handle: Option<Handle>,
}

/// A field, and where it is placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRef {
    pub handle: Handle,
    pub name: String,
    pub tree: TreeKey,
    /// The nodes of its scalars in the tree, row by row.
    pub places: Vec<NodeId>,
    pub elem: ScalarType,
    pub shape: TensorShape,
    pub ndim: u32,
    /// The first of the user's indices, for each axis; empty for zeros.
    pub offset: Vec<i32>,
}

/// Names, types and methods of a struct's members.
#[derive(Clone, Debug)]
pub struct StructType {
    pub handle: Option<Handle>,
    /// The class of the user's whose objects its values are; they have its other attributes too.
    pub class: Option<Handle>,
    /// Empty if it has none.
    pub name: String,
    pub members: Vec<StructMember>,
    pub methods: Vec<Rc<FuncRef>>,
    /// The functions that are called where a member is read: Python's `@property`.
    pub properties: Vec<Rc<FuncRef>>,
}

/// A member of a struct.
#[derive(Clone, Debug)]
pub struct StructMember {
    pub name: String,
    /// A scalar, tensor or struct type; nothing where the value decides.
    pub ty: Option<Known>,
}

/// A struct and the values of its members.
#[derive(Clone, Debug)]
pub struct StructConst {
    pub handle: Handle,
    pub ty: Rc<StructType>,
    pub members: Vec<Known>,
}

/// A field of structs: a set of fields, one for each member.
#[derive(Clone, Debug)]
pub struct StructFieldRef {
    pub handle: Handle,
    pub name: String,
    pub ty: Rc<StructType>,
    /// Fields, and fields of structs.
    pub members: Vec<Known>,
}

impl StructType {
    /// A type without types.
    pub fn untyped<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        Self {
            handle: None,
            class: None,
            name: String::new(),
            members: names
                .map(|name| StructMember {
                    name: name.to_owned(),
                    ty: None,
                })
                .collect(),
            methods: Vec::new(),
            properties: Vec::new(),
        }
    }

    /// Whether a struct of another type can be used as one of this: the members have the same names, and objects are of
    /// one class, which has their methods.
    pub fn is_alike(&self, other: &StructType) -> bool {
        self.class == other.class
            && self.members.len() == other.members.len()
            && self
                .members
                .iter()
                .all(|m| other.position(&m.name).is_some())
    }

    /// Whether its values may be dictionaries that a kernel has written: it comes from no type or class.
    pub fn is_dict(&self) -> bool {
        self.handle.is_none() && self.class.is_none() && self.methods.is_empty()
    }

    /// Which member has a name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.members.iter().position(|member| member.name == name)
    }

    pub fn method(&self, name: &str) -> Option<Rc<FuncRef>> {
        self.methods.iter().find(|func| func.name == name).cloned()
    }

    pub fn property(&self, name: &str) -> Option<Rc<FuncRef>> {
        self.properties
            .iter()
            .find(|func| func.name == name)
            .cloned()
    }

    /// What the user would call a value of it.
    pub fn describe(&self) -> String {
        if self.class.is_some() {
            format!("the object of `{}`", self.name)
        } else if self.name.is_empty() {
            "the struct".into()
        } else {
            format!("the struct `{}`", self.name)
        }
    }
}

impl StructFieldRef {
    /// The field of a member, under a name that says whose it is.
    pub fn member(&self, k: usize) -> Known {
        let called = |own: &str| match (own.is_empty(), self.name.is_empty()) {
            (true, true) => self.ty.members[k].name.clone(),
            (true, false) => format!("{}.{}", self.name, self.ty.members[k].name),
            (false, _) => own.to_owned(),
        };
        match &self.members[k] {
            Known::Field(field) => Known::Field(Rc::new(FieldRef {
                name: called(&field.name),
                ..(**field).clone()
            })),
            Known::StructField(field) => Known::StructField(Rc::new(StructFieldRef {
                name: called(&field.name),
                ..(**field).clone()
            })),
            other => other.clone(),
        }
    }

    /// The fields of numbers, vectors and matrices, in order.
    pub fn leaves(&self) -> Vec<Rc<FieldRef>> {
        let mut leaves = Vec::new();
        for k in 0..self.members.len() {
            match self.member(k) {
                Known::Field(field) => leaves.push(field),
                Known::StructField(field) => leaves.extend(field.leaves()),
                _ => {}
            }
        }
        leaves
    }
}

/// A node of an SNode tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SNodeRef {
    pub handle: Handle,
    pub tree: TreeKey,
    pub node: u32,
    pub ndim: u32,
}

/// The elements of a mesh that are of one kind; their attributes and relations are the object's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementsRef {
    pub handle: Handle,
    /// `verts`, `edges`, `faces` or `cells`.
    pub name: String,
    pub n: i32,
}

/// For each element of a mesh those of another kind that lie at it, all in one field.
#[derive(Clone, Debug)]
pub struct RelationRef {
    pub handle: Handle,
    pub to: Rc<ElementsRef>,
    pub targets: Rc<FieldRef>,
    /// Where an element's begin in `targets`.
    pub offsets: Offsets,
}

/// How many elements lie at each.
#[derive(Clone, Debug)]
pub enum Offsets {
    /// As many at each.
    Every(i32),
    /// Element `i` has those from `offsets[i]` up to `offsets[i + 1]`.
    Field(Rc<FieldRef>),
}

/// A `ti.func`, perhaps bound to an object.
#[derive(Clone, Debug)]
pub struct FuncRef {
    /// The Python function under the decorator.
    pub function: Handle,
    pub receiver: Option<Known>,
    pub name: String,
}

/// An object that calls something else: a `functools.partial`, or one whose class has `__call__`.
#[derive(Clone, Debug)]
pub struct Callable {
    pub callee: Known,
    /// Arguments before those of the call.
    pub positional: Vec<Known>,
    /// Keyword arguments, which those of the call override.
    pub keywords: Vec<(String, Known)>,
}

/// A class of the user's, of which kernels can make objects.
#[derive(Clone, Debug)]
pub struct ClassRef {
    pub handle: Handle,
    pub name: String,
    pub methods: Vec<Rc<FuncRef>>,
    pub properties: Vec<Rc<FuncRef>>,
    pub init: Init,
}

/// How an object of a class is made from the arguments of the call.
#[derive(Clone, Debug)]
pub enum Init {
    /// By `__init__`, which assigns its members.
    Function(Rc<FuncRef>),
    /// The members in order, with the values of those that are not given.
    Fields(Vec<(String, Option<Known>)>),
}

/// An array that Python has, whose memory kernels use.
#[derive(Clone, Copy, Debug)]
pub struct ArrayRef {
    pub handle: Handle,
    pub elem: ScalarType,
    pub shape: TensorShape,
    pub ndim: u32,
    /// Whether there is an array of its derivatives.
    pub derivative: bool,
}

/// The data needed to lower a function.
#[derive(Clone, Debug)]
pub struct FuncSource {
    /// Where its free names are looked up.
    pub scope: Handle,
    pub file: SourceFile,
    /// Default values, by parameter.
    pub defaults: Vec<(String, Known)>,
    /// Parameters annotated `ti.template()`.
    pub templates: Vec<String>,
    /// Types that parameters are annotated with, and the `return`.
    pub types: Vec<(String, Known)>,
    /// What the annotations of a real function say; nothing for one that is inlined.
    pub signature: Option<Rc<Signature>>,
}

/// How a real function takes its arguments, and what it returns.
#[derive(Clone, Debug)]
pub struct Signature {
    /// One for each parameter.
    pub params: Vec<Passing>,
    pub result: Option<ResultType>,
}

/// How a real function takes an argument.
#[derive(Clone, Debug)]
pub enum Passing {
    /// As a value of a type.
    Value(Known),
    /// As a variable, or an element of a field, that it can change.
    Reference(ScalarType),
    /// As something known while compiling, or an array.
    Template,
}

/// The type of what a real function returns.
#[derive(Clone, Debug)]
pub enum ResultType {
    One(Known),
    Tuple(Vec<ResultType>),
}

/// A mistake that Python found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostError {
    pub kind: ErrorKind,
    pub message: String,
}

impl HostError {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

pub type HostResult<T> = Result<T, HostError>;

/// Python, as the frontend sees it.
pub trait Host {
    /// A free name of a function: closure, globals, builtins, in this order.
    fn lookup(&mut self, scope: Handle, name: &str) -> HostResult<Option<Known>>;
    /// `value.name`, `None` when there is no such attribute.
    fn attr(&mut self, value: &Known, name: &str) -> HostResult<Option<Known>>;
    /// The names of the attributes of a value, to find the one that was meant.
    fn names(&mut self, value: &Known) -> Vec<String>;
    fn call(
        &mut self,
        callee: &Known,
        args: &[Known],
        keywords: &[(String, Known)],
    ) -> HostResult<Known>;
    /// Prepares a call of Python code that may work with values of the kernel; nothing if this host can run none. If it is
    /// `guarded`, the code may neither read nor write fields and arrays, which have their values when the kernel runs.
    fn begin(
        &mut self,
        _callee: &Known,
        _args: &[Known],
        _keywords: &[(String, Known)],
        _guarded: bool,
    ) -> HostResult<Option<Box<dyn Call>>> {
        Ok(None)
    }
    /// The request of the code that runs.
    fn request(&mut self) -> HostResult<Request> {
        unreachable!("this host runs no code")
    }
    /// Passes the result of a request to the code that runs, or its error.
    fn answer(&mut self, _answer: Result<Known, Diagnostic>) {}
    /// How the call that was begun last has ended.
    fn outcome(&mut self) -> Outcome {
        unreachable!("this host runs no code")
    }
    /// The name of a function that may give something else each time, or do more than to give something.
    fn unsteady(&mut self, _callee: &Known) -> Option<String> {
        None
    }
    fn unary(&mut self, op: UnaryOp, operand: &Known) -> HostResult<Known>;
    fn binary(&mut self, op: BinaryOp, lhs: &Known, rhs: &Known) -> HostResult<Known>;
    fn compare(&mut self, op: CompareOp, lhs: &Known, rhs: &Known) -> HostResult<Known>;
    fn index(&mut self, value: &Known, index: &Known) -> HostResult<Known>;
    /// The items of something, of which there are `most` at most.
    fn iterate(&mut self, value: &Known, most: usize) -> HostResult<Vec<Known>>;
    fn truth(&mut self, value: &Known) -> HostResult<bool>;
    /// Whether the user wants an end, by Ctrl-C or what a function of theirs raised.
    fn interrupted(&mut self) -> bool {
        false
    }
    /// The number that an object is: a member of an `enum.IntEnum`.
    fn number(&self, _value: &Known) -> Option<Known> {
        None
    }
    /// `format(value, spec)`.
    fn format(&mut self, value: &Known, spec: &str) -> HostResult<String>;
    fn source(&mut self, func: &FuncRef) -> HostResult<FuncSource>;

    /// A function of the user's in Python, which could be lowered; none for what a library has, or has no source.
    fn function(&mut self, value: &Known) -> Option<Rc<FuncRef>>;
    /// The function that calling an object calls, if it is not its own code.
    fn callable(&mut self, _value: &Known) -> HostResult<Option<Callable>> {
        Ok(None)
    }
    /// The field of a field's derivatives, if it has one.
    fn derivative(
        &mut self,
        _field: &FieldRef,
        _kind: Derivative,
    ) -> HostResult<Option<Rc<FieldRef>>> {
        Ok(None)
    }
    /// The fields with derivatives of a kind that lie below a node.
    fn differentiable_below(
        &mut self,
        _tree: TreeKey,
        _node: NodeId,
        _kind: Derivative,
    ) -> HostResult<Vec<Rc<FieldRef>>> {
        Ok(Vec::new())
    }
    /// The `ti.ndarray` that a value is.
    fn array(&mut self, _value: &Known) -> Option<ArrayRef> {
        None
    }
    /// The class of the user's that a value is, if objects of it can be made in a kernel.
    fn class(&mut self, _value: &Known) -> HostResult<Option<ClassRef>> {
        Ok(None)
    }
    /// The layout of a tree that a field or node belongs to.
    fn tree(&mut self, key: TreeKey) -> HostResult<Arc<Tree>>;
    /// Whether other processes have cells of a field of the tree, too.
    fn is_split(&self, _key: TreeKey) -> bool {
        false
    }
}

impl Known {
    pub fn str(text: &str) -> Known {
        Known::Str(text.into())
    }

    pub fn tuple(items: impl IntoIterator<Item = Known>) -> Known {
        Known::Tuple(items.into_iter().collect())
    }

    /// The items of a tuple or list.
    pub fn items(&self) -> Option<&[Known]> {
        match self {
            Known::Tuple(items) | Known::List(items) => Some(items),
            _ => None,
        }
    }

    /// The value of an integer or boolean.
    pub fn as_int(&self) -> Option<i128> {
        match self {
            Known::Int(value) => Some(*value),
            Known::Bool(value) => Some(i128::from(*value)),
            _ => None,
        }
    }

    /// The value of any number, as Python's `float()` has it.
    pub fn as_float(&self) -> Option<f64> {
        match self {
            Known::Float(value) => Some(*value),
            _ => self.as_int().map(|value| value as f64),
        }
    }

    pub fn is_number(&self) -> bool {
        matches!(self, Known::Bool(_) | Known::Int(_) | Known::Float(_))
    }

    /// What the user would call this.
    pub fn describe(&self) -> String {
        match self {
            Known::None => "`None`".into(),
            Known::Bool(_) => "a bool".into(),
            Known::Int(_) => "an int".into(),
            Known::Float(_) => "a float".into(),
            Known::Str(_) => "a string".into(),
            Known::Tuple(_) => "a tuple".into(),
            Known::List(_) => "a list".into(),
            Known::Slice(_) => "a slice".into(),
            Known::DType(ty) => format!("the type `{ty}`"),
            Known::TensorType { .. } => "a matrix type".into(),
            Known::Tensor(_) => "a matrix".into(),
            Known::StructType(_) => "a struct type".into(),
            Known::Struct(value) => value.ty.describe(),
            Known::StructField(field) if field.name.is_empty() => "the field of structs".into(),
            Known::StructField(field) => format!("the field `{}`", field.name),
            Known::Field(field) => format!("the field `{}`", field.name),
            Known::SNode(_) => "an SNode".into(),
            Known::Elements(elements) => format!("the `{}` of a mesh", elements.name),
            Known::Relation(relation) => format!("a relation to `{}`", relation.to.name),
            Known::Func(func) => format!("the function `{}`", func.name),
            Known::Kernel(name) => format!("the kernel `{name}`"),
            Known::Builtin(name) => format!("`{name}`"),
            Known::Object(_) => "a Python object".into(),
            Known::Traced(_) => "a value of the kernel".into(),
        }
    }
}
