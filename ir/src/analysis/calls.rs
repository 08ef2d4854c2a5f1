//! Which functions call which, found in one walk over each of them.

use aerogel_base::entity::{PrimaryMap, SecondaryMap};

use crate::{FuncId, Function, Op, walk};

/// The calls of a module.
#[derive(Default)]
pub struct Calls {
    callees: SecondaryMap<FuncId, Vec<FuncId>>,
    recursive: SecondaryMap<FuncId, bool>,
    components: Vec<Vec<FuncId>>,
}

impl Calls {
    /// The calls of all functions.
    pub fn of(funcs: &PrimaryMap<FuncId, Function>) -> Self {
        let mut calls = Self::default();
        for (id, func) in funcs.iter() {
            let mut callees = Vec::new();
            walk(func, func.body, &mut |func, inst| {
                if let Op::Call { func: callee, .. } = func[inst] {
                    callees.push(callee);
                }
            });
            calls.callees[id] = callees;
        }
        calls.find_components(funcs);
        calls
    }

    /// The functions that one calls, once for each call.
    pub fn callees(&self, func: FuncId) -> &[FuncId] {
        &self.callees[func]
    }

    /// Whether a function can come to be called by itself.
    pub fn is_recursive(&self, func: FuncId) -> bool {
        self.recursive[func]
    }

    /// All functions, those that call each other together, and each group after those that it calls.
    pub fn bottom_up(&self) -> &[Vec<FuncId>] {
        &self.components
    }

    /// How long each function is after inlining, if functions of at most `most` instructions are inlined. `own` is the
    /// length of a function with its calls as they are; nothing if it cannot be inlined.
    pub fn lengths(
        &self,
        most: usize,
        mut own: impl FnMut(FuncId) -> Option<usize>,
    ) -> SecondaryMap<FuncId, Option<usize>> {
        let mut lengths: SecondaryMap<FuncId, Option<usize>> = SecondaryMap::new();
        // A call that leads back to its function is none that is inlined: the callee has no length yet.
        for &func in self.components.iter().flatten() {
            let inlined = self.callees[func]
                .iter()
                .filter_map(|&callee| lengths[callee]);
            let inlined = inlined.filter(|&length| length <= most);
            let added = inlined.fold(0, usize::saturating_add);
            lengths[func] = own(func).map(|own| own.saturating_add(added));
        }
        lengths
    }

    /// Tarjan's strongly connected components, with a stack of its own: chains of calls may be long.
    fn find_components(&mut self, funcs: &PrimaryMap<FuncId, Function>) {
        // When a function was met, counted from 1, and the earliest of the open ones that it leads back to.
        let mut met: SecondaryMap<FuncId, usize> = SecondaryMap::new();
        let mut lowest: SecondaryMap<FuncId, usize> = SecondaryMap::new();
        let mut is_open: SecondaryMap<FuncId, bool> = SecondaryMap::new();
        let (mut n_met, mut open) = (0, Vec::new());
        for root in funcs.keys() {
            if met[root] != 0 {
                continue;
            }
            // A function, and how many of its callees have been looked at.
            let mut path = vec![(root, 0)];
            while let Some((func, next)) = path.last_mut() {
                let func = *func;
                if *next == 0 {
                    n_met += 1;
                    (met[func], lowest[func], is_open[func]) = (n_met, n_met, true);
                    open.push(func);
                }
                let callee = self.callees[func].get(*next).copied();
                *next += 1;
                match callee {
                    Some(callee) if met[callee] == 0 => path.push((callee, 0)),
                    Some(callee) => {
                        self.recursive[func] |= callee == func;
                        if is_open[callee] {
                            lowest[func] = lowest[func].min(met[callee]);
                        }
                    }
                    None => {
                        path.pop();
                        if let Some(&(caller, _)) = path.last() {
                            lowest[caller] = lowest[caller].min(lowest[func]);
                        }
                        if lowest[func] == met[func] {
                            let first = open.iter().rposition(|&other| other == func);
                            let component = open.split_off(first.expect("it is open"));
                            for &member in &component {
                                is_open[member] = false;
                                self.recursive[member] |= component.len() > 1;
                            }
                            self.components.push(component);
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_module;

    /// Functions by name, with what each calls.
    fn module(calls: &[(&str, &[&str])]) -> crate::Module {
        let text: String = calls
            .iter()
            .map(|(name, callees)| {
                let calls: String = (callees.iter().enumerate())
                    .map(|(k, callee)| format!("v{}: i32 = call @{callee}, [v0]\n", k + 1))
                    .collect();
                format!("func @{name}(v0: i32) -> i32 {{ {calls} yield [v0] }}\n")
            })
            .collect();
        parse_module(&text).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn components_of_calls() {
        let module = module(&[
            ("a", &["b", "d", "b"]),
            ("b", &["c"]),
            ("c", &["b", "e"]),
            ("d", &["d"]),
            ("e", &[]),
            ("f", &["a", "e"]),
        ]);
        let calls = Calls::of(&module.funcs);
        let name = |id: FuncId| module.funcs[id].name.clone();
        let recursive: Vec<String> = (module.funcs.keys())
            .filter(|&id| calls.is_recursive(id))
            .map(name)
            .collect();
        assert_eq!(recursive, ["b", "c", "d"]);
        let groups: Vec<Vec<String>> = (calls.bottom_up().iter())
            .map(|group| group.iter().copied().map(name).collect())
            .collect();
        assert_eq!(
            groups,
            [vec!["e"], vec!["b", "c"], vec!["d"], vec!["a"], vec!["f"]]
        );
        let a = module.funcs.keys().next().unwrap();
        assert_eq!(calls.callees(a).len(), 3);
    }

    #[test]
    fn long_chains() {
        let names: Vec<String> = (0..3000).map(|k| format!("f{k}")).collect();
        let chain: Vec<(&str, Vec<&str>)> = (0..3000)
            .map(|k| {
                (
                    &*names[k],
                    names.get(k + 1).map(|n| &**n).into_iter().collect(),
                )
            })
            .collect();
        let chain: Vec<(&str, &[&str])> = chain.iter().map(|(n, c)| (*n, &c[..])).collect();
        let module = module(&chain);
        let calls = Calls::of(&module.funcs);
        assert_eq!(calls.bottom_up().len(), 3000);
        // What three others have been inlined into is too long for its caller.
        let lengths = calls.lengths(100, |_| Some(30));
        let last: Vec<Option<usize>> = module
            .funcs
            .keys()
            .rev()
            .take(6)
            .map(|f| lengths[f])
            .collect();
        assert_eq!(
            last,
            [Some(30), Some(60), Some(90), Some(120), Some(30), Some(60)]
        );
        assert!(module.funcs.keys().all(|id| !calls.is_recursive(id)));
    }
}
