//! [`PartialSuccess`]: what a collector that has accepted a request did not accept of it.
//!
//! `ExportTraceServiceResponse` of opentelemetry-proto. Invariants: any bytes are read without a panic; a response that
//! is not one is a success, as its status says.

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartialSuccess {
    /// Spans that were rejected. They must not be sent again.
    pub rejected_spans: u64,
    /// Why; or a warning, if all were accepted.
    pub message: String,
}

/// A longer message is cut.
const MAX_MESSAGE_BYTES: usize = 500;

impl PartialSuccess {
    /// Reads the body of a response; `None` if it reports nothing.
    pub fn parse(body: &[u8]) -> Option<Self> {
        let (mut found, mut partial) = (Self::default(), None);
        each(body, |field, value| {
            if let (1, Value::Bytes(message)) = (field, value) {
                partial = Some(message);
            }
        })?;
        each(partial?, |field, value| match (field, value) {
            // An int64, which no collector sends below zero.
            (1, Value::Number(number)) => {
                found.rejected_spans = u64::try_from(number as i64).unwrap_or(0);
            }
            (2, Value::Bytes(text)) => {
                let text = &text[..text.len().min(MAX_MESSAGE_BYTES)];
                found.message = String::from_utf8_lossy(text).into_owned();
            }
            _ => {}
        })?;
        (found != Self::default()).then_some(found)
    }
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Other,
}

/// The fields of a message; `None` if it is cut or has an unknown type.
fn each<'a>(mut rest: &'a [u8], mut read: impl FnMut(u64, Value<'a>)) -> Option<()> {
    while !rest.is_empty() {
        let key = take_varint(&mut rest)?;
        let value = match key & 7 {
            0 => Value::Number(take_varint(&mut rest)?),
            1 => take(&mut rest, 8).map(|_| Value::Other)?,
            2 => {
                let length = usize::try_from(take_varint(&mut rest)?).ok()?;
                Value::Bytes(take(&mut rest, length)?)
            }
            5 => take(&mut rest, 4).map(|_| Value::Other)?,
            _ => return None,
        };
        read(key >> 3, value);
    }
    Some(())
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(taken)
}

fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protobuf::Message;
    use proptest::prelude::*;

    fn response(rejected: u64, message: &str) -> Vec<u8> {
        let mut out = Vec::new();
        Message::new(&mut out).message(1, |partial| {
            partial.number(1, rejected);
            partial.bytes(2, message.as_bytes());
            partial.fixed_64(9, 1);
            partial.fixed_32(10, 1);
        });
        out
    }

    #[test]
    fn rejected_spans_and_the_reason_are_read() {
        let found = PartialSuccess::parse(&response(7, "a quota")).unwrap();
        assert_eq!((found.rejected_spans, found.message.as_str()), (7, "a quota"));
        let warning = PartialSuccess::parse(&response(0, "deprecated")).unwrap();
        assert_eq!(warning.rejected_spans, 0);
        let long = PartialSuccess::parse(&response(1, &"é".repeat(1_000))).unwrap();
        assert_eq!(long.message.len(), MAX_MESSAGE_BYTES);
        assert_eq!(PartialSuccess::parse(&response(u64::MAX, "")), None, "below zero");
    }

    #[test]
    fn a_response_that_reports_nothing_is_a_success() {
        let whole = response(7, "a quota");
        for body in [&b""[..], b"\x0a\x00", b"{}", b"OK", &whole[..whole.len() - 1]] {
            assert_eq!(PartialSuccess::parse(body), None, "{body:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(body in proptest::collection::vec(any::<u8>(), 0..80)) {
            PartialSuccess::parse(&body);
        }
    }
}
