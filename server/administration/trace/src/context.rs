//! [`TraceContext`]: the `traceparent` field of W3C Trace Context.
//!
//! Read from requests and written to those that follow from them. Invariant: an invalid field is no
//! context; it is not repaired.

use crate::ids::{SpanId, TraceId, parse_hex, write_hex};

/// A span, as the next program knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace_id: TraceId,
    /// The span that what follows is part of.
    pub span_id: SpanId,
    /// Whether it is exported.
    pub is_sampled: bool,
    /// Whether the trace id is random (the flag of level 2 of the specification).
    pub is_random: bool,
}

const SAMPLED: u8 = 1;
const RANDOM: u8 = 2;

impl TraceContext {
    /// The length of a field of version 00.
    pub const BYTES: usize = 55;

    /// Reads a field: `version-trace_id-span_id-flags`.
    pub fn parse(field: &[u8]) -> Option<Self> {
        let (known, rest) = field.split_at_checked(Self::BYTES)?;
        let mut version = [0];
        parse_hex(&known[..2], &mut version)?;
        let is_separated = [2, 35, 52].iter().all(|at| known[*at] == b'-');
        let may_continue = match version[0] {
            0 => rest.is_empty(),
            0xff => false,
            // A later version may append fields (4.3 of the specification).
            _ => rest.is_empty() || rest[0] == b'-',
        };
        if !is_separated || !may_continue {
            return None;
        }
        let mut flags = [0];
        parse_hex(&known[53..], &mut flags)?;
        Some(Self {
            trace_id: TraceId::parse(&known[3..35])?,
            span_id: SpanId::parse(&known[36..52])?,
            is_sampled: flags[0] & SAMPLED != 0,
            is_random: flags[0] & RANDOM != 0,
        })
    }

    /// The flags.
    pub(crate) fn flags(&self) -> u8 {
        (u8::from(self.is_sampled) * SAMPLED) | (u8::from(self.is_random) * RANDOM)
    }

    /// The field in version 00.
    pub fn write(&self) -> [u8; Self::BYTES] {
        let mut field = [b'-'; Self::BYTES];
        field[..2].copy_from_slice(b"00");
        write_hex(&self.trace_id.0, &mut field[3..35]);
        write_hex(&self.span_id.0, &mut field[36..52]);
        // There are two flags.
        field[53..].copy_from_slice(&[b'0', b'0' + self.flags()]);
        field
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FIELD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_field_is_read_and_written() {
        let context = TraceContext::parse(FIELD.as_bytes()).unwrap();
        assert_eq!(context.trace_id.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert!(context.is_sampled && !context.is_random);
        assert_eq!(context.write(), FIELD.as_bytes());
    }

    #[test]
    fn an_invalid_field_is_no_context() {
        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-011",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
            " 0-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_later_version_is_read_as_far_as_it_is_known() {
        let later = FIELD.replacen("00", "cc", 1);
        assert!(TraceContext::parse(later.as_bytes()).is_some());
        assert!(TraceContext::parse(format!("{later}-what-follows").as_bytes()).is_some());
    }

    proptest! {
        #[test]
        fn what_is_accepted_is_written_alike(field in "00-[0-9a-f]{32}-[0-9a-f]{16}-0[0-3]") {
            if let Some(context) = TraceContext::parse(field.as_bytes()) {
                prop_assert_eq!(&context.write()[..], field.as_bytes());
            }
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(field in proptest::collection::vec(any::<u8>(), 0..80)) {
            TraceContext::parse(&field);
        }
    }
}
