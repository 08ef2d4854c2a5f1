"""Modules of `aerogel.tensor.frost`: objects whose parameters are inputs of programs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from aerogel._dtypes import dtype_of, f32
from aerogel.tensor import random
from aerogel.tensor._tensor import Tensor
from aerogel.tensor.frost._memory import tensor
from aerogel.tensor.programs import input as given

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Parameter:
    """The shape, dtype and first values of a parameter of a `Module`.

    Args:
        shape: The size of each axis; -1 for one that follows from the values that are assigned.
        dtype: The dtype.
        random_scale: First values are drawn uniformly from ``random_offset - random_scale`` to ``random_offset +
            random_scale``. If it is negative, the scale is ``sqrt(6 / sum(shape))``, that of Glorot and Bengio (2010).
        random_offset: The middle of first values.
        optimize: Whether an optimizer changes it.
    """

    def __init__(
        self,
        shape: Sequence[int],
        dtype: Any = f32,
        random_scale: float = -1.0,
        random_offset: float = 0.0,
        optimize: bool = True,
    ) -> None:
        self.shape, self.dtype = [int(n) for n in shape], dtype_of(dtype)
        self.random_scale, self.random_offset, self.optimize = random_scale, random_offset, optimize

    def drawn(self) -> Any:
        """First values; of integers zeros. The parameter itself, if a size is not known."""
        if any(n < 0 for n in self.shape):
            return self
        scale = math.sqrt(6 / max(sum(self.shape), 1)) if self.random_scale < 0 else self.random_scale
        values = random.default.rand(self.shape, dtype=f32) * (2 * scale) - (scale - self.random_offset)
        return tensor((values if self.dtype.is_float else values * 0).astype(self.dtype).numpy())

    def __repr__(self) -> str:
        return f"Parameter(shape={self.shape}, dtype={self.dtype})"


class ParameterArray:
    """Parameters by number, as an attribute of a `Module`."""

    def __init__(self) -> None:
        self._declared: dict[int, Parameter] = {}
        self._values: dict[int, Any] = {}

    def __getitem__(self, index: int) -> Any:
        if index not in self._values:
            raise IndexError(f"index {index} is not in the ParameterArray")
        return self._values[index]

    def __setitem__(self, index: int, value: Any) -> None:
        if isinstance(value, Parameter):
            self._declared[index] = value
        elif index not in self._declared:
            raise IndexError(f"index {index} is not in the ParameterArray: assign a `Parameter` first")
        self._values[index] = value

    def __len__(self) -> int:
        return len(self._values)

    def items(self) -> list[tuple[int, Any]]:
        """Numbers and values, by number."""
        return sorted(self._values.items())


class _Place(NamedTuple):
    """Where a parameter of a module is."""

    owner: Any
    key: Any
    name: str
    declared: Parameter
    is_trained: bool

    @property
    def value(self) -> Any:
        return self.owner[self.key] if isinstance(self.owner, ParameterArray) else getattr(self.owner, self.key)

    def assign(self, value: Any) -> None:
        if isinstance(self.owner, ParameterArray):
            self.owner[self.key] = value
        else:
            setattr(self.owner, self.key, value)


class Module:
    """An object with parameters: attributes that are a `Parameter`, a `ParameterArray` or another module.

    The function of a program makes one and calls ``initialize_input``: its parameters are inputs of the program.
    Outside, ``initialize_parameters`` gives values to another one, with which the program is called. The order of
    parameters is: those of modules in it, its own, and those in arrays.

    Args:
        requires_grad: Whether optimizers change its parameters.
    """

    #: Subclasses need not call `__init__`.
    _requires_grad = True

    def __init__(self, requires_grad: bool = True) -> None:
        self._requires_grad = requires_grad

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Parameter):
            self._declared[name] = value
        elif not (isinstance(value, Tensor) or hasattr(value, "__array__")):
            self._declared.pop(name, None)
        object.__setattr__(self, name, value)

    @property
    def _declared(self) -> dict[str, Parameter]:
        return self.__dict__.setdefault("_declared_parameters", {})

    def _places(self) -> Iterator[_Place]:
        for module in self._modules():
            for place in module._places():
                yield place._replace(is_trained=place.is_trained and self._requires_grad)
        for name, declared in self._declared.items():
            yield _Place(self, name, name, declared, declared.optimize and self._requires_grad)
        for name, array in vars(self).items():
            for k, _ in array.items() if isinstance(array, ParameterArray) else ():
                declared = array._declared[k]
                yield _Place(array, k, f"{name}[{k}]", declared, declared.optimize and self._requires_grad)

    def _modules(self) -> list[Module]:
        return [part for part in vars(self).values() if isinstance(part, Module)]

    def named_parameters(self) -> list[tuple[str, Any]]:
        """The names of parameters in their modules, and their values."""
        return [(place.name, place.value) for place in self._places()]

    def parameters(self) -> list[Any]:
        """The values of parameters: what a program that is called with the module gets."""
        return [place.value for place in self._places()]

    def requires_grads_list(self) -> list[bool]:
        """Whether an optimizer changes each of the parameters."""
        return [place.is_trained for place in self._places()]

    def param_requires_grad(self, name: str) -> bool:
        """Whether an optimizer changes the parameter of this module that has a name."""
        return self._requires_grad and name in self._declared and self._declared[name].optimize

    def hasattr(self, name: str) -> bool:
        """Whether there is an attribute of this name."""
        return hasattr(self, name)

    def initialize_input(self) -> None:
        """In a program: makes each parameter an input, in their order, and calls ``assert_parameters``."""
        for place in list(self._places()):
            place.assign(given(place.declared.shape, place.declared.dtype))
        self._assert()

    def _assert(self) -> None:
        for module in self._modules():
            module._assert()
        self.assert_parameters()

    def initialize_parameters(self) -> None:
        """Gives parameters first values, except those with sizes of -1: assign tensors to these."""
        for place in list(self._places()):
            place.assign(place.declared.drawn())

    initialize_parameters_native = initialize_parameters

    def update_parameters(self, values: Any) -> None:
        """Assigns values to the parameters, in their order: what a program returned. Further values are left out.

        Raises:
            IndexError: If there are fewer values than parameters.
        """
        values = [values] if isinstance(values, Tensor) else list(values)
        places = list(self._places())
        if len(values) < len(places):
            raise IndexError(f"`update_parameters`: {len(values)} values for {len(places)} parameters")
        for place, value in zip(places, values):
            place.assign(value)

    def assert_parameters(self) -> None:
        """To be overridden: assigns `assert_tensor` of parameters whose shapes belong together."""

    def forward(self, *inputs: Any) -> Any:
        """To be overridden: the result of the module."""
        raise NotImplementedError(f"`{type(self).__name__}` has no `forward`")

    def loss(self, *inputs: Any) -> Any:
        """To be overridden: what an optimizer makes small."""
        raise NotImplementedError(f"`{type(self).__name__}` has no `loss`")

    def _complete(self) -> None:
        """Called before the parameters go to a program."""


def flattened(values: Sequence[Any]) -> list[Any]:
    """The arguments of a program, with parameters in place of modules.

    Raises:
        TypeError: If a parameter has no values.
    """
    out: list[Any] = []
    for value in values:
        if not isinstance(value, Module):
            out.append(value)
            continue
        value._complete()
        for place in value._places():
            if isinstance(place.value, Parameter):
                raise TypeError(
                    f"the parameter `{place.name}` of `{type(value).__name__}` has no values, its shape is "
                    f"{place.declared.shape}: call `initialize_parameters()`, and assign tensors where a size is -1"
                )
            out.append(place.value)
    return out


__all__ = ["Module", "Parameter", "ParameterArray"]
