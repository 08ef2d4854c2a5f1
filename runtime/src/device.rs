//! Devices, which run kernels.

use std::fmt;

use crate::code::{KernelCode, Site};
use crate::launch::{KernelFailure, Launch};

/// Something that runs kernels.
pub trait Device: Send + Sync {
    /// Whether launches can be hoped to succeed.
    fn is_usable(&self) -> bool {
        true
    }

    /// A key of the device's native code besides the target: code assembled for one key must not run on another.
    fn identity(&self) -> String {
        String::new()
    }

    /// Adds the device's native code, so that cached code need not be translated at each load.
    fn assemble(&self, _: &mut KernelCode) {}

    /// Makes a kernel ready to launch.
    fn load(&self, code: &KernelCode) -> Result<Box<dyn LoadedKernel>, LoadError>;
}

/// A kernel on its device.
pub trait LoadedKernel: Send + Sync {
    /// Runs the kernel, and waits for it unless `Launch::later` allows to return before.
    fn launch(&self, launch: Launch<'_>) -> Result<(), KernelFailure>;

    /// The kernel's messages, for rendering a failure.
    fn sites(&self) -> &[Site];
}

/// Why code cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError(pub String);

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot load a kernel: {}", self.0)
    }
}

impl std::error::Error for LoadError {}
