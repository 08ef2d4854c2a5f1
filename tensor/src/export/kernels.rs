//! The kernels of a program as object files, and what a call of each needs.

use aerogel_base::hash::LookupMap;
use aerogel_compiler::Compiler;
use aerogel_compiler::export::Library;
use aerogel_ir::{FastMath, print_module};
use indexmap::IndexMap;

use super::{Exportable, Request};
use crate::ir::{Buffer, For, Program, Stmt, visit, visit_host};
use crate::lower::{Kernel, lower};

pub(super) struct Kernels {
    pub(super) library: Library,
    /// For each statement the number of its code, and what it takes.
    pub(super) of: IndexMap<For, (usize, Kernel)>,
}

impl Kernels {
    /// The kernels of all statements. Those that store to buffers from `n_before` on compute values of the host, as written.
    pub(super) fn of(
        program: &Program,
        n_before: usize,
        compiler: &Compiler,
        request: &Request<'_>,
    ) -> Exportable<Self> {
        let mut all: Vec<&For> = Vec::new();
        visit_host(&program.body, &mut |stmt| {
            if let Stmt::For(own) = stmt {
                all.push(own);
            }
        });
        let mut kernels = Self {
            library: Library::default(),
            of: IndexMap::new(),
        };
        let mut by_text: LookupMap<String, usize> = LookupMap::default();
        for own in all {
            if kernels.of.contains_key(own) {
                continue;
            }
            let fast_math = match is_of_host(own, n_before) {
                true => FastMath::Off,
                false => request.fast_math,
            };
            let mut kernel = lower(program, own, "tensors", fast_math);
            let module = std::mem::take(&mut kernel.module);
            let text = print_module(&module);
            let number = match by_text.get(&text) {
                Some(&number) => number,
                None => kernels.library.add(compiler, request.name, module)?,
            };
            by_text.insert(text, number);
            kernels.of.insert(own.clone(), (number, kernel));
        }
        Ok(kernels)
    }
}

/// Whether a statement computes what the host needs.
fn is_of_host(all: &For, n_before: usize) -> bool {
    let mut found = false;
    visit(&all.body, &mut |stmt| {
        if let Stmt::Store(store) = stmt {
            found |= store.target >= Buffer::from_u32(n_before as u32);
        }
    });
    found
}
