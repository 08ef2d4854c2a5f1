//! Instructions that are inserted before others.

use aerogel_ir::{Function, Inst, Region};

/// Visits the instructions of a region and of those inside, inner ones first. What `visit` adds to its list comes to stand
/// before the instruction. Returns whether any visit returned true.
pub(crate) fn insert_before(
    func: &mut Function,
    region: Region,
    visit: &mut dyn FnMut(&mut Function, Inst, &mut Vec<Inst>) -> bool,
) -> bool {
    let mut changed = false;
    let mut out = Vec::new();
    for inst in std::mem::take(&mut func.regions[region].insts) {
        for owned in func.owned(inst) {
            changed |= insert_before(func, owned, visit);
        }
        changed |= visit(func, inst, &mut out);
        out.push(inst);
    }
    func.regions[region].insts = out;
    changed
}
