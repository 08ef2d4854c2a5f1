//! A BLAS that Python has loaded, for products of matrices.
#![expect(unsafe_code, reason = "functions of a library in C")]

use aerogel_tensor::Gemm;

const ROW_MAJOR: i32 = 101;
const AS_THEY_ARE: i32 = 111;

/// `cblas_?gemm` with integers of one width, of elements of one type.
type Function<I, T> =
    unsafe extern "C" fn(i32, i32, i32, I, I, I, T, *const T, I, *const T, I, T, *mut T, I);

/// The addresses of `cblas_sgemm` and `cblas_dgemm`.
struct Blas {
    single: usize,
    double: usize,
    /// Whether integers have 64 bits.
    is_long: bool,
}

/// The functions at the addresses of `cblas_sgemm` and `cblas_dgemm`, with integers of 64 bits if `is_long`, or else of
/// 32. `aerogel.backends` looked them up in a library that it never unloads.
pub(super) fn loaded(single: usize, double: usize, is_long: bool) -> &'static dyn Gemm {
    Box::leak(Box::new(Blas {
        single,
        double,
        is_long,
    }))
}

impl Blas {
    fn multiply<T: From<u8>>(
        &self,
        address: usize,
        [a, b]: [&[T]; 2],
        out: &mut [T],
        [n, k, m]: [usize; 3],
    ) {
        assert!(a.len() == n * k && b.len() == k * m && out.len() == n * m);
        let (one, zero) = (|| T::from(1), || T::from(0));
        let [a, b, out] = [a.as_ptr(), b.as_ptr(), out.as_mut_ptr().cast_const()];
        // A leading dimension is at least 1, also of nothing.
        let (by_k, by_m) = (k.max(1), m.max(1));
        if self.is_long {
            let i = |n: usize| n as i64;
            // SAFETY: `loaded` says what lies there.
            let f: Function<i64, T> = unsafe { std::mem::transmute(address) };
            let (mode, size) = (AS_THEY_ARE, [i(n), i(m), i(k)]);
            // SAFETY: the lengths were looked at above.
            unsafe {
                f(
                    ROW_MAJOR,
                    mode,
                    mode,
                    size[0],
                    size[1],
                    size[2],
                    one(),
                    a,
                    i(by_k),
                    b,
                    i(by_m),
                    zero(),
                    out.cast_mut(),
                    i(by_m),
                );
            }
        } else {
            let i = |n: usize| i32::try_from(n).expect("an axis has fewer than 2^31 elements");
            // SAFETY: as above.
            let f: Function<i32, T> = unsafe { std::mem::transmute(address) };
            let (mode, size) = (AS_THEY_ARE, [i(n), i(m), i(k)]);
            // SAFETY: as above.
            unsafe {
                f(
                    ROW_MAJOR,
                    mode,
                    mode,
                    size[0],
                    size[1],
                    size[2],
                    one(),
                    a,
                    i(by_k),
                    b,
                    i(by_m),
                    zero(),
                    out.cast_mut(),
                    i(by_m),
                );
            }
        }
    }
}

impl Gemm for Blas {
    fn f32(&self, a: &[f32], b: &[f32], out: &mut [f32], size: [usize; 3]) {
        self.multiply(self.single, [a, b], out, size);
    }

    fn f64(&self, a: &[f64], b: &[f64], out: &mut [f64], size: [usize; 3]) {
        self.multiply(self.double, [a, b], out, size);
    }
}
