//! Names of a kernel: nested blocks, innermost first.
//!
//! A name made in a block is gone after it; its definition is stored for the error message.

use aerogel_base::hash::LookupMap;

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
#[derive(Debug, Default)]
pub(crate) struct Scopes {
    /// The names that each block makes.
    blocks: Vec<Vec<String>>,
    /// How many blocks there were around each loop that is being unrolled.
    unrolled: Vec<usize>,
    /// What each name stands for, with the number of its block, the innermost last; nothing if it is gone.
    names: LookupMap<String, Vec<(usize, Binding)>>,
}

impl Scopes {
    pub(crate) fn enter(&mut self) {
        self.blocks.push(Vec::new());
    }

    pub(crate) fn leave(&mut self) {
        for name in self.blocks.pop().unwrap_or_default() {
            if let Some(bindings) = self.names.get_mut(&name) {
                bindings.pop();
            }
        }
    }

    /// Begins a loop whose iterations are written out one after the other.
    pub(crate) fn begin_unrolled(&mut self) {
        self.unrolled.push(self.blocks.len());
    }

    pub(crate) fn end_unrolled(&mut self) {
        self.unrolled.pop();
    }

    /// Whether a name was made before the unrolled loop around, whose iterations hand its value on.
    pub(crate) fn is_carried(&self, name: &str) -> bool {
        let at = self.names.get(name).and_then(|bindings| bindings.last());
        at.zip(self.unrolled.last())
            .is_some_and(|((at, _), around)| at <= around)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Binding> {
        self.names.get(name)?.last().map(|(_, binding)| binding)
    }

    /// How many blocks are around.
    pub(crate) fn depth(&self) -> usize {
        self.blocks.len()
    }

    /// Makes `name` stand for `val` in the innermost block.
    pub(crate) fn bind(&mut self, name: &str, kind: BindingKind, val: Val) {
        self.bind_at(self.blocks.len(), name, kind, val);
    }

    /// Makes `name` stand for `val` in the block that is `at` deep. No block inside it may have the name.
    pub(crate) fn bind_at(&mut self, at: usize, name: &str, kind: BindingKind, val: Val) {
        let Some(block) = at.checked_sub(1).and_then(|k| self.blocks.get_mut(k)) else {
            return;
        };
        let binding = Binding { val, kind };
        if let Some(bindings) = self.names.get_mut(name) {
            match bindings.last_mut() {
                Some((last, old)) if *last == at => {
                    *old = binding;
                    return;
                }
                _ => bindings.push((at, binding)),
            }
        } else {
            self.names.insert(name.to_string(), vec![(at, binding)]);
        }
        block.push(name.to_string());
    }

    /// What the first parameter stands for.
    pub(crate) fn first(&self) -> Option<&Val> {
        let name = self.blocks.first()?.first()?;
        self.get(name).map(|binding| &binding.val)
    }

    /// Changes what names stand for, where `change` says so.
    pub(crate) fn replace(&mut self, change: impl Fn(&Val) -> Option<Val>) {
        for name in self.blocks.iter().flatten() {
            for (_, binding) in self.names.get_mut(name.as_str()).into_iter().flatten() {
                if let Some(val) = change(&binding.val) {
                    binding.val = val;
                }
            }
        }
    }

    /// Whether a block that has been left had the name.
    pub(crate) fn was_bound(&self, name: &str) -> bool {
        self.names.get(name).is_some_and(Vec::is_empty)
    }
}
