//! The simulated device: memory, modules, launches.

use std::sync::Arc;

use crate::code::{Code, Space};
use crate::error::{Fault, FaultKind, ParseError};
use crate::exec::{self, Grid};
use crate::launch::{Launched, Options, Stop};
use crate::memory::{Bad, Memory};
use crate::parse;

/// The PTX simulator.
///
/// ```
/// use aerogel_ptx::{Machine, Options};
///
/// let mut machine = Machine::new(Options::default());
/// let text = "
///     .version 7.0
///     .target sm_80
///     .address_size 64
///     .visible .entry twice(.param .u64 x) {
///         .reg .b32 %r<4>;
///         .reg .b64 %rd<4>;
///         ld.param.b64 %rd1, [x];
///         mov.u32 %r1, %tid.x;
///         mul.wide.u32 %rd2, %r1, 4;
///         add.s64 %rd3, %rd1, %rd2;
///         ld.global.b32 %r2, [%rd3];
///         add.s32 %r3, %r2, %r2;
///         st.global.b32 [%rd3], %r3;
///         ret;
///     }";
/// let module = machine.load(text)?;
/// let x = machine.allocate(16).expect("there is memory");
/// machine.write(x, &[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0])?;
/// machine.launch(&module, "twice", [1, 1, 1], [4, 1, 1], 0, &[x.to_le_bytes().to_vec()])?;
/// let mut found = [0; 16];
/// machine.read(x, &mut found)?;
/// assert_eq!(found[8], 6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Machine {
    options: Options,
    memory: Memory,
    /// How many launches there were.
    epoch: u64,
}

/// The code of a module on a machine.
#[derive(Clone)]
pub struct Module {
    code: Arc<Code>,
}

impl Module {
    /// Whether it has such a kernel.
    pub fn has_kernel(&self, name: &str) -> bool {
        let mut all = self.code.functions.iter();
        all.any(|func| func.is_kernel && func.name == name)
    }

    /// The address and the length of a variable in the machine's memory.
    pub fn variable(&self, name: &str) -> Option<(u64, u64)> {
        let mut all = self.code.variables.iter();
        let found = all.find(|v| v.name == name && v.space != Space::Shared)?;
        Some((found.at, found.length))
    }
}

impl Machine {
    /// A machine with empty memory.
    pub fn new(options: Options) -> Self {
        let memory = Memory::new(options.memory, options.races);
        Self {
            options,
            memory,
            epoch: 0,
        }
    }

    /// Reads a module, and gives its variables memory.
    ///
    /// # Errors
    /// If the text is no PTX, holds an instruction that the machine does not know, or there is no memory for what it
    /// declares.
    pub fn load(&mut self, text: &str) -> Result<Module, ParseError> {
        let mut code = parse::parse(text)?;
        code.note_shared();
        for variable in &mut code.variables {
            if variable.space == Space::Shared {
                continue;
            }
            let full = || ParseError {
                line: 0,
                message: format!("there is no memory for `{}`", variable.name),
            };
            let address = self.memory.allocate(variable.length).ok_or_else(full)?;
            variable.at = address;
            // Variables without numbers are zero.
            variable.bytes.resize(variable.length as usize, 0);
            self.memory
                .write(address, &variable.bytes)
                .map_err(|_| full())?;
            if variable.space == Space::Const {
                self.memory.seal(address);
            }
        }
        Ok(Module {
            code: Arc::new(code),
        })
    }

    /// Gives back what a module's variables have.
    pub fn unload(&mut self, module: &Module) {
        for variable in &module.code.variables {
            if variable.space != Space::Shared {
                // A module that was unloaded before has nothing any more.
                let _ = self.memory.free(variable.at);
            }
        }
    }

    /// Allocates bytes, which are uninitialised; none if there is no memory for them.
    pub fn allocate(&mut self, bytes: u64) -> Option<u64> {
        self.memory.allocate(bytes)
    }

    /// Addresses for so many bytes, which have no memory before `commit` gives it to them.
    pub fn reserve(&mut self, bytes: u64) -> Option<u64> {
        self.memory.reserve(bytes)
    }

    /// Gives memory to bytes of reserved addresses; whether there is any.
    ///
    /// # Errors
    /// If the bytes lie in no reserved range.
    pub fn commit(&mut self, address: u64, bytes: u64) -> Result<bool, Fault> {
        self.memory.commit(address, bytes).map_err(of_host)
    }

    /// Gives memory back.
    ///
    /// # Errors
    /// If the address is no allocation's.
    pub fn free(&mut self, address: u64) -> Result<(), Fault> {
        self.memory.free(address).map_err(of_host)
    }

    /// How many bytes are allocated.
    pub fn used(&self) -> u64 {
        self.memory.used()
    }

    /// Copies from the host.
    ///
    /// # Errors
    /// If the bytes lie in no allocation.
    pub fn write(&self, address: u64, from: &[u8]) -> Result<(), Fault> {
        self.memory.write(address, from).map_err(of_host)
    }

    /// Copies to the host; uninitialised bytes are zero.
    ///
    /// # Errors
    /// If the bytes lie in no allocation.
    pub fn read(&self, address: u64, to: &mut [u8]) -> Result<(), Fault> {
        self.memory.read(address, to).map_err(of_host)
    }

    /// Sets bytes.
    ///
    /// # Errors
    /// If the bytes lie in no allocation.
    pub fn fill(&self, address: u64, bytes: u64, value: u8) -> Result<(), Fault> {
        self.memory.fill(address, bytes, value).map_err(of_host)
    }

    /// Whether bytes lie in what is allocated.
    pub fn holds(&self, address: u64, bytes: u64) -> bool {
        self.memory.find(address, bytes).is_ok()
    }

    /// Whether all of these bytes have been written.
    pub fn is_written(&self, address: u64, bytes: u64) -> bool {
        self.memory.is_written(address, bytes)
    }

    /// Runs a kernel: blocks and threads along three axes, bytes of shared memory besides those of the module, and the
    /// bytes of each parameter.
    ///
    /// # Errors
    /// The first thing that a thread does and must not; memory is then as the threads have left it.
    pub fn launch(
        &mut self,
        module: &Module,
        kernel: &str,
        blocks: [u32; 3],
        threads: [u32; 3],
        shared: u64,
        params: &[Vec<u8>],
    ) -> Result<Launched, Fault> {
        self.launch_until((module, kernel), blocks, threads, shared, params, None)
    }

    /// As `launch`, but the host may end it.
    ///
    /// # Errors
    /// As `launch`.
    pub fn launch_until(
        &mut self,
        (module, kernel): (&Module, &str),
        blocks: [u32; 3],
        threads: [u32; 3],
        shared: u64,
        params: &[Vec<u8>],
        stop: Option<Stop<'_>>,
    ) -> Result<Launched, Fault> {
        let code = &module.code;
        let refuse = |message: String| Fault {
            function: kernel.to_owned(),
            ..of_host(Bad::new(FaultKind::Launch, message))
        };
        let mut all = code.functions.iter();
        let found = all.position(|func| func.is_kernel && func.is_defined && func.name == kernel);
        let func = found.ok_or_else(|| refuse(format!("there is no kernel `{kernel}`")))?;
        let entry = &code.functions[func];
        let count = |of: [u32; 3]| of.iter().map(|&n| u64::from(n)).product::<u64>();
        let most = entry
            .most_threads
            .unwrap_or(u64::MAX)
            .min(self.options.threads);
        if count(threads) == 0 || count(threads) > most {
            return Err(refuse(format!(
                "a block of {} threads, where 1 to {most} are possible",
                count(threads)
            )));
        }
        if count(blocks) == 0 {
            return Err(refuse("a grid without blocks".to_owned()));
        }
        let wanted = entry.shared_bytes + shared;
        if wanted > self.options.shared {
            return Err(refuse(format!(
                "{wanted} bytes of shared memory for a block, where there are {}",
                self.options.shared
            )));
        }
        if params.len() != entry.params.len() {
            let (given, n) = (params.len(), entry.params.len());
            return Err(refuse(format!("{given} parameters where there are {n}")));
        }
        let mut bytes = vec![0; entry.param_bytes as usize];
        for (slot, given) in entry.params.iter().zip(params) {
            if given.len() as u64 != slot.bytes {
                let (n, given) = (slot.bytes, given.len());
                return Err(refuse(format!("a parameter of {n} bytes is given {given}")));
            }
            let at = slot.offset as usize;
            bytes[at..at + given.len()].copy_from_slice(given);
        }
        self.epoch += 1;
        let ran = exec::run(&Grid {
            code,
            func,
            memory: &self.memory,
            options: &self.options,
            blocks,
            threads,
            shared: code.shared_bytes.next_multiple_of(16) + shared,
            dynamic_shared: shared,
            params: bytes,
            epoch: self.epoch,
            stop,
        });
        ran.map_err(|fault| *fault)
    }
}

/// A fault that is no thread's.
fn of_host(bad: Bad) -> Fault {
    Fault {
        kind: bad.kind,
        message: bad.message,
        function: String::new(),
        line: 0,
        instruction: String::new(),
        thread: [0; 3],
        block: [0; 3],
    }
}
