//! Functions: tables of instructions, values and regions.

use aerogel_base::entity::{PrimaryMap, SecondaryMap};
use aerogel_base::{Scalar, ScalarType, Span};

use crate::op::Op;
use crate::op_kinds::Derivative;
use crate::types::{Arg, Inst, Region, Type, Value};

/// An instruction with what lies beside it.
#[derive(Clone, Debug)]
pub struct InstData {
    /// The operation.
    pub op: Op,
    /// The values it makes.
    pub results: Vec<Value>,
    /// Where it comes from.
    pub span: Span,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueDef {
    /// A result of an instruction.
    Result(Inst, u32),
    /// A parameter of a region.
    Param(Region, u32),
}

/// A value's type and definition.
#[derive(Clone, Copy, Debug)]
pub struct ValueData {
    /// Its type.
    pub ty: Type,
    /// Its definition.
    pub def: ValueDef,
}

/// A region's parameters and instructions; the last instruction is its terminator.
#[derive(Clone, Debug, Default)]
pub struct RegionData {
    /// Parameters.
    pub params: Vec<Value>,
    /// Instructions in order.
    pub insts: Vec<Inst>,
}

/// The type of a kernel's argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParamType {
    /// A value, passed by its scalar components.
    Value(Type),
    /// An array of `ndim` dimensions, row by row, whose elements are scalars or tensors.
    Array {
        /// The elements' type.
        elem: Type,
        /// Dimensions, those of the elements not counted.
        ndim: u32,
        /// Whether the kernel only reads it; computed by the frontend.
        read_only: bool,
    },
}

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamData {
    /// The user's name for it.
    pub name: String,
    /// Its type.
    pub ty: ParamType,
    /// The array parameter whose adjoints or tangents this one holds.
    pub of: Option<(Derivative, Arg)>,
}

/// A kernel, a real function or a device helper.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name, unique in the module.
    pub name: String,
    /// Whether this is a kernel: its arguments are read by `arg` and may be arrays; other
    /// functions take theirs as the parameters of their body.
    pub is_kernel: bool,
    /// A kernel's parameters. A function that reads the arrays of the kernel it is called from has
    /// the kernel's; for others they are empty.
    pub params: Vec<ParamData>,
    /// Types of the returned values.
    pub results: Vec<Type>,
    /// Instructions.
    pub insts: PrimaryMap<Inst, InstData>,
    /// Values.
    pub values: PrimaryMap<Value, ValueData>,
    /// Regions.
    pub regions: PrimaryMap<Region, RegionData>,
    /// The outermost region.
    pub body: Region,
}

impl Function {
    /// Which of a kernel's arrays it writes, in the order of its parameters.
    pub fn written_arrays(&self) -> Vec<bool> {
        let written = |param: &ParamData| match param.ty {
            ParamType::Array { read_only, .. } => Some(!read_only),
            ParamType::Value(_) => None,
        };
        self.params.iter().filter_map(written).collect()
    }

    /// A function with an empty body.
    pub fn new(name: impl Into<String>, is_kernel: bool) -> Self {
        let mut regions = PrimaryMap::new();
        let body = regions.push(RegionData::default());
        Self {
            name: name.into(),
            is_kernel,
            params: Vec::new(),
            results: Vec::new(),
            insts: PrimaryMap::new(),
            values: PrimaryMap::new(),
            regions,
            body,
        }
    }

    /// A new, empty region with parameters of the given types.
    pub fn new_region(&mut self, params: &[Type]) -> Region {
        let region = self.regions.push(RegionData::default());
        for &ty in params {
            self.add_param(region, ty);
        }
        region
    }

    /// Adds a parameter to a region.
    pub fn add_param(&mut self, region: Region, ty: Type) -> Value {
        let index = self.regions[region].params.len() as u32;
        let value = self.values.push(ValueData {
            ty,
            def: ValueDef::Param(region, index),
        });
        self.regions[region].params.push(value);
        value
    }

    /// A new instruction that is in no region yet.
    pub fn new_inst(&mut self, op: Op, types: &[Type], span: Span) -> Inst {
        let inst = self.insts.push(InstData {
            op,
            results: Vec::new(),
            span,
        });
        for &ty in types {
            self.add_result(inst, ty);
        }
        inst
    }

    /// Adds a result to an instruction.
    pub fn add_result(&mut self, inst: Inst, ty: Type) -> Value {
        let index = self.insts[inst].results.len() as u32;
        let value = self.values.push(ValueData {
            ty,
            def: ValueDef::Result(inst, index),
        });
        self.insts[inst].results.push(value);
        value
    }

    /// Replaces the parameters of a region by those that `keep` marks; the others must be unused.
    pub fn retain_params(&mut self, region: Region, keep: &[bool]) {
        let params = std::mem::take(&mut self.regions[region].params);
        self.set_params(region, retained(params, keep));
    }

    /// Replaces the results of an instruction by those that `keep` marks; the others must be unused.
    pub fn retain_results(&mut self, inst: Inst, keep: &[bool]) {
        let results = retained(std::mem::take(&mut self.insts[inst].results), keep);
        for (k, &v) in results.iter().enumerate() {
            self.values[v].def = ValueDef::Result(inst, k as u32);
        }
        self.insts[inst].results = results;
    }

    /// Sets the parameters of a region: its own, in another order, with others or without some, which must be unused.
    pub fn set_params(&mut self, region: Region, params: Vec<Value>) {
        for (k, &v) in params.iter().enumerate() {
            self.values[v].def = ValueDef::Param(region, k as u32);
        }
        self.regions[region].params = params;
    }

    /// The type of a value.
    pub fn ty(&self, value: Value) -> Type {
        self.values[value].ty
    }

    /// The scalar of a scalar or tensor value.
    ///
    /// # Panics
    /// If the value is neither.
    pub fn elem(&self, value: Value) -> ScalarType {
        self.ty(value)
            .elem()
            .expect("the value is a scalar or a tensor")
    }

    /// The instruction that makes a value; none for a parameter.
    pub fn def(&self, value: Value) -> Option<Inst> {
        match self.values[value].def {
            ValueDef::Result(inst, _) => Some(inst),
            ValueDef::Param(..) => None,
        }
    }

    /// The operation that defines a value; none for a parameter.
    pub fn def_op(&self, value: Value) -> Option<&Op> {
        self.def(value).map(|inst| &self.insts[inst].op)
    }

    /// The constant that a value is, if it is one.
    pub fn as_const(&self, value: Value) -> Option<Scalar> {
        self.def_op(value)?.as_const()
    }

    /// The constant that a value is in every element, if it is one: a constant, or a tensor of one.
    pub fn as_splat(&self, value: Value) -> Option<Scalar> {
        match self.def_op(value)? {
            Op::Const { value } => Some(*value),
            Op::TensorMake { elems } => {
                let first = self.as_const(*elems.first()?)?;
                elems
                    .iter()
                    .all(|&e| self.as_const(e) == Some(first))
                    .then_some(first)
            }
            _ => None,
        }
    }

    /// The terminator of a region.
    ///
    /// # Panics
    /// If the region is empty.
    pub fn terminator(&self, region: Region) -> Inst {
        *self.regions[region]
            .insts
            .last()
            .expect("a region ends in a terminator")
    }

    /// The values that a region yields; none if it ends in another terminator.
    pub fn yielded(&self, region: Region) -> Option<&[Value]> {
        match &self.insts[self.terminator(region)].op {
            Op::Yield { values } => Some(values),
            _ => None,
        }
    }

    /// The regions that an instruction owns.
    pub fn owned(&self, inst: Inst) -> Vec<Region> {
        let mut regions = Vec::new();
        self.insts[inst].op.regions(|r| regions.push(r));
        regions
    }

    /// How many times each value is used by instructions reachable from the body.
    pub fn use_counts(&self) -> SecondaryMap<Value, u32> {
        let mut counts = SecondaryMap::with_capacity(self.values.len());
        walk(self, self.body, &mut |func, inst| {
            func.insts[inst].op.operands(|v| counts[v] += 1)
        });
        counts
    }
}

fn retained(values: Vec<Value>, keep: &[bool]) -> Vec<Value> {
    values
        .into_iter()
        .zip(keep)
        .filter_map(|(v, &k)| k.then_some(v))
        .collect()
}

impl std::ops::Index<Inst> for Function {
    type Output = Op;
    fn index(&self, inst: Inst) -> &Op {
        &self.insts[inst].op
    }
}

/// Calls `visit` for every instruction of `region` and of the regions inside, in order.
pub fn walk(func: &Function, region: Region, visit: &mut dyn FnMut(&Function, Inst)) {
    for &inst in &func.regions[region].insts {
        visit(func, inst);
        func[inst].regions(|r| walk(func, r, visit));
    }
}
