//! The words of IR text.

use std::fmt;

/// Why a text is not IR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// Where in the text it is, in bytes: the beginning of the word that is wrong.
    pub at: usize,
    /// The error message.
    pub message: String,
}

impl ParseError {
    /// An error at a byte of a text.
    pub fn new(text: &str, at: usize, message: String) -> Self {
        let line = text[..at].bytes().filter(|&b| b == b'\n').count() + 1;
        Self { line, at, message }
    }

    /// The message with the line of the text and a mark below it.
    pub fn shown(&self, text: &str) -> String {
        /// The most characters of a line on each side of the mark.
        const MOST: usize = 60;
        let begin = text[..self.at].rfind('\n').map_or(0, |end| end + 1);
        let line = text[begin..].lines().next().unwrap_or("");
        let at = text[begin..self.at].chars().count();
        let first = at.saturating_sub(MOST);
        let part: String = line.chars().skip(first).take(2 * MOST).collect();
        let number = self.line.to_string();
        let (margin, indent) = (number.len(), at - first);
        format!(
            "line {number}: {}\n{number} | {}\n{:margin$} | {:indent$}^",
            self.message,
            part.replace(char::is_control, " "),
            "",
            ""
        )
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ParseError {}

/// Reads words, strings and punctuation; white space and comments from `;` to the end of a line
/// separate them.
pub struct Lexer<'t> {
    text: &'t str,
    pos: usize,
    /// Where the latest word begins.
    start: usize,
}

fn in_word(c: char) -> bool {
    c.is_alphanumeric() || "_.?:-+".contains(c)
}

impl<'t> Lexer<'t> {
    /// Reads a text from its beginning.
    pub fn new(text: &'t str) -> Self {
        Self {
            text,
            pos: 0,
            start: 0,
        }
    }

    /// An error at the latest word.
    pub fn error(&self, message: String) -> ParseError {
        ParseError::new(self.text, self.start, message)
    }

    /// Where the next word begins, in bytes.
    pub fn next_at(&mut self) -> usize {
        self.rest();
        self.pos
    }

    fn rest(&mut self) -> &'t str {
        loop {
            let rest = &self.text[self.pos..];
            let trimmed = rest.trim_start();
            self.pos += rest.len() - trimmed.len();
            if !trimmed.starts_with(';') {
                return trimmed;
            }
            self.pos += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    /// Whether nothing comes any more.
    pub fn at_end(&mut self) -> bool {
        self.rest().is_empty()
    }

    /// Whether `text` comes next; a word must end there too.
    pub fn peek(&mut self, text: &str) -> bool {
        let Some(after) = self.rest().strip_prefix(text) else {
            return false;
        };
        let is_word = text.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        !(is_word && after.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    }

    /// Whether an id such as `tree0` comes next.
    pub fn peek_id(&mut self, prefix: &str) -> bool {
        self.rest()
            .strip_prefix(prefix)
            .is_some_and(|r| r.starts_with(|c: char| c.is_ascii_digit()))
    }

    /// Reads `text`, if it comes next.
    pub fn accept(&mut self, text: &str) -> bool {
        let found = self.peek(text);
        if found {
            self.start = self.pos;
            self.pos += text.len();
        }
        found
    }

    /// Reads `text`.
    ///
    /// # Errors
    /// If something else comes next.
    pub fn expect(&mut self, text: &str) -> Result<(), ParseError> {
        if self.accept(text) {
            return Ok(());
        }
        let found: String = self.rest().chars().take(20).collect();
        self.start = self.pos;
        Err(self.error(format!(
            "expected `{text}`, found `{}`",
            found.lines().next().unwrap_or("")
        )))
    }

    /// A name, a number or a dotted path; a colon belongs to it unless it ends the word.
    pub fn word(&mut self) -> Result<String, ParseError> {
        let rest = self.rest();
        let end = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
        let word = rest[..end].trim_end_matches(':');
        self.start = self.pos;
        if word.is_empty() {
            let found: String = rest.chars().take(1).collect();
            return Err(self.error(format!("expected a name or a number, found `{found}`")));
        }
        self.pos += word.len();
        Ok(word.to_owned())
    }

    /// A number.
    ///
    /// # Errors
    /// If something else comes next.
    pub fn number(&mut self) -> Result<u32, ParseError> {
        let word = self.word()?;
        word.parse()
            .map_err(|_| self.error(format!("expected a number, found `{word}`")))
    }

    /// A string in double quotes with Rust's escapes.
    pub fn string(&mut self) -> Result<String, ParseError> {
        self.expect("\"")?;
        let mut out = String::new();
        let mut chars = self.text[self.pos..].char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.pos += at + 1;
                    return Ok(out);
                }
                '\\' => match chars.next().map(|(_, c)| c) {
                    Some('n') => out.push('\n'),
                    Some('t') => out.push('\t'),
                    Some('r') => out.push('\r'),
                    Some('0') => out.push('\0'),
                    Some('u') => {
                        let digits: String = chars
                            .by_ref()
                            .map(|(_, c)| c)
                            .skip(1)
                            .take_while(|&c| c != '}')
                            .collect();
                        out.extend(
                            u32::from_str_radix(&digits, 16)
                                .ok()
                                .and_then(char::from_u32),
                        );
                    }
                    Some(c) => out.push(c),
                    None => break,
                },
                c => out.push(c),
            }
        }
        Err(self.error("the string has no end".into()))
    }

    /// The text up to the brace that closes the one just read; the brace is read too.
    pub fn until_closing_brace(&mut self) -> Result<&'t str, ParseError> {
        let start = self.pos;
        let mut depth = 1;
        for (at, c) in self.text[start..].char_indices() {
            depth += i32::from(c == '{') - i32::from(c == '}');
            if depth == 0 {
                self.pos = start + at + 1;
                return Ok(&self.text[start..start + at]);
            }
        }
        Err(self.error("missing `}`".into()))
    }
}
