//! Keys of `x[key]` and `x[key] = value`, as Python writes them.

mod expanded;
mod items;

use aerogel_base::ScalarType;
use aerogel_tensor::record::{Bound as End, Item, Key, Mode};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PyList, PySlice, PyTuple};

use super::native::{CLASS, Extent, Home, NativeTensor};

/// One item of a key. Tensors are named by their number among those of the key.
enum Written {
    Dots,
    /// An item that is independent of the tensor.
    Plain(Item<usize>),
    /// Indices of a list or an array, with the smallest and the largest if they are known, or of a tensor.
    Indices {
        at: usize,
        ends: Option<(i128, i128)>,
        is_array: bool,
    },
    /// A boolean mask over `rank` axes; a single boolean, of a tensor or of Python, selects all or nothing.
    Mask {
        at: Option<usize>,
        rank: usize,
        is_array: bool,
    },
}

impl Written {
    /// Whether it is neither an index nor computed ones.
    fn is_apart(&self) -> bool {
        matches!(self, Self::Dots | Self::Plain(Item::New | Item::Range(..)))
    }
}

/// A key, and the tensors in it.
pub(super) struct Keys<'py> {
    items: Vec<Written>,
    tensors: Vec<Bound<'py, NativeTensor>>,
    is_tuple: bool,
}

/// A key of a tensor, item by item.
type Named = Key<usize>;

fn no_index(what: &str) -> PyErr {
    PyIndexError::new_err(format!("an index is an integer, not `{what}`"))
}

/// Refuses the smallest or the largest of some indices if it is known to be outside of an axis.
fn expect_inside(ends: Option<(i128, i128)>, size: Option<&Extent>, axis: usize) -> PyResult<()> {
    let (Some((low, high)), Some(&Extent::Number(n))) = (ends, size) else {
        return Ok(());
    };
    let size = i128::from(n);
    let mut both = [low, high].into_iter();
    match both.find(|i| !(-size..size).contains(i)) {
        None => Ok(()),
        Some(i) => Err(PyIndexError::new_err(format!(
            "index {i} is outside axis {axis} with {n} elements"
        ))),
    }
}

impl<'py> Keys<'py> {
    /// Reads a key of a tensor.
    pub(super) fn of(key: &Bound<'py, PyAny>, x: &NativeTensor) -> PyResult<Self> {
        let mut out = Self {
            items: Vec::new(),
            tensors: Vec::new(),
            is_tuple: false,
        };
        match key.cast::<PyTuple>() {
            Ok(keys) => {
                out.is_tuple = true;
                for key in keys {
                    out.read(&key, x)?;
                }
            }
            Err(_) => out.read(key, x)?,
        }
        Ok(out)
    }

    fn read(&mut self, key: &Bound<'py, PyAny>, x: &NativeTensor) -> PyResult<()> {
        let py = key.py();
        let item = if key.cast_exact::<PyInt>().is_ok() {
            Written::Plain(Item::Index(whole(key)?))
        } else if key.is_none() {
            Written::Plain(Item::New)
        } else if let Ok(slice) = key.cast::<PySlice>() {
            Written::Plain(self.range(slice, x)?)
        } else if key.is_instance_of::<PyEllipsis>() {
            Written::Dots
        } else if key.is_instance_of::<PyBool>() {
            Written::Mask {
                at: None,
                rank: 0,
                is_array: false,
            }
        } else if let Some(tensor) = tensor_of(key)? {
            let is_here =
                matches!(tensor.get().home, Home::Lazy(_)) == matches!(x.home, Home::Lazy(_));
            match is_here {
                true => self.tensor(tensor, None, false)?,
                false => self.tensor(converted(key)?.0, None, false)?,
            }
        } else if key.is_instance_of::<PyList>() || key.hasattr(intern!(py, "__array__"))? {
            let (tensor, ends) = converted(key)?;
            self.tensor(tensor, ends, true)?
        } else if key.hasattr(intern!(py, "__index__"))? {
            Written::Plain(Item::Index(whole(key)?))
        } else {
            return Err(PyIndexError::new_err(format!(
                "an index is an integer, a slice, or a tensor of integers, not {}",
                key.get_type().name()?
            )));
        };
        self.items.push(item);
        Ok(())
    }

    fn tensor(
        &mut self,
        tensor: Bound<'py, NativeTensor>,
        ends: Option<(i128, i128)>,
        is_array: bool,
    ) -> PyResult<Written> {
        let at = self.tensors.len();
        let (ty, rank) = tensor.get().described();
        if is_array && ty.is_float() {
            return Err(no_index(ty.name()));
        }
        self.tensors.push(tensor);
        Ok(match ty {
            ScalarType::U1 => Written::Mask {
                at: Some(at),
                rank,
                is_array,
            },
            _ => Written::Indices { at, ends, is_array },
        })
    }

    fn range(&mut self, slice: &Bound<'py, PySlice>, x: &NativeTensor) -> PyResult<Item<usize>> {
        let py = slice.py();
        let is_traced = matches!(x.home, Home::Program(..));
        let mut bound = |name| -> PyResult<Option<End<usize>>> {
            let bound = slice.getattr(name)?;
            if bound.is_none() {
                return Ok(None);
            }
            if is_traced && let Some(tensor) = tensor_of(&bound)? {
                self.tensors.push(tensor);
                return Ok(Some(End::Of(self.tensors.len() - 1)));
            }
            Ok(Some(End::Known(bound_of(&bound)?)))
        };
        let (start, stop) = (bound(intern!(py, "start"))?, bound(intern!(py, "stop"))?);
        let step = slice.getattr(intern!(py, "step"))?;
        if is_traced && tensor_of(&step)?.is_some() {
            return Err(PyTypeError::new_err(
                "the step of a slice must be known when the program is traced",
            ));
        }
        let step = if step.is_none() { 1 } else { bound_of(&step)? };
        if step == 0 {
            return Err(PyValueError::new_err("slice step cannot be zero"));
        }
        Ok(Item::Range(start, stop, step))
    }

    fn masks(&self) -> impl Iterator<Item = (Option<usize>, usize, bool)> {
        self.items.iter().filter_map(|item| match *item {
            Written::Mask { at, rank, is_array } => Some((at, rank, is_array)),
            _ => None,
        })
    }

    /// Whether it contains a single boolean, which selects all or nothing.
    pub(super) fn has_truths(&self) -> bool {
        self.masks().any(|(_, rank, _)| rank == 0)
    }

    /// The mask that it is alone.
    fn mask(&self) -> Option<&Bound<'py, NativeTensor>> {
        match self.items[..] {
            [Written::Mask { at: Some(at), .. }] if !self.is_tuple => Some(&self.tensors[at]),
            _ => None,
        }
    }

    fn has_parts(&self) -> bool {
        let mut items = self.items.iter();
        items.any(Written::is_apart)
    }

    fn has_tensors(&self) -> bool {
        let mut items = self.items.iter();
        items.any(|item| matches!(item, Written::Indices { is_array, .. } if !is_array))
    }

    /// In a program: whether it is of computed indices alone. Where indices outside are the nearest ones, as in C, known
    /// ones are as others.
    fn is_gather(&self, is_c: bool) -> bool {
        let is_index = |item: &Written| matches!(item, Written::Plain(Item::Index(_)));
        !self.has_parts()
            && self.masks().next().is_none()
            && (self.has_tensors() || is_c && self.items.iter().all(is_index))
    }

    /// Refuses indices of lists and arrays that are known to be outside, in a key of indices alone.
    fn expect_inside(&self, sizes: &[Extent], mode: Mode) -> PyResult<()> {
        for (axis, item) in self.items.iter().enumerate() {
            if let (&Written::Indices { ends, .. }, Mode::Error) = (item, mode) {
                expect_inside(ends, sizes.get(axis), axis)?;
            }
        }
        Ok(())
    }
}

/// What a tensor of the package is made by, a number of the program among them.
fn tensor_of<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, NativeTensor>>> {
    let py = value.py();
    let Some(class) = CLASS.get(py) else {
        return Ok(None);
    };
    if !value.is_instance(class.bind(py))? {
        return Ok(None);
    }
    let native = value.getattr(intern!(py, "_native"))?;
    Ok(Some(native.cast_into()?))
}

/// A list, an array or a tensor from outside of the program as a tensor, and the smallest and the largest index in it.
#[expect(
    clippy::type_complexity,
    reason = "what one function of Python's gives"
)]
fn converted<'py>(
    key: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, NativeTensor>, Option<(i128, i128)>)> {
    let module = key.py().import("aerogel.tensor._items")?;
    module
        .call_method1(intern!(key.py(), "indices"), (key,))?
        .extract()
}

/// An index that is an integer.
fn whole(key: &Bound<'_, PyAny>) -> PyResult<i64> {
    let index = key.call_method0(intern!(key.py(), "__index__"))?;
    index
        .extract()
        .map_err(|_| PyIndexError::new_err(format!("index {index} is outside of every axis")))
}

/// Where a part begins or ends: what is beyond every axis is as far as that.
fn bound_of(bound: &Bound<'_, PyAny>) -> PyResult<i64> {
    let py = bound.py();
    if !bound.hasattr(intern!(py, "__index__"))? {
        return Err(PyTypeError::new_err(
            "slice indices must be integers or None or have an __index__ method",
        ));
    }
    let n = bound.call_method0(intern!(py, "__index__"))?;
    match n.extract() {
        Ok(n) => Ok(n),
        Err(_) if n.lt(0)? => Ok(i64::MIN),
        Err(_) => Ok(i64::MAX),
    }
}
