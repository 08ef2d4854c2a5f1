//! For the wheel: libraries that LLVM needs are linked statically, so that only libc, libm and libgcc_s remain.
//!
//! The linker prefers a shared library to a static one in the same folder, so links to the static ones alone go into
//! a folder of their own that is searched first.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_STATIC").is_none() {
        return;
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let folder = out.join("static");
    std::fs::create_dir_all(&folder).expect("OUT_DIR is writable");
    // Position-independent libffi has a name of its own in Debian.
    let wanted = [
        ("libz.a", ["libz.a", "libz.a"]),
        ("libzstd.a", ["libzstd.a", "libzstd.a"]),
        ("libffi.a", ["libffi_pic.a", "libffi.a"]),
        ("libstdc++.a", ["libstdc++.a", "libstdc++.a"]),
    ];
    for (name, sources) in wanted {
        match sources.iter().find_map(|source| find(source)) {
            Some(found) => {
                let link = folder.join(name);
                let _ = std::fs::remove_file(&link);
                std::os::unix::fs::symlink(&found, &link).expect("OUT_DIR takes links");
            }
            None => {
                println!("cargo::warning={name} not found; the wheel will need the shared library")
            }
        }
    }
    println!("cargo::rustc-link-search=native={}", folder.display());
}

/// Where the C compiler finds a library.
fn find(name: &str) -> Option<PathBuf> {
    let output = Command::new("cc")
        .arg(format!("-print-file-name={name}"))
        .output()
        .ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    Path::new(&path)
        .is_absolute()
        .then_some(path)
        .filter(|p| p.exists())
}
