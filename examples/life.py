"""The Game of Life on 2^17 x 2^17 cells, of which only live cells and their neighbours take memory and time.

Alive cells are the active cells of a bitmasked node, in blocks under pointers. The picture is the acorn, seven cells
that take 5206 generations to settle as 633; cells glow where life was for long.
"""

import numpy as np
from common import palette, run

import aerogel as ti

EXTENT = 2**17
CORNER, WINDOW = np.array([-136, -73]), 216  # What the picture shows.
ACORN = np.array([[0, 0], [1, 0], [1, 2], [3, 1], [4, 0], [5, 0], [6, 0]])
R_PENTOMINO = np.array([[0, 1], [1, 0], [1, 1], [1, 2], [2, 2]])
GLIDER = np.array([[0, 0], [1, 0], [2, 0], [2, 1], [1, 2]])


@ti.data_oriented
class Life:
    """A generation, the next one, the number of neighbours of each cell that has one, and a window of the past."""

    def __init__(self, cells):
        self.alive, self.next, self.neighbours = (ti.field(ti.u8) for _ in range(3))
        self.blocks = ti.root.pointer(ti.ij, EXTENT // 512).pointer(ti.ij, 32)
        for field in (self.alive, self.next, self.neighbours):
            self.blocks.bitmasked(ti.ij, 16).place(field)
        self.past = ti.field(float, (WINDOW, WINDOW))
        self.alive.set_cells(cells + EXTENT // 2, np.ones(len(cells), np.uint8))

    @ti.kernel
    def count(self, alive: ti.template()):
        for i, j in alive:
            for k, l in ti.static(ti.ndrange((-1, 2), (-1, 2))):
                if ti.static(k != 0 or l != 0):
                    self.neighbours[i + k, j + l] += ti.u8(1)

    @ti.kernel
    def decide(self, alive: ti.template(), new: ti.template()):
        for i, j in self.neighbours:
            n = self.neighbours[i, j]
            if n == 3 or (n == 2 and alive[i, j] == 1):
                new[i, j] = ti.u8(1)

    @ti.kernel
    def remember(self, alive: ti.template()):
        for i, j in self.past:
            self.past[i, j] *= 0.9985
        for i, j in alive:
            k, l = i - EXTENT // 2 - CORNER[0], j - EXTENT // 2 - CORNER[1]
            if 0 <= k and k < self.past.shape[0] and 0 <= l and l < self.past.shape[1]:
                self.past[k, l] += 1

    def step(self):
        self.neighbours.parent().deactivate_all()
        self.next.parent().deactivate_all()
        self.count(self.alive)
        self.decide(self.alive, self.next)
        self.alive, self.next = self.next, self.alive

    def cells(self):
        """The living cells, sorted."""
        cells, _ = self.alive.active_cells()
        return np.array(sorted(cells.tolist())).reshape(-1, 2) - EXTENT // 2


def main(small=False):
    ti.init(arch=ti.cpu)
    life = Life(R_PENTOMINO if small else ACORN)
    for _ in range(1103 if small else 5206):
        life.step()
        life.remember(life.alive)
    cells = life.cells()
    image = palette(np.log1p(life.past.to_numpy()) / np.log(250), "0a0e1a 162d5c 1f7f9b 44c2a3 f7e28b ffffff")
    inside = ((cells >= CORNER) & (cells < CORNER + WINDOW)).all(1)
    image[tuple((cells[inside] - CORNER).T)] = [1.0, 0.95, 0.8]
    return np.kron(image, np.ones((3, 3, 1))), {"cells": len(cells), "inside the picture": inside.sum()}


if __name__ == "__main__":
    run(main)
