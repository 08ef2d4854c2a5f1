//! What names stand for, by the scopes they are declared in.

use std::collections::BTreeMap;

use crate::code::{Reg, Slot};

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Name {
    Register(Reg),
    Param(Slot),
    /// An offset in local memory.
    Local(u64),
    Variable(usize),
    Function(usize),
}

/// The scopes, outermost first; there is always one.
pub(super) struct Names<'s> {
    scopes: Vec<Scope<'s>>,
    labels: BTreeMap<&'s str, usize>,
}

#[derive(Default)]
struct Scope<'s> {
    names: BTreeMap<&'s str, Name>,
    /// Registers that differ by a number behind their name: the first, and how many there are.
    families: BTreeMap<&'s str, (u32, u32)>,
}

impl Default for Names<'_> {
    fn default() -> Self {
        Self {
            scopes: vec![Scope::default()],
            labels: BTreeMap::new(),
        }
    }
}

impl<'s> Names<'s> {
    pub(super) fn enter(&mut self) {
        self.scopes.push(Scope::default());
    }

    pub(super) fn leave(&mut self) {
        self.scopes.pop();
    }

    fn innermost(&mut self) -> &mut Scope<'s> {
        self.scopes.last_mut().expect("there is always one")
    }

    pub(super) fn add(&mut self, name: &'s str, of: Name) {
        self.innermost().names.insert(name, of);
    }

    pub(super) fn add_outermost(&mut self, name: &'s str, of: Name) {
        self.scopes[0].names.insert(name, of);
    }

    pub(super) fn add_register(&mut self, name: &'s str, number: u32) {
        self.add(name, Name::Register(Reg(number)));
    }

    pub(super) fn add_registers(&mut self, name: &'s str, first: u32, count: u32) {
        self.innermost().families.insert(name, (first, count));
    }

    pub(super) fn get(&self, name: &str) -> Option<Name> {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = name[stem.len()..].parse::<u32>();
        self.scopes.iter().rev().find_map(|scope| {
            if let Some(&of) = scope.names.get(name) {
                return Some(of);
            }
            let &(first, count) = scope.families.get(stem)?;
            let number = *number.as_ref().ok().filter(|&&n| n < count)?;
            Some(Name::Register(Reg(first + number)))
        })
    }

    pub(super) fn add_label(&mut self, name: &'s str, at: usize) {
        self.labels.insert(name, at);
    }

    pub(super) fn label(&self, name: &str) -> Option<usize> {
        self.labels.get(name).copied()
    }

    pub(super) fn forget_labels(&mut self) {
        self.labels.clear();
    }
}
