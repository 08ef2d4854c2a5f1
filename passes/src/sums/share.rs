//! Copies of small fields that the threads of a GPU's block share.
//!
//! ```text
//! v1 = shared of 64 elements
//! for k in thread..64 step threads of the block { v1[k] = 0 }
//! barrier
//! each (i: i32) { atomic v1[v0] += x }
//! barrier
//! for k in thread..64 step threads of the block { if v1[k] != 0 { atomic bins[k] += v1[k] } }
//! ```
//! Atomics on shared memory take a few cycles, and blocks do not wait for each other there. The cost is bounded: a thread
//! clears and checks two numbers, or as many as it has iterations. A number that no thread added to is not added to
//! global memory, so a block never does more atomics there than without the pass.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{Builder, Function, Inst, Op, Region, ThreadOp, Value, walk};

use super::privatize::{Target, element};

/// How many numbers of copies a thread clears, and checks afterwards: minimum and maximum.
const EACH: [i128; 2] = [2, 8];
/// The number of threads that a large GPU runs, among which iterations are divided.
const OF_CARD: i128 = 1 << 19;
/// Threads of a block where nobody says how many.
const THREADS: u32 = 128;
/// The most cells of a field of which there can be a copy, in the largest block.
pub(super) const MOST_CELLS: u64 = EACH[1] as u64 * 1024;
/// The most bytes of copies: every GPU gives a block 48 KiB of shared memory, and the more a block uses, the fewer run at once.
const MOST_BYTES: i128 = 16 << 10;

/// Leaves those targets of a task whose copies are worth it.
pub(super) fn keep_what_pays(
    func: &Function,
    task: Inst,
    inner: Region,
    targets: &mut Vec<Target>,
) {
    let Op::Task { attrs, bounds, .. } = &func[task] else {
        unreachable!("a loop is in a task")
    };
    if uses_threads(func, inner) {
        return targets.clear();
    }
    let threads = i128::from(attrs.block.unwrap_or(THREADS));
    let ends = func.yielded(*bounds).unwrap_or_default();
    let ends: Option<Vec<i128>> = ends
        .iter()
        .map(|&v| Some(func.as_const(v)?.as_i128()))
        .collect();
    let total = ends.map_or(i128::MAX, |ends| {
        let extents = ends.chunks_exact(2).map(|b| (b[1] - b[0]).max(0));
        extents.fold(1, i128::saturating_mul)
    });
    let [least, most] = EACH;
    // Without known bounds there may be few iterations.
    let own = match total {
        i128::MAX => least,
        _ => (total / OF_CARD).clamp(least, most),
    };
    // The smallest first.
    targets.sort_by_key(Target::cells);
    let (mut cells, mut bytes) = (0, 0);
    targets.retain(|target| {
        let size = target.cells() * i128::from(target.elem.bytes());
        // Others have no such atomics.
        let is_word = matches!(target.elem.bytes(), 4 | 8);
        let pays = is_word
            && cells + target.cells() <= (own * threads).min(total)
            && bytes + size <= MOST_BYTES;
        if pays {
            cells += target.cells();
            bytes += size;
        }
        pays
    });
}

/// Makes copies hold nothing.
pub(super) fn clear(b: &mut Builder<'_>, targets: &[Target], copies: &[Value]) {
    for (target, &copy) in targets.iter().zip(copies) {
        each_of_thread(b, target.cells(), |b, number| {
            let own = element(b, target, copy, number);
            let zero = b.constant(Scalar::zero(target.elem));
            b.store(own, zero);
        });
    }
    wait(b);
}

/// Waits for the threads of the block.
pub(crate) fn wait(b: &mut Builder<'_>) {
    b.effect(Op::Threads {
        op: ThreadOp::BlockSync,
        args: Vec::new(),
    });
}

/// Emits `body` for a strided part of a range, starting at the thread's own index.
pub(crate) fn each_of_thread(
    b: &mut Builder<'_>,
    n: i128,
    work: impl FnOnce(&mut Builder<'_>, Value),
) {
    let ty = ScalarType::I64;
    let mut ask = |op| {
        let args = Vec::new();
        let number = b.value(Op::Threads { op, args }, ScalarType::I32.into());
        b.value(Op::Cast { x: number }, ty.into())
    };
    let [lo, step] = [ThreadOp::ThreadInBlock, ThreadOp::BlockSize].map(&mut ask);
    let hi = b.constant(Scalar::int(ty, n));
    let body = b.region(&[ty.into()], |b, params| work(b, params[0]));
    let init = Vec::new();
    b.effect(Op::For {
        lo,
        hi,
        step,
        init,
        body,
    });
}

/// Whether the threads of a block do something together already.
pub(crate) fn uses_threads(func: &Function, body: Region) -> bool {
    let mut found = false;
    walk(func, body, &mut |func, inst| {
        found |= matches!(func[inst], Op::Shared {} | Op::Threads { .. });
    });
    found
}
