//! The meaning of every instruction.

mod control;
mod nodes;
mod products;
mod tensors;

use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::LookupSet;
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{
    AtomicOp, FieldId, FuncId, Function, Inst, Module, NodeOp, NodeRef, Op, Region, Type, Value,
    eval, walk,
};
use aerogel_runtime::interrupt;
use aerogel_runtime::launch::PrintSink;
use aerogel_runtime::races::{Race, Races};
use aerogel_snode::{MAX_AXES, NodeKind};

use self::control::int;
use crate::memory::{Memory, Sites};
use crate::value::{Slot, Val};

/// How a region ended.
pub(crate) enum Flow {
    Yield(Vec<Val>),
    Break(Vec<Val>),
    Continue(Vec<Val>),
    Return(Vec<Val>),
    /// The accesses to a scalar are a race.
    Race(Box<Race>),
    /// A failed assertion, or no memory for a cell: the site and the values of its message.
    Fail(usize, Vec<u64>),
    /// The launch shall end.
    Interrupted,
}

pub(crate) struct Machine<'a> {
    module: &'a Module,
    id: FuncId,
    values: SecondaryMap<Value, Option<Val>>,
    memory: Memory<'a>,
    sites: &'a Sites,
    sink: &'a dyn PrintSink,
    /// The sites of warnings that the launch has come to.
    said: LookupSet<usize>,
    races: Races,
    seed: u64,
    /// The random state of the iteration.
    random: u64,
    /// The number of the iteration.
    linear: i64,
    /// Range tasks that began before.
    n_ranges: u32,
    /// Whether the loop that is running does not count.
    aside: bool,
    /// The index space of the range task that is running.
    space: Vec<(i64, i64)>,
    /// Whether cells were deactivated since the last collection, in a kernel that does not collect
    /// them itself yet.
    deactivated: bool,
    collects_itself: bool,
    /// The results of a task.
    returned: Option<Vec<Val>>,
}

impl<'a> Machine<'a> {
    pub(crate) fn new(
        module: &'a Module,
        id: FuncId,
        memory: Memory<'a>,
        sites: &'a Sites,
        sink: &'a dyn PrintSink,
        seed: u64,
    ) -> Self {
        let random = eval::random_state(seed, 0, 0);
        let races = Races::new(&memory.buffers());
        Self {
            module,
            id,
            values: SecondaryMap::new(),
            memory,
            sites,
            sink,
            said: LookupSet::default(),
            races,
            seed,
            random,
            linear: 0,
            n_ranges: 0,
            aside: false,
            space: Vec::new(),
            deactivated: false,
            collects_itself: contains(&module.funcs[id], |op| {
                matches!(op, Op::Node(NodeOp::Collect { .. }))
            }),
            returned: None,
        }
    }

    /// Runs the kernel.
    pub(crate) fn kernel(&mut self) -> Flow {
        let body = self.func().body;
        let flow = self.region(body);
        self.collect();
        match (flow, self.returned.take()) {
            (Flow::Yield(_), Some(values)) => Flow::Return(values),
            (flow, _) => flow,
        }
    }

    /// Runs a function with arguments; values of the caller are preserved.
    pub(crate) fn function(&mut self, id: FuncId, args: Vec<Val>) -> Flow {
        let caller = std::mem::replace(&mut self.id, id);
        let values = std::mem::take(&mut self.values);
        let body = self.func().body;
        self.bind(body, args);
        let flow = self.region(body);
        self.values = values;
        self.id = caller;
        flow
    }

    fn func(&self) -> &'a Function {
        &self.module.funcs[self.id]
    }

    fn bind(&mut self, region: Region, args: Vec<Val>) {
        for (&param, arg) in self.func().regions[region].params.iter().zip(args) {
            self.values[param] = Some(arg);
        }
    }

    fn val(&self, v: Value) -> &Val {
        self.values[v]
            .as_ref()
            .expect("the verifier checked that values are defined before use")
    }

    fn vals(&self, values: &[Value]) -> Vec<Val> {
        values.iter().map(|&v| self.val(v).clone()).collect()
    }

    fn int(&self, v: Value) -> i64 {
        self.val(v).scalar().as_i128() as i64
    }

    fn ints(&self, values: &[Value]) -> Vec<i64> {
        values.iter().map(|&v| self.int(v)).collect()
    }

    fn slots(&self, values: &[Value]) -> Vec<u64> {
        values
            .iter()
            .map(|&v| self.val(v).scalar().slot())
            .collect()
    }

    fn scalars_of(&self, ty: Type) -> Vec<ScalarType> {
        self.module.env.scalars(ty)
    }

    fn region(&mut self, region: Region) -> Flow {
        // Bodies of loops are regions, so every loop looks here.
        if interrupt::requested() {
            return Flow::Interrupted;
        }
        let mark = self.memory.mark();
        let flow = self.line(region);
        // Storage lives as long as its region runs.
        self.memory.release(mark);
        flow
    }

    fn line(&mut self, region: Region) -> Flow {
        let func = self.func();
        for &inst in &func.regions[region].insts {
            match &func[inst] {
                Op::Yield { values } => return Flow::Yield(self.vals(values)),
                Op::Break { values } => return Flow::Break(self.vals(values)),
                Op::Continue { values } => return Flow::Continue(self.vals(values)),
                Op::Return { values } => return Flow::Return(self.vals(values)),
                op => {
                    let results = match self.inst(inst, op) {
                        Ok(results) => results,
                        Err(flow) => return flow,
                    };
                    for (&r, val) in func.insts[inst].results.iter().zip(results) {
                        self.values[r] = Some(val);
                    }
                }
            }
        }
        Flow::Yield(Vec::new())
    }

    /// The room that a buffer has then, and whether there was memory for it.
    fn reserve(&mut self, buffer: Value, count: Value) -> Vec<Val> {
        let (number, count) = (self.val(buffer).clone(), self.int(count));
        let Type::Buffer(ty) = self.func().ty(buffer) else {
            unreachable!("the verifier checked that it is a buffer")
        };
        let wanted = usize::try_from(count).unwrap_or(0);
        let at = number.scalar().as_i128() as usize;
        let granted = self.memory.reserve(at, ty, wanted);
        vec![number, Val::from(Scalar::bool(granted))]
    }

    /// The storage of a type at an offset of the temporaries.
    fn temporary(&self, offset: u32, ty: Type) -> Val {
        let mut at = offset as usize;
        let scalars = self.scalars_of(ty.pointee().expect("a storage"));
        let mut next = |ty: ScalarType| {
            at += ty.bytes() as usize;
            at - ty.bytes() as usize
        };
        let places = scalars.into_iter().map(|ty| (Slot::Temp(next(ty)), ty));
        Val::Place(places.collect())
    }

    /// Changes a storage: what it held before.
    fn atomic(
        &mut self,
        inst: Inst,
        op: AtomicOp,
        place: Value,
        value: Value,
    ) -> Result<Val, Flow> {
        let places = self.val(place).place().iter();
        let old: Vec<Scalar> = places.map(|&p| self.memory.read(p)).collect();
        let operand = self.val(value).scalars();
        let pairs = old.iter().zip(operand);
        let new = pairs.map(|(&old, x)| combine(op, old, x)).collect();
        self.write(inst, place, new)?;
        Ok(Val::Scalars(old))
    }

    /// Stores a value where a storage holds what is expected: what it held before.
    fn compare_and_store(
        &mut self,
        inst: Inst,
        place: Value,
        expected: Value,
        value: Value,
    ) -> Result<Val, Flow> {
        let old = self.memory.read(self.val(place).place()[0]);
        let swaps = old.slot() == self.val(expected).scalar().slot();
        let new = if swaps { self.val(value).scalar() } else { old };
        // Like all atomics it makes the cell active, whatever is in there.
        self.write(inst, place, vec![new])?;
        Ok(Val::from(old))
    }

    /// The iterations of a task's space.
    fn each(&mut self, body: Region) -> Result<Vec<Val>, Flow> {
        let func = self.func();
        let params = func.regions[body].params.iter();
        let params: Vec<ScalarType> = params.map(|&p| func.elem(p)).collect();
        let space = self.space.clone();
        self.range_task(&space, body, &|index| {
            let pairs = index.iter().zip(&params);
            pairs.map(|(&i, &t)| int(t, i)).collect()
        })
    }

    fn parallel(&mut self, lo: &[Value], hi: &[Value], body: Region) -> Result<Vec<Val>, Flow> {
        let func = self.func();
        let space: Vec<(i64, i64)> = self.ints(lo).into_iter().zip(self.ints(hi)).collect();
        let types: Vec<ScalarType> = lo.iter().map(|&v| func.elem(v)).collect();
        self.range_task(&space, body, &|index| {
            index.iter().zip(&types).map(|(&i, &t)| int(t, i)).collect()
        })
    }

    /// Prints a message; a warning is said once.
    fn say(&mut self, inst: Inst, args: &[Value], again: bool) {
        let number = self.sites.at(self.id, inst);
        if self.said.insert(number) || again {
            let site = &self.sites.list[number];
            self.sink.print(&site.render(&self.slots(args)));
        }
    }

    /// A tensor with one element replaced.
    fn tensor_set(&self, tensor: Value, index: &[Value], value: Value) -> Val {
        let mut all = self.val(tensor).scalars();
        if let Some(k) = self.element(self.func().ty(tensor), index) {
            all[k] = self.val(value).scalar();
        }
        Val::Scalars(all)
    }

    /// The results of an instruction, or how the region ends because of it.
    fn inst(&mut self, inst: Inst, op: &Op) -> Result<Vec<Val>, Flow> {
        let func = self.func();
        let result_ty = || func.ty(func.insts[inst].results[0]);
        let one = match op {
            Op::Const { value } => Val::from(*value),
            Op::Undef {} => Val::Scalars(
                self.scalars_of(result_ty())
                    .into_iter()
                    .map(Scalar::zero)
                    .collect(),
            ),
            Op::Arg { arg } => {
                let scalars = self.memory.arg(*arg).to_vec();
                if func.insts[inst].results.len() > 1 {
                    return Ok(scalars.into_iter().map(Val::from).collect());
                }
                Val::Scalars(scalars)
            }
            Op::ArrayShape { array, axis } => Val::from(Scalar::int(
                ScalarType::I32,
                i128::from(self.memory.array_shape(*array, *axis)),
            )),
            // Structs and storages are chosen as a whole.
            Op::Select {
                cond,
                on_true,
                on_false,
            } if !result_ty().is_numeric() => {
                let chosen = match self.val(*cond).scalar().as_bool() {
                    true => on_true,
                    false => on_false,
                };
                self.val(*chosen).clone()
            }
            Op::Unary { .. }
            | Op::Binary { .. }
            | Op::Compare { .. }
            | Op::Select { .. }
            | Op::Fma { .. }
            | Op::MulAdd { .. }
            | Op::Cast { .. }
            | Op::StopGradient { .. }
            | Op::Bitcast { .. } => self.elementwise(op, result_ty()),
            Op::TensorMake { elems } | Op::StructMake { members: elems } => {
                Val::Scalars(elems.iter().flat_map(|&e| self.val(e).scalars()).collect())
            }
            Op::TensorGet { tensor, index } => {
                let at = self.element(func.ty(*tensor), index);
                let elem = func.elem(*tensor);
                let all = self.val(*tensor).scalars();
                Val::from(at.map_or(Scalar::zero(elem), |k| all[k]))
            }
            Op::TensorSet {
                tensor,
                index,
                value,
            } => self.tensor_set(*tensor, index, *value),
            Op::MatMul { lhs, rhs } => self.matmul(*lhs, *rhs),
            Op::StructGet { value, member } => {
                let range = self.member(func.ty(*value), *member);
                Val::Scalars(self.val(*value).scalars()[range].to_vec())
            }
            Op::StructSet {
                base,
                member,
                value,
            } => {
                let range = self.member(func.ty(*base), *member);
                let mut all = self.val(*base).scalars();
                all.splice(range, self.val(*value).scalars());
                Val::Scalars(all)
            }
            Op::Local {} => {
                let scalars = self.scalars_of(result_ty().pointee().expect("a storage"));
                Val::Place(self.memory.local(scalars))
            }
            Op::Shared {} | Op::Threads { .. } => {
                unreachable!("iterations run one after the other here: the frontend refuses it")
            }
            // A number stands for a buffer, and for its room.
            Op::Buffer {} => Val::from(Scalar::int(ScalarType::I64, self.memory.buffer() as i128)),
            Op::Reserve { buffer, count } => return Ok(self.reserve(*buffer, *count)),
            Op::RoomAt { room, index } => {
                let Type::Room(ty) = func.ty(*room) else {
                    unreachable!("the verifier checked that it is a room")
                };
                let at = usize::try_from(self.int(*index)).unwrap_or(usize::MAX);
                Val::Place(vec![(Slot::Room(self.int(*room) as usize, at), ty)])
            }
            Op::TileProduct { .. } => {
                self.tile_product(inst);
                return Ok(Vec::new());
            }
            Op::ElemRef { base, index } => {
                let tensor = func.ty(*base).pointee().expect("a storage");
                let all = self.val(*base).place();
                let elem = tensor.elem().expect("a tensor has elements");
                Val::Place(vec![
                    self.element(tensor, index)
                        .map_or((Slot::Nowhere, elem), |k| all[k]),
                ])
            }
            Op::MemberRef { base, member } => {
                let range = self.member(func.ty(*base).pointee().expect("a storage"), *member);
                Val::Place(self.val(*base).place()[range].to_vec())
            }
            Op::FieldAt { field, indices } => {
                Val::Place(self.field_at(*field, &self.ints(indices)))
            }
            Op::ArrayAt { array, indices } => {
                Val::Place(self.memory.array_at(*array, &self.ints(indices)))
            }
            Op::TempAt { offset } => self.temporary(*offset, result_ty()),
            Op::Load { place } => Val::Scalars(
                self.val(*place)
                    .place()
                    .iter()
                    .map(|&p| self.memory.read(p))
                    .collect(),
            ),
            // Parts run one after the other here.
            Op::Prefetch { .. } | Op::AwaitTurn {} => return Ok(Vec::new()),
            Op::Store { place, value } => {
                let value = self.val(*value).scalars();
                self.write(inst, *place, value)?;
                return Ok(Vec::new());
            }
            Op::Atomic { op, place, value } => self.atomic(inst, *op, *place, *value)?,
            Op::AtomicAdds { places, values } => {
                for (&place, &value) in places.iter().zip(values) {
                    let old = self.memory.read(self.val(place).place()[0]);
                    let sum = combine(AtomicOp::Add, old, self.val(value).scalar());
                    self.write(inst, place, vec![sum])?;
                }
                return Ok(Vec::new());
            }
            Op::Cas {
                place,
                expected,
                value,
            } => self.compare_and_store(inst, *place, *expected, *value)?,
            Op::Update { place, body } => self.update(inst, *place, *body)?,
            Op::If {
                cond,
                then,
                otherwise,
            } => {
                let taken = if self.val(*cond).scalar().as_bool() {
                    *then
                } else {
                    *otherwise
                };
                return match self.region(taken) {
                    Flow::Yield(values) => Ok(values),
                    flow => Err(flow),
                };
            }
            Op::For {
                lo,
                hi,
                step,
                init,
                body,
            } => return self.for_loop(*lo, *hi, *step, init, *body),
            Op::While { init, cond, body } => return self.while_loop(init, *cond, *body),
            Op::Yield { .. } | Op::Break { .. } | Op::Continue { .. } | Op::Return { .. } => {
                unreachable!("terminators end the line")
            }
            Op::Parallel {
                lo,
                hi,
                attrs,
                body,
            } => {
                self.aside = attrs.aside;
                return self.parallel(lo, hi, *body);
            }
            Op::ParallelCells { node, attrs, body } => {
                self.aside = false;
                return self.cells(*node, *attrs, *body);
            }
            Op::Task {
                kind,
                attrs,
                bounds,
                body,
            } => {
                self.aside = attrs.aside;
                return self.task(*kind, *bounds, *body);
            }
            Op::Each { body } => return self.each(*body),
            Op::Cell(op) => return self.cell_op(inst, op),
            Op::Node(op) => return self.node_op(inst, op),
            Op::Clear {
                tree,
                address,
                bytes,
            } => {
                let (tree, address) = (self.int(*tree) as u32, self.int(*address));
                self.memory.clear(tree, address, self.int(*bytes));
                return Ok(Vec::new());
            }
            // Addresses are offsets in the first tree: they occur in the functions of `runtime/device`, of
            // which the instructions above are the meaning.
            Op::PlaceAt { address } => {
                let ty = result_ty().pointee().and_then(Type::scalar);
                let at = u64::try_from(self.int(*address));
                Val::Place(vec![(
                    at.map_or(Slot::Nowhere, |at| Slot::Root(0, at)),
                    ty.expect("the verifier checked that the storage is a scalar's"),
                )])
            }
            Op::Grow {
                tree,
                control,
                element,
            } => {
                let number = |v| self.int(v) as u32;
                let granted = self
                    .memory
                    .grow(number(*tree), number(*control), number(*element));
                Val::from(Scalar::bool(granted))
            }
            Op::Print { args, .. } | Op::Warn { args, .. } => {
                self.say(inst, args, matches!(op, Op::Print { .. }));
                return Ok(Vec::new());
            }
            Op::Note { kind, args, .. } => {
                let (site, args) = (self.sites.at(self.id, inst), self.slots(args));
                self.races.note(site, *kind, &args);
                return match self.races.found() {
                    Some(race) => Err(Flow::Race(race)),
                    None => Ok(Vec::new()),
                };
            }
            Op::Assert { cond, args, .. } => {
                if !self.val(*cond).scalar().as_bool() {
                    return Err(Flow::Fail(self.sites.at(self.id, inst), self.slots(args)));
                }
                return Ok(Vec::new());
            }
            Op::RandomState { stream, iteration } => {
                let given = self.ints(iteration).first().copied();
                let linear = given.unwrap_or(self.linear);
                let state = eval::random_state(self.seed, *stream, linear);
                Val::from(Scalar::from_slot(ScalarType::U64, state))
            }
            Op::Random {} => {
                let (state, bits) = eval::random_step(self.random);
                self.random = state;
                Val::from(eval::random_value(
                    bits,
                    result_ty().scalar().expect("a random value is a scalar"),
                ))
            }
            Op::Call { func, args } => {
                let args = self.vals(args);
                return match self.function(*func, args) {
                    Flow::Yield(values) | Flow::Return(values) => Ok(values),
                    flow => Err(flow),
                };
            }
        };
        Ok(vec![one])
    }

    fn write(&mut self, inst: Inst, place: Value, values: Vec<Scalar>) -> Result<(), Flow> {
        let places = self.val(place).place().to_vec();
        let written = places
            .into_iter()
            .zip(values)
            .try_for_each(|(p, v)| self.memory.write(p, v));
        written.map_err(|node| self.no_cell(inst, node))
    }

    /// There is no memory for a cell of a node.
    fn no_cell(&self, inst: Inst, node: NodeRef) -> Flow {
        Flow::Fail(self.sites.no_cell(self.id, inst, node), Vec::new())
    }

    fn field_at(&self, field: FieldId, indices: &[i64]) -> Vec<(Slot, ScalarType)> {
        let data = &self.module.env.fields[field];
        let tree = &self.module.env.trees[data.tree];
        let offset = |k: usize| i64::from(data.offset.get(k).copied().unwrap_or(0));
        let indices: Vec<i64> = indices
            .iter()
            .enumerate()
            .map(|(k, &i)| i.wrapping_sub(offset(k)))
            .collect();
        let inside = indices
            .iter()
            .zip(tree.shape(data.places[0]))
            .all(|(&i, n)| u64::try_from(i).is_ok_and(|i| i < n));
        data.places
            .iter()
            .map(|&place| {
                let kind = tree[place].kind;
                let ty = kind.scalar().expect("a field's places are places");
                let in_word = matches!(kind, NodeKind::Bits(_));
                let slot = if inside && (in_word || tree.is_below_sparse(place)) {
                    let mut at = [0; MAX_AXES];
                    at.iter_mut()
                        .zip(&indices)
                        .for_each(|(a, &i)| *a = i as u32);
                    let node = place;
                    let tree = data.tree;
                    Slot::Element(NodeRef { tree, node }, at)
                } else if inside {
                    Slot::Root(
                        data.tree.as_u32() as usize,
                        tree.byte_offset(place, &indices),
                    )
                } else {
                    Slot::Nowhere
                };
                (slot, ty)
            })
            .collect()
    }

    /// An out-of-bounds coordinate makes the number one that no cell has.
    fn linearize(&self, node: NodeRef, coords: &[i64]) -> i128 {
        let axes = &self.module.env.trees[node.tree][node.node].axes;
        let inside = coords
            .iter()
            .zip(axes)
            .all(|(&c, a)| (0..i64::from(a.extent)).contains(&c));
        if !inside {
            return -1;
        }
        coords.iter().zip(axes).fold(0, |linear, (&c, a)| {
            linear * i128::from(a.extent) + i128::from(c)
        })
    }
}

fn contains(func: &Function, wanted: impl Fn(&Op) -> bool) -> bool {
    let mut found = false;
    walk(func, func.body, &mut |func, inst| {
        found |= wanted(&func[inst])
    });
    found
}

fn combine(op: AtomicOp, old: Scalar, x: Scalar) -> Scalar {
    op.binary().map_or(x, |op| eval::binary(op, old, x))
}
