//! Real functions: functions of the module, compiled once for each combination of argument types, templates and
//! references.
//!
//! Values travel as parameters and results. What is known while compiling, an array, or which field a reference
//! leads into is part of the function instead: such a reference travels as the element's indices, and one to a
//! variable as its value, which comes back with the results.
//!
//! ```text
//! fib(n - 1)      ==>    v2 = call @fib, [room, v1]
//! ```
//! The first parameter is how many bytes of stack there are left: a function that may call itself asserts that there
//! are enough for it.

use std::rc::Rc;

use aerogel_base::entity::SecondaryMap;
use aerogel_base::{ErrorKind, ScalarType};
use aerogel_ir::analysis::{Calls, cost};
use aerogel_ir::{
    AssertKind, BinaryOp, CompareOp, FuncId, Function, Module, Op, ParamData, ParamType, Type,
    Value, walk,
};

use aerogel_runtime::abi;

use crate::host::{Handle, Known, Passing, ResultType, Signature};
use crate::lower::core::returns::set_constant;
use crate::lower::values::number::elem;
use crate::lower::values::structs::from_leaves;
use crate::lower::values::{Origin, Place, SeqKind, Val, tensor_type};
use crate::lower::{FunctionState, Limit, Lower, Parsed, Real, Res, ReturnType};
use crate::scope::BindingKind;

/// A function is made for more arguments inside of itself than anybody writes: templates that never end.
const MAX_NESTING: usize = 60;

/// How an argument is passed.
enum Passed {
    /// What is known, or an array.
    Known(Val),
    /// The values of a type.
    Values(Known, usize),
    /// A variable: its value, which comes back.
    Variable(ScalarType),
    /// An element of a field or an array: its indices.
    Element(Element),
}

/// Which element of what a reference leads to; the numbers are those of the parameters that hold indices.
#[derive(Clone)]
struct Element {
    /// A `field_at` or an `array_at`, and what its storage is.
    at: Op,
    whole: Type,
    /// How many indices of a component follow.
    component: usize,
    origin: Origin,
}

impl<'a> Lower<'a, '_> {
    pub(crate) fn call_real(
        &mut self,
        parsed: &Rc<Parsed<'a>>,
        signature: &Signature,
        is_method: bool,
        given: Vec<Val>,
    ) -> Res<Val> {
        let name = parsed.def.name;
        let (mut passed, mut values, mut key) = (Vec::new(), Vec::new(), String::new());
        let mut variables: Vec<Place> = Vec::new();
        for (k, val) in given.iter().enumerate() {
            let passing = match signature.params.get(k) {
                Some(_) if is_method && k == 0 => &Passing::Template,
                Some(passing) => passing,
                None => &Passing::Template,
            };
            let one = match passing {
                Passing::Value(ty) => {
                    let val = self.coerce(val, Some(ty))?;
                    let before = values.len();
                    self.flatten(&val, &mut values)?;
                    Passed::Values(ty.clone(), values.len() - before)
                }
                Passing::Reference(ty) => {
                    let parameter = parsed.def.params[k].name;
                    self.pass_reference(name, parameter, val, *ty, &mut values, &mut variables)?
                }
                Passing::Template => match val {
                    Val::Known(_) | Val::Array(_) => Passed::Known(val.clone()),
                    Val::Poison(reported) => return Err(*reported),
                    _ => {
                        let what = self.describe(val);
                        let parameter = parsed.def.params[k].name;
                        let message = format!(
                            "`{parameter}` of `{name}` must be known while compiling, not {what}"
                        );
                        return self.fail(ErrorKind::Type, "E0230", message);
                    }
                },
            };
            key.push_str(&one.key());
            passed.push(one);
        }
        let types: Vec<Type> = values.iter().map(|&value| self.ty(value)).collect();
        // An index may be an `i32` or an `i64`.
        types.iter().for_each(|ty| key.push_str(&format!("{ty},")));
        let key = (parsed.source.scope, key);
        if self.probing > 0 {
            let Some(ty) = signature.result.as_ref().map(return_type) else {
                return Ok(Val::none());
            };
            let results: Vec<Val> = ty
                .types()
                .into_iter()
                .map(|ty| Val::Value(self.value(Op::Undef {}, ty)))
                .collect();
            return Ok(from_results(&ty, &mut results.into_iter()));
        }
        let real = match self.reals.made.get(&key) {
            Some(real) => real.clone(),
            None => self.make_real(parsed, signature, key, passed, &types)?,
        };
        let room = match self.state.room {
            Some(room) => room,
            None => {
                let stack = match self.config.gpu {
                    true => abi::GPU_STACK,
                    false => abi::STACK,
                };
                self.builder().i32(stack)
            }
        };
        let mut args = vec![room];
        args.extend(values);
        let mut types = real
            .result
            .as_ref()
            .map_or_else(Vec::new, ReturnType::types);
        for place in &variables {
            types.push(self.expect_numeric(&Val::Place(place.clone()))?);
        }
        let func = real.id;
        let inst = self.builder().inst(Op::Call { func, args }, &types);
        let results = self.state.func.insts[inst].results.clone();
        let mut results = results.into_iter().map(Val::Value);
        let returned = match &real.result {
            Some(ty) => from_results(ty, &mut results),
            None => Val::none(),
        };
        for (place, val) in variables.iter().zip(results) {
            self.store(place, &val)?;
        }
        Ok(returned)
    }

    fn pass_reference(
        &mut self,
        name: &str,
        parameter: &str,
        val: &Val,
        wanted: ScalarType,
        values: &mut Vec<Value>,
        variables: &mut Vec<Place>,
    ) -> Res<Passed> {
        let Val::Place(Place::Ref { place, origin }) = val else {
            if let Val::Poison(reported) = val {
                return Err(*reported);
            }
            let what = self.describe(val);
            let message = format!(
                "`{parameter}` of `{name}` is taken by reference: a variable or an element is needed, not {what}"
            );
            return self.fail(ErrorKind::Type, "E0231", message);
        };
        let (place, origin) = (*place, *origin);
        let found = self.ty(place).pointee().expect("a place is storage");
        if found != Type::Scalar(wanted) {
            let message = format!("`{parameter}` of `{name}` refers to `{wanted}`, not `{found}`");
            return self.fail_noted(
                ErrorKind::Type,
                "E0231",
                message,
                "a reference needs exactly this type: references are not converted",
            );
        }
        if let Origin::Local { in_parallel } = origin {
            if self.in_parallel() && !in_parallel {
                return self.fail_noted(
                    ErrorKind::Type,
                    "E0231",
                    format!(
                        "`{parameter}` of `{name}` refers to a variable that all iterations share"
                    ),
                    "declare a variable inside the loop, or store the number in a field",
                );
            }
            let base = self.base_of(place);
            for other in &*variables {
                if let Place::Ref { place: other, .. } = other
                    && self.base_of(*other) == base
                {
                    let message = format!("`{name}` takes one variable by reference twice");
                    return self.fail(ErrorKind::Type, "E0231", message);
                }
            }
            values.push(self.load(val)?);
            variables.push(Place::Ref { place, origin });
            return Ok(Passed::Variable(wanted));
        }
        let (base, component) = match self.state.func.def_op(place) {
            Some(Op::ElemRef { base, index }) => (*base, index.clone()),
            _ => (place, Vec::new()),
        };
        let at = self.state.func.def_op(base).cloned();
        let at = at.expect("an element of a field or an array is found by an instruction");
        at.operands(|v| values.push(v));
        values.extend(&component);
        if let Origin::Array(_) = origin {
            self.note_write(&Place::Ref { place, origin });
        }
        Ok(Passed::Element(Element {
            at,
            whole: self.ty(base),
            component: component.len(),
            origin,
        }))
    }

    /// The storage that an element or a member is part of.
    fn base_of(&self, place: Value) -> Value {
        match self.state.func.def_op(place) {
            Some(&Op::ElemRef { base, .. } | &Op::MemberRef { base, .. }) => self.base_of(base),
            _ => place,
        }
    }

    /// Makes the function for arguments that are passed like this.
    fn make_real(
        &mut self,
        parsed: &Rc<Parsed<'a>>,
        signature: &Signature,
        key: (Handle, String),
        passed: Vec<Passed>,
        types: &[Type],
    ) -> Res<Rc<Real>> {
        let def = parsed.def;
        let of_itself = self.reals.open.iter().filter(|&&open| open == key.0);
        if of_itself.count() >= MAX_NESTING {
            return self.fail_noted(
                ErrorKind::Compilation,
                "E0110",
                format!("`{}` is compiled again and again for different template arguments", def.name),
                "a real function is compiled once for each value of its template parameters: recursion must use finitely many values",
            );
        }
        let result = signature.result.as_ref().map(return_type);
        let name = unique_name(&self.module, def.name);
        let id = self.module.funcs.push(Function::new(&name, false));
        let real = Rc::new(Real {
            id,
            result: result.clone(),
        });
        let function = key.0;
        self.reals.made.insert(key, real.clone());

        let mut func = Function::new(&name, false);
        func.params.clone_from(&self.state.func.params);
        func.results = result.as_ref().map_or_else(Vec::new, ReturnType::types);
        let outer = std::mem::replace(&mut self.state, FunctionState::new(func, result));
        let outer_range = self.range;
        self.reals.open.push(function);

        let done = self.within_function(|lower| lower.real_body(parsed, id, passed, types));

        self.reals.open.pop();
        self.range = outer_range;
        let func = std::mem::replace(&mut self.state, outer).func;
        unite_writes(&mut self.state.func.params, &func.params);
        self.module.funcs[id] = func;
        done.map(|()| real)
    }

    fn real_body(
        &mut self,
        parsed: &Rc<Parsed<'a>>,
        id: FuncId,
        passed: Vec<Passed>,
        types: &[Type],
    ) -> Res<()> {
        let def = parsed.def;
        let body = self.state.func.body;
        let room = self.state.func.add_param(body, Type::I32);
        let params: Vec<Value> = types
            .iter()
            .map(|&ty| self.state.func.add_param(body, ty))
            .collect();
        let references = passed.iter().filter_map(|p| match p {
            Passed::Variable(ty) => Some(Type::Scalar(*ty)),
            _ => None,
        });
        self.state.func.results.extend(references);
        self.enter_frame(parsed, aerogel_base::Span::NONE)?;
        self.range = def.range;
        self.limit(id, def.name, room);
        let mut params = params.into_iter();
        for (param, passed) in def.params.iter().zip(passed) {
            let mut next = || params.next().expect("the types are those of the values");
            let (kind, val) = match passed {
                Passed::Known(val) => (BindingKind::Alias, val),
                Passed::Values(ty, n) => {
                    let mut values = (0..n)
                        .map(|_| Val::Value(next()))
                        .collect::<Vec<_>>()
                        .into_iter();
                    let val = match ty {
                        Known::StructType(ty) => from_leaves(&ty, &mut values),
                        _ => values.next().expect("a number or tensor is one value"),
                    };
                    (BindingKind::Variable, self.variable(&val)?)
                }
                Passed::Variable(_) => {
                    let val = self.variable(&Val::Value(next()))?;
                    let Val::Place(Place::Ref { place, .. }) = val else {
                        unreachable!("a variable for a scalar is one place")
                    };
                    self.state.references.push(place);
                    (BindingKind::Variable, val)
                }
                Passed::Element(element) => {
                    let mut at = element.at;
                    at.map_operands(|_| next());
                    let mut place = self.value(at, element.whole);
                    if element.component > 0 {
                        let index = (0..element.component).map(|_| next()).collect();
                        let whole = element.whole.pointee().expect("a place is storage");
                        let ty = Type::RefScalar(elem(whole));
                        place = self.value(Op::ElemRef { base: place, index }, ty);
                    }
                    let origin = element.origin;
                    (
                        BindingKind::Variable,
                        Val::Place(Place::Ref { place, origin }),
                    )
                }
            };
            self.scopes().bind(param.name, kind, val);
        }
        let flow = self.block(def.body);
        self.range = def.range;
        self.finish_function(&def, &flow)
    }

    /// Asserts that there is stack for the function, and computes what is left for those that it calls.
    fn limit(&mut self, func: FuncId, name: &str, room: Value) {
        let mut b = self.builder();
        let frame = b.i32(0);
        let left = b.binary(BinaryOp::Sub, room, frame);
        let zero = b.i32(0);
        let cond = b.compare(CompareOp::Ge, left, zero);
        let check = b.effect(Op::Assert {
            cond,
            kind: AssertKind::Recursion,
            template: format!("`{name}` calls itself too deeply: the stack is full"),
            args: Vec::new(),
        });
        self.state.room = Some(left);
        self.reals.limits.push(Limit { func, frame, check });
    }

    /// What is known only when all real functions are there: who calls itself, and which arrays are written.
    pub(crate) fn finish_reals(&mut self) {
        let calls = Calls::of(&self.module.funcs);
        for Limit { func, frame, check } in std::mem::take(&mut self.reals.limits) {
            let bytes = cost::frame_bytes(&self.module.funcs[func], &self.module.env);
            let data = &mut self.module.funcs[func];
            set_constant(data, frame, bytes);
            if !calls.is_recursive(func) {
                let body = data.body;
                data.regions[body].insts.retain(|&inst| inst != check);
            }
        }
        // What a function calls may be written out in it, so it knows the arrays too.
        let mut with_arrays: SecondaryMap<FuncId, bool> = SecondaryMap::new();
        for group in calls.bottom_up() {
            let uses = group.iter().any(|&func| {
                uses_arrays(&self.module.funcs[func])
                    || calls
                        .callees(func)
                        .iter()
                        .any(|&callee| with_arrays[callee])
            });
            for &func in group {
                with_arrays[func] = uses;
                self.module.funcs[func].params = match uses {
                    true => self.state.func.params.clone(),
                    false => Vec::new(),
                };
            }
        }
    }
}

impl Passed {
    /// A key that distinguishes functions for different arguments.
    fn key(&self) -> String {
        match self {
            Passed::Known(val) => format!("{val:?};"),
            Passed::Values(..) => "v;".into(),
            Passed::Variable(_) => "r;".into(),
            Passed::Element(element) => {
                let component = element.component;
                match &element.at {
                    Op::FieldAt { field, .. } => format!("{field}.{component};"),
                    Op::ArrayAt { array, .. } => format!("{array}.{component};"),
                    op => unreachable!("{op:?} is no element of a field or an array"),
                }
            }
        }
    }
}

fn uses_arrays(func: &Function) -> bool {
    let mut uses = false;
    walk(func, func.body, &mut |func, inst| {
        uses |= matches!(func[inst], Op::ArrayAt { .. } | Op::ArrayShape { .. });
    });
    uses
}

/// Arrays that either writes are written.
fn unite_writes(params: &mut [ParamData], others: &[ParamData]) {
    for (param, other) in params.iter_mut().zip(others) {
        if let (
            ParamType::Array { read_only, .. },
            ParamType::Array {
                read_only: other, ..
            },
        ) = (&mut param.ty, &other.ty)
        {
            *read_only = *read_only && *other;
        }
    }
}

fn unique_name(module: &Module, name: &str) -> String {
    let mut unique = name.to_owned();
    let mut n = 1;
    while module.find(&unique).is_some() {
        n += 1;
        unique = format!("{name}_{n}");
    }
    unique
}

fn return_type(ty: &ResultType) -> ReturnType {
    match ty {
        ResultType::One(Known::StructType(ty)) => ReturnType::Struct(ty.clone()),
        ResultType::One(Known::TensorType { shape, elem }) => {
            ReturnType::One(tensor_type(*shape, *elem))
        }
        ResultType::One(Known::DType(elem)) => ReturnType::One(Type::Scalar(*elem)),
        ResultType::One(other) => unreachable!("the host gives types, not {}", other.describe()),
        ResultType::Tuple(types) => ReturnType::Tuple(types.iter().map(return_type).collect()),
    }
}

/// What a function of a type returns, from the values that it is passed by.
fn from_results(ty: &ReturnType, values: &mut dyn Iterator<Item = Val>) -> Val {
    match ty {
        ReturnType::One(_) => values.next().expect("as many values as there are leaves"),
        ReturnType::Struct(ty) => from_leaves(ty, values),
        ReturnType::Tuple(types) => {
            let items = types.iter().map(|ty| from_results(ty, values)).collect();
            Val::seq(items, SeqKind::Tuple)
        }
    }
}
