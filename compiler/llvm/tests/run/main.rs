//! Lowered IR text, compiled, loaded and run.

mod control;
mod memory;
mod rows;
mod scalars;
mod sums;
mod tasks;

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{Stage, parse_module, verify};
use aerogel_llvm::{Compiled, Jit, OptLevel, Texts, compile, target};
use aerogel_runtime::cpu::{CpuDevice, Pool};
use aerogel_runtime::{Args, Buffer, Device, KernelFailure, Launch, LoadedKernel, TreeMemory};
use std::sync::{Arc, Mutex};

struct Kernel {
    compiled: Compiled,
    loaded: Box<dyn LoadedKernel>,
    roots: Vec<TreeMemory>,
    printed: Mutex<String>,
}

impl Kernel {
    fn new(text: &str) -> Self {
        Self::at(text, 3)
    }

    fn at(text: &str, level: u8) -> Self {
        let module = parse_module(text).unwrap_or_else(|e| panic!("{e:?}"));
        let kernel = module.kernel().unwrap();
        verify(kernel, &module.env, Stage::Lowered).unwrap_or_else(|e| panic!("{e}"));
        let compiled = compile(&module, &target::host(), OptLevel(level), Texts::Code);
        let device = CpuDevice::new(Arc::new(Pool::new(2)), Box::new(Jit));
        let loaded = device.load(&compiled.code).unwrap();
        let trees = module.env.trees.values();
        let roots = trees
            .map(|tree| TreeMemory::new(tree.clone(), 0).unwrap())
            .collect();
        Self {
            compiled,
            loaded,
            roots,
            printed: Mutex::new(String::new()),
        }
    }

    fn launch(&self, args: &Args<'_>) -> Result<Vec<u64>, KernelFailure> {
        let mut results = vec![0; self.compiled.code.n_results];
        let roots: Vec<&TreeMemory> = self.roots.iter().collect();
        self.loaded.launch(Launch {
            args,
            roots: &roots,
            results: &mut results,
            sink: &self.printed,
            seed: 7,
            most_reserved: u64::MAX,
            trace: None,
            later: None,
        })?;
        Ok(results)
    }

    fn call(&self, args: &[Scalar]) -> Vec<u64> {
        let mut slots = Args::new();
        args.iter().for_each(|a| slots.scalar(a.slot()));
        self.launch(&slots).unwrap()
    }

    fn assembly(&self) -> &str {
        self.compiled.assembly.as_deref().unwrap()
    }

    fn llvm_ir(&self) -> &str {
        self.compiled.llvm_ir.as_deref().unwrap()
    }
}

/// Whether the code works on vectors of the widest kind that the host has.
fn is_wide(assembly: &str) -> bool {
    assembly.contains("zmm") || assembly.contains("ymm") || !cfg!(target_arch = "x86_64")
}

/// A kernel that returns `expr`, the instructions that make `r`.
fn expression(params: &str, result: &str, insts: &str) -> String {
    format!(
        "kernel @f({params}) -> {result} {{
            task serial {{ yield [] }} {{ {insts} return [r] }}
            yield []
        }}"
    )
}

fn buffer_of(values: &[f32]) -> Buffer {
    let buffer = Buffer::zeroed(values.len() * 4).unwrap();
    for (i, &v) in values.iter().enumerate() {
        buffer.write_scalar(i * 4, Scalar::f32(v)).unwrap();
    }
    buffer
}

fn f32_at(buffer: &Buffer, i: usize) -> f32 {
    buffer.read_scalar(ScalarType::F32, i * 4).unwrap().as_f64() as f32
}
