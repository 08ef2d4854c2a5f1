//! Vectors and matrices made from their elements.

use aerogel_base::{ErrorKind, ScalarType};
use aerogel_ir::Type;

use crate::host::{Known, TensorShape};
use crate::intrinsics::Maker;
use crate::lower::calls::Args;
use crate::lower::values::Val;
use crate::lower::values::number::elem;
use crate::lower::{Lower, Res};

/// Matrices are for small things; what is larger is a field.
const MAX_EXTENT: i128 = 256;

impl Lower<'_, '_> {
    pub(crate) fn maker(&mut self, name: &str, maker: Maker, args: &Args) -> Res<Val> {
        match maker {
            Maker::List => self.tensor_call(name, args),
            Maker::Constant(value) => {
                let dtype = self.arg(name, args, 0, "dt")?.clone();
                let elem = self.dtype(&dtype)?;
                let mut extents = Vec::new();
                for val in args
                    .positional
                    .iter()
                    .skip(1)
                    .chain(args.keyword("n"))
                    .chain(args.keyword("m"))
                    .cloned()
                    .collect::<Vec<_>>()
                {
                    extents.push(self.extent(&val)?);
                }
                let ty = match extents[..] {
                    [n] => Type::Vec(n, elem),
                    [n, m] => Type::Mat(n, m, elem),
                    _ => {
                        return self.fail(
                            ErrorKind::Type,
                            "E0222",
                            format!("`{name}` takes a dtype and one or two sizes"),
                        );
                    }
                };
                Ok(Val::Value(self.convert(&Val::int(value), ty)?))
            }
            Maker::Unit => {
                let n = self.arg(name, args, 0, "n")?.clone();
                let at = self.arg(name, args, 1, "i")?.clone();
                let (n, at) = (
                    i128::from(self.extent(&n)?),
                    self.static_int(&at, "an index")?,
                );
                if !(0..n).contains(&at) {
                    let message = format!("index {at} is out of range for a vector of {n}");
                    return self.fail(ErrorKind::Index, "E0403", message);
                }
                let elem = match args.get(2, "dt").cloned() {
                    Some(dtype) => self.dtype(&dtype)?,
                    None => self.config.default_ip,
                };
                let elems: Vec<Val> = (0..n).map(|k| Val::int(i128::from(k == at))).collect();
                Ok(Val::Value(self.make(&elems, Type::Vec(n as u32, elem))?))
            }
            Maker::Identity => {
                let dtype = self.arg(name, args, 0, "dt")?.clone();
                let elem = self.dtype(&dtype)?;
                let n = self.arg(name, args, 1, "n")?.clone();
                let n = i128::from(self.extent(&n)?);
                let elems: Vec<Val> = (0..n * n)
                    .map(|k| Val::int(i128::from(k / n == k % n)))
                    .collect();
                Ok(Val::Value(
                    self.make(&elems, Type::Mat(n as u32, n as u32, elem))?,
                ))
            }
            Maker::Diagonal => {
                let n = self.arg(name, args, 0, "dim")?.clone();
                let n = i128::from(self.extent(&n)?);
                let val = self.arg(name, args, 1, "val")?.clone();
                let ty = self.expect_numeric(&val)?;
                let elems: Vec<Val> = (0..n * n)
                    .map(|k| {
                        if k / n == k % n {
                            val.clone()
                        } else {
                            Val::int(0)
                        }
                    })
                    .collect();
                Ok(Val::Value(
                    self.make(&elems, Type::Mat(n as u32, n as u32, elem(ty)))?,
                ))
            }
            Maker::Rows | Maker::Columns => {
                let rows = self.arg(name, args, 0, "rows")?.clone();
                let value = self.load(&rows)?;
                if !matches!(self.ty(value), Type::Mat(..)) {
                    let found = self.ty(value);
                    let message = format!("`{name}` needs a list of vectors, not `{found}`");
                    return self.fail(ErrorKind::Type, "E0226", message);
                }
                if matches!(maker, Maker::Rows) {
                    Ok(Val::Value(value))
                } else {
                    self.transpose(value)
                }
            }
        }
    }

    /// `ti.Vector([...], dt)` and `ti.Matrix([[...]], dt)`.
    pub(crate) fn tensor_call(&mut self, name: &str, args: &Args) -> Res<Val> {
        for (keyword, maker) in [("rows", Maker::Rows), ("cols", Maker::Columns)] {
            if let Some(lines) = args.keyword(keyword) {
                return self.maker(name, maker, &Args::positional(vec![lines.clone()]));
            }
        }
        let data = self.arg(name, args, 0, "arr")?.clone();
        let data = match &data {
            Val::Known(object @ Known::Object(_)) => {
                // A NumPy array gives nested lists of Python numbers.
                let to_list = self.host.attr(object, "tolist");
                match self.hosted(to_list)? {
                    Some(to_list) => self.call_python(&to_list, &Args::default())?,
                    None => Self::list(self.iterate_static(&data)?),
                }
            }
            _ => data,
        };
        if data.items().is_some_and(|items| items.is_empty()) {
            let message = format!("`ti.{name}` needs at least one number, and this list is empty");
            return self.fail(ErrorKind::Type, "E0226", message);
        }
        let Some(ty) = self.numeric_type(&data) else {
            self.expect_elements(&data)?;
            return self.fail(
                ErrorKind::Type,
                "E0226",
                format!("the rows of `ti.{name}` must have one length"),
            );
        };
        if !ty.is_tensor() {
            let what = self.describe(&data);
            return self.fail_noted(
                ErrorKind::Type,
                "E0226",
                format!("`ti.{name}` needs a list, not {what}"),
                "write `ti.Vector([x, y])`",
            );
        }
        if name == "Vector" && !matches!(ty, Type::Vec(..)) {
            let message = format!("`ti.Vector` needs a flat list of numbers, not `{ty}`");
            return self.fail_noted(
                ErrorKind::Type,
                "E0226",
                message,
                "write `ti.Matrix([...])`",
            );
        }
        let ty = match args.get(1, "dt").cloned() {
            Some(dtype) if !dtype.is_none() => ty.with_elem(self.dtype(&dtype)?),
            _ => ty,
        };
        Ok(Val::Value(self.convert(&data, ty)?))
    }

    fn expect_elements(&mut self, data: &Val) -> Res<()> {
        for item in data.items().unwrap_or_default() {
            match item.items() {
                Some(_) => self.expect_elements(&item)?,
                None => {
                    self.expect_numeric(&item)?;
                }
            }
        }
        Ok(())
    }

    /// `vec3(x, yz)`: the elements of all arguments in order, or one scalar for all.
    pub(crate) fn construct(
        &mut self,
        shape: TensorShape,
        elem: ScalarType,
        args: &Args,
    ) -> Res<Val> {
        let ty = crate::lower::values::tensor_type(shape, elem);
        let mut elements = Vec::new();
        for val in &args.positional {
            self.expect_numeric(val)?;
            elements.extend(self.elements(val)?);
        }
        let n = ty.n_elems() as usize;
        if elements.len() == 1 {
            elements = vec![elements.remove(0); n];
        }
        if elements.len() != n {
            let found = elements.len();
            return self.fail(
                ErrorKind::Type,
                "E0226",
                format!("`{ty}` has {n} elements, but {found} are given"),
            );
        }
        Ok(Val::Value(self.make(&elements, ty)?))
    }

    /// The number of rows or columns of a tensor.
    fn extent(&mut self, val: &Val) -> Res<u32> {
        let n = self.static_int(val, "an extent")?;
        if (1..=MAX_EXTENT).contains(&n) {
            return Ok(n as u32);
        }
        self.fail(
            ErrorKind::Type,
            "E0226",
            format!("the size of a matrix axis must be between 1 and {MAX_EXTENT}, not {n}"),
        )
    }
}
