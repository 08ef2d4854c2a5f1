"""Gradients of tensors through kernels: calls of them, kernels in programs, tapes over fields and tensors."""

import re
from pathlib import Path

import aerogel as ti
import numpy as np
import pytest
from aerogel.tensor import programs as p

A = np.array([1.0, 2.0, 3.0])
WEIGHTS = np.array([1.0, 10.0, 100.0])


def tensor(numbers):
    return ti.tensor.asarray(np.asarray(numbers, dtype=np.float64))


def differences(f, *at):
    """The gradient of ``f``, which gives a float, by each of some arrays."""
    out = []
    for k, array in enumerate(at):
        made = np.zeros_like(array)
        for index in np.ndindex(array.shape):
            ends = []
            for sign in (1, -1):
                moved = [x.copy() for x in at]
                moved[k][index] += sign * 1e-6
                ends.append(f(*moved))
            made[index] = (ends[0] - ends[1]) / 2e-6
        out.append(made)
    return out


@pytest.fixture(autouse=True)
def _init():
    ti.init(arch=ti.cpu, log_level="error")


@ti.kernel
def scaled_squares(a: ti.types.ndarray(), b: ti.types.ndarray(), s: ti.f64) -> ti.f64:
    total = ti.cast(0.0, ti.f64)
    for i in a:
        b[i] = a[i] * a[i] * s
        total += a[i] * 10
    return total


def expected_of_squares(weights=WEIGHTS):
    return 4 * A * weights + 10, (A**2 * weights).sum()


def test_a_kernel_that_is_called_with_a_tensor():
    a, s = tensor(A).requires_grad_(), tensor(2.0).requires_grad_()
    b = ti.tensor.zeros(3, dtype=ti.f64)
    total = scaled_squares(a * 1, b, s)
    ((b * tensor(WEIGHTS)).sum() + total).backward()
    by_a, by_s = expected_of_squares()
    np.testing.assert_allclose(a.grad.numpy(), by_a)
    np.testing.assert_allclose(s.grad.numpy(), by_s)
    assert total.detach().item() == 60


def test_a_function_with_a_kernel_has_a_gradient():
    def loss(a, s):
        b = ti.tensor.zeros(3, dtype=ti.f64)
        return scaled_squares(ti.xp.sin(a), b, s) + (ti.xp.exp(b) * tensor(WEIGHTS)).sum()

    def plain(a, s):
        return 10 * np.sin(a).sum() + (np.exp(np.sin(a) ** 2 * s) * WEIGHTS).sum()

    made = ti.grad(loss, (0, 1))(tensor(A), tensor(0.5))
    for got, wanted in zip(made, differences(plain, A, np.array(0.5))):
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-6)


def test_what_a_kernel_overwrites():
    @ti.kernel
    def twice_in_place(a: ti.types.ndarray()):
        for i in a:
            a[i] = a[i] * a[i]
        for i in a:
            a[i] = a[i] * (i + 1)

    def loss(x):
        y = x * 3
        before = y.sum()
        twice_in_place(y)
        between = (y * y).sum()
        twice_in_place(y)
        return before + between + y.sum()

    def plain(x):
        i = np.arange(1, 4)
        once = (3 * x) ** 2 * i
        return 3 * x.sum() + (once**2).sum() + (once**2 * i).sum()

    made = ti.grad(loss)(tensor(A))
    np.testing.assert_allclose(made.numpy(), differences(plain, A)[0], rtol=1e-6)
    in_program = ti.program(ti.grad(loss))(A)
    np.testing.assert_allclose(in_program.numpy(), made.numpy(), rtol=1e-14)


def test_elements_that_are_vectors():
    @ti.kernel
    def norms(a: ti.types.ndarray(dtype=ti.math.vec2), b: ti.types.ndarray()):
        for i in a:
            b[i] = a[i].norm()

    x = np.array([[3.0, 4.0], [6.0, 8.0]], dtype=np.float32)

    def loss(x):
        b = ti.tensor.zeros(2, dtype=ti.f32)
        norms(x, b)
        return b.sum()

    for f in (ti.grad(loss), ti.program(ti.grad(loss))):
        np.testing.assert_allclose(f(ti.tensor.asarray(x)).numpy(), [[0.6, 0.8], [0.6, 0.8]], rtol=1e-6)


def test_a_kernel_in_a_program():
    @ti.program
    def gradients(a, s):
        def loss(a, s):
            b = ti.tensor.zeros(3, dtype=ti.f64)
            total = scaled_squares(a * 1, b, s)
            return (b * ti.tensor.asarray(WEIGHTS.tolist(), dtype=ti.f64)).sum() + total

        return ti.grad(loss, (0, 1))(a, s)

    for got, wanted in zip(gradients(tensor(A), tensor(2.0)), expected_of_squares()):
        np.testing.assert_allclose(got.numpy(), wanted)


@ti.kernel
def step(x: ti.types.ndarray(), v: ti.types.ndarray(), f: ti.types.ndarray()):
    for i in x:
        v[i] += 0.1 * (f[i] - x[i] ** 3)
    for i in x:
        x[i] += 0.1 * v[i]


def test_a_kernel_in_a_loop_of_a_program():
    @ti.program
    def gradient(x, f, n):
        def loss(x, f):
            position, velocity = x * 1, x * 0
            with p.loop(n):
                step(position, velocity, ti.xp.sin(f) * position)
            return (position**2).sum()

        return ti.grad(loss, (0, 1))(x, f)

    def plain(x, f):
        position, velocity = x.copy(), x * 0
        for _ in range(7):
            velocity = velocity + 0.1 * (np.sin(f) * position - position**3)
            position = position + 0.1 * velocity
        return (position**2).sum()

    x, f = np.array([0.5, 1.0, -0.3]), np.array([0.2, 0.4, 3.0])
    for got, wanted in zip(gradient(x, f, 7), differences(plain, x, f)):
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-6, atol=1e-9)


def test_kernels_without_a_gradient_in_a_program():
    @ti.kernel
    def noisy(a: ti.types.ndarray()):
        for i in a:
            a[i] += ti.random(ti.f64)

    x = ti.field(ti.f64, shape=3)

    @ti.kernel
    def of_field(a: ti.types.ndarray()):
        for i in a:
            a[i] *= x[i]

    for kernel, why in ((noisy, "random"), (of_field, "fields")):

        def loss(a, kernel=kernel):
            b = a * 1
            kernel(b)
            return b.sum()

        with pytest.raises(ValueError, match=why):
            ti.program(ti.grad(loss))(A)


def test_random_numbers_of_a_kernel_that_is_called():
    drawn = ti.ndarray(ti.f64, 3)

    @ti.kernel
    def noisy(a: ti.types.ndarray(), out: ti.types.ndarray()):
        for i in a:
            noise = ti.random(ti.f64)
            drawn[i] = noise
            out[i] = a[i] * noise

    a = tensor(A).requires_grad_()
    out = ti.tensor.zeros(3, dtype=ti.f64)
    noisy(a, out)
    out.sum().backward()
    np.testing.assert_array_equal(a.grad.numpy(), drawn.to_numpy())


@ti.kernel
def pendulums(x: ti.types.ndarray(), v: ti.types.ndarray(), out: ti.types.ndarray(), n: ti.i32) -> ti.f64:
    for i in x:
        for _ in range(n):
            v[i] -= 0.3 * ti.sin(x[i])
            x[i] += 0.3 * v[i]
    energy = ti.cast(0.0, ti.f64)
    for i in x:
        out[i] = x[i] * x[(i + 1) % x.shape[0]]
        energy += 0.5 * v[i] ** 2 * x[i]
    return energy


def swing(x, v):
    position, speed = x * 1, ti.xp.sin(v)
    out = ti.xp.zeros(3, dtype=ti.f64)
    energy = pendulums(position, speed, out, 4)
    return (out**2 * ti.xp.arange(1, 4)).sum() + energy * position[0]


def swing_in_numpy(x, v):
    x, v = x.copy(), np.sin(v)
    for _ in range(4):
        v = v - 0.3 * np.sin(x)
        x = x + 0.3 * v
    out = x * np.roll(x, -1)
    return (out**2 * np.arange(1, 4)).sum() + (0.5 * v**2 * x).sum() * x[0]


def second_differences(f, at, h=1e-4):
    """The Hessian of ``f`` by the elements of some arrays, flattened one behind the other."""
    sizes = np.cumsum([x.size for x in at])[:-1]

    def flat(z):
        return f(*np.split(z, sizes))

    z = np.concatenate(at)
    steps = h * np.eye(z.size)
    return np.array(
        [
            [(flat(z + a + b) - flat(z + a - b) - flat(z - a + b) + flat(z - a - b)) / (4 * h * h) for b in steps]
            for a in steps
        ]
    )


@pytest.mark.parametrize("in_program", [False, True])
def test_second_derivatives_through_a_kernel(in_program):
    at = [np.array([0.5, 1.0, -0.3]), np.array([0.2, 0.4, -1.0])]

    def hessian(x, v):
        return ti.hessian(swing, (0, 1))(x, v)

    made = (ti.program(hessian) if in_program else hessian)(*map(tensor, at))
    made = np.block([[part.numpy() for part in row] for row in made])
    np.testing.assert_allclose(made, second_differences(swing_in_numpy, at), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("in_program", [False, True])
def test_tangents_and_hessian_products_through_a_kernel(in_program):
    at, along = [np.array([0.5, 1.0, -0.3]), np.array([0.2, 0.4, -1.0])], [A / 2, A - 2]
    wrap = ti.program if in_program else lambda f: f
    given = [tensor(x) for x in at], [tensor(x) for x in along]
    _, tangent = wrap(lambda at, along: ti.jvp(swing, tuple(at), tuple(along)))(*given)
    gradient = np.concatenate(differences(swing_in_numpy, *at))
    np.testing.assert_allclose(tangent.numpy(), gradient @ np.concatenate(along), rtol=1e-6)
    (by_x,) = wrap(lambda x, v, along: ti.hvp(lambda x: swing(x, v), (x,), (along,)))(*given[0], given[1][0])
    expected = second_differences(swing_in_numpy, at)[:3, :3] @ along[0]
    np.testing.assert_allclose(by_x.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_arrays_of_a_gradient_lie_anywhere():
    """What a launch saves of its arrays does not depend on their addresses, nor on those of the gradient's arrays."""
    at = [tensor([0.5, 1.0, -0.3]), tensor([0.2, 0.4, -1.0])]
    made = [np.concatenate([g.numpy() for g in ti.grad(swing, (0, 1))(*at)]) for _ in range(20)]
    assert np.ptp(made, axis=0).max() == 0


def test_a_kernel_for_each_of_a_batch():
    @ti.kernel
    def damped(x: ti.types.ndarray(), k: ti.types.ndarray(), out: ti.types.ndarray()) -> ti.f64:
        total = ti.cast(0.0, ti.f64)
        for i in x:
            x[i] = x[i] ** 2 * k[0]
            out[i, 0] = x[i] + i
            total += x[i]
        return total

    def f(x, k):
        own, out = x * 1, ti.xp.zeros((3, 1), dtype=ti.f64)
        total = damped(own, k, out)
        with p.if_cond(total > 1):
            total.val = total + damped(own, k, out)
        return out[:, 0] * total

    rows = np.array([A / 4, A, A / 3, -A])
    k = np.array([[1.5], [0.5], [1.0], [2.0]])
    made = ti.program(ti.vmap(f))(rows, k).numpy()
    by_columns = ti.program(ti.vmap(f, in_axes=(1, None)))(rows.T.copy(), k[0]).numpy()
    one = ti.program(f)
    for n in range(4):
        np.testing.assert_array_equal(made[n], one(rows[n], k[n]).numpy())
        np.testing.assert_array_equal(by_columns[n], one(rows[n], k[0]).numpy())


def test_a_kernel_that_cannot_be_batched():
    @ti.kernel
    def noisy(a: ti.types.ndarray()):
        for i in a:
            a[i] += ti.random(ti.f64)

    def f(a):
        own = a * 1
        noisy(own)
        return own

    with pytest.raises(ValueError, match="`noisy` draws random numbers"):
        ti.program(ti.vmap(f))(np.ones((2, 3)))


@pytest.mark.parametrize("n", [0, 1, 3])
def test_jacobian_through_a_kernel(n):
    def f(x, y):
        out = x * 0
        step(out, x * 2, y * x)
        return out

    x, y = np.arange(1.0, n + 1), np.full(n, 3.0)
    by_x, by_y = ti.jacobian(f, (0, 1))(tensor(x), tensor(y))
    np.testing.assert_allclose(by_x.numpy(), np.diag(0.1 * (2 + 0.1 * y)), rtol=1e-6)
    np.testing.assert_allclose(by_y.numpy(), np.diag(0.01 * x), rtol=1e-6)


def test_second_derivatives_of_random_numbers_of_a_kernel():
    @ti.kernel
    def noisy(a: ti.types.ndarray(), out: ti.types.ndarray(), drawn: ti.types.ndarray()):
        for i in a:
            drawn[i] = ti.random(ti.f64)
            out[i] = a[i] ** 3 * drawn[i]

    drawn = ti.xp.zeros(3, dtype=ti.f64)

    def loss(a):
        out = ti.xp.zeros(3, dtype=ti.f64)
        noisy(a, out, drawn)
        return out.sum()

    made = ti.grad(lambda a: ti.grad(loss)(a).sum())(tensor(A))
    np.testing.assert_allclose(made.numpy(), 6 * A * drawn.numpy())


def test_kernels_without_second_derivatives():
    x = ti.field(ti.f64, shape=3)

    @ti.kernel
    def of_field(a: ti.types.ndarray(), b: ti.types.ndarray()):
        for i in a:
            b[i] = a[i] ** 3 * x[i]

    def first(a, s, call):
        def loss(a):
            b = ti.xp.zeros(3, dtype=ti.f64)
            call(a, b, s)
            return b.sum()

        return ti.grad(loss)(a).sum()

    def third(a):
        def cube(a):
            out = a * 1
            step(out, a * 2, a * 3)
            return out.sum()

        return ti.grad(lambda a: ti.grad(cube)(a).sum())(a).sum()

    with pytest.raises(ti.AerogelRuntimeError, match="uses fields .* first derivatives only"):
        ti.grad(first)(tensor(A), None, lambda a, b, s: of_field(a, b))
    with pytest.raises(ti.AerogelRuntimeError, match="`s`, which is a number: let it take an array"):
        ti.grad(first, 1)(tensor(A), tensor(2.0), scaled_squares)
    with pytest.raises(ti.AerogelRuntimeError, match="first and second derivatives only") as e:
        ti.grad(third)(tensor(A))
    defined, called = re.findall(rf"{re.escape(__file__)}:(\d+)", str(e.value))
    lines = Path(__file__).read_text().splitlines()
    assert lines[int(defined) - 1] == "@ti.kernel"
    assert "def step(" in lines[int(defined)]
    assert lines[int(called) - 1].strip() == "step(out, a * 2, a * 3)"
    with pytest.raises(ValueError, match="first and second derivatives only"):
        ti.program(ti.grad(third))(tensor(A))


def test_a_parameter_that_a_kernel_would_overwrite():
    a = tensor(A).requires_grad_()
    with pytest.raises(RuntimeError, match="requires_grad"):
        scaled_squares(tensor(A), a, 2.0)


# Tapes.


@pytest.fixture
def fields():
    x, y = (ti.field(ti.f64, shape=3, needs_grad=True) for _ in range(2))
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    x.from_numpy(A)

    @ti.kernel
    def square():
        for i in x:
            y[i] = x[i] ** 2

    @ti.kernel
    def add_up():
        for i in y:
            loss[None] += y[i] * (i + 1)

    return x, y, loss, square, add_up


def test_a_tape_over_kernels_fields_and_tensors(fields):
    x, y, loss, square, add_up = fields
    w = tensor(2.0).requires_grad_()
    with ti.ad.Tape(loss):
        square()
        y.from_numpy(ti.xp.sin(ti.tensor.asarray(y)) * w)
        add_up()
    np.testing.assert_allclose(x.grad.to_numpy(), 4 * A * np.cos(A**2) * [1, 2, 3])
    np.testing.assert_allclose(w.grad.numpy(), (np.sin(A**2) * [1, 2, 3]).sum())


def test_a_loss_that_is_a_tensor(fields):
    x, y, _, square, _ = fields
    w = tensor(WEIGHTS).requires_grad_()
    with ti.ad.Tape() as tape:
        square()
        loss = (ti.tensor.asarray(y) * w).sum()
    tape.grad(loss)
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * A * WEIGHTS)
    np.testing.assert_allclose(w.grad.numpy(), A**2)
    with pytest.raises(ti.AerogelRuntimeError, match="once"):
        tape.grad(loss)


def test_a_field_that_is_overwritten_between_tensors(fields):
    x = fields[0]
    with ti.ad.Tape() as tape:
        x.from_numpy(ti.tensor.asarray(x) ** 2)
        again = ti.tensor.asarray(x)
        x.fill(0)
        loss = (again * again).sum()
    tape.grad(loss)
    np.testing.assert_allclose(x.grad.to_numpy(), 4 * A**3)
    np.testing.assert_array_equal(x.to_numpy(), [0, 0, 0])


def test_a_kernel_with_tensors_and_fields_on_a_tape(fields):
    x = fields[0]

    @ti.kernel
    def mix(a: ti.types.ndarray(), b: ti.types.ndarray()):
        for i in a:
            b[i] = a[i] * x[i]

    with ti.ad.Tape() as tape:
        a = tensor(WEIGHTS).requires_grad_()
        b = ti.tensor.zeros(3, dtype=ti.f64)
        mix(a * 3, b)
        loss = (b * b).sum()
    tape.grad(loss)
    np.testing.assert_allclose(a.grad.numpy(), 18 * WEIGHTS * A**2)
    np.testing.assert_allclose(x.grad.to_numpy(), 18 * WEIGHTS**2 * A)


def test_backward_of_what_a_tape_has_read(fields):
    with ti.ad.Tape():
        loss = ti.tensor.asarray(fields[0]).sum()
    with pytest.raises(RuntimeError, match=r"tape\.grad\(loss\)"):
        loss.backward()


def test_a_tape_without_a_loss(fields):
    with ti.ad.Tape() as tape:
        fields[3]()
    with pytest.raises(ti.AerogelRuntimeError, match="needs a loss"):
        tape.grad()


def test_fields_as_parameters(fields):
    x, y, loss, square, add_up = fields

    def of_tensor(x, w):
        square()
        return (ti.tensor.asarray(y) * w).sum()

    by_x, by_w = ti.grad(of_tensor, (0, 1))(x, tensor(3.0))
    np.testing.assert_allclose(by_x.numpy(), 6 * A)
    np.testing.assert_allclose(by_w.numpy(), (A**2).sum())

    def of_field(x):
        loss.fill(0)
        square()
        add_up()
        return loss

    value, by_x = ti.value_and_grad(of_field)(x)
    assert value is loss
    np.testing.assert_allclose(by_x.numpy(), 2 * A * [1, 2, 3])
    _, pullback = ti.vjp(lambda x: ti.tensor.asarray(x) * 2, x)
    for seed in (A, WEIGHTS):
        np.testing.assert_allclose(pullback(tensor(seed))[0].numpy(), 2 * seed)


def test_a_sparse_field_as_a_parameter():
    block = ti.root.pointer(ti.i, 4)
    x = ti.field(ti.f64, needs_grad=True)
    block.dense(ti.i, 4).place(x, x.grad)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    x[1], x[9] = 2.0, 3.0

    @ti.kernel
    def cubes():
        for i in x:
            loss[None] += x[i] ** 3

    def f(x):
        loss.fill(0)
        cubes()
        return loss

    made = ti.grad(f)(x).numpy()
    expected = np.zeros(16)
    expected[[1, 9]] = 12, 27
    np.testing.assert_allclose(made, expected)


def test_a_field_without_a_gradient_as_a_parameter():
    x = ti.field(ti.f64, shape=3)
    with pytest.raises(ti.AerogelRuntimeError, match="needs_grad=True"):
        ti.grad(lambda x: ti.tensor.asarray(x).sum())(x)


@pytest.mark.parametrize("wrap", [lambda f: f, ti.program])
def test_two_arguments_that_are_one_tensor(wrap):
    @ti.kernel
    def add(a: ti.types.ndarray(), b: ti.types.ndarray()):
        for i in a:
            b[i] += a[i]

    def loss(x):
        y = x * 1
        add(y, y)
        return y.sum()

    with pytest.raises(Exception, match="are one tensor"):
        wrap(ti.grad(loss))(tensor(A)).numpy()


def test_a_method_of_an_object():
    @ti.data_oriented
    class Spring:
        def __init__(self):
            self.stiffness = 3.0

        @ti.kernel
        def force(self, x: ti.types.ndarray(), f: ti.types.ndarray()):
            for i in x:
                f[i] = -self.stiffness * x[i]

    spring = Spring()

    def loss(x):
        f = ti.tensor.zeros(3, dtype=ti.f64)
        spring.force(x, f)
        return f.sum()

    np.testing.assert_allclose(ti.grad(loss)(tensor(A)).numpy(), [-3, -3, -3])


def test_a_kernel_on_a_tape_with_tensors_by_name(fields):
    @ti.kernel
    def doubled(a: ti.types.ndarray(), b: ti.types.ndarray()):
        for i in a:
            b[i] = a[i] * 2

    with ti.ad.Tape() as tape:
        a = tensor(A).requires_grad_()
        b = ti.tensor.zeros(3, dtype=ti.f64)
        doubled(a=a, b=b)
        loss = b.sum()
    tape.grad(loss)
    np.testing.assert_array_equal(a.grad.numpy(), [2, 2, 2])
