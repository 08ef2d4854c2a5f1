"""``python -m aerogel view``: runs a program and shows its fields while it runs."""

from __future__ import annotations

import os

from aerogel import _gui_last
from aerogel.tools.image import check_path
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

    try:
        _take_environment(options)
    except (ValueError, ImportError) as e:
        raise SystemExit(f"python -m aerogel view: {e}") from None
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
    options.frames = options.frames or _gui_last.frames()
    os.environ.pop("AEROGEL_GUI_FRAMES", None)
    out = os.environ.pop("AEROGEL_GUI_OUT", "")
    options.out = options.out or out
    if options.out:
        check_path(options.out)
    os.environ.setdefault("AEROGEL_KERNEL_PROFILER", "1")
