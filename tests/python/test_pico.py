"""picograd's names: values, the graph of operations, gradients, and training."""

import gc
import subprocess
import sys

import numpy as np
import pytest

import aerogel as ti
from aerogel import _native
from aerogel import pico as pg


@pytest.fixture(autouse=True)
def _start():
    ti.init(arch=ti.cpu, log_level="error")


def test_the_function_of_the_course(tmp_path):
    """The program of section 2.2.1 as it is printed, and its gradients as they are derived there by hand."""
    program = tmp_path / "program.py"
    program.write_text("""
import picograd as pg
def f(x1: pg.Tensor, x2: pg.Tensor) -> pg.Tensor:
    a = pg.exp(x1)
    b = pg.sin(x2)
    c = b**2
    d = a*c
    return d
if __name__ == "__main__":
    print(f(9, 10))
    x1, x2 = pg.Tensor(0.5, requires_grad=True), pg.Tensor(2.0, requires_grad=True)
    a, b = pg.exp(x1), pg.sin(x2)
    c = b**2
    # outputs to inputs
    by_x1 = c * pg.exp(x1)
    by_x2 = a * (2*b) * pg.cos(x2)
    f(x1, x2).backward()
    for x, hand in ((x1, by_x1), (x2, by_x2)):
        assert abs(x.grad.item() - hand.item()) < 1e-5
""")
    command = [sys.executable, "-m", "aerogel", "run", program]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    value = float(done.stdout.splitlines()[-1].removeprefix("Tensor(").removesuffix(")"))
    assert abs(value - np.exp(9) * np.sin(10) ** 2) < 0.01


def test_the_graph():
    x, y = pg.Tensor([1.0, 2.0]), pg.Tensor([3.0, 4.0])
    z = pg.exp(x) * y + x
    order = z.op.toposort()
    assert [op.code.name for op in order] == ["BUFFER", "EXP", "BUFFER", "MUL", "ADD"]
    assert order[-1] is z.op is z.uop and z.op.src == (order[3], order[0]) and order[3].shape == (2,)
    assert all(order.index(source) < k for k, op in enumerate(order) for source in op.src)
    assert (x.sum().op.code, x[0].op.code, (x @ y).op.code) == (pg.OpCode.SUM, pg.OpCode.INDEX, pg.OpCode.MATMUL)
    assert x.detach().op.code is pg.OpCode.DETACH


def test_deep_graphs():
    x = pg.Tensor(1.0)
    for _ in range(5000):
        x = x + 1.0
    assert len(x.op.toposort()) == 10001


def test_values_and_gradients():
    x = pg.Tensor([1.0, -2.0, 3.0], requires_grad=True)
    assert x.value.tolist() == [1, -2, 3] and x.value.dtype == np.float32 and x.grad is None
    assert x.requires_grad and x.is_floating_point() and x.device == pg.Device("cpu") and len(x) == 3
    assert (x * x).sum().backward().item() == 14
    (x * pg.Tensor([1.0, 1.0, 1.0])).backward(pg.Tensor([1.0, 10.0, 100.0]))
    assert x.grad.value.tolist() == [3, 6, 106], "gradients add up"
    x.grad = None
    x.data += -0.5 * pg.Tensor([2.0, 2.0, 2.0])
    assert x.grad is None and x.value.tolist() == [0, -3, 2] and x.requires_grad
    x.value = [1.0, 1.0, 1.0]
    assert x.value.tolist() == [1, 1, 1] and x.op.code is pg.OpCode.BUFFER
    with pytest.raises(ValueError, match="differentiates a scalar"):
        (x * x).backward()
    with pytest.raises(TypeError, match="floats"):
        pg.Tensor([1, 2], requires_grad=True)
    with pytest.raises(ValueError, match="there is no device"):
        pg.Tensor(1.0, device="cuda")


FUNCTIONS = [
    pg.exp, pg.exp2, pg.log, pg.log2, pg.log10, pg.sin, pg.cos, pg.sqrt, pg.tanh, pg.sigmoid, pg.reciprocal, pg.softmax,
    lambda x: x**3, lambda x: 2 / x, lambda x: 1 - x, lambda x: -x, lambda x: x / x.sum(), pg.mean, pg.max,
    lambda x: pg.maximum(x, 0.75), lambda x: x.reshape(3, 2).T @ x.view(3, 2), lambda x: x - 0.5,
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(FUNCTIONS)))
def test_functions(k):
    """Slopes are those of central differences."""
    function = FUNCTIONS[k]
    start = np.random.default_rng(k).uniform(0.5, 2, 6)
    weights = np.random.default_rng(k + 1).uniform(0.5, 2, np.size(function(pg.Tensor(start)).value))

    def loss(values, requires_grad=False):
        x = pg.Tensor(values, dtype=ti.f64, requires_grad=requires_grad)
        return x, (function(x).reshape(-1) * pg.Tensor(weights)).sum()

    x, y = loss(start, True)
    y.backward()
    for j, step in enumerate(1e-6 * np.eye(6)):
        slope = (loss(start + step)[1].item() - loss(start - step)[1].item()) / 2e-6
        assert abs(x.grad.value[j] - slope) < 1e-6


@pytest.mark.parametrize("optimizer", [None, pg.optim.sgd, pg.optim.adam])
def test_training(optimizer):
    """The loop of section 2.1.3, on letters that follow from the three before."""
    ti.tensor.random.seed(0)
    b, t, v, e, d = 32, 3, 7, 4, 32
    rng = np.random.default_rng(0)
    x = rng.integers(0, v, (400, t))
    y = (x[:, 0] + 2 * x[:, 2]) % v
    table, l1, l2 = pg.randn(v, e), pg.randn(t * e, d), pg.randn(d, v)
    params = [table, l1, l2]
    for p, scale in zip(params, (1.0, 0.3, 0.2)):
        p.data = p.data * scale
        p.requires_grad = True
    made = optimizer and optimizer(params, lr=0.5 if optimizer is pg.optim.sgd else 0.01)
    losses = []
    for _ in range(250):
        batch = rng.integers(0, len(x), b)
        embedded = table[pg.Tensor(x[batch])].view(-1, t * e)
        loss = ((embedded @ l1).tanh() @ l2).cross_entropy(pg.Tensor(y[batch]))
        for p in params:
            p.grad = None
        loss.backward()
        if made is None:
            for p in params:
                p.data += -0.5 * p.grad
        else:
            made.step()
        losses.append(loss.item())
    assert np.mean(losses[-10:]) < 0.6 * losses[0]


def test_graphs_of_earlier_iterations_are_freed():
    gc.collect()
    alive = _native.tensor_counts()[2]
    x = pg.Tensor(np.ones(10), requires_grad=True)
    for _ in range(2500):
        loss = (x * 2.0).tanh().sum()
        x.grad = None
        loss.backward()
        loss.item()
    # Some are freed only when there are many; of all iterations there would be 10,000.
    assert _native.tensor_counts()[2] - alive < 5000


OPERANDS = {
    pg.OpCode.ADD: (lambda a, b: a + b, [(2, 3), (3,)]),
    pg.OpCode.SUB: (lambda a, b: a - b, [(2, 1), (2, 3)]),
    pg.OpCode.MUL: (lambda a, b: a * b, [(), (2, 3)]),
    pg.OpCode.DIV: (lambda a, b: a / b, [(2, 3), (1, 3)]),
    pg.OpCode.NEG: (lambda a: -a, [(2, 3)]),
    pg.OpCode.POW: (lambda a: a**3, [(2, 3)]),
    pg.OpCode.RELU: (lambda a: pg.relu(a - 1.0), [(2, 3)]),
    pg.OpCode.RESHAPE: (lambda a: a.reshape(3, -1), [(2, 3)]),
    pg.OpCode.TRANSPOSE: (lambda a: a.transpose(0, 2), [(2, 3, 4)]),
}
#: Keys of elements: some of them are chosen several times.
CHOSEN = [1, (slice(None), slice(2, None)), (Ellipsis, np.array([0, 2, 0])), (0, np.array([1, 1]))]
PRODUCTS = [[(2, 3), (3, 4)], [(3,), (3,)], [(3,), (3, 4)], [(2, 3), (3,)], [(5, 2, 3), (3, 4)], [(5, 2, 3), (3,)]]


def gradients(function, given):
    """Those by `backward`, whose results are weighted."""
    tensors = [pg.Tensor(x, dtype=ti.f64, requires_grad=True) for x in given]
    out = function(*tensors)
    weights = np.random.default_rng(9).uniform(0.5, 2, out.shape)
    (out * pg.Tensor(weights, dtype=ti.f64)).sum().backward()
    return [x.grad.value for x in tensors]


def check_rule(function, shapes, monkeypatch):
    """A chain rule gives what tensors give without it."""
    rng = np.random.default_rng(1)
    given = [rng.uniform(0.5, 2, shape) for shape in shapes]
    by_rules = gradients(function, given)
    with monkeypatch.context() as patch:
        patch.setattr(pg.chain_rules, "rules", [])
        wanted = gradients(function, given)
    for one, other in zip(by_rules, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("code", sorted({p.code for p, _ in pg.chain_rules.rules}, key=lambda code: code.name))
def test_each_rule(code, monkeypatch):
    if code is pg.OpCode.MATMUL:
        for shapes in PRODUCTS:
            check_rule(lambda a, b: a @ b, shapes, monkeypatch)
        return
    if code in (pg.OpCode.SUM, pg.OpCode.MEAN):
        function = getattr(pg, code.name.lower())
        for axis, shape in [(None, (2, 3)), (0, (2, 3)), (-1, (2, 3)), ((0, -1), (2, 3, 4)), (None, ())]:
            check_rule(lambda a, axis=axis: function(a * a, axis), [shape], monkeypatch)
        return
    if code is pg.OpCode.INDEX:
        for key in CHOSEN:
            check_rule(lambda a, key=key: a[key], [(2, 3)], monkeypatch)
        return
    function, shapes = OPERANDS.get(code) or (getattr(pg, code.name.lower()), [(2, 3)])
    check_rule(function, shapes, monkeypatch)


def test_rules_of_ones_own():
    """A rule replaces the one of the table until it is removed; a wrong number of gradients is an error."""
    x = pg.Tensor([-1.0, 2.0], requires_grad=True)
    pg.relu(x).sum().backward()
    assert x.grad.value.tolist() == [0, 1]
    rule = lambda output_grad, y: (output_grad * 10.0 + y,)  # noqa: E731
    pg.chain_rules.add(pg.Pattern(pg.OpCode.RELU, name="y"), rule)
    try:
        assert str(pg.chain_rules).startswith("RELU         lambda output_grad, y: (output_grad * 10.0 + y,)\nMATMUL")
        x.grad = None
        pg.relu(x).sum().backward()
        assert x.grad.value.tolist() == [10, 12]
    finally:
        pg.chain_rules.remove(rule)
    with pytest.raises(ValueError, match="not in the table"):
        pg.chain_rules.remove(rule)
    few = lambda output_grad: (output_grad,)  # noqa: E731
    pg.chain_rules.add(pg.Pattern(pg.OpCode.MUL), few)
    try:
        with pytest.raises(ValueError, match="chain rule of MUL returns 1 gradients, and the operation has 2 operands"):
            (x * x).sum().backward()
    finally:
        pg.chain_rules.remove(few)


def test_the_table_is_printed():
    lines = str(pg.chain_rules).splitlines()
    assert len(lines) == len(pg.chain_rules.rules)
    assert "SIN          lambda output_grad, input: (output_grad * input.src[0].cos(),)" in lines
    assert "POW of 1     lambda output_grad, input: (output_grad * _power(input.src[0], input.op.arg),)" in lines


def test_steps():
    x1, x2 = pg.Tensor(0.5, requires_grad=True), pg.Tensor(2.0, requires_grad=True)
    result = pg.exp(x1) * pg.sin(x2) ** 2 + x1
    steps = pg.steps(result)
    forward = [step for step in steps if step.is_forward]
    assert [step.op for step in forward] == result.op.toposort()
    assert [step.op.code.name for step in steps if not step.is_forward] == ["ADD", "MUL", "POW", "SIN", "EXP"]
    result.backward()
    last = steps[len(steps) - 1].gradients
    np.testing.assert_allclose(last[x1.op], x1.grad.value, rtol=1e-6)
    np.testing.assert_allclose(last[x2.op], x2.grad.value, rtol=1e-6)
    # Before its gradient is computed, a picture does not show it.
    pictures = [step._repr_svg_() for step in steps]
    assert [text.count(">grad ") for text in pictures] == [0] * 7 + [3, 5, 6, 7, 7]
    assert all(text.count("<rect") == 7 for text in pictures)
    assert steps._repr_html_().count("<details") == len(steps) == 12
    with pytest.raises(ValueError, match="differentiates a scalar"):
        pg.steps(pg.Tensor([1.0, 2.0]) * 2.0)
    with pytest.raises(NotImplementedError, match="no chain rule matches MAX: add one"):
        pg.steps(pg.max(pg.Tensor([1.0, 2.0])))
    x = pg.Tensor([1.0, 2.0])
    assert pg.steps(x[1] * x[1] + x[0])[-1].gradients[x.op].tolist() == [1.0, 4.0]
    x = pg.Tensor([1.0, 2.0])
    assert [(x * x).sum().item(), *pg.steps((x * x).sum())[-1].gradients[x.op]] == [5.0, 2.0, 4.0]


def test_counts_of_both_modes():
    """Many arguments and one result: reverse mode takes one more pass, forward mode one for each argument."""

    def product(*args):
        out = args[0]
        for x in args[1:]:
            out = out * x
        return out

    counts = [pg.count(product, *[1.5] * n) for n in (2, 4, 8)]
    # Each product is two products in reverse mode. By argument k, forward mode goes through all that come after it.
    assert [(c.function, c.reverse) for c in counts] == [(n - 1, 2 * (n - 1)) for n in (2, 4, 8)]
    assert [sum(c.forward) for c in counts] == [2, 9, 35]
    with pytest.raises(NotImplementedError, match="elementwise operations on numbers, and SUM is not one"):
        pg.count(lambda x: x.sum(), [1.0, 2.0])
