"""``ti.math``: functions on numbers and vectors in the manner of GLSL, complex numbers as vectors of two.

>>> import aerogel as ti
>>> ti.math.vec3(1, 2, 3).xy
[1. 2.]
"""

from __future__ import annotations

from math import e, inf, nan, pi
from typing import TYPE_CHECKING

import aerogel as ti
from aerogel.ops import (
    _or_nan,
    _unary,
    abs,
    acos,
    asin,
    atan2,
    ceil,
    clz,
    cos,
    exp,
    floor,
    log,
    max,
    min,
    popcnt,
    pow,
    round,
    sin,
    sqrt,
    tan,
    tanh,
)
from aerogel.types import matrix, vector

# Programs import from modules of Taichi's package of this name.
__path__: list[str] = []

if TYPE_CHECKING:
    from aerogel._annotations import (
        ivec2,
        ivec3,
        ivec4,
        mat2,
        mat3,
        mat4,
        uvec2,
        uvec3,
        uvec4,
        vec2,
        vec3,
        vec4,
    )
else:
    vec2, vec3, vec4 = vector(2, float), vector(3, float), vector(4, float)
    ivec2, ivec3, ivec4 = vector(2, int), vector(3, int), vector(4, int)
    uvec2, uvec3, uvec4 = vector(2, "unsigned"), vector(3, "unsigned"), vector(4, "unsigned")
    mat2, mat3, mat4 = matrix(2, 2, float), matrix(3, 3, float), matrix(4, 4, float)


def _log2(x: float) -> float:
    import math

    return -inf if x == 0 else _or_nan(math.log2)(x)


log2 = _unary("log2", "The logarithm to base 2.", _log2)
sign = _unary("math.sign", "-1, 0 or 1.", lambda x: (x > 0) - (x < 0))


@ti.pyfunc
def mix(x, y, a):
    """``x`` for ``a = 0``, ``y`` for ``a = 1``, and straight between."""
    return x * (1.0 - a) + y * a


@ti.pyfunc
def clamp(x, xmin, xmax):
    """``x``, or the bound that it is beyond."""
    return ti.min(xmax, ti.max(xmin, x))


@ti.pyfunc
def step(edge, x):
    """0 where ``x`` is below ``edge``, 1 elsewhere."""
    return ti.cast(x >= edge, float)


@ti.pyfunc
def fract(x):
    """The fractional part of ``x``: ``x - floor(x)``."""
    return x - ti.floor(x)


@ti.pyfunc
def smoothstep(edge0, edge1, x):
    """0 below ``edge0``, 1 above ``edge1``, and a smooth cubic between."""
    t = clamp((x - edge0) / (edge1 - edge0), 0.0, 1.0)
    return t * t * (3.0 - 2.0 * t)


@ti.pyfunc
def mod(x, y):
    """``x % y``: the remainder with the sign of ``y``, exact for floats of one sign."""
    return x % y


@ti.pyfunc
def degrees(x):
    """An angle in radians as degrees."""
    return x * (180.0 / pi)


@ti.pyfunc
def radians(x):
    """An angle in degrees as radians."""
    return x * (pi / 180.0)


@ti.pyfunc
def dot(x, y):
    """The inner product of two vectors."""
    return x.dot(y)


@ti.pyfunc
def cross(x, y):
    """The cross product of two vectors: a vector in space, a number in the plane."""
    return x.cross(y)


@ti.pyfunc
def length(x):
    """The Euclidean length of a vector."""
    return x.norm()


@ti.pyfunc
def distance(x, y):
    """The Euclidean distance of two points."""
    return (x - y).norm()


@ti.pyfunc
def normalize(v):
    """A vector scaled to length 1."""
    return v / v.norm()


@ti.pyfunc
def reflect(x, n):
    """The direction ``x`` mirrored at a surface with the unit normal ``n``."""
    return x - 2.0 * x.dot(n) * n


@ti.pyfunc
def refract(x, n, eta):
    """The direction ``x`` bent at a surface with the unit normal ``n``; zero for total reflection."""
    along = x.dot(n)
    k = 1.0 - eta * eta * (1.0 - along * along)
    result = 0.0 * x
    if k >= 0.0:
        result = eta * x - (eta * along + ti.sqrt(k)) * n
    return result


@ti.pyfunc
def determinant(m):
    """The determinant of a square matrix."""
    return m.determinant()


@ti.pyfunc
def inverse(mat):
    """The inverse of a square matrix."""
    return mat.inverse()


@ti.pyfunc
def eye(n: ti.template()):
    """The identity matrix with ``n`` rows."""
    return ti.Matrix.identity(float, n)


@ti.pyfunc
def isnan(x):
    """Whether ``x`` is not a number, element by element."""
    return x != x


@ti.pyfunc
def isinf(x):
    """Whether ``x`` is infinite, element by element."""
    return ti.abs(x) == inf


@ti.pyfunc
def translate(dx, dy, dz):
    """The 4x4 matrix of a translation."""
    return mat4(1, 0, 0, dx, 0, 1, 0, dy, 0, 0, 1, dz, 0, 0, 0, 1)


@ti.pyfunc
def scale(sx, sy, sz):
    """The 4x4 matrix of a scaling along the axes."""
    return mat4(sx, 0, 0, 0, 0, sy, 0, 0, 0, 0, sz, 0, 0, 0, 0, 1)


@ti.pyfunc
def ffs(x):
    """One more than the number of zero bits below the lowest bit that is set; 0 if none is."""
    return ti.select(x == 0, 0, ti.popcnt((x & -x) - 1) + 1)


@ti.pyfunc
def rotation2d(ang):
    """The 2x2 matrix of a rotation."""
    c, s = ti.cos(ang), ti.sin(ang)
    return mat2(c, -s, s, c)


@ti.pyfunc
def rot_by_axis(axis, ang):
    """The 4x4 matrix of a rotation about an axis, for row vectors: Rodrigues' formula, transposed."""
    c, s = ti.cos(ang), ti.sin(ang)
    a = axis / axis.norm()
    t = (1.0 - c) * a
    return mat4(
        c + t[0] * a[0],
        t[0] * a[1] + s * a[2],
        t[0] * a[2] - s * a[1],
        0,
        t[1] * a[0] - s * a[2],
        c + t[1] * a[1],
        t[1] * a[2] + s * a[0],
        0,
        t[2] * a[0] + s * a[1],
        t[2] * a[1] - s * a[0],
        c + t[2] * a[2],
        0,
        0,
        0,
        0,
        1,
    )


@ti.pyfunc
def rot_yaw_pitch_roll(yaw, pitch, roll):
    """The 4x4 matrix of a rotation by Euler angles about the axes y, x and z, for row vectors."""
    cy, sy = ti.cos(yaw), ti.sin(yaw)
    cp, sp = ti.cos(pitch), ti.sin(pitch)
    cr, sr = ti.cos(roll), ti.sin(roll)
    return mat4(
        cy * cr + sy * sp * sr,
        sr * cp,
        cy * sp * sr - sy * cr,
        0,
        sy * sp * cr - cy * sr,
        cr * cp,
        sr * sy + cr * cy * sp,
        0,
        sy * cp,
        -sp,
        cy * cp,
        0,
        0,
        0,
        0,
        1,
    )


@ti.pyfunc
def rotation3d(ang_x, ang_y, ang_z):
    """The 4x4 matrix of a rotation by the angles ``ang_z`` (yaw), ``ang_x`` (pitch) and ``ang_y`` (roll)."""
    return rot_yaw_pitch_roll(ang_z, ang_x, ang_y)


@ti.pyfunc
def vdir(ang):
    """The unit vector in a direction of the plane."""
    return vec2(ti.cos(ang), ti.sin(ang))


@ti.pyfunc
def cmul(z1, z2):
    """The product of two complex numbers."""
    return vec2(z1[0] * z2[0] - z1[1] * z2[1], z1[0] * z2[1] + z1[1] * z2[0])


@ti.pyfunc
def cconj(z):
    """The conjugate of a complex number."""
    return vec2(z[0], -z[1])


@ti.pyfunc
def cdiv(z1, z2):
    """The quotient of two complex numbers."""
    d = z2[0] * z2[0] + z2[1] * z2[1]
    return vec2((z1[0] * z2[0] + z1[1] * z2[1]) / d, (z1[1] * z2[0] - z1[0] * z2[1]) / d)


@ti.pyfunc
def cinv(z):
    """One over a complex number."""
    return cconj(z) / z.dot(z)


@ti.pyfunc
def csqrt(z):
    """The square root of a complex number with a real part that is not negative."""
    r = ti.sqrt(z.norm())
    a = 0.5 * ti.atan2(z[1], z[0])
    return r * vec2(ti.cos(a), ti.sin(a))


@ti.pyfunc
def cpow(z, n):
    """A complex number to the power of a real one; zero stays zero."""
    size = z.norm()
    result = 0.0 * z
    if size > 0.0:
        a = n * ti.atan2(z[1], z[0])
        result = ti.pow(size, n) * vec2(ti.cos(a), ti.sin(a))
    return result


@ti.pyfunc
def cexp(z):
    """e to the power of a complex number."""
    return ti.exp(z[0]) * vec2(ti.cos(z[1]), ti.sin(z[1]))


@ti.pyfunc
def clog(z):
    """The principal logarithm of a complex number."""
    return vec2(ti.log(z.norm()), ti.atan2(z[1], z[0]))


__all__ = [
    "abs",
    "acos",
    "asin",
    "atan2",
    "cconj",
    "cdiv",
    "ceil",
    "cexp",
    "cinv",
    "clamp",
    "clog",
    "clz",
    "cmul",
    "cos",
    "cpow",
    "cross",
    "csqrt",
    "degrees",
    "determinant",
    "distance",
    "dot",
    "e",
    "exp",
    "eye",
    "ffs",
    "floor",
    "fract",
    "inf",
    "inverse",
    "isinf",
    "isnan",
    "ivec2",
    "ivec3",
    "ivec4",
    "length",
    "log",
    "log2",
    "mat2",
    "mat3",
    "mat4",
    "max",
    "min",
    "mix",
    "mod",
    "nan",
    "normalize",
    "pi",
    "popcnt",
    "pow",
    "radians",
    "reflect",
    "refract",
    "rot_by_axis",
    "rot_yaw_pitch_roll",
    "rotation2d",
    "rotation3d",
    "round",
    "scale",
    "sign",
    "sin",
    "smoothstep",
    "sqrt",
    "step",
    "tan",
    "tanh",
    "translate",
    "uvec2",
    "uvec3",
    "uvec4",
    "vdir",
    "vec2",
    "vec3",
    "vec4",
]
