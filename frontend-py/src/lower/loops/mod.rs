//! `for`: parallel at the kernel's outermost scope, serial elsewhere, unrolled under `ti.static`.

pub(crate) mod config;
mod unroll;

use std::rc::Rc;

use aerogel_base::{ErrorKind, Scalar, ScalarType};
use aerogel_ir::{self as ir, NodeRef, Op, Type, Value};

use crate::ast::{Expr, Stmt};
use crate::host::{ElementsRef, FieldRef, Known};
use crate::infer::int_range;
use crate::lower::core::returns::{breaks, returns};
use crate::lower::core::stmt::Flow;
use crate::lower::values::number::elem;
use crate::lower::values::{Iter, Val};
use crate::lower::{Control, Lower, NextLoop, Reported, Res};
use crate::scope::BindingKind;

/// How the names of a loop are bound.
#[derive(Clone)]
pub(crate) enum Bind {
    /// The indices.
    Indices,
    /// All indices, as one vector.
    Grouped,
    /// Indices in another order: entry `k` is the axis to which the `k`-th index belongs.
    Permuted(Rc<Bind>, Rc<[usize]>),
    /// The element of a mesh with this index, or the one whose number stands there in a field.
    Element(Rc<ElementsRef>, Option<Rc<FieldRef>>),
}

/// The index space of a loop that runs when the kernel does.
pub(crate) enum Space {
    /// `lo`, `hi` and `step` of one axis.
    Range(Value, Value, Option<Value>),
    /// `lo` and `hi` of each axis.
    Box(Vec<(Value, Value)>),
    /// The active cells of a node; a field's offset is added to their indices.
    Cells { node: NodeRef, offset: Vec<i32> },
}

impl<'a> Lower<'a, '_> {
    pub(crate) fn for_stmt(
        &mut self,
        target: &Expr<'a>,
        iter: &Expr<'a>,
        body: &[Stmt<'a>],
    ) -> Res<Flow> {
        let next = std::mem::take(&mut self.state.next_loop);
        let is_static = self.is_static_call(iter);
        let over = self.expr(iter);
        self.range = iter.range;
        if is_static {
            self.expect_no_level(next, "the loop that follows is unrolled");
            let items = over.and_then(|over| self.iterate_static(&over))?;
            return self.unrolled(target, &items, body);
        }
        let space = over.and_then(|over| self.space(&over));
        let (space, bind) = match space {
            Ok(space) => space,
            Err(reported) => {
                // The body is still read for its own mistakes.
                self.skipped(target, body, reported);
                return Err(reported);
            }
        };
        // A loop that a function returns from runs in order.
        let in_order = !self.is_outermost() && returns(body);
        let outer = self.state.mesh_loop.clone();
        let flow = if self.at_top_level() && !in_order {
            self.parallel(target, iter, body, space, &bind, next)
        } else {
            self.expect_no_level(next, self.why_serial());
            self.serial(target, iter, body, space, &bind)
        };
        self.state.mesh_loop = outer;
        flow
    }

    fn skipped(&mut self, target: &Expr<'a>, body: &[Stmt<'a>], reported: Reported) {
        let region = self.state.func.new_region(&[]);
        self.state.control.push(Control::Loop);
        self.scopes().enter();
        self.poison(target, reported);
        self.within(region, |lower| lower.body(body));
        self.scopes().leave();
        self.state.control.pop();
    }

    /// The elements of a field.
    fn field_cells(&mut self, field: &Rc<FieldRef>) -> Res<Space> {
        let id = self.field(field)?;
        let (node, offset) = self.module.env.cells_of(id);
        self.cells(node, offset, &format!("`{}`", field.name))
    }

    /// The cells of a node, whose indices are `i32`.
    fn cells(&mut self, node: NodeRef, offset: Vec<i32>, what: &str) -> Res<Space> {
        let shape = self.module.env.trees[node.tree].shape(node.node);
        let fits = |(axis, extent): (usize, u64)| {
            let first = offset.get(axis).copied().unwrap_or(0);
            let end = u64::from(first.max(0).unsigned_abs()).saturating_add(extent);
            end <= i32::MAX as u64
        };
        if shape.into_iter().enumerate().all(fits) {
            return Ok(Space::Cells { node, offset });
        }
        self.fail_noted(
            ErrorKind::Type,
            "E0229",
            format!("the indices of {what} do not fit an `i32`"),
            "loop over `ti.ndrange` with bounds of type `ti.i64`",
        )
    }

    /// The index space of a loop, and how its names are bound.
    fn space(&mut self, over: &Val) -> Res<(Space, Bind)> {
        let over = &self.captured(over.clone())?;
        match over {
            Val::Iter(iter) => match &**iter {
                Iter::Range { lo, hi, step } => {
                    let is_one = matches!(step, Val::Known(Known::Int(1)));
                    let ty = self.index_type(&[lo, hi, step])?;
                    let of_step = self.expect_numeric(step)?;
                    if !of_step.scalar().is_some_and(ScalarType::is_int) {
                        return self.fail(
                            ErrorKind::Type,
                            "E0218",
                            format!("the step of a range must be an integer, not `{of_step}`"),
                        );
                    }
                    let (lo, hi) = (self.convert(lo, ty)?, self.convert(hi, ty)?);
                    let step = if is_one {
                        None
                    } else {
                        Some(self.convert(step, ty)?)
                    };
                    Ok((Space::Range(lo, hi, step), Bind::Indices))
                }
                Iter::NdRange(axes, order) => {
                    let mut bounds = Vec::new();
                    for (lo, hi) in axes {
                        let ty = self.index_type(&[lo, hi])?;
                        bounds.push((self.convert(lo, ty)?, self.convert(hi, ty)?));
                    }
                    let bind = match order.is_empty() {
                        true => Bind::Indices,
                        false => Bind::Permuted(Rc::new(Bind::Indices), order.clone()),
                    };
                    Ok((Space::Box(bounds), bind))
                }
                Iter::Grouped(inner) => Ok(match self.space(inner)? {
                    (space, Bind::Permuted(_, order)) => {
                        (space, Bind::Permuted(Rc::new(Bind::Grouped), order))
                    }
                    (space, _) => (space, Bind::Grouped),
                }),
            },
            Val::Known(Known::Field(field)) => Ok((self.field_cells(field)?, Bind::Indices)),
            Val::Known(Known::StructField(field)) => {
                let Some(first) = field.leaves().into_iter().next() else {
                    let what = Known::StructField(field.clone()).describe();
                    let message = format!("{what} has no members: there is nothing to loop over");
                    return self.fail(ErrorKind::Type, "E0217", message);
                };
                Ok((self.field_cells(&first)?, Bind::Indices))
            }
            Val::Texture(texture) => self.space(&Val::Array(texture.texels)),
            Val::Array(array) => {
                let array = *array;
                let ndim = self.array_type(array).1;
                let mut bounds = Vec::new();
                for axis in 0..ndim {
                    let lo = self.builder().i32(0);
                    bounds.push((lo, self.value(Op::ArrayShape { array, axis }, Type::I32)));
                }
                Ok((Space::Box(bounds), Bind::Indices))
            }
            Val::Known(Known::SNode(node)) => {
                let node = self.node(node)?;
                Ok((self.cells(node, Vec::new(), "the node")?, Bind::Indices))
            }
            Val::Known(Known::Elements(of)) => {
                let bounds = (self.builder().i32(0), self.builder().i32(of.n));
                let space = Space::Range(bounds.0, bounds.1, None);
                Ok((space, Bind::Element(of.clone(), None)))
            }
            Val::Neighbours(relation, at) => {
                let (lo, hi) = self.neighbours(relation, *at)?;
                let bind = Bind::Element(relation.to.clone(), Some(relation.targets.clone()));
                Ok((Space::Range(lo, hi, None), bind))
            }
            Val::Poison(reported) => Err(*reported),
            _ => {
                let what = self.describe(over);
                let array = over.known().and_then(|known| self.array_note(known));
                let note = if let Some(note) = array {
                    note
                } else if over.items().is_some() {
                    "to unroll the loop, write `for x in ti.static(...)`"
                } else {
                    "loops run over `range`, `ti.ndrange`, fields, arrays, or anything under `ti.static`"
                };
                self.fail_noted(
                    ErrorKind::Type,
                    "E0217",
                    format!("a loop cannot run over {what}"),
                    note,
                )
            }
        }
    }

    /// Loop indices are `i32`, or `i64` where a bound is, or is a `u32`, of which not all are numbers of `i32`. Float
    /// bounds are cut, as Taichi does.
    fn index_type(&mut self, bounds: &[&Val]) -> Res<Type> {
        let mut wide = false;
        for bound in bounds {
            let ty = self.expect_numeric(bound)?;
            let Some(scalar) = ty.scalar() else {
                return self.fail(
                    ErrorKind::Type,
                    "E0218",
                    format!("a bound of a loop must be an integer, not `{ty}`"),
                );
            };
            if scalar.is_float() {
                self.warn(format!(
                    "a bound of this loop is truncated: i32 <- {scalar}"
                ));
            }
            // A constant is wide by its value, whatever `default_ip` is.
            wide = wide
                || match bound.known().and_then(Known::as_int) {
                    Some(value) => i32::try_from(value).is_err(),
                    None => scalar.is_int() && (scalar.bits() == 64 || scalar == ScalarType::U32),
                };
        }
        Ok(if wide { Type::I64 } else { Type::I32 })
    }

    fn unrolled(&mut self, target: &Expr<'a>, items: &[Val], body: &[Stmt<'a>]) -> Res<Flow> {
        self.state.control.push(Control::Static);
        let before = self.reports.mark();
        self.scopes().begin_unrolled();
        let flow = self.iterations(target, items, body);
        self.scopes().end_unrolled();
        self.state.control.pop();
        self.reports.since(before)?;
        Ok(match flow {
            Flow::StaticBreak => Flow::Next,
            flow => flow,
        })
    }

    /// The iterations of an unrolled loop.
    fn iterations(&mut self, target: &Expr<'a>, items: &[Val], body: &[Stmt<'a>]) -> Flow {
        for (k, item) in items.iter().enumerate() {
            if self.turn().is_err() {
                return Flow::StaticBreak;
            }
            let n_returns = self.frame().exit.n_returns();
            self.scopes().enter();
            let bound = self.bind_target(target, item, BindingKind::Alias);
            let flow = bound.map_or(Flow::StaticBreak, |()| self.block(body));
            self.scopes().leave();
            if !matches!(flow, Flow::Next | Flow::StaticContinue) {
                return flow;
            }
            if self.frame().exit.n_returns() > n_returns {
                return self.after_return(n_returns, |lower| {
                    lower.iterations(target, &items[k + 1..], body)
                });
            }
        }
        Flow::Next
    }

    fn parallel(
        &mut self,
        target: &Expr<'a>,
        iter: &Expr<'a>,
        body: &[Stmt<'a>],
        space: Space,
        bind: &Bind,
        next: NextLoop,
    ) -> Res<Flow> {
        self.state.shared_bytes = 0;
        let attrs = next.attrs;
        let control = Control::Parallel {
            breakable: attrs.serial,
        };
        // Iterations that run in any order are numbered as the axes are written.
        let (space, bind) = match (space, bind) {
            (Space::Box(bounds), Bind::Permuted(bind, order)) if !attrs.serial => {
                (Space::Box(in_order(&bounds, order)), &**bind)
            }
            other => other,
        };
        match space {
            Space::Range(lo, hi, None) => {
                let region = self.state.func.new_region(&[self.ty(lo)]);
                self.loop_body(region, control, target, bind, body, |_, indices| indices)?;
                self.range = iter.range;
                self.effect(Op::Parallel {
                    lo: vec![lo],
                    hi: vec![hi],
                    attrs,
                    body: region,
                });
            }
            Space::Range(lo, hi, Some(step)) => {
                let n = self.trip_count(lo, hi, step);
                let (index, ty) = (self.ty(lo), self.ty(n));
                let zero = self.builder().constant(Scalar::zero(elem(ty)));
                let region = self.state.func.new_region(&[ty]);
                self.loop_body(region, control, target, bind, body, |lower, indices| {
                    let mut b = lower.builder();
                    let turn = b.cast(indices[0], index);
                    let offset = b.binary(ir::BinaryOp::Mul, turn, step);
                    vec![b.binary(ir::BinaryOp::Add, lo, offset)]
                })?;
                self.range = iter.range;
                self.effect(Op::Parallel {
                    lo: vec![zero],
                    hi: vec![n],
                    attrs,
                    body: region,
                });
            }
            Space::Box(bounds) if bounds.is_empty() => {
                self.expect_no_level(next, "the loop that follows has no axes");
                return self.once(target, body);
            }
            Space::Box(bounds) => {
                let types: Vec<Type> = bounds.iter().map(|(lo, _)| self.ty(*lo)).collect();
                let region = self.state.func.new_region(&types);
                self.loop_body(region, control, target, bind, body, |_, indices| indices)?;
                self.range = iter.range;
                let (lo, hi) = bounds.into_iter().unzip();
                self.effect(Op::Parallel {
                    lo,
                    hi,
                    attrs,
                    body: region,
                });
            }
            Space::Cells { node, .. } if self.n_axes(node) == 0 => {
                self.expect_no_level(next, "the loop that follows has no axes");
                return self.once(target, body);
            }
            Space::Cells { node, offset } => {
                let region = self
                    .state
                    .func
                    .new_region(&vec![Type::I32; self.n_axes(node)]);
                self.loop_body(region, control, target, bind, body, |lower, indices| {
                    let shifted = indices.into_iter().enumerate();
                    shifted
                        .map(|(axis, index)| match offset.get(axis) {
                            None | Some(0) => index,
                            Some(&first) => {
                                let first = lower.builder().i32(first);
                                lower.builder().binary(ir::BinaryOp::Add, index, first)
                            }
                        })
                        .collect()
                })?;
                self.range = iter.range;
                self.effect(Op::ParallelCells {
                    node,
                    attrs,
                    body: region,
                });
            }
        }
        Ok(Flow::Next)
    }

    /// A loop without axes runs once.
    fn once(&mut self, target: &Expr<'a>, body: &[Stmt<'a>]) -> Res<Flow> {
        self.unrolled(target, &[Val::Known(Known::tuple([]))], body)
    }

    /// How many turns `range(lo, hi, step)` has, for steps of either sign: as `i32` where that holds them, else as `i64`.
    ///
    /// Spans are unsigned numbers, since they can be twice as large as the largest bound.
    fn trip_count(&mut self, lo: Value, hi: Value, step: Value) -> Value {
        let index = self.ty(lo);
        let most = self.most_turns(lo, hi, step);
        let signed = elem(index);
        let unsigned = if signed == ScalarType::I64 {
            ScalarType::U64
        } else {
            ScalarType::U32
        };
        let ty = if most <= i128::from(i32::MAX) {
            Type::I32
        } else {
            Type::I64
        };
        let mut b = self.builder();
        let [zero, one] = [Scalar::zero(signed), Scalar::one(unsigned)].map(|x| b.constant(x));
        let forwards = b.compare(ir::CompareOp::Gt, step, zero);
        let first = b.select(forwards, lo, hi);
        let end = b.select(forwards, hi, lo);
        let size = b.unary(ir::UnaryOp::Abs, step);
        let [from, to, size] = [first, end, size].map(|x| b.cast(x, unsigned.into()));
        let span = b.binary(ir::BinaryOp::Sub, to, from);
        let before_last = b.binary(ir::BinaryOp::Sub, span, one);
        let before_last = b.binary(ir::BinaryOp::Div, before_last, size);
        let mut n = b.binary(ir::BinaryOp::Add, before_last, one);
        if unsigned == ScalarType::U64 {
            // More would not end in this life.
            let limit = b.constant(Scalar::int(unsigned, i64::MAX.into()));
            n = b.binary(ir::BinaryOp::Min, n, limit);
        }
        let n = b.cast(n, ty);
        let none = b.constant(Scalar::zero(elem(ty)));
        let runs = b.compare(ir::CompareOp::Lt, first, end);
        let moves = b.compare(ir::CompareOp::Ne, step, zero);
        let runs = b.binary(ir::BinaryOp::And, runs, moves);
        b.select(runs, n, none)
    }

    /// No range with these bounds, as far as they are known, has more turns.
    fn most_turns(&self, lo: Value, hi: Value, step: Value) -> i128 {
        let range = int_range(elem(self.ty(lo)));
        let known = |value| self.state.func.as_const(value).map(Scalar::as_i128);
        let ends = |value| known(value).map_or(range, |x| (x, x));
        let ((lo_least, lo_most), (hi_least, hi_most)) = (ends(lo), ends(hi));
        let (span, size) = match known(step) {
            Some(step) if step > 0 => (hi_most - lo_least, step),
            Some(step) if step < 0 => (lo_most - hi_least, -step),
            _ => (range.1 - range.0, 1),
        };
        (span + size - 1).div_euclid(size).max(0)
    }

    fn serial(
        &mut self,
        target: &Expr<'a>,
        iter: &Expr<'a>,
        body: &[Stmt<'a>],
        space: Space,
        bind: &Bind,
    ) -> Res<Flow> {
        let bounds = match space {
            Space::Range(lo, hi, step) => {
                let ty = self.ty(lo);
                let step = match step {
                    Some(step) => step,
                    None => self.builder().constant(Scalar::one(elem(ty))),
                };
                let region = self.state.func.new_region(&[ty]);
                self.loop_body(region, Control::Loop, target, bind, body, |_, indices| {
                    indices
                })?;
                self.range = iter.range;
                self.effect(Op::For {
                    lo,
                    hi,
                    step,
                    init: Vec::new(),
                    body: region,
                });
                return Ok(Flow::Next);
            }
            Space::Box(bounds) => bounds,
            Space::Cells { node, offset } => {
                let tree = self.module.env.trees[node.tree].clone();
                if tree.is_below_sparse(node.node) {
                    let of_fields = tree.of_fields(node.node);
                    return self.fail_noted(
                        ErrorKind::Compilation,
                        "E0119",
                        format!("a loop over the sparse cells{of_fields} stands inside another loop or a branch"),
                        "move it to the kernel's outermost scope, or loop over `ti.ndrange`",
                    );
                }
                if self
                    .host
                    .is_split(self.naming.trees[node.tree.as_u32() as usize])
                {
                    return self.fail_noted(
                        ErrorKind::Compilation,
                        "E0701",
                        "a loop over a split field stands inside another loop or a branch, or runs in order".to_owned(),
                        "move it to the kernel's outermost scope: each process runs a part of it",
                    );
                }
                let extents = tree.shape(node.node);
                let offset = |axis: usize| offset.get(axis).copied().unwrap_or(0);
                extents
                    .iter()
                    .enumerate()
                    .map(|(axis, &extent)| {
                        let lo = self.builder().i32(offset(axis));
                        (lo, self.builder().i32(offset(axis) + extent as i32))
                    })
                    .collect()
            }
        };
        if bounds.is_empty() {
            return self.once(target, body);
        }
        self.serial_box(target, iter, body, &bounds, bind)
    }

    /// A serial loop over several axes is one loop, so that `break` leaves all of it.
    fn serial_box(
        &mut self,
        target: &Expr<'a>,
        iter: &Expr<'a>,
        body: &[Stmt<'a>],
        bounds: &[(Value, Value)],
        bind: &Bind,
    ) -> Res<Flow> {
        if (breaks(body) || returns(body)) && bounds.len() > 1 {
            let one = |lower: &mut Self, ty| lower.builder().constant(Scalar::one(elem(ty)));
            let mut most = 1_i128;
            for &(lo, hi) in bounds {
                let step = one(self, self.ty(lo));
                most = most.saturating_mul(self.most_turns(lo, hi, step));
            }
            let ty = if most <= i128::from(i32::MAX) {
                Type::I32
            } else {
                Type::I64
            };
            let zero = self.builder().constant(Scalar::zero(elem(ty)));
            let one = one(self, ty);
            let mut extents = Vec::new();
            let mut total = one;
            for &(lo, hi) in bounds {
                let mut b = self.builder();
                let runs = b.compare(ir::CompareOp::Lt, lo, hi);
                let [lo, hi] = [lo, hi].map(|end| b.cast(end, ty));
                // The type holds the sizes of axes that have iterations, not the distance between the bounds of empty ones.
                let extent = b.binary(ir::BinaryOp::Sub, hi, lo);
                let extent = b.select(runs, extent, zero);
                total = b.binary(ir::BinaryOp::Mul, total, extent);
                extents.push(extent);
            }
            let region = self.state.func.new_region(&[ty]);
            let los: Vec<Value> = bounds.iter().map(|(lo, _)| *lo).collect();
            self.loop_body(
                region,
                Control::Loop,
                target,
                bind,
                body,
                |lower, indices| {
                    let mut rest = indices[0];
                    let mut all = Vec::new();
                    for (&extent, &lo) in extents.iter().zip(&los).rev() {
                        let at = lower.builder().binary(ir::BinaryOp::Rem, rest, extent);
                        rest = lower.builder().binary(ir::BinaryOp::Div, rest, extent);
                        let to = lower.ty(lo);
                        let at = lower.builder().cast(at, to);
                        all.push(lower.builder().binary(ir::BinaryOp::Add, lo, at));
                    }
                    all.reverse();
                    all
                },
            )?;
            self.range = iter.range;
            self.effect(Op::For {
                lo: zero,
                hi: total,
                step: one,
                init: Vec::new(),
                body: region,
            });
            return Ok(Flow::Next);
        }
        let mut regions = Vec::new();
        let mut indices = Vec::new();
        for &(lo, _) in bounds {
            let region = self.state.func.new_region(&[self.ty(lo)]);
            indices.push(self.state.func.regions[region].params[0]);
            regions.push(region);
        }
        let innermost = regions[regions.len() - 1];
        let all = indices.clone();
        self.loop_body(innermost, Control::Loop, target, bind, body, move |_, _| {
            all
        })?;
        self.range = iter.range;
        for axis in (0..bounds.len()).rev() {
            let (lo, hi) = bounds[axis];
            let region = regions[axis];
            let around = if axis == 0 {
                self.state.region
            } else {
                regions[axis - 1]
            };
            self.within(around, |lower| {
                let ty = lower.ty(lo);
                let one = lower
                    .builder()
                    .constant(Scalar::one(ty.elem().unwrap_or(ScalarType::I32)));
                lower.effect(Op::For {
                    lo,
                    hi,
                    step: one,
                    init: Vec::new(),
                    body: region,
                });
                if axis > 0 {
                    lower.builder().yields(Vec::new());
                }
            });
        }
        Ok(Flow::Next)
    }

    /// Lowers the body of a loop into its region.
    fn loop_body(
        &mut self,
        region: ir::Region,
        control: Control,
        target: &Expr<'a>,
        bind: &Bind,
        body: &[Stmt<'a>],
        indices: impl FnOnce(&mut Self, Vec<Value>) -> Vec<Value>,
    ) -> Res<()> {
        let params = self.state.func.regions[region].params.clone();
        self.state.control.push(control);
        self.scopes().enter();
        let result = self.within(region, |lower| {
            lower.range = target.range;
            let indices = indices(lower, params);
            let bound = lower.bind_indices(target, &indices, bind);
            if let Err(reported) = bound {
                lower.poison(target, reported);
            }
            lower.body(body);
            bound
        });
        self.scopes().leave();
        self.state.control.pop();
        result
    }

    fn bind_indices(&mut self, target: &Expr<'a>, indices: &[Value], bind: &Bind) -> Res<()> {
        if let Bind::Permuted(bind, order) = bind {
            return self.bind_indices(target, &in_order(indices, order), bind);
        }
        let items: Vec<Val> = indices.iter().map(|&index| Val::Value(index)).collect();
        let val = match (bind, &items[..]) {
            (Bind::Element(of, targets), [at]) => self.loop_element(of, targets.as_ref(), at)?,
            (Bind::Grouped, _) => {
                let is_wide = indices.iter().any(|&index| self.ty(index) == Type::I64);
                let of = if is_wide {
                    ScalarType::I64
                } else {
                    ScalarType::I32
                };
                let ty = Type::Vec(items.len() as u32, of);
                Val::Value(self.make(&items, ty)?)
            }
            (_, [index]) => index.clone(),
            _ => Val::Seq(items.into(), crate::lower::SeqKind::Tuple),
        };
        if let crate::ast::ExprKind::Name(name) = target.kind {
            if indices.len() > 1 && matches!(bind, Bind::Indices) {
                return self.fail_noted(
                    ErrorKind::Syntax,
                    "E0121",
                    format!("the loop has {} indices but one name", indices.len()),
                    "write one name for each, or `ti.grouped(...)` for one vector",
                );
            }
            if name != "_" && self.scopes().get(name).is_some() {
                return self.fail_noted(
                    ErrorKind::Syntax,
                    "E0122",
                    format!("the loop index `{name}` hides a variable of this name"),
                    "rename it",
                );
            }
        }
        if let (Bind::Indices, [_], crate::ast::ExprKind::Tuple(names)) =
            (bind, indices, target.kind)
            && names.len() > 1
        {
            let message = format!("the loop has 1 index, not {}", names.len());
            let note = "`ti.ndrange((a, b))` has one axis, from `a` to `b`; to loop over a shape write `ti.ndrange(*x.shape)`";
            return self.fail_noted(ErrorKind::Syntax, "E0121", message, note);
        }
        if let (Bind::Grouped, crate::ast::ExprKind::Tuple(names)) = (bind, target.kind) {
            let n = names.len();
            let message = format!("a loop over `ti.grouped(...)` has one index, not {n}");
            return self.fail(ErrorKind::Syntax, "E0121", message);
        }
        self.bind_target(target, &val, BindingKind::LoopIndex)
    }
}

/// Sorts items by their axes: `order[k]` is the axis of the `k`-th item.
fn in_order<T: Clone>(items: &[T], order: &[usize]) -> Vec<T> {
    let mut out = items.to_vec();
    for (item, &axis) in items.iter().zip(order) {
        out[axis] = item.clone();
    }
    out
}
