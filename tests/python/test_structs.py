"""Structs: types, values in kernels and in Python, fields of them."""

import numpy as np
import pytest

import aerogel as ti

vec2 = ti.types.vector(2, ti.f32)
Particle = ti.types.struct(pos=vec2, mass=ti.f32, id=ti.i32)
Pair = ti.types.struct(p=Particle, w=ti.f64)


@ti.dataclass
class Disk:
    centre: vec2
    radius: ti.f32

    @ti.func
    def area(self):
        return 3 * self.radius**2

    @ti.func
    def grow(self, by):
        self.radius += by
        return self.area()


def test_values_in_python():
    assert Particle().to_dict() == {"pos": [0, 0], "mass": 0, "id": 0}
    p = Particle([1, 2], mass=3.5, id=4.9)
    assert p.to_dict() == {"pos": [1, 2], "mass": 3.5, "id": 4}
    p.mass = 5
    p.pos[1] = 7.0
    assert p.keys == ["pos", "mass", "id"]
    assert p["mass"] == 5 and p.pos[1] == 7
    assert str(p) == "{'pos': [1.0, 7.0], 'mass': 5.0, 'id': 4}"
    assert Pair(p, 2).p.mass == 5
    assert Pair({"pos": [1, 2], "mass": 3, "id": 4}).p.id == 4
    assert Particle(p).pos[0] == 1 and Particle({"mass": 4}).mass == 4
    assert Pair(3, 2).to_dict() == {"p": {"pos": [3, 3], "mass": 0, "id": 0}, "w": 2}
    assert ti.Struct({"a": 1, "b": [1, 2]}).b[1] == 2
    assert ti.Struct(a=1, b=2.5).items == [("a", 1), ("b", 2.5)]
    with pytest.raises(TypeError, match="3 members, but 4"):
        Particle(1, 2, 3, 4)
    with pytest.raises(TypeError, match="no member `size`"):
        Particle(size=3)
    with pytest.raises(AttributeError, match="no member `size`"):
        p.size = 3
    with pytest.raises(AttributeError, match="no member `size`"):
        p.size  # noqa: B018


def test_values_in_kernels(arch):
    @ti.kernel
    def k() -> Pair:
        a = Particle(1.5, 2, id=3)
        b = a
        b.mass = 7
        b.pos.x += a.mass
        c = Pair(b, 4)
        c.p.id *= 2
        b.id = 100
        d = c.p
        d.pos = [8, 9]
        d = Particle(d)
        d = {"mass": d.mass, "id": 2, "pos": d.pos}
        c.w += d.pos.y
        return c

    assert k().to_dict() == {"p": {"pos": [3.5, 1.5], "mass": 7, "id": 6}, "w": 13}


def test_arguments(arch):
    @ti.kernel
    def total(a: Particle, n: ti.i32, b: Pair) -> ti.f32:
        return a.pos.sum() + a.mass + n + b.p.mass + b.w

    p = Particle([1, 2], 3, 4)
    assert total(p, 10, Pair(p, 0.5)) == 19.5
    assert total({"pos": [1, 2], "mass": 3, "id": 4}, 10, Pair(p, 0.5)) == 19.5
    with pytest.raises(TypeError, match="argument 0 .*`total`.*without the member `pos`"):
        total(3.0, 10, Pair())
    with pytest.raises(TypeError, match="argument 2 .*without the member `p`"):
        total(p, 10, p)


def test_several_results(arch):
    @ti.kernel
    def k() -> (ti.i32, Particle, vec2):
        return 1, Particle(2, 3, 4), [5, 6]

    n, p, v = k()
    assert (n, p.to_dict(), v.to_list()) == (1, {"pos": [2, 2], "mass": 3, "id": 4}, [5, 6])


def test_functions(arch):
    @ti.func
    def heavier(s, by):
        s.mass += by
        return s

    @ti.func
    def by_reference(s: ti.template()):
        s.mass = 50
        s.pos[0] = 60

    @ti.func
    def larger(a, b):
        if a.mass > b.mass:
            return a
        else:
            return b

    f = Particle.field(shape=2)

    @ti.kernel
    def k() -> vec2:
        a = Particle(1, 2, 3)
        b = heavier(a, 10)
        c = larger(a, b)
        by_reference(f[1])
        by_reference(a)
        d = a if b.mass < 5 else c
        return [a.mass, d.mass]

    assert k().to_list() == [50, 12]
    assert f[1].to_dict() == {"pos": [60, 0], "mass": 50, "id": 0}


def test_methods(arch):
    f = Disk.field(shape=3)

    @ti.kernel
    def k() -> ti.f32:
        for i in f:
            f[i] = Disk(0, i)
            f[i].grow(1)
        d = Disk(radius=1)
        return d.grow(1) + d.radius + f[2].area()

    assert k() == 12 + 2 + 27
    assert f.radius.to_numpy().tolist() == [1, 2, 3]
    with pytest.raises(ti.AerogelSyntaxError, match="inside kernels only"):
        Disk(0, 1).area()


@pytest.mark.parametrize("layout", ["aos", "soa", "placed", "apart"])
def test_fields(arch, layout):
    if layout in ("aos", "soa"):
        f = Pair.field(shape=(4, 3), layout=ti.Layout.AOS if layout == "aos" else ti.Layout.SOA)
    else:
        f = ti.Struct.field({"p": Particle, "w": ti.f64})
        if layout == "placed":
            ti.root.dense(ti.ij, (4, 3)).place(f)
        else:
            ti.root.dense(ti.ij, (4, 3)).place(f.p.pos, f.w)
            ti.root.dense(ti.i, 4).dense(ti.j, 3).place(f.p.mass, f.p.id)

    @ti.kernel
    def k():
        for i, j in f:
            f[i, j].p.pos = [i, j]
            f.p.mass[i, j] = 10 * i
            f[i, j].p.mass += j
            f.p[i, j].id = i - j
            s = f[i, j]
            s.w = 0.5
            f[i, j] = s
        for ij in ti.grouped(f):
            f[ij].w += ti.cast(f.shape[0], ti.f64)

    k()
    i, j = np.meshgrid(np.arange(4), np.arange(3), indexing="ij")
    out = f.to_numpy()
    assert (out["p"]["pos"] == np.stack([i, j], -1)).all()
    assert (out["p"]["mass"] == 10 * i + j).all()
    assert (out["p"]["id"] == i - j).all()
    assert (out["w"] == 4.5).all()
    assert f.shape == (4, 3) and f.keys == ["p", "w"]


def test_members_are_added_to_at_once(arch):
    total = Particle.field(shape=())

    @ti.kernel
    def k():
        for i in range(1000):
            total[None].id += 1
            total[None].pos += [1, 2]
            ti.atomic_max(total[None].mass, i)

    k()
    assert total[None].to_dict() == {"pos": [1000, 2000], "mass": 999, "id": 1000}


def test_whole_fields_in_kernels(arch):
    f, g = Pair.field(shape=3), Pair.field(shape=3)

    @ti.kernel
    def k():
        f.fill(2)
        f.p.fill(Particle(3, 4, 5))
        g.copy_from(f)

    @ti.kernel
    def reset():
        g[1] = {"w": 9, "p": {"id": 7, "mass": 8, "pos": [5, 6]}}

    for _ in range(2):
        f.fill(0)
        k()
        assert f[2].to_dict() == {"p": {"pos": [3, 3], "mass": 4, "id": 5}, "w": 2}
        assert g[1].to_dict() == f[1].to_dict()
    reset()
    assert g[1].to_dict() == {"p": {"pos": [5, 6], "mass": 8, "id": 7}, "w": 9}


def test_elements_from_python(arch):
    f = Pair.field(shape=3)
    f[0].p.mass = 3
    f[0].p.pos = [1, 2]
    f[0].p.pos[1] = 9
    f[1] = Pair(Particle(1, 2, 3), 4)
    f[2] = {"p": {"pos": [5, 6], "mass": 7, "id": 8}, "w": 9}
    first = {"p": {"pos": [1, 9], "mass": 3, "id": 0}, "w": 0}
    assert f[0].to_dict() == first
    assert f[1].p.to_dict() == {"pos": [1, 1], "mass": 2, "id": 3}
    assert f.p.pos.to_numpy().tolist() == [[1, 9], [1, 1], [5, 6]]
    with pytest.raises(KeyError, match="p"):
        f[2] = {"w": 70}
    with pytest.raises(TypeError, match="not int"):
        f[2] = 3
    with pytest.raises(IndexError):
        f[3]
    g = Pair.field(shape=3)
    g.copy_from(f)
    assert g[0].to_dict() == first
    g.from_numpy(f.to_numpy())
    assert g[2].w == 9
    g.fill(0)
    assert not g.p.pos.to_numpy().any()
    f.p.fill(Particle(4, 5, 6))
    assert f.p.mass.to_numpy().tolist() == [5, 5, 5]

    @ti.kernel
    def w(s: Pair) -> ti.f64:
        return s.w

    assert w(f[2]) == 9


def test_printing(arch, capfd):
    @ti.kernel
    def k():
        s = Pair(Particle([1, 2], 3, 4), 5)
        print(s)
        print(f"{s.p}")

    k()
    ti.sync()
    inner = "{'pos': [1.000000, 2.000000], 'mass': 3.000000, 'id': 4}"
    assert capfd.readouterr().out == f"{{'p': {inner}, 'w': 5.000000000000}}\n{inner}\n"


def test_what_python_knows(arch):
    light = Particle([1, 2], 3, 4)
    loose = ti.Struct(a=1, v=ti.Vector([1.0, 2.0]))
    fields = [Particle.field(shape=2), Particle.field(shape=2)]

    @ti.kernel
    def k(f: ti.template()) -> ti.f32:
        total = light.pos[1] + loose.v[1] + loose.a
        for g in ti.static(fields):
            g[0].mass = 5
        for s in ti.static([light, Particle(1, 2, 3)]):
            total += s.mass
        own = ti.Struct(x=total, y=2)
        own.x += own.y + f[0].mass
        p = light
        p.mass = 1
        return own.x

    assert k(fields[1]) == 2 + 2 + 1 + 3 + 2 + 2 + 5
    assert light.mass == 3
    assert fields[0][0].mass == 5


def test_default_types_follow_init():
    ti.init(arch=ti.cpu, default_fp=ti.f64, log_level="error")
    S = ti.types.struct(x=float, n=int)
    f = S.field(shape=2)

    @ti.kernel
    def k(s: S) -> S:
        f[0] = s
        return f[0]

    assert k(S(0.1, 2)).x == 0.1
    assert f.x.dtype == ti.f64
    ti.reset()


def test_mistakes(arch):
    f = Particle.field(shape=2)

    @ti.kernel
    def member():
        f[0].weight = 1

    with pytest.raises(ti.AerogelCompilationError, match="no member `weight`") as e:
        member()
    assert "f[0].weight" in str(e.value) and "`pos`, `mass`, `id`" in str(e.value)

    @ti.kernel
    def count():
        f[0] = Particle(1, 2, 3, 4)

    with pytest.raises(ti.AerogelTypeError, match="3 members, but 4 values"):
        count()

    @ti.kernel
    def other():
        p = Particle()
        p = Disk()

    with pytest.raises(ti.AerogelTypeError, match="the struct `Disk`.*the members differ"):
        other()

    with pytest.raises(TypeError, match="member `x`"):
        ti.types.struct(x="f32")


def test_members_have_no_default_values(cpu):
    with pytest.raises(ti.TaichiSyntaxError, match="the member `a` of `S` has a default value"):

        @ti.dataclass
        class S:
            a: ti.i32 = 3


def test_a_struct_is_made_from_names(cpu):
    for wrong in ((1, 2), (3,), ([("a", 1)],)):
        with pytest.raises(ti.TaichiSyntaxError, match="from a dictionary, or from members by name"):
            ti.Struct(*wrong)
    assert ti.Struct({"a": 1}, b=2).to_dict() == ti.Struct(ti.Struct(a=1, b=2)).to_dict() == {"a": 1, "b": 2}


def test_a_method_add_at_is_a_method_like_others(arch):
    @ti.dataclass
    class Counter:
        n: ti.i32

        @ti.func
        def add_at(self):
            self.n += 1

    counters = Counter.field(shape=2)

    @ti.kernel
    def count():
        counters[1].add_at()

    @ti.kernel
    def misuse():
        c = counters[0]
        c[0] += 1

    count()
    assert counters[1].n == 1
    with pytest.raises(ti.TaichiCompilationError, match="cannot be indexed"):
        misuse()


def test_a_struct_without_members(arch):
    """One that has functions only, as a law without parameters; Taichi 1.7.4 has no fields of it."""

    @ti.dataclass
    class Law:
        @ti.func
        def force(self, gap):
            return -100.0 * gap

    laws, law = Law.field(shape=3), Law()

    @ti.kernel
    def run() -> ti.f32:
        return laws[1].force(0.5) + law.force(0.25) + Law().force(1.0)

    assert run() == -175
    assert laws.shape == (3,)


def test_dictionaries_are_merged_and_gone_through(arch):
    known = {"b": 5, "c": 6}

    @ti.func
    def joined(a, b=2, c=3):
        return a * 100 + b * 10 + c

    @ti.kernel
    def run(x: ti.i32) -> ti.types.vector(4, ti.i32):
        computed = {"a": x, "b": x + 1}
        doubled = {key: value * 2 for key, value in computed.items()}
        total = 0
        for key in ti.static(computed.keys()):
            total += computed[key]
        merged = {**known, "a": x, **{"c": x}}
        return ti.Vector([joined(x, **known), joined(**merged), total * 100 + doubled["b"], computed.get("z", 9)])

    assert run(3).to_list() == [356, 353, 708, 9]
    with pytest.raises(ti.TaichiTypeError, match="a dictionary is needed after `\\*\\*`, not an int"):

        @ti.kernel
        def wrong() -> ti.i32:
            made = {**3}
            return made["a"]

        wrong()
