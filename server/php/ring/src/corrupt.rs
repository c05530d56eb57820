//! [`Corrupt`]: the peer broke the protocol; a cursor, a frame or a payload is impossible.
//!
//! Returned by every decoder. The gateway kills such a worker, a worker exits.

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Corrupt {
    /// The impossible value.
    pub what: &'static str,
}

impl std::fmt::Display for Corrupt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the peer broke the ring protocol: {}", self.what)
    }
}

impl std::error::Error for Corrupt {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_the_impossible_value_and_has_no_other_source() {
        let error: Box<dyn std::error::Error> = Box::new(Corrupt { what: "an unknown outcome" });
        assert_eq!(error.to_string(), "the peer broke the ring protocol: an unknown outcome");
        assert!(error.source().is_none());
    }
}
