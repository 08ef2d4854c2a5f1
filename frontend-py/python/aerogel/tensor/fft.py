"""Fourier transforms along axes: a library's, on the host.

>>> import aerogel as ti
>>> ti.init(arch=ti.cpu, log_level="error")
>>> ti.tensor.fft.fft([1.0, 0.0, 0.0, 0.0]).tolist()
[(1+0j), (1+0j), (1+0j), (1+0j)]
"""

from __future__ import annotations

import math
from typing import Any

from aerogel._dtypes import dtype_of, f32
from aerogel.tensor import _arguments, _types
from aerogel.tensor._complex import ComplexTensor, joined
from aerogel.tensor._creation import arange, zeros_like
from aerogel.tensor._shapes import moveaxis, pad, roll
from aerogel.tensor._tensor import Tensor, asarray, tracing
from aerogel.tensor._unknown import at_least


def _floats(x: Tensor) -> Tensor:
    if x.dtype._aerogel_dtype in ("f32", "f64"):
        return x
    return x.astype(f32 if x.dtype.is_float else _types.default_float())


def _given(x: Any) -> Any:
    x = asarray(x)
    return x if isinstance(x, ComplexTensor) else _floats(x)


def _real(x: Any, what: str) -> Tensor:
    x = asarray(x)
    if isinstance(x, ComplexTensor):
        raise TypeError(f"`{what}` takes real numbers, not `{x.dtype}`")
    return _floats(x)


def _sized(x: Tensor, n: Any) -> Tensor:
    """The first ``n`` elements along the last axis, zeros behind them if there are fewer."""
    if n is None:
        return x
    have = x.shape[-1]
    if not isinstance(have, int) or not isinstance(n, int):
        raise ValueError("in a program, transform a slice of the needed length: `x[..., :n]`")
    if n < have:
        return x[..., :n]
    return pad(x, [(0, 0)] * (x.ndim - 1) + [(0, n - have)]) if n > have else x


def _length(n: Any, what: str) -> Any:
    """How many numbers are transformed: one at least, which a program may know only when it runs."""
    if isinstance(n, Tensor) and tracing.program is not None:
        at_least(n, 1, f"`{what}` of {{}} elements")
        return n
    (n,) = _types.whole_numbers([n], what)
    if n < 1:
        raise ValueError(f"`{what}` of {n} elements")
    return n


def _scale(n: Any, norm: str, backwards: bool) -> Any:
    """What a transform of so many numbers is multiplied by."""
    if norm not in ("backward", "ortho", "forward"):
        raise ValueError(f"the norm is 'backward', 'ortho' or 'forward', not {norm!r}")
    if norm != "ortho" and (norm == "backward") != backwards:
        return 1.0
    if isinstance(n, Tensor):
        return 1.0 / n.astype(_types.default_float()) ** (0.5 if norm == "ortho" else 1)
    return 1 / math.sqrt(n) if norm == "ortho" else 1 / n


def _extent(n: Any) -> Any:
    return n if isinstance(n, int) else tracing.program.extents([n])[0]


def _scaled(z: Any, by: float) -> Any:
    return z if isinstance(by, float) and by == 1 else z * by


def _complex_to_complex(x: Any, n: int | None, axis: int, norm: str, backwards: bool, what: str) -> ComplexTensor:
    x = _given(x)
    axis = _types.axis(axis, x.ndim, what)
    size, n = n, _length(x.shape[axis] if n is None else n, what)
    re, im = (x.real, x.imag) if isinstance(x, ComplexTensor) else (x, zeros_like(x))
    re, im = (_sized(moveaxis(p, axis, -1), size) for p in (re, im))
    planes = re._native.transform("fft_back" if backwards else "fft", [im._native], _extent(n))
    out = _scaled(ComplexTensor(*map(Tensor, planes)), _scale(n, norm, backwards))
    return ComplexTensor(*(moveaxis(p, -1, axis) for p in (out.real, out.imag)))


def fft(x: Any, /, n: int | None = None, axis: int = -1, norm: str = "backward") -> ComplexTensor:
    """The Fourier transform along an axis.

    Args:
        x: The numbers.
        n: How many of them along the axis: the first, or with zeros behind.
        axis: The axis.
        norm: Which direction is divided by ``n``: ``backward``, ``forward``, or both by its root (``ortho``).

    Raises:
        ValueError: Of no numbers; where only the run of a program knows how many there are, when it runs.
    """
    return _complex_to_complex(x, n, axis, norm, False, "fft")


def ifft(x: Any, /, n: int | None = None, axis: int = -1, norm: str = "backward") -> ComplexTensor:
    """The inverse of ``fft``."""
    return _complex_to_complex(x, n, axis, norm, True, "ifft")


def _from_real(x: Any, n: int | None, axis: int, norm: str, what: str) -> ComplexTensor:
    x = _real(x, what)
    axis = _types.axis(axis, x.ndim, what)
    size, n = n, _length(x.shape[axis] if n is None else n, what)
    planes = _sized(moveaxis(x, axis, -1), size)._native.transform("fft_of_real", [], _extent(n))
    out = _scaled(ComplexTensor(*map(Tensor, planes)), _scale(n, norm, False))
    return ComplexTensor(*(moveaxis(p, -1, axis) for p in (out.real, out.imag)))


def rfft(x: Any, /, n: int | None = None, axis: int = -1, norm: str = "backward") -> ComplexTensor:
    """The Fourier transform of real input: the first ``n // 2 + 1`` frequencies; the others are their conjugates."""
    return _from_real(x, n, axis, norm, "rfft")


def _to_real(x: Any, n: int | None, axis: int, what: str) -> tuple[Tensor, Any, int]:
    x = _given(x)
    axis = _types.axis(axis, x.ndim, what)
    size, n = n, _length(2 * (x.shape[axis] - 1) if n is None else n, what)
    re, im = (x.real, x.imag) if isinstance(x, ComplexTensor) else (x, zeros_like(x))
    half = None if size is None else size // 2 + 1
    re, im = (_sized(moveaxis(p, axis, -1), half) for p in (re, im))
    (out,) = re._native.transform("fft_to_real", [im._native], _extent(n))
    return Tensor(out), n, axis


def irfft(x: Any, /, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of ``rfft``: ``n`` real numbers, an even count unless it is named."""
    out, n, axis = _to_real(x, n, axis, "irfft")
    return moveaxis(_scaled(out, _scale(n, norm, True)), -1, axis)


def hfft(x: Any, /, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The transform of numbers of which the second half is the conjugate of the first: ``n`` real numbers."""
    out, n, axis = _to_real(asarray(x).conj(), n, axis, "hfft")
    return moveaxis(_scaled(out, _scale(n, norm, False)), -1, axis)


def ihfft(x: Any, /, n: int | None = None, axis: int = -1, norm: str = "backward") -> ComplexTensor:
    """The inverse of ``hfft``."""
    opposite = {"backward": "forward", "forward": "backward"}.get(norm, norm)
    return _from_real(x, n, axis, opposite, "ihfft").conj()


def _axes(x: Any, s: Any, axes: Any, what: str) -> list[tuple[int, int | None]]:
    rank = asarray(x).ndim
    if axes is None:
        axes = range(rank) if s is None else range(rank - len(s), rank)
    axes = [_types.axis(a, rank, what) for a in _types.several(axes, what, "axes")]
    if len(set(axes)) != len(axes):
        raise ValueError(f"`{what}`: an axis is named twice in {axes}")
    if not axes and what.endswith(("rfftn", "rfft2")):
        raise ValueError(f"`{what}` takes at least one axis")
    sizes = [None] * len(axes) if s is None else _types.several(s, what, "s")
    if len(sizes) != len(axes):
        raise ValueError(f"`{what}`: {len(sizes)} lengths for {len(axes)} axes")
    return list(zip(axes, sizes))


def fftn(x: Any, /, s: Any = None, axes: Any = None, norm: str = "backward") -> ComplexTensor:
    """The Fourier transform along several axes, or all."""
    out: Any = _given(x)
    for axis, n in reversed(_axes(x, s, axes, "fftn")):
        out = fft(out, n=n, axis=axis, norm=norm)
    return out if isinstance(out, ComplexTensor) else joined(out, zeros_like(out))


def ifftn(x: Any, /, s: Any = None, axes: Any = None, norm: str = "backward") -> ComplexTensor:
    """The inverse of ``fftn``."""
    out: Any = _given(x)
    for axis, n in reversed(_axes(x, s, axes, "ifftn")):
        out = ifft(out, n=n, axis=axis, norm=norm)
    return out if isinstance(out, ComplexTensor) else joined(out, zeros_like(out))


def rfftn(x: Any, /, s: Any = None, axes: Any = None, norm: str = "backward") -> ComplexTensor:
    """The transform of real numbers along several axes: the first half along the last of them."""
    *others, (axis, n) = _axes(x, s, axes, "rfftn")
    out = rfft(x, n=n, axis=axis, norm=norm)
    for axis, n in reversed(others):
        out = fft(out, n=n, axis=axis, norm=norm)
    return out


def irfftn(x: Any, /, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """The inverse of ``rfftn``."""
    *others, (last, n_last) = _axes(x, s, axes, "irfftn")
    out: Any = _given(x)
    for axis, n in others:
        out = ifft(out, n=n, axis=axis, norm=norm)
    return irfft(out, n=n_last, axis=last, norm=norm)


def fft2(x: Any, /, s: Any = None, axes: Any = (-2, -1), norm: str = "backward") -> ComplexTensor:
    """The Fourier transform along the last two axes."""
    return fftn(x, s=s, axes=axes, norm=norm)


def ifft2(x: Any, /, s: Any = None, axes: Any = (-2, -1), norm: str = "backward") -> ComplexTensor:
    """The inverse of ``fft2``."""
    return ifftn(x, s=s, axes=axes, norm=norm)


def rfft2(x: Any, /, s: Any = None, axes: Any = (-2, -1), norm: str = "backward") -> ComplexTensor:
    """The transform of real numbers along the last two axes."""
    return rfftn(x, s=s, axes=axes, norm=norm)


def irfft2(x: Any, /, s: Any = None, axes: Any = (-2, -1), norm: str = "backward") -> Tensor:
    """The inverse of ``rfft2``."""
    return irfftn(x, s=s, axes=axes, norm=norm)


def fftfreq(n: Any, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequency of each element of a transform of ``n`` samples with spacing ``d``."""
    n = _length(n, "fftfreq")
    k = arange(n, device=device)
    k = roll(k - n // 2, -(n // 2))
    return _frequencies(k, n, d, dtype)


def rfftfreq(n: Any, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequency of each of the ``n // 2 + 1`` transforms of ``n`` real numbers that are ``d`` apart."""
    n = _length(n, "rfftfreq")
    return _frequencies(arange(n // 2 + 1, device=device), n, d, dtype)


def _frequencies(k: Tensor, n: Any, d: float, dtype: Any) -> Tensor:
    kind = dtype_of(dtype) if dtype is not None else _types.default_float()
    return (k.astype("f64") / ((n.astype("f64") if isinstance(n, Tensor) else n) * d)).astype(kind)


def _shifted(x: Any, axes: Any, sign: int, what: str) -> Any:
    x = asarray(x)
    if axes is None:
        axes = range(x.ndim)
    given = [axes] if hasattr(axes, "__index__") else _types.several(axes, what, "axes")
    axes = [_types.axis(a, x.ndim, what) for a in given]
    # Towards the middle, and back.
    by = [x.shape[a] // 2 if sign > 0 else -(x.shape[a] // 2) for a in axes]
    return roll(x, by, axes) if axes else x


def fftshift(x: Any, /, *, axes: Any = None) -> Any:
    """The transform with frequency 0 moved to the middle."""
    return _shifted(x, axes, 1, "fftshift")


def ifftshift(x: Any, /, *, axes: Any = None) -> Any:
    """The inverse of ``fftshift``."""
    return _shifted(x, axes, -1, "ifftshift")


__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

_arguments.guard(globals())
