//! `x[i, j]` and `x.attr`: fields, arrays, tensors, sequences, and Python's own objects.

use aerogel_base::{ErrorKind, ScalarType};
use aerogel_ir::{Arg, BinaryOp, Op, ParamData, ParamType, Type, Value};

use crate::ast::{Expr, ExprKind};
use crate::fold;
use crate::host::Known;
use crate::intrinsics;
use crate::lower::calls::{Args, unbound_method};
use crate::lower::core::assign::ADD_AT;
use crate::lower::core::suggestions::{GROWING, methods_of};
use crate::lower::values::number::elem;
use crate::lower::values::structs::struct_type;
use crate::lower::values::{Origin, Place, SeqKind, Val, tensor_type};
use crate::lower::{Lower, Res};

/// One index of a tensor: a number, or a slice of constants.
enum Index {
    At(Val),
    Slice(Vec<u32>),
}

const SWIZZLES: [&str; 3] = ["xyzw", "rgba", "stpq"];

impl<'a> Lower<'a, '_> {
    /// An array that Python has, captured or in an object, is a parameter more, which every launch passes.
    pub(crate) fn captured(&mut self, val: Val) -> Res<Val> {
        let Val::Known(known @ Known::Object(_)) = &val else {
            return Ok(val);
        };
        let Some(array) = self.host.array(known) else {
            return Ok(val);
        };
        if !self.func.is_kernel {
            return self.fail_noted(
                ErrorKind::Type,
                "E0212",
                "a real function has no array but those it is given",
                "pass it: annotate a parameter `ti.types.ndarray()`",
            );
        }
        let handle = array.handle;
        if let Some((_, arg)) = self.captured.iter().find(|(of, _)| *of == handle) {
            return Ok(Val::Array(*arg));
        }
        let arg = Arg::from_u32(self.func.params.len() as u32);
        self.func.params.push(ParamData {
            name: "ndarray".to_owned(),
            ty: ParamType::Array {
                elem: tensor_type(array.shape, array.elem),
                ndim: array.ndim,
                read_only: true,
            },
            of: None,
        });
        self.captured.push((handle, arg));
        Ok(Val::Array(arg))
    }

    pub(crate) fn subscript(&mut self, val: Val, index: &Expr<'a>) -> Res<Val> {
        let val = self.captured(val)?;
        if let Val::Poison(reported) = val {
            return Err(reported);
        }
        let parts: &[Expr<'a>] = match &index.kind {
            ExprKind::Tuple(items) => items,
            _ => std::slice::from_ref(index),
        };
        if parts
            .iter()
            .any(|part| matches!(part.kind, ExprKind::Slice { .. }))
        {
            return self.sliced(&val, parts);
        }
        let mut indices = self.exprs(parts)?;
        let takes_anything = matches!(val, Val::Known(Known::Object(_)) | Val::Dict(_))
            || struct_type(&val).is_some();
        if !takes_anything {
            for index in &mut indices {
                if let Val::Known(known) = index
                    && let Some(number) = self.host.number(known)
                {
                    *known = number;
                }
            }
        }
        for (part, index) in parts.iter().zip(&indices) {
            // Shown where it is written, if what stands there is one index.
            if parts.len() == indices.len()
                && !takes_anything
                && let Some(ty @ Type::Scalar(_)) = self.numeric_type(index)
            {
                let outer = std::mem::replace(&mut self.range, part.range);
                self.expect_index(ty)?;
                self.range = outer;
            }
        }
        let is_tuple = matches!(index.kind, ExprKind::Tuple(_));
        self.index(val, indices, is_tuple)
    }

    pub(crate) fn index(&mut self, val: Val, indices: Vec<Val>, is_tuple: bool) -> Res<Val> {
        if let Some((func, receiver)) = self.operator_of(&val, "__getitem__")? {
            let args = Args::positional(vec![key_of(indices, is_tuple)]);
            return self.invoke(&func, receiver, args);
        }
        match &val {
            Val::Known(Known::Field(field)) => {
                let field = field.clone();
                if let Some(list) = self.list_at(std::slice::from_ref(&field), &indices)? {
                    return Ok(Val::List(list.into()));
                }
                let what = if field.name.is_empty() {
                    "the field".to_owned()
                } else {
                    format!("the field `{}`", field.name)
                };
                let indices = self.cell_indices(&indices, field.ndim, &what)?;
                let id = self.field(&field)?;
                let ty = self.module.env.fields[id]
                    .elem
                    .to_ref()
                    .expect("a number or tensor can be stored");
                let place = self.value(Op::FieldAt { field: id, indices }, ty);
                Ok(Val::Place(Place::Ref {
                    place,
                    origin: Origin::Field,
                }))
            }
            Val::Known(Known::StructField(field)) => {
                if let Some(list) = self.list_at(&field.leaves(), &indices)? {
                    return Ok(Val::List(list.into()));
                }
                self.index_struct_field(field, &indices)
            }
            Val::Array(array) => {
                let array = *array;
                let (elem, ndim) = self.array_type(array);
                let name = self.func.params[array.as_u32() as usize].name.clone();
                let indices = self.cell_indices(&indices, ndim, &format!("the array `{name}`"))?;
                let indices = self.clamped_indices(array, indices);
                let ty = elem.to_ref().expect("a number or tensor can be stored");
                let place = self.value(Op::ArrayAt { array, indices }, ty);
                Ok(Val::Place(Place::Ref {
                    place,
                    origin: Origin::Array(array),
                }))
            }
            Val::Seq(..) | Val::Known(Known::Tuple(_) | Known::List(_)) => {
                self.index_sequence(&val, &indices)
            }
            Val::Known(Known::Tensor(_)) | Val::Value(_) | Val::Place(_) => {
                let indices = self.spread(&indices)?;
                let indices = indices.into_iter().map(Index::At).collect();
                self.index_tensor(&val, indices)
            }
            Val::Known(known) => {
                let keys: Option<Vec<Known>> =
                    indices.iter().map(|index| index.known().cloned()).collect();
                let Some(keys) = keys else {
                    let what = known.describe();
                    let message =
                        format!("{what} can only be indexed by what is known while compiling");
                    let mistake = self.mistake(ErrorKind::Type, "E0212", message);
                    let mistake = match self.array_note(known) {
                        Some(note) => mistake.note(note),
                        None => mistake,
                    };
                    return Err(self.report(mistake));
                };
                let key = match (is_tuple, &keys[..]) {
                    (false, [one]) => one.clone(),
                    _ => Known::tuple(keys),
                };
                let item = fold::index(self.host, known, &key);
                Ok(Val::Known(self.hosted(item)?))
            }
            Val::Dict(entries) => self.index_dict(&entries.clone(), &indices),
            Val::Struct(..) | Val::Cell(..)
                if let [Val::Known(Known::Str(name))] = &indices[..] =>
            {
                let member = self.struct_attribute(&val, &name.clone())?;
                Ok(member.expect("what a struct does not have is reported"))
            }
            Val::Struct(..) | Val::Cell(..)
                if struct_type(&val).is_some_and(|ty| ty.method(ADD_AT).is_some()) =>
            {
                let message = "the entries of a sparse matrix builder can be neither read nor set";
                let note = "add to them: `A[i, j] += v`";
                self.fail_noted(ErrorKind::Type, "E0212", message, note)
            }
            Val::Neighbours(relation, at) => self.neighbour(&relation.clone(), *at, &indices),
            Val::Struct(..)
            | Val::Cell(..)
            | Val::Element(..)
            | Val::Iter(_)
            | Val::List(_)
            | Val::Method(..) => {
                let what = self.describe(&val);
                self.fail(
                    ErrorKind::Type,
                    "E0212",
                    format!("{what} cannot be indexed"),
                )
            }
            Val::Poison(reported) => Err(*reported),
        }
    }

    /// Indices with vectors and tuples among them taken apart.
    pub(crate) fn spread(&mut self, indices: &[Val]) -> Res<Vec<Val>> {
        let mut all = Vec::new();
        for index in indices {
            if index.is_none() {
                continue;
            }
            let is_sequence =
                index.items().is_some() || self.numeric_type(index).is_some_and(Type::is_tensor);
            if is_sequence {
                all.extend(self.elements(index)?)
            } else {
                all.push(index.clone())
            }
        }
        Ok(all)
    }

    /// The indices of a cell, as many as there are axes.
    pub(crate) fn cell_indices(
        &mut self,
        indices: &[Val],
        ndim: u32,
        what: &str,
    ) -> Res<Vec<Value>> {
        let indices = self.spread(indices)?;
        if indices.len() != ndim as usize {
            let axes = if ndim == 1 { "axis" } else { "axes" };
            let given = match indices.len() {
                1 => "1 index is".to_owned(),
                n => format!("{n} indices are"),
            };
            let message = format!("{what} has {ndim} {axes}, but {given} given");
            if (1..ndim as usize).contains(&indices.len()) {
                let note = "all indices stand in one bracket: `x[i, j]`";
                return self.fail_noted(ErrorKind::Index, "E0401", message, note);
            }
            return self.fail(ErrorKind::Index, "E0401", message);
        }
        indices
            .iter()
            .map(|index| self.index_value(index))
            .collect()
    }

    /// The indices of the nearest element, if that is what the array's annotation asks for.
    fn clamped_indices(&mut self, array: Arg, indices: Vec<Value>) -> Vec<Value> {
        if !self.clamped.contains(&array) {
            return indices;
        }
        let axes = indices.into_iter().zip(0..);
        axes.map(|(index, axis)| {
            let ty = self.ty(index);
            let mut b = self.builder();
            let extent = b.value(Op::ArrayShape { array, axis }, Type::I32);
            let [zero, one] = [0, 1].map(|x| b.i32(x));
            let last = b.binary(BinaryOp::Sub, extent, one);
            let [first, last] = [zero, last].map(|end| b.cast(end, ty));
            let below = b.binary(BinaryOp::Min, index, last);
            b.binary(BinaryOp::Max, below, first)
        })
        .collect()
    }

    fn index_value(&mut self, index: &Val) -> Res<Value> {
        let ty = self.expect_numeric(index)?;
        self.expect_index(ty)?;
        match ty.scalar() {
            Some(scalar) if scalar.bits() == 64 => self.load(index),
            // Not all of them are numbers of `i32`.
            Some(ScalarType::U32) => self.convert(index, Type::I64),
            _ => self.convert(index, Type::I32),
        }
    }

    fn expect_index(&mut self, ty: Type) -> Res<()> {
        if ty.scalar().is_some_and(|scalar| scalar.is_int()) {
            return Ok(());
        }
        self.fail_noted(
            ErrorKind::Type,
            "E0402",
            format!("an index must be an integer, not `{ty}`"),
            "convert it: `int(i)`",
        )
    }

    fn index_sequence(&mut self, val: &Val, indices: &[Val]) -> Res<Val> {
        let Some((first, rest)) = indices.split_first() else {
            let message = format!("{} takes an index, but none is given", self.describe(val));
            return self.fail(ErrorKind::Index, "E0405", message);
        };
        let item = match first {
            Val::Known(known) if known.as_int().is_some() => {
                let at = known.as_int().unwrap_or_default();
                match val.item(at) {
                    (Some(item), _) => item,
                    (None, n) => {
                        let what = self.describe(val);
                        return self.fail(
                            ErrorKind::Index,
                            "E0403",
                            format!("index {at} is out of range for {what} of {n}"),
                        );
                    }
                }
            }
            Val::Known(known) if known.items().is_none() && !matches!(known, Known::Tensor(_)) => {
                let (what, given) = (self.describe(val), known.describe());
                let message = format!("an index of {what} must be an integer, not {given}");
                return self.fail(ErrorKind::Type, "E0402", message);
            }
            _ => {
                // The index is known only when the kernel runs: the items must fit in one tensor.
                let tensor = Val::Value(self.load(val)?);
                let indices = self.spread(indices)?.into_iter().map(Index::At).collect();
                return self.index_tensor(&tensor, indices);
            }
        };
        if rest.is_empty() {
            Ok(item)
        } else {
            self.index(item, rest.to_vec(), rest.len() > 1)
        }
    }

    fn sliced(&mut self, val: &Val, parts: &[Expr<'a>]) -> Res<Val> {
        if let Some(items) = val.items()
            && let [
                Expr {
                    kind: ExprKind::Slice { .. },
                    ..
                },
            ] = parts
            && self.numeric_type(val).is_none_or(|_| val.known().is_some())
        {
            let chosen = self.slice(&parts[0], items.len() as u32)?;
            let kind = match val {
                Val::Seq(_, kind) => *kind,
                Val::Known(Known::Tuple(_)) => SeqKind::Tuple,
                _ => SeqKind::List,
            };
            return Ok(Val::seq(
                chosen
                    .into_iter()
                    .map(|k| items[k as usize].clone())
                    .collect(),
                kind,
            ));
        }
        let Some(ty) = self.numeric_type(val).filter(|ty| ty.is_tensor()) else {
            let what = self.describe(val);
            return self.fail(
                ErrorKind::Syntax,
                "E0212",
                format!("{what} cannot be sliced"),
            );
        };
        let mut indices = Vec::new();
        for (part, extent) in parts.iter().zip(ty.shape()) {
            indices.push(match part.kind {
                ExprKind::Slice { .. } => {
                    let chosen = self.slice(part, extent)?;
                    if chosen.is_empty() {
                        self.range = part.range;
                        let message = "the slice chooses nothing";
                        return self.fail(ErrorKind::Index, "E0404", message);
                    }
                    Index::Slice(chosen)
                }
                _ => Index::At(self.expr(part)?),
            });
        }
        if indices.len() != ty.shape().len() {
            return self.wrong_index_count(ty, parts.len());
        }
        self.index_tensor(val, indices)
    }

    /// The indices that a slice of constants chooses.
    fn slice(&mut self, slice: &Expr<'a>, extent: u32) -> Res<Vec<u32>> {
        let ExprKind::Slice { lo, hi, step } = slice.kind else {
            unreachable!("only slices are asked for what they choose")
        };
        let mut part = |part: Option<&Expr<'a>>| match part {
            None => Ok(None),
            Some(part) => {
                let val = self.expr(part)?;
                if val.is_none() {
                    Ok(None)
                } else {
                    self.static_int(&val, "a bound of a slice").map(Some)
                }
            }
        };
        let (lo, hi, step) = (part(lo)?, part(hi)?, part(step)?.unwrap_or(1));
        let n = i128::from(extent);
        let clamp =
            |at: i128, low: i128, high: i128| (if at < 0 { at + n } else { at }).clamp(low, high);
        let mut chosen = Vec::new();
        if step > 0 {
            let (mut at, end) = (
                lo.map_or(0, |at| clamp(at, 0, n)),
                hi.map_or(n, |at| clamp(at, 0, n)),
            );
            while at < end {
                chosen.push(at as u32);
                at += step;
            }
        } else if step < 0 {
            let (mut at, end) = (
                lo.map_or(n - 1, |at| clamp(at, -1, n - 1)),
                hi.map_or(-1, |at| clamp(at, -1, n - 1)),
            );
            while at > end {
                chosen.push(at as u32);
                at += step;
            }
        }
        Ok(chosen)
    }

    fn wrong_index_count<T>(&mut self, ty: Type, found: usize) -> Res<T> {
        let wanted = match ty.shape().len() {
            1 => "1 index".to_owned(),
            n => format!("{n} indices"),
        };
        self.fail(
            ErrorKind::Index,
            "E0405",
            format!("`{ty}` takes {wanted}, not {found}"),
        )
    }

    /// Elements of a tensor: storage if it has storage.
    fn index_tensor(&mut self, val: &Val, indices: Vec<Index>) -> Res<Val> {
        let ty = self.expect_numeric(val)?;
        let shape = ty.shape();
        if !ty.is_tensor() {
            return self.fail(
                ErrorKind::Type,
                "E0212",
                format!("`{ty}` cannot be indexed"),
            );
        }
        let mut indices = indices;
        if indices.len() == 1 && shape.len() == 2 {
            // One index of a matrix is a row.
            indices.push(Index::Slice((0..shape[1]).collect()));
        }
        if indices.len() != shape.len() {
            return self.wrong_index_count(ty, indices.len());
        }
        for (index, extent) in indices.iter_mut().zip(&shape) {
            if let Index::At(Val::Known(known)) = index
                && let Some(at) = known.as_int()
            {
                // As in Python, what is negative counts from the end.
                let n = i128::from(*extent);
                let wrapped = if at < 0 { at + n } else { at };
                if !(0..n).contains(&wrapped) {
                    return self.fail(
                        ErrorKind::Index,
                        "E0403",
                        format!("index {at} is out of range for `{ty}`"),
                    );
                }
                *index = Index::At(Val::int(wrapped));
            }
        }
        let elem = elem(ty);
        let chosen: Vec<Vec<Val>> = indices
            .iter()
            .map(|index| match index {
                Index::At(val) => vec![val.clone()],
                Index::Slice(at) => at.iter().map(|&k| Val::int(i128::from(k))).collect(),
            })
            .collect();
        let extents: Vec<u32> = indices
            .iter()
            .zip(&chosen)
            .filter(|(index, _)| matches!(index, Index::Slice(_)))
            .map(|(_, chosen)| chosen.len() as u32)
            .collect();
        let result = match extents[..] {
            [] => Type::Scalar(elem),
            [n] => Type::Vec(n, elem),
            [n, m, ..] => Type::Mat(n, m, elem),
        };
        let tuples: Vec<Vec<Val>> = match &chosen[..] {
            [rows] => rows.iter().map(|row| vec![row.clone()]).collect(),
            [rows, columns, ..] => rows
                .iter()
                .flat_map(|row| {
                    columns
                        .iter()
                        .map(|column| vec![row.clone(), column.clone()])
                })
                .collect(),
            [] => unreachable!("a tensor has as many indices as axes, one at least"),
        };
        self.pick(val, ty, &tuples, result)
    }

    /// The elements of `val` at `tuples`, as one value or place of type `result`.
    fn pick(&mut self, val: &Val, ty: Type, tuples: &[Vec<Val>], result: Type) -> Res<Val> {
        let elem = elem(ty);
        match val {
            Val::Place(Place::Ref { place, origin }) => {
                let (base, origin) = (*place, *origin);
                let storage = Type::RefScalar(elem);
                let mut refs = Vec::new();
                for tuple in tuples {
                    let index = tuple
                        .iter()
                        .map(|at| self.index_value(at))
                        .collect::<Res<Vec<_>>>()?;
                    refs.push(self.value(Op::ElemRef { base, index }, storage));
                }
                Ok(Val::Place(match result {
                    Type::Scalar(_) => Place::Ref {
                        place: refs[0],
                        origin,
                    },
                    _ => Place::Elements {
                        refs: refs.into(),
                        ty: result,
                        origin,
                    },
                }))
            }
            _ => {
                let flat: Option<Vec<usize>> =
                    tuples.iter().map(|tuple| flat_index(ty, tuple)).collect();
                if let Some(flat) = flat {
                    if let Val::Place(Place::Elements { refs, origin, .. }) = val {
                        let refs: Vec<Value> = flat.iter().map(|&k| refs[k]).collect();
                        return Ok(Val::Place(match result {
                            Type::Scalar(_) => Place::Ref {
                                place: refs[0],
                                origin: *origin,
                            },
                            _ => Place::Elements {
                                refs: refs.into(),
                                ty: result,
                                origin: *origin,
                            },
                        }));
                    }
                    let elements = self.elements(val)?;
                    let chosen: Vec<Val> = flat.iter().map(|&k| elements[k].clone()).collect();
                    return match result {
                        Type::Scalar(_) => Ok(chosen[0].clone()),
                        _ => Ok(Val::Value(self.make(&chosen, result)?)),
                    };
                }
                let tensor = self.load(val)?;
                let mut elems = Vec::new();
                for tuple in tuples {
                    let index = tuple
                        .iter()
                        .map(|at| self.index_value(at))
                        .collect::<Res<Vec<_>>>()?;
                    elems.push(self.value(Op::TensorGet { tensor, index }, elem.into()));
                }
                Ok(Val::Value(match result {
                    Type::Scalar(_) => elems[0],
                    _ => self.value(Op::TensorMake { elems }, result),
                }))
            }
        }
    }

    /// `val.attr`; `from` is where `val` is written.
    pub(crate) fn attribute(&mut self, val: Val, attr: &str, from: &Expr<'a>) -> Res<Val> {
        if let Some(found) = self.struct_attribute(&val, attr)? {
            return Ok(found);
        }
        match &val {
            Val::Element(of, at) => return self.element_attribute(of, at, attr),
            Val::Neighbours(relation, at) if attr == "size" => {
                return self.n_neighbours(relation, *at);
            }
            _ => {}
        }
        if matches!(attr, "append" | "length" | "deactivate") {
            // A field with no axis but a list's is that list.
            let fields = match &val {
                Val::Known(Known::Field(field)) => vec![field.clone()],
                Val::Known(Known::StructField(field)) => field.leaves(),
                _ => Vec::new(),
            };
            if let Some(list) = self.list_at(&fields, &[])? {
                return Ok(Val::Method(Val::List(list.into()).into(), attr.into()));
            }
        }
        match &val {
            Val::Poison(reported) => return Err(*reported),
            Val::Array(arg) => match attr {
                "shape" => {
                    let ndim = self.array_type(*arg).1;
                    let array = *arg;
                    let extents = (0..ndim).map(|axis| {
                        Val::Value(self.value(Op::ArrayShape { array, axis }, Type::I32))
                    });
                    return Ok(Val::seq(extents.collect(), SeqKind::Tuple));
                }
                "dtype" => {
                    let elem = elem(self.array_type(*arg).0);
                    return Ok(Val::Known(Known::DType(elem)));
                }
                "fill" | "element_shape" => {
                    return Ok(Val::Method(val.clone().into(), attr.into()));
                }
                _ => return self.no_attribute(&val, attr, Some(from)),
            },
            Val::List(_) | Val::Dict(_) => return Ok(Val::Method(val.clone().into(), attr.into())),
            Val::Known(Known::Field(_)) if matches!(attr, "fill" | "copy_from") => {
                return Ok(Val::Method(val.clone().into(), attr.into()));
            }
            Val::Known(Known::Builtin(name)) => {
                let method = format!("{name}.{attr}");
                if intrinsics::find(&method).is_some() || unbound_method(&method).is_some() {
                    return Ok(Val::Known(Known::Builtin(method.into())));
                }
            }
            Val::Known(Known::Str(_)) => return Ok(Val::Method(val.clone().into(), attr.into())),
            // A list that is known while compiling is a copy: changing it would change nothing.
            Val::Known(Known::List(_)) if GROWING.contains(&attr) => {
                return self.no_attribute(&val, attr, Some(from));
            }
            _ => {}
        }
        if let Some(ty) = self.numeric_type(&val)
            && !matches!(&val, Val::Known(known) if known.is_number() || matches!(known, Known::Object(_)))
        {
            return self.tensor_attribute(val, ty, attr, from);
        }
        if let Val::Known(known) = &val {
            let found = self.host.attr(known, attr);
            return match self.hosted(found)? {
                Some(known) => Ok(Val::Known(known)),
                None => self.no_attribute(&val, attr, Some(from)),
            };
        }
        self.no_attribute(&val, attr, Some(from))
    }

    fn tensor_attribute(&mut self, val: Val, ty: Type, attr: &str, from: &Expr<'a>) -> Res<Val> {
        let shape = ty.shape();
        match (attr, &shape[..]) {
            ("n", [n, ..]) => return Ok(Val::int(i128::from(*n))),
            ("m", [_]) => return Ok(Val::int(1)),
            ("m", [_, m]) => return Ok(Val::int(i128::from(*m))),
            ("shape", _) => return Ok(shape_of(ty)),
            ("dtype", _) => return Ok(Val::Known(Known::DType(elem(ty)))),
            _ => {}
        }
        match (swizzle(attr), ty) {
            (Some(at), Type::Vec(n, elem)) => {
                if at.iter().any(|&k| k >= n) {
                    return self.fail(
                        ErrorKind::Syntax,
                        "E0403",
                        format!("`{ty}` has no component `{attr}`"),
                    );
                }
                let result = if at.len() == 1 {
                    Type::Scalar(elem)
                } else {
                    Type::Vec(at.len() as u32, elem)
                };
                let tuples: Vec<Vec<Val>> =
                    at.iter().map(|&k| vec![Val::int(i128::from(k))]).collect();
                self.pick(&val, ty, &tuples, result)
            }
            _ if methods_of(ty).contains(&attr) => Ok(Val::Method(val.into(), attr.into())),
            _ => self.no_attribute(&val, attr, Some(from)),
        }
    }
}

/// What an object that is indexed is given.
pub(crate) fn key_of(mut indices: Vec<Val>, is_tuple: bool) -> Val {
    if is_tuple || indices.len() != 1 {
        Val::seq(indices, SeqKind::Tuple)
    } else {
        indices.remove(0)
    }
}

/// The position of an element in row order, if its indices are known.
fn flat_index(ty: Type, tuple: &[Val]) -> Option<usize> {
    let at: Option<Vec<usize>> = tuple
        .iter()
        .map(|val| val.known()?.as_int().map(|k| k as usize))
        .collect();
    match (ty, &at?[..]) {
        (Type::Mat(_, m, _), [row, column]) => Some(row * m as usize + column),
        (_, [at]) => Some(*at),
        _ => None,
    }
}

/// The components that a name such as `xy` or `rgb` chooses.
fn swizzle(attr: &str) -> Option<Vec<u32>> {
    if attr.is_empty() || attr.len() > 4 {
        return None;
    }
    SWIZZLES.iter().find_map(|letters| {
        attr.chars()
            .map(|c| letters.find(c).map(|k| k as u32))
            .collect()
    })
}

/// The extents of a vector or matrix as a tuple.
pub(crate) fn shape_of(ty: Type) -> Val {
    let extents = ty.shape();
    Val::Known(Known::tuple(
        extents.iter().map(|&n| Known::Int(i128::from(n))),
    ))
}
