//! Files that import each other in a circle: who reads one of them has to read all. Their number may fall, and not grow.
//!
//! A path counts, in an import or elsewhere, where it names something of the other file, or of a module that re-exports it
//! from there. A file that declares a module and re-exports from it does not depend on it for that.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use aerogel_tests::sources::{files, root};
use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use syn::visit::Visit;

/// The most files of one circle in Rust.
const MOST_RUST: usize = 4;
/// The most files of one circle in Python: most of it hangs on the classes of fields, matrices and tensors, whose methods
/// are in files by topic.
const MOST_PYTHON: usize = 12;

/// Which files each file names, and by which names.
type Imports = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Circles of more than one file, the largest first.
fn circles(imports: &Imports) -> Vec<Vec<&str>> {
    let mut graph = DiGraphMap::<&str, ()>::new();
    for (from, all) in imports {
        for to in all.keys() {
            graph.add_edge(from, to, ());
        }
    }
    let mut found = tarjan_scc(&graph);
    found.retain(|files| files.len() > 1);
    found.iter_mut().for_each(|files| files.sort_unstable());
    found.sort_by_key(|files| std::cmp::Reverse(files.len()));
    found
}

/// A module or an item, by its path from the crate's root.
type Path = Vec<String>;

/// The modules of a crate by their paths, and what each of them names.
#[derive(Default)]
struct Modules {
    files: BTreeMap<Path, String>,
    /// What a module re-exports: the name, and where it is from.
    exports: BTreeMap<(Path, String), Path>,
    /// What a module imports for itself.
    aliases: BTreeMap<(Path, String), Path>,
    /// The paths that a module of a file writes, in imports and elsewhere.
    named: Vec<(String, Path, Path)>,
}

impl Modules {
    fn of(source: &str, paths: &[String]) -> Self {
        let mut modules = Self::default();
        for path in paths {
            let inside = path.strip_prefix(source).expect("one of the crate");
            let parts = inside.trim_start_matches('/').trim_end_matches(".rs");
            let mut module: Path = parts.split('/').map(str::to_owned).collect();
            if matches!(module.last().map(String::as_str), Some("mod" | "lib")) {
                module.pop();
            }
            modules.files.insert(module, path.clone());
        }
        for (module, path) in modules.files.clone() {
            let text = std::fs::read_to_string(root().join(&path)).expect("a source");
            let file = syn::parse_file(&text).expect("it compiles");
            let modules = &mut modules;
            let mut names = Names {
                path,
                module,
                modules,
            };
            names.visit_file(&file);
        }
        modules
    }

    /// The path from the crate's root of what a module writes; nothing for other crates and what the module has itself.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Path> {
        let first = path.first()?;
        match first.as_str() {
            "crate" => return Some(path[1..].to_vec()),
            "self" => return Some([module, &path[1..]].concat()),
            "super" => {
                let up = path.iter().take_while(|p| *p == "super").count();
                let outer = module.len().checked_sub(up)?;
                return Some([&module[..outer], &path[up..]].concat());
            }
            _ => {}
        }
        let key = (module.to_vec(), first.clone());
        let child = [module, std::slice::from_ref(first)].concat();
        let from = match self.exports.get(&key).or_else(|| self.aliases.get(&key)) {
            Some(from) => from.clone(),
            None if self.files.contains_key(&child) => child,
            None => return None,
        };
        Some([&from[..], &path[1..]].concat())
    }

    /// The file that defines what a path names; nothing where it names a module.
    fn definition(&self, path: &[String]) -> Option<&str> {
        let deepest = (0..=path.len())
            .rev()
            .find(|&n| self.files.contains_key(&path[..n]))?;
        let module = &path[..deepest];
        let name = path.get(deepest)?;
        if let Some(from) = self.exports.get(&(module.to_vec(), name.clone()))
            && from != path
        {
            return self.definition(&[from, &path[deepest + 1..]].concat());
        }
        self.files.get(module).map(String::as_str)
    }

    fn resolved(&self) -> Imports {
        let mut found = Imports::new();
        for (from, module, path) in &self.named {
            if let Some(path) = self.absolute(module, path)
                && let Some(to) = self.definition(&path)
                && to != from
            {
                let all = found.entry(from.clone()).or_default();
                let names = all.entry(to.to_owned()).or_default();
                names.extend(path.last().cloned());
            }
        }
        found
    }
}

/// Collects the paths of one file, outside of its tests.
struct Names<'a> {
    path: String,
    module: Path,
    modules: &'a mut Modules,
}

impl Names<'_> {
    fn name(&mut self, path: Path) {
        let named = (self.path.clone(), self.module.clone(), path);
        self.modules.named.push(named);
    }
}

impl<'ast> Visit<'ast> for Names<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attrs = match item {
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            _ => &Vec::new(),
        };
        if !is_test(attrs) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.module.push(item.ident.to_string());
        syn::visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let is_public = !matches!(item.vis, syn::Visibility::Inherited);
        let mut all = Vec::new();
        trees(&item.tree, &mut Vec::new(), &mut all);
        for (name, path) in all {
            let Some(from) = self.modules.absolute(&self.module, &path) else {
                continue;
            };
            let key = (self.module.clone(), name);
            if is_public {
                self.modules.exports.insert(key, from);
            } else {
                self.modules.aliases.insert(key, from);
                self.name(path);
            }
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.name(path.segments.iter().map(|s| s.ident.to_string()).collect());
        syn::visit::visit_path(self, path);
    }

    /// What a macro is called with is no syntax yet: its paths are words between colons.
    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        let text = called.tokens.to_string().replace(" :: ", "::");
        for word in text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')) {
            if word.contains("::") {
                self.name(word.split("::").map(str::to_owned).collect());
            }
        }
        self.visit_path(&called.path);
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
        for circle in circles(&imports) {
            if circle.len() > MOST_RUST {
                broken.push(told(&imports, &circle));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
}

/// A circle's files, each with those of the others that it names, and the names.
fn told(imports: &Imports, circle: &[&str]) -> String {
    let mut text = format!("{} files name each other:", circle.len());
    for file in circle {
        for (to, names) in &imports[*file] {
            if circle.contains(&to.as_str()) {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let _ = write!(text, "\n{file} -> {to}: {}", names.join(", "));
            }
        }
    }
    text
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
            if let Some(to) = found.filter(|to| *to != path && !is_face(to)).cloned() {
                let all = imports.entry(path.clone()).or_default();
                all.entry(to).or_default().insert(name);
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
