//! A collector's decoder of OTLP, stricter than most, for tests here and end to end.
//!
//! Invariant: unknown fields, wrong types, numbers that are longer than necessary and text that is not
//! UTF-8 are errors.

use std::collections::BTreeMap;

/// A span as a collector knows it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Received {
    /// Attributes of the program.
    pub resource: BTreeMap<String, String>,
    /// In hexadecimal digits.
    pub trace_id: String,
    /// In hexadecimal digits.
    pub span_id: String,
    /// In hexadecimal digits; empty: none.
    pub parent: String,
    /// `tracestate`.
    pub state: String,
    /// The name.
    pub name: String,
    /// `SpanKind`.
    pub kind: u64,
    /// Nanoseconds since the epoch.
    pub start_ns: u64,
    /// The same of its end.
    pub end_ns: u64,
    /// Attributes, in text.
    pub attributes: BTreeMap<String, String>,
    /// The message of a failed span.
    pub error: Option<String>,
    /// `flags`.
    pub flags: u32,
}

/// Why a request is refused.
pub type Refusal = String;

enum Field<'a> {
    Number(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
}

fn varint(rest: &mut &[u8]) -> Result<u64, Refusal> {
    let mut value: u64 = 0;
    for shift in (0..70).step_by(7) {
        let (first, tail) = rest.split_first().ok_or("a number is cut")?;
        *rest = tail;
        let digit = u64::from(first & 0x7f);
        if shift == 63 && digit > 1 {
            return Err("a number is too large".into());
        }
        value |= digit << shift;
        if first & 0x80 == 0 {
            return match digit == 0 && shift > 0 {
                true => Err("a number is longer than necessary".into()),
                false => Ok(value),
            };
        }
    }
    Err("a number does not end".into())
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], Refusal> {
    let (taken, tail) = rest.split_at_checked(length).ok_or("a field is cut")?;
    *rest = tail;
    Ok(taken)
}

fn each<'a>(
    mut message: &'a [u8],
    mut read: impl FnMut(u32, Field<'a>) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    while !message.is_empty() {
        let key = varint(&mut message)?;
        let field = match key & 7 {
            0 => Field::Number(varint(&mut message)?),
            1 => Field::Fixed64(u64::from_le_bytes(take(&mut message, 8)?.try_into().expect("8"))),
            2 => {
                let length = varint(&mut message)? as usize;
                Field::Bytes(take(&mut message, length)?)
            }
            5 => Field::Fixed32(u32::from_le_bytes(take(&mut message, 4)?.try_into().expect("4"))),
            other => return Err(format!("the wire type {other}")),
        };
        read((key >> 3) as u32, field)?;
    }
    Ok(())
}

fn text(bytes: &[u8]) -> Result<String, Refusal> {
    String::from_utf8(bytes.to_vec()).map_err(|error| error.to_string())
}

fn hex(bytes: &[u8], length: usize) -> Result<String, Refusal> {
    match bytes.len() == length {
        true => Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
        false => Err(format!("an id of {} bytes", bytes.len())),
    }
}

fn unexpected<T>(message: &str, field: u32) -> Result<T, Refusal> {
    Err(format!("field {field} of {message}"))
}

fn attribute(entry: &[u8]) -> Result<(String, String), Refusal> {
    let (mut key, mut value) = (String::new(), None);
    each(entry, |field, content| match (field, content) {
        (1, Field::Bytes(bytes)) => text(bytes).map(|text| key = text),
        (2, Field::Bytes(any)) => each(any, |field, content| {
            value = Some(match (field, content) {
                (1, Field::Bytes(bytes)) => text(bytes)?,
                (2, Field::Number(flag @ 0..=1)) => (flag == 1).to_string(),
                (3, Field::Number(number)) => (number as i64).to_string(),
                (4, Field::Fixed64(bits)) => f64::from_bits(bits).to_string(),
                (other, _) => return unexpected("AnyValue", other),
            });
            Ok(())
        }),
        (other, _) => unexpected("KeyValue", other),
    })?;
    match (key.is_empty(), value) {
        (false, Some(value)) => Ok((key, value)),
        _ => Err("an attribute without a key or a value".into()),
    }
}

fn span(message: &[u8], resource: &BTreeMap<String, String>) -> Result<Received, Refusal> {
    let mut span = Received { resource: resource.clone(), ..Received::default() };
    each(message, |field, content| {
        match (field, content) {
            (1, Field::Bytes(id)) => span.trace_id = hex(id, 16)?,
            (2, Field::Bytes(id)) => span.span_id = hex(id, 8)?,
            (3, Field::Bytes(bytes)) => span.state = text(bytes)?,
            (4, Field::Bytes(id)) => span.parent = hex(id, 8)?,
            (5, Field::Bytes(bytes)) => span.name = text(bytes)?,
            (6, Field::Number(kind @ 1..=5)) => span.kind = kind,
            (7, Field::Fixed64(ns)) => span.start_ns = ns,
            (8, Field::Fixed64(ns)) => span.end_ns = ns,
            (9, Field::Bytes(entry)) => {
                let (key, value) = attribute(entry)?;
                if span.attributes.insert(key.clone(), value).is_some() {
                    return Err(format!("two attributes {key}"));
                }
            }
            (15, Field::Bytes(status)) => {
                let (mut message, mut code) = (String::new(), 0);
                each(status, |field, content| match (field, content) {
                    (2, Field::Bytes(bytes)) => text(bytes).map(|text| message = text),
                    (3, Field::Number(number @ 0..=2)) => {
                        code = number;
                        Ok(())
                    }
                    (other, _) => unexpected("Status", other),
                })?;
                span.error = (code == 2).then_some(message);
            }
            (16, Field::Fixed32(flags)) => span.flags = flags,
            (other, _) => return unexpected("Span", other),
        }
        Ok(())
    })?;
    let is_valid = !span.trace_id.is_empty() && !span.span_id.is_empty() && !span.name.is_empty();
    match is_valid && span.end_ns >= span.start_ns && span.start_ns > 0 {
        true => Ok(span),
        false => Err(format!("an incomplete span: {span:?}")),
    }
}

/// Decodes an `ExportTraceServiceRequest`.
///
/// # Errors
/// What is wrong with it.
pub fn decode(request: &[u8]) -> Result<Vec<Received>, Refusal> {
    let mut spans = Vec::new();
    each(request, |field, content| {
        let (1, Field::Bytes(of_resource)) = (field, content) else {
            return unexpected("ExportTraceServiceRequest", field);
        };
        let mut resource = BTreeMap::new();
        each(of_resource, |field, content| match (field, content) {
            (1, Field::Bytes(message)) => each(message, |field, content| match (field, content) {
                (1, Field::Bytes(entry)) => attribute(entry).map(|(key, value)| {
                    resource.insert(key, value);
                }),
                (other, _) => unexpected("Resource", other),
            }),
            (2, Field::Bytes(of_scope)) => {
                each(of_scope, |field, content| match (field, content) {
                    (1, Field::Bytes(scope)) => {
                        each(scope, |field, content| match (field, content) {
                            (1 | 2, Field::Bytes(bytes)) => text(bytes).map(drop),
                            (other, _) => unexpected("InstrumentationScope", other),
                        })
                    }
                    (2, Field::Bytes(message)) => {
                        span(message, &resource).map(|span| spans.push(span))
                    }
                    (other, _) => unexpected("ScopeSpans", other),
                })
            }
            (other, _) => unexpected("ResourceSpans", other),
        })
    })?;
    Ok(spans)
}
