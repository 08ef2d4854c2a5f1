//! IR as text. Values are numbered in the order of the text, so that a difference of two texts
//! shows the change and not the renumbering.

use std::fmt::Write;

use aerogel_base::entity::SecondaryMap;

use crate::func::{Function, ParamType};
use crate::module::{Env, Module};
use crate::op_field::FieldPrinter;
use crate::op_kinds::{Derivative, FastMath};
use crate::types::{FieldId, FuncId, Region, Type, Value};

/// The text of a whole module.
pub fn print_module(module: &Module) -> String {
    let mut out = String::new();
    match module.env.fast_math {
        FastMath::Off => {}
        FastMath::Accumulations => out.push_str("fast_accumulations\n"),
        FastMath::Full => out.push_str("fast_math\n"),
    }
    if module.env.exact_decisions {
        out.push_str("exact_decisions\n");
    }
    if module.env.arrays_apart {
        out.push_str("arrays_apart\n");
    }
    if module.env.debug_races {
        out.push_str("debug_races\n");
    }
    if module.env.deterministic {
        out.push_str("deterministic\n");
    }
    for (id, tree) in &module.env.trees {
        let _ = writeln!(out, "{id} {{ {tree} }}");
    }
    for (id, members) in module.env.structs.iter().enumerate() {
        let members: Vec<String> = members
            .iter()
            .map(|(name, ty)| format!("{name}: {ty}"))
            .collect();
        let _ = writeln!(out, "struct{id} {{ {} }}", members.join(", "));
    }
    for field in module.env.fields.values() {
        let places: Vec<String> = field.places.iter().map(ToString::to_string).collect();
        let _ = write!(
            out,
            "field @{}: {} = {} [{}]",
            field.name,
            field.elem,
            field.tree,
            places.join(", ")
        );
        if !field.offset.is_empty() {
            let _ = write!(out, " offset {:?}", field.offset);
        }
        for &kind in Derivative::ALL {
            if let Some(other) = field.derivative(kind) {
                let _ = write!(out, " {kind} @{}", module.env.fields[other].name);
            }
        }
        out.push('\n');
    }
    for (k, func) in module.funcs.values().enumerate() {
        if k > 0 || !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&print_in(func, &module.env, Some(module)));
    }
    out
}

/// The text of one function.
pub fn print_function(func: &Function, env: &Env) -> String {
    print_in(func, env, None)
}

fn print_in(func: &Function, env: &Env, module: Option<&Module>) -> String {
    let mut p = FuncPrinter {
        out: String::new(),
        func,
        env,
        module,
        number: SecondaryMap::new(),
        n_values: 0,
        indent: 0,
    };
    p.function();
    p.out
}

/// Prints one function; instruction fields write themselves through it (`FieldPrinter`).
struct FuncPrinter<'a> {
    out: String,
    func: &'a Function,
    env: &'a Env,
    module: Option<&'a Module>,
    number: SecondaryMap<Value, Option<u32>>,
    n_values: u32,
    indent: usize,
}

impl FuncPrinter<'_> {
    fn function(&mut self) {
        let func = self.func;
        let _ = write!(
            self.out,
            "{} @{}(",
            if func.is_kernel { "kernel" } else { "func" },
            func.name
        );
        if func.is_kernel {
            self.kernel_params();
        } else {
            self.params(func.body);
        }
        self.out.push(')');
        if !func.is_kernel && !func.params.is_empty() {
            self.out.push_str(" of (");
            self.kernel_params();
            self.out.push(')');
        }
        if !func.results.is_empty() {
            let results: Vec<String> = func.results.iter().map(Type::to_string).collect();
            let _ = write!(self.out, " -> {}", results.join(", "));
        }
        self.out.push(' ');
        self.block(func.body);
        self.out.push('\n');
    }

    fn kernel_params(&mut self) {
        for (k, param) in self.func.params.iter().enumerate() {
            self.sep_if(k > 0);
            let _ = match param.ty {
                ParamType::Value(ty) => write!(self.out, "{}: {ty}", param.name),
                ParamType::Array {
                    elem,
                    ndim,
                    read_only,
                } => {
                    let mode = if read_only { ", read" } else { "" };
                    write!(self.out, "{}: array<{elem}, {ndim}{mode}>", param.name)
                }
            };
            if let Some((kind, arg)) = param.of {
                let _ = write!(self.out, " {kind} {arg}");
            }
        }
    }

    fn params(&mut self, region: Region) {
        for (k, &v) in self.func.regions[region].params.iter().enumerate() {
            self.sep_if(k > 0);
            self.define(v);
        }
    }

    fn define(&mut self, value: Value) {
        self.number[value] = Some(self.n_values);
        let _ = write!(self.out, "v{}: {}", self.n_values, self.func.ty(value));
        self.n_values += 1;
    }

    fn block(&mut self, region: Region) {
        self.out.push_str("{\n");
        self.indent += 1;
        for &inst in &self.func.regions[region].insts {
            self.out.push_str(&"    ".repeat(self.indent));
            let op = &self.func[inst];
            // Results are defined after the instruction, but their names stand before it.
            let results = &self.func.insts[inst].results;
            for (k, &v) in results.iter().enumerate() {
                self.sep_if(k > 0);
                self.define(v);
            }
            if !results.is_empty() {
                self.out.push_str(" = ");
            }
            self.out.push_str(op.mnemonic().unwrap_or(""));
            op.print_fields(self);
            self.out.push('\n');
        }
        self.indent -= 1;
        self.out.push_str(&"    ".repeat(self.indent));
        self.out.push('}');
    }
}

impl FieldPrinter for FuncPrinter<'_> {
    fn region(&mut self, region: Region) {
        if !self.func.regions[region].params.is_empty() {
            self.out.push('(');
            self.params(region);
            self.out.push_str(") ");
        }
        self.block(region);
    }

    fn text(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn sep(&mut self, first: bool) {
        self.out.push_str(if first { " " } else { ", " });
    }

    fn sep_if(&mut self, needed: bool) {
        if needed {
            self.out.push_str(", ");
        }
    }

    fn value(&mut self, value: Value) {
        let _ = match self.number[value] {
            Some(n) => write!(self.out, "v{n}"),
            // Not defined before its use: the verifier says so, the printer shows the raw id.
            None => write!(self.out, "v?{}", value.as_u32()),
        };
    }

    fn field_name(&self, field: FieldId) -> String {
        self.env
            .fields
            .get(field)
            .map_or_else(|| format!("?{field}"), |f| f.name.clone())
    }

    fn func_name(&self, func: FuncId) -> String {
        self.module
            .map_or_else(|| func.to_string(), |m| m.funcs[func].name.clone())
    }
}
