"""What the codes of error messages mean: ``python -m aerogel explain E0203``."""

from __future__ import annotations

import os
import re

_FOLDER = os.path.dirname(__file__)


def codes() -> dict[str, str]:
    """All codes, and the section about each.

    >>> codes()["E0123"].splitlines()[0]
    '## E0123: the step of a range is zero'
    """
    sections = {}
    for name in sorted(os.listdir(_FOLDER)):
        if name.endswith(".md"):
            with open(os.path.join(_FOLDER, name), encoding="utf-8") as file:
                for section in file.read().split("\n## ")[1:]:
                    sections[section[:5]] = f"## {section.rstrip()}"
    return sections


def titles() -> dict[str, str]:
    """What each code is about, in a line.

    >>> titles()["E0123"]
    'the step of a range is zero'
    """
    return {code: text.splitlines()[0].partition(": ")[2] for code, text in codes().items()}


def explain(code: str) -> str:
    """The section about a code.

    Raises:
        KeyError: There is no such code.
    """
    code = code.strip().upper()
    if re.fullmatch(r"E?\d{1,4}", code):
        code = f"E{int(code.lstrip('E')):04}"
    try:
        return codes()[code]
    except KeyError:
        raise KeyError(f"there is no code {code}; the codes are {', '.join(codes())}") from None


__all__ = ["codes", "explain", "titles"]
