"""Asks Taichi what the kernels of `tests/python/answers` answer: `python ask.py > answers.json`."""

import json
import os
import sys

os.environ["LANGUAGE_MODULE"] = "taichi"
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "python"))
stdout, sys.stdout = sys.stdout, sys.stderr

import answers as language  # noqa: E402
import taichi as ti  # noqa: E402

answers = {}
for name, case in language.CASES.items():
    ti.init(arch=ti.cpu, log_level=ti.ERROR, offline_cache=False)
    language.fields()
    answers[name] = case()
lines = [f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in answers.items()]
stdout.write("{\n" + ",\n".join(lines) + "\n}\n")
