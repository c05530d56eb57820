//! The values of sticky cookies.
//!
//! Called by the group for each member. Invariants: a value names no address; without the secret, the value of
//! another server cannot be computed; a value that is not one of them means nothing.

use aws_lc_rs::hmac;
use outboard_config::Sticky;
use std::fmt::Write;

/// Bytes of a value before it is text.
const BYTES: usize = 16;

/// The cookie's value for a server, in hexadecimal.
pub(crate) fn value(sticky: &Sticky, group: &str, server: &str) -> Box<[u8]> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, sticky.secret.0.as_bytes());
    let tag = hmac::sign(&key, format!("{group}\0{server}").as_bytes());
    let mut text = String::with_capacity(2 * BYTES);
    for byte in &tag.as_ref()[..BYTES] {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text.into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use outboard_config::{SameSite, Secret};

    #[test]
    fn a_value_depends_on_secret_group_and_server() {
        let sticky = |secret: &str| Sticky {
            cookie: "c".to_owned(),
            secret: Secret(secret.to_owned()),
            same_site: SameSite::Lax,
            max_age_ms: None,
        };
        let values =
            [("", "a", "b"), ("s", "a", "b"), ("s", "ab", ""), ("s", "a", "c"), ("s", "b", "b")];
        let mut values: Vec<_> =
            values.map(|(secret, group, server)| value(&sticky(secret), group, server)).into();
        assert!(values.iter().all(|value| value.len() == 2 * BYTES));
        values.sort();
        values.dedup();
        assert_eq!(values.len(), 5);
    }
}
