//! Matrices whose elements are so large or small that their squares are no numbers: as LAPACK does, they are decomposed
//! after a multiplication by a power of two, and what is found is multiplied by its inverse.

use std::borrow::Cow;

use faer::traits::ComplexField;
use faer::traits::ext::ComplexFieldExt;

use crate::Number;

/// The matrix by a power of two, if the squares of its elements need it, and by what its singular values and eigenvalues
/// are to be multiplied then. Its elements are finite.
pub(crate) fn in_range<E: ComplexField<Real: Number> + Copy>(a: &[E]) -> (Cow<'_, [E]>, E::Real) {
    let size = |x: E::Real| Into::<f64>::into(x).abs();
    let largest = a.iter().map(|x| size(x.real()).max(size(x.imag())));
    let largest = largest.fold(0.0, f64::max);
    let exponent = largest.log2().floor();
    // From half of the exponents of a type on, squares are too large or too small; sums of many need some more. The inverse
    // of a power of two has to be a number, too.
    let (near, most) = match size_of::<E::Real>() {
        4 => (30.0, 120.0),
        _ => (400.0, 1000.0),
    };
    if largest == 0.0 || exponent.abs() <= near {
        return (Cow::Borrowed(a), E::Real::of(1.0));
    }
    let exponent = exponent.clamp(-most, most);
    let by = E::Real::of((-exponent).exp2());
    let scaled = a.iter().map(|x| x.mul_real(by)).collect();
    (Cow::Owned(scaled), E::Real::of(exponent.exp2()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decompose::Complex;

    #[test]
    fn only_what_needs_it() {
        let near = [1.0_f64, -3e100];
        assert!(matches!(in_range(&near), (Cow::Borrowed(_), by) if by == 1.0));
        let (scaled, by) = in_range(&[0.0_f64, -3e200]);
        assert_eq!(scaled[1] * by, -3e200);
        assert!((1.0..2.0).contains(&scaled[1].abs()));
    }

    #[test]
    fn the_smallest_and_the_largest() {
        for x in [f32::MAX, f32::MIN_POSITIVE, f32::from_bits(1)] {
            let a = [Complex::new(0.0, x)];
            let (scaled, by) = in_range(&a);
            assert_eq!(scaled[0].im * by, x);
            assert!(scaled[0].im > 1e-10 && scaled[0].im < 1e10);
        }
        for x in [f64::MAX, f64::MIN_POSITIVE, 5e-324] {
            let a = [x];
            let (scaled, by) = in_range(&a);
            assert_eq!(scaled[0] * by, x);
            assert!(scaled[0] > 1e-30 && scaled[0] < 1e10);
        }
    }
}
