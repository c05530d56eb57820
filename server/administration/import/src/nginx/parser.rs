//! The syntax of nginx: words, quotes, comments, blocks and `include`.
//!
//! Invariant: the depth of blocks is bounded.

use crate::directive::Directive;
use crate::includes::Includes;
use crate::read::{ImportError, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

const DEPTH_MAX: usize = 32;

/// Parses a file with the files that it includes. A pattern in `include` becomes a statement of its own,
/// and so does a file that cannot be read: the translator lists it.
pub(crate) fn parse(
    file: &Path,
    text: &str,
    read: Read<'_>,
) -> Result<Vec<Directive>, ImportError> {
    let base = file.parent().unwrap_or(Path::new(""));
    Ok(Includes::new(read, base, &["include"], statements).resolve(statements(file, text)?))
}

fn statements(file: &Path, text: &str) -> Result<Vec<Directive>, ImportError> {
    Parser::new(file, text).statements(0)
}

struct Parser<'t> {
    file: Rc<PathBuf>,
    rest: std::iter::Peekable<std::str::Chars<'t>>,
    line: usize,
}

enum Token {
    Word(String),
    Semicolon,
    Open,
    Close,
    End,
}

impl<'t> Parser<'t> {
    fn new(file: &Path, text: &'t str) -> Self {
        Parser { file: Rc::new(file.to_owned()), rest: text.chars().peekable(), line: 1 }
    }

    fn statements(&mut self, depth: usize) -> Result<Vec<Directive>, ImportError> {
        if depth > DEPTH_MAX {
            return Err(self.error("blocks are nested too deep"));
        }
        let mut all = Vec::new();
        let mut words: Vec<String> = Vec::new();
        let mut line = self.line;
        loop {
            let token = self.token()?;
            if words.is_empty() {
                line = self.line;
            }
            let children = match token {
                Token::Word(word) => {
                    words.push(word);
                    continue;
                }
                Token::Semicolon => Vec::new(),
                // The text of a Lua block is not a configuration.
                Token::Open
                    if words.first().is_some_and(|name| name.ends_with("_by_lua_block")) =>
                {
                    self.skip_block()?;
                    Vec::new()
                }
                Token::Open => self.statements(depth + 1)?,
                Token::Close if depth > 0 && words.is_empty() => return Ok(all),
                Token::End if depth == 0 && words.is_empty() => return Ok(all),
                Token::Close => return Err(self.error("unexpected `}`")),
                Token::End => return Err(self.error("the file ends within a statement or a block")),
            };
            if words.is_empty() {
                return Err(self.error("a statement without a name"));
            }
            let word = words.remove(0);
            let (name, file) = (word.to_ascii_lowercase(), self.file.clone());
            let arguments = std::mem::take(&mut words);
            all.push(Directive { name, word, line_text: None, arguments, children, file, line });
        }
    }

    fn token(&mut self) -> Result<Token, ImportError> {
        loop {
            match self.rest.peek().copied() {
                None => return Ok(Token::End),
                Some('#') => while self.rest.next_if(|c| *c != '\n').is_some() {},
                Some(c) if c.is_whitespace() => {
                    self.next();
                }
                Some(';') => return Ok(self.take(Token::Semicolon)),
                Some('{') => return Ok(self.take(Token::Open)),
                Some('}') => return Ok(self.take(Token::Close)),
                Some(quote @ ('"' | '\'')) => return self.quoted(quote),
                Some(_) => return Ok(Token::Word(self.word())),
            }
        }
    }

    fn take(&mut self, token: Token) -> Token {
        self.next();
        token
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest.next();
        self.line += usize::from(next == Some('\n'));
        next
    }

    fn quoted(&mut self, quote: char) -> Result<Token, ImportError> {
        self.next();
        let mut word = String::new();
        loop {
            match self.next() {
                Some(c) if c == quote => return Ok(Token::Word(word)),
                Some('\\') => match self.next() {
                    Some(c) if c == quote || c == '\\' => word.push(c),
                    Some(c) => word.extend(['\\', c]),
                    None => {}
                },
                Some(c) => word.push(c),
                None => return Err(self.error("a quoted text has no end")),
            }
        }
    }

    /// Braces of a variable such as `${name}` belong to the word.
    fn word(&mut self) -> String {
        let mut word = String::new();
        let mut in_variable = false;
        while let Some(c) = self.rest.peek().copied() {
            let opens = c == '{' && word.ends_with('$');
            let ends = c.is_whitespace() || c == ';' || (c == '{' && !opens);
            if ends && !in_variable {
                break;
            }
            in_variable = (in_variable || opens) && c != '}';
            word.push(c);
            self.next();
            if c == '\\'
                && let Some(escaped) = self.next()
            {
                word.push(escaped);
            }
        }
        word
    }

    fn skip_block(&mut self) -> Result<(), ImportError> {
        let mut depth = 1_usize;
        while depth > 0 {
            match self.next() {
                Some('{') => depth += 1,
                Some('}') => depth -= 1,
                Some(_) => {}
                None => return Err(self.error("a block has no end")),
            }
        }
        Ok(())
    }

    fn error(&self, message: &str) -> ImportError {
        let file = self.file.as_ref().clone();
        ImportError::Syntax { file, line: self.line, message: message.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn parse_text(text: &str) -> Result<Vec<Directive>, ImportError> {
        parse(Path::new("nginx.conf"), text, &|_| Err(io::ErrorKind::NotFound.into()))
    }

    #[test]
    fn words_quotes_and_blocks_are_parsed() {
        let all = parse_text("a 'x; y' \"\\\"\" ${b}c; # d\ne ~ \\.php$ {\n f;\n}\n").unwrap();
        assert_eq!(all[0].arguments, ["x; y", "\"", "${b}c"]);
        assert_eq!((all[1].name.as_str(), all[1].line), ("e", 2));
        assert_eq!(all[1].arguments, ["~", "\\.php$"]);
        assert_eq!((all[1].children[0].name.as_str(), all[1].children[0].line), ("f", 3));
    }

    #[test]
    fn an_included_file_takes_the_place_of_its_statement() {
        let read = |path: &Path| match path.to_str() {
            Some("/etc/nginx/php.conf") => Ok("b;".to_owned()),
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        let text = "a { include php.conf; include none; }";
        let all = parse(Path::new("/etc/nginx/nginx.conf"), text, &read).unwrap();
        let names: Vec<&str> = all[0].children.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["b", "include"]);
    }

    #[test]
    fn broken_files_are_errors() {
        for text in ["a", "a {", "}", "a 'b", ";", "{}", &"a{".repeat(100), "x_by_lua_block {"] {
            assert!(parse_text(text).is_err(), "{text}");
        }
    }
}
