//! How many statements of the host touch each buffer.

use aerogel_base::hash::LookupMap;
use indexmap::IndexSet;

use crate::ir::{Buffer, Program, Stmt, Touched, visit_host};

/// Counts how many statements of the host touch each buffer.
pub(super) fn add_uses(program: &Program, body: &[Stmt], out: &mut LookupMap<Buffer, usize>) {
    visit_host(body, &mut |stmt| {
        let touched = match stmt {
            Stmt::For(_) => Touched::by(program, std::slice::from_ref(stmt)),
            _ => Touched::of_itself(program, stmt),
        };
        let all: IndexSet<Buffer> = touched.reads.union(&touched.writes).copied().collect();
        for buffer in all {
            let n = out.get(&buffer).copied().unwrap_or(0);
            out.insert(buffer, n + 1);
        }
    });
}
