"""Tensors for the package einops, which looks for a back end of its own among the subclasses of a class."""

from __future__ import annotations

from typing import Any

from aerogel.tensor import _shapes
from aerogel.tensor._complex import ComplexTensor
from aerogel.tensor._creation import arange
from aerogel.tensor._products import einsum
from aerogel.tensor._tensor import Tensor, asarray


def offer(backends: Any) -> None:
    """Makes the back end known to ``einops._backends``, once that is imported."""

    class AerogelBackend(backends.AbstractBackend):
        """What einops does with tensors."""

        framework_name = "aerogel"

        def is_appropriate_type(self, tensor: Any) -> bool:
            return isinstance(tensor, (Tensor, ComplexTensor))

        def is_float_type(self, x: Any) -> bool:
            return x.dtype.kind in "fc"

        def from_numpy(self, x: Any) -> Any:
            return asarray(x)

        def to_numpy(self, x: Any) -> Any:
            return x.numpy()

        def arange(self, start: Any, stop: Any) -> Any:
            return arange(start, stop)

        def add_axis(self, x: Any, new_position: int) -> Any:
            return x.unsqueeze(new_position)

        def stack_on_zeroth_dimension(self, tensors: Any) -> Any:
            return _shapes.stack(tensors)

        def tile(self, x: Any, repeats: Any) -> Any:
            return _shapes.tile(x, repeats)

        def concat(self, tensors: Any, axis: int) -> Any:
            return _shapes.concat(tensors, axis=axis)

        def einsum(self, pattern: str, *x: Any) -> Any:
            return einsum(pattern, *x)

    backends.AerogelBackend = AerogelBackend
