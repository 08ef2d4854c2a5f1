"""Objects of the user's classes that kernels make: what their classes have without a decorator."""

import functools

import aerogel as ti


class Span:
    def __init__(self, lo, hi):
        self.lo = lo
        self.hi = hi

    @property
    def length(self):
        return self.hi - self.lo

    @property
    @ti.func
    def middle(self):
        return self.lo + 0.5 * self.length

    @functools.cached_property
    def twice(self):
        return Span(2 * self.lo, 2 * self.hi)

    def __add__(self, other):
        return Span(self.lo + other.lo, self.hi + other.hi)

    def __neg__(self):
        return Span(-self.hi, -self.lo)

    def __lt__(self, other):
        return self.length < other.length

    def __getitem__(self, t):
        return self.lo + t * self.length

    def __setitem__(self, t, value):
        self.hi = value

    def __iadd__(self, by):
        self.lo += by
        self.hi += by
        return self


class Shifted(Span):
    @property
    def length(self):
        return self.hi - self.lo + 100


def test_properties(arch):
    @ti.kernel
    def run(x: ti.f32) -> ti.math.vec3:
        s = Span(x, 2 * x)
        return ti.Vector([s.length, s.middle, s.twice.length])

    assert run(3.0).to_list() == [3.0, 4.5, 6.0]


def test_a_property_that_calls_another_has_the_class_of_the_object(arch):
    @ti.kernel
    def run(x: ti.f32) -> ti.f32:
        s = Shifted(x, 2 * x)
        s.lo += 1.0
        return s.middle

    assert run(3.0) == 4 + 0.5 * 102


def test_operators_without_a_decorator(arch):
    @ti.kernel
    def run(x: ti.f32) -> ti.math.vec4:
        s = Span(x, 2 * x)
        q = -(s + Span(1.0, x))
        smaller = 1.0 if s < q else 0.0
        s[0] = 10.0
        s += 1.0
        return ti.Vector([q.lo, q.hi, smaller, s[0.5]])

    # s = (3, 6); q = -(4, 9) = (-9, -4)
    assert run(3.0).to_list() == [-9.0, -4.0, 1.0, 7.5]


def test_an_object_of_constants_can_become_another(arch):
    @ti.kernel
    def run(x: ti.f32, n: ti.i32) -> ti.f32:
        s = Span(0.0, 1.0)
        for i in range(n):
            if i != 1:
                s = Span(s.lo + x, s.hi + 2 * x)
        return 10 * s.lo + s.hi

    assert run(3.0, 0) == 1
    assert run(3.0, 3) == 60 + 13


def test_an_object_of_constants_is_pythons(arch):
    made = []

    class Counted:
        def __init__(self, n):
            made.append(n)
            self.n = n

    @ti.kernel
    def run() -> ti.i32:
        c = Counted(4)
        return c.n

    assert run() == 4 and made == [4]


def test_objects_that_only_python_can_make_are_chosen_while_compiling(arch):
    class Table:
        def __init__(self, n):
            self.n = len(str(n).split("0"))

    @ti.kernel
    def run(first: ti.template()) -> ti.i32:
        if ti.static(first):
            t = Table(1000)
        else:
            t = Table(10)
        return t.n

    assert run(True) == 4 and run(False) == 2
