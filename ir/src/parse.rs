//! Reads what `print` writes. Values are named by any word that begins with `v`.

use std::sync::Arc;

use aerogel_base::ScalarType;
use aerogel_base::Span;
use aerogel_snode::NodeKind;

use crate::func::{Function, ParamData, ParamType};
use crate::lex::{Lexer, ParseError};
use crate::module::{Env, FieldData, Module};
use crate::op::Op;
use crate::op_field::{FieldParser, OpField, node_id, node_ref};
use crate::op_kinds::{Derivative, FastMath};
use crate::scoped_map::ScopedMap;
use crate::types::{Arg, FieldId, FuncId, Region, StructId, TreeId, Type, Value};

/// Reads a module.
pub fn parse_module(text: &str) -> Result<Module, ParseError> {
    let mut module = Module::default();
    // Calls may name functions further down, so all names are known before any body is read.
    let names: Vec<String> = function_names(text)?;
    let mut lexer = Lexer::new(text);
    // The fields of derivatives may stand further down.
    let mut links = Vec::new();
    while !lexer.at_end() {
        if lexer.accept("fast_math") {
            module.env.fast_math = FastMath::Full;
        } else if lexer.accept("fast_accumulations") {
            module.env.fast_math = FastMath::Accumulations;
        } else if lexer.accept("exact_decisions") {
            module.env.exact_decisions = true;
        } else if lexer.accept("arrays_apart") {
            module.env.arrays_apart = true;
        } else if lexer.accept("debug_races") {
            module.env.debug_races = true;
        } else if lexer.accept("deterministic") {
            module.env.deterministic = true;
        } else if lexer.peek_id("tree") {
            let word = lexer.word()?;
            lexer.expect("{")?;
            let body = lexer.until_closing_brace()?;
            let tree = aerogel_snode::parse_nodes(body)
                .map_err(|e| lexer.error(format!("{word}: {e}")))?;
            module.env.trees.push(Arc::new(tree));
        } else if lexer.peek_id("struct") {
            lexer.word()?;
            lexer.expect("{")?;
            let mut members = Vec::new();
            while !lexer.accept("}") {
                let name = lexer.word()?;
                lexer.expect(":")?;
                members.push((name, parse_type(&mut lexer)?));
                lexer.accept(",");
            }
            module.env.intern_struct(members);
        } else if lexer.accept("field") {
            let (field, derivatives) = parse_field(&mut lexer)?;
            check_places(&field, &module.env).map_err(|message| lexer.error(message))?;
            let id = module.env.fields.push(field);
            links.extend(derivatives.into_iter().map(|(kind, name)| (id, kind, name)));
        } else {
            let is_kernel = lexer.accept("kernel");
            if !is_kernel {
                lexer.expect("func")?;
            }
            lexer.expect("@")?;
            let func = Function::new(lexer.word()?, is_kernel);
            let mut p = FuncParser {
                lexer: &mut lexer,
                env: &module.env,
                names: &names,
                func,
                values: ScopedMap::default(),
                mnemonic: String::new(),
            };
            p.function()?;
            let func = p.func;
            module.funcs.push(func);
        }
    }
    for (field, kind, name) in links {
        let mut all = module.env.fields.iter();
        let other = all.find(|(_, other)| other.name == name).map(|(id, _)| id);
        let other = other.ok_or_else(|| lexer.error(format!("there is no field `{name}`")))?;
        *module.env.fields[field].derivative_mut(kind) = Some(other);
    }
    Ok(module)
}

fn function_names(text: &str) -> Result<Vec<String>, ParseError> {
    let mut names = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line
            .trim_start()
            .strip_prefix("kernel @")
            .or_else(|| line.trim_start().strip_prefix("func @"))
        {
            names.push(Lexer::new(rest).word()?);
        }
    }
    Ok(names)
}

/// A field, and the names of the fields of its derivatives.
fn parse_field(
    lexer: &mut Lexer<'_>,
) -> Result<(FieldData, Vec<(Derivative, String)>), ParseError> {
    lexer.expect("@")?;
    let name = lexer.word()?;
    lexer.expect(":")?;
    let elem = parse_type(lexer)?;
    lexer.expect("=")?;
    let word = lexer.word()?;
    let tree = word
        .strip_prefix("tree")
        .and_then(|n| n.parse().ok())
        .map(TreeId::from_u32);
    let tree = tree.ok_or_else(|| lexer.error(format!("expected a tree, found `{word}`")))?;
    lexer.expect("[")?;
    let mut places = Vec::new();
    while !lexer.accept("]") {
        let word = lexer.word()?;
        places.push(
            node_id(&word)
                .ok_or_else(|| lexer.error(format!("expected a node, found `{word}`")))?,
        );
        lexer.accept(",");
    }
    let mut offset = Vec::new();
    if lexer.accept("offset") {
        lexer.expect("[")?;
        while !lexer.accept("]") {
            let word = lexer.word()?;
            offset.push(
                word.parse()
                    .map_err(|_| lexer.error(format!("expected a number, found `{word}`")))?,
            );
            lexer.accept(",");
        }
    }
    let mut derivatives = Vec::new();
    while let Some(kind) = accept_derivative(lexer) {
        lexer.expect("@")?;
        derivatives.push((kind, lexer.word()?));
    }
    let field = FieldData {
        name,
        elem,
        tree,
        places,
        offset,
        grad: None,
        dual: None,
    };
    Ok((field, derivatives))
}

/// Checks that a field's places are those of a tree, one for each component.
fn check_places(field: &FieldData, env: &Env) -> Result<(), String> {
    let Some(tree) = env.trees.get(field.tree) else {
        return Err(format!(
            "the tree of the field `{}` is not declared",
            field.name
        ));
    };
    let is_place = |place| {
        let mut nodes = tree.nodes();
        nodes.any(|(id, node)| {
            id == place && matches!(node.kind, NodeKind::Place(_) | NodeKind::Bits(_))
        })
    };
    if let Some(wrong) = field.places.iter().find(|&&place| !is_place(place)) {
        return Err(format!(
            "{wrong}, of the field `{}`, is not a place",
            field.name
        ));
    }
    let n_components = env.scalars(field.elem).len();
    if field.places.len() != n_components {
        let found = field.places.len();
        return Err(format!(
            "the field `{}` has {n_components} components, and {found} places",
            field.name
        ));
    }
    Ok(())
}

fn accept_derivative(lexer: &mut Lexer<'_>) -> Option<Derivative> {
    let mut kinds = Derivative::ALL.iter().copied();
    kinds.find(|kind| lexer.accept(kind.name()))
}

fn parse_type(lexer: &mut Lexer<'_>) -> Result<Type, ParseError> {
    let word = lexer.word()?;
    if let Some(scalar) = ScalarType::from_name(&word) {
        return Ok(Type::Scalar(scalar));
    }
    if let Some(id) = word.strip_prefix("struct").and_then(|n| n.parse().ok()) {
        return Ok(Type::Struct(StructId::from_u32(id)));
    }
    let unknown = |lexer: &Lexer<'_>| lexer.error(format!("unknown type `{word}`"));
    lexer.expect("<")?;
    let ty = match word.as_str() {
        "vec" => {
            let n = lexer.number()?;
            lexer.expect(",")?;
            let elem = parse_type(lexer)?;
            Type::Vec(n, elem.scalar().ok_or_else(|| unknown(lexer))?)
        }
        "mat" => {
            let n = lexer.number()?;
            lexer.expect(",")?;
            let m = lexer.number()?;
            lexer.expect(",")?;
            let elem = parse_type(lexer)?;
            Type::Mat(n, m, elem.scalar().ok_or_else(|| unknown(lexer))?)
        }
        "buffer" | "room" => {
            let elem = parse_type(lexer)?.scalar().ok_or_else(|| unknown(lexer))?;
            match word.as_str() {
                "buffer" => Type::Buffer(elem),
                _ => Type::Room(elem),
            }
        }
        "ref" => parse_type(lexer)?.to_ref().ok_or_else(|| unknown(lexer))?,
        "cell" | "container" => {
            let at = lexer.word()?;
            let node = node_ref(&at).ok_or_else(|| unknown(lexer))?;
            if word == "cell" {
                Type::Cell(node.tree, node.node)
            } else {
                Type::Container(node.tree, node.node)
            }
        }
        _ => return Err(unknown(lexer)),
    };
    lexer.expect(">")?;
    Ok(ty)
}

/// Reads one function; instruction fields read themselves through it (`FieldParser`).
pub(crate) struct FuncParser<'l, 't> {
    lexer: &'l mut Lexer<'t>,
    env: &'l Env,
    names: &'l [String],
    func: Function,
    values: ScopedMap<String, Value>,
    mnemonic: String,
}

impl FuncParser<'_, '_> {
    fn function(&mut self) -> Result<(), ParseError> {
        self.lexer.expect("(")?;
        let body = self.func.body;
        if self.func.is_kernel {
            self.kernel_params()?;
        } else {
            self.params(body)?;
            if self.lexer.accept("of") {
                self.lexer.expect("(")?;
                self.kernel_params()?;
            }
        }
        if self.lexer.accept("->") {
            loop {
                let ty = parse_type(self.lexer)?;
                self.func.results.push(ty);
                if !self.lexer.accept(",") {
                    break;
                }
            }
        }
        self.block(body)
    }

    /// Reads a kernel's parameters up to the closing parenthesis.
    fn kernel_params(&mut self) -> Result<(), ParseError> {
        while !self.lexer.accept(")") {
            let name = self.lexer.word()?;
            self.lexer.expect(":")?;
            let ty = self.param_type()?;
            let mut of = None;
            if let Some(kind) = accept_derivative(self.lexer) {
                of = Some((kind, <Arg as OpField>::parse(self, true, &[])?));
            }
            self.func.params.push(ParamData { name, ty, of });
            self.lexer.accept(",");
        }
        Ok(())
    }

    fn param_type(&mut self) -> Result<ParamType, ParseError> {
        if !self.lexer.accept("array") {
            return parse_type(self.lexer).map(ParamType::Value);
        }
        self.lexer.expect("<")?;
        let elem = parse_type(self.lexer)?;
        self.lexer.expect(",")?;
        let ndim = self.lexer.number()?;
        let read_only = self.lexer.accept(",");
        if read_only {
            self.lexer.expect("read")?;
        }
        self.lexer.expect(">")?;
        Ok(ParamType::Array {
            elem,
            ndim,
            read_only,
        })
    }

    /// Reads parameters up to the closing parenthesis.
    fn params(&mut self, region: Region) -> Result<(), ParseError> {
        while !self.lexer.accept(")") {
            let name = self.lexer.word()?;
            self.lexer.expect(":")?;
            let ty = parse_type(self.lexer)?;
            let value = self.func.add_param(region, ty);
            self.values.insert(name, value);
            self.lexer.accept(",");
        }
        Ok(())
    }

    fn block(&mut self, region: Region) -> Result<(), ParseError> {
        self.lexer.expect("{")?;
        while !self.lexer.accept("}") {
            self.inst(region)?;
        }
        Ok(())
    }

    fn inst(&mut self, region: Region) -> Result<(), ParseError> {
        let mut names = Vec::new();
        let mut types = Vec::new();
        let mut word = self.lexer.word()?;
        if self.lexer.peek(":") {
            loop {
                self.lexer.expect(":")?;
                types.push(parse_type(self.lexer)?);
                names.push(word);
                if !self.lexer.accept(",") {
                    break;
                }
                word = self.lexer.word()?;
            }
            self.lexer.expect("=")?;
            word = self.lexer.word()?;
        }
        self.mnemonic.clone_from(&word);
        let op = Op::parse_named(&word, self, &types)?
            .ok_or_else(|| self.lexer.error(format!("`{word}` is not an instruction")))?;
        let inst = self.func.new_inst(op, &types, Span::NONE);
        self.func.regions[region].insts.push(inst);
        for (name, value) in names.into_iter().zip(self.func.insts[inst].results.clone()) {
            self.values.insert(name, value);
        }
        Ok(())
    }
}

impl<'t> FieldParser<'t> for FuncParser<'_, 't> {
    fn region(&mut self) -> Result<Region, ParseError> {
        let region = self.func.new_region(&[]);
        self.values.enter();
        if self.lexer.accept("(") {
            self.params(region)?;
        }
        self.block(region)?;
        self.values.leave();
        Ok(region)
    }

    fn lexer(&mut self) -> &mut Lexer<'t> {
        self.lexer
    }

    fn mnemonic(&self) -> &str {
        &self.mnemonic
    }

    fn sep(&mut self, first: bool) -> Result<(), ParseError> {
        if first {
            Ok(())
        } else {
            self.lexer.expect(",")
        }
    }

    fn values(&mut self) -> Result<Vec<Value>, ParseError> {
        self.lexer.expect("[")?;
        let mut values = Vec::new();
        while !self.lexer.accept("]") {
            if !values.is_empty() {
                self.lexer.expect(",")?;
            }
            values.push(self.value()?);
        }
        Ok(values)
    }

    fn value(&mut self) -> Result<Value, ParseError> {
        let name = self.lexer.word()?;
        self.values
            .get(&name)
            .copied()
            .ok_or_else(|| self.lexer.error(format!("`{name}` is not defined here")))
    }

    fn find_field(&self, name: &str) -> Option<FieldId> {
        self.env
            .fields
            .iter()
            .find(|(_, f)| f.name == name)
            .map(|(id, _)| id)
    }

    fn find_func(&self, name: &str) -> Option<FuncId> {
        self.names
            .iter()
            .position(|n| n == name)
            .map(|k| FuncId::from_u32(k as u32))
    }
}
