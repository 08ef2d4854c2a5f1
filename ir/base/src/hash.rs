//! Hash tables with look-up but without iteration, so that no output depends on hash order.

#![expect(clippy::disallowed_types, reason = "the one place that wraps them")]

use std::borrow::Borrow;
use std::hash::Hash;

/// The hasher, also for tables in insertion order.
pub type FastHash = hashbrown::DefaultHashBuilder;

/// A map for pure look-ups.
#[derive(Clone, Debug)]
pub struct LookupMap<K, V>(hashbrown::HashMap<K, V>);

impl<K, V> Default for LookupMap<K, V> {
    fn default() -> Self {
        Self(hashbrown::HashMap::default())
    }
}

impl<K: Eq + Hash, V> LookupMap<K, V> {
    /// One with room for so many entries.
    pub fn with_capacity(n: usize) -> Self {
        Self(hashbrown::HashMap::with_capacity(n))
    }

    /// The value stored for `key`.
    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.0.get(key)
    }

    /// The value stored for `key`, to be changed.
    pub fn get_mut<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.0.get_mut(key)
    }

    /// Stores `value` and returns what it replaces.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.0.insert(key, value)
    }

    /// Removes and returns the value stored for `key`.
    pub fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.0.remove(key)
    }

    /// Whether something is stored for `key`.
    pub fn contains_key<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.contains_key(key)
    }

    /// Keeps the entries for which `keep` holds; the order of the calls is unspecified.
    pub fn retain(&mut self, keep: impl FnMut(&K, &mut V) -> bool) {
        self.0.retain(keep);
    }

    /// Gives every entry away; the order of the calls is unspecified.
    pub fn consume(self, mut f: impl FnMut(K, V)) {
        self.0.into_iter().for_each(|(key, value)| f(key, value));
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A set for pure look-ups.
#[derive(Clone, Debug)]
pub struct LookupSet<K>(hashbrown::HashSet<K>);

impl<K> Default for LookupSet<K> {
    fn default() -> Self {
        Self(hashbrown::HashSet::default())
    }
}

impl<K: Eq + Hash> LookupSet<K> {
    /// Adds `key`; false if it was there already.
    pub fn insert(&mut self, key: K) -> bool {
        self.0.insert(key)
    }

    /// Whether `key` is in the set.
    pub fn contains<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.contains(key)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
