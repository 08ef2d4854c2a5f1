"""The class of tensors: recorded operations, evaluated when values are needed."""

from __future__ import annotations

import builtins
import threading
from typing import TYPE_CHECKING, Any

from aerogel import _native
from aerogel._dtypes import ALL, DataType, bf16, dtype_of, f32, numpy_dtype, u1
from aerogel.errors import AerogelRuntimeError
from aerogel.tensor import _complex, _held, _lists, _types
from aerogel.tensor._backward import Backward, expect_free, renew

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from aerogel.tensor._methods import Methods
else:
    #: `_operators` gives the class its methods when the functions are there that they call.
    Methods = object


class _Tracing(threading.local):
    """The program that is being traced in a thread, if one is."""

    trace: Any = None
    #: What Python notes of it.
    program: Any = None
    #: Outside of programs: what is noted with the tensors that are made in the function that `vmap` calls.
    mapped: Any = None


tracing = _Tracing()
#: Makes a tensor of one of PyTorch's through which gradients go: `_operators` says how.
of_torch: list[Callable[[Any], Tensor]] = []


class Tensor(Backward, Methods):
    """An n-dimensional array of numbers of one dtype, evaluated lazily.

    Operators and functions record operations. ``numpy``, ``item``, ``print`` and other uses of the values compile the
    recorded operations into a few kernels, and cache the result.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> x = ti.tensor.arange(6).reshape(2, 3)
    >>> (x * x).sum(axis=1)
    tensor([ 5, 50], dtype=i32)
    """

    _aerogel_tensor = True
    __slots__ = ("_leaf", "_made", "_native", "_outside", "__weakref__")
    __array_priority__ = 1000

    def __init__(self, native: Any, outside: str = "error") -> None:
        self._native = native
        self._outside = outside
        self._made: Any = tracing.mapped
        if tracing.program is not None:
            tracing.program.made(self)

    # What it is.

    @classmethod
    def _like(cls, other: Tensor) -> Tensor:
        """A tensor of its own with the same numbers."""
        return Tensor(other._native.again(), other._outside)

    def _as_it_is(self) -> Tensor:
        """A tensor that keeps these numbers, whatever is stored to this one."""
        return Tensor._like(self)

    @property
    def dtype(self) -> DataType:
        """The dtype of the elements."""
        return ALL[self._native.dtype]

    @property
    def shape(self) -> tuple[Any, ...]:
        """The size of each axis; in a program that is traced, values of the program where sizes are not known."""
        if tracing.program is not None:
            return tracing.program.shape(self)
        shape = self._native.shape
        if any(not isinstance(n, int) for n in shape):
            raise AerogelRuntimeError(
                "a tensor of a program has a shape only while the program runs: use the shape of its result"
            )
        return shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        if tracing.program is not None and not self._native.is_outside:
            tracing.program.native.expect_rank(self._native)
        return len(self._native.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        n = 1
        for extent in self.shape:
            n *= extent
        return n

    @property
    def device(self) -> str:
        """The device of the values."""
        return "cpu"

    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor:
        """The tensor on a device; the only device is ``"cpu"``."""
        if device != "cpu":
            raise ValueError(f"there is no device {device!r}; tensors are on 'cpu'")
        return self

    @property
    def backend(self) -> str:
        """The name of the back end that evaluates it: ``native``, unless another one was chosen."""
        from aerogel.backends import _registry

        return _registry.name_of(_native.backend_of_tensor(self._native))

    def to(self, backend: Any) -> Tensor:
        """The same values with another back end, as a copy; the tensor itself if it has that one.

        Raises:
            ValueError: There is no such back end. Dtypes are converted by ``astype``.
        """
        from aerogel.backends import _registry

        if not isinstance(backend, str):
            raise ValueError(f"`to` takes the name of a back end, not {backend!r}; `astype` converts to another dtype")
        if backend.partition(":")[0] in ("cpu", "cuda", "gpu"):
            raise ValueError(
                f"`to` takes the name of a back end, and {backend!r} is a device: tensors are on the device of "
                "`ti.init(arch=ti.cuda)` or `ti.init(arch=ti.cpu)`; `ti.tensor.to_torch` and `numpy` copy them"
            )
        return _registry.moved(self, backend)

    @property
    def T(self) -> Tensor:
        """The transpose: the axes in reverse order."""
        return self.permute(*builtins.range(self.ndim - 1, -1, -1))

    @property
    def mT(self) -> Tensor:
        """The tensor with the last two axes exchanged."""
        if self.ndim < 2:
            raise ValueError(f"`mT` needs at least two axes, the shape is {self.shape}")
        axes = list(builtins.range(self.ndim))
        axes[-2:] = axes[-1], axes[-2]
        return self.permute(*axes)

    # Numbers.

    def realize(self) -> Tensor:
        """Evaluates the tensor, unless its values are cached."""
        self._native.realise()
        return self

    def numpy(self) -> Any:
        """A copy of the values as a NumPy array; ``bf16`` needs the package ``ml_dtypes``."""
        self._has_numbers("`numpy` takes")
        return self._copied()

    def _copied(self) -> Any:
        """The values as a NumPy array, for printing, also if the tensor requires a gradient."""
        import numpy as np

        self._native.realise()
        out = np.empty(self.shape, numpy_dtype(self.dtype))
        self._native.copy_to(out)
        return out

    to_numpy = numpy

    def _has_numbers(self, who: str) -> None:
        """Raises an error if a program has no values yet, or a gradient would not pass through them."""
        self._expect_numbers(who)
        if self.requires_grad and not _native.are_gradients_off():
            raise AerogelRuntimeError(
                f"{who} values, and no gradient would pass through them: use `detach()`, or do it in "
                "`with ti.no_grad():`"
            )

    def _expect_numbers(self, who: str) -> None:
        if tracing.program is not None and not self._native.is_outside:
            raise AerogelRuntimeError(
                f"{who} values, and a tensor of a program has none while the program is traced: use the "
                "function of that name in `aerogel.tensor`, choose by `if_cond` or `where`, repeat by `loop`, show it "
                "by `print_value`, or return it. An argument that is known when the program is traced is annotated "
                "`int` or `bool`, or named in `static`"
            )

    def _view(self) -> Any:
        """A NumPy array over the tensor's own memory, which may not be written."""
        import numpy as np

        view = np.asarray(self._native.memory())
        return view.view(numpy_dtype(self.dtype)) if self.dtype is bf16 else view

    def item(self) -> Any:
        """The value of a tensor with one element, as a Python number."""
        return self._native.item()

    def tolist(self) -> Any:
        """The values as nested lists."""
        self._expect_numbers("`tolist` takes")
        return self._as_numpy_has_them()._copied().tolist()

    def _as_numpy_has_them(self) -> Tensor:
        """The same numbers, in a type that NumPy has by itself."""
        return self.astype(f32) if self.dtype is bf16 else self

    def to_ndarray(self) -> Any:
        """A ``ti.ndarray`` over the same memory, which kernels may read."""
        from aerogel.data.ndarray import ScalarNdarray, _make

        return _make(ScalarNdarray, self.dtype, self.shape, (), over=self._native)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        self._has_numbers("NumPy takes")
        if dtype is not None and numpy_dtype(self.dtype) != dtype:
            if copy is False:
                raise ValueError(
                    f"a tensor of {self.dtype} is copied to become an array of {dtype}; leave out copy=False"
                )
            return self.numpy().astype(dtype)
        return self.numpy() if copy else self._view()

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """The values for another package: its memory may not be written. Packages that cannot know that get a copy."""
        import numpy as np

        self._has_numbers("DLPack takes")
        arguments: dict[str, Any] = {"stream": stream, "max_version": max_version, "dl_device": dl_device}
        if max_version is not None and max_version[0] >= 1 and not copy:
            return np.asarray(self._native.memory()).__dlpack__(**arguments)
        # What may not be written is shared with those only who know the flag that says so.
        if copy is False:
            raise BufferError("a tensor is read-only, which only DLPack 1.0 or later can express: leave out copy=False")
        return self.numpy().__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        import aerogel

        xp = aerogel.xp

        if api_version not in (None, *xp.VERSIONS):
            raise ValueError(f"version {api_version!r} of the Array API is not supported; use one of {xp.VERSIONS}")
        return xp

    def __repr__(self) -> str:
        if not (self.is_numbers and self._native.is_outside) or self._native.is_one_of_many():
            return f"<tensor of shape {self._native.shape_text()}, dtype={self.dtype}>"
        import numpy as np

        text = np.array2string(self._as_numpy_has_them()._copied(), separator=", ", prefix="tensor(")
        return f"tensor({text}, dtype={self.dtype})"

    @property
    def is_numbers(self) -> bool:
        """Whether it has numbers: not while a program is traced."""
        return tracing.program is None

    def __bool__(self) -> bool:
        if self.is_numbers and self.size != 1:
            raise ValueError(f"`bool` of a tensor of shape {self.shape} is ambiguous: use `any` or `all`")
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self.dtype is u1 or self.dtype.is_float:
            raise TypeError(f"an index is an integer, not `{self.dtype}`")
        return int(self.item())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor without axes has no length")
        if not isinstance(self._native.shape[0], int):
            raise TypeError("the size of the first axis is known only at run time: use `x.shape[0]`")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        n = len(self)
        if tracing.trace is None and tracing.mapped is None and not self._native.is_one_of_many():
            # Each slice would compute it again.
            self.realize()
        return (self[k] for k in builtins.range(n))

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    __hash__ = object.__hash__

    # Other types.

    def astype(self, dtype: Any, *, copy: bool = True) -> Tensor:
        """The elements converted: floats to integers towards zero, to ``u1`` by being other than zero."""
        if _complex.complex_type(dtype) is not None:
            from aerogel.tensor._creation import zeros_like

            return _complex.joined(self, zeros_like(self)).astype(dtype)  # type: ignore[return-value]
        return Tensor(self._native.cast(_types.name_of(dtype)), self._outside)

    def bitcast(self, dtype: Any) -> Tensor:
        """The elements' bits as another type of the same width."""
        return Tensor(self._native.bitcast(_types.name_of(dtype)), self._outside)

    def outside(self, mode: str) -> Tensor:
        """The tensor with another rule for out-of-bounds indices: ``error``, ``clamp``, ``wrap`` or ``zero``."""
        if mode not in ("error", "clamp", "wrap", "zero"):
            raise ValueError(f"outside is error, clamp, wrap or zero, not {mode!r}")
        return Tensor(self._native.again(), mode)

    # Shapes.

    def reshape(self, *shape: Any) -> Tensor:
        """The elements, in row-major order, in another shape; one size may be -1."""
        from aerogel.tensor import _shapes

        return _shapes.reshape(self, shape[0] if len(shape) == 1 else shape)

    def permute(self, *axes: Any) -> Tensor:
        """The axes in another order."""
        order = _types.whole_numbers(axes[0] if len(axes) == 1 else axes, "permute")
        return Tensor(self._native.permute(order), self._outside)

    def transpose(self, *axes: Any) -> Tensor:
        """The axes in another order; without one in the opposite order."""
        return self.T if axes in ((), (None,)) else self.permute(*axes)

    def flatten(self) -> Tensor:
        """The elements row by row along one axis."""
        return self.reshape(-1)

    def unsqueeze(self, axis: int = -1) -> Tensor:
        """With a new axis of size 1."""
        return Tensor(self._native.unsqueeze([axis]), self._outside)

    def squeeze(self, axis: int | Sequence[int] | None = None) -> Tensor:
        """Without these axes of size 1; without an ``axis``, all of them are removed."""
        axes = [k for k, n in enumerate(self.shape) if n == 1] if axis is None else axis
        return Tensor(self._native.squeeze(_types.whole_numbers(axes, "squeeze")), self._outside)

    # In programs.

    @property
    def val(self) -> Tensor:
        """In a program: the value, which may be set, as in ``x.val += 1``."""
        return self

    @val.setter
    def val(self, value: Any) -> None:
        self.set(value)

    def set(self, value: Any) -> None:
        """In a program: another value from here on; in a branch or a loop only at the points that are in it."""
        if tracing.program is None:
            raise RuntimeError("`set` is for tensors of a program that is traced")
        tracing.program.set(self, value)

    # Items.

    def __getitem__(self, key: Any) -> Tensor:
        program = tracing.program
        x = self if program is None else inside(self)
        native = x._native.get(key, x._outside, program is not None and program.divides_integers)
        if native is None:
            from aerogel.tensor import _items

            return _items.by_truth(x, key)
        out = Tensor(native, x._outside)
        if program is not None:
            # What is scattered there names memory and a key.
            out._made = (x, key)
        return out

    def __setitem__(self, key: Any, value: Any) -> None:
        _held.expect_held(self)
        from aerogel.tensor import _items

        expect_free(self)
        if _items.takes_by_truth(key, value):
            _items.set_by_truth(self, key, value)
            renew(self)
            return
        if tracing.program is not None:
            tracing.program.store(self, key, value)
            return
        if tracing.mapped is not None and self._made is not tracing.mapped:
            raise ValueError("`vmap`: the function stores to a tensor that was made outside of it: store to a copy")
        _items.store(self, key, value)
        renew(self)


class GivenNumber(Tensor):
    """A number of Python's that a program is given: it takes the type of what is beside it, as a written one does."""

    __slots__ = ("_wide", "sample")

    def __init__(self, wide: Any, sample: Any, dtype: DataType) -> None:
        super().__init__(wide.cast(dtype._aerogel_dtype))
        self._wide = wide
        #: A number of the same type of Python's.
        self.sample = sample

    def astype(self, dtype: Any, *, copy: bool = True) -> Tensor:
        """The number in a type, of which it loses no digits in between."""
        if _complex.complex_type(dtype) is not None:
            return super().astype(dtype, copy=copy)
        return Tensor(self._wide.cast(_types.name_of(dtype)))


_native.set_tensor_class(Tensor)


def _restored(numbers: Any, outside: str, is_parameter: bool = False) -> Tensor:
    """What ``pickle`` makes a tensor of."""
    made = asarray(numbers).outside(outside)
    return made.requires_grad_() if is_parameter else made  # type: ignore[no-any-return]


def is_number(value: Any) -> bool:
    """Whether this is a number of Python's, which takes the type of what is beside it; NumPy's have their own."""
    return isinstance(value, (bool, int, float)) and not hasattr(value, "dtype")


def constant(value: Any, dtype: DataType) -> Tensor:
    """One number, as an operand."""
    return Tensor(_native.NativeTensor.constant(dtype._aerogel_dtype, _types.checked(value, dtype), tracing.trace))


def asarray(obj: Any, /, dtype: Any = None, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor of a list, a number, a NumPy array (copied), a ``ti.ndarray`` (without a copy), or an array that
    supports DLPack.

    If a kernel writes to the ``ti.ndarray`` later, operations that are not evaluated yet see the new values.

    Args:
        obj: The numbers.
        dtype: Their type; by default that of ``obj``, and for Python numbers that of ``ti.init``.
        device: ``"cpu"``.
        copy: Whether the tensor has memory of its own; ``False`` raises where it must.
    """
    if device not in (None, "cpu"):
        raise ValueError(f"there is no device {device!r}; tensors are on 'cpu'")
    if isinstance(obj, Tensor):
        if dtype is None or _complex.complex_type(dtype) is None and dtype_of(dtype) is obj.dtype:
            return inside(obj)._as_it_is() if copy else _own(obj)
        _expect_copies(copy, obj.dtype, dtype)
        return inside(obj).astype(dtype)
    if isinstance(obj, _complex.ComplexTensor):
        if dtype is None or _complex.complex_type(dtype) is obj.dtype:
            return obj.copy() if copy else obj  # type: ignore[return-value]
        _expect_copies(copy, obj.dtype, dtype)
        return obj.astype(dtype)  # type: ignore[return-value]
    if _complex.is_complex(obj) or (dtype is not None and _complex.complex_type(dtype) is not None):
        import numpy as np

        wanted = "complex128" if dtype is None else str(_complex.complex_type(dtype) or dtype)
        if dtype is None and not hasattr(obj, "dtype"):
            wanted = str(_complex.of_part(_types.default_float()))
        array = np.asarray(obj) if hasattr(obj, "dtype") and dtype is None else np.asarray(obj, dtype=wanted)
        return _complex.of_numpy(array, dtype)  # type: ignore[return-value]
    if isinstance(obj, _native.NativeField):
        if tracing.program is not None:
            out = tracing.program.all_of(obj)
            return out if dtype is None else out.astype(dtype)
        field: Any = obj
        read = _on_tape(field)
        if read is not None:
            return read if dtype is None else read.astype(dtype)
        obj = field.to_numpy()
    if is_number(obj):
        return constant(obj, dtype_of(dtype) if dtype is not None else _types.of_number(obj, None))
    if isinstance(obj, _native.NativeNdarray):
        read = _on_tape(obj)
        if read is not None:
            return read if dtype is None else read.astype(dtype)
    if isinstance(obj, _native.NativeNdarray) and not copy:
        out = Tensor(_native.NativeTensor.of_ndarray(obj))
        if dtype is None or _complex.complex_type(dtype) is None and dtype_of(dtype) is out.dtype:
            return out
        _expect_copies(copy, out.dtype, dtype)
        return out.astype(dtype)
    if copy is False:
        raise ValueError("only a ti.ndarray becomes a tensor without a copy")
    return _own(_of_numpy(obj, dtype))


def _expect_copies(copy: bool | None, given: Any, wanted: Any) -> None:
    """Refuses to convert where nothing may be copied."""
    if copy is False:
        raise ValueError(f"a tensor of {given} is copied to become one of {wanted}; leave out copy=False")


def _on_tape(source: Any) -> Tensor | None:
    """A tensor of a field or an array with a gradient that a tape computes; forward mode refuses that."""
    recorder = _native.recorder()
    if recorder is None or tracing.program is not None:
        return None
    from aerogel.ad._gradients import expect_constant, has_gradient

    read = getattr(recorder, "read", None)
    if read is not None and has_gradient(source):
        return read(source)  # type: ignore[no-any-return]
    expect_constant(source, "a tensor of")
    return None


def inside(x: Tensor) -> Tensor:
    """The tensor; while a program is traced, one from outside as a constant of that."""
    program = tracing.program
    return x if program is None or not isinstance(x, Tensor) or not x._native.is_outside else program.constant(x)


def _own(x: Tensor) -> Tensor:
    """The same, as a tensor that the program may set."""
    own = inside(x)
    return x if own is x else Tensor(own._native, own._outside)


def _of_numpy(obj: Any, dtype: Any) -> Tensor:
    import numpy as np

    if _native.is_torch_tensor(obj):
        from aerogel.data import _torch

        if obj.requires_grad and not _native.are_gradients_off() and tracing.program is None:
            # Gradients by values computed from it continue in PyTorch.
            out: Tensor = of_torch[0](obj)
            return out if dtype is None else out.astype(dtype)

        obj = _torch.on_cpu(obj)
        if not obj.is_complex():
            out = Tensor(_native.NativeTensor.of_numpy(obj))
            return out if dtype is None else out.astype(dtype)
        obj = obj.detach().clone().resolve_conj().numpy()
    if hasattr(obj, "__dlpack__") and not hasattr(obj, "__array_struct__") and not hasattr(obj, "__array__"):
        obj = np.from_dlpack(obj)
    if isinstance(obj, range) or hasattr(obj, "to_list") and not hasattr(obj, "__array_interface__"):
        # Python's numbers in a row, whatever holds them.
        obj = list(obj) if isinstance(obj, range) else obj.to_list()
    if isinstance(obj, np.ma.MaskedArray):
        raise TypeError("a tensor has no mask: take `array.filled(value)`, or `array.data`")
    is_list = isinstance(obj, (list, tuple))
    # Numbers of Python's have no type of their own.
    is_plain = False
    if is_list:
        kinds = _lists.kinds(obj)
        is_plain = all(issubclass(k, (int, float, complex)) and not hasattr(k, "dtype") for k in kinds)
        if any(issubclass(k, (Tensor, _complex.ComplexTensor)) for k in kinds):
            if tracing.program is not None:
                from aerogel.tensor._shapes import nested

                return nested(obj, dtype)
            obj = _without_tensors(obj)
    array = _lists.array_of(obj)
    if array.dtype.kind == "c":
        kind = dtype if dtype is not None or not is_plain else _complex.of_part(_types.default_float())
        return _complex.of_numpy(array, kind)  # type: ignore[return-value]
    if is_plain and array.size and (array.dtype.kind == "O" or array.dtype.kind == "f" and abs(array).max() >= 2.0**63):
        array = _lists.whole(obj, array, dtype is None or not (dtype_of(dtype).is_float or dtype_of(dtype) is u1))
    if dtype is None and is_plain:
        dtype = _lists.type_of_list(array)
    if array.dtype.kind == "O" or array.dtype.kind in "SU" and not hasattr(obj, "dtype") and dtype is None:
        raise TypeError(f"elements of a tensor are numbers, not {type(obj).__name__}" + _what_is_no_number(obj))
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.name == "bfloat16":
        out = Tensor(_native.NativeTensor.of_numpy(np.ascontiguousarray(array).reshape(array.shape)))
        return out if dtype is None else out.astype(dtype)
    if dtype is not None and dtype_of(dtype) is bf16:
        return asarray(array).astype(bf16)
    if dtype is not None:
        wanted = numpy_dtype(dtype_of(dtype))
        if is_plain and array.size and array.dtype.kind in "iuf" and np.dtype(wanted).kind in "iu":
            limits = np.iinfo(wanted)
            least, most = array.min(), array.max()
            if not (limits.min <= least and most <= limits.max):
                raise OverflowError(f"{least if least < limits.min else most} does not fit {dtype_of(dtype)}")
        array = array.astype(wanted)
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise TypeError(f"tensors do not support NumPy's dtype {array.dtype}")
    # Where elements lie is looked up by rows; NumPy makes an array of one axis of a single number here.
    return Tensor(_native.NativeTensor.of_numpy(np.ascontiguousarray(array).reshape(array.shape)))


def _what_is_no_number(obj: Any) -> str:
    if isinstance(obj, (list, tuple)):
        for part in obj:
            if isinstance(part, (list, tuple)):
                if found := _what_is_no_number(part):
                    return found
            elif not is_number(part) and not hasattr(part, "dtype"):
                return f" with {part!r} in it"
    return ""


def _without_tensors(obj: Any) -> Any:
    if isinstance(obj, (list, tuple)):
        return [_without_tensors(x) for x in obj]
    return obj.numpy() if isinstance(obj, (Tensor, _complex.ComplexTensor)) else obj


def operands(*values: Any, to_float: bool = False) -> list[Tensor]:
    """Operands of one type: numbers of Python's take the type of the tensors beside them."""
    if tracing.program is None and type(values[0]) is Tensor and all(type(value) is Tensor for value in values):
        dtype = values[0].dtype
        # Most are, and nothing is to be done then.
        if (dtype.is_float or not to_float) and all(value.dtype is dtype for value in values):
            return list(values)
    dtype: DataType | None = None
    made: list[Any] = []
    for value in values:
        if isinstance(value, Tensor) or is_number(value):
            made.append(value if is_number(value) else inside(value))
        else:
            made.append(asarray(value))
            if isinstance(made[-1], _complex.ComplexTensor):
                raise TypeError(f"this takes real numbers, not `{made[-1].dtype}`")
        if isinstance(made[-1], Tensor) and not isinstance(made[-1], GivenNumber):
            dtype = made[-1].dtype if dtype is None else _types.promote(dtype, made[-1].dtype)
    for value in made:
        if not isinstance(value, Tensor) or isinstance(value, GivenNumber):
            kind = _types.of_number(value.sample if isinstance(value, GivenNumber) else value, dtype)
            dtype = kind if dtype is None or dtype is not kind else dtype
    assert dtype is not None
    if to_float and not dtype.is_float:
        dtype = _types.default_float()
    return [_of_type(x, dtype) for x in made]


def _of_type(x: Any, dtype: DataType) -> Tensor:
    if not isinstance(x, Tensor):
        return constant(x, dtype)
    return x if x.dtype is dtype and not isinstance(x, GivenNumber) else x.astype(dtype)


def unary(name: str, to_float: bool = False) -> Callable[[Any], Tensor]:
    """The function of one operand that is recorded by a name."""

    def function(x: Any, /) -> Tensor:
        if _complex.is_complex(x):
            return _complex.unary(name, asarray(x))  # type: ignore[arg-type]
        (x,) = operands(x, to_float=to_float)
        if name == "neg":
            expect_no_truth(name, x)
        return Tensor(x._native.unary(name), x._outside)

    return function


#: Sums and products of booleans are booleans.
_OF_TRUTH = {"add": "or", "mul": "and"}
#: Operations that booleans do not have: NumPy refuses some, and makes integers of 8 bits for others.
NOT_OF_TRUTH = {
    "neg": "use `~x`", "positive": "use `x.copy()`", "sub": "use `x ^ y`", "floor_divide": "", "remainder": "",
    "rem": "", "power": "", "left_shift": "", "right_shift": "",
}  # fmt: skip


def expect_no_truth(name: str, x: Tensor) -> None:
    """Refuses an operation of booleans, which is recorded by a name.

    Raises:
        TypeError: With what to write.
    """
    if x.dtype is u1:
        remedy = NOT_OF_TRUTH[name] and f"{NOT_OF_TRUTH[name]}, or "
        called = {"neg": "negative", "sub": "subtract", "power": "pow"}.get(name, name)
        raise TypeError(f"`{called}` takes numbers, not booleans: {remedy}convert them by `x.astype(ti.i32)`")


def binary(name: str, to_float: bool = False) -> Callable[[Any, Any], Tensor]:
    """The function of two operands that is recorded by a name."""

    def function(x1: Any, x2: Any, /) -> Tensor:
        if _complex.is_complex(x1) or _complex.is_complex(x2):
            return _complex.binary(name, x1, x2)
        recorded = name
        if name in _types.COMPARISONS and (known := _types.beyond(name, x1, x2)) is not None:
            # A tensor equals itself: integers have no NaN.
            x1 = x2 = x1 if isinstance(x1, Tensor) else x2
            recorded = "eq" if known else "ne"
        a, b = operands(x1, x2, to_float=to_float)
        if a.dtype is u1 and name in _OF_TRUTH:
            recorded = _OF_TRUTH[name]
        elif name in NOT_OF_TRUTH:
            expect_no_truth(name, a)
        return Tensor(a._native.binary(recorded, b._native))

    return function
