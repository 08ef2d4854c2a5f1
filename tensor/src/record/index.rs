//! Elements at computed indices.

use aerogel_base::ScalarType;
use aerogel_ir::{BinaryOp, CompareOp};

use crate::ir::{Accum, Buffer, Dim, Expr, Outside, Site, Stmt, Store};

use super::{CheckedLoad, RecordError, Recorded, Recording};

aerogel_base::kinds! {
    /// The meaning of an out-of-bounds index in the user's program.
    Mode {
        /// None is: the caller has looked.
        Never = "never",
        /// The nearest element.
        Clamp = "clamp",
        /// The remainder by the size of the axis.
        Wrap = "wrap",
        /// A read gives zero, a write does nothing.
        Zero = "zero",
        /// An error.
        Error = "error",
    }
}

impl Mode {
    /// The same of an access, if that is not checked.
    pub(super) fn unchecked(self) -> Option<Outside> {
        match self {
            Self::Never => Some(Outside::Never),
            Self::Clamp => Some(Outside::Clamp),
            Self::Wrap => Some(Outside::Wrap),
            Self::Zero => Some(Outside::Zero),
            Self::Error => None,
        }
    }
}

impl Recording {
    pub(super) fn index_types(&self, op: &str, index: &[Buffer]) -> Recorded<()> {
        for &at in index {
            if !self.ty(at).is_int() || self.ty(at) == ScalarType::U1 {
                return self.types_error(op, &[at], "indices of integers");
            }
        }
        Ok(())
    }

    /// The indices that several tensors hold, at the points of the domain that they are broadcast to.
    fn indices(
        &mut self,
        op: &str,
        index: &[Buffer],
        extents: &[Dim],
        mode: Mode,
    ) -> Recorded<(Vec<Dim>, Vec<Expr>)> {
        self.index_types(op, index)?;
        let (domain, elements) = self.stretched(op, index)?;
        let elements = elements.into_iter().zip(extents);
        let elements = elements
            .map(|(e, &dim)| self.as_index_along(e, dim, mode))
            .collect();
        Ok((domain, elements))
    }

    /// A number as an index along an axis: one that wraps around does so before it is cut to the type of indices.
    pub(crate) fn as_index_along(&mut self, e: Expr, dim: Dim, mode: Mode) -> Expr {
        let ty = self.program.exprs.ty(e);
        let is_wide = matches!(ty, ScalarType::I64 | ScalarType::U32 | ScalarType::U64);
        if mode != Mode::Wrap || !is_wide {
            return self.as_index(e);
        }
        let extent = self.program.extent(dim);
        let extent = self.program.exprs.cast(extent, ty);
        // Along an axis without elements there is nothing to read.
        let one = self.program.exprs.int(ty, 1);
        let extent = self.program.exprs.binary(BinaryOp::Max, extent, one);
        let inside = self.program.exprs.binary(BinaryOp::Mod, e, extent);
        self.program.exprs.cast(inside, ScalarType::I32)
    }

    /// A number as an index: a number beyond the type of indices stays out of bounds of every axis.
    pub(crate) fn as_index(&mut self, e: Expr) -> Expr {
        let ty = self.program.exprs.ty(e);
        let mut e = e;
        if matches!(ty, ScalarType::I64 | ScalarType::U32 | ScalarType::U64) {
            let last = self.program.exprs.int(ty, i32::MAX.into());
            e = self.program.exprs.binary(BinaryOp::Min, e, last);
        }
        if ty == ScalarType::I64 {
            let first = self.program.exprs.int(ty, i32::MIN.into());
            e = self.program.exprs.binary(BinaryOp::Max, e, first);
        }
        self.program.exprs.cast(e, ScalarType::I32)
    }

    /// `x[.., index, ..]`: for each point of the indices' domain the part of `x` that has them along its axes from `first`
    /// on. Negative indices count from the end if `from_end`. Checked indices are checked where `mask` is true; elsewhere those
    /// out of bounds read zero.
    ///
    /// # Errors
    /// If there are more indices than axes, or their shapes do not agree.
    pub fn gather(
        &mut self,
        x: Buffer,
        first: usize,
        index: &[Buffer],
        mode: Mode,
        from_end: bool,
        mask: Option<Buffer>,
    ) -> Recorded {
        let shape = self.shape(x);
        if first + index.len() > shape.len() {
            return Err(RecordError::Index(format!(
                "{} indices for a tensor with {} axes",
                first + index.len(),
                shape.len()
            )));
        }
        let (points, mut at) = self.indices("gather", index, &shape[first..], mode)?;
        if let Some(mask) = mask.filter(|_| mode == Mode::Error) {
            at.push(self.asked_at(mask, &points, index)?);
        }
        let mut domain = shape[..first].to_vec();
        domain.extend(&points);
        domain.extend(&shape[first + index.len()..]);
        if let Some(field) = self.cells_of("x[key]", index)? {
            let n = self.rank(field);
            if first > 0 || domain.len() > n && !self.are_few(&domain[n..]) {
                self.expect_everywhere(index)?;
            }
        }
        let mut at = self.moved(&at, first as u32);
        let asked = at.split_off(index.len());
        let at = at.into_iter().enumerate().map(|(k, e)| match from_end {
            true => self.counted_from_end(e, shape[first + k], mode),
            false => e,
        });
        let at: Vec<Expr> = at.collect();
        let axes = self.program.axes(domain.len());
        let mut all = axes[..first].to_vec();
        all.extend(at);
        all.extend(&axes[first + points.len()..]);
        let value = self.load_where(&domain, x, all, mode, asked.first().copied());
        Ok(self.map(&domain, value))
    }

    /// Whether indices are checked at a point of their domain: along axes that the mask lacks, at every point.
    fn asked_at(&mut self, mask: Buffer, points: &[Dim], index: &[Buffer]) -> Recorded<Expr> {
        let shape = self.shape(mask);
        let mut index = index.iter();
        let meets = !self.is_at_cells(mask) || index.any(|&x| self.is_at_cells(x));
        let mut left = Vec::new();
        let mut at = Vec::new();
        for (k, &dim) in shape.iter().enumerate() {
            let point = (points.len() + k).checked_sub(shape.len());
            let is_one = self.program.const_dim(dim) == Some(1);
            match point.filter(|&p| meets && self.are_equal(dim, points[p])) {
                Some(p) if !is_one || self.is_at_cells(mask) => {
                    at.push(self.program.exprs.axis(p as u32));
                    continue;
                }
                None if !is_one => left.push(k as i64),
                _ => {}
            }
            at.push(self.program.exprs.i32(0));
        }
        let mask = match left[..] {
            [] => mask,
            _ => self.reduce("any", mask, Some(&left), true)?,
        };
        Ok(self.element(mask, at))
    }

    /// An element whose index must be inside where `asked` holds; elsewhere, zero if the index is outside.
    pub(super) fn load_where(
        &mut self,
        domain: &[Dim],
        x: Buffer,
        index: Vec<Expr>,
        mode: Mode,
        asked: Option<Expr>,
    ) -> Expr {
        let outside = mode.unchecked().unwrap_or_else(|| {
            let load = CheckedLoad {
                domain: domain.to_vec(),
                buffer: x,
                index: index.clone(),
                asked,
            };
            Outside::Error(self.site_of(load))
        });
        let value = self.program.load(x, index.clone(), outside);
        let Some(asked) = asked else {
            return value;
        };
        // It may be read at another point, where it is needed.
        let shape = self.shape(x);
        let mut inside: Option<Expr> = None;
        for (i, dim) in index.into_iter().zip(shape) {
            let (zero, extent) = (self.program.exprs.i32(0), self.program.extent(dim));
            let low = self.program.exprs.compare(CompareOp::Ge, i, zero);
            let high = self.lt(i, extent);
            let both = self.program.exprs.binary(BinaryOp::And, low, high);
            inside = Some(match inside {
                Some(before) => self.program.exprs.binary(BinaryOp::And, before, both),
                None => both,
            });
        }
        let there = match inside {
            Some(inside) => self.program.exprs.binary(BinaryOp::Or, asked, inside),
            None => asked,
        };
        let zero = aerogel_base::Scalar::zero(self.program.exprs.ty(value));
        let zero = self.program.exprs.constant(zero);
        self.program.exprs.select(there, value, zero)
    }

    /// The site of a checked load. Equal loads share the site of the first.
    fn site_of(&mut self, load: CheckedLoad) -> Site {
        if let Some(&site) = self.checked.get(&load) {
            return site;
        }
        let site = self.program.site(load.buffer, &load.index, false);
        self.checked.insert(load, site);
        site
    }

    /// Expressions over a domain that stands behind `by` more axes.
    fn moved(&mut self, all: &[Expr], by: u32) -> Vec<Expr> {
        if by == 0 {
            return all.to_vec();
        }
        let mut done = aerogel_base::hash::LookupMap::default();
        let mut leaf = |exprs: &mut crate::ir::Exprs, def: &crate::ir::ExprDef| match *def {
            crate::ir::ExprDef::Axis(k) => Some(exprs.axis(k + by)),
            _ => None,
        };
        all.iter()
            .map(|&e| self.program.exprs.replace(e, &mut done, &mut leaf))
            .collect()
    }

    /// An index below zero counts from the end, unless it is said what one outside means.
    pub(super) fn counted_from_end(&mut self, index: Expr, dim: Dim, mode: Mode) -> Expr {
        if mode != Mode::Error {
            return index;
        }
        let zero = self.program.exprs.i32(0);
        let negative = self.lt(index, zero);
        let extent = self.program.extent(dim);
        let wrapped = self.add(index, extent);
        self.program.exprs.select(negative, wrapped, index)
    }

    /// The elements of `x` with the index along one axis taken from `index`, which has as many axes as `x`.
    ///
    /// # Errors
    /// If shapes do not fit.
    pub fn take_along_axis(
        &mut self,
        x: Buffer,
        index: Buffer,
        axis: i64,
        mode: Mode,
        mask: Option<Buffer>,
    ) -> Recorded {
        let shape = self.shape(x);
        let axis = self.axis_of("take_along_axis", axis, shape.len())?;
        self.index_types("take_along_axis", &[index])?;
        let mut others = shape.clone();
        let mut given = self.shape(index);
        if given.len() != shape.len() {
            return Err(RecordError::Value(format!(
                "`take_along_axis`: the indices have {} axes, the tensor has {}",
                given.len(),
                shape.len()
            )));
        }
        let taken = given[axis];
        others[axis] = self.program.size(1);
        given[axis] = others[axis];
        let mut domain = self.broadcast("take_along_axis", &[others, given])?;
        domain[axis] = taken;
        let mut at = self.program.axes(domain.len());
        let value = self.at_point(index, domain.len());
        let value = self.as_index_along(value, shape[axis], mode);
        at[axis] = self.counted_from_end(value, shape[axis], mode);
        for (k, &dim) in shape.iter().enumerate() {
            if k != axis && self.program.const_dim(dim) == Some(1) {
                at[k] = self.program.exprs.i32(0);
            }
        }
        let asked = match mask.filter(|_| mode == Mode::Error) {
            Some(mask) => Some(self.asked_at(mask, &domain, &[index])?),
            None => None,
        };
        let value = self.load_where(&domain, x, at, mode, asked);
        Ok(self.map(&domain, value))
    }

    /// `x` with values accumulated to (`accum`), or replacing, the elements at indices along its axes from the first on. The
    /// values are broadcast to the shape of the indices and the other axes. Of several values for one element the last
    /// one is stored.
    ///
    /// # Errors
    /// If there are more indices than axes, shapes do not agree, or types differ.
    pub fn scatter(
        &mut self,
        x: Buffer,
        index: &[Buffer],
        values: Buffer,
        accum: Option<Accum>,
        mode: Mode,
    ) -> Recorded {
        let shape = self.shape(x);
        if index.len() > shape.len() {
            return Err(RecordError::Index(format!(
                "{} indices for a tensor with {} axes",
                index.len(),
                shape.len()
            )));
        }
        if self.ty(values) != self.ty(x) {
            return self.types_error("scatter", &[x, values], "values of the tensor's type");
        }
        let (points, at) = self.indices("scatter", index, &shape, mode)?;
        let rest = &shape[index.len()..];
        let mut domain = points.clone();
        domain.extend(rest);
        let to = self.broadcast("scatter", &[domain.clone(), self.shape(values)])?;
        if to.len() != domain.len() {
            let (from, to) = (
                self.shape_text(&self.shape(values)),
                self.shape_text(&domain),
            );
            return Err(RecordError::Value(format!(
                "`{}`: values of shape {from} for elements of shape {to}",
                self.name_of("scatter")
            )));
        }
        let value = self.at_point(values, domain.len());
        let axes = self.program.axes(domain.len());
        let mut all: Vec<Expr> = Vec::new();
        for (k, e) in at.into_iter().enumerate() {
            all.push(self.counted_from_end(e, shape[k], mode));
        }
        all.extend(&axes[points.len()..]);
        let target = self.copy(x);
        let outside = self.outside_of_store(target, &all, mode);
        let store = Store {
            target,
            index: all,
            value,
            accum: accum.map(|a| a.of(self.ty(x))),
            init: false,
            outside,
        };
        match accum {
            None => self.store_in_order(&points, &domain[points.len()..], vec![store], None),
            Some(_) => self.program.assign(&domain, store, self.span),
        }
        Ok(target)
    }

    /// `for rest { loop over points { if wanted { stores } } }`: points that store to one place do so one after the other, row by
    /// row.
    pub(super) fn store_in_order(
        &mut self,
        points: &[Dim],
        rest: &[Dim],
        stores: Vec<Store>,
        wanted: Option<Expr>,
    ) {
        let n = self.product(points);
        let hi = self.program.extent(n);
        let var = self.program.var(ScalarType::I32);
        let at = self.program.get(var);
        let mut axes = self.unravel(at, points);
        axes.extend(self.program.axes(rest.len()));
        let mut done = aerogel_base::hash::LookupMap::default();
        let mut leaf = |_: &mut crate::ir::Exprs, def: &crate::ir::ExprDef| match *def {
            crate::ir::ExprDef::Axis(k) => Some(axes[k as usize]),
            _ => None,
        };
        let exprs = &mut self.program.exprs;
        let mut moved = |e: Expr| exprs.replace(e, &mut done, &mut leaf);
        let stores = stores.into_iter().map(|store| {
            Stmt::Store(Store {
                index: store.index.iter().map(|&e| moved(e)).collect(),
                value: moved(store.value),
                ..store
            })
        });
        let mut stores: Vec<Stmt> = stores.collect();
        if let Some(wanted) = wanted {
            stores = vec![Stmt::If(moved(wanted), stores, Vec::new())];
        }
        let body = vec![Stmt::Loop {
            var,
            lo: self.program.exprs.i32(0),
            hi,
            step: 1,
            body: stores,
        }];
        self.for_all(rest.to_vec(), body);
    }

    /// A tensor of its own with the same elements: not shared with an equal one.
    pub fn copy(&mut self, x: Buffer) -> Buffer {
        let shape = self.shape(x);
        let target = self.program.temporary(self.ty(x), &shape);
        let value = self.at_point(x, shape.len());
        let index = self.program.axes(shape.len());
        let store = Store {
            target,
            index,
            value,
            accum: None,
            init: false,
            outside: Outside::Never,
        };
        self.program.assign(&shape, store, self.span);
        target
    }

    /// `x` with `values` in place of a part of it, or accumulated into it; they are broadcast to the part.
    ///
    /// # Errors
    /// If they do not broadcast to it, or are of another type.
    pub fn with_part(
        &mut self,
        x: Buffer,
        parts: &[super::Part],
        values: Buffer,
        accum: Option<Accum>,
    ) -> Recorded {
        let is_checked = parts.iter().any(|part| part.is_checked);
        let (domain, index) = self.index_of_parts(x, parts)?;
        if self.ty(values) != self.ty(x) {
            return self.types_error(
                "x[key] = value",
                &[x, values],
                "values of the tensor's type",
            );
        }
        let given = self.shape(values);
        let to = self.broadcast("x[key] = value", &[domain.clone(), given.clone()])?;
        if !self.stretches_to(&to, &domain) {
            let (from, to) = (self.shape_text(&given), self.shape_text(&domain));
            return Err(RecordError::Value(format!(
                "`x[key] = value`: values of shape {from} do not broadcast to the slice's {to}"
            )));
        }
        let mut value = self.at_point(values, domain.len());
        if let Some(accum) = accum {
            // A part names each element once, so that this is arithmetic with the element as it was.
            let old = match is_checked {
                true => self.load_where(&domain, x, index.clone(), Mode::Error, None),
                false => self.element(x, index.clone()),
            };
            let op = accum.of(self.ty(x)).binary();
            value = self.program.exprs.binary(op, old, value);
        }
        let target = self.copy(x);
        let outside = match is_checked {
            true => self.outside_of_store(target, &index, Mode::Error),
            false => Outside::Never,
        };
        let store = Store {
            target,
            index,
            value,
            accum: None,
            init: false,
            outside,
        };
        self.program.assign(&domain, store, self.span);
        Ok(target)
    }
}
