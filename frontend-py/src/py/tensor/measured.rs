//! Profiling of the kernels of tensor programs.

use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Instant;

use aerogel_base::hash::LookupMap;
use aerogel_runtime::TaskRun;
use aerogel_tensor::Profiler;
use aerogel_tensor::ir::Place;

use super::places::label_of;
use crate::py::profile::launched;

/// Notes kernels by the region and the line that they belong to.
pub(super) struct Measured;

impl Profiler for Measured {
    fn ran(&self, place: Option<Place>, begin: Instant, tasks: &[TaskRun]) {
        static NAMES: LazyLock<Mutex<LookupMap<Place, String>>> = LazyLock::new(Mutex::default);
        let names = || NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        let place = place.unwrap_or_default();
        let known = names().get(&place).cloned();
        let name = known.unwrap_or_else(|| {
            let name = label_of(place);
            names().insert(place, name.clone());
            name
        });
        launched(&name, begin, None, tasks);
    }
}
