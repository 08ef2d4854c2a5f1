//! Lowering: the syntax tree of a kernel, with what Python knows, becomes a module in stage Structured.
//!
//! A partial evaluator. An expression is a `Val`: known to Python now, or made of IR values; operations on the former
//! are done at once, operations on the latter become instructions. `ti.func`s are lowered where they are called.

mod calls;
mod core;
mod derivatives;
mod loops;
mod values;

use std::path::Path;
use std::rc::Rc;

use aerogel_base::hash::LookupMap;
use aerogel_base::{Diagnostic, Diagnostics, ErrorKind, ScalarType, SourceId, Span, SpanData};
use aerogel_ir::{
    Arg, Builder, FastMath, FieldId, Function, Module, Op, ParamData, ParamType, Region, Type,
    Value,
};
use bumpalo::Bump;

use self::core::limits::Spent;
use self::core::naming::Naming;
use self::core::reports::Reports;
pub(crate) use self::core::reports::{Reported, Res};
use self::core::returns::Exit;
use self::loops::config::NextLoop;
use aerogel_compiler::caught;

pub use self::values::TextureAccess;
pub(crate) use self::values::{SeqKind, Val, tensor_type};
use crate::ast::{FuncDef, Stmt, TextRange};
use crate::derived::Derived;
use crate::host::*;
use crate::infer::Defaults;
use crate::parse;
use crate::scope::{BindingKind, Scopes};
use calls::real_functions::Reals;

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

/// What a kernel returns.
#[derive(Clone, Debug)]
pub enum ReturnType {
    One(Type),
    Struct(Rc<StructType>),
    Tuple(Vec<ReturnType>),
}

impl ReturnType {
    /// The types of the values by which it is passed.
    fn types(&self) -> Vec<Type> {
        match self {
            ReturnType::One(ty) => vec![*ty],
            ReturnType::Struct(ty) => {
                let mut leaves = Vec::new();
                values::structs::leaf_types(ty, "", &mut leaves);
                leaves.into_iter().map(|(_, ty)| ty).collect()
            }
            ReturnType::Tuple(types) => types.iter().flat_map(ReturnType::types).collect(),
        }
    }
}

/// Options that change what the source means.
#[derive(Clone, Debug)]
pub struct FrontendConfig {
    pub default_ip: ScalarType,
    pub default_fp: ScalarType,
    pub short_circuit: bool,
    /// Whether `assert` is compiled.
    pub debug: bool,
    pub fast_math: FastMath,
    /// Whether it is for a GPU.
    pub gpu: bool,
    /// What is to be made of the module: fields and arrays then bring along those of their derivatives.
    pub derivative: Option<Derived>,
}

impl Default for FrontendConfig {
    fn default() -> Self {
        Self {
            default_ip: ScalarType::I32,
            default_fp: ScalarType::F32,
            short_circuit: true,
            debug: false,
            fast_math: FastMath::Accumulations,
            gpu: false,
            derivative: None,
        }
    }
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

/// What a statement is inside of, from the outermost scope inwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    If,
    /// The loop of a task; `breakable` when its iterations run in order.
    Parallel {
        breakable: bool,
    },
    Loop,
    /// A loop unrolled by `ti.static`.
    Static,
    /// What runs unless the function being inlined has returned.
    Guard,
}

impl Control {
    /// Whether this is a loop that a `break` instruction leaves.
    pub(crate) fn is_loop(self) -> bool {
        matches!(self, Control::Parallel { .. } | Control::Loop)
    }
}

/// A function being lowered: the kernel, or a `ti.func` inside it.
pub(crate) struct Frame<'a> {
    scope: Handle,
    body: &'a [Stmt<'a>],
    source: SourceId,
    /// The call, for the spans of the inlined text.
    call: Span,
    scopes: Scopes,
    /// How much of `control` belongs to the callers.
    control_base: usize,
    exit: Exit,
}

pub(crate) struct Parsed<'a> {
    def: FuncDef<'a>,
    source: FuncSource,
    id: SourceId,
}

/// The function being lowered, and what its text has come to.
pub(crate) struct FunctionState<'a> {
    func: Function,
    /// Where the next instruction goes.
    region: Region,
    result: Option<ReturnType>,
    /// The function, and the `ti.func`s inside each other that are inlined here.
    frames: Vec<Frame<'a>>,
    control: Vec<Control>,
    /// Whether what is lowered stands under `ti.static`.
    in_static: bool,
    /// Where the statement being lowered begins: a region, how many instructions were there, and the depth of blocks.
    statement: (Region, usize, usize),
    /// From `ti.loop_config`, until the next statement.
    next_loop: NextLoop,
    /// Bytes that the threads of a block share in the parallel loop around.
    shared_bytes: u64,
    /// The element that the loop around this place, over elements of a mesh, has come to.
    mesh_loop: Option<(Rc<ElementsRef>, Value)>,
    /// The objects whose `__init__` is being lowered, with the depth of control at which that began.
    making: Vec<(Rc<[Val]>, usize)>,
    /// The storage of what a real function takes by reference.
    references: Vec<Value>,
    /// How many bytes of stack a real function leaves; nothing for the kernel.
    room: Option<Value>,
}

impl FunctionState<'_> {
    fn new(func: Function, result: Option<ReturnType>) -> Self {
        Self {
            region: func.body,
            statement: (func.body, 0, 0),
            func,
            result,
            frames: Vec::new(),
            control: Vec::new(),
            in_static: false,
            next_loop: NextLoop::default(),
            shared_bytes: 0,
            mesh_loop: None,
            making: Vec::new(),
            references: Vec::new(),
            room: None,
        }
    }
}

/// A kernel being lowered: what it knows of Python, the module, and the function it is at.
pub(crate) struct Lower<'a, 'h> {
    arena: &'a Bump,
    host: &'h mut dyn Host,
    config: &'h FrontendConfig,
    module: Module,
    naming: Naming,
    state: FunctionState<'a>,
    reals: Reals,
    /// How many enclosing expressions are lowered for their type only.
    probing: usize,
    /// The text being lowered.
    range: TextRange,
    reports: Reports,
    spent: Spent,
    parsed: LookupMap<Handle, Rc<Parsed<'a>>>,
    /// The arrays outside of which there is the element at the edge.
    clamped: Vec<Arg>,
    /// The arrays of Python's that have become parameters.
    captured: Vec<(Handle, Arg)>,
    /// The arrays whose derivatives are parameters too.
    differentiated: Vec<Arg>,
    /// The fields at which derivatives stop.
    stopped: Vec<FieldId>,
}

impl<'a, 'h> Lower<'a, 'h> {
    fn new(
        arena: &'a Bump,
        host: &'h mut dyn Host,
        config: &'h FrontendConfig,
        result: Option<ReturnType>,
    ) -> Self {
        let mut module = Module::default();
        module.env.fast_math = config.fast_math;
        Self {
            arena,
            host,
            config,
            module,
            naming: Naming::default(),
            state: FunctionState::new(Function::new("", true), result),
            reals: Reals::default(),
            probing: 0,
            range: TextRange::default(),
            reports: Reports::default(),
            spent: Spent::default(),
            parsed: LookupMap::default(),
            clamped: Vec::new(),
            captured: Vec::new(),
            differentiated: Vec::new(),
            stopped: Vec::new(),
        }
    }

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

    fn frame(&mut self) -> &mut Frame<'a> {
        self.state
            .frames
            .last_mut()
            .expect("a function is being lowered")
    }

    fn scopes(&mut self) -> &mut Scopes {
        &mut self.frame().scopes
    }

    /// Whether a loop here is at the kernel's outermost scope.
    fn at_top_level(&self) -> bool {
        self.state.func.is_kernel
            && self
                .state
                .control
                .iter()
                .all(|control| *control == Control::Static)
    }

    /// Whether this is inside a loop whose iterations run in parallel.
    fn in_parallel(&self) -> bool {
        self.state
            .control
            .iter()
            .any(|control| matches!(control, Control::Parallel { .. }))
    }

    fn defaults(&self) -> Defaults {
        Defaults {
            int: self.config.default_ip,
            float: self.config.default_fp,
        }
    }

    /// The span of the text being lowered.
    fn span(&mut self) -> Span {
        let Some(frame) = self.state.frames.last() else {
            return Span::NONE;
        };
        self.module.env.spans.intern(SpanData {
            source: frame.source,
            start: self.range.lo,
            end: self.range.hi,
            inlined_at: frame.call,
        })
    }

    fn builder(&mut self) -> Builder<'_> {
        let span = self.span();
        let mut builder = Builder::new(&mut self.state.func, self.state.region);
        builder.span = span;
        builder
    }

    fn value(&mut self, op: impl Into<Op>, ty: Type) -> Value {
        self.builder().value(op, ty)
    }

    fn effect(&mut self, op: impl Into<Op>) {
        self.builder().effect(op);
    }

    fn ty(&self, value: Value) -> Type {
        self.state.func.ty(value)
    }

    /// Lowers into `region` what `body` says.
    fn within<T>(&mut self, region: Region, body: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.state.region, region);
        let result = body(self);
        self.state.region = outer;
        result
    }
}
