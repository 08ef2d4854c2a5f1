//! Gradients against finite differences, interpreted and compiled.

use std::sync::atomic::{AtomicU64, Ordering};

use aerogel_compiler::{Arch, Config};
use aerogel_tests::gradients::Pair;

const HEAD: &str = "
    tree0 { dense i:6 { place x: f64, place y: f64, place k: i32 } place s: f64 }
    tree1 { dense i:6 { place gx: f64, place gy: f64, place gk: i32 } place gs: f64 }
    field @x: f64 = tree0 [S2] grad @gx dual @gx
    field @y: f64 = tree0 [S3] grad @gy dual @gy
    field @k: i32 = tree0 [S4]
    field @s: f64 = tree0 [S5] grad @gs dual @gs
    field @gx: f64 = tree1 [S2]
    field @gy: f64 = tree1 [S3]
    field @gs: f64 = tree1 [S5]
";

fn check(kernel: &str) {
    let text = format!("{HEAD}kernel @k() {{\n{kernel}\n}}");
    aerogel_tests::gradients::check(&text);
}

/// A loop over all elements, with `v0` the counter, `v1` the element of `x` and `v2` that of `y`.
fn over_all(body: &str) -> String {
    format!(
        "va: i32 = const 0
        vb: i32 = const 6
        parallel [va], [vb] (v0: i32) {{
            v1: ref<f64> = field_at @x, [v0]
            v2: ref<f64> = field_at @y, [v0]
            vc0: i32 = const 0
            vc1: i32 = const 1
            vc3: i32 = const 3
            vc5: i32 = const 5
            vs: ref<f64> = field_at @s, []
            {body}
            yield []
        }}
        return []"
    )
}

#[test]
fn straight_lines() {
    check(&over_all(
        "v3: f64 = load v1
        v4: f64 = sin v3
        v5: f64 = mul v4, v3
        store v2, v5",
    ));
    check(&over_all(
        "v3: f64 = load v1
        v4: f64 = exp v3
        v5: f64 = div v3, v4
        v6: f64 = atomic_add v2, v5
        v7: f64 = atomic_sub vs, v5",
    ));
}

#[test]
fn carried_values() {
    check(&over_all(
        "v3: ref<f64> = local
        v4: f64 = load v1
        store v3, v4
        for vc0, vc5, vc1, [] (v5: i32) {
            v6: f64 = load v3
            v7: f64 = sin v6
            v8: f64 = add v7, v4
            store v3, v8
            yield []
        }
        v9: f64 = load v3
        store v2, v9",
    ));
}

#[test]
fn unknown_lengths() {
    check(&over_all(
        "v3: ref<f64> = local
        v4: f64 = load v1
        store v3, v4
        v10: ref<i32> = field_at @k, [v0]
        v11: i32 = load v10
        v12: i32 = mul v11, v11
        for vc0, v12, vc1, [] (v5: i32) {
            for v5, v12, vc3, [] (v50: i32) {
                v6: f64 = load v3
                v7: f64 = cos v6
                v8: f64 = add v7, v4
                store v3, v8
                yield []
            }
            v6: f64 = load v3
            v7: f64 = sin v6
            v8: f64 = mul v7, v4
            store v3, v8
            yield []
        }
        v9: f64 = load v3
        store v2, v9",
    ));
}

#[test]
fn exits() {
    check(&over_all(
        "v3: ref<f64> = local
        v4: f64 = load v1
        store v3, v4
        v20: ref<i32> = local
        while [] {
            v21: i32 = load v20
            v22: i32 = const 20
            v23: u1 = lt v21, v22
            yield [v23]
        } {
            v21: i32 = load v20
            v24: i32 = add v21, vc1
            store v20, v24
            v25: u1 = eq v24, vc3
            if v25 {
                continue []
            } {
                yield []
            }
            v6: f64 = load v3
            v7: f64 = sin v6
            v8: f64 = add v7, v4
            store v3, v8
            v26: i32 = const 7
            v27: u1 = gt v24, v26
            if v27 {
                break []
            } {
                yield []
            }
            v28: f64 = load v3
            v29: f64 = mul v28, v4
            store v3, v29
            yield []
        }
        v9: f64 = load v3
        store v2, v9",
    ));
    check(&over_all(
        "v3: ref<f64> = local
        v4: f64 = load v1
        store v3, v4
        v30: i32 = const 100
        for vc0, v30, vc1, [] (v5: i32) {
            v6: f64 = load v3
            v7: f64 = cos v6
            store v3, v7
            v8: u1 = gt v5, v0
            if v8 {
                break []
            } {
                yield []
            }
            yield []
        }
        v9: f64 = load v3
        v10: f64 = atomic_add vs, v9",
    ));
}

/// A serial loop that steps a field, from neighbours and in a branch.
#[test]
fn steps_in_place() {
    check(
        "v0: i32 = const 0
        v1: i32 = const 5
        v2: i32 = const 1
        v3: i32 = const 6
        v4: f64 = const 0.5
        for v0, v1, v2, [] (v5: i32) {
            for v2, v1, v2, [] (v6: i32) {
                v7: i32 = sub v6, v2
                v8: ref<f64> = field_at @x, [v7]
                v9: f64 = load v8
                v10: ref<f64> = field_at @x, [v6]
                v11: f64 = load v10
                v12: f64 = mul v9, v11
                v13: f64 = sin v12
                store v10, v13
                v14: ref<f64> = field_at @y, [v6]
                v15: f64 = mul v13, v11
                v16: f64 = atomic_add v14, v15
                yield []
            }
            v20: ref<f64> = field_at @s, []
            v21: i32 = const 3
            v22: u1 = lt v5, v21
            if v22 {
                v23: f64 = load v20
                v24: ref<f64> = field_at @x, [v5]
                v25: f64 = load v24
                v26: f64 = mul v23, v25
                v27: f64 = cos v26
                store v20, v27
                v28: f64 = mul v27, v4
                store v24, v28
                yield []
            } {
                v29: f64 = load v20
                v30: f64 = mul v29, v29
                store v20, v30
                yield []
            }
            yield []
        }
        return []",
    );
}

/// Each iteration changes elements of its own several times, also in a loop of unknown length.
#[test]
fn chains_in_an_iteration() {
    check(&over_all(
        "v3: f64 = load v1
        v4: f64 = sin v3
        v5: f64 = atomic_mul v2, v4
        v6: f64 = load v2
        store v1, v6
        v7: f64 = atomic_sub v2, v6
        v8: f64 = load v1
        v9: f64 = mul v8, v8
        store v1, v9
        v10: f64 = load v1
        v11: f64 = mul v10, v4
        v12: f64 = atomic_max v2, v11
        v13: f64 = load v2
        v14: f64 = mul v13, v10
        v15: f64 = atomic_add vs, v14",
    ));
    check(&over_all(
        "v10: ref<i32> = field_at @k, [v0]
        v11: i32 = load v10
        v12: i32 = mul v11, v11
        for vc0, v12, vc1, [] (v5: i32) {
            v3: f64 = load v1
            v4: f64 = load v2
            v6: f64 = mul v3, v4
            v7: f64 = sin v6
            store v1, v7
            v8: f64 = mul v7, v3
            v9: f64 = cos v8
            store v2, v9
            yield []
        }",
    ));
}

/// Loops in which iterations overwrite what a loop before has read.
#[test]
fn loops_that_overwrite() {
    check(
        "v0: i32 = const 0
        v1: i32 = const 6
        v2: i32 = const 1
        v3: i32 = const 5
        parallel [v0], [v1] (v4: i32) {
            v5: ref<f64> = field_at @x, [v4]
            v6: f64 = load v5
            v7: f64 = sin v6
            v8: f64 = mul v6, v7
            v9: ref<f64> = field_at @y, [v4]
            store v9, v8
            yield []
        }
        parallel [v2], [v3] (v4: i32) {
            v10: i32 = sub v4, v2
            v11: i32 = add v4, v2
            v12: ref<f64> = field_at @y, [v10]
            v13: f64 = load v12
            v14: ref<f64> = field_at @y, [v11]
            v15: f64 = load v14
            v16: f64 = mul v13, v15
            v5: ref<f64> = field_at @x, [v4]
            store v5, v16
            yield []
        }
        v20: ref<f64> = field_at @s, []
        parallel [v0], [v1] (v4: i32) {
            v5: ref<f64> = field_at @x, [v4]
            v6: f64 = load v5
            v7: f64 = mul v6, v6
            v8: f64 = atomic_add v20, v7
            yield []
        }
        return []",
    );
}

#[test]
fn branches() {
    check(&over_all(
        "v4: f64 = load v1
        v5: u1 = gt v0, vc3
        v6: f64 = if v5 {
            v7: f64 = mul v4, v4
            yield [v7]
        } {
            v7: f64 = sin v4
            v8: f64 = exp v7
            yield [v8]
        }
        v9: f64 = mul v6, v6
        if v5 {
            store v2, v9
            yield []
        } {
            v10: f64 = atomic_add v2, v9
            yield []
        }",
    ));
}

#[test]
fn local_arrays() {
    check(&over_all(
        "v3: ref<vec<3, f64>> = local
        v4: f64 = load v1
        for vc0, vc5, vc1, [] (v5: i32) {
            v6: i32 = mod v5, vc3
            v7: ref<f64> = elem_ref v3, [v6]
            v8: f64 = load v7
            v9: f64 = add v8, v4
            v10: f64 = sin v9
            store v7, v10
            v11: i32 = add v5, vc1
            v12: i32 = mod v11, vc3
            v13: ref<f64> = elem_ref v3, [v12]
            v14: f64 = load v13
            v15: f64 = mul v14, v10
            v16: f64 = add v15, v4
            store v13, v16
            yield []
        }
        v20: f64 = const 1.0
        v21: ref<f64> = local
        store v21, v20
        for vc0, vc3, vc1, [] (v5: i32) {
            v7: ref<f64> = elem_ref v3, [v5]
            v8: f64 = load v7
            v22: f64 = load v21
            v23: f64 = mul v22, v8
            store v21, v23
            yield []
        }
        v24: f64 = load v21
        store v2, v24",
    ));
}

#[test]
fn reductions() {
    check(
        "v0: i32 = const 0
        v1: i32 = const 6
        v2: ref<f64> = local
        parallel [v0], [v1] (v3: i32) {
            v4: ref<f64> = field_at @x, [v3]
            v5: f64 = load v4
            v6: f64 = mul v5, v5
            v7: f64 = atomic_add v2, v6
            yield []
        }
        v8: f64 = load v2
        v9: f64 = sqrt v8
        parallel [v0], [v1] (v3: i32) {
            v4: ref<f64> = field_at @x, [v3]
            v5: f64 = load v4
            v6: f64 = div v5, v9
            v10: ref<f64> = field_at @y, [v3]
            store v10, v6
            yield []
        }
        return []",
    );
}

#[test]
fn products() {
    check(&over_all(
        "v3: f64 = load v1
            v4: f64 = const 2.5
            v5: f64 = add v3, v4
            v6: i32 = const 2
            v7: i32 = mod v0, v6
            v8: ref<f64> = field_at @y, [v7]
            v20: u1 = lt v0, vc5
            if v20 {
                v9: f64 = atomic_mul v8, v5
                yield []
            } {
                yield []
            }",
    ));
}

#[test]
fn gathers_and_extrema() {
    check(&over_all(
        "v3: i32 = add v0, vc1
        v30: i32 = mod v3, vc5
        v4: ref<f64> = field_at @x, [v30]
        v5: f64 = load v4
        v6: f64 = load v1
        v7: f64 = mul v5, v6
        v8: f64 = max v7, v5
        store v2, v8
        v9: f64 = atomic_max vs, v8",
    ));
}

fn number(name: &str, otherwise: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.and_then(|n| n.parse().ok()).unwrap_or(otherwise)
}

/// What is wrong with the gradient of the made-up kernel of a seed, if anything is.
fn wrong(seed: u64, config: &Config) -> Option<String> {
    let module = aerogel_tests::differentiable::generate(seed);
    let pair = Pair::new(&module, config, true).unwrap_or_else(|why| panic!("refused: {why}"));
    let differences = pair.compare(seed, 1e-5);
    let modes = pair.compare_modes(seed, 1e-12);
    let wrong = [differences, modes].into_iter().find_map(Result::err)?;
    Some(format!(
        "seed {seed}, {:?}, element {}: {} is not {}\n{}\n{}",
        config.arch,
        wrong.element,
        wrong.reverse,
        wrong.difference,
        aerogel_tests::differentiable::text(seed),
        pair.text()
    ))
}

#[test]
fn made_up_kernels() {
    let (first, n) = (
        number("AEROGEL_FIRST_SEED", 0),
        number("AEROGEL_N_PROGRAMS", 500),
    );
    let next = AtomicU64::new(first);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |n| n.get()) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + n {
                        return;
                    }
                    made_up_kernel(seed);
                }
            });
        }
    });
}

fn made_up_kernel(seed: u64) {
    let threads = [1, 2, 4][(seed % 3) as usize];
    for (arch, opt_level) in [(Arch::Interp, 0), (Arch::Cpu, 3)] {
        let config = Config {
            arch,
            opt_level,
            max_threads: Some(threads),
            ..Config::default()
        };
        let outcome = std::panic::catch_unwind(|| wrong(seed, &config));
        match outcome {
            Ok(None) => {}
            Ok(Some(text)) => panic!("{text}"),
            Err(_) => panic!(
                "seed {seed}, {arch:?}: a panic\n{}",
                aerogel_tests::differentiable::text(seed)
            ),
        }
    }
}

/// Hessian times vector, as forward mode over reverse mode, is what the gradient changes by along the vector.
#[test]
fn second_derivatives() {
    use aerogel_base::ScalarType;
    use aerogel_compiler::Compiler;
    use aerogel_ir::Derivative;
    use aerogel_tests::run::Inputs;

    let nodes = "dense i:4 { place x: f64, place n: i32 } place s: f64";
    let mut text = String::new();
    for tree in 0..4 {
        text.push_str(&format!("tree{tree} {{ {nodes} }}\n"));
    }
    text.push_str(
        "field @x: f64 = tree0 [S2] grad @xg dual @xd
        field @n: i32 = tree0 [S3]
        field @s: f64 = tree0 [S4] grad @sg dual @sd
        field @xg: f64 = tree1 [S2] dual @xgd
        field @sg: f64 = tree1 [S4] dual @sgd
        field @xd: f64 = tree2 [S2]
        field @sd: f64 = tree2 [S4]
        field @xgd: f64 = tree3 [S2]
        field @sgd: f64 = tree3 [S4]
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 4
            v2: i32 = const 1
            parallel [v0], [v1] (v3: i32) {
                v4: ref<f64> = field_at @x, [v3]
                v5: f64 = load v4
                v6: ref<i32> = field_at @n, [v3]
                v7: i32 = load v6
                v8: i32 = mul v7, v7
                v9: f64 = for v0, v8, v2, [v5] (v10: i32, v11: f64) {
                    v12: f64 = sin v11
                    v13: f64 = add v12, v5
                    yield [v13]
                }
                v14: i32 = add v3, v2
                v15: i32 = mod v14, v1
                v16: ref<f64> = field_at @x, [v15]
                v17: f64 = load v16
                v18: f64 = mul v9, v17
                v19: ref<f64> = field_at @s, []
                v20: f64 = atomic_add v19, v18
                yield []
            }
            return []
        }",
    );
    let module = aerogel_ir::parse_module(&text).unwrap_or_else(|e| panic!("{e}"));
    for arch in [Arch::Interp, Arch::Cpu] {
        let compiler = Compiler::new(Config {
            arch,
            ..Config::default()
        });
        let derive = |module: &aerogel_ir::Module, kind| {
            let done = compiler.differentiate(module.clone(), kind);
            let done = done.unwrap_or_else(|e| panic!("{e}"));
            done.unwrap_or_else(|e| panic!("{}", e.message)).module
        };
        let gradient = derive(&module, Derivative::Grad);
        let second = derive(&gradient, Derivative::Dual);
        let compile = |module: &aerogel_ir::Module| {
            compiler
                .compile(module.clone())
                .unwrap_or_else(|e| panic!("{e}"))
        };
        let (gradient_kernel, second_kernel) = (compile(&gradient), compile(&second));
        let inputs = Inputs::filled(&module, 3);
        let set = |tree: usize, value: &dyn Fn(usize) -> f64| {
            let mut at = 0;
            let mut next = |_, ty: ScalarType| {
                at += 1;
                Some(match ty.is_float() {
                    true => aerogel_base::Scalar::float(ty, value(at - 1)),
                    false => aerogel_base::Scalar::int(ty, (at % 4) as i128),
                })
            };
            inputs.trees[tree]
                .write_elements(&mut next)
                .expect("memory");
        };
        let get = |tree: usize| -> Vec<f64> {
            let all = inputs.trees[tree].snapshot().expect("inside");
            let floats = all.into_iter().flatten().filter(|v| v.ty().is_float());
            floats.map(|v| v.as_f64()).collect()
        };
        let x = |k: usize| 0.4 + 0.3 * k as f64;
        let along = |k: usize| [0.7, -0.2, 0.5, 1.1][k % 4];
        // Places come in their order: four of x, four of n, then s. The seed of the loss is 1.
        let seed = |k: usize| f64::from(u8::from(k == 8));
        let gradient_at = |by: f64| {
            set(0, &|k| x(k) + if k < 4 { by * along(k) } else { 0.0 });
            set(1, &seed);
            let outcome = inputs.launch_by(&gradient, 1, |launch| gradient_kernel.launch(launch));
            assert!(outcome.results.is_some());
            get(1)
        };
        let h = 1e-5;
        let (above, below) = (gradient_at(h), gradient_at(-h));
        set(0, &x);
        set(1, &seed);
        set(2, &|k| if k < 4 { along(k) } else { 0.0 });
        set(3, &|_| 0.0);
        let outcome = inputs.launch_by(&second, 1, |launch| second_kernel.launch(launch));
        assert!(outcome.results.is_some());
        let product = get(3);
        for k in 0..4 {
            let difference = (above[k] - below[k]) / (2.0 * h);
            assert!(
                (product[k] - difference).abs() < 1e-7 * (1.0 + difference.abs()),
                "{arch:?}, element {k}: {} is not {difference}",
                product[k]
            );
            assert!(difference.abs() > 1e-3);
        }
    }
}

/// A kernel without fields: the gradient of what it returns by what it is given.
#[test]
fn arguments_and_results() {
    use aerogel_compiler::{Args, Compiler, Launch};
    use aerogel_ir::Derivative;
    use aerogel_passes::autodiff::Wanted;

    let text = "kernel @k(x: f64, n: i32, y: f64) -> f64, f64 {
        v0: f64 = arg a0
        v1: i32 = arg a1
        v2: f64 = arg a2
        v3: i32 = const 0
        v4: i32 = const 1
        v5: ref<f64> = local
        parallel [v3], [v1] (v6: i32) {
            v7: f64 = cast v6
            v8: f64 = mul v7, v0
            v9: f64 = sin v8
            v10: f64 = atomic_add v5, v9
            yield []
        }
        v11: f64 = load v5
        v12: f64 = mul v11, v2
        return [v12, v11]
    }";
    let module = aerogel_ir::parse_module(text).unwrap_or_else(|e| panic!("{e}"));
    let value = |x: f64, n: i32, y: f64| {
        let sum: f64 = (0..n).map(|k| (f64::from(k) * x).sin()).sum();
        (sum * y, sum)
    };
    for arch in [Arch::Interp, Arch::Cpu] {
        let compiler = Compiler::new(Config {
            arch,
            ..Config::default()
        });
        let wanted = Wanted {
            kind: Derivative::Grad,
            ends: true,
            again: false,
            past: false,
            counts_kinks: false,
            gathers: true,
        };
        let done = compiler.differentiate(module.clone(), wanted);
        let done = done.unwrap_or_else(|e| panic!("{e}"));
        let gradient = done.unwrap_or_else(|e| panic!("{}", e.message)).module;
        let kernel = compiler.compile(gradient).unwrap_or_else(|e| panic!("{e}"));
        let (x, n, y, seeds) = (0.7_f64, 9_i32, 1.3_f64, [0.5_f64, -2.0]);
        let mut args = Args::new();
        args.scalar(x.to_bits());
        args.scalar(n as u64);
        args.scalar(y.to_bits());
        seeds.iter().for_each(|seed| args.scalar(seed.to_bits()));
        let mut results = [0; 2];
        let sink = std::sync::Mutex::new(String::new());
        let launched = kernel.launch(Launch {
            args: &args,
            roots: &[],
            results: &mut results,
            sink: &sink,
            seed: 0,
            most_reserved: u64::MAX,
            trace: None,
            later: None,
        });
        assert!(launched.is_ok());
        let loss = |x: f64, y: f64| {
            let (a, b) = value(x, n, y);
            seeds[0] * a + seeds[1] * b
        };
        let h = 1e-6;
        let by_x = (loss(x + h, y) - loss(x - h, y)) / (2.0 * h);
        let by_y = (loss(x, y + h) - loss(x, y - h)) / (2.0 * h);
        let [dx, dy] = results.map(f64::from_bits);
        assert!((dx - by_x).abs() < 1e-6, "{arch:?}: {dx} is not {by_x}");
        assert!((dy - by_y).abs() < 1e-6, "{arch:?}: {dy} is not {by_y}");
    }
}
