//! Per-thread copies of the targets of sums.
//!
//! The first thread adds to the target itself, which no other thread accesses meanwhile. Every other thread has a copy of
//! each target, initially zero. When the task is over, the copies are added to the target and zeroed again, ready for
//! the next task. Decision 0024 has the rule and its measurements.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use aerogel_base::ScalarType;

use super::Pool;
use super::memory::physical;
use crate::abi::{LaunchContext, MAX_IMAGES};
use crate::buffer::{Buffer, MemoryError};
use crate::code::{Image, ImageMemory, Run, Sum, SumsCode};
use crate::launch::Args;
use crate::tree::TreeMemory;

/// Copies take at most this part of the machine's memory.
const SHARE: u64 = 8;
/// Cached copies for other tasks take at most this part of it, but may take `LEAST_KEPT` bytes.
const SHARE_KEPT: u64 = 32;
const LEAST_KEPT: u64 = 256 << 20;
/// Around a copy as many bytes as it has, but no more than this, take what an index outside adds.
const MARGIN: usize = 64 << 20;
/// Numbers that are added at once.
const PIECE: u64 = 16 << 10;

/// `LaunchContext::apart` of a thread that adds to the places themselves.
pub(super) static IN_PLACE: [i64; MAX_IMAGES] = [0; MAX_IMAGES];

/// Copies that no task uses, all zero. The lock is never waited for: a child process may inherit it locked.
pub(crate) struct Spare {
    kept: Mutex<Vec<Buffer>>,
    most: u64,
}

impl Default for Spare {
    fn default() -> Self {
        Self {
            kept: Mutex::default(),
            most: LEAST_KEPT.max(physical().unwrap_or(0) / SHARE_KEPT),
        }
    }
}

impl Spare {
    fn take(&self, bytes: usize) -> Result<Buffer, MemoryError> {
        if let Ok(mut kept) = self.kept.try_lock()
            && let Some(k) = kept.iter().position(|copy| copy.len() == bytes)
        {
            return Ok(kept.remove(k));
        }
        Buffer::with_margin(bytes, bytes.min(MARGIN))
    }

    /// Keeps copies; those that have not been used for longest go.
    fn keep(&self, copies: Vec<Buffer>) {
        let Ok(mut kept) = self.kept.try_lock() else {
            return;
        };
        kept.splice(0..0, copies);
        let mut bytes = 0;
        kept.retain(|copy| {
            bytes += copy.len() as u64;
            bytes <= self.most
        });
    }
}

impl SumsCode {
    /// For how many threads at most a launch makes copies: they pay, and are a small part of the machine's memory.
    pub(super) fn most_threads(&self, n_iterations: i64, slots: &[u64]) -> usize {
        static MOST: OnceLock<u64> = OnceLock::new();
        let most = *MOST.get_or_init(|| physical().map_or(u64::MAX, |bytes| bytes / SHARE));
        let bytes = self.bytes(slots);
        let copies = (most / bytes.max(1)) as usize;
        let pay = self.threads_that_pay(n_iterations, bytes);
        pay.min(copies.saturating_add(1))
    }

    /// The bytes of a copy of all images.
    pub(super) fn bytes(&self, slots: &[u64]) -> u64 {
        let images = self.images.iter();
        let bytes = images.map(|image| image.bytes.saturating_mul(image.elements(slots)));
        bytes.fold(0, u64::saturating_add)
    }

    /// Copies for threads (or groups of chunks) after the first.
    ///
    /// # Errors
    /// There is no memory for them.
    pub(super) fn copies<'a>(
        &'a self,
        spare: &'a Spare,
        roots: &[&'a TreeMemory],
        args: &Args<'a>,
        n_threads: usize,
    ) -> Result<Copies<'a>, MemoryError> {
        let images = self.images.iter();
        let mut copies = Copies {
            spare,
            images: images.map(|i| Placed::new(i, roots, args)).collect(),
            buffers: Vec::new(),
            apart: vec![IN_PLACE; n_threads],
            used: (0..n_threads).map(|_| AtomicBool::new(false)).collect(),
        };
        for apart in &mut copies.apart[1..] {
            for (apart, image) in apart.iter_mut().zip(&copies.images) {
                let copy = spare.take(image.bytes)?;
                let place = image.memory.addresses().start as i64 + image.offset as i64;
                *apart = (copy.addresses().start as i64).wrapping_sub(place);
                copies.buffers.push(copy);
            }
        }
        Ok(copies)
    }
}

/// An image of a launch.
struct Placed<'a> {
    memory: &'a Buffer,
    offset: usize,
    bytes: usize,
    runs: Cow<'a, [Run]>,
}

impl<'a> Placed<'a> {
    fn new(image: &'a Image, roots: &[&'a TreeMemory], args: &Args<'a>) -> Self {
        let bytes = image.bytes as usize;
        match image.memory {
            ImageMemory::Tree { number, offset } => Self {
                memory: roots[number].bytes(),
                offset: offset as usize,
                bytes,
                runs: Cow::Borrowed(&image.runs),
            },
            ImageMemory::Array { number, .. } => {
                let elements = image.elements(args.slots());
                let mut runs = image.runs.clone();
                runs.iter_mut().for_each(|run| run.numbers *= elements);
                Self {
                    memory: args.arrays()[number],
                    offset: 0,
                    bytes: bytes * elements as usize,
                    runs: Cow::Owned(runs),
                }
            }
        }
    }
}

/// The copies that a task's threads add to.
pub(super) struct Copies<'a> {
    spare: &'a Spare,
    images: Vec<Placed<'a>>,
    /// The copies of all images for each thread after the first.
    buffers: Vec<Buffer>,
    /// How far they lie from the images, for each thread.
    apart: Vec<[i64; MAX_IMAGES]>,
    used: Vec<AtomicBool>,
}

impl Copies<'_> {
    /// The context of a thread.
    pub(super) fn context(&self, ctx: &LaunchContext, worker: usize) -> LaunchContext {
        self.used[worker].store(true, Ordering::Relaxed);
        LaunchContext {
            apart: self.apart[worker].as_ptr(),
            ..*ctx
        }
    }

    /// Adds what was gathered to the places, and keeps the copies for other tasks.
    pub(super) fn add(self, pool: &Pool) {
        let used = self.used[1..].iter().map(|u| u.load(Ordering::Relaxed));
        let copies = self.buffers.chunks_exact(self.images.len()).zip(used);
        let copies: Vec<&[Buffer]> = copies.filter(|c| c.1).map(|c| c.0).collect();
        for (k, image) in self.images.iter().enumerate() {
            let copies: Vec<&Buffer> = copies.iter().map(|of| &of[k]).collect();
            for run in image.runs.iter() {
                add_run(pool, run, (image.memory, image.offset), &copies);
            }
        }
        self.spare.keep(self.buffers);
    }
}

/// Adds the numbers of a run in copies of an image to those of the image.
fn add_run(pool: &Pool, run: &Run, (memory, image): (&Buffer, usize), copies: &[&Buffer]) {
    if copies.is_empty() {
        return;
    }
    let total = run.rows() * run.numbers;
    let n_pieces = total.div_ceil(PIECE) as usize;
    pool.run(n_pieces, pool.n_threads(), &|piece| {
        let mut at = piece as u64 * PIECE;
        let end = total.min(at + PIECE);
        while at < end {
            let column = at % run.numbers;
            let n = (run.numbers - column).min(end - at);
            let offset = run.row(at / run.numbers) + column * u64::from(run.ty.bytes());
            for copy in copies {
                let to = (memory, image + offset as usize);
                let added = add_numbers((run.ty, run.sum), to, (copy, offset as usize), n as usize);
                debug_assert_eq!(added, Ok(()), "images lie in their memory");
            }
            at += n;
        }
    });
}

/// Adds `n` numbers that lie side by side.
fn add_numbers(
    (ty, sum): (ScalarType, Sum),
    (memory, offset): (&Buffer, usize),
    copy: (&Buffer, usize),
    n: usize,
) -> Result<(), MemoryError> {
    /// `$ty` as words of type `$word`; `$highest` is the greatest number, `$lowest` the least.
    macro_rules! gather {
        ($word:ty, $ty:ty, $of:expr, $bits:expr, $add:expr, $lowest:expr, $highest:expr) => {{
            let both = |a: $word, b: $word, nothing: $ty| ($of(a), $of(b ^ $bits(nothing)));
            match sum {
                Sum::Add => {
                    memory.gather(offset, copy, n, |a: $word, b| $bits($add($of(a), $of(b))))
                }
                Sum::Min => memory.gather(offset, copy, n, |a: $word, b| {
                    let (a, b) = both(a, b, $highest);
                    $bits(if a < b { a } else { b })
                }),
                Sum::Max => memory.gather(offset, copy, n, |a: $word, b| {
                    let (a, b) = both(a, b, $lowest);
                    $bits(if a > b { a } else { b })
                }),
                // All bits set is the identity element.
                Sum::And => memory.gather(offset, copy, n, |a: $word, b| a & !b),
                Sum::Or => memory.gather(offset, copy, n, |a: $word, b| a | b),
                Sum::Xor => memory.gather(offset, copy, n, |a: $word, b| a ^ b),
            }
        }};
        ($word:ty, $ty:ty) => {
            gather!(
                $word,
                $ty,
                |x: $word| x as $ty,
                |x: $ty| x as $word,
                <$ty>::wrapping_add,
                <$ty>::MIN,
                <$ty>::MAX
            )
        };
        (float $word:ty, $ty:ty) => {
            gather!(
                $word,
                $ty,
                <$ty>::from_bits,
                <$ty>::to_bits,
                |a: $ty, b: $ty| a + b,
                <$ty>::NEG_INFINITY,
                <$ty>::INFINITY
            )
        };
    }
    match ty {
        ScalarType::I8 => gather!(u8, i8),
        ScalarType::U8 => gather!(u8, u8),
        ScalarType::I16 => gather!(u16, i16),
        ScalarType::U16 => gather!(u16, u16),
        ScalarType::I32 => gather!(u32, i32),
        ScalarType::U32 => gather!(u32, u32),
        ScalarType::I64 => gather!(u64, i64),
        ScalarType::U64 => gather!(u64, u64),
        ScalarType::F32 => gather!(float u32, f32),
        ScalarType::F64 => gather!(float u64, f64),
        ScalarType::U1 | ScalarType::F16 | ScalarType::BF16 => unreachable!("`Run::ty` says so"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use aerogel_base::Scalar;
    use aerogel_snode::parse_nodes;

    use super::*;

    fn run(ty: ScalarType, sum: Sum, numbers: u64, loops: &[[u64; 2]]) -> Run {
        Run {
            ty,
            sum,
            offset: 0,
            numbers,
            loops: loops.to_vec(),
        }
    }

    fn sums(bytes: u64, runs: Vec<Run>) -> SumsCode {
        let image = Image {
            memory: ImageMemory::Tree {
                number: 0,
                offset: 64,
            },
            bytes,
            runs,
        };
        SumsCode {
            symbol: String::new(),
            per_iteration: 2.0,
            images: vec![image],
            always: false,
        }
    }

    #[test]
    fn copies_are_added_and_zeroed() {
        let tree = "dense i:16 { place a: f32 } dense i:50000 { place b: f32, place c: i32 }";
        let memory = TreeMemory::new(Arc::new(parse_nodes(tree).unwrap()), 0).unwrap();
        let (roots, args) = ([&memory], Args::new());
        // The `f32` of each cell, but not the `i32`.
        let run = run(ScalarType::F32, Sum::Add, 1, &[[8, 50_000]]);
        let (sums, spare) = (sums(400_000, vec![run]), Spare::default());
        let number = |k: usize| Scalar::f32(k as f32);
        for times in 1..3 {
            let copies = sums.copies(&spare, &roots, &args, 4).unwrap();
            let ctx = LaunchContext {
                args: std::ptr::null(),
                roots: std::ptr::null(),
                temps: std::ptr::null_mut(),
                results: std::ptr::null_mut(),
                errors: std::ptr::null(),
                host: std::ptr::null(),
                seed: 0,
                stop: std::ptr::null(),
                apart: std::ptr::null(),
                part: 0,
            };
            // The second thread comes too late for any part.
            for worker in [0, 1, 3] {
                copies.context(&ctx, worker);
            }
            for copy in [&copies.buffers[0], &copies.buffers[2]] {
                for k in (0..50_000).step_by(7) {
                    copy.write_scalar(8 * k, number(k)).unwrap();
                }
            }
            copies.add(&Pool::new(2));
            for k in 0..50_000 {
                let at = 64 + 8 * k;
                let sum = memory.bytes().read_scalar(ScalarType::F32, at).unwrap();
                let expected = if k % 7 == 0 { 2 * times * k } else { 0 };
                assert_eq!(sum, number(expected));
                let other = memory.bytes().read_scalar(ScalarType::I32, at + 4);
                assert_eq!(other.unwrap(), Scalar::i32(0));
            }
            let kept = spare.kept.lock().unwrap();
            assert_eq!(kept.len(), 3);
            for copy in kept.iter() {
                for k in 0..50_000 {
                    let number = copy.read_scalar(ScalarType::F32, 8 * k).unwrap();
                    assert_eq!(number, Scalar::f32(0.0));
                }
            }
        }
    }

    #[test]
    fn operations_on_numbers() {
        let made = |sum, old: Scalar, nothing: Scalar, other: Scalar| {
            let ty = old.ty();
            let (tree, copy) = (Buffer::zeroed(16).unwrap(), Buffer::zeroed(16).unwrap());
            let stored = Scalar::from_slot(ty, other.slot() ^ nothing.slot());
            let at = ty.bytes() as usize;
            tree.write_scalar(at, old).unwrap();
            copy.write_scalar(0, stored).unwrap();
            add_numbers((ty, sum), (&tree, at), (&copy, 0), 1).unwrap();
            tree.read_scalar(ty, at).unwrap()
        };
        let int = |ty, a: i128, b: i128, sum, nothing| {
            let [a, b, nothing] = [a, b, nothing].map(|n| Scalar::int(ty, n));
            made(sum, a, nothing, b).as_i128()
        };
        use ScalarType::*;
        assert_eq!(int(I8, 100, 100, Sum::Add, 0), -56);
        assert_eq!(int(I16, -3, 2, Sum::Min, 0x7fff), -3);
        assert_eq!(int(I64, -3, 2, Sum::Max, i64::MIN.into()), 2);
        assert_eq!(int(U32, 0xffff_fffe, 5, Sum::Min, 0xffff_ffff), 5);
        assert_eq!(int(U8, 0b1100, 0b1010, Sum::And, 0xff), 0b1000);
        assert_eq!(int(U64, 0b1100, 0b1010, Sum::Or, 0), 0b1110);
        assert_eq!(int(I32, 0b1100, 0b1010, Sum::Xor, 0), 0b0110);
        let float = |a, b, sum, nothing: f64| {
            let number = |x| Scalar::float(F64, x);
            made(sum, number(a), number(nothing), number(b)).as_f64()
        };
        assert_eq!(float(1.5, -2.0, Sum::Add, 0.0), -0.5);
        assert_eq!(float(1.5, -2.0, Sum::Min, f64::INFINITY), -2.0);
        assert_eq!(float(f64::NAN, 7.0, Sum::Max, f64::NEG_INFINITY), 7.0);
        // An element that no thread has added to stays the same, bit by bit.
        assert!(float(-0.0, 0.0, Sum::Add, 0.0).is_sign_negative());
        let untouched = float(f64::NAN, f64::INFINITY, Sum::Min, f64::INFINITY);
        assert!(untouched.is_nan());
    }

    #[test]
    fn what_pays() {
        let threads = |bytes, n| sums(bytes, Vec::new()).most_threads(n, &[]);
        assert_eq!(threads(1 << 20, 3000), 1);
        assert_eq!(threads(1 << 20, 1 << 17), 34);
        // The caches hold no copy.
        assert_eq!(threads(16 << 20, 1 << 24), 27);
        assert_eq!(threads(u64::MAX >> 1, i64::MAX), 1);
    }

    #[test]
    fn some_copies_are_kept() {
        let spare = Spare {
            most: 1000,
            ..Spare::default()
        };
        for bytes in [500, 250, 501, 500] {
            let copy = spare.take(bytes).unwrap();
            spare.keep(vec![copy]);
        }
        let kept = spare.kept.lock().unwrap();
        let kept: Vec<usize> = kept.iter().map(Buffer::len).collect();
        assert_eq!(kept, [500]);
    }
}
