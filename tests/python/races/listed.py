"""Lists of programs: each builds its fields and runs one kernel."""

import numpy as np

import aerogel as ti

#: Programs with a race: the function, and what the message says of the cell and of the iterations.
RACES = []
#: Programs without one.
CLEAN = []


def race(cell, says):
    """Lists a program with a race, of which the lines of the two accesses end in ``# race``."""

    def note(program):
        RACES.append((program, cell, says))
        return program

    return note


def clean(program):
    """Lists a program without a race."""
    CLEAN.append(program)
    return program


def ints(*shape, name="x"):
    return ti.field(ti.i32, shape=shape, name=name)


def triangle():
    points, faces = np.eye(3), np.array([[0, 1, 2]])
    mesh = ti.Mesh._create_instance(ti.Mesh.generate_meta((points, faces), ["VV"]))
    mesh.verts.place({"area": ti.f32, "mass": ti.f32})
    return mesh
