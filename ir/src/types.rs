//! Ids and value types.

use std::fmt;

use aerogel_base::ScalarType;
use aerogel_snode::NodeId;

aerogel_base::entity! {
    /// An SSA value: an instruction's result or a region's parameter.
    pub struct Value, "v"
}
aerogel_base::entity! {
    /// An instruction.
    pub struct Inst, "inst"
}
aerogel_base::entity! {
    /// A straight line of instructions with parameters.
    pub struct Region, "region"
}
aerogel_base::entity! {
    /// A function of a module.
    pub struct FuncId, "fn"
}
aerogel_base::entity! {
    /// A field of a module.
    pub struct FieldId, "field"
}
aerogel_base::entity! {
    /// An SNode tree that a module uses.
    pub struct TreeId, "tree"
}
aerogel_base::entity! {
    /// A struct type of a module.
    pub struct StructId, "struct"
}
aerogel_base::entity! {
    /// An argument of a kernel.
    pub struct Arg, "a"
}

/// The type of a value. Types are values themselves: only structs, which nest, are interned in the
/// module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A scalar.
    Scalar(ScalarType),
    /// A vector of `n` elements.
    Vec(u32, ScalarType),
    /// A matrix of `n` rows and `m` columns, stored row by row.
    Mat(u32, u32, ScalarType),
    /// A struct.
    Struct(StructId),
    /// The storage of one scalar, wherever it lies.
    RefScalar(ScalarType),
    /// The storage of a vector.
    RefVec(u32, ScalarType),
    /// The storage of a matrix.
    RefMat(u32, u32, ScalarType),
    /// The storage of a struct.
    RefStruct(StructId),
    /// A storage of scalars that grows.
    Buffer(ScalarType),
    /// The reserved scalars of a buffer.
    Room(ScalarType),
    /// One cell of a node.
    Cell(TreeId, NodeId),
    /// A container of a node.
    Container(TreeId, NodeId),
}

impl Type {
    /// `u1`
    pub const BOOL: Type = Type::Scalar(ScalarType::U1);
    /// `i32`
    pub const I32: Type = Type::Scalar(ScalarType::I32);
    /// `i64`
    pub const I64: Type = Type::Scalar(ScalarType::I64);
    /// `f32`
    pub const F32: Type = Type::Scalar(ScalarType::F32);

    /// A vector (`m` absent) or matrix type.
    pub fn tensor(n: u32, m: Option<u32>, elem: ScalarType) -> Self {
        m.map_or(Type::Vec(n, elem), |m| Type::Mat(n, m, elem))
    }

    /// The scalar of a scalar, vector or matrix.
    pub fn elem(self) -> Option<ScalarType> {
        match self {
            Type::Scalar(s) | Type::Vec(_, s) | Type::Mat(_, _, s) => Some(s),
            _ => None,
        }
    }

    /// The same shape over another scalar; anything but scalars and tensors stays as it is.
    #[must_use]
    pub fn with_elem(self, elem: ScalarType) -> Self {
        match self {
            Type::Scalar(_) => Type::Scalar(elem),
            Type::Vec(n, _) => Type::Vec(n, elem),
            Type::Mat(n, m, _) => Type::Mat(n, m, elem),
            other => other,
        }
    }

    /// How many scalars a scalar or tensor holds; 1 for everything else.
    pub fn n_elems(self) -> u32 {
        match self {
            Type::Vec(n, _) => n,
            Type::Mat(n, m, _) => n * m,
            _ => 1,
        }
    }

    /// The shape of a tensor: empty for a scalar, one size for a vector, two for a matrix.
    pub fn shape(self) -> Vec<u32> {
        match self {
            Type::Vec(n, _) => vec![n],
            Type::Mat(n, m, _) => vec![n, m],
            _ => Vec::new(),
        }
    }

    /// Whether this is a vector or a matrix.
    pub fn is_tensor(self) -> bool {
        matches!(self, Type::Vec(..) | Type::Mat(..))
    }

    /// Whether this is a scalar or a tensor.
    pub fn is_numeric(self) -> bool {
        self.elem().is_some()
    }

    /// The scalar type, if this is a scalar.
    pub fn scalar(self) -> Option<ScalarType> {
        if let Type::Scalar(s) = self {
            Some(s)
        } else {
            None
        }
    }

    /// The storage of a value of this type; none for handles and storages.
    pub fn to_ref(self) -> Option<Type> {
        Some(match self {
            Type::Scalar(s) => Type::RefScalar(s),
            Type::Vec(n, s) => Type::RefVec(n, s),
            Type::Mat(n, m, s) => Type::RefMat(n, m, s),
            Type::Struct(id) => Type::RefStruct(id),
            _ => return None,
        })
    }

    /// The type of a storage's content; none if this is not a storage.
    pub fn pointee(self) -> Option<Type> {
        Some(match self {
            Type::RefScalar(s) => Type::Scalar(s),
            Type::RefVec(n, s) => Type::Vec(n, s),
            Type::RefMat(n, m, s) => Type::Mat(n, m, s),
            Type::RefStruct(id) => Type::Struct(id),
            _ => return None,
        })
    }
}

impl From<ScalarType> for Type {
    fn from(s: ScalarType) -> Self {
        Type::Scalar(s)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Type::Scalar(s) => write!(f, "{s}"),
            Type::Vec(n, s) => write!(f, "vec<{n}, {s}>"),
            Type::Mat(n, m, s) => write!(f, "mat<{n}, {m}, {s}>"),
            Type::Struct(id) => write!(f, "{id}"),
            Type::RefScalar(_) | Type::RefVec(..) | Type::RefMat(..) | Type::RefStruct(_) => {
                write!(f, "ref<{}>", self.pointee().expect("a ref has a pointee"))
            }
            Type::Buffer(s) => write!(f, "buffer<{s}>"),
            Type::Room(s) => write!(f, "room<{s}>"),
            Type::Cell(tree, node) => write!(f, "cell<{tree}.{node}>"),
            Type::Container(tree, node) => write!(f, "container<{tree}.{node}>"),
        }
    }
}
