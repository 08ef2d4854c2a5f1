//! Seeing inside: `AEROGEL_PRINT=after:<pass>|changed|all`, `AEROGEL_STOP=after:<pass>`.

use std::time::Duration;

use aerogel_ir::{Env, Function, print_function};
use aerogel_passes::{Observer, PassRecord};

use crate::worker::given_up;

/// Which states of the IR are printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Print {
    #[default]
    Nothing,
    After(String),
    Changed,
    All,
}

/// What the environment asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Request {
    print: Print,
    stop: Option<String>,
}

impl Request {
    /// Reads `AEROGEL_PRINT` and `AEROGEL_STOP`; a value that names no pass is an error that says so.
    pub(crate) fn from_env() -> Result<Self, String> {
        let read = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        Self::parse(
            read("AEROGEL_PRINT").as_deref(),
            read("AEROGEL_STOP").as_deref(),
        )
    }

    fn parse(print: Option<&str>, stop: Option<&str>) -> Result<Self, String> {
        let pass = |name: &str, value: &str| match value.strip_prefix("after:") {
            Some(pass) if aerogel_passes::find(pass).is_some() => Ok(pass.to_owned()),
            Some(pass) => Err(format!(
                "{name}={value}: there is no pass `{pass}`; the passes are {}",
                aerogel_passes::names().join(", ")
            )),
            None if name == "AEROGEL_PRINT" => Err(format!(
                "{name}={value}: expected `changed`, `all` or `after:<pass>`"
            )),
            None => Err(format!("{name}={value}: expected `after:<pass>`")),
        };
        let print = match print {
            None => Print::Nothing,
            Some("changed") => Print::Changed,
            Some("all") => Print::All,
            Some(value) => Print::After(pass("AEROGEL_PRINT", value)?),
        };
        Ok(Self {
            print,
            stop: stop.map(|value| pass("AEROGEL_STOP", value)).transpose()?,
        })
    }
}

/// Prints what was asked for, keeps texts and times, and stops where it was told to.
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
        let print = match &self.request.print {
            Print::Nothing => false,
            Print::After(pass) => pass == record.name,
            Print::Changed => record.changed,
            Print::All => true,
        };
        let stop = self.request.stop.as_deref() == Some(record.name);
        if print || stop || self.texts.is_some() && record.changed {
            let text = print_function(func, env);
            if print {
                eprintln!(
                    "; after {}{}\n{text}",
                    record.name,
                    if record.changed { "" } else { " (unchanged)" }
                );
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
        assert_eq!(
            Request::parse(None, Some("cse")).unwrap_err(),
            "AEROGEL_STOP=cse: expected `after:<pass>`"
        );
    }
}
