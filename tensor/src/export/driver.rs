//! The function in C that does what a run of the plan does: temporaries, loops, branches, and calls of kernels.

use std::fmt::Write;

use aerogel_base::ScalarType;
use aerogel_compiler::export::{ALIGN, Header, c_type, includes, quoted};
use indexmap::{IndexMap, IndexSet};

use super::kernels::Kernels;
use super::layout::layout;
use super::{Exportable, Request, Sizes, refused};
use crate::ir::{
    Buffer, Call, Dim, Expr, ExprDef, For, Library, Program, Run, Site, Stmt, Touched, visit_host,
};
use crate::lower::Parameter;

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
        for code in kernels.library.codes() {
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
        let mut arrays = String::new();
        for (declared, buffer, is_value) in &self.parameters {
            if !is_value {
                let shape: Vec<String> = self.shape(*buffer)?.iter().map(u64::to_string).collect();
                let ty = self.program.buffers[*buffer].ty;
                let _ = writeln!(arrays, " *   {declared}: {ty}[{}]", shape.join(", "));
            }
        }
        let header = Header {
            name: self.request.name,
            what: "A program of tensors",
            arrays: &arrays,
            prototype: &self.prototype(),
        };
        Ok(header.text())
    }

    pub(super) fn source(&self) -> Exportable<String> {
        let name = self.request.name;
        let mut out = includes(name);
        for (number, &crossing) in self.crossing.iter().enumerate() {
            self.kernels.library.function(&mut out, number, crossing);
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

    fn shape(&self, buffer: Buffer) -> Exportable<Vec<u64>> {
        self.sizes.shape(self.program, buffer)
    }

    fn bytes(&self, buffer: Buffer) -> Exportable<u64> {
        self.sizes.bytes(self.program, buffer)
    }
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
            "    AG_TRY(ag_kernel{number}(ag_memory, ag_args, 0, {places}));"
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
