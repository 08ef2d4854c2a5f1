"""Special functions of tensors, under the names of ``scipy.special``.

>>> import aerogel as ti
>>> ti.init(arch=ti.cpu, log_level="error")
>>> ti.special.logsumexp([1000.0, 1000.0])
tensor(1000.6932, dtype=f32)
"""

from __future__ import annotations

from aerogel.tensor import _arguments
from aerogel.tensor._elementwise import cbrt, erf, exp2, expm1, log1p
from aerogel.tensor._logsumexp import log_softmax, logsumexp, softmax
from aerogel.tensor._special import (
    digamma,
    entr,
    erfc,
    erfcinv,
    erfcx,
    erfinv,
    exp10,
    expit,
    exprel,
    gammaln,
    gammasgn,
    kl_div,
    log_expit,
    log_ndtr,
    logit,
    ndtr,
    ndtri,
    rel_entr,
    sinc,
    softplus,
    xlog1py,
    xlogy,
)

psi = digamma

__all__ = [
    "cbrt", "digamma", "entr", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "exp2", "exp10", "expit", "expm1",
    "exprel", "gammaln", "gammasgn", "kl_div", "log1p", "log_expit", "log_ndtr", "log_softmax", "logit",
    "logsumexp", "ndtr", "ndtri", "psi", "rel_entr", "sinc", "softmax", "softplus", "xlog1py", "xlogy",
]  # fmt: skip

_arguments.guard(globals())
