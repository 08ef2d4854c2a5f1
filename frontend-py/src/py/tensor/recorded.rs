//! Recording of operations: in the session, or as steps of the program that is traced.

use std::sync::{Arc, Mutex, MutexGuard};

use aerogel_base::{Scalar, ScalarType};
use aerogel_tensor::ir::Place;
use aerogel_tensor::record::trace::{State, Trace, Value};
use aerogel_tensor::record::{Recorded, Recording};
use aerogel_tensor::session::{Session, Slot};
use aerogel_tensor::{Buffer, Operand};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use smallvec::SmallVec;

use crate::py::error;

use super::native::{Extent, Home, NativeTensor, NativeTrace, SESSION, lock};
use super::places;
use super::raised::{expect_there, note, raised, raised_at};
use super::values::leaf;
use crate::py::tensor::NativeDim;

/// An operation on a recording. A trace may run it several times.
pub(super) trait Operation<R>:
    Fn(&mut Recording, Buffer, &[Buffer]) -> Recorded<R> + Send + Sync + 'static
{
}

impl<R, F> Operation<R> for F where
    F: Fn(&mut Recording, Buffer, &[Buffer]) -> Recorded<R> + Send + Sync + 'static
{
}

/// The context of an operation besides its operands.
#[derive(Clone, Copy, Default)]
struct How {
    /// Whether it gets the current mask as its last operand.
    is_masked: bool,
    /// The number of operands, from the first, whose axes no later step may change.
    n_fixed: usize,
}

impl How {
    /// No later step may change the axes of an operand.
    const FIXED: Self = Self {
        is_masked: false,
        n_fixed: usize::MAX,
    };
}

impl NativeTrace {
    /// Does a step of the function that is traced.
    pub(super) fn step<R>(
        &self,
        step: impl Fn(&mut State) -> Recorded<R> + Send + Sync + 'static,
    ) -> PyResult<R> {
        step_of(&self.trace, step).map_err(raised)
    }

    /// The same for one tensor.
    pub(super) fn made_by(
        &self,
        step: impl Fn(&mut State) -> Recorded + Send + Sync + 'static,
    ) -> PyResult<NativeTensor> {
        self.made_from(Vec::new(), step)
    }

    /// The same for a result that depends on values: a step that enlarges those enlarges it.
    pub(super) fn made_from(
        &self,
        of: Vec<Value>,
        step: impl Fn(&mut State) -> Recorded + Send + Sync + 'static,
    ) -> PyResult<NativeTensor> {
        let value = self.step(move |s| {
            let buffer = step(s)?;
            let made = s.value(buffer);
            s.resized_with(made, &of);
            Ok(made)
        })?;
        Ok(self.tensor(value))
    }

    /// A tensor of this program.
    pub(super) fn tensor(&self, value: Value) -> NativeTensor {
        NativeTensor {
            home: Home::Program(self.trace.clone(), value),
        }
    }

    /// The value of a tensor of this program.
    pub(super) fn value(&self, tensor: &NativeTensor) -> PyResult<Value> {
        value_in(&self.trace, tensor)
    }

    /// The values of several tensors.
    pub(super) fn values(&self, tensors: &[Bound<'_, NativeTensor>]) -> PyResult<Vec<Value>> {
        tensors.iter().map(|t| self.value(t.get())).collect()
    }
}

/// The value of a tensor of a program.
pub(super) fn value_in(trace: &Arc<Mutex<Trace>>, tensor: &NativeTensor) -> PyResult<Value> {
    match &tensor.home {
        Home::Program(own, value) if Arc::ptr_eq(own, trace) => {
            let trace = lock(trace);
            expect_there(&trace.state.r, trace.state.seen(*value))?;
            Ok(*value)
        }
        _ => Err(PyValueError::new_err(
            "a tensor of another program, or of none, cannot be used in this one: make it an `input`",
        )),
    }
}

/// Does a step of a function that is traced, where the function is now.
pub(super) fn step_of<R>(
    trace: &Mutex<Trace>,
    step: impl Fn(&mut State) -> Recorded<R> + Send + Sync + 'static,
) -> Recorded<R> {
    let place = Python::attach(places::here);
    lock(trace).step(place, step)
}

impl NativeTensor {
    fn program(&self) -> Option<&Arc<Mutex<Trace>>> {
        match &self.home {
            Home::Lazy(_) => None,
            Home::Program(trace, _) => Some(trace),
        }
    }

    /// Records an operation on this and other tensors.
    fn record(
        &self,
        others: &[&Self],
        how: How,
        f: impl Operation<Vec<Buffer>>,
    ) -> PyResult<Vec<Self>> {
        let program = self.program();
        let at_home = |other: &&Self| match (program, other.program()) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        if !others.iter().all(at_home) {
            return Err(PyValueError::new_err(
                "tensors of two programs, or of one and of none, cannot be combined: return it from the one and make it an \
                 `input` of the other; a tensor saved in Python while tracing, as in a list, has no values afterwards",
            ));
        }
        let all = std::iter::once(self).chain(others.iter().copied());
        match program {
            Some(trace) => {
                let value = |t: &Self| match t.home {
                    Home::Program(_, value) => value,
                    Home::Lazy(_) => unreachable!("looked at above"),
                };
                let values: Vec<Value> = all.map(value).collect();
                let places = {
                    let trace = lock(trace);
                    let buffers = values.iter().map(|&v| trace.state.seen(v));
                    let mut places = Vec::new();
                    for buffer in buffers {
                        expect_there(&trace.state.r, buffer)?;
                        places.push(trace.state.r.lines.get(buffer));
                    }
                    places
                };
                let ranks: Vec<usize> = {
                    let state = &lock(trace).state;
                    let fixed = values.iter().take(how.n_fixed);
                    fixed.map(|&v| state.rank(v)).collect()
                };
                let made = step_of(trace, move |s| {
                    s.expect_ranks(&values, &ranks)?;
                    let mut all = s.buffers(&values)?;
                    if how.is_masked {
                        all.extend(s.mask()?);
                    }
                    let made = f(&mut s.r, all[0], &all[1..])?;
                    let made = made.into_iter().map(|b| {
                        let made = s.value(b);
                        s.resized_with(made, &values);
                        made
                    });
                    Ok(made.collect::<Vec<_>>())
                });
                let made = made.map_err(|e| raised_at(e, &places))?.into_iter();
                let home = |value| Self {
                    home: Home::Program(trace.clone(), value),
                };
                Ok(made.map(home).collect())
            }
            None => {
                let mut session = lock(&SESSION);
                let all: Vec<Buffer> = all.map(|t| t.buffer_in(&session)).collect();
                match session.record(|r| f(r, all[0], &all[1..])) {
                    Ok(made) => Ok(held(&mut session, made)),
                    Err(e) => {
                        let places: Vec<Place> = all.iter().map(|&b| session.place(b)).collect();
                        drop(session);
                        Err(raised_at(e, &places))
                    }
                }
            }
        }
    }

    /// The shape.
    pub(super) fn sizes(&self) -> PyResult<Vec<Extent>> {
        match &self.home {
            Home::Lazy(slot) => {
                let shape = lock(&SESSION).description(*slot).1.into_iter();
                Ok(shape.map(|n| Extent::Number(n as u64)).collect())
            }
            Home::Program(trace, value) => sizes(trace, *value),
        }
    }

    /// The dtype, and the number of axes.
    pub(super) fn described(&self) -> (ScalarType, usize) {
        match &self.home {
            Home::Lazy(slot) => {
                let (ty, shape) = lock(&SESSION).description(*slot);
                (ty, shape.len())
            }
            Home::Program(trace, value) => {
                let state = &lock(trace).state;
                (state.r.ty(state.seen(*value)), state.rank(*value))
            }
        }
    }

    /// In a program: refuses, once all is known, that it has another number of axes than it has now.
    pub(super) fn expect_rank(&self) -> PyResult<()> {
        let Home::Program(trace, _) = &self.home else {
            return Ok(());
        };
        let (value, (_, rank)) = (value_in(trace, self)?, self.described());
        step_of(trace, move |s| s.expect_ranks(&[value], &[rank])).map_err(raised)
    }

    /// In a program: checks, once all is known, that it still has its current shape.
    pub(super) fn expect_shape(&self) -> PyResult<()> {
        let Home::Program(trace, _) = &self.home else {
            return Ok(());
        };
        let value = value_in(trace, self)?;
        let seen: Vec<Option<u64>> = {
            let state = &lock(trace).state;
            let shape = state.r.shape(state.seen(value)).into_iter();
            shape.map(|dim| state.r.program.const_dim(dim)).collect()
        };
        step_of(trace, move |s| s.expect_shape(value, &seen)).map_err(raised)
    }

    /// One number of the same type.
    pub(super) fn number_like(&self, value: f64) -> PyResult<Self> {
        match &self.home {
            Home::Lazy(slot) => {
                let ty = lock(&SESSION).description(*slot).0;
                let operand = Operand::zeros(ty, &[]).map_err(error::memory)?;
                let value = Scalar::float(ty, value);
                operand
                    .buffer
                    .write_scalar(0, value)
                    .map_err(error::memory)?;
                Ok(leaf(operand))
            }
            Home::Program(trace, x) => {
                let x = *x;
                let value = step_of(trace, move |s| {
                    let ty = s.r.ty(s.seen(x));
                    let number = s.r.full(&[], Scalar::float(ty, value));
                    Ok(s.value(number))
                });
                let home = Home::Program(trace.clone(), value.map_err(raised)?);
                Ok(Self { home })
            }
        }
    }

    fn buffer_in(&self, session: &Session) -> Buffer {
        match self.home {
            Home::Lazy(slot) => session.buffer(slot),
            Home::Program(..) => unreachable!("it is one outside of programs"),
        }
    }

    /// Notes where an operation on this is written: in programs each step does.
    pub(super) fn noted(&self) {
        if let Home::Lazy(_) = self.home {
            note();
        }
    }

    /// An operation with several results that checks itself whether its operands are sparse values.
    fn all_made_of(
        &self,
        others: &[&Self],
        how: How,
        f: impl Operation<Vec<Buffer>>,
    ) -> PyResult<Vec<Self>> {
        let out = self.record(others, how, f)?;
        self.noted();
        if let Some(first) = out.first() {
            first.run_if_long()?;
        }
        Ok(out)
    }

    /// An operation with one result that checks itself whether its operands are sparse values.
    fn one_made_of(&self, others: &[&Self], how: How, f: impl Operation<Buffer>) -> PyResult<Self> {
        let f = move |r: &mut Recording, x: Buffer, o: &[Buffer]| {
            let out = f(r, x, o)?;
            r.expect_counted("a tensor", &r.program.buffers[out].shape)?;
            Ok(out)
        };
        if let Some(made) = self.one_outside(others, &f)? {
            note();
            made.run_if_long()?;
            return Ok(made);
        }
        let made = self.all_made_of(others, how, move |r, x, o| f(r, x, o).map(|out| vec![out]))?;
        Ok(made.into_iter().next().expect("there is one result"))
    }

    /// The result of an operation, if all operands are outside of programs: most are, and need no lists.
    fn one_outside(&self, others: &[&Self], f: &impl Operation<Buffer>) -> PyResult<Option<Self>> {
        let mut slots: SmallVec<[Slot; 4]> = SmallVec::new();
        for tensor in std::iter::once(self).chain(others.iter().copied()) {
            match tensor.home {
                Home::Lazy(slot) => slots.push(slot),
                Home::Program(..) => return Ok(None),
            }
        }
        let mut session = lock(&SESSION);
        let all: SmallVec<[Buffer; 4]> = slots.iter().map(|&slot| session.buffer(slot)).collect();
        match session.record(|r| f(r, all[0], &all[1..])) {
            Ok(made) => Ok(Some(Self {
                home: Home::Lazy(session.hold(made)),
            })),
            Err(e) => {
                let places: Vec<Place> = all.iter().map(|&b| session.place(b)).collect();
                drop(session);
                Err(raised_at(e, &places))
            }
        }
    }

    /// An operation with one result that checks its operands itself and gets the current mask last, if there is one. It depends
    /// on the axes of this tensor, not on those of the indices.
    pub(super) fn masked_op(&self, others: &[&Self], f: impl Operation<Buffer>) -> PyResult<Self> {
        let how = How {
            is_masked: true,
            n_fixed: 1,
        };
        self.one_made_of(others, how, f)
    }

    /// An operation with one result that checks itself whether its operands are sparse values.
    pub(super) fn made_of(&self, others: &[&Self], f: impl Operation<Buffer>) -> PyResult<Self> {
        self.one_made_of(others, How::FIXED, f)
    }

    /// An operation with one result on dense tensors.
    pub(super) fn op(&self, others: &[&Self], f: impl Operation<Buffer>) -> PyResult<Self> {
        self.made_of(others, move |r, x, o| {
            r.expect_everywhere(&[&[x], o].concat())?;
            f(r, x, o)
        })
    }

    /// An elementwise operation, which broadcasts; on active cells, if operands are sparse values.
    pub(super) fn element_op(
        &self,
        name: &str,
        others: &[&Self],
        f: impl Operation<Buffer>,
    ) -> PyResult<Self> {
        self.at_cells_op(name, others, How::default(), f)
    }

    /// An operation on certain axes; on active cells, if operands are sparse values.
    pub(super) fn point_op(
        &self,
        name: &str,
        others: &[&Self],
        f: impl Operation<Buffer>,
    ) -> PyResult<Self> {
        self.at_cells_op(name, others, How::FIXED, f)
    }

    fn at_cells_op(
        &self,
        name: &str,
        others: &[&Self],
        how: How,
        f: impl Operation<Buffer>,
    ) -> PyResult<Self> {
        let name = name.to_owned();
        self.one_made_of(others, how, move |r, x, o| {
            r.cells_of(&name, &[&[x], o].concat())?;
            f(r, x, o)
        })
    }

    /// An operation with several results on dense tensors.
    pub(super) fn ops(
        &self,
        others: &[&Self],
        f: impl Operation<Vec<Buffer>>,
    ) -> PyResult<Vec<Self>> {
        self.all_made_of(others, How::FIXED, move |r, x, o| {
            r.expect_everywhere(&[&[x], o].concat())?;
            f(r, x, o)
        })
    }
}

fn held(session: &mut MutexGuard<'static, Session>, made: Vec<Buffer>) -> Vec<NativeTensor> {
    let made = made.into_iter();
    made.map(|buffer| NativeTensor {
        home: Home::Lazy(session.hold(buffer)),
    })
    .collect()
}

/// The result of an operation without operands.
pub(super) fn of_nothing(
    trace: Option<&NativeTrace>,
    f: impl Fn(&mut Recording) -> Recorded + Send + Sync + 'static,
) -> PyResult<NativeTensor> {
    match trace {
        Some(trace) => trace.made_by(move |s| f(&mut s.r)),
        None => {
            let mut session = lock(&SESSION);
            let buffer = session.record(f).map_err(raised)?;
            let home = Home::Lazy(session.hold(buffer));
            Ok(NativeTensor { home })
        }
    }
}

/// The shape of a value: numbers, and handles to sizes known when the program runs.
pub(super) fn sizes(trace: &Mutex<Trace>, value: Value) -> PyResult<Vec<Extent>> {
    let known: Option<Vec<Extent>> = {
        let trace = lock(trace);
        let r = &trace.state.r;
        let shape = r.shape(trace.state.seen(value)).into_iter();
        let known = shape.map(|dim| r.program.const_dim(dim).map(Extent::Number));
        known.collect()
    };
    if let Some(known) = known {
        return Ok(known);
    }
    let shape = step_of(trace, move |s| Ok(s.shape(value))).map_err(raised)?;
    Ok(extents(trace, shape))
}

/// Numbers and handles to sizes.
fn extents(
    trace: &Mutex<Trace>,
    shape: Vec<Result<u64, aerogel_tensor::record::Size>>,
) -> Vec<Extent> {
    let all = shape.into_iter().map(|extent| match extent {
        Ok(n) => Extent::Number(n),
        Err(size) => {
            let dim = lock(trace).state.r.dim(size);
            Extent::Of(NativeDim { size, dim })
        }
    });
    all.collect()
}
