"""Matrices and vectors in Python: what they do outside kernels, as Taichi's do."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import aerogel as ti

vec3 = ti.math.vec3


def test_negative_indices_count_from_the_end():
    v, m = ti.Vector([3, 4, 5]), ti.Matrix([[1, 2], [3, 4]])
    assert (v[-1], v[-3], m[-1, 0], m[0, -1]) == (5, 3, 3, 2)
    assert m[-1, :].to_list() == [3, 4]
    v[-1] = 9
    m[-1, -1] = 8
    m[-2, :] = [6, 7]
    assert v.to_list() == [3, 4, 9] and m.to_list() == [[6, 7], [3, 8]]
    for index in (3, -4):
        with pytest.raises(IndexError, match=f"index {index} is out of range"):
            v[index]
    with pytest.raises(IndexError):
        m[0, -3]


def test_numbers_of_several_types_become_the_widest():
    assert str(ti.Vector([1, 2.5])) == "[1.  2.5]"
    assert [type(x) for x in ti.Vector([1, 2.5, True])] == [float] * 3
    assert [type(x) for x in ti.Vector([True, 2])] == [int] * 2
    assert [type(x) for x in ti.Vector([True, False])] == [bool] * 2
    assert [type(x) for row in ti.Matrix([[1, 2], [3, 4.5]]).to_list() for x in row] == [float] * 4
    assert ti.Matrix.diag(2, 0.5).to_list() == [[0.5, 0.0], [0.0, 0.5]]
    assert type(ti.Matrix.diag(2, 0.5)[0, 1]) is float


def test_products_of_vectors_and_matrices():
    v, m = ti.Vector([1, 2]), ti.Matrix([[1, 2], [3, 4]])
    assert v @ v == 5
    assert (v @ m).to_list() == [7, 10]
    assert (m @ v).to_list() == [5, 11]
    assert (v @ ti.Matrix([[1, 2, 3], [4, 5, 6]])).to_list() == [9, 12, 15]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda v, m: m @ ti.Vector([1, 2, 3]),
        lambda v, m: ti.Vector([1, 2, 3]) @ m,
        lambda v, m: v.dot(ti.Vector([1, 2, 3])),
        lambda v, m: m.dot(v),
        lambda v, m: v.cross(ti.Vector([1, 2, 3])),
        lambda v, m: m.cross(m),
        lambda v, m: m.outer_product(v),
        lambda v, m: v.outer_product(m),
        lambda v, m: v.trace(),
        lambda v, m: ti.Matrix([[1, 2, 3], [4, 5, 6]]).inverse(),
        lambda v, m: ti.Matrix([[1, 2], [3]]),
        lambda v, m: ti.Matrix.rows([[1, 2], [3]]),
        lambda v, m: ti.Vector([[1, 2], [3, 4]]),
    ],
)
def test_shapes_that_do_not_fit_are_compilation_errors(wrong):
    for kind in (ti.TaichiCompilationError, ValueError):
        with pytest.raises(kind):
            wrong(ti.Vector([1, 2]), ti.Matrix([[1, 2], [3, 4]]))


@pytest.mark.parametrize("wrong", [3, "abc", None, range(3), []])
def test_what_no_matrix_is_made_from(wrong):
    for kind in (ti.Matrix, ti.Vector):
        with pytest.raises(ti.TaichiTypeError, match="made from a list"):
            kind(wrong)


def test_a_vector_keeps_the_type_of_its_numbers():
    v, m, w = ti.Vector([1, 2, 3]), ti.Matrix([[1, 2], [3, 4]]), ti.Vector([1.0, 2.0])
    v[0], m[0, 1], w[0] = 7.9, -7.9, 3
    assert v.to_list() == [7, 2, 3] and m.to_list() == [[1, -7], [3, 4]]
    assert w.to_list() == [3.0, 2.0]
    v.xy = [1.5, 2.5]
    assert v.to_list() == [1, 2, 3]


def test_a_vector_of_floats_and_integers_takes_floats():
    v = ti.max(ti.Vector([1, 2]), ti.Vector([0.5, 3.5]))
    v[0] = 0.9
    assert v.to_list() == [0.9, 3.5]
    w = ti.Vector([1, 2])
    w[0] = 5.9
    assert w.to_list() == [5, 2]


def elements():
    """A vector and a matrix, each read from a field, read from an array, and made of a list."""
    v = ti.Vector.field(3, ti.f32, shape=4)
    m = ti.Matrix.field(2, 2, ti.i32, shape=(2, 2))
    w, n = ti.Vector.ndarray(3, ti.f32, shape=4), ti.Matrix.ndarray(2, 2, ti.i32, shape=(2, 2))
    v[1] = w[1] = [1, 2, 3]
    m[1, 0] = n[1, 0] = [[1, 2], [3, 4]]
    return [v[1], w[1], ti.Vector([1.0, 2.0, 3.0])], [m[1, 0], n[1, 0], ti.Matrix([[1, 2], [3, 4]])]


def test_elements_that_are_read_are_vectors_and_matrices(arch):
    vectors, matrices = elements()
    for v in vectors:
        assert type(v) is ti.Vector and isinstance(v, ti.Matrix)
        assert (v.n, v.m, v.ndim, len(v), v.get_shape()) == (3, 1, 1, 3, (3,))
        assert (v.x, v.g, v.p, v[-1], v.zyx.to_list(), list(v)) == (1, 2, 3, 3, [3, 2, 1], [1, 2, 3])
        assert str(v) == "[1. 2. 3.]" and ((v + 1) * 2).to_list() == [4, 6, 8] and v.to_numpy().tolist() == [1, 2, 3]
    for m in matrices:
        assert type(m) is ti.Matrix
        assert (m.n, m.m, m.ndim, m[1, 0], m[-1, -1], m[0, :].to_list()) == (2, 2, 2, 3, 4, [1, 2])
        assert (m @ m).to_list() == [[7, 10], [15, 22]]
        with pytest.raises(IndexError):
            m[1]
        with pytest.raises(AttributeError):
            _ = m.x
    for one in [*vectors, *matrices]:
        assert weakref.ref(one)() is one
        for other in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)):
            assert type(other) is type(one) and other.to_list() == one.to_list()
        with pytest.raises(AttributeError, match="no attribute"):
            one.colour = 1
        with pytest.raises(AttributeError, match="no attribute"):
            one.n = 1
        assert not hasattr(one, "colour") and not hasattr(one, "__dict__")


def test_components_of_elements_are_written_to_where_they_were_read(arch):
    v = ti.Vector.field(3, ti.f32, shape=4)
    w = ti.Vector.ndarray(3, ti.f32, shape=4)
    k = ti.Matrix.field(2, 2, ti.i32, shape=2)
    for x in (v, w):
        element = x[2]
        element[0], element.y, element[-1] = 1, 2.5, np.float32(4)
        assert element.to_list() == x[2].to_list() == [1, 2.5, 4]
        x[2].xz = [7, 8]
        x[2][:2] = [5, 6]
        assert x[2].to_list() == [5, 6, 8]
        x[2].fill(1)
        assert x[2].to_list() == [1, 1, 1]
        pickle.loads(pickle.dumps(element))[0] = 9
        copy.copy(element).x = 9
        assert x[2].to_list() == [1, 1, 1]
    k[1][0, 1] = 3
    assert k[1].to_list() == [[0, 3], [0, 0]]
    element = k[1]
    with pytest.raises(TypeError, match="takes an integer"):
        element[0, 1] = 2.5
    assert element[0, 1] == k[1][0, 1] == 3


def test_what_a_vector_of_its_own_is_set_to():
    v = ti.Vector([1, 2])
    v[0], v.y = 2.9, 3.9
    assert v.to_list() == [2, 3] and type(v[0]) is int
    f = ti.Vector([1, 2], ti.f32)
    f[0] = 3
    assert f.to_list() == [3.0, 2.0] and type(f[0]) is float
    i = ti.Vector([1.5, 2.5]).cast(ti.i32)
    i.x = 7.9
    assert i.to_list() == [7, 2] and type(i[0]) is int


def test_classes_derived_from_vectors():
    class Color(ti.Vector):
        def __init__(self, r, g, b):
            super().__init__([r, g, b])
            self.r *= 2

        def __getitem__(self, key):
            return super().__getitem__(key) + 100

    c = Color(1.0, 2.0, 3.0)
    assert isinstance(c, ti.Vector) and c.to_list() == [2, 2, 3] and c[0] == 102 and c.b == 3


def test_an_element_that_its_field_refers_to_is_collected():
    ti.init()
    field = ti.Vector.field(2, ti.f32, 3)
    there = weakref.ref(field)
    field.first = field[0]
    del field
    gc.collect()
    assert there() is None


def test_unsigned_vectors_are_as_wide_as_int():
    """As Taichi 1.7.4: `default_ip=ti.i64` makes `uvec2` of `u64`."""
    ti.init(arch=ti.cpu, default_ip=ti.i64, log_level="error")

    @ti.kernel
    def run() -> ti.u64:
        return ti.math.uvec2(2**40, 1).x

    assert run() == 2**40
    ti.init(arch=ti.cpu, log_level="error")
    assert ti.math.uvec2.dtype == ti.u32
