//! Expressions of the text.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{BinaryOp, CompareOp, UnaryOp};

use super::{Parsed, Parser};
use crate::ir::expr::{Expr, ExprDef, Outside, deep};
use crate::ir::ids::{Buffer, Site};

impl Parser<'_> {
    /// What an index outside means; an error that names no site has one of its own.
    pub(super) fn outside(
        &mut self,
        buffer: Buffer,
        index: &[Expr],
        is_store: bool,
    ) -> Parsed<Outside> {
        let named = [
            ("clamp", Outside::Clamp),
            ("wrap", Outside::Wrap),
            ("zero", Outside::Zero),
        ];
        for (word, outside) in named {
            if self.accept_word(word) {
                return Ok(outside);
            }
        }
        if !self.accept_word("error") {
            return Ok(Outside::Never);
        }
        let site = match self.lexer.peek_id("s") {
            true => {
                let word = self.lexer.word()?;
                let n = self.program.sites.len();
                Site::from_u32(self.id(&word, "s", n)?)
            }
            false => self.program.site(buffer, index, is_store),
        };
        Ok(Outside::Error(site))
    }

    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        self.nested(|parser| deep(|| parser.one_expr()))
    }

    fn one_expr(&mut self) -> Parsed<Expr> {
        if self.lexer.accept("%") {
            let name = self.lexer.word()?;
            return match self.named.get(&name) {
                Some(&e) => Ok(e),
                None => self.error(format!("`%{name}` is not there")),
            };
        }
        let word = self.lexer.word()?;
        if self.lexer.peek("[") {
            let buffer = self.buffer_named(&word)?;
            let index = self.list("[", "]", Self::expr)?;
            let outside = self.outside(buffer, &index, false)?;
            let ty = self.program.buffers[buffer].ty;
            return Ok(self.program.exprs.add_as_is(ExprDef::Load {
                buffer,
                ty,
                index,
                outside,
            }));
        }
        if !self.lexer.peek("(") {
            let def = match word.strip_prefix('i').and_then(|k| k.parse().ok()) {
                Some(axis) => ExprDef::Axis(axis),
                None => {
                    let var = self.var_named(&word)?;
                    ExprDef::Var(var, self.program.vars[var])
                }
            };
            return Ok(self.program.exprs.add_as_is(def));
        }
        let def = self.operation(&word)?;
        Ok(self.program.exprs.add_as_is(def))
    }

    fn operation(&mut self, word: &str) -> Parsed<ExprDef> {
        if word == "extent" {
            self.lexer.expect("(")?;
            let dim = self.dim()?;
            self.lexer.expect(")")?;
            return Ok(ExprDef::Extent(dim));
        }
        if let Some(ty) = ScalarType::from_name(word) {
            self.lexer.expect("(")?;
            let text = self.lexer.word()?;
            self.lexer.expect(")")?;
            // A larger integer would wrap around.
            let is_as_written =
                |value: &Scalar| !ty.is_int() || text.parse::<i128>() == Ok(value.as_i128());
            return match Scalar::parse(ty, &text).filter(is_as_written) {
                Some(value) => Ok(ExprDef::Const(value)),
                None => self.error(format!("`{text}` is no `{ty}`")),
            };
        }
        let all = self.list("(", ")", Self::expr)?;
        let def = match (word, &all[..]) {
            ("select", &[c, a, b]) => Some(ExprDef::Select(c, a, b)),
            (_, &[x]) => match word.split_once('.') {
                Some(("cast", ty)) => ScalarType::from_name(ty).map(|ty| ExprDef::Cast(x, ty)),
                Some(("bitcast", ty)) => {
                    ScalarType::from_name(ty).map(|ty| ExprDef::Bitcast(x, ty))
                }
                _ => UnaryOp::from_name(word).map(|op| ExprDef::Unary(op, x)),
            },
            (_, &[a, b]) => BinaryOp::from_name(word)
                .map(|op| ExprDef::Binary(op, a, b))
                .or_else(|| CompareOp::from_name(word).map(|op| ExprDef::Compare(op, a, b))),
            _ => None,
        };
        match def {
            Some(def) => Ok(def),
            None => self.error(format!("`{word}` with {} operands is not there", all.len())),
        }
    }
}
