//! Arrays of the launches on a tape that share memory, but not the gradient: if one kernel writes through one array
//! and another reads through the other, the gradient would be lost.

use std::collections::BTreeMap;
use std::ops::Range;

use pyo3::PyResult;

use super::argument::Packed;
use super::foreign::array::addresses;
use super::foreign::overlap::Footprint;

/// An array as launches have used it.
pub(super) struct View {
    footprint: Footprint,
    /// Where its gradient lies.
    gradient: Option<usize>,
    written: bool,
    pub(super) name: String,
    pub(super) kernel: String,
}

impl View {
    /// An array of a launch; nothing if the argument is none.
    pub(super) fn new(packed: &Packed, written: bool, kernel: &str) -> PyResult<Option<Self>> {
        let Packed::Array {
            name, derivatives, ..
        } = packed
        else {
            return Ok(None);
        };
        let gradient = match derivatives.first() {
            Some(gradient) => Some(footprint(gradient)?.range().start),
            None => None,
        };
        Ok(Some(Self {
            footprint: footprint(packed)?,
            gradient,
            written,
            name: name.to_string(),
            kernel: kernel.to_owned(),
        }))
    }

    pub(super) fn has_gradient(&self) -> bool {
        self.gradient.is_some()
    }

    /// The addresses from its first byte to the last.
    pub(super) fn range(&self) -> Range<usize> {
        self.footprint.range()
    }

    fn is_same(&self, other: &Self) -> bool {
        self.footprint == other.footprint && self.gradient == other.gradient
    }

    /// Whether a gradient would be lost between the two.
    fn loses(&self, other: &Self) -> bool {
        self.gradient.is_some()
            && other.gradient.is_some()
            && (self.written || other.written)
            && self.footprint.meets(&other.footprint)
    }
}

fn footprint(packed: &Packed) -> PyResult<Footprint> {
    let Packed::Array { array, copied, .. } = packed else {
        unreachable!("derivatives of arrays are arrays")
    };
    Ok(match copied {
        Some(copied) => copied.array.footprint(),
        None => Footprint::whole(addresses(array.buffer()?)),
    })
}

/// The arrays of all launches so far, by the address where they begin.
#[derive(Default)]
pub(super) struct Views {
    seen: BTreeMap<usize, Vec<View>>,
    /// The bytes from the first to the last of the longest one.
    longest: usize,
}

impl Views {
    /// Adds an array of a launch, unless it is known.
    ///
    /// # Errors
    /// One that shares its memory with another, of which the gradient would be lost.
    pub(super) fn add(&mut self, view: View) -> Result<(), (View, &View)> {
        let range = view.footprint.range();
        let near = range.start.saturating_sub(self.longest)..range.end;
        let known = self.seen.range(near).flat_map(|(_, all)| all);
        let mut others = known.filter(|other| !other.is_same(&view));
        if others.any(|other| other.loses(&view)) {
            let mut all = self.seen.values().flatten();
            let other = all.find(|other| !other.is_same(&view) && other.loses(&view));
            return Err((view, other.expect("it has been found")));
        }
        self.longest = self.longest.max(range.len());
        let here = self.seen.entry(range.start).or_default();
        match here.iter_mut().find(|other| other.is_same(&view)) {
            Some(known) => known.written |= view.written,
            None => here.push(view),
        }
        Ok(())
    }
}
