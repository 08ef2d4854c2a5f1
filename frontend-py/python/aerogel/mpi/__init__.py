"""Fields that the processes of an MPI program share: each holds a box of the cells, and kernels stay as they are.

>>> import aerogel as ti
>>> ti.init(log_level="error")
>>> grid = ti.mpi.grid((8, 6), periodic=(True, False))
>>> f = ti.field(ti.f32, shape=grid)
>>> @ti.kernel
... def number():
...     for i, j in f:
...         f[i, j] = i * 10 + j
>>> number()
>>> f.to_numpy()[7, 5], ti.mpi.rank(), ti.mpi.size()
(np.float32(75.0), 0, 1)
"""

from __future__ import annotations

from aerogel.mpi._comm import rank, size
from aerogel.mpi._grid import Grid, grid
from aerogel.mpi._particles import Particles
from aerogel.mpi._training import data_parallel, mean, part

__all__ = ["Grid", "Particles", "data_parallel", "grid", "mean", "part", "rank", "size"]
