"""Arrays of other packages: what kernels write is seen by whoever has the array, or refused."""

import gc

import numpy as np
import pytest

import aerogel as ti
from aerogel import tensor as t


# NumPy 1 has no flags of DLPack's.
HAS_FLAGS = int(np.__version__.split(".")[0]) >= 2


@ti.kernel
def count_up(a: ti.types.ndarray()):
    for I in ti.grouped(a):
        a[I] += 1


@ti.kernel
def total(a: ti.types.ndarray()) -> ti.f64:
    sum = ti.f64(0)
    for I in ti.grouped(a):
        sum += a[I]
    return sum


class Interface:
    """An array of a package that has ``__array_interface__`` and nothing else."""

    def __init__(self, array, copies=False):
        self._array, self._copies, self._held = array, copies, []

    @property
    def __array_interface__(self):
        array = self._array.copy() if self._copies else self._array
        self._held.append(array)
        return array.__array_interface__


class Structure(Interface):
    """One that has ``__array_struct__`` and nothing else."""

    __array_interface__ = None

    @property
    def __array_struct__(self):
        array = self._array.copy() if self._copies else self._array
        self._held.append(array)
        return array.__array_struct__


class Speaks:
    """One that speaks DLPack, of the first version or a later one, and nothing else."""

    def __init__(self, array, copies=False, versioned=True, **changed):
        self._array, self._copies, self._versioned, self._changed = array, copies, versioned, changed

    def __dlpack__(self, **kwargs):
        if not self._versioned and "max_version" in kwargs:
            raise TypeError("what is max_version?")
        array = self._array.copy() if self._copies else self._array
        return array.__dlpack__(**kwargs | self._changed)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()

    def __setitem__(self, key, value):
        self._array[key] = value


SHARING = {
    "interface": Interface,
    "structure": Structure,
    "dlpack": Speaks,
    "dlpack of the first version": lambda array: Speaks(array, versioned=False),
}
COPYING = {
    "interface": lambda array: Interface(array, copies=True),
    "structure": lambda array: Structure(array, copies=True),
    "dlpack": lambda array: Speaks(array, copies=True),
    "dlpack of the first version": lambda array: Speaks(array, copies=True, versioned=False),
}
if HAS_FLAGS:
    COPYING["dlpack that says so"] = lambda array: Speaks(array, copy=True)


@pytest.mark.parametrize("kind", SHARING)
def test_objects_that_show_their_memory_are_written(arch, kind):
    array = np.zeros((3, 4), np.float32)
    shown = SHARING[kind](array)
    count_up(shown)
    assert (array == 1).all() and total(shown) == 12
    turned = SHARING[kind](array.T[::-1])
    count_up(turned)
    assert (array == 2).all() and total(turned) == 24


@pytest.mark.parametrize("kind", COPYING)
def test_objects_that_return_copies_are_only_read(arch, kind):
    array = np.zeros(4, np.float32)
    given = COPYING[kind](array)
    assert total(given) == 0
    with pytest.raises(ValueError, match="is a copy that|returns a new copy on each access"):
        count_up(given)
    assert (array == 0).all()
    if "dlpack" in kind:
        with pytest.raises(ValueError, match="returns a new copy on each access"):
            ti.from_dlpack(given)


@pytest.mark.parametrize("kind", SHARING)
def test_objects_whose_memory_is_read_only(arch, kind):
    if kind == "dlpack of the first version" or kind == "dlpack" and not HAS_FLAGS:
        pytest.skip("it cannot say so")
    array = np.ones(4, np.float32)
    array.flags.writeable = False
    given = SHARING[kind](array)
    assert total(given) == 4
    with pytest.raises(ValueError, match="read-only"):
        count_up(given)


def test_arrays_over_the_memory_of_objects(arch):
    array = np.zeros((2, 3), np.float32)
    for versioned in (True, False):
        x = ti.from_dlpack(Speaks(array, versioned=versioned))
        x[1, 2] = 5
        count_up(x)
        assert array[1, 2] == 6
        array[:] = 0
    held = ti.from_dlpack(Speaks(np.full(1000, 3, np.float32)))
    gc.collect()
    assert total(held) == 3000


def test_what_protocols_raise(arch):
    class Fails(Speaks):
        def __dlpack__(self, **kwargs):
            raise RuntimeError("it has been deleted")

    class Elsewhere(Speaks):
        def __dlpack_device__(self):
            return (8, 0)

    class NoCapsule(Speaks):
        def __dlpack__(self, **kwargs):
            return 5

    array = np.zeros(4, np.float32)
    for kind, match in (
        (Fails, "argument `a` of kernel `count_up`: its `__dlpack__` raised .*it has been deleted"),
        (Elsewhere, "copy it to the CPU"),
        (NoCapsule, "returns no capsule"),
    ):
        with pytest.raises(ValueError, match=match):
            count_up(kind(array))
    with pytest.raises(TypeError, match="complex numbers of 64 bits"):
        count_up(Speaks(np.zeros(4, np.complex64)))

    class Arrays:
        def __array__(self, dtype=None, copy=None):
            return array

    with pytest.raises(TypeError, match="not a Arrays; pass `numpy.asarray"):
        count_up(Arrays())
    assert (array == 0).all()


class Overridden(np.ndarray):
    """A subclass whose methods return copies."""

    def __array__(self, dtype=None, copy=None):
        return np.zeros(self.shape)

    @property
    def __array_interface__(self):
        return np.zeros(self.shape).__array_interface__

    @property
    def __array_struct__(self):
        return np.zeros(self.shape).__array_struct__

    def __array_function__(self, func, types, args, kwargs):
        raise AssertionError

    def __array_finalize__(self, obj):
        pass


def test_subclasses_of_numpys_arrays_are_written_where_they_lie(arch):
    base = np.zeros(6, np.float32)
    count_up(base.view(Overridden))
    assert (base == 1).all()
    count_up(base[::-2].view(Overridden))
    assert base.tolist() == [1, 2, 1, 2, 1, 2]


def test_numbers_of_numpys_are_no_arrays_to_write(arch):
    @ti.kernel
    def put(a: ti.types.ndarray()):
        a[None] = 5

    @ti.kernel
    def get(a: ti.types.ndarray()) -> ti.f32:
        return a[None]

    a = np.arange(3, dtype=np.float32)
    assert get(a[1]) == 1
    for number in (a[1], a.sum(), np.float32(3)):
        with pytest.raises(ValueError, match="is a NumPy number, a copy of an element .pass `x.i, ...."):
            put(number)
    put(a[1, ...])
    assert a.tolist() == [0, 5, 2]


def unaligned(n=6, dtype=np.float32):
    return np.frombuffer(bytearray(n * np.dtype(dtype).itemsize + 1), dtype, n, offset=1)


def test_arrays_that_are_not_aligned_are_copied(arch):
    a = unaligned()
    a[:] = np.arange(6)
    f, x = ti.field(ti.f32, 6), ti.ndarray(ti.f32, 6)
    f.from_numpy(a)
    x.from_numpy(a)
    assert f.to_numpy().tolist() == x.to_numpy().tolist() == t.asarray(a).tolist() == a.tolist()
    assert t.asarray(a[::-1]).tolist() == a[::-1].tolist()
    assert total(a) == 15
    count_up(a)
    assert a.tolist() == [1, 2, 3, 4, 5, 6]
    v = ti.Vector.field(3, ti.f32, 2)
    v.from_numpy(a.reshape(2, 3))
    assert v[1].to_list() == [4, 5, 6]
    with pytest.raises(ValueError, match=r"aligned; pass a copy, such as numpy.array"):
        ti.from_dlpack(a)


def test_cells_are_set_from_arrays_that_are_not_aligned(arch):
    f = ti.field(ti.f32)
    ti.root.pointer(ti.i, 8).place(f)
    at, values = unaligned(2, np.int32), unaligned(2)
    at[:], values[:] = [5, 2], [7, 8]
    f.set_cells(at, values)
    assert (f[5], f[2], f[0]) == (7, 8, 0)


def test_masked_arrays_are_refused(arch):
    masked = np.ma.array(np.arange(3, dtype=np.float32), mask=[0, 1, 0])
    f, x = ti.field(ti.f32, 3), ti.ndarray(ti.f32, 3)
    for use in (
        total,
        count_up,
        f.from_numpy,
        x.from_numpy,
        t.asarray,
        ti.from_dlpack,
        t.from_dlpack,
        lambda a: count_up(a[::2]),
    ):
        with pytest.raises(TypeError, match="mask.*`array.filled"):
            use(masked)
    assert masked.data.tolist() == [0, 1, 2] and f.to_numpy().tolist() == [0, 0, 0]
    f.from_numpy(masked.filled(9))
    assert f.to_numpy().tolist() == [0, 9, 2]


def test_masked_arrays_without_a_mask_are_written(arch):
    x = np.ma.zeros(3, np.float32)
    count_up(x)
    assert x.tolist() == [1, 1, 1]


def test_a_strided_view_beside_the_array_under_it(arch):
    @ti.data_oriented
    class State:
        def __init__(self):
            self.x = ti.ndarray(ti.f32, 4)

        @ti.kernel
        def step(self, view: ti.types.ndarray()):
            self.x[2] = 7
            for i in view:
                view[i] += 1

        @ti.kernel
        def look(self, view: ti.types.ndarray()) -> ti.f32:
            return self.x[2] + view[1]

    s = State()
    seen = np.asarray(s.x)
    for view in (seen[::2], seen[::-1]):
        with pytest.raises(
            ValueError, match="`view` of kernel `step` and another one that the kernel uses share memory"
        ):
            s.step(view)
    assert s.x.to_numpy().tolist() == [0, 0, 0, 0]
    s.step(seen)
    assert s.x.to_numpy().tolist() == [1, 1, 8, 1]
    assert s.look(seen[::2]) == 16
    apart = np.zeros(8, np.float32)
    s.step(apart[::2])
    assert apart.tolist() == [1, 0] * 4


def test_what_a_tensor_shows_is_its_own():
    ti.init(arch=ti.cpu, log_level="error")

    def write(seen):
        # What PyTorch does to an array that is read-only.
        address, item = seen.__array_interface__["data"][0], seen.dtype
        import ctypes

        n = seen.size * item.itemsize
        ctypes.memset(address, 0x41, n)

    for make in (
        lambda: t.zeros((3,)),
        lambda: t.arange(3),
        lambda: t.full((3,), 2.5),
        lambda: t.asarray([1, 2, 3]) * 2,
        lambda: t.asarray([1.0, 2.0, 3.0]),
    ):
        expected = make().tolist()
        for show in (
            np.asarray,
            lambda x: np.asarray(x.to_ndarray()),
            lambda x: x.__array__(copy=False),
            np.from_dlpack,
        ):
            x = make()
            same, later = x.copy(), x + 0
            seen = show(x)
            assert seen.tolist() == expected
            write(seen)
            assert make().tolist() == expected, "what is made anew has the values that it should have"
            assert same.tolist() == expected
            assert later.tolist() == expected
            write(show(make()))
            assert make().tolist() == expected
        first = make()
        views = [np.asarray(first) for _ in range(3)]
        del first
        gc.collect()
        filler = [t.full((3,), k).tolist() for k in range(50)]
        assert all(v.tolist() == expected for v in views) and len(filler) == 50


def test_copies_for_numpy_are_said_to_be_copies():
    ti.init(arch=ti.cpu, log_level="error")
    x, z, m = t.arange(3), t.asarray([1 + 2j]), ti.Matrix([[1, 2], [3, 4]])
    f = ti.field(ti.f32)
    ti.root.pointer(ti.i, 3).place(f)
    with pytest.raises(ValueError, match="leave out copy=False"):
        x.__array__(np.float64, copy=False)
    assert x.__array__(np.int32, copy=False).tolist() == [0, 1, 2]
    for copied in (z, m, f):
        with pytest.raises(ValueError, match="leave out copy=False"):
            copied.__array__(copy=False)
        assert copied.__array__(copy=True).shape == copied.__array__().shape
    own = x.__array__(copy=True)
    own[0] = 9
    assert x.tolist() == [0, 1, 2]
    with pytest.raises(BufferError, match="leave out copy=False"):
        x.__dlpack__(copy=False)


def test_jax(cpu):
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    x = jnp.arange(4.0)
    assert total(x) == 6
    half = jnp.ones(3, jnp.bfloat16)
    assert total(half) == 3
    for use in (count_up, lambda x: count_up(ti.from_dlpack(x)), lambda x: ti.from_dlpack(x).fill(1)):
        with pytest.raises(ValueError, match="read-only"):
            use(x)
    assert x.tolist() == [0, 1, 2, 3]
    for transform in (jax.jit, jax.vmap, jax.grad):
        with pytest.raises(
            TypeError, match="is traced by JAX, and has no values: call the function that `ti.ad.jax_function"
        ):
            transform(lambda y: (total(y), y.sum())[1])(x)
    gone = jnp.arange(3.0)
    gone.delete()
    for use in (total, count_up, ti.from_dlpack):
        with pytest.raises(ValueError, match="was deleted, as by donating"):
            use(gone)
    with pytest.raises((TypeError, ValueError)):
        total(jax.random.key(0))
    assert total(x) == 6
