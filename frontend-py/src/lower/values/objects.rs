//! Objects that a kernel makes of the user's classes, and the operators that classes define.
//!
//! ```text
//! r = Ray(origin, direction)     `__init__` is lowered here; what it assigns to `self` are the members of a struct
//! r + s, r[k], -r                `Ray.__add__(r, s)`, `Ray.__getitem__(r, k)`, `Ray.__neg__(r)`
//! r.end                          `Ray.end(r)` if that is a `@property`
//! ```
//! Such an object is a value, as a struct is: assigning it to another name copies it.

use std::rc::Rc;

use aerogel_base::ErrorKind;

use crate::ast::{BinaryOp, CompareOp, Expr, ExprKind, Keyword, UnaryOp, n_assignments};
use crate::fold;
use crate::host::{ClassRef, FuncRef, Handle, Init, Known, StructMember, StructType};
use crate::lower::calls::Args;
use crate::lower::values::structs::struct_type;
use crate::lower::values::{Val, index};
use crate::lower::{Control, Lower, Res};

impl<'a> Lower<'a, '_> {
    /// The class whose object a call makes here. From arguments that Python knows, Python makes it.
    pub(crate) fn class_to_make(&mut self, callee: &Known, args: &Args) -> Res<Option<ClassRef>> {
        let keywords = args.keywords.iter().map(|(_, val)| val);
        let mut vals = args.positional.iter().chain(keywords);
        if vals.all(|val| val.known().is_some()) {
            return Ok(None);
        }
        let class = self.host.class(callee);
        self.hosted(class)
    }

    /// The object of a call whose name is assigned to again, so that its members are variables whatever they begin with.
    pub(crate) fn object_made_again(
        &mut self,
        targets: &[Expr<'a>],
        value: &Expr<'a>,
    ) -> Res<Option<Val>> {
        let (
            [
                Expr {
                    kind: ExprKind::Name(name),
                    ..
                },
            ],
            ExprKind::Call {
                func,
                args,
                keywords,
            },
        ) = (targets, value.kind)
        else {
            return Ok(None);
        };
        if n_assignments(self.frame().body, name) < 2 || self.scopes().get(name).is_some() {
            return Ok(None);
        }
        let Some(Val::Known(callee @ Known::Object(_))) = self.silently(|lower| lower.expr(func))
        else {
            return Ok(None);
        };
        let class = self.host.class(&callee);
        let Some(class) = self.hosted(class)? else {
            return Ok(None);
        };
        let outer = std::mem::replace(&mut self.range, value.range);
        // What only Python can make stays an object of Python's.
        let made = self.silently(|lower| {
            let args = lower.evaluated(args, keywords)?;
            lower.make_object(&class, args)
        });
        self.range = outer;
        Ok(made)
    }

    /// An object with the members that `__init__`, or the fields of a dataclass, give it.
    pub(crate) fn make_object(&mut self, class: &ClassRef, args: Args) -> Res<Val> {
        let ty = |members| {
            Rc::new(StructType {
                handle: None,
                class: Some(class.handle),
                name: class.name.clone(),
                members,
                methods: class.methods.clone(),
                properties: class.properties.clone(),
            })
        };
        let init = match &class.init {
            Init::Function(init) => init,
            Init::Fields(fields) => {
                let members = fields.iter().map(|(name, _)| untyped(name)).collect();
                let vals = self.fields(class, fields, args)?;
                return Ok(Val::Struct(ty(members), vals.into()));
            }
        };
        let source = self.host.source(init);
        let source = self.hosted(source)?;
        let parsed = self.parse(&source)?;
        let members: Rc<[Val]> = Rc::from([]);
        let depth = self.depth_of_control();
        self.state.making.push((members.clone(), depth));
        let object = Val::Struct(ty(Vec::new()), members);
        let made = self
            .given(&parsed, &source, Some(object), args)
            .and_then(|given| self.inlined(&parsed, &source, true, given));
        self.state.making.pop();
        Ok(made?.1)
    }

    /// The values of the fields of a dataclass, in order.
    fn fields(
        &mut self,
        class: &ClassRef,
        fields: &[(String, Option<Known>)],
        args: Args,
    ) -> Res<Vec<Val>> {
        let n = args.positional.len();
        if n > fields.len() {
            let message = format!(
                "`{}` has {} members, but {n} values are given",
                class.name,
                fields.len()
            );
            return self.fail(ErrorKind::Type, "E0222", message);
        }
        for (name, _) in &args.keywords {
            let message = match fields.iter().position(|(field, _)| field == name) {
                None => format!("`{}` has no member `{name}`", class.name),
                Some(k) if k < n => format!("the member `{name}` is given twice"),
                Some(_) => continue,
            };
            return self.fail(ErrorKind::Type, "E0222", message);
        }
        let mut vals = Vec::new();
        for (k, (name, default)) in fields.iter().enumerate() {
            let default = default.clone().map(Val::Known);
            let Some(val) = args.get(k, name).cloned().or(default) else {
                let message = format!("`{}` needs a value for `{name}`", class.name);
                return self.fail(ErrorKind::Type, "E0222", message);
            };
            vals.push(self.variable(&val)?);
        }
        Ok(vals)
    }

    /// How many branches and loops lie around this place, but for those that are unrolled.
    fn depth_of_control(&self) -> usize {
        let is_real = |control: &&Control| **control != Control::Static;
        self.state.control.iter().filter(is_real).count()
    }

    /// `self.name = val` in `__init__`, where the object has no such member; whether this is one.
    pub(crate) fn new_member(&mut self, target: &Expr<'a>, val: &Val) -> Res<bool> {
        let ExprKind::Attribute { value, attr } = target.kind else {
            return Ok(false);
        };
        let (ExprKind::Name(name), Some((made, depth))) =
            (value.kind, self.state.making.last().cloned())
        else {
            return Ok(false);
        };
        let binding = self.scopes().get(name).map(|binding| binding.val.clone());
        let Some(Val::Struct(ty, members)) = binding else {
            return Ok(false);
        };
        if !Rc::ptr_eq(&members, &made) || ty.position(attr).is_some() {
            return Ok(false);
        }
        if self.depth_of_control() != depth {
            return self.fail_noted(
                ErrorKind::Syntax,
                "E0237",
                format!("the member `{attr}` is first assigned inside an `if` or a loop"),
                format!("assign `{name}.{attr}` at the beginning of `__init__`"),
            );
        }
        let grown: Rc<[Val]> = {
            let mut grown = members.to_vec();
            grown.push(self.variable(val)?);
            grown.into()
        };
        let mut ty = (*ty).clone();
        ty.members.push(untyped(attr));
        let object = Val::Struct(Rc::new(ty), grown.clone());
        // All functions that have the object at hand see its new member.
        for frame in &mut self.state.frames {
            frame.scopes.replace(|val| match val {
                Val::Struct(_, members) if Rc::ptr_eq(members, &made) => Some(object.clone()),
                _ => None,
            });
        }
        if let Some(making) = self.state.making.last_mut() {
            making.0 = grown;
        }
        Ok(true)
    }

    /// A class and its base classes, in Python's method resolution order.
    pub(crate) fn bases(&mut self, class: Handle) -> Res<Vec<Handle>> {
        let order = self.host.attr(&Known::Object(class), "__mro__");
        let order = self.hosted(order)?.unwrap_or(Known::None);
        let classes = order.items().unwrap_or_default().iter();
        Ok(classes
            .filter_map(|class| match class {
                Known::Object(handle) => Some(*handle),
                _ => None,
            })
            .collect())
    }

    /// `super().name(...)` in a method of an object that a kernel has made.
    pub(crate) fn super_method(
        &mut self,
        func: &Expr<'a>,
        args: &[Expr<'a>],
        keywords: &[Keyword<'a>],
    ) -> Res<Option<Val>> {
        let ExprKind::Attribute { value, attr } = func.kind else {
            return Ok(None);
        };
        let ExprKind::Call {
            func:
                Expr {
                    kind: ExprKind::Name("super"),
                    ..
                },
            args: [],
            keywords: [],
        } = value.kind
        else {
            return Ok(None);
        };
        let object = self.scopes().first().cloned();
        let Some(class) = object
            .as_ref()
            .and_then(struct_type)
            .and_then(|ty| ty.class)
        else {
            return Ok(None);
        };
        let scope = self.frame().scope;
        let here = self.host.lookup(scope, "__class__");
        let Some(Known::Object(here)) = self.hosted(here)? else {
            return Ok(None);
        };
        let bases = self.bases(class)?.into_iter();
        for base in bases.skip_while(|base| *base != here).skip(1) {
            let base = Known::Object(base);
            let own = self.host.attr(&base, "__dict__");
            let Some(own) = self.hosted(own)? else {
                continue;
            };
            let found = fold::compare(self.host, CompareOp::In, &Known::str(attr), &own);
            if !self.hosted(found)? {
                continue;
            }
            let method = self.host.attr(&base, attr);
            let func = match self.hosted(method)? {
                Some(Known::Func(func)) => Some(func),
                Some(method) => self.host.function(&method),
                None => None,
            };
            let Some(func) = func else {
                // What is Python's own, as `object.__init__`, does nothing here.
                return Ok(Some(Val::none()));
            };
            let args = self.evaluated(args, keywords)?;
            return self.invoke(&func, object, args).map(Some);
        }
        Ok(None)
    }

    /// Whether a value is the object whose `__init__` is being lowered.
    pub(crate) fn is_being_made(&self, val: &Val) -> bool {
        match (val, self.state.making.last()) {
            (Val::Struct(_, members), Some((made, _))) => Rc::ptr_eq(members, made),
            _ => false,
        }
    }

    /// What a value's class has for an operator, and the value as it is passed. What Python has made needs `@ti.func`: without
    /// it Python computes the operator.
    pub(crate) fn operator_of(
        &mut self,
        val: &Val,
        name: &str,
    ) -> Res<Option<(Rc<FuncRef>, Option<Val>)>> {
        if let Some(ty) = struct_type(val) {
            return Ok(ty.method(name).map(|func| (func, Some(val.clone()))));
        }
        let Val::Known(known @ Known::Object(_)) = val else {
            return Ok(None);
        };
        let found = self.host.attr(known, name);
        Ok(match self.hosted(found)? {
            Some(Known::Func(func)) => {
                let receiver = func.receiver.clone().map(Val::Known);
                receiver.is_some().then_some((func, receiver))
            }
            _ => None,
        })
    }

    /// `lhs.name(rhs)`, or else `rhs.reflected(lhs)`, if one of the classes has that.
    fn operated(
        &mut self,
        (lhs, name): (&Val, &str),
        (rhs, reflected): (&Val, &str),
    ) -> Res<Option<Val>> {
        for (val, name, other) in [(lhs, name, rhs), (rhs, reflected, lhs)] {
            if let Some((func, receiver)) = self.operator_of(val, name)? {
                let args = Args::positional(vec![other.clone()]);
                return self.invoke(&func, receiver, args).map(Some);
            }
        }
        Ok(None)
    }

    /// `lhs op rhs` by a method of a class.
    pub(crate) fn binary_method(&mut self, op: BinaryOp, lhs: &Val, rhs: &Val) -> Res<Option<Val>> {
        let name = operator_name(op);
        self.operated(
            (lhs, &format!("__{name}__")),
            (rhs, &format!("__r{name}__")),
        )
    }

    /// `lhs op rhs` by a method of a class, for comparisons.
    pub(crate) fn compare_method(
        &mut self,
        op: CompareOp,
        lhs: &Val,
        rhs: &Val,
    ) -> Res<Option<Val>> {
        let (name, reflected) = match op {
            CompareOp::Eq => ("__eq__", "__eq__"),
            CompareOp::Ne => ("__ne__", "__ne__"),
            CompareOp::Lt => ("__lt__", "__gt__"),
            CompareOp::Le => ("__le__", "__ge__"),
            CompareOp::Gt => ("__gt__", "__lt__"),
            CompareOp::Ge => ("__ge__", "__le__"),
            CompareOp::Is | CompareOp::IsNot | CompareOp::In | CompareOp::NotIn => return Ok(None),
        };
        self.operated((lhs, name), (rhs, reflected))
    }

    /// `op val` by a method of a class.
    pub(crate) fn unary_method(&mut self, op: UnaryOp, val: &Val) -> Res<Option<Val>> {
        let name = match op {
            UnaryOp::Invert => "__invert__",
            UnaryOp::Plus => "__pos__",
            UnaryOp::Minus => "__neg__",
            UnaryOp::Not => return Ok(None),
        };
        match self.operator_of(val, name)? {
            Some((func, receiver)) => self.invoke(&func, receiver, Args::default()).map(Some),
            None => Ok(None),
        }
    }

    /// `of[index] = val` by a method of a class; whether there is one.
    pub(crate) fn set_item(&mut self, of: &Val, index: &Expr<'a>, val: &Val) -> Res<bool> {
        let Some((func, receiver)) = self.operator_of(of, "__setitem__")? else {
            return Ok(false);
        };
        let is_tuple = matches!(index.kind, ExprKind::Tuple(_));
        let indices = match index.kind {
            ExprKind::Tuple(items) => self.exprs(items)?,
            _ => vec![self.expr(index)?],
        };
        let args = Args::positional(vec![index::key_of(indices, is_tuple), val.clone()]);
        self.invoke(&func, receiver, args)?;
        Ok(true)
    }

    /// What `place op= val` makes of an object, by a method of its class.
    pub(crate) fn changed_object(
        &mut self,
        place: &Val,
        op: BinaryOp,
        val: &Val,
    ) -> Res<Option<Val>> {
        let name = format!("__i{}__", operator_name(op));
        if let Some((func, receiver)) = self.operator_of(place, &name)? {
            let args = Args::positional(vec![val.clone()]);
            return self.invoke(&func, receiver, args).map(Some);
        }
        self.binary_method(op, place, val)
    }

    /// What the class of an object has under a name, besides its methods.
    pub(crate) fn class_attribute(&mut self, ty: &StructType, attr: &str) -> Res<Option<Val>> {
        let Some(class) = ty.class else {
            return Ok(None);
        };
        let found = self.host.attr(&Known::Object(class), attr);
        Ok(self.hosted(found)?.map(Val::Known))
    }

    /// The names and values of a dictionary, as `f(**d)` passes them.
    pub(crate) fn entries_by_name(&mut self, val: &Val) -> Res<Vec<(String, Val)>> {
        let pairs = self.entries(val)?;
        let mut named = Vec::new();
        for (key, val) in pairs {
            let Val::Known(Known::Str(name)) = &key else {
                let what = self.describe(&key);
                let message = format!("the keys of a dictionary after `**` are names, not {what}");
                return self.fail(ErrorKind::Type, "E0124", message);
            };
            named.push((name.to_string(), val));
        }
        Ok(named)
    }
}

fn untyped(name: &str) -> StructMember {
    StructMember {
        name: name.to_owned(),
        ty: None,
    }
}

/// What Python calls the method of an operator, without underscores.
fn operator_name(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "add",
        BinaryOp::Sub => "sub",
        BinaryOp::Mul => "mul",
        BinaryOp::MatMul => "matmul",
        BinaryOp::Div => "truediv",
        BinaryOp::FloorDiv => "floordiv",
        BinaryOp::Mod => "mod",
        BinaryOp::Pow => "pow",
        BinaryOp::Shl => "lshift",
        BinaryOp::Shr => "rshift",
        BinaryOp::BitAnd => "and",
        BinaryOp::BitOr => "or",
        BinaryOp::BitXor => "xor",
    }
}
