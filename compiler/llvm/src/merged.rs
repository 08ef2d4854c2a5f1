//! Operations that the lanes of a GPU's warp combine, where each lane would change the same word of memory.

use aerogel_base::ScalarType;
use inkwell::values::FastMathFlags;

use crate::builder::{Opcode, Val, basic, incoming};
use crate::context::FuncCx;

/// Lanes of a warp that are at one place with the same keys.
pub(crate) struct Group<'ctx> {
    /// A bit for each of them.
    pub(crate) lanes: Val<'ctx>,
    /// How many of them come before this one.
    pub(crate) rank: Val<'ctx>,
    /// The number of the first of them.
    first: Val<'ctx>,
}

impl<'ctx> FuncCx<'_, '_, 'ctx> {
    /// The lanes that are here with the same keys, of 64 bits each.
    fn group(&mut self, keys: &[Val<'ctx>]) -> Group<'ctx> {
        let none = FastMathFlags::empty();
        let i32_ty = basic(self.b.ctx.i32_type());
        let here = self.b.intrinsic("llvm.nvvm.activemask", &[], &[], none);
        let mut lanes = here;
        for &key in keys {
            let name = "llvm.nvvm.match.any.sync.i64";
            let same = self.b.intrinsic(name, &[], &[here, key], none);
            lanes = self.b.and(lanes, same);
        }
        let [_, lane] = self.warp_and_lane();
        let one = self.b.int(i32_ty, 1);
        let below = self.b.op(Opcode::Shl, one, lane);
        let below = self.b.op(Opcode::Sub, below, one);
        let before = self.b.and(lanes, below);
        // The lowest bit, alone, and how many are below.
        let negative = self.b.op(Opcode::Sub, self.b.int(i32_ty, 0), lanes);
        let lowest = self.b.and(lanes, negative);
        let under = self.b.op(Opcode::Sub, lowest, one);
        Group {
            lanes,
            rank: self.count(before),
            first: self.count(under),
        }
    }

    /// How many bits of a word are set.
    fn count(&self, word: Val<'ctx>) -> Val<'ctx> {
        let i32_ty = basic(self.b.ctx.i32_type());
        self.b
            .intrinsic("llvm.ctpop", &[i32_ty], &[word], FastMathFlags::empty())
    }

    /// A word that the first of a group makes, for all of it.
    pub(crate) fn by_first(
        &mut self,
        group: &Group<'ctx>,
        make: impl FnOnce(&mut Self) -> Val<'ctx>,
    ) -> Val<'ctx> {
        let i32_ty = basic(self.b.ctx.i32_type());
        let is_first = self.b.is_zero(group.rank);
        let before = self.b.current();
        let [once, all] = ["once", "for_equal"].map(|name| self.b.block(self.llvm, name));
        self.b.cond_br(is_first, once, all);
        self.b.at(once);
        let made = make(self);
        let after = self.b.current();
        self.b.br(all);
        self.b.at(all);
        let phi = self.b.phi(made.get_type());
        incoming(phi, self.b.int(made.get_type(), 0), before);
        incoming(phi, made, after);
        let own = phi.as_basic_value();
        let last = self.b.int(i32_ty, 31);
        let which = [group.first, last];
        self.of_other_lane("idx", ScalarType::U32, group.lanes, own, which)
    }

    /// A word that `make` makes: on a GPU once for all lanes of a warp that are here with the same keys.
    pub(crate) fn once_for_equal(
        &mut self,
        keys: &[Val<'ctx>],
        make: impl FnOnce(&mut Self) -> Val<'ctx>,
    ) -> Val<'ctx> {
        if !self.cx.target.grid {
            return make(self);
        }
        let group = self.group(keys);
        self.by_first(&group, make)
    }

    /// Sets a bit of a word: on a GPU that can, `set` is called once for the bits of all lanes that are here with the same word.
    pub(crate) fn bits_of_equal(
        &mut self,
        word: Val<'ctx>,
        bit: Val<'ctx>,
        set: impl FnOnce(&mut Self, Val<'ctx>),
    ) {
        let either = "llvm.nvvm.redux.sync.or";
        if !self.cx.target.allows(either) {
            return set(self, bit);
        }
        let none = FastMathFlags::empty();
        let group = self.group(&[word]);
        let bits = self.b.intrinsic(either, &[], &[bit, group.lanes], none);
        let is_first = self.b.is_zero(group.rank);
        let [once, all] = ["once", "for_equal"].map(|name| self.b.block(self.llvm, name));
        self.b.cond_br(is_first, once, all);
        self.b.at(once);
        set(self, bits);
        self.b.br(all);
        self.b.at(all);
        // The others may look at the word next.
        self.b
            .effect_intrinsic("llvm.nvvm.bar.warp.sync", &[group.lanes]);
    }

    /// The lanes that are here with the same key, and the greatest word that one of them has; on a GPU that can.
    pub(crate) fn longest_of_equal(
        &mut self,
        key: Val<'ctx>,
        word: Val<'ctx>,
    ) -> Option<(Group<'ctx>, Val<'ctx>)> {
        let most = "llvm.nvvm.redux.sync.umax";
        if !self.cx.target.allows(most) {
            return None;
        }
        let group = self.group(&[key]);
        let none = FastMathFlags::empty();
        let most = self.b.intrinsic(most, &[], &[word, group.lanes], none);
        Some((group, most))
    }

    /// A number that counts up by one each time, and what it was before: on a GPU `add` is called once for all lanes that are here
    /// with the same key.
    pub(crate) fn counted_for_equal(
        &mut self,
        key: impl FnOnce(&mut Self) -> Val<'ctx>,
        add: impl FnOnce(&mut Self, Val<'ctx>) -> Val<'ctx>,
    ) -> Val<'ctx> {
        let one = self.b.int(basic(self.b.ctx.i32_type()), 1);
        if !self.cx.target.grid {
            return add(self, one);
        }
        let key = key(self);
        let group = self.group(&[key]);
        let n = self.count(group.lanes);
        let before = self.by_first(&group, |s| add(s, n));
        self.b.op(Opcode::Add, before, group.rank)
    }
}
