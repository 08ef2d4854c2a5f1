"""``ti.ad.jax_function``: what it saves, what it refuses, and JAX's transformations."""

import numpy as np
import pytest

import aerogel as ti

jax = pytest.importorskip("jax")
jnp = jax.numpy
A = ti.types.ndarray


@pytest.fixture(autouse=True)
def fresh(arch):
    pass


@ti.kernel
def square(x: A(), y: A()):
    for i in x:
        y[i] = x[i] ** 2


@ti.kernel
def scaled(x: A(), s: ti.f32, v: ti.types.vector(2, ti.f32), y: A()):
    for i in x:
        y[i] = x[i] * s * v[0] + v[1]


@ti.kernel
def two(x: A(), y: A(), z: A()):
    for i in x:
        y[i] = x[i] ** 2
        z[i] = x[i] ** 3


def test_fields_that_change():
    c, s = ti.field(ti.f32, 1), ti.field(ti.f32, 1, needs_grad=True)

    @ti.kernel
    def step(x: A(), y: A()):
        for i in x:
            y[i] = x[i] * c[i]

    @ti.kernel
    def fourth(x: A(), y: A()):
        for i in x:
            s[i] = x[i] * x[i]
        for i in x:
            y[i] = s[i] * s[i]

    def loop(x):
        for t in range(3):
            c.fill(t + 1)
            x = ti.ad.jax_function(step)(x)
        return x.sum()

    assert jax.grad(loop)(jnp.ones(1)).tolist() == [6]
    assert c[0] == 3
    f = ti.ad.jax_function(fourth)
    assert jax.grad(lambda a: f(a).sum() + f(a * 0 + 1).sum())(jnp.ones(1) * 3).tolist() == [108]


def test_arrays_for_numbers():
    f, x, v = ti.ad.jax_function(scaled), jnp.array([1.0, 2, 3]), jnp.array([3.0, 1])
    by_all = jax.grad(lambda x, s, v: f(x, s, v).sum(), argnums=(0, 1, 2))
    for found in by_all(x, 2.0, v), jax.jit(by_all)(x, 2.0, v):
        assert [part.tolist() for part in found] == [[6, 6, 6], 18, [12, 3]]
    assert jax.grad(lambda x: f(x, s=2.0, v=[3.0, 1.0]).sum())(x).tolist() == [6, 6, 6]


def test_numbers_of_both_zeros():
    @ti.kernel
    def angle(s: ti.f32, x: A(), y: A()):
        for i in x:
            y[i] = ti.atan2(s, x[i])

    f, x = ti.ad.jax_function(angle), -jnp.ones(1)
    assert f(0.0, x)[0] == -f(-0.0, x)[0] > 3


def test_several_results_and_arrays_of_integers():
    f, x = ti.ad.jax_function(two, n_outputs=2), jnp.array([1.0, 2, 3])
    assert jax.grad(lambda x: f(x)[1].sum())(x).tolist() == [3, 12, 27]
    assert jax.grad(lambda x: sum(y.sum() for y in f(x)))(x).tolist() == [5, 16, 33]

    @ti.kernel
    def gather(x: A(), at: A(dtype=ti.i32), y: A()):
        for i in at:
            y[i] = x[at[i]] ** 2

    f = ti.ad.jax_function(gather, shape=lambda x, at: at.shape)
    at = jnp.array([0, 0, 2, 2, 2])
    assert jax.grad(lambda x: f(x, at).sum())(x).tolist() == [4, 0, 18]


def test_own_arrays_beside():
    @ti.kernel
    def through(x: A(), out: A(), y: A()):
        for i in x:
            out[i] = x[i] * x[i]
        for i in x:
            y[i] = out[i] * out[i]

    x, out = jnp.array([1.0, 2, 3]), ti.ndarray(ti.f32, 3, needs_grad=True)
    f = ti.ad.jax_function(through)
    assert jax.grad(lambda x: f(x, out).sum() + f(0 * x, out).sum())(x).tolist() == [4, 32, 108]


def test_transformations():
    f, x, rows = ti.ad.jax_function(square), jnp.array([1.0, 2, 3]), jnp.arange(6.0).reshape(2, 3)
    assert jnp.array_equal(jax.vmap(f)(rows), rows**2)
    gradient = jax.grad(lambda x: f(x).sum())
    assert jnp.array_equal(jax.jit(jax.vmap(gradient))(rows), 2 * rows)
    assert jnp.array_equal(jax.jacrev(f)(x), jnp.diag(2 * x))
    for forward in (lambda: jax.jvp(f, (x,), (x,)), lambda: jax.jacfwd(f)(x)):
        with pytest.raises(RuntimeError, match="has gradients and no tangents: use jax.vjp or jacrev"):
            forward()
    with pytest.raises(RuntimeError, match="kernel `square` as a function has first derivatives only"):
        jax.grad(lambda x: gradient(x).sum())(x)


def test_random_numbers_are_those_of_the_call():
    @ti.kernel
    def noisy(x: A(), y: A()):
        for i in x:
            y[i] = x[i] * ti.random(ti.f32)

    value, gradient = jax.value_and_grad(lambda x: ti.ad.jax_function(noisy)(x).sum())(jnp.ones(1))
    assert gradient[0] == value


def test_what_is_refused():
    @ti.kernel
    def advance(x: A(), y: A()):
        for i in x:
            y[i] = x[i]
            x[i] = 0

    x = jnp.array([1.0, 2, 3])
    with pytest.raises(
        RuntimeError, match=r"kernel `advance` \(.*py:\d+\) writes to its argument `x`, and arrays of JAX"
    ):
        ti.ad.jax_function(advance)(x)
    with pytest.raises(TypeError, match="`x` is missing"):
        ti.ad.jax_function(square)()
    with pytest.raises(TypeError, match=r"`x` of kernel `square` is traced by JAX, .* `ti.ad.jax_function\(square\)`"):
        jax.jit(lambda x: square(x, np.zeros(3, np.float32)) or x)(x)
