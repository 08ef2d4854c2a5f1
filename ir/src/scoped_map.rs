//! A map whose entries end with the scope in which they were made.

use std::hash::Hash;

use aerogel_base::hash::LookupMap;

/// A map with nested scopes; an inner entry hides an outer one.
#[derive(Clone, Debug)]
pub struct ScopedMap<K, V> {
    map: LookupMap<K, V>,
    /// Entries to restore when the scope ends, innermost last; `None` marks the beginning of a scope.
    undo: Vec<Option<(K, Option<V>)>>,
}

impl<K: Eq + Hash + Clone, V: Clone> Default for ScopedMap<K, V> {
    fn default() -> Self {
        Self {
            map: LookupMap::default(),
            undo: Vec::new(),
        }
    }
}

impl<K: Eq + Hash + Clone, V: Clone> ScopedMap<K, V> {
    /// Begins a scope.
    pub fn enter(&mut self) {
        self.undo.push(None);
    }

    /// Ends the innermost scope.
    pub fn leave(&mut self) {
        while let Some(Some((key, old))) = self.undo.pop() {
            match old {
                Some(value) => self.map.insert(key, value),
                None => self.map.remove(&key),
            };
        }
    }

    /// The innermost entry for `key`.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.map.get(key)
    }

    /// Makes an entry in the innermost scope.
    pub fn insert(&mut self, key: K, value: V) {
        let old = self.map.insert(key.clone(), value);
        self.undo.push(Some((key, old)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_hide_and_restore() {
        let mut map = ScopedMap::default();
        map.insert("x", 1);
        map.enter();
        map.insert("x", 2);
        map.insert("y", 3);
        assert_eq!((map.get(&"x"), map.get(&"y")), (Some(&2), Some(&3)));
        map.leave();
        assert_eq!((map.get(&"x"), map.get(&"y")), (Some(&1), None));
    }
}
