"""Files with random mistakes, for every reader of files: `test_readers.py` runs this as a program.

    python readers.py N [seed [reader ...]]

Each of `READERS` is given N changed copies of a good file. It may raise the errors of its documentation, or return a value. Other
exceptions, more memory than `MOST` times the file's size and `LEAST` bytes, or more than `SECONDS` are failures.
"""

import functools
import json
import os
import random
import resource
import signal
import struct
import sys
import tempfile
import traceback
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import aerogel as ti

#: What a reader may take besides, for modules that it imports and the memory of its result.
LEAST, MOST, SECONDS = 512 << 20, 100, 20
Bytes = Callable[[bytes], bytes]


@dataclass
class Reader:
    """How a good file is made, how it is read, what may be raised, and how hashes are made good after a change."""

    make: Callable[[str], object]
    read: Callable[[str], object]
    raises: tuple[type[BaseException], ...] = (ValueError, OSError)
    mend: Bytes = bytes
    suffix: str = ""


def _without_hash(data: bytes) -> bytes:
    """A safetensors file without the hash of its bytes, so that what is behind it is read."""
    (n,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + n])
    header.get("__metadata__", {}).pop("aerogel.sha256", None)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + n :]


def _png(data: bytes) -> bytes:
    """A PNG file whose chunks have the sums of their bytes."""
    out, at = data[:8], 8
    while at + 12 <= len(data):
        (n,) = struct.unpack(">I", data[at : at + 4])
        if at + 12 + n > len(data):
            break
        whole = data[at + 4 : at + 8 + n]
        out += data[at : at + 4] + whole + struct.pack(">I", zlib.crc32(whole))
        at += 12 + n
    return out + data[at:]


def _saved(path: str) -> None:
    ti.save(
        path,
        {"x": ti.tensor.arange(50.0), "n": 3, "list": [1.5, "text", None], "b": ti.tensor.ones((3, 4), dtype=ti.bf16)},
    )


def _unhashed(path: str) -> None:
    _saved(path)
    Path(path).write_bytes(_without_hash(Path(path).read_bytes()))


def _program(path: str) -> None:
    def step(x: ti.Tensor, w: ti.Tensor) -> ti.Tensor:
        return ti.tensor.tanh(x @ w).sum(axis=0) + 1

    ti.program(step).lower(ti.tensor.ones((3, 4)), ti.tensor.ones((4, 2))).save(path)
    Path(path).write_bytes(_without_hash(Path(path).read_bytes()))


def _statements(path: str) -> None:
    made = ti.program(lambda x: (x * 2 + ti.tensor.cumsum(x)).sum()).lower(ti.tensor.ones(8))
    Path(path).write_text(made.text)


@functools.cache
def _grid() -> tuple[ti.Field, ti.Field]:
    x = ti.field(ti.f32, name="x")
    y = ti.field(ti.i32, name="y")
    ti.root.pointer(ti.ij, 8).dense(ti.ij, 4).place(x, y)
    return x, y


def _sparse(path: str) -> None:
    fields = _grid()
    for field in fields:
        for i in range(0, 32, 5):
            field[i, (7 * i) % 32] = i
    ti.tools.save_sparse(path, *fields)


def _mesh(path: str) -> None:
    from test_mesh import PATCHES

    Path(path).write_text(json.dumps(PATCHES))


def _picture(path: str) -> None:
    ti.tools.imwrite(np.random.default_rng(1).integers(0, 256, (9, 7, 4)).astype(np.uint8), path)


def _resumed(path: str) -> object:
    return ti.tools.resume(path, {"x": ti.tensor.zeros(5), "n": 0})


READERS = {
    "load": Reader(_saved, ti.load),
    "load without a hash": Reader(_unhashed, ti.load),
    "resume": Reader(
        lambda path: ti.tools.checkpoint(path, {"x": ti.tensor.ones(5), "n": 1}, step=3),
        _resumed,
        (ValueError, TypeError, OSError),
    ),
    "load_program": Reader(_program, ti.load_program),
    "program_from_text": Reader(_statements, lambda path: ti.program_from_text(Path(path).read_text("latin-1"))),
    "imread": Reader(_picture, ti.tools.imread, mend=_png, suffix=".png"),
    "load_sparse": Reader(_sparse, lambda path: ti.tools.load_sparse(path, *_grid())),
    "load_meta": Reader(_mesh, ti.Mesh.load_meta),
    "idx": Reader(
        lambda path: Path(path).write_bytes(struct.pack(">HBBII", 0, 8, 2, 5, 6) + bytes(range(30))), ti.datasets.idx
    ),
    "npz": Reader(lambda path: np.savez(path, a=np.arange(20.0), b=np.eye(3)), ti.datasets.npz, suffix=".npz"),
    "csv": Reader(lambda path: Path(path).write_text("a,b,c\n1,2.5,x\n3,4,y\n"), ti.datasets.csv),
    "text": Reader(lambda path: Path(path).write_text("some words\n" * 5), ti.datasets.text),
}


def changed(data: bytes, rng: random.Random) -> bytes:
    """A file with one to four mistakes."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(out) + 1)
        end = min(len(out), at + rng.choice((1, 4, 8, 40)))
        kind = rng.randrange(7)
        if kind == 0 and at < len(out):
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            out[at:end] = rng.randbytes(end - at)
        elif kind == 2:
            del out[at:]
        elif kind == 3:
            del out[at:end]
        elif kind == 4:
            out[at:at] = out[at:end]
        elif kind == 5:
            out[at:end] = rng.choice((b"\xff", b"\0", b"9", b"["))[:1] * (end - at)
        else:
            numbers = [p for p, byte in enumerate(out) if 48 <= byte < 58]
            if numbers:
                where = rng.choice(numbers)
                out[where : where + 1] = rng.choice((b"-1", b"0", b"99999999999", b"18446744073709551615", b"1e999"))
    return bytes(out)


def failures(name: str, n: int, seed: int) -> list[str]:
    """What goes wrong with `n` changed files of one reader."""
    reader, found = READERS[name], []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file" + reader.suffix)
        reader.make(path)
        good = Path(path).read_bytes()
        reader.read(path)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + LEAST + MOST * len(good)
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
        for k in range(n):
            rng = random.Random(f"{name} {seed} {k}")
            Path(path).write_bytes(reader.mend(changed(good, rng)))
            signal.alarm(SECONDS)
            try:
                reader.read(path)
            except reader.raises:
                pass
            except BaseException:
                found.append(f"{name}, seed {seed}, number {k}:\n{traceback.format_exc(limit=-3)}")
            signal.alarm(0)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return found


def main() -> None:
    n, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    ti.init(arch=ti.cpu, cpu_max_num_threads=1, log_level="error")
    all_found = [f for name in sys.argv[3:] or READERS for f in failures(name, n, seed)]
    print("\n".join(all_found[:20]))
    print(f"{len(all_found)} failures")


class Slow(BaseException):
    """A reader took longer than `SECONDS`."""


def slow(*_: object) -> None:
    raise Slow


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, slow)
    main()
