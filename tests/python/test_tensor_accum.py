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


X, U, V, W = numbers(7), numbers(3, seed=4), numbers(4, seed=5), numbers(5, seed=6)
M, P, Q = numbers(7, 5), numbers(2, 3, seed=7), numbers(4, 5, seed=8)
BLOCKS = np.block([[P, np.zeros((2, 5))], [np.zeros((4, 3)), Q]])

# Axes of several, one after the other: what is asked for, of what, with which extents, and what comes out.
PARTS = {
    "one after the other": ("a; b => a^b", (U, V), {}, lambda: np.concatenate([U, V])),
    "three": ("a; b; c => a^b^c", (U, V, X), {}, lambda: np.concatenate([U, V, X])),
    "prefix": ("a^b => a", (X,), {"b": 2}, lambda: X[:5]),
    "suffix": ("a^b => b", (X,), {"b": 2}, lambda: X[5:]),
    "middle": ("a^b^c => b", (X,), {"a": 1, "c": 2}, lambda: X[1:5]),
    "all but the first": ("3^a => a", (X,), {}, lambda: X[3:]),
    "all but some": ("3^a^2 => a", (X,), {}, lambda: X[3:5]),
    "before zeros": ("a => a^2", (U,), {}, lambda: np.concatenate([U, [0, 0]])),
    "between zeros": ("a => 1^a^b", (U,), {"b": 2}, lambda: np.pad(U, (1, 2))),
    "turned": ("a^b => b^a", (X,), {"a": 2}, lambda: np.roll(X, -2)),
    "in words": ("head, tail ^ rest => tail", (M,), {"tail": 2}, lambda: M[:, :2].sum(0)),
    "letters": ("ki^j => ik", (M,), {"j": 3}, lambda: M[:, :2].T),
    "sums of both": ("i^j; i; j => ", (X, U, V), {}, lambda: X @ np.concatenate([U, V])),
    "sums of one": ("i^j; i => ", (X, U), {}, lambda: X[:3] @ U),
    "products": ("i^j, k; i; j => k", (M, U, V), {}, lambda: np.concatenate([U, V]) @ M),
    "and all of another": ("i; j; k => i^j, k", (U, V, W), {}, lambda: np.outer(np.concatenate([U, V]), W)),
    "of two pairs": (
        "i; j; k; l => i^j, k^l",
        (U, V, W, X),
        {},
        lambda: np.outer(np.concatenate([U, V]), np.concatenate([W, X])),
    ),
    "blocks on a diagonal": ("a, b; c, d => a^c, b^d", (P, Q), {}, lambda: BLOCKS),
    "blocks times another": ("a, b; c, d; k => a^c, b^d, k", (P, Q, W), {}, lambda: BLOCKS[:, :, None] * W),
    "rows": ("a->b; c->d => a^c->b^d", (P.T, Q.T), {}, lambda: BLOCKS.T),
    "a diagonal": ("i^j, i^j => i^j", (S,), {"i": 1}, lambda: np.diag(S)),
    "overlaps": ("i^j; j^k => j", (X, V), {"i": 4}, lambda: X[4:] * V[:3]),
    "no name": ("_, i => i", (M,), {}, lambda: M.sum(0)),
    "no names": ("_, _, i => i", (C,), {}, lambda: C.sum((0, 1))),
}


@pytest.mark.parametrize("name", PARTS)
def test_axes_of_several(name):
    spec, tensors, extents, expected = PARTS[name]
    same(T.accum(spec, *map(T.asarray, tensors), sizes=extents), expected())


def test_axes_of_several_in_what_is_there():
    same(T.accum("a => a^b", U, into=X), np.concatenate([X[:3] + U, X[3:]]))
    same(T.accum("a => b^a", U, into=X, how="max"), np.concatenate([X[:4], np.maximum(X[4:], U)]))
    same(T.accum("a => 2^a", U, how="mul"), np.concatenate([[1, 1], U]))
    found = T.accum("a => a^1", U, how="min").numpy()
    assert np.array_equal(found, [*U, np.inf])


def test_axes_of_several_in_programs():
    @p.program
    def both():
        x, y = p.input([-1], ti.f64), p.input([-1], ti.f64)
        return T.accum("a; b => a^b", x, y)

    same(both(U, V), np.concatenate([U, V]))
    same(both(V, U[:0]), V)


@pytest.mark.parametrize("n", [5, 6, 7, 9])
def test_windows_that_say_their_padding(n):
    x = numbers(n)
    same(T.accum("2*o=+k, ; k => o", x, U), T.accum("2*o+k, ; k => o", x, U, padding="same").numpy())
    same(T.accum("o<+k, ; k => o", x, U, padding="same"), np.correlate(x, U, "valid"))
    if n % 2:
        same(T.accum("2*o<+k, ; k => o", x, U), windows(x, U, 2, 1))
    else:
        with pytest.raises(ValueError, match="windows of 3 with a stride of 2 do not cover axis 0"):
            T.accum("2*o<+k, ; k => o", x, U)


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
    pooled = T.accum("b|2*y+u, 2*x+v, c => b|y, x, c", x, how="max", sizes={"u": 2, "v": 2})
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

    with pytest.raises(ValueError, match="the size of an axis whose index is a sum is not known"):

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
    "tensors": (lambda: T.accum("i; j => ij", A), "names 2 tensors, but 1 are passed"),
    "axes": (lambda: T.accum("ijk => i", A), "a tensor with 2 axes for 3 indices"),
    "unknown": (lambda: T.accum("ij => ik", A), "no tensor of .* has 'k'"),
    "window": (lambda: T.accum("o+k => o", A[0]), "the sizes of 'o' and 'k' cannot be inferred"),
    "large": (lambda: T.accum("o+k; k => o", A[0], numbers(9)), "fewer than the window of 9"),
    "reach": (lambda: T.accum("o+k; k; o => o", A[0], A[0], A[0]), "reach 6, but it has 4"),
    "sign": (lambda: T.accum("i-j => i", A), "is not a list of indices"),
    "padding": (lambda: T.accum("i => i", A[0], padding="full"), "'valid' or 'same'"),
    "dots": (lambda: T.accum("..|.... => ", A), "is not a list of indices"),
    "into": (lambda: T.accum("ij => j", A, into=A), "`into`"),
    "parts": (lambda: T.accum("a^b => a", A[0]), "the sizes of 'a' and 'b' cannot be inferred"),
    "parts of the result": (lambda: T.accum("a => a^b", A[0]), "no tensor of 'a => a\\^b' has 'b'"),
    "more parts": (lambda: T.accum("3^a => a", A[0, :2]), "has 3 elements, but axis 0 of tensor 0 has 2"),
    "less parts": (
        lambda: T.accum("i^j; i; j => ", A[0], A[0, :1], A[0, :1]),
        "has 2 elements, but axis 0 of .* has 4",
    ),
    "no part": (lambda: T.accum("i^j, k; k => j, i", S, S[0], sizes={"i": 1}), "no segment of the result"),
    "axis of several": (lambda: T.accum("2*a^b, => a", A[0]), "`\\^` joins labels"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    f, message = MISTAKES[name]
    with pytest.raises(ValueError, match=message):
        f()


def test_other_mistakes():
    with pytest.raises(TypeError, match="booleans"):
        T.accum("i => ", T.asarray([True]))
    with pytest.raises(IndexError, match="index 7 is outside axis 0"):
        T.accum("7, i => i", A)


def test_sums_of_indices_beyond_all_axes():
    """Factors and sizes whose product no integer of 64 bits holds."""
    n = 2**31 - 1
    for spec, extents in {
        f"{n}*i+{n}*j+{n}*k => i": {"i": n, "j": n, "k": n},
        f"{n}*i+{n}*j+{n}*k+{n}*l => ": {"i": n, "j": n, "k": n, "l": n},
        f"{n}*i*{n}+{n}*i*{n}+{n}*i*{n} => i": {"i": n},
        "i+j => i": {"i": 2**62, "j": 2**62},
    }.items():
        with pytest.raises(ValueError, match="`accum`: indices along axis 0 of tensor 0 reach"):
            T.accum(spec, T.ones(4), sizes=extents)
    with pytest.raises(ValueError, match="fewer than the window"):
        T.accum(f"{n}*i+{n}*j+{n}*k+o => o", T.ones(4), sizes={"i": n, "j": n, "k": n})


def test_sizes_below_zero():
    with pytest.raises(ValueError, match="`accum`: a size in `sizes` is -1; sizes are not negative"):
        T.accum("i => j", T.ones(4), sizes={"j": -1})


def test_a_sum_in_the_result_of_labels_without_elements():
    assert T.accum("i => 2*i", T.zeros(0, ti.i32)).shape == (0,)


#: Notations, and the shapes of their tensors.
LINEAR = [
    ("b|i; i->o => b|o", [(4, 3), (5, 3)]),
    ("ij, ; ij,  => ", [(6,), (6,)]),
    ("ik; kj; jl => il", [(2, 3), (3, 4), (4, 5)]),
    ("ij => j", [(3, 4)]),
    ("ii => i", [(3, 3)]),
    ("i; j => ij", [(3,), (4,)]),
    ("o+k, ; k => o", [(7,), (3,)]),
    ("b|y+v, x+u, c; v, u, c->d => b|y, x, d", [(2, 7, 7, 3), (4, 3, 3, 3)]),
    ("..|i; i->o => ..|o", [(2, 4, 3), (5, 3)]),
]


@pytest.mark.parametrize("spec, shapes", LINEAR, ids=[spec for spec, _ in LINEAR])
def test_gradients_in_the_notation(spec, shapes):
    rng = np.random.default_rng(3)
    given = [ti.tensor.asarray(rng.standard_normal(shape)) for shape in shapes]
    out = ti.tensor.accum(spec, *given)
    seed = ti.tensor.asarray(rng.standard_normal(out.shape))
    right = ti.grad(lambda tensors: ti.tensor.accum(spec, *tensors), seed=seed)(given)
    for k, text in enumerate(ti.tensor.accum_gradients(spec)):
        sizes = {"i": 3} if spec == "ij => j" else None
        own = ti.tensor.accum(text, *given[:k], seed, *given[k + 1 :], sizes=sizes)
        np.testing.assert_allclose(own.numpy(), right[k].numpy(), rtol=1e-12, atol=1e-12, err_msg=text)


def test_gradients_of_sums_in_the_notation():
    assert ti.tensor.accum_gradients("i; j => ij", op="add") == ["ij => i", "ij => j"]
    assert ti.tensor.accum_gradients("i; i => ", op="sub") == [" => i", " => i"]
    with pytest.raises(ValueError, match="`_` in 'i_ => i' is an axis without a name"):
        ti.tensor.accum_gradients("i_ => i")
    for spec in ("2*o+k, ; k => o", "1, i => i"):
        with pytest.raises(ValueError, match="does not follow from the others: use `ti.grad`"):
            ti.tensor.accum_gradients(spec)
    for spec in ("a; b => a^b", "2*o=+k, ; k => o"):
        with pytest.raises(ValueError, match="has no inverse in the notation: use `ti.grad`"):
            ti.tensor.accum_gradients(spec)
    with pytest.raises(ValueError, match="the gradient of `div` is not a sum of products"):
        ti.tensor.accum_gradients("i; i => ", op="div")
    with pytest.raises(ValueError, match="takes a string such as"):
        ti.tensor.accum_gradients("ij")
