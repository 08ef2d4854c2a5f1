//! Options of LLVM that have no other interface than its command line.
#![expect(unsafe_code, reason = "LLVM reads its command line from C strings")]

use std::ffi::CStr;

use inkwell::llvm_sys::support::LLVMParseCommandLineOptions;

use super::{Cpu, Level};

/// How much dearer than scalars, by LLVM's estimate, vectors made of straight code may be. With 32 vector registers and cheap
/// permutations they are faster than the estimate: scattering momentum to 27 nodes takes 7.7 ms instead of 8.6 ms. On machines
/// with 16 registers the estimate is right (9.0 ms instead of 8.5 ms). `benches/bench.py -b 06 -c 3d -t 1` measures it.
const SLP_THRESHOLD: &CStr = c"-slp-threshold=-2";

/// Sets the options of this process's LLVM, which all threads share: called once, before anything is compiled.
pub(super) fn set() {
    if !Cpu::X86_64(Level::V4).runs_here() {
        return;
    }
    let words = [c"aerogel".as_ptr(), SLP_THRESHOLD.as_ptr()];
    // SAFETY: the strings are static, and there are as many as stated; nothing is compiled yet that would read options.
    unsafe { LLVMParseCommandLineOptions(words.len() as i32, words.as_ptr(), std::ptr::null()) };
}
