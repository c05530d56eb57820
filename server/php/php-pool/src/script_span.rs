//! Spans that scripts record with `Outboard\span()`.
//!
//! Called by the pool as it reads the rings, so that a span comes before the end of its request. Invariant: what a
//! worker sends is text and numbers; it never fails a request (by its type: [`add`] returns nothing).

use outboard_ring::span::SpanCall;
use outboard_trace::{Kind, Scope, Span, Value};
use std::borrow::Cow;

/// Adds a span to the trace of its request, if there is one.
pub(crate) fn add(trace: Option<&Scope>, call: &SpanCall<'_>) {
    let Some(outer) = trace.filter(|outer| outer.takes_spans()) else { return };
    let mut texts = call.texts().map(|text| String::from_utf8_lossy(text).into_owned());
    let name = texts.next().filter(|name| !name.is_empty()).unwrap_or_else(|| "span".to_owned());
    let error = texts.next().unwrap_or_default();
    let id_of = |number| outer.part(number).span_id();
    let mut span = Span::new(id_of(call.id), Kind::Internal, name);
    span.parent = (call.parent != 0).then(|| id_of(call.parent));
    span = span.between(call.start_us, call.end_us);
    if call.has_failed {
        if !error.is_empty() {
            span.attributes.push((Cow::Borrowed("exception.type"), Value::from(error.clone())));
        }
        span.error = Some(Cow::Owned(error));
    }
    while let (Some(key), Some(written)) = (texts.next(), texts.next()) {
        let is_known = span.attributes.iter().any(|(known, _)| *known == key);
        if let Some(value) = value(&written).filter(|_| !key.is_empty() && !is_known) {
            span.attributes.push((Cow::Owned(key), value));
        }
    }
    outer.add(span);
}

/// A value behind the letter of its kind.
fn value(written: &str) -> Option<Value> {
    let (kind, text) = (written.get(..1)?, written.get(1..)?);
    Some(match kind {
        "s" => Value::from(text.to_owned()),
        "i" => Value::Integer(text.parse().ok()?),
        "f" => Value::Float(text.parse().ok()?),
        "b" => Value::Flag(text == "1"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_type_that_they_have_in_php() {
        assert_eq!(value("s12"), Some(Value::from("12")));
        assert_eq!(value("i-12"), Some(Value::Integer(-12)));
        assert_eq!(value("f1.5"), Some(Value::Float(1.5)));
        assert_eq!((value("b1"), value("b0")), (Some(Value::Flag(true)), Some(Value::Flag(false))));
        for bad in ["", "x", "i1x", "f", "é"] {
            assert_eq!(value(bad), None, "{bad}");
        }
        assert_eq!(value("s"), Some(Value::from("")));
    }
}
