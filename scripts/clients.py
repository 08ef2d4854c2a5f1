"""Runs published packages with Taichi 1.7.4 (or Quadrants) and with Aerogel: the table of `docs/compatibility.md`.

    python scripts/clients.py [--cache FOLDER] [--no-page] [NAME ...]

Each client is a program in `scripts/clients` that does the main job of its package. It runs twice in the same
environment, once as it is and once by `python -m aerogel run`, with empty compile caches. The environments are made in
FOLDER (`.cache/clients`) once; the one of PyTorch takes 6 GB. The packages are installed without what they ask for,
since many of them pin versions of years ago.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "compatibility.md"
# Share of elements that may differ where a program decides by last digits: a step of a search, a pixel at an edge.
MOST_APART = 0.02
LIMIT = 300  # seconds a program may take

# What each environment has besides the clients that run in it.
ENVIRONMENTS = {
    "plain": ("taichi==1.7.4 numpy scipy matplotlib pillow mpmath meshio polars mpi4py mpich tqdm").split(),
    "torch": "taichi==1.7.4 numpy torch tensordict beartype tqdm poetry-core".split(),
    "jax": "taichi==1.7.4 numpy jax brainunit brainstate".split(),
    "quadrants": "quadrants==1.3.3 numpy".split(),
}


@dataclass
class Client:
    """A published package.

    `tolerance` is the largest difference, relative to the largest value of an array, that counts as equal. `why` tells
    why a package has no program or why its program cannot be compared.
    """

    name: str
    version: str
    job: str
    environment: str = "plain"
    tolerance: float = 1e-4
    why: str = ""


CLIENTS = [
    Client("algo2code", "0.2.1", "conjugate gradients, written from LaTeX"),
    Client("anco", "1.1.0", "diffusion, forces and motion of an ant colony"),
    Client("braintaichi", "0.0.5", "sparse products in JAX", "jax", why="no program yet"),
    Client("continuous-cellular-engine", "0.1.0", "a Lenia automaton"),
    Client("geotaichi", "0.2.6", "granular columns", why="no program yet"),
    Client("mandelbrot-viewer", "0.1.14", "its kernel: the Mandelbrot set in `f64`"),
    Client(
        "meshtaichi-patcher",
        "0.0.19",
        "patches of meshes",
        why="no wheel for Python 3.11, and its source does not build",
    ),
    Client("open-watercolor-sim", "0.1.1", "strokes of a brush and 20 steps of water and pigment"),
    Client("particlefx", "1.0.0", "4,000 smoothed particles of a liquid"),
    Client("quadrants-typing", "0.2.6", "annotations of kernels", "quadrants", why="it needs Python 3.12"),
    Client("smudgy", "0.2.4", "smooths 5,000 points and deposits them onto a grid"),
    Client("stannum", "0.9.1", "a kernel as a layer of PyTorch, with gradients", "torch"),
    Client("taichi-big-float", "0.1.3", "sums, products and quotients of floats of 192 bits"),
    Client("taichi-elements", "0.0.1", "elastic particles"),
    Client("taichi-extras", "0.1.0", "Adam on the distance of two point sets"),
    Client("taichi-glsl", "0.0.12", "import"),
    Client("taichi-meta", "0.1.1", "compiles a kernel from a string"),
    Client("taichi-q", "0.0.10", "a circuit of ten qubits"),
    Client("taichi-splatting", "0.13.0", "draws Gaussians", "torch", why="it compiles CUDA code as it is imported"),
    Client("taichi-three", "0.0.9", "import"),
    Client("taichi-volume-renderer", "1.6.0", "draws a volume from two sides"),
    Client("taichigame", "0.0.3", "60 bodies under forces and torques"),
    Client("ti-runtime", "0.2.1", "vector operations of a solver in `f64`"),
    Client("tibfgs", "0.0.4", "20,000 minimisations of Ackley's function"),
    Client("tibvh", "0.1.5", "builds a tree of boxes and casts rays", "torch"),
    Client("tifonts", "0.1.0", "writes text into an image"),
    Client("timod", "0.0.17", "a kernel as a module of PyTorch, with gradients", "torch"),
    Client("tiwave", "0.0.1", "waveforms of gravitational waves (IMRPhenomXAS)"),
    Client("xuvdb", "1.4.0", "samples and normals of a sparse volume", "quadrants"),
]


def python_of(cache: Path, environment: str) -> Path:
    """The interpreter of an environment, which is made if it is missing."""
    python = cache / environment / "bin" / "python"
    done = cache / environment / "made"
    if not done.exists():
        subprocess.run([os.environ.get("PYTHON", sys.executable), "-m", "venv", str(cache / environment)], check=True)
        install(python, *ENVIRONMENTS[environment])
        done.touch()
    return python


def install(python: Path, *arguments: str) -> None:
    """Runs pip in an environment; fails if pip does."""
    subprocess.run(
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments], check=True
    )


def site_of(cache: Path, client: Client, python: Path) -> Path:
    """The folder with the package of `client` alone, which is installed if it is missing."""
    folder = cache / "packages" / f"{client.name}-{client.version}"
    if not folder.exists():
        install(
            python,
            "--no-deps",
            "--ignore-requires-python",
            "--target",
            f"{folder}.new",
            f"{client.name}=={client.version}",
        )
        Path(f"{folder}.new").rename(folder)
    return folder


@dataclass
class Run:
    """What came of a program: its arrays and times in seconds, or the sentence that ended it."""

    arrays: dict[str, np.ndarray]
    first: float = 0.0
    later: float = 0.0
    error: str = ""


def last_error(text: str) -> str:
    """The message of the exception that ended a program, or its last line."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Exit)\b.*", line)]
    return errors[-1].replace("|", "\\|")[:160] if errors else ""


def run(program: Path, python: Path, site: Path, aerogel: bool) -> Run:
    """Runs a program of `scripts/clients` with Aerogel or what its package was made for."""
    with tempfile.TemporaryDirectory() as work:
        out = Path(work, "out.npz")
        path = [str(site), str(program.parent), *([str(ROOT / "frontend-py" / "python")] if aerogel else [])]
        env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path),
            "CLIENT_OUT": str(out),
            "AEROGEL_CACHE_DIR": str(Path(work, "aerogel")),
            "TI_OFFLINE_CACHE_FILE_PATH": str(Path(work, "taichi")),
            "QD_OFFLINE_CACHE_FILE_PATH": str(Path(work, "quadrants")),
            "MPLBACKEND": "agg",
            "CLIENT_SITE": str(site),
            "TI_ARCH": "x64",  # several packages ask for a GPU as they are imported
        }
        command = [str(python), *(["-m", "aerogel", "run"] if aerogel else []), str(program)]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                env=env,
                timeout=LIMIT,
                stdin=subprocess.DEVNULL,
                cwd=work,
            )
        except subprocess.TimeoutExpired:
            return Run({}, error=f"no end in {LIMIT} s")
        if done.returncode != 0 or not out.exists():
            if os.environ.get("CLIENT_VERBOSE"):
                print(done.stdout[-2000:], done.stderr[-6000:], file=sys.stderr)
            return Run({}, error=last_error(done.stderr) or f"ends with status {done.returncode}")
        with np.load(out) as saved:
            arrays = {name: saved[name] for name in saved.files}
        return Run(arrays, float(arrays.pop("first_s")), float(arrays.pop("later_s")))


def difference(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference of two arrays, relative to the largest finite value; infinite if it is not defined."""
    if a.shape != b.shape:
        return float("inf")
    a, b = (np.asarray(x, np.complex128 if np.iscomplexobj(x) else np.float64) for x in (a, b))
    if not (np.isnan(a) == np.isnan(b)).all() or not (np.isinf(a) == np.isinf(b)).all():
        return float("inf")
    finite = np.isfinite(a)
    if not finite.any():
        return 0.0
    scale = np.abs(a[finite]).max()
    return float(np.abs(a[finite] - b[finite]).max() / scale) if scale > 0 else float(np.abs(b[finite]).max())


def equality(pairs: list[tuple[np.ndarray, np.ndarray]], tolerance: float) -> str:
    """How equal arrays are: to which difference, or but for which share of their elements."""
    worst = max((difference(a, b) for a, b in pairs), default=float("inf"))
    if worst <= tolerance:
        return "to the bit" if worst == 0 else f"to {worst:.0e}"
    if not np.isfinite(worst):
        return "**no**"
    share = max(
        float((np.abs(a - b) > tolerance * np.abs(a).max()).mean())
        for a, b in ((x.astype(float), y.astype(float)) for x, y in pairs)
    )
    return f"except {share:.1g} of the elements" if share <= MOST_APART else f"**no: {worst:.0e}**"


def row(client: Client, cache: Path) -> str:
    """The line of a client in the table."""
    package = f"`{client.name}` {client.version}"
    program = ROOT / "scripts" / "clients" / f"run_{client.name.replace('-', '_')}.py"
    if not program.exists():
        return f"| {package} | {client.job} | not run: {client.why} | | | |"
    python = python_of(cache, client.environment)
    site = site_of(cache, client, python)
    there, here = run(program, python, site, False), run(program, python, site, True)
    why = f" ({client.why})" if client.why else ""
    if here.error:
        both = f"in Taichi too: {there.error}" if there.error else here.error
        return f"| {package} | {client.job} | no: {both}{why} | | | |"
    if there.error:
        return f"| {package} | {client.job} | yes; fails in Taichi: {there.error}{why} | | | {here.first:.1f} |"
    pairs = [(a, here.arrays.get(name, np.zeros(0))) for name, a in there.arrays.items()]
    ratio = there.later / here.later
    times = f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}"
    equal, first = equality(pairs, client.tolerance), f"{here.first:.1f} / {there.first:.1f}"
    return f"| {package} | {client.job} | yes{why} | {equal} | {times} | {first} |"


START, END = "<!-- clients -->", "<!-- end of clients -->"


def main() -> None:
    """Runs the named clients, or all and writes their table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, default=ROOT / ".cache" / "clients")
    parser.add_argument("--no-page", action="store_true", help="print the table only")
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    unknown = set(asked.names) - {c.name for c in CLIENTS}
    if unknown:
        parser.error(f"no client is named {', '.join(sorted(unknown))}")
    cache = asked.cache.resolve()
    lines = [
        "| package | job | works | equal | times as fast | first run, s (Aerogel / Taichi) |",
        "|---|---|---|---|---|---|",
    ]
    for client in CLIENTS:
        if not asked.names or client.name in asked.names:
            lines.append(row(client, cache))
            print(lines[-1], flush=True)
    if not asked.names and not asked.no_page:
        before, rest = PAGE.read_text().split(START)
        after = rest.split(END)[1]
        PAGE.write_text(before + START + "\n" + "\n".join(lines) + "\n" + END + after)


if __name__ == "__main__":
    main()
