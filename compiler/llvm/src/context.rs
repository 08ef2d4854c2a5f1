//! The module and the function that are being made.
//!
//! The entry block of a function loads everything that does not change during a launch (arguments,
//! array addresses and shapes, the roots of trees), each emitted at its first use, so that the
//! rest of the function uses plain values. It also holds the storage of locals, which LLVM then
//! promotes to values.

use std::rc::Rc;

use aerogel_base::ScalarType;
use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::LookupMap;
use aerogel_ir::analysis::{Accumulations, Ranges, accumulations, decisive};
use aerogel_ir::{Arg, FastMath, FuncId, Function, Inst, Module, Op, Region, TreeId, Value, walk};
use aerogel_runtime::abi::offset;
use inkwell::AddressSpace;
use inkwell::basic_block::BasicBlock;
use inkwell::context::Context;
use inkwell::module::Module as LlvmModule;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{FastMathFlags, FunctionValue, MetadataValue, PhiValue, PointerValue};

use crate::builder::{Builder, Opcode, Val, basic};
use crate::changed::Changed;
use crate::images::Images;
use crate::interior::Outcome;
use crate::lines::Lines;
use crate::math::{Arith, FAST};
use crate::sites::Sites;
use crate::slots::first_slot;
use crate::target::Target;
use crate::task_state::TaskState;
use crate::{device_code, types};

/// A GPU's address space of the memory that all threads see.
const GLOBAL: u16 = 1;

/// Where a function comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Origin {
    /// The kernel's module.
    User,
    /// `runtime/device/`
    Device,
}

/// What the functions of one LLVM module share.
pub(crate) struct ModuleCx<'a, 'ctx> {
    pub(crate) ctx: &'ctx Context,
    pub(crate) llvm: &'a LlvmModule<'ctx>,
    pub(crate) target: &'a Target,
    pub(crate) user: &'a Module,
    pub(crate) kernel: FuncId,
    pub(crate) funcs: LookupMap<(Origin, FuncId), FunctionValue<'ctx>>,
    pub(crate) tags: LookupMap<String, MetadataValue<'ctx>>,
    pub(crate) sites: &'a Sites,
    pub(crate) groups: Vec<MetadataValue<'ctx>>,
    pub(crate) loops: Vec<MetadataValue<'ctx>>,
    /// The same, requesting vectors even against LLVM's cost model.
    pub(crate) vectors: Vec<MetadataValue<'ctx>>,
    /// The same, requesting no vectors: the loop is short.
    pub(crate) scalars: Vec<MetadataValue<'ctx>>,
    /// The same, requesting vectors of few lanes.
    pub(crate) narrow: Vec<MetadataValue<'ctx>>,
    /// Marks for loops that are not to be unrolled, one for each `for`.
    pub(crate) rolled: Vec<MetadataValue<'ctx>>,
    /// Marks for loops that are neither unrolled nor vectorised, one for each `for`.
    pub(crate) plain: Vec<MetadataValue<'ctx>>,
    /// How many iterations are run at once where they diverge; nothing for one.
    pub(crate) lanes: Option<u32>,
    /// What each task adds to.
    pub(crate) images: &'a [Images],
    /// How long the user's functions are, with those that are inlined into them.
    pub(crate) lengths: SecondaryMap<FuncId, Option<usize>>,
    /// The accumulations of each function, with or without those of its loops.
    pub(crate) accumulations: LookupMap<(Origin, FuncId, bool), Rc<Accumulations>>,
    /// Where instructions have locations.
    pub(crate) lines: Option<Lines<'ctx>>,
}

/// How a function is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// A task: results go to the context.
    Task,
    /// A function: returns whether it failed, and its results.
    Function,
}

/// What an LLVM function is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    pub(crate) origin: Origin,
    pub(crate) id: FuncId,
    /// The region of that function that is lowered.
    pub(crate) region: Region,
    pub(crate) leave: Leave,
    /// A level of fast maths in place of the module's.
    pub(crate) fast_math: Option<FastMath>,
}

/// One LLVM function in the making.
pub(crate) struct FuncCx<'c, 'a, 'ctx> {
    pub(crate) cx: &'c mut ModuleCx<'a, 'ctx>,
    pub(crate) b: Builder<'a, 'ctx>,
    pub(crate) module: &'a Module,
    pub(crate) origin: Origin,
    pub(crate) id: FuncId,
    pub(crate) func: &'a Function,
    pub(crate) llvm: FunctionValue<'ctx>,
    pub(crate) leave: Leave,
    pub(crate) flags: FastMathFlags,
    /// Whether accumulations may be regrouped.
    pub(crate) reassociates: bool,
    /// What is computed as it is written, fast or not.
    pub(crate) exact: SecondaryMap<Inst, bool>,
    pub(crate) accumulations: Rc<Accumulations>,
    pub(crate) entry: BasicBlock<'ctx>,
    pub(crate) values: SecondaryMap<Value, Option<Val<'ctx>>>,
    /// What is known beforehand, in the inside of a row.
    pub(crate) outcomes: LookupMap<Value, Outcome>,
    pub(crate) loops: Vec<Loop<'ctx>>,
    pub(crate) task: Option<TaskState<'ctx>>,
    /// What is known of the counters of loops.
    pub(crate) ranges: Ranges,
    /// What the task of a GPU changes.
    pub(crate) changed: Option<Changed>,
    /// The access group of the parallel loop that instructions stand in.
    pub(crate) group: Option<MetadataValue<'ctx>>,
    /// Set where both sides of branches are computed.
    pub(crate) flat: Option<Flat<'ctx>>,
    /// Whether the loop around is a nest of few iterations.
    pub(crate) in_short_nest: bool,
    /// Whether the function multiplies matrices in tiles. Its time goes there: all loops around are left small.
    pub(crate) is_tiled: bool,
    /// The storage of the random state; null where nothing draws.
    pub(crate) random: Option<PointerValue<'ctx>>,
    /// The storage of the iteration's number, if it is used.
    pub(crate) linear: Option<PointerValue<'ctx>>,
    loaded: LookupMap<Invariant, Val<'ctx>>,
    /// The handle of each `buffer`, which is given back where the function is left.
    pub(crate) buffers: Vec<(Inst, PointerValue<'ctx>)>,
    /// The storage in which a GPU thread counts its loop iterations.
    pub(crate) turns: Option<Val<'ctx>>,
}

/// Where `continue` and `break` of a loop lead, and the phis of the values they carry there.
pub(crate) struct Loop<'ctx> {
    pub(crate) next: BasicBlock<'ctx>,
    pub(crate) next_phis: Vec<PhiValue<'ctx>>,
    pub(crate) exit: BasicBlock<'ctx>,
    pub(crate) exit_phis: Vec<PhiValue<'ctx>>,
}

/// Branches of which both sides are computed, so that LLVM may make vectors of what they stand in.
#[derive(Clone, Copy)]
pub(crate) struct Flat<'ctx> {
    /// Whether the program would be here; nothing if it is in any case.
    pub(crate) here: Option<Val<'ctx>>,
    /// What is read where the program would not be: memory that is always there.
    pub(crate) anything: Val<'ctx>,
}

/// A value that does not change during a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Invariant {
    Context(u64),
    Root(TreeId),
    Range(TreeId, u64),
    Slot(usize, Option<ScalarType>),
    Image(usize),
}

impl<'c, 'a, 'ctx> FuncCx<'c, 'a, 'ctx> {
    /// A context that stands after the entry block of an LLVM function without blocks.
    pub(crate) fn new(
        cx: &'c mut ModuleCx<'a, 'ctx>,
        llvm: FunctionValue<'ctx>,
        scope: Scope,
    ) -> Self {
        let Scope {
            origin,
            id,
            region,
            leave,
            ..
        } = scope;
        let module = match origin {
            Origin::User => cx.user,
            Origin::Device => device_code::module(),
        };
        let func = &module.funcs[id];
        let fast_math = scope.fast_math.unwrap_or(module.env.fast_math);
        let of_loops = fast_math == FastMath::Accumulations;
        let key = (origin, id, of_loops);
        let found = cx.accumulations.get(&key).cloned();
        let accumulations =
            found.unwrap_or_else(|| Rc::new(accumulations(func, &module.env, of_loops)));
        cx.accumulations.insert(key, Rc::clone(&accumulations));
        let b = Builder::new(cx.ctx, cx.llvm, cx.target);
        b.attribute(llvm, "nounwind");
        if let Some(width) = cx.target.vector_width {
            b.text_attribute(llvm, "prefer-vector-width", &width.to_string());
        }
        if !cx.target.grid {
            // What the estimate instructions give differs from one processor to the next.
            b.text_attribute(llvm, "reciprocal-estimates", "none");
        }
        let entry = b.block(llvm, "entry");
        let start = b.block(llvm, "start");
        b.at(start);
        Self {
            cx,
            b,
            module,
            origin,
            id,
            func,
            llvm,
            leave,
            flags: match fast_math {
                FastMath::Full => FAST,
                FastMath::Accumulations | FastMath::Off => FastMathFlags::empty(),
            },
            reassociates: fast_math != FastMath::Off,
            exact: match fast_math {
                FastMath::Off => SecondaryMap::new(),
                _ if module.env.exact_decisions => decisive(func, region),
                _ => SecondaryMap::new(),
            },
            accumulations,
            entry,
            values: SecondaryMap::new(),
            outcomes: LookupMap::default(),
            loops: Vec::new(),
            task: None,
            ranges: Ranges::default(),
            changed: None,
            group: None,
            flat: None,
            in_short_nest: false,
            is_tiled: is_tiled(func, region),
            random: None,
            linear: None,
            loaded: LookupMap::default(),
            buffers: Vec::new(),
            turns: None,
        }
    }

    /// Closes the entry block; to be called last.
    pub(crate) fn finish(self) {
        let start = self.entry.get_next_basic_block();
        self.b.at(self.entry);
        self.b
            .br(start.expect("the start block follows the entry block"));
    }

    /// Writes instructions into the entry block.
    pub(crate) fn in_entry<T>(&mut self, write: impl FnOnce(&mut Self) -> T) -> T {
        let here = self.b.current();
        self.b.at(self.entry);
        let result = write(self);
        self.b.at(here);
        result
    }

    pub(crate) fn value(&self, value: Value) -> Val<'ctx> {
        self.values[value].expect("a value is defined before it is used")
    }

    pub(crate) fn values(&self, values: &[Value]) -> Vec<Val<'ctx>> {
        values.iter().map(|&v| self.value(v)).collect()
    }

    pub(crate) fn llvm_ty(&self, value: Value) -> BasicTypeEnum<'ctx> {
        self.b.ty(self.func.ty(value))
    }

    pub(crate) fn arith(&self, ty: ScalarType) -> Arith<'_, 'a, 'ctx> {
        Arith {
            b: &self.b,
            ty,
            lanes: None,
            flags: self.flags,
        }
    }

    /// The launch context: every function's first parameter.
    pub(crate) fn context(&self) -> Val<'ctx> {
        self.llvm
            .get_first_param()
            .expect("the context comes first")
    }

    /// A pointer or number in the launch context.
    pub(crate) fn context_field(&mut self, at: u64) -> Val<'ctx> {
        let ty = if at == offset::SEED {
            basic(self.b.i64_type())
        } else {
            basic(self.b.ptr_type())
        };
        self.invariant(Invariant::Context(at), |s| {
            let context = s.context();
            s.load_invariant(ty, context, at)
        })
    }

    /// The root's cell of a tree.
    pub(crate) fn root(&mut self, tree: TreeId) -> Val<'ctx> {
        let roots = self.context_field(offset::ROOTS);
        self.invariant(Invariant::Root(tree), |s| {
            let ty = basic(s.b.ptr_type());
            s.load_invariant(ty, roots, u64::from(tree.as_u32()) * 8)
        })
    }

    /// Where a range of a tree's memory begins whose offset lies at `at`.
    pub(crate) fn tree_range(&mut self, tree: TreeId, at: u64) -> Val<'ctx> {
        let root = self.root(tree);
        self.invariant(Invariant::Range(tree, at), |s| {
            let offset = s.load_invariant(basic(s.b.i64_type()), root, at);
            s.b.offset(root, offset)
        })
    }

    /// How far a thread's own copy of an image lies from it.
    pub(crate) fn image_distance(&mut self, image: usize) -> Val<'ctx> {
        let apart = self.context_field(offset::APART);
        self.invariant(Invariant::Image(image), |s| {
            s.load_invariant(basic(s.b.i64_type()), apart, image as u64 * 8)
        })
    }

    /// The value of an argument slot: an address if `ty` is absent.
    pub(crate) fn slot(&mut self, slot: usize, ty: Option<ScalarType>) -> Val<'ctx> {
        let args = self.context_field(offset::ARGS);
        self.invariant(Invariant::Slot(slot, ty), |s| {
            let stored = ty.map_or_else(|| basic(s.b.ptr_type()), |ty| types::stored(s.b.ctx, ty));
            let value = s.load_invariant(stored, args, slot as u64 * 8);
            ty.map_or(value, |ty| s.b.of_stored(ty, value))
        })
    }

    fn invariant(
        &mut self,
        key: Invariant,
        load: impl FnOnce(&mut Self) -> Val<'ctx>,
    ) -> Val<'ctx> {
        if let Some(&value) = self.loaded.get(&key) {
            return value;
        }
        let value = self.in_entry(load);
        self.loaded.insert(key, value);
        value
    }

    pub(crate) fn load_invariant(
        &self,
        ty: BasicTypeEnum<'ctx>,
        base: Val<'ctx>,
        at: u64,
    ) -> Val<'ctx> {
        let place = self.b.offset(base, self.b.i64(at as i64));
        // What a GPU finds in its own memory names its own memory.
        let is_global = self.cx.target.grid && ty.is_pointer_type();
        let held = match is_global {
            true => basic(self.b.ctx.ptr_type(AddressSpace::from(GLOBAL))),
            false => ty,
        };
        let (value, inst) = self.b.load(held, place);
        self.b.mark(inst, "invariant.load", self.b.node(&[]));
        match is_global {
            true => self.b.cast(Opcode::AddrSpaceCast, value, ty),
            false => value,
        }
    }

    /// The first slot of an argument.
    pub(crate) fn first_slot(&self, arg: Arg) -> usize {
        first_slot(&self.module.env, self.func, arg)
    }

    pub(crate) fn array_address(&mut self, array: Arg) -> Val<'ctx> {
        let slot = self.first_slot(array);
        self.slot(slot, None)
    }

    /// The size of an array along an axis, as `i64`.
    pub(crate) fn array_extent(&mut self, array: Arg, axis: u32) -> Val<'ctx> {
        let slot = self.first_slot(array) + 1 + axis as usize;
        self.slot(slot, Some(ScalarType::I64))
    }
}

/// Whether a region multiplies matrices in tiles.
fn is_tiled(func: &Function, region: Region) -> bool {
    let mut found = false;
    walk(func, region, &mut |func, inst| {
        found |= matches!(func[inst], Op::TileProduct { .. });
    });
    found
}
