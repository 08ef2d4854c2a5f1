//! Changing statements.

use super::expr::Expr;
use super::program::Stmt;

/// Replaces every expression in statements.
pub(crate) fn map_exprs(body: &mut [Stmt], f: &mut dyn FnMut(Expr) -> Expr) {
    for stmt in body {
        match stmt {
            Stmt::Store(store) => {
                store.index.iter_mut().for_each(|e| *e = f(*e));
                store.value = f(store.value);
            }
            Stmt::Set(_, e) => *e = f(*e),
            Stmt::Loop { lo, hi, body, .. } => {
                *lo = f(*lo);
                *hi = f(*hi);
                map_exprs(body, f);
            }
            Stmt::If(cond, then, otherwise) => {
                *cond = f(*cond);
                map_exprs(then, f);
                map_exprs(otherwise, f);
            }
            Stmt::For(all) => map_exprs(&mut all.body, f),
            Stmt::Break | Stmt::Continue | Stmt::Call(_) | Stmt::Run(_) | Stmt::Clear(_) => {}
        }
    }
}
