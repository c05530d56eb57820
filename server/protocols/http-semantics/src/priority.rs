//! [`Priority`]: the urgency of a response and whether it is incremental (RFC 9218 4).
//!
//! Read by `head_reader` from the field of a request, and by `http2` and `http3` from PRIORITY_UPDATE and
//! from the field of a response. Invariant: a value that is not a valid Dictionary (RFC 8941 3.2), or has a member of
//! another type or range, changes nothing of what it does not name.

/// The priority of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Priority {
    /// From 0, the most urgent, to 7 (RFC 9218 4.1).
    pub urgency: u8,
    /// Whether parts of the response are of use to the client (RFC 9218 4.2).
    pub is_incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Self { urgency: 3, is_incremental: false }
    }
}

impl Priority {
    /// The number of urgencies; 0 is the most urgent.
    pub const URGENCIES: usize = 8;

    /// The priority that a field value declares; parameters that it does not name have their default.
    ///
    /// # Examples
    ///
    /// ```
    /// use outboard_http_semantics::Priority;
    ///
    /// assert_eq!(Priority::parse(b"u=1, i"), Priority { urgency: 1, is_incremental: true });
    /// assert_eq!(Priority::parse(b"u=9"), Priority::default());
    /// ```
    pub fn parse(value: &[u8]) -> Self {
        Self::default().merged(value)
    }

    /// This priority with the parameters that a field value names (RFC 9218 8).
    pub fn merged(self, value: &[u8]) -> Self {
        let mut merged = self;
        for member in value.split(|byte| *byte == b',') {
            // Parameters of a member are ignored.
            let member = member.split(|byte| *byte == b';').next().unwrap_or_default();
            match member.trim_ascii() {
                [b'u', b'=', urgency @ b'0'..=b'7'] => merged.urgency = urgency - b'0',
                b"i" | b"i=?1" => merged.is_incremental = true,
                b"i=?0" => merged.is_incremental = false,
                _ => {}
            }
        }
        merged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_declares_urgency_and_incremental() {
        let of = |urgency, is_incremental| Priority { urgency, is_incremental };
        for (value, expected) in [
            ("", of(3, false)),
            ("u=0", of(0, false)),
            ("u=5, i", of(5, true)),
            ("i;x=1 ,\tu=7;a", of(7, true)),
            ("u=1, u=2", of(2, false)),
            ("i, i=?0", of(3, false)),
            ("u=8", of(3, false)),
            ("u=-1, i=1", of(3, false)),
            ("u=10", of(3, false)),
            ("\u{1f600}, u=4", of(4, false)),
            ("u, u=11, x=(u=1)", of(3, false)),
        ] {
            assert_eq!(Priority::parse(value.as_bytes()), expected, "{value}");
        }
    }

    #[test]
    fn a_response_overrides_only_what_it_names() {
        let priority = Priority { urgency: 1, is_incremental: true };
        assert_eq!(priority.merged(b"u=6"), Priority { urgency: 6, is_incremental: true });
    }
}
