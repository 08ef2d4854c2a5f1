//! What a program means, without attention to speed.
//!
//! Points of a `for` are visited row by row. Sums of floats are made in that order.

use std::fmt;

use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::LookupMap;
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::eval;

use crate::algebra::LibraryError;
use crate::cells::Fields;
use crate::expr::{Expr, ExprDef, Outside};
use crate::extents::{extent, number};
use crate::operand::Operand;
use crate::plan::RunError;
use crate::program::{Buffer, Call, Dim, For, Library, Program, Role, Stmt, Store, Var};
use crate::region::Run;

/// An array, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The type of the elements.
    pub ty: ScalarType,
    /// The extents.
    pub shape: Vec<usize>,
    /// The elements.
    pub data: Vec<Scalar>,
}

impl Array {
    /// An array of zeros.
    pub fn zeros(ty: ScalarType, shape: &[usize]) -> Self {
        Self {
            ty,
            shape: shape.to_vec(),
            data: vec![Scalar::zero(ty); shape.iter().product()],
        }
    }
}

/// Why a program ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Extents do not agree: which agreement, and what they are.
    Disagreement(usize, [u64; 2]),
    /// An index outside its extent: of which buffer, along which axis, the index and the extent.
    Index(Buffer, usize, i64, u64),
    /// An extent below zero, or one that no index reaches the end of: which, if it is the program's, and what it is.
    Extent(Option<Dim>, i128),
    /// A number that follows from extents is none of its type.
    Number(Dim, i128),
    /// An input is not as the program says: its number, and what is wrong.
    Input(usize, String),
    /// A library has no result: the first buffer that it was to make, and why.
    Library(Buffer, LibraryError),
    /// A kernel of the user's ended early.
    Region(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disagreement(_, [a, b]) => write!(f, "extents {a} and {b} have to be equal"),
            Self::Index(_, axis, index, extent) => {
                write!(
                    f,
                    "index {index} is outside axis {axis} with {extent} elements"
                )
            }
            Self::Extent(_, n) if *n < 0 => write!(f, "an extent is {n}, below zero"),
            Self::Extent(_, n) => write!(f, "an extent is {n}: indices go up to {}", i32::MAX),
            Self::Number(_, n) => write!(f, "a number that follows from extents is {n}, no `i32`"),
            Self::Input(number, what) => write!(f, "input {number}: {what}"),
            Self::Library(_, e) => e.fmt(f),
            Self::Region(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Failure {}

/// What expressions name.
pub(crate) trait Scope {
    /// Why an expression has no value.
    type Error: From<Failure>;

    /// The index along an axis of the domain.
    fn axis(&self, k: u32) -> Scalar;
    /// A variable that has been set.
    fn var(&self, var: Var) -> Option<Scalar>;
    /// The extents of a buffer.
    fn shape(&mut self, buffer: Buffer) -> Result<&[usize], Self::Error>;
    /// An element of a buffer, which is there.
    fn element(&mut self, buffer: Buffer, at: usize) -> Result<Scalar, Self::Error>;
}

/// The value of an expression.
pub(crate) fn eval_in<S: Scope>(
    program: &Program,
    scope: &mut S,
    e: Expr,
) -> Result<Scalar, S::Error> {
    Evaluation {
        program,
        scope,
        done: LookupMap::default(),
    }
    .get(e)
}

/// What has been evaluated at a point: what is shared is evaluated once.
struct Evaluation<'s, S> {
    program: &'s Program,
    scope: &'s mut S,
    done: LookupMap<Expr, Scalar>,
}

impl<S: Scope> Evaluation<'_, S> {
    fn get(&mut self, e: Expr) -> Result<Scalar, S::Error> {
        if let Some(&done) = self.done.get(&e) {
            return Ok(done);
        }
        let value = match &self.program.exprs[e] {
            ExprDef::Const(value) => return Ok(*value),
            ExprDef::Axis(k) => return Ok(self.scope.axis(*k)),
            ExprDef::Var(var, ty) => self.scope.var(*var).unwrap_or(Scalar::zero(*ty)),
            ExprDef::Extent(dim) => Scalar::i32(number(self.program, self.scope, *dim)?),
            ExprDef::Load {
                buffer,
                ty,
                index,
                outside,
            } => {
                let index = index.iter().map(|&e| Ok(self.get(e)?.as_i128() as i64));
                let index = index.collect::<Result<Vec<_>, S::Error>>()?;
                match place(*buffer, &index, self.scope.shape(*buffer)?, *outside)? {
                    Some(at) => self.scope.element(*buffer, at)?,
                    None => Scalar::zero(*ty),
                }
            }
            ExprDef::Unary(op, x) => eval::unary(*op, self.get(*x)?),
            ExprDef::Binary(op, a, b) => eval::binary(*op, self.get(*a)?, self.get(*b)?),
            ExprDef::Compare(op, a, b) => {
                Scalar::bool(eval::compare(*op, self.get(*a)?, self.get(*b)?))
            }
            ExprDef::Select(c, a, b) => {
                let chosen = if self.get(*c)?.as_bool() { a } else { b };
                self.get(*chosen)?
            }
            ExprDef::Cast(x, ty) => eval::cast(self.get(*x)?, *ty),
            ExprDef::Bitcast(x, ty) => eval::bitcast(self.get(*x)?, *ty),
        };
        self.done.insert(e, value);
        Ok(value)
    }
}

/// Looks whether all extents agree that have to.
pub(crate) fn agreements<S: Scope>(program: &Program, scope: &mut S) -> Result<(), S::Error> {
    for (number, agreement) in program.agreements.iter().enumerate() {
        let left = extent(program, scope, agreement.left)?;
        let right = extent(program, scope, agreement.right)?;
        if left != right {
            return Err(Failure::Disagreement(number, [left, right]).into());
        }
    }
    Ok(())
}

/// Where an element lies, counted from the first; nothing if it is left out.
pub(crate) fn place(
    buffer: Buffer,
    index: &[i64],
    shape: &[usize],
    outside: Outside,
) -> Result<Option<usize>, Failure> {
    let mut linear = 0;
    for (axis, (&i, &extent)) in index.iter().zip(shape).enumerate() {
        let inside = i >= 0 && i < extent as i64;
        let i = match outside {
            _ if inside => i,
            Outside::Zero => return Ok(None),
            Outside::Clamp if extent > 0 => i.clamp(0, extent as i64 - 1),
            Outside::Wrap if extent > 0 => i.rem_euclid(extent as i64),
            Outside::Clamp | Outside::Wrap => return Ok(None),
            Outside::Never | Outside::Error => {
                return Err(Failure::Index(buffer, axis, i, extent as u64));
            }
        };
        linear = linear * extent + i as usize;
    }
    Ok(Some(linear))
}

/// Whether inputs are as a program says: types and shapes.
pub(crate) fn check_inputs(
    program: &Program,
    given: &[(ScalarType, &[usize])],
) -> Result<(), Failure> {
    let n = program.inputs().count();
    if n != given.len() {
        return Err(Failure::Input(given.len(), format!("{n} are needed")));
    }
    for (number, (buffer, (ty, shape))) in program.inputs().zip(given).enumerate() {
        let def = &program.buffers[buffer];
        let fits = def.ty == *ty && def.shape.len() == shape.len();
        if let Some(&long) = shape.iter().find(|&&n| i32::try_from(n).is_err()) {
            return Err(Failure::Extent(None, long as i128));
        }
        let mut extents = def.shape.iter().zip(*shape);
        let agrees =
            |(&dim, &n): (&Dim, &usize)| program.const_dim(dim).is_none_or(|d| d == n as u64);
        if !fits || !extents.all(agrees) {
            return Err(Failure::Input(number, "another type or shape".to_owned()));
        }
    }
    Ok(())
}

/// The indices of a point that is counted row by row.
pub(crate) fn point(linear: u64, extents: &[u64]) -> Vec<i32> {
    let mut rest = linear;
    let mut point = vec![0; extents.len()];
    for (at, &extent) in point.iter_mut().zip(extents).rev() {
        *at = (rest % extent) as i32;
        rest /= extent;
    }
    point
}

/// How a list of statements ended.
#[derive(PartialEq)]
enum Flow {
    On,
    Break,
    Continue,
}

struct Interp<'p> {
    program: &'p Program,
    memory: SecondaryMap<Buffer, Option<Array>>,
    /// The fields, and which cells of their trees are active.
    fields: &'p mut Fields,
    /// The same of temporaries in trees.
    scratch: Fields,
    vars: SecondaryMap<Var, Option<Scalar>>,
    /// The point at which statements run.
    point: Vec<i32>,
}

/// Runs a program: `inputs` in their order, changed by it; the result arrays.
///
/// # Errors
/// Why it ended early; inputs are then as far as it got.
pub fn run(program: &Program, inputs: &mut [Array]) -> Result<Vec<Array>, Failure> {
    run_over(program, inputs, &mut Fields::of(program))
}

/// The same of a program with fields, changed by it.
///
/// # Errors
/// Why it ended early; inputs and fields are then as far as it got.
pub fn run_over(
    program: &Program,
    inputs: &mut [Array],
    fields: &mut Fields,
) -> Result<Vec<Array>, Failure> {
    let mut memory: SecondaryMap<Buffer, Option<Array>> = SecondaryMap::new();
    let given: Vec<Buffer> = program.inputs().collect();
    let shapes: Vec<_> = inputs.iter().map(|a| (a.ty, &a.shape[..])).collect();
    check_inputs(program, &shapes)?;
    for (&buffer, array) in given.iter().zip(inputs.iter_mut()) {
        memory[buffer] = Some(std::mem::replace(array, Array::zeros(array.ty, &[0])));
    }
    let mut interp = Interp {
        program,
        memory,
        fields,
        scratch: Fields::scratch(program),
        vars: SecondaryMap::new(),
        point: Vec::new(),
    };
    let outcome = agreements(program, &mut interp).and_then(|()| interp.block(&program.body));
    let results = outcome.and_then(|_| {
        let results = program.results.iter();
        results
            .map(|&b| interp.array(b).map(|a| a.clone()))
            .collect()
    });
    for (&buffer, array) in given.iter().zip(inputs) {
        *array = interp.memory[buffer].take().expect("inputs stay");
    }
    results
}

impl Scope for Interp<'_> {
    type Error = Failure;

    fn axis(&self, k: u32) -> Scalar {
        Scalar::i32(self.point[k as usize])
    }

    fn var(&self, var: Var) -> Option<Scalar> {
        self.vars[var]
    }

    fn shape(&mut self, buffer: Buffer) -> Result<&[usize], Failure> {
        Ok(&self.array(buffer)?.shape)
    }

    fn element(&mut self, buffer: Buffer, at: usize) -> Result<Scalar, Failure> {
        Ok(self.array(buffer)?.data[at])
    }
}

impl Interp<'_> {
    /// What a buffer that lies in a tree is among.
    fn among(&mut self, buffer: Buffer) -> Option<&mut Fields> {
        match self.program.buffers[buffer].role {
            Role::Field(..) => Some(self.fields),
            Role::Scratch(..) => Some(&mut self.scratch),
            Role::Input(_) | Role::Temporary => None,
        }
    }

    /// A buffer's array, made if it is not there yet.
    fn array(&mut self, buffer: Buffer) -> Result<&mut Array, Failure> {
        if self.program.holder(buffer).is_some() {
            let all = self.among(buffer).expect("it lies in a tree");
            return Ok(all.array(buffer));
        }
        if self.memory[buffer].is_none() {
            let def = &self.program.buffers[buffer];
            debug_assert_eq!(def.role, Role::Temporary);
            let shape = def.shape.iter().map(|&d| extent(self.program, self, d));
            let shape: Vec<usize> = shape
                .map(|n| n.map(|n| n as usize))
                .collect::<Result<_, _>>()?;
            self.memory[buffer] = Some(Array::zeros(def.ty, &shape));
        }
        Ok(self.memory[buffer].as_mut().expect("made above"))
    }

    fn block(&mut self, body: &[Stmt]) -> Result<Flow, Failure> {
        for stmt in body {
            let flow = self.stmt(stmt)?;
            if flow != Flow::On {
                return Ok(flow);
            }
        }
        Ok(Flow::On)
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Flow, Failure> {
        match stmt {
            Stmt::For(all) => self.all(all)?,
            Stmt::Store(store) => self.store(store)?,
            Stmt::Set(var, e) => self.vars[*var] = Some(self.eval(*e)?),
            Stmt::Loop {
                var,
                lo,
                hi,
                step,
                body,
            } => {
                let [lo, hi] = [self.eval(*lo)?, self.eval(*hi)?].map(|e| e.as_i128());
                let step = i128::from(*step);
                let mut at = lo;
                while if step > 0 { at < hi } else { at > hi } {
                    self.vars[*var] = Some(Scalar::i32(at as i32));
                    if self.block(body)? == Flow::Break {
                        break;
                    }
                    at += step;
                }
            }
            Stmt::If(cond, then, otherwise) => {
                let taken = if self.eval(*cond)?.as_bool() {
                    then
                } else {
                    otherwise
                };
                return self.block(taken);
            }
            Stmt::Break => return Ok(Flow::Break),
            Stmt::Continue => return Ok(Flow::Continue),
            Stmt::Call(call) => self.call(call)?,
            Stmt::Run(run) => self.run(run)?,
            Stmt::Clear(buffer) => self.scratch.clear(self.program, *buffer),
        }
        Ok(Flow::On)
    }

    fn all(&mut self, all: &For) -> Result<(), Failure> {
        for stmt in &all.body {
            if let Stmt::Store(Store {
                target,
                init: true,
                accum: Some(accum),
                ..
            }) = stmt
            {
                let array = self.array(*target)?;
                array.data.fill(accum.neutral(array.ty));
            }
        }
        let extents = all.domain.iter().map(|&d| extent(self.program, self, d));
        let extents: Vec<u64> = extents.collect::<Result<_, _>>()?;
        let n: u64 = extents.iter().product();
        let mut points: Vec<Vec<i32>> = (0..n).map(|linear| point(linear, &extents)).collect();
        if let Some(field) = all.cells {
            let program = self.program;
            let among = self.among(field).expect("it has cells");
            points.retain(|point| among.is_active(program, field, point));
        }
        for point in points {
            self.point = point;
            self.block(&all.body)?;
        }
        self.point.clear();
        Ok(())
    }

    fn place(
        &mut self,
        buffer: Buffer,
        index: &[Expr],
        outside: Outside,
    ) -> Result<Option<usize>, Failure> {
        let mut at = Vec::new();
        for &e in index {
            at.push(self.eval(e)?.as_i128() as i64);
        }
        place(buffer, &at, &self.array(buffer)?.shape, outside)
    }

    fn store(&mut self, store: &Store) -> Result<(), Failure> {
        let value = self.eval(store.value)?;
        if let Some(at) = self.place(store.target, &store.index, store.outside)? {
            let array = self.array(store.target)?;
            array.data[at] = match store.accum {
                None => value,
                Some(accum) => eval::binary(accum.binary(), array.data[at], value),
            };
            let program = self.program;
            if let Some(among) = self.among(store.target) {
                among.stored(program, store.target, at);
            }
        }
        Ok(())
    }

    fn eval(&mut self, e: Expr) -> Result<Scalar, Failure> {
        eval_in(self.program, self, e)
    }

    fn run(&mut self, run: &Run) -> Result<(), Failure> {
        let ended = |e: RunError| match e {
            RunError::Failure(failure) => failure,
            other => Failure::Region(other.to_string()),
        };
        let mut operands = Vec::new();
        for &buffer in &run.arrays {
            let array = self.array(buffer)?;
            operands.push(Operand::of(array).map_err(|e| ended(e.into()))?);
        }
        let region = &self.program.regions[run.region];
        let (operands, results) = region.run(operands).map_err(ended)?;
        let all = run.arrays.iter().zip(&region.writes).zip(operands);
        for ((&buffer, _), operand) in all.filter(|((_, written), _)| **written) {
            let array = operand.to_array().map_err(|e| ended(e.into()))?;
            self.memory[buffer] = Some(array);
        }
        for (&buffer, value) in run.results.iter().zip(results) {
            self.array(buffer)?.data[0] = value;
        }
        Ok(())
    }

    fn call(&mut self, call: &Call) -> Result<(), Failure> {
        let inputs = call
            .inputs
            .iter()
            .map(|&b| self.array(b).map(|a| a.clone()));
        let inputs: Vec<Array> = inputs.collect::<Result<_, _>>()?;
        for &output in &call.outputs {
            self.array(output)?;
        }
        let mut outputs: Vec<Array> = Vec::new();
        for &output in &call.outputs {
            outputs.push(self.array(output)?.clone());
        }
        library(call.library, &inputs, &mut outputs)
            .map_err(|e| Failure::Library(call.outputs[0], e))?;
        for (&output, array) in call.outputs.iter().zip(outputs) {
            self.memory[output] = Some(array);
        }
        Ok(())
    }
}

/// What a library does: `outputs` have their shapes.
pub(crate) fn library(
    library: Library,
    inputs: &[Array],
    outputs: &mut [Array],
) -> Result<(), LibraryError> {
    match (library, inputs, outputs) {
        (Library::MatMul, [a, b], [out]) => matmul(a, b, 0, out),
        (Library::MatMulRows, [a, b, first], [out]) => {
            matmul(a, b, first.data[0].as_i128() as usize, out);
        }
        (Library::Sort { descending }, [x], [values, order @ ..]) => {
            sort(x, descending, values, order.first_mut());
        }
        (Library::Algebra(_) | Library::Transform(_), inputs, outputs) => {
            crate::library::of_arrays(library, inputs, outputs)?;
        }
        _ => unreachable!("the verifier counts operands"),
    }
    Ok(())
}

/// The rows of a product from `first` on.
fn matmul(a: &Array, b: &Array, first: usize, out: &mut Array) {
    let (&[.., rows, m], &[.., n, inner]) = (&out.shape[..], &a.shape[..]) else {
        unreachable!("the verifier counts axes");
    };
    let (add, mul) = (aerogel_ir::BinaryOp::Add, aerogel_ir::BinaryOp::Mul);
    for (at, cell) in out.data.iter_mut().enumerate() {
        let (batch, i, j) = (at / (rows * m), first + at / m % rows, at % m);
        if i >= n {
            continue;
        }
        *cell = (0..inner).fold(Scalar::zero(out.ty), |sum, k| {
            let left = a.data[(batch * n + i) * inner + k];
            let right = b.data[(batch * inner + k) * m + j];
            eval::binary(add, sum, eval::binary(mul, left, right))
        });
    }
}

/// The order of two numbers: NaN behind all.
fn compare(a: Scalar, b: Scalar, descending: bool) -> std::cmp::Ordering {
    if a.ty().is_float() {
        let (a, b) = (a.as_f64(), b.as_f64());
        let order = if descending {
            b.partial_cmp(&a)
        } else {
            a.partial_cmp(&b)
        };
        order.unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
    } else if descending {
        b.as_i128().cmp(&a.as_i128())
    } else {
        a.as_i128().cmp(&b.as_i128())
    }
}

fn sort(x: &Array, descending: bool, values: &mut Array, mut order: Option<&mut Array>) {
    let n = x.shape.last().copied().unwrap_or(1);
    let n_wanted = values.shape.last().copied().unwrap_or(1);
    for row in 0..x.data.len().checked_div(n).unwrap_or(0) {
        let numbers = &x.data[row * n..(row + 1) * n];
        let mut places: Vec<usize> = (0..n).collect();
        places.sort_by(|&a, &b| compare(numbers[a], numbers[b], descending));
        for (k, &place) in places.iter().take(n_wanted).enumerate() {
            values.data[row * n_wanted + k] = numbers[place];
            if let Some(order) = &mut order {
                order.data[row * n_wanted + k] = Scalar::int(order.ty, place as i128);
            }
        }
    }
}
