//! Lowering: the syntax tree of a kernel, with what Python knows, becomes a module in stage Structured.
//!
//! A partial evaluator. An expression is a `Val`: known to Python now, or made of IR values; operations on the former
//! are done at once, operations on the latter become instructions. `ti.func`s are lowered where they are called.

mod calls;
mod core;
mod derivatives;
mod loops;
mod state;
mod values;

use std::path::Path;
use std::rc::Rc;

use aerogel_base::{Diagnostic, Diagnostics, ErrorKind, ScalarType, Span, SpanData};
use aerogel_ir::{Arg, Module, Op, ParamData, ParamType, Type};
use bumpalo::Bump;

pub(crate) use self::core::reports::{Reported, Res};
pub(crate) use self::state::{
    Control, Exit, Frame, FunctionState, Limit, Lower, Naming, NextLoop, Parsed, Real, Spent,
};
pub use self::state::{FrontendConfig, ReturnType};
use aerogel_compiler::caught;

pub use self::values::TextureAccess;
pub(crate) use self::values::{SeqKind, Val, tensor_type};
use crate::host::*;
use crate::parse;
use crate::scope::{BindingKind, Scopes};

/// What a kernel's parameter is in this instance of the kernel.
#[derive(Clone, Debug)]
pub enum ParamBinding {
    Scalar(ScalarType),
    Tensor(Type),
    Struct(Rc<StructType>),
    Template(Known),
    Array {
        elem: Type,
        ndim: u32,
        /// Whether an index outside means the element at the edge.
        clamp: bool,
        /// Whether an array of its derivatives comes behind all arguments.
        derivative: bool,
    },
    /// A texture, whose texels are an array of vectors.
    Texture {
        texel: Type,
        access: TextureAccess,
    },
    /// Arguments that travel together.
    Pack(Vec<(String, ParamBinding)>, Vec<Rc<FuncRef>>),
}

/// A lowered kernel.
#[derive(Debug)]
pub struct Lowered {
    pub module: Module,
    /// Which tree of the process each tree of the module is.
    pub trees: Vec<TreeKey>,
    /// The arrays of Python's that it uses, which it takes behind its own arguments.
    pub captured: Vec<Handle>,
    /// What is allowed but probably not meant, and where.
    pub warnings: Vec<(Span, String)>,
}

impl Lowered {
    /// The warnings as text, with file, line and caret; nothing of files in the folder `library`, about which the
    /// user can do nothing.
    pub fn render_warnings(&self, library: &Path) -> Vec<String> {
        let env = &self.module.env;
        let is_users = |(span, _): &&(Span, String)| {
            let at = env.spans.get(*span);
            at.is_none_or(|at| !Path::new(&env.sources[at.source].path).starts_with(library))
        };
        let text = |(span, message): &(Span, String)| {
            let mut out = message.clone();
            aerogel_base::render::render_place(&mut out, *span, None, &env.spans, &env.sources);
            out
        };
        self.warnings.iter().filter(is_users).map(text).collect()
    }
}

/// Why a kernel cannot be lowered, with what rendering needs.
#[derive(Debug)]
pub struct LowerError {
    pub diagnostics: Diagnostics,
    pub spans: aerogel_base::SpanTable,
    pub sources: aerogel_base::render::Sources,
}

impl LowerError {
    /// All diagnostics as text.
    pub fn render(&self) -> String {
        aerogel_base::render::render_all(&self.diagnostics, &self.spans, &self.sources)
    }
}

/// Lowers a kernel for the given parameters.
pub fn lower_kernel(
    source: &FuncSource,
    params: &[(String, ParamBinding)],
    result: Option<&ReturnType>,
    host: &mut dyn Host,
    config: &FrontendConfig,
) -> Result<Lowered, LowerError> {
    let arena = Bump::new();
    let mut lower = Lower::new(&arena, host, config, result.cloned());
    // What it could not do it has reported.
    if let Err(panic) = caught(|| lower.kernel(source, params).is_ok()) {
        lower.broken(&panic);
    }
    let Lower {
        mut module,
        state,
        naming,
        captured,
        reports,
        ..
    } = lower;
    match reports.finish() {
        Ok(warnings) => {
            module.funcs.push(state.func);
            Ok(Lowered {
                module,
                trees: naming.trees,
                captured: captured.into_iter().map(|(handle, _)| handle).collect(),
                warnings,
            })
        }
        Err(diagnostics) => Err(LowerError {
            diagnostics,
            spans: module.env.spans,
            sources: module.env.sources,
        }),
    }
}

impl<'a> Lower<'a, '_> {
    fn kernel(&mut self, source: &FuncSource, params: &[(String, ParamBinding)]) -> Res<()> {
        let parsed = self.parse(source)?;
        let def = parsed.def;
        self.state.func.name = def.name.to_string();
        self.state.func.results = self
            .state
            .result
            .as_ref()
            .map_or_else(Vec::new, ReturnType::types);
        self.enter_frame(&parsed, Span::NONE)?;
        for (name, binding) in params {
            let val = self.kernel_param(name, binding);
            let kind = match binding {
                ParamBinding::Template(_) => BindingKind::Alias,
                _ => BindingKind::Parameter,
            };
            self.scopes().bind(name, kind, val);
        }
        let flow = self.block(def.body);
        self.range = def.range;
        self.finish_function(&def, &flow)?;
        self.state.frames.pop();
        self.append_derivatives();
        self.finish_reals();
        Ok(())
    }

    fn kernel_param(&mut self, name: &str, binding: &ParamBinding) -> Val {
        if let ParamBinding::Pack(members, methods) = binding {
            let mut ty = StructType::untyped(members.iter().map(|(name, _)| name.as_str()));
            ty.methods.clone_from(methods);
            let members = members
                .iter()
                .map(|(member, binding)| self.kernel_param(&format!("{name}.{member}"), binding))
                .collect();
            return Val::Struct(Rc::new(ty), members);
        }
        if let ParamBinding::Struct(ty) = binding {
            let mut leaves = Vec::new();
            values::structs::leaf_types(ty, name, &mut leaves);
            let values: Vec<Val> = leaves
                .iter()
                .map(|(name, ty)| self.kernel_param(name, &ParamBinding::Tensor(*ty)))
                .collect();
            return values::structs::from_leaves(ty, &mut values.into_iter());
        }
        let arg = Arg::from_u32(self.state.func.params.len() as u32);
        let mut param = |ty| {
            self.state.func.params.push(ParamData {
                name: name.to_string(),
                ty,
                of: None,
            })
        };
        let ty = match binding {
            ParamBinding::Struct(_) | ParamBinding::Pack(..) => unreachable!("taken apart above"),
            ParamBinding::Template(known) => return Val::Known(known.clone()),
            ParamBinding::Array {
                elem,
                ndim,
                clamp,
                derivative,
            } => {
                let (elem, ndim) = (*elem, *ndim);
                if *clamp {
                    self.clamped.push(arg);
                }
                if *derivative {
                    self.differentiated.push(arg);
                }
                param(ParamType::Array {
                    elem,
                    ndim,
                    read_only: true,
                });
                return Val::Array(arg);
            }
            ParamBinding::Texture { texel, access } => {
                param(ParamType::Array {
                    elem: *texel,
                    ndim: access.ndim,
                    read_only: true,
                });
                return Val::Texture(Rc::new(values::Texture {
                    name: name.to_owned(),
                    texels: arg,
                    access: access.clone(),
                }));
            }
            ParamBinding::Scalar(scalar) => Type::Scalar(*scalar),
            ParamBinding::Tensor(ty) => *ty,
        };
        param(ParamType::Value(ty));
        Val::Value(self.value(Op::Arg { arg }, ty))
    }

    /// Parses a function and registers its text.
    fn parse(&mut self, source: &FuncSource) -> Res<Rc<Parsed<'a>>> {
        if let Some(parsed) = self.parsed.get(&source.scope) {
            return Ok(parsed.clone());
        }
        let id = self.module.env.sources.push(source.file.clone());
        match parse::parse_function(self.arena, &source.file.text) {
            Ok(def) => {
                if def.is_async {
                    let span = self.module.env.spans.intern(SpanData {
                        source: id,
                        start: def.range.lo,
                        end: def.range.hi,
                        inlined_at: Span::NONE,
                    });
                    let message = "kernels and functions that they call cannot be `async`";
                    let mistake = Diagnostic::new(ErrorKind::Syntax, "E0102", span, message);
                    return Err(self.report(mistake.note("write `def` without `async`")));
                }
                let parsed = Rc::new(Parsed {
                    def,
                    source: source.clone(),
                    id,
                });
                self.parsed.insert(source.scope, parsed.clone());
                Ok(parsed)
            }
            Err(error) => {
                let span = self.module.env.spans.intern(SpanData {
                    source: id,
                    start: error.range.lo,
                    end: error.range.hi,
                    inlined_at: Span::NONE,
                });
                let mistake = Diagnostic::new(ErrorKind::Syntax, "E0101", span, error.message);
                Err(self.report(mistake))
            }
        }
    }

    fn enter_frame(&mut self, parsed: &Parsed<'a>, call: Span) -> Res<()> {
        let scope = parsed.source.scope;
        // What ends a recursion may be the very condition that did not choose this call.
        if self.probing > 0 && self.state.frames.iter().any(|frame| frame.scope == scope) {
            return self.not_probed();
        }
        self.expect_end(parsed.def.name, |frame| frame.scope == scope)?;
        let mut scopes = Scopes::default();
        scopes.enter();
        let entry = (
            self.state.region,
            self.state.func.regions[self.state.region].insts.len(),
        );
        self.state.frames.push(Frame {
            scope: parsed.source.scope,
            body: parsed.def.body,
            source: parsed.id,
            call,
            scopes,
            control_base: self.state.control.len(),
            exit: Exit::new(entry, &parsed.def),
        });
        Ok(())
    }
}
