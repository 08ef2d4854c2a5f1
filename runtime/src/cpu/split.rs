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
/// A chunk lasts at least this many nanoseconds by the compiler's estimate, where nothing else may count, and there are
/// at most so many: where they wait for each other, threads of a busy machine lose a time slice with each.
const SHORTEST_FIXED: f32 = 8_000.0;
const MOST_FIXED: f32 = 64.0;

/// How an iteration space is divided: into strips of equal length, and these into chunks. A strip is a row, or everything
/// where a chunk is whole rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Split {
    strip: i64,
    chunks_per_strip: usize,
    chunk: i64,
    pub(crate) n_chunks: usize,
    pub(crate) n_threads: usize,
}

impl Split {
    /// Divides iterations of which one takes `cost` nanoseconds as measured and `estimate` as the
    /// compiler takes it. Chunks of a row begin at multiples of `batch`, counted from where it begins: measured times
    /// decide how long a chunk is, and must not decide which iterations run in the lanes of one vector.
    /// On one thread only the estimate counts: the same program adds its numbers in the same order every time.
    pub(crate) fn new(
        extents: Extents,
        batch: i64,
        cost: f32,
        estimate: f32,
        max_threads: usize,
    ) -> Self {
        let total = extents.total;
        let longest = longest(estimate);
        let work = total as f32 * cost;
        let n_threads = threads_worth(work, max_threads);
        if n_threads == 1 {
            return Self::by(longest.min(total), extents, batch, 1);
        }
        let n_chunks = (n_threads as f32 * CHUNKS_PER_THREAD).min(work / SHORTEST_CHUNK);
        let wished = ((total as f32 / n_chunks).ceil() as i64).min(longest);
        Self::by(wished, extents, batch, n_threads)
    }

    /// As `new`, but chunks depend on the iterations and the estimate alone: times decide about threads only.
    pub(crate) fn fixed(
        extents: Extents,
        batch: i64,
        cost: f32,
        estimate: f32,
        max_threads: usize,
    ) -> Self {
        let total = extents.total as f32;
        let n_chunks = (total * estimate / SHORTEST_FIXED).clamp(1.0, MOST_FIXED);
        let wished = ((total / n_chunks).ceil() as i64).min(longest(estimate));
        let n_threads = threads_worth(total * cost, max_threads);
        Self::by(wished, extents, batch, n_threads)
    }

    /// Chunks of about as many iterations as wished.
    fn by(wished: i64, extents: Extents, batch: i64, n_threads: usize) -> Self {
        let Extents { total, row } = extents;
        let (strip, chunk) = if wished >= row {
            // Whole rows, so that no row is divided between threads.
            (total, next_multiple(wished, row))
        } else {
            let wished = wished.max(1);
            let even = divide_up(row, divide_up(row, wished));
            // Whole cache lines of any element type.
            let of = if wished >= 256 { batch.max(64) } else { batch };
            (row, next_multiple(even, of).min(row))
        };
        let chunks_per_strip = divide_up(strip, chunk) as usize;
        Self {
            strip,
            chunks_per_strip,
            chunk,
            n_chunks: divide_up(total, strip) as usize * chunks_per_strip,
            n_threads,
        }
    }

    /// `[lo, hi)` of a chunk, of so many iterations in all.
    pub(crate) fn part(&self, chunk: usize, total: i64) -> [i64; 2] {
        let begin = (chunk / self.chunks_per_strip) as i64 * self.strip;
        let lo = begin + (chunk % self.chunks_per_strip) as i64 * self.chunk;
        let end = total.min(begin.saturating_add(self.strip));
        [lo, end.min(lo.saturating_add(self.chunk))]
    }
}

/// The most iterations of a chunk.
fn longest(estimate: f32) -> i64 {
    (LONGEST_CHUNK / estimate.max(1e-3)).max(1.0) as i64
}

/// How many threads so many nanoseconds of work are worth.
fn threads_worth(work: f32, max_threads: usize) -> usize {
    if work < WORTH_SHARING {
        return 1;
    }
    max_threads
        .min((work / (WORTH_SHARING / 2.0)) as usize)
        .max(1)
}

fn divide_up(number: i64, by: i64) -> i64 {
    (number as u64).div_ceil(by as u64) as i64
}

fn next_multiple(number: i64, of: i64) -> i64 {
    divide_up(number, of) * of
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_of_work() {
        let in_batches =
            |total, row, batch, cost| Split::new(Extents { total, row }, batch, cost, cost, 4);
        let split = |total, row, cost| in_batches(total, row, 1, cost);
        assert_eq!(split(100, 100, 1.0).n_threads, 1);
        let rows = split(4096 * 4096, 4096, 1.0);
        assert_eq!((rows.n_threads, rows.chunk % 4096), (4, 0));
        let heavy = split(8, 8, 1e6);
        assert_eq!((heavy.n_chunks, heavy.chunk), (8, 1));
        let lanes = in_batches(64, 64, 16, 1e6);
        assert_eq!((lanes.n_chunks, lanes.chunk), (4, 16));
        let odd = in_batches(3 * 513, 513, 64, 100.0);
        assert_eq!(odd.part(odd.chunks_per_strip - 1, 3 * 513)[1], 513);
        let huge = split(i64::MAX, i64::MAX, 1.0);
        assert!(huge.chunk > 0 && huge.n_chunks > 1);
    }

    #[test]
    fn long_work_is_cut_on_one_thread_too() {
        let alone = |total, row, cost| Split::new(Extents { total, row }, 8, cost, 2.0, 1);
        let cut = alone(1 << 30, 1 << 30, 2.0);
        assert_eq!(cut.n_threads, 1);
        assert!((cut.chunk - 1_000_000).abs() < 2_000, "{cut:?}");
        // What was measured changes nothing.
        assert_eq!(alone(1 << 30, 1 << 30, 77.0), cut);
        let rows = alone(100 * 300_000, 300_000, 2.0);
        assert_eq!(rows.chunk % 300_000, 0);
        assert_eq!(alone(1000, 10, 2.0).n_chunks, 1);
    }

    #[test]
    fn fixed_chunks_depend_on_neither_times_nor_threads() {
        for (total, row) in [(1, 1), (1000, 1000), (100_003, 100_003), (1 << 24, 1 << 12)] {
            let split = |cost, threads| {
                let split = Split::fixed(Extents { total, row }, 16, cost, 3.0, threads);
                (split.strip, split.chunk, split.n_chunks)
            };
            let chunks = split(3.0, 1);
            assert!(
                [(0.1, 1), (3.0, 2), (100.0, 64)]
                    .iter()
                    .all(|&(cost, n)| split(cost, n) == chunks)
            );
        }
        let many = Split::fixed(
            Extents {
                total: 1 << 24,
                row: 1 << 24,
            },
            16,
            3.0,
            3.0,
            4,
        );
        assert_eq!((many.n_threads, many.n_chunks), (4, 64));
    }

    #[test]
    fn chunks_cover_everything_and_begin_with_a_batch() {
        let sizes = [1, 2, 15, 16, 63, 64, 65, 300, 513, 1000];
        for (rows, row) in sizes.iter().flat_map(|&n| [1, 2, 7].map(|rows| (rows, n))) {
            for (batch, cost) in [1, 16, 64]
                .iter()
                .flat_map(|&b| [1.0, 50.0, 1e3, 1e5].map(|c| (b, c)))
            {
                let total = rows * row;
                let split = Split::new(Extents { total, row }, batch, cost, cost, 5);
                let mut at = 0;
                for [lo, hi] in (0..split.n_chunks).map(|k| split.part(k, total)) {
                    assert!(lo == at && lo < hi, "{split:?}");
                    assert_eq!((lo % row) % batch, 0, "{split:?}");
                    at = hi;
                }
                assert_eq!(at, total, "{split:?}");
            }
        }
    }
}
