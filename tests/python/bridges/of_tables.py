"""Tables and pictures: pandas, pyarrow and Pillow, each where it is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
from bridges.case import Case, kind, numbers

try:
    import pandas as pd
except ImportError:
    pd = None
try:
    import pyarrow as pa
except ImportError:
    pa = None
try:
    from PIL import Image
except ImportError:
    Image = None

COLUMN = numbers(np.float64, (4,))


def _of_pandas() -> None:
    @kind("pandas Series")
    def series() -> Case:
        value = pd.Series(COLUMN.copy())
        return Case(value, COLUMN.copy(), lambda: np.array(value.tolist()))

    @kind("pandas Series.values")
    def values() -> Case:
        owner = pd.Series(COLUMN.copy())
        value = owner.values
        return Case(value, COLUMN.copy(), lambda: np.array(owner.tolist()), is_read_only=not value.flags.writeable)

    @kind("pandas Series.to_numpy")
    def to_numpy() -> Case:
        owner = pd.Series(COLUMN.copy())
        value = owner.to_numpy()
        return Case(value, COLUMN.copy(), lambda: np.array(owner.tolist()), is_read_only=not value.flags.writeable)

    def frame() -> Any:
        return pd.DataFrame({"a": COLUMN, "b": 2 * COLUMN})

    def values_of(frame: Any) -> np.ndarray:
        return np.array([frame[name].tolist() for name in frame.columns]).T

    @kind("pandas DataFrame")
    def whole() -> Case:
        value = frame()
        return Case(value, values_of(value), lambda: values_of(value))

    @kind("pandas DataFrame.values")
    def frame_values() -> Case:
        owner = frame()
        value = owner.values
        is_shared = any(np.shares_memory(value, owner[name].to_numpy()) for name in owner)
        return Case(
            value,
            values_of(owner),
            (lambda: values_of(owner)) if is_shared else (lambda: np.array(value)),
            is_read_only=not value.flags.writeable,
        )

    @kind("pandas nullable")
    def nullable() -> Case:
        value = pd.Series([1, 2, 3], dtype="Int64")
        return Case(value, np.array([1, 2, 3]), lambda: np.array(value.tolist()))

    @kind("pandas nullable with a gap")
    def gap() -> Case:
        return Case(pd.Series([1, None, 3], dtype="Int64"), None, lambda: None)

    @kind("pandas text")
    def text() -> Case:
        return Case(pd.Series(["a", "b"]), None, lambda: None)

    @kind("pandas categories")
    def categories() -> Case:
        value = pd.Series([1.0, 2.0, 1.0], dtype="category")
        return Case(value, np.array([1.0, 2.0, 1.0]), lambda: np.array(value.tolist()))

    @kind("pandas Index")
    def index() -> Case:
        value = pd.Index(COLUMN.copy())
        return Case(value, COLUMN.copy(), lambda: np.array(value.tolist()), is_read_only=True)


def _of_pyarrow() -> None:
    def of(value: Any, of_numpy: Any) -> Case:
        return Case(of_numpy, np.array(value.to_pylist()), lambda: np.array(value.to_pylist()), is_read_only=True)

    @kind("pyarrow array")
    def array() -> Case:
        value = pa.array(COLUMN)
        return of(value, value)

    @kind("pyarrow array.to_numpy")
    def to_numpy() -> Case:
        value = pa.array(COLUMN)
        return of(value, value.to_numpy())

    @kind("pyarrow chunked array")
    def chunked() -> Case:
        value = pa.chunked_array([COLUMN[:2], COLUMN[2:]])
        return of(value, value)

    @kind("pyarrow array of booleans")
    def booleans() -> Case:
        value = pa.array([True, False, True])
        return of(value, value)

    @kind("pyarrow array with a gap")
    def gap() -> Case:
        # NumPy sees NaN there.
        value = pa.array([1, None, 3])
        return Case(value, np.array([1, np.nan, 3]), lambda: np.array(value), is_read_only=True)

    @kind("pyarrow tensor")
    def tensor() -> Case:
        owner = numbers()
        return Case(pa.Tensor.from_numpy(owner).to_numpy(), numbers(), owner.copy, is_read_only=False)


def _of_pillow() -> None:
    def of(mode: str, shape: tuple[int, ...], dtype: Any = np.uint8) -> Case:
        data = numbers(dtype, shape)
        value = Image.frombytes(mode, shape[1::-1], data.tobytes())

        def read() -> np.ndarray:
            return np.frombuffer(value.tobytes(), dtype).reshape(shape)

        return Case(value, data, read, is_read_only=True)

    @kind("PIL grey")
    def grey() -> Case:
        return of("L", (2, 3))

    @kind("PIL RGB")
    def rgb() -> Case:
        return of("RGB", (2, 3, 3))

    @kind("PIL of floats")
    def floats() -> Case:
        return of("F", (2, 3), np.float32)


for _library, _register in ((pd, _of_pandas), (pa, _of_pyarrow), (Image, _of_pillow)):
    if _library is not None:
        _register()
