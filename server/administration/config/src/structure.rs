//! Validates the parsed TOML against the schema: unknown keys, missing keys, wrong types, values
//! that are invalid or out of range.
//!
//! Valid parts result in a clean tree for serde and its [`Places`]; invalid parts are left out and
//! become diagnostics, so that one error does not hide the others. Recursion is bounded by the
//! depth of the schema, not of the file.

mod expanded;
mod merge;
mod neighbour;
mod php_settings;
mod rules;
mod syntax;
#[cfg(test)]
mod tests;
mod written;
mod wrong_type;

use crate::diagnostic::{Diagnostic, Kind};
use crate::expansion::Expansion;
use crate::places::{Places, Span};
use crate::scalar::{Fault, Written};
use crate::shape::Shape;
use crate::source::{Source, SourceFile};
use rules::Rules;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeArray, DeInteger, DeTable, DeValue};
use written::json_type;

/// Bounds the output for a large file that is not a configuration.
const ERRORS_MAX: usize = 100;

/// The valid part of a configuration.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) root: Map<String, Value>,
    pub(crate) places: Places,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Parts of values that must not be printed.
    pub(crate) secrets: Vec<String>,
}

/// Parses and walks the texts. `diagnostics` has the errors of includes.
pub(crate) fn read(
    source: &Source<'_>,
    expansion: Expansion<'_>,
    diagnostics: Vec<Diagnostic>,
) -> Tree {
    let tree = Tree { diagnostics, ..Tree::default() };
    let mut walk = Walk { source, expansion, path: Vec::new(), tree };
    let mut tables = Vec::new();
    for file in source.files() {
        let (table, errors) = DeTable::parse_recoverable(&file.text);
        walk.syntax(file, errors);
        tables.push(merge::shift(table.into_inner(), file.start));
    }
    // After a syntax error the rest of the tree is a guess, and errors in it may be spurious.
    if walk.tree.diagnostics.is_empty() {
        let table = walk.merge(tables);
        if let Some(root) = walk.table(Shape::file(), &table, &(0..0)) {
            walk.tree.root = root;
        }
    }
    walk.tree
}

struct Walk<'s> {
    source: &'s Source<'s>,
    expansion: Expansion<'s>,
    /// The keys that lead to where the walk is.
    path: Vec<String>,
    tree: Tree,
}

impl Walk<'_> {
    /// Reports the first error of each line; later ones are usually consequences.
    fn syntax(&mut self, file: &SourceFile<'_>, mut errors: Vec<toml::de::Error>) {
        let start =
            |error: &toml::de::Error| file.start + error.span().map_or(0, |span| span.start);
        errors.sort_by_key(start);
        errors.dedup_by_key(|error| file.line(start(error)));
        let foreign = if errors.is_empty() { None } else { syntax::foreign(&file.text) };
        for (index, error) in errors.iter().take(ERRORS_MAX).enumerate() {
            let message = sentence(error.message());
            let span = error.span().unwrap_or_default();
            let hint = match foreign {
                Some(hint) => (index == 0).then(|| hint.to_owned()),
                None => syntax::hint(&file.text, &span, &message),
            };
            let span = start(error)..file.start + span.end;
            self.report(Kind::Syntax, &span, Fault { message, hint });
        }
    }

    fn report(&mut self, kind: Kind, span: &Span, fault: Fault) {
        self.tree.diagnostics.push(Diagnostic {
            kind,
            position: Some(self.source.position(span.clone())),
            key: (!self.path.is_empty()).then(|| self.path.join(".")),
            message: fault.message,
            hint: fault.hint,
        });
    }

    /// The clean table, or `None` if a required key is missing or invalid.
    fn table(
        &mut self,
        shape: Shape,
        table: &DeTable<'_>,
        place: &Span,
    ) -> Option<Map<String, Value>> {
        let mut clean = Map::new();
        for (key, value) in table {
            if self.tree.diagnostics.len() >= ERRORS_MAX {
                return None;
            }
            if let Some(value) = self.entry(shape, key, value) {
                clean.insert(key.get_ref().to_string(), value);
            }
        }
        let mut whole = true;
        for required in shape.required() {
            whole &= clean.contains_key(required);
            if !table.contains_key(required) {
                let what = format!("`{required}` is missing in {}", self.here());
                let hint = shape.key(required).and_then(Shape::hint);
                self.report(
                    Kind::MissingKey,
                    place,
                    Fault { message: what, hint: hint.map(str::to_owned) },
                );
            }
        }
        whole.then_some(clean)
    }

    fn entry(
        &mut self,
        shape: Shape,
        key: &Spanned<std::borrow::Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<Value> {
        let name = key.get_ref().as_ref();
        // In a table with keys of its own, free names are those of tables.
        let is_free = value.get_ref().is_table() || shape.keys().next().is_none();
        let free = shape.free_value().filter(|_| is_free);
        let Some(inner) = shape.key(name).or(free) else {
            let message = format!("unknown key `{name}` in {}", self.here());
            let hint = neighbour::hint(shape, &self.path, name, value.get_ref());
            self.report(Kind::UnknownKey, &key.span(), Fault { message, hint });
            return None;
        };
        if shape.key(name).is_none()
            && let Some(format) = shape.free_key().and_then(Shape::format)
            && let Err(fault) = (format.inspect)(Written::Text(name))
        {
            self.report(Kind::BadValue, &key.span(), fault);
            return None;
        }
        self.path.push(name.to_owned());
        let clean = self.value(inner, value, &key.span());
        if clean.is_some() {
            self.tree.places.record(&self.path, key.span(), value.span());
        }
        self.path.pop();
        clean
    }

    fn value(&mut self, shape: Shape, value: &Spanned<DeValue<'_>>, key: &Span) -> Option<Value> {
        if let DeValue::String(text) = value.get_ref()
            && text.contains("${")
            && !shape.is_literal()
        {
            return self.expanded(shape, text, &value.span());
        }
        let found = json_type(value.get_ref());
        let fits = |types: &[&str]| {
            types.contains(&found) || (found == "integer" && types.contains(&"number"))
        };
        let variant = shape.variants().into_iter().find(|variant| fits(&variant.types()));
        let Some(variant) = variant else {
            self.wrong_type(shape, value);
            return None;
        };
        let rules = Rules { outer: shape, inner: variant };
        match value.get_ref() {
            DeValue::Table(table) => self.table(variant, table, key).map(Value::Object),
            DeValue::Array(array) => Some(self.array(variant, array, key)),
            DeValue::String(text) => self.scalar(rules, Written::Text(text), value.span()),
            DeValue::Boolean(yes) => self.scalar(rules, Written::Boolean(*yes), value.span()),
            DeValue::Integer(digits) => match integer(digits) {
                Some(number) => self.scalar(rules, Written::Integer(number), value.span()),
                None => {
                    self.report(
                        Kind::OutOfRange,
                        &value.span(),
                        Fault::new("the number is too large"),
                    );
                    None
                }
            },
            DeValue::Float(digits) => {
                let number = digits.as_str().parse().unwrap_or(f64::NAN);
                self.scalar(rules, Written::Float(number), value.span())
            }
            DeValue::Datetime(_) => {
                self.wrong_type(shape, value);
                None
            }
        }
    }

    /// Invalid elements are left out; the others move up, and so do their places.
    fn array(&mut self, shape: Shape, array: &DeArray<'_>, key: &Span) -> Value {
        let mut clean = Vec::new();
        let Some(items) = shape.items() else { return Value::Array(clean) };
        for element in array.iter() {
            let place = if element.get_ref().is_table() { element.span() } else { key.clone() };
            self.path.push(clean.len().to_string());
            if let Some(value) = self.value(items, element, &place) {
                self.tree.places.record(&self.path, place, element.span());
                clean.push(value);
            }
            self.path.pop();
        }
        Value::Array(clean)
    }

    fn scalar(&mut self, rules: Rules, written: Written<'_>, span: Span) -> Option<Value> {
        match rules.check(written) {
            Ok(()) => Some(match written {
                Written::Text(text) => text.into(),
                Written::Integer(number) => number.into(),
                Written::Float(number) => number.into(),
                Written::Boolean(yes) => yes.into(),
            }),
            Err((kind, mut fault)) => {
                if let Some(hint) = rules.outer.hint().or(rules.inner.hint()) {
                    fault.hint = Some(hint.to_owned());
                }
                fault.message = format!("{}: {}", self.name(), fault.message);
                self.report(kind, &span, fault);
                None
            }
        }
    }

    fn wrong_type(&mut self, shape: Shape, value: &Spanned<DeValue<'_>>) {
        let message = format!(
            "{}: expected {}, found {}",
            self.name(),
            expectations(shape),
            spoken(json_type(value.get_ref()))
        );
        let hint = wrong_type::hint(shape, &self.path, value.get_ref());
        self.report(Kind::WrongType, &value.span(), Fault { message, hint });
    }

    /// The table the walk is in, as it is written: `[app.blog.pool]`.
    fn here(&self) -> String {
        written::section(&self.path)
    }

    /// The key the walk is at, without the positions of array elements.
    fn name(&self) -> String {
        let key = self.path.iter().rev().find(|step| step.parse::<usize>().is_err());
        format!("`{}`", key.map_or("", String::as_str))
    }
}

fn expectations(shape: Shape) -> String {
    let expected: Vec<String> = shape.variants().into_iter().map(expectation).collect();
    expected.join(" or ")
}

fn expectation(shape: Shape) -> String {
    if let Some(format) = shape.format() {
        return format.expected.to_owned();
    }
    let choices = shape.choices();
    if (1..=4).contains(&choices.len()) {
        let words: Vec<String> = choices.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        return words.join(" or ");
    }
    let types: Vec<&str> = shape.types().into_iter().map(spoken).collect();
    types.join(" or ")
}

/// A JSON type in TOML's words.
fn spoken(json_type: &str) -> &'static str {
    match json_type {
        "string" => "a string",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "a boolean",
        "array" => "an array",
        "object" => "a table",
        _ => "a date",
    }
}

fn integer(digits: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(digits.as_str(), digits.radix()).ok()
}

/// The parser's message as one line.
fn sentence(message: &str) -> String {
    message.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}
