"""Programs in TensorFrost's words: what it gives for them, where that is right."""

import importlib.util
import json
import pathlib

import numpy as np
import pytest

from aerogel.tensor import frost as tf

HERE = pathlib.Path(__file__).parent
_spec = importlib.util.spec_from_file_location("frost_cases", HERE.parent / "oracle" / "frost.py")
cases = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(cases)
ANSWERS = json.loads((HERE / "answers" / "frost.json").read_text())


def rows(x, n):
    """The rows of the last axis, the last one ended with zeros."""
    more = -x.shape[-1] % n
    x = np.concatenate([x, np.zeros((*x.shape[:-1], more), x.dtype)], axis=-1)
    return x.reshape(*x.shape[:-1], -1, n)


#: What TensorFrost 0.7.4 gets wrong, or ends by: what is right, by NumPy.
RIGHT = {
    # It merges the first two axes, whichever are named; what it splits it does not put together.
    "merge_dim": lambda x: [x.reshape(2, 12)],
    "merge_dim_of_axis": lambda x: [x.reshape(6, 4), x.reshape(2, 12), x.reshape(6, 4)],
    # It converts where it should give the bits.
    "bits": lambda x: [x.view(np.uint32), x.view(np.int32), x],
    "merge_all": lambda x: [x.reshape(6)],
    "there_and_back": lambda x: [x],
    # It gives the shape that was there before.
    "reshape": lambda x: [x.reshape(3, 4)],
    # The second index is 3 everywhere.
    "flat_indices": lambda x: [np.arange(12).reshape(3, 4), *np.indices((3, 4))],
    # It counts axes from the last one.
    "one_index": lambda x: [*np.indices((3, 4))],
    # The compiler of its kernels ends with an error.
    "scalar_functions": lambda x: [
        abs(x), np.sign(x), np.floor(x), np.ceil(x), x - np.floor(x), x * x, np.exp2(x), np.exp(x), np.sin(x), np.cos(x),
        np.tanh(x), np.arctan(x), np.sqrt(abs(x)), 1 / (x + 10), 1 / np.sqrt(abs(x) + 1), np.log(abs(x) + 1),
    ],
    "functions_of_two": lambda x, y: [
        np.minimum(x, y), np.maximum(x, y), np.arctan2(x, y), x + (y - x) * 0.25, np.clip(x, -0.5, 0.5), (abs(x) + 1) ** y,
        (lambda s: s * s * (3 - 2 * s))(np.clip((x + 1) / 2, 0, 1)), x * y + 2, np.maximum(x, y),
    ],
}  # fmt: skip


@pytest.fixture(autouse=True)
def _start():
    tf.initialize(tf.cpu)


@pytest.mark.parametrize("name", cases.CASES)
def test_as_tensorfrost(name):
    got = cases.run(tf, name)
    if name in RIGHT:
        expected = RIGHT[name](*cases.CASES[name][1])
    else:
        expected = [np.array(a["numbers"], a["dtype"]).reshape(a["shape"]) for a in ANSWERS[name]]
    assert len(got) == len(expected)
    for ours, theirs in zip(got, expected):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours.astype(float), theirs.astype(float), rtol=1e-5, atol=1e-6)


# What it has not, or gets wrong without a word.


def test_groups_share_memory():
    def reversed_in_groups():
        x = tf.input([-1], tf.float32)
        out = tf.buffer(x.shape, tf.float32)
        with tf.kernel(x.shape, group_size=[8]) as i:
            at = i.block_thread_index(0)
            shared = tf.group_buffer(8, tf.float32)
            shared[at] = x[i]
            tf.group_barrier()
            out[i] = shared[7 - at]
        return out

    x = np.arange(64, dtype=np.float32)
    got = tf.compile(reversed_in_groups)(tf.tensor(x)).numpy
    assert (got == x.reshape(8, 8)[:, ::-1].ravel()).all()


def test_a_product_in_tiles():
    tile = 4

    def product():
        a, b = tf.input([-1, -1], tf.float32), tf.input([-1, -1], tf.float32)
        n, m = a.shape[0], b.shape[1]
        out = tf.buffer([n, m], tf.float32)
        with tf.kernel([n, m], group_size=[tile, tile]) as at:
            i, j = at
            row, column = at.block_thread_index(0), at.block_thread_index(1)
            left, right = tf.group_buffer(tile * tile), tf.group_buffer(tile * tile)
            total = tf.const(0.0)
            with tf.loop(a.shape[1] / tile) as k:
                left[row * tile + column] = a[i, k * tile + column]
                right[row * tile + column] = b[k * tile + row, j]
                tf.group_barrier()
                with tf.loop(tile) as inner:
                    total.val += left[row * tile + inner] * right[inner * tile + column]
                tf.group_barrier()
            out[i, j] = total
        return out

    a, b = (np.random.default_rng(k).integers(-3, 4, s).astype(np.float32) for k, s in enumerate([(8, 12), (12, 16)]))
    assert (tf.compile(product)(tf.tensor(a), tf.tensor(b)).numpy == a @ b).all()


def test_orders():
    def ordered():
        keys, values = tf.input([-1], tf.float32), tf.input([-1], tf.int32)
        return tf.sort.bitonic(keys), *tf.sort.radix(keys, values)

    keys = np.array([5, 3, 9, 1, 7, 2, 8, 0], np.float32)
    alone, sorted_keys, values = tf.compile(ordered)(tf.tensor(keys), tf.tensor(np.arange(8, dtype=np.int32)))
    assert (alone.numpy == np.sort(keys)).all() and (sorted_keys.numpy == alone.numpy).all()
    assert (values.numpy == np.argsort(keys)).all()


def test_numbers_drawn():
    def drawn():
        x = tf.input([-1], tf.float32)
        n = x.shape[0]
        return tf.random.rand([n], 3), tf.random.randn([n], 3), tf.random.permutation(n, 3), tf.random.rand([n], 4)

    flat, normal, order, other = (x.numpy for x in tf.compile(drawn)(tf.tensor(np.zeros(20000, np.float32))))
    assert (
        0 <= flat.min()
        and flat.max() < 1
        and abs(flat.mean() - 0.5) < 0.01
        and abs(np.corrcoef(flat, other)[0, 1]) < 0.03
    )
    assert abs(normal.mean()) < 0.03 and abs(normal.std() - 1) < 0.03
    assert (np.sort(order) == np.arange(20000)).all() and (order != np.arange(20000)).mean() > 0.9


def test_what_is_for_kernels():
    def outside():
        return tf.local_buffer(3)

    def no_groups():
        with tf.kernel([4]):
            return tf.group_buffer(3)

    with pytest.raises(RuntimeError, match="`local_buffer` is for the points of a `kernel`"):
        tf.compile(outside)
    with pytest.raises(RuntimeError, match="a kernel with a `group_size`"):
        tf.compile(no_groups)


# What is not arithmetic.


def test_values_are_printed(capsys):
    def prints():
        x = tf.input([-1], tf.int32)
        tf.print_value("x", x)
        with tf.loop(3) as k:
            tf.print_value("k", k)
        with tf.kernel(x.shape) as i, tf.if_cond(x[i] > 1):
            tf.print_value("large", x[i])
        return x + 1

    compiled = tf.compile(prints)
    assert capsys.readouterr().out == ""
    compiled(np.array([1, 2, 3], np.int32))
    # TensorFrost prints single numbers, as these.
    assert capsys.readouterr().out == "x: [1 2 3]\nk: 0\nk: 1\nk: 2\nlarge: [2 3]\n"


def test_values_are_asserted():
    def asserts():
        x = tf.input([-1], tf.int32)
        with tf.loop(x.shape[0]) as k:
            tf.assert_value("k is small", k < 3)
        with tf.kernel(x.shape) as i, tf.if_cond(x[i] > 1):
            tf.assert_value("x is odd", x[i] % 2 == 1)
        return x

    compiled = tf.compile(asserts)
    assert compiled(np.array([0, 3, 5], np.int32)).numpy.tolist() == [0, 3, 5]
    with pytest.raises(AssertionError, match=r"^k is small: the condition is false \(.*test_tensor_frost.py:\d+\)$"):
        compiled(np.array([0, 3, 5, 7], np.int32))
    with pytest.raises(AssertionError, match=r"^x is odd: the condition is false at \(2,\) \("):
        compiled(np.array([0, 3, 4], np.int32))


def test_what_was_there_before():
    def counted():
        x = tf.input([-1], tf.int32)
        total, before = tf.buffer([4], tf.int32), tf.buffer(x.shape, tf.int32)
        with tf.kernel(x.shape) as i:
            before[i] = -1
            with tf.if_cond(x[i] >= 0):
                before[i] = tf.scatterAddPrev(total[x[i]], i + 1)
        return total, before

    x = np.array([1, 3, -2, 1, 9, 1, 0, -5, 3], np.int32)
    total, before = np.zeros(4, np.int32), np.full(x.shape, -1, np.int32)
    for i, at in enumerate(np.clip(x, 0, 3)):
        if x[i] >= 0:
            before[i] = total[at]
            total[at] += i + 1
    got = tf.compile(counted)(x)
    assert got[0].numpy.tolist() == total.tolist() and got[1].numpy.tolist() == before.tolist()


def test_what_became_of_a_program():
    def doubled():
        return tf.input([-1], tf.float32) * 2.0

    compiled = tf.compile(doubled)
    assert compiled.text in tf.get_all_generated_main_functions() and compiled.text in tf.get_cpp_implementation()
    assert compiled.explain() in tf.get_all_generated_kernels() and "became 1 kernel" in compiled.explain()
    assert "// doubled(f32)" in tf.get_cpp_header()
    assert tf.current_backend() == tf.cpu and tf.unused_allocated_memory() == 0 <= tf.allocated_memory()


def test_places_drawn():
    def drawn():
        x = tf.input([-1], tf.int32)
        n = x.shape[0]
        first, second = tf.random.randn2([n], 5)
        return first, second, tf.random.shuffle(x, n, 5), tf.random.xor_swap(x, n, 5)

    n = 4096
    first, second, order, swapped = (r.numpy for r in tf.compile(drawn)(np.arange(n, dtype=np.int32)))
    for x in (first, second):
        assert abs(x.mean()) < 0.06 and abs(x.std() - 1) < 0.06
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.06
    assert (np.sort(order) == np.arange(n)).all() and (np.sort(swapped) == np.arange(n)).all()
    assert (swapped[swapped] == np.arange(n)).all()


def test_every_name_is_there():
    """The names of TensorFrost 0.7.4's module, of which those that it has for itself are left out."""
    names = """abs acos all allocated_memory any asfloat asin asint assert_tensor assert_value asuint atan atan2 bool bool1
        break_loop buffer ceil clamp clipping codegen compile const continue_loop copy cos cosh cpp_lang cpu current_backend
        custom dot element_index exp exp2 eye eye_like flat_index float float32 floor fma frac get_all_generated_kernels
        get_all_generated_main_functions get_copy get_cpp_header get_cpp_implementation glsl_lang grad group_barrier
        group_buffer hash hlsl_lang if_cond imgui index index_grid indices indices_from_flat_index initialize input int int32
        kernel lerp local_buffer log log2 loop matmul max mean merge_dim min modf norm ones_like opengl optimizers pcg pcgf
        pow prefix_sum print_value random random_value rcp region_begin region_end register_custom_operation regularizers
        renderdoc_end_capture renderdoc_start_capture repeat reshape reverse reversebits round rsqrt scatterAdd
        scatterAddPrev scatterAnd scatterMax scatterMin scatterOr scatterXor select sign sin sinh smoothstep sort split_dim
        stop_fusion sqr sqrt squeeze strip_debug_info sum tan tanh tensor transpose trunc uint uint32 unsqueeze unused_allocated_memory
        vulkan window zeros zeros_like Module Parameter ParameterArray Tensor TensorMemory TensorProgram"""
    assert [name for name in names.split() if not hasattr(tf, name)] == []
    of_modules = {
        tf.window: "get_mouse_position get_size hide is_key_pressed is_mouse_button_pressed render_frame should_close show",
        tf.imgui: "add_background_text begin button checkbox color_picker3 color_picker4 end plotlines scale_all_sizes slider text",
        tf.optimizers: "adam rmsprop sgd ModuleOptimizer",
        tf.regularizers: "none l1 l2",
        tf.clipping: "none clamp norm",
        tf.sort: "bitonic radix",
    }
    for module, names in of_modules.items():
        assert [name for name in names.split() if not hasattr(module, name)] == []
    of_random = "permutation rand rand_int rand_like randn randn2 randn_like reverse shuffle xor_swap"
    assert [name for name in of_random.split() if not hasattr(tf.random, name)] == []
