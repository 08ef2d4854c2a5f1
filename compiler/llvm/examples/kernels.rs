//! Times of generated code, from lowered IR text: `cargo run --release -p aerogel-llvm --example kernels [-- name]`.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use aerogel_base::Scalar;
use aerogel_ir::parse_module;
use aerogel_llvm::{Jit, OptLevel, compile, target};
use aerogel_runtime::cpu::{CpuDevice, Pool};
use aerogel_runtime::{Args, Buffer, Device, Launch, TreeMemory};

fn main() {
    let wanted = std::env::args().nth(1);
    for (name, text, array) in [
        ("triad", triad(), None),
        ("triad_array", triad_array(), Some(1 << 26)),
        ("stencil2", stencil2(), None),
        ("stencil3", stencil3(), None),
        ("sum", sum("atomic_add", "0.0"), Some(1 << 26)),
        ("max", sum("atomic_max", "-inf"), Some(1 << 26)),
        ("nbody", nbody(), None),
        ("maths", maths(), Some(1 << 23)),
        ("empty", empty(), None),
    ] {
        if wanted.as_ref().is_none_or(|w| w == name) {
            run(name, &text, array);
        }
    }
}

#[expect(clippy::print_stdout, reason = "a program that reports")]
fn run(name: &str, text: &str, array: Option<usize>) {
    let module = parse_module(text).expect("the text is valid");
    let compiled = compile(&module, &target::host(), OptLevel(3), true);
    let compile_time = (0..5)
        .map(|_| {
            let begin = Instant::now();
            compile(&module, &target::host(), OptLevel(3), false);
            begin.elapsed()
        })
        .min()
        .expect("there are five");
    if std::env::var_os("SHOW").is_some() {
        println!(
            "{}\n{}",
            compiled.llvm_ir.unwrap(),
            compiled.assembly.unwrap()
        );
    }
    let device = CpuDevice::new(Arc::new(Pool::with_all_cores()), Box::new(Jit));
    let kernel = device.load(&compiled.code).expect("the object is valid");
    let trees = module.env.trees.values();
    let roots: Vec<TreeMemory> = trees
        .map(|tree| TreeMemory::new(tree.clone(), 0).expect("there is memory"))
        .collect();
    for root in roots.iter().map(TreeMemory::bytes) {
        // Nothing but positive numbers, so that no operation meets special cases.
        root.fill(0, root.len(), 0x3d).expect("in range");
    }
    let roots: Vec<&TreeMemory> = roots.iter().collect();
    let buffers: Vec<Buffer> = (0..compiled.code.args.len() / 2)
        .map(|_| Buffer::zeroed(array.unwrap_or(1) * 4).expect("there is memory"))
        .collect();
    let mut args = Args::new();
    for buffer in &buffers {
        buffer.fill(0, buffer.len(), 0x3d).expect("in range");
        args.array(buffer, &[array.unwrap_or(1)], 4).expect("fits");
    }
    let sink = Mutex::new(String::new());
    let mut results = [0; 1];
    let mut times = Vec::new();
    let repeats = if name == "empty" { 100_000 } else { 1 };
    for _ in 0..12 {
        let begin = Instant::now();
        for _ in 0..repeats {
            kernel
                .launch(Launch {
                    args: &args,
                    roots: &roots,
                    results: &mut results,
                    sink: &sink,
                    seed: 0,
                    most_reserved: u64::MAX,
                    trace: None,
                })
                .expect("nothing fails");
        }
        times.push(begin.elapsed().as_secs_f64() * 1e3 / f64::from(repeats));
    }
    times.sort_by(f64::total_cmp);
    println!(
        "{name}: best {:.5} ms, median {:.5} ms, compiled in {:.1} ms, result {:?}",
        times[0],
        times[6],
        compile_time.as_secs_f64() * 1e3,
        Scalar::from_slot(aerogel_base::ScalarType::F32, results[0]),
    );
}

/// The instructions that make `name` the place of tree 0's place `place` at `index`.
fn at(name: &str, container: u32, place: u32, index: &str) -> String {
    format!(
        "{name}_r: cell<tree0.S0> = root tree0
        {name}_c: container<tree0.S{container}> = child tree0.S{container}, {name}_r
        {name}_l: i64 = linearize tree0.S{container}, [{index}]
        {name}_d: cell<tree0.S{container}> = lookup tree0.S{container}, {name}_c, {name}_l
        {name}: ref<f32> = child tree0.S{place}, {name}_d\n"
    )
}

fn triad() -> String {
    format!(
        "fast_math
        tree0 {{ dense i:67108864 {{ place x: f32 }} dense i:67108864 {{ place y: f32 }} dense i:67108864 {{ place z: f32 }} }}
        kernel @k() {{
            task range {{ lo: i32 = const 0  hi: i32 = const 67108864  yield [lo, hi] }} {{
                each (i: i32) {{
                    {}{}{}
                    a: f32 = load x  b: f32 = load y
                    k: f32 = const 0.5
                    p: f32 = mul b, k
                    s: f32 = add a, p
                    store z, s
                    yield []
                }}
                yield []
            }}
            yield []
        }}",
        at("x", 1, 2, "i"),
        at("y", 3, 4, "i"),
        at("z", 5, 6, "i"),
    )
}

fn triad_array() -> String {
    "fast_math
    kernel @k(x: array<f32, 1>, y: array<f32, 1>, z: array<f32, 1>) {
        task range { lo: i32 = const 0  hi: i32 = array_shape a0, 0  yield [lo, hi] } {
            each (i: i32) {
                x: ref<f32> = array_at a0, [i]
                y: ref<f32> = array_at a1, [i]
                z: ref<f32> = array_at a2, [i]
                a: f32 = load x  b: f32 = load y
                k: f32 = const 0.5
                p: f32 = mul b, k
                s: f32 = add a, p
                store z, s
                yield []
            }
            yield []
        }
        yield []
    }"
    .to_owned()
}

fn stencil2() -> String {
    format!(
        "fast_math
        tree0 {{ dense i:4096 j:4096 {{ place x: f32 }} dense i:4096 j:4096 {{ place y: f32 }} }}
        kernel @k() {{
            task range {{ lo: i32 = const 1  hi: i32 = const 4095  yield [lo, hi, lo, hi] }} {{
                each (i: i32, j: i32) {{
                    one: i32 = const 1
                    iu: i32 = sub i, one  id: i32 = add i, one
                    jl: i32 = sub j, one  jr: i32 = add j, one
                    {}{}{}{}{}{}
                    va: f32 = load a  vb: f32 = load b  vc: f32 = load c  vd: f32 = load d
                    ve: f32 = load e
                    s1: f32 = add va, vb
                    s2: f32 = add s1, vc
                    s3: f32 = add s2, vd
                    q: f32 = const 0.2
                    s4: f32 = add s3, ve
                    s5: f32 = mul s4, q
                    store y, s5
                    yield []
                }}
                yield []
            }}
            yield []
        }}",
        at("a", 1, 2, "iu, j"),
        at("b", 1, 2, "id, j"),
        at("c", 1, 2, "i, jl"),
        at("d", 1, 2, "i, jr"),
        at("e", 1, 2, "i, j"),
        at("y", 3, 4, "i, j"),
    )
}

fn stencil3() -> String {
    format!(
        "fast_math
        tree0 {{ dense i:384 j:384 k:384 {{ place x: f32 }} dense i:384 j:384 k:384 {{ place y: f32 }} }}
        kernel @k() {{
            task range {{ lo: i32 = const 1  hi: i32 = const 383  yield [lo, hi, lo, hi, lo, hi] }} {{
                each (i: i32, j: i32, k: i32) {{
                    one: i32 = const 1
                    iu: i32 = sub i, one  id: i32 = add i, one
                    jl: i32 = sub j, one  jr: i32 = add j, one
                    kl: i32 = sub k, one  kr: i32 = add k, one
                    {}{}{}{}{}{}{}{}
                    va: f32 = load a  vb: f32 = load b  vc: f32 = load c  vd: f32 = load d
                    ve: f32 = load e  vf: f32 = load f  vg: f32 = load g
                    s1: f32 = add va, vb
                    s2: f32 = add s1, vc
                    s3: f32 = add s2, vd
                    s4: f32 = add s3, ve
                    s5: f32 = add s4, vf
                    q: f32 = const -6.0
                    s6: f32 = mul vg, q
                    s7: f32 = add s5, s6
                    store y, s7
                    yield []
                }}
                yield []
            }}
            yield []
        }}",
        at("a", 1, 2, "iu, j, k"),
        at("b", 1, 2, "id, j, k"),
        at("c", 1, 2, "i, jl, k"),
        at("d", 1, 2, "i, jr, k"),
        at("e", 1, 2, "i, j, kl"),
        at("f", 1, 2, "i, j, kr"),
        at("g", 1, 2, "i, j, k"),
        at("y", 3, 4, "i, j, k"),
    )
}

fn sum(op: &str, zero: &str) -> String {
    format!(
        "fast_math
        kernel @k(a: array<f32, 1, read>) -> f32 {{
            task serial {{ yield [] }} {{
                z: f32 = const {zero}
                t: ref<f32> = temp_at 0
                store t, z
                yield []
            }}
            task range {{ lo: i32 = const 0  hi: i32 = array_shape a0, 0  yield [lo, hi] }} {{
                acc: ref<f32> = local
                each (i: i32) {{
                    p: ref<f32> = array_at a0, [i]
                    v: f32 = load p
                    old: f32 = {op} acc, v
                    yield []
                }}
                s: f32 = load acc
                t: ref<f32> = temp_at 0
                old: f32 = {op} t, s
                yield []
            }}
            task serial {{ yield [] }} {{
                t: ref<f32> = temp_at 0
                r: f32 = load t
                return [r]
            }}
            yield []
        }}"
    )
}

fn nbody() -> String {
    let load = |c: u32, name: &str, i: &str| {
        format!(
            "{}{name}: f32 = load p{name}\n",
            at(&format!("p{name}"), 1, 2 + c, i)
        )
    };
    format!(
        "fast_math
        tree0 {{ dense i:8192 {{ place x: f32, place y: f32, place z: f32, place ax: f32, place ay: f32, place az: f32 }} }}
        kernel @k() {{
            task range {{ lo: i32 = const 0  hi: i32 = const 8192  yield [lo, hi] }} {{
                each (i: i32) {{
                    {}{}{}
                    zero: i32 = const 0  one: i32 = const 1  n: i32 = const 8192
                    f0: f32 = const 0.0
                    fx: f32, fy: f32, fz: f32 = for zero, n, one, [f0, f0, f0] (j: i32, gx: f32, gy: f32, gz: f32) {{
                        {}{}{}
                        dx: f32 = sub ux, vx
                        dy: f32 = sub uy, vy
                        dz: f32 = sub uz, vz
                        xx: f32 = mul dx, dx
                        yy: f32 = mul dy, dy
                        zz: f32 = mul dz, dz
                        eps: f32 = const 0.0001
                        r1: f32 = add xx, yy
                        r2: f32 = add r1, zz
                        r3: f32 = add r2, eps
                        q: f32 = rsqrt r3
                        q2: f32 = mul q, q
                        q3: f32 = mul q2, q
                        kx: f32 = mul dx, q3
                        ky: f32 = mul dy, q3
                        kz: f32 = mul dz, q3
                        hx: f32 = add gx, kx
                        hy: f32 = add gy, ky
                        hz: f32 = add gz, kz
                        yield [hx, hy, hz]
                    }}
                    {}{}{}
                    store ox, fx
                    store oy, fy
                    store oz, fz
                    yield []
                }}
                yield []
            }}
            yield []
        }}",
        load(0, "vx", "i"),
        load(1, "vy", "i"),
        load(2, "vz", "i"),
        load(0, "ux", "j"),
        load(1, "uy", "j"),
        load(2, "uz", "j"),
        at("ox", 1, 5, "i"),
        at("oy", 1, 6, "i"),
        at("oz", 1, 7, "i"),
    )
}

fn maths() -> String {
    "fast_math
    kernel @k(x: array<f32, 1>, y: array<f32, 1>) {
        task range { lo: i32 = const 0  hi: i32 = array_shape a0, 0  yield [lo, hi] } {
            each (i: i32) {
                x: ref<f32> = array_at a0, [i]
                y: ref<f32> = array_at a1, [i]
                a: f32 = load x
                b: f32 = exp a
                c: f32 = sin b
                d: f32 = sqrt c
                store y, d
                yield []
            }
            yield []
        }
        yield []
    }"
    .to_owned()
}

fn empty() -> String {
    "kernel @k() { task serial { yield [] } { yield [] } yield [] }".to_owned()
}
