//! What is said of one of many tensors, and made for all.

use aerogel_tensor::Buffer;
use aerogel_tensor::record::Mapped;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::{Home, NativeTensor, NativeTrace, SESSION, lock, note, raised};

/// What stands for one, all, the axis along which they lie, and what all are called.
type Pair<'py> = (
    Bound<'py, NativeTensor>,
    Bound<'py, NativeTensor>,
    usize,
    String,
);

/// What is made for all, and the axis along which they lie; nothing if it is the same for all.
type ForAll = Option<(NativeTensor, usize)>;

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
        Home::Program(recording, buffer) => {
            let (one, axis) = lock(recording).one_of(*buffer, axis).map_err(raised)?;
            (Home::Program(recording.clone(), one), axis)
        }
    };
    Ok((NativeTensor { home }, axis))
}

/// What is made of tensors that stand for one of many, for all. In a program, the block that was begun for them ends, before
/// which there were so many buffers.
#[pyfunction]
#[pyo3(signature = (mapped, results, block = None))]
pub(crate) fn vmap_tensors(
    mapped: Vec<Pair<'_>>,
    results: Vec<Bound<'_, NativeTensor>>,
    block: Option<(Bound<'_, NativeTrace>, usize)>,
) -> PyResult<Vec<ForAll>> {
    if let Some((trace, n_before)) = block {
        return trace.get().end_vmap(n_before, &mapped, &results);
    }
    let slot = |t: &Bound<'_, NativeTensor>| match t.get().home {
        Home::Lazy(slot) => Ok(slot),
        Home::Program(..) => Err(PyValueError::new_err(
            "a tensor of a program is no part of what is done outside of it",
        )),
    };
    let mut pairs = Vec::new();
    for (one, all, axis, _) in &mapped {
        pairs.push((slot(one)?, slot(all)?, *axis));
    }
    let results = results.iter().map(slot).collect::<PyResult<Vec<_>>>()?;
    let made = lock(&SESSION).vmap(&pairs, &names(&mapped), &results);
    note();
    let made = made.map_err(raised)?.into_iter();
    Ok(made
        .map(|place| {
            place.map(|(slot, axis)| {
                let home = Home::Lazy(slot);
                (NativeTensor { home }, axis)
            })
        })
        .collect())
}

fn names(mapped: &[Pair<'_>]) -> Vec<String> {
    mapped.iter().map(|m| m.3.clone()).collect()
}

impl NativeTrace {
    fn end_vmap(
        &self,
        n_before: usize,
        mapped: &[Pair<'_>],
        results: &[Bound<'_, NativeTensor>],
    ) -> PyResult<Vec<ForAll>> {
        let body = self.end(false)?;
        let mut pairs = Vec::new();
        for (one, all, axis, _) in mapped {
            pairs.push(Mapped {
                one: self.buffer(one.get())?,
                all: self.buffer(all.get())?,
                axis: *axis,
            });
        }
        let results = results.iter().map(|t| self.buffer(t.get()));
        let results = results.collect::<PyResult<Vec<Buffer>>>()?;
        let mut r = lock(self.recording());
        let is_own = |b: Buffer| b.as_u32() as usize >= n_before;
        let made = r
            .how_many(&pairs, &names(mapped))
            .and_then(|n| r.vmap(&body, &pairs, n, &results, &is_own));
        drop(r);
        let made = made.map_err(raised)?.into_iter();
        Ok(made
            .map(|place| place.map(|(buffer, axis)| (self.tensor(buffer), axis)))
            .collect())
    }
}
