//! [`Directive`]: one statement of nginx or Apache, with its block.

use std::path::PathBuf;
use std::rc::Rc;

/// A statement. Sections of Apache are directives with children, like blocks of nginx.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directive {
    /// Its name; in lower case, since Apache ignores case.
    pub name: String,
    /// Its name as written.
    pub word: String,
    /// The whole line, for a statement of Apache.
    pub line_text: Option<String>,
    /// Its arguments without quotes.
    pub arguments: Vec<String>,
    /// The statements of its block.
    pub children: Vec<Directive>,
    /// The file.
    pub file: Rc<PathBuf>,
    /// The line, counted from 1.
    pub line: usize,
}

impl Directive {
    /// An argument, or an empty string.
    pub(crate) fn argument(&self, at: usize) -> &str {
        self.arguments.get(at).map_or("", String::as_str)
    }

    /// The statements of its block with this name.
    pub(crate) fn all<'d>(&'d self, name: &'d str) -> impl Iterator<Item = &'d Directive> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// The first of them.
    pub(crate) fn first(&self, name: &str) -> Option<&Directive> {
        self.children.iter().find(|child| child.name == name)
    }

    /// As it is written, without its block.
    pub(crate) fn text(&self) -> String {
        if let Some(line) = &self.line_text {
            return line.clone();
        }
        let mut text = self.word.clone();
        for argument in &self.arguments {
            text.push(' ');
            text.push_str(argument);
        }
        text
    }
}

/// The first directive with a name.
pub(crate) fn first<'d>(statements: &'d [Directive], name: &str) -> Option<&'d Directive> {
    statements.iter().find(|one| one.name == name)
}
