//! Alias classes of accesses. Memory is divided into disjoint classes: each place of a tree,
//! each local, each temporary, and all arrays together, since a caller may pass one array twice;
//! where written arrays are known to be apart, each of them by itself.

use crate::{
    Arg, CellOp, Effect, Env, FieldId, Function, NodeOp, NodeRef, Op, ParamData, ParamType, Region,
    Value, walk,
};
use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::LookupMap;

/// Memory that no other class overlaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// A place of a tree.
    Place(NodeRef),
    /// A local.
    Local(Value),
    /// A temporary at an offset that crosses tasks.
    Temp(u32),
    /// An array that shares no memory with others.
    Array(Arg),
    /// All arrays that may share memory.
    Arrays,
    /// Memory that the iterations of a block share.
    Shared(Value),
}

/// Whether it is known in which classes a storage may lie. Behind an address that was handed over there may be anything.
pub fn has_classes(func: &Function, place: Value) -> bool {
    match func.def_op(place) {
        Some(Op::PlaceAt { .. }) => false,
        Some(&(Op::ElemRef { base, .. } | Op::MemberRef { base, .. })) => has_classes(func, base),
        Some(&Op::Select {
            on_true, on_false, ..
        }) => has_classes(func, on_true) && has_classes(func, on_false),
        _ => true,
    }
}

/// The classes that a storage may lie in, if [`has_classes`] holds.
pub fn classes(func: &Function, env: &Env, place: Value) -> Vec<Class> {
    match func.def_op(place) {
        Some(Op::Local {}) => vec![Class::Local(place)],
        Some(Op::Shared {}) => vec![Class::Shared(place)],
        Some(&Op::RoomAt { room, .. }) => vec![Class::Local(buffer_of(func, room))],
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

/// The buffer that a room belongs to.
fn buffer_of(func: &Function, room: Value) -> Value {
    match func.def_op(room) {
        Some(&Op::Reserve { buffer, .. }) => buffer,
        op => unreachable!("{op:?} makes no room"),
    }
}

/// Whether an array argument shares no memory with others. Those that are only read may be one array.
pub fn is_apart(func: &Function, env: &Env, array: Arg) -> bool {
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
pub fn is_quantised(func: &Function, env: &Env, place: Value) -> bool {
    match func.def_op(place) {
        Some(&Op::FieldAt { field, .. }) => env.quant(field).is_some(),
        Some(&Op::ElemRef { base, .. } | &Op::MemberRef { base, .. }) => {
            is_quantised(func, env, base)
        }
        _ => false,
    }
}

/// The number of the element of a tensor's storage that constant indices name.
pub fn constant_element(func: &Function, base: Value, index: &[Value]) -> Option<usize> {
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
pub struct Clock {
    now: u32,
    last: LookupMap<Class, u32>,
    /// Everything counts as touched at this time.
    floor: u32,
}

impl Clock {
    /// Touches one class.
    pub fn touch(&mut self, class: Class) {
        self.now += 1;
        self.last.insert(class, self.now);
    }

    /// Touches all that there is.
    pub fn touch_all(&mut self) {
        self.now += 1;
        self.floor = self.now;
    }

    /// The time.
    pub fn now(&self) -> u32 {
        self.now
    }

    /// Whether none of the classes has been touched after `time`.
    pub fn untouched_since(&self, classes: &[Class], time: u32) -> bool {
        self.floor <= time
            && classes
                .iter()
                .all(|c| self.last.get(c).is_none_or(|&t| t <= time))
    }
}

/// The memory that an instruction modifies, as far as loads see it; nested instructions are not included.
pub enum Change<'a> {
    /// Nothing that a load reads.
    Nothing,
    /// The contents of these storages.
    Storages(&'a [Value]),
    /// All below a node: it becomes zero.
    Below(NodeRef),
    /// Perhaps anything.
    Anything,
}

/// The memory that an instruction modifies.
pub fn change(op: &Op) -> Change<'_> {
    match op {
        Op::Store { place, .. }
        | Op::Atomic { place, .. }
        | Op::Cas { place, .. }
        | Op::Update { place, .. } => Change::Storages(std::slice::from_ref(place)),
        Op::AtomicAdds { places, .. } => Change::Storages(places),
        Op::Call { .. } => Change::Anything,
        // What a cell that becomes active holds is zero, as it read before.
        Op::Cell(op) => match op {
            CellOp::Deactivate { node, .. } => Change::Below(*node),
            CellOp::Activate { .. } | CellOp::Append { .. } | CellOp::CellAt { .. } => {
                Change::Nothing
            }
            CellOp::IsActive { .. } | CellOp::Length { .. } | CellOp::FindCell { .. } => {
                Change::Nothing
            }
        },
        Op::Node(NodeOp::Release { node, .. } | NodeOp::ReleaseAll { node, .. }) => {
            Change::Below(*node)
        }
        // The runtime's own memory, and cells that were given back before.
        Op::Node(
            NodeOp::Obtain { .. }
            | NodeOp::Extend { .. }
            | NodeOp::ListStale { .. }
            | NodeOp::ListCount { .. }
            | NodeOp::ListScan { .. }
            | NodeOp::ListPut { .. }
            | NodeOp::Wipe { .. }
            | NodeOp::Collect { .. },
        )
        | Op::Prefetch { .. }
        | Op::AwaitTurn {}
        | Op::Reserve { .. }
        | Op::Grow { .. }
        | Op::Print { .. }
        | Op::Warn { .. }
        | Op::Note { .. }
        | Op::Assert { .. }
        | Op::RandomState { .. }
        | Op::Random {} => Change::Nothing,
        op if op.effect() == Effect::Writes => Change::Anything,
        _ => Change::Nothing,
    }
}

/// The storages that an instruction itself reads or changes.
pub fn touched(op: &Op) -> &[Value] {
    match (op, change(op)) {
        (Op::Load { place }, _) => std::slice::from_ref(place),
        (_, Change::Storages(places)) => places,
        _ => &[],
    }
}

/// The writes of a region, including nested ones.
#[derive(Default)]
pub struct Writes {
    /// The classes of the storages that are written.
    pub classes: Vec<Class>,
    /// A call may write anything.
    pub anything: bool,
}

/// The writes of a region, including nested ones.
pub fn writes(func: &Function, env: &Env, region: Region) -> Writes {
    let mut all = Writes::default();
    walk(func, region, &mut |func, inst| match change(&func[inst]) {
        Change::Nothing => {}
        Change::Storages(places) => {
            let written = places.iter().flat_map(|&place| classes(func, env, place));
            all.classes.extend(written);
        }
        Change::Below(node) => all.classes.extend(below(env, node)),
        Change::Anything => all.anything = true,
    });
    all
}

/// Whether a function may write to each of its array arguments. Those that it says to be read only it does not.
pub fn written_arrays(func: &Function, env: &Env) -> Vec<bool> {
    let (mut stored, mut anything) = (Vec::new(), false);
    walk(
        func,
        func.body,
        &mut |func, inst| match change(&func[inst]) {
            Change::Storages(places) => {
                for &place in places {
                    match has_classes(func, place) {
                        true => stored.extend(classes(func, env, place)),
                        false => anything = true,
                    }
                }
            }
            Change::Anything => anything = true,
            Change::Nothing | Change::Below(_) => {}
        },
    );
    anything = anything || stored.contains(&Class::Arrays);
    let written = |(at, param): (usize, &ParamData)| match param.ty {
        ParamType::Array { read_only, .. } => {
            let class = Class::Array(Arg::from_u32(at as u32));
            Some(!read_only && (anything || stored.contains(&class)))
        }
        ParamType::Value(_) => None,
    };
    func.params.iter().enumerate().filter_map(written).collect()
}

/// The classes of what lies below a node: they become zero when it is deactivated.
pub fn below(env: &Env, node: NodeRef) -> impl Iterator<Item = Class> {
    let tree = node.tree;
    let all = env.trees[tree].subtree(node.node).into_iter();
    all.map(move |node| Class::Place(NodeRef { tree, node }))
}

/// Whether a region calls functions, which may touch any field.
pub fn calls(func: &Function, region: Region) -> bool {
    let mut found = false;
    walk(func, region, &mut |func, inst| {
        found |= matches!(func[inst], Op::Call { .. });
    });
    found
}

/// Marks the values that `region` and the regions inside define.
pub fn defined_in(func: &Function, region: Region, marks: &mut SecondaryMap<Value, bool>) {
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
