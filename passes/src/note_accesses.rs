//! `debug_races`: each access to memory in a parallel loop is noted, with the number of its iteration.
//!
//! ```text
//! parallel [0], [8] (v1: i32) {         note loop, "{} {}", [0, 8]
//!     v2 = field_at @x, [v1]       ==>  parallel [0], [8] (v1: i32) {
//!     store v2, 1.0                         v2 = field_at @x, [v1]
//! }                                         note write, "x[{}]", [object, index, iteration, 1.0, v1]
//!                                           store v2, 1.0
//!                                       }
//! ```
//! The runtime compares the notes (`runtime/src/races.rs`). A note names its scalar by numbers that depend on nothing but the
//! indices, and has no storage among its operands: the passes that follow may change the access, as long as the program does the
//! same. An iteration is known by its number in the index space of its loop, and functions are told the number by their caller.
//!
//! Not noted are: variables of an iteration; places that the loop only reads or only changes atomically, or of which each iteration
//! has its own (`x[i]` of each `i`); loops in order; loops whose iterations agree
//! among themselves who comes first, by compare and swap or by barriers (`ti.simt`); indices outside of the field; and operations
//! on cells as such, of which activation and `append` may meet in any order.

mod accesses;

use aerogel_base::entity::SecondaryMap;
use aerogel_base::{NoteKind, Scalar, ScalarType, Span};
use aerogel_ir::analysis::access::{defined_in, has_classes};
use aerogel_ir::{
    Arg, BinaryOp, Builder, CompareOp, FieldId, FuncId, Function, Inst, Op, ParamType, Region,
    Type, Value, ValueDef, walk,
};

use self::accesses::Accesses;
use crate::PassCx;

/// The number of an iteration where there is none.
const NO_ITERATION: i64 = -1;
/// The first number of an object that is a variable; places of fields have smaller ones.
const VARIABLES: i64 = 1 << 62;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let body = func.body;
    let mut pass = Notes {
        cx,
        used: used(func),
        iteration: None,
        accesses: None,
        own: None,
    };
    if !func.is_kernel {
        pass.iteration = Some(func.add_param(body, Type::I64));
    }
    let b = &mut Builder::new(func, body);
    pass.region(b, body, |_, _| {});
    true
}

/// The values that something takes: reads of others are the compiler's own, of vectors of which one component is used.
fn used(func: &Function) -> SecondaryMap<Value, bool> {
    let mut used = SecondaryMap::new();
    walk(func, func.body, &mut |func, inst| {
        func[inst].operands(|v| used[v] = true);
    });
    used
}

struct Notes<'a> {
    cx: &'a PassCx<'a>,
    used: SecondaryMap<Value, bool>,
    /// The number of the iteration; nothing outside of parallel loops.
    iteration: Option<Value>,
    /// The accesses of the loop; nothing if it calls functions, or is one.
    accesses: Option<Accesses>,
    /// The values that the loop of a kernel defines.
    own: Option<SecondaryMap<Value, bool>>,
}

/// The scalar that an access is to.
struct Cell {
    /// Its name, with holes for `holes`.
    name: String,
    holes: Vec<Value>,
    object: Value,
    index: Value,
    /// Whether all indices are inside; nothing if that is known.
    inside: Option<Value>,
}

impl Notes<'_> {
    /// Walks a region, which begins with what `prologue` writes.
    fn region(
        &mut self,
        b: &mut Builder<'_>,
        region: Region,
        prologue: impl FnOnce(&mut Self, &mut Builder<'_>),
    ) {
        let insts = std::mem::take(&mut b.func.regions[region].insts);
        b.within(region, |b| {
            prologue(self, b);
            for inst in insts {
                b.span = b.func.insts[inst].span;
                self.inst(b, inst);
            }
        });
    }

    fn inst(&mut self, b: &mut Builder<'_>, inst: Inst) {
        match b.func[inst].clone() {
            Op::Parallel {
                lo,
                hi,
                attrs,
                body,
            } if self.is_checked(b.func, attrs.serial, body) => {
                let axes = lo.iter().zip(&hi).map(|(&lo, &hi)| {
                    let [lo, hi] = [lo, hi].map(|end| b.cast(end, Type::I64));
                    (lo, b.binary(BinaryOp::Sub, hi, lo))
                });
                let axes = axes.collect();
                return self.parallel(b, inst, body, axes);
            }
            Op::ParallelCells { node, attrs, body }
                if self.is_checked(b.func, attrs.serial, body) =>
            {
                let shape = self.cx.env.trees[node.tree].shape(node.node);
                let axes = shape.into_iter().map(|n| (i64(b, 0), i64(b, n as i64)));
                let axes = axes.collect();
                return self.parallel(b, inst, body, axes);
            }
            Op::Load { place } if self.used[b.func.insts[inst].results[0]] => {
                self.access(b, NoteKind::Read, place, None);
            }
            Op::Store { place, value } => self.access(b, NoteKind::Write, place, Some(value)),
            Op::Atomic { place, .. } => self.access(b, NoteKind::Atomic, place, None),
            Op::Call { func, mut args } => {
                args.push(self.iteration.unwrap_or_else(|| i64(b, NO_ITERATION)));
                b.func.insts[inst].op = Op::Call { func, args };
            }
            _ => {}
        }
        b.append(inst);
        for owned in b.func.owned(inst) {
            self.region(b, owned, |_, _| {});
        }
    }

    /// Whether the iterations of a loop are independent of each other.
    fn is_checked(&self, func: &Function, serial: bool, body: Region) -> bool {
        let mut seen = Vec::new();
        !serial && !self.synchronises(func, body, &mut seen)
    }

    /// Whether a region has means to let iterations wait for each other.
    fn synchronises(&self, func: &Function, region: Region, seen: &mut Vec<FuncId>) -> bool {
        let (mut has_means, mut callees) = (false, Vec::new());
        walk(func, region, &mut |func, inst| match func[inst] {
            Op::Threads { .. } | Op::Cas { .. } => has_means = true,
            Op::Call { func, .. } if !seen.contains(&func) => callees.push(func),
            _ => {}
        });
        seen.extend(&callees);
        has_means
            || callees.into_iter().any(|callee| {
                let callee = &self.cx.funcs[callee];
                self.synchronises(callee, callee.body, seen)
            })
    }

    fn parallel(
        &mut self,
        b: &mut Builder<'_>,
        inst: Inst,
        body: Region,
        axes: Vec<(Value, Value)>,
    ) {
        let args: Vec<Value> = axes.iter().flat_map(|&(lo, size)| [lo, size]).collect();
        let (kind, template) = (NoteKind::Loop, vec!["{}"; args.len()].join(" "));
        b.effect(Op::Note {
            kind,
            template,
            args,
        });
        b.append(inst);
        self.accesses = Accesses::of(b.func, self.cx.env, body);
        let mut own = SecondaryMap::new();
        defined_in(b.func, body, &mut own);
        self.own = Some(own);
        self.region(b, body, |pass, b| {
            let indices = b.func.regions[body].params.clone();
            let steps = indices.into_iter().zip(axes).map(|(index, (lo, size))| {
                let index = b.cast(index, Type::I64);
                (b.binary(BinaryOp::Sub, index, lo), size)
            });
            let steps: Vec<_> = steps.collect();
            pass.iteration = Some(linear(b, steps));
        });
        (self.iteration, self.accesses, self.own) = (None, None, None);
    }

    /// Notes an access to a scalar.
    fn access(&mut self, b: &mut Builder<'_>, kind: NoteKind, place: Value, value: Option<Value>) {
        let Some(iteration) = self.iteration else {
            return;
        };
        let accesses = self.accesses.as_ref();
        if !has_classes(b.func, place)
            || accesses.is_some_and(|all| !all.can_race(b.func, self.cx.env, place))
        {
            return;
        }
        let span = b.span;
        b.span = self.span(b, place);
        self.note(b, (kind, iteration, value), place, &[]);
        b.span = span;
    }

    /// Where the source names a storage, if that is part of the access: `x[i + 1]` of `x[i] = x[i + 1]`.
    fn span(&self, b: &Builder<'_>, place: Value) -> Span {
        let ValueDef::Result(named, _) = b.func.values[place].def else {
            return b.span;
        };
        let named = b.func.insts[named].span;
        let spans = &self.cx.env.spans;
        match (spans.get(named), spans.get(b.span)) {
            (Some(part), Some(whole))
                if (part.source, part.inlined_at) == (whole.source, whole.inlined_at)
                    && whole.start <= part.start
                    && part.end <= whole.end =>
            {
                named
            }
            _ => b.span,
        }
    }

    /// Notes an access to an element of a storage, or to the storage itself.
    fn note(
        &self,
        b: &mut Builder<'_>,
        access: (NoteKind, Value, Option<Value>),
        place: Value,
        element: &[Value],
    ) {
        let (kind, iteration, value) = access;
        let cell = match b.func.def_op(place).cloned() {
            Some(Op::ElemRef { base, index }) => return self.note(b, access, base, &index),
            Some(Op::Select {
                cond,
                on_true,
                on_false,
            }) => {
                let mut arm = |place| b.region(&[], |b, _| self.note(b, access, place, element));
                let (then, otherwise) = (arm(on_true), arm(on_false));
                b.effect(Op::If {
                    cond,
                    then,
                    otherwise,
                });
                return;
            }
            Some(Op::FieldAt { field, indices }) => self.of_field(b, (field, &indices), element),
            Some(Op::ArrayAt { array, indices }) => of_array(b, (array, &indices), element),
            Some(Op::Local {}) if self.is_shared(place) => of_variable(b, place, element),
            // Memory of the iteration's own.
            _ => return,
        };
        let iteration = match cell.inside {
            Some(inside) => {
                let none = i64(b, NO_ITERATION);
                b.select(inside, iteration, none)
            }
            None => iteration,
        };
        let mut args = vec![cell.object, cell.index, iteration];
        args.extend(value);
        args.extend(cell.holes);
        b.effect(Op::Note {
            kind,
            template: cell.name,
            args,
        });
    }

    /// Whether a variable of the kernel stands outside of the loop.
    fn is_shared(&self, place: Value) -> bool {
        self.own.as_ref().is_some_and(|own| !own[place])
    }

    /// The scalar of a field's element.
    fn of_field(
        &self,
        b: &mut Builder<'_>,
        (field, indices): (FieldId, &[Value]),
        element: &[Value],
    ) -> Cell {
        let data = &self.cx.env.fields[field];
        let shape = self.cx.env.shape(field);
        let mut steps = Vec::new();
        for (k, (&index, &size)) in indices.iter().zip(&shape).enumerate() {
            let first = data.offset.get(k).copied().unwrap_or(0);
            let (index, first) = (b.cast(index, Type::I64), i64(b, first.into()));
            let index = b.binary(BinaryOp::Sub, index, first);
            steps.push((index, i64(b, size as i64)));
        }
        // Fields may have places in common: a place is known by its node.
        let number = |place: &aerogel_snode::NodeId| {
            i64::from(data.tree.as_u32()) << 32 | i64::from(place.as_u32())
        };
        let places: Vec<i64> = data.places.iter().map(number).collect();
        let mut object = i64(b, places[0]);
        if !element.is_empty() {
            let component = component(b, data.elem, element);
            for (k, &place) in places.iter().enumerate().skip(1) {
                let (k, place) = (i64(b, k as i64), i64(b, place));
                let this = b.compare(CompareOp::Eq, component, k);
                object = b.select(this, place, object);
            }
        }
        let (name, holes) = name(b.func, &data.name, indices, element);
        Cell {
            name,
            holes,
            object,
            inside: inside(b, &steps),
            index: linear(b, steps),
        }
    }
}

/// The scalar of an array's element: the index is its byte, from where the array begins, and the object is negative.
fn of_array(b: &mut Builder<'_>, (array, indices): (Arg, &[Value]), element: &[Value]) -> Cell {
    let param = &b.func.params[array.as_u32() as usize];
    let ParamType::Array { elem, .. } = param.ty else {
        unreachable!("the verifier checked that it is an array")
    };
    let before = &b.func.params[..array.as_u32() as usize];
    let arrays = before.iter();
    let number = arrays.filter(|p| matches!(p.ty, ParamType::Array { .. }));
    let (number, param) = (number.count() as i64, param.name.clone());
    let mut steps = Vec::new();
    for (&index, axis) in indices.iter().zip(0..) {
        let size = b.value(Op::ArrayShape { array, axis }, Type::I32);
        steps.push((b.cast(index, Type::I64), b.cast(size, Type::I64)));
    }
    let inside = inside(b, &steps);
    let component = component(b, elem, element);
    let n = i64(b, elem.n_elems().into());
    steps.push((component, n));
    let index = linear(b, steps);
    let bytes = elem.elem().map_or(1, ScalarType::bytes);
    let bytes = i64(b, bytes.into());
    let (name, holes) = name(b.func, &param, indices, element);
    Cell {
        name,
        holes,
        object: i64(b, -1 - number),
        index: b.binary(BinaryOp::Mul, index, bytes),
        inside,
    }
}

/// The scalar of a variable.
fn of_variable(b: &mut Builder<'_>, place: Value, element: &[Value]) -> Cell {
    let tensor = b.func.ty(place).pointee().expect("a storage");
    Cell {
        name: "a variable of the kernel".to_owned(),
        holes: Vec::new(),
        object: i64(b, VARIABLES + i64::from(place.as_u32())),
        index: component(b, tensor, element),
        inside: None,
    }
}

/// The name of an element for a message, and the values of its holes.
fn name(
    func: &Function,
    object: &str,
    indices: &[Value],
    element: &[Value],
) -> (String, Vec<Value>) {
    let mut name = object.replace('{', "{{").replace('}', "}}");
    let mut holes = Vec::new();
    if indices.is_empty() {
        name.push_str("[None]");
    }
    for bracket in [indices, element].into_iter().filter(|b| !b.is_empty()) {
        let texts = bracket.iter().map(|&index| match func.as_const(index) {
            Some(c) => c.as_i128().to_string(),
            None => {
                holes.push(index);
                "{}".to_owned()
            }
        });
        let texts: Vec<String> = texts.collect();
        name.push_str(&format!("[{}]", texts.join(", ")));
    }
    (name, holes)
}

fn i64(b: &mut Builder<'_>, value: i64) -> Value {
    b.constant(Scalar::int(ScalarType::I64, value.into()))
}

/// The number of an index in a space, row by row, from the index along each axis and the size of it.
fn linear(b: &mut Builder<'_>, axes: Vec<(Value, Value)>) -> Value {
    let mut axes = axes.into_iter();
    let Some((first, _)) = axes.next() else {
        return i64(b, 0);
    };
    axes.fold(first, |rows, (index, size)| {
        let rows = b.binary(BinaryOp::Mul, rows, size);
        b.binary(BinaryOp::Add, rows, index)
    })
}

/// Whether all indices are inside of their axes; nothing if that is known.
fn inside(b: &mut Builder<'_>, axes: &[(Value, Value)]) -> Option<Value> {
    let mut all = None;
    for &(index, size) in axes {
        let known = |value| b.func.as_const(value).map(Scalar::as_i128);
        if let (Some(index), Some(size)) = (known(index), known(size))
            && (0..size).contains(&index)
        {
            continue;
        }
        let zero = i64(b, 0);
        for (op, rhs) in [(CompareOp::Ge, zero), (CompareOp::Lt, size)] {
            let ok = b.compare(op, index, rhs);
            all = Some(all.map_or(ok, |all| b.binary(BinaryOp::And, all, ok)));
        }
    }
    all
}

/// The number of an element of a tensor, row by row.
fn component(b: &mut Builder<'_>, tensor: Type, element: &[Value]) -> Value {
    let sizes = tensor.shape();
    let axes = element.iter().zip(sizes).map(|(&index, size)| {
        let index = b.cast(index, Type::I64);
        (index, i64(b, size.into()))
    });
    let axes = axes.collect();
    linear(b, axes)
}

#[cfg(test)]
mod tests;
