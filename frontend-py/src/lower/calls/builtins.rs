//! Builtins: what their rows in `intrinsics` do.

use std::rc::Rc;

use aerogel_base::{ErrorKind, ScalarType};
use aerogel_ir::{self as ir, Op, Type, Value};

use crate::ast::CompareOp;
use crate::fold;
use crate::host::Known;
use crate::infer::{self, UnaryRule};
use crate::intrinsics::{Maker, Rule, Special};
use crate::lower::calls::Args;
use crate::lower::calls::threads::operands;
use crate::lower::values::number::elem;
use crate::lower::values::structs::struct_type;
use crate::lower::values::{Iter, Place, SeqKind, Val};
use crate::lower::{Lower, Res};

/// How many arguments a builtin takes at most, and by which names; nothing if it looks at them itself.
fn accepted(rule: Rule) -> Option<(usize, &'static [&'static str])> {
    const ANY: usize = usize::MAX;
    Some(match rule {
        Rule::Unary(..) => (1, &["x"]),
        Rule::Binary(_) => (2, &["a", "b"]),
        Rule::Atomic(_) => (2, &["x", "y"]),
        Rule::Fold(_) => (ANY, &[]),
        Rule::Same => return None,
        Rule::Make(maker) => match maker {
            Maker::List => (2, &["arr", "dt", "rows", "cols"]),
            Maker::Constant(_) => (3, &["dt", "n", "m"]),
            Maker::Unit => (3, &["n", "i", "dt"]),
            Maker::Identity => (2, &["dt", "n"]),
            Maker::Diagonal => (2, &["dim", "val"]),
            Maker::Rows | Maker::Columns => (1, &["rows"]),
        },
        Rule::Special(special) => match special {
            Special::Rounding(_) => (2, &["x", "dtype"]),
            Special::Abs
            | Special::Filled(_)
            | Special::Prefetch
            | Special::Grouped
            | Special::StopGradient
            | Special::Frexp => (1, &["x"]),
            Special::Atan2 => (2, &["y", "x"]),
            Special::Operator(_) | Special::BitShr => (2, &["a", "b"]),
            Special::Select => (3, &["cond", "x1", "x2"]),
            Special::LogicalNot => (1, &["a"]),
            Special::Cast | Special::BitCast => (2, &["obj", "dtype"]),
            Special::DefaultInt => (2, &[]),
            Special::DefaultFloat | Special::Bool => (1, &[]),
            Special::GetAddr => (2, &["f", "indices"]),
            Special::CompareAndSwap => (3, &["x", "compare", "value"]),
            Special::StaticAssert => (2, &["cond", "msg"]),
            Special::Range => (3, &[]),
            Special::NdRange => (ANY, &["axes"]),
            Special::Zip => (ANY, &[]),
            Special::Enumerate | Special::Reduce(_) => (2, &["x", "start"]),
            Special::Len | Special::Reversed | Special::Any | Special::All => (1, &["x"]),
            Special::List | Special::Tuple => (1, &[]),
            Special::IsInstance => (2, &[]),
            Special::MeshPatch => (0, &[]),
            Special::Threads(op, _) => {
                let names = operands(op);
                (names.len(), names)
            }
            Special::SharedArray => (2, &["shape", "dtype"]),
            Special::Random => (1, &["dtype"]),
            Special::RandomNormal => (1, &["dt"]),
            Special::RescaleIndex => (3, &["a", "b", "I"]),
            Special::Struct
            | Special::Static
            | Special::StaticPrint
            | Special::LoopConfig
            | Special::Print
            | Special::Node(_) => return None,
        },
    })
}

impl Lower<'_, '_> {
    /// Checks that there are not too many arguments, and no unknown keywords.
    pub(crate) fn expect_arguments(
        &mut self,
        name: &str,
        accepted: Option<(usize, &[&str])>,
        args: &Args,
    ) -> Res<()> {
        let Some((most, names)) = accepted else {
            return Ok(());
        };
        let found = args.positional.len();
        if found > most {
            let arguments = if most == 1 { "argument" } else { "arguments" };
            let message = format!("`{name}` takes {most} {arguments}, but {found} are given");
            return self.fail(ErrorKind::Type, "E0222", message);
        }
        let mut given = args.keywords.iter().map(|(keyword, _)| keyword.as_str());
        if let Some(other) = given.find(|keyword| !names.contains(keyword)) {
            let message = format!("`{name}` has no parameter `{other}`");
            return self.fail(ErrorKind::Type, "E0222", message);
        }
        Ok(())
    }

    pub(crate) fn builtin(&mut self, name: &str, rule: Rule, args: &Args) -> Res<Val> {
        // What is wrong with one of them is told first.
        let result = self.by_rule(name, rule, args)?;
        self.expect_arguments(name, accepted(rule), args)?;
        Ok(result)
    }

    fn by_rule(&mut self, name: &str, rule: Rule, args: &Args) -> Res<Val> {
        match rule {
            Rule::Unary(op, rule, fold) => {
                let x = self.arg(name, args, 0, "x")?.clone();
                self.unary_function(name, op, rule, fold, &x)
            }
            Rule::Fold(op) => {
                let vals = match &args.positional[..] {
                    // It goes by components, so one operand is its own maximum; lists are gone through.
                    [Val::Known(known)] if known.is_number() => args.positional.clone(),
                    [one] if one.items().is_none() && self.numeric_type(one).is_some() => {
                        vec![Val::Value(self.load(one)?)]
                    }
                    [one] => self.iterate_static(one)?,
                    all => all.to_vec(),
                };
                let (first, rest) = match vals.split_first() {
                    Some(split) => split,
                    None => {
                        return self.fail(
                            ErrorKind::Type,
                            "E0222",
                            format!("`{name}` needs an argument"),
                        );
                    }
                };
                rest.iter().try_fold(first.clone(), |so_far, val| {
                    self.extremum(op, name, &so_far, val)
                })
            }
            Rule::Binary(op) => {
                let (a, b) = (
                    self.arg(name, args, 0, "a")?.clone(),
                    self.arg(name, args, 1, "b")?.clone(),
                );
                let (a, b) = self.promoted(&a, &b, name)?;
                Ok(Val::Value(self.builder().binary(op, a, b)))
            }
            Rule::Atomic(op) => {
                let place = self.changed_place(name, args)?;
                let val = self.arg(name, args, 1, "y")?.clone();
                if let Some(ty) = self.numeric_type(&Val::Place(place.clone())) {
                    self.warn_of_loss(&format!("`{name}`"), ty, &val);
                }
                Ok(Val::Value(self.atomic(op, &place, &val)?))
            }
            Rule::Same => Ok(args.positional.first().cloned().unwrap_or(Val::none())),
            Rule::Make(maker) => self.maker(name, maker, args),
            Rule::Special(special) => self.special(name, special, args),
        }
    }

    /// The storage that an atomic function's first argument names.
    fn changed_place(&mut self, name: &str, args: &Args) -> Res<Place> {
        let target = self.arg(name, args, 0, "x")?.clone();
        if let Val::Place(place) = target {
            return Ok(place);
        }
        let what = self.describe(&target);
        self.fail_noted(
            ErrorKind::Syntax,
            "E0215",
            format!("`{name}` modifies a variable or an element in place, and {what} is neither"),
            "pass a variable or an element such as `x[i]`",
        )
    }

    pub(crate) fn unary_function(
        &mut self,
        name: &str,
        op: ir::UnaryOp,
        rule: UnaryRule,
        fold: Option<fn(f64) -> f64>,
        x: &Val,
    ) -> Res<Val> {
        if let (Some(fold), Val::Known(known)) = (fold, x)
            && let Some(number) = known.as_float()
        {
            let result = fold(number);
            if result.is_finite() {
                return Ok(Val::Known(Known::Float(result)));
            }
        }
        let ty = self.expect_numeric(x)?;
        match infer::unary(name, rule, elem(ty), self.defaults()) {
            Ok(to) => {
                let x = self.operand(x, to, ty)?;
                Ok(Val::Value(self.builder().unary(op, x)))
            }
            Err(message) => self.fail_noted(
                ErrorKind::Type,
                "E0206",
                message,
                "convert it: `ti.cast(x, ti.f32)` or `ti.cast(x, ti.i32)`",
            ),
        }
    }

    /// `min` or `max` of two numbers.
    pub(crate) fn extremum(&mut self, op: ir::BinaryOp, name: &str, a: &Val, b: &Val) -> Res<Val> {
        if let (Val::Known(x), Val::Known(y)) = (a, b)
            && x.is_number()
            && y.is_number()
        {
            let compare = if op == ir::BinaryOp::Min {
                CompareOp::Lt
            } else {
                CompareOp::Gt
            };
            let second = fold::compare(self.host, compare, y, x);
            let chosen = if self.hosted(second)? { y } else { x };
            // The result has the promoted type, whichever it is.
            let is_float = [x, y].iter().any(|k| matches!(k, Known::Float(_)));
            return Ok(Val::Known(match chosen.as_float() {
                Some(value) if is_float => Known::Float(value),
                _ => chosen.clone(),
            }));
        }
        let (a, b) = self.promoted(a, b, name)?;
        Ok(Val::Value(self.builder().binary(op, a, b)))
    }

    fn special(&mut self, name: &str, special: Special, args: &Args) -> Res<Val> {
        let first = args.get(0, "x");
        match special {
            Special::Rounding(op) => self.rounded(name, op, args),
            Special::Abs => self.abs(name, args),
            Special::Atan2 => self.atan2(name, args),
            Special::Operator(op) => {
                let (a, b) = (
                    self.arg(name, args, 0, "a")?.clone(),
                    self.arg(name, args, 1, "b")?.clone(),
                );
                self.binary(op, &a, &b)
            }
            Special::BitShr => self.bit_shr(name, args),
            Special::Select => {
                let cond = self.arg(name, args, 0, "cond")?.clone();
                let (a, b) = (
                    self.arg(name, args, 1, "x1")?.clone(),
                    self.arg(name, args, 2, "x2")?.clone(),
                );
                self.select(&cond, &a, &b)
            }
            Special::LogicalNot => {
                let x = self.arg(name, args, 0, "a")?.clone();
                self.unary(crate::ast::UnaryOp::Not, x)
            }
            Special::Cast => {
                let x = self.arg(name, args, 0, "obj")?.clone();
                let dtype = self.arg(name, args, 1, "dtype")?.clone();
                let ty = self.dtype(&dtype)?;
                self.cast(&x, ty)
            }
            Special::BitCast => self.bit_cast(name, args),
            Special::DefaultInt => self.python_cast(self.config.default_ip, args),
            Special::DefaultFloat => self.python_cast(self.config.default_fp, args),
            Special::Bool => self.python_cast(ScalarType::U1, args),
            Special::Filled(value) => {
                let x = self.arg(name, args, 0, "x")?.clone();
                let ty = self.expect_numeric(&x)?;
                Ok(Val::Value(self.convert(&Val::int(value), ty)?))
            }
            Special::GetAddr => self.get_addr(args),
            Special::Prefetch => {
                if let Place::Ref { place, .. } = self.changed_place(name, args)? {
                    self.effect(Op::Prefetch { place });
                }
                Ok(Val::none())
            }
            Special::CompareAndSwap => {
                let place = self.changed_place(name, args)?;
                let expected = self.arg(name, args, 1, "compare")?.clone();
                let value = self.arg(name, args, 2, "value")?.clone();
                Ok(Val::Value(
                    self.compare_and_swap(&place, &expected, &value)?,
                ))
            }
            Special::Struct => self.struct_call(args),
            Special::Static => match &args.positional[..] {
                [one] => Ok(one.clone()),
                all => Ok(Val::seq(all.to_vec(), SeqKind::Tuple)),
            },
            Special::StaticPrint if self.probing > 0 => Ok(Val::none()),
            Special::StaticPrint => self.static_print(args),
            Special::IsInstance => self.is_instance(args),
            Special::StaticAssert => self.static_assert(name, args),
            Special::Range => self.range(args),
            Special::NdRange => self.ndrange(args),
            Special::Grouped => {
                let over = self.arg(name, args, 0, "x")?.clone();
                Ok(Val::Iter(Rc::new(Iter::Grouped(over))))
            }
            Special::Zip => self.zip(args),
            Special::Enumerate => self.enumerate(args),
            Special::Reversed => {
                let mut items = self.iterate_static(first.unwrap_or(&Val::none()))?;
                items.reverse();
                Ok(Self::list(items))
            }
            Special::Len => self.length(name, args),
            Special::Reduce(op) => self.reduced_by(name, op, args),
            Special::Any => self.any_or_all(name, true, args),
            Special::All => self.any_or_all(name, false, args),
            Special::List => self.sequence(SeqKind::List, first),
            Special::Tuple => self.sequence(SeqKind::Tuple, first),
            Special::Frexp => self.frexp(args),
            Special::LoopConfig => self.loop_config(args),
            Special::MeshPatch => self.mesh_patch(),
            Special::Threads(op, of) => self.threads(op, of, name, args),
            Special::SharedArray => self.shared_array(name, args),
            Special::Node(function) => self.node_function(name, function, args),
            Special::RescaleIndex => self.rescale_index(name, args),
            Special::StopGradient => self.stop_grad(args),
            Special::Print => {
                unreachable!("a call of `print` does not evaluate its arguments first")
            }
            Special::Random => {
                let ty = self.dtype_of_random(args.get(0, "dtype"))?;
                Ok(Val::Value(self.value(Op::Random {}, ty.into())))
            }
            Special::RandomNormal => {
                let ty = self.dtype_of_random(args.get(0, "dt"))?;
                self.random_normal(ty)
            }
        }
    }

    fn rounded(&mut self, name: &str, op: ir::UnaryOp, args: &Args) -> Res<Val> {
        let x = self.arg(name, args, 0, "x")?.clone();
        if let (Val::Known(known), None) = (&x, args.get(1, "dtype"))
            && name == "builtins.round"
            && !matches!(known, Known::Tensor(_) | Known::List(_) | Known::Tuple(_))
        {
            return self.call_python(&Known::Builtin(name.into()), args);
        }
        let name = name.trim_start_matches("builtins.");
        let rounded = self.unary_function(name, op, UnaryRule::FloatOnly, None, &x)?;
        match args.get(1, "dtype").cloned() {
            Some(dtype) => {
                let ty = self.dtype(&dtype)?;
                self.cast(&rounded, ty)
            }
            None => Ok(rounded),
        }
    }

    fn abs(&mut self, name: &str, args: &Args) -> Res<Val> {
        let x = self.arg(name, args, 0, "x")?.clone();
        match &x {
            Val::Known(known @ (Known::Int(_) | Known::Bool(_))) => {
                let value = known.as_int().unwrap_or_default();
                Ok(Val::int(value.abs()))
            }
            Val::Known(Known::Float(value)) => Ok(Val::Known(Known::Float(value.abs()))),
            _ => self.unary_function(name, ir::UnaryOp::Abs, UnaryRule::Keep, None, &x),
        }
    }

    fn atan2(&mut self, name: &str, args: &Args) -> Res<Val> {
        let (y, x) = (
            self.arg(name, args, 0, "y")?.clone(),
            self.arg(name, args, 1, "x")?.clone(),
        );
        if let (Val::Known(a), Val::Known(b)) = (&y, &x)
            && let (Some(a), Some(b)) = (a.as_float(), b.as_float())
        {
            return Ok(Val::Known(Known::Float(a.atan2(b))));
        }
        let (yt, xt) = (self.expect_numeric(&y)?, self.expect_numeric(&x)?);
        let to = infer::atan2(elem(yt), elem(xt));
        let shape = if yt.is_tensor() { yt } else { xt };
        let (y, x) = (self.operand(&y, to, shape)?, self.operand(&x, to, shape)?);
        Ok(Val::Value(self.builder().binary(ir::BinaryOp::Atan2, y, x)))
    }

    fn bit_shr(&mut self, name: &str, args: &Args) -> Res<Val> {
        let (a, b) = (
            self.arg(name, args, 0, "a")?.clone(),
            self.arg(name, args, 1, "b")?.clone(),
        );
        let (at, bt) = (self.expect_numeric(&a)?, self.expect_numeric(&b)?);
        if elem(at).is_float() || elem(bt).is_float() {
            return self.fail(
                ErrorKind::Type,
                "E0206",
                format!("`{name}` needs integers, not `{at}` and `{bt}`"),
            );
        }
        let (a, b) = (self.load(&a)?, self.operand(&b, elem(at), at)?);
        Ok(Val::Value(self.builder().binary(ir::BinaryOp::UShr, a, b)))
    }

    fn bit_cast(&mut self, name: &str, args: &Args) -> Res<Val> {
        let x = self.arg(name, args, 0, "obj")?.clone();
        let dtype = self.arg(name, args, 1, "dtype")?.clone();
        let to = self.dtype(&dtype)?;
        let x = self.load(&x)?;
        let from = self.ty(x);
        if elem(from).bits() != to.bits() {
            return self.fail(
                ErrorKind::Type,
                "E0223",
                format!("`{from}` and `{to}` have different widths"),
            );
        }
        Ok(Val::Value(
            self.value(Op::Bitcast { x }, from.with_elem(to)),
        ))
    }

    fn static_print(&mut self, args: &Args) -> Res<Val> {
        // What is computed when the kernel runs shows its type.
        let mut shown = args.clone();
        for val in &mut shown.positional {
            if val.known().is_none() && !matches!(val, Val::Poison(_)) {
                *val = Val::Known(Known::str(&self.describe(val).replace('`', "")));
            }
        }
        self.call_python(&Known::Builtin("print".into()), &shown)?;
        Ok(Val::none())
    }

    fn static_assert(&mut self, name: &str, args: &Args) -> Res<Val> {
        let cond = self.arg(name, args, 0, "cond")?.clone();
        let Val::Known(known) = &cond else {
            return self.fail(
                ErrorKind::Type,
                "E0210",
                "the condition of `ti.static_assert` is not known while compiling",
            );
        };
        let truth = fold::truth(self.host, known);
        if self.hosted(truth)? {
            return Ok(Val::none());
        }
        let message = match args.get(1, "msg") {
            Some(Val::Known(known)) => {
                let text = fold::format(self.host, known, "");
                self.hosted(text)?
            }
            _ => "static assertion failed".into(),
        };
        self.fail(ErrorKind::Compilation, "E0127", message)
    }

    fn sequence(&mut self, kind: SeqKind, of: Option<&Val>) -> Res<Val> {
        let items = match of {
            Some(val) => self.iterate_static(val)?,
            None => Vec::new(),
        };
        Ok(Val::seq(items, kind))
    }

    fn dtype_of_random(&mut self, given: Option<&Val>) -> Res<ScalarType> {
        match given.cloned() {
            Some(dtype) => self.dtype(&dtype),
            None => Ok(self.config.default_fp),
        }
    }

    /// A random number of the standard normal distribution, by the method of Box and Muller.
    fn random_normal(&mut self, ty: ScalarType) -> Res<Val> {
        if !ty.is_float() {
            return self.fail(
                ErrorKind::Type,
                "E0206",
                format!("`randn` makes floats, not `{ty}`"),
            );
        }
        let number = |lower: &mut Self, value: f64| {
            lower
                .builder()
                .constant(aerogel_base::Scalar::float(ty, value))
        };
        let (one, minus_two, turn) = (
            number(self, 1.0),
            number(self, -2.0),
            number(self, std::f64::consts::TAU),
        );
        let u = self.value(Op::Random {}, ty.into());
        let v = self.value(Op::Random {}, ty.into());
        let mut builder = self.builder();
        // In (0, 1], where the logarithm is finite.
        let u = builder.binary(ir::BinaryOp::Sub, one, u);
        let log = builder.unary(ir::UnaryOp::Log, u);
        let square = builder.binary(ir::BinaryOp::Mul, minus_two, log);
        let radius = builder.unary(ir::UnaryOp::Sqrt, square);
        let angle = builder.binary(ir::BinaryOp::Mul, turn, v);
        let cosine = builder.unary(ir::UnaryOp::Cos, angle);
        Ok(Val::Value(builder.binary(
            ir::BinaryOp::Mul,
            radius,
            cosine,
        )))
    }

    /// `isinstance`: what is computed when the kernel runs is a vector, a matrix, or of no class.
    fn is_instance(&mut self, args: &Args) -> Res<Val> {
        let (Some(x), Some(Val::Known(classes))) = (args.get(0, "object"), args.get(1, "classes"))
        else {
            return self.call_python(&Known::Builtin("isinstance".into()), args);
        };
        if x.known().is_some() {
            return self.call_python(&Known::Builtin("isinstance".into()), args);
        }
        let ty = self.numeric_type(x);
        let of = struct_type(x).and_then(|ty| ty.class);
        let bases = of.map_or(Ok(Vec::new()), |class| self.bases(class))?;
        let is = |class: &Known| match class {
            Known::Object(handle) => bases.contains(handle),
            Known::Builtin(name) if &**name == "Matrix" => ty.is_some_and(Type::is_tensor),
            Known::Builtin(name) if &**name == "Vector" => matches!(ty, Some(Type::Vec(..))),
            _ => false,
        };
        let truth = classes
            .items()
            .map_or_else(|| is(classes), |items| items.iter().any(is));
        Ok(Val::Known(Known::Bool(truth)))
    }

    /// The elements of a value combined pairwise from left to right.
    pub(crate) fn reduce(&mut self, op: ir::BinaryOp, value: Value) -> Value {
        let elems = self.split(value);
        let mut rest = elems.into_iter();
        let first = rest.next().unwrap_or(value);
        rest.fold(first, |so_far, elem| {
            self.builder().binary(op, so_far, elem)
        })
    }
}
