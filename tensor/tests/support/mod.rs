//! What several tests of passes do.

use aerogel_tensor::passes::{Options, PASSES};
use aerogel_tensor::{Program, parse, verify};

/// A program after one pass.
pub(crate) fn after(pass: &str, text: &str) -> Program {
    let mut program = parse(text).unwrap();
    verify(&program).unwrap();
    let pass = PASSES.iter().find(|p| p.name == pass).unwrap();
    let before = program.to_string();
    let changed = (pass.run)(&mut program, Options::default());
    verify(&program).unwrap();
    assert_eq!(
        changed,
        program.to_string() != before,
        "{before}\n{program}"
    );
    program
}

/// The statements of a program.
pub(crate) fn body(program: &Program) -> String {
    let text = program.to_string();
    let at = text.find("for ").unwrap();
    text[at..].to_owned()
}
