//! Kernels as files that C programs without Aerogel link: machine code in a static library, functions of C that call it, LLVM IR.
//!
//! ```text
//! scale.h       int scale(float by, float *x, int64_t x_size0);
//! scale.c       a call of each kernel, and what the caller prepares for it
//! libscale.a    the kernels as machine code
//! scale.ll      the kernels as LLVM IR
//! ```
//! Kernels run on the thread of the caller.

mod archive;
mod c;
mod kernel;

use std::fmt;

use aerogel_base::Span;
use aerogel_ir::{Module, Op, walk};
use aerogel_runtime::code::Site;
use aerogel_runtime::{Bounds, KernelCode, SiteKind};

use crate::driver::{CompileError, Compiler};
use archive::Member;
pub use c::{Header, c_type, includes, quoted};
pub use kernel::{Parameter, Request, export};

/// The alignment of the memory that kernels work in.
pub const ALIGN: u64 = 64;

/// The contents of the files.
pub struct Exported {
    /// The header.
    pub header: String,
    /// The function in C.
    pub driver: String,
    /// A static library: object files with an index.
    pub library: Vec<u8>,
    /// LLVM IR.
    pub llvm: String,
}

/// Why kernels cannot be exported.
#[derive(Debug)]
pub enum ExportError {
    /// They need Aerogel when they run: the reason.
    Refused(String),
    /// They cannot be compiled.
    Compile(CompileError),
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => f.write_str(why),
            Self::Compile(e) => e.fmt(f),
        }
    }
}

/// The kernels of a library.
#[derive(Default)]
pub struct Library {
    codes: Vec<KernelCode>,
    /// The location of each check, by kernel.
    lines: Vec<Vec<String>>,
    members: Vec<Member>,
    llvm: String,
}

impl Library {
    /// Adds a kernel, at stage `Structured`: its number.
    ///
    /// # Errors
    /// If it needs Aerogel when it runs.
    pub fn add(
        &mut self,
        compiler: &Compiler,
        name: &str,
        mut module: Module,
    ) -> Result<usize, ExportError> {
        let number = self.codes.len();
        for func in module.funcs.values_mut() {
            func.name = format!("{name}_k{number}");
        }
        let env = (module.env.spans.clone(), module.env.sources.clone());
        let draws = draws(&module);
        let (mut code, llvm) = compiler.linkable(module).map_err(ExportError::Compile)?;
        if let Some(why) = refusal(&code, draws) {
            return Err(ExportError::Refused(why.to_owned()));
        }
        let symbols = symbols(&code);
        for object in std::mem::take(&mut code.objects) {
            // Tasks know nothing of each other, so an object has the names of the functions that it defines only.
            let own = symbols.iter().filter(|symbol| names(&object, symbol));
            self.members.push((own.cloned().collect(), object));
        }
        let line = |span: Span| {
            let data = env.0.get(span)?;
            let source = &env.1[data.source];
            Some(format!("{}:{}", source.path, source.position(data.start).0))
        };
        let lines = code.sites.iter().map(|site| line(site.span));
        self.lines
            .push(lines.map(Option::unwrap_or_default).collect());
        self.llvm.push_str(&llvm);
        self.codes.push(code);
        Ok(number)
    }

    /// Adds constants: the name of each, and its bytes.
    pub fn add_data(&mut self, compiler: &Compiler, constants: &[(&str, &[u8])]) {
        if constants.is_empty() {
            return;
        }
        let symbols = constants.iter().map(|(name, _)| (*name).to_owned());
        let object = compiler.data(constants.iter().copied());
        self.members.push((symbols.collect(), object));
    }

    /// The kernels, by their numbers.
    pub fn codes(&self) -> &[KernelCode] {
        &self.codes
    }

    /// The static library.
    pub fn archive(&self) -> Vec<u8> {
        archive::of(&self.members)
    }

    /// The LLVM IR of all kernels.
    pub fn llvm(&self) -> String {
        aerogel_llvm::link(&self.llvm)
    }
}

/// Whether a kernel draws random numbers.
fn draws(module: &Module) -> bool {
    let mut found = false;
    for func in module.funcs.values() {
        walk(func, func.body, &mut |func, inst| {
            found |= matches!(func[inst], Op::Random {} | Op::RandomState { .. });
        });
    }
    found
}

/// What a kernel needs of the runtime when it runs, if anything, and the remedy.
fn refusal(code: &KernelCode, draws: bool) -> Option<&'static str> {
    let has = |is: &dyn Fn(&Site) -> bool| code.sites.iter().any(is);
    if draws {
        Some("it draws random numbers, whose state Aerogel keeps: pass the numbers as an array")
    } else if has(&|site| matches!(site.kind, SiteKind::Print | SiteKind::Warning)) {
        Some("it prints: return the values, and print them in C")
    } else if code.notes_accesses() {
        Some("it records its accesses to find data races: set ti.init(debug_races=False)")
    } else if code.is_recursive() {
        Some("a function calls itself, and needs a stack of Aerogel's: write a loop")
    } else if code.grows || !code.root_bytes.is_empty() {
        Some("it needs memory that Aerogel's runtime provides while it runs")
    } else {
        None
    }
}

/// Whether an object file has a symbol of this name.
fn names(object: &[u8], symbol: &str) -> bool {
    let name = [b"\0", symbol.as_bytes(), b"\0"].concat();
    object.windows(name.len()).any(|bytes| bytes == name)
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
