//! What a loop adds to data that all processes have: each adds its share, and all shares are combined after the loop.

use std::sync::Arc;

use aerogel_base::{Scalar, ScalarType, Span};
use aerogel_ir::analysis::access::constant_element;
use aerogel_ir::{AtomicOp, Builder, FieldData, FieldId, Function, Inst, Op, TreeId, Value, walk};
use aerogel_snode::{Tree, TreeBuilder};

use super::accesses::{Root, body_of, root, scalar};
use super::grid::{Outcome, Split, Sum, mistake};

/// Those of fields and those of variables.
type Sums = (Vec<Sum<FieldId>>, Vec<Sum<Value>>);

/// The sums of a loop.
///
/// # Errors
/// If it changes such data in another way.
pub(super) fn find(split: &Split<'_>, func: &Function, inst: Inst) -> Outcome<Sums> {
    let body = body_of(func, inst);
    let mut inside = Vec::new();
    walk(func, body, &mut |_, inner| inside.push(inner));
    let used = func.use_counts();
    let is_inside = |local: Value| func.def(local).is_some_and(|def| inside.contains(&def));
    let mut sums = Sums::default();
    for &inner in &inside {
        let span = func.insts[inner].span;
        let (place, op) = match func[inner] {
            Op::Store { place, .. } => (place, None),
            Op::Atomic { op, place, .. } => (place, Some(op)),
            _ => continue,
        };
        let is_used = || used[func.insts[inner].results[0]] > 0;
        match (root(func, place), op) {
            (Root::Field(_, field), _) if split.grid_of(field).is_some() => {}
            (Root::Local(local), _) if is_inside(local) => {}
            (Root::Other, _) => return Err(stored("an array", span)),
            (Root::Field(..), None) => return Err(stored("a field that is not split", span)),
            (Root::Local(_), None) => return Err(stored("a variable of the kernel", span)),
            (_, Some(_)) if is_used() => {
                let (message, note) = match split.is_derivative {
                    true => (
                        "the gradient needs the value before an atomic operation on data that all processes have",
                        "minima and maxima over all processes have no gradient",
                    ),
                    false => (
                        "the value before an atomic operation on data that all processes have is used",
                        "only the sum over all processes is known, after the loop",
                    ),
                };
                return Err(mistake(span, message, note));
            }
            (Root::Field(_, field), Some(op)) => {
                let op = operation(op, scalar(func, place), span)?;
                if split.env.is_sparse(field) || split.env.quant(field).is_some() {
                    return Err(stored("a sparse or quantised field", span));
                }
                let new = sum(func, place, field, op);
                if let Some(other) = sums.0.iter().find(|other| is_alias(split, other, &new)) {
                    return Err(two_names(split, [other.target, field], span));
                }
                add(&mut sums.0, new, span)?;
            }
            (Root::Local(local), Some(op)) => {
                let op = operation(op, scalar(func, place), span)?;
                add(&mut sums.1, sum(func, place, local, op), span)?;
            }
        }
    }
    for &inner in &inside {
        if let Op::Load { place } = func[inner] {
            let is_sum = match root(func, place) {
                Root::Field(_, field) => {
                    let read = sum(func, place, field, AtomicOp::Add);
                    let both =
                        |sum: &Sum<FieldId>| sum.target == field || is_alias(split, sum, &read);
                    sums.0.iter().any(both)
                }
                Root::Local(local) => sums.1.iter().any(|sum| sum.target == local),
                Root::Other => false,
            };
            if is_sum {
                let message = "a sum over all processes is read in the loop that makes it";
                return Err(mistake(
                    func.insts[inner].span,
                    message,
                    "read it after the loop",
                ));
            }
        }
    }
    Ok(sums)
}

/// Whether sums are over one place by the names of two fields, such as a vector's and a component's.
fn is_alias(split: &Split<'_>, a: &Sum<FieldId>, b: &Sum<FieldId>) -> bool {
    let places = |sum: &Sum<FieldId>| {
        let data = &split.env.fields[sum.target];
        let places = match sum.component {
            Some(at) => &data.places[at..=at],
            None => &data.places[..],
        };
        (data.tree, places.to_vec())
    };
    let ((tree, of_a), (other, of_b)) = (places(a), places(b));
    a.target != b.target && tree == other && of_a.iter().any(|place| of_b.contains(place))
}

fn two_names(split: &Split<'_>, fields: [FieldId; 2], span: Span) -> Box<aerogel_base::Diagnostic> {
    let [a, b] = fields.map(|field| split.name(field));
    let message =
        format!("a loop over split fields adds to one place by two names, `{a}` and `{b}`");
    mistake(span, message, "add to it by one of them")
}

fn stored(what: &str, span: Span) -> Box<aerogel_base::Diagnostic> {
    let message = format!(
        "a loop over split fields writes to {what}: each process would have its own part of it"
    );
    let note = "write to a split field, or combine values by `+=`, ti.atomic_min or ti.atomic_max on a field or a variable of the \
                kernel";
    mistake(span, message, note)
}

/// The operation that combines the shares.
fn operation(op: AtomicOp, ty: Option<ScalarType>, span: Span) -> Outcome<AtomicOp> {
    use ScalarType::{F32, F64, I32, I64, U32, U64};
    let combined = match op {
        AtomicOp::Add | AtomicOp::Sub => Some(AtomicOp::Add),
        AtomicOp::Min | AtomicOp::Max => Some(op),
        _ => None,
    };
    let has_type = matches!(ty, Some(F32 | F64 | I32 | I64 | U32 | U64));
    combined.filter(|_| has_type).ok_or_else(|| {
        let message =
            "this operation on data that all processes have cannot be combined over processes";
        let note = "sums, minima and maxima of numbers of 32 and 64 bits can";
        mistake(span, message, note)
    })
}

fn sum<T>(func: &Function, place: Value, target: T, op: AtomicOp) -> Sum<T> {
    let component = match func.def_op(place) {
        Some(Op::ElemRef { base, index }) => constant_element(func, *base, index),
        _ => None,
    };
    Sum {
        target,
        component,
        op,
    }
}

fn add<T: Copy + PartialEq>(sums: &mut Vec<Sum<T>>, new: Sum<T>, span: Span) -> Outcome<()> {
    let overlaps = |sum: &Sum<T>| {
        let all = sum.component.is_none() || new.component.is_none();
        sum.target == new.target && (all || sum.component == new.component)
    };
    if sums.iter().any(|sum| overlaps(sum) && sum.op != new.op) {
        let message = "a loop over split fields combines values in one place by two operations";
        return Err(mistake(span, message, "use a place for each operation"));
    }
    let is_known =
        |sum: &Sum<T>| overlaps(sum) && sum.component.is_none_or(|_| new.component.is_some());
    if !sums.iter().any(is_known) {
        sums.retain(|sum| !overlaps(sum));
        sums.push(new);
    }
    Ok(())
}

impl Split<'_> {
    /// Makes a variable of the kernel the only element of a field in a tree of its own.
    pub(super) fn hide(&mut self, func: &mut Function, local: Value) -> FieldId {
        let def = func.def(local).expect("a variable is an instruction");
        if let Op::FieldAt { field, .. } = func[def] {
            return field;
        }
        let ty = func.ty(local).pointee().expect("a storage");
        let elem = ty.elem().expect("structs have fallen apart");
        let name = format!("sum{}", self.hidden.len());
        let mut builder = TreeBuilder::default();
        let places = (0..ty.n_elems())
            .map(|k| builder.place(Tree::ROOT, elem, &format!("{name}_{k}")))
            .collect::<Result<_, _>>()
            .expect("a place in the root");
        let tree = Arc::new(builder.finish().expect("a few places"));
        self.hidden.push(tree.clone());
        let tree: TreeId = self.env.trees.push(tree);
        let field = self.env.fields.push(FieldData {
            name,
            elem: ty,
            tree,
            places,
            offset: Vec::new(),
            grad: None,
            dual: None,
        });
        func.insts[def].op = Op::FieldAt {
            field,
            indices: Vec::new(),
        };
        self.zero(func, (def, local), elem);
        field
    }

    /// A variable begins as zero.
    fn zero(&self, func: &mut Function, (def, local): (Inst, Value), elem: ScalarType) {
        let scratch = func.new_region(&[]);
        let ty = func.ty(local).pointee().expect("a storage");
        let mut b = Builder::new(func, scratch);
        let zero = b.constant(Scalar::zero(elem));
        let zero = b.splat(zero, ty);
        b.store(local, zero);
        let stored = std::mem::take(&mut func.regions[scratch].insts);
        let list = &mut func.regions[func.body].insts;
        let at = list.iter().position(|&inst| inst == def);
        let after = at.expect("a variable of the kernel stands in its outermost scope") + 1;
        list.splice(after..after, stored);
    }
}
