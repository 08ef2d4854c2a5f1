//! Accesses to fields become steps through the levels of the layout.
//!
//! ```text
//! v1 = field_at @x, [i]    ==>    v2 = root tree0
//!                                 v3 = child tree0.S1, v2
//!                                 v4 = linearize tree0.S1, [i]
//!                                 v5 = lookup tree0.S1, v3, v4
//!                                 v1 = child tree0.S2, v5
//! ```
//! Neighbouring accesses share their outer levels once `cse` has run. An index of an axis that several
//! levels divide is split by shifts and masks where sizes are powers of two.

use aerogel_base::entity::SecondaryMap;
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::analysis::access::constant_element;
use aerogel_ir::{
    BinaryOp, Builder, CompareOp, FieldId, Function, Inst, NodeOp, NodeRef, Op, Rewrite, Rewriter,
    TaskKind, Type, Value, rewrite_with,
};
use aerogel_snode::{Level, LevelAxis, NodeKind, Tree};

use self::bits::Bits;
use self::sparse::shared::Boxes;
use self::sparse::{Access, Cells, or_zero};
use crate::PassCx;

mod bits;
mod floats;
mod sparse;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let mut lower = Lower {
        cx,
        dense: SecondaryMap::new(),
        named: SecondaryMap::new(),
        cells: Cells::default(),
        boxes: sparse::shared::boxes(func, cx),
        alone: false,
    };
    rewrite_with(func, &mut lower)
}

struct Lower<'a> {
    cx: &'a PassCx<'a>,
    /// The cell of a tensor element of a dense field: components are located when they are accessed.
    dense: SecondaryMap<Value, Option<(FieldId, Cell)>>,
    /// The elements of sparse and quantised fields that references name.
    named: SecondaryMap<Value, Option<Element>>,
    cells: Cells,
    boxes: Boxes,
    /// Whether no other thread touches the words that the task changes.
    alone: bool,
}

/// The cell of a tensor element's first component.
#[derive(Clone)]
struct Cell {
    cell: Value,
    /// Those of the layout, without the field's offset.
    indices: Vec<Value>,
}

/// An element of a sparse or quantised field, or a component of one.
#[derive(Clone)]
struct Element {
    field: FieldId,
    /// Those of the layout, without the field's offset.
    indices: Vec<Value>,
    component: Component,
}

#[derive(Clone, Copy)]
enum Component {
    Known(usize),
    /// By a number at run time.
    Unknown(Value),
}

impl Rewriter for Lower<'_> {
    fn enter(&mut self, func: &Function, inst: Inst) {
        self.cells.enter(func, inst, self.cx);
        if let Op::Task { kind, attrs, .. } = func[inst] {
            self.alone = kind == TaskKind::Serial || attrs.serial || attrs.own_words;
        }
    }

    fn leave(&mut self) {
        self.cells.leave();
    }

    fn visit(&mut self, cursor: &mut Builder<'_>, inst: Inst) -> Rewrite {
        let cx = self.cx;
        let result = cursor.func.insts[inst].results.first().copied();
        self.cells.bounds = self.boxes[inst].take();
        match cursor.func[inst].clone() {
            Op::FieldAt { field, indices } => {
                let indices = without_offset(cursor, cx, field, &indices);
                let data = &cx.env.fields[field];
                let result = result.expect("one result");
                if cx.env.is_sparse(field) || cx.env.quant(field).is_some() {
                    self.named[result] = Some(Element {
                        field,
                        indices,
                        component: Component::Known(0),
                    });
                    // Its storage is looked for where it is used.
                    return Rewrite::Replace(vec![result]);
                }
                let cell = cell_of(cursor, cx, data.tree, data.places[0], &indices);
                let cell = Cell { cell, indices };
                if data.elem.is_tensor() {
                    self.dense[result] = Some((field, cell));
                    // Nothing but components of it is used from here on.
                    return Rewrite::Replace(vec![result]);
                }
                Rewrite::Replace(vec![component(cursor, cx, field, &cell, 0)])
            }
            Op::ElemRef { base, index } => {
                let known = constant_element(cursor.func, base, &index);
                if let Some(element) = self.named[base].clone() {
                    let result = result.expect("one result");
                    let tensor = cx.env.fields[element.field].elem;
                    let component = match known {
                        Some(k) => Component::Known(k),
                        None => Component::Unknown(linear_index(cursor, tensor, &index)),
                    };
                    self.named[result] = Some(Element {
                        component,
                        ..element
                    });
                    return Rewrite::Replace(vec![result]);
                }
                let Some((field, cell)) = self.dense[base].clone() else {
                    return Rewrite::Keep;
                };
                if let Some(k) = known {
                    return Rewrite::Replace(vec![component(cursor, cx, field, &cell, k)]);
                }
                let data = &cx.env.fields[field];
                let number = linear_index(cursor, data.elem, &index);
                let place = chosen(cursor, number, data.places.len(), &mut |cursor, k| {
                    component(cursor, cx, field, &cell, k)
                });
                Rewrite::Replace(vec![place])
            }
            Op::Load { place } => {
                let Some(element) = self.named[place].clone() else {
                    return Rewrite::Keep;
                };
                if cx.env.quant(element.field).is_some() {
                    return Rewrite::Replace(vec![self.load_bits(cursor, &element)]);
                }
                let (place, inside) = self.resolve(cursor, &element, Access::Read);
                let ty = cursor.func.ty(result.expect("one result"));
                let value = cursor.value(Op::Load { place }, ty);
                Rewrite::Replace(vec![or_zero(cursor, inside, value)])
            }
            Op::Store { place, .. } | Op::Atomic { place, .. } | Op::Cas { place, .. } => {
                if let Some(element) = self.named[place].clone() {
                    if cx.env.quant(element.field).is_some() {
                        let op = cursor.func[inst].clone();
                        return Rewrite::Replace(self.change_bits(cursor, &element, &op));
                    }
                    if let Component::Unknown(number) = element.component
                        && self.is_apart(element.field)
                    {
                        let last = cx.env.fields[element.field].places.len() - 1;
                        let results = self.write_one(cursor, inst, place, &element, number, last);
                        return Rewrite::Replace(results);
                    }
                    let (storage, _) = self.resolve(cursor, &element, Access::Write);
                    let op = &mut cursor.func.insts[inst].op;
                    op.map_operands(|v| if v == place { storage } else { v });
                }
                Rewrite::Keep
            }
            Op::Cell(op) => Rewrite::Replace(self.cells.cell_op(cursor, cx, op)),
            Op::Call { .. } => {
                self.cells.forget_all();
                Rewrite::Keep
            }
            _ => Rewrite::Keep,
        }
    }
}

impl<'a> Lower<'a> {
    fn load_bits(&mut self, cursor: &mut Builder<'_>, element: &Element) -> Value {
        let n = self.cx.env.fields[element.field].places.len();
        let mut one = |cursor: &mut Builder<'_>, k: usize| {
            let (bits, inside) = self.bits(cursor, element, k, Access::Read);
            let loaded = bits.load(cursor);
            or_zero(cursor, inside, loaded)
        };
        match element.component {
            Component::Known(k) => one(cursor, k),
            Component::Unknown(number) => chosen(cursor, number, n, &mut one),
        }
    }

    /// Lowers a store or an atomic; its result, if it has one.
    fn change_bits(&mut self, cursor: &mut Builder<'_>, element: &Element, op: &Op) -> Vec<Value> {
        let n = self.cx.env.fields[element.field].places.len();
        let number = match element.component {
            Component::Known(k) => {
                let (bits, _) = self.bits(cursor, element, k, Access::Write);
                return change(cursor, &bits, op).into_iter().collect();
            }
            Component::Unknown(number) => number,
        };
        // The component with the number; the first one if there is none.
        let all: Vec<Bits<'a>> = (0..n)
            .map(|k| self.bits(cursor, element, k, Access::Write).0)
            .collect();
        change_one(cursor, number, &all, op).into_iter().collect()
    }

    /// A component of a quantised element, and whether it is inside the field, where that is not
    /// certain.
    fn bits(
        &mut self,
        cursor: &mut Builder<'_>,
        element: &Element,
        k: usize,
        access: Access,
    ) -> (Bits<'a>, Option<Value>) {
        let cx = self.cx;
        let data = &cx.env.fields[element.field];
        let tree = &cx.env.trees[data.tree];
        let place = data.places[k];
        let word_node = NodeRef {
            tree: data.tree,
            node: tree[place].parent.expect("bits lie in a word"),
        };
        let (cell, inside) =
            self.cells
                .holder(cursor, cx, element.field, &element.indices, k, access);
        let kind = tree[word_node.node].kind;
        let ty = kind.word().expect("bits lie in a word");
        let child = NodeOp::Child {
            node: word_node,
            cell,
        };
        let word = cursor.value(child, Type::RefScalar(ty));
        let mut element_shift = None;
        if let (NodeKind::QuantArray(_), Some(quant)) = (kind, cx.env.quant(element.field)) {
            let path = tree.path(word_node.node);
            let level = path.levels.last().expect("the word's own");
            let coords = level
                .axes
                .iter()
                .map(|a| coordinate(cursor, element.indices[a.index], a))
                .collect();
            let node = word_node;
            let number = cursor.value(NodeOp::Linearize { node, coords }, Type::I64);
            let rhs = cursor.constant(Scalar::int(ScalarType::I64, quant.width().into()));
            let product = Op::Binary {
                op: BinaryOp::Mul,
                lhs: number,
                rhs,
            };
            element_shift = Some(cursor.value(product, Type::I64));
        }
        let bits = Bits {
            tree,
            place,
            word,
            element_shift,
            alone: self.alone,
        };
        (bits, inside)
    }

    /// Whether components of a field lie in cells of different nodes.
    fn is_apart(&self, field: FieldId) -> bool {
        let data = &self.cx.env.fields[field];
        let tree = &self.cx.env.trees[data.tree];
        let parent = |k: usize| tree[data.places[k]].parent;
        (1..data.places.len()).any(|k| parent(k) != parent(0))
    }

    /// Writes to the component whose number is `number`, which makes no cell of another active: for each
    /// component up to `k` the instruction on a path of its own. Its results.
    fn write_one(
        &mut self,
        cursor: &mut Builder<'_>,
        inst: Inst,
        place: Value,
        element: &Element,
        number: Value,
        k: usize,
    ) -> Vec<Value> {
        let results = cursor.func.insts[inst].results.clone();
        let types: Vec<Type> = results.iter().map(|&v| cursor.func.ty(v)).collect();
        let mut write = |cursor: &mut Builder<'_>| {
            let element = Element {
                component: Component::Known(k),
                ..element.clone()
            };
            self.cells.enter_branch();
            let (storage, _) = self.resolve(cursor, &element, Access::Write);
            self.cells.leave();
            let mut op = cursor.func[inst].clone();
            op.map_operands(|v| if v == place { storage } else { v });
            let written = cursor.inst(op, &types);
            cursor.func.insts[written].results.clone()
        };
        if k == 0 {
            return write(cursor);
        }
        let elem = cursor.func.elem(number);
        let rhs = cursor.constant(Scalar::int(elem, k as i128));
        let compare = Op::Compare {
            op: CompareOp::Eq,
            lhs: number,
            rhs,
        };
        let cond = cursor.value(compare, Type::BOOL);
        let then = cursor.region(&[], |cursor, _| {
            let values = write(cursor);
            cursor.yields(values);
        });
        let otherwise = cursor.region(&[], |cursor, _| {
            let values = self.write_one(cursor, inst, place, element, number, k - 1);
            cursor.yields(values);
        });
        let branch = Op::If {
            cond,
            then,
            otherwise,
        };
        let branch = cursor.inst(branch, &types);
        cursor.func.insts[branch].results.clone()
    }

    /// The storage of an element, and whether it is inside the field, where that is not certain.
    fn resolve(
        &mut self,
        cursor: &mut Builder<'_>,
        element: &Element,
        access: Access,
    ) -> (Value, Option<Value>) {
        let (cx, field) = (self.cx, element.field);
        let mut inside = None;
        let mut one = |cursor: &mut Builder<'_>, k: usize| {
            let found = self
                .cells
                .component(cursor, cx, field, &element.indices, k, access);
            inside = found.1;
            found.0
        };
        let place = match element.component {
            Component::Known(k) => one(cursor, k),
            Component::Unknown(number) => {
                chosen(cursor, number, cx.env.fields[field].places.len(), &mut one)
            }
        };
        (place, inside)
    }
}

/// What a store or an atomic does to a quantised component; its result, if it has one.
fn change(b: &mut Builder<'_>, bits: &Bits<'_>, op: &Op) -> Option<Value> {
    match *op {
        Op::Store { value, .. } => {
            bits.store(b, value);
            None
        }
        Op::Atomic { op, value, .. } => Some(bits.atomic(b, op, value)),
        Op::Cas {
            expected, value, ..
        } => Some(bits.cas(b, expected, value)),
        _ => unreachable!("the caller picks changes of storage"),
    }
}

/// As `change`, for the component with a number; the first one if there is none.
fn change_one(b: &mut Builder<'_>, number: Value, all: &[Bits<'_>], op: &Op) -> Option<Value> {
    let (last, others) = all.split_last().expect("a tensor has components");
    if others.is_empty() {
        return change(b, last, op);
    }
    let elem = b.func.elem(number);
    let rhs = b.constant(Scalar::int(elem, others.len() as i128));
    let cond = b.compare(CompareOp::Eq, number, rhs);
    let outer = b.region;
    let mut types = Vec::new();
    let mut branch =
        |b: &mut Builder<'_>, write: &mut dyn FnMut(&mut Builder<'_>) -> Option<Value>| {
            let region = b.func.new_region(&[]);
            b.region = region;
            let values: Vec<Value> = write(b).into_iter().collect();
            types = values.iter().map(|&v| b.func.ty(v)).collect();
            b.yields(values);
            b.region = outer;
            region
        };
    let then = branch(b, &mut |b| change(b, last, op));
    let otherwise = branch(b, &mut |b| change_one(b, number, others, op));
    let op = Op::If {
        cond,
        then,
        otherwise,
    };
    let inst = b.inst(op, &types);
    b.func.insts[inst].results.first().copied()
}

/// The component with a number that is not known before run time; the first one if there is none.
fn chosen(
    cursor: &mut Builder<'_>,
    number: Value,
    n: usize,
    component: &mut dyn FnMut(&mut Builder<'_>, usize) -> Value,
) -> Value {
    let elem = cursor.func.elem(number);
    let mut place = component(cursor, 0);
    for k in 1..n {
        let rhs = cursor.constant(Scalar::int(elem, k as i128));
        let cond = cursor.value(
            Op::Compare {
                op: CompareOp::Eq,
                lhs: number,
                rhs,
            },
            Type::BOOL,
        );
        let on_true = component(cursor, k);
        let ty = cursor.func.ty(place);
        place = cursor.value(
            Op::Select {
                cond,
                on_true,
                on_false: place,
            },
            ty,
        );
    }
    place
}

fn linear_index(cursor: &mut Builder<'_>, tensor: Type, index: &[Value]) -> Value {
    let [row, column] = *index else {
        return index[0];
    };
    // Indices need not be of one type.
    let [row, column] = [row, column].map(|x| match cursor.func.ty(x) {
        Type::I64 => x,
        _ => cursor.value(Op::Cast { x }, Type::I64),
    });
    let m = i128::from(tensor.shape()[1]);
    let rhs = cursor.constant(Scalar::int(ScalarType::I64, m));
    let product = Op::Binary {
        op: BinaryOp::Mul,
        lhs: row,
        rhs,
    };
    let sum = Op::Binary {
        op: BinaryOp::Add,
        lhs: cursor.value(product, Type::I64),
        rhs: column,
    };
    cursor.value(sum, Type::I64)
}

/// The layout's indices: those of the field without its offset.
fn without_offset(
    cursor: &mut Builder<'_>,
    cx: &PassCx<'_>,
    field: FieldId,
    indices: &[Value],
) -> Vec<Value> {
    let data = &cx.env.fields[field];
    indices
        .iter()
        .enumerate()
        .map(|(k, &v)| match data.offset.get(k) {
            Some(&offset) if offset != 0 => {
                // A loop over the field's cells has just added it.
                if let Some(&Op::Binary {
                    op: BinaryOp::Add,
                    lhs,
                    rhs,
                }) = cursor.func.def_op(v)
                    && cursor.func.as_const(rhs).map(Scalar::as_i128) == Some(offset.into())
                {
                    return lhs;
                }
                let elem = cursor.func.elem(v);
                let rhs = cursor.constant(Scalar::int(elem, i128::from(offset)));
                cursor.value(
                    Op::Binary {
                        op: BinaryOp::Sub,
                        lhs: v,
                        rhs,
                    },
                    elem.into(),
                )
            }
            _ => v,
        })
        .collect()
}

/// The cell that holds a field's first component; the others lie beside it or in sibling nodes.
fn cell_of(
    cursor: &mut Builder<'_>,
    cx: &PassCx<'_>,
    tree: aerogel_ir::TreeId,
    place: aerogel_snode::NodeId,
    indices: &[Value],
) -> Value {
    let layout: &Tree = &cx.env.trees[tree];
    let path = layout.path(place);
    let mut cell = cursor.value(NodeOp::Root { tree }, Type::Cell(tree, Tree::ROOT));
    for level in &path.levels[1..path.levels.len() - 1] {
        let node = NodeRef {
            tree,
            node: level.node,
        };
        let container = cursor.value(
            NodeOp::Child { node, cell },
            Type::Container(tree, level.node),
        );
        let coords = level
            .axes
            .iter()
            .map(|a| coordinate(cursor, indices[a.index], a))
            .collect();
        let index = cursor.value(NodeOp::Linearize { node, coords }, Type::I64);
        cell = cursor.value(
            NodeOp::Lookup {
                node,
                container,
                index,
            },
            Type::Cell(tree, level.node),
        );
    }
    cell
}

/// A level's coordinate: the index divided by the levels below, reduced modulo the size if levels
/// above divide the axis too. Indices are not negative, so shifts and masks do for powers of two.
fn coordinate(cursor: &mut Builder<'_>, index: Value, axis: &LevelAxis) -> Value {
    let elem = cursor.func.elem(index);
    let step =
        |cursor: &mut Builder<'_>, value: Value, by: u64, exact: BinaryOp, divide: BinaryOp| {
            let power = by.is_power_of_two();
            let constant = match (power, exact) {
                (true, BinaryOp::Shr) => u64::from(by.trailing_zeros()),
                (true, _) => by - 1,
                (false, _) => by,
            };
            let rhs = cursor.constant(Scalar::int(elem, i128::from(constant)));
            cursor.value(
                Op::Binary {
                    op: if power { exact } else { divide },
                    lhs: value,
                    rhs,
                },
                elem.into(),
            )
        };
    let mut value = index;
    if axis.divisor != 1 {
        value = step(cursor, value, axis.divisor, BinaryOp::Shr, BinaryOp::Div);
    }
    if axis.wraps {
        value = step(cursor, value, axis.extent, BinaryOp::And, BinaryOp::Rem);
    }
    value
}

/// The storage of a field's `k`-th component, given the cell of the first one.
fn component(
    cursor: &mut Builder<'_>,
    cx: &PassCx<'_>,
    field: FieldId,
    first: &Cell,
    k: usize,
) -> Value {
    let data = &cx.env.fields[field];
    let layout = &cx.env.trees[data.tree];
    let place = data.places[k];
    let NodeKind::Place(ty) = layout[place].kind else {
        unreachable!("a field's places are places")
    };
    let ty = Type::Scalar(ty).to_ref().expect("a scalar has a storage");
    let levels = |place| layout.path(place).levels;
    let alike = |(a, b): (&Level, &Level)| a.axes == b.axes;
    let cell = if layout[place].parent == layout[data.places[0]].parent {
        first.cell
    } else if levels(place).len() == levels(data.places[0]).len()
        && levels(place).iter().zip(&levels(data.places[0])).all(alike)
    {
        sibling_cell(cursor, cx, data.tree, first.cell, place)
    } else {
        cell_of(cursor, cx, data.tree, place, &first.indices)
    };
    cursor.value(
        NodeOp::Child {
            node: NodeRef {
                tree: data.tree,
                node: place,
            },
            cell,
        },
        ty,
    )
}

/// The cell of a component in another node of the same shape: the same linear indices lead there.
fn sibling_cell(
    cursor: &mut Builder<'_>,
    cx: &PassCx<'_>,
    tree: aerogel_ir::TreeId,
    first: Value,
    place: aerogel_snode::NodeId,
) -> Value {
    let layout = &cx.env.trees[tree];
    let mut indices = Vec::new();
    let mut cell = first;
    while let Some(&Op::Node(NodeOp::Lookup {
        container, index, ..
    })) = cursor.func.def_op(cell)
    {
        indices.push(index);
        let Some(&Op::Node(NodeOp::Child { cell: outer, .. })) = cursor.func.def_op(container)
        else {
            unreachable!("containers are children")
        };
        cell = outer;
    }
    let chain = layout.chain(place);
    for &node_id in &chain[1..chain.len() - 1] {
        let node = NodeRef {
            tree,
            node: node_id,
        };
        let container = cursor.value(NodeOp::Child { node, cell }, Type::Container(tree, node_id));
        let index = indices.pop().expect("components have the same shape");
        cell = cursor.value(
            NodeOp::Lookup {
                node,
                container,
                index,
            },
            Type::Cell(tree, node_id),
        );
    }
    cell
}

#[cfg(test)]
mod tests;
