//! Axes of several, one after the other (`i^j`): the statements of their parts.
//!
//! Labels that stand in one axis are alternatives: of those that hang together one at a time is there. A tensor takes part
//! where the labels of its axes are, and another one stands in for it where they are not; the result has a part where its
//! labels are.

use indexmap::{IndexMap, IndexSet};

use super::super::Recorded;
use super::extents::{Extent, Known, underdetermined};
use super::parse::{Axis, Index, Segment, quoted, refused};
use super::{Call, Cut, Node, Shape, Term};

/// The axes of a text for each tensor, and for the result.
type Rows = [Vec<Axis>];

/// The statements of each part of the result.
pub(super) fn plan(
    call: Call<'_>,
    rows: &Rows,
    target: &[Axis],
    shapes: &[Shape],
    into: Option<&Shape>,
    known: &mut Known,
) -> Recorded<Node> {
    for (number, (row, shape)) in rows.iter().zip(shapes).enumerate() {
        for (axis, (a, &n)) in row.iter().zip(shape).enumerate() {
            if let Axis::Index(a) = a {
                known.put_label(a, n, number, axis)?;
            }
        }
    }
    put_segments(rows, target, shapes, into, known)?;
    known.expect(target.iter().flat_map(labels))?;
    let choices = Choices::of(rows, target);
    let mut parts: IndexMap<Vec<String>, Vec<Term>> = IndexMap::new();
    for picked in choices.all() {
        let mut chosen: Vec<Option<Vec<Index>>> = rows
            .iter()
            .map(|row| choices.chosen(row, &picked))
            .collect();
        let of_result = choices.chosen(target, &picked);
        let Some(of_result) = of_result.filter(|_| choices.stand_in(rows, &chosen, &picked)) else {
            continue;
        };
        let mut cuts = Vec::new();
        let mut cut_shapes = Vec::new();
        let mut there = Vec::new();
        for (number, row) in rows.iter().enumerate() {
            let Some(own) = chosen[number].take() else {
                continue;
            };
            let cut = cut(row, &own, known);
            let shape = shapes[number].iter().zip(&cut);
            cut_shapes.push(
                shape
                    .map(|(&n, cut)| cut.map_or(n, |(_, n)| Extent::Number(n)))
                    .collect(),
            );
            cuts.push((number, cut));
            there.push(own);
        }
        let mut own = known.of_labels(there.iter().flatten().chain(&of_result));
        let statement = super::whole(call, &there, &of_result, &cut_shapes, &mut own)?;
        known.asked.append(&mut own.asked);
        let whole = of_result.iter().zip(target);
        let at = whole.filter(|(_, whole)| matches!(whole, Axis::Joined(_)));
        let at = at.map(|(a, _)| a.terms[0].0.clone()).collect();
        parts.entry(at).or_default().push(Term { cuts, statement });
    }
    if parts.is_empty() {
        let spec = quoted(&known.spec);
        return refused(format!(
            "no segment of the result of {spec} is computed from a tensor"
        ));
    }
    joined(call, target, &mut Vec::new(), &mut parts, known)
}

fn labels(axis: &Axis) -> Vec<&str> {
    match axis {
        Axis::Index(a) => a.terms.iter().map(|(label, _)| &label[..]).collect(),
        Axis::Joined(parts) => parts.iter().map(|p| &p.label[..]).collect(),
        Axis::Dots(_) => Vec::new(),
    }
}

/// The result of its parts, one axis of several after the other.
fn joined(
    call: Call<'_>,
    target: &[Axis],
    at: &mut Vec<String>,
    parts: &mut IndexMap<Vec<String>, Vec<Term>>,
    known: &Known,
) -> Recorded<Node> {
    let mut joined_axes = target.iter().enumerate().filter_map(|(axis, a)| match a {
        Axis::Joined(parts) => Some((axis, parts)),
        _ => None,
    });
    if let Some((axis, segments)) = joined_axes.nth(at.len()) {
        let mut nodes = Vec::new();
        for segment in segments {
            at.push(segment.label.clone());
            nodes.push(joined(call, target, at, parts, known)?);
            at.pop();
        }
        return Ok(Node::Joined(axis, nodes));
    }
    if let Some(terms) = parts.get(at) {
        return Ok(Node::Sum(terms.clone()));
    }
    // No segment is stored here: the identity element.
    let mut names = at.iter();
    let row = target.iter().map(|a| match a {
        Axis::Index(a) => a.clone(),
        _ => Index::of_label(names.next().cloned().unwrap_or_default()),
    });
    let row: Vec<Index> = row.collect();
    let mut given = known.of_labels(row.iter());
    let nothing = Index::of_label("nothing".to_owned());
    let shapes = [vec![Extent::Number(0)]];
    super::whole(call, &[vec![nothing]], &row, &shapes, &mut given).map(Node::Nothing)
}

/// From where and how many elements of each axis a tensor has under its labels; nothing where it has all of them.
fn cut(row: &[Axis], chosen: &[Index], known: &Known) -> Cut {
    let both = row.iter().zip(chosen);
    let one = |(a, index): (&Axis, &Index)| {
        let Axis::Joined(parts) = a else { return None };
        let size = |p: &Segment| known.number(&p.label).unwrap_or(0);
        let before = parts.iter().take_while(|p| p.label != index.terms[0].0);
        let begin = before.map(size).sum();
        Some((begin, known.number(&index.terms[0].0).unwrap_or(0)))
    };
    both.map(one).collect()
}

/// A concatenated axis whose labels' sizes are not all known yet.
struct Open<'a> {
    place: String,
    axis: usize,
    is_result: bool,
    parts: &'a [Segment],
    n: Extent,
}

/// The sizes of labels in concatenated axes: the rest of the axis.
fn put_segments(
    rows: &Rows,
    target: &[Axis],
    shapes: &[Shape],
    into: Option<&Shape>,
    known: &mut Known,
) -> Recorded<()> {
    let mut open = Vec::new();
    let tensors = rows.iter().zip(shapes).enumerate();
    let tensors = tensors.map(|(k, (row, shape))| (Some(k), &row[..], Some(shape)));
    for (number, row, shape) in tensors.chain([(None, target, into)]) {
        let place = number.map_or_else(|| "`into`".to_owned(), |k| format!("tensor {k}"));
        for (axis, a) in row.iter().enumerate() {
            let n = match shape.map(|shape| shape.get(axis)) {
                None => None,
                Some(Some(&n)) => Some(n),
                Some(None) => break,
            };
            match (a, n) {
                (Axis::Joined(parts), n) => {
                    for part in parts {
                        if let Some(extent) = part.extent {
                            known.put(&part.label, Extent::Number(extent), "the axis")?;
                        }
                    }
                    open.extend(n.map(|n| Open {
                        place: place.clone(),
                        axis,
                        is_result: number.is_none(),
                        parts,
                        n,
                    }));
                }
                (Axis::Index(a), Some(n)) if number.is_none() => {
                    if let Some(label) = a.label().filter(|&l| !known.of.contains_key(l)) {
                        known.put(label, n, &place)?;
                    }
                }
                _ => {}
            }
        }
    }
    while !open.is_empty() {
        let before = open.len();
        let mut left = Vec::new();
        for axis in open {
            if !put_rest(&axis, known)? {
                left.push(axis);
            }
        }
        if left.len() == before {
            let labels = left[0].parts.iter().map(|p| &p.label[..]);
            return underdetermined(labels.filter(|&l| !known.of.contains_key(l)));
        }
        open = left;
    }
    Ok(())
}

/// The size of the only label of a concatenated axis whose size is not known; false if there are more.
fn put_rest(open: &Open<'_>, known: &mut Known) -> Recorded<bool> {
    let labels = || open.parts.iter().map(|p| &p.label[..]);
    let unknown: Vec<&str> = labels().filter(|&l| !known.of.contains_key(l)).collect();
    let there = labels().filter(|&l| known.of.contains_key(l));
    let sum: Option<i64> = there.map(|l| known.number(l)).sum();
    let text = open.parts.iter().map(|p| match p.extent {
        Some(n) => n.to_string(),
        None => p.label.clone(),
    });
    let text = text.collect::<Vec<_>>().join(" ^ ");
    let spec = quoted(&known.spec);
    let (Some(n), Some(sum)) = (open.n.number(), sum) else {
        if open.is_result {
            return Ok(true);
        }
        return refused(format!("the sizes of {text} in {spec} are not known"));
    };
    if unknown.len() > 1 {
        return Ok(false);
    }
    let rest = n - sum;
    if rest < 0 || rest > 0 && unknown.is_empty() {
        let (axis, place) = (open.axis, &open.place);
        return refused(format!(
            "{text} has {sum} elements, but axis {axis} of {place} has {n}: {spec}"
        ));
    }
    for label in unknown {
        known.put(label, Extent::Number(rest), &open.place)?;
    }
    Ok(true)
}

/// Labels of which one at a time is there: those that stand in one axis, and what hangs together with them.
struct Choices {
    groups: Vec<IndexSet<String>>,
}

impl Choices {
    fn of(rows: &Rows, target: &[Axis]) -> Self {
        let mut groups: Vec<IndexSet<String>> = Vec::new();
        for a in rows.iter().flatten().chain(target) {
            let Axis::Joined(parts) = a else { continue };
            let own: IndexSet<String> = parts.iter().map(|p| p.label.clone()).collect();
            let is_apart = |g: &IndexSet<String>| g.is_disjoint(&own);
            let (apart, meets): (Vec<_>, Vec<_>) = groups.into_iter().partition(is_apart);
            groups = apart;
            groups.push(meets.into_iter().flatten().chain(own.clone()).collect());
        }
        Self { groups }
    }

    /// Each choice of one label of every group.
    fn all(&self) -> Vec<Vec<&str>> {
        let mut all = vec![Vec::new()];
        for group in &self.groups {
            let longer = all.iter().flat_map(|picked| {
                group.iter().map(move |label| {
                    let mut picked: Vec<&str> = picked.clone();
                    picked.push(label);
                    picked
                })
            });
            all = longer.collect();
        }
        all
    }

    /// With which labels of a group a tensor is there; nothing if it has none of them.
    fn reach<'r>(&self, row: &'r [Axis], group: usize) -> Option<Vec<&'r str>> {
        let mut out: Option<Vec<&str>> = None;
        for a in row {
            let mut own = labels(a);
            own.retain(|&label| self.groups[group].contains(label));
            if !own.is_empty() {
                out = Some(match out {
                    None => own,
                    Some(mut out) => {
                        out.retain(|label| own.contains(label));
                        out
                    }
                });
            }
        }
        out
    }

    /// The axes of a tensor with the label that is there; nothing where it is not.
    fn chosen(&self, row: &[Axis], picked: &[&str]) -> Option<Vec<Index>> {
        for (group, label) in picked.iter().enumerate() {
            let reach = self.reach(row, group);
            if reach.is_some_and(|reach| !reach.contains(label)) {
                return None;
            }
        }
        let one = |a: &Axis| match a {
            Axis::Index(a) => Some(a.clone()),
            Axis::Joined(parts) => {
                let first = &parts[0].label;
                let group = self.groups.iter().position(|g| g.contains(first))?;
                Some(Index::of_label(picked[group].to_owned()))
            }
            Axis::Dots(_) => None,
        };
        row.iter().map(one).collect()
    }

    /// Whether another tensor is there for each that is not: one that is never there together with it.
    fn stand_in(&self, rows: &Rows, chosen: &[Option<Vec<Index>>], picked: &[&str]) -> bool {
        for (k, row) in rows.iter().enumerate() {
            if chosen[k].is_some() {
                continue;
            }
            for (group, label) in picked.iter().enumerate() {
                let Some(mine) = self.reach(row, group).filter(|mine| !mine.contains(label)) else {
                    continue;
                };
                let others = rows.iter().zip(chosen).filter(|(_, own)| own.is_some());
                let mut others = others.filter_map(|(row, _)| self.reach(row, group));
                if !others.any(|other| other.iter().all(|label| !mine.contains(label))) {
                    return false;
                }
            }
        }
        chosen.iter().any(Option::is_some)
    }
}
