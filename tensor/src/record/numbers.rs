//! Sparse values with component axes after the cells' axes, as those of vector and matrix fields.
//!
//! ```text
//! u = v[i, j] * 2, which is [n, m, 2]     for cells v0 [n, m] { u0[i0, i1] = mul(v0[i0, i1], 2) }
//!                                         for cells v0 [n, m] { u1[i0, i1] = mul(v1[i0, i1], 2) }
//! ```
//! Each component is one sparse value, and the component axes are unrolled. So a `for` over cells has the axes of the
//! field, and no statement names the buffer that stands for all components.

use aerogel_base::Scalar;
use aerogel_base::hash::LookupMap;
use aerogel_ir::{BinaryOp, CompareOp};
use indexmap::IndexMap;

use super::{Made, Recorded, Recording};
use crate::ir::{Buffer, Dim, Expr, ExprDef, Stmt, map_exprs};

/// At most so many numbers are at one cell.
const MOST: u64 = 1024;

/// The replacement of each axis of a domain.
type Point = IndexMap<u32, Expr>;

impl Recording {
    /// Values at the cells of a field as the numbers of one, row by row of the last axes.
    ///
    /// # Errors
    /// If they are at the cells of several fields, or at cells that may not be the active ones any more.
    pub fn at_cells(&mut self, parts: &[Buffer], last: &[Dim]) -> Recorded {
        let cells = self.cells_of("a field's element", parts)?;
        let field = cells.expect("they are sparse values");
        let mut shape = self.shape(field);
        shape.extend(last);
        Ok(self.all_of(field, parts.to_vec(), &shape))
    }

    fn all_of(&mut self, field: Buffer, parts: Vec<Buffer>, shape: &[Dim]) -> Buffer {
        let all = self.program.temporary(self.ty(parts[0]), shape);
        self.note_at_cells(all, field);
        self.cells.parts.insert(all, parts);
        all
    }

    /// The scalar sparse values of a sparse value with components, in row-major order; none for other values.
    pub fn parts_of(&self, x: Buffer) -> Vec<Buffer> {
        self.cells.parts.get(&x).cloned().unwrap_or_default()
    }

    /// Whether there are so few numbers along some axes that they may be at one cell.
    pub(super) fn are_few(&self, dims: &[Dim]) -> bool {
        let mut extents = dims.iter().map(|&d| self.program.const_dim(d));
        let n = extents.try_fold(1u64, |n, extent| n.checked_mul(extent?));
        n.is_some_and(|n| (1..=MOST).contains(&n))
    }

    /// The elements of a tensor under other indices. One at cells keeps the cells' axes as they are.
    ///
    /// # Errors
    /// If it does not.
    pub(super) fn view(&mut self, x: Buffer, domain: &[Dim], index: Vec<Expr>) -> Recorded {
        if let Some(&(field, _)) = self.cells.at.get(&x) {
            let shape = self.shape(field);
            let (n, exprs) = (shape.len(), &self.program.exprs);
            let mut own = index[..n].iter().enumerate();
            let stay = own.all(|(k, &e)| exprs[e] == ExprDef::Axis(k as u32));
            if !stay || !domain.starts_with(&shape) || !self.are_few(&domain[n..]) {
                self.expect_everywhere(&[x])?;
            }
        }
        let value = self.element(x, index);
        Ok(self.map(domain, value))
    }

    /// What the axes of a domain are at each point of those that are not the cells': the cells' are in this order.
    fn points(&mut self, domain: &[Dim], order: &[u32]) -> Vec<Point> {
        let cells = order.iter().enumerate();
        let cells = cells.map(|(k, &axis)| (axis, self.program.exprs.axis(k as u32)));
        let mut points: Vec<Point> = vec![cells.collect()];
        for (axis, &dim) in domain.iter().enumerate() {
            if order.contains(&(axis as u32)) {
                continue;
            }
            let n = self.program.const_dim(dim);
            let n = n.expect("few numbers are at a cell");
            let mut more = Vec::new();
            for point in &points {
                for k in 0..n {
                    let at = self.program.exprs.i32(k as i32);
                    let mut point = point.clone();
                    point.insert(axis as u32, at);
                    more.push(point);
                }
            }
            points = more;
        }
        points
    }

    /// Expressions at a point, reading the parts of values with several numbers.
    fn at_numbers(&mut self, point: &Point) -> impl FnMut(Expr) -> Expr {
        let mut done = LookupMap::default();
        let (parts, buffers) = (&self.cells.parts, &self.program.buffers);
        let dims = &self.program.dims;
        let exprs = &mut self.program.exprs;
        let extent = |d: &Dim| match dims[d.as_u32() as usize] {
            crate::ir::DimDef::Const(n) => n as i32,
            _ => unreachable!("few numbers are at a cell"),
        };
        move |e| {
            exprs.replace(e, &mut done, &mut |exprs, def| match def {
                ExprDef::Axis(k) => point.get(k).copied(),
                ExprDef::Load {
                    buffer,
                    ty,
                    index,
                    outside,
                } => {
                    let parts = parts.get(buffer)?;
                    let n = buffers[parts[0]].shape.len();
                    let last = buffers[*buffer].shape[n..].iter().map(extent);
                    let number = last.zip(&index[n..]).fold(None, |sum, (extent, &at)| {
                        let Some(sum) = sum else { return Some(at) };
                        let extent = exprs.i32(extent);
                        let rows = exprs.binary(BinaryOp::Mul, sum, extent);
                        Some(exprs.binary(BinaryOp::Add, rows, at))
                    });
                    let number = number.expect("there are axes behind the cells'");
                    let one = |exprs: &mut crate::ir::Exprs, part: Buffer| {
                        exprs.add(ExprDef::Load {
                            buffer: part,
                            ty: *ty,
                            index: index[..n].to_vec(),
                            outside: *outside,
                        })
                    };
                    if let Some(k) = exprs.as_const(number).map(Scalar::as_i128) {
                        return Some(one(exprs, parts[k as usize]));
                    }
                    let mut value = one(exprs, parts[parts.len() - 1]);
                    for (k, &part) in parts.iter().enumerate().rev().skip(1) {
                        let k = exprs.i32(k as i32);
                        let here = exprs.compare(CompareOp::Eq, number, k);
                        let element = one(exprs, part);
                        value = exprs.select(here, element, value);
                    }
                    Some(value)
                }
                _ => None,
            })
        }
    }

    /// Statements over the cells of a field, written out along the other axes of their domain: it is the field's then.
    pub(super) fn written_out(
        &mut self,
        field: Buffer,
        domain: Vec<Dim>,
        body: Vec<Stmt>,
    ) -> (Vec<Dim>, Vec<Stmt>) {
        let own = self.shape(field);
        if domain.len() == own.len() && self.cells.parts.is_empty() {
            return (domain, body);
        }
        let order: Vec<u32> = (0..own.len() as u32).collect();
        let mut out = Vec::new();
        for point in self.points(&domain, &order) {
            let mut stmts = body.clone();
            map_exprs(&mut stmts, &mut self.at_numbers(&point));
            out.extend(stmts);
        }
        (own, out)
    }

    /// What `make` makes of values at the cells of a field, which has this index in the axes of the domain.
    pub(super) fn make_at_cells(
        &mut self,
        made: Made,
        (field, order): super::cells::Over,
    ) -> Buffer {
        let Made {
            domain,
            shape,
            index,
            value,
            accum,
            ..
        } = made;
        let own = self.shape(field);
        let order = order.iter().map(|&e| match self.program.exprs[e] {
            ExprDef::Axis(k) => k,
            _ => unreachable!("a sparse value is read at its own points"),
        });
        let order: Vec<u32> = order.collect();
        let axes = self.program.axes(own.len());
        // Where each element is stored, and the values that are put to it at one cell.
        let mut found: IndexMap<Vec<Expr>, Vec<Expr>> = IndexMap::new();
        for point in self.points(&domain, &order) {
            let mut at = self.at_numbers(&point);
            let index = index.iter().map(|&e| at(e)).collect();
            let value = at(value);
            found.entry(index).or_default().push(value);
        }
        let is_at_cells = accum.is_none()
            || domain.len() > own.len() && {
                let first = found.keys().next();
                first.is_some_and(|index| index.starts_with(&axes))
            };
        let accum = accum.filter(|_| !is_at_cells).ok_or(accum);
        let put = |r: &mut Self, values: Vec<Expr>| {
            let (op, first) = match accum {
                Ok(accum) => (accum.binary(), None),
                Err(None) => return values[0],
                Err(Some(accum)) => {
                    let neutral = accum.neutral(r.program.exprs.ty(values[0]));
                    (accum.binary(), Some(r.program.exprs.constant(neutral)))
                }
            };
            let mut values = first.into_iter().chain(values);
            let first = values.next().expect("there is a value");
            values.fold(first, |a, b| r.program.exprs.binary(op, a, b))
        };
        if is_at_cells {
            let mut parts = Vec::new();
            for values in found.into_values() {
                let value = put(self, values);
                parts.push(self.make_one(Made {
                    cells: Some(field),
                    ..Made::map(own.clone(), axes.clone(), value)
                }));
            }
            return match shape.len() == own.len() {
                true => parts[0],
                false => self.all_of(field, parts, &shape),
            };
        }
        // Elements that several numbers are put to: apart, and then beside each other.
        let one = self.program.size(1);
        let zero = self.program.exprs.i32(0);
        let mut parts = Vec::new();
        let many = found.len() > 1;
        for (mut index, values) in found {
            let (value, mut shape, at) = (put(self, values), shape.clone(), index.clone());
            for (dim, e) in shape.iter_mut().zip(&mut index) {
                if many && self.program.exprs.as_const(*e).is_some() {
                    (*dim, *e) = (one, zero);
                }
            }
            let part = self.make_one(Made {
                domain: own.clone(),
                cells: Some(field),
                shape,
                index,
                value,
                accum: accum.ok(),
            });
            parts.push((at, part));
        }
        let (_, last) = parts.pop().expect("there is an element");
        if parts.is_empty() {
            return last;
        }
        let point = self.program.axes(shape.len());
        let mut value = self.at(last, &point);
        for (at, part) in parts.into_iter().rev() {
            let mut here = None;
            for ((&axis, &e), &dim) in point.iter().zip(&at).zip(&shape) {
                if self.program.exprs.as_const(e).is_none() || dim == one {
                    continue;
                }
                let same = self.program.exprs.compare(CompareOp::Eq, axis, e);
                here = Some(match here {
                    None => same,
                    Some(here) => self.program.exprs.binary(BinaryOp::And, here, same),
                });
            }
            let here = here.expect("elements are beside each other along some axis");
            let element = self.at(part, &point);
            value = self.program.exprs.select(here, element, value);
        }
        self.map(&shape, value)
    }
}
