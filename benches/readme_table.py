#!/usr/bin/env python3
"""Writes the README's table of speed and the page docs/benchmarks.md from files of results, as `bench.py -o` makes them.

    readme_table.py a.json b.json ... [--machine "2 cores of an AMD EPYC 7B13"]

Later files replace rows of earlier ones. The README has the rows of SHOWN and every one in which Aerogel is slower than Taichi; the
page has all. A ratio is the median over rounds of one time by another; "fastest other" is the fastest of the other
implementations (C++ by hand through clang or gcc, NumPy, numba, jax, warp, ...) that computes the same."""

import argparse
import json
import pathlib
import re
import statistics

ROOT = pathlib.Path(__file__).parent.parent
# What is measured, by benchmark and case; `*` for the cases that are not named.
NAMES = {
    ("b01_stream", "64M"): "triad, 64 million numbers",
    ("b01_stream", "256k"): "triad, 256 thousand numbers, a call",
    ("b02_stencil", "2d"): "stencil of 5 points",
    ("b02_stencil", "3d"): "stencil of 7 points in 3D",
    ("b03_reduce", "sum_f32"): "sum of f32",
    ("b03_reduce", "sum_f64"): "sum of f64",
    ("b03_reduce", "max_f32"): "maximum of f32",
    ("b04_nbody", "*"): "n-body accelerations",
    ("b05_julia", "*"): "Julia set",
    ("b06_mpm", "2d"): "material point method, 2D",
    ("b06_mpm", "3d"): "material point method, 3D",
    ("b07_sparse", "activate_blob"): "sparse tree: activate, clustered",
    ("b07_sparse", "activate_random"): "sparse tree: activate, scattered",
    ("b07_sparse", "deactivate_blob"): "sparse tree: deactivate, clustered",
    ("b07_sparse", "deactivate_random"): "sparse tree: deactivate, scattered",
    ("b07_sparse", "sum_blob"): "sparse tree: sum, clustered",
    ("b07_sparse", "sum_random"): "sparse tree: sum, scattered",
    ("b08_levelset", "*"): "sparse level set, Laplacian",
    ("b09_cg", "1024"): "conjugate gradients on 1024², an iteration",
    ("b09_cg", "128"): "conjugate gradients on 128², an iteration",
    ("b10_autodiff", "fwd"): "masses and springs, a call",
    ("b10_autodiff", "grad"): "masses and springs with gradients, a call",
    ("b11_life", "dense"): "game of life",
    ("b11_life", "bitmasked"): "game of life, bitmasked",
    ("b12_matmul", "1024"): "naive matrix product, 1024²",
    ("b12_matmul", "512"): "naive matrix product, 512²",
    ("b13_launch", "empty"): "call of an empty kernel",
    ("b13_launch", "args10"): "call with 10 arguments",
    ("b13_launch", "ndarray"): "call with an array",
    ("b13_launch", "loop16"): "call with a loop of 16",
    ("b13_launch", "return"): "call that returns a number",
    ("b14_pyaccess", "get"): "`x[i]` from Python",
    ("b14_pyaccess", "set"): "`x[i] = 1` from Python",
    ("b14_pyaccess", "get_vec3"): "`v[i]` of a vector from Python",
    ("b14_pyaccess", "fill"): "`x.fill(1)`, 16 million",
    ("b14_pyaccess", "to_numpy"): "`to_numpy()`, 16 million",
    ("b14_pyaccess", "to_numpy_vec3"): "`to_numpy()` of vectors, 4 million",
    ("b14_pyaccess", "from_numpy"): "`from_numpy()`, 16 million",
    ("b15_compile", "import"): "import",
    ("b15_compile", "init"): "`ti.init()`",
    ("b15_compile", "hello"): "from start to the first result",
    ("b15_compile", "trivial"): "first call of a small kernel",
    ("b15_compile", "p2g3d"): "first call: 27 unrolled nodes",
    ("b15_compile", "stmts500"): "first call: 500 statements",
    ("b15_compile", "svd3"): "first call: an SVD",
    ("b16_sort_scan", "sort"): "bitonic sort in kernels, a pass",
    ("b16_sort_scan", "scan"): "prefix sums in kernels, 16 million",
    ("b17_histogram", "64"): "histogram of 64 bins",
    ("b17_histogram", "64k"): "histogram of 64 thousand bins",
    ("b17_histogram", "16M"): "histogram of 16 million bins",
    ("b17_histogram", "1k keys"): "histogram of a thousand keys",
    ("b18_svd3", "*"): "SVD of 3 × 3 matrices",
    ("b19_math", "*"): "exp, sin, sqrt",
    ("b20_sparse_mpm", "p2g"): "sparse material point method: scatter",
    ("b20_sparse_mpm", "substep"): "sparse material point method: a step",
    ("b21_quant", "particles"): "quantised particles",
    ("b21_quant", "life"): "game of life, 32 cells in a word",
    ("b22_algorithms", "copy_f32"): "copy of 16 million f32",
    ("b22_algorithms", "sum_f32"): "`reduce_add`, 16 million f32",
    ("b22_algorithms", "sort_i32"): "`parallel_sort`, 16 million i32",
    ("b22_algorithms", "sort_f32"): "`parallel_sort`, 16 million f32",
    ("b22_algorithms", "sort_i64"): "`parallel_sort`, 16 million i64",
    ("b22_algorithms", "sort_pairs"): "`parallel_sort` with values, 16 million",
    ("b22_algorithms", "scan_i32"): "`PrefixSumExecutor`, 16 million i32",
    ("b22_algorithms", "scan_f32"): "`PrefixSumExecutor`, 16 million f32",
    ("b22_algorithms", "scan_f64"): "`PrefixSumExecutor`, 16 million f64",
    ("b23_sparse_solve", "*"): "sparse Cholesky, 97 thousand unknowns",
    ("b24_gradients", "smooth.fwd"): "sin, exp, sqrt of a million numbers",
    ("b24_gradients", "smooth.back"): "sin, exp, sqrt of a million numbers: the gradient",
    ("b24_gradients", "stencil.fwd"): "five points of 1024²",
    ("b24_gradients", "stencil.back"): "five points of 1024²: the gradient",
    ("b24_gradients", "row.fwd"): "a product with a row, 1024²",
    ("b24_gradients", "row.back"): "a product with a row, 1024²: the gradient",
    ("b24_gradients", "march.fwd"): "a `while` of 25 iterations",
    ("b24_gradients", "march.back"): "a `while` of 25 iterations: the gradient",
}
SHOWN = """b01_stream/64M b02_stencil/3d b03_reduce/sum_f32 b04_nbody/* b05_julia/* b06_mpm/3d b07_sparse/sum_blob
b07_sparse/activate_random b09_cg/128 b12_matmul/1024 b13_launch/empty b14_pyaccess/get b14_pyaccess/to_numpy b15_compile/hello
b15_compile/p2g3d b17_histogram/64 b17_histogram/64k b18_svd3/* b20_sparse_mpm/substep b21_quant/particles
b22_algorithms/sort_i32 b10_autodiff/grad b24_gradients/smooth.back b23_sparse_solve/*""".split()
UNITS = [("s", 1000.0), ("ms", 1.0), ("µs", 1e-3), ("ns", 1e-6)]
VARIANTS = {"soa": "structure of arrays", "simd": "explicit vectors", "priv": "private copies"}
OTHERS = {"gcc": "C++ (gcc)", "clang": "C++ (clang)", "numpy": "NumPy", "warp": "Warp", "jax": "JAX"}


def name_of(bench, case):
    known = NAMES.get((bench, case)) or NAMES.get((bench, "*"))
    return known or f"{re.sub('^b[0-9]+_', '', bench).replace('_', ' ')}, {case.replace('_', ' ')}"


def number(x):
    """Three digits, and no exponent."""
    if x >= 1000:
        return f"{float(f'{x:.3g}'):.0f}"
    return f"{x:.3g}" if "e" not in f"{x:.3g}" else f"{x:.6f}".rstrip("0")


def unit_for(*times):
    """The unit, in ms, in which all of a row's times are short to read."""
    least = min(times)
    return next((unit for unit in UNITS if least >= 0.1 * unit[1]), UNITS[-1])


def time_of(result):
    """What is told of an implementation: the time of a call if it is made of many, in ms."""
    return result["us_per_call"] / 1000 if result.get("us_per_call") else result["median_ms"]


def compared(ratio, quartiles=None):
    """A ratio of another's time by ours, in words that say a loss as plainly as a win."""
    rounded = ratio if ratio >= 1 else 1 / ratio
    text = f"{rounded:.0f}×" if rounded >= 10 else f"{rounded:.1f}×"
    word = "as fast" if text == "1.0×" else f"{text} faster" if ratio >= 1 else f"{text} slower"
    return word + (f" ({quartiles[0]:.2f}–{quartiles[1]:.2f})" if quartiles else "")


def against(other, ours):
    """The median over rounds of another's time by ours."""
    pairs = list(zip(other["samples_ms"], ours["samples_ms"]))
    return statistics.median(a / b for a, b in pairs)


def row_of(result, full):
    """The cells of a row; none if Aerogel was not measured."""
    impls = {key: i for key, i in result["impls"].items() if i.get("samples_ms")}
    ours, taichi = impls.get("aerogel"), impls.get("taichi")
    if ours is None:
        return None
    others = {key: i for key, i in impls.items() if key.partition(":")[0] not in ("taichi", "aerogel") and i["ok"]}
    best = min(others, key=lambda key: others[key]["median_ms"], default=None)
    times = [time_of(i) for i in (taichi, ours, others.get(best)) if i is not None]
    unit, scale = unit_for(*times)
    shown = lambda i: f"{number(time_of(i) / scale)} {unit}"
    cells = [name_of(result["bench"], result["case"])]
    cells.append("" if taichi is None else shown(taichi))
    cells.append(shown(ours) + ("" if ours["ok"] else " (another result)"))
    if taichi is None:
        cells.append("")
    else:
        cells.append(compared(against(taichi, ours), (ours["q1"], ours["q3"]) if full else None))
    if best is None:
        cells += ["", ""]
    else:
        base, _, variant = best.partition(":")
        cells.append(f"{shown(others[best])}, {OTHERS.get(base, base)}{f', {VARIANTS.get(variant, variant)}' if variant else ''}")
        cells.append(compared(against(others[best], ours)))
    if full:
        arrays = impls.get("aerogel:nd")
        cells.append("" if arrays is None or taichi is None else compared(against(taichi, arrays)))
    return cells


HEAD = ["program", "Taichi", "Aerogel", "Aerogel against Taichi", "fastest other", "Aerogel against it"]


def table(head, rows):
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, ["---"] * len(head), *rows])


def is_shown(result):
    impls = {key: i for key, i in result["impls"].items() if i.get("samples_ms")}
    is_slower = "taichi" in impls and "aerogel" in impls and against(impls["taichi"], impls["aerogel"]) < 0.95
    return is_slower or bool({f"{result['bench']}/{result['case']}", f"{result['bench']}/*"} & set(SHOWN))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+")
    parser.add_argument("--machine", help="what it was measured on, where the results do not say")
    args = parser.parse_args()
    results = {}
    for path in args.results:
        for result in json.loads(pathlib.Path(path).read_text()):
            results[result["bench"], result["case"]] = result
    results = [result for (_, case), result in sorted(results.items()) if "_warm" not in case]
    machines = {result.get("machine") or args.machine for result in results}
    if None in machines:
        parser.error("the results do not say on which machine they were measured: use --machine")
    on = " and ".join(sorted(machines))
    measured = f"Measured on {on}: Aerogel and `taichi==1.7.4` on the same programs, in turn"
    short = [row_of(result, False) for result in results if is_shown(result)]
    intro = (
        f"{measured}.\nThe last two columns compare with the fastest alternative, mostly a loop written by hand in C++. The table has every row in which\n"
        "Aerogel is slower than Taichi; [docs/benchmarks.md](docs/benchmarks.md) has all rows, and how to measure your machine. Times are\n"
        "medians. Comparisons are medians over the rounds in which both ran, one after the other, so they may differ from the quotient of\n"
        "the times.\n\n"
    )
    readme = ROOT / "README.md"
    head, rest = readme.read_text().split("<!-- bench:begin -->")
    tail = rest.split("<!-- bench:end -->")[1]
    text = intro + table(HEAD, [row for row in short if row])
    readme.write_text(f"{head}<!-- bench:begin -->\n{text}\n<!-- bench:end -->{tail}")
    rows = [row for result in results if (row := row_of(result, True))]
    page = (
        "# Benchmarks\n\n"
        f"{measured}, each in a process of its own, one sample of each in turn. A time is the median of\nthe samples; a "
        "comparison is the median over the rounds of the quotient of both times, with its quartiles. The machine may be shared: trust the\n"
        "comparisons more than the times. \"With arrays\" is the same program with `ti.ndarray` in place of fields.\n\n"
        f"{table([*HEAD, 'with arrays, against Taichi'], rows)}\n\n"
        "`make bench ARGS=\"-o out.json\"` measures the machine it runs on, and `python benches/readme_table.py out.json` writes this page "
        "and the table\nof the README.\n"
    )
    (ROOT / "docs" / "benchmarks.md").write_text(page)


if __name__ == "__main__":
    main()
