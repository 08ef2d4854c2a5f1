"""Matrices and vectors in Python: what they do outside kernels, as Taichi's do."""

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
