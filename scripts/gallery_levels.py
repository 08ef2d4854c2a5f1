"""Runs the gallery small at each level of x86-64 that runs here, and lists the programs whose results differ.

python scripts/gallery_levels.py                        # all of them
python scripts/gallery_levels.py --fast-math 0 mpm sph  # these, and accumulations in order
"""

import argparse
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> int:
    """Compares them; the exit status says whether others differ than those that may."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="programs; all by default")
    parser.add_argument("--fast-math", help="what ti.init takes; its default if it is not given")
    options = parser.parse_args()
    if options.fast_math is not None:
        os.environ["AEROGEL_FAST_MATH"] = options.fast_math
    sys.path[:0] = [str(ROOT / "tests" / "python"), str(ROOT / "scripts")]
    make_gallery, gallery = importlib.import_module("make_gallery"), importlib.import_module("decisions.gallery")
    names = options.names or [name for name in make_gallery.EXAMPLES if runs_here(make_gallery, name)]
    listed = subprocess.run(
        [sys.executable, ROOT / "scripts" / "levels.py"], capture_output=True, text=True, check=True
    )
    levels = listed.stdout.split()
    print(f"comparing {len(names)} programs at {', '.join(levels)}", flush=True)
    found = gallery.compared(levels, names)
    for name, what in found.items():
        may = gallery.may_differ().get(name)
        print(f"{name} ({'may differ: ' + may if may else 'must not differ'}):", *what, sep="\n    ")
    print(f"{len(found)} programs differ: {', '.join(found)}")
    return bool(set(found) - set(gallery.may_differ()))


def runs_here(make_gallery, name: str) -> bool:
    """Whether what a program needs is installed."""
    needed = [*make_gallery.NEEDS.get(name, []), *(["aerogel_viz"] if name == "drape" else [])]
    return all(importlib.util.find_spec(package) is not None for package in needed)


if __name__ == "__main__":
    sys.exit(main())
