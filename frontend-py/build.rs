//! For the wheel: libraries that LLVM needs are linked statically, so that only libc, libm and libgcc_s remain.
//!
//! The linker prefers a shared library to a static one in the same folder, so links to the static ones alone go into
//! a folder of their own that is searched first. `glibc.c` stands in for what glibc 2.28 lacks.

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
    replace_newer_names(&out);
}

/// What glibc has later than 2.28, the version that `manylinux_2_28` names. The two that are not in `glibc.c` are weak: what
/// uses them does without.
const NEWER: &str = "exp exp2 log log2 pow hypot hypotf pthread_getattr_np pthread_sigmask pthread_attr_getguardsize \
    pthread_attr_getstack pthread_attr_setstacksize pthread_create pthread_detach pthread_join pthread_key_create \
    pthread_key_delete pthread_once pthread_rwlock_rdlock pthread_rwlock_unlock pthread_rwlock_wrlock pthread_setname_np \
    pthread_setspecific dlopen dlsym dlclose dlerror stat fstat lstat fstatat stat64 fstat64 lstat64 fstatat64 mknod \
    mallinfo2 arc4random __libc_single_threaded gettid posix_spawn_file_actions_addchdir_np";

/// Links `glibc.c`, so that the wheel asks for no name that glibc has had only since 2.28.
fn replace_newer_names(out: &Path) {
    println!("cargo::rerun-if-changed=glibc.c");
    let target = std::env::var("TARGET").expect("cargo sets TARGET");
    if !target.ends_with("-linux-gnu") {
        return;
    }
    let object = out.join("glibc.o");
    let mut compiler = Command::new("cc");
    let done = compiler
        .args(["-c", "-O2", "-fPIC", "-Wall", "glibc.c", "-o"])
        .arg(&object)
        .status();
    assert!(
        done.is_ok_and(|status| status.success()),
        "`cc` compiles glibc.c"
    );
    let argument = |argument: &str| println!("cargo::rustc-link-arg-cdylib={argument}");
    argument(&object.display().to_string());
    for name in NEWER.split_whitespace() {
        argument(&format!("-Wl,--wrap={name}"));
    }
    // Where threads and `dlopen` were in 2.28.
    argument("-Wl,--push-state,--no-as-needed,-l:libpthread.so.0,-l:libdl.so.2,--pop-state");
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
