//! Which float operations decisions depend on.
//!
//! ```text
//! v1 = mul v0, v0      decisive
//! v2 = add v1, v0      decisive
//! v3 = lt v2, vc
//! v4 = sin v0
//! ```
//! A gradient decides again what its kernel has decided, and where it runs a piece twice, twice: both must come out the
//! same, so that the arithmetic before a comparison is done as it is written, whatever else is fast.

use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::LookupMap;

use super::access::{Class, classes};
use crate::{BinaryOp, Env, Function, Inst, Op, Region, UnaryOp, Value, walk};

/// The instructions of a region whose results comparisons and conversions to integers depend on, through branches, loops
/// and local storage. What is read from other memory depends on nothing.
pub fn decisive(func: &Function, region: Region) -> SecondaryMap<Inst, bool> {
    let is_root = |func: &Function, inst: Inst, _| match func[inst] {
        Op::Compare { .. } => true,
        Op::Cast { .. } => !is_float(func, func.insts[inst].results[0]),
        _ => false,
    };
    backward_slice(func, region, None, is_root)
}

/// The instructions of a function on whose last digit more depends than the last digits of sums and products: a decision,
/// a difference, a divisor, or a function that is not defined or not smooth everywhere. Memory that the function writes and
/// reads hands such dependences on. `accumulates` marks subtractions that are steps of an accumulation.
pub fn sensitive(
    func: &Function,
    env: &Env,
    accumulates: &SecondaryMap<Inst, bool>,
) -> SecondaryMap<Inst, bool> {
    let is_root = |func: &Function, inst: Inst, operand| match func[inst] {
        Op::Binary { op, rhs, .. } => match op {
            BinaryOp::Add | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max => false,
            BinaryOp::Sub => !accumulates[inst],
            BinaryOp::Div => operand == rhs,
            _ => true,
        },
        Op::Unary { op, .. } => !matches!(
            op,
            UnaryOp::Sin
                | UnaryOp::Cos
                | UnaryOp::Exp
                | UnaryOp::Exp2
                | UnaryOp::Sinh
                | UnaryOp::Cosh
                | UnaryOp::Tanh
                | UnaryOp::Atan
        ),
        Op::Select { .. } | Op::Fma { .. } | Op::MulAdd { .. } | Op::StopGradient { .. } => false,
        Op::Cast { .. } => !is_float(func, func.insts[inst].results[0]),
        _ => true,
    };
    backward_slice(func, func.body, Some(env), is_root)
}

/// The instructions of a region that the float operands depend on of which `is_root` is true; through all memory, if it is
/// described by `env`, or through local storage only.
fn backward_slice(
    func: &Function,
    region: Region,
    env: Option<&Env>,
    is_root: impl Fn(&Function, Inst, Value) -> bool,
) -> SecondaryMap<Inst, bool> {
    let mut sources = Sources {
        env,
        of: SecondaryMap::new(),
        read: SecondaryMap::new(),
        written: LookupMap::default(),
        roots: Vec::new(),
    };
    walk(func, region, &mut |func, inst| {
        sources.note(func, inst, &is_root)
    });
    let mut found = SecondaryMap::new();
    let mut seen: SecondaryMap<Value, bool> = SecondaryMap::new();
    let mut open = std::mem::take(&mut sources.roots);
    while let Some(value) = open.pop() {
        if std::mem::replace(&mut seen[value], true) {
            continue;
        }
        if let Some(inst) = func.def(value) {
            found[inst] = true;
        }
        open.extend_from_slice(&sources.of[value]);
        for class in &sources.read[value] {
            open.extend(sources.written.remove(class).unwrap_or_default());
        }
    }
    found
}

fn is_float(func: &Function, value: Value) -> bool {
    func.ty(value).elem().is_some_and(|ty| ty.is_float())
}

struct Sources<'a> {
    env: Option<&'a Env>,
    /// Which values make up a value; of a local, what is stored there.
    of: SecondaryMap<Value, Vec<Value>>,
    /// The memory that a value was read from.
    read: SecondaryMap<Value, Vec<Class>>,
    /// The values written to memory.
    written: LookupMap<Class, Vec<Value>>,
    roots: Vec<Value>,
}

impl Sources<'_> {
    fn pass(&mut self, from: &[Value], to: &[Value]) {
        for (&from, &to) in from.iter().zip(to) {
            self.of[to].push(from);
        }
    }

    /// Passes on what a loop carries, into its parameters and out of it.
    fn carry(&mut self, func: &Function, body: Region, init: &[Value], params: &[Value]) {
        self.pass(init, params);
        let mut exits = Vec::new();
        exits_of(func, body, &mut exits);
        for exit in exits {
            if let Op::Yield { values } | Op::Break { values } | Op::Continue { values } =
                &func[exit]
            {
                self.pass(values, params);
            }
        }
    }

    fn write(&mut self, func: &Function, place: Value, value: Value) {
        if let Some(local) = local(func, place) {
            self.of[local].push(value);
        } else if let Some(env) = self.env {
            for class in memory(func, env, place) {
                match self.written.get_mut(&class) {
                    Some(values) => values.push(value),
                    None => {
                        self.written.insert(class, vec![value]);
                    }
                }
            }
        }
    }

    fn note(
        &mut self,
        func: &Function,
        inst: Inst,
        is_root: &impl Fn(&Function, Inst, Value) -> bool,
    ) {
        let results = &func.insts[inst].results;
        match &func[inst] {
            Op::Store { place, value }
            | Op::Atomic { place, value, .. }
            | Op::Cas { place, value, .. } => {
                self.write(func, *place, *value);
            }
            Op::AtomicAdds { places, values } => {
                for (&place, &value) in places.iter().zip(values) {
                    self.write(func, place, value);
                }
            }
            Op::Load { place } => {
                if let Some(local) = local(func, *place) {
                    self.of[results[0]].push(local);
                } else if let Some(env) = self.env {
                    self.read[results[0]] = memory(func, env, *place);
                }
            }
            Op::If {
                then, otherwise, ..
            } => {
                for branch in [*then, *otherwise] {
                    self.pass(func.yielded(branch).unwrap_or_default(), results);
                }
            }
            Op::For { init, body, .. } => {
                let params = &func.regions[*body].params[1..];
                self.carry(func, *body, init, params);
                self.pass(params, results);
            }
            Op::While { init, cond, body } => {
                let (params, tested) = (&func.regions[*body].params, &func.regions[*cond].params);
                self.carry(func, *body, init, params);
                self.pass(params, tested);
                self.pass(params, results);
            }
            // What a function decides is not known here: its arguments count, and what it returns depends on nothing.
            Op::Call { args, .. } | Op::Threads { args, .. } => self
                .roots
                .extend(args.iter().filter(|&&v| is_float(func, v))),
            // What a function returns its callers may decide by.
            Op::Yield { values }
                if !func.is_kernel && func.regions[func.body].insts.last() == Some(&inst) =>
            {
                self.roots
                    .extend(values.iter().filter(|&&v| is_float(func, v)));
            }
            Op::Return { values } if !func.is_kernel => self
                .roots
                .extend(values.iter().filter(|&&v| is_float(func, v))),
            op if op.row().is_elementwise => {
                op.operands(|v| {
                    self.of[results[0]].push(v);
                    if is_float(func, v) && is_root(func, inst, v) {
                        self.roots.push(v);
                    }
                });
            }
            _ => {}
        }
    }
}

/// The terminators with which iterations of a loop's body end.
pub(super) fn exits_of(func: &Function, body: Region, exits: &mut Vec<Inst>) {
    fn inside(func: &Function, region: Region, exits: &mut Vec<Inst>) {
        for &inst in &func.regions[region].insts {
            match func[inst] {
                Op::Break { .. } | Op::Continue { .. } => exits.push(inst),
                Op::If {
                    then, otherwise, ..
                } => {
                    inside(func, then, exits);
                    inside(func, otherwise, exits);
                }
                _ => {}
            }
        }
    }
    inside(func, body, exits);
    let last = func.terminator(body);
    if matches!(func[last], Op::Yield { .. }) {
        exits.push(last);
    }
}

/// The memory that a place lies in; nothing for an address that device code computes.
fn memory(func: &Function, env: &Env, place: Value) -> Vec<Class> {
    match func.def_op(place) {
        None | Some(Op::PlaceAt { .. }) => Vec::new(),
        Some(&Op::ElemRef { base, .. } | &Op::MemberRef { base, .. })
            if memory(func, env, base).is_empty() =>
        {
            Vec::new()
        }
        Some(_) => classes(func, env, place),
    }
}

/// The local that a place lies in.
pub(super) fn local(func: &Function, place: Value) -> Option<Value> {
    match func.def_op(place) {
        Some(Op::Local {}) => Some(place),
        Some(&Op::ElemRef { base, .. } | &Op::MemberRef { base, .. }) => local(func, base),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::decisive;
    use crate::{parse_module, walk};

    #[test]
    fn what_comes_before_comparisons() {
        let text = "
            kernel @k(x: f64) -> f64 {
                v0: f64 = arg a0
                v1: f64 = const 2.0
                v2: f64 = mul v0, v0
                v3: f64 = sin v0
                v4: ref<f64> = local
                v5: f64 = exp v2
                store v4, v5
                v6: f64 = load v4
                v7: i32 = const 0
                v8: i32 = const 4
                v9: i32 = const 1
                v10: f64 = for v7, v8, v9, [v1] (v11: i32, v12: f64) {
                    v13: f64 = cos v12
                    yield [v13]
                }
                v14: f64 = add v6, v10
                v15: u1 = lt v14, v1
                v16: f64 = if v15 {
                    v17: f64 = tan v3
                    yield [v17]
                } {
                    yield [v3]
                }
                return [v16]
            }";
        let module = parse_module(text).unwrap_or_else(|e| panic!("{e}"));
        let func = module.kernel().expect("there is one");
        let found = decisive(func, func.body);
        let mut names = Vec::new();
        walk(func, func.body, &mut |func, inst| {
            if let crate::Op::Unary { op, .. } = func[inst] {
                names.push(format!("{} {}", op.name(), found[inst]));
            }
        });
        assert_eq!(names, ["sin false", "exp true", "cos true", "tan false"]);
    }
}
