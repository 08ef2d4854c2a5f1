//! Programs that were read from files or texts, which may be wrong or malicious.
//!
//! The recorder writes programs that keep more rules than the verifier knows. Of a program that was read, nothing is
//! believed:
//!
//! * It has no fields, calls no kernels, and does not store to its inputs.
//! * An access that promises to be in bounds (`b0[add(i0, i32(1))]`) is checked: with the sizes of each call if its indices
//!   follow from sizes (`promises`), and else at each point, as if it said `error`.
//! * A temporary that may be read before all of it is stored is zero at first, and not what the memory held.

use aerogel_base::{Scalar, Span};
use aerogel_ir::ParseError;
use indexmap::IndexSet;

use super::expr::{ExprDef, Outside};
use super::ids::{Buffer, Dim};
use super::live_in::undefined;
use super::parse::parse_closed;
use super::program::{DimDef, For, Program, Role, Stmt, Store};
use super::promises::Promises;
use super::rewrite::visit;
use super::slice::targets;
use super::spots::Spot;
use super::touched::Touched;
use super::verify::verify_spots;

/// The most axes, as arrays have them.
const MOST_AXES: usize = 64;

/// How deep expressions may be: passes are recursive.
const MOST_DEEP: u32 = 1000;

/// Reads a program that is safe to run, whoever wrote it, with the accesses that each call has to check.
///
/// # Errors
/// Where the text is no such program, and why.
pub fn read(text: &str) -> Result<(Program, Promises), ParseError> {
    let (mut program, spots) = parse_closed(text)?;
    let refused = |(what, spot)| ParseError::new(text, spots.at(spot), what);
    verify_spots(&program).map_err(refused)?;
    sizes(&program).map_err(refused)?;
    statements(&program).map_err(refused)?;
    let unsure = unsure(&program);
    fill(&mut program, unsure);
    let promises = Promises::of(&mut program);
    Ok((program, promises))
}

type Checked = Result<(), (String, Spot)>;

/// Numbers of axes, sizes and the depth of expressions.
fn sizes(program: &Program) -> Checked {
    for (buffer, def) in program.buffers.iter() {
        if def.shape.len() > MOST_AXES {
            let what = format!("{buffer} has more than {MOST_AXES} axes");
            return Err((what, Spot::Buffer(buffer)));
        }
    }
    let deep = depths(program);
    for (number, def) in program.dims.iter().enumerate() {
        let what = match *def {
            DimDef::Const(n) if i32::try_from(n).is_err() => {
                format!(
                    "the size of an axis is {n}: indices are at most {}",
                    i32::MAX
                )
            }
            DimDef::Value(e) | DimDef::Number(e) if deep[e.as_u32() as usize] > MOST_DEEP => {
                format!("a size has more than {MOST_DEEP} nested operations")
            }
            _ => continue,
        };
        return Err((what, Spot::Dim(Dim::from_u32(number as u32))));
    }
    let mut outcome = Ok(());
    each(program, |number, stmt| {
        let too_deep = stmt
            .roots()
            .iter()
            .any(|e| deep[e.as_u32() as usize] > MOST_DEEP);
        let axes = matches!(stmt, Stmt::For(all) if all.domain.len() > MOST_AXES);
        if too_deep || axes {
            let what = match axes {
                true => format!("a `for` over more than {MOST_AXES} axes"),
                false => format!("more than {MOST_DEEP} nested operations: store inner ones"),
            };
            outcome = std::mem::replace(&mut outcome, Ok(())).and(Err((what, Spot::Stmt(number))));
        }
    });
    outcome
}

/// How many operations are nested in each expression, with those of the sizes that it names.
fn depths(program: &Program) -> Vec<u32> {
    let mut deep: Vec<u32> = Vec::new();
    for def in program.exprs.all() {
        let mut most = 0;
        def.operands(|x| most = most.max(deep[x.as_u32() as usize]));
        if let ExprDef::Extent(dim) = def
            && let Some(e) = program.dim_def(*dim).expr()
        {
            most = most.max(deep[e.as_u32() as usize]);
        }
        deep.push(most + 1);
    }
    deep
}

/// Calls `f` with every statement and its number in the order of the text.
fn each<'p>(program: &'p Program, mut f: impl FnMut(usize, &'p Stmt)) {
    let mut number = 0;
    visit(&program.body, &mut |stmt| {
        f(number, stmt);
        number += 1;
    });
}

/// What is stored where.
fn statements(program: &Program) -> Checked {
    let histories = histories(program);
    let mut outcome: Checked = Ok(());
    each(program, |number, stmt| {
        if outcome.is_ok()
            && let Err(what) = statement(program, stmt, &histories)
        {
            outcome = Err((what, Spot::Stmt(number)));
        }
    });
    outcome?;
    let given = |b: &&Buffer| program.buffers[**b].role != Role::Temporary;
    match program.results.iter().find(given) {
        Some(&input) => {
            let what = format!("{input} is an input and a result: copy it to a temporary");
            Err((what, Spot::Buffer(input)))
        }
        None => Ok(()),
    }
}

fn statement(program: &Program, stmt: &Stmt, histories: &IndexSet<Buffer>) -> Result<(), String> {
    let mut written = Vec::new();
    if matches!(stmt, Stmt::Store(_) | Stmt::Call(_)) {
        targets(stmt, &mut |b| written.push(b));
    }
    if let Some(input) = written
        .iter()
        .find(|b| program.buffers[**b].role != Role::Temporary)
    {
        return Err(format!(
            "a store to {input}, which is an input: copy it to a temporary"
        ));
    }
    if let Stmt::For(all) = stmt
        && let Some(target) = conditional_init(&all.body)
    {
        return Err(format!(
            "`init` of {target} stands in a branch or a loop of a `for`: not all points would come to it"
        ));
    }
    let mut touched = Touched::of_itself(program, stmt);
    if let Stmt::Call(call) = stmt {
        let history = call.kept().map(|[_, history]| history);
        touched.reads.retain(|b| Some(*b) != history);
        touched.writes.retain(|b| Some(*b) != history);
        let n_outputs = touched.writes.len() + usize::from(history.is_some());
        if n_outputs < call.outputs.len()
            || touched.writes.iter().any(|b| touched.reads.contains(b))
        {
            return Err(format!(
                "`{}` makes and takes one buffer",
                call.library.name()
            ));
        }
    }
    let mut all = touched.reads.iter().chain(&touched.writes);
    match all.find(|b| histories.contains(*b)) {
        Some(history) => Err(format!("{history} is a history, which has no elements")),
        None => Ok(()),
    }
}

/// The first buffer that a store inside a branch or a loop at points initialises.
fn conditional_init(body: &[Stmt]) -> Option<Buffer> {
    let mut found = None;
    for stmt in body.iter().filter(|stmt| !matches!(stmt, Stmt::Store(_))) {
        visit(std::slice::from_ref(stmt), &mut |inside| {
            if let Stmt::Store(store) = inside {
                found = found.or(Some(store.target).filter(|_| store.init));
            }
        });
    }
    found
}

fn histories(program: &Program) -> IndexSet<Buffer> {
    let mut found = IndexSet::new();
    visit(&program.body, &mut |stmt| {
        if let Stmt::Call(call) = stmt {
            found.extend(call.kept().map(|[_, history]| history));
        }
    });
    found
}

/// The temporaries that may be read before all of them is stored.
fn unsure(program: &Program) -> IndexSet<Buffer> {
    let histories = histories(program);
    let mut unsure = undefined(program);
    unsure.retain(|b| program.buffers[*b].role == Role::Temporary && !histories.contains(b));
    unsure
}

/// Makes some temporaries zero at first.
fn fill(program: &mut Program, unsure: IndexSet<Buffer>) {
    let zeros = unsure.into_iter().map(|target| {
        let (domain, ty) = (
            program.buffers[target].shape.clone(),
            program.buffers[target].ty,
        );
        let store = Store {
            target,
            index: program.axes(domain.len()),
            value: program.exprs.constant(Scalar::zero(ty)),
            accum: None,
            init: false,
            outside: Outside::Never,
        };
        Stmt::For(For {
            domain,
            cells: None,
            body: vec![Stmt::Store(store)],
            span: Span::NONE,
        })
    });
    let zeros: Vec<Stmt> = zeros.collect();
    program.body.splice(..0, zeros);
}
