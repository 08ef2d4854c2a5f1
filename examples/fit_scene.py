"""Balls that gradient descent fits to a picture: positions, sizes and colours follow from its pixels alone.

Rays march towards a soft union of balls. A ball that a ray passes closely counts a little, so that silhouettes have
gradients, too. Left is the scene that is to be found, right the one that is being found.
"""

import common
import numpy as np

import aerogel as ti
from aerogel import optim

SOFTNESS, N_STEPS = 0.06, 14
LIGHT = np.array([0.5, 0.7, 0.6]) / np.linalg.norm([0.5, 0.7, 0.6])


def distances(points, balls):
    """How far points of shape (rays, 3) are from each ball: shape (rays, balls)."""
    away = points[:, None, :] - balls["center"]
    return ti.tensor.sqrt((away * away).sum(axis=-1) + 1e-9) - ti.tensor.exp(balls["size"])


def nearest(points, balls):
    """A soft minimum of the distances, and how much each ball has to do with it."""
    apart = -distances(points, balls) / SOFTNESS
    return -SOFTNESS * ti.special.logsumexp(apart, axis=1), ti.special.softmax(apart, axis=1)


def render(balls, rays):
    """Colours of shape (rays, 3): rays look along -z from z = 2."""
    t = ti.tensor
    depth, closest = rays[:, 0] * 0, rays[:, 0] * 0 + 9.0
    for _ in range(N_STEPS):
        near, _ = nearest(t.stack([rays[:, 0], rays[:, 1], 2.0 - depth], axis=-1), balls)
        closest = t.minimum(closest, near)
        depth = depth + near
    at = t.stack([rays[:, 0], rays[:, 1], 2.0 - depth], axis=-1)
    _, weights = nearest(at, balls)
    away = at[:, None, :] - balls["center"]
    normal = (weights[..., None] * away / t.sqrt((away * away).sum(axis=-1, keepdims=True) + 1e-9)).sum(axis=1)
    lit = 0.25 + 0.75 * t.maximum((normal * t.asarray(LIGHT.astype(np.float32))).sum(axis=-1), 0.0)
    color = weights @ ti.special.expit(balls["color"])
    cover = ti.special.expit((0.02 - closest) / 0.02)[:, None]
    return cover * color * lit[:, None] + (1 - cover) * (0.08 + 0.05 * rays[:, 1][:, None])


def rays_of(size: int):
    """Where the rays of a square picture pass, in the order of (x, y)."""
    at = (np.arange(size) + 0.5) / size * 3 - 1.5
    return ti.tensor.asarray(np.stack(np.meshgrid(at, at, indexing="ij"), -1).reshape(-1, 2).astype(np.float32))


@ti.program
def loss_and_gradient(balls, rays, target):
    """The mean square of what is wrong in the picture, and its gradient."""
    return ti.value_and_grad(lambda balls: ((render(balls, rays) - target) ** 2).mean())(balls)


def scene(n: int, seed: int) -> dict[str, np.ndarray]:
    """Balls at random: centers, logarithms of sizes, and colours before they are bounded."""
    rng = np.random.default_rng(seed)
    center = np.concatenate([rng.uniform(-1, 1, (n, 2)), rng.uniform(-0.5, 0.5, (n, 1))], axis=1)
    values = {"center": center, "size": np.log(rng.uniform(0.25, 0.45, n)), "color": rng.normal(0.4, 1.6, (n, 3))}
    return {name: value.astype(np.float32) for name, value in values.items()}


def main(small=False):
    """Runs it: pictures of the scene as it is found, the loss, and how far its slope is from central differences."""
    ti.init(arch=ti.cpu)
    n, size, iterations, shown_every = (2, 24, 40, 10) if small else (6, 72, 500, 10)
    wanted, rays = scene(n, 6), rays_of(size)
    picture = ti.program(render)
    target = picture({name: ti.tensor.asarray(v) for name, v in wanted.items()}, rays)
    rng = np.random.default_rng(1)
    # The colours are grey at first, and the balls elsewhere.
    begin = {name: v * (name != "color") for name, v in wanted.items()}
    begin["center"] = begin["center"] + 0.3 * rng.normal(size=(n, 3))
    begin["size"] = begin["size"] * 0 - 1.3
    balls = {name: ti.tensor.asarray(v.astype(np.float32)).requires_grad_() for name, v in begin.items()}
    adam, losses, frames = optim.Adam(list(balls.values()), lr=0.02), [], []
    large = rays_of(120 if small else 240)
    left = picture({name: ti.tensor.asarray(v) for name, v in wanted.items()}, large).numpy()
    for k in range(iterations):
        now = {name: p.detach() for name, p in balls.items()}
        if k % shown_every == 0 or k == iterations - 1:
            frames.append(picture(now, large).numpy())
        loss, gradient = loss_and_gradient(now, rays, target)
        adam.apply(gradient)
        losses.append(loss.item())
    error = slope_error(begin, rays, target)
    side = int(len(left) ** 0.5)
    images = [np.concatenate([image.reshape(side, side, 3) for image in (left, right)]) for right in frames]
    return np.clip(np.stack(images), 0, 1), {
        "loss before": losses[0],
        "loss after": losses[-1],
        "error of the slope": error,
    }


def slope_error(balls, rays, target) -> float:
    """How far the gradient by the centers is from what the loss does along it."""

    def at(centers):
        given = {**balls, "center": centers}
        return loss_and_gradient({k: ti.tensor.asarray(np.float32(v)) for k, v in given.items()}, rays, target)

    gradient = at(balls["center"])[1]["center"].numpy()
    return common.slope_error(lambda centers: at(centers)[0].item(), balls["center"], gradient, 0.005)


if __name__ == "__main__":
    common.run(main)
