//! Instructions over sparse nodes.
//!
//! What a few loads can do is written in place; the rest is called (`runtime/device/`). The
//! numbers, masks and lengths in a node's containers have an alias tag of their own, so that stores to
//! fields do not make LLVM read them again. Calls stand on paths of their own, so that only there what was
//! read before is read again.

use aerogel_ir::{Inst, NodeOp, NodeRef, Value};
use aerogel_snode::{MASK_BITS, Node, NodeKind, WORD, control};
use inkwell::IntPredicate;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValue, FastMathFlags, InstructionValue, MetadataValue};

use crate::builder::{Opcode, RmwOp, Val, basic, incoming};
use crate::context::{FuncCx, Origin};
use crate::device_code;

mod lists;
mod tables;

/// A cell in an arena, as its container names it.
struct Spot<'ctx> {
    /// The place of the element's number.
    slot: Val<'ctx>,
    /// Which of the node's arenas the element is in; none for the only one.
    arena: Option<Val<'ctx>>,
    /// Which cell of the element it is; none for its only one.
    within: Option<Val<'ctx>>,
}

/// How the words that lead to a cell are read: as others may change them in the same loop, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Plain,
    Racing,
}

impl<'a, 'ctx> FuncCx<'_, 'a, 'ctx> {
    pub(crate) fn node_op(&mut self, inst: Inst, op: &NodeOp) {
        let results = &self.func.insts[inst].results;
        let made = match op {
            NodeOp::Root { tree } => vec![self.root(*tree)],
            NodeOp::Linearize { node, coords } => vec![self.linearize(*node, coords)],
            NodeOp::Lookup {
                node,
                container,
                index,
            } => vec![self.lookup(*node, *container, *index)],
            NodeOp::Child { node, cell } => vec![self.child(*node, *cell)],
            NodeOp::Find {
                node,
                container,
                index,
            } => {
                let spot = self.spot(*node, *container, *index, Reading::Plain);
                let number = self.topology(*node, spot.slot);
                vec![self.cell(*node, &spot, number)]
            }
            NodeOp::Ambient { node } => vec![self.range(*node, control::ELEMENTS)],
            NodeOp::Obtain {
                node,
                container,
                index,
            } => vec![self.obtain(inst, *node, *container, *index)],
            NodeOp::CellIsActive {
                node,
                container,
                index,
            } => vec![self.cell_is_active(*node, *container, *index)],
            NodeOp::MaskWord {
                node,
                container,
                word,
            } => {
                let word = self.index(*word);
                let place = self.mask_place(*node, self.value(*container), word);
                vec![self.topology(*node, place)]
            }
            NodeOp::NextActive {
                node,
                container,
                index,
            } => {
                let index = self.value(*index);
                vec![self.hash_bound("next_active", *node, *container, &[index])]
            }
            NodeOp::ActiveEnd { node, container } => {
                vec![self.hash_bound("active_end", *node, *container, &[])]
            }
            NodeOp::Release {
                node,
                container,
                index,
            } => {
                self.release(*node, *container, *index);
                Vec::new()
            }
            NodeOp::ReleaseAll { node, container } => {
                let n_chunks = self.b.i64(self.node(*node).n_chunks() as i64);
                let args = [
                    self.base(*node),
                    self.block(*node, None),
                    self.address(self.value(*container)),
                    n_chunks,
                ];
                self.device("release_dynamic", &args);
                Vec::new()
            }
            NodeOp::Extend { node, container } => vec![self.extend(inst, *node, *container)],
            NodeOp::ContainerLength { node, container } => {
                let length = self.topology(*node, self.value(*container));
                // While others append to a full container it counts more than there are.
                let most = self.word(self.node(*node).n_cells);
                let length = self.b.intrinsic(
                    "llvm.umin",
                    &[self.word_type()],
                    &[length, most],
                    FastMathFlags::empty(),
                );
                vec![self.widen(length)]
            }
            NodeOp::ListStale { node } => vec![self.list_stale(*node)],
            NodeOp::ListLen { node } => vec![self.list_len(*node)],
            NodeOp::ListOffset { node, part } => vec![self.list_offset(*node, *part)],
            NodeOp::ListCount { node, part, count } => {
                self.list_count(*node, *part, *count);
                Vec::new()
            }
            NodeOp::ListScan { node, n_parts } => {
                self.list_scan(*node, *n_parts);
                Vec::new()
            }
            NodeOp::ListPut {
                node,
                at,
                cell,
                indices,
            } => {
                self.list_put(*node, *at, *cell, indices);
                Vec::new()
            }
            NodeOp::ListEntry { node, at } => self.list_entry(*node, *at, results.len() - 1),
            NodeOp::NRecycled { node } => vec![self.n_recycled(*node)],
            NodeOp::Recycled { node, at } => vec![self.recycled(*node, *at)],
            NodeOp::Wipe { node, at } => {
                self.wipe(*node, *at);
                Vec::new()
            }
            NodeOp::Collect { node } => {
                self.collect(*node);
                Vec::new()
            }
        };
        self.define(results, &made);
    }

    // Where things are.

    fn node(&self, node: NodeRef) -> &'a Node {
        &self.module.env.trees[node.tree][node.node]
    }

    fn root_offset(&self, node: NodeRef, at: u64) -> u64 {
        let tree = &self.module.env.trees[node.tree];
        tree.control_offset(u64::from(tree[node.node].first_control)) + at
    }

    /// The control block of one of a node's arenas; the first if none is named.
    fn control(&mut self, node: NodeRef, arena: Option<Val<'ctx>>) -> Val<'ctx> {
        let first = self.root_offset(node, 0);
        let root = self.root(node.tree);
        let first = self.b.offset(root, self.b.i64(first as i64));
        match arena {
            None => first,
            Some(k) => self.element(first, k, control::SIZE),
        }
    }

    /// The number of a control block in its tree, as the host knows it.
    fn control_number(&self, node: NodeRef, arena: Option<Val<'ctx>>) -> Val<'ctx> {
        let first = self.word(u64::from(self.node(node).first_control));
        match arena {
            None => first,
            Some(k) => {
                let k = self.b.cast(Opcode::Trunc, k, self.word_type());
                self.b.nuw_add(first, k)
            }
        }
    }

    /// The place of a word in a node's first control block.
    fn control_word(&mut self, node: NodeRef, at: u64) -> Val<'ctx> {
        let at = self.root_offset(node, at);
        let root = self.root(node.tree);
        self.b.offset(root, self.b.i64(at as i64))
    }

    /// Where a range that a node's first control block names begins.
    fn range(&mut self, node: NodeRef, at: u64) -> Val<'ctx> {
        let at = self.root_offset(node, at);
        self.tree_range(node.tree, at)
    }

    fn spot(
        &mut self,
        node: NodeRef,
        container: Value,
        index: Value,
        reading: Reading,
    ) -> Spot<'ctx> {
        let container = self.value(container);
        let index = self.index(index);
        if self.node(node).kind == NodeKind::Hash {
            return Spot {
                slot: self.hash_slot(node, container, index, reading),
                arena: None,
                within: None,
            };
        }
        if self.node(node).kind == NodeKind::Pointer {
            return Spot {
                slot: self.element(container, index, WORD),
                arena: None,
                within: None,
            };
        }
        let index = self.b.cast(Opcode::Trunc, index, self.word_type());
        self.chunk_spot(node, container, index)
    }

    /// A cell of a dynamic container; the index is a word.
    fn chunk_spot(&mut self, node: NodeRef, container: Val<'ctx>, index: Val<'ctx>) -> Spot<'ctx> {
        let data = self.node(node);
        if data.n_chunks() == 1 {
            return Spot {
                slot: self.b.offset(container, self.b.i64(WORD as i64)),
                arena: None,
                within: Some(self.widen(index)),
            };
        }
        // Chunk k begins at cell (2^k - 1) * chunk.
        let chunk = self.word(data.chunk_cells(0));
        let one = self.word(1);
        let whole = self.b.op(Opcode::UDiv, index, chunk);
        let whole = self.b.nuw_add(whole, one);
        let zeros = self.b.intrinsic(
            "llvm.ctlz",
            &[self.word_type()],
            &[whole, self.b.bool(true)],
            FastMathFlags::empty(),
        );
        let k = self.b.op(Opcode::Xor, zeros, self.word(31));
        let power = self.b.op(Opcode::Shl, one, k);
        let before = self.b.op(Opcode::Sub, power, one);
        let before = self.b.op(Opcode::Mul, before, chunk);
        let within = self.b.op(Opcode::Sub, index, before);
        let k = self.widen(k);
        let slots = self.b.offset(container, self.b.i64(WORD as i64));
        Spot {
            slot: self.element(slots, k, WORD),
            arena: Some(k),
            within: Some(self.widen(within)),
        }
    }

    /// The cell at a spot whose slot holds `number`.
    fn cell(&mut self, node: NodeRef, spot: &Spot<'ctx>, number: Val<'ctx>) -> Val<'ctx> {
        let data = self.node(node);
        let elements = match spot.arena {
            None => self.range(node, control::ELEMENTS),
            Some(_) => {
                let block = self.control(node, spot.arena);
                let ty = basic(self.b.i64_type());
                let offset = self.load_invariant(ty, block, control::ELEMENTS);
                let root = self.root(node.tree);
                self.b.offset(root, offset)
            }
        };
        let mut cell = self.widen(number);
        if let Some(within) = spot.within {
            let chunk = self.b.i64(data.chunk_cells(0) as i64);
            cell = self.b.nsw(Opcode::Mul, cell, chunk);
            if let Some(k) = spot.arena {
                cell = self.b.op(Opcode::Shl, cell, k);
            }
            cell = self.b.nsw(Opcode::Add, cell, within);
        }
        self.element(elements, cell, data.cell_size)
    }

    /// The place of a word of a bitmasked container's mask.
    fn mask_place(&self, node: NodeRef, container: Val<'ctx>, word: Val<'ctx>) -> Val<'ctx> {
        let at = self.b.i64(self.node(node).mask_offset() as i64);
        self.element(self.b.offset(container, at), word, WORD)
    }

    /// The place of a cell's bit, and the bit in its word.
    fn bit(&self, node: NodeRef, container: Val<'ctx>, index: Val<'ctx>) -> [Val<'ctx>; 2] {
        let shift = self.b.i64(i64::from(MASK_BITS.ilog2()));
        let word = self.b.op(Opcode::LShr, index, shift);
        let place = self.mask_place(node, container, word);
        let index = self.b.cast(Opcode::Trunc, index, self.word_type());
        let in_word = self.b.and(index, self.word(MASK_BITS - 1));
        [place, self.b.op(Opcode::Shl, self.word(1), in_word)]
    }

    // Words.

    fn word_type(&self) -> BasicTypeEnum<'ctx> {
        basic(self.b.ctx.i32_type())
    }

    fn word(&self, value: u64) -> Val<'ctx> {
        self.b.int(self.word_type(), value as i64)
    }

    fn widen(&self, word: Val<'ctx>) -> Val<'ctx> {
        self.b.cast(Opcode::ZExt, word, basic(self.b.i64_type()))
    }

    fn is_set(&self, word: Val<'ctx>) -> Val<'ctx> {
        self.b.not(self.b.is_zero(word))
    }

    fn address(&self, place: Val<'ctx>) -> Val<'ctx> {
        self.b
            .cast(Opcode::PtrToInt, place, basic(self.b.i64_type()))
    }

    // Loads and calls.

    /// The address at which the tree of a node begins.
    fn base(&mut self, node: NodeRef) -> Val<'ctx> {
        let root = self.root(node.tree);
        self.address(root)
    }

    /// The address of a control block.
    fn block(&mut self, node: NodeRef, arena: Option<Val<'ctx>>) -> Val<'ctx> {
        let block = self.control(node, arena);
        self.address(block)
    }

    fn topology_tag(&mut self, node: NodeRef) -> MetadataValue<'ctx> {
        self.tag(&format!("topology {node}"))
    }

    /// Reads a word that says which cells there are.
    fn topology(&mut self, node: NodeRef, place: Val<'ctx>) -> Val<'ctx> {
        let (word, inst) = self.b.load(self.word_type(), place);
        let tag = self.topology_tag(node);
        self.b.mark(inst, "tbaa", tag);
        self.mark_lasting(inst, |changed| changed.leaves_cells(node.tree));
        self.in_group(inst);
        word
    }

    /// Reads such a word where other threads change it. It must be read in one piece and no more:
    /// a cell that seems inactive is looked at again before it is made active.
    fn racing_topology(&mut self, node: NodeRef, place: Val<'ctx>) -> Val<'ctx> {
        let (word, inst) = self.b.load_unordered(self.word_type(), place);
        let tag = self.topology_tag(node);
        self.b.mark(inst, "tbaa", tag);
        word
    }

    /// Marks an access as independent of those of other iterations.
    fn in_group(&self, inst: InstructionValue<'ctx>) {
        if let Some(group) = self.group {
            self.b.mark(inst, "llvm.access.group", group);
        }
    }

    fn update_length(
        &mut self,
        op: RmwOp,
        node: NodeRef,
        container: Val<'ctx>,
        by: Val<'ctx>,
    ) -> Val<'ctx> {
        let before = self.b.rmw(op, container, by);
        let tag = self.topology_tag(node);
        let inst = before.as_instruction_value();
        self.b
            .mark(inst.expect("an update is an instruction"), "tbaa", tag);
        before
    }

    /// Calls a function of `runtime/device/`; its result, if it has one.
    fn device(&mut self, name: &str, args: &[Val<'ctx>]) -> Option<Val<'ctx>> {
        let id = device_code::module().find(name);
        let id = id.expect("the device code has what sparse nodes need");
        self.call_values(Origin::Device, id, args).pop()
    }

    /// `value` if `fast`, and else what `slow` makes.
    fn unless(
        &mut self,
        fast: Val<'ctx>,
        value: Val<'ctx>,
        slow: impl FnOnce(&mut Self) -> Val<'ctx>,
    ) -> Val<'ctx> {
        let before = self.b.current();
        let [rest, done] = ["slow", "there"].map(|name| self.b.block(self.llvm, name));
        self.b.likely_br(fast, done, rest);
        self.b.at(rest);
        let made = slow(self);
        let after = self.b.current();
        self.b.br(done);
        self.b.at(done);
        let phi = self.b.phi(value.get_type());
        incoming(phi, value, before);
        incoming(phi, made, after);
        phi.as_basic_value()
    }

    // Instructions.

    /// The last arguments of the functions that assign an element to a slot.
    fn arena_args(&mut self, node: NodeRef, spot: &Spot<'ctx>) -> [Val<'ctx>; 4] {
        [
            self.block(node, spot.arena),
            self.address(spot.slot),
            self.word(u64::from(node.tree.as_u32())),
            self.control_number(node, spot.arena),
        ]
    }

    /// Leaves the task if memory was refused.
    fn check_memory(&mut self, granted: Val<'ctx>, inst: Inst) {
        self.check(inst, granted, &[]);
    }

    fn obtain(&mut self, inst: Inst, node: NodeRef, container: Value, index: Value) -> Val<'ctx> {
        let kind = self.node(node).kind;
        if kind == NodeKind::Bitmasked {
            let [place, bit] = self.bit_of(node, container, index);
            let word = self.racing_topology(node, place);
            let set = self.is_set(self.b.and(word, bit));
            self.unless(set, word, |s| {
                let (control, place) = (s.block(node, None), s.address(place));
                s.bits_of_equal(place, bit, |s, bits| {
                    s.device("obtain_bit", &[control, place, bits]);
                });
                word
            });
            return self.lookup(node, container, index);
        }
        let spot = self.spot(node, container, index, Reading::Racing);
        let seen = self.racing_topology(node, spot.slot);
        let mut there = self.is_set(seen);
        let mut wanted = None;
        if matches!(kind, NodeKind::Dynamic { .. }) {
            let length = self.racing_topology(node, self.value(container));
            let index = self.index(index);
            let index = self.b.cast(Opcode::Trunc, index, self.word_type());
            let inside = self.b.icmp(IntPredicate::ULT, index, length);
            there = self.b.and(there, inside);
            wanted = Some(self.b.nuw_add(index, self.word(1)));
        }
        let number = self.unless(there, seen, |s| {
            let base = s.base(node);
            let arena = s.arena_args(node, &spot);
            let made = match wanted {
                None if kind == NodeKind::Hash => {
                    let [control, _, tree, number] = arena;
                    let container = s.address(s.value(container));
                    let key = s.index(index);
                    let n_digits = s.b.i64(s.node(node).n_digits() as i64);
                    let args = [base, control, container, key, n_digits, tree, number];
                    Some(s.once_for_equal(&[container, key], |s| {
                        let made = s.device("obtain_hash", &args);
                        made.expect("a number is returned")
                    }))
                }
                None => {
                    let mut args = vec![base];
                    args.extend(arena);
                    Some(s.once_for_equal(&[arena[1]], |s| {
                        let made = s.device("obtain_pointer", &args);
                        made.expect("a number is returned")
                    }))
                }
                Some(length) => Some(s.lengthen(node, container, (&spot, seen), length)),
            };
            let made = made.expect("a number is returned");
            let granted = s.is_set(made);
            s.check_memory(granted, inst);
            made
        });
        self.cell(node, &spot, number)
    }

    /// Makes a dynamic container so long, whose last cell is at `spot`, in the slot of which `seen` was found: the number in the
    /// slot, or 0 if there is no memory. Lanes of a warp that lengthen one container do it once.
    fn lengthen(
        &mut self,
        node: NodeRef,
        container: Value,
        (spot, seen): (&Spot<'ctx>, Val<'ctx>),
        length: Val<'ctx>,
    ) -> Val<'ctx> {
        let container = self.value(container);
        let obtain = |s: &mut Self, spot: &Spot<'ctx>, length| {
            let mut args = vec![
                s.base(node),
                s.block(node, None),
                s.address(container),
                length,
            ];
            args.extend(s.arena_args(node, spot));
            let made = s.device("obtain_dynamic", &args);
            made.expect("a number is returned")
        };
        let key = self.address(container);
        let Some((group, most)) = self.longest_of_equal(key, length) else {
            return obtain(self, spot, length);
        };
        let first_own = match self.node(node).n_chunks() {
            1 => None,
            // Who appends may have lengthened the container already, and not given its chunks memory.
            _ => {
                let there = self.is_set(seen);
                Some(self.unless(there, seen, |s| {
                    let base = s.base(node);
                    let [chunk, slot, tree, number] = s.arena_args(node, spot);
                    s.once_for_equal(&[slot], |s| {
                        let filled = s.device("fill_slot", &[base, chunk, slot, tree, number]);
                        filled.expect("a number is returned")
                    })
                }))
            }
        };
        let longest = self.by_first(&group, |s| {
            let last = s.b.op(Opcode::Sub, most, s.word(1));
            let spot = s.chunk_spot(node, container, last);
            obtain(s, &spot, most)
        });
        let Some(own) = first_own else { return longest };
        let granted = self.is_set(longest);
        self.b.select(granted, own, self.word(0))
    }

    fn bit_of(&mut self, node: NodeRef, container: Value, index: Value) -> [Val<'ctx>; 2] {
        let index = self.index(index);
        self.bit(node, self.value(container), index)
    }

    fn cell_is_active(&mut self, node: NodeRef, container: Value, index: Value) -> Val<'ctx> {
        match self.node(node).kind {
            NodeKind::Pointer | NodeKind::Hash => {
                let spot = self.spot(node, container, index, Reading::Plain);
                let number = self.topology(node, spot.slot);
                self.is_set(number)
            }
            NodeKind::Bitmasked => {
                let [place, bit] = self.bit_of(node, container, index);
                let word = self.topology(node, place);
                self.is_set(self.b.and(word, bit))
            }
            _ => {
                let length = self.topology(node, self.value(container));
                let index = self.index(index);
                self.b.icmp(IntPredicate::SLT, index, self.widen(length))
            }
        }
    }

    fn release(&mut self, node: NodeRef, container: Value, index: Value) {
        if self.node(node).kind.has_list() {
            let spot = self.spot(node, container, index, Reading::Racing);
            let number = self.racing_topology(node, spot.slot);
            let inactive = self.b.is_zero(number);
            self.unless(inactive, number, |s| {
                let args = [s.base(node), s.block(node, None), s.address(spot.slot)];
                s.device("release_pointer", &args);
                number
            });
            return;
        }
        let [place, bit] = self.bit_of(node, container, index);
        let word = self.racing_topology(node, place);
        let inactive = self.b.is_zero(self.b.and(word, bit));
        let cell = self.lookup(node, container, index);
        self.unless(inactive, word, |s| {
            let data = s.node(node);
            // Cells lie one behind the other, so their size says how they are aligned.
            let align = 1
                << data
                    .cell_size
                    .trailing_zeros()
                    .min(data.align.trailing_zeros());
            let size = s.b.i64(data.cell_size as i64);
            if data.cell_size < control::LARGE_ELEMENT {
                s.b.memset_zero(cell, size, align);
            } else {
                let tree = s.word(u64::from(node.tree.as_u32()));
                let address = s.address(cell);
                s.clear(tree, address, size);
            }
            let args = [s.block(node, None), s.address(place), bit];
            s.device("release_bit", &args);
            word
        });
    }

    fn extend(&mut self, inst: Inst, node: NodeRef, container: Value) -> Val<'ctx> {
        let container = self.value(container);
        let index = self.counted_for_equal(
            |s| s.address(container),
            |s, n| s.update_length(RmwOp::LLVMAtomicRMWBinOpAdd, node, container, n),
        );
        let room = self.word(self.node(node).n_cells);
        let fits = self.b.icmp(IntPredicate::ULT, index, room);
        let [append, full, done] =
            ["append", "full", "appended"].map(|name| self.b.block(self.llvm, name));
        self.b.likely_br(fits, append, full);

        self.b.at(full);
        // Not one less: others may have emptied it meanwhile.
        self.update_length(RmwOp::LLVMAtomicRMWBinOpUMin, node, container, room);
        self.b.br(done);

        self.b.at(append);
        let spot = self.chunk_spot(node, container, index);
        let number = self.racing_topology(node, spot.slot);
        let place = self.control_word(node, control::CHANGED);
        let changed = self.racing_topology(node, place);
        let ready = self.b.and(self.is_set(number), self.is_set(changed));
        self.unless(ready, number, |s| {
            let mut args = vec![
                s.base(node),
                s.block(node, None),
                s.address(container),
                index,
            ];
            let arena = s.arena_args(node, &spot);
            args.extend(arena);
            if s.cx.target.grid {
                // What is here already nobody takes an element for.
                let [chunk, slot, tree, number] = arena;
                s.once_for_equal(&[slot], |s| {
                    let filled = s.device("fill_slot", &[args[0], chunk, slot, tree, number]);
                    filled.expect("a number is returned")
                });
            }
            let granted = s.device("extend_dynamic", &args);
            s.check_memory(granted.expect("an answer is returned"), inst);
            number
        });
        let wide = self.widen(index);
        let appended = self.b.current();
        self.b.br(done);

        self.b.at(done);
        let phi = self.b.phi(wide.get_type());
        incoming(phi, self.b.i64(-1), full);
        incoming(phi, wide, appended);
        phi.as_basic_value()
    }
}
