//! Locations of instructions in the user's source, for reports on the optimised code.
//!
//! The number of a span is the line of a debug location: passes of LLVM keep such locations, and no other marks. No function has a
//! debug entry, so object files do not change.

use aerogel_base::Span;
use inkwell::context::Context;
use inkwell::debug_info::{
    AsDIScope, DIFlags, DIFlagsConstants, DILocation, DIScope, DWARFEmissionKind,
    DWARFSourceLanguage, DebugInfoBuilder,
};
use inkwell::module::Module;

/// Makes locations in a module.
pub(crate) struct Lines<'ctx> {
    builder: DebugInfoBuilder<'ctx>,
    scope: DIScope<'ctx>,
}

impl<'ctx> Lines<'ctx> {
    pub(crate) fn of(module: &Module<'ctx>) -> Self {
        let (builder, unit) = module.create_debug_info_builder(
            true,
            DWARFSourceLanguage::Python,
            "kernel",
            "",
            "aerogel",
            true,
            "",
            0,
            "",
            DWARFEmissionKind::LineTablesOnly,
            0,
            false,
            false,
            "",
            "",
        );
        let file = unit.get_file();
        let ty = builder.create_subroutine_type(file, None, &[], DIFlags::PUBLIC);
        let scope = unit.as_debug_info_scope();
        let all = builder.create_function(
            scope,
            "kernel",
            None,
            file,
            0,
            ty,
            true,
            true,
            0,
            DIFlags::PUBLIC,
            true,
        );
        Self {
            scope: all.as_debug_info_scope(),
            builder,
        }
    }

    pub(crate) fn location(&self, ctx: &'ctx Context, span: Span) -> DILocation<'ctx> {
        let line = span.index();
        self.builder
            .create_debug_location(ctx, line, 0, self.scope, None)
    }
}
