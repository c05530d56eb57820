//! One table from the tables of all files.
//!
//! Invariants: tables merge key by key, arrays of tables one after the other; everything else, and an
//! app, is in one file only.

use super::Walk;
use crate::diagnostic::Kind;
use crate::places::Span;
use crate::scalar::Fault;
use std::borrow::Cow;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

type Key<'t> = Spanned<Cow<'t, str>>;

impl Walk<'_> {
    /// The first table has what is in the main file. `include` of the others has been followed.
    pub(super) fn merge<'t>(&mut self, tables: Vec<DeTable<'t>>) -> DeTable<'t> {
        let mut tables = tables.into_iter();
        let mut whole = tables.next().unwrap_or_default();
        for mut table in tables {
            table.remove("include");
            self.merge_table(&mut whole, table);
        }
        whole
    }

    fn merge_table<'t>(&mut self, whole: &mut DeTable<'t>, table: DeTable<'t>) {
        for (key, value) in table {
            let name = key.get_ref().to_string();
            match whole.get_key_value(name.as_str()).map(|(key, _)| key.span()) {
                None => {
                    whole.insert(key, value);
                }
                Some(first) => {
                    let present = whole.get_mut(name.as_str()).expect("the key was found");
                    self.path.push(name);
                    self.merge_value(present, value, &first, &key);
                    self.path.pop();
                }
            }
        }
    }

    fn merge_value<'t>(
        &mut self,
        present: &mut Spanned<DeValue<'t>>,
        value: Spanned<DeValue<'t>>,
        first: &Span,
        key: &Key<'t>,
    ) {
        let is_app = self.path.len() == 2 && self.path[0] == "app";
        match (present.get_mut(), value.into_inner()) {
            (DeValue::Table(present), DeValue::Table(more)) if !is_app => {
                self.merge_table(present, more);
            }
            (DeValue::Array(present), DeValue::Array(more))
                if has_tables(present) && has_tables(&more) =>
            {
                more.iter().for_each(|table| present.push(table.clone()));
            }
            _ => self.defined_twice(first, key, is_app),
        }
    }

    fn defined_twice(&mut self, first: &Span, key: &Key<'_>, is_app: bool) {
        let at = self.source.position(first.clone());
        let place = match at.file {
            Some(file) => format!("{}:{}", file.display(), at.line),
            None => format!("line {} of the main file", at.line),
        };
        let what = if is_app { "the app" } else { "the key" };
        let message = format!("{what} `{}` is also defined in {place}", self.path.join("."));
        let hint = Some("a key is defined in one file".to_owned());
        self.report(Kind::Duplicate, &key.span(), Fault { message, hint });
    }
}

fn has_tables(array: &DeArray<'_>) -> bool {
    array.iter().all(|value| value.get_ref().is_table())
}

/// The same table with spans in the offsets of the whole configuration.
pub(super) fn shift(table: DeTable<'_>, by: usize) -> DeTable<'_> {
    if by == 0 {
        return table;
    }
    let mut shifted = DeTable::new();
    for (key, value) in table {
        let key = Spanned::new(moved(key.span(), by), key.into_inner());
        shifted.insert(key, shift_value(value, by));
    }
    shifted
}

/// The parser bounds the depth of tables and arrays.
fn shift_value(value: Spanned<DeValue<'_>>, by: usize) -> Spanned<DeValue<'_>> {
    let span = moved(value.span(), by);
    let value = match value.into_inner() {
        DeValue::Table(table) => DeValue::Table(shift(table, by)),
        DeValue::Array(array) => {
            let mut shifted = DeArray::new();
            array.iter().for_each(|one| shifted.push(shift_value(one.clone(), by)));
            DeValue::Array(shifted)
        }
        other => other,
    };
    Spanned::new(span, value)
}

fn moved(span: Span, by: usize) -> Span {
    span.start + by..span.end + by
}
