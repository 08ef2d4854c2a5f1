"""Every public function of tensors is in the table whose gradients are checked, or in the list of those that have none."""

import numpy as np
import pytest
from tensor_gradients.cases import CASES
from tensor_gradients.words import Ours

import aerogel as ti
from aerogel import nn, special, tensor, xp

#: Functions without a gradient: of integers, booleans, types and shapes; what makes tensors; what asks and converts.
NONE = """
    all any allclose array_equal array_equiv isclose isfinite isin isinf isnan isneginf isposinf isreal iscomplex signbit
    iscomplexobj isrealobj equal not_equal less less_equal greater greater_equal logical_and logical_not logical_or logical_xor
    bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor invert
    left_shift right_shift popcnt clz argwhere flatnonzero nonzero lexsort digitize histogram histogram_bin_edges
    unique unique_all unique_counts unique_inverse nextafter gammasgn matrix_rank
    arange array asanyarray asarray ascontiguousarray bartlett blackman hamming hanning empty empty_like eye identity indices
    ones ones_like zeros zeros_like tri tril_indices tril_indices_from triu_indices triu_indices_from diag_indices
    diag_indices_from unravel_index ravel_multi_index fftfreq rfftfreq causal_mask one_hot sinusoidal_positions iota
    broadcast_shapes can_cast finfo iinfo isdtype result_type ndim shape size from_dlpack bool
    float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64
    dropout dropout_channels tensor truth explain realize accum_gradients
""".split()
#: Functions of functions, whose own tests differentiate what they return, and what ends gradients.
TRANSFORMATIONS = "checkpoint check_grad grad hessian hvp jacobian jvp stop_gradient value_and_grad vjp vmap".split()
#: Those that are refused, which raise an error.
REFUSED = "eig eigvals lu".split()


@pytest.fixture(autouse=True, scope="module")
def _start():
    ti.init(arch="interp", log_level="error")
    yield
    ti.reset()


class Asked:
    """Notes the names that are taken from a module."""

    def __init__(self, module, names):
        self._module, self._names = module, names

    def __getattr__(self, name):
        self._names.add(name)
        return getattr(self._module, name)


def in_table():
    names = set()

    class Words(Ours):
        linalg, fft = Asked(tensor.linalg, names), Asked(tensor.fft, names)
        xp, special, nn = Asked(xp, names), Asked(special, names), Asked(nn.functional, names)

        def __getattr__(self, name):
            names.add(name)
            return getattr(tensor, name)

    for case in CASES.values():
        case.function(Words(), *map(tensor.asarray, case.arrays()))
    return names


def test_every_function_is_in_the_table():
    known = in_table() | set(NONE) | set(REFUSED) | set(TRANSFORMATIONS)
    for module in (tensor, xp, tensor.linalg, tensor.fft, special, nn.functional):
        names = getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]
        functions = [
            name for name in names if callable(getattr(module, name)) and not isinstance(getattr(module, name), type)
        ]
        assert [name for name in functions if name not in known] == [], module.__name__


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_so(name):
    def f(x):
        made = getattr(tensor.linalg, name)(x)
        made = made[0] if isinstance(made, tuple) else made
        return abs(made).sum()

    with pytest.raises(ValueError, match=f"there is no gradient: `{name}`"):
        ti.grad(f)(np.eye(2))


def of_others(case, arrays):
    """The result of a function of other shapes than its own, if it takes them and gives a tensor of floats."""
    try:
        made = case.function(Ours(), *map(tensor.asarray, arrays))
        return made.realize() if isinstance(made, tensor.Tensor) and made.dtype.is_float else None
    except (ValueError, IndexError, TypeError):
        return None


@pytest.mark.parametrize("part", range(4))
def test_single_numbers_and_no_numbers(part):
    n = 0
    for case in list(CASES.values())[part::4]:
        own = case.arrays()
        for shape in ((), (0,), (0, 3)):
            arrays = [np.resize(a, shape) if 0 not in shape else np.zeros(shape) for a in own]
            made = of_others(case, arrays)
            if made is None or case.name.startswith("qr"):
                # There is none of `qr` of a matrix with more columns than rows.
                continue
            f = lambda *x, case=case: case.function(Ours(), *x).sum()  # noqa: E731
            found = [g.numpy() for g in ti.grad(f, tuple(range(len(arrays))))(*arrays)]
            assert [g.shape for g in found] == [shape] * len(arrays), case.name
            if shape == () and made.shape == ():
                # The same as one of a vector.
                of_one = of_others(case, [a.reshape(1) for a in arrays])
                if of_one is not None and of_one.shape == (1,):
                    wanted = [
                        g.numpy()[0] for g in ti.grad(f, tuple(range(len(arrays))))(*(a.reshape(1) for a in arrays))
                    ]
                    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12, err_msg=case.name)
                    n += 1
    assert n > 10
