"""What the profiler says of launches and of compiling."""

import csv
import json
import re
import threading

import numpy as np
import pytest

import aerogel as ti


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
