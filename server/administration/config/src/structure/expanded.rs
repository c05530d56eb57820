//! Values that contain `${…}`: the walk expands them and reads the result as the key requires.

use super::{Rules, Walk};
use crate::diagnostic::Kind;
use crate::expansion::Unexpanded;
use crate::places::Span;
use crate::scalar::{Fault, Written};
use crate::shape::Shape;
use serde_json::Value;

impl Walk<'_> {
    /// The expanded value: a string where the key accepts that string, and otherwise the number or the
    /// boolean that it spells.
    pub(super) fn expanded(&mut self, shape: Shape, written: &str, span: &Span) -> Option<Value> {
        let expanded = match self.expansion.expand(written) {
            Ok(expanded) => expanded,
            Err(Unexpanded { kind, mut fault }) => {
                fault.message = format!("{}: {}", self.name(), fault.message);
                self.report(kind, span, fault);
                return None;
            }
        };
        self.tree.places.record_sources(&self.path, expanded.sources);
        self.tree.secrets.extend(expanded.secrets);
        let spellings = spellings(&expanded.text);
        let accepted = spellings.iter().find_map(|(kind, written)| {
            let rules = rules_for(shape, kind)?;
            rules.check(*written).is_ok().then_some((rules, *written))
        });
        let possible = || {
            spellings.iter().find_map(|(kind, written)| Some((rules_for(shape, kind)?, *written)))
        };
        match accepted.or_else(possible) {
            Some((rules, written)) => self.scalar(rules, written, span.clone()),
            None => {
                let expected = super::expectations(shape);
                let message =
                    format!("{}: expected {expected}, found a string after expansion", self.name());
                let hint = shape.hint().map(str::to_owned);
                self.report(Kind::WrongType, span, Fault { message, hint });
                None
            }
        }
    }
}

/// What a text can be, by JSON type.
fn spellings(text: &str) -> Vec<(&'static str, Written<'_>)> {
    let mut all = vec![("string", Written::Text(text))];
    if let Ok(number) = text.parse() {
        all.push(("integer", Written::Integer(number)));
    } else if let Ok(number) = text.parse::<f64>() {
        all.push(("number", Written::Float(number)));
    }
    if let Ok(yes) = text.parse() {
        all.push(("boolean", Written::Boolean(yes)));
    }
    all
}

fn rules_for(shape: Shape, kind: &str) -> Option<Rules> {
    let fits =
        |types: &[&str]| types.contains(&kind) || (kind == "integer" && types.contains(&"number"));
    let inner = shape.variants().into_iter().find(|variant| fits(&variant.types()))?;
    Some(Rules { outer: shape, inner })
}
