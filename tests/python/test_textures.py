"""``ti.Texture``: what kernels read and write of it, and what is refused."""

import numpy as np
import pytest

import aerogel as ti

F = ti.Format
COLORS = [f for f in F if f.name[0] in "rb"]
STORED = [f for f in COLORS if "srgb" not in f.name and f.name[0] == "r"]


def sampler(ndim):
    """A function that samples at rows of coordinates."""
    vector = ti.types.vector(ndim, ti.f32)

    @ti.kernel
    def sample(tex: ti.types.texture(num_dimensions=ndim), at: ti.types.ndarray(vector, 1), out: ti.types.ndarray()):
        for i in range(at.shape[0]):
            color = tex.sample_lod(at[i], 0.0)
            for k in ti.static(range(4)):
                out[i, k] = color[k]

    def call(tex, at):
        at = np.asarray(at, np.float32).reshape(-1, ndim)
        out = np.zeros((len(at), 4), np.float32)
        sample(tex, at, out)
        return out

    return call


def fetcher(ndim):
    """A function that fetches the texels with rows of indices."""
    vector = ti.types.vector(ndim, ti.i32)

    @ti.kernel
    def fetch(tex: ti.types.texture(ndim), at: ti.types.ndarray(vector, 1), lod: ti.i32, out: ti.types.ndarray()):
        for i in range(at.shape[0]):
            color = tex.fetch(at[i], lod)
            for k in ti.static(range(4)):
                out[i, k] = color[k]

    def call(tex, at, lod=0):
        at = np.asarray(at, np.int32).reshape(-1, ndim)
        out = np.zeros((len(at), 4), np.float32)
        fetch(tex, at, lod, out)
        return out

    return call


def storer(fmt, ndim=2):
    """A function that stores rows of colours at rows of indices, and gives what is loaded from there."""
    index, color = ti.types.vector(ndim, ti.i32), ti.types.vector(4, ti.f32)

    @ti.kernel
    def store(
        tex: ti.types.rw_texture(num_dimensions=ndim, fmt=fmt, lod=0),
        at: ti.types.ndarray(index, 1),
        value: ti.types.ndarray(color, 1),
        out: ti.types.ndarray(color, 1),
    ):
        for i in range(at.shape[0]):
            tex.store(at[i], value[i])
            out[i] = tex.load(at[i])

    def call(tex, at, value):
        at = np.asarray(at, np.int32).reshape(-1, ndim)
        value = np.asarray(value, np.float32).reshape(-1, 4)
        out = np.zeros_like(value)
        store(tex, at, value, out)
        return out

    return call


def numbered():
    """Texel (x, y) of 4 by 3 is 10 x + y + 1."""
    tex = ti.Texture(F.r32f, (4, 3))
    tex.from_numpy((10 * np.arange(4)[:, None] + np.arange(3) + 1).astype(np.float32)[..., None])
    return tex


# What Taichi 1.7.4 gives on Mesa's software Vulkan.
ACROSS = {0.0: 17, 0.125: 2, 0.25: 7, 0.375: 12, -0.125: 32, -0.25: 27, 1.0: 17, 1.125: 2, 1.25: 7, 2.125: 2}
UPWARDS = {-0.2: 2.9, 0.0: 2.0, 0.1: 1.4, 1 / 6: 1.0, 0.5: 2.0, 1.0: 2.0, 1.5: 2.0}


def test_colours_between_texels(arch):
    sample, tex = sampler(2), numbered()
    found = sample(tex, [(u, 0.5) for u in ACROSS])
    assert np.abs(found[:, 0] - list(ACROSS.values())).max() < 1e-4
    # The channels that the format lacks.
    assert (found[:, 1:] == (0, 0, 1)).all()
    found = sample(tex, [(0.125, v) for v in UPWARDS])
    assert np.abs(found[:, 0] - list(UPWARDS.values())).max() < 1e-4


def test_places_that_are_nowhere_end_no_program(arch):
    found = sampler(2)(numbered(), [(0.5, np.nan), (np.inf, 0.5), (1e30, -1e30), (-1e-9, 0.5)])
    assert np.isnan(found[:2, 0]).all() and np.isfinite(found[2:]).all()


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_linear_in_each_axis(arch, ndim):
    """A texture of x + 2 y + 4 z is that between its texels as well."""
    shape = (5, 4, 3)[:ndim]
    grid = np.stack(np.meshgrid(*(np.arange(n) for n in shape), indexing="ij"), -1)
    factors = 2.0 ** np.arange(ndim)
    tex = ti.Texture(F.rg32f, shape)
    values = (grid @ factors).astype(np.float32)
    tex.from_numpy(np.stack([values, -values], -1))
    at = np.random.default_rng(1).uniform(0, np.array(shape) - 1, (50, ndim))
    found = sampler(ndim)(tex, (at + 0.5) / shape)
    assert np.abs(found[:, 0] - at @ factors).max() < 1e-4
    assert np.abs(found[:, 1] + at @ factors).max() < 1e-4
    # It repeats.
    assert np.abs(sampler(ndim)(tex, (at + 0.5) / shape + 3) - found).max() < 1e-3
    whole = fetcher(ndim)(tex, grid.reshape(-1, ndim))
    assert (whole[:, 0] == values.reshape(-1)).all()


def test_outside_is_nothing(arch):
    outside = [(-1, 0), (4, 0), (0, -1), (0, 3), (2**31 - 1, 0), (-(2**31), 5)]
    fetch = fetcher(2)
    for at in ([[2**32, 0]], [[-(2**32), 2**32]]):
        assert (numbered().fetch(np.array(at)).numpy() == (0, 0, 0, 1)).all()
    assert (numbered().fetch([[1, 1]], lod=1).numpy() == (0, 0, 0, 1)).all()
    assert (fetch(numbered(), outside) == (0, 0, 0, 1)).all()
    assert (fetch(numbered(), [(1, 1)], lod=1) == (0, 0, 0, 1)).all()
    full = ti.Texture(F.rgba8, (4, 3))
    full.from_numpy(np.full((4, 3, 4), 255, np.uint8))
    assert (fetch(full, outside) == 0).all() and (fetch(full, [(3, 2)]) == 1).all()
    # Nothing is stored there, and zeros are loaded.
    loaded = storer(F.rgba8)(full, outside, np.full((6, 4), 0.5))
    assert (loaded == 0).all() and (full.to_numpy() == 255).all()


def test_normalised_numbers(arch):
    for fmt, largest in ((F.rgba8, 255), (F.rgba16, 65535)):
        tex = ti.Texture(fmt, (2, 2))
        store = storer(fmt)
        for value, kept in (
            ((0.5, 1.5, -0.5, 0.3), np.floor(np.array([0.5, 1, 0, 0.3]) * largest + 0.5)),
            ((0.1, 0.7 / 255, 1.6 / 255, 1), np.floor(np.array([0.1, 0.7 / 255, 1.6 / 255, 1]) * largest + 0.5)),
            ((np.nan, np.inf, -np.inf, 0), (0, largest, 0, 0)),
        ):
            found = store(tex, [(1, 1)], value)
            assert (tex.to_numpy()[1, 1] == kept).all()
            assert np.abs(found - np.asarray(kept) / largest).max() < 1e-6


def test_every_format_keeps_what_it_can_hold(arch):
    rng = np.random.default_rng(2)
    for fmt in STORED:
        channels, kind = fmt._channels, fmt._kind
        tex = ti.Texture(fmt, (3, 2))
        if kind == "int":
            low, high = max(fmt._smallest, -(2**23)), min(fmt._largest, 2**23)
            values = rng.integers(int(low), int(high), (6, 4), endpoint=True).astype(np.float32)
        elif kind == "unorm":
            values = (rng.integers(0, int(fmt._largest), (6, 4)) / fmt._largest).astype(np.float32)
        else:
            values = rng.integers(-64, 64, (6, 4)).astype(np.float32) / 8
        at = [(x, y) for x in range(3) for y in range(2)]
        found = storer(fmt)(tex, at, values)
        assert np.abs(found[:, :channels] - values[:, :channels]).max() < 1e-6, fmt
        assert (found[:, channels:] == np.array([0, 0, 0, 1])[channels:]).all(), fmt
        assert tex.to_numpy().shape == (3, 2, channels)


def test_integers_are_cut_and_clamped_and_not_filtered(arch):
    tex = ti.Texture(F.rgba8i, (2, 2))
    found = storer(F.rgba8i)(tex, [(0, 0)], (3.7, 300.2, -3.7, -70000))
    assert found.tolist() == [[3, 127, -3, -128]]
    at = [(0.26, 0.26), (0.49, 0.0), (0.51, 0.0), (1.2, -0.9)]
    assert (sampler(2)(tex, at)[:, 0] == (3, 3, 0, 3)).all()

    @ti.kernel
    def exact(tex: ti.types.rw_texture(1, fmt=F.r32u), x: ti.u32):
        for _ in range(1):
            tex.store(2, ti.Vector([x, 0, 0, 0]))

    wide = ti.Texture(F.r32u, 4)
    for x in (2**32 - 1, 2**31 + 1, 16777217):
        exact(wide, x)
        assert wide.to_numpy()[2, 0] == x


def test_srgb_is_light(arch):
    rows = np.array([[0, 10, 128, 128], [255, 188, 1, 255]], np.uint8)
    for fmt, order in ((F.rgba8srgb, (0, 1, 2, 3)), (F.bgra8srgb, (2, 1, 0, 3)), (F.bgra8, (2, 1, 0, 3))):
        array = ti.Vector.ndarray(4, ti.u8, (2,))
        array.from_numpy(rows)
        tex = ti.Texture(fmt, (2,))
        tex.from_ndarray(array)
        part = rows[:, order] / 255
        light = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
        wanted = np.concatenate([light[:, :3], part[:, 3:]], -1) if "srgb" in fmt.name else part
        assert np.abs(fetcher(1)(tex, [0, 1]) - wanted).max() < 1e-5


def test_floats_of_16_bits_are_rounded(arch):
    tex = ti.Texture(F.rgba16f, (1, 1))
    found = storer(F.rgba16f)(tex, [(0, 0)], (0.3, 300.2, 70000, -np.inf))
    assert found.tolist() == [[0.300048828125, 300.25, np.inf, -np.inf]]


def test_arrays_and_fields_fill_rows(arch):
    """As in Taichi: elements in the order of memory are rows of x."""
    values = np.arange(12, dtype=np.float32)
    for shape in ((4, 3), (3, 4)):
        array, field = ti.ndarray(ti.f32, shape), ti.field(ti.f32, shape)
        array.from_numpy(values.reshape(shape))
        field.from_numpy(values.reshape(shape))
        for fill, source in (("from_ndarray", array), ("from_field", field)):
            tex = ti.Texture(F.r32f, (4, 3))
            getattr(tex, fill)(source)
            assert (fetcher(2)(tex, [(1, 0), (0, 1), (3, 2)])[:, 0] == (1, 4, 11)).all()
    solid = ti.Texture(F.r32f, (2, 3, 2))
    array = ti.ndarray(ti.f32, (2, 3, 2))
    array.from_numpy(values.reshape(2, 3, 2))
    solid.from_ndarray(array)
    assert (fetcher(3)(solid, [(1, 0, 0), (0, 1, 0), (0, 0, 1)])[:, 0] == (1, 2, 6)).all()


def test_images(arch):
    image_module = pytest.importorskip("PIL.Image")
    rows = np.random.default_rng(3).integers(0, 256, (3, 4, 3), dtype=np.uint8)
    tex = ti.Texture(F.rgba8, (4, 3))
    tex.from_image(image_module.fromarray(rows))
    assert (np.asarray(tex.to_image()) == rows).all()
    # As in Taichi.
    found = fetcher(2)(tex, [(0, 0), (3, 2)]) * 255
    assert np.abs(found[:, :3] - [rows[0, 3], rows[2, 0]]).max() < 1e-3 and (found[:, 3] == 0).all()
    with pytest.raises(ValueError, match=r"shape \(4, 3\), the image the size \(3, 4\)"):
        tex.from_image(image_module.fromarray(rows.transpose(1, 0, 2)))
    with pytest.raises(ti.TaichiRuntimeError, match="ti.Format.rgba8"):
        ti.Texture(F.r8, (4, 3)).to_image()


def test_functions_loops_and_shapes(arch):
    @ti.func
    def double(tex, index):
        return 2 * tex.load(index).r

    @ti.kernel
    def fill(tex: ti.types.rw_texture(num_dimensions=2, fmt=F.r32f)):
        for i, j in tex:
            tex.store([i, j], ti.Vector([i * 10.0 + j, 0, 0, 0]))
        for index in ti.grouped(tex):
            tex.store(index, ti.Vector([double(tex, index) + tex.shape[0], 0, 0, 0]))

    tex = ti.Texture(F.r32f, (3, 2))
    fill(tex)
    assert (tex.to_numpy()[..., 0] == 2 * (10 * np.arange(3)[:, None] + np.arange(2)) + 3).all()


def test_one_kernel_for_textures_of_each_format(arch):
    fetch = fetcher(2)
    for fmt in (F.rgba8, F.r16f, F.rg32i, F.rgba8):
        tex = ti.Texture(fmt, (2, 2))
        tex.from_numpy(np.ones((2, 2, fmt._channels), tex.to_numpy().dtype))
        assert np.abs(fetch(tex, [(1, 1)])[0, 0] - (1 / 255 if fmt is F.rgba8 else 1)) < 1e-6


def test_rows_of_texels_become_vectors(cpu):
    """What the design counts on: a texel's channels, or those of several, are converted at once."""
    fmt, n = F.rgba8, 64
    out = ti.Vector.field(4, ti.f32, (n, n))

    @ti.kernel
    def fetch(tex: ti.types.texture(2)):
        for i, j in out:
            out[i, j] = tex.fetch([i, j], 0)

    @ti.kernel
    def store(tex: ti.types.rw_texture(2, fmt=fmt)):
        for i, j in out:
            tex.store([i, j], out[i, j])

    tex = ti.Texture(fmt, (n, n))
    fetch(tex)
    store(tex)
    llvm = fetch.inspect(tex)["llvm"]
    assert "x i8> " in llvm and any(f"uitofp <{k} x " in llvm for k in (4, 8, 16))
    llvm = store.inspect(tex)["llvm"]
    assert any(f"fptosi <{k} x " in llvm or f"fptoui <{k} x " in llvm for k in (4, 8, 16))


def test_graphs_take_textures(cpu):
    @ti.kernel
    def fill(tex: ti.types.rw_texture(num_dimensions=2, fmt=F.r32f, lod=0)):
        for i, j in ti.ndrange(4, 3):
            tex.store([i, j], ti.Vector([float(i), 0, 0, 0]))

    @ti.kernel
    def read(tex: ti.types.texture(num_dimensions=2), out: ti.types.ndarray(ti.f32, 1)):
        for i in out:
            out[i] = tex.fetch([i, 1], 0).r

    Arg, Kind = ti.graph.Arg, ti.graph.ArgKind
    written = Arg(Kind.RWTEXTURE, "written", fmt=F.r32f, ndim=2)
    builder = ti.graph.GraphBuilder()
    builder.dispatch(fill, written)
    builder.dispatch(read, Arg(Kind.TEXTURE, "read", ndim=2), Arg(Kind.NDARRAY, "out", dtype=ti.f32, ndim=1))
    graph = builder.compile()
    tex, out = ti.Texture(F.r32f, (4, 3)), ti.ndarray(ti.f32, 4)
    graph.run({"written": tex, "read": tex, "out": out})
    assert out.to_numpy().tolist() == [0, 1, 2, 3]
    for wrong, message in (
        (ti.Texture(F.r32f, (4,)), "has 2 axes, the texture 1"),
        (ti.Texture(F.r8, (4, 3)), "of Format.r32f, not of Format.r8"),
        (out, "is a RWTEXTURE, not a"),
    ):
        with pytest.raises(ti.TaichiRuntimeError, match=message):
            graph.run({"written": wrong, "read": tex, "out": out})
    for arg in (Arg(Kind.RWTEXTURE, "t", fmt=F.r8, ndim=2), Arg(Kind.TEXTURE, "t", ndim=2)):
        with pytest.raises(ti.TaichiCompilationError, match="is of Format.r32f|is a RWTEXTURE"):
            builder.dispatch(fill, arg)
    for kind, given, missing in ((Kind.RWTEXTURE, {"ndim": 2}, "fmt"), (Kind.TEXTURE, {}, "ndim")):
        with pytest.raises(TypeError, match=f"needs {missing}"):
            Arg(kind, "t", **given)


def test_windows_show_textures(cpu):
    tex = ti.Texture(F.rgba8, (8, 6))
    texels = np.random.default_rng(4).integers(0, 256, (8, 6, 4), dtype=np.uint8)
    tex.from_numpy(texels)
    window = ti.ui.Window("texture", (8, 6), show_window=False)
    window.get_canvas().set_image(tex)
    found = window.get_image_buffer_as_numpy()[..., :3]
    assert np.abs(found - texels[..., :3] / np.float32(255)).max() < 0.003


def compiled(text):
    """Compiles a kernel of a texture ``t`` with 2 axes, and one ``w`` to write to; what it says is wrong."""
    scope = {"ti": ti, "F": F}

    def call():
        import linecache

        source = (
            "@ti.kernel\ndef k(t: ti.types.texture(2), w: ti.types.rw_texture(2, fmt=F.rg8), a: ti.types.ndarray()):\n"
            f"    for i in range(1):\n        {text}\n"
        )
        name = f"<texture {hash(text)}>"
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        exec(compile(source, name, "exec"), scope)
        scope["k"](ti.Texture(F.r8, (2, 2)), ti.Texture(F.rg8, (2, 2)), np.zeros(4, np.float32))

    with pytest.raises(ti.TaichiCompilationError) as e:
        call()
    return str(e.value)


WRONG = {
    "t.store([0, 0], ti.Vector([1.0, 1.0, 1.0, 1.0]))": "the texture `t` is annotated for `sample_lod` and `fetch`, not for `store`",
    "a[i] = t.load([0, 0]).r": "not for `load`",
    "a[i] = w.sample_lod(ti.Vector([0.5, 0.5]), 0).r": "the texture `w` is annotated for `load` and `store`, not for `sample_lod`",
    "a[i] = w.fetch([0, 0], 0).r": "not for `fetch`",
    "a[i] = t.fetch([0], 0).r": "the texture `t` has 2 axes, but `index` is `vec<1, i32>`",
    "a[i] = t.fetch(0, 0).r": "but `index` is `i32`",
    "a[i] = t.sample_lod(ti.Vector([0.5, 0.5, 0.5]), 0).r": "but `uv` is `vec<3, f32>`",
    "a[i] = t.sample_lod([1, 1], 0).r": "`uv` of `sample_lod` consists of floats, not `vec<2, i32>`",
    "a[i] = t.fetch([0.5, 1.0], 0).r": "an index must be an integer, not `vec<2, f32>`",
    "a[i] = t.fetch([0, 0]).r": "`fetch` needs an argument for `lod`",
    "a[i] = t.fetch([0, 0], 0, 0).r": "`fetch` takes 2 arguments, but 3 are given",
    "a[i] = t.fetch([0, 0], level=0).r": "`fetch` has no parameter `level`",
    "a[i] = t.fetch([0, 0], [0, 0]).r": "`lod` of `fetch` is a number, not `vec<2, i32>`",
    "w.store([0, 0], ti.Vector([1.0, 1.0]))": "a texel is stored as a vector of 4 components, not `vec<2, f32>`",
    "w.store([0, 0], 1.0)": "not `f32`",
    "a[i] = t[0, 0]": "a texture cannot be indexed",
    "a[i] = t": "a number, vector or matrix is needed here, not a texture",
    "a[i] = t.fetsch([0, 0], 0).r": "did you mean `fetch`?",
}


@pytest.mark.parametrize("text", WRONG)
def test_mistakes_are_shown_where_they_are(cpu, text):
    message = compiled(text)
    assert WRONG[text] in message
    # The line is the user's, and has a caret.
    assert f"4 |         {text}" in message and "^" in message and "_texels.py" not in message


def test_arguments_that_do_not_fit(cpu):
    fetch, store = fetcher(2), storer(F.rgba8)
    with pytest.raises(ti.TaichiRuntimeTypeError, match="takes a ti.Texture, not a ndarray"):
        fetch(np.zeros((4, 4), np.float32), [(0, 0)])
    with pytest.raises(ti.TaichiRuntimeTypeError, match="annotated for textures with 2 axes, this one has 1"):
        fetch(ti.Texture(F.r8, 4), [(0, 0)])
    with pytest.raises(ti.TaichiRuntimeTypeError, match="textures of Format.rgba8, this one is of Format.rg8"):
        store(ti.Texture(F.rg8, (2, 2)), [(0, 0)], np.zeros(4))

    @ti.kernel
    def array(x: ti.types.ndarray()):
        x[0] = 1

    with pytest.raises(ti.TaichiRuntimeTypeError, match=r"takes a NumPy array or a ti.ndarray, not a Texture"):
        array(ti.Texture(F.r32f, 4))
    tex = ti.Texture(F.r32f, 4)

    @ti.kernel
    def captured() -> ti.f32:
        return tex.fetch(0, 0).r

    with pytest.raises(ti.TaichiCompilationError, match="textures are passed as arguments: annotate"):
        captured()


def test_textures_that_cannot_be(cpu):
    for shape in ((), (1, 2, 3, 4), (0, 2), (2.5,), -1):
        with pytest.raises(ti.TaichiRuntimeError, match="the shape of a texture is 1, 2 or 3 positive integers"):
            ti.Texture(F.r8, shape)
    for fmt in (F.depth16, F.depth24stencil8, F.depth32f, F.unknown):
        with pytest.raises(ti.TaichiRuntimeError, match=f"cannot have Format.{fmt.name}"):
            ti.Texture(fmt, (2, 2))
    with pytest.raises(TypeError, match="ti.Format such as ti.Format.rgba8, not 'r8'"):
        ti.Texture("r8", (2, 2))
    with pytest.raises(ti.TaichiCompilationError, match="fmt is required"):
        ti.types.rw_texture(2)
    with pytest.raises(ti.TaichiCompilationError, match="level 0 only"):
        ti.types.rw_texture(2, 1, F.r8)
    for fmt in (F.rgba8srgb, F.bgra8):
        with pytest.raises(ti.TaichiCompilationError, match="can only be sampled"):
            ti.types.rw_texture(2, fmt=fmt)
    with pytest.raises(ValueError, match="num_dimensions of a texture is 1, 2 or 3"):
        ti.types.texture(4)
    tex = ti.Texture(F.rg8, (4, 3))
    with pytest.raises(TypeError, match=r"Format.rg8 consists of u8; this ti.ndarray has f32"):
        tex.from_ndarray(ti.Vector.ndarray(2, ti.f32, (4, 3)))
    with pytest.raises(ValueError, match="has 24 values; this field has 12"):
        tex.from_field(ti.field(ti.u8, (4, 3)))


def test_taichis_names():
    assert (int(F.r8.value), F.rgba32f.value, str(F.r8), repr(F.r8), F.r8.name) == (
        1,
        40,
        "Format.r8",
        "<Format.r8: 1>",
        "r8",
    )
    from aerogel.lang._texture import RWTextureAccessor, TextureSampler  # noqa: F401
    from aerogel.types.texture_type import rw_texture, texture

    assert ti.types.texture is texture and ti.types.rw_texture is rw_texture


@pytest.mark.parametrize("fmt", [F.r8i, F.r8u, F.r16i, F.r32i, F.r32u])
def test_nan_is_stored_as_the_smallest_integer(arch, fmt):
    tex = ti.Texture(fmt, (1,))

    @ti.kernel
    def store(t: ti.types.rw_texture(num_dimensions=1, fmt=fmt), v: ti.f32):
        t.store(ti.Vector([0]), ti.Vector([v, v, v, v]))

    store(tex, 3.0)
    assert tex.to_numpy() == 3
    store(tex, float("nan"))
    assert tex.to_numpy() == np.iinfo(tex.to_numpy().dtype).min


def test_what_a_texture_lacks_is_said(cpu):
    with pytest.raises(TypeError, match=r"`t` of kernel `sampled` \(.*test_textures.py:\d+\).*ti.types.texture\(2\)"):

        @ti.kernel
        def sampled(t: ti.types.texture):
            pass

    with pytest.raises(TypeError, match=r"`t` of kernel `written` .*ti.types.rw_texture\(num_dimensions=2, fmt="):

        @ti.kernel
        def written(t: ti.types.rw_texture):
            pass

    with pytest.raises(TypeError, match="'t' is a TEXTURE, which needs ndim"):
        ti.graph.Arg(ti.graph.ArgKind.TEXTURE, "t")
    with pytest.raises(TypeError, match="'t' is a RWTEXTURE, which needs fmt"):
        ti.graph.Arg(ti.graph.ArgKind.RWTEXTURE, "t", ndim=2)
    tex = ti.Texture(ti.Format.rgba8, (2, 2))
    with pytest.raises(TypeError, match="rgba8 consists of u8; this array has float64"):
        tex.from_numpy(np.full((2, 2, 4), 0.5))
    tex.from_numpy(np.full((2, 2, 4), 7))
    assert (tex.to_numpy() == 7).all()


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_tensors_sample_textures(arch, ndim):
    """As kernels do, outside of programs and in them, for coordinates of any shape."""
    rng = np.random.default_rng(ndim)
    tex = ti.Texture(F.rgba8, (5, 4, 3)[:ndim])
    tex.from_numpy(rng.integers(0, 256, (*tex.shape, 4), dtype=np.uint8))
    at = rng.uniform(-1, 2, (3, 7, ndim)).astype(np.float32)
    expected = sampler(ndim)(tex, at).reshape(3, 7, 4)
    coordinates = ti.tensor.asarray(at)
    np.testing.assert_array_equal(tex.sample_lod(coordinates, 0.0).numpy(), expected)
    program = ti.program(lambda at: tex.sample_lod(at) + 1)
    np.testing.assert_array_equal(program(coordinates).numpy(), expected + np.float32(1))
    assert program(coordinates[0, 0]).shape == (4,)
    index = np.stack(np.meshgrid(*(np.arange(-1, n + 1) for n in tex.shape), indexing="ij"), -1).astype(np.int32)
    texels = np.pad(tex.to_numpy().astype(np.float32) / np.float32(255), [(1, 1)] * ndim + [(0, 0)])
    np.testing.assert_allclose(tex.fetch(index).numpy(), texels, rtol=1e-6)
    assert not tex.fetch(index, 1).numpy().any()


def test_gradients_of_sampled_coordinates(cpu):
    rng = np.random.default_rng(0)
    tex = ti.Texture(F.rgba32f, (4, 6))
    tex.from_numpy(rng.normal(size=(4, 6, 4)).astype(np.float32))
    # Between texels, far from where the slope jumps.
    at = ((rng.integers(0, 4, (8, 2)) + rng.uniform(0.7, 1.3, (8, 2))) / (4, 6)).astype(np.float32)
    loss = lambda at: (tex.sample_lod(at) ** 2).sum()  # noqa: E731
    gradient = ti.grad(loss)(ti.tensor.asarray(at)).numpy()
    for k in np.ndindex(at.shape):
        ends = [at.copy(), at.copy()]
        ends[0][k] -= 1e-3
        ends[1][k] += 1e-3
        low, high = (loss(ti.tensor.asarray(end)).item() for end in ends)
        assert gradient[k] == pytest.approx((high - low) / float(ends[1][k] - ends[0][k]), rel=0.02, abs=0.05)


def test_what_tensors_cannot_sample(cpu):
    tex = ti.Texture(F.r8, (4, 4))
    with pytest.raises(ValueError, match=r"the 2 coordinates of a point in the texture, and the shape is \(3, 3\)"):
        tex.sample_lod(np.zeros((3, 3), np.float32))
    with pytest.raises(TypeError, match="`fetch` takes integers, not f32"):
        tex.fetch(np.zeros((3, 2), np.float32))
    with pytest.raises(TypeError, match="`sample_lod` takes floats, not i32"):
        tex.sample_lod([[1, 2]])
    with pytest.raises(ValueError, match="3 elements where 2 are needed"):
        ti.program(lambda at: tex.sample_lod(at))(np.zeros((5, 3), np.float32))
