//! The state of lowering a kernel: the module, the current function, and the facts known so far.

use std::rc::Rc;

use aerogel_base::hash::LookupMap;
use aerogel_base::{ScalarType, SourceId, Span, SpanData};
use aerogel_ir::{
    Arg, Builder, FastMath, FieldId, FuncId, Function, Inst, LoopAttrs, Module, Op, Region, Type,
    Value,
};
use aerogel_snode::NodeId;
use bumpalo::Bump;

use super::core::reports::{Reported, Reports};
use super::values::Val;
use crate::ast::{FuncDef, Stmt, TextRange};
use crate::derived::Derived;
use crate::host::*;
use crate::infer::Defaults;
use crate::scope::Scopes;

/// The result type of a kernel.
#[derive(Clone, Debug)]
pub enum ReturnType {
    One(Type),
    Struct(Rc<StructType>),
    Tuple(Vec<ReturnType>),
}

/// Options that change what the source means.
#[derive(Clone, Debug)]
pub struct FrontendConfig {
    pub default_ip: ScalarType,
    pub default_fp: ScalarType,
    pub short_circuit: bool,
    /// Whether `assert` is compiled.
    pub debug: bool,
    /// Whether data races are looked for.
    pub debug_races: bool,
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
            debug_races: false,
            fast_math: FastMath::Accumulations,
            gpu: false,
            derivative: None,
        }
    }
}

/// The constructs around a statement, from the outermost scope inwards.
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
    /// Code that runs unless the inlined function has returned.
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
    pub(super) scope: Handle,
    pub(super) body: &'a [Stmt<'a>],
    pub(super) source: SourceId,
    /// The call, for the spans of the inlined text.
    pub(super) call: Span,
    pub(super) scopes: Scopes,
    /// How much of `control` belongs to the callers.
    pub(super) control_base: usize,
    pub(super) exit: Exit,
}

/// A function that has been parsed.
pub(crate) struct Parsed<'a> {
    pub(super) def: FuncDef<'a>,
    pub(super) source: FuncSource,
    pub(super) id: SourceId,
}

/// How an inlined function returns from inside loops and branches.
#[derive(Clone, Debug)]
pub(crate) struct Exit {
    /// Where the storage of the flag and the result is made: before the function's first instruction.
    pub(super) entry: (Region, usize),
    /// Whether the result has been stored.
    pub(super) returned: Option<Value>,
    /// Storage of the result; nothing as long as no value was returned.
    pub(super) result: Option<Val>,
    /// For each `return` that has been lowered, how many loops it stands in.
    pub(super) depths: Vec<usize>,
    /// Whether the arms of `if`s cannot simply yield the result.
    pub(super) flagged: bool,
}

/// The settings of `ti.loop_config` for the next loop.
#[derive(Clone, Copy, Default)]
pub(crate) struct NextLoop {
    pub(super) attrs: LoopAttrs,
    /// Where `fast_math` is set.
    pub(super) level_at: Option<Span>,
}

/// The function being lowered, and what its text has come to.
pub(crate) struct FunctionState<'a> {
    pub(super) func: Function,
    /// Where the next instruction goes.
    pub(super) region: Region,
    pub(super) result: Option<ReturnType>,
    /// The function, and the `ti.func`s inside each other that are inlined here.
    pub(super) frames: Vec<Frame<'a>>,
    pub(super) control: Vec<Control>,
    /// Whether what is lowered stands under `ti.static`.
    pub(super) in_static: bool,
    /// Where the statement being lowered begins: a region, how many instructions were there, and the depth of blocks.
    pub(super) statement: (Region, usize, usize),
    /// From `ti.loop_config`, until the next statement.
    pub(super) next_loop: NextLoop,
    /// Bytes that the threads of a block share in the parallel loop around.
    pub(super) shared_bytes: u64,
    /// The element that the loop around this place, over elements of a mesh, has come to.
    pub(super) mesh_loop: Option<(Rc<ElementsRef>, Value)>,
    /// The objects whose `__init__` is being lowered, with the depth of control at which that began.
    pub(super) making: Vec<(Rc<[Val]>, usize)>,
    /// The storage of what a real function takes by reference.
    pub(super) references: Vec<Value>,
    /// How many bytes of stack a real function leaves; nothing for the kernel.
    pub(super) room: Option<Value>,
}

impl FunctionState<'_> {
    pub(super) fn new(func: Function, result: Option<ReturnType>) -> Self {
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

/// What lowering has taken: `core/limits.rs`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spent {
    pub(super) steps: usize,
    pub(super) turns: usize,
    /// How deep the expression being lowered is nested in its function.
    pub(super) depth: usize,
    /// Set when the rest is not looked at.
    pub(super) ended: Option<Reported>,
}

/// The fields and trees that the module has taken up: `core/naming.rs`.
#[derive(Default)]
pub(crate) struct Naming {
    /// Which tree of the process each tree of the module is.
    pub(super) trees: Vec<TreeKey>,
    /// Fields by their placement: the key of a component's field begins with that of the whole field.
    pub(super) fields: LookupMap<(TreeKey, Vec<NodeId>), FieldId>,
    /// The names of fields, each with the last number that was put behind it.
    pub(super) taken: LookupMap<String, u32>,
}

/// The real functions of a module.
#[derive(Default)]
pub(crate) struct Reals {
    /// By the Python function and how it is called.
    pub(super) made: LookupMap<(Handle, String), Rc<Real>>,
    /// What is decided when all are there.
    pub(super) limits: Vec<Limit>,
    /// The functions that are being made, each inside of the one before.
    pub(super) open: Vec<Handle>,
}

/// A real function that has been made.
pub(crate) struct Real {
    pub(super) id: FuncId,
    pub(super) result: Option<ReturnType>,
}

/// A check of how much stack is left, decided when all functions are there.
pub(crate) struct Limit {
    pub(super) func: FuncId,
    /// The constant that says how much stack a call takes.
    pub(super) frame: Value,
    pub(super) check: Inst,
}

/// A kernel being lowered: what it knows of Python, the module, and the function it is at.
pub(crate) struct Lower<'a, 'h> {
    pub(super) arena: &'a Bump,
    pub(super) host: &'h mut dyn Host,
    pub(super) config: &'h FrontendConfig,
    pub(super) module: Module,
    pub(super) naming: Naming,
    pub(super) state: FunctionState<'a>,
    pub(super) reals: Reals,
    /// How many enclosing expressions are lowered for their type only.
    pub(super) probing: usize,
    /// The text being lowered.
    pub(super) range: TextRange,
    pub(super) reports: Reports,
    pub(super) spent: Spent,
    pub(super) parsed: LookupMap<Handle, Rc<Parsed<'a>>>,
    /// The arrays outside of which there is the element at the edge.
    pub(super) clamped: Vec<Arg>,
    /// The arrays of Python's that have become parameters.
    pub(super) captured: Vec<(Handle, Arg)>,
    /// The arrays whose derivatives are parameters too.
    pub(super) differentiated: Vec<Arg>,
    /// The fields at which derivatives stop.
    pub(super) stopped: Vec<FieldId>,
    /// The values that Python code has or had; nothing for those of a region that has been left.
    pub(super) traced: Vec<Option<Val>>,
}

impl<'a, 'h> Lower<'a, 'h> {
    pub(super) fn new(
        arena: &'a Bump,
        host: &'h mut dyn Host,
        config: &'h FrontendConfig,
        result: Option<ReturnType>,
    ) -> Self {
        let mut module = Module::default();
        module.env.fast_math = config.fast_math;
        module.env.debug_races = config.debug_races;
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
            traced: Vec::new(),
        }
    }

    pub(super) fn frame(&mut self) -> &mut Frame<'a> {
        let frame = self.state.frames.last_mut();
        frame.expect("a function is being lowered")
    }

    pub(super) fn scopes(&mut self) -> &mut Scopes {
        &mut self.frame().scopes
    }

    /// Whether a loop here is at the kernel's outermost scope.
    pub(super) fn at_top_level(&self) -> bool {
        let mut control = self.state.control.iter();
        self.state.func.is_kernel && control.all(|control| *control == Control::Static)
    }

    /// Whether this is inside a loop whose iterations run in parallel.
    pub(super) fn in_parallel(&self) -> bool {
        let mut control = self.state.control.iter();
        control.any(|control| matches!(control, Control::Parallel { .. }))
    }

    pub(super) fn defaults(&self) -> Defaults {
        Defaults {
            int: self.config.default_ip,
            float: self.config.default_fp,
        }
    }

    /// The span of the text being lowered.
    pub(super) fn span(&mut self) -> Span {
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

    pub(super) fn builder(&mut self) -> Builder<'_> {
        let span = self.span();
        let mut builder = Builder::new(&mut self.state.func, self.state.region);
        builder.span = span;
        builder
    }

    pub(super) fn value(&mut self, op: impl Into<Op>, ty: Type) -> Value {
        self.builder().value(op, ty)
    }

    pub(super) fn effect(&mut self, op: impl Into<Op>) {
        self.builder().effect(op);
    }

    pub(super) fn ty(&self, value: Value) -> Type {
        self.state.func.ty(value)
    }

    /// Lowers into `region` what `body` says.
    pub(super) fn within<T>(&mut self, region: Region, body: impl FnOnce(&mut Self) -> T) -> T {
        let n_traced = self.traced.len();
        let outer = std::mem::replace(&mut self.state.region, region);
        let result = body(self);
        self.state.region = outer;
        self.end_traced(n_traced);
        result
    }
}
