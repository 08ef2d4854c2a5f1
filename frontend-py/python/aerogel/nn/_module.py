"""Modules: functions with parameters, in each other."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from aerogel._dtypes import dtype_of
from aerogel.nn import _keys
from aerogel.nn._parameter import LazyParameter, Parameter, data_of, is_lazy, set_data
from aerogel.tensor._complex import ComplexTensor
from aerogel.tensor._tensor import Tensor, asarray

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


class LoadedKeys(NamedTuple):
    """The names that ``load_state_dict`` found on one side only."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class Module:
    """A function with parameters: write ``forward``, and assign parameters and other modules to attributes.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> class Net(ti.nn.Module):
    ...     def __init__(self):
    ...         self.hidden = ti.nn.Linear(4, 8)
    ...         self.out = ti.nn.Linear(8, 1)
    ...     def forward(self, x):
    ...         return self.out(ti.tensor.relu(self.hidden(x)))
    >>> net = Net()
    >>> net(ti.tensor.ones((3, 4))).shape
    (3, 1)
    >>> [name for name, _ in net.named_parameters()]
    ['hidden.weight', 'hidden.bias', 'out.weight', 'out.bias']

    Attributes that are parameters, modules and tensors (buffers) are found in the order in which they were assigned.
    Modules in plain lists and dictionaries would not be found and are refused: use ``ModuleList`` and ``ModuleDict``.

    A module may be an argument of ``@ti.program`` functions: its tensors are inputs of the program, all else is part of
    it. Assignments of the program to them (such as running means) take effect on the module when the program has run.
    """

    _aerogel_tree = True
    training: bool
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _persistent: set[str]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A module without attributes; ``super().__init__()`` is not needed."""
        self = super().__new__(cls)
        own = self.__dict__
        own["_parameters"], own["_buffers"], own["_modules"] = {}, {}, {}
        own["_persistent"], own["_parent"] = set(), None
        own["training"] = True
        return self

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Computes the result of the module; subclasses define it."""
        raise NotImplementedError(f"`{type(self).__name__}` has no `forward`: define it")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls ``forward``."""
        return self.forward(*args, **kwargs)

    # Attributes.

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        parameters, buffers, modules = own["_parameters"], own["_buffers"], own["_modules"]
        if isinstance(value, (Tensor, ComplexTensor)) and not isinstance(value, Parameter):
            if isinstance(kept := parameters.get(name), Parameter):
                self._put(name, kept, value)
                return
            if name in parameters:
                parameters[name] = value
                return
        elif value is None and (name in parameters or name in buffers):
            (parameters if name in parameters else buffers)[name] = None
            return
        _refuse_hidden(name, value)
        kind = next((d for d, c in ((parameters, Parameter), (modules, Module)) if isinstance(value, c)), None)
        kind = buffers if kind is None and isinstance(value, (Tensor, ComplexTensor)) else kind
        for other in (own, parameters, buffers, modules):
            if other is not kind:
                other.pop(name, None)
        if kind is None:
            object.__setattr__(self, name, value)
            return
        kind[name] = value
        if kind is modules:
            value.__dict__["_parent"] = (weakref.ref(self), name)

    if not TYPE_CHECKING:  # For a type checker every name would be one.

        def __getattr__(self, name: str) -> Any:
            for kind in ("_parameters", "_buffers", "_modules"):
                if name in self.__dict__.get(kind, ()):
                    return self.__dict__[kind][name]
            raise AttributeError(f"`{type(self).__name__}` has no attribute {name!r}")

    def __delattr__(self, name: str) -> None:
        for kind in (self._parameters, self._buffers, self._modules):
            if name in kind:
                del kind[name]
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._parameters, *self._buffers, *self._modules})

    def _put(self, name: str, parameter: Parameter, value: Any) -> None:
        """Gives a parameter other values."""
        if is_lazy(parameter):
            parameter.infer(*value.shape)
        if value.shape != parameter.shape:
            raise ValueError(
                f"{self._label()}: `{name}` has the shape {parameter.shape}, and is assigned a tensor of "
                f"{value.shape}. To replace the parameter, assign an `nn.Parameter`"
            )
        set_data(parameter, value.astype(parameter.dtype))

    def register_parameter(self, name: str, parameter: Parameter | None) -> None:
        """As ``self.name = parameter``; ``None`` keeps the name for a parameter that there is not."""
        if parameter is None:
            self._parameters[name] = None
        elif isinstance(parameter, Parameter):
            setattr(self, name, parameter)
        else:
            raise TypeError(f"`{name}` is registered as a parameter and is {type(parameter).__name__}")

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """A tensor that is not trained; ``state_dict`` has it if ``persistent``, but none that is only assigned."""
        if tensor is None:
            self._buffers[name] = None
        else:
            setattr(self, name, asarray(tensor))
        if persistent:
            self._persistent.add(name)

    def register_module(self, name: str, module: Module) -> None:
        """As ``self.name = module``, for names that are no identifiers."""
        if not isinstance(module, Module):
            raise TypeError(f"`{name}` is registered as a module and is {type(module).__name__}")
        if not name or "." in name:
            raise ValueError(f"the name of a module must not be empty or contain a dot, not {name!r}")
        setattr(self, name, module)

    add_module = register_module

    # What there is.

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """The module itself and all modules below it, each once, with their names."""
        yield from self._named_modules(prefix, set())

    def _named_modules(self, prefix: str, seen: set[int]) -> Iterator[tuple[str, Module]]:
        if id(self) in seen:
            return
        seen.add(id(self))
        yield prefix, self
        for name, module in self._modules.items():
            yield from module._named_modules(f"{prefix}.{name}" if prefix else name, seen)

    def modules(self) -> Iterator[Module]:
        """The module itself and all modules below it, each once."""
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules that are attributes of this one, with their names."""
        return iter(list(self._modules.items()))

    def children(self) -> Iterator[Module]:
        """The modules that are attributes of this one."""
        return iter(list(self._modules.values()))

    def _named(self, kind: str, recurse: bool = True) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        for prefix, module in self.named_modules() if recurse else [("", self)]:
            for name, value in module.__dict__[kind].items():
                if value is not None and id(value) not in seen:
                    seen.add(id(value))
                    yield (f"{prefix}.{name}" if prefix else name), value

    def named_parameters(self, recurse: bool = True) -> Iterator[tuple[str, Parameter]]:
        """The parameters, each once, with their names."""
        return self._named("_parameters", recurse)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once."""
        return (parameter for _, parameter in self.named_parameters(recurse))

    def named_buffers(self, recurse: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The tensors that are not trained, each once, with their names."""
        return self._named("_buffers", recurse)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The tensors that are not trained, each once."""
        return (buffer for _, buffer in self.named_buffers(recurse))

    # Saving and loading.

    def _state(self) -> Iterator[tuple[str, Module, str, Any]]:
        """Of what is saved, the full name, the module, the name there, and the tensor; shared ones by each name."""

        def below(module: Module, prefix: str) -> Iterator[tuple[str, Module, str, Any]]:
            for name, value in [*module._parameters.items(), *module._buffers.items()]:
                if value is not None and (name in module._parameters or name in module._persistent):
                    yield prefix + name, module, name, value
            for name, child in module._modules.items():
                yield from below(child, f"{prefix}{name}.")

        return below(self, "")

    def state_dict(self) -> dict[str, Tensor]:
        """The parameters and persistent buffers by name, as they are now: later changes do not change these."""
        return {name: data_of(value) for name, _, _, value in self._state()}

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> LoadedKeys:
        """Sets the values of parameters and buffers from a result of ``state_dict`` or ``ti.load``.

        Values are tensors or arrays (of PyTorch, too), and are converted to the dtypes of the module. Nothing is
        changed if there is an error.

        Raises:
            KeyError: With ``strict``, if a name is missing or one is not of this module.
            ValueError: If a shape differs.
        """
        found, missing, wrong = [], [], []
        names = set()
        for full, module, name, own in self._state():
            names.add(full)
            if full not in state:
                missing.append(full)
                continue
            value = asarray(state[full])
            if len(own.shape) != len(value.shape) or any(n not in (-1, m) for n, m in zip(own.shape, value.shape)):
                wrong.append(f"`{full}` has the shape {own.shape}, the loaded tensor has {value.shape}")
            found.append((module, name, own, value))
        unexpected = [name for name in state if name not in names]
        if wrong:
            raise ValueError(f"`{type(self).__name__}.load_state_dict`: " + "; ".join(wrong))
        if strict and (missing or unexpected):
            parts = [f"missing: {', '.join(missing)}"] if missing else []
            parts += [f"not of this module: {', '.join(unexpected)}"] if unexpected else []
            text = "; ".join(parts)
            raise KeyError(f"`{type(self).__name__}.load_state_dict`: {text} (`strict=False` loads the others)")
        for module, name, own, value in found:
            value = data_of(value).astype(own.dtype)
            if isinstance(own, Parameter):
                set_data(own, value)
            else:
                setattr(module, name, value)
        return LoadedKeys(missing, unexpected)

    # Changes.

    def train(self, mode: bool = True) -> Module:
        """Says that the module is trained: dropout drops, batch norms use the batch. Returns the module."""
        for module in self.modules():
            module.__dict__["training"] = bool(mode)
        return self

    def eval(self) -> Module:
        """Says that the module is used and not trained. Returns the module."""
        return self.train(False)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients of all parameters, or makes them zeros."""
        drop_gradients(self.parameters(), set_to_none)

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Says whether all parameters take gradients. Returns the module."""
        for parameter in self.parameters():
            parameter.requires_grad = bool(requires_grad)
        return self

    def to(self, dtype: Any) -> Module:
        """Converts the parameters and buffers that are floats to another float dtype. Returns the module.

        Raises:
            TypeError: If the dtype is no float type.
        """
        kind = dtype_of(dtype)
        if not kind.is_float:
            raise TypeError(f"parameters are floats, not `{kind}`")
        for parameter in self.parameters():
            if isinstance(parameter, LazyParameter):
                parameter.dtype = kind
            elif parameter.dtype is not kind:
                set_data(parameter, data_of(parameter).astype(kind))
        for module in self.modules():
            for name, value in list(module._buffers.items()):
                if isinstance(value, Tensor) and value.dtype.is_float:
                    module._buffers[name] = value.astype(kind)
        return self

    def apply(self, function: Callable[[Module], Any]) -> Module:
        """Calls a function with each module, inner ones first. Returns the module."""
        for child in self.children():
            child.apply(function)
        function(self)
        return self

    # Texts.

    def _label(self) -> str:
        """How errors name the module: its class and where it is."""
        path: list[str] = []
        at: Module | None = self
        while at is not None and at.__dict__["_parent"] is not None and len(path) < 32:
            parent, name = at.__dict__["_parent"]
            at = parent()
            path.append(name)
        return f"`{type(self).__name__}`" + (f" (`{'.'.join(reversed(path))}`)" if path else "")

    def extra_repr(self) -> str:
        """The settings that ``repr`` shows before the submodules."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        if not self._modules:
            return f"{type(self).__name__}({extra})"
        lines = [extra] if extra else []
        for name, module in self._modules.items():
            lines.append(f"({name}): " + repr(module).replace("\n", "\n  "))
        return f"{type(self).__name__}(\n  " + "\n  ".join(lines) + "\n)"

    # Copies.

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_parent": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name, module in self._modules.items():
            module.__dict__["_parent"] = (weakref.ref(self), name)

    # As an argument of programs: see `tensor/programs/_trees.py`.

    def _tree_parts(self) -> tuple[Any, dict[str, Any]]:
        parts: dict[str, Any] = {}
        at: dict[int, int] = {}
        static = _keys.static(self, "", parts, at, {})
        for name, value in parts.items():
            if is_lazy(value):
                raise ValueError(
                    f"`{type(self).__name__}`: `{name}` of shape {value.shape} has no values yet: call the module once "
                    "outside of programs, which infers sizes of -1"
                )
        return static, parts

    def _tree_trained(self) -> set[str]:
        return {name for name, _ in self._named("_parameters")}

    def _tree_rebuilt(self, parts: list[Any]) -> Module:
        return _keys.rebuilt(self, dict(zip(map(id, self._tree_parts()[1].values()), parts)), {})

    def _tree_set(self, path: str, value: Any) -> None:
        """Assigns what a program made of one of the module's tensors."""
        *modules, name = path.split(".")
        module = self
        for own in modules:
            module = module._modules[own]
        kept = module._parameters.get(name)
        if isinstance(kept, Parameter):
            set_data(kept, value)
        else:
            setattr(module, name, value)

    def _tree_returned(self) -> None:
        """Makes parameters again of the tensors that a program returned in their places."""
        made: dict[int, Parameter] = {}
        for module in self.modules():
            flags = module.__dict__.pop("_trained", {})
            for name, value in module._parameters.items():
                if isinstance(value, Tensor) and not isinstance(value, Parameter):
                    if id(value) not in made:
                        made[id(value)] = Parameter(value, flags.get(name, True))
                    module._parameters[name] = made[id(value)]


def drop_gradients(parameters: Any, set_to_none: bool) -> None:
    """Gives parameters no gradients, or zeros."""
    from aerogel.tensor._creation import zeros_like

    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad = None if set_to_none else zeros_like(parameter.grad)


def _refuse_hidden(name: str, value: Any) -> None:
    """Refuses modules and parameters in lists and dictionaries, where they would not be found."""
    if isinstance(value, (list, tuple, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            if isinstance(part, (Module, Parameter)):
                is_dict = isinstance(value, dict) and isinstance(part, Module)
                what = ("Module" if isinstance(part, Module) else "Parameter") + ("Dict" if is_dict else "List")
                raise TypeError(
                    f"`{name}` is a plain {type(value).__name__} with a {type(part).__name__} in it, whose parameters "
                    f"would not be found: use `nn.{what}`"
                )
