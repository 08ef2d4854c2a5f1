"""Gradients of what kernels return, by their arguments."""

import pytest

import aerogel as ti


def test_numbers(arch):
    @ti.kernel
    def power(x: ti.f64, n: int, k: ti.f64) -> ti.f64:
        y = k
        ti.loop_config(serialize=True)
        for _ in range(n):
            y *= x
        return y

    value, (by_x, by_n, by_k) = ti.ad.value_and_grad(power)(2.0, 5, 3.0)
    assert (value, by_x, by_n, by_k) == (96, 240, None, 32)
    assert ti.ad.value_and_grad(power, seed=0.5)(2.0, 5, k=3.0)[1] == (120, None, 16)


def test_vectors(arch):
    @ti.kernel
    def turn(v: ti.types.vector(2, ti.f64), angle: ti.f64) -> ti.types.vector(2, ti.f64):
        c, s = ti.cos(angle), ti.sin(angle)
        return ti.Vector([c * v[0] - s * v[1], s * v[0] + c * v[1]])

    value, (by_v, by_angle) = ti.ad.value_and_grad(turn, seed=[1, 2])([3, 4], 0.0)
    assert (value.to_list(), by_v, by_angle) == ([3, 4], [1, 2], 2)


def test_methods_fields_and_arrays(arch):
    @ti.data_oriented
    class Model:
        def __init__(self):
            self.x = ti.field(ti.f64, shape=3, needs_grad=True)

        @ti.kernel
        def energy(self, k: ti.f64, a: ti.types.ndarray(ti.f64, 1)) -> ti.f64:
            total = ti.cast(0, ti.f64)
            for _ in range(1):
                for i in range(3):
                    total += k * self.x[i] * a[i]
            return total

    model, a = Model(), ti.ndarray(ti.f64, 3, needs_grad=True)
    model.x.fill(2)
    a.fill(3)
    value, (by_k, by_a) = ti.ad.value_and_grad(model.energy)(0.5, a)
    assert (value, by_k, by_a) == (9, 18, None)
    assert model.x.grad.to_numpy().tolist() == [1.5] * 3
    assert a.grad.to_numpy().tolist() == [1] * 3


def test_mistakes(arch):
    @ti.kernel
    def nothing(x: ti.f64):
        pass

    @ti.kernel
    def two(x: ti.f64) -> ti.types.vector(2, ti.f64):
        return ti.Vector([x, x])

    with pytest.raises(RuntimeError, match="takes a kernel, not int"):
        ti.ad.value_and_grad(3)
    with pytest.raises(RuntimeError, match="returns nothing"):
        ti.ad.value_and_grad(nothing)(1.0)
    with pytest.raises(ValueError, match="returns 2 numbers and needs as many seeds"):
        ti.ad.value_and_grad(two)(1.0)
