"""Modules and parameters in rows and by name."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from aerogel.nn._module import Module
from aerogel.nn._parameter import Parameter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class _Row(Module):
    """What stands in a row, by number."""

    #: Which attribute has what stands there, and its class.
    _kind, _class = "_modules", Module

    def _own(self) -> dict[str, Any]:
        return self.__dict__[self._kind]

    def _at(self, index: Any) -> str:
        k, n = operator.index(index), len(self)
        if not -n <= k < n:
            raise IndexError(f"`{type(self).__name__}` has {n} elements, there is no {k}")
        return str(k % n)

    def _checked(self, value: Any) -> Any:
        if not isinstance(value, self._class):
            raise TypeError(f"`{type(self).__name__}` has elements of `{self._class.__name__}`, not {value!r}")
        return value

    def _fill(self, values: Iterable[Any]) -> None:
        made = [self._checked(value) for value in values]
        self._own().clear()
        for k, value in enumerate(made):
            setattr(self, str(k), value)

    def __len__(self) -> int:
        return len(self._own())

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._own().values()))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)._of(list(self)[index])
        return self._own()[self._at(index)]

    @classmethod
    def _of(cls, values: list[Any]) -> Any:
        return cls(values)  # type: ignore[call-arg]

    def __setitem__(self, index: Any, value: Any) -> None:
        if operator.index(index) == len(self):
            self.append(value)
        else:
            setattr(self, self._at(index), self._checked(value))

    def __delitem__(self, index: Any) -> None:
        rest = list(self)
        del rest[index if isinstance(index, slice) else int(self._at(index))]
        self._fill(rest)

    def append(self, value: Any) -> Any:
        """Adds one at the end. Returns the row."""
        setattr(self, str(len(self)), self._checked(value))
        return self

    def extend(self, values: Iterable[Any]) -> Any:
        """Adds several at the end. Returns the row."""
        for value in values:
            self.append(value)
        return self

    def insert(self, index: int, value: Any) -> None:
        """Adds one before an index."""
        all_ = list(self)
        all_.insert(index, value)
        self._fill(all_)


class Sequential(_Row):
    """Modules one after the other: each receives the result of the one before.

    >>> import aerogel as ti
    >>> ti.nn.Sequential(ti.nn.Linear(2, 3), ti.nn.ReLU())
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): ReLU()
    )

    Args:
        modules: The modules, or one dictionary of them by name.
    """

    def __init__(self, *modules: Any) -> None:
        if len(modules) == 1 and isinstance(modules[0], dict):
            for name, module in modules[0].items():
                self.register_module(name, module)
        else:
            self._fill(modules)

    @classmethod
    def _of(cls, values: list[Any]) -> Any:
        return cls(*values)

    def _at(self, index: Any) -> str:
        return list(self._modules)[int(super()._at(index))]

    def forward(self, x: Any) -> Any:
        """Calls the modules in order, each with the result of the one before."""
        for module in self._modules.values():
            x = module(x)
        return x


class ModuleList(_Row):
    """Modules in a row, which are used by index; the module that has the list calls them.

    Args:
        modules: The modules.
    """

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        self._fill(modules)


class ModuleDict(Module):
    """Modules by name.

    Args:
        modules: The modules, in a dictionary or as pairs.
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] = ()) -> None:
        self.update(modules)

    def update(self, modules: Any) -> None:
        """Adds modules, in place of those of the same names."""
        for name, module in modules.items() if hasattr(modules, "items") else modules:
            self[name] = module

    def __setitem__(self, name: str, module: Module) -> None:
        self.register_module(name, module)

    def __getitem__(self, name: str) -> Module:
        return self._modules[name]

    def __delitem__(self, name: str) -> None:
        del self._modules[name]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._modules))

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def keys(self) -> Any:
        """The names."""
        return list(self._modules)

    def values(self) -> Any:
        """The modules."""
        return list(self._modules.values())

    def items(self) -> Any:
        """Names and modules."""
        return list(self._modules.items())


class ParameterList(_Row):
    """Parameters in a row. Assigning to the index behind the last adds one.

    Args:
        parameters: The parameters; tensors and arrays become such.
    """

    _kind, _class = "_parameters", Parameter

    def __init__(self, parameters: Iterable[Any] = ()) -> None:
        self._fill(parameters)

    def _checked(self, value: Any) -> Any:
        return value if isinstance(value, Parameter) else Parameter(value)

    def extra_repr(self) -> str:
        """The shapes."""
        return ", ".join(str(p.shape) for p in self)


ParameterArray = ParameterList
