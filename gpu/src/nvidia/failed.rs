//! Error messages of NVIDIA's driver.

use std::ffi::CStr;

use super::{CUresult, Failure};
use crate::driver::DriverError;

/// The error for the caller.
pub(super) fn of(e: Failure) -> DriverError {
    use CUresult::*;
    let text = |found: Result<&CStr, Failure>| {
        found.map_or_else(
            |_| String::new(),
            |text| text.to_string_lossy().into_owned(),
        )
    };
    let what = match text(e.error_string()) {
        empty if empty.is_empty() => format!("{:?}", e.0),
        words => format!("{words} ({})", text(e.error_name())),
    };
    match e.0 {
        CUDA_ERROR_OUT_OF_MEMORY => DriverError::OutOfMemory(0),
        CUDA_ERROR_INVALID_PTX
        | CUDA_ERROR_NO_BINARY_FOR_GPU
        | CUDA_ERROR_UNSUPPORTED_PTX_VERSION
        | CUDA_ERROR_INVALID_IMAGE => DriverError::BadCode(what),
        CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES | CUDA_ERROR_INVALID_VALUE => DriverError::Refused(what),
        // After these nothing works in the context any more.
        CUDA_ERROR_ILLEGAL_ADDRESS
        | CUDA_ERROR_ILLEGAL_INSTRUCTION
        | CUDA_ERROR_MISALIGNED_ADDRESS
        | CUDA_ERROR_INVALID_ADDRESS_SPACE
        | CUDA_ERROR_INVALID_PC
        | CUDA_ERROR_HARDWARE_STACK_ERROR
        | CUDA_ERROR_LAUNCH_TIMEOUT
        | CUDA_ERROR_LAUNCH_FAILED
        | CUDA_ERROR_ASSERT
        | CUDA_ERROR_ECC_UNCORRECTABLE
        | CUDA_ERROR_DEVICE_UNAVAILABLE
        | CUDA_ERROR_DEINITIALIZED
        | CUDA_ERROR_CONTEXT_IS_DESTROYED => DriverError::Lost(what),
        _ => DriverError::Other(format!("the NVIDIA driver reports: {what}")),
    }
}

/// An allocation that failed, with its size.
pub(super) fn sized(bytes: u64) -> impl Fn(Failure) -> DriverError {
    move |e| match of(e) {
        DriverError::OutOfMemory(_) => DriverError::OutOfMemory(bytes),
        other => other,
    }
}
