"""Which back ends there are, and which one evaluates what is made now."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

from aerogel import _config, _native
from aerogel._dtypes import ALL, numpy_dtype
from aerogel.backends import _blas, _checks
from aerogel.backends._backend import Backend, expect_complete
from aerogel.errors import AerogelRuntimeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aerogel.tensor import Tensor


class _Evaluator:
    """A back end as the session calls it: with names of dtypes, and extensions that optimise whole programs."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    def from_host(self, memory: Any, dtype: str) -> Any:
        """A storage of the memory of a tensor."""
        import numpy as np

        own = ALL[dtype]
        if not self.backend.supports(own):
            raise TypeError(
                f"back end `{self.backend.name}` does not support {dtype}: use another dtype, or the back end `native`"
            )
        array = np.asarray(memory)
        if array.dtype != numpy_dtype(own):
            array = array.view(numpy_dtype(own))
        return self.backend.from_host(array, own)

    def to_host(self, x: Any, dtype: str, shape: tuple[int, ...]) -> Any:
        """The elements of a storage as an array of NumPy's, which is in order."""
        import numpy as np

        array = np.ascontiguousarray(self.backend.to_host(x)).reshape(shape)
        return array.view("V2") if dtype == "bf16" else array

    def run(self, program: Any, inputs: list[Any]) -> list[Any]:
        """The results of a program."""
        from aerogel.backends import _extensions

        optimised = _extensions.optimised(self.backend, program)
        if optimised is None:
            return list(self.backend.run(program, inputs))
        made = optimised(inputs)
        _checks.expect(self.backend, "JitOptimizer", made, _checks.LIKE["run"](self.backend, program, inputs))
        return list(made)


class Entry:
    """A back end that is registered: its name, its number in the session, and the object, if it is one of Python's."""

    def __init__(self, name: str, number: int, backend: Backend | None, what: str) -> None:
        self.name, self.number, self.backend, self.what = name, number, backend, what


_entries: dict[str, Entry] = {"native": Entry("native", 0, None, "compiled kernels (the default)")}
_adding = threading.Lock()
#: Back ends that are registered when they are first used, since they need packages that others do not.
_LATER = {
    "interp": "the reference interpreter",
    "numpy": "NumPy (an example)",
    "blas": "native, with products by a BLAS",
}


def register(backend: Backend) -> Backend:
    """Registers a back end under its name.

    Raises:
        TypeError: It lacks methods, or is no back end.
        ValueError: There is one of this name.

    >>> import aerogel as ti
    >>> ti.backends.register(ti.backends.get("numpy"))
    Traceback (most recent call last):
    ValueError: there is a back end `numpy` already, registered as NumPy
    """
    expect_complete(backend)
    with _adding:
        _expect_new(backend.name)
        number = _native.add_backend(backend.name, _Evaluator(backend))
        what = (type(backend).__doc__ or "").partition("\n")[0]
        _entries[backend.name] = Entry(backend.name, number, backend, what)
    return backend


def _expect_new(name: str) -> None:
    old = _entries.get(name)
    if old is not None or name in _LATER:
        own = type(old.backend).__name__ if old is not None and old.backend is not None else "a part of Aerogel"
        raise ValueError(f"there is a back end `{name}` already, registered as {own}")


def _register_later(name: str) -> Entry:
    with _adding:
        if name in _entries:
            return _entries[name]
        backend = None
        if name == "interp":
            number = _native.add_interpreter(name)
        elif name == "blas":
            number = _native.add_blas(name, *_blas.functions())
        else:
            from aerogel.backends._numpy import NumPy

            backend = NumPy()
            number = _native.add_backend(name, _Evaluator(backend))
        _entries[name] = Entry(name, number, backend, _LATER[name])
    return _entries[name]


def entry(name: str) -> Entry:
    """What is registered under a name.

    Raises:
        ValueError: Nothing is.
    """
    if name in _entries:
        return _entries[name]
    if name in _LATER:
        return _register_later(name)
    raise ValueError(f"there is no back end {name!r}; there are {', '.join(names())}")


def get(name: str) -> Backend:
    """The object that is registered under a name.

    Raises:
        ValueError: Nothing is registered under it, or a part of Aerogel that is no such object.
    """
    found = entry(name).backend
    if found is None:
        raise ValueError(
            f"the back end `{name}` is a part of Aerogel: it evaluates programs, and has no methods to call"
        )
    return found


def names() -> list[str]:
    """The names of all back ends."""
    return sorted({*_entries, *_LATER})


def described() -> list[tuple[str, str]]:
    """The name of each back end, and what it is, or why it cannot be used."""
    out = []
    for name in names():
        try:
            out.append((name, entry(name).what))
        except AerogelRuntimeError as e:
            out.append((name, f"not available: {e}"))
    return out


def name_of(number: int) -> str:
    """The name of the back end with a number."""
    return next(e.name for e in _entries.values() if e.number == number)


class _Chosen(threading.local):
    names: tuple[str, ...] = ()


_chosen = _Chosen()


def set_default(name: str, eager: bool = False) -> None:
    """Sets the back end of tensors that are made from now on, in all threads; ``ti.init(backend=...)`` calls it."""
    _native.set_default_backend(entry(name).number, bool(eager))
    _config.current.update(backend=name, eager=bool(eager))


def current() -> str:
    """The name of the back end of tensors that are made now."""
    return _chosen.names[-1] if _chosen.names else _config.current["backend"]


class use:
    """Sets the back end of tensors that are made from now on; as a context manager, of those that this thread makes
    inside.

    Args:
        name: The name of the back end.
        eager: Whether each statement is evaluated at once, instead of when a value is needed.

    Raises:
        ValueError: There is no such back end.

    >>> import aerogel as ti
    >>> with ti.backends.use("numpy"):
    ...     x = ti.tensor.asarray([1.0, 2.0]) + 1
    >>> x.backend, x.tolist()
    ('numpy', [2.0, 3.0])
    """

    def __init__(self, name: str, *, eager: bool = False) -> None:
        self._before = _config.current["backend"], _config.current["eager"]
        self._name, self._eager = name, eager
        set_default(name, eager)

    def __enter__(self) -> use:
        set_default(*self._before)
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(_in_thread(self._name, self._eager))
        return self

    def __exit__(self, *why: object) -> None:
        self._stack.close()


@contextlib.contextmanager
def _in_thread(name: str, eager: bool) -> Iterator[None]:
    before = _native.choose_backend(entry(name).number)
    names, was_eager = _chosen.names, _config.current["eager"]
    _chosen.names = (*names, name)
    set_default(_config.current["backend"], eager)
    try:
        yield
    finally:
        _chosen.names = names
        _native.choose_backend(before)
        set_default(_config.current["backend"], was_eager)


def moved(x: Tensor, name: str) -> Tensor:
    """A tensor with the same values that belongs to a back end; `Tensor.to` calls it."""
    number = entry(name).number
    if _native.backend_of_tensor(x._native) == number:
        return x
    x._has_numbers("`to` moves")
    return type(x)(_native.tensor_on_backend(x._native, number), x._outside)


def storage(x: Tensor) -> Any:
    """The storage of a tensor, in the form of its back end; it is evaluated first.

    Raises:
        ValueError: The back end is a part of Aerogel, whose tensors are memory of the host.
        AerogelRuntimeError: A gradient is taken through the tensor, outside of the functions of a ``custom_vjp``: none
            would pass through its storage.
    """
    from aerogel.tensor import _opaque

    if not _opaque.note_storage():
        x._has_numbers("`storage` takes")
    found = _native.storage_of_tensor(x._native)
    if found is None:
        raise ValueError(f"a tensor of the back end `{x.backend}` is memory of the host: take `x.numpy()`")
    return found


def native_of(made: Any, name: str) -> Any:
    """What a tensor of a storage is made by; `_layers.tensor` makes the tensor."""
    backend = get(name)
    try:
        dtype, shape = backend.describe(made)
    except (AttributeError, TypeError) as e:
        raise TypeError(
            f"the back end `{name}` has no storages that are of class {type(made).__name__}: `ti.tensor.asarray(x).to"
            f"({name!r})` takes arrays and lists"
        ) from e
    return _native.tensor_of_storage(made, str(dtype), list(shape), entry(name).number)
