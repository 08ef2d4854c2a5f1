//! Why a program ended early, in the words of whoever wrote it: with the lines where things were written.

use aerogel_ir::BinaryOp;
use aerogel_runtime::buffer::MemoryError;
use aerogel_tensor::ir::Failure;
use aerogel_tensor::record::{Access, Lines, Place};
use aerogel_tensor::{Buffer, OutOfBounds, Program, RunError};
use pyo3::exceptions::{PyIndexError, PyMemoryError, PyValueError};
use pyo3::prelude::*;

use super::places;
use super::values::stopped;

/// How the check of a division begins.
const DIVISION: &str = "integer division by zero";

/// Other lines that it may have been.
fn name_others(py: Python<'_>, text: &mut String, others: impl Iterator<Item = Place>) {
    let others: Vec<String> = others
        .filter_map(|place| places::named(py, place))
        .collect();
    if !others.is_empty() {
        *text += &format!("\n   = note: or in {}", others.join(" or "));
    }
}

/// A program as it was written, and in which lines.
pub(super) struct Traced {
    pub(super) program: Program,
    pub(super) lines: Lines,
}

impl Traced {
    /// The exception for what ended a run; `target` is what the statement makes that it was, if several may be meant.
    pub(super) fn ended(&self, py: Python<'_>, e: &RunError, target: Option<Buffer>) -> PyErr {
        let shown = |mut text: String, place: Option<Place>| {
            if let Some(place) = place {
                places::show(py, &mut text, place);
            }
            text
        };
        match e {
            RunError::Region(raised) => match raised.0.downcast_ref::<PyErr>() {
                Some(raised) => raised.clone_ref(py),
                None => stopped(e),
            },
            RunError::Failure(Failure::Disagreement(number, [a, b])) => {
                let Some(agreement) = self.program.agreements.get(*number) else {
                    return stopped(e);
                };
                let text = agreement.message.replacen("{}", &a.to_string(), 1);
                let mut text = text.replacen("{}", &b.to_string(), 1);
                if text.ends_with("along one axis") && (*a == 1 || *b == 1) {
                    text.push_str(
                        ": one that only the run knows is not stretched, also if it turns out to be 1; take a single index, and \
                         put an axis there, as in `x[0, None]`",
                    );
                }
                let text = shown(text, self.lines.of_agreement(*number));
                match agreement.message.starts_with("index ") {
                    true => PyIndexError::new_err(text),
                    false => PyValueError::new_err(text),
                }
            }
            RunError::Failure(Failure::Extent(Some(dim), n)) => {
                let what = self.program.dim_text(*dim);
                let wrong = match n {
                    ..0 => "below zero".to_owned(),
                    _ => format!("and indices go up to {}", i32::MAX),
                };
                let text = format!("an extent, {what}, is {n}, {wrong}");
                PyValueError::new_err(shown(text, self.lines.of_dim(*dim)))
            }
            RunError::Failure(Failure::Number(dim, n)) => {
                let what = self.program.dim_text(*dim);
                let text = format!("the number {what} is {n}, which is no `i32`");
                PyValueError::new_err(shown(text, self.lines.of_dim(*dim)))
            }
            RunError::Failure(Failure::Library(buffer, why)) => {
                PyValueError::new_err(shown(why.to_string(), self.made(*buffer)))
            }
            RunError::Failure(Failure::Index(buffer, axis, index, extent)) => {
                let found = OutOfBounds {
                    buffer: String::new(),
                    stored: false,
                    axis: *axis,
                    index: *index,
                    extent: *extent,
                };
                self.outside(py, &found, Some(*buffer), target)
            }
            RunError::NoRoom {
                buffer,
                shape,
                error: error @ (MemoryError::OutOfMemory { .. } | MemoryError::NoCell { .. }),
            } => {
                let shape: Vec<String> = shape.iter().map(usize::to_string).collect();
                let ty = self.program.buffers.get(*buffer).map(|def| def.ty);
                let ty = ty.map_or_else(String::new, |ty| ty.to_string());
                let cells = match error {
                    MemoryError::NoCell { .. } => " at active cells",
                    _ => "",
                };
                let text = format!("out of memory for {ty}[{}]{cells}", shape.join(", "));
                PyMemoryError::new_err(shown(text, self.made(*buffer)))
            }
            RunError::Check(text) => match OutOfBounds::from_text(text) {
                Some(found) => {
                    let buffer = self.program.named(&found.buffer);
                    self.outside(py, &found, buffer, target)
                }
                None if text.starts_with(DIVISION) => self.divided(py, text.clone()),
                None => super::super::error::runtime(py, text.clone()),
            },
            _ => stopped(e),
        }
    }

    /// Where a buffer was made, if it is not what passes made.
    fn made(&self, buffer: Buffer) -> Option<Place> {
        self.program.buffers.get(buffer)?;
        self.lines.of_buffer(buffer)
    }

    /// A division by zero, with the lines in which whole numbers are divided.
    fn divided(&self, py: Python<'_>, mut text: String) -> PyErr {
        let by = match text.contains(" % ") {
            true => [BinaryOp::Mod, BinaryOp::Rem],
            false => [BinaryOp::FloorDiv, BinaryOp::Div],
        };
        let places = self.lines.of_divisions(&self.program, by);
        if let Some((&first, others)) = places.split_first() {
            places::show(py, &mut text, first);
            name_others(py, &mut text, others.iter().copied());
        }
        super::super::error::exception(py, "AerogelZeroDivisionError", text)
    }

    /// An index outside, with the line where it was used, and where the tensor was made that has no such element.
    fn outside(
        &self,
        py: Python<'_>,
        found: &OutOfBounds,
        buffer: Option<Buffer>,
        target: Option<Buffer>,
    ) -> PyErr {
        let (axis, n) = (found.axis, found.extent);
        let accesses = buffer.map_or(Vec::new(), |buffer| {
            let (program, stored) = (&self.program, found.stored);
            self.lines.of_accesses(program, buffer, axis, stored)
        });
        let one = accesses.iter().find(|a| Some(a.target) == target);
        let accesses: Vec<Access> = one.map_or(accesses.clone(), |one| vec![*one]);
        // As it was written: what counts from the end has been counted from the start.
        let from_end = found.index < 0 && accesses.iter().all(|a| a.from_end);
        let index = match from_end && !accesses.is_empty() {
            true => found.index - n as i64,
            false => found.index,
        };
        let elements = if n == 1 { "element" } else { "elements" };
        let mut text = format!("index {index} is outside axis {axis} with {n} {elements}");
        let (first, others) = match accesses.split_first() {
            Some((first, others)) => (Some(first.place), others),
            None => (None, &[][..]),
        };
        let made = buffer.and_then(|buffer| self.made(buffer));
        if let Some(place) = first.or(made) {
            places::show(py, &mut text, place);
        }
        name_others(py, &mut text, others.iter().map(|a| a.place));
        if let Some(made) = made.filter(|made| first.is_some_and(|first| first != *made))
            && let Some(made) = places::named(py, made)
        {
            text += &format!("\n   = note: the tensor is made in {made}");
        }
        PyIndexError::new_err(text)
    }
}
