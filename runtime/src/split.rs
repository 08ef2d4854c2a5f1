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
/// And at most this long, so that the launch can be interrupted between chunks.
const LONGEST_CHUNK: f32 = 50e6;
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
    pub(crate) fn new(extents: Extents, step: i64, cost: f32, max_threads: usize) -> Self {
        let Extents { total, row } = extents;
        let work = total as f32 * cost;
        let n_threads = max_threads
            .min((work / (WORTH_SHARING / 2.0)) as usize)
            .max(1);
        if n_threads == 1 || work < WORTH_SHARING {
            return Self {
                chunk: total,
                n_chunks: 1,
                n_threads: 1,
            };
        }
        let n_chunks = (n_threads as f32 * CHUNKS_PER_THREAD)
            .max(work / LONGEST_CHUNK)
            .min(work / SHORTEST_CHUNK);
        let wished = (total as f32 / n_chunks).ceil() as i64;
        let chunk = if wished >= row {
            // Whole rows, so that no row is divided between threads.
            next_multiple(wished, row)
        } else if wished >= 256 {
            // Whole cache lines of any element type, and whole steps.
            next_multiple(wished, 64)
        } else {
            next_multiple(wished.max(1), step)
        };
        Self {
            chunk,
            n_chunks: (total as u64).div_ceil(chunk as u64) as usize,
            n_threads,
        }
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
        let stepped = |total, row, step, cost| Split::new(Extents { total, row }, step, cost, 4);
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
}
