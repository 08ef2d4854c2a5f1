//! What an access may touch. Memory falls into classes that never overlap: each place of a tree,
//! each local, each temporary, and all arrays together, since a caller may pass one array twice;
//! where written arrays are known to be apart, each of them by itself.

use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::LookupMap;
use aerogel_ir::{
    Arg, CellOp, Env, FieldId, Function, NodeOp, NodeRef, Op, ParamType, Region, Value, walk,
};

/// Memory that no other class overlaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    Place(NodeRef),
    Local(Value),
    Temp(u32),
    Array(Arg),
    Arrays,
}

/// The classes that a storage may lie in.
pub(crate) fn classes(func: &Function, env: &Env, place: Value) -> Vec<Class> {
    match func.def_op(place) {
        Some(Op::Local {}) => vec![Class::Local(place)],
        Some(&Op::TempAt { offset }) => vec![Class::Temp(offset)],
        Some(&Op::ArrayAt { array, .. }) if is_apart(func, env, array) => {
            vec![Class::Array(array)]
        }
        Some(Op::ArrayAt { .. }) => vec![Class::Arrays],
        Some(&Op::FieldAt { field, .. }) => field_classes(env, field),
        Some(&Op::Node(NodeOp::Child { node, .. })) => vec![Class::Place(node)],
        Some(Op::ElemRef { base, index }) => {
            let whole = classes(func, env, *base);
            match (func.def_op(*base), constant_element(func, *base, index)) {
                (Some(Op::FieldAt { .. }), Some(k)) => {
                    whole.get(k).copied().map_or(whole, |c| vec![c])
                }
                _ => whole,
            }
        }
        Some(&Op::MemberRef { base, .. }) => classes(func, env, base),
        Some(&Op::Select {
            on_true, on_false, ..
        }) => {
            let mut all = classes(func, env, on_true);
            all.extend(classes(func, env, on_false));
            all
        }
        op => unreachable!("{op:?} makes no storage"),
    }
}

/// Whether an array argument shares no memory with others.
fn is_apart(func: &Function, env: &Env, array: Arg) -> bool {
    let param = &func.params[array.as_u32() as usize];
    let written = matches!(
        param.ty,
        ParamType::Array {
            read_only: false,
            ..
        }
    );
    env.arrays_apart && written
}

fn field_classes(env: &Env, field: FieldId) -> Vec<Class> {
    let f = &env.fields[field];
    let tree = &env.trees[f.tree];
    f.places
        .iter()
        .map(|&place| {
            // Who changes one of the numbers that share an exponent changes all.
            let group = tree.exponent_group(place);
            let node = group.first().copied().unwrap_or(place);
            Class::Place(NodeRef { tree: f.tree, node })
        })
        .collect()
}

/// Whether a storage holds less than is stored in it: components of quantised fields do.
pub(crate) fn is_quantised(func: &Function, env: &Env, place: Value) -> bool {
    match func.def_op(place) {
        Some(&Op::FieldAt { field, .. }) => env.quant(field).is_some(),
        Some(&Op::ElemRef { base, .. } | &Op::MemberRef { base, .. }) => {
            is_quantised(func, env, base)
        }
        _ => false,
    }
}

/// The number of the element of a tensor's storage that constant indices name.
pub(crate) fn constant_element(func: &Function, base: Value, index: &[Value]) -> Option<usize> {
    let shape = func.ty(base).pointee()?.shape();
    let mut linear = 0;
    for (&i, extent) in index.iter().zip(shape) {
        let i = u32::try_from(func.as_const(i)?.as_i128())
            .ok()
            .filter(|&i| i < extent)?;
        linear = linear * extent as usize + i as usize;
    }
    Some(linear)
}

/// When each class was last written (or read), on a clock of one's own.
#[derive(Default)]
pub(crate) struct Clock {
    now: u32,
    last: LookupMap<Class, u32>,
    /// Everything counts as touched at this time.
    floor: u32,
}

impl Clock {
    pub(crate) fn touch(&mut self, class: Class) {
        self.now += 1;
        self.last.insert(class, self.now);
    }

    pub(crate) fn touch_all(&mut self) {
        self.now += 1;
        self.floor = self.now;
    }

    pub(crate) fn now(&self) -> u32 {
        self.now
    }

    /// Whether none of the classes has been touched after `time`.
    pub(crate) fn untouched_since(&self, classes: &[Class], time: u32) -> bool {
        self.floor <= time
            && classes
                .iter()
                .all(|c| self.last.get(c).is_none_or(|&t| t <= time))
    }
}

/// What a region (with those inside) writes.
#[derive(Default)]
pub(crate) struct Writes {
    pub(crate) classes: Vec<Class>,
    /// A call may write anything.
    pub(crate) anything: bool,
}

pub(crate) fn writes(func: &Function, env: &Env, region: Region) -> Writes {
    let mut all = Writes::default();
    walk(func, region, &mut |func, inst| match &func[inst] {
        Op::Store { place, .. }
        | Op::Atomic { place, .. }
        | Op::Cas { place, .. }
        | Op::Update { place, .. } => all.classes.extend(classes(func, env, *place)),
        Op::Cell(CellOp::Deactivate { node, .. }) => all.classes.extend(below(env, *node)),
        Op::Call { .. } => all.anything = true,
        _ => {}
    });
    all
}

/// The classes of what lies below a node: they become zero when it is deactivated.
pub(crate) fn below(env: &Env, node: NodeRef) -> impl Iterator<Item = Class> {
    let tree = node.tree;
    let all = env.trees[tree].subtree(node.node).into_iter();
    all.map(move |node| Class::Place(NodeRef { tree, node }))
}

/// Whether a region calls functions, which may touch any field.
pub(crate) fn calls(func: &Function, region: Region) -> bool {
    let mut found = false;
    walk(func, region, &mut |func, inst| {
        found |= matches!(func[inst], Op::Call { .. });
    });
    found
}

/// Marks the values that `region` and the regions inside define.
pub(crate) fn defined_in(func: &Function, region: Region, marks: &mut SecondaryMap<Value, bool>) {
    func.regions[region]
        .params
        .iter()
        .for_each(|&p| marks[p] = true);
    for &inst in &func.regions[region].insts {
        func.insts[inst]
            .results
            .iter()
            .for_each(|&r| marks[r] = true);
        func[inst].regions(|r| defined_in(func, r, marks));
    }
}
