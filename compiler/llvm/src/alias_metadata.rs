//! Alias metadata for LLVM.
//!
//! Type-based alias tags declare every place of a tree, the arrays, and the temporaries disjoint, so
//! that a store to one field does not make LLVM reload another one. Inside a parallel loop accesses
//! also belong to the loop's access group, which declares its iterations independent.
//!
//! A GPU also gains from what cannot be seen in an address: that a task changes nothing of what it reads there, so that a
//! cache may keep it that knows of no writes (`ld.global.nc`), and that numbers side by side begin at a multiple of
//! their size together, so that one instruction moves them (`ld.global.v4`).

use aerogel_base::ScalarType;
use aerogel_ir::analysis::access::is_apart;
use aerogel_ir::{Inst, NodeOp, Op, Type, Value};
use inkwell::values::{InstructionValue, MetadataValue};

use crate::changed::Changed;
use crate::context::FuncCx;

/// The kind of memory that a storage is in.
pub(crate) enum Place<'ctx> {
    /// A local: no other thread sees it. Whether it outlives one iteration of the task's loop.
    Local { accumulates: bool },
    /// Memory with an alias tag.
    Tagged(MetadataValue<'ctx>),
    /// A room of a buffer: no other thread sees it.
    Room,
    /// Any memory.
    Unknown,
}

impl<'ctx> FuncCx<'_, '_, 'ctx> {
    pub(crate) fn place(&mut self, place: Value) -> Place<'ctx> {
        match self.func.def_op(place) {
            Some(Op::Local {}) => Place::Local {
                accumulates: self.func.def(place).is_some_and(|l| self.outlives_loop(l)),
            },
            Some(&Op::ElemRef { base, .. }) => self.place(base),
            Some(Op::Node(NodeOp::Child { node, .. })) => {
                let name = node.to_string();
                Place::Tagged(self.tag(&name))
            }
            Some(&Op::ArrayAt { array, .. }) => {
                let name = if is_apart(self.func, &self.module.env, array) {
                    array.to_string()
                } else {
                    "arrays".to_owned()
                };
                Place::Tagged(self.tag(&name))
            }
            Some(Op::TempAt { .. }) => Place::Tagged(self.tag("temporaries")),
            Some(Op::Shared {}) => Place::Tagged(self.tag("shared")),
            Some(Op::RoomAt { .. }) => Place::Room,
            _ => Place::Unknown,
        }
    }

    /// Whether a local is made outside the parallel loop that is being lowered.
    pub(crate) fn outlives_loop(&self, local: Inst) -> bool {
        self.task
            .as_ref()
            .is_some_and(|task| !task.serial && self.func.regions[task.body].insts.contains(&local))
    }

    /// The alias tag of a kind of memory.
    pub(crate) fn tag(&mut self, name: &str) -> MetadataValue<'ctx> {
        if let Some(&tag) = self.cx.tags.get(name) {
            return tag;
        }
        let zero = self.b.i64_type().const_zero();
        let root = self.b.node(&[self.b.string("aerogel").into()]);
        let ty = self
            .b
            .node(&[self.b.string(name).into(), root.into(), zero.into()]);
        let tag = self.b.node(&[ty.into(), ty.into(), zero.into()]);
        self.cx.tags.insert(name.to_owned(), tag);
        tag
    }

    pub(crate) fn mark_access(&mut self, inst: InstructionValue<'ctx>, place: &Place<'ctx>) {
        match *place {
            Place::Tagged(tag) => self.b.mark(inst, "tbaa", tag),
            // LLVM sees that a local's address goes nowhere if it is used in few places only.
            Place::Local { .. } => {
                let tag = self.tag("locals");
                self.b.mark(inst, "tbaa", tag);
            }
            Place::Room => {
                let tag = self.tag("rooms");
                self.b.mark(inst, "tbaa", tag);
            }
            Place::Unknown => {}
        }
        // One iteration after the other uses the same room.
        if let Some(group) = self.group
            && !matches!(place, Place::Local { .. } | Place::Room)
        {
            self.b.mark(inst, "llvm.access.group", group);
        }
    }

    pub(crate) fn pointee(&self, place: Value) -> ScalarType {
        let ty = self.func.ty(place).pointee().and_then(Type::scalar);
        ty.expect("whole tensors are taken apart before")
    }

    /// Adds facts about a read on a GPU that its address does not show.
    pub(crate) fn mark_on_grid(&self, inst: InstructionValue<'ctx>, place: Value) {
        let (func, env) = (self.func, &self.module.env);
        self.mark_lasting(inst, |changed| changed.leaves(func, env, place));
        self.align(inst, place);
    }

    /// Marks a load as invariant, if a task of a GPU does not modify the memory.
    pub(crate) fn mark_lasting(
        &self,
        inst: InstructionValue<'ctx>,
        leaves: impl FnOnce(&Changed) -> bool,
    ) {
        if self.changed.as_ref().is_some_and(leaves) {
            self.b.mark(inst, "invariant.load", self.b.node(&[]));
        }
    }

    /// Declares the alignment of a place of a tree on a GPU.
    pub(crate) fn align(&self, inst: InstructionValue<'ctx>, place: Value) {
        let Some(Op::Node(NodeOp::Child { node, .. })) = self.func.def_op(place) else {
            return;
        };
        if !self.cx.target.grid {
            return;
        }
        let tree = &self.module.env.trees[node.tree];
        let data = &tree[node.node];
        let Some(cell) = data.parent else { return };
        let align = match data.offset_in_cell {
            0 => tree.cell_align(cell),
            offset => tree.cell_align(cell).min(1 << offset.trailing_zeros()),
        };
        inst.set_alignment(align as u32)
            .expect("an alignment is a power of two");
    }
}
