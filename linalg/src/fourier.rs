//! Discrete Fourier transforms of rows: `rustfft`, and `realfft` where one side is real.
//!
//! Complex numbers are two slices, real and imaginary parts. Nothing is scaled: an inverse after a transform is the row
//! times its length.

use std::sync::{LazyLock, Mutex, PoisonError};

use realfft::RealFftPlanner;
use rustfft::num_complex::Complex;
use rustfft::{FftDirection, FftNum, FftPlanner};

/// The cache of plans.
pub struct Planners<T: FftNum> {
    complex: FftPlanner<T>,
    real: RealFftPlanner<T>,
}

impl<T: FftNum> Planners<T> {
    fn new() -> Self {
        Self {
            complex: FftPlanner::new(),
            real: RealFftPlanner::new(),
        }
    }
}

/// Numbers that there are transforms of.
pub trait Transformed: FftNum + Default {
    /// Does something with the plans that there are.
    fn with_planners<R>(f: impl FnOnce(&mut Planners<Self>) -> R) -> R;
}

macro_rules! transformed {
    ($ty:ty) => {
        impl Transformed for $ty {
            fn with_planners<R>(f: impl FnOnce(&mut Planners<Self>) -> R) -> R {
                static PLANNERS: LazyLock<Mutex<Planners<$ty>>> =
                    LazyLock::new(|| Mutex::new(Planners::new()));
                f(&mut PLANNERS.lock().unwrap_or_else(PoisonError::into_inner))
            }
        }
    };
}
transformed!(f32);
transformed!(f64);

/// Transforms each row of `n` numbers, forwards or backwards.
///
/// # Panics
/// If a slice's length is not a multiple of the row length.
pub fn transform<T: Transformed>(planes: [&[T]; 2], n: usize, backwards: bool, out: [&mut [T]; 2]) {
    if n == 0 {
        return;
    }
    let direction = match backwards {
        true => FftDirection::Inverse,
        false => FftDirection::Forward,
    };
    let plan = T::with_planners(|p| p.complex.plan_fft(n, direction));
    let mut scratch = vec![Complex::default(); plan.get_inplace_scratch_len()];
    let mut row = vec![Complex::default(); n];
    let ([re, im], [out_re, out_im]) = (planes, out);
    for first in (0..re.len()).step_by(n) {
        let both = re[first..first + n].iter().zip(&im[first..first + n]);
        row.iter_mut()
            .zip(both)
            .for_each(|(x, (&re, &im))| *x = Complex { re, im });
        plan.process_with_scratch(&mut row, &mut scratch);
        for (k, x) in row.iter().enumerate() {
            (out_re[first + k], out_im[first + k]) = (x.re, x.im);
        }
    }
}

/// Transforms each row of `n` real numbers: the first `n / 2 + 1` results, of which the others are the conjugates.
///
/// # Panics
/// If a slice's length is not a multiple of the row length.
pub fn transform_real<T: Transformed>(rows: &[T], n: usize, [re, im]: [&mut [T]; 2]) {
    if n == 0 {
        return;
    }
    let plan = T::with_planners(|p| p.real.plan_fft_forward(n));
    let (mut row, mut found) = (plan.make_input_vec(), plan.make_output_vec());
    let mut scratch = plan.make_scratch_vec();
    let m = found.len();
    for (at, from) in rows.chunks_exact(n).enumerate() {
        row.copy_from_slice(from);
        plan.process_with_scratch(&mut row, &mut found, &mut scratch)
            .expect("the lengths are the plan's");
        for (k, x) in found.iter().enumerate() {
            (re[at * m + k], im[at * m + k]) = (x.re, x.im);
        }
    }
}

/// The real rows of `n` numbers that have these first `n / 2 + 1` transforms; what would make them complex does not count.
///
/// # Panics
/// If a slice's length is not a multiple of the row length.
pub fn transform_to_real<T: Transformed>([re, im]: [&[T]; 2], n: usize, out: &mut [T]) {
    if n == 0 {
        return;
    }
    let plan = T::with_planners(|p| p.real.plan_fft_inverse(n));
    let (mut row, mut found) = (plan.make_input_vec(), plan.make_output_vec());
    let mut scratch = plan.make_scratch_vec();
    let m = row.len();
    for (at, to) in out.chunks_exact_mut(n).enumerate() {
        for (k, x) in row.iter_mut().enumerate() {
            *x = Complex {
                re: re[at * m + k],
                im: im[at * m + k],
            };
        }
        row[0].im = T::zero();
        if n.is_multiple_of(2) {
            row[m - 1].im = T::zero();
        }
        plan.process_with_scratch(&mut row, &mut found, &mut scratch)
            .expect("the lengths are the plan's");
        to.copy_from_slice(&found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sums by their definition.
    fn slow(re: &[f64], im: &[f64], backwards: bool) -> [Vec<f64>; 2] {
        let n = re.len();
        let sign = if backwards { 1.0 } else { -1.0 };
        let mut out = [Vec::new(), Vec::new()];
        for k in 0..n {
            let (mut sum_re, mut sum_im) = (0.0, 0.0);
            for (j, (re, im)) in re.iter().zip(im).enumerate() {
                let turn = sign * 2.0 * std::f64::consts::PI * (j * k % n) as f64 / n as f64;
                let (sin, cos) = turn.sin_cos();
                sum_re += re * cos - im * sin;
                sum_im += re * sin + im * cos;
            }
            out[0].push(sum_re);
            out[1].push(sum_im);
        }
        out
    }

    fn near(a: &[f64], b: &[f64]) {
        assert_eq!(a.len(), b.len());
        assert!(
            a.iter().zip(b).all(|(x, y)| (x - y).abs() < 1e-12),
            "{a:?} {b:?}"
        );
    }

    #[test]
    fn sums_by_their_definition() {
        for n in [1, 2, 3, 4, 5, 7, 12, 17] {
            let re: Vec<f64> = (0..n).map(|k| (k as f64 * 0.7).sin() + 0.3).collect();
            let im: Vec<f64> = (0..n).map(|k| (k as f64 * 1.3).cos()).collect();
            for backwards in [false, true] {
                let mut found = [vec![0.0; n], vec![0.0; n]];
                let [a, b] = &mut found;
                transform([&re, &im], n, backwards, [a, b]);
                let expected = slow(&re, &im, backwards);
                near(&found[0], &expected[0]);
                near(&found[1], &expected[1]);
            }
            let m = n / 2 + 1;
            let (mut a, mut b) = (vec![0.0; m], vec![0.0; m]);
            transform_real(&re, n, [&mut a, &mut b]);
            let expected = slow(&re, &vec![0.0; n], false);
            near(&a, &expected[0][..m]);
            near(&b, &expected[1][..m]);
            let mut back = vec![0.0; n];
            transform_to_real([&a, &b], n, &mut back);
            near(&back, &re.iter().map(|x| x * n as f64).collect::<Vec<_>>());
        }
    }
}
