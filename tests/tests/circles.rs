//! Files that import each other in a circle: who reads one of them has to read all. Their number may fall, and not grow.
//!
//! An import counts where it names something of the other file, or of a module that re-exports it from there. A file that
//! declares a module and re-exports from it does not depend on it for that.

use std::collections::{BTreeMap, BTreeSet};

use aerogel_tests::sources::{files, root};
use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;

/// The most files of one circle in Rust.
const MOST_RUST: usize = 4;
/// Crates that have larger ones, and the size of the largest: lower a number whenever a circle becomes smaller.
const LARGER: &[(&str, usize)] = &[
    ("compiler/llvm/src", 9),
    ("gpu/src", 6),
    ("ir/src", 5),
    ("passes/src", 13),
];
/// The most files of one circle in Python: most of it hangs on the classes of fields, matrices and tensors, whose methods
/// are in files by topic.
const MOST_PYTHON: usize = 31;

type Imports = BTreeMap<String, BTreeSet<String>>;

/// Circles of more than one file, the largest first.
fn circles(imports: &Imports) -> Vec<Vec<&str>> {
    let mut graph = DiGraphMap::<&str, ()>::new();
    for (from, all) in imports {
        for to in all {
            graph.add_edge(from, to, ());
        }
    }
    let mut found = tarjan_scc(&graph);
    found.retain(|files| files.len() > 1);
    found.iter_mut().for_each(|files| files.sort_unstable());
    found.sort_by_key(|files| std::cmp::Reverse(files.len()));
    found
}

/// The modules of a crate by their paths, and what each of them names.
#[derive(Default)]
struct Modules {
    files: BTreeMap<Vec<String>, String>,
    /// What a module re-exports: the name, and where it is from.
    exports: BTreeMap<(Vec<String>, String), Vec<String>>,
    imports: Vec<(String, Vec<String>)>,
}

impl Modules {
    fn of(source: &str, paths: &[String]) -> Self {
        let mut modules = Self::default();
        for path in paths {
            let inside = path.strip_prefix(source).expect("one of the crate");
            let parts = inside.trim_start_matches('/').trim_end_matches(".rs");
            let mut module: Vec<String> = parts.split('/').map(str::to_owned).collect();
            if matches!(module.last().map(String::as_str), Some("mod" | "lib")) {
                module.pop();
            }
            modules.files.insert(module.clone(), path.clone());
            let text = std::fs::read_to_string(root().join(path)).expect("a source");
            let file = syn::parse_file(&text).expect("it compiles");
            modules.items(path, &module, &file.items);
        }
        modules
    }

    fn items(&mut self, path: &str, module: &[String], items: &[syn::Item]) {
        for item in items {
            match item {
                syn::Item::Use(used) => {
                    let is_public = !matches!(used.vis, syn::Visibility::Inherited);
                    let mut all = Vec::new();
                    trees(&used.tree, &mut Vec::new(), &mut all);
                    for (name, from) in all {
                        let Some(from) = absolute(module, &from) else {
                            continue;
                        };
                        match is_public {
                            true => {
                                self.exports.insert((module.to_vec(), name), from);
                            }
                            false => self.imports.push((path.to_owned(), from)),
                        }
                    }
                }
                syn::Item::Mod(inner) if !is_test(&inner.attrs) => {
                    if let Some((_, items)) = &inner.content {
                        self.items(path, module, items);
                    }
                }
                _ => {}
            }
        }
    }

    /// The file that defines what a path names.
    fn definition(&self, path: &[String]) -> Option<&str> {
        let deepest = (0..=path.len())
            .rev()
            .find(|&n| self.files.contains_key(&path[..n]))?;
        let module = &path[..deepest];
        if let Some(name) = path.get(deepest)
            && let Some(from) = self.exports.get(&(module.to_vec(), name.clone()))
            && from != path
        {
            return self.definition(from);
        }
        self.files.get(module).map(String::as_str)
    }

    fn resolved(&self) -> Imports {
        let mut found = Imports::new();
        for (from, path) in &self.imports {
            if let Some(to) = self.definition(path)
                && to != from
            {
                found.entry(from.clone()).or_default().insert(to.to_owned());
            }
        }
        found
    }
}

fn is_test(attrs: &[syn::Attribute]) -> bool {
    attrs.iter().any(|a| {
        a.path().is_ident("cfg")
            && matches!(&a.meta, syn::Meta::List(l) if l.tokens.to_string() == "test")
    })
}

/// The names that a `use` brings, each with its path.
fn trees(tree: &syn::UseTree, before: &mut Vec<String>, all: &mut Vec<(String, Vec<String>)>) {
    let with = |name: &syn::Ident| [&before[..], &[name.to_string()]].concat();
    match tree {
        syn::UseTree::Path(path) => {
            before.push(path.ident.to_string());
            trees(&path.tree, before, all);
            before.pop();
        }
        syn::UseTree::Name(name) if name.ident == "self" => {
            all.push((before.last().cloned().unwrap_or_default(), before.clone()));
        }
        syn::UseTree::Name(name) => all.push((name.ident.to_string(), with(&name.ident))),
        syn::UseTree::Rename(name) => all.push((name.rename.to_string(), with(&name.ident))),
        syn::UseTree::Glob(_) => all.push(("*".to_owned(), before.clone())),
        syn::UseTree::Group(group) => group.items.iter().for_each(|t| trees(t, before, all)),
    }
}

/// A path from the crate's root on; nothing for other crates.
fn absolute(module: &[String], path: &[String]) -> Option<Vec<String>> {
    match path.first()?.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some([module, &path[1..]].concat()),
        "super" => {
            let up = path.iter().take_while(|p| *p == "super").count();
            let outer = module.len().checked_sub(up)?;
            Some([&module[..outer], &path[up..]].concat())
        }
        _ => None,
    }
}

#[test]
fn circles_of_rust_files_are_small() {
    let mut crates: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in files("*.rs") {
        if let Some((source, _)) = path.split_once("/src/")
            && source != "tests"
            && !path.contains("/tests")
            && !path.contains("/bin/")
        {
            crates
                .entry(format!("{source}/src"))
                .or_default()
                .push(path);
        }
    }
    assert!(crates.len() > 10, "{:?}", crates.keys());
    let mut broken = Vec::new();
    for (source, paths) in &crates {
        let imports = Modules::of(source, paths).resolved();
        let larger = LARGER.iter().find(|(of, _)| of == source);
        let most = larger.map_or(MOST_RUST, |(_, most)| *most);
        for circle in circles(&imports) {
            if circle.len() > most {
                broken.push(told(&imports, &circle));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
}

/// A circle's files, each with those of the others that it imports.
fn told(imports: &Imports, circle: &[&str]) -> String {
    let lines = circle.iter().map(|file| {
        let all = imports[*file]
            .iter()
            .filter(|to| circle.contains(&to.as_str()));
        format!("{file} -> {}", all.cloned().collect::<Vec<_>>().join(", "))
    });
    format!(
        "{} files import each other:\n{}",
        circle.len(),
        lines.collect::<Vec<_>>().join("\n")
    )
}

#[test]
fn circles_of_python_files_are_small() {
    let base = "frontend-py/python/";
    let paths = files("frontend-py/python/*.py");
    let mut modules: BTreeMap<String, String> = BTreeMap::new();
    for path in &paths {
        let name = path[base.len()..].trim_end_matches(".py").replace('/', ".");
        modules.insert(name.trim_end_matches(".__init__").to_owned(), path.clone());
    }
    let mut imports = Imports::new();
    for path in &paths {
        let text = std::fs::read_to_string(root().join(path)).expect("a source");
        // Kernels of the package's own are written with all of it, `import aerogel as ti`: that is no arrow.
        for name in python_imports(&text) {
            let found = modules
                .get(&name)
                .or_else(|| modules.get(name.rsplit_once('.')?.0));
            let is_face = |to: &str| to == "frontend-py/python/aerogel/__init__.py";
            if let Some(to) = found.filter(|to| *to != path && !is_face(to)) {
                imports.entry(path.clone()).or_default().insert(to.clone());
            }
        }
    }
    let all = circles(&imports);
    let broken = all.iter().filter(|circle| circle.len() > MOST_PYTHON);
    let broken: Vec<String> = broken.map(|circle| told(&imports, circle)).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
}

/// What a file of Python imports, anywhere in it but where types are checked only.
fn python_imports(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        if code.starts_with("if TYPE_CHECKING") {
            let indent = line.len() - code.len();
            let rest = lines.clone();
            let inside =
                rest.take_while(|l| l.trim().is_empty() || l.len() - l.trim_start().len() > indent);
            (0..inside.count()).for_each(|_| {
                lines.next();
            });
        } else if let Some(rest) = code.strip_prefix("from ")
            && let Some((module, names)) = rest.split_once(" import ")
        {
            let mut names = names.to_owned();
            while names.contains('(') && !names.contains(')') {
                names.push_str(lines.next().unwrap_or(")"));
            }
            let names = names
                .split(['(', ')', ','])
                .map(|n| n.split_whitespace().next().unwrap_or(""));
            found.extend(
                names
                    .filter(|n| !n.is_empty())
                    .map(|n| format!("{module}.{n}")),
            );
        } else if let Some(modules) = code.strip_prefix("import ") {
            found.extend(
                modules
                    .split(',')
                    .map(|m| m.split_whitespace().next().unwrap_or("").to_owned()),
            );
        }
    }
    found
}
