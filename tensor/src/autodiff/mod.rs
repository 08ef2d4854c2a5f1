//! Reverse mode: statements that make results of tensors become statements that make the adjoints of those tensors.
//!
//! ```text
//! for [n, m] { t[i0] add init = mul(a[i0, i1], x[i1]) }      for [m, n] { X[i0] add init = mul(T[i1], a[i1, i0]) }
//! ```
//! The adjoint of a buffer has the derivative of the results, each times its seed, by every element of the buffer. The
//! statements are visited from the last to the first. Where `t` is stored, the adjoint of the value is `T` at the same
//! index, and what the value loads gets its part of that by the partial derivatives of the operations between
//! ([`aerogel_ir::derivatives`]). Such parts are sums at other indices, which the passes turn into reductions and reads
//! where the index is one to one (`passes/inverse.rs`).
//!
//! Everything is recorded as ordinary statements, so that adjoints have adjoints.

mod accumulations;
mod blocks;
mod expressions;
mod functions;
mod histories;
mod kernels;
mod libraries;
mod matrices;
mod points;
mod scans;
mod traced;
mod uses;
mod versions;

use aerogel_base::hash::LookupMap;
use indexmap::{IndexMap, IndexSet};

use crate::ir::{Buffer, Expr, Place, Program, Stmt, Touched, targets};
use crate::record::{RecordError, Recorded, Recording, varying};
use versions::Versions;

/// The adjoints of some buffers.
#[derive(Debug)]
pub struct Adjoints {
    /// Each with its buffer's type and shape; none for what no result depends on smoothly.
    pub wanted: Vec<Option<Buffer>>,
    /// What each statement that makes the results becomes: they keep what the adjoints read of them.
    pub body: Vec<Vec<Stmt>>,
}

/// The adjoints of `wanted`. `body` has the statements that make the results, in their order, and `seeds` has each result
/// with its adjoint; `before` has what of the program comes before, or is around. Statements are appended to the recording.
///
/// # Errors
/// If a result depends on what is wanted by an operation that has no derivative.
pub fn reverse(
    recording: &mut Recording,
    before: &[Stmt],
    body: &[Stmt],
    seeds: &[(Buffer, Buffer)],
    wanted: &[Buffer],
) -> Recorded<Adjoints> {
    let dependent = match recording.has_detached() {
        true => varying(
            &recording.program,
            &without_detached(recording, body),
            wanted,
        ),
        false => varying(&recording.program, body, wanted),
    };
    let (active, others) = dependent
        .into_iter()
        .partition(|&b| recording.ty(b).is_float());
    let has_blocks = body
        .iter()
        .any(|stmt| matches!(stmt, Stmt::If(..) | Stmt::Loop { .. }));
    let mut uses = LookupMap::default();
    if has_blocks {
        uses::add_uses(&recording.program, before, &mut uses);
        uses::add_uses(&recording.program, body, &mut uses);
    }
    let mut reverse = Reverse {
        recording,
        active,
        others,
        adjoints: IndexMap::new(),
        wanted: wanted.iter().copied().collect(),
        found: IndexMap::new(),
        versions: Versions::default(),
        edits: IndexMap::new(),
        indices: None,
        uses,
    };
    for &(result, seed) in seeds {
        // A copy: the seed may be made by what is visited.
        let seed = reverse.recording.distinct(seed)?;
        reverse.contribute(result, seed);
    }
    let body = reverse.block(body)?;
    let adjoints = wanted.iter().map(|&b| match reverse.found.get(&b) {
        Some(&found) => Ok(Some(found)),
        None => reverse.adjoint(b),
    });
    let wanted = adjoints.collect::<Recorded<_>>()?;
    Ok(Adjoints { wanted, body })
}

/// Statements but for those that make copies on which no gradient depends.
fn without_detached(recording: &Recording, body: &[Stmt]) -> Vec<Stmt> {
    let mut out = Vec::new();
    for stmt in body {
        let mut stmt = stmt.clone();
        if let Stmt::For(_) = stmt {
            let mut is_detached = false;
            targets(&stmt, &mut |b| is_detached |= recording.is_detached(b));
            if is_detached {
                continue;
            }
        }
        for block in stmt.blocks_mut() {
            *block = without_detached(recording, block);
        }
        out.push(stmt);
    }
    out
}

/// The state of a reversal.
struct Reverse<'r> {
    recording: &'r mut Recording,
    /// The float buffers that depend on what is wanted.
    active: IndexSet<Buffer>,
    /// The other buffers that do.
    others: IndexSet<Buffer>,
    /// Parts of the adjoints of buffers, as of before the statements that have been visited.
    adjoints: IndexMap<Buffer, Vec<Buffer>>,
    wanted: IndexSet<Buffer>,
    /// The adjoints of what is wanted that a statement makes.
    found: IndexMap<Buffer, Buffer>,
    versions: Versions,
    /// The replacements of statements of the visited block, which save the values that adjoints need.
    edits: IndexMap<usize, Vec<Stmt>>,
    /// The values of buffers of indices, computed when first needed.
    indices: Option<LookupMap<Buffer, Option<Expr>>>,
    /// How many statements touch each buffer, if there are blocks.
    uses: LookupMap<Buffer, usize>,
}

fn refused<T>(what: &str) -> Recorded<T> {
    Err(RecordError::NoGradient(what.to_owned(), Place::NONE))
}

impl Reverse<'_> {
    fn program(&self) -> &Program {
        &self.recording.program
    }

    /// Adds a part to the adjoint of a buffer.
    fn contribute(&mut self, buffer: Buffer, part: Buffer) {
        self.adjoints.entry(buffer).or_default().push(part);
    }

    /// The sum of the parts of the adjoint of a buffer, if there are any.
    fn adjoint(&mut self, buffer: Buffer) -> Recorded<Option<Buffer>> {
        let parts = self.adjoints.get(&buffer).cloned().unwrap_or_default();
        let Some((&first, rest)) = parts.split_first() else {
            return Ok(None);
        };
        let mut sum = first;
        for &part in rest {
            sum = self.recording.binary("add", sum, part)?;
        }
        self.adjoints.insert(buffer, vec![sum]);
        Ok(Some(sum))
    }

    fn stmt(&mut self, at: usize, stmt: &Stmt) -> Recorded<()> {
        let touched = Touched::by(self.program(), std::slice::from_ref(stmt));
        let matters = |b: &Buffer| self.adjoints.contains_key(b) && self.active.contains(b);
        if !touched.writes.iter().any(matters) {
            return Ok(());
        }
        let span = self.recording.span;
        let done = self.through_stmt(at, stmt);
        self.recording.span = span;
        done.map_err(|e| match e {
            RecordError::NoGradient(what, Place::NONE) => {
                let made = touched.writes.iter().map(|&b| self.recording.lines.get(b));
                let mut known = made.filter(|&place| place != Place::NONE);
                RecordError::NoGradient(what, known.next().unwrap_or(Place::NONE))
            }
            other => other,
        })
    }

    fn through_stmt(&mut self, at: usize, stmt: &Stmt) -> Recorded<()> {
        match stmt {
            Stmt::For(all) => {
                let mut running = None;
                targets(stmt, &mut |b| {
                    running = self.recording.running(b).map(|r| (b, r))
                });
                match running {
                    Some((target, running)) => self.through_running(target, running),
                    None => self.points(all),
                }
            }
            Stmt::Call(call) => self.call(call),
            Stmt::Run(run) => self.run(run),
            Stmt::If(..) => self.branch(at, stmt),
            Stmt::Loop { .. } => self.turns(at, stmt),
            _ => Ok(()),
        }
    }
}
