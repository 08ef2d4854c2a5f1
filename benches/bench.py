#!/usr/bin/env python3
"""Benchmark runner.  Every (case, implementation) lives in its own process; the runner asks them for
one sample each in turn (A B C A B C ...), so machine noise hits all alike; ratios are medians of the
per-round ratios.  Bandwidth and FLOP peak ("roof") are measured in the same rotation.

  bench.py --list          (BENCH_ARCH=cuda runs the Taichi-API modules on the GPU; the peers stay on the CPU)
  bench.py [-b 01,04] [-c case] [-i ti,cpp,numba] [-m taichi,aerogel] [--cxx g++,clang++-22]
           [-r rounds] [-t threads] [--quick] [-o results.json]"""
import argparse, glob, importlib, json, os, re, statistics as st, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "programs")]


def worker(bench, name, case):
    """Child: set up, one checked run, then one timed sample per line on stdin."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)                                        # library chatter must not disturb the protocol
    say = lambda **k: (out.write(json.dumps(k) + "\n"), out.flush())
    try:
        import common
        mod, _, var = name.partition("|")
        t0 = time.perf_counter()
        m = importlib.import_module(bench)
        key = var or mod
        if key.startswith("ti"):
            ti = importlib.import_module(os.environ["TI_MODULE"])
            t1 = time.perf_counter()
            arch = os.environ.get("BENCH_ARCH", "cpu")
            ti.init(arch=getattr(ti, arch), offline_cache=False, log_level=ti.ERROR, enable_fallback=arch == "cpu",
                    cpu_max_num_threads=common.THREADS, **getattr(m, "TI_INIT", {}))
            r = common.IMPLS[key](ti, case)
        else:
            t1 = time.perf_counter()
            r = common.IMPLS[key](case)
        run, check, prep = (*r, None)[:3] if len(r) == 2 else r
        if prep: prep()
        t2 = time.perf_counter()
        run()
        t3 = time.perf_counter()
        say(ok=True, digest=common.digest(check()), import_s=t1 - t0, setup_s=t2 - t1, first_s=t3 - t2)
    except common.Skip:
        return say(ok=False, skip=True)
    except Exception as e:
        import traceback
        traceback.print_exc()
        return say(ok=False, error=f"{type(e).__name__}: {e}"[:300])
    for _ in sys.stdin:
        if prep: prep()
        t, c = time.perf_counter(), time.process_time()
        r = run()
        t, c = time.perf_counter() - t, time.process_time() - c
        say(t=r if isinstance(r, float) else t, c=c)


class Proc:
    def __init__(self, bench, name, case, args, module=None, cxx=None):
        env = dict(os.environ, BENCH_THREADS=str(args.threads), OMP_NUM_THREADS=str(args.threads),
                   NUMBA_NUM_THREADS=str(args.threads), OPENBLAS_NUM_THREADS=str(args.threads),
                   BENCH_QUICK="1" if args.quick else "0", PYTHONUNBUFFERED="1", OMP_WAIT_POLICY=os.environ.get("OMP_WAIT_POLICY", "passive"), TI_LOG_LEVEL="error")
        env.update({"TI_MODULE": module} if module else {}, **({"BENCH_CXX": cxx} if cxx else {}))
        self.ts, self.cs, self.log = [], [], open(os.path.join(args.logs, f"{bench}.{case}.{name}".replace("/", "_").replace("|", "_")), "w+")
        self.p = subprocess.Popen([sys.executable, os.path.join(HERE, "bench.py"), "--worker", bench, name, case],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, env=env)
        line = self.p.stdout.readline()
        self.info = json.loads(line) if line else {"ok": False, "error": f"died (exit {self.p.wait()})"}

    def sample(self):
        self.p.stdin.write("\n"); self.p.stdin.flush()
        line = self.p.stdout.readline()
        if not line:
            self.info = {"ok": False, "error": "died while sampling"}
            return None
        d = json.loads(line)
        self.ts.append(d["t"]); self.cs.append(d["c"])
        return d["t"]

    def close(self):
        try: self.p.stdin.close()
        except OSError: pass
        try: self.p.wait(20)
        except subprocess.TimeoutExpired: self.p.kill()


def expand(m, args):
    """Names of the implementations to run: (label, key for worker, module, compiler)."""
    want = args.impl.split(",") if args.impl else None
    for k in m:
        base, _, v = k.partition(":")
        if want and not any(w in (k, base) for w in want):
            continue
        tail = ":" + v if v else ""
        if base == "ti":
            for mod in args.modules.split(","): yield mod + tail, f"{mod}{tail}|{k}", mod, None
        elif base == "cpp":
            for c in args.cxx.split(","): yield re.sub(r"\+\+(-\d+)?|/.*/", "", c).replace("g", "gcc", c.startswith("g")) + tail, f"{c}{tail}|{k}", None, c
        else:
            yield k, k, None, None


def agree(a, b, tol):
    rms = max(abs(b[1]), 1e-30)
    return max(abs(x - y) for x, y in zip(a, b)) <= tol * rms if len(a) == len(b) else False


def one(bench, case, spec, impls, args):
    roof = Proc("b00_roof", "cpp", "roof", args, cxx=args.cxx.split(",")[0]) if not args.quick else None
    if roof and not roof.info["ok"]: sys.exit(f"roof benchmark failed, see {roof.log.name}")
    procs = {}
    for label, key, mod, cxx in impls:
        p = procs[label] = Proc(bench, key, case, args, mod, cxx)
        if not p.info["ok"]:
            p.close()
            if not p.info.get("skip"): print(f"   ! {label}: {p.info.get('error')}", flush=True)
            if p.info.get("skip"): del procs[label]
    live = {k: p for k, p in procs.items() if p.info["ok"]}
    ref = next((k for k in live if not any(k.partition(":")[0] == m for m in args.modules.split(","))), next(iter(live), None))
    if ref is None: return None
    tol = spec.get("tol", 1e-4)
    t_start, r, roofs = time.time(), 0, []
    while r < args.rounds and (r < 3 or time.time() - t_start < args.budget):
        order = list(live)
        order = order[r % len(order):] + order[:r % len(order)]
        if roof:
            roofs.append(roof.sample() and json.loads(open(roof_file(args)).read()))
        for k in order:
            if live[k].info["ok"]: live[k].sample()
        r += 1
    for p in [*procs.values(), *([roof] if roof else [])]: p.close()
    med = lambda key: st.median(x[key] for x in roofs) if roofs else None
    bw, rd, fl = med("triad"), med("read"), med("flops")
    fl_n = spec.get("flops")
    if callable(fl_n): fl_n = fl_n(live[ref].info["digest"])
    lim = max((spec.get("bytes") or 0) / (rd if spec.get("roof") == "read" else bw), (fl_n or 0) / fl) if roofs else 0
    base = next((k for k in live if k == args.modules.split(",")[0]), None) or next(iter(live))
    res = dict(machine=machine(args.threads), bench=bench, case=case, ref=ref, base=base, triad_GBs=bw and bw / 1e9, read_GBs=rd and rd / 1e9, peak_GFLOPs=fl and fl / 1e9, impls={})
    print(f"\n== {bench} / {case}   ({r} rounds" + (f"; triad {bw/1e9:.1f} GB/s, read {rd/1e9:.1f} GB/s, {fl/1e9:.0f} GFLOP/s" if roofs else "") + ")")
    print(f"   {'impl':<16}{'median ms':>11}{'min ms':>10}{'cpu ms':>10}{'x vs '+base:>14}{'[q1..q3]':>16}{'% limit':>9}{'GB/s':>8}{'GFLOP/s':>9}{'first ms':>10}  check")
    for k, p in procs.items():
        if not p.info["ok"] or not p.ts:
            res["impls"][k] = dict(error=p.info.get("error")); print(f"   {k:<16} FAILED {p.info.get('error')}"); continue
        ratios = sorted(b / t for b, t in zip(live[base].ts, p.ts))
        m, ok = st.median(p.ts), agree(p.info["digest"], live[ref].info["digest"], tol)
        q = lambda f: ratios[min(len(ratios) - 1, int(f * len(ratios)))]
        d = res["impls"][k] = dict(median_ms=m * 1e3, min_ms=min(p.ts) * 1e3, cpu_ms=st.median(p.cs) * 1e3, ratio=st.median(ratios), q1=q(.25), q3=q(.75), first_ms=p.info["first_s"] * 1e3,
                                   limit=lim / m if lim else None, ok=ok, samples_ms=[t * 1e3 for t in p.ts], digest=p.info["digest"][:4],
                                   us_per_call=m / spec["calls"] * 1e6 if spec.get("calls") else None)
        print(f"   {k:<16}{d['median_ms']:>11.3f}{d['min_ms']:>10.3f}{d['cpu_ms']:>10.2f}{d['ratio']:>13.2f}x{'[%.2f..%.2f]' % (d['q1'], d['q3']):>16}"
              f"{'%8.1f%%' % (100 * d['limit']) if d['limit'] else '':>9}{'%.1f' % (spec['bytes'] / m / 1e9) if spec.get('bytes') else '':>8}"
              f"{'%.1f' % (fl_n / m / 1e9) if fl_n else '':>9}{d['first_ms']:>10.1f}  {'ok' if ok else 'DIFFERS ' + str([round(v, 6) for v in d['digest'][:3]])}"
              + (f"  {d['us_per_call']:.3f} us/call" if d["us_per_call"] else ""), flush=True)
    return res


def machine(threads):
    """The processor and how many of its threads are used, as a reader wants to know them."""
    try: model = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo").read())[1].strip()
    except (OSError, TypeError): model = os.uname().machine
    return f"{threads} threads of an {model}" if re.match("[AEIOaeio]", model) else f"{threads} threads of a {model}"


def roof_file(args):
    return os.path.join(args.logs, "roof.json")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--list", action="store_true")
    ap.add_argument("-b", "--bench", help="comma-separated prefixes or substrings of file names")
    ap.add_argument("-c", "--case")
    ap.add_argument("-i", "--impl", help="e.g. ti,cpp,numba or ti:nd")
    ap.add_argument("-m", "--modules", default=os.environ.get("TI_MODULE", "taichi"))
    ap.add_argument("--cxx", default=os.environ.get("BENCH_CXX", "g++"))
    ap.add_argument("-r", "--rounds", type=int, default=9)
    ap.add_argument("--budget", type=float, default=20, help="seconds of sampling per case (at least 3 rounds)")
    ap.add_argument("-t", "--threads", type=int, default=os.cpu_count())
    ap.add_argument("--quick", action="store_true", help="tiny sizes: correctness only")
    ap.add_argument("-o", "--out")
    args = ap.parse_args()
    args.logs = os.path.join(HERE, ".cache", "logs"); os.makedirs(args.logs, exist_ok=True)
    os.environ["BENCH_ROOF"] = roof_file(args)
    os.environ["BENCH_QUICK"] = "1" if args.quick else "0"
    import common
    results = []
    for f in sorted(glob.glob(os.path.join(HERE, "programs", "b[0-9]*.py"))):
        name = os.path.basename(f)[:-3]
        if name == "b00_roof" or (args.bench and not any(name.startswith("b" + w) or w in name for w in args.bench.split(","))):
            continue
        common.IMPLS.clear()
        m = importlib.import_module(name)
        impls = dict(common.IMPLS)
        if args.list:
            print(f"{name:<18} cases {','.join(m.CASES):<40} impls {','.join(impls)}"); continue
        for case, spec in m.CASES.items():
            if args.case and case not in args.case.split(","): continue
            r = one(name, case, spec, list(expand(impls, args)), args)
            if r: results.append(r)
            if args.out: json.dump(results, open(args.out, "w"), indent=1)
    bad = [f"{r['bench']}/{r['case']}/{k}" for r in results for k, d in r["impls"].items() if not d.get("ok")]
    if bad: print("\nNOT VERIFIED:", ", ".join(bad)); sys.exit(1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]: worker(*sys.argv[2:5])
    else: main()
