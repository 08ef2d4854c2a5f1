//! The tree: nodes, their axes and, once laid out, their sizes and offsets.

use aerogel_base::ScalarType;
use aerogel_base::entity::PrimaryMap;

use crate::control;
use crate::quant::QuantType;

aerogel_base::entity! {
    /// A node of a tree.
    pub struct NodeId, "S"
}

/// How many index axes there are: `ti.i` is 0, `ti.j` is 1, and so on.
pub const MAX_AXES: usize = 12;

/// The kind of a node's containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// The single cell everything hangs from.
    Root,
    /// An array of cells, all of them always there.
    Dense,
    /// An array of cells with a bit for each that says whether it is active. Inactive cells are zero.
    Bitmasked,
    /// An array of element numbers. Cells lie in the node's arena; number 0 is the ambient cell,
    /// which stays zero and stands for all inactive ones.
    Pointer,
    /// Like a pointer node, with memory proportional to its active cells whatever its size: element
    /// numbers lie in a radix tree of tables over the bits of the cell's number.
    Hash,
    /// A sequence along one axis that grows by appending. Its cells lie in chunks, each twice as
    /// long as the one before, so that any is found in constant time.
    Dynamic {
        /// Cells in the first chunk.
        chunk: u32,
    },
    /// One component of a field: a scalar.
    Place(ScalarType),
    /// A word of an unsigned type, in which quantised components of fields lie side by side.
    BitStruct(ScalarType),
    /// A word of an unsigned type in which the elements of one quantised field lie side by side.
    QuantArray(ScalarType),
    /// One component of a field: some bits of the word that its parent is.
    Bits(QuantType),
}

impl NodeKind {
    /// Whether cells may be inactive.
    pub fn is_sparse(self) -> bool {
        match self {
            Self::Bitmasked | Self::Pointer | Self::Hash | Self::Dynamic { .. } => true,
            Self::Root | Self::Dense | Self::Place(_) => false,
            Self::BitStruct(_) | Self::QuantArray(_) | Self::Bits(_) => false,
        }
    }

    /// The scalar type of what a place is read and written as; none if it is no place.
    pub fn scalar(self) -> Option<ScalarType> {
        match self {
            Self::Place(ty) => Some(ty),
            Self::Bits(quant) => Some(quant.compute),
            _ => None,
        }
    }

    /// The type of the word that a node is; none if it is something else.
    pub fn word(self) -> Option<ScalarType> {
        match self {
            Self::BitStruct(word) | Self::QuantArray(word) => Some(word),
            _ => None,
        }
    }

    /// Whether loops find its active cells in a list: each lies in an arena element of its own.
    pub fn has_list(self) -> bool {
        matches!(self, Self::Pointer | Self::Hash)
    }

    /// The kind's name in a tree's text; none for the root and places.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Dense => Some("dense"),
            Self::Bitmasked => Some("bitmasked"),
            Self::Pointer => Some("pointer"),
            Self::Hash => Some("hash"),
            Self::Dynamic { .. } => Some("dynamic"),
            Self::BitStruct(_) => Some("bit_struct"),
            Self::QuantArray(_) => Some("quant_array"),
            Self::Root | Self::Place(_) | Self::Bits(_) => None,
        }
    }
}

/// One axis that a node divides into cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeAxis {
    /// Which index axis, from 0.
    pub axis: u8,
    /// Cells along it.
    pub extent: u32,
}

/// A structural node. A *container* of a node holds its *cells*; each cell holds one container of
/// every child.
#[derive(Clone, Debug)]
pub struct Node {
    /// The kind of its containers.
    pub kind: NodeKind,
    /// The node whose cells hold this node's containers; none for the root.
    pub parent: Option<NodeId>,
    /// Its children, in the order in which they lie in a cell.
    pub children: Vec<NodeId>,
    /// The axes it divides, in ascending order.
    pub divides: Vec<NodeAxis>,
    /// Whether its blocks exist in indices only: in memory its children divide its axes too (`merge.rs`).
    pub merged: bool,
    /// The axes of a container in memory, in ascending order; the last one varies fastest. They differ from `divides`
    /// in merged nodes, which have none, and in the children of these.
    pub axes: Vec<NodeAxis>,
    /// A place's name, for people.
    pub name: String,
    /// Bytes from one cell to the next.
    pub cell_size: u64,
    /// Cells in a container.
    pub n_cells: u64,
    /// Where a container begins in its parent's cell, in bytes.
    pub offset_in_cell: u64,
    /// Alignment of a container, in bytes.
    pub align: u64,
    /// The number of the first of a sparse node's control blocks (see [`crate::control`]).
    pub first_control: u32,
    /// Where the bits of a component (the fraction's, of a floating-point type) begin in its word; in a
    /// `quant_array`, those of the first element.
    pub shift: u32,
    /// Where the bits of its exponent begin, if it has one.
    pub exponent_shift: u32,
    /// Whether the exponent is that of the component before it too.
    pub shares_exponent: bool,
}

/// Bytes of an element number, of a word of a mask, and of a length.
pub const WORD: u64 = 4;
/// Cells of a bitmasked node that share a word of the mask.
pub const MASK_BITS: u64 = 32;
/// Bits of a cell's number that one table of a hash node decides on.
pub const TABLE_BITS: u64 = 4;
/// Slots of a table of a hash node.
pub const TABLE_SLOTS: u64 = 1 << TABLE_BITS;
/// Bytes of a table of a hash node: a cache line.
pub const TABLE_SIZE: u64 = TABLE_SLOTS * WORD;
/// Parts of a list over hash nodes that lie in no other sparse node, in all of their containers.
const HASH_PARTS: u64 = 256;

impl Node {
    /// Bytes of a container.
    pub fn container_size(&self) -> u64 {
        match self.kind {
            NodeKind::Bitmasked => self.mask_offset() + self.mask_words() * WORD,
            NodeKind::Pointer => self.n_cells * WORD,
            // The number of the first table.
            NodeKind::Hash => WORD,
            NodeKind::Dynamic { .. } => (1 + self.n_chunks()) * WORD,
            NodeKind::BitStruct(word) | NodeKind::QuantArray(word) => u64::from(word.bytes()),
            NodeKind::Root | NodeKind::Dense | NodeKind::Place(_) | NodeKind::Bits(_) => {
                self.cell_size * self.n_cells
            }
        }
    }

    /// Where the mask begins in a bitmasked node's container: behind the cells.
    pub fn mask_offset(&self) -> u64 {
        (self.cell_size * self.n_cells).next_multiple_of(WORD)
    }

    /// Words of a container's mask.
    pub fn mask_words(&self) -> u64 {
        self.n_cells.div_ceil(MASK_BITS)
    }

    /// How many chunks a dynamic node's container has at most. It begins with the length; the
    /// element number of each chunk follows, 0 where there is none.
    pub fn n_chunks(&self) -> u64 {
        let NodeKind::Dynamic { chunk } = self.kind else {
            return 0;
        };
        // 1 + 2 + 4 + ... chunks' worth of cells.
        u64::from(
            (self.n_cells.div_ceil(u64::from(chunk)) + 1)
                .next_power_of_two()
                .ilog2(),
        )
    }

    /// Cells of a dynamic node's `k`-th chunk.
    pub fn chunk_cells(&self, k: u64) -> u64 {
        match self.kind {
            NodeKind::Dynamic { chunk } => u64::from(chunk) << k,
            _ => 1,
        }
    }

    /// How many tables lie between a hash node's container and a cell.
    pub fn n_digits(&self) -> u64 {
        match self.kind {
            NodeKind::Hash => {
                let bits = u64::from(u64::BITS - (self.n_cells - 1).leading_zeros());
                bits.div_ceil(TABLE_BITS).max(1)
            }
            _ => 0,
        }
    }

    /// Which slot a hash node's cell takes in each of the tables of its path, the first one first.
    pub fn digits(&self, index: u64) -> impl Iterator<Item = u64> + use<> {
        (0..self.n_digits())
            .rev()
            .map(move |k| index >> (TABLE_BITS * k) & (TABLE_SLOTS - 1))
    }

    /// How many arenas hold the node's cells: one for a pointer or hash node, one for each chunk of a
    /// dynamic one.
    pub fn n_arenas(&self) -> u64 {
        match self.kind {
            NodeKind::Pointer | NodeKind::Hash => 1,
            NodeKind::Dynamic { .. } => self.n_chunks(),
            _ => 0,
        }
    }

    /// Bytes of an element of the node's `k`-th arena.
    pub fn element_size(&self, k: u64) -> u64 {
        self.cell_size * self.chunk_cells(k)
    }

    /// How many control blocks the node has: one for each arena, and at least one if it is sparse. That
    /// of a hash node's tables follows that of its cells.
    pub fn n_controls(&self) -> u64 {
        if self.kind == NodeKind::Hash {
            return 2;
        }
        self.n_arenas().max(u64::from(self.kind.is_sparse()))
    }
}

/// A tree that has been laid out.
#[derive(Clone, Debug)]
pub struct Tree {
    pub(crate) nodes: PrimaryMap<NodeId, Node>,
}

impl Tree {
    /// The root node.
    pub const ROOT: NodeId = NodeId::ROOT;

    /// All nodes, parents before children.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes.iter()
    }

    /// All places, in the order in which they were made, and what they are read and written as.
    pub fn places(&self) -> impl Iterator<Item = (NodeId, ScalarType)> {
        let place = |(id, n): (NodeId, &Node)| Some((id, n.kind.scalar()?));
        self.nodes.iter().filter_map(place)
    }

    /// Bytes that the root's cell takes.
    pub fn root_size(&self) -> u64 {
        self[Self::ROOT].cell_size
    }

    /// Bytes of the root's cell and the control blocks behind it. What sparse nodes need besides is
    /// up to the runtime.
    pub fn byte_size(&self) -> u64 {
        match self
            .nodes
            .values()
            .map(|n| u64::from(n.first_control) + n.n_controls())
            .max()
        {
            Some(n) if self.is_sparse() => self.control_offset(n),
            _ => self.root_size(),
        }
    }

    /// Whether any node is sparse.
    pub fn is_sparse(&self) -> bool {
        self.nodes.values().any(|n| n.kind.is_sparse())
    }

    /// The byte offset of a control block from the tree's start.
    pub fn control_offset(&self, number: u64) -> u64 {
        self.root_size().next_multiple_of(control::SIZE) + number * control::SIZE
    }

    /// The sparse nodes from the root down to `node`, `node` included.
    pub fn sparse_chain(&self, node: NodeId) -> Vec<NodeId> {
        let mut chain = self.chain(node);
        chain.retain(|&id| self[id].kind.is_sparse());
        chain
    }

    /// Whether cells of `node` may be inactive, by themselves or with those they lie in.
    pub fn is_below_sparse(&self, node: NodeId) -> bool {
        !self.sparse_chain(node).is_empty()
    }

    /// Containers of `node` below a cell of `above`, which lies above it.
    pub fn containers_below(&self, above: NodeId, node: NodeId) -> u64 {
        let chain = self.chain(node).into_iter().rev().skip(1);
        let between = chain.take_while(|&id| id != above);
        between.map(|id| self[id].n_cells).product()
    }

    /// In how many parts a container of a pointer or hash node is listed, with `size` cells in a part
    /// of a pointer node. A hash node's are parts of what is active.
    pub fn list_parts(&self, node: NodeId, size: u64) -> u64 {
        let n_cells = self[node].n_cells;
        if self[node].kind != NodeKind::Hash {
            return n_cells.div_ceil(size);
        }
        let parts = match self.sparse_chain(node)[..] {
            [_] => HASH_PARTS / self.containers_below(Self::ROOT, node),
            _ => 1,
        };
        parts.clamp(1, n_cells)
    }

    /// The alignment of every cell of `node`, in bytes, up to a cache line.
    pub fn cell_align(&self, node: NodeId) -> u64 {
        const CACHE_LINE: u64 = 64;
        let both = |a: u64, bytes: u64| {
            if bytes == 0 {
                a
            } else {
                a.min(1 << bytes.trailing_zeros())
            }
        };
        self.chain(node).iter().fold(CACHE_LINE, |align, &id| {
            let n = &self[id];
            // An arena begins a cache line wherever the container lies.
            let container = if n.n_arenas() > 0 {
                CACHE_LINE
            } else {
                both(align, n.offset_in_cell)
            };
            if n.n_cells > 1 || n.n_arenas() > 0 {
                both(container, n.cell_size)
            } else {
                container
            }
        })
    }

    /// `node` and all nodes below it, in the order in which they were made: parents before children.
    pub fn subtree(&self, node: NodeId) -> Vec<NodeId> {
        let mut all = vec![node];
        let mut next = 0;
        while next < all.len() {
            all.extend_from_slice(&self[all[next]].children);
            next += 1;
        }
        all.sort_unstable_by_key(|id| id.as_u32());
        all
    }

    /// The node whose cells hold a place: its parent, or what holds the word that is its parent, where
    /// all the word's elements have one index.
    ///
    /// # Panics
    /// If `place` is the root.
    pub fn holder(&self, place: NodeId) -> NodeId {
        let parent = self[place].parent.expect("a place has a parent");
        match self[parent].kind {
            NodeKind::BitStruct(_) => self[parent].parent.expect("a word has a parent"),
            _ => parent,
        }
    }

    /// The places that have one exponent with `place`, itself included; none if it has one of its own.
    pub fn exponent_group(&self, place: NodeId) -> Vec<NodeId> {
        let siblings = match self[place].parent {
            Some(parent) => &self[parent].children[..],
            None => &[],
        };
        let Some(at) = siblings.iter().position(|&id| id == place) else {
            return Vec::new();
        };
        let first = (0..=at).rev().find(|&k| !self[siblings[k]].shares_exponent);
        let first = first.unwrap_or(0);
        let others = siblings[first + 1..].iter();
        let n = others.take_while(|&&id| self[id].shares_exponent).count();
        if n == 0 {
            return Vec::new();
        }
        siblings[first..=first + n].to_vec()
    }

    /// The fields below `node` as messages call them, each name once: ` of x, y`, or nothing if none has a name.
    pub fn of_fields(&self, node: NodeId) -> String {
        let mut names: Vec<&str> = Vec::new();
        for id in self.subtree(node) {
            let name = self[id].name.as_str();
            if !name.is_empty() && !names.contains(&name) {
                names.push(name);
            }
        }
        let of = if names.is_empty() { "" } else { " of " };
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        format!("{of}{}", names.join(", "))
    }

    /// The nodes from the root down to `node`, `node` included.
    pub fn chain(&self, node: NodeId) -> Vec<NodeId> {
        let mut chain = vec![node];
        while let Some(parent) = self[chain[chain.len() - 1]].parent {
            chain.push(parent);
        }
        chain.reverse();
        chain
    }

    /// The index axes of a node's cells, ascending, with the size over all its levels.
    pub fn shape_axes(&self, node: NodeId) -> Vec<(u8, u64)> {
        let mut extents = [0u64; MAX_AXES];
        for id in self.chain(node) {
            for a in &self[id].divides {
                let e = &mut extents[a.axis as usize];
                *e = (*e).max(1) * u64::from(a.extent);
            }
        }
        (0..MAX_AXES as u8)
            .map(|a| (a, extents[a as usize]))
            .filter(|&(_, e)| e > 0)
            .collect()
    }

    /// Whether a node, or one that it lies in, is merged.
    pub fn is_merged(&self, node: NodeId) -> bool {
        self.chain(node).iter().any(|&id| self[id].merged)
    }

    /// The sizes of a node's cells along its axes, ascending.
    pub fn shape(&self, node: NodeId) -> Vec<u64> {
        self.shape_axes(node).into_iter().map(|(_, e)| e).collect()
    }
}

impl NodeId {
    const ROOT: NodeId = NodeId(0);
}

impl std::ops::Index<NodeId> for Tree {
    type Output = Node;
    #[inline]
    fn index(&self, id: NodeId) -> &Node {
        &self.nodes[id]
    }
}
