//! `vmap`: statements of symbolic tensors, vectorised over the batch.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::native::{Home, NativeTensor, NativeTrace, SESSION, lock};
use super::raised::{note, raised};
use super::recorded::step_of;

/// The symbolic tensor, the batched one, its batch axis, and its name.
type Pair<'py> = (
    Bound<'py, NativeTensor>,
    Bound<'py, NativeTensor>,
    usize,
    String,
);

/// A batched result, and its batch axis if it varies over the batch.
type ForAll = (NativeTensor, Option<usize>);

/// A tensor that stands for one of those along an axis, and the axis counted from the front.
#[pyfunction]
pub(crate) fn one_of_tensor(
    tensor: &Bound<'_, NativeTensor>,
    axis: i64,
) -> PyResult<(NativeTensor, usize)> {
    let (home, axis) = match &tensor.get().home {
        Home::Lazy(slot) => {
            let (one, axis) = lock(&SESSION).one_of(*slot, axis).map_err(raised)?;
            note();
            (Home::Lazy(one), axis)
        }
        Home::Program(trace, all) => {
            let all = *all;
            let (one, axis) = step_of(trace, move |s| s.one_of(all, axis)).map_err(raised)?;
            (Home::Program(trace.clone(), one), axis)
        }
    };
    Ok((NativeTensor { home }, axis))
}

/// The batched results of symbolic tensors. In a program, this ends the block that was begun for them.
#[pyfunction]
#[pyo3(signature = (mapped, results, trace = None))]
pub(crate) fn vmap_tensors(
    mapped: Vec<Pair<'_>>,
    results: Vec<Bound<'_, NativeTensor>>,
    trace: Option<Bound<'_, NativeTrace>>,
) -> PyResult<Vec<ForAll>> {
    if let Some(trace) = trace {
        return trace.get().end_vmap(&mapped, &results);
    }
    let slot = |t: &Bound<'_, NativeTensor>| match t.get().home {
        Home::Lazy(slot) => Ok(slot),
        Home::Program(..) => Err(PyValueError::new_err(
            "a tensor of a program cannot be used outside of it",
        )),
    };
    let mut pairs = Vec::new();
    for (one, all, axis, _) in &mapped {
        pairs.push((slot(one)?, slot(all)?, *axis));
    }
    let results = results.iter().map(slot).collect::<PyResult<Vec<_>>>()?;
    let made = lock(&SESSION).vmap(&pairs, &names(&mapped), &results);
    note();
    let made = made.map_err(raised)?.into_iter().zip(results);
    Ok(made
        .map(|(place, same)| match place {
            Some((slot, axis)) => (Home::Lazy(slot), Some(axis)),
            None => {
                let mut session = lock(&SESSION);
                let buffer = session.buffer(same);
                (Home::Lazy(session.hold(buffer)), None)
            }
        })
        .map(|(home, axis)| (NativeTensor { home }, axis))
        .collect())
}

fn names(mapped: &[Pair<'_>]) -> Vec<String> {
    mapped.iter().map(|m| m.3.clone()).collect()
}

impl NativeTrace {
    fn end_vmap(
        &self,
        mapped: &[Pair<'_>],
        results: &[Bound<'_, NativeTensor>],
    ) -> PyResult<Vec<ForAll>> {
        let mut pairs = Vec::new();
        for (one, all, axis, _) in mapped {
            pairs.push((self.value(one.get())?, self.value(all.get())?, *axis));
        }
        let (names, results) = (names(mapped), self.values(results)?);
        let made = self.step(move |s| s.end_vmap(&pairs, &names, &results))?;
        let made = made.into_iter();
        Ok(made
            .map(|(value, axis)| (self.tensor(value), axis))
            .collect())
    }
}
