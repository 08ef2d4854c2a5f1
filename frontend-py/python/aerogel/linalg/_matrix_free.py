"""Iterative solvers for matrices that are given as a function of fields."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import aerogel as ti
from aerogel.errors import AerogelRuntimeError, AerogelTypeError


class LinearOperator:
    """A linear map given by a kernel.

    Args:
        matvec_kernel: A kernel ``matvec(x, Ax)`` of two templates that sets the field ``Ax`` to the map of the field
            ``x``.
    """

    def __init__(self, matvec_kernel: Callable[[Any, Any], None]) -> None:
        self._matvec = matvec_kernel

    def matvec(self, x: Any, Ax: Any) -> None:
        """Applies the map.

        Raises:
            AerogelRuntimeError: If the shapes differ.
        """
        if x.shape != Ax.shape:
            raise AerogelRuntimeError(f"Dimension mismatch x.shape{x.shape} != Ax.shape{Ax.shape}.")
        self._matvec(x, Ax)


@ti.kernel
def _set(x: ti.template(), value: float):  # type: ignore[valid-type]
    for I in ti.grouped(x):
        x[I] = value


@ti.kernel
def _copy(x: ti.template(), y: ti.template()):  # type: ignore[valid-type]
    for I in ti.grouped(x):
        y[I] = x[I]


@ti.kernel
def _dot(x: ti.template(), y: ti.template()) -> ti.f64:  # type: ignore[valid-type]
    total = ti.cast(0.0, ti.f64)
    for I in ti.grouped(x):
        total += ti.cast(x[I], ti.f64) * y[I]
    return total


@ti.kernel
def _add(out: ti.template(), x: ti.template(), a: ti.f64, y: ti.template()):  # type: ignore[valid-type]
    """``out = x + a y``."""
    for I in ti.grouped(out):
        out[I] = x[I] + ti.cast(a, out.dtype) * y[I]


@ti.kernel
def _direction(p: ti.template(), r: ti.template(), beta: ti.f64, omega: ti.f64, v: ti.template()):  # type: ignore[valid-type]
    """``p = r + beta (p - omega v)``."""
    for I in ti.grouped(p):
        p[I] = r[I] + ti.cast(beta, p.dtype) * (p[I] - ti.cast(omega, p.dtype) * v[I])


def _check(name: str, A: Any, b: Any, x: Any) -> None:
    if not callable(getattr(A, "matvec", None)):
        made = ": make the kernel into one, ti.linalg.LinearOperator(kernel)" if callable(A) else ""
        raise AerogelTypeError(f"{name} takes a ti.linalg.LinearOperator, not {type(A).__name__}{made}")
    if b.dtype != x.dtype:
        raise AerogelTypeError(f"Dtype mismatch b.dtype({b.dtype}) != x.dtype({x.dtype}).")
    if b.dtype not in (ti.f32, ti.f64):
        raise AerogelTypeError(f"Not supported dtype: {b.dtype}")
    if b.shape != x.shape:
        raise AerogelRuntimeError(f"Dimension mismatch b.shape{b.shape} != x.shape{x.shape}.")
    offsets = [tuple(field._offset or [0] * len(field.shape)) for field in (b, x)]
    if offsets[0] != offsets[1]:
        raise AerogelRuntimeError(
            f"{name} needs fields with the same indices; b begins at {offsets[0]}, x at {offsets[1]}"
        )
    if not 1 <= len(b.shape) <= 3:
        raise AerogelRuntimeError(f"{name} only support 1D, 2D, 3D inputs; your inputs is {len(b.shape)}-D.")


class _Fields:
    """Fields of the shape of another one, gone at the end of the ``with``."""

    def __init__(self, x: Any, n: int) -> None:
        builder = ti.FieldsBuilder()
        self.fields = [ti.field(x.dtype) for _ in range(n)]
        axes = (ti.i, ti.ij, ti.ijk)[len(x.shape) - 1]
        for field in self.fields:
            builder.dense(axes, x.shape).place(field, offset=x._offset or None)
        self.tree = builder.finalize()

    def __enter__(self) -> list[Any]:
        return self.fields

    def __exit__(self, *_: object) -> None:
        self.tree.destroy()


def MatrixFreeCG(A: LinearOperator, b: Any, x: Any, tol: float = 1e-6, maxiter: int = 5000, quiet: bool = True) -> bool:
    """Solves ``A x = b`` by conjugate gradients, for a symmetric positive definite map.

    Hestenes and Stiefel, Methods of conjugate gradients for solving linear systems (1952).

    Args:
        A: The map.
        b: The right-hand side: a field of f32 or f64 with one to three axes.
        x: The field that takes the solution; its previous values do not matter.
        tol: The length of the residual at which to stop.
        maxiter: How many steps are done at most.
        quiet: Whether nothing is printed.

    Returns:
        Whether the residual became as small as requested.

    Raises:
        AerogelTypeError: If ``A`` is no LinearOperator, or the element types differ or are no floats.
        AerogelRuntimeError: If the shapes or offsets differ, or there are more than three axes.
    """
    _check("MatrixFreeCG", A, b, x)
    say = _silent if quiet else print
    with _Fields(b, 3) as (r, p, Ap):
        _set(x, 0.0)
        _copy(b, r)
        _copy(b, p)
        rr = _dot(r, r)
        say(f">>> Initial residual = {sqrt(rr):e}")
        for step in range(maxiter):
            if sqrt(rr) < tol:
                say(">>> Conjugate Gradient method converged.")
                say(f">>> #iterations {step}")
                return True
            A.matvec(p, Ap)
            pAp = _dot(p, Ap)
            if pAp == 0:
                break
            alpha = rr / pAp
            _add(x, x, alpha, p)
            _add(r, r, -alpha, Ap)
            before, rr = rr, _dot(r, r)
            say(f">>> Iter = {step + 1:4}, Residual = {sqrt(rr):e}")
            _add(p, r, rr / before, p)
        converged = sqrt(rr) < tol
        if not converged:
            say(f">>> Conjugate Gradient method failed to converge in {maxiter} iterations: Residual = {sqrt(rr):e}")
        return converged


def MatrixFreeBICGSTAB(
    A: LinearOperator, b: Any, x: Any, tol: float = 1e-6, maxiter: int = 5000, quiet: bool = True
) -> bool:
    """Solves ``A x = b`` by stabilised biconjugate gradients, for any regular map.

    van der Vorst, Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG (1992). Arguments, result and errors are
    those of :func:`MatrixFreeCG`.
    """
    _check("MatrixFreeBICGSTAB", A, b, x)
    say = _silent if quiet else print
    with _Fields(b, 6) as (r, shadow, p, v, s, t):
        _set(x, 0.0)
        _copy(b, r)
        _copy(b, shadow)
        rho = alpha = omega = 1.0
        rr = _dot(r, r)
        say(f">>> Initial residual = {sqrt(rr):e}")
        for step in range(maxiter):
            if sqrt(rr) < tol:
                say(f">>> BICGSTAB method converged at #iterations {step}")
                return True
            before, rho = rho, _dot(r, shadow)
            if rho == 0 or omega == 0:
                say(">>> BICGSTAB failed because r@r_tld = 0.")
                return False
            _direction(p, r, (rho / before) * (alpha / omega), omega, v)
            A.matvec(p, v)
            along = _dot(shadow, v)
            if along == 0:
                break
            alpha = rho / along
            _add(s, r, -alpha, v)
            A.matvec(s, t)
            tt = _dot(t, t)
            omega = _dot(t, s) / tt if tt > 0 else 0.0
            _add(x, x, alpha, p)
            _add(x, x, omega, s)
            _add(r, s, -omega, t)
            rr = _dot(r, r)
            say(f">>> Iter = {step + 1:4}, Residual = {sqrt(rr):e}")
        converged = sqrt(rr) < tol
        if not converged:
            say(f">>> BICGSTAB failed to converge in {maxiter} iterations: Residual = {sqrt(rr):e}")
        return converged


def _silent(_: str) -> None:
    pass
