//! [`CacheRequirements`]: how a request differs if its response is for the page cache.
//!
//! Created by the page cache, observed by scripts and proxied requests.

/// The name and value of a header.
pub(crate) type OwnField = (Vec<u8>, Vec<u8>);

/// See the module.
#[derive(Debug)]
pub(crate) struct CacheRequirements {
    /// The response is sent only after this many bytes of its body, so that a shorter one is stored
    /// first.
    pub(crate) whole_bytes: usize,
    /// Conditions that replace those of the client.
    pub(crate) conditions: Vec<OwnField>,
}

/// Whether a header selects a part or form of the response (RFC 9110 12.5.3, 13.1, 14.2) or
/// describes the request's body: a cache requests the complete representation, without a body.
pub(crate) fn is_about_representation(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 5] =
        [b"range", b"accept-encoding", b"content-length", b"content-type", b"transfer-encoding"];
    let is_condition = name.get(..3).is_some_and(|start| start.eq_ignore_ascii_case(b"if-"));
    is_condition || NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_ranges_and_codings_are_not_for_the_cache() {
        for name in ["If-None-Match", "IF-RANGE", "range", "Accept-Encoding", "Content-Length"] {
            assert!(is_about_representation(name.as_bytes()), "{name}");
        }
        for name in ["Accept", "Cookie", "Content-Language", "if", "i"] {
            assert!(!is_about_representation(name.as_bytes()), "{name}");
        }
    }
}
