//! The notation for statements over named axes: the checks of a text's tensors, and the statements that it stands for.
//!
//! ```text
//! "2*o+k; k => o" of x[7] and w[3]    for [o, k] { r[i0] add init = mul(x[2 * i0 + i1], w[i1]) }
//! ```

mod extents;
mod parse;
mod segments;

use indexmap::IndexMap;

use crate::ir::{Accum, Buffer, Dim, DimDef};

use super::{Affine, KnownPart, Mode, Recorded, Recording, Size};

pub use extents::Extent;
use extents::Known;
use parse::{Axis, Index, quoted, refused};

/// The shape of a tensor.
pub type Shape = Vec<Extent>;

/// Two sizes that must be equal, and the message if they are not: `{}` stand for both.
#[derive(Clone, Debug)]
struct Agreement {
    left: Extent,
    right: Extent,
    message: String,
}

/// A size with a lower bound, checked before anything is read; `{}` in the message stands for the size.
#[derive(Clone, Debug)]
pub struct AtLeast {
    /// The size.
    pub size: Size,
    /// The size while the program is traced.
    pub dim: Dim,
    /// The smallest that is enough.
    pub count: i64,
    /// The message for a smaller one.
    pub message: String,
}

/// One statement, of axes each of which is an index.
#[derive(Clone, Debug)]
struct Statement {
    maps: Vec<Vec<Affine>>,
    extents: Vec<Extent>,
    result: Vec<Affine>,
    shape: Shape,
    outside: Mode,
    agreements: Vec<Agreement>,
}

/// From where and how many elements of each axis of a tensor; nothing where all.
type Cut = Vec<Option<(i64, i64)>>;

/// A statement over parts of some of the tensors.
#[derive(Clone, Debug)]
struct Term {
    /// The tensors, and the part of each.
    cuts: Vec<(usize, Cut)>,
    statement: Statement,
}

/// How a result, or a part of it, is computed.
#[derive(Clone, Debug)]
enum Node {
    /// Put together of these.
    Sum(Vec<Term>),
    /// Parts one after the other along an axis.
    Joined(usize, Vec<Node>),
    /// The identity element.
    Nothing(Statement),
}

/// A parsed and checked text.
#[derive(Clone, Debug)]
pub struct Notation {
    node: Node,
    /// Conditions on sizes.
    pub asked: Vec<AtLeast>,
}

/// How a call says what its text does not.
#[derive(Clone, Copy)]
struct Call<'c> {
    spec: &'c str,
    /// Whether windows have zeros around if nothing is said of them.
    around: bool,
}

impl Notation {
    /// For tensors of these shapes; `given` are sizes of labels, and `into` is the shape of the result.
    ///
    /// # Errors
    /// If the text does not describe such tensors, or their sizes do not agree.
    pub fn of(
        spec: &str,
        padding: &str,
        shapes: &[Shape],
        given: &[(String, Extent)],
        into: Option<&Shape>,
    ) -> Recorded<Self> {
        let (texts, result) = parse::sides(spec)?;
        let around = match padding {
            "valid" => false,
            "same" => true,
            _ => {
                let padding = quoted(padding);
                return refused(format!("the padding is 'valid' or 'same', not {padding}"));
            }
        };
        if texts.len() != shapes.len() {
            let (spec, n, given) = (quoted(spec), texts.len(), shapes.len());
            return refused(format!("{spec} names {n} tensors, but {given} are passed"));
        }
        let tensors: Vec<Vec<Axis>> = texts
            .iter()
            .map(|text| parse::axes(text, spec))
            .collect::<Recorded<_>>()?;
        let rows = expanded(&tensors, shapes, spec)?;
        let target = of_result(parse::axes(result, spec)?, &rows);
        let call = Call { spec, around };
        let mut known = Known::new(spec, given)?;
        let indices = |row: &[Axis]| -> Option<Vec<Index>> {
            let one = |a: &Axis| match a {
                Axis::Index(a) => Some(a.clone()),
                _ => None,
            };
            row.iter().map(one).collect()
        };
        let plain: Option<Vec<Vec<Index>>> = rows.iter().map(|row| indices(row)).collect();
        let node = match (plain, indices(&target)) {
            (Some(plain), Some(target)) => {
                let statement = whole(call, &plain, &target, shapes, &mut known)?;
                let cut = |(k, row): (usize, &Vec<Index>)| (k, vec![None; row.len()]);
                let cuts = plain.iter().enumerate().map(cut).collect();
                Node::Sum(vec![Term { cuts, statement }])
            }
            _ => {
                let (rows, target) = named(rows, target);
                segments::plan(call, &rows, &target, shapes, into, &mut known)?
            }
        };
        let asked = known.asked;
        Ok(Self { node, asked })
    }
}

/// Axes with labels for those that `..` stands for, the last ones alike.
fn expanded(tensors: &[Vec<Axis>], shapes: &[Shape], spec: &str) -> Recorded<Vec<Vec<Axis>>> {
    let dots = |axes: &[Axis]| -> Vec<String> {
        let named = axes.iter().filter_map(|a| match a {
            Axis::Dots(name) => Some(name.clone()),
            _ => None,
        });
        named.collect()
    };
    let misfits = |rank: usize, n: usize| {
        let spec = quoted(spec);
        refused(format!(
            "a tensor with {rank} axes for {n} indices of {spec}"
        ))
    };
    let mut counts: IndexMap<String, usize> = IndexMap::new();
    let mut all: Vec<_> = tensors.iter().zip(shapes).collect();
    // A tensor with one `..` says how many axes it stands for; others follow.
    all.sort_by_key(|(axes, _)| dots(axes).len());
    for (axes, shape) in all {
        let (dots, rank) = (dots(axes), shape.len());
        let own = axes.len() - dots.len();
        let Some(spare) = rank
            .checked_sub(own)
            .filter(|&n| n == 0 || !dots.is_empty())
        else {
            return misfits(rank, own);
        };
        let is_new = |name: &&String| dots.len() == 1 || !counts.contains_key(*name);
        let (unknown, known): (Vec<_>, Vec<_>) = dots.iter().partition(is_new);
        let known: usize = known.iter().map(|&name| counts[name]).sum();
        // Rows without axes elsewhere: all are the output's, if it is among them.
        let is_output = unknown.iter().any(|&name| name == "output");
        let last = if is_output {
            "output"
        } else {
            unknown.last().map_or("", |n| n)
        };
        for &name in &unknown {
            let n = if name == last {
                spare.saturating_sub(known)
            } else {
                0
            };
            let count = counts.entry(name.clone()).or_default();
            *count = n.max(*count);
        }
    }
    let mut out = Vec::new();
    for (axes, shape) in tensors.iter().zip(shapes) {
        let (n_dots, rank) = (dots(axes).len(), shape.len());
        let mut row = Vec::new();
        for a in axes {
            let Axis::Dots(name) = a else {
                row.push(a.clone());
                continue;
            };
            let n = match n_dots {
                1 => rank + 1 - axes.len(),
                _ => counts[name],
            };
            let label = |k: usize| format!("..{name}{}", n - 1 - k);
            row.extend((0..n).map(|k| Axis::Index(Index::of_label(label(k)))));
        }
        if row.len() != rank {
            return misfits(rank, row.len());
        }
        out.push(row);
    }
    Ok(out)
}

/// The result's axes: of `..` as many as the tensor with the most of them has.
fn of_result(axes: Vec<Axis>, rows: &[Vec<Axis>]) -> Vec<Axis> {
    let indices = rows.iter().flatten().filter_map(|a| match a {
        Axis::Index(a) => Some(a),
        _ => None,
    });
    let labels: Vec<&str> = indices
        .flat_map(|a| a.terms.iter().map(|(label, _)| &label[..]))
        .collect();
    let all = axes.into_iter().flat_map(|a| {
        let Axis::Dots(name) = a else { return vec![a] };
        let prefix = format!("..{name}");
        let own = labels.iter().filter_map(|l| l.strip_prefix(&prefix[..]));
        let n = own.filter_map(|rest| rest.parse::<usize>().ok()).max();
        let n = n.map_or(0, |last| last + 1);
        let label = |k: usize| Index::of_label(format!("{prefix}{k}"));
        (0..n).rev().map(|k| Axis::Index(label(k))).collect()
    });
    all.collect()
}

/// Parts of axes without a label by a name that is the axis's own.
fn named(mut rows: Vec<Vec<Axis>>, mut target: Vec<Axis>) -> (Vec<Vec<Axis>>, Vec<Axis>) {
    let give = |row: &mut Vec<Axis>, place: &str| {
        for (axis, a) in row.iter_mut().enumerate() {
            let Axis::Joined(parts) = a else { continue };
            for (k, part) in parts.iter_mut().enumerate() {
                if let Some(n) = part.extent {
                    part.label = format!("{n} of axis {axis} of {place}, {k}");
                }
            }
        }
    };
    for (number, row) in rows.iter_mut().enumerate() {
        give(row, &format!("tensor {number}"));
    }
    give(&mut target, "the result");
    (rows, target)
}

/// One statement, of axes each of which is an index.
fn whole(
    call: Call<'_>,
    rows: &[Vec<Index>],
    target: &[Index],
    shapes: &[Shape],
    known: &mut Known,
) -> Recorded<Statement> {
    for (number, (row, shape)) in rows.iter().zip(shapes).enumerate() {
        for (axis, (a, &n)) in row.iter().zip(shape).enumerate() {
            known.put_label(a, n, number, axis)?;
        }
    }
    let begins = known.windows(rows, shapes, call.around)?;
    let labels = target.iter().flat_map(|a| a.terms.iter());
    known.expect(labels.map(|(label, _)| &label[..]))?;
    let shape = target
        .iter()
        .map(|a| known.extent(a))
        .collect::<Recorded<_>>()?;
    let too_large = || {
        let spec = quoted(call.spec);
        refused(format!("a number is too large for an index, in {spec}"))
    };
    let affine = |a: &Index, before: i64| -> Recorded<Affine> {
        let mut terms = Vec::new();
        for (label, factor) in &a.terms {
            let (Some(number), Ok(factor)) = (known.of.get_index_of(label), i32::try_from(*factor))
            else {
                return too_large();
            };
            terms.push((number as u32, factor));
        }
        match i32::try_from(a.offset - before) {
            Ok(offset) => Ok(Affine { terms, offset }),
            Err(_) => too_large(),
        }
    };
    let mut maps = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let begin = |axis| begins.get(&(number, axis)).copied().unwrap_or(0);
        let map = row
            .iter()
            .enumerate()
            .map(|(axis, a)| affine(a, begin(axis)));
        maps.push(map.collect::<Recorded<_>>()?);
    }
    let mut all = rows.iter().flatten();
    let around = all.any(|a| extents::is_around(a, call.around));
    Ok(Statement {
        maps,
        extents: known.of.values().copied().collect(),
        result: target
            .iter()
            .map(|a| affine(a, 0))
            .collect::<Recorded<_>>()?,
        shape,
        outside: if around { Mode::Zero } else { Mode::Never },
        agreements: known.agreements.clone(),
    })
}

impl Recording {
    /// The result of a text: `op` combines the tensors' elements, `accum` reduces over all points with the same index.
    ///
    /// # Errors
    /// If types or sizes differ.
    pub fn notation(
        &mut self,
        notation: &Notation,
        tensors: &[Buffer],
        op: &str,
        accum: Accum,
    ) -> Recorded {
        self.node(&notation.node, tensors, op, accum)
    }

    fn node(&mut self, node: &Node, tensors: &[Buffer], op: &str, accum: Accum) -> Recorded {
        match node {
            Node::Sum(terms) => {
                let mut sum = None;
                for term in terms {
                    let operands = term.cuts.iter().map(|(number, cut)| {
                        let x = tensors[*number];
                        let shape = self.shape(x);
                        let parts = cut.iter().zip(&shape).map(|(cut, &dim)| match *cut {
                            Some((start, n)) => self.part(KnownPart::span(start, n as u64)),
                            None => self.whole_axis(dim),
                        });
                        let parts: Vec<_> = parts.collect();
                        self.slice(x, &parts)
                    });
                    let operands = operands.collect::<Recorded<Vec<_>>>()?;
                    let value = self.statement(&term.statement, &operands, op, accum)?;
                    let name = match accum {
                        Accum::Min => "minimum",
                        Accum::Max => "maximum",
                        _ => accum.name(),
                    };
                    sum = Some(match sum {
                        None => value,
                        Some(sum) => self.binary(name, sum, value)?,
                    });
                }
                Ok(sum.expect("a part is made of something"))
            }
            Node::Joined(axis, nodes) => {
                let parts = nodes.iter().map(|n| self.node(n, tensors, op, accum));
                let parts = parts.collect::<Recorded<Vec<_>>>()?;
                self.concat(&parts, *axis as i64)
            }
            Node::Nothing(statement) => {
                let zero = aerogel_base::Scalar::zero(self.ty(tensors[0]));
                let none = [self.program.size(0)];
                let nothing = self.full(&none, zero);
                self.statement(statement, &[nothing], op, accum)
            }
        }
    }

    fn statement(
        &mut self,
        statement: &Statement,
        operands: &[Buffer],
        op: &str,
        accum: Accum,
    ) -> Recorded {
        for Agreement {
            left,
            right,
            message,
        } in &statement.agreements
        {
            let [left, right] = [left, right].map(|&n| self.dim_of(n));
            if !self.ask_equal(left, right, message) {
                return Err(super::RecordError::Value(message.clone()));
            }
        }
        let operands = operands.iter().copied().zip(statement.maps.iter().cloned());
        let operands: Vec<_> = operands.collect();
        let dims = |r: &mut Self, all: &[Extent]| -> Vec<Dim> {
            all.iter().map(|&n| r.dim_of(n)).collect()
        };
        let (extents, shape) = (dims(self, &statement.extents), dims(self, &statement.shape));
        let result = (&statement.result[..], &shape[..]);
        self.accumulate(&operands, &extents, result, op, accum, statement.outside)
    }

    fn dim_of(&mut self, extent: Extent) -> Dim {
        match extent {
            Extent::Number(n) => self.program.size(n as u64),
            Extent::Of(size, _) => self.dim(size),
            Extent::Windows(size, _, reach, factor) => {
                let n = self.dim(size);
                let n = self.program.extent(n);
                let [window, factor] = [reach.saturating_add(1), factor].map(|n| {
                    // A larger lower bound has been required by `AtLeast`, which no axis satisfies.
                    self.program.exprs.i32(i32::try_from(n).unwrap_or(i32::MAX))
                });
                let left = self.sub(n, window);
                let exprs = &mut self.program.exprs;
                let more = exprs.binary(aerogel_ir::BinaryOp::FloorDiv, left, factor);
                let one = exprs.i32(1);
                let count = exprs.binary(aerogel_ir::BinaryOp::Add, more, one);
                self.program.dim(DimDef::Value(count))
            }
        }
    }
}
