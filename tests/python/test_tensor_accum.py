"""`accum`: sums over named axes in three rows, beside NumPy."""

import aerogel as ti
import numpy as np
import pytest
from aerogel.tensor import programs as p

T = None


@pytest.fixture(autouse=True)
def started():
    global T
    ti.init(arch=ti.cpu)
    T = ti.tensor


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float64)


def same(found, expected):
    found = found.numpy()
    assert found.shape == np.shape(expected)
    assert np.array_equal(found, expected)


A, B, C = numbers(3, 4), numbers(5, 4, seed=1), numbers(2, 3, 4, seed=2)
S = numbers(4, 4, seed=3)

CASES = {
    "layer": ("b|i; i->o => b|o", (A, B), lambda: A @ B.T),
    "transposed": ("i->o => o->i", (B,), lambda: B.T),
    "rows to the batch": ("b|i->o => b|i", (C,), lambda: C.sum(1)),
    "to the input": ("b|i->o => b|o", (C,), lambda: C.sum(2)),
    "all": ("b|i->o => ", (C,), lambda: C.sum()),
    "outer": ("a; b => ab", (A[0], B[:, 0]), lambda: np.outer(A[0], B[:, 0])),
    "diagonal": ("ii => i", (S,), lambda: np.diag(S)),
    "trace": ("ii => ", (S,), lambda: np.trace(S)),
    "to a diagonal": ("i => ii", (A[0],), lambda: np.diag(A[0])),
    "permuted": ("abc => cab", (C,), lambda: C.transpose(2, 0, 1)),
    "one element": ("b|1->o => o", (C,), lambda: C[:, :, 1].sum(0)),
    "one place": ("0, i => i", (A,), lambda: A[0]),
    "words": ("left, mid; right, mid => left, right", (A, B), lambda: A @ B.T),
    "dots": ("..|i->o; .. | i => ..|o", (C, A[:2]), lambda: np.einsum("boi,bi->bo", C, A[:2])),
    "stretched": ("...; ... => ...", (C, A), lambda: C * A),
    "stretched ones": ("ab; ab => ab", (A, A[:1]), lambda: A * A[:1]),
    "named dots": ("..v..|i => i|..v..", (C,), lambda: C.transpose(2, 0, 1)),
    "three": ("ik; kj; j => i", (A, S, A[0]), lambda: A @ S @ A[0]),
    "windows": ("o+k; k => o", (A[0], A[0, :2]), lambda: np.correlate(A[0], A[0, :2])),
    "joined": ("a, i; a, j => a, i^j", (A, A[:, :2]), lambda: np.concatenate([A, A[:, :2]], 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_like_numpy(name):
    spec, tensors, expected = CASES[name]
    same(T.accum(spec, *map(T.asarray, tensors)), expected())


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"])
@pytest.mark.parametrize("shape", [(1, 1), (0, 3), (3, 0), (4, 5)])
def test_types_and_empty_axes(dtype, shape):
    kind = getattr(ti, dtype)
    x = T.asarray(np.arange(shape[0] * shape[1]).reshape(shape) % 5, dtype=kind)
    out = T.accum("ij; ij => i", x, x)
    assert out.dtype is kind
    same(out, (x.numpy() * x.numpy()).sum(1).astype(x.numpy().dtype))
    same(T.accum("ij => ji", x[::-1, ::-1]), x.numpy()[::-1, ::-1].T)


def test_other_accumulations_and_operations():
    same(T.accum("ij => i", A, how="max"), A.max(1))
    same(T.accum("ij; j => i", A, A[0], op="add", how="min"), (A + A[0]).min(1))
    same(T.accum("ij; ij => ", A, A, op="sub"), 0.0)
    same(T.accum("i, k; k, j => i, j", A, S, op="add", how="min"), (A[:, :, None] + S[None]).min(1))
    same(T.accum("ij => j", A, into=A[0]), A[0] + A.sum(0))
    same(T.accum("ij => j", A, into=A[0], how="max"), np.maximum(A[0], A.max(0)))


def windows(x, w, stride, dilation):
    n = (x.shape[-1] - dilation * (w.shape[0] - 1) - 1) // stride + 1
    return np.array([sum(x[..., stride * o + dilation * k] * w[k] for k in range(len(w))) for o in range(n)]).T


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("n", [7, 10, 11])
def test_strides_and_dilations(stride, dilation, n):
    x, w = numbers(2, n), numbers(3, seed=1)
    same(T.accum(f"b|{stride}*o+{dilation}*k, ; k => b|o", x, w), windows(x, w, stride, dilation))
    found = T.accum(f"b|o*{stride}+k*{dilation}, ; k => b|o", x, w, padding="same").numpy()
    count = -(-n // stride)
    reach = stride * (count - 1) + dilation * 2 + 1
    before = max(reach - n, 0) // 2
    padded = np.pad(x, ((0, 0), (before, reach)))
    assert np.array_equal(found, windows(padded, w, stride, dilation)[:, :count])


def test_images():
    x, w = numbers(2, 6, 7, 3), numbers(4, 3, 3, 3, seed=1)
    found = T.accum("b|y+u, x+v, c; u, v, c->d => b|y, x, d", x, T.moveaxis(T.asarray(w), 0, 0), op="mul")
    expected = np.zeros((2, 4, 5, 4))
    for u in range(3):
        for v in range(3):
            expected += np.einsum("byxc,dc->byxd", x[:, u : u + 4, v : v + 5], w[:, u, v])
    same(found, expected)
    pooled = T.accum("b|2*y+u, 2*x+v, c => b|y, x, c", x, how="max", extents={"u": 2, "v": 2})
    same(pooled, x[:, :6, :6].reshape(2, 3, 2, 3, 2, 3).max((2, 4)))


def test_windows_in_the_result():
    x, w = numbers(4), numbers(3, seed=1)
    same(T.accum("o; k => o+k", x, w), np.convolve(x, w))
    expected = np.zeros(9)
    for o in range(4):
        expected[2 * o : 2 * o + 3] += x[o] * w
    same(T.accum("o; k => 2*o+k", x, w), expected)


def test_in_programs_of_any_extents():
    @p.program
    def layer():
        x = p.input([-1, -1], ti.f64)
        w = p.input([-1, -1], ti.f64)
        return T.accum("b|i; i->o => b|o", x, w)

    for n in (1, 3):
        same(layer(A[:n], B), A[:n] @ B.T)
    with pytest.raises(ValueError, match="'i' of .* has 4 elements in tensor 0, 3 in tensor 1"):
        layer(A, B[:, :3])


def test_windows_of_programs():
    @p.program
    def windows():
        x, w = p.input([-1], ti.f64), p.input([3], ti.f64)
        around = T.accum("o+k; k => o", x, w, padding="same")
        return around, *(T.accum(f"{s}*o+{d}*k, ; k => o", x, w) for s in (1, 2, 3) for d in (1, 2))

    w = numbers(3)
    for n in (5, 6, 9, 10):
        x = numbers(n)
        around, *others = windows(x, w)
        same(around, np.correlate(np.pad(x, 1), w, "valid"))
        for got, (s, d) in zip(others, [(s, d) for s in (1, 2, 3) for d in (1, 2)]):
            spread = np.zeros(2 * d + 1)
            spread[::d] = w
            same(got, np.correlate(x, spread, "valid")[::s])
    with pytest.raises(ValueError, match="`accum`: 3 elements along axis 0 of tensor 0 are fewer than the window of 5"):
        windows(numbers(3), w)

    with pytest.raises(ValueError, match="the extents of an index that is a sum are not known"):

        @p.program
        def strided():
            x, w = p.input([-1], ti.f64), p.input([3], ti.f64)
            return T.accum("2*o+k, ; k => o", x, w, padding="same")

        strided.compile()


MISTAKES = {
    "extents": (
        lambda: T.accum("ij; jk => ik", A, A),
        "'j' of 'ij; jk => ik' has 4 elements in tensor 0, 3 in tensor 1",
    ),
    "no result": (lambda: T.accum("ij", A), "names no result"),
    "tensors": (lambda: T.accum("i; j => ij", A), "names 2 tensors, 1 are given"),
    "axes": (lambda: T.accum("ijk => i", A), "a tensor with 2 axes for 3 indices"),
    "unknown": (lambda: T.accum("ij => ik", A), "no tensor of .* has 'k'"),
    "window": (lambda: T.accum("o+k => o", A[0]), "the extents of 'o' and 'k' follow from nothing"),
    "large": (lambda: T.accum("o+k; k => o", A[0], numbers(9)), "fewer than the window of 9"),
    "reach": (lambda: T.accum("o+k; k; o => o", A[0], A[0], A[0]), "reach 6, it has 4"),
    "sign": (lambda: T.accum("i-j => i", A), "is no row"),
    "padding": (lambda: T.accum("i => i", A[0], padding="full"), "'valid' or 'same'"),
    "dots": (lambda: T.accum("..|.... => ", A), "is no row"),
    "into": (lambda: T.accum("ij => j", A, into=A), "`into`"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    f, message = MISTAKES[name]
    with pytest.raises(ValueError, match=message):
        f()


def test_other_mistakes():
    with pytest.raises(TypeError, match="truth values"):
        T.accum("i => ", T.asarray([True]))
    with pytest.raises(IndexError, match="index 7 is outside axis 0"):
        T.accum("7, i => i", A)
