//! Object files loaded into this process by LLVM's ORC.
//!
//! The objects of a kernel get a library of their own, so that two kernels may use the same names. LLVM cannot
//! destroy a library through its C interface, so empty ones are reused for the next kernel. LLVM's
//! session runs no threads of its own; a lock makes loads of several threads take turns.
#![expect(unsafe_code, reason = "ORC has a C interface only")]

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;
use std::sync::{Mutex, MutexGuard, OnceLock};

use aerogel_runtime::{LoadError, LoadedObject, ObjectLoader};
use inkwell::llvm_sys::core::LLVMCreateMemoryBufferWithMemoryRangeCopy;
use inkwell::llvm_sys::error::{LLVMDisposeErrorMessage, LLVMErrorRef, LLVMGetErrorMessage};
use inkwell::llvm_sys::orc2::lljit::*;
use inkwell::llvm_sys::orc2::*;

use crate::target;

/// Loads object files for the host.
#[derive(Clone, Copy, Debug, Default)]
pub struct Jit;

struct Session {
    jit: LLVMOrcLLJITRef,
    /// Libraries without objects.
    idle: Vec<LLVMOrcJITDylibRef>,
    n_libraries: usize,
}

// SAFETY: ORC's sessions may be used from any thread.
unsafe impl Send for Session {}

struct Loaded {
    library: LLVMOrcJITDylibRef,
    tracker: LLVMOrcResourceTrackerRef,
}

// SAFETY: the handles are used under the session's lock only.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

fn session() -> Result<MutexGuard<'static, Session>, LoadError> {
    static SESSION: OnceLock<Result<Mutex<Session>, LoadError>> = OnceLock::new();
    let session = SESSION.get_or_init(|| Session::new().map(Mutex::new));
    let session = session.as_ref().map_err(LoadError::clone)?;
    Ok(session.lock().unwrap_or_else(|e| e.into_inner()))
}

fn check(error: LLVMErrorRef) -> Result<(), LoadError> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: `error` is a failure, which this call consumes.
    let message = unsafe { LLVMGetErrorMessage(error) };
    // SAFETY: LLVM returns a string.
    let text = unsafe { CStr::from_ptr(message) }
        .to_string_lossy()
        .into_owned();
    // SAFETY: the message is not used any more.
    unsafe { LLVMDisposeErrorMessage(message) };
    Err(LoadError(text))
}

impl Session {
    fn new() -> Result<Self, LoadError> {
        // Makes LLVM know the host.
        target::host();
        let mut jit = ptr::null_mut();
        // SAFETY: a null builder stands for the defaults.
        check(unsafe { LLVMOrcCreateLLJIT(&mut jit, ptr::null_mut()) })?;
        Ok(Self {
            jit,
            idle: Vec::new(),
            n_libraries: 0,
        })
    }

    fn library(&mut self) -> Result<LLVMOrcJITDylibRef, LoadError> {
        if let Some(library) = self.idle.pop() {
            return Ok(library);
        }
        let name = CString::new(format!("kernel{}", self.n_libraries)).expect("no zero inside");
        self.n_libraries += 1;
        // SAFETY: the session lives for ever.
        let session = unsafe { LLVMOrcLLJITGetExecutionSession(self.jit) };
        // SAFETY: the name is unused in this session.
        let library = unsafe { LLVMOrcExecutionSessionCreateBareJITDylib(session, name.as_ptr()) };
        let mut symbols: Vec<_> = HOST_SYMBOLS
            .iter()
            .map(|&(name, address)| LLVMOrcCSymbolMapPair {
                // SAFETY: the name ends in a zero.
                Name: unsafe { LLVMOrcLLJITMangleAndIntern(self.jit, name.as_ptr()) },
                Sym: LLVMJITEvaluatedSymbol {
                    Address: address() as u64,
                    Flags: LLVMJITSymbolFlags {
                        GenericFlags: LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsExported
                            as u8
                            | LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsCallable as u8,
                        TargetFlags: 0,
                    },
                },
            })
            .collect();
        // SAFETY: the pairs are copied, and their names' references taken over.
        let unit = unsafe { LLVMOrcAbsoluteSymbols(symbols.as_mut_ptr(), symbols.len()) };
        // SAFETY: both are live; the library takes the unit over.
        check(unsafe { LLVMOrcJITDylibDefine(library, unit) })?;
        Ok(library)
    }
}

impl ObjectLoader for Jit {
    fn load(&self, objects: &[Vec<u8>]) -> Result<Box<dyn LoadedObject>, LoadError> {
        let mut session = session()?;
        let library = session.library()?;
        // SAFETY: the library is live.
        let tracker = unsafe { LLVMOrcJITDylibCreateResourceTracker(library) };
        // Dropped on an early return, which gives the library back.
        let loaded = Loaded { library, tracker };
        let added = objects.iter().try_for_each(|object| {
            // SAFETY: the bytes are copied.
            let buffer = unsafe {
                LLVMCreateMemoryBufferWithMemoryRangeCopy(
                    object.as_ptr().cast::<c_char>(),
                    object.len(),
                    c"kernel".as_ptr(),
                )
            };
            // SAFETY: the JIT takes the buffer over.
            check(unsafe { LLVMOrcLLJITAddObjectFileWithRT(session.jit, tracker, buffer) })
        });
        drop(session);
        added?;
        Ok(Box::new(loaded))
    }
}

impl LoadedObject for Loaded {
    fn address(&self, symbol: &str) -> Option<usize> {
        let session = session().ok()?;
        let name = CString::new(symbol).ok()?;
        // SAFETY: the name ends in a zero.
        let name = unsafe { LLVMOrcLLJITMangleAndIntern(session.jit, name.as_ptr()) };
        let mut order = LLVMOrcCJITDylibSearchOrderElement {
            JD: self.library,
            JDLookupFlags:
                LLVMOrcJITDylibLookupFlags::LLVMOrcJITDylibLookupFlagsMatchExportedSymbolsOnly,
        };
        let mut wanted = LLVMOrcCLookupSetElement {
            Name: name,
            LookupFlags: LLVMOrcSymbolLookupFlags::LLVMOrcSymbolLookupFlagsRequiredSymbol,
        };
        let mut found: Option<usize> = None;
        // SAFETY: the session lives for ever.
        let execution = unsafe { LLVMOrcLLJITGetExecutionSession(session.jit) };
        // SAFETY: without threads of its own the session calls `take_address` before it returns;
        // the look-up takes the name over.
        unsafe {
            LLVMOrcExecutionSessionLookup(
                execution,
                LLVMOrcLookupKind::LLVMOrcLookupKindStatic,
                &mut order,
                1,
                &mut wanted,
                1,
                take_address,
                ptr::from_mut(&mut found).cast(),
            );
        }
        found
    }
}

extern "C" fn take_address(
    error: LLVMErrorRef,
    pairs: LLVMOrcCSymbolMapPairs,
    n_pairs: usize,
    found: *mut c_void,
) {
    if check(error).is_ok() && n_pairs == 1 {
        // SAFETY: there is one pair.
        let address = unsafe { (*pairs).Sym.Address };
        // SAFETY: `address` passed a pointer to its local.
        unsafe { *found.cast::<Option<usize>>() = Some(address as usize) };
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let Ok(mut session) = session() else { return };
        // SAFETY: nobody calls code of an object that is dropped.
        let removed = check(unsafe { LLVMOrcResourceTrackerRemove(self.tracker) });
        // SAFETY: the tracker is not used any more.
        unsafe { LLVMOrcReleaseResourceTracker(self.tracker) };
        if removed.is_ok() {
            session.idle.push(self.library);
        }
    }
}

macro_rules! host_symbols {
    ($($name:ident)*) => {
        unsafe extern "C" { $(fn $name();)* }

        /// Functions of the C library that LLVM's code may call.
        const HOST_SYMBOLS: &[(&CStr, fn() -> usize)] = &[$((
            match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("names have no zero inside"),
            },
            || $name as *const () as usize,
        ),)*];
    };
}

host_symbols! {
    memcpy memset memmove
    sin cos tan asin acos atan sinh cosh tanh exp exp2 log log2 pow atan2 fmod fma
    sinf cosf tanf asinf acosf atanf sinhf coshf tanhf expf exp2f logf log2f powf atan2f fmodf fmaf
    floor ceil trunc round floorf ceilf truncf roundf
    sincos sincosf __powidf2 __powisf2
}

#[cfg(test)]
mod tests {
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;

    use super::*;
    use crate::optimize::{OptLevel, compile};

    const SAXPY: &str = "
        define void @saxpy(ptr %x, ptr noalias %y, i64 %n) {
        entry:
          br label %loop
        loop:
          %i = phi i64 [ 0, %entry ], [ %next, %loop ]
          %px = getelementptr inbounds float, ptr %x, i64 %i
          %py = getelementptr inbounds float, ptr %y, i64 %i
          %vx = load float, ptr %px
          %vy = load float, ptr %py
          %m = fmul float %vx, 2.0
          %s = fadd float %m, %vy
          store float %s, ptr %py
          %next = add nsw i64 %i, 1
          %more = icmp slt i64 %next, %n
          br i1 %more, label %loop, label %done
        done:
          ret void
        }";

    fn object(text: &str) -> Vec<u8> {
        let context = Context::create();
        let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "test");
        let module = context.create_module_from_ir(buffer).unwrap();
        compile(&context, &module, &target::host(), OptLevel(3), false).object
    }

    fn saxpy(loaded: &dyn LoadedObject, x: &[f32], y: &mut [f32]) {
        let address = loaded.address("saxpy").unwrap();
        // SAFETY: the text above says so.
        let f = unsafe {
            std::mem::transmute::<usize, unsafe extern "C" fn(*const f32, *mut f32, i64)>(address)
        };
        // SAFETY: both arrays have that many elements.
        unsafe { f(x.as_ptr(), y.as_mut_ptr(), x.len().min(y.len()) as i64) };
    }

    #[test]
    fn saxpy_runs() {
        let object = [object(SAXPY)];
        // Twice at once, and again in the library that the first two gave back.
        for _ in 0..3 {
            let one = Jit.load(&object).unwrap();
            let two = Jit.load(&object).unwrap();
            let x: Vec<f32> = (0..1000).map(|i| i as f32).collect();
            let mut y = vec![1.0; 1000];
            saxpy(one.as_ref(), &x, &mut y);
            saxpy(two.as_ref(), &x, &mut y);
            assert!(
                y.iter()
                    .enumerate()
                    .all(|(i, &v)| v == 4.0 * i as f32 + 1.0)
            );
        }
    }

    #[test]
    fn damaged_objects_are_refused() {
        let mut object = object(SAXPY);
        object.truncate(100);
        let refused = match Jit.load(&[object]) {
            Ok(loaded) => loaded.address("saxpy").is_none(),
            Err(_) => true,
        };
        assert!(refused);
    }
}
