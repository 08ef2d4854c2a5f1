//! Printing intermediate states: `AEROGEL_PRINT=after:<pass>|changed|all`, `AEROGEL_STOP=after:<pass>`.
//!
//! Names that begin with `tensor.` are those of passes over tensor programs, which the tensor crate has.

use std::time::Duration;

use aerogel_ir::{Env, Function, print_function};
use aerogel_passes::{Observer, PassRecord};

use crate::worker::given_up;

/// Which states of the IR are printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Print {
    /// None.
    #[default]
    Nothing,
    /// That after the pass of this name.
    After(String),
    /// Those after passes that changed something.
    Changed,
    /// Those after all passes.
    All,
}

/// The prefix of the names of passes over tensor programs.
const TENSOR: &str = "after:tensor.";

impl Print {
    /// The passes over tensor programs that `AEROGEL_PRINT` names. Their names begin with `tensor.`.
    ///
    /// # Errors
    /// If it names none of them.
    pub fn of_tensors(names: &[String]) -> Result<Self, String> {
        match read("AEROGEL_PRINT") {
            Some(value) if !value.starts_with("after:") || value.starts_with(TENSOR) => {
                Self::parse(&value, names)
            }
            // A pass over kernels, which is looked up when one is compiled.
            _ => Ok(Self::Nothing),
        }
    }

    fn parse(value: &str, names: &[String]) -> Result<Self, String> {
        match value {
            "changed" => Ok(Self::Changed),
            "all" => Ok(Self::All),
            _ => pass("AEROGEL_PRINT", value, names).map(Self::After),
        }
    }

    /// Whether the state after a pass is printed.
    fn wants(&self, pass: &str, changed: bool) -> bool {
        match self {
            Self::Nothing => false,
            Self::After(name) => name == pass,
            Self::Changed => changed,
            Self::All => true,
        }
    }

    /// Writes the IR after a pass to standard error, if this selects the pass. `text` is called only then.
    pub fn state(&self, pass: &str, changed: bool, text: impl FnOnce() -> String) {
        if self.wants(pass, changed) {
            let unchanged = if changed { "" } else { " (unchanged)" };
            eprintln!("; after {pass}{unchanged}\n{}", text());
        }
    }
}

fn read(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|v| !v.is_empty())
}

/// The pass that `after:<pass>` names.
fn pass(variable: &str, value: &str, names: &[String]) -> Result<String, String> {
    match value.strip_prefix("after:") {
        Some(pass) if names.iter().any(|name| name == pass) => Ok(pass.to_owned()),
        Some(pass) => Err(format!(
            "{variable}={value}: there is no pass `{pass}`; the passes are {}",
            names.join(", ")
        )),
        None if variable == "AEROGEL_PRINT" => Err(format!(
            "{variable}={value}: expected `changed`, `all` or `after:<pass>`"
        )),
        None => Err(format!("{variable}={value}: expected `after:<pass>`")),
    }
}

/// The requests of the environment variables.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Request {
    print: Print,
    stop: Option<String>,
}

impl Request {
    /// Reads `AEROGEL_PRINT` and `AEROGEL_STOP`; a value that names no pass is an error that says so.
    pub(crate) fn from_env() -> Result<Self, String> {
        Self::parse(
            read("AEROGEL_PRINT").as_deref(),
            read("AEROGEL_STOP").as_deref(),
        )
    }

    fn parse(print: Option<&str>, stop: Option<&str>) -> Result<Self, String> {
        let names = aerogel_passes::names().into_iter();
        let names: Vec<String> = names.map(str::to_owned).collect();
        let print = print.filter(|value| !value.starts_with(TENSOR));
        let print = print.map(|value| Print::parse(value, &names));
        let stop = stop.map(|value| pass("AEROGEL_STOP", value, &names));
        Ok(Self {
            print: print.transpose()?.unwrap_or_default(),
            stop: stop.transpose()?,
        })
    }
}

/// Prints requested passes, stores texts and times, and stops after the requested pass.
pub(crate) struct Watcher<'a> {
    request: &'a Request,
    /// Texts after every pass that changed something, if they are wanted.
    pub(crate) texts: Option<Vec<(String, String)>>,
    pub(crate) times: Vec<(String, Duration)>,
    /// The pass after which the pipeline was stopped, and the IR there.
    pub(crate) stopped: Option<(String, String)>,
}

impl<'a> Watcher<'a> {
    pub(crate) fn new(request: &'a Request, keep_texts: bool) -> Self {
        Self {
            request,
            texts: keep_texts.then(Vec::new),
            times: Vec::new(),
            stopped: None,
        }
    }
}

impl Observer for Watcher<'_> {
    fn after(&mut self, record: PassRecord, func: &Function, env: &Env) -> bool {
        self.times.push((record.name.to_owned(), record.time));
        let print = self.request.print.wants(record.name, record.changed);
        let stop = self.request.stop.as_deref() == Some(record.name);
        if print || stop || self.texts.is_some() && record.changed {
            let text = print_function(func, env);
            if print {
                let print = &self.request.print;
                print.state(record.name, record.changed, || text.clone());
            }
            if stop {
                self.stopped = Some((record.name.to_owned(), text.clone()));
            }
            if let Some(texts) = &mut self.texts {
                // A pass that runs again gets a number, so that names are unique.
                let prefix = format!("{}.", record.name);
                let again = texts
                    .iter()
                    .filter(|(n, _)| n == record.name || n.starts_with(&prefix))
                    .count();
                let name = if again == 0 {
                    record.name.to_owned()
                } else {
                    format!("{prefix}{}", again + 1)
                };
                texts.push((name, text));
            }
        }
        !stop && !given_up()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests() {
        assert_eq!(
            Request::parse(Some("after:cse"), None).unwrap().print,
            Print::After("cse".into())
        );
        assert_eq!(
            Request::parse(Some("all"), Some("after:offload"))
                .unwrap()
                .stop
                .as_deref(),
            Some("offload")
        );
        assert_eq!(
            Request::parse(Some("sometimes"), None).unwrap_err(),
            "AEROGEL_PRINT=sometimes: expected `changed`, `all` or `after:<pass>`"
        );
        let unknown = Request::parse(Some("after:nothing"), None).unwrap_err();
        assert!(unknown.starts_with("AEROGEL_PRINT=after:nothing: there is no pass `nothing`; "));
        assert!(unknown.contains(" cse, ") && unknown.contains(" offload, "));
        // Tensor passes are looked up by the tensor compiler.
        let tensors = Request::parse(Some("after:tensor.fuse"), None).unwrap();
        assert_eq!(tensors, Request::default());
        assert!(Request::parse(None, Some("after:tensor.fuse")).is_err());
        assert_eq!(
            Request::parse(None, Some("cse")).unwrap_err(),
            "AEROGEL_STOP=cse: expected `after:<pass>`"
        );
    }
}
