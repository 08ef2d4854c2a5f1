"""Protocol shared by all benchmarks (programs/bNN_*.py).

A benchmark file holds
  CASES = {"case": dict(bytes=, flops=, tol=, calls=, roof=)}    the work of ONE run(); all keys optional
        bytes/flops : compulsory traffic / arithmetic, for the share of the physical limit
                      (flops may be a function of the digest of check(), e.g. iteration counts)
        roof        : "triad" (default, STREAM bandwidth) or "read" (read-only bandwidth)
        tol         : allowed error of check() relative to its rms, against the first peer that ran
        calls       : run() makes this many calls -> the table also shows us/call
  @impl("ti") or @impl("ti:variant")     def f(ti, case)   Taichi API, run once per --modules entry
  @impl("cpp") or @impl("cpp:variant")   def f(case)       run once per --cxx compiler
  @impl("numba"|"warp"|"numpy"|"jax"...) def f(case)
An implementation returns (run, check) or (run, check, prep): run() = one timed, completed sample;
check() = numbers compared between implementations after exactly one prep()+run();
prep() = untimed, before every run(); a float returned by run() replaces the measured time.  `raise Skip` where an implementation lacks a case."""
import ctypes, hashlib, os, subprocess
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.environ.get("BENCH_CACHE", os.path.join(HERE, ".cache"))
THREADS = int(os.environ.get("BENCH_THREADS", os.cpu_count()))
QUICK = os.environ.get("BENCH_QUICK") == "1"
IMPLS = {}


class Skip(Exception):
    pass


def impl(name):
    def reg(f):
        IMPLS[name] = f
        return f
    return reg


def size(full, quick=None):
    """Problem size: `full`, or the small one under --quick (correctness only)."""
    return (quick if quick is not None else max(1, full >> 6)) if QUICK else full


def cpp(src, flags=""):
    """Compile C++ source (functions extern "C") with $BENCH_CXX and return a caller: lib(name, *args).
    numpy arrays pass as pointers, int as long, float as float."""
    cxx = os.environ.get("BENCH_CXX", "g++")
    cmd = f"{cxx} -std=c++20 -O3 -march=native -ffast-math -fopenmp -shared -fPIC {flags}"
    if "clang" in cxx:
        cmd += " " + os.environ.get("BENCH_CLANG_OMP", "")
    src = "#include <cmath>\n#include <cstdlib>\n#include <cstring>\n#include <algorithm>\n#include <vector>\n#include <atomic>\n#include <omp.h>\n" + src
    os.makedirs(CACHE, exist_ok=True)
    so = os.path.join(CACHE, hashlib.sha1((cmd + src).encode()).hexdigest()[:16])
    if not os.path.exists(so + ".so"):
        open(so + ".cpp", "w").write(src)
        subprocess.run(f"{cmd} -o {so}.tmp{os.getpid()} {so}.cpp && mv {so}.tmp{os.getpid()} {so}.so", shell=True, check=True)
    lib = ctypes.CDLL(so + ".so")

    def conv(a):
        if isinstance(a, np.ndarray): return ctypes.c_void_p(a.ctypes.data)
        if isinstance(a, int): return ctypes.c_long(a)
        if isinstance(a, float): return ctypes.c_float(a)
        return a

    def call(name, *args, ret=None):
        f = getattr(lib, name)
        f.restype = ret
        return f(*map(conv, args))
    call.lib = lib
    return call


def njit(f=None, **kw):
    import numba
    kw = {"parallel": True, "fastmath": True, **kw}
    return numba.njit(**kw)(f) if f else (lambda g: numba.njit(**kw)(g))


def warp():
    import warp as wp
    wp.config.quiet = True
    wp.config.kernel_cache_dir = os.path.join(CACHE, "warp")
    wp.init()
    wp.set_device("cpu")
    return wp


def digest(x):
    """A few numbers that stand for a result: mean, rms and 61 samples."""
    x = np.asarray(x, np.float64).ravel()
    return [float(x.mean()), float(np.sqrt((x * x).mean()))] + x[:: max(1, x.size // 61)][:61].tolist()


def rng(seed=0):
    return np.random.default_rng(seed)
