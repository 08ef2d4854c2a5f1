//! What holds of every pass: its result is legal at its stage and means the same, and it tells whether it changed anything.

use std::fmt::Debug;

use aerogel_tensor::ir::verify_at;
use aerogel_tensor::passes::{Options, PASSES, Pass};
use aerogel_tensor::{Program, passes};

/// Compares the program that each pass leaves with the one before it.
pub(crate) struct Follower<'a, T> {
    /// What to say of the program if something is wrong.
    pub(crate) label: String,
    pub(crate) meaning: &'a dyn Fn(&Program) -> T,
    /// What the program means before all passes.
    pub(crate) expected: &'a T,
    /// The passes that have changed something.
    pub(crate) changed: Vec<&'static str>,
}

impl<T: Debug + PartialEq> Follower<'_, T> {
    fn follow(&mut self, pass: &Pass, changed: bool, before: &mut String, after: &Program) {
        let (name, label) = (pass.name, &self.label);
        let text = after.to_string();
        assert_eq!(
            changed,
            text != *before,
            "{label}, `{name}` tells\n{before}\n{text}"
        );
        verify_at(after, pass.to)
            .unwrap_or_else(|e| panic!("{label}, `{name}`: {e}\n{before}\n{text}"));
        if changed {
            let found = (self.meaning)(after);
            assert_eq!(found, *self.expected, "{label}, `{name}`\n{before}\n{text}");
            self.changed.push(name);
        }
        *before = text;
    }

    /// Runs all passes.
    pub(crate) fn run(&mut self, program: &mut Program, options: Options) {
        let mut before = program.to_string();
        passes::run(program, options, &mut |pass, changed, after| {
            self.follow(pass, changed, &mut before, after);
        });
    }

    /// Runs each pass without the others, but for those that lead to its stage.
    pub(crate) fn run_each(&mut self, program: &Program, options: Options) {
        for (k, pass) in PASSES.iter().enumerate() {
            let mut program = program.clone();
            for step in PASSES[..k].iter().filter(|step| step.from != step.to) {
                (step.run)(&mut program, options);
            }
            let mut before = program.to_string();
            let changed = (pass.run)(&mut program, options);
            self.follow(pass, changed, &mut before, &program);
        }
    }
}
