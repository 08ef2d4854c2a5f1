//! Building a tree: each step checks for the user's mistakes.

use std::fmt;

use aerogel_base::ScalarType;
use aerogel_base::entity::PrimaryMap;

use crate::layout;
use crate::quant::QuantType;
use crate::tree::{MAX_AXES, Node, NodeAxis, NodeId, NodeKind, Tree};

/// Why a node cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// An axis of size zero.
    EmptyAxis {
        /// The axis.
        axis: u8,
    },
    /// An axis named twice in one node, or out of range.
    BadAxis {
        /// The axis.
        axis: u8,
    },
    /// A place cannot have children.
    ChildOfPlace,
    /// More bytes than are counted.
    TooLarge,
    /// More cells than are counted.
    TooManyCells,
    /// More cells of a sparse layout along an axis than indices of 32 bits can name.
    LongAxis {
        /// The axis.
        axis: u8,
    },
    /// A dynamic node has one axis.
    DynamicAxes {
        /// How many were given.
        n: usize,
    },
    /// A dynamic node whose chunks have no cells.
    EmptyChunk,
    /// A dynamic node along an axis that a node above it divides.
    DividedDynamic {
        /// The axis.
        axis: u8,
    },
    /// A dynamic node must be the last sparse one of a path.
    SparseBelowDynamic,
    /// A word of another number of bits than 8, 16, 32 or 64.
    WordBits {
        /// How many.
        bits: u32,
    },
    /// More bits than a word has.
    WordFull {
        /// How many bits are needed.
        needed: u32,
        /// How many the word has.
        bits: u32,
    },
    /// A number that is not quantised in a word, or one that is outside of any.
    Unquantised {
        /// Whether the node is a word.
        in_word: bool,
    },
    /// A node, or a second field, in a word that has no room for one.
    BelowWord,
    /// A floating-point type in a `quant_array`.
    FloatInArray,
    /// An exponent that is shared with a type that has none, or another one.
    Exponents,
    /// A merged node that is sparse, or has a neighbour that is not dense.
    NotMergeable,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyAxis { axis } => write!(f, "the size of axis {axis} must be at least 1"),
            Self::BadAxis { axis } => {
                write!(f, "axis {axis} is named twice or is not below {MAX_AXES}")
            }
            Self::ChildOfPlace => write!(f, "a placed field cannot have children"),
            Self::TooLarge => write!(f, "the layout is larger than 2^62 bytes"),
            Self::TooManyCells => write!(f, "a node has 2^62 cells or more"),
            Self::LongAxis { axis } => write!(
                f,
                "axis {axis} of a sparse node has more than 2^31 cells: indices are numbers of 32 bits"
            ),
            Self::DynamicAxes { n } => write!(f, "a dynamic node has one axis, not {n}"),
            Self::EmptyChunk => write!(f, "the chunk size of a dynamic node must be at least 1"),
            Self::DividedDynamic { axis } => write!(
                f,
                "a dynamic node along axis {axis}, which a node above it divides already"
            ),
            Self::SparseBelowDynamic => {
                write!(
                    f,
                    "only dense nodes and fields can lie below a dynamic node"
                )
            }
            Self::WordBits { bits } => {
                write!(f, "a word has 8, 16, 32 or 64 bits, not {bits}")
            }
            Self::WordFull { needed, bits } => {
                write!(f, "{needed} bits do not fit a word of {bits}")
            }
            Self::Unquantised { in_word: true } => {
                write!(
                    f,
                    "only fields of quantised types can be placed in a word of bits"
                )
            }
            Self::Unquantised { in_word: false } => write!(
                f,
                "a field of a quantised type is placed in ti.BitpackedFields or in a quant_array node"
            ),
            Self::BelowWord => write!(
                f,
                "a quant_array node holds one field of numbers, and no nodes"
            ),
            Self::FloatInArray => write!(
                f,
                "a quant_array node holds integers or fixed-point numbers, not floating-point ones"
            ),
            Self::NotMergeable => write!(
                f,
                "only dense nodes with dense children are merged, and no node above or below may be sparse"
            ),
            Self::Exponents => write!(
                f,
                "only floating-point numbers with as many bits of exponent can share it"
            ),
        }
    }
}

impl std::error::Error for BuildError {}

/// A tree under construction.
#[derive(Clone, Debug)]
pub struct TreeBuilder {
    pub(crate) nodes: PrimaryMap<NodeId, Node>,
}

impl Default for TreeBuilder {
    fn default() -> Self {
        let mut nodes = PrimaryMap::new();
        nodes.push(node(NodeKind::Root, None, Vec::new(), String::new()));
        Self { nodes }
    }
}

fn node(kind: NodeKind, parent: Option<NodeId>, axes: Vec<NodeAxis>, name: String) -> Node {
    Node {
        kind,
        parent,
        children: Vec::new(),
        divides: axes.clone(),
        merged: false,
        axes,
        name,
        cell_size: 0,
        n_cells: 1,
        offset_in_cell: 0,
        align: 1,
        first_control: 0,
        shift: 0,
        exponent_shift: 0,
        shares_exponent: false,
    }
}

/// The unsigned type of a word.
fn word_type(bits: u32) -> Result<ScalarType, BuildError> {
    match bits {
        8 => Ok(ScalarType::U8),
        16 => Ok(ScalarType::U16),
        32 => Ok(ScalarType::U32),
        64 => Ok(ScalarType::U64),
        _ => Err(BuildError::WordBits { bits }),
    }
}

impl TreeBuilder {
    /// Adds a dense node under `parent` that divides `axes` (axis, size).
    pub fn dense(&mut self, parent: NodeId, axes: &[(u8, u32)]) -> Result<NodeId, BuildError> {
        self.node(parent, NodeKind::Dense, axes)
    }

    /// Adds a node of any kind but a root or a place.
    ///
    /// # Panics
    /// If `kind` is a root or a place.
    pub fn node(
        &mut self,
        parent: NodeId,
        kind: NodeKind,
        axes: &[(u8, u32)],
    ) -> Result<NodeId, BuildError> {
        assert!(kind.name().is_some(), "roots and places have no axes");
        let mut sorted: Vec<NodeAxis> = axes
            .iter()
            .map(|&(axis, extent)| NodeAxis { axis, extent })
            .collect();
        sorted.sort_by_key(|a| a.axis);
        for (i, a) in sorted.iter().enumerate() {
            if a.axis as usize >= MAX_AXES || i > 0 && sorted[i - 1].axis == a.axis {
                return Err(BuildError::BadAxis { axis: a.axis });
            }
            if a.extent == 0 {
                return Err(BuildError::EmptyAxis { axis: a.axis });
            }
        }
        self.check_dynamic(parent, kind, &sorted)?;
        if self.nodes[parent].kind.word().is_some() {
            return Err(BuildError::BelowWord);
        }
        self.add(parent, node(kind, Some(parent), sorted, String::new()))
    }

    /// Adds a word of so many bits under `parent`, for [`Self::place_bits`].
    pub fn bit_struct(&mut self, parent: NodeId, bits: u32) -> Result<NodeId, BuildError> {
        self.node(parent, NodeKind::BitStruct(word_type(bits)?), &[])
    }

    /// Adds a word of so many bits under `parent` that holds an element for each cell of `axes`.
    pub fn quant_array(
        &mut self,
        parent: NodeId,
        axes: &[(u8, u32)],
        bits: u32,
    ) -> Result<NodeId, BuildError> {
        self.node(parent, NodeKind::QuantArray(word_type(bits)?), axes)
    }

    /// Places one quantised component in a word; `shares_exponent` with the one before it.
    pub fn place_bits(
        &mut self,
        word: NodeId,
        quant: QuantType,
        shares_exponent: bool,
        name: &str,
    ) -> Result<NodeId, BuildError> {
        let data = &self.nodes[word];
        let Some(ty) = data.kind.word() else {
            return Err(BuildError::Unquantised { in_word: false });
        };
        let others = data.children.iter().map(|&id| &self.nodes[id]);
        let quants: Vec<QuantType> = others
            .clone()
            .filter_map(|n| match n.kind {
                NodeKind::Bits(quant) => Some(quant),
                _ => None,
            })
            .collect();
        if shares_exponent {
            let exponent = quants.last().map_or(0, |q| q.exponent_bits());
            if exponent == 0 || exponent != quant.exponent_bits() {
                return Err(BuildError::Exponents);
            }
        }
        let own = |q: &QuantType, shares: bool| q.bits + if shares { 0 } else { q.exponent_bits() };
        let mut needed = own(&quant, shares_exponent);
        if let NodeKind::QuantArray(_) = data.kind {
            if !quants.is_empty() {
                return Err(BuildError::BelowWord);
            }
            if quant.exponent_bits() > 0 {
                return Err(BuildError::FloatInArray);
            }
            let extents = data.axes.iter().map(|a| a.extent);
            needed = extents.fold(needed, u32::saturating_mul);
        } else {
            let used = quants.iter().zip(others);
            needed += used.map(|(q, n)| own(q, n.shares_exponent)).sum::<u32>();
        }
        if needed > ty.bits() {
            let bits = ty.bits();
            return Err(BuildError::WordFull { needed, bits });
        }
        let kind = NodeKind::Bits(quant);
        let mut place = node(kind, Some(word), Vec::new(), name.to_owned());
        place.shares_exponent = shares_exponent;
        self.add(word, place)
    }

    fn check_dynamic(
        &self,
        parent: NodeId,
        kind: NodeKind,
        axes: &[NodeAxis],
    ) -> Result<(), BuildError> {
        let mut ancestors = Vec::new();
        let mut next = Some(parent);
        while let Some(id) = next {
            ancestors.push(&self.nodes[id]);
            next = self.nodes[id].parent;
        }
        if kind.is_sparse()
            && ancestors
                .iter()
                .any(|n| matches!(n.kind, NodeKind::Dynamic { .. }))
        {
            return Err(BuildError::SparseBelowDynamic);
        }
        let NodeKind::Dynamic { chunk } = kind else {
            return Ok(());
        };
        let &[NodeAxis { axis, .. }] = axes else {
            return Err(BuildError::DynamicAxes { n: axes.len() });
        };
        if chunk == 0 {
            return Err(BuildError::EmptyChunk);
        }
        let divided = |n: &&Node| n.axes.iter().any(|a| a.axis == axis);
        if ancestors.iter().any(divided) {
            return Err(BuildError::DividedDynamic { axis });
        }
        Ok(())
    }

    /// Places one scalar component under `parent`.
    pub fn place(
        &mut self,
        parent: NodeId,
        ty: ScalarType,
        name: &str,
    ) -> Result<NodeId, BuildError> {
        if self.nodes[parent].kind.word().is_some() {
            return Err(BuildError::Unquantised { in_word: true });
        }
        self.add(
            parent,
            node(
                NodeKind::Place(ty),
                Some(parent),
                Vec::new(),
                name.to_owned(),
            ),
        )
    }

    fn add(&mut self, parent: NodeId, child: Node) -> Result<NodeId, BuildError> {
        if self.nodes[parent].kind.scalar().is_some() {
            return Err(BuildError::ChildOfPlace);
        }
        let id = self.nodes.push(child);
        self.nodes[parent].children.push(id);
        Ok(id)
    }

    /// Whether nothing but the root has been made.
    pub fn is_empty(&self) -> bool {
        self.nodes.len() == 1
    }

    /// Lays the tree out.
    pub fn finish(mut self) -> Result<Tree, BuildError> {
        layout::lay_out(&mut self.nodes)?;
        Ok(Tree { nodes: self.nodes })
    }
}
