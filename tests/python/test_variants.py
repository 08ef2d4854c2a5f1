"""A sample of the spellings of benches/variants.py gives the results of NumPy."""

import subprocess
import sys
from pathlib import Path

import pytest

import aerogel as ti

BENCHES = Path(__file__).parents[2] / "benches"
sys.path.insert(0, str(BENCHES))
try:
    import variants
    from variants import measure, worker
finally:
    sys.path.remove(str(BENCHES))

COMPUTATIONS = variants.load()


@pytest.fixture(autouse=True)
def default_types():
    yield
    ti.init(arch=ti.cpu)


def failing(name, spellings, folder):
    """The spellings with a wrong result."""
    comp, programs, wrong = COMPUTATIONS[name], worker.Programs("aerogel", 1), []
    for dtype in dict.fromkeys(spelling.dtype for spelling in spellings):
        programs.start(name, dict(comp.small), dtype)
        for number, spelling in enumerate(spellings):
            if spelling.dtype == dtype:
                path = folder / f"{name}_{number}.py"
                path.write_text(spelling.source)
                if programs.load(number, str(path))["wrong"]:
                    wrong.append(spelling.source)
    return wrong


@pytest.mark.parametrize("name", COMPUTATIONS)
def test_spellings_give_the_results_of_numpy(name, tmp_path):
    comp = COMPUTATIONS[name]
    some = variants.spellings(comp, dict(comp.small), 60, 1)[1::12]
    assert len(some) >= 3
    assert failing(name, some, tmp_path) == []


def test_a_wrong_result_is_found(tmp_path):
    comp = COMPUTATIONS["total"]
    spelling = variants.spellings(comp, dict(comp.small), 1, 0)[0]
    changed = variants.Spelling(spelling.choice, spelling.source.replace("total += a[i]", "total += a[i] * 1.01"))
    assert changed.source != spelling.source
    assert failing("total", [changed], tmp_path) == [changed.source]


def test_only_the_axis_asked_for_varies():
    comp = COMPUTATIONS["matmul"]
    chosen = variants.spellings(comp, dict(comp.small), 6, 0, "order")
    first = {axis: values[0] for axis, values in comp.axes.items()}
    assert {spelling.choice["order"] for spelling in chosen} > {"ijk"}
    assert all(spelling.choice | {"order": "ijk"} == first for spelling in chosen[:3])


def test_ratios_are_those_of_the_best_of_the_same_type():
    comp = COMPUTATIONS["total"]
    spellings = [variants.Spelling({"dtype": dtype}, str(number)) for number, dtype in enumerate(("f32", "f64", "f32"))]
    assert list(measure.groups_of(comp, spellings).values()) == [[0, 2], [1]]


def run(*arguments):
    command = [sys.executable, str(BENCHES / "variants.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_what_does_not_exist_is_an_error_that_names_what_does():
    wrong = run("--only", "stencils5")
    assert wrong.returncode == 2
    assert "no computation `stencils5` (did you mean `stencil5`?); there are stencil5, stencil7" in wrong.stderr
    wrong = run("--onyl", "total")
    assert wrong.returncode == 2 and "no option `--onyl`; there are --axis, --count" in wrong.stderr
    wrong = run("--only", "total", "--axis", "edge")
    assert wrong.returncode == 2 and "no axis `edge`; there are bounds, dtype" in wrong.stderr
    wrong = run("--rounds", "0")
    assert wrong.returncode == 2 and "--rounds is 0; it must be at least 1" in wrong.stderr


def test_a_peer_that_is_not_installed_is_named_and_the_rest_runs(tmp_path):
    sample = ["--small", "--only", "total", "--count", "2", "--rounds", "1", "--json", str(tmp_path / "out.json")]
    done = run(*sample, "--peer", "not_installed")
    assert done.returncode == 0, done.stderr
    assert "not_installed is not installed for" in done.stdout and "2 spellings" in done.stdout
    assert '"compile_s"' in (tmp_path / "out.json").read_text()
