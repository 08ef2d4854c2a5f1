"""What somebody who comes from NumPy, PyTorch or Taichi writes first, and what the message tells."""

import pytest

import aerogel as ti

t = ti.tensor


@pytest.fixture(autouse=True)
def _start():
    ti.init(arch=ti.cpu, log_level="error")
    yield
    ti.reset()


IN_XP = ["percentile", "quantile", "nanmean", "gradient", "histogram", "cov", "trapezoid", "polyfit", "diag"]
IN_XP += ["array_split"]


@pytest.mark.parametrize("name", IN_XP)
def test_functions_that_are_in_xp(name):
    assert callable(getattr(ti.xp, name))
    for where in (ti, t, t.ones(3), ti.nn.functional):
        with pytest.raises(AttributeError, match=rf"has no attribute '{name}': it is .*`ti.xp.{name}`"):
            getattr(where, name)


@pytest.mark.parametrize(
    "where, name, hint",
    [
        (ti, "mean", "`ti.tensor.mean`"),
        (ti, "zeros", "`ti.tensor.zeros`"),
        (ti, "cat", r"of the functions in `ti.tensor` write `concat\(\[x, y\]\)`"),
        (t, "trapz", r"write `ti.xp.trapezoid\(y, x\)`"),
        (ti.nn.functional, "interpolate", r"write `repeat\(x, n, axis=-1\)`"),
    ],
)
def test_names_elsewhere(where, name, hint):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'.*{hint}"):
        getattr(where, name)
    assert not hasattr(ti, "nothing_of_this_name")


def test_keywords():
    x = t.asarray([[1.0, 2.0], [3.0, 5.0]])
    assert x.std(ddof=1).item() == t.std(x, correction=1).item()
    for call, hint in (
        (lambda: x.sum(dim=0), "`sum` has no keyword `dim`: write `axis=`"),
        (lambda: t.mean(x, axis=0, keepdim=True), "`mean` has no keyword `keepdim`: write `keepdims=`"),
        (lambda: t.std(x, ddof=1), "`std` has no keyword `ddof`: write `correction=`"),
        (lambda: x.var(unbiased=False), "`var` has no keyword `unbiased`: write `correction=1` or `correction=0`"),
        (lambda: t.softmax(x, dim=-1), "`softmax` has no keyword `dim`"),
        (lambda: x.sum(colour=1), "unexpected keyword argument 'colour'"),
    ):
        with pytest.raises(TypeError, match=hint):
            call()


def test_devices():
    x = t.ones(3)
    with pytest.raises(ValueError, match="'cuda:0' is a device: tensors are on the device of `ti.init"):
        x.to("cuda:0")
    with pytest.raises(AttributeError, match=r"write `ti.init\(arch=ti.cuda\)` before tensors are made"):
        x.cuda()


def test_the_largest_element():
    """`max` of one tensor would be the tensor itself."""
    for name in ("max", "min"):
        with pytest.raises(
            TypeError, match=rf"`ti.{name}` takes two values or more: `x.{name}\(\)` is that of a tensor"
        ):
            getattr(ti, name)(t.ones(3))


def test_len_and_slices_of_fields():
    x, v, s = ti.field(int, (4, 3)), ti.Vector.field(2, float, 5), ti.Struct.field({"a": int}, shape=6)
    assert [len(own) for own in (x, v, s)] == [4, 5, 6]
    one = ti.field(int, ())
    assert one and x
    with pytest.raises(TypeError, match="`len` of a field without axes"):
        len(one)
    for at in (slice(1, 3), (0, slice(None))):
        with pytest.raises(TypeError, match=r"slicing is for tensors and NumPy, `x.to_numpy\(\)\[1:3\]` copies"):
            x[at]
    with pytest.raises(ti.TaichiIndexError, match=r"1 index for the field, which has 2 axes: .*`x.to_numpy\(\)\[0\]`"):
        x[0]


def test_versions():
    assert ti.__version__ == (1, 7, 4) and isinstance(ti.version, str)


@pytest.mark.parametrize("digits", [400, 5000])
def test_large_integers(digits):
    """Their digits are no part of the message, and Python refuses to write more than 4300."""
    n = -(10**digits)
    double = ti.program(lambda x, n: x * n)
    with pytest.raises(
        OverflowError, match="argument `n` of `<lambda>`: an integer of .* bits is not a number of type `i64`"
    ):
        double(t.ones(3), n)
    with pytest.raises(OverflowError, match="an integer of .* bits is too large for a number of type `f32`"):
        t.ones(3) + n
    with pytest.raises(OverflowError, match="an integer of .* bits is not a number of type `i32`"):
        t.arange(3) + n
