"""`aerogel.special`: digits against 50 digits of mpmath, edges against SciPy; dtypes, programs and errors."""

import math

import numpy as np
import pytest

import aerogel as ti
from aerogel import special
from aerogel import tensor as t

NAN, INF = math.nan, math.inf


@pytest.fixture(autouse=True)
def _start():
    ti.init(arch=ti.cpu, log_level="error")


#: Arguments, and the function there with 17 digits, computed with 50 by mpmath.
DIGITS = {
    "erfc": [
        (-2.0, 1.9953222650189527), (0.3, 0.67137324054087258), (0.5, 0.47950012218695346),
        (3.0, 2.2090496998585441e-5), (10.0, 2.0884875837625448e-45), (20.0, 5.3958656116079009e-176),
        (26.0, 5.6631924088561428e-296),
    ],
    "erfcx": [
        (-3.0, 16205.988853999587), (0.7, 0.52593033734944096), (50.0, 0.011281536265323773),
        (100000.0, 5.6418958351954681e-6),
    ],
    "erfinv": [
        (1e-300, 8.8622692545275804e-301), (0.5, 0.47693627620446987), (0.79, 0.88640462220354352),
        (0.999, 2.3267537655135245), (-0.9999999999999, -5.2614833313726763),
    ],
    "erfcinv": [
        (1e-300, 26.209469960516124), (1e-20, 6.6015806223551426), (0.19, 0.92671937749552872),
        (1.7, -0.73286907795921678),
    ],
    "ndtr": [
        (-37.0, 5.7255712225245768e-300), (-5.0, 2.8665157187919391e-7), (0.0, 0.5), (1.0, 0.84134474606854295),
    ],
    "log_ndtr": [
        (-100.0, -5005.5242086942051), (-1.0, -1.8410216450092635), (6.0, -9.8658764552437573e-10),
    ],
    "ndtri": [
        (1e-300, -37.047096299361199), (0.025, -1.9599639845400542), (0.975, 1.9599639845400539),
    ],
    "gammaln": [
        (-1000.5, -5914.4377011168519), (-2.3, 0.36956666345500804), (-0.5, 1.2655121234846454),
        (1e-300, 690.77552789821371), (0.5, 0.57236494292470009), (0.999999, 5.7721648738556524e-7),
        (1.4616321449683622, -0.12148629053584961), (2.000001, 4.2278465762452924e-7), (3.3, 0.9870985778947344),
        (7.5, 7.534364236758733), (100.0, 359.1342053695754), (1e+300, 6.8977552789821374e+302),
    ],
    "digamma": [
        (-20.3, 5.3175499242397496), (-1.000001, 1000000.4228639568), (-0.5, 0.036489973978576521),
        (1e-300, -9.9999999999999997e+299), (0.5, -1.9635100260214235), (1.4616321449683622, -9.2412655217294275e-17),
        (1.0, -0.57721566490153286), (2.0, 0.42278433509846714), (5.9, 1.6878194259079582),
        (10000000000.0, 23.025850929890457),
    ],
    "expit": [
        (-700.0, 9.8596765437597709e-305), (1.0, 0.73105857863000488),
    ],
    "logit": [
        (1e-10, -23.025850929840457), (0.5000000001, 4.000000330961484e-10), (0.9, 2.1972245773362196),
    ],
    "exprel": [
        (1e-10, 1.00000000005), (2.0, 3.1945280494653251),
    ],
}  # fmt: skip
LIMITS = {"erfc": 1e-14, "ndtr": 1e-14, "erfcx": 1e-14}


@pytest.mark.parametrize("name", DIGITS)
def test_digits(name):
    x, wanted = np.array(DIGITS[name]).T
    f = getattr(special, name)
    # Next to its zero, the argument itself is rounded.
    for made in (f(t.asarray(x)), ti.program(f)(t.asarray(x))):
        np.testing.assert_allclose(made.numpy(), wanted, rtol=LIMITS.get(name, 1e-13), atol=1e-31)
    single = (np.abs(x) < 1e30) & (np.abs(x) > 1e-30) & (np.abs(wanted) < 1e30) & (np.abs(wanted) > 1e-30) | (x == 0)
    x = x[single].astype(np.float32)
    exact = f(t.asarray(x.astype(float))).numpy()
    np.testing.assert_allclose(f(t.asarray(x)).numpy(), exact, rtol=2e-6, atol=1e-6 if name == "digamma" else 0)


def test_exact_results():
    assert special.erfc([0.0, INF, -INF]).tolist() == [1, 0, 2] and special.ndtr([0.0, -INF, INF]).tolist() == [
        0.5,
        0,
        1,
    ]
    assert special.erfinv([0.0, 1.0, -1.0]).tolist() == [0, INF, -INF] and special.erfcinv(1).item() == 0
    assert special.gammaln([1.0, 2.0, 0.0, -3.0, INF, -INF]).tolist() == [0, 0, INF, INF, INF, INF]
    assert special.expit([0.0, -1e9, 1e9]).tolist() == [0.5, 0, 1] and special.logit([0.5, 0, 1]).tolist() == [
        0,
        -INF,
        INF,
    ]
    assert special.xlogy([0.0, 0.0, 1.0], [0.0, -1.0, 0.0]).tolist() == [0, 0, -INF]
    assert special.entr([0.0, 1.0, -1.0]).tolist() == [0, 0, -INF] and special.sinc(0.0).item() == 1
    assert special.softplus([-INF, INF, 0.0]).tolist() == [0, INF, np.float32(math.log(2))]
    assert np.isnan(special.digamma([-1.0, -7.0, NAN]).numpy()).all()
    assert special.digamma([0.0, -0.0]).tolist() == [-INF, INF]
    for name in ("erfinv", "logit"):
        assert np.isnan(getattr(special, name)([2.0, -2.0, NAN]).numpy()).all()
    for name in ("erfc", "erfcx", "ndtr", "log_ndtr", "gammaln", "expit", "softplus", "entr", "sinc", "log_expit"):
        assert math.isnan(getattr(special, name)(NAN).item()), name


EDGES = [
    0.0,
    -0.0,
    1,
    -1,
    2,
    -2,
    0.5,
    -0.5,
    INF,
    -INF,
    NAN,
    1e300,
    -1e300,
    800,
    -800,
    30,
    -40,
    1.5,
    -1.5,
    171,
    1e17,
    -1e17,
]


@pytest.mark.parametrize("name", [n for n in special.__all__ if n not in ("logsumexp", "softmax", "log_softmax")])
@pytest.mark.filterwarnings("ignore")
def test_edges_like_scipy(name):
    theirs = getattr(pytest.importorskip("scipy.special"), name, None)
    if theirs is None:
        pytest.skip("SciPy has no such function")
    x = np.array(EDGES)
    given = np.meshgrid(x, x) if name in ("xlogy", "xlog1py", "rel_entr", "kl_div") else [x]
    wanted = theirs(*given)
    if name == "gammaln":
        # SciPy's is -inf there; C's is as ours.
        wanted[x == -INF] = INF
    made = getattr(special, name)(*map(t.asarray, given)).numpy()
    np.testing.assert_allclose(made, wanted, rtol=1e-13, atol=0)


@pytest.mark.parametrize("name", ["erfc", "erfinv", "gammaln", "digamma", "expit", "logit", "ndtr", "entr", "sinc"])
def test_dtypes(name):
    f = getattr(special, name)
    x = np.array([0.25, 0.5, 0.75])
    for dtype, rtol in (("float16", 2e-3), ("float32", 1e-6), ("float64", 1e-14)):
        made = f(t.asarray(x.astype(dtype)))
        assert str(made.numpy().dtype) == dtype
        np.testing.assert_allclose(made.numpy(), f(t.asarray(x)).numpy(), rtol=rtol)
    assert f(t.asarray(x).astype(ti.bf16)).dtype is ti.bf16
    assert f(t.asarray([0, 1])).dtype is ti.f32 and f(1).shape == () and f(t.zeros((0, 3))).shape == (0, 3)
    with pytest.raises(TypeError, match=f"`{name}` takes real numbers, not `complex64`"):
        f([1j])


X = np.random.default_rng(5).uniform(-3, 3, (3, 4, 2))


@pytest.mark.filterwarnings("ignore")
def test_logsumexp():
    scipy = pytest.importorskip("scipy.special")
    b = np.random.default_rng(6).uniform(-1, 2, (3, 4, 2))
    b[0, 0] = 0
    for axis in (None, 0, -1, (0, 2)):
        for keepdims in (False, True):
            options = {"axis": axis, "keepdims": keepdims}
            for x in (X, X * 1000, X - 5000):
                wanted = scipy.logsumexp(x, **options)
                for made in (
                    special.logsumexp(t.asarray(x), **options),
                    ti.program(lambda x: special.logsumexp(x, **options))(t.asarray(x)),
                ):
                    np.testing.assert_allclose(made.numpy(), wanted, rtol=1e-14)
            np.testing.assert_allclose(
                special.logsumexp(t.asarray(X), b=b, **options).numpy(), scipy.logsumexp(X, b=b, **options), rtol=1e-12
            )
            for got, want in zip(
                special.logsumexp(t.asarray(X), b=b, return_sign=True, **options),
                scipy.logsumexp(X, b=b, return_sign=True, **options),
            ):
                np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)


def test_logsumexp_at_the_edges():
    assert special.logsumexp([-INF, -INF]).item() == -INF and special.logsumexp([INF, 1.0]).item() == INF
    assert math.isnan(special.logsumexp([NAN, 1.0]).item())
    assert special.logsumexp(t.zeros((2, 0)), axis=1).tolist() == [-INF, -INF] and special.logsumexp([]).item() == -INF
    assert special.logsumexp([0, 0]).dtype is ti.f32 and special.logsumexp(t.zeros(3, ti.f16)).dtype is ti.f16
    assert special.logsumexp([INF, 0.0], b=[0.0, 1.0]).item() == 0
    assert special.logsumexp(3.0).item() == 3
    with pytest.raises(IndexError, match="no axis 2"):
        special.logsumexp([[1.0]], axis=2)
    with pytest.raises(TypeError, match="real"):
        special.logsumexp([1j])


def test_names_are_loaded_when_they_are_used():
    import subprocess
    import sys

    code = "import sys, aerogel; assert not [m for m in sys.modules if m.startswith(('aerogel.tensor', 'aerogel.special', 'aerogel.nn', 'aerogel.xp'))]"
    assert (
        subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(p for p in sys.path if p)}).returncode
        == 0
    )
    assert ti.special is special
