//! The direction of dependencies, and the fences around unsafe code, LLVM, Python and its parser.

use aerogel_tests::sources::{files, root};

/// Which workspace crates each may name. A new edge is an architectural change: say so here.
const EDGES: &[(&str, &[&str])] = &[
    ("aerogel-base", &[]),
    ("aerogel-draw", &[]),
    ("aerogel-linalg", &[]),
    ("aerogel-ptx", &[]),
    ("aerogel-viz", &[]),
    ("aerogel-snode", &["aerogel-base"]),
    ("aerogel-ir", &["aerogel-base", "aerogel-snode"]),
    ("aerogel-runtime", &["aerogel-base", "aerogel-snode"]),
    ("aerogel-gpu", &["aerogel-ptx", "aerogel-runtime"]),
    (
        "aerogel-interp",
        &[
            "aerogel-base",
            "aerogel-ir",
            "aerogel-runtime",
            "aerogel-snode",
        ],
    ),
    (
        "aerogel-passes",
        &["aerogel-base", "aerogel-ir", "aerogel-snode"],
    ),
    (
        "aerogel-llvm",
        &[
            "aerogel-base",
            "aerogel-ir",
            "aerogel-runtime",
            "aerogel-snode",
        ],
    ),
    (
        "aerogel-compiler",
        &[
            "aerogel-base",
            "aerogel-gpu",
            "aerogel-interp",
            "aerogel-ir",
            "aerogel-llvm",
            "aerogel-passes",
            "aerogel-runtime",
            "aerogel-snode",
        ],
    ),
    (
        "aerogel-tensor",
        &[
            "aerogel-base",
            "aerogel-compiler",
            "aerogel-ir",
            "aerogel-linalg",
            "aerogel-runtime",
            "aerogel-snode",
        ],
    ),
    (
        "aerogel-py",
        &[
            "aerogel-base",
            "aerogel-compiler",
            "aerogel-draw",
            "aerogel-ir",
            "aerogel-linalg",
            "aerogel-runtime",
            "aerogel-snode",
            "aerogel-tensor",
        ],
    ),
];

/// Words that only the named files may hold.
const FENCES: &[(&str, &[&str])] = &[
    ("inkwell", &["compiler/llvm/"]),
    ("llvm_sys", &["compiler/llvm/src/"]),
    (
        "pyo3",
        &[
            "frontend-py/src/py/",
            "frontend-py/src/lib.rs",
            "gui/src/frame.rs",
            "gui/src/lib.rs",
            "gui/src/room.rs",
            "gui/src/window.rs",
        ],
    ),
    (
        "cudarc",
        &["gpu/src/nvidia.rs", "gpu/src/nvidia/preallocated.rs"],
    ),
    ("wgpu", &["gui/src/"]),
    ("winit", &["gui/src/"]),
    ("tiny_skia", &["gui/draw/src/"]),
    ("png::", &["gui/draw/src/"]),
    ("ruff_python", &["frontend-py/src/parse.rs"]),
    ("hashbrown::", &["ir/base/src/hash.rs"]),
];

/// Files that may hold unsafe code.
const UNSAFE: &[&str] = &[
    "runtime/src/cpu/plan.rs",
    "runtime/src/cpu/task.rs",
    "runtime/src/cpu/growing.rs",
    "runtime/src/buffer.rs",
    "runtime/src/faults.rs",
    "runtime/src/interrupt.rs",
    "runtime/src/status.rs",
    "runtime/src/stdout.rs",
    "runtime/src/cpu/memory.rs",
    "runtime/src/cpu/pool.rs",
    "compiler/llvm/src/builder.rs",
    "compiler/llvm/src/diagnostics.rs",
    "compiler/llvm/src/jit.rs",
    "frontend-py/src/py/buffer.rs",
    "frontend-py/src/py/exchange.rs",
    "frontend-py/src/py/tensor/blas.rs",
    "frontend-py/src/py/tracer.rs",
    "gpu/src/nvidia.rs",
    "gpu/src/nvidia/preallocated.rs",
    "gui/src/x11.rs",
    "tests/src/bin/elsewhere.rs",
    "frontend-py/src/py/foreign/array.rs",
    "frontend-py/src/py/foreign/dlpack.rs",
    "frontend-py/src/py/foreign/numpy.rs",
];

fn sources() -> Vec<(String, String)> {
    let read = |f: String| {
        let text = std::fs::read_to_string(root().join(&f)).ok()?;
        Some((f, text))
    };
    files("*.rs").into_iter().filter_map(read).collect()
}

/// The code of a file, its tests and comments left out.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .take_while(|l| !l.starts_with("#[cfg(test)]"))
        .filter(|l| !l.trim_start().starts_with("//"))
}

#[test]
fn dependencies_point_one_way() {
    for (name, allowed) in EDGES {
        let dir = match *name {
            "aerogel-base" => "ir/base",
            "aerogel-interp" => "ir/interp",
            "aerogel-llvm" => "compiler/llvm",
            "aerogel-py" => "frontend-py",
            "aerogel-viz" => "gui",
            "aerogel-draw" => "gui/draw",
            other => other.strip_prefix("aerogel-").expect("all crates are ours"),
        };
        let manifest =
            std::fs::read_to_string(root().join(dir).join("Cargo.toml")).expect("a manifest");
        let normal = manifest
            .split("[dependencies]")
            .nth(1)
            .expect("dependencies");
        let normal = normal.split("\n[").next().expect("a section");
        for line in normal.lines().filter(|l| l.starts_with("aerogel-")) {
            let dependency = line.split(['.', ' ', '=']).next().expect("a name");
            assert!(
                allowed.contains(&dependency),
                "{name} must not depend on {dependency}"
            );
        }
    }
}

#[test]
fn fences_hold() {
    for (file, text) in sources() {
        for (word, homes) in FENCES {
            let at_home =
                homes.iter().any(|h| file.starts_with(h)) || file == "tests/tests/architecture.rs";
            assert!(
                at_home || !code(&text).any(|l| l.contains(word)),
                "{file} names `{word}`"
            );
        }
        let may = UNSAFE.contains(&file.as_str()) || file == "tests/tests/architecture.rs";
        assert!(
            may || !code(&text).any(|l| l.contains("unsafe {")
                || l.contains("unsafe fn")
                || l.contains("unsafe impl")),
            "{file} holds unsafe code"
        );
    }
}

/// Which folders of the tensor crate each may name.
const TENSOR_EDGES: &[(&str, &[&str])] = &[
    ("ir", &[]),
    ("library", &["ir"]),
    ("interp", &["ir", "library"]),
    ("record", &["ir"]),
    ("autodiff", &["ir", "record"]),
    ("passes", &["ir"]),
    ("lower", &["ir"]),
    ("export", &["ir", "lower"]),
    ("run", &["interp", "ir", "library", "lower", "passes"]),
    (
        "session",
        &[
            "autodiff", "interp", "ir", "lower", "passes", "record", "run",
        ],
    ),
];

#[test]
fn folders_of_the_tensor_crate_depend_one_way() {
    for (file, text) in sources() {
        let Some(path) = file.strip_prefix("tensor/src/") else {
            continue;
        };
        let Some((folder, _)) = path.split_once('/') else {
            continue;
        };
        let row = TENSOR_EDGES.iter().find(|(name, _)| *name == folder);
        let (_, allowed) = row.unwrap_or_else(|| panic!("`{folder}` has no row"));
        for (_, named) in code(&text).flat_map(|l| {
            l.match_indices("crate::")
                .map(move |(k, w)| (k, &l[k + w.len()..]))
        }) {
            let word: String = named
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            assert!(
                word == folder || allowed.contains(&word.as_str()),
                "{file} names `crate::{word}`"
            );
        }
    }
}

/// Who reads the name of a pass finds its file.
#[test]
fn passes_lie_in_files_of_their_names() {
    let sources = sources();
    for name in aerogel_passes::names() {
        let ends = [format!("/{name}.rs"), format!("/{name}/mod.rs")];
        let is_its = |path: &str| {
            path.starts_with("passes/src/") && ends.iter().any(|end| path.ends_with(end))
        };
        assert!(
            sources.iter().any(|(path, _)| is_its(path)),
            "no file of `{name}`"
        );
    }
}
