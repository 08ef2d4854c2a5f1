"""Functions of tensors with a gradient of their own, and those that are computed again on the way back."""

import aerogel as ti
import numpy as np
import pytest

POINT = np.array([1.0, 2.0])
OTHER = np.array([3.0, 4.0])


def tensor(numbers):
    return ti.tensor.asarray(np.asarray(numbers, dtype=np.float64))


@pytest.fixture(autouse=True)
def _init():
    ti.init(arch=ti.cpu, log_level="error")


def sine_times():
    """``sin(x) * y``, whose rule counts its calls."""
    calls = []

    @ti.custom_vjp
    def f(x, y):
        return ti.xp.sin(x) * y

    def fwd(x, y):
        return f(x, y), (ti.xp.cos(x), ti.xp.sin(x), y)

    def bwd(kept, g):
        calls.append(1)
        cos, sin, y = kept
        return cos * g * y, sin * g

    f.defvjp(fwd, bwd)
    return f, calls


def test_a_custom_gradient_is_the_rules():
    f, calls = sine_times()
    by_x, by_y = ti.grad(lambda x, y: f(x, y).sum(), (0, 1))(tensor(POINT), tensor(OTHER))
    np.testing.assert_allclose(by_x.numpy(), np.cos(POINT) * OTHER)
    np.testing.assert_allclose(by_y.numpy(), np.sin(POINT))
    assert calls == [1]


def test_the_rule_may_differ_from_the_derivative():
    @ti.custom_vjp
    def rounded(x):
        return ti.xp.round(x)

    rounded.defvjp(lambda x: (ti.xp.round(x), None), lambda _, g: (g,))
    made = ti.grad(lambda x: (rounded(x) * tensor(OTHER)).sum())(tensor([0.4, 1.7]))
    np.testing.assert_allclose(made.numpy(), OTHER)


def test_a_custom_gradient_has_derivatives_itself():
    f, _ = sine_times()
    hessian = ti.hessian(lambda x: f(x, tensor(OTHER)).sum())(tensor(POINT))
    np.testing.assert_allclose(hessian.numpy(), np.diag(-np.sin(POINT) * OTHER), atol=1e-12)
    _, change = ti.jvp(lambda x: f(x, tensor(OTHER)), (tensor(POINT),), (tensor([1.0, 10.0]),))
    np.testing.assert_allclose(change.numpy(), np.cos(POINT) * OTHER * [1, 10])


def test_a_custom_gradient_in_a_program_and_by_backward():
    f, _ = sine_times()
    program = ti.program(lambda x, y: ti.grad(lambda u: f(f(u, y), y).sum())(x))
    inner = np.sin(POINT) * OTHER
    expected = np.cos(inner) * OTHER * np.cos(POINT) * OTHER
    np.testing.assert_allclose(program(tensor(POINT), tensor(OTHER)).numpy(), expected)
    x = tensor(POINT).requires_grad_()
    f(f(x, tensor(OTHER)), tensor(OTHER)).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), expected)


def test_trees_and_arguments_without_a_gradient():
    @ti.custom_vjp
    def scaled(tree, factor):
        return {"a": tree["a"] * factor, "n": tree["n"]}

    def fwd(tree, factor):
        return scaled(tree, factor), factor

    def bwd(factor, g):
        assert g["n"] is None
        return {"a": g["a"] * factor, "n": None}, None

    scaled.defvjp(fwd, bwd)
    n = ti.tensor.asarray([1, 2])
    made = ti.grad(lambda a: scaled({"a": a, "n": n}, 3.0)["a"].sum())(tensor(POINT))
    np.testing.assert_allclose(made.numpy(), [3, 3])

    power = ti.custom_vjp(lambda k, x: x**k, nondiff_argnums=(0,))
    power.defvjp(lambda k, x: (x**k, x), lambda k, x, g: (k * x ** (k - 1) * g,))
    np.testing.assert_allclose(ti.grad(lambda x: power(3, x).sum())(tensor(POINT)).numpy(), 3 * POINT**2)


def test_a_custom_derivative_along_a_direction():
    @ti.custom_jvp
    def cube(x):
        return x * x * x

    @cube.defjvp
    def _(primals, tangents):
        (x,), (t,) = primals, tangents
        return cube(x), 3 * x**2 * t

    np.testing.assert_allclose(ti.grad(lambda x: cube(x).sum())(tensor(POINT)).numpy(), 3 * POINT**2)
    np.testing.assert_allclose(ti.hessian(lambda x: cube(x).sum())(tensor(POINT)).numpy(), np.diag(6 * POINT))
    product = ti.custom_jvp(lambda x, y: x * y)
    product.defjvps(lambda t, out, x, y: t * y, lambda t, out, x, y: t * x * 100)
    by_x, by_y = ti.grad(lambda x, y: product(x, y).sum(), (0, 1))(tensor(POINT), tensor(OTHER))
    np.testing.assert_allclose([by_x.numpy(), by_y.numpy()], [OTHER, 100 * POINT])


@pytest.mark.parametrize("wrong", [lambda g: (g, g), lambda g: (g.sum(),), lambda g: (g.astype(ti.f32),)])
def test_what_a_rule_gives_is_checked(wrong):
    f = ti.custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (x * 2, None), lambda _, g: wrong(g))
    if wrong(tensor(POINT))[0].dtype is ti.f32:
        # Numbers of another type are converted.
        assert ti.grad(lambda x: f(x).sum())(tensor(POINT)).dtype is ti.f64
        return
    with pytest.raises(ValueError, match=r"custom_vjp.*gradient"):
        ti.grad(lambda x: f(x).sum())(tensor(POINT))


def test_a_rule_that_is_missing():
    f = ti.custom_vjp(lambda x: x)
    with pytest.raises(AttributeError, match="defvjp"):
        f(tensor(POINT))


def test_captured_tensors_that_a_rule_would_lose_are_refused():
    w = tensor(2.0).requires_grad_()
    f = ti.custom_vjp(lambda x: x * w)
    f.defvjp(lambda x: (x * w, None), lambda _, g: (g * w,))
    with pytest.raises(ValueError, match="is not an argument"):
        f(tensor(POINT).requires_grad_())

    def of_program(x, w):
        inner = ti.custom_vjp(lambda x: x * w)
        inner.defvjp(lambda x: (x * w, None), lambda _, g: (g * w,))
        return ti.grad(lambda w: inner(x * w).sum())(w)

    # There `w` of the rule is no variable, and does not count.
    made = ti.program(of_program)(tensor(POINT), tensor(2.0))
    np.testing.assert_allclose(made.numpy(), (POINT * 2.0).sum())

    def of_program_that_loses(x, w):
        def loss(w):
            inner = ti.custom_vjp(lambda x: x * w)
            inner.defvjp(lambda x: (x * w, None), lambda _, g: (g * w,))
            return inner(x * w).sum()

        return ti.grad(loss)(w)

    with pytest.raises(ValueError, match="is not an argument"):
        ti.program(of_program_that_loses)(tensor(POINT), tensor(2.0))


def test_a_rule_in_a_loop_of_a_program_is_refused_where_its_gradient_is_taken_outside():
    f, _ = sine_times()

    @ti.program
    def outside(x, y):
        def loss(x):
            with ti.tensor.programs.loop(3):
                x.val = f(x, y)
            return x.sum()

        return ti.grad(loss)(x)

    with pytest.raises(ValueError, match="in a loop or a branch"):
        outside(tensor(POINT), tensor(OTHER))


def test_what_is_computed_again():
    def layer(x):
        return ti.xp.sin(ti.xp.exp(x))

    plain = ti.grad(lambda x: layer(layer(x)).sum())(tensor(POINT))
    kept = ti.checkpoint(layer)
    again = ti.grad(lambda x: kept(kept(x)).sum())(tensor(POINT))
    np.testing.assert_array_equal(again.numpy(), plain.numpy())
    hessian = ti.hessian(lambda x: kept(x).sum())(tensor(POINT))
    np.testing.assert_allclose(hessian.numpy(), ti.hessian(lambda x: layer(x).sum())(tensor(POINT)).numpy())
    in_program = ti.program(lambda x: ti.grad(lambda u: kept(kept(u)).sum())(x))
    np.testing.assert_array_equal(in_program(tensor(POINT)).numpy(), plain.numpy())


def test_what_is_computed_again_draws_the_same_numbers():
    generator = ti.tensor.random.Generator(3)
    drawn = []

    @ti.checkpoint
    def noisy(x):
        drawn.append(generator.rand(2, dtype=ti.f64))
        return x * drawn[-1]

    made = ti.grad(lambda x: noisy(x).sum())(tensor(POINT))
    assert len(drawn) == 2
    np.testing.assert_array_equal(drawn[0].numpy(), drawn[1].numpy())
    np.testing.assert_array_equal(made.numpy(), drawn[0].numpy())


@pytest.mark.parametrize("is_argument", [True, False])
@pytest.mark.parametrize("in_program", [True, False])
def test_modules_with_a_state_in_what_is_computed_again(is_argument, in_program):
    def run(wrap):
        draws, norm = ti.nn.Random(1), ti.nn.BatchNorm1d(2)

        def layer(x, draws, norm):
            return (norm(x) ** 3 * draws.uniform(0.0, 1.0, (3, 2))).sum()

        def both(x, draws, norm):
            inner = wrap(layer) if is_argument else wrap(lambda x: layer(x, draws, norm))
            return ti.value_and_grad(lambda x: inner(x, draws, norm) if is_argument else inner(x))(x)

        x = ti.tensor.asarray(np.float32([[1, 2], [3, 5], [4, 4]]))
        made = (ti.program(both) if in_program else both)(x, draws, norm)
        return [*made, draws.state, norm.running_mean, norm.running_var, norm.num_batches_tracked]

    for plain, again in zip(run(lambda f: f), run(ti.checkpoint)):
        np.testing.assert_allclose(again.detach().numpy(), plain.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_captured_parameters_of_what_is_computed_again():
    w = tensor(2.0).requires_grad_()
    ti.checkpoint(lambda x: ti.xp.sin(x * w))(tensor(POINT)).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), (np.cos(POINT * 2) * POINT).sum())


def test_a_checkpoint_keeps_modules_parameters():
    layer = ti.nn.Linear(2, 2, dtype=ti.f64)
    x = tensor([POINT])
    ti.checkpoint(layer)(x).sum().backward()
    by_checkpoint = layer.weight.grad.numpy()
    layer.weight.grad = None
    layer(x).sum().backward()
    np.testing.assert_allclose(by_checkpoint, layer.weight.grad.numpy())


def test_nodes_end_with_what_depends_on_them():
    from aerogel.tensor import _nodes

    f, _ = sine_times()
    x = tensor(POINT).requires_grad_()
    for _ in range(3000):
        f(x, tensor(OTHER)).sum().backward()
    assert len(_nodes._NODES) < 2000


def test_a_program_called_with_tensors_through_which_gradients_go():
    @ti.program
    def program(x, y, n: int = 2):
        total = x * 0
        with ti.tensor.programs.loop(n):
            total.val = ti.xp.sin(total + x * y)
        return {"sum": total.sum(), "n": ti.tensor.asarray(3)}

    def plain(x, y):
        return np.sin(np.sin(x * y) + x * y).sum()

    x = tensor(POINT).requires_grad_()
    y = tensor(OTHER).requires_grad_()
    (program(x * 1, y)["sum"] * 2).backward()
    for k, leaf in enumerate((x, y)):
        for j in range(2):
            ends = []
            for sign in (1, -1):
                at = [POINT.copy(), OTHER.copy()]
                at[k][j] += sign * 1e-6
                ends.append(2 * plain(*at))
            np.testing.assert_allclose(leaf.grad.numpy()[j], (ends[0] - ends[1]) / 2e-6, rtol=1e-6)


def test_second_derivatives_through_a_program_that_is_called():
    program = ti.program(lambda x: x**3)
    hessian = ti.hessian(lambda x: program(x).sum())
    np.testing.assert_allclose(hessian(tensor(POINT)).numpy(), np.diag(6 * POINT))


def test_a_loss_that_is_nan_names_the_line_in_debug_mode():
    def loss(x):
        shifted = x - 2.0
        roots = ti.xp.sqrt(shifted)  # The culprit.
        return (roots * 3.0).sum()

    ti.init(arch=ti.cpu, debug=True, log_level="error")
    with pytest.raises(ti.AerogelRuntimeError, match=r"NaN(?s:.*)roots = ti\.xp\.sqrt\(shifted\)(?s:.*)\^"):
        ti.grad(loss)(tensor(POINT))
    x = tensor(POINT).requires_grad_()
    with pytest.raises(ArithmeticError, match="NaN"):
        loss(x).backward()
    assert ti.grad(loss)(tensor(POINT + 2)).shape == (2,)
    ti.init(arch=ti.cpu, log_level="error")
    assert ti.grad(loss)(tensor(POINT)).shape == (2,)


def test_a_tensor_that_is_stored_to_after_the_call():
    f, _ = sine_times()
    program = ti.program(lambda x, y: (ti.xp.sin(x) * y).sum())
    kept = ti.checkpoint(lambda x, y: (ti.xp.sin(x) * y).sum())
    for call in (lambda x, y: f(x, y).sum(), program, kept):
        leaf = tensor(POINT).requires_grad_()
        x, y = leaf * 1, tensor(OTHER)
        made = call(x, y)
        x[0], y[1] = 7.0, 9.0
        made.backward()
        np.testing.assert_allclose(leaf.grad.numpy(), np.cos(POINT) * OTHER)


@pytest.mark.parametrize("w", [0.5, 2, np.float64(0.5), np.ones(3), [1.0, 2.0, 3.0]], ids=lambda w: type(w).__name__)
def test_a_program_that_is_given_numbers_and_arrays_beside_a_variable(w):
    f = ti.program(lambda x, w: (x * x * w).sum())
    x = ti.tensor.asarray(np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(ti.grad(lambda x: f(x, w))(x).numpy(), 2 * x.numpy() * np.asarray(w))


def test_a_program_that_is_given_arguments_by_name():
    """Their order in the call is another one than in the program."""
    f = ti.program(lambda a, b, c=2.0: (a * b * b * c).sum())
    x, y = (ti.tensor.asarray(np.array(v)) for v in ([1.0, 2.0], [3.0, 5.0]))
    of_x, of_y = ti.grad(lambda x, y: f(b=y, a=x), argnums=(0, 1))(x, y)
    np.testing.assert_allclose(of_x.numpy(), 2 * y.numpy() ** 2)
    np.testing.assert_allclose(of_y.numpy(), 4 * x.numpy() * y.numpy())
    of_x, of_y = ti.grad(lambda x, y: f(c=3.0, b=y, a=x), argnums=(0, 1))(x, y)
    np.testing.assert_allclose(of_x.numpy(), 3 * y.numpy() ** 2)


def test_a_result_that_is_stored_to_in_a_program():
    f, _ = sine_times()
    for call in (f, ti.checkpoint(lambda x, y: ti.xp.sin(x) * y)):

        def stored(x, call=call):
            made = call(x, tensor(OTHER))
            before = made * made
            made[0] = before[1]
            return (made * before).sum()

        in_program = ti.grad(ti.program(stored))(tensor(POINT))
        np.testing.assert_allclose(in_program.numpy(), ti.grad(stored)(tensor(POINT)).numpy(), rtol=1e-12)


@pytest.mark.parametrize("is_evaluated", [False, True])
@pytest.mark.parametrize("make", [lambda x: x, ti.tensor.sin, lambda x: ti.tensor.cumulative_sum(x)])
def test_backward_through_a_checkpoint_of_what_has_numbers(make, is_evaluated):
    numbers = np.array([0.3, 0.5, 0.7])
    function = lambda a: ti.tensor.sin(a) * a
    x = ti.tensor.asarray(numbers).requires_grad_()
    inner = make(x)
    out = ti.checkpoint(function)(inner)
    if is_evaluated:
        inner.realize()
    (out * out).sum().backward()
    wanted = ti.grad(lambda x: (function(make(x)) ** 2).sum())(numbers)
    np.testing.assert_allclose(x.grad.numpy(), wanted.numpy(), rtol=1e-6)
