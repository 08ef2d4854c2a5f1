//! PTX as words.

use crate::error::ParseError;

/// A word of the text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Token<'s> {
    /// A name with all its points: `ld.global.b32`, `.reg`, `%r1`, `$L__BB0_1`.
    Word(&'s str),
    /// An integer, as its bits.
    Integer(u64),
    /// The bits of a float: `0f3F800000`, `0d3FF0..`.
    Float(u64, u32),
    Text(&'s str),
    Mark(char),
}

/// A word with its line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed<'s> {
    pub(crate) token: Token<'s>,
    pub(crate) line: u32,
}

/// The words of a text.
pub(crate) fn lex(text: &str) -> Result<Vec<Placed<'_>>, ParseError> {
    let mut lexer = Lexer {
        text,
        at: 0,
        line: 1,
        found: Vec::new(),
    };
    while lexer.next()? {}
    Ok(lexer.found)
}

struct Lexer<'s> {
    text: &'s str,
    at: usize,
    line: u32,
    found: Vec<Placed<'s>>,
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%' | '.')
}

impl<'s> Lexer<'s> {
    fn rest(&self) -> &'s str {
        &self.text[self.at..]
    }

    fn push(&mut self, token: Token<'s>, length: usize) {
        self.found.push(Placed {
            token,
            line: self.line,
        });
        self.at += length;
    }

    fn fail(&self, message: impl Into<String>) -> ParseError {
        ParseError {
            line: self.line,
            message: message.into(),
        }
    }

    /// One word; false at the end.
    fn next(&mut self) -> Result<bool, ParseError> {
        let rest = self.rest();
        let Some(c) = rest.chars().next() else {
            return Ok(false);
        };
        match c {
            '\n' => {
                self.line += 1;
                self.at += 1;
            }
            c if c.is_whitespace() => self.at += c.len_utf8(),
            '/' if rest.starts_with("//") => self.at += rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => {
                let end = rest
                    .find("*/")
                    .ok_or_else(|| self.fail("an open comment"))?;
                self.line += rest[..end].matches('\n').count() as u32;
                self.at += end + 2;
            }
            '"' => {
                let inside = &rest[1..];
                let end = inside.find('"').ok_or_else(|| self.fail("an open text"))?;
                self.push(Token::Text(&inside[..end]), end + 2);
            }
            c if c.is_ascii_digit() => self.number(rest)?,
            c if is_word(c) => {
                let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                self.push(Token::Word(&rest[..length]), length);
            }
            '{' | '}' | '(' | ')' | '[' | ']' | '<' | '>' | ',' | ';' | ':' | '=' | '+' | '-'
            | '@' | '!' | '|' => self.push(Token::Mark(c), 1),
            c => return Err(self.fail(format!("`{c}` is no PTX"))),
        }
        Ok(true)
    }

    fn number(&mut self, rest: &'s str) -> Result<(), ParseError> {
        let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let word = &rest[..length];
        let bits = |digits: &str, radix| u64::from_str_radix(digits, radix).ok();
        let lower = word.to_ascii_lowercase();
        let digits = lower.trim_end_matches('u');
        let token = if let Some(digits) = lower.strip_prefix("0f") {
            bits(digits, 16).map(|v| Token::Float(v, 32))
        } else if let Some(digits) = lower.strip_prefix("0d") {
            bits(digits, 16).map(|v| Token::Float(v, 64))
        } else if let Some(digits) = digits.strip_prefix("0x") {
            bits(digits, 16).map(Token::Integer)
        } else if let Some(digits) = digits.strip_prefix("0b") {
            bits(digits, 2).map(Token::Integer)
        } else if digits.contains('.') {
            // The only ones that are written so are those of `.version 8.0`.
            Some(Token::Word(word))
        } else if digits.len() > 1 && digits.starts_with('0') {
            bits(digits, 8).map(Token::Integer)
        } else {
            bits(digits, 10).map(Token::Integer)
        };
        let token = token.ok_or_else(|| self.fail(format!("`{word}` is no number")))?;
        self.push(token, length);
        Ok(())
    }
}
