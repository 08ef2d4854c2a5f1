//! From LLVM IR to machine code: LLVM's pass pipeline and its code generator.

use std::num::NonZero;

use inkwell::OptimizationLevel;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::builder::{Builder, BuilderError};
use inkwell::context::{Context, ContextRef};
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{FileType, TargetMachine};
use inkwell::types::AnyTypeEnum;
use inkwell::values::{BasicValueEnum, FunctionValue, InstructionOpcode, InstructionValue};

use crate::divisors;
use crate::far;
use crate::products;
use crate::target::Target;

/// How much LLVM may do, from 0 to 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OptLevel(pub u8);

/// What is spent on a module. LLVM's vectorisers, its loop passes and its allocation of registers
/// take time that grows faster than the code: of code so long that it would be felt, less is made.
struct Effort {
    pipeline: Pipeline,
    codegen: OptimizationLevel,
}

/// Instructions up to which all is done. The kernels of simulations have some hundreds; one that
/// writes out the 27 neighbours of a particle has two thousand.
const ALL_UP_TO: usize = 4000;
/// Instructions up to which registers are allocated with care.
const SOME_UP_TO: usize = 8000;
/// Loops up to which there are passes over loops.
const LOOPS_UP_TO: usize = 128;

/// What the code generator spends where nothing speaks against it. `Aggressive` adds a second
/// scheduling behind the allocation of registers, which takes a seventh of the time and gains
/// nothing on processors that execute out of order.
const CODEGEN: OptimizationLevel = OptimizationLevel::Default;
/// Up to this many instructions the code generator does so. If a processor's description requests a second scheduling after
/// register allocation, that takes a third of the time for a block of some thousand instructions.
const CODEGEN_UP_TO: usize = 3000;

/// Inlines what is marked for it.
const INLINE: &str = "always-inline";

/// Passes over straight code only. `instcombine` by itself would end the process where one round leaves something to
/// combine.
const STRAIGHT: &str = concat!(
    "function(sroa,early-cse<memssa>,instcombine<max-iterations=1;no-verify-fixpoint>,simplifycfg,",
    "reassociate,early-cse,dse,adce)",
);

/// What LLVM's `default<O3>` does up to its loop vectoriser, without what has nothing to do in a
/// module of one task: passes over globals, other languages, profiles, and calls between functions.
const BEFORE_LOOP_VECTORIZER: &str = concat!(
    "function<eager-inv>(sroa<modify-cfg>,early-cse<>),",
    "cgscc(devirt<4>(inline,function-attrs<skip-non-recursive-function-attrs>,",
    "function<eager-inv;no-rerun>(",
    "sroa<modify-cfg>,early-cse<memssa>,speculative-execution<only-if-divergent-target>,",
    "jump-threading,correlated-propagation,",
    "simplifycfg<switch-range-to-icmp>,instcombine<max-iterations=1;no-verify-fixpoint>,",
    "aggressive-instcombine,tailcallelim,reassociate,constraint-elimination,",
    "loop-mssa(loop-instsimplify,loop-simplifycfg,licm<no-allowspeculation>,loop-rotate,",
    "licm<allowspeculation>,simple-loop-unswitch<nontrivial;trivial>),",
    "simplifycfg<switch-range-to-icmp>,instcombine<max-iterations=1;no-verify-fixpoint>,",
    "loop(loop-idiom,indvars,loop-deletion,loop-unroll-full),",
    "sroa<modify-cfg>,vector-combine,mldst-motion,gvn,sccp,bdce,",
    "instcombine<max-iterations=1;no-verify-fixpoint>,jump-threading,correlated-propagation,",
    "adce,memcpyopt,dse,loop-mssa(licm<allowspeculation>),",
    "simplifycfg<switch-range-to-icmp;switch-to-arithmetic;hoist-common-insts;sink-common-insts>,",
    "instcombine<max-iterations=1;no-verify-fixpoint>))),",
    "globaldce",
);

/// The loop vectoriser, and what `default<O3>` does beside it.
const VECTORIZE_LOOPS: &str = concat!(
    "function<eager-inv>(float2int,loop(loop-rotate,loop-deletion),loop-vectorize,",
    "infer-alignment,loop-load-elim,instcombine<max-iterations=1;no-verify-fixpoint>,",
    "simplifycfg<forward-switch-cond;switch-range-to-icmp;switch-to-arithmetic;switch-to-lookup;",
    "no-keep-loops;hoist-common-insts;sink-common-insts>)",
);

/// Vectors from straight code.
const VECTORIZE_STRAIGHT: &str = "function<eager-inv>(slp-vectorizer,vector-combine,\
                                  instcombine<max-iterations=1;no-verify-fixpoint>)";

/// What `default<O3>` does behind its vectorisers.
const BEHIND_VECTORIZERS: &str = concat!(
    "function<eager-inv>(loop-unroll<O3>,sroa<preserve-cfg>,infer-alignment,",
    "instcombine<max-iterations=1;no-verify-fixpoint>,loop-mssa(licm<allowspeculation>),",
    "loop-sink,instsimplify,div-rem-pairs,tailcallelim,",
    "simplifycfg<switch-range-to-icmp;switch-to-arithmetic;hoist-common-insts;",
    "hoist-loads-stores-with-cond-faulting;speculate-unpredictables>),globaldce",
);

/// What is done to a module before code is generated.
enum Pipeline {
    /// These passes.
    Of(&'static str),
    /// What takes time in proportion to the code, for a code generator without optimisation.
    Long,
    /// All that makes code fast.
    Full,
}

impl Pipeline {
    fn run<'ctx>(&self, made: &Making<'_, 'ctx>, machine: &TargetMachine) {
        let module = made.module;
        let run = |passes: &str| run(module, passes, machine);
        match self {
            Self::Of(passes) => {
                made.open_guards(machine);
                run(passes);
            }
            Self::Long => {
                made.open_guards(machine);
                run(STRAIGHT);
                select_by_bits(module);
            }
            Self::Full => {
                run(BEFORE_LOOP_VECTORIZER);
                far::offer(module);
                run(VECTORIZE_LOOPS);
                made.open_guards(machine);
                if divisors::run(made.ctx, module, made.target) {
                    run(INLINE);
                }
                // Beside a loop in vectors stands the same in scalars, for the rest of the row: there
                // is nothing to gain from it, and the search would take longer than all else.
                if !mostly_vectors(module) {
                    run(VECTORIZE_STRAIGHT);
                }
                run(BEHIND_VECTORIZERS);
            }
        }
    }
}

/// A module that is being compiled.
struct Making<'a, 'ctx> {
    ctx: &'ctx Context,
    module: &'a Module<'ctx>,
    target: &'a Target,
}

impl Making<'_, '_> {
    /// Makes branches of the guards of `far`.
    fn open_guards(&self, machine: &TargetMachine) {
        if far::open(self.ctx, self.module, self.target) {
            run(self.module, INLINE, machine);
        }
    }
}

fn run(module: &Module<'_>, passes: &str, machine: &TargetMachine) {
    let options = PassBuilderOptions::create();
    let done = module.run_passes(passes, machine, options);
    done.expect("the pipeline's text is valid");
}

/// Makes choices between floats out of operations on their bits.
///
/// Without optimisation the x86 code generator makes a branch of each choice, which cuts a block
/// in two. It moves all instructions behind the cut, so that thousands of choices in one block take
/// a time that grows with their square.
///
/// Fast maths may call the arm that is not chosen poison, and poison goes through operations on bits.
/// Nothing draws conclusions from it any more: no pass runs behind this one, and the code generator
/// runs without optimisation.
fn select_by_bits(module: &Module<'_>) {
    let context = module.get_context();
    let builder = context.create_builder();
    let blocks = module.get_functions().flat_map(|f| f.get_basic_blocks());
    for block in blocks {
        let selects = block.get_instructions().filter(|inst| {
            inst.get_opcode() == InstructionOpcode::Select && inst.get_type().is_float_type()
        });
        for select in selects.collect::<Vec<_>>() {
            builder.position_before(&select);
            let chosen = by_bits(&context, &builder, select).expect("the operands have the types");
            select.replace_all_uses_with(&chosen);
            select.erase_from_basic_block();
        }
    }
}

fn by_bits<'ctx>(
    context: &ContextRef<'ctx>,
    builder: &Builder<'ctx>,
    select: InstructionValue<'ctx>,
) -> Result<InstructionValue<'ctx>, BuilderError> {
    let operand = |n| {
        let operand = select.get_operand(n).and_then(|operand| operand.value());
        operand.expect("a choice has three operands")
    };
    let ty = select.get_type().into_float_type();
    let width = NonZero::new(ty.get_bit_width()).expect("a float has bits");
    let bits = context
        .custom_width_int_type(width)
        .expect("integers may be as wide as floats");
    let to_bits = |v: BasicValueEnum<'ctx>| builder.build_bit_cast(v, bits, "");
    let mask = builder.build_int_s_extend(operand(0).into_int_value(), bits, "")?;
    let on_true = to_bits(operand(1))?.into_int_value();
    let on_false = to_bits(operand(2))?.into_int_value();
    let differing = builder.build_xor(on_true, on_false, "")?;
    let taken = builder.build_and(differing, mask, "")?;
    let chosen = builder.build_xor(on_false, taken, "")?;
    // An instruction, since of the condition nothing is known.
    let chosen = builder.build_bit_cast(chosen, ty, "")?.into_float_value();
    Ok(chosen.as_instruction().expect("a choice is no constant"))
}

/// Whether at least a third of the arithmetic that could be vectors is.
fn mostly_vectors(module: &Module<'_>) -> bool {
    let (mut n_vectors, mut n_scalars) = (0, 0);
    let cold = Attribute::get_named_enum_kind_id("cold");
    let is_cold =
        |f: &FunctionValue<'_>| f.get_enum_attribute(AttributeLoc::Function, cold).is_some();
    let funcs = module.get_functions().filter(|f| !is_cold(f));
    let blocks = funcs.flat_map(|f| f.get_basic_blocks());
    for inst in blocks.flat_map(|block| block.get_instructions()) {
        match inst.get_type() {
            AnyTypeEnum::VectorType(_) => n_vectors += 1,
            AnyTypeEnum::FloatType(_) => n_scalars += 1,
            _ => {}
        }
    }
    n_vectors > 0 && 2 * n_vectors >= n_scalars
}

impl Effort {
    fn new(level: OptLevel, module: &Module<'_>) -> Self {
        let blocks = module.get_functions().flat_map(|f| f.get_basic_blocks());
        let (n_insts, n_blocks) = (n_insts(module), blocks.count());
        // A loop has a head, a body, an end and a block behind it.
        let many_loops = n_blocks / 4 > LOOPS_UP_TO;
        use Pipeline::{Full, Long, Of};
        let (pipeline, codegen) = match level.0 {
            // Real functions are marked for inlining, so nothing searches for what to keep.
            0 => (Of("function(sroa,early-cse)"), OptimizationLevel::None),
            _ if n_insts > SOME_UP_TO => (Long, OptimizationLevel::None),
            _ if many_loops => (Of(STRAIGHT), OptimizationLevel::Less),
            1 => (Of("default<O1>"), OptimizationLevel::Less),
            _ if n_insts > ALL_UP_TO => (Of("default<O1>"), OptimizationLevel::Less),
            _ => (Full, CODEGEN),
        };
        Self { pipeline, codegen }
    }
}

fn n_insts(module: &Module<'_>) -> usize {
    let blocks = module.get_functions().flat_map(|f| f.get_basic_blocks());
    blocks.map(|block| block.get_instructions().count()).sum()
}

/// A module made into code.
#[derive(Clone, Debug, Default)]
pub struct Code {
    /// The object file; for PTX its text.
    pub object: Vec<u8>,
    /// LLVM IR after optimisation, if requested.
    pub llvm_ir: Option<String>,
    /// Assembly, if requested.
    pub assembly: Option<String>,
}

/// Optimises `module` and makes an object file of it.
///
/// # Panics
/// If LLVM finds the module broken, which is a bug of this crate.
pub fn compile<'ctx>(
    ctx: &'ctx Context,
    module: &Module<'ctx>,
    target: &Target,
    level: OptLevel,
    with_text: bool,
) -> Code {
    let mut machine = target.machine(CODEGEN);
    // What is written out in the code counts for how much of it there is.
    run(module, INLINE, &machine);
    let effort = Effort::new(level, module);
    if effort.codegen != CODEGEN {
        machine = target.machine(effort.codegen);
    }
    module.set_triple(&machine.get_triple());
    module.set_data_layout(&machine.get_target_data().get_data_layout());
    if cfg!(debug_assertions)
        && let Err(message) = module.verify()
    {
        panic!(
            "LLVM rejects the module: {}\n{}",
            message.to_string_lossy(),
            module.print_to_string().to_string_lossy()
        );
    }
    let made = Making {
        ctx,
        module,
        target,
    };
    effort.pipeline.run(&made, &machine);
    products::open(module);
    if effort.codegen == CODEGEN && n_insts(module) > CODEGEN_UP_TO {
        machine = target.machine(OptimizationLevel::Less);
    }
    let llvm_ir = with_text.then(|| module.print_to_string().to_string_lossy().into_owned());
    // The code generator changes the module, so assembly comes from a copy.
    let assembly = with_text.then(|| {
        let text = emit(&machine, &module.clone(), FileType::Assembly);
        String::from_utf8_lossy(&text).into_owned()
    });
    let ptx = target.triple.starts_with("nvptx");
    let kind = if ptx {
        FileType::Assembly
    } else {
        FileType::Object
    };
    Code {
        object: emit(&machine, module, kind),
        llvm_ir,
        assembly,
    }
}

pub(crate) fn emit(machine: &TargetMachine, module: &Module<'_>, kind: FileType) -> Vec<u8> {
    let buffer = machine
        .write_to_memory_buffer(module, kind)
        .expect("the target makes object files and assembly");
    let bytes = buffer.as_slice();
    // inkwell's slice counts the terminating zero that LLVM keeps behind the bytes.
    bytes[..buffer.get_size().min(bytes.len())].to_vec()
}
