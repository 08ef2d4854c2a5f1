//! From LLVM IR to machine code: LLVM's pass pipeline and its code generator.

use inkwell::OptimizationLevel;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{FileType, TargetMachine};

use crate::target::Target;

/// How much LLVM may do, from 0 to 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OptLevel(pub u8);

impl OptLevel {
    fn codegen(self) -> OptimizationLevel {
        match self.0 {
            0 => OptimizationLevel::None,
            1 => OptimizationLevel::Less,
            2 => OptimizationLevel::Default,
            _ => OptimizationLevel::Aggressive,
        }
    }

    /// Real functions are marked for inlining, so the module needs no search for what to keep.
    fn pipeline(self) -> &'static str {
        match self.0 {
            0 => "always-inline,function(sroa,early-cse)",
            1 => "default<O1>",
            2 => "default<O2>",
            _ => "default<O3>",
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
    let machine = target.machine(level.codegen());
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
    options.set_loop_vectorization(level.0 >= 2);
    options.set_loop_slp_vectorization(level.0 >= 2);
    options.set_loop_interleaving(level.0 >= 2);
    options.set_loop_unrolling(level.0 >= 2);
    module
        .run_passes(level.pipeline(), &machine, options)
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
