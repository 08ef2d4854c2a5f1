//! Arrays whose elements do not lie in row-major order without gaps, of which kernels get copies that do.

use std::sync::Arc;

use aerogel_runtime::Buffer;
use pyo3::prelude::*;

use super::array::ForeignArray;
use crate::py::error;

/// An array of the user's and its copy.
pub(crate) struct Copied {
    pub(crate) array: ForeignArray,
    copy: Arc<Buffer>,
}

impl Copied {
    /// Copies an array.
    pub(crate) fn new(array: ForeignArray) -> PyResult<(Arc<Buffer>, Self)> {
        let copy = Arc::new(array.copied()?);
        Ok((copy.clone(), Self { array, copy }))
    }

    /// Whether several of the array's elements may lie at one place, which a copy has apart.
    pub(crate) fn may_repeat(&self) -> bool {
        self.array.may_repeat()
    }

    pub(crate) fn copy_back(&self) -> PyResult<()> {
        self.array.copy_back(&self.copy).map_err(error::memory)
    }
}
