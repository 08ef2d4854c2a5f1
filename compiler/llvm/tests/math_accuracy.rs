//! The functions of `runtime/device/math.air` against the C library. `-- --nocapture` prints the
//! largest errors that docs/math-accuracy.md states.

use std::sync::{Arc, Mutex};

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{BinaryOp, UnaryOp, parse_module};
use aerogel_llvm::target::{Target, runnable};
use aerogel_llvm::{Jit, OptLevel, Texts, compile};
use aerogel_runtime::cpu::{CpuDevice, Pool};
use aerogel_runtime::{Args, Buffer, Device, Launch};

/// Applies an instruction to pairs of numbers, in code for each level that this processor executes; all
/// give the same bits.
fn apply(op: &str, ty: ScalarType, fast: bool, inputs: &[[f64; 2]]) -> Vec<f64> {
    let insts = if BinaryOp::from_name(op).is_some() {
        format!("z: {ty} = {op} x, y")
    } else {
        format!("z: {ty} = {op} x")
    };
    let mut all = runnable().into_iter().map(|cpu| {
        let found = apply_for(&cpu.target(), OptLevel(3), &insts, ty, fast, inputs);
        (cpu, found)
    });
    let (_, first) = all.next().expect("the processor executes its own code");
    for (cpu, found) in all {
        let differing = (0..found.len()).find(|&k| found[k].to_bits() != first[k].to_bits());
        if let Some(k) = differing {
            let (a, b) = (found[k], first[k]);
            panic!(
                "`{op}` of {:?} is {a:e} for {}, else {b:e}",
                inputs[k],
                cpu.name()
            );
        }
    }
    first
}

/// Computes `z` from `x` and `y`.
fn apply_for(
    target: &Target,
    level: OptLevel,
    insts: &str,
    ty: ScalarType,
    fast: bool,
    inputs: &[[f64; 2]],
) -> Vec<f64> {
    let fast = if fast { "fast_math" } else { "" };
    let module = parse_module(&format!(
        "{fast}
        kernel @k(a: array<{ty}, 1>, b: array<{ty}, 1>, c: array<{ty}, 1>) {{
            task range {{ lo: i32 = const 0  hi: i32 = array_shape a0, 0  yield [lo, hi] }} {{
                each (i: i32) {{
                    pa: ref<{ty}> = array_at a0, [i]
                    pb: ref<{ty}> = array_at a1, [i]
                    pc: ref<{ty}> = array_at a2, [i]
                    x: {ty} = load pa
                    y: {ty} = load pb
                    {insts}
                    store pc, z
                    yield []
                }}
                yield []
            }}
            yield []
        }}"
    ))
    .unwrap();
    let compiled = compile(&module, target, level, Texts::Code);
    let assembly = compiled.assembly.unwrap();
    let wide = assembly.contains("zmm") || assembly.contains("ymm");
    let has_wide = target.features.contains("+avx2");
    let vectorised = wide || !has_wide || level != OptLevel(3);
    assert!(vectorised, "`{insts}` is not vectorised");
    let device = CpuDevice::new(Arc::new(Pool::new(2)), Box::new(Jit));
    let kernel = device.load(&compiled.code).unwrap();
    let bytes = ty.bytes() as usize;
    let buffers: Vec<Buffer> = (0..3)
        .map(|_| Buffer::zeroed(inputs.len() * bytes).unwrap())
        .collect();
    let mut args = Args::new();
    for (k, buffer) in buffers.iter().enumerate() {
        for (i, input) in inputs.iter().enumerate() {
            let value = Scalar::float(ty, input[k.min(1)]);
            buffer.write_scalar(i * bytes, value).unwrap();
        }
        args.array(buffer, &[inputs.len()], bytes).unwrap();
    }
    let launch = Launch {
        args: &args,
        roots: &[],
        results: &mut [],
        sink: &Mutex::new(String::new()),
        seed: 0,
        most_reserved: u64::MAX,
        trace: None,
        later: None,
    };
    kernel.launch(launch).unwrap();
    (0..inputs.len())
        .map(|i| buffers[2].read_scalar(ty, i * bytes).unwrap().as_f64())
        .collect()
}

fn reference(op: &str, x: f64, y: f64) -> f64 {
    use UnaryOp::*;
    if let Some(op) = UnaryOp::from_name(op) {
        return match op {
            Sin => x.sin(),
            Cos => x.cos(),
            Tan => x.tan(),
            Asin => x.asin(),
            Acos => x.acos(),
            Atan => x.atan(),
            Sinh => x.sinh(),
            Cosh => x.cosh(),
            Tanh => x.tanh(),
            Exp => x.exp(),
            Exp2 => x.exp2(),
            Log => x.ln(),
            Log2 => x.log2(),
            Sqrt => x.sqrt(),
            Rsqrt => 1.0 / x.sqrt(),
            _ => unreachable!("not a function of math.air"),
        };
    }
    if op == "pow" { x.powf(y) } else { x.atan2(y) }
}

/// The distance from `exact` in units of the last place of `ty` there.
fn ulps(ty: ScalarType, found: f64, exact: f64) -> f64 {
    let rounded = Scalar::float(ty, exact).as_f64();
    if found == rounded || (found.is_nan() && rounded.is_nan()) {
        return 0.0;
    }
    let (digits, smallest) = if ty == ScalarType::F32 {
        (23, -149)
    } else {
        (52, -1074)
    };
    let exponent = exact.abs().log2().floor() as i32;
    let unit = f64::from((exponent - digits).max(smallest)).exp2();
    ((found - exact) / unit).abs()
}

/// Numbers spread over `[lo, hi]`, evenly and (if `lo` is positive) by magnitude.
fn spread(lo: f64, hi: f64, n: usize, ty: ScalarType) -> Vec<f64> {
    let mut state = 1_u64;
    (0..n)
        .map(|i| {
            let (next, bits) = aerogel_ir::eval::random_step(state);
            state = next;
            let u = (bits >> 11) as f64 / 9_007_199_254_740_992.0;
            let value = if lo > 0.0 && i % 2 == 0 {
                (lo.ln() + u * (hi.ln() - lo.ln())).exp()
            } else {
                lo + u * (hi - lo)
            };
            Scalar::float(ty, value).as_f64()
        })
        .collect()
}

#[expect(clippy::print_stdout, reason = "figures for the documentation")]
fn check(op: &str, ty: ScalarType, fast: bool, lo: f64, hi: f64, limit: f64) {
    let n = 200_000;
    let mut inputs: Vec<[f64; 2]> = spread(lo, hi, n, ty).iter().map(|&x| [x, x]).collect();
    if lo == 0.0 {
        let negative: Vec<[f64; 2]> = inputs.iter().map(|&[x, y]| [-x, -y]).collect();
        inputs.extend(negative);
    }
    let found = apply(op, ty, fast, &inputs);
    let (worst, at) = inputs
        .iter()
        .zip(&found)
        .map(|(&[x, y], &v)| (ulps(ty, v, reference(op, x, y)), x))
        .fold(
            (0.0, 0.0),
            |a, b| if b.0 > a.0 || b.0.is_nan() { b } else { a },
        );
    println!("{op} {ty} [{lo:e}, {hi:e}]: {worst:.2} ulp at {at:e}");
    assert!(worst <= limit, "{op} {ty}: {worst} ulp at {at:e}");
}

use ScalarType::{F32, F64};

#[test]
fn exponentials() {
    check("exp", F32, false, 0.0, 104.0, 1.5);
    check("exp2", F32, false, 0.0, 150.0, 1.5);
    check("exp", F64, false, 0.0, 746.0, 1.5);
    check("exp2", F64, false, 0.0, 1075.0, 1.5);
}

#[test]
fn roots() {
    check("sqrt", F32, true, 1e-45, 3e38, 0.5);
    check("sqrt", F64, true, 5e-324, 1e308, 0.5);
    check("rsqrt", F32, true, 1e-45, 3e38, 1.5);
    check("rsqrt", F64, true, 5e-324, 1e308, 2.0);
    let special = apply(
        "rsqrt",
        F32,
        true,
        &[0.0, f64::INFINITY, -1.0].map(|x| [x, x]),
    );
    assert_eq!(special[..2], [f64::INFINITY, 0.0]);
    assert!(special[2].is_nan());
}

#[test]
fn logarithms() {
    for op in ["log", "log2"] {
        check(op, F32, false, 1e-45, 3e38, 2.0);
        check(op, F32, false, 0.5, 2.0, 2.0);
        check(op, F64, false, 5e-324, 1e308, 2.0);
        check(op, F64, false, 0.5, 2.0, 2.0);
    }
}

#[test]
fn circular_functions() {
    for (op, limit) in [("sin", 1.5), ("cos", 1.5), ("tan", 3.5)] {
        check(op, F32, false, 0.0, 10.0, limit);
        check(op, F32, false, 1e-30, 1e15, limit);
        check(op, F32, false, 1.0, 3e38, limit);
        check(op, F64, false, 0.0, 10.0, limit);
        check(op, F64, false, 1e-300, 1e15, limit);
        check(op, F64, false, 1.0, 1e308, limit);
    }
}

/// The angles of angles.txt of a type, each with its sine, cosine and tangent.
fn angles(ty: ScalarType) -> Vec<(f64, [f64; 3])> {
    let lines = include_str!("angles.txt").lines();
    let lines = lines.filter_map(|line| line.strip_prefix(&format!("{ty} ")));
    lines
        .map(|line| {
            let words = line.split(' ').map(|word| u64::from_str_radix(word, 16));
            let words: Vec<u64> = words.collect::<Result<_, _>>().unwrap();
            let angle = match ty {
                F32 => f64::from(f32::from_bits(words[0] as u32)),
                _ => f64::from_bits(words[0]),
            };
            (angle, [1, 2, 3].map(|k| f64::from_bits(words[k])))
        })
        .collect()
}

#[test]
#[expect(clippy::print_stdout, reason = "figures for the documentation")]
fn angles_of_all_magnitudes() {
    for ty in [F32, F64] {
        let angles = angles(ty);
        let both_signs = |&(x, _): &(f64, _)| [[x, 0.0], [-x, 0.0]];
        let inputs: Vec<[f64; 2]> = angles.iter().flat_map(both_signs).collect();
        for (k, (op, limit)) in [("sin", 1.5), ("cos", 1.5), ("tan", 3.5)]
            .into_iter()
            .enumerate()
        {
            let found = apply(op, ty, false, &inputs);
            let mut worst = (0.0, 0.0);
            for (pair, (x, exact)) in found.chunks(2).zip(&angles) {
                let error = ulps(ty, pair[0], exact[k]);
                if error > worst.0 || error.is_nan() {
                    worst = (error, *x);
                }
                let mirrored = if op == "cos" { pair[1] } else { -pair[1] };
                assert_eq!(mirrored, pair[0], "{op} {ty} of {x:e} and its negative");
            }
            println!("{op} {ty}, angles.txt: {:.2} ulp at {:e}", worst.0, worst.1);
            assert!(
                worst.0 <= limit,
                "{op} {ty}: {} ulp at {:e}",
                worst.0,
                worst.1
            );
            // Code without vectors gives the same bits.
            let insts = format!("z: {ty} = {op} x");
            for level in [0, 1] {
                let target = runnable()[0].target();
                let scalar = apply_for(&target, OptLevel(level), &insts, ty, false, &inputs);
                assert_eq!(scalar, found, "{op} {ty}");
            }
        }
    }
}

/// One far angle among ordinary ones changes only its own result.
#[test]
fn far_angles_among_others() {
    for ty in [F32, F64] {
        let near: Vec<[f64; 2]> = (0..200).map(|k| [f64::from(k) / 8.0, 0.0]).collect();
        let ordinary = apply("sin", ty, false, &near);
        for (at, far) in [(0, 1e30), (7, -1e30), (100, f64::INFINITY), (199, f64::NAN)] {
            let mut inputs = near.clone();
            inputs[at][0] = Scalar::float(ty, far).as_f64();
            let mut found = apply("sin", ty, false, &inputs);
            let exact = inputs[at][0].sin();
            assert!(
                ulps(ty, found[at], exact) <= 1.5 || far.is_nan(),
                "{ty} {far:e}"
            );
            assert!(far.is_finite() || found[at].is_nan(), "{ty} {far:e}");
            found[at] = ordinary[at];
            assert_eq!(found, ordinary);
        }
    }
}

/// With fast maths too they are what they are without.
#[test]
fn fast_circular_functions() {
    for ty in [F32, F64] {
        let mut inputs: Vec<[f64; 2]> = angles(ty).iter().map(|&(x, _)| [x, 0.0]).collect();
        inputs.extend(spread(0.0, 10.0, 10_000, ty).iter().map(|&x| [x, 0.0]));
        for op in ["sin", "cos", "tan"] {
            let fast = apply(op, ty, true, &inputs);
            assert_eq!(fast, apply(op, ty, false, &inputs), "{op} {ty}");
        }
    }
}

#[test]
fn inverse_functions() {
    for (op, hi) in [("asin", 1.0), ("acos", 1.0), ("atan", 20.0)] {
        check(op, F32, false, 0.0, hi, 2.5);
        check(op, F64, false, 0.0, hi, 2.5);
    }
    check("atan", F32, false, 1e-38, 1e38, 2.0);
    check("atan", F64, false, 1e-308, 1e308, 2.0);
    check("asin", F32, false, 1e-38, 1.0, 2.5);
}

#[test]
fn hyperbolic_functions() {
    for op in ["sinh", "cosh", "tanh"] {
        check(op, F32, false, 0.0, 90.0, 4.0);
        check(op, F32, false, 1e-30, 1.0, 4.0);
        check(op, F64, false, 0.0, 711.0, 4.0);
        check(op, F64, false, 1e-300, 1.0, 4.0);
    }
}

#[test]
fn angles_and_powers() {
    for ty in [F32, F64] {
        for op in ["atan2", "pow"] {
            let big = if ty == F32 { 1e30 } else { 1e200 };
            let a = spread(1e-30, big, 300_000, ty);
            let b = spread(-40.0, 40.0, 300_000, ty);
            let mut inputs: Vec<[f64; 2]> = a.iter().zip(&b).map(|(&x, &y)| [x, y]).collect();
            inputs.extend(
                a.iter()
                    .zip(&b)
                    .map(|(&x, &y)| [1.0 + 1e-3 * y, x.min(1e4)]),
            );
            let inputs: Vec<[f64; 2]> = inputs
                .iter()
                .map(|p| p.map(|v| Scalar::float(ty, v).as_f64()))
                .collect();
            let found = apply(op, ty, false, &inputs);
            let mut worst = (0.0, [0.0; 2]);
            for (&[x, y], v) in inputs.iter().zip(found) {
                let e = ulps(ty, v, reference(op, x, y));
                if e > worst.0 || e.is_nan() {
                    worst = (e, [x, y]);
                }
            }
            println_figure(op, ty, worst);
            let limit = if op == "pow" && ty == F64 { 3.0 } else { 2.0 };
            assert!(worst.0 <= limit, "{op} {ty}: {worst:?}");
        }
    }
}

#[expect(clippy::print_stdout, reason = "figures for the documentation")]
fn println_figure(op: &str, ty: ScalarType, worst: (f64, [f64; 2])) {
    println!("{op} {ty}: {:.2} ulp at {:?}", worst.0, worst.1);
}

#[test]
fn special_values() {
    let numbers = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.0,
        -2.0,
        3.0,
        -3.0,
        1e-40,
        -1e-40,
        1e30,
        -1e30,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        0.3,
        -7.5,
        100.0,
    ];
    let same = |ty, found: f64, exact: f64| {
        let exact = Scalar::float(ty, exact).as_f64();
        (found.is_nan() && exact.is_nan())
            || (found == exact
                && (found != 0.0 || found.is_sign_negative() == exact.is_sign_negative()))
            || ulps(ty, found, exact) <= 4.0
    };
    for ty in [F32, F64] {
        for op in [
            "exp", "exp2", "log", "log2", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
            "cosh", "tanh",
        ] {
            let numbers: Vec<f64> = numbers
                .iter()
                .map(|&x| Scalar::float(ty, x).as_f64())
                .collect();
            let inputs: Vec<[f64; 2]> = numbers.iter().map(|&x| [x, 0.0]).collect();
            for (x, v) in numbers.iter().zip(apply(op, ty, false, &inputs)) {
                let exact = reference(op, *x, 0.0);
                assert!(same(ty, v, exact), "{op} {ty} {x:e}: {v:e}, not {exact:e}");
            }
        }
        for op in ["atan2", "pow"] {
            let inputs: Vec<[f64; 2]> = numbers
                .iter()
                .flat_map(|&x| numbers.map(|y| [x, y].map(|v| Scalar::float(ty, v).as_f64())))
                .collect();
            for (&[x, y], v) in inputs.iter().zip(apply(op, ty, false, &inputs)) {
                let exact = reference(op, x, y);
                assert!(
                    same(ty, v, exact),
                    "{op} {ty} {x:e} {y:e}: {v:e}, not {exact:e}"
                );
            }
        }
    }
}
