//! The interface of drivers.

use std::fmt;
use std::time::Duration;

/// The properties of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// Its name.
    pub name: String,
    /// Its compute capability, times ten.
    pub sm: u32,
    /// How many blocks it runs at once where each has so many threads as is usual.
    pub blocks: u32,
    /// Threads that a block may have.
    pub threads: u32,
    /// Bytes of memory.
    pub memory: u64,
    /// The version of CUDA that its driver is for.
    pub driver: [u32; 2],
}

/// A driver. Launches, fills and copies run in the order of the calls; a launch may have only begun when the call
/// returns, a copy from the device is complete.
pub trait Driver: Send + Sync {
    /// The device's properties.
    fn card(&self) -> &Card;

    /// The address of so many bytes, of which nothing is known.
    fn allocate(&self, bytes: u64) -> Result<u64, DriverError>;

    /// Addresses for so many bytes, which have no memory yet.
    fn reserve(&self, bytes: u64) -> Result<u64, DriverError>;

    /// Gives memory to bytes of reserved addresses that have none; what they hold then is zero.
    fn commit(&self, address: u64, bytes: u64) -> Result<(), DriverError>;

    /// Gives back what was allocated or reserved.
    fn free(&self, address: u64);

    /// Copies to the device.
    fn write(&self, to: u64, from: &[u8]) -> Result<(), DriverError>;

    /// Copies from the device.
    fn read(&self, from: u64, to: &mut [u8]) -> Result<(), DriverError>;

    /// Copies between two disjoint ranges of device memory.
    fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), DriverError>;

    /// Sets bytes.
    fn fill(&self, address: u64, bytes: u64, value: u8) -> Result<(), DriverError>;

    /// Compiles PTX to the device's native code.
    fn assemble(&self, ptx: &str) -> Result<Vec<u8>, DriverError>;

    /// Loads a module, from PTX or what `assemble` made of it: its number.
    fn load(&self, code: &[u8]) -> Result<u64, DriverError>;

    /// Gives each thread at least so many bytes of stack, for functions that call themselves.
    fn set_stack(&self, bytes: u64) -> Result<(), DriverError>;

    /// Gives a module back.
    fn unload(&self, module: u64);

    /// A kernel of a module: its number.
    fn function(&self, module: u64, name: &str) -> Result<u64, DriverError>;

    /// Launches a kernel.
    fn launch(&self, function: u64, grid: Grid, params: &[u64]) -> Result<(), DriverError>;

    /// Makes a graph of launches that follow each other, which is launched as one: its number.
    fn graph(&self, launches: &[KernelLaunch]) -> Result<u64, DriverError>;

    /// Launches all of a graph.
    fn launch_graph(&self, graph: u64) -> Result<(), DriverError>;

    /// Gives a graph back; a launch of it may still run.
    fn drop_graph(&self, graph: u64);

    /// Records an event that occurs when all earlier work is done; returns its number.
    fn mark(&self) -> Result<u64, DriverError>;

    /// The time between two notes, when both are made; they are given back.
    fn between(&self, first: u64, last: u64) -> Result<Duration, DriverError>;

    /// What launches, fills and copies are queued in, as the driver numbers it.
    fn stream(&self) -> u64;

    /// Checks that bytes of another owner are this device's, and waits for the owner's work in a stream.
    fn adopt(&self, address: u64, bytes: u64, stream: Option<u64>) -> Result<(), DriverError>;

    /// The address of a word that is not zero while launches shall end: kernels, and `wait`, set it.
    fn stop_word(&self) -> u64;

    /// Waits until all is done. When `stop` becomes true meanwhile, the word of `stop_word` is set.
    fn wait(&self, stop: &(dyn Fn() -> bool + Sync)) -> Result<(), DriverError>;
}

/// A driver that somebody else looks at too.
impl<D: Driver + ?Sized> Driver for std::sync::Arc<D> {
    fn card(&self) -> &Card {
        (**self).card()
    }

    fn allocate(&self, bytes: u64) -> Result<u64, DriverError> {
        (**self).allocate(bytes)
    }

    fn reserve(&self, bytes: u64) -> Result<u64, DriverError> {
        (**self).reserve(bytes)
    }

    fn commit(&self, address: u64, bytes: u64) -> Result<(), DriverError> {
        (**self).commit(address, bytes)
    }

    fn free(&self, address: u64) {
        (**self).free(address);
    }

    fn write(&self, to: u64, from: &[u8]) -> Result<(), DriverError> {
        (**self).write(to, from)
    }

    fn read(&self, from: u64, to: &mut [u8]) -> Result<(), DriverError> {
        (**self).read(from, to)
    }

    fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), DriverError> {
        (**self).copy(to, from, bytes)
    }

    fn fill(&self, address: u64, bytes: u64, value: u8) -> Result<(), DriverError> {
        (**self).fill(address, bytes, value)
    }

    fn assemble(&self, ptx: &str) -> Result<Vec<u8>, DriverError> {
        (**self).assemble(ptx)
    }

    fn load(&self, code: &[u8]) -> Result<u64, DriverError> {
        (**self).load(code)
    }

    fn set_stack(&self, bytes: u64) -> Result<(), DriverError> {
        (**self).set_stack(bytes)
    }

    fn unload(&self, module: u64) {
        (**self).unload(module);
    }

    fn function(&self, module: u64, name: &str) -> Result<u64, DriverError> {
        (**self).function(module, name)
    }

    fn launch(&self, function: u64, grid: Grid, params: &[u64]) -> Result<(), DriverError> {
        (**self).launch(function, grid, params)
    }

    fn graph(&self, launches: &[KernelLaunch]) -> Result<u64, DriverError> {
        (**self).graph(launches)
    }

    fn launch_graph(&self, graph: u64) -> Result<(), DriverError> {
        (**self).launch_graph(graph)
    }

    fn drop_graph(&self, graph: u64) {
        (**self).drop_graph(graph);
    }

    fn mark(&self) -> Result<u64, DriverError> {
        (**self).mark()
    }

    fn between(&self, first: u64, last: u64) -> Result<Duration, DriverError> {
        (**self).between(first, last)
    }

    fn stream(&self) -> u64 {
        (**self).stream()
    }

    fn adopt(&self, address: u64, bytes: u64, stream: Option<u64>) -> Result<(), DriverError> {
        (**self).adopt(address, bytes, stream)
    }

    fn stop_word(&self) -> u64 {
        (**self).stop_word()
    }

    fn wait(&self, stop: &(dyn Fn() -> bool + Sync)) -> Result<(), DriverError> {
        (**self).wait(stop)
    }
}

/// How many threads run a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Blocks.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of shared memory for a block, besides those that the code declares.
    pub shared: u32,
}

/// A launch of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelLaunch {
    /// The kernel, as the driver numbers it.
    pub function: u64,
    /// How many threads run it.
    pub grid: Grid,
    /// What they are given.
    pub params: Vec<u64>,
}

/// Why a call of a driver fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriverError {
    /// There is no driver: where it was looked for.
    Missing(String),
    /// The driver is older than what is needed: its version, and the oldest that does.
    TooOld([u32; 2], [u32; 2]),
    /// There is no such device: its number, and how many there are.
    NoCard(u32, u32),
    /// The device is too old: its name, and its compute capability.
    OldCard(String, u32),
    /// There is not so much memory; 0 where the driver does not say for what.
    OutOfMemory(u64),
    /// The module has no such kernel.
    NoFunction(String),
    /// The code cannot be loaded: what the driver says.
    BadCode(String),
    /// The device cannot run such a launch: its requirements.
    Refused(String),
    /// A kernel caused a fault; data on the device may be lost.
    Fault(String),
    /// The device does not respond any more.
    Lost(String),
    /// A launch that had returned before it ended has failed; its caller gets the error.
    Earlier,
    /// This process is a child of the one that opened the device.
    Forked,
    /// Anything else.
    Other(String),
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = |[major, minor]: &[u32; 2]| format!("{major}.{minor}");
        match self {
            Self::Missing(what) => write!(f, "no NVIDIA driver was found: {what}"),
            Self::TooOld(found, needed) => write!(
                f,
                "the NVIDIA driver is for CUDA {}, and at least {} is needed: install a newer one",
                version(found),
                version(needed)
            ),
            Self::NoCard(number, 0) => {
                write!(
                    f,
                    "there is no device cuda:{number}: the driver lists no devices"
                )
            }
            Self::NoCard(number, n) => {
                write!(
                    f,
                    "there is no device cuda:{number}: the driver lists {n}, from cuda:0 on"
                )
            }
            Self::OldCard(name, sm) => write!(
                f,
                "{name} has compute capability {}.{}, and 7.0 is needed",
                sm / 10,
                sm % 10
            ),
            Self::OutOfMemory(0) => f.write_str("out of memory on the device"),
            Self::OutOfMemory(bytes) => {
                write!(
                    f,
                    "out of memory on the device: cannot allocate {bytes} bytes"
                )
            }
            Self::NoFunction(name) => write!(f, "the code has no kernel `{name}`"),
            Self::BadCode(what) => write!(f, "the driver rejects the code: {what}"),
            Self::Refused(what) => write!(f, "the device cannot launch it: {what}"),
            Self::Fault(what) => write!(f, "a fault on the device: {what}"),
            Self::Lost(what) => {
                write!(f, "the device was lost: {what}; call ti.init to start over")
            }
            Self::Earlier => f.write_str("a kernel that was launched before has failed"),
            Self::Forked => f.write_str(
                "a CUDA device that was opened before a fork cannot be used in the child process: \
                 call ti.init only there, or start processes by `spawn`",
            ),
            Self::Other(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for DriverError {}
