//! The fields of instructions: what each type of field contributes to visits and to the text.

use aerogel_base::{AssertKind, NoteKind, Scalar};
use aerogel_snode::NodeId;

use crate::lex::{Lexer, ParseError};
use crate::op_kinds::{
    Around, AtomicOp, BinaryOp, CompareOp, FastMath, LoopAttrs, NodeRef, TaskKind, ThreadOp,
    UnaryOp,
};
use crate::types::{Arg, FieldId, FuncId, Region, TreeId, Type, Value};

/// A field of an instruction: its part of the generic visits and of the text.
pub(crate) trait OpField: Sized {
    /// Whether the field is the mnemonic itself, as in a family.
    const IS_MNEMONIC: bool = false;
    /// Whether `name` is one of the field's mnemonics.
    fn accepts(_name: &str) -> bool {
        false
    }
    /// Calls `f` for every operand.
    fn operands(&self, _f: &mut dyn FnMut(Value)) {}
    /// Replaces every operand.
    fn map_operands(&mut self, _f: &mut dyn FnMut(Value) -> Value) {}
    /// Calls `f` for every owned region.
    fn regions(&self, _f: &mut dyn FnMut(Region)) {}
    /// Replaces every owned region.
    fn map_regions(&mut self, _f: &mut dyn FnMut(Region) -> Region) {}
    /// Writes the field; `first` if nothing of the instruction has been written after its name.
    fn print(&self, p: &mut dyn FieldPrinter, first: bool);
    /// Reads what `print` wrote.
    fn parse(
        p: &mut dyn FieldParser<'_>,
        first: bool,
        results: &[Type],
    ) -> Result<Self, ParseError>;
}

/// Writes the fields of instructions.
pub(crate) trait FieldPrinter {
    fn text(&mut self, text: &str);
    /// The separator before a field: a space after the mnemonic, a comma later.
    fn sep(&mut self, first: bool);
    fn sep_if(&mut self, needed: bool);
    fn value(&mut self, value: Value);
    fn region(&mut self, region: Region);
    fn field_name(&self, field: FieldId) -> String;
    fn func_name(&self, func: FuncId) -> String;
}

/// Reads what a `FieldPrinter` wrote.
pub(crate) trait FieldParser<'t> {
    fn lexer(&mut self) -> &mut Lexer<'t>;
    /// The name of the instruction that is being read.
    fn mnemonic(&self) -> &str;
    fn sep(&mut self, first: bool) -> Result<(), ParseError>;
    fn value(&mut self) -> Result<Value, ParseError>;
    /// Values in brackets.
    fn values(&mut self) -> Result<Vec<Value>, ParseError>;
    fn region(&mut self) -> Result<Region, ParseError>;
    fn find_field(&self, name: &str) -> Option<FieldId>;
    fn find_func(&self, name: &str) -> Option<FuncId>;
}

pub(crate) fn node_id(word: &str) -> Option<NodeId> {
    word.strip_prefix('S')?.parse().ok().map(NodeId::from_u32)
}

/// Reads `tree0.S1`.
pub(crate) fn node_ref(word: &str) -> Option<NodeRef> {
    let (tree, node) = word.split_once('.')?;
    Some(NodeRef {
        tree: TreeId::from_u32(tree.strip_prefix("tree")?.parse().ok()?),
        node: node_id(node)?,
    })
}

impl OpField for Value {
    fn operands(&self, f: &mut dyn FnMut(Value)) {
        f(*self);
    }
    fn map_operands(&mut self, f: &mut dyn FnMut(Value) -> Value) {
        *self = f(*self);
    }
    fn print(&self, p: &mut dyn FieldPrinter, first: bool) {
        p.sep(first);
        p.value(*self);
    }
    fn parse(p: &mut dyn FieldParser<'_>, first: bool, _: &[Type]) -> Result<Self, ParseError> {
        p.sep(first)?;
        p.value()
    }
}

impl OpField for Vec<Value> {
    fn operands(&self, f: &mut dyn FnMut(Value)) {
        self.iter().for_each(|&v| f(v));
    }
    fn map_operands(&mut self, f: &mut dyn FnMut(Value) -> Value) {
        self.iter_mut().for_each(|v| *v = f(*v));
    }
    fn print(&self, p: &mut dyn FieldPrinter, first: bool) {
        p.sep(first);
        p.text("[");
        for (k, &v) in self.iter().enumerate() {
            p.sep_if(k > 0);
            p.value(v);
        }
        p.text("]");
    }
    fn parse(p: &mut dyn FieldParser<'_>, first: bool, _: &[Type]) -> Result<Self, ParseError> {
        p.sep(first)?;
        p.values()
    }
}

impl OpField for Region {
    fn regions(&self, f: &mut dyn FnMut(Region)) {
        f(*self);
    }
    fn map_regions(&mut self, f: &mut dyn FnMut(Region) -> Region) {
        *self = f(*self);
    }
    fn print(&self, p: &mut dyn FieldPrinter, _: bool) {
        p.text(" ");
        p.region(*self);
    }
    fn parse(p: &mut dyn FieldParser<'_>, _: bool, _: &[Type]) -> Result<Self, ParseError> {
        p.region()
    }
}

/// Fields that are written by `Display` after a separator and read from one word.
macro_rules! word_field {
    ($($ty:ty: $parse:expr;)*) => { $(impl OpField for $ty {
        fn print(&self, p: &mut dyn FieldPrinter, first: bool) {
            p.sep(first);
            p.text(&self.to_string());
        }
        fn parse(p: &mut dyn FieldParser<'_>, first: bool, results: &[Type]) -> Result<Self, ParseError> {
            p.sep(first)?;
            let word = p.lexer().word()?;
            let parse: fn(&str, &mut dyn FieldParser<'_>, &[Type]) -> Option<$ty> = $parse;
            parse(&word, p, results).ok_or_else(|| p.lexer().error(format!("unexpected `{word}`")))
        }
    })* };
}

word_field! {
    u32: |w, _, _| w.parse().ok();
    bool: |w, _, _| w.parse().ok();
    Arg: |w, _, _| w.strip_prefix('a')?.parse().ok().map(Arg::from_u32);
    TreeId: |w, _, _| w.strip_prefix("tree")?.parse().ok().map(TreeId::from_u32);
    AssertKind: |w, _, _| AssertKind::from_name(w);
    NoteKind: |w, _, _| NoteKind::from_name(w);
    TaskKind: |w, _, _| TaskKind::from_name(w);
    NodeRef: |w, _, _| node_ref(w);
    Scalar: |w, _, results| Scalar::parse(results.first()?.scalar()?, w);
}

/// Names that stand for ids of the module.
macro_rules! name_field {
    ($($ty:ty: $name:ident, $find:ident;)*) => { $(impl OpField for $ty {
        fn print(&self, p: &mut dyn FieldPrinter, first: bool) {
            p.sep(first);
            let name = p.$name(*self);
            p.text("@");
            p.text(&name);
        }
        fn parse(p: &mut dyn FieldParser<'_>, first: bool, _: &[Type]) -> Result<Self, ParseError> {
            p.sep(first)?;
            p.lexer().expect("@")?;
            let name = p.lexer().word()?;
            p.$find(&name).ok_or_else(|| p.lexer().error(format!("`@{name}` is not defined")))
        }
    })* };
}

name_field! {
    FieldId: field_name, find_field;
    FuncId: func_name, find_func;
}

impl OpField for String {
    fn print(&self, p: &mut dyn FieldPrinter, first: bool) {
        p.sep(first);
        p.text(&format!("{self:?}"));
    }
    fn parse(p: &mut dyn FieldParser<'_>, first: bool, _: &[Type]) -> Result<Self, ParseError> {
        p.sep(first)?;
        p.lexer().string()
    }
}

impl OpField for LoopAttrs {
    fn print(&self, p: &mut dyn FieldPrinter, _: bool) {
        if self.aside {
            p.text(" aside");
        }
        if self.serial {
            p.text(" serial");
        }
        if self.own_words {
            p.text(" own_words");
        }
        if self.ordered {
            p.text(" ordered");
        }
        if let Some(around) = self.around {
            p.text(&format!(" around={around}"));
        }
        if self.writes_around {
            p.text(" writes_around");
        }
        if let Some(n) = self.max_threads {
            p.text(&format!(" threads={n}"));
        }
        if let Some(n) = self.block {
            p.text(&format!(" block={n}"));
        }
        if let Some(level) = self.fast_math {
            p.text(&format!(" fast_math={level}"));
        }
        if let Some(n) = self.exchange {
            p.text(&format!(" exchange={n}"));
        }
    }
    fn parse(p: &mut dyn FieldParser<'_>, _: bool, _: &[Type]) -> Result<Self, ParseError> {
        let mut attrs = LoopAttrs::default();
        let lexer: &mut Lexer<'_> = p.lexer();
        loop {
            if lexer.accept("aside") {
                attrs.aside = true;
            } else if lexer.accept("serial") {
                attrs.serial = true;
            } else if lexer.accept("own_words") {
                attrs.own_words = true;
            } else if lexer.accept("ordered") {
                attrs.ordered = true;
            } else if lexer.accept("around") {
                lexer.expect("=")?;
                let word = lexer.word()?;
                let around = Around::from_name(&word);
                attrs.around =
                    Some(around.ok_or_else(|| lexer.error(format!("unexpected `{word}`")))?);
            } else if lexer.accept("writes_around") {
                attrs.writes_around = true;
            } else if lexer.accept("threads") {
                lexer.expect("=")?;
                attrs.max_threads = Some(lexer.number()?);
            } else if lexer.accept("block") {
                lexer.expect("=")?;
                attrs.block = Some(lexer.number()?);
            } else if lexer.accept("exchange") {
                lexer.expect("=")?;
                attrs.exchange = Some(lexer.number()?);
            } else if lexer.accept("fast_math") {
                lexer.expect("=")?;
                let word = lexer.word()?;
                let level = FastMath::from_name(&word);
                attrs.fast_math =
                    Some(level.ok_or_else(|| lexer.error(format!("unexpected `{word}`")))?);
            } else {
                return Ok(attrs);
            }
        }
    }
}

/// The sub-operation of a family is the mnemonic itself, which is written and read beforehand.
macro_rules! family_field {
    ($($ty:ty)*) => { $(impl OpField for $ty {
        const IS_MNEMONIC: bool = true;
        fn accepts(name: &str) -> bool {
            Self::from_name(name).is_some()
        }
        fn print(&self, p: &mut dyn FieldPrinter, _: bool) {
            p.text(self.name());
        }
        fn parse(p: &mut dyn FieldParser<'_>, _: bool, _: &[Type]) -> Result<Self, ParseError> {
            let name = p.mnemonic().to_owned();
            Self::from_name(&name).ok_or_else(|| p.lexer().error(format!("`{name}` is not an instruction")))
        }
    })* };
}

family_field! { UnaryOp BinaryOp CompareOp AtomicOp ThreadOp }
