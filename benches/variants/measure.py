"""Runs the spellings of a computation, one library beside another, and says how they compare."""

import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


class Died(Exception):
    """A worker ended in the midst of an order."""


class Worker:
    """A process that runs spellings with one library."""

    def __init__(self, python, module, threads, log):
        self.python, self.module, self.threads, self.log = python, module, threads, log
        self.process = None

    def ask(self, **order):
        """The answer to an order."""
        if self.process is None:
            command = [self.python, os.path.join(HERE, "worker.py"), self.module, str(self.threads)]
            env = os.environ | {"TI_LOG_LEVEL": "error", "OMP_NUM_THREADS": str(self.threads)}
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, env=env
            )
        try:
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except OSError:
            line = ""
        if not line:
            code = self.process.wait()
            self.process = None
            raise Died(f"the process ended with {code}")
        return json.loads(line)

    def close(self):
        """Ends the process."""
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process = None


class Run:
    """What is known of the spellings of one computation with one library."""

    def __init__(self, worker, comp, sizes, dtype, spellings, folder):
        self.worker, self.spellings = worker, spellings
        self.first = {"name": comp.name, "sizes": sizes, "dtype": dtype}
        self.paths = []
        for number, spelling in enumerate(spellings):
            path = os.path.join(folder, f"{comp.name}_{dtype}_{number}.py")
            with open(path, "w") as file:
                file.write(spelling.source)
            self.paths.append(path)
        self.results = [{} for _ in spellings]
        self.times = [[] for _ in spellings]
        self.resting = set()

    def load(self):
        """Loads all spellings, and says which fail or are wrong."""
        self.worker.ask(do="start", **self.first)
        for number in range(len(self.spellings)):
            self._load(number)

    def _load(self, number):
        try:
            answer = self.worker.ask(do="load", number=number, path=self.paths[number])
        except Died as death:
            answer = {"failure": str(death)}
            self.worker.ask(do="start", **self.first)
            for before in range(number):
                if self.ready(before):
                    self._load(before)
        self.results[number] = answer

    def ready(self, number):
        """Whether the spelling runs."""
        return "second_s" in self.results[number]

    def rest(self, groups):
        """Stops timing what has been twenty times the best of its group from the beginning."""
        for group in groups:
            took = {number: self.results[number]["second_s"] for number in group if self.ready(number)}
            best = min(took.values(), default=0)
            for number, seconds in took.items():
                if seconds > 20 * best and seconds > 0.002:
                    self.resting.add(number)
                    self.times[number].append(seconds)

    def sample(self, numbers):
        """Times spellings once more."""
        numbers = [number for number in numbers if self.ready(number) and number not in self.resting]
        for number, seconds in zip(numbers, self.worker.ask(do="time", numbers=numbers)["times"]):
            self.times[number].append(seconds)

    def seconds(self, number):
        """The least, or `None` where the spelling does not run. Other processes only ever make a sample longer."""
        return min(self.times[number], default=None)

    def best(self, group):
        """The fastest of a group with a right result."""
        timed = [number for number in group if self.times[number]]
        right = [number for number in timed if not self.results[number]["wrong"]]
        return min(right or timed, key=self.seconds, default=None)

    def ratio(self, number, group):
        """The time beside that of the best of the group."""
        best = self.best(group)
        return self.seconds(number) / self.seconds(best) if self.times[number] else None


def groups_of(comp, spellings):
    """Numbers of the spellings that do the same work."""
    groups = {}
    for number, spelling in enumerate(spellings):
        key = tuple(spelling.choice[axis] for axis in comp.apart if axis in spelling.choice)
        groups.setdefault(key, []).append(number)
    return groups


def measure(comp, sizes, spellings, workers, rounds, limit, folder):
    """Records of all spellings: choice, source, seconds, ratio, and beside what the peer takes."""
    records = []
    for dtype in dict.fromkeys(spelling.dtype for spelling in spellings):
        same = [spelling for spelling in spellings if spelling.dtype == dtype]
        runs = [Run(worker, comp, sizes, dtype, same, folder) for worker in workers]
        groups = groups_of(comp, same)
        for run in runs:
            run.load()
            run.rest(groups.values())
        numbers = range(len(same))
        for _ in range(3):
            for _ in range(rounds):
                for run in runs:
                    run.sample(numbers)
            # What looks slow is measured again, beside the best: it may have been interrupted.
            slow = [
                number for group in groups.values() for number in group if (runs[0].ratio(number, group) or 0) > limit
            ]
            numbers = [*slow, *(best for group in groups.values() if (best := runs[0].best(group)) is not None)]
        for key, group in groups.items():
            records += compared(comp, same, runs, key, group)
    return records


def compared(comp, spellings, runs, key, group):
    """Records of the spellings of a group, numbers of `spellings`."""
    own, records = runs[0], []
    best = own.best(group)
    for number in group:
        spelling = spellings[number]
        record = {
            "computation": comp.name,
            "group": list(key),
            "choice": spelling.choice,
            "source": spelling.source,
            "seconds": own.seconds(number),
            "ratio": own.ratio(number, group),
            "best": number == best,
            **own.results[number],
        }
        if len(runs) > 1:
            peer = runs[1]
            record["peer"] = {"seconds": peer.seconds(number), **peer.results[number]}
            if own.ready(number) and peer.ready(number):
                record["peer"]["ratio"] = own.seconds(number) / peer.seconds(number)
        records.append(record)
    return records


def by_axis(records):
    """For each value of each axis: how many spellings, and the median and least of their ratios."""
    values = {}
    for record in records:
        if record.get("ratio"):
            for axis, value in record["choice"].items():
                values.setdefault((axis, value), []).append(record["ratio"])
    rows = [(statistics.median(found), min(found), len(found), axis, value) for (axis, value), found in values.items()]
    return sorted(rows, reverse=True)


def interpreter(option):
    """The Python of the peer."""
    return option or os.environ.get("VARIANTS_PEER_PYTHON") or sys.executable


def has(python, module):
    """Whether a Python can import a module."""
    try:
        return subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0
    except OSError:
        return False
