//! The tables of hash nodes.

use aerogel_ir::{NodeRef, Value};
use aerogel_snode::{TABLE_BITS, TABLE_SIZE, TABLE_SLOTS, WORD, control};

use super::Reading;
use crate::builder::{Opcode, Val, basic};
use crate::context::FuncCx;

impl<'ctx> FuncCx<'_, '_, 'ctx> {
    /// The slot of a cell of a hash container; one of the ambient table, which is zero, if a table of the
    /// path is missing.
    pub(super) fn hash_slot(
        &mut self,
        node: NodeRef,
        container: Val<'ctx>,
        index: Val<'ctx>,
        reading: Reading,
    ) -> Val<'ctx> {
        let one = self.b.i64(1);
        let block = self.control(node, Some(one));
        let ty = basic(self.b.i64_type());
        let offset = self.load_invariant(ty, block, control::ELEMENTS);
        let root = self.root(node.tree);
        let tables = self.b.offset(root, offset);
        let mut slot = container;
        for k in (0..self.node(node).n_digits()).rev() {
            let table = match reading {
                Reading::Plain => self.topology(node, slot),
                Reading::Racing => self.racing_topology(node, slot),
            };
            let table = self.element(tables, self.widen(table), TABLE_SIZE);
            let digit = self
                .b
                .op(Opcode::LShr, index, self.b.i64((k * TABLE_BITS) as i64));
            let digit = self.b.and(digit, self.b.i64(TABLE_SLOTS as i64 - 1));
            slot = self.element(table, digit, WORD);
        }
        slot
    }

    /// Queries the range of the active cells of a hash container.
    pub(super) fn hash_bound(
        &mut self,
        function: &str,
        node: NodeRef,
        container: Value,
        from: &[Val<'ctx>],
    ) -> Val<'ctx> {
        let data = self.node(node);
        let mut args = vec![
            self.base(node),
            self.block(node, None),
            self.address(self.value(container)),
        ];
        args.extend(from);
        args.push(self.b.i64(data.n_digits() as i64));
        args.push(self.b.i64(data.n_cells as i64));
        self.device(function, &args).expect("a number is returned")
    }
}
