//! Names this build of the compiler by what it is made of, for the cache of compiled kernels: code
//! that another build made is not taken for this one's.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// What decides how a lowered kernel becomes code, from the workspace's root.
const SOURCES: [&str; 9] = [
    "ir/base/src",
    "ir/src",
    "snode/src",
    "passes/src",
    "compiler/llvm/src",
    "compiler/src",
    "runtime/src",
    "runtime/device",
    "Cargo.lock",
];

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let root = here
        .parent()
        .expect("the crate is a folder of the workspace");
    let mut hasher = DefaultHasher::new();
    for source in SOURCES {
        let path = root.join(source);
        println!("cargo:rerun-if-changed={}", path.display());
        hash_all(&path, &mut hasher)?;
    }
    println!("cargo:rustc-env=AEROGEL_BUILD={:016x}", hasher.finish());
    Ok(())
}

fn hash_all(path: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    if !path.exists() {
        // A package without the workspace's lock file.
        return Ok(());
    }
    if path.is_file() {
        path.file_name().hash(hasher);
        fs::read(path)?.hash(hasher);
        return Ok(());
    }
    let entries = fs::read_dir(path)?.map(|entry| Ok(entry?.path()));
    let mut entries = entries.collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    entries.iter().try_for_each(|entry| hash_all(entry, hasher))
}
