//! The priority of a response (RFC 9218).
//!
//! Called by `connection` for PRIORITY_UPDATE frames, and by the owner of a stream for the field
//! `priority`. Invariant: an invalid parameter is the same as a missing one (RFC 9218 4).

/// A priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Priority {
    /// 0 to 7; responses with a lower number are sent first (RFC 9218 4.1).
    pub urgency: u8,
    /// Whether the response is of use before it is complete (RFC 9218 4.2).
    pub is_incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Self { urgency: 3, is_incremental: false }
    }
}

impl Priority {
    /// Reads a field value, a dictionary of structured fields.
    ///
    /// # Examples
    ///
    /// ```
    /// use outboard_http3::Priority;
    ///
    /// assert_eq!(Priority::read(b"u=1, i"), Priority { urgency: 1, is_incremental: true });
    /// assert_eq!(Priority::read(b"u=9"), Priority::default());
    /// ```
    pub fn read(value: &[u8]) -> Self {
        let mut priority = Self::default();
        for member in value.split(|&byte| byte == b',') {
            let member = member.split(|&byte| byte == b';').next().unwrap_or_default();
            match member.trim_ascii() {
                [b'u', b'=', digit @ b'0'..=b'7'] => priority.urgency = digit - b'0',
                b"i" | b"i=?1" => priority.is_incremental = true,
                b"i=?0" => priority.is_incremental = false,
                _ => {}
            }
        }
        priority
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_and_others_ignored() {
        for (value, urgency, is_incremental) in [
            ("", 3, false),
            ("u=0", 0, false),
            ("u=7,i", 7, true),
            (" i ; a=1 , u=2 ", 2, true),
            ("i, i=?0", 3, false),
            ("u=8, i=1, u=-1, u, u=11, x=(u=1)", 3, false),
        ] {
            let expected = Priority { urgency, is_incremental };
            assert_eq!(Priority::read(value.as_bytes()), expected, "{value}");
        }
    }
}
