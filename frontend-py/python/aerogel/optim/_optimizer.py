"""What all optimizers have: groups of parameters, state, and one evaluation for each step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aerogel import _native
from aerogel._dtypes import bf16, f16, f32
from aerogel.nn._module import Module, drop_gradients
from aerogel.nn._parameter import Parameter, data_of, set_data
from aerogel.optim import _trees
from aerogel.tensor import _unknown
from aerogel.tensor._backward import no_grad
from aerogel.tensor._shapes import concat
from aerogel.tensor._tensor import Tensor, asarray, tracing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Numbers:
    """Hyperparameters as tensors, so that other values are no other program."""

    def __init__(self, dtype: Any) -> None:
        self._dtype = dtype._aerogel_dtype
        self._made: dict[tuple[int, float], Tensor] = {}
        #: How many numbers the parameter has used. Parameters share numbers; two settings that are equal by
        #: chance do not, since the program would be another one when they differ.
        self._at = 0

    def begin(self) -> Numbers:
        """The numbers for the next parameter."""
        self._at = 0
        return self

    def __call__(self, value: Any) -> Tensor:
        """A number of the dtype."""
        self._at += 1
        if isinstance(value, Tensor):
            # In a program that was given the optimizer, settings are inputs.
            return value.astype(self._dtype)
        made = self._made.get((self._at, value))
        if made is None:
            made = Tensor(_native.NativeTensor.of_number(self._dtype, float(value)))
            self._made[self._at, value] = made
        return made


class Optimizer:
    """Changes parameters by their gradients. Optimizers define ``_update``.

    Attributes:
        average: A function. It receives all gradients of a dtype as one flat array, and returns the means in an array
            of the same shape; it may work in place, and must return the array. ``None`` if there is one process.

    Args:
        params: A module, its parameters, or dictionaries, each with ``"params"`` and settings of its own (a group).
        defaults: The settings of groups that have none of their own.

    Raises:
        TypeError: If there is something else than tensors, or a tensor that takes no gradient.
        ValueError: If there is no parameter, or one occurs twice.
    """

    average: Callable[[Any], Any] | None = None

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = {**defaults}
        self.param_groups: list[dict[str, Any]] = []
        #: The state of each parameter.
        self.state: dict[Parameter, dict[str, Any]] = {}
        if isinstance(params, Module):
            params = params.parameters()
        elif isinstance(params, Tensor) or not hasattr(params, "__iter__"):
            raise TypeError(f"`{self._name}` takes a module or a list of parameters, not {type(params).__name__}")
        given = list(params)
        if not given:
            raise ValueError(f"`{self._name}` takes at least one parameter")
        for group in given if all(isinstance(g, dict) for g in given) else [{"params": given}]:
            self.add_param_group(group)

    @property
    def _name(self) -> str:
        return type(self).__name__

    def add_param_group(self, group: dict[str, Any]) -> None:
        """Adds parameters with settings of their own.

        Args:
            group: Has ``"params"`` and settings, such as ``"lr"``.

        Raises:
            TypeError: If there is something else than tensors that take gradients, or an unknown setting.
            ValueError: If a parameter occurs twice, or a setting is unknown.
        """
        given = group.get("params")
        if given is None:
            raise ValueError(f"`{self._name}`: a group has its parameters under `params`")
        given = given.parameters() if isinstance(given, Module) else given
        params = [given] if isinstance(given, Tensor) else list(given)
        known = {id(p) for g in self.param_groups for p in g["params"]}
        for k, p in enumerate(params):
            if not isinstance(p, Tensor):
                raise TypeError(f"`{self._name}`: parameter {k} is {type(p).__name__}, not a tensor")
            if not isinstance(p, Parameter) and not p.requires_grad:
                raise TypeError(
                    f"`{self._name}`: parameter {k}, of shape {p.shape}, has no gradient: pass an `nn.Parameter`, or "
                    "set `requires_grad`"
                )
            if id(p) in known:
                raise ValueError(f"`{self._name}`: parameter {k}, of shape {p.shape}, occurs twice")
            known.add(id(p))
        if unknown := [name for name in group if name not in self.defaults and name != "params"]:
            raise TypeError(f"`{self._name}` has no setting `{unknown[0]}`; there are {', '.join(self.defaults)}")
        made = {**self.defaults, **group, "params": params}
        self._check(made)
        self.param_groups.append(made)

    def _check(self, group: dict[str, Any]) -> None:
        """Refuses settings that have no meaning."""
        for name, value in group.items():
            if name in ("lr", "eps", "weight_decay", "momentum", "lr_decay", "initial_accumulator_value"):
                if not value >= 0:
                    raise ValueError(f"`{self._name}`: `{name}` must be at least 0, not {value}")
            elif name == "betas":
                if len(value) != 2 or not all(0 <= b < 1 for b in value):
                    raise ValueError(f"`{self._name}`: `betas` are two numbers from 0 to below 1, not {value}")
            elif name in ("alpha", "rho") and not 0 <= value <= 1:
                raise ValueError(f"`{self._name}`: `{name}` is from 0 to 1, not {value}")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients of all parameters, or makes them zeros."""
        for group in self.param_groups:
            drop_gradients(group["params"], set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Changes all parameters that have gradients. Parameters and states are evaluated together.

        Args:
            closure: Computes the loss and the gradients again, if given.

        Returns:
            The result of ``closure``.

        Raises:
            ValueError: If a gradient has another shape than its parameter.
        """
        loss = None if closure is None else closure()
        self._change(self._averaged({id(p): p.grad for group in self.param_groups for p in group["params"]}))
        return loss

    def apply(self, gradients: Any) -> None:
        """As ``step``, with gradients that are given, as ``ti.grad`` returns them.

        In a ``@ti.program`` that has the module and the optimizer as arguments, the whole step is one program.

        Args:
            gradients: A module whose parameters are gradients, a list, or a dictionary: as many as there are
                parameters, in their order. ``None`` in a list leaves a parameter as it is.

        Raises:
            ValueError: If there are other numbers of gradients, or one has another shape than its parameter.
        """
        if isinstance(gradients, Module):
            gradients = gradients.parameters()
        given = list(gradients.values()) if isinstance(gradients, dict) else list(gradients)
        params = [p for group in self.param_groups for p in group["params"]]
        if len(given) != len(params):
            raise ValueError(f"`{self._name}.apply`: there are {len(given)} gradients for {len(params)} parameters")
        self._change(self._averaged({id(p): g if g is None else asarray(g) for p, g in zip(params, given)}))

    def _averaged(self, gradients: dict[int, Tensor | None]) -> dict[int, Tensor | None]:
        """The means of gradients over several processes, by ``average``, which is called once for each dtype.

        If it has a method ``of_tensors``, this evaluates the gradients, and returns the means.
        """
        if self.average is None:
            return gradients
        if tracing.program is not None:
            raise ValueError(
                f"`{self._name}.average` exchanges gradients with other processes, which a program cannot: return the "
                "gradients from the program, and call `apply` outside of it"
            )
        in_buckets = getattr(self.average, "of_tensors", None)
        if in_buckets is not None:
            return in_buckets(gradients)
        out = dict(gradients)
        for dtype in dict.fromkeys(g.dtype for g in gradients.values() if g is not None):
            own = [(key, g) for key, g in gradients.items() if g is not None and g.dtype is dtype]
            flat = concat([data_of(g).detach().reshape(-1) for _, g in own]).numpy()
            averaged = self.average(flat)
            if averaged is None:
                raise TypeError(f"`{self._name}.average` returned None: return the array")
            means = asarray(averaged, dtype=dtype)
            if means.shape != flat.shape:
                raise ValueError(f"`{self._name}.average` returned the shape {means.shape}, and {flat.shape} is needed")
            at = 0
            for key, g in own:
                out[key], at = means[at : at + g.size].reshape(g.shape), at + g.size
        return out

    def _change(self, gradients: dict[int, Tensor | None]) -> None:
        """Changes the parameters that have gradients, which are given by the ids of these."""
        changed: list[Tensor] = []
        with no_grad():
            for group in self.param_groups:
                numbers: dict[Any, Numbers] = {}
                for k, p in enumerate(group["params"]):
                    g = gradients[id(p)]
                    if g is not None:
                        if len(g.shape) != len(p.shape) or any(map(_unknown.differ, g.shape, p.shape)):
                            raise ValueError(
                                f"`{self._name}`: parameter {k} has the shape {p.shape}, and its gradient {g.shape}"
                            )
                        changed += self._changed(p, g, group, numbers)
        if changed and tracing.program is None:
            _native.realise_tensors([t._native for t in changed])

    def _changed(self, p: Any, g: Tensor, group: dict[str, Any], numbers: dict[Any, Numbers]) -> Iterable[Tensor]:
        """Changes one parameter: it, and the tensors of its state."""
        # Halves would lose small changes of the state.
        kind = f32 if p.dtype in (f16, bf16) else p.dtype
        if kind not in numbers:
            numbers[kind] = Numbers(kind)
        state = self.state.setdefault(p, {})
        g, value = data_of(g).astype(kind), data_of(p).astype(kind)
        g = -g if group["maximize"] else g
        new = self._update(value, g, group, state, numbers[kind].begin()).astype(p.dtype)
        if tracing.program is None:
            set_data(p, new)
        else:
            p.set(new)
        return [p, *(t for t in state.values() if isinstance(t, Tensor))]

    def _update(self, p: Tensor, g: Tensor, group: dict[str, Any], state: dict[str, Any], n: Numbers) -> Tensor:
        """The parameter after a step.

        Args:
            p: Its value.
            g: Its gradient.
            group: The settings.
            state: The state of the parameter, tensors and numbers, which this updates.
            n: Makes a tensor of a setting, so that it is no constant of what is compiled.
        """
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """The state and the settings, with a number for each parameter in their order."""
        order = {id(p): k for k, p in enumerate(p for g in self.param_groups for p in g["params"])}
        state = {}
        for p, own in self.state.items():
            state[order[id(p)]] = {n: data_of(v) if isinstance(v, Tensor) else v for n, v in own.items()}
        groups = [{**g, "params": [order[id(p)] for p in g["params"]]} for g in self.param_groups]
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores a state that ``state_dict`` or ``ti.load`` returned.

        Raises:
            ValueError: If groups have other numbers of parameters, or a state another shape than its parameter.
        """
        groups = state["param_groups"]
        own, given = [len(g["params"]) for g in self.param_groups], [len(g["params"]) for g in groups]
        if own != given:
            raise ValueError(
                f"`{self._name}.load_state_dict`: the groups have {own} parameters, the loaded ones {given}"
            )
        params = [p for g in self.param_groups for p in g["params"]]
        numbered = [k for g in groups for k in g["params"]]
        loaded: dict[Parameter, dict[str, Any]] = {}
        saved = {int(k): v for k, v in state["state"].items()}
        for p, k in zip(params, numbered):
            if k not in saved:
                continue
            loaded[p] = {}
            for name, value in saved[k].items():
                if hasattr(value, "shape"):
                    value = asarray(value, copy=True)
                    if value.ndim and value.shape != p.shape:
                        raise ValueError(
                            f"`{self._name}.load_state_dict`: `{name}` of parameter {k} has the shape {value.shape}, "
                            f"the parameter has {p.shape}"
                        )
                loaded[p][name] = value
        self.state = loaded
        for mine, other in zip(self.param_groups, groups):
            own_settings = {n: tuple(v) if isinstance(v, list) else v for n, v in other.items() if n != "params"}
            mine.update(own_settings)

    # As an argument of programs: see `tensor/programs/_trees.py`.

    _aerogel_tree = True

    def _tree_parts(self) -> tuple[Any, dict[str, Any]]:
        return _trees.parts(self)

    def _tree_trained(self) -> set[str]:
        raise TypeError(f"gradients cannot be taken by an optimizer: `{self._name}`")

    def _tree_rebuilt(self, parts: list[Any]) -> Optimizer:
        return _trees.rebuilt(self, parts)

    def _tree_set(self, name: str, value: Any) -> None:
        _trees.assign(self, name, value)

    def _tree_returned(self) -> None:
        raise TypeError(f"a program does not return optimizers: `{self._name}` was changed in place")

    def __repr__(self) -> str:
        lines = []
        for k, group in enumerate(self.param_groups):
            settings = ", ".join(f"{name}={value}" for name, value in group.items() if name != "params")
            lines.append(f"  group {k}: {len(group['params'])} parameters, {settings}")
        return f"{self._name}(\n" + "\n".join(lines) + "\n)"


def kept(state: dict[str, Any], name: str, like: Tensor, value: float = 0.0) -> Tensor:
    """A tensor of the state; one number everywhere at first."""
    from aerogel.tensor._creation import full

    own = state.get(name)
    return full(like.shape, value, like.dtype) if own is None else own


def wide(value: Any) -> Any:
    """A setting in double precision; in a program that was given the optimizer it is an input."""
    return value.astype("f64") if isinstance(value, Tensor) else float(value)


def power(base: Any, exponent: Any) -> Any:
    """A power of a setting, in double precision."""
    return wide(base) ** wide(exponent)


def is_on(value: Any) -> bool:
    """Whether a setting is other than zero; one that is an input of a program is."""
    return isinstance(value, Tensor) or bool(value)
