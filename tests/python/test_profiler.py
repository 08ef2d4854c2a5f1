"""What the profiler says of launches and of compiling."""

import csv
import json
import re
import threading

import numpy as np
import pytest

import aerogel as ti
import aerogel.tensor.programs as p


@ti.kernel
def busy(x: ti.types.ndarray()):
    for i in x:
        x[i] = ti.sin(x[i])


@ti.kernel
def idle() -> ti.i32:
    return 3


@pytest.fixture
def profiled():
    ti.init(arch=ti.cpu, kernel_profiler=True, log_level="error")
    ti.profiler.clear_kernel_profiler_info()
    yield
    ti.reset()


def run(n=3):
    x = np.zeros(100, np.float32)
    for _ in range(n):
        busy(x)
    idle()


def test_nothing_ran(profiled, capsys, tmp_path):
    found = ti.profiler.query_kernel_profiler_info("busy")
    assert (found.counter, found.min, found.max, found.avg) == (0, 0, 0, 0)
    assert ti.profiler.get_kernel_profiler_total_time() == 0
    for mode in ("count", "trace"):
        ti.profiler.print_kernel_profiler_info(mode)
    ti.profiler.print_scoped_profiler_info()
    ti.profiler.print_memory_profiler_info()
    out = capsys.readouterr().out
    assert "number of results: 0" in out and "Number of records:  0" in out and "all 0 kernels" in out
    ti.profiler.export_chrome_trace(tmp_path / "trace.json")
    ti.profiler.export_kernel_profiler_csv(tmp_path / "table.csv")
    assert len(json.loads((tmp_path / "trace.json").read_text())["traceEvents"]) == 1
    assert (tmp_path / "table.csv").read_text().startswith("kernel,count,")


def test_before_init(capsys):
    ti.reset()
    ti.profiler.print_kernel_profiler_info()
    assert ti.profiler.get_kernel_profiler_total_time() == 0


def test_without_being_asked_for(cpu, capsys):
    run()
    assert ti.profiler.query_kernel_profiler_info("busy").counter == 0
    ti.profiler.print_kernel_profiler_info()
    assert "ti.init(kernel_profiler=True)" in capsys.readouterr().out


def test_launches(profiled, capsys):
    run()
    found = ti.profiler.query_kernel_profiler_info("busy")
    assert found.counter == 3 and 0 < found.min <= found.avg <= found.max
    total = ti.profiler.get_kernel_profiler_total_time()
    assert total >= 3 * found.avg / 1e3
    ti.profiler.print_kernel_profiler_info()
    out = capsys.readouterr().out
    assert re.search(r"3x \|.* ms\] busy", out) and re.search(r"1x \|.* ms\] idle", out)
    ti.profiler.print_kernel_profiler_info("trace")
    assert re.findall(r"\] (\w+)$", capsys.readouterr().out, re.MULTILINE) == ["busy"] * 3 + ["idle"]
    ti.profiler.clear_kernel_profiler_info()
    assert ti.profiler.get_kernel_profiler_total_time() == 0
    with pytest.raises(ValueError, match="'count' or 'trace'"):
        ti.profiler.print_kernel_profiler_info("other")


def test_table(profiled, tmp_path):
    run()
    ti.profiler.export_kernel_profiler_csv(tmp_path / "table.csv")
    rows = {row["kernel"]: row for row in csv.DictReader((tmp_path / "table.csv").open())}
    assert rows["busy"]["count"] == "3" and float(rows["busy"]["min_ms"]) <= float(rows["busy"]["max_ms"])
    assert rows.keys() == {"busy", "idle"}


def test_trace(profiled, tmp_path):
    run()
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    ti.profiler.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    bars = [e for e in events if e["ph"] == "X"]
    assert [e["name"] for e in bars if e["cat"] == "launch"] == (["busy"] * 3 + ["idle"]) * 2
    assert sorted(e["name"] for e in bars if e["cat"] == "compile") == ["busy", "idle"]
    assert len({e["tid"] for e in bars}) == 2 == sum(e["name"] == "thread_name" for e in events)
    # The bars of a thread do not overlap, but for those of the tasks in their launches.
    tasks = [e for e in bars if e["cat"] == "task"]
    for some in (tasks, [e for e in bars if e["cat"] != "task"]):
        for tid in {e["tid"] for e in bars}:
            mine = sorted((e["ts"], e["dur"]) for e in some if e["tid"] == tid)
            assert all(a + took <= b + 1e-3 for (a, took), (b, _) in zip(mine, mine[1:]))


@ti.kernel
def two_loops(x: ti.types.ndarray(ndim=1)):
    for i in x:
        for _ in range(200):
            x[i] = ti.sin(x[i])
    for i in x:
        x[i] += 1


def test_the_tasks_of_a_trace(tmp_path):
    """Both loops, on threads of the pool too, within their launches."""
    ti.init(arch=ti.cpu, kernel_profiler=True, cpu_max_num_threads=2, log_level="error")
    x = np.ones(100_000, np.float32)
    # On a busy machine the other thread may come too late for some launches.
    for n in range(1, 200):
        two_loops(x)
        ti.profiler.export_chrome_trace(tmp_path / "trace.json")
        bars = [e for e in json.loads((tmp_path / "trace.json").read_text())["traceEvents"] if e["ph"] == "X"]
        launches = [e for e in bars if e["cat"] == "launch"]
        tasks = [e for e in bars if e["cat"] == "task"]
        if len({e["tid"] for e in tasks}) > 1:
            break
    assert len(launches) == n and {e["name"] for e in tasks} == {"two_loops.0", "two_loops.1"}
    assert {e["tid"] for e in launches} < {e["tid"] for e in tasks}
    for task in tasks:
        within = [
            launch["ts"] - 1e-3 <= task["ts"] and task["ts"] + task["dur"] <= launch["ts"] + launch["dur"] + 1e-3
            for launch in launches
        ]
        assert sum(within) == 1
    ti.reset()


def test_a_trace_that_cannot_be_written(profiled, tmp_path):
    for export in (ti.profiler.export_chrome_trace, ti.profiler.export_kernel_profiler_csv):
        with pytest.raises(FileNotFoundError, match="nowhere/a"):
            export(tmp_path / "nowhere" / "a")


def test_steps_of_compiling(cpu, capsys):
    ti.profiler.clear_scoped_profiler_info()
    run()
    ti.profiler.print_scoped_profiler_info()
    out = capsys.readouterr().out
    assert re.search(r"ms +busy$", out, re.MULTILINE) and "frontend [1 x" in out and "all 2 kernels" in out
    ti.profiler.clear_scoped_profiler_info()
    ti.profiler.print_scoped_profiler_info()
    assert "all 0 kernels" in capsys.readouterr().out


def test_memory(cpu, capsys):
    x = ti.field(ti.f32, 1000)
    x.fill(0)
    ti.profiler.print_memory_profiler_info()
    assert int(capsys.readouterr().out.split()[0]) >= 4000


def test_what_only_gpus_count(cpu):
    assert ti.profiler.set_kernel_profiler_toolkit() and not ti.profiler.set_kernel_profiler_toolkit("cupti")
    with pytest.raises(ValueError, match="toolkit_name"):
        ti.profiler.set_kernel_profiler_toolkit("other")
    assert ti.profiler.get_predefined_cupti_metrics("global_access") == []
    metric = ti.profiler.CuptiMetric("a", "b", "{}", 2.0)
    ti.profiler.set_kernel_profiler_metrics([metric])
    with ti.profiler.collect_kernel_profiler_metrics([metric]):
        assert idle() == 3


def names():
    return {name for name, _, _, _, _ in ti._native.profile_events(False)[0]}


def test_tensors_by_line(profiled):
    x = ti.tensor.ones(1000)
    float((ti.tensor.sqrt(x) + 1).sum())

    @ti.program
    def step(x):
        return ti.tensor.sort(-x)

    step(x).numpy()
    first = test_tensors_by_line.__code__.co_firstlineno
    for line in (first + 2, first + 6):
        found = ti.profiler.query_kernel_profiler_info(f"test_profiler.py:{line}")
        assert found.counter > 0 and 0 < found.min <= found.avg <= found.max, names()


def test_regions(profiled):
    f = ti.field(ti.f32, 4)

    @ti.kernel
    def fill():
        for i in f:
            f[i] = i

    x = ti.tensor.ones(1000)
    fill()
    with ti.profiler.region("a"):
        fill()
        y = x + 1
        with ti.profiler.region("b"):
            fill()
            z = ti.tensor.sort(y * 3)
    # They are computed outside, and belong where they were written.
    assert float(z.sum()) == 6000
    labels = {re.sub(r"test_profiler.py:\d+", "line", name) for name in names()}
    assert labels == {"fill", "a: fill", "a/b: fill", "a/b: line", "line"}, labels
    query = ti.profiler.query_kernel_profiler_info
    assert (query("fill").counter, query("a: fill").counter, query("a/b: fill").counter) == (3, 1, 1)
    assert query("a").counter == 2 + query("a/b").counter - 1 and query("b").counter == 0


def test_regions_of_equal_programs(profiled):
    """Two equal programs share what is compiled, and are told apart."""
    for number, name in enumerate(("first", "second", "first")):
        x = ti.tensor.asarray(np.full(100, number, np.float32))
        with ti.profiler.region(name):
            (x * 2.5).numpy()
    assert [ti.profiler.query_kernel_profiler_info(name).counter for name in ("first", "second")] == [2, 1]


def test_regions_of_a_program(cpu):
    @ti.program
    def step(x, n: int):
        with ti.profiler.region("loop"):
            total = p.const(ti.tensor.zeros_like(x))
            with p.loop(n):
                total.val += x
        return total * 2

    text = step.lower(ti.tensor.ones(3), 2).text
    marks = [line.strip() for line in text.splitlines() if line.strip().startswith(";")]
    assert marks == ["; loop", "; outside of regions", "; results"]


def test_wrong_regions(cpu):
    from aerogel.tensor import frost

    for name in ("", "a/b", "a: b", "a\nresult b0"):
        with pytest.raises(ValueError, match="a region's name has printable characters"):
            ti.profiler.region(name)
    with pytest.raises(TypeError, match="a region's name is a string, not int"):
        ti.profiler.region(3)
    with pytest.raises(RuntimeError, match="no region is open"):
        frost.region_end("a")
    frost.region_begin("a")
    with pytest.raises(ValueError, match=r"region_end\('b'\): the region that was begun last is 'a'"):
        frost.region_end("b")
    frost.region_end("a")
    with pytest.raises(ZeroDivisionError), ti.profiler.region("a"):
        raise ZeroDivisionError

    def numbers():
        with ti.profiler.region("of a generator"):
            yield 1

    suspended = numbers()
    next(suspended)
    suspended.close()
    assert ti._native.current_region() is None


def test_regions_of_threads(profiled):
    """A region belongs to the thread that is in it."""
    with ti.profiler.region("a"):
        thread = threading.Thread(target=lambda: (ti.tensor.ones(100) + 1).numpy())
        thread.start()
        thread.join()
    assert ti.profiler.query_kernel_profiler_info("a").counter == 0
