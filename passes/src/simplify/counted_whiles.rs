//! `while` loops that count become `for` loops.
//!
//! ```text
//! while [v0, v1] (v2: i32, v3: f32) {        for v0, v9, 1, [v0, v1] (v2: i32, v7: i32, v3: f32) {
//!     v4 = lt v2, v9                             v5 = add v2, 1
//!     yield [v4]                                 ..
//! } (v2: i32, v3: f32) {              ==>        yield [v5, v6]
//!     v5 = add v2, 1                         }
//!     ..
//!     yield [v5, v6]
//! }
//! ```
//! A `while` loop looks at the request to stop in each iteration, and is never vectorised; an innermost `for` loop does not
//! look. One that is not known to be short becomes a `while` loop over chunks of it, so that it can be stopped:
//!
//! ```text
//! while [v0, v1] (v2: i32, v3: f32) { .. } (v2: i32, v3: f32) {
//!     v8 = (v9 - v2 is at most 65536) ? v9 : v2 + 65536
//!     v10, v11 = for v2, v8, 1, [v2, v3] ..
//!     yield [v10, v11]
//! }
//! ```
//! The variable that counts is still carried, so that it has its value after the loop. A loop whose counter could wrap around
//! before it reaches the bound stays, and so does one that `break` may leave, which is not vectorised in any case.

use aerogel_base::entity::SecondaryMap;
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::analysis::Ranges;
use aerogel_ir::{
    BinaryOp, Builder, CompareOp, Effect, Function, Inst, Op, Region, Type, Value, walk,
};

use crate::PassCx;

pub(crate) fn run(func: &mut Function, _: &PassCx<'_>) -> bool {
    let ranges = Ranges::within(func, func.body);
    let body = func.body;
    count(func, body, &ranges)
}

fn count(func: &mut Function, region: Region, ranges: &Ranges) -> bool {
    let mut changed = false;
    let mut out = Vec::new();
    for inst in std::mem::take(&mut func.regions[region].insts) {
        for owned in func.owned(inst) {
            changed |= count(func, owned, ranges);
        }
        if let Some(found) = Count::of(func, inst, ranges) {
            found.write(func, inst, &mut out);
            changed = true;
        }
        out.push(inst);
    }
    func.regions[region].insts = out;
    changed
}

/// How a `while` loop counts.
struct Count {
    /// The number of the variable that counts.
    at: usize,
    /// The end, if this is added to it.
    end: (Value, i128),
    step: Scalar,
    /// Whether the loop may run for long.
    is_long: bool,
}

/// So many iterations, as a power of two, run without a look at the request to stop.
const CHUNK: u32 = 16;

impl Count {
    fn of(func: &Function, inst: Inst, ranges: &Ranges) -> Option<Self> {
        let Op::While {
            ref init,
            cond,
            body,
        } = func[inst]
        else {
            return None;
        };
        let &[tested] = func.yielded(cond)? else {
            return None;
        };
        let insts = &func.regions[cond].insts;
        let &Op::Compare { op, lhs, rhs } = func.def_op(tested)? else {
            return None;
        };
        let is_outside = |v: Value| {
            let made = func.def(v).is_some_and(|def| insts.contains(&def));
            !made && !func.regions[cond].params.contains(&v)
        };
        let mut effects = insts.iter().map(|&inst| func[inst].effect());
        if !effects.all(|effect| matches!(effect, Effect::Pure | Effect::Terminator)) {
            return None;
        }
        let params = func.regions[cond].params.iter();
        let (op, at, bound) = params.enumerate().find_map(|(at, &param)| {
            if param == lhs && is_outside(rhs) {
                Some((op, at, rhs))
            } else if param == rhs && is_outside(lhs) {
                Some((mirrored(op)?, at, lhs))
            } else {
                None
            }
        })?;
        let ty = func.elem(bound);
        let counter = func.regions[body].params[at];
        let step = ty.is_int().then(|| step_of(func, body, at, counter))??;
        let by = step.as_i128();
        let end = match (op, by > 0) {
            (CompareOp::Lt, true) | (CompareOp::Gt, false) => 0,
            (CompareOp::Le, true) => 1,
            (CompareOp::Ge, false) => -1,
            _ => return None,
        };
        // The furthest from the bound that the counter comes.
        let furthest = end + by - by.signum();
        let is_safe = furthest == 0 || {
            let (lo, hi) = match func.as_const(bound) {
                Some(c) => (c.as_i128(), c.as_i128()),
                None => ranges.of(func, bound)?,
            };
            fits(ty, lo + furthest) && fits(ty, hi + furthest)
        };
        let range = |v: Value| match func.as_const(v) {
            Some(c) => Some((c.as_i128(), c.as_i128())),
            None => ranges.of(func, v),
        };
        let length = range(init[at]).zip(range(bound)).map(|(first, last)| {
            let (up, down) = (last.1 - first.0, first.1 - last.0);
            if by > 0 { up / by } else { down / -by }
        });
        let is_long = ty.bits() > 16 && length.is_none_or(|n| n >= 1 << CHUNK);
        // Code for several iterations of an outer loop at once takes loops that only compute, by 1 if they are `for` loops.
        let gains = (by == 1 && !is_long) || touches_memory(func, body);
        let chunk = by.checked_mul(1 << CHUNK)?;
        let fits_in_chunks = !is_long || fits(ty, chunk) && fits(ty, -chunk);
        let gains = gains && fits_in_chunks && !may_break(func, body);
        (is_safe && gains).then_some(Self {
            at,
            end: (bound, end),
            step,
            is_long,
        })
    }

    /// Makes the loop, with what stands before it added to `out`.
    fn write(self, func: &mut Function, inst: Inst, out: &mut Vec<Inst>) {
        let Op::While {
            ref init,
            cond,
            body,
        } = func[inst]
        else {
            unreachable!("only `while` loops count")
        };
        let (init, span) = (init.clone(), func.insts[inst].span);
        let ty = func.ty(self.end.0);
        let before = func.new_region(&[]);
        let mut b = Builder::new(func, before);
        b.span = span;
        let step = b.constant(self.step);
        let mut hi = self.end.0;
        if self.end.1 != 0 {
            let by = b.constant(Scalar::int(self.step.ty(), self.end.1));
            hi = b.binary(BinaryOp::Add, hi, by);
        }
        out.append(&mut func.regions[before].insts);
        let carried = func.regions[body].params[self.at];
        let types: Vec<Type> = init.iter().map(|&v| func.ty(v)).collect();
        let counter = first_param(func, body, ty);
        let mut by: SecondaryMap<Value, Option<Value>> = SecondaryMap::new();
        by[carried] = Some(counter);
        rename(func, body, &by);
        if !self.is_long {
            let lo = init[self.at];
            func.insts[inst].op = Op::For {
                lo,
                hi,
                step,
                init,
                body,
            };
            return;
        }
        let chunks = func.new_region(&types);
        let carried = func.regions[chunks].params.clone();
        let mut b = Builder::new(func, chunks);
        b.span = span;
        let lo = carried[self.at];
        let hi = self.chunk(&mut b, lo, hi);
        let op = Op::For {
            lo,
            hi,
            step,
            init: carried,
            body,
        };
        let chunk = b.inst(op, &types);
        let results = b.func.insts[chunk].results.clone();
        b.yields(results);
        func.insts[inst].op = Op::While {
            init,
            cond,
            body: chunks,
        };
    }

    /// The end of the chunk that begins at `lo`.
    fn chunk(&self, b: &mut Builder<'_>, lo: Value, hi: Value) -> Value {
        let (ty, by) = (self.step.ty(), self.step.as_i128());
        let [zero, size, distance] =
            [0, by.abs() << CHUNK, by << CHUNK].map(|n| b.constant(Scalar::int(ty, n)));
        let rest = match by > 0 {
            true => b.binary(BinaryOp::Sub, hi, lo),
            false => b.binary(BinaryOp::Sub, lo, hi),
        };
        // What is too far for the type is negative.
        let [some, few] = [(CompareOp::Ge, zero), (CompareOp::Le, size)]
            .map(|(op, than)| b.compare(op, rest, than));
        let is_last = b.binary(BinaryOp::And, some, few);
        let next = b.binary(BinaryOp::Add, lo, distance);
        b.select(is_last, hi, next)
    }
}

/// Whether `break` or `return` may leave a loop.
pub(crate) fn may_break(func: &Function, region: Region) -> bool {
    func.regions[region]
        .insts
        .iter()
        .any(|&inst| match func[inst] {
            Op::Break { .. } | Op::Return { .. } => true,
            Op::If {
                then, otherwise, ..
            } => may_break(func, then) || may_break(func, otherwise),
            _ => false,
        })
}

fn touches_memory(func: &Function, region: Region) -> bool {
    let mut found = false;
    walk(func, region, &mut |func, inst| {
        found |= matches!(func[inst], Op::Load { .. } | Op::Store { .. });
    });
    found
}

fn fits(ty: ScalarType, value: i128) -> bool {
    Scalar::int(ty, value).as_i128() == value
}

/// The comparison with its sides exchanged.
fn mirrored(op: CompareOp) -> Option<CompareOp> {
    Some(match op {
        CompareOp::Lt => CompareOp::Gt,
        CompareOp::Le => CompareOp::Ge,
        CompareOp::Gt => CompareOp::Lt,
        CompareOp::Ge => CompareOp::Le,
        CompareOp::Eq | CompareOp::Ne => return None,
    })
}

/// The constant that every iteration adds to a variable, wherever it ends.
fn step_of(func: &Function, body: Region, at: usize, param: Value) -> Option<Scalar> {
    let mut ends = Vec::new();
    ends_of(func, body, at, &mut ends);
    let mut steps = ends.into_iter().map(|end| step(func, end, param));
    let first = steps.next()??;
    steps.all(|step| step == Some(first)).then_some(first)
}

/// What the iterations of a loop end with as a variable.
fn ends_of(func: &Function, region: Region, at: usize, ends: &mut Vec<Value>) {
    if let Op::Yield { values } = &func[func.terminator(region)] {
        ends.push(values[at]);
    }
    continues_of(func, region, at, ends);
}

fn continues_of(func: &Function, region: Region, at: usize, ends: &mut Vec<Value>) {
    for &inst in &func.regions[region].insts {
        match &func[inst] {
            Op::Continue { values } => ends.push(values[at]),
            Op::If {
                then, otherwise, ..
            } => {
                continues_of(func, *then, at, ends);
                continues_of(func, *otherwise, at, ends);
            }
            // Loops inside go on by themselves.
            _ => {}
        }
    }
}

fn step(func: &Function, end: Value, param: Value) -> Option<Scalar> {
    let &Op::Binary { op, lhs, rhs } = func.def_op(end)? else {
        return None;
    };
    let constant = |v| func.as_const(v);
    match op {
        BinaryOp::Add if lhs == param => constant(rhs),
        BinaryOp::Add if rhs == param => constant(lhs),
        BinaryOp::Sub if lhs == param => {
            let by = constant(rhs)?;
            let negated = -by.as_i128();
            (by.ty().is_signed() && fits(by.ty(), negated)).then(|| Scalar::int(by.ty(), negated))
        }
        _ => None,
    }
}

/// Adds a parameter before those that a region has.
fn first_param(func: &mut Function, region: Region, ty: Type) -> Value {
    let param = func.add_param(region, ty);
    func.regions[region].params.rotate_right(1);
    let all = vec![true; func.regions[region].params.len()];
    func.retain_params(region, &all);
    param
}

fn rename(func: &mut Function, region: Region, by: &SecondaryMap<Value, Option<Value>>) {
    for inst in func.regions[region].insts.clone() {
        func.insts[inst].op.map_operands(|v| by[v].unwrap_or(v));
        for owned in func.owned(inst) {
            rename(func, owned, by);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{after, check_pass};

    #[test]
    fn a_short_loop() {
        check_pass!("counted_whiles", "
            func @f(x: i32) -> i32, i32 {
                zero: i32 = const 0
                one: i32 = const 1
                n: i32 = const 9
                a: i32, b: i32 = while [zero, x] (i: i32, s: i32) {
                    c: u1 = lt i, n
                    yield [c]
                } (j: i32, t: i32) {
                    u: i32 = mul t, j
                    k: i32 = add j, one
                    d: u1 = eq u, one
                    if d { continue [k, one] } { yield [] }
                    w: i32 = add u, k
                    yield [k, w]
                }
                yield [a, b]
            }", @"
        func @f(v0: i32) -> i32, i32 {
            v1: i32 = const 0
            v2: i32 = const 1
            v3: i32 = const 9
            v4: i32 = const 1
            v5: i32, v6: i32 = for v1, v3, v4, [v1, v0] (v7: i32, v8: i32, v9: i32) {
                v10: i32 = mul v9, v7
                v11: i32 = add v7, v2
                v12: u1 = eq v10, v2
                if v12 {
                    continue [v11, v2]
                } {
                    yield []
                }
                v13: i32 = add v10, v11
                yield [v11, v13]
            }
            yield [v5, v6]
        }
        ");
    }

    #[test]
    fn a_loop_of_unknown_length() {
        check_pass!("counted_whiles", "
            func @f(n: i32, x: i32) -> i32, i32 {
                two: i32 = const -1
                p: ref<i32> = local
                a: i32, b: i32 = while [x, n] (i: i32, s: i32) {
                    c: u1 = gt i, n
                    yield [c]
                } (j: i32, t: i32) {
                    store p, j
                    l: i32 = load p
                    u: i32 = add t, l
                    k: i32 = add j, two
                    yield [k, u]
                }
                yield [a, b]
            }", @"
        func @f(v0: i32, v1: i32) -> i32, i32 {
            v2: i32 = const -1
            v3: ref<i32> = local
            v4: i32 = const -1
            v5: i32, v6: i32 = while [v1, v0] (v7: i32, v8: i32) {
                v9: u1 = gt v7, v0
                yield [v9]
            } (v10: i32, v11: i32) {
                v12: i32 = const 0
                v13: i32 = const 65536
                v14: i32 = const -65536
                v15: i32 = sub v10, v0
                v16: u1 = ge v15, v12
                v17: u1 = le v15, v13
                v18: u1 = and v16, v17
                v19: i32 = add v10, v14
                v20: i32 = select v18, v0, v19
                v21: i32, v22: i32 = for v10, v20, v4, [v10, v11] (v23: i32, v24: i32, v25: i32) {
                    store v3, v23
                    v26: i32 = load v3
                    v27: i32 = add v25, v26
                    v28: i32 = add v23, v2
                    yield [v28, v27]
                }
                yield [v21, v22]
            }
            yield [v5, v6]
        }
        ");
    }

    /// A loop that counts from `x` while a comparison holds.
    fn counting(compare: &str, bound: &str, step: &str) -> String {
        let text = format!(
            "func @f(x: i32, m: i32, n: i32) -> i32, i32 {{
                zero: i32 = const 0
                one: i32 = const 1
                bound: i32 = {bound}
                a: i32, b: i32 = while [x, zero] (i: i32, s: i32) {{
                    c: u1 = {compare}
                    yield [c]
                }} (j: i32, t: i32) {{
                    d: i32 = const {step}
                    k: i32 = add j, d
                    p: ref<i32> = local
                    store p, j
                    l: i32 = load p
                    w: i32 = add t, l
                    yield [k, w]
                }}
                yield [a, b]
            }}"
        );
        after(&["counted_whiles"], &text, aerogel_ir::FastMath::Off)
    }

    #[test]
    fn comparisons() {
        let counted = [
            ("lt i, bound", "add n, m", "1"),
            ("gt bound, i", "add n, m", "1"),
            ("gt i, bound", "add n, m", "-1"),
            ("le i, bound", "const 5", "1"),
            ("ge i, bound", "const -7", "-2"),
            ("lt i, bound", "const 9", "4"),
        ];
        for (compare, bound, step) in counted {
            let text = counting(compare, bound, step);
            assert!(text.contains(" for "), "{compare} {bound} {step}\n{text}");
        }
    }

    #[test]
    fn other_loops_stay() {
        // They count away from the bound, or may wrap around; they end by chance, or the bound moves.
        for (compare, bound, step) in [
            ("ne i, bound", "add n, m", "1"),
            ("lt s, i", "const 5", "1"),
            ("gt i, bound", "const 1", "1"),
            ("le i, bound", "add n, m", "1"),
            ("lt i, bound", "add n, m", "2"),
            ("le i, bound", "const 2147483647", "1"),
            ("ge i, bound", "const -2147483648", "-1"),
        ] {
            assert!(
                !is_counted(compare, bound, step),
                "{compare} {bound} {step}"
            );
        }
        assert!(is_counted("le i, bound", "const 2147483646", "1"));
    }

    /// Whether such a loop becomes one that counts. (It is not run: some would not end.)
    fn is_counted(compare: &str, bound: &str, step: &str) -> bool {
        let text = format!(
            "func @f(x: i32, m: i32, n: i32) -> i32 {{
                zero: i32 = const 0
                bound: i32 = {bound}
                a: i32, b: i32 = while [x, zero] (i: i32, s: i32) {{
                    c: u1 = {compare}
                    yield [c]
                }} (j: i32, t: i32) {{
                    d: i32 = const {step}
                    p: ref<i32> = local
                    store p, j
                    k: i32 = add j, d
                    yield [k, j]
                }}
                yield [a]
            }}"
        );
        let mut module = aerogel_ir::parse_module(&text).expect("it parses");
        let id = module.funcs.keys().next().expect("a function");
        let env = module.env.clone();
        let cx = crate::PassCx {
            env: &env,
            funcs: &Default::default(),
            lengths: &Default::default(),
            exchanged: &Default::default(),
            options: Default::default(),
        };
        super::run(&mut module.funcs[id], &cx)
    }
}
