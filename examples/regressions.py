"""Regressions by Newton's method: logistic, multinomial and Poisson, beside the coefficients of scikit-learn.

A generalised linear model (Nelder and Wedderburn, 1972) is a loss of some lines; `ti.hessian` computes its second
derivatives. The pictures: the chance that a tumour is benign, three wines in the triangle of their chances, and the
jumps of sportsmen beside the expected number.

pip install scikit-learn
"""

import common
import numpy as np

import aerogel as ti
from aerogel.nn import functional as F


def split(parameters, n_features: int):
    """Coefficients of shape (features, outputs), and the constants."""
    table = parameters.reshape(n_features + 1, -1)
    return table[:-1], table[-1]


def shrink(coefficients, penalty: float):
    """What large coefficients cost; the constants are free."""
    return 0.5 * penalty * (coefficients**2).sum()


def logistic(parameters, x, y, penalty):
    """The negative log-likelihood of labels that are 0 or 1."""
    coefficients, constant = split(parameters, x.shape[1])
    logits = (x @ coefficients + constant)[:, 0]
    return F.binary_cross_entropy_with_logits(logits, y, reduction="sum") + shrink(coefficients, penalty)


def multinomial(parameters, x, y, penalty):
    """The negative log-likelihood of one of several classes."""
    coefficients, constant = split(parameters, x.shape[1])
    return F.cross_entropy(x @ coefficients + constant, y, reduction="sum") + shrink(coefficients, penalty)


def poisson(parameters, x, y, penalty):
    """The negative log-likelihood of counts whose logarithm is linear, without the term that is constant."""
    coefficients, constant = split(parameters, x.shape[1])
    eta = (x @ coefficients + constant)[:, 0]
    return (ti.tensor.exp(eta) - y * eta).sum() + shrink(coefficients, penalty)


def newton(loss, n_parameters: int, *data, tolerance: float = 1e-10) -> tuple[np.ndarray, int]:
    """The parameters where a convex loss is least, and the number of steps; for likelihoods this is IRLS."""
    at = ti.tensor.zeros(n_parameters, dtype=ti.f64)
    slope, curvature = ti.program(ti.value_and_grad(loss)), ti.program(ti.hessian(loss))
    for step in range(1, 101):
        value, gradient = slope(at, *data)
        # The matrix is singular along what changes no chance, as the same number added to all constants.
        move, part = ti.tensor.linalg.pinv(curvature(at, *data), rtol=1e-9) @ gradient, 1.0
        while loss(at - part * move, *data).item() > value.item() + 1e-12 * abs(value.item()):
            part /= 2
        at = at - part * move
        if abs(move).max().item() < tolerance:
            return at.numpy(), step
    raise RuntimeError("Newton's method has not converged in 100 steps")


def standard(data) -> tuple[np.ndarray, np.ndarray]:
    """Features of mean 0 and variance 1, and what is to be predicted."""
    x = (data.data - data.data.mean(0)) / data.data.std(0)
    return x, data.target


def dots(places, colors, size: int, lines=()) -> np.ndarray:
    """A panel with points in colours, places being from 0 to 1."""
    gui = ti.GUI("points", (size, size), background_color=0xFAF8F0, show_gui=False)
    for begin, end in lines:
        gui.line(begin, end, radius=1, color=0xB8B2A0)
    for color in np.unique(colors):
        gui.circles(places[colors == color].astype(np.float32), radius=max(size / 110, 2), color=int(color))
    return gui.get_image()[..., :3]


def main(small=False):
    """Runs it: a picture with a panel for each model, and how far the coefficients are from scikit-learn's."""
    from sklearn.datasets import load_breast_cancer, load_linnerud, load_wine
    from sklearn.linear_model import LogisticRegression, PoissonRegressor

    ti.init(arch=ti.cpu, default_fp=ti.f64)
    size, numbers, panels = 160 if small else 320, {}, []
    rows = {"logistic": (load_breast_cancer(), logistic), "multinomial": (load_wine(), multinomial)}
    rng = np.random.default_rng(0)
    for name, (data, loss) in rows.items():
        x, y = standard(data)
        n_outputs = 1 if name == "logistic" else 3
        target = y.astype(np.float64 if n_outputs == 1 else np.int32)
        found, steps = newton(loss, (x.shape[1] + 1) * n_outputs, *map(ti.tensor.asarray, (x, target)), 1.0)
        table = found.reshape(-1, n_outputs)
        peer = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(x, y)
        wanted = np.concatenate([peer.coef_.T, peer.intercept_[None]])
        logits = np.hstack([np.zeros((len(x), int(n_outputs == 1))), x @ table[:-1] + table[-1]])
        chance = F.softmax(ti.tensor.asarray(logits), -1).numpy()
        numbers |= {f"{name}: from scikit-learn": abs(table - wanted).max() / abs(wanted).max()}
        numbers |= {f"{name}: steps": steps, f"{name}: right": (chance.argmax(-1) == y).mean()}
        if n_outputs == 1:
            order = np.argsort(chance[:, 1])
            places = np.stack([np.linspace(0.04, 0.96, len(x)), 0.08 + 0.84 * chance[order, 1]], -1)
            places[:, 1] += 0.02 * rng.standard_normal(len(x)) * (y[order] - 0.5)
            panels.append(dots(places, np.where(y[order] == 1, 0x24705A, 0xB8321E), size))
        else:
            corners = np.array([[0.06, 0.1], [0.94, 0.1], [0.5, 0.9]])
            edges = [(corners[k], corners[k - 1]) for k in range(3)]
            # The square root moves those who are nearly sure a little away from the corners.
            shown = np.sqrt(chance) / np.sqrt(chance).sum(-1, keepdims=True)
            panels.append(dots(shown @ corners, np.array([0xB8321E, 0x24405F, 0xC99A2E])[y], size, edges))

    data = load_linnerud()
    x, y = (data.target - data.target.mean(0)) / data.target.std(0), data.data[:, 2]
    found, steps = newton(poisson, x.shape[1] + 1, *map(ti.tensor.asarray, (x, y)), 1.0)
    peer = PoissonRegressor(alpha=1.0 / len(x), tol=1e-10, max_iter=10_000).fit(x, y)
    wanted = np.append(peer.coef_, peer.intercept_)
    expected = np.exp(x @ found[:-1] + found[-1])
    numbers |= {"poisson: from scikit-learn": abs(found - wanted).max() / abs(wanted).max(), "poisson: steps": steps}
    places = np.stack([expected, y], -1) / (1.1 * y.max())
    panels.append(dots(places, np.full(len(x), 0x24405F), size, [((0.0, 0.0), (1.0, 1.0))]))
    return np.concatenate(panels), numbers


if __name__ == "__main__":
    common.run(main)
