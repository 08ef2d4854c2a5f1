"""Wrong programs: each raises its exception, with the place, and a right one runs afterwards in the same process.

`wrong/programs.txt` holds the bodies of kernels. The line before each says the exception, the line of the body (or of
`wrong/functions.py`, or `library`) that it shows, and how its message begins.
"""

import importlib.util
import linecache
import pathlib
import re

import numpy as np
import pytest

import aerogel as ti

HERE = pathlib.Path(__file__).parent / "wrong"
HEAD = "@ti.kernel\ndef run(a: ti.i32, b: ti.f32, arr: ti.types.ndarray(ti.f32, 1)):\n"


def programs():
    """Exception, place, message and body of each."""
    for block in (HERE / "programs.txt").read_text().rstrip("\n").split("\n\n"):
        first, _, body = block.partition("\n")
        _, kind, place, message = first.split(" ", 3)
        yield kind, place, message, body


def functions():
    spec = importlib.util.spec_from_file_location("wrong_functions", HERE / "functions.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return vars(module)


def problem(scope, number, kind, place, message, body):
    """What is not as it should be; nothing if all is."""
    path = f"/wrong/program_{number}.py"
    text = HEAD + "".join(f"    {line}\n" for line in body.splitlines())
    # Where Python, and so the compiler, looks for the source.
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    names = dict(scope)
    exec(compile(text, path, "exec"), names)  # noqa: S102
    try:
        names["run"](1, 2.0, np.zeros(4, dtype=np.float32))
    except ti.TaichiCompilationError as error:
        wanted = getattr(ti, f"Aerogel{kind}")
        if type(error) is not wanted:
            return f"raised {type(error).__name__}"
        said = str(error)
    else:
        return "raised nothing"
    found = re.match(rf"\nAerogel{kind}\[E\d{{4}}\]: (.*)\n +--> (.*):(\d+):\d+\n(.*\n)*?.*\^", said)
    if not found:
        return f"has no place:{said}"
    line = int(found[3])
    shown = {path: str(line - 2), str(HERE / "functions.py"): f"functions:{line}"}.get(found[2], "library")
    if shown != place or not found[1].startswith(message):
        return f"said{said}"
    return None


def test_every_program_raises(cpu):
    scope = functions()

    @ti.kernel
    def right(x: ti.i32) -> ti.i32:
        return x * 2

    wrong = []
    for number, program in enumerate(programs()):
        failed = problem(scope, number, *program)
        if failed:
            wrong.append(f"{program[3]}\n... {failed}")
        if number % 50 == 0:
            ti.reset()
            ti.init(arch=ti.cpu, log_level="error")
            scope = functions()
        assert right(number) == 2 * number
    assert not wrong, "\n\n".join(wrong)
    assert number > 350


def test_what_python_refuses_is_told_by_python(cpu):
    for body in ("x[0 = 1", "1 = a", "break", "if a > 0\n        pass", "x[0] = a if a"):
        with pytest.raises(SyntaxError):
            compile(HEAD + f"    {body}\n", "/wrong/refused.py", "exec")
