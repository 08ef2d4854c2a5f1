//! LLVM's diagnostics.
#![expect(
    unsafe_code,
    reason = "inkwell keeps the handler of diagnostics to itself"
)]

use std::cell::RefCell;
use std::ffi::{CStr, c_void};

use inkwell::context::Context;
use inkwell::llvm_sys::LLVMDiagnosticSeverity;
use inkwell::llvm_sys::core::{
    LLVMContextSetDiagnosticHandler, LLVMDisposeMessage, LLVMGetDiagInfoDescription,
    LLVMGetDiagInfoSeverity,
};
use inkwell::llvm_sys::prelude::LLVMDiagnosticInfoRef;

/// The errors that LLVM reports about a context's modules. Without a handler it writes remarks (about a loop that it cannot
/// vectorise as requested) to the standard error, and ends the process at an error.
pub(crate) struct Diagnostics {
    errors: Box<RefCell<Vec<String>>>,
}

impl Diagnostics {
    /// Listens to a context; must live while its modules are compiled.
    pub(crate) fn of(context: &Context) -> Self {
        let errors: Box<RefCell<Vec<String>>> = Box::default();
        let place = std::ptr::from_ref(&*errors).cast_mut().cast::<c_void>();
        // SAFETY: the context is alive, and the box stays where it is until `finish` has taken the handler away.
        unsafe { LLVMContextSetDiagnosticHandler(context.raw(), Some(hear), place) };
        Self { errors }
    }

    /// No longer listens.
    ///
    /// # Panics
    /// If LLVM has reported an error, which is a bug of this crate.
    pub(crate) fn finish(self, context: &Context) {
        // SAFETY: the context is alive; without a handler it has LLVM's own.
        unsafe { LLVMContextSetDiagnosticHandler(context.raw(), None, std::ptr::null_mut()) };
        let errors = self.errors.take();
        assert!(errors.is_empty(), "LLVM: {}", errors.join("; "));
    }
}

extern "C" fn hear(info: LLVMDiagnosticInfoRef, errors: *mut c_void) {
    // SAFETY: LLVM hands over a diagnostic that is alive during the call, and a text to be disposed of; `errors` is what `of` gave.
    let (severity, text, errors) = unsafe {
        let description = LLVMGetDiagInfoDescription(info);
        let text = CStr::from_ptr(description).to_string_lossy().into_owned();
        LLVMDisposeMessage(description);
        let errors = &*errors.cast::<RefCell<Vec<String>>>();
        (LLVMGetDiagInfoSeverity(info), text, errors)
    };
    match severity {
        LLVMDiagnosticSeverity::LLVMDSError => errors.borrow_mut().push(text),
        _ => tracing::debug!(%text, "LLVM"),
    }
}

#[cfg(test)]
mod tests {
    use inkwell::memory_buffer::MemoryBuffer;
    use inkwell::passes::PassBuilderOptions;

    use super::*;
    use crate::target;

    /// A loop with a request for vectors, though each iteration depends on the one before.
    #[test]
    fn remarks_are_no_errors() {
        let text = "
            define void @f(ptr %x) {
            start:
              br label %loop
            loop:
              %i = phi i64 [ 0, %start ], [ %next, %loop ]
              %here = getelementptr double, ptr %x, i64 %i
              %old = load volatile double, ptr %here
              %next = add i64 %i, 1
              %there = getelementptr double, ptr %x, i64 %next
              store volatile double %old, ptr %there
              %more = icmp ult i64 %next, 1000
              br i1 %more, label %loop, label %done, !llvm.loop !0
            done:
              ret void
            }
            !0 = distinct !{!0, !1}
            !1 = !{!\"llvm.loop.vectorize.enable\", i1 true}
        ";
        let context = Context::create();
        let diagnostics = Diagnostics::of(&context);
        let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "text");
        let module = context.create_module_from_ir(buffer).unwrap();
        let machine = target::host().machine(inkwell::OptimizationLevel::Default);
        let passes = "function(loop-vectorize,transform-warning)";
        module
            .run_passes(passes, &machine, PassBuilderOptions::create())
            .unwrap();
        diagnostics.finish(&context);
    }
}
