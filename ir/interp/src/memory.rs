//! The memory a kernel sees, and the messages of its sites.

use aerogel_base::entity::{PrimaryMap, SecondaryMap};
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{
    Arg, CellOp, Env, FuncId, Function, Inst, Module, NodeOp, NodeRef, Op, ParamType, TreeId, Type,
    walk,
};
use aerogel_runtime::buffer::Buffer;
use aerogel_runtime::code::{Site, SiteKind};
use aerogel_runtime::launch::{Args, KernelFailure};
use aerogel_runtime::{MemoryError, TreeMemory};

use crate::value::Slot;

/// The messages of all functions.
pub(crate) struct Sites {
    pub(crate) list: Vec<Site>,
    of: PrimaryMap<FuncId, SecondaryMap<Inst, usize>>,
    /// All nodes for whose cells there may be no memory. An instruction that makes cells has a site
    /// for each, in this order.
    arenas: Vec<NodeRef>,
}

impl Sites {
    pub(crate) fn collect(module: &Module) -> Self {
        let mut sites = Self {
            list: Vec::new(),
            of: PrimaryMap::new(),
            arenas: arenas(&module.env),
        };
        for func in module.funcs.values() {
            let mut of = SecondaryMap::new();
            walk(func, func.body, &mut |func, inst| {
                let (kind, template, args) = match &func[inst] {
                    Op::Print { template, args } => (SiteKind::Print, template, args),
                    Op::Warn { template, args } => (SiteKind::Warning, template, args),
                    Op::Note {
                        kind,
                        template,
                        args,
                    } => (SiteKind::Note(*kind), template, args),
                    Op::Assert {
                        kind,
                        template,
                        args,
                        ..
                    } => (SiteKind::Check(*kind), template, args),
                    op if makes_cells(op) => {
                        of[inst] = sites.list.len();
                        let span = func.insts[inst].span;
                        let site = |&node: &NodeRef| {
                            let message = module.env.out_of_memory(node);
                            Site::from_template(
                                SiteKind::NoCell {
                                    tree: node.tree.as_u32(),
                                    node: node.node.as_u32(),
                                },
                                &message,
                                &[],
                                span,
                            )
                        };
                        sites.list.extend(sites.arenas.iter().map(site));
                        return;
                    }
                    _ => return,
                };
                let types: Vec<ScalarType> = args.iter().map(|&a| func.elem(a)).collect();
                of[inst] = sites.list.len();
                sites.list.push(Site::from_template(
                    kind,
                    template,
                    &types,
                    func.insts[inst].span,
                ));
            });
            sites.of.push(of);
        }
        sites
    }

    pub(crate) fn at(&self, func: FuncId, inst: Inst) -> usize {
        self.of[func][inst]
    }

    /// The site of an instruction for which there is no cell of a node.
    pub(crate) fn no_cell(&self, func: FuncId, inst: Inst, node: NodeRef) -> usize {
        let nth = self.arenas.iter().position(|&n| n == node);
        self.at(func, inst) + nth.expect("only nodes with arenas lack cells")
    }
}

fn arenas(env: &Env) -> Vec<NodeRef> {
    let mut all = Vec::new();
    for (tree, data) in env.trees.iter() {
        let nodes = data.nodes().filter(|(_, n)| n.n_arenas() > 0);
        all.extend(nodes.map(|(node, _)| NodeRef { tree, node }));
    }
    all
}

fn makes_cells(op: &Op) -> bool {
    matches!(
        op,
        Op::Store { .. }
            | Op::Atomic { .. }
            | Op::Cas { .. }
            | Op::Cell(CellOp::Activate { .. } | CellOp::Append { .. })
            | Op::Node(NodeOp::Obtain { .. } | NodeOp::Extend { .. })
    )
}

struct Array<'a> {
    buffer: &'a Buffer,
    shape: Vec<i64>,
    elem: Vec<ScalarType>,
}

/// Roots, arrays, arguments, temporaries and locals of a launch.
pub(crate) struct Memory<'a> {
    args: Vec<Vec<Scalar>>,
    arrays: Vec<Option<Array<'a>>>,
    roots: &'a [&'a TreeMemory],
    temps: Vec<u8>,
    locals: Vec<Scalar>,
    /// Growing storage: see [`Op::Buffer`].
    rooms: Vec<Vec<Scalar>>,
    /// How many bytes of scalars these may hold together.
    most_reserved: u64,
}

impl<'a> Memory<'a> {
    pub(crate) fn new(
        module: &Module,
        func: &Function,
        args: &'a Args<'a>,
        roots: &'a [&'a TreeMemory],
        most_reserved: u64,
    ) -> Result<Self, KernelFailure> {
        let mismatch = KernelFailure::Mismatch("other arguments than the kernel's");
        let mut slots = args.slots().iter().copied();
        let mut buffers = args.arrays().iter();
        let (mut values, mut arrays) = (Vec::new(), Vec::new());
        for param in &func.params {
            let mut next = || slots.next().ok_or_else(|| mismatch.clone());
            match param.ty {
                ParamType::Value(ty) => {
                    let scalars: Result<Vec<Scalar>, KernelFailure> = module
                        .env
                        .scalars(ty)
                        .into_iter()
                        .map(|t| Ok(Scalar::from_slot(t, next()?)))
                        .collect();
                    values.push(scalars?);
                    arrays.push(None);
                }
                ParamType::Array { elem, ndim, .. } => {
                    next()?;
                    let shape: Result<Vec<i64>, KernelFailure> =
                        (0..ndim).map(|_| Ok(next()? as i64)).collect();
                    let buffer = buffers.next().ok_or_else(|| mismatch.clone())?;
                    arrays.push(Some(Array {
                        buffer,
                        shape: shape?,
                        elem: module.env.scalars(elem),
                    }));
                    values.push(Vec::new());
                }
            }
        }
        Ok(Self {
            args: values,
            arrays,
            roots,
            temps: vec![0; temp_bytes(func, &module.env)],
            locals: Vec::new(),
            rooms: Vec::new(),
            most_reserved,
        })
    }

    /// The arrays, in the order of the parameters.
    pub(crate) fn buffers(&self) -> Vec<&'a Buffer> {
        let arrays = self.arrays.iter().flatten();
        arrays.map(|array| array.buffer).collect()
    }

    pub(crate) fn arg(&self, arg: Arg) -> &[Scalar] {
        &self.args[arg.as_u32() as usize]
    }

    pub(crate) fn array_shape(&self, arg: Arg, axis: u32) -> i64 {
        self.array(arg).shape[axis as usize]
    }

    fn array(&self, arg: Arg) -> &Array<'a> {
        self.arrays[arg.as_u32() as usize]
            .as_ref()
            .expect("the verifier checked that this is an array")
    }

    /// The storages of an array's element.
    pub(crate) fn array_at(&self, arg: Arg, indices: &[i64]) -> Vec<(Slot, ScalarType)> {
        let array = self.array(arg);
        let inside = indices
            .iter()
            .zip(&array.shape)
            .all(|(&i, &n)| (0..n).contains(&i));
        let linear = indices
            .iter()
            .zip(&array.shape)
            .fold(0, |linear, (&i, &n)| linear * n + i);
        let size: usize = array.elem.iter().map(|t| t.bytes() as usize).sum();
        let mut at = if inside { linear as usize * size } else { 0 };
        let mut places = Vec::new();
        for &ty in &array.elem {
            places.push((
                if inside {
                    Slot::Array(arg.as_u32() as usize, at)
                } else {
                    Slot::Nowhere
                },
                ty,
            ));
            at += ty.bytes() as usize;
        }
        places
    }

    /// Requests memory for an element of an arena, as compiled code does from the host.
    pub(crate) fn grow(&self, tree: u32, control: u32, element: u32) -> bool {
        let tree = self.roots.get(tree as usize);
        tree.is_some_and(|tree| tree.grow(control, element))
    }

    /// Zeroes bytes of a tree; addresses are offsets here.
    pub(crate) fn clear(&self, tree: u32, address: i64, bytes: i64) {
        if let Some(tree) = self.roots.get(tree as usize) {
            let outcome = tree.bytes().zero(address as usize, bytes as usize);
            outcome.unwrap_or_else(|failure| unreachable!("{failure}"));
        }
    }

    /// Fresh zeroed storage.
    pub(crate) fn local(&mut self, scalars: Vec<ScalarType>) -> Vec<(Slot, ScalarType)> {
        scalars
            .into_iter()
            .map(|ty| {
                self.locals.push(Scalar::zero(ty));
                (Slot::Local(self.locals.len() - 1), ty)
            })
            .collect()
    }

    /// A buffer without room: its number.
    pub(crate) fn buffer(&mut self) -> usize {
        self.rooms.push(Vec::new());
        self.rooms.len() - 1
    }

    /// Makes room for `count` scalars in a buffer; whether there is memory for it.
    pub(crate) fn reserve(&mut self, buffer: usize, ty: ScalarType, count: usize) -> bool {
        let bytes = |n: usize, ty: ScalarType| (n as u64).saturating_mul(u64::from(ty.bytes()));
        let of_room = |room: &Vec<Scalar>| room.first().map_or(0, |s| bytes(room.len(), s.ty()));
        let held: u64 = self.rooms.iter().map(of_room).sum();
        let room = &mut self.rooms[buffer];
        let more = count.saturating_sub(room.len());
        let fits = held.saturating_add(bytes(more, ty)) <= self.most_reserved;
        let granted = fits && room.try_reserve(more).is_ok();
        if granted {
            room.resize(room.len() + more, Scalar::zero(ty));
        }
        granted
    }

    /// How many locals and buffers there are; `release` gives those made since back.
    pub(crate) fn mark(&self) -> [usize; 2] {
        [self.locals.len(), self.rooms.len()]
    }

    pub(crate) fn release(&mut self, mark: [usize; 2]) {
        self.locals.truncate(mark[0]);
        self.rooms.truncate(mark[1]);
    }

    pub(crate) fn read(&self, (slot, ty): (Slot, ScalarType)) -> Scalar {
        let outside = Scalar::zero(ty);
        match slot {
            Slot::Local(k) => self.locals[k],
            Slot::Room(k, at) => self.rooms[k].get(at).copied().unwrap_or(outside),
            Slot::Root(tree, at) => self.roots[tree].read_scalar(ty, at).unwrap_or(outside),
            Slot::Array(k, at) => self.arrays[k]
                .as_ref()
                .and_then(|a| a.buffer.read_scalar(ty, at).ok())
                .unwrap_or(outside),
            Slot::Temp(at) => self
                .temps
                .get(at..at + ty.bytes() as usize)
                .map_or(outside, |b| Scalar::from_bytes(ty, b)),
            Slot::Element(place, indices) => {
                let component = self
                    .tree(place.tree)
                    .read_component(place.node, &indices.map(i64::from));
                component.ok().flatten().unwrap_or(outside)
            }
            Slot::Nowhere => outside,
        }
    }

    /// Fails if there is no memory for a cell of the node that it names.
    pub(crate) fn write(
        &mut self,
        (slot, _): (Slot, ScalarType),
        value: Scalar,
    ) -> Result<(), NodeRef> {
        match slot {
            Slot::Local(k) => self.locals[k] = value,
            Slot::Room(k, at) => {
                if let Some(scalar) = self.rooms[k].get_mut(at) {
                    *scalar = value;
                }
            }
            Slot::Element(place, indices) => {
                let tree = self.tree(place.tree);
                tree.write_component(place.node, &indices.map(i64::from), value)
                    .map_err(|failure| lacking(place.tree, failure))?;
            }
            // A write outside is swallowed, so its error says nothing.
            Slot::Root(tree, at) => drop(self.roots[tree].write_scalar(at, value)),
            Slot::Array(k, at) => drop(
                self.arrays[k]
                    .as_ref()
                    .map(|a| a.buffer.write_scalar(at, value)),
            ),
            Slot::Temp(at) => {
                let (bytes, n) = value.to_bytes();
                if let Some(to) = self.temps.get_mut(at..at + n) {
                    to.copy_from_slice(&bytes[..n]);
                }
            }
            Slot::Nowhere => {}
        }
        Ok(())
    }

    /// The memory of a tree.
    pub(crate) fn tree(&self, tree: TreeId) -> &'a TreeMemory {
        self.roots[tree.as_u32() as usize]
    }

    pub(crate) fn trees(&self) -> &'a [&'a TreeMemory] {
        self.roots
    }
}

/// The node for whose cell there is no memory.
pub(crate) fn lacking(tree: TreeId, failure: MemoryError) -> NodeRef {
    let MemoryError::NoCell { node } = failure else {
        unreachable!("cells lie inside the tree: {failure}")
    };
    NodeRef { tree, node }
}

/// Bytes of the global temporaries that a function names.
fn temp_bytes(func: &Function, env: &Env) -> usize {
    let mut bytes = 0;
    walk(func, func.body, &mut |func, inst| {
        if let Op::TempAt { offset } = func[inst] {
            let ty: Type = func
                .ty(func.insts[inst].results[0])
                .pointee()
                .expect("a storage");
            let size: u32 = env.scalars(ty).iter().map(|t| t.bytes()).sum();
            bytes = bytes.max((offset + size) as usize);
        }
    });
    bytes
}
