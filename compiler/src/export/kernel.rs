//! One kernel of the user's as a function of C.
//!
//! ```text
//! def scale(by: ti.f32, x: ti.types.ndarray()) -> ti.f32
//! =>
//! int scale(float by, float *x, int64_t x_size0, float *out);
//! ```

use std::fmt::Write;

use aerogel_base::ScalarType;
use aerogel_ir::{Module, ParamType, Type};

use super::{ALIGN, ExportError, Exported, Header, Library, c_type, includes};
use crate::driver::Compiler;

/// How a kernel is exported. Names are identifiers of C, and differ.
pub struct Request<'a> {
    /// The name of the function.
    pub name: &'a str,
    /// The parameters, in the kernel's order.
    pub parameters: Vec<Parameter>,
    /// The names of the parameters for results.
    pub outputs: Vec<String>,
}

/// The names of a parameter.
pub struct Parameter {
    /// Its own.
    pub name: String,
    /// Those of the sizes of its axes, if it is an array.
    pub sizes: Vec<String>,
}

/// Exports the kernel of a module at stage `Structured`, which uses no fields.
///
/// # Errors
/// If it needs Aerogel when it runs.
///
/// # Panics
/// If the module has no kernel, or one with other parameters.
pub fn export(
    module: &Module,
    compiler: &Compiler,
    request: &Request<'_>,
) -> Result<Exported, ExportError> {
    let mut library = Library::default();
    library.add(compiler, request.name, module.clone())?;
    let function = Function::of(module, request);
    Ok(Exported {
        header: function.header(request.name),
        driver: function.source(request, &library),
        library: library.archive(),
        llvm: library.llvm(),
    })
}

/// The function in C while it is put together.
#[derive(Default)]
struct Function {
    /// What it declares: parameters, then results.
    declared: Vec<String>,
    /// A line for each array in the header.
    arrays: String,
    /// The slots that the kernel takes.
    slots: Vec<String>,
    /// The memory of each array: its address, its bytes, and whether it is written.
    spans: Vec<String>,
    /// The parameters that are sizes.
    sizes: Vec<String>,
    /// Copies of results to the caller.
    copies: Vec<String>,
    n_results: usize,
}

impl Function {
    fn of(module: &Module, request: &Request<'_>) -> Self {
        let kernel = module.kernel().expect("the module has a kernel");
        let mut made = Self::default();
        for (param, names) in kernel.params.iter().zip(&request.parameters) {
            match param.ty {
                ParamType::Value(ty) => made.value(ty, &names.name),
                ParamType::Array {
                    elem, read_only, ..
                } => made.array(elem, read_only, names),
            }
        }
        for (&ty, name) in kernel.results.iter().zip(&request.outputs) {
            made.result(ty, name);
        }
        made
    }

    fn value(&mut self, ty: Type, name: &str) {
        let elem = elem(ty);
        let is_signed = i32::from(elem.is_int() && elem.is_signed());
        let bits = 8 * elem.bytes();
        if ty.is_tensor() {
            let declared = format!("const {} *{name}", c_type(elem));
            self.describe(&declared, elem, &[], ty);
            self.declared.push(declared);
            let slots =
                (0..ty.n_elems()).map(|k| format!("ag_slot({name} + {k}, {bits}, {is_signed})"));
            self.slots.extend(slots);
        } else {
            self.declared.push(format!("{} {name}", c_type(elem)));
            self.slots
                .push(format!("ag_slot(&{name}, {bits}, {is_signed})"));
        }
    }

    fn array(&mut self, ty: Type, read_only: bool, names: &Parameter) {
        let (elem, name) = (elem(ty), &names.name);
        let constant = if read_only { "const " } else { "" };
        let declared = format!("{constant}{} *{name}", c_type(elem));
        self.describe(&declared, elem, &names.sizes, ty);
        self.declared.push(declared);
        self.slots.push(format!("AG_AT({name})"));
        let mut bytes = format!("{}", u64::from(elem.bytes()) * u64::from(ty.n_elems()));
        for size in &names.sizes {
            self.declared.push(format!("int64_t {size}"));
            self.slots.push(format!("(uint64_t){size}"));
            self.sizes.push(size.clone());
            let _ = write!(bytes, " * (size_t){size}");
        }
        let is_written = i32::from(!read_only);
        self.spans
            .push(format!("{{{name}, {bytes}, {is_written}}}"));
    }

    fn result(&mut self, ty: Type, name: &str) {
        let elem = elem(ty);
        let declared = format!("{} *{name}", c_type(elem));
        self.describe(&declared, elem, &[], ty);
        self.declared.push(declared);
        for k in 0..ty.n_elems() {
            let slot = self.n_results;
            self.copies.push(format!(
                "ag_copy({name} + {k}, &ag_results[{slot}], sizeof *{name});"
            ));
            self.n_results += 1;
        }
    }

    /// Says in the header what lies behind a pointer.
    fn describe(&mut self, declared: &str, elem: ScalarType, sizes: &[String], ty: Type) {
        let own = ty.shape().into_iter().map(|n| n.to_string());
        let shape: Vec<String> = sizes.iter().cloned().chain(own).collect();
        let _ = writeln!(self.arrays, " *   {declared}: {elem}[{}]", shape.join(", "));
    }

    fn prototype(&self, name: &str) -> String {
        let declared = match self.declared.is_empty() {
            true => "void".to_owned(),
            false => self.declared.join(", "),
        };
        format!("int {name}({declared})")
    }

    fn header(&self, name: &str) -> String {
        let header = Header {
            name,
            what: "A kernel",
            arrays: &self.arrays,
            prototype: &self.prototype(name),
        };
        header.text()
    }

    fn source(&self, request: &Request<'_>, library: &Library) -> String {
        let name = request.name;
        let mut out = includes(name);
        library.function(&mut out, 0, 0);
        let bytes = (library.codes()[0].temp_bytes as u64).next_multiple_of(ALIGN);
        let mut lines = vec![
            "int ag_code = 0;".to_owned(),
            "char *ag_memory = 0;".to_owned(),
            format!("uint64_t ag_results[{}] = {{0}};", self.n_results.max(1)),
        ];
        let slots = match self.slots.is_empty() {
            true => "0".to_owned(),
            false => self.slots.join(", "),
        };
        lines.push(format!("const uint64_t ag_args[] = {{{slots}}};"));
        if !self.spans.is_empty() {
            let (n, spans) = (self.spans.len(), self.spans.join(", "));
            let sizes = self.sizes.iter();
            lines.extend(sizes.map(|size| format!("AG_TRY(ag_size(\"{size}\", {size}));")));
            lines.push(format!("const struct ag_span ag_spans[] = {{{spans}}};"));
            lines.push(format!("AG_TRY(ag_overlap(ag_spans, {n}));"));
        }
        lines.push(format!(
            "AG_TRY(ag_allocate(&ag_memory, {0}, {0}));",
            bytes.max(ALIGN)
        ));
        lines.push("AG_TRY(ag_kernel0(ag_memory, ag_args, ag_results, 0));".to_owned());
        lines.extend(self.copies.iter().cloned());
        let _ = writeln!(out, "{} {{", self.prototype(name));
        for line in lines {
            let _ = writeln!(out, "    {line}");
        }
        let _ = writeln!(
            out,
            "ag_end:\n    ag_free(ag_memory);\n    return ag_code;\n}}\n\n\
             const char *{name}_message(void) {{\n    return ag_message;\n}}"
        );
        out
    }
}

/// The scalar of a type that kernels take and return.
fn elem(ty: Type) -> ScalarType {
    ty.elem()
        .expect("kernels take and return scalars and tensors")
}
