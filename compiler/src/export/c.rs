//! The text in C that every exported function begins with, and the functions that call kernels.

use std::fmt::Write;

use aerogel_base::{AssertKind, ScalarType};
use aerogel_runtime::abi::{ErrorRecord, LaunchContext};
use aerogel_runtime::code::{Part, Site};
use aerogel_runtime::{Bounds, KernelCode, SiteKind, TaskCode};

use super::Library;

/// The types and functions that every driver begins with.
const COMMON: &str = include_str!("common.c");
/// Its declarations of these types are of this size.
const _: () = assert!(size_of::<LaunchContext>() == 80 && size_of::<ErrorRecord>() == 80);

/// A header: one function, and one that says why it failed.
pub struct Header<'a> {
    /// The name of the function.
    pub name: &'a str,
    /// What it is.
    pub what: &'a str,
    /// A line for each array.
    pub arrays: &'a str,
    /// Its declaration.
    pub prototype: &'a str,
}

impl Header<'_> {
    /// The text.
    pub fn text(&self) -> String {
        let Self {
            name,
            what,
            arrays,
            prototype,
        } = self;
        let guard = format!("AEROGEL_{name}_H");
        format!(
            "/* {what}, made by Aerogel. Arrays are row-major, and those that it writes share no memory with others:
{arrays} *
 * It runs on the thread of the caller; several threads may call it at once. */
#ifndef {guard}
#define {guard}

#include <stdint.h>

#ifdef __cplusplus
extern \"C\" {{
#endif

/* Returns 0, or another number if it failed; what it has written by then is undefined. */
{prototype};

/* The error message of the last failed call on this thread. */
const char *{name}_message(void);

#ifdef __cplusplus
}}
#endif

#endif
"
        )
    }
}

/// What stands before the functions of kernels: includes, types and common functions.
pub fn includes(name: &str) -> String {
    format!(
        "/* Made by Aerogel: see {name}.h. */\n#include \"{name}.h\"\n\n#include <stdio.h>\n#include <stdlib.h>\n\
         #include <string.h>\n\n{COMMON}\n"
    )
}

impl Library {
    /// Declares the functions of a kernel, and defines `ag_kernelN`, which calls them; values that cross tasks lie at an offset of
    /// its memory.
    pub fn function(&self, out: &mut String, number: usize, crossing: u64) {
        let code = &self.codes[number];
        let mut n_axes = 0;
        let mut calls = String::new();
        for task in &code.tasks {
            let symbol = run_by(task);
            let _ = writeln!(out, "ag_task {symbol};");
            let points = match &task.bounds {
                Bounds::Serial => "1".to_owned(),
                Bounds::Constant(bounds) => {
                    let n: i64 = bounds.iter().map(|[lo, hi]| (hi - lo).max(0)).product();
                    n.to_string()
                }
                Bounds::Computed { symbol, n_axes: n } => {
                    n_axes = n_axes.max(*n);
                    let _ = writeln!(out, "void {symbol}(const struct ag_context *, int64_t *);");
                    let _ = writeln!(calls, "    {symbol}(&context, bounds);");
                    format!("ag_points(bounds, {n})")
                }
            };
            let _ = writeln!(calls, "    ag_run(&context, {symbol}, {points});");
        }
        let sites = self.sites(out, number, code);
        let bounds = match n_axes {
            0 => String::new(),
            n => format!("    int64_t bounds[{}];\n", 2 * n),
        };
        let _ = writeln!(
            out,
            "static int ag_kernel{number}(char *memory, const uint64_t *args, uint64_t *results, const struct ag_place *places) {{
    struct ag_record record = {{0}};
    const struct ag_context context = ag_context_of(&record, args, memory + {crossing}, results);
{bounds}{calls}    return ag_ended(&record, {sites}, places);
}}\n"
        );
    }

    /// The table of a kernel's checks: its name.
    fn sites(&self, out: &mut String, number: usize, code: &KernelCode) -> String {
        if code.sites.is_empty() {
            return "0".to_owned();
        }
        let sites = code.sites.iter().zip(&self.lines[number]);
        let sites = sites.map(|(site, line)| match site.kind {
            SiteKind::Check(AssertKind::TensorBounds) => "{0, 0}".to_owned(),
            _ => format!("{{{}, {}}}", quoted(&message(site)), quoted(line)),
        });
        let sites: Vec<String> = sites.collect();
        let _ = writeln!(
            out,
            "static const struct ag_site ag_sites{number}[] = {{{}}};",
            sites.join(", ")
        );
        format!("ag_sites{number}")
    }
}

/// A message in which the byte 1 and a letter stand for each value.
fn message(site: &Site) -> String {
    let mut out = String::new();
    for part in &site.parts {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Value { ty, .. } => {
                out.push('\u{1}');
                out.push(match ty {
                    ScalarType::F64 => 'd',
                    ScalarType::F16 => 'h',
                    ScalarType::BF16 => 'b',
                    ty if ty.is_float() => 'f',
                    ty if ty.is_signed() => 'i',
                    _ => 'u',
                });
            }
        }
    }
    match out.is_empty() {
        true => "the assertion does not hold".to_owned(),
        false => out,
    }
}

/// The function of a task that a single thread runs.
fn run_by(task: &TaskCode) -> &str {
    task.sums.as_ref().map_or(&task.symbol, |sums| &sums.symbol)
}

/// A dtype in C.
pub fn c_type(ty: ScalarType) -> &'static str {
    match ty {
        ScalarType::U1 | ScalarType::U8 => "uint8_t",
        ScalarType::I8 => "int8_t",
        ScalarType::I16 => "int16_t",
        ScalarType::U16 | ScalarType::F16 | ScalarType::BF16 => "uint16_t",
        ScalarType::I32 => "int32_t",
        ScalarType::U32 => "uint32_t",
        ScalarType::I64 => "int64_t",
        ScalarType::U64 => "uint64_t",
        ScalarType::F32 => "float",
        ScalarType::F64 => "double",
    }
}

/// A string literal; bytes that are no plain characters become octal escapes, which never swallow a digit after them.
pub fn quoted(text: &str) -> String {
    let mut out = "\"".to_owned();
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' | b'?' => {
                let _ = write!(out, "\\{}", byte as char);
            }
            b' '..=b'~' => out.push(byte as char),
            _ => {
                let _ = write!(out, "\\{byte:03o}");
            }
        }
    }
    out + "\""
}
