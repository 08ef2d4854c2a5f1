//! Dropping statements that no tensor refers to, so that a session does not grow with the program's run time.
//!
//! The statements of live, unevaluated tensors are copied into a new recording, in which their buffers have other
//! numbers. Slots stay.

use aerogel_base::hash::LookupMap;

use super::policy::SLACK;
use super::{Backend, Session, Slot};
use crate::ir::{Buffer, Place, slice};

impl Session {
    /// Drops unreferenced buffers.
    pub fn tidy(&mut self) {
        self.track();
        self.makers.update(&self.recording.program);
        let _ = self.watch();
        let held: Vec<(Slot, Buffer)> = self.all_held().collect();
        // What belongs to no back end is made again where it is needed.
        let is_there = |b: Buffer| match self.backends.of[b] {
            Backend::ANY => self.values[b].is_some() && !self.tracked[b],
            _ => self.is_there(b) && !self.tracked[b],
        };
        let pending: Vec<Buffer> = held.iter().map(|h| h.1).filter(|&b| !is_there(b)).collect();
        let program = &self.recording.program;
        let sliced = slice(program, &self.makers, is_there, &pending, true);
        let mut next = Self {
            plans: std::mem::take(&mut self.plans),
            backends: self.backends.next(sliced.program.body.len()),
            waiting: std::mem::take(&mut self.waiting),
            n_ones: self.n_ones,
            n_leaves: self.n_leaves,
            n_tidied: self.n_tidied + 1,
            is_off: self.is_off,
            free: std::mem::take(&mut self.free),
            slots: vec![None; self.slots.len()],
            ..Self::default()
        };
        let mut moved: LookupMap<Buffer, Buffer> = LookupMap::default();
        let mut inputs = sliced.inputs.iter();
        next.recording.program = sliced.program;
        next.recording.program.results.clear();
        for new in next.recording.program.inputs().collect::<Vec<_>>() {
            let &old = inputs.next().expect("an input for each");
            next.values[new] = self.values[old].take();
            next.recording.lines.set(new, self.place(old));
            next.follow(new, self, old);
            moved.insert(old, new);
        }
        for &(old, new) in &sliced.made {
            next.recording.lines.set(new, self.place(old));
            next.ones[new] = self.ones[old];
            next.values[new] = self.values[old].take();
            next.follow(new, self, old);
            moved.insert(old, new);
        }
        next.n_tracked = next.recording.program.body.len();
        // Before live buffers that nothing reads are added: those may be changed in place.
        next.recording
            .take_known(&mut self.recording, &sliced.exprs, &moved, &sliced.sites);
        for (slot, old) in held {
            let new = match moved.get(&old) {
                Some(&new) => new,
                None => {
                    let (ty, shape) = self.described(old);
                    let new = next.input_of(ty, &shape);
                    next.values[new] = self.values[old].take();
                    next.recording.lines.set(new, self.place(old));
                    next.follow(new, self, old);
                    moved.insert(old, new);
                    new
                }
            };
            next.stores[new] = self.stores[old];
            next.exposed[new] = self.exposed[old];
            next.handed_out[new] = self.handed_out[old];
            next.slots[slot as usize] = Some(new);
            next.holds[new] += 1;
        }
        next.note(Place::NONE);
        next.limit = 2 * next.recording.program.buffers.len() + SLACK;
        *self = next;
    }

    /// Takes over what is known of a buffer for gradients.
    fn follow(&mut self, new: Buffer, from: &Self, old: Buffer) {
        self.roots[new] = from.roots[old];
        self.n_roots += usize::from(from.roots[old]);
        self.leaves[new] = from.leaves[old];
        self.tracked[new] = from.tracked[old];
        self.backends.follow(new, &from.backends, old);
    }
}
