//! Names of a kernel: nested blocks, innermost first.
//!
//! A name made in a block is gone after it; what it was is kept for the error message.

use aerogel_base::hash::LookupSet;
use indexmap::IndexMap;

use crate::lower::Val;

/// What a name stands for, and whether it can be assigned to.
#[derive(Clone, Debug)]
pub(crate) struct Binding {
    pub(crate) val: Val,
    pub(crate) kind: BindingKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BindingKind {
    /// A variable with storage of its own.
    Variable,
    /// Another name for something known: `ti.static`, template parameters, indices of static loops.
    Alias,
    LoopIndex,
    Parameter,
}

/// The blocks of one function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scopes {
    blocks: Vec<IndexMap<String, Binding>>,
    gone: LookupSet<String>,
}

impl Scopes {
    pub(crate) fn enter(&mut self) {
        self.blocks.push(IndexMap::new());
    }

    pub(crate) fn leave(&mut self) {
        for (name, _) in self.blocks.pop().unwrap_or_default() {
            self.gone.insert(name);
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Binding> {
        self.blocks.iter().rev().find_map(|block| block.get(name))
    }

    /// Makes `name` stand for `val` in the innermost block.
    pub(crate) fn bind(&mut self, name: &str, kind: BindingKind, val: Val) {
        if let Some(block) = self.blocks.last_mut() {
            block.insert(name.to_string(), Binding { val, kind });
        }
    }

    /// Changes what names stand for, where `change` says so.
    pub(crate) fn replace(&mut self, change: impl Fn(&Val) -> Option<Val>) {
        for binding in self.blocks.iter_mut().flat_map(IndexMap::values_mut) {
            if let Some(val) = change(&binding.val) {
                binding.val = val;
            }
        }
    }

    /// Whether a block that has been left had the name.
    pub(crate) fn was_bound(&self, name: &str) -> bool {
        self.gone.contains(name)
    }
}
