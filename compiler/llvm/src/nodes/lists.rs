//! Instructions over lists of active cells, and over what waits for collection.

use aerogel_ir::{NodeRef, Value};
use aerogel_snode::{NodeKind, WORD, control};
use inkwell::types::BasicTypeEnum;

use super::Spot;
use crate::builder::{Opcode, Val, basic};
use crate::context::FuncCx;

impl<'ctx> FuncCx<'_, '_, 'ctx> {
    pub(super) fn list_len(&mut self, node: NodeRef) -> Val<'ctx> {
        let place = self.control_word(node, control::LIST_LEN);
        let length = self.list_load(node, self.word_type(), place);
        self.widen(length)
    }

    pub(super) fn list_offset(&mut self, node: NodeRef, part: Value) -> Val<'ctx> {
        let place = self.part_place(node, part);
        let first = self.list_load(node, self.word_type(), place);
        self.widen(first)
    }

    pub(super) fn list_count(&mut self, node: NodeRef, part: Value, count: Value) {
        let place = self.part_place(node, part);
        let count = self
            .b
            .cast(Opcode::Trunc, self.value(count), self.word_type());
        self.list_store(node, place, count);
    }

    pub(super) fn list_scan(&mut self, node: NodeRef, n_parts: Value) {
        let args = [self.base(node), self.block(node, None), self.value(n_parts)];
        self.device("list_scan", &args);
    }

    pub(super) fn recycled(&mut self, node: NodeRef, at: Value) -> Val<'ctx> {
        let at = self.value(at);
        let queue = self.range(node, control::RECYCLED);
        let place = self.element(queue, at, WORD);
        let (number, inst) = self.b.load(self.word_type(), place);
        self.in_group(inst);
        let spot = Spot {
            slot: place,
            arena: None,
            within: None,
        };
        self.cell(node, &spot, number)
    }

    pub(super) fn wipe(&mut self, node: NodeRef, at: Value) {
        let data = self.node(node);
        let (n_arenas, size) = (data.n_arenas(), data.element_size(0));
        if data.kind == NodeKind::Hash {
            let args = [
                self.base(node),
                self.block(node, None),
                self.value(at),
                self.b.i64(data.n_digits() as i64),
            ];
            self.device("prune", &args);
        }
        let args = [
            self.base(node),
            self.block(node, None),
            self.b.i64(n_arenas as i64),
            self.value(at),
            self.b.i64(size as i64),
            self.word(u64::from(node.tree.as_u32())),
        ];
        self.device("wipe", &args);
    }

    pub(super) fn collect(&mut self, node: NodeRef) {
        for k in 0..self.node(node).n_arenas() {
            let k = self.b.i64(k as i64);
            let block = self.block(node, Some(k));
            self.device("collect", &[block]);
        }
        if self.node(node).kind == NodeKind::Hash {
            let one = self.b.i64(1);
            let args = [self.base(node), self.block(node, Some(one))];
            self.device("collect_tables", &args);
        }
    }

    fn part_place(&mut self, node: NodeRef, part: Value) -> Val<'ctx> {
        let parts = self.range(node, control::PARTS);
        self.element(parts, self.value(part), WORD)
    }

    fn list_load(&mut self, node: NodeRef, ty: BasicTypeEnum<'ctx>, place: Val<'ctx>) -> Val<'ctx> {
        let (value, inst) = self.b.load(ty, place);
        let tag = self.tag(&format!("list {node}"));
        self.b.mark(inst, "tbaa", tag);
        self.mark_lasting(inst, |changed| changed.leaves_list(node));
        self.in_group(inst);
        value
    }

    fn list_store(&mut self, node: NodeRef, place: Val<'ctx>, value: Val<'ctx>) {
        let inst = self.b.store(place, value);
        let tag = self.tag(&format!("list {node}"));
        self.b.mark(inst, "tbaa", tag);
        self.in_group(inst);
    }

    pub(super) fn list_stale(&mut self, node: NodeRef) -> Val<'ctx> {
        let mut stamp = self.word(1);
        for above in self.module.env.trees[node.tree].sparse_chain(node.node) {
            let above = NodeRef {
                node: above,
                ..node
            };
            let block = self.block(above, None);
            let epoch = self.device("epoch", &[block]);
            stamp = self
                .b
                .op(Opcode::Add, stamp, epoch.expect("an epoch is returned"));
        }
        let block = self.block(node, None);
        self.device("list_stale", &[block, stamp])
            .expect("an answer is returned")
    }

    pub(super) fn list_put(&mut self, node: NodeRef, at: Value, cell: Value, origin: &[Value]) {
        let entry = self.entry(node, at, origin.len());
        let root = self.root(node.tree);
        let offset = self.b.nsw(
            Opcode::Sub,
            self.address(self.value(cell)),
            self.address(root),
        );
        self.list_store(node, entry, offset);
        for (k, &index) in origin.iter().enumerate() {
            let index = self.b.extend(self.func.elem(index), self.value(index), 32);
            let place = self.origin_place(entry, k);
            self.list_store(node, place, index);
        }
    }

    pub(super) fn list_entry(&mut self, node: NodeRef, at: Value, n_axes: usize) -> Vec<Val<'ctx>> {
        let entry = self.entry(node, at, n_axes);
        let offset = self.list_load(node, basic(self.b.i64_type()), entry);
        let root = self.root(node.tree);
        let mut made = vec![self.b.offset(root, offset)];
        for k in 0..n_axes {
            let place = self.origin_place(entry, k);
            made.push(self.list_load(node, self.word_type(), place));
        }
        made
    }

    fn entry(&mut self, node: NodeRef, at: Value, n_axes: usize) -> Val<'ctx> {
        let list = self.range(node, control::LIST);
        self.element(list, self.value(at), control::entry_size(n_axes))
    }

    /// Where an entry says at which index its cell begins along an axis.
    fn origin_place(&self, entry: Val<'ctx>, axis: usize) -> Val<'ctx> {
        self.b.offset(entry, self.b.i64(8 + 4 * axis as i64))
    }

    pub(super) fn n_recycled(&mut self, node: NodeRef) -> Val<'ctx> {
        let mut sum = self.b.i64(0);
        for k in 0..self.node(node).n_arenas() {
            let at = k * control::SIZE + control::N_RECYCLED;
            let place = self.control_word(node, at);
            let (n, _) = self.b.load(self.word_type(), place);
            sum = self.b.nuw_add(sum, self.widen(n));
        }
        sum
    }
}
