//! The instances of a kernel: one for each specialisation, compiled by one thread while others wait for it.

use std::cell::Cell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aerogel_base::hash::LookupMap;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use super::argument::{Key, KeyPart};
use super::prepare::Instance;
use super::program;

#[derive(Default)]
struct State {
    generation: u64,
    instances: LookupMap<Vec<KeyPart>, Arc<Instance>>,
    last: Option<Arc<Instance>>,
    /// The keys of instances that threads are compiling now.
    compiling: Vec<Vec<KeyPart>>,
}

impl State {
    fn is_compiling(&self, key: &[KeyPart]) -> bool {
        self.compiling.iter().any(|other| other[..] == *key)
    }
}

thread_local! {
    /// How many compilations this thread is in: the compiler runs Python, which may call a kernel.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// A compilation under way; the others who want the same wait until it is dropped.
struct Compiling<'k> {
    of: &'k Instances,
    key: &'k [KeyPart],
}

impl Drop for Compiling<'_> {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        let mut state = self.of.state();
        state.compiling.retain(|key| key[..] != *self.key);
        drop(state);
        self.of.compiled.notify_all();
    }
}

/// The instances of a kernel.
#[derive(Default)]
pub(super) struct Instances {
    state: Mutex<State>,
    /// Told when a compilation ends.
    compiled: Condvar,
}

impl Instances {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The one that was compiled last, of those that are no derivative.
    pub(super) fn last(&self) -> Option<Arc<Instance>> {
        self.state().last.clone()
    }

    /// What they hold of Python's.
    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Ok(mut state) = self.state.try_lock() else {
            return Ok(());
        };
        let State {
            instances, last, ..
        } = &mut *state;
        let mut outcome = Ok(());
        // In no order, since the collector has none.
        instances.retain(|_, instance| {
            let is_last = last
                .as_ref()
                .is_some_and(|last| Arc::ptr_eq(last, instance));
            // What a launch holds too must stay.
            if outcome.is_ok() && Arc::strong_count(instance) == 1 + usize::from(is_last) {
                outcome = instance.visit(visit);
            }
            true
        });
        outcome
    }

    /// The instance for a key, compiled if there is none; by one thread, while others wait for it.
    pub(super) fn get(
        &self,
        py: Python<'_>,
        key: Key,
        compile: &dyn Fn(&Key) -> PyResult<Instance>,
    ) -> PyResult<Arc<Instance>> {
        let generation = program::generation();
        let compiling = loop {
            // What is replaced is dropped without the lock: Python may run code when objects go.
            let mut old = None;
            let mut state = self.state();
            if let Some(instance) = state.instances.get(&key[..])
                && state.generation == generation
                && instance.is_current(py)
            {
                return Ok(instance.clone());
            }
            if state.generation != generation {
                let fresh = State {
                    generation,
                    ..State::default()
                };
                old = Some(std::mem::replace(&mut *state, fresh));
            }
            // A thread that compiles does not wait: two could wait for each other.
            if DEPTH.get() > 0 || !state.is_compiling(&key) {
                state.compiling.push(key.to_vec());
                DEPTH.set(DEPTH.get() + 1);
                drop(state);
                drop(old);
                break Compiling {
                    of: self,
                    key: &key,
                };
            }
            drop(state);
            drop(old);
            py.detach(|| self.wait_for(&key));
            py.check_signals()?;
        };
        let instance = Arc::new(compile(&key)?);
        let mut gone = Vec::new();
        let mut state = self.state();
        if state.generation == generation {
            state.instances.retain(|_, other| {
                let keep = other.is_current(py);
                if !keep {
                    gone.push(other.clone());
                }
                keep
            });
            state.instances.insert(key.to_vec(), instance.clone());
            if instance.derivative.is_none() {
                state.last = Some(instance.clone());
            }
        }
        drop(state);
        drop(compiling);
        Ok(instance)
    }

    /// Waits until the compilation of a key ends, for a while.
    fn wait_for(&self, key: &[KeyPart]) {
        let state = self.state();
        if state.is_compiling(key) {
            // Long enough to cost nothing, short enough for Ctrl-C.
            let _ = self.compiled.wait_timeout(state, Duration::from_millis(50));
        }
    }
}
