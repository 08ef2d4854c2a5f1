"""Every reader of files is given files with random mistakes; `AEROGEL_MUTATIONS=100000` for so many of each."""

import os
import struct
import subprocess
import re
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

import aerogel as ti

PROGRAM = Path(__file__).with_name("readers.py")
N = int(os.environ.get("AEROGEL_MUTATIONS", "100"))


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
def test_files_with_mistakes_are_refused_or_read():
    command = [sys.executable, str(PROGRAM), str(N), os.environ.get("AEROGEL_SEED", "0")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60 + N)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == "0 failures", done.stdout


def test_a_picture_that_announces_more_pixels_than_it_can_hold(tmp_path):
    path = tmp_path / "large.png"
    ti.tools.imwrite(np.zeros((4, 4, 3), np.uint8), str(path))
    data = path.read_bytes()
    head = struct.pack(">4sIIBBBBB", b"IHDR", 1 << 20, 1 << 20, 8, 2, 0, 0, 0)
    path.write_bytes(data[:12] + head + struct.pack(">I", zlib.crc32(head)) + data[33:])
    with pytest.raises(
        OSError, match=r"large.png: it announces 1048576 x 1048576 pixels, more than its \d+ bytes can hold"
    ):
        ti.tools.imread(str(path))


def test_every_reader_of_the_page_is_tried():
    page = Path(__file__).parents[2] / "docs" / "trust.md"
    if not page.exists():
        pytest.skip("the documents are not here")
    sys.path.insert(0, str(PROGRAM.parent))
    from readers import READERS

    text = page.read_text()
    missing = [name for name in READERS if f"`{name.split()[0]}`" not in text and f".{name.split()[0]}`" not in text]
    assert not missing
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    named = {name.split(".")[-1] for row in rows for name in re.findall(r"`([\w.]+)`", row)}
    # One reads by `idx`, the other one by a package of others.
    assert named - {"mnist", "import_nanovdb"} == {name.split()[0] for name in READERS}
