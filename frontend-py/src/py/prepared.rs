//! A prepared launch, and the memory of the fields and arrays that it reads and writes.

use std::collections::BTreeSet;
use std::sync::Arc;

use aerogel_ir::analysis::boxes::{Access, AccessKind, Storage};
use aerogel_ir::{Arg, FieldId};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::activity::{Activity, NativeAsked};
use super::argument::Packed;
use super::error;
use super::kernel::NativeKernel;
use super::prepare::{Instance, TreeRef};
use super::snapshot::{Boxed, IndexBox, Memory};
use super::snode::TreeStore;
use super::summary::{At, Given, Passed, Placed};
use crate::derived::Derived;

/// A launch to come: its instance and its arguments.
pub(super) struct Prepared {
    pub(super) instance: Arc<Instance>,
    pub(super) packed: Vec<Packed>,
    pub(super) stores: Vec<Option<Arc<TreeStore>>>,
}

impl Prepared {
    pub(super) fn new(
        py: Python<'_>,
        kernel: &NativeKernel,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
        derivative: Option<Derived>,
    ) -> PyResult<Self> {
        let (instance, mut packed) = kernel.prepared(py, args, kwargs, derivative)?;
        instance.expect_told_apart(py, packed.iter())?;
        let tensors = packed.iter().filter_map(Packed::tensor).enumerate();
        for (k, _) in tensors.filter(|(_, tensor)| tensor.is_some()) {
            if derivative.is_some() && instance.primal_writes.get(k) != Some(&false) {
                let what = format!(
                    "kernel `{}` writes to a ti.tensor, which has no gradient: under a tape pass a ti.ndarray, or make the \
                     launch constant by @ti.ad.no_grad",
                    kernel.signature.name
                );
                return Err(error::runtime(py, what));
            }
        }
        packed.extend(kernel.captured_arrays(py, &instance)?);
        let stores = instance.trees.iter().map(TreeRef::store).collect();
        Ok(Self {
            instance,
            packed,
            stores,
        })
    }

    /// The name of a field or an array, and where its numbers lie.
    pub(super) fn memories_of(&self, storage: Storage) -> PyResult<(String, Vec<Memory>)> {
        let field = match storage {
            Storage::Field(field) => &self.instance.summary.fields[field.as_u32() as usize],
            Storage::Array(arg) => {
                return Ok(match self.given().array(arg) {
                    Some(passed) => (passed.name.to_owned(), vec![passed.memory()?]),
                    None => (String::new(), Vec::new()),
                });
            }
        };
        let store = self.stores[field.tree].as_ref();
        let places = field.places.iter();
        let memories = store.map_or(Vec::new(), |store| {
            places.map(|&p| Memory::Place(store.key, p)).collect()
        });
        Ok((field.name.clone(), memories))
    }

    /// The memory of the arrays that are passed for some parameters.
    pub(super) fn memories_for(&self, names: &[String]) -> PyResult<BTreeSet<Memory>> {
        let given = self.given();
        let args = (0..self.instance.summary.params.len() as u32).map(Arg::from_u32);
        let arrays = args.filter_map(|arg| given.array(arg));
        let named = arrays.filter(|passed| names.iter().any(|name| name == passed.name));
        named.map(|passed| passed.memory()).collect()
    }

    fn given(&self) -> Given<'_> {
        let derivatives = self.packed.iter().flat_map(Packed::derivatives);
        Given::new(
            &self.instance.summary.params,
            self.packed.iter().chain(derivatives),
        )
    }

    /// The boxes that it reads, or those that it writes.
    pub(super) fn placed(&self, kind: AccessKind) -> PyResult<Vec<Placed>> {
        let (summary, given) = (&self.instance.summary, self.given());
        let accesses = summary.accesses.iter().filter(|access| access.kind == kind);
        let placed = accesses.map(|access| summary.place(access, &given, &self.stores));
        placed.filter_map(Result::transpose).collect()
    }

    /// The fields and arrays that it reads, or those that it writes, as boxes of all their indices.
    pub(super) fn placed_whole(&self, kind: AccessKind) -> PyResult<Vec<Placed>> {
        let (summary, given) = (&self.instance.summary, self.given());
        let accesses = summary.accesses.iter().filter(|access| access.kind == kind);
        let whole = accesses.map(|access| Access {
            indices: Vec::new(),
            ..access.clone()
        });
        let placed = whole.map(|access| summary.place(&access, &given, &self.stores));
        placed.filter_map(Result::transpose).collect()
    }

    /// The memory that it overwrites as a whole before it reads any of it.
    pub(super) fn cleared(&self) -> PyResult<Vec<Memory>> {
        let (summary, given) = (&self.instance.summary, self.given());
        let of = |&storage: &Storage| {
            let mut accesses = summary.accesses.iter();
            accesses.find(|access| access.storage == storage)
        };
        let mut all = Vec::new();
        for access in summary.cleared.iter().filter_map(of) {
            let placed = summary.place(access, &given, &self.stores)?;
            all.extend(placed.map_or(Vec::new(), |placed| placed.memories));
        }
        Ok(all)
    }

    /// Which activity it queries; nothing if none.
    pub(super) fn asked(
        &self,
        py: Python<'_>,
        kernel: &Bound<'_, NativeKernel>,
        activity: &Activity,
    ) -> PyResult<Option<NativeAsked>> {
        let asked = &self.instance.summary.asked;
        activity.before_launch(py, &kernel.get().signature.name, asked, &self.stores)
    }

    /// Whether it may make cells inactive.
    pub(super) fn deactivates(&self) -> bool {
        !self.instance.summary.deactivated.is_empty()
    }

    /// Whether the gradient reads that of what is written.
    pub(super) fn has_gradient(&self, at: At) -> bool {
        let At::Field(at) = at else {
            return false;
        };
        let summary = &self.instance.summary;
        summary.fields[at].has_gradient && summary.stored.contains(&FieldId::from_u32(at as u32))
    }

    /// A box of it, which can be written again.
    ///
    /// # Errors
    /// It is one of an array of which the kernel gets a copy.
    pub(super) fn boxed(
        &self,
        py: Python<'_>,
        at: At,
        ranges: IndexBox,
    ) -> PyResult<Option<Boxed>> {
        if let At::Array(arg) = at
            && let Some(passed) = self.given().array(arg).filter(Passed::is_copy)
        {
            let name = passed.name;
            let what = format!(
                "the array `{name}` is not C-contiguous, and gradients would have to restore its values: pass a \
                 contiguous array"
            );
            return Err(PyValueError::new_err(what));
        }
        Ok(self.boxed_as_passed(py, at, ranges))
    }

    /// A box of it; of an array of which the kernel gets a copy, one of that.
    pub(super) fn boxed_as_passed(
        &self,
        py: Python<'_>,
        at: At,
        ranges: IndexBox,
    ) -> Option<Boxed> {
        let given = self.given();
        self.instance
            .summary
            .boxed(at, &given, &self.stores, ranges, py)
    }
}
