"""``python -m aerogel view``: runs a program and shows its fields while it runs."""

from __future__ import annotations

import os
from typing import Any

from aerogel.view._viewer import Options

__all__ = ["Options", "view"]


def view(program: str, arguments: list[str], options: Options) -> None:
    """Runs a program and shows its fields, in a window or, without a display, in pictures.

    Args:
        program: Its file.
        arguments: What follows it on the command line.
        options: What is shown, and how.

    Raises:
        SystemExit: As of the program; with code 1 if it stopped at a NaN that nobody looks at.
    """
    from aerogel.run import run
    from aerogel.view._hooks import Hooks
    from aerogel.view._viewer import Ended, Viewer

    _take_environment(options)
    viewer = Viewer(options, os.path.dirname(os.path.abspath(program)))
    is_over = False
    try:
        with Hooks(viewer):
            run(program, arguments)
        is_over = True
    except SystemExit as e:
        is_over = not isinstance(e, Ended)
        raise
    finally:
        viewer.finish(is_over)


def _take_environment(options: Options) -> None:
    """What is said there about windows is said to the viewer, not to those of the program; and launches are timed."""
    frames: Any = os.environ.pop("AEROGEL_GUI_FRAMES", "")
    options.frames = options.frames or int(frames or 0)
    out = os.environ.pop("AEROGEL_GUI_OUT", "")
    options.out = options.out or out
    os.environ.setdefault("AEROGEL_KERNEL_PROFILER", "1")
    from aerogel.ui import _backend

    if not options.out and not _backend.has_display():
        options.out = "view.png"
