//! Keys, as in `x[key]` and `x[key] = v`: which elements one names, and in which shape.
//!
//! ```text
//! x[1:3, None, i] of x[5, 7] and i[4]    [2, 1, 4]: a part of the first axis, a new axis, computed indices
//! ```
//!
//! An [`Item`] is the entry of a key for one axis; a [`Part`] is that entry for an axis of a certain size.

use crate::ir::{Accum, Buffer, Dim, Expr};

use super::{Mode, RecordError, Recorded, Recording};

/// Where a slice begins or ends: a number, or an expression of sizes.
#[derive(Clone, Copy, Debug)]
pub enum Bound<T = Buffer> {
    /// A number.
    Known(i64),
    /// A number of the program.
    Of(T),
}

/// The entry of a key for an axis. `T` stands for a tensor.
#[derive(Clone, Copy, Debug)]
pub enum Item<T = Buffer> {
    /// A new axis of size 1.
    New,
    /// One index; the axis goes. Below zero it counts from the end.
    Index(i64),
    /// The same for an axis whose size is known at run time: checked where it is read.
    Inside(i64),
    /// `start:stop:step`.
    Range(Option<Bound<T>>, Option<Bound<T>>, i64),
    /// Computed indices, and whether those below zero count from the end wherever they are read.
    Places(T, bool),
}

/// A part of an axis: from `start` on, by `step`, so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<I = Expr, N = Dim> {
    /// The first index.
    pub start: I,
    /// From one to the next; not zero.
    pub step: i64,
    /// How many.
    pub len: N,
    /// Whether the axis is dropped: the key has a single index for it.
    pub drops: bool,
    /// Whether it may lie outside of the axis, so that each element is checked when it is read.
    pub is_checked: bool,
}

/// A part whose numbers are known.
pub type KnownPart = Part<i64, u64>;

impl KnownPart {
    /// The contiguous range of `len` elements from `start` on.
    pub fn span(start: i64, len: u64) -> Self {
        Self {
            start,
            step: 1,
            len,
            drops: false,
            is_checked: false,
        }
    }

    /// One element.
    pub fn one(start: i64) -> Self {
        Self {
            drops: true,
            ..Self::span(start, 1)
        }
    }
}

impl<T> Item<T> {
    /// All of an axis.
    pub const WHOLE: Self = Self::Range(None, None, 1);

    /// Whether it is neither an index nor computed ones.
    fn is_apart(&self) -> bool {
        matches!(self, Self::New | Self::Range(..))
    }

    /// The part of an axis of `n` elements, if that follows from numbers.
    ///
    /// # Errors
    /// If one index is outside.
    pub fn known(&self, axis: usize, n: u64) -> Recorded<Option<KnownPart>> {
        let size = i64::try_from(n).unwrap_or(i64::MAX);
        let number = |bound: &Option<Bound<T>>| match bound {
            None => Some(None),
            Some(Bound::Known(n)) => Some(Some(*n)),
            Some(Bound::Of(_)) => None,
        };
        match self {
            &Self::Index(i) if -size <= i && i < size => {
                Ok(Some(KnownPart::one(if i < 0 { i + size } else { i })))
            }
            Self::Index(i) => Err(RecordError::Index(format!(
                "index {i} is outside axis {axis} with {n} elements"
            ))),
            Self::Range(start, stop, step) => {
                let ends = number(start).zip(number(stop));
                Ok(ends.map(|(start, stop)| range(start, stop, *step, size)))
            }
            _ => Ok(None),
        }
    }
}

/// The range of `n` elements that Python's `start:stop:step` selects, clipped to the axis.
fn range(start: Option<i64>, stop: Option<i64>, step: i64, n: i64) -> KnownPart {
    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let clipped = |bound: i64| match bound {
        ..0 => (bound + n).max(low),
        _ => bound.min(high),
    };
    let (first, last) = if step > 0 { (low, high) } else { (high, low) };
    let start = start.map_or(first, clipped);
    let stop = stop.map_or(last, clipped);
    let span = if step > 0 { stop - start } else { start - stop };
    KnownPart {
        start,
        step,
        len: u64::try_from(span).map_or(0, |span| span.div_ceil(step.unsigned_abs())),
        drops: false,
        is_checked: false,
    }
}

/// A key, axis by axis.
#[derive(Clone, Debug)]
pub struct Key<T = Buffer> {
    /// An item for each axis, and those for new ones.
    pub items: Vec<Item<T>>,
    /// Whether computed indices and single ones stand side by side as the key is written, as NumPy has it.
    pub together: bool,
}

impl<T> Key<T> {
    /// The key with something else for each tensor.
    pub fn map<U>(&self, mut f: impl FnMut(&T) -> U) -> Key<U> {
        let bound = |bound: &Option<Bound<T>>, f: &mut dyn FnMut(&T) -> U| {
            bound.as_ref().map(|bound| match bound {
                Bound::Known(n) => Bound::Known(*n),
                Bound::Of(x) => Bound::Of(f(x)),
            })
        };
        let items = self.items.iter().map(|item| match item {
            Item::New => Item::New,
            Item::Index(i) => Item::Index(*i),
            Item::Inside(i) => Item::Inside(*i),
            Item::Range(start, stop, step) => {
                let start = bound(start, &mut f);
                Item::Range(start, bound(stop, &mut f), *step)
            }
            Item::Places(x, counts) => Item::Places(f(x), *counts),
        });
        Key {
            items: items.collect(),
            together: self.together,
        }
    }

    /// Whether there are computed indices in it.
    pub fn is_computed(&self) -> bool {
        let mut items = self.items.iter();
        items.any(|item| matches!(item, Item::Places(..) | Item::Inside(_)))
    }
}

/// An axis of what a key names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Axis {
    New,
    /// That of the tensor.
    Of(usize),
    /// The axes of computed indices, as one.
    Points,
}

/// The elements of a tensor that a key selects.
struct Named {
    /// The part of each axis; of one with computed indices all.
    parts: Vec<Part>,
    computed: Vec<Option<Buffer>>,
    axes: Vec<Axis>,
    /// How many axes computed indices have.
    points: usize,
}

impl Named {
    fn is_computed(&self) -> bool {
        self.computed.iter().any(Option::is_some)
    }

    fn new_axes(&self) -> Vec<i64> {
        let mut out = Vec::new();
        let mut at = 0;
        for axis in &self.axes {
            if *axis == Axis::New {
                out.push(at);
            }
            at += self.width(*axis);
        }
        out
    }

    fn width(&self, axis: Axis) -> i64 {
        if axis == Axis::Points {
            self.points as i64
        } else {
            1
        }
    }

    fn rank(&self) -> usize {
        self.axes
            .iter()
            .map(|&axis| self.width(axis) as usize)
            .sum()
    }
}

impl Recording {
    fn named(&mut self, x: Buffer, key: &Key) -> Recorded<Named> {
        let shape = self.shape(x);
        let mut out = Named {
            parts: Vec::new(),
            computed: Vec::new(),
            axes: Vec::new(),
            points: 0,
        };
        // The axes of computed indices stand where the first of these is; in front, if they are not side by side.
        let mut points_at = None;
        for item in &key.items {
            let axis = out.parts.len();
            if matches!(item, Item::New) {
                out.axes.push(Axis::New);
                continue;
            }
            let Some(&dim) = shape.get(axis) else {
                let (n, rank) = (axis + 1, shape.len());
                return Err(RecordError::Index(format!(
                    "{n} indices for a tensor with {rank} axes"
                )));
            };
            let known = self.program.const_dim(dim);
            let known = known.map(|n| item.known(axis, n)).transpose()?.flatten();
            let part = match (known, item) {
                (_, Item::Range(None, None, 1)) => self.whole_axis(dim),
                (Some(known), _) => self.part(known),
                (None, Item::Range(start, stop, step)) => {
                    self.range_part(dim, *start, *stop, *step)?
                }
                (None, Item::Index(i)) => self.index_part(x, axis, *i)?,
                _ => self.whole_axis(dim),
            };
            let computed = match *item {
                Item::Places(x, _) => Some(x),
                Item::Inside(i) => Some(self.one_index(i, axis)?),
                _ => None,
            };
            if let Some(index) = computed {
                out.points = out.points.max(self.rank(index));
            }
            if item.is_apart() {
                out.axes.push(Axis::Of(axis));
            } else {
                points_at.get_or_insert(out.axes.len());
            }
            out.parts.push(part);
            out.computed.push(computed);
        }
        if out.is_computed()
            && let Some(at) = points_at
        {
            out.axes
                .insert(if key.together { at } else { 0 }, Axis::Points);
        }
        Ok(out)
    }

    fn is_known(&self, part: &Part) -> bool {
        let start = self.program.exprs.as_const(part.start);
        start.is_some() && self.program.const_dim(part.len).is_some()
    }

    fn one_index(&mut self, i: i64, axis: usize) -> Recorded {
        let at = i32::try_from(i)
            .map_err(|_| RecordError::Index(format!("index {i} is outside axis {axis}")))?;
        let at = self.program.exprs.i32(at);
        Ok(self.map(&[], at))
    }

    /// Single indices beside computed ones are computed too.
    fn compute_indices(&mut self, x: Buffer, named: &mut Named) {
        let Some(first) = named.computed.iter().flatten().next() else {
            return;
        };
        let (ty, shape) = (self.ty(*first), self.shape(x));
        for (axis, part) in named.parts.iter_mut().enumerate() {
            if part.drops {
                let index = self.part_index(*part);
                named.computed[axis] = Some(self.cast(index, ty));
                *part = self.whole_axis(shape[axis]);
            }
        }
    }

    /// The elements that a key selects. `mode` defines the meaning of computed indices out of bounds; where `mask` is false,
    /// they are not checked.
    ///
    /// # Errors
    /// If there are more items than axes, or an index is outside.
    pub fn item(&mut self, x: Buffer, key: &Key, mode: Mode, mask: Option<Buffer>) -> Recorded {
        let mut named = self.named(x, key)?;
        if !named.is_computed() {
            match named.parts.iter().all(|part| self.is_known(part)) {
                true => drop(self.cells_of("x[key]", &[x])?),
                false => self.expect_everywhere(&[x])?,
            }
            let out = self.slice(x, &named.parts)?;
            return self.unsqueeze(out, &named.new_axes());
        }
        self.expect_everywhere(&[x])?;
        self.compute_indices(x, &mut named);
        let mut x = self.slice(x, &named.parts)?;
        let computed = named.computed.iter().enumerate();
        let computed = computed.filter_map(|(axis, index)| index.map(|index| (axis, index)));
        let (axes, index): (Vec<usize>, Vec<Buffer>) = computed.unzip();
        self.cells_of("x[key]", &index)?;
        let mut first = axes[0];
        if !key.together {
            let rest = (0..named.parts.len()).filter(|axis| !axes.contains(axis));
            let order: Vec<i64> = axes.iter().copied().chain(rest).map(|n| n as i64).collect();
            x = self.permute(x, &order)?;
            first = 0;
        }
        self.called = Some("x[key]");
        let out = self.gather(x, first, &index, mode, true, mask);
        self.called = None;
        self.unsqueeze(out?, &named.new_axes())
    }

    /// `x` with `values` in place of the elements that a key names, or accumulated into them. Where an index is repeated, all
    /// of its values are accumulated.
    ///
    /// # Errors
    /// If the values do not broadcast to what is named, or an index is outside.
    pub fn with_item(
        &mut self,
        x: Buffer,
        key: &Key,
        values: Buffer,
        accum: Option<Accum>,
        mode: Mode,
    ) -> Recorded {
        let mut named = self.named(x, key)?;
        // Values have axes of size 1 where the key has new ones.
        let (rank, own) = (named.rank() as i64, self.rank(values) as i64);
        let new = named.new_axes().into_iter().map(|at| at - rank);
        let new: Vec<i64> = new.filter(|&at| own >= -at).collect();
        let mut values = self.squeeze(values, &new)?;
        named.axes.retain(|&axis| axis != Axis::New);
        if !named.is_computed() {
            let rank = named.rank();
            while self.rank(values) > rank
                && self.program.const_dim(self.shape(values)[0]) == Some(1)
            {
                values = self.squeeze(values, &[0])?;
            }
            return self.with_part(x, &named.parts, values, accum);
        }
        self.compute_indices(x, &mut named);
        // Whole axes behind the last computed one are rows.
        let shape = self.shape(x);
        let is_whole = |(part, &dim): (&Part, &Dim)| {
            let zero = self.program.exprs.as_const(part.start);
            part.len == dim && part.step == 1 && zero.is_some_and(|n| n.as_i128() == 0)
        };
        let last = named.computed.iter().rposition(Option::is_some);
        let mut n = last.map_or(0, |last| last + 1);
        if !named.parts[n..].iter().zip(&shape[n..]).all(is_whole) {
            n = shape.len();
        }
        named.parts.truncate(n);
        named.computed.truncate(n);
        named
            .axes
            .retain(|&axis| !matches!(axis, Axis::Of(axis) if axis >= n));
        let (index, _) = self.indices_of(&named)?;
        self.called = Some("x[key] = value");
        let out = self.scatter(x, &index, values, accum, mode);
        self.called = None;
        out
    }

    /// An index for each axis of a tensor, broadcast together to the selected shape; and how many axes of that follow
    /// those of computed indices.
    fn indices_of(&mut self, named: &Named) -> Recorded<(Vec<Buffer>, usize)> {
        let rank = named.rank();
        // How many axes stand behind an axis.
        let behind = |wanted: Axis| {
            let at = named.axes.iter().position(|&axis| axis == wanted)?;
            let behind = named.axes[at + 1..]
                .iter()
                .map(|&a| named.width(a) as usize);
            Some(behind.sum::<usize>())
        };
        let mut index = Vec::new();
        for (axis, part) in named.parts.iter().enumerate() {
            let (own, place) = match named.computed[axis] {
                Some(own) => (own, Axis::Points),
                None => (self.part_index(*part), Axis::Of(axis)),
            };
            let (own_rank, behind) = (self.rank(own), behind(place).unwrap_or(0));
            index.push(match own_rank {
                0 => own,
                n => {
                    let axes: Vec<i64> = (n..n + behind).map(|axis| axis as i64).collect();
                    self.unsqueeze(own, &axes)?
                }
            });
        }
        debug_assert!(index.iter().all(|&i| self.rank(i) <= rank));
        Ok((index, behind(Axis::Points).unwrap_or(0)))
    }

    /// The indices that a key selects, one for each axis of a tensor, and values broadcast to them; and how many axes of that
    /// follow those of computed indices.
    pub(super) fn places(
        &mut self,
        x: Buffer,
        key: &Key,
        values: Buffer,
    ) -> Recorded<(Vec<Buffer>, Buffer, usize)> {
        let named = self.named(x, key)?;
        let (index, behind) = self.indices_of(&named)?;
        let shapes: Vec<Vec<Dim>> = index.iter().map(|&i| self.shape(i)).collect();
        let mut shape = self.broadcast("x[key] = value", &shapes)?;
        let one = self.program.size(1);
        let more = named.rank().saturating_sub(shape.len());
        shape.splice(..0, std::iter::repeat_n(one, more));
        let values = self.broadcast_to(values, &shape)?;
        Ok((index, values, behind))
    }

    /// An index of a program along an axis: a single negative index counts from the end if `from_end` is set, as in lists.
    pub(super) fn index_along(
        &mut self,
        x: Buffer,
        axis: usize,
        item: &Item,
        mode: Mode,
        from_end: bool,
    ) -> Recorded {
        let dim = self.shape(x).get(axis).copied();
        match (*item, dim) {
            (Item::Index(i) | Item::Inside(i), Some(dim)) if i < 0 && from_end => {
                match self.program.const_dim(dim) {
                    Some(n) if i + n as i64 >= 0 => self.one_index(i + n as i64, axis),
                    Some(_) => self.one_index(i, axis),
                    None => {
                        let at = i32::try_from(i).unwrap_or(i32::MIN);
                        let (n, at) = (self.program.extent(dim), self.program.exprs.i32(at));
                        let at = self.add(n, at);
                        Ok(self.map(&[], at))
                    }
                }
            }
            (Item::Index(i) | Item::Inside(i), _) => self.one_index(i, axis),
            (Item::Places(own, counts), dim) => {
                if self.ty(own).is_float() {
                    return Ok(self.cast(own, aerogel_base::ScalarType::I32));
                }
                let Some(dim) = dim.filter(|_| counts && mode == Mode::Error) else {
                    return Ok(own);
                };
                let shape = self.shape(own);
                let at = self.at_point(own, shape.len());
                let at = self.as_index(at);
                let at = self.counted_from_end(at, dim, mode);
                Ok(self.map(&shape, at))
            }
            (Item::New | Item::Range(..), _) => Err(RecordError::Index(
                "each axis takes an index here, not a slice".to_owned(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_as_python_has_them() {
        let of = |start, stop, step, n| {
            let part = range(start, stop, step, n);
            let all = (0..part.len as i64).map(|k| part.start + k * part.step);
            all.collect::<Vec<_>>()
        };
        assert_eq!(of(Some(1), Some(-1), 1, 4), [1, 2]);
        assert_eq!(of(None, None, -2, 4), [3, 1]);
        assert_eq!(of(Some(9), Some(-9), -1, 2), [1, 0]);
        assert_eq!(of(Some(3), Some(1), 1, 4), [0; 0]);
        assert_eq!(of(Some(i64::MIN), Some(i64::MAX), i64::MAX, 3), [0]);
        assert_eq!(of(None, None, i64::MIN, 0), [0; 0]);
    }

    #[test]
    fn one_index_of_an_axis() {
        let of = |i| Item::<Buffer>::Index(i).known(1, 3);
        assert_eq!(of(-3), Ok(Some(KnownPart::one(0))));
        let e = "index 3 is outside axis 1 with 3 elements".to_owned();
        assert_eq!(of(3), Err(RecordError::Index(e)));
    }
}
