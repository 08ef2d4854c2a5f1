//! The project's files, for tests of its structure.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the workspace.
///
/// # Panics
/// If this crate does not lie in a folder of it.
pub fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the workspace").to_owned()
}

/// The tracked files that match a pattern of Git's, by their paths from the root.
///
/// # Panics
/// If Git does not list them.
pub fn files(pattern: &str) -> Vec<String> {
    let out = Command::new("git")
        .args(["ls-files", pattern])
        .current_dir(root())
        .output()
        .expect("git lists the sources");
    let text = String::from_utf8(out.stdout).expect("paths are text");
    text.lines().map(str::to_owned).collect()
}
