//! Modules: functions, and what they name.

use std::sync::Arc;

use aerogel_base::entity::PrimaryMap;
use aerogel_base::render::Sources;
use aerogel_base::{ScalarType, SpanTable};
use aerogel_snode::{NodeId, NodeKind, QuantType, Tree};
use indexmap::IndexSet;

use crate::func::Function;
use crate::op_kinds::{Derivative, FastMath, NodeRef};
use crate::types::{FieldId, FuncId, StructId, TreeId, Type};

/// A field: a scalar or tensor for each cell of an index space.
#[derive(Clone, Debug)]
pub struct FieldData {
    /// Its name, unique in the module.
    pub name: String,
    /// An element's type.
    pub elem: Type,
    /// The tree in which it is placed.
    pub tree: TreeId,
    /// The place of each scalar component, row by row.
    pub places: Vec<NodeId>,
    /// The offset that is added to the layout's indices, for each axis; empty for no offset.
    pub offset: Vec<i32>,
    /// The field of its adjoints: of the same type, over the same indices.
    pub grad: Option<FieldId>,
    /// The field of its tangents.
    pub dual: Option<FieldId>,
}

impl FieldData {
    /// The field of its derivatives of a kind.
    pub fn derivative(&self, kind: Derivative) -> Option<FieldId> {
        match kind {
            Derivative::Grad => self.grad,
            Derivative::Dual => self.dual,
        }
    }

    /// The same, to be set.
    pub fn derivative_mut(&mut self, kind: Derivative) -> &mut Option<FieldId> {
        match kind {
            Derivative::Grad => &mut self.grad,
            Derivative::Dual => &mut self.dual,
        }
    }
}

/// The objects that the functions of a module refer to.
#[derive(Clone, Debug, Default)]
pub struct Env {
    /// SNode trees; their order is that of the launch context's roots.
    pub trees: PrimaryMap<TreeId, Arc<Tree>>,
    /// Fields.
    pub fields: PrimaryMap<FieldId, FieldData>,
    /// Struct types: names and types of members.
    pub structs: IndexSet<Vec<(String, Type)>>,
    /// Source ranges.
    pub spans: SpanTable,
    /// Source texts.
    pub sources: Sources,
    /// How far float arithmetic may differ from what is written; loops may have a level of their own.
    pub fast_math: FastMath,
    /// Operands of comparisons and of conversions to integers are computed as written, regardless of `fast_math`.
    pub exact_decisions: bool,
    /// Array arguments that a kernel writes share no memory with any other; the launcher checks it.
    pub arrays_apart: bool,
    /// Accesses of parallel loops are noted, to find data races.
    pub debug_races: bool,
    /// Results depend neither on the number of threads nor on the order in which they work.
    pub deterministic: bool,
}

impl Env {
    /// The type of a struct with these members.
    pub fn intern_struct(&mut self, members: Vec<(String, Type)>) -> StructId {
        StructId::from_u32(self.structs.insert_full(members).0 as u32)
    }

    /// Names and types of a struct's members.
    pub fn members(&self, id: StructId) -> &[(String, Type)] {
        &self.structs[id.as_u32() as usize]
    }

    /// Whether cells of a field, or of one of its components, may be inactive.
    pub fn is_sparse(&self, field: FieldId) -> bool {
        let data = &self.fields[field];
        let mut places = data.places.iter();
        places.any(|&place| self.trees[data.tree].is_below_sparse(place))
    }

    /// The shape of a field's index space, without its offset.
    pub fn shape(&self, field: FieldId) -> Vec<u64> {
        let f = &self.fields[field];
        self.trees[f.tree].shape(f.places[0])
    }

    /// The node whose cells hold a field's first component, and the field's offset.
    ///
    /// # Panics
    /// If the field's first place has no parent, which only a root has not.
    pub fn cells_of(&self, field: FieldId) -> (NodeRef, Vec<i32>) {
        let f = &self.fields[field];
        let node = self.trees[f.tree].holder(f.places[0]);
        (NodeRef { tree: f.tree, node }, f.offset.clone())
    }

    /// The quantised type of a field's components; none if they are scalars.
    pub fn quant(&self, field: FieldId) -> Option<QuantType> {
        let f = &self.fields[field];
        match self.trees[f.tree][f.places[0]].kind {
            NodeKind::Bits(quant) => Some(quant),
            _ => None,
        }
    }

    /// The message when there is no memory for a cell of a node.
    pub fn out_of_memory(&self, node: NodeRef) -> String {
        format!("out of memory for {}", self.describe(node))
    }

    /// How the templates of messages call a node: by its kind and the fields below it that have names.
    pub fn describe(&self, node: NodeRef) -> String {
        let tree = &self.trees[node.tree];
        let kind = tree[node.node].kind.name().unwrap_or("root");
        let of_fields = tree.of_fields(node.node);
        let of_fields = of_fields.replace('{', "{{").replace('}', "}}");
        format!("the {kind} node {}{of_fields}", node.node)
    }

    /// The scalars that make up a value of a type, in the order in which they travel in slots.
    pub fn scalars(&self, ty: Type) -> Vec<ScalarType> {
        match ty {
            Type::Struct(id) => self
                .members(id)
                .iter()
                .flat_map(|&(_, t)| self.scalars(t))
                .collect(),
            _ => ty
                .elem()
                .map_or_else(Vec::new, |e| vec![e; ty.n_elems() as usize]),
        }
    }
}

/// A compilation unit: a kernel with the functions it calls.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// The objects that the functions refer to.
    pub env: Env,
    /// Functions; a kernel's module has exactly one kernel.
    pub funcs: PrimaryMap<FuncId, Function>,
}

impl Module {
    /// The function with a name.
    pub fn find(&self, name: &str) -> Option<FuncId> {
        self.funcs
            .iter()
            .find(|(_, f)| f.name == name)
            .map(|(id, _)| id)
    }

    /// The kernel.
    pub fn kernel(&self) -> Option<&Function> {
        self.funcs.values().find(|f| f.is_kernel)
    }
}
