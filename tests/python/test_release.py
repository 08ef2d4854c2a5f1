"""`scripts/release.py`: what an index gets of a wheel."""

import base64
import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "release.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the scripts are not here")
README = '[a](docs/a.md#b) ![p](docs/p.png) <img src="docs/q.png"> [c](https://example.org/d) [e](#f)\n'


def wheel(folder, tag):
    path = folder / f"aerogel-1.2-cp310-abi3-{tag}.whl"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("aerogel/__init__.py", "x = 1\n")
        made.writestr("aerogel-1.2.dist-info/METADATA", f"Name: aerogel\nVersion: 1.2\n\n{README}")
        made.writestr("aerogel-1.2.dist-info/RECORD", "")
    return path


def run(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True)


def test_a_wheel(tmp_path):
    path = wheel(tmp_path, "manylinux_2_28_x86_64")
    done = run("--url", "https://host/me/aerogel", path)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(path) as made:
        head, _, text = made.read("aerogel-1.2.dist-info/METADATA").decode().partition("\n\n")
        record = made.read("aerogel-1.2.dist-info/RECORD").decode().splitlines()
        for line in record[:-1]:
            name, digest, size = line.split(",")
            data = made.read(name)
            found = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert (digest, size) == (f"sha256={found}", str(len(data)))
    assert len(record) == 3 and record[-1] == "aerogel-1.2.dist-info/RECORD,,"
    assert "Project-URL: Repository, https://host/me/aerogel" in head
    files, bytes_ = "https://host/me/aerogel/blob/v1.2", "https://host/me/aerogel/raw/v1.2"
    assert text == (
        f'[a]({files}/docs/a.md#b) ![p]({bytes_}/docs/p.png) <img src="{bytes_}/docs/q.png"> [c](https://example.org/d) '
        "[e](#f)\n"
    )
    assert (tmp_path / "SHA256SUMS").read_text().split()[0] == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    "url, tag, message",
    [
        ("", "manylinux_2_28_x86_64", "the address of the repository is needed"),
        ("https://host/me/aerogel", "linux_x86_64", "is for this system alone"),
    ],
)
def test_what_is_refused(tmp_path, url, tag, message):
    path = wheel(tmp_path, tag)
    before = path.read_bytes()
    done = run("--url", url, path)
    assert done.returncode == 1 and message in done.stderr and path.read_bytes() == before
