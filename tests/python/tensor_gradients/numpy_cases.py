"""Rows of functions with the names of NumPy, SciPy and `jax.nn`."""

from __future__ import annotations

from typing import Any

import numpy as np


def rows(row: Any) -> None:
    """Adds them by `row(name, arguments, function, in_jax)`."""

    def xp(name: str, arguments: str, function: Any = None, in_jax: bool = True) -> None:
        row(f"xp {name}", arguments, function or (lambda w, *x: getattr(w.xp, name)(*x)), in_jax)

    # Elements.
    for name in "fabs rint sinc around modf nan_to_num".split():
        xp(name, "r34")
    for name in "fmax fmin logaddexp2 divmod true_divide float_power copysign".split():
        xp(name, "p34 p4")
    xp("heaviside", "r34 r4")
    xp("ldexp", "r34", lambda w, x: w.xp.ldexp(x, w.asarray([-3, 0, 2, 5])) ** 2)
    xp("where select", "r34 r34", lambda w, x, y: w.xp.select([x > 1, y > 0], [x * x, y * x], x * 0.5))
    xp("unwrap", "r6", lambda w, x: w.xp.unwrap(x * 4) ** 2)
    # Reductions.
    for name in "nansum nanprod nanmean nanvar nanstd nanmax nanmin nanmedian ptp median".split():
        xp(f"{name}, axis 0", "r34", lambda w, x, name=name: getattr(w.xp, name)(x, axis=0))
        xp(f"{name}, all", "r34", lambda w, x, name=name: getattr(w.xp, name)(x))
    for name in "nansum nanprod nanmean nanvar nanstd nanmax nanmin nanmedian nancumsum nancumprod".split():
        holes = np.where(np.arange(12).reshape(3, 4) % 5 == 1, np.nan, 0)
        xp(f"{name} with NaN", "r34", lambda w, x, name=name, holes=holes: getattr(w.xp, name)(
            w.where(w.asarray(holes) == 0, x, w.asarray(holes)), axis=1))  # fmt: skip
    for q in (0.0, 0.3, 1.0):
        xp(f"quantile {q}", "r35", lambda w, x, q=q: w.xp.quantile(x, q, axis=1))
    for method in "lower midpoint nearest".split():
        xp(
            f"percentile {method}",
            "r35",
            lambda w, x, m=method: w.xp.percentile(x, w.asarray([20.0, 55.0]), axis=1, method=m),
        )
    xp("nanquantile", "r35", lambda w, x: w.xp.nanquantile(x, 0.4, axis=0))
    xp("average", "r34 p4", lambda w, x, y: w.xp.average(x, axis=1, weights=y))
    xp("cov", "r35", lambda w, x: w.xp.cov(x))
    xp("corrcoef", "r35", lambda w, x: w.xp.corrcoef(x))
    xp("bincount", "r4", lambda w, x: w.xp.bincount(w.asarray([0, 2, 2, 1]), weights=x, length=4) ** 2)
    xp("trapezoid", "r34 r4", lambda w, y, x: w.xp.trapezoid(y, x))
    xp("trapezoid, dx", "r34", lambda w, y: w.xp.trapezoid(y, dx=0.3, axis=0))
    xp("gradient", "r34", lambda w, x: list(w.xp.gradient(x)))
    xp("gradient, 1", "r6", lambda w, x: w.xp.gradient(x, 0.3))
    xp("ediff1d", "r5", lambda w, x: w.xp.ediff1d(x) ** 2)
    xp("convolve", "r6 r3")
    xp("convolve, same", "r6 r3", lambda w, x, y: w.xp.convolve(x, y, "same"))
    xp("correlate", "r6 r3", lambda w, x, y: w.xp.correlate(x, y, "full"))
    xp("polyval", "r4 r3")
    xp("polymul", "r4 r3")
    xp("polyadd", "r4 r3")
    xp("polyder", "r4")
    xp("polyint", "r4")
    xp("polyfit", "r6", lambda w, y: w.xp.polyfit(w.asarray([-2.0, -1.0, 0.1, 0.9, 2.0, 3.0]), y, 2))
    xp("vander", "r4", lambda w, x: w.xp.vander(x, 3))
    xp("partition", "r7", lambda w, x: w.xp.partition(x, 3)[3:4] ** 2)
    xp("nanargmax", "r34", lambda w, x: w.take_along_axis(x, w.expand_dims(w.xp.nanargmax(x, axis=1), axis=1), axis=1))
    # Shapes and products.
    for name in "ravel fliplr flipud rot90 diag diagflat atleast_3d".split():
        xp(name, "r33", lambda w, x, name=name: getattr(w.xp, name)(x) ** 2)
    for name in "hstack vstack dstack column_stack".split():
        xp(name, "r32 r32", lambda w, *x, name=name: getattr(w.xp, name)(x) ** 2)
    xp("block", "r22 r21 r12 r11", lambda w, a, b, c, d: w.xp.block([[a, b], [c, d]]) ** 2)
    xp("array_split", "r5", lambda w, x: [y**2 for y in w.xp.array_split(x, 3)])
    xp("swapaxes", "r234", lambda w, x: w.xp.swapaxes(x, 0, 2) ** 2)
    xp("kron", "r22 r23")
    xp("inner", "r23 r43")
    xp("vdot", "r4 r4")
    xp("matvec", "r234 r4", None)
    xp("vecmat", "r3 r34", None)
    xp(
        "interp",
        "r5 r4",
        lambda w, x, f: w.xp.interp(x, w.asarray([-1.5, -0.5, 0.3, 1.6]), f, left=0.5, right=-0.5),
        False,
    )
    xp("geomspace", "p p", lambda w, a, b: w.xp.geomspace(a, b + 1, 5, dtype=w.float64))
    xp("logspace", "r r", lambda w, a, b: w.xp.logspace(a, b, 5, dtype=w.float64))
    xp("linspace", "r r", lambda w, a, b: w.xp.linspace(a, b, 5, dtype=w.float64))
    xp("full", "r", lambda w, a: w.xp.full((3,), a, dtype=w.float64) ** 2)
    for how in "add multiply min max".split():
        row(
            f"x.at[..].{how}",
            "r44 r3",
            lambda w, x, y, how=how: getattr(x.at[w.asarray([0, 2, 3]), 1], how)(y) ** 2,
            how != "multiply",
        )
    row("x.at[..].set", "r44 r", lambda w, x, y: x.at[1:3, ::2].set(y * y) ** 2)
    row("x.at[..].get", "r44", lambda w, x: x.at[w.asarray([1, 3, 1])].get() ** 2)
    # SciPy's.
    for name in "digamma gammaln".split():
        row(f"special {name}", "p34", lambda w, x, name=name: getattr(w.special, name)(x))
        row(f"special {name} of large", "g34", lambda w, x, name=name: getattr(w.special, name)(x**4))
        row(
            f"special {name} of negative", "n34", lambda w, x, name=name: getattr(w.special, name)(x), name != "gammaln"
        )
    for name in "erfc erfcx exp10 expit log_expit log_ndtr ndtr sinc softplus exprel".split():
        there = name not in ("erfcx", "exp10", "log_expit", "softplus", "exprel", "sinc")
        row(f"special {name}", "r34", lambda w, x, name=name: getattr(w.special, name)(x), there)
        row(f"special {name} of large", "r34", lambda w, x, name=name: w.tanh(getattr(w.special, name)(x * 4)), there)
    for name in "erfinv atanh".split():
        row(f"special {name}", "u34", lambda w, x, name=name: getattr(w.special if name == "erfinv" else w, name)(x))
    for name in "logit ndtri entr erfcinv".split():
        row(
            f"special {name}", "u34", lambda w, x, name=name: getattr(w.special, name)(x * 0.5 + 0.5), name != "erfcinv"
        )
        row(
            f"special {name}, tails",
            "p34",
            lambda w, x, name=name: getattr(w.special, name)(x**4 * 1e-3 + 1e-9),
            name != "erfcinv",
        )
    for name in "xlogy xlog1py rel_entr kl_div".split():
        row(f"special {name}", "p34 p4", lambda w, x, y, name=name: getattr(w.special, name)(x, y))
    row("special logsumexp", "r34 p4", lambda w, x, b: w.special.logsumexp(x, axis=1, b=b))
    row("special logsumexp, all", "r34", lambda w, x: w.special.logsumexp(x))
    # Activations.
    for name in "relu6 gelu silu elu celu selu leaky_relu mish glu hard_tanh hard_sigmoid hard_silu soft_sign squareplus".split():
        row(f"nn {name}", "r34", lambda w, x, name=name: getattr(w.nn, name)(x * 2))
    row("nn gelu, exact", "r34", lambda w, x: w.nn.gelu(x, approximate=False))
    row("nn sparse_plus", "r34", lambda w, x: w.nn.sparse_plus(x))
    row("nn sparse_sigmoid", "r34", lambda w, x: w.nn.sparse_sigmoid(x))
    row("nn log1mexp", "p34", lambda w, x: w.nn.log1mexp(x))
    row("nn standardize", "r34", lambda w, x: w.nn.standardize(x), False)
    row("nn logmeanexp", "r34", lambda w, x: w.nn.logmeanexp(x, axis=1), False)
