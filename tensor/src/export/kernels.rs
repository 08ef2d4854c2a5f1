//! The kernels of a program as object files, and what a call of each needs.

use aerogel_base::hash::LookupMap;
use aerogel_compiler::Compiler;
use aerogel_ir::{FastMath, Module, print_module};
use aerogel_runtime::code::Site;
use aerogel_runtime::{Bounds, KernelCode, SiteKind};
use indexmap::IndexMap;

use super::archive::Member;
use super::{ExportError, Exportable, Request, refused};
use crate::ir::{Buffer, For, Program, Stmt, visit, visit_host};
use crate::lower::{Kernel, lower};

pub(super) struct Kernels {
    pub(super) codes: Vec<KernelCode>,
    pub(super) objects: Vec<Member>,
    pub(super) llvm: String,
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
            codes: Vec::new(),
            objects: Vec::new(),
            llvm: String::new(),
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
                None => kernels.compile(compiler, request.name, module)?,
            };
            by_text.insert(text, number);
            kernels.of.insert(own.clone(), (number, kernel));
        }
        Ok(kernels)
    }

    fn compile(
        &mut self,
        compiler: &Compiler,
        name: &str,
        mut module: Module,
    ) -> Exportable<usize> {
        let number = self.codes.len();
        for func in module.funcs.values_mut() {
            func.name = format!("{name}_k{number}");
        }
        let (mut code, llvm) = compiler.linkable(module).map_err(ExportError::Compile)?;
        let checks = |site: &Site| matches!(site.kind, SiteKind::Check(_));
        if code.grows || !code.root_bytes.is_empty() || !code.sites.iter().all(checks) {
            return refused(None, "a kernel of the program needs Aerogel's runtime");
        }
        let symbols = symbols(&code);
        for object in std::mem::take(&mut code.objects) {
            // Tasks know nothing of each other, so an object has the names of the functions that it defines only.
            let own = symbols.iter().filter(|symbol| names(&object, symbol));
            self.objects.push((own.cloned().collect(), object));
        }
        self.llvm.push_str(&llvm);
        self.codes.push(code);
        Ok(number)
    }
}

/// Whether an object file has a symbol of this name.
fn names(object: &[u8], symbol: &str) -> bool {
    let name = [b"\0", symbol.as_bytes(), b"\0"].concat();
    object.windows(name.len()).any(|bytes| bytes == name)
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

/// The functions of a kernel.
fn symbols(code: &KernelCode) -> Vec<String> {
    let mut all = Vec::new();
    for task in &code.tasks {
        all.push(task.symbol.clone());
        if let Bounds::Computed { symbol, .. } = &task.bounds {
            all.push(symbol.clone());
        }
        all.extend(task.sums.iter().map(|sums| sums.symbol.clone()));
    }
    all
}
