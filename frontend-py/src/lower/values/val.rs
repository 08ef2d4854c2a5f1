//! The value of an expression: known at compile time, a value of the IR, or composed of such values.

use std::rc::Rc;

use aerogel_base::ScalarType;
use aerogel_ir::{Arg, NodeRef, Type, Value};

use crate::host::*;
use crate::lower::Reported;

/// An expression, evaluated as far as it can be.
#[derive(Clone, Debug)]
pub(crate) enum Val {
    Known(Known),
    Value(Value),
    Place(Place),
    /// A tuple or list of which something is not known.
    Seq(Rc<[Val]>, SeqKind),
    /// A struct and the values or places of its members.
    Struct(Rc<StructType>, Rc<[Val]>),
    /// An element of a field of structs, at indices that are IR values.
    Cell(Rc<StructFieldRef>, Rc<[Val]>),
    /// Keys and values; the keys are not all names.
    Dict(Rc<[(Known, Val)]>),
    /// An array parameter.
    Array(Arg),
    /// What the threads of a block share.
    Shared(Rc<Shared>),
    /// A texture parameter.
    Texture(Rc<Texture>),
    /// An element of a mesh, by its number.
    Element(Rc<ElementsRef>, Rc<Val>),
    /// The elements of a mesh that lie at the one with a number.
    Neighbours(Rc<RelationRef>, Value),
    /// Something a loop runs over.
    Iter(Rc<Iter>),
    /// The list of a dynamic node.
    List(Rc<List>),
    /// A method with its object.
    Method(Rc<Val>, Rc<str>),
    /// What a mistake left behind; using it is no further mistake.
    Poison(Reported),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SeqKind {
    Tuple,
    List,
}

/// Storage that can be assigned to.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Ref {
        place: Value,
        origin: Origin,
    },
    /// Chosen elements of a tensor's storage, as a tensor of type `ty`.
    Elements {
        refs: Rc<[Value]>,
        ty: Type,
        origin: Origin,
    },
}

/// Where storage lies, which decides what must be atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A variable; `shared` when it was made outside the parallel loop.
    Local {
        in_parallel: bool,
    },
    Field,
    Array(Arg),
}

#[derive(Clone, Debug)]
pub(crate) enum Iter {
    Range {
        lo: Val,
        hi: Val,
        step: Val,
    },
    /// Pairs of begin and end, the outermost loop first, and the axis of each; no axes if they are in order.
    NdRange(Vec<(Val, Val)>, Rc<[usize]>),
    Grouped(Val),
}

/// The list of a dynamic node that `x[i]` names, an index short of an element.
#[derive(Clone, Debug)]
pub(crate) struct List {
    /// The field, or those that make up a field of structs.
    pub(crate) fields: Rc<[Rc<FieldRef>]>,
    pub(crate) node: NodeRef,
    /// Those of the cell that holds the list.
    pub(crate) indices: Vec<Value>,
}

/// A `SharedArray`.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) storage: Value,
    pub(crate) shape: Vec<u32>,
    pub(crate) element: TensorShape,
    pub(crate) ty: ScalarType,
}

/// A texture parameter.
#[derive(Clone, Debug)]
pub(crate) struct Texture {
    pub(crate) name: String,
    pub(crate) texels: Arg,
    pub(crate) access: TextureAccess,
}

/// What a texture is to a kernel.
#[derive(Clone, Debug)]
pub struct TextureAccess {
    pub ndim: u32,
    /// Whether it is annotated `rw_texture`, for `load` and `store`; if not, it is sampled.
    pub writable: bool,
    /// The component type of a texel, which the library's functions query.
    pub format: Known,
    /// Functions of the texels, the format, and what the method takes.
    pub methods: Vec<Rc<FuncRef>>,
}

/// The type of a tensor of a shape.
pub(crate) fn tensor_type(shape: TensorShape, elem: ScalarType) -> Type {
    match shape {
        TensorShape::Scalar => Type::Scalar(elem),
        TensorShape::Vector(n) => Type::Vec(n, elem),
        TensorShape::Matrix(n, m) => Type::Mat(n, m, elem),
    }
}

impl Place {
    pub(crate) fn origin(&self) -> Origin {
        match self {
            Place::Ref { origin, .. } | Place::Elements { origin, .. } => *origin,
        }
    }
}

impl Val {
    pub(crate) fn none() -> Val {
        Val::Known(Known::None)
    }

    pub(crate) fn int(value: i128) -> Val {
        Val::Known(Known::Int(value))
    }

    /// A tuple or list; known if all its items are.
    pub(crate) fn seq(items: Vec<Val>, kind: SeqKind) -> Val {
        let known: Option<Rc<[Known]>> = items.iter().map(|item| item.known().cloned()).collect();
        match (known, kind) {
            (Some(items), SeqKind::Tuple) => Val::Known(Known::Tuple(items)),
            (Some(items), SeqKind::List) => Val::Known(Known::List(items)),
            (None, _) => Val::Seq(items.into(), kind),
        }
    }

    pub(crate) fn known(&self) -> Option<&Known> {
        match self {
            Val::Known(known) => Some(known),
            _ => None,
        }
    }

    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Val::Known(Known::None))
    }

    /// The items of a tuple or list.
    pub(crate) fn items(&self) -> Option<Vec<Val>> {
        match self {
            Val::Seq(items, _) => Some(items.to_vec()),
            Val::Known(known) => Some(known.items()?.iter().cloned().map(Val::Known).collect()),
            _ => None,
        }
    }

    /// One item of a tuple or list, and how many there are; the others are not touched.
    pub(crate) fn item(&self, at: i128) -> (Option<Val>, usize) {
        let n = match self {
            Val::Seq(items, _) => items.len(),
            Val::Known(known) => known.items().map_or(0, <[Known]>::len),
            _ => 0,
        };
        let at = if at < 0 { at + n as i128 } else { at };
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let item = match self {
            Val::Seq(items, _) => items.get(at).cloned(),
            Val::Known(known) => known
                .items()
                .and_then(|items| items.get(at))
                .cloned()
                .map(Val::Known),
            _ => None,
        };
        (item, n)
    }
}
