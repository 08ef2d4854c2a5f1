//! Programs that differ only in where they read: one for all of them.
//!
//! ```text
//! for [n] { t[i0] = mul(x[i32(7), i0], 2) }        for [n] { t[i0] = mul(x[x0, i0], 2) }, where x0 is 7
//! ```
//! A loop of Python's that reads row by row records another program at each turn. Numbers at which inputs are read become
//! variables that the caller sets, once some such programs have come: the first ones are compiled for their numbers.

use aerogel_base::hash::LookupMap;
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::BinaryOp;
use indexmap::IndexMap;

use crate::expr::{Expr, ExprDef, Exprs, Outside};
use crate::passes::map_exprs;
use crate::program::{Buffer, DimDef, Program, Role, Var};

/// Along shorter axes, numbers name components, which are taken apart.
const LONGEST_SHORT: u64 = 4;

/// The program without the numbers, and them; nothing if there are none.
pub(super) fn generalised(program: &Program) -> Option<(Program, Vec<Scalar>)> {
    let mut out = program.clone();
    out.exprs = Exprs::default();
    out.dims.clear();
    let mut general = General {
        old: program,
        new: out,
        done: LookupMap::default(),
        numbers: IndexMap::new(),
    };
    for def in &program.dims {
        let def = match def {
            DimDef::Value(e) => DimDef::Value(general.expr(*e)),
            other => other.clone(),
        };
        general.new.dims.insert(def);
    }
    let mut body = std::mem::take(&mut general.new.body);
    map_exprs(&mut body, &mut |e| general.expr(e));
    general.new.body = body;
    let General {
        mut new, numbers, ..
    } = general;
    new.given = numbers.values().copied().collect();
    let values = numbers.keys().map(|&(_, _, n)| Scalar::i32(n)).collect();
    (!numbers.is_empty() && new.dims.len() == program.dims.len()).then_some((new, values))
}

struct General<'p> {
    old: &'p Program,
    new: Program,
    done: LookupMap<Expr, Expr>,
    /// The variable for a number along an axis of a buffer.
    numbers: IndexMap<(Buffer, usize, i32), Var>,
}

impl General<'_> {
    fn expr(&mut self, e: Expr) -> Expr {
        if let Some(&done) = self.done.get(&e) {
            return done;
        }
        let def = match self.old.exprs[e].clone() {
            ExprDef::Load {
                buffer,
                ty,
                index,
                outside,
            } => {
                let index = index.into_iter().enumerate();
                let index = index.map(|(axis, i)| self.index(buffer, axis, i, outside));
                ExprDef::Load {
                    buffer,
                    ty,
                    index: index.collect(),
                    outside,
                }
            }
            def => def.map_operands(|x| self.expr(x)),
        };
        let made = self.new.exprs.add_as_is(def);
        self.done.insert(e, made);
        made
    }

    fn index(&mut self, buffer: Buffer, axis: usize, e: Expr, outside: Outside) -> Expr {
        let def = &self.old.buffers[buffer];
        let is_long = self
            .old
            .const_dim(def.shape[axis])
            .is_some_and(|n| n > LONGEST_SHORT);
        let is_read_of_input = matches!(def.role, Role::Input(_)) && outside == Outside::Never;
        if !is_long || !is_read_of_input {
            return self.expr(e);
        }
        match self.old.exprs[e] {
            ExprDef::Const(n) => self.number(buffer, axis, n),
            ExprDef::Binary(BinaryOp::Add, first, by) => match self.old.exprs.as_const(by) {
                Some(n) => {
                    let first = self.expr(first);
                    let by = self.number(buffer, axis, n);
                    let sum = ExprDef::Binary(BinaryOp::Add, first, by);
                    self.new.exprs.add_as_is(sum)
                }
                None => self.expr(e),
            },
            _ => self.expr(e),
        }
    }

    fn number(&mut self, buffer: Buffer, axis: usize, n: Scalar) -> Expr {
        let vars = &mut self.new.vars;
        let key = (buffer, axis, n.as_i128() as i32);
        let var = *self
            .numbers
            .entry(key)
            .or_insert_with(|| vars.push(ScalarType::I32));
        self.new.get(var)
    }
}
