"""The interface of `fl::Tensor`: its functions and tensors, over those of `aerogel.tensor`.

Axes are in the order in which they are written, and elements lie row by row.

>>> from aerogel import fl
>>> x = fl.arange(0, 6, 1)
>>> fl.sum(fl.reshape(x, fl.Shape([2, 3])), [1])
tensor([ 3, 12], dtype=i32)
"""

from __future__ import annotations

from aerogel.fl._functions import *  # noqa: F403
from aerogel.fl._functions import __all__ as _functions
from aerogel.fl._index import Index, Shape, end, range, span
from aerogel.fl._memory import (
    getMemMgrInfo,
    setMemMgrFlushInterval,
    setMemMgrLoggingEnabled,
    setMemMgrLogStream,
)
from aerogel.fl._tensor import Location, Stream, Tensor

__all__ = [
    "Index",
    "Location",
    "Shape",
    "Stream",
    "Tensor",
    "end",
    "getMemMgrInfo",
    "range",
    "setMemMgrFlushInterval",
    "setMemMgrLogStream",
    "setMemMgrLoggingEnabled",
    "span",
    *_functions,
]
