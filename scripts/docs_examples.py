"""Shows the examples of docstrings as code on the documentation site.

`>>>` begins a quotation in Markdown, so lines of an example become a block of code:

    >>> x = 1            ```pycon
    >>> x                >>> x = 1
    1              =>    >>> x
                         1
                         ```
"""

import re

import griffe

#: The role of a name, as in :class:`Tape`.
ROLE = re.compile(r":(?:attr|class|func|meth):(?=`)")


def fenced(text: str) -> str:
    """A docstring whose examples are blocks of code; each ends at an empty line or at a smaller indentation."""
    lines, indent = [], None
    for line in [*text.split("\n"), ""]:
        stripped = line.lstrip()
        width = len(line) - len(stripped)
        if indent is not None and (not stripped or width < indent):
            lines.append(" " * indent + "```")
            indent = None
        if indent is None and stripped.startswith(">>> "):
            indent = width
            lines += [""] * bool(lines and lines[-1].strip())
            lines.append(" " * indent + "```pycon")
        lines.append(line)
    return "\n".join(lines[:-1])


class Examples(griffe.Extension):
    """The extension of mkdocstrings that `mkdocs.yml` names."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Changes the docstring of each object."""
        if obj.docstring is not None and "```" not in obj.docstring.value:
            obj.docstring.value = ROLE.sub("", fenced(obj.docstring.value))
