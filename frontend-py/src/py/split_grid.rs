//! The part of a grid that a process has, as Python describes it.

use aerogel_compiler::{SplitAxis, SplitGrid};

/// An axis as Python says it: size, first cell, end, width of the halo, and whether it is periodic.
pub(crate) type AxisArgs = (i64, i64, i64, i64, bool);

/// A grid as Python says it.
pub(crate) fn grid(axes: Vec<AxisArgs>, is_trusted: bool, is_sparse: bool) -> SplitGrid {
    let axis = |(size, lo, hi, width, is_periodic)| SplitAxis {
        size,
        lo,
        hi,
        width,
        is_periodic,
    };
    SplitGrid {
        axes: axes.into_iter().map(axis).collect(),
        is_trusted,
        is_sparse,
    }
}
