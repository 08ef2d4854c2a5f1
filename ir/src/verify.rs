//! The rules of the IR: scopes, terminators, stages, types.

use std::fmt;

use aerogel_base::entity::SecondaryMap;

use crate::func::{Function, ValueDef};
use crate::module::{Env, Module};
use crate::op::Op;
use crate::op_kinds::TaskKind;
use crate::print::print_function;
use crate::stage::{Effect, Stage};
use crate::types::{Inst, Region, Type, Value};
use crate::verify_types;

/// A broken rule.
#[derive(Clone, Debug)]
pub struct VerifyError {
    /// Which rule, and how it is broken.
    pub message: String,
    /// The instruction, if one is to blame.
    pub inst: Option<Inst>,
    /// The function as text.
    pub text: String,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.message, self.text)
    }
}

impl std::error::Error for VerifyError {}

/// Checks that `func` obeys the rules of `stage`.
pub fn verify(func: &Function, env: &Env, stage: Stage) -> Result<(), VerifyError> {
    let mut v = Verifier {
        func,
        env,
        stage,
        tasks_only: func.is_kernel && stage >= Stage::Offloaded,
        visible: SecondaryMap::new(),
        walked: SecondaryMap::new(),
        in_parallel: false,
        loops: Vec::new(),
    };
    v.region(func.body, &Owner::Function)
        .map_err(|(inst, message)| {
            let mnemonic = inst
                .map(|i| format!(" (at a `{}` instruction)", name_of(&func[i])))
                .unwrap_or_default();
            VerifyError {
                message: format!("{message}{mnemonic}"),
                inst,
                text: print_function(func, env),
            }
        })
}

/// Checks that calls pass what the functions of `module` take, and get what they return.
pub fn verify_calls(module: &Module) -> Result<(), VerifyError> {
    for func in module.funcs.values() {
        let mut broken = None;
        crate::walk(func, func.body, &mut |func, inst| {
            let Op::Call { func: callee, args } = &func[inst] else {
                return;
            };
            let types = |values: &[Value]| values.iter().map(|&v| func.ty(v)).collect::<Vec<_>>();
            let message = match module.funcs.get(*callee) {
                None => "there is no such function".to_owned(),
                Some(callee) if callee.is_kernel => "a kernel is called".to_owned(),
                Some(callee) => {
                    let params = &callee.regions[callee.body].params;
                    let wanted: Vec<Type> = params.iter().map(|&p| callee.ty(p)).collect();
                    let (args, results) = (types(args), types(&func.insts[inst].results));
                    if args != wanted {
                        format!("@{} takes {wanted:?}, not {args:?}", callee.name)
                    } else if results != callee.results {
                        let returned = &callee.results;
                        format!("@{} returns {returned:?}, not {results:?}", callee.name)
                    } else {
                        return;
                    }
                }
            };
            broken = broken.take().or(Some((inst, message)));
        });
        if let Some((inst, message)) = broken {
            return Err(VerifyError {
                message: format!("{message} (at a `call` instruction)"),
                inst: Some(inst),
                text: print_function(func, &module.env),
            });
        }
    }
    Ok(())
}

fn name_of(op: &Op) -> &'static str {
    op.mnemonic().unwrap_or(match op {
        Op::Unary { op, .. } => op.name(),
        Op::Binary { op, .. } => op.name(),
        Op::Compare { op, .. } => op.name(),
        Op::Atomic { op, .. } => op.name(),
        _ => "?",
    })
}

type Broken = (Option<Inst>, String);

/// The owner of a region, which decides how it may end.
enum Owner {
    Function,
    /// A region that yields values of these types and passes other terminators on.
    Yields(Vec<Type>),
    /// A loop body with these carried types.
    Loop(Vec<Type>),
    /// Yields anything; its owner's types are checked elsewhere.
    Bounds,
}

struct Verifier<'a> {
    func: &'a Function,
    env: &'a Env,
    stage: Stage,
    /// Whether the outermost region holds nothing but tasks.
    tasks_only: bool,
    visible: SecondaryMap<Value, bool>,
    /// Regions that have been walked: each belongs to one instruction.
    walked: SecondaryMap<Region, bool>,
    in_parallel: bool,
    /// Carried types of the loops around, and whether each may be left by `break`.
    loops: Vec<(Vec<Type>, bool)>,
}

impl Verifier<'_> {
    fn region(&mut self, region: Region, owner: &Owner) -> Result<(), Broken> {
        if std::mem::replace(&mut self.walked[region], true) {
            return Err((None, format!("{region} belongs to two instructions")));
        }
        let data = &self.func.regions[region];
        let mut defined: Vec<Value> = data.params.clone();
        for (k, &p) in data.params.iter().enumerate() {
            if self.func.values[p].def != ValueDef::Param(region, k as u32) {
                return Err((None, format!("{p} is not defined by {region}")));
            }
        }
        data.params.iter().for_each(|&p| self.visible[p] = true);
        let Some(&last) = data.insts.last() else {
            return Err((None, format!("{region} is empty")));
        };
        for &inst in &data.insts {
            let op = &self.func[inst];
            let is_task = matches!(op, Op::Task { .. } | Op::Yield { .. });
            if self.tasks_only && region == self.func.body && !is_task {
                let message = "a kernel is a list of tasks from stage Offloaded on";
                return Err((Some(inst), message.into()));
            }
            if op.is_terminator() != (inst == last) {
                return Err((
                    Some(inst),
                    "a region has one terminator, its last instruction".into(),
                ));
            }
            self.inst(inst).map_err(|m| (Some(inst), m))?;
            self.owned_regions(inst, region)?;
            for (k, &r) in self.func.insts[inst].results.iter().enumerate() {
                if self.func.values[r].def != ValueDef::Result(inst, k as u32) {
                    return Err((Some(inst), format!("{r} is defined elsewhere too")));
                }
                self.visible[r] = true;
                defined.push(r);
            }
        }
        self.terminator(last, owner).map_err(|m| (Some(last), m))?;
        defined.into_iter().for_each(|v| self.visible[v] = false);
        Ok(())
    }

    fn inst(&self, inst: Inst) -> Result<(), String> {
        let op = &self.func[inst];
        let (from, to) = op.stages();
        if self.stage < from || self.stage > to {
            return Err(format!(
                "`{}` is not legal at stage {:?}",
                name_of(op),
                self.stage
            ));
        }
        let mut hidden = None;
        op.operands(|v| {
            if !self.visible[v] {
                hidden = Some(v);
            }
        });
        if let Some(v) = hidden {
            return Err(format!("{v} is not defined here"));
        }
        verify_types::check(self.func, self.env, self.stage, inst)
    }

    fn owned_regions(&mut self, inst: Inst, region: Region) -> Result<(), Broken> {
        let types = |values: &[Value]| values.iter().map(|&v| self.func.ty(v)).collect::<Vec<_>>();
        let results = types(&self.func.insts[inst].results);
        let at_top = region == self.func.body && self.func.is_kernel;
        let op = self.func[inst].clone();
        match op {
            Op::If {
                then, otherwise, ..
            } => {
                self.region(then, &Owner::Yields(results.clone()))?;
                self.region(otherwise, &Owner::Yields(results))
            }
            Op::Update { body, .. } => self.region(body, &Owner::Yields(results)),
            Op::For { body, .. } => self.looped(body, results, true),
            Op::While { cond, body, .. } => {
                self.region(cond, &Owner::Yields(vec![Type::BOOL]))?;
                self.yields(cond, "a condition")?;
                self.looped(body, results, true)
            }
            Op::Parallel { attrs, body, .. } | Op::ParallelCells { attrs, body, .. } => {
                if !at_top {
                    return Err((
                        Some(inst),
                        "a parallel loop stands at a kernel's outermost scope only".into(),
                    ));
                }
                self.parallel(body, attrs.serial)
            }
            Op::Task {
                kind, bounds, body, ..
            } => {
                if !at_top {
                    return Err((
                        Some(inst),
                        "a task stands at a kernel's outermost scope only".into(),
                    ));
                }
                // Tasks see nothing but their own instructions.
                let hidden = std::mem::take(&mut self.visible);
                self.region(bounds, &Owner::Bounds)?;
                self.yields(bounds, "the bounds")?;
                self.reads_only(bounds)?;
                self.region(body, &Owner::Yields(Vec::new()))?;
                self.visible = hidden;
                let n_each = self.func.regions[body]
                    .insts
                    .iter()
                    .filter(|&&i| matches!(self.func[i], Op::Each { .. }))
                    .count();
                let wanted = usize::from(kind == TaskKind::Range);
                if n_each != wanted {
                    return Err((
                        Some(inst),
                        format!("a {kind} task holds {wanted} `each`, not {n_each}"),
                    ));
                }
                self.axes(inst, bounds, body)
            }
            Op::Each { body } => {
                let in_task = self.func.regions[self.func.body]
                    .insts
                    .iter()
                    .any(|&t| matches!(self.func[t], Op::Task { body, .. } if body == region));
                if !in_task {
                    let message = "`each` stands at a task's outermost scope only";
                    return Err((Some(inst), message.into()));
                }
                // Whether `break` is allowed depends on the task's attributes.
                let serial = self.func.regions[self.func.body].insts.iter().any(|&t| {
                    matches!(self.func[t], Op::Task { body, attrs, .. } if body == region && attrs.serial)
                });
                self.parallel(body, serial)
            }
            _ => Ok(()),
        }
    }

    fn yields(&self, region: Region, what: &str) -> Result<(), Broken> {
        if self.func.yielded(region).is_some() {
            return Ok(());
        }
        let end = self.func.terminator(region);
        Err((Some(end), format!("{what} ends in `yield`")))
    }

    /// Bounds are a lower and an upper one for each index of the task's loop, of its type.
    fn axes(&self, task: Inst, bounds: Region, body: Region) -> Result<(), Broken> {
        let ty = |&v: &Value| self.func.ty(v);
        let found: Vec<Type> = self
            .func
            .yielded(bounds)
            .unwrap_or_default()
            .iter()
            .map(ty)
            .collect();
        let each = self.func.regions[body]
            .insts
            .iter()
            .find_map(|&i| match self.func[i] {
                Op::Each { body } => Some(&self.func.regions[body].params),
                _ => None,
            });
        let indices = each.map(Vec::as_slice).unwrap_or_default();
        let wanted: Vec<Type> = indices.iter().flat_map(|i| [ty(i), ty(i)]).collect();
        let integers = wanted
            .iter()
            .all(|t| t.scalar().is_some_and(|s| s.is_int()));
        if found == wanted && integers && each.is_none_or(|i| !i.is_empty()) {
            return Ok(());
        }
        Err((
            Some(task),
            format!("bounds have types {found:?}, not {wanted:?}"),
        ))
    }

    /// Bounds may be computed at any time before the task, and more than once.
    fn reads_only(&self, region: Region) -> Result<(), Broken> {
        let mut writer = None;
        crate::walk(self.func, region, &mut |func, inst| {
            if func[inst].effect() == Effect::Writes {
                writer = writer.or(Some(inst));
            }
        });
        match writer {
            Some(inst) => Err((Some(inst), "a task's bounds have no effects".into())),
            None => Ok(()),
        }
    }

    fn parallel(&mut self, body: Region, serial: bool) -> Result<(), Broken> {
        self.in_parallel = !serial;
        let done = self.looped(body, Vec::new(), serial);
        self.in_parallel = false;
        done
    }

    fn looped(&mut self, body: Region, carried: Vec<Type>, breaks: bool) -> Result<(), Broken> {
        self.loops.push((carried.clone(), breaks));
        let done = self.region(body, &Owner::Loop(carried));
        self.loops.pop();
        done
    }

    fn terminator(&self, inst: Inst, owner: &Owner) -> Result<(), String> {
        let check = |values: &[Value], wanted: &[Type]| {
            let found: Vec<Type> = values.iter().map(|&v| self.func.ty(v)).collect();
            if found == wanted {
                Ok(())
            } else {
                Err(format!(
                    "expected values of types {wanted:?}, found {found:?}"
                ))
            }
        };
        match &self.func[inst] {
            Op::Yield { values } => match owner {
                Owner::Function if self.func.is_kernel => check(values, &[]),
                Owner::Function => check(values, &self.func.results),
                Owner::Yields(types) => check(values, types),
                Owner::Loop(carried) => check(values, carried),
                Owner::Bounds => Ok(()),
            },
            Op::Continue { values } | Op::Break { values } => {
                let Some((carried, breaks)) = self.loops.last() else {
                    return Err("there is no loop around".into());
                };
                if matches!(self.func[inst], Op::Break { .. }) && !breaks {
                    return Err("a parallel loop cannot be left by `break`".into());
                }
                check(values, carried)
            }
            Op::Return { .. } if self.in_parallel => {
                Err("a parallel loop cannot be left by `return`".into())
            }
            Op::Return { values } => check(values, &self.func.results),
            op => Err(format!("`{}` does not end a region", name_of(op))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_module;

    fn error(body: &str) -> String {
        let text = format!(
            "tree0 {{ dense i:4 {{ place x: f32 }} }}\nfield @x: f32 = tree0 [S2]\nkernel @k(n: i32) {{ {body} }}"
        );
        let module = parse_module(&text).unwrap();
        verify(module.kernel().unwrap(), &module.env, Stage::Structured)
            .map_or_else(|e| e.message, |()| String::new())
    }

    #[test]
    fn legal_text_passes() {
        assert_eq!(
            error(
                "v0: i32 = const 4  parallel [v0], [v0] (v1: i32) { v2: ref<f32> = field_at @x, [v1] v3: f32 = load v2 store v2, v3 yield [] } yield []"
            ),
            ""
        );
    }

    #[test]
    fn steps_through_trees_wait_for_their_stage() {
        let text = "tree0 { dense i:4 { place x: f32 } }
            kernel @k() { v0: cell<tree0.S0> = root tree0  yield [] }";
        let module = parse_module(text).unwrap();
        let verified = |stage| verify(module.kernel().unwrap(), &module.env, stage);
        let error = verified(Stage::Structured).unwrap_err();
        assert_eq!(
            error.message,
            "`root` is not legal at stage Structured (at a `root` instruction)"
        );
        verified(Stage::Scheduled).unwrap_or_else(|e| panic!("{e}"));
        let mut rows = crate::NodeOp::ROWS.iter();
        assert!(rows.all(|row| row.stages.0 == Stage::Scheduled));
    }

    #[test]
    fn bounds_have_no_effects() {
        let text = r#"kernel @k() {
            task range {
                v0: i32 = const 1
                print "", []
                yield [v0, v0]
            } {
                each (v1: i32) { yield [] }
                yield []
            }
            yield []
        }"#;
        let module = parse_module(text).unwrap();
        let error = verify(module.kernel().unwrap(), &module.env, Stage::Offloaded).unwrap_err();
        assert_eq!(
            error.message,
            "a task's bounds have no effects (at a `print` instruction)"
        );
    }

    #[test]
    fn tasks() {
        let error = |bounds: &str, body: &str, after: &str| {
            let text = format!(
                "kernel @k(a: array<i32, 1, read>) {{ task range {{ {bounds} }} {{ {body} }} {after} yield [] }}"
            );
            let module = parse_module(&text).unwrap();
            verify(module.kernel().unwrap(), &module.env, Stage::Offloaded)
                .map_or_else(|e| e.message, |()| String::new())
        };
        let bounds = "v0: i32 = const 1 yield [v0, v0]";
        let body = "each (v1: i32) { yield [] } yield []";
        assert_eq!(error(bounds, body, ""), "");
        assert_eq!(
            error("v0: i64 = const 1 yield [v0, v0]", body, ""),
            "bounds have types [Scalar(I64), Scalar(I64)], not [Scalar(I32), Scalar(I32)] (at a `task` instruction)"
        );
        assert_eq!(
            error(bounds, body, "v3: i32 = const 1"),
            "a kernel is a list of tasks from stage Offloaded on (at a `const` instruction)"
        );
        assert_eq!(
            error(
                bounds,
                "each (v1: i32) { v2: ref<i32> = array_at a0, [v1] store v2, v1 yield [] } yield []",
                ""
            ),
            "a0 is only read (at a `store` instruction)"
        );
        assert_eq!(
            error(
                bounds,
                "each (v1: i32) { each (v2: i32) { yield [] } yield [] } yield []",
                ""
            ),
            "`each` stands at a task's outermost scope only (at a `each` instruction)"
        );
    }

    #[test]
    fn text_round_trips() {
        let text = r#"fast_math
tree0 { dense i:4 { place x: f32, place y: f32 } }
struct0 { a: i32, b: vec<2, f32> }
field @x: vec<2, f32> = tree0 [S2, S3] offset [-2]

kernel @k(n: i32, a: array<f32, 2, read>) -> i32 {
    v0: i32 = arg a0
    v1: i32 = array_shape a1, 0
    v2: i32 = const 0
    v3: f32 = const -0.5
    v4: vec<2, f32> = tensor [v3, v3]
    parallel [v2], [v1] threads=64 (v5: i32) {
        v6: ref<vec<2, f32>> = field_at @x, [v5]
        v7: vec<2, f32> = atomic_add v6, v4
        v8: vec<2, f32> = neg v7
        print "x = {:.3f} \"{{\"\n", [v3]
        continue []
    }
    v9: i32 = const 1
    v10: i32 = for v2, v0, v9, [v9] (v11: i32, v12: i32) {
        v13: u1 = lt v12, v11
        v14: i32 = if v13 {
            v15: i32 = call @f, [v12]
            yield [v15]
        } {
            break [v11]
        }
        yield [v14]
    }
    return [v10]
}

func @f(v0: i32) -> i32 {
    v1: i32 = add v0, v0
    yield [v1]
}
"#;
        let module = parse_module(text).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(crate::print_module(&module), text);
        module.funcs.values().for_each(|f| {
            verify(f, &module.env, Stage::Structured).unwrap_or_else(|e| panic!("{e}"))
        });
    }

    #[test]
    fn calls_fit_their_functions() {
        let error = |call: &str| {
            let text = format!(
                "kernel @k() {{ v0: i32 = const 1 v1: f32 = const 1.0 {call} yield [] }}
                func @f(v0: i32) -> i32 {{ yield [v0] }}"
            );
            verify_calls(&parse_module(&text).unwrap())
                .map_or_else(|e| e.message, |()| String::new())
        };
        assert_eq!(error("v2: i32 = call @f, [v0]"), "");
        assert_eq!(
            error("v2: i32 = call @f, [v1]"),
            "@f takes [Scalar(I32)], not [Scalar(F32)] (at a `call` instruction)"
        );
        assert_eq!(
            error("call @f, [v0]"),
            "@f returns [Scalar(I32)], not [] (at a `call` instruction)"
        );
        assert_eq!(
            error("call @k, []"),
            "a kernel is called (at a `call` instruction)"
        );
    }

    #[test]
    fn functions_read_the_kernels_arrays() {
        let text = "kernel @k(n: i32, a: array<f32, 1>) {
    yield []
}

func @f(v0: i32) of (n: i32, a: array<f32, 1>) -> f32 {
    v1: ref<f32> = array_at a1, [v0]
    v2: f32 = load v1
    yield [v2]
}
";
        let module = parse_module(text).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(crate::print_module(&module), text);
    }

    #[test]
    fn rules() {
        assert_eq!(
            error("v0: i32 = const 4"),
            "a region has one terminator, its last instruction (at a `const` instruction)"
        );
        assert_eq!(
            error("v0: i32 = const 4 v1: f32 = const 1.0 v2: i32 = add v0, v1 yield []"),
            "operands have types i32 and f32 (at a `add` instruction)"
        );
        assert_eq!(
            error(
                "v0: i32 = const 1 v1: u1 = const 1 if v1 { parallel [v0], [v0] (v2: i32) { yield [] } yield [] } { yield [] } yield []"
            ),
            "a parallel loop stands at a kernel's outermost scope only (at a `parallel` instruction)"
        );
        assert_eq!(
            error("v0: i32 = const 1 parallel [v0], [v0] (v2: i32) { break [] } yield []"),
            "a parallel loop cannot be left by `break` (at a `break` instruction)"
        );
        assert_eq!(
            error("v0: ref<f32> = temp_at 8 yield []"),
            "`temp_at` is not legal at stage Structured (at a `temp_at` instruction)"
        );
        assert_eq!(
            error("v0: i32 = const 1 v1: ref<i32> = field_at @x, [v0] yield []"),
            "the result has type ref<i32>, not ref<f32> (at a `field_at` instruction)"
        );
        assert_eq!(
            error("v0: u8 = const 1 v1: ref<f32> = field_at @x, [v0] yield []"),
            "an index has 32 or 64 bits, not type u8 (at a `field_at` instruction)"
        );
        assert_eq!(
            error(
                "v0: u1 = const 1 v1: ref<f32> = local v2: ref<f32> = if v0 { yield [v1] } { yield [v1] } yield []"
            ),
            "a ref<f32> is passed on, which is no value (at a `if` instruction)"
        );
        assert_eq!(
            error("v0: i32 = const 1 parallel [v0], [v0] (v1: i32) { return [] } yield []"),
            "a parallel loop cannot be left by `return` (at a `return` instruction)"
        );
        assert_eq!(
            error(
                "v0: u1 = const 1 while [] { yield [v0] } { while [] { break [] } { yield [] } yield [] } yield []"
            ),
            "a condition ends in `yield` (at a `break` instruction)"
        );
        assert_eq!(
            error("v0: ref<f32> = field_at @x, [] yield []"),
            "@x takes 1 indices, not 0 (at a `field_at` instruction)"
        );
    }
}
