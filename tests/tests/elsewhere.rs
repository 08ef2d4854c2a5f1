//! Generated programs compiled for AArch64 leave behind what the interpreter leaves on this processor.
//!
//! `scripts/aarch64.sh` builds what launches them (`AEROGEL_ELSEWHERE`) and runs this with an emulator;
//! without it there is nothing to test. `AEROGEL_N_PROGRAMS` says how many, `AEROGEL_FIRST_SEED` which
//! come first. Decisions that Python has written to the folder `AEROGEL_DECISIONS` are NumPy's there, too.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use aerogel_interp::InterpKernel;
use aerogel_ir::Module;
use aerogel_llvm::{OptLevel, Texts, compile, target};
use aerogel_passes::Options;
use aerogel_runtime::KernelCode;
use aerogel_tests::decisions::{self, Case};
use aerogel_tests::generate;
use aerogel_tests::run::{Inputs, launch};

fn from_env(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.and_then(|v| v.parse().ok()).unwrap_or(default)
}

#[test]
fn aarch64_agrees_with_the_interpreter() {
    let Some(launcher) = std::env::var_os("AEROGEL_ELSEWHERE") else {
        eprintln!("skipped: `scripts/aarch64.sh` says what this needs");
        return;
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("aarch64");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder for what is built");
    let first = from_env("AEROGEL_FIRST_SEED", 0);
    let seeds = first..first + from_env("AEROGEL_N_PROGRAMS", 100);
    let mut expected = BTreeMap::new();
    for seed in seeds.clone() {
        let module = generate::module(seed);
        let oracle = InterpKernel::new(module.clone()).expect("a kernel");
        let outcome = launch(&Inputs::new(&module, seed), &module, &oracle, seed).canonical();
        expected.insert(seed, format!("{outcome:?}"));

        let mut lowered = module;
        lowered.env.arrays_apart = true;
        // Some without optimisation.
        let level = OptLevel(if seed % 4 == 3 { 0 } else { 3 });
        link(&folder, seed, compiled(lowered, level));
    }
    let (found, errors) = emulated(&launcher, &folder);
    let differing: Vec<u64> = seeds
        .filter(|seed| found.get(seed) != expected.get(seed))
        .collect();
    if let Some(seed) = differing.first() {
        panic!(
            "seeds {differing:?} differ; {seed}:\n{}\n{:?}\n{}",
            expected[seed],
            found.get(seed),
            errors
        );
    }
}

#[test]
fn aarch64_decides_as_numpy() {
    let launcher = std::env::var_os("AEROGEL_ELSEWHERE");
    let (Some(launcher), Some(folder)) = (launcher, std::env::var_os("AEROGEL_DECISIONS")) else {
        eprintln!("skipped: `scripts/aarch64.sh` says what this needs");
        return;
    };
    let folder = PathBuf::from(folder);
    let numbers = decisions::numbers(&folder);
    assert!(!numbers.is_empty(), "no decisions in {}", folder.display());
    for &number in &numbers {
        let case = Case::read(&folder, number);
        let oracle = InterpKernel::new(case.module.clone()).expect("a kernel");
        assert_eq!(
            case.first_difference(&oracle),
            None,
            "interpreted: {number}"
        );
        let level = OptLevel(if number % 4 == 3 { 0 } else { 3 });
        link(&folder, number, compiled(case.module, level));
    }
    let (found, errors) = emulated(&launcher, &folder);
    let differing: Vec<u64> = numbers
        .into_iter()
        .filter(|number| found.get(number).map(String::as_str) != Some("None"))
        .collect();
    if let Some(number) = differing.first() {
        let program = std::fs::read_to_string(folder.join(format!("{number}.py")));
        panic!(
            "programs {differing:?} differ; {number}: place, got, right: {:?}\n{}\n{errors}",
            found.get(number),
            program.unwrap_or_default()
        );
    }
}

/// A module's code for AArch64.
fn compiled(mut module: Module, level: OptLevel) -> KernelCode {
    aerogel_passes::run(&mut module, Options::default(), &mut ()).unwrap_or_else(|e| panic!("{e}"));
    compile(&module, &target::aarch64(), level, Texts::Nothing).code
}

/// What the launcher prints of each program in a folder, in an emulator, and its errors.
fn emulated(launcher: &OsStr, folder: &Path) -> (BTreeMap<u64, String>, String) {
    let output = Command::new("qemu-aarch64")
        .args(["-L", "/usr/aarch64-linux-gnu"])
        .arg(launcher)
        .arg(folder)
        .output()
        .expect("the emulator runs");
    let mut found = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let (seed, outcome) = line.split_once(' ').expect("a seed and what was left");
        found.insert(seed.parse().expect("a seed"), outcome.to_owned());
    }
    (found, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// A kernel's objects as a shared one, beside its description.
fn link(folder: &Path, seed: u64, mut code: KernelCode) {
    let objects: Vec<PathBuf> = std::mem::take(&mut code.objects)
        .into_iter()
        .enumerate()
        .map(|(k, object)| {
            let path = folder.join(format!("{seed}.{k}.o"));
            std::fs::write(&path, object).expect("room for an object");
            path
        })
        .collect();
    let linked = Command::new("aarch64-linux-gnu-gcc")
        .args(["-shared", "-o"])
        .arg(folder.join(format!("{seed}.so")))
        .args(objects)
        .arg("-lm")
        .status();
    assert!(linked.is_ok_and(|status| status.success()), "seed {seed}");
    let code = postcard::to_stdvec(&code).expect("code can be written");
    std::fs::write(folder.join(format!("{seed}.code")), code).expect("room for a description");
}
