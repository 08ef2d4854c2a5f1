"""Arrays whose memory is on a GPU, to and from other packages, without copying."""

import gc

import numpy as np
import pytest

import aerogel as ti


@pytest.fixture
def machine(monkeypatch):
    monkeypatch.setenv("AEROGEL_CUDA", "machine")
    ti.init(arch=ti.cuda, log_level="error")
    yield
    ti.reset()


class Theirs:
    """An array of a package that has ``__cuda_array_interface__`` and nothing else."""

    def __init__(self, array, **changed):
        self._array = array
        self._changed = changed

    @property
    def __cuda_array_interface__(self):
        return self._array.__cuda_array_interface__ | self._changed


class Speaks:
    """An array of a package that speaks DLPack and nothing else."""

    def __init__(self, array):
        self._array = array
        self.streams = []

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return self._array._dlpack()

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


@ti.kernel
def add(a: ti.types.ndarray(), k: ti.f32):
    for i in range(a.shape[0]):
        a[i] += k


def test_what_one_writes_the_other_sees(machine):
    a = ti.ndarray(ti.f32, 5)
    a.from_numpy(np.arange(5, dtype=np.float32))
    for kind in (Theirs, Speaks):
        b = ti.from_dlpack(kind(a))
        assert (b.shape, b.dtype) == ((5,), ti.f32)
        before = a.to_numpy()
        add(b, 2)
        assert (a.to_numpy() == before + 2).all()
        a[1] = 50
        assert b[1] == 50
        b.fill(7)
        assert a.to_numpy().tolist() == [7] * 5
        a.from_numpy(np.arange(5, dtype=np.float32))
        assert b.to_numpy().tolist() == [0, 1, 2, 3, 4]
        b.from_numpy(np.full(5, 3, np.float32))
        assert [a[i] for i in range(5)] == [3] * 5
        c = ti.ndarray(ti.f32, 5)
        c.copy_from(b)
        assert c.to_numpy().tolist() == [3] * 5
        # More accesses of single numbers than those after which other arrays come home.
        for k in range(100):
            b[k % 5] = k
            assert a[k % 5] == k


def test_they_are_arguments_of_kernels(machine):
    a = ti.ndarray(ti.f32, 6)
    theirs = Speaks(a)
    add(Theirs(a), 1)
    add(theirs, 2)
    assert a.to_numpy().tolist() == [3] * 6
    # Whoever gives memory waits for our stream, and we for his. It is asked twice, since it could return copies.
    assert theirs.streams == 2 * [a.__cuda_array_interface__["stream"]]

    @ti.kernel
    def vectors(v: ti.types.ndarray(ti.types.vector(3, ti.f32), 1)):
        for i in v:
            v[i] = [i, 10 * i, 5]

    vectors(Theirs(a, shape=(2, 3)))
    assert a.to_numpy().tolist() == [0, 0, 5, 1, 10, 5]

    # Views of one memory are no different arrays.
    @ti.kernel
    def shift(x: ti.types.ndarray(), y: ti.types.ndarray()):
        ti.loop_config(serialize=True)
        for i in range(5):
            x[i + 1] = y[i] + 1

    a.fill(0)
    shift(a, Theirs(a))
    assert a.to_numpy().tolist() == [0, 1, 2, 3, 4, 5]


def test_tensors_that_require_gradients(machine):
    class Tensor(Theirs):
        requires_grad = True

        @property
        def __cuda_array_interface__(self):
            raise RuntimeError("it requires a gradient")

        def detach(self):
            return Theirs(self._array)

    a = ti.ndarray(ti.f32, 4)
    add(Tensor(a), 3)
    assert a.to_numpy().tolist() == [3] * 4
    assert ti.from_dlpack(Tensor(a))[2] == 3


def test_waiting_for_all_kernels(machine):
    a = ti.ndarray(ti.f32, 4)
    add(a, 3)
    ti.sync()
    assert a[0] == 3


def test_the_memory_lives_as_long_as_somebody_uses_it(machine):
    a = ti.ndarray(ti.i32, 1000)
    a.fill(4)
    b = ti.from_dlpack(Speaks(a))
    capsule = a.__dlpack__()
    del a
    gc.collect()
    assert b.to_numpy().sum() == 4000
    del capsule, b
    gc.collect()


def test_every_type_and_matrices(machine):
    for dtype in (ti.i8, ti.u8, ti.i16, ti.u16, ti.i32, ti.u32, ti.i64, ti.u64, ti.f16, ti.f32, ti.f64, ti.u1):
        a = ti.ndarray(dtype, (2, 3))
        a.fill(1)
        for kind in (Theirs, Speaks):
            b = ti.from_dlpack(kind(a))
            assert b.dtype is dtype and b.shape == (2, 3)
            assert b.to_numpy().sum() == 6
    m = ti.Matrix.ndarray(2, 2, ti.f32, 4)
    m.fill(3)
    seen = ti.from_dlpack(Speaks(m), element_dim=2)
    assert (seen.shape, seen.element_shape) == ((4,), (2, 2))
    assert seen[2][1, 1] == 3
    assert m.__cuda_array_interface__["shape"] == (4, 2, 2)


def test_where_it_lies(machine):
    a = ti.ndarray(ti.f32, 3)
    assert a.__dlpack_device__() == (2, 0)
    # Who asks for the host's memory gets that, and a device can have it no more.
    host = np.asarray(a)
    assert a.__dlpack_device__() == (1, 0)
    add(a, 1)
    assert host.tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="shares its memory with NumPy"):
        a.__cuda_array_interface__  # noqa: B018
    b = ti.ndarray(ti.f32, 3)
    b.__cuda_array_interface__  # noqa: B018
    with pytest.raises(RuntimeError, match="is on a CUDA device and shared with another package"):
        np.asarray(b)


def test_what_cannot_be_shared(machine):
    a = ti.ndarray(ti.f32, (4, 4))

    def refused(kind, match, **changed):
        with pytest.raises(kind, match=match):
            ti.from_dlpack(Theirs(a, **changed))

    refused(ValueError, "not C-contiguous", strides=(4, 16))
    refused(TypeError, 'no type for elements of "<c8"', typestr="<c8")
    refused(TypeError, 'no type for elements of ">f4"', typestr=">f4")
    refused(ValueError, "not in its memory", data=(64, False))
    refused(ValueError, "which is not aligned for f32", data=(a.__cuda_array_interface__["data"][0] + 2, False))
    with pytest.raises(ValueError, match="the array only 1"):
        ti.from_dlpack(Theirs(a, shape=(16,)), element_dim=2)
    b = ti.from_dlpack(Theirs(a, data=(a.__cuda_array_interface__["data"][0], True)))
    with pytest.raises(ValueError, match="read-only"):
        b[0, 0] = 1
    with pytest.raises(BufferError, match="read-only"):
        b.__dlpack__()


def test_where_kernels_run_on_the_cpu(machine):
    a = ti.ndarray(ti.f32, 3)
    there = a.__cuda_array_interface__

    class Kept:
        __cuda_array_interface__ = there

    ti.init(arch=ti.cpu, log_level="error")
    if ti.cfg.arch == ti.cuda:
        pytest.skip("the environment decides the arch")
    with pytest.raises(ValueError, match=r"kernels run on the CPU: call ti.init\(arch=ti.cuda\)"):
        ti.from_dlpack(Kept())
    b = ti.ndarray(ti.f32, 3)
    assert not hasattr(b, "__cuda_array_interface__")
    assert b.__dlpack_device__() == (1, 0)
    assert np.from_dlpack(b).tolist() == [0, 0, 0]
