"""NumPy's names that the Array API standard does not have."""

from __future__ import annotations

from aerogel.tensor import cumprod, cumsum, identity, interp
from aerogel.tensor._calculus import gradient, trapezoid, unwrap
from aerogel.tensor._complex import conj as conjugate
from aerogel.tensor._complex_arithmetic import angle
from aerogel.tensor._elementwise import allclose, cbrt, exp2, fmod, isclose, ldexp
from aerogel.tensor._ignoring_nan import (
    nanargmax,
    nanargmin,
    nancumprod,
    nancumsum,
    nanmax,
    nanmean,
    nanmin,
    nanprod,
    nanstd,
    nansum,
    nanvar,
)
from aerogel.tensor._indices import (
    diag_indices,
    diag_indices_from,
    flatnonzero,
    indices,
    ravel_multi_index,
    select,
    tril_indices,
    tril_indices_from,
    triu_indices,
    triu_indices_from,
    unravel_index,
)
from aerogel.tensor._joining import (
    append,
    array_split,
    atleast_1d,
    atleast_2d,
    atleast_3d,
    block,
    column_stack,
    dsplit,
    dstack,
    hsplit,
    hstack,
    vsplit,
    vstack,
)
from aerogel.tensor._ordering import argpartition, lexsort, partition, unique
from aerogel.tensor._polynomials import polyadd, polyder, polyfit, polyint, polymul, polysub, polyval, vander
from aerogel.tensor._products import cross, dot
from aerogel.tensor._quantiles import median, nanmedian, nanpercentile, nanquantile, percentile, ptp, quantile
from aerogel.tensor._rearranging import (
    diag,
    diagflat,
    diagonal,
    fliplr,
    flipud,
    inner,
    kron,
    matvec,
    outer,
    ravel,
    rollaxis,
    rot90,
    swapaxes,
    trace,
    vdot,
    vecmat,
)
from aerogel.tensor._reductions import max as amax
from aerogel.tensor._reductions import min as amin
from aerogel.tensor._searching import argwhere
from aerogel.tensor._shapes import concat as concatenate
from aerogel.tensor._shapes import pad, split, transpose
from aerogel.tensor._signals import bartlett, blackman, convolve, correlate, hamming, hanning
from aerogel.tensor._special import sinc
from aerogel.tensor._spellings import (
    absolute,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    around,
    array_equal,
    array_equiv,
    bitwise_count,
    bitwise_not,
    deg2rad,
    degrees,
    divmod,
    ediff1d,
    fabs,
    fix,
    float_power,
    fmax,
    fmin,
    geomspace,
    heaviside,
    invert,
    iscomplexobj,
    isneginf,
    isposinf,
    isrealobj,
    left_shift,
    logaddexp2,
    logspace,
    mod,
    modf,
    nan_to_num,
    ndim,
    power,
    rad2deg,
    radians,
    right_shift,
    rint,
    shape,
    size,
    tri,
    true_divide,
)
from aerogel.tensor._statistics import average, bincount, corrcoef, cov, digitize, histogram, histogram_bin_edges
from aerogel.tensor._tensor import asarray as array

asanyarray = ascontiguousarray = array
euler_gamma = 0.5772156649015329

__all__ = [
    "absolute", "allclose", "amax", "amin", "angle", "append", "arccos", "arccosh", "arcsin", "arcsinh", "arctan",
    "arctan2", "arctanh", "argpartition", "argwhere", "around", "array", "array_equal", "array_equiv",
    "array_split", "asanyarray", "ascontiguousarray", "atleast_1d", "atleast_2d", "atleast_3d", "average",
    "bartlett", "bincount", "bitwise_count", "bitwise_not", "blackman", "block", "cbrt", "column_stack",
    "concatenate", "conjugate", "convolve", "corrcoef", "correlate", "cov", "cross", "cumprod", "cumsum",
    "deg2rad", "degrees", "diag", "diag_indices", "diag_indices_from", "diagflat", "diagonal", "digitize",
    "divmod", "dot", "dsplit", "dstack", "ediff1d", "euler_gamma", "exp2", "fabs", "fix", "flatnonzero", "fliplr",
    "flipud", "float_power", "fmax", "fmin", "fmod", "geomspace", "gradient", "hamming", "hanning", "heaviside",
    "histogram", "histogram_bin_edges", "hsplit", "hstack", "identity", "indices", "inner", "interp", "invert",
    "isclose", "iscomplexobj", "isneginf", "isposinf", "isrealobj", "kron", "ldexp", "left_shift", "lexsort",
    "logaddexp2", "logspace", "matvec", "median", "mod", "modf", "nan_to_num", "nanargmax", "nanargmin", "nancumprod",
    "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile", "nanprod", "nanquantile", "nanstd",
    "nansum", "nanvar", "ndim", "outer", "pad", "partition", "percentile", "polyadd", "polyder", "polyfit",
    "polyint", "polymul", "polysub", "polyval", "power", "ptp", "quantile", "rad2deg", "radians", "ravel",
    "ravel_multi_index", "right_shift", "rint", "rollaxis", "rot90", "select", "shape", "sinc", "size", "split",
    "swapaxes", "trace", "transpose", "trapezoid", "tri", "tril_indices", "tril_indices_from", "triu_indices",
    "triu_indices_from", "true_divide", "unique", "unravel_index", "unwrap", "vander", "vdot", "vecmat", "vsplit",
    "vstack",
]  # fmt: skip
