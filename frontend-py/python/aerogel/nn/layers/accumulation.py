"""A sum over named axes with a parameter, in the notation of ``accum``."""

from __future__ import annotations

import math
import re
from typing import Any

from aerogel.nn import _checks, init
from aerogel.nn._module import Module
from aerogel.nn._parameter import Parameter, draw_by
from aerogel.nn.layers.linear import uniform_by
from aerogel.tensor._accum import accum
from aerogel.tensor._tensor import Tensor


def _rows(text: str) -> list[list[str]]:
    """The axes of a tensor in the order in which they lie: batch, output, input."""
    batch, bar, rest = text.rpartition("|")
    before, arrow, after = rest.partition("->")
    given, out = (before, after) if arrow else ("", before)
    return [_axes(part) for part in (batch if bar else "", out, given)]


def _axes(text: str) -> list[str]:
    """The axes of a row: words between commas, or letters."""
    text = text.strip()
    if "," in text:
        return [part.strip() for part in text.split(",") if part.strip()]
    if re.fullmatch(r"[A-Za-z]+", text):
        return list(text)
    return [text] if text else []


class Accum(Module):
    """A sum over named axes of the input and a weight, whose shape follows from the notation, as in OCANNL.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> layer = ti.nn.Accum("b|i->o => b|o", o=64)
    >>> layer(ti.tensor.ones((8, 10))).shape, layer.weight.shape
    ((8, 64), (64, 10))

    Args:
        spec: The notation of ``ti.tensor.accum``, in which the last tensor is the weight: ``"b|i; i->o => b|o"``.
            With one tensor before ``=>``, as in ``"b|i->o => b|o"``, ``b|i`` is the input and ``i->o`` the weight.
        bias: Whether a bias is added along the output axes of the result.
        dtype: The dtype of the parameters.
        sizes: The sizes of labels. Those that are axes of the input follow from the first input.

    Raises:
        ValueError: If the notation has no weight; when called, if the size of one of its axes is not known.
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(self, spec: str, *, bias: bool = False, dtype: Any = None, **sizes: int) -> None:
        if not isinstance(spec, str) or "=>" not in spec:
            raise ValueError(f'`Accum` takes a string such as "b|i->o => b|o", not {spec!r}')
        given, result = (part.strip() for part in spec.rsplit("=>", 1))
        tensors = [part.strip() for part in given.split(";")]
        if len(tensors) == 1:
            batch, bar, rest = given.rpartition("|")
            before, arrow, _ = rest.partition("->")
            if not arrow:
                raise ValueError(f"`Accum`: {spec!r} has no weight: write `input; weight => result`")
            tensors = [f"{batch}{bar}{before}", rest]
        *self._inputs, own = tensors
        self.spec = f"{'; '.join(tensors)} => {result}"
        self.sizes = dict(sizes)
        rows = _rows(own)
        self._labels = [label for row in rows for label in row]
        for label in self._labels:
            if not re.fullmatch(r"[A-Za-z_]\w*", label):
                raise ValueError(f"`Accum`: the axes of the weight must be labels, not {label!r} in {own!r}")
        shape = tuple(sizes.get(label, -1) for label in self._labels)
        #: How many axes of the weight are outputs; the others are summed over.
        self._n_out = len(rows[0]) + len(rows[1])
        self.weight = Parameter(shape=shape, init=self._draw(shape), dtype=dtype)
        self._bias_labels = _rows(result)[1]
        if bias:
            shape = tuple(sizes.get(label, -1) for label in self._bias_labels)
            self.bias = Parameter(shape=shape, init=init.zeros, dtype=dtype)
        else:
            self.register_parameter("bias", None)

    def _draw(self, shape: Any) -> Any:
        return uniform_by(math.prod(shape[self._n_out :]))

    def forward(self, *inputs: Any) -> Tensor:
        """The sum.

        Args:
            inputs: A tensor for each that the notation has before the weight.
        """
        if len(inputs) != len(self._inputs):
            raise ValueError(f"{self._label()}: {self.spec!r} takes {len(self._inputs)} inputs, not {len(inputs)}")
        inputs = tuple(_checks.floats(x, self._label()) for x in inputs)
        sizes = dict(self.sizes)
        for text, x in zip(self._inputs, inputs):
            axes = [label for row in _rows(text) for label in row]
            if len(axes) == x.ndim and ".." not in axes:
                sizes.update((label, n) for label, n in zip(axes, x.shape) if isinstance(n, int))
        if -1 in self.weight.shape:
            shape = [sizes.get(label) for label in self._labels]
            if None in shape:
                label = self._labels[shape.index(None)]
                raise ValueError(
                    f"{self._label()}: no input determines the size of `{label}` in {self.spec!r}: write "
                    f"`Accum(..., {label}=...)`"
                )
            draw_by(self.weight, self._draw(shape))
            _checks.infer(self, "weight", *shape)
        try:
            out = accum(self.spec, *inputs, self.weight, sizes=self._open())
        except (ValueError, TypeError) as e:
            raise type(e)(f"{self._label()}, `weight` of shape {self.weight._native.shape}: {e}") from None
        if self.bias is None:
            return out
        last = out.shape[out.ndim - len(_rows(self.spec.rsplit("=>", 1)[1])[2]) - len(self._bias_labels) :]
        return out + _checks.infer(self, "bias", *last[: len(self._bias_labels)])

    def _open(self) -> dict[str, int]:
        """Sizes that were given and are of no axis of the weight."""
        return {label: n for label, n in self.sizes.items() if label not in self._labels}

    def extra_repr(self) -> str:
        """The notation."""
        return ", ".join([repr(self.spec), *(f"{label}={n}" for label, n in self.sizes.items())])
