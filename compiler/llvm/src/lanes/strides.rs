//! How values change from one iteration of a row to the next.
//!
//! Of neighbouring iterations much is the same, or goes along with them: in `a[i, k] * b[k, j]` the
//! first factor is the same for all `j`, and the second lies beside that of the iteration before.
//! What is so is computed once for all lanes of a vector (see `rows`). Where indices jump only at the ends of a row, that is so in
//! its inside (see `interior`).

use super::analysis;
use crate::interior::Outcome;
use aerogel_base::ScalarType;
use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::LookupMap;
use aerogel_ir::analysis::affine::scaled;
use aerogel_ir::analysis::trips;
use aerogel_ir::{
    BinaryOp, Effect, Env, Function, Inst, NodeOp, Op, ParamType, Region, Type, UnaryOp, Value,
    walk,
};

/// The distances of the values inside a region from those of the iteration before.
pub(crate) struct Strides<'a> {
    func: &'a Function,
    env: &'a Env,
    counter: Value,
    /// Values that are defined inside the region; all others are the same in each iteration.
    inside: SecondaryMap<Value, bool>,
    /// Where the counters of the loops inside begin.
    begins: SecondaryMap<Value, Option<Value>>,
    known: SecondaryMap<Value, Option<Option<i64>>>,
    /// What is known in the inside of a row.
    outcomes: Option<&'a LookupMap<Value, Outcome>>,
    /// How far back the value is whose operands are looked at.
    depth: u32,
}

/// How far back operands are followed; indices are not computed in so many steps.
const DEEPEST: u32 = 256;

impl<'a> Strides<'a> {
    /// For the iterations that `counter`, a parameter of `body`, counts.
    pub(crate) fn new(func: &'a Function, env: &'a Env, body: Region, counter: Value) -> Self {
        let mut inside = SecondaryMap::new();
        let mut begins: SecondaryMap<Value, Option<Value>> = SecondaryMap::new();
        walk(func, body, &mut |func, inst| {
            for &result in &func.insts[inst].results {
                inside[result] = true;
            }
            for region in func.owned(inst) {
                for &param in &func.regions[region].params {
                    inside[param] = true;
                }
            }
            if let Op::For { lo, body, .. } = func[inst] {
                begins[func.regions[body].params[0]] = Some(lo);
            }
        });
        let mut known = SecondaryMap::new();
        for &inst in &func.regions[body].insts {
            // What is read outside the loops inside is not read again in them.
            if let (Op::Load { .. }, &[result]) = (&func[inst], &func.insts[inst].results[..]) {
                known[result] = Some(None);
            }
        }
        Self {
            func,
            env,
            counter,
            inside,
            begins,
            known,
            outcomes: None,
            depth: 0,
        }
    }

    /// The same in the inside of a row.
    pub(crate) fn inside(self, outcomes: Option<&'a LookupMap<Value, Outcome>>) -> Self {
        Self { outcomes, ..self }
    }

    /// Whether a condition holds in the inside, if that is known.
    fn truth(&self, cond: Value) -> Option<bool> {
        if let Some(&Outcome::Truth(truth)) = self.outcomes?.get(&cond) {
            return Some(truth);
        }
        match self.func.def_op(cond)? {
            &Op::Binary { op, lhs, rhs } if matches!(op, BinaryOp::And | BinaryOp::Or) => {
                let decides = op == BinaryOp::Or;
                match [lhs, rhs].map(|x| self.truth(x)) {
                    [Some(x), _] | [_, Some(x)] if x == decides => Some(decides),
                    [Some(_), Some(_)] => Some(!decides),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// How much more a number is than in the iteration before, modulo the size of its type, or by
    /// how many bytes an address is behind; nothing if that is not always the same.
    pub(crate) fn of(&mut self, value: Value) -> Option<i64> {
        if value == self.counter {
            return Some(1);
        }
        if !self.inside[value] {
            return Some(0);
        }
        if let Some(known) = self.known[value] {
            return known;
        }
        if self.depth == DEEPEST {
            return None;
        }
        self.depth += 1;
        let stride = self.compute(value);
        self.depth -= 1;
        self.known[value] = Some(stride);
        stride
    }

    fn compute(&mut self, value: Value) -> Option<i64> {
        let func = self.func;
        match self.outcomes.and_then(|outcomes| outcomes.get(&value)) {
            Some(Outcome::Truth(_)) => return Some(0),
            Some(&Outcome::Is(other)) => return self.of(other),
            // What is taken away is the same all along the row.
            Some(&Outcome::Less(index, _)) => return self.of(index),
            None => {}
        }
        let Some(op) = func.def_op(value) else {
            let lo = self.begins[value]?;
            return self.of(lo).filter(|&stride| stride == 0);
        };
        let is_int = |v: Value| func.ty(v).scalar().is_some_and(ScalarType::is_int);
        match op {
            &Op::Binary { op, lhs, rhs } if is_int(value) => {
                let (x, y) = (self.of(lhs)?, self.of(rhs)?);
                match op {
                    BinaryOp::Add => x.checked_add(y),
                    BinaryOp::Sub => x.checked_sub(y),
                    _ if x == 0 && y == 0 => Some(0),
                    _ => {
                        let (x, factor) = scaled(func, value)?;
                        self.of(x)?.checked_mul(i64::try_from(factor).ok()?)
                    }
                }
            }
            // Sums may wrap before they are extended; the counter does not.
            &Op::Cast { x } if x == self.counter && is_int(value) => {
                (func.elem(value).bits() >= func.elem(x).bits()).then_some(1)
            }
            Op::Node(NodeOp::Linearize { node, coords }) => {
                let axes = &self.env.trees[node.tree][node.node].axes;
                let extents = axes.iter().map(|axis| Some(i64::from(axis.extent)));
                self.row_major(coords, extents.collect())
            }
            &Op::Node(NodeOp::Lookup {
                node,
                container,
                index,
            }) => {
                let size = i64::try_from(self.env.trees[node.tree][node.node].cell_size).ok()?;
                let cells = self.of(index)?.checked_mul(size)?;
                self.of(container)?.checked_add(cells)
            }
            &Op::Node(NodeOp::Child { cell, .. }) => self.of(cell),
            Op::ArrayAt { array, indices } => {
                let ParamType::Array { elem, .. } = func.params[array.as_u32() as usize].ty else {
                    return None;
                };
                let bytes = elem.n_elems() * elem.elem()?.bytes();
                let elements = self.row_major(indices, vec![None; indices.len()])?;
                elements.checked_mul(i64::from(bytes))
            }
            &Op::Load { place } => self.of(place).filter(|&stride| stride == 0),
            Op::ElemRef { .. } => None,
            Op::If { .. } => self.is_same_choice(value).then_some(0),
            op if op.effect() == Effect::Pure => {
                let mut same = true;
                op.operands(|v| same = same && self.of(v) == Some(0));
                same.then_some(0)
            }
            _ => None,
        }
    }

    /// Whether a branch gives the same number in each iteration and does nothing else, such as `a and b` where `b` is computed
    /// only if `a` holds.
    fn is_same_choice(&mut self, value: Value) -> bool {
        let func = self.func;
        let Some(inst) = func.def(value) else {
            return false;
        };
        let Op::If {
            cond,
            then,
            otherwise,
        } = func[inst]
        else {
            return false;
        };
        let at = func.insts[inst].results.iter().position(|&r| r == value);
        // The branch is computed once for all lanes only if its condition is, wherever it leads in the inside.
        self.of(cond) == Some(0)
            && [then, otherwise].into_iter().all(|side| {
                let given = func
                    .yielded(side)
                    .zip(at)
                    .and_then(|(given, at)| given.get(at));
                only_computes(func, side) && given.is_some_and(|&v| self.of(v) == Some(0))
            })
    }

    /// Whether a loop reads what lies neither in one place nor side by side for neighbouring iterations.
    pub(crate) fn reads_afar(&mut self, inst: Inst) -> bool {
        let func = self.func;
        let mut places = Vec::new();
        for region in func.owned(inst) {
            walk(func, region, &mut |func, inst| {
                if let Op::Load { place } = func[inst] {
                    places.push(place);
                }
            });
        }
        places.into_iter().any(|place| {
            let ty = func.ty(place).pointee().and_then(Type::scalar);
            let side_by_side = ty.map(|ty| i64::from(ty.bytes()));
            !matches!(self.of(place), stride if stride == Some(0) || stride == side_by_side)
        })
    }

    /// The stride of an element's flat index, the last axis fastest, where sizes may be known.
    fn row_major(&mut self, coords: &[Value], extents: Vec<Option<i64>>) -> Option<i64> {
        let mut stride = 0i64;
        for (&coord, extent) in coords.iter().zip(extents) {
            if stride != 0 {
                stride = stride.checked_mul(extent?)?;
            }
            stride = stride.checked_add(self.of(coord)?)?;
        }
        Some(stride)
    }
}

/// Computations that neighbouring iterations share in loops that they run through together.
#[derive(Default)]
pub(crate) struct Shared {
    /// The loops.
    pub(crate) loops: SecondaryMap<Inst, bool>,
    /// Instructions that are computed once for all lanes.
    pub(crate) once: SecondaryMap<Inst, bool>,
    /// By how much the lanes of what is computed once lie apart.
    pub(crate) strides: SecondaryMap<Value, i64>,
    /// Branches that go the same way in all lanes.
    pub(crate) branches: SecondaryMap<Inst, Option<Ways>>,
}

/// The sides that a branch may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ways {
    Both,
    Only(bool),
}

/// Looks for what iterations can share.
pub(crate) struct Search<'a> {
    pub(crate) strides: Strides<'a>,
    loops: Vec<Inst>,
    once: Vec<Inst>,
    branches: Vec<(Inst, Ways)>,
}

impl<'a> Search<'a> {
    pub(crate) fn new(strides: Strides<'a>) -> Self {
        Self {
            strides,
            loops: Vec::new(),
            once: Vec::new(),
            branches: Vec::new(),
        }
    }

    /// Takes up an instruction if it can be computed once for all lanes.
    pub(crate) fn admit(&mut self, inst: Inst) -> bool {
        let func = self.strides.func;
        let op = &func[inst];
        let results = &func.insts[inst].results;
        let computes = op.effect() == Effect::Pure
            || matches!(op, Op::Load { .. })
            || matches!(op, Op::If { .. } if !results.is_empty());
        let once = computes && results.iter().all(|&v| self.strides.of(v).is_some());
        if once {
            self.once.push(inst);
        }
        once
    }

    /// Takes up a loop, with what is inside, that neighbouring iterations run through together: its
    /// bounds are the same for all of them, and what it reads is the same or lies side by side.
    pub(crate) fn admit_loop(&mut self, inst: Inst) -> bool {
        self.or_not(|s| s.try_loop(inst))
    }

    /// Forgets what an attempt has taken up if it fails.
    fn or_not(&mut self, admit: impl FnOnce(&mut Self) -> bool) -> bool {
        let (n_loops, n_once, n_branches) =
            (self.loops.len(), self.once.len(), self.branches.len());
        let admitted = admit(self);
        if !admitted {
            self.loops.truncate(n_loops);
            self.once.truncate(n_once);
            self.branches.truncate(n_branches);
        }
        admitted
    }

    fn try_loop(&mut self, inst: Inst) -> bool {
        let func = self.strides.func;
        let Op::For {
            lo, hi, step, body, ..
        } = func[inst]
        else {
            return false;
        };
        let is_number = |&v: &Value| func.ty(v).scalar().is_some_and(|ty| !ty.is_half());
        if self.strides.of(lo) != Some(0)
            || self.strides.of(hi) != Some(0)
            || !func.as_const(step).is_some_and(|step| step.is_one())
            || !func.insts[inst].results.iter().all(is_number)
        {
            return false;
        }
        self.loops.push(inst);
        self.admit_all(body)
    }

    /// Takes up all instructions of a region that all lanes run through.
    fn admit_all(&mut self, region: Region) -> bool {
        let func = self.strides.func;
        let mut insts = func.regions[region].insts.iter();
        insts.all(|&inst| match func[inst] {
            Op::Load { place } => self.admit(inst) || self.side_by_side(place),
            Op::For { .. } => self.admit_loop(inst) || analysis::can(func, inst, None),
            Op::Yield { .. } => true,
            Op::If { .. } => {
                !leaves(func, inst)
                    && (self.admit(inst)
                        || self.or_not(|s| s.try_branch(inst))
                        || analysis::can(func, inst, None))
            }
            _ => self.admit(inst) || analysis::can(func, inst, None) && !leaves(func, inst),
        })
    }

    /// Takes up a branch that goes the same way in all lanes, with what is inside.
    fn try_branch(&mut self, inst: Inst) -> bool {
        let func = self.strides.func;
        let Op::If {
            cond,
            then,
            otherwise,
        } = func[inst]
        else {
            return false;
        };
        let is_number = |&v: &Value| func.ty(v).scalar().is_some_and(|ty| !ty.is_half());
        if !func.insts[inst].results.iter().all(is_number) {
            return false;
        }
        let ways = match self.strides.truth(cond) {
            Some(truth) => Ways::Only(truth),
            None if self.strides.of(cond) == Some(0) => Ways::Both,
            None => return false,
        };
        self.branches.push((inst, ways));
        match ways {
            Ways::Only(true) => self.admit_all(then),
            Ways::Only(false) => self.admit_all(otherwise),
            Ways::Both => self.admit_all(then) && self.admit_all(otherwise),
        }
    }

    /// Whether numbers of neighbouring iterations are neighbours in memory.
    fn side_by_side(&mut self, place: Value) -> bool {
        let ty = self.strides.func.ty(place).pointee().and_then(Type::scalar);
        ty.is_some_and(|ty| {
            !(ty.is_half() || ty == ScalarType::U1)
                && self.strides.of(place) == Some(i64::from(ty.bytes()))
        })
    }

    /// Whether running through a loop together beats what is made of it otherwise: loops of few
    /// turns are written out, and sums of what lies in a row become sums of vectors. A loop that
    /// reads nothing waits for its own arithmetic.
    pub(crate) fn pays(&mut self, inst: Inst, reassociates: bool) -> bool {
        let func = self.strides.func;
        let Op::For { body, .. } = func[inst] else {
            return false;
        };
        if is_written_out(func, inst, body) {
            return false;
        }
        let mut reads = false;
        walk(func, body, &mut |func, inst| {
            reads |= matches!(func[inst], Op::Load { .. })
        });
        !reads || self.gains_in(body, reassociates)
    }

    fn gains_in(&mut self, body: Region, reassociates: bool) -> bool {
        let func = self.strides.func;
        let counter = func.regions[body].params[0];
        let mut inner = Strides::new(func, self.strides.env, body, counter);
        self.gains_by(body, &mut inner, reassociates)
    }

    fn gains_by(&mut self, region: Region, inner: &mut Strides<'_>, reassociates: bool) -> bool {
        let func = self.strides.func;
        let mut insts = func.regions[region].insts.iter();
        insts.any(|&inst| match func[inst] {
            Op::Load { place } => {
                let ty = func.ty(place).pointee().and_then(Type::scalar);
                let in_a_row = ty.map(|ty| i64::from(ty.bytes()));
                self.strides.of(place) != Some(0) || !reassociates || inner.of(place) != in_a_row
            }
            Op::For { body, .. } => self.gains_in(body, reassociates),
            Op::If {
                then, otherwise, ..
            } => [then, otherwise]
                .into_iter()
                .any(|side| self.gains_by(side, inner, reassociates)),
            _ => false,
        })
    }

    /// The collected result.
    pub(crate) fn done(mut self) -> Shared {
        let mut shared = Shared::default();
        shared.strides[self.strides.counter] = 1;
        for &inst in &self.loops {
            shared.loops[inst] = true;
        }
        for &(inst, ways) in &self.branches {
            shared.branches[inst] = Some(ways);
        }
        for &inst in &self.once {
            shared.once[inst] = true;
            for &result in &self.strides.func.insts[inst].results {
                shared.strides[result] = self.strides.of(result).expect("admitted as such");
            }
        }
        shared
    }
}

/// Whether a region, with branches inside, only computes.
fn only_computes(func: &Function, region: Region) -> bool {
    let mut insts = func.regions[region].insts.iter();
    insts.all(|&inst| match func[inst] {
        Op::If {
            then, otherwise, ..
        } => only_computes(func, then) && only_computes(func, otherwise),
        Op::Yield { .. } => true,
        _ => func[inst].effect() == Effect::Pure,
    })
}

/// Whether an instruction may end the iteration of the loop it stands in.
pub(super) fn leaves(func: &Function, inst: Inst) -> bool {
    match func[inst] {
        Op::Break { .. } | Op::Continue { .. } => true,
        Op::If {
            then, otherwise, ..
        } => [then, otherwise]
            .iter()
            .any(|&region| func.regions[region].insts.iter().any(|&i| leaves(func, i))),
        _ => false,
    }
}

/// LLVM unrolls a loop with no more instructions than this in all its iterations.
const WRITTEN_OUT: u64 = 256;

/// The cost of counting an iteration, and of an array index: its size, a product, a sum. In a nest, much of that is the
/// same for all iterations.
const OF_A_TURN: u64 = 2;
const OF_AN_INDEX: u64 = 2;

/// Whether LLVM unrolls a counted loop.
pub(super) fn is_written_out(func: &Function, inst: Inst, body: Region) -> bool {
    let inner = trips::iterations_within(func, body);
    let turns = trips::length(func, &func[inst])
        .zip(inner)
        .map(|(n, inner)| n.saturating_mul(inner.max(1)));
    let is_nest = inner != Some(0);
    let mut n_insts = if is_nest { 0 } else { OF_A_TURN };
    walk(func, body, &mut |func, inst| {
        n_insts += weight(func, inst);
        if let Op::ArrayAt { indices, .. } = &func[inst]
            && !is_nest
        {
            n_insts += OF_AN_INDEX * indices.len() as u64;
        }
    });
    turns.is_some_and(|turns| turns.saturating_mul(n_insts) <= WRITTEN_OUT)
}

/// How many numbers a body without loops reads of which those of neighbouring iterations lie anywhere.
pub(crate) fn far_reads(func: &Function, env: &Env, body: Region) -> usize {
    let Some(&counter) = func.regions[body].params.last() else {
        return 0;
    };
    let mut strides = Strides::new(func, env, body, counter);
    let insts = func.regions[body].insts.iter();
    let far = insts.filter(|&&inst| match func[inst] {
        Op::Load { place } => strides.of(place).is_none(),
        _ => false,
    });
    far.count()
}

/// About how many instructions one becomes: those of a series are as many as its terms. A division or square root of one float
/// keeps the divider busy for as long as four other instructions take, and hardly longer for a vector of them.
pub(super) fn weight(func: &Function, inst: Inst) -> u64 {
    match func[inst] {
        Op::Unary {
            op: UnaryOp::Sqrt | UnaryOp::Rsqrt,
            ..
        } => 4,
        Op::Binary {
            op: BinaryOp::Div,
            lhs,
            ..
        } if func.elem(lhs).is_float() => 4,
        Op::Unary { op, .. } if !op.is_exact() && op != UnaryOp::Rsqrt => 24,
        Op::Binary { op, lhs, .. } if !op.is_exact(func.elem(lhs)) => 48,
        _ => 1,
    }
}
