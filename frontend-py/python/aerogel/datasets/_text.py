"""Texts as numbers of their characters."""

from __future__ import annotations

import os
from typing import Any

from aerogel.tensor._tensor import Tensor, asarray


class Characters:
    """A text as numbers: each character's place among all characters of the text, in order.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> text = ti.datasets.Characters("abcab")
    >>> text.tokens.tolist(), text.decode([2, 0])
    ([0, 1, 2, 0, 1], 'ca')

    Args:
        text: The text.
        vocabulary: The characters in the order of their numbers, those of the text if not given.

    Raises:
        ValueError: If the text has a character that the vocabulary has not, or the vocabulary one twice.
    """

    def __init__(self, text: str, vocabulary: str | None = None) -> None:
        self.vocabulary = "".join(sorted(set(text))) if vocabulary is None else vocabulary
        self._number = {c: k for k, c in enumerate(self.vocabulary)}
        if len(self._number) != len(self.vocabulary):
            raise ValueError("`Characters`: a character occurs twice in the vocabulary")
        #: The numbers of the characters.
        self.tokens = self.encode(text)

    def __len__(self) -> int:
        return self.tokens.shape[0]

    def encode(self, text: str) -> Tensor:
        """The numbers of a text's characters.

        Raises:
            ValueError: If a character is not in the vocabulary.
        """
        import numpy as np

        try:
            numbers = np.fromiter((self._number[c] for c in text), np.int32, len(text))
        except KeyError as e:
            raise ValueError(f"the character {e.args[0]!r} is not in the vocabulary") from None
        return asarray(numbers)

    def decode(self, tokens: Any) -> str:
        """The text of some numbers.

        Raises:
            IndexError: If there is no such character.
        """
        numbers = asarray(tokens).reshape(-1).tolist()
        for n in numbers:
            if not 0 <= n < len(self.vocabulary):
                raise IndexError(f"there is no character {n}: the vocabulary has {len(self.vocabulary)}")
        return "".join(self.vocabulary[n] for n in numbers)

    def windows(self, length: int) -> Windows:
        """All windows of the text with this number of characters, each with the characters that follow."""
        return Windows(self.tokens, length)


class Windows:
    """All parts of a row of tokens with a length, each with the same one token later: the data of language models.

    ``Batches`` takes windows: each batch is a pair of shape (batch, length).

    Args:
        tokens: Shape (n,).
        length: How many tokens a window has.

    Raises:
        ValueError: If there are no more tokens than a window has.
    """

    def __init__(self, tokens: Any, length: int) -> None:
        self.tokens, self.length = asarray(tokens), int(length)
        if self.tokens.ndim != 1 or length < 1 or self.tokens.shape[0] <= length:
            raise ValueError(f"`Windows` of {length} tokens, and the one that follows, in a row of {self.tokens.shape}")

    def __len__(self) -> int:
        return self.tokens.shape[0] - self.length

    def _examples(self, at: Any) -> tuple[Tensor, Tensor]:
        import numpy as np

        places = asarray((np.asarray(at)[:, None] + np.arange(self.length)).astype(np.int32))
        return self.tokens[places], self.tokens[places + 1]

    def __getitem__(self, k: int) -> tuple[Tensor, Tensor]:
        n = len(self)
        if not -n <= k < n:
            raise IndexError(f"there is no window {k}: there are {n}")
        return self.tokens[k % n : k % n + self.length], self.tokens[k % n + 1 : k % n + 1 + self.length]


def text(path: str | os.PathLike[str], vocabulary: str | None = None) -> Characters:
    """The characters of a file in UTF-8 as numbers.

    Args:
        path: The file.
        vocabulary: The characters in the order of their numbers, those of the text if not given.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is no text in UTF-8.
    """
    try:
        with open(path, encoding="utf-8") as file:
            return Characters(file.read(), vocabulary)
    except UnicodeDecodeError as e:
        raise ValueError(f"{os.fspath(path)} is not UTF-8 text: {e}") from None
