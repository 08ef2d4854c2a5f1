//! Texts of programs in which something was changed at random: each is refused, or runs to an end. None ends the process.
//!
//! Programs run in other processes, with little memory and a limit on time, by the interpreter, by the passes and the
//! interpreter, and every few by compiled code. `AEROGEL_N_MUTATIONS` says how many, `AEROGEL_FIRST_SEED` which come first.

#[path = "generated/affine.rs"]
mod affine;
#[path = "generated/maker.rs"]
mod maker;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use aerogel_base::Scalar;
use aerogel_compiler::{Compiler, Config, caught};
use aerogel_ir::eval;
use aerogel_tensor::interp::run;
use aerogel_tensor::ir::{Array, DimDef, checked, read};
use aerogel_tensor::passes::{self, Options};
use aerogel_tensor::{Codes, Operand, Plan, Program, Settings};

/// Calls of libraries, histories, sites and sizes, which made-up programs have less of.
const SAMPLES: [&str; 5] = [
    r#"
in b0 "a": f64[?, ?, ?]
in b1 "b": f64[?, ?, ?]
tmp b2 "t2": f64[b0:0, b0:1, b1:2]
tmp b3 "t3": f64[b0:0, b0:1, b1:2]
tmp b4 "t4": i32[b0:0, b0:1, b1:2]
agree b0:2 = b1:1 "rows of {} and columns of {}"
call matmul(b2) = (b0, b1)
call sort(b3, b4) = (b2)
result b3
result b4
"#,
    r#"
in b0 "a": f64[?, ?]
tmp b1 "q": f64[b0:0, (min(extent(b0:0), extent(b0:1)))]
tmp b2 "r": f64[(min(extent(b0:0), extent(b0:1))), b0:1]
tmp b3 "s": f64[(min(extent(b0:0), extent(b0:1)))]
tmp b4 "re": f64[b0:0, (add(floordiv(extent(b0:1), i32(2)), i32(1)))]
tmp b5 "im": f64[b0:0, (add(floordiv(extent(b0:1), i32(2)), i32(1)))]
tmp b6 "back": f64[b0:0, b0:1]
call qr(b1, b2) = (b0)
call svdvals(b3) = (b2)
call fft_of_real(b4, b5) = (b0)
call fft_to_real(b6) = (b4, b5)
result b1
result b3
result b6
"#,
    r#"
var x0: i32
var x1: i32
in b0 "x": f32[?]
tmp b1 "state": f32[b0:0]
tmp b2 "mask": u1[b0:0]
tmp b3 "history": f32[b0:0]
tmp b4 "old": f32[b0:0]
for [b0:0] { b1[i0] = b0[i0] }
for [b0:0] { b2[i0] = gt(b0[i0], f32(1.0)) }
loop x0 in i32(0), i32(4), 1 {
  call push(b3) = (b1, b2, b3)
  for [b0:0] { b1[i0] = mul(b1[i0], f32(0.5)) }
}
loop x1 in i32(3), i32(-1), -1 {
  call pop(b4, b3) = (b2, b3)
  for [b0:0] { b1[i0] = add(b1[i0], b4[i0]) }
}
result b1
"#,
    r#"
var x0: f32
var x1: i32
in b0 "x": f32[?]
in b1 "i": i32[?]
%0 = max(add(extent(b0:0), i32(-2)), i32(0))
tmp b2 "t2": f32[(%0)]
tmp b3 "t3": f32[b1:0]
tmp b4 "t4": f32[b0:0]
tmp b5 "t5": f32[(mul(extent(b0:0), extent(b1:0)))]
tmp b6 "t6": f32[]
site s0 = load b0
site s1 = load b0 from_end(0)
for [(%0)] { b2[i0] = add(b0[i0], b0[add(i0, i32(2))]) }
for [b1:0] {
  %1 = b1[i0]
  b3[i0] = b0[select(lt(%1, i32(0)), add(%1, extent(b0:0)), %1)] error s1
}
for [] {
  x0 = f32(0.0)
  loop x1 in i32(0), extent(b0:0), 1 {
    x0 = add(x0, b0[x1])
    b4[x1] = x0
  }
}
for [(mul(extent(b0:0), extent(b1:0)))] { b5[i0] = b0[div(i0, extent(b1:0))] }
for [(mul(extent(b0:0), extent(b1:0)))] { b6[] add init = b5[i0] }
result b2
result b3
result b4
result b6
"#,
    r#"
in b0 "a": f32[?, ?]
in b1 "b": f32[?, ?]
tmp b2 "t2": f32[b0:0, b1:1]
tmp b3 "t3": f32[b0:0]
tmp b4 "t4": f32[b0:0, (add(extent(b0:1), i32(3)))]
agree b0:1 = b1:0 "rows of {} and columns of {}"
for [b0:0, b1:1, b0:1] { b2[i0, i1] add init = mul(b0[i0, i2], b1[i2, i1]) }
for [b0:0, b1:1] { b3[i0] max init = b2[i0, i1] }
for [b0:0, (add(extent(b0:1), i32(3)))] {
  b4[i0, i1] = select(lt(i1, extent(b0:1)), b0[i0, i1] zero, b3[sub(add(extent(b0:0), i32(-1)), i0)])
}
result b2
result b4
"#,
];

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        let (next, bits) = eval::random_step(self.0);
        self.0 = next;
        (bits >> 16) as usize % n.max(1)
    }

    fn pick<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

fn original(random: &mut Random) -> String {
    match random.below(2) {
        0 => SAMPLES[random.below(SAMPLES.len())].to_owned(),
        _ => maker::program(random.below(200) as u64).to_string(),
    }
}

/// The words of a text, with what is between them.
fn words(text: &str) -> Vec<&str> {
    let in_word = |c: char| c.is_alphanumeric() || "_.-".contains(c);
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = match in_word(first) {
            true => rest.find(|c| !in_word(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        out.push(&rest[..end]);
        rest = &rest[end..];
    }
    out
}

const NUMBERS: [&str; 14] = [
    "0",
    "1",
    "-1",
    "2",
    "3",
    "5",
    "7",
    "64",
    "-2",
    "100000",
    "2147483647",
    "-2147483648",
    "4294967296",
    "18446744073709551615",
];
const OTHERS: [&str; 26] = [
    "i32", "f32", "f64", "u8", "i64", "u1", "f16", "add", "mul", "mod", "rem", "floordiv", "shl",
    "select", "clamp", "wrap", "zero", "init", "b0", "b1", "b2", "x0", "i0", "i1", "(", ")",
];

/// A text with one thing changed.
fn changed(text: &str, random: &mut Random) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let all = words(text);
    let spots = |is: &dyn Fn(&str) -> bool| -> Vec<usize> {
        (0..all.len()).filter(|&k| is(all[k])).collect()
    };
    let numbers = spots(&|w| {
        w.trim_start_matches('-')
            .chars()
            .all(|c| c.is_ascii_digit())
            && w != "-"
    });
    let names = spots(&|w| w.chars().next().is_some_and(char::is_alphanumeric));
    let with = |at: usize, word: &str| {
        let mut own = all.clone();
        own[at] = word;
        own.concat()
    };
    match random.below(8) {
        0 if !text.is_empty() => {
            let mut bytes = text.as_bytes().to_vec();
            let at = random.below(bytes.len());
            bytes[at] = random.below(128) as u8;
            String::from_utf8_lossy(&bytes).into_owned()
        }
        1 => {
            let mut own = lines;
            own.remove(random.below(own.len()).min(own.len() - 1));
            own.join("\n")
        }
        2 => {
            let mut own = lines.clone();
            own.insert(random.below(lines.len()), lines[random.below(lines.len())]);
            own.join("\n")
        }
        3 => {
            let mut own = lines;
            let (a, b) = (random.below(own.len()), random.below(own.len()));
            own.swap(a, b);
            own.join("\n")
        }
        4 | 5 if !numbers.is_empty() => {
            with(numbers[random.below(numbers.len())], random.pick(&NUMBERS))
        }
        6 if !names.is_empty() => with(names[random.below(names.len())], random.pick(&OTHERS)),
        _ if names.len() > 1 => with(
            names[random.below(names.len())],
            all[names[random.below(names.len())]],
        ),
        _ => text[..random.below(text.len())].to_owned(),
    }
}

fn mutated(seed: u64) -> (String, Random) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed);
    let mut text = original(&mut random);
    for _ in 0..1 + random.below(3) {
        if text.lines().count() > 1 {
            text = changed(&text, &mut random);
        }
    }
    (text, random)
}

/// Arrays as a program takes them, if these are small.
fn inputs(program: &Program, random: &mut Random) -> Option<Vec<Array>> {
    let n = random.below(5);
    let shapes = program.inputs().map(|b| {
        let def = &program.buffers[b];
        let shape = def.shape.iter().map(|&dim| match *program.dim_def(dim) {
            DimDef::Const(n) => n as usize,
            _ => n,
        });
        (def.ty, shape.collect::<Vec<_>>())
    });
    let shapes: Vec<_> = shapes.collect();
    let size = |shape: &[usize]| shape.iter().try_fold(1_usize, |n, &e| n.checked_mul(e));
    let small = shapes
        .iter()
        .all(|(_, shape)| size(shape).is_some_and(|n| n < 4096));
    let mut number = |ty: aerogel_base::ScalarType| match ty.is_float() {
        true => Scalar::float(ty, random.below(19) as f64),
        false => Scalar::int(ty, random.below(19) as i128 - 3),
    };
    let arrays = shapes.into_iter().map(|(ty, shape)| Array {
        ty,
        data: (0..size(&shape).unwrap_or(0).min(4096))
            .map(|_| number(ty))
            .collect(),
        shape,
    });
    small.then(|| arrays.collect())
}

/// Reads and runs a text: how far it came.
fn tried(seed: u64, compiler: &Compiler, codes: &Codes) -> &'static str {
    let (text, mut random) = mutated(seed);
    let Ok((program, promises)) = read(&text) else {
        return "refused";
    };
    let Some(arrays) = inputs(&program, &mut random) else {
        return "large";
    };
    let shapes: Vec<_> = arrays.iter().map(|a| (a.ty, &a.shape[..])).collect();
    let program = match promises.hold(&program, &shapes) {
        true => program,
        false => checked(program),
    };
    let outcome = run(&program, &mut arrays.clone());
    // Nothing that nobody proved is left.
    if let Err(e) = &outcome {
        let unproved = matches!(
            e,
            aerogel_tensor::RunError::Failure(aerogel_tensor::ir::Failure::Unproved(..))
        );
        assert!(!unproved, "{e}\n{program}");
    }
    let options = Options::default();
    let mut passed = program.clone();
    passes::run(&mut passed, options, &mut |_, _, _| {});
    let _ = run(&passed, &mut arrays.clone());
    if seed.is_multiple_of(8) {
        let settings = Settings {
            compiler,
            fast_math: aerogel_ir::FastMath::Off,
            options,
            codes,
            most_kept: 1 << 20,
            stamp: 0,
            backend: 0,
            gemm: None,
            profiler: None,
        };
        let plan = Plan::new(program, settings).unwrap_or_else(|e| panic!("{e}"));
        let operands: Vec<Operand> = arrays.iter().map(|a| Operand::of(a).unwrap()).collect();
        let _ = plan.run(&operands);
    }
    if outcome.is_ok() { "ran" } else { "failed" }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// What another process does: it tells each seed before it tries it, and what became of it.
#[test]
fn worker() {
    let Some(first) = number("AEROGEL_MUTATE_FROM") else {
        return;
    };
    let compiler = Compiler::new(Config {
        max_threads: Some(1),
        opt_level: 1,
        ..Config::default()
    });
    let codes = Codes::default();
    let mut out = std::io::stdout();
    for seed in first.. {
        let outcome = caught(|| tried(seed, &compiler, &codes));
        let outcome = match &outcome {
            Ok(outcome) => outcome,
            Err(said) => said.lines().next().unwrap_or("a panic"),
        };
        let told = writeln!(out, "\nseed {seed} {outcome}").and_then(|()| out.flush());
        if told.is_err() {
            return;
        }
    }
}

/// Starts a worker with little memory: the process, and the lines that it writes.
fn start(first: u64) -> (Child, Receiver<String>) {
    let mut child = Command::new("sh")
        .args([
            "-c",
            "ulimit -v 4000000; exec \"$0\" worker --exact --nocapture",
        ])
        .arg(std::env::current_exe().unwrap())
        .env("AEROGEL_MUTATE_FROM", first.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    (child, receiver)
}

#[test]
fn nothing_ends_the_process() {
    if number("AEROGEL_MUTATE_FROM").is_some() {
        return;
    }
    let first = number("AEROGEL_FIRST_SEED").unwrap_or(0);
    let end = first + number("AEROGEL_N_MUTATIONS").unwrap_or(3000);
    let mut counts = std::collections::BTreeMap::<String, u64>::new();
    let mut crashes = Vec::new();
    let mut next = first;
    while next < end {
        let (mut child, lines) = start(next);
        while next < end {
            match lines.recv_timeout(Duration::from_secs(20)) {
                Ok(line) => {
                    let Some(told) = line.strip_prefix(&format!("seed {next} ")) else {
                        continue;
                    };
                    let is_known = ["refused", "large", "ran", "failed"].contains(&told);
                    *counts
                        .entry(if is_known { told } else { "panic" }.to_owned())
                        .or_default() += 1;
                    if !is_known {
                        crashes.push((next, told.to_owned()));
                    }
                    next += 1;
                }
                Err(RecvTimeoutError::Timeout) => {
                    // Loops may be long.
                    *counts.entry("slow".to_owned()).or_default() += 1;
                    next += 1;
                    break;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    crashes.push((next, format!("{:?}", child.wait())));
                    next += 1;
                    break;
                }
            }
        }
        let _ = child.kill();
        let _ = child.wait();
    }
    let texts = crashes
        .iter()
        .map(|(seed, what)| format!("seed {seed}: {what}\n{}", mutated(*seed).0));
    let texts: Vec<String> = texts.take(20).collect();
    assert!(
        crashes.is_empty(),
        "{} of {counts:?}\n{}",
        crashes.len(),
        texts.join("\n\n")
    );
    let reached = ["refused", "ran", "failed"]
        .iter()
        .all(|kind| counts.contains_key(*kind));
    assert!(reached || end - first < 1000, "{counts:?}");
}
