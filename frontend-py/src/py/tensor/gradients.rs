//! Gradients of tensors: variables, what is detached, and the gradients of results by variables.

use aerogel_tensor::session;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::native::{Home, NativeTensor, NativeTrace, SESSION, lock, native_of};
use super::places;
use super::raised::{note, raised};
use super::recorded::step_of;

/// A result and its seed.
type Seed<'py> = (Bound<'py, NativeTensor>, Bound<'py, NativeTensor>);

/// The gradients by leaves, each with its number, and by other tensors.
type ByLeaves = (Vec<(u32, NativeTensor)>, Vec<Option<NativeTensor>>);

fn outside(home: Home) -> NativeTensor {
    NativeTensor { home }
}

fn slot_of(tensor: &Bound<'_, NativeTensor>) -> PyResult<u32> {
    match tensor.get().home {
        Home::Lazy(slot) => Ok(slot),
        Home::Program(..) => Err(PyValueError::new_err(
            "a tensor of a program has no gradient outside of it: take the gradient in the program, as by `ti.grad`",
        )),
    }
}

fn slots(seeds: &[Seed<'_>]) -> PyResult<Vec<(u32, u32)>> {
    let all = seeds.iter();
    all.map(|(result, seed)| Ok((slot_of(result)?, slot_of(seed)?)))
        .collect()
}

/// A variable with the values of a tensor. A leaf has a number, by which its gradients are found: `again` if its values
/// were replaced. Other variables end.
#[pyfunction]
#[pyo3(signature = (tensor, is_leaf, again = None))]
pub(crate) fn variable_of_tensor(
    tensor: &Bound<'_, NativeTensor>,
    is_leaf: bool,
    again: Option<u32>,
) -> PyResult<(NativeTensor, Option<u32>)> {
    match &tensor.get().home {
        Home::Lazy(slot) => {
            let made = lock(&SESSION).variable(*slot, is_leaf, again);
            let (slot, leaf) = made.map_err(raised)?;
            note();
            Ok((outside(Home::Lazy(slot)), leaf))
        }
        Home::Program(trace, value) => {
            let value = *value;
            let made = step_of(trace, move |s| s.variable(value)).map_err(raised)?;
            Ok((outside(Home::Program(trace.clone(), made)), None))
        }
    }
}

/// Ends variables that are no leaves.
#[pyfunction]
pub(crate) fn end_variables(tensors: Vec<Bound<'_, NativeTensor>>) {
    let mut session = lock(&SESSION);
    for tensor in &tensors {
        if let Home::Lazy(slot) = tensor.get().home {
            session.end_variable(slot);
        }
    }
}

/// A tensor with the same numbers on which no gradient depends.
#[pyfunction]
pub(crate) fn detached_tensor(tensor: &Bound<'_, NativeTensor>) -> PyResult<NativeTensor> {
    match &tensor.get().home {
        Home::Lazy(slot) => {
            let made = lock(&SESSION).detached(*slot).map_err(raised)?;
            note();
            Ok(outside(Home::Lazy(made)))
        }
        Home::Program(trace, value) => {
            let value = *value;
            let made = step_of(trace, move |s| s.detached(value)).map_err(raised)?;
            Ok(outside(Home::Program(trace.clone(), made)))
        }
    }
}

/// Whether a gradient may depend on a tensor.
#[pyfunction]
pub(crate) fn has_history(tensor: &Bound<'_, NativeTensor>) -> bool {
    match tensor.get().home {
        Home::Lazy(slot) => lock(&SESSION).has_history(slot),
        Home::Program(..) => false,
    }
}

/// Whether gradients do not depend on what is made from now on; gives what it was before.
#[pyfunction]
pub(crate) fn set_gradients_off(is_off: bool) -> bool {
    session::set_gradients_off(is_off)
}

/// Whether gradients do not depend on what is made now.
#[pyfunction]
pub(crate) fn are_gradients_off() -> bool {
    session::are_gradients_off()
}

/// The gradients of results, each times its seed, by variables; None for those on which no result depends.
#[pyfunction]
#[pyo3(signature = (seeds, variables, trace = None))]
pub(crate) fn tensor_gradients(
    seeds: Vec<Seed<'_>>,
    variables: Vec<Bound<'_, NativeTensor>>,
    trace: Option<Bound<'_, NativeTrace>>,
) -> PyResult<Vec<Option<NativeTensor>>> {
    if let Some(trace) = trace {
        return trace.get().gradients(&seeds, &variables);
    }
    let seeds = slots(&seeds)?;
    let variables = variables
        .iter()
        .map(slot_of)
        .collect::<PyResult<Vec<_>>>()?;
    let made = lock(&SESSION).gradients(&seeds, &variables);
    note();
    let made = made.map_err(raised)?.into_iter();
    Ok(made
        .map(|slot| slot.map(|slot| outside(Home::Lazy(slot))))
        .collect())
}

/// Whether results of a program depend on variables in another way than through some tensors.
#[pyfunction]
pub(crate) fn depends_beyond(
    results: Vec<Bound<'_, NativeTensor>>,
    tensors: Vec<Bound<'_, NativeTensor>>,
    variables: Vec<Bound<'_, NativeTensor>>,
    trace: &Bound<'_, NativeTrace>,
) -> PyResult<bool> {
    let trace = trace.get();
    let (results, tensors) = (trace.values(&results)?, trace.values(&tensors)?);
    let variables = trace.values(&variables)?;
    trace.step(move |s| s.depends_beyond(&results, &tensors, &variables))
}

/// The variables that results depend on otherwise than through some tensors, with the numbers of those that are leaves.
#[pyfunction]
pub(crate) fn roots_behind(
    results: Vec<Bound<'_, NativeTensor>>,
    tensors: Vec<Bound<'_, NativeTensor>>,
) -> PyResult<Vec<(Option<u32>, NativeTensor)>> {
    let slots = |all: &[Bound<'_, NativeTensor>]| {
        let all = all.iter();
        all.map(slot_of).collect::<PyResult<Vec<_>>>()
    };
    let (results, tensors) = (slots(&results)?, slots(&tensors)?);
    let found = lock(&SESSION).roots_behind(&results, &tensors);
    let found = found.into_iter();
    Ok(found
        .map(|(leaf, slot)| (leaf, outside(Home::Lazy(slot))))
        .collect())
}

/// The tensors of floats that a tensor is made of, in the order in which they are computed, each with the lines of the
/// user's program that made it.
#[pyfunction]
pub(crate) fn tensor_made_of(
    py: Python<'_>,
    tensor: &Bound<'_, NativeTensor>,
) -> PyResult<Vec<(NativeTensor, String)>> {
    let found = lock(&SESSION).computed_from(slot_of(tensor)?);
    let found = found.into_iter();
    Ok(found
        .map(|(slot, place)| {
            let mut text = String::new();
            places::show(py, &mut text, place);
            (outside(Home::Lazy(slot)), text)
        })
        .collect())
}

/// Ends variables that are leaves, by their numbers.
#[pyfunction]
pub(crate) fn end_leaves(numbers: Vec<u32>) {
    lock(&SESSION).end_leaves(&numbers);
}

/// The numbers of the leaves that a live tensor may depend on.
#[pyfunction]
pub(crate) fn leaves_in_use() -> Vec<u32> {
    lock(&SESSION).leaves_in_use()
}

/// How often the session has dropped unreferenced buffers.
#[pyfunction]
pub(crate) fn n_tidied() -> u64 {
    lock(&SESSION).n_tidied()
}

/// Lets the session drop unreferenced buffers.
#[pyfunction]
pub(crate) fn tidy_tensors() {
    lock(&SESSION).tidy();
}

/// The gradients by all leaves on which results depend, each with its leaf's number, and by other tensors; by no other
/// leaves than those `among`, if that is given.
#[pyfunction]
#[pyo3(signature = (seeds, others, among = None))]
pub(crate) fn leaf_gradients(
    seeds: Vec<Seed<'_>>,
    others: Vec<Bound<'_, NativeTensor>>,
    among: Option<Vec<u32>>,
) -> PyResult<ByLeaves> {
    let seeds = slots(&seeds)?;
    let others = others.iter().map(slot_of).collect::<PyResult<Vec<_>>>()?;
    let made = lock(&SESSION).gradients_by_leaves(&seeds, &others, among.as_deref());
    note();
    let (by_leaf, by_other) = made.map_err(raised)?;
    let by_leaf = by_leaf.into_iter();
    let by_other = by_other.into_iter();
    Ok((
        by_leaf
            .map(|(leaf, slot)| (leaf, outside(Home::Lazy(slot))))
            .collect(),
        by_other
            .map(|slot| slot.map(|slot| outside(Home::Lazy(slot))))
            .collect(),
    ))
}

/// Whether gradients are taken through an argument of a call.
pub(crate) fn has_history_in(
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> bool {
    let named = kwargs.map(|kwargs| kwargs.values());
    let mut all = args.iter().chain(named.iter().flatten());
    let has = |value: &Bound<'_, PyAny>| match native_of(value) {
        Ok(Some(tensor)) => {
            matches!(tensor.get().home, Home::Lazy(slot) if lock(&SESSION).has_history(slot))
        }
        _ => false,
    };
    !session::are_gradients_off() && all.any(|value| has(&value))
}

impl NativeTensor {
    /// Refuses a tensor through which gradients are taken, where they would be lost.
    ///
    /// # Errors
    /// If a gradient may depend on it.
    pub(crate) fn expect_no_history(&self, who: &str, instead: &str) -> PyResult<()> {
        let Home::Lazy(slot) = self.home else {
            return Ok(());
        };
        if session::are_gradients_off() || !lock(&SESSION).has_history(slot) {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "{who} takes a tensor that requires a gradient, and has no rule for gradients: {instead}pass \
             `x.detach()` if the gradient does not matter, or call it in `with ti.no_grad():`"
        )))
    }
}

impl NativeTrace {
    fn gradients(
        &self,
        seeds: &[Seed<'_>],
        variables: &[Bound<'_, NativeTensor>],
    ) -> PyResult<Vec<Option<NativeTensor>>> {
        let mut pairs = Vec::new();
        for (result, seed) in seeds {
            pairs.push((self.value(result.get())?, self.value(seed.get())?));
        }
        let variables = self.values(variables)?;
        let made = self.step(move |s| s.gradients(&pairs, &variables))?;
        let made = made.into_iter();
        Ok(made.map(|value| Some(self.tensor(value))).collect())
    }
}
