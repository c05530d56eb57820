//! The rules of the schema for one scalar: its format, its bounds and its choices.

use super::neighbour;
use crate::diagnostic::Kind;
use crate::scalar::{Fault, Format, Written};
use crate::shape::Shape;
use serde_json::Value;

/// The keywords that constrain a scalar: those of the key, and those of the matching variant.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    pub(super) outer: Shape,
    pub(super) inner: Shape,
}

impl Rules {
    fn keyword(self, name: &str) -> Option<&'static Value> {
        self.outer.keyword(name).or_else(|| self.inner.keyword(name))
    }

    pub(super) fn check(self, written: Written<'_>) -> Result<(), (Kind, Fault)> {
        if let Some(format) = self.inner.format() {
            let magnitude = (format.inspect)(written).map_err(|fault| (Kind::BadValue, fault))?;
            return self.within_written(format, magnitude);
        }
        match written {
            Written::Text(text) => self.chosen(text),
            Written::Integer(number) => self.within(number),
            Written::Float(_) | Written::Boolean(_) => Ok(()),
        }
    }

    fn chosen(self, text: &str) -> Result<(), (Kind, Fault)> {
        let choices = self.inner.choices();
        if choices.is_empty() || choices.iter().any(|(word, _)| *word == text) {
            return Ok(());
        }
        let words: Vec<String> = choices.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let fault = Fault::new(format!("\"{text}\" is not a valid value"));
        let hint = match neighbour::nearest(text, choices.iter().map(|(word, _)| *word)) {
            Some(word) => format!("did you mean \"{word}\"?"),
            None => format!("valid values: {}", words.join(", ")),
        };
        Err((Kind::OutOfRange, fault.hint(hint)))
    }

    fn within(self, number: i64) -> Result<(), (Kind, Fault)> {
        let minimum = self.keyword("minimum").and_then(Value::as_i64).unwrap_or(i64::MIN);
        let maximum = self.keyword("maximum").and_then(Value::as_i64).unwrap_or(i64::MAX);
        if (minimum..=maximum).contains(&number) {
            return Ok(());
        }
        let bounds = match maximum {
            i64::MAX => format!("at least {minimum}"),
            _ => format!("from {minimum} to {maximum}"),
        };
        Err((Kind::OutOfRange, Fault::new(format!("{number} is out of range")).hint(bounds)))
    }

    fn within_written(self, format: &Format, magnitude: Option<u64>) -> Result<(), (Kind, Fault)> {
        let Some(magnitude) = magnitude else { return Ok(()) };
        let bound = |name: &str| {
            let value = self.keyword(name)?;
            let written = match value {
                Value::String(text) => Written::Text(text),
                other => Written::Integer(other.as_i64()?),
            };
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            Some(((format.inspect)(written).ok()??, text))
        };
        let fault = |hint| {
            Err((Kind::OutOfRange, Fault { message: "out of range".to_owned(), hint: Some(hint) }))
        };
        match (bound("x-minimum"), bound("x-maximum")) {
            (Some((least, text)), _) if magnitude < least => fault(format!("at least {text}")),
            (_, Some((most, text))) if magnitude > most => fault(format!("at most {text}")),
            _ => Ok(()),
        }
    }
}
