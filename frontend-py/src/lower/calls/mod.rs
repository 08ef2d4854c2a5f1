//! Calls: builtins by their row, `ti.func`s inlined, types as constructors, methods, and Python's own functions.

mod address;
pub(crate) mod builtins;
mod frexp;
pub(crate) mod nodes;
mod older;
mod print;
mod python;
pub(crate) mod real_functions;
mod sequences;
pub(crate) mod textures;
pub(crate) mod threads;

use std::rc::Rc;

use aerogel_base::{ErrorKind, ScalarType};
use aerogel_ir::Type;

use crate::ast::{Expr, Keyword};
use crate::host::{Callable, FuncRef, FuncSource, Known};
use crate::intrinsics;
use crate::lower::core::methods::is_tensor_method;
use crate::lower::values::number::elem;
use crate::lower::values::structs::struct_type;
use crate::lower::values::{SeqKind, Val, tensor_type};
use crate::lower::{Lower, Parsed, Res};
use crate::scope::BindingKind;

/// The evaluated arguments of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Args {
    pub(crate) positional: Vec<Val>,
    pub(crate) keywords: Vec<(String, Val)>,
}

impl Args {
    /// Arguments by their positions.
    pub(crate) fn positional(positional: Vec<Val>) -> Self {
        Self {
            positional,
            keywords: Vec::new(),
        }
    }

    /// The argument at a position or with a name.
    pub(crate) fn get(&self, at: usize, name: &str) -> Option<&Val> {
        self.positional.get(at).or_else(|| self.keyword(name))
    }

    pub(crate) fn keyword(&self, name: &str) -> Option<&Val> {
        self.keywords
            .iter()
            .find(|(keyword, _)| keyword == name)
            .map(|(_, val)| val)
    }
}

impl<'a> Lower<'a, '_> {
    pub(crate) fn call(
        &mut self,
        func: &Expr<'a>,
        args: &[Expr<'a>],
        keywords: &[Keyword<'a>],
    ) -> Res<Val> {
        if let Some(returned) = self.super_method(func, args, keywords)? {
            return Ok(returned);
        }
        if let ([], []) = (args, keywords)
            && let Some(found) = self.older_method(func)?
        {
            return Ok(found);
        }
        let callee = self.expr(func)?;
        if let Val::Known(Known::Builtin(name)) = &callee
            && &**name == "print"
        {
            return self.print(args, keywords);
        }
        let is_static = matches!(&callee, Val::Known(Known::Builtin(name)) if &**name == "static");
        let outer = self.state.in_static;
        self.state.in_static |= is_static;
        let evaluated = self.evaluated(args, keywords);
        self.state.in_static = outer;
        self.call_value(&callee, evaluated?)
    }

    pub(crate) fn evaluated(&mut self, args: &[Expr<'a>], keywords: &[Keyword<'a>]) -> Res<Args> {
        let positional = self.exprs(args);
        let mut named = Vec::new();
        let mut failed = Ok(());
        for keyword in keywords {
            let vals = self.expr(&keyword.value);
            let vals = vals.and_then(|val| match keyword.name {
                Some(name) => Ok(vec![(name.to_string(), val)]),
                None => {
                    self.range = keyword.value.range;
                    self.entries_by_name(&val)
                }
            });
            match vals {
                Ok(vals) => named.extend(vals),
                Err(reported) => failed = Err(reported),
            }
        }
        let positional = positional?;
        failed?;
        Ok(Args {
            positional,
            keywords: named,
        })
    }

    fn call_value(&mut self, callee: &Val, args: Args) -> Res<Val> {
        match callee {
            Val::Known(Known::Builtin(name)) => match intrinsics::find(name) {
                Some(rule) => self.builtin(name, rule, &args),
                None => match unbound_method(name) {
                    Some(method) => self.unbound(name, method, args),
                    None => self.call_python(&Known::Builtin(name.clone()), &args),
                },
            },
            Val::Known(Known::Func(func)) => {
                let receiver = func.receiver.clone().map(Val::Known);
                self.invoke(func, receiver, args)
            }
            Val::Known(Known::DType(ty)) => self.cast_call(*ty, &args),
            Val::Known(Known::TensorType { shape, elem }) => self.construct(*shape, *elem, &args),
            Val::Known(Known::StructType(ty)) => self.construct_struct(ty, &args),
            Val::Known(Known::Kernel(name)) => self.fail_noted(
                ErrorKind::Syntax,
                "E0125",
                format!("the kernel `{name}` cannot be called from a kernel"),
                "make it a `ti.func`",
            ),
            Val::Known(known @ Known::Object(_)) => {
                let callable = self.host.callable(known);
                if let Some(callable) = self.hosted(callable)? {
                    return self.call_for(callable, args);
                }
                match self.class_to_make(known, &args)? {
                    Some(class) => self.make_object(&class, args),
                    None => self.call_python(known, &args),
                }
            }
            Val::Method(object, name) => self.method(object, name, &args),
            Val::Poison(reported) => Err(*reported),
            _ => {
                if let Some((func, receiver)) = self.operator_of(callee, "__call__")? {
                    return self.invoke(&func, receiver, args);
                }
                if let Some(element) = self.older_element(callee, &args)? {
                    return Ok(element);
                }
                let what = self.describe(callee);
                self.fail(ErrorKind::Type, "E0220", format!("{what} cannot be called"))
            }
        }
    }

    /// `ti.Vector.dot(a, b)`: a method of tensors, called by its name with what it is of.
    fn unbound(&mut self, name: &str, method: &str, mut args: Args) -> Res<Val> {
        if args.positional.is_empty() {
            let message = format!("`{name}` needs a vector or a matrix");
            return self.fail(ErrorKind::Type, "E0222", message);
        }
        let object = args.positional.remove(0);
        if let Some(items) = object.items()
            && self.numeric_type(&object).is_some()
        {
            let object = self.load(&Self::list(items)).map(Val::Value)?;
            return self.tensor_method(&object, method, &args);
        }
        self.tensor_method(&object, method, &args)
    }

    /// What an object calls, with the arguments it has for it.
    fn call_for(&mut self, callable: Callable, args: Args) -> Res<Val> {
        let mut given: Vec<Val> = callable.positional.into_iter().map(Val::Known).collect();
        given.extend(args.positional);
        let mut keywords = args.keywords;
        for (name, known) in callable.keywords {
            if keywords.iter().all(|(other, _)| *other != name) {
                keywords.push((name, Val::Known(known)));
            }
        }
        let args = Args {
            positional: given,
            keywords,
        };
        self.call_value(&Val::Known(callable.callee), args)
    }

    /// Lowers a `ti.func` where it is called, or calls a real function. A receiver is passed by reference.
    pub(crate) fn invoke(
        &mut self,
        func: &Rc<FuncRef>,
        receiver: Option<Val>,
        args: Args,
    ) -> Res<Val> {
        let source = self.host.source(func);
        let source = self.hosted(source)?;
        let parsed = self.parse(&source)?;
        let is_method = receiver.is_some();
        let given = self.given(&parsed, &source, receiver, args)?;
        // The `ti.static` around a call is not around the body.
        let outer = std::mem::replace(&mut self.state.in_static, false);
        let result = match source.signature.clone() {
            Some(signature) => self.call_real(&parsed, &signature, is_method, given),
            None => self.inline(&parsed, &source, is_method, given),
        };
        self.state.in_static = outer;
        result
    }

    /// The arguments of a function in the order of its parameters, with the default values.
    pub(crate) fn given(
        &mut self,
        parsed: &Parsed<'a>,
        source: &FuncSource,
        receiver: Option<Val>,
        args: Args,
    ) -> Res<Vec<Val>> {
        let def = parsed.def;
        if def.has_variadic {
            return self.fail(
                ErrorKind::Syntax,
                "E0126",
                format!(
                    "`{}` has `*` parameters, which `ti.func` does not support",
                    def.name
                ),
            );
        }
        let mut given: Vec<Option<Val>> = vec![None; def.params.len()];
        let positional: Vec<Val> = receiver.into_iter().chain(args.positional).collect();
        let most = def.params.iter().filter(|param| !param.by_name).count();
        if positional.len() > most {
            let message = format!(
                "`{}` takes {most} arguments, but {} are given",
                def.name,
                positional.len()
            );
            return self.fail(ErrorKind::Syntax, "E0222", message);
        }
        for (slot, val) in given.iter_mut().zip(positional) {
            *slot = Some(val);
        }
        for (name, val) in args.keywords {
            match def.params.iter().position(|param| param.name == name) {
                Some(at) if given[at].is_none() => given[at] = Some(val),
                Some(_) => {
                    return self.fail(
                        ErrorKind::Syntax,
                        "E0222",
                        format!("`{}` is given `{name}` twice", def.name),
                    );
                }
                None => {
                    return self.fail(
                        ErrorKind::Syntax,
                        "E0222",
                        format!("`{}` has no parameter `{name}`", def.name),
                    );
                }
            }
        }
        let mut vals = Vec::new();
        for (param, val) in def.params.iter().zip(given) {
            let default = source.defaults.iter().find(|(name, _)| name == param.name);
            let Some(val) = val.or_else(|| default.map(|(_, known)| Val::Known(known.clone())))
            else {
                let message = format!("`{}` needs an argument for `{}`", def.name, param.name);
                return self.fail(ErrorKind::Syntax, "E0222", message);
            };
            vals.push(val);
        }
        Ok(vals)
    }

    fn inline(
        &mut self,
        parsed: &Parsed<'a>,
        source: &FuncSource,
        is_method: bool,
        given: Vec<Val>,
    ) -> Res<Val> {
        let (returned, _) = self.inlined(parsed, source, is_method, given)?;
        Ok(returned)
    }

    /// The result of an inlined function, and the final value of its first parameter.
    pub(crate) fn inlined(
        &mut self,
        parsed: &Parsed<'a>,
        source: &FuncSource,
        is_method: bool,
        given: Vec<Val>,
    ) -> Res<(Val, Val)> {
        let def = parsed.def;
        let annotated = |name: &str| {
            let found = source.types.iter().find(|(of, _)| of == name);
            found.map(|(_, ty)| Val::Known(ty.clone()))
        };
        let mut bindings = Vec::new();
        for (k, (param, val)) in def.params.iter().zip(given).enumerate() {
            let by_reference = k == 0 && (is_method || self.is_being_made(&val))
                || source.templates.iter().any(|name| name == param.name);
            let val = match annotated(param.name) {
                Some(ty) if !by_reference => self.annotated(&val, &ty)?,
                _ => val,
            };
            bindings.push(if by_reference {
                let kind = if matches!(val, Val::Value(_)) {
                    BindingKind::Parameter
                } else {
                    BindingKind::Alias
                };
                (param.name, kind, val)
            } else {
                // Arguments are copies, all made before the body changes anything.
                (param.name, BindingKind::Variable, self.variable(&val)?)
            });
        }
        let call = self.span();
        let range = self.range;
        self.enter_frame(parsed, call)?;
        for (name, kind, val) in bindings {
            self.scopes().bind(name, kind, val);
        }
        let before = self.reports.mark();
        let returned = self.within_function(|lower| {
            let flow = lower.block(def.body);
            lower.returned_value(def, flow)
        });
        let first = def.params.first().and_then(|p| self.scopes().get(p.name));
        let first = first.map_or(Val::none(), |binding| binding.val.clone());
        self.state.frames.pop();
        self.range = range;
        self.reports.since(before)?;
        let returned = match annotated("return") {
            Some(ty) => self.annotated(&returned?, &ty)?,
            None => returned?,
        };
        Ok((returned, first))
    }

    /// A value as the annotation of a `ti.func` has it: scalars and structs are converted, and vectors and matrices have
    /// their shape, but keep the type of their elements.
    fn annotated(&mut self, val: &Val, ty: &Val) -> Res<Val> {
        let found = self.numeric_type(val);
        match (ty, found) {
            (Val::Known(Known::TensorType { shape, .. }), Some(found)) => {
                let wanted = tensor_type(*shape, ScalarType::F32).with_elem(elem(found));
                if found.shape() != wanted.shape() {
                    let message = format!("cannot use `{found}` as `{wanted}`: the shapes differ");
                    return self.fail(ErrorKind::Type, "E0203", message);
                }
                Ok(val.clone())
            }
            // A tuple is what it is, whatever the annotation says.
            (Val::Known(Known::StructType(_)), _) if val.items().is_none() => {
                self.coerce(val, ty.known())
            }
            (_, Some(Type::Scalar(_))) => match self.as_dtype(ty) {
                Some(elem) => Ok(Val::Value(self.convert(val, Type::Scalar(elem))?)),
                None => Ok(val.clone()),
            },
            _ => Ok(val.clone()),
        }
    }

    /// The method of a tensor, field or other object.
    fn method(&mut self, object: &Val, name: &str, args: &Args) -> Res<Val> {
        match object {
            Val::Known(Known::StructField(field)) => self.struct_field_method(field, name, args),
            Val::Known(Known::Field(_)) | Val::Array(_) => self.storage_method(object, name, args),
            Val::Texture(texture) => self.texture_method(texture, name, args),
            Val::List(list) => self.list_method(&list.clone(), name, args),
            Val::Dict(entries) => self.dict_method(&entries.clone(), name, args),
            Val::Known(known @ Known::Str(_)) => {
                let method = self.host.attr(known, name);
                match self.hosted(method)? {
                    Some(method) => self.call_python(&method, args),
                    None => self.fail(
                        ErrorKind::Compilation,
                        "E0302",
                        format!("a string has no attribute `{name}`"),
                    ),
                }
            }
            _ => match struct_type(object).and_then(|ty| ty.method(name)) {
                Some(func) => self.invoke(&func, Some(object.clone()), args.clone()),
                None if struct_type(object).is_some_and(|ty| ty.is_dict()) => {
                    self.named_dict_method(object, name, args)
                }
                None => self.tensor_method(object, name, args),
            },
        }
    }

    /// All items as one list.
    pub(crate) fn list(items: Vec<Val>) -> Val {
        Val::seq(items, SeqKind::List)
    }

    /// The argument of a builtin, or a mistake that names it.
    pub(crate) fn arg<'v>(
        &mut self,
        callee: &str,
        args: &'v Args,
        at: usize,
        name: &str,
    ) -> Res<&'v Val> {
        match args.get(at, name) {
            Some(val) => Ok(val),
            None => self.fail(
                ErrorKind::Type,
                "E0222",
                format!("`{callee}` needs an argument for `{name}`"),
            ),
        }
    }
}

/// The method of tensors that a builtin such as `Vector.dot` names.
pub(crate) fn unbound_method(name: &str) -> Option<&str> {
    let method = name
        .strip_prefix("Vector.")
        .or_else(|| name.strip_prefix("Matrix."))?;
    is_tensor_method(method).then_some(method)
}
