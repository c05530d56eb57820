//! Spans in OTLP (opentelemetry-proto 1.x, `ExportTraceServiceRequest`).
//!
//! A span is encoded once, when its request ends; an export puts resource and scope before them. Invariant:
//! text is valid UTF-8, which decoders check.

use crate::context::TraceContext;
use crate::protobuf::Message;
use crate::span::{Span, Value};

/// The program that the spans are from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Attributes such as `service.name`.
    pub attributes: Vec<(String, String)>,
    /// Version of Outboard.
    pub version: &'static str,
}

/// `SpanFlags`: the parent's context is known to be of another program, or not.
const HAS_IS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;
/// `StatusCode`.
const ERROR: u64 = 2;

/// Appends a span as an entry of `ScopeSpans.spans`.
pub fn span_entry(
    out: &mut Vec<u8>,
    context: &TraceContext,
    (state, is_remote): (&[u8], bool),
    span: &Span,
) {
    Message::new(out).message(2, |message| {
        message.bytes(1, &context.trace_id.bytes());
        message.bytes(2, &span.id.bytes());
        if !state.is_empty() {
            message.bytes(3, state);
        }
        if let Some(parent) = span.parent {
            message.bytes(4, &parent.bytes());
        }
        message.bytes(5, span.name.as_bytes());
        message.number(6, span.kind as u64);
        message.fixed_64(7, span.start_us.saturating_mul(1_000));
        // Two clocks may differ.
        message.fixed_64(8, span.end_us.max(span.start_us).saturating_mul(1_000));
        if span.status > 0 {
            let status = Value::from(u64::from(span.status));
            message.message(9, |entry| attribute(entry, "http.response.status_code", &status));
        }
        for (key, value) in &span.attributes {
            message.message(9, |entry| attribute(entry, key, value));
        }
        if let Some(error) = &span.error {
            message.message(15, |status| {
                if !error.is_empty() {
                    status.bytes(2, error.as_bytes());
                }
                status.number(3, ERROR);
            });
        }
        let remote = if is_remote { IS_REMOTE } else { 0 };
        message.fixed_32(16, u32::from(context.flags()) | HAS_IS_REMOTE | remote);
    });
}

fn attribute(entry: &mut Message<'_>, key: &str, value: &Value) {
    entry.bytes(1, key.as_bytes());
    entry.message(2, |any| match value {
        Value::Text(text) => any.bytes(1, text.as_bytes()),
        Value::Flag(flag) => any.number(2, u64::from(*flag)),
        Value::Integer(number) => any.number(3, *number as u64),
        Value::Float(number) => any.double(4, *number),
    });
}

/// A request with these entries.
pub fn request(resource: &Resource, entries: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(entries.len() + 512);
    let mut scope = Vec::new();
    Message::new(&mut scope).message(1, |scope| {
        scope.bytes(1, b"outboard");
        scope.bytes(2, resource.version.as_bytes());
    });
    scope.extend_from_slice(entries);
    Message::new(&mut out).message(1, |spans| {
        spans.message(1, |message| {
            for (key, value) in &resource.attributes {
                let value = Value::from(value.clone());
                message.message(1, |entry| attribute(entry, key, &value));
            }
        });
        spans.bytes(2, &scope);
    });
    out
}

#[cfg(test)]
mod tests;
