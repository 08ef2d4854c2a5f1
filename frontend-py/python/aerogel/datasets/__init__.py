"""Data from files, and batches of them. Nothing is downloaded.

>>> import aerogel as ti
>>> ti.init(arch=ti.cpu, log_level="error")
>>> x, y = ti.tensor.arange(10).reshape(5, 2), ti.tensor.arange(5)
>>> batches = ti.datasets.Batches((x, y), batch_size=2, seed=1)
>>> len(batches), [tuple(b[0].shape) for b in batches]
(3, [(2, 2), (2, 2), (1, 2)])
"""

from aerogel.datasets._batches import Batches, split
from aerogel.datasets._files import Table, csv, idx, mnist, npz
from aerogel.datasets._text import Characters, Windows, text

__all__ = ["Batches", "Characters", "Table", "Windows", "csv", "idx", "mnist", "npz", "split", "text"]
