//! Exceptions for programs that ended early, with the user's source lines.

use aerogel_base::AssertKind;
use aerogel_ir::BinaryOp;
use aerogel_runtime::buffer::MemoryError;
use aerogel_tensor::ir::{Failure, Place};
use aerogel_tensor::record::Lines;
use aerogel_tensor::{Buffer, OutOfBounds, Program, RunError};
use pyo3::exceptions::{PyIndexError, PyMemoryError, PyValueError};
use pyo3::prelude::*;

use super::places;
use super::values::stopped;
use crate::py::regions;

/// Names other lines that may have caused the error.
fn name_others(py: Python<'_>, text: &mut String, others: impl Iterator<Item = Place>) {
    let others: Vec<String> = others
        .filter_map(|place| places::named(py, place))
        .collect();
    if !others.is_empty() {
        *text += &format!("\n   = note: or in {}", others.join(" or "));
    }
}

/// A program as recorded, with its source lines.
pub(super) struct Traced {
    pub(super) program: Program,
    pub(super) lines: Lines,
}

impl Traced {
    /// The statements as text, with the regions that they are in.
    pub(super) fn text(&self) -> String {
        let region = |buffer| regions::path(places::region(self.lines.get(buffer)));
        let has_regions = self.program.buffers.keys().any(|b| region(b).is_some());
        self.program.text_in_regions(&|buffer| {
            // Results are copied when all else is done, and belong to the lines of what they copy.
            match has_regions && self.program.results.contains(&buffer) {
                true => Some("results".to_owned()),
                false => region(buffer),
            }
        })
    }

    /// The exception for the error that ended a run.
    pub(super) fn ended(&self, py: Python<'_>, e: &RunError) -> PyErr {
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
                        ": an axis whose size is known only at run time is not broadcast, even if the size is 1; take a single \
                         index, and insert an axis, as in `x[0, None]`",
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
                    _ => format!("and indices are at most {}", i32::MAX),
                };
                let text = format!("the size of an axis, {what}, is {n}, {wrong}");
                PyValueError::new_err(shown(text, self.lines.of_dim(*dim)))
            }
            RunError::Failure(Failure::Number(dim, n)) => {
                let what = self.program.dim_text(*dim);
                let text = format!("the number {what} is {n}, which does not fit `i32`");
                PyValueError::new_err(shown(text, self.lines.of_dim(*dim)))
            }
            RunError::Failure(Failure::Library(buffer, why)) => {
                PyValueError::new_err(shown(why.to_string(), self.made(*buffer)))
            }
            RunError::Failure(Failure::Kept(buffer, most)) => {
                let text = format!(
                    "the gradient of this loop needs more than {most} bytes for the values before each iteration, and its \
                     iterations cannot be run again, or not within 16 times each: raise the limit by ti.init(ad_memory=...), or split the loop into \
                     nested loops: only one inner loop is saved at a time"
                );
                let class = super::super::error::of_check(AssertKind::Memory);
                super::super::error::exception(py, class, shown(text, self.made(*buffer)))
            }
            RunError::Failure(Failure::Index(found)) => self.outside(py, found),
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
            RunError::Check {
                kind: AssertKind::DivisionByZero,
                text,
            } => self.divided(py, text.clone(), [BinaryOp::FloorDiv, BinaryOp::Div]),
            RunError::Check {
                kind: AssertKind::ModuloByZero,
                text,
            } => self.divided(py, text.clone(), [BinaryOp::Mod, BinaryOp::Rem]),
            _ => stopped(e),
        }
    }

    /// The source location of a buffer, unless passes created it.
    fn made(&self, buffer: Buffer) -> Option<Place> {
        self.program.buffers.get(buffer)?;
        self.lines.of_buffer(buffer)
    }

    /// A division by zero, with the lines that have one of these operations on integers.
    fn divided(&self, py: Python<'_>, mut text: String, by: [BinaryOp; 2]) -> PyErr {
        let places = self.lines.of_divisions(&self.program, by);
        if let Some((&first, others)) = places.split_first() {
            places::show(py, &mut text, first);
            name_others(py, &mut text, others.iter().copied());
        }
        super::super::error::exception(py, "AerogelZeroDivisionError", text)
    }

    /// An out-of-bounds index, with the line where it was used, and where the tensor was made.
    fn outside(&self, py: Python<'_>, found: &OutOfBounds) -> PyErr {
        let site = &self.program.sites[found.site];
        let (index, axis, n) = (site.written(found), found.axis, found.size);
        let elements = if n == 1 { "element" } else { "elements" };
        let mut text = format!("index {index} is outside axis {axis} with {n} {elements}");
        let (used, made) = (self.lines.of_site(site), self.made(site.buffer));
        if let Some(place) = used.or(made) {
            places::show(py, &mut text, place);
        }
        if let (Some(used), Some(made)) = (used, made)
            && used != made
            && let Some(made) = places::named(py, made)
        {
            text += &format!("\n   = note: the tensor is made in {made}");
        }
        PyIndexError::new_err(text)
    }
}
