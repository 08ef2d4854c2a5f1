//! Structure of arrays: an input with a short axis that many points read is split into one array for each index of the axis.
//!
//! ```text
//! for [n, n] { s[i0] add init = sub(x[i1, 0], x[i0, 0]) .. x[i1, 1] .. }
//!     for [n] { p[i0] = x[i0, 0]; q[i0] = x[i0, 1] }; for [n, n] { s[i0] add init = sub(p[i1], p[i0]) .. q[i1] .. }
//! ```
//! Neighbours along a plane lie side by side, as vectors are read. It is done for inputs that the program does not change,
//! where each element is read at many points.

use aerogel_base::hash::LookupMap;
use indexmap::{IndexMap, IndexSet};

use super::Options;
use crate::ir::{
    Buffer, Dim, Expr, ExprDef, Exprs, For, Outside, Program, Role, Stmt, Store, Touched, exprs_of,
    map_exprs, rewrite_fors, visit_host,
};

/// The longest axis that is taken apart.
const LONGEST: u64 = 4;
/// So often an element is read at least.
const OFTEN: u64 = 16;

/// Reads planes.
pub(super) fn run(program: &mut Program, _: Options) -> bool {
    let written = Touched::by(program, &program.body).writes;
    let mut found = IndexSet::new();
    visit_host(&program.body, &mut |stmt| {
        if let Stmt::For(all) = stmt {
            program.exprs.visit(exprs_of(&all.body), &mut |e| {
                let read = component(program, &all.domain, &program.exprs[e]);
                found.extend(read.map(|(buffer, _)| buffer));
            });
        }
    });
    let mut made = Vec::new();
    let planes: IndexMap<Buffer, Vec<Buffer>> = found
        .into_iter()
        .filter(|buffer| !written.contains(buffer))
        .map(|buffer| (buffer, copied(program, buffer, &mut made)))
        .collect();
    if planes.is_empty() {
        return false;
    }
    rewrite_fors(program, &mut |program, all, _| {
        let mut found = LookupMap::default();
        program.exprs.visit(exprs_of(&all.body), &mut |e| {
            let def = &program.exprs[e];
            if let Some((buffer, at)) = component(program, &all.domain, def)
                && let Some(planes) = planes.get(&buffer)
            {
                found.insert(def.clone(), planes[at]);
            }
        });
        let (mut done, exprs) = (LookupMap::default(), &mut program.exprs);
        map_exprs(&mut all.body, &mut |e| {
            exprs.replace(e, &mut done, &mut |exprs, def| plane(exprs, def, &found))
        })
    });
    program.body.splice(0..0, made);
    true
}

/// The input and the component that an expression reads, if neighbours read the same of it often.
fn component(program: &Program, domain: &[Dim], def: &ExprDef) -> Option<(Buffer, usize)> {
    let ExprDef::Load {
        buffer,
        index,
        outside: Outside::Never,
        ..
    } = def
    else {
        return None;
    };
    let shape = &program.buffers[*buffer].shape;
    let (last, others) = index.split_last()?;
    let at = program.exprs.as_const(*last)?.as_i128();
    let n = program.const_dim(*shape.last()?)?;
    let is_short = (2..=LONGEST).contains(&n) && (0..i128::from(n)).contains(&at);
    let is_input = matches!(program.buffers[*buffer].role, Role::Input(_));
    let n_axes = axes(&program.exprs, others);
    let known = |dims: &[Dim]| program.size_of_all(dims.iter().copied());
    let often = match (known(domain), known(&shape[..others.len()])) {
        (Some(points), Some(elements)) => points.about >= elements.about.saturating_mul(OFTEN),
        _ => true,
    };
    (is_short && is_input && often && n_axes > 0 && n_axes < domain.len())
        .then_some((*buffer, at as usize))
}

/// How many axes indices are made of.
fn axes(exprs: &Exprs, index: &[Expr]) -> usize {
    let mut axes = IndexSet::new();
    exprs.visit(index.iter().copied(), &mut |e| {
        if let ExprDef::Axis(k) = exprs[e] {
            axes.insert(k);
        }
    });
    axes.len()
}

/// The arrays that an input is split into (structure of arrays), and the statement that computes them.
fn copied(program: &mut Program, buffer: Buffer, made: &mut Vec<Stmt>) -> Vec<Buffer> {
    let def = &program.buffers[buffer];
    let (ty, mut domain) = (def.ty, def.shape.clone());
    let last = domain.pop().expect("it has a short axis");
    let n = program.const_dim(last).expect("it is short");
    let index = program.axes(domain.len());
    let planes: Vec<Buffer> = (0..n).map(|_| program.temporary(ty, &domain)).collect();
    let stores = planes.iter().enumerate().map(|(k, &target)| {
        let mut from = index.clone();
        from.push(program.exprs.i32(k as i32));
        let value = program.load(buffer, from, Outside::Never);
        Stmt::Store(Store {
            target,
            index: index.clone(),
            value,
            accum: None,
            init: false,
            outside: Outside::Never,
        })
    });
    let body = stores.collect();
    let span = aerogel_base::Span::NONE;
    made.push(Stmt::For(For {
        domain,
        cells: None,
        body,
        span,
    }));
    planes
}

fn plane(exprs: &mut Exprs, def: &ExprDef, found: &LookupMap<ExprDef, Buffer>) -> Option<Expr> {
    let &buffer = found.get(def)?;
    let ExprDef::Load { ty, index, .. } = def else {
        return None;
    };
    Some(exprs.add(ExprDef::Load {
        buffer,
        ty: *ty,
        index: index[..index.len() - 1].to_vec(),
        outside: Outside::Never,
    }))
}
