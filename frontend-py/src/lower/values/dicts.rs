//! Dictionaries: keys that are known while compiling, and values of any kind.
//!
//! One whose keys are all names is a struct (see `structs`); its members can be indexed by their names too.

use aerogel_base::ErrorKind;

use crate::ast::{CompareOp, Expr, ExprKind, Generator};
use crate::fold;
use crate::host::Known;
use crate::lower::calls::Args;
use crate::lower::values::{SeqKind, Val};
use crate::lower::{Lower, Res};

/// The note for a dictionary that grows, or is indexed at run time.
const WHOLE: &str = "a dictionary in a kernel is constant, as in `{\"a\": x, \"b\": y}`; to index at run time, \
                     use a vector or a field";

impl<'a> Lower<'a, '_> {
    /// `{"a": 1, 2: v, **others}`
    pub(crate) fn dict(&mut self, items: &[(Expr<'a>, Expr<'a>)]) -> Res<Val> {
        let mut pairs = Vec::new();
        for (key, value) in items {
            if let ExprKind::Starred(others) = key.kind {
                let others = self.expr(others)?;
                for (key, value) in self.entries(&others)? {
                    pairs.push((key, self.settle(value)?));
                }
                continue;
            }
            let key = self.expr(key)?;
            let value = self.expr(value)?;
            pairs.push((key, self.settle(value)?));
        }
        self.dict_of(pairs)
    }

    /// `{k: f(k) for k in range(3)}`; the element is the pair of both.
    pub(crate) fn dict_comprehension(
        &mut self,
        pair: &Expr<'a>,
        generators: &[Generator<'a>],
    ) -> Res<Val> {
        let mut pairs = Vec::new();
        for item in self.comprehended(pair, generators)? {
            let parts = item.items().unwrap_or_default();
            let [key, value] = &parts[..] else {
                unreachable!("the element of the comprehension is a pair")
            };
            pairs.push((key.clone(), value.clone()));
        }
        self.dict_of(pairs)
    }

    fn dict_of(&mut self, pairs: Vec<(Val, Val)>) -> Res<Val> {
        let mut entries: Vec<(Known, Val)> = Vec::new();
        for (key, value) in pairs {
            let Val::Known(key) = key else {
                let what = self.describe(&key);
                let message = format!("a key must be known while compiling, not {what}");
                return self.fail(ErrorKind::Type, "E0233", message);
            };
            match self.entry(&entries, &key)? {
                Some(at) => entries[at].1 = value,
                None => entries.push((key, value)),
            }
        }
        let names: Option<Vec<(String, Val)>> = entries
            .iter()
            .map(|(key, value)| match key {
                Known::Str(name) => Some((name.to_string(), value.clone())),
                _ => None,
            })
            .collect();
        match names {
            Some(keywords) if !keywords.is_empty() => self.struct_call(&Args {
                positional: Vec::new(),
                keywords,
            }),
            _ => Ok(Val::Dict(entries.into())),
        }
    }

    /// The keys and values of a dictionary, as `{**d}` and `f(**d)` take them.
    pub(crate) fn entries(&mut self, val: &Val) -> Res<Vec<(Val, Val)>> {
        if let Some((ty, members)) = self.struct_parts(val)? {
            let names = ty.members.iter();
            let names = names.map(|member| Val::Known(Known::str(&member.name)));
            return Ok(names.zip(members).collect());
        }
        match val {
            Val::Dict(entries) => {
                let pairs = entries.iter().cloned();
                Ok(pairs.map(|(key, val)| (Val::Known(key), val)).collect())
            }
            Val::Known(Known::Object(_)) => {
                let mut pairs = Vec::new();
                for key in self.iterate_static(val)? {
                    let item = self.index(val.clone(), vec![key.clone()], false)?;
                    pairs.push((key, item));
                }
                Ok(pairs)
            }
            Val::Poison(reported) => Err(*reported),
            _ => {
                let what = self.describe(val);
                let message = format!("a dictionary is needed after `**`, not {what}");
                self.fail(ErrorKind::Type, "E0124", message)
            }
        }
    }

    /// A method of a dictionary whose keys are all names.
    pub(crate) fn named_dict_method(&mut self, val: &Val, name: &str, args: &Args) -> Res<Val> {
        let mut entries = Vec::new();
        for (key, value) in self.entries(val)? {
            if let Val::Known(key) = key {
                entries.push((key, self.settle(value)?));
            }
        }
        self.dict_method(&entries, name, args)
    }

    /// Where a key is among the entries.
    fn entry(&mut self, entries: &[(Known, Val)], key: &Known) -> Res<Option<usize>> {
        for (at, (other, _)) in entries.iter().enumerate() {
            let same = fold::compare(self.host, CompareOp::Eq, other, key);
            if self.hosted(same)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// The value of a key; nothing if there is none.
    pub(crate) fn dict_get(&mut self, entries: &[(Known, Val)], key: &Val) -> Res<Option<Val>> {
        let Val::Known(known) = key else {
            let what = self.describe(key);
            let message = format!("a key must be known while compiling, not {what}");
            return self.fail_noted(ErrorKind::Type, "E0233", message, WHOLE);
        };
        let at = self.entry(entries, known)?;
        Ok(at.map(|at| entries[at].1.clone()))
    }

    /// `d[key]`
    pub(crate) fn index_dict(&mut self, entries: &[(Known, Val)], indices: &[Val]) -> Res<Val> {
        let key = match indices {
            [key] => key.clone(),
            _ => Val::seq(indices.to_vec(), SeqKind::Tuple),
        };
        match self.dict_get(entries, &key)? {
            Some(val) => Ok(val),
            None => {
                let message = "the dictionary does not have this key";
                self.fail_noted(ErrorKind::Index, "E0403", message, WHOLE)
            }
        }
    }

    /// `d.keys()`, `d.values()`, `d.items()`, `d.get(key, otherwise)`
    pub(crate) fn dict_method(
        &mut self,
        entries: &[(Known, Val)],
        name: &str,
        args: &Args,
    ) -> Res<Val> {
        let keys = entries.iter().map(|(key, _)| Val::Known(key.clone()));
        let values = entries.iter().map(|(_, value)| value.clone());
        Ok(match name {
            "keys" => Self::list(keys.collect()),
            "values" => Self::list(values.collect()),
            "items" => {
                let pair = |(key, value)| Val::seq(vec![key, value], SeqKind::Tuple);
                Self::list(keys.zip(values).map(pair).collect())
            }
            "get" => {
                let key = self.arg(name, args, 0, "key")?.clone();
                let otherwise = args.get(1, "default").cloned();
                let found = self.dict_get(entries, &key)?;
                found.or(otherwise).unwrap_or(Val::none())
            }
            _ => {
                let message = format!("a dictionary has no attribute `{name}`");
                return self.fail(ErrorKind::Compilation, "E0302", message);
            }
        })
    }
}
