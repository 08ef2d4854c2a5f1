//! Programs for calls with inputs of known sizes.
//!
//! A traced program holds for all sizes. Known sizes make code several times faster: passes decide by them, take short axes
//! apart into components, and LLVM unrolls loops of constant length. So a call with a large input runs a program in which
//! round sizes are constants and the classes of all others are known. Which program runs depends on the shapes of the
//! inputs alone, so results do, too; and calls with many different sizes need few programs.

use aerogel_base::ScalarType;
use aerogel_base::hash::LookupMap;

use super::expr::{Expr, ExprDef, Exprs};
use super::extents::{expect_agreement, known_sizes};
use super::ids::Dim;
use super::program::{DimDef, Program, Stmt};
use super::rewrite::{map_exprs, visit_mut};
use super::size::{Size, is_round};

/// If no input has this many elements, the program for all sizes runs: it is fast enough, and is compiled once.
const MANY: usize = 1024;

/// What is known about a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Known {
    No,
    Class(Size),
    Constant(u64),
}

/// What is known about the sizes of a program, in their order. Empty: nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sizes(Box<[Known]>);

impl Sizes {
    /// For inputs of these types and shapes.
    pub fn of(program: &Program, inputs: &[(ScalarType, &[usize])]) -> Self {
        let is_large = |shape: &[usize]| shape.iter().product::<usize>() >= MANY;
        let is_any_large = inputs.iter().any(|(_, shape)| is_large(shape));
        // Inputs that do not fit are refused when the program for all sizes runs. Sizes that depend on given numbers are not
        // known here.
        if !is_any_large || !program.given.is_empty() || expect_agreement(program, inputs).is_err()
        {
            return Self::default();
        }
        let known = known_sizes(program, inputs);
        let sizes = program.dims.iter().zip(known).map(|(def, n)| {
            let n = n.and_then(|n| u64::try_from(n).ok());
            match (def, n) {
                (DimDef::Const(_) | DimDef::Number(_), _) | (_, None | Some(0)) => Known::No,
                (DimDef::Input(..), Some(n)) if is_round(n) => Known::Constant(n),
                (_, Some(n)) => Known::Class(Size::of(n)),
            }
        });
        Self(sizes.collect())
    }
}

/// The program for inputs of these sizes.
pub fn for_sizes(mut program: Program, sizes: &Sizes) -> Program {
    if sizes.0.is_empty() {
        return program;
    }
    let mut replaced = Replaced {
        dims: Vec::new(),
        done: LookupMap::default(),
    };
    for k in 0..program.dims.len() as u32 {
        let old = Dim::from_u32(k);
        let def = program.dim_def(old).clone();
        let new = match def {
            DimDef::Const(_) => old,
            DimDef::Input(..) => match sizes.0[k as usize] {
                Known::Constant(n) => program.size(n),
                _ => old,
            },
            DimDef::Value(e) => match replaced.expr(&mut program.exprs, e) {
                new if new == e => old,
                new => program.dim(DimDef::Value(new)),
            },
            DimDef::Number(e) => match replaced.expr(&mut program.exprs, e) {
                new if new == e => old,
                new => program.dim(DimDef::Number(new)),
            },
        };
        let size = program.const_dim(new).and_then(|n| i32::try_from(n).ok());
        let size = size.filter(|_| new != old);
        replaced
            .dims
            .push((new, size.map(|n| program.exprs.i32(n))));
        if let (Known::Class(class), None) = (sizes.0[k as usize], program.const_dim(new)) {
            program.sizes.insert(new, class);
        }
    }
    for def in program.buffers.values_mut() {
        def.shape
            .iter_mut()
            .for_each(|dim| *dim = replaced.dim(*dim));
    }
    for both in &mut program.agreements {
        both.left = replaced.dim(both.left);
        both.right = replaced.dim(both.right);
    }
    let mut body = std::mem::take(&mut program.body);
    visit_mut(&mut body, &mut |stmt| {
        if let Stmt::For(all) = stmt {
            all.domain
                .iter_mut()
                .for_each(|dim| *dim = replaced.dim(*dim));
        }
    });
    map_exprs(&mut body, &mut |e| replaced.expr(&mut program.exprs, e));
    program.body = body;
    program
}

/// What replaces sizes of which some are constants now.
struct Replaced {
    /// By the number of a size: the size that stands for it, and its number if that is a constant now.
    dims: Vec<(Dim, Option<Expr>)>,
    done: LookupMap<Expr, Expr>,
}

impl Replaced {
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
