//! The function in C that does what a run of the plan does: temporaries, loops, branches, and calls of kernels.

use std::fmt::Write;

use aerogel_base::{AssertKind, ScalarType};
use aerogel_runtime::abi::{ErrorRecord, LaunchContext};
use aerogel_runtime::{Bounds, KernelCode, SiteKind, TaskCode};
use indexmap::{IndexMap, IndexSet};

use super::kernels::Kernels;
use super::layout::{ALIGN, layout};
use super::{Exportable, Request, Sizes, refused};
use crate::ir::{
    Buffer, Call, Dim, Expr, ExprDef, For, Library, Program, Run, Site, Stmt, Touched, visit_host,
};
use crate::lower::Parameter;

/// The types and functions that every driver begins with.
const COMMON: &str = include_str!("driver.c");
/// Its declarations of these types are of this size.
const _: () = assert!(size_of::<LaunchContext>() == 80 && size_of::<ErrorRecord>() == 80);

pub(super) struct Driver<'p> {
    program: &'p Program,
    sizes: &'p Sizes,
    kernels: &'p Kernels,
    request: &'p Request<'p>,
    /// The C expression for the address of each buffer.
    names: IndexMap<Buffer, String>,
    histories: IndexSet<Buffer>,
    /// Arguments of the function: what C declares, the buffer, whether it is passed by value.
    parameters: Vec<(String, Buffer, bool)>,
    /// The offset of each temporary in the block of memory.
    temporaries: IndexMap<Buffer, u64>,
    /// The size of the block.
    bytes: u64,
    /// Where the values that cross tasks of each kernel lie in it.
    crossing: Vec<u64>,
    /// How many bytes they take. They are zero at first.
    zeros: u64,
    /// The buffers that statements store to.
    written: IndexSet<Buffer>,
}

impl<'p> Driver<'p> {
    pub(super) fn new(
        program: &'p Program,
        sizes: &'p Sizes,
        kernels: &'p Kernels,
        request: &'p Request<'p>,
    ) -> Exportable<Self> {
        let mut driver = Self {
            program,
            sizes,
            kernels,
            request,
            names: IndexMap::new(),
            histories: IndexSet::new(),
            parameters: Vec::new(),
            temporaries: IndexMap::new(),
            bytes: 0,
            crossing: Vec::new(),
            zeros: 0,
            written: Touched::by(program, &program.body).writes,
        };
        visit_host(&program.body, &mut |stmt| {
            if let Stmt::Call(call) = stmt {
                driver
                    .histories
                    .extend(call.kept().map(|[_, history]| history));
            }
        });
        for code in &kernels.codes {
            driver.crossing.push(driver.zeros);
            driver.zeros += (code.temp_bytes as u64).next_multiple_of(ALIGN);
        }
        driver.name_arguments()?;
        // The buffer that names a history may be stored to, though nobody reads its elements.
        let is_own = |b: Buffer| !driver.names.contains_key(&b);
        let (temporaries, bytes) = layout(program, sizes, &is_own, driver.zeros)?;
        for &buffer in temporaries.keys() {
            driver.names.insert(buffer, format!("ag_{buffer}"));
        }
        (driver.temporaries, driver.bytes) = (temporaries, bytes.max(ALIGN));
        Ok(driver)
    }

    fn name_arguments(&mut self) -> Exportable<()> {
        for (buffer, input) in self.program.inputs().zip(&self.request.inputs) {
            let ty = c_type(self.program.buffers[buffer].ty);
            self.sizes.shape(self.program, buffer)?;
            if input.data.is_some() {
                if self.written.contains(&buffer) {
                    return refused(
                        buffer,
                        format!("the program changes the constant `{}`", input.name),
                    );
                }
                self.names.insert(buffer, input.name.clone());
                continue;
            }
            let is_written = self.written.contains(&buffer);
            let is_value = input.shape.is_empty() && !is_written;
            let (declared, name) = match (is_value, is_written) {
                (true, _) => (format!("{ty} {}", input.name), format!("&{}", input.name)),
                (_, true) => (format!("{ty} *{}", input.name), input.name.clone()),
                _ => (format!("const {ty} *{}", input.name), input.name.clone()),
            };
            self.parameters.push((declared, buffer, is_value));
            self.names.insert(buffer, name);
        }
        for (&buffer, name) in self.program.results.iter().zip(&self.request.outputs) {
            let ty = c_type(self.program.buffers[buffer].ty);
            self.sizes.shape(self.program, buffer)?;
            self.parameters
                .push((format!("{ty} *{name}"), buffer, false));
            // What is returned twice, or is an input, is copied afterwards.
            self.names.entry(buffer).or_insert_with(|| name.clone());
        }
        Ok(())
    }

    fn prototype(&self) -> String {
        let parameters: Vec<&str> = self
            .parameters
            .iter()
            .map(|(declared, ..)| &declared[..])
            .collect();
        let parameters = match parameters.is_empty() {
            true => "void".to_owned(),
            false => parameters.join(", "),
        };
        format!("int {}({parameters})", self.request.name)
    }

    pub(super) fn header(&self) -> Exportable<String> {
        let name = self.request.name;
        let mut arrays = String::new();
        for (declared, buffer, is_value) in &self.parameters {
            if !is_value {
                let shape: Vec<String> = self.shape(*buffer)?.iter().map(u64::to_string).collect();
                let ty = self.program.buffers[*buffer].ty;
                let _ = writeln!(arrays, " *   {declared}: {ty}[{}]", shape.join(", "));
            }
        }
        let guard = format!("AEROGEL_{}_H", name.to_uppercase());
        let prototype = self.prototype();
        Ok(format!(
            "/* A program of tensors, made by Aerogel. Arrays are row-major, and those that it writes share no memory with others:
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

/* Why the last call on this thread that failed did. */
const char *{name}_message(void);

#ifdef __cplusplus
}}
#endif

#endif
"
        ))
    }

    pub(super) fn source(&self) -> Exportable<String> {
        let name = self.request.name;
        let mut out = format!(
            "/* Made by Aerogel: see {name}.h. */\n#include \"{name}.h\"\n\n#include <stdio.h>\n#include <stdlib.h>\n\
             #include <string.h>\n\n{COMMON}\n"
        );
        for (number, code) in self.kernels.codes.iter().enumerate() {
            self.kernel(&mut out, number, code);
        }
        for input in self
            .request
            .inputs
            .iter()
            .filter(|input| input.data.is_some())
        {
            let _ = writeln!(out, "extern const char {}[];", input.name);
        }
        let mut body = Body {
            driver: self,
            places: String::new(),
            n_places: 0,
            text: String::new(),
            depth: 1,
        };
        body.function()?;
        let _ = write!(
            out,
            "\n{}{} {{\n{}}}\n\nconst char *{name}_message(void) {{\n    return ag_message;\n}}\n",
            body.places,
            self.prototype(),
            body.text
        );
        Ok(out)
    }

    /// The functions of a kernel, and one that calls them.
    fn kernel(&self, out: &mut String, number: usize, code: &KernelCode) {
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
        if !code.sites.is_empty() {
            let sites = code.sites.iter().map(|site| match site.kind {
                SiteKind::Check(AssertKind::TensorBounds) => "{0}".to_owned(),
                _ => format!("{{{}}}", quoted(&site.render(&[]))),
            });
            let sites: Vec<String> = sites.collect();
            let _ = writeln!(
                out,
                "static const struct ag_site ag_sites{number}[] = {{{}}};",
                sites.join(", ")
            );
        }
        let sites = match code.sites.is_empty() {
            true => "0".to_owned(),
            false => format!("ag_sites{number}"),
        };
        let bounds = match n_axes {
            0 => String::new(),
            n => format!("    int64_t bounds[{}];\n", 2 * n),
        };
        let _ = writeln!(
            out,
            "static int ag_kernel{number}(char *memory, const uint64_t *args, const struct ag_place *places) {{
    struct ag_record record = {{0}};
    const struct ag_context context = ag_context_of(&record, args, memory + {});
{bounds}{calls}    return ag_ended(&record, {sites}, places);
}}\n",
            self.crossing[number]
        );
    }

    fn shape(&self, buffer: Buffer) -> Exportable<Vec<u64>> {
        self.sizes.shape(self.program, buffer)
    }

    fn bytes(&self, buffer: Buffer) -> Exportable<u64> {
        self.sizes.bytes(self.program, buffer)
    }
}

/// The function of a task that a single thread runs.
fn run_by(task: &TaskCode) -> &str {
    task.sums.as_ref().map_or(&task.symbol, |sums| &sums.symbol)
}

/// A dtype in C.
fn c_type(ty: ScalarType) -> &'static str {
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
fn quoted(text: &str) -> String {
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

/// The body of the function while it is written.
struct Body<'d, 'p> {
    driver: &'d Driver<'p>,
    /// Tables of the accesses that kernels check.
    places: String,
    n_places: usize,
    text: String,
    depth: usize,
}

impl Body<'_, '_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{:1$}{text}", "", 4 * self.depth);
    }

    fn function(&mut self) -> Exportable<()> {
        let driver = self.driver;
        let mut spans = Vec::new();
        let first_output = driver.parameters.len() - driver.program.results.len();
        for (k, (declared, buffer, is_value)) in driver.parameters.iter().enumerate() {
            let name = declared.rsplit([' ', '*']).next().unwrap_or_default();
            let is_written = k >= first_output || driver.written.contains(buffer);
            if !is_value {
                spans.push(format!(
                    "{{{name}, {}, {}}}",
                    driver.bytes(*buffer)?,
                    i32::from(is_written)
                ));
            }
        }
        self.line("int ag_code = 0;");
        self.line("char *ag_memory = 0;");
        let mut vars = IndexSet::new();
        visit_host(&driver.program.body, &mut |stmt| {
            if let Stmt::Set(var, _) | Stmt::Loop { var, .. } = stmt {
                vars.insert(*var);
            }
        });
        for var in vars {
            self.line(&format!(
                "uint64_t ag_{var} = 0; /* {} */",
                driver.program.vars[var]
            ));
        }
        for history in &driver.histories {
            self.line(&format!("struct ag_history ag_of_{history} = {{0}};"));
        }
        if !spans.is_empty() {
            let (n, spans) = (spans.len(), spans.join(", "));
            self.line(&format!("const struct ag_span ag_spans[] = {{{spans}}};"));
            self.line(&format!("AG_TRY(ag_overlap(ag_spans, {n}));"));
        }
        self.line(&format!(
            "AG_TRY(ag_allocate(&ag_memory, {}, {}));",
            driver.bytes, driver.zeros
        ));
        for (buffer, offset) in &driver.temporaries {
            self.line(&format!("char *const ag_{buffer} = ag_memory + {offset};"));
        }
        self.block(&driver.program.body)?;
        for (declared, buffer, _) in &driver.parameters[first_output..] {
            let name = declared.rsplit('*').next().unwrap_or_default();
            let from = &driver.names[buffer];
            if from != name {
                self.line(&format!(
                    "ag_copy({name}, {from}, {});",
                    driver.bytes(*buffer)?
                ));
            }
        }
        let _ = writeln!(self.text, "ag_end:");
        for history in &driver.histories {
            self.line(&format!("ag_free(ag_of_{history}.values);"));
        }
        self.line("ag_free(ag_memory);");
        self.line("return ag_code;");
        Ok(())
    }

    fn block(&mut self, body: &[Stmt]) -> Exportable<()> {
        body.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn nested(&mut self, body: &[Stmt]) -> Exportable<()> {
        self.depth += 1;
        self.block(body)?;
        self.depth -= 1;
        Ok(())
    }

    fn stmt(&mut self, stmt: &Stmt) -> Exportable<()> {
        match stmt {
            Stmt::For(all) => self.launch(all)?,
            Stmt::Set(var, e) => {
                let value = self.slot(*e)?;
                self.line(&format!("ag_{var} = {value};"));
            }
            Stmt::Loop {
                var,
                lo,
                hi,
                step,
                body,
            } => {
                let [lo, hi] = [self.slot(*lo)?, self.slot(*hi)?];
                let ahead = if *step > 0 { "<" } else { ">" };
                self.line(&format!(
                    "for (int64_t ag_at = (int32_t){lo}, ag_to = (int32_t){hi}; ag_at {ahead} ag_to; ag_at += {step}) {{"
                ));
                self.line(&format!("    ag_{var} = (uint64_t)(int32_t)ag_at;"));
                self.nested(body)?;
                self.line("}");
            }
            Stmt::If(cond, then, otherwise) => {
                let cond = self.slot(*cond)?;
                self.line(&format!("if ({cond}) {{"));
                self.nested(then)?;
                if !otherwise.is_empty() {
                    self.line("} else {");
                    self.nested(otherwise)?;
                }
                self.line("}");
            }
            Stmt::Break => self.line("break;"),
            Stmt::Continue => self.line("continue;"),
            Stmt::Call(call) => self.call(call)?,
            Stmt::Run(run) => self.check(run),
            Stmt::Store(_) | Stmt::Clear(_) => {
                unreachable!("fields have been refused, and stores are in a `for`")
            }
        }
        Ok(())
    }

    fn call(&mut self, call: &Call) -> Exportable<()> {
        let [value, history] = call.kept().expect("other libraries have been refused");
        let function = match call.library {
            Library::Push => "ag_push",
            _ => "ag_pop",
        };
        let (name, bytes) = (&self.driver.names[&value], self.driver.bytes(value)?);
        self.line(&format!(
            "AG_TRY({function}(&ag_of_{history}, {name}, {bytes}));"
        ));
        Ok(())
    }

    /// A check of a number: other kernels of the user's have been refused.
    fn check(&mut self, run: &Run) {
        let region = &self.driver.program.regions[run.region];
        let (least, message) = region.least().expect("it is a check");
        let name = &self.driver.names[&run.arrays[0]];
        let message = quoted(&message.replace('%', "%%").replace("{}", "%d"));
        self.line(&format!(
            "AG_TRY(ag_expect((int32_t)ag_slot({name}, 32, 1), {least}, {message}));"
        ));
    }

    fn launch(&mut self, all: &For) -> Exportable<()> {
        let driver = self.driver;
        let (number, kernel) = &driver.kernels.of[all];
        let mut args = Vec::new();
        for &buffer in &kernel.buffers {
            args.push(format!("AG_AT({})", driver.names[&buffer]));
            let shape = driver.shape(buffer)?;
            match shape.is_empty() {
                true => args.push("1".to_owned()),
                false => args.extend(shape.iter().map(u64::to_string)),
            }
        }
        for scalar in &kernel.scalars {
            args.push(match scalar {
                Parameter::Extent(dim) => self.extent(*dim)?,
                Parameter::Var(var) => format!("ag_{var}"),
            });
        }
        if args.is_empty() {
            args.push("0".to_owned());
        }
        let places = self.places(&kernel.sites)?;
        let written = Touched::at_points(driver.program, all).writes;
        let written: Vec<&str> = written
            .iter()
            .map(|b| &driver.program.buffers[*b].name[..])
            .collect();
        self.line(&format!(
            "{{ /* {} */",
            written.join(", ").replace("*/", "* /")
        ));
        self.line(&format!(
            "    const uint64_t ag_args[] = {{{}}};",
            args.join(", ")
        ));
        self.line(&format!(
            "    AG_TRY(ag_kernel{number}(ag_memory, ag_args, {places}));"
        ));
        self.line("}");
        Ok(())
    }

    /// The table of the accesses that a kernel checks here.
    fn places(&mut self, sites: &[Site]) -> Exportable<String> {
        if sites.is_empty() {
            return Ok("0".to_owned());
        }
        let name = format!("ag_places{}", self.n_places);
        self.n_places += 1;
        let rows = sites.iter().map(|&site| {
            let axes = self.driver.program.sites[site].from_end.iter();
            let mask = axes
                .filter(|&&k| k < 64)
                .fold(0_u64, |mask, k| mask | 1 << k);
            let line = (self.driver.request.line)(site).unwrap_or_default();
            format!("{{{}, {mask}}}", quoted(&line))
        });
        let rows: Vec<String> = rows.collect();
        let _ = writeln!(
            self.places,
            "static const struct ag_place {name}[] = {{{}}};",
            rows.join(", ")
        );
        Ok(name)
    }

    /// A value of the host as 64 bits: an integer extended, a float as its bits.
    fn slot(&self, e: Expr) -> Exportable<String> {
        let program = self.driver.program;
        Ok(match &program.exprs[e] {
            ExprDef::Const(value) => match value.ty() {
                ScalarType::I32 => format!("({})", value.as_i128()),
                _ => format!("{:#x}ull", value.slot()),
            },
            ExprDef::Var(var, _) => format!("ag_{var}"),
            ExprDef::Extent(dim) => self.extent(*dim)?,
            ExprDef::Load { buffer, ty, .. } => {
                let bits = 8 * ty.bytes();
                let is_signed = i32::from(ty.is_int() && ty.is_signed());
                format!(
                    "ag_slot({}, {bits}, {is_signed})",
                    self.driver.names[buffer]
                )
            }
            _ => unreachable!("`prepare` has made kernels of other expressions"),
        })
    }

    fn extent(&self, dim: Dim) -> Exportable<String> {
        Ok(format!("({})", self.driver.sizes.number(dim)?))
    }
}
