"""Arrays of windows that have not changed are the same bytes, and what is known of them is not found again."""

import gc

import numpy as np
import pytest

import aerogel as ti
from aerogel.ui import _arrays, _kept, _normals

N = 50_000


@pytest.fixture(autouse=True)
def fresh():
    ti.init(arch=ti.cpu)
    _kept._entries.clear()
    _kept._by_bytes.clear()


def sources():
    field = ti.field(ti.i32, N)
    array = ti.ndarray(ti.i32, N)
    plain = np.zeros(N, np.int32)
    for source in (field, array):
        source.from_numpy(np.arange(N, dtype=np.int32))
    plain[:] = np.arange(N)
    return [field, array, plain]


@pytest.mark.parametrize("which", range(3))
def test_what_has_not_changed_is_the_same_object(which):
    source = sources()[which]
    made = _arrays.indices(source)
    assert _arrays.indices(source) is made
    source[N - 1] = 7
    again = _arrays.indices(source)
    assert again is not made and np.frombuffer(again, np.uint32)[-1] == 7
    assert np.frombuffer(made, np.uint32)[-1] == N - 1
    assert _arrays.indices(source) is again


def test_negative_indices_are_errors_each_time():
    source = np.arange(N, dtype=np.int32)
    assert _arrays.indices(source)
    source[5] = -3
    for _ in range(2):
        with pytest.raises(IndexError, match=r"indices\[5\] is -3"):
            _arrays.indices(source)
    source[5] = 5
    assert np.frombuffer(_arrays.indices(source), np.uint32)[5] == 5


def test_large_indices_that_wrap_are_errors():
    source = np.arange(N, dtype=np.int64)
    assert _arrays.indices(source)
    source += 2**32
    with pytest.raises(IndexError, match=rf"indices\[0\] is {2**32}"):
        _arrays.indices(source)


def test_bounds_are_those_of_the_part_that_is_drawn():
    indices = _arrays.indices(np.arange(N, dtype=np.int32))
    _arrays.check_indices(indices, 0, 10, 0, 10)
    with pytest.raises(IndexError, match=r"indices\[10\] names vertex 10, but there are 10"):
        _arrays.check_indices(indices, 0, 11, 0, 10)
    with pytest.raises(IndexError, match=r"indices\[9\] names vertex 10"):
        _arrays.check_indices(indices, 0, 10, 1, 10)


def test_a_place_that_becomes_nan_is_an_error_and_one_that_is_mended_is_none():
    places = np.zeros((N, 3), np.float32)
    for wrong in (False, True, True, False):
        places[3, 1] = np.nan if wrong else 0.0
        made = _arrays.points(places, 3, "centers")
        if wrong:
            with pytest.raises(ValueError, match=r"centers\[3\] is"):
                _arrays.check_places("centers", made, 3, {})
        else:
            _arrays.check_places("centers", made, 3, {})


def test_zeros_of_another_sign_and_nans_are_told_apart():
    values = np.zeros(N, np.float32)
    made = _arrays.numbers(values, "radii")
    values[-1] = -0.0
    assert _arrays.numbers(values, "radii") is not made
    values[0] = np.nan
    assert _arrays.numbers(values, "radii") is _arrays.numbers(values, "radii")


def test_normals_follow_vertices_and_indices():
    n = 150
    a = np.arange(n - 1)[:, None] * n + np.arange(n - 1)
    corners = np.stack([a, a + 1, a + n, a + 1, a + n + 1, a + n], -1).reshape(-1).astype(np.int32)
    places = np.zeros((n * n, 3), np.float32)
    places[:, 0], places[:, 1] = np.divmod(np.arange(n * n), n)

    def normals(base=0):
        return _normals.of_vertices(_arrays.points(places, 3, "vertices"), _arrays.indices(corners), base)

    flat = normals()
    assert normals() is flat and abs(np.frombuffer(flat, np.float32).reshape(-1, 3)[:, 2]).min() > 0
    places[:, 2] = places[:, 0]
    tilted = normals()
    assert tilted != flat
    corners[:] = corners.reshape(-1, 3)[:, ::-1].reshape(-1)
    assert np.allclose(np.frombuffer(normals(), np.float32), -np.frombuffer(tilted, np.float32), atol=1e-5)
    assert normals(-1) == bytes(len(tilted))


def test_what_is_gone_is_not_kept():
    for _ in range(5):
        _arrays.numbers(np.ones(N, np.float32), "radii")
    gc.collect()
    assert not _kept._entries and not _kept._by_bytes


def test_few_arrays_are_kept():
    all_ = [np.full(N, k, np.float32) for k in range(2 * _kept._MOST)]
    for values in all_:
        _arrays.numbers(values, "radii")
    assert len(_kept._entries) == len(_kept._by_bytes) == _kept._MOST
    kept = _arrays.numbers(all_[-1], "radii")
    assert _arrays.numbers(all_[-1], "radii") is kept
    assert _arrays.numbers(all_[0], "radii") == np.zeros(N, np.float32).tobytes()
