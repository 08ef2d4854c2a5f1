"""`ti.init(deterministic=True)`: results are bit-equal on any number of threads, program by program of `repeatable.py`."""

import contextlib
import threading

import numpy as np
import pytest
import repeatable
from repeatable import PROGRAMS, results

import aerogel as ti
from aerogel import _config


@pytest.fixture(autouse=True)
def after():
    yield
    ti.reset()


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Kernels are compiled once for all numbers of threads."""
    return {"offline_cache": True, "offline_cache_file_path": str(tmp_path_factory.mktemp("kernels"))}


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_do_not_depend_on_threads(name, cache):
    settings = {"deterministic": True, **cache}
    found = [b"".join(results(PROGRAMS[name], threads, times=2, **settings)) for threads in (1, 2, 3)]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("name", ["total", "few_bins", "bins", "many_bins", "slots", "gradients", "counted_and_added"])
def test_orders_are_told_apart(name, monkeypatch):
    """The same terms in another order are another result, so the test above cannot pass by luck."""
    (forwards,) = results(PROGRAMS[name], 1, deterministic=True)
    field = repeatable._field
    monkeypatch.setattr(repeatable, "_field", lambda array: field(array[::-1].copy()))
    (backwards,) = results(PROGRAMS[name], 1, deterministic=True)
    assert forwards != backwards


LEVELS = ["x86-64-v2", "x86-64-v3", "x86-64-v4"]


@pytest.mark.parametrize("name", ["total", "few_bins", "bins", "gradients", "particles"])
def test_processors_agree_without_regrouping(name):
    """Vectors of other lengths, for those levels that this processor has."""
    found = []
    for level in LEVELS:
        with contextlib.suppress(ValueError):
            settings = {"deterministic": True, "fast_math": False, "cpu": level}
            found.append(b"".join(results(PROGRAMS[name], 1 + len(found) % 2, **settings)))
    if len(found) < 2:
        pytest.skip("this processor has one level of vectors")
    assert len(set(found)) == 1


def test_a_sum_without_regrouping_is_that_of_its_chunks():
    """A loop that is one chunk adds as the program is written."""
    ti.init(arch=ti.cpu, deterministic=True, fast_math=False, log_level="error")
    x, s = ti.field(ti.f32, 1000), ti.field(ti.f32, ())
    x.from_numpy(repeatable.values(1000))

    @ti.kernel
    def run():
        for i in x:
            s[None] += x[i]

    run()
    assert s[None] == np.add.accumulate(x.to_numpy())[-1]


def test_lines_are_printed_in_order(capfd):
    ti.init(arch=ti.cpu, deterministic=True, cpu_max_num_threads=3, log_level="error")

    @ti.kernel
    def run(n: ti.i32):
        for i in range(n):
            print(i)

    run(20_000)
    assert capfd.readouterr().out.split() == [str(i) for i in range(20_000)]


def test_a_failed_check_ends_all_that_wait():
    ti.init(arch=ti.cpu, deterministic=True, debug=True, cpu_max_num_threads=3, log_level="error")
    s = ti.field(ti.f32, ())

    @ti.kernel
    def run(n: ti.i32, wrong: ti.i32):
        for i in range(n):
            assert i != wrong
            s[None] += ti.sin(ti.cast(i, ti.f32))

    for wrong in (0, 1000, 999_999):
        with pytest.raises(ti.AerogelAssertionError):
            run(1_000_000, wrong)
    run(1000, -1)


def test_threads_of_python():
    """Launches from several threads share the pool, or work alone."""
    ti.init(arch=ti.cpu, deterministic=True, cpu_max_num_threads=2, log_level="error")
    x, found = ti.field(ti.f32, 200_000), []
    x.from_numpy(repeatable.values(200_000))

    @ti.kernel
    def total() -> ti.f32:
        s = 0.0
        for i in x:
            s += x[i]
        return s

    threads = [threading.Thread(target=lambda: found.extend(total() for _ in range(20))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 60
    assert len(set(found)) == 1


def test_what_adds_in_an_order_of_its_own_is_refused():
    with pytest.raises(ValueError, match="deterministic=True needs arch=ti.cpu"):
        _config._expect_order({"deterministic": True, "backend": "native"}, ti.cuda)
    with pytest.raises(ValueError, match="deterministic=True needs backend='native': 'blas'"):
        ti.init(arch=ti.cpu, deterministic=True, backend="blas", log_level="error")
    ti.init(arch=ti.cpu, deterministic=True, log_level="error")
    with pytest.raises(ValueError, match="deterministic=True needs backend='native'"):
        ti.cfg.backend = "blas"


def test_the_environment(monkeypatch):
    monkeypatch.setenv("AEROGEL_DETERMINISTIC", "1")
    ti.init(arch=ti.cpu, log_level="error")
    assert ti.cfg.deterministic
    ti.init(arch=ti.cpu, deterministic=False, log_level="error")
    assert not ti.cfg.deterministic
