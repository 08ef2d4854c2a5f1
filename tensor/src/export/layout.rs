//! Where temporaries lie in one block of memory: those that are not used at the same time share it.

use aerogel_compiler::export::ALIGN;
use indexmap::IndexMap;

use super::{Exportable, Sizes};
use crate::ir::{Buffer, Program, Role, Touched};

/// The offset of each temporary, and how many bytes all take. The first `reserved` bytes are not theirs.
pub(super) fn layout(
    program: &Program,
    sizes: &Sizes,
    is_own: &dyn Fn(Buffer) -> bool,
    reserved: u64,
) -> Exportable<(IndexMap<Buffer, u64>, u64)> {
    let mut used: IndexMap<Buffer, [usize; 2]> = IndexMap::new();
    for (k, stmt) in program.body.iter().enumerate() {
        let touched = Touched::by(program, std::slice::from_ref(stmt));
        for &buffer in touched.reads.iter().chain(&touched.writes) {
            if program.buffers[buffer].role == Role::Temporary && is_own(buffer) {
                used.entry(buffer).or_insert([k, k])[1] = k;
            }
        }
    }
    let mut offsets = IndexMap::new();
    let mut end = reserved;
    // The temporaries in use, sorted by offset: offset, end, and last statement that uses it.
    let mut live: Vec<[u64; 3]> = Vec::new();
    for (&buffer, &[first, last]) in &used {
        let bytes = sizes.bytes(program, buffer)?.next_multiple_of(ALIGN);
        live.retain(|of| of[2] >= first as u64);
        let mut at = reserved;
        let gap = live.iter().position(|of| {
            let fits = at + bytes <= of[0];
            if !fits {
                at = of[1];
            }
            fits
        });
        live.insert(gap.unwrap_or(live.len()), [at, at + bytes, last as u64]);
        offsets.insert(buffer, at);
        end = end.max(at + bytes);
    }
    Ok((offsets, end))
}
