"""Optimizers along 100 steps beside numbers that PyTorch gave, schedules, clipping, and what a step compiles."""

import math

import numpy as np
import pytest

import aerogel as ti
from aerogel import _native, nn, optim

t = ti.tensor


@pytest.fixture(autouse=True)
def _start():
    ti.init(arch=ti.cpu, log_level="error")
    # Values are looked at.
    with ti.no_grad():
        yield
    ti.reset()


def start():
    return [np.array([-1.2, 1.0, 0.7]), np.linspace(-1, 1, 6).reshape(2, 3)]


def gradients(x, y):
    """Those of a hundredth of Rosenbrock's function, and of a quadratic one that depends on the same."""
    g = np.zeros(3)
    for k in range(2):
        g[k] += -400 * x[k] * (x[k + 1] - x[k] ** 2) - 2 * (1 - x[k])
        g[k + 1] += 200 * (x[k + 1] - x[k] ** 2)
    return [g * 0.01 + y.sum(0) * 0.1, np.arange(1, 7).reshape(2, 3) * (y - 0.3) + x * 0.1]


CASES = [
    ("SGD", {"lr": 0.05}),
    ("SGD", {"lr": 0.02, "momentum": 0.9}),
    ("SGD", {"lr": 0.02, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.02, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.001, "maximize": True}),
    ("Adam", {"lr": 0.05}),
    ("Adam", {"lr": 0.05, "weight_decay": 0.1, "betas": (0.8, 0.9), "eps": 1e-6}),
    ("AMSGrad", {"lr": 0.05, "weight_decay": 0.1}),
    ("AdamW", {"lr": 0.03, "weight_decay": 0.3}),
    ("AdamW", {"lr": 0.03, "weight_decay": 0.3, "amsgrad": True}),
    ("RMSProp", {"lr": 0.01}),
    ("RMSProp", {"lr": 0.01, "alpha": 0.9, "centered": True, "momentum": 0.5, "weight_decay": 0.01}),
    ("Adagrad", {"lr": 0.5}),
    ("Adagrad", {"lr": 0.5, "lr_decay": 0.1, "initial_accumulator_value": 0.2, "weight_decay": 0.01}),
    ("Adadelta", {"lr": 1.0}),
    ("Adadelta", {"lr": 2.0, "rho": 0.8, "eps": 1e-4, "weight_decay": 0.01}),
    ("Lion", {"lr": 0.01, "weight_decay": 0.1}),
    ("NovoGrad", {"lr": 0.02, "weight_decay": 0.01}),
]
#: Where 100 steps end: PyTorch 2.15 in double precision, and by NumPy for the last two.
ENDS = [
    [-0.867101172863, 0.737122268943, 0.539122263366, 0.380206575924, 0.262312833784, 0.281480646414, 0.32179061463, 0.285127936949, 0.29087832608],
    [-0.499366693604, 0.221925872892, 0.0193045814566, 0.345542254404, 0.28575343233, 0.297723158929, 0.313073592744, 0.296679635753, 0.297240831372],
    [-0.482805929361, 0.207912714257, 0.0153228671796, 0.339398557249, 0.283412961503, 0.29884166102, 0.311903577031, 0.296279269062, 0.297262865863],
    [-0.47447651522, 0.199495017223, 0.0121839036947, 0.34353250881, 0.287710670647, 0.298486368488, 0.311204075856, 0.295364653118, 0.29928042792],
    [-1.8044923365, 0.923974113894, 0.647658468437, -1.15133155266, -0.788068290368, -0.366777679717, 0.133967176775, 0.80685334805, 1.58241785581],
    [-0.44974599181, 0.171393867802, -0.00169664453549, 0.341658142207, 0.287955030199, 0.297672311102, 0.311847913825, 0.29747202343, 0.301755740251],
    [-0.190694635178, 0.0146834167, -0.028102529226, 0.289903330211, 0.28496070045, 0.287717440021, 0.297918152548, 0.29430893366, 0.296282908798],
    [-0.21608444487, 0.0252377479563, -0.0289181746693, 0.288089206053, 0.281385932625, 0.289099062548, 0.298264308532, 0.294051315514, 0.29774023485],
    [-0.34172617732, 0.0927852810801, -0.0205809120497, 0.299630555115, 0.272719859341, 0.289614426834, 0.306235222832, 0.292733669379, 0.281702643421],
    [-0.342569941931, 0.093428710968, -0.0203590741379, 0.299122041618, 0.271801185399, 0.289317813706, 0.306200884076, 0.29246380003, 0.281331729795],
    [-0.704475431407, 0.468324015474, 0.199690770195, 0.273017209278, 0.270271142096, 0.292501059526, 0.317672684249, 0.290380753619, 0.29597461724],
    [-0.33066020617, 0.0774475359532, -0.0216240713102, 0.32949978304, 0.294216651802, 0.294109852644, 0.306536452598, 0.29689893558, 0.299915934986],
    [-0.561697068862, 0.29138120035, 0.0600168686276, 0.357328920987, 0.28510231924, 0.297931016499, 0.314104254642, 0.294120218147, 0.298945512969],
    [-0.855647757378, 0.717740255223, 0.504431517235, 0.381127277041, 0.262122205215, 0.281907901008, 0.320655691108, 0.284971997147, 0.290850578303],
    [-0.987997909422, 0.926280578981, 0.832244971731, -0.637688165147, -0.259721390578, 0.0934322841797, 0.32479933509, 0.347967958918, 0.671417038336],
    [-0.393048278994, 0.177171428614, -0.0373701306609, 0.360967378326, 0.34992364815, 0.224171713412, 0.397951950519, 0.377629581035, 0.226272688868],
    [-0.634210698315, 0.403262128051, 0.176789193356, 0.0472863817492, 0.409203240595, 0.316144855869, 0.308028115532, 0.289968829799, -0.0472863817492],
    [-0.286264206352, 0.0547548549259, -0.0322656511083, 0.251660711882, 0.323049431413, 0.271618286811, 0.310822338294, 0.291587387741, 0.344586892908],
]  # fmt: skip


def steps(optimizer, params, n=100):
    for _ in range(n):
        for p, g in zip(params, gradients(*(p.numpy() for p in params))):
            p.grad = t.asarray(g)
        optimizer.step()


@pytest.mark.parametrize("k", range(len(CASES)))
def test_steps_of_pytorch(k):
    name, settings = CASES[k]
    params = [nn.Parameter(p) for p in start()]
    optimizer = getattr(optim, name)(params, **settings)
    steps(optimizer, params, 3)
    before = _native.tensor_counts()[3]
    steps(optimizer, params, 97)
    # What the session drops stands at another step each time.
    assert _native.tensor_counts()[3] <= before + 1, "a step after the second compiles nothing"
    np.testing.assert_allclose(np.concatenate([p.numpy().ravel() for p in params]), ENDS[k], rtol=1e-6)


@pytest.mark.parametrize("k", range(len(CASES)))
def test_state_goes_on_in_another_optimizer(k, tmp_path):
    name, settings = CASES[k]
    params = [nn.Parameter(p) for p in start()]
    first = getattr(optim, name)(params, **settings)
    steps(first, params, 50)
    ti.save(tmp_path / "state.safetensors", {"model": params[0], "optimizer": first.state_dict()})
    params = [nn.Parameter(p.numpy()) for p in params]
    second = getattr(optim, name)(params, lr=123.0)
    second.load_state_dict(ti.load(tmp_path / "state.safetensors")["optimizer"])
    assert second.param_groups[0]["lr"] == settings["lr"]
    steps(second, params, 50)
    np.testing.assert_allclose(np.concatenate([p.numpy().ravel() for p in params]), ENDS[k], rtol=1e-6)


def test_groups():
    a, b = nn.Parameter([1.0]), nn.Parameter([1.0])
    sgd = optim.SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.1)
    a.grad = b.grad = t.ones(1)
    sgd.step()
    np.testing.assert_allclose([a.item(), b.item()], [0.9, 0.5], rtol=1e-6)
    c = nn.Parameter([1.0])
    sgd.add_param_group({"params": [c], "momentum": 0.9})
    assert [g["momentum"] for g in sgd.param_groups] == [0.0, 0.0, 0.9] and "group 2: 1 parameters" in repr(sgd)
    b.grad = None
    sgd.step()
    assert b.item() == 0.5 and c.item() == 1.0, "without a gradient nothing changes"
    sgd.zero_grad()
    assert a.grad is None
    assert sgd.step(lambda: 4) == 4


def test_halves_are_changed_in_f32():
    p = nn.Parameter([1.0], dtype=ti.bf16)
    adam = optim.Adam([p], lr=0.01)
    for _ in range(20):
        p.grad = t.ones(1, ti.bf16)
        adam.step()
    assert p.dtype is ti.bf16 and adam.state[p]["exp_avg"].dtype is ti.f32 and abs(p.astype(ti.f32).item() - 0.8) < 0.05


def test_modules_and_lazy_parameters():
    net = nn.Sequential(nn.Linear(-1, 2), nn.Linear(2, 1))
    sgd = optim.SGD(net, lr=1.0)
    sgd.step(), sgd.zero_grad()
    net(t.ones((1, 3)))
    w = net[0].weight.numpy()
    net[0].weight.grad = t.ones((2, 3))
    sgd.step()
    np.testing.assert_allclose(net[0].weight.numpy(), w - 1, rtol=1e-6)


def test_schedules_compile_nothing():
    p = nn.Parameter([1.0, 2.0])
    adam = optim.AdamW([p], lr=1.0)
    schedule = optim.StepLR(adam, 2, 0.5)
    counts = []
    for _ in range(12):
        p.grad = t.ones(2)
        adam.step()
        schedule.step()
        counts.append(_native.tensor_counts()[3])
    assert counts[-1] <= counts[1] + 1, counts
    assert schedule.get_last_lr() == [0.5**6]


def rates(make, n, lr=0.1, optimizer=None):
    optimizer = optimizer or optim.SGD([nn.Parameter([1.0])], lr=lr, momentum=0.9)
    schedule = make(optimizer)
    out = [optimizer.param_groups[0]["lr"]]
    for _ in range(n - 1):
        schedule.step()
        out.append(optimizer.param_groups[0]["lr"])
    return out


def test_schedules():
    close = np.testing.assert_allclose
    close(rates(lambda o: optim.StepLR(o, 2, 0.1), 5), [0.1, 0.1, 0.01, 0.01, 0.001])
    close(rates(lambda o: optim.MultiStepLR(o, [3, 1], 0.5), 5), [0.1, 0.05, 0.05, 0.025, 0.025])
    close(rates(lambda o: optim.ExponentialLR(o, 0.5), 4), [0.1, 0.05, 0.025, 0.0125])
    close(rates(lambda o: optim.LambdaLR(o, lambda k: 1 / (k + 1)), 3), [0.1, 0.05, 0.1 / 3])
    close(
        rates(lambda o: optim.CosineAnnealingLR(o, 4, 0.02), 5),
        [0.1, 0.06 + 0.04 * 0.5**0.5, 0.06, 0.06 - 0.04 * 0.5**0.5, 0.02],
    )
    close(rates(lambda o: optim.LinearLR(o, 0.5, 1.0, 2), 4), [0.05, 0.075, 0.1, 0.1])
    close(rates(lambda o: optim.WarmupLR(o, 2), 4), [0.05, 0.1, 0.1, 0.1])
    close(rates(lambda o: optim.WarmupLR(o, 2, optim.ExponentialLR(o, 0.5)), 5), [0.05, 0.1, 0.1, 0.05, 0.025])
    # As PyTorch 2.15.
    close(
        rates(lambda o: optim.OneCycleLR(o, 1.0, 6, 0.5), 7),
        [0.04, 0.52, 1.0, 0.75000100, 0.250003, 4e-06, 0.250003],
        rtol=1e-6,
    )
    sgd = optim.SGD([nn.Parameter([1.0])], lr=0.1, momentum=0.9)
    cycle = optim.OneCycleLR(sgd, 1.0, 4, 0.5, "linear")
    cycle.step()
    assert abs(sgd.param_groups[0]["momentum"] - 0.85) < 1e-12
    cycle.step(), cycle.step(), cycle.step()
    with pytest.raises(ValueError, match="`OneCycleLR` has 4 steps, this is step 5"):
        cycle.step()
    again = optim.ExponentialLR(optim.SGD([nn.Parameter([1.0])], lr=1.0), 0.5)
    again.load_state_dict({"last_epoch": 3, "base_lrs": [1.0]})
    assert again.get_last_lr() == [0.125] and again.state_dict()["last_epoch"] == 3


def test_plateau():
    sgd = optim.SGD([nn.Parameter([1.0])], lr=1.0)
    plateau = optim.ReduceLROnPlateau(sgd, factor=0.5, patience=1, cooldown=1, min_lr=0.2)
    seen = []
    for loss in [3.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, t.asarray(1.0), 1.0, 1.0, 1.0]:
        plateau.step(loss)
        seen.append(sgd.param_groups[0]["lr"])
    assert seen == [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.2, 0.2]


def test_clipping():
    a, b = nn.Parameter([1.0, 1.0]), nn.Parameter([1.0])
    a.grad, b.grad = t.asarray([3.0, -4.0]), t.asarray([12.0])
    assert abs(optim.clip_grad_norm_([a, b], 100.0).item() - 13) < 1e-5 and b.grad.item() == 12
    optim.clip_grad_norm_([a, b], 1.3)
    np.testing.assert_allclose([*a.grad.tolist(), b.grad.item()], [0.3, -0.4, 1.2], rtol=1e-5)
    assert abs(optim.clip_grad_norm_(a, 9.0, math.inf).item() - 0.4) < 1e-6
    assert abs(optim.clip_grad_norm_(a, 9.0, 1).item() - 0.7) < 1e-6
    optim.clip_grad_value_([a, b], 0.35)
    np.testing.assert_allclose([*a.grad.tolist(), b.grad.item()], [0.3, -0.35, 0.35], rtol=1e-5)
    a.grad = t.asarray([math.inf, 0.0])
    with pytest.raises(RuntimeError, match="the norm of the gradients is inf"):
        optim.clip_grad_norm_(a, 1.0, error_if_nonfinite=True)
    assert optim.clip_grad_norm_([nn.Parameter([1.0])], 1.0).item() == 0


def test_regularisers():
    net = nn.Linear(2, 1)
    net.load_state_dict({"weight": [[1.0, -2.0]], "bias": [3.0]})
    assert optim.l1(net, 0.5).item() == 3 and optim.l2(net.weight).item() == 5


WRONG = [
    (lambda: optim.SGD([]), ValueError, "at least one parameter"),
    (lambda: optim.SGD(3), TypeError, "`SGD` takes a module or a list of parameters, not int"),
    (lambda: optim.Adam([t.ones(2)]), TypeError, r"parameter 0, of shape \(2,\), has no gradient: pass an `nn.Parameter`"),
    (lambda: optim.Adam([1.0]), TypeError, "parameter 0 is float, not a tensor"),
    (lambda: optim.SGD([p := nn.Parameter([1.0]), p]), ValueError, "parameter 1, .* occurs twice"),
    (lambda: optim.SGD([nn.Parameter([1.0])], lr=-1), ValueError, "`lr` must be at least 0, not -1"),
    (lambda: optim.SGD([nn.Parameter([1.0])], nesterov=True), ValueError, "`nesterov` needs momentum"),
    (lambda: optim.Adam([nn.Parameter([1.0])], betas=(0.9, 1.0)), ValueError, "`betas` are two numbers"),
    (lambda: optim.Adam([{"params": nn.Parameter([1.0]), "rate": 1}]), TypeError, "`Adam` has no setting `rate`"),
    (lambda: optim.StepLR(nn.Linear(1, 1), 2), TypeError, "takes an optimizer, not Linear"),
    (lambda: optim.clip_grad_norm_([1], 1.0), TypeError, "parameter 0 is int"),
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(WRONG)))
def test_wrong(k):
    call, kind, words = WRONG[k]
    with pytest.raises(kind, match=words):
        call()


def test_gradients_of_other_shapes():
    p = nn.Parameter([1.0, 2.0])
    sgd = optim.SGD([p])
    with pytest.raises(ValueError, match=r"parameter 0 has the shape \(2,\), and its gradient \(3,\)"):
        sgd.apply([t.ones(3)])
    p.grad = t.ones(2)
    sgd.step()
    with pytest.raises(ValueError, match=r"the groups have \[1\] parameters, the loaded ones \[2\]"):
        sgd.load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]})


# A whole step as a program.


def traced_gradients(x, y):
    a, b, c = x[0], x[1], x[2]
    g = [-400 * a * (b - a**2) - 2 * (1 - a), 200 * (b - a**2) - 400 * b * (c - b**2) - 2 * (1 - b), 200 * (c - b**2)]
    return [t.stack(g) * 0.01 + y.sum(axis=0) * 0.1, t.arange(1, 7).reshape(2, 3).astype(ti.f64) * (y - 0.3) + x * 0.1]


@pytest.mark.parametrize("k", range(len(CASES)))
def test_steps_in_a_program(k):
    name, settings = CASES[k]
    params = [nn.Parameter(p) for p in start()]
    optimizer = getattr(optim, name)(params, **settings)

    @ti.program
    def step(optimizer):
        optimizer.apply(traced_gradients(*optimizer.param_groups[0]["params"]))

    for _ in range(50):
        step(optimizer)
    # The first step makes the state.
    assert step.trace_count <= 2
    if "step" in optimizer.state.get(params[0], {}):
        assert optimizer.state[params[0]]["step"] == 50
    steps(optimizer, params, 50)
    np.testing.assert_allclose(np.concatenate([p.numpy().ravel() for p in params]), ENDS[k], rtol=1e-6)


def test_settings_are_inputs_of_a_program():
    p, q = nn.Parameter([1.0]), nn.Parameter([1.0])
    sgd = optim.SGD([{"params": p}, {"params": q, "lr": 0.5}], lr=0.1)
    schedule = optim.ExponentialLR(sgd, 0.5)
    step = ti.program(lambda optimizer, g: optimizer.apply([g, None]))
    seen = []
    for _ in range(3):
        step(sgd, t.ones(1))
        schedule.step()
        seen.append(p.item())
    np.testing.assert_allclose(seen, [0.9, 0.85, 0.825], rtol=1e-6)
    assert q.item() == 1.0 and step.trace_count == 1


def test_modules_and_their_optimizer_in_a_program():
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    adam = optim.Adam(net, lr=0.1)
    w = net[0].weight.numpy()

    @ti.program
    def step(net, optimizer, x):
        y = net(x)
        optimizer.apply({name: t.ones_like(p) for name, p in net.named_parameters()})
        return y, net[0].weight.sum()

    x = t.random.randn(4, 3)
    before = net(x).numpy()
    y, total = step(net, adam, x)
    np.testing.assert_allclose(y.numpy(), before, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(net[0].weight.numpy(), w - 0.1, rtol=1e-4)
    assert abs(total.item() - net[0].weight.numpy().sum()) < 1e-5, "the module has what the optimizer has changed"
    assert net[1].num_batches_tracked.item() == 2
    with pytest.raises(TypeError, match="a program does not return optimizers"):
        ti.program(lambda o: o)(adam)
    with pytest.raises(ValueError, match="there are 1 gradients for 4 parameters"):
        adam.apply([t.ones(2)])


def one_step(scaler, factor):
    """A step with a layer that computes in f16, whose result is multiplied by a factor; the gradient, and the parameter."""
    w = nn.Parameter([1.0, -2.0])
    sgd = optim.SGD([w], lr=1.0)
    with ti.enable_grad():
        half = w.astype(ti.f16) * t.asarray([1.0, 0.5], ti.f16)
        scaler.scale((half.astype(ti.f32) * factor).sum()).backward()
    scaler.unscale_(sgd)
    made = w.grad.numpy()
    scaler.step(sgd)
    scaler.update()
    return made, w.numpy()


def test_scaling_keeps_small_gradients():
    """A gradient of 1e-9 is no number of f16; 65,536 times that is one."""
    assert np.array_equal(one_step(optim.GradScaler(enabled=False), 1e-9)[0], [0, 0])
    assert np.allclose(one_step(optim.GradScaler(), 1e-9)[0], [1e-9, 5e-10], rtol=0.01, atol=0)


def test_scaling_leaves_out_steps_that_overflow():
    scaler = optim.GradScaler(init_scale=2.0**16, growth_interval=2)
    scales = []
    for factor in (1e9, 0.25, 0.25, math.nan):
        moved = one_step(scaler, factor)[1]
        assert np.array_equal(moved, [0.75, -2.125] if factor == 0.25 else [1.0, -2.0])
        scales.append(scaler.get_scale())
    assert scales == [2.0**15, 2.0**15, 2.0**16, 2.0**15]
    other = optim.GradScaler()
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 2.0**15


def test_wrong_scaling():
    for wrong in ({"init_scale": 0}, {"growth_factor": 1}, {"backoff_factor": 1}, {"growth_interval": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            optim.GradScaler(**wrong)
    scaler = optim.GradScaler()
    with pytest.raises(TypeError, match="does not fit in f16: pass `loss.astype"):
        scaler.scale(t.asarray(1.0, ti.f16))
    with pytest.raises(RuntimeError, match="there was no `step`"):
        scaler.update()
    half = nn.Parameter(t.ones(2, ti.f16))
    half.grad = t.ones(2, ti.f16)
    with pytest.raises(TypeError, match="in which small gradients become zero"):
        scaler.unscale_(optim.SGD([half], lr=1.0))
    w = nn.Parameter([1.0])
    w.grad, sgd = t.ones(1), optim.SGD([w], lr=1.0)
    scaler.unscale_(sgd)
    with pytest.raises(RuntimeError, match="have been divided"):
        scaler.unscale_(sgd)
    scaler.step(sgd)
    with pytest.raises(RuntimeError, match="call `update` before the next step"):
        scaler.step(sgd)
    for wrong in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="must be positive and finite"):
            scaler.update(wrong)
        with pytest.raises(ValueError, match="must be positive and finite"):
            scaler.load_state_dict({"scale": wrong, "growth_tracker": 0})
    with pytest.raises(ValueError, match="an integer of at least 1"):
        optim.GradScaler(growth_interval=1.5)


def test_processes_leave_out_the_same_steps():
    """What overflowed in one process is infinite in the means of all, which are exchanged once for each step."""
    calls = []

    def average(flat):
        calls.append(flat)
        return [math.inf] * len(flat)

    w = nn.Parameter([1.0])
    sgd, scaler = optim.SGD([w], lr=1.0), optim.GradScaler(8.0)
    sgd.average = average
    w.grad = t.asarray([8.0])
    scaler.step(sgd)
    scaler.update()
    assert w.item() == 1.0 and scaler.get_scale() == 4.0 and len(calls) == 1
    sgd.average = lambda flat: calls.append(flat) or flat
    w.grad = t.asarray([8.0])
    scaler.step(sgd)
    assert w.item() == -1.0 and len(calls) == 2 and sgd.average is not None


def test_a_loss_and_its_gradient_as_one_program():
    net = nn.Linear(3, 2)
    x, y = t.arange(12).reshape(4, 3).astype(ti.f32), t.ones((4, 2))

    def loss(net, x, y):
        return ((net(x) - y) ** 2).mean()

    update = optim.grad_update(loss)
    value, made = update(net, x, y)
    right, gradient = ti.value_and_grad(loss)(net, x, y)
    assert value.item() == pytest.approx(right.item(), rel=1e-6)
    for own, other in zip(made.parameters(), gradient.parameters()):
        assert np.allclose(own.numpy(), other.numpy(), rtol=1e-5)
    marks = [line for line in update.lower(net, x, y).text.splitlines() if line.startswith(";")]
    assert marks == ["; forward", "; backward", "; results"]
    with pytest.raises(ValueError, match="`grad_update` differentiates a scalar.*: return its sum$"):
        optim.grad_update(lambda w: w * 2)(x)
    with pytest.raises(TypeError, match="takes a function, not int"):
        optim.grad_update(3)
