//! Scalars: their definitions, as far as these are known, and sizes among them.

use aerogel_base::hash::{FastHash, LookupMap};
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::BinaryOp;
use indexmap::IndexSet;

use super::{RecordError, Recorded, Recording};
use crate::ir::{Buffer, Dim, DimDef, Expr, ExprDef, Exprs, Role, deep};

/// Values with what single numbers are in place of them.
struct Followed<'r> {
    exprs: &'r mut Exprs,
    dims: &'r IndexSet<DimDef, FastHash>,
    numbers: &'r LookupMap<Buffer, Expr>,
    is_deep: bool,
    done: LookupMap<Expr, Expr>,
}

impl Followed<'_> {
    fn of(&mut self, e: Expr) -> Expr {
        if let Some(&done) = self.done.get(&e) {
            return done;
        }
        let old = self.exprs[e].clone();
        let def = old.map_operands(|x| deep(|| self.of(x)));
        let number = match def {
            ExprDef::Load { buffer, .. } => self.numbers.get(&buffer).copied(),
            ExprDef::Extent(dim) => match self.dims[dim.as_u32() as usize] {
                DimDef::Number(e) if self.is_deep => Some(e),
                _ => None,
            },
            _ => None,
        };
        let new = match number {
            // A number is made of others, each of which may be read.
            Some(number) => deep(|| self.of(number)),
            None if def == old => e,
            None => self.exprs.add(def),
        };
        self.done.insert(e, new);
        new
    }
}

impl Recording {
    /// A single number that is the same whenever it is computed.
    pub(crate) fn constant(&self, x: Buffer) -> Option<Scalar> {
        let &value = self.numbers.get(&x)?;
        self.program.exprs.as_const(value)
    }

    /// A scalar as a size.
    ///
    /// # Errors
    /// If it is not computed from sizes alone: each size has one value while a program runs.
    pub fn extent_of(&mut self, x: Buffer) -> Recorded<Dim> {
        let value = self.element(x, Vec::new());
        let value = self.followed(value);
        let what = "a size must be computed from the shapes of inputs, and this number is computed from elements";
        self.expect_fixed(value, what)?;
        let value = self.program.exprs.cast(value, ScalarType::I32);
        if let Some(n) = self.program.exprs.as_const(value).map(Scalar::as_i128)
            && n < 0
        {
            return Err(RecordError::Value(format!(
                "the size of an axis is {n}, below zero"
            )));
        }
        Ok(self.program.dim(DimDef::Value(value)))
    }

    /// Refuses a number that is not the same as long as a program runs.
    pub(super) fn expect_fixed(&self, value: Expr, what: &str) -> Recorded<()> {
        match self.is_fixed(value) {
            true => Ok(()),
            false => Err(RecordError::Value(what.to_owned())),
        }
    }

    /// Whether a value follows from the sizes of inputs.
    pub(super) fn is_fixed(&self, value: Expr) -> bool {
        let mut fixed = true;
        let exprs = &self.program.exprs;
        exprs.visit([value], &mut |e| {
            fixed &= !matches!(exprs[e], ExprDef::Load { .. } | ExprDef::Var(..));
        });
        fixed
    }

    /// A value with what single numbers are in place of them, as far as it is known.
    pub(super) fn followed(&mut self, value: Expr) -> Expr {
        self.with_numbers(value, true)
    }

    /// The same; scalars that the host computes stay named, unless their definitions are requested too.
    fn with_numbers(&mut self, value: Expr, is_deep: bool) -> Expr {
        Followed {
            exprs: &mut self.program.exprs,
            dims: &self.program.dims,
            numbers: &self.numbers,
            is_deep,
            done: LookupMap::default(),
        }
        .of(value)
    }

    /// Whether it contains sizes, or reads scalars that do.
    pub(super) fn is_of_extents(&self, value: Expr) -> bool {
        let mut any = false;
        let exprs = &self.program.exprs;
        exprs.visit([value], &mut |e| {
            any |= match exprs[e] {
                ExprDef::Extent(_) => true,
                ExprDef::Load { buffer, .. } => self.of_extents[buffer],
                _ => false,
            };
        });
        any
    }

    /// Whether it reads nothing but single numbers, each known to be made of such.
    pub(super) fn is_of_numbers(&self, value: Expr) -> bool {
        let mut all = true;
        let exprs = &self.program.exprs;
        exprs.visit([value], &mut |e| {
            all &= match exprs[e] {
                ExprDef::Load { buffer, .. } => self.numbers.contains_key(&buffer),
                ExprDef::Var(..) => false,
                _ => true,
            };
        });
        all
    }

    /// Whether a value is computed of inputs alone.
    pub(super) fn is_of_inputs(&self, value: Expr) -> bool {
        let mut all = true;
        let exprs = &self.program.exprs;
        exprs.visit([value], &mut |e| {
            all &= match exprs[e] {
                ExprDef::Load { buffer, .. } => {
                    let role = self.program.buffers[buffer].role;
                    let is_input = matches!(role, Role::Input(_)) && !self.memory[buffer];
                    is_input || self.of_inputs.contains_key(&buffer)
                }
                ExprDef::Var(..) => false,
                _ => true,
            };
        });
        all
    }

    /// A single number. If it follows from sizes, the host computes it, which reports an overflow.
    pub(super) fn counted(&mut self, value: Expr) -> Expr {
        if !self.is_of_extents(value) || !self.is_of_numbers(value) {
            return value;
        }
        // So many of them in a chain cost no more than each alone.
        let followed = self.with_numbers(value, false);
        if !crate::ir::follows(&self.program.exprs, followed) {
            return value;
        }
        let exprs = &self.program.exprs;
        let fits = match exprs[followed] {
            ExprDef::Extent(_) => true,
            // A size minus a small number cannot overflow.
            ExprDef::Binary(BinaryOp::Add, n, c) => {
                matches!(exprs[n], ExprDef::Extent(n) if !matches!(self.program.dim_def(n), DimDef::Number(_)))
                    && exprs.as_const(c).is_some_and(|c| c.as_i128() < 0)
            }
            _ => false,
        };
        if fits {
            return followed;
        }
        let dim = self.program.dim(DimDef::Number(followed));
        self.program.exprs.extent(dim)
    }
}
