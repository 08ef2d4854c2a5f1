//! `x[i, j]` and `x.attr`: fields, arrays, tensors, sequences, and Python's own objects.

use aerogel_base::{ErrorKind, ScalarType};
use aerogel_ir::{Arg, BinaryOp, FieldId, Op, ParamData, ParamType, Type, Value};

use crate::ast::{Expr, ExprKind};
use crate::fold;
use crate::host::Known;
use crate::lower::calls::Args;
use crate::lower::core::augmented::ADD_AT;
use crate::lower::values::elements::Index;
use crate::lower::values::structs::struct_type;
use crate::lower::values::{Origin, Place, SeqKind, Val, tensor_type};
use crate::lower::{Control, Lower, Res};

impl<'a> Lower<'a, '_> {
    /// An array that Python has, captured or in an object, is a parameter more, which every launch passes.
    pub(crate) fn captured(&mut self, val: Val) -> Res<Val> {
        let Val::Known(known @ Known::Object(_)) = &val else {
            return Ok(val);
        };
        let Some(array) = self.host.array(known) else {
            return Ok(val);
        };
        if !self.state.func.is_kernel {
            return self.fail_noted(
                ErrorKind::Type,
                "E0212",
                "a real function can only use arrays that are passed to it",
                "pass it: annotate a parameter `ti.types.ndarray()`",
            );
        }
        let handle = array.handle;
        if let Some((_, arg)) = self.captured.iter().find(|(of, _)| *of == handle) {
            return Ok(Val::Array(*arg));
        }
        let arg = Arg::from_u32(self.state.func.params.len() as u32);
        self.state.func.params.push(ParamData {
            name: "ndarray".to_owned(),
            ty: ParamType::Array {
                elem: tensor_type(array.shape, array.elem),
                ndim: array.ndim,
                read_only: true,
            },
            of: None,
        });
        self.captured.push((handle, arg));
        if array.derivative {
            self.differentiated.push(arg);
        }
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
                let given = self.spread(&indices)?;
                let indices = self.cell_indices(&given, field.ndim, &what)?;
                let id = self.field(&field)?;
                self.expect_inside(id, &what, &given)?;
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
                let name = self.state.func.params[array.as_u32() as usize].name.clone();
                let indices = self.cell_indices(&indices, ndim, &format!("the array `{name}`"))?;
                let indices = self.clamped_indices(array, indices);
                let ty = elem.to_ref().expect("a number or tensor can be stored");
                let place = self.value(Op::ArrayAt { array, indices }, ty);
                Ok(Val::Place(Place::Ref {
                    place,
                    origin: Origin::Array(array),
                }))
            }
            Val::Shared(shared) => self.index_shared(&shared.clone(), &indices),
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
                    let message = format!("{what} can only be indexed by compile-time values");
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
                let item = self.hosted(item)?;
                self.val(item)
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
            | Val::Texture(_)
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

    /// Checks that indices known while compiling are in bounds of a field. Code under a condition may be meant for other
    /// shapes, and gets a warning; in debug mode the running kernel reports it.
    fn expect_inside(&mut self, id: FieldId, what: &str, indices: &[Val]) -> Res<()> {
        let known: Option<Vec<i128>> = indices
            .iter()
            .map(|index| index.known().and_then(Known::as_int))
            .collect();
        let Some(known) = known.filter(|_| !self.config.debug) else {
            return Ok(());
        };
        let field = &self.module.env.fields[id];
        // Of one that is split, this process has a part only; whose part it is, is looked at later.
        if self
            .host
            .is_split(self.naming.trees[field.tree.as_u32() as usize])
        {
            return Ok(());
        }
        let shape = self.module.env.trees[field.tree].shape(field.places[0]);
        let first = |axis: usize| i128::from(field.offset.get(axis).copied().unwrap_or(0));
        let inside = |(axis, (&at, &n)): (usize, (&i128, &u64))| {
            (first(axis)..first(axis) + i128::from(n)).contains(&at)
        };
        if known.iter().zip(&shape).enumerate().all(inside) {
            return Ok(());
        }
        let listed = |of: Vec<String>| of.join(", ");
        let message = format!(
            "index ({}) is out of bounds for {what} of shape ({})",
            listed(known.iter().map(i128::to_string).collect()),
            listed(shape.iter().map(u64::to_string).collect()),
        );
        if self.state.control.contains(&Control::If) || self.state.control.contains(&Control::Guard)
        {
            self.warn(message);
            return Ok(());
        }
        if known.iter().any(|&at| at < 0) && field.offset.is_empty() {
            let note = "a negative index does not count from the end: write `x[x.shape[0] - 1]`";
            return self.fail_noted(ErrorKind::Index, "E0403", message, note);
        }
        self.fail(ErrorKind::Index, "E0403", message)
    }

    /// The indices of the nearest element, if the array's annotation requests clamping.
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

    pub(crate) fn index_value(&mut self, index: &Val) -> Res<Value> {
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
}

/// What an object that is indexed is given.
pub(crate) fn key_of(mut indices: Vec<Val>, is_tuple: bool) -> Val {
    if is_tuple || indices.len() != 1 {
        Val::seq(indices, SeqKind::Tuple)
    } else {
        indices.remove(0)
    }
}
