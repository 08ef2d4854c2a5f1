"""``ti.algorithms``: sorting, sums of all before, reductions, selection and histograms, in parallel."""

from aerogel.algorithms._reduce import histogram, reduce_add, reduce_max, reduce_min
from aerogel.algorithms._scan import PrefixSumExecutor, select
from aerogel.algorithms._sort import argsort, parallel_sort

__all__ = [
    "PrefixSumExecutor",
    "argsort",
    "histogram",
    "parallel_sort",
    "reduce_add",
    "reduce_max",
    "reduce_min",
    "select",
]
