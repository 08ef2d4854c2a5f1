//! Generated kernels as PTX: what the machine computes is what the interpreter does, bit by bit.
//!
//! `AEROGEL_N_PROGRAMS` says how many, `AEROGEL_FIRST_SEED` which come first.

use std::sync::atomic::{AtomicU64, Ordering};

use aerogel_ir::{Module, Op, print_module};
use aerogel_llvm::{OptLevel, compile, target};
use aerogel_passes::Options;
use aerogel_ptx::{Counts, Fault, Machine};
use aerogel_runtime::code::{Bounds, KernelCode};
use aerogel_runtime::launch::{KernelFailure, Launch};
use aerogel_runtime::{Buffer, abi};
use aerogel_tests::generate;
use aerogel_tests::run::{Inputs, Outcome, launch};

const BLOCKS: u32 = 2;
const THREADS: u32 = 64;

/// The code of a kernel for a card.
fn code(module: &Module, level: u8) -> (KernelCode, Vec<String>) {
    let mut module = module.clone();
    // A card has no host that gives memory, nor parts whose sums are their own.
    let options = Options {
        thread_local: false,
        ..Options::default()
    };
    aerogel_passes::run(&mut module, options, &mut ()).unwrap_or_else(|e| panic!("{e}"));
    let code = compile(&module, &target::nvptx(80), OptLevel(level), false).code;
    let text = |ptx: &Vec<u8>| String::from_utf8(ptx.clone()).expect("PTX is text");
    let texts = code.objects.iter().map(text).collect();
    (code, texts)
}

/// What a launch has on the card.
struct OnCard<'l, 'a> {
    machine: Machine,
    launch: Launch<'a>,
    code: &'l KernelCode,
    texts: &'l [String],
    counts: Counts,
}

fn bytes_of(buffer: &Buffer) -> Vec<u8> {
    let mut bytes = vec![0; buffer.len()];
    buffer.read(0, &mut bytes).expect("inside");
    bytes
}

fn words(all: &[u64]) -> Vec<u8> {
    all.iter().flat_map(|w| w.to_le_bytes()).collect()
}

impl OnCard<'_, '_> {
    /// Memory with these bytes.
    fn put(&mut self, bytes: &[u8]) -> u64 {
        let at = self.machine.allocate(bytes.len().max(8) as u64);
        let at = at.expect("the card has memory");
        self.machine.write(at, bytes).expect("inside");
        at
    }

    fn run(&mut self) -> Result<Result<(), KernelFailure>, Fault> {
        let buffers: Vec<&Buffer> = self.launch.roots.iter().map(|tree| tree.bytes()).collect();
        let trees: Vec<u64> = buffers.iter().map(|b| self.put(&bytes_of(b))).collect();
        let own = self.launch.args.arrays().to_vec();
        let arrays: Vec<u64> = own.iter().map(|b| self.put(&bytes_of(b))).collect();
        let mut slots = self.launch.args.slots().to_vec();
        let mut next = arrays.iter();
        for (slot, kind) in slots.iter_mut().zip(self.launch.args.kinds()) {
            if *kind == aerogel_runtime::code::ArgSlot::Pointer {
                *slot = *next.next().expect("an array for each pointer");
            }
        }
        let n_results = self.launch.results.len();
        let [args, roots] = [words(&slots), words(&trees)].map(|bytes| self.put(&bytes));
        let temps = self.put(&vec![0; self.code.temp_bytes]);
        let results = self.put(&vec![0; 8 * n_results]);
        let errors = self.put(&vec![0; size_of::<abi::ErrorRecord>()]);
        let stop = self.put(&[0; 8]);
        let context = [
            args,
            roots,
            temps,
            results,
            errors,
            0,
            self.launch.seed,
            stop,
            0,
        ];
        let context = self.put(&words(&context));
        let failure = self.tasks(context, errors)?;
        for (buffer, &at) in buffers.iter().zip(&trees).chain(own.iter().zip(&arrays)) {
            let mut bytes = vec![0; buffer.len()];
            self.machine.read(at, &mut bytes)?;
            buffer.write(0, &bytes).expect("inside");
        }
        let mut bytes = vec![0; 8 * n_results];
        self.machine.read(results, &mut bytes)?;
        for (result, word) in self.launch.results.iter_mut().zip(bytes.chunks_exact(8)) {
            *result = u64::from_le_bytes(word.try_into().expect("eight bytes"));
        }
        Ok(failure)
    }

    /// Runs all tasks, up to the first that fails.
    fn tasks(&mut self, context: u64, errors: u64) -> Result<Result<(), KernelFailure>, Fault> {
        for task in &self.code.tasks {
            let ends = match &task.bounds {
                Bounds::Serial => vec![0, 1],
                Bounds::Constant(all) => all.iter().flatten().copied().collect(),
                Bounds::Computed { symbol, n_axes } => {
                    let out = self.put(&vec![0; 16 * n_axes]);
                    self.start(symbol, 1, &[context, out])?;
                    let mut bytes = vec![0; 16 * n_axes];
                    self.machine.read(out, &mut bytes)?;
                    let ends = bytes.chunks_exact(8);
                    ends.map(|w| i64::from_le_bytes(w.try_into().expect("eight bytes")))
                        .collect()
                }
            };
            let extents = ends.chunks_exact(2).map(|end| (end[1] - end[0]).max(0));
            let total: i64 = extents.product();
            let threads = match task.bounds {
                Bounds::Serial => 1,
                _ => THREADS,
            };
            if total > 0 {
                self.start(&task.symbol, threads, &[context, 0, total as u64])?;
            }
            let mut record = [0; 16];
            self.machine.read(errors, &mut record)?;
            if record[0] != 0 {
                let site = u32::from_le_bytes(record[4..8].try_into().expect("four bytes"));
                return Ok(Err(KernelFailure::Check {
                    site: site as usize,
                    args: Vec::new(),
                }));
            }
        }
        Ok(Ok(()))
    }

    fn start(&mut self, symbol: &str, threads: u32, params: &[u64]) -> Result<(), Fault> {
        let params: Vec<Vec<u8>> = params.iter().map(|p| p.to_le_bytes().to_vec()).collect();
        let texts = self.texts.iter();
        let mut modules = texts.map(|text| {
            self.machine
                .load(text)
                .unwrap_or_else(|e| panic!("{e}\n{text}"))
        });
        let module = modules.find(|module| module.has_kernel(symbol));
        let module = module.unwrap_or_else(|| panic!("no text has `{symbol}`"));
        let blocks = if threads == 1 { 1 } else { BLOCKS };
        let ran =
            self.machine
                .launch(&module, symbol, [blocks, 1, 1], [threads, 1, 1], 0, &params)?;
        self.counts.instructions += ran.counts.instructions;
        Ok(())
    }
}

fn on_card(module: &Module, seed: u64, level: u8) -> Result<Outcome, Fault> {
    let (code, texts) = code(module, level);
    let inputs = Inputs::new(module, seed);
    let mut fault = None;
    let outcome = inputs.launch_by(module, seed, |launch| {
        let mut card = OnCard {
            machine: Machine::new(aerogel_ptx::Options {
                workers: 1,
                ..aerogel_ptx::Options::default()
            }),
            launch,
            code: &code,
            texts: &texts,
            counts: Counts::default(),
        };
        card.run().unwrap_or_else(|found| {
            fault = Some(found);
            Ok(())
        })
    });
    match fault {
        Some(fault) => Err(fault),
        None => Ok(outcome.canonical()),
    }
}

/// Whether a program does what cards do not do yet: print, or hold sparse memory.
fn is_apart(module: &Module) -> bool {
    let mut insts = module.funcs.values().flat_map(|func| func.insts.values());
    insts.any(|inst| matches!(inst.op, Op::Print { .. } | Op::Warn { .. }))
        || module.env.trees.values().any(|tree| tree.is_sparse())
}

#[test]
fn cards_compute_what_the_interpreter_does() {
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    let n: u64 = number("AEROGEL_N_PROGRAMS").unwrap_or(150);
    let first: u64 = number("AEROGEL_FIRST_SEED").unwrap_or(0);
    let (next, compared) = (AtomicU64::new(first), AtomicU64::new(0));
    let check = |seed: u64| {
        let module = generate::module(seed);
        let module = generate::on_dense(&module).unwrap_or(module);
        if is_apart(&module) {
            return;
        }
        let oracle = aerogel_interp::InterpKernel::new(module.clone()).expect("a kernel");
        let expected = launch(&Inputs::new(&module, seed), &module, &oracle, seed).canonical();
        let level = if seed.is_multiple_of(4) { 0 } else { 3 };
        let found = on_card(&module, seed, level)
            .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", print_module(&module)));
        // Where a check fails, who else had run by then is not known.
        if expected.results.is_none() && found.results.is_none() {
            return;
        }
        assert_eq!(expected, found, "seed {seed}\n{}", print_module(&module));
        compared.fetch_add(1, Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + n {
                        return;
                    }
                    check(seed);
                }
            });
        }
    });
    let compared = compared.into_inner();
    assert!(
        compared > n / 4,
        "only {compared} of {n} programs say something"
    );
}
