"""``ti.lang.matrix_ops``: the methods of vectors and matrices as functions, for kernels and Python."""

from __future__ import annotations

import aerogel as ti
from aerogel.data.matrix import Matrix, Vector
from aerogel.ops import cast


@ti.pyfunc
def sum(mat):
    """The sum of all components."""
    return mat.sum()


@ti.pyfunc
def max(mat):
    """The largest component."""
    return mat.max()


@ti.pyfunc
def min(mat):
    """The smallest component."""
    return mat.min()


@ti.pyfunc
def any(mat):
    """Whether a component is not zero."""
    return mat.any()


@ti.pyfunc
def all(mat):
    """Whether no component is zero."""
    return mat.all()


@ti.pyfunc
def trace(mat):
    """The sum of the diagonal."""
    return mat.trace()


@ti.pyfunc
def determinant(mat):
    """The determinant."""
    return mat.determinant()


@ti.pyfunc
def inverse(mat):
    """The inverse."""
    return mat.inverse()


@ti.pyfunc
def transpose(mat):
    """The transposed matrix."""
    return mat.transpose()


@ti.pyfunc
def norm(mat, eps=0.0):
    """The root of the sum of the squares and ``eps``."""
    return mat.norm(eps)


@ti.pyfunc
def norm_inv(mat, eps=0.0):
    """One over the norm."""
    return mat.norm_inv(eps)


@ti.pyfunc
def norm_sqr(mat):
    """The sum of the squares."""
    return mat.norm_sqr()


@ti.pyfunc
def normalized(v, eps=0.0):
    """The vector of length 1."""
    return v.normalized(eps)


@ti.pyfunc
def dot(vec_x, vec_y):
    """The inner product."""
    return vec_x.dot(vec_y)


@ti.pyfunc
def cross(x, y):
    """The cross product."""
    return x.cross(y)


@ti.pyfunc
def outer_product(x, y):
    """The matrix of the products of components."""
    return x.outer_product(y)


@ti.pyfunc
def matmul(mat_x, mat_y):
    """The product of matrices, or of a matrix and a vector."""
    return mat_x @ mat_y


@ti.pyfunc
def fill(mat: ti.template(), val):
    """Sets all components."""
    mat.fill(val)


diag, rows, cols = Matrix.diag, Matrix.rows, Matrix.cols

__all__ = [
    "Matrix",
    "Vector",
    "cast",
    "cols",
    "diag",
    "fill",
    "matmul",
    "rows",
    "sum",
    "max",
    "min",
    "any",
    "all",
    "trace",
    "determinant",
    "inverse",
    "transpose",
    "norm",
    "norm_inv",
    "norm_sqr",
    "normalized",
    "dot",
    "cross",
    "outer_product",
]
