//! How an iteration space is divided among threads.

/// How many iterations there are, and how many are contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extents {
    pub(crate) total: i64,
    pub(crate) row: i64,
}

impl Extents {
    pub(crate) fn new(bounds: impl Iterator<Item = [i64; 2]>) -> Self {
        let mut total = 1_i64;
        let mut row = 1;
        for [lo, hi] in bounds {
            row = hi.saturating_sub(lo).max(0);
            total = total.saturating_mul(row);
        }
        Self { total, row }
    }
}

/// Below this many nanoseconds of estimated work a second thread costs more than it brings.
const WORTH_SHARING: f32 = 12_000.0;
/// Below this many nanoseconds reading the clock is not worth its time.
pub(crate) const WORTH_MEASURING: f32 = 500.0;
/// A chunk should last at least this many nanoseconds.
const SHORTEST_CHUNK: f32 = 4_000.0;
/// And at most this long by the compiler's estimate, so that the launch can be interrupted between
/// chunks: memory, atomics and other programs make it up to a hundred times as long.
const LONGEST_CHUNK: f32 = 2e6;
/// Chunks for each thread, so that uneven ones even out.
const CHUNKS_PER_THREAD: f32 = 16.0;

/// How an iteration space is divided. Chunks are multiples of the given step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Split {
    pub(crate) chunk: i64,
    pub(crate) n_chunks: usize,
    pub(crate) n_threads: usize,
}

impl Split {
    /// Divides iterations of which one takes `cost` nanoseconds as measured and `estimate` as the
    /// compiler takes it. On one thread only the estimate counts: the same program adds its numbers
    /// in the same order every time.
    pub(crate) fn new(
        extents: Extents,
        step: i64,
        cost: f32,
        estimate: f32,
        max_threads: usize,
    ) -> Self {
        let Extents { total, row } = extents;
        let longest = (LONGEST_CHUNK / estimate.max(1e-3)).max(1.0) as i64;
        let work = total as f32 * cost;
        let n_threads = max_threads
            .min((work / (WORTH_SHARING / 2.0)) as usize)
            .max(1);
        if n_threads == 1 || work < WORTH_SHARING {
            return Self::by(aligned(longest.min(total), row, step), total, 1);
        }
        let n_chunks = (n_threads as f32 * CHUNKS_PER_THREAD).min(work / SHORTEST_CHUNK);
        let wished = ((total as f32 / n_chunks).ceil() as i64).min(longest);
        Self::by(aligned(wished, row, step), total, n_threads)
    }

    fn by(chunk: i64, total: i64, n_threads: usize) -> Self {
        let n_chunks = (total as u64).div_ceil(chunk as u64) as usize;
        Self {
            chunk,
            n_chunks,
            n_threads,
        }
    }
}

/// About as many iterations, so that nothing is cut in two that belongs together.
fn aligned(wished: i64, row: i64, step: i64) -> i64 {
    if wished >= row {
        // Whole rows, so that no row is divided between threads.
        next_multiple(wished, row)
    } else if wished >= 256 {
        // Whole cache lines of any element type, and whole steps.
        next_multiple(wished, 64)
    } else {
        next_multiple(wished.max(1), step)
    }
}

fn next_multiple(number: i64, of: i64) -> i64 {
    (number as u64).div_ceil(of as u64) as i64 * of
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_of_work() {
        let stepped =
            |total, row, step, cost| Split::new(Extents { total, row }, step, cost, cost, 4);
        let split = |total, row, cost| stepped(total, row, 1, cost);
        assert_eq!(split(100, 100, 1.0).n_threads, 1);
        let rows = split(4096 * 4096, 4096, 1.0);
        assert_eq!((rows.n_threads, rows.chunk % 4096), (4, 0));
        let heavy = split(8, 8, 1e6);
        assert_eq!((heavy.n_chunks, heavy.chunk), (8, 1));
        let lanes = stepped(64, 64, 16, 1e6);
        assert_eq!((lanes.n_chunks, lanes.chunk), (4, 16));
        let huge = split(i64::MAX, i64::MAX, 1.0);
        assert!(huge.chunk > 0 && huge.n_chunks > 1);
    }

    #[test]
    fn long_work_is_cut_on_one_thread_too() {
        let alone = |total, row, cost| Split::new(Extents { total, row }, 8, cost, 2.0, 1);
        let cut = alone(1 << 30, 1 << 30, 2.0);
        assert_eq!(cut.n_threads, 1);
        assert!((cut.chunk - 1_000_000).abs() < 100, "{cut:?}");
        // What was measured changes nothing.
        assert_eq!(alone(1 << 30, 1 << 30, 77.0), cut);
        let rows = alone(100 * 300_000, 300_000, 2.0);
        assert_eq!(rows.chunk % 300_000, 0);
        assert_eq!(alone(1000, 10, 2.0).n_chunks, 1);
    }
}
