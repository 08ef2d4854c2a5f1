//! The text of a module: variables, functions, and in them declarations, labels and instructions.

mod instruction;
mod names;
mod operands;
mod words;

use crate::code::{Code, Function, Instruction, Op, Reg, Slot, Space, Ty, Variable};
use crate::error::ParseError;
use crate::lex::{Placed, Token, lex};
use names::{Name, Names};

type Res<T> = Result<T, ParseError>;

/// The code of a text.
pub(crate) fn parse(text: &str) -> Res<Code> {
    let mut parser = Parser {
        tokens: lex(text)?,
        at: 0,
        code: Code {
            text: text.to_owned(),
            ..Code::default()
        },
        names: Names::default(),
        func: Function::default(),
        branches: Vec::new(),
        tables: Vec::new(),
    };
    parser.module()?;
    Ok(parser.code)
}

/// A branch whose label may come later.
struct Pending<'s> {
    inst: usize,
    labels: Vec<&'s str>,
    line: u32,
}

struct Parser<'s> {
    tokens: Vec<Placed<'s>>,
    at: usize,
    code: Code,
    names: Names<'s>,
    /// The function that is read.
    func: Function,
    branches: Vec<Pending<'s>>,
    /// Where the branches of a table go.
    tables: Vec<(&'s str, Vec<&'s str>)>,
}

/// How a variable or parameter is declared: its type, and how many.
struct Declared<'s> {
    name: &'s str,
    align: u64,
    bytes: u64,
    element: Ty,
}

impl<'s> Parser<'s> {
    fn module(&mut self) -> Res<()> {
        while let Some(token) = self.peek() {
            match token {
                Token::Word(".version" | ".target" | ".address_size" | ".file" | ".loc") => {
                    self.skip_line();
                }
                Token::Word(".section") => self.skip_block(),
                Token::Word(".visible" | ".weak" | ".extern" | ".common") => self.at += 1,
                Token::Word(".entry" | ".func") => self.function()?,
                Token::Word(".global" | ".const" | ".shared") => self.variable()?,
                Token::Mark(';') => self.at += 1,
                other => return self.unexpected(other),
            }
        }
        // Shared memory that a launch requests follows that of the module.
        let end = self.code.shared_bytes.next_multiple_of(16);
        for variable in &mut self.code.variables {
            if variable.space == Space::Shared && variable.length == 0 {
                variable.at = end;
            }
        }
        Ok(())
    }

    /// What comes before a name: `.align 16 .b8`, `.u64 .ptr .global .align 4`.
    fn declared(&mut self) -> Res<Declared<'s>> {
        let (mut align, mut element) = (None, None);
        loop {
            let word = self.word()?;
            match word {
                ".align" => align = Some(self.integer()?),
                ".ptr" | ".global" | ".const" | ".shared" | ".local" | ".param" | ".reg" => {}
                _ => match word.strip_prefix('.') {
                    Some(name) => {
                        let ty = words::ty(name);
                        element =
                            Some(ty.ok_or_else(|| self.fail(format!("`{word}` is no type")))?);
                    }
                    None => {
                        let element = element.ok_or_else(|| self.fail("a type is missing"))?;
                        let mut count = 1;
                        while self.take('[') {
                            let extent = match self.peek() {
                                Some(Token::Integer(_)) => self.integer()?,
                                _ => 0,
                            };
                            count *= extent;
                            self.expect(']')?;
                        }
                        return Ok(Declared {
                            name: word,
                            align: align.unwrap_or(element.bytes()),
                            bytes: count * element.bytes(),
                            element,
                        });
                    }
                },
            }
        }
    }

    fn variable(&mut self) -> Res<()> {
        let space = match self.word()? {
            ".shared" => Space::Shared,
            ".const" => Space::Const,
            _ => Space::Global,
        };
        let declared = self.declared()?;
        let mut bytes = Vec::new();
        if self.take('=') {
            self.initial(declared.element, &mut bytes)?;
        }
        self.expect(';')?;
        self.add_variable(space, &declared, bytes);
        Ok(())
    }

    fn add_variable(&mut self, space: Space, of: &Declared<'s>, bytes: Vec<u8>) {
        let mut at = 0;
        if space == Space::Shared {
            at = self.code.shared_bytes.next_multiple_of(of.align.max(1));
            self.code.shared_bytes = at + of.bytes;
        }
        self.names
            .add(of.name, Name::Variable(self.code.variables.len()));
        self.code.variables.push(Variable {
            name: of.name.to_owned(),
            space,
            bytes,
            length: of.bytes,
            at,
        });
    }

    /// Numbers, in braces or one by itself.
    fn initial(&mut self, element: Ty, bytes: &mut Vec<u8>) -> Res<()> {
        if self.take('{') {
            while !self.take('}') {
                self.initial(element, bytes)?;
                self.take(',');
            }
            return Ok(());
        }
        let number = self.number()?;
        bytes.extend(&number.to_le_bytes()[..element.bytes() as usize]);
        Ok(())
    }

    fn function(&mut self) -> Res<()> {
        let is_kernel = self.word()? == ".entry";
        self.func = Function {
            is_kernel,
            ..Function::default()
        };
        self.names.enter();
        if self.peek() == Some(Token::Mark('(')) {
            self.func.results = self.parameters()?;
        }
        let name = self.word()?;
        self.func.name = name.to_owned();
        if self.peek() == Some(Token::Mark('(')) {
            self.func.params = self.parameters()?;
        }
        let number = self.declare(name);
        self.attributes()?;
        if self.take('{') {
            self.func.is_defined = true;
            self.names.enter();
            self.body()?;
            self.names.leave();
            self.resolve()?;
            let mut func = std::mem::take(&mut self.func);
            func.leave_unread();
            self.code.functions[number] = func;
        } else {
            self.expect(';')?;
        }
        self.names.leave();
        Ok(())
    }

    /// The number of a function; it may have been named before.
    fn declare(&mut self, name: &'s str) -> usize {
        if let Some(Name::Function(number)) = self.names.get(name) {
            return number;
        }
        let number = self.code.functions.len();
        self.names.add_outermost(name, Name::Function(number));
        self.code.functions.push(self.func.clone());
        number
    }

    fn attributes(&mut self) -> Res<()> {
        while let Some(Token::Word(word)) = self.peek() {
            self.at += 1;
            match word {
                ".maxntid" | ".reqntid" => {
                    let mut threads = self.integer()?;
                    while self.take(',') {
                        threads *= self.integer()?;
                    }
                    self.func.most_threads = Some(threads);
                }
                ".noreturn" => {}
                ".minnctapersm" | ".maxnreg" | ".pragma" => self.at += 1,
                _ => return Err(self.fail(format!("`{word}` is not known"))),
            }
        }
        Ok(())
    }

    /// Parameters or results in parentheses.
    fn parameters(&mut self) -> Res<Vec<Slot>> {
        self.expect('(')?;
        let mut all = Vec::new();
        while !self.take(')') {
            let declared = self.declared()?;
            all.push(self.parameter(&declared));
            self.take(',');
        }
        Ok(all)
    }

    fn parameter(&mut self, declared: &Declared<'s>) -> Slot {
        let align = declared.align.max(1);
        let offset = self.func.param_bytes.next_multiple_of(align);
        let slot = Slot {
            offset,
            bytes: declared.bytes,
        };
        self.func.param_bytes = offset + declared.bytes;
        self.names.add(declared.name, Name::Param(slot));
        slot
    }

    fn body(&mut self) -> Res<()> {
        let mut depth = 0;
        loop {
            let Some(token) = self.peek() else {
                return Err(self.fail("a function has no end"));
            };
            match token {
                Token::Mark('{') => {
                    self.at += 1;
                    self.names.enter();
                    depth += 1;
                }
                Token::Mark('}') => {
                    self.at += 1;
                    if depth == 0 {
                        break;
                    }
                    self.names.leave();
                    depth -= 1;
                }
                Token::Mark(';') => self.at += 1,
                Token::Word(".loc" | ".file") => self.skip_line(),
                Token::Word(word) if word.starts_with('.') => self.declaration(word)?,
                Token::Word(word)
                    if self.tokens.get(self.at + 1).map(|t| t.token) == Some(Token::Mark(':')) =>
                {
                    self.at += 2;
                    self.label(word)?;
                }
                _ => self.instruction()?,
            }
        }
        // What runs off the end returns.
        let line = self.line();
        self.push(Op::Return, None, line);
        Ok(())
    }

    /// A label, or a table of labels.
    fn label(&mut self, name: &'s str) -> Res<()> {
        if self.peek() != Some(Token::Word(".branchtargets")) {
            self.names.add_label(name, self.func.code.len());
            return Ok(());
        }
        self.at += 1;
        let mut targets = vec![self.word()?];
        while self.take(',') {
            targets.push(self.word()?);
        }
        self.tables.push((name, targets));
        self.expect(';')
    }

    fn declaration(&mut self, word: &str) -> Res<()> {
        match word {
            ".reg" => {
                self.at += 1;
                let ty = self.word()?;
                let ty = words::ty(ty.trim_start_matches('.'));
                ty.ok_or_else(|| self.fail("registers have no such type"))?;
                loop {
                    self.register()?;
                    if !self.take(',') {
                        break;
                    }
                }
            }
            ".param" => {
                let declared = self.declared()?;
                self.parameter(&declared);
            }
            ".local" => {
                let declared = self.declared()?;
                let offset = self
                    .func
                    .local_bytes
                    .next_multiple_of(declared.align.max(1));
                self.func.local_bytes = offset + declared.bytes;
                self.names.add(declared.name, Name::Local(offset));
            }
            ".shared" => {
                self.at += 1;
                let declared = self.declared()?;
                self.add_variable(Space::Shared, &declared, Vec::new());
            }
            ".pragma" => self.at += 2,
            _ => return Err(self.fail(format!("`{word}` is not known"))),
        }
        self.expect(';')
    }

    /// `%r<66>` or a name.
    fn register(&mut self) -> Res<()> {
        let name = self.word()?;
        let mut count = 1;
        let is_many = self.take('<');
        if is_many {
            count = u32::try_from(self.integer()?).unwrap_or(u32::MAX);
            self.expect('>')?;
        }
        let first = self.func.n_registers;
        let n = first.checked_add(count).filter(|&n| n < 1 << 20);
        self.func.n_registers = n.ok_or_else(|| self.fail("these are too many registers"))?;
        match is_many {
            true => self.names.add_registers(name, first, count),
            false => self.names.add_register(name, first),
        }
        Ok(())
    }

    fn push(&mut self, op: Op, guard: Option<(Reg, bool)>, line: u32) {
        self.func.code.push(Instruction { op, guard, line });
    }

    /// Branches learn where they go.
    fn resolve(&mut self) -> Res<()> {
        for pending in std::mem::take(&mut self.branches) {
            let mut targets = Vec::new();
            for label in &pending.labels {
                let target = self.names.label(label).ok_or_else(|| ParseError {
                    line: pending.line,
                    message: format!("there is no label `{label}`"),
                })?;
                targets.push(target);
            }
            match &mut self.func.code[pending.inst].op {
                Op::Branch { to } => *to = targets[0],
                Op::BranchTo { table, .. } => *table = targets,
                _ => unreachable!("only branches wait for labels"),
            }
        }
        self.names.forget_labels();
        self.tables.clear();
        Ok(())
    }

    fn peek(&self) -> Option<Token<'s>> {
        self.tokens.get(self.at).map(|placed| placed.token)
    }

    fn line(&self) -> u32 {
        let at = self.at.min(self.tokens.len().saturating_sub(1));
        self.tokens.get(at).map_or(1, |placed| placed.line)
    }

    fn fail(&self, message: impl Into<String>) -> ParseError {
        let before = self.tokens.get(self.at.saturating_sub(1));
        ParseError {
            line: before.map_or(1, |placed| placed.line),
            message: message.into(),
        }
    }

    fn unexpected<T>(&self, token: Token<'_>) -> Res<T> {
        let text = match token {
            Token::Word(word) => word.to_owned(),
            Token::Text(text) => format!("\"{text}\""),
            Token::Integer(n) => n.to_string(),
            Token::Float(bits, _) => format!("{bits:#x}"),
            Token::Mark(mark) => mark.to_string(),
        };
        Err(ParseError {
            line: self.line(),
            message: format!("`{text}` is not expected here"),
        })
    }

    fn word(&mut self) -> Res<&'s str> {
        match self.peek() {
            Some(Token::Word(word)) => {
                self.at += 1;
                Ok(word)
            }
            Some(other) => self.unexpected(other),
            None => Err(self.fail("the text ends here")),
        }
    }

    fn integer(&mut self) -> Res<u64> {
        match self.peek() {
            Some(Token::Integer(n)) => {
                self.at += 1;
                Ok(n)
            }
            Some(other) => self.unexpected(other),
            None => Err(self.fail("the text ends here")),
        }
    }

    /// A number as its bits, with its sign.
    fn number(&mut self) -> Res<u64> {
        let negative = self.take('-');
        match self.peek() {
            Some(Token::Float(bits, _)) if !negative => {
                self.at += 1;
                Ok(bits)
            }
            _ => {
                let n = self.integer()?;
                Ok(if negative { n.wrapping_neg() } else { n })
            }
        }
    }

    fn take(&mut self, mark: char) -> bool {
        let found = self.peek() == Some(Token::Mark(mark));
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, mark: char) -> Res<()> {
        match (self.take(mark), self.peek()) {
            (true, _) => Ok(()),
            (false, Some(other)) => self.unexpected(other),
            (false, None) => Err(self.fail(format!("`{mark}` is missing"))),
        }
    }

    fn skip_line(&mut self) {
        let line = self.line();
        while self.at < self.tokens.len() && self.line() == line {
            self.at += 1;
        }
    }

    fn skip_block(&mut self) {
        while self.at < self.tokens.len() && !self.take('}') {
            self.at += 1;
        }
    }
}
