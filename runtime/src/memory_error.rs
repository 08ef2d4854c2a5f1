//! Errors of memory, of the host or of a device.

use std::fmt;

use aerogel_snode::NodeId;

/// An error of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryError {
    /// There is not so much memory.
    OutOfMemory {
        /// The requested size.
        bytes: usize,
    },
    /// There is no memory for another cell of a sparse node.
    NoCell {
        /// The node.
        node: NodeId,
    },
    /// A device has not so much memory.
    DeviceFull {
        /// The requested size; 0 if the device does not report it.
        bytes: usize,
    },
    /// A device does not give back what was there.
    DeviceLost,
    /// A device that this process, the child of a fork, must not use has what was there.
    DeviceForked,
    /// A device has failed to copy its data; a later attempt may succeed.
    DeviceFailed,
    /// A kernel that was launched before has failed on a device; whoever launched it knows why.
    LaunchFailed,
    /// The memory is another package's, on a device: code of the host cannot work there.
    DeviceOnly,
    /// Somebody sees the host's memory, which no device does.
    HostOnly,
    /// An access beyond the end.
    OutOfRange {
        /// First byte of the access.
        offset: usize,
        /// Its length.
        bytes: usize,
        /// The buffer's length.
        len: usize,
    },
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemoryError::OutOfMemory { bytes } => {
                write!(f, "out of memory: cannot allocate {bytes} bytes")
            }
            MemoryError::NoCell { node } => write!(f, "out of memory for the cells of node {node}"),
            MemoryError::DeviceFull { bytes: 0 } => f.write_str("out of memory on the device"),
            MemoryError::DeviceFull { bytes } => {
                write!(
                    f,
                    "out of memory on the device: cannot allocate {bytes} bytes"
                )
            }
            MemoryError::DeviceLost => f.write_str("the device was lost, with all data on it"),
            MemoryError::DeviceForked => f.write_str(
                "data on a CUDA device cannot be read in a forked child process: read it \
                 before the fork, or start processes by `spawn`",
            ),
            MemoryError::DeviceFailed => f.write_str("the device cannot read back its data"),
            MemoryError::LaunchFailed => f.write_str("a kernel that was launched before has failed"),
            MemoryError::DeviceOnly => f.write_str(
                "the array is on a CUDA device and shared with another package: call ti.init(arch=ti.cuda) for the same \
                 device, or copy it by `to_numpy()`",
            ),
            MemoryError::HostOnly => f.write_str(
                "the array shares its memory with NumPy, and a CUDA device cannot access it: copy it by `from_numpy` to another one",
            ),
            MemoryError::OutOfRange { offset, bytes, len } => write!(
                f,
                "access of {bytes} bytes at {offset} in a buffer of {len} bytes"
            ),
        }
    }
}

impl std::error::Error for MemoryError {}
