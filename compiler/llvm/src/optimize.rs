//! From LLVM IR to machine code: LLVM's pass pipeline and its code generator.

use inkwell::OptimizationLevel;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{FileType, TargetMachine};

use crate::target::Target;

/// How much LLVM may do, from 0 to 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OptLevel(pub u8);

/// What is spent on a module. LLVM's vectorisers, its loop passes and its allocation of registers
/// take time that grows faster than the code: of code so long that it would be felt, less is made.
struct Effort {
    pipeline: &'static str,
    codegen: OptimizationLevel,
    vectorize: bool,
}

/// Instructions up to which all is done. The kernels of simulations have some hundreds; one that
/// writes out the 27 neighbours of a particle has two thousand.
const ALL_UP_TO: usize = 4000;
/// Instructions up to which registers are allocated with care.
const SOME_UP_TO: usize = 8000;
/// Loops up to which there are passes over loops.
const LOOPS_UP_TO: usize = 256;

/// Passes over straight code only.
const STRAIGHT: &str = "always-inline,function(sroa,early-cse<memssa>,instcombine,simplifycfg,\
                        reassociate,early-cse,dse,adce)";

impl Effort {
    fn new(level: OptLevel, module: &Module<'_>) -> Self {
        let blocks = module.get_functions().flat_map(|f| f.get_basic_blocks());
        let (mut n_insts, mut n_blocks) = (0, 0);
        for block in blocks {
            n_insts += block.get_instructions().count();
            n_blocks += 1;
        }
        // A loop has a head, a body, an end and a block behind it.
        let many_loops = n_blocks / 4 > LOOPS_UP_TO;
        let (pipeline, codegen) = match level.0 {
            // Real functions are marked for inlining, so nothing searches for what to keep.
            0 => (
                "always-inline,function(sroa,early-cse)",
                OptimizationLevel::None,
            ),
            _ if n_insts > SOME_UP_TO => (STRAIGHT, OptimizationLevel::None),
            _ if many_loops => (STRAIGHT, OptimizationLevel::Less),
            1 => ("default<O1>", OptimizationLevel::Less),
            _ if n_insts > ALL_UP_TO => ("default<O1>", OptimizationLevel::Less),
            2 => ("default<O2>", OptimizationLevel::Default),
            _ => ("default<O3>", OptimizationLevel::Aggressive),
        };
        Self {
            pipeline,
            codegen,
            vectorize: level.0 >= 2,
        }
    }
}

/// A module made into code.
#[derive(Clone, Debug, Default)]
pub struct Code {
    /// The object file; for PTX its text.
    pub object: Vec<u8>,
    /// LLVM IR after optimisation, if asked for.
    pub llvm_ir: Option<String>,
    /// Assembly, if asked for.
    pub assembly: Option<String>,
}

/// Optimises `module` and makes an object file of it.
///
/// # Panics
/// If LLVM finds the module broken, which is a bug of this crate.
pub fn compile(module: &Module<'_>, target: &Target, level: OptLevel, with_text: bool) -> Code {
    let effort = Effort::new(level, module);
    let machine = target.machine(effort.codegen);
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
    let options = PassBuilderOptions::create();
    options.set_loop_vectorization(effort.vectorize);
    options.set_loop_slp_vectorization(effort.vectorize);
    options.set_loop_interleaving(effort.vectorize);
    options.set_loop_unrolling(effort.vectorize);
    module
        .run_passes(effort.pipeline, &machine, options)
        .expect("the pipeline's text is valid");
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

fn emit(machine: &TargetMachine, module: &Module<'_>, kind: FileType) -> Vec<u8> {
    let buffer = machine
        .write_to_memory_buffer(module, kind)
        .expect("the target makes object files and assembly");
    let bytes = buffer.as_slice();
    // inkwell's slice counts the terminating zero that LLVM keeps behind the bytes.
    bytes[..buffer.get_size().min(bytes.len())].to_vec()
}
