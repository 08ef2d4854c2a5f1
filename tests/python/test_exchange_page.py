"""The programs of docs/exchange.md run, one after another."""

import linecache
import re
from pathlib import Path

import pytest

import aerogel as ti

PAGE = Path(__file__).parents[2] / "docs" / "exchange.md"


@pytest.mark.skipif(not PAGE.exists(), reason="the page is not here")
def test_the_page():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) > 6
    scope = {"__name__": "page"}
    for number, block in enumerate(blocks):
        path = f"exchange_{number}.py"
        linecache.cache[path] = (len(block), None, block.splitlines(True), path)
        exec(compile(block, path, "exec"), scope)
    ti.reset()
