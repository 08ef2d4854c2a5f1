//! The parser of the text that `print` writes.

mod exprs;

use std::sync::Arc;

use aerogel_base::{ScalarType, Span};
use aerogel_ir::{Lexer, ParseError, TreeId};
use aerogel_snode::NodeId;
use indexmap::IndexMap;

use super::expr::Expr;
use super::ids::{Buffer, Dim, Region, Var};
use super::library::{Call, Library};
use super::program::{Accum, Agreement, BufferDef, DimDef, For, Program, Role, Stmt, Store};
use super::region::{RegionDef, Run};
use super::site::{Place, SiteDef};
use super::spots::Spots;

type Parsed<T> = Result<T, ParseError>;

/// Reads a program.
///
/// # Errors
/// The line at which the text is none, and why.
pub fn parse(text: &str) -> Parsed<Program> {
    Ok(parse_as(text, true)?.0)
}

/// A program without fields and kernels, and where in the text everything stands.
pub(crate) fn parse_closed(text: &str) -> Parsed<(Program, Spots)> {
    parse_as(text, false)
}

fn parse_as(text: &str, has_fields: bool) -> Parsed<(Program, Spots)> {
    let mut parser = Parser {
        lexer: Lexer::new(text),
        program: Program::default(),
        named: IndexMap::new(),
        spots: Spots::default(),
        depth: 0,
        has_fields,
    };
    parser.head()?;
    while !parser.lexer.at_end() {
        if parser.accept_word("result") {
            let result = parser.buffer()?;
            parser.program.results.push(result);
        } else if let Some(stmt) = parser.stmt()? {
            parser.program.body.push(stmt);
        }
    }
    Ok((parser.program, parser.spots))
}

/// How deep blocks and operands may be nested in a text: what reads them is recursive.
const MOST_NESTED: usize = 500;

struct Parser<'t> {
    lexer: Lexer<'t>,
    program: Program,
    named: IndexMap<String, Expr>,
    spots: Spots,
    /// How many blocks and operands are around.
    depth: usize,
    /// Whether it may have fields and kernels.
    has_fields: bool,
}

impl Parser<'_> {
    fn error<T>(&self, message: impl Into<String>) -> Parsed<T> {
        Err(self.lexer.error(message.into()))
    }

    /// Reads what is nested in something else.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MOST_NESTED {
            return self.error(format!(
                "more than {MOST_NESTED} operands or blocks are nested: name inner ones, as in `%0 = ...`"
            ));
        }
        self.depth += 1;
        let made = read(self);
        self.depth -= 1;
        made
    }

    fn accept_word(&mut self, word: &str) -> bool {
        self.lexer.peek(word) && self.lexer.accept(word)
    }

    /// Items between brackets, with commas between them.
    fn list<T>(
        &mut self,
        open: &str,
        close: &str,
        item: impl Fn(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        self.lexer.expect(open)?;
        let mut items = Vec::new();
        while !self.lexer.accept(close) {
            if !items.is_empty() {
                self.lexer.expect(",")?;
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn head(&mut self) -> Parsed<()> {
        loop {
            let at = self.lexer.next_at();
            let names_field = self.lexer.peek("field") || self.lexer.peek("region");
            if !self.has_fields && (names_field || self.lexer.peek_id("tree")) {
                self.lexer.word()?;
                return self.error("a program that is read has no fields and calls no kernels");
            }
            if self.accept_word("in") {
                let number = self.program.inputs().count() as u32;
                self.buffer_def(Role::Input(number))?;
            } else if self.accept_word("tmp") {
                let buffer = self.buffer_def(Role::Temporary)?;
                if self.has_fields && self.lexer.accept("=") {
                    let (tree, place) = self.place()?;
                    self.program.buffers[buffer].role = Role::Scratch(tree, place);
                }
            } else if self.accept_word("field") {
                self.field()?;
            } else if self.lexer.peek_id("tree") {
                self.tree()?;
            } else if self.accept_word("region") {
                self.region()?;
            } else if self.accept_word("var") {
                let name = self.lexer.word()?;
                let (name, ty) = self.typed(&name)?;
                let var = self.program.vars.push(ty);
                self.spots.vars.push(at);
                if var.to_string() != name {
                    return self.error(format!("variables are in order: `{var}` comes next"));
                }
            } else if self.lexer.accept("%") {
                self.name()?;
            } else if self.accept_word("site") {
                self.site()?;
            } else if self.accept_word("agree") {
                let left = self.dim()?;
                self.lexer.expect("=")?;
                let right = self.dim()?;
                let message = self.lexer.string()?;
                self.program.agreements.push(Agreement {
                    left,
                    right,
                    message,
                    span: Span::NONE,
                });
            } else {
                return Ok(());
            }
        }
    }

    /// The type behind a colon, which may have been read with the name before it.
    fn typed(&mut self, name: &str) -> Parsed<(String, ScalarType)> {
        let (name, rest) = name.split_once(':').unwrap_or((name, ""));
        let mut ty = rest.to_owned();
        if ty.is_empty() {
            self.lexer.accept(":");
            ty = self.lexer.word()?;
        }
        let ty = ty.trim_start_matches(':');
        match ScalarType::from_name(ty) {
            Some(ty) => Ok((name.to_owned(), ty)),
            None => self.error(format!("`{ty}` is no type")),
        }
    }

    fn tree(&mut self) -> Parsed<()> {
        let id = self.lexer.word()?;
        self.lexer.expect("{")?;
        let text = self.lexer.until_closing_brace()?;
        let tree = match aerogel_snode::parse_nodes(text) {
            Ok(tree) => self.program.tree(Arc::new(tree)),
            Err(e) => return self.error(e.to_string()),
        };
        match tree.to_string() == id {
            true => Ok(()),
            false => self.error(format!("trees are in order: `{tree}` comes next")),
        }
    }

    fn region(&mut self) -> Parsed<()> {
        let id = self.lexer.word()?;
        let name = self.lexer.string()?;
        let writes = self.list("(", ")", |p| match p.lexer.word()?.as_str() {
            "in" => Ok(false),
            "out" => Ok(true),
            other => p.error(format!("an array is `in` or `out`, not `{other}`")),
        })?;
        let mut trees = Vec::new();
        while let Some(tree) = self.tree_named()? {
            trees.push(tree);
        }
        let region = self.program.regions.push(RegionDef {
            name,
            writes,
            trees,
            runner: None,
        });
        match region.to_string() == id {
            true => Ok(()),
            false => self.error(format!("regions are in order: `{region}` comes next")),
        }
    }

    /// A tree that has been read, if one is named next.
    fn tree_named(&mut self) -> Parsed<Option<TreeId>> {
        if !self.lexer.peek_id("tree") {
            return Ok(None);
        }
        let word = self.lexer.word()?;
        let n = self.program.trees.len();
        Ok(Some(TreeId::from_u32(self.id(&word, "tree", n)?)))
    }

    /// A place of a tree, behind what it looks like.
    fn field(&mut self) -> Parsed<()> {
        let buffer = self.buffer_def(Role::Temporary)?;
        self.lexer.expect("=")?;
        let (tree, place) = self.place()?;
        self.program.buffers[buffer].role = Role::Field(tree, place);
        Ok(())
    }

    /// A node of a tree that has been read.
    fn place(&mut self) -> Parsed<(TreeId, NodeId)> {
        let word = self.lexer.word()?;
        let Some((tree, place)) = word.split_once('.') else {
            return self.error(format!("`{word}` is no place"));
        };
        let n = self.program.trees.len();
        let tree = TreeId::from_u32(self.id(tree, "tree", n)?);
        let n = self.program.trees[tree].nodes().count();
        Ok((tree, NodeId::from_u32(self.id(place, "S", n)?)))
    }

    fn buffer_def(&mut self, role: Role) -> Parsed<Buffer> {
        let at = self.lexer.next_at();
        let id = self.lexer.word()?;
        let name = self.lexer.string()?;
        let (_, ty) = self.typed("")?;
        let shape = Vec::new();
        let def = BufferDef {
            name,
            ty,
            shape,
            role,
        };
        let buffer = self.program.buffers.push(def);
        self.spots.buffers.push(at);
        if buffer.to_string() != id {
            return self.error(format!("buffers are in order: `{buffer}` comes next"));
        }
        self.lexer.expect("[")?;
        let mut shape = Vec::new();
        while !self.lexer.accept("]") {
            if !shape.is_empty() {
                self.lexer.expect(",")?;
            }
            let at = self.lexer.next_at();
            let dim = match self.lexer.accept("?") {
                true => self.program.dim(DimDef::Input(buffer, shape.len() as u32)),
                false => self.dim()?,
            };
            self.spots.note_dims(self.program.dims.len(), at);
            shape.push(dim);
        }
        self.program.buffers[buffer].shape = shape;
        Ok(buffer)
    }

    /// A checked access, by its number in the table.
    fn site(&mut self) -> Parsed<()> {
        let id = self.lexer.word()?;
        self.lexer.expect("=")?;
        let is_store = match self.lexer.word()?.as_str() {
            "load" => false,
            "store" => true,
            other => return self.error(format!("an access is `load` or `store`, not `{other}`")),
        };
        let buffer = self.buffer()?;
        let from_end = match self.accept_word("from_end") {
            true => self.list("(", ")", |p| {
                let axis = p.lexer.word()?;
                p.number(&axis)
            })?,
            false => Vec::new(),
        };
        let site = self.program.sites.push(SiteDef {
            buffer,
            is_store,
            from_end,
            place: Place::NONE,
        });
        match site.to_string() == id {
            true => Ok(()),
            false => self.error(format!("sites are in order: `{site}` comes next")),
        }
    }

    fn number<T: std::str::FromStr>(&mut self, word: &str) -> Parsed<T> {
        word.parse()
            .or_else(|_| self.error(format!("`{word}` is no number")))
    }

    fn id(&mut self, word: &str, prefix: &str, n: usize) -> Parsed<u32> {
        let number = word
            .strip_prefix(prefix)
            .and_then(|n| n.parse::<u32>().ok());
        match number.filter(|&k| (k as usize) < n) {
            Some(number) => Ok(number),
            None => self.error(format!("`{word}` is not there")),
        }
    }

    fn buffer_named(&mut self, word: &str) -> Parsed<Buffer> {
        let n = self.program.buffers.len();
        Ok(Buffer::from_u32(self.id(word, "b", n)?))
    }

    fn buffer(&mut self) -> Parsed<Buffer> {
        let word = self.lexer.word()?;
        self.buffer_named(&word)
    }

    fn var_named(&mut self, word: &str) -> Parsed<Var> {
        let n = self.program.vars.len();
        Ok(Var::from_u32(self.id(word, "x", n)?))
    }

    fn dim(&mut self) -> Parsed<Dim> {
        let at = self.lexer.next_at();
        let dim = self.nested(Self::one_dim)?;
        self.spots.note_dims(self.program.dims.len(), at);
        Ok(dim)
    }

    fn one_dim(&mut self) -> Parsed<Dim> {
        if self.lexer.accept("(") {
            let e = self.size()?;
            return Ok(self.program.dim(DimDef::Value(e)));
        }
        let word = self.lexer.word()?;
        if word == "number" {
            self.lexer.expect("(")?;
            let e = self.size()?;
            return Ok(self.program.dim(DimDef::Number(e)));
        }
        let def = match word.split_once(':') {
            Some((buffer, axis)) => {
                let buffer = self.buffer_named(buffer)?;
                DimDef::Input(buffer, self.number(axis)?)
            }
            None => DimDef::Const(self.number(&word)?),
        };
        Ok(self.program.dim(def))
    }

    /// The expression of a size, up to the bracket behind it.
    fn size(&mut self) -> Parsed<Expr> {
        let e = self.expr()?;
        let ty = self.program.exprs.ty(e);
        if ty != ScalarType::I32 {
            return self.error(format!("a size is an `i32`, not `{ty}`"));
        }
        self.lexer.expect(")")?;
        Ok(e)
    }

    fn block(&mut self) -> Parsed<Vec<Stmt>> {
        self.lexer.expect("{")?;
        let mut body = Vec::new();
        while !self.lexer.accept("}") {
            body.extend(self.nested(Self::stmt)?);
        }
        Ok(body)
    }

    /// A name given to an expression, behind its `%`.
    fn name(&mut self) -> Parsed<()> {
        let name = self.lexer.word()?;
        self.lexer.expect("=")?;
        let e = self.expr()?;
        self.named.insert(name, e);
        Ok(())
    }

    /// A statement; nothing for a name given to an expression.
    fn stmt(&mut self) -> Parsed<Option<Stmt>> {
        if self.lexer.accept("%") {
            self.name()?;
            return Ok(None);
        }
        self.spots.stmts.push(self.lexer.next_at());
        let word = self.lexer.word()?;
        Ok(Some(match word.as_str() {
            "for" => {
                let cells = match self.accept_word("cells") {
                    true => Some(self.buffer()?),
                    false => None,
                };
                let domain = self.list("[", "]", Self::dim)?;
                let (body, span) = (self.block()?, Span::NONE);
                Stmt::For(For {
                    domain,
                    cells,
                    body,
                    span,
                })
            }
            "loop" => {
                let name = self.lexer.word()?;
                let var = self.var_named(&name)?;
                self.lexer.expect("in")?;
                let lo = self.expr()?;
                self.lexer.expect(",")?;
                let hi = self.expr()?;
                self.lexer.expect(",")?;
                let step = self.lexer.word()?;
                let (step, body) = (self.number(&step)?, self.block()?);
                Stmt::Loop {
                    var,
                    lo,
                    hi,
                    step,
                    body,
                }
            }
            "if" => {
                let cond = self.expr()?;
                let then = self.block()?;
                let otherwise = match self.accept_word("else") {
                    true => self.block()?,
                    false => Vec::new(),
                };
                Stmt::If(cond, then, otherwise)
            }
            "break" => Stmt::Break,
            "continue" => Stmt::Continue,
            "call" => {
                let name = self.lexer.word()?;
                let Some(library) = Library::from_name(&name) else {
                    return self.error(format!("no library has `{name}`"));
                };
                let outputs = self.list("(", ")", Self::buffer)?;
                self.lexer.expect("=")?;
                let inputs = self.list("(", ")", Self::buffer)?;
                let span = Span::NONE;
                Stmt::Call(Call {
                    library,
                    inputs,
                    outputs,
                    span,
                })
            }
            "run" => {
                let word = self.lexer.word()?;
                let n = self.program.regions.len();
                let region = Region::from_u32(self.id(&word, "r", n)?);
                let results = self.list("(", ")", Self::buffer)?;
                self.lexer.expect("=")?;
                let arrays = self.list("(", ")", Self::buffer)?;
                let span = Span::NONE;
                Stmt::Run(Run {
                    region,
                    arrays,
                    results,
                    span,
                })
            }
            "clear" => Stmt::Clear(self.buffer()?),
            _ if word.starts_with('x') => {
                let var = self.var_named(&word)?;
                self.lexer.expect("=")?;
                Stmt::Set(var, self.expr()?)
            }
            _ => Stmt::Store(self.store(&word)?),
        }))
    }

    fn store(&mut self, word: &str) -> Parsed<Store> {
        let target = self.buffer_named(word)?;
        let index = self.list("[", "]", Self::expr)?;
        let outside = self.outside(target, &index, true)?;
        let accum = Accum::ALL
            .iter()
            .copied()
            .find(|a| self.accept_word(a.name()));
        let init = self.accept_word("init");
        self.lexer.expect("=")?;
        Ok(Store {
            target,
            index,
            value: self.expr()?,
            accum,
            init,
            outside,
        })
    }
}
