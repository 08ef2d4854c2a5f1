"""Compile time, each sample in a fresh process.  import / init; hello = whole process from python start to the first
result; trivial, p2g3d (27 unrolled nodes), stmts500, svd3 = first call of that kernel in a process that already ran another one,
cold (no offline cache); *_warm = the same with a filled offline cache; *_grad = first call of the gradient of that kernel, which
has been called before (its ratio to the kernel's own first call is what a gradient costs to compile).  Peers: compiling the equal C++ function (g++ -O3),
numba (p2g3d in C++: the whole substep of b06)."""
import json, sys, tempfile, time
from common import *
FIRST = ("trivial", "p2g3d", "stmts500", "svd3", "march", "trivial_grad", "p2g3d_grad", "march_grad")
CASES = {c: dict(tol=1) for c in ("import", "init", "hello", *FIRST, "hello_warm", "trivial_warm", "p2g3d_warm", "stmts500_warm", "svd3_warm")}
STM = "\n".join(f"        a{i % 16} = a{(i * 7 + 3) % 16} * {1 + i / 1000:.3f} + a{(i * 5 + 1) % 16} * b" for i in range(500))
ARGS = ", ".join(f"a{i}" for i in range(16))
TI = f'''
import time, sys, os, json; t0 = time.perf_counter()
import importlib; ti = importlib.import_module(os.environ["TI_MODULE"]); t1 = time.perf_counter()
ti.init(arch=ti.cpu, log_level=ti.ERROR, offline_cache=sys.argv[1] == "1", offline_cache_file_path=sys.argv[2], cpu_max_num_threads=2); t2 = time.perf_counter()
n = 32; npart = 64
g = dict(needs_grad=any(f.endswith("_grad") for f in sys.argv[3:]))
x, y = ti.field(ti.f32, 1024, **g), ti.field(ti.f32, 1024, **g)
px, pv = ti.Vector.field(3, ti.f32, npart, **g), ti.Vector.field(3, ti.f32, npart, **g)
C = ti.Matrix.field(3, 3, ti.f32, npart, **g); J = ti.field(ti.f32, npart, **g)
gv, gm = ti.Vector.field(3, ti.f32, (n, n, n), **g), ti.field(ti.f32, (n, n, n), **g)
@ti.kernel
def warmup():
    for i in x: x[i] = i * 1.5
@ti.kernel
def trivial():
    for i in x: x[i] = x[i] * 2.0 + 1.0
@ti.kernel
def p2g3d():
    for p in px:
        Xp = px[p] * 32.0
        base = ti.cast(Xp - 0.5, ti.i32)
        fx = Xp - base
        w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]
        affine = ti.Matrix.identity(ti.f32, 3) * (-0.1 * (J[p] - 1)) + 0.5 * C[p]
        for o in ti.static(ti.grouped(ti.ndrange(3, 3, 3))):
            weight = w[o[0]][0] * w[o[1]][1] * w[o[2]][2]
            gv[base + o] += weight * (0.5 * pv[p] + affine @ ((o - fx) / 32.0))
            gm[base + o] += weight * 0.5
@ti.kernel
def stmts500():
    for i in x:
        b = x[i]
        {"; ".join(f"a{i} = b + {i}.0" for i in range(16))}
{STM}
        x[i] = {" + ".join(f"a{i}" for i in range(16))}
@ti.kernel
def march():
    for i in x:
        t, v = 0.0, x[i]
        while t < 1.0:
            t += 0.05 + 0.02 * ti.sin(v)
            v = v * 0.98 + 0.01 * t
        y[i] = v + t
R = ti.Matrix.field(3, 3, ti.f32, npart)
@ti.kernel
def svd3():
    for p in C:
        U, S, V = ti.svd(C[p], ti.f32)
        R[p] = U @ V.transpose(); J[p] = S.trace()
r = dict(IMPORT=t1 - t0, init=t2 - t1)
t = time.perf_counter(); warmup(); ti.sync(); r["hello"] = 0
for f in sys.argv[3:]:
    k = globals()[f.removesuffix("_grad")]
    if f.endswith("_grad"): k(); ti.sync(); k = k.grad
    t = time.perf_counter(); k(); ti.sync(); r[f] = time.perf_counter() - t
r["import"] = r.pop("IMPORT"); print("RESULT" + json.dumps(r))
'''
NB = f'''
import time, sys, json; t0 = time.perf_counter()
import numba, numpy as np; t1 = time.perf_counter()
x = np.zeros(1024, np.float32)
opt = dict(parallel=True, fastmath=True, cache=sys.argv[1] == "1")
@numba.njit(**opt)
def warmup(x):
    for i in numba.prange(x.size): x[i] = i * 1.5
@numba.njit(**opt)
def trivial(x):
    for i in numba.prange(x.size): x[i] = x[i] * 2.0 + 1.0
@numba.njit(**opt)
def stmts500(x):
    for i in numba.prange(x.size):
        b = x[i]
        {"; ".join(f"a{i} = b + {i}.0" for i in range(16))}
{STM}
        x[i] = {" + ".join(f"a{i}" for i in range(16))}
r = dict(init=0.0); r["import"] = t1 - t0
warmup(x); r["hello"] = 0
for f in sys.argv[3:]:
    t = time.perf_counter(); globals()[f](x); r[f] = time.perf_counter() - t
print("RESULT" + json.dumps(r))
'''
MPM = open(os.path.join(HERE, "programs", "b06_mpm.py")).read().split('SRC = r"""')[1].split('"""')[0]    # whole substep: p2g, grid, g2p
CPP = {"p2g3d": "#include <cmath>\n#include <omp.h>\nconstexpr int D=3,PRIV=0;" + MPM, "trivial": 'extern "C" void f(float*x,long n){\n#pragma omp parallel for simd\nfor(long i=0;i<n;i++) x[i]=x[i]*2+1;}',
       "stmts500": 'extern "C" void f(float*x,long n){\n#pragma omp parallel for simd\nfor(long i=0;i<n;i++){ float b=x[i]; float ' + ",".join(f"a{i}=b+{i}" for i in range(16)) + ";" + STM.replace("\n", ";") + "; x[i]=" + "+".join(f"a{i}" for i in range(16)) + ";}}"}


def script(name, text):
    os.makedirs(CACHE, exist_ok=True)
    path = os.path.join(CACHE, f"{name}_{os.environ.get('TI_MODULE', 'x')}_compile.py")
    open(path, "w").write(text)

    def once(case, cache, d):
        k = case.replace("_warm", "")
        todo = [k] if k in FIRST else []
        t = time.perf_counter()
        out = subprocess.run([sys.executable, path, str(int(cache)), d, *todo], capture_output=True, text=True, env=dict(os.environ, NUMBA_CACHE_DIR=d))
        wall = time.perf_counter() - t
        if "RESULT" not in out.stdout: raise RuntimeError(out.stderr[-300:])
        return wall if k == "hello" else float(json.loads(out.stdout.split("RESULT")[1])[k])
    return once


def sampled(case, once):
    d = tempfile.mkdtemp(prefix="bench_cache")
    warm = case.endswith("_warm")
    if warm: once(case, True, d)
    return lambda: once(case, warm, d), lambda: [1]


@impl("ti")
def _(ti, case):
    if case == "march_grad" and ti.__name__ == "taichi": raise Skip
    return sampled(case, script("ti", TI))


@impl("cpp")
def _(case):
    if case not in CPP: raise Skip

    def run():
        p = os.path.join(CACHE, "c.cpp")
        open(p, "w").write(CPP[case])
        subprocess.run(f"{os.environ['BENCH_CXX']} -std=c++20 -O3 -march=native -ffast-math -fopenmp {os.environ.get('BENCH_CLANG_OMP', '') if 'clang' in os.environ['BENCH_CXX'] else ''} -c -fPIC {p} -o {p}.o", shell=True, check=True)
    return run, lambda: [1]


@impl("numba")
def _(case):
    if any(k in case for k in ("p2g3d", "svd3", "march", "_grad")) or case == "init": raise Skip
    return sampled(case, script("nb", NB))
