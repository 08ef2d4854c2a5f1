"""The tables of docs/arithmetic.md: each row compiled and interpreted, from arguments and from constants."""

import importlib.util
import math
import pathlib

import pytest

import aerogel as ti

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "arithmetic.md"
SMALLEST = {"i8": -(2**7), "i32": -(2**31), "i64": -(2**63)}


def rows():
    """Type, operands, expression and result of each row."""
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[0] in ("i8", "i32", "i64", "u8", "u32", "u64", "f32", "f64"):
            ty, *operands, expression, result = cells
            operands = [*operands, "0"][:2]
            yield ty, operands[0], operands[1], expression.strip("`"), result


def result_type(expression, ty):
    cast = expression.partition("ti.cast(a, ti.")[2]
    return cast.rstrip(")") or ty


def constant(ty, text):
    if ty[0] == "f":
        return f"ti.{ty}({text})" if text in ("nan", "inf", "-inf") else f"ti.{ty}({float(text)!r})"
    # The smallest number of a type is no literal.
    return f"(ti.{ty}({int(text) + 1}) - ti.{ty}(1))" if int(text) == SMALLEST.get(ty) else f"ti.{ty}({text})"


def kernels(path):
    """A module with the kernels of all rows: with arguments, and with constants."""
    text = "import aerogel as ti\nnan, inf = float('nan'), float('inf')\n"
    for k, (ty, a, b, expression, _) in enumerate(rows()):
        out = result_type(expression, ty)
        text += f"@ti.kernel\ndef given{k}(a: ti.{ty}, b: ti.{ty}) -> ti.{out}:\n    return {expression}\n"
        text += f"@ti.kernel\ndef known{k}() -> ti.{out}:\n"
        text += f"    a = {constant(ty, a)}\n    b = {constant(ty, b)}\n    return {expression}\n"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("arithmetic_rows", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def number(ty, text):
    return float(text) if ty[0] == "f" else int(text)


def test_every_row(arch, tmp_path):
    module = kernels(tmp_path / "arithmetic_rows.py")
    wrong = []
    for k, (ty, a, b, expression, result) in enumerate(rows()):
        wanted = number(result_type(expression, ty), result)
        given = getattr(module, f"given{k}")(number(ty, a), number(ty, b))
        known = getattr(module, f"known{k}")()
        for how, found in (("from arguments", given), ("from constants", known)):
            same = math.isnan(found) if math.isnan(wanted) else found == wanted
            if not same:
                wrong.append(f"{ty} a={a} b={b} {expression} {how}: {found}, not {wanted}")
    assert not wrong, "\n".join(wrong)
    assert sum(1 for _ in rows()) > 70


def test_failures_in_debug_mode(debug):
    @ti.kernel
    def divide(a: ti.i32, b: ti.i32) -> ti.i32:
        return a // b

    @ti.kernel
    def power(a: ti.i32, b: ti.i32) -> ti.i32:
        return a**b

    with pytest.raises(ti.AerogelZeroDivisionError):
        divide(7, 0)
    with pytest.raises(ti.AerogelArithmeticError):
        power(2, -1)
    assert divide(7, 2) == 3


def test_wide_ranges(arch):
    @ti.kernel
    def run(begin: ti.i64, end: ti.i64) -> ti.i64:
        total = ti.i64(0)
        for i in range(begin, end):
            total += i - begin
        return total

    @ti.kernel
    def boxes(begin: ti.i64) -> ti.i64:
        total = ti.i64(0)
        for i, j in ti.ndrange((begin, begin + 3), 4):
            total += i * j
        return total

    @ti.kernel
    def nothing(begin: ti.i32, end: ti.i32) -> ti.i32:
        n = 0
        for i in range(begin, end):
            n += 1
        return n

    far = 2**40
    assert run(far, far + 10) == 45
    assert run(-far - 3, -far) == 3
    assert boxes(far) == 6 * (3 * far + 3)
    assert nothing(5, 5) == nothing(5, -5) == nothing(2**31 - 1, -(2**31)) == 0
    assert nothing(2**31 - 3, 2**31 - 1) == 2
