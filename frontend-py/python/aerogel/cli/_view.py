"""The options of ``python -m aerogel view``."""

from __future__ import annotations

import argparse

from aerogel._colormaps import table
from aerogel.tools.image import check_path
from aerogel.view import Options


def options_of(args: argparse.Namespace) -> Options:
    """The options of the command line; misuse ends the process with code 2."""
    width, _, height = args.size.partition("x")
    if not (width.isdigit() and height.isdigit() and int(width) >= 320 and int(height) >= 200):
        args.misuse(f"--size is a width and a height of at least 320x200, as in 1080x680, not {args.size!r}")
    for name in ("every", "frames"):
        if getattr(args, name) < 0:
            args.misuse(f"--{name} is not negative")
    if "%" in args.out:
        try:
            args.out % 1
        except (TypeError, ValueError):
            args.misuse(f"--out has one number, as in frame-%04d.png, not {args.out!r}")
    if args.out:
        try:
            check_path(args.out)
        except (ValueError, ImportError) as e:
            args.misuse(f"--out: {e}")
    try:
        table(args.cmap)
    except ValueError as e:
        args.misuse(f"--cmap: {e}")
    return Options(
        only=[name.strip() for name in args.only.split(",")] if args.only else [],
        ranges=dict(_range(args, text) for text in args.range),
        size=(int(width), int(height)),
        frames=args.frames,
        out=args.out,
        every=args.every,
        stops=not args.no_stop,
        is_paused=args.paused,
        cmap=args.cmap,
    )


def _range(args: argparse.Namespace, text: str) -> tuple[str, tuple[float, float]]:
    name, _, both = text.partition("=")
    low, _, high = both.partition(":")
    try:
        out = name, (float(low), float(high))
    except ValueError:
        out = "", (0.0, 0.0)
    if not (out[0] and out[1][0] < out[1][1]):
        args.misuse(f"--range is a name and two numbers, as in pressure=-1:1, not {text!r}")
    return out
