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
        let integer = |n: usize| i32::try_from(n).expect("an axis has fewer than 2^31 elements");
        match self.is_long {
            true => product(address, |n| n as i64, [a, b], out, [n, k, m]),
            false => product(address, integer, [a, b], out, [n, k, m]),
        }
    }
}

/// `out = a @ b` by the function at an address, which takes such integers. The slices have the lengths of the sizes.
fn product<I: Copy, T: From<u8>>(
    address: usize,
    integer: impl Fn(usize) -> I,
    [a, b]: [&[T]; 2],
    out: &mut [T],
    [n, k, m]: [usize; 3],
) {
    let [rows, columns, count] = [n, m, k].map(&integer);
    // A leading dimension is at least 1, also of an empty matrix.
    let [of_a, of_b] = [k.max(1), m.max(1)].map(&integer);
    // SAFETY: `loaded` was given the address of a function of this type.
    let gemm: Function<I, T> = unsafe { std::mem::transmute(address) };
    // SAFETY: `multiply` has checked the lengths.
    unsafe {
        gemm(
            ROW_MAJOR,
            AS_THEY_ARE,
            AS_THEY_ARE,
            rows,
            columns,
            count,
            T::from(1),
            a.as_ptr(),
            of_a,
            b.as_ptr(),
            of_b,
            T::from(0),
            out.as_mut_ptr(),
            of_b,
        );
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
