//! The sizes of a statement's labels: inference from the tensors, and checks that all tensors agree.

use indexmap::IndexMap;

use crate::ir::Dim;

use super::super::{RecordError, Recorded, Size};
use super::parse::{Index, Padding, quoted, refused};
use super::{Agreement, AtLeast, Shape};

/// The size of an axis of a statement.
#[derive(Clone, Copy, Debug)]
pub enum Extent {
    /// A number.
    Number(i64),
    /// One that is known when the program runs: a handle, and what it is as the program is traced.
    Of(Size, Dim),
    /// The number of windows of a given reach and stride along an axis of a given size.
    Windows(Size, Dim, i64, i64),
}

impl Extent {
    pub(super) fn number(self) -> Option<i64> {
        match self {
            Self::Number(n) => Some(n),
            _ => None,
        }
    }

    /// Whether it is known to be equal: two handles to one size differ.
    fn is(self, other: Self) -> bool {
        match (self, other) {
            (Self::Number(n), Self::Number(m)) => n == m,
            (Self::Of(_, n), Self::Of(_, m)) => n == m,
            (Self::Windows(_, n, a, b), Self::Windows(_, m, c, d)) => (n, a, b) == (m, c, d),
            _ => false,
        }
    }
}

/// The known sizes of labels.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) spec: String,
    pub(super) of: IndexMap<String, Extent>,
    places: IndexMap<String, String>,
    pub(super) agreements: Vec<Agreement>,
    /// Conditions on sizes, checked before anything is read.
    pub(super) asked: Vec<AtLeast>,
}

/// Where windows begin before their axis: of a tensor along an axis, by how much.
pub(super) type Begins = IndexMap<(usize, usize), i64>;

impl Known {
    pub(super) fn new(spec: &str, given: &[(String, Extent)]) -> Recorded<Self> {
        let mut out = Self {
            spec: spec.to_owned(),
            of: IndexMap::new(),
            places: IndexMap::new(),
            agreements: Vec::new(),
            asked: Vec::new(),
        };
        for (label, n) in given {
            if !spec.contains(&label[..]) {
                let (label, spec) = (quoted(label), quoted(spec));
                return refused(format!("`sizes` names {label}, which is not in {spec}"));
            }
            out.put(label, *n, "`sizes`")?;
        }
        Ok(out)
    }

    pub(super) fn number(&self, label: &str) -> Option<i64> {
        self.of.get(label).and_then(|n| n.number())
    }

    /// Adds the size of a label, which must equal the known one or be 1.
    pub(super) fn put(&mut self, label: &str, n: Extent, place: &str) -> Recorded<()> {
        let known = self.of.get(label).copied();
        let known = known.filter(|known| known.number() != Some(1));
        let Some(known) = known else {
            self.of.insert(label.to_owned(), n);
            self.places.insert(label.to_owned(), place.to_owned());
            return Ok(());
        };
        if known.is(n) || n.number() == Some(1) {
            return Ok(());
        }
        let (name, spec, first) = (quoted(label), quoted(&self.spec), &self.places[label]);
        let text = |n: &str, m: &str| {
            format!("`accum`: {name} of {spec} has {n} elements in {first}, {m} in {place}")
        };
        if let (Some(n), Some(m)) = (known.number(), n.number()) {
            return Err(RecordError::Value(text(&n.to_string(), &m.to_string())));
        }
        let message = text("{}", "{}");
        let (left, right) = (known, n);
        self.agreements.push(Agreement {
            left,
            right,
            message,
        });
        Ok(())
    }

    /// The known sizes of the labels in some axes.
    pub(super) fn of_labels<'i>(&self, axes: impl Iterator<Item = &'i Index>) -> Self {
        let labels: Vec<&str> = axes
            .flat_map(|a| a.terms.iter().map(|(label, _)| &label[..]))
            .collect();
        let mut out = self.clone();
        out.of.retain(|label, _| labels.contains(&&label[..]));
        out
    }

    /// Adds the size of an axis with one index.
    pub(super) fn put_label(
        &mut self,
        a: &Index,
        n: Extent,
        number: usize,
        axis: usize,
    ) -> Recorded<()> {
        if let Some(label) = a.label() {
            return self.put(label, n, &format!("tensor {number}"));
        }
        match n.number() {
            Some(n) if a.terms.is_empty() && a.offset >= n => Err(RecordError::Index(format!(
                "`accum`: index {} is outside axis {axis} with {n} elements",
                a.offset
            ))),
            _ => Ok(()),
        }
    }

    fn sums_unknown<T>(&self) -> Recorded<T> {
        let spec = quoted(&self.spec);
        refused(format!(
            "the size of an axis whose index is a sum is not known, in {spec}"
        ))
    }

    /// The sizes of labels that occur only in sums, and how far each sum begins before its axis.
    pub(super) fn windows(
        &mut self,
        rows: &[Vec<Index>],
        shapes: &[Shape],
        around: bool,
    ) -> Recorded<Begins> {
        let mut begins = Begins::new();
        for (number, (row, shape)) in rows.iter().zip(shapes).enumerate() {
            for (axis, (a, &n)) in row.iter().zip(shape).enumerate() {
                if a.label().is_none() && !a.terms.is_empty() {
                    let begin = self.window(a, n, (number, axis), is_around(a, around))?;
                    if let Some(begin) = begin {
                        begins.insert((number, axis), begin);
                    }
                }
            }
        }
        Ok(begins)
    }

    /// The largest index of a sum of labels, if the size of each is known. No axis is so long that a sum saturates, so one that
    /// does is beyond every axis.
    fn last<'t>(&self, offset: i64, terms: impl Iterator<Item = &'t (String, i64)>) -> Option<i64> {
        let mut terms = terms;
        terms.try_fold(offset, |sum, (label, factor)| {
            let n = self.number(label)?;
            Some(sum.saturating_add(factor.saturating_mul(n - 1)))
        })
    }

    /// The same of one index along one axis.
    fn window(
        &mut self,
        a: &Index,
        n: Extent,
        (number, axis): (usize, usize),
        same: bool,
    ) -> Recorded<Option<i64>> {
        let place = format!("tensor {number}");
        let is_there = |(label, _): &&(String, i64)| self.of.contains_key(label);
        let (there, unknown): (Vec<_>, Vec<_>) = a.terms.iter().partition(is_there);
        let reach = self.last(a.offset, there.iter().copied());
        let Some(mut reach) = reach else {
            return self.sums_unknown();
        };
        let is_one = unknown.len() == 1 && !(same && unknown[0].1 != 1);
        if n.number().is_none() && !is_one {
            return self.sums_unknown();
        }
        if unknown.len() > 1 {
            return underdetermined(unknown.iter().map(|(label, _)| &label[..]));
        }
        let few = |n: &str, reach: i64| {
            let window = reach.saturating_add(1);
            format!(
                "`accum`: {n} elements along axis {axis} of {place} are fewer than the window of {window}"
            )
        };
        let Some(size) = n.number() else {
            let (label, factor) = unknown[0];
            if a.padding == Padding::Exact {
                return self.sums_unknown();
            }
            if same {
                self.put(label, n, &place)?;
                return Ok(Some(reach.div_euclid(2)));
            }
            let Extent::Of(handle, dim) = n else {
                return self.sums_unknown();
            };
            self.asked.push(AtLeast {
                size: handle,
                dim,
                count: reach.saturating_add(1),
                message: few("{}", reach),
            });
            self.put(label, Extent::Windows(handle, dim, reach, *factor), &place)?;
            return Ok(None);
        };
        let spec = quoted(&self.spec);
        if let [(label, factor)] = unknown[..] {
            let count = match same {
                true => -(-size).div_euclid(*factor),
                false => (size - 1).saturating_sub(reach).div_euclid(*factor) + 1,
            };
            if count < 1 {
                return Err(RecordError::Value(few(&size.to_string(), reach)));
            }
            if a.padding == Padding::Exact
                && (size - 1).saturating_sub(reach).rem_euclid(*factor) != 0
            {
                return refused(format!(
                    "windows of {} with a stride of {factor} do not cover axis {axis} of {place} exactly, which has \
                     {size} elements: {spec}",
                    reach.saturating_add(1)
                ));
            }
            self.put(label, Extent::Number(count), &place)?;
            reach = reach.saturating_add(factor.saturating_mul(count - 1));
        }
        if same {
            return Ok(Some(
                reach
                    .saturating_add(1)
                    .saturating_sub(size)
                    .max(0)
                    .div_euclid(2),
            ));
        }
        if reach >= size {
            return refused(format!(
                "indices along axis {axis} of {place} reach {reach}, but it has {size} elements: {spec}"
            ));
        }
        Ok(None)
    }

    /// Refuses a label of the result that no tensor has.
    pub(super) fn expect<'l>(&self, mut labels: impl Iterator<Item = &'l str>) -> Recorded<()> {
        match labels.find(|&label| !self.of.contains_key(label)) {
            None => Ok(()),
            Some(label) => refused(format!(
                "no tensor of {} has {}: give its size in `sizes`",
                quoted(&self.spec),
                quoted(label)
            )),
        }
    }

    /// The size of an axis of the result.
    pub(super) fn extent(&self, a: &Index) -> Recorded<Extent> {
        if let Some(label) = a.label() {
            return Ok(self.of[label]);
        }
        match self.last(a.offset, a.terms.iter()) {
            Some(last) => Ok(Extent::Number(last.saturating_add(1).max(0))),
            None => refused(format!(
                "a sum in the result needs labels of known size, in {}",
                quoted(&self.spec)
            )),
        }
    }
}

/// Whether windows along an axis reach over its ends.
pub(super) fn is_around(a: &Index, around: bool) -> bool {
    a.padding == Padding::Same || around && a.padding == Padding::AsCalled
}

pub(super) fn underdetermined<'l, T>(labels: impl Iterator<Item = &'l str>) -> Recorded<T> {
    let names: Vec<String> = labels.map(quoted).collect();
    let names = names.join(" and ");
    refused(format!(
        "the sizes of {names} cannot be inferred: give them in `sizes`"
    ))
}
