//! Programs for inputs with short axes, such as the three coordinates of many points.
//!
//! A traced program holds for all sizes. Where an axis is short, its size makes code several times faster: passes take
//! vectors apart into components, and loops over points go in lanes. So large inputs with short axes get a program in which
//! these sizes are constants. Which one runs depends on the shapes of its inputs alone, so results do, too.

use aerogel_base::hash::LookupMap;
use smallvec::SmallVec;

use super::expr::{Expr, ExprDef, Exprs};
use super::ids::Dim;
use super::program::{DimDef, Program, Stmt};
use super::rewrite::{map_exprs, visit_mut};
use super::size::LONGEST_SHORT;

/// An input with fewer elements takes the program for all sizes: it is fast enough, and is compiled once.
const MANY: usize = 1024;

/// The size of each axis of each input, in their order, where it is short: otherwise 0. Empty if no axis is.
pub type ShortAxes = SmallVec<[u8; 16]>;

/// The short axes of inputs of these shapes.
pub fn short_axes<'s>(shapes: impl Iterator<Item = &'s [usize]>) -> ShortAxes {
    let mut out = ShortAxes::new();
    let mut any = false;
    for shape in shapes {
        let is_large = shape.iter().product::<usize>() >= MANY;
        for &n in shape {
            let is_short = is_large && n as u64 <= LONGEST_SHORT;
            out.push(if is_short { n as u8 } else { 0 });
            any |= is_short;
        }
    }
    if !any {
        out.clear();
    }
    out
}

/// The program for inputs with these short axes.
pub fn for_short_axes(mut program: Program, axes: &[u8]) -> Program {
    let mut short = LookupMap::default();
    let mut at = axes.iter();
    for buffer in program.inputs().collect::<Vec<_>>() {
        for axis in 0..program.buffers[buffer].shape.len() as u32 {
            let n = at.next().copied().unwrap_or(0);
            if n > 0 {
                short.insert(DimDef::Input(buffer, axis), u64::from(n));
            }
        }
    }
    let mut known = Known {
        dims: Vec::new(),
        done: LookupMap::default(),
    };
    for k in 0..program.dims.len() as u32 {
        let old = Dim::from_u32(k);
        let def = program.dim_def(old).clone();
        let new = match def {
            DimDef::Const(_) => old,
            DimDef::Input(..) => match short.get(&def) {
                Some(&n) => program.size(n),
                None => old,
            },
            DimDef::Value(e) => match known.expr(&mut program.exprs, e) {
                new if new == e => old,
                new => program.dim(DimDef::Value(new)),
            },
            DimDef::Number(e) => match known.expr(&mut program.exprs, e) {
                new if new == e => old,
                new => program.dim(DimDef::Number(new)),
            },
        };
        let size = program.const_dim(new).and_then(|n| i32::try_from(n).ok());
        let size = size.filter(|_| new != old);
        known.dims.push((new, size.map(|n| program.exprs.i32(n))));
    }
    for def in program.buffers.values_mut() {
        def.shape.iter_mut().for_each(|dim| *dim = known.dim(*dim));
    }
    for both in &mut program.agreements {
        both.left = known.dim(both.left);
        both.right = known.dim(both.right);
    }
    let mut body = std::mem::take(&mut program.body);
    visit_mut(&mut body, &mut |stmt| {
        if let Stmt::For(all) = stmt {
            all.domain.iter_mut().for_each(|dim| *dim = known.dim(*dim));
        }
    });
    map_exprs(&mut body, &mut |e| known.expr(&mut program.exprs, e));
    program.body = body;
    program
}

/// What stands for sizes of which some are known now.
struct Known {
    /// By the number of a size: the size that stands for it, and its number if that is a constant now.
    dims: Vec<(Dim, Option<Expr>)>,
    done: LookupMap<Expr, Expr>,
}

impl Known {
    fn dim(&self, dim: Dim) -> Dim {
        let known = self.dims.get(dim.as_u32() as usize);
        known.map_or(dim, |&(new, _)| new)
    }

    fn expr(&mut self, exprs: &mut Exprs, e: Expr) -> Expr {
        let dims = &self.dims;
        exprs.replace(e, &mut self.done, &mut |exprs, def| match *def {
            ExprDef::Extent(dim) => match dims.get(dim.as_u32() as usize) {
                Some(&(_, Some(size))) => Some(size),
                Some(&(new, None)) if new != dim => Some(exprs.extent(new)),
                _ => None,
            },
            _ => None,
        })
    }
}
