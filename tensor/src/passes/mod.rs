//! The passes over a program before it becomes kernels: a file for each, and the table of their order (`pipeline`).

mod affine;
mod asked;
mod by_library;
mod caps;
mod components;
mod copies;
mod dead;
mod direct;
mod factors;
mod fuse;
mod gathers;
mod inline;
mod interchange;
mod invariant_axes;
mod inverse;
mod known_values;
mod narrow;
mod overlaps;
mod pipeline;
mod planes;
mod products;
mod readers;
mod reductions;
mod registers;
mod scratch;
mod staged;
mod tiles;
mod zeros;

pub use caps::Caps;
pub use pipeline::{PASSES, Pass, full_names, run};

use aerogel_ir::BinaryOp;
use indexmap::IndexSet;

use crate::ir::{Buffer, Expr, ExprDef, Exprs, Program, Touched};

/// How large matrix products are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Products {
    /// Kernels over tiles.
    #[default]
    Tiles,
    /// A library, those of floats.
    Library,
}

/// The choices of the passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// How large matrix products are computed.
    pub products: Products,
    /// With so many products of elements they are large. Measured, 32 x 32 x 32 takes 8 us in tiles and 29 in loops.
    pub many: u64,
    /// Temporaries at active cells that take no more bytes than this as arrays are arrays.
    pub most_dense: u64,
    /// The sizes of tiles and the limits of fusion.
    pub caps: Caps,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            products: Products::default(),
            many: 1 << 12,
            most_dense: 16 << 20,
            caps: Caps::default(),
        }
    }
}

/// The conjuncts of a condition.
fn conjuncts(exprs: &Exprs, cond: Expr) -> IndexSet<Expr> {
    let mut all = IndexSet::new();
    let mut left = vec![cond];
    let mut seen = IndexSet::new();
    while let Some(cond) = left.pop() {
        match exprs[cond] {
            ExprDef::Binary(BinaryOp::And, a, b) if seen.insert(cond) => left.extend([b, a]),
            ExprDef::Binary(BinaryOp::And, ..) => {}
            _ => {
                all.insert(cond);
            }
        }
    }
    all
}

/// For each outermost statement, the temporaries and inputs whose last use it is. Results, and buffers that sizes depend on,
/// stay.
pub fn last_uses(program: &Program) -> Vec<Vec<Buffer>> {
    let mut last: Vec<Vec<Buffer>> = vec![Vec::new(); program.body.len()];
    let mut seen: IndexSet<Buffer> = program.results.iter().copied().collect();
    seen.extend(program.fields());
    let mut of_extents = Touched::default();
    for def in &program.dims {
        if let Some(e) = def.expr() {
            of_extents.exprs(&program.exprs, [e]);
        }
    }
    seen.extend(of_extents.reads);
    for (k, stmt) in program.body.iter().enumerate().rev() {
        let touched = Touched::by(program, std::slice::from_ref(stmt));
        for &buffer in touched.reads.iter().chain(&touched.writes) {
            if seen.insert(buffer) {
                last[k].push(buffer);
            }
        }
    }
    last
}

/// Whether a program stores to fields.
pub fn stores_to_fields(program: &Program) -> bool {
    let touched = Touched::by(program, &program.body);
    program.fields().any(|b| touched.writes.contains(&b))
}

/// How many temporaries a program keeps in memory.
pub fn n_materialised(program: &Program) -> usize {
    dead::n_materialised(program)
}
