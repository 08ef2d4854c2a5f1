#!/usr/bin/env python3
"""Writes the table of the README from result files: readme_table.py a.json b.json ... (later files replace earlier ones).

Ratios are medians over rounds of Taichi's wall time by Aerogel's, with their quartiles."""

import json
import pathlib
import sys

NAMES = {"b01_stream": "triad", "b02_stencil": "stencil", "b03_reduce": "reduction", "b04_nbody": "n-body", "b05_julia": "Julia set",
         "b06_mpm": "MPM", "b07_sparse": "sparse tree", "b08_levelset": "level set",
         "b09_cg": "conjugate gradient", "b11_life": "life", "b12_matmul": "naive matrix product", "b13_launch": "launch",
         "b14_pyaccess": "from Python", "b15_compile": "to the first result", "b16_sort_scan": "sort, scan", "b17_histogram": "histogram",
         "b18_svd3": "SVD 3x3", "b19_math": "exp, sin, sqrt", "b20_sparse_mpm": "sparse MPM", "b21_quant": "quantised fields"}
rows = {}
for name in sys.argv[1:]:
    for r in json.load(open(name)):
        rows[r["bench"], r["case"]] = r
out = ["| program | case | Taichi ms | Aerogel ms | times faster [quartiles] | on ndarrays |", "|---|---|---|---|---|---|"]
for (bench, case), r in sorted(rows.items()):
    i = r["impls"]
    if "_warm" in case or not all(i.get(k, {}).get("samples_ms") for k in ("taichi", "aerogel")):
        continue
    t, a, n = i["taichi"], i["aerogel"], i.get("aerogel:nd", {})
    each = lambda d: f"{d['us_per_call']:.2g} us a call" if d.get("us_per_call") else f"{d['median_ms']:.3g}"
    nd = f"{t['median_ms'] / n['median_ms']:.1f}" if n.get("samples_ms") else ""
    out.append(f"| {NAMES.get(bench, bench)} | {case} | {each(t)} | {each(a)} | **{a['ratio']:.2f}** [{a['q1']:.2f}..{a['q3']:.2f}]{'' if a['ok'] else ' DIFFERS'} | {nd} |")
readme = pathlib.Path(__file__).parent.parent / "README.md"
text = readme.read_text()
head, rest = text.split("<!-- bench:begin -->")
tail = rest.split("<!-- bench:end -->")[1]
intro = ("Against `taichi==1.7.4` on the same programs (`benches/programs`), interleaved, on 2 cores of an AMD EPYC with AVX2; `make bench` measures\n"
         "this machine (`make bench ARGS=\"-o out.json\"`, then `benches/readme_table.py out.json`). The machine was shared: trust ratios.\n\n")
readme.write_text(head + "<!-- bench:begin -->\n" + intro + "\n".join(out) + "\n<!-- bench:end -->" + tail)
