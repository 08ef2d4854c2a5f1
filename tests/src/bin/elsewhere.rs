//! Launches generated programs on another processor than they were compiled on, by this project's own runtime, and
//! prints what each left behind: `elsewhere FOLDER`, where `SEED.code` describes a kernel and `SEED.so` is it.
//! Where there is a `SEED.case` as well, it prints the first decision that differs from NumPy's.

#![expect(unsafe_code, reason = "loads shared objects")]

use std::ffi::{CString, c_char, c_int, c_void};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aerogel_runtime::cpu::{CpuDevice, LoadedObject, ObjectLoader, Pool};
use aerogel_runtime::{Device, KernelCode, LoadError};
use aerogel_tests::decisions::Case;
use aerogel_tests::generate;
use aerogel_tests::run::{Inputs, launch};

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

const RTLD_NOW: c_int = 2;

/// Loads a shared object, whatever the objects were that it was linked from.
struct Linked(PathBuf);

struct Library(*mut c_void);

// SAFETY: a handle of `dlopen` may be used by any thread.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl ObjectLoader for Linked {
    fn load(&self, _: &[Vec<u8>]) -> Result<Box<dyn LoadedObject>, LoadError> {
        let path = CString::new(self.0.as_os_str().as_encoded_bytes())
            .map_err(|e| LoadError(e.to_string()))?;
        // SAFETY: the path ends in a zero; a kernel's object has no initialisers.
        let library = unsafe { dlopen(path.as_ptr(), RTLD_NOW) };
        if library.is_null() {
            return Err(LoadError(format!("{} cannot be opened", self.0.display())));
        }
        Ok(Box::new(Library(library)))
    }
}

impl LoadedObject for Library {
    fn address(&self, symbol: &str) -> Option<usize> {
        let name = CString::new(symbol).ok()?;
        // SAFETY: libraries stay open, and the name ends in a zero.
        let found = unsafe { dlsym(self.0, name.as_ptr()) };
        (!found.is_null()).then_some(found as usize)
    }
}

fn main() {
    let folder = std::env::args_os().nth(1).expect("a folder");
    let folder = Path::new(&folder);
    let files = std::fs::read_dir(folder).expect("a folder");
    let mut seeds: Vec<u64> = files
        .filter_map(|file| {
            let name = file.ok()?.file_name().into_string().ok()?;
            name.strip_suffix(".code")?.parse().ok()
        })
        .collect();
    seeds.sort_unstable();
    let pool = Arc::new(Pool::new(2));
    let mut out = std::io::stdout().lock();
    for seed in seeds {
        let code = std::fs::read(folder.join(format!("{seed}.code"))).expect("it was listed");
        let code: KernelCode = postcard::from_bytes(&code).expect("the same version wrote it");
        let object = Linked(folder.join(format!("{seed}.so")));
        let kernel = CpuDevice::new(pool.clone(), Box::new(object))
            .load(&code)
            .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        if folder.join(format!("{seed}.case")).exists() {
            let found = Case::read(folder, seed).first_difference(kernel.as_ref());
            writeln!(out, "{seed} {found:?}").expect("somebody reads it");
            continue;
        }
        let module = generate::module(seed);
        let inputs = Inputs::new(&module, seed);
        let outcome = launch(&inputs, &module, kernel.as_ref(), seed).canonical();
        writeln!(out, "{seed} {outcome:?}").expect("somebody reads it");
    }
}
