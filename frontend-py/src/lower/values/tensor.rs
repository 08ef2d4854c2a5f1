//! Vectors and matrices: constructors, products, and the methods.

use aerogel_base::{ErrorKind, ScalarType};
use aerogel_ir::{self as ir, Op, Type, Value};

use crate::ast::BinaryOp;
use crate::host::Known;
use crate::lower::calls::Args;
use crate::lower::values::attribute::shape_of;
use crate::lower::values::number::elem;
use crate::lower::values::{Place, Val};
use crate::lower::{Control, Lower, Res};

impl Lower<'_, '_> {
    pub(crate) fn matmul(&mut self, lhs: &Val, rhs: &Val) -> Res<Val> {
        let (lt, rt) = (self.expect_numeric(lhs)?, self.expect_numeric(rhs)?);
        let to = elem(lt).promote(elem(rt));
        let (a, b) = (self.operand(lhs, to, lt)?, self.operand(rhs, to, rt)?);
        let result = match (lt, rt) {
            (Type::Mat(n, m, _), Type::Mat(k, p, _)) if m == k => Type::Mat(n, p, to),
            (Type::Mat(n, m, _), Type::Vec(k, _)) if m == k => Type::Vec(n, to),
            (Type::Vec(n, _), Type::Vec(k, _)) if n == k => return Ok(Val::Value(self.dot(a, b))),
            // A vector on the left is a row.
            (Type::Vec(n, _), Type::Mat(k, p, _)) if n == k => {
                let transposed = self.transpose(b)?;
                let transposed = self.load(&transposed)?;
                return Ok(Val::Value(self.value(
                    Op::MatMul {
                        lhs: transposed,
                        rhs: a,
                    },
                    Type::Vec(p, to),
                )));
            }
            _ => {
                let message = format!("`{lt}` and `{rt}` cannot be multiplied with `@`");
                return self.fail(ErrorKind::Type, "E0205", message);
            }
        };
        Ok(Val::Value(
            self.value(Op::MatMul { lhs: a, rhs: b }, result),
        ))
    }

    fn dot(&mut self, a: Value, b: Value) -> Value {
        let product = self.builder().binary(ir::BinaryOp::Mul, a, b);
        self.reduce(ir::BinaryOp::Add, product)
    }

    pub(crate) fn transpose(&mut self, value: Value) -> Res<Val> {
        let Type::Mat(n, m, elem) = self.ty(value) else {
            let ty = self.ty(value);
            return self.fail(
                ErrorKind::Type,
                "E0227",
                format!("`transpose` needs a matrix, not `{ty}`"),
            );
        };
        let all = self.split(value);
        let elems = (0..n * m)
            .map(|k| all[((k % n) * m + k / n) as usize])
            .collect();
        Ok(Val::Value(
            self.value(Op::TensorMake { elems }, Type::Mat(m, n, elem)),
        ))
    }

    fn float_tensor(&mut self, val: &Val) -> Res<Value> {
        let ty = self.expect_numeric(val)?;
        let to = if elem(ty).is_float() {
            elem(ty)
        } else {
            self.config.default_fp
        };
        self.operand(val, to, ty)
    }

    fn square(&mut self, name: &str, ty: Type, most: u32) -> Res<u32> {
        match ty {
            Type::Mat(n, m, _) if n == m && n <= most => Ok(n),
            Type::Mat(n, m, _) if n == m => self.fail(
                ErrorKind::Compilation,
                "E0227",
                format!("`{name}` is supported up to {most} x {most}, not {n} x {n}"),
            ),
            _ => self.fail(
                ErrorKind::Type,
                "E0227",
                format!("`{name}` needs a square matrix, not `{ty}`"),
            ),
        }
    }

    pub(crate) fn tensor_method(&mut self, object: &Val, name: &str, args: &Args) -> Res<Val> {
        let ty = self.expect_numeric(object)?;
        let accepted: Option<(usize, &[&str])> = match name {
            "cast" => Some((1, &["dtype"])),
            "fill" => Some((1, &["val"])),
            "norm" | "norm_inv" | "normalized" => Some((1, &["eps"])),
            "dot" | "cross" | "outer_product" => Some((1, &["other"])),
            "sum" | "max" | "min" | "any" | "all" | "norm_sqr" | "transpose" | "trace"
            | "determinant" | "inverse" => Some((0, &[])),
            _ => None,
        };
        let result = self.method_of_tensor(object, ty, name, args)?;
        self.expect_arguments(name, accepted, args)?;
        Ok(result)
    }

    fn method_of_tensor(&mut self, object: &Val, ty: Type, name: &str, args: &Args) -> Res<Val> {
        match name {
            "cast" => {
                let dtype = self.arg(name, args, 0, "dtype")?.clone();
                let to = self.dtype(&dtype)?;
                self.cast(object, to)
            }
            "fill" => {
                let val = self.arg(name, args, 0, "val")?.clone();
                self.store_val(object, &val).map(|()| Val::none())
            }
            "sum" => self.reduced(object, ir::BinaryOp::Add),
            "max" => self.reduced(object, ir::BinaryOp::Max),
            "min" => self.reduced(object, ir::BinaryOp::Min),
            "any" => {
                let truth = self.operand(object, ScalarType::U1, ty)?;
                Ok(Val::Value(self.reduce(ir::BinaryOp::Or, truth)))
            }
            "all" => {
                let truth = self.operand(object, ScalarType::U1, ty)?;
                Ok(Val::Value(self.reduce(ir::BinaryOp::And, truth)))
            }
            "norm_sqr" => {
                let value = self.load(object)?;
                Ok(Val::Value(self.dot(value, value)))
            }
            "norm" | "norm_inv" | "normalized" => self.norms(object, name, args),
            "dot" | "cross" => {
                let other = self.arg(name, args, 0, "other")?.clone();
                let given = self.expect_numeric(&other)?;
                if given.scalar().is_some() {
                    return self.fail(
                        ErrorKind::Type,
                        "E0227",
                        format!("`{name}` needs two vectors, not `{ty}` and `{given}`"),
                    );
                }
                let (a, b) = self.promoted(object, &other, name)?;
                if name == "dot" {
                    return Ok(Val::Value(self.dot(a, b)));
                }
                self.cross(a, b)
            }
            "outer_product" => {
                let other = self.arg(name, args, 0, "other")?.clone();
                let ot = self.expect_numeric(&other)?;
                let (Type::Vec(n, _), Type::Vec(m, _)) = (ty, ot) else {
                    return self.fail(
                        ErrorKind::Type,
                        "E0227",
                        format!("`outer_product` needs two vectors, not `{ty}` and `{ot}`"),
                    );
                };
                let to = elem(ty).promote(elem(ot));
                let (a, b) = (self.operand(object, to, ty)?, self.operand(&other, to, ot)?);
                let (a, b) = (self.split(a), self.split(b));
                let pairs = a
                    .iter()
                    .flat_map(|&x| b.iter().map(move |&y| (x, y)))
                    .collect::<Vec<_>>();
                let elems = pairs
                    .into_iter()
                    .map(|(x, y)| self.builder().binary(ir::BinaryOp::Mul, x, y))
                    .collect();
                Ok(Val::Value(
                    self.value(Op::TensorMake { elems }, Type::Mat(n, m, to)),
                ))
            }
            "transpose" => {
                let value = self.load(object)?;
                self.transpose(value)
            }
            "trace" => {
                let n = self.square(name, ty, u32::MAX)?;
                let value = self.load(object)?;
                let all = self.split(value);
                let diagonal: Vec<Value> = (0..n).map(|k| all[(k * n + k) as usize]).collect();
                let sum = diagonal
                    .into_iter()
                    .reduce(|a, b| self.builder().binary(ir::BinaryOp::Add, a, b));
                Ok(Val::Value(sum.expect("a matrix has a row")))
            }
            "determinant" => {
                let n = self.square(name, ty, 4)?;
                let value = self.load(object)?;
                let all = self.split(value);
                let columns: Vec<usize> = (0..n as usize).collect();
                Ok(Val::Value(self.minor(
                    &all,
                    n as usize,
                    &columns.clone(),
                    &columns,
                )))
            }
            "inverse" => {
                let n = self.square(name, ty, 4)?;
                let value = self.float_tensor(object)?;
                Ok(Val::Value(self.inverse(value, n as usize)))
            }
            "diag" => {
                let n = self.square(name, ty, u32::MAX)?;
                let value = self.load(object)?;
                let all = self.split(value);
                let elems = (0..n).map(|k| all[(k * n + k) as usize]).collect();
                Ok(Val::Value(
                    self.value(Op::TensorMake { elems }, Type::Vec(n, elem(ty))),
                ))
            }
            "get_shape" => Ok(shape_of(ty)),
            "to_list" | "to_numpy" => Ok(Self::list(self.elements(object)?)),
            _ => self.no_attribute(object, name, None),
        }
    }

    fn reduced(&mut self, object: &Val, op: ir::BinaryOp) -> Res<Val> {
        let value = self.load(object)?;
        Ok(Val::Value(self.reduce(op, value)))
    }

    /// `norm(eps) = sqrt(norm_sqr + eps)`; `norm_inv(eps)` is its inverse, `normalized(eps) = x / (norm + eps)`.
    fn norms(&mut self, object: &Val, name: &str, args: &Args) -> Res<Val> {
        let value = self.float_tensor(object)?;
        let eps = args.get(0, "eps").cloned().unwrap_or(Val::int(0));
        let squares = Val::Value(self.dot(value, value));
        let has_eps = !matches!(&eps, Val::Known(known) if known.as_float() == Some(0.0));
        let under = if has_eps && name != "normalized" {
            self.arith(BinaryOp::Add, &squares, &eps)?
        } else {
            squares
        };
        let under = self.load(&under)?;
        Ok(match name {
            "norm" => Val::Value(self.builder().unary(ir::UnaryOp::Sqrt, under)),
            "norm_inv" => Val::Value(self.builder().unary(ir::UnaryOp::Rsqrt, under)),
            _ => {
                let norm = Val::Value(self.builder().unary(ir::UnaryOp::Sqrt, under));
                let norm = if has_eps {
                    self.arith(BinaryOp::Add, &norm, &eps)?
                } else {
                    norm
                };
                let one = self.arith(BinaryOp::Div, &Val::Known(Known::Float(1.0)), &norm)?;
                return self.arith(BinaryOp::Mul, &Val::Value(value), &one);
            }
        })
    }

    fn cross(&mut self, a: Value, b: Value) -> Res<Val> {
        let ty = self.ty(a);
        let (x, y) = (self.split(a), self.split(b));
        let mut term = |i: usize, j: usize| {
            let p = self.builder().binary(ir::BinaryOp::Mul, x[i], y[j]);
            let q = self.builder().binary(ir::BinaryOp::Mul, x[j], y[i]);
            self.builder().binary(ir::BinaryOp::Sub, p, q)
        };
        match ty {
            Type::Vec(2, _) => Ok(Val::Value(term(0, 1))),
            Type::Vec(3, _) => {
                let elems = vec![term(1, 2), term(2, 0), term(0, 1)];
                Ok(Val::Value(self.value(Op::TensorMake { elems }, ty)))
            }
            _ => self.fail(
                ErrorKind::Type,
                "E0227",
                format!("`cross` needs vectors of 2 or 3 elements, not `{ty}`"),
            ),
        }
    }

    /// The determinant of the rows and columns that are named, by expansion along the first row.
    fn minor(&mut self, all: &[Value], n: usize, rows: &[usize], columns: &[usize]) -> Value {
        let (&row, rest) = rows.split_first().expect("a minor has rows");
        if rest.is_empty() {
            return all[row * n + columns[0]];
        }
        let mut sum: Option<Value> = None;
        for (k, &column) in columns.iter().enumerate() {
            let others: Vec<usize> = columns
                .iter()
                .copied()
                .filter(|&other| other != column)
                .collect();
            let minor = self.minor(all, n, rest, &others);
            let term = self
                .builder()
                .binary(ir::BinaryOp::Mul, all[row * n + column], minor);
            let op = if k % 2 == 0 {
                ir::BinaryOp::Add
            } else {
                ir::BinaryOp::Sub
            };
            sum = Some(match sum {
                None => term,
                Some(sum) => self.builder().binary(op, sum, term),
            });
        }
        sum.expect("a minor has columns")
    }

    /// The inverse by cofactors.
    fn inverse(&mut self, value: Value, n: usize) -> Value {
        let ty = self.ty(value);
        let all = self.split(value);
        let whole: Vec<usize> = (0..n).collect();
        let one = self.builder().constant(aerogel_base::Scalar::one(elem(ty)));
        let determinant = self.minor(&all, n, &whole, &whole);
        let scale = self.builder().binary(ir::BinaryOp::Div, one, determinant);
        let without = |k: usize| {
            whole
                .iter()
                .copied()
                .filter(|&other| other != k)
                .collect::<Vec<_>>()
        };
        let mut elems = Vec::new();
        for i in 0..n {
            for j in 0..n {
                // The adjugate is the transposed matrix of cofactors.
                let cofactor = if n == 1 {
                    one
                } else {
                    self.minor(&all, n, &without(j), &without(i))
                };
                let scaled = self.builder().binary(ir::BinaryOp::Mul, scale, cofactor);
                elems.push(if (i + j) % 2 == 0 {
                    scaled
                } else {
                    self.builder().unary(ir::UnaryOp::Neg, scaled)
                });
            }
        }
        self.value(Op::TensorMake { elems }, ty)
    }

    /// Methods of fields and arrays.
    pub(crate) fn storage_method(&mut self, object: &Val, name: &str, args: &Args) -> Res<Val> {
        match (object, name) {
            (&Val::Array(array), "element_shape") => {
                let shape = self.array_type(array).0.shape();
                let extents = shape.iter().map(|&n| Known::Int(n.into()));
                Ok(Val::Known(Known::List(extents.collect())))
            }
            (Val::Known(Known::Field(_)) | Val::Array(_), "fill") => {
                let val = self.arg(name, args, 0, "val")?.clone();
                let val = self.settle(val)?;
                self.each_cell(object, |lower, place, _| lower.store(place, &val))
                    .map(|()| Val::none())
            }
            (Val::Known(Known::Field(_)), "copy_from") => {
                let other = self.arg(name, args, 0, "other")?.clone();
                self.each_cell(object, |lower, place, index| {
                    let val = lower.index(other.clone(), index.to_vec(), true)?;
                    lower.store(place, &val)
                })
                .map(|()| Val::none())
            }
            _ => self.no_attribute(object, name, None),
        }
    }

    /// Lowers `body` for each cell of a field or array: in parallel at the kernel's outermost scope.
    fn each_cell(
        &mut self,
        object: &Val,
        body: impl FnOnce(&mut Self, &Place, &[Val]) -> Res<()>,
    ) -> Res<()> {
        let ndim = match object {
            Val::Known(Known::Field(field)) => field.ndim,
            Val::Array(arg) => self.array_type(*arg).1,
            _ => 0,
        };
        let at_cell = |lower: &mut Self, params: Vec<Value>| {
            let index: Vec<Val> = params.into_iter().map(Val::Value).collect();
            match lower.index(object.clone(), index.clone(), true)? {
                Val::Place(place) => body(lower, &place, &index),
                _ => unreachable!("an element of a field or an array is a place"),
            }
        };
        if ndim == 0 {
            return at_cell(self, Vec::new());
        }
        let mut bounds = Vec::new();
        for axis in 0..ndim {
            bounds.push(match object {
                Val::Known(Known::Field(field)) => {
                    let field = field.clone();
                    let id = self.field(&field)?;
                    let extent = self.module.env.shape(id)[axis as usize] as i32;
                    let lo = field.offset.get(axis as usize).copied().unwrap_or(0);
                    (self.builder().i32(lo), self.builder().i32(lo + extent))
                }
                Val::Array(array) => {
                    let array = *array;
                    (
                        self.builder().i32(0),
                        self.value(Op::ArrayShape { array, axis }, Type::I32),
                    )
                }
                _ => unreachable!("only fields and arrays have cells"),
            });
        }
        let parallel = self.at_top_level();
        let control = if parallel {
            Control::Parallel { breakable: false }
        } else {
            Control::Loop
        };
        self.state.control.push(control);
        let result = if parallel {
            let region = self.state.func.new_region(&vec![Type::I32; ndim as usize]);
            let params = self.state.func.regions[region].params.clone();
            let done = self.within(region, |lower| {
                let done = at_cell(lower, params);
                lower.builder().yields(Vec::new());
                done
            });
            let (lo, hi) = bounds.into_iter().unzip();
            self.effect(Op::Parallel {
                lo,
                hi,
                attrs: Default::default(),
                body: region,
            });
            done
        } else {
            self.nest(&bounds, Vec::new(), at_cell)
        };
        self.state.control.pop();
        result
    }

    fn nest(
        &mut self,
        bounds: &[(Value, Value)],
        mut indices: Vec<Value>,
        body: impl FnOnce(&mut Self, Vec<Value>) -> Res<()>,
    ) -> Res<()> {
        let Some((&(lo, hi), rest)) = bounds.split_first() else {
            return body(self, indices);
        };
        let region = self.state.func.new_region(&[Type::I32]);
        indices.push(self.state.func.regions[region].params[0]);
        let done = self.within(region, |lower| {
            let done = lower.nest(rest, indices, body);
            lower.builder().yields(Vec::new());
            done
        });
        let step = self.builder().i32(1);
        self.effect(Op::For {
            lo,
            hi,
            step,
            init: Vec::new(),
            body: region,
        });
        done
    }
}
