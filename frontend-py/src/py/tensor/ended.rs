//! Why a program ended early, in the words of whoever wrote it: with the lines where things were made.

use aerogel_runtime::buffer::MemoryError;
use aerogel_tensor::interp::Failure;
use aerogel_tensor::record::Lines;
use aerogel_tensor::{Buffer, Program, RunError};
use pyo3::exceptions::{PyIndexError, PyMemoryError, PyValueError};
use pyo3::prelude::*;

use super::values::stopped;

/// A program as it was traced, and from which lines.
pub(super) struct Traced {
    pub(super) program: Program,
    pub(super) lines: Lines,
}

fn at(place: Option<&str>) -> String {
    place.map_or_else(String::new, |place| format!(" ({place})"))
}

impl Traced {
    /// The exception for what ended a run.
    pub(super) fn ended(&self, py: Python<'_>, e: &RunError) -> PyErr {
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
                let text = text.replacen("{}", &b.to_string(), 1);
                let place = at(self.lines.of_agreement(*number));
                let text = format!("{text}{place}");
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
                let place = at(self.lines.of_dim(*dim));
                PyValueError::new_err(format!("an extent, {what}, is {n}, {wrong}{place}"))
            }
            RunError::Failure(Failure::Number(dim, n)) => {
                let what = self.program.dim_text(*dim);
                let place = at(self.lines.of_dim(*dim));
                PyValueError::new_err(format!(
                    "the number {what} is {n}, which is no `i32`{place}"
                ))
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
                let place = at(self.lines.of_buffer(*buffer));
                PyMemoryError::new_err(format!(
                    "out of memory for {ty}[{}]{cells}{place}",
                    shape.join(", ")
                ))
            }
            RunError::Check(text) => PyIndexError::new_err(format!("{text}{}", self.indexed(text))),
            _ => stopped(e),
        }
    }

    /// Where a tensor was made that a check names, and where its elements are read.
    fn indexed(&self, text: &str) -> String {
        let buffers = self.program.buffers.iter();
        let named =
            |buffer: &Buffer| text.ends_with(&format!("`{}`", self.program.buffers[*buffer].name));
        let mut buffers = buffers.map(|(b, _)| b);
        let Some(buffer) = buffers.find(named) else {
            return String::new();
        };
        let made = self.lines.of_buffer(buffer);
        let read = self.lines.of_indices(&self.program, buffer);
        let made = made.map(|place| format!("it is made in {place}"));
        let read = (!read.is_empty()).then(|| format!("indexed in {}", read.join(" or ")));
        let both: Vec<String> = made.into_iter().chain(read).collect();
        match both.is_empty() {
            true => String::new(),
            false => format!(": {}", both.join(", ")),
        }
    }
}
