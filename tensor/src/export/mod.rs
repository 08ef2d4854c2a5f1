//! A plan as C code, which programs without Aerogel link and call.
//!
//! ```text
//! step.h       int step(const float *u, double dt, float *out);
//! step.c       memory for temporaries, loops and branches, a call of each kernel
//! libstep.a    the kernels as machine code, the same as in a run of the plan; constants
//! step.ll      the kernels as LLVM IR
//! ```
//! Sizes are those of one call, so that they are numbers everywhere. Kernels run on the thread of the caller.

mod driver;
mod kernels;
mod layout;
mod prepare;

use std::fmt;

use aerogel_base::ScalarType;
use aerogel_compiler::export::{self, Exported};
use aerogel_compiler::{CompileError, Compiler};
use aerogel_ir::FastMath;

use crate::ir::{
    Buffer, Call, Dim, ExprDef, Failure, Library, Program, Role, Site, Stmt, Touched,
    expect_agreement, known_sizes, visit_host,
};
use driver::Driver;
use kernels::Kernels;

/// An input of the program.
pub struct Input {
    /// The name of the parameter.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its bytes, if it is a constant and no parameter.
    pub data: Option<Vec<u8>>,
}

/// How a program is exported.
pub struct Request<'a> {
    /// The name of the function, an identifier of C.
    pub name: &'a str,
    /// The inputs, in the program's order. Names are identifiers of C, and differ.
    pub inputs: Vec<Input>,
    /// The names of the parameters for results, in the program's order.
    pub outputs: Vec<String>,
    /// The file and the line of an access.
    pub line: &'a dyn Fn(Site) -> Option<String>,
    /// How far float arithmetic may differ from what is written.
    pub fast_math: FastMath,
}

/// Why a program cannot be exported.
#[derive(Debug)]
pub enum ExportError {
    /// It has something that needs Aerogel when it runs: a buffer that it makes, and the reason.
    Refused(Option<Buffer>, String),
    /// It fails for inputs of these shapes.
    Failure(Failure),
    /// The kernels cannot be compiled.
    Compile(CompileError),
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(_, why) => f.write_str(why),
            Self::Failure(e) => e.fmt(f),
            Self::Compile(e) => e.fmt(f),
        }
    }
}

impl From<export::ExportError> for ExportError {
    fn from(e: export::ExportError) -> Self {
        match e {
            export::ExportError::Refused(why) => Self::Refused(
                None,
                format!("a kernel of the program cannot be exported: {why}"),
            ),
            export::ExportError::Compile(e) => Self::Compile(e),
        }
    }
}

type Exportable<T> = Result<T, ExportError>;

fn refused<T>(buffer: impl Into<Option<Buffer>>, why: impl Into<String>) -> Exportable<T> {
    Err(ExportError::Refused(buffer.into(), why.into()))
}

/// Exports a program that has been through the passes.
///
/// # Errors
/// If it needs Aerogel when it runs, or fails for inputs of these shapes.
pub fn export(
    program: &Program,
    compiler: &Compiler,
    request: &Request<'_>,
) -> Exportable<Exported> {
    expect_exportable(program)?;
    let buffers = program.inputs();
    let shapes: Vec<(ScalarType, &[usize])> = buffers
        .zip(&request.inputs)
        .map(|(b, input)| (program.buffers[b].ty, &input.shape[..]))
        .collect();
    expect_agreement(program, &shapes).map_err(ExportError::Failure)?;
    let sizes = Sizes::of(program, &shapes);
    let mut program = program.clone();
    let n_before = program.buffers.len();
    prepare::run(&mut program);
    let mut kernels = Kernels::of(&program, n_before, compiler, request)?;
    let constants = request.inputs.iter().filter_map(|input| {
        let data = input.data.as_deref()?;
        Some((input.name.as_str(), data))
    });
    let constants: Vec<(&str, &[u8])> = constants.collect();
    kernels.library.add_data(compiler, &constants);
    let driver = Driver::new(&program, &sizes, &kernels, request)?;
    Ok(Exported {
        header: driver.header()?,
        driver: driver.source()?,
        library: kernels.library.archive(),
        llvm: kernels.library.llvm(),
    })
}

/// The value of each size for the call, where it follows from the shapes of inputs.
struct Sizes(Vec<Option<i64>>);

impl Sizes {
    fn of(program: &Program, inputs: &[(ScalarType, &[usize])]) -> Self {
        let mut values = known_sizes(program, inputs);
        for (value, def) in values.iter_mut().zip(&program.dims) {
            program.exprs.visit(def.expr(), &mut |e| {
                if let ExprDef::Var(..) = program.exprs[e] {
                    *value = None;
                }
            });
        }
        Self(values)
    }

    fn number(&self, dim: Dim) -> Exportable<i64> {
        match self.0[dim.as_u32() as usize] {
            Some(n) => Ok(n),
            None => refused(None, "a size depends on values, or is out of range"),
        }
    }

    fn shape(&self, program: &Program, buffer: Buffer) -> Exportable<Vec<u64>> {
        let shape = program.buffers[buffer]
            .shape
            .iter()
            .map(|&dim| Ok(self.number(dim)? as u64));
        let shape = shape.collect::<Exportable<Vec<u64>>>()?;
        if shape.contains(&0) {
            return refused(
                buffer,
                "a tensor without elements, of shape (0, ...), cannot be exported",
            );
        }
        Ok(shape)
    }

    fn bytes(&self, program: &Program, buffer: Buffer) -> Exportable<u64> {
        let shape = self.shape(program, buffer)?;
        let bytes = u64::from(program.buffers[buffer].ty.bytes());
        let bytes = shape.iter().try_fold(bytes, |all, &n| all.checked_mul(n));
        match bytes.filter(|&n| i64::try_from(n).is_ok()) {
            Some(bytes) => Ok(bytes),
            None => refused(buffer, "a tensor is too large"),
        }
    }
}

/// Refuses what the runtime does for programs, beyond calls of kernels.
fn expect_exportable(program: &Program) -> Exportable<()> {
    let in_tree =
        |b: &Buffer| !matches!(program.buffers[*b].role, Role::Input(_) | Role::Temporary);
    if let Some(field) = program.buffers.keys().find(in_tree) {
        let name = &program.buffers[field].name;
        let why = format!("a program that uses the field `{name}` cannot be exported: pass arrays");
        return refused(field, why);
    }
    let mut outcome = Ok(());
    visit_host(&program.body, &mut |stmt| {
        if outcome.is_ok() {
            outcome = statement(program, stmt);
        }
    });
    outcome
}

fn statement(program: &Program, stmt: &Stmt) -> Exportable<()> {
    match stmt {
        Stmt::Run(run) if program.regions[run.region].least().is_none() => {
            let region = &program.regions[run.region];
            let writes = Touched::of_itself(program, stmt).writes;
            let why = format!(
                "a program that calls `{}`, a kernel or a function of Python, cannot be exported: write it with tensors",
                region.name
            );
            refused(writes.first().copied(), why)
        }
        Stmt::Call(call) => called(call),
        _ => Ok(()),
    }
}

fn called(call: &Call) -> Exportable<()> {
    let why = match call.library {
        Library::Push | Library::Pop if call.mask().is_none() => return Ok(()),
        Library::Push | Library::Pop => {
            "the gradient of a loop that points leave one by one saves values for each point, and cannot be exported"
                .to_owned()
        }
        Library::MatMul | Library::MatMulRows => {
            "a matrix product by a library cannot be exported: set ti.init(tensor_products=\"tiles\")".to_owned()
        }
        other => format!("`{}` calls a library of Aerogel, and cannot be exported", other.name()),
    };
    refused(call.outputs.first().copied(), why)
}
