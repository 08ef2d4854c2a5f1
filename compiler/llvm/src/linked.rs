//! Input for linkers of other programs besides the code of kernels: the text of all modules, and data.

use inkwell::OptimizationLevel;
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::targets::FileType;

use crate::optimize::emit;
use crate::target::Target;

/// One module of LLVM IR made of several, whose texts stand one behind the other.
///
/// # Panics
/// If they are no modules, or name one symbol twice.
pub fn link(texts: &str) -> String {
    let context = Context::create();
    let all = context.create_module("kernels");
    for text in texts.split_inclusive("; ModuleID").skip(1) {
        let text = text.strip_suffix("; ModuleID").unwrap_or(text);
        let buffer =
            MemoryBuffer::create_from_memory_range_copy(format!(";{text}").as_bytes(), "kernel");
        let module = context.create_module_from_ir(buffer);
        let linked = all.link_in_module(module.expect("LLVM has printed the text"));
        linked.expect("symbols are unique");
    }
    all.print_to_string().to_string_lossy().into_owned()
}

/// An object file of named bytes.
pub fn data<'d>(target: &Target, named: impl Iterator<Item = (&'d str, &'d [u8])>) -> Vec<u8> {
    let context = Context::create();
    let module = context.create_module("data");
    for (name, bytes) in named {
        let value = context.const_string(bytes, false);
        let global = module.add_global(value.get_type(), None, name);
        global.set_initializer(&value);
        global.set_constant(true);
        global.set_alignment(64);
    }
    let machine = target.machine(OptimizationLevel::None);
    emit(&machine, &module, FileType::Object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_become_one() {
        let module = |name: &str| {
            format!(
                "; ModuleID = 'm'\n@c = private constant i32 1\ndefine i32 @{name}() {{\n  %v = load i32, ptr @c\n  ret i32 %v\n}}\n"
            )
        };
        let text = link(&(module("f") + &module("g")));
        assert!(
            text.contains("define i32 @f()") && text.contains("define i32 @g()"),
            "{text}"
        );
        let constants = text
            .lines()
            .filter(|line| line.contains("private constant"))
            .count();
        assert_eq!(constants, 2, "each module keeps its own: {text}");
    }
}
