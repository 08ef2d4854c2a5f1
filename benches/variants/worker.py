"""The process that runs spellings with one library: a line of its input is an order, a line of output the answer."""

import importlib
import importlib.util
import json
import os
import sys
import time

import numpy as np

LEAST_S = 0.001  # A sample lasts at least so long.


class Programs:
    """The programs loaded so far."""

    def __init__(self, module, threads):
        self.ti = importlib.import_module(module)
        self.threads = threads
        self.comp = self.dtype = self.expected = None
        self.inputs, self.loaded = {}, {}

    def start(self, name, sizes, dtype):
        """Begins with a computation on elements of a type; all before is forgotten."""
        from variants import load

        # Constants have the type of the elements.
        self.ti.init(
            arch=self.ti.cpu,
            default_fp=self.ti.f64 if dtype == "f64" else self.ti.f32,
            offline_cache=False,
            cpu_max_num_threads=self.threads,
            log_level=self.ti.ERROR,
        )
        self.comp, self.dtype, self.loaded = load()[name], dtype, {}
        self.inputs = self.comp.inputs(sizes, np.dtype({"f": "float", "i": "int"}[dtype[0]] + dtype[1:]))
        self.expected = np.asarray(self.comp.reference(sizes, **self.inputs), np.float64)
        return {}

    def load(self, number, path):
        """Loads a program, runs it twice and compares with the reference each time."""
        spec = importlib.util.spec_from_file_location(f"spelling_{number}", path)
        module = importlib.util.module_from_spec(spec)
        module.ti, module.np, module.inputs = self.ti, np, self.inputs
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        begin = time.perf_counter()
        module.run()
        self.ti.sync()
        first = time.perf_counter()
        error = self.error(module)
        second = self.once(module.run)
        # What one run has been slow in may have been another process, or code that is compiled then.
        if second > 0.002:
            second = min(second, self.once(module.run), self.once(module.run))
        error = max(error, self.error(module))
        self.loaded[number] = module.run
        wrong = not error <= self.comp.tolerance[self.dtype]
        return {"compile_s": max(0.0, first - begin - second), "second_s": second, "error": error, "wrong": bool(wrong)}

    def error(self, module):
        """The largest difference from the reference, relative to its largest element."""
        expected = self.expected
        found = np.asarray(module.result(), np.float64)
        if found.shape != expected.shape:
            found = found.reshape(expected.shape)
        scale = max(np.abs(expected).max(), 1e-30)
        return float(np.abs(found - expected).max() / scale)

    def once(self, run):
        """Seconds of one run."""
        begin = time.perf_counter()
        run()
        self.ti.sync()
        return time.perf_counter() - begin

    def time(self, numbers):
        """Seconds of one run of each."""
        return {"times": [self.sample(self.loaded[number]) for number in numbers]}

    def sample(self, run):
        """Seconds of one run: the mean of as many as last `LEAST_S`."""
        n_runs, begin = 0, time.perf_counter()
        while True:
            run()
            self.ti.sync()
            n_runs += 1
            took = time.perf_counter() - begin
            if took >= LEAST_S:
                return took / n_runs


def main():
    """Answers orders until its input ends."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # What libraries print must not stand between answers.
    programs = Programs(sys.argv[1], int(sys.argv[2]))
    for line in sys.stdin:
        order = json.loads(line)
        try:
            answer = getattr(programs, order.pop("do"))(**order)
        except Exception as failure:
            text = str(failure).strip().splitlines() or [""]
            answer = {"failure": f"{type(failure).__name__}: {' '.join(text)[:400]}"}
        out.write(json.dumps(answer) + "\n")
        out.flush()


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.path.remove(os.path.dirname(os.path.abspath(__file__)))
    main()
