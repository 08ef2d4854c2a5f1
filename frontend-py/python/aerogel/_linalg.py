"""Decompositions of small matrices, in the kernel language itself.

Singular values are sorted, the largest first. Of a 2x2 matrix they are not negative, and the first factor may be a
reflection; of a 3x3 matrix both factors are rotations, and the last singular value has the determinant's sign.
"""

from __future__ import annotations

import aerogel as ti


@ti.func
def _as(A, dt):
    """``A`` converted to the dtype ``dt``; without one, integers become floats."""
    if ti.static(dt is not None):
        return A.cast(dt)
    if ti.static(A.dtype in (ti.f16, ti.bf16, ti.f32, ti.f64)):
        return A
    return A * 1.0


@ti.func
def _scaled(a):
    """``a`` times a power of two, so that its largest element is about 1 and squares stay in range; and the inverse.

    That power is the same for all matrices nearby: it has no derivative.
    """
    if ti.static(a.dtype == ti.f32):
        exponent = ti.bit_cast(ti.stop_grad(ti.abs(a).max()), ti.i32) & ti.i32(0x7F800000)
        down = ti.bit_cast(ti.max(ti.i32(0x7F000000) - exponent, ti.i32(0x00400000)), ti.f32)
        return a * down, ti.bit_cast(ti.max(exponent, ti.i32(0x00400000)), ti.f32)
    if ti.static(a.dtype == ti.f64):
        wide = ti.bit_cast(ti.stop_grad(ti.abs(a).max()), ti.i64) & ti.i64(0x7FF0000000000000)
        down_wide = ti.bit_cast(ti.max(ti.i64(0x7FE0000000000000) - wide, ti.i64(0x0008000000000000)), ti.f64)
        return a * down_wide, ti.bit_cast(ti.max(wide, ti.i64(0x0008000000000000)), ti.f64)
    return a, 0 * a[0, 0] + 1


@ti.func
def _polar2(a):
    """The orthogonal matrix nearest to ``a``: ``a`` plus or minus its cofactors, scaled."""
    sign = 1.0 if a[0, 0] * a[1, 1] >= a[0, 1] * a[1, 0] else -1.0
    x = a[0, 0] + sign * a[1, 1]
    y = a[1, 0] - sign * a[0, 1]
    size = ti.sqrt(x * x + y * y)
    c = x * 0 + 1
    s = y * 0
    if size > 0:
        c = x / size
        s = y / size
    return ti.Matrix([[c, -sign * s], [s, sign * c]])


@ti.func
def _rotation_of(a, b, d):
    """Cosine and sine that make the symmetric matrix ``[[a, b], [b, d]]`` diagonal, by the smaller angle."""
    half = 0.5 * (a - d)
    # The root is zero where the squares are too small.
    root = ti.max(ti.sqrt(half * half + b * b), ti.abs(b))
    t = b * 0
    if b != 0:
        t = b / (half + root) if half > 0 else b / (half - root)
    c = 1.0 / ti.sqrt(t * t + 1.0)
    return c, -t * c


@ti.func
def _svd2(a):
    r = _polar2(a)
    p = r.transpose() @ a
    b = 0.5 * (p[0, 1] + p[1, 0])
    c, s = _rotation_of(p[0, 0], b, p[1, 1])
    s1 = c * c * p[0, 0] - 2 * c * s * b + s * s * p[1, 1]
    s2 = s * s * p[0, 0] + 2 * c * s * b + c * c * p[1, 1]
    v = ti.Matrix([[c, s], [-s, c]])
    if s1 < s2:
        s1, s2 = s2, s1
        v = ti.Matrix([[s, -c], [c, s]]) * -1.0
    return r @ v, ti.Matrix([[s1, 0 * s1], [0 * s1, s2]]), v


@ti.func
def _orthogonalize(b: ti.template(), v: ti.template(), p: ti.template(), q: ti.template()):
    """One rotation of Hestenes' method: columns ``p`` and ``q`` of ``b`` become orthogonal."""
    bp, bq = b[:, p], b[:, q]
    vp, vq = v[:, p], v[:, q]
    half = 0.5 * (bq.dot(bq) - bp.dot(bp))
    mix = bp.dot(bq)
    size = ti.abs(half) + ti.max(ti.sqrt(half * half + mix * mix), ti.abs(mix))
    t = 0 * mix
    if size > 0:
        t = mix / size
    t = -t if half < 0 else t
    c = 1.0 / ti.sqrt(1.0 + t * t)
    s = c * t
    b[:, p] = c * bp - s * bq
    b[:, q] = s * bp + c * bq
    v[:, p] = c * vp - s * vq
    v[:, q] = s * vp + c * vq


@ti.func
def _sort(b: ti.template(), v: ti.template(), p: ti.template(), q: ti.template()):
    """Puts the longer of two columns first; one changes its sign, so that rotations stay rotations."""
    bp, bq = b[:, p], b[:, q]
    if bp.dot(bp) < bq.dot(bq):
        b[:, p] = bq
        b[:, q] = -bp
        vp, vq = v[:, p], v[:, q]
        v[:, p] = vq
        v[:, q] = -vp


@ti.func
def _unit(x, fallback, least):
    """``x`` scaled to length 1, ``fallback`` if it is not longer than ``least``."""
    size = x.norm()
    result = fallback
    if size > least:
        result = x / size
    return result


@ti.func
def _across(x):
    """Some unit vector at right angles to the unit vector ``x``."""
    other = ti.Vector([0.0, -x[2], x[1]])
    if ti.abs(x[2]) < 0.9:
        other = ti.Vector([-x[1], x[0], 0.0])
    return other.normalized()


@ti.func
def _svd3(a, sweeps: ti.template(), rounding: ti.template()):
    b = a
    v = 0 * a
    for k in ti.static(range(3)):
        v[k, k] = 1
    for _ in ti.static(range(sweeps)):
        _orthogonalize(b, v, 0, 1)
        _orthogonalize(b, v, 0, 2)
        _orthogonalize(b, v, 1, 2)
    _sort(b, v, 0, 1)
    _sort(b, v, 0, 2)
    _sort(b, v, 1, 2)
    # The columns are orthogonal, but a short one only to rounding: its direction comes from the others. What is left
    # of a column that is all rounding has none.
    u0 = _unit(b[:, 0], 0 * b[:, 0] + ti.Vector([1.0, 0.0, 0.0]), 0 * a[0, 0])
    rest = b[:, 1] - u0 * u0.dot(b[:, 1])
    rest -= u0 * u0.dot(rest)
    u1 = _unit(rest, _across(u0), 8 * rounding * u0.dot(b[:, 0]))
    u2 = u0.cross(u1)
    sigma = 0 * a
    sigma[0, 0] = u0.dot(b[:, 0])
    sigma[1, 1] = u1.dot(b[:, 1])
    sigma[2, 2] = u2.dot(b[:, 2])
    u = 0 * a
    u[:, 0] = u0
    u[:, 1] = u1
    u[:, 2] = u2
    return u, sigma, v


@ti.func
def svd(A, dt=None):
    """The singular value decomposition ``A = U @ S @ V.transpose()`` of a 2x2 or 3x3 matrix.

    Returns:
        ``U``, the diagonal matrix ``S``, and ``V``.
    """
    ti.static_assert(A.n == A.m and 2 <= A.n <= 3, "svd needs a 2x2 or 3x3 matrix")
    a, size = _scaled(_as(A, dt))
    if ti.static(A.n == 2):
        u, s, v = _svd2(a)
        return u, s * size, v
    wide = ti.static(a.dtype == ti.f64)
    u3, s3, v3 = _svd3(a, ti.static(6 if wide else 4), ti.static(2.3e-16 if wide else 1.2e-7))
    return u3, s3 * size, v3


@ti.func
def polar_decompose(A, dt=None):
    """The polar decomposition ``A = U @ P`` of a 2x2 or 3x3 matrix: ``U`` orthogonal, ``P`` symmetric.

    Returns:
        ``U`` and ``P``.
    """
    ti.static_assert(A.n == A.m and 2 <= A.n <= 3, "polar_decompose needs a 2x2 or 3x3 matrix")
    a = _as(A, dt)
    if ti.static(A.n == 2):
        b, size = _scaled(a)
        r = _polar2(b)
        return r, r.transpose() @ b * size
    u, s, v = svd(a)
    return u @ v.transpose(), v @ s @ v.transpose()


@ti.func
def _sym_eig2(a):
    c, s = _rotation_of(a[0, 0], a[0, 1], a[1, 1])
    l1 = c * c * a[0, 0] - 2 * c * s * a[0, 1] + s * s * a[1, 1]
    l2 = s * s * a[0, 0] + 2 * c * s * a[0, 1] + c * c * a[1, 1]
    v = ti.Matrix([[c, s], [-s, c]])
    if l1 < l2:
        l1, l2 = l2, l1
        v = ti.Matrix([[s, -c], [c, s]])
    return ti.Vector([l1, l2]), v


@ti.func
def _diagonalize(a: ti.template(), v: ti.template(), p: ti.template(), q: ti.template()):
    """One rotation of Jacobi's method: ``a[p, q]`` becomes zero."""
    c, s = _rotation_of(a[p, p], a[p, q], a[q, q])
    for k in ti.static(range(3)):
        x, y = a[k, p], a[k, q]
        a[k, p] = c * x - s * y
        a[k, q] = s * x + c * y
    for k in ti.static(range(3)):
        x, y = a[p, k], a[q, k]
        a[p, k] = c * x - s * y
        a[q, k] = s * x + c * y
        x2, y2 = v[k, p], v[k, q]
        v[k, p] = c * x2 - s * y2
        v[k, q] = s * x2 + c * y2


@ti.func
def _ascend(a: ti.template(), v: ti.template(), p: ti.template(), q: ti.template()):
    """Puts the smaller of two eigenvalues first."""
    if a[p, p] > a[q, q]:
        low = a[q, q]
        a[q, q] = a[p, p]
        a[p, p] = low
        vp, vq = v[:, p], v[:, q]
        v[:, p] = vq
        v[:, q] = -vp


@ti.func
def _sym_eig3(A, sweeps: ti.template()):
    a = A
    v = 0 * A
    for k in ti.static(range(3)):
        v[k, k] = 1
    for _ in ti.static(range(sweeps)):
        _diagonalize(a, v, 0, 1)
        _diagonalize(a, v, 0, 2)
        _diagonalize(a, v, 1, 2)
    _ascend(a, v, 0, 1)
    _ascend(a, v, 0, 2)
    _ascend(a, v, 0, 1)
    _ascend(a, v, 1, 2)
    return ti.Vector([a[0, 0], a[1, 1], a[2, 2]]), v


@ti.func
def sym_eig(A, dt=None):
    """Eigenvalues and eigenvectors of a symmetric 2x2 or 3x3 matrix.

    Returns:
        The eigenvalues, descending for 2x2 and ascending for 3x3, and the matrix whose columns are the eigenvectors.
    """
    ti.static_assert(A.n == A.m and 2 <= A.n <= 3, "sym_eig needs a 2x2 or 3x3 matrix")
    a, size = _scaled(_as(A, dt))
    if ti.static(A.n == 2):
        values, vectors = _sym_eig2(a)
        return values * size, vectors
    values3, vectors3 = _sym_eig3(a, 6 if ti.static(a.dtype == ti.f64) else 5)
    return values3 * size, vectors3


@ti.func
def _kernel_of(a, lr, li):
    """A unit vector, as two complex numbers, that ``a - (lr + li i)`` maps to zero."""
    # Each row of the matrix gives one, at right angles to it; the longer says more. Its phase is that of the second's.
    v = ti.Vector([lr - a[1, 1], li, a[1, 0], 0 * lr])
    other = ti.Vector([a[0, 1], 0 * lr, lr - a[0, 0], li])
    if v.norm_sqr() < other.norm_sqr():
        c = v.dot(other)
        s = v[1] * other[0] - v[0] * other[1] + v[3] * other[2] - v[2] * other[3]
        phase = ti.max(ti.abs(c), ti.abs(s))
        v = other
        if phase > 0:
            c, s = c / phase, s / phase
            v = ti.Vector(
                [
                    c * other[0] - s * other[1],
                    c * other[1] + s * other[0],
                    c * other[2] - s * other[3],
                    c * other[3] + s * other[2],
                ]
            )
    size = v.norm()
    result = ti.Vector([0 * lr + 1, 0 * lr, 0 * lr, 0 * lr])
    if size > 0:
        result = v / size
    return result


@ti.func
def eig(A, dt=None):
    """Eigenvalues and eigenvectors of a 2x2 matrix.

    Returns:
        A 2x2 matrix whose rows are the eigenvalues as (real, imaginary), and a 4x2 matrix whose columns are the
        eigenvectors, each component as its real and its imaginary part.
    """
    ti.static_assert(A.n == 2 and A.m == 2, "eig needs a 2x2 matrix")
    a, size = _scaled(_as(A, dt))
    mean = 0.5 * (a[0, 0] + a[1, 1])
    half = 0.5 * (a[0, 0] - a[1, 1])
    gap = half * half + a[0, 1] * a[1, 0]
    real = ti.sqrt(ti.max(gap, 0.0))
    imaginary = ti.sqrt(ti.max(-gap, 0.0))
    v = _kernel_of(a, mean + real, imaginary)
    w = _kernel_of(a, mean - real, -imaginary)
    if real == 0 and imaginary == 0 and a[0, 1] == 0 and a[1, 0] == 0:
        w = ti.Vector([0 * mean, 0 * mean, 0 * mean + 1, 0 * mean])
    values = ti.Matrix([[mean + real, imaginary], [mean - real, -imaginary]])
    vectors = ti.Matrix([[v[0], w[0]], [v[1], w[1]], [v[2], w[2]], [v[3], w[3]]])
    return values * size, vectors


@ti.func
def _eliminate(m: ti.template(), x: ti.template(), n: ti.template()):
    """Makes ``m`` upper triangular by row operations, which ``x`` follows; the largest element is the pivot."""
    for k in ti.static(range(n)):
        for i in ti.static(range(k + 1, n)):
            if ti.abs(m[i, k]) > ti.abs(m[k, k]):
                for j in ti.static(range(k, n)):
                    m[i, j], m[k, j] = m[k, j], m[i, j]
                x[i], x[k] = x[k], x[i]
        assert m[k, k] != 0, "the matrix is singular"
        for i in ti.static(range(k + 1, n)):
            factor = m[i, k] / m[k, k]
            for j in ti.static(range(k + 1, n)):
                m[i, j] -= factor * m[k, j]
            x[i] -= factor * x[k]


@ti.func
def solve(A, b, dt=None):
    """The solution ``x`` of ``A @ x = b`` for a 2x2 or 3x3 matrix, by elimination."""
    ti.static_assert(A.n == A.m and 2 <= A.n <= 3, "solve needs a 2x2 or 3x3 matrix")
    ti.static_assert(A.n == b.n, "the matrix and the vector have different sizes")
    m = _as(A, dt)
    x = _as(b, dt)
    _eliminate(m, x, A.n)
    for i in ti.static(range(A.n - 1, -1, -1)):
        for j in ti.static(range(i + 1, A.n)):
            x[i] -= m[i, j] * x[j]
        x[i] /= m[i, i]
    return x
