//! `ti.get_addr`: the address of a cell in its tree as the user wrote it, computed from the sizes of the layout.
//!
//! The address counts from the tree's beginning: differences are what programs use.

use aerogel_base::{ErrorKind, Scalar, ScalarType};
use aerogel_ir::{self as ir, Type, Value};
use aerogel_snode::NodeId;

use crate::host::Known;
use crate::lower::calls::Args;
use crate::lower::values::Val;
use crate::lower::{Lower, Res};

impl Lower<'_, '_> {
    pub(crate) fn get_addr(&mut self, args: &Args) -> Res<Val> {
        let node = self.arg("get_addr", args, 0, "f")?.clone();
        let indices = self.arg("get_addr", args, 1, "indices")?.clone();
        let (key, node) = match &node {
            Val::Known(Known::SNode(node)) => (node.tree, NodeId::from_u32(node.node)),
            Val::Known(Known::Field(field)) => (field.tree, field.places[0]),
            _ => {
                let what = self.describe(&node);
                return self.fail(
                    ErrorKind::Type,
                    "E0228",
                    format!("`ti.get_addr` needs a field or an SNode, not {what}"),
                );
            }
        };
        let tree = self.tree(key)?;
        // Blocks that are merged in memory have the addresses that they are written with.
        let tree = self.module.env.trees[tree].as_written();
        let indices = self.cell_indices(&[indices], tree.shape(node).len() as u32, "the node")?;
        let indices: Vec<Value> = indices
            .into_iter()
            .map(|index| self.builder().cast(index, Type::I64))
            .collect();
        let mut at = self.bytes(0);
        for level in tree.path(node).levels {
            let mut linear = self.bytes(0);
            for axis in &level.axes {
                let (divisor, extent) = (self.bytes(axis.divisor), self.bytes(axis.extent));
                let mut builder = self.builder();
                let mut digit = builder.binary(ir::BinaryOp::Div, indices[axis.index], divisor);
                if axis.wraps {
                    digit = builder.binary(ir::BinaryOp::Rem, digit, extent);
                }
                let row = builder.binary(ir::BinaryOp::Mul, linear, extent);
                linear = builder.binary(ir::BinaryOp::Add, row, digit);
            }
            let (offset, size) = (
                self.bytes(tree[level.node].offset_in_cell),
                self.bytes(tree[level.node].cell_size),
            );
            let mut builder = self.builder();
            let inside = builder.binary(ir::BinaryOp::Mul, linear, size);
            let inside = builder.binary(ir::BinaryOp::Add, inside, offset);
            at = builder.binary(ir::BinaryOp::Add, at, inside);
        }
        let at = self.builder().cast(at, Type::Scalar(ScalarType::U64));
        Ok(Val::Value(at))
    }

    fn bytes(&mut self, n: u64) -> Value {
        self.builder()
            .constant(Scalar::int(ScalarType::I64, i128::from(n)))
    }
}
