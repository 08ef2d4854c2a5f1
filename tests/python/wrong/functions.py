"""What the programs of `programs.txt` call and change."""

import math  # noqa: F401
import numpy as np  # noqa: F401
import aerogel as ti

x = ti.field(ti.i32, 8)
y = ti.field(ti.f32, (4, 4))
v = ti.Vector.field(3, ti.f32, 4)
S = ti.types.struct(a=ti.i32, p=ti.math.vec3)
T = ti.types.struct(no=ti.i32)
sf = S.field(shape=4)
numbers = [1, 2, 3]
table = {"a": 1}


class Obj:
    value = 1
    name = "obj"


obj = Obj()


@ti.func
def helper(n):
    return n + 1


@ti.func
def defaults(n, p=2):
    return n + p


@ti.func
def wrong_inside(n):
    return n + undefined_here  # noqa: F821


@ti.func
def deep_wrong(n):
    return wrong_inside(n) + 1


@ti.func
def recursive(n):
    return recursive(n - 1)


@ti.kernel
def other_kernel() -> ti.i32:
    return 1


def python_failing(n):
    raise KeyError("inside")


@ti.real_func
def real(n: ti.i32) -> ti.i32:
    return n


@ti.real_func
def real_vector(n: ti.math.vec3) -> ti.i32:
    return 1


@ti.real_func
def real_reference(n: ti.ref(ti.i32)):
    n += 1


@ti.real_func
def real_unannotated(n):
    pass


@ti.real_func
def real_without_return(n: ti.i32) -> ti.i32:
    pass


@ti.func
def no_value(n):
    pass


@ti.func
def some_paths(n):
    for i in range(3):
        if i > n:
            return i


@ti.func
def mixed_values(n):
    while True:
        if n > 1:
            return 1
        if n > 2:
            return


@ti.func
def shapes_differ(n):
    for i in range(3):
        if i > n:
            return ti.Vector([1, 2])
    return ti.Vector([1, 2, 3])


@ti.func
def return_in_loop(f: ti.template()):
    for i in f:
        return i
    return 0


itertools = __import__("itertools")
endless = [1]
endless.append(endless)
deep = ()
for _ in range(20000):
    deep = (deep,)
GOOGOL = 10**100
HUGE = 1 << 100000
