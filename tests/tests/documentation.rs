//! `docs/ir.md` says what the tables say. `AEROGEL_BLESS=1 cargo test -p aerogel-tests --test
//! documentation` writes it anew.

use std::fmt::Write;
use std::path::Path;

use aerogel_ir::op::Row;
use aerogel_ir::{
    AssertKind, AtomicOp, BinaryOp, CellOp, CompareOp, NodeOp, Op, ThreadOp, UnaryOp,
};
use aerogel_passes::{PIPELINE, Pass, Step};

fn family(name: &str) -> String {
    let names: Vec<&str> = match name {
        "Unary" => UnaryOp::ALL.iter().map(|o| o.name()).collect(),
        "Binary" => BinaryOp::ALL.iter().map(|o| o.name()).collect(),
        "Compare" => CompareOp::ALL.iter().map(|o| o.name()).collect(),
        "Threads" => ThreadOp::ALL.iter().map(|o| o.name()).collect(),
        "Atomic" => AtomicOp::ALL.iter().map(|o| o.name()).collect(),
        other => unreachable!("`{other}` is no family"),
    };
    names.join("` `")
}

fn row(out: &mut String, pass: &Pass, group: &str) {
    let _ = writeln!(
        out,
        "| `{}` | {group} | {:?} | {:?} | {:?} |",
        pass.name, pass.from, pass.to, pass.when
    );
}

fn rows(out: &mut String, rows: &[Row]) {
    out.push_str("\n| instruction | fields | effect | stages | meaning |\n|---|---|---|---|---|\n");
    for row in rows {
        let mnemonic = row.mnemonic.map_or_else(|| family(row.name), str::to_owned);
        let fields: Vec<&str> = row
            .operands
            .iter()
            .copied()
            .filter(|&f| !(row.mnemonic.is_none() && f == "op"))
            .collect();
        let (from, to) = row.stages;
        let stages = if from == to {
            format!("{from:?}")
        } else {
            format!("{from:?} to {to:?}")
        };
        let _ = writeln!(
            out,
            "| `{mnemonic}` | {} | {:?} | {stages} | {} |",
            fields.join(", "),
            row.effect,
            row.doc.trim()
        );
    }
}

fn text() -> String {
    let mut out = String::from(
        "# The IR\n\nGenerated from the tables in `ir/src/op.rs` and `passes/src/pipeline.rs` by \
         `AEROGEL_BLESS=1 cargo test -p aerogel-tests --test documentation`.\n\n## Instructions\n",
    );
    rows(&mut out, Op::ROWS);
    out.push_str("\nKinds of `assert`: ");
    out.push_str(
        &AssertKind::ALL
            .iter()
            .map(|k| format!("`{k}`"))
            .collect::<Vec<_>>()
            .join(", "),
    );
    out.push_str(".\n");
    out.push_str("\n## Instructions over cells that indices name\n");
    rows(&mut out, CellOp::ROWS);
    out.push_str("\n## Steps through trees, and lists of cells\n");
    rows(&mut out, NodeOp::ROWS);
    out.push_str(
        "\n## Passes, in order\n\n| pass | group | from | to | when |\n|---|---|---|---|---|\n",
    );
    for step in PIPELINE {
        let group = match step {
            Step::Pass(_) => String::new(),
            Step::Group { name, rounds, .. } => format!("{name}, at most {rounds} rounds"),
            Step::Meet => continue,
        };
        for pass in step.passes() {
            row(&mut out, pass, &group);
        }
    }
    out
}

#[test]
fn the_reference_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/ir.md");
    let text = text();
    if std::env::var_os("AEROGEL_BLESS").is_some() {
        std::fs::write(&path, &text).expect("docs/ir.md can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "docs/ir.md is out of date; AEROGEL_BLESS=1 writes it anew"
    );
}
